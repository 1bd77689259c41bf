#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Every limit is provoked and reported under its own name, with the limit and the peak; wishes
above a cap are refused, by name; another tenant does not notice."""

import os
import time

from harness import SOMEBODY, Skip, equal, main, test
from mcpclient import Client, RpcError, id_key, wait_all

MIB = 1 << 20


def provoke(ctx, status, script, **arguments):
    with ctx.client() as client:
        started = time.monotonic()
        o = client.run(script, ctx.seconds(90), **arguments)
        o.seconds = time.monotonic() - started
        equal(o.status, status, "status of %r" % o)
        assert o.is_error and o.error["message"], "no message: %r" % o
        ctx.healthy(client)
    return o


@test
def timeout(ctx):
    o = provoke(ctx, "timeout", "import time\nprint('before', flush=True)\ntime.sleep(60)",
                timeout_seconds=1)
    assert 1000 <= o.duration_ms <= 1000 + 4000 * ctx.slow, o.duration_ms
    assert "1 s" in o.error["message"] or "1.0 s" in o.error["message"], o.error["message"]
    equal(o.stdout, "before\n", "what was written before")


@test
def timeout_of_a_fraction(ctx):
    o = provoke(ctx, "timeout", "import time\ntime.sleep(60)", timeout_seconds=0.3)
    assert 300 <= o.duration_ms <= 300 + 4000 * ctx.slow, o.duration_ms


@test
def timeout_of_c_code(ctx):
    provoke(ctx, "timeout", "import re\nre.match(r'(a+)+$', 'a' * 64 + 'b')", timeout_seconds=1)


@test
def timeout_of_a_stopped_process(ctx):
    provoke(ctx, "timeout", "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)",
            timeout_seconds=1)


@test
def timeout_of_children(ctx):
    provoke(ctx, "timeout", "import os\nif os.fork() == 0:\n    os.setsid()\n"
            "while True:\n    __import__('time').sleep(1)", timeout_seconds=1)


@test
def timeout_of_a_thread_at_the_end(ctx):
    provoke(ctx, "timeout", "import threading, time\n"
            "threading.Thread(target=time.sleep, args=(60,)).start()", timeout_seconds=1)


@test
def timeout_in_atexit(ctx):
    provoke(ctx, "timeout", "import atexit, time\natexit.register(time.sleep, 60)",
            timeout_seconds=1)


@test
def timeout_in_repr(ctx):
    provoke(ctx, "timeout", "import time\nclass A:\n    def __repr__(self):\n        time.sleep(1000)\nA()",
            timeout_seconds=1)


@test
def timeout_while_ignoring_all_signals(ctx):
    provoke(ctx, "timeout", "import signal, time\nfor s in signal.valid_signals():\n"
            "    try: signal.signal(s, signal.SIG_IGN)\n    except (OSError, ValueError): pass\n"
            "while True: time.sleep(1)", timeout_seconds=1)


@test
def cpu_limit(ctx):
    o = provoke(ctx, "cpu_limit", "while True: pass", cpu_seconds=1, timeout_seconds=60)
    assert 900 <= o.cpu_ms <= 1000 + 4000 * ctx.slow, o.cpu_ms
    assert "1" in o.error["message"], o.error["message"]


@test
def cpu_limit_is_of_all_processes_together(ctx):
    o = provoke(ctx, "cpu_limit", "import os\nfor _ in range(3): os.fork()\nwhile True: pass",
                cpu_seconds=2, timeout_seconds=60)
    assert o.cpu_ms >= 1800, o.cpu_ms


@test
def cpu_limit_of_children_that_nobody_waits_for(ctx):
    """With SIGCHLD ignored children take what they used with them."""
    script = ("import os, signal, time\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
              "while True:\n    pid = os.fork()\n    if pid == 0:\n"
              "        while time.process_time() < 0.3: pass\n        os._exit(0)\n"
              "    try: os.waitpid(pid, 0)\n    except ChildProcessError: pass")
    provoke(ctx, "cpu_limit", script, cpu_seconds=2, timeout_seconds=60)


@test
def cpu_of_children_is_counted_once(ctx):
    script = ("import os, time\nfor _ in range(4):\n    pid = os.fork()\n    if pid == 0:\n"
              "        while time.process_time() < 0.4: pass\n        os._exit(0)\n"
              "    os.waitpid(pid, 0)\nprint('done')")
    with ctx.client() as client:
        o = client.run(script, cpu_seconds=3)
        equal((o.status, o.stdout), ("ok", "done\n"), repr(o))


@test
def cpu_is_not_time(ctx):
    with ctx.client() as client:
        o = client.run("import time\ntime.sleep(1.5)\nprint('slept')", cpu_seconds=1)
        equal((o.status, o.stdout), ("ok", "slept\n"), "status")


def eats(mib):
    """Blocks are large, so that some memory is left when the next one does not fit:
    AddressSanitizer's own allocator does not survive without."""
    return ("print('before', flush=True)\nblocks = []\nfor i in range(%d // 20):\n"
            "    blocks.append(b'x' * (20 << 20))\nprint('had it all')" % mib)


@test
def memory_limit(ctx):
    with ctx.client() as client:
        o = client.run(eats(400), memory_mb=128)
        # Without a memory controller the interpreter may see the end of its data first.
        assert o.status == "memory_limit" or (
            o.status == "error" and o.error["type"] == "MemoryError"), repr(o)
        assert "had it all" not in o.stdout, repr(o)
        if o.status == "memory_limit":
            assert "128" in o.error["message"] and "peak" in o.error["message"], o.error
        o = client.run(eats(60), memory_mb=128)
        equal((o.status, o.stdout), ("ok", "before\nhad it all\n"), "below the limit")
        ctx.healthy(client)


@test
def memory_that_nobody_counts_is_refused(ctx):
    """Samples miss what is quick. Without a controller the first wall is RLIMIT_DATA, for which
    what is only asked for counts too."""
    ask = "import mmap\nlen(mmap.mmap(-1, 140 << 20, mmap.MAP_PRIVATE))"
    with ctx.client() as client:
        equal(client.run(ask, memory_mb=128).status, "memory_limit" if ctx.fallback else "ok")
        equal(client.run("len(bytearray(140 << 20))", memory_mb=128).status, "memory_limit")
        o = client.run("len(bytearray(100 << 20))", memory_mb=128)
        equal((o.status, o.result and o.result["json"]), ("ok", 100 << 20), repr(o))


@test
def memory_limit_of_children_together(ctx):
    script = ("import os, time\nfor i in range(8):\n    if os.fork() == 0:\n"
              "        b = b'x' * (64 << 20)\n        time.sleep(20)\n        os._exit(0)\n"
              "time.sleep(20)\nprint('had it all')")
    o = provoke(ctx, "memory_limit", script, memory_mb=256)
    assert "256" in o.error["message"], o.error["message"]
    equal(o.error["advice"], "give memory_mb up to 2048")


@test
def memory_limit_of_copies_on_write(ctx):
    """Memory that children share with their parent becomes their own when they write to it."""
    script = ("import os, time\nb = bytearray(100 << 20)\n"
              "def write():\n    for at in range(0, len(b), 4096): b[at] = 1\nwrite()\n"
              "for i in range(8):\n    if os.fork() == 0:\n        time.sleep(%d)\n"
              "        write()\n        time.sleep(20)\n        os._exit(0)\n"
              "time.sleep(%d)\nprint('had it all')")
    with ctx.client() as client:
        o = client.run(script % (60, 2), ctx.seconds(60), memory_mb=400, timeout_seconds=50)
        equal((o.status, o.stdout), ("ok", "had it all\n"), repr(o))
    provoke(ctx, "memory_limit", script % (1, 20), memory_mb=400, timeout_seconds=50)


@test
def memory_limit_of_shared_memory(ctx):
    script = ("import mmap\nm = mmap.mmap(-1, 200 << 20)\n"
              "for at in range(0, 200 << 20, 4096): m[at] = 1\nimport time\ntime.sleep(20)\n"
              "print('had it all')")
    provoke(ctx, "memory_limit", script, memory_mb=128)


@test
def memory_limit_of_shared_memory_out_of_sight(ctx):
    """Pages that no process has in its tables are still in the object that is mapped."""
    script = ("import mmap, time\nblocks = []\nfor i in range(200):\n"
              "    m = mmap.mmap(-1, 1 << 20)\n    m.write(b'x' * (1 << 20))\n"
              "    m.madvise(mmap.MADV_DONTNEED)\n    blocks.append(m)\n"
              "time.sleep(20)\nprint('had it all')")
    provoke(ctx, "memory_limit", script, memory_mb=128)


@test
def memory_limit_without_first_threads(ctx):
    """A process whose first thread has ended shows nothing of its memory in its own files."""
    script = ("import ctypes, os, threading, time\ndef hold():\n    global b\n"
              "    b = b'x' * (64 << 20)\n    time.sleep(20)\n    os._exit(0)\n"
              "for i in range(8):\n    if os.fork() == 0:\n"
              "        threading.Thread(target=hold).start()\n"
              "        ctypes.CDLL(None).syscall(60 if os.uname().machine == 'x86_64' else 93, 0)\n"
              "time.sleep(20)\nprint('had it all')")
    provoke(ctx, "memory_limit", script, memory_mb=256)


@test
def memory_limit_of_sockets(ctx):
    """What lies in sockets that nobody reads is the sender's memory."""
    script = ("import os, socket, time\nfor i in range(4):\n    if os.fork() == 0:\n"
              "        held = []\n        for _ in range(200):\n"
              "            for s in (pair := socket.socketpair()):\n"
              "                s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 24)\n"
              "                s.setblocking(False)\n                held.append(s)\n"
              "                try:\n                    while True: s.send(b'x' * 32768)\n"
              "                except BlockingIOError: pass\n"
              "        time.sleep(20)\ntime.sleep(20)\nprint('had it all')")
    provoke(ctx, "memory_limit", script, memory_mb=128)


@test
def buffers_of_tcp_are_small(ctx):
    script = ("from socket import *\ns = socket()\n"
              "[s.getsockopt(SOL_SOCKET, o) for o in (SO_RCVBUF, SO_SNDBUF)]")
    with ctx.client() as client:
        sizes = client.run(script).result["json"]
    equal(sizes, [65536, 65536])


@test
def memory_limit_of_files(ctx):
    script = ("f = open('/dev/shm/f', 'wb')\nfor i in range(200): f.write(b'x' * (1 << 20))\n"
              "f.flush()\nimport time\ntime.sleep(20)\nprint('had it all')")
    provoke(ctx, "memory_limit", script, memory_mb=128)


# More threads than half of what the service's user may have, in scripts that are each within
# their own limit.
@test(alone=True, private=True, root=True)
def threads_of_one_tenant_leave_room_for_others(ctx):
    script = ("import threading, time\nthreading.stack_size(65536)\n"
              "try:\n    for _ in range(200): threading.Thread(target=time.sleep, args=(300,)).start()\n"
              "except RuntimeError: pass\ntime.sleep(300)")
    with ctx.private("[limits]\npids = 250\n", wrap=("prlimit", "--nproc=1500:1500")) as s, \
            ctx.client(path=s.socket) as client, ctx.client(path=s.socket, uid=SOMEBODY) as other:
        if not type(ctx)(ctx.options, s).fallback:
            raise Skip("a controller counts processes here")
        ids = {client.start_script(script) for _ in range(4)}
        client.until("one of them ends", lambda: client.answers, ctx.seconds(60))
        first = client.outcome(next(id for id in ids if id_key(id) in client.answers))
        equal(first.status, "pids_limit", repr(first))
        assert "your running scripts" in first.error["message"], first.error
        for _ in range(5):
            o = other.run("import os\nos.system('true')\nprint(1)", ctx.seconds(60))
            equal((o.status, o.stdout), ("ok", "1\n"), repr(o))


@test
def pids_limit(ctx):
    script = ("import os, time\nn = 0\nwhile n < 500:\n    if os.fork() == 0:\n"
              "        time.sleep(30)\n        os._exit(0)\n    n += 1\nprint('had them all')")
    o = provoke(ctx, "pids_limit", script, pids=20)
    assert "had them all" not in o.stdout, repr(o)
    assert "20" in o.error["message"], o.error["message"]


@test
def pids_limit_of_threads(ctx):
    script = ("import threading, time\nfor i in range(500):\n"
              "    threading.Thread(target=time.sleep, args=(30,), daemon=True).start()\n"
              "print('had them all')")
    o = provoke(ctx, "pids_limit", script, pids=20)
    assert "had them all" not in o.stdout, repr(o)


@test
def pids_survived_is_ok(ctx):
    """A script that meets the limit, copes and ends well has ended well."""
    script = ("import os, time\nn = 0\ntry:\n    while n < 500:\n        if os.fork() == 0:\n"
              "            time.sleep(30)\n            os._exit(0)\n        n += 1\n"
              "except BlockingIOError:\n    print('coped with', n)\n"
              "time.sleep(0.2)	# long enough for whoever samples")
    with ctx.client() as client:
        o = client.run(script, pids=20)
        equal((o.status, o.stdout), ("ok", "coped with 19\n"), repr(o))


@test
def output_limit(ctx):
    o = provoke(ctx, "output_limit", "import sys\nwhile True: sys.stdout.write('x' * 65536)")
    assert o.truncated["stdout_dropped"] > 32 * MIB, o.truncated
    assert "64" in o.error["message"], o.error["message"]
    assert o.line_bytes < 8 * MIB, o.line_bytes


@test
def output_limit_of_both_streams_together(ctx):
    provoke(ctx, "output_limit", "import os\nwhile True:\n    os.write(1, b'o' * 65536)\n"
            "    os.write(2, b'e' * 65536)")


@test
def output_is_cut_in_the_middle(ctx):
    with ctx.client() as client:
        o = client.run("for i in range(300000): print('%09d' % i)", ctx.seconds(60),
                       timeout_seconds=int(ctx.seconds(30)))
        equal(o.status, "ok", "status")
        assert o.stdout.startswith("000000000\n000000001\n"), o.stdout[:40]
        assert o.stdout.endswith("000299999\n"), o.stdout[-40:]
        written = 300000 * 10
        kept = sum(len(line) + 1 for line in o.stdout.split("\n") if line.isdigit())
        dropped = o.truncated["stdout_dropped"]
        assert abs(written - kept - dropped) <= 64, (written, kept, dropped)
        assert MIB * 0.9 <= kept <= MIB * 1.1, kept


DISK = "[profile basic]\ndisk_bytes = 64M\n"


@test(private=True)
def disk_limit(ctx):
    """The operator's bound is named, and what to do, whichever library meets it."""
    with ctx.private(DISK) as service, ctx.client(path=service.socket) as client:
        for script in ("f = open('f', 'wb', buffering=0)\nfor i in range(2000): f.write(b'x' * (1 << 20))",
                       "import sqlite3\nc = sqlite3.connect('d')\nc.execute('create table t(x)')\n"
                       "for i in range(200): c.execute('insert into t values(zeroblob(1000000))')",
                       "try:\n    with open('f', 'wb', buffering=0) as f:\n        while True: f.write(bytes(1 << 20))\n"
                       "except OSError as e: raise RuntimeError('cannot save: %s' % e)"):
            o = client.run(script)
            equal(o.status, "disk_limit", repr(o))
            assert "disk limit of 64 MiB or 65536 files reached" in o.error["message"], o.error["message"]
            assert "remove files, or have the operator raise it" in o.error["message"], o.error["message"]


@test(single=True)
def files_have_the_memory_of_the_call(ctx):
    """By default the disk is no smaller than the memory that a call asks for."""
    fill = "f = open('%s/f', 'wb', buffering=0)\nfor i in range(%d): k = f.write(b'x' * (1 << 20))\nf.tell() >> 20"
    with ctx.client() as client:
        o = client.run(fill % ("/workspace", 300), timeout_seconds=60)
        equal((o.status, o.result["repr"]), ("ok", "300"), repr(o))
        o = client.run(fill % ("/tmp", 600), memory_mb=1024, timeout_seconds=60)
        equal((o.status, o.result["repr"]), ("ok", "600"), repr(o))
        o = client.run(fill % ("/tmp", 3000), memory_mb=128, timeout_seconds=60)
        equal(o.status, "memory_limit", repr(o))
        assert "files in /workspace and /tmp count" in o.error["message"], o.error


@test
def disk_limit_of_inodes(ctx):
    provoke(ctx, "disk_limit", "import os\nfor i in range(200000): os.mknod('f%d' % i)",
            memory_mb=1024)


@test(private=True)
def disk_full_survived_is_ok(ctx):
    script = ("try:\n    with open('/tmp/f', 'wb', buffering=0) as f:\n        while True:\n"
              "            f.write(b'x' * (1 << 20))\nexcept OSError as e:\n    print(e.strerror)\n"
              "import os\nos.unlink('/tmp/f')\nopen('g', 'w').write('fits again')")
    with ctx.private(DISK) as service, ctx.client(path=service.socket) as client:
        o = client.run(script, memory_mb=1024)
        equal((o.status, o.stdout), ("ok", "No space left on device\n"), repr(o))


CAPS = {"timeout_seconds": (601, 600), "cpu_seconds": (601, 600), "memory_mb": (2049, 2048),
        "pids": (513, 512)}


def add_cap(name, above, cap):
    @test(name="above_cap_" + name)
    def above_cap(ctx):
        with ctx.client() as client:
            for value in (above, above * 1000000, 1e300 if "seconds" in name else 2 ** 53):
                o = client.run("print('ran')", **{name: value})
                assert o.refused and o.is_error and "ran" not in o.stdout, repr(o)
                assert name in o.text and str(cap) in o.text, "%r does not name field and cap" % o
            o = client.run("print('ran')", **{name: cap})
            equal((o.status, o.stdout), ("ok", "ran\n"), "at the cap")


for cap_name, (cap_above, cap_value) in CAPS.items():
    add_cap(cap_name, cap_above, cap_value)


@test
def odd_arguments(ctx):
    with ctx.client() as client:
        for arguments in ({"timeout_seconds": 0}, {"timeout_seconds": -1}, {"pids": 0},
                          {"pids": 1.5}, {"memory_mb": "64 MB"}, {"memory_mb": True},
                          {"memory_mb": -5}, {"args": "x"}, {"args": [1]}, {"args": ["a\0b"]},
                          {"args": ["x"] * 257}, {"stdin": 5},
                          {"profile": "nope"}, {"profile": 1}, {"unknown": 1}, {"timeout": 5},
                          {"stdin": "x" * (8 * MIB + 1)}, {"script": 5}, {"script": None},
                          {"script": "#" * (4 * MIB + 1)}):
            id = client.request("tools/call", {
                "name": "run_script", "arguments": {"script": "print('ran')", **arguments}})
            o = client.outcome(id)
            assert o.refused and o.is_error and "ran" not in o.stdout, "%.80r: %r" % (arguments, o)
            assert list(arguments)[0] in o.text, "%.80r: %r" % (arguments, o)
        for arguments in ({}, {"text": "print(1)"}):
            o = client.outcome(client.request("tools/call", {"name": "run_script",
                                                             "arguments": arguments}))
            assert o.refused and "script" in o.text, repr(o)
        ctx.healthy(client)


def misbehave(client):
    """Starts one of each kind of trouble; returns the ids."""
    return [client.start_script("while True: pass", cpu_seconds=2),
            client.start_script("import sys\nwhile True: sys.stdout.write('x' * 65536)"),
            client.start_script(eats(4000), memory_mb=128),
            client.start_script("import os, time\nwhile True:\n    os.fork()", pids=30,
                                timeout_seconds=3),
            client.start_script("import time\ntime.sleep(60)", timeout_seconds=2)]


@test(alone=True)
def another_tenant_goes_on(ctx):
    """While one tenant meets its limits, another's scripts run as if alone."""
    uid = SOMEBODY if os.getuid() == 0 else None
    with ctx.client() as bad, ctx.client(uid=uid) as good:
        def slowest(n):
            worst = 0
            for i in range(n):
                started = time.monotonic()
                o = good.run("print(%d * 7)" % i)
                worst = max(worst, time.monotonic() - started)
                equal((o.status, o.stdout), ("ok", "%d\n" % (i * 7)), repr(o))
                bad.pump(0)
            return worst

        alone = slowest(20)		# what this machine needs without any trouble
        ids = misbehave(bad)
        worst = slowest(40)
        statuses = [bad.outcome(id, ctx.seconds(60)).status for id in ids]
        equal(statuses[:2], ["cpu_limit", "output_limit"], "statuses")
        assert statuses[2] in ("memory_limit", "error"), statuses
        assert statuses[3] in ("pids_limit", "timeout"), statuses
        equal(statuses[4], "timeout", "statuses")
    assert worst < 5 * ctx.slow + 10 * alone, "the other tenant waited %.1f s, alone %.1f s" % (
        worst, alone)
    return "slowest answer of the other tenant: %.3f s, alone %.3f s" % (worst, alone)


def look_seconds(mib):
    """How long the kernel walks over a process of that size, to tell what it shares."""
    block, took = bytearray(mib << 20), []
    for at in range(0, len(block), 4096):
        block[at] = 1
    for _ in range(5):
        started = time.monotonic()
        with open("/proc/self/smaps_rollup", encoding="utf-8") as f:
            f.read()
        took.append(time.monotonic() - started)
    return sorted(took)[2]


@test(alone=True)
def expensive_looks_delay_nobody(ctx):
    """Many processes that share much memory: the memory of each is measured step by step."""
    if not ctx.fallback:
        raise Skip("the kernel counts memory here")
    n, mib = 150, 400
    script = ("import os, time\nb = bytearray(%d << 20)\nfor at in range(0, len(b), 4096): b[at] = 1\n"
              "for i in range(%d):\n    if os.fork() == 0:\n        time.sleep(300)\n"
              "        os._exit(0)\ntime.sleep(6)\nprint('all')" % (mib, n))
    with ctx.private("[limits]\nmemory_max_mb = 4096\npids_max = 512\n") as s, \
            Client.connect(s.socket) as heavy, Client.connect(s.socket) as other:
        id = heavy.start_script(script, memory_mb=1024, pids=256, timeout_seconds=200)
        waits = []
        while heavy.pending:
            started = time.monotonic()
            other.ask("ping")
            waits.append(time.monotonic() - started)
            heavy.pump(0.01)
        o = heavy.outcome(id)
        equal((o.status, o.stdout), ("ok", "all\n"), repr(o))
        # Together they are far above the limit, if each shared page counts for each process.
        assert o.peak_memory_bytes < 1024 * MIB, o.peak_memory_bytes
        whole = n * look_seconds(mib)
        assert max(waits) < whole / 4, "a ping took %.3f s, a look at all takes %.3f s" % (
            max(waits), whole)
    return "longest ping %.3f s, a look at all %.3f s" % (max(waits), whole)


@test
def no_leaf_keeps_limits_of_before(ctx):
    """An execution with small limits leaves nothing of them to the next."""
    with ctx.client() as client:
        for _ in range(6):
            client.run("1", memory_mb=32, pids=3, cpu_seconds=1, timeout_seconds=1)
        o = client.run("import threading, time\n"
                       "ts = [threading.Thread(target=time.sleep, args=(0.2,))\n"
                       "      for _ in range(20)]\n"
                       "[t.start() for t in ts]; [t.join() for t in ts]\n"
                       "b = b'x' * (100 << 20)\ntime.sleep(1.2)\nprint(len(b))")
        equal((o.status, o.stdout), ("ok", "%d\n" % (100 << 20)), repr(o))


@test(single=True)
def too_many_calls_are_overloaded(ctx):
    """Past the queue the answer comes at once, says so and when to try again."""
    clients = [ctx.client(timeout=120) for _ in range(12)]
    outcomes = []
    try:
        asked = [(c, c.start_script("import time\ntime.sleep(0.5)"))
                 for _ in range(60) for c in clients]
        wait_all(clients, ctx.seconds(120))
        outcomes = [c.outcome(id) for c, id in asked]
        kinds = {}
        for o in outcomes:
            kinds[o.status] = kinds.get(o.status, 0) + 1
        assert set(kinds) == {"ok", "overloaded"}, kinds
        late = next(o for o in outcomes if o.status == "overloaded")
        assert late.structured["retry_after_ms"] > 0 and late.error["message"], repr(late)
        ctx.healthy(*clients[:2])
    finally:
        for client in clients:
            client.close()
    return str(kinds)


@test(single=True)
def too_many_calls_of_one_connection(ctx):
    """More calls than a connection may have open are refused one by one, the rest is run."""
    with ctx.client(timeout=120) as client:
        ids = [client.start_script("import time\ntime.sleep(0.05)") for _ in range(1200)]
        answered = refused = 0
        for id in ids:
            try:
                assert client.outcome(id).status in ("ok", "overloaded")
                answered += 1
            except RpcError as e:
                equal(e.code, -32603, "code")
                refused += 1
        assert answered >= 64 and refused, (answered, refused)
        ctx.healthy(client)
    return "%d run, %d refused" % (answered, refused)


main(__doc__)
