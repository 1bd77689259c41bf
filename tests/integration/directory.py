#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The host's directory of users, which policy asks who somebody is: one that hangs stops nobody
else, one that is down makes nobody a member of no group. The service has an nsswitch.conf of its
own, with a name service that does as it is told (tests/fixtures/nss_odd.c)."""

import contextlib
import os
import shutil
import signal
import tempfile

from admin import Admin
from harness import FEW_MODULES, SOMEBODY, equal, main, test
from mcpclient import LEGACY, Client, connect_as
from supervisor import comm, descendants, Supervisor
from waits import changes, until

ANN, BEN, MANY = 70001, 70002, 70003
STUDENTS = "[tenant group:students]\npolicy.run_script = deny\n"
PATIENT = "[service]\ndirectory_seconds = 120\n"
HASTY = "[service]\ndirectory_seconds = 3\n"
UNKNOWN = "policy does not know who you are"


class Directory:
    """What the name service does."""

    def __init__(self, ctx, switch):
        self.ctx = ctx
        self.path = tempfile.mkdtemp(prefix="mcp-nss-")
        os.chmod(self.path, 0o755)
        shutil.copy(os.path.join(ctx.options.build, "tests/fixtures/libnss_odd.so.2"), self.path)
        for name, text in (("asked", ""), ("nsswitch.conf", switch), ("students", "ann\nmany\n")):
            self.write(name, text)
        os.chmod(os.path.join(self.path, "asked"), 0o666)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        shutil.rmtree(self.path)

    def write(self, name, text=""):
        with open(os.path.join(self.path, name), "w", encoding="utf-8") as f:
            f.write(text)

    def remove(self, name):
        os.unlink(os.path.join(self.path, name))

    def asked(self):
        with open(os.path.join(self.path, "asked"), encoding="utf-8") as f:
            return f.read().splitlines()

    def wait_asked(self, line, n=1):
        """Until it was asked that so often."""
        with changes(os.path.join(self.path, "asked")) as change:
            until(lambda: "%d of %r, asked %s" % (n, line, self.asked()),
                  lambda: self.asked().count(line) >= n, wait=change)


@contextlib.contextmanager
def served(ctx, config, switch="passwd: files odd\ngroup: files odd\n"):
    """A service, and what its name service does."""
    with Directory(ctx, switch) as d:
        enter = ("unshare", "--mount", "sh", "-c",
                 "mount --bind \"$0\" /etc/nsswitch.conf && exec \"$@\"",
                 os.path.join(d.path, "nsswitch.conf"))
        env = {"LD_LIBRARY_PATH": d.path, "MCP_TEST_DIRECTORY": d.path}
        with ctx.private(config, env=env, wrap=enter) as s:
            yield s, d


def connect(ctx, s, uid):
    """One that waits for nothing yet."""
    return Client.connect(s.socket, None, uid, ctx.seconds(60))


def greet(c):
    c.send({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": LEGACY[-1], "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}})
    c.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    c.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "run_script", "arguments": {"script": "print(1)"}}})


def flushed(c):
    while c.outbuf:
        c.pump(c.timeout)
    return c


def is_silent(c):
    """Nothing has come."""
    c.pump(0)
    return not c.unread and not c.eof


def next_status(c):
    """Of greet's call, behind the answer to its initialize."""
    assert "result" in c.recv()
    return c.recv()["result"]["structuredContent"]["status"]


def status(ctx, s, uid):
    with ctx.client(path=s.socket, uid=uid) as c:
        return c.run("print(1)").status


def refusal(ctx, s, uid):
    with connect(ctx, s, uid) as c:
        return c.recv()["error"]["message"]


def wait_admitted(ctx, s, uid):
    """After the directory has failed it is asked again some seconds later."""
    def status():
        with connect(ctx, s, uid) as c:
            greet(c)
            return "result" in c.recv() and c.recv()["result"]["structuredContent"]["status"]
    return until("it is admitted", status)


# ---- who is who ----

@test(private=True, root=True)
def groups_of_a_name_service_hold(ctx):
    with served(ctx, STUDENTS) as (s, d):
        equal([status(ctx, s, uid) for uid in (ANN, BEN, MANY, 70009, None)],
              ["denied", "ok", "denied", "ok", "ok"])
        equal(d.asked().count("user ann"), 1)
        equal(status(ctx, s, ANN), "denied")
        equal(d.asked().count("user ann"), 1, "asked again")


@test(private=True, root=True)
def where_nobody_is_named_a_file_is_enough(ctx):
    """The directory is asked only whose a uid is, which the first of its sources can say."""
    config = "[tenant uid:%d]\npolicy.run_script = deny\n" % SOMEBODY
    with served(ctx, config) as (s, d):
        d.write("down")
        equal([status(ctx, s, uid) for uid in (SOMEBODY, None)], ["denied", "ok"])
        assert UNKNOWN in refusal(ctx, s, ANN)
        d.remove("down")
        equal(wait_admitted(ctx, s, ANN), "ok")
        equal({line for line in d.asked() if not line.startswith("name ")}, {"user ann"})


# ---- it hangs ----

@test(private=True, root=True)
def one_that_hangs_stops_nobody_else(ctx):
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o777)
        config = STUDENTS + PATIENT + "[admin]\nsocket = %s/admin\n" % directory
        with served(ctx, config) as (s, d), ctx.client(path=s.socket, uid=BEN) as before:
            equal(before.run("print(1)").status, "ok")
            d.write("hang-ann")
            with connect(ctx, s, ANN) as ann, connect(ctx, s, ANN) as again:
                for c in (ann, again):
                    greet(c)
                    flushed(c)
                d.wait_asked("user ann")
                # whoever is known, and whoever is new
                equal(before.run("print(1)").status, "ok")
                equal([status(ctx, s, uid) for uid in (MANY, None, 70010, 70011)],
                      ["denied", "ok", "ok", "ok"])
                with Admin(directory + "/admin") as admin:
                    equal(admin.ask("status")["scope"], "service")
                s.hang_up()
                d.wait_asked("user ben", 2)
                equal(before.run("print(1)").status, "ok")
                assert is_silent(ann) and is_silent(again)
                d.wait_asked("user ann", 2)	# the second time by SIGHUP
                equal(d.asked().count("user ann"), 2)
                d.remove("hang-ann")
                equal([next_status(c) for c in (ann, again)], ["denied", "denied"])


@test(private=True, root=True)
def who_leaves_while_it_hangs_is_forgotten(ctx):
    with served(ctx, STUDENTS + PATIENT) as (s, d):
        d.write("hang-ben")
        for i in range(20):
            with connect(ctx, s, BEN) as c:
                greet(c)
                d.wait_asked("user ben")
        with connect(ctx, s, BEN) as c:
            greet(c)
            c.half_close()
            d.remove("hang-ben")
            equal(next_status(c), "ok")
        equal(d.asked().count("user ben"), 1)


@test(private=True, root=True)
def it_is_not_waited_for_for_ever(ctx):
    with served(ctx, STUDENTS + HASTY) as (s, d):
        d.write("hang-ben")
        message = refusal(ctx, s, BEN)
        assert UNKNOWN in message and "does not answer" in message, message
        equal(status(ctx, s, ANN), "denied")
        d.remove("hang-ben")
        equal(wait_admitted(ctx, s, BEN), "ok")
        assert "directory-failed tenant=uid:%d err=ETIMEDOUT" % BEN in s.log(), s.log()


# ---- it fails ----

@test(private=True, root=True)
def one_that_is_down_is_not_no_groups(ctx):
    with served(ctx, STUDENTS + HASTY) as (s, d):
        equal(status(ctx, s, BEN), "ok")
        d.write("down")
        for uid in (ANN, MANY, 70012):
            message = refusal(ctx, s, uid)
            assert UNKNOWN in message and "cannot be asked" in message, message
        # what was known before holds; and what files know needs no other service to be known
        equal(status(ctx, s, BEN), "ok")
        d.remove("down")
        equal([wait_admitted(ctx, s, uid) for uid in (ANN, 70012)], ["denied", "ok"])


@test(private=True, root=True)
def a_reload_asks_again_and_may_fail(ctx):
    with served(ctx, STUDENTS) as (s, d), ctx.client(path=s.socket, uid=BEN) as c:
        equal(c.run("print(1)").status, "ok")
        d.write("students", "ben\n")
        s.hang_up(STUDENTS)
        d.wait_asked("groups ben", 2)
        equal(c.run("print(1)").status, "denied")
        d.write("students", "")
        s.hang_up(STUDENTS)
        d.wait_asked("groups ben", 3)
        equal(c.run("print(1)").status, "ok")
        d.write("down")
        # the same is asked: the answer of before holds
        s.hang_up(STUDENTS + "[limits]\npids = 50\n")
        d.wait_asked("user ben", 4)
        equal(c.run("print(1)").status, "ok")
        # another group: nobody knows
        s.hang_up(STUDENTS + "[tenant group:crew]\npolicy.run_script = deny\n")
        d.wait_asked("user ben", 5)
        o = c.run("print(1)")
        equal(o.status, "denied")
        assert UNKNOWN in o.text, o.text


# ---- other ways in ----

@test(private=True, root=True)
def requests_over_http_wait_too(ctx):
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o777)
        place = directory + "/http"
        config = STUDENTS + PATIENT + "[http]\nsocket = %s\n" % place
        body = (b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{'
                b'"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
                b'"io.modelcontextprotocol/clientCapabilities":{}}}}')
        head = (b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b"Accept: application/json, text/event-stream\r\n"
                b"MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list\r\n"
                b"Content-Length: %d\r\n\r\n" % len(body))

        def post(uid):
            c = connect_as(place, uid, ctx.seconds(60))
            c.setblocking(True)
            c.settimeout(ctx.seconds(60))
            c.sendall(head + body)
            return c

        def answer(c):
            with c:
                text = b""
                while b"\r\n\r\n" not in text:
                    got = c.recv(65536)
                    assert got, text
                    text += got
                return int(text.split(b" ", 2)[1]), text
        with served(ctx, config) as (s, d):
            os.chmod(place, 0o666)
            d.write("hang-ann")
            ann, gone = post(ANN), post(ANN)
            d.wait_asked("user ann")
            gone.close()
            equal(answer(post(BEN))[0], 200)
            d.remove("hang-ann")
            equal(answer(ann)[0], 200)
            d.write("down")
            code, text = answer(post(MANY))
            equal(code, 503)
            assert UNKNOWN.encode() in text, text


@test(private=True, root=True)
def approvers_by_group_after_a_restart(ctx):
    """Who asked, and who may decide, is asked of the directory again."""
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o777)
        config = ("[policy]\nrun_script = approve\napprovers = group:students\n[admin]\n"
                  "socket = %s/admin\napprovals = %s/approvals\n" % (directory, directory))

        def ask(uid, what, **more):
            with Admin(directory + "/admin", ctx.seconds(60), uid) as admin:
                return admin.ask(what, **more)
        with served(ctx, config) as (s, _):
            equal(status(ctx, s, BEN), "approval_pending")
        with served(ctx, config) as (s, d):
            listed = ask(ANN, "list")["approvals"]
            equal([a["tenant"] for a in listed], ["uid:%d" % BEN])
            equal(ask(70013, "list")["approvals"], [])
            d.write("down")
            answer = ask(MANY, "approve", id=listed[0]["id"])
            assert not answer["ok"], answer
            # operators by their uid need no directory
            equal(ask(None, "status")["scope"], "service")
            assert ask(ANN, "approve", id=listed[0]["id"])["ok"]


# ---- the helper ----

def helper_of(s):
    for pid, _ in descendants(s.pid):
        if comm(pid) == "mcp-directory":
            return pid
    raise AssertionError("there is no helper")


@test(private=True, root=True)
def the_helper_holds_nothing(ctx):
    with served(ctx, STUDENTS) as (s, d):
        equal(status(ctx, s, BEN), "ok")
        pid = helper_of(s)
        with open("/proc/%d/status" % pid, encoding="utf-8") as f:
            fields = dict(line.split(":\t", 1) for line in f.read().splitlines())
        equal({fields[k] for k in ("CapInh", "CapPrm", "CapEff", "CapAmb")}, {"0" * 16})
        equal(fields["NoNewPrivs"], "1")
        assert "0" not in fields["Uid"].split() + fields["Gid"].split(), fields
        links = {int(n): os.readlink("/proc/%d/fd/%s" % (pid, n))
                 for n in os.listdir("/proc/%d/fd" % pid)}
        lease, = (n for n in links if links[n].startswith("/memfd:mcp-leases"))
        equal(sorted(links), [0, 1, 2, 3, lease])
        assert links[0] == "/dev/null" and links[3].startswith("socket:"), links


@test(private=True, root=True)
def a_lost_helper_is_made_again(ctx):
    """The groups of users are looked up again by the next one."""
    with served(ctx, STUDENTS) as (s, d):
        equal(status(ctx, s, BEN), "ok")
        old = helper_of(s)
        os.kill(old, signal.SIGKILL)
        s.wait_logged("helper-made helper=directory")
        s.reload()		# all users are looked up again
        equal(status(ctx, s, BEN), "ok")
        assert helper_of(s) != old


if __name__ == "__main__":
    main(__doc__, modules=FEW_MODULES)
