#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Finite tables of the service: one or several tenants take all that they can get of a table, and
another one works."""

import contextlib
import os
import tempfile

from admin import Admin
from harness import FEW_MODULES, SOMEBODY, equal, main, test, tests
from http_client import (Closed, Connection, ProtocolViolation, Session, encode, modern,
                         modern_headers)
from http_suite import http_private
from mcpclient import LEGACY, Client
from repl import Session as Repl
from waits import until

tests.clear()	# those of repl.py
FIRST, SECOND = 1, 2		# accounts everywhere
TABLE = 32
CONNECTIONS = "[service]\nsessions_max = %d\nsessions_per_tenant = %d\n" % (TABLE, TABLE)
HOLD = "import threading; threading.Event().wait()"


def works(c):
    equal(c.run("print(6 * 7)").stdout, "42\n")


def take_all(ctx, stack, s, uid, use=lambda c: None):
    """The connections of the user that were admitted, of as many as the table has."""
    taken = []
    for _ in range(TABLE):
        c = stack.enter_context(Client.connect(s.socket, None, uid, ctx.seconds(60)))
        c.send({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": LEGACY[-1], "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}})
        if "result" in c.recv():
            use(c)
            taken.append(c)
    return taken


@test(private=True, root=True)
def idle_connections_keep_nobody_out(ctx):
    with ctx.private(CONNECTIONS) as s, contextlib.ExitStack() as stack:
        equal(len(take_all(ctx, stack, s, FIRST)), TABLE // 2)
        equal([len(take_all(ctx, stack, s, uid)) for uid in range(SECOND, SECOND + 4)], [8, 4, 2, 1])
        with ctx.client(path=s.socket, uid=6) as c:
            works(c)
            assert "makes-room" not in s.log()
            # The table is full. Who has the most gives a place.
            with ctx.client(path=s.socket, uid=SOMEBODY) as other:
                works(other)
                s.wait_logged("session-closed tenant=uid:%d carrier=stream why=makes-room" % FIRST)
                works(c)


@test(private=True, root=True)
def busy_connections_keep_nobody_out(ctx):
    """Of those with a call under way none is closed for others."""
    def call(c):
        c.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        c.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": "run_script", "arguments": {"script": HOLD, "timeout_seconds": 300}}})
        c.flush()
    with ctx.private(CONNECTIONS + "[pool]\ntenant_running_max = 2\n") as s, contextlib.ExitStack() as stack:
        first = take_all(ctx, stack, s, FIRST, call)
        second = take_all(ctx, stack, s, SECOND, call)
        equal((len(first), len(second)), (TABLE // 2, TABLE // 4))
        with ctx.client(path=s.socket, uid=SOMEBODY) as c:
            works(c)
        assert "makes-room" not in s.log()


# ---- HTTP ----

PLACES = "connections_max = %d\nconnections_per_peer = %d\n" % (TABLE, TABLE)


def ask(connection):
    """The status of an answer; None: the connection was closed without one."""
    message = modern("server/discover")
    try:
        return connection.ask(headers=modern_headers(message), body=encode(message)).status
    except Closed:
        return None


def ask_all(stack, path, uid):
    """How many connections, of as many as the table has, have got an answer and stay open."""
    statuses = [ask(stack.enter_context(Connection(path, uid=uid))) for _ in range(TABLE)]
    assert set(statuses) <= {200, 503}, statuses
    return statuses.count(200)


@test(private=True, root=True)
def idle_http_connections_keep_nobody_out(ctx):
    with http_private(ctx, PLACES, unix=True) as (s, path), contextlib.ExitStack() as stack:
        equal([ask_all(stack, path, uid) for uid in (FIRST, SECOND)], [TABLE // 2, TABLE // 4])
        with Session(path, uid=SOMEBODY) as c:
            equal(c.ask("ping"), {})
        s.wait_logged("tenant=uid:%d why=has-its-share" % FIRST)


@test(private=True, root=True)
def http_connections_of_nobody_keep_nobody_out(ctx):
    """They say nothing, and begin requests without an end; the oldest of them make room."""
    with http_private(ctx, PLACES, unix=True) as (s, path), contextlib.ExitStack() as stack:
        with Connection(path, uid=SOMEBODY) as before:
            equal(ask(before), 200)
            for uid in (FIRST, SECOND, 3):
                for n in range(TABLE):
                    c = stack.enter_context(Connection(path, uid=uid))
                    if n % 2:
                        with contextlib.suppress(Closed):
                            c.send_raw(b"POST /mcp HTTP/1.1\r\nHost: x\r\n")
            with Session(path, uid=SOMEBODY) as c:
                equal(c.ask("ping"), {})
            equal(ask(before), 200)
        s.wait_logged("why=says-not-who")


@test(private=True, root=True)
def probes_keep_nobody_out(ctx):
    """Whoever has asked for /healthz has still not said who they are."""
    with http_private(ctx, PLACES, unix=True) as (s, path), contextlib.ExitStack() as stack:
        for uid in (FIRST, SECOND, 3):
            for _ in range(TABLE):
                equal(stack.enter_context(Connection(path, uid=uid)).ask("GET", "/healthz").status, 200)
        s.wait_logged("why=says-not-who connections=%d" % (TABLE // 4 + 1))
        with Session(path, uid=SOMEBODY) as c:
            equal(c.ask("ping"), {})


@test(private=True, root=True)
def http_sessions_keep_nobody_out(ctx):
    with http_private(ctx, "sessions_max = %d\nsessions_per_tenant = %d\n" % (TABLE, TABLE), unix=True) as (s, path), \
         contextlib.ExitStack() as stack:
        def take(uid):
            for n in range(TABLE):
                try:
                    stack.enter_context(Session(path, uid=uid))
                except (AssertionError, ProtocolViolation):
                    return n
            return TABLE
        equal([take(uid) for uid in (FIRST, SECOND)], [TABLE // 2, TABLE // 4])
        with Session(path, uid=SOMEBODY) as c:
            equal(c.ask("ping"), {})


# ---- workers ----

@test(private=True, root=True)
def sleeping_scripts_keep_nobody_out(ctx):
    """Each of three tenants asks for all workers, and one by one gets fewer."""
    def begin(c):
        c.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        for n in range(TABLE):
            c.send({"jsonrpc": "2.0", "id": n + 1, "method": "tools/call", "params": {
                "name": "run_script", "arguments": {"script": HOLD, "timeout_seconds": 300}}})
    config = "[pool]\nwarm = 0\nwarm_max = 0\nworkers_max = %d\ntenant_running_max = %d\n" % (TABLE, TABLE)
    with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as stack:
        os.chmod(directory, 0o755)
        s = stack.enter_context(ctx.private(config + "[admin]\nsocket = %s/admin\n" % directory))
        admin = stack.enter_context(Admin(directory + "/admin"))

        def running(uid):
            tenants = {one["tenant"]: one for one in admin.ask("status")["tenants"]}
            return tenants["uid:%d" % uid]["running"]
        # Three quarters as they come, then as much as is left for others.
        for uid, most in ((FIRST, 24), (SECOND, 4), (3, 2)):
            c = stack.enter_context(Client.connect(s.socket, None, uid, ctx.seconds(60)))
            c.send({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
                "protocolVersion": LEGACY[-1], "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}})
            c.recv()
            begin(c)
            c.flush()
            until("it has its share", lambda: running(uid) >= most, ctx.seconds(60))
        with ctx.client(path=s.socket, uid=SOMEBODY) as c:
            works(c)
            works(c)
            equal([running(uid) for uid in (FIRST, SECOND, 3)], [24, 4, 2])


def refused(c):
    """Is a further session refused?"""
    id = c.request("tools/call", {"name": "run_repl", "arguments": {"code": "1"}})
    return c.outcome(id).status != "ok"


@test(private=True, root=True)
def sessions_keep_nobody_out(ctx):
    config = "[pool]\nwarm = 0\nwarm_max = 0\nworkers_max = %d\ntenant_running_max = 4\n[repl]\nmemory_total_mb = 65536\nsessions_max = %d\n" % (TABLE, TABLE)
    with ctx.private(config) as s, contextlib.ExitStack() as stack:
        def take(uid):
            c = stack.enter_context(ctx.client(path=s.socket, uid=uid))
            for n in range(TABLE):
                if refused(c):
                    return n
            return TABLE
        # Three quarters of the workers; of these three quarters as they come.
        equal([take(uid) for uid in (FIRST, SECOND)], [18, 3])
        equal(take(SOMEBODY) > 0, True)


@test(private=True, root=True)
def the_longest_idle_session_makes_room(ctx):
    """When all are in use, of the tenant with the most, and who had it is told."""
    config = ("[pool]\nwarm = 0\nwarm_max = 0\nworkers_max = 16\ntenant_running_max = 4\n"
              "[repl]\nmemory_total_mb = 65536\nsessions_max = 16\n")
    with ctx.private(config) as s, contextlib.ExitStack() as stack:
        def one(uid):
            return stack.enter_context(ctx.client(path=s.socket, uid=uid))
        c = one(FIRST)
        mine = [Repl(c) for _ in range(9)]
        for n, session in enumerate(mine):
            session.well("x = %d" % n)
        mine[0].well("x")		# the second one is idle for longest now
        others = [Repl(one(uid)) for uid in (SECOND, 3, 4)]
        for session in others:
            session.well("x = 1")
        Repl(one(SOMEBODY)).well("x = 1")
        s.wait_logged("repl-ended tenant=uid:%d why=makes-room" % FIRST)
        o = mine[1].call("x")
        equal(o.status, "no_session")
        assert "another user needed one" in o.text, o.text
        for n in (0, *range(2, 9)):
            equal(mine[n].value("x"), str(n))
        for session in others:
            equal(session.value("x"), "1")


# ---- operators ----

@test(private=True, root=True)
def strangers_keep_no_operator_out(ctx):
    with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as stack:
        os.chmod(directory, 0o777)
        config = "[service]\nunknown_uids = allow\n[admin]\nsocket = %s/admin\n" % directory
        with ctx.private(config):
            answered = 0
            for uid in range(2000, 2000 + 2 * TABLE):
                one = stack.enter_context(Admin(directory + "/admin", ctx.seconds(60), uid))
                with contextlib.suppress(ValueError, OSError):
                    answered += "error" not in one.ask("status")
            assert 0 < answered <= 32, answered
            with Admin(directory + "/admin") as admin:
                rows = admin.ask("status")["finite"]
                equal({"what", "bounds", "shares", "when_full"}, set(rows[0]))
                equal(len(rows) > 30, True)


if __name__ == "__main__":
    main(__doc__, modules=FEW_MODULES)
