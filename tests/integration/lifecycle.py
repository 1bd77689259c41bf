#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Start, stop, death and revival of the service and of its parts."""

import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from harness import FEW_MODULES, LEGACY, MODERN, Skip, equal, main, test
from mcpclient import Client, Closed
from supervisor import (HELPERS, Supervisor, cgroup_of, children, comm, describe, descendants, is_alive, process_table, read_text,
                        wait_gone)
from waits import until


def run_once(ctx, *arguments):
    return subprocess.run([os.path.join(ctx.options.build, "mcp-pythond"), *arguments],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=ctx.seconds(60))


@test(private=True, any_rights=True)
def version_and_help(ctx):
    for option, word in (("--version", "mcp-pythond"), ("--help", "--socket")):
        done = run_once(ctx, option)
        equal(done.returncode, 0, option)
        assert word in done.stdout, done.stdout
    for bad in (["--no-such-option"], ["unexpected"], ["--socket"]):
        done = run_once(ctx, *bad)
        assert done.returncode not in (0, -11) and done.stderr, (bad, done)


@test(private=True, any_rights=True)
def check_config(ctx):
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as f:
        f.write("[limits]\ntimeout_seconds = 5\n")
        f.flush()
        equal(run_once(ctx, "--config", f.name, "--check-config").returncode, 0, "a good file")
        f.seek(0)
        f.truncate()
        f.write("[limits]\ntimeout_seconds = never\nno_such_key = 1\n[nowhere]\na=1\n")
        f.flush()
        done = run_once(ctx, "--config", f.name, "--check-config")
        assert done.returncode not in (0, -11), done
        text = done.stdout + done.stderr
        for word in ("timeout_seconds", "no_such_key", ":2", ":3"):
            assert word in text, "%r is not said in %r" % (word, text)
    assert run_once(ctx, "--config", "/nonexistent.conf", "--check-config").returncode != 0


@test(private=True, any_rights=True)
def check_config_compares_processes(ctx):
    for running, pids, noted in ((4096, 65536, True), (1, 64, False)):
        with tempfile.NamedTemporaryFile("w", suffix=".conf") as f:
            f.write("[pool]\nworkers_max = 4096\ntenant_running_max = %d\n[limits]\npids_max = %d\n" % (running, pids))
            f.flush()
            done = run_once(ctx, "--config", f.name, "--check-config")
        equal(done.returncode, 0, done.stderr)
        equal("note: [pool] tenant_running_max times [limits] pids_max is %d" % (running * pids)
              in done.stderr, noted, done.stderr)


@test(private=True)
def second_supervisor_is_refused(ctx):
    with ctx.private() as s:
        done = run_once(ctx, "--socket", s.socket)
        assert done.returncode not in (0, -11), done
        assert s.socket in done.stderr, done.stderr
        with Client.connect(s.socket) as client:
            equal(client.run("print(1)").stdout, "1\n", "the first one's answer")


@test(private=True)
def dead_socket_is_replaced(ctx):
    with tempfile.TemporaryDirectory() as d:
        os.chmod(d, 0o711)
        path = os.path.join(d, "mcp.sock")
        dead = socket.socket(socket.AF_UNIX)
        dead.bind(path)
        dead.listen(1)
        dead.close()
        with ctx.private(socket_path=path) as s, Client.connect(path) as client:
            equal(client.run("print(1)").stdout, "1\n", "stdout")
            assert s.pid


@test(private=True)
def other_files_are_not_replaced(ctx):
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "mcp.sock")
        for make in (lambda: open(path, "w").write("precious"), lambda: os.mkdir(path),
                     lambda: os.symlink("/etc/passwd", path)):
            make()
            done = run_once(ctx, "--socket", path)
            assert done.returncode not in (0, -11), done
            if os.path.isdir(path):
                os.rmdir(path)
            else:
                if not os.path.islink(path):
                    equal(open(path).read(), "precious", "the file")
                os.unlink(path)


@test(private=True, root=True)
def what_the_service_may_not_read_is_left_out(ctx):
    """Of small files of the host that every jail has a copy of."""
    shown = "/etc/ssl/certs"
    if not os.path.isdir(shown):
        raise Skip("no " + shown)
    with tempfile.TemporaryDirectory() as d:
        os.chmod(d, 0o755)
        for name, mode in (("everybodys", 0o644), ("roots", 0o600)):
            with open(os.path.join(d, name), "w", encoding="utf-8"):
                os.chmod(os.path.join(d, name), mode)
        s = Supervisor(ctx.options.build)
        s.argv = ["unshare", "--mount", "sh", "-c",
                  'mount --bind "$0" %s && exec "$@"' % shown, d, *s.argv]
        with s, Client.connect(s.socket) as client:
            equal(client.run("import os\nos.listdir('%s')" % shown).result["json"], ["everybodys"])
            equal(s.stop(), 0, "exit status")


@test(private=True)
def socket_is_private(ctx):
    s = Supervisor(ctx.options.build)
    real_chmod, os.chmod = os.chmod, lambda path, mode, **k: None	# as the service made it
    try:
        s.start()
        mode = os.stat(s.socket).st_mode & 0o777
        equal(oct(mode), oct(0o600), "mode of the socket")
        s.stop()
    finally:
        os.chmod = real_chmod
        s.stop()
        s.remove()


@test(private=True)
def sigterm_answers_what_runs(ctx):
    """Within seconds: cancelled, because of the shutdown; what waits in the queue as well."""
    with ctx.private("[pool]\ntenant_running_max = 4\n") as s:
        clients = [Client.connect(s.socket, r) for r in (LEGACY[-1], MODERN)]
        ids = [(c, c.start_script("print('on', flush=True)\nimport time\ntime.sleep(100)",
                                  timeout_seconds=200)) for c in clients for _ in range(8)]
        for c in clients:
            c.ask("tools/list")		# then all calls before it have been taken
        started = time.monotonic()
        s.process.send_signal(signal.SIGTERM)
        for c, id in ids:
            o = c.outcome(id, ctx.seconds(10))
            equal(o.status, "cancelled", repr(o))
            assert "shut" in o.error["message"], o.error
        equal(s.process.wait(ctx.seconds(10)), 0, "exit status")
        assert time.monotonic() - started < 8 * ctx.slow, "took %.1f s" % (
            time.monotonic() - started)
        for c in clients:
            c.close()


@test(private=True)
def sigint_stops_too(ctx):
    s = Supervisor(ctx.options.build)
    with s:
        with Client.connect(s.socket) as client:
            client.run("1")		# its loop runs, its handlers are set
        equal(s.stop(signal.SIGINT), 0, "exit status")
        equal(s.leftovers(), [], "left")


@test(private=True)
def stop_while_starting(ctx):
    """SIGTERM at any moment of the start: gone, with nothing left."""
    for delay in (0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.4):
        s = Supervisor(ctx.options.build)
        s.strangers = children(os.getpid())
        with open(s.log_path, "ab") as log:
            s.process = subprocess.Popen(s.argv, env=s.env, stdin=subprocess.DEVNULL,
                                         stdout=log, stderr=log)
        select.select([], [], [], delay)		# the moment is what is tested
        status = s.stop(timeout=20)
        assert status in (0, -signal.SIGTERM), "after %g s: %s\n%s" % (delay, status, s.log())
        s.remove()


@test(private=True)
def stop_under_load(ctx):
    with ctx.private() as s:
        clients = [Client.connect(s.socket) for _ in range(8)]
        for c in clients:
            for i in range(30):
                c.start_script("print(%d)" % i)
        for c in clients:
            c.ask("ping")	# all have been taken: what comes later need not be answered
        s.process.send_signal(signal.SIGTERM)
        for c in clients:
            while c.pending and not c.eof:
                c.pump(ctx.seconds(10))
            assert not c.pending, "%d calls got no answer" % len(c.pending)
            statuses = {m["result"]["structuredContent"]["status"]
                        for m, _ in c.answers.values()
                        if "structuredContent" in m.get("result", {})}
            assert statuses <= {"ok", "cancelled", "overloaded"}, statuses
            c.close()
        equal(s.process.wait(ctx.seconds(10)), 0, "exit status")


@test(private=True)
def stop_while_workers_are_made(ctx):
    """What its zygote has cloned and not yet named is ended too, and its cgroup removed."""
    for i in range(ctx.count(20)):
        with ctx.private() as s:
            clients = [Client.connect(s.socket) for _ in range(1 + i % 4)]
            equal(clients[0].run("1").status, "ok", "status")
            s.cgroups()		# now it is known where to look for what is left
            for c in clients:
                for _ in range(i % 5 * 4):
                    c.start_script("print(1)")
            s.process.send_signal(signal.SIGSTOP)
            for pid, _ in zygotes(s):
                until("a zygote has done all that it was asked",
                      lambda: process_table().get(pid, (0, "S"))[1] == "S")
            s.process.send_signal(signal.SIGTERM)
            if i % 2:	# a second one does not wait for answers
                s.process.send_signal(signal.SIGINT)
            s.process.send_signal(signal.SIGCONT)
            equal(s.process.wait(ctx.seconds(10)), 0, "exit status")
            for c in clients:
                c.close()


@test(private=True)
def killed_supervisor_leaves_nobody(ctx):
    """kill -9: workers, zygotes and scripts with their children end by themselves."""
    s = Supervisor(ctx.options.build)
    with s:
        client = Client.connect(s.socket)
        for _ in range(4):
            client.start_script("import os, time\nif os.fork() == 0: os.setsid()\n"
                                "print('x', flush=True)\ntime.sleep(300)", timeout_seconds=400)
        client.run("1")
        below = descendants(s.pid)
        assert len(below) >= 8, below
        s.process.kill()
        s.process.wait()
        left = wait_gone(below, ctx.seconds(10))
        assert not left, "left: " + ", ".join(describe(p) for p, _ in left)
        try:
            while not client.eof:
                client.pump(ctx.seconds(5))
        except Closed:
            pass
        client.close()
        path, s.process = s.socket, None
        with ctx.private(socket_path=path) as again, Client.connect(again.socket) as fresh:
            equal(fresh.run("print('again')").stdout, "again\n", "stdout")


def depth(pid):
    """In how many nested pid namespaces below this one a process is; None: it has ended."""
    m = re.search(r"NSpid:((?:\t\d+)+)", read_text("/proc/%d/status" % pid) or "")
    return m and len(m[1].split()) - 1


def zygotes(s):
    """Processes below the supervisor that are not in a pid namespace of their own."""
    return [(pid, start) for pid, start in descendants(s.pid)
            if depth(pid) == 0 and comm(pid) not in HELPERS]


def inits(s):
    return [pid for pid, _ in descendants(s.pid)
            if re.search(r"NSpid:\t%d\t1\n" % pid, read_text("/proc/%d/status" % pid) or "")]


@test(private=True)
def killed_zygote_is_replaced(ctx):
    with ctx.private() as s, Client.connect(s.socket) as client:
        equal(client.run("print(1)").stdout, "1\n", "stdout")
        running = client.start_script("import time\ntime.sleep(3)\nprint('lived on')")
        client.run("1")
        for round in range(3):
            old = zygotes(s)
            assert old, "no zygote found"
            for pid, _ in old:
                try:
                    os.kill(pid, signal.SIGKILL)
                except PermissionError:
                    raise Skip("may not kill the zygote as this user") from None
            equal(wait_gone(old, ctx.seconds(10)), [], "zygotes left")
            for i in range(12):			# more than are warm: needs a new zygote
                o = client.run("print(%d)" % i, ctx.seconds(60))
                equal((o.status, o.stdout), ("ok", "%d\n" % i), repr(o))
        o = client.outcome(running)
        equal((o.status, o.stdout), ("ok", "lived on\n"), repr(o))
        assert zygotes(s), "no zygote"


@test(private=True)
def stopped_zygote_does_not_stop_the_rest(ctx):
    """A zygote that hangs: running scripts end, the service stays responsive and ends well."""
    with ctx.private() as s, Client.connect(s.socket) as client:
        client.run("1")
        until("as many workers as are kept warm", lambda: len(inits(s)) >= 4)
        (pid, start), = zygotes(s)[:1]
        os.kill(pid, signal.SIGSTOP)
        try:
            equal(client.run("print('warm')").stdout, "warm\n", "a warm worker's answer")
            equal(client.ask("ping"), {}, "ping")
            with Client.connect(s.socket, MODERN) as other:
                assert other.ask("tools/list")["tools"], "tools/list"
        finally:
            if is_alive(pid, start):
                os.kill(pid, signal.SIGCONT)


@test(private=True)
def killed_worker_is_an_answer(ctx):
    """Somebody outside kills a worker: an answer that says so, and the next call works."""
    with ctx.private() as s, Client.connect(s.socket) as client:
        client.run("1")
        id = client.request("tools/call", {
            "name": "run_script", "_meta": {"progressToken": "t"},
            "arguments": {"script": "print('up', flush=True)\nimport time\ntime.sleep(60)"}})
        while not client.notices:
            client.pump(ctx.seconds(20))
        victims = [(p, start) for p, start in descendants(s.pid) if p in inits(s)]
        for pid, _ in victims:		# the warm ones as well
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass			# the one that ran the first call
        o = client.outcome(id, ctx.seconds(20))
        equal(o.status, "killed", repr(o))
        wait_gone(victims, ctx.seconds(10))
        equal((client.ask("ping"), client.ask("ping")), ({}, {}), "ping")
        o = client.run("print(2)")
        equal(o.stdout, "2\n", "the next call, %r," % o)


@test(private=True)
def stdio(ctx):
    """--stdio serves one client on standard input and output, and ends with its input."""
    for revision in (LEGACY[0], LEGACY[-1], MODERN):
        client = Client.spawn([os.path.join(ctx.options.build, "mcp-pythond"), "--stdio"], revision,
                              stderr=subprocess.PIPE)
        o = client.run("print(6 * 7)")
        equal((o.status, o.stdout), ("ok", "42\n"), repr(o))
        below = descendants(client.owner.pid)
        client.owner.stdin.close()
        status = client.owner.wait(ctx.seconds(20))
        errors = client.owner.stderr.read().decode()
        client.owner.stdout.close()
        client.owner.stderr.close()
        client.owner = None
        equal(status, 0, "exit status; stderr: %s" % errors)
        equal(wait_gone(below, ctx.seconds(10)), [], "left running")
        assert "{" not in errors.split("\n")[0], errors


@test(private=True)
def a_user_has_files_of_their_own(ctx):
    """Over those of the machine; not root's, and not beside --config."""
    root = os.getuid() == 0
    with tempfile.TemporaryDirectory() as d:
        os.chmod(d, 0o755)
        program = shutil.copy(os.path.join(ctx.options.build, "mcp-pythond"), d + "/program")
        for name, text in (("mcp-pythond.conf", "timeout_seconds = 7\nmemory_mb = 111"),
                           ("conf.d/x.conf", "memory_mb = 222"), ("../other", "memory_mb = 99")):
            path = os.path.normpath(os.path.join(d, "mcp-pythond", name))
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as f:
                f.write("[limits]\n%s\n" % text)

        def in_force(*options, **who):
            done = subprocess.run([program, "--dump-config", *options], capture_output=True, text=True,
                                  env={"XDG_CONFIG_HOME": d, "ASAN_OPTIONS": "detect_leaks=0"},
                                  timeout=ctx.seconds(60), **who)
            assert done.returncode == 0, done
            return re.findall(r"^(?:timeout_seconds|memory_mb) = (\d+)$",
                              done.stdout[done.stdout.index("[limits]"):], re.M)[:2]
        somebody = {"user": 65534, "group": 65534, "extra_groups": []} if root else {}
        equal(in_force(**somebody), ["7", "222"])
        equal(in_force("--config", d + "/other", **somebody), ["30", "99"])
        if root:
            equal(in_force(), ["30", "512"])


@test(private=True)
def stdio_dies_with_its_client(ctx):
    client = Client.spawn([os.path.join(ctx.options.build, "mcp-pythond"), "--stdio"], LEGACY[-1],
                          stderr=subprocess.DEVNULL)
    client.start_script("import time\ntime.sleep(100)", timeout_seconds=200)
    client.flush()
    client.run("1")
    below = descendants(client.owner.pid)
    client.owner.send_signal(signal.SIGTERM)
    client.owner.wait(ctx.seconds(20))
    equal(wait_gone(below, ctx.seconds(10)), [], "left running")
    client.owner.stdin.close()
    client.owner.stdout.close()
    client.owner = None


@test(private=True)
def bridge(ctx):
    """mcp-python connect passes everything through, and ends when either side does."""
    program = os.path.join(ctx.options.build, "mcp-python")
    with ctx.private() as s:
        for revision in (LEGACY[0], LEGACY[-1], MODERN):
            client = Client.spawn([program, "connect", "--socket", s.socket], revision)
            o = client.run("print('through')")
            equal(o.stdout, "through\n", repr(o))
            client.owner.stdin.close()
            equal(client.owner.wait(ctx.seconds(20)), 0, "exit status")
            client.owner.stdout.close()
            client.owner = None
        client = Client.spawn([program, "connect", "--socket", s.socket])
        s.process.send_signal(signal.SIGTERM)
        client.owner.wait(ctx.seconds(20))
        client.owner.stdin.close()
        client.owner.stdout.close()
        client.owner = None
    done = subprocess.run([program, "connect", "--socket", "/nonexistent/s"], capture_output=True,
                          text=True, stdin=subprocess.DEVNULL, timeout=ctx.seconds(20))
    assert done.returncode and "/nonexistent/s" in done.stderr, done


@test(private=True)
def run_command(ctx):
    program = os.path.join(ctx.options.build, "mcp-python")
    with ctx.private() as s, tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "t.py")

        def run(text, *arguments, input=""):
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            return subprocess.run([program, "run", "--socket", s.socket, path, *arguments],
                                  input=input, capture_output=True, text=True,
                                  timeout=ctx.seconds(60))
        done = run("import sys\nprint(sys.argv[1:])\nprint('e', file=sys.stderr)\nsys.exit(3)",
                   "--", "a", "--b")
        equal((done.returncode, done.stdout), (3, "['a', '--b']\n"), repr(done))
        assert done.stderr.startswith("e\n") or "\ne\n" in done.stderr, done
        done = run("1 / 0")
        assert done.returncode == 1 and "ZeroDivisionError" in done.stderr, done
        equal(run("print('fine')").returncode, 0, "exit status")
        equal(run("import os\nos.kill(os.getpid(), 15)").returncode, 143, "exit status")


@test(private=True, any_rights=True)
def bad_configuration_is_not_served(ctx):
    with tempfile.TemporaryDirectory() as d:
        config = os.path.join(d, "c.conf")
        with open(config, "w", encoding="utf-8") as f:
            f.write("[limits]\nmemory_mb = 4096\nmemory_max_mb = 1024\n")
        done = run_once(ctx, "--config", config, "--socket", os.path.join(d, "s"))
        assert done.returncode not in (0, -11) and "memory" in done.stderr, done
        assert not os.path.exists(os.path.join(d, "s")), "it made its socket"


@test(private=True)
def configured_limits_hold(ctx):
    config = ("[limits]\ntimeout_seconds = 1\ntimeout_max = 2\nmemory_mb = 64\n"
              "memory_max_mb = 128\noutput_kb = 4\npids = 8\npids_max = 16\n")
    with ctx.private(config) as s, Client.connect(s.socket) as client:
        equal(client.run("import time\ntime.sleep(30)").status, "timeout", "status")
        assert client.run("1", timeout_seconds=3).refused
        assert client.run("1", memory_mb=129).refused
        equal(client.run("1", memory_mb=128, timeout_seconds=2).status, "ok", "status")
        o = client.run("print('y' * 100000)", timeout_seconds=2)
        assert o.truncated["stdout_dropped"] > 90000, o.truncated
        schema = json.dumps(client.ask("tools/list"))
        assert '"maximum": 128' in schema, schema


SOON_IDLE = "[pool]\nidle_seconds = 1\n"


class Contained(Supervisor):
    """One that is the first process of a pid namespace of its own, as in a container."""

    def __init__(self, build):
        super().__init__(build)
        self.argv = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", *self.argv]

    def first(self):
        return next(iter(children(self.pid)))

    @property
    def base(self):
        # It may end between two looks.
        own = next(iter(map(cgroup_of, children(self.pid) if self.process else ())), None) or ""
        if os.path.basename(own) == "supervisor":
            self.known_base = os.path.dirname(own)
        return self.known_base

    def stop(self, sig=signal.SIGTERM, timeout=20.0):
        if self.process and self.process.poll() is None:	# unshare itself takes none
            os.kill(self.first(), sig)
        return super().stop(sig, timeout)


def answer_of(s, text):
    with Client.connect(s.socket) as client:
        o = client.run(text)
        assert o.status == "ok", "%r %r" % (o, o.error)
        return o.stdout


@test(private=True, root=True)
def other_pid_namespaces_take_nothing_away(ctx):
    """A start by hand removes what nobody lives in, and asks no process id about it."""
    with ctx.private(SOON_IDLE) as idle:
        if idle.base is None:
            raise Skip("no cgroup v2 directory could be had here")
        idle.wait_idle(ctx.seconds(30))
        stale = os.path.join(os.path.dirname(idle.base), "mcp-pythond-%d-2" % os.getpid())
        os.makedirs(os.path.join(stale, "tenants"))
        os.mkdir(os.path.join(stale, "supervisor"))
        with Contained(ctx.options.build) as one, Contained(ctx.options.build) as two:
            one.wait_ready()
            two.wait_ready()
            assert os.path.isdir(os.path.join(idle.base, "tenants")), "its tenants/ is gone"
            assert not os.path.exists(stale), "a directory stays in which nobody lives"
            # Of the same process id, each in its namespace.
            assert one.base and two.base and one.base != two.base, (one.base, two.base)
            for s in (idle, one, two):
                equal(answer_of(s, "print('here')"), "here\n", "stdout")
            with Client.connect(two.socket) as client:
                call = client.start_script("print('on', flush=True)\nimport time\ntime.sleep(3)")
                client.ask("ping")
                equal(one.stop(), 0, "exit status")
                equal(client.outcome(call).status, "ok", "a call while another service ends")
            equal(two.stop(), 0, "exit status")
        equal(answer_of(idle, "print('still')"), "still\n", "stdout")


# Becomes the command behind it, where no setting of the kernel can be written, as in a container.
READ_ONLY_SETTINGS = ("unshare", "-m", "sh", "-c", "mount --bind /proc/sys /proc/sys && "
                      "mount -o remount,bind,ro /proc/sys && exec \"$@\"", "sh")


@test(private=True, root=True)
def a_jail_that_cannot_be_built_is_told(ctx):
    """Several workers are made at once for the call; all fail, and the last of them tells."""
    with ctx.private(wrap=READ_ONLY_SETTINGS) as s, Client.connect(s.socket) as client:
        if not type(ctx)(ctx.options, s).fallback:
            raise Skip("the kernel counts memory, so nothing has to be set")
        for _ in range(3):
            o = client.run("print(1)", ctx.seconds(60))
            equal(o.status, "jail_failed", repr(o))
            assert "add --security-opt unmask=ALL" in o.error["message"], o.error


@test(private=True, root=True)
def tenants_directory_is_made_again(ctx):
    """Somebody has removed what was empty: it comes back, and what cannot is told at once."""
    with ctx.private(SOON_IDLE) as s, Client.connect(s.socket) as client:
        if s.base is None:
            raise Skip("no cgroup v2 directory could be had here")

        def remove():	# the connected tenant's directory stays until it is removed here
            s.wait_idle(ctx.seconds(30))
            for d in sorted(s.cgroups(), reverse=True):
                if not d.endswith("/supervisor"):
                    os.rmdir(d)
        remove()
        equal(client.run("print(1)").stdout, "1\n", "stdout")
        remove()
        owner = os.stat(s.base)
        os.chown(s.base, 0, 0)
        started = time.monotonic()
        for _ in range(10):
            o = client.run("print(1)")
            equal(o.status, "jail_failed", repr(o))
            assert "cannot make its cgroup: Permission denied" in repr(o.error), o.error
        # It used to wait for a next try that came after up to a minute.
        assert time.monotonic() - started < 30 * ctx.slow, time.monotonic() - started
        os.chown(s.base, owner.st_uid, owner.st_gid)
        equal(client.run("print(2)").stdout, "2\n", "stdout")
        return "%.1f s for 10 calls" % (time.monotonic() - started)


@test(private=True)
def idle_workers_are_given_up(ctx):
    with ctx.private("[pool]\nidle_seconds = 1\nwarm = 4\n") as s:
        with Client.connect(s.socket) as client:
            client.run("1")
        s.wait_idle(ctx.seconds(30))
        assert zygotes(s), "the zygote is gone too"
        with Client.connect(s.socket) as client:
            equal(client.run("print(3)").stdout, "3\n", "stdout")


main(__doc__, modules=FEW_MODULES)
