# SPDX-License-Identifier: Apache-2.0
"""A kernel and its clients' messages, whether they come by WebSocket (jupyter.py) or by ZeroMQ
(zmq_kernel.py)."""

import asyncio
import contextlib
import datetime

import jupyter_wire as wire
from calls import ServiceError
from kernel import SessionEnded

QUEUE_MAX = 256			# requests of one kernel that wait
WAITING_MAX = 16 << 20		# their bytes, but for the first of them


def now():
    return datetime.datetime.now(datetime.timezone.utc).isoformat().replace("+00:00", "Z")


class Hosted:
    """A kernel with its clients. Its messages go to all of them, its replies to who asked.

    A client has put(channel, message), `gone`, and `answers`, the lines that it was asked for:
    message id -> future.
    """

    def __init__(self, kernel, place=contextlib.nullcontext):
        """place: makes a context in which the kernel may use the service."""
        self.kernel, self.place = kernel, place
        self.clients, self.queue, self.waiting = [], asyncio.Queue(QUEUE_MAX), 0
        self.state, self.active = "starting", now()
        self.running = None
        self.worker = asyncio.create_task(self.work())

    def publish(self, kind, content, parent):
        message = wire.message(kind, content, parent)
        for client in self.clients:
            client.put("iopub", message)

    def say_state(self, state, parent=None):
        self.state, self.active = state, now()
        self.publish("status", {"execution_state": state}, parent)

    # ---- requests ----

    def take(self, client, channel, message, token, size=0):
        """A message of a client, of so many bytes. What runs code waits for its turn; the rest is
        answered now."""
        kind = message["header"].get("msg_type")
        if kind == "input_reply":
            answer = client.answers.pop(
                str((message.get("parent_header") or {}).get("msg_id")), None) or \
                (client.answers.popitem()[1] if client.answers else None)
            if answer and not answer.done():
                answer.set_result(str(message["content"].get("value", "")))
            return
        if kind in ("execute_request", "complete_request", "inspect_request"):
            if self.queue.full() or (self.waiting and self.waiting + size > WAITING_MAX):
                self.reply(client, channel, message, {
                    "status": "error", "ename": "QueueFull", "traceback": [],
                    "evalue": "more than %d requests, or %d MiB of them, wait" % (
                        QUEUE_MAX, WAITING_MAX >> 20)})
                return
            self.waiting += size
            self.queue.put_nowait((client, channel, message, token, size))
            return
        self.publish("status", {"execution_state": "busy"}, message)
        try:
            content = self.at_once(kind, message)
        except (TypeError, ValueError, AttributeError, RecursionError, MemoryError) as e:
            content = {"status": "error", "ename": type(e).__name__, "evalue": str(e),
                       "traceback": []}
        if content is not None:
            self.reply(client, channel, message, content)
        self.publish("status", {"execution_state": "idle"}, message)
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

    def reply(self, client, channel, request, content):
        kind = request["header"]["msg_type"].replace("_request", "_reply")
        client.put(channel, wire.message(kind, content, request))

    def interrupt(self):
        if self.running:
            self.running.cancel()

    async def work(self):
        """Runs the requests that wait, one after another."""
        while True:
            client, channel, message, token, size = await self.queue.get()
            self.waiting -= size
            self.say_state("busy", message)
            self.running = asyncio.create_task(self.one(client, message, token))
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
            self.reply(client, channel, message, content)
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

    async def one(self, client, message, token):
        content, kind = message["content"], message["header"]["msg_type"]
        code = content.get("code")
        code = code if isinstance(code, str) else ""
        async with self.place():
            if kind == "complete_request":
                return await self.kernel.complete(code, content.get("cursor_pos", len(code)), token)
            if kind == "inspect_request":
                return await self.kernel.inspect(code, content.get("cursor_pos", len(code)),
                                                 content.get("detail_level", 0), token)
            ask = None
            if content.get("allow_stdin"):
                async def ask(prompt):
                    return await self.ask(client, prompt, message)
            try:
                return await self.kernel.execute(
                    code, token, lambda kind, content: self.publish(kind, content, message),
                    silent=bool(content.get("silent")), ask=ask,
                    store=content.get("store_history", True),
                    expressions=content.get("user_expressions") or {})
            except SessionEnded as e:
                self.say_state("restarting")
                return self.failed("KernelRestarted", str(e), message)

    async def ask(self, client, prompt, parent):
        """The line that the user types; None: nobody is there."""
        if client.gone:
            return None
        request = wire.message("input_request", {"prompt": prompt, "password": False}, parent)
        answer = asyncio.get_running_loop().create_future()
        client.answers[request["header"]["msg_id"]] = answer
        client.put("stdin", request)
        return await answer

    def abort(self):
        """After an error, what waits already does not run."""
        for _ in range(self.queue.qsize()):
            client, channel, message, _, size = self.queue.get_nowait()
            self.waiting -= size
            self.say_state("busy", message)
            self.reply(client, channel, message, {"status": "aborted"})
            self.say_state("idle", message)

    # ---- its life ----

    def ended(self):
        """For who holds it: its clients have to go."""

    async def start(self, token):
        async with self.place():
            await self.kernel.start(token)
        self.say_state("idle")

    async def restart(self, token):
        self.interrupt()
        # Clients take the state "restarting" for a restart that nobody has asked for.
        self.state = "restarting"
        await self.kernel.restart(token)
        self.say_state("idle")

    async def end(self, token, restart=False):
        if restart:
            await self.restart(token)
            return
        self.worker.cancel()
        self.interrupt()
        self.say_state("dead")
        self.ended()
        with contextlib.suppress(ServiceError):
            await self.kernel.close(token)
