# SPDX-License-Identifier: Apache-2.0
"""The dialect of Jupyter Server, for clients that want kernels: /api/kernels.

A kernel is a session of run_repl. It starts in milliseconds, and is undone instead of dying when a
cell crashes or breaks a limit. Cells of one kernel run one after another.
"""

import asyncio
import collections
import contextlib
import functools
import uuid

from aiohttp import WSMsgType, web

import jupyter_wire as wire
from hosted import Hosted, now
from kernel import Kernel
from server import field, json_body

KERNELS_MAX = 32		# of one tenant
ALL_MAX = 4096
SOCKETS_MAX = 16		# of one kernel
IDLE_SECONDS = 600		# without a socket; then it is closed
PING_SECONDS = 30
SOCKET_BYTES_MAX = 8 << 20	# that wait for a slow reader
UNSENT_MAX = 64 << 20		# the same of all sockets of a tenant
MESSAGE_MAX = 16 << 20


class Socket:
    """One WebSocket of a kernel. Messages wait here for a slow reader, up to a bound."""

    def __init__(self, ws, version_1, hosted, transport):
        self.ws, self.version_1 = ws, version_1
        self.unsent, self.tenant, self.transport = hosted.gateway.unsent, hosted.tenant, transport
        self.queue, self.bytes = asyncio.Queue(), 0
        self.answers, self.gone = {}, False	# as Hosted wants them

    def count(self, size):
        self.bytes += size
        self.unsent[self.tenant] += size

    def put(self, channel, message):
        if self.gone:
            return
        data = wire.encode(channel, message, self.version_1)
        self.count(len(data))
        if self.bytes > SOCKET_BYTES_MAX or self.unsent[self.tenant] > UNSENT_MAX:
            # Who does not read does not take a farewell either.
            self.gone = True
            self.transport.abort()
        else:
            self.queue.put_nowait(data)

    async def write(self):
        """Sends what waits, until the kernel ends or the reader is gone."""
        with contextlib.suppress(ConnectionError):
            while (data := await self.queue.get()) is not None:
                await (self.ws.send_bytes if self.version_1 else self.ws.send_str)(data)
                self.count(-len(data))
            await self.ws.close(code=1001, message=b"the kernel has ended")

    def forget(self):
        """It is closed: nothing of it waits."""
        self.gone = True
        self.count(-self.bytes)
        if not self.unsent[self.tenant]:
            del self.unsent[self.tenant]


class Served(Hosted):
    """A kernel of a tenant."""

    def __init__(self, gateway, principal, name):
        super().__init__(Kernel(gateway.service, None if name == "python3" else name),
                         functools.partial(gateway.place, principal.tenant))
        self.id, self.name = str(uuid.uuid4()), name
        self.gateway, self.tenant = gateway, principal.tenant
        self.last_token = principal.token	# of whoever had it last; closes it
        self.left = asyncio.get_running_loop().time()

    def model(self):
        return {"id": self.id, "name": self.name, "last_activity": self.active,
                "execution_state": self.state, "connections": len(self.clients)}

    def ended(self):
        self.gateway.kernels.pop(self.id, None)
        for socket in self.clients:
            socket.queue.put_nowait(None)


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
    hosted = Served(gateway, principal, name)
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
    if len(hosted.clients) >= SOCKETS_MAX:
        raise web.HTTPServiceUnavailable(text="the kernel has too many clients")
    ws = web.WebSocketResponse(protocols=(wire.VERSION_1,), heartbeat=PING_SECONDS,
                               max_msg_size=MESSAGE_MAX)
    await ws.prepare(request)
    if request.transport is None:
        return ws
    socket = Socket(ws, ws.ws_protocol == wire.VERSION_1, hosted, request.transport)
    hosted.clients.append(socket)
    writer = asyncio.create_task(socket.write())
    try:
        async for frame in ws:
            if frame.type not in (WSMsgType.TEXT, WSMsgType.BINARY):
                continue
            try:
                channel, message = wire.decode(frame.data)
            except (ValueError, KeyError, TypeError, RecursionError) as e:
                await ws.close(code=1007, message=("not a message: %s" % e).encode()[:100])
                break
            hosted.take(socket, channel, message, principal.token, len(frame.data))
    finally:
        hosted.clients.remove(socket)
        hosted.left = asyncio.get_running_loop().time()
        socket.forget()
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
                              "connections": sum(len(h.clients) for h in mine)})


async def reap(app):
    """Closes kernels whose clients have gone without a word."""
    async def run():
        while True:
            await asyncio.sleep(IDLE_SECONDS / 20)
            late = asyncio.get_running_loop().time() - app["idle_seconds"]
            for hosted in list(app["gateway"].kernels.values()):
                if not hosted.clients and not hosted.running and hosted.left < late:
                    await hosted.end(hosted.last_token)
    task = asyncio.create_task(run())
    yield
    task.cancel()


async def end_all(app):
    """Kernels end before their sockets do: a socket waits for its client."""
    await asyncio.gather(*(hosted.end(hosted.last_token)
                           for hosted in list(app["gateway"].kernels.values())))


def routes(app):
    app["gateway"].kernels, app["gateway"].unsent = {}, collections.Counter()
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
