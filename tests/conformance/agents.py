# SPDX-License-Identifier: Apache-2.0
"""Agents' command lines, without an account: a server on this machine stands for the model
(model.py). Each gets a server of its own home, is asked for something, calls run_script, and
what then is sent to the model is looked at."""

import json
import os

from model import END, Model

SECONDS = 180
CLAUDE = "@anthropic-ai/claude-code-linux-x64/claude"
CODEX = "@openai/codex/vendor/x86_64-unknown-linux-musl/bin/codex"
OPENCODE = "opencode-linux-x64-baseline/bin/opencode"
SCRIPT = ("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()\n"
          "print(6 * 7)\n{'sum': 3}")
SAID = ("stdout:\n42\n", "{'sum': 3}", "image/png")


def write(home, name, text):
    path = os.path.join(home, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def claude_code(home, model, place):
    server = ({"type": "http", "url": place} if isinstance(place, str)
              else {"command": place[0], "args": place[1:]})
    path = write(home, "mcp.json", json.dumps({"mcpServers": {"python": server}}))
    return [CLAUDE, "-p", "run it", "--mcp-config", path, "--strict-mcp-config",
            "--allowedTools", "mcp__python__run_script"]


def codex(home, model, place):
    server = ("url = %s" % json.dumps(place) if isinstance(place, str) else
              "command = %s\nargs = %s" % (json.dumps(place[0]), json.dumps(place[1:])))
    write(home, ".codex/config.toml", """model = "test"
model_provider = "here"
approval_policy = "never"
sandbox_mode = "danger-full-access"
[model_providers.here]
name = "here"
base_url = "%s/v1"
wire_api = "responses"
[mcp_servers.python]
%s
""" % (model.url, server))
    return [CODEX, "exec", "--skip-git-repo-check", "run it"]


def opencode(home, model, place):
    server = ({"type": "remote", "url": place} if isinstance(place, str)
              else {"type": "local", "command": place})
    write(home, ".config/opencode/opencode.json", json.dumps({
        "model": "here/test",
        "provider": {"here": {
            "npm": "@ai-sdk/openai-compatible", "name": "here",
            "options": {"baseURL": model.url + "/v1", "apiKey": "none"},
            "models": {"test": {"name": "test", "tool_call": True}}}},
        "mcp": {"python": dict(server, enabled=True)}}))
    return [OPENCODE, "run", "run it"]


# Whether its model gets pictures: opencode shows them to models that it knows to see.
AGENTS = {"claude-code": (claude_code, True), "codex": (codex, True), "opencode": (opencode, False)}


def pictures(value):
    """How many PNGs are in what a model was sent, as data."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return sum(map(pictures, value))
    return isinstance(value, str) and value.split(",")[-1].startswith("iVBORw0KGgo")


def text_in(result):
    if isinstance(result, str):
        return result
    return "\n".join(part["text"] for part in result if "text" in part)


def calls(tools, home, agent, sees, place):
    os.mkdir(home)
    with Model("run_script", {"script": SCRIPT}) as model:
        program, *options = agent(home, model, place)
        done = tools.run([os.path.join(tools.modules, program), *options], SECONDS, cwd=home, env={
            "HOME": home, "TMPDIR": home, "ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"})
        why = "exit status %d\n%s%s" % (done.returncode, done.stdout[-1500:], done.stderr[-1500:])
        assert done.returncode == 0 and END in done.stdout.split(), why
        assert model.schema and "script" in model.schema["properties"], model.schema
        assert model.results and len(model.results) == 1, why
        text = text_in(model.results[0])
        missing = [s for s in SAID if s not in text]
        assert not missing, "%s is not in what the model got: %s" % (missing, text)
        assert pictures(model.results) == sees, "%d pictures" % pictures(model.results)
    return "%d characters of text" % len(text)


def run(tools, services, out, report, wanted):
    service = services["shipped"]
    places = {"bridge": [service.bridge, "connect", "--socket", service.socket],
              "tcp": service.url}
    for name, (agent, sees) in AGENTS.items():
        for transport, place in places.items():
            test = "%s by %s" % (name, transport)
            home = os.path.join(out, test.replace(" ", "-"))
            if wanted.search(test):
                report.check(test, lambda h=home, a=agent, s=sees, p=place:
                             calls(tools, h, a, s, p))
