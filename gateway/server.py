# SPDX-License-Identifier: Apache-2.0
"""What all dialects share: who the caller is, bounds, log, metrics, health.

The gateway has no authority. What a client presents is passed to the service as the bearer token,
and the service says which tenant that is. Only the one user of a gateway on loopback has a token of
the gateway's own; calls with it go to the service as that user.
"""

import asyncio
import collections
import hashlib
import hmac
import json
import logging
import os
import sys
import time
import traceback
import warnings
import zlib

from aiohttp import BodyPartReader, web
from aiohttp.http_exceptions import HttpProcessingError

from calls import ServiceError

BODY_MAX = 32 << 20		# bytes of a request
BODIES_MAX = 256 << 20		# bytes of one tenant's requests that are here at once
PIECE = 1 << 16			# bytes that are unpacked at once
HEAD_SECONDS = 30		# for the first request of a connection
BODY_RATE = 16 << 10		# bytes a second that a body brings at least, after the same time
PARTS_MAX = 1000		# of a form
FIELDS_MAX = 1 << 20		# bytes of the parts of a form that nobody reads
KNOWN_SECONDS = 10		# for which the service's word on a token is used again
KNOWN_MAX = 4096
RUNS_MAX = 32			# calls of one tenant at the service at once; others wait
WAITING_MAX = 1024		# requests of one tenant that wait or run
LOOK_SECONDS = 0.2		# between two looks whether the client is still there
# What reading a body raises if it is not what its head says: no text of its charset, no gzip, no
# multipart, too deep.
UNREADABLE = (ValueError, LookupError, RecursionError, AssertionError, web.RequestPayloadError,
              HttpProcessingError)
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


class Principal:
    """A tenant, and the token by which this request speaks for it (None: the gateway's user)."""

    def __init__(self, tenant, token):
        self.tenant, self.token = tenant, token


class Gateway:
    def __init__(self, service, own_token=None, is_open=False):
        """own_token: of the one user; None: clients present tokens of the service. is_open:
        requests without the right token are that user's, too."""
        self.service, self.own_token, self.is_open = service, own_token, is_open
        self.key = os.urandom(16)
        self.known = collections.OrderedDict()
        self.tenants = {}
        self.bodies = collections.Counter()	# bytes by tenant
        self.requests = collections.Counter()
        self.seconds = collections.Counter()
        self.runs = collections.Counter()

    # ---- who ----

    async def principal(self, request):
        """Whose request this is. HTTPUnauthorized: nobody's."""
        presented = presented_token(request)
        if self.own_token is None:
            if presented is None:
                raise unauthorized("no token: send it as \"Authorization: Bearer TOKEN\"")
            token = presented
        elif self.is_open or same(presented or "", self.own_token):
            token = None
        else:
            raise unauthorized("the token is missing or is not the gateway's: send it as "
                               "\"Authorization: Bearer TOKEN\"")
        request["tenant"] = await self._tenant(token)
        return Principal(request["tenant"], token)

    async def _tenant(self, token):
        digest = hmac.digest(self.key, octets(token or ""), hashlib.sha256)
        known = self.known.get(digest)
        if known and known[1] > time.monotonic():
            return known[0]
        try:
            answer = await self.service.call("check_environment", {"modules": False}, token)
        except ServiceError as e:
            if e.status in (401, 403):
                raise unauthorized("the service refuses this token") from e
            raise
        tenant = answer.structured.get("tenant")
        if not tenant:
            raise ServiceError(503, answer.text.strip() or "the service does not say whose token "
                               "this is")
        if token and tenant.startswith("uid:"):
            # Then the kernel has told it who we are, and the token counted for nothing.
            raise ServiceError(503, "the service has no tokens: see [auth] token_file")
        self.known[digest] = tenant, time.monotonic() + KNOWN_SECONDS
        while len(self.known) > KNOWN_MAX:
            self.known.popitem(last=False)
        return tenant

    # ---- bounds ----

    def hold(self, request, size):
        """So many more bytes of this request are here until it ends. ServiceError: of its tenant there are
        too many."""
        tenant = request["tenant"]
        if self.bodies[tenant] + size > BODIES_MAX:
            raise ServiceError(503, "too many bytes of one user are on their way")
        self.bodies[tenant] += size
        request["held"] = request.get("held", 0) + size

    def let_go(self, request):
        if held := request.get("held"):
            self.bodies[request["tenant"]] -= held
            self.bodies += collections.Counter()	# without those who have none

    def place(self, tenant):
        """An async context in which a call may run: `async with gateway.place(tenant):`."""
        return Place(self, tenant)

    # ---- what is reported ----

    def metrics(self):
        lines = ["# TYPE mcp_python_gateway_requests_total counter"]
        for (dialect, status), n in sorted(self.requests.items()):
            lines.append('mcp_python_gateway_requests_total{dialect="%s",status="%s"} %d'
                         % (dialect, status, n))
        lines.append("# TYPE mcp_python_gateway_request_seconds_total counter")
        for dialect, seconds in sorted(self.seconds.items()):
            lines.append('mcp_python_gateway_request_seconds_total{dialect="%s"} %.6f'
                         % (dialect, seconds))
        lines.append("# TYPE mcp_python_gateway_waiting gauge")
        lines.append("mcp_python_gateway_waiting %d" % sum(t.n for t in self.tenants.values()))
        return "\n".join(lines) + "\n"


class Waiting:
    """The calls of one tenant."""

    def __init__(self):
        self.n = 0
        self.runs = asyncio.Semaphore(RUNS_MAX)


class Place:
    def __init__(self, gateway, tenant):
        self.gateway, self.tenant = gateway, tenant

    async def __aenter__(self):
        tenants = self.gateway.tenants
        self.waiting = tenants.setdefault(self.tenant, Waiting())
        if self.waiting.n >= WAITING_MAX:
            raise ServiceError(503, "too many requests of one user wait")
        self.waiting.n += 1
        try:
            await self.waiting.runs.acquire()
        except BaseException:
            self._leave()
            raise

    async def __aexit__(self, *exc):
        self.waiting.runs.release()
        self._leave()

    def _leave(self):
        self.waiting.n -= 1
        if self.waiting.n == 0:
            self.gateway.tenants.pop(self.tenant, None)


def octets(text):
    """Bytes of what came in a header, which need not be UTF-8."""
    return text.encode("utf-8", "surrogateescape")


def same(given, secret):
    return hmac.compare_digest(octets(given), octets(secret))


def unauthorized(text):
    return web.HTTPUnauthorized(text=text, headers={"WWW-Authenticate": "Bearer"})


def presented_token(request):
    """The token as one of the ways in which clients send it; None: none."""
    kind, _, value = request.headers.get("Authorization", "").partition(" ")
    if kind.lower() in ("bearer", "token") and value.strip():
        return value.strip()
    for value in (request.headers.get("X-API-Key"), request.query.get("token")):
        if value:
            return value
    return None


def is_foreign(request):
    """Was it sent by a page of another site, or under a name that is not this machine's?"""
    host = request.headers.get("Host", "")
    origin = request.headers.get("Origin")
    if origin and origin.partition("://")[2] != host:
        return True
    peer_is_local = request.app["loopback_only"]
    name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
    return peer_is_local and name not in LOOPBACK


@web.middleware
async def around(request, handler):
    """One line of log for each request, its metrics, and its errors in the dialect's form."""
    gateway, began = request.app["gateway"], time.monotonic()
    dialect = "none"
    status = 500
    try:
        if is_foreign(request):
            raise web.HTTPForbidden(text="requests of other sites are refused")
        resource = request.match_info.route.resource
        dialect = request.app["dialect_of"].get(resource.canonical if resource else "", "none")
        response = await handler(request)
        status = response.status
        return response
    except ServiceError as e:
        status = e.status
        return error_answer(dialect, e.status, str(e))
    except web.HTTPException as e:
        status = e.status
        answer = error_answer(dialect, e.status, e.text or e.reason)
        for name in ("WWW-Authenticate", "Allow"):
            if name in e.headers:
                answer.headers[name] = e.headers[name]
        return answer
    except asyncio.CancelledError:
        status = 499
        raise
    except ConnectionError:		# the client has gone
        status = 499
        raise
    except UNREADABLE as e:
        status = 400
        return error_answer(dialect, 400, "the request cannot be read: %s" % (e or type(e).__name__))
    except Exception as e:
        traceback.print_exc()
        return error_answer(dialect, 500, "a mistake of the gateway: %s" % type(e).__name__)
    finally:
        gateway.let_go(request)
        seconds = time.monotonic() - began
        gateway.requests[dialect, status] += 1
        gateway.seconds[dialect] += seconds
        # The path alone: a query may have a token.
        print("request dialect=%s method=%s path=%.200r status=%d ms=%d"
              % (dialect, request.method, request.path, status, seconds * 1000),
              file=sys.stderr, flush=True)


def error_answer(dialect, status, text):
    """An error as the clients of the dialect read it."""
    body = {"message": text, "error": text, "code": status}
    if dialect == "librechat":
        body = {"error": text, "message": text}
    if dialect == "jupyter":
        body = {"message": text, "reason": None}
    return web.json_response(body, status=status)


async def healthz(request):
    return web.json_response({"status": "ok"})


async def readyz(request):
    """Does the service answer? It may refuse: then it is there."""
    try:
        await request.app["gateway"].service.request("server/discover", {})
    except ServiceError as e:
        if e.status not in (400, 401, 403):
            return web.json_response({"status": "service away", "message": str(e)}, status=503)
    return web.json_response({"status": "ok"})


async def metrics(request):
    return web.Response(text=request.app["gateway"].metrics(),
                        headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})


async def while_connected(request, work):
    """Awaits this coroutine; cancels it if the client goes. aiohttp before 3.9 does not say so."""
    task = asyncio.ensure_future(work)
    try:
        while not task.done():
            await asyncio.wait([task], timeout=LOOK_SECONDS)
            if request.transport is None:
                raise asyncio.CancelledError
        return task.result()
    finally:
        task.cancel()


def packing(request):
    """The Content-Encoding of a body; "": none."""
    name = request.headers.get("Content-Encoding", "").strip().lower()
    return "" if name == "identity" else name


def refuse_packed(request):
    """Forms are not packed by any client."""
    if packing(request):
        raise web.HTTPUnsupportedMediaType(text="a form has no Content-Encoding here")


async def form_files(request):
    """The parts of a form that are named "file". aiohttp has no bound for the others."""
    refuse_packed(request)
    form, parts, size = await request.multipart(), 0, 0
    while part := await next_part(form):
        parts += 1
        if parts > PARTS_MAX:
            raise web.HTTPBadRequest(text="the form has more than %d parts" % PARTS_MAX)
        if not isinstance(part, BodyPartReader):
            raise web.HTTPBadRequest(text="a part of the form is a form")
        if part.name == "file":
            yield part
        while not part.at_eof():
            size += len(await part.read_chunk(PIECE))
            if size > FIELDS_MAX:
                raise web.HTTPRequestEntityTooLarge(
                    max_size=FIELDS_MAX, actual_size=size, text="the fields of the form are too long")


async def next_part(form):
    try:
        return await form.next()
    except RuntimeError as e:	# the name of a charset
        raise web.HTTPBadRequest(text="the form cannot be read: %s" % e) from e


async def body_pieces(request):
    """The pieces of a body, unpacked. aiohttp would unpack without a bound, and before anybody has asked for a
    token: a few hundred bytes can be hundreds of MiB."""
    if not packing(request):
        async for piece in request.content.iter_any():
            yield piece
        return
    if packing(request) not in ("gzip", "deflate"):
        raise web.HTTPUnsupportedMediaType(text="the Content-Encoding is not gzip or deflate")
    unpacker = zlib.decompressobj(zlib.MAX_WBITS + 32)	# the head says which
    try:
        async for piece in request.content.iter_any():
            while piece and not unpacker.eof:
                yield unpacker.decompress(piece, PIECE)
                piece = unpacker.unconsumed_tail
        yield unpacker.flush()
    except zlib.error as e:
        raise web.HTTPBadRequest(text="the body is not %s: %s" % (packing(request), e)) from e
    if not unpacker.eof:
        raise web.HTTPBadRequest(text="the body ends too early")


async def whole_body(request):
    """The bytes of a body, which count for its tenant until the request has been answered."""
    body = bytearray()
    async for piece in body_pieces(request):
        body += piece
        if len(body) > BODY_MAX:
            raise web.HTTPRequestEntityTooLarge(max_size=BODY_MAX, actual_size=len(body))
        request.app["gateway"].hold(request, len(piece))
    return bytes(body)


async def json_body(request):
    """The object in the body, whatever its declared type (one client says text/plain)."""
    try:
        text = (await whole_body(request)).decode(request.charset or "utf-8")
        body = json.loads(text) if text else {}
    except (ValueError, UnicodeDecodeError) as e:
        raise web.HTTPBadRequest(text="the body is not JSON: %s" % e) from e
    if not isinstance(body, dict):
        raise web.HTTPBadRequest(text="the body is not a JSON object")
    return body


def field(body, name, kind, default=None, required=False):
    """A member of a JSON object; HTTPBadRequest names it if it is wrong."""
    value = body.get(name)
    if value is None:
        if required:
            raise web.HTTPBadRequest(text="%s is missing" % name)
        return default
    kinds = kind if isinstance(kind, tuple) else (kind,)
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        raise web.HTTPBadRequest(text="%s is not of type %s" % (name, kinds[0].__name__))
    return value


def quiet():
    """aiohttp reports requests that break off, and bodies that it cannot unpack, as errors with a
    traceback. What a handler did wrong is reported by `around`. Its warnings have what a client
    wrote in them, and Python keeps each that it shows."""
    logging.getLogger("aiohttp").setLevel(logging.CRITICAL)
    warnings.simplefilter("ignore")


async def end_silent(server):
    """Ends connections from which no request comes, and bodies that come too slowly. aiohttp bounds the
    time between two requests alone."""
    silent, slow = {}, {}
    while True:
        await asyncio.sleep(HEAD_SECONDS / 4)
        now = time.monotonic()
        silent = {c: silent.get(c, now) for c in server.connections
                  if c._current_request is None and not c._keepalive}
        for connection, began in silent.items():
            if now - began > HEAD_SECONDS and connection.transport:
                connection.transport.abort()
        # While nobody reads them, the client is not to blame.
        bodies = [c._current_request.content for c in server.connections
                  if c._current_request is not None and not c._reading_paused]
        slow = {body: slow.get(body, now) for body in bodies if not body.is_eof()}
        for body, began in slow.items():
            if now - began > HEAD_SECONDS + body.total_bytes / BODY_RATE and not body.exception():
                body.set_exception(web.HTTPRequestTimeout(text="the body comes too slowly"))


def application(gateway, dialects, loopback_only):
    """dialects: name -> module with routes(app)."""
    quiet()
    app = web.Application(middlewares=[around], client_max_size=BODY_MAX)
    app["gateway"], app["loopback_only"], app["dialect_of"] = gateway, loopback_only, {}
    for name, module in dialects.items():
        before = set(app.router.resources())
        module.routes(app)
        for resource in app.router.resources():
            if resource not in before:
                app["dialect_of"][resource.canonical] = name
    app.router.add_get("/healthz", healthz)
    app.router.add_get("/readyz", readyz)
    app.router.add_get("/metrics", metrics)
    return app
