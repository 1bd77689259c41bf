# SPDX-License-Identifier: Apache-2.0
"""The gateway's client of the service: MCP of revision 2026-07-28 over HTTP.

Each call is one request with the caller's own token. Nothing is kept between calls: sessions, jobs
and files have handles of the service. A caller that gives up closes its request, and the service
cancels the call.
"""

import base64
import json
import urllib.parse

import aiohttp

from calls import ANSWER_MAX, REVISION, Calls, ServiceError

# A connection that has waited may be closed by the service just when it is used again. These calls change
# nothing that a second one would not find done, so they are made again on another connection.
REPEATED = ("check_environment",)

async def bounded(response):
    """The pieces of a body; ServiceError if it is too long."""
    size = 0
    async for piece in response.content.iter_any():
        size += len(piece)
        if size > ANSWER_MAX:
            raise ServiceError(502, "the answer is longer than %d MiB" % (ANSWER_MAX >> 20))
        yield piece


class Service(Calls):
    """place: the path of a unix socket, or the address of MCP, such as http://127.0.0.1:8080/mcp."""

    def __init__(self, place, version="0"):
        super().__init__("mcp-python-gateway", version)
        self.is_path = not place.startswith(("http://", "https://"))
        self.place = place
        self.url = "http://localhost/mcp" if self.is_path else place
        self.session = None

    async def __aenter__(self):
        connector = (aiohttp.UnixConnector(self.place, limit=0) if self.is_path
                     else aiohttp.TCPConnector(limit=0))
        self.session = aiohttp.ClientSession(
            connector=connector, timeout=aiohttp.ClientTimeout(total=None, sock_connect=10))
        return self

    async def __aexit__(self, *exc):
        await self.session.close()

    async def request(self, method, params, token=None, name=None, on_output=None,
                      capabilities=None, headers=None):
        """The result of one request. on_output(stream, text) gets output as it arrives."""
        meta = self.streaming if on_output else {}
        headers = {"Accept": "application/json, text/event-stream",
                   "MCP-Protocol-Version": REVISION, "Mcp-Method": method, **(headers or {})}
        if name:
            headers["Mcp-Name"] = name
        if token:
            headers["Authorization"] = "Bearer " + token
        message = self.message(method, params, capabilities or {}, meta)
        asked = params.get("arguments") or {}
        again = method != "tools/call" or name in REPEATED or (asked.get("close") and "code" not in asked)
        while True:
            try:
                status, last = await self._answer(message, headers, on_output)
                break
            except (aiohttp.ClientError, OSError, ValueError) as e:
                if again and isinstance(e, (aiohttp.ServerDisconnectedError, ConnectionError)):
                    again = False
                    continue
                raise ServiceError(502, "the service cannot be reached: %s" % (
                    str(e) or type(e).__name__)) from e
        return self.result_of(last, "HTTP %d" % status, 503 if status in (429, 503) else 400)

    async def _answer(self, message, headers, on_output):
        """(the HTTP status, the last message) of one request."""
        async with self.session.post(self.url, json=message, headers=headers) as response:
            if response.status in (401, 403):
                raise ServiceError(response.status, "the service refuses these credentials")
            if response.status == 413:
                raise ServiceError(413, "the request is too long for the service")
            if response.content_type == "text/event-stream":
                return response.status, await self._events(response, on_output)
            body = b"".join([p async for p in bounded(response)])
            return response.status, json.loads(body or b"null")

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
                self.take_output(last, on_output)
        return last

    # ---- files ----

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

    async def put(self, name, data, token=None):
        """Stores bytes under a link for one upload; returns the uri. ServiceError: no links."""
        offered = json.loads(await self.read("mcp-python://upload/" + name, token))
        place = urllib.parse.urlsplit(offered["http_url"])
        url = urllib.parse.urlsplit(self.url)._replace(path=place.path, query=place.query).geturl()
        async with self.session.put(url, data=data) as response:
            if response.status >= 300:
                raise ServiceError(413, "the service answered HTTP %d" % response.status)
        return offered["uri"]
