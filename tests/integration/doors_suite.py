# SPDX-License-Identifier: Apache-2.0
"""What the suites of the gateway share: a gateway on a service, and clients in its dialects."""

import asyncio
import contextlib
import json
import os
import re
import subprocess
import tempfile
import urllib.error
import urllib.request
import uuid

import aiohttp

from auth_suite import with_tokens
from harness import TOP
from http_suite import http_private

TOKEN = "own-token"


class Gateway:
    """A gateway that runs, and what its clients ask."""

    def __init__(self, process, url, log):
        self.process, self.url, self.log = process, url, log

    def said(self):
        """Its log so far. The gateway writes where the file's offset is, so it is not moved."""
        return os.pread(self.log.fileno(), 1 << 26, 0).decode("utf-8", "replace")

    def ask(self, verb, path, body=None, token=TOKEN, headers=()):
        """(status, the JSON of the answer or its bytes)"""
        request = urllib.request.Request(
            self.url + path, method=verb,
            data=None if body is None else
            body if isinstance(body, bytes) else json.dumps(body).encode())
        request.add_header("Content-Type", "application/json")
        if token:
            request.add_header("Authorization", "Bearer " + token)
        for name, value in headers:
            request.add_header(name, value)
        try:
            with urllib.request.urlopen(request, timeout=120) as response:
                status, data = response.status, response.read()
        except urllib.error.HTTPError as e:
            status, data = e.code, e.read()
        try:
            return status, json.loads(data)
        except ValueError:
            return status, data

    def run_code(self, code, token=TOKEN, **more):
        status, answer = self.ask("POST", "/run_code", {"code": code, **more}, token)
        assert status == 200, (status, answer)
        return answer


@contextlib.contextmanager
def gateway_on(place, *args, token=TOKEN, port=None, killed=False):
    """place: of the service. killed: it ends without a word."""
    environment = dict(os.environ)
    if token:
        environment["MCP_PYTHON_GATEWAY_TOKEN"] = token
    program = os.path.join(os.environ.get("MCP_BUILD", os.path.join(TOP, "build")), "mcp-python")
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            [program, "gateway", "--listen", "127.0.0.1:%s" % (port or 0),
             *(["--service", place] if place else []), *args],
            env=environment, stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            found = re.match(r"serving (http://[^ ]+)\n", process.stdout.readline())
            if found:
                yield Gateway(process, found[1], log)
        finally:
            (process.kill if killed else process.terminate)()
            process.communicate(timeout=30)
            log.seek(0)
            said = log.read()
        assert found and process.returncode == (-9 if killed else 0), (process.returncode, said[-2000:])
        assert "Traceback" not in said, said[said.index("Traceback"):][:3000]
        assert not token or token not in said, "the token is in the log"


@contextlib.contextmanager
def own_gateway(ctx, *args, settings="", **private):
    """A gateway of one user: (service, gateway)."""
    with http_private(ctx, settings, unix=True, **private) as (service, path), \
            gateway_on(path, *args) as gateway:
        yield service, gateway


shared, shared_ends = {}, contextlib.ExitStack()	# a suite that uses it ends them


@contextlib.contextmanager
def shared_gateway(ctx, settings=""):
    """As own_gateway(), for tests that leave nothing there: it is started once for all of a suite, because
    the start of a gateway takes more than what most tests do with it."""
    if settings not in shared:
        shared[settings] = shared_ends.enter_context(own_gateway(ctx, settings=settings))
    yield shared[settings]


@contextlib.contextmanager
def team_gateway(ctx, **more):
    """A gateway of two tenants: (service, gateway, {tenant: token}). more: as of with_tokens()."""
    with with_tokens(ctx, **more) as (files, service, _):
        tokens = {name: files.add(name) for name in ("ada", "bob")}
        with gateway_on(files.http, "--tenants", token=None) as gateway:
            yield service, gateway, tokens


# ---- Jupyter ----

class Reply:
    """What came for one request: messages by type, and the reply."""

    def __init__(self, reply, messages):
        self.reply, self.messages = reply, messages

    def of(self, kind):
        return [content for name, content in self.messages if name == kind]

    @property
    def stdout(self):
        return "".join(c["text"] for c in self.of("stream") if c["name"] == "stdout")


class Kernel:
    """A client of one kernel by the older form of WebSocket messages."""

    def __init__(self, ws):
        self.ws = ws
        self.early = []		# messages for requests that nobody has collected yet

    async def send(self, kind, content, channel="shell", parent=None):
        sent = {"channel": channel, "parent_header": parent or {}, "metadata": {},
                "content": content, "header": {
                    "msg_id": uuid.uuid4().hex, "msg_type": kind, "session": "s",
                    "username": "u", "version": "5.3", "date": ""}}
        await self.ws.send_str(json.dumps(sent))
        return sent["header"]["msg_id"]

    async def read(self):
        frame = await self.ws.receive(timeout=120)
        assert frame.type == aiohttp.WSMsgType.TEXT, frame
        return json.loads(frame.data)

    async def collect(self, asked, answers=()):
        """Until the reply and the state idle have come, whose order is not promised."""
        messages, reply, idle, answers = [], None, False, list(answers)
        waiting, self.early = self.early, []
        while not (idle and reply):
            got = waiting.pop(0) if waiting else await self.read()
            if got["msg_type"] == "input_request":
                await self.send("input_reply", {"value": answers.pop(0)}, "stdin", got["header"])
                messages.append(("input_request", got["content"]))
            elif got["parent_header"].get("msg_id") != asked:
                self.early.append(got)
            elif got["msg_type"].endswith("_reply"):
                reply = got["content"]
            elif got["msg_type"] == "status":
                idle = got["content"]["execution_state"] == "idle"
            else:
                messages.append((got["msg_type"], got["content"]))
        self.early += waiting
        return Reply(reply, messages)

    async def ask(self, kind, content, channel="shell"):
        return await self.collect(await self.send(kind, content, channel))

    async def run(self, code, answers=(), **more):
        return await self.collect(await self.send("execute_request", {
            "code": code, "silent": False, "store_history": True, "user_expressions": {},
            "allow_stdin": bool(answers), "stop_on_error": True, **more}), answers)


@contextlib.asynccontextmanager
async def kernel_of(gateway, token=TOKEN):
    """A new kernel with one socket: (its id, Kernel, the HTTP session)."""
    async with aiohttp.ClientSession(headers={"Authorization": "token " + token}) as session:
        async with session.post(gateway.url + "/api/kernels") as response:
            assert response.status == 201, await response.text()
            kernel_id = (await response.json())["id"]
        async with session.ws_connect("%s/api/kernels/%s/channels" % (gateway.url, kernel_id),
                                      max_msg_size=0) as ws:
            yield kernel_id, Kernel(ws), session


def with_kernel(gateway, work, token=TOKEN):
    """Runs `await work(id, kernel, session)` on a new kernel, which is deleted afterwards."""
    async def run():
        async with kernel_of(gateway, token) as (kernel_id, kernel, session):
            await work(kernel_id, kernel, session)
            async with session.delete("%s/api/kernels/%s" % (gateway.url, kernel_id)) as response:
                assert response.status in (204, 404), response.status
    asyncio.run(asyncio.wait_for(run(), 300))

