#!/usr/bin/python3
"""After start-up no process of the service holds a capability in the host's user namespace, each
worker has a uid of its own from the subordinate range, and nothing is shared that should not be.

Found by walking from the supervisor's pid, and read from /proc: what the kernel says, not the
service."""

import os
import re
import select
import time

from harness import Skip, equal, main, test
from supervisor import (cgroup2_mount, cgroup_of, descendants, process_table, read_text,
                        wait_gone)

SUBUID_FIRST, SUBUID_COUNT = 1879048192, 65536
CAPABILITY_SETS = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")


def fields_of(pid):
    text = read_text("/proc/%d/status" % pid)
    return dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line) if text else {}


def processes(ctx):
    if not ctx.pid:
        raise Skip("the service's process is not known: --pid")
    return [ctx.pid] + [pid for pid, _ in descendants(ctx.pid)]


def namespace(pid, kind):
    try:
        return os.readlink("/proc/%d/ns/%s" % (pid, kind))
    except OSError:
        return None


def busy(ctx, client, count):
    """Starts scripts that wait for the end of the client; returns once all of them run."""
    ids = []
    for _ in range(count):
        id = client.request("tools/call", {
            "name": "run_script", "_meta": {"progressToken": client.next_id},
            "arguments": {"script": "import time\nprint('up', flush=True)\ntime.sleep(60)"}})
        ids.append(id)
    deadline = time.monotonic() + ctx.seconds(60)
    while sum("up" in str(n["params"].get("message", "")) for n in client.notices) < count:
        assert time.monotonic() < deadline, "the scripts do not start: %r" % client.notices
        client.pump(1)
    return ids


def worker_processes(ctx):
    """Those below the supervisor that are in a pid namespace of their own: init and script."""
    own = namespace(os.getpid(), "pid")
    return [pid for pid in processes(ctx)[1:] if len(fields_of(pid).get("NSpid", "").split()) > 1
            and namespace(pid, "pid") != own]


def inner_pid(pid):
    """Its pid in its own namespace: 1 is a worker's init, 2 its script; None: ended."""
    words = fields_of(pid).get("NSpid", "").split()
    return int(words[-1]) if words else None


def ready_processes(ctx):
    """Of workers that are past their making: init has a script process."""
    ready = []
    for pid in roots(ctx):
        ready += [pid] + [p for p, _ in descendants(pid)]
    return ready


def roots(ctx):
    """The init of each worker that has a script process."""
    return [pid for pid in worker_processes(ctx)
            if inner_pid(pid) == 1 and any(inner_pid(p) == 2 for p, _ in descendants(pid))]


@test(alone=True)
def no_capability_on_the_host(ctx):
    host = namespace(os.getpid(), "user")
    with ctx.client() as client:
        busy(ctx, client, 3)
        seen, unreadable, table = 0, [], process_table()
        for pid in processes(ctx):
            user = namespace(pid, "user")
            fields = fields_of(pid)
            if not fields:
                continue		# ended meanwhile
            # Who may not be looked at by root's own equal is in another namespace, not ours.
            in_host = user == host
            if user is None and pid in table:
                unreadable.append((pid, table[pid][2]))
            seen += 1
            for name in CAPABILITY_SETS:
                held = int(fields[name], 16)
                if name == "CapBnd" and fields["NoNewPrivs"] == "1":
                    continue		# a bound on what execve could give, and it can give nothing
                assert not (in_host and held), "%d (%s) has %s=%s on the host" % (
                    pid, fields["Name"], name, fields[name])
        assert seen >= 4, "only %d processes found" % seen
        if os.getuid() == 0:
            # Who is ending has none any more.
            equal(wait_gone(unreadable, ctx.seconds(30)), [],
                  "processes whose namespace root cannot read")
    return "%d processes" % seen


@test(alone=True)
def nobody_is_root_on_the_host(ctx):
    if os.getuid():
        raise Skip("needs a service that root started")
    with ctx.client() as client:
        busy(ctx, client, 2)
        for pid in processes(ctx):
            fields = fields_of(pid)
            if fields:
                ids = set((fields["Uid"] + "\t" + fields["Gid"]).split())
                assert "0" not in ids, "%d (%s) has ids %s" % (pid, fields["Name"], ids)
                groups = fields.get("Groups", "").split()
                assert set(groups) <= set(fields["Gid"].split()), "%d has groups %s" % (pid, groups)


@test(alone=True)
def no_new_privileges_anywhere(ctx):
    for pid in processes(ctx):
        fields = fields_of(pid)
        if fields:
            equal(fields["NoNewPrivs"], "1", "no_new_privs of %d (%s)" % (pid, fields["Name"]))


@test(alone=True)
def every_worker_has_its_own_uid(ctx):
    if os.getuid():
        raise Skip("needs a service that root started")
    with ctx.client() as client:
        busy(ctx, client, 8)
        uids = {}
        for pid in ready_processes(ctx):
            space, fields = namespace(pid, "pid"), fields_of(pid)
            if space and fields:	# else it has ended meanwhile
                (uid,) = set(fields["Uid"].split())
                uids.setdefault(int(uid), set()).add(space)
                equal(set(fields["Gid"].split()), {uid}, "gid")
        assert len(uids) >= 8, "only %d workers found" % len(uids)
        for uid, spaces in uids.items():
            equal(len(spaces), 1, "workers with uid %d" % uid)
            assert SUBUID_FIRST < uid < SUBUID_FIRST + SUBUID_COUNT, "uid %d" % uid
            assert uid != int(fields_of(ctx.pid)["Uid"].split()[0]), "the service's own uid"
    return "%d workers" % len(uids)


@test(alone=True)
def every_worker_has_its_own_namespaces(ctx):
    if os.getuid():
        raise Skip("only root may look at the namespaces of others")
    with ctx.client() as client:
        busy(ctx, client, 4)
        inits = roots(ctx)
        assert len(inits) >= 4, "only %d workers found" % len(inits)
        for kind in ("user", "mnt", "pid", "ipc", "uts", "cgroup", "net"):
            seen = [namespace(pid, kind) for pid in inits]
            seen = [s for s in seen if s]
            equal(len(set(seen)), len(seen), "different %s namespaces" % kind)
            assert namespace(os.getpid(), kind) not in seen, kind
            assert namespace(ctx.pid, kind) not in seen, kind


@test(alone=True)
def scripts_are_filtered(ctx):
    """Seen from outside: every script process has a seccomp filter, and so has nobody less."""
    with ctx.client() as client:
        busy(ctx, client, 2)
        scripts = [pid for pid in worker_processes(ctx)
                   if fields_of(pid).get("NSpid", "").split()[-1:] == ["2"]]
        assert len(scripts) >= 2, scripts
        seen = [(pid, fields_of(pid)) for pid in scripts]
        seen = [(pid, fields) for pid, fields in seen if "Seccomp" in fields]	# still there
        assert len(seen) >= 2, scripts
        for pid, fields in seen:
            equal((fields["Seccomp"], fields["NoNewPrivs"]), ("2", "1"), "of %d" % pid)
            for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
                equal(int(fields[name], 16), 0, "%s of %d" % (name, pid))


@test(alone=True)
def every_worker_has_its_own_cgroup(ctx):
    mount = cgroup2_mount()
    if mount is None or ctx.service is not None and ctx.service.base is None:
        raise Skip("no cgroup v2 directory could be had here")
    with ctx.client() as client:
        busy(ctx, client, 3)
        uid = os.getuid()
        groups = {}
        for pid in roots(ctx):
            group = cgroup_of(pid)
            if group is None:
                continue		# ended meanwhile
            groups.setdefault(group, []).append(pid)
            assert re.search(r"/tenants/%d/[^/]+$" % uid, group or ""), "%d is in %s" % (pid, group)
        assert len(groups) >= 3 and all(len(g) == 1 for g in groups.values()), groups
        assert cgroup_of(ctx.pid).endswith("/supervisor"), cgroup_of(ctx.pid)


def ns_pid(pid):
    """What it is to itself; 1: an init."""
    return int(re.search(r"NSpid:.*?(\d+)$", read_text("/proc/%d/status" % pid) or "NSpid:\t0", re.M)[1])


def strange_descriptors(pid):
    """What a worker should not hold, or all of it when it is too much. A process that has ended
    holds nothing."""
    try:
        held = {fd: os.readlink("/proc/%d/fd/%s" % (pid, fd))
                for fd in os.listdir("/proc/%d/fd" % pid)}
    except OSError:
        return {}
    if len(held) > 8:
        return held
    # A warm worker has its script's file open, to be written when it comes; init has the rules
    # that a session's first place is to enter.
    return {fd: target for fd, target in held.items()
            if not target.startswith(("socket:", "pipe:", "anon_inode:[pidfd]"))
            and target not in ("/dev/null", "/run/script.py")
            and not (target == "anon_inode:[landlock-ruleset]" and ns_pid(pid) == 1)}


@test(alone=True)
def descriptors_of_workers(ctx):
    if os.getuid():
        raise Skip("only root may look at the descriptors of others")
    with ctx.client() as client:
        busy(ctx, client, 2)
        deadline = time.monotonic() + ctx.seconds(30)
        for pid in ready_processes(ctx):
            # One that gets warm looks at itself, for some milliseconds: what it keeps counts.
            while strange := strange_descriptors(pid):
                assert time.monotonic() < deadline, "%d holds %s" % (pid, strange)
                select.select([], [], [], 0.02)


main(__doc__)
