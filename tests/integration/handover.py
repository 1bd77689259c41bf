#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A service that is stopped and started again keeps the sessions of run_repl by way of systemd's
store of descriptors. Here the test plays systemd: it receives what is stored, and starts the next
process with it. The service has no cgroups, for by hand those are of one process."""

import calendar
import contextlib
import fcntl
import os
import re
import select
import json
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from harness import FEW_MODULES, SOMEBODY, Skip, equal, main, test, tests
from mcpclient import LEGACY, Client
from package_index import NGINX, Index
from package_store import environments, install, new_store
from package_store import config as with_packages
from repl import Session, environment, refused, without_its_memory
from supervisor import (Supervisor, cgroup2_mount, cgroup_of, children, descendants, is_alive,
                        read_text, reap, strays, wait_gone)
from waits import until

tests.clear()	# those of repl.py

# A timer wakes what was stopped, and a thread has something to do then. Without a handler the
# signal would be ignored, and the timer with it.
WAKES = r"""
import ctypes, mmap
libc = ctypes.CDLL(None)
class Event(ctypes.Structure):
    _fields_ = [("value", ctypes.c_void_p), ("signal", ctypes.c_int), ("notify", ctypes.c_int),
                ("rest", ctypes.c_char * 48)]
libc.signal(18, libc.getpid)
for i in range(1, 128):
    timer, at = ctypes.c_void_p(), (ctypes.c_long * 4)(0, 0, i >> 1, (i & 1) * 500000000)
    assert libc.timer_create(1, ctypes.byref(Event(None, 18)), ctypes.byref(timer)) == 0
    assert libc.timer_settime(timer, 0, at, None) == 0
page = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=7)
page.write(%r)
code, thread = ctypes.addressof(ctypes.c_char.from_buffer(page)), ctypes.c_ulong()
assert libc.pthread_create(ctypes.byref(thread), None, ctypes.c_void_p(code), None) == 0
"""
FOR_EVER = {"x86_64": b"\xeb\xfe", "aarch64": b"\x00\x00\x00\x14"}	# a jump to itself

# Becomes the service: with the descriptors from 3 on, and where nobody sees cgroups.
LAUNCHER = r"""
import ctypes, os, sys
fds, names, mount, argv = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]
fds = [int(fd) for fd in fds.split()]
libc = ctypes.CDLL(None, use_errno=True)
if mount:
    for r in (libc.unshare(0x20000), libc.mount(None, b"/", None, 0x44000, None),
              libc.umount2(mount.encode(), 2)):
        if r:
            sys.exit("no mount namespace: " + os.strerror(ctypes.get_errno()))
import fcntl
high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 3 + 2 * len(fds)) for fd in fds]
for i, fd in enumerate(high):
    os.dup2(fd, 3 + i, inheritable=True)
os.closerange(3 + len(fds), 1024)
if fds:
    os.environ.update(LISTEN_FDS=str(len(fds)), LISTEN_FDNAMES=names, LISTEN_PID=str(os.getpid()))
os.execv(argv[0], argv)
"""


class Manager:
    """What systemd does for a service: sd_notify(3) and the store."""

    def __init__(self, directory):
        self.path = os.path.join(directory, "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self.socket.bind(self.path)
        os.chmod(self.path, 0o666)
        self.stored = []	# (name, fd), the newest first, as systemd has them
        self.lock = threading.Lock()
        self.wake, self.waker = os.pipe()
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self):
        while True:
            ready = select.select([self.socket, self.wake], [], [])[0]
            if self.wake in ready:
                return
            data, fds, _, _ = socket.recv_fds(self.socket, 65536, 16)
            said = dict(line.split("=", 1) for line in data.decode().split("\n") if "=" in line)
            name = said.get("FDNAME", "stored")
            with self.lock:
                if "FDSTORE" in said:
                    assert said.get("FDPOLL") == "0" and len(fds) == 1, said
                    self.stored.insert(0, (name, fds.pop()))
                if "FDSTOREREMOVE" in said:
                    for entry in [e for e in self.stored if e[0] == name]:
                        self.stored.remove(entry)
                        os.close(entry[1])
            for fd in fds:	# a barrier
                os.close(fd)

    def drop(self):
        with self.lock:
            for _, fd in self.stored:
                os.close(fd)
            self.stored = []

    def replace(self, stored):
        """What was stored, otherwise: each entry has a descriptor of its own then."""
        with self.lock:
            stored = [(name, os.dup(fd)) for name, fd in stored]
        self.drop()
        self.stored = stored

    def close(self):
        os.write(self.waker, b"x")
        self.thread.join()
        self.drop()
        self.socket.close()
        os.close(self.wake)
        os.close(self.waker)


class Unit:
    """A service that is restarted."""

    lock = threading.Lock()
    behind = {}		# of each that is: pids that it may have left behind, our children then

    def __init__(self, ctx, config="", store=True):
        self.ctx, self.store = ctx, store
        self.directory = tempfile.mkdtemp(prefix="mcp-handover-")
        self.config = config
        os.chmod(self.directory, 0o777)
        self.manager = Manager(self.directory)
        self.before = children(os.getpid())
        self.service = None
        with self.lock:
            self.behind[self] = set()
        self.mount = (cgroup2_mount() or "") if os.getuid() == 0 else ""

    def __enter__(self):
        try:
            return self.start()
        except BaseException as e:
            self.__exit__(type(e), e, None)
            raise

    def start(self, config=None):
        env = {"NOTIFY_SOCKET": self.manager.path}
        if self.store:
            env["FDSTORE"] = "512"
        config = (self.config if config is None else config).replace("%s", self.directory)
        with self.manager.lock:
            names = ":".join(name for name, _ in self.manager.stored)
            fds = [fd for _, fd in self.manager.stored]
            s = Supervisor(self.ctx.options.build, config, env=env, socket_path=os.path.join(self.directory, "mcp.sock"))
            s.argv = [sys.executable, "-c", LAUNCHER, " ".join(map(str, fds)), names, self.mount,
                      *s.argv]
            s.pass_fds = fds
            self.service = s
            s.start()
        with self.client() as c:	# whoever is answered finds it started
            o = c.run("1", self.ctx.seconds(60))
            equal(o.status, "ok")
        if os.path.basename(cgroup_of(s.pid) or "") == "supervisor":
            raise Skip("this user has cgroups of their own")
        return self

    def manager_is_empty(self, what):
        """It hears of it in its own time."""
        until(lambda: "%s: %s" % (what, self.manager.stored), lambda: not self.manager.stored)

    def send(self, sig):
        """The processes that are below it."""
        below = descendants(self.service.pid)
        with self.lock:
            self.behind[self].update(pid for pid, _ in below)
        self.service.process.send_signal(sig)
        return below

    def stop(self, sig=signal.SIGTERM):
        """The processes that were below it."""
        s = self.service
        below = self.send(sig)
        status = s.process.wait(self.ctx.seconds(20))
        log = s.log()
        s.process = None
        s.remove()
        self.service = None
        for sign in ("AddressSanitizer", "runtime error:", "Assertion", "assertion"):
            assert sign not in log, log[-6000:]
        equal(status, 0 if sig == signal.SIGTERM else -sig, log[-2000:])
        self.log = log
        return below

    def restart(self, **how):
        self.stop()
        return self.start(**how)

    def all_gone(self, processes, what):
        left = wait_gone(processes, self.ctx.seconds(20))
        assert not left, "%s: %s" % (what, [read_text("/proc/%d/comm" % p) for p, _ in left])

    def client(self, uid=None):
        return Client.connect(os.path.join(self.directory, "mcp.sock"), LEGACY[-1], uid,
                              self.ctx.seconds(60))

    @contextlib.contextmanager
    def session(self, handle, uid=None):
        with self.client(uid) as c:
            yield Session(c, handle)

    def begin(self, code, uid=None, **arguments):
        with self.client(uid) as c:
            s = Session(c)
            s.well(code, **arguments)
            return s.handle

    def __exit__(self, kind, error, trace):
        left = []
        if self.service:
            self.service.explain(error, self.service.process and self.service.process.poll())
        if self.service and self.service.process:
            left = descendants(self.service.pid)
            self.service.process.kill()
            self.service.process.wait()
            self.service.remove()
        self.manager.close()
        with self.lock:
            del self.behind[self]
            others = {pid for below in self.behind.values() for pid in below}
        orphans = strays(self.before) - others
        left += [(pid, start) for pid, start in descendants(os.getpid()) if pid in orphans]
        left = wait_gone(left, self.ctx.seconds(20))
        reap(orphans)
        subprocess.run(["rm", "-rf", self.directory], check=True)
        assert not left, "left running: %s" % [read_text("/proc/%d/comm" % p) for p, _ in left]


def audited(unit, event):
    with open(unit.directory + "/audit.log", encoding="utf-8") as f:
        records = [json.loads(line) for line in f if line.endswith("\n")]	# the last may grow
    return [r for r in records if r["event"] == event]


@test(private=True)
def a_session_survives_restarts(ctx):
    with Unit(ctx) as unit:
        handle = unit.begin("x = 20\nopen('kept.txt', 'w').write('a file')", memory_mb=96)
        with unit.session(handle) as s:
            s.well("x = 21", checkpoint="twenty-one")
            s.well("x = 22")
            before = environment(s.client)["repl_sessions"]
            b = s.branch("x = 'of a branch'")
        for i in range(3):
            unit.restart()
            with unit.session(handle) as s:
                equal(s.value("x"), str(22 + i))
                equal(s.value("open('kept.txt').read()"), "'a file'")
                s.well("x += 1")
            with unit.session(b.handle) as s:
                equal(s.value("x"), "'of a branch'")
        with unit.session(handle) as s:
            after = environment(s.client)["repl_sessions"]
            equal([m["session"] for m in after], [handle, b.handle])
            equal(after[0]["cells"], before[0]["cells"] + 9)
            s.well(restore="twenty-one")
            equal(s.value("x"), "21")
            o = s.call("kept = []\nwhile True: kept.append(bytearray(20 << 20))")
            assert without_its_memory(o), repr(o)
            s.well("kept = None")	# it may be little enough to be kept
            equal(s.value("x"), "21")
            c = s.branch("x += 1\nx")
            equal((c.value("x"), s.value("x")), ("22", "21"))
            for one in (b.handle, c.handle, handle):
                Session(s.client, one).well(close=True)
            equal(environment(s.client)["repl_sessions"], [])


GOES_ON = """
import asyncio, subprocess, sys, threading, time
ticks, leave = [], threading.Event()
def tick():
    while not leave.wait(.01):
        ticks.append(1)
thread = threading.Thread(target=tick)
thread.start()
child = subprocess.Popen([sys.executable, "-c", "print(input())"], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, text=True)
async def count():
    global turns
    while True:
        turns += 1
        await asyncio.sleep(.01)
turns = 0
task = asyncio.get_running_loop().create_task(count())
await asyncio.sleep(.05)
"""


@test(private=True)
def what_goes_on_stays(ctx):
    """A session is stopped over a restart with its threads, children and tasks, and goes on with
    them."""
    with Unit(ctx) as unit:
        handle = unit.begin(GOES_ON)
        for _ in range(2):
            unit.restart()
            with unit.session(handle) as s:
                s.well("before = len(ticks), turns")
                s.well("while len(ticks) == before[0] or turns == before[1]:\n"
                       "    await asyncio.sleep(.01)")
                equal(s.value("thread.is_alive(), child.poll(), task.done()"),
                      "(True, None, False)")
        with unit.session(handle) as s:
            equal(s.value("child.communicate('it reads', 60)[0], child.returncode"),
                  "('it reads\\n', 0)")
            s.well("leave.set()\nthread.join()\ntask.cancel()", close=True)


WRITES = """
import subprocess, threading, time
go_on, n = True, 0
def write():
    global n
    while go_on:
        print(n, flush=True)
        subprocess.run(["echo", str(n + 1)])
        n += 2
        time.sleep(.01)
threading.Thread(target=write).start()
"""


@test(private=True)
def what_is_written_is_told_after_a_restart(ctx):
    """A thread and children write between cells; no line is missing or comes twice."""
    with Unit(ctx) as unit:
        with unit.client() as c:
            s = Session(c)
            o = s.well(WRITES)
            told, handle = o.stdout + o.structured.get("background_stdout", ""), s.handle
        for _ in range(2):
            with unit.session(handle) as s:
                o = s.call("n")
                told += o.stdout + o.structured.get("background_stdout", "")
                n = int(o.result["repr"])
                while max(map(int, told.split())) < n + 6:	# it goes on between cells
                    o = s.call(inspect=True)
                    told += o.stdout + o.structured.get("background_stdout", "")
            unit.restart()
        with unit.session(handle) as s:
            o = s.well("go_on = False\nthreading.enumerate()[-1].join()", close=True)
            told += o.stdout + o.structured.get("background_stdout", "")
    lines = sorted(map(int, told.split()))	# the thread and its children have a pipe each
    equal(lines, list(range(len(lines))))


@test(private=True)
def what_was_written_comes_after_the_restart(ctx):
    """What threads and children have written between cells lies in pipes that are handed over."""
    with Unit(ctx) as unit:
        handle = unit.begin("import os, subprocess, threading, time\n"
                            "def say():\n    print('of a thread')\n"
                            "threading.Timer(.3, say).start()\n"
                            "p = subprocess.Popen(['sh', '-c', 'sleep .6; echo of a child; :>said'])")
        # No cell of this session sees it happen.
        until("the end of the child", lambda: not any(
            read_text("/proc/%d/comm" % pid) == "sh\n" for pid, _ in descendants(unit.service.pid)))
        unit.restart()
        with unit.session(handle) as s:
            seen = s.well("while not os.path.exists('said'): time.sleep(.01)")
            more = s.well("print('mine')")
            equal(more.stdout, "mine\n")
            equal(seen.stdout, "")
            told = "".join(o.structured.get("background_stdout") or "" for o in (seen, more))
            for words in "of a thread\n", "of a child\n":
                equal(told.count(words), 1, told)
            s.well(close=True)


@test(private=True)
def one_without_snapshots_stays_so(ctx):
    with Unit(ctx) as unit:
        handle = unit.begin("x = 1", snapshot=False)
        unit.restart()
        with unit.session(handle) as s:
            o = s.well("import os\nx += 1")
            assert "It has no snapshots" in o.structured["state_text"], o.structured
            equal(s.value("x"), "2")
            equal(s.call("x", branch=True).status, "invalid_arguments")
            equal(s.call("os._exit(1)").state, "lost")


@test(private=True)
def mounted_files_stay(ctx):
    """A large file that a session reads where it is. It can get no other after a restart, and says so."""
    def look(unit, session=None, **files):
        items = [{"path": path, "uri": uri} for path, uri in files.items()]
        code = "[open(n, 'rb').read(1) for n in ('a', 'b') if __import__('os').path.exists(n)]"
        with unit.client() as c:
            return c.outcome(c.request("tools/call", {"name": "run_repl", "arguments": {
                "code": code, "files": items, **({"session": session} if session else {})}}), 60)

    directory = tempfile.mkdtemp(prefix="files-")
    os.chmod(directory, 0o755)
    try:
        with Unit(ctx, "[files]\ndirectory = %s/store\n" % directory) as unit:
            with unit.client() as c:
                a, b = (c.run("open('f', 'wb').write(b'%s' * (5 << 20))" % name).structured["files"][0]["uri"]
                        for name in "ab")
            o = look(unit, a=a)
            equal(o.structured["result"]["repr"], "[b'a']", o)
            unit.restart()
            session = o.structured["session"]
            o = look(unit, session, b=b)
            assert o.refused and "outlived a restart" in o.text, o
            equal(look(unit, session).structured["result"]["repr"], "[b'a']")
    finally:
        shutil.rmtree(directory)


@test(private=True, root=True)
def it_stays_its_tenant_s(ctx):
    with Unit(ctx) as unit:
        handle = unit.begin("x = 1")
        other = unit.begin("x = 2", SOMEBODY)
        unit.restart()
        for uid, own, foreign, value in ((None, handle, other, "1"),
                                         (SOMEBODY, other, handle, "2")):
            with unit.session(foreign, uid) as s:
                equal(s.call("x").status, "no_session")
                equal([m["session"] for m in environment(s.client)["repl_sessions"]], [own])
            with unit.session(own, uid) as s:
                equal(s.value("x"), value)


@test(private=True)
def what_there_may_be_counts_them(ctx):
    config = "[repl]\nsessions_max = 3\nmemory_total_mb = 500\n"
    with Unit(ctx, config) as unit:
        handle = unit.begin("x = 1", memory_mb=200)
        with unit.session(handle) as s:
            s.well("x", memory_mb=300)
        unit.restart()
        with unit.client() as c:
            refused(Session(c).call("1", memory_mb=300), "session_limit", "memory")
            Session(c).well("1", memory_mb=64)
            Session(c).well("1", memory_mb=64)
            refused(Session(c).call("1", memory_mb=64), "session_limit", "3 are allowed")
        with unit.session(handle) as s:
            refused(s.call("x", memory_mb=400), "session_limit", "528 MiB")
            more = 240 if "ASAN_OPTIONS" in os.environ else 310	# it has memory of its own
            o = s.well("big = bytearray(b'x') * (%d << 20)\ndel big\nx" % more, ctx.seconds(60),
                       memory_mb=370)
            equal(o.result["repr"], "1")
            s.well("x", close=True)
            Session(s.client).well("1", memory_mb=300)


@test(private=True)
def a_cell_that_runs_is_cancelled(ctx):
    """Its session is as it was before, and new processes are not in its way."""
    with Unit(ctx) as unit:
        handle = unit.begin("x = 1")
        deaf = unit.begin("import signal\nx = 1")
        with unit.session(handle) as s, unit.session(deaf) as d:
            ids = []
            for one, code in ((s, "x = 2\nimport time\nprint('go', flush=True)\n"
                                  "time.sleep(1000)"),
                              (d, "x = 2\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
                                  "print('go', flush=True)\nwhile True: pass")):
                ids.append(one.start(code, meta={"progressToken": "p",
                                                 "mcp-pythond/stream": True}))
                one.until_said("go")
            unit.send(signal.SIGTERM)
            for one, id in ((s, ids[0]), (d, ids[1])):
                o = one.finish(id)
                equal((o.status, o.state), ("cancelled", "rolled_back"), repr(o))
        # A second signal would mean that it is not to wait for anybody.
        unit.service.process.wait(ctx.seconds(20))
        unit.restart()
        for one in (handle, deaf):
            with unit.session(one) as s:
                equal(s.value("x"), "1")


@test(private=True)
def a_keyed_cell_runs_once(ctx):
    """The session is kept over the restart, and so is what has run in it."""
    with Unit(ctx, "[mcp]\nrepeat_file = %s/calls\n") as unit:
        handle = unit.begin("x = 0")
        with unit.session(handle) as s:
            equal(s.call("x += 1", idempotency_key="k").status, "ok")
            s.finish(s.start("x += 1", idempotency_key="k"))
        unit.restart()
        with unit.session(handle) as s:
            id = s.start("x += 1", idempotency_key="k")
            assert "its answer is lost" in s.client.wait(id)["content"][0]["text"]
            equal(s.value("x"), "1")


@test(private=True)
def a_stop_leaves_nothing(ctx):
    with Unit(ctx) as unit:
        handle = unit.begin("import threading, time\n"
                            "threading.Thread(target=time.sleep, args=(1000,)).start()")
        for _ in range(2):
            below = unit.stop()
            assert [n for n, _ in unit.manager.stored if n == "kept-table"]
            assert [1 for p in below if is_alive(*p)], "the session did not outlive it"
            unit.manager.drop()	# as systemd does when no start is queued
            unit.all_gone(below, "after a stop")
            unit.start()
            with unit.session(handle) as s:
                equal(s.call("1").status, "no_session")
            handle = unit.begin("1")


@test(private=True)
def a_kill_leaves_nothing(ctx):
    """Not even of sessions that the one before it had left, be they at rest or at work."""
    with Unit(ctx) as unit:
        rests, works = unit.begin("x = 1"), unit.begin("x = 2")
        unit.restart()
        unit.begin("x = 3")
        with unit.session(works) as s:
            s.start("import time\nprint('go', flush=True)\ntime.sleep(1000)",
                    meta={"progressToken": "p", "mcp-pythond/stream": True})
            s.until_said("go")
            orphans = [p for p in descendants(os.getpid())
                       if p[0] != unit.service.pid]
            below = unit.stop(signal.SIGKILL)
            unit.all_gone([p for p in orphans if p not in below] + below, "after a kill")
        unit.manager_is_empty("what systemd still has")
        unit.start()
        with unit.session(rests) as s:
            equal(s.call("x").status, "no_session")


@test(private=True)
def what_wakes_itself_is_ended(ctx):
    """What is held stands still, or it is over soon."""
    machine = os.uname().machine
    if machine not in FOR_EVER:
        raise Skip("no code for " + machine)
    with Unit(ctx) as unit:
        quiet = unit.begin("x = 1")
        handle = unit.begin(WAKES % FOR_EVER[machine])
        below = unit.stop()
        unit.start()
        kept = [p for p in below if is_alive(*p)]
        with unit.client() as c:
            until("the end of the session", lambda: not any(
                m["session"] == handle for m in environment(c)["repl_sessions"]))
        with unit.session(handle) as s:
            equal(s.call("1").status, "no_session")
        with unit.session(quiet) as s:
            equal(s.value("x"), "1")
            s.well(close=True)
        unit.all_gone(kept, "after its end")


@test(private=True)
def without_a_store_they_end(ctx):
    with Unit(ctx, store=False) as unit:
        handle = unit.begin("x = 1")
        below = unit.stop()
        equal(unit.manager.stored, [])
        unit.all_gone(below, "after a stop")
        unit.start()
        with unit.session(handle) as s:
            equal(s.call("x").status, "no_session")


@contextlib.contextmanager
def twisted(stored, how):
    """What is stored, with one thing about it that is not right."""
    made = []
    try:
        yield twist(stored, how, made)
    finally:
        for fd in made:
            os.close(fd)


def twist(stored, how, made):
    by_name = dict(stored)
    name = sorted(n for n in by_name if n.endswith("-control"))[0][:-len("control")]
    if how == "no init":
        return [e for e in stored if e[0] != name + "init"]
    if how == "no control":
        return [e for e in stored if e[0] != name + "control"]
    if how == "no stdout":
        return [e for e in stored if e[0] != name + "stdout"]
    if how == "another init":
        made.append(os.pidfd_open(os.getpid()))
        return [(n, made[0] if n == name + "init" else fd) for n, fd in stored]
    if how == "a pipe as control":
        return [(n, by_name[name + "stdout"] if n == name + "control" else fd)
                for n, fd in stored]
    if how == "control twice":
        return stored + [(name + "control", by_name[name + "control"])]
    if how == "no table":
        return [e for e in stored if e[0] != "kept-table"]
    if how == "two tables":
        return stored + [("kept-table", by_name["kept-table"])]
    table = os.pread(by_name["kept-table"], 1 << 20, 0)
    assert len(table) > 100, table
    data, seal = {
        "garbage": (os.urandom(len(table)), True),
        "half a table": (table[:len(table) // 2], True),
        "an open table": (table, False),
        "another build": (re.sub(rb"(build.)(.)", rb"\1X", table, 1), True),
        "another version": (bytes([table[0] ^ 1]) + table[1:], True),
    }[how]
    fd = os.memfd_create("table", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    made.append(fd)
    os.write(fd, data)
    if seal:
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, 0x17)	# all but F_SEAL_WRITE
    return [(n, fd if n == "kept-table" else old) for n, old in stored]


ONE = ("no init", "no control", "no stdout", "another init", "a pipe as control", "control twice")
ALL = ("no table", "two tables", "garbage", "half a table", "an open table", "another build",
       "another version")


@test(private=True)
def what_does_not_fit_is_not_taken(ctx):
    """Either session, or both, end at once, and the service is well."""
    with Unit(ctx, "[audit]\nfile = %s/audit.log\n") as unit:
        for how in ONE + ALL:
            handles = [unit.begin("x = %d" % i) for i in range(2)]
            before = len(audited(unit, "session-lost"))
            below = unit.stop()
            with twisted(list(unit.manager.stored), how) as stored:
                unit.manager.replace(stored)
            unit.start()
            unit.manager_is_empty(how)
            states = []
            for i, handle in enumerate(handles):
                with unit.session(handle) as s:
                    o = s.call("x")
                    states.append(o.status)
                    if o.status == "ok":
                        equal(o.result["repr"], str(i), how)
                        s.well(close=True)
            equal(sorted(states), ["no_session", "ok" if how in ONE else "no_session"], how)
            unit.all_gone(below, how)
            lost = len(audited(unit, "session-lost")) - before
            equal(lost, 1 if how in ONE else 2 if how == "another build" else 0, how)


@test(private=True)
def another_configuration_may_not_fit(ctx):
    profile = "[profile other]\nmodules = json\n"
    with Unit(ctx, profile + "[audit]\nfile = %s/audit.log\n") as unit:
        stays, goes = unit.begin("x = 1"), unit.begin("x = 2", profile="other")
        unit.restart(config="[audit]\nfile = %s/audit.log\n")
        with unit.session(stays) as s:
            equal(s.value("x"), "1")
        with unit.session(goes) as s:
            equal(s.call("x").status, "no_session")
        kept, lost = audited(unit, "session-kept"), audited(unit, "session-lost")
        equal([r["session"][:8] for r in kept], [stays[:8]])
        equal([(r["session"][:8], r["why"]) for r in lost],
              [(goes[:8], "there is no profile other any more")])
        assert stays not in json.dumps(kept), "a record tells a whole handle"


@test(private=True)
def packages_stay(ctx):
    if not os.path.exists(NGINX):
        raise Skip("no nginx here", missing=True)
    with Index() as index, new_store() as store:
        index.add("alpha", "1.0")
        index.add("gamma", "1.0")
        config = with_packages(index.url, store) + "[audit]\nfile = %s/audit.log\n"
        with Unit(ctx, config) as unit:
            handle = unit.begin("import alpha\nx = 1", dependencies=["alpha"])
            with unit.session(handle) as s:
                b = s.branch("x = 2")
            bare = unit.begin("y = 1")
            for _ in range(2):
                unit.restart()
                with unit.session(handle) as s:
                    equal(s.value("x, __import__('importlib').reload(alpha).VERSION"),
                          "(1, '1.0')")
                    answer = install(s.client, "alpha", session=handle)
                    equal(answer["status"], "ok", answer)	# it has it
                    for one in (handle, b.handle, bare):
                        answer = install(s.client, "gamma", session=one)
                        equal(answer["status"], "error", answer)
                        assert "before the service was restarted" in answer["message"], answer
                with unit.session(bare) as s:
                    equal(s.value("y"), "1")
            with unit.session(bare) as s:	# made by this service
                s.well("import gamma", reset=True, dependencies=["gamma"])
                equal(install(s.client, "alpha", session=bare)["status"], "ok")
                s.well("import alpha", close=True)
            with unit.session(handle) as s:
                s.well("import alpha", reset=True)
            below = unit.stop()
            for name in environments(store):
                shutil.rmtree(os.path.join(store, name))
            unit.start()
            for one in (handle, b.handle):
                with unit.session(one) as s:
                    equal(s.call("x").status, "no_session")
            unit.all_gone(below, "without its packages")
            lost = audited(unit, "session-lost")
            equal({r["why"] for r in lost}, {"its packages are not in the store any more"})


def seen(ctx, *options):
    return subprocess.run([os.path.join(ctx.options.build, "mcp-python"), "status", *options],
                          capture_output=True, text=True, check=True,
                          timeout=ctx.seconds(60)).stdout


@test(private=True)
def who_looks_sees_which_were_kept(ctx):
    with Unit(ctx, "[admin]\nsocket = %%s/admin\noperators = uid:%d\n" % os.getuid()) as unit:
        operator = ("--admin-socket", unit.directory + "/admin")
        oneself = ("--socket", unit.directory + "/mcp.sock")

        def kept(*options):
            sessions = json.loads(seen(ctx, "--json", *options))["sessions"]
            return {s["session"][:10]: s["kept"] for s in sessions}
        old = unit.begin("x = 1")
        equal(kept(*operator), {old[:10]: False})
        unit.restart()
        with unit.session(old) as s:
            branch = s.branch("x += 1").handle
        new = unit.begin("x = 2")
        want = {old[:10]: True, branch[:10]: True, new[:10]: False}
        equal((kept(*operator), kept(*oneself)), (want, want))
        for options in (operator, oneself):
            rows = {line[:10]: ", kept " in line for line in seen(ctx, *options).split("\n")
                    if line.startswith("r-")}
            equal(rows, want)
        with unit.session(old) as s:
            s.well(reset=True)
        equal(kept(*operator)[old[:10]], False)


def end_of(unit, handle):
    """When it is closed, in seconds, if nobody uses it."""
    with unit.client() as c:
        mine = {m["session"]: m["expires"] for m in environment(c)["repl_sessions"]}
    return calendar.timegm(time.strptime(mine[handle], "%Y-%m-%dT%H:%M:%SZ"))


@test(private=True)
def its_time_goes_on(ctx):
    with Unit(ctx) as unit:
        handle = unit.begin("x = 1")
        before = end_of(unit, handle)
        unit.restart()
        after = end_of(unit, handle)
        assert abs(after - before) <= 2, (before, after)


if __name__ == "__main__":
    sys.exit(main(__doc__, modules=FEW_MODULES))
