# SPDX-License-Identifier: Apache-2.0
"""A small and strict HTTP/1.1 client over raw sockets, and MCP on top of it.

Everything the server sends is checked as it arrives: the framing of the answer, its media
type, and each JSON message against the official schema of the revision.
"""

import contextlib
import json
import re
import select
import socket

from mcpclient import LEGACY, MODERN, ProtocolViolation, connect_as, parse_line
from waits import until

try:
    import jsonschema
    from mcp_schema import NOTICES, Validator
except ImportError:
    jsonschema = None

ENVELOPE = {"io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": {}}
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri",
         "tasks/get": "taskId", "tasks/cancel": "taskId", "tasks/update": "taskId"}
BOTH = "application/json, text/event-stream"
EVENT = re.compile(rb"event: message(?:\nid: ([\x21-\x7e]+))?\ndata: ([^\n]+)")
PRIMING = re.compile(rb"id: ([\x21-\x7e]+)\nretry: (\d+)\ndata: ")


class Closed(Exception):
    """The server closed the connection, or reset it."""


class Response:
    def __init__(self, version, status, headers):
        self.version, self.status, self.headers = version, status, headers
        self.body = b""
        self.events = None	# of a stream: the messages

    def header(self, name):
        values = [v for k, v in self.headers if k.lower() == name.lower()]
        if len(values) > 1:
            raise ProtocolViolation("the answer says %s twice" % name)
        return values[0] if values else None

    @property
    def streams(self):
        return (self.header("Content-Type") or "").startswith("text/event-stream")

    @property
    def message(self):
        """The one JSON-RPC message of the answer; of a stream its last one."""
        if self.events is not None:
            return self.events[-1] if self.events else None
        if self.header("Content-Type") != "application/json":
            raise ProtocolViolation("%s: %r" % (self.header("Content-Type"), self.body))
        return parse_line(self.body)

    @property
    def code(self):
        return self.message["error"]["code"]

    def __repr__(self):
        return "<%d %r %.600r>" % (self.status, self.headers, self.events or self.body)


class Connection:
    """One connection. place: ("127.0.0.1", port) or the path of a unix socket."""

    def __init__(self, place, timeout=60.0, uid=None):
        self.timeout = timeout
        if isinstance(place, str):
            self.sock = connect_as(place, uid, timeout)
        else:
            self.sock = socket.create_connection(place, timeout)
        self.host = "localhost" if isinstance(place, str) else "%s:%d" % place
        self.sock.setblocking(False)
        self.inbuf = b""
        self.ended = False
        self.checker = None	# of what comes in streams
        self.event_ids = []	# of the events that came, those without data too
        self.retry_ms = None	# as the server said

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def close(self):
        self.sock.close()

    def reset(self):
        """Closes so that the other side gets an error (TCP)."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.sock.close()

    # ---- bytes ----

    def until(self, what, condition, events, timeout=None):
        poll = select.poll()
        poll.register(self.sock, events)
        return until(lambda: "%s; so far %.300r" % (what, self.inbuf), condition,
                     timeout or self.timeout, lambda left: poll.poll(left * 1000))

    def send_raw(self, data):
        data = memoryview(data)

        def is_sent():
            nonlocal data
            try:
                while data:
                    data = data[self.sock.send(data[:1 << 18]):]
            except BlockingIOError:
                return False
            except (BrokenPipeError, ConnectionResetError):
                raise Closed("while writing") from None
            return True
        self.until("the server reads", is_sent, select.POLLOUT)

    def more(self, timeout=None):
        """Reads something; Closed at the end."""
        def is_read():
            try:
                got = self.sock.recv(1 << 18)
            except BlockingIOError:
                return False
            except ConnectionResetError:
                got = b""
            self.inbuf += got
            self.ended = not got
            return True
        if not self.ended:
            self.until("something to read", is_read, select.POLLIN, timeout)
        if self.ended:
            raise Closed("after %.300r" % self.inbuf)

    def take(self, n):
        while len(self.inbuf) < n:
            self.more()
        got, self.inbuf = self.inbuf[:n], self.inbuf[n:]
        return got

    def line(self):
        while b"\r\n" not in self.inbuf:
            self.more()
        got, _, self.inbuf = self.inbuf.partition(b"\r\n")
        return got

    def at_end(self, timeout=None):
        """Waits until the server has closed; it may say nothing more."""
        try:
            self.more(timeout)
        except Closed:
            return not self.inbuf
        return False

    # ---- requests and answers ----

    def send(self, verb="POST", path="/mcp", headers=(), body=b""):
        """headers: pairs; those that are missing are added."""
        headers = list(headers)
        names = {name.lower() for name, _ in headers}
        if "host" not in names:
            headers.insert(0, ("Host", self.host))
        if body and not names & {"content-length", "transfer-encoding"}:
            headers.append(("Content-Length", str(len(body))))
        text = "%s %s HTTP/1.1\r\n%s\r\n" % (
            verb, path, "".join("%s: %s\r\n" % h for h in headers if h[1] is not None))
        self.send_raw(text.encode("latin-1") + body)

    def read_head(self):
        version, _, rest = self.line().partition(b" ")
        status, _, _ = rest.partition(b" ")
        if version not in (b"HTTP/1.1", b"HTTP/1.0") or not status.isdigit():
            raise ProtocolViolation("status line %r" % ((version, rest),))
        headers = []
        while line := self.line():
            name, colon, value = line.partition(b":")
            if not colon:
                raise ProtocolViolation("header line %r" % line)
            headers.append((name.decode("latin-1"), value.strip().decode("latin-1")))
        return Response(version.decode(), int(status), headers)

    def chunks(self):
        while True:
            size = int(self.line(), 16)
            if size == 0:
                if self.line():
                    raise ProtocolViolation("trailers")
                return
            yield self.take(size)
            if self.line():
                raise ProtocolViolation("a chunk is longer than it says")

    def events(self, comments=None):
        """The messages of a stream, as they come."""
        rest = b""
        for chunk in self.chunks():
            rest += chunk
            while b"\n\n" in rest:
                event, _, rest = rest.partition(b"\n\n")
                if event.startswith(b":"):
                    if comments is not None:
                        comments.append(event)
                    continue
                primes = PRIMING.fullmatch(event)
                m = primes or EVENT.fullmatch(event)
                if not m:
                    raise ProtocolViolation("event %.300r" % event)
                if m[1]:
                    self.event_ids.append(m[1].decode())
                if primes:
                    self.retry_ms = int(m[2])
                else:
                    message = parse_line(m[2])
                    if self.checker:
                        self.checker.message(message)
                    yield message
        if rest:
            raise ProtocolViolation("ended within an event: %.300r" % rest)

    def read_body(self, response, to_head=False):
        if to_head or response.status in (204, 304):
            return response
        if response.header("Transfer-Encoding"):
            if not response.streams:
                raise ProtocolViolation("a chunked answer that is no stream: %r" % response)
            response.events = list(self.events())
        elif response.header("Content-Length") is not None:
            response.body = self.take(int(response.header("Content-Length")))
        else:
            with contextlib.suppress(Closed):
                while True:
                    self.more()
            response.body, self.inbuf = self.inbuf, b""
        return response

    def read(self, to_head=False):
        response = self.read_head()
        while response.status == 100:
            response = self.read_head()
        return self.read_body(response, to_head)

    def ask(self, *args, **kwargs):
        self.send(*args, **kwargs)
        return self.read(to_head=args[:1] == ("HEAD",))


# ---- MCP ----

def encode(message):
    return json.dumps(message, ensure_ascii=False).encode("utf-8")


def modern_headers(message, change=None):
    """The headers that go with a modern message; change: name -> value, None: left out."""
    headers = {"Content-Type": "application/json", "Accept": BOTH,
               "MCP-Protocol-Version": MODERN, "Mcp-Method": message["method"]}
    key = NAMED.get(message["method"])
    if key and key in message.get("params", {}):
        headers["Mcp-Name"] = message["params"][key]
    headers.update(change or {})
    return list(headers.items())


def modern(method, params=None, id=1):
    message = {"jsonrpc": "2.0", "id": id, "method": method,
               "params": {**(params or {}), "_meta": {**ENVELOPE, **(params or {}).get("_meta", {})}}}
    return message


def call(script, id=1, token=None, stream=False, **arguments):
    """The params of a modern or legacy tools/call."""
    params = {"name": "run_script", "arguments": {"script": script, **arguments}}
    if token is not None:
        params["_meta"] = {"progressToken": token}
        if stream:
            params["_meta"]["mcp-pythond/stream"] = True
    return params


class Checker:
    """Validates what comes in one revision; checked counts."""

    def __init__(self, revision):
        self.validator = Validator(revision) if jsonschema else None
        self.checked = 0

    def check(self, name, value):
        if self.validator:
            self.validator.check(name, value)
            self.checked = self.validator.checked

    def result(self, message, kind):
        v = self.validator
        if not v:
            return
        if "error" in message:
            self.error(message)
            return
        self.check("JSONRPCMessage", message)
        self.check(kind, message["result"])
        if v.has(kind + "Response"):
            self.check(kind + "Response", message)

    def error(self, message):
        """Earlier schemas have no form for one without an id."""
        if self.validator and ("id" in message or self.validator.revision >= "2025-11-25"):
            self.check("JSONRPCErrorResponse" if self.validator.has("JSONRPCErrorResponse")
                       else "JSONRPCError", message)

    def note(self, message):
        self.check("ProgressNotification", message)

    def message(self, message):
        """Of a stream, whatever it may be; its result is checked by who knows what was asked."""
        if not self.validator:
            return
        for one in message if isinstance(message, list) else [message]:
            if "method" not in one:
                self.error(one) if "error" in one else self.check("JSONRPCMessage", one)
            elif one["method"] in NOTICES and "id" not in one:
                self.check(NOTICES[one["method"]], one)
            else:
                self.check("JSONRPCMessage", one)


RESULTS = {"initialize": "InitializeResult", "ping": "EmptyResult",
           "tools/list": "ListToolsResult", "tools/call": "CallToolResult",
           "server/discover": "DiscoverResult"}


class Session:
    """A client of one revision, each request on a connection that is kept if possible."""

    def __init__(self, place, revision=LEGACY[-1], uid=None, timeout=60.0, capabilities=None):
        self.place, self.revision, self.uid, self.timeout = place, revision, uid, timeout
        self.modern = revision == MODERN
        self.capabilities = capabilities or {}
        self.checker = Checker(revision)
        self.connection = None
        self.id = None
        self.count = 0
        self.notes = []
        if not self.modern:
            self.hello = self.open()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        if self.connection:
            self.connection.close()

    def fresh(self):
        connection = Connection(self.place, self.timeout, self.uid)
        connection.checker = self.checker
        return connection

    def headers(self, message, change=None):
        if self.modern:
            return modern_headers(message, change)
        headers = {"Content-Type": "application/json", "Accept": BOTH}
        if self.id:
            headers["Mcp-Session-Id"] = self.id
            headers["MCP-Protocol-Version"] = self.revision
        headers.update(change or {})
        return list(headers.items())

    def message(self, method, params=None, id=None):
        if id is None:
            self.count += 1
            id = self.count
        if self.modern:
            return modern(method, params, id)
        message = {"jsonrpc": "2.0", "id": id, "method": method}
        if params is not None:
            message["params"] = params
        return message

    def send(self, connection, message, change=None):
        connection.send(headers=self.headers(message, change), body=encode(message))

    def post(self, message, change=None):
        """The response to it, on the connection of the session."""
        if self.connection is None:
            self.connection = self.fresh()
        self.send(self.connection, message, change)
        response = self.connection.read()
        if self.connection.ended or response.header("Connection") == "close":
            self.connection.close()
            self.connection = None
        return response

    def take(self, message, response):
        """Checks all messages of an answer; returns the last one."""
        last = response.message
        for note in (response.events or [])[:-1]:
            self.checker.note(note)
            self.notes.append(note["params"])
        if last.get("id") != message["id"]:
            raise ProtocolViolation("asked %r, answered %.300r" % (message["id"], last))
        self.checker.result(last, RESULTS.get(message["method"], "Result"))
        return last

    def ask(self, method, params=None):
        """The result, or the whole message of an error, with status 200."""
        message = self.message(method, params)
        response = self.post(message)
        if response.status != 200:
            raise AssertionError("%s: %r" % (method, response))
        last = self.take(message, response)
        return last.get("result", last)

    def run(self, script, **arguments):
        return self.ask("tools/call", call(script, **arguments))

    def stdout(self, script, **arguments):
        """What a script prints, in whatever form the revision has it."""
        result = self.run(script, **arguments)
        if "structuredContent" in result:
            return result["structuredContent"]["stdout"]
        return result["content"][0]["text"]

    def notify(self, method, params=None):
        message = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = params
        return self.post(message)

    def open(self):
        message = self.message("initialize", {
            "protocolVersion": self.revision, "capabilities": self.capabilities,
            "clientInfo": {"name": "http_client", "version": "1"}})
        response = self.post(message)
        if response.status != 200:
            raise AssertionError("initialize: %r" % response)
        result = self.take(message, response)["result"]
        self.id = response.header("Mcp-Session-Id")
        response = self.notify("notifications/initialized")
        if response.status != 202 or response.body:
            raise AssertionError("initialized: %r" % response)
        return result

    def end(self):
        if self.connection is None:
            self.connection = self.fresh()
        return self.connection.ask("DELETE", headers=[("Mcp-Session-Id", self.id)])
