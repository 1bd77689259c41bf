# SPDX-License-Identifier: Apache-2.0
"""Logins to the console of the whole machine.

The console has no rights. Each user who wants to see something starts "mcp-python web login": that
program connects to the console's socket, where the kernel says whose it is, prints the link that the
console gives it, and runs the commands that the console asks for, as its user. It runs no others.
When it ends, so does the login.

Both sides send lines of JSON. The console: {"link": URL}, {"id", "words"}, {"id", "follow": true},
{"error": TEXT}. The program: {"proxy": BOOL} first, {"id", "code", "out", "err"}, {"id", "line"},
{"id", "end": TEXT}.
"""

import asyncio
import contextlib
import json
import signal
import socket
import struct
import sys

from commands import COMMAND_SECONDS, Commands, Refused, is_known
from options import EX_NOPERM, EX_UNAVAILABLE

LOGIN_SOCKET = "/run/mcp-python-web/login.sock"
MESSAGE_MAX = 8 << 20
LINES_WAITING = 100
FOLLOWED_MAX = 1 << 30		# bytes of records of one login
COMMANDS_MAX = 16		# that run at once


def peer_uid(sock):
    """Who has connected, as the kernel says."""
    return struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[1]


class Channel:
    """Sends messages, one after the other."""

    def __init__(self, writer):
        self.writer, self.turn = writer, asyncio.Lock()

    async def send(self, message):
        async with self.turn:
            self.writer.write(json.dumps(message).encode() + b"\n")
            await self.writer.drain()


class Remote(Commands):
    """The commands, run by the program at the other end. What it says is a stranger's."""

    def __init__(self, reader, writer):
        self.reader, self.channel = reader, Channel(writer)
        self.count, self.waiting, self.queue, self.followed = 0, {}, None, 0

    async def first(self):
        """Its first message."""
        message = json.loads(await asyncio.wait_for(self.reader.readline(), COMMAND_SECONDS))
        if not isinstance(message, dict):
            raise ValueError("no object")
        return message

    async def read(self):
        """Takes what it says, until it ends or says what is none of this."""
        try:
            while line := await self.reader.readline():
                message = json.loads(line)
                number = message["id"]
                if "code" in message:
                    future = self.waiting.get(number)
                    if future and not future.done():
                        future.set_result((int(message["code"]), str(message["out"]), str(message["err"])))
                elif self.queue and self.queue[0] == number:
                    await self.queue[1].put(message)
                await asyncio.sleep(0)	# the others have their turns
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            pass
        finally:
            for future in self.waiting.values():
                if not future.done():
                    future.set_exception(Refused("the login has ended"))

    async def request(self, **message):
        self.count += 1
        try:
            await self.channel.send({"id": self.count, **message})
        except OSError as e:
            raise Refused("the login has ended") from e
        return self.count

    async def run(self, *words):
        if len(self.waiting) >= COMMANDS_MAX:
            raise Refused("too many commands of this login run")
        number, future = self.count + 1, asyncio.get_running_loop().create_future()
        self.waiting[number] = future
        try:
            await self.request(words=list(words))
            return await asyncio.wait_for(future, COMMAND_SECONDS + 5)
        except asyncio.TimeoutError as e:
            raise Refused("no answer within %d s" % COMMAND_SECONDS) from e
        finally:
            del self.waiting[number]

    async def lines(self):
        queue = asyncio.Queue(LINES_WAITING)
        self.queue = self.count + 1, queue
        await self.request(follow=True)
        while True:
            message = await queue.get()
            line = message.get("line")
            if not isinstance(line, str):
                raise Refused(str(message.get("end") or "the audit log cannot be read")[:1000])
            self.followed += len(line)
            if self.followed > FOLLOWED_MAX:
                raise Refused("the audit log is too long for this console")
            yield line.encode(errors="replace")


# ---- the user's program ----

class Served:
    """Runs what the console asks for."""

    def __init__(self, commands, reader, writer):
        self.commands, self.reader, self.channel = commands, reader, Channel(writer)
        self.tasks, self.following = set(), None

    def begin(self, work):
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    async def run(self, number, words):
        try:
            if not is_known(words):
                raise Refused("this is no command of the console")
            code, out, err = await self.commands.run(*words)
        except Refused as e:
            code, out, err = 1, "", str(e)
        if len(out) > MESSAGE_MAX // 2:
            code, out, err = 1, "", "the answer is too long"
        with contextlib.suppress(OSError):
            await self.channel.send({"id": number, "code": code, "out": out, "err": err})

    async def follow(self, number):
        with contextlib.suppress(OSError):
            try:
                async for line in self.commands.lines():
                    await self.channel.send({"id": number, "line": line.decode(errors="replace")})
            except Refused as e:
                await self.channel.send({"id": number, "end": str(e)})

    async def serve(self):
        """The exit code."""
        while line := await self.reader.readline():
            message = json.loads(line)
            if "error" in message:
                print("mcp-python-web: " + message["error"], file=sys.stderr)
                return EX_NOPERM
            if "link" in message:
                print("open " + message["link"], flush=True)
            elif "follow" in message:
                if self.following:
                    self.following.cancel()
                self.following = self.begin(self.follow(message["id"]))
            elif len(self.tasks) <= COMMANDS_MAX:
                self.begin(self.run(message["id"], message.get("words")))
        print("mcp-python-web: the console has ended the login", file=sys.stderr)
        return EX_UNAVAILABLE


async def log_in(commands, path, proxy):
    """Until the user or the console ends it. The exit code."""
    try:
        reader, writer = await asyncio.open_unix_connection(path, limit=MESSAGE_MAX)
    except OSError as e:
        print("mcp-python-web: %s: %s" % (path, e.strerror or e), file=sys.stderr)
        return EX_UNAVAILABLE
    served = Served(commands, reader, writer)
    with contextlib.suppress(OSError):
        await served.channel.send({"proxy": proxy})
    task = asyncio.create_task(served.serve())
    for n in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(n, task.cancel)
    try:
        return await task
    except asyncio.CancelledError:
        return 0
    except (OSError, ValueError, TypeError) as e:
        print("mcp-python-web: the console cannot be understood: %s" % e, file=sys.stderr)
        return EX_UNAVAILABLE
    finally:
        for one in list(served.tasks):
            one.cancel()
        await asyncio.gather(*served.tasks, return_exceptions=True)
        writer.close()
