# SPDX-License-Identifier: Apache-2.0
"""Calls of the service by lines of JSON, on a unix socket or on the pipes of a private service."""

import asyncio
import contextlib
import json
import os
import socket
import subprocess

from calls import ANSWER_MAX, Calls, ServiceError

SYSTEM_SOCKET = "/run/mcp-pythond/mcp.sock"


def program(beside):
    """The path of mcp-pythond, in a build tree or as installed; None: it is not there."""
    for path in (os.path.join(beside, "mcp-pythond"), os.environ.get("MCP_PYTHOND"),
                 "/usr/sbin/mcp-pythond", "/usr/local/sbin/mcp-pythond"):
        if path and os.access(path, os.X_OK) and os.path.isfile(path):
            return path
    return None


def open_socket(place=None):
    """A connection to the service that the environment names, or to the usual one."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    named = place or os.environ.get("MCP_PYTHON_SOCKET")
    places = [named] if named else [
        *([os.path.join(runtime, "mcp-pythond.sock")] if runtime else []), SYSTEM_SOCKET]
    for path in places:
        sock = socket.socket(socket.AF_UNIX)
        try:
            sock.connect(path)
            return sock
        except OSError as e:
            sock.close()
            error = "%s: %s" % (path, e.strerror)
    if named:
        raise ServiceError(503, error)
    return None


class LineService(Calls):
    """One connection. A private service ends with it."""

    def __init__(self, version="0"):
        super().__init__("mcp-python-kernel", version)
        self.waiting, self.process = {}, None

    async def connect(self, beside, place=None, private=False):
        """beside: the directory of the program, where a build tree has the service."""
        sock = None if private else open_socket(place)
        if sock is None:
            path = program(beside)
            if not path:
                raise ServiceError(503, "no service answers, and mcp-pythond is not installed")
            sock, theirs = socket.socketpair()
            # In a session of its own, so that Ctrl-C is for this program.
            self.process = subprocess.Popen([path, "--private"], stdin=theirs, stdout=theirs,
                                            start_new_session=True)
            theirs.close()
        self.reader, self.writer = await asyncio.open_unix_connection(sock=sock, limit=ANSWER_MAX)
        self.task = asyncio.create_task(self._read())
        return self

    async def close(self):
        self.writer.close()
        self.task.cancel()
        if self.process:
            await asyncio.to_thread(self.process.wait)

    async def _read(self):
        """Hands each message to the call that it is for."""
        why = "the service has closed the connection"
        try:
            while line := await self.reader.readline():
                message = json.loads(line)
                number = message.get("id")
                if "method" in message:
                    number = message.get("params", {}).get("progressToken")
                call = self.waiting.get(number)
                if call is None:
                    continue
                if "method" in message:
                    self.take_output(message, call[1])
                elif not call[0].done():
                    call[0].set_result(message)
        except (OSError, ValueError) as e:
            why = str(e)
        for future, _ in self.waiting.values():
            if not future.done():
                future.set_exception(ServiceError(502, why))

    async def _send(self, message):
        self.writer.write(json.dumps(message).encode() + b"\n")
        await self.writer.drain()

    async def request(self, method, params, token=None, name=None, on_output=None,
                      capabilities=None, headers=None):
        """As Service.request(); token, name and headers are for HTTP alone."""
        if self.task.done():
            raise ServiceError(502, "the service has closed the connection")
        number = self.count + 1
        meta = {**self.streaming, "progressToken": number} if on_output else {}
        message = self.message(method, params, capabilities or {}, meta)
        future = asyncio.get_running_loop().create_future()
        self.waiting[number] = future, on_output
        try:
            await self._send(message)
            return self.result_of(await future, "something else")
        except asyncio.CancelledError:
            with contextlib.suppress(OSError):
                await self._send({"jsonrpc": "2.0", "method": "notifications/cancelled",
                                  "params": {"requestId": number}})
            raise
        except OSError as e:
            raise ServiceError(502, str(e)) from e
        finally:
            del self.waiting[number]
