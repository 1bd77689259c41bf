# SPDX-License-Identifier: Apache-2.0
"""A kernel of Jupyter, as far as it does not depend on how its messages travel: cells, completion,
inspection. One kernel is one session of run_repl."""

import asyncio
import codeop
import fnmatch
import json
import platform
import re
import warnings

from calls import ServiceError

TIMEOUT_SECONDS = 600
LOOK_SECONDS = 5
STREAM_SECONDS = 0.02		# for which output is collected before it is sent
STREAM_MAX = 256 << 10		# characters of one message
PICTURE_MAX = 780 << 10		# bytes; some clients refuse messages of 1 MiB
HISTORY_MAX = 1000
HISTORY_CHARACTERS = 1 << 20	# of all cells of a history
LOOKED_AT = 1000		# characters before a place that are looked at for a name
PARSED_MAX = 64 << 10		# characters of a cell that is parsed here, where others wait
TRACEBACK = ("Traceback (most recent call last):", '  File "<cell ')

COMPLETE = """
def _look(text, count=200):
    import builtins, keyword, re, rlcompleter
    word = re.search(r"[\\w.]*$", text)[0]
    names = rlcompleter.Completer(globals())
    found = []
    for i in range(count):
        name = names.complete(word, i)
        if name is None:
            break
        found.append(name.rstrip("() "))
    if not word and found:
        found = []
    found = [f for f in dict.fromkeys(found) if not f.endswith("._look") and f != "_look"]
    return {"word": word, "found": found}
import json as _json
print(_json.dumps(_look(%r)))
"""
INSPECT = """
def _look(name, source):
    import inspect
    value = eval(name)
    parts = ["Type:      " + type(value).__name__]
    try:
        parts.append("Signature: " + name + str(inspect.signature(value)))
    except (TypeError, ValueError):
        parts.append("Value:     " + repr(value)[:2000])
    if source:
        try:
            parts.append("Source:\\n" + inspect.getsource(value))
        except (TypeError, OSError):
            pass
    if inspect.getdoc(value):
        parts.append("Docstring:\\n" + inspect.getdoc(value))
    return "\\n".join(parts)
print(_look(%r, %r))
"""
EXPRESSIONS = """
def _look(asked):
    found = {}
    for name, text in asked.items():
        try:
            found[name] = {"status": "ok", "metadata": {},
                           "data": {"text/plain": repr(eval(text))[:65536]}}
        except Exception as e:
            found[name] = {"status": "error", "ename": type(e).__name__, "evalue": str(e),
                           "traceback": []}
    return found
import json as _json
print(_json.dumps(_look(%r)))
"""
TABLE = "print(_._repr_html_())"


class SessionEnded(Exception):
    """The session is gone; the kernel has begun a new one. The text says why."""


def rest_of(whole, come):
    """What of an output has not come yet."""
    return whole[len(come):] if whole.startswith(come) else ""


class Stream:
    """Output on its way to the client: collected for a moment, and without the traceback, which
    goes in a message of its own."""

    def __init__(self, publish):
        self.publish = publish
        self.name, self.text, self.held = "stdout", "", ""
        self.timer, self.printed = None, ""

    def put(self, name, text):
        if name == "stdout":
            self.printed += text
        if name == "stderr":
            text = self.held + text
            at = min((i for i in map(text.find, TRACEBACK) if i >= 0), default=-1)
            self.held = "" if at < 0 else text[at:]
            text = text if at < 0 else text[:at]
        if not text:
            return
        if name != self.name:
            self.flush()
            self.name = name
        self.text += text
        if self.timer is None:
            self.timer = asyncio.get_running_loop().call_later(STREAM_SECONDS, self.flush)

    def flush(self):
        if self.timer:
            self.timer.cancel()
            self.timer = None
        text, self.text = self.text, ""
        for at in range(0, len(text), STREAM_MAX):
            self.publish("stream", {"name": self.name, "text": text[at:at + STREAM_MAX]})

    def end(self, error, stdout=""):
        """error: the answer's; what was held back is its traceback, or output after all. stdout: of the
        answer, which has more than what has come if stderr has used up what the service sends."""
        self.put("stdout", rest_of(stdout, self.printed))
        held, self.held = self.held, ""
        traceback = (error or {}).get("traceback") or ""
        if traceback and held.endswith(traceback):
            held = held[:-len(traceback)]
        elif traceback and held.strip() in traceback:
            held = ""
        if held:
            if self.name != "stderr":
                self.flush()
                self.name = "stderr"
            self.text += held
        self.flush()


class Kernel:
    def __init__(self, service, profile=None, volume=None):
        self.service, self.profile, self.volume = service, profile, volume
        self.session, self.count = None, 0
        self.starting = asyncio.Lock()
        self.cells, self.characters = [], 0

    # ---- its life ----

    async def start(self, token):
        """Begins the session, unless it has begun."""
        async with self.starting:
            if self.session:
                return
            arguments = {name: value for name, value in (
                ("profile", self.profile), ("volume", self.volume)) if value}
            answer = await self.service.call("run_repl", arguments, token)
            self.session = answer.structured.get("session")
            if not self.session:
                raise ServiceError(503, answer.text.strip() or answer.status)

    async def restart(self, token):
        await self.close(token)
        self.count = 0
        await self.start(token)

    async def close(self, token):
        session, self.session = self.session, None
        if session:
            await self.service.call("run_repl", {"session": session, "close": True}, token)

    # ---- what is known without the session ----

    def info(self):
        version = platform.python_version()
        return {"status": "ok", "protocol_version": "5.3", "implementation": "mcp-python",
                "implementation_version": self.service.client["version"],
                "banner": "Python in a jail, by mcp-pythond", "debugger": False, "help_links": [],
                "language_info": {"name": "python", "version": version,
                                  "mimetype": "text/x-python", "file_extension": ".py",
                                  "codemirror_mode": {"name": "ipython", "version": 3},
                                  "pygments_lexer": "ipython3",
                                  "nbconvert_exporter": "python"}}

    @staticmethod
    def is_complete(code):
        if code.lstrip().startswith(("%", "!")):
            return {"status": "complete"}
        if len(code) > PARSED_MAX:
            return {"status": "unknown"}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                done = codeop.compile_command(code, symbol="exec")
        except (SyntaxError, ValueError, OverflowError):
            return {"status": "invalid"}
        lines = code.rstrip(" ").split("\n")
        block = len(lines) > 1 and lines[-1].strip() and lines[-1][:1] in " \t"
        if done is not None and not block:
            return {"status": "complete"}
        last = lines[-1]
        indent = last[:len(last) - len(last.lstrip())]
        return {"status": "incomplete",
                "indent": indent + "    " * last.rstrip().endswith(":")}

    def remember(self, code):
        self.cells.append(code)
        self.characters += len(code)
        while len(self.cells) > HISTORY_MAX or self.characters > HISTORY_CHARACTERS:
            self.characters -= len(self.cells.pop(0))

    def history(self, asked):
        cells = list(enumerate(self.cells, 1))
        if asked.get("hist_access_type") == "range":
            first, last = asked.get("start") or 1, asked.get("stop")
            cells = [c for c in cells if c[0] >= first and (last is None or c[0] < last)]
        elif asked.get("hist_access_type") == "search":
            pattern = str(asked.get("pattern") or "*")[:LOOKED_AT]
            cells = [c for c in cells if fnmatch.fnmatch(c[1], pattern)]
            if asked.get("unique"):
                cells = sorted((n, text) for text, n in {text: n for n, text in cells}.items())
        if isinstance(asked.get("n"), int):
            cells = cells[-asked["n"]:]
        return {"status": "ok", "history": [
            [0, n, [text, None] if asked.get("output") else text] for n, text in cells]}

    # ---- looks at the live state, in a copy that is thrown away ----

    async def look(self, code, token):
        """What this code prints in a copy of the session; "" if it fails."""
        await self.start(token)
        answer = await self.service.call("run_repl", {
            "session": self.session, "code": code, "branch": True, "close": True,
            "timeout_seconds": LOOK_SECONDS, "text_tokens": 100}, token)
        return answer.structured.get("stdout", "") if answer.status == "ok" else ""

    async def complete(self, code, position, token):
        position = position if isinstance(position, int) else len(code)
        text = code[:max(0, position)]
        try:
            seen = json.loads(await self.look(COMPLETE % text[-LOOKED_AT:], token))
            word, found = seen["word"], [str(f) for f in seen["found"]]
        except (ValueError, KeyError, TypeError):
            word, found = "", []
        return {"status": "ok", "matches": found, "cursor_start": position - len(word),
                "cursor_end": position, "metadata": {}}

    async def inspect(self, code, position, detail, token):
        position = position if isinstance(position, int) else len(code)
        name = name_at(code, position)
        text = await self.look(INSPECT % (name, detail == 1), token) if name else ""
        return {"status": "ok", "found": bool(text), "metadata": {},
                "data": {"text/plain": text} if text else {}}

    # ---- cells ----

    async def execute(self, code, token, publish, silent=False, store=True, ask=None,
                      expressions=None):
        """Runs a cell. publish(kind, content) sends what its outputs are. Returns the reply.
        SessionEnded: it did not run, or took the session with it."""
        reply = {"status": "ok", "payload": [], "user_expressions": {}}
        if not code.strip():
            return {**reply, "execution_count": self.count}
        counts = store and not silent
        if counts:
            self.count += 1
            self.remember(code)
        if not silent:
            publish("execute_input", {"code": code, "execution_count": self.count})
        stream = Stream((lambda *a: None) if silent else publish)
        await self.start(token)
        try:
            answer = await self.service.call(
                "run_repl", {"session": self.session, "code": code, "text_tokens": 100,
                             "timeout_seconds": TIMEOUT_SECONDS, "cpu_seconds": TIMEOUT_SECONDS},
                token, stream.put, self.questions(ask, stream) if ask else None)
        except BaseException:
            stream.end(None)
            raise
        s = answer.structured
        stream.end(s.get("error"), s.get("stdout") or "")
        if not silent:
            await self.outputs(answer, publish, token)
        error = self.error_of(answer)
        if s.get("state") == "lost" or answer.status == "no_session":
            await self.close(token)
            self.count = 0
            raise SessionEnded(s.get("state_text") or answer.text.strip() or answer.status)
        if error:
            if not silent:
                publish("error", error)
            return {"status": "error", "execution_count": self.count, **error, "payload": [],
                    "user_expressions": {}}
        if expressions:
            try:
                reply["user_expressions"] = json.loads(
                    await self.look(EXPRESSIONS % (expressions,), token))
            except ValueError:
                pass
        return {**reply, "execution_count": self.count}

    @staticmethod
    def questions(ask, stream):
        async def answer(requests):
            answers = {}
            for key, request in requests.items():
                stream.flush()
                params = request.get("params", {})
                value = await ask(params.get("prompt", prompt_of(params.get("message", ""))))
                answers[key] = {"action": "decline"} if value is None else \
                    {"action": "accept", "content": {"line": value}}
            return answers
        return answer

    @staticmethod
    def error_of(answer):
        """What a client shows of a cell that failed; None: it did not."""
        s = answer.structured
        error = s.get("error")
        if answer.status == "ok" and not error:
            return None
        if not error:
            text = (s.get("message") or answer.text).strip()
            return {"ename": answer.status, "evalue": text, "traceback": [text]}
        traceback = (error.get("traceback") or "").rstrip("\n")
        if not traceback:
            traceback = ("%s: %s" % (error["type"], error.get("message") or "")).rstrip(": ")
        lines = traceback.split("\n")
        if s.get("state") == "rolled_back":
            lines.append(s.get("state_text") or "The session is as it was before the cell.")
        if error.get("advice"):
            lines.append(str(error["advice"]))
        return {"ename": error["type"], "evalue": error.get("message") or "", "traceback": lines}

    async def outputs(self, answer, publish, token):
        s = answer.structured
        for name in ("stdout", "stderr"):
            if s.get("background_" + name):
                publish("stream", {"name": name, "text": s["background_" + name]})
        for text in s.get("not_carried") or []:
            publish("stream", {"name": "stderr", "text": text + "\n"})
        groups = display_groups(answer)
        result = s.get("result")
        own = None
        if result and groups and "text/plain" not in groups[-1] and \
                not any(mime.startswith("image/p") or mime == "image/jpeg" for mime in groups[-1]):
            own = groups.pop()
        for data in groups:
            publish("display_data", {"data": bounded(data), "metadata": {}, "transient": {}})
        if result:
            data = {"text/plain": result["repr"], **(own or {})}
            table = data.pop("application/json", None)
            if isinstance(table, dict) and {"columns", "rows"} <= table.keys():
                html = (await self.look(TABLE, token)).strip()
                if html:
                    data["text/html"] = html
            elif table is not None:
                data["application/json"] = table
            publish("execute_result", {"data": bounded(data), "metadata": {},
                                       "execution_count": self.count})


def prompt_of(message):
    """The prompt in the question of a form, where it is quoted."""
    lines = [line[2:] for line in message.split("\n") if line.startswith("> ")]
    return "\n".join(lines) if lines else message


def display_groups(answer):
    """The displayed objects, each a dict of its forms by MIME type."""
    blocks = [c for c in answer.content if c.get("type") in ("image", "resource")]
    groups = {}
    for shown in answer.structured.get("displays") or []:
        data = groups.setdefault(shown["index"], {})
        mime = shown["mime_type"]
        if "json" in shown or "text" in shown:
            data[mime] = shown["json"] if "json" in shown else shown["text"]
            continue
        for i, block in enumerate(blocks):
            value = block_of(block, mime)
            if value is not None:
                data[mime] = value
                del blocks[i]
                break
    return [data for _, data in sorted(groups.items()) if data]


def block_of(block, mime):
    """The content of a block if it is of this type."""
    if block["type"] == "image":
        return block["data"] if block["mimeType"] == mime else None
    resource = block["resource"]
    return resource.get("text", resource.get("blob")) if resource.get("mimeType") == mime else None


def bounded(data):
    """Without a picture that would make the message too long for some clients."""
    large = [m for m, v in data.items() if isinstance(v, str) and len(v) > PICTURE_MAX * 4 // 3]
    if not large:
        return data
    kept = {m: v for m, v in data.items() if m not in large}
    kept.setdefault("text/plain", "(%s, too large to show)" % ", ".join(large))
    return kept


def name_at(code, position):
    """The dotted name at a place in the code, or before the parenthesis that encloses it."""
    before = max(0, position - LOOKED_AT)	# the time to search grows with the square
    code, position = code[before:position + LOOKED_AT], position - before
    for match in re.finditer(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*", code):
        if match.start() <= position <= match.end():
            return match[0]
    before = re.search(r"([^\W\d]\w*(?:\.[^\W\d]\w*)*)\([^()]*$", code[:position])
    return before[1] if before else ""
