# SPDX-License-Identifier: Apache-2.0
"""Sessions of run_repl under the kernel's controllers: whom it ends when memory is short, what
is counted against whom, and what sleeps."""

import contextlib
import os
import re
import select
import signal
import time

from guest_tools import (ALICE, BOB, CGROUP, UNIT, Neighbour, client, hold, main_pid, pids, read,
                         seconds, sh, show, sleepers, test, wait_ended)
from harness import equal
from repl import Session
from waits import until, until_equal

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


def wait_sleeping(uid, what):
    """The directory of the cgroup in which sleep runs with this argument."""
    branch = "%s/tenants/%d" % (CGROUP, uid)
    return until("the session's cgroup is found", lambda: next(
        (branch + "/" + name for name in os.listdir(branch) if sleepers(branch + "/" + name, what)), None))


def leaf_of(session, uid=ALICE):
    """The directory of its cgroup, found by what a cell runs there."""
    id = session.start("import subprocess\nsubprocess.run(['sleep', '4343'])")
    session.client.flush()
    leaf = wait_sleeping(uid, "4343")
    session.client.cancel(id)
    del session.client.pending[("int", id)]
    return leaf


def number(leaf, name):
    return int(read(leaf + "/" + name))


def counter(leaf, name, key):
    return int(re.search(r"^%s (\d+)$" % key, read(leaf + "/" + name), re.M)[1])


def wait_frozen(leaf, want):
    """cgroup.events tells of a change as an exceptional condition."""
    with open(leaf + "/cgroup.events") as f:
        poll = select.poll()
        poll.register(f, select.POLLPRI)

        def frozen():
            f.seek(0)
            return re.search(r"^frozen (\d)$", f.read(), re.M)[1]
        until_equal("frozen", frozen, want, wait=lambda left: poll.poll(left * 1000))


# Cells that run into the session's memory.max. The memory of files belongs to no process, and each
# of many children may be smaller than the state, but it is the cell that has to go.
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
                assert now > kills, "%s: the kernel has ended no process" % what
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
def a_session_survives_what_grows_between_cells():
    """The kernel ends the process that goes on, and not its copy."""
    with begun(STATE, memory_mb=160) as s:
        want = s.value(CHECKSUM, seconds(60))
        s.well("import threading, time\ndef grow():\n    time.sleep(1)\n    kept = []\n"
               "    while True: kept.append(bytearray(b'x') * (1 << 22))\n"
               "threading.Thread(target=grow).start()", seconds(60))
        o = None

        def is_ended():
            nonlocal o
            o = s.call("1", seconds(120))
            return o.status == "memory_limit" or o.structured["not_carried"]
        # It is ended between cells or, when it comes at that time, with a cell.
        until(lambda: "its end is told: %r" % o, is_ended, wait=lambda left: time.sleep(2))
        equal(s.value(CHECKSUM, seconds(60)), want)


@test
def a_session_survives_because_its_cells_weigh_more():
    """From a cell's first line: the kernel must not end the state in its place."""
    with begun("def weight(): return int(open('/proc/self/oom_score_adj').read())") as s:
        for _ in range(30):
            equal(s.value("weight()"), "1000")


@test
def processes_of_a_cell_are_bounded():
    with begun("x = 1") as s:
        leaf = leaf_of(s)
        hits = counter(leaf, "pids.events", "max")
        for then, state in (("raise", "kept"), ("pass", "rolled_back"),
                            ("os._exit(1)", "rolled_back")):
            o = s.call("import os, signal\nwhile True:\n    try:\n"
                       "        if os.fork() == 0: signal.pause()\n    except OSError: " + then,
                       seconds(60), pids=12, timeout_seconds=12 if then == "pass" else 60)
            equal((o.status, o.state), ("pids_limit", state), then)
            equal(s.value("x", seconds(60)), "1")
        assert counter(leaf, "pids.events", "max") > hits
        s.well("1", pids=12)
        assert 12 <= number(leaf, "pids.max") <= 18, number(leaf, "pids.max")
        # The copy of the last cell is ended, and the next one made, while the answer is read.
        until(lambda: "%d processes are left" % number(leaf, "pids.current"),
              lambda: number(leaf, "pids.current") <= 3)
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
    # A frozen one has to be thawed to end.
    until("its cgroup is gone", lambda: not os.path.exists(leaf))
    return "thawed and answered within %.0f ms" % (took * 1000)


@test
def states_are_charged_to_their_tenant():
    uid = 4010		# of no other test
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


@test
def a_session_s_memory_limit_is_raised():
    # Pages cost much here on a busy machine.
    long = {"timeout_seconds": 120, "cpu_seconds": 120}
    with begun("x = 1", memory_mb=128) as s:
        leaf = leaf_of(s)
        equal(number(leaf, "memory.max"), 128 * MIB)
        s.well("1", memory_mb=256)
        equal(number(leaf, "memory.max"), 256 * MIB)
        equal(s.well("big = bytearray(b'x') * (%d)\nx" % (180 * MIB), seconds(60), **long).result["repr"], "1")
        o = s.call("kept = []\nwhile True: kept.append(bytearray(b'x') * (1 << 22))", seconds(60), **long)
        equal((o.status, o.state), ("memory_limit", "rolled_back"))
        assert "256 MiB" in o.text, o.text
        # Two states of that size, which a restart of the service does not make smaller.
        s.well("big[0] = 1\nbig = bytearray(b'y') * (%d)" % (180 * MIB), seconds(60), **long, memory_mb=512,
               checkpoint="y")
        equal(number(leaf, "memory.max"), 512 * MIB)


# ---- a restart of the service ----

def kept(code, uid=ALICE, **arguments):
    """A new session, with no client connected."""
    with client(uid, 120) as c:
        s = Session(c)
        s.well(code, seconds(60), **arguments)
        return s.handle, leaf_of(s, uid)


@contextlib.contextmanager
def again(handle, uid=ALICE):
    with client(uid, 120) as c:
        yield Session(c, handle)


def wait_left(paths):
    """Waits until none of these directories exists."""
    until(lambda: "left: %s, with %s" % (paths, pids()), lambda: not any(os.path.exists(p) for p in paths))


@test
def a_restart_keeps_sessions():
    handle, leaf = kept("x = 20\nopen('kept.txt', 'w').write('a file')")
    with again(handle) as s:
        s.well("x = 21", checkpoint="twenty-one")
        s.well("x = 22")
    other, _ = kept("x = 'of another'", BOB)
    wait_frozen(leaf, "1")
    for i in range(3):
        before = main_pid()
        sh("systemctl", "restart", UNIT)
        assert main_pid() not in (0, before)
        with again(handle) as s:
            equal(s.value("x", seconds(60)), str(22 + i))
            equal(s.value("open('kept.txt').read()"), "'a file'")
            s.well("x += 1")
        with again(other, BOB) as s:
            equal(s.value("x", seconds(60)), "'of another'")
        with again(handle, BOB) as s:
            equal(s.call("x").status, "no_session")
        # Descriptors that systemd keeps would keep sessions from ending with the service.
        equal(show("NFileDescriptorStore"), "0")
    with again(handle) as s:
        s.well(restore="twenty-one")
        equal(s.value("x", seconds(60)), "21")
        b = s.branch("x += 100")
        equal((b.value("x"), s.value("x")), ("121", "21"))
        b.well(close=True)
        s.well(close=True)
    with again(other, BOB) as s:
        s.well(close=True)
    wait_left([leaf])
    sh("journalctl", "--sync")
    said = sh("journalctl", "-b", "-o", "cat", "MCP_EVENT=session-kept")
    assert said.count("uid:%d" % ALICE) >= 3, said


@test
def limits_hold_after_a_restart():
    handle, leaf = kept(STATE, memory_mb=160)
    with again(handle) as s:
        want = s.value(CHECKSUM, seconds(60))
    sh("systemctl", "restart", UNIT)
    limit = number(leaf, "memory.max")
    assert limit < 110 * MIB, "memory.max %d beside 60 MiB that are not counted" % limit
    equal(read(leaf + "/memory.swap.max").strip(), "0")
    with again(handle) as s, Neighbour():
        equal(s.value(CHECKSUM, seconds(60)), want)
        for what, code in OVER.items():
            survives(s, code, what, want)
        o = s.call("import os, signal\nwhile True:\n    try:\n"
                   "        if os.fork() == 0: signal.pause()\n    except OSError: os._exit(1)",
                   seconds(60), pids=12)
        equal((o.status, o.state), ("pids_limit", "rolled_back"))
        # What is given up makes room for as much.
        s.well("del array", seconds(60))
        s.well("array = bytearray(b'y') * %d" % (90 * MIB), seconds(60))
        survives(s, OVER["it grows"], "a new array", s.value(CHECKSUM, seconds(60)))
        s.well(close=True)
    wait_left([leaf])
    return "memory.max %d MiB of 160 beside a state of 60" % (limit // MIB)


@test
def what_no_process_shows_counts_after_a_restart():
    handle, leaf = kept("import os\nheld = os.memfd_create('held')\n"
                        "for _ in range(100): os.write(held, bytes(1 << 20))", memory_mb=160)
    for _ in range(2):
        sh("systemctl", "restart", UNIT)
        limit = number(leaf, "memory.max")
        assert limit < 70 * MIB, "memory.max %d beside 100 MiB that are not counted" % limit
        with again(handle) as s:
            equal(s.value("os.fstat(held).st_size >> 20", seconds(60)), "100")
            survives(s, "more = bytearray(b'y') * (100 << 20)", "as much again", None)
    with again(handle) as s:
        s.well(close=True)


@test
def a_stop_leaves_no_session():
    handles = [kept("x = %d" % i) for i in range(3)]
    fds = hold(pids())
    assert len(fds) > 6, len(fds)
    sh("systemctl", "stop", UNIT)
    wait_ended(fds, 10)
    wait_left([CGROUP])
    with again(handles[0][0]) as s:
        equal(s.call("x", seconds(60)).status, "no_session")


@test
def a_kill_leaves_no_session():
    first, _ = kept("x = 1")
    sh("systemctl", "restart", UNIT)
    second, leaf = kept("x = 2")
    wait_frozen(leaf, "1")
    with again(first) as s:		# it runs when it happens
        s.start("import subprocess\nsubprocess.run(['sleep', '4444'])")
        s.client.flush()
        wait_sleeping(ALICE, "4444")
        supervisor = main_pid()
        fds = hold(pids())
        os.kill(supervisor, signal.SIGKILL)
        wait_ended(fds, 10)
    for handle in (first, second):
        with again(handle) as s:
            equal(s.call("x", seconds(60)).status, "no_session")
    assert main_pid() not in (0, supervisor)
