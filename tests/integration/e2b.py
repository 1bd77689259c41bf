#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The gateway's dialect of E2B, spoken as its SDKs speak it. The SDKs themselves are in
tests/conformance/doors.py."""

import asyncio
import base64
import contextlib
import hashlib
import http.client
import json
import os
import struct
import threading
import urllib.parse

import aiohttp

from doors_suite import TOKEN, gateway_on, own_gateway, shared_ends, team_gateway
from fuse import place, wrap
from harness import equal, main, test
from http_suite import http_private
from waits import until, until_equal

NEVER = "a" * 20
kept = []	# the shared service


def workspace(store):
    return "[workspace]\nvolume = yes\nvolumes = 4\ndirectory = %s\n" % store


@contextlib.contextmanager
def own(ctx, more=""):
    """A service with a gateway, and where its volumes are."""
    with place() as store, own_gateway(ctx, settings=workspace(store) + more,
                                       wrap=wrap(store)) as (_, gateway):
        yield gateway, store


def shared(ctx):
    """One for all tests that end all their sandboxes: they start it once, which is most of what such a
    test takes."""
    if not kept:
        kept.append(shared_ends.enter_context(own(ctx)))
    gateway, _ = kept[0]
    equal(gateway.ask("GET", "/v2/sandboxes", None, None, [("X-API-KEY", TOKEN)]), (200, []),
          "sandboxes that an earlier test has left")
    return kept[0]


class Sandbox:
    """A client of one sandbox, which it makes and kills."""

    def __init__(self, gateway, key=TOKEN, path="/v2/sandboxes", **body):
        self.gateway, self.key = gateway, key
        status, answer = self.control("POST", path, {"templateID": "base", **body})
        equal(status, 201, "%r" % (answer,))
        self.id, self.tokens = answer["sandboxID"], answer
        self.headers = [("E2b-Sandbox-Id", self.id), ("X-Access-Token", answer["envdAccessToken"])]

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.control("DELETE", "/sandboxes/" + self.id)

    def control(self, verb, path, body=None):
        return self.gateway.ask(verb, path, body, None, [("X-API-KEY", self.key)])

    def ask(self, verb, path, body=None, headers=()):
        return self.gateway.ask(verb, path, body, None, [*self.headers, *headers])

    def rpc(self, method, **body):
        return self.ask("POST", "/" + method, body)

    def stat(self, path):
        return self.rpc("filesystem.Filesystem/Stat", path=path)

    def events(self, code, **more):
        """What came for a cell, without times."""
        status, data = self.ask("POST", "/execute", {"code": code, **more})
        equal(status, 200, "%r" % (data,))
        lines = data.splitlines() if isinstance(data, bytes) else [json.dumps(data)]
        events = [json.loads(line) for line in lines]
        equal(events.pop(), {"type": "end_of_execution"})
        return [{k: v for k, v in e.items() if k != "timestamp"} for e in events]

    def value(self, code, **more):
        """The text of the main result."""
        found = [e for e in self.events(code, **more) if e.get("is_main_result")]
        return found[0]["text"] if found else None

    def start(self, cmd, timeout=None, method="Start", **more):
        """Events of a command up to its end; the last is what ended it."""
        body = more if method == "Connect" else {
            "process": {"cmd": "/bin/bash", "args": ["-l", "-c", cmd], **more.pop("process", {})},
            "stdin": False, **more}
        headers = [("Connect-Timeout-Ms", str(timeout))] if timeout else []
        status, data = self.ask("POST", "/process.Process/" + method, framed(body), [
            *headers, ("Content-Type", "application/connect+json")])
        equal(status, 200, "%r" % (data,))
        return unframed(data)

    def run(self, cmd, **more):
        """(exit code, stdout, stderr) of a command."""
        events = [e["event"] for e in self.start(cmd, **more)]
        assert "start" in events[0] and "end" in events[-1], events
        out = {"stdout": b"", "stderr": b"", "pty": b""}
        for event in events:
            for stream, data in event.get("data", {}).items():
                out[stream] += base64.b64decode(data)
        return events[-1]["end"]["exitCode"], (out["stdout"] + out["pty"]).decode(), \
            out["stderr"].decode()


def framed(body):
    data = json.dumps(body).encode()
    return struct.pack(">BI", 0, len(data)) + data


def unframed(data):
    """The messages of a stream; an error at its end is one."""
    data = json.dumps(data).encode() if not isinstance(data, bytes) else data
    found = []
    while data:
        flag, size = struct.unpack(">BI", data[:5])
        message, data = json.loads(data[5:5 + size]), data[5 + size:]
        if flag == 2:
            assert not data, data
            return found + [message] if message else found
        found.append(message)
    raise AssertionError("no last frame")


@test(private=True)
def code_runs_in_contexts(ctx):
    gateway, _ = shared(ctx)
    with Sandbox(gateway, envVars={"GREETING": "hi"}) as box:
        equal(box.events("x = 1; x += 1; x"), [
            {"type": "number_of_executions", "execution_count": 1},
            {"type": "result", "is_main_result": True, "text": "2"}])
        equal(box.value("'text'"), "text")
        equal(box.events("import os, sys\nprint('\u00e9')\nprint('e', file=sys.stderr)")[1:], [
            {"type": "stdout", "text": "\u00e9\n"}, {"type": "stderr", "text": "e\n"}])
        error = box.events("1 / 0")[-1]
        equal((error["type"], error["name"], error["value"]),
              ("error", "ZeroDivisionError", "division by zero"))
        assert "line 1" in error["traceback"], error
        shown = box.events("display({'text/html': '<b>', 'image/png': 'aGk='}, raw=True)")[-1]
        equal((shown["type"], shown["html"], shown.get("is_main_result")), ("result", "<b>", None))
        equal(box.value("os.environ['GREETING'], os.environ['HOME'], os.getcwd()"),
              "('hi', '/home/user', '/volume/data')")
        equal(box.value("os.environ['GREETING']", env_vars={"GREETING": "ho"}), "ho")
        equal(box.value("os.environ['GREETING']"), "hi")
        # What is refused costs no session.
        equal(box.events("x = 2\0")[-1]["type"], "error")
        equal(box.value("x"), "2")
        # A crash is undone.
        equal(box.events("x = 9\nos._exit(3)")[-1]["type"], "error")
        equal(box.value("x"), "2")
        status, other = box.ask("POST", "/contexts", {"cwd": "/home/user"})
        equal((status, other["language"]), (200, "python"))
        equal(box.value("'x' in globals()", context_id=other["id"]), "False")
        equal(len(box.ask("GET", "/contexts")[1]), 2)
        box.events("y = 1", context_id=other["id"])
        equal(box.ask("POST", "/contexts/%s/restart" % other["id"])[0], 200)
        equal(box.value("'y' in globals()", context_id=other["id"]), "False")
        equal(box.ask("DELETE", "/contexts/" + other["id"])[0], 200)
        for status, body in ((404, {"code": "1", "context_id": other["id"]}),
                             (400, {"code": "1", "context_id": "default", "language": "python"}),
                             (400, {"code": "1", "language": "r"}), (400, {}), (400, {"code": 1}),
                             (400, {"code": "1", "env_vars": {"a": 1}})):
            equal(box.ask("POST", "/execute", body)[0], status, "%r" % body)
        for cwd, status in (("/nowhere", 400), ("/etc/passwd", 400), ("a\0", 400), ("~", 200)):
            equal(box.ask("POST", "/contexts", {"cwd": cwd})[0], status, cwd)
        box.run("mkdir sub")
        _, other = box.ask("POST", "/contexts", {"cwd": "sub"})
        equal(box.value("__import__('os').getcwd()", context_id=other["id"]), "/volume/data/sub")


@test(private=True)
def commands_run(ctx):
    gateway, _ = shared(ctx)
    with Sandbox(gateway, envVars={"A": "1"}) as box:
        equal(box.run("echo out $A $B; echo err >&2; pwd; echo ~; exit 3", process={"envs": {"B": "2"}}),
              (3, "out 1 2\n/home/user\n/home/user\n", "err\n"))
        equal(box.run("pwd", process={"cwd": "/tmp"})[1], "/tmp\n")
        code, _, err = box.run("", process={"cwd": "/nowhere"})
        equal((code, err), (1, "/nowhere: No such file or directory\n"))
        # Cells, commands and files see the same.
        box.events("open('made', 'w').write('by a cell')")
        equal(box.run("cat made")[1], "by a cell")
        last = box.start("sleep 300", timeout=500)[-1]
        equal(last["error"]["code"], "deadline_exceeded")
        for body in ({}, {"process": {}}, {"process": {"cmd": 1}}, {"process": {"cmd": "a", "args": [1]}},
                     {"process": {"cmd": "a", "envs": {"x": 1}}}, {"process": {"cmd": "a\0"}}):
            status, data = box.ask("POST", "/process.Process/Start", framed(body), [
                ("Content-Type", "application/connect+json")])
            equal(unframed(data)[-1]["error"]["code"], "invalid_argument", "%r" % body)
        for data in (b"", b"\0\0\0\0\1", b"\1\0\0\0\2{}", framed({})[:-1]):
            _, said = box.ask("POST", "/process.Process/Start", data, [
                ("Content-Type", "application/connect+json")])
            equal(unframed(said)[-1]["error"]["code"], "invalid_argument", "%r" % data)


@test(private=True)
def a_command_is_talked_to(ctx):
    gateway, _ = shared(ctx)
    with Sandbox(gateway) as box:
        got = []
        thread = threading.Thread(target=lambda: got.append(box.run(
            "read a; echo got $a; cat", stdin=True, tag="t")))
        thread.start()
        until("the command is listed", lambda: box.rpc("process.Process/List")[1]["processes"])
        process, = box.rpc("process.Process/List")[1]["processes"]
        equal((process["config"]["cmd"], process["tag"]), ("/bin/bash", "t"))
        me = {"process": {"pid": process["pid"]}}
        for text in ("one\n", "two\n"):
            equal(box.rpc("process.Process/SendInput", **me, input={
                "stdin": base64.b64encode(text.encode()).decode()}), (200, {}))
        equal(box.rpc("process.Process/SendInput", **me, input={"stdin": "%"})[1]["code"],
              "invalid_argument")
        equal(box.rpc("process.Process/CloseStdin", process={"tag": "t"}), (200, {}))
        thread.join()
        equal(got[0], (0, "got one\ntwo\n", ""))
        equal(box.rpc("process.Process/CloseStdin", **me)[1]["code"], "not_found")
        for name, code in (("SIGTERM", 143), ("SIGKILL", -1)):
            got.clear()
            thread = threading.Thread(target=lambda: got.append(box.start("exec sleep 300")))
            thread.start()
            until("it runs", lambda: box.rpc("process.Process/List")[1]["processes"])
            pid = box.rpc("process.Process/List")[1]["processes"][0]["pid"]
            equal(box.rpc("process.Process/SendInput", process={"pid": pid}, input={
                "stdin": ""})[1]["code"], "failed_precondition")
            equal(box.rpc("process.Process/SendSignal", process={"pid": pid},
                          signal="SIGNAL_" + name), (200, {}))
            thread.join()
            equal(got[0][-1]["event"]["end"]["exitCode"], code)
        equal(box.rpc("process.Process/SendSignal", process={"pid": pid},
                      signal="SIGNAL_SIGKILL")[1]["code"], "not_found")
        # A command that does not read its input can be ended.
        got.clear()
        thread = threading.Thread(target=lambda: got.append(box.start("exec sleep 300", stdin=True)))
        thread.start()
        until("it runs", lambda: box.rpc("process.Process/List")[1]["processes"])
        me = {"process": {"pid": box.rpc("process.Process/List")[1]["processes"][0]["pid"]}}
        equal(box.rpc("process.Process/SendInput", **me, input={
            "stdin": base64.b64encode(bytes(300000)).decode()}), (200, {}))
        equal(box.rpc("process.Process/SendSignal", **me, signal="SIGNAL_SIGTERM"), (200, {}))
        thread.join()
        equal(got[0][-1]["event"]["end"]["exitCode"], 143)
        # What could not be told is not said to be.
        thread = threading.Thread(target=lambda: box.start("exec sleep 300", stdin=True))
        thread.start()
        until("it runs", lambda: box.rpc("process.Process/List")[1]["processes"])
        me = {"process": {"pid": box.rpc("process.Process/List")[1]["processes"][0]["pid"]}}
        box.run("rm -rf .e2b; echo >.e2b")
        assert box.rpc("process.Process/CloseStdin", **me)[0] >= 400
        box.rpc("process.Process/SendSignal", **me, signal="SIGNAL_SIGKILL")
        thread.join()


@test(private=True)
def commands_have_a_terminal_where_there_are_any(ctx):
    size = {"size": {"cols": 100, "rows": 30}}
    with own(ctx, "[profile basic]\nterminals = yes\n") as (gateway, _), Sandbox(gateway) as box:
        got = []
        thread = threading.Thread(target=lambda: got.append(box.run(
            "stty size; read a; stty size; echo $TERM", pty=size)))
        thread.start()
        until("it runs", lambda: box.rpc("process.Process/List")[1]["processes"])
        me = {"process": {"pid": box.rpc("process.Process/List")[1]["processes"][0]["pid"]}}
        equal(box.rpc("process.Process/Update", **me, pty={"size": {"cols": 90, "rows": 20}}),
              (200, {}))
        box.rpc("process.Process/SendInput", **me, input={
            "pty": base64.b64encode(b"x\n").decode()})
        thread.join()
        code, out, _ = got[0]
        equal(code, 0)
        assert out.replace("\r", "").endswith("20 90\nxterm-256color\n"), out
    gateway, _ = shared(ctx)
    with Sandbox(gateway) as box:
        code, out, _ = box.run("true", pty=size)
        equal(code, 1)
        assert "terminals = yes" in out, out


@test(private=True)
def a_command_goes_on_without_its_client(ctx):
    gateway, _ = shared(ctx)
    with Sandbox(gateway) as box:
        async def leave():
            async with aiohttp.ClientSession() as session:
                response = await session.post(
                    gateway.url + "/process.Process/Start",
                    data=framed({"process": {"cmd": "sh", "args": [
                        "-c", "until [ -e stop ]; do sleep 0.1; done; echo seen"]}, "stdin": False}),
                    headers={**dict(box.headers), "Content-Type": "application/connect+json"})
                await response.content.readexactly(5)
        asyncio.run(leave())
        process, = box.rpc("process.Process/List")[1]["processes"]
        got = []
        thread = threading.Thread(target=lambda: got.append(
            box.start("", method="Connect", process={"pid": process["pid"]})))
        thread.start()
        equal(box.rpc("process.Process/List")[1]["processes"], [process])
        box.events("open('stop', 'w')")
        thread.join()
        if got[0] and "error" not in got[0][-1]:
            equal(got[0][-1]["event"]["end"]["exitCode"], 0)
        until_equal("commands", lambda: box.rpc("process.Process/List")[1]["processes"], [])


@test(private=True)
def files_go_in_and_out(ctx):
    octets = [("Content-Type", "application/octet-stream")]
    gateway, _ = shared(ctx)
    with Sandbox(gateway) as box:
        large = bytes(range(256)) * 40000
        for name, data in (("a.txt", b"abc"), ("d/with space \u00e9", b"\0\xff"), ("empty", b""),
                           ("/tmp/x", b"elsewhere"), ("large", large)):
            path = urllib.parse.quote(name)
            status, said = box.ask("POST", "/files?path=" + path, data, octets)
            if name == "/tmp/x":	# which each command has for itself
                continue
            equal((status, said[0]["path"]), (200, "/home/user/" + name))
            status, got = box.ask("GET", "/files?path=" + path)
            equal((status, got if isinstance(got, bytes) else got), (200, data), name)
        equal(box.run("cat a.txt; stat -c %s large")[1], "abc%d\n" % len(large))
        form = b'--b\r\nContent-Disposition: form-data; name="file"; filename="f/1"\r\n\r\none\r\n' \
               b'--b\r\nContent-Disposition: form-data; name="file"; filename="f/2"\r\n\r\ntwo\r\n--b--\r\n'
        status, said = box.ask("POST", "/files", form, [
            ("Content-Type", "multipart/form-data; boundary=b")])
        equal((status, [f["name"] for f in said]), (200, ["1", "2"]))
        status, said = box.rpc("filesystem.Filesystem/ListDir", path="f", depth=1)
        equal([(e["name"], e["type"], e["size"], e["path"]) for e in said["entries"]],
              [("1", "FILE_TYPE_FILE", "3", "/home/user/f/1"),
               ("2", "FILE_TYPE_FILE", "3", "/home/user/f/2")])
        names = [e["name"] for e in box.rpc("filesystem.Filesystem/ListDir", path=".", depth=9)[1]["entries"]]
        assert ".e2b" not in names and "1" in names, names
        equal(box.stat("a.txt")[1]["entry"]["size"], "3")
        files = "filesystem.Filesystem/"
        equal(box.rpc(files + "MakeDir", path="m/n")[1]["entry"]["type"], "FILE_TYPE_DIRECTORY")
        for method, code, body in (
                ("MakeDir", "already_exists", {"path": "m/n"}), ("Stat", "not_found", {"path": "nix"}),
                ("ListDir", "not_found", {"path": "nix"}), ("ListDir", "invalid_argument", {"path": "a.txt"}),
                ("Move", "not_found", {"source": "nix", "destination": "x"}),
                ("Remove", "invalid_argument", {}), ("Stat", "invalid_argument", {"path": 5}),
                ("Stat", "invalid_argument", {"path": "a\0"}),
                ("ListDir", "invalid_argument", {"path": ".", "depth": 999}),
                ("CreateWatcher", "unimplemented", {"path": "."})):
            equal(box.rpc(files + method, **body)[1]["code"], code, "%s %r" % (method, body))
        equal(box.rpc(files + "Move", source="a.txt", destination="new/b.txt")[1]["entry"]["path"],
              "/home/user/new/b.txt")
        equal(box.rpc(files + "Remove", path="new")[0], 200)
        equal(box.rpc(files + "Remove", path="new")[0], 200)	# as with E2B
        equal(box.stat("new/b.txt")[0], 404)
        for path, status in (("nix", 404), ("m", 400), ("", 400)):
            equal(box.ask("GET", "/files?path=" + path)[0], status, path)
        equal(box.ask("POST", "/files?path=m", b"x", octets)[0], 400)
        # A link, which has no token.
        for path, do, status in (("large", "read", 200), ("large", "write", 502), ("f/1", "read", 502)):
            signature = "v1_" + base64.b64encode(hashlib.sha256(("%s:%s::%s" % (
                "large", do, box.tokens["envdAccessToken"])).encode()).digest()).decode().rstrip("=")
            got = gateway.ask("GET", "/files?path=%s&signature=%s" % (path, urllib.parse.quote(signature)),
                              None, None, box.headers[:1])
            equal(got[0], status, "%s %s" % (path, do))


@test(private=True)
def sandboxes_live_and_end(ctx):
    gateway, _ = shared(ctx)
    with Sandbox(gateway, metadata={"user": "1"}) as box:
        status, model = box.control("GET", "/sandboxes/" + box.id)
        equal((status, model["state"], model["metadata"]), (200, "running", {"user": "1"}))
        for query, count in (("", 1), ("?metadata=user%3D1", 1), ("?metadata=user%3D2", 0),
                             ("?state=paused", 0), ("?state=running,paused&limit=1", 1)):
            equal(len(box.control("GET", "/v2/sandboxes" + query)[1]), count, query)
        box.events("x = 5")
        background = threading.Thread(target=lambda: box.start("exec sleep 300"))
        background.start()
        until("it runs", lambda: box.rpc("process.Process/List")[1]["processes"])
        equal(box.control("POST", "/sandboxes/%s/pause" % box.id, {})[0], 204)
        background.join()
        equal(box.control("POST", "/sandboxes/%s/pause" % box.id, {})[0], 409)
        equal(box.ask("GET", "/health")[0], 502)
        equal(box.control("POST", "/v2/sandboxes/%s/connect" % box.id, {"timeout": 60})[0], 201)
        equal(box.control("POST", "/sandboxes/%s/connect" % box.id, {"timeout": 60})[0], 200)
        equal((box.ask("GET", "/health")[0], box.value("x")), (204, "5"))
        equal(box.control("GET", "/sandboxes/%s/metrics" % box.id), (200, []))
        equal(box.control("POST", "/sandboxes/%s/fork" % box.id, {})[1]["code"], 501)
        # Its time ends while a command runs.
        background = threading.Thread(target=lambda: box.start("exec sleep 300"))
        background.start()
        until("it runs", lambda: box.rpc("process.Process/List")[1]["processes"])
        equal(box.control("POST", "/sandboxes/%s/timeout" % box.id, {"timeout": 0})[0], 204)
        background.join()
        until_equal("health", lambda: box.ask("GET", "/health")[0], 502)
        equal(box.control("DELETE", "/sandboxes/" + box.id)[1]["code"], 404)
    # Volumes of ended sandboxes are used again: there are four.
    for _ in range(3):
        boxes = [Sandbox(gateway, path="/sandboxes") for _ in range(2)]
        for box in boxes:
            box.run("echo x >f")
            equal(box.control("DELETE", "/sandboxes/" + box.id)[0], 204)
    with contextlib.ExitStack() as stack:
        for _ in range(4):
            stack.enter_context(Sandbox(gateway)).run("echo x >f")
        status, said = gateway.ask("POST", "/v2/sandboxes", {}, None, [("X-API-KEY", TOKEN)])
        equal((status, said["code"]), (429, 429), "%r" % said)
    for body in ({"timeout": "x"}, {"timeout": -1}, {"timeout": 1e9}, {"metadata": {"a": 1}},
                 {"envVars": []}, {"templateID": 1}, {"mcp": {"x": 1}}):
        status, said = gateway.ask("POST", "/v2/sandboxes", body, None, [("X-API-KEY", TOKEN)])
        equal((status, said["code"]), (400, 400), "%r" % body)


@test(private=True)
def a_client_that_goes_interrupts_its_cell(ctx):
    gateway, _ = shared(ctx)
    with Sandbox(gateway) as box:
        box.events("x = 1")

        async def leave():
            async with aiohttp.ClientSession() as session:
                response = await session.post(
                    gateway.url + "/execute", headers=dict(box.headers), json={
                        "code": "x = 2\nprint(1, flush=True)\nimport time\ntime.sleep(300)"})
                while b"stdout" not in await response.content.readline():
                    pass
                response.close()
        asyncio.run(leave())
        equal(box.value("x"), "2")	# an interrupt keeps what was done


def half(gateway, path, body, headers):
    """A request whose body has come in part; returns (connection, the rest)."""
    connection = http.client.HTTPConnection(gateway.url.partition("://")[2], timeout=120)
    connection.putrequest("POST", path)
    for name, value in (*headers, ("Content-Length", str(len(body)))):
        connection.putheader(name, value)
    connection.endheaders(body[:5])
    return connection, body[5:]


def volumes_of(store):
    """name -> what is in it, of one tenant"""
    top = os.path.join(store, str(os.getuid()))
    return {name: os.listdir(os.path.join(top, name)) for name in os.listdir(top)}


@test(private=True)
def nothing_runs_in_a_sandbox_that_has_ended(ctx):
    stream = [("Content-Type", "application/connect+json")]
    octets = [("Content-Type", "application/octet-stream")]
    gateway, store = shared(ctx)
    box = Sandbox(gateway)
    box.events("1")
    open_ = [half(gateway, path, body, [*box.headers, *more]) for path, body, more in (
        ("/process.Process/Start", framed({"process": {"cmd": "touch", "args": ["a"]}}), stream),
        ("/execute", b'{"code": "open(\'b\', \'w\')"}', [("Content-Type", "application/json")]),
        ("/files?path=c", b"123456789", octets))]
    # Cells that run and wait; the second would run after the first.
    waits = [half(gateway, "/execute", json.dumps({"code": code}).encode(), [
        *box.headers, ("Content-Type", "application/json")]) for code in (
        "import time\nprint(1, flush=True)\ntime.sleep(300)", "open('d', 'w')")]
    for connection, rest in waits:
        connection.send(rest)
        first = connection.getresponse() if connection is waits[0][0] else None
        while first and b"stdout" not in first.readline():
            pass
    equal(box.control("DELETE", "/sandboxes/" + box.id)[0], 204)
    for connection, rest in open_:
        connection.send(rest)
        answer = connection.getresponse()
        text = answer.read()
        assert answer.status == 502 or b'"error"' in text, (answer.status, text)
    for connection, _ in waits:
        connection.close()
    equal([left for left in volumes_of(store).values() if left], [])
    # A context that was removed runs nothing, and leaves no session.
    with Sandbox(gateway) as box:
        _, other = box.ask("POST", "/contexts", {})
        waits = [half(gateway, "/execute", json.dumps({
            "code": code, "context_id": other["id"]}).encode(), [
            *box.headers, ("Content-Type", "application/json")]) for code in (
            "import time\nprint(1, flush=True)\ntime.sleep(300)", "open('d', 'w')")]
        waits[0][0].send(waits[0][1])
        first = waits[0][0].getresponse()
        while b"stdout" not in first.readline():
            pass
        waits[1][0].send(waits[1][1])
        equal(box.ask("DELETE", "/contexts/" + other["id"])[0], 200)
        equal(box.stat("d")[0], 404)
        # A pause stops cells, too.
        connection, rest = half(gateway, "/execute", json.dumps({
            "code": "import time\nprint(1, flush=True)\ntime.sleep(300)"}).encode(), [
            *box.headers, ("Content-Type", "application/json")])
        connection.send(rest)
        answer = connection.getresponse()
        while b"stdout" not in answer.readline():
            pass
        equal(box.control("POST", "/sandboxes/%s/pause" % box.id, {})[0], 204)
        assert b"interrupted" in answer.read()
        for connection, _ in (*waits, (connection, None)):
            connection.close()


@test(private=True)
def a_gateway_that_was_killed_locks_nobody_out(ctx):
    with place() as store, http_private(ctx, workspace(store), unix=True, wrap=wrap(store)) as (
            _, path):
        port = None
        for _ in range(2):
            with gateway_on(path, killed=True, port=port) as gateway:
                port = gateway.url.rpartition(":")[2]
                for _ in range(4):
                    box = Sandbox(gateway)
                    equal(box.run("ls; echo x >f")[1], "")	# nothing of the last one


@test(private=True)
def commands_take_no_place_from_ends(ctx):
    gateway, _ = shared(ctx)
    threads = []
    with Sandbox(gateway) as box, Sandbox(gateway) as other:
        for _ in range(32):
            threads.append(threading.Thread(target=lambda: box.start("exec sleep 300")))
            threads[-1].start()
        until_equal("commands", lambda: len(box.rpc("process.Process/List")[1]["processes"]), 32)
        equal(other.stat(".")[0], 200)
        equal(other.control("DELETE", "/sandboxes/" + other.id)[0], 204)
        equal(box.start("true")[-1]["error"]["code"], "resource_exhausted")
        equal(box.rpc("process.Process/SendSignal", process={"pid": 1},
                      signal="SIGNAL_SIGTERM")[0], 200)
    for thread in threads:
        thread.join()


UNREADABLE = [
    (b"[" * 200000, "application/json", 400), (b"{}", "application/json; charset=nope", 400),
    (b"\xff", "application/json", 400), (b"x", "multipart/form-data", 400),
    (b"x", "multipart/form-data; boundary=" + "a" * 100, 400), (b"--b\r\nx", "multipart/form-data; boundary=b", 400),
    (b"--b\r\n\r\n\r\n" * 10_000 + b"--b--\r\n", "multipart/form-data; boundary=b", 400),
    (b"--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c--\r\n--b--\r\n", "multipart/form-data; boundary=b", 400)]


@test(private=True)
def requests_that_cannot_be_read_are_answered(ctx):
    gateway, _ = shared(ctx)
    with Sandbox(gateway) as box:
        for body, kind, want in UNREADABLE:
            path = "/files?path=x" if kind.startswith("multipart") else "/execute"
            status, answer = box.ask("POST", path, body, [("Content-Type", kind)])
            equal(status, want, "%r %s: %r" % (body[:20], kind, answer))
        for headers, want in (([("Content-Encoding", "gzip")], 400),):
            equal(box.ask("POST", "/execute", b"no gzip", headers)[0], want)
        for key in ("\xff", "\xc3"):
            equal(gateway.ask("POST", "/v2/sandboxes", {}, None, [("X-API-KEY", key)])[0], 401)
            equal(gateway.ask("GET", "/health", None, None, [
                ("E2b-Sandbox-Id", box.id), ("X-Access-Token", key)])[0], 502)
        for query in ("&signature_expiration=" + "9" * 5000, "&signature_expiration=%C2%B2"):
            equal(gateway.ask("GET", "/files?path=x&signature=v1_x" + query, None, None,
                              box.headers[:1])[0], 502)
        # The token for code opens no files.
        traffic = [box.headers[0], ("E2B-Traffic-Access-Token", box.tokens["trafficAccessToken"])]
        equal([gateway.ask(verb, path, body, None, traffic)[0] for verb, path, body in (
            ("GET", "/contexts", None), ("GET", "/files?path=/etc/passwd", None),
            ("POST", "/process.Process/List", {}))], [200, 502, 502])
        for path in (".e2b/x", "/volume/data/.e2b", "../../volume/data/.e2b/y"):
            equal(box.ask("POST", "/files?path=" + path, b"x")[0], 400, path)
        # An upload that ends early leaves nothing.
        connection, _ = half(gateway, "/files?path=big", bytes(9 << 20), box.headers)
        connection.send(bytes(6 << 20))
        until("a piece", lambda: box.run("ls .e2b")[1].count("up-"))
        connection.close()
        until_equal("pieces", lambda: box.run("ls .e2b")[1].count("up-"), 0)


@test(private=True)
def nobody_gets_into_anothers_sandbox(ctx):
    with place() as store, team_gateway(ctx, more=workspace(store), wrap=wrap(store)) as (
            _, gateway, tokens):
        with Sandbox(gateway, tokens["ada"]) as ada, Sandbox(gateway, tokens["bob"]) as bob:
            ada.run("echo secret >f")
            equal(bob.run("ls")[1], "")
            crossed = [("E2b-Sandbox-Id", ada.id), *bob.headers[1:]]
            never = [("E2b-Sandbox-Id", NEVER), *bob.headers[1:]]
            for verb, path, body in (
                    ("GET", "/files?path=f", None), ("GET", "/health", None), ("GET", "/contexts", None),
                    ("POST", "/execute", {"code": "1"}), ("POST", "/process.Process/List", {}),
                    ("POST", "/files?path=f", b"x"), ("POST", "/filesystem.Filesystem/Stat", {"path": "f"})):
                answers = [gateway.ask(verb, path, body, None, headers)
                           for headers in (crossed, never, crossed[:1], [])]
                equal(answers[0][0], 502, path)
                assert all(a == answers[0] for a in answers), answers
            for verb, suffix in (("GET", ""), ("DELETE", ""), ("POST", "/timeout"), ("POST", "/pause"),
                                 ("POST", "/connect"), ("GET", "/metrics")):
                answers = [bob.control(verb, "/sandboxes/%s%s" % (i, suffix), {} if verb == "POST" else None)
                           for i in (ada.id, NEVER)]
                equal(answers[0][0], 404, verb + suffix)
                equal(json.dumps(answers[0]).replace(ada.id, NEVER), json.dumps(answers[1]))
            equal([s["sandboxID"] for s in bob.control("GET", "/v2/sandboxes")[1]], [bob.id])
            equal(ada.run("cat f")[1], "secret\n")
        for key in (None, "wrong"):
            equal(gateway.ask("POST", "/v2/sandboxes", {}, None,
                              [("X-API-KEY", key)] if key else [])[0], 401)


if __name__ == "__main__":
    with shared_ends:
        main(__doc__)
