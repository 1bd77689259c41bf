"""Sessions of run_repl under the kernel's controllers: whom it ends when memory is short, what
is counted against whom, and what sleeps."""

import contextlib
import os
import re
import select
import time

from guest_tools import ALICE, CGROUP, Neighbour, client, pids, read, seconds, test
from harness import equal
from repl import Session

MIB = 1 << 20
STATE = "array = bytearray(b'x') * %d" % (60 * MIB)
CHECKSUM = "import zlib\nzlib.crc32(array)"


@contextlib.contextmanager
def begun(code="", uid=ALICE, **arguments):
    """A new session, closed at the end."""
    with client(uid, 120) as c:
        s = Session(c)
        s.well(code, seconds(60), **arguments)
        try:
            yield s
        finally:
            s.call(close=True)


def leaf_of(session, uid=ALICE):
    """The directory of its cgroup, found by what a cell runs there."""
    branch = "%s/tenants/%d" % (CGROUP, uid)
    id = session.start("import subprocess\nsubprocess.run(['sleep', '4343'])")
    session.client.flush()
    deadline = time.monotonic() + seconds(60)
    while time.monotonic() < deadline:
        for name in os.listdir(branch):
            for pid in pids(branch + "/" + name):
                with contextlib.suppress(OSError):
                    if read("/proc/%d/cmdline" % pid) == "sleep\x004343\x00":
                        session.client.cancel(id)
                        del session.client.pending[("int", id)]
                        return branch + "/" + name
    raise AssertionError("the session's cgroup is not found")


def number(leaf, name):
    return int(read(leaf + "/" + name))


def counter(leaf, name, key):
    return int(re.search(r"^%s (\d+)$" % key, read(leaf + "/" + name), re.M)[1])


def wait_frozen(leaf, want):
    """cgroup.events tells of a change as an exceptional condition."""
    deadline = time.monotonic() + seconds(30)
    with open(leaf + "/cgroup.events") as f:
        poll = select.poll()
        poll.register(f, select.POLLPRI)
        while re.search(r"^frozen (\d)$", f.read(), re.M)[1] != want:
            assert time.monotonic() < deadline, "frozen is not " + want
            poll.poll(max(0, deadline - time.monotonic()) * 1000)
            f.seek(0)


# Cells that run into the session's memory.max. Files are nobody's memory, and each of many children
# may be smaller than the state, but it is the cell that has to go.
OVER = {
    "it grows": "kept = []\nwhile True: kept.append(bytearray(1 << 22))",
    "it lets go of the state": "del array\nkept = []\nwhile True: kept.append(bytearray(1 << 22))",
    "its children are small": "import os, signal\nfor _ in range(12):\n    if os.fork() == 0:\n"
                              "        del array\n        x = bytearray(16 << 20)\n"
                              "        signal.pause()\nos.wait()\nos._exit(1)",
}
FILLS = ("import os\ndel array\nf = open('/tmp/x', 'wb')\nwhile True: f.write(bytes(1 << 20))")


def survives(s, code, what, want):
    o = s.call(code, seconds(120), timeout_seconds=60)
    equal((o.status, o.state), ("memory_limit", "rolled_back"), what)
    if want:
        equal(s.value(CHECKSUM, seconds(60)), want, what)


@test
def a_session_survives_cells_without_memory():
    with begun(STATE, memory_mb=160) as s:
        want = s.value(CHECKSUM, seconds(60))
        leaf = leaf_of(s)
        equal(number(leaf, "memory.max"), 160 * MIB)
        equal(number(leaf, "memory.oom.group"), 0)
        kills = counter(leaf, "memory.events", "oom_kill")
        with Neighbour():
            for what, code in OVER.items():
                survives(s, code, what, want)
                now = counter(leaf, "memory.events", "oom_kill")
                assert now > kills, "%s: the kernel has ended nobody" % what
                kills = now


@test
def a_session_survives_files_that_fill_its_memory():
    with begun(STATE, memory_mb=160) as s:
        want = s.value(CHECKSUM, seconds(60))
        s.well("1", checkpoint="before")
        for _ in range(2):	# the second time there is no memory left to begin with
            survives(s, FILLS, "files", None)
        s.well("import os\nos.unlink('/tmp/x')", seconds(60))
        equal(s.value(CHECKSUM, seconds(60)), want)
        s.well("1", restore="before")
        equal(s.value(CHECKSUM, seconds(60)), want)


@test
def processes_of_a_cell_are_bounded():
    with begun("x = 1") as s:
        leaf = leaf_of(s)
        hits = counter(leaf, "pids.events", "max")
        for then, state in (("raise", "kept"), ("pass", "rolled_back"),
                            ("os._exit(1)", "rolled_back")):
            o = s.call("import os, signal\nwhile True:\n    try:\n"
                       "        if os.fork() == 0: signal.pause()\n    except OSError: " + then,
                       seconds(60), pids=12, timeout_seconds=4)
            equal((o.status, o.state), ("pids_limit", state), then)
            equal(s.value("x", seconds(60)), "1")
        assert counter(leaf, "pids.events", "max") > hits
        s.well("1", pids=12)
        assert 12 <= number(leaf, "pids.max") <= 18, number(leaf, "pids.max")
        assert number(leaf, "pids.current") <= 3, "left: %d" % number(leaf, "pids.current")
        # What its states take is not held against the next cell.
        for i in range(6):
            s.well("x += 1", checkpoint="c%d" % i)
        o = s.well("import os\nfor _ in range(10):\n    if os.fork() == 0: os._exit(0)\n"
                   "for _ in range(10): os.wait()", pids=12)
        equal(s.value("x"), "7")


@test
def idle_sessions_are_frozen():
    with begun("import threading, time\nx = 1") as s:
        leaf = leaf_of(s)
        wait_frozen(leaf, "1")
        equal(read(leaf + "/cgroup.freeze").strip(), "1")
        used = counter(leaf, "cpu.stat", "usage_usec")
        with client() as c:
            equal(c.run("print(1)", seconds(60)).stdout, "1\n")
        equal(counter(leaf, "cpu.stat", "usage_usec"), used, "processor time while frozen")
        started = time.monotonic()
        equal(s.value("x", seconds(60)), "1")
        took = time.monotonic() - started
        b = s.branch("x += 1\nx")
        wait_frozen(leaf, "1")
        equal((b.value("x"), s.value("x")), ("2", "1"))
        b.well(close=True)
        wait_frozen(leaf, "1")
    deadline = time.monotonic() + seconds(30)
    while os.path.exists(leaf):	# a frozen one has to be thawed to end
        assert time.monotonic() < deadline, "its cgroup is still there"
        select.select([], [], [], 0.02)
    return "thawed and answered within %.0f ms" % (took * 1000)


@test
def states_are_charged_to_their_tenant():
    uid = 4010		# nobody else's
    tenant = "%s/tenants/%d" % (CGROUP, uid)
    with begun("parts = []", uid, memory_mb=256) as s:
        leaf = leaf_of(s, uid)
        before = number(leaf, "memory.current")
        for i in range(3):	# each checkpoint holds what the next one has given up
            s.well("parts = [bytearray(b'x') * %d]" % (20 * MIB), seconds(60),
                   checkpoint="c%d" % i)
        held = number(leaf, "memory.current")
        assert held - before > 55 * MIB, "three states of 20 MiB are %d MiB" % (
            (held - before) // MIB)
        assert number(tenant, "memory.current") >= held - 4 * MIB
        b = s.branch("1")
        assert number(leaf, "memory.current") - held < 10 * MIB, "a branch is a copy"
        b.well(close=True)
        o = s.call("kept = []\nwhile True: kept.append(bytearray(1 << 22))", seconds(60))
        equal((o.status, o.state), ("memory_limit", "rolled_back"))
        assert "256 MiB" in o.text, o.text
        for i in range(3):
            equal(s.well("len(parts[0])", restore="c%d" % i).result["repr"], str(20 * MIB))
    return "%d MiB for three checkpoints of 20" % ((held - before) // MIB)
