# SPDX-License-Identifier: Apache-2.0
"""Runs Python in the jails of mcp-pythond. The standard library is enough.

    from mcp_python import Client

    with Client() as python:
        print(python.run("print(6 * 7)").stdout)
        with python.session() as session:
            session.run("x = 20")
            print(session.run("x + 1").value)

A client is one connection and for one thread. AsyncClient has the same calls for asyncio.
"""

import asyncio
import base64
import contextlib
import http.client
import json
import os
import shutil
import socket
import subprocess
import urllib.parse

__all__ = ["AsyncClient", "AsyncSession", "Client", "Failed", "File", "Result", "ServiceError", "Session"]

REVISION = "2026-07-28"
META = "io.modelcontextprotocol/"
CLIENT_TOOLS = "io.github.mcp-pythond/client-tools"
SYSTEM_SOCKET = "/run/mcp-pythond/mcp.sock"
MESSAGE_MAX = 64 << 20
PIECE = 4 << 20


class ServiceError(Exception):
    """The service did not answer, or refused the request itself."""


class Failed(Exception):
    """A script failed, and was asked for by check(). `result` has the whole answer."""

    def __init__(self, result):
        error = result.error or {}
        super().__init__(error.get("traceback") or error.get("message") or result.text.strip())
        self.result = result


class File:
    """A file that a script left."""

    def __init__(self, client, entry):
        self._client = client
        self.path, self.size = entry["path"], entry["size"]
        self.uri, self.mime_type = entry.get("uri"), entry.get("mime_type")

    def read(self):
        """Its bytes. ServiceError: they were not kept, or no longer are."""
        if not self.uri:
            raise ServiceError("%s was not kept" % self.path)
        return self._client.read(self.uri, self.size)

    def __repr__(self):
        return "<File %s, %d bytes>" % (self.path, self.size)


class Result:
    """The answer to a script or a cell. `raw` is its structuredContent."""

    def __init__(self, client, answer):
        self.raw = answer.get("structuredContent") or {}
        self.content = answer.get("content") or []
        self.status = self.raw.get("status", "error" if answer.get("isError") else "ok")
        self.stdout, self.stderr = self.raw.get("stdout", ""), self.raw.get("stderr", "")
        self.error, self.exit_code = self.raw.get("error"), self.raw.get("exit_code")
        self.files = [File(client, entry) for entry in self.raw.get("files") or []]

    @property
    def ok(self):
        return self.status == "ok"

    @property
    def value(self):
        """The value of the last line: as JSON has it, or else its repr; None: there is none."""
        result = self.raw.get("result")
        return result.get("json", result.get("repr")) if result else None

    @property
    def text(self):
        """The answer as a model reads it."""
        return "".join(c.get("text", "") for c in self.content if c.get("type") == "text")

    @property
    def pictures(self):
        """The pictures that were shown, as (MIME type, bytes)."""
        return [(c["mimeType"], base64.b64decode(c["data"])) for c in self.content
                if c.get("type") == "image"]

    def check(self):
        """Returns the result itself; Failed if the status is not "ok"."""
        if not self.ok:
            raise Failed(self)
        return self

    def __repr__(self):
        return "<Result %s>" % self.status


# ---- connections ----

class _Lines:
    """JSON lines on a unix socket, or with a private service."""

    def __init__(self, place, program):
        self.process, self.socket = None, None
        error = None
        for path in self._places(place):
            self.socket = socket.socket(socket.AF_UNIX)
            try:
                self.socket.connect(path)
                break
            except OSError as e:
                self.socket.close()
                self.socket, error = None, "%s: %s" % (path, e.strerror)
        if self.socket is None:
            program = program or shutil.which("mcp-pythond") or "/usr/sbin/mcp-pythond"
            if place not in (None, "private") or not os.access(program, os.X_OK):
                raise ServiceError(error or "mcp-pythond is not installed")
            self.socket, theirs = socket.socketpair()
            with theirs:
                self.process = subprocess.Popen([program, "--private"], stdin=theirs, stdout=theirs,
                                                start_new_session=True)
        self.file = self.socket.makefile("rb")

    @staticmethod
    def _places(place):
        if place == "private":
            return []
        place = place or os.environ.get("MCP_PYTHON_SOCKET")
        runtime = os.environ.get("XDG_RUNTIME_DIR")
        return [place] if place else [
            *([os.path.join(runtime, "mcp-pythond.sock")] if runtime else []), SYSTEM_SOCKET]

    def exchange(self, message, headers, timeout):
        self.socket.settimeout(timeout)
        try:
            self.socket.sendall(json.dumps(message).encode() + b"\n")
            while True:
                line = self.file.readline(MESSAGE_MAX)
                if not line.endswith(b"\n"):
                    raise ServiceError("the service has closed the connection")
                yield json.loads(line)
        except (OSError, ValueError) as e:
            raise ServiceError(str(e) or type(e).__name__) from e

    def cancel(self, number):
        with contextlib.suppress(OSError):
            self.socket.sendall(json.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled",
                                            "params": {"requestId": number}}).encode() + b"\n")

    def close(self):
        # A thread may be reading: this wakes it.
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.file.close()
        self.socket.close()
        if self.process:
            self.process.wait()


class _Unix(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class _Http:
    """Streamable HTTP; each request is a connection."""

    def __init__(self, url, token):
        self.url, self.token, self.open = urllib.parse.urlsplit(url), token, None
        if self.url.scheme not in ("http", "https", "http+unix"):
            raise ServiceError("%s: not an http, https or http+unix URL" % url)

    def exchange(self, message, headers, timeout):
        if self.url.scheme == "http+unix":
            self.open = _Unix(urllib.parse.unquote(self.url.netloc or self.url.path), timeout)
            path = "/mcp"
        else:
            kind = (http.client.HTTPSConnection if self.url.scheme == "https"
                    else http.client.HTTPConnection)
            self.open = kind(self.url.netloc, timeout=timeout)
            path = self.url.path or "/mcp"
        headers = {"Content-Type": "application/json", "MCP-Protocol-Version": REVISION,
                   "Accept": "application/json, text/event-stream", **headers}
        if self.token:
            headers["Authorization"] = "Bearer " + self.token
        try:
            with contextlib.closing(self.open) as connection:
                connection.request("POST", path, json.dumps(message).encode(), headers)
                response = connection.getresponse()
                if response.status in (401, 403):
                    raise ServiceError("the service refuses this token")
                if not response.headers.get_content_type().endswith("event-stream"):
                    yield json.loads(response.read(MESSAGE_MAX) or b"null")
                    return
                while line := response.readline(MESSAGE_MAX):
                    if line.startswith(b"data: "):
                        yield json.loads(line[6:])
        except (OSError, ValueError, http.client.HTTPException) as e:
            raise ServiceError(str(e) or type(e).__name__) from e

    def cancel(self, number):
        """The end of the connection is the cancellation."""

    def close(self):
        if self.open:
            with contextlib.suppress(OSError, AttributeError):
                self.open.sock.shutdown(socket.SHUT_RDWR)
            self.open.close()


# ---- clients ----

class Client:
    """place: the path of a unix socket, an HTTP URL, http+unix://PATH, or "private" for a service
    of one's own. None: $MCP_PYTHON_SOCKET, the user's or the machine's service, or a private one.
    token: for HTTP. program: of a private service."""

    def __init__(self, place=None, token=None, program=None):
        self._number = 0
        if place and "://" in place:
            self._wire = _Http(place, token)
        else:
            self._wire = _Lines(place, program)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def close(self):
        """Ends the connection; a call that runs is cancelled."""
        self._wire.close()

    def request(self, method, params, name=None, on_output=None, capabilities=None, headers=None,
                timeout=None):
        """The result of any request of MCP."""
        self._number += 1
        meta = {META + "protocolVersion": REVISION, META + "clientCapabilities": capabilities or {},
                META + "clientInfo": {"name": "mcp_python", "version": "0.1.0"}}
        if on_output:
            meta.update({"progressToken": self._number, "mcp-pythond/stream": True})
        message = {"jsonrpc": "2.0", "id": self._number, "method": method,
                   "params": {**params, "_meta": meta}}
        headers = {"Mcp-Method": method, **({"Mcp-Name": name} if name else {}), **(headers or {})}
        try:
            for got in self._wire.exchange(message, headers, timeout):
                if "method" in got:
                    output = got.get("params", {}).get("_meta", {}).get("mcp-pythond/output")
                    if output and on_output:
                        on_output(output["stream"], output["text"])
                elif got.get("id") in (self._number, None):
                    if not isinstance(got.get("result"), dict):
                        raise ServiceError((got.get("error") or {}).get("message") or repr(got))
                    return got["result"]
        except (KeyboardInterrupt, GeneratorExit):
            self._wire.cancel(self._number)
            raise
        raise ServiceError("the service has closed the connection")

    def call(self, tool, arguments, on_output=None, tools=None, ask=None, timeout=None):
        """Calls any tool of the service; returns Result. tools: name -> function, which the script
        calls as tools.client.NAME(...). ask(prompt): the answer to input(), or None."""
        capabilities, headers = {}, {}
        if tools:
            capabilities["extensions"] = {CLIENT_TOOLS: {"tools": [
                {"name": name, "description": (function.__doc__ or "").strip(),
                 "inputSchema": {"type": "object"}} for name, function in tools.items()]}}
        if ask:
            capabilities["elicitation"] = {}
        if arguments.get("session"):
            headers["Mcp-Param-Session"] = arguments["session"]
        params = {"name": tool, "arguments": arguments}
        while True:
            result = self.request("tools/call", params, tool, on_output, capabilities, headers,
                                  timeout)
            if result.get("resultType") != "input_required":
                return Result(self, result)
            params = {"name": tool, "arguments": arguments,
                      "requestState": result.get("requestState"),
                      "inputResponses": {key: _respond(request, tools or {}, ask) for key, request
                                         in (result.get("inputRequests") or {}).items()}}

    def run(self, script, *, files=None, stdin=None, timeout=None, memory_mb=None,
            dependencies=None, on_output=None, tools=None, ask=None, **more):
        """Runs a script in a fresh process. files: path -> bytes, text, or a File of an earlier
        result. timeout: seconds of the script. on_output(stream, text) gets output as it comes.
        more: any argument of run_script."""
        arguments = _arguments({"script": script, "stdin": stdin, "timeout_seconds": timeout,
                                "memory_mb": memory_mb, "dependencies": dependencies, **more}, files)
        return self.call("run_script", arguments, on_output, tools, ask)

    def session(self, **more):
        """Begins a session, whose cells share their variables. more: arguments of run_repl."""
        return Session(self, more)

    def read(self, uri, size=None):
        """The bytes of a kept file."""
        data = self._read_once(uri if size is None or size <= PIECE else
                               "%s?bytes=0-%d" % (uri, PIECE - 1))
        while size is not None and len(data) < size:
            data += self._read_once("%s?bytes=%d-%d" % (uri, len(data),
                                                        min(len(data) + PIECE, size) - 1))
        return data

    def _read_once(self, uri):
        contents = self.request("resources/read", {"uri": uri}, uri).get("contents") or [{}]
        if "blob" in contents[0]:
            return base64.b64decode(contents[0]["blob"])
        return contents[0].get("text", "").encode()


class Session:
    """A session of run_repl. It ends with `with`, or by close()."""

    def __init__(self, client, more):
        self._client, self.handle = client, None
        self._take(client.call("run_repl", _arguments(more, None)).check())

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        with contextlib.suppress(ServiceError):
            self.close()

    def _take(self, result):
        self.handle = result.raw.get("session") or None
        return result

    def run(self, code, *, files=None, timeout=None, on_output=None, tools=None, ask=None, **more):
        """Runs a cell, as Client.run() runs a script."""
        if not self.handle:
            raise ServiceError("the session has ended")
        arguments = _arguments({"session": self.handle, "code": code, "timeout_seconds": timeout,
                                **more}, files)
        return self._take(self._client.call("run_repl", arguments, on_output, tools, ask))

    def close(self):
        if self.handle:
            handle, self.handle = self.handle, None
            self._client.call("run_repl", {"session": handle, "close": True})


def _arguments(given, files):
    # A call that has to be approved is refused, and does not become a job.
    arguments = {"background": False,
                 **{name: value for name, value in given.items() if value is not None}}
    if files:
        arguments["files"] = [
            {"path": path, **({"uri": data.uri} if isinstance(data, File) else
                              {"text": data} if isinstance(data, str) else
                              {"base64": base64.b64encode(data).decode()})}
            for path, data in files.items()]
    return arguments


def _respond(request, tools, ask):
    """The answer to a question of input(), or the result of a tool of this client."""
    params = request.get("params") or {}
    if not request.get("method", "").startswith(CLIENT_TOOLS):
        lines = [line[2:] for line in params.get("message", "").split("\n") if line[:2] == "> "]
        value = ask("\n".join(lines)) if ask else None
        return {"action": "decline"} if value is None else {
            "action": "accept", "content": {"line": str(value)}}
    try:
        value = tools[params["name"]](**(params.get("arguments") or {}))
        return {"content": [{"type": "text", "text": json.dumps(value)}]}
    except Exception as e:	# the script's to handle, as an error of the tool
        return {"isError": True, "content": [{"type": "text", "text": "%s: %s" % (
            type(e).__name__, e)}]}


class AsyncClient:
    """Client for asyncio: each call that runs has a connection and a thread of its own, so calls
    may overlap. A call that is cancelled stops its script."""

    def __init__(self, *args, **more):
        self._make, self._idle, self._busy = (lambda: Client(*args, **more)), [], set()

    async def __aenter__(self):
        return self

    async def __aexit__(self, *exc):
        await self.close()

    async def close(self):
        clients, self._idle = [*self._idle, *self._busy], []
        for client in clients:
            await asyncio.to_thread(client.close)

    async def _with(self, work):
        client = self._idle.pop() if self._idle else await asyncio.to_thread(self._make)
        self._busy.add(client)
        try:
            result = await asyncio.shield(future := asyncio.ensure_future(
                asyncio.to_thread(work, client)))
        except asyncio.CancelledError:
            self._busy.discard(client)
            await asyncio.to_thread(client.close)
            future.add_done_callback(lambda f: f.cancelled() or f.exception())
            raise
        except ServiceError:
            self._busy.discard(client)
            client.close()
            raise
        self._busy.discard(client)
        self._idle.append(client)
        return result

    async def call(self, tool, arguments, **more):
        return await self._with(lambda client: client.call(tool, arguments, **more))

    async def run(self, script, **more):
        return await self._with(lambda client: client.run(script, **more))

    async def read(self, uri, size=None):
        return await self._with(lambda client: client.read(uri, size))

    async def session(self, **more):
        """Begins a session; its cells are `await session.run(code)`."""
        return AsyncSession(self, (await self.call("run_repl", _arguments(more, None))).check())


class AsyncSession:
    """A session of an AsyncClient. It ends with `async with`, or by close()."""

    def __init__(self, client, result):
        self._client, self.handle = client, result.raw.get("session")

    async def __aenter__(self):
        return self

    async def __aexit__(self, *exc):
        with contextlib.suppress(ServiceError):
            await self.close()

    async def run(self, code, *, files=None, timeout=None, on_output=None, tools=None, ask=None,
                  **more):
        if not self.handle:
            raise ServiceError("the session has ended")
        result = await self._client.call("run_repl", _arguments(
            {"session": self.handle, "code": code, "timeout_seconds": timeout, **more}, files),
            on_output=on_output, tools=tools, ask=ask)
        self.handle = result.raw.get("session") or None
        return result

    async def close(self):
        if self.handle:
            handle, self.handle = self.handle, None
            await self._client.call("run_repl", {"session": handle, "close": True})
