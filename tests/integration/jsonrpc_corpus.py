#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Sends malformed and unusual messages to a live server and judges the replies.

Each line of tests/corpus/jsonrpc-*.jsonl is a case. What to send: frame (text), frame_b64,
or build (prefix + unit x count + suffix + unit2 x count2 + suffix2, %N% the running number);
%TOOL% and %ARG% are filled in; revision is the handshake's, phase "before-init" is without
one; no_newline, shut_write and chunk are as they say. What to expect: reply is error, result,
batch, toolerror (a result with isError), none, any, or alternatives joined by -or-; code, id
(null: none), id_raw (its spelling), batch (length of the array), contains (texts in the
reply), replies, replies_min, max_reply_bytes, max_s; alive: "same" connection or "reconnect".
bad_stdout: a success with just this output is a failure. After each case the next request
must work, on the same connection or on a new one.

A suite of tests/integration/run; or, for servers without workers:

  jsonrpc_corpus.py --start PROGRAM [FILE...]   starts PROGRAM with a socket path
"""
import base64
import json
import os
import re
import select
import socket
import subprocess
import sys
import tempfile
import time
from waits import until

TOOL, ARGUMENT = "run_script", "script"
DEFAULT_MAX_S = 60
RAW_ID = re.compile(r'"id"\s*:\s*("(?:[^"\\]|\\.)*"|[^\s,}]+)')


class Failure(AssertionError):
    """A case that did not go as expected."""


class Connection:
    """A byte stream that is written and read at the same time."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.connect(path)
        self.socket.setblocking(False)
        self.unsent = bytearray()
        self.received = b""
        self.ended = False      # the server's side
        self.chunk = 1 << 16

    def close(self):
        self.socket.close()

    def send(self, data, chunk=None):
        self.unsent += data
        self.chunk = chunk or 1 << 16

    def shut_write(self, deadline):
        while self.unsent and not self.ended:
            self.turn(deadline)
        try:
            self.socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def turn(self, deadline):
        """Waits for one event; False when the deadline has passed."""
        wait = deadline - time.monotonic()
        if wait <= 0:
            return False
        readable, writable, _ = select.select(
            [self.socket], [self.socket] if self.unsent else [], [], wait)
        try:
            if writable:
                sent = self.socket.send(self.unsent[:self.chunk])
                del self.unsent[:sent]
            if readable:
                data = self.socket.recv(1 << 20)
                self.received += data
                self.ended = not data
        except (BrokenPipeError, ConnectionResetError):
            # What was sent before is still there to be read.
            self.unsent.clear()
            if readable:
                self.ended = True
        return True

    def line(self, deadline):
        """The next line, or None at the end or the deadline."""
        while b"\n" not in self.received:
            if self.ended or not self.turn(deadline):
                return None
        line, self.received = self.received.split(b"\n", 1)
        return line


def parse(line):
    """A reply line as (text, value); refuses what no client could read."""
    try:
        text = line.decode("utf-8")
        return text, json.loads(text, parse_constant=lambda name: fail(f"{name} in a reply"))
    except ValueError as error:
        raise Failure(f"a reply is not JSON in UTF-8: {error}: {line[:200]!r}")


def fail(text):
    raise Failure(text)


def request(identifier, method, params=None):
    message = {"jsonrpc": "2.0", "id": identifier, "method": method}
    if params is not None:
        message["params"] = params
    return json.dumps(message).encode() + b"\n"


def handshake(connection, revision):
    deadline = time.monotonic() + DEFAULT_MAX_S
    connection.send(request("handshake", "initialize", {
        "protocolVersion": revision, "capabilities": {},
        "clientInfo": {"name": "jsonrpc_corpus", "version": "1"}}))
    line = connection.line(deadline)
    if line is None or parse(line)[1].get("result", {}).get("protocolVersion") != revision:
        fail(f"the handshake failed: {line!r}")
    connection.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')


def frame_of(case):
    if "frame_b64" in case:
        frame = base64.b64decode(case["frame_b64"])
    elif "build" in case:
        b = case["build"]
        unit = b["unit"]
        middle = (unit * b["count"] if "%N%" not in unit else
                  "".join(unit.replace("%N%", str(i)) for i in range(b["count"])))
        frame = (b["prefix"] + middle + b["suffix"] + b.get("unit2", "") * b.get("count2", 0) +
                 b.get("suffix2", "")).encode()
    else:
        frame = case["frame"].encode("utf-8", "surrogatepass")
    frame = frame.replace(b"%TOOL%", TOOL.encode()).replace(b"%ARG%", ARGUMENT.encode())
    return frame if case.get("no_newline") else frame + b"\n"


def kind_of(reply):
    if isinstance(reply, list):
        return "batch"
    if not isinstance(reply, dict) or reply.get("jsonrpc") != "2.0":
        fail(f"not a JSON-RPC message: {reply!r:.200}")
    if ("result" in reply) == ("error" in reply):
        fail(f"neither result nor error, or both: {reply!r:.200}")
    if "error" in reply:
        error = reply["error"]
        if not isinstance(error.get("code"), int) or not isinstance(error.get("message"), str):
            fail(f"a malformed error: {reply!r:.200}")
        return "error"
    result = reply["result"]
    return "toolerror" if isinstance(result, dict) and result.get("isError") is True else "result"


def check_id(text, reply, expect):
    if "id_raw" in expect:
        found = RAW_ID.search(text)
        raw = found.group(1) if found else "null"
        if raw not in expect["id_raw"]:
            fail(f"id spelled {raw}, not one of {expect['id_raw']}")
    if "id" in expect:
        found = reply.get("id")
        if found != expect["id"] or type(found) is not type(expect["id"]):
            fail(f"id {found!r} instead of {expect['id']!r}")


def check_reply(case, text, reply):
    expect = case["expect"]
    kind, wanted = kind_of(reply), expect["reply"].split("-or-")
    if kind not in wanted and wanted != ["any"]:
        fail(f"{kind} instead of {expect['reply']}: {text[:300]}")
    if kind == "batch":
        for one in reply:
            kind_of(one)
        if len(reply) != expect.get("batch", len(reply)):
            fail(f"an array of {len(reply)}")
        return
    if kind == "error" and "code" in expect and reply["error"]["code"] not in expect["code"]:
        fail(f"code {reply['error']['code']}, not one of {expect['code']}")
    check_id(text, reply, expect)
    for part in expect.get("contains", []):
        if part not in text:
            fail(f"{part!r} is not in {text[:300]}")
    if kind == "result" and "bad_stdout" in case:
        structured = reply["result"].get("structuredContent", {})
        if structured.get("stdout", "").strip() == case["bad_stdout"]:
            fail("it was run in part and called a success")


def collect(case, connection, sentinel, deadline):
    """The replies to the case, those to the sentinel set aside."""
    expect = case["expect"]
    none = expect["reply"] == "none"
    least = expect.get("replies", expect.get("replies_min", 0 if none or "none" in expect["reply"] else 1))
    replies, alive = [], sentinel is None
    while len(replies) < least or not alive or (sentinel is None and not connection.ended):
        line = connection.line(deadline)
        if line is None:
            break
        text, reply = parse(line)
        if isinstance(reply, dict) and reply.get("id") == sentinel and sentinel is not None:
            alive = True
            continue
        if len(line) > expect.get("max_reply_bytes", 16 << 20):
            fail(f"a reply of {len(line)} bytes")
        replies.append((text, reply))
        if sentinel is None and len(replies) >= max(least, 1) and not case.get("shut_write"):
            break
    return replies, alive


def run_case(path, case):
    expect = case["expect"]
    same = expect["alive"] == "same" and not case.get("shut_write") and not case.get("no_newline")
    deadline = time.monotonic() + expect.get("max_s", DEFAULT_MAX_S)
    connection = Connection(path)
    try:
        if case.get("phase") != "before-init":
            handshake(connection, case.get("revision", "2025-06-18"))
        connection.send(frame_of(case), case.get("chunk"))
        if case.get("shut_write"):
            connection.shut_write(deadline)
        if same:
            connection.send(request("sentinel", "ping"))
        replies, alive = collect(case, connection, "sentinel" if same else None, deadline)
    finally:
        connection.close()
    if same and not alive:
        fail(f"the connection does not answer any more; replies: {replies!r:.300}")
    if not replies and "none" not in expect["reply"] and expect["reply"] != "any":
        fail(f"no reply instead of {expect['reply']}")
    if "replies" in expect and len(replies) != expect["replies"]:
        fail(f"{len(replies)} replies instead of {expect['replies']}")
    if len(replies) < expect.get("replies_min", 0):
        fail(f"{len(replies)} replies")
    for text, reply in replies:
        if expect["reply"] == "none":
            fail(f"a reply: {text[:300]}")
        check_reply(case, text, reply)


def still_works(path):
    connection = Connection(path)
    try:
        handshake(connection, "2025-06-18")
        connection.send(request(1, "tools/list"))
        line = connection.line(time.monotonic() + DEFAULT_MAX_S)
        if line is None or "tools" not in parse(line)[1].get("result", {}):
            fail(f"a new connection does not work: {line!r:.300}")
    finally:
        connection.close()


def read_cases(files):
    cases = []
    for name in files:
        with open(name, encoding="utf-8") as lines:
            cases += [json.loads(line) for line in lines if line.strip()]
    return cases


def run_all(path, cases):
    failures = 0
    for case in cases:
        try:
            run_case(path, case)
            still_works(path)
        except (Failure, OSError) as error:
            failures += 1
            print(f"FAIL {case['id']} ({case['why']}): {error}")
    print(f"{len(cases) - failures} of {len(cases)} cases as expected")
    return failures


def default_files():
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "corpus")
    return [os.path.join(here, name) for name in ("jsonrpc-public.jsonl", "jsonrpc-own.jsonl")]


def wait_for_socket(path, server):
    def is_served():
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            try:
                probe.connect(path)
                return True
            except OSError:
                assert server.poll() is None, "the server did not start"
    until("the server takes clients", is_served)


def start(program, files):
    """Judges a server that takes a socket path as its only argument."""
    cases = read_cases(files or default_files())
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "mcp.sock")
        server = subprocess.Popen([program, path], stderr=subprocess.DEVNULL)
        try:
            wait_for_socket(path, server)
            failures = run_all(path, cases)
        finally:
            server.terminate()
            status = server.wait(DEFAULT_MAX_S)
    if status != 0:
        print(f"FAIL the server ended with {status}")
    return 1 if failures or status != 0 else 0


def suite():
    from harness import main, test

    def add(case):
        @test(name=case["id"])
        def one(ctx):
            run_case(ctx.socket, case)
            still_works(ctx.socket)
    for case in read_cases(default_files()):
        add(case)
    return main(__doc__)


if __name__ == "__main__":
    sys.exit(start(sys.argv[2], sys.argv[3:]) if sys.argv[1:2] == ["--start"] else suite())
