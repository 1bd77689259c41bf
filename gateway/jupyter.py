# SPDX-License-Identifier: Apache-2.0
"""The dialect of Jupyter Server, for clients that want kernels: /api/kernels.

A kernel is a session of run_repl. It starts in milliseconds, and is undone instead of dying when a
cell crashes or breaks a limit. Cells of one kernel run one after another.
"""

import asyncio
import contextlib
import datetime
import uuid

from aiohttp import WSMsgType, web

import jupyter_wire as wire
from kernel import Kernel, SessionEnded
from server import field, json_body
from service import ServiceError

KERNELS_MAX = 32		# of one tenant
ALL_MAX = 4096
SOCKETS_MAX = 16		# of one kernel
QUEUE_MAX = 256			# requests of one kernel that wait
IDLE_SECONDS = 600		# without a socket; then it is closed
PING_SECONDS = 30
SOCKET_BYTES_MAX = 8 << 20	# that wait for a slow reader
MESSAGE_MAX = 16 << 20


def now():
    return datetime.datetime.now(datetime.timezone.utc).isoformat().replace("+00:00", "Z")


class Socket:
    """One WebSocket of a kernel. Messages wait here for a slow reader, up to a bound."""

    def __init__(self, ws, version_1):
        self.ws, self.version_1 = ws, version_1
        self.queue, self.bytes = asyncio.Queue(), 0
        self.answers = {}	# id of an input_request -> future of the value

    def put(self, channel, message):
        data = wire.encode(channel, message, self.version_1)
        self.bytes += len(data)
        if self.bytes > SOCKET_BYTES_MAX:
            self.queue.put_nowait(None)
        else:
            self.queue.put_nowait(data)

    async def write(self):
        """Sends what waits, until the reader is too slow or gone."""
        while (data := await self.queue.get()) is not None:
            self.bytes -= len(data)
            await (self.ws.send_bytes if self.version_1 else self.ws.send_str)(data)
        await self.ws.close(code=1008, message=b"the client reads too slowly")


class Hosted:
    """A kernel with its sockets. Its messages go to all of them, its replies to who asked."""

    def __init__(self, gateway, principal, name):
        self.id, self.name = str(uuid.uuid4()), name
        self.gateway, self.tenant = gateway, principal.tenant
        self.kernel = Kernel(gateway.service, None if name == "python3" else name)
        self.sockets, self.queue = [], asyncio.Queue(QUEUE_MAX)
        self.state, self.active = "starting", now()
        self.left = asyncio.get_running_loop().time()
        self.last_token = principal.token	# of whoever had it last; closes it
        self.running = None
        self.worker = asyncio.create_task(self.work())

    def model(self):
        return {"id": self.id, "name": self.name, "last_activity": self.active,
                "execution_state": self.state, "connections": len(self.sockets)}

    def publish(self, kind, content, parent):
        message = wire.message(kind, content, parent)
        for socket in self.sockets:
            socket.put("iopub", message)

    def say_state(self, state, parent=None):
        self.state, self.active = state, now()
        self.publish("status", {"execution_state": state}, parent)

    # ---- requests ----

    def take(self, socket, channel, message, token):
        """A message of a client. What runs code waits for its turn; the rest is answered now."""
        kind = message["header"].get("msg_type")
        if kind == "input_reply":
            answer = socket.answers.pop(
                (message.get("parent_header") or {}).get("msg_id"), None) or \
                (socket.answers.popitem()[1] if socket.answers else None)
            if answer and not answer.done():
                answer.set_result(str(message["content"].get("value", "")))
            return
        if kind in ("execute_request", "complete_request", "inspect_request"):
            try:
                self.queue.put_nowait((socket, channel, message, token))
            except asyncio.QueueFull:
                self.reply(socket, channel, message, {
                    "status": "error", "ename": "QueueFull", "traceback": [],
                    "evalue": "more than %d requests wait" % QUEUE_MAX})
            return
        self.say_state("busy", message)
        content = self.at_once(kind, message)
        if content is not None:
            self.reply(socket, channel, message, content)
        self.say_state("busy" if self.running else "idle", message)
        if kind == "shutdown_request":
            asyncio.create_task(self.end(token, message["content"].get("restart")))

    def at_once(self, kind, message):
        if kind == "kernel_info_request":
            return self.kernel.info()
        if kind == "is_complete_request":
            return self.kernel.is_complete(message["content"].get("code", ""))
        if kind == "comm_info_request":
            return {"status": "ok", "comms": {}}
        if kind == "history_request":
            return self.kernel.history(message["content"])
        if kind == "interrupt_request":
            self.interrupt()
            return {"status": "ok"}
        if kind == "shutdown_request":
            return {"status": "ok", "restart": bool(message["content"].get("restart"))}
        return None

    def reply(self, socket, channel, request, content):
        kind = request["header"]["msg_type"].replace("_request", "_reply")
        socket.put(channel, wire.message(kind, content, request))

    def interrupt(self):
        if self.running:
            self.running.cancel()

    async def work(self):
        """Runs the requests that wait, one after another."""
        while True:
            socket, channel, message, token = await self.queue.get()
            self.say_state("busy", message)
            self.running = asyncio.create_task(self.one(socket, message, token))
            try:
                content = await self.running
            except asyncio.CancelledError:
                if not self.running.cancelled():
                    self.running.cancel()
                    raise
                content = self.failed("KeyboardInterrupt", "", message)
            except ServiceError as e:
                content = self.failed("ServiceError", str(e), message)
            except Exception as e:	# a mistake of ours must not end the kernel
                content = self.failed(type(e).__name__, str(e), message)
            finally:
                self.running = None
            self.reply(socket, channel, message, content)
            if content["status"] == "error" and message["content"].get("stop_on_error", True):
                self.abort()
            self.say_state("idle", message)

    def failed(self, name, text, message):
        """A failure outside of the cell's own code, shown like one of it."""
        error = {"ename": name, "evalue": text,
                 "traceback": ["%s: %s" % (name, text) if text else name]}
        if message["header"]["msg_type"] == "execute_request":
            self.publish("error", error, message)
        return {"status": "error", "execution_count": self.kernel.count, **error}

    async def one(self, socket, message, token):
        content, kind = message["content"], message["header"]["msg_type"]
        code = field(content, "code", str, "")
        async with self.gateway.place(self.tenant):
            if kind == "complete_request":
                return await self.kernel.complete(code, content.get("cursor_pos", len(code)), token)
            if kind == "inspect_request":
                return await self.kernel.inspect(code, content.get("cursor_pos", len(code)),
                                                 content.get("detail_level", 0), token)
            ask = None
            if content.get("allow_stdin"):
                async def ask(prompt):
                    return await self.ask(socket, prompt, message)
            try:
                return await self.kernel.execute(
                    code, token, lambda kind, content: self.publish(kind, content, message),
                    silent=bool(content.get("silent")), ask=ask,
                    store=content.get("store_history", True),
                    expressions=field(content, "user_expressions", dict, {}))
            except SessionEnded as e:
                self.say_state("restarting")
                return self.failed("KernelRestarted", str(e), message)

    async def ask(self, socket, prompt, parent):
        """The line that the user types; None: nobody is there."""
        if socket not in self.sockets:
            return None
        request = wire.message("input_request", {"prompt": prompt, "password": False}, parent)
        answer = asyncio.get_running_loop().create_future()
        socket.answers[request["header"]["msg_id"]] = answer
        socket.put("stdin", request)
        return await answer

    def abort(self):
        """After an error, what was sent before it does not run."""
        for _ in range(self.queue.qsize()):
            socket, channel, message, _ = self.queue.get_nowait()
            self.say_state("busy", message)
            self.reply(socket, channel, message, {"status": "aborted"})
            self.say_state("idle", message)

    # ---- its life ----

    async def start(self, token):
        async with self.gateway.place(self.tenant):
            await self.kernel.start(token)
        self.say_state("idle")

    async def restart(self, token):
        self.interrupt()
        self.say_state("restarting")
        await self.kernel.restart(token)
        self.say_state("idle")

    async def end(self, token, restart=False):
        if restart:
            await self.restart(token)
            return
        self.worker.cancel()
        self.interrupt()
        self.gateway.kernels.pop(self.id, None)
        self.say_state("dead")
        for socket in self.sockets:
            socket.queue.put_nowait(None)
        with contextlib.suppress(ServiceError):
            await self.kernel.close(token)


# ---- HTTP ----

async def whose(request):
    """(the caller, the kernel). A kernel of somebody else is the same as none."""
    gateway = request.app["gateway"]
    principal = await gateway.principal(request)
    hosted = gateway.kernels.get(request.match_info["id"])
    if not hosted or hosted.tenant != principal.tenant:
        raise web.HTTPNotFound(text="Kernel does not exist: %.64s" % request.match_info["id"])
    return principal, hosted


async def specs(gateway, principal):
    names = ["python3"]
    answer = await gateway.service.call("check_environment", {"modules": False}, principal.token)
    names += [p["name"] for p in answer.structured.get("profiles", [])]
    return {name: {"name": name, "resources": {}, "spec": {
        "language": "python", "argv": [], "env": {}, "interrupt_mode": "message", "metadata": {},
        "display_name": "Python (jailed)" if name == "python3" else "Python (%s)" % name}}
        for name in names}


async def kernelspecs(request):
    gateway = request.app["gateway"]
    found = await specs(gateway, await gateway.principal(request))
    return web.json_response({"default": "python3", "kernelspecs": found})


async def kernels_list(request):
    gateway = request.app["gateway"]
    tenant = (await gateway.principal(request)).tenant
    return web.json_response([h.model() for h in gateway.kernels.values() if h.tenant == tenant])


async def kernels_start(request):
    gateway = request.app["gateway"]
    principal = await gateway.principal(request)
    name = field(await json_body(request), "name", str) or "python3"
    if name != "python3" and name not in await specs(gateway, principal):
        raise web.HTTPNotFound(text="there is no kernel named %.64s" % name)
    mine = sum(h.tenant == principal.tenant for h in gateway.kernels.values())
    if mine >= KERNELS_MAX or len(gateway.kernels) >= ALL_MAX:
        raise web.HTTPServiceUnavailable(text="there are too many kernels: delete one")
    hosted = Hosted(gateway, principal, name)
    gateway.kernels[hosted.id] = hosted
    try:
        await hosted.start(principal.token)
    except BaseException:
        hosted.worker.cancel()
        del gateway.kernels[hosted.id]
        raise
    return web.json_response(hosted.model(), status=201,
                             headers={"Location": "/api/kernels/" + hosted.id})


async def kernel_look(request):
    return web.json_response((await whose(request))[1].model())


async def kernel_delete(request):
    principal, hosted = await whose(request)
    await hosted.end(principal.token)
    return web.Response(status=204)


async def kernel_interrupt(request):
    (await whose(request))[1].interrupt()
    return web.Response(status=204)


async def kernel_restart(request):
    principal, hosted = await whose(request)
    await hosted.restart(principal.token)
    return web.json_response(hosted.model())


async def channels(request):
    principal, hosted = await whose(request)
    if len(hosted.sockets) >= SOCKETS_MAX:
        raise web.HTTPServiceUnavailable(text="the kernel has too many clients")
    ws = web.WebSocketResponse(protocols=(wire.VERSION_1,), heartbeat=PING_SECONDS,
                               max_msg_size=MESSAGE_MAX)
    await ws.prepare(request)
    socket = Socket(ws, ws.ws_protocol == wire.VERSION_1)
    hosted.sockets.append(socket)
    writer = asyncio.create_task(socket.write())
    try:
        async for frame in ws:
            if frame.type not in (WSMsgType.TEXT, WSMsgType.BINARY):
                continue
            try:
                channel, message = wire.decode(frame.data)
            except (ValueError, KeyError, TypeError) as e:
                await ws.close(code=1007, message=("not a message: %s" % e).encode()[:100])
                break
            hosted.take(socket, channel, message, principal.token)
    finally:
        hosted.sockets.remove(socket)
        hosted.left = asyncio.get_running_loop().time()
        for answer in socket.answers.values():
            if not answer.done():
                answer.set_result(None)
        writer.cancel()
        hosted.last_token = principal.token
    return ws


async def about(request):
    return web.json_response({"version": "2.0.0"})


async def api_status(request):
    gateway = request.app["gateway"]
    tenant = (await gateway.principal(request)).tenant
    mine = [h for h in gateway.kernels.values() if h.tenant == tenant]
    return web.json_response({"started": request.app["started"], "kernels": len(mine),
                              "last_activity": max([h.active for h in mine],
                                                   default=request.app["started"]),
                              "connections": sum(len(h.sockets) for h in mine)})


async def reap(app):
    """Closes kernels whose clients have gone without a word."""
    async def run():
        while True:
            await asyncio.sleep(IDLE_SECONDS / 20)
            late = asyncio.get_running_loop().time() - app["idle_seconds"]
            for hosted in list(app["gateway"].kernels.values()):
                if not hosted.sockets and not hosted.running and hosted.left < late:
                    await hosted.end(hosted.last_token)
    task = asyncio.create_task(run())
    yield
    task.cancel()


async def end_all(app):
    """Kernels end before their sockets do: a socket waits for its client."""
    await asyncio.gather(*(hosted.end(hosted.last_token)
                           for hosted in list(app["gateway"].kernels.values())))


def routes(app):
    app["gateway"].kernels = {}
    app["started"], app["idle_seconds"] = now(), IDLE_SECONDS
    app.cleanup_ctx.append(reap)
    app.on_shutdown.append(end_all)
    add = app.router
    add.add_get("/api", about)
    add.add_get("/api/status", api_status)
    add.add_get("/api/kernelspecs", kernelspecs)
    add.add_get("/api/kernels", kernels_list)
    add.add_post("/api/kernels", kernels_start)
    add.add_get("/api/kernels/{id}", kernel_look)
    add.add_delete("/api/kernels/{id}", kernel_delete)
    add.add_post("/api/kernels/{id}/interrupt", kernel_interrupt)
    add.add_post("/api/kernels/{id}/restart", kernel_restart)
    add.add_get("/api/kernels/{id}/channels", channels)
