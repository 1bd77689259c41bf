#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The gateway under requests that are almost right: whatever comes, each is answered, none by a mistake of
the gateway, and others are served as before.

MCP_FUZZ_EXAMPLES: requests of each dialect (40). MCP_FUZZ_SEED: a number, to repeat a run."""

import asyncio
import http.client
import json
import os
import random
import tempfile
import time
import urllib.parse

import aiohttp

import fuse
from doors_suite import TOKEN, gateway_on, kernel_of
from harness import Skip, equal, main, test
from http_suite import http_private

STORE = tempfile.TemporaryDirectory(prefix="mcp-fuzz-")
os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = STORE.name	# else it would write here
try:
    from hypothesis import HealthCheck, Phase, given, seed, settings, strategies as st
except ImportError:
    st = None

EXAMPLES = int(os.environ.get("MCP_FUZZ_EXAMPLES") or 40)
SEED = int(os.environ.get("MCP_FUZZ_SEED") or random.SystemRandom().randrange(1 << 32))
CONFIG = "[limits]\ntimeout_seconds = 10\n[workspace]\nvolume = yes\nvolumes = 8\ndirectory = %s\n"
SECONDS = 240			# for one answer on a busy machine
NEVER = "ibbbbbbbbbbbbbbbbbbbb"

# Each dialect: (verb, path, a right body or None). {id}, {kernel}, {session}: of something that is there, or not.
DIALECTS = {
    "run_code": [
        ("POST", "/run_code", {"code": "1", "language": "python", "stdin": "a", "files": {"x": "aGk="},
                               "run_timeout": 5, "memory_limit_MB": 256, "fetch_files": ["x"]}),
        ("POST", "/run_code/batch", {"requests": [{"code": "1"}, {"code": "2", "stdin": ""}]}),
        ("GET", "/v1/ping", None)],
    "jupyter": [
        ("GET", "/api", None), ("GET", "/api/status", None), ("GET", "/api/kernelspecs", None),
        ("POST", "/api/kernels", {"name": "python3", "path": "a/b"}), ("GET", "/api/kernels", None),
        ("GET", "/api/kernels/{kernel}", None), ("POST", "/api/kernels/{kernel}/interrupt", {}),
        ("POST", "/api/kernels/{kernel}/restart", {}), ("GET", "/api/kernels/{kernel}/channels?session_id=x", None),
        ("DELETE", "/api/kernels/{other}", None)],
    "librechat": [
        ("GET", "/v1/health", None),
        ("POST", "/v1/exec", {"lang": "py", "code": "1", "args": ["a"], "user_id": "u", "session_id": "{session}",
                              "files": [{"id": "f", "session_id": "{session}", "name": "n"}],
                              "runtime_session_hint": "h"}),
        ("POST", "/v1/exec/programmatic", {"code": "1", "tools": [{"name": "t", "description": "d", "parameters": {
            "type": "object", "properties": {}}}], "session_id": "{session}", "timeout": 5000}),
        ("POST", "/v1/exec/programmatic", {"continuation_token": "{session}", "tool_results": [
            {"call_id": "c", "result": 1, "is_error": False}]}),
        ("POST", "/v1/exec/programmatic/cancel", {"continuation_token": "{session}"}),
        ("POST", "/v1/upload", None), ("POST", "/v1/upload/batch", None),
        ("GET", "/v1/download/{session}/{other}", None), ("GET", "/v1/sessions/{session}/objects/{other}", None),
        ("GET", "/v1/files/{session}?detail=full", None)],
    "e2b": [
        ("POST", "/sandboxes", {"templateID": "base", "timeout": 60, "metadata": {"a": "b"}, "envVars": {"A": "b"}}),
        ("POST", "/v2/sandboxes", {"templateID": "base", "timeout": 60, "autoPause": True, "secure": True}),
        ("GET", "/v2/sandboxes?state=running&limit=5&metadata=a%3Db", None), ("GET", "/sandboxes/{id}", None),
        ("POST", "/sandboxes/{id}/timeout", {"timeout": 60}), ("POST", "/sandboxes/{id}/connect", {"timeout": 60}),
        ("GET", "/sandboxes/{id}/metrics?start=1&end=2", None), ("DELETE", "/sandboxes/{other}", None),
        ("POST", "/execute", {"code": "1", "language": "python", "context_id": None, "env_vars": {"A": "b"}}),
        ("POST", "/contexts", {"cwd": "/home/user", "language": "python"}), ("GET", "/contexts", None),
        ("DELETE", "/contexts/{other}", None), ("POST", "/contexts/{other}/restart", {}),
        ("GET", "/files?path=x&username=user&signature=v1_a&signature_expiration=1", None),
        ("POST", "/files?path=x&username=user", None),
        ("POST", "/process.Process/List", {}),
        ("POST", "/process.Process/Start", {"process": {"cmd": "/bin/true", "args": ["a"], "envs": {"A": "b"},
                                                        "cwd": "/tmp"}, "pty": {"size": {"cols": 80, "rows": 24}},
                                            "tag": "t", "stdin": False}),
        ("POST", "/process.Process/SendInput", {"process": {"pid": 1}, "input": {"stdin": "YQ=="}}),
        ("POST", "/process.Process/SendSignal", {"process": {"tag": "t"}, "signal": "SIGNAL_SIGTERM"}),
        ("POST", "/process.Process/Connect", {"process": {"pid": 1}}),
        ("POST", "/filesystem.Filesystem/ListDir", {"path": ".", "depth": 1}),
        ("POST", "/filesystem.Filesystem/Move", {"source": "x", "destination": "y"}),
        ("POST", "/filesystem.Filesystem/Remove", {"path": "x"}),
        ("POST", "/filesystem.Filesystem/MakeDir", {"path": "d/e"}),
        ("POST", "/filesystem.Filesystem/Stat", {"path": "x"})]}
MESSAGES = {
    "execute_request": {"code": "1", "silent": False, "store_history": True, "user_expressions": {"a": "1"},
                        "allow_stdin": False, "stop_on_error": True},
    "complete_request": {"code": "pri", "cursor_pos": 3},
    "inspect_request": {"code": "print", "cursor_pos": 2, "detail_level": 0},
    "is_complete_request": {"code": "1"}, "kernel_info_request": {}, "comm_info_request": {"target_name": "t"},
    "history_request": {"hist_access_type": "tail", "n": 3, "output": False, "raw": True},
    "input_reply": {"value": "x"}, "interrupt_request": {}, "comm_open": {"comm_id": "c", "target_name": "t", "data": {}}}
ODD_HEADERS = [
    ("Content-Type", "text/plain"), ("Content-Type", "multipart/form-data; boundary=b"),
    ("Content-Type", "multipart/form-data"), ("Content-Type", "application/connect+json"),
    ("Content-Type", "application/x-www-form-urlencoded; charset=nope"), ("Content-Encoding", "gzip"),
    ("Content-Encoding", "deflate"), ("Connect-Protocol-Version", "7"), ("Connect-Timeout-Ms", "-1"),
    ("Connect-Timeout-Ms", "\u00b2"), ("Range", "bytes=5-2"), ("Accept-Encoding", "br"), ("If-None-Match", '"'),
    ("Expect", "100-continue"), ("Expect", "other"), ("Upgrade", "websocket"), ("Keepalive-Ping-Interval", "x"),
    ("Authorization", "Basic !!"), ("Authorization", "Bearer"), ("X-API-Key", ""), ("E2b-Sandbox-Id", NEVER)]


def anything():
    """Values that a field does not expect."""
    leaf = st.one_of(
        st.none(), st.booleans(), st.integers(-2 ** 70, 2 ** 70), st.floats(), st.text(max_size=40),
        st.sampled_from(["", "\0", "\ud800", "../../x", "/etc/passwd", "\u202e", "1" * 5000, "x" * 300, "NaN",
                         "1e999", "${A}", "%00", "_", "__class__", 1e308, -1, 0, 2 ** 31, 2 ** 63]))
    return st.recursive(leaf, lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=8), inner, max_size=4)), max_leaves=8)


def places(value, path=()):
    """All places in a body, as tuples of keys."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*path, key))


def changed(value, path, new):
    """The value with something else at a place; new is None: without what is there."""
    if not path:
        return new[0] if new else {}
    copy = dict(value) if isinstance(value, dict) else list(value)
    if len(path) > 1 or new:
        copy[path[0]] = changed(value[path[0]], path[1:], new)
    else:
        del copy[path[0]]
    return copy


def almost(right):
    """Bodies that differ from a right one in one or two places."""
    @st.composite
    def draw_one(draw):
        body = right
        for _ in range(draw(st.integers(0, 2))):
            where = draw(st.sampled_from(sorted(places(body), key=repr)))
            body = changed(body, where, draw(st.one_of(st.none(), st.tuples(anything()))))
        if isinstance(body, dict) and draw(st.integers(0, 4)) == 0:
            body = {**body, draw(st.text(max_size=8)): draw(anything())}
        return body
    return draw_one()


def encoded(body):
    """JSON with lone surrogates as escapes, as other languages write it."""
    return json.dumps(body).encode()


def requests_of(rows):
    @st.composite
    def draw_one(draw):
        verb, path, right = draw(st.sampled_from(rows))
        kind = draw(st.integers(0, 9))
        if right is None:
            body = draw(st.binary(max_size=200)) if verb == "POST" or kind == 0 else None
        elif kind == 0:
            body = draw(st.one_of(st.binary(max_size=60), st.sampled_from([b"", b"{", b"[" * 20000, b'{"a":1,"a":2}'])))
        elif kind == 1:		# a frame of a stream
            data = encoded(draw(almost(right)))
            body = draw(st.sampled_from([b"\0", b"\1", b"\2", b"\xff"])) + draw(st.sampled_from(
                [len(data), 0, 2 ** 32 - 1])).to_bytes(4, "big") + data
        else:
            body = encoded(draw(almost(right)))
        if draw(st.integers(0, 7)) == 0:
            path += draw(st.sampled_from(["/", "?", "?a=%", "?path=%00", "?limit=-1", "?path=" + "a" * 5000, "%2e%2e/x"]))
        if draw(st.integers(0, 7)) == 0:
            verb = draw(st.sampled_from(["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"]))
        headers = draw(st.lists(st.sampled_from(ODD_HEADERS), max_size=2)) if draw(st.integers(0, 2)) == 0 else []
        return verb, path, body, headers, draw(st.sampled_from(["real", "never", "odd"]))
    return draw_one()


class Target:
    """A gateway, something of each dialect in it, and a connection to it."""

    def __init__(self, gateway):
        self.gateway, self.connection = gateway, None
        self.kernel = gateway.ask("POST", "/api/kernels", {})[1]["id"]
        self.sandbox = gateway.ask("POST", "/v2/sandboxes", {"templateID": "base"}, None, [("X-API-Key", TOKEN)])[1]

    def fill(self, text, which):
        known = {"{id}": self.sandbox["sandboxID"], "{kernel}": self.kernel, "{session}": "x" * 21, "{other}": NEVER}
        for name, real in known.items():
            text = text.replace(name, {"real": real, "never": NEVER, "odd": urllib.parse.quote("../\0\u202e", "")}[which])
        return text

    def send(self, verb, path, body, headers, which):
        """The status of the answer, which is read whole."""
        sent = {"Authorization": "Bearer " + TOKEN, "X-API-Key": TOKEN, "E2b-Sandbox-Id": self.sandbox["sandboxID"],
                "X-Access-Token": self.sandbox["envdAccessToken"], "Content-Type": "application/json",
                **dict(headers)}
        if "{session}" in (body or b"").decode("latin-1"):
            body = self.fill(body.decode("latin-1"), which if which != "odd" else "never").encode("latin-1")
        connection = http.client.HTTPConnection(self.gateway.url.partition("://")[2], timeout=SECONDS)
        try:
            connection.request(verb, self.fill(path, which), body,
                               {k: v.encode("latin-1", "replace") for k, v in sent.items()})
            answer = connection.getresponse()
            late = time.monotonic() + SECONDS	# a stream that stays open has signs of life in it
            while answer.status != 101 and answer.read1(1 << 16):
                assert time.monotonic() < late, "the answer has no end: %s %s %r" % (verb, path, body)
            return answer.status
        finally:
            connection.close()


def fuzzed(strategy, check, examples=EXAMPLES):
    if st is None:
        raise Skip("needs python3-hypothesis", missing=True)
    # A request may take seconds, so none is sought that is shorter.
    run = settings(max_examples=examples, deadline=None, database=None, print_blob=False, phases=[Phase.generate],
                   suppress_health_check=list(HealthCheck))(seed(SEED)(given(strategy)(check)))
    try:
        run()
    except Exception as e:
        raise AssertionError("MCP_FUZZ_SEED=%d: %s" % (SEED, e)) from e


@test(private=True)
def each_request_is_answered(ctx):
    with fuse.place() as store, http_private(ctx, CONFIG % store, unix=True, wrap=fuse.wrap(store)) as (_, path), \
            gateway_on(path) as gateway:
        target = Target(gateway)
        for name, rows in DIALECTS.items():
            def check(request):
                status = target.send(*request)
                assert 100 < status < 600 and status != 500, (status, request)
            fuzzed(requests_of(rows), check)
            equal(gateway.run_code("print(2)")["run_result"]["stdout"], "2\n", name)


@test(private=True)
def each_message_is_answered_or_dropped(ctx):
    """Messages of a kernel's socket. A socket that gets what is no message may be closed; the kernel stays."""
    def frames():
        @st.composite
        def draw_one(draw):
            kind = draw(st.sampled_from(sorted(MESSAGES)))
            message = {"channel": draw(st.sampled_from(["shell", "control", "stdin", "iopub", "x"])),
                       "parent_header": {}, "metadata": {}, "content": MESSAGES[kind], "buffers": [],
                       "header": {"msg_id": "m", "msg_type": kind, "session": "s", "username": "u", "version": "5.3",
                                  "date": "2026-01-01T00:00:00Z"}}
            message = draw(almost(message))
            return draw(st.one_of(st.just(encoded(message).decode()), st.just(encoded(message)),
                                  st.binary(max_size=80), st.text(max_size=20).filter(lambda t: t.isprintable())))
        return st.lists(draw_one(), min_size=1, max_size=8)

    async def talk(session, url, said):
        """Sends all, then asks what has an answer, on this socket or, if it was closed, on a new one."""
        async with session.ws_connect(url, max_msg_size=0) as ws:
            try:
                for frame in said:
                    await (ws.send_bytes if isinstance(frame, bytes) else ws.send_str)(frame)
            except ConnectionError:
                pass
        async with session.ws_connect(url, max_msg_size=0) as ws:
            await ws.send_str(json.dumps({
                "channel": "shell", "parent_header": {}, "metadata": {}, "content": {},
                "header": {"msg_id": "last", "msg_type": "kernel_info_request", "session": "s", "username": "u",
                           "version": "5.3", "date": ""}}))
            async for frame in ws:
                got = json.loads(frame.data)
                if got["msg_type"] == "kernel_info_reply" and got["parent_header"].get("msg_id") == "last":
                    return
        raise AssertionError("the socket was closed")

    async def work(gateway):
        async with kernel_of(gateway) as (kernel, _, _):
            url = "%s/api/kernels/%s/channels" % (gateway.url, kernel)
            loop = asyncio.get_running_loop()

            async def one(said):
                async with aiohttp.ClientSession(headers={"Authorization": "token " + TOKEN}) as session:
                    await asyncio.wait_for(talk(session, url, said), SECONDS)

            def check(said):
                asyncio.run_coroutine_threadsafe(one(said), loop).result()
            await asyncio.to_thread(fuzzed, frames(), check, max(10, EXAMPLES // 3))

    with http_private(ctx, CONFIG.partition("[workspace]")[0], unix=True) as (_, path), gateway_on(path) as gateway:
        asyncio.run(work(gateway))


if __name__ == "__main__":
    main(__doc__)
