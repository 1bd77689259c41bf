#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""After start-up no process of the service holds a capability in the host's user namespace, each
worker has a uid of its own from the subordinate range, and nothing is shared that should not be.

Found by walking from the supervisor's pid, and read from /proc: what the kernel says, not the
service."""

import contextlib
import ctypes
import os
import re
import stat
import subprocess
import sys
import tempfile

from cores import check_no_handler, core_handler
from harness import FEW_MODULES, Skip, equal, main, test
from inside import Inside
from package_store import new_store
from supervisor import (cgroup2_mount, cgroup_of, comm, descendants, process_table, read_text,
                        wait_gone)
from waits import until

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
    client.until("the scripts start", lambda: sum(
        "up" in str(n["params"].get("message", "")) for n in client.notices) >= count)
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


@test(single=True)
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


@test(single=True)
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


@test(single=True)
def no_new_privileges_anywhere(ctx):
    for pid in processes(ctx):
        fields = fields_of(pid)
        if fields:
            equal(fields["NoNewPrivs"], "1", "no_new_privs of %d (%s)" % (pid, fields["Name"]))


@test(single=True)
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


# Becomes the command behind it, as the root of a user namespace with so many of the host's ids.
ROOT_OF_A_FEW = '''
import ctypes, os, sys
unshared, mapped = os.pipe(), os.pipe()
if os.fork() == 0:
    os.read(unshared[0], 1)
    for name in "uid_map", "gid_map":
        with open("/proc/%d/%s" % (os.getppid(), name), "w") as f:
            f.write(sys.argv[1])
    os.write(mapped[1], b"x")
    os._exit(0)
if ctypes.CDLL(None, use_errno=True).unshare(0x10000000):
    sys.exit("unshare: errno %d" % ctypes.get_errno())
os.write(unshared[1], b"x")
os.read(mapped[0], 1)
os.wait()
os.setresgid(0, 0, 0)
os.setresuid(0, 0, 0)
os.execvp(sys.argv[2], sys.argv[2:])
'''


STRANGER = 65534


def needs_reach(path):
    """Strangers may not look into the home of root, where this may be."""
    while path != "/":
        if not os.stat(path).st_mode & stat.S_IXOTH:
            raise Skip("others may not reach %s" % path)
        path = os.path.dirname(path)


def uids_of_workers(ctx, s, count, uid=None):
    """Once there are so many. A worker that is being made still has the service's. uid: the
    client's."""
    with ctx.client(path=s.socket, uid=uid) as client:
        for one in range(3):
            equal(client.run("print(%d)" % one).status, "ok", s.log())

    def uids():
        found = [fields_of(pid) for pid, _ in descendants(s.process.pid)]
        uids = {int(one["Uid"].split()[0]) for one in found
                if len(one.get("NSpid", "").split()) > 1}
        return len(uids) >= count and uids
    return until(lambda: "%d uids:\n%s" % (count, s.log()), uids)


@test(private=True, root=True)
def a_container_has_ids_of_its_own(ctx):
    """Rootless containers, and those of LXC: 65536 ids, and the configured range is elsewhere."""
    with ctx.private(wrap=(sys.executable, "-c", ROOT_OF_A_FEW, "0 0 65536")) as s:
        service = int(fields_of(s.process.pid)["Uid"].split()[0])
        uids = uids_of_workers(ctx, s, 3) - {service}	# of one that is not ready yet
        assert len(uids) > 1 and all(32768 < uid < 65534 for uid in uids), uids
        assert service != 0


@test(private=True, root=True)
def a_container_of_one_id_says_so(ctx):
    needs_reach(os.path.abspath(ctx.options.build))
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o777)
        wrap = (sys.executable, "-c", ROOT_OF_A_FEW, "0 %d 1" % STRANGER)
        with ctx.private(wrap=wrap, args=["--verbose"], socket_path=place + "/socket") as s:
            # Others outside are all the same uid to it, which is refused.
            equal(uids_of_workers(ctx, s, 1, STRANGER), {STRANGER})
            assert re.search(r"^one-uid why=.*uid_map", s.log(), re.M), s.log()


@test(private=True, root=True)
def no_worker_is_root_of_the_machine(ctx):
    """What "unshare -r" makes when root calls it, and a range that is too small."""
    program = os.path.join(ctx.options.build, "mcp-pythond")
    with tempfile.TemporaryDirectory() as place:
        config, socket = os.path.join(place, "conf"), os.path.join(place, "socket")
        for wrap, text, said in (
                ([sys.executable, "-c", ROOT_OF_A_FEW, "0 0 1"], "", "root here is root outside"),
                ([], "[service]\nsubuid_count = 4\n", "is above subuid_count")):
            with open(config, "w", encoding="ascii") as f:
                f.write(text)
            done = subprocess.run([*wrap, program, "--config", config, "--socket", socket],
                                  capture_output=True, text=True, timeout=ctx.seconds(60))
            assert done.returncode not in (0, 2) and said in done.stderr, done


@test(single=True)
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


@test(single=True)
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


@test(single=True)
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
    if len(held) > (9 if ns_pid(pid) == 1 else 8):
        return held
    # A warm worker has its script's file open, to be written when it comes, the timer that it will
    # start, and what it tells the uptime and the memory by; init has these two, too, the rules that
    # a session's first place is to enter, and its signals.
    of_init = ("anon_inode:[landlock-ruleset]", "anon_inode:[signalfd]")
    return {fd: target for fd, target in held.items()
            if not target.startswith(("socket:", "pipe:", "anon_inode:[pidfd]"))
            and target not in ("/dev/null", "/workspace/script.py", "anon_inode:[timerfd]",
                               "/run/meminfo (deleted)", "/run/uptime (deleted)")
            and not (target in of_init and ns_pid(pid) == 1)}


@test(single=True)
def descriptors_of_workers(ctx):
    if os.getuid():
        raise Skip("only root may look at the descriptors of others")
    with ctx.client() as client:
        busy(ctx, client, 2)
        for pid in ready_processes(ctx):
            # One that gets warm looks at itself, for some milliseconds: what it keeps counts.
            until(lambda: "%d holds %s" % (pid, strange_descriptors(pid)),
                  lambda: not strange_descriptors(pid))


def held(pid):
    """Its descriptors beyond the standard ones, each by what it leads to."""
    found = []
    for fd in os.listdir("/proc/%d/fd" % pid):
        try:
            if int(fd) > 2:
                found.append(os.readlink("/proc/%d/fd/%s" % (pid, fd)))
        except OSError:
            pass			# closed meanwhile
    return sorted(found)


def kinds_of(targets):
    """socket 3, pipe 1, /path ..."""
    counts = {}
    for target in targets:
        kind = re.sub(r":.*", "", target) if not target.startswith("/") else target
        kind = re.sub(r"/\d[^/]*", "/N", kind)
        counts[kind] = counts.get(kind, 0) + 1
    return " ".join("%s*%d" % item for item in sorted(counts.items()))


def is_dumpable(pid):
    """The files of a process that is not belong to root of its namespace (proc(5)); whoever is
    that root itself cannot be told by it."""
    return os.stat("/proc/%d/stat" % pid).st_uid == int(fields_of(pid)["Uid"].split()[1])


def core_limit(pid):
    return re.search(r"Max core file size\s+(\S+)", read_text("/proc/%d/limits" % pid))[1]


def has_guard(pid):
    """A timer that interrupts the waits of its loop: base/stall.h."""
    return "signal: 14/" in (read_text("/proc/%d/timers" % pid) or "")


def by_kind(ctx):
    """One process of each kind: launcher, directory helper, zygote, init, script."""
    kinds, ready = {"supervisor": ctx.pid}, ready_processes(ctx)
    for pid in processes(ctx)[1:]:
        inner, name = inner_pid(pid), fields_of(pid).get("Name", "").strip()
        if inner == pid:
            kinds[{"mcp-launcher": "launcher", "mcp-directory": "directory", "mcp-files": "files",
                   "mcp-usage": "usage", "mcp-forker": "forker",
                   "python-zygote": "zygote"}.get(name, name)] = pid
        elif inner in (1, 2) and pid in ready:
            kinds["init" if inner == 1 else "script"] = pid
    return kinds


@test(single=True)
def what_each_process_has(ctx):
    """Prints the privileges for the log, and compares them with the expected ones."""
    if os.getuid():
        raise Skip("only root may look at the descriptors of others")
    wanted = {"supervisor", "launcher", "forker", "directory", "usage", "zygote", "init", "script"}
    lines = []
    with ctx.client() as client:
        busy(ctx, client, 2)
        for _ in range(20):	# a warm worker may end while it is looked at
            kinds = by_kind(ctx)
            shown = {kind: fields_of(pid) for kind, pid in kinds.items()}
            if wanted <= {kind for kind, fields in shown.items() if fields}:
                break
        for kind in wanted:
            assert shown.get(kind), "there is no %s among %s" % (kind, kinds)
        for kind, fields in shown.items():
            pid = kinds[kind]
            if not fields:
                continue
            lines.append("%s: %s filters=%s dumpable=%s core=%s guard=%s fds: %s" % (
                kind, " ".join("%s=%x" % (c, int(fields[c], 16)) for c in CAPABILITY_SETS),
                fields.get("Seccomp_filters", "?"), is_dumpable(pid), core_limit(pid),
                has_guard(pid), kinds_of(held(pid))))
        for kind in shown:	# 0 would start a core handler that is a program
            equal(core_limit(kinds[kind]), "1", "core of the " + kind)
        for kind in ("supervisor", "launcher", "forker", "directory", "usage"):
            equal(is_dumpable(kinds[kind]), False, "dumpable " + kind)
        for kind in ("supervisor", "zygote"):
            assert has_guard(kinds[kind]), "the %s waits as long as a peer likes" % kind
        # What name services send is parsed where nothing else is.
        # The leases are an empty sealed file, whose locks say that the helper lives.
        for kind in ("directory", "usage"):
            equal(kinds_of(held(kinds[kind])), "/memfd:mcp-leases (deleted)*1 socket*1", kind)
        # The ways into the workers' namespaces are the launcher's, and the fork servers' for it.
        for target in held(kinds["supervisor"]):
            assert not re.match(r"(user|mnt):\[", target), "the supervisor holds " + target
        for kind in ("launcher", "forker"):
            for target in held(kinds[kind]):
                assert re.match(r"socket:|(user|mnt):\[|.*/mcp-python-(worker|egress)|anon_inode:\[pidfd|"
                                r"/memfd:mcp-leases ",
                                target), "the %s holds %s" % (kind, target)
    print("\n".join("        " + line for line in lines), flush=True)


# What nobody in the service does: ways into processes, the kernel and the machine.
STRANGE = (("ptrace", -1, -1), ("process_vm_readv", -1), ("process_vm_writev", -1),
           ("pidfd_getfd", -1, -1), ("kcmp", 1, 1), ("bpf", -1), ("perf_event_open", 0),
           ("io_uring_setup", 0), ("userfaultfd", 0), ("keyctl", 0), ("add_key", 0),
           ("open_by_handle_at", -1), ("init_module", 0), ("kexec_load", 0), ("reboot", 0))

# What the supervisor does not do either: with arguments that would do something.
NEWUSER, NEWNS, SIGCHLD, EXEC = 0x10000000, 0x20000, 17, 4
FENCED = (("unshare", NEWUSER), ("unshare", NEWNS), ("clone", SIGCHLD), ("clone", NEWUSER | SIGCHLD),
          ("clone3", 0), ("fork",), ("vfork",), ("setuid", 0), ("chroot", 0), ("mount", 0),
          ("umount2", 0), ("pivot_root", 0), ("open_tree", -100, 0), ("move_mount", -1), ("fsopen", 0),
          ("socket", 2, 1), ("socket", 10, 2), ("socket", 16, 3), ("socket", 17, 3),
          ("socket", 1 << 32 | 2, 1), ("socket", 1, 1), ("socket", 1, 5), ("connect", -1), ("bind", -1),
          ("fcntl", 0, 8, 1), ("fcntl", 0, 15, 1), ("fcntl", 0, 10, 9), ("fcntl", 0, 1024, 1),
          ("fcntl", 0, 1026, 1), ("fcntl", 0, 1 << 32 | 8, 1), ("chmod", 1, 0o4755), ("fchmodat", -100, 1, 0o4755),
          ("utimensat", -100, 1, 0, 0), ("pidfd_send_signal", -1, 0, 0, 4), ("personality", 0), ("prctl", 4, 1),
          ("mmap", 0, 4096, EXEC | 3, 0x22, -1), ("mprotect", 0, 4096, EXEC))


def pidfds_of(pid):
    found = []
    for fd in os.listdir("/proc/%d/fd" % pid):
        with contextlib.suppress(FileNotFoundError):	# closed meanwhile
            if "pidfd" in os.readlink("/proc/%d/fd/%s" % (pid, fd)):
                found.append(int(fd))
    return found


@test(single=True, root=True)
def code_in_the_supervisor_enters_nobody(ctx):
    """The ways into a worker, with its own pidfd in hand, and the ways to other processes."""
    with ctx.client() as client:
        busy(ctx, client, 1)
        worker = roots(ctx)[0]
        pidfds = pidfds_of(ctx.pid)
        assert pidfds, "the supervisor holds no pidfd"
        outside = os.getpid()
        tried = 0
        for it in inside_threads(ctx.pid):
            equal(it.call("getpid"), ctx.pid, "getpid")
            for pidfd in pidfds:
                equal(it.call("setns", pidfd, NEWUSER | NEWNS), "EPERM", "setns of its pidfds")
                equal(it.call("pidfd_getfd", pidfd, 0, 0), "EPERM", "pidfd_getfd")
            for call in ("kill", "tkill"):
                equal(it.call(call, outside, 0), "EPERM", call)
                equal(it.call(call, ctx.pid, 0), "EPERM", call + " of itself")
            equal(it.call("tgkill", outside, outside, 0), "EPERM", "tgkill")
            equal(it.call("pidfd_open", outside, 0), "EPERM", "pidfd_open")
            equal(it.call("getsockopt", 0, 1, 77, 0, 0), "EPERM", "SO_PEERPIDFD")
            equal(it.call("getsockopt", 0, 1, 1 << 32 | 77, 0, 0), "EPERM", "the same")
            equal(it.call("ptrace", 0x4206, worker, 0, 0), "EPERM", "PTRACE_SEIZE of a worker")
            equal(it.call("execve", it.text("/bin/true"), 0, 0), "EPERM", "execve")
            equal(it.call("execveat", -100, it.text("/bin/true"), 0, 0, 0), "EPERM", "execveat")
            for name, *arguments in FENCED + STRANGE:
                equal(it.call(name, *arguments), "EPERM", "%s %r" % (name, arguments))
                tried += 1
        equal(client.ask("ping"), {}, "it goes on")
    return "%d calls" % tried


def inside_threads(pid):
    """Each thread of a process: a fence may hold for one of them alone."""
    threads = list(map(int, os.listdir("/proc/%d/task" % pid)))
    assert len(threads) > 1, "no thread writes the audit log"
    for thread in threads:
        with Inside(thread) as it:
            yield it


def has_landlock():
    landlock_create_ruleset, version = 444, 1
    return ctypes.CDLL(None).syscall(landlock_create_ruleset, None, 0, version) > 0


def directories_of(pid):
    """Its descriptors of directories: a path from there may lead out by "..". """
    return [int(fd) for fd in os.listdir("/proc/%d/fd" % pid)
            if os.path.isdir("/proc/%d/fd/%s" % (pid, fd))]


READ, READ_WRITE, CREATE, DIRECTORY = 0, 2, 0o102, 0o200000


@test(single=True)
def code_in_the_supervisor_opens_no_other_file(ctx):
    """Files of the host, by paths and from directories that it holds; memory and directories of
    processes, its own included. The files that it needs open."""
    if os.getuid() or not has_landlock():
        raise Skip("needs root, and a kernel with Landlock")
    with ctx.client() as client, tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o777)
        busy(ctx, client, 1)
        open_to_all = os.path.join(place, "file")
        with open(open_to_all, "w", encoding="ascii") as f:
            f.write("secret")
        os.chmod(open_to_all, 0o666)
        worker, outside, folders = roots(ctx)[0], os.getpid(), directories_of(ctx.pid)
        tried = 0
        for it in inside_threads(ctx.pid):
            for path, flags in [
                    ("/etc/passwd", READ), ("/", READ | DIRECTORY), ("/etc", READ | DIRECTORY),
                    ("/dev/null", READ_WRITE), (place, READ | DIRECTORY), (open_to_all, READ),
                    (open_to_all, READ_WRITE), (place + "/new", CREATE), ("/proc", READ),
                    ("/proc/self/mem", READ_WRITE), ("/proc/self/status", READ),
                    ("/proc/self/fd", READ)] + [
                    ("/proc/%d%s" % (pid, file), flags) for pid in (worker, outside)
                    for file, flags in (("", READ | DIRECTORY), ("/mem", READ_WRITE),
                                        ("/environ", READ), ("/root/etc/passwd", READ))]:
                for call in (("open", it.text(path), flags, 0o600),
                             ("openat", -100, it.text(path), flags, 0o600)):
                    said = it.call(*call)
                    assert said in ("EACCES", "ENOENT"), "%s %s: %r" % (call[0], path, said)
                    tried += 1
            for folder in folders:
                for path in ("../" * 20 + "etc/passwd", "../" * 20 + "proc/self/mem"):
                    equal(it.call("openat", folder, it.text(path), READ), "EACCES", path)
                    tried += 1
            equal(it.call("unlink", it.text(open_to_all)), "EACCES", "unlink")
            equal(it.call("rename", it.text(open_to_all), it.text(place + "/b", 1)), "EACCES",
                  "rename")
        assert os.listdir(place) == ["file"], os.listdir(place)
        equal(client.run("print(1)").stdout, "1\n", "it goes on")
    return "%d calls, %d directories held" % (tried, len(folders))


# What the usage helper does not do: it opens files for reading, and answers.
NOT_OF_USAGE = (("fork",), ("clone", SIGCHLD), ("execve", 0, 0, 0), ("kill", 1, 0), ("socket", 1, 1),
                ("socket", 2, 1), ("mmap", 0, 4096, EXEC | 3, 0x22, -1), ("pidfd_open", 1, 0),
                ("unlink", 0), ("rename", 0, 0), ("open", 0, READ), ("openat", -100, 0, READ_WRITE),
                ("openat", -100, 0, CREATE), ("mount", 0), ("unshare", NEWUSER), ("setns", -1, 0))


@test(single=True)
def code_in_the_usage_helper_is_bounded(ctx):
    with ctx.client() as client:
        client.run("1")
        with Inside(by_kind(ctx)["usage"]) as it:
            for name, *arguments in STRANGE + NOT_OF_USAGE:
                equal(it.call(name, *arguments), "EPERM", "%s %r" % (name, arguments))
        equal(client.run("print(1)").stdout, "1\n", "it goes on")


# Ways from root of a namespace to code of the kernel that nobody here needs: netfilter, raw and other
# sockets; and out of the file tree.
NOT_OF_FAMILY = (("socket", 16, 3, 12), ("socket", 17, 3), ("socket", 2, 3, 255), ("socket", 10, 3, 58),
                 ("socket", 40, 1), ("socket", 38, 5), ("chroot", 0))

# What is over for a zygote that is ready.
NOT_OF_ZYGOTE = (("setns", -1, 0), ("setns", -1, NEWNS), ("unshare", NEWUSER), ("unshare", NEWNS),
                 ("clone", NEWUSER | SIGCHLD), ("pivot_root", 0), ("umount2", 0), ("open_tree", -100, 0),
                 ("move_mount", -1), ("fsopen", 0))


def is_bounded(ctx, kind):
    """False: it has ended meanwhile, as a zygote does that is renewed."""
    try:
        with Inside(by_kind(ctx)[kind]) as it:
            equal(it.call("getpid"), inner_pid(it.pid), "getpid")
            for name, *arguments in STRANGE + NOT_OF_FAMILY + (NOT_OF_ZYGOTE if kind != "launcher" else ()):
                said = it.call(name, *arguments)
                assert said in ("EPERM", "ENOSYS"), "%s %r in %s: %r" % (name, arguments, kind, said)
    except ProcessLookupError:
        return False
    return True


@test(single=True)
def code_in_launcher_and_zygote_is_bounded(ctx):
    """They can enter namespaces, which is their purpose, but reach no memory or descriptors."""
    with ctx.client() as client:
        busy(ctx, client, 1)
        for kind in ("launcher", "zygote", "init"):
            until("the calls in one %s" % kind, lambda kind=kind: is_bounded(ctx, kind))
        equal(client.ask("ping"), {}, "it goes on")


# What the directory helper does not do: it forks, ends its children and asks name services.
NOT_OF_DIRECTORY = (
    ("unshare", NEWUSER), ("setns", -1, 0), ("clone", NEWUSER | SIGCHLD), ("clone", NEWNS | SIGCHLD),
    ("vfork",), ("chroot", 0), ("mount", 0), ("umount2", 0), ("pivot_root", 0),
    ("open_tree", -100, 0), ("move_mount", -1), ("fsopen", 0), ("socket", 17, 3), ("socket", 40, 1),
    ("personality", 0), ("execve", 0), ("execveat", -1))


@test(single=True)
def code_in_the_directory_helper_is_bounded(ctx):
    with ctx.client() as client:
        client.ask("ping")
        helper = by_kind(ctx)["directory"]
        with Inside(helper) as it:
            equal(it.call("getpid"), helper, "getpid")
            for name, *arguments in NOT_OF_DIRECTORY + STRANGE:
                equal(it.call(name, *arguments), "EPERM", "%s %r" % (name, arguments))
            equal(it.call("clone3", 0), "ENOSYS", "clone3")
            for number in (0, 15):
                equal(it.call("kill", ctx.pid, number), "EPERM", "kill %d" % number)
            equal(it.call("kill", -1, 9), "EPERM", "kill of all")
            equal(it.call("pidfd_open", ctx.pid, 0), "EPERM", "pidfd_open")
        equal(client.ask("ping"), {}, "it goes on")


# The keeper mounts sets and enters mount namespaces; it forks, and starts no program.
NOT_OF_KEEPER = (("setns", -1, 0), ("setns", -1, NEWUSER), ("unshare", NEWNS), ("clone", NEWNS | SIGCHLD),
                 ("clone3", 0), ("execve", 0), ("execveat", -1), ("mount", 0), ("pivot_root", 0),
                 ("fsopen", 0), ("socket", 1, 1), ("socket", 2, 1), ("kill", 1, 0), ("pidfd_open", 1),
                 ("mmap", 0, 4096, EXEC | 3, 0x22, -1), ("mprotect", 0, 4096, EXEC))


def walled_keeper(pid):
    """The family's filter and its own: it is past its start."""
    return next((one for one, _ in descendants(pid) if comm(one) == "python-keeper"
                 and fields_of(one).get("Seccomp_filters") == "2"), None)


@test(private=True, root=True)
def code_in_the_keeper_is_bounded(ctx):
    with new_store() as store, \
            ctx.private("[packages]\nstore = %s\n" % store) as s, ctx.client(path=s.socket) as client:
        keeper = until("a keeper with two filters", lambda: walled_keeper(s.pid))
        with Inside(keeper) as it:
            equal(it.call("getpid"), keeper, "getpid")
            for name, *arguments in NOT_OF_KEEPER + NOT_OF_FAMILY + STRANGE:
                equal(it.call(name, *arguments), "EPERM", "%s %r" % (name, arguments))
            equal(it.call("setns", -1, NEWNS), "EBADF", "what it is for")
        equal(client.ask("ping"), {}, "it goes on")


# Alone: the core handler is the machine's.
@test(alone=True, private=True, root=True)
def a_crash_starts_no_core_handler(ctx):
    """A hard limit of 0, with which the kernel starts it, is raised, or no script runs."""
    for wrap in (), ("prlimit", "--core=0:0"):
        with core_handler(), ctx.private(wrap=wrap) as s, ctx.client(path=s.socket) as client:
            if core_limit(s.pid) == "1":
                check_no_handler(lambda script, c=client: c.run(script, ctx.seconds(60)).stdout)
            else:
                o = client.run("print(1)", ctx.seconds(60))
                equal((o.status, o.stdout), ("jail_failed", ""), repr(o))
                assert "ulimit -Hc" in o.error["message"], o.error
    with core_handler(program=False), ctx.private(wrap=wrap) as s, ctx.client(path=s.socket) as client:
        equal(client.run("print(1)", ctx.seconds(60)).status, "ok", "without a handler")


@test(single=True)
def everybody_is_filtered(ctx):
    for pid in processes(ctx):
        fields = fields_of(pid)
        if "Seccomp" in fields:
            equal(fields["Seccomp"], "2", "seccomp of %d (%s)" % (pid, fields["Name"]))


main(__doc__, modules=FEW_MODULES)
