#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What operators have: status, top and check-host, beside a running service."""

import contextlib
import errno
import fcntl
import json
import os
import pty
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import threading

from audit_log import Log
from harness import FEW_MODULES, SOMEBODY, Skip, equal, main, test
from mcpclient import Client, connect_as
from supervisor import Supervisor
from waits import ready, until, until_equal

ME = "uid:%d" % os.getuid()
MY_NAME = pwd.getpwuid(os.getuid()).pw_name
BUSY = "import time\nwhile time.process_time() < 0.3: pass"


class Directory:
    """One where the service's own user may write."""

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="mcp-operate-")
        os.chmod(self.path, 0o777)
        return self

    def __exit__(self, *exc):
        shutil.rmtree(self.path)

    @property
    def socket(self):
        return os.path.join(self.path, "admin")

    def config(self, more="", operators=ME):
        return "[admin]\nsocket = %s\noperators = %s\n%s" % (self.socket, operators, more)


def command(ctx, *arguments, want=0, **popen):
    done = subprocess.run([os.path.join(ctx.options.build, "mcp-python"), *arguments],
                          capture_output=True, text=True, timeout=ctx.seconds(60), **popen)
    equal(done.returncode, want, "%s %s" % (arguments, done.stdout + done.stderr))
    return done


def status(ctx, d):
    return json.loads(command(ctx, "status", "--json", "--admin-socket", d.socket).stdout)


def tool(client, name, **arguments):
    result = client.ask("tools/call", {"name": name, "arguments": arguments})
    assert not result.get("isError"), result
    return result["structuredContent"]


# ---- status ----

UNUSUAL = """[alarms]
executions = 4
failures = 3
denials = 3
cpu_seconds = 1
unusual_times = 0
[policy]
run_repl = deny
"""


@test(private=True)
def what_is_unusual_for_a_tenant_is_an_alarm(ctx):
    """Once in a period: in the status, the metrics, the audit log and the journal."""
    def alarms(seen):
        return {(one["tenant"], one["pattern"]) for one in seen["alarms"]}

    with Log(ctx) as log:
        with Directory() as d, ctx.private(d.config(UNUSUAL) + log.config()) as s, \
                ctx.client(path=s.socket) as c:
            c.run("1")
            equal(status(ctx, d)["alarms"], [])
            for _ in range(6):
                c.run("1 / 0")
            for _ in range(6):
                c.ask("tools/call", {"name": "run_repl", "arguments": {"code": "1"}})
            for _ in range(3):
                c.run("import time\nwhile time.process_time() < 0.7: pass", timeout_seconds=300)
            want = {"executions", "failures", "denials", "cpu_seconds"}
            equal(alarms(status(ctx, d)), {(ME, pattern) for pattern in want})
            shown = command(ctx, "status", "--admin-socket", d.socket).stdout
            assert re.search(r"^ALARM +\S+: denials \d+ in ten minutes, usually \d", shown, re.M), shown
            text = command(ctx, "metrics", "--admin-socket", d.socket).stdout
            for pattern in want:
                assert 'mcp_python_alarms_total{pattern="%s"} 1\n' % pattern in text, text
            assert 'mcp_python_alarms_total{pattern="new_hosts"} 0\n' in text, text
            s.wait_logged("alarm-raised tenant=%s pattern=denials count=" % ME)
        found = log.records("--event", "alarm-raised")
        equal(sorted(r["pattern"] for r in found), sorted(want))
        equal({r["tenant"] for r in found}, {ME})
        log.verify()


@test(private=True)
def a_habit_is_no_alarm(ctx):
    """By default a tenant may do some hundred things in ten minutes; a section of its own may say
    otherwise."""
    own = "[tenant %s]\nalarms.failures = 2\nalarms.unusual_times = 0\n" % ME
    for more, want in (("", []), (own, ["failures"])):
        with Directory() as d, ctx.private(d.config() + more) as s, ctx.client(path=s.socket) as c:
            for _ in range(5):
                c.run("1 / 0")
            equal([one["pattern"] for one in status(ctx, d)["alarms"]], want)


@test(private=True)
def status_tells_what_goes_on(ctx):
    with Directory() as d, ctx.private(d.config()) as s, ctx.client(path=s.socket) as c:
        equal(c.run(BUSY, timeout_seconds=300).status, "ok")
        c.run("while True: pass", timeout_seconds=1)
        session = tool(c, "run_repl", code="x = 1")["session"]
        running = c.start_script("import time; time.sleep(600)")
        seen = until("something runs", lambda: (lambda a: a["executions"]["running"] == 1 and a)(
            status(ctx, d)))
        equal(seen["scope"], "service")
        equal(seen["service"]["name"], "mcp-pythond")
        equal(seen["service"]["pid"], s.pid)
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", seen["service"]["started"])
        profile = seen["profiles"][0]
        equal((profile["profile"], profile["zygote"], profile["trouble"]),
              ("basic", "ready", None))
        equal((profile["busy"], profile["sessions"]), (1, 1), seen)
        equal(seen["executions"]["limits_hit"], 1)
        mine = [t for t in seen["tenants"] if t["tenant"] == ME][0]
        equal((mine["running"], mine["queued"], mine["sessions"], mine["limits_hit"]),
              (1, 0, 1, 1), mine)
        assert mine["cpu_seconds"] >= 0.2, mine
        assert mine["workers"] >= 2, mine
        assert mine["executions"] >= 3, mine
        # a handle is not for those whose it is not, even when they run the place
        shown = seen["sessions"][0]
        assert shown["session"].endswith("...") and len(shown["session"]) < 20, shown
        assert session.startswith(shown["session"][:-3]), (session, shown)
        equal((shown["tenant"], shown["profile"], shown["cells"]), (ME, "basic", 1))
        assert shown["age_seconds"] >= shown["idle_seconds"] >= 0, shown
        equal((seen["sessions_total"], seen["approvals"]["pending"]), (1, 0))
        equal((seen["audit"]["lost"], seen["audit"]["failing"]), (0, False))
        equal(seen["reload"]["last"], None)
        text = command(ctx, "status", "--admin-socket", d.socket).stdout
        # It is configured nowhere, which is no fault.
        assert re.search(r"^egress +not (in use|installed), 0 executions may go out$", text, re.M), text
        assert re.search("^socket +%s$" % d.socket, text, re.M), text
        for word in (MY_NAME, "basic", "ready", shown["session"], "enforcement"):
            assert word in text, (word, text)
        c.cancel(running)
        until_equal("what runs", lambda: status(ctx, d)["executions"]["running"], 0)


@test(private=True)
def the_users_own_service_answers_and_says_so(ctx):
    """A user may have a service of their own beside the system's, and forget it."""
    with tempfile.TemporaryDirectory() as d:
        os.chmod(d, 0o777)
        path = d + "/mcp-pythond"
        env = dict(os.environ, XDG_RUNTIME_DIR=d)
        with ctx.private("[admin]\nsocket = %s-admin.sock\noperators = %s\n" % (path, ME),
                         socket_path=path + ".sock"):
            text = command(ctx, "status", env=env).stdout
            assert re.search("^socket +%s-admin.sock$" % path, text, re.M), text
            done = command(ctx, "status", "--admin-socket", path + ".sock", want=69)
            assert "this is not the operators' socket" in done.stderr, done


@test(private=True)
def operators_see_what_runs_and_stop_it(ctx):
    with Directory() as d, ctx.private(d.config()) as s, ctx.client(path=s.socket) as c, \
            ctx.client(path=s.socket) as other:
        script = "# the \x1b[31mreport\nimport time; time.sleep(600)"
        running = c.start_script(script)
        other.start_script("import time; time.sleep(599)")
        seen = until("both run", lambda: (lambda a: [e["state"] for e in a] == ["running"] * 2 and a)(
            json.loads(command(ctx, "ps", "--json", "--admin-socket", d.socket).stdout)))
        mine = [e for e in seen if "report" in e["first_line"]][0]
        equal((mine["tenant"], mine["kind"], mine["profile"]), (ME, "script", "basic"))
        equal(mine["first_line"], script.partition("\n")[0])
        text = command(ctx, "ps", "--admin-socket", d.socket).stdout
        assert "FIRST LINE" in text and "report" in text and "\x1b" not in text, repr(text)
        assert MY_NAME in text, text
        # Both begin with "x-".
        for word in ("x-", "x-none"):
            command(ctx, "stop", word, "--admin-socket", d.socket, want=77)
        command(ctx, "stop", "--admin-socket", d.socket, want=64)
        command(ctx, "stop", mine["id"][:12], "--admin-socket", d.socket)
        o = c.outcome(running)
        equal(o.status, "cancelled")
        assert "operator" in o.text, o.text
        left = json.loads(command(ctx, "ps", "--json", "--admin-socket", d.socket).stdout)
        equal([e["id"] for e in left], [e["id"] for e in seen if e is not mine])


@test(private=True)
def operators_close_sessions(ctx):
    with Directory() as d, ctx.private(d.config("[audit]\nfile = %s/audit\n" % d.path)) as s, \
            ctx.client(path=s.socket) as c:
        session = tool(c, "run_repl", code="x = 1")["session"]
        shown = status(ctx, d)["sessions"][0]["session"]
        command(ctx, "stop", shown, "--admin-socket", d.socket)
        result = c.ask("tools/call", {"name": "run_repl", "arguments": {
            "code": "x", "session": session}})
        assert result.get("isError"), result
        equal(status(ctx, d)["sessions"], [])
        with open(d.path + "/audit", encoding="utf-8") as f:
            record, = (r for r in map(json.loads, f) if r["event"] == "stopped-by-operator")
        equal((record["tenant"], record["by"]), (ME, ME))
        assert session.startswith(record["session"]) and record["session"] != session, record


@test(private=True, root=True)
def operators_suspend_and_resume(ctx):
    """What runs is stopped, what is started is refused, cells too; others go on; and it is recorded."""
    with Directory() as d, ctx.private(d.config("[audit]\nfile = %s/audit\n" % d.path)) as s, \
            ctx.client(path=s.socket, uid=SOMEBODY) as c, ctx.client(path=s.socket) as mine:
        name = pwd.getpwuid(SOMEBODY).pw_name
        session = tool(c, "run_repl", code="x = 1")["session"]
        works = tool(c, "run_repl", code="import threading, time\n"
                     "def work():\n    while True:\n        time.sleep(0.01)\n"
                     "threading.Thread(target=work, daemon=True).start()")["session"]
        running = c.start_script("print(1, flush=True); import time; time.sleep(600)")
        until("it runs", lambda: json.loads(command(
            ctx, "ps", "--json", "--admin-socket", d.socket).stdout))
        done = command(ctx, "suspend", name, "--admin-socket", d.socket)
        assert "%s is suspended; 2 stopped" % name in done.stderr, done
        equal(c.outcome(running).status, "cancelled")
        o = c.run("1")
        equal(o.status, "denied")
        assert "suspended" in o.text, o.text
        cell = c.ask("tools/call", {"name": "run_repl", "arguments": {
            "code": "x", "session": session}})
        equal(cell["structuredContent"]["status"], "denied")
        for other, arguments in (("validate_script", {"script": "import json"}), ("check_environment", {})):
            got = c.ask("tools/call", {"name": other, "arguments": arguments})
            assert got.get("isError") and "has suspended what you run" in got["content"][0]["text"], got
        equal(mine.run("1").status, "ok")
        equal(command(ctx, "suspend", "--admin-socket", d.socket).stdout, name + "\n")
        command(ctx, "suspend", name, "--admin-socket", d.socket, want=77)
        command(ctx, "suspend", "nobody-has-this-name", "--admin-socket", d.socket, want=64)
        command(ctx, "resume", "--admin-socket", d.socket, want=64)
        command(ctx, "resume", "uid:%d" % SOMEBODY, "--admin-socket", d.socket)
        command(ctx, "resume", name, "--admin-socket", d.socket, want=77)
        equal(c.run("1").status, "ok")
        equal(tool(c, "run_repl", code="x", session=session)["result"]["repr"], "1")
        lost = c.ask("tools/call", {"name": "run_repl", "arguments": {"code": "1", "session": works}})
        assert "has suspended what you run" in lost["content"][0]["text"], lost
        with open(d.path + "/audit", encoding="utf-8") as f:
            records = [json.loads(line) for line in f]
        equal([(r["event"], r["tenant"], r["by"]) for r in records if r["event"].startswith("tenant-")],
              [("tenant-%s" % what, "uid:%d" % SOMEBODY, ME) for what in ("suspended", "resumed")])
        equal({r["why"] for r in records if r["event"] == "denied"}, {"suspended"})


@test(private=True, root=True)
def who_is_suspended_while_a_branch_is_made(ctx):
    """The call that makes it ends, and takes it along, while the sessions are looked through. What is freed is
    overwritten, so that nobody can read it by luck."""
    work = "threading.Thread(target=work, daemon=True).start()"
    with Directory() as d, ctx.private(d.config(), env={"MALLOC_PERTURB_": "165"}) as s, \
            ctx.client(path=s.socket, uid=SOMEBODY) as c, ctx.client(path=s.socket) as mine:
        first = tool(c, "run_repl", code="import threading, time\ndef work():\n    while True:\n"
                     "        time.sleep(0.01)\n" + work)["session"]
        second = tool(c, "run_repl", code=work, session=first, branch=True)["session"]
        calls = [c.request("tools/call", {"name": "run_repl", "arguments": {"code": "time.sleep(600)", "session": first}})]
        until("the call is listed", lambda: "time.sleep" in command(ctx, "ps", "--admin-socket", d.socket).stdout)
        calls.append(c.request("tools/call", {"name": "run_repl", "arguments": {
            "code": "1", "session": second, "branch": True}}))
        until("the branch waits to be made", lambda: len(status(ctx, d)["sessions"]) == 3)
        command(ctx, "suspend", "uid:%d" % SOMEBODY, "--admin-socket", d.socket)
        for call in calls:
            assert c.wait(call, ctx.seconds(60)).get("isError"), call
        equal(status(ctx, d)["sessions"], [])
        equal(mine.run("1").status, "ok")


@test(private=True)
def who_is_no_operator_stops_nothing(ctx):
    with Directory() as d, ctx.private(d.config(operators="uid:4000000")) as s, \
            ctx.client(path=s.socket) as c:
        running = c.start_script("print(1, flush=True); import time; time.sleep(600)")
        for words in (("ps",), ("stop", "x-"), ("suspend", "uid:1"), ("resume", "uid:1"), ("suspend",)):
            done = command(ctx, *words, "--admin-socket", d.socket, want=77)
            assert "not an operator" in done.stderr, done
        c.cancel(running)


@test(private=True)
def jobs_and_approvals_are_counted(ctx):
    with Directory() as d, \
            ctx.private(d.config("[policy]\nrun_repl = approve\n")) as s, \
            ctx.client(path=s.socket) as c:
        job = tool(c, "run_script", script="import time; time.sleep(600)", background=True)["job"]
        c.ask("tools/call", {"name": "run_repl", "arguments": {"code": "1", "background": False}})
        seen = status(ctx, d)
        equal((seen["jobs"], seen["approvals"]["pending"]), ({"running": 1, "kept": 0}, 1))
        equal([t["jobs"] for t in seen["tenants"] if t["tenant"] == ME], [1])
        tool(c, "job", id=job, action="cancel")
        until_equal("the jobs", lambda: status(ctx, d)["jobs"]["running"], 0)


@test(private=True)
def reloads_are_remembered(ctx):
    with Directory() as d, ctx.private(d.config()) as s:
        s.reload(d.config("[limits]\npids = 9\n"))
        seen = status(ctx, d)["reload"]
        equal((seen["done"], seen["text"], seen["succeeded"], seen["failed"]),
              (True, None, 1, 0))
        s.reload(d.config("[limits]\npids = many\n"), "reload-failed ")
        seen = status(ctx, d)["reload"]
        equal((seen["done"], seen["succeeded"], seen["failed"]), (False, 1, 1))
        assert "pids" in seen["text"], seen


@test(private=True)
def a_reload_reads_no_strange_folder(ctx):
    """A link in conf.d that leads to a folder which the start did not know."""
    with Directory() as d, ctx.private(d.config()) as s, tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o755)
        if not status(ctx, d)["enforcement"]["host_files_closed"]:
            raise Skip("the kernel has no Landlock")
        inside = os.path.join(s.dir, "conf.d")
        os.makedirs(inside, exist_ok=True)
        for folder, done in ((s.dir, True), (place, False)):
            target = os.path.join(folder, "more")
            with open(target, "w", encoding="ascii") as f:
                f.write("[limits]\npids = 11\n")
            os.chmod(target, 0o644)
            with contextlib.suppress(FileNotFoundError):
                os.remove(inside + "/more.conf")
            os.symlink(target, inside + "/more.conf")
            s.reload(ends="reloaded " if done else "reload-failed ")
            seen = status(ctx, d)["reload"]
            equal(seen["done"], done, seen)
        assert "restart it to read others" in seen["text"], seen


@test(private=True)
def who_is_no_operator_learns_of_themselves(ctx):
    with Directory() as d, ctx.private(d.config(operators="uid:4000000")) as s, \
            ctx.client(path=s.socket) as c:
        session = tool(c, "run_repl", code="x = 1")["session"]
        seen = status(ctx, d)
        equal(seen["scope"], "self")
        equal([t["tenant"] for t in seen["tenants"]], [ME])
        equal([one["session"] for one in seen["sessions"]], [session])
        for secret in ("profiles", "clients", "audit", "approvals", "egress", "executions"):
            assert secret not in seen, seen
        done = command(ctx, "metrics", "--admin-socket", d.socket, want=77)
        assert "not an operator" in done.stderr, done


@test(private=True, root=True)
def nobody_sees_another(ctx):
    with Directory() as d, ctx.private(d.config()) as s, ctx.client(path=s.socket) as c:
        tool(c, "run_repl", code="x = 1")
        with contextlib.closing(connect_as(d.socket, SOMEBODY)) as other:
            other.settimeout(ctx.seconds(30))
            with other.makefile("rw", encoding="utf-8") as f:
                print(json.dumps({"do": "status"}), file=f, flush=True)
                seen = json.loads(f.readline())
        equal([t["tenant"] for t in seen["tenants"]], ["uid:%d" % SOMEBODY])
        equal((seen["scope"], seen["sessions"]), ("self", []))
        assert ME not in json.dumps(seen).replace("uid:%d" % SOMEBODY, ""), seen


def hand_over(fds, argv):
    """The command that runs argv with these as its operators' sockets, and its environment."""
    # Above all of them first: they are to end as 3, 4 ...
    moves = "".join("exec %d<&%d; " % (100 + i, fd) for i, fd in enumerate(fds)) + "".join(
        "exec %d<&%d; exec %d<&-; " % (3 + i, 100 + i, 100 + i) for i in range(len(fds)))
    return (["/bin/bash", "-c", moves + 'export LISTEN_PID=$$; exec "$0" "$@"'] + argv,
            {"LISTEN_FDS": str(len(fds)), "LISTEN_FDNAMES": ":".join(["admin"] * len(fds))})


@contextlib.contextmanager
def handed(ctx, config, *sockets):
    """A service that is handed these as its operators' sockets."""
    service = Supervisor(ctx.options.build, config)
    fds = [s.fileno() for s in sockets]
    service.argv, more = hand_over(fds, service.argv)
    service.env.update(more)
    service.pass_fds = fds
    with service:
        yield service


@contextlib.contextmanager
def listening(path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
        s.bind(path)
        s.listen()
        yield s


@test(private=True)
def an_operators_socket_is_handed_over(ctx):
    with Directory() as d, listening(d.path + "/handed") as s:
        def scope(path):
            return json.loads(command(ctx, "status", "--json", "--admin-socket", path).stdout)["scope"]
        operators = "[admin]\noperators = %s\n" % ME
        with handed(ctx, operators, s) as service, ctx.client(path=service.socket) as c:
            equal((scope(d.path + "/handed"), c.run("1").status), ("service", "ok"))
            equal(service.stop(), 0)
        # One of our own besides; the same place is no second one.
        with handed(ctx, d.config(), s) as service:
            equal((scope(d.path + "/handed"), scope(d.socket)), ("service", "service"))
            equal(service.stop(), 0)
        with handed(ctx, operators + "socket = %s/handed\n" % d.path, s) as service:
            equal(scope(d.path + "/handed"), "service")
            equal(service.stop(), 0)
        assert os.path.exists(d.path + "/handed"), "it was systemd's"


@test(private=True)
def what_is_no_operators_socket_is_refused(ctx):
    with Directory() as d, listening(d.path + "/one") as one, listening(d.path + "/two") as two, \
            socket.create_server(("127.0.0.1", 0)) as tcp:
        for sockets in ((one, two), (tcp,)):
            fds = [s.fileno() for s in sockets]
            argv, more = hand_over(fds, [os.path.join(ctx.options.build, "mcp-pythond"),
                                         "--socket", d.path + "/mcp"])
            done = subprocess.run(argv, pass_fds=fds, env=dict(os.environ, **more), text=True,
                                  capture_output=True, timeout=ctx.seconds(60))
            equal(done.returncode, 1, done.stderr)
            assert '"admin" is not one listening unix' in done.stderr.replace("\\", ""), done.stderr


@test(private=True)
def without_an_operators_socket_there_is_the_tool(ctx):
    with ctx.private("") as s, ctx.client(path=s.socket) as c:
        session = tool(c, "run_repl", code="x = 1")["session"]
        environment = {k: v for k, v in os.environ.items() if k != "MCP_PYTHON_ADMIN_SOCKET"}
        done = command(ctx, "status", "--json", "--socket", s.socket, env=environment)
        seen = json.loads(done.stdout)
        equal((seen["scope"], [one["session"] for one in seen["sessions"]]), ("self", [session]))
        text = command(ctx, "status", "--socket", s.socket, env=environment).stdout
        assert session in text and MY_NAME in text, text
        done = command(ctx, "status", "--admin-socket", os.path.join(s.dir, "none"), want=69)
        assert "[admin] socket" in done.stderr, done
        command(ctx, "status", "--nonsense", want=64)
        command(ctx, "status", "word", want=64)


@test(private=True)
def who_asks_much_is_answered_in_turn(ctx):
    with Directory() as d, ctx.private(d.config()):
        n = 3000
        with contextlib.closing(connect_as(d.socket)) as greedy:
            greedy.settimeout(ctx.seconds(120))
            sender = threading.Thread(target=greedy.sendall,
                                      args=(b'{"do":"status"}\n{"do":"list"}\n' * n,))
            sender.start()
            try:
                # nothing is read of its answers meanwhile, and others have theirs
                for _ in range(3):
                    equal(status(ctx, d)["scope"], "service")
                with greedy.makefile("r", encoding="utf-8") as f:
                    for _ in range(n):
                        equal(json.loads(f.readline())["service"]["name"], "mcp-pythond")
                        equal(json.loads(f.readline()), {"ok": True, "approvals": []})
            finally:
                greedy.shutdown(socket.SHUT_RDWR)
                sender.join()


@test(private=True)
def who_watches_and_does_not_read_is_told_of_the_last(ctx):
    """Not of each change: that would grow without end."""
    config = "[policy]\nrun_script = approve\napprovers = self\ndenied_seconds = 0\n"
    with Directory() as d, ctx.private(d.config(config)) as s, ctx.client(path=s.socket) as c, \
            contextlib.closing(connect_as(d.socket)) as watcher, \
            contextlib.closing(connect_as(d.socket)) as operator:
        for one in (watcher, operator):
            one.settimeout(ctx.seconds(60))
        answers = operator.makefile("r", encoding="utf-8")

        def do(what, **arguments):
            operator.sendall(json.dumps({"do": what, **arguments}).encode() + b"\n")
            return json.loads(answers.readline())

        def ask(n):
            c.ask("tools/call", {"name": "run_script", "arguments": {"script": "# %d" % n}})

        for n in range(30):
            ask(n)
        lines = watcher.makefile("r", encoding="utf-8")
        watcher.sendall(b'{"do":"watch"}\n')
        said = len(lines.readline())		# it watches from now on
        most = 4 * said + (2 << 20)		# what it is sent at most, and what sockets hold
        changes = 2 * most // said
        for n in range(changes // 2):
            newest = do("list")["approvals"][-1]["id"]
            equal(do("deny", id=newest), {"ok": True})
            ask(1000 + n)
        last = do("list")["approvals"]
        size, seen = 0, None
        while seen != last:
            line = lines.readline()
            size += len(line)
            seen = json.loads(line)["approvals"]
        assert size < most, "%d KiB of %d KiB" % (size >> 10, changes * said >> 10)


# ---- top ----

class Terminal:
    """mcp-python top on a terminal of 12 lines."""

    def __init__(self, ctx, d, *arguments, **env):
        self.ctx, self.seen = ctx, ""
        self.master, self.slave = pty.openpty()
        termios.tcsetwinsize(self.slave, (12, 100))
        self.before = termios.tcgetattr(self.slave)
        self.process = subprocess.Popen(
            [os.path.join(ctx.options.build, "mcp-python"), "top", "--interval", "0.2",
             "--admin-socket", d.socket, *arguments], stdin=self.slave, stdout=self.slave,
            stderr=self.slave, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
            env=dict(os.environ, TERM="xterm", **env))

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.master)
        os.close(self.slave)

    def read_until(self, pattern):
        """From here on; returns what was matched."""
        def read(left):
            if ready([self.master], left):
                self.seen += os.read(self.master, 65536).decode()
        found = until(lambda: "%r in %r" % (pattern, self.seen[-2000:]),
                      lambda: re.search(pattern, self.seen), wait=read)
        self.seen = self.seen[found.end():]
        return found.group()

    def type(self, text):
        os.write(self.master, text.encode())

    def end(self, want=0):
        """It has left the screen as it was, and says nothing of its end."""
        self.read_until(r"\x1b\[\?25h\x1b\[\?1049l")
        equal(self.process.wait(self.ctx.seconds(60)), want)
        equal(termios.tcgetattr(self.slave), self.before)


FRAME = r"\x1b\[H[^\x1b]*sorted by %s(.|\n)*?\x1b\[J"


@test(private=True)
def top_goes_on_until_it_is_told(ctx):
    with Directory() as d, ctx.private(d.config()) as s, ctx.client(path=s.socket) as c:
        c.run("1")
        with Terminal(ctx, d) as t:
            t.read_until(r"\x1b\[\?1049h")
            assert MY_NAME in t.read_until(FRAME % "cpu")
            assert "\x1b[7m" in t.read_until(FRAME % "cpu")
            t.type("m")
            assert "? explains, q leaves" in t.read_until(FRAME % "memory")
            t.type("?")
            t.read_until(r"  m      sort by memory\x1b\[K\r\n")
            t.type("?")
            termios.tcsetwinsize(t.slave, (8, 30))
            os.killpg(t.process.pid, signal.SIGWINCH)
            t.read_until(r"\x1b\[7mTENANT[^\x1b]{1,24}\x1b")
            t.type("q")
            t.end()
        with Terminal(ctx, d, "--sort", "executions", NO_COLOR="1") as t:
            assert "\x1b[7m" not in t.read_until(FRAME % "executions")
            t.type("\x03")
            t.end()
        with Terminal(ctx, d) as t:
            t.read_until(FRAME % "cpu")
            t.process.terminate()
            t.end()


@test(private=True)
def top_tells_when_the_service_has_gone(ctx):
    with Directory() as d, ctx.private(d.config()) as s:
        with Terminal(ctx, d) as t:
            t.read_until(FRAME % "cpu")
            s.process.terminate()
            t.end(want=69)
            t.read_until("does not answer")


@test(private=True)
def top_without_a_terminal_is_one_table(ctx):
    with Directory() as d, ctx.private(d.config()) as s, ctx.client(path=s.socket) as c:
        c.run("1")
        text = command(ctx, "top", "--admin-socket", d.socket).stdout
        assert "\x1b" not in text and "TENANT" in text and MY_NAME in text, text
        command(ctx, "top", "--sort", "colour", want=64)
        command(ctx, "top", "--interval", "0", want=64)
        command(ctx, "top", "--admin-socket", d.socket + "-not", want=69)


@test(private=True, root=True)
def top_sorts(ctx):
    with Directory() as d, ctx.private(d.config()) as s, ctx.client(path=s.socket) as mine, \
            ctx.client(path=s.socket, uid=SOMEBODY) as other:
        other.run("1")
        for _ in range(3):
            mine.run("1")
        other.run(BUSY, timeout_seconds=300)

        def order(key):
            text = command(ctx, "top", "--sort", key, "--admin-socket", d.socket).stdout
            return re.findall(r"^(%s|%s) " % (nobody, MY_NAME), text, re.M)
        nobody = pwd.getpwuid(SOMEBODY).pw_name
        there = [nobody, MY_NAME]
        equal(order("executions"), there[::-1])
        equal(order("cpu"), there)
        by_name = {"uid:%d" % SOMEBODY: nobody, ME: MY_NAME}
        equal(order("name"), [by_name[uid] for uid in sorted(by_name)])


# ---- check-host ----

# Becomes the command behind it, in which sethostname is refused as by the filter of a container.
REFUSES = '''
import ctypes, os, platform, struct, sys
NUMBER = {"sethostname": {"x86_64": 170, "aarch64": 161}, "unshare": {"x86_64": 272, "aarch64": 97},
          "clone3": {"x86_64": 435, "aarch64": 435}}[sys.argv[1]][platform.machine()]
CODE = [(0x20, 0, 0, 0), (0x15, 0, 1, NUMBER), (0x06, 0, 0, 0x50000 | int(sys.argv[2])),
        (0x06, 0, 0, 0x7fff0000)]
program = b"".join(struct.pack("HBBI", *row) for row in CODE)
text = ctypes.create_string_buffer(program)
class Filter(ctypes.Structure):
    _fields_ = [("n", ctypes.c_ushort), ("at", ctypes.c_void_p)]
libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(22, 2, ctypes.byref(Filter(len(CODE), ctypes.addressof(text))), 0, 0):
    sys.exit("seccomp: errno %d" % ctypes.get_errno())
os.execvp(sys.argv[3], sys.argv[3:])
'''


def refusing(call, error):
    """In front of a program: a filter as containers have it, that refuses one system call."""
    return (sys.executable, "-c", REFUSES, call, str(error))


REFUSING = refusing("sethostname", errno.EPERM)


@test(private=True, root=True)
def a_host_name_that_cannot_be_set_is_no_wall(ctx):
    with ctx.private(wrap=REFUSING) as s:
        with ctx.client(path=s.socket) as c:
            for _ in range(3):
                o = c.run("import socket\nsocket.gethostname()")
                equal((o.status, o.result["json"]), ("ok", socket.gethostname()))
            equal(len(re.findall(r"^host-name ", s.log(), re.M)), 1, s.log())
    with ctx.private() as s, ctx.client(path=s.socket) as c:
        equal(c.run("import socket\nsocket.gethostname()").result["json"], "python")
        assert "host-name" not in s.log(), s.log()


@test(root=True)
def check_host_makes_the_first_call(ctx):
    _, checks = check_host(ctx, *REFUSING)
    equal((checks["first call"]["verdict"], checks["first call"]["found"]),
          ("ok", "a script runs"))


def check_host(ctx, *wrapper):
    done = subprocess.run([*wrapper, os.path.join(ctx.options.build, "mcp-python"), "check-host",
                           "--json"], capture_output=True, text=True, timeout=ctx.seconds(120))
    seen = json.loads(done.stdout)
    equal(done.returncode, 0 if seen["enforceable"] else 1, done.stdout)
    checks = {c["name"]: c for c in seen["checks"]}
    for c in checks.values():
        assert c["verdict"] in ("ok", "weaker", "missing"), c
        equal(c["cost"] is None, c["verdict"] == "ok", c)
    equal(seen["enforceable"], all(c["verdict"] != "missing" for c in checks.values()))
    return seen, checks


@test(private=True, root=True)
def what_a_container_refuses_is_explained(ctx):
    """Where nothing can run, a client on standard input is told so; check-host blames the filter."""
    filter = refusing("unshare", errno.EPERM)
    program = os.path.join(ctx.options.build, "mcp-pythond")
    wants = ("make a user namespace", "--security-opt seccomp=docker-seccomp.json",
             "--security-opt systempaths=unconfined", "check-host", "Operation not permitted")
    with tempfile.TemporaryDirectory() as d:
        done = subprocess.run([*filter, program, "--socket", os.path.join(d, "mcp.sock")],
                              capture_output=True, text=True, timeout=ctx.seconds(60))
    equal(done.returncode, 1, done.stderr)
    for want in wants:
        assert want in done.stderr, (want, done.stderr)
    with Client.spawn([*filter, program, "--stdio"], timeout=ctx.seconds(60)) as client:
        for n in range(3):
            o = client.run("print(%d)" % n)
            equal((o.status, o.stdout), ("jail_failed", ""))
            for want in wants:
                assert want in o.error["message"], (want, o.error)
    _, checks = check_host(ctx, *filter)
    equal(checks["namespaces"]["verdict"], "missing")
    assert "seccomp=docker-seccomp.json" in checks["namespaces"]["advice"], checks["namespaces"]
    _, checks = check_host(ctx, *refusing("clone3", errno.ENOSYS))
    if checks["cgroup v2"]["found"].startswith("clone3"):
        assert "let its filter of system calls pass clone3" in checks["cgroup v2"]["advice"], checks
        equal(checks["cgroup.kill"]["advice"], "see above")
    equal(checks["first call"]["verdict"], "missing")


@test(private=True)
def check_host_agrees_with_the_service(ctx):
    seen, checks = check_host(ctx)
    for wall in ("namespaces", "mounts", "proc", "network", "no_new_privs", "seccomp",
                 "programs", "interpreters", "first call"):
        equal(checks[wall]["verdict"], "ok", checks[wall])
    text = command(ctx, "check-host", want=0 if seen["enforceable"] else 1).stdout
    for c in checks.values():
        assert re.search(r"^%s +%s " % (c["verdict"], re.escape(c["name"])), text, re.M), text
    with Directory() as d, ctx.private(d.config()):
        how = until("a zygote is ready", lambda: (lambda a: a["profiles"][0]["zygote"] == "ready" and a)(
            status(ctx, d)))["enforcement"]
        equal(checks["landlock"]["verdict"] == "ok", how["landlock"], checks["landlock"])
        equal(checks["subordinate ids"]["verdict"] == "ok", how["own_uids"],
              checks["subordinate ids"])
        # what is tried is where a service would be; by hand one has no more than that
        if checks["memory"]["verdict"] != "ok":
            equal(how["memory"], "watchdog")


@test(private=True, root=True)
def check_host_says_what_a_user_lacks(ctx):
    """A range, the program, or its right: what to do about each."""
    with tempfile.TemporaryDirectory() as d:
        os.chmod(d, 0o755)
        with open(d + "/range", "w") as f:
            f.write("%d:100000:65536\n" % SOMEBODY)
        with open(d + "/mapper", "w") as f:
            f.write("#!/bin/sh\nexit 1\n")
        os.mkdir(d + "/bin")
        for range, mapper, found, advice in (
                ("/dev/null", None, "no range", ":100000:65536"),
                (d + "/range", None, "not installed", "install uidmap"),
                (d + "/range", d + "/mapper", "refuses", "setuid")):
            if mapper:
                shutil.copy(mapper, d + "/bin/newuidmap")
                os.chmod(d + "/bin/newuidmap", 0o755)
            _, checks = check_host(
                ctx, "unshare", "--mount", "sh", "-c",
                "for f in subuid subgid; do [ -e /etc/$f ] || : >/etc/$f; "
                "mount --bind %s /etc/$f || exit; done; PATH=%s/bin exec "
                "/usr/bin/setpriv --reuid=%d --regid=%d --clear-groups \"$@\"" % (
                    range, d, SOMEBODY, SOMEBODY), "sh")
            ids = checks["subordinate ids"]
            assert found in ids["found"] and advice in ids["advice"], ids


@test(private=True)
def a_start_by_hand_says_one_sentence(ctx):
    """About limits that the kernel does not keep; the reasons are for --verbose."""
    def start(*more):
        done = subprocess.run([os.path.join(ctx.options.build, "mcp-pythond"), "--stdio", *more],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=ctx.seconds(60))
        equal(done.returncode, 0, done.stderr)
        return done.stderr.splitlines()
    alarms = re.compile("fallback |one-uid |enforcement ")
    lines, verbose = start(), start("--verbose")
    equal([line for line in lines if alarms.match(line)], [])
    said = [line for line in lines if line.startswith("mcp-pythond: ")]
    told = [line for line in verbose if alarms.match(line) and "text=" in line]
    assert told, verbose
    equal(len(said), 1 if any(line.startswith(("fallback ", "one-uid ")) for line in told) else 0,
          (said, told))
    if said:
        assert "scripts are jailed, but " in said[0] and "check-host" in said[0], said


@test(private=True)
def check_host_leaves_nothing(ctx):
    process = subprocess.Popen([os.path.join(ctx.options.build, "mcp-python"), "check-host"],
                               stdout=subprocess.DEVNULL)
    process.wait(ctx.seconds(120))
    own = "mcp-python-check-%d" % process.pid	# others may be at it, too
    left = [at for at, _, _ in os.walk("/sys/fs/cgroup") if own in at]
    equal(left, [])


@test(private=True)
def check_host_says_what_to_change(ctx):
    inside = ("unshare", "--user", "--map-root-user", "sh", "-c",
              "echo 0 >/proc/sys/user/max_user_namespaces && exec \"$@\"", "sh")
    if subprocess.run([*inside, "true"], capture_output=True).returncode:
        raise Skip("no user namespace of one's own")
    seen, checks = check_host(ctx, *inside)
    assert not seen["enforceable"]
    equal(checks["namespaces"]["verdict"], "missing")
    assert "max_user_namespaces" in checks["namespaces"]["advice"], checks["namespaces"]
    equal(checks["first call"]["verdict"], "missing")
    equal(checks["seccomp"]["verdict"], "ok")


if __name__ == "__main__":
    main(__doc__, modules=FEW_MODULES)
