#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""run_repl: sessions that survive their own mistakes, checkpoints and branches, whose they are
and for how long; and mcp-python repl on top of it.

A suite of tests/integration/run. --count: steps of the comparison with plain Python (2000)."""

import contextlib
import copy
import datetime
import os
import random
import re
import socket
import subprocess
import time

import http_client
from harness import SOMEBODY, Skip, equal, main, test
from http_suite import http_private
from mcpclient import MODERN
from waits import Timeout, until, until_equal
from terminal import Terminal, client_program

try:
    import jsonschema
except ImportError:
    jsonschema = None

HANDLE = re.compile(r"r-[a-kmnp-z2-9]{10}")
NOBODY_S = "r-" + "a" * 10 + "-host"	# a handle that never was


class Session:
    """One session as a client sees it; cells are sent to its handle."""

    def __init__(self, client, handle=None):
        self.client, self.handle = client, handle

    def start(self, code=None, meta=None, **arguments):
        if code is not None:
            arguments["code"] = code
        if self.handle:
            arguments.setdefault("session", self.handle)
        params = {"name": "run_repl", "arguments": arguments}
        if meta:
            params["_meta"] = meta
        return self.client.request("tools/call", params)

    def finish(self, id, wait_s=None):
        o = self.client.outcome(id, wait_s)
        o.state, o.session = o.structured["state"], o.structured["session"]
        if o.session:
            assert HANDLE.fullmatch(o.session), o.session
            assert o.structured["expires"], o.structured
            self.handle = o.session
        return o

    def call(self, code=None, wait_s=None, **arguments):
        return self.finish(self.start(code, **arguments), wait_s)

    def well(self, code=None, wait_s=None, **arguments):
        o = self.call(code, wait_s, **arguments)
        equal((o.status, o.state), ("ok", "closed" if arguments.get("close") else "kept"),
              repr(o))
        return o

    def value(self, expression, wait_s=None):
        return self.well(expression, wait_s).result["repr"]

    def branch(self, code=None, **arguments):
        made = Session(self.client)
        made.finish(self.start(code, branch=True, **arguments))
        assert made.handle != self.handle, made.handle
        return made

    def cancel_when_said(self, ctx, code, word="go"):
        """Cancels the cell once it has printed the word."""
        n = len(self.client.notices)
        id = self.start(code, meta={"progressToken": "p%d" % n, "mcp-pythond/stream": True})
        self.until_said(word, n)
        self.client.cancel(id)
        del self.client.pending[("int", id)]


    def until_said(self, word, n=0):
        """n: of the notices before, which do not count."""
        self.client.until("a cell says %r" % word, lambda: any(
            word in text_of(m) for m in self.client.notices[n:]))


def text_of(notice):
    return notice["params"].get("_meta", {}).get("mcp-pythond/output", {}).get("text", "")


@contextlib.contextmanager
def begun(ctx, code="", **arguments):
    """A new session, closed at the end if it still exists."""
    with ctx.client(timeout=120) as client:
        session = Session(client)
        session.well(code, **arguments)
        try:
            yield session
        finally:
            session.call(close=True)


def refused(o, status, *words):
    equal(o.status, status, repr(o))
    for word in words:
        assert word in o.text, o.text


def environment(client):
    result = client.ask("tools/call", {"name": "check_environment", "arguments": {}})
    return result["structuredContent"]


def mine(client):
    return environment(client)["repl_sessions"]


def has(session, module):
    return session.value("import importlib.util\nimportlib.util.find_spec(%r) is not None"
                         % module) == "True"


@test
def states_are_ended_before_the_host(ctx):
    """Where nothing counts memory it can be short on the whole machine alone."""
    if not ctx.fallback:
        raise Skip("memory is counted here")
    with begun(ctx, "def weight(): return int(open('/proc/self/oom_score_adj').read())") as s:
        for _ in range(3):
            equal(s.value("weight()"), "500")


# A child whose timers continue it whenever it is stopped. When its own child is stopped, their cell
# is over, and it grows.
GROW_LATER = """import ctypes, os, signal, time
ready, tell = os.pipe()
if os.fork() == 0:
    libc, timer = ctypes.CDLL(None), ctypes.c_void_p()
    event = (ctypes.c_int * 16)(0, 0, signal.SIGCONT)
    for n in range(1, 500):
        libc.timer_create(1, event, ctypes.byref(timer))
        libc.timer_settime(timer, 0, (ctypes.c_long * 4)(0, 0, n // 50, n % 50 * 20_000_000), None)
    other = os.fork()
    while other == 0: signal.pause()
    os.write(tell, b'x')
    os.waitpid(other, os.WUNTRACED)
    for _ in range(10):
        if os.fork() == 0:
            kept = bytearray(30 << 20)
            break
    while True: signal.pause()
os.read(ready, 1)
"""


# A child that grows while its session goes on.
GROW_SOON = """import os, time
if os.fork() == 0:
    for _ in range(10):
        time.sleep(.05)
        if os.fork() == 0:
            kept = bytearray(30 << 20)
            break
    time.sleep(3600)
"""


@test
def a_session_does_not_grow_between_cells(ctx):
    """Where nothing counts memory, it is looked at again when it rests, and while it goes on."""
    for how, code in ("freeze", GROW_LATER), ("run\nbackground_seconds = 2", GROW_SOON):
        with ctx.private("[repl]\nbackground = %s\n" % how) as service, \
             ctx.client(path=service.socket) as client:
            s = Session(client)
            s.well("x = 1", memory_mb=96)
            s.well(code)
            if code == GROW_SOON and ctx.fallback:
                # It is undone between cells or, when it comes at that time, with a cell.
                def is_undone():
                    time.sleep(3)	# the time between two cells is what the test is about
                    o = s.call("x")
                    return o.status == "memory_limit" or o.structured["not_carried"]
                until("it is undone", is_undone)
                equal(s.value("x"), "1")
                continue
            seen = None

            def is_kept_within():
                nonlocal seen
                seen = [r for r in mine(client) if r["session"] == s.handle]
                # Ended for it; or the kernel kept it within its limit.
                return not seen or seen[0]["state"] == "frozen" and not ctx.fallback
            until(lambda: "the session is not ended: %s" % seen, is_kept_within)
            if seen:
                assert seen[0]["memory_bytes"] <= 112 << 20, seen
            equal(client.run("print(6 * 7)").stdout, "42\n")


# ---- what is kept ----

@test
def state_is_kept(ctx):
    with begun(ctx, "x = 20") as s:
        equal(s.value("x + 1"), "21")
        s.well("import math\ndef f(n):\n    return math.sqrt(n) + x\nclass A: pass\na = A()")
        equal(s.value("f(4), type(a).__name__"), "(22.0, 'A')")
        o = s.well("print('said')\nopen('left.txt', 'w').write('in a file')")
        equal(o.stdout, "said\n")
        equal(s.value("open('left.txt').read()"), "'in a file'")
        equal(s.well("None").result, None)
        equal(s.well("").stdout, "")
        end = datetime.datetime.strptime(o.structured["expires"], "%Y-%m-%dT%H:%M:%SZ")
        assert end > datetime.datetime.utcnow(), end
        assert HANDLE.fullmatch(s.handle), s.handle	# without the host's name: no proxy stands before a unix socket


@test
def exceptions_keep_what_was_done(ctx):
    with begun(ctx) as s:
        o = s.call("y = 1\ny = 2\n1/0\ny = 3")
        equal((o.status, o.state, o.error["type"]), ("error", "kept", "ZeroDivisionError"))
        assert "<cell " in o.error["traceback"] or "<cell " in o.stderr, repr(o)
        equal(s.value("y"), "2")
        o = s.call("y = 4\nimport sys\nsys.exit(7)")
        equal((o.status, o.state, o.exit_code, o.structured["exited"]), ("error", "kept", 7, True))
        equal(s.well("sys.exit()").structured["exited"], True)
        assert "exited" not in s.well("try: sys.exit()\nexcept SystemExit: pass").structured
        equal(s.value("y"), "4")
        o = s.call("y = 5\n)")
        equal((o.error["type"], o.state), ("SyntaxError", "kept"))
        equal(s.value("y"), "4")


CHECKSUM = "import zlib\nzlib.crc32(memoryview(array).cast('B'))"
# Large blocks: something is left when there is no room for one more.
# It does not end when it is interrupted.
DEAF = "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: time.sleep(60)\n"
EAT = ("def eat():\n    kept = []\n    while True: kept.append(bytearray(20 << 20))\n"
       "eat()")
BOMB = ("import os\nwhile True:\n    try: os.fork()\n    except OSError: pass")


def without_its_memory(o):
    """As a limit, or as the exception that RLIMIT_DATA makes of it first."""
    return o.status == "memory_limit" or o.error["type"] == "MemoryError"


@test(single=True)
def an_array_survives_everything(ctx):
    """200 MB, through an exception, a time-out, too much memory, a segmentation fault, a fork
    bomb and a cancellation, in this order."""
    with begun(ctx, memory_mb=700) as s:
        made = ("numpy.arange(25_000_000, dtype='u8')" if has(s, "numpy")
                else "array.array('Q', range(1000)) * 25_000")
        s.well("try:\n    import numpy\nexcept ImportError: pass\nimport array\narray = " + made,
               ctx.seconds(60))
        equal(s.value("array.nbytes if hasattr(array, 'nbytes') else len(array) * 8"), "200000000")
        want = s.value(CHECKSUM, ctx.seconds(60))

        def survived(o, statuses, state="rolled_back"):
            assert o.status in statuses and o.state == state, repr(o)
            equal(s.value(CHECKSUM, ctx.seconds(60)), want, "after " + o.status)

        survived(s.call("raise ValueError(array[0])"), ("error",), "kept")
        survived(s.call("array[0] = 9\n" + DEAF, timeout_seconds=1, cpu_seconds=20),
                 ("timeout",))
        o = s.call(EAT, ctx.seconds(60), timeout_seconds=30)
        assert without_its_memory(o), repr(o)
        # With what it held when it raised, it may be too much to be kept.
        survived(o, ("memory_limit", "error"),
                 o.state if "MemoryError" in o.stderr else "rolled_back")
        survived(s.call("import ctypes\narray[0] = 9\nctypes.string_at(0)"), ("crashed",))
        survived(s.call(BOMB, ctx.seconds(60), timeout_seconds=3, pids=20),
                 ("pids_limit", "timeout", "cpu_limit"))
        s.cancel_when_said(ctx, "import time\nprint('go', flush=True)\nwhile True: time.sleep(.01)")
        equal(s.value(CHECKSUM, ctx.seconds(60)), want, "after a cancellation")


@test(any_build=True)
def what_holds_state_goes_on_after_rollbacks(ctx):
    """Open files, databases, generators and random numbers, while cells are undone between."""
    with begun(ctx, "import os, random, sqlite3\n"
               "out = open('out.txt', 'w+')\nout.write('one\\n'); out.flush()\n"
               "db = sqlite3.connect('d.db'); db.execute('create table t (n)'); db.commit()\n"
               "mem = sqlite3.connect(':memory:'); mem.execute('create table t (n)')\n"
               "def numbers():\n    n = 0\n    while True:\n        yield n\n        n += 1\n"
               "it = numbers()\nrandom.seed(5)") as s:
        plain = random.Random(5)
        for i in range(6):
            s.well("out.write('%d\\n'); out.flush()\nx = db.execute('insert into t values (%d)')\n"
                   "db.commit()\nx = mem.execute('insert into t values (%d)')" % (i, i, i))
            equal(s.value("next(it)"), str(i), "the generator")
            equal(s.value("random.random()"), repr(plain.random()), "random")
            o = s.call("[next(it) for _ in range(5)]; random.random()\n"
                       "x = mem.execute('delete from t')\n" +
                       ("os._exit(1)", "os.kill(os.getpid(), 9)", "os.abort()")[i % 3])
            equal(o.state, "rolled_back", repr(o))
        equal(s.value("[n for n, in db.execute('select n from t')]"), "[0, 1, 2, 3, 4, 5]")
        equal(s.value("[n for n, in mem.execute('select n from t')]"), "[0, 1, 2, 3, 4, 5]")
        equal(s.value("out.seek(0)\nout.read()"), repr("one\n0\n1\n2\n3\n4\n5\n"))


STARTED = """import concurrent.futures, http.server, multiprocessing, os, signal, sqlite3
import subprocess, threading, time, urllib.request
class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *a): pass
executor = concurrent.futures.ThreadPoolExecutor(2)
first = list(executor.map(abs, [-1, -2]))
server = http.server.ThreadingHTTPServer(('127.0.0.1', 8111), Quiet)
threading.Thread(target=server.serve_forever, daemon=True, name='web').start()
child = subprocess.Popen(['sh', '-c', 'sleep 0.3; exit 7'])
long = subprocess.Popen(['sleep', '600'])
pool = multiprocessing.Pool(2)
db = sqlite3.connect(':memory:', isolation_level=None)
c = db.execute('create table t (n)')
c = db.execute('begin')
c = db.execute('insert into t values (1)')
"""


@test(any_build=True)
def what_a_cell_starts_goes_on(ctx):
    """Threads, children, servers, executors, pools and databases are there in the next cell."""
    with begun(ctx, STARTED) as s:
        equal(s.value("list(executor.map(abs, [-3, -4]))"), "[3, 4]")
        o = s.well("os.environ['no_proxy'] = '*'\n"
                   "urllib.request.urlopen('http://127.0.0.1:8111/', timeout=30).status")
        equal((o.result["repr"], o.structured["not_carried"]), ("200", []))
        equal(s.value("child.wait()"), "7")
        equal(s.value("repr(long.poll())"), "'None'")
        equal(s.value("pool.map(abs, [-5, -6])"), "[5, 6]")
        equal(s.value("db.in_transaction, db.execute('select n from t').fetchall()"), "(True, [(1,)])")
        # Inspected, it is as before.
        o = s.call(inspect=True)
        assert o.status == "ok" and o.state is None, repr(o)
        equal(s.value("pool.map(abs, [-7]), long.poll()"), "([7], None)")
        # What a cell does to the processes of its session it does to all but itself.
        equal(s.well("os.kill(-1, 9)\nlong.wait()").result["repr"], "-9")


@test(any_build=True)
def a_timeout_interrupts_first(ctx):
    """What listens ends by KeyboardInterrupt, and the session keeps what it did; what does not is undone."""
    with begun(ctx, "import threading, time\ndone = []\nt = threading.Thread(target=time.sleep, args=(1000,), daemon=True)\n"
                    "t.start()") as s:
        for how, status in (({"timeout_seconds": 1}, "timeout"), ({"cpu_seconds": 1}, "cpu_limit")):
            o = s.call("done.clear()\nprint('.', end='')\nwhile True: done.append(1)\n", **how)
            equal((o.status, o.state, o.exit_code, o.stdout), (status, "kept", 130, "."), repr(o))
            assert o.error["message"].endswith("; interrupted"), o.error
            assert "KeyboardInterrupt" in o.error["traceback"], o.error
            equal(s.value("len(done) > 100, t.is_alive()"), "(True, True)")
        # What it ends by itself then is a value; the time was reached all the same.
        o = s.call("try: time.sleep(100)\nexcept KeyboardInterrupt: late = 1\n7", timeout_seconds=1)
        equal((o.status, o.state, o.result["repr"], s.value("late")), ("timeout", "kept", "7", "1"), repr(o))
        o = s.call("done.append('x')\n" + DEAF, timeout_seconds=1, cpu_seconds=20)
        equal((o.status, o.state), ("timeout", "rolled_back"), repr(o))
        assert o.error["message"].endswith("; killed, because it did not end when it was interrupted"), o.error
        equal(s.value("done[-1]"), "1")
        o = s.client.run("import atexit\natexit.register(print, 'ended')\nprint('.', end='')\n"
                         "try: __import__('time').sleep(100)\nfinally: open('f', 'w').write('x')", timeout_seconds=1)
        equal((o.status, o.exit_code, o.stdout, [f["path"] for f in o.structured["files"]]),
              ("timeout", 130, ".ended\n", ["f"]), repr(o))
        o = s.client.run("print('.', end='', flush=True)\n" + DEAF, timeout_seconds=1, cpu_seconds=20)
        equal((o.status, o.exit_code, o.stdout), ("timeout", 137, "."), repr(o))
        assert "most recent call first" in o.error["traceback"] and "it did not end" in o.error["message"], o.error


@test(any_build=True)
def what_is_lost_with_a_cell_is_named(ctx):
    with begun(ctx, memory_mb=512) as s:
        for end, statuses in ((DEAF, ("timeout",)),
                              (EAT, ("memory_limit", "error")),
                              ("import ctypes; ctypes.string_at(0)", ("crashed",)),
                              ("os._exit(3)", ("error",)),
                              # Its interrupt might end it in time, and what it did would be kept.
                              (BOMB.replace("OSError", "BaseException"), ("pids_limit", "timeout", "cpu_limit")),
                              ("os.kill(os.getpid(), 9)", ("killed",))):
            s.well("try: server.server_close()\nexcept NameError: pass\n" + STARTED)
            o = s.call("x = 1\n" + end, 120, pids=24,
                       timeout_seconds=3 if "timeout" in statuses else 60)
            if end == EAT and o.state == "kept":	# by RLIMIT_DATA, which makes an exception of it
                o = s.call("os._exit(3)")
                s.well("del x")
            assert o.status in statuses and o.state == "rolled_back", (end, repr(o))
            told = " ".join(o.structured["not_carried"])
            for word in "thread 'web' has ended", "a socket is open", "processes that cells had started":
                assert word in told, (end, told)
            equal(s.value("'x' in globals(), db.in_transaction, long.poll(),"
                          " [t.name for t in threading.enumerate()]"),
                  "(False, True, -9, ['MainThread'])")
            equal(s.value("os.listdir('/proc').count(str(long.pid))"), "0")
        equal(s.value("try: os.wait()\nexcept ChildProcessError: said = 'none'\nsaid"), "'none'")


FORK_SERVER = """import multiprocessing
context = multiprocessing.get_context('forkserver')
with context.Pool(1) as pool: said = pool.map(abs, [-1])
said"""


@test(any_build=True)
def the_fork_server_of_a_lost_state_is_replaced(ctx):
    """multiprocessing's fork server ends with a cell that is rolled back; a branch never had it."""
    with begun(ctx, "import os") as s:
        equal(s.value(FORK_SERVER), "[1]")
        equal(s.call("os._exit(3)").state, "rolled_back")
        equal(s.value(FORK_SERVER), "[1]")
        branch = s.branch()
        equal(branch.value(FORK_SERVER), "[1]")
        branch.call(close=True)
        equal(s.value(FORK_SERVER), "[1]")


LARGE = """import socket, subprocess, sys
large = subprocess.Popen([sys.executable, '-c', '''
import socket, time
listener = socket.create_server(("127.0.0.1", 8112))
kept = bytearray(b"x") * (200 << 20)
print("up", flush=True)
time.sleep(600)'''], stdout=subprocess.PIPE)
large.stdout.readline()"""


@test
def what_is_ended_with_a_cell_is_gone_with_its_answer(ctx):
    """A large process takes long to end, and frees its port after its memory."""
    with begun(ctx, "import os, socket", memory_mb=700) as s:
        for _ in range(3):
            s.well(LARGE)
            equal(s.call("os._exit(3)").state, "rolled_back")
            s.well("socket.create_server(('127.0.0.1', 8112)).close()")
            equal(s.value("os.path.exists(f'/proc/{large.pid}')"), "False")


@test
def what_cannot_be_listed_is_named_at_large(ctx):
    """As when the interrupt of a time-out comes while the threads are listed."""
    with begun(ctx) as s:
        s.well("import threading\nclass Odd(threading.Thread):\n    def is_alive(self):\n"
               "        raise KeyboardInterrupt\nOdd(target=threading.Event().wait, daemon=True).start()")
        o = s.call("import os\nos._exit(3)")
        equal((o.state, o.structured["not_carried"]),
              ("rolled_back", ["threads and connections of earlier cells, if there were any, have ended"]))
        equal(s.well("1").structured["not_carried"], [])


@test
def what_ends_all_but_itself_ends_well_and_is_named(ctx):
    """os.kill(-1, 9) spares its sender alone: the state stays, and the next cell has a copy again."""
    with begun(ctx) as s:
        s.well(STARTED)
        o = s.well("x = 1\nos.kill(-1, 9)\nlong.wait()")
        equal(o.result["repr"], "-9")
        assert any("processes that cells had started were ended" in t
                   for t in o.structured["not_carried"]), o.structured
        equal(s.value("x, db.in_transaction, list(executor.map(abs, [-3]))"), "(1, True, [3])")
        o = s.call("x = 2\nos._exit(3)")
        equal(o.state, "rolled_back")
        told = " ".join(o.structured["not_carried"])
        for word in "thread 'web' has ended", "a socket is open":
            assert word in told, told
        equal(s.value("x, db.in_transaction, long.poll(), [t.name for t in threading.enumerate()]"),
              "(1, True, -9, ['MainThread'])")
        # What then fails itself has nothing to go back to, and says so.
        s.well("c = None", checkpoint="here")
        o = s.call("os.kill(-1, 9)\nos._exit(3)")
        equal((o.state, o.session, o.structured["checkpoints"]), ("lost", None, []), repr(o))


@test
def what_a_snapshot_costs_is_told(ctx):
    """A moment after a cell: little, and not what the state holds; all of it if that is written to."""
    with begun(ctx, "kept = bytearray(b'x') * (100 << 20)") as s:
        def cost():
            return [r["snapshot_bytes"] for r in mine(s.client) if r["session"] == s.handle][0]
        def grown():
            s.well("")
            with contextlib.suppress(Timeout):
                return until("a measurement", lambda: cost() >= 50 << 20, 2)
        until("a measurement", lambda: cost() is not None)
        assert 4096 <= cost() < 50 << 20, cost()
        # What goes on writes to all of it, and the copy has it alone.
        s.well("import threading, time\ndef write():\n    while True:\n"
               "        kept[::4096] = b'y' * len(kept[::4096])\n        time.sleep(.05)\n"
               "threading.Thread(target=write, daemon=True).start()")
        # It is measured once after each cell, when nothing has happened for a while.
        until(lambda: "the snapshot costs %s" % cost(), grown)


@test(any_build=True)
def what_a_cell_closes_is_free_in_the_next(ctx):
    """The copy of before had it too. It takes a while to end on a busy machine, if the state is large."""
    with begun(ctx, "import socket\nheld = [str(i) for i in range(1500000)]\n"
               "s = socket.create_server(('127.0.0.1', 8111))") as s, contextlib.ExitStack() as busy:
        for _ in range(3 * os.cpu_count()):
            one = subprocess.Popen(["sh", "-c", "while :; do :; done"])
            busy.callback(one.wait)
            busy.callback(one.kill)
        for _ in range(ctx.count(200)):
            s.well("s.close()")
            s.well("s = socket.create_server(('127.0.0.1', 8111))")


@test
def processes_that_are_left_are_bounded(ctx):
    """A session does not grow by its limit with each cell; when it is full, they are ended."""
    with begun(ctx, "import os, subprocess, time\nleft = []") as s:
        seen = []
        for _ in range(8):
            o = s.call("try:\n    for _ in range(8): left.append(subprocess.Popen(['sleep', '600']))\n"
                       "except OSError: pass\n"
                       "sum(n.isdigit() for n in os.listdir('/proc'))", 120, pids=10,
                       timeout_seconds=60)
            assert o.status in ("ok", "crashed", "pids_limit"), repr(o)
            if o.status == "ok":
                seen.append(int(o.result["repr"]))
            else:
                assert "processes that cells had started were ended" in o.text, o.text
        # Init, the state and its copy, what is left, what the last cell may have.
        assert 12 < max(seen) <= 3 + 10 + 10, seen
        if s.call("1").status != "ok":
            equal(s.value("1"), "1")


@test
def a_session_without_snapshots(ctx):
    """No copy waits: what ends a cell's process ends the session, which is told before and after."""
    count = "sum(n.isdigit() for n in os.listdir('/proc'))"
    with ctx.client(timeout=120) as client:
        def alone(code="x = 1", **arguments):
            s = Session(client)
            o = s.well("import os, threading, time\n" + code, snapshot=False, memory_mb=256,
                       **arguments)
            assert "It has no snapshots" in o.structured["state_text"], o.structured
            return s

        with begun(ctx, "import os") as usual:
            processes = int(usual.value(count))
        s = alone("x = 1\ngo = threading.Event()\n"
                  "thread = threading.Thread(target=go.wait)\nthread.start()")
        equal(s.value(count), str(processes - 1))
        o = s.call("x = 2\n1/0")
        equal((o.status, o.state), ("error", "kept"), repr(o))
        s.cancel_when_said(ctx, "x = 3\nprint('go', flush=True)\ntime.sleep(1000)")
        equal(s.value("x, thread.is_alive()"), "(3, True)")
        for arguments in ({"checkpoint": "c"}, {"restore": "c"}, {"branch": True}):
            refused(s.call("x = 4", **arguments), "invalid_arguments", "needs a copy of the state")
        refused(s.call(inspect=True), "invalid_arguments", "needs a copy of the state")
        refused(s.call("x = 4", snapshot=True), "invalid_arguments", "snapshot is chosen when")
        refused(client.outcome(Session(client).start("1", snapshot=False, checkpoint="c")),
                "invalid_arguments", "needs a copy of the state")
        equal(s.value("go.set()\nthread.join()\nx"), "3")
        for end, statuses in ((DEAF, ("timeout",)), (EAT, ("memory_limit", "error")),
                              ("import ctypes; ctypes.string_at(0)", ("crashed",)),
                              ("os._exit(3)", ("error",)),
                              ("os.kill(os.getpid(), 9)", ("killed",))):
            s = alone()
            handle = s.handle
            o = s.call(end, 120, timeout_seconds=3 if "timeout" in statuses else 60)
            if o.state == "kept":	# by RLIMIT_DATA, which makes an exception of it
                equal(end, EAT)
                s.well(close=True)
                continue
            assert o.status in statuses and o.state == "lost", (end, repr(o))
            assert "It has no snapshots" in o.structured["state_text"], o.structured
            equal(o.session, None)
            refused(Session(client, handle).call("x"), "no_session")
        s = alone()
        o = s.well("y = 1", reset=True)
        assert "It has no snapshots" in o.structured["state_text"], o.structured
        equal(s.well("y = 1", reset=True, snapshot=True, checkpoint="c").structured["checkpoints"],
              ["c"])
        equal(s.call("os = __import__('os')\nos._exit(1)").state, "rolled_back")
        s.well(close=True)


@test(any_build=True)
def variables_are_told_without_a_cell(ctx):
    """By a copy: what a __repr__ does, or does not end, leaves the state as it is."""
    with begun(ctx, "import array, collections\n_hidden = 1\nn = 7\ntext = 'x' * 100000\n"
               "numbers = array.array('d', [0]) * 5\nD = collections.OrderedDict\nd = D(a=1)\n"
               "class Shaped:\n    shape = (3, 4)\n    nbytes = 96\n"
               "    def __repr__(self):\n        global n\n        n += 1\n        return 'a\\nb'\n"
               "s = Shaped()") as s:
        for _ in range(2):
            o = s.call(inspect=True)
            equal((o.status, o.state, o.structured["state_text"]), ("ok", None, None), repr(o))
            told = {v["name"]: v for v in o.result["json"]}
            equal(sorted(told), ["D", "Shaped", "array", "collections", "d", "n", "numbers", "s",
                                 "text"])
            equal((told["n"]["type"], told["n"]["repr"]), ("int", "7"))
            equal((told["text"]["length"], len(told["text"]["repr"]) <= 200), (100000, True))
            equal(told["s"], {"name": "s", "type": "Shaped", "shape": [3, 4], "bytes": 96,
                              "repr": "a\nb"})
            equal((told["d"]["type"], told["d"]["length"]), ("collections.OrderedDict", 1))
            for line in ("s: Shaped [3, 4] = a b", "n: int = 7", "array: module array", "collections: module collections",
                         "text: str 100000, %d bytes = 'xxx" % told["text"]["bytes"]):
                assert "\n" + line in o.text, (line, o.text)
            assert "from '/" not in o.text, o.text
        equal(s.value("n"), "7")
        assert s.well("1/0 if n != 7 else 'cell 2 or 3'").structured["not_carried"] == []
        s.well("globals().update(('v%03d' % i, i) for i in range(600))")
        o = s.call(inspect=True)
        equal((len(o.result["json"]), o.structured["truncated"]["result"]), (500, True))
        equal(s.call("", inspect=True).status, "ok", "no code")
        s.well("Shaped.__repr__ = lambda self: [None for _ in iter(int, 1)]")
        o = s.call(inspect=True, timeout_seconds=1)
        equal((o.status, o.state, s.value("n")), ("timeout", "rolled_back", "7"), repr(o))
        s.well("import os\nShaped.__repr__ = lambda self: os._exit(3)")
        o = s.call(inspect=True)
        equal((o.state, o.exit_code, s.value("n")), ("rolled_back", 3, "7"), repr(o))
        for more in ({"code": "1"}, {"reset": True}, {"close": True}, {"checkpoint": "c"}):
            refused(s.client.outcome(Session(s.client, s.handle).start(inspect=True, **more)),
                    "invalid_arguments", "inspect only looks")
        refused(s.client.outcome(Session(s.client).start(inspect=True)), "invalid_arguments",
                "inspect needs a session")


# ---- interrupting ----

@test
def cancelling_interrupts(ctx):
    with begun(ctx, "caught = None") as s:
        s.cancel_when_said(ctx, "try:\n    print('go', flush=True)\n    while True: pass\n"
                           "except KeyboardInterrupt as e:\n    caught = type(e).__name__\n    raise")
        o = s.well("caught")
        equal(o.result["repr"], "'KeyboardInterrupt'")
        assert "cancelled" in o.structured["state_text"], o.structured
        equal(s.well("caught").structured["state_text"], None, "told once")


@test
def what_does_not_listen_is_killed(ctx):
    with begun(ctx, "x = 1") as s:
        s.cancel_when_said(ctx, "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
                           "x = 2\nprint('go', flush=True)\nwhile True: pass")
        o = s.well("x", ctx.seconds(60))
        equal(o.result["repr"], "1")
        assert "undone" in o.structured["state_text"], o.structured


@test
def a_client_that_goes_away_leaves_its_session(ctx):
    with ctx.client() as other:
        with ctx.client() as client:
            s = Session(client)
            s.well("x = 5")
            s.start("import time\ntime.sleep(600)")
            client.flush()
        s = Session(other, s.handle)
        equal(s.value("x", ctx.seconds(60)), "5")
        s.well(close=True)


@test
def a_first_cell_that_is_cancelled_leaves_nothing(ctx):
    with ctx.private() as service, ctx.client(path=service.socket) as client:
        s = Session(client)
        s.cancel_when_said(ctx, "import time\nprint('go', flush=True)\nwhile True: time.sleep(.01)")
        until_equal("the sessions", lambda: mine(client), [])


# ---- checkpoints and branches ----

@test
def checkpoints_come_back(ctx):
    with begun(ctx, "x = [1]", checkpoint="one") as s:
        o = s.well("x.append(2)\nx", checkpoint="two")
        equal(o.structured["checkpoints"], ["one", "two"])
        s.well("x.clear()")
        equal(s.well("x", restore="two").result["repr"], "[1, 2]")
        equal(s.well("x", restore="one").result["repr"], "[1]")
        s.well("x.append(3)", checkpoint="one")
        s.well("x = None")
        equal(s.well("x", restore="one").result["repr"], "[1, 3]", "restored")
        refused(s.call("x", restore="three"), "no_checkpoint", "there is no checkpoint three")
        equal(s.value("x"), "[1, 3]", "after a refusal")
        o = s.call("x = 0\n1/0", checkpoint="bad")
        equal((o.state, o.structured["checkpoints"]), ("kept", ["one", "two"]))
        assert "No checkpoint" in o.text, o.text
        for i in range(20):
            o = s.call("%d" % i, checkpoint="c%d" % i)
            if o.status != "ok":
                break
        refused(o, "session_limit", "16 states")
        equal(s.value("x"), "0", "when it is full")
        s.well("x = 'again'", checkpoint="two")
        o = s.well("'x' in globals()", reset=True)
        equal((o.result["repr"], o.structured["checkpoints"]), ("False", []))


@test
def a_memory_limit_says_what_was_held(ctx):
    """A cell that changes all of a state needs its size twice."""
    touch = "for i in range(0, len(big), 4096): big[i] = %d"
    with begun(ctx, memory_mb=256) as s:
        s.well("big = bytearray(150 << 20)\n" + touch % 1, ctx.seconds(60))
        o = s.call(touch % 2, ctx.seconds(60), timeout_seconds=50)
        equal((o.status, o.state), ("memory_limit", "rolled_back"), repr(o))
        held = re.search(r"before this cell the session held (\d+) MiB of it, which stays", o.text)
        assert held and 145 <= int(held[1]) <= 220, o.text
        equal(s.value("big[0]"), "1")
    # With one thread BLAS has none that runs on between cells.
    with begun(ctx, "import os\nos.environ['OPENBLAS_NUM_THREADS'] = '1'\nbig = b'x' * (100 << 20)", memory_mb=512) as s:
        o = s.call("import numpy", ctx.seconds(60), timeout_seconds=50)
        if o.status == "ok":	# a single array, for which numpy has an error of its own
            o = s.call("numpy.ones(80 << 20)", ctx.seconds(60), timeout_seconds=50)
            equal(o.status, "memory_limit", repr(o))
            assert "before this cell the session held 1" in o.text, o.text
    # While a thread runs, the waiting copy is not told from the state, and nothing wrong is said.
    with begun(ctx, "import threading, time\nbig = b'x' * (100 << 20)\n"
               "threading.Thread(target=time.sleep, args=(600,), daemon=True).start()", memory_mb=512) as s:
        o = s.call("bytearray(700 << 20)", ctx.seconds(60), timeout_seconds=50)
        equal(o.status, "memory_limit", repr(o))
        held = re.search(r"before this cell the session held (\d+) MiB", o.text)
        assert not held or int(held[1]) < 150, o.text


MEMTOTAL = "int(open('/proc/meminfo').readline().split()[1]) >> 10"
FILL = "big = bytearray(b'x') * (%d << 20)\nlen(big) >> 20"


@test
def a_cell_gives_its_session_more_memory(ctx):
    """All its states stay, and can use it."""
    with begun(ctx, "x = 1", memory_mb=128, checkpoint="first") as s:
        b = s.branch("x = 2")
        o = s.call(FILL % 200, ctx.seconds(60))
        assert o.status in ("memory_limit", "error"), repr(o)
        equal(s.call("y = x\n" + FILL % 50, memory_mb=128).result["repr"], "50", "as much as it has")
        o = s.well("z = x\n" + FILL % 200, ctx.seconds(60), memory_mb=512)
        equal(o.result["repr"], "200")
        for text in (o.text, o.structured["state_text"]):
            assert "Its memory_mb is 512 from now on; it was 128." in text, text
        o = s.well("len(big) >> 20, y, z, %s" % MEMTOTAL)
        equal(o.result["repr"], "(200, 1, 1, 512)")
        equal(o.structured["state_text"], None, "it is said once")
        equal({one["memory_mb"] for one in mine(s.client)
               if one["session"] in (s.handle, b.handle)}, {512})
        # A state and a branch from before.
        equal(b.well("%s, x\n" % MEMTOTAL).result["repr"], "(512, 2)")
        equal(b.well(FILL % 150, ctx.seconds(60)).result["repr"], "150")
        b.well(close=True)
        equal(s.well("x\n" + FILL % 300, ctx.seconds(60), restore="first").result["repr"], "300")
        # It is still a limit, and its own.
        o = s.call("more = []\nwhile True: more.append(bytearray(b'x') * (8 << 20))",
                   ctx.seconds(60), timeout_seconds=50)
        equal((o.status, s.value("len(big) >> 20")), ("memory_limit", "300"), repr(o))
        assert "memory limit of 512 MiB" in o.text, o.text
        refused(s.call("1", memory_mb=511), "invalid_arguments", "only reset lowers it", "has 512")
        refused(s.call("1", memory_mb=2049), "invalid_arguments", "at most 2048")
        o = s.call("1", memory_mb=600, restore="none")
        refused(o, "no_checkpoint")
        equal(s.value(MEMTOTAL), "512", "what is refused raises nothing")


@test
def a_copy_gets_the_memory_that_its_call_asks_for(ctx):
    touch = "for i in range(0, len(big), 4096): big[i] = %d"
    with begun(ctx, "big = bytearray(70 << 20)\n" + touch % 1, memory_mb=128, checkpoint="a") as s:
        s.well(touch % 2, ctx.seconds(60), memory_mb=300)
        o = s.well("big[0]", ctx.seconds(60), restore="a", memory_mb=500)
        equal(o.result["repr"], "1")
        b = s.branch(touch % 3, memory_mb=700)
        equal((b.value("big[0]"), b.value(MEMTOTAL), s.value(MEMTOTAL)), ("3", "700", "700"))
        b.well(close=True)


@test
def a_script_gives_its_session_no_memory(ctx):
    """Not even by the soft limit of a process, which is a script's to raise."""
    with begun(ctx, "import resource", memory_mb=128) as s:
        o = s.call("most = resource.getrlimit(resource.RLIMIT_DATA)[1]\n"
                   "resource.setrlimit(resource.RLIMIT_DATA, (most, most))\n"
                   "more = []\nwhile True: more.append(bytearray(b'x') * (8 << 20))",
                   ctx.seconds(60), timeout_seconds=50)
        equal((o.status, s.value(MEMTOTAL)), ("memory_limit", "128"), repr(o))
        if "ASAN_OPTIONS" in os.environ:
            return	# its allocator does not survive the next limit
        # A limit that it has lowered itself stays until more is asked for.
        lower = "resource.setrlimit(resource.RLIMIT_DATA, (300 << 20, most))\n"
        s.well("most = resource.getrlimit(resource.RLIMIT_DATA)[1]\n" + lower, memory_mb=256)
        equal(s.value("resource.getrlimit(resource.RLIMIT_DATA)[0] >> 20"), "300")


@test
def checkpoints_count_as_memory(ctx):
    """Cells that are too quick to be met by a look now and then. A checkpoint for which there is no
    room is not made: the cell's answer says so, and the next cell is too large."""
    with begun(ctx, memory_mb=256) as s:
        for i in range(16):
            made = o.structured["checkpoints"] if i else []
            o = s.call("x = b'%c' * (32 << 20)" % (97 + i), checkpoint="c%d" % i)
            if o.status != "ok":
                break
        equal((o.status, o.state), ("memory_limit", "rolled_back"), repr(o))
        assert 2 <= i <= 8, i
        equal(o.structured["checkpoints"], made)
        assert made in (["c%d" % n for n in range(i)], ["c%d" % n for n in range(i - 1)]), made
        equal(s.value("x[:1]"), "b'%c'" % (97 + i - 1))
        equal(s.well("x[:1]", restore="c0").result["repr"], "b'a'")


@test
def a_process_that_forks_counts_once(ctx):
    """A process of an earlier cell forks all the time, and each child shows its memory once more."""
    with begun(ctx, """import os, time
if not os.fork():
    x = bytearray(b'x') * (100 << 20)
    while True:
        if not os.fork():
            os._exit(0)
        os.wait()
        time.sleep(.001)
""", memory_mb=220) as s:
        for i in range(ctx.count(60)):
            o = s.well("%d" % i, checkpoint="c%d" % (i % 3))
            equal(len(o.structured["checkpoints"]), min(i + 1, 3), o.text)
            equal(o.structured["not_carried"], [], o.text)


@test
def states_that_are_lost_are_not_offered(ctx):
    with begun(ctx, "x = 1", checkpoint="a") as s:
        s.well("x = 2", checkpoint="b")
        o = s.well("import os; os.kill(-1, 9)\nx = 3")
        # They take their time to be gone.
        until_equal("the checkpoints", lambda: s.well("1").structured["checkpoints"], [])
        refused(s.call("x", restore="a"), "no_checkpoint", "there is no checkpoint a")
        equal(s.well("x", checkpoint="c").result["repr"], "3", "after a restore that failed")
        # One that is killed is lost alone.
        s.well("1")
        # The copy is the youngest process beside the cell's own.
        o = s.call("others = {int(n) for n in os.listdir('/proc') if n.isdigit()} - {os.getpid()}\n"
                   "os.kill(max(others), 9)\nos._exit(1)")
        equal((o.state, o.structured["checkpoints"]), ("lost", ["c"]), repr(o))
        assert "Restore one of its checkpoints" in o.text, o.text
        refused(s.call("x"), "no_session", "the state of this session was lost")
        equal(s.well("x", restore="c").result["repr"], "3")
        o = s.call("os.kill(-1, 9)\nos._exit(1)")
        equal(o.state, "lost", repr(o))
        o = until("the session ends", lambda: (o := s.call("x", restore="c")).status == "no_session" and o)
        equal(o.structured["checkpoints"], [])


@test
def branches_go_their_own_ways(ctx):
    with begun(ctx, "x = [1]", checkpoint="first") as s:
        b = s.branch("x.append('b')\nx")
        equal(b.value("x"), "[1, 'b']")
        equal(s.value("x"), "[1]")
        s.well("x.append('s')")
        c = s.branch("x", restore="first")
        equal((c.value("x"), s.value("x")), ("[1]", "[1, 's']"))
        o = b.call("import os\nos._exit(1)")
        equal((o.state, b.value("x"), s.value("x")), ("rolled_back", "[1, 'b']", "[1, 's']"))
        refused(b.call(restore="first"), "no_checkpoint")
        s.well("x = 0", close=True)
        refused(s.call("x"), "no_session")
        equal(b.value("x"), "[1, 'b']", "when the first one is closed")
        b.well(close=True)
        c.well(close=True)


@test
def arguments_are_checked(ctx):
    with begun(ctx, "x = 1") as s:
        for arguments, words in (
                ({"cod": "1"}, ("cod is not an argument of run_repl", "checkpoint")),
                ({"code": 1}, ("code must be a string",)),
                ({"code": "a\0b"}, ("code holds a NUL",)),
                ({"checkpoint": "a b"}, ("checkpoint must be",)),
                ({"checkpoint": "x" * 65}, ("checkpoint must be",)),
                ({"restore": "a b"}, ("restore must be",)),
                ({"branch": 1}, ("branch must be true or false",)),
                ({"reset": True, "branch": True}, ("reset leaves nothing to branch from",)),
                ({"reset": True, "restore": "x"}, ("reset leaves nothing to restore",)),
                ({"memory_mb": 100}, ("only reset lowers it: this one has 512",)),
                ({"profile": "other"}, ("profile is chosen when a session begins",)),
                ({"timeout_seconds": 0}, ("timeout_seconds must be",)),
                ({"timeout_seconds": 1e6}, ("timeout_seconds",)),
                ({"session": "a b"}, ("session must be",)),
                ({"session": ["x"]}, ("session must be",))):
            refused(s.call(**arguments), "invalid_arguments", *words)
        equal(s.value("x"), "1")
        fresh = Session(s.client)
        for arguments, words in (({"branch": True}, ("branch needs a session",)),
                                 ({"restore": "x"}, ("restore needs a session",)),
                                 ({"reset": True}, ("reset needs a session",)),
                                 ({"profile": "none"}, ("profile",))):
            refused(fresh.call(**arguments), "invalid_arguments", *words)
        assert fresh.handle is None


@test
def answers_fit_their_schema(ctx):
    if jsonschema is None:
        raise Skip("python3-jsonschema is not installed", missing=True)
    with begun(ctx) as s:
        tool = next(t for t in s.client.ask("tools/list")["tools"] if t["name"] == "run_repl")
        equal(tool["inputSchema"]["properties"]["session"]["x-mcp-header"], "Session")
        for o in (s.call("1", checkpoint="a"), s.call("1/0"), s.call("import os\nos._exit(1)"),
                  s.call(cod=1), s.call(restore="none"), Session(s.client, NOBODY_S).call("1"),
                  Session(s.client).call("1", close=True)):
            jsonschema.validate(o.structured, tool["outputSchema"])
        environment_tool = next(t for t in s.client.ask("tools/list")["tools"]
                                if t["name"] == "check_environment")
        jsonschema.validate(environment(s.client), environment_tool["outputSchema"])


@test(any_build=True)
def open_files_go_on(ctx):
    """As many as they are: some have the numbers that the worker itself uses."""
    with begun(ctx, "import os") as s:
        for n in (50, 56, 57, 58, 59, 60, 61, 64, 100):
            s.well("several = [os.open('f%%d' %% i, os.O_RDWR | os.O_CREAT) for i in range(%d)]" % n)
            s.well("for i, fd in enumerate(several): x = os.write(fd, b'%d' % i)")
            s.well("for fd in several: os.close(fd)")
        equal(s.value("open('f63').read()"), "'63'")


@test(private=True)
def sessions_leave_workers_for_scripts(ctx):
    config = "[pool]\nworkers_max = 8\nwarm = 1\nwarm_max = 1\ntenant_running_max = 4\n[repl]\nsessions_max = 8\n"
    with ctx.private(config) as service, ctx.client(path=service.socket) as client:
        many = [Session(client) for _ in range(7)]
        for s in many[:6]:
            s.well("1", memory_mb=64)
        refused(many[6].call("1", memory_mb=64), "session_limit", "all tenants")
        equal(client.run("print(1)").stdout, "1\n")
        many[0].well(close=True)
        many[6].well("1", memory_mb=64)


# ---- turns ----

@test
def closing_does_not_wait(ctx):
    with ctx.client() as client:
        s = Session(client)
        s.well("x = 1")
        b = s.branch("x")
        token = {"progressToken": "closing", "mcp-pythond/stream": True}
        runs = s.start("import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
                       "print('go', flush=True)\nwhile True: time.sleep(.01)", meta=token)
        s.until_said("go")
        waiting = [s.start("x") for _ in range(3)]
        closing = s.start(close=True)
        o = s.finish(runs)
        equal((o.status, o.state, o.session), ("cancelled", "closed", None), repr(o))
        assert "its session has ended" in o.text, o.text
        for id in waiting:
            refused(s.finish(id), "no_session")
        o = s.finish(closing)
        equal((o.status, o.state, o.session, o.exit_code), ("ok", "closed", None, None), repr(o))
        equal(b.value("x"), "1", "its branch")
        b.well("x", close=True)
        refused(s.call("x"), "no_session")


@test
def cells_of_a_session_take_turns(ctx):
    with begun(ctx, "import time\nseen = []") as s:
        ids = [s.start("seen.append(%d)\ntime.sleep(.02)\nlist(seen)" % i) for i in range(8)]
        got = [s.finish(id, ctx.seconds(60)).result["repr"] for id in ids]
        equal(got, [repr(list(range(i + 1))) for i in range(8)])
        first, *ids = [s.start("time.sleep(600)" if i == 0 else "1") for i in range(20)]
        busy = {s.finish(id, ctx.seconds(60)).status for id in ids[8:]}
        equal(busy, {"session_busy"})
        s.client.cancel(first)
        del s.client.pending[("int", first)]
        equal([s.finish(id, ctx.seconds(60)).status for id in ids[:7]], ["ok"] * 7)


@test
def a_session_in_two_connections(ctx):
    with begun(ctx, "x = 1") as s, ctx.client(MODERN) as other:
        o = other.ask("tools/call", {"name": "run_repl",
                                     "arguments": {"session": s.handle, "code": "x = 2"}})
        equal(o["structuredContent"]["state"], "kept")
        equal(s.value("x"), "2")


# ---- whose, how many, how long ----

@test(root=True)
def a_handle_is_its_tenant_s(ctx):
    with begun(ctx, "x = 1") as s, ctx.client(uid=SOMEBODY) as other:
        stranger = Session(other, s.handle)
        for arguments in ({"code": "x"}, {"close": True}, {"branch": True}, {"reset": True}):
            theirs = stranger.call(**arguments)
            refused(theirs, "no_session")
            nobody = Session(other, NOBODY_S).call(**arguments)
            equal(theirs.structured, nobody.structured)
            equal(theirs.text, nobody.text)
        assert s.handle in [one["session"] for one in mine(s.client)]
        equal(mine(other), [])
        equal(s.value("x"), "1")


@test
def sessions_are_listed(ctx):
    with begun(ctx, "x = 1", checkpoint="a", memory_mb=128) as s:
        one = next(one for one in mine(s.client) if one["session"] == s.handle)
        equal((one["cells"], one["checkpoints"], one["memory_mb"]), (1, ["a"], 128))
        assert one["state"] in ("idle", "frozen"), one
        s.well("2")
        if ctx.service and not ctx.service.worker_leaves():
            raise Skip("nothing can be frozen without a cgroup")
        until_equal("the state", lambda: next(
            one["state"] for one in mine(s.client) if one["session"] == s.handle), "frozen")
        equal(s.value("x"), "1", "thawed")


@test(private=True)
def sessions_are_capped(ctx):
    config = "[repl]\nsessions_max = 3\nmemory_total_mb = 400\n"
    with ctx.private(config) as service, ctx.client(path=service.socket) as client:
        many = [Session(client) for _ in range(3)]
        many[0].well("1", memory_mb=200)
        refused(many[1].call("1", memory_mb=201), "session_limit", "401 MiB", "400")
        many[1].well("1", memory_mb=200)
        many[2] = many[1].branch("2")
        refused(Session(client).call("1", memory_mb=16), "session_limit",
                "3 sessions of yours, and 3 are allowed: close one (%s was used longest ago)" % many[0].handle)
        refused(many[0].call(branch=True), "session_limit")
        equal(many[0].value("7"), "7")
        many[2].well(close=True)
        refused(Session(client).call("1", memory_mb=16), "session_limit", "416 MiB",
                "close one (%s was used longest ago)" % many[1].handle)
        many[0].well("1", reset=True, memory_mb=100)
        many[2] = Session(client)
        many[2].well("1", memory_mb=100)
        refused(many[0].call("1", memory_mb=101), "session_limit", "401 MiB")
        many[2].well(close=True)
        many[0].well("1", memory_mb=200)
        refused(Session(client).call("1", memory_mb=16), "session_limit", "416 MiB")
    with ctx.private("[repl]\nsessions_max = 0\n") as service, \
            ctx.client(path=service.socket) as client:
        refused(Session(client).call("1"), "session_limit", "0 are allowed")


@test(private=True)
def sessions_expire(ctx):
    with ctx.private("[repl]\nidle_seconds = 3\n") as service, \
            ctx.client(path=service.socket) as client:
        s = Session(client)
        s.well("x = 1")
        s.well("import time\ntime.sleep(3.5)")	# not idle
        b = s.branch()
        until_equal("the sessions", lambda: mine(client), [])
        refused(s.call("x"), "no_session")
        refused(b.call("x"), "no_session")
    with ctx.private("[repl]\nage_seconds = 2\n") as service, \
            ctx.client(path=service.socket) as client:
        s = Session(client)
        s.well("x = 1")
        o = until("the session ends", lambda: (o := s.call("x")).status != "ok" and o)
        refused(o, "no_session")


@test(private=True)
def policy_may_deny_it(ctx):
    with ctx.private("[policy]\nrun_repl = deny\n") as service, \
            ctx.client(path=service.socket) as client:
        o = Session(client).call("1")
        refused(o, "denied")
        equal((o.session, o.state), (None, None))
        equal(client.run("1").status, "ok")


# ---- what it shows and leaves ----

@test
def checkpoints_have_files(ctx):
    """A restore brings back all files as they were: changed, new, removed ones, folders and links."""
    with begun(ctx) as s:
        made = "import os\nopen('a', 'w').write('one')\nos.makedirs('d/e')\nopen('d/e/b', 'w').write('two')\n" \
               "os.symlink('a', 'l')\nos.mkfifo('f')"
        o = s.well(made, checkpoint="base")
        equal(o.structured["state_text"], None)
        tree = "[(n, os.path.islink(n), os.path.isdir(n)) for n in sorted(os.listdir())]"
        for _ in range(2):
            s.well("import shutil\nopen('a', 'w').write('other')\nshutil.rmtree('d')\nopen('new', 'w').write('x')\n"
                   "os.remove('l')\nx = 1")
            o = s.well("open('a').read(), open('d/e/b').read(), os.readlink('l'), " + tree, restore="base")
            equal(o.result["repr"], "('one', 'two', 'a', [('a', False, False), ('d', False, True), ('f', False, False), ('l', True, False)])")
            equal(o.structured["state_text"], None)
        # Another name has other files; the same name again replaces them.
        s.well("open('a', 'w').write('second')", checkpoint="more")
        s.well("open('a', 'w').write('third')", checkpoint="base")
        equal(s.well("open('a').read()", restore="more").result["repr"], "'second'")
        equal(s.well("open('a').read()", restore="base").result["repr"], "'third'")


@test
def files_of_checkpoints_are_bounded(ctx):
    """What is too large is not kept, and the answers say so. What lies in holes of files is not large."""
    with begun(ctx) as s:
        for big in ("open('big', 'wb').write(bytes(65 << 20))",
                    "[open('f%d' % i, 'w').close() for i in range(2001)]\n1"):
            o = s.well(big, checkpoint="base")
            assert "variables alone: the files" in o.structured["state_text"], o.structured
            assert "more than may be copied" in o.text, o.text
            o = s.well("import os\nlen(os.listdir()) > 0", restore="base")
            equal(o.result["repr"], "True")
            assert "were not restored, or not all of them, because the checkpoint has none" in (
                o.structured["state_text"]), o.structured
            s.well("for n in os.listdir(): os.remove(n)")
        equal(s.well("open('big', 'wb').truncate(65 << 20)", checkpoint="holes").structured["state_text"], None)
        equal(s.well("os.stat('big').st_size >> 20, os.stat('big').st_blocks", restore="holes").result["repr"],
              "(65, 0)")
        # What the session does to the copies harms nobody else.
        s.well("import shutil\nshutil.rmtree(os.path.expanduser('~/.checkpoints'))")
        o = s.well("os.listdir()", restore="holes")
        equal(o.result["repr"], "['big']")
        assert "were not restored" in o.structured["state_text"], o.structured


@test
def files_are_reported_once(ctx):
    """A file belongs to the cell that wrote it, however soon the next cell begins."""
    with begun(ctx) as s:
        for n in range(60):
            o = s.well("open('same', 'w').write('%d')" % (n % 10))
            equal([f["path"] for f in o.structured["files"]], ["same"], n)
            equal([f["path"] for f in s.well("").structured["files"]], [], n)


# Everything that a tree may have, and what a look at it finds.
A_TREE = r"""
import os, socket
os.makedirs("d/e/deep")
open("d/one", "w").write("first")
os.link("d/one", "d/e/two")
os.symlink("d/one", "link"), os.symlink("/nowhere", "d/dangling")
os.mkfifo("fifo", 0o640)
with open("holes", "wb") as f: f.seek(8 << 20); f.write(b"x")
os.chmod("d/one", 0o4751), os.chmod("d/e", 0o555)
open("closed", "w").write("y"), os.chmod("closed", 0), os.utime("closed", ns=(5, 7))
os.mkdir("sealed"), os.chmod("sealed", 0)
for name in "d/one", "d/e/deep", "d/e", "d": os.utime(name, ns=(10 ** 18 + 1, 10 ** 18 + 3))
os.utime("link", ns=(1, 2), follow_symlinks=False)
def look(at="."):
    found = []
    for name in sorted(os.listdir(at)):
        path = os.path.join(at, name)
        st = os.lstat(path)
        folder = path != "./sealed" and os.path.isdir(path) and not os.path.islink(path)
        found.append((path, oct(st.st_mode), 0 if folder else st.st_size, st.st_nlink, st.st_blocks > 100,
                      st.st_mtime_ns, os.path.islink(path) and os.readlink(path)))
        found += look(path) if folder else []
    return found
before = look()
"""


@test
def branches_have_files(ctx):
    """A branch begins with a copy of all files. From then on each one has its own, whichever cell runs."""
    with begun(ctx) as s:
        s.well(A_TREE)
        branch = s.branch("same = look() == before\nsame")
        equal(branch.value("same, [a for a in zip(look(), before) if a[0] != a[1]]"), "(True, [])")
        equal(branch.value("os.path.samefile('d/one', 'd/e/two')"), "True")
        branch.well("open('mine', 'w').write('branch')\nos.remove('link')\nopen('d/one', 'w').write('changed')")
        equal(s.value("look() == before, os.path.exists('mine'), open('d/one').read()"), "(True, False, 'first')")
        s.well("open('mine', 'w').write('parent')\nos.chmod('d/e', 0o755)\nos.rmdir('d/e/deep')")
        equal(branch.value("open('mine').read(), open('d/e/two').read(), os.path.isdir('d/e/deep')"),
              "('branch', 'changed', True)")
        second = branch.branch("open('mine').read(), open('d/one').read()")
        second.well("open('mine', 'w').write('second')")
        for one, words in (s, "parent"), (branch, "branch"), (second, "second"), (branch, "branch"), (s, "parent"):
            equal(one.value("open('mine').read()"), repr(words))
        # Only what a cell writes is told with its answer, not what was put in its place for it.
        o = branch.well("open('new', 'w').write('x')")
        equal([f["path"] for f in o.structured["files"]], ["new"])
        equal([f["path"] for f in s.well("1").structured["files"]], [])


@test
def branches_keep_their_files_apart(ctx):
    """Checkpoints, looks, inputs and threads of a branch have its files; a branch that ends leaves none."""
    free = "import os, time, threading\n(lambda st: st.f_ffree)(os.statvfs('/workspace'))"
    with begun(ctx) as s:
        before = s.value(free)
        s.well("open('a', 'w').write('parent')", checkpoint="base")
        kept = s.value(free)
        branch = Session(s.client)
        o = branch.finish(s.start("open('a').read()", branch=True))
        equal((o.result["repr"], o.structured["state_text"]), ("'parent'", "It has variables and files of its own."))
        branch.well("open('a', 'w').write('branch')", checkpoint="mine")
        branch.well("open('a', 'w').write('later')")
        equal(s.well("open('a').read()", restore="base").result["repr"], "'parent'")
        equal(branch.well("open('a').read()", restore="mine").result["repr"], "'branch'")
        # A branch of a checkpoint has the files of that checkpoint.
        third = s.branch("open('a', 'w').write('third')", restore="base")
        equal(third.value("open('a').read()"), "'third'")
        third.well("open('a').read()", files=[{"path": "given", "text": "g"}])
        equal(s.value("os.path.exists('given')"), "False")
        # Threads that a cell leaves go on in their own files, also after a look at another head.
        branch.well("stop = threading.Event()\ndef work():\n    n = 0\n    while not stop.wait(0.01):\n"
                    "        n += 1\n        open('beat', 'w').write(str(n))\n"
                    "t = threading.Thread(target=work)\nt.start()\nwhile not os.path.exists('beat'): time.sleep(0.01)")
        s.call(inspect=True)
        branch.well("seen = open('beat').read()\nwhile open('beat').read() in ('', seen): time.sleep(0.01)\n"
                    "stop.set()\nt.join()")
        equal(s.value("sorted(os.listdir())"), "['a']")
        # One crashes, one is closed, one is given up with what it has.
        o = branch.call("os.kill(os.getpid(), 9)")
        equal(branch.value("open('a').read()"), "'branch'")
        branch.well(close=True)
        third.well("os.makedirs('x/' * 300)\nfor n in range(500): open('x/%d' % n, 'w').close()\nos.chmod('x', 0)")
        third.call(close=True)
        equal(s.value("sorted(os.listdir()), open('a').read()"), "(['a'], 'parent')")
        equal(s.value(free), kept)
        equal(s.value("sorted(os.listdir(os.path.expanduser('~')))"), "['.checkpoints']")
        # The parent may end before its branch.
        last = s.branch("open('b', 'w').write('last')")
        s.well(close=True)
        equal(last.value("sorted(os.listdir())"), "['a', 'b']")
        equal(last.value("os.listdir(os.path.expanduser('~'))"), "['.checkpoints']")
        last.well("os.remove('a')\nos.remove('b')\nimport shutil\nshutil.rmtree(os.path.expanduser('~/.checkpoints'))")
        equal(last.value(free), before)
        last.well(close=True)


@test(any_build=True)
def open_files_follow_a_branch(ctx):
    """What a branch has open below /workspace is its own file, at the same place, and so is its directory."""
    with begun(ctx, files=[{"path": "d/in.txt", "text": "0123456789"}]) as s:
        s.well("import os\nr = open('d/in.txt', 'rb', buffering=0)\nr.read(4)\n"
               "w = open('log', 'a', buffering=1)\nw.write('both\\n')\nd = os.open('d', os.O_RDONLY)\n"
               "gone = open('gone', 'w+')\ngone.write('g')\ngone.flush()\nos.remove('gone')\nos.chdir('d')")
        see = "os.getcwd(), r.read(2), open('/workspace/log').read(), sorted(os.listdir(d))"
        b = s.branch("w.write('branch\\n')\nopen('new', 'w').close()\nos.pwrite(os.open('in.txt', os.O_RDWR), b'xy', 4)")
        equal(b.value("os.getcwd(), sorted(os.listdir('.')), gone.seek(0), gone.read()"),
              "('/workspace/d', ['in.txt', 'new'], 0, 'g')")
        s.well("w.write('parent\\n')")
        equal(s.value(see), "('/workspace/d', b'45', 'both\\nparent\\n', ['in.txt'])")
        equal(b.value(see), "('/workspace/d', b'xy', 'both\\nbranch\\n', ['in.txt', 'new'])")
        s.well("os.chdir('/')")


@test
def a_branch_without_files_is_told(ctx):
    """A tree that is too large, or that changes while it is copied, is shared, and the answer says so."""
    with begun(ctx, memory_mb=256) as s:
        s.well("import os\nopen('big', 'wb').write(bytes(150 << 20))\n1")
        b = Session(s.client)
        o = b.finish(s.start("open('a', 'w').write('its')", branch=True))
        for words in ("shares /workspace with the session that it is a copy of", "more than may be copied"):
            assert words in o.structured["state_text"] and words in o.text, o.text
        equal(s.value("open('a').read()"), "'its'")
        # It has a tree of its own as soon as one fits, and its parent's end leaves it the shared one.
        s.well("os.truncate('big', 0)")
        c = b.branch("open('a', 'w').write('own')")
        equal([one.value("open('a').read()") for one in (b, c, s)], ["'its'", "'own'", "'its'"])
        b.well("open('a', 'w').write('shared')")
        b.well(close=True)
        equal((s.value("open('a').read()"), c.value("open('a').read()")), ("'shared'", "'own'"))
        c.well(close=True)
        # A checkpoint that has no files gives a branch none.
        s.well("open('big', 'wb').write(bytes(65 << 20))", checkpoint="variables")
        o = c.finish(Session(s.client, s.handle).start("1", branch=True, restore="variables"))
        assert "because the checkpoint has none" in o.structured["state_text"], o.structured
        c.well(close=True)


CHANGES = r"""
import os
os.mkdir('many')
for n in range(200): open('many/%d' % n, 'w').write('x' * 100)
# What a copying process calls, as a script may replace it: the file grows while it is copied.
sendfile = os.sendfile
def late(*arguments):
    with open('many/100', 'a') as f: f.write('more')
    return sendfile(*arguments)
os.sendfile = late
"""


@test
def files_that_change_are_told(ctx):
    with begun(ctx) as s:
        s.well(CHANGES)
        b = Session(s.client)
        o = b.finish(s.start("os.sendfile = sendfile", branch=True))
        assert "they changed while they were copied" in o.structured["state_text"], o.structured
        o = s.well("1", checkpoint="c")
        assert "they changed while they were copied" in o.structured["state_text"], o.structured
        s.well("os.sendfile = sendfile")
        equal(s.well("len(os.listdir('many'))", checkpoint="c").structured["state_text"], None)
        equal(s.value("os.listdir(os.path.expanduser('~/.checkpoints'))[1:]"), "[]")


@test
def files_and_displays(ctx):
    with begun(ctx, files=[{"path": "in/put.txt", "text": "given"}]) as s:
        equal(s.value("open('in/put.txt').read()"), "'given'")
        o = s.well("open('made.txt', 'w').write('made')\ndisplay('shown')\n'result'")
        made = next(f for f in o.structured["files"] if f["path"] == "made.txt")
        equal(s.client.ask("resources/read", {"uri": made["uri"]})["contents"][0]["text"], "made")
        equal([d["mime_type"] for d in o.structured["displays"]], ["text/plain"])
        equal(o.result["repr"], "'result'")
        o = s.call("open('late.txt', 'w').write('late')\n" + DEAF, timeout_seconds=1,
                   cpu_seconds=20)
        equal((o.status, o.state), ("timeout", "rolled_back"))
        late = next(f for f in o.structured["files"] if f["path"] == "late.txt")
        equal(s.client.ask("resources/read", {"uri": late["uri"]})["contents"][0]["text"], "late")
        equal(o.structured["omitted"], None)
        if not has(s, "matplotlib"):
            raise Skip("matplotlib is not installed", missing=True)
        for i in range(2):
            o = s.well("import matplotlib.pyplot as plt\nplt.plot([1, %d])\nNone" % i,
                       ctx.seconds(120), timeout_seconds=60)
            equal([b["mimeType"] for b in o.raw["content"] if b["type"] == "image"],
                  ["image/png"], "figures of cell %d" % i)


@test
def output_comes_while_a_cell_runs(ctx):
    with begun(ctx) as s:
        s.cancel_when_said(ctx, "import time\nprint('first', flush=True)\nwhile True: time.sleep(.01)",
                           "first")
        equal(s.value("1"), "1")


# ---- over HTTP ----

@test(private=True)
def the_handle_is_mirrored(ctx):
    with http_private(ctx) as (_, place):
        with http_client.Session(place, MODERN, timeout=ctx.seconds(60)) as client:
            def ask(arguments, handle=None):
                message = client.message("tools/call",
                                         {"name": "run_repl", "arguments": arguments})
                return client.post(message, {"Mcp-Param-Session": handle} if handle else None)

            handle = ask({"code": "x = 1"}).message["result"]["structuredContent"]["session"]
            # Over HTTP a handle names its host, for a proxy in front of several (doc/haproxy).
            equal(handle.split("-", 2)[2], socket.gethostname().partition(".")[0])
            again = {"session": handle, "code": "x"}
            good = ask(again, handle).message["result"]
            equal(good["structuredContent"]["result"]["repr"], "1")
            for said in (None, NOBODY_S):
                response = ask(again, said)
                equal((response.status, response.code), (400, -32020), said)


@test(private=True)
def a_header_of_what_is_not_listed_may_be_missing(ctx):
    """Clients do not know of it; those that do are held to it."""
    for config, without in (("", 200), ("[mcp]\narguments = all\n", 400)):
        with http_private(ctx, config) as (_, place), \
                http_client.Session(place, MODERN, timeout=ctx.seconds(60)) as client:
            def ask(said):
                message = client.message("tools/call", {"name": "run_script", "arguments": {
                    "script": "1", "idempotency_key": "mine"}})
                return client.post(message, {"Mcp-Param-Key": said} if said else None).status

            equal([ask(None), ask("mine"), ask("other")], [without, 200, 400], config)


# ---- against plain Python ----

BEGIN = "import random\ntable, items, rng, heard = {}, [], random.Random(7), 0"
LOOK = "(sorted(table.items()), items, rng.getstate()[2], hash(rng.getstate()[1]))"
CELLS = (
    "table['k%(a)d'] = table.get('k%(a)d', 0) * 3 + %(b)d",
    "items.append(%(b)d)",
    "items.append(rng.randrange(%(b)d + 1))",
    "alias = items\nalias.insert(%(a)d, 'i%(b)d')\ndel alias",
    "del items[:-8]",
    "table = {v: k for k, v in table.items()} if %(a)d %% 2 else dict(table)\n"
    "table = {str(k): len(str(v)) for k, v in table.items()}",
    "items = sorted(items, key=str)",
    "for i in range(%(a)d):\n    items.append(i)\n    table['n'] = i",
    "rng.seed(%(b)d)",
    "rng.shuffle(items)",
    "items.append('before')\nraise ValueError(%(b)d)\nitems.append('never')",
    "table.pop('k%(a)d')",
)
DEATHS = ("import os\nitems.append('dead')\nrng.random()\nos._exit(0)",
          "import os, signal\ntable.clear()\nos.kill(os.getpid(), signal.SIGKILL)")


# What goes on between cells. A thread and a child live in one process: a copy of it does not have
# them. A task is in its memory, and goes on in each copy.
LIVE = """import asyncio, queue, subprocess, threading
thread = child = task = None
def start_thread():
    global asked, said, thread
    asked, said = queue.SimpleQueue(), queue.SimpleQueue()
    thread = threading.Thread(target=lambda: [said.put(2 * n) for n in iter(asked.get, None)],
                              daemon=True)
    thread.start()
def start_child():
    global child
    child = subprocess.Popen(["cat"], stdin=-1, stdout=-1, bufsize=0)
async def hear():
    global heard
    while True:
        heard += await inbox.get()
        inbox.task_done()
def start_task():
    global inbox, task
    if not task:
        inbox, task = asyncio.Queue(), asyncio.get_running_loop().create_task(hear())
"""
THREAD, CHILD = "thread 'Thread-", " that cells had started w"


class Plain:
    """What a session should be: names in a dictionary, copied as a whole."""

    def __init__(self, names=None):
        self.names, self.kept = names, {}
        if names is None:
            self.names = {}
            exec(BEGIN, self.names)

    def copy(self):
        names = dict(self.names)
        del names["__builtins__"]
        one = {k: v for k, v in names.items() if k != "random"}
        return {"__builtins__": __builtins__, "random": random, **copy.deepcopy(one)}

    def run(self, code):
        try:
            exec(code, self.names)
        except Exception as e:
            return type(e).__name__
        return None

    def look(self):
        return repr(eval(LOOK, self.names))


class Pair:
    """A session and what it should be, through the same steps."""

    def __init__(self, client, dice):
        self.dice, self.session, self.plain = dice, Session(client), Plain()
        self.alive = set()	# of THREAD, CHILD: those that this session's process has
        self.session.well(BEGIN + "\n" + LIVE, memory_mb=256)

    def code(self):
        return self.dice.choice(CELLS) % {"a": self.dice.randrange(5),
                                          "b": self.dice.randrange(1000)}

    def cell(self, **arguments):
        """Runs a cell, and asks in the same one for the state unless it fails."""
        code = self.code()
        want = self.plain.run(code)
        o = self.session.call(code + "\n" + LOOK, **arguments)
        equal(o.error and o.error["type"], want, code)
        equal(o.state, "kept", code)
        if want is None:
            equal(o.result["repr"], self.plain.look(), code)
        return want is None

    def die(self):
        o = self.session.call(self.dice.choice(DEATHS))
        equal(o.state, "rolled_back", repr(o))
        told = " ".join(o.structured["not_carried"])
        equal({what for what in (THREAD, CHILD) if what in told}, self.alive, told)
        self.alive = set()

    def check(self, **arguments):
        equal(self.session.well(LOOK, **arguments).result["repr"], self.plain.look())

    def keep(self):
        name = "c%d" % self.dice.randrange(2)
        if self.cell(checkpoint=name):
            self.plain.kept[name] = self.plain.copy()

    def restore(self):
        if not self.plain.kept:
            return self.check()
        name = self.dice.choice(sorted(self.plain.kept))
        self.plain.names = self.plain.kept[name]
        self.plain.kept[name] = self.plain.copy()
        self.alive = set()
        return self.check(restore=name)

    def branch(self):
        made = copy.copy(self)
        made.plain, made.alive = Plain(self.plain.copy()), set()
        made.session = self.session.branch(LOOK)
        made.check()
        return made

    def reset(self):
        self.plain, self.alive = Plain(), set()
        self.session.well(BEGIN + "\n" + LIVE, reset=True)

    def thread(self):
        if THREAD not in self.alive:
            equal(self.session.value("bool(thread and thread.is_alive())"), "False")
            self.session.well("start_thread()")
            self.alive.add(THREAD)
        n = self.dice.randrange(1000)
        equal(self.session.value("asked.put(%d)\nsaid.get()" % n), str(2 * n))

    def child(self):
        if CHILD not in self.alive:
            assert self.session.value("[child and child.stdout.read()]") in ("[None]", "[b'']")
            self.session.well("start_child()")
            self.alive.add(CHILD)
        line = b"%d\n" % self.dice.randrange(1000)
        equal(self.session.value("_ = child.stdin.write(%r)\nchild.stdout.read(%d)"
                                 % (line, len(line))), repr(line))

    def task(self):
        """It hears of a number while a cell awaits, or when that has ended."""
        n = self.dice.randrange(1000)
        self.plain.names["heard"] += n
        put = "asyncio.get_running_loop()\nstart_task()\ninbox.put_nowait(%d)" % n
        if self.dice.randrange(2):
            self.session.well(put)
        else:
            equal(self.session.value(put + "\nawait inbox.join()\nheard"),
                  str(self.plain.names["heard"]))


@test(single=True, any_build=True)
def sessions_do_what_plain_python_does(ctx):
    seed = random.randrange(1 << 32)
    dice = random.Random(seed)
    steps = ctx.count(2000)
    step = None
    print("        seed %d" % seed, flush=True)
    with ctx.client() as client:
        pairs = [Pair(client, dice)]
        try:
            for i in range(steps):
                pair = dice.choice(pairs)
                step = dice.choices(("cell", "die", "check", "keep", "restore", "branch", "close",
                                     "reset", "thread", "child", "task"),
                                    (50, 5, 5, 10, 8, 5, 4, 1, 6, 6, 8))[0]
                if step == "branch":
                    if len(pairs) < 4:
                        pairs.append(pair.branch())
                elif step == "close":
                    if len(pairs) > 1:
                        pairs.remove(pair)
                        pair.session.well(close=True)
                else:
                    getattr(pair, step)()
            for pair in pairs:
                pair.check()
                pair.session.well(close=True)
        except AssertionError as e:
            raise AssertionError("seed %d, step %d, %s: %s" % (seed, i, step, e)) from e
    return "%d steps, seed %d" % (steps, seed)


# What each cell starts has ended with it, or is closed by the next.
ORDINARY = (
    "x += 1",
    "threading.Thread(target=int).start()",
    "subprocess.run(['true'], check=True)",
    "await asyncio.sleep(0)",
    "1/0",
    "f = open('f', 'w')\nf.write('x')\nf.close()",
    "a, b = socket.socketpair()\na.send(b'x')\nb.recv(1)\na.close()\nb.close()",
    "pool = concurrent.futures.ThreadPoolExecutor(2)\nlist(pool.map(abs, range(4)))\npool.shutdown()",
    "text = [str(i) for i in range(10000)]",
    "print('said', x)",
)
HOLDS = ("gc.collect()\n"
         "(len(os.listdir('/proc/self/fd')), sum(n.isdigit() for n in os.listdir('/proc')),"
         " threading.active_count(), int(open('/proc/self/statm').read().split()[1]) * 4096)")


@test(single=True)
def a_session_does_not_grow_by_its_cells(ctx):
    cells = ctx.count(10000) if ctx.options.count or ctx.options.effort >= 1 else 300
    with begun(ctx, "import asyncio, concurrent.futures, gc, os, socket, subprocess, threading\n"
               "x = 0") as s:
        def run(n):
            for i in range(n):
                code = ORDINARY[i % len(ORDINARY)]
                equal(s.call(code).status, "error" if code == "1/0" else "ok", code)
            return s.well(HOLDS).result["json"], ctx.service.fds()
        run(60)
        (before, fds), (after, more) = run(60), run(cells)
        equal(s.value("x"), str(12 + -(-cells // len(ORDINARY))))
        # AddressSanitizer keeps 32 MiB of what was freed.
        for now, was, slack in zip(after, before, (0, 2, 0, 48 << 20)):
            assert now <= was + slack, (before, after)
        assert fds is None or more <= fds + 4, (fds, more)
    return "%d cells: %s, then %s" % (cells, before, after)


# ---- mcp-python repl ----

def piped(ctx, text, *options):
    done = subprocess.run([client_program(ctx), "repl", "--socket", ctx.socket, *options],
                          input=text, capture_output=True, text=True, timeout=ctx.seconds(60))
    return done.returncode, done.stdout, done.stderr


@test(any_build=True)
def a_pipe_is_a_terminal_too(ctx):
    equal(piped(ctx, "x = 6\nx * 7\n"), (0, "42\n", ""))
    equal(piped(ctx, ""), (0, "", ""))
    code, out, err = piped(ctx, "def f(n):\n    if n:\n\n        return n\n    else:\n"
                           "        return 'none'\nf(0)\nf(\n3)\n'''a\nb'''\nprint('no end', end='')")
    equal((code, out, err), (0, "'none'\n3\n'a\\nb'\nno end", ""))
    code, out, err = piped(ctx, "1/0\n'on'\nimport os\nx = 1\nos._exit(4)\nx\n")
    equal((code, out), (1, "'on'\n1\n"))
    assert "ZeroDivisionError" in err and "The cell was undone" in err, err
    equal(piped(ctx, "x = 1\nimport sys\nsys.exit(9)\nx\n")[:2], (9, ""))
    code, out, err = piped(ctx, "x = 1\n%checkpoint a\nx = 2\n%restore a\nx\n%none\n")
    equal((code, out), (1, "1\n"), err)
    assert "%none is not known" in err, err


@test(any_build=True)
def what_goes_on_is_heard(ctx):
    code, out, err = piped(ctx, "import sys, threading\ngo, said = threading.Event(), threading.Event()\n"
                           "threading.Thread(target=lambda: (go.wait(), print('later'),"
                           " print('too', file=sys.stderr), said.set())).start()\n"
                           "go.set()\n_ = said.wait(60)\n'x'\n'y'\n")
    equal((code, sorted(out.split()), err), (0, ["'x'", "'y'", "later"], "too\n"))


@test(any_build=True)
def a_session_goes_on(ctx):
    code, out, err = piped(ctx, "x = 11\n", "--keep")
    equal((code, out), (0, ""))
    handle = HANDLE.search(err)[0]
    equal(piped(ctx, "x\n", "--session", handle), (0, "11\n", ""))
    with ctx.client() as client:
        s = Session(client, handle)
        equal(s.value("x"), "11", "still there")
        s.well(close=True)
    code, out, err = piped(ctx, "x\n", "--session", handle)
    assert code and "no such session" in err, (code, err)


@test(any_build=True)
def a_terminal(ctx):
    with Terminal(ctx, "repl", "--socket", ctx.socket) as t:
        t.expect(r"session r-[^\n]*\n.*>>> ")
        t.type("x = 5\n")
        t.expect(r"x = 5.*>>> ")
        t.type("for i in range(2):\n")
        t.expect(r"\.\.\. ")
        t.type("    print('line', i)\n\n")
        t.expect(r"line 0\nline 1\n.*>>> ")
        t.type("'gr\u00fc\u00df'\n")
        t.expect("'gr\u00fc\u00df'\n.*>>> ")
        t.type("print('begun', flush=True); y = 1\nimport time\ntime.sleep(600)\n")
        t.expect(r"begun\n.*>>> .*>>> .*time.sleep\(600\)\n")
        t.type("\x03")
        t.expect(r"KeyboardInterrupt\n.*>>> ")
        t.type("x + y\n")
        t.expect(r"\n6\n.*>>> ")
        t.type("half a line\x03")
        t.expect(r"KeyboardInterrupt\n.*>>> ")
        t.type("import os; os._exit(1)\n")
        t.expect(r"undone.*>>> ")
        t.type("x\n")
        t.expect(r"\n5\n.*>>> ")
        t.type("\x04")
        equal(t.end(), 0)


@test(any_build=True)
def a_terminal_goes_on_in_a_session(ctx):
    with begun(ctx, "x = 77") as s:
        with Terminal(ctx, "repl", "--socket", ctx.socket, "--session", s.handle) as t:
            t.expect(re.escape(s.handle))
            t.expect(">>> ")
            t.type("x\n")
            t.expect(r"\n77\n.*>>> ")
            t.type("while True: pass\n\n")
            t.expect(r"\.\.\. .*\n")
            t.type("\x03")
            t.expect(r"KeyboardInterrupt\n.*>>> ")
            t.type("import sys; sys.exit(3)\n")
            equal(t.end(), 3)
        equal(s.value("x"), "77")


@test(any_build=True)
def no_terminal_without_a_service(ctx):
    done = subprocess.run([client_program(ctx), "repl", "--socket", "/nonexistent/x"], text=True,
                          input="1\n", capture_output=True, timeout=ctx.seconds(60))
    equal((done.returncode, done.stdout), (69, ""))


if __name__ == "__main__":
    main(__doc__, "[repl]\nsessions_max = 64\nmemory_total_mb = 65536\n")
