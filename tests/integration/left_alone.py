#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What threads, children and tasks of a good cell do to their session while no cell runs: the next
cell has the state, or its answer says what became of it; nobody else notices.

A suite of tests/integration/run. What goes on in order is cells.py's."""

import os
import time

import calls
from harness import SOMEBODY, equal, main, test, tests
from repl import Session

tests.clear()	# those of repl.py

LIMITS = {"timeout_seconds": 3, "cpu_seconds": 5, "pids": 24}
BEGIN = """import asyncio, ctypes, fcntl, gc, mmap, os, resource, select, signal, socket, subprocess
import struct, sys, threading, time
x = [1]
libc = ctypes.CDLL(None, use_errno=True)
held = []
threading.Thread(target=threading.Event().wait, daemon=True, name='waits').start()
def others():
    return [int(n) for n in os.listdir('/proc') if n.isdigit() and int(n) not in (1, os.getpid())]
def in_child(what):
    if os.fork() == 0:
        try: what()
        finally: os._exit(0)
def ever(what):
    while True:
        try: what()
        except (OSError, MemoryError): time.sleep(.001)
def fill(fd):
    os.set_blocking(fd, False)
    try:
        while True: os.write(fd, b'x' * 4096)
    except BlockingIOError: pass
    os.set_blocking(fd, True)
"""

# The body of what begins a moment after its cell. Before it: what it does to the state at most.
# "kept": the next cell runs, and the answer need say nothing.
# "undone": the state is that of the last cell's end, and an answer says so.
# "lost": an answer says so.
KEPT, UNDONE, LOST = "kept", "undone", "lost"
ATTACKS = {
    # ---- memory ----
    "memory at once": (KEPT, "held.append(bytearray(b'x') * (1 << 30))"),
    "shared memory at once": (UNDONE, "held.append(mmap.mmap(-1, 1 << 30))\n"
                              "for i in range(0, 1 << 30, 4096): held[-1][i] = 1"),
    "memory slowly": (UNDONE, "while True:\n    m = mmap.mmap(-1, 1 << 20)\n    m.write(b'x' * (1 << 20))\n"
                      "    held.append(m)\n    time.sleep(.002)"),
    "memory of children": (UNDONE, "for _ in range(20):\n"
                           "    in_child(lambda: [held.append(bytearray(b'x') * (40 << 20)), time.sleep(600)])"),
    "memory of a file without a name": (KEPT, "fd = os.memfd_create('m')\n"
                                        "for _ in range(1 << 10): os.write(fd, b'x' * (1 << 20))"),
    "memory of a task": (UNDONE, "async def grow():\n    while True:\n        m = mmap.mmap(-1, 4 << 20)\n"
                         "        m.write(b'x' * (4 << 20))\n        held.append(m)\n"
                         "        await asyncio.sleep(.001)\n"
                         "loop.call_soon_threadsafe(lambda: held.append(loop.create_task(grow())))"),
    "buffers of pipes": (KEPT, "while True:\n    r, w = os.pipe()\n    held.append((r, w))\n"
                         "    try: fcntl.fcntl(w, 1031, 1 << 20)\n    except OSError: pass\n    fill(w)"),
    "buffers of sockets": (UNDONE, "while True:\n    a, b = socket.socketpair()\n    held.append((a, b))\n"
                           "    fill(a.fileno())"),
    # ---- processes ----
    "a fork bomb without a limit of its own": (
        UNDONE, "resource.setrlimit(resource.RLIMIT_NPROC, (60, resource.getrlimit(resource.RLIMIT_NPROC)[1]))\n"
        "while True:\n    try: os.fork()\n    except OSError: pass"),
    "a fork bomb": (UNDONE, "while True:\n    try: os.fork()\n    except OSError: pass"),
    "a bomb of threads": (UNDONE, "while True:\n    try: threading.Thread(target=time.sleep, args=(600,)).start()\n"
                          "    except RuntimeError: time.sleep(.001)"),
    "orphans of orphans": (UNDONE, "def orphan():\n    os.setsid()\n    while True:\n        try:\n"
                           "            if os.fork(): os._exit(0)\n        except OSError: pass\n"
                           "in_child(orphan)"),
    "forks by vfork of a thread": (UNDONE, "ever(lambda: subprocess.Popen(['sleep', '600'], close_fds=False))"),
    "zombies": (UNDONE, "ever(lambda: in_child(lambda: None))"),
    "a subreaper": (UNDONE, "libc.prctl(36, 1, 0, 0, 0)\ndef orphan():\n    if os.fork() == 0: time.sleep(600)\n"
                    "ever(lambda: in_child(orphan))"),
    "forks for ever, few at a time": (KEPT, "ever(lambda: (in_child(lambda: None), os.wait()))"),
    # ---- descriptors, files ----
    "descriptors": (KEPT, "ever(lambda: held.append(os.open('/dev/null', os.O_RDONLY)))"),
    "descriptors, by many threads": (
        KEPT, "take = lambda: held.append(os.open('/dev/null', os.O_RDONLY))\n"
        "for _ in range(12): threading.Thread(target=ever, args=(take,), daemon=True).start()"),
    "descriptors, with no limit of one's own": (
        UNDONE, "resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)\n"
        "ever(lambda: held.append(os.open('/dev/null', os.O_RDONLY)))"),
    "a workspace without room": (KEPT, "f = open('full', 'wb', 0)\never(lambda: f.write(b'x' * (1 << 20)))"),
    "a workspace without inodes": (KEPT, "n = iter(range(1 << 30))\n"
                                   "ever(lambda: open('f%d' % next(n), 'w').close())"),
    "all descriptors closed": (UNDONE, "os.closerange(0, 1 << 16)"),
    "the line closed": (UNDONE, "os.close(62)"),
    "others' lines closed in a child": (KEPT, "in_child(lambda: os.closerange(0, 1 << 16))"),
    "lies on the line": (UNDONE, "for kind in range(6):\n    for n in range(99):\n"
                         "        os.write(62, struct.pack('<IIi', kind, n, os.getpid()))"),
    "garbage on the line": (UNDONE, "os.set_blocking(62, False)\never(lambda: os.write(62, b'x' * 4096))"),
    "orders taken from the line": (UNDONE, "while True:\n    try: os.read(62, 4096)\n    except OSError: pass"),
    "the line given away": (UNDONE, "a, b = socket.socketpair()\nos.dup2(a.fileno(), 62)\ntime.sleep(600)"),
    "descriptors replaced": (UNDONE, "for fd in range(3, 100):\n    try: os.dup2(0, fd)\n    except OSError: pass"),
    # ---- output ----
    "a flood of print": (KEPT, "while True: print('x' * 9999)"),
    "a flood of the descriptor": (KEPT, "os.set_blocking(1, True)\nwhile True: os.write(1, b'x' * 65536)"),
    "a flood of a child": (KEPT, "subprocess.Popen(['yes', 'x' * 999])"),
    "the pipes of output made large": (KEPT, "for fd in range(100):\n    try: fcntl.fcntl(fd, 1031, 1 << 20), fill(fd)\n"
                                       "    except OSError: pass"),
    # ---- processor, the lock of the interpreter ----
    "the processor": (KEPT, "for _ in range(8): threading.Thread(target=lambda: ever(lambda: None)).start()"),
    "the processor, in children": (KEPT, "for _ in range(8): in_child(lambda: ever(lambda: None))"),
    "the interpreter's lock": (UNDONE, "ctypes.PyDLL(None).pause()"),
    "a task that does not give way": (UNDONE, "loop.call_soon_threadsafe(lambda: time.sleep(600))"),
    "a fork while the lock of memory is held": (
        KEPT, "libc.malloc.restype = ctypes.c_void_p\nlibc.free.argtypes = [ctypes.c_void_p]\n"
        "def turn():\n    while True: libc.free(libc.malloc(1 << 16))\n"
        "for _ in range(4): threading.Thread(target=turn).start()"),
    "a handler of forks that waits": (UNDONE, "os.register_at_fork(before=lambda: time.sleep(600))"),
    "a handler of forks that ends the copy": (UNDONE, "os.register_at_fork(after_in_child=lambda: os._exit(0))"),
    "a collector's callback that raises": (KEPT, "gc.callbacks.append(lambda *a: 1 / 0)"),
    # ---- signals ----
    "kill all": (UNDONE, "os.kill(-1, 9)"),
    "kill all, from a child": (LOST, "in_child(lambda: os.kill(-1, 9))"),
    "kill all, for ever": (UNDONE, "ever(lambda: os.kill(-1, 9))"),
    "kill all, for ever, from a child": (LOST, "in_child(lambda: ever(lambda: os.kill(-1, 9)))"),
    "kill the copies": (KEPT, "while True:\n    for n in others():\n        try: os.kill(n, 9)\n"
                        "        except OSError: pass"),
    "stop all": (UNDONE, "os.kill(-1, 19)"),
    "stop all, for ever": (UNDONE, "ever(lambda: os.kill(-1, 19))"),
    "stop all, for ever, from a child": (LOST, "in_child(lambda: ever(lambda: os.kill(-1, 19)))"),
    "stop oneself": (UNDONE, "os.kill(os.getpid(), 19)"),
    "stop and continue each other": (
        UNDONE, "def fight():\n    while True:\n        for n in (18, 19): os.kill(-1, n)\n"
        "for _ in range(3): in_child(fight)"),
    "stop the group": (UNDONE, "os.killpg(0, 19)"),
    "a mask of signals": (KEPT, "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 64))\ntime.sleep(600)"),
    "handlers ignored": (KEPT, "loop.call_soon_threadsafe(lambda: [libc.signal(n, 1) for n in range(1, 64)])"),
    "a timer's signal": (UNDONE, "loop.call_soon_threadsafe(signal.setitimer, signal.ITIMER_REAL, .001, .001)"),
    "a signal of a limit": (UNDONE, "for n in (24, 25, 10, 12, 14): os.kill(os.getpid(), n)"),
    "an abort": (UNDONE, "os.abort()"),
    "a segmentation fault": (UNDONE, "ctypes.string_at(0)"),
    # ---- the process itself ----
    "an exit": (UNDONE, "os._exit(0)"),
    "an exit of the main thread alone": (UNDONE, "loop.call_soon_threadsafe(lambda: libc.syscall(%d, 0))"
                                         % calls.number("exit")),
    "another program": (UNDONE, "os.execvp('sleep', ['sleep', '600'])"),
    "another program that kills": (LOST, "os.execvp('sh', ['sh', '-c', 'while :; do kill -9 -1; done'])"),
    "a program that does not start": (KEPT, "os.execv('/nothing', ['x'])"),
    "no memory any more": (UNDONE, "for line in open('/proc/self/maps'):\n"
                           "    if 'python' in line or 'libc' in line:\n"
                           "        a, b = (int(n, 16) for n in line.split()[0].split('-'))\n"
                           "        libc.munmap(ctypes.c_void_p(a), ctypes.c_size_t(b - a))"),
    "memory that no one may write": (UNDONE, "for line in open('/proc/self/maps'):\n"
                                     "    a, b = (int(n, 16) for n in line.split()[0].split('-'))\n"
                                     "    if 'heap' in line: libc.mprotect(ctypes.c_void_p(a), ctypes.c_size_t(b - a), 0)"),
    "not to be looked into": (KEPT, "libc.prctl(4, 0, 0, 0, 0)"),
    "limits taken": (UNDONE, "for n in range(16):\n    try: resource.setrlimit(n, (0, resource.getrlimit(n)[1]))\n"
                     "    except (OSError, ValueError): pass"),
    "limits taken for ever": (UNDONE, "for n in range(16):\n    try: resource.setrlimit(n, (0, 0))\n"
                              "    except (OSError, ValueError): pass"),
    "new namespaces": (KEPT, "for n in (0x20000000, 0x10000000, 0x20000): libc.unshare(n)"),
    "tracing": (KEPT, "for n in others():\n    libc.ptrace(16, n, 0, 0)\n    libc.ptrace(0x4206, n, 0, 0)"),
    "others' descriptors and memory": (
        KEPT, "for n in [1, *others()]:\n    for what in ('mem', 'fd/62', 'fd/0', 'oom_score_adj', 'attr/current'):\n"
        "        try: os.close(os.open('/proc/%d/%s' % (n, what), os.O_RDWR))\n        except OSError: pass"),
    "a group of its own": (KEPT, "in_child(lambda: (os.setsid(), in_child(lambda: time.sleep(600))))"),
    "another directory": (KEPT, "os.mkdir('gone')\nos.chdir('gone')\nos.rmdir('../gone')"),
    "the modules taken": (KEPT, "sys.modules.clear()"),
    "the loop closed": (KEPT, "type(loop).__mro__[1].close(loop)"),
    "the loop's descriptors closed": (UNDONE, "for n in os.listdir('/proc/self/fd'):\n"
                                      "    try:\n        if 'eventpoll' in os.readlink('/proc/self/fd/' + n): os.close(int(n))\n"
                                      "    except OSError: pass"),
}

NAMED = ("thread 'waits' has ended", "what earlier cells had started has ended",
         "threads and connections of earlier cells, if there were any, have ended")
# What becomes of a state, from the best on.
ORDER = [KEPT, UNDONE, LOST]


def beside(other):
    """What an attack does to others, who take their time."""
    for i in range(15):
        o = other.run("print(%d)" % i)
        equal((o.status, o.stdout), ("ok", "%d\n" % i), "another tenant: %r" % o)


def became(ctx, s, other, seen):
    """The next cells, up to one that has the state after the attack has begun, or until it is lost."""
    failed, end = 0, time.monotonic() + ctx.seconds(60)
    # A busy machine needs more cells until all processes of a bomb have ended.
    while failed < 6 or time.monotonic() < end:
        o = s.call("x if __import__('os').path.exists('/workspace/begun') else 0", 60, **LIMITS)
        seen.append((o.status, o.state, o.structured["not_carried"],
                     o.structured.get("background_stderr", "")[-200:], o.text[-300:]))
        if o.state == "lost" or not o.session or o.status == "no_session":
            assert "state of the session is lost" in o.text or \
                "state of this session was lost" in o.text or \
                "no such session any more: what held its state ended" in o.text or \
                "The session is gone: begin a new one" in o.text, repr(seen)
            return LOST
        if o.status != "ok" or o.state != "kept":
            assert o.state in ("rolled_back", "kept"), repr(seen)
            failed += 1
            continue
        if o.result["repr"] == "0" and not failed:
            assert time.monotonic() < end, "it does not begin: %r" % seen
            beside(other)
            continue
        equal(o.result["repr"], "[1]", repr(seen))
        told = " ".join(n for e in seen for n in e[2])
        if any(words in told for words in NAMED):
            return UNDONE
        # What is gone has to be named.
        o = s.call("any(t.name == 'waits' for t in threading.enumerate())", 60, **LIMITS)
        seen.append((o.status, o.state, o.structured["not_carried"], "", o.text[-300:]))
        assert o.status != "ok" or o.result and o.result["repr"] == "True", repr(seen)
        return UNDONE if failed else KEPT
    raise AssertionError("never: %r" % seen)


def attack(ctx, most, code, tries=5):
    seen = []
    with ctx.client(timeout=120) as client, \
         ctx.client(uid=SOMEBODY if os.getuid() == 0 else None) as other:
        s = Session(client)
        s.well(BEGIN + ("t = asyncio.create_task(asyncio.sleep(600))" if "loop" in code else ""),
               memory_mb=256)
        # While the lock is held no copy is made, and a session without one cannot go back. So this
        # attack begins between cells, when there is a copy that is younger than the cell's own. The
        # copies of later cells, and processes that help to make copies, do not last for two looks.
        wait = "    idle = lambda: before if os.path.exists('/proc/self/fd/63') else set(others())\n" \
            "    one = two = before\n" \
            "    while one & two <= before: time.sleep(.01); one, two = two, idle()\n" \
            if "PyDLL" in code else ""
        o = s.call("loop = asyncio.get_running_loop()\nbefore = set(others())\ndef run():\n%s"
                   "    open('begun', 'w').close()\n%s\n"
                   "t = threading.Timer(.05, run)\nt.daemon = True\nt.start()"
                   % (wait, "".join("    %s\n" % line for line in code.split("\n"))), **LIMITS)
        seen.append((o.status, o.state, o.structured["not_carried"], o.text[-300:]))
        beside(other)
        # An attack that begins before its cell's answer may end the session with it, which says so.
        got = LOST if o.state == "lost" else became(ctx, s, other, seen)
        # At the end of a cell there is a moment without a copy, and at the beginning of the next one
        # the attack can take what the copy is made with.
        if ORDER.index(got) > ORDER.index(most) and tries:
            return attack(ctx, most, code, tries - 1)
        assert ORDER.index(got) <= ORDER.index(most), "%s: %r" % (got, seen)
        if s.handle and got != LOST:
            s.call("y = 1", 60, **LIMITS)
            s.call(close=True)
        equal(other.run("6 * 7").result["repr"], "42")
        return "%s %r" % (got, [e[:4] for e in seen])


for name, row in ATTACKS.items():
    test(lambda ctx, row=row: attack(ctx, *row), name=name.replace(" ", "_").replace("'", "").replace(",", ""))


if __name__ == "__main__":
    main(__doc__)
