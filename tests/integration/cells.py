#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What ordinary programs do in a session, over several cells: the second one is the assertion.

A suite of tests/integration/run. What sessions are and promise is repl.py's."""

import base64
import contextlib
import os
import subprocess
import tempfile
import time

from harness import Skip, equal, main, test, tests
from interpreter import under_test
from repl import Session, begun
from supervisor import Supervisor
from waits import at_once, until, until_equal

tests.clear()	# those of repl.py

CONTROL = 63	# the descriptor of a cell's socket (JAIL_CONTROL)

# A long wait is what these tests would fail by: it ends as a time-out of the cell.
SOON = {"timeout_seconds": 60, "cpu_seconds": 60}


def same(session, *pairs):
    """Cells and the values that they have to have, in this order."""
    for code, want in pairs:
        o = session.call(code, 120, **SOON)
        assert o.status == "ok" and o.result, "%s: %r" % (code, o)
        equal(o.result["repr"], want, code)


# ---- signals ----

@test
def children_can_be_terminated(ctx):
    with begun(ctx, "import os, signal, subprocess, sys, time") as s:
        same(s,
             ("signal.pthread_sigmask(signal.SIG_BLOCK, [])", "set()"),
             ("p = subprocess.Popen(['sleep', '600'])\np.terminate()\np.wait()", "-15"),
             ("p = subprocess.Popen([sys.executable, '-m', 'http.server', '8000'])\n"
              "p.terminate()\np.wait()", "-15"),
             ("import asyncio\np = await asyncio.create_subprocess_exec('sleep', '600')\n"
              "p.terminate()\nawait p.wait()", "-15"),
             # Its workers are busy when it ends.
             ("from multiprocessing import Pool\n"
              "pool = Pool(2)\nwait = pool.map_async(time.sleep, [600, 600], 1)\n"
              "pool.terminate()\npool.join()\n'ended'", "'ended'"),
             ("subprocess.run('sleep 600 & kill $!; wait $!; echo $?', shell=True,"
              " capture_output=True).stdout", "b'143\\n'"))


@test
def a_cell_gets_its_signals(ctx):
    """A mask and handlers are as a cell has left them, and their defaults end it alone."""
    with begun(ctx, "import os, signal\nseen = []") as s:
        o = s.call("seen.append(1)\nos.kill(os.getpid(), signal.SIGTERM)\nsignal.pause()", **SOON)
        equal((o.status, o.error["message"], o.state),
              ("killed", "killed by SIGTERM", "rolled_back"), repr(o))
        s.well("x = signal.signal(signal.SIGCHLD, lambda *a: seen.append('child'))\n"
               "x = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])")
        same(s, ("x = os.spawnlp(os.P_WAIT, 'true', 'true')\nseen", "['child']"),
             ("signal.pthread_sigmask(signal.SIG_BLOCK, [])", "{<Signals.SIGUSR1: 10>}"),
             ("os.kill(os.getpid(), signal.SIGUSR1)\nsignal.sigpending()",
              "{<Signals.SIGUSR1: 10>}"))


@test
def signals_meant_for_a_cell_do_not_end_the_state(ctx):
    """A group's goes to the waiting copy too."""
    with begun(ctx, "import os, signal\nx = 1") as s:
        for send in ("os.killpg(0, signal.SIGTERM)", "os.killpg(0, signal.SIGHUP)",
                     "os.kill(-1, signal.SIGALRM)\nos.abort()"):
            o = s.call("x = 2\n%s\nsignal.pause()" % send, **SOON)
            equal(o.state, "rolled_back", repr(o))
            equal(s.value("x"), "1")


# ---- threads ----

# A thread goes on between cells and in later ones.
THREADS = {
    "print": "print('tick')",
    "a line's beginning": "print('tick', end='')",
    "buffer": "sys.stdout.buffer.write(b'tick\\n')\n        sys.stdout.buffer.flush()",
    "standard error": "sys.stderr.write('tick\\n')",
    "logging": "logging.info('tick')",
    "both": "print('tick')\n        print('tock', file=sys.stderr)",
    "in a wrapper": "mine.write('tick\\n')\n        mine.flush()",
}


@test
def a_thread_that_writes_leaves_streams_to_the_next_cell(ctx):
    def goes_on(what):
        with begun(ctx, "import codecs, logging, sys, threading, time\n"
                   "logging.basicConfig(level=logging.INFO)\n"
                   "mine = codecs.getwriter('utf-8')(sys.stdout.buffer)\n"
                   "kept = sys.stdout, sys.stderr, sys.stdout.buffer") as s:
            s.well("def run():\n    while True:\n        %s\n"
                   "threading.Thread(target=run, daemon=True).start()\n"
                   "time.sleep(.05)" % THREADS[what])
            for i in range(4):
                o = s.call("print('said', %d)\nprint('told', file=sys.stderr)\ntime.sleep(.02)\n"
                           "kept == (sys.stdout, sys.stderr, sys.stdout.buffer)" % i, 120, **SOON)
                equal((o.status, o.stdout, o.stderr, o.result and o.result["repr"]),
                      ("ok", "said %d\n" % i, "told\n", "True"), what)
                told = [o.structured.get("background_" + name) for name in ("stdout", "stderr")]
                assert (any(told) and all(set(t or "") <= set("INFO:root:tick\ntock") for t in told)
                        if i < 2 else told == [None, None]), (what, i, told)
                if i == 1:		# an earlier state, and without the thread
                    o = s.call("os = __import__('os')\nos.abort()", 120, **SOON)
                    equal(o.state, "rolled_back")
            o = s.call("logging.info('logged')\nmine.write('wrapped\\n')\nmine.flush()", **SOON)
            equal((o.stdout, o.stderr), ("wrapped\n", "INFO:root:logged\n"), what)
    for what in THREADS:
        goes_on(what)


@test
def streams_that_were_given_up_stay_so(ctx):
    """A copy puts the locks of streams in order, and changes nothing else of them."""
    thread = ("import threading\n"
              "threading.Thread(target=threading.Event().wait, daemon=True).start()\n")
    with begun(ctx, thread + "import io, sys\nsys.stdout.reconfigure(errors='replace', encoding="
               "'ascii', line_buffering=False)") as s:
        o = s.well("print('\\xe4')\nsys.stdout.encoding, sys.stdout.errors, sys.stdout.line_buffering")
        equal((o.stdout, o.result["repr"]), ("?\n", "('ascii', 'replace', False)"))
        s.well("old = sys.stdout\nsys.stdout = io.TextIOWrapper(old.detach(), 'utf-8')\n" + thread)
        equal(s.well("print('\\xe4')").stdout, "\xe4\n")
        same(s, ("try: old.write('x')\nexcept ValueError as e: said = str(e)\nsaid",
                 "'underlying buffer has been detached'"))
        s.well("sys.stdout.close()\n" + thread)
        equal(s.value("sys.stdout.closed"), "False")


# ---- between cells ----

TICKS = """import os, subprocess, sys, threading, time
n = 0
def tick():
    global n
    while True:
        n += 1
        time.sleep(.001)
threading.Thread(target=tick, daemon=True).start()
p = subprocess.Popen([sys.executable, "-c", "import time\\nn = 0\\nwhile True:\\n    n += 1\\n"
                      "    open('ticks', 'w').write(str(n))\\n    time.sleep(.001)"])
def there():
    try: return int(open('ticks').read() or 0)
    except FileNotFoundError: return 0
while n < 2 or there() < 2: time.sleep(.001)
"""


@contextlib.contextmanager
def begun_with(ctx, config, code=""):
    """A session of a private service."""
    with ctx.private("[repl]\n" + config) as service, ctx.client(path=service.socket) as client:
        s = Session(client)
        s.well(code, **SOON)
        yield s


def looked_at(s, name):
    return [v["repr"] for v in s.call(inspect=True).result["json"] if v["name"] == name]


def stands(s, name):
    """It counts a thousand times in a second when it goes on. A look lets it go on for a moment."""
    before = int(looked_at(s, name)[0])
    time.sleep(.5)		# the time in which it counts, or does not
    return int(looked_at(s, name)[0]) - before < 40


@test
def a_session_goes_on_between_cells(ctx):
    """A timer fires, a server answers another process of the session, a child is heard."""
    with begun(ctx, "import http.server, subprocess, sys, threading, urllib.request") as s:
        s.well("class Hello(http.server.BaseHTTPRequestHandler):\n    def do_GET(self):\n"
               "        self.send_response(200)\n        self.end_headers()\n"
               "        self.wfile.write(b'hello')\n    def log_message(*a): pass\n"
               "server = http.server.ThreadingHTTPServer(('127.0.0.1', 8123), Hello)\n"
               "threading.Thread(target=server.serve_forever, daemon=True).start()")
        # The answer is written to a file, whose text the next cell finds without having waited.
        o = s.well("ask = 'import time, urllib.request\\ntime.sleep(.1)\\n'"
               "'said = urllib.request.urlopen(\"http://127.0.0.1:8123/\").read().decode()\\n'"
               "'print(said, flush=True)\\nopen(\"said\", \"w\").write(said)'\n"
               "p = subprocess.Popen([sys.executable, '-c', ask])\n"
               "threading.Timer(.1, print, ['fired']).start()", **SOON)
        seen = [o]

        def there():
            seen.append(s.well("import os\nos.path.exists('said') and open('said').read()", **SOON))
            return seen[-1].result["repr"] == "'hello'" and "fired" in heard()

        def heard():
            return "".join(o.stdout + (o.structured.get("background_stdout") or "") for o in seen)
        time.sleep(1)		# no cell runs: nothing that is asserted depends on how long
        try:
            until("a server of the session", there, wait=at_once)
        finally:
            assert "hello" in heard() and "fired" in heard(), seen[-3:]
        equal(s.value("p.wait()"), "0")


@test
def tasks_go_on(ctx):
    """All cells have one event loop. It runs while one of them awaits, and between them."""
    with begun(ctx, "import asyncio, os") as s:
        s.well("n = 0\nasync def count():\n    global n\n    while True:\n        n += 1\n"
               "        await asyncio.sleep(.001)\n"
               "async def answer(reader, writer):\n    writer.write(await reader.readline())\n"
               "    writer.close()\n"
               "async def ask(word):\n"
               "    reader, writer = await asyncio.open_connection('127.0.0.1', 8200)\n"
               "    writer.write(word + b'\\n')\n    return await reader.read()")
        s.well("t = asyncio.create_task(count())\n"
               "server = await asyncio.start_server(answer, '127.0.0.1', 8200)", **SOON)
        same(s, ("before = n\nwhile n < before + 9: await asyncio.sleep(.001)\nt.done()", "False"),
             ("await ask(b'one')", "b'one\\n'"))
        # A cell that does not await lets no task run.
        s.well("before = n", **SOON)
        until("the count goes on", lambda: s.value("n - before") != "0")
        # A cell that is undone or cancelled takes no task with it.
        o = s.call("await asyncio.sleep(1000)", timeout_seconds=1)
        equal((o.status, o.state), ("timeout", "kept"), repr(o))
        assert "mcp-python" not in o.error["traceback"], o.error
        b = s.branch("before = n\nwhile n < before + 9: await asyncio.sleep(.001)")
        b.well("server.close()", close=True)
        equal(s.call("os._exit(1)", **SOON).state, "rolled_back")
        s.cancel_when_said(ctx, "print('go', flush=True)\nmark = 1\nawait asyncio.sleep(1000)")
        same(s, ("mark", "1"),	# only the cell's own task was cancelled
             ("await ask(b'two')", "b'two\\n'"),
             ("before = n\nwhile n < before + 9: await asyncio.sleep(.001)\nt.done()", "False"),
             # What a task starts between cells can be ended as what a cell starts.
             ("async def start():\n    global p\n    await asyncio.sleep(.05)\n"
              "    p = await asyncio.create_subprocess_exec('sleep', '600')\n"
              "p, t2 = None, asyncio.create_task(start())\n'begun'", "'begun'"))
        until_equal("p is None", lambda: s.value("p is None"), "False")
        same(s, ("p.terminate()\nawait p.wait()", "-15"),
             # A task that ends the loop, or more than itself, ends neither the session nor others.
             ("async def stop():\n    await asyncio.sleep(.05)\n"
              "    asyncio.get_running_loop().stop()\n    raise SystemExit\n"
              "t2 = asyncio.create_task(stop())\n'begun'", "'begun'"))
        until_equal("t2.done()", lambda: s.value("t2.done()"), "True")
        s.well("before = n", **SOON)
        until("the count goes on", lambda: s.value("n - before") != "0")
        same(s, ("asyncio.run(asyncio.sleep(0, 3))", "3"),
             ("await asyncio.sleep(0, 4)", "4"),
             ("asyncio.get_running_loop().close is None", "False"))


@test
def what_goes_on_stops_after_a_while(ctx):
    """And goes on with the next cell; a look at the variables stops and changes nothing."""
    with begun_with(ctx, "background_seconds = 1\n", TICKS) as s:
        until("the count stands", lambda: stands(s, "n"))
        o = s.well("before = n, there()\nwhile n == before[0] or there() in (0, before[1]): time.sleep(.001)",
                   **SOON)
        equal(o.structured["not_carried"], [])
        o = s.call("os._exit(1)", **SOON)
        equal(o.state, "rolled_back")
        equal(s.value("p.poll(), threading.active_count()"), "(-9, 1)")


@test
def a_session_may_have_to_stand_still_between_cells(ctx):
    for how in "freeze", "end":
        with begun_with(ctx, "background = %s\n" % how, TICKS) as s:
            assert stands(s, "n"), how
            equal(s.value("[p.poll()]"), "[None]" if how == "freeze" else "[-9]", how)
            s.well("before = n\nwhile n == before: time.sleep(.001)", **SOON)


@test
def what_runs_between_cells_is_charged_and_bounded(ctx):
    busy = "import threading\ndef run():\n    while True: pass\n" \
           "threading.Thread(target=run, daemon=True).start()"
    with ctx.private("[quota]\ncpu_seconds_per_hour = 3\n") as service, \
         ctx.client(path=service.socket) as client:
        s = Session(client)
        s.well(busy, **SOON)
        calls = []
        def refused():
            time.sleep(.5)	# what runs between cells uses this time
            calls.append(s.call("1", **SOON))
            return calls[-1].status == "quota_exceeded"
        until("a refusal", refused)
        assert "cpu_seconds_per_hour" in calls[-1].text, calls[-1].text
        # The cells alone have not used as much.
        used = sum(o.structured["cpu_ms"] for o in calls)
        assert used < 2000, used
    # Its own limit stops it; the state is not lost.
    with begun_with(ctx, "background_seconds = 600\n") as s:
        s.call("n = 0\ndef run():\n    global n\n    while True: n += sum(range(20000)) > 0\n"
               "import threading\nthreading.Thread(target=run, daemon=True).start()",
               cpu_seconds=1, timeout_seconds=60)
        until("the count stands", lambda: stands(s, "n"))
        equal(s.value("n > 0"), "True")


@test
def one_that_holds_the_interpreter_between_cells_holds_up_no_state(ctx):
    """The next cell times out, and the state is there when the thread has let go. A cell that began just
    before its time was over is interrupted, and what it did not change is kept."""
    with begun(ctx, "import threading\nx = 1") as s:
        s.well("go = threading.Event()\n"
               "def hold():\n    go.wait()\n    sum(range(300_000_000))\n"
               "t = threading.Thread(target=hold)\nt.start()\n"
               "threading.Timer(.05, go.set).start()", **SOON)
        time.sleep(.3)		# no cell runs meanwhile
        calls = []
        def runs():
            calls.append(s.call("x", timeout_seconds=1, cpu_seconds=60))
            return calls[-1].status == "ok"
        until("the cell runs", runs)
        for o in calls[:-1]:
            assert (o.status, o.state) in (("timeout", "rolled_back"), ("timeout", "kept")), repr(o)
        equal(s.value("x, t.join()"), "(1, None)")
        equal(s.well("1").structured["not_carried"], [])


@test
def what_holds_the_interpreter_for_ever_is_named(ctx):
    with begun(ctx, "import ctypes, threading\nx = 1") as s:
        # A call of ctypes that keeps the lock, to the end of the session.
        s.well("go = threading.Event()\n"
               "def hold():\n    go.wait()\n    ctypes.PyDLL(None).pause()\n"
               "threading.Thread(target=hold, daemon=True).start()\n"
               "threading.Timer(.05, go.set).start()", **SOON)
        def refused():
            o = s.call("x", timeout_seconds=1, cpu_seconds=60)
            # A slow machine interrupts a cell that the thread does not hold up yet.
            return o if o.status != "ok" and not (o.status == "timeout" and o.state == "kept") else None
        o = until("a refusal", refused)
        # When it came during a cell, that one is undone, and the thread is not in the state.
        if not any("did not begin" in note for note in o.structured["not_carried"]):
            equal((s.value("x"), o.state), ("1", "rolled_back"))
            return
        equal((o.status, o.state), ("timeout", "rolled_back"), repr(o))
        assert "interpreter's lock (GIL)" in o.text, o.text


@test
def what_holds_the_interpreter_before_there_is_a_copy_ends_the_state(ctx):
    """The third cell in a row that does not begin says so, and other sessions go on."""
    # The thread waits for the end of the cell, when its socket is closed, and takes the lock as soon
    # as the main thread gives it up, to wait for the order to make a copy. PyDLL keeps the lock.
    hold = "libc = ctypes.PyDLL(None)\n" \
           "def hold():\n    while libc.fcntl(%d, 1) >= 0: pass\n    libc.pause()\n" \
           "threading.Thread(target=hold, daemon=True).start()" % CONTROL
    def lost():
        with begun(ctx, "import ctypes, threading\nx = 1") as s:
            calls = [s.call(hold, 120, **SOON)]
            while len(calls) < 4 and calls[0].state == "kept":
                calls.append(s.call("x", timeout_seconds=1, cpu_seconds=60))
            if calls[-1].state == "lost":
                equal(s.call("x").status, "no_session")
                return calls
            # On a busy machine the main thread can be faster: then there is a copy to go back to.
            equal(until("a cell", lambda: (o := s.call("x", **SOON)).status == "ok" and o).result["repr"], "1")
            return None
    with begun(ctx, "y = 2") as other:
        calls = until("a state that is lost", lost)
        equal([(o.status, o.state) for o in calls[1:]],
              [("timeout", "rolled_back")] * 2 + [("timeout", "lost")], repr(calls))
        for o in calls[1:]:
            assert "is lost if there is no copy" in str(o.structured["not_carried"]), repr(o)
        equal(other.value("y"), "2")


@test
def a_child_that_has_ended_keeps_its_status(ctx):
    """Also when its parent is undone before it has waited, and between cells."""
    with begun(ctx, "import multiprocessing, os, subprocess, sys, threading, time\n"
               "def start(*codes):\n    return [subprocess.Popen(['sh', '-c', c]) for c in codes]\n"
               "def stopped(p):\n"
               "    return open('/proc/%d/stat' % p.pid).read().rpartition(')')[2][1] == 'Z'") as s:
        for end in "os._exit(3)", "os.kill(os.getpid(), 9)", "os.abort()":
            # The first two end before the copy of the next cell is made, the third while it runs.
            s.well("children = start('exit 0', 'exit 7', 'read x; exit 8', 'kill -15 $$', 'sleep 600')\n"
                   "while not all(stopped(children[i]) for i in (0, 1, 3)): time.sleep(.01)"
                   .replace("'read x; exit 8'", "'until [ -e go ]; do sleep .01; done; exit 8'"), **SOON)
            o = s.call("open('go', 'w').close()\n"
                       "while not stopped(children[2]): time.sleep(.01)\n" + end, 120, **SOON)
            equal(o.state, "rolled_back", repr(o))
            equal(s.value("[p.poll() for p in children]"), "[0, 7, 8, -15, -9]")
            equal(s.value("os.remove('go')\n[p.wait() for p in children]"), "[0, 7, 8, -15, -9]")
        # A branch and a checkpoint have no children.
        s.well("children = start('exit 0', 'sleep 600')", checkpoint="here")
        b = s.branch("[p.poll() for p in children]")
        equal(b.value("[p.poll() for p in children]"), "[-9, -9]")
        b.well(close=True)
        equal(s.value("children[0].wait(), [children[1].poll()]"), "(0, [None])")
        s.well(restore="here")
        equal(s.value("[p.poll() for p in children]"), "[-9, -9]")


@test
def what_ends_between_cells_is_undone(ctx):
    """The state is that of the end of the last cell, and the next answer says what has ended."""
    with begun(ctx, "import os, subprocess, threading") as s:
        def falls(how):
            # On a slow machine it comes during a cell, which is undone then.
            s.call("x = 1\ndef fall():\n    global x\n    x = 2\n    %s\n"
                   "p = subprocess.Popen(['sleep', '1000'])\n"
                   "threading.Timer(.3, fall).start()" % how, **SOON)
            time.sleep(1)	# it falls while no cell runs
            o = s.call("[x, p.poll(), threading.active_count()]", **SOON)
            return o if o.state == "kept" and o.structured["not_carried"] else None
        for how, said in ("os._exit(3)", "exit status 3"), ("os.kill(os.getpid(), 11)", "signal 11"):
            o = until("a cell after the fall", lambda: falls(how))
            equal((o.status, o.result["json"]), ("ok", [1, -9, 1]), repr(o))
            assert said in o.structured["not_carried"][0], o.structured
            equal(s.well("x").structured["not_carried"], [])	# told once


CONNECTED = r"""
import asyncio, http.server, os, socket, subprocess, sys, threading
class Handler(http.server.SimpleHTTPRequestHandler):
    log_message = lambda *_: None
def serve():
    global server, thread
    server = http.server.HTTPServer(("127.0.0.1", 8123), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
def leave():
    server.shutdown()
    server.server_close()
    thread.join()
SORT = "import sys; print(sorted(sys.stdin.read().split()))"
def sort():
    return subprocess.Popen([sys.executable, "-c", SORT], stdin=-1, stdout=-1, text=True)
serve()
first, second = sort(), sort()
third = await asyncio.create_subprocess_exec(sys.executable, "-c", SORT, stdin=-1, stdout=-1)
flood = subprocess.Popen(["sh", "-c", "while echo y; do :; done"], stdout=-1, stderr=-3)
a, b = socket.create_server(("127.0.0.1", 0)), socket.socket()
b.connect(a.getsockname())
c = a.accept()[0]
"""


@test
def what_a_cell_closes_is_closed(ctx):
    """The copy that waits, the spare, checkpoints and branches keep no connection open."""
    with begun(ctx, CONNECTED) as s:
        branch = s.branch("1")
        s.well("1", checkpoint="connected")
        equal(s.value("first.communicate('b a')[0], first.returncode"),
              repr(("['a', 'b']\n", 0)))
        for _ in range(3):
            s.well("leave()\nserve()", **SOON)
        equal(s.value("await asyncio.wait_for(third.communicate(b'd c'), 20)"),
              repr((b"['c', 'd']\n", None)))
        equal(s.value("flood.stdout.close()\nflood.wait() != 0"), "True")
        equal(s.value("b.close()\nc.recv(1)"), "b''")
        s.well("leave()", **SOON)
        equal(branch.value("second.stdin.fileno() > 0"), "True")
        equal(s.value("second.communicate('f e')[0]"), repr("['e', 'f']\n"))


@test
def a_cell_reads_its_own_pipes_to_their_end(ctx):
    """The copy that waits has pipes of its own, in which the same waits as in the state's."""
    with begun(ctx, "import os, subprocess, threading\nr, w = os.pipe()\nleft = os.write(w, b'one ')") as s:
        o = s.call("os.read(r, 100); os.write(w, b'two')\nos._exit(3)")
        equal(o.state, "rolled_back", repr(o))
        equal(s.value("os.read(r, 100), os.write(w, b'three ')"), "(b'one ', 6)")
        equal(s.value("os.write(w, b'four'); os.close(w)\nos.fdopen(r, 'rb').read()"), "b'three four'")
        # A copy may be made while a thread starts a program: it has both ends of that pipe, too.
        s.well("go_on, ended = True, 0\ndef run():\n    global ended\n    while go_on:\n"
               "        ended += subprocess.run(['true']).returncode == 0\n"
               "thread = threading.Thread(target=run)\nthread.start()")
        for _ in range(30):
            s.well("before = ended\nwhile ended == before: pass", timeout_seconds=60)
        s.well("go_on = False\nthread.join()")


@test
def a_session_without_a_free_descriptor_goes_on(ctx):
    """What cells have opened they can close, and a cell that fails is undone."""
    with begun(ctx, "import os, resource\nheld = []") as s:
        n = int(s.value("try:\n    while True: held.append(os.open('/dev/null', os.O_RDONLY))\n"
                        "except OSError: pass\nlen(held)"))
        assert n > 900, n
        equal(s.call("x = 1\nos._exit(3)").state, "rolled_back")
        for _ in range(3):
            equal(s.value("len(held), 'x' in globals()"), "(%d, False)" % n)
        s.well("for fd in held: os.close(fd)\nheld.clear()")
        s.well("soft = resource.setrlimit(resource.RLIMIT_NOFILE, (200, 1024))")
        equal(s.value("resource.getrlimit(resource.RLIMIT_NOFILE)"), "(200, 1024)")
        s.well("os.close(os.open('/dev/null', os.O_RDONLY))")


@test
def a_session_cannot_lift_its_bound_of_processes(ctx):
    """A cell's own limit is a soft one. The hard one has room for what two cells may have at most."""
    if not ctx.fallback:
        raise Skip("processes are counted here")
    with begun(ctx, "import resource") as s:
        for _ in range(2):
            soft, hard = eval(s.value("resource.getrlimit(resource.RLIMIT_NPROC)"))
            assert soft < 128 and hard < 1100, (soft, hard)
        b = s.branch("1")
        equal(eval(b.value("resource.getrlimit(resource.RLIMIT_NPROC)[1]")), hard)
        b.well(close=True)


@test
def a_session_with_many_connections_goes_on(ctx):
    """Also where sockets are counted for what they may hold; the copies have as good as none."""
    with begun(ctx, "import os, socket\npairs = [socket.socketpair() for _ in range(200)]",
               memory_mb=128) as s:
        for _ in range(3):
            equal(s.call("pairs[2][0].send(b'x')\nos._exit(3)").state, "rolled_back")
            equal(s.value("len({a.fileno() for pair in pairs for a in pair}),"
                          " [a.recv(1) for a in pairs[1]]"), "(400, [b'', b''])")
            s.well("for pair in pairs[2:]:\n    for a in pair: a.close()\n"
                   "pairs[2:] = [socket.socketpair() for _ in range(198)]\n"
                   "pairs[1] = socket.socketpair()\nx = pairs[2][0].send(b'y')")
            equal(s.value("pairs[2][1].recv(1)"), "b'y'")


@test
def connections_end_with_the_cell_that_is_undone(ctx):
    """The other side has closed; a socket listens again, and pipes inside the process are whole."""
    with begun(ctx, "import asyncio, os, socket\n"
               "async def answer(reader, writer):\n"
               "    writer.write(b'here')\n    await writer.drain()\n    writer.close()\n"
               "server = await asyncio.start_server(answer, '127.0.0.1', 8124)\n"
               "a, b = socket.socketpair()\nb.send(b'x')\nr, w = os.pipe()\nos.write(w, b'in')\n"
               "p = await asyncio.create_subprocess_exec('cat', stdin=-1, stdout=-1)\n"
               "u = socket.socket(type=socket.SOCK_DGRAM)\nu.bind(('127.0.0.1', 8125))\n"
               "u.setblocking(False)\nos.set_inheritable(b.fileno(), True)\n"
               "f = open('f', 'w+b', buffering=0)\nf.write(b'abc')\nf.seek(1)") as s:
        asks = "reader, writer = await asyncio.open_connection('127.0.0.1', 8124)\nawait reader.read()"
        for _ in range(2):
            equal(s.value(asks), "b'here'")
            o = s.call("f.read()\nos._exit(1)")
            equal(o.state, "rolled_back")
            assert "a socket is open: its connection has ended" in o.structured["not_carried"], o
        equal(s.value(asks), "b'here'")
        equal(s.value("a.recv(9), b.fileno() != -1, os.get_inheritable(b.fileno()), u.getblocking(),"
                      " os.get_blocking(u.fileno()), os.read(r, 9), f.read()"),
              "(b'', True, True, False, False, b'in', b'bc')")
        o = s.call("b.send(b'x')")
        equal((o.status, o.error["type"]), ("error", "BrokenPipeError"), repr(o))
        equal(s.value("await asyncio.wait_for(p.stdout.read(), 20)"), "b''")
        s.well("server.close()\nawait server.wait_closed()\n"
               "server = await asyncio.start_server(answer, '127.0.0.1', 8124)", **SOON)
        equal(s.value(asks), "b'here'")


@test
def branches_do_not_mix_what_goes_on(ctx):
    """A cell in one branch stops what goes on in the other."""
    with begun(ctx, TICKS) as s:
        b = s.branch("here = there()")
        equal(b.value("threading.active_count()"), "1")
        o = b.call("before = there()\ntime.sleep(.3)\nthere() - before < 2", **SOON)
        equal(o.result["repr"], "True", repr(o))
        s.well("before = n, there()\nwhile n == before[0] or there() in (0, before[1]): time.sleep(.001)",
               **SOON)
        equal(b.well("1", close=True).status, "ok")


# ---- what is told ----

@test
def only_what_a_script_shares_is_told(ctx):
    """When a cell is undone; nothing is lost before."""
    with begun(ctx) as s:
        def told():
            o = s.call("import os\nos._exit(1)", **SOON)
            equal(o.state, "rolled_back")
            assert all("not carried: " + t in o.text for t in o.structured["not_carried"]), o.text
            return [t.split(":")[0] for t in o.structured["not_carried"]]
        for code in "import mmap, os", "import ctypes, multiprocessing.shared_memory", "x = [1] * 100":
            equal(s.well(code).structured["not_carried"], [], code)
            equal(told(), [], code)
        o = s.well("fd = os.open('f', os.O_CREAT | os.O_RDWR)\nos.truncate(fd, 4096)\n"
                   "page = mmap.mmap(fd, 4096)")
        equal(o.structured["not_carried"], [])
        equal(told(), ["memory is mapped shared"])
        s.well("page.close()")
        equal(told(), [])


@test
def what_is_written_between_cells_comes_with_the_next_answer(ctx):
    with begun(ctx, "import http.server, sys, threading, time, urllib.request") as s:
        o = s.well("said = threading.Event()\n"
                   "def say():\n    print('in time')\n    print('too', file=sys.stderr)\n"
                   "    said.set()\n"
                   "threading.Timer(.01, say).start()")
        seen = [o.structured]
        o = s.well("print('mine')\nsaid.wait(60)\nprint('still mine')")
        seen.append(o.structured)
        equal(o.stdout.replace("in time\n", ""), "mine\nstill mine\n")
        # As a rule it is still to come when the first cell ends. It comes once.
        for said, stream in ("in time\n", "stdout"), ("too\n", "stderr"):
            equal("".join(d[stream] + (d.get("background_" + stream) or "") for d in seen).count(said),
                  1, seen)
        if seen[1].get("background_stdout"):
            assert "background_stdout: in time" in o.text, o.text
        o = s.well("print('once')")
        equal((o.stdout, "background_stdout" in o.structured), ("once\n", False))
        # More than is kept neither holds up the thread nor its cell.
        s.well("go, done = threading.Event(), threading.Event()\n"
               "def flood():\n    go.wait()\n    for _ in range(100): print('x' * 9999)\n"
               "    done.set()\n"
               "threading.Thread(target=flood).start()")
        o = s.well("go.set()\ndone.wait(60)", **SOON)
        equal((o.result["repr"], o.stdout), ("True", ""))
        assert 4096 <= len(o.structured["background_stdout"]) <= 32768, o.structured
        # Neither does a thread, or a process, that was not there yet when the last cell ended.
        s.well("import subprocess\ndone.clear()\n"
               "threading.Timer(.1, lambda: threading.Thread(target=flood).start()).start()")
        until_equal("done.is_set()", lambda: s.well("done.is_set()", **SOON).result["repr"], "True")
        equal(s.well("print('mine')").stdout, "mine\n")
        s.well("p = subprocess.Popen(['sh', '-c', 'sleep .2; exec yes ' + 'x' * 999])", **SOON)
        said = until("output of a thread", lambda: s.call("", **SOON).structured.get("background_stdout"))
        assert len(said) <= 32768, len(said)
        equal(s.call("p.kill()\n[p.wait()]", **SOON).result["repr"], "[-9]")


# ---- exceptions ----

ENDLESS = """import sys
sys.setrecursionlimit(%d)
def f(n):
    return f(n + 1)
def g(n):
    return h(n + 1)
def h(n):
    return g(n + 1)
try:
    f(0)
except RecursionError:
    g(0)
"""


def native_error(script):
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "script.py")
        with open(path, "w", encoding="utf-8") as f:
            f.write(script)
        return subprocess.run(["/usr/bin/python3", path], capture_output=True, text=True,
                              errors="replace").stderr.replace(path, "script.py")


@test
def deep_recursion_ends_soon(ctx):
    """As CPython's own hook has it: of a traceback the last thousand entries are shown."""
    with ctx.client() as client, begun(ctx) as s:
        for depth in 2000, 300_000:
            script = ENDLESS % depth
            want = native_error(script)
            limits = {"cpu_seconds": 20, "timeout_seconds": 300, "memory_mb": 1024}
            o = client.run(script, 400, **limits)
            equal(o.error["type"], "RecursionError", repr(o))
            # What is below the script's first frame decides where the second recursion ends.
            assert o.error["line"] in (6, 8), o.error["line"]
            equal(o.stderr.partition("During")[0], want.partition("During")[0])
            equal(sorted(o.stderr.splitlines()), sorted(want.splitlines()))
        script = ENDLESS % 100_000
        o = s.call(script, 400, cpu_seconds=20, timeout_seconds=300)
        equal((o.error["type"], o.state), ("RecursionError", "kept"), repr(o))
        equal(s.value("f.__name__"), "'f'")


# ---- threads of native libraries ----

PROCESSORS = len(os.sched_getaffinity(0))


def threads(ctx):
    """How many a library starts, with 512 MiB of memory."""
    return min(PROCESSORS, 2) if ctx.fallback else PROCESSORS

# In how many threads a parallel region runs.
OPENMP = """#include <omp.h>
int most(void) { return omp_get_max_threads(); }
void take(int n) { omp_set_num_threads(n); }
int fit(void)
{
	int n = 0;
#pragma omp parallel reduction(+ : n)
	n++;
	return n;
}
"""
ELSEWHERE = b"libgomp.so.1", b"libg0mp.so.9"	# as wheels have it, but of one length


def run_or_skip(*argv):
    try:
        return subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError) as e:
        raise Skip("%s: %s" % (argv[0], getattr(e, "stderr", None) or e), missing=True)


@contextlib.contextmanager
def openmp_libraries():
    """A directory with one that uses libgomp, and one that brings a copy of it by another name."""
    with tempfile.TemporaryDirectory() as d:
        os.chmod(d, 0o755)
        with open(d + "/fit.c", "w", encoding="ascii") as f:
            f.write(OPENMP)
        run_or_skip("gcc", "-shared", "-fPIC", "-fopenmp", "-Wl,-rpath,$ORIGIN", "-o", d + "/fit.so",
                    d + "/fit.c")
        usual = run_or_skip("gcc", "-print-file-name=libgomp.so.1").strip()
        for name, new in ("fit.so", "bundled.so"), (usual, ELSEWHERE[1].decode()):
            with open(os.path.join(d, name), "rb") as f:
                data = f.read()
            assert ELSEWHERE[0] in data, name
            with open(os.path.join(d, new), "wb") as f:
                f.write(data.replace(*ELSEWHERE))
            os.chmod(os.path.join(d, new), 0o755)
        yield d


def as_files(directory, *names):
    return [{"path": name, "base64": base64.b64encode(
        open(os.path.join(directory, name), "rb").read()).decode()} for name in names]


@test
def openmp_runs_in_every_cell(ctx):
    """A copy of a process has none of its threads, which libgomp does not notice."""
    names = "fit.so", "bundled.so", ELSEWHERE[1].decode()
    with openmp_libraries() as d, begun(ctx, "import ctypes", files=as_files(d, *names)) as s:
        s.well("fit, bundled = ctypes.CDLL('./fit.so'), ctypes.CDLL('./bundled.so')")
        both = "fit.fit(), bundled.fit()"
        many = repr((threads(ctx), threads(ctx)))
        same(s, (both, many), (both, many), ("open('/proc/self/maps').read().count('%s') > 0"
                                             % names[2], "True"))
        branch = s.branch(both)
        equal((branch.value(both), s.value(both)), (many, many))
        branch.well(close=True)
        s.well(both, checkpoint="here")
        o = s.call(both + "\nimport os\nos.abort()", 120, **SOON)
        equal(o.state, "rolled_back", repr(o))
        same(s, (both, many))
        equal(s.well(both, restore="here", **SOON).result["repr"], many)
        # What a cell has chosen is its session's.
        s.well("fit.take(3)")
        same(s, (both, "(3, %d)" % threads(ctx)), (both, "(3, %d)" % threads(ctx)))
        # Another thread's are gone with it.
        same(s, ("import threading\nt = threading.Thread(target=fit.fit)\nt.start()\nt.join()\n"
                 "fit.fit()", "3"), ("fit.fit()", "3"))


@contextlib.contextmanager
def preloading(ctx, modules, directory, more=""):
    """A client of a service whose profile has imported modules, also those of a directory."""
    service = Supervisor(ctx.options.build, "[profile fast]\nmodules = %s\n%s" % (modules, more))
    if directory:
        site = "/usr/local/lib/python%d.%d/dist-packages" % under_test.version[:2]
        if not os.path.isdir(site):
            raise Skip("there is no " + site)
        service.argv[:0] = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" %s && exec "$@"'
                            % site, directory]
    with service:
        service.wait_ready()
        with ctx.client(path=service.socket) as client:
            yield client
        service.stop()


@test(private=True, root=True)
def preloaded_openmp_has_all_processors(ctx):
    """A module that is imported, and even used, before a script's process is made."""
    with openmp_libraries() as d:
        with open(d + "/fitted.py", "w", encoding="ascii") as f:
            f.write("import ctypes, os\n"
                    "here = os.path.dirname(__file__)\n"
                    "fit, bundled = [ctypes.CDLL(here + name) for name in ('/fit.so', '/bundled.so')]\n"
                    "first = fit.fit()\n")
        script = ("import threading, fitted, os\nseen = []\n"
                  "t = threading.Thread(target=lambda: seen.append(fitted.fit.most()))\n"
                  "t.start()\nt.join()\n"
                  "fitted.first, fitted.fit.fit(), fitted.bundled.fit(), seen[0],"
                  " sorted(n for n in os.environ if n.endswith('_NUM_THREADS'))")
        with preloading(ctx, "fitted", d) as client:
            left = [] if threads(ctx) == PROCESSORS else ["OMP_NUM_THREADS"]
            want = repr((threads(ctx),) * 4 + (left,))
            equal(client.run(script, 60, profile="fast").result["repr"], want)
            s = Session(client)
            s.well("1", profile="fast")
            same(s, (script, want), (script, want))
        with preloading(ctx, "fitted", d, "[limits]\ncpu_percent = 1\n") as client:
            want = repr((1,) * 4 + (["OMP_NUM_THREADS"],))
            equal(client.run(script, 60, profile="fast").result["repr"], want, "of one processor")


@test(private=True)
def openblas_has_all_processors(ctx):
    script = ("import numpy, os\n"
              "a = numpy.random.rand(600, 600)\nb = a @ a\n"
              "len(os.listdir('/proc/self/task')), 'openblas' in open('/proc/self/maps').read()")
    with preloading(ctx, "numpy", None) as client:
        for profile in "basic", "fast":
            o = client.run(script, 60, profile=profile)
            if o.error:
                raise Skip(o.error["message"], missing=True)
            if "False" in o.result["repr"]:
                raise Skip("numpy does not use OpenBLAS here", missing=True)
            equal(o.result["repr"], repr((threads(ctx), True)), profile)
            s = Session(client)
            s.well("1", profile=profile)
            same(s, *[(script, repr((threads(ctx), True)))] * 3)
            s.well(close=True)
    # Where nothing but RLIMIT_DATA limits memory, there is room for what OpenBLAS maps.
    with preloading(ctx, "numpy", None, "[limits]\nmemory_mb = 256\n") as client:
        for profile in "basic", "fast":
            o = client.run("import numpy\na = numpy.ones((700, 700))\nfloat((a @ a).sum())", 120, profile=profile, timeout_seconds=60)
            equal((o.status, (o.result or {}).get("repr")), ("ok", "343000000.0"), "%s: %r" % (profile, o))


# ---- cells that lie ----

# What a cell says to its init (worker/line.h) on descriptor 62, and what it does to other processes.
LIES = (
    "say(0, 1, os.getpid())", "say(0, 1, 1)", "say(1, 99, 11)",
    "for n in range(300): say(3, n, 0)", "os.write(62, b'x')", "os.write(62, b'x' * 5000)",
    "os.close(62)", "os.close(60)\nos.close(61)",
    "os.set_blocking(62, False)\ntry: os.read(62, 4096)\nexcept OSError: pass",
    "for n in others(): os.kill(n, 19)\nos._exit(3)", "for n in others(): os.kill(n, 9)",
    "os.getpid = lambda: 1/0\nsubprocess.Popen = 5",
)


@test
def a_cell_that_lies_to_its_init_concerns_itself(ctx):
    """It is kept or undone, and the next cell finds the state."""
    with ctx.client(timeout=120) as client:
        for lie in LIES:
            s = Session(client)
            s.well("import os, struct, subprocess\nx = 1\np = subprocess.Popen(['sleep', '600'])\n"
                   "def say(*what): os.write(62, struct.pack('<IIi', *what))\n"
                   "def others():\n    return [int(n) for n in os.listdir('/proc') if n.isdigit()"
                   " and int(n) not in (1, os.getpid())]")
            o = s.call(lie, 120, **SOON)
            assert o.state in ("kept", "rolled_back"), (lie, repr(o))
            for _ in range(2):
                o = s.call("x", 120, **SOON)
                equal((o.status, o.state, o.result and o.result["repr"]), ("ok", "kept", "1"),
                      "%s: %r" % (lie, o))
            s.well(close=True)
        # One that says that it has ended, and goes on, may lose its own session.
        for end in "time.sleep(.2)", "os._exit(3)":
            s = Session(client)
            s.well("import os, struct, time\nx = 1")
            s.call("os.write(62, struct.pack('<IIi', 2, 0, 0))\n" + end, 120, **SOON)
            s.call("x", 120, **SOON)
            equal(client.run("6 * 7").result["repr"], "42")
            if s.handle:
                s.call(close=True)


# ---- what a notebook takes beside Python ----

@test
def history_is_told_of(ctx):
    """What is not kept of IPython's history is a NameError that says what is."""
    with begun(ctx, "6 * 7") as s:
        equal(s.value("_ + 1"), "43")
        for name in ("___", "_99", "_i99", "_i1000"):
            o = s.call(name + "[0]")
            equal((o.error["type"], o.error["message"]), ("NameError", "name '%s' is not defined" % name))
            assert "_ is the last value; give a value a name" in o.text, o.text
        for name in ("Inn", "_x", "____", "out"):
            o = s.call(name)
            assert o.error["type"] == "NameError" and "last value" not in o.text, o.text
        equal(s.value("In = 5\nIn"), "5")
        equal(s.call("class E(NameError):\n    name = 'In'\nraise E").error["type"], "E")


@test
def notebook_habits_work(ctx):
    with begun(ctx, "x = 3\ndef f(n):\n    'Says it.'\n    return n + 1") as s:
        for code, stdout, result in (
                ("!echo hello {x} $x $HOME", "hello 3 3 /home/python\n", None),
                ("!exit 3\n_exit_code", "", "3"),
                ("lines = !printf 'a\\nb'\nlines", "", "['a', 'b']"),
                ("for i in range(2):\n    !echo $i", "0\n1\n", None),
                ("%matplotlib inline\nx + 1", "", "4"),
                ("%time f(5)", None, "6"), ("%%time\ny = f(6)\ny", None, "7"), ("y", "", "7"),
                ("%timeit -n 10 f(1)", None, None), ("%%timeit\nf(1)", None, None),
                ("%%bash\nfor i in 1 2; do echo $i; done", "1\n2\n", None),
                ("%%writefile a.txt\nsaid\n", "Wrote a.txt\n", None),
                ("open('a.txt').read()", "", "'said\\n'"),
                ("here = %pwd\nhere", "", "'/workspace'"),
                ("%cd /tmp", "/tmp\n", None), ("%env USED=yes\n!echo $USED", "yes\n", None),
                ("```python\nx * 2\n```", "", "6"), ("    z = x * 3\n    z", "", "9"),
                ('s = """\n!ls\n%time\n"""\n%matplotlib inline\ns', "", "'\\n!ls\\n%time\\n'"),
                ("x = 5 % 3\nx", "", "2"),
                # A copied session: its prompts go, and what it printed.
                (">>> x = 7\n>>> for i in range(2):\n...     print(i)\n...\n0\n1\n>>> x", "0\n1\n", "7"),
                ("In [1]: x = 8", "", None), ("In [3]: x", "", "8"),
                ("In [4]: def g():\n   ...:     return 9\n\nIn [5]: g()\nOut[5]: 10", "", "9"),
                ("In [6]: def g():\n    return 10\ng()", "", "10"), ("In[1] == x", "", "False"),
                ("s = '''\n>>> x\n'''\ns", "", "'\\n>>> x\\n'")):
            o = s.call(code, 120, **SOON)
            equal(o.status, "ok", "%s: %r" % (code, o))
            if stdout is not None:
                equal(o.stdout, stdout, code)
            equal((o.result or {}).get("repr"), result, code)
        for code, words in (("f?", "Says it."), ("?f", "Says it."), ("%time f(1)", "wall time"),
                            ("%timeit f(1)", "best of 3")):
            o = s.call(code, 120, **SOON)
            assert o.status == "ok" and words in o.stdout, (code, o)
        for code, words in (("!pip install nonsuch-99", "pip cannot install packages here"),
                            ("%pip install nonsuch-99", "pip cannot install packages here"),
                            ("%unknown 1", "%unknown is not known here"),
                            ("%%unknown\n1", "%%unknown is not known here"),
                            ("x = (\n", "was never closed"), ("if x\n  1", "expected ':'"),
                            ("!echo\nif x\n  1", "invalid syntax")):
            o = s.call(code, 120, **SOON)
            equal(o.status, "error", code)
            assert words in o.stderr, "%s: %r" % (code, o)
        o = s.call("%time 1/0", 120, **SOON)
        assert o.status == "error" and "ZeroDivisionError" in o.stderr, o


@test
def no_cell_ends_the_history(ctx):
    """In and Out are the session's own, and a cell may put anything into them."""
    with begun(ctx, "6 * 7") as s:
        for code in ("In[1] = 5", "In['a'] = In[(1, 2)] = 'x'", "In[2] = None; In.update({3.5: b''})",
                     "Out[(1, 2)] = object()", "Out[3, 4, 5] = [object()]", "In.clear(); Out.clear()"):
            o = s.call(code, 120, **SOON)
            equal((o.status, o.state), ("ok", "kept"), repr(o))
            equal(s.value("6 * 8"), "48", code)
        equal(s.value("[n for n in In if type(n) is not int]"), "[]")


INSTALLED = ("import importlib.metadata as m\n"
             "next((d.name for d in m.distributions() if d.name.isalpha() and d.version.replace('.', '').isdigit()), '')")


@test
def what_is_there_is_not_installed(ctx):
    """pip would say so, and go on: so do cells that begin with it, as notebooks for other services do."""
    with begun(ctx, INSTALLED) as s:
        name = s.value(INSTALLED).strip("'")
        if not name:
            raise Skip("this Python has no package")
        for code in ("%%pip install -q %s", "!pip install -U %s --quiet", "pip install %s", "!{sys.executable} -m pip install %s",
                     "!pip install '%s>=0.0.1'", "%%conda install -y %s", "!uv pip install %s"):
            o = s.call(code % name + "\n6 * 7", 120, **SOON)
            equal((o.status, o.result["repr"] if o.result else None), ("ok", "42"), repr(o))
            assert o.stdout.startswith("Requirement already satisfied: " + name), o
        o = s.client.run("!pip install %s\nprint(6 * 7)" % name)
        assert o.status == "ok" and o.stdout.endswith("\n42\n") and "advice" not in o.text, o
        for code in ("!pip install %s nonsuch-99", "%%pip install '%s<0.0.1'", "!pip install -r %s",
                     "!pip install git+https://example.org/%s", "!pip install ./%s"):
            o = s.call(code % name + "\n6 * 7", 120, **SOON)
            assert o.status == "error" and "pip cannot install packages here" in o.stderr, (code, o)
        assert s.call("!pip install").status == "error"


# ---- what each cell finds renewed ----

def prints(session, code, want, **more):
    o = session.call(code, 120, **SOON, **more)
    assert o.status == "ok", repr(o)
    equal(o.stdout, want, code)
    return o


@test
def no_cell_ends_the_streams(ctx):
    """Whatever it closes, detaches, wraps or puts in their place, by Python or by descriptor."""
    ends = ("sys.stdout.close()", "sys.stdout.buffer.close()", "sys.stdout.buffer.raw.close()",
            "sys.stdout.detach()", "os.close(1)", "with open(1, 'w') as f: f.write('')", "sys.stdout = None",
            "with open(os.devnull, 'w') as f: sys.stdout = f", "del sys.stdout",
            "f = open(os.devnull, 'w'); os.dup2(f.fileno(), 1)",
            "import io; sys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding='utf-8')",
            "import io; sys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding='utf-8')",
            "os.closerange(1, 40)")
    with begun(ctx, "import os, sys, subprocess") as s:
        for end in ends:
            s.call(end, **SOON)
            prints(s, "print('\u00e9 x', flush=True)\nk = subprocess.run(['echo', 'y'])\n", "\u00e9 x\ny\n")
            o = s.call(end.replace("stdout", "stderr").replace("(1", "(2").replace(", 1)", ", 2)"), **SOON)
            o = s.call("print('z', file=sys.stderr, flush=True)\nk = subprocess.run('echo e >&2', shell=True)", **SOON)
            equal((o.status, o.stderr), ("ok", "z\ne\n"), end)
        # In the same cell, too.
        prints(s, "sys.stdout.close()\nprint('again')", "again\n")
        prints(s, "import ctypes\nk = ctypes.CDLL(None).puts(b'by C')", "by C\n")


@test
def no_cell_ends_the_input(ctx):
    """What a cell does to sys.stdin fails no later cell."""
    with begun(ctx, "import sys") as s:
        for end in "sys.stdin.detach()", "del sys.stdin", "sys.stdin.close()":
            s.call(end, **SOON)
            prints(s, "print(sys.stdin.read() == '')", "True\n")


@test
def each_cell_is_warned(ctx):
    with begun(ctx, "import warnings") as s:
        for _ in range(3):
            o = s.call("warnings.warn('the same')", **SOON)
            assert "the same" in o.stderr, repr(o)


@test
def a_command_that_fails_says_so(ctx):
    with begun(ctx, "1") as s:
        for code, stderr in (("%%bash\necho a\nexit 3", "(exit status 3)\n"), ("!false", "(exit status 1)\n"),
                             ("!true", ""), ("!kill -9 $$", "(exit status -9)\n")):
            o = s.call(code, **SOON)
            equal((o.status, o.stderr), ("ok", stderr), code)


@test
def classes_of_cells_have_sources(ctx):
    with begun(ctx, "class A:\n    def f(self): return 1\n\nclass B:\n    x = 1") as s:
        same(s, ("import inspect\ninspect.getsource(A)",
                 repr("class A:\n    def f(self): return 1\n")),
             ("inspect.getsource(B)", repr("class B:\n    x = 1\n")),
             ("inspect.getsource(A.f)", repr("    def f(self): return 1\n")))
        o = s.call("inspect.getsource(int)", **SOON)
        equal(o.error["type"], "TypeError", repr(o))


@test
def objects_display_themselves(ctx):
    with begun(ctx, "class D:\n    def _ipython_display_(self): display({'text/markdown': '*mine*'}, raw=True)\n"
                    "class E(D):\n    def _ipython_display_(self): raise NotImplementedError\n"
                    "    def _repr_markdown_(self): return '*other*'") as s:
        for code, want in (("display(D())", "*mine*"), ("D()", "*mine*"), ("E()", "*other*")):
            o = s.call(code, **SOON)
            equal([d["mime_type"] for d in o.structured["displays"]], ["text/markdown"], repr(o))
            assert want in o.text, o.text
            equal("object at" in o.text, code == "E()", o.text)


@test
def spawned_processes_find_what_cells_have_defined(ctx):
    """Functions, classes and the plain variables that they use; later definitions replace earlier ones."""
    with begun(ctx, "import math, multiprocessing as m\nN = 10\ndef f(n): return n\n%matplotlib inline\n") as s:
        same(s, ("class P:\n    '''A\n    doc.'''\n    def __init__(self, n): self.n = n\n"
                 "if True:\n    def f(n): return math.floor(P(n).n) + N\nstop = print('once')\n1", "1"))
        for method in ("spawn", "forkserver"):
            same(s, ("with m.get_context('%s').Pool(2) as p: v = p.map(f, [1, 2])\nv" % method, "[11, 12]"),
                 ("from concurrent.futures import ProcessPoolExecutor as E\n"
                  "with E(2, mp_context=m.get_context('%s')) as e: v = list(e.map(f, [3]))\nv" % method, "[13]"))
            same(s, ("N = %d\ndef f(n): return [n, N]\n"
                     "with m.get_context('%s').Pool(1) as p: v = p.map(f, [1])\nv" % (len(method), method),
                     "[[1, %d]]" % len(method)),
                 ("N = 10\ndef f(n): return math.floor(P(n).n) + N\n1", "1"))


@test
def a_default_start_method_works_in_cells(ctx):
    """Python 3.14's is forkserver: a pool that names no method finds what its cell has defined, and so do later ones."""
    with begun(ctx, "import multiprocessing as m, sys\nfrom concurrent.futures import ProcessPoolExecutor\n"
                    "if sys.version_info < (3, 14): m.set_start_method('forkserver')\nm.get_start_method()") as s:
        same(s, ("m.get_start_method()", "'forkserver'"),
             ("def f(n): return n * N\nN = 10\nwith ProcessPoolExecutor(2) as e: v = list(e.map(f, [1, 2]))\nv", "[10, 20]"),
             ("N = 100\nwith m.Pool(2) as p: v = p.map(f, [1, 2])\nv", "[100, 200]"))


@test
def edited_modules_are_new(ctx):
    """A module in /workspace whose file has changed since it was imported, by the call's own files or by
    an earlier cell; also within one tick of the clock of bytecode. None of its bytecode is left."""
    def file(text):
        return {"files": [{"path": "m.py", "text": text}, {"path": "k/__init__.py", "text": ""}]}
    with begun(ctx, "1") as s:
        o = s.call("import m, k\nfrom m import f\nm.f()", **file("def f(): return 1\n"), **SOON)
        equal(o.result["repr"], "1", repr(o))
        equal(sorted(x["path"] for x in o.structured["files"]), ["k/__init__.py", "m.py"])
        for n in (2, 3):
            o = s.call("[m.f(), f()]", **file("def f(): return %d\n" % n), **SOON)
            equal(o.result["repr"], "[%d, %d]" % (n, n), repr(o))
            assert "(imported again, because its file has changed: m)" in o.stderr, o.stderr
        o = s.call("m.f()", **SOON)
        equal((o.result["repr"], o.stderr), ("3", ""))
        # By a cell; one that cannot be imported any more is told of, and the former one stays.
        same(s, ("open('m.py', 'w').write('def f(): return 44')", "18"), ("m.f()", "44"))
        o = s.call("m.f()", **file("def f(: return 5\n"), **SOON)
        equal(o.result["repr"], "44", repr(o))
        assert "m could not be imported again: SyntaxError" in o.stderr, o.stderr
        o = s.call("m.f()", **SOON)
        equal((o.result["repr"], o.stderr), ("44", ""), "it is told once")
        o = s.call("m.f()", **file("def f(): return 51\n"), **SOON)
        equal(o.result["repr"], "51", "a file that is right again is imported again")
        # What a cell imports is what it has just written, also within one tick of the clock, however it does so.
        write = "_ = open('m.py', 'w').write('def f(): return %d')\n"
        o = s.call("found = []\n" + "".join(write % (60 + n) + how + "\nfound += [m.f(), f()]\n" for n, how in enumerate((
            "import m\nfrom m import f", "from m import f", "import m", "import importlib\nm = importlib.reload(m)\nf = m.f",
            "import m as other", "def inner():\n    from m import f\n    return f()\ninner()"))) + "found", **SOON)
        equal(o.result["json"], [60 + n // 2 for n in range(12)], repr(o))
        o = s.call("_ = open('k/part.py', 'w').write('a = 1')\nfrom k import part\n_ = open('k/part.py', 'w').write('a = 2')\n"
                   "from k.part import a\na", **SOON)
        equal(o.result["repr"], "2", repr(o))
        o = s.call("_ = open('m.py', 'w').write('1 / 0')\nimport m\nm.f()", **SOON)
        assert o.status == "ok" and "m could not be imported again: ZeroDivisionError" in o.stderr, repr(o)
        # A new module, right after its folder was listed.
        same(s, ("open('n1.py', 'w').write('a = 1')\nimport n1\nn1.a", "1"),
             ("import sys\n[k for k in __import__('os').listdir('.') if 'cache' in k]", "[]"))
        # Elsewhere %autoreload switches it on, also for what was imported before.
        same(s, ("open('/tmp/t.py', 'w').write('a = 1')\nsys.path.append('/tmp')\nimport t\nt.a", "1"),
             ("open('/tmp/t.py', 'w').write('a = 22')", "6"), ("t.a", "1"), ("%autoreload 2\nt.a", "22"),
             ("open('/tmp/t.py', 'w').write('a = 333')", "7"), ("t.a", "333"))


@test
def tests_are_run_as_they_are_now(ctx):
    """By pytest in a session: the tests and what they test, also if the same cell has written them."""
    test = "from m import f\ndef test_f(): assert f() == %d\n"
    with begun(ctx, "1") as s:
        o = s.call("try: import pytest\nexcept ImportError: pytest = None\npytest is None", **SOON)
        if o.result["json"]:
            raise Skip("pytest is not installed", missing=True)
        run = "int(pytest.main(['-q', '-p', 'no:cacheprovider']))"
        write = "_ = open('m.py', 'w').write('def f(): return %d\\n')\n"
        o = s.call(run, files=[{"path": "m.py", "text": "def f(): return 1\n"},
                               {"path": "test_m.py", "text": test % 2}], **SOON)
        equal(o.result["repr"], "1", o.stdout)
        for code, value in ((write % 22 + run, "1"), (write % 2 + run, "0"), (write % 333, None), (run, "1"),
                            ("_ = open('test_m.py', 'w').write(%r)\n%s" % (test % 333, run), "0")):
            o = s.call(code, **SOON)
            equal((o.status, o.result and o.result["repr"]), ("ok", value), (code, o.stdout))


if __name__ == "__main__":
    main(__doc__)
