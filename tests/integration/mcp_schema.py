#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Validates what a live server sends, in every revision, against the official schemas.

Also holds the tool to its own word: structuredContent must fit its outputSchema, and
what its inputSchema forbids must be refused.

A suite of tests/integration/run; or, for servers without workers (exits with 77 without
python3-jsonschema):

  mcp_schema.py --start PROGRAM    starts PROGRAM with a socket path
"""
import base64
import json
import os
import subprocess
import sys
import tempfile
import time
from xml.etree import ElementTree

try:
    import jsonschema
except ImportError:
    jsonschema = None

from jsonrpc_corpus import Connection, wait_for_socket

SCHEMAS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "schema")
LEGACY = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
MODERN = "2026-07-28"
ENVELOPE = {"io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": {}}
SCRIPTS = ["print(1)", "", "1/0", "import sys; sys.exit(3)", "x = (", "{'a': [1.5, None, 'é']}",
           "object()", "'\\x00\\x1b\\u2028'", "status ok", "status error", "status timeout",
           "status overloaded", "status killed", "flood 3000000", "bytes 00ff1b0a",
           "json [1,2", "json 1e999", "json 123456789012345678901234567890", "json {\"a\":1,\"a\":2}",
           "import time\nfor i in range(3):\n  print(i, flush=True)\n  time.sleep(.3)"]
ARGUMENTS = [{}, {"script": 1}, {"script": "1", "x": 1}, {"script": "1", "timeout_seconds": 0},
             {"script": "1", "timeout_seconds": 1e6}, {"script": "1", "memory_mb": 1},
             {"script": "1", "memory_mb": 32.5}, {"script": "1", "memory_mb": 64.0},
             {"script": "1", "pids": 0}, {"script": "1", "pids": 100000},
             {"script": "1", "cpu_seconds": "one"}, {"script": "1", "args": [1]},
             {"script": "1", "args": ["a"] * 257}, {"script": "1", "args": ["a"]},
             {"script": "1", "stdin": 1}, {"script": "1", "stdin": "é"},
             {"script": "1", "profile": "none-such"}, {"script": "1", "timeout_seconds": 2.5}]
# Not valid by the schema, but accepted: numbers as strings, null for an absent argument.
ACCEPTED = [{"script": "1", "cpu_seconds": "1"}, {"script": "1", "stdin": None}]


NOTICES = {"notifications/progress": "ProgressNotification",
           "notifications/cancelled": "CancelledNotification",
           "notifications/tools/list_changed": "ToolListChangedNotification",
           "notifications/subscriptions/acknowledged": "SubscriptionsAcknowledgedNotification"}


class Validator:
    def __init__(self, revision):
        with open(os.path.join(SCHEMAS, revision + ".json"), encoding="utf-8") as file:
            self.schema = json.load(file)
        self.key = "$defs" if "$defs" in self.schema else "definitions"
        self.revision = revision
        self.checked = 0

    def has(self, name):
        return name in self.schema[self.key]

    def check(self, name, value):
        schema = {"$schema": self.schema["$schema"], "$ref": f"#/{self.key}/{name}",
                  self.key: self.schema[self.key]}
        kind = jsonschema.validators.validator_for(schema)
        errors = list(kind(schema).iter_errors(value))
        if errors:
            raise AssertionError(f"{self.revision} {name}: {errors[0].message}: "
                                 f"{json.dumps(value)[:600]}")
        self.checked += 1


class Client:
    def __init__(self, path, revision):
        self.connection = Connection(path)
        self.revision = revision
        self.validator = Validator(revision)
        self.modern = revision == MODERN
        self.count = 0
        self.notes = []

    def send(self, method, params=None, token=None):
        params = dict(params or {})
        if self.modern:
            params["_meta"] = dict(ENVELOPE)
        if token is not None:
            params.setdefault("_meta", {})["progressToken"] = token
        self.count += 1
        message = {"jsonrpc": "2.0", "id": self.count, "method": method, "params": params}
        self.connection.send(json.dumps(message).encode() + b"\n")

    def receive(self):
        line = self.connection.line(time.monotonic() + 60)
        if line is None:
            raise AssertionError(f"{self.revision}: no answer")
        return json.loads(line)

    def ask(self, method, params=None, kind=None, token=None):
        """The answer, validated as a message and its result as kind."""
        self.send(method, params, token)
        while "method" in (message := self.receive()):
            self.validator.check("ProgressNotification", message)
            self.notes.append(message["params"])
        if "error" in message:
            self.validator.check("JSONRPCErrorResponse" if self.validator.has("JSONRPCErrorResponse")
                                 else "JSONRPCError", message)
            return message
        self.validator.check("JSONRPCMessage", message)
        self.validator.check(kind, message["result"])
        if self.validator.has(kind + "Response"):
            self.validator.check(kind + "Response", message)
        return message


def expect(condition, text):
    if not condition:
        raise AssertionError(text)


def check_icons(client, bearer):
    """One small picture, of strokes alone, from the revision on that has the field."""
    if client.revision < "2025-11-25":
        expect("icons" not in bearer, f"icons before their time: {bearer}")
        return
    (icon,) = bearer["icons"]
    start = "data:image/svg+xml;base64,"
    expect(icon["src"].startswith(start) and len(icon["src"]) < 400, f"an icon: {icon}")
    picture = ElementTree.fromstring(base64.b64decode(icon["src"][len(start):], validate=True))
    tags = {element.tag.rpartition("}")[2] for element in picture.iter()}
    expect(tags <= {"svg", "path", "circle"}, f"an icon's elements: {tags}")


def open_session(client):
    if client.modern:
        answer = client.ask("server/discover", kind="DiscoverResult")
        expect(answer["result"]["supportedVersions"] == [MODERN], "supportedVersions")
        check_icons(client, answer["result"]["_meta"]["io.modelcontextprotocol/serverInfo"])
        return
    answer = client.ask("initialize", {"protocolVersion": client.revision, "capabilities": {},
                                       "clientInfo": {"name": "mcp_schema", "version": "1"}},
                        kind="InitializeResult")
    expect(answer["result"]["protocolVersion"] == client.revision, "another revision")
    check_icons(client, answer["result"]["serverInfo"])
    client.connection.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
    expect(client.ask("ping", kind="EmptyResult")["result"] == {}, "ping is not answered by {}")


def check_call(client, tool, arguments, is_real, token=None):
    answer = client.ask("tools/call", {"name": "run_script", "arguments": arguments},
                        kind="CallToolResult", token=token)
    result = answer["result"]
    expect(result["content"] and result["content"][0]["type"] == "text", "no text")
    if "structuredContent" not in result:
        expect("outputSchema" not in tool, "no structuredContent")
        return result
    structured = result["structuredContent"]
    jsonschema.Draft202012Validator(tool.get("outputSchema", {})).validate(structured)
    expect(result["isError"] == (structured["status"] != "ok"), f"isError: {structured}")
    expect((structured["error"] is None) == (structured["status"] == "ok"), f"error: {structured}")
    return result


def check_arguments(client, tool, is_real):
    validator = jsonschema.Draft202012Validator(tool["inputSchema"])
    for arguments in ARGUMENTS:
        result = check_call(client, tool, arguments, is_real)
        status = result.get("structuredContent", {}).get("status")
        if status is not None:
            agrees = validator.is_valid(arguments) == (status != "invalid_arguments")
            # A list that is short does not say all that is refused.
            expect(agrees or (is_real and validator.is_valid(arguments)),
                   f"schema and server disagree on {arguments!r:.200}: {status}")
        expect(validator.is_valid(arguments) or result["isError"], f"{arguments!r:.200} was run")
    for arguments in ACCEPTED:
        result = check_call(client, tool, arguments, is_real)
        expect(not result["isError"], f"{arguments!r:.200} was refused")


def check_revision(path, revision, is_real):
    client = Client(path, revision)
    open_session(client)
    tools = client.ask("tools/list", kind="ListToolsResult")["result"]["tools"]
    names = [tool["name"] for tool in tools]
    expect(names[:4] == ["run_script", "run_repl", "validate_script", "check_environment"], f"tools: {names}")
    for tool in tools:
        check_icons(client, tool)
        jsonschema.Draft202012Validator.check_schema(tool["inputSchema"])
        jsonschema.Draft202012Validator.check_schema(tool.get("outputSchema", {}))
    tool = tools[0]
    for number, script in enumerate(SCRIPTS):
        if is_real or not script.startswith("import time"):
            check_call(client, tool, {"script": script}, is_real, token=number)
    expect(client.notes or not is_real, "no progress")
    values = {}
    for note in client.notes:
        expect(note["progress"] > values.get(note["progressToken"], 0), "progress does not increase")
        values[note["progressToken"]] = note["progress"]
    check_arguments(client, tool, is_real)
    expect("error" in client.ask("tools/call", {"name": "none"}), "an unknown tool")
    expect("error" in client.ask("none/such"), "an unknown method")
    client.connection.send(b"{\n")
    refusal = client.receive()
    expect("id" not in refusal and refusal["error"]["code"] == -32700, "a parse error")
    if revision >= "2025-11-25":     # earlier schemas have no form for it
        client.validator.check("JSONRPCErrorResponse", refusal)
    client.connection.close()
    return f"{revision}: {client.validator.checked} values fit the schema"


def start(program):
    """Checks a server that takes a socket path as its only argument."""
    if jsonschema is None:
        print("python3-jsonschema is not installed")
        return 77
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "mcp.sock")
        server = subprocess.Popen([program, path], stderr=subprocess.DEVNULL)
        try:
            wait_for_socket(path, server)
            for revision in LEGACY + [MODERN]:
                print(check_revision(path, revision, False))
        finally:
            server.terminate()
            status = server.wait(60)
    expect(status == 0, f"the server ended with {status}")
    return 0


def suite():
    from harness import Skip, main, test

    def add(revision):
        @test(name=revision)
        def one(ctx):
            if jsonschema is None:
                raise Skip("python3-jsonschema is not installed", missing=True)
            return check_revision(ctx.socket, revision, True)
    for revision in LEGACY + [MODERN]:
        add(revision)
    return main(__doc__)


if __name__ == "__main__":
    sys.exit(start(sys.argv[2]) if sys.argv[1:2] == ["--start"] else suite())
