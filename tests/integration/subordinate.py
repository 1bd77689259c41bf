#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Whose a uid is. A user of the host can become many uids, in a user namespace with its range of
/etc/subuid (newuidmap): all of them are this user for policy, quotas, suspension and the audit log. A
uid that is nobody's is refused. The service and the clients see a passwd, group and subuid of the
test's own."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile

from admin import command
from harness import FEW_MODULES, SOMEBODY, equal, main, test
from http_client import modern, modern_headers
from mcpclient import Client

MALLORY, CAROL, DAVE = 70011, 70012, 70013
FIRST = 7100000			# of mallory's range
SHARED = 7200000		# of a range of two users
TAKEN = 7300000			# of mallory's range, and carol's own account there
ROOTS = 7400000
NOBODYS = 7900000
USERS = """mallory:x:%d:%d::/:/bin/sh
carol:x:%d:%d::/:/bin/sh
dave:x:%d:%d::/:/bin/sh
taken:x:%d:%d::/:/bin/sh
""" % (MALLORY, MALLORY, CAROL, CAROL, DAVE, DAVE, TAKEN, TAKEN)
RANGES = """mallory:%d:65536
carol:%d:10
dave:%d:10
mallory:%d:10
root:%d:10
""" % (FIRST, SHARED, SHARED, TAKEN, ROOTS)
STUDENTS = "[service]\nunknown_uids = refuse\n[tenant group:students]\npolicy.run_script = deny\n"

# Becomes uid 1 of a new user namespace, which is the first of a range, and talks to a socket.
INSIDE = r"""
import ctypes, json, os, socket, subprocess, sys
uid, first, path, kind, lines = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4], sys.argv[5:]
libc = ctypes.CDLL(None, use_errno=True)
ready, go = os.pipe(), os.pipe()
child = os.fork()
if not child:
    if libc.unshare(0x10000000):
        raise OSError(ctypes.get_errno(), "unshare")
    os.write(ready[1], b"x")
    os.read(go[0], 1)
    os.setresgid(1, 1, 1)
    os.setresuid(1, 1, 1)
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    s.settimeout(120)
    s.connect(path)
    f = s.makefile("rw", encoding="utf-8", newline="")
    for line in lines:
        try:
            f.write(line if kind == "http" else line + "\n")
            f.flush()
        except BrokenPipeError:
            pass
        if '"id"' in line or kind != "mcp":
            text = f.read() if kind == "http" else f.readline()
            text = text.rpartition("\r\n\r\n")[2] if kind == "http" else text
            print(text[text.index("{"):text.rindex("}") + 1], flush=True)
    sys.stdout.flush()
    os._exit(0)
os.read(ready[0], 1)
for tool in "newuidmap", "newgidmap":
    subprocess.run([tool, str(child), "0", str(uid), "1", "1", first, "1"], check=True)
os.write(go[1], b"x")
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


class Host:
    """A passwd, group and subuid, which show in the mount namespaces of what it starts."""

    def __init__(self, ranges=RANGES):
        self.path = tempfile.mkdtemp(prefix="mcp-host-")
        os.chmod(self.path, 0o755)
        for name, more in (("passwd", USERS), ("group", "students:x:70100:mallory\n")):
            with open("/etc/" + name, encoding="utf-8") as f:
                self.write(name, f.read() + more)
        for name in "subuid", "subgid":
            self.write(name, ranges)
        self.write("inside.py", INSIDE)
        self.wrap = ("unshare", "--mount", "sh", "-c",
                     "for f in passwd group subuid subgid; do [ -e /etc/$f ] || : >/etc/$f; "
                     "mount --bind \"$0/$f\" /etc/$f || exit; done; exec \"$@\"", self.path)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        shutil.rmtree(self.path)

    def write(self, name, text):
        with open(os.path.join(self.path, name), "w", encoding="utf-8") as f:
            f.write(text)

    def talk(self, ctx, path, *messages, kind="mcp", user=MALLORY, first=FIRST):
        """The answers that a process gets that the user has started under the first uid of its range."""
        done = subprocess.run(
            [*self.wrap, "setpriv", "--reuid=%d" % user, "--regid=%d" % user, "--clear-groups",
             sys.executable, os.path.join(self.path, "inside.py"), str(user), str(first), path, kind,
             *(m if isinstance(m, str) else json.dumps(m) for m in messages)],
            capture_output=True, text=True, timeout=ctx.seconds(120), check=False)
        equal(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]


def calls(script):
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "name": "run_script", "arguments": {"script": script}}}
    return ({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}},
        {"jsonrpc": "2.0", "method": "notifications/initialized"}, call)


def over_http(script):
    """In one request, without a session."""
    message = modern("tools/call", {"name": "run_script", "arguments": {"script": script}}, id=2)
    headers = ["%s: %s" % pair for pair in modern_headers(message)]
    body = json.dumps(message)
    return "\r\n".join(["POST /mcp HTTP/1.1", "Host: localhost", "Connection: close",
                        "Content-Length: %d" % len(body), *headers, "", body])


def status_of(answer):
    return answer["result"]["structuredContent"]["status"]


@contextlib.contextmanager
def served(ctx, config=STUDENTS, ranges=RANGES, args=()):
    with Host(ranges) as host, ctx.private(config, wrap=host.wrap, args=args) as s:
        yield host, s


def refusal(ctx, s, uid):
    with Client.connect(s.socket, None, uid, ctx.seconds(60)) as c:
        return c.recv()["error"]["message"]


def status(ctx, s, uid):
    with ctx.client(path=s.socket, uid=uid) as c:
        return c.run("1").status


# ---- a real user namespace ----

@test(private=True, root=True)
def a_subordinate_uid_is_its_owner(ctx):
    """For policy, for suspension, for a quota, for the audit log."""
    with tempfile.TemporaryDirectory() as d:
        os.chmod(d, 0o777)
        sockets = "[admin]\nsocket = %s/admin\n[audit]\nfile = %s/audit\n" % (d, d)
        with served(ctx, STUDENTS + sockets) as (host, s):
            equal(status_of(host.talk(ctx, s.socket, *calls("1"))[-1]), "denied")
            s.reload(STUDENTS.replace("deny", "allow") + sockets +
                     "[quota]\nexecutions_per_minute = 2\n")
            equal(status_of(host.talk(ctx, s.socket, *calls("1"))[-1]), "ok")
            with ctx.client(path=s.socket, uid=MALLORY) as c:
                equal(c.run("1").status, "ok")
            over = host.talk(ctx, s.socket, *calls("1"))[-1]["result"]["content"][0]["text"]
            assert "executions_per_minute" in over, over
            command(ctx, "suspend", "uid:%d" % MALLORY, "--admin-socket", d + "/admin")
            gone = host.talk(ctx, s.socket, *calls("1"))[-1]["result"]["content"][0]["text"]
            assert "suspended" in gone, gone
        with open(d + "/audit", encoding="utf-8") as f:
            tenants = {r["tenant"] for r in map(json.loads, f) if r["event"] == "execution-started"}
        equal(tenants, {"uid:%d" % MALLORY}, "tenants of the audit log")


@test(private=True, root=True)
def it_is_its_owner_over_http(ctx):
    with tempfile.TemporaryDirectory() as d:
        os.chmod(d, 0o777)
        with served(ctx, STUDENTS, args=("--http-socket", d + "/http")) as (host, _):
            os.chmod(d + "/http", 0o666)
            answer, = host.talk(ctx, d + "/http", over_http("1"), kind="http")
            equal(status_of(answer), "denied")


@test(private=True, root=True)
def it_does_no_work_of_operators(ctx):
    """An operator's container is no operator; and nobody approves what they asked for as somebody else."""
    with tempfile.TemporaryDirectory() as d:
        os.chmod(d, 0o777)
        config = STUDENTS + "[admin]\nsocket = %s/admin\noperators = uid:%d\n" % (d, MALLORY)
        with served(ctx, config) as (host, s):
            os.chmod(d + "/admin", 0o666)
            answer, = host.talk(ctx, d + "/admin", {"do": "status"}, kind="admin")
            assert not answer["ok"] and "subordinate uid of uid %d" % MALLORY in answer["error"], answer
            s.wait_logged("operator-refused uid=%d" % FIRST)


# ---- uids of nobody, and of several ----

@test(private=True, root=True)
def who_is_nobody_is_refused(ctx):
    """Unless the configuration says otherwise; root and the service's own users are who they are."""
    with served(ctx) as (_, s):
        for uid, why in ((NOBODYS, "has no account on the host"), (ROOTS, "has no account on the host"),
                         (SHARED, "may be that of several users"),
                         (TAKEN, "may be that of several users")):
            said = refusal(ctx, s, uid)
            assert why in said, (uid, said)
            s.wait_logged("session-refused tenant=%d" % uid)
        equal([status(ctx, s, uid) for uid in (None, SOMEBODY, CAROL, MALLORY)],
              ["ok", "ok", "ok", "denied"])
    with served(ctx, STUDENTS.replace("refuse", "allow")) as (_, s):
        equal([status(ctx, s, uid) for uid in (NOBODYS, ROOTS, FIRST)], ["ok", "ok", "denied"])
        assert "several users" in refusal(ctx, s, SHARED)


@test(private=True, root=True)
def a_host_without_ranges_works(ctx):
    """As in a small container: there is no /etc/subuid."""
    with Host() as host:
        shutil.copytree("/etc", host.path + "/etc", symlinks=True)
        for name in "passwd", "group":
            shutil.copy(os.path.join(host.path, name), host.path + "/etc")
        for name in "subuid", "subgid":
            with contextlib.suppress(FileNotFoundError):
                os.unlink("%s/etc/%s" % (host.path, name))
        wrap = ("unshare", "--mount", "sh", "-c", "mount --bind \"$0\" /etc && exec \"$@\"",
                host.path + "/etc")
        with ctx.private(STUDENTS, wrap=wrap) as s:
            equal(status(ctx, s, CAROL), "ok")
            assert "has no account" in refusal(ctx, s, NOBODYS)
        with ctx.private(STUDENTS.replace("refuse", "allow"), wrap=wrap) as s:
            equal(status(ctx, s, NOBODYS), "ok")


if __name__ == "__main__":
    main(__doc__, modules=FEW_MODULES)
