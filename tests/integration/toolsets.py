#!/usr/bin/python3
"""Sets of tools: the calls that the documentation of the servers shows whose places they take,
with the documented answers; and which sets exclude each other."""

import os
import re
import subprocess
import sys
import tempfile

from harness import Skip, equal, main, test
from mcp_schema import Validator, jsonschema
from mcpclient import LEGACY

EXEC = "[mcp]\ntoolsets = exec-sandbox\n"
PYTHON = "%d.%d.%d" % sys.version_info[:3]


def tools_of(client):
    return {tool["name"]: tool for tool in client.ask("tools/list")["tools"]}


def call(client, name, **arguments):
    """The result of a tool, checked against the schemas of the protocol and of the tool."""
    result = client.ask("tools/call", {"name": name, "arguments": arguments})
    if jsonschema is None:
        raise Skip("python3-jsonschema is not installed", missing=True)
    Validator(LEGACY[-1]).check("CallToolResult", result)
    if "structuredContent" in result:
        jsonschema.Draft202012Validator(tools_of(client)[name]["outputSchema"]).validate(
            result["structuredContent"])
    return result


# ---- exec-sandbox ----

def say(client, name="execute_python", **arguments):
    """The text of an answer that is no error of the call."""
    result = call(client, name, **arguments)
    text = "".join(block["text"] for block in result["content"])
    equal(result["structuredContent"], {"result": text})
    assert not result.get("isError"), text
    return text


def parts(text):
    """{title: text} of an answer of execute_python."""
    found = re.findall(r"^--- (\w+)(?:: (.*))? ---\n?((?:(?!^--- ).*\n?)*)", text, re.M)
    return {title: value or body[:-1] for title, value, body in found}


def has(client, package):
    return package in say(client, "check_environment")


@test
def exec_has_its_tools(ctx):
    with ctx.client() as client:
        tools = tools_of(client)
        assert {"execute_python", "check_environment", "validate_script"} <= set(tools), tools
        assert "run_script" not in tools, tools
        properties = tools["execute_python"]["inputSchema"]["properties"]
        equal(set(properties), {"script", "dependencies", "timeout_seconds"})
        equal(properties["dependencies"]["default"], [])
        timeout = properties["timeout_seconds"]
        equal((timeout["default"], timeout["minimum"], timeout["maximum"]), (30, 1, 300))
        equal(tools["execute_python"]["inputSchema"]["required"], ["script"])
        equal(set(tools["validate_script"]["inputSchema"]["properties"]),
              {"script", "dependencies"})


@test
def exec_hello(ctx):
    with ctx.client() as client:
        for script, words in (("print('hello world')", "hello world\n"),
                              ("print('hello')", "hello\n")):
            text = say(client, script=script)
            m = re.fullmatch(r"--- stdout ---\n%s\n--- exit_code: 0 ---\n"
                             r"--- duration_ms: (\d+) ---" % words, text)
            assert m and int(m[1]) < 60000 * ctx.slow, text


@test
def exec_with_the_argument_dependencies(ctx):
    """Its documentation asks for requests and the network: neither has to be there."""
    with ctx.client() as client:
        if has(client, "requests "):
            raise Skip("requests is installed")
        for requirement in ("requests", "requests>=2.32"):
            got = parts(say(client, dependencies=[requirement], script="import requests; "
                            "print(requests.get('https://example.com').status_code)"))
            assert "not installed" in got["stderr"] and requirement in got["stderr"], got
            equal(got["exit_code"], "1")


PANDAS = """
# /// script
# dependencies = [%s]
# ///

import pandas as pd
import numpy as np
print(pd.DataFrame(%s).describe())
"""


@test
def exec_with_inline_metadata(ctx):
    with ctx.client() as client:
        for needs, frame, mean in (('"pandas", "matplotlib"', "{'a': [1,2,3]}", "2.0"),
                                   ('"pandas>=1.5", "numpy>=1.24"', '{"a": np.arange(5)}',
                                    "2.000000")):
            got = parts(say(client, script=PANDAS % (needs, frame)))
            if has(client, "pandas ") and has(client, "matplotlib "):
                assert re.search(r"^mean +%s$" % mean, got["stdout"], re.M), got
                equal(got["exit_code"], "0")
            else:
                assert "not installed" in got["stderr"] and "pandas" in got["stderr"], got


@test
def exec_errors_and_streams(ctx):
    with ctx.client() as client:
        got = parts(say(client, script="import sys\nprint('out')\nprint('err', file=sys.stderr)\n"
                        "1 + 1\nsys.exit(3)"))
        equal((got["stdout"], got["stderr"], got["exit_code"]), ("out\n", "err\n", "3"))
        got = parts(say(client, script="\n\n1/0"))
        assert "line 3" in got["stderr"] and "ZeroDivisionError" in got["stderr"], got
        equal(got["exit_code"], "1")
        equal(parts(say(client, script="1 + 1")).get("stdout"), None, "an expression")
        got = parts(say(client, script="while True: pass", timeout_seconds=1))
        equal(got["timed_out"], "true")
        assert "1 s" in got["timeout"], got


@test
def exec_bounds(ctx):
    with ctx.client() as client:
        # Beyond the bounds is taken for the bounds.
        for timeout in (0, -5, 301, 10 ** 15, 5.0):
            equal(parts(say(client, script="print(1)", timeout_seconds=timeout))["stdout"],
                  "1\n")
        got = parts(say(client, script="import sys\nprint('a' * 60000 + 'b' * 200000 + 'z')\n"
                        "sys.stderr.write('e' * 102400)"))
        assert got["stdout"].startswith("a" * 50000) and got["stdout"].endswith("bz\n")
        assert 102000 < len(got["stdout"]) < 102700, len(got["stdout"])
        equal(len(got["stderr"]), 102400)
        for arguments, word in (({}, "script is required"), ({"script": 7}, "must be a string"),
                                ({"script": "a\0"}, "NUL at byte 1"),
                                ({"script": "", "timeout_seconds": "5"}, "an integer from 1"),
                                ({"script": "", "timeout_seconds": 1.5}, "an integer from 1"),
                                ({"script": "", "dependencies": "six"}, "must be an array"),
                                ({"script": "", "dependencies": ["-x"]}, "'-x'"),
                                ({"script": "", "args": []}, "args is not an argument")):
            result = call(client, "execute_python", **arguments)
            assert result["isError"], (arguments, result)
            assert word in result["structuredContent"]["result"], (word, result)
        still_runs(client)


def still_runs(client):
    equal(parts(say(client, script="print(6 * 7)"))["stdout"], "42\n")


@test
def exec_validates(ctx):
    with ctx.client() as client:
        def check(script, **arguments):
            return say(client, "validate_script", script=script, **arguments)

        equal(check("print(1)"), "VALID\ndependencies: none")
        block = '# /// script\n# requires-python = ">=3.9"\n# dependencies = ["no-such-thing>=2"]\n# ///\n'
        text = check(block, dependencies=["No_Such-Thing<3", "also-none"])
        assert text.startswith("VALID\nrequires-python: >=3.9\ndependencies (2):\n"
                               "  - no-such-thing>=2,<3\n  - also-none"), text
        assert text.endswith("warnings:\n  - not installed: no-such-thing>=2,<3\n"
                             "  - not installed: also-none"), text
        equal(check("# /// script\n# dependencies = [\n# ///\n")[:17], "INVALID: line 2: ")
        equal(check("x = 1\nx = (\n")[:16], "INVALID: line 2:")
        assert "INVALID: '-x' is not a requirement" in check("", dependencies=["-x"])
        assert "this Python is " + PYTHON in check(
            '# /// script\n# requires-python = "<3"\n# ///\n')


@test
def exec_describes_itself(ctx):
    with ctx.client() as client:
        lines = dict(line.split(": ", 1) for line in say(client, "check_environment").split("\n"))
        equal(lines["Python version"], PYTHON)
        equal((lines["Default timeout"], lines["Max timeout"], lines["Max output"]),
              ("30s", "300s", "102400 bytes"))
        equal(lines["Platform"], "%s %s" % (os.uname().sysname, os.uname().machine))
        assert lines["Sandbox status"] and lines["Sandbox backend"] == "native", lines
        assert call(client, "check_environment", x=1)["isError"]


@test(private=True)
def exec_has_its_configuration(ctx):
    with ctx.private(EXEC + "[exec-sandbox]\ndefault_timeout = 1\nmax_timeout = 2\n"
                     "max_output_bytes = 1K\n[limits]\ntimeout_max = 2\ntimeout_seconds = 1\n") as s, \
            ctx.client(path=s.socket) as client:
        timeout = tools_of(client)["execute_python"]["inputSchema"]["properties"]["timeout_seconds"]
        equal((timeout["default"], timeout["maximum"]), (1, 2))
        for asked, wanted in (({}, "1 s"), ({"timeout_seconds": 100}, "2 s")):
            got = parts(say(client, script="while True: pass", **asked))
            assert wanted in got["timeout"], got
        got = parts(say(client, script="print('x' * 5000)"))
        assert 900 < len(got["stdout"]) < 1200, got


# ---- which sets can be had together ----

def check_config(ctx, text, env=None):
    """The exit status and what is said of a configuration."""
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
        file.write(text)
        file.flush()
        done = subprocess.run([os.path.join(ctx.options.build, "mcp-pythond"), "--config",
                               file.name, "--check-config"], capture_output=True, text=True,
                              env=dict(os.environ, **env or {}), timeout=ctx.seconds(60))
        return done.returncode, done.stderr.replace(file.name, "FILE")


@test(private=True)
def sets_that_exclude_each_other_are_refused(ctx):
    status, said = check_config(ctx, "[pool]\nwarm = 1\n\n[mcp]\ntoolsets = native, exec-sandbox\n")
    equal(status, 78)
    for name in ("check_environment", "validate_script"):
        assert "FILE:5: toolsets: both native and exec-sandbox have a tool %s\n" % name in said, said
    equal(check_config(ctx, "[mcp]\ntoolsets = native\n  native\n")[0], 78)
    for wrong, word in (("other", "is not native or exec-sandbox"),
                        ("", "names no set")):
        status, said = check_config(ctx, "[mcp]\ntoolsets = %s\n" % wrong)
        assert status == 78 and word in said, said
    for right in ("native", "exec-sandbox"):
        equal(check_config(ctx, "[mcp]\ntoolsets = %s\n" % right)[0], 0)


if __name__ == "__main__":
    main(__doc__, EXEC)
