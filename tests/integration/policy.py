#!/usr/bin/python3
"""What policy lets be: verdicts by tenant, quotas, a reload, approvals in the session and by an
operator, before and after a restart."""

import json
import os
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from harness import SOMEBODY, Skip, equal, main, test
from mcpclient import LEGACY, Client

def call(client, script, **arguments):
    return client.ask("tools/call", {"name": "run_script",
                                     "arguments": dict(arguments, script=script)})


def status_of(result):
    return result["structuredContent"]["status"]


def text_of(result):
    return "".join(block.get("text", "") for block in result["content"])


class Admin:
    def __init__(self, path, timeout=30):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(timeout)
        self.socket.connect(path)
        self.file = self.socket.makefile("rw", encoding="utf-8")

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.file.close()
        self.socket.close()

    def read(self):
        return json.loads(self.file.readline())

    def ask(self, what, **more):
        print(json.dumps(dict(more, do=what)), file=self.file, flush=True)
        return self.read()


def command(ctx, *arguments, want=0):
    done = subprocess.run([os.path.join(ctx.options.build, "mcp-python"), *arguments],
                          capture_output=True, text=True, timeout=ctx.seconds(30))
    equal(done.returncode, want, "%s %s" % (arguments, done.stdout + done.stderr))
    return done.stdout


def wait_for(fn, what, timeout=30):
    deadline = time.monotonic() + timeout
    while not fn():
        assert time.monotonic() < deadline, "not in time: " + what
        select.select([], [], [], 0.02)


@test(private=True)
def what_is_denied_is_not_run(ctx):
    with ctx.private("[policy]\nrun_script = deny\n") as s, ctx.client(path=s.socket) as c:
        result = call(c, "print(1)")
        assert result["isError"], result
        equal(status_of(result), "denied")
        assert "policy" in text_of(result), result
        result = c.ask("tools/call", {"name": "validate_script", "arguments": {"script": "1"}})
        assert not result.get("isError"), result


@test(private=True, root=True)
def tenants_have_their_own(ctx):
    config = ("[tenant uid:%d]\npolicy.run_script = deny\n"
              "[tenant uid:0]\nlimits.timeout_max = 31\nlimits.timeout_seconds = 2\n" % SOMEBODY)
    with ctx.private(config) as s, ctx.client(path=s.socket) as mine, \
            ctx.client(path=s.socket, uid=SOMEBODY) as other:
        equal(status_of(call(mine, "print(1)")), "ok")
        equal(status_of(call(other, "print(1)")), "denied")
        equal(status_of(call(mine, "while True: pass", timeout_seconds=32)), "invalid_arguments")


@test(private=True)
def a_quota_is_named_and_says_when(ctx):
    with ctx.private("[quota]\nexecutions_per_minute = 2\n") as s, \
            ctx.client(path=s.socket) as c:
        started = time.monotonic()
        equal([status_of(call(c, "1")) for _ in range(2)], ["ok", "ok"])
        result = call(c, "1")
        if time.monotonic() - started > 55:
            raise Skip("the machine is too slow for a quota of a minute")
        equal(status_of(result), "quota_exceeded")
        assert "executions_per_minute" in text_of(result), result
        assert "try again in" in text_of(result), result


@test(private=True)
def what_waits_is_counted(ctx):
    hold = "print('in', flush=True)\nimport threading; threading.Event().wait()"
    with ctx.private("[quota]\nconcurrent = 1\nqueued = 1\n") as s, \
            ctx.client(path=s.socket) as c:
        first = c.request("tools/call", {
            "name": "run_script", "_meta": {"progressToken": 1},
            "arguments": {"script": hold, "timeout_seconds": 300}})
        while not c.notices:
            c.pump(ctx.seconds(60))
        second = c.start_script("print(2)", timeout_seconds=300)
        result = call(c, "3")
        equal(status_of(result), "quota_exceeded")
        assert "quota queued" in text_of(result), result
        c.cancel(first)
        equal(c.outcome(second).stdout, "2\n")


@test(private=True)
def a_key_is_of_no_use_against_a_deny(ctx):
    with ctx.private("") as s, ctx.client(path=s.socket) as c:
        path = os.path.join(s.dir, "test.conf")

        def reload(text):
            seen = s.log().count("reloaded ")
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            os.kill(s.pid, signal.SIGHUP)
            wait_for(lambda: s.log().count("reloaded ") > seen, s.log())
        first = call(c, "print(1)", idempotency_key="k")
        equal(call(c, "print(1)", idempotency_key="k"), first)
        reload("[policy]\nrun_script = deny\n")
        equal(status_of(call(c, "print(1)", idempotency_key="k")), "denied")
        reload("")
        equal(call(c, "print(1)", idempotency_key="k"), first)


@test(private=True)
def processor_time_is_counted(ctx):
    with ctx.private("[quota]\ncpu_seconds_per_hour = 1\n") as s, ctx.client(path=s.socket) as c:
        spin = "import time\nwhile time.process_time() < 1.5: pass"
        equal(status_of(call(c, spin, timeout_seconds=300)), "ok")
        result = call(c, "1")
        equal(status_of(result), "quota_exceeded")
        assert "cpu_seconds_per_hour" in text_of(result), result


@test(private=True)
def sessions_are_counted(ctx):
    def greeting(client):
        client.send({"jsonrpc": "2.0", "id": 1, "method": "ping"})
        answer = client.recv()
        assert "error" not in answer or "too many" not in str(answer), answer
    with ctx.private("[quota]\nsessions = 1\n") as s:
        # who looked whether it is served is counted until it is seen to have gone
        wait_for(lambda: 0 < s.log().count("session-open ") == s.log().count("session-close "),
                 "idle")
        with Client.connect(s.socket, None, timeout=ctx.seconds(60)) as first:
            greeting(first)
            with Client.connect(s.socket, None, timeout=ctx.seconds(60)) as second:
                refusal = second.recv()
                assert "too many connections of this user" in str(refusal), refusal
            greeting(first)


@test(private=True)
def a_reload_is_whole_or_nothing(ctx):
    with ctx.private("[limits]\npids = 64\n") as s, ctx.client(path=s.socket) as c:
        path = os.path.join(s.dir, "test.conf")

        def reload(text, word):
            seen = s.log().count(word)
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            os.kill(s.pid, signal.SIGHUP)
            wait_for(lambda: s.log().count(word) > seen, word + "\n" + s.log())
        equal(status_of(call(c, "1")), "ok")
        running = c.start_script("import time; time.sleep(2); print('kept')")
        c.ask("ping")		# then it has been taken
        reload("[policy]\nrun_script = deny\n[pool]\nwarm = 1\n", "reloaded ")
        assert "[pool] warm" in s.log(), s.log()
        equal(status_of(call(c, "1")), "denied")
        equal(c.outcome(running).stdout, "kept\n")
        reload("[policy]\nrun_script = perhaps\n", "reload-failed ")
        assert "test.conf:2: run_script" in s.log(), s.log()
        equal(status_of(call(c, "1")), "denied")
        reload("", "reloaded ")
        equal(status_of(call(c, "1")), "ok")


@test(private=True)
def mistakes_are_shown_with_their_places(ctx):
    with ctx.private("") as s:
        folder = os.path.join(s.dir, "conf.d")
        os.mkdir(folder)
        for name, text in (("20-b.conf", "[tenant uid:7]\npolicy.run_script = allow\n"),
                           ("10-a.conf", "[tenant uid:7]\npolicy.run_script = deny\n"),
                           ("ignored", "nonsense")):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                f.write(text)
        argv = [os.path.join(ctx.options.build, "mcp-pythond"), "--config",
                os.path.join(s.dir, "test.conf")]
        shown = subprocess.run(argv + ["--show-policy", "uid:7"], capture_output=True, text=True)
        equal(shown.returncode, 0, shown.stderr)
        assert "\nrun_script = allow\n" in shown.stdout, shown.stdout
        with open(os.path.join(folder, "30-c.conf"), "w", encoding="utf-8") as f:
            f.write("[limits]\npids = 9\ntimeout_max = 5\n[x]\n")
        checked = subprocess.run(argv + ["--check-config"], capture_output=True, text=True)
        equal(checked.returncode, 78)
        assert "30-c.conf:4: [x]" in checked.stderr, checked.stderr


def approving(directory, more=""):
    return ("[policy]\nrun_script = approve\n%s[admin]\nsocket = %s/admin\n"
            "approvals = %s/approvals\n" % (more, directory, directory))


class Directory:
    """One that outlives a service; the service's own user may write there."""

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="mcp-policy-")
        os.chmod(self.path, 0o777)
        return self.path

    def __exit__(self, *exc):
        shutil.rmtree(self.path)


@test(private=True, root=True)
def an_operator_approves_once(ctx):
    with Directory() as directory:
        config = approving(directory)
        with ctx.private(config) as s, ctx.client(path=s.socket, uid=SOMEBODY) as c:
            result = call(c, "print(6 * 7)")
            equal(status_of(result), "approval_pending")
            equal(status_of(call(c, "print(6 * 7)")), "approval_pending")
            with Admin(directory + "/admin") as admin:
                waiting = admin.ask("list")["approvals"]
                equal(len(waiting), 1, waiting)
                assert waiting[0]["id"] in text_of(result), result
        with ctx.private(config) as s, ctx.client(path=s.socket, uid=SOMEBODY) as c:
            shown = command(ctx, "approvals", "show", waiting[0]["id"], "--admin-socket",
                            directory + "/admin")
            assert "print(6 * 7)" in shown, shown
            command(ctx, "approve", waiting[0]["id"], "--admin-socket", directory + "/admin")
            command(ctx, "deny", waiting[0]["id"], "--admin-socket", directory + "/admin",
                    want=77)
            equal(status_of(call(c, "print(6 * 8)")), "approval_pending")
            result = call(c, "print(6 * 7)")
            equal((status_of(result), result["structuredContent"]["stdout"]), ("ok", "42\n"))
            equal(status_of(call(c, "print(6 * 7)")), "approval_pending")


@test(private=True)
def profiles_are_looked_at_before_anybody_is_asked(ctx):
    more = "profiles = bare\n"
    with Directory() as directory, \
            ctx.private("[packages]\nindex = http://127.0.0.1:9/simple\nstore = %s/store\n"
                        "[profile basic]\n[profile bare]\nmodules =\n%s" % (
                            directory, approving(directory, more))) as s, ctx.client(path=s.socket) as c:
        with Admin(directory + "/admin") as admin:
            for arguments in ({}, {"profile": "basic"}):
                result = call(c, "print(1)", **arguments)
                equal(status_of(result), "denied")
                assert "the profile basic is not among those" in text_of(result), result
            equal(admin.ask("list")["approvals"], [])
            equal(status_of(call(c, "print(1)", profile="bare")), "approval_pending")
            equal(len(admin.ask("list")["approvals"]), 1)
        result = c.ask("tools/call", {"name": "install_package", "arguments": {
            "packages": ["x"], "profile": "basic"}})
        equal(result["structuredContent"]["status"], "denied", result)
        assert "the profile basic" in text_of(result), result


@test(private=True, root=True)
def nobody_decides_for_themselves(ctx):
    with Directory() as directory, ctx.private(approving(directory)) as s, \
            ctx.client(path=s.socket) as c:
        equal(status_of(call(c, "print(1)")), "approval_pending")
        with Admin(directory + "/admin") as admin:
            one = admin.ask("list")["approvals"][0]
            answer = admin.ask("approve", id=one["id"])
            assert not answer["ok"] and "policy" in answer["error"], answer
            equal(admin.ask("nonsense")["ok"], False)
        equal(status_of(call(c, "print(1)")), "approval_pending")


def answer_form(client, content, action="accept"):
    """Waits for the form, and answers it."""
    while True:
        message = client.recv()
        if message.get("method") == "elicitation/create":
            client.send({"jsonrpc": "2.0", "id": message["id"],
                         "result": {"action": action, "content": content}})
            return message["params"]
        assert "result" not in message, message


@test(private=True)
def the_sessions_user_is_asked(ctx):
    with Directory() as directory, \
            ctx.private(approving(directory, "approvers = self\n")) as s, \
            Client.connect(s.socket, None, timeout=ctx.seconds(60)) as c:
        c.send({"jsonrpc": "2.0", "id": 0, "method": "initialize",
                "params": {"protocolVersion": LEGACY[-1], "capabilities": {"elicitation": {}},
                           "clientInfo": {"name": "t", "version": "1"}}})
        c.recv()
        c.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        for number, (content, action, want) in enumerate((
                ({"allow": True}, "accept", "ok"), ({"allow": False}, "accept", "denied"),
                (None, "decline", "denied"), (None, "cancel", "denied"),
                ({"allow": True}, "accept", "ok")), 1):
            c.send({"jsonrpc": "2.0", "id": number, "method": "tools/call",
                    "params": {"name": "run_script", "arguments": {"script": "print(42)"}}})
            form = answer_form(c, content, action)
            assert "print(42)" in form["message"], form
            answer = c.recv()
            equal(answer["id"], number)
            equal(status_of(answer["result"]), want, number)


if __name__ == "__main__":
    main(__doc__)
