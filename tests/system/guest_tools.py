# SPDX-License-Identifier: Apache-2.0
"""What the tests inside the virtual machine share: the service, its processes and cgroups, other
people. Waits are for events with a deadline, never for time to pass."""

import contextlib
import os
import re
import select
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
INTEGRATION = os.path.join(os.path.dirname(HERE), "integration")
sys.path.insert(0, INTEGRATION)
import waits  # noqa: E402
from mcpclient import Client  # noqa: E402
from waits import until  # noqa: E402

SOCKET = "/run/mcp-pythond/mcp.sock"
UNIT = "mcp-pythond.service"
DROP_IN = "/run/systemd/system/mcp-pythond.service.d/test.conf"
CGROUP = "/sys/fs/cgroup/system.slice/" + UNIT
CONFIG = "/etc/mcp-pythond/mcp-pythond.conf"
ALICE, BOB = 4001, 4002		# two tenants
SUBUIDS = range(1879048193, 1879048192 + 65536)

slow = 1.0
lacks = ()		# what check-host says of a machine without all walls: (name, verdict)
disks = 25		# that a loss of power may leave: guest_power.py
soak = 300.0		# seconds that tenants share the machine: guest_soak.py
rows = ""		# those of guest_shares.py
tests = []


def test(fn):
    tests.append(fn)
    return fn


def add_accounts():
    """For tenants and operators: a uid of nobody is refused."""
    for uid in (*range(ALICE, ALICE + 16), 4021, 4022, 4666):
        if sh("getent", "passwd", str(uid), check=False).returncode:
            sh("useradd", "--uid", str(uid), "--no-create-home", "tenant%d" % uid)


def set_slow(factor):
    global slow
    slow, waits.bound = factor, waits.bound * factor


def set_lacks(*found):
    global lacks
    lacks = found


def seconds(s):
    """A bound for a wait, stretched as the machine is slow."""
    return s * slow


def sh(*command, check=True, **kwargs):
    p = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                       errors="replace", **kwargs)
    assert not check or p.returncode == 0, "%s ended with %d:\n%s" % (
        " ".join(command), p.returncode, p.stdout)
    return p.stdout if check else p


def show(key, unit=UNIT):
    return sh("systemctl", "show", "-P", key, unit).strip()


def read(path):
    with open(path, errors="replace") as f:
        return f.read()


def client(uid=ALICE, timeout=60):
    return Client.connect(SOCKET, uid=uid, timeout=seconds(timeout))


def pids(cgroup=CGROUP):
    """Every process below a cgroup."""
    found = []
    for at, _, files in os.walk(cgroup):
        if "cgroup.procs" in files:
            with contextlib.suppress(OSError):
                found += [int(p) for p in read(os.path.join(at, "cgroup.procs")).split()]
    return found


def main_pid():
    return int(show("MainPID"))


def wait_ended(pidfds, within):
    """Waits until every process behind the descriptors has ended; closes them."""
    poll = select.poll()
    for fd in pidfds:
        poll.register(fd, select.POLLIN)
    left = set(pidfds)

    def some_ended(wait):
        for fd, _ in poll.poll(max(0, wait) * 1000):
            poll.unregister(fd)
            left.discard(fd)
    try:
        until(lambda: "%d of %d processes end" % (len(left), len(pidfds)), lambda: not left,
              seconds(within), some_ended)
    finally:
        for fd in pidfds:
            os.close(fd)


def hold(process_ids):
    fds = []
    for pid in process_ids:
        with contextlib.suppress(ProcessLookupError):
            fds.append(os.pidfd_open(pid))
    return fds


def sleepers(group, what):
    """The processes below this cgroup in which sleep runs with this argument."""
    found = []
    for pid in pids(group):
        with contextlib.suppress(OSError):
            if read("/proc/%d/cmdline" % pid) == "sleep\x00%s\x00" % what:
                found.append(pid)
    return found


def start_running(c, script, **more):
    """Starts a script that says "running"; returns its id when it has said so."""
    id = c.request("tools/call", {
        "name": "run_script", "_meta": {"progressToken": 7},
        "arguments": {"script": "print('running', flush=True)\n" + script,
                      "timeout_seconds": 300, **more}})
    until("it says that it runs", wait=c.pump, condition=lambda: c.answers or any(
        "running" in n["params"].get("message", "") for n in c.notices))
    assert not c.answers, "ended early: %r" % c.outcome(id)
    return id


@contextlib.contextmanager
def drop_in(text):
    """The service with something changed, stopped before and after."""
    sh("systemctl", "stop", UNIT)
    os.makedirs(os.path.dirname(DROP_IN), exist_ok=True)
    with open(DROP_IN, "w") as f:
        f.write(text)
    sh("systemctl", "daemon-reload")
    sh("systemctl", "reset-failed", check=False)
    try:
        yield
    finally:
        os.unlink(DROP_IN)
        sh("systemctl", "stop", UNIT, check=False)
        sh("systemctl", "daemon-reload")
        sh("systemctl", "reset-failed", check=False)
        sh("systemctl", "start", "mcp-pythond.socket")


class Neighbour(threading.Thread):
    """Another tenant, who keeps running small scripts and must notice nothing."""

    def __init__(self, uid=BOB):
        super().__init__()
        self.uid, self.over, self.times, self.bad = uid, threading.Event(), [], None

    def run(self):
        try:
            with client(self.uid) as c:
                while not self.over.is_set() or len(self.times) < 3:
                    started = time.monotonic()
                    o = c.run("import os\nprint(os.getpid() + %d)" % len(self.times), seconds(60))
                    assert o.status == "ok", repr(o)
                    self.times.append(time.monotonic() - started)
        except BaseException as e:
            self.bad = e

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exc):
        self.over.set()
        self.join()
        if exc[0] is None:
            assert self.bad is None, "the neighbour was disturbed: %r" % self.bad
            assert len(self.times) >= 3
            assert max(self.times) < seconds(5), "the neighbour waited %.1f s" % max(self.times)


def limited(status, script, names, uid=ALICE, **arguments):
    """A script that reaches a limit, while another tenant's continues."""
    arguments.setdefault("timeout_seconds", int(seconds(30)))
    with Neighbour() as neighbour, client(uid) as c:
        o = c.run(script, seconds(120), **arguments)
        assert o.status == status, "%s expected: %r" % (status, o)
        message = (o.error or {}).get("message") or ""
        assert re.search(names, message), "%r does not name %s" % (message, names)
    return "%s; neighbour: %d runs, slowest %.0f ms" % (
        message, len(neighbour.times), max(neighbour.times) * 1000)
