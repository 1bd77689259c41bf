# SPDX-License-Identifier: Apache-2.0
"""The dialect of LibreChat's Code API: exec, files, and programmatic tool calls.

Ids of executions and files are 21 characters here. They are computed from the service's own names,
so nothing has to be remembered: a file is found by looking through those that are kept for the
caller, and what is not found never was.
"""

import asyncio
import base64
import contextlib
import datetime
import hashlib
import json
import keyword
import mimetypes
import os
import re
import secrets

from aiohttp import web

from calls import ServiceError
from server import field, form_files, json_body, while_connected

ID = re.compile(r"[A-Za-z0-9_-]{21}")
URI = re.compile(r"mcp-python://(x-[a-z0-9]+)([/#])(.+)")
PYTHON, BASH = ("py", "python", "python3"), ("bash", "sh", "shell")
PROFILES = ("default", "stateful")
SECONDS, SECONDS_MAX = 60, 600
FILE_MAX = 4 << 20		# bytes of a file that goes with a call; larger ones by a link
UPLOAD_MAX = 256 << 20
UPLOADS_MAX = 200
TOOLS_MAX = 100
PENDING_SECONDS = 600		# for which a script waits for the results of its tools
PENDING_MAX = 32		# of one tenant
SESSIONS_MAX = 1000		# names of runtime_session_hint that are remembered
CLIENT_TOOLS = "io.github.mcp-pythond/client-tools/call"
# A copy: what the call itself has sent is not among the files that it leaves.
UPLOAD = "import os, shutil\nname = open('.name').read()\n" \
         "os.makedirs(os.path.dirname(name) or '.', exist_ok=True)\n" \
         "shutil.copyfile('.upload', name)\nos.unlink('.upload')\nos.unlink('.name')\n"
BASH_RUN = "import subprocess as _s, sys as _y\n_r = _s.run(['bash', '-c', %r, 'bash', " \
           "*_y.argv[1:]])\nif _r.returncode: _y.exit(_r.returncode)\n"
# As the client knows them; it shows no other text.
LIMITS = {"timeout": "Time limit exceeded", "cpu_limit": "Time limit exceeded",
          "memory_limit": "Out of memory", "output_limit": "stdout length exceeded"}


def short_id(text):
    """The 21 characters for a name of the service."""
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest())[:21].decode()


def refusal(status, code, text):
    return web.json_response({"error": code, "message": text}, status=status)


class Kept:
    """A file that the service keeps, as LibreChat names it."""

    def __init__(self, uri, size):
        match = URI.fullmatch(uri)
        self.uri, self.size = uri, size
        self.execution = match[1] if match else uri
        self.name = match[3] if match else uri
        self.session, self.id = short_id(self.execution), short_id(uri)


async def kept_files(gateway, principal):
    """(session id, file id) -> Kept, of this caller."""
    listed = [Kept(f["uri"], f.get("size", 0)) for f in
              await gateway.service.files(principal.token)]
    return {(k.session, k.id): k for k in listed}


# ---- exec ----

async def inputs(gateway, principal, body):
    """(files of the call, what is there to be echoed, lines about what is missing)"""
    asked = field(body, "files", list, [])
    if not asked:
        return [], {}, ""
    kept = await kept_files(gateway, principal)
    files, known, missing = [], {}, ""
    for one in asked:
        if not isinstance(one, dict):
            raise web.HTTPBadRequest(text="files: an entry is not an object")
        session, number, name = (field(one, k, str, "") for k in (
            "storage_session_id", "id", "name"))
        found = kept.get((session or field(one, "session_id", str, ""), number))
        name = name or (found.name if found else "")
        if not found:
            missing += "%s is no longer kept here: upload it again\n" % name
            continue
        files.append({"path": name, "uri": found.uri})
        known[name] = found, one, hashlib.sha256(
            await gateway.service.read(found.uri, principal.token)).hexdigest() \
            if found.size <= FILE_MAX else None
    return files, known, missing


def outputs(answer, known):
    """The files of an answer as LibreChat lists them."""
    s = answer.structured
    listed, seen = [], set()
    for one in s.get("files") or []:
        if one["path"] in known and known[one["path"]][2] == one.get("sha256"):
            continue
        seen.add(one["path"])
        if one.get("uri"):
            kept = Kept(one["uri"], one["size"])
            listed.append({"id": kept.id, "name": one["path"], "storage_session_id": kept.session})
    for n, shown in enumerate(d for d in s.get("displays") or [] if d.get("uri")):
        if not shown["mime_type"].startswith("image/"):
            continue
        kept = Kept(shown["uri"], shown["bytes"])
        listed.append({"id": kept.id, "storage_session_id": kept.session, "name": "figure-%d%s" % (
            n + 1, mimetypes.guess_extension(shown["mime_type"]) or "")})
    for name, (kept, one, _) in known.items():
        if name not in seen:
            listed.append({"id": one["id"], "name": name, "inherited": True,
                           "storage_session_id": kept.session,
                           **{k: one[k] for k in ("resource_id", "kind", "version") if k in one}})
    return listed


def stderr_of(answer, missing=""):
    """What the program wrote, and why it ended, which nothing else says to a model."""
    text = answer.structured.get("stderr") or ""
    if answer.status in LIMITS:
        text += "%s\n" % LIMITS[answer.status]
    elif answer.status not in ("ok", "error"):
        text += "%s\n" % (answer.structured.get("message") or answer.status)
    return missing + text


class Job:
    """A request of exec, checked."""

    def __init__(self, body):
        language = field(body, "lang", str, field(body, "language", str, "py")).lower()
        if language not in PYTHON + BASH:
            raise Unsupported("only py and bash")
        code = field(body, "code", str, required=True)
        self.code = code if language in PYTHON else BASH_RUN % code
        self.is_bash = language in BASH
        args = [str(a) for a in field(body, "args", list, [])]
        self.hint = field(body, "runtime_session_hint", str)
        seconds = field(body, "timeout", (int, float), SECONDS * 1000) / 1000
        seconds = min(max(seconds, SECONDS), SECONDS_MAX)
        self.limits = {"timeout_seconds": seconds, "cpu_seconds": seconds, "text_tokens": 100}
        if args and self.hint:	# a cell has no arguments
            self.code = "import sys; sys.argv[1:] = %r\n%s" % (args, self.code)
        elif args:
            self.limits["args"] = args


class Unsupported(Exception):
    """What another request cannot do better."""


async def run(gateway, principal, job, files):
    """Runs a job in a script, or in the session of its hint. (answer, new or reused or None)"""
    arguments = {**job.limits, **({"files": files} if files else {})}
    if not job.hint:
        return await gateway.service.call(
            "run_script", {"script": job.code, **arguments}, principal.token), None
    key = principal.tenant, job.hint
    session = gateway.hints.get(key)
    for known in (session, None) if session else (None,):
        answer = await gateway.service.call("run_repl", {
            "code": job.code, **arguments, **({"session": known} if known else {})},
            principal.token)
        if answer.status != "no_session":
            break
    gateway.hints.pop(key, None)
    if answer.structured.get("session"):
        gateway.hints[key] = answer.structured["session"]
    while len(gateway.hints) > SESSIONS_MAX:
        gateway.hints.pop(next(iter(gateway.hints)))
    return answer, "reused" if known else "new"


def check_profile(request):
    expected = request.headers.get("X-CodeAPI-Expected-Profile")
    if expected and expected not in PROFILES:
        raise Unsupported("execution_profile_mismatch")


async def exec_(request):
    gateway = request.app["gateway"]
    principal = await gateway.principal(request)
    try:
        check_profile(request)
        job = Job(body := await json_body(request))
    except Unsupported as e:
        return refusal(400, "unsupported_capability", str(e))
    if request.headers.get("X-LibreChat-Code-Workspace-ID"):
        return refusal(400, "stateful_workspace_unsupported", "there are no attached workspaces")

    async def work():
        async with gateway.place(principal.tenant):
            files, known, missing = await inputs(gateway, principal, body)
            answer, status = await run(gateway, principal, job, files)
            return answer, status, known, missing
    answer, status, known, missing = await while_connected(request, work())
    failed = refused(answer)
    if failed:
        return failed
    s = answer.structured
    result = {"session_id": short_id(s.get("execution_id") or secrets.token_hex()),
              "stdout": s.get("stdout") or "", "stderr": stderr_of(answer, missing),
              "files": outputs(answer, known), "deleted_files": [],
              "language": "bash" if job.is_bash else "python",
              "code": s.get("exit_code"), "wall_time": s.get("duration_ms")}
    if status:
        result.update(runtime_session_id=short_id(job.hint), runtime_status=status)
    return web.json_response(result)


def refused(answer):
    """The answer for a call that did not run; None: it ran."""
    if answer.status in ("overloaded", "quota_exceeded", "session_limit", "session_busy"):
        response = refusal(429, "rate_limited", answer.text.strip())
        response.headers["Retry-After"] = "5"
        return response
    if answer.refused:
        return refusal(422, answer.status, answer.text.strip())
    return None


# ---- tools by continuation ----

class Pending:
    """A script that runs, or waits for the results of its tools."""

    def __init__(self, tenant, request_id):
        self.tenant, self.request_id = tenant, request_id
        self.token = secrets.token_urlsafe(24)
        self.asked, self.results = asyncio.Queue(), None
        self.calls, self.count, self.task, self.timer = {}, 0, None, None

    async def ask(self, requests):
        """Takes the calls of a round to the client; returns their results for the service."""
        self.calls = {}
        for key, request in requests.items():
            self.count += 1
            self.calls["call_%03d" % self.count] = key, request.get("params", {})
        self.results = asyncio.get_running_loop().create_future()
        self.asked.put_nowait([
            {"id": number, "name": params.get("name"), "input": params.get("arguments") or {}}
            for number, (_, params) in self.calls.items()])
        return await self.results

    def answer(self, results):
        """What the client sent, in the service's form. HTTPBadRequest: not for these calls."""
        answers = {}
        for one in results:
            if not isinstance(one, dict) or one.get("call_id") not in self.calls:
                raise web.HTTPBadRequest(text="tool_results: no such call_id")
            key = self.calls[one["call_id"]][0]
            if key in answers:
                raise web.HTTPBadRequest(text="tool_results: a call_id comes twice")
            failed = bool(one.get("is_error"))
            text = str(one.get("error_message") or "the tool failed") if failed else \
                json.dumps(one.get("result"))
            answers[key] = {"isError": failed, "content": [{"type": "text", "text": text}]}
        if len(answers) != len(self.calls):
            raise web.HTTPBadRequest(text="tool_results: a result is missing")
        return answers


def normalized(name):
    """The name of a tool as the source of a script may write it."""
    name = re.sub(r"[^A-Za-z0-9_]", "", re.sub(r"[- ]", "_", name))
    if name[:1].isdigit():
        name = "_" + name
    return name + "_tool" if keyword.iskeyword(name) else name or "_"


def stubs(names):
    """A module that offers the tools under the names that the source uses."""
    lines = ["import tools as _tools", "__all__ = %r" % [normalized(n) for n in names]]
    for name in names:
        lines.append("async def %s(**given):\n    return await _tools.client[%r].aio(**given)"
                     % (normalized(name), name))
    return "\n".join(lines) + "\n"


async def programmatic(request):
    gateway = request.app["gateway"]
    principal = await gateway.principal(request)
    body = await json_body(request)
    if "continuation_token" in body:
        return await go_on(request, gateway, principal, body)
    try:
        check_profile(request)
        job = Job(body)
    except Unsupported as e:
        return refusal(400, "unsupported_capability", str(e))
    if job.is_bash or request.headers.get("X-LibreChat-Code-Workspace-ID"):
        return refusal(400, "unsupported_capability", "tools are called from py alone")
    tools = field(body, "tools", list, [])
    names = [t.get("name") for t in tools if isinstance(t, dict)]
    if not tools or len(tools) > TOOLS_MAX or not all(isinstance(n, str) and n for n in names) \
            or len(names) != len(tools):
        raise web.HTTPBadRequest(text="tools: 1 to %d objects with a name" % TOOLS_MAX)
    if sum(p.tenant == principal.tenant for p in gateway.pending.values()) >= PENDING_MAX:
        return refusal(429, "rate_limited", "too many scripts wait for their tools")
    pending = Pending(principal.tenant, request.headers.get("X-LibreChat-Code-Request-ID"))
    declared = [{"name": t["name"], "description": str(t.get("description") or "")[:4096],
                 "inputSchema": t["parameters"] if isinstance(t.get("parameters"), dict)
                 else {"type": "object"}} for t in tools]
    files, known, missing = await inputs(gateway, principal, body)
    arguments = {**job.limits, "script": "from _librechat_tools import *\n" + job.code,
                 "timeout_seconds": SECONDS_MAX,
                 "files": [*files, {"path": "_librechat_tools.py", "text": stubs(names)}]}

    async def work():
        answer = await gateway.service.call("run_script", arguments, principal.token,
                                            on_requests=pending.ask, client_tools=declared)
        return answer, known, missing
    pending.task = asyncio.ensure_future(work())
    gateway.pending[pending.token] = pending
    return await next_round(request, gateway, pending)


async def go_on(request, gateway, principal, body):
    pending = gateway.pending.get(field(body, "continuation_token", str, ""))
    if not pending or pending.tenant != principal.tenant:
        return refusal(404, "Execution not found or expired", "")
    if pending.results is None or pending.results.done():
        return refusal(409, "execution_busy", "another continuation runs")
    answers = pending.answer(field(body, "tool_results", list, [], required=True))
    pending.results.set_result(answers)
    return await next_round(request, gateway, pending)


async def next_round(request, gateway, pending):
    """The answer when the script calls tools again, or has ended."""
    if pending.timer:
        pending.timer.cancel()
    asked = asyncio.ensure_future(pending.asked.get())
    try:
        await while_connected(request, asyncio.wait([asked, pending.task],
                                                    return_when=asyncio.FIRST_COMPLETED))
    except asyncio.CancelledError:
        give_up(gateway, pending)
        raise
    finally:
        asked.cancel()
    if asked.done() and not asked.cancelled():
        pending.timer = asyncio.get_running_loop().call_later(
            PENDING_SECONDS, give_up, gateway, pending)
        return web.json_response({
            "status": "tool_call_required", "session_id": short_id(pending.token),
            "continuation_token": pending.token, "tool_calls": asked.result(),
            "partial_stdout": "", "partial_stderr": ""})
    gateway.pending.pop(pending.token, None)
    if pending.task.cancelled():
        return refusal(404, "Execution not found or expired", "")
    answer, known, missing = pending.task.result()
    failed = refused(answer)
    if failed:
        return failed
    s = answer.structured
    result = {"session_id": short_id(s.get("execution_id") or pending.token),
              "stdout": s.get("stdout") or "", "stderr": stderr_of(answer, missing)}
    if answer.status in ("ok", "error"):
        files = [f for f in outputs(answer, known) if f["name"] != "_librechat_tools.py"]
        return web.json_response({"status": "completed", **result, "files": files})
    return web.json_response({"status": "error", **result, "error": LIMITS.get(
        answer.status, "Execution failed or timed out")})


def give_up(gateway, pending):
    gateway.pending.pop(pending.token, None)
    pending.task.cancel()


async def cancel(request):
    gateway = request.app["gateway"]
    principal = await gateway.principal(request)
    asked = field(await json_body(request), "request_id", str, required=True)
    for pending in list(gateway.pending.values()):
        if pending.tenant == principal.tenant and pending.request_id == asked:
            give_up(gateway, pending)
            return web.json_response({"status": "cancelled"})
    return refusal(404, "not_found", "nothing runs under this request_id")


# ---- files ----

def checked_name(name):
    parts = (name or "").split("/")
    if not name or len(name) > 256 or any(p in ("", ".", "..") for p in parts) or \
            not name.isprintable() or parts[0].startswith("."):
        raise web.HTTPBadRequest(text="file: %.80r is not a name for a file here" % name)
    return name


async def store(gateway, principal, name, data):
    """Has the service keep these bytes; returns Kept."""
    if len(data) <= FILE_MAX:
        answer = await gateway.service.call("run_script", {"script": UPLOAD, "files": [
            {"path": ".upload", "base64": base64.b64encode(data).decode()},
            {"path": ".name", "text": name}], "text_tokens": 100}, principal.token)
        kept = [f for f in answer.structured.get("files") or []
                if f.get("uri") and f["path"] == name]
        if answer.status != "ok" or not kept:
            raise ServiceError(503, answer.text.strip() or answer.status)
        return Kept(kept[0]["uri"], len(data))
    try:
        uri = await gateway.service.put(name.replace("/", "_"), data, principal.token)
    except ServiceError as e:
        raise web.HTTPRequestEntityTooLarge(
            max_size=FILE_MAX, actual_size=len(data),
            text="files above %d MiB need [http] links: %s" % (FILE_MAX >> 20, e)) from e
    return Kept(uri, len(data))


async def received(request, most):
    """The files of a form, as (name, bytes)."""
    files, size = [], 0
    if not request.content_type.startswith("multipart/"):
        raise web.HTTPBadRequest(text="the body is not multipart/form-data")
    async for part in form_files(request):
        if part.filename is None:
            continue
        if len(files) == most:
            raise web.HTTPBadRequest(text="more than %d files" % most)
        data = bytearray()
        while piece := await part.read_chunk(1 << 16):
            request.app["gateway"].hold(request, len(piece))
            data += piece
            size += len(piece)
            if size > UPLOAD_MAX:
                raise web.HTTPRequestEntityTooLarge(max_size=UPLOAD_MAX, actual_size=size)
        files.append((part.filename, bytes(data)))
    if not files:
        raise web.HTTPBadRequest(text="file is missing")
    return files


async def upload(request):
    gateway = request.app["gateway"]
    principal = await gateway.principal(request)
    (name, data), = await received(request, 1)
    async with gateway.place(principal.tenant):
        kept = await store(gateway, principal, checked_name(name), data)
    return web.json_response({
        "message": "success", "storage_session_id": kept.session, "session_id": kept.session,
        "files": [{"fileId": kept.id, "filename": name}]})


async def upload_batch(request):
    gateway = request.app["gateway"]
    principal = await gateway.principal(request)
    listed, session, done = [], None, 0
    for name, data in await received(request, UPLOADS_MAX):
        try:
            async with gateway.place(principal.tenant):
                kept = await store(gateway, principal, checked_name(name), data)
        except (ServiceError, web.HTTPException) as e:
            listed.append({"status": "error", "filename": name, "error":
                           e.text if isinstance(e, web.HTTPException) else str(e)})
            continue
        done, session = done + 1, kept.session
        listed.append({"status": "success", "fileId": kept.id, "filename": name,
                       "storage_session_id": kept.session})
    message = "success" if done == len(listed) else "partial_success" if done else "error"
    return web.json_response({"message": message, "storage_session_id": session, "files": listed,
                              "succeeded": done, "failed": len(listed) - done},
                             status=200 if done else 400)


async def found(request):
    gateway = request.app["gateway"]
    principal = await gateway.principal(request)
    key = request.match_info["session"], request.match_info.get("file", "")
    if not all(map(ID.fullmatch, key)):
        raise web.HTTPBadRequest(text="an id has 21 letters, digits, - and _")
    kept = (await kept_files(gateway, principal)).get(key)
    if not kept:
        raise web.HTTPNotFound(text="there is no such file")
    return gateway, principal, kept


async def download(request):
    gateway, principal, kept = await found(request)
    name = os.path.basename(kept.name)
    response = web.StreamResponse(headers={
        "Content-Type": mimetypes.guess_type(name)[0] or "application/octet-stream",
        "Content-Length": str(kept.size), "X-Content-Type-Options": "nosniff",
        "Content-Disposition": 'attachment; filename="%s"' % re.sub(r"[^A-Za-z0-9._-]", "_", name)})
    started = False
    async for piece in gateway.service.read_pieces(kept.uri, kept.size, principal.token):
        if not started:
            await response.prepare(request)
            started = True
        await response.write(piece)
    if not started:
        await response.prepare(request)
    await response.write_eof()
    return response


async def freshness(request):
    _, _, kept = await found(request)
    # The service forgets what is old, and does not say when it came.
    return web.json_response({"name": kept.name, "size": kept.size, "lastModified":
                              datetime.datetime.now(datetime.timezone.utc).isoformat()})


async def listing(request):
    gateway = request.app["gateway"]
    principal = await gateway.principal(request)
    session = request.match_info["session"]
    kept = await kept_files(gateway, principal)
    return web.json_response([
        {"id": k.id, "name": k.name, "storage_session_id": k.session, "size": k.size,
         "metadata": {"original-filename": k.name}} for k in kept.values() if k.session == session])


async def health(request):
    return web.json_response({"status": "ok"})


async def end_all(app):
    for pending in list(app["gateway"].pending.values()):
        give_up(app["gateway"], pending)
        with contextlib.suppress(asyncio.CancelledError, ServiceError):
            await pending.task


def routes(app):
    app["gateway"].pending, app["gateway"].hints = {}, {}
    app.on_shutdown.append(end_all)
    add = app.router
    add.add_get("/v1/health", health)
    add.add_post("/v1/exec", exec_)
    add.add_post("/v1/exec/programmatic", programmatic)
    add.add_post("/v1/exec/programmatic/cancel", cancel)
    add.add_post("/v1/upload", upload)
    add.add_post("/v1/upload/batch", upload_batch)
    add.add_get("/v1/download/{session}/{file}", download)
    add.add_get("/v1/sessions/{session}/objects/{file}", freshness)
    add.add_get("/v1/files/{session}", listing)
