# SPDX-License-Identifier: Apache-2.0
"""The service as a unit of systemd: started, walled in, limited, stopped, killed, misconfigured."""

import contextlib
import json
import os
import pwd
import re
import select
import signal
import stat
import subprocess
import threading
import time
import urllib.request

import guest_tools
from guest_tools import (ALICE, BOB, CGROUP, CONFIG, SOCKET, SUBUIDS, UNIT, client, drop_in, hold,
                         limited, main_pid, pids, read, seconds, sh, show, sleepers, start_running, test,
                         wait_ended)
from cores import check_no_handler
from waits import Timeout, until


# ---- from installed to running ----

@test
def units_are_as_systemd_likes_them():
    said = sh("systemd-analyze", "verify", "--man=no", UNIT, "mcp-pythond.socket")
    about_units = [line for line in said.split("\n") if "mcp-pythond" in line]
    assert not about_units, "\n".join(about_units)
    entry = pwd.getpwnam("mcp-python")
    assert entry.pw_uid < 1000 and entry.pw_shell.endswith("nologin"), entry
    exposure = sh("systemd-analyze", "security", "--no-pager", UNIT).strip().split("\n")[-1]
    assert float(re.search(r": (\d+\.\d+) ", exposure)[1]) <= 2.2, exposure
    return exposure


@test
def the_first_connection_starts_the_service():
    sh("systemctl", "start", "mcp-pythond.socket")
    assert show("ActiveState") == "inactive", "the service runs without a client"
    mode = os.stat(SOCKET)
    assert stat.S_IMODE(mode.st_mode) == 0o666 and mode.st_uid == 0, oct(mode.st_mode)
    started = time.monotonic()
    with client() as c:
        o = c.run("print(6 * 7)\n'done'", seconds(120))
    took = time.monotonic() - started
    assert (o.status, o.stdout) == ("ok", "42\n"), repr(o)
    assert show("ActiveState") == "active" and show("SubState") == "running"
    assert "sessions" in show("StatusText"), show("StatusText")
    assert show("WatchdogUSec") == "20s", show("WatchdogUSec")
    return "first answer after %.1f s" % took


def hello_file():
    """Writes a script that all users can read, and that says hello to its arguments."""
    path = "/tmp/hello.py"
    with open(path, "w") as f:
        f.write("import sys\nprint('hello', *sys.argv[1:])\nsys.exit(7)\n")
    os.chmod(path, 0o644)
    return path


@test
def the_program_for_people_works():
    p = sh("setpriv", "--reuid=%d" % ALICE, "--regid=%d" % ALICE, "--clear-groups",
           "mcp-python", "run", hello_file(), "--", "from", "here", check=False)
    assert (p.returncode, p.stdout) == (7, "hello from here\n"), (p.returncode, p.stdout)


def example(name, *changes):
    """Installs a unit of the examples, with lines replaced."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", name)
    text = read(path)
    for old, new in changes:
        assert re.search(old, text, re.M), (old, text)
        text = re.sub(old, new, text, flags=re.M)
    with open("/etc/systemd/system/" + name, "w") as f:
        f.write(text)


@test
def a_timer_runs_a_script():
    """The examples report.service and report.timer, but for the time and the script."""
    with open("/tmp/report.py", "w") as f:
        f.write("open('report.csv', 'w').write('a,b')\nprint('as usual')\n")
    os.chmod("/tmp/report.py", 0o644)
    example("report.service", ("^User=.*", "User=%s" % pwd.getpwuid(ALICE).pw_name),
            ("^Environment=REPORT=.*", "Environment=REPORT=/tmp/report.py"), ("^PrivateTmp=.*", "PrivateTmp=no"))
    example("report.timer", ("^OnCalendar=.*", "OnActiveSec=1"), ("^RandomizedDelaySec=.*", ""),
            ("^Persistent=.*", ""))
    try:
        sh("systemctl", "daemon-reload")
        sh("systemctl", "start", "report.timer")
        folder = until("the report is there", lambda: [
            name for name in (os.listdir("/var/lib/reports") if os.path.isdir("/var/lib/reports") else [])
            if os.path.exists("/var/lib/reports/%s/report.csv" % name)])[0]
        until("the unit has ended", lambda: sh(
            "systemctl", "show", "--property=ActiveState", "--value", "report.service").strip() == "inactive")
        assert sh("systemctl", "show", "--property=Result", "--value", "report.service").strip() == "success"
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", folder), folder
        assert read("/var/lib/reports/%s/output.txt" % folder) == "as usual\n"
        assert read("/var/lib/reports/%s/report.csv" % folder) == "a,b"
        log = sh("mcp-python", "audit", "show", "--tenant", "uid:%d" % ALICE, "--text", "as usual")
        assert '"execution-started"' in log, log
    finally:
        sh("systemctl", "stop", "report.timer", check=False)
        for name in "report.service", "report.timer":
            os.unlink("/etc/systemd/system/" + name)
        sh("systemctl", "daemon-reload")


@test
def output_comes_at_once_and_an_interrupt_ends_the_script():
    with open("/tmp/long.py", "w") as f:
        f.write("import subprocess\nprint('first', flush=True)\n"
                "subprocess.run(['sleep', '4242'])\n")
    p = subprocess.Popen(["mcp-python", "run", "/tmp/long.py"], stdout=subprocess.PIPE)
    try:
        assert select.select([p.stdout], [], [], seconds(60))[0], "nothing came"
        assert os.read(p.stdout.fileno(), 100) == b"first\n"
        sleeping = until("sleep runs", lambda: sleepers(CGROUP + "/tenants", "4242"))
        fds = hold(sleeping)
        assert len(fds) == 1, sleeping
        p.send_signal(signal.SIGINT)
        assert p.wait(seconds(10)) == -signal.SIGINT, p.returncode
        wait_ended(fds, 10)
    finally:
        p.kill()
        p.wait()


# ---- what the service is allowed to do ----

def status_of(pid):
    return dict(line.split(":\t", 1) for line in
                read("/proc/%d/status" % pid).split("\n") if ":\t" in line)


def capabilities(status, *keys):
    return {key: status[key] for key in keys if int(status[key], 16)}


def settled(pid):
    """A worker that is still being made has capabilities over its own namespace, for a few
    milliseconds; what it has after that. None: it is gone."""
    left = None

    def is_settled():
        nonlocal left
        left = capabilities(status_of(pid), "CapInh", "CapPrm", "CapEff", "CapAmb", "CapBnd")
        return not left
    try:
        with contextlib.suppress(Timeout):
            until("no capabilities are left", is_settled, seconds(10))
    except (FileNotFoundError, ProcessLookupError):
        return None
    return left


@test
def no_process_keeps_a_capability_on_the_host():
    host = os.readlink("/proc/self/ns/user")
    service_uid = pwd.getpwnam("mcp-python").pw_uid
    on_host, below, workers = 0, 0, []
    with client(ALICE) as a, client(BOB) as b:
        ids = [(c, start_running(c, "import time\ntime.sleep(300)")) for c in (a, b)]
        for pid in pids():
            try:
                status = status_of(pid)
                space = os.readlink("/proc/%d/ns/user" % pid)
            except (FileNotFoundError, ProcessLookupError):
                continue	# it has ended meanwhile
            uids = {int(u) for u in status["Uid"].split()}
            assert 0 not in uids, "pid %d has uid 0 on the host" % pid
            assert set(status["Groups"].split()) <= {status["Gid"].split()[0]}, status["Groups"]
            assert status["NoNewPrivs"].strip() == "1", "pid %d: NoNewPrivs" % pid
            if space == host:
                on_host += 1
                assert uids == {service_uid}, (pid, uids)
                left = capabilities(status, "CapInh", "CapPrm", "CapEff", "CapAmb", "CapBnd")
                assert not left, "pid %d: %s" % (pid, left)
            else:
                below += 1
                assert uids <= {service_uid, *SUBUIDS}, (pid, uids)
                if service_uid not in uids:
                    workers.append(pid)
        assert on_host >= 1 and below >= 3 and len(workers) >= 4, (on_host, below)
        for pid in workers:
            left = settled(pid)
            assert not left, "worker %d: %s" % (pid, left)
        for c, id in ids:
            c.cancel(id)
    return "%d processes in the host's user namespace, %d below, %d of workers" % (
        on_host, below, len(workers))


@test
def every_worker_has_a_uid_of_its_own():
    with client(ALICE) as a, client(BOB) as b:
        for c in (a, b):
            start_running(c, "import time\ntime.sleep(300)")
        by_leaf = {}
        for at, _, _ in os.walk(CGROUP + "/tenants"):
            for pid in read(at + "/cgroup.procs").split():
                with contextlib.suppress(OSError):
                    by_leaf.setdefault(at, set()).add(os.stat("/proc/%s" % pid).st_uid)
                    by_leaf[at].add(int(re.search(r"Uid:\t\d+\t(\d+)",
                                                  read("/proc/%s/status" % pid))[1]))
        by_leaf = {at: {u for u in uids if u in SUBUIDS} for at, uids in by_leaf.items()}
        by_leaf = {at: uids for at, uids in by_leaf.items() if uids}
        seen = [u for uids in by_leaf.values() for u in uids]
        assert all(len(uids) == 1 for uids in by_leaf.values()), by_leaf
        assert len(seen) == len(set(seen)) >= 2, by_leaf
    return "%d leaves" % len(by_leaf)


KINDS = """\
import multiprocessing, platform, subprocess, sys

if __name__ == "__main__":
    print(platform.machine())
    for command in (["uname", "-m"], ["sh", "-c", "uname -m"],
                    [sys.executable, "-c", "import platform; print(platform.machine())"]):
        print(subprocess.run(command, capture_output=True, text=True).stdout, end="")
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.apply(platform.machine))
"""


@test
def programs_of_each_kind_start_in_a_jail():
    """The loader of the machine is in the jail, wherever it lies on the host."""
    machine = os.uname().machine
    with client(ALICE) as c:
        o = c.run(KINDS, seconds(120))
    assert (o.status, o.stdout) == ("ok", 5 * (machine + "\n")), repr(o)
    return machine


def limits_of(leaf):
    """What is written in it; None: it is gone."""
    try:
        return {f: read(leaf + "/" + f).strip() for f in (
            "memory.max", "memory.oom.group", "pids.max", "memory.swap.max")
            if f != "memory.swap.max" or os.path.exists(leaf + "/" + f)}
    except OSError:
        return None


def is_as_drawn(leaf):
    """False: it is gone. One that was just made has its limits in a moment, before a process."""
    values = {}

    def has_limits():
        pids_max = values.get("pids.max", "max")
        return pids_max != "max" and 64 <= int(pids_max) <= 70 and values == {
            "memory.max": str(512 << 20), "memory.oom.group": "1", "pids.max": pids_max,
            **({"memory.swap.max": "0"} if "memory.swap.max" in values else {})}

    def is_settled():
        nonlocal values
        values = limits_of(leaf)
        return values is None or has_limits()
    until(lambda: "the limits of %s: %s" % (leaf, values), is_settled, seconds(10))
    return values is not None


@test
def the_cgroup_tree_is_as_drawn():
    with client(ALICE) as c:
        start_running(c, "import time\ntime.sleep(300)")
        assert sorted(d for d in os.listdir(CGROUP) if os.path.isdir(CGROUP + "/" + d)) == [
            "supervisor", "tenants"]
        assert read(CGROUP + "/cgroup.procs") == "", "processes outside the leaves"
        assert str(main_pid()) in read(CGROUP + "/supervisor/cgroup.procs").split()
        tenant = CGROUP + "/tenants/%d" % ALICE
        for at in (CGROUP, CGROUP + "/tenants", tenant):
            have = set(read(at + "/cgroup.subtree_control").split())
            assert {"cpu", "memory", "pids"} <= have, (at, have)
            assert ("io" in have) == (at != tenant), (at, have)
        leaves = [tenant + "/" + d for d in os.listdir(tenant) if d.isdigit()]
        assert leaves
        looked_at = sum(is_as_drawn(leaf) for leaf in leaves)
        assert looked_at, leaves
    return "%d leaves of a tenant" % looked_at


def bytes_read(tenant):
    """From disks, by the workers of a tenant; None: no weight against others, and no numbers."""
    path = CGROUP + "/tenants/%d/io.stat" % tenant
    if not os.path.exists(path):
        return None
    return sum(int(n) for n in re.findall(r"rbytes=(\d+)", read(path)))


@test
def tenants_have_their_own_share_of_the_disk():
    look = ("import numpy, os\nd = os.path.dirname(numpy.__file__)\nn = 0\n"
            "for at, _, names in os.walk(d):\n    for name in names:\n"
            "        with open(os.path.join(at, name), 'rb') as f: n += len(f.read())\nprint(n)")
    with client(ALICE) as a, client(BOB) as b:
        for c in (a, b):
            assert c.run("import numpy", seconds(120)).status == "ok"
        sh("sync")
        with open("/proc/sys/vm/drop_caches", "w") as f:
            f.write("1")
        before = bytes_read(ALICE), bytes_read(BOB)
        o = a.run(look, seconds(120))
        assert o.status == "ok" and int(o.stdout) > 4 << 20, repr(o)
        now = bytes_read(ALICE), bytes_read(BOB)
    assert None not in before + now, (before, now)
    assert now[0] - before[0] > 4 << 20, (before, now)
    assert now[1] - before[1] < now[0] - before[0], (before, now)
    return "%d MiB read, %d of them counted" % (int(o.stdout) >> 20, now[0] - before[0] >> 20)


def weight(group):
    return int(read(CGROUP + "/" + group + "/cpu.weight"))


def pump_until(c, holds, within):
    until("it is so", holds, seconds(within), lambda left: c.pump(min(left, 0.2)))


@test
def a_busy_tenant_yields_to_the_others():
    with client(ALICE) as a, client(BOB) as b:
        assert b.run("print(1)", seconds(60)).status == "ok"
        assert weight("supervisor") == 1000, weight("supervisor")
        pump_until(b, lambda: weight("tenants/%d" % BOB) == 100, 20)
        id = start_running(a, "while True:\n    pass")
        # Bob's next worker may still be being made, which counts as his use.
        pump_until(a, lambda: weight("tenants/%d" % ALICE) <= 20 and
                   weight("tenants/%d" % BOB) == 100, 20)
        a.notify("notifications/cancelled", {"requestId": id})
        pump_until(a, lambda: weight("tenants/%d" % ALICE) == 100, 20)


# ---- limits ----

@test
def memory_limit():
    return limited("memory_limit", "x = bytearray(400 << 20)\nprint(len(x))", r"128 MiB",
                   memory_mb=128)


@test
def memory_limit_counts_files():
    return limited("memory_limit", "f = open('/tmp/x', 'wb')\nfor _ in range(200):\n"
                   "    f.write(bytes(1 << 20))\nprint('wrote')", r"64 MiB", memory_mb=64)


@test
def memory_limit_counts_children():
    return limited("memory_limit", "import os, signal\nfor _ in range(8):\n"
                   "    if os.fork() == 0:\n        x = bytearray(40 << 20)\n"
                   "        signal.pause()\nsignal.pause()", r"128 MiB",
                   memory_mb=128, timeout_seconds=60)


@test
def pids_limit():
    return limited("pids_limit", "import os, signal\nwhile True:\n    if os.fork() == 0:\n"
                   "        signal.pause()", r"\b16\b", pids=16)


@test
def timeout():
    return limited("timeout", "import time\ntime.sleep(100)", r"\b2\b", timeout_seconds=2)


@test
def cpu_limit():
    return limited("cpu_limit", "while True: pass", r"\b2\b", cpu_seconds=2,
                   timeout_seconds=120)


@test
def cpu_limit_counts_children():
    return limited("cpu_limit", "import os\nfor _ in range(3): os.fork()\nwhile True: pass",
                   r"\b3\b", cpu_seconds=3, timeout_seconds=120)


@test
def output_limit():
    return limited("output_limit", "import os\nblock = b'x' * 65536\n"
                   "while True: os.write(1, block)", r"64 MiB", timeout_seconds=120)


@test
def a_crash_starts_no_core_handler():
    with client() as c:
        check_no_handler(lambda script: c.run(script, seconds(60)).stdout)


@test
def the_service_survived_all_that():
    assert show("NRestarts") == "0", "restarted %s times" % show("NRestarts")
    assert show("ActiveState") == "active"
    assert show("Result") == "success", show("Result")


# ---- ends ----

@test
def stop_answers_what_runs():
    with client(ALICE) as a, client(BOB) as b:
        ids = [start_running(c, "import time\ntime.sleep(300)") for c in (a, b)]
        everything = hold(pids())
        started = time.monotonic()
        stopping = subprocess.Popen(["systemctl", "stop", UNIT], stderr=subprocess.DEVNULL)
        for c, id in zip((a, b), ids):
            o = c.outcome(id, seconds(30))
            assert o.status == "cancelled", repr(o)
            assert re.search("shut|stopp", (o.error or {}).get("message") or ""), repr(o)
        assert stopping.wait() == 0
        took = time.monotonic() - started
        assert took < seconds(5), "stopped after %.1f s" % took
    wait_ended(everything, 5)
    assert not os.path.exists(CGROUP) or not pids()
    assert show("ActiveState") == "inactive" and show("Result") == "success", show("Result")
    with client() as c:
        assert c.run("print(1)", seconds(60)).stdout == "1\n"
    return "stopped within %.1f s" % took


@test
def a_restart_loses_no_connection():
    over, bad, count = threading.Event(), [], [0]

    def keep_connecting():
        while not over.is_set():
            try:
                with client(BOB) as c:
                    count[0] += c.hello is not None
            except (OSError, EOFError) as e:
                bad.append(repr(e))
            except Exception as e:
                # Accepted before the stop and not answered any more: the client sees an end.
                if "ended" not in str(e):
                    bad.append(repr(e))

    thread = threading.Thread(target=keep_connecting)
    thread.start()
    for _ in range(3):
        sh("systemctl", "restart", UNIT)
        sh("systemctl", "reset-failed", check=False)
    over.set()
    thread.join()
    refused = [b for b in bad if "refused" in b.lower() or "FileNotFound" in b]
    assert not refused, refused[:3]
    assert count[0] >= 1, bad[:3]
    return "%d connections, 3 restarts" % count[0]


@test
def kill_of_the_supervisor_leaves_nothing():
    with client(ALICE) as a:
        start_running(a, "import subprocess, time\nsubprocess.Popen(['sleep', '1000'])\n"
                      "time.sleep(300)")
        first, everything = main_pid(), pids()
        fds = hold(everything)
        assert len(fds) >= 4, everything
        os.kill(first, signal.SIGKILL)
        wait_ended(fds, 10)
    with client(ALICE) as c:
        o = c.run("print(6 * 7)", seconds(60))
        assert o.stdout == "42\n", repr(o)
    assert main_pid() not in (0, first)
    leaves = [d for d in os.listdir(CGROUP + "/tenants") if d != str(ALICE) and d.isdigit()]
    assert not leaves, "cgroups of tenants who are not here: %s" % leaves
    return "%d processes gone" % len(fds)


@test
def bits_without_meaning_are_left_out():
    """The unit refuses set-uid and set-gid files; what asks for them gets the rest of the mode."""
    with client(ALICE) as a:
        o = a.run("import os\nopen('f', 'w').close()\nos.chmod('f', 0o6754)\n"
                  "print(oct(os.stat('f').st_mode & 0o7777))", seconds(60))
        assert (o.status, o.stdout) == ("ok", "0o754\n"), repr(o)


@test
def priorities_are_answered():
    """The unit refuses to change them; a script can lower its own without an error."""
    with client(ALICE) as a:
        o = a.run("import os\nos.nice(1)\nos.sched_setaffinity(0, {0})\n"
                  "os.setpriority(os.PRIO_PROCESS, 0, 5)\n"
                  "try:\n    os.setpriority(os.PRIO_PROCESS, 0, -5)\n"
                  "except PermissionError:\n    print('no higher')", seconds(60))
        assert (o.status, o.stdout) == ("ok", "no higher\n"), repr(o)


def helper_pids(name):
    found = []
    for pid in pids(CGROUP + "/supervisor"):
        with contextlib.suppress(FileNotFoundError):	# it has ended
            if read("/proc/%d/comm" % pid) == name + "\n":
                found.append(pid)
    return found


@test
def a_lost_helper_is_made_again():
    """What runs goes on, and the service is the same."""
    first = main_pid()
    for name in ("mcp-launcher", "mcp-usage", "mcp-directory", "mcp-forker"):
        with client(ALICE) as a:
            id = start_running(a, "import time\ntime.sleep(2)\nprint('done')")
            before = helper_pids(name)
            os.kill(before[0], signal.SIGKILL)
            until("%s is made again" % name, lambda: len(helper_pids(name)) == len(before) and
                  before[0] not in helper_pids(name), seconds(10))
            assert a.outcome(id, seconds(60)).stdout.endswith("done\n"), name
    assert main_pid() == first


def cell(client, **arguments):
    return client.ask("tools/call", {"name": "run_repl", "arguments": arguments}, seconds(60))["structuredContent"]


@test
def without_fork_servers_sessions_are_handed_over():
    """The next lost helper ends the service, which systemd starts again."""
    first = main_pid()
    with client(ALICE) as a:
        session = cell(a, code="x = 41")["session"]
    for pid in [*helper_pids("mcp-forker"), *helper_pids("mcp-directory")]:
        os.kill(pid, signal.SIGKILL)
    until("another service runs", lambda: main_pid() not in (0, first), seconds(60))
    with client(ALICE) as a:
        o = cell(a, session=session, code="print(x + 1)")
        assert (o["status"], o["stdout"]) == ("ok", "42\n"), o


@test
def ten_crashes_in_a_row():
    """The service is started again each time, and its socket stays."""
    assert show("StartLimitIntervalUSec") == "0", show("StartLimitIntervalUSec")
    restarts = int(show("NRestarts"))
    for _ in range(10):
        pid = until("it runs", lambda: show("ActiveState") in ("active", "activating") and main_pid(), seconds(60))
        os.kill(pid, signal.SIGSEGV)
        until("that process has ended", lambda: show("MainPID") != str(pid), seconds(30))
    with client() as c:
        o = c.run("print(6 * 7)", seconds(120))
    assert (o.status, o.stdout) == ("ok", "42\n"), repr(o)
    assert show("ActiveState", "mcp-pythond.socket") == "active"
    assert int(show("NRestarts")) >= restarts + 10, show("NRestarts")


@test
def a_zygote_that_dies_is_replaced():
    service_uid = pwd.getpwnam("mcp-python").pw_uid
    with client(ALICE) as a:
        id = start_running(a, "import time\ntime.sleep(3)\nprint('end')")
        zygotes = [p for p in pids(CGROUP + "/supervisor") if p != main_pid() and
                   read("/proc/%d/comm" % p) == "python-zygote\n" and
                   os.readlink("/proc/%d/ns/user" % p) != os.readlink("/proc/self/ns/user")]
        assert zygotes, "no zygote found"
        fds = hold(zygotes)
        for pid in zygotes:
            assert os.stat("/proc/%d" % pid).st_uid in (service_uid, 0), pid
            os.kill(pid, signal.SIGKILL)
        wait_ended(fds, 5)
        o = a.outcome(id, seconds(60))
        assert (o.status, o.stdout) == ("ok", "running\nend\n"), repr(o)
        for i in range(20):
            o = a.run("print(%d)" % i, seconds(60))
            assert o.stdout == "%d\n" % i, repr(o)
    return "%d zygotes" % len(zygotes)


@test
def the_watchdog_ends_a_supervisor_that_hangs():
    # Not less: on a busy host the machine itself may stand still for seconds.
    with drop_in("[Service]\nWatchdogSec=10\n"):
        with client() as c:
            assert c.run("print(1)", seconds(60)).status == "ok"
        first, everything = main_pid(), pids()
        fds = hold(everything)
        os.kill(first, signal.SIGSTOP)
        wait_ended(fds, 60)
        with client() as c:
            assert c.run("print(2)", seconds(60)).stdout == "2\n"
        assert main_pid() != first
        sh("journalctl", "--sync")
        assert "atchdog" in sh("journalctl", "-u", UNIT, "-n", "50", "--no-pager")


# ---- start-up errors ----

def start_fails(expected):
    p = sh("systemctl", "start", UNIT, check=False)
    assert p.returncode != 0, "it started"
    sh("journalctl", "--sync")
    log = sh("journalctl", "-u", UNIT, "-n", "30", "--no-pager", "-o", "cat")
    assert re.search(expected, log), "no %r in:\n%s" % (expected, log)


@test
def a_wrong_configuration_is_a_start_up_error():
    before = read(CONFIG)
    with drop_in("[Unit]\n"):
        try:
            with open(CONFIG, "a") as f:
                f.write("\n[limits]\nmemory_mb = lots\n")
            start_fails(r"mcp-pythond\.conf:\d+: .*memory_mb")
            assert show("ExecMainStatus") == "78", show("ExecMainStatus")
        finally:
            with open(CONFIG, "w") as f:
                f.write(before)


@test
def a_missing_controller_is_a_start_up_error():
    slice_dir = "/run/systemd/system/lacking.slice"
    with open(slice_dir, "w") as f:
        f.write("[Slice]\nDisableControllers=memory\n")
    try:
        with drop_in("[Service]\nSlice=lacking.slice\nRestart=no\n"):
            start_fails(r"missing controllers: memory")
    finally:
        os.unlink(slice_dir)
        sh("systemctl", "daemon-reload")


@test
def a_missing_user_is_a_start_up_error():
    with drop_in("[Service]\nRestart=no\nExecStart=\nExecStart=/usr/sbin/mcp-pythond "
                 "--config /run/other-user.conf\n"):
        with open("/run/other-user.conf", "w") as f:
            f.write("[service]\nuser = nobody-of-that-name\n")
        start_fails(r"nobody-of-that-name does not exist")


@test
def a_socket_for_a_group_is_explained_to_others():
    sh("systemctl", "stop", UNIT, "mcp-pythond.socket")
    path = "/run/systemd/system/mcp-pythond.socket.d/test.conf"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write("[Socket]\nSocketMode=0660\n")
    try:
        sh("systemctl", "daemon-reload")
        sh("systemctl", "start", "mcp-pythond.socket")
        p = sh("setpriv", "--reuid=%d" % BOB, "--regid=%d" % BOB, "--clear-groups",
               "mcp-python", "run", hello_file(), check=False)
        assert p.returncode == 69 and "SocketMode" in p.stdout and SOCKET in p.stdout, p
    finally:
        os.unlink(path)
        sh("systemctl", "stop", UNIT, "mcp-pythond.socket")
        sh("systemctl", "daemon-reload")
    p = sh("mcp-python", "connect", check=False)
    assert p.returncode == 69 and "no such socket" in p.stdout, p
    sh("systemctl", "start", "mcp-pythond.socket")


# ---- operators' tools ----

def check_host(run):
    p = run("mcp-python", "check-host", "--json", check=False)
    found = json.loads(p.stdout)
    bad = [c for c in found["checks"] if c["verdict"] != "ok" and
           (c["name"], c["verdict"]) not in guest_tools.lacks]
    assert not bad and found["enforceable"] and p.returncode == 0, bad
    return {c["name"]: c["found"] for c in found["checks"]}


@test
def everything_can_be_enforced_here():
    found = check_host(sh)
    assert "killed" in found["memory"] and "refused" in found["pids"], found
    left = [at for at, _, _ in os.walk("/sys/fs/cgroup") if "mcp-python-check" in at]
    assert not left, left


def is_told_closed():
    """Whether the host's files are closed to the supervisor; without Landlock its log says that
    they are not."""
    open_files = "files-open" in sh("journalctl", "_SYSTEMD_INVOCATION_ID=" + sh(
        "systemctl", "show", "-p", "InvocationID", "--value", UNIT).strip())
    assert open_files == any(name == "landlock" for name, _ in guest_tools.lacks)
    return not open_files


@test
def operators_see_what_the_kernel_counts():
    with drop_in("[Unit]\n"):
        try:
            sh("systemctl", "start", "mcp-pythond.socket", "mcp-pythond-metrics.socket")
            with client() as c:
                c.ask("tools/call", {"name": "run_repl", "arguments": {
                    "code": "kept = bytearray(b'x') * (100 << 20)"}})
                seen = json.loads(sh("mcp-python", "status", "--json"))
                how, (tenant,) = seen["enforcement"], seen["tenants"]
                assert [how[k] for k in ("memory", "pids", "cpu")] == 3 * ["cgroup"], how
                assert how["host_files_closed"] == is_told_closed(), how
                assert tenant["tenant"] == "uid:%d" % ALICE, tenant
                assert tenant["memory_bytes"] > 100 << 20, tenant
                assert seen["sessions"][0]["memory_bytes"] > 100 << 20, seen["sessions"]
                text = sh("mcp-python", "metrics")
                found = re.search(r'tenant_memory_bytes\{tenant="uid:%d"\} (\d+)' % ALICE, text)
                assert int(found[1]) > 100 << 20, found
                # by HTTP, although the service has no network
                with urllib.request.urlopen("http://127.0.0.1:9464/metrics",
                                            timeout=seconds(60)) as answer:
                    assert answer.read().endswith(b"# EOF\n")
        finally:
            sh("systemctl", "stop", UNIT, "mcp-pythond-metrics.socket")


# ---- the same for one person ----

@contextlib.contextmanager
def manager_of(name):
    """A new user with a service manager: the beginning of a command that runs as that user."""
    sh("useradd", "--create-home", name)
    entry = pwd.getpwnam(name)
    sh("systemctl", "start", "user@%d.service" % entry.pw_uid)
    try:
        yield entry, ["setpriv", "--reuid=" + name, "--regid=" + name, "--clear-groups", "env",
                      "XDG_RUNTIME_DIR=/run/user/%d" % entry.pw_uid, "HOME=" + entry.pw_dir]
    finally:
        sh("systemctl", "stop", "user@%d.service" % entry.pw_uid)


@test
def the_units_of_a_user_work():
    with manager_of("carol") as (entry, begin):
        def as_carol(*command, check=True):
            return sh(*begin, *command, check=check)

        as_carol("systemctl", "--user", "start", "mcp-pythond.socket")
        mode = os.stat("/run/user/%d/mcp-pythond.sock" % entry.pw_uid)
        assert stat.S_IMODE(mode.st_mode) == 0o600, oct(mode.st_mode)
        p = as_carol("mcp-python", "run", hello_file(), "--", "carol", check=False)
        assert (p.returncode, p.stdout) == (7, "hello carol\n"), (
            p.returncode, p.stdout, sh("journalctl", "-n", "20", "--no-pager"))
        pid = int(as_carol("systemctl", "--user", "show", "-P", "MainPID", UNIT))
        assert "CapEff:\t0000000000000000" in read("/proc/%d/status" % pid)
        found = check_host(as_carol)
        assert "killed" in found["memory"] and "refused" in found["pids"], found
        # Its operators' socket is this user's: nothing is asked of the system's service.
        mode = os.stat("/run/user/%d/mcp-pythond-admin.sock" % entry.pw_uid)
        assert stat.S_IMODE(mode.st_mode) == 0o600, oct(mode.st_mode)
        seen = json.loads(as_carol("mcp-python", "status", "--json"))
        assert (seen["scope"], seen["service"]["pid"]) == ("service", pid), seen
        assert "Nothing runs" in as_carol("mcp-python", "ps")
        assert as_carol("mcp-python", "approvals").startswith("No request"), seen
        as_carol("systemctl", "--user", "stop", UNIT)


@test
def a_start_by_hand_gets_a_scope_of_the_users_manager():
    with manager_of("erin") as (entry, begin):
        path = entry.pw_dir + "/mcp.sock"
        service = subprocess.Popen([*begin, "mcp-pythond", "--verbose", "--socket", path],
                                   stderr=subprocess.PIPE, text=True)
        said = ""
        while not said.endswith(" service=no\n"):	# "ready ..."
            line = service.stderr.readline()
            assert line, "it has ended: " + said
            said += line
        assert "fallback" not in said and "no-scope" not in said, said
        home = read("/proc/%d/cgroup" % service.pid).strip().partition("::")[2]
        scope = "mcp-pythond-%d.scope" % service.pid
        assert "/user@%d.service/" % entry.pw_uid in home and "/%s/" % scope in home, home
        with guest_tools.Client.connect(path, uid=entry.pw_uid, timeout=seconds(60)) as c:
            o = c.run("b = bytearray(200 << 20)", seconds(120), memory_mb=64)
            assert o.status == "memory_limit", repr(o)
        service.terminate()
        assert service.wait(seconds(60)) == 0, service.returncode
        service.stderr.close()
        # The manager removes it when it is told that it is empty.
        until("the scope is gone",
              lambda: not os.path.exists("/sys/fs/cgroup" + home.partition(scope)[0] + scope))
