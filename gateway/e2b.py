# SPDX-License-Identifier: Apache-2.0
"""The dialect of E2B: sandboxes, their life, and code contexts. Commands and files are in
e2b_envd.py.

A sandbox is a volume of its tenant. Contexts are sessions of run_repl and commands are scripts,
all with that volume. The gateway remembers which sandboxes there are, so a restart ends them. What
it has left in a volume goes when the next sandbox takes that volume: they have numbers.
"""

import asyncio
import base64
import contextlib
import datetime
import hashlib
import json
import secrets
import string
import sys
import time
import traceback
import urllib.parse

from aiohttp import web

import e2b_envd
import e2b_jail
from calls import ServiceError
from kernel import Kernel, SessionEnded
from server import field, json_body, same, while_connected

VERSION = "0.5.7"		# of envd: closes stdin, takes uploads as octets, has no metadata of files
SANDBOXES_MAX = 32		# of one tenant
ALL_MAX = 1024
CONTEXTS_MAX = 8		# of one sandbox
SECONDS, SECONDS_OLD = 300, 15	# without "timeout": of /v2 and of the older path
SECONDS_MAX = 24 * 3600
METADATA_MAX = 64		# members, of 1 KiB each
LISTED_MAX = 100
KEEPALIVE_SECONDS = 20
GONE = "The sandbox was not found"
LETTERS = string.ascii_lowercase + string.digits
MIMES = {"text/html": "html", "text/markdown": "markdown", "image/svg+xml": "svg",
         "image/png": "png", "image/jpeg": "jpeg", "application/pdf": "pdf", "text/latex": "latex",
         "application/json": "json", "application/javascript": "javascript", "text/plain": "text"}


def when(seconds):
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).isoformat(
        timespec="milliseconds").replace("+00:00", "Z")


def texts(body, name):
    """A member that is an object of strings."""
    value = field(body, name, dict, {})
    if len(value) > METADATA_MAX or not all(
            isinstance(v, str) and len(k) + len(v) <= 1024 for k, v in value.items()):
        raise web.HTTPBadRequest(text="%s is not an object of at most %d short strings"
                                 % (name, METADATA_MAX))
    return value


def variables(body, name):
    """A member that is an object of variables of the environment."""
    found = texts(body, name)
    if not all(k and "=" not in k and "\0" not in k + v for k, v in found.items()):
        raise web.HTTPBadRequest(text="%s has a name or value that no variable can have" % name)
    return found


def seconds_of(body, otherwise):
    value = field(body, "timeout", (int, float), otherwise)
    if not 0 <= value <= SECONDS_MAX:
        raise web.HTTPBadRequest(text="timeout is not a number of seconds of at most %d"
                                 % SECONDS_MAX)
    return value


class Sandbox:
    def __init__(self, gateway, principal, body, seconds):
        self.gateway, self.tenant, self.token = gateway, principal.tenant, principal.token
        self.template = field(body, "templateID", str, "base")
        self.metadata, self.envs = texts(body, "metadata"), variables(body, "envVars")
        resume = field(body, "autoResume", dict, {})
        self.pauses, self.resumes = bool(body.get("autoPause")), bool(resume.get("enabled"))
        self.id = "".join(secrets.choice(LETTERS) for _ in range(20))
        self.access, self.traffic = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
        self.began, self.ends = time.time(), time.time() + seconds
        self.paused, self.ended = False, False
        self.contexts, self.processes, self.pid = {}, {}, 0
        self.calls = set()		# what runs in it, but for commands
        self.slots = gateway.slots.setdefault(self.tenant, set())
        self.slot = next(n for n in range(SANDBOXES_MAX + 1) if n not in self.slots)
        self.slots.add(self.slot)
        self.volume = "e2b-%s-%d" % (gateway.name, self.slot)

    def place(self):
        return self.gateway.place(self.tenant)

    def check(self):
        """ServiceError: it has ended, or is paused, since the request came."""
        if self.ended or self.paused:
            raise ServiceError(502, GONE)

    async def during(self, work):
        """Awaits what ends with the sandbox at the latest."""
        call = asyncio.ensure_future(work)
        self.calls.add(call)
        try:
            return await call
        except asyncio.CancelledError:
            if call.cancelled():
                self.check()
            raise
        finally:
            self.calls.discard(call)
            call.cancel()

    async def script(self, script, on_output=None, **more):
        """Runs a script that has the sandbox's files."""
        return await self.gateway.service.call("run_script", {
            "script": script, "volume": self.volume, "text_tokens": 100, **more},
            self.token, on_output)

    async def files(self, do, path, data=None, **given):
        """Has e2b_jail.py do something with files; its answer. data: a piece to write. Takes no
        place, so that it works beside commands that have all of them."""
        self.check()
        return await self.during(self.do(do, path, data, **given))

    async def do(self, do, path, data=None, **given):
        more = {"files": [{"path": "piece", "base64": base64.b64encode(data).decode()}]} \
            if data is not None else {}
        answer = await self.script(e2b_jail.files(do, path, e2b_envd.ENTRIES_MAX, given), **more)
        try:
            if answer.status == "ok":
                return json.loads(answer.structured["stdout"])
        except (KeyError, ValueError):
            pass
        return {"error": "ENOSPC" if answer.status == "disk_limit" else "EIO",
                "message": answer.text.strip() or answer.status}

    # ---- its life ----

    async def begin(self):
        """Makes the volume, or takes one that a sandbox has left."""
        async with self.place():
            found = await self.do("clear", e2b_jail.VOLUME)
        if found.get("error") == "ENOSPC":
            raise ServiceError(429, "each volume that this user may have is in use: kill a sandbox, "
                               "or have the operator raise [workspace] volumes")
        if "error" in found:
            raise ServiceError(503, found["message"])

    async def stop(self):
        """Ends what runs."""
        running = list(self.processes.values())
        for process in running:
            process.kill()
        calls = [call for call in self.calls if not call.done()]
        for call in calls:
            call.cancel()
        await asyncio.gather(*(p.task for p in running), *calls, return_exceptions=True)

    async def pause(self):
        self.paused = True
        await self.stop()

    async def end(self):
        """Ends it, and leaves its volume empty, so that the service can take it back."""
        if self.ended:
            return
        self.ended = True
        self.gateway.sandboxes.pop(self.id, None)
        try:
            await self.stop()
            for context in list(self.contexts.values()):
                with contextlib.suppress(ServiceError):
                    await context.end()
            found = await self.do("clear", e2b_jail.VOLUME)
            if "error" in found:
                raise ServiceError(503, found["message"])
        except ServiceError as e:
            print("sandbox-not-cleared volume=%s why=%r" % (self.volume, str(e)[:200]),
                  file=sys.stderr, flush=True)
        finally:
            self.slots.discard(self.slot)

    def made(self):
        return {"sandboxID": self.id, "templateID": self.template, "clientID": "mcp-python",
                "envdVersion": VERSION, "envdAccessToken": self.access,
                "trafficAccessToken": self.traffic, "domain": None}

    def model(self):
        return {"sandboxID": self.id, "templateID": self.template, "clientID": "mcp-python",
                "alias": self.template, "metadata": self.metadata, "envdVersion": VERSION,
                "startedAt": when(self.began), "endAt": when(self.ends),
                "state": "paused" if self.paused else "running",
                "cpuCount": 1, "memoryMB": 512, "diskSizeMB": 1024}

    def signed(self, path, do, query):
        """Is this the signature of a link to a file?"""
        user = query.get("username", "")
        parts = [path, do, user, self.access]
        expires = query.get("signature_expiration")
        if expires:
            if not (expires.isascii() and expires.isdigit() and len(expires) < 16) or \
                    int(expires) < time.time():
                return False
            parts.append(expires)
        if ":" in user:		# it could be a part of another path
            return False
        text = ":".join(parts).encode("utf-8", "surrogateescape")
        want = base64.b64encode(hashlib.sha256(text).digest()).decode()
        return same(query.get("signature", ""), "v1_" + want.rstrip("="))


class Context:
    """One session, whose cells run one after another."""

    def __init__(self, sandbox, cwd):
        self.id, self.cwd, self.sandbox = secrets.token_hex(8), cwd, sandbox
        self.kernel = Kernel(sandbox.gateway.service, volume=sandbox.volume)
        self.turn, self.ended, self.cells = asyncio.Lock(), False, set()

    def model(self):
        return {"id": self.id, "language": "python", "cwd": self.cwd}

    async def end(self):
        self.ended = True
        cells = [cell for cell in self.cells if not cell.done()]
        for cell in cells:
            cell.cancel()
        await asyncio.gather(*cells, return_exceptions=True)
        await self.kernel.close(self.sandbox.token)

    async def quietly(self, code):
        await self.kernel.execute(code, self.sandbox.token, lambda *a: None, silent=True)

    async def run(self, code, envs, put):
        """Runs a cell; put(line) for each event."""
        async with self.turn, self.sandbox.place():
            self.sandbox.check()
            if self.ended:
                raise ServiceError(404, "the context was removed")
            await self.run_now(code, envs, put)

    async def run_now(self, code, envs, put):
        if self.kernel.session is None:
            await self.quietly("import os as _os\n_os.environ.update(%r)\n_os.chdir(%r)\ndel _os" % (
                {"HOME": e2b_jail.HOME, "USER": "user", **self.sandbox.envs}, self.cwd))
        if envs:
            await self.quietly("import os as _os\n_e2b = dict(_os.environ)\n"
                               "_os.environ.update(%r)\ndel _os" % envs)
        put({"type": "number_of_executions", "execution_count": self.kernel.count + 1})
        try:
            await self.kernel.execute(code, self.sandbox.token,
                                      lambda kind, content: publish(put, kind, content))
        except SessionEnded as e:
            put({"type": "error", "name": "ContextRestarted", "value": str(e),
                 "traceback": str(e)})
            return
        if envs:
            await self.quietly("import os as _os\n_os.environ.clear()\n"
                               "_os.environ.update(_e2b)\ndel _os, _e2b")


def publish(put, kind, content):
    """An output of Jupyter's as this dialect has it."""
    if kind == "stream":
        put({"type": content["name"], "text": content["text"],
             "timestamp": datetime.datetime.now(datetime.timezone.utc).isoformat()})
    elif kind == "error":
        put({"type": "error", "name": content["ename"], "value": content["evalue"],
             "traceback": "\n".join(content["traceback"])})
    elif kind in ("execute_result", "display_data"):
        shown = {MIMES[m]: v for m, v in content["data"].items() if m in MIMES}
        text = shown.get("text")
        if text and len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
            shown["text"] = text[1:-1]
        put({"type": "result", **({"is_main_result": True} if kind == "execute_result" else {}),
             **shown})


# ---- whose it is ----

async def mine(request):
    """The sandbox of this path, for who presents an API key. HTTPNotFound: not theirs, or none."""
    gateway = request.app["gateway"]
    principal = await gateway.principal(request)
    sandbox = gateway.sandboxes.get(request.match_info["id"])
    if not sandbox or sandbox.tenant != principal.tenant:
        raise web.HTTPNotFound(text="sandbox %.40s was not found" % request.match_info["id"])
    return sandbox


def presented(request, sandbox, traffic):
    return same(request.headers.get("X-Access-Token", ""), sandbox.access) or (
        traffic and same(request.headers.get("E2B-Traffic-Access-Token", ""), sandbox.traffic))


def inside(request, signed=None, traffic=False):
    """The sandbox that this request of the data plane is for. HTTPBadGateway: there is none, or
    the request has not its token. signed: (path, "read" or "write") that a link may be for.
    traffic: the second token, which is for code alone, is right, too."""
    gateway = request.app["gateway"]
    sandbox = gateway.sandboxes.get(request.headers.get("E2b-Sandbox-Id", ""))
    if not sandbox or not (presented(request, sandbox, traffic) or (
            signed and sandbox.signed(*signed, request.query))):
        raise web.HTTPBadGateway(text=GONE)
    request["tenant"] = sandbox.tenant
    if sandbox.paused:
        if not sandbox.resumes:
            raise web.HTTPBadGateway(text=GONE)
        sandbox.paused = False
        sandbox.ends = time.time() + SECONDS
    return sandbox


# ---- control plane ----

async def create(request, otherwise=SECONDS):
    gateway = request.app["gateway"]
    principal = await gateway.principal(request)
    body = await json_body(request)
    if body.get("mcp") or body.get("volumeMounts"):
        raise web.HTTPBadRequest(text="mcp and volumeMounts are not served here")
    count = sum(s.tenant == principal.tenant for s in gateway.sandboxes.values())
    if count >= SANDBOXES_MAX or len(gateway.sandboxes) >= ALL_MAX:
        raise ServiceError(429, "there are too many sandboxes: kill one")
    sandbox = Sandbox(gateway, principal, body, seconds_of(body, otherwise))
    gateway.sandboxes[sandbox.id] = sandbox
    try:
        await sandbox.begin()
    except BaseException:
        gateway.sandboxes.pop(sandbox.id, None)
        sandbox.slots.discard(sandbox.slot)
        raise
    return web.json_response(sandbox.made(), status=201)


async def create_old(request):
    return await create(request, SECONDS_OLD)


async def connect(request):
    sandbox = await mine(request)
    seconds = seconds_of(await json_body(request), SECONDS)
    was, sandbox.paused = sandbox.paused, False
    sandbox.ends = max(sandbox.ends, time.time() + seconds)
    return web.json_response(sandbox.made(), status=201 if was else 200)


async def look(request):
    return web.json_response((await mine(request)).model())


async def listing(request):
    gateway = request.app["gateway"]
    tenant = (await gateway.principal(request)).tenant
    found = [s for s in gateway.sandboxes.values() if s.tenant == tenant]
    states = [s for s in request.query.get("state", "").split(",") if s]
    if states:
        found = [s for s in found if s.model()["state"] in states]
    wanted = dict(urllib.parse.parse_qsl(request.query.get("metadata", "")))
    found = [s for s in found if wanted.items() <= s.metadata.items()]
    found.sort(key=lambda s: s.began, reverse=request.query.get("order") != "asc")
    try:
        limit = min(int(request.query.get("limit") or LISTED_MAX), LISTED_MAX)
        at = int(request.query.get("nextToken") or 0)
        if limit < 1 or at < 0:
            raise ValueError
    except ValueError as e:
        raise web.HTTPBadRequest(text="limit or nextToken is not a number") from e
    page = found[at:at + limit]
    headers = {"x-next-token": str(at + limit)} if at + limit < len(found) else {}
    return web.json_response([s.model() for s in page], headers=headers)


async def kill(request):
    await (await mine(request)).end()
    return web.Response(status=204)


async def set_timeout(request):
    sandbox = await mine(request)
    sandbox.ends = time.time() + seconds_of(await json_body(request), SECONDS)
    return web.Response(status=204)


async def pause(request):
    sandbox = await mine(request)
    if sandbox.paused:
        raise web.HTTPConflict(text="sandbox %s is paused already" % sandbox.id)
    await sandbox.pause()
    return web.Response(status=204)


async def metrics(request):
    await mine(request)
    return web.json_response([])


async def unsupported(request):
    await request.app["gateway"].principal(request)
    raise web.HTTPNotImplemented(
        text="%.80s is not served here: see doc/doors.md, \"E2B\"" % request.path)


# ---- code contexts ----

async def execute(request):
    sandbox = inside(request, traffic=True)
    body = await json_body(request)
    code, language = field(body, "code", str, required=True), field(body, "language", str)
    wanted, envs = field(body, "context_id", str), variables(body, "env_vars")
    if language and wanted:
        raise web.HTTPBadRequest(text="context_id and language exclude each other")
    if language and language not in ("python", "python3"):
        raise web.HTTPBadRequest(text="language %.40r is not python" % language)
    if wanted:
        context = context_of(sandbox, wanted)
    else:
        context = sandbox.contexts.get("default") or add_context(sandbox, e2b_jail.HOME, "default")
    response = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
    lines, done = asyncio.Queue(), object()

    def fail(text):
        lines.put_nowait({"type": "error", "name": "ServiceError", "value": text, "traceback": text})

    async def work():
        try:
            await context.run(code, envs, lines.put_nowait)
        except ServiceError as e:
            fail(str(e))
        except asyncio.CancelledError:
            fail("the cell was interrupted")
            raise
        finally:
            lines.put_nowait(done)

    async def send():
        await response.prepare(request)
        while True:
            try:
                line = await asyncio.wait_for(lines.get(), KEEPALIVE_SECONDS)
            except asyncio.TimeoutError:
                line = {"type": "keepalive"}
            if line is done:
                break
            await response.write(json.dumps(line).encode() + b"\n")
        await response.write(b'{"type":"end_of_execution"}\n')
        await response.write_eof()
    sandbox.check()
    task = asyncio.ensure_future(work())
    for running in (context.cells, sandbox.calls):
        running.add(task)
        task.add_done_callback(running.discard)
    try:
        await while_connected(request, send())
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
    return response


def add_context(sandbox, cwd, name=None):
    sandbox.check()
    if len(sandbox.contexts) >= CONTEXTS_MAX:
        raise ServiceError(429, "the sandbox has too many contexts: remove one")
    context = Context(sandbox, cwd)
    context.id = name or context.id
    sandbox.contexts[context.id] = context
    return context


def context_of(sandbox, name):
    context = sandbox.contexts.get(name)
    if not context:
        raise web.HTTPNotFound(text="context %.40s was not found" % name)
    return context


async def contexts_add(request):
    sandbox = inside(request, traffic=True)
    body = await json_body(request)
    language, cwd = field(body, "language", str, "python"), field(body, "cwd", str, e2b_jail.HOME)
    if language not in ("python", "python3"):
        raise web.HTTPBadRequest(text="language %.40r is not python" % language)
    if "\0" in cwd:
        raise web.HTTPBadRequest(text="cwd is not a path")
    found = await sandbox.files("stat", cwd)
    if not found.get("is_folder"):
        raise web.HTTPBadRequest(text="cwd: %s" % found.get("message", "it is not a directory"))
    return web.json_response(add_context(sandbox, found["entry"]["path"]).model())


async def contexts_list(request):
    return web.json_response([c.model() for c in inside(request, traffic=True).contexts.values()])


async def contexts_remove(request):
    sandbox = inside(request, traffic=True)
    context = context_of(sandbox, request.match_info["context"])
    del sandbox.contexts[context.id]
    await context.end()
    return web.json_response({})


async def contexts_restart(request):
    sandbox = inside(request, traffic=True)
    context = context_of(sandbox, request.match_info["context"])
    await context.kernel.close(sandbox.token)
    context.kernel.count = 0
    return web.json_response({})


async def health(request):
    inside(request, traffic=True)
    return web.Response(status=204)


async def reap(app):
    """Ends or pauses sandboxes whose time is over."""
    ending = set()

    async def one(sandbox):
        try:
            await (sandbox.pause() if sandbox.pauses else sandbox.end())
        except Exception:	# of one sandbox; the others have to end, too
            traceback.print_exc()

    async def run():
        while True:
            await asyncio.sleep(0.5)
            for sandbox in list(app["gateway"].sandboxes.values()):
                if not sandbox.paused and sandbox.ends <= time.time():
                    task = asyncio.create_task(one(sandbox))
                    ending.add(task)
                    task.add_done_callback(ending.discard)
    task = asyncio.create_task(run())
    yield
    task.cancel()


async def end_all(app):
    await asyncio.gather(*(s.end() for s in list(app["gateway"].sandboxes.values())))


def routes(app):
    app["gateway"].sandboxes, app["gateway"].slots = {}, {}
    app.cleanup_ctx.append(reap)
    app.on_shutdown.append(end_all)
    add = app.router
    add.add_post("/sandboxes", create_old)
    add.add_post("/v2/sandboxes", create)
    for version in ("", "/v2"):
        add.add_get(version + "/sandboxes", listing)
        add.add_post(version + "/sandboxes/{id}/connect", connect)
    add.add_get("/sandboxes/{id}", look)
    add.add_delete("/sandboxes/{id}", kill)
    add.add_post("/sandboxes/{id}/timeout", set_timeout)
    add.add_post("/sandboxes/{id}/pause", pause)
    add.add_post("/sandboxes/{id}/resume", connect)
    add.add_get("/sandboxes/{id}/metrics", metrics)
    for path in ("/sandboxes/{id}/{rest:network|snapshots|fork|logs}", "/snapshots", "/volumes",
                 "/volumes/{rest:.*}", "/templates", "/{version:v2|v3}/templates",
                 "/templates/{rest:.*}", "/secrets", "/secrets/{rest:.*}"):
        add.add_route("*", path, unsupported)
    add.add_post("/execute", execute)
    add.add_post("/contexts", contexts_add)
    add.add_get("/contexts", contexts_list)
    add.add_delete("/contexts/{context}", contexts_remove)
    add.add_post("/contexts/{context}/restart", contexts_restart)
    add.add_get("/health", health)
    e2b_envd.routes(add, inside)
