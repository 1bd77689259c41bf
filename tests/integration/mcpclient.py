# SPDX-License-Identifier: Apache-2.0
"""A small and strict MCP client: a unix socket or a subprocess, one thread, no blocking call.

Everything the server sends is checked as it arrives: one JSON object per line, UTF-8, no
key twice, an id only if we sent it and only once, a result or an error but never both, no
requests from the server. A breach raises ProtocolViolation wherever it is noticed.
"""

import ctypes
import json
import os
import re
import select
import socket
import struct
import subprocess
import time

import calls
from waits import until, until_equal

LEGACY = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN = "2026-07-28"
REVISIONS = LEGACY + (MODERN,)
LINE_MAX = 10 << 20	# common clients drop a connection that sends more in one message

STATUSES = frozenset((
    "ok", "error", "timeout", "cpu_limit", "memory_limit", "pids_limit", "output_limit",
    "disk_limit", "killed", "crashed", "cancelled", "overloaded", "jail_failed",
    "worker_protocol_error"))
# Nothing was run: for the arguments, or for what the script requires.
NOT_RUN = frozenset(("invalid_arguments", "dependency_unavailable", "python_unavailable", "too_many_jobs",
                     "no_session", "no_checkpoint", "session_limit", "session_busy",
                     "denied", "approval_pending", "quota_exceeded", "audit_unavailable"))
OUTCOME_KEYS = {
    "execution_id": str, "status": str, "stdout": str, "stderr": str, "exit_code": int,
    "duration_ms": int, "cpu_ms": int, "peak_memory_bytes": int}
NOTIFICATIONS = frozenset(("notifications/progress", "notifications/message",
                           "notifications/tools/list_changed"))


class ProtocolViolation(AssertionError):
    """The server sent something that it must not send."""


class Closed(Exception):
    """The server closed the connection."""


class RpcError(Exception):
    def __init__(self, error):
        super().__init__("%s %s" % (error.get("code"), error.get("message")))
        self.code = error.get("code")
        self.message = error.get("message")
        self.data = error.get("data")


class Outcome:
    """One answer of run_script; the members are those of structuredContent."""

    def __init__(self, result, line_bytes, structured_required):
        self.raw = result
        self.line_bytes = line_bytes
        self.text = "".join(c["text"] for c in result["content"] if c["type"] == "text")
        self.is_error = result.get("isError", False)
        s = self.structured = result.get("structuredContent")
        if s is None:
            if structured_required and not self.is_error:
                raise ProtocolViolation("no structuredContent: %r" % result)
            s = {}
        self.refused = s.get("status", "invalid_arguments") in NOT_RUN
        if not structured_required:	# the old revisions have the text alone
            self.read_text()
            return
        if not self.refused and s.get("status") != "running":	# in the background
            check_outcome(s)
        self.id = s.get("execution_id")
        self.status = s.get("status")
        self.stdout = s.get("stdout", "")
        self.stderr = s.get("stderr", "")
        self.result = s.get("result")
        self.error = s.get("error")
        self.exit_code = s.get("exit_code")
        self.duration_ms = s.get("duration_ms")
        self.cpu_ms = s.get("cpu_ms")
        self.peak_memory_bytes = s.get("peak_memory_bytes")
        self.truncated = s.get("truncated") or {
            "stdout_dropped": 0, "stderr_dropped": 0, "result": False}

    def read_text(self):
        summary = re.search(r"\[(\w+)(?:, exit code (\d+))?, .*\]\n?\Z", self.text)
        self.refused = summary is None
        self.status = summary and summary[1]
        # An exit code that the status says already is not in the text.
        self.exit_code = summary and (int(summary[2]) if summary[2] else {"ok": 0, "error": 1}.get(summary[1]))
        said = re.search(r"^stdout:\n(.*?)(?=^stderr:\n|^result: |^\[\w+, |\Z)", self.text,
                         re.S | re.M)
        self.stdout, self.stderr = said[1] if said else "", ""
        self.result = self.error = self.truncated = None

    def everything(self):
        """All that the client received for this call, as one text to search in."""
        parts = [json.dumps(self.raw, ensure_ascii=False)]

        def walk(value):
            if isinstance(value, str):
                parts.append(value)
            elif isinstance(value, dict):
                for item in value.values():
                    walk(item)
            elif isinstance(value, list):
                for item in value:
                    walk(item)
        walk(self.raw)
        return "\n".join(parts)

    def __repr__(self):
        return "<%s exit=%s stdout=%.300r stderr=%.600r error=%.900r text=%.300r>" % (
            self.status or "refused", self.exit_code, self.stdout, self.stderr, self.error,
            self.text if self.refused else self.text[-200:])


def check_outcome(s):
    for key, kind in OUTCOME_KEYS.items():
        value = s.get(key)
        if value is None and key in ("peak_memory_bytes", "exit_code", "cpu_ms"):
            continue
        if key == "execution_id" and value is None and s.get("state") == "closed":
            continue			# nothing was run
        if not isinstance(value, kind) or isinstance(value, bool):
            raise ProtocolViolation("structuredContent.%s is %.80r" % (key, value))
    if s["status"] not in STATUSES:
        raise ProtocolViolation("unknown status %r" % s["status"])
    for key in ("truncated", "result", "error"):
        if not isinstance(s.get(key, 0), (dict, type(None))):
            raise ProtocolViolation("structuredContent.%s is %.80r" % (key, s.get(key)))
    if (s["status"] == "ok") != (s["error"] is None):
        raise ProtocolViolation("status %s with error %.80r" % (s["status"], s["error"]))


def _no_key_twice(pairs):
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ProtocolViolation("a key is said twice: %.200r" % (pairs,))
    return made


def _no_constant(name):
    raise ProtocolViolation("%s is not JSON" % name)


def parse_line(line):
    """The message on one line (bytes, no line end), or ProtocolViolation."""
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as e:
        raise ProtocolViolation("not UTF-8: %s" % e) from None
    try:
        message = json.loads(text, object_pairs_hook=_no_key_twice,
                             parse_constant=_no_constant)
    except ValueError as e:
        raise ProtocolViolation("not JSON: %s: %.200r" % (e, text)) from None
    if "\\ud" in text.lower():
        try:
            json.dumps(message, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError:
            raise ProtocolViolation("half a surrogate pair: %.200r" % text) from None
    return message


def connect_as(path, uid=None, timeout=30.0):
    """A connected unix socket; with uid, as that user (only this thread changes its uid)."""
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # A blocking connect waits for a place in the queue, as long as SO_SNDTIMEO says.
    s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO,
                 struct.pack("ll", int(timeout), int(timeout % 1 * 1e6)))
    if uid is None:
        s.connect(path)
        return s
    libc = ctypes.CDLL(None, use_errno=True)
    none = ctypes.c_long(-1)

    def become(user):
        for call in ("setresgid", "setresuid") if user else ("setresuid", "setresgid"):
            if libc.syscall(ctypes.c_long(calls.number(call)), none, ctypes.c_long(user), none):
                raise OSError(ctypes.get_errno(), call)
    become(uid)
    try:
        s.connect(path)
    finally:
        become(0)
    return s


class Client:
    """One connection. revision None: raw, no handshake, only send_raw and recv."""

    def __init__(self, rfd, wfd, revision=LEGACY[-1], owner=None, timeout=60.0):
        self.rfd, self.wfd, self.owner = rfd, wfd, owner
        self.revision, self.timeout = revision, timeout
        self.modern = revision == MODERN
        self.inbuf, self.scanned, self.outbuf = bytearray(), 0, bytearray()
        self.eof = False
        self.next_id = 1
        self.pending = {}	# id -> when it was sent
        self.answers = {}	# id -> (message, bytes of its line)
        self.arrived = []	# ids in the order of their answers
        self.notices = []
        self.unread = []	# in raw mode: every message
        self.longest_line = 0
        os.set_blocking(rfd, False)
        os.set_blocking(wfd, False)
        if revision in LEGACY:
            self.hello = self.handshake()

    @classmethod
    def connect(cls, path, revision=LEGACY[-1], uid=None, timeout=60.0):
        s = connect_as(path, uid, timeout)
        try:
            return cls(s.fileno(), s.fileno(), revision, s, timeout)
        except BaseException:
            s.close()
            raise

    @classmethod
    def spawn(cls, argv, revision=LEGACY[-1], timeout=60.0, **popen):
        child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 bufsize=0, **popen)
        return cls(child.stdout.fileno(), child.stdin.fileno(), revision, child, timeout)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def close(self):
        if isinstance(self.owner, subprocess.Popen):
            self.owner.stdin.close()
            self.owner.wait(self.timeout)
            self.owner.stdout.close()
        elif self.owner is not None:
            self.owner.close()
        self.owner = None
        self.eof = True

    def half_close(self):
        self.flush()
        if isinstance(self.owner, subprocess.Popen):
            self.owner.stdin.close()
        else:
            self.owner.shutdown(socket.SHUT_WR)

    # ---- bytes ----

    def pump(self, timeout):
        """One round of reading and writing; waits at most timeout seconds for either."""
        poll = select.poll()
        self.register(poll)
        events = poll.poll(max(0, timeout) * 1000)
        self.handle(dict(events))
        return bool(events)

    def register(self, poll):
        if self.rfd == self.wfd:
            poll.register(self.rfd, (0 if self.eof else select.POLLIN) |
                          (select.POLLOUT if self.outbuf else 0))
            return
        if not self.eof:
            poll.register(self.rfd, select.POLLIN)
        if self.outbuf:
            poll.register(self.wfd, select.POLLOUT)

    def handle(self, events):
        if self.outbuf and events.get(self.wfd, 0) & ~select.POLLIN:
            try:
                del self.outbuf[:os.write(self.wfd, self.outbuf[:1 << 18])]
            except BlockingIOError:
                pass
            except (BrokenPipeError, ConnectionResetError):
                self.outbuf.clear()
        if events.get(self.rfd, 0) & ~select.POLLOUT:
            self.read_some()

    def read_some(self):
        try:
            got = os.read(self.rfd, 1 << 18)
        except BlockingIOError:
            return
        except ConnectionResetError:
            got = b""
        if not got:
            self.eof = True
            if self.inbuf:
                raise ProtocolViolation("ended within a line: %.200r" % bytes(self.inbuf))
            return
        self.inbuf += got
        while (end := self.inbuf.find(b"\n", self.scanned)) >= 0:
            line = bytes(self.inbuf[:end])
            del self.inbuf[:end + 1]
            self.scanned = 0
            self.take(line)
        self.scanned = len(self.inbuf)
        if len(self.inbuf) > LINE_MAX:
            raise ProtocolViolation("a line above %d bytes" % LINE_MAX)

    def take(self, line):
        self.longest_line = max(self.longest_line, len(line))
        message = parse_line(line)
        if self.revision is None:
            self.unread.append(message)
            return
        if isinstance(message, list) and self.revision in LEGACY[:2]:
            for item in message:
                self.take_message(item, len(line))
            return
        self.take_message(message, len(line))

    def take_message(self, message, size):
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            raise ProtocolViolation("not a JSON-RPC message: %.200r" % (message,))
        if "method" in message:
            if "id" in message or message["method"] not in NOTIFICATIONS:
                raise ProtocolViolation("the server asks: %.200r" % message)
            self.notices.append(message)
            return
        if ("result" in message) == ("error" in message):
            raise ProtocolViolation("not one of result and error: %.200r" % message)
        if "id" not in message:
            raise ProtocolViolation("an error about a line that we sent: %.200r" % message)
        key = id_key(message["id"])
        if key not in self.pending:
            raise ProtocolViolation("answer with an id that is not open: %.300r" % message)
        del self.pending[key]
        self.answers[key] = (message, size)
        self.arrived.append(message["id"])

    # ---- messages ----

    def send_raw(self, data):
        self.outbuf += data

    def until(self, what, condition, timeout=None):
        """Reads until condition() is true, and returns what it gives; Closed at the end."""
        def wait(left):
            if self.eof:
                raise Closed("the connection has ended, before " + what)
            self.pump(left)
        return until(what, condition, timeout or self.timeout, wait)

    def flush(self, timeout=None):
        until("the server reads", lambda: not self.outbuf, timeout or self.timeout, self.pump)

    def recv(self, timeout=None):
        """The next message of a raw connection; Closed at its end."""
        self.until("a message", lambda: self.unread, timeout)
        return self.unread.pop(0)

    def send(self, message):
        self.send_raw(json.dumps(message, ensure_ascii=False).encode("utf-8") + b"\n")

    def params(self, params):
        if not self.modern:
            return params
        params = dict(params or {})
        meta = dict(params.get("_meta") or {})
        meta["io.modelcontextprotocol/protocolVersion"] = MODERN
        meta["io.modelcontextprotocol/clientCapabilities"] = {}
        params["_meta"] = meta
        return params

    def request(self, method, params=None, id=None):
        """Sends a request (as far as the socket takes it now); returns its id."""
        if id is None:
            id = self.next_id
            self.next_id += 1
        message = {"jsonrpc": "2.0", "id": id, "method": method}
        params = self.params(params)
        if params is not None:
            message["params"] = params
        self.pending[id_key(id)] = time.monotonic()
        self.send(message)
        self.pump(0)
        return id

    def notify(self, method, params=None):
        message = {"jsonrpc": "2.0", "method": method}
        params = self.params(params)
        if params is not None:
            message["params"] = params
        self.send(message)
        self.flush()

    def wait_message(self, id, timeout=None):
        key = id_key(id)
        self.until("the answer to %r" % id, lambda: key in self.answers, timeout)
        return self.answers.pop(key)

    def wait(self, id, timeout=None):
        message, size = self.wait_message(id, timeout)
        if "error" in message:
            raise RpcError(message["error"])
        self.last_size = size
        return message["result"]

    def ask(self, method, params=None, timeout=None):
        return self.wait(self.request(method, params), timeout)

    def handshake(self):
        result = self.ask("initialize", {
            "protocolVersion": self.revision, "capabilities": {},
            "clientInfo": {"name": "mcp-pythond tests", "version": "1"}})
        if result.get("protocolVersion") != self.revision:
            raise ProtocolViolation("initialize answered %.200r" % result)
        self.notify("notifications/initialized")
        return result

    def greet(self, revision=LEGACY[-1], **capabilities):
        """The handshake of a raw client, with these capabilities."""
        self.send({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": revision, "capabilities": capabilities,
            "clientInfo": {"name": "t", "version": "1"}}})
        self.recv()
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    # ---- the tool ----

    def start_script(self, script, **arguments):
        return self.request("tools/call", {
            "name": "run_script", "arguments": {"script": script, **arguments}})

    def outcome(self, id, timeout=None):
        result = self.wait(id, timeout)
        if self.modern and result.get("resultType") != "complete":
            raise ProtocolViolation("resultType is %r" % result.get("resultType"))
        if not isinstance(result.get("content"), list):
            raise ProtocolViolation("no content: %.200r" % result)
        return Outcome(result, self.last_size, self.revision not in LEGACY[:2])

    def run(self, script, wait_s=None, **arguments):
        return self.outcome(self.start_script(script, **arguments), wait_s)

    def cancel(self, id):
        """Tells the server; an answer that crosses it is still accepted, none is waited for."""
        self.notify("notifications/cancelled", {"requestId": id})


def id_key(id):
    """1, "1" and true are different ids, though 1 == True in Python."""
    return (type(id).__name__, id)


def pump_all(clients, timeout):
    """One round for several connections at once."""
    poll = select.poll()
    for client in clients:
        client.register(poll)
    events = dict(poll.poll(max(0, timeout) * 1000))
    for client in clients:
        if client.rfd in events or client.wfd in events:
            client.handle(events)
    return bool(events)


def wait_all(clients, timeout):
    """Until nothing that the clients asked is open."""
    def wait(left):
        for c in clients:
            if c.eof and c.pending:
                raise Closed("%d answers are missing" % len(c.pending))
        pump_all([c for c in clients if c.pending or c.outbuf], left)
    until_equal("the number of open questions", lambda: sum(len(c.pending) for c in clients), 0,
                timeout, wait)
