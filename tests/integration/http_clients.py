#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Streamable HTTP: clients that go away, that do not read, that are slow, or too many."""

import contextlib
import select
import socket
import time

from harness import FEW_MODULES, equal, main, test
from http_client import Closed, Connection, Session, call, encode, modern, modern_headers
from http_suite import CONFIG, busy_count, expect, healthy, http_private, named, open_to, \
    place, post, seconds, wait_busy
from mcpclient import MODERN
from waits import Timeout, until, until_equal


# ---- clients that go away ----

GOES = {"close": lambda c: c.close(), "reset": lambda c: c.reset(),
        "shutdown": lambda c: c.sock.shutdown(socket.SHUT_WR),
        "pipelined bytes and close": lambda c: (c.send_raw(b"POST /mcp HT"), c.close())}


@test(single=True)
def a_modern_client_that_goes_away_cancels(ctx):
    where = place(ctx)
    for token in (None, 1):
        for how, go in GOES.items():
            connection = open_to(ctx)
            post(connection, modern("tools/call", call(named(300), token=token, stream=True,
                                                       timeout_seconds=400)))
            if token:
                assert connection.read_head().streams
                next(connection.events())
            wait_busy(ctx.service, 1)
            go(connection)
            wait_busy(ctx.service, 0)
            connection.close()


@test(private=True)
def a_modern_client_that_goes_away_from_a_unix_socket_cancels(ctx):
    with http_private(ctx, unix=True) as (service, path):
        connection = Connection(path, seconds(ctx, 60))
        post(connection, modern("tools/call", call(named(300), timeout_seconds=400)))
        wait_busy(service, 1)
        connection.close()
        wait_busy(service, 0)
        # half of it closed is not gone
        with Connection(path, seconds(ctx, 60)) as connection:
            post(connection, modern("tools/call", call("import time\ntime.sleep(.5)\nprint(1)")))
            connection.sock.shutdown(socket.SHUT_WR)
            with contextlib.suppress(Closed):
                equal(connection.read().message["result"]["structuredContent"]["stdout"], "1\n")


@test(single=True)
def a_client_that_waits_is_not_taken_for_gone(ctx):
    """Bytes that come while a call runs are neither read nor the end of the process."""
    with open_to(ctx) as connection:
        post(connection, modern("tools/call", call("import time\ntime.sleep(1)\nprint('a')")))
        post(connection, modern("tools/call", call("print('b')"), id=2))
        post(connection, modern("tools/list", id=3))
        equal(connection.read().message["result"]["structuredContent"]["stdout"], "a\n")
        equal(connection.read().message["result"]["structuredContent"]["stdout"], "b\n")
        equal(connection.read().message["id"], 3)


@test(single=True)
def bytes_without_end_during_a_stream(ctx):
    """What is sent while events stream is not taken in without a bound."""
    before = ctx.service.rss_bytes()
    with open_to(ctx) as connection:
        post(connection, modern("tools/call", call(named(300), token=1, stream=True,
                                                   timeout_seconds=400)))
        assert connection.read_head().streams
        sent, block = 0, bytes(1 << 18)
        connection.timeout = 2
        with contextlib.suppress(Timeout, Closed):
            while sent < 400 << 20:
                connection.send_raw(block)
                sent += len(block)
        assert sent < 400 << 20, "all was taken"
        grown = ctx.service.rss_bytes() - before
        assert grown < 150 << 20, "%d MiB more" % (grown >> 20)
        healthy(place(ctx))
    wait_busy(ctx.service, 0)


@test(single=True)
def a_legacy_client_that_goes_away_does_not_cancel(ctx):
    where = place(ctx)
    with Session(where, timeout=seconds(ctx, 60)) as client:
        for how in ("close", "reset"):
            connection = client.fresh()
            message = client.message("tools/call", call(named(300), timeout_seconds=400))
            client.send(connection, message)
            wait_busy(ctx.service, 1)
            GOES[how](connection)
            healthy(where)
            with Session(where, timeout=seconds(ctx, 60)) as other:
                equal(other.notify("notifications/cancelled", {"requestId": message["id"]}).status, 202)
            equal(busy_count(ctx.service), 1, "goes on, and another session cannot stop it")
            equal(client.notify("notifications/cancelled", {"requestId": message["id"]}).status, 202)
            wait_busy(ctx.service, 0)


@test(single=True)
def a_cancelled_request_ends(ctx):
    where = place(ctx)
    for token in (None, 7):
        with Session(where, timeout=seconds(ctx, 60)) as client, client.fresh() as connection:
            message = client.message("tools/call", call(named(300), token=token, stream=True,
                                                        timeout_seconds=400))
            client.send(connection, message)
            wait_busy(ctx.service, 1)
            head = connection.read_head() if token is not None else None
            client.notify("notifications/cancelled", {"requestId": message["id"]})
            if head is None:
                response = connection.read()
                equal((response.status, response.body), (202, b""))
            else:
                events = list(connection.events())
                assert head.streams and all("method" in event for event in events), events
            wait_busy(ctx.service, 0)
            client.send(connection, client.message("ping"))
            equal(connection.read().status, 200, "the connection afterwards")


@test(single=True)
def delete_ends_what_runs(ctx):
    where = place(ctx)
    with Session(where, timeout=seconds(ctx, 60)) as client, client.fresh() as connection:
        client.send(connection, client.message("tools/call", call(named(300), timeout_seconds=400)))
        wait_busy(ctx.service, 1)
        equal(client.end().status, 204)
        expect(connection.read(), 404)
        wait_busy(ctx.service, 0)


# ---- clients that do not behave ----

@test(single=True)
def a_client_that_reads_nothing(ctx):
    """Its progress is left out, its call continues to its end, and no other client notices."""
    where = place(ctx)
    before = ctx.service.rss_bytes()
    script = "for i in range(2000):\n  print('x' * 10000, flush=True)"
    with open_to(ctx, 120) as connection:
        connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        post(connection, modern("tools/call", call(script, token=1, stream=True)))
        response = connection.read_head()
        for _ in range(20):
            healthy(where)
        grown = ctx.service.rss_bytes() - before
        assert grown < 64 << 20, "%d MiB more" % (grown >> 20)
        # As fast as it goes now: the small buffer has made the window small, too.
        connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_WINDOW_CLAMP, 1 << 20)
        events = list(connection.events())
        assert response.streams and events[-1]["id"] == 1, events[-1]
        return "%d events" % len(events)


@test(single=True)
def many_answers_that_nobody_reads(ctx):
    where = place(ctx)
    connections = [open_to(ctx) for _ in range(20)]
    for connection in connections:
        connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        for i in range(20):
            post(connection, modern("tools/call", call("print('x' * 900000)"), id=i))
    for _ in range(10):
        healthy(where)
    for connection in connections:
        connection.reset()
    healthy(where)


@test(private=True)
def a_byte_a_second_is_too_slow(ctx):
    message = modern("tools/list")
    body = encode(message)
    head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n%s\r\n" % (
        len(body), "".join("%s: %s\r\n" % h for h in modern_headers(message)))
    whole = head.encode() + body
    with http_private(ctx, "request_seconds = 2\nidle_seconds = 600\n") as (_, where):
        for skip in (0, 60, len(head) - 3, len(head) + 20):
            with Connection(where, seconds(ctx, 30)) as connection:
                started = time.monotonic()
                connection.send_raw(whole[:skip])
                for i in range(skip, len(whole)):
                    connection.send_raw(whole[i:i + 1])
                    if select.select([connection.sock], [], [], 0.2)[0]:
                        break
                    assert time.monotonic() - started < seconds(ctx, 20), "still taken"
                if i == 0:
                    continue
                equal(connection.read().status, 408)
                assert connection.at_end(), "still open"
                assert time.monotonic() - started >= 1, "too early"
        healthy(where)


@test(private=True)
def an_idle_connection_is_closed(ctx):
    with http_private(ctx, "idle_seconds = 4\nrequest_seconds = 600\n") as (_, where):
        with Connection(where, seconds(ctx, 30)) as fresh, Connection(where, seconds(ctx, 30)) as used:
            post(used, modern("tools/list"))
            equal(used.read().status, 200)
            assert fresh.at_end() and used.at_end()
        with Connection(where, seconds(ctx, 30)) as connection:
            post(connection, modern("tools/call", call("import time\ntime.sleep(6)")))
            equal(connection.read().status, 200, "a call longer than that")


@test(private=True)
def connections_are_bounded(ctx):
    with http_private(ctx, "connections_max = 4\nconnections_per_peer = 4\n") as (service, where):
        kept = [Connection(where, seconds(ctx, 30)) for _ in range(4)]
        for connection in kept:
            post(connection, modern("tools/list"))
            equal(connection.read().status, 200)
        with Connection(where, seconds(ctx, 30)) as one_more:
            response = one_more.read()
            equal(response.status, 503)
            assert response.header("Retry-After") and one_more.at_end()
        post(kept[0], modern("tools/list"))
        equal(kept[0].read().status, 200)
        kept.pop().close()

        def status():
            with Connection(where, seconds(ctx, 30)) as again:
                with contextlib.suppress(Closed):
                    post(again, modern("tools/list"))
                return again.read().status
        until_equal("the status", status, 200)
        for connection in kept:
            connection.close()


@test(single=True)
def connections_that_are_opened_and_dropped(ctx):
    where = place(ctx)
    healthy(where)
    before = ctx.service.fds()
    count = ctx.count(2000)
    halves = (b"", b"P", b"POST /mcp HTTP/1.1\r\nHost: x\r\n",
              b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n{")
    with Session(where, MODERN, timeout=seconds(ctx, 60)) as steady:
        for start in range(0, count, 100):
            dropped = []
            for i in range(start, start + 100):
                connection = open_to(ctx)
                with contextlib.suppress(Closed):
                    connection.send_raw(halves[i % 4])
                dropped.append(connection)
            for i, connection in enumerate(dropped):
                connection.reset() if i % 2 else connection.close()
            assert steady.ask("tools/list")["tools"]
        until(lambda: "%d descriptors, %d before" % (ctx.service.fds(), before),
              lambda: before is None or ctx.service.fds() <= before + 8)
        assert steady.ask("tools/list")["tools"]
    return "%d connections" % count

if __name__ == "__main__":
    main(__doc__, CONFIG, modules=FEW_MODULES)
