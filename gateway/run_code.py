# SPDX-License-Identifier: Apache-2.0
"""The dialect of SandboxFusion, which trainers of models call: POST /run_code.

Its clients read status words, and take any HTTP status but 504 for a program that failed. So a full
service is 504, which they send again, and what ran is 200. Standard output is exact to the byte.
"""

import asyncio
import base64
import math
import time

from aiohttp import web

from server import field, json_body, while_connected
from calls import ServiceError

LANGUAGES = ("python", "bash", "pytest")
BATCH_MAX = 1024
WAIT_SECONDS = 10		# that clients give us beside the program's own time
MARGIN = 3			# seconds before which we answer that it was too long
RUN_SECONDS_MAX = 600
RETRY_SECONDS = 0.25
BUSY = ("overloaded", "quota_exceeded")

# Other languages than Python, by a script that starts them.
STARTED = {
    "bash": "import subprocess, sys\n"
            "sys.exit(subprocess.run(['bash', '-c', open('.run_code').read()]).returncode)\n",
    "pytest": "import os, sys\nos.rename('.run_code', 'test_main.py')\nimport pytest\n"
              "sys.exit(int(pytest.main(['-q', '-p', 'no:cacheprovider', 'test_main.py'])))\n",
}


class Job:
    """One request, checked."""

    def __init__(self, body):
        self.language = field(body, "language", str, "python")
        if self.language not in LANGUAGES:
            raise web.HTTPUnprocessableEntity(
                text="language %.40r is not one of %s" % (self.language, ", ".join(LANGUAGES)))
        code = field(body, "code", str, required=True)
        self.seconds = self.time(body, "run_timeout")
        self.compile_seconds = self.time(body, "compile_timeout")
        memory = field(body, "memory_limit_MB", (int, float), -1)
        self.fetch = field(body, "fetch_files", list, [])
        self.files = self.inputs(field(body, "files", dict, {}))
        arguments = {"script": code, "timeout_seconds": self.seconds,
                     "cpu_seconds": self.seconds, "text_tokens": 100}
        if self.language != "python":
            arguments["script"] = STARTED[self.language]
            self.files.append({"path": ".run_code", "text": code})
        stdin = field(body, "stdin", str)
        if stdin:
            arguments["stdin"] = stdin
        if memory > 0:
            arguments["memory_mb"] = max(16, math.ceil(memory))
        if self.files:
            arguments["files"] = self.files
        self.arguments = arguments

    @staticmethod
    def time(body, name):
        value = field(body, name, (int, float), 10)
        if not 0 < value <= RUN_SECONDS_MAX:
            raise web.HTTPUnprocessableEntity(
                text="%s is not a number of seconds of at most %d" % (name, RUN_SECONDS_MAX))
        return max(0.1, value)

    @staticmethod
    def inputs(files):
        found = []
        for path, content in files.items():
            if content is None or "IGNORE_THIS_FILE" in path:
                continue
            if not isinstance(content, str):
                raise web.HTTPUnprocessableEntity(text="files: %.80r is not base64" % path)
            found.append({"path": path, "base64": content})
        return found


def outcome(status, message="", run=None, files=None):
    return {"status": status, "message": message, "compile_result": None, "run_result": run,
            "executor_pod_name": None, "files": files or {}}


def run_result(answer):
    """(status word, what the client reads of the run)"""
    s = answer.structured
    code = s.get("exit_code")
    run = {"status": "Finished", "execution_time": (s.get("duration_ms") or 0) / 1000,
           "return_code": code, "stdout": s.get("stdout") or "", "stderr": s.get("stderr") or ""}
    cut = s.get("truncated") or {}
    if answer.status in ("timeout", "cpu_limit"):
        run.update(status="TimeLimitExceeded", return_code=None)
        return "Failed", run
    if answer.status == "ok" and (cut.get("stdout_dropped") or cut.get("stderr_dropped")):
        run.update(return_code=1, stderr=run["stderr"] + "\nthe output is longer than is kept\n")
    elif answer.status not in ("ok", "error"):
        run["stderr"] += "%s\n" % answer.status
        # As the kernel tells of a signal, and not as a shell does.
        run["return_code"] = 128 - code if code and code > 128 else code or 1
    return ("Success" if run["return_code"] == 0 else "Failed"), run


async def run(gateway, principal, job):
    """Runs one job. ServiceError 504: not in time; the client sends it again."""
    late = time.monotonic() + job.seconds + job.compile_seconds + WAIT_SECONDS - MARGIN
    try:
        async with gateway.place(principal.tenant):
            while True:
                if time.monotonic() + job.seconds > late + WAIT_SECONDS / 2:
                    raise ServiceError(504, "the service is full")
                answer = await gateway.service.call("run_script", job.arguments, principal.token)
                if answer.status not in BUSY:
                    break
                await asyncio.sleep(RETRY_SECONDS)
            if answer.refused:
                return outcome("SandboxError", answer.text.strip())
            status, result = run_result(answer)
            files = await fetch(gateway, principal, job, answer)
    except ServiceError as e:
        if e.status == 503:
            raise ServiceError(504, str(e)) from e
        raise
    return outcome(status, run=result, files=files)


async def fetch(gateway, principal, job, answer):
    """The files that were asked for and are there, as base64."""
    left = {f["path"]: f for f in answer.structured.get("files", [])}
    found = {}
    for path in job.fetch:
        kept = left.get(str(path).removeprefix("./").removeprefix("/workspace/"))
        if kept and kept.get("uri"):
            pieces = [p async for p in gateway.service.read_pieces(
                kept["uri"], kept["size"], principal.token)]
            found[path] = base64.b64encode(b"".join(pieces)).decode()
    return found


async def run_code(request):
    gateway = request.app["gateway"]
    principal = await gateway.principal(request)
    job = Job(await json_body(request))
    return web.json_response(await while_connected(request, run(gateway, principal, job)))


async def run_batch(request):
    """Many at once: {"requests": [...]} -> {"results": [...]}, in their order."""
    gateway = request.app["gateway"]
    principal = await gateway.principal(request)
    requests = field(await json_body(request), "requests", list, required=True)
    if len(requests) > BATCH_MAX:
        raise web.HTTPUnprocessableEntity(text="requests has more than %d members" % BATCH_MAX)

    async def one(body):
        try:
            if not isinstance(body, dict):
                return outcome("SandboxError", "not a JSON object")
            return await run(gateway, principal, Job(body))
        except web.HTTPException as e:
            return outcome("SandboxError", e.text)
        except ServiceError as e:
            return outcome("SandboxError", str(e))
    results = await while_connected(request, asyncio.gather(*map(one, requests)))
    return web.json_response({"results": results})


async def ping(request):
    return web.json_response("pong")


def routes(app):
    app.router.add_post("/run_code", run_code)
    app.router.add_post("/run_code/batch", run_batch)
    app.router.add_get("/v1/ping", ping)
