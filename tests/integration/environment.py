#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Inline metadata (PEP 723), validate_script, check_environment, and the dependencies of
run_script, as clients see them. Every result is validated against its tool's schema."""

import json
import os
import re
import tempfile

from harness import CORPUS, SOMEBODY, Skip, equal, main, test
from interpreter import under_test
from mcp_schema import Validator, jsonschema
from mcpclient import LEGACY, MODERN, Client
from package_store import new_store

BLOCK = "# /// script\n%s# ///\n"
PYTHON = "%d.%d.%d" % under_test.version


def tools_of(client):
    return {tool["name"]: tool for tool in client.ask("tools/list")["tools"]}


def call(client, name, arguments, revision=LEGACY[-1]):
    """The result of a tool, validated."""
    result = client.ask("tools/call", {"name": name, "arguments": arguments})
    if jsonschema is None:
        raise Skip("python3-jsonschema is not installed", missing=True)
    Validator(revision).check("CallToolResult", result)
    if "structuredContent" in result:
        jsonschema.Draft202012Validator(tools_of(client)[name]["outputSchema"]).validate(
            result["structuredContent"])
    return result


def text_of(result):
    return "".join(block["text"] for block in result["content"])


def validate(client, script, **arguments):
    result = call(client, "validate_script", dict(arguments, script=script))
    assert not result.get("isError"), result
    return result["structuredContent"]


def metadata(*lines):
    return BLOCK % "".join("# %s\n" % line for line in lines)


# ---- the corpus ----

def corpus():
    with open(os.path.join(CORPUS, "pep723-public.jsonl"), encoding="utf-8") as file:
        return [json.loads(line) for line in file]


WORDS = {"multiple-blocks": "second block", "toml": "not TOML", "type": "must be a",
         "dependency": "is not a requirement", "requires-python": "not a version specifier"}


def check_case(client, case):
    """The outcome as the corpus names it."""
    want, got = case["expect"], validate(client, case["script"])
    of_block = [e for e in got["errors"]
                if any(word in e["message"] for word in WORDS.values())]
    if not got["found"]:
        equal((of_block, got["dependencies"]), ([], []), case["id"])
        return "none"
    if of_block:
        if want["result"] == "error":
            assert any(WORDS[want["error"]] in e["message"] for e in of_block), (case["id"], got)
        lines = case["script"].count("\n") + 1
        assert all(1 <= e["line"] <= lines for e in of_block), (case["id"], got)
        return "error"
    if want["result"] == "ok":
        equal(got["dependencies"], want["dependencies"], case["id"])
        equal(got["requires_python"], want["requires_python"], case["id"])
    if want.get("run") == "refuse":
        assert not got["python_fits"], got
    return "ok"


@test
def corpus_of_inline_metadata(ctx):
    with ctx.client() as client:
        cases = corpus()
        for case in cases:
            allowed = [case["expect"]["result"]] + case["expect"].get("also_allowed", [])
            outcome = check_case(client, case)
            assert outcome in allowed, "%s: %s, not %s" % (case["id"], outcome, allowed)
    return "%d cases" % len(cases)


# ---- validate_script ----

@test
def validate_in_every_revision(ctx):
    for revision in LEGACY + (MODERN,):
        with ctx.client(revision) as client:
            tool = tools_of(client)["validate_script"]
            if revision >= "2025-03-26":
                assert tool["annotations"]["readOnlyHint"], tool
            result = call(client, "validate_script", {"script": "print(1)\n"}, revision)
            assert "The script is valid." in text_of(result), result
            assert ("structuredContent" in result) == (revision >= "2025-06-18"), result


@test
def validate_says_what_is_wrong_and_where(ctx):
    with ctx.client() as client:
        got = validate(client, "x = 1\n" + metadata('dependencies = [', '  "six",', '  "-bad",',
                                                    ']', 'requires-python = "3.x"'))
        equal(sorted(e["line"] for e in got["errors"]), [5, 7], "lines")
        equal(got["valid"], False)
        got = validate(client, metadata("a = 1", "b = ]"))
        equal([e["line"] for e in got["errors"]], [3], "the line of a TOML error")
        got = validate(client, metadata('dependencies = ["a"]') + "\n" + metadata("x = 1"))
        equal([e["line"] for e in got["errors"]], [5], "the line of the second block")
        got = validate(client, "a = 1\r\nb = (\r\n")
        equal([e["line"] for e in got["errors"]], [2], "the line of a syntax error")
        got = validate(client, "x = '\0'")
        assert "NUL" in got["errors"][0]["message"], got


# What a script that runs has, and must not be reported.
WELL = [
    "import os.path, json as j\nfrom collections import *\nprint(deque, whatever)", "def f(a, *b, c=1, **d): return a, b, c, d, __file__",
    "try:\n    import nonsuch_99\nexcept ImportError:\n    nonsuch_99 = None", "try:\n    unicode\nexcept NameError:\n    unicode = str",
    "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import nonsuch_99", "import xml.dom.minidom\nxml.dom", "display(1)",
    "class A:\n    x: int = 1\n    def f(self): return A, __class__", "match [1, 2]:\n    case [a, *rest]: print(a, rest)",
    "[x for x in range(3) if (y := x)]\nprint(y)", "exec('q = 1')\nprint(q)", "with open('a') as f, open('b') as g: f, g",
    "for i, (k, v) in enumerate({}.items()): print(i, k, v)", "global z\nz = 1", "import asyncio\nawait asyncio.sleep(0)",
    "try: 1\nexcept ValueError as e: print(e)", "lambda a: a", "def f():\n    return later\nlater = 1", "x = !ls\nprint(x, y_of_a_cell)",
    "```python\nprint(6 * 7)\n```", "Here:\n```py\nprint(1)\n```\nDone.", "    x = 1\n    print(x)", "%matplotlib inline\nprint(1)", "!ls",
    "import math\\nprint(math.pi)"]
# What does not run, the lines, and words of the messages.
ILL = [
    ("import nonsuch_99", [(1, "The module nonsuch_99 is not installed")]),
    ("import os\n\ndef f():\n    from nonsuch_99.a import b", [(4, "nonsuch_99")]),
    ("x = 1\nprint(x, lenght)", [(2, "the name lenght is not defined")]), ("lenght = 1\nprint(lenhgt)", [(2, "did you mean lenght?")]),
    ("```\nimport nonsuch_99\n```", [(2, "nonsuch_99")]), ("pip install six", [(1, "pip cannot install")]),
    ("!pip install six", [(1, "pip cannot install")]), ("```\nx = = 1\n```", [(1, "SyntaxError")])]


@test
def validate_looks_at_names_and_imports(ctx):
    """In each form in which a script may be written. Nothing is reported that may run."""
    with ctx.client() as client:
        for script in WELL:
            got = validate(client, script)
            equal((got["valid"], got["errors"]), (True, []), script)
        for script, want in ILL:
            got = validate(client, script)
            equal((got["valid"], [e["line"] for e in got["errors"]]), (False, [line for line, _ in want]), script)
            for error, (_, words) in zip(got["errors"], want):
                assert words in error["message"], (script, got)
        ctx.healthy(client)


@test(private=True)
def validate_gives_the_true_verdict(ctx):
    """Here, to be installed, to be approved, denied, or nowhere to be had."""
    for config, approval, dependency, module in (
            (None, False, "nothing can be installed here", "no package can be installed here"),
            ("others = allow\n", False, "it is installed when the script runs", "Make the call again with dependencies"),
            ("", True, "a person has to approve it", "A person has to approve it"),
            ("deny = torchaudio\n", False, "policy does not let it", "policy does not let its package")):
        with tempfile.TemporaryDirectory() as here:
            os.chmod(here, 0o755)
            config = config if config is None else \
                "[packages]\nindex = http://127.0.0.1:9/simple/\nstore = %s/store\n%s" % (here, config)
            with ctx.private(config) as s, ctx.client(path=s.socket) as client:
                result = call(client, "validate_script", {"script": "import torchaudio", "dependencies": ["torchaudio"]})
                got = result["structuredContent"]
                equal((got["valid"], got["missing"], got["would_need_approval"]), (True, ["torchaudio"], approval), config)
                assert dependency in text_of(result), text_of(result)
                result = call(client, "validate_script", {"script": "import torchaudio"})
                equal(result["structuredContent"]["valid"], False)
                assert module in text_of(result), text_of(result)


@test
def validate_runs_nothing_and_survives(ctx):
    with ctx.client() as client:
        got = validate(client, "import time\nwhile True: pass\n")
        equal(got["valid"], True)
        for script in ("(" * 100000, "-" * 300000 + "1", "x" + "()" * 200000,
                       metadata("a = " + "[" * 20000)):
            got = validate(client, script)
            equal(got["valid"], False, "%.20r" % script)
            assert got["errors"] and len(got["errors"][0]["message"]) < 1000, got
        got = validate(client, metadata(*("# %d %s" % (i, "x" * 60) for i in range(2000))))
        assert "at most 65536" in got["errors"][0]["message"], got
        got = validate(client, metadata("dependencies = [%s]" % ",".join(["'-'"] * 1000)))
        equal(len(got["errors"]), 64)
        ctx.healthy(client)


@test
def validate_merges_by_name(ctx):
    with ctx.client() as client:
        got = validate(client, metadata('dependencies = ["Foo_Bar>=1", "b"]'),
                       dependencies=["foo.bar<2", "b", "foo-bar[x]; os_name == 'nt'", "B==1.*"])
        equal(got["dependencies"], ["foo-bar>=1,<2", "b==1.*", "foo-bar[x]; os_name == 'nt'"])
        equal(got["missing"], ["foo-bar>=1,<2", "b==1.*"])
        equal(got["would_need_approval"], False, "nothing can be installed here")
        got = validate(client, "1", dependencies=["six; python_version < '3'"])
        equal(got["would_need_approval"], False, "what a marker leaves out")
        got = validate(client, "1", dependencies=["./x"])
        equal([e["line"] for e in got["errors"]], [None])


@test
def validate_refuses_wrong_arguments(ctx):
    with ctx.client() as client:
        for arguments, word in (({}, "script is required"), ({"script": 1}, "must be a string"),
                                ({"script": "", "dependencies": "six"}, "must be an array"),
                                ({"script": "", "dependencies": [1]}, "item 0"),
                                ({"script": "", "dependencies": ["x" * 5000]}, "item 0"),
                                ({"script": "", "dependencies": ["x"] * 1025}, "at most 1024"),
                                ({"script": "", "code": 1}, "code is not an argument")):
            result = call(client, "validate_script", arguments)
            assert result["isError"] and word in text_of(result), (arguments, result)
        ctx.healthy(client)


# ---- check_environment ----

def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def look(client, **arguments):
    result = call(client, "check_environment", arguments)
    assert not result.get("isError"), result
    return result["structuredContent"], text_of(result)


@test(private=True)
def governance_is_told_before_the_call(ctx):
    """In the description of each tool that runs code, and by the tools that describe the service."""
    said = "A person has to approve each call"
    for preset in "strict", "open":
        strict = preset == "strict"
        for toolset, runs, looks, want in (
                ("native", ("run_script", "run_repl"), "check_environment",
                 "each call waits for the approval of a person: run_script, run_repl"),
                ("exec-sandbox", ("execute_python",), "check_environment", "a person approves each script"),
                ("python-sandbox", ("execute_code",), "get_sandbox_info", '"approval_required":true'),
                ("run-python", ("run_python_code",), None, None)):
            config = "[policy]\npreset = %s\n[mcp]\ntoolsets = %s\n" % (preset, toolset)
            with ctx.private(config) as s, ctx.client(path=s.socket) as client:
                listed = {tool["name"]: tool["description"] for tool in client.ask("tools/list")["tools"]}
                for name in runs:
                    equal(said in listed[name], strict, name)
                if looks:
                    result = client.ask("tools/call", {"name": looks, "arguments": {}})
                    equal(want in result["content"][0]["text"], strict, looks)
                    if toolset == "native":
                        equal(result["structuredContent"]["approvals"], ["run_script", "run_repl"] if strict else [])


@test
def environment_is_described(ctx):
    with ctx.client() as client:
        seen, text = look(client)
        equal(seen["python_version"], PYTHON)
        assert "Python %s (cpython, linux), profile basic" % PYTHON in text, text
        equal([p["name"] for p in seen["profiles"]], ["basic", "data", *under_test.profiles])
        equal([p["name"] for p in seen["profiles"] if p["default"]], ["basic"])
        equal(seen["limits"]["default"]["timeout_seconds"], 30)
        equal(seen["limits"]["most"]["memory_mb"], 2048)
        assert seen["enforcement"]["memory"] in ("cgroup", "watchdog"), seen
        equal(seen["enforcement"]["memory"] == "watchdog", ctx.fallback)
        assert seen["enforcement"]["summary"] and seen["yours"]["sessions"] >= 1, seen
        there = {p["name"]: p["version"] for p in seen["packages"]}
        o = client.run("import importlib.metadata as m\n"
                       "{d.metadata['Name']: d.version for d in m.distributions()}")
        equal(there, o.result["json"], "the packages")
        keys = [normal(p["name"]) for p in seen["packages"]]
        equal(keys, sorted(keys), "the order of the packages")
        assert len(text) <= 3000, "%d bytes: %s" % (len(text), text)
        for name in there:
            assert name in text, (name, text)
        for line in ("network: none", "input(): reads stdin of the call; no person is asked",
                     "installing packages: not possible here"):
            assert "\n%s\n" % line in text, text
        equal((seen["network"], seen["network_rules"], seen["input_asks"]), ([], 0, False))
        equal(seen["installs"], {"indexes": [], "policy": "deny", "asks_session": False})
        assert "preloaded" not in seen["profiles"][1], seen
        equal(seen["profiles"][1]["preloaded_modules"], 2)
        seen, text = look(client, modules=True)
        equal(seen["profiles"][1]["preloaded"], ["json", "re"])
        assert "data (2 modules preloaded: json re)" in text, text
        for name, version in there.items():
            assert "%s %s" % (name, version) in text, name


PLANS = """
[network]
allow = example.org .example.net:8080 %s
[packages]
index = https://index.example/token/simple
extra_indexes = http://127.0.0.1:9/simple
store = %s
[policy]
input = allow
approvers = self
[tenant uid:%d]
policy.preset = open
packages.others = deny
"""


@test(private=True, root=True)
def environment_says_what_can_be_reached(ctx):
    many = "".join("\n  h%d.example" % i for i in range(40))
    with new_store() as store:
        with ctx.private(PLANS % (many, store, SOMEBODY)) as s:
            with ctx.client(path=s.socket) as client:
                seen, text = look(client)
                equal((len(seen["network"]), seen["network_rules"]), (32, 42))
                equal(seen["network"][:2], ["example.org", ".example.net:8080"])
                assert "\nnetwork: only example.org .example.net:8080 h0.example " in text, text
                assert " and 10 more, through the HTTP proxy" in text, text
                equal(seen["installs"], {"indexes": ["index.example", "127.0.0.1:9"],
                                         "policy": "approve", "asks_session": False})
                assert ("\ninstalling packages: from index.example, 127.0.0.1:9; an operator has "
                        "to agree\n") in text, text
                assert "token/simple" not in text + json.dumps(seen), text
            with ctx.client(path=s.socket, uid=SOMEBODY) as client:
                seen, text = look(client)
                equal(seen["installs"]["policy"], "deny")
                assert "; only those that the operator's rules name\n" in text, text
            with Client.connect(s.socket, None, timeout=ctx.seconds(60)) as client:
                client.greet(elicitation={})
                client.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
                    "name": "check_environment", "arguments": {}}})
                result = client.recv()["result"]
                seen, text = result["structuredContent"], text_of(result)
                assert seen["input_asks"] and seen["installs"]["asks_session"], seen
                assert "\ninput(): asks the user\n" in text, text
                assert "; your user has to agree\n" in text, text


@test
def environment_counts_what_is_yours(ctx):
    with ctx.client() as client, ctx.client() as other:
        look(client)
        id = other.request("tools/call", {
            "name": "run_script", "_meta": {"progressToken": 1},
            "arguments": {"script": "print(1, flush=True)\nimport time\ntime.sleep(60)"}})
        while not other.notices:
            assert other.pump(30), "nothing came"
        assert look(client)[0]["yours"]["running"] >= 1
        other.notify("notifications/cancelled", {"requestId": id})


@test
def copied_files_have_their_times(ctx):
    """Python compiles a module anew, at each start of a zygote, if its time is another one."""
    path = os.path.realpath("/usr/lib/python%d.%d/sitecustomize.py" % under_test.version[:2])
    if under_test.root or not under_test.is_packaged or not path.startswith("/etc/"):
        raise Skip("this Python has no sitecustomize in /etc")
    with ctx.client() as client:
        equal(client.run("import os\nos.stat(%r).st_mtime_ns" % path).result["repr"],
              str(os.stat(path).st_mtime_ns))


@test
def environment_of_another_profile(ctx):
    with ctx.client() as client:
        equal(look(client, profile="data")[0]["profile"], "data")
        for arguments, word in (({"profile": "none"}, "no profile of that name"),
                                ({"profile": 1}, "must be a string"),
                                ({"modules": 1}, "must be true or false"),
                                ({"x": 1}, "x is not an argument")):
            result = call(client, "check_environment", arguments)
            assert result["isError"] and word in text_of(result), result


# ---- run_script ----

@test
def a_silent_script_shows_that_it_runs(ctx):
    # It ends at the second sign, so that no slow machine makes the test wait or fail.
    script = {"script": "import time\nheld = bytearray(64 << 20)\nwhile time.process_time() < 0.3: pass\n"
                        "time.sleep(300)", "timeout_seconds": 300}
    with ctx.client() as told, ctx.client() as untold:
        quiet = untold.request("tools/call", {"name": "run_script", "arguments": script})
        id = told.request("tools/call", {"name": "run_script", "_meta": {"progressToken": "t"},
                                         "arguments": script})
        told.until("two notes", lambda: len(told.notices) >= 2)
        untold.pump(0)
        equal(list(untold.notices), [])
        notes = [note["params"] for note in told.notices]
        values = [note["progress"] for note in notes]
        equal(values, sorted(set(values)), "the numbers grow")
        told_of = [re.fullmatch(r"running for (\d+) s, no new output; (\d+\.\d) s of processor time, "
                                r"(\d+) MiB of memory", note["message"]) for note in notes]
        assert all(told_of), notes
        seconds = [int(one[1]) for one in told_of]
        assert all(0.2 <= float(one[2]) < 60 and 50 <= int(one[3]) < 512 for one in told_of), notes
        assert 10 <= seconds[0] and 9 <= seconds[1] - seconds[0], notes
        for client, number in ((told, id), (untold, quiet)):
            client.notify("notifications/cancelled", {"requestId": number})


def present(client):
    """A package that is installed here, with its version."""
    for package in look(client)[0]["packages"]:
        if all(part.isdigit() for part in package["version"].split(".")):
            return package["name"], package["version"]
    raise Skip("no package is installed", missing=True)


def refused(client, status, script, *words, **arguments):
    result = call(client, "run_script", dict(arguments, script=script))
    equal(result["structuredContent"]["status"], status, "%r" % result)
    assert result["isError"] and result["structuredContent"]["execution_id"] is None, result
    message = result["structuredContent"]["error"]["message"]
    for word in words:
        assert word in message and word in text_of(result), (word, message)
    return message


@test
def what_is_there_runs_at_once(ctx):
    with ctx.client() as client:
        name, version = present(client)
        odd = name.upper().replace("-", "._")
        for script, arguments in (
                (metadata('requires-python = ">=3.9"'), {}),
                (metadata("dependencies = []"), {}),
                (metadata('dependencies = ["%s==%s"]' % (odd, version)), {}),
                (metadata('dependencies = ["%s"]' % name, "[tool.x]", "dependencies = 1"), {}),
                ("", {"dependencies": ["%s>=%s" % (name, version), "none; os_name == 'nt'"]}),
                ("", {"dependencies": []})):
            o = client.run("import sys\nprint(sys.argv[1:], sys.stdin.read())\n" + script,
                           args=["a", "b"], stdin="typed", **arguments)
            equal((o.status, o.stdout), ("ok", "['a', 'b'] typed\n"), "%r" % o)
        o = client.run("1\n" + metadata("x = 1"), profile="data", timeout_seconds=5)
        equal(o.status, "ok")


@test
def what_is_missing_is_named(ctx):
    with ctx.client() as client:
        name, version = present(client)
        refused(client, "dependency_unavailable",
                "print(1)\n" + metadata('dependencies = ["no-such-thing>=2", "%s"]' % name),
                "no-such-thing>=2", "profile basic")
        message = refused(client, "dependency_unavailable", "print(1)",
                          "%s>%s" % (name.lower().replace("_", "-"), version),
                          dependencies=["%s>%s" % (name.lower().replace("_", "-"), version)])
        assert "no-such-thing" not in message, message
        refused(client, "dependency_unavailable", "print(1)", "pip @ https://example.invalid/x",
                dependencies=["pip @ https://example.invalid/x.zip"])
        message = refused(client, "dependency_unavailable", "", "and 280 more",
                          dependencies=["none-%d" % i for i in range(300)])
        assert len(message) < 4096, message
        ctx.healthy(client)


@test
def another_python_is_refused(ctx):
    with ctx.client() as client:
        for wanted in ("<3.0", ">=4", "!=%s" % PYTHON, "~=2.7"):
            refused(client, "python_unavailable", metadata('requires-python = "%s"' % wanted),
                    wanted, PYTHON)


@test
def wrong_metadata_is_refused_with_lines(ctx):
    with ctx.client() as client:
        refused(client, "invalid_arguments", "print(1)\n" + metadata("dependencies = [x]"), "line 3")
        refused(client, "invalid_arguments", metadata("a = 1") + "\n" + metadata("a = 1"),
                "line 5: there is a second block")
        refused(client, "invalid_arguments", metadata('dependencies = ["-x", "y z"]'),
                "line 2: '-x' is not a requirement", "'y z'")
        refused(client, "invalid_arguments", "1", "'--x'", dependencies=["--x"])
        refused(client, "invalid_arguments", "1", "must be an array", dependencies="six")
        # A block that is none is a comment.
        o = client.run("print(1)\n# /// script\n# dependencies = [x]\n")
        equal((o.status, o.stdout), ("ok", "1\n"))


@test
def calls_are_cancelled_while_they_are_checked(ctx):
    script = metadata('dependencies = ["no-such-thing"]')
    with ctx.client() as client:
        for name in ("run_script", "validate_script"):
            for _ in range(10):
                id = client.request("tools/call", {"name": name, "arguments": {"script": script}})
                client.notify("notifications/cancelled", {"requestId": id})
        client.ask("tools/list")
        ctx.healthy(client)
    for _ in range(5):
        with ctx.client() as client:
            for name in ("run_script", "validate_script", "check_environment"):
                client.request("tools/call", {"name": name, "arguments":
                                              {} if name[0] == "c" else {"script": script}})
            client.flush()
    with ctx.client() as client:
        ctx.healthy(client)


@test
def many_ask_at_once(ctx):
    with ctx.client() as client:
        ids = [client.request("tools/call", {"name": "validate_script", "arguments": {
            "script": metadata('dependencies = ["none-%d"]' % i)}}) for i in range(20)]
        for i, id in enumerate(ids):
            got = client.wait(id)["structuredContent"]
            equal(got["missing"], ["none-%d" % i])


if __name__ == "__main__":
    main(__doc__, """
[profile basic]
modules = json

[profile data]
modules = json re
""" + under_test.line)
