#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Streamable HTTP as HTTP: framing, bounds, garbage; and how it starts and ends."""

import contextlib
import os
import re
import socket
import statistics
import subprocess
import tempfile
import time

from harness import FEW_MODULES, equal, main, test
from http_client import Checker, Closed, Connection, Session, call, encode, modern, \
    modern_headers
from mcpclient import MODERN
from http_suite import AMBIGUOUS, CONFIG, FIT, TALK, framed, healthy, http_private, named, open_to, place, place_of, post, \
    seconds, wait_busy, wait_ready
from supervisor import Supervisor
from waits import at_once, until


# ---- HTTP itself ----

@test(private=True)
def garbage(ctx):
    """Each is refused, or the connection closed; nothing of it is taken for a second request."""
    body = encode(modern("tools/list"))
    head = "".join("%s: %s\r\n" % h for h in modern_headers(modern("tools/list"))).encode()
    start = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n" + head
    smuggled = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
    chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    length = b"Content-Length: %d\r\n" % len(body)
    rows = {
        "no HTTP": b"hello\r\n\r\n",
        "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100) + b"\r\n\r\n",
        "NUL": bytes(64) + b"\r\n\r\n",
        "version": b"POST /mcp HTTP/9.9\r\nHost: localhost\r\n\r\n",
        "version 2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "version 1.2": start.replace(b"HTTP/1.1", b"HTTP/1.2") + length + b"\r\n" + body,
        "no version": b"GET /mcp\r\n\r\n",
        "header without colon": b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nnonsense\r\n\r\n",
        "no Host": b"POST /mcp HTTP/1.1\r\n" + head + length + b"\r\n" + body,
        "two Hosts": start + b"Host: localhost\r\n" + length + b"\r\n" + body,
        "both lengths": start + length + b"Transfer-Encoding: chunked\r\n\r\n" + chunked + smuggled,
        "lengths differ": start + length + b"Content-Length: 1\r\n\r\n" + body + smuggled,
        "length and blank": start + b"Content-Length : 5\r\n\r\n" + smuggled,
        "negative length": start + b"Content-Length: -1\r\n\r\n" + smuggled,
        "length with a sign": start + b"Content-Length: +%d\r\n\r\n" % len(body) + body + smuggled,
        "hexadecimal length": start + b"Content-Length: 0x10\r\n\r\n" + smuggled,
        "gzip": start + b"Transfer-Encoding: gzip, chunked\r\n\r\n" + smuggled,
        "bad chunk": start + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n" + smuggled,
        "negative chunk": start + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n" + smuggled,
        "a long line": b"POST /" + b"x" * 100000 + b" HTTP/1.1\r\n\r\n",
        "a long header": b"POST /mcp HTTP/1.1\r\nX: " + b"x" * 100000 + b"\r\n\r\n",
        "many headers": b"POST /mcp HTTP/1.1\r\n" + b"X: y\r\n" * 20000 + b"\r\n",
        "CONNECT": b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "expectation": start + length + b"Expect: miracles\r\n\r\n" + body,
    }
    # What is no request to evhttp ends by its time.
    with http_private(ctx, "request_seconds = 3\n") as (_, where):
        for name, data in rows.items():
            with Connection(where, seconds(ctx, 60)) as connection:
                with contextlib.suppress(Closed):
                    connection.send_raw(data)
                try:
                    response = connection.read()
                except Closed:
                    continue
                assert 400 <= response.status <= 501, "%s: %r" % (name, response)
                if name not in ("no Host", "CONNECT"):
                    assert connection.at_end(), "%s: more than one answer: %r" % (name, connection.inbuf)
        healthy(where)


@test(private=True)
def what_could_be_read_in_two_ways(ctx):
    """Each is answered 400 at once, on unix sockets and TCP, whole or byte by byte, and the connection ends."""
    body = encode(modern("tools/list"))
    head = [("Host", "localhost"), *modern_headers(modern("tools/list"))]
    for unix in True, False:
        with http_private(ctx, unix=unix) as (_, where):
            for name, make in AMBIGUOUS.items():
                data = make("/mcp", head, body)
                for size in (len(data), 1) if unix else (len(data),):
                    with Connection(where, seconds(ctx, 60)) as connection:
                        with contextlib.suppress(Closed):
                            for at in range(0, len(data), size):
                                connection.send_raw(data[at:at + size])
                        try:
                            equal(connection.read().status, 400, name)
                        except Closed as e:
                            raise AssertionError("%s: %s" % (name, e)) from e
                        assert connection.at_end(), "%s: more than one answer: %r" % (name, connection.inbuf)
            with Connection(where, seconds(ctx, 60)) as connection:
                for data in FIT:
                    connection.send_raw(data("/mcp", head, body))
                equal([connection.read().status for _ in FIT], [200] * len(FIT))


@test(private=True)
def bodies_are_bounded(ctx):
    with http_private(ctx, "body_max_bytes = 65536\n") as (_, where):
        def big(n):
            message = modern("tools/call", call("#" + "x" * n))
            return message, encode(message)
        message, body = big(60000)
        with Connection(where, seconds(ctx, 60)) as connection:
            connection.send(headers=modern_headers(message), body=body)
            equal(connection.read().status, 200, "within the bound")
        message, body = big(70000)
        for headers in ([], [("Transfer-Encoding", "chunked")], [("Expect", "100-continue")]):
            with Connection(where, seconds(ctx, 60)) as connection:
                data = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if "Tr" in str(headers) else body
                with contextlib.suppress(Closed):
                    connection.send(headers=modern_headers(message) + headers, body=data)
                equal(connection.read().status, 413, "%s" % headers)
                assert connection.at_end()
        healthy(where)


@test
def bodies_in_chunks(ctx):
    message = modern("tools/call", call("print('chunked')"))
    body = encode(message)
    for size in (1, 7, 100000):
        with open_to(ctx) as connection:
            data = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in
                            (body[i:i + size] for i in range(0, len(body), size)))
            connection.send(headers=modern_headers(message) + [("Transfer-Encoding", "chunked")],
                            body=data + b"0\r\n\r\n")
            equal(connection.read().message["result"]["structuredContent"]["stdout"], "chunked\n")
            post(connection, modern("tools/list", id=2))
            equal(connection.read().message["id"], 2, "the next request")


@test
def expect_100_continue(ctx):
    message = modern("tools/list")
    body = encode(message)
    with open_to(ctx) as connection:
        connection.send(headers=modern_headers(message) + [
            ("Expect", "100-continue"), ("Content-Length", str(len(body)))])
        equal(connection.read_head().status, 100)
        connection.send_raw(body)
        equal(connection.read().status, 200)


@test
def http_1_0(ctx):
    message = modern("tools/call", call(TALK, token=1, stream=True))
    body = encode(message)
    head = "".join("%s: %s\r\n" % h for h in modern_headers(message)).encode()
    for extra, kept in ((b"", False), (b"Connection: keep-alive\r\n", True)):
        with open_to(ctx) as connection:
            connection.send_raw(b"POST /mcp HTTP/1.0\r\n" + head + extra +
                                b"Content-Length: %d\r\n\r\n" % len(body) + body)
            response = connection.read()
            equal((response.status, response.header("Content-Type")), (200, "application/json"))
            equal(response.message["result"]["structuredContent"]["stdout"], "0\n1\n2\n3\n")
            if not kept:
                assert connection.at_end()


@test
def connection_close(ctx):
    with open_to(ctx) as connection:
        post(connection, modern("tools/list"), {"Connection": "close"})
        equal(connection.read().header("Connection"), "close")
        assert connection.at_end()
        with Connection(place(ctx), seconds(ctx, 60)) as connection:
            post(connection, modern("tools/call", call(TALK, token=1, stream=True)),
                 {"Connection": "close"})
            assert connection.read().streams and connection.at_end()


@test
def one_byte_at_a_time(ctx):
    message = modern("tools/call", call("print('slow')"))
    with open_to(ctx) as connection:
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        text = "POST /mcp HTTP/1.1\r\nHost: localhost\r\n%sContent-Length: %d\r\n\r\n" % (
            "".join("%s: %s\r\n" % h for h in modern_headers(message)), len(encode(message)))
        for byte in text.encode() + encode(message):
            connection.send_raw(bytes([byte]))
        equal(connection.read().message["result"]["structuredContent"]["stdout"], "slow\n")


# ---- start and end ----

@test(private=True)
def the_end_answers_what_runs(ctx):
    with http_private(ctx) as (service, where):
        idle = Connection(where, seconds(ctx, 60))
        runs = [Connection(where, seconds(ctx, 60)) for _ in range(2)]
        for i, connection in enumerate(runs):
            post(connection, modern("tools/call", call(named(300), token=1, stream=i == 1,
                                                       timeout_seconds=400)),
                 {} if i else {"Accept": "application/json"})
        wait_busy(service, 2)
        service.process.terminate()
        for connection in runs:
            response = connection.read()
            equal(response.status, 200)
            equal(response.message["result"]["structuredContent"]["status"], "cancelled")
            assert connection.at_end(), "still open"
        assert idle.at_end(), "still open"
        try:
            Connection(where, 5)
            raise AssertionError("still served")
        except OSError:
            pass
        equal(service.process.wait(seconds(ctx, 20)), 0)


@test(private=True)
def a_subscription_ends_with_the_service(ctx):
    with http_private(ctx) as (service, where), Connection(where, seconds(ctx, 60)) as connection:
        listen = modern("subscriptions/listen", {"notifications": {}}, id="L1")
        post(connection, listen)
        response = connection.read_head()
        assert response.streams, response
        events = connection.events()
        first = next(events)
        equal(first["method"], "notifications/subscriptions/acknowledged")
        healthy(where)
        service.process.terminate()
        last = list(events)[-1]
        equal((last["id"], last["result"]["resultType"]), ("L1", "complete"))
        checker = Checker(MODERN)
        checker.check("SubscriptionsAcknowledgedNotification", first)
        checker.check("SubscriptionsListenResultResponse", last)
        assert connection.at_end()
        equal(service.process.wait(seconds(ctx, 20)), 0)


@test
def a_long_answer_is_not_held_back(ctx):
    """More than is written at once: the rest of it waits for no acknowledgement, which a kernel
    puts off for 40 ms. Other things may take that long too, but not for all of half a minute."""
    with Session(place(ctx), MODERN, timeout=seconds(ctx, 60)) as client:
        def median():
            took = []
            for _ in range(20):
                started = time.monotonic()
                response = client.post(client.message("tools/list"))
                took.append(time.monotonic() - started)
                assert len(response.body) > 16384, len(response.body)
            return statistics.median(took)
        until("answers within 35 ms", lambda: median() <= 0.035, wait=at_once)


@test(private=True)
def a_stream_that_has_nothing_to_say_says_so(ctx):
    with http_private(ctx, "keepalive_seconds = 1\n") as (_, where), \
            Connection(where, seconds(ctx, 60)) as connection:
        post(connection, modern("subscriptions/listen", {"notifications": {}}))
        assert connection.read_head().streams
        chunks = connection.chunks()
        assert b"acknowledged" in next(chunks)
        for _ in range(2):
            assert next(chunks).startswith(b":"), "no comment"


def refused_start(ctx, *args, config="", status=1):
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "c")
        with open(path, "w", encoding="utf-8") as f:
            f.write(config)
        done = subprocess.run([os.path.join(ctx.options.build, "mcp-pythond"), "--config", path,
                               "--socket", os.path.join(directory, "s"), *args],
                              capture_output=True, text=True, timeout=60, check=False)
    equal(done.returncode, status, done.stderr)
    return done.stderr


@test(private=True)
def addresses_beyond_this_machine_are_refused(ctx):
    for address in ("0.0.0.0:0", "[::]:0"):
        assert "insecure" in refused_start(ctx, "--http", address), address
        assert "insecure" in refused_start(ctx, config="[http]\nlisten = %s\n" % address)
    assert "numeric" in refused_start(ctx, "--http", "localhost:80")
    assert "numeric" in refused_start(ctx, "--http", "127.0.0.1")
    refused_start(ctx, "--stdio", "--http", "127.0.0.1:0", status=2)
    refused_start(ctx, config="[http]\nlisten = localhost:80\n", status=78)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert "in use" in refused_start(ctx, "--http", "127.0.0.1:%d" % taken.getsockname()[1])
    with ctx.private("[http]\ninsecure = yes\nallowed_hosts = mcp.example\n"
                     "allowed_origins = https://app.example\n", ("--http", "0.0.0.0:0")) as service:
        wait_ready(service)
        assert "http-insecure" in service.log()
        port = int(re.search(r"listening http=0\.0\.0\.0:(\d+)", service.log())[1])
        with Connection(("127.0.0.1", port), seconds(ctx, 60)) as connection:
            for headers, status in (({"Host": "mcp.example:1"}, 200), ({"Host": "other.example"}, 403),
                                    ({"Origin": "https://app.example"}, 200),
                                    ({"Origin": "http://app.example"}, 403)):
                post(connection, modern("tools/list"), headers)
                equal(connection.read().status, status, "%s" % headers)


def refused_handed(ctx, handed):
    """The same of a service that is handed this listening socket for HTTP."""
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as config:
        done = subprocess.run(
            ["/bin/bash", "-c", "exec 3<&%d; export LISTEN_PID=$$; " % handed.fileno() + 'exec "$0" "$@"',
             os.path.join(ctx.options.build, "mcp-pythond"), "--config", config.name],
            env={**os.environ, "LISTEN_FDS": "1", "LISTEN_FDNAMES": "http"}, pass_fds=[handed.fileno()],
            capture_output=True, text=True, timeout=60, check=False)
    equal(done.returncode, 1, done.stderr)
    return done.stderr


@test(private=True)
def root_serves_no_tcp_without_tokens(ctx):
    """Every user of the machine could connect. The service of another user, and unix sockets, are
    served as before."""
    here = "[http]\nlisten = 127.0.0.1:0\n"
    with http_private(ctx, unix=True) as (_, where):
        healthy(where, seconds(ctx, 60))
    if os.getuid() != 0:
        with ctx.private(here) as service:
            healthy(place_of(service), seconds(ctx, 60))
        return
    header = "[auth]\ntrusted_header = X-User\ntrusted_proxy_user = root\n"
    with socket.create_server(("127.0.0.1", 0)) as tcp:
        for said in (refused_start(ctx, config=here), refused_start(ctx, "--http", "127.0.0.1:0"),
                     refused_start(ctx, config=here + header), refused_handed(ctx, tcp)):
            last = said.strip().split("\n")[-1]
            assert re.fullmatch(r"mcp-pythond: .*every user of this machine can connect to \S+:\d+, .*"
                                r"tokens in \[auth\].* insecure = yes in \[http\]", last), said


@test(private=True)
def sockets_of_systemd(ctx):
    """By name: http is served as HTTP, whatever its kind; anything else as byte streams."""
    with tempfile.TemporaryDirectory() as directory, socket.socket(socket.AF_UNIX) as stream, \
            socket.socket(socket.AF_UNIX) as unix, socket.create_server(("127.0.0.1", 0)) as tcp:
        if os.getuid() == 0:
            os.chmod(directory, 0o711)
        stream.bind(os.path.join(directory, "mcp.sock"))
        unix.bind(os.path.join(directory, "http.sock"))
        for s in (stream, unix):
            s.listen()
        service = Supervisor(ctx.options.build, "[http]\ninsecure = yes\n")
        numbers = [s.fileno() for s in (stream, unix, tcp)]
        at = service.argv.index("--socket")
        del service.argv[at:at + 2]
        service.socket = stream.getsockname()
        moves = " ".join("%d<&%d" % (103 + i, n) for i, n in enumerate(numbers))
        service.argv = ["/bin/bash", "-c", "exec %s; exec 3<&103 4<&104 5<&105; export LISTEN_PID=$$; "
                        'exec "$0" "$@"' % moves] + service.argv
        service.env.update(LISTEN_FDS="3", LISTEN_FDNAMES="mcp:http:http")
        service.pass_fds = numbers
        with service:
            for where in (unix.getsockname(), tcp.getsockname()):
                healthy(where, seconds(ctx, 60))
            with ctx.client(path=service.socket) as client:
                equal(client.run("print(1)").stdout, "1\n")
            equal(service.stop(), 0)

if __name__ == "__main__":
    main(__doc__, CONFIG, modules=FEW_MODULES)
