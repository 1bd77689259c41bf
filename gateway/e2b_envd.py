# SPDX-License-Identifier: Apache-2.0
"""The dialect of E2B inside a sandbox: commands and files. The protocol is Connect with JSON."""

import asyncio
import base64
import binascii
import contextlib
import json
import secrets
import signal
import struct

from aiohttp import web

import e2b_jail
from calls import ServiceError
from kernel import rest_of
from server import body_pieces, field, form_files, json_body, whole_body

PROCESSES_MAX = 32		# of one sandbox
RUN_SECONDS_MAX = 600		# of one command
ENTRIES_MAX = 10000		# of one list
QUEUE_MAX = 4096		# events that wait for a slow reader
KEEPALIVE_SECONDS = 20
PIECE = 4 << 20			# bytes of an upload that go with one call
UPLOAD_MAX = 256 << 20
MESSAGE_MAX = 4 << 20
SIGNALS = {"SIGNAL_SIGTERM": signal.SIGTERM, "SIGNAL_SIGKILL": signal.SIGKILL}
# errno of a file operation -> code of Connect, HTTP status of /files
CODES = {"ENOENT": ("not_found", 404), "EEXIST": ("already_exists", 400),
         "ENOTEMPTY": ("already_exists", 400), "ENOTDIR": ("invalid_argument", 400),
         "EISDIR": ("invalid_argument", 400), "EACCES": ("permission_denied", 400),
         "EPERM": ("permission_denied", 400), "EROFS": ("permission_denied", 400),
         "ENOSPC": ("resource_exhausted", 507), "EDQUOT": ("resource_exhausted", 507),
         "ENOBUFS": ("resource_exhausted", 400)}
STATUS = {"not_found": 404, "already_exists": 409, "invalid_argument": 400, "unimplemented": 501,
          "permission_denied": 403, "resource_exhausted": 429, "failed_precondition": 400,
          "deadline_exceeded": 504, "unavailable": 503, "internal": 500}


class RpcError(Exception):
    def __init__(self, code, text):
        super().__init__(text)
        self.code = code

    def body(self):
        return {"code": self.code, "message": str(self)}


class Process:
    """A command. Its events go to all who are attached."""

    def __init__(self, sandbox, config, seconds):
        sandbox.pid += 1
        self.sandbox, self.pid = sandbox, sandbox.pid
        self.config, self.tag = config["shown"], config["tag"]
        self.has_input, self.pty = config["stdin"], config["pty"]
        self.control = "%s/%d-%s" % (e2b_jail.HIDDEN, self.pid, secrets.token_hex(4))
        self.script = e2b_jail.command(control=self.control, stdin=config["stdin"],
                                       pty=config["pty"], **self.config)
        self.seconds, self.late, self.killed = min(seconds, RUN_SECONDS_MAX), False, False
        self.readers, self.turn, self.printed = [], asyncio.Lock(), ""
        self.task = asyncio.ensure_future(self.run())

    def put(self, event):
        for queue in list(self.readers):
            if queue.qsize() < QUEUE_MAX:
                queue.put_nowait(event)
            else:
                self.readers.remove(queue)
                queue.put_nowait(RpcError("resource_exhausted", "the output is read too slowly"))

    def output(self, stream, text):
        if stream == "stdout":
            self.printed += text
        data = base64.b64encode(text.encode("utf-8", "surrogateescape")).decode()
        self.put({"event": {"data": {"pty" if self.pty else stream: data}}})

    async def run(self):
        """Runs it; its last event is what its end was."""
        sandbox = self.sandbox
        try:
            async with sandbox.place():
                sandbox.check()
                answer = await sandbox.script(
                    self.script, self.output, timeout_seconds=max(0.1, self.seconds),
                    cpu_seconds=max(0.1, self.seconds))
            rest = rest_of(answer.structured.get("stdout") or "", self.printed)
            if rest:	# the service sends no more than so much of both streams
                self.output("stdout", rest)
            end = self.end_of(answer)
        except asyncio.CancelledError:
            end = ended(-1, "signal: killed", False)
            if self.late:
                end = RpcError("deadline_exceeded", "the command took longer than its timeout")
        except ServiceError as e:
            end = RpcError("internal", str(e))
        finally:
            sandbox.processes.pop(self.pid, None)
        self.put(end)

    @staticmethod
    def end_of(answer):
        code = answer.structured.get("exit_code")
        if answer.refused:
            return RpcError("resource_exhausted" if answer.status in (
                "overloaded", "quota_exceeded") else "failed_precondition", answer.text.strip())
        if answer.status == "timeout":
            return RpcError("deadline_exceeded", "the command took longer than its timeout")
        if answer.status not in ("ok", "error"):
            return ended(code if code is not None else -1, answer.status, False, answer.status)
        return ended(code or 0, "exit status %d" % (code or 0), True)

    def kill(self):
        self.killed = True
        self.task.cancel()

    def expire(self):
        self.late = True
        self.task.cancel()

    async def say(self, **said):
        async with self.turn:	# in their order
            checked(await self.sandbox.files("say", self.control, line=json.dumps(said)))


def ended(code, status, exited, error=None):
    return {"event": {"end": {"exitCode": code, "exited": exited, "status": status,
                              **({"error": error} if error else {})}}}


# ---- Connect ----

def rpc_error(e):
    """An error as the clients of Connect read it."""
    if isinstance(e, RpcError):
        return e
    if isinstance(e, ServiceError):
        return RpcError("internal", str(e))
    return RpcError("invalid_argument", e.text)


def frame(message, flag=0):
    data = json.dumps(message).encode()
    return struct.pack(">BI", flag, len(data)) + data


async def rpc_body(request, streaming):
    """The message of a request."""
    if not streaming:
        return await json_body(request)
    if request.content_type != "application/connect+json":
        raise web.HTTPUnsupportedMediaType(text="the body is not application/connect+json")
    data = await whole_body(request)
    if len(data) < 5 or data[0] != 0 or struct.unpack(">I", data[1:5])[0] != len(data) - 5:
        raise web.HTTPBadRequest(text="the body is not one frame")
    try:
        body = json.loads(data[5:])
    except ValueError as e:
        raise web.HTTPBadRequest(text="the body is not JSON: %s" % e) from e
    if not isinstance(body, dict):
        raise web.HTTPBadRequest(text="the body is not a JSON object")
    return body


def timeout_of(request):
    text = request.headers.get("Connect-Timeout-Ms", "")
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 10):
        raise web.HTTPBadRequest(text="Connect-Timeout-Ms is not a number of milliseconds")
    return int(text) / 1000 or None


async def follow(request, process, seconds, ends_it):
    """Streams a process to who started it or attached to it."""
    queue = asyncio.Queue()
    process.readers.append(queue)
    timer = None
    if seconds is not None:
        def late():
            if ends_it:
                process.expire()
            else:
                queue.put_nowait(RpcError("deadline_exceeded", "the time of the request is over"))
        timer = asyncio.get_running_loop().call_later(seconds, late)
        if ends_it:	# also if nobody follows it any more
            process.task.add_done_callback(lambda _: timer.cancel())
    response = web.StreamResponse(headers={"Content-Type": "application/connect+json"})
    try:
        await response.prepare(request)
        await response.write(frame({"event": {"start": {"pid": process.pid}}}))
        while True:
            try:
                event = await asyncio.wait_for(queue.get(), KEEPALIVE_SECONDS)
            except asyncio.TimeoutError:
                event = {"event": {"keepalive": {}}}
            if isinstance(event, RpcError):
                await response.write(frame({"error": event.body()}, 2))
                break
            await response.write(frame(event))
            if "end" in event["event"]:
                await response.write(frame({}, 2))
                break
        await response.write_eof()
    except ConnectionError:	# it goes on without this reader
        pass
    finally:
        if timer and not ends_it:
            timer.cancel()
        if queue in process.readers:
            process.readers.remove(queue)
    return response


# ---- processes ----

def config_of(sandbox, body):
    """What is to be started, checked."""
    asked = field(body, "process", dict, required=True)
    envs = field(asked, "envs", dict, {})
    args = field(asked, "args", list, [])
    if not all(isinstance(a, str) and "\0" not in a for a in args):
        raise web.HTTPBadRequest(text="process.args is not a list of strings")
    if not all(isinstance(v, str) and "\0" not in k + v and k and "=" not in k
               for k, v in envs.items()):
        raise web.HTTPBadRequest(text="process.envs is not an object of strings")
    cmd, cwd = field(asked, "cmd", str, required=True), field(asked, "cwd", str) or e2b_jail.HOME
    if not cmd or "\0" in cmd + cwd:
        raise web.HTTPBadRequest(text="process.cmd is not the name of a program")
    if cwd == "~" or cwd.startswith("~/"):
        cwd = e2b_jail.HOME + cwd[1:]
    if not cwd.startswith("/"):
        cwd = e2b_jail.HOME + "/" + cwd
    pty = field(body, "pty", dict)
    return {"shown": {"cmd": cmd, "args": args, "cwd": cwd, "envs": {**sandbox.envs, **envs}},
            "tag": field(body, "tag", str), "stdin": field(body, "stdin", bool, True),
            "pty": size_of(pty) if pty is not None else None}


def size_of(pty):
    size = field(pty, "size", dict, {})
    found = {name: field(size, name, int, 0) or default
             for name, default in (("cols", 80), ("rows", 24))}
    if not all(0 < n < 65536 for n in found.values()):
        raise web.HTTPBadRequest(text="pty.size is not a size")
    return found


def process_of(sandbox, body):
    selector = field(body, "process", dict, required=True)
    for process in sandbox.processes.values():
        if selector.get("pid") == process.pid or \
                (process.tag and selector.get("tag") == process.tag):
            return process
    raise RpcError("not_found", "there is no such process")


async def start(request, sandbox, body):
    config, seconds = config_of(sandbox, body), timeout_of(request)
    seconds = min(seconds, RUN_SECONDS_MAX) if seconds else None
    sandbox.check()
    if len(sandbox.processes) >= PROCESSES_MAX:
        raise RpcError("resource_exhausted", "more than %d commands run" % PROCESSES_MAX)
    process = Process(sandbox, config, seconds or RUN_SECONDS_MAX)
    sandbox.processes[process.pid] = process
    return await follow(request, process, seconds, True)


async def attach(request, sandbox, body):
    return await follow(request, process_of(sandbox, body), timeout_of(request), False)


async def processes(sandbox, body):
    return {"processes": [
        {"pid": p.pid, "config": p.config, **({"tag": p.tag} if p.tag else {})}
        for p in sandbox.processes.values()]}


async def send_input(sandbox, body):
    process = process_of(sandbox, body)
    given = field(body, "input", dict, required=True)
    data = field(given, "pty" if process.pty else "stdin", str, required=True)
    try:
        base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as e:
        raise RpcError("invalid_argument", "input is not base64") from e
    if not process.pty and not process.has_input:
        raise RpcError("failed_precondition", "the command was started without stdin")
    await process.say(data=data)
    return {}


async def close_stdin(sandbox, body):
    process = process_of(sandbox, body)
    if process.pty or not process.has_input:
        raise RpcError("failed_precondition", "the command has no stdin to close")
    await process.say(close=True)
    return {}


async def send_signal(sandbox, body):
    process = process_of(sandbox, body)
    number = SIGNALS.get(body.get("signal"))
    if number is None:
        raise RpcError("invalid_argument", "signal is not one of %s" % ", ".join(SIGNALS))
    if number == signal.SIGKILL:
        process.kill()
    else:
        await process.say(signal=int(number))
    return {}


async def update(sandbox, body):
    process = process_of(sandbox, body)
    if not process.pty:
        raise RpcError("failed_precondition", "the command has no terminal")
    await process.say(size=size_of(field(body, "pty", dict, {})))
    return {}


# ---- files by RPC ----

def checked(found):
    if "error" in found:
        raise RpcError(CODES.get(found["error"], ("internal", 500))[0], found["message"])
    return found


def path_of(body, name="path"):
    path = field(body, name, str, "")
    if not path or "\0" in path or len(path) > 4096 or not path.isascii() and \
            any("\ud800" <= letter <= "\udfff" for letter in path):
        raise web.HTTPBadRequest(text="%s is not a path" % name)
    return path


async def list_dir(sandbox, body):
    depth = field(body, "depth", int, 1) or 1
    if not 0 < depth <= 64:
        raise web.HTTPBadRequest(text="depth is not a number from 1 to 64")
    return checked(await sandbox.files("list", path_of(body), depth=depth))


async def stat(sandbox, body):
    return {"entry": checked(await sandbox.files("stat", path_of(body)))["entry"]}


async def make_dir(sandbox, body):
    return checked(await sandbox.files("make", path_of(body)))


async def move(sandbox, body):
    return checked(await sandbox.files("move", path_of(body, "source"),
                                       destination=path_of(body, "destination")))


async def remove(sandbox, body):
    return checked(await sandbox.files("remove", path_of(body)))


async def no_watching(*_):
    raise RpcError("unimplemented", "files are not watched here: list them again")


# ---- files by HTTP ----

def http_error(found):
    status = CODES.get(found["error"], ("", 500))[1]
    return web.json_response({"code": status, "message": found["message"]}, status=status)


async def download(request, sandbox):
    path = path_of(request.query)
    found = await sandbox.files("read", path, at=0)
    if "error" in found:
        return http_error(found)
    response = web.StreamResponse(headers={
        "Content-Type": "application/octet-stream", "Content-Length": str(found["size"]),
        "X-Content-Type-Options": "nosniff"})
    await response.prepare(request)
    at, size = 0, found["size"]
    while at < size and "error" not in found:
        data = base64.b64decode(found["data"])[:size - at]
        if not data:	# it became shorter: the client has to see that bytes are missing
            response.force_close()
            request.transport.close()
            return response
        await response.write(data)
        at += len(data)
        if at < size:
            found = await sandbox.files("read", path, at=at)
    await response.write_eof()
    return response


class Upload:
    """A file on its way into a sandbox, in pieces; it gets its name when it is whole."""

    def __init__(self, sandbox, path):
        self.sandbox, self.path, self.part = sandbox, path, "up-" + secrets.token_hex(8)
        self.data, self.size, self.first = bytearray(), 0, True

    async def take(self, piece):
        self.data += piece
        self.size += len(piece)
        if self.size > UPLOAD_MAX:
            raise web.HTTPRequestEntityTooLarge(max_size=UPLOAD_MAX, actual_size=self.size,
                                                text="more than %d MiB" % (UPLOAD_MAX >> 20))
        while len(self.data) > PIECE:
            found = await self.send(bytes(self.data[:PIECE]), False)
            del self.data[:PIECE]
            if "error" in found:
                return found
        return {}

    async def send(self, data, last):
        found = await self.sandbox.files("write", self.path, data, part=self.part,
                                         first=self.first, last=last)
        self.first = False
        return found

    async def done(self):
        return await self.send(bytes(self.data), True)

    async def give_up(self):
        """Removes what has come of it."""
        if not self.first:
            with contextlib.suppress(ServiceError):
                await self.sandbox.files("give_up", self.path, part=self.part)


async def parts(request):
    """(path, pieces) of each file in the body."""
    query = request.query.get("path")
    request.app["gateway"].hold(request, PIECE)
    if request.content_type.startswith("multipart/"):
        async for part in form_files(request):
            async def pieces(part=part):
                while piece := await part.read_chunk(1 << 16):
                    yield piece
            yield query or part.filename, pieces()
    else:
        yield query, body_pieces(request)


async def upload(request, sandbox):
    written = []
    async for path, pieces in parts(request):
        path = path_of({"path": path})
        one, found = Upload(sandbox, path), {}
        try:
            async for piece in pieces:
                found = await one.take(piece)
                if "error" in found:
                    return http_error(found)
            found = await one.done()
            if "error" in found:
                return http_error(found)
        finally:
            if "path" not in found:
                await asyncio.shield(one.give_up())
        whole = found["path"]
        written.append({"name": whole.rsplit("/", 1)[-1], "type": "file", "path": whole})
    if not written:
        raise web.HTTPBadRequest(text="file is missing")
    return web.json_response(written)


UNARY = {"process.Process": {
             "List": processes, "SendInput": send_input, "SendSignal": send_signal,
             "CloseStdin": close_stdin, "Update": update},
         "filesystem.Filesystem": {
             "ListDir": list_dir, "Stat": stat, "MakeDir": make_dir, "Move": move,
             "Remove": remove, "CreateWatcher": no_watching}}
STREAMS = {"process.Process": {"Start": start, "Connect": attach},
           "filesystem.Filesystem": {"WatchDir": no_watching}}


def routes(add, inside):
    """inside(request): the sandbox of a request, or an error for it."""
    def unary(method):
        async def handler(request):
            sandbox = inside(request)
            try:
                return web.json_response(await method(sandbox, await rpc_body(request, False)))
            except (web.HTTPBadRequest, ServiceError, RpcError) as e:
                error = rpc_error(e)
                return web.json_response(error.body(), status=STATUS[error.code])
        return handler

    def stream(method):
        async def handler(request):
            sandbox = inside(request)
            try:
                return await method(request, sandbox, await rpc_body(request, True))
            except (web.HTTPBadRequest, ServiceError, RpcError) as e:
                # An error of a stream is in its last frame.
                return web.Response(body=frame({"error": rpc_error(e).body()}, 2),
                                    headers={"Content-Type": "application/connect+json"})
        return handler

    for table, make in ((UNARY, unary), (STREAMS, stream)):
        for package, methods in table.items():
            for name, method in methods.items():
                add.add_post("/%s/%s" % (package, name), make(method))

    async def get_file(request):
        return await download(request, inside(request, (request.query.get("path", ""), "read")))

    async def put_file(request):
        return await upload(request, inside(request, (request.query.get("path", ""), "write")))
    add.add_get("/files", get_file)
    add.add_post("/files", put_file)
