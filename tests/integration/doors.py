#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The gateway: clients that do not speak MCP, each in its own dialect."""

import asyncio
import base64
import concurrent.futures
import contextlib
import functools
import http.client
import itertools
import json
import os
import re
import select
import signal
import socket
import struct
import tempfile
import threading
import time
import zlib

import aiohttp
try:
    import brotli
except ImportError:
    brotli = None

from doors_suite import TOKEN, Kernel, gateway_on, kernel_of, shared_ends, shared_gateway, team_gateway, \
    with_kernel
from harness import equal, main, test
from http_client import Connection
from http_suite import AMBIGUOUS, FIT, busy_count, http_private, named, wait_busy
from waits import until


# ---- SandboxFusion ----

def stripped(answer):
    """What a trainer reads."""
    run = answer["run_result"] or {}
    return answer["status"], run.get("status"), run.get("return_code"), run.get("stdout")


# What the library of the gateway takes, as the standard lets it or tells it to: extensions of chunks, trailers
# (nobody reads them), LF as the end of a line in a head, blanks for the fold of a header.
TAKEN = {"the chunk size 'N '", "the chunk size 'N;ext'", "the chunk size 'N;a=b'",
         "the chunk size '000000000000000N'", "an end with LF", "a trailer", "a folded header",
         "a header folded with a tab", "a folded length", "chunks after a tab", "chunks after many blanks",
         "LF in a head", "one LF in a head"}


@test(private=True)
def what_could_be_read_in_two_ways(ctx):
    """Each is refused, and the connection ends; or it is one request, and the next one is answered."""
    body = json.dumps({"code": "print(1)"}).encode()
    with shared_gateway(ctx) as (_, gateway):
        host, port = gateway.url.removeprefix("http://").split(":")
        head = [("Host", "%s:%s" % (host, port)), ("Authorization", "Bearer " + TOKEN),
                ("Content-Type", "application/json")]
        for name, make in AMBIGUOUS.items():
            with Connection((host, int(port)), 120) as c:
                c.send_raw(make("/run_code", head, body))
                # Here the standard lets the line be passed over, so the request names no host.
                status = 403 if "first header" in name else 200 if name in TAKEN else 400
                equal(c.read().status, status, name)
                if status == 400:
                    assert c.at_end(), "%s: more than one answer" % name
                    continue
                c.send_raw(FIT[0]("/run_code", head, body))
                answer = c.read()
                equal((answer.status, json.loads(answer.body)["run_result"]["stdout"]), (200, "1\n"), name)


# code and more fields -> what the trainer reads
RUNS = [
    ({"code": "print(1 + 1)"}, ("Success", "Finished", 0, "2\n")),
    ({"code": "6 * 7"}, ("Success", "Finished", 0, "")),	# not the value of the last line
    ({"code": "print(input())", "stdin": "\u00e9\nrest"}, ("Success", "Finished", 0, "\u00e9\n")),
    ({"code": "import sys; sys.stdout.write(sys.stdin.read())", "stdin": "a\n\n"},
     ("Success", "Finished", 0, "a\n\n")),
    ({"code": "print(input())", "stdin": None}, ("Failed", "Finished", 1, "")),
    ({"code": "1 / 0"}, ("Failed", "Finished", 1, "")),
    ({"code": "def f(:"}, ("Failed", "Finished", 1, "")),
    ({"code": "import sys; sys.exit(3)"}, ("Failed", "Finished", 3, "")),
    ({"code": "print(1, flush=True)\nwhile True: pass", "run_timeout": 1},
     ("Failed", "TimeLimitExceeded", None, "1\n")),
    ({"code": "import os; os.kill(os.getpid(), 9)"}, ("Failed", "Finished", -9, "")),
    ({"code": "x = 'x' * 10**9", "memory_limit_MB": 64}, ("Failed", "Finished", 1, "")),
    ({"code": "echo a; exit 4", "language": "bash"}, ("Failed", "Finished", 4, "a\n")),
    ({"code": "import os\nprint(open('d/in').read(), os.getcwd())", "files": {
        "d/in": base64.b64encode(b"hi").decode(), "none": None}},
     ("Success", "Finished", 0, "hi /workspace\n")),
    ({"code": "pass", "files": {"../x": "aGk="}}, ("SandboxError", None, None, None)),
    ({"code": "pass", "files": {"x": "%%%"}}, ("SandboxError", None, None, None)),
]


@test(private=True)
def programs_get_the_words_that_trainers_read(ctx):
    with shared_gateway(ctx) as (_, gateway):
        for request, want in RUNS:
            answer = gateway.run_code(**request)
            equal(stripped(answer), want, "%r" % request)
            assert answer["compile_result"] is None
            if answer["run_result"]:
                assert isinstance(answer["run_result"]["stderr"], str)
        answer = gateway.run_code("open('o', 'w').write('q'); 1/0", fetch_files=["o", "none"])
        equal(answer["files"], {"o": "cQ=="})
        equal(gateway.ask("GET", "/v1/ping"), (200, "pong"))

        answer = gateway.run_code("print('x' * 30_000_000)")
        equal((answer["status"], answer["run_result"]["return_code"]), ("Failed", 1))
        assert "longer than is kept" in answer["run_result"]["stderr"]
        for body, status, word in (
                ({}, 400, "code"), ({"code": 5}, 400, "code"), ({"code": "1", "stdin": 1}, 400, "stdin"),
                ({"code": "1", "language": "cpp"}, 422, "language"),
                ({"code": "1", "run_timeout": -1}, 422, "run_timeout"),
                ({"code": "1", "run_timeout": "1"}, 400, "run_timeout"),
                ({"code": "1", "memory_limit_MB": True}, 400, "memory_limit_MB"),
                ({"code": "1", "files": []}, 400, "files"),
                ({"code": "1", "files": {"x": 1}}, 422, "files"),
                ([], 400, "object"), (b"{", 400, "JSON"), (b"\xff\xfe", 400, "JSON")):
            got, answer = gateway.ask("POST", "/run_code", body)
            equal(got, status, "%r: %r" % (body, answer))
            assert word in answer["message"], answer


@test(private=True)
def clients_get_no_more_than_the_service_allows(ctx):
    """Dialects ask for minutes, whether their clients have or not; that must not keep them out."""
    async def cell(_, kernel, session):
        equal((await kernel.run("print(1)")).stdout, "1\n")
        equal((await kernel.run("while True: pass")).reply["ename"], "timeout")
    settings = "[limits]\ntimeout_seconds = 2\ncpu_seconds = 2\ntimeout_max = 3\ncpu_max = 3\nmemory_max_mb = 512\n"
    with shared_gateway(ctx, settings=settings) as (_, gateway):
        with_kernel(gateway, cell)
        equal(stripped(gateway.run_code("print(1)", run_timeout=300, memory_limit_MB=4096)),
              ("Success", "Finished", 0, "1\n"))
        equal(gateway.run_code("while True: pass", run_timeout=300)["run_result"]["status"], "TimeLimitExceeded")
        for path in ("/exec", "/exec/programmatic"):
            status, answer = gateway.ask("POST", "/v1" + path, {"code": "print(1)", "tools": [{"name": "t"}]})
            equal((status, answer.get("stdout")), (200, "1\n"), path)


@test(private=True)
def many_at_once_are_served(ctx):
    with shared_gateway(ctx) as (_, gateway), \
            concurrent.futures.ThreadPoolExecutor(64) as pool:
        requests = [{"code": "print(%d)" % i} for i in range(60)] + [{"code": 1}, 5]
        status, answer = gateway.ask("POST", "/run_code/batch", {"requests": requests})
        equal(status, 200)
        results = answer["results"]
        equal([r["run_result"]["stdout"] for r in results[:60]], ["%d\n" % i for i in range(60)])
        equal([r["status"] for r in results[60:]], ["SandboxError"] * 2)
        got = list(pool.map(lambda i: gateway.run_code("print(%d)" % i), range(256)))
        equal([g["run_result"]["stdout"] for g in got], ["%d\n" % i for i in range(256)])


@test(private=True)
def a_client_that_goes_away_stops_its_script(ctx):
    with shared_gateway(ctx) as (service, gateway):
        async def run():
            async with aiohttp.ClientSession() as session:
                task = asyncio.create_task(session.post(
                    gateway.url + "/run_code", headers={"Authorization": "Bearer " + TOKEN},
                    json={"code": named(300), "run_timeout": 400}))
                await asyncio.to_thread(wait_busy, service, 1)
                task.cancel()
        asyncio.run(run())
        wait_busy(service, 0)


# ---- who ----

@test(private=True)
def requests_without_the_token_are_refused(ctx):
    with shared_gateway(ctx) as (_, gateway):
        for verb, path in (("POST", "/run_code"), ("GET", "/api/kernels"), ("POST", "/api/kernels"),
                           ("GET", "/api/kernelspecs"), ("GET", "/api/status"),
                           ("POST", "/run_code/batch"), ("DELETE", "/api/kernels/x")):
            for token in (None, "wrong", TOKEN + "x"):
                status, answer = gateway.ask(verb, path, {"code": "1"}, token)
                equal(status, 401, "%s %s with %r: %r" % (verb, path, token, answer))
        for path in ("/healthz", "/readyz", "/metrics", "/api", "/v1/ping"):
            equal(gateway.ask("GET", path, token=None)[0], 200, path)
        for how in (("X-API-Key", TOKEN), ("Authorization", "token " + TOKEN)):
            equal(gateway.ask("GET", "/api/kernels", token=None, headers=[how])[0], 200)
        equal(gateway.ask("GET", "/api/kernels?token=" + TOKEN, token=None)[0], 200)


@test(private=True)
def bodies_are_unpacked_with_a_bound(ctx):
    """Packed bodies are for a client with a token, and no larger than others."""
    def packed(size, wbits=31):
        packer = zlib.compressobj(wbits=wbits)
        return packer.compress(b'{"code": "print(1)"' + b" " * size + b"}") + packer.flush()

    def most():
        with open("/proc/%d/status" % gateway.process.pid, encoding="ascii") as status:
            return int(status.read().split("VmHWM:")[1].split()[0]) << 10
    gzip = [("Content-Encoding", "gzip")]
    with shared_gateway(ctx) as (_, gateway):
        for data, headers in ((packed(1000), gzip), (packed(1000, 15), [("Content-Encoding", "deflate")])):
            status, answer = gateway.ask("POST", "/run_code", data, headers=headers)
            equal((status, answer["run_result"]["stdout"]), (200, "1\n"))
        before = most()
        for data, token, status in (
                (packed(300 << 20), "wrong", 401), (packed(300 << 20), TOKEN, 413), (packed(10)[:-9], TOKEN, 400)):
            equal(gateway.ask("POST", "/run_code", data, token, gzip)[0], status)
        # 300 MiB by brotli are 500 bytes, and nobody unpacks them where it is not installed.
        bomb = brotli.compress(bytes(300 << 20)) if brotli else b"x"
        for token, status in (("wrong", 401), (TOKEN, 415)):
            equal(gateway.ask("POST", "/run_code", bomb, token, [("Content-Encoding", "br")])[0], status)
        form = [("Content-Type", "multipart/form-data; boundary=b"), *gzip]
        equal(gateway.ask("POST", "/v1/upload", packed(10), headers=form)[0], 415)
        assert most() < before + (200 << 20), (before, most())


@test(private=True)
def connections_without_a_request_end(ctx):
    """So do bodies that come too slowly. Those with a request that takes long do not, nor does a body that
    takes long because it is large."""
    with shared_gateway(ctx) as (service, gateway):
        place = gateway.url.partition("://")[2].partition(":")
        def opened(text):
            sock = socket.create_connection((place[0], int(place[2])), timeout=240)
            sock.sendall(text)
            return sock
        silent = [opened(text) for text in (b"", b"GET / HT", b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ")]
        body = json.dumps({"code": "import time; time.sleep(42); print(1)", "run_timeout": 200}).encode()
        slow = opened(b"POST /run_code HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %b\r\n"
                      b"Content-Length: %d\r\n\r\n%b" % (TOKEN.encode(), len(body), body))
        head = "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\nContent-Type: %s\r\n" \
               "Content-Length: %d\r\n\r\n"
        drops = [opened((head % (path, TOKEN, kind, 8 << 20)).encode() + begun) for path, kind, begun in (
            ("/run_code", "application/json", b""), ("/v1/exec", "application/json", b'{"code": "'),
            ("/v1/upload", "multipart/form-data; boundary=b", form_of(A_FILE)[:-9]))]
        filling = b'{"code": "print(2)"' + b" " * (2 << 20) + b"}"
        large = opened((head % ("/run_code", TOKEN, "application/json", len(filling))).encode())
        answers, at = [b""] * len(drops), 0
        began = time.monotonic()
        while time.monotonic() - began < 240 and not all(b"too slowly" in a for a in answers):
            if at < 2 << 20:
                at += large.send(filling[at:at + (32 << 10)])
            ready = select.select([s for s, answer in zip(drops, answers) if b"too slowly" not in answer], [], [], 1)[0]
            for i, sock in enumerate(drops):
                if sock in ready:
                    answers[i] += sock.recv(1 << 16)	# its head may come by itself
                elif not answers[i]:
                    sock.sendall(b" ")
        assert all(a.startswith(b"HTTP/1.1 408 ") and b"too slowly" in a for a in answers), answers
        assert time.monotonic() - began > 30
        large.sendall(filling[at:])
        assert large.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
        for sock in silent:
            try:
                equal(sock.recv(100), b"")
            except ConnectionError:
                pass
            sock.close()
        text = b""
        while b'"Success"' not in text:	# the head comes by itself
            piece = slow.recv(1 << 16)
            assert piece, text
            text += piece
        slow.close()


# Ways to write a path that lead to another one in some programs.
CROOKED = [
    "/api/../metrics", "/api/%2e%2e/metrics", "/api/..%2fmetrics", "/api/kernels/..", "/api/kernels/%2e%2e",
    "/api/kernels/..%2f..%2fmetrics", "/api/kernels/..%5c..%5cmetrics", "/api/kernels/%252e%252e%252fmetrics",
    "/api/kernels/..;/metrics", "/api/kernels/x%2fchannels", "/api/kernels/%00", "/api/kernels/%ff", "/api/kernels/%",
    "/metrics%00", "/metrics/", "/metrics/.", "//metrics", "/%2fmetrics", "/./metrics", "/metrics%2f", "/metrics;a",
    "/v1/download/../../metrics", "/v1/download/..%2f..%2fetc/passwd", "/v1/files/../../metrics",
    "/sandboxes/..%2fx", "/sandboxes/%2e%2e/metrics", "/v2/../metrics", "/run_code/../metrics", "/..", "/%2e%2e/%2e%2e"]


@test(private=True)
def a_path_is_taken_as_it_is_written(ctx):
    with shared_gateway(ctx) as (_, gateway):
        for path in CROOKED:
            connection = http.client.HTTPConnection(gateway.url.partition("://")[2], timeout=120)
            try:
                connection.request("GET", path, headers={"Authorization": "Bearer " + TOKEN})
                answer = connection.getresponse()
                assert answer.status in (400, 404), (path, answer.status, answer.read())
            finally:
                connection.close()


def form_of(*parts):
    """A form of parts: their headers, and their bytes."""
    return b"".join(b"--b\r\n%b\r\n\r\n%b\r\n" % part for part in parts) + b"--b--\r\n"


def named_file(name):
    return b'Content-Disposition: form-data; name="file"; filename' + name


FIELD = b'Content-Disposition: form-data; name="kind"', b"x"
A_FILE = named_file(b'="n"'), b"x"
# Forms -> the status of the answer.
FORMS = [
    ([FIELD] * 10_000 + [A_FILE], 400), ([FIELD] * 900 + [A_FILE], 200), ([A_FILE] * 10_000, 400), ([FIELD], 400),
    ([(FIELD[0], bytes(2 << 20)), A_FILE], 413), ([(FIELD[0], bytes(1000 << 10)), A_FILE], 200),
    ([(b"Content-Type: multipart/mixed; boundary=c", b"--c\r\n\r\nx\r\n--c--"), A_FILE], 400),
    ([(b'Content-Disposition: form-data; name="_charset_"', b"x" * 32), A_FILE], 400),
    ([(b"X: " + b"y" * 9000, b"x"), A_FILE], 400), ([(b"X: y\r\n" * 200 + b"X: y", b"x"), A_FILE], 400),
    ([(named_file(b'="a\\"b\'c"'), b"x")], 200), ([(named_file(b'="a\0b"'), b"x")], 400),
    ([(named_file(b"*=utf-8''a%00b"), b"x")], 400), ([(named_file(b"*=utf-8''%ff"), b"x")], 400),
    ([(named_file(b"*=nope''%61"), b"x")], 400), ([(named_file(b"="), b"x")], 400), ([(named_file(b'="../x"'), b"x")], 400),
    ([(named_file(b'="a\r\n b"'), b"x")], 400), ([(named_file(b'="' + b"n" * 300 + b'"'), b"x")], 400),
]


@test(private=True)
def forms_have_bounds(ctx):
    kind = [("Content-Type", "multipart/form-data; boundary=b")]
    with shared_gateway(ctx) as (_, gateway):
        for parts, status in FORMS:
            got, answer = gateway.ask("POST", "/v1/upload", form_of(*parts), headers=kind)
            equal(got, status, "%d of %.200r: %r" % (len(parts), parts[0], answer))
            if len(parts) == 1 and status == 200:
                equal(answer["files"][0]["filename"], "a\"b'c")
        # Nothing that a client has written is in the log as a line of its own.
        assert all(line.startswith("request ") for line in gateway.said().splitlines()), gateway.said()[-2000:]


@test(private=True)
def no_token_is_in_the_log(ctx):
    """In whatever way it comes, and whether it is right or not."""
    with team_gateway(ctx) as (_, gateway, tokens):
        place = gateway.url.partition("://")[2].partition(":")
        secrets = [tokens["ada"], tokens["bob"][:-1] + "0", "no-token-at-all"]
        before = len(gateway.said())
        for token in secrets:
            for headers in ([("Authorization", "Bearer " + token)], [("Authorization", "token " + token)],
                            [("X-API-Key", token)], [("Cookie", "token=%s; _xsrf=%s" % (token, token))],
                            [("X-Access-Token", token)], [("Authorization", "Basic " + token)],
                            [("Authorization", "Bearer %s\xff" % token)],
                            [("Sec-WebSocket-Protocol", token), ("Upgrade", "websocket"), ("X-API-Key", token)]):
                for verb, path in (("POST", "/run_code"), ("GET", "/api/kernels/x/channels"), ("GET", "/none"),
                                   ("POST", "/execute"), ("POST", "/v1/upload"), ("PUT", "/api/kernels")):
                    gateway.ask(verb, path, None if verb == "GET" else {"code": 1, "token": token}, None, headers)
            for query in ("token=" + token, "a=b&token=%s&token=%s" % (token, token), "signature=v1_" + token, "token=%ff" + token):
                for path in ("/api/kernels?", "/api/kernels/x/channels?", "/files?path=x&", "/none?"):
                    gateway.ask("GET", path + query, None, None)
            for broken in ("GET / HTTP/1.1\r\nAuthorization: Bearer %s\0\r\n\r\n", "GET /?token=%s\r\n\r\n", "%s\r\n\r\n",
                           "GET /api?token=%s HTTP/1.1\r\nHost: a b\r\nHost: c\r\n\r\n",
                           "POST /run_code HTTP/1.1\r\nX-API-Key: %s\r\nContent-Length: x\r\n\r\n"):
                with socket.create_connection((place[0], int(place[2])), timeout=120) as sock:
                    sock.sendall((broken % token).encode())
                    assert sock.recv(100).startswith(b"HTTP/"), broken
        said = gateway.said()[before:]
        assert said.count("\nrequest ") > 100, said[-2000:]
        equal([s for s in secrets if s in said], [])


@test(private=True)
def pages_of_other_sites_are_refused(ctx):
    with http_private(ctx, unix=True) as (_, path), gateway_on(path, "--open") as gateway:
        equal(gateway.ask("POST", "/run_code", {"code": "print(1)"}, None)[0], 200)
        for headers in ([("Origin", "https://evil.example")], [("Origin", "null")],
                        [("Host", "rebound.example")]):
            status, answer = gateway.ask("POST", "/run_code", {"code": "print(1)"}, None, headers)
            equal(status, 403, "%r: %r" % (headers, answer))


@test(private=True)
def tokens_of_the_service_are_tenants(ctx):
    with team_gateway(ctx) as (_, gateway, tokens):
        equal(gateway.run_code("print(1)", tokens["ada"])["status"], "Success")
        for token in (None, "wrong", tokens["ada"][:-1] + "0"):
            equal(gateway.ask("POST", "/run_code", {"code": "1"}, token)[0], 401, "%r" % token)
        status, mine = gateway.ask("POST", "/api/kernels", {}, tokens["ada"])
        equal(status, 201, "%r" % mine)
        equal([k["id"] for k in gateway.ask("GET", "/api/kernels", token=tokens["ada"])[1]],
              [mine["id"]])
        equal(gateway.ask("GET", "/api/kernels", token=tokens["bob"])[1], [])
        never = "00000000-0000-4000-8000-000000000000"
        for verb, suffix in (("GET", ""), ("DELETE", ""), ("POST", "/interrupt"),
                             ("POST", "/restart"), ("GET", "/channels")):
            answers = [gateway.ask(verb, "/api/kernels/%s%s" % (k, suffix), token=tokens["bob"])
                       for k in (mine["id"], never)]
            equal(answers[0][0], 404, verb + suffix)
            equal(json.dumps(answers[0]).replace(mine["id"], never), json.dumps(answers[1]))


@test(private=True)
def without_tokens_of_the_service_a_token_counts_for_nothing(ctx):
    """The kernel tells the service whose process the gateway is: nobody may come in as that."""
    with http_private(ctx, unix=True) as (_, path), \
            gateway_on(path, "--tenants", token=None) as gateway:
        status, answer = gateway.ask("POST", "/run_code", {"code": "1"}, "anything")
        equal(status, 503, "%r" % (answer,))
        assert "token_file" in answer["message"], answer


class ClosingService:
    """A service each of whose connections answers so many requests, and is closed when the next one comes."""

    def __init__(self, answered):
        self.answered, self.closed = answered, 0
        self.directory = tempfile.TemporaryDirectory()
        self.place = os.path.join(self.directory.name, "http.sock")
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.place)
        self.listener.listen()

    def __enter__(self):
        threading.Thread(target=self.serve, daemon=True).start()
        return self

    def __exit__(self, *exc):
        self.listener.close()
        self.directory.cleanup()

    def serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.answer, args=[connection], daemon=True).start()

    def answer(self, connection):
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {
            "content": [], "structuredContent": {"tenant": "one"}}}).encode()
        with connection, connection.makefile("rb") as stream:
            for n in itertools.count():
                head = b"".join(iter(stream.readline, b"\r\n"))
                if not head:
                    return
                stream.read(int(re.search(rb"(?i)content-length: (\d+)", head)[1]))
                if n == self.answered:
                    self.closed += 1
                    return
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                                   b"Content-Length: %d\r\n\r\n%b" % (len(body), body))


@test(private=True)
def a_connection_that_the_service_closes_is_no_failure(ctx):
    """It may close one that waited just when the next request comes. Only what can be said twice is."""
    with ClosingService(1) as service, gateway_on(service.place, "--tenants", token=None) as gateway:
        for n in range(4):
            status, answer = gateway.ask("GET", "/api/status", token="token-%d" % n)
            equal(status, 200, "%r" % (answer,))
        assert service.closed == 3, service.closed
        equal(gateway.ask("POST", "/run_code", {"code": "1"}, "token-3")[0], 502)
        equal(service.closed, 4)
    with ClosingService(0) as service, gateway_on(service.place, "--tenants", token=None) as gateway:
        status, answer = gateway.ask("GET", "/api/status", token="token")
        equal((status, answer["message"]), (502, "the service cannot be reached: Server disconnected"))
        equal(service.closed, 2)


# ---- Jupyter ----

async def a_kernel_runs_cells(gateway, kernel_id, kernel, session):
    info = (await kernel.ask("kernel_info_request", {})).reply
    equal((info["status"], info["language_info"]["name"]), ("ok", "python"))
    got = await kernel.run("x = 20\nprint('hi')\nx + 1")
    equal((got.stdout, got.reply["execution_count"]), ("hi\n", 1))
    equal(got.of("execute_input"), [{"code": "x = 20\nprint('hi')\nx + 1", "execution_count": 1}])
    equal(got.of("execute_result")[0]["data"], {"text/plain": "21"})
    got = await kernel.run("import sys\nprint('e', file=sys.stderr)\n1 / 0")
    equal([m[0] for m in got.messages], ["execute_input", "stream", "error"])
    equal((got.reply["status"], got.reply["ename"]), ("error", "ZeroDivisionError"))
    equal(got.of("stream"), [{"name": "stderr", "text": "e\n"}])
    got = await kernel.run("display({'text/html': '<b>h</b>', 'text/plain': 'h'}, raw=True)")
    equal(got.of("display_data")[0]["data"], {"text/html": "<b>h</b>", "text/plain": "h"})
    got = await kernel.run("x * 2", silent=True)
    equal((got.messages, got.reply["execution_count"]), ([], 3))
    got = await kernel.run(" ")
    equal((got.messages, got.reply["status"]), ([], "ok"))
    got = await kernel.run("x;", user_expressions={"a": "x + 2", "b": "nix"})
    expressions = got.reply["user_expressions"]
    equal((expressions["a"]["data"]["text/plain"], expressions["b"]["ename"]),
          ("22", "NameError"))


async def a_flood_on_one_stream_hides_nothing_of_the_other(gateway, kernel_id, kernel, session):
    got = await kernel.run("import sys\nsys.stderr.write('e' * 3_000_000)\nprint('after it')")
    equal(got.stdout, "after it\n")


def handshake(gateway, kernel_id):
    """The request for a socket of a kernel."""
    return ("GET /api/kernels/%s/channels HTTP/1.1\r\nHost: %s\r\nAuthorization: token %s\r\n"
            "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n" % (
                kernel_id, gateway.url.partition("://")[2], TOKEN)).encode()


async def a_reader_that_stands_still_is_dropped(gateway, kernel_id, kernel, session):
    """Its messages take no more memory than a bound, and others read on."""
    host, _, port = gateway.url.partition("://")[2].partition(":")
    with socket.socket() as still:
        still.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        still.connect((host, int(port)))
        still.sendall(handshake(gateway, kernel_id))

        async def connections():
            async with session.get("%s/api/kernels/%s" % (gateway.url, kernel_id)) as response:
                return (await response.json())["connections"]
        while await connections() < 2:
            pass
        for _ in range(60):
            got = await kernel.run("print('x' * 500_000)")
            equal(len(got.stdout), 500_001)
            if await connections() == 1:
                return
    raise AssertionError("it is still there")


async def a_kernel_knows_its_state(gateway, kernel_id, kernel, session):
    await kernel.run("class A:\n    'About A.'\n    def method(self, n): 'M.'\na = A()")
    got = (await kernel.ask("complete_request", {"code": "a.me", "cursor_pos": 4})).reply
    equal((got["matches"], got["cursor_start"], got["cursor_end"]), (["a.method"], 0, 4))
    got = (await kernel.ask("inspect_request", {"code": "a.method(1", "cursor_pos": 10})).reply
    assert got["found"] and "Signature: a.method(n)" in got["data"]["text/plain"], got
    got = (await kernel.ask("inspect_request", {"code": "zzz", "cursor_pos": 1})).reply
    equal(got["found"], False)
    for code, want in (("for i in x:", "incomplete"), ("1 + 1", "complete"), ("1 +* 1", "invalid"),
                       ("%time x", "complete"), ("def f():\n    return 1", "incomplete")):
        equal((await kernel.ask("is_complete_request", {"code": code})).reply["status"], want, code)
    # A look changes nothing.
    equal((await kernel.run("sorted(n for n in dir() if 'look' in n)"))
          .of("execute_result")[0]["data"]["text/plain"], "[]")
    got = (await kernel.ask("history_request", {"hist_access_type": "tail", "n": 1})).reply
    equal(got["history"], [[0, 2, "sorted(n for n in dir() if 'look' in n)"]])
    equal((await kernel.ask("comm_info_request", {})).reply["comms"], {})


async def a_kernel_survives_what_its_cells_do(gateway, kernel_id, kernel, session):
    await kernel.run("x = 5")
    got = await kernel.run("x = 6\nimport os; os._exit(3)")
    equal(got.reply["status"], "error")
    equal((await kernel.run("x")).of("execute_result")[0]["data"]["text/plain"], "5")
    # An interrupt by HTTP, and one by the channel control.
    for how in ("http", "control"):
        asked = await kernel.send("execute_request", {
            "code": "import time\nprint('a', flush=True)\nx = 7\ntime.sleep(300)"})
        while (await kernel.read())["msg_type"] != "stream":
            pass
        if how == "http":
            async with session.post("%s/api/kernels/%s/interrupt" % (gateway.url, kernel_id)) as response:
                equal(response.status, 204)
        else:
            await kernel.send("interrupt_request", {}, "control")
        equal((await kernel.collect(asked)).reply["ename"], "KeyboardInterrupt")
    equal((await kernel.run("x")).of("execute_result")[0]["data"]["text/plain"], "7")
    async with session.post("%s/api/kernels/%s/restart" % (gateway.url, kernel_id)) as response:
        equal((response.status, (await response.json())["id"]), (200, kernel_id))
    got = await kernel.run("x")
    equal((got.reply["ename"], got.reply["execution_count"]), ("NameError", 1))


async def what_waits_behind_an_error_is_aborted(gateway, kernel_id, kernel, session):
    """The first cell fails when its user answers, which is after the others were sent."""
    for stops, others in ((True, ["aborted"] * 2), (False, ["ok"] * 2)):
        asked = [await kernel.send("execute_request", {
            "code": code, "allow_stdin": True, "stop_on_error": stops})
            for code in ("input(); 1/0", "print(1)", "print(2)")]
        equal((await kernel.collect(asked[0], [""])).reply["ename"], "ZeroDivisionError")
        equal([(await kernel.collect(a)).reply["status"] for a in asked[1:]], others)


@test(private=True)
def a_cell_asks_its_user(ctx):
    async def work(_, kernel, session):
        got = await kernel.run("name = input('who? ')\nname * 2", answers=["Bo"])
        equal(got.of("input_request"), [{"prompt": "who? ", "password": False}])
        equal(got.of("execute_result")[0]["data"]["text/plain"], "'BoBo'")
        equal((await kernel.run("input()")).reply["ename"], "EOFError")
    with shared_gateway(ctx, settings="[policy]\ninput = allow\n") as (_, gateway):
        with_kernel(gateway, work)


async def the_binary_form_of_messages_works(gateway, kernel_id, kernel, session):
    async with session.ws_connect("%s/api/kernels/%s/channels" % (gateway.url, kernel_id),
                                  protocols=("v1.kernel.websocket.jupyter.org",)) as ws:
        equal(ws.protocol, "v1.kernel.websocket.jupyter.org")
        parts = [b"shell"] + [json.dumps(p).encode() for p in (
            {"msg_id": "m1", "msg_type": "execute_request"}, {}, {}, {"code": "print(6*7)"})]
        offsets = [8 * (len(parts) + 2)]
        for part in parts:
            offsets.append(offsets[-1] + len(part))
        await ws.send_bytes(struct.pack("<%dQ" % (len(offsets) + 1), len(offsets), *offsets)
                            + b"".join(parts))
        text = b""
        while b'"execute_reply"' not in text:
            frame = await ws.receive(timeout=60)
            equal(frame.type, aiohttp.WSMsgType.BINARY)
            text += frame.data
        assert b'"42\\n"' in text, text
    # The first form that both know; for others, as for who names none, the text.
    for offered, chosen in (("v2.kernel", None), ("\u00e9, ,", None),
                            ("v2.kernel, v1.kernel.websocket.jupyter.org", "v1.kernel.websocket.jupyter.org")):
        async with session.ws_connect("%s/api/kernels/%s/channels" % (gateway.url, kernel_id), headers={
                "Sec-WebSocket-Protocol": offered}) as ws:
            equal(ws._response.headers.get("Sec-WebSocket-Protocol"), chosen, offered)
            if not chosen:
                equal((await Kernel(ws).ask("kernel_info_request", {})).reply["status"], "ok", offered)


async def messages_that_are_none_end_their_socket_alone(gateway, kernel_id, kernel, session):
    for bad in ("", "{", "[]", "5", "[" * 100_000, json.dumps({"channel": "x"}),
                json.dumps({"header": {"msg_id": "1", "msg_type": "input_reply"}, "content": {}, "parent_header": [1]}),
                json.dumps({"header": {}, "content": {}}),
                json.dumps({"header": {"msg_id": 1, "msg_type": 2}, "content": {}}),
                b"", b"\0" * 8, b"\xff" * 64, struct.pack("<7Q", 6, 56, 9, 3, 2, 1, 0)):
        async with session.ws_connect("%s/api/kernels/%s/channels"
                                      % (gateway.url, kernel_id)) as ws:
            await (ws.send_bytes if isinstance(bad, bytes) else ws.send_str)(bad)
            frame = await ws.receive(timeout=60)
            equal((frame.type, frame.data), (aiohttp.WSMsgType.CLOSE, 1007), "%r" % bad)
    equal((await kernel.run("print(1)")).stdout, "1\n")


class Frames:
    """A socket of a kernel whose client writes each frame itself."""

    def __init__(self, streams):
        self.reader, self.writer = streams

    def put(self, opcode, data=b"", final=True, bits=0, size=None):
        """size: what the frame says of the data, if that is something else. The mask is four zeros."""
        size = len(data) if size is None else size
        length = bytes([128 | size]) if size < 126 else b"\xff" + struct.pack(">Q", size)
        self.writer.write(bytes([final << 7 | bits | opcode]) + length + bytes(4) + data)

    async def get(self):
        """(opcode, data)"""
        opcode, size = await self.reader.readexactly(2)
        if size > 125:
            size, = struct.unpack(">H" if size == 126 else ">Q", await self.reader.readexactly(2 if size == 126 else 8))
        return opcode & 15, await self.reader.readexactly(size)

    async def until(self, opcode, text=b""):
        """The data of the first frame of this kind with this in it."""
        while True:
            got, data = await asyncio.wait_for(self.get(), 60)
            if got == opcode and text in data:
                return data


@contextlib.asynccontextmanager
async def frames_of(gateway, kernel_id):
    host, _, port = gateway.url.partition("://")[2].partition(":")
    socket_of = Frames(await asyncio.open_connection(host, int(port)))
    try:
        socket_of.writer.write(handshake(gateway, kernel_id))
        head = await socket_of.reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 101 "), head
        yield socket_of
    finally:
        socket_of.writer.close()


TEXT, CLOSE, PING, PONG = 1, 8, 9, 10
# Frames, and the code by which the gateway closes.
BROKEN = [
    (1007, [{"opcode": TEXT, "data": b"\xff{}"}]), (1007, [{"opcode": TEXT, "data": b"\xed\xa0\x80"}]),
    (1007, [{"opcode": TEXT, "data": b"\xc3", "final": False}, {"opcode": 0, "data": b"("}]),
    (1002, [{"opcode": 0, "data": b"x"}]), (1002, [{"opcode": 3, "data": b"x"}]),
    (1002, [{"opcode": TEXT, "data": b"{", "final": False}, {"opcode": TEXT, "data": b"}"}]),
    (1002, [{"opcode": TEXT, "data": b"{}", "bits": 0x20}]), (1002, [{"opcode": PING, "data": b"x" * 126}]),
    (1002, [{"opcode": PING, "final": False}]), (1002, [{"opcode": CLOSE, "data": b"\3"}]),
    (1002, [{"opcode": CLOSE, "data": b"\3\xed"}]), (1007, [{"opcode": CLOSE, "data": b"\3\xe8\xff"}]),
    (1009, [{"opcode": TEXT, "size": 1 << 62}]), (1009, [{"opcode": 2, "size": 16 << 20}]),
    (1009, [{"opcode": TEXT, "data": bytes(8 << 20), "final": False}, {"opcode": 0, "size": 8 << 20}]),
]


async def frames_are_read_as_the_standard_says(gateway, kernel_id, kernel, session):
    text = json.dumps({"channel": "shell", "parent_header": {}, "metadata": {"\u00e9": 1}, "content": {}, "header": {
        "msg_id": "m1", "msg_type": "kernel_info_request", "session": "s"}}, ensure_ascii=False).encode()
    cut = text.index("\u00e9".encode()) + 1	# in the middle of a letter
    async with frames_of(gateway, kernel_id) as frames:
        for piece in (text[:cut], b"", text[cut:cut + 9]):
            frames.put(TEXT if piece == text[:cut] else 0, piece, final=False)
            frames.put(PING, b"still there?")
            equal(await frames.until(PONG), b"still there?")
        frames.put(0, text[cut + 9:])
        await frames.until(TEXT, b'"kernel_info_reply"')
        frames.put(CLOSE, struct.pack(">H", 1000))
        equal(await frames.until(CLOSE), struct.pack(">H", 1000))
    for code, sent in BROKEN:
        async with frames_of(gateway, kernel_id) as frames:
            for one in sent[:-1]:	# each has been read before the next is sent
                frames.put(**one)
                frames.put(PING)
                await frames.until(PONG)
            frames.put(**sent[-1])
            equal(struct.unpack(">H", (await frames.until(CLOSE))[:2])[0], code, "%.200r" % (sent,))
    for half in (b"", b"\x81", b"\x81\xff\0\0", b"\x81\x85\0\0\0\0{"):
        async with frames_of(gateway, kernel_id) as frames:
            frames.writer.write(half)
    equal((await kernel.run("print(1)")).stdout, "1\n")


async def a_long_request_keeps_nobody_waiting(gateway, kernel_id, kernel, session):
    """What the gateway itself does with the code of a cell takes no time that grows with its square."""
    name = "a" * 500_000
    equal((await kernel.ask("inspect_request", {"code": name + " + ", "cursor_pos": len(name) + 3})).reply["found"], False)
    equal((await kernel.ask("is_complete_request", {"code": "(" * 100_000})).reply["status"], "unknown")
    equal((await kernel.ask("is_complete_request", {"code": "-" * 60_000 + "1"})).reply["status"], "error")
    await kernel.run("x = 1")
    got = await kernel.ask("history_request", {"hist_access_type": "search", "pattern": "*a" * 7_000_000})
    equal(got.reply["history"], [])


async def requests_that_wait_have_a_bound(gateway, kernel_id, kernel, session):
    """Their bytes have one, too, and so have those of the history."""
    first = await kernel.send("execute_request", {"code": "input()", "allow_stdin": True, "stop_on_error": True})
    while (asked := await kernel.read())["msg_type"] != "input_request":
        pass
    waiting = [await kernel.send("execute_request", {"code": "1", "more": "x" * (6 << 20)}) for _ in range(4)]
    for late in waiting[2:]:
        while (got := await kernel.read())["parent_header"].get("msg_id") != late:
            pass
        equal((got["msg_type"], got["content"].get("ename")), ("execute_reply", "QueueFull"))
    await kernel.send("input_reply", {"value": ""}, "stdin", asked["header"])
    for one in (first, *waiting[:2]):
        await kernel.collect(one)
    await kernel.run("#" + "x" * (1 << 20))
    await kernel.run("print(1)")
    got = (await kernel.ask("history_request", {"hist_access_type": "tail", "n": 9})).reply["history"]
    equal([cell[2] for cell in got], ["print(1)"])


async def a_session_lives_on_when_its_processes_end(gateway, kernel_id, kernel, session):
    await kernel.run("x = 1\nimport subprocess; p = subprocess.Popen(['sleep', '300'])")
    await kernel.run("import os; os.kill(-1, 9)")
    got = await kernel.run("x")
    if got.reply["status"] == "ok":
        equal(got.of("execute_result")[0]["data"]["text/plain"], "1")
    else:	# it is a new one, and said so
        equal((await kernel.run("2")).reply["execution_count"], 1)


KERNELS = [
    a_kernel_runs_cells, a_flood_on_one_stream_hides_nothing_of_the_other, a_kernel_knows_its_state,
    a_reader_that_stands_still_is_dropped, a_kernel_survives_what_its_cells_do,
    what_waits_behind_an_error_is_aborted, the_binary_form_of_messages_works,
    messages_that_are_none_end_their_socket_alone, frames_are_read_as_the_standard_says,
    a_long_request_keeps_nobody_waiting, requests_that_wait_have_a_bound, a_session_lives_on_when_its_processes_end,
]


@test(private=True)
def kernels_do_what_their_clients_expect(ctx):
    with shared_gateway(ctx, settings="[policy]\ninput = allow\n") as (_, gateway):
        for work in KERNELS:
            print("    " + work.__name__, flush=True)
            with_kernel(gateway, functools.partial(work, gateway))


@test(private=True)
def a_kernel_that_is_deleted_stops_its_cell(ctx):
    """Open WebUI does this after a minute, and sends no interrupt."""
    async def work(kernel_id, kernel, session):
        await kernel.send("execute_request", {"code": named(300)})
        await asyncio.to_thread(wait_busy, service, 1)
        async with session.delete("%s/api/kernels/%s" % (gateway.url, kernel_id)) as response:
            equal(response.status, 204)
        await asyncio.to_thread(wait_busy, service, 0)
    with shared_gateway(ctx) as (service, gateway):
        with_kernel(gateway, work)


@test(private=True)
def kernels_end_with_their_gateway(ctx):
    async def work():
        async with kernel_of(gateway) as (_, kernel, session):
            await kernel.send("execute_request", {"code": named(300)})
            await asyncio.to_thread(wait_busy, service, 1)
            gateway.process.send_signal(signal.SIGTERM)
            await asyncio.to_thread(gateway.process.wait, 60)
    with http_private(ctx, unix=True) as (service, path):
        with gateway_on(path) as gateway:
            asyncio.run(work())
        equal(busy_count(service), 0)


@test(private=True)
def a_gateway_without_a_service_starts_one(ctx):
    with gateway_on(None, "--private") as gateway:
        equal(gateway.run_code("print(1)")["run_result"]["stdout"], "1\n")
        child = int(open("/proc/%d/task/%d/children" % ((gateway.process.pid,) * 2)).read().split()[0])
        os.kill(child, signal.SIGKILL)
        until("the service is away",
              lambda: gateway.ask("GET", "/readyz", token=None)[0] == 503)
        equal(gateway.ask("POST", "/run_code", {"code": "1"})[0], 502)


if __name__ == "__main__":
    with shared_ends:
        main(__doc__)
