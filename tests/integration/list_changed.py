#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Changes of tools/list by a reload, and their notifications: descriptions contain limits, and
denied tools are not offered; each client by its revision's way, and only when there is a change."""

import contextlib
import os

from harness import FEW_MODULES, equal, main, test
from http_client import Checker, Session, encode, modern, modern_headers
from http_suite import CONFIG as BASE, healthy, place_of, seconds, wait_ready
from mcp_schema import MODERN
from mcpclient import LEGACY
from peer import META, Peer

CHANGED = "notifications/tools/list_changed"
OTHER = "[limits]\ntimeout_seconds = 77\n"		# is in descriptions
DENIED = "[policy]\nrun_repl = deny\n"
NOTHING = "[quota]\nexecutions_per_minute = 1000\n"	# is not


def reload(ctx, service, more):
    """Puts it in force; the service has told everybody when it is done."""
    service.reload(BASE + more)


def tools_of(peer, revision=MODERN):
    return {tool["name"]: tool for tool in peer.result("tools/list", revision=revision)["tools"]}


def heard(peer, revision=MODERN):
    """How often it was told; whatever was on its way has come before an answer does."""
    peer.result("tools/list", revision=revision)
    n = len([note for note in peer.notices if note["method"] == CHANGED])
    peer.notices.clear()
    return n


@test(private=True)
def lists_follow_the_configuration(ctx):
    with ctx.private(BASE) as service, Peer(service) as p:
        before = tools_of(p)
        assert "run_repl" in before, before
        reload(ctx, service, OTHER)
        other = tools_of(p)
        equal(sorted(other), sorted(before))
        assert other["run_script"]["inputSchema"] != before["run_script"]["inputSchema"]
        reload(ctx, service, OTHER + DENIED)
        equal(sorted(tools_of(p)), sorted(set(before) - {"run_repl"}), "what is denied is not there")
        answer = p.ask("tools/call", {"name": "run_repl", "arguments": {"code": "1"}})
        equal(answer["result"]["isError"], True, "and is refused as ever")
        reload(ctx, service, "")
        equal(tools_of(p), before)


@test(private=True)
def a_profile_that_a_reload_adds_is_told(ctx):
    with ctx.private(BASE) as service, Peer(service) as p:
        p.shake(LEGACY[-1])
        assert "profile" not in tools_of(p, LEGACY[-1])["run_script"]["inputSchema"]["properties"]
        reload(ctx, service, "[profile more]\n")
        equal(heard(p, LEGACY[-1]), 1)
        told = tools_of(p, LEGACY[-1])["run_script"]["inputSchema"]["properties"]["profile"]
        equal(told["enum"], ["basic", "more"])


@test(private=True)
def legacy_clients_are_told(ctx):
    with ctx.private(BASE) as service:
        for revision in LEGACY:
            with Peer(service) as p, Peer(service) as early:
                capabilities = p.shake(revision)["capabilities"]
                equal(capabilities["tools"], {"listChanged": True})
                early.session = revision
                early.result("initialize", {
                    "protocolVersion": revision, "capabilities": {},
                    "clientInfo": {"name": "early", "version": "1"}}, revision=revision)
                equal(heard(p, revision), 0)
                reload(ctx, service, OTHER)
                equal(heard(p, revision), 1, revision)
                reload(ctx, service, OTHER + NOTHING)
                equal(heard(p, revision), 0, "nothing that they see")
                reload(ctx, service, DENIED)
                reload(ctx, service, "")
                equal(heard(p, revision), 2)
                equal(heard(early, revision), 0, "before it was initialized")


@test(private=True)
def modern_clients_are_told_if_they_listen(ctx):
    with ctx.private(BASE) as service, Peer(service) as p, Peer(service) as other:
        equal(p.result("server/discover")["capabilities"]["tools"], {"listChanged": True})
        listening = p.send("subscriptions/listen", {"notifications": {
            "toolsListChanged": True, "promptsListChanged": True, "resourcesListChanged": True}})
        first = p.notice("notifications/subscriptions/acknowledged")
        equal(first["notifications"], {"toolsListChanged": True}, "what is offered")
        other.send("subscriptions/listen", {"notifications": {"toolsListChanged": False}})
        equal(other.notice("notifications/subscriptions/acknowledged")["notifications"], {})
        reload(ctx, service, OTHER)
        equal(p.notice(CHANGED), {"_meta": {META + "subscriptionId": listening}})
        equal((heard(p), heard(other)), (0, 0))
        reload(ctx, service, OTHER + NOTHING)
        equal((heard(p), heard(other)), (0, 0))
        p.cancel(listening)
        reload(ctx, service, "")
        equal((heard(p), heard(other)), (0, 0), "listens no more")


@test(private=True, root=True)
def only_those_it_concerns_are_told(ctx):
    mine = "[tenant uid:%d]\npolicy.run_repl = deny\n" % os.getuid()
    theirs = "[tenant uid:65534]\npolicy.run_repl = deny\n"
    with ctx.private(BASE) as service, Peer(service) as me, Peer(service, 65534) as they:
        for p in (me, they):
            p.shake(LEGACY[-1])
        reload(ctx, service, theirs)
        equal((heard(me, LEGACY[-1]), heard(they, LEGACY[-1])), (0, 1))
        assert "run_repl" in tools_of(me, LEGACY[-1])
        assert "run_repl" not in tools_of(they, LEGACY[-1])
        reload(ctx, service, mine + theirs)
        equal((heard(me, LEGACY[-1]), heard(they, LEGACY[-1])), (1, 0))


@test(private=True)
def a_reload_that_fails_tells_nobody(ctx):
    with ctx.private(BASE) as service, Peer(service) as p:
        p.shake(LEGACY[-1])
        service.reload(BASE + "[policy]\nrun_repl = perhaps\n", "reload-failed ")
        equal(heard(p, LEGACY[-1]), 0)
        assert "run_repl" in tools_of(p, LEGACY[-1])


def next_event(connection):
    if not hasattr(connection, "running"):
        head = connection.read_head()
        assert head.status == 200 and head.streams, head
        connection.running = connection.events()
    return next(connection.running)


@test(private=True)
def over_http_by_the_sessions_own_stream(ctx):
    with ctx.private(BASE) as service:
        wait_ready(service)
        for revision in LEGACY:
            with Session(place_of(service), revision, timeout=seconds(ctx, 60)) as client:
                equal(client.hello["capabilities"]["tools"], {"listChanged": True})
                get = {"Accept": "text/event-stream", "Mcp-Session-Id": client.id}
                with client.fresh() as first, client.fresh() as second:
                    first.send("GET", headers=get.items())
                    reload(ctx, service, OTHER)
                    equal(next_event(first), {"jsonrpc": "2.0", "method": CHANGED})
                    first.close()
                    equal(client.ask("ping"), {})
                    # nobody listens: it is told when somebody does
                    reload(ctx, service, "")
                    second.send("GET", headers=get.items())
                    equal(next_event(second), {"jsonrpc": "2.0", "method": CHANGED})


@test(private=True)
def over_http_by_a_subscription(ctx):
    with ctx.private(BASE) as service:
        wait_ready(service)
        message = modern("subscriptions/listen", {"notifications": {"toolsListChanged": True}},
                         id="all")
        with Session(place_of(service), MODERN, timeout=seconds(ctx, 60)) as client, \
                client.fresh() as connection:
            connection.send(headers=modern_headers(message), body=encode(message))
            event = next_event(connection)
            equal(event["method"], "notifications/subscriptions/acknowledged")
            reload(ctx, service, OTHER)
            event = next_event(connection)
            equal((event["method"], event["params"]["_meta"][META + "subscriptionId"]),
                  (CHANGED, "all"))


@test(private=True)
def all_of_many_are_told_once(ctx):
    """Idle streams of both eras harm nobody, and each hears of what concerns it."""
    with ctx.private(BASE) as service, contextlib.ExitStack() as stack:
        wait_ready(service)
        place, streams = place_of(service), []
        message = modern("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        for _ in range(60):
            client = stack.enter_context(Session(place, timeout=seconds(ctx, 60)))
            listener, listening = (stack.enter_context(client.fresh()) for _ in range(2))
            listening.checker = Checker(MODERN)
            listener.send("GET", headers=[("Accept", "text/event-stream"),
                                          ("Mcp-Session-Id", client.id)])
            listening.send(headers=modern_headers(message), body=encode(message))
            equal(next_event(listening)["method"], "notifications/subscriptions/acknowledged")
            client.connection.close()
            client.connection = None
            streams += [listener, listening]
        healthy(place, seconds(ctx, 60))
        reload(ctx, service, OTHER)
        for connection in streams:
            equal(next_event(connection)["method"], CHANGED)
        healthy(place, seconds(ctx, 60))
        equal(service.stop(), 0, "its exit status")
        for connection in streams:
            for event in connection.running:	# its end is said to those who subscribed
                equal(event.get("result", {}).get("resultType"), "complete")


if __name__ == "__main__":
    main(__doc__, modules=FEW_MODULES)
