#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The hostile scripts of tests/corpus by each door that runs code: they end as by MCP, nothing gets out, and
the gateway and the service go on for everybody.

A round runs each twelfth script by one door, and always the same ones; where everything is run, each goes by all doors.
MCP_HOSTILE_SCRIPTS: a regular expression for the ids of scripts, which then go by all doors, too."""

import asyncio
import base64
import concurrent.futures
import contextlib
import json
import os
import re
import struct
import sys
import threading
import time
import uuid

import fuse
from doors_suite import TOKEN, kernel_of, own_gateway
from harness import TOP, equal, main, test
from hostile_cases import WORDS, Unexpected, cases, for_this_machine, judge, seconds_of

sys.path.insert(0, os.path.join(TOP, "sdk", "python"))
import mcp_python	# noqa: E402

WANTED = os.environ.get("MCP_HOSTILE_SCRIPTS")
# The corpus has one tool other than run_script, which no door has.
SCRIPTS = [c for c in cases() if "tool" not in c and re.search(WANTED or "", c["id"])]
SETTINGS = "[limits]\ntimeout_seconds = %d\ncpu_seconds = %d\ntimeout_max = %d\n" \
           "[workspace]\nvolume = yes\nvolumes = 16\ndirectory = %s\n"
TIME = WORDS["timeout"] | WORDS["cpu_limit"]
# Cells of a session, whose answers do not say by which end a process came to it.
ANY_END = {"error", "killed", "pid_limit", "memory_limit"}


class Seen:
    """What a client has got. words: of the corpus, one of which is its end; text: all of it."""

    def __init__(self, words, stdout, text):
        self.words, self.stdout, self.text = words, stdout, text


def words_of(text, otherwise):
    """The end in the last line, where dialects without a word for it have it."""
    last = text.rstrip("\n").rpartition("\n")[2]
    return WORDS.get(last, otherwise)


# ---- the doors: (what the service and the gateway are, the script, its time) -> Seen ----

def by_run_code(at, script, seconds):
    answer = at.gateway.run_code(script, run_timeout=seconds)
    run = answer["run_result"] or {}
    text = json.dumps(answer, ensure_ascii=False) + run.get("stdout", "") + run.get("stderr", "")
    if answer["status"] == "SandboxError":
        words = {"refused"}
    elif run["status"] == "TimeLimitExceeded":
        words = TIME
    elif run["return_code"] == 0 or "the output is longer than is kept\n" in run["stderr"][-80:]:
        words = WORDS["ok"]
    else:
        words = words_of(run["stderr"], WORDS["error"])
    return Seen(words, run.get("stdout", ""), text)


def by_librechat(at, script, seconds):
    """Its own shortest time is a minute: the service has a shorter one for scripts that never end."""
    status, answer = at.gateway.ask("POST", "/v1/exec", {"lang": "py", "code": script, "timeout": seconds * 1000})
    text = json.dumps(answer, ensure_ascii=False)
    if status != 200:
        return Seen({"refused"}, "", text)
    last = answer["stderr"].rstrip("\n").rpartition("\n")[2]
    said = {"Time limit exceeded": TIME, "Out of memory": WORDS["memory_limit"],
            "stdout length exceeded": WORDS["output_limit"]}
    words = said.get(last) or (WORDS["ok"] if answer["code"] == 0 else ANY_END)
    return Seen(words, answer["stdout"], text + answer["stdout"] + answer["stderr"])


def by_jupyter(at, script, seconds):
    async def run():
        async with kernel_of(at.gateway) as (kernel_id, kernel, session):
            got = await kernel.run(script)
            async with session.delete("%s/api/kernels/%s" % (at.gateway.url, kernel_id)) as response:
                assert response.status == 204, response.status
            return got
    got = asyncio.run(run())
    # A cell comes back to its clients as it was sent.
    shown = [m for m in got.messages if m[0] != "execute_input"]
    text = json.dumps([got.reply, shown], ensure_ascii=False) + got.stdout + \
        "".join(c["text"] for c in got.of("stream"))
    words = WORDS["ok"] if got.reply["status"] == "ok" else words_of_error(got.reply["ename"])
    return Seen(words, got.stdout, text)


def words_of_error(name):
    return ANY_END if name in ("KernelRestarted", "ContextRestarted") else \
        TIME if WORDS.get(name, set()) & TIME == {"timeout"} else WORDS.get(name, WORDS["error"])


@contextlib.contextmanager
def sandbox(at):
    """The headers for a new sandbox."""
    key = [("X-API-KEY", TOKEN)]
    status, made = at.gateway.ask("POST", "/v2/sandboxes", {"templateID": "base"}, None, key)
    equal(status, 201, "%r" % (made,))
    try:
        yield [("E2b-Sandbox-Id", made["sandboxID"]), ("X-Access-Token", made["envdAccessToken"])]
    finally:
        status, said = at.gateway.ask("DELETE", "/sandboxes/" + made["sandboxID"], None, None, key)
        equal(status, 204, "%r" % (said,))


def by_e2b_code(at, script, seconds):
    with sandbox(at) as headers:
        status, data = at.gateway.ask("POST", "/execute", {"code": script}, None, headers)
    equal(status, 200, "%r" % (data,))
    events = [json.loads(line) for line in data.splitlines()]
    equal(events[-1]["type"], "end_of_execution")
    stdout = "".join(e["text"] for e in events if e["type"] == "stdout")
    errors = [e["name"] for e in events if e["type"] == "error"]
    words = words_of_error(errors[-1]) if errors else WORDS["ok"]
    return Seen(words, stdout, data.decode() + "".join(
        e.get("text") or e.get("value") or "" for e in events))


def by_e2b_command(at, script, seconds):
    """`python3 FILE` in a sandbox."""
    body = json.dumps({"process": {"cmd": "python3", "args": ["main.py"]}, "stdin": False}).encode()
    with sandbox(at) as headers:
        status, said = at.gateway.ask("POST", "/files?path=main.py", script.encode(), None, [
            *headers, ("Content-Type", "application/octet-stream")])
        equal(status, 200, "%r" % (said,))
        status, data = at.gateway.ask(
            "POST", "/process.Process/Start", struct.pack(">BI", 0, len(body)) + body, None, [
                *headers, ("Content-Type", "application/connect+json"),
                ("Connect-Timeout-Ms", str(int(seconds * 1000)))])
    equal(status, 200, "%r" % (data,))
    out, last = {"stdout": b"", "stderr": b""}, {}
    while data:
        size, = struct.unpack(">I", data[1:5])
        message, data = json.loads(data[5:5 + size]), data[5 + size:]
        for stream, piece in message.get("event", {}).get("data", {}).items():
            out[stream] += base64.b64decode(piece)
        last = message if "end" in message.get("event", {}) or "error" in message else last
    stdout, text = (t.decode("utf-8", "replace") for t in (out["stdout"], out["stdout"] + out["stderr"]))
    if "error" in last:
        words = TIME if last["error"]["code"] == "deadline_exceeded" else {"refused"}
    else:
        end = last["event"]["end"]
        words = WORDS.get(end["status"]) or (WORDS["ok"] if end["exitCode"] == 0 else ANY_END)
    return Seen(words, stdout, text + json.dumps(last))


def by_library(at, script, seconds):
    with mcp_python.Client(at.service.socket) as client:
        result = client.run(script, timeout=seconds)
    return answer_of(result)


# ---- the same by MCP, where a script is a cell, or the program of a command ----

def answer_of(result):
    return Seen(WORDS.get(result.status, {result.status}), result.stdout,
                json.dumps([result.raw, result.content], ensure_ascii=False) + result.stdout + result.stderr)


def cell_by_mcp(at, script, seconds, **more):
    with mcp_python.Client(at.service.socket) as client:
        result = client.call("run_repl", {"code": script, "close": True, "timeout_seconds": seconds, **more})
    return answer_of(result)


def program_by_mcp(at, script, seconds):
    with mcp_python.Client(at.service.socket) as client:
        result = client.run("import os, subprocess, sys\nos.chdir('/volume/data')\n"
                            "open('main.py', 'w').write(open('/workspace/main.py').read())\n"
                            "sys.exit(subprocess.run(['python3', 'main.py']).returncode)",
                            files={"main.py": script}, timeout=seconds, volume="by-mcp")
    seen = answer_of(result)
    return Seen(ANY_END if result.status == "error" else seen.words, seen.stdout, seen.text)


BY_MCP = {"jupyter": cell_by_mcp, "e2b-command": program_by_mcp,
          "e2b-code": lambda *given: cell_by_mcp(*given, volume="by-mcp")}
DOORS = {"run_code": by_run_code, "librechat": by_librechat, "jupyter": by_jupyter, "e2b-code": by_e2b_code,
         "e2b-command": by_e2b_command, "library": by_library}


# What E2B's clients want to find: a user with a home, in environment variables, and a volume, which has no
# FIFOs and hard links. These scripts look for just that.
E2B_HAS = {"own-id-environment", "own-id-cached-identity", "own-compat-syscalls"}

# What these look for is there for a reason: around a cell, the process that has the state before it, and the pipes
# of its output; around a program, the script that has started it, and no socket to the service, whose frames would
# end it; for both of E2B's, a volume that can be written to.
CELLS_HAVE = {"proc-mem-write", "proto-forged-result", "own-fs-fd-reopen", "own-fs-descriptors", "own-net-left-behind"}
HAS = {"jupyter": CELLS_HAVE, "e2b-code": CELLS_HAVE | {"own-fs-mount-flags"},
       "e2b-command": {"proc-mem-write", "own-sys-init-memory", "own-fs-mount-flags", "own-fs-hosts-disk",
                       "own-sig-init-settings", "own-tools-flood", "own-tools-forged-result"}}


class At:
    """A service and its gateway."""

    def __init__(self, service, gateway):
        self.service, self.gateway = service, gateway


def run_one(ctx, at, door, name, script, expect, seconds):
    """The corpus says how a script ends. A cell, and a program that a script starts, have more processes and
    files of their own around them than a script has; there the expected end is that by MCP, to the letter. What
    must never be seen is for those alone that are named in HAS."""
    def verdict(how):
        """(what came, what of it is not as the corpus says or None)"""
        began = time.monotonic()
        seen = how(at, for_this_machine(script), seconds)
        try:
            judge(expect, seen.words, seen.stdout, seen.text, time.monotonic() - began, len(seen.text), ctx.slow)
        except Unexpected as e:
            return seen, e
        return seen, None
    seen, wrong = verdict(DOORS[door])
    if not wrong:
        return
    if door not in BY_MCP or (wrong.what == "never" and name not in HAS[door]):
        raise wrong
    by_mcp, same = verdict(BY_MCP[door])
    # Who is killed has written whatever came before that.
    if not (same and same.what == wrong.what and seen.words & by_mcp.words and
            ("killed" in by_mcp.words or masked(seen.stdout) == masked(by_mcp.stdout))):
        raise AssertionError("%s; by MCP %s, %s: %.1500r" % (
            wrong, same or "as expected", sorted(by_mcp.words), by_mcp.text))


def masked(text):
    """Output without what differs from run to run: numbers, and ids in hexadecimal."""
    return re.sub(r"0x[0-9a-f]+|\b[0-9a-f]{8,}\b|\d+", "#", text)


def run_case(ctx, at, door, case, seconds):
    with concurrent.futures.ThreadPoolExecutor() as pool:
        others = []
        for other in case.get("concurrent", ()):
            # The corpus gives times, not events.
            def later(other=other):
                threading.Event().wait(other["delay_s"])
                run_one(ctx, at, door, case["id"], other["script"], other["expect"], seconds)
            others.append(pool.submit(later))
        run_one(ctx, at, door, case["id"], case["script"], case["expect"], seconds)
        for other in others:
            other.result()
    for after in case.get("followup", ()):
        run_one(ctx, at, door, case["id"], after["script"], after["expect"], seconds)
    name = uuid.uuid4().hex
    seen = DOORS[door](at, "print(%r)" % name, seconds)
    assert seen.words == {"ok"} and seen.stdout == name + "\n", "afterwards: %.2000r" % seen.text


def chosen(ctx):
    """(door, script) of this round."""
    everything = WANTED or ctx.options.effort >= 1
    return [(door, case) for i, case in enumerate(SCRIPTS) for n, door in enumerate(DOORS)
            if not (door.startswith("e2b") and case["id"] in E2B_HAS)
            and (everything or i % 12 == 0 and i // 12 % len(DOORS) == n)]


def run_all(ctx, service, gateway, pairs, seconds):
    """What went wrong, as lines."""
    at, wrong = At(service, gateway), []

    def one(pair):
        door, case = pair
        began = time.monotonic()
        try:
            run_case(ctx, at, door, case, seconds)
        except Exception as e:
            wrong.append("%s by %s: %s: %.3000s" % (case["id"], door, type(e).__name__, e))
            print("    " + wrong[-1], flush=True)
        if ctx.options.verbose:
            print("    %-12s %-28s %5.1f s" % (door, case["id"], time.monotonic() - began), flush=True)
    with concurrent.futures.ThreadPoolExecutor(ctx.options.jobs) as pool:
        list(pool.map(one, pairs))
    with mcp_python.Client(service.socket) as client:	# clients of MCP are served as before
        equal(client.run("print(6 * 7)").stdout, "42\n")
    equal(gateway.ask("GET", "/healthz", token=None)[0], 200)
    for path in ("/api/kernels", "/v2/sandboxes"):
        equal(gateway.ask("GET", path), (200, []), path)
    return wrong


@test(private=True)
def hostile_scripts_are_contained_by_each_door(ctx):
    pairs, wrong = chosen(ctx), []
    whole = int(ctx.seconds(30))
    # The dialects of sessions and LibreChat's give no short time: the service does so.
    for short in (False, True):
        some = [p for p in pairs if (seconds_of(p[1], whole) < 10) == short]
        limit = 4 if short else whole
        with fuse.place() as store, own_gateway(ctx, settings=SETTINGS % (limit, limit, limit, store),
                                                wrap=fuse.wrap(store)) as (service, gateway):
            wrong += run_all(ctx, service, gateway, some, limit)
    assert not wrong, "%d of %d:\n%s" % (len(wrong), len(pairs), "\n".join(wrong))
    return "%d by %s" % (len(pairs), ", ".join(DOORS))


if __name__ == "__main__":
    main(__doc__)
