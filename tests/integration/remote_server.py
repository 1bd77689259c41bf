# SPDX-License-Identifier: Apache-2.0
"""MCP servers over HTTP, for remote_tools.py: in the test's own process, over TCP, TLS or a unix socket,
with tools that do what they should, and tools that lie."""

import contextlib
import http.server
import json
import os
import shutil
import socketserver
import ssl
import subprocess
import tempfile
import threading
import urllib.parse

ENDLESS = 1 << 30


def tool(name, **properties):
    return {"name": name, "description": "The tool %s." % name, "annotations": {"readOnlyHint": True},
            "inputSchema": {"type": "object", "properties": properties}}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def address_string(self):
        return "test"

    def log_message(self, *_):
        pass

    # ---- answers ----

    def plain(self, status, body=b"", kind="text/plain", **headers):
        self.send_response(status)
        for name, value in dict(headers, Content_Type=kind, Content_Length=str(len(body))).items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def json(self, message, status=200, **headers):
        self.plain(status, json.dumps(message).encode(), "application/json; charset=utf-8", **headers)

    def result(self, id, result, **headers):
        if self.server.era == "modern":
            result = dict(resultType="complete", **result)
        self.json({"jsonrpc": "2.0", "id": id, "result": result}, **headers)

    def text(self, id, text):
        self.result(id, {"content": [{"type": "text", "text": text}]})

    def head(self, kind):
        """The beginning of an answer that ends with the connection."""
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Connection", "close")
        self.end_headers()

    def event(self, message, end="\n"):
        self.wfile.write((": a comment" + end + "event: message" + end + "data: " + json.dumps(message) +
                          end + end).encode())
        self.wfile.flush()

    # ---- tasks: job ends, refused is none, asks wants input, hangs goes on ----

    def begin_task(self, id, name, params):
        """As each era has it; the id of the task is the tool's name."""
        self.server.polls = 0
        task = {"taskId": name, "status": "working", "createdAt": "2026-01-01T00:00:00Z",
                "lastUpdatedAt": "2026-01-01T00:00:00Z"}
        if self.server.era == "modern":
            assert params["_meta"]["io.modelcontextprotocol/clientCapabilities"]["extensions"] == {
                "io.modelcontextprotocol/tasks": {}}
            self.json({"jsonrpc": "2.0", "id": id, "result": dict(
                task, resultType="task", ttlMs=60000, pollIntervalMs=1,
                **({"taskId": "no\r\nid"} if name == "task_without_id" else {}))})
        else:
            assert params["task"]["ttl"] > 0
            self.result(id, {"task": dict(task, ttl=60000, pollInterval=1)})

    def go_on(self, method, id, name):
        done = {"content": [{"type": "text", "text": "the end of " + name}]}
        self.server.polls += 1
        if method == "tasks/cancel":
            self.result(id, {})
        elif self.server.era == "legacy":
            assert method == "tasks/result", method
            if name == "task_hangs":
                self.server.held.set()
                self.server.ended.wait()
            self.result(id, done)
        else:
            assert method == "tasks/get" and self.headers["Mcp-Name"] == name
            status = {"task_fails": "failed", "task_asks": "input_required", "task_hangs": "working"}.get(
                name, "completed" if self.server.polls == 3 else "working")
            if name == "task_hangs" and self.server.polls == 2:
                self.server.held.set()
            more = {"result": dict(done, resultType="complete")} if status == "completed" else {}
            self.result(id, dict(more, taskId=name, status=status, ttlMs=60000, createdAt="2026-01-01T00:00:00Z",
                                 lastUpdatedAt="2026-01-01T00:00:00Z", pollIntervalMs=1))

    def steps(self, id, token):
        """Tells of three steps, and of one that is another call's."""
        self.head("text/event-stream")
        for n in range(3):
            self.event({"jsonrpc": "2.0", "method": "notifications/progress", "params": {
                "progressToken": token, "progress": n + 1, "total": 3, "message": "step \x1b%d" % (n + 1)}})
            self.event({"jsonrpc": "2.0", "method": "notifications/progress", "params": {
                "progressToken": token + 1, "progress": n + 1, "message": "a lie"}})
            self.server.told.wait()
        self.event({"jsonrpc": "2.0", "id": id, "result": {"resultType": "complete", "content": []}})

    def broken(self, id, name):
        """A stream that ends before its answer, but for the id by which the rest can be asked for."""
        self.server.waiting = id
        self.head("text/event-stream")
        self.wfile.write(b"id: %s-0\nretry: 1\ndata: \n\n" % name.encode())

    def rest(self, event):
        name, n = event.split("-")
        self.head("text/event-stream")
        if name == "broken" and n == "0":
            # Broken once more, with an event before it.
            self.wfile.write(b'id: broken-1\ndata: {"jsonrpc":"2.0","method":"notifications/message"}\n\n')
        elif name == "broken":
            self.event({"jsonrpc": "2.0", "id": self.server.waiting, "result": {"content": [
                {"type": "text", "text": "the rest"}]}})

    # ---- calls ----

    def call(self, id, name, arguments):
        one = {"jsonrpc": "2.0", "id": id, "result": {"resultType": "complete", "content": [
            {"type": "text", "text": "streamed"}]}}
        if name == "echo":
            self.text(id, json.dumps(arguments))
        elif name == "stream":
            self.head("text/event-stream")
            self.event({"jsonrpc": "2.0", "method": "notifications/progress", "params": {}}, "\r\n")
            if self.server.era == "legacy":
                self.event({"jsonrpc": "2.0", "id": "mine", "method": "ping"}, "\r")
            self.event(one)
        elif name == "flood":
            self.head("application/json")
            self.wfile.write(b'{"jsonrpc":"2.0","id":%d,"result":{"x":"' % id)
            self.without_end(b"x" * 65536)
        elif name == "flood_events":
            self.head("text/event-stream")
            self.wfile.write(b"data: ")
            self.without_end(b"x" * 65536)
        elif name == "heads":
            self.send_response(200)
            self.end_headers = lambda: None
            self._headers_buffer.append(b"X: " + b"y" * 90000 + b"\r\n")
            self.flush_headers()
            self.close_connection = True
        elif name == "wrong":
            self.json(dict(one, id=id + 1))
        elif name == "unreadable":
            self.plain(200, b'{"jsonrpc": "2.0", "id": %d, "result": {"content": [\xff' % id, "application/json")
        elif name == "unreadable_event":
            self.head("text/event-stream")
            self.wfile.write(b'data: {"jsonrpc":"2.0","id":%d,"result":{"a":1,"a":2}}\n\n' % id)
            self.wfile.flush()
            self.server.ended.wait()
        elif name == "trickle":
            self.head("text/event-stream")
            while not self.server.ended.wait(0.02):
                self.wfile.write(b":\n")
        elif name == "hold":
            self.server.held.set()
            self.server.ended.wait()
            self.text(id, "held")
        elif name == "cut":
            self.head("application/json")
            self.wfile.write(b'{"jsonrpc": ')
        elif name == "slam":
            self.close_connection = True
        elif name == "elsewhere":
            self.plain(307, Location=self.server.other)
        elif name == "page":
            self.plain(200, b"<html>", "text/html")
        elif name == "leak":
            self.text(id, "".join("%s: %s\n" % one for one in self.headers.items()))
        elif name == "forget":
            self.server.session = None
            self.text(id, "forgotten")
        elif name == "grow":
            self.server.tools.append(tool("late"))
            self.server.changed.set()
            self.text(id, "grown")
        else:
            self.text(id, "called " + name)

    def without_end(self, bytes):
        for _ in range(ENDLESS // len(bytes)):
            self.wfile.write(bytes)

    def changes(self, first=None, **more):
        """The stream on which the server says that its list has changed."""
        self.head("text/event-stream")
        if first:
            self.event(first)
        while self.server.floods and not self.server.ended.is_set():
            self.event(dict(jsonrpc="2.0", method="notifications/message", params={
                "level": "info", "data": "x" * 1000}))
            self.server.flooded += 1000
        self.server.changed.wait()
        if not self.server.ended.is_set():
            self.event(dict(jsonrpc="2.0", method="notifications/tools/list_changed", **more))
            self.server.ended.wait()

    # ---- requests ----

    def do_DELETE(self):
        self.server.saw("DELETE", self)
        self.server.session = None
        self.plain(200)

    def do_GET(self):
        self.server.saw("GET", self)
        if self.server.era == "modern":
            self.plain(405)
        elif self.headers["Mcp-Session-Id"] != self.server.session:
            self.plain(404)
        elif self.headers["Last-Event-ID"]:
            self.rest(self.headers["Last-Event-ID"])
        else:
            self.changes()

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert "Expect" not in self.headers, "it would be refused by some"
        method, id, params = message.get("method"), message.get("id"), message.get("params") or {}
        self.server.saw(method, self, message)
        try:
            if self.server.secret is not None and self.headers[self.server.header] not in self.server.secret:
                self.plain(401)
            elif self.path != self.server.path:
                self.plain(404)
            elif self.server.era == "modern":
                self.modern(method, id, params)
            else:
                self.legacy(method, id, params)
        except (BrokenPipeError, ConnectionResetError, ssl.SSLError):
            self.server.saw("closed", self)
            self.close_connection = True

    def modern(self, method, id, params):
        meta = params["_meta"]
        assert self.headers["MCP-Protocol-Version"] == meta["io.modelcontextprotocol/protocolVersion"]
        assert self.headers["Mcp-Method"] == method and self.headers["Mcp-Name"] == params.get(
            "name", params.get("taskId", params.get("uri")))
        assert "Mcp-Session-Id" not in self.headers
        if method == "server/discover":
            self.result(id, {"supportedVersions": ["2026-07-28"], "capabilities": self.server.can, "ttlMs": 0,
                             "cacheScope": "private"})
        elif method == "subscriptions/listen":
            about = {"_meta": {"io.modelcontextprotocol/subscriptionId": id}}
            self.changes({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
                          "params": about}, params=about)
        else:
            self.tools(method, id, params)

    def legacy(self, method, id, params):
        if method == "initialize":
            self.server.sessions += 1
            self.server.session = "session-%d" % self.server.sessions
            self.result(id, {"protocolVersion": params["protocolVersion"], "capabilities": self.server.can,
                             "serverInfo": {"name": "tools", "version": "1"}}, Mcp_Session_Id=self.server.session)
        elif "Mcp-Session-Id" not in self.headers:
            self.json({"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "no session"}}, 400)
        elif self.headers["Mcp-Session-Id"] != self.server.session:
            self.plain(404)
        elif id is None or method is None:
            self.plain(202)
        else:
            assert self.headers["MCP-Protocol-Version"] == "2025-11-25"
            self.tools(method, id, params)

    def tools(self, method, id, params):
        name = params.get("name")
        if method == "tools/list":
            if self.server.late is not None:
                self.server.late.wait()
            self.result(id, {"tools": self.server.tools})
        elif method == "resources/read":
            self.result(id, {"contents": {
                "x://text": [{"uri": "x://text", "text": "a text"}],
                "x://two": [{"uri": "x://two", "blob": "AAE="}, {"uri": "x://two/b", "text": "b"}],
                "x://lie": "none"}.get(params["uri"], [7])})
        elif method.startswith("tasks/"):
            self.go_on(method, id, params["taskId"])
        elif name.startswith("task_"):
            self.begin_task(id, name, params)
        elif name == "steps":
            self.steps(id, params["_meta"]["progressToken"])
        elif name.startswith("broken"):
            self.broken(id, name)
        else:
            self.call(id, params["name"], params["arguments"])


NAMES = """echo stream flood flood_events heads wrong unreadable unreadable_event trickle cut slam elsewhere
page leak forget grow hold""".split()


def tasks(*names):
    """Tools whose calls become tasks."""
    return [dict(tool("task_" + name), execution={"taskSupport": "required"}) for name in names]


class RemoteServer:
    """The server and its folder, which everybody can read. where: tcp, tls or unix."""

    def __init__(self, era="legacy", where="tcp", path="/mcp", header="Authorization", secret=None,
                 certificate="localhost", tools=None, late=None, can=("tools",), floods=False):
        self.where, self.certificate = where, certificate
        self.state = dict(era=era, path=path, header=header, secret={secret} if isinstance(secret, str) else secret, session=None, sessions=0,
                          other="http://127.0.0.1:9/", ended=threading.Event(), changed=threading.Event(),
                          held=threading.Event(),
                          told=threading.Event(), waiting=None, polls=0, late=late, floods=floods, flooded=0, can={name: {} for name in can},
                          tools=[tool(name) for name in NAMES] if tools is None else tools, seen=[], saw=self.saw)

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="mcp-remote-", dir="/tmp")
        os.chmod(self.folder, 0o755)
        if self.where == "unix":
            kind, address = socketserver.UnixStreamServer, self.folder + "/socket"
        else:
            kind, address = socketserver.TCPServer, ("127.0.0.1", 0)
        listener = type("Server", (socketserver.ThreadingMixIn, kind), dict(
            self.state, daemon_threads=True, block_on_close=False, request_queue_size=128,
            handle_error=lambda *_: None))
        self.server = listener(address, Handler)
        path = self.state["path"]
        if self.where == "unix":
            os.chmod(address, 0o777)
            self.url = "unix:" + address + (":" + path if path != "/mcp" else "")
        elif self.where == "tls":
            self.make_tls()
            self.url = "https://localhost:%d%s" % (self.server.server_address[1], path)
        else:
            self.url = "http://127.0.0.1:%d%s" % (self.server.server_address[1], path)
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *exc):
        self.state["ended"].set()
        self.state["changed"].set()
        self.state["told"].set()
        self.server.shutdown()
        self.server.server_close()
        shutil.rmtree(self.folder)

    def make_tls(self):
        self.ca, key = self.folder + "/ca.pem", self.folder + "/key.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                        "-nodes", "-keyout", key, "-out", self.ca, "-days", "2", "-subj",
                        "/CN=" + self.certificate, "-addext", "subjectAltName=DNS:" + self.certificate],
                       check=True, capture_output=True)
        os.chmod(self.ca, 0o644)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.ca, key)
        # The handshake is the connection's own thread's.
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True,
                                                 do_handshake_on_connect=False)

    def saw(self, method, handler, message=None):
        self.state["seen"].append((method, dict(handler.headers), message))

    def calls(self, name):
        return [headers for method, headers, message in list(self.state["seen"])
                if method == "tools/call" and message["params"]["name"] == name]

    def methods(self):
        return [method for method, _, _ in list(self.state["seen"])]


class TokenHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def plain(self, status, body, **headers):
        self.send_response(status)
        for name, value in dict(headers, Content_Length=str(len(body))).items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body.encode())

    def do_POST(self):
        form = urllib.parse.parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        name, owner = self.path[1:], self.server.owner
        owner.asked.append((name, dict(self.headers), form))
        good = dict(access_token=owner.make(), token_type="bearer", expires_in=owner.seconds)
        if name == "slow":
            owner.ended.wait()
        elif name == "huge":
            with contextlib.suppress(OSError):
                self.plain(200, "x" * 100000)
        elif name == "redirect":
            self.plain(307, "", Location="/good")
        elif name == "refuse":
            self.plain(401, json.dumps({"error": "invalid_client", "error_description": "x"}))
        elif name == "echo":
            self.plain(400, json.dumps({"error": owner.secret}))
        elif name == "garbage":
            self.plain(200, "<html>")
        else:
            self.plain(200, json.dumps(dict(good, **LIES.get(name, {}))))


LIES = {"short": {"access_token": "x"}, "header": {"access_token": "good-token\r\nX: y"}, "none": {"access_token": None},
        "mac": {"token_type": "mac"}, "past": {"expires_in": -1}, "text": {"expires_in": "soon"}}


class TokenServer:
    """An OAuth token endpoint; its path says how it lies. valid: what its tokens make of the header."""

    def __init__(self, secret, seconds=3600):
        self.secret, self.seconds, self.asked, self.valid, self.tokens = secret, seconds, [], set(), []
        self.ended = threading.Event()
        listener = type("Server", (http.server.ThreadingHTTPServer,), dict(
            owner=self, block_on_close=False, request_queue_size=128, handle_error=lambda *_: None))
        self.server = listener(("127.0.0.1", 0), TokenHandler)
        self.url = "http://127.0.0.1:%d/" % self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.ended.set()
        self.server.shutdown()
        self.server.server_close()

    def make(self):
        token = "t0ken-number-%d-of-the-endpoint" % len(self.tokens)
        self.tokens.append(token)
        self.valid.add("Bearer " + token)
        return token
