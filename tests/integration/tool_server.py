#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""An MCP server on standard input and output, for script_tools.py: tools that do what they should, and
tools that do not.

    tool_server.py legacy|modern|silent|broken|garbled|slow|fragile [FILE]

FILE: a line is added to it for each call of "write". silent: it does not answer server/discover;
slow: it is modern, and answers it when it is asked for initialize, which it does not answer;
broken: it ends with an error when it is started;
garbled: what it answers first to tools/list is no JSON;
fragile: it is modern, and its first two processes end as soon as they are asked."""

import base64
import json
import os
import sys
import threading

PAGE = 4
KIND = sys.argv[1]
PICTURE = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()


def tool(name, description, read_only=True, properties=None, required=(), **more):
    return dict(name=name, description=description,
                inputSchema={"type": "object", "properties": properties or {}, "required": list(required)},
                annotations={"readOnlyHint": read_only}, **more)


TOOLS = [
    tool("echo", "Returns its arguments as JSON text.", properties={"value": {"type": "string"}}),
    tool("add", "Adds two numbers.", properties={"a": {"type": "number", "description": "One."},
                                                 "b": {"type": "number", "default": 1}},
         required=("a",), outputSchema={"type": "object", "properties": {"sum": {"type": "number"}}}),
    tool("words", "Returns a sentence."),
    tool("picture", "Returns a picture."),
    tool("mixed", "Returns blocks of all kinds."),
    tool("fail", "Fails."),
    tool("refuse", "Answers with an error of the protocol."),
    tool("hang", "Never answers."),
    tool("slow", "Answers when all slow calls have come.", properties={"n": {"type": "integer"}}),
    tool("die", "Ends the server."),
    tool("flood", "Writes without an end."),
    tool("large", "Returns many bytes.", properties={"bytes": {"type": "integer"}, "values": {"type": "integer"}}),
    tool("lie", "Answers other ids, then its own twice."),
    tool("strange", "Answers with what is no result."),
    tool("odd", "Answers with blocks that are none.", properties={"n": {"type": "integer"}}),
    tool("grow", "Adds the tool late, describes write in other words, and says so."),
    tool("get-thing.of", "Has a name that is none in Python."),
    tool("class", "Has a name that means something to Python."),
    tool("environment", "Returns what the server sees."),
    tool("write", "Writes a line to a file.", read_only=False, properties={"line": {"type": "string"}}),
    {"name": "no schema"}, {"name": "x y", "inputSchema": {}}, 7,
]
slow = []
lock = threading.Lock()


def say(message):
    with lock:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()


def answer(id, result):
    if KIND in ("modern", "slow"):
        result = dict(resultType="complete", **result)
    say({"jsonrpc": "2.0", "id": id, "result": result})


def text(id, value, **more):
    answer(id, dict(content=[{"type": "text", "text": value}], **more))


def call(id, name, arguments):
    if name == "echo":
        text(id, json.dumps(arguments))
    elif name == "add":
        total = arguments["a"] + arguments.get("b", 1)
        text(id, "the sum", structuredContent={"sum": total})
    elif name == "words":
        text(id, "plain words")
    elif name == "picture":
        answer(id, {"content": [{"type": "image", "mimeType": "image/png", "data": PICTURE}]})
    elif name == "mixed":
        answer(id, {"content": [
            {"type": "text", "text": "one"}, {"type": "image", "mimeType": "image/png", "data": PICTURE},
            {"type": "resource", "resource": {"uri": "x://1", "text": "two"}},
            {"type": "resource_link", "uri": "x://2", "name": "three"}]})
    elif name == "fail":
        text(id, "it cannot be done", isError=True)
    elif name == "refuse":
        say({"jsonrpc": "2.0", "id": id, "error": {"code": -32602, "message": "no such \x1b[1mthing"}})
    elif name == "slow":
        slow.append((id, arguments))
        if len(slow) == arguments["n"]:
            for other, _ in reversed(slow):
                text(other, "together")
            slow.clear()
    elif name == "die":
        print("it was told to die", file=sys.stderr)
        sys.stderr.flush()
        os._exit(3)
    elif name == "flood":
        os.write(1, b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"' % id)
        for _ in range(16384):
            os.write(1, b"x" * 65536)
    elif name == "large":
        if "values" in arguments:
            say({"jsonrpc": "2.0", "id": id, "result": {"content": [], "structuredContent": {
                "list": [0] * arguments["values"]}}})
        else:
            text(id, "x" * arguments["bytes"])
    elif name == "lie":
        for other in (id + 1, id - 1, 0, -1, 2 ** 63 - 1, str(id), None, [id]):
            text(other, "a lie")
        text(id, "the truth")
        text(id, "a second truth")
    elif name == "strange":
        say("no message")
        answer(id, {"content": "no blocks"})
    elif name == "odd":
        answer(id, {"content": [(
            {"type": "image", "data": "!"}, {"type": "image", "data": 7}, {"type": "resource", "resource": [1]},
            {"type": "resource", "resource": {"blob": {}}}, {"type": "audio"}, {"type": "resource"},
            {"type": "text", "text": [1]}, {"type": "text", "text": "[" * 30000})[arguments["n"]]]})
    elif name == "grow":
        TOOLS.append(tool("late", "Came late."))
        next(one for one in TOOLS if one["name"] == "write")["description"] += " And more."
        say({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        text(id, "grown")
    elif name == "environment":
        text(id, json.dumps({"environment": dict(os.environ), "uid": os.getuid(), "fds": sorted(
            os.listdir("/proc/self/fd")), "groups": os.getgroups()}))
    elif name == "write":
        with open(sys.argv[2], "a", encoding="utf-8") as f:
            f.write(arguments["line"] + "\n")
        text(id, "written")
    elif name == "hang":
        with open(sys.argv[2], "a", encoding="utf-8") as f:
            f.write("hang\n")
    else:
        text(id, "called " + name)


def take(message):
    method, id, params = message.get("method"), message.get("id"), message.get("params") or {}
    if KIND == "slow" and method == "server/discover":
        slow.append(id)
        return
    if KIND == "slow" and method == "initialize":
        method, id = "server/discover", slow.pop()
    if KIND == "fragile" and method in ("server/discover", "initialize"):
        with open(sys.argv[2], "r+", encoding="utf-8") as f:
            starts = f.read().count("fragile")
            f.write("fragile\n")
        if starts < 2:
            os._exit(1)
    if method == "initialize" and KIND in ("modern", "fragile"):
        say({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "what?"}})
        return
    if method == "server/discover":
        if KIND in ("modern", "slow", "fragile"):
            answer(id, {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "ttlMs": 0,
                        "cacheScope": "private"})
        elif KIND != "silent":
            say({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "what?"}})
    elif method == "initialize":
        say({"jsonrpc": "2.0", "id": "ours", "method": "ping"})
        say({"jsonrpc": "2.0", "id": id, "result": {
            "protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
            "serverInfo": {"name": "tools", "version": "1"}}})
    elif method == "tools/list" and KIND == "garbled" and not os.path.getsize(sys.argv[2]):
        with open(sys.argv[2], "a", encoding="utf-8") as f:
            f.write("garbled\n")
        with lock:
            print('{"id":%d' % id + " " * 1000000, flush=True)
    elif method == "tools/list":
        at = int(params.get("cursor", 0))
        result = {"tools": TOOLS[at:at + PAGE]}
        if at + PAGE < len(TOOLS):
            result["nextCursor"] = str(at + PAGE)
        answer(id, result)
    elif method == "notifications/cancelled" and sys.argv[2:]:
        with open(sys.argv[2], "a", encoding="utf-8") as f:
            f.write("cancelled\n")
    elif method == "tools/call":
        if KIND == "modern":
            assert params["_meta"]["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
        call(id, params["name"], params["arguments"])


if KIND == "broken":
    sys.exit("it is broken")
print("hello, this is no message")
for line in sys.stdin:
    take(json.loads(line))
