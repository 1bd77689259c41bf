#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What policy lets be: verdicts by tenant, quotas, a reload, approvals in the session and by an
operator, before and after a restart."""

import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time

from admin import Admin, command
from audit_log import Log
from harness import FEW_MODULES, SOMEBODY, Skip, equal, main, test
from inside import thread_held
from mcpclient import LEGACY, Client
from terminal import Terminal
from waits import until, until_equal

def call(client, script, **arguments):
    """A call that does not become a job: the answer is what there is to say now."""
    arguments = {"script": script, "background": False, **arguments}
    return client.ask("tools/call", {"name": "run_script", "arguments": arguments})


def status_of(result):
    return result["structuredContent"]["status"]


def text_of(result):
    return "".join(block.get("text", "") for block in result["content"])


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
        first = call(c, "print(1)", idempotency_key="k")
        equal(call(c, "print(1)", idempotency_key="k"), first)
        s.reload("[policy]\nrun_script = deny\n")
        equal(status_of(call(c, "print(1)", idempotency_key="k")), "denied")
        s.reload("")
        equal(call(c, "print(1)", idempotency_key="k"), first)


@test(private=True)
def processor_time_is_counted(ctx):
    """Also while scripts run: when it is used up, all that use more are ended."""
    with ctx.private("[quota]\ncpu_seconds_per_hour = 2\n") as s, ctx.client(path=s.socket) as c:
        arguments = {"script": "while True: pass", "background": False, "timeout_seconds": 600, "cpu_seconds": 600}
        ids = [c.request("tools/call", {"name": "run_script", "arguments": arguments}) for _ in range(3)]
        for result in [c.wait(i, timeout=600) for i in ids]:
            equal(status_of(result), "cpu_limit")
            assert "quota cpu_seconds_per_hour" in text_of(result), result
        result = call(c, "1")
        equal(status_of(result), "quota_exceeded")
        assert "cpu_seconds_per_hour" in text_of(result), result
        for tool, arguments in (("validate_script", {"script": "import json"}), ("check_environment", {})):
            result = c.ask("tools/call", {"name": tool, "arguments": arguments})
            assert result.get("isError") and "cpu_seconds_per_hour" in text_of(result), (tool, result)


@test(private=True)
def what_the_service_runs_for_a_tenant_has_a_rate(ctx):
    """Of its own: checks do not use up what scripts have."""
    def check(n):
        return c.ask("tools/call", {"name": "validate_script", "arguments": {"script": "x = %d" % n}})
    with ctx.private("[quota]\nexecutions_per_minute = 2\n") as s, ctx.client(path=s.socket) as c:
        started = time.monotonic()
        results = [check(n) for n in range(9)]
        last = call(c, "1")
        if time.monotonic() - started > 55:
            raise Skip("the machine is too slow for a quota of a minute")
        equal([bool(r.get("isError")) for r in results], [False] * 8 + [True])
        assert "executions_per_minute: 8 checks" in text_of(results[8]), results[8]
        equal(status_of(last), "ok")


@test(private=True)
def sessions_are_counted(ctx):
    def greeting(client):
        client.send({"jsonrpc": "2.0", "id": 1, "method": "ping"})
        answer = client.recv()
        assert "error" not in answer or "too many" not in str(answer), answer
    with ctx.private("[quota]\nsessions = 1\n") as s:
        # who looked whether it is served is counted until it is seen to have gone
        s.wait_log("idle", lambda log: 0 < log.count("session-opened ") == log.count("session-closed "))
        with Client.connect(s.socket, None, timeout=ctx.seconds(60)) as first:
            greeting(first)
            with Client.connect(s.socket, None, timeout=ctx.seconds(60)) as second:
                refusal = second.recv()
                assert "too many connections of this user" in str(refusal), refusal
            greeting(first)


@test(private=True)
def a_reload_is_whole_or_nothing(ctx):
    with ctx.private("[limits]\npids = 64\n") as s, ctx.client(path=s.socket) as c:
        equal(status_of(call(c, "1")), "ok")
        running = c.start_script("import time; time.sleep(2); print('kept')")
        c.ask("ping")		# then it has been taken
        s.reload("[policy]\nrun_script = deny\n[pool]\nwarm = 1\n")
        assert "[pool] warm" in s.log(), s.log()
        equal(status_of(call(c, "1")), "denied")
        equal(c.outcome(running).stdout, "kept\n")
        s.reload("[policy]\nrun_script = perhaps\n", "reload-failed ")
        assert "test.conf:2: run_script" in s.log(), s.log()
        equal(status_of(call(c, "1")), "denied")
        s.reload("")
        equal(status_of(call(c, "1")), "ok")


@test(private=True)
def mistakes_are_shown_with_their_places(ctx):
    with ctx.private("") as s:
        folder = os.path.join(s.dir, "conf.d")
        os.makedirs(folder, exist_ok=True)
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


@test(private=True, root=True)
def what_is_approved_is_what_runs(ctx):
    """An approver sees what the addresses of files stand for, and what else is not part of it."""
    with Directory() as directory:
        config = approving(directory) + "[files]\ndirectory = %s/files\n" % directory
        with ctx.private(config.replace("run_script = approve", "run_script = allow")) as s, \
             ctx.client(path=s.socket, uid=SOMEBODY) as c:
            o = c.run("with open('large.bin', 'wb') as f:\n f.truncate(9 << 20)\nNone")
            large, = o.structured["files"]
        with ctx.private(config) as s, ctx.client(path=s.socket, uid=SOMEBODY) as c, \
             Admin(directory + "/admin") as admin:
            files = [{"path": "a.bin", "uri": large["uri"]}, {"path": "gone", "uri": "mcp-python://x-none#a"}]
            script = "import os; print(os.path.getsize('a.bin'))"
            equal(status_of(call(c, script, files=files[:1])), "approval_pending")
            waiting, = admin.ask("list")["approvals"]
            shown = command(ctx, "approvals", "show", waiting["id"], "--admin-socket", directory + "/admin")
            digest = hashlib.sha256(bytes(9 << 20)).hexdigest()
            assert digest in shown and "files[0].bytes: %d" % (9 << 20) in shown, shown
            assert admin.ask("approve", id=waiting["id"])["ok"]
            result = call(c, script, files=files[:1])
            equal((status_of(result), result["structuredContent"]["stdout"]), ("ok", "%d\n" % (9 << 20)))
            # Each of these is another request, and says what it lacks.
            for more, words in (({"files": files}, ["files[1].sha256: null"]),
                                ({"dependencies": ["six"]}, ["not_approved", "the versions of packages"]),
                                ({"volume": "v"}, ["not_approved", "what is in the volume"])):
                equal(status_of(call(c, "0", **more)), "approval_pending")
                newest = admin.ask("list")["approvals"][-1]["id"]
                shown = command(ctx, "approvals", "show", newest, "--admin-socket", directory + "/admin")
                for word in words:
                    assert word in shown, shown


@test(private=True, root=True)
def a_use_that_cannot_be_written_down_is_none(ctx):
    """The disk of the approvals is full: nothing runs, and the grant is still there."""
    with Directory() as directory:
        disk = directory + "/disk"
        os.mkdir(disk)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=0777", "none", disk], check=True)
        try:
            config = approving(directory).replace("/approvals\n", "/disk/approvals\n")
            with ctx.private(config) as s, ctx.client(path=s.socket, uid=SOMEBODY) as c, \
                 Admin(directory + "/admin") as admin:
                def size():
                    return os.path.getsize(disk + "/approvals")
                equal(status_of(call(c, "print(6 * 7)")), "approval_pending")
                waiting, = admin.ask("list")["approvals"]
                assert admin.ask("approve", id=waiting["id"])["ok"]
                before = size()
                equal(status_of(call(c, "1#")), "approval_pending")
                until("the request is in the file", lambda: size() > before)
                # The next one ends with a page, so that no byte of it is left.
                pad = -(2 * size() - before) % 4096
                equal(status_of(call(c, "2#" + "x" * pad)), "approval_pending")
                until_equal("the rest of the last page", lambda: size() % 4096, 0)
                with open(disk + "/filler", "wb", buffering=0) as f, contextlib.suppress(OSError):
                    while True:
                        f.write(b"x" * 4096)
                result = call(c, "print(6 * 7)")
                equal(status_of(result), "denied")
                assert "cannot be written down" in text_of(result), result
                os.unlink(disk + "/filler")
                equal(status_of(call(c, "print(6 * 7)")), "ok")
                equal(status_of(call(c, "print(6 * 7)")), "approval_pending")
        finally:
            subprocess.run(["umount", disk], check=True)


@test(private=True)
def nobody_waits_for_the_disk_of_approvals(ctx):
    """What writes the approvals is held, as by a disk that does not answer: what was approved waits for
    the record of its use, and an operator for that of a decision; all others are answered."""
    with Directory() as directory, ctx.private(approving(directory)) as s, \
            ctx.client(path=s.socket, uid=SOMEBODY) as c, Admin(directory + "/admin") as admin, \
            Admin(directory + "/admin") as other:
        equal(status_of(call(c, "print(6 * 7)")), "approval_pending")
        waiting, = admin.ask("list")["approvals"]
        assert admin.ask("approve", id=waiting["id"])["ok"]
        with thread_held(s.pid, "approvals"):
            ran = c.start_script("print(6 * 7)")
            equal(status_of(call(c, "1")), "approval_pending")
            second, = other.ask("list")["approvals"]
            deciding = threading.Thread(target=lambda: answers.append(admin.ask("deny", id=second["id"])))
            answers = []
            deciding.start()
            until("the denial is in force", lambda: not [a for a in other.ask("list")["approvals"]
                                                         if a["state"] == "pending"])
            for _ in range(20):
                c.ask("ping")
            equal(status_of(call(c, "1")), "denied")
            assert not c.answers and not answers, (c.answers, answers)
        equal(c.outcome(ran).stdout, "42\n")
        deciding.join()
        assert answers[0]["ok"], answers
        equal(status_of(call(c, "print(6 * 7)")), "approval_pending")


# ---- a call that waits for an operator is a job ----

def ask_tool(client, tool, idle=None, **arguments):
    """The answer of a call that has to be approved; a client without forms."""
    return client.ask("tools/call", {"name": tool, "arguments": arguments}, idle)


def job(client, told, action, seconds=None, **more):
    """What the tool job says of the job that an answer has named."""
    return ask_tool(client, "job", seconds, id=told["job"], action=action, **more)["structuredContent"]


def ended(ctx, client, told, state):
    """The answer of that job, once it has this state."""
    s = job(client, told, "wait", ctx.seconds(120), wait_seconds=min(300, ctx.seconds(60)))
    equal(s["state"], state, s)
    return s["answer"]


@test(private=True, root=True)
def what_waits_for_an_approval_is_a_job(ctx):
    """The answer comes at once, and names the job, the request and the command; a decision ends it."""
    with Directory() as directory, ctx.private(approving(directory, "run_repl = approve\n")) as s, \
            Admin(directory + "/admin") as admin:
        with ctx.client(path=s.socket, uid=SOMEBODY) as c:
            for tool, name in (("run_script", "script"), ("run_repl", "code")):
                code = "import time\nprint('out', flush=True)\n6 * 7 #" + tool
                result = ask_tool(c, tool, **{name: code})
                told, waiting = result["structuredContent"], admin.ask("list")["approvals"][-1]
                waits = "waits for an approval: mcp-python approve " + waiting["id"]
                equal((told["status"], told["waits"], result["isError"]), ("approval_pending", waits, False))
                assert waits in text_of(result) and told["job"] in text_of(result), text_of(result)
                seen = job(c, told, "status")
                equal((seen["state"], seen["waits"], seen["tool"]), ("running", waits, tool))
                # The same call is the same job, until it has run.
                again = ask_tool(c, tool, **{name: code})["structuredContent"]
                equal((again["job"], again["waits"]), (told["job"], waits))
                assert admin.ask("approve", id=waiting["id"])["ok"]
                answer = ended(ctx, c, told, "done")
                equal((answer["status"], answer["stdout"], answer["result"]["repr"]), ("ok", "out\n", "42"))
                equal(job(c, told, "output")["output"]["text"], "out\n", "its output is kept")
                another = ask_tool(c, tool, **{name: code})["structuredContent"]
                assert another["job"] != told["job"] and another["waits"] != waits, another
            told = ask_tool(c, "run_script", script="print(1)")["structuredContent"]
        # Its client may leave meanwhile; a denial says why.
        waiting = admin.ask("list")["approvals"][-1]
        assert admin.ask("deny", id=waiting["id"], reason="not today")["ok"]
        with ctx.client(path=s.socket, uid=SOMEBODY) as c:
            answer = ended(ctx, c, told, "failed")
            equal((answer["status"], answer["stdout"]), ("denied", ""))
            assert "not today" in answer["error"]["message"], answer


@test(private=True, root=True)
def a_job_whose_approval_expires_says_so(ctx):
    """Its status, its text and the audit log; its call may be made again, and is a new request."""
    with Log(ctx) as log, Directory() as directory, \
            ctx.private(approving(directory, "approval_seconds = 3\n") + log.config()) as s, Admin(directory + "/admin") as admin, ctx.client(path=s.socket, uid=SOMEBODY) as c:
        told = ask_tool(c, "run_script", script="print(6 * 7)")["structuredContent"]
        equal(told["status"], "approval_pending")
        id = told["waits"].split()[-1]
        answer = ended(ctx, c, told, "failed")
        equal((answer["status"], answer["stdout"], answer["execution_id"]), ("denied", "", None))
        text = text_of(ask_tool(c, "job", id=told["job"], action="wait"))
        assert "denied: no approver decided about this call in time\n" in text and "failed" in text, text
        equal([one["state"] for one in admin.ask("list", all=True)["approvals"] if one["id"] == id], ["expired"])
        again = ask_tool(c, "run_script", script="print(6 * 7)")["structuredContent"]
        assert again["job"] != told["job"] and id not in again["waits"], again
        until("its records", lambda: [r["event"] for r in log.records() if r.get("approval") == id] == ["approval-asked", "approval-refused"])
        assert any(r["event"] == "denied" and "no approver decided" in r["why"] for r in log.records()), log.records()


@test(private=True, root=True)
def a_job_that_waits_for_an_approval_can_be_stopped(ctx):
    """It counts as a job, and its request stays for the next call; too many of them are no jobs."""
    with Directory() as directory, ctx.private(approving(directory) + "[mcp]\njobs_per_tenant = 2\n") as s, \
            Admin(directory + "/admin") as admin, ctx.client(path=s.socket, uid=SOMEBODY) as c:
        told = [ask_tool(c, "run_script", script="print(%d)" % n)["structuredContent"] for n in range(3)]
        equal([one["status"] for one in told], ["approval_pending"] * 3)
        equal(["job" in one for one in told], [True, True, False])
        assert "once it is" in told[2]["error"]["message"], told[2]
        listed = ask_tool(c, "job")["structuredContent"]["jobs"]
        equal([(one["job"], one["waits"]) for one in listed], [(one["job"], one["waits"]) for one in told[:2]])
        equal(job(c, told[0], "cancel")["state"], "cancelled")
        first = admin.ask("list")["approvals"][0]
        assert admin.ask("approve", id=first["id"])["ok"]
        equal(job(c, told[0], "status")["state"], "cancelled")
        o = c.run("print(0)")
        equal((o.status, o.stdout), ("ok", "0\n"), "the approval is for the next call")
        # In the background from the beginning: one job, before and after.
        told = ask_tool(c, "run_script", script="print('back')", background=True)["structuredContent"]
        equal(told["status"], "approval_pending")
        assert admin.ask("approve", id=admin.ask("list")["approvals"][-1]["id"])["ok"]
        equal(ended(ctx, c, told, "done")["stdout"], "back\n")


@test(private=True, root=True)
def what_holds_of_a_job_that_waits_over_a_restart(ctx):
    """The job is over and its request stays, as doc/agents.md has it."""
    with Directory() as directory:
        config = approving(directory)
        with ctx.private(config) as s, ctx.client(path=s.socket, uid=SOMEBODY) as c:
            told = ask_tool(c, "run_script", script="print(6 * 7)")["structuredContent"]
            equal(job(c, told, "status")["state"], "running")
        with ctx.private(config) as s, ctx.client(path=s.socket, uid=SOMEBODY) as c, \
                Admin(directory + "/admin") as admin:
            assert "there is no such job" in text_of(ask_tool(c, "job", id=told["job"], action="status"))
            waiting, = admin.ask("list")["approvals"]
            assert waiting["id"] in told["waits"], (waiting, told)
            assert admin.ask("approve", id=waiting["id"])["ok"]
            equal(c.run("print(6 * 7)").stdout, "42\n")


@test(private=True, root=True)
def a_key_has_one_job_that_waits(ctx):
    """A call that is sent again is answered at once, too, and has the answer of the job in the end."""
    with Directory() as directory, ctx.private(approving(directory)) as s, \
            Admin(directory + "/admin") as admin, ctx.client(path=s.socket, uid=SOMEBODY) as c:
        def send():
            return ask_tool(c, "run_script", script="print(6 * 7)", idempotency_key="k")["structuredContent"]
        told = send()
        equal(send(), told)
        waiting, = admin.ask("list")["approvals"]
        assert admin.ask("approve", id=waiting["id"])["ok"]
        answer = ended(ctx, c, told, "done")
        equal(send(), answer)
        told = ask_tool(c, "run_script", script="1", idempotency_key="l")["structuredContent"]
        equal(job(c, told, "cancel")["state"], "cancelled")
        again = ask_tool(c, "run_script", script="1", idempotency_key="l")["structuredContent"]
        assert again["job"] != told["job"], "a cancelled call may be made again"


@test(private=True, root=True)
def a_session_that_has_ended_ends_the_job_of_its_cell(ctx):
    with Directory() as directory, ctx.private(approving(directory, "run_repl = approve\n")) as s, \
            Admin(directory + "/admin") as admin, ctx.client(path=s.socket, uid=SOMEBODY) as c:
        def approve():
            waiting = admin.ask("list")["approvals"][-1]
            assert admin.ask("approve", id=waiting["id"])["ok"]
        begun = ask_tool(c, "run_repl", code="x = 1")["structuredContent"]
        approve()
        session = ended(ctx, c, begun, "done")["session"]
        cell = ask_tool(c, "run_repl", session=session, code="x")["structuredContent"]
        of_cell = admin.ask("list")["approvals"][-1]["id"]
        closing = ask_tool(c, "run_repl", session=session, close=True)["structuredContent"]
        approve()
        equal(ended(ctx, c, closing, "done")["state"], "closed")
        assert admin.ask("approve", id=of_cell)["ok"]
        equal(ended(ctx, c, cell, "failed")["status"], "no_session")


@test(private=True)
def who_waits_gets_the_decision(ctx):
    """mcp-python run --wait: one request, and its script or the reason of the denial."""
    with Directory() as directory, ctx.private(approving(directory, "approvers = uid:4000000 self\n")) as s, \
            Admin(directory + "/admin") as admin:
        for decide, more, want in (("approve", {}, (0, "42\n")), ("deny", {"reason": "no"}, (77, ""))):
            script = directory + "/x.py"
            with open(script, "w") as f:
                print("print(6 * 7) #", decide, file=f)
            with subprocess.Popen([os.path.join(ctx.options.build, "mcp-python"), "run", "--wait",
                                   "--socket", s.socket, script], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as p:
                first = p.stderr.readline()
                waiting = [a for a in admin.ask("list")["approvals"] if a["state"] == "pending"]
                equal(len(waiting), 1, waiting)
                assert waiting[0]["id"] in first and first.count("approval_pending") == 1, first
                assert admin.ask(decide, id=waiting[0]["id"], **more)["ok"]
                out, err = p.communicate(timeout=ctx.seconds(60))
            equal((p.returncode, out), want, err)
            if decide == "deny":
                assert 'reason: "no"' in err, err


@test(private=True)
def a_session_that_waits_says_so_in_its_exit_code(ctx):
    with Directory() as directory, \
            ctx.private(approving(directory).replace("run_script", "run_repl")) as s:
        done = subprocess.run([os.path.join(ctx.options.build, "mcp-python"), "repl", "--socket",
                               s.socket], input="1\n", capture_output=True, text=True,
                              timeout=ctx.seconds(60))
        equal((done.returncode, done.stdout), (75, ""), done.stderr)
        assert "has to be approved by an operator" in done.stderr, done.stderr


@test(private=True, root=True)
def requests_are_reviewed_one_by_one(ctx):
    """What was read is what is decided about; further requests are shown as they come."""
    with Directory() as directory, ctx.private(approving(directory)) as s, \
            ctx.client(path=s.socket, uid=SOMEBODY) as c:
        for n in range(2):
            call(c, "print(%d) # \x1b[2J" % n)
        with Terminal(ctx, "approvals", "review", "--admin-socket", directory + "/admin") as t:
            t.expect(r"> print\(0\) # \\x1b\[2J.*leave > ")
            t.type("what?\n")
            t.expect("leave > ")
            t.type("a\n")
            t.expect(r"approved a-.*> print\(1\).*leave > ")
            t.type("d\n")
            t.expect("reason")
            t.type("not today\n")
            t.expect("denied a-.*Waiting for requests")
            call(c, "print(2)")
            t.expect(r'"print\(2\)".*leave > ')
            t.type("l\n")
            t.expect("Waiting for requests")
            call(c, "print(3)")
            # The one that was left for later is not shown again.
            assert "print(2)" not in t.expect(r'"print\(3\)".*leave > ')[0]
            t.type("q\n")
            equal(t.end(), 0)
            assert b"\x1b[2J" not in t.log, t.log
        equal(call(c, "print(0) # \x1b[2J")["structuredContent"]["stdout"], "0\n")
        assert "not today" in text_of(call(c, "print(1) # \x1b[2J"))
        equal(status_of(call(c, "print(2)")), "approval_pending")


@test(private=True, root=True)
def a_command_is_told_of_new_requests(ctx):
    """examples/approvals_notify.py: once of each, in one line that steers no terminal."""
    example = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples",
                           "approvals_notify.py")
    with Directory() as directory, ctx.private(approving(directory)) as s, \
            ctx.client(path=s.socket, uid=SOMEBODY) as c:
        call(c, "first() # \x1b[2J\nfurther()")
        with subprocess.Popen([example, "/bin/echo", "told:"], stdout=subprocess.PIPE, text=True,
                              env={**os.environ, "MCP_PYTHON_ADMIN_SOCKET": directory + "/admin",
                                   "MCP_PYTHON": os.path.join(ctx.options.build, "mcp-python")}) as p:
            late = threading.Timer(ctx.seconds(60), p.kill)
            late.start()
            lines = [p.stdout.readline()]
            call(c, "second()")
            lines.append(p.stdout.readline())
            late.cancel()
            s.stop()
            equal(p.stdout.read(), "")
        for line, want in zip(lines, (r"first\(\) # \?\[2J", r"second\(\)")):
            assert re.fullmatch(r"told: a-\w{10} \S+: run_script: %s\n" % want, line), line


@test(private=True, root=True)
def a_denial_stands(ctx):
    with Directory() as directory:
        config, admin = approving(directory), ("--admin-socket", directory + "/admin")
        with ctx.private(config) as s, ctx.client(path=s.socket, uid=SOMEBODY) as c:
            equal(status_of(call(c, "print(6 * 7)")), "approval_pending")
            id = command(ctx, "approvals", *admin).split()[0]
            command(ctx, "deny", id, "--reason", 'ask for "tiny" instead\x1b[2J', *admin)
            said = r'reason: "ask for \"tiny\" instead\x1b[2J"'
            for more in ({}, {"idempotency_key": "k"}):
                result = call(c, "print(6 * 7)", **more)
                equal(status_of(result), "denied")
                assert id in text_of(result) and said in text_of(result), result
            lines = command(ctx, "approvals", *admin).splitlines()
            equal(len(lines), 1, lines)
            assert lines[0].startswith(id + "  refused ") and "denied until 2" in lines[0], lines
            assert "  run_script: print(6 * 7)  " in lines[0], lines
            text = command(ctx, "metrics", *admin)
            assert "_approvals_pending 0" in text and "_approvals_oldest_seconds 0" in text, text
            with ctx.client(path=s.socket, uid=SOMEBODY + 1) as other:
                equal(status_of(call(other, "print(6 * 7)")), "approval_pending")
            equal(status_of(call(c, "print(6 * 8)")), "approval_pending")
        with ctx.private(config) as s, ctx.client(path=s.socket, uid=SOMEBODY) as c:
            result = call(c, "print(6 * 7)")
            assert status_of(result) == "denied" and said in text_of(result), result
            command(ctx, "deny", id, *admin, want=77)
            said = command(ctx, "approve", id[:8], *admin)
            equal(said, "approved %s\n" % id)
            equal(status_of(call(c, "print(6 * 7)")), "ok")
            equal(status_of(call(c, "print(6 * 7)")), "approval_pending")
            command(ctx, "deny", "a-", *admin, want=64)
            command(ctx, "deny", "none", *admin, want=77)


@test(private=True, root=True)
def a_denial_need_not_stand(ctx):
    with Directory() as directory, \
            ctx.private(approving(directory, "denied_seconds = 0\n")) as s, \
            ctx.client(path=s.socket, uid=SOMEBODY) as c, Admin(directory + "/admin") as admin:
        equal(status_of(call(c, "1")), "approval_pending")
        one = admin.ask("list")["approvals"][0]
        assert admin.ask("deny", id=one["id"])["ok"]
        equal(admin.ask("list")["approvals"], [])
        equal(status_of(call(c, "1")), "approval_pending")
        assert admin.ask("list")["approvals"][0]["id"] != one["id"]


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
def who_asks_sees_their_own_request(ctx):
    with Directory() as directory, ctx.private(approving(directory)) as s, \
            ctx.client(path=s.socket, uid=SOMEBODY) as c:
        equal(status_of(call(c, "print(1)")), "approval_pending")
        with Admin(directory + "/admin", uid=SOMEBODY) as admin:
            one, = admin.ask("list")["approvals"]
            equal(one["tenant"], "uid:%d" % SOMEBODY)
            assert admin.ask("show", id=one["id"])["ok"]
            assert not admin.ask("approve", id=one["id"])["ok"]
        with Admin(directory + "/admin", uid=SOMEBODY - 1) as admin:
            equal(admin.ask("list")["approvals"], [])
            assert not admin.ask("show", id=one["id"])["ok"]


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


# ---- what is shown of a call ----

SUM = r"  [0-9a-f]{64}"
ESCAPES = "\x1b[2J\x9b31m\x85\u202e\u2066\u200b\u2028\ufeff\r"
OURS = [r"May run_script be called with these arguments\?", r"", SUM, r"arguments:", r"text [0-9]+:",
        r'Each line that begins with ">" is the caller\'s and not this server\'s, but for the sha256, bytes and '
        r"begins of files, and not_approved\. What is not named has its default\.",
        r"text [0-9]+, [0-9]+ bytes(, NOT ALL OF IT SHOWN)?, SHA-256"]


def hash_of(text):
    return hashlib.sha256(text.encode()).hexdigest()


def check_shown(text, ours):
    """Checks that all of it is visible, and that all unmarked lines are the service's. Returns the
    marked lines."""
    for character in ESCAPES:
        assert " " <= character <= "~" or character not in text, ascii(text)
    marked = [l for l in text.split("\n") if l.startswith(">")]
    for l in text.split("\n"):
        assert l in marked or any(re.fullmatch(one, l) for one in ours), (l, text)
        assert l not in marked or (l[1:2] in (" ", "+") and len(l) <= 72), (l, text)
    return marked


def form_of(ctx, c, number, arguments):
    """What the client's user is asked about it; they say no."""
    c.send({"jsonrpc": "2.0", "id": number, "method": "tools/call",
            "params": {"name": "run_script", "arguments": arguments}})
    form = answer_form(c, None, "decline")
    equal(status_of(c.recv()["result"]), "denied")
    return form["message"]


@contextlib.contextmanager
def asking(ctx):
    """A client with a user who may approve, and the operators' socket."""
    with Directory() as directory, \
            ctx.private(approving(directory, "approvers = self\n")) as s, \
            Client.connect(s.socket, None, timeout=ctx.seconds(60)) as c:
        c.send({"jsonrpc": "2.0", "id": 0, "method": "initialize",
                "params": {"protocolVersion": LEGACY[-1], "capabilities": {"elicitation": {}},
                           "clientInfo": {"name": "t", "version": "1"}}})
        c.recv()
        c.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        yield c, directory + "/admin"


@test(private=True)
def a_form_shows_all_arguments(ctx):
    """The code that runs is in an input file: the script alone shows nothing of it."""
    script, evil = "exec(open('x.py').read())", "import os\nos.system('evil')\n"
    with asking(ctx) as (c, _):
        shown = form_of(ctx, c, 1, {
            "script": script, "files": [{"path": "x.py", "text": evil}], "stdin": "one\ntwo",
            "args": ["-v", "--all"], "dependencies": ["requests==2.31"], "profile": "basic",
            "timeout_seconds": 9, "memory_mb": 64, "pids": 7, "idempotency_key": "no matter"})
        marked = check_shown(shown, OURS)
        for want in ('> script: "%s"' % script, '> files[0].path: "x.py"', "> files[0].text: text 1",
                     "> stdin: text 2", '> args[1]: "--all"', '> dependencies[0]: "requests==2.31"',
                     '> profile: "basic"', "> timeout_seconds: 9", "> memory_mb: 64", "> pids: 7",
                     "> import os", "> os.system('evil')", "> one", "> two"):
            assert want in marked, (want, shown)
        assert "no matter" not in shown, shown
        for n, text in ((1, evil), (2, "one\ntwo")):
            assert "\ntext %d, %d bytes, SHA-256\n  %s\n" % (n, len(text), hash_of(text)) in shown
            assert "\n\ntext %d:\n> " % n in shown, shown
        # ours first: sizes and sums before the first line of theirs
        assert shown.rindex("SHA-256") < shown.index("\n>"), shown


@test(private=True)
def arguments_cannot_pass_for_the_server(ctx):
    forged = ("print(1)\n\ntext 2, 7 bytes, SHA-256\n  " + "0" * 64 + "\n\n(approved already)" +
              ESCAPES + "x" * 300 + "\nMay run_script be called with these arguments?")
    with asking(ctx) as (c, _):
        shown = form_of(ctx, c, 1, {
            "script": forged, "files": [{"path": ESCAPES + "a", "text": forged}],
            "args": ["a\nscript: \"harmless\"", "\u202e"], "x\n\nnothing else" + ESCAPES: 1})
        marked = check_shown(shown, OURS)
        listed = marked[:shown[shown.index("\n>"):].split("\n\n")[0].count("\n>")]
        equal([l for l in listed if "script" in l], ["> script: text 1"], shown)
        assert "> (approved already)\\x1b[2J\\u009b31m\\u0085\\u202e" in shown, shown


@test(private=True)
def what_has_no_room_is_named(ctx):
    script = "print(1)\n" * 5000
    with asking(ctx) as (c, admin):
        shown = form_of(ctx, c, 1, {"script": script, "stdin": "a\nb"})
        check_shown(shown, OURS)
        assert "\ntext 1, 45000 bytes, NOT ALL OF IT SHOWN, SHA-256\n  %s\n" % hash_of(script) in shown
        assert shown.endswith("\n\ntext 2:\n> a\n> b"), shown
        # more arguments than a form has room for: nobody is asked by one
        c.send({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
            "name": "run_script", "arguments": {"script": "1", "args": ["x"] * 60}}})
        answer = c.recv()
        assert answer.get("method") != "elicitation/create", answer
        equal(status_of(answer["result"]), "approval_pending")


@test(private=True, root=True)
def operators_see_what_is_whose(ctx):
    forged = "print(1)\nitem: package harmless==1.0\n\na-1  granted\n" + ESCAPES
    with Directory() as directory:
        admin = directory + "/admin"
        with ctx.private(approving(directory)) as s, ctx.client(path=s.socket, uid=SOMEBODY) as c:
            equal(status_of(call(c, forged, stdin="\x1b]0;owned\x07\n", args=["\x9b"])),
                  "approval_pending")
            listed = command(ctx, "approvals", "--admin-socket", admin)
            id = listed.split()[0]
            text = command(ctx, "approvals", "show", id, "--admin-socket", admin)
            item = r"run_script [0-9a-f]{64}"
            marked = check_shown(text, OURS + [
                id + r"  pending   (\w+ \(uid:%d\)|uid:%d), [0-9.]+s ago  %s" % (
                    SOMEBODY, SOMEBODY, item), "item: " + item,
                r'Each line that begins with ">" is the tenant\'s, but for the sha256, bytes and',
                r"begins of files, and not_approved\. What they ask for:"])
            assert "> item: package harmless==1.0" in marked, text
            assert "> \\x1b]0;owned\\x07" in marked, text
            for options in (("approvals", "show", id, "--json"), ("approvals", "--json")):
                text = command(ctx, *options, "--admin-socket", admin)
                assert text.strip().isascii() and text.strip().isprintable(), text


if __name__ == "__main__":
    main(__doc__, modules=FEW_MODULES)
