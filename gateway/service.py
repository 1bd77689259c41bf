# SPDX-License-Identifier: Apache-2.0
"""The gateway's client of the service: MCP of revision 2026-07-28 over HTTP.

Each call is one request with the caller's own token. Nothing is kept between calls: sessions, jobs
and files have handles of the service. A caller that gives up closes its request, and the service
cancels the call.
"""

import base64
import json

import aiohttp

REVISION = "2026-07-28"
META = "io.modelcontextprotocol/"
ANSWER_MAX = 64 << 20	# bytes of one answer, its output included


class ServiceError(Exception):
    """The service did not answer the call. status: an HTTP status that says why."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


class Answer:
    """The answer of a tool."""

    def __init__(self, result):
        self.structured = result.get("structuredContent") or {}
        self.content = result.get("content") or []
        self.status = self.structured.get("status", "error" if result.get("isError") else "ok")

    @property
    def text(self):
        return "".join(c.get("text", "") for c in self.content if c.get("type") == "text")

    @property
    def refused(self):
        """Nothing ran, and the text says why."""
        return "exit_code" not in self.structured or (
            self.structured["exit_code"] is None and self.status != "ok"
            and not self.structured.get("duration_ms"))


async def bounded(response):
    """The pieces of a body; ServiceError if it is too long."""
    size = 0
    async for piece in response.content.iter_any():
        size += len(piece)
        if size > ANSWER_MAX:
            raise ServiceError(502, "the answer is longer than %d MiB" % (ANSWER_MAX >> 20))
        yield piece


class Service:
    """place: the path of a unix socket, or the address of MCP, such as http://127.0.0.1:8080/mcp."""

    def __init__(self, place, version="0"):
        self.is_path = not place.startswith(("http://", "https://"))
        self.place = place
        self.url = "http://localhost/mcp" if self.is_path else place
        self.client = {"name": "mcp-python-gateway", "version": version}
        self.session = None
        self.count = 0

    async def __aenter__(self):
        connector = (aiohttp.UnixConnector(self.place, limit=0) if self.is_path
                     else aiohttp.TCPConnector(limit=0))
        self.session = aiohttp.ClientSession(
            connector=connector, timeout=aiohttp.ClientTimeout(total=None, sock_connect=10))
        return self

    async def __aexit__(self, *exc):
        await self.session.close()

    # ---- messages ----

    def _message(self, method, params, capabilities, meta):
        self.count += 1
        return {"jsonrpc": "2.0", "id": self.count, "method": method,
                "params": {**params, "_meta": {
                    META + "protocolVersion": REVISION, META + "clientInfo": self.client,
                    META + "clientCapabilities": capabilities, **meta}}}

    async def request(self, method, params, token=None, name=None, on_output=None,
                      capabilities=None, headers=None):
        """The result of one request. on_output(stream, text) gets output as it arrives."""
        meta = {"progressToken": 1, "mcp-pythond/stream": True} if on_output else {}
        headers = {"Accept": "application/json, text/event-stream",
                   "MCP-Protocol-Version": REVISION, "Mcp-Method": method, **(headers or {})}
        if name:
            headers["Mcp-Name"] = name
        if token:
            headers["Authorization"] = "Bearer " + token
        message = self._message(method, params, capabilities or {}, meta)
        try:
            async with self.session.post(self.url, json=message, headers=headers) as response:
                if response.status in (401, 403):
                    raise ServiceError(response.status, "the service refuses these credentials")
                if response.content_type == "text/event-stream":
                    last = await self._events(response, on_output)
                else:
                    last = json.loads(b"".join([p async for p in bounded(response)]) or b"null")
        except (aiohttp.ClientError, OSError, ValueError) as e:
            raise ServiceError(502, "the service cannot be reached: %s" % (e or type(e).__name__)
                               ) from e
        if not isinstance(last, dict) or not isinstance(last.get("result"), dict):
            error = last.get("error") if isinstance(last, dict) else None
            text = (error or {}).get("message") or "the service answered HTTP %d" % response.status
            raise ServiceError(503 if response.status in (429, 503) else 400, text)
        return last["result"]

    async def _events(self, response, on_output):
        """Reads a stream; returns its last message."""
        rest, last = b"", None
        async for piece in bounded(response):
            rest += piece
            *events, rest = rest.split(b"\n\n")
            for event in events:
                data = b"".join(line[6:] for line in event.split(b"\n")
                                if line.startswith(b"data: "))
                if not data:
                    continue
                last = json.loads(data)
                output = last.get("params", {}).get("_meta", {}).get("mcp-pythond/output")
                if output and on_output:
                    on_output(output["stream"], output["text"])
        return last

    # ---- what the dialects use ----

    async def call(self, tool, arguments, token=None, on_output=None, on_requests=None,
                   client_tools=None):
        """Calls a tool. on_requests(requests) answers what the service asks meanwhile: questions
        of input() and calls of client_tools, the list of tools that a script may call."""
        capabilities, headers = {}, {}
        if on_requests:
            capabilities["elicitation"] = {}
        if client_tools:
            capabilities["extensions"] = {
                "io.github.mcp-pythond/client-tools": {"tools": client_tools}}
        if arguments.get("session"):
            headers["Mcp-Param-Session"] = arguments["session"]
        params = {"name": tool, "arguments": arguments}
        while True:
            result = await self.request("tools/call", params, token, tool, on_output,
                                        capabilities, headers)
            if result.get("resultType") != "input_required":
                return Answer(result)
            params = {"name": tool, "arguments": arguments,
                      "requestState": result.get("requestState"),
                      "inputResponses": await on_requests(result.get("inputRequests") or {})}

    async def files(self, token=None):
        """The files that are kept for this caller."""
        listed, cursor = [], None
        for _ in range(64):
            params = {"cursor": cursor} if cursor else {}
            page = await self.request("resources/list", params, token)
            listed += page.get("resources", [])
            cursor = page.get("nextCursor")
            if not cursor:
                break
        return listed

    async def read(self, uri, token=None):
        """The bytes of a kept file, or a part of it by "?bytes="."""
        result = await self.request("resources/read", {"uri": uri}, token, uri)
        contents = result.get("contents") or [{}]
        if "blob" in contents[0]:
            return base64.b64decode(contents[0]["blob"])
        return contents[0].get("text", "").encode("utf-8", "surrogateescape")

    async def read_pieces(self, uri, size, token=None, piece=4 << 20):
        """Yields the bytes of a kept file of this size."""
        if size <= piece:
            yield await self.read(uri, token)
            return
        for at in range(0, size, piece):
            yield await self.read("%s?bytes=%d-%d" % (uri, at, min(at + piece, size) - 1), token)
