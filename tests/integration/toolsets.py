#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Sets of tools: the calls that the documentation of the servers shows whose places they take,
with the documented answers; and which sets exclude each other."""

import json
import math
import os
import re
import subprocess
import sys
import tempfile

from harness import FEW_MODULES, Skip, equal, main, test
from mcp_schema import Validator, jsonschema
from mcpclient import LEGACY

SETS = "[mcp]\ntoolsets = exec-sandbox, python-sandbox\n"
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


def spoken(ctx, *words, conf=None):
    """A client of a service that a client's line starts."""
    program = os.path.join(ctx.options.build, "mcp-pythond")
    return subprocess.run([program, "--stdio", *(("--config", conf) if conf else ()), *words], input=json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": LEGACY[-1], "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}}}) + "\n" +
        json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}) + "\n",
        capture_output=True, text=True, timeout=ctx.seconds(60))


@test
def the_command_line_chooses_sets(ctx):
    """In the place of the file, which an ordinary user does not have."""
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
        file.write("[mcp]\ntoolsets = native\n")
        file.flush()
        for sets, want in (("python-sandbox", {"execute_code", "validate_code", "get_sandbox_info"}),
                           ("run-python, python-sandbox", {"run_python_code", "execute_code", "validate_code",
                                                           "get_sandbox_info"})):
            done = spoken(ctx, "--toolsets", sets, conf=file.name)
            answers = {m.get("id"): m for m in map(json.loads, done.stdout.splitlines())}
            equal({tool["name"] for tool in answers[2]["result"]["tools"]}, want, done.stderr)
        for words, status, text in ((("--toolsets", "no-such"), 78, "--toolsets: "),
                                    (("--toolsets", "native,exec-sandbox"), 78, "both"),
                                    (("--toolsets", ""), 78, "names no set")):
            done = spoken(ctx, *words, conf=file.name)
            equal(done.returncode, status, done.stderr)
            assert text in done.stderr, done.stderr
    done = subprocess.run([os.path.join(ctx.options.build, "mcp-pythond"), "--toolsets", "native"],
                          capture_output=True, text=True)
    equal(done.returncode, 2)
    assert "--toolsets needs --stdio" in done.stderr, done.stderr


# ---- exec-sandbox ----

def say(client, name="execute_python", **arguments):
    """The text of an answer that is not an error; all of it."""
    result = call(client, name, **arguments)
    text = "".join(block["text"] for block in result["content"])
    whole = result["structuredContent"]["result"]
    assert text == whole or "bytes are left out here. " in text, text
    assert not result.get("isError"), text
    return whole


def parts(text):
    """{title: text} of an answer of execute_python."""
    found = re.findall(r"^--- (\w+)(?:: (.*))? ---\n?((?:(?!^--- ).*\n?)*)", text, re.M)
    return {title: value or body[:-1] for title, value, body in found}


def has(client, package):
    return package in say(client, "check_environment")


@test
def what_is_null_is_not_given(ctx):
    """In all sets: many frameworks send null for what is optional, and numbers and lists as text."""
    def check(client, code):
        tools = tools_of(client)
        for name, required in code.items():
            properties = tools[name]["inputSchema"]["properties"]
            nothing = dict.fromkeys(set(properties) - {required})
            result = call(client, name, **dict(nothing, **{required: "print('said')"}))
            assert not result.get("isError"), "%s: %r" % (name, result)

    with ctx.client() as client:
        check(client, {"execute_python": "script", "validate_script": "script",
                       "execute_code": "code", "validate_code": "code"})
    with ctx.private("") as service, ctx.client(path=service.socket) as client:
        check(client, {"run_script": "script", "run_repl": "code", "validate_script": "script"})
        o = client.run("import sys\nprint(sys.argv[1:])", timeout_seconds="5", pids="20",
                       args='["a", "b"]', spill="false", profile="")
        equal((o.status, o.stdout), ("ok", "['a', 'b']\n"), repr(o))
        wrong = client.run("1", timeout_seconds="soon")
        assert wrong.refused and "timeout_seconds must be a number" in wrong.text, repr(wrong)
        assert client.run(None).refused, "a script is required"


@test
def code_and_script_are_the_same(ctx):
    with ctx.private("") as service, ctx.client(path=service.socket) as client:
        for name in ("run_script", "run_repl"):
            for argument in ("code", "script"):
                result = call(client, name, **{argument: "print('said')"})
                equal(result["structuredContent"]["stdout"], "said\n", (name, argument))
            result = call(client, name, code="1", script="2")
            assert result["isError"] and "is not an argument" in result["content"][0]["text"], result


TOKENS = 1650
SERVER_TOKENS = 90  # what another MCP server adds: its name, and the tool search_tools
BYTES_OF_A_TOKEN = 4.2  # a little less than measured: o200k_base has 4.30 to 4.37 of the whole list
OTHER_ARGUMENTS = {"run_script": {"script_name", "args", "cpu_seconds", "pids", "python_version", "allowed_imports",
                                  "tier", "spill", "text_tokens", "idempotency_key", "profile"},
                   "run_repl": {"cpu_seconds", "pids", "spill", "text_tokens", "idempotency_key", "profile",
                                "snapshot"},
                   "validate_script": set(), "check_environment": {"profile"}, "job": set(),
                   "install_package": set(), "search_tools": {"limit"}}


def size_of(tools):
    """The bytes that a client shows a model of them."""
    return sum(len(json.dumps({"name": name, "description": tool["description"],
                               "inputSchema": tool["inputSchema"]}, separators=(",", ":"),
                              ensure_ascii=False).encode()) for name, tool in tools.items())


@test(private=True)
def the_list_is_short(ctx):
    """With the most tools that there can be, an index of packages and scripts that may ask."""
    with tempfile.TemporaryDirectory() as here:
        os.chmod(here, 0o755)
        more = "[packages]\nindex = http://127.0.0.1:9/simple/\nstore = %s/store\n" % here
        with ctx.private(more) as service, ctx.client(path=service.socket) as client:
            size = size_of(tools_of(client))
            assert size <= TOKENS * BYTES_OF_A_TOKEN, "%d bytes" % size
        more += "[tools files]\ncommand = /bin/cat\n"
        with ctx.private(more) as service, ctx.client(path=service.socket) as client:
            tools = tools_of(client)
            equal(set(tools), set(OTHER_ARGUMENTS))
            size = size_of(tools)
            assert size <= (TOKENS + SERVER_TOKENS) * BYTES_OF_A_TOKEN, "%d bytes" % size
            assert "x-unlisted" not in json.dumps(tools), tools
        with ctx.private(more + "[mcp]\narguments = all\n") as service, \
                ctx.client(path=service.socket) as client:
            every = tools_of(client)
            assert "x-unlisted" not in json.dumps(every), every
        for name, others in OTHER_ARGUMENTS.items():
            listed, taken = (set(of[name]["inputSchema"]["properties"]) for of in (tools, every))
            equal(taken - listed, others, name)
            assert listed < taken or not others, name
            equal("additionalProperties" in tools[name]["inputSchema"], not others, name)
            equal(every[name]["inputSchema"]["additionalProperties"], False, name)


@test
def what_is_not_listed_is_taken(ctx):
    """As ever: null counts as not given, numbers and lists may be strings, mistakes are refused."""
    with ctx.private("") as service, ctx.client(path=service.socket) as client:
        nothing = dict.fromkeys(OTHER_ARGUMENTS["run_script"])
        assert client.run("1", **nothing).status == "ok"
        o = client.run("import sys\nprint(sys.argv[1:])", args='["a"]', pids="20", cpu_seconds=5,
                       profile="basic", python_version="", allowed_imports='["sys"]', spill="true",
                       tier="", idempotency_key="k1")
        equal((o.status, o.stdout), ("ok", "['a']\n"), repr(o))
        o = client.run("import os", allowed_imports=["sys"])
        equal(o.error["type"], "ImportNotAllowed", repr(o))
        for name, wrong in (("args", "a"), ("pids", 0), ("tier", "none"), ("spill", 3),
                            ("python_version", "3 11"), ("idempotency_key", "k" * 200)):
            assert name in client.run("1", **{name: wrong}).text, name
        assert "is not an argument" in client.run("1", colour="red").text
        result = call(client, "run_repl", code="1", pids="20", spill="false", profile="basic")
        equal(result["structuredContent"]["result"]["json"], 1, repr(result))


@test
def well_known_packages_are_named(ctx):
    """Those that can be imported, and no others."""
    with ctx.private("") as service, ctx.client(path=service.socket) as client:
        said = tools_of(client)["run_script"]["description"]
        found = re.search(r"Installed: (.*); check_environment lists all", said)
        names = found[1].split(", ") if found else []
        assert len(names) <= 12, said
        o = client.run("import importlib.util as u\n[bool(u.find_spec(name)) for name in %r]" %
                       (names + ["numpy", "pandas"],))
        equal(o.result["json"][:-2], [True] * len(names), said)
        equal(["numpy" in names, "pandas" in names], o.result["json"][-2:], said)
    with ctx.private("[profile data]\nmodules = json\n[profile basic]\n") as service, \
            ctx.client(path=service.socket) as client:
        tools = tools_of(client)
        equal("Installed in the profile" in tools["run_script"]["description"], bool(names))
        assert "profile" in tools["run_script"]["inputSchema"]["properties"], tools


@test
def instructions_name_what_is_listed(ctx):
    """In each set, and for a tenant whom policy refuses a tool."""
    every = {"run_script", "run_repl", "install_package", "execute_python", "execute_code",
             "get_sandbox_info", "job"}
    for config, wanted in (("", {"run_script", "run_repl", "job"}),
                           ("[mcp]\ntoolsets = exec-sandbox\n", {"execute_python"}),
                           ("[mcp]\ntoolsets = python-sandbox\n",
                            {"execute_code", "get_sandbox_info"}),
                           ("[policy]\nrun_repl = deny\n", {"run_script", "job"})):
        with ctx.private(config) as service, ctx.client(path=service.socket) as client:
            said = client.hello["instructions"]
            named = {name for name in every if name in said}
            equal(named, wanted, said)
            listed = tools_of(client)
            assert named <= set(listed), said
            # What is installed that matters is in both.
            if "run_script" in named:
                packages = re.search(r" Installed: [^;]+; check_environment lists all\.",
                                     listed["run_script"]["description"])
                assert packages is None or packages[0] in said, said
                assert packages or client.run("import numpy").status == "error", listed
            if "run_repl" in named:
                assert "use it to look at data" in said, said


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
                                ({"script": "", "timeout_seconds": "5.5"}, "an integer from 1"),
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
                               "  - No_Such-Thing<3\n  - also-none"), text
        assert text.endswith("warnings:\n  - not installed: No_Such-Thing<3\n"
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
    with ctx.private(SETS + "[exec-sandbox]\ndefault_timeout = 1\nmax_timeout = 5\n"
                     "max_output_bytes = 1K\n[limits]\ntimeout_max = 5\ntimeout_seconds = 1\n") as s, \
            ctx.client(path=s.socket) as client:
        timeout = tools_of(client)["execute_python"]["inputSchema"]["properties"]["timeout_seconds"]
        equal((timeout["default"], timeout["maximum"]), (1, 5))
        for asked, wanted in (({}, "1 s"), ({"timeout_seconds": 100}, "5 s")):
            got = parts(say(client, script="while True: pass", **asked))
            assert wanted in got["timeout"], got
        got = parts(say(client, script="print('x' * 5000)", timeout_seconds=5))
        assert 900 < len(got["stdout"]) < 1200, got


# ---- python-sandbox: every call in the documentation of that server ----

def execute(client, code, **arguments):
    result = call(client, "execute_code", code=code, **arguments)
    got = result["structuredContent"]
    text = "".join(block["text"] for block in result["content"])
    read = json.loads(text)
    assert read == got or "bytes are left out here. " in text or "(too long" in text, text
    assert not result.get("isError"), got
    assert got["execution_id"] and got["use_container"] is True, got
    assert isinstance(got["execution_time"], (int, float)) and got["execution_time"] >= 0, got
    return got


def succeeds(client, code, result=None, stdout="", variables=None, **arguments):
    got = execute(client, code, **arguments)
    assert got["success"], got
    equal((got["result"], got["stdout"], got["stderr"]), (result, stdout, ""), code)
    if variables is not None:
        equal(got["variables"], variables, code)
    return got


def is_refused(client, code, *problems, **arguments):
    """Refused for what the policy does not allow; problems: all of them, or parts."""
    got = execute(client, code, **arguments)
    equal((got["success"], got.get("error")), (False, "Code contains restricted operations"),
          "%s: %r" % (code, got))
    equal(len(got["validation_errors"]), len(problems), code)
    for text, problem in zip(got["validation_errors"], problems):
        assert problem in text, (code, got)
    return got


def has_module(client, name):
    got = call(client, "execute_code", code="import " + name, use_container=True,
               timeout=100)["structuredContent"]
    assert got["success"] or "No module named" in got["error"], got
    return got["success"]


@test
def sandbox_has_its_tools(ctx):
    with ctx.client() as client:
        tools = tools_of(client)
        assert {"execute_code", "validate_code", "get_sandbox_info"} <= set(tools), tools
        schema = tools["execute_code"]["inputSchema"]
        equal({name: p.get("default") for name, p in schema["properties"].items()},
              {"code": None, "timeout": 30, "capture_output": True, "allowed_imports": None,
               "use_container": False, "memory_limit": "128m"})
        equal(schema["required"], ["code"])
        equal(schema["properties"]["timeout"]["maximum"], 300)
        equal(set(tools["validate_code"]["inputSchema"]["properties"]), {"code"})


@test
def basic_code_execution(ctx):
    with ctx.client() as client:
        got = succeeds(client, "result = 2 + 2\nprint(f'The answer is: {result}')", 4,
                       "The answer is: 4\n", ["result"], timeout=10, capture_output=True)
        equal(got["variable_values"], {"result": 4})


@test
def data_analysis(ctx):
    with ctx.client() as client:
        succeeds(client, "import math\ndata = [1, 2, 3, 4, 5]\nresult = sum(data) / len(data)\n"
                 "print(f'Average: {result}')", 3.0, "Average: 3.0\n", ["math", "data", "result"],
                 allowed_imports=["math"], timeout=15)


@test
def container_based_execution(ctx):
    with ctx.client() as client:
        if not has_module(client, "numpy"):
            raise Skip("numpy is not installed", missing=True)
        succeeds(client, "import numpy as np\ndata = np.array([1, 2, 3, 4, 5])\n"
                 "result = np.mean(data)", 3.0, variables=["np", "data", "result"],
                 use_container=True, memory_limit="256m", timeout=30)


@test
def container_mode_with_custom_limits(ctx):
    with ctx.client() as client:
        if not has_module(client, "numpy"):
            raise Skip("numpy is not installed", missing=True)
        got = succeeds(client, "import numpy as np; data = np.random.rand(1000, 1000)",
                       variables=["np", "data"], use_container=True, memory_limit="512m",
                       timeout=60)
        assert got["variable_values"]["data"].startswith("array([["), got


@test
def data_frame_describe(ctx):
    with ctx.client() as client:
        if not has_module(client, "pandas"):
            raise Skip("pandas is not installed", missing=True)
        got = succeeds(client, "import pandas as pd\nresult = pd.DataFrame({'a': [1, 2, 3]})"
                       ".describe().to_dict()", {"a": {
                           "count": 3.0, "mean": 2.0, "std": 1.0, "min": 1.0, "25%": 1.5,
                           "50%": 2.0, "75%": 2.5, "max": 3.0}}, use_container=True)
        equal(got["variables"], ["pd", "result"])
        is_refused(client, "import pandas as pd", "Line 1: Import 'pandas' is not allowed")


@test
def fibonacci(ctx):
    code = """
def fibonacci(n):
    if n <= 1:
        return n
    return fibonacci(n-1) + fibonacci(n-2)

result = [fibonacci(i) for i in range(10)]
print("Fibonacci sequence:", result)
"""
    with ctx.client() as client:
        wanted = [0, 1, 1, 2, 3, 5, 8, 13, 21, 34]
        for end in ("", "                "):	# as in the client's program
            succeeds(client, code + end, wanted, "Fibonacci sequence: %s\n" % wanted,
                     ["fibonacci", "result"])


@test
def statistics(ctx):
    code = """
import statistics
data = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
mean = statistics.mean(data)
median = statistics.median(data)
stdev = statistics.stdev(data)

result = {
    'mean': mean,
    'median': median,
    'std_dev': stdev
}
print(f"Statistics: {result}")
"""
    wanted = {"mean": 5.5, "median": 5.5, "std_dev": 3.0276503540974917}
    with ctx.client() as client:
        succeeds(client, code, wanted, "Statistics: %s\n" % wanted,
                 ["statistics", "data", "mean", "median", "stdev", "result"])


@test
def bubble_sort(ctx):
    code = """
def bubble_sort(arr):
    n = len(arr)
    for i in range(n):
        for j in range(0, n-i-1):
            if arr[j] > arr[j+1]:
                arr[j], arr[j+1] = arr[j+1], arr[j]
    return arr

test_data = [64, 34, 25, 12, 22, 11, 90]
result = bubble_sort(test_data.copy())
print(f"Sorted: {result}")
"""
    with ctx.client() as client:
        succeeds(client, code, [11, 12, 22, 25, 34, 64, 90],
                 "Sorted: [11, 12, 22, 25, 34, 64, 90]\n", ["bubble_sort", "test_data", "result"])


@test
def leibniz_pi(ctx):
    code = """
import math

def calculate_pi_leibniz(terms):
    pi_approx = 0
    for i in range(terms):
        pi_approx += ((-1) ** i) / (2 * i + 1)
    return pi_approx * 4

result = calculate_pi_leibniz(1000)
print(f"Pi approximation: {result}")
print(f"Difference from math.pi: {abs(result - math.pi)}")
"""
    pi = 0
    for i in range(1000):
        pi += ((-1) ** i) / (2 * i + 1)
    pi *= 4
    with ctx.client() as client:
        succeeds(client, code, pi, "Pi approximation: %r\nDifference from math.pi: %r\n"
                 % (pi, abs(pi - math.pi)), ["math", "calculate_pi_leibniz", "result"])


@test
def batch_of_snippets(ctx):
    with ctx.client() as client:
        for code, result, stdout in (("print('Hello, World!')", None, "Hello, World!\n"),
                                     ("result = sum(range(10))", 45, ""),
                                     ("import math; print(math.pi)", None, "%r\n" % math.pi)):
            succeeds(client, code, result, stdout, timeout=5)
        ids = [client.request("tools/call", {"name": "execute_code", "arguments": {
            "code": "result = %d * 2" % i, "timeout": 5}}) for i in range(20)]
        equal([client.wait(id)["structuredContent"]["result"] for id in ids],
              list(range(0, 40, 2)))


def validate(client, code):
    result = call(client, "validate_code", code=code)
    got = result["structuredContent"]
    equal(json.loads("".join(block["text"] for block in result["content"])), got)
    assert not result.get("isError"), got
    return got


@test
def code_validation(ctx):
    code = "import os\nos.system('rm -rf /')"
    with ctx.client() as client:
        verdict = {"valid": False, "errors": ["Line 1: Import 'os' is not allowed"],
                   "message": "Code contains restricted operations"}
        equal(validate(client, code), {
            **verdict, "validation": verdict,
            "analysis": {"line_count": 2, "character_count": 31, "estimated_complexity": "low"},
            "recommendations": ["Some operations may be restricted in sandbox environment"]})
        got = is_refused(client, code, "Line 1: Import 'os' is not allowed")
        assert "stdout" in got and got["stdout"] == "", got


@test
def validation_before_execution(ctx):
    with ctx.client() as client:
        assert not validate(client, "import os; os.system('ls')")["validation"]["valid"]
        got = validate(client, "print('Safe code execution')")
        equal(got["validation"], {"valid": True, "errors": [], "message": "Code passed validation"})
        succeeds(client, "print('Safe code execution')", stdout="Safe code execution\n")


@test
def sandbox_capabilities(ctx):
    with ctx.client() as client:
        got = call(client, "get_sandbox_info")["structuredContent"]
        equal(got["success"], True)
        profiles = got["security_profiles"]
        equal({name: p["enabled"] for name, p in profiles.items()},
              {"basic": True, "data_science": False, "network": False, "filesystem": False})
        for name, modules in (("basic", "math random datetime json base64 statistics re"),
                              ("data_science", "numpy pandas scipy matplotlib"),
                              ("network", "httpx requests urllib.request"),
                              ("filesystem", "pathlib tempfile shutil")):
            assert set(modules.split()) <= set(profiles[name]["modules"]), profiles
        limits = got["resource_limits"]
        equal((limits["timeout"], limits["max_output_size"], limits["memory_limit"]),
              (30, 1048576, "128m"))
        equal(got["container_mode"], {"available": True, "enabled": True})
        equal((got["timeout_seconds"], got["max_output_size"]), (30, 1048576))
        equal(got["allowed_imports"], {"basic": profiles["basic"]["modules"]})
        equal(got["total_allowed_modules"], len(profiles["basic"]["modules"]))
        assert call(client, "get_sandbox_info", x=1)["isError"]


@test
def timeout_is_told(ctx):
    with ctx.client() as client:
        got = execute(client, "print('so far')\nwhile True: pass", timeout=4)
        equal((got["success"], got["error"], got["timeout"]), (False, "Execution timeout", 4))
        equal(got["stdout"], "so far\n")


# ---- python-sandbox: what the documentation says in words ----

@test
def results_and_variables(ctx):
    with ctx.client() as client:
        succeeds(client, "x = 5\nx * 2", 10, variables=["x"])
        succeeds(client, "1 + 1", 2, variables=[])
        succeeds(client, "result = 3\nresult * 2", 3)
        succeeds(client, "result = None\n7", None)
        succeeds(client, "result = {1, 2}", [1, 2])
        succeeds(client, "import datetime\nresult = datetime.date(2026, 1, 2)", "2026-01-02")
        succeeds(client, "result = float('nan')", "nan")
        got = succeeds(client, "class A: pass\ndef f(): pass\n_x = 1\n__y = 2\na = A()\n"
                       "big = 'x' * 10 ** 6\nt = (1, None)\nbad = {1: 2}", variables=[
                           "A", "f", "_x", "a", "big", "t", "bad"])
        values = got["variable_values"]
        equal((values["_x"], values["t"], values["bad"]), (1, [1, None], {"1": 2}))
        assert "A object" in values["a"] and len(values["big"]) < 3000, values
        got = succeeds(client, "for i in range(1000): globals()['n%d' % i] = 'y' * 1000")
        equal((len(got["variables"]), got["variables"][:2]), (200, ["i", "n0"]))
        assert 10 < len(got["variable_values"]) < 100, len(got["variable_values"])
        got = succeeds(client, "for i in range(300): globals()[str(i) + chr(1) * 300] = '\\0'\n"
                       "globals()['\\ud800'] = globals()[3] = 1\n"
                       "globals()['z' * 200] = globals()['z' * 201] = 1\n"
                       "class R:\n  def __repr__(self): raise ValueError\nr = R()")
        equal(len(got["variables"]), 200)
        got = execute(client, "a = 1\n1/0")
        equal((got["success"], got["error"]), (False, "division by zero"))
        assert "line 2" in got["traceback"] and got["traceback"] in got["stderr"], got


@test
def output_is_captured_or_not(ctx):
    code = "import sys\nprint('out')\nprint('err', file=sys.stderr)\nresult = 1"
    with ctx.client() as client:
        is_refused(client, code, "Line 1: Import 'sys' is not allowed")
        code = "print('out')\nresult = 1"
        succeeds(client, code, 1, "out\n")
        succeeds(client, code, 1, "", capture_output=False)
        got = execute(client, "print('x' * 3000000)\n'\\x01' * 10")
        assert 1048576 <= len(got["stdout"]) < 1049000, len(got["stdout"])
        got = execute(client, "print('\\x01' * 1000000)")
        assert 100000 < len(got["stdout"]) < 400000 and client.last_size < 9 << 20, client.last_size


@test
def limits_are_kept(ctx):
    with ctx.client() as client:
        code = "data = b'x' * (200 << 20)\nresult = len(data)"
        got = execute(client, code)
        equal(got["success"], False, "128 MiB")
        succeeds(client, code, 200 << 20, memory_limit="400m")
        succeeds(client, code, 200 << 20, memory_limit="1G")
        got = execute(client, "raise SystemExit(3)")
        assert not got["success"] and "3" in got["error"], got


@test
def sandbox_refuses_wrong_arguments(ctx):
    with ctx.client() as client:
        for arguments, word in (
                ({}, "code is required"), ({"code": 7}, "code must be a string"),
                ({"code": "a\0"}, "code holds a NUL"), ({"code": "", "timeout": 301}, "1 to 300"),
                ({"code": "", "timeout": 0}, "1 to 300"), ({"code": "", "timeout": "5 s"}, "1 to 300"),
                ({"code": "", "timeout": 1.5}, "1 to 300"),
                ({"code": "", "capture_output": "yes"}, "true or false"),
                ({"code": "", "use_container": 1}, "true or false"),
                ({"code": "", "memory_limit": 128}, "such as"),
                ({"code": "", "memory_limit": "m"}, "such as"),
                ({"code": "", "memory_limit": "64mbb"}, "such as"),
                ({"code": "", "memory_limit": "64bb"}, "such as"),
                ({"code": "", "memory_limit": "1m"}, "from 16m to 2048m"),
                ({"code": "", "memory_limit": "3g"}, "from 16m to 2048m"),
                ({"code": "", "memory_limit": "9" * 40 + "g"}, "such as"),
                ({"code": "", "memory_limit": "128m\0"}, "such as"),
                ({"code": "", "allowed_imports": "os"}, "array"),
                ({"code": "", "allowed_imports": ["a", 7]}, "item 1"),
                ({"code": "", "allowed_imports": ["a b"]}, "item 0"),
                ({"code": "", "allowed_imports": ["a"] * 513}, "at most 512"),
                ({"code": "", "script": ""}, "script is not an argument")):
            result = call(client, "execute_code", **arguments)
            assert result["isError"], (arguments, result)
            got = result["structuredContent"]
            assert not got["success"] and word in got["error"], (word, got)
        for arguments in ({}, {"code": 1}, {"code": "", "x": 1}):
            assert call(client, "validate_code", **arguments)["isError"]
        succeeds(client, "result = 1", 1, allowed_imports=None, memory_limit=None)


@test
def validation_in_detail(ctx):
    with ctx.client() as client:
        got = validate(client, "x = 1\nif x\n")
        equal(got["validation"]["message"], "Code could not be compiled")
        equal(got["validation"]["errors"], ["Line 2: SyntaxError: expected ':'"])
        equal((got["analysis"]["line_count"], got["analysis"]["character_count"]), (3, 11))
        equal(validate(client, "'\u00e4\u20ac'")["analysis"]["character_count"], 4)
        equal(validate(client, "")["validation"]["valid"], True)
        for code in ("(" * 50000, "-" * 100000 + "1", "x" + "()" * 100000, "return 1"):
            assert not validate(client, code)["validation"]["valid"], code[:20]
        equal(validate(client, "while True: pass")["validation"]["valid"], True)
        loops = "for a in b:\n  for c in d:\n    for e in f: pass\n"
        for code, wanted in (("x = 1", "low"), (loops[:30] + "pass", "medium"), (loops, "high"),
                             ("if a: pass\n" * 10, "medium"), ("if a: pass\n" * 30, "high")):
            equal(validate(client, code)["analysis"]["estimated_complexity"], wanted, code)
        got = validate(client, "\n".join("import os%d" % i for i in range(60)))
        equal(len(got["validation"]["errors"]), 51)
        equal(got["validation"]["errors"][50], "There are 10 more")


# ---- modules ----

@test
def what_is_allowed_works(ctx):
    with ctx.client() as client:
        for code, result in (
                ("import math, random, datetime, json, re, time, calendar, uuid, collections, "
                 "itertools, functools, operator, bisect, heapq, copy, dataclasses, enum, typing, "
                 "string, textwrap, unicodedata, difflib, decimal, fractions, statistics, cmath, "
                 "base64, binascii, hashlib, hmac, secrets, html, html.parser, csv, configparser, "
                 "urllib.parse, abc, contextlib, types\n"
                 "import xml.etree.ElementTree as ET\nresult = ET.fromstring('<a b=\"1\"/>').get('b')",
                 "1"),
                ("from collections import OrderedDict, abc\nfrom urllib.parse import quote\n"
                 "result = [quote('a b'), isinstance([], abc.Sequence)]", ["a%20b", True]),
                ("import collections.abc, urllib.parse\n"
                 "result = urllib.parse.urlsplit('http://h/p').path + collections.abc.Set.__name__",
                 "/pSet"),
                ("from math import *\nresult = factorial(5) + floor(pi)", 123),
                ("from dataclasses import dataclass, field, asdict\nfrom enum import Enum\n"
                 "import typing\nclass E(Enum):\n  A = 1\n@dataclass\nclass D:\n"
                 "  x: int = 1\n  y: list = field(default_factory=list)\n"
                 "class N(typing.NamedTuple):\n  z: int\nresult = [asdict(D()), E.A.name, N(2).z]",
                 [{"x": 1, "y": []}, "A", 2]),
                ("import decimal\ndecimal.getcontext().prec = 5\n"
                 "result = str(decimal.Decimal(1) / 3)", "0.33333"),
                ("import random\nrandom.seed(1)\na = random.random()\nrandom.seed(1)\n"
                 "result = a == random.random()", True),
                ("import datetime, hashlib, json, re\nresult = [datetime.date(2020, 1, 1)"
                 ".isoformat(), hashlib.sha256(b'').hexdigest()[:6], json.loads('[1]'), "
                 "re.sub('a', 'b', 'aa')]", ["2020-01-01", "e3b0c4", [1], "bb"]),
                ("import math\ndef f():\n  import json\n  return json.dumps([math.tau > 6])\n"
                 "result = f()", "[true]"),
                ("class json:\n  codecs = 1\nresult = json.codecs", 1),
                ("import math\nresult = [repr(math), hasattr(math, 'none'), math.__name__]",
                 ["<module 'math' (built-in)>", False, "math"])):
            succeeds(client, code, result)
        got = execute(client, "import math\nmath.nothing")
        equal(got["error"], "module 'math' has no attribute 'nothing'")
        assert "mcp-python" not in got["traceback"], got


@test
def what_is_not_allowed_is_refused_before_it_runs(ctx):
    with ctx.client() as client:
        for code, *problems in (
                ("print(1)\nimport sys, os", "Line 2: Import 'sys' is", "Line 2: Import 'os' is"),
                ("x = 1\n\n\nimport math, subprocess as s", "Line 4: Import 'subprocess' is"),
                ("from os import path, system", "Line 1: Import 'os' is"),
                ("import urllib.request", "Line 1: Import 'urllib.request' is"),
                ("from urllib import request", "Line 1: Import 'urllib' is"),
                ("from xml import dom", "Line 1: Import 'xml' is"),
                ("def f():\n  import socket", "Line 2: Import 'socket' is"),
                ("if 0:\n  __import__('os')", "Line 2: Import 'os' is"),
                ("from . import x", "Line 1: Import '.' is"),
                ("from random import _os", "Line 1: Import 'os' is not allowed (random._os)"),
                ("import json\nprint(1)\njson.codecs.open('x')",
                 "Line 3: Import 'codecs' is not allowed (json.codecs)"),
                ("import random as r\nr._os.system('x')",
                 "Line 2: Import 'os' is not allowed (random._os)"),
                ("import collections\ncollections._sys.modules", "Line 2: Import 'sys' is"),
                ("def f(): pass\nf.__globals__", "Line 2: '__globals__' is not allowed"),
                ("x = __builtins__", "Line 1: '__builtins__' is not allowed"),
                ("().__class__.__base__.__subclasses__()", "Line 1: '__subclasses__' is not"),
                ("print.__self__.__import__('os')", "Line 1: Import 'os' is")):
            got = is_refused(client, code, *problems)
            equal(got["stdout"], "", code)
            errors = validate(client, code)["validation"]["errors"]
            equal(errors, got["validation_errors"], code)


# Code, and what of it is refused, whatever the zygote has imported.
LOADED_OR_NOT = (
    ("from random import _os", "Line 1: Import 'os' is not allowed (random._os)"),
    ("import random as r\nr._os.system('x')", "Line 2: Import 'os' is not allowed (random._os)"),
    ("def f():\n  import statistics\n  return statistics.sys", "Line 3: Import 'sys' is not allowed (statistics.sys)"),
    ("import xml.etree.ElementTree as E\nE.sys.modules", "Line 2: Import 'sys' is not allowed (xml.etree.ElementTree.sys)"),
    ("from xml.etree.ElementTree import io", "Line 1: Import 'io' is not allowed (xml.etree.ElementTree.io)"),
    ("import html.parser as p\np._markupbase.re", "Line 2: Import '_markupbase' is not allowed (html.parser._markupbase)"),
    ("import urllib.parse\nurllib.request.urlopen('http://h')", "Line 2: Import 'urllib.request' is not allowed (urllib.request)"),
    # What is no module, and a module that is allowed.
    ("import random, statistics, html.parser, calendar, difflib\nfrom statistics import mean, random as r\n"
     "from fractions import Fraction, math\nfrom html import parser, unescape\n"
     "result = [mean([1, 3]), r is random, str(Fraction(1, 2)), parser is html.parser, unescape('&lt;'), "
     "statistics.math.floor(1.5), calendar.MONDAY, difflib.IS_LINE_JUNK.__name__]",),
    ("import json\nresult = json.decoder.scanner.__name__",),
)


@test(private=True)
def the_verdict_is_the_same_whatever_is_loaded(ctx):
    for modules in ("sys", "calendar difflib fractions html.parser random statistics urllib.request xml.etree.ElementTree"):
        with ctx.private(SETS + "[profile basic]\nmodules = %s\n" % modules) as s, ctx.client(path=s.socket) as client:
            for code, *problems in LOADED_OR_NOT:
                errors = validate(client, code)["validation"]["errors"]
                equal(errors, problems, (modules, code))
                if problems:
                    equal(is_refused(client, code, *problems)["stdout"], "")
                else:
                    got = execute(client, code)
                    assert got["success"] and got["stderr"] == "", (modules, code, got)


# Code that the check before the run cannot see through.
AROUND = (
    "n = 'o' + 's'\n__import__(n)", "exec('import os')", "eval(\"__import__('o' + 's')\")",
    "exec(compile('import os', '/usr/lib/python3/x.py', 'exec'))",
    "exec('import os', {})", "f = __import__\nf('os')",
    "class C:\n  exec('from os import system')",
    "import json as j\nm = j\nm.codecs", "import random\ngetattr(random, '_os')",
    "import random\nfor m in [random]: m._os", "import json\nd = [json.decoder][0]\nd.scanner\n"
    "[json][0].codecs",
    "exec('from random import _os')", "import random\n(lambda r: r._os)(random)",
    "import xml.etree.ElementTree as E\n(lambda e: e.sys)(E)",
    "import urllib.parse\nurl = [urllib]\nurl[0].parse.sys",
    "import collections.abc\n[collections][0]._sys",
    "import datetime\n[datetime][0].sys",
    "import math\nd = {'__name__': 'json', '__builtins__': {'__import__': __import__}}\n"
    "exec('import os', d)",
)


@test
def ways_around_the_check_meet_the_hook(ctx):
    with ctx.client() as client:
        for code in AROUND:
            got = execute(client, code)
            assert not got["success"] and got.get("validation_errors"), (code, got)
            assert re.match(r"Line \d+: Import '[\w.]+' is not allowed", got["validation_errors"][0]), (
                code, got)
            assert "mcp-python" not in got.get("traceback", "") and "Python here" not in str(got), got
        # It is an ImportError, and can be caught as one.
        succeeds(client, "n = 'os'\ntry:\n  __import__(n)\nexcept ImportError as e:\n"
                 "  result = [e.name, str(e)]", ["os", "Import 'os' is not allowed"])
        # What is not there is not there.
        succeeds(client, "import random, json\nresult = [n for m in (random, json) "
                 "for n in vars(m) if n in ('_os', 'codecs', '__builtins__', '__spec__')]", [])
        # The modules themselves go on as ever.
        succeeds(client, "import random, secrets\nresult = len(secrets.token_bytes(4)) + "
                 "random.SystemRandom().randint(1, 1)", 5)


@test
def a_call_can_only_take_away(ctx):
    with ctx.client() as client:
        succeeds(client, "import math\nresult = 1", 1, allowed_imports=["math", "json"])
        is_refused(client, "import json", "Line 1: Import 'json' is", allowed_imports=["math"])
        is_refused(client, "import os", "Line 1: Import 'os' is", allowed_imports=["os", "math"])
        is_refused(client, "import math", "Line 1: Import 'math' is", allowed_imports=["os"])
        is_refused(client, "import xml.dom", "Line 1: Import 'xml.dom' is", allowed_imports=["xml"])
        succeeds(client, "import xml.etree.ElementTree\nresult = 1", 1, allowed_imports=["xml"])
        succeeds(client, "import math, json\nresult = 1", 1, allowed_imports=[])
        is_refused(client, "import collections", "Line 1: Import 'collections' is",
                   allowed_imports=["collections.abc"])
        succeeds(client, "import collections.abc as a\nresult = a.Set.__name__", "Set",
                 allowed_imports=["collections.abc"])


TIERS = SETS + """
[python-sandbox]
filesystem = yes
network = yes
data_science = yes
default_timeout = 5
max_timeout = 6
memory_limit = 256M
[tiers]
basic = math importlib builtins sys
"""


@test(private=True)
def tiers_are_configured(ctx):
    with ctx.private(TIERS) as s, ctx.client(path=s.socket) as client:
        info = call(client, "get_sandbox_info")["structuredContent"]
        assert all(p["enabled"] for p in info["security_profiles"].values()), info
        equal(info["security_profiles"]["basic"]["modules"], ["math", "importlib", "builtins", "sys"])
        equal((info["resource_limits"]["timeout"], info["resource_limits"]["memory_limit"]),
              (5, "256m"))
        succeeds(client, "import tempfile, pathlib, os.path\np = pathlib.Path(tempfile.mkdtemp())\n"
                 "(p / 'f').write_text('x')\nresult = os.path.getsize(os.path.join(str(p), 'f'))", 1)
        succeeds(client, "import tempfile\ntempfile.tempdir = '/workspace'\n"
                 "result = tempfile.gettempdir()", "/workspace")
        succeeds(client, "from os import path\nresult = path.basename('a/b')", "b")
        succeeds(client, "from os.path import join as j\nresult = j('a', 'b')", "a/b")
        is_refused(client, "import json", "Line 1: Import 'json' is")
        for code in ("import os.path\nos.system('true')", "import os.path\nf = os\nf.environ",
                     "import importlib\nn = 'o' + 's'\nimportlib.import_module(n)",
                     "import importlib\nn = 'o' + 's'\nimportlib.__import__(n)",
                     "from importlib import import_module as i\nn = 'json'\ni(n)",
                     "import builtins\nn = 'os'\nbuiltins.__import__(n)",
                     "import pathlib\n[pathlib][0].os.system", "import shutil\n[shutil][0].fnmatch"):
            got = execute(client, code)
            assert not got["success"] and got.get("validation_errors"), (code, got)
        succeeds(client, "import importlib\nresult = importlib.import_module('math').floor(1.5)", 1)
        got = execute(client, "while True: pass")
        equal((got["error"], got["timeout"]), ("Execution timeout", 5))


@test(private=True)
def a_list_of_ones_own_replaces_the_tiers(ctx):
    config = SETS + "[python-sandbox]\nallowed_imports = math\n os\n"
    with ctx.private(config) as s, ctx.client(path=s.socket) as client:
        info = call(client, "get_sandbox_info")["structuredContent"]
        equal(info["allowed_imports"], ["math", "os"])
        assert not any(p["enabled"] for p in info["security_profiles"].values()), info
        succeeds(client, "import os, os.path\nresult = os.path.basename(os.getcwd())", "workspace")
        is_refused(client, "import json", "Line 1: Import 'json' is")
        is_refused(client, "import numpy", "Line 1: Import 'numpy' is", use_container=True)
        is_refused(client, "import os\nos.sys", "Line 2: Import 'sys' is not allowed (os.sys)")
    # Nothing at all is a list too.
    with ctx.private(SETS + "[tiers]\nbasic =\n") as s, ctx.client(path=s.socket) as client:
        is_refused(client, "import math", "Line 1: Import 'math' is")
        got = execute(client, "exec('import math')")
        assert got.get("validation_errors"), got
        succeeds(client, "result = 1", 1)


VARIABLES = {"SANDBOX_TIMEOUT": "7", "SANDBOX_MAX_OUTPUT_SIZE": "2048",
             "SANDBOX_ENABLE_NETWORK": "true", "SANDBOX_ENABLE_FILESYSTEM": "True",
             "SANDBOX_ENABLE_DATA_SCIENCE": "false", "SANDBOX_DEFAULT_MEMORY_LIMIT": "96m"}


@test(private=True)
def environment_variables_are_honoured(ctx):
    with ctx.private(SETS, env=VARIABLES) as s, ctx.client(path=s.socket) as client:
        info = call(client, "get_sandbox_info")["structuredContent"]
        equal({name: p["enabled"] for name, p in info["security_profiles"].items()},
              {"basic": True, "data_science": False, "network": True, "filesystem": True})
        limits = info["resource_limits"]
        equal((limits["timeout"], limits["max_output_size"], limits["memory_limit"]),
              (7, 2048, "96m"))
        assert 2000 < len(execute(client, "print('x' * 5000)")["stdout"]) < 2300
    env = {"SANDBOX_ALLOWED_IMPORTS": "math, json,os.path", "SANDBOX_TIMEOUT": ""}
    with ctx.private(SETS, env=env) as s, ctx.client(path=s.socket) as client:
        equal(call(client, "get_sandbox_info")["structuredContent"]["allowed_imports"],
              ["math", "json", "os.path"])
        is_refused(client, "import random", "Line 1: Import 'random' is")


@test(private=True)
def wrong_environment_variables_are_refused(ctx):
    for name, value, words in (
            ("SANDBOX_TIMEOUT", "soon", '"soon" is not a whole number from 1 to 86400'),
            ("SANDBOX_TIMEOUT", "0", "from 1"), ("SANDBOX_TIMEOUT", "301", "301 is above the most"),
            ("SANDBOX_MAX_OUTPUT_SIZE", "1.5", "is not a number of bytes"),
            ("SANDBOX_ENABLE_NETWORK", "maybe", '"maybe" is neither true nor false'),
            ("SANDBOX_ENABLE_FILESYSTEM", "1\n2", "neither true nor false"),
            ("SANDBOX_ENABLE_DATA_SCIENCE", "2", "neither true nor false"),
            ("SANDBOX_ALLOWED_IMPORTS", "math,o s;", "is not the name of a Python module"),
            ("SANDBOX_DEFAULT_MEMORY_LIMIT", "128x", "is not a number of bytes"),
            ("SANDBOX_DEFAULT_MEMORY_LIMIT", "1m", "from 16777216")):
        status, said = check_config(ctx, SETS, {name: value})
        assert status == 78 and said.startswith(name + ": ") and words in said, said
        assert said.count("\n") == 1, said
        # They are that set's alone, and no service's.
        equal(check_config(ctx, "", {name: value})[0], 0)


# ---- native: the same for run_script; and the calls that mcp-run-python's documentation shows ----

@test(private=True)
def run_script_keeps_to_modules_too(ctx):
    with ctx.private() as s, ctx.client(path=s.socket) as client:
        o = client.run("import json\njson.dumps([1])", allowed_imports=["json"])
        equal((o.status, o.result["json"]), ("ok", "[1]"))
        o = client.run("print(1)\nimport os", allowed_imports=["json"])
        equal((o.status, o.stdout, o.error["type"], o.error["message"], o.error["line"]),
              ("error", "", "ImportNotAllowed", "Line 2: Import 'os' is not allowed", 2))
        o = client.run("print(1)\nn = 'os'\n__import__(n)", allowed_imports=[])
        equal((o.stdout, o.error["message"], o.error["line"]),
              ("1\n", "Import 'os' is not allowed", 3))
        assert "mcp-python" not in o.stderr, o.stderr
        for tier, works, fails in (("basic", "math", "pathlib"), ("filesystem", "pathlib", "numpy"),
                                   ("filesystem", "math", "os"), ("network", "email", "glob")):
            equal(client.run("import " + works, tier=tier).status, "ok")
            equal(client.run("import " + fails, tier=tier).error["type"], "ImportNotAllowed")
        equal(client.run("import os, math", tier="basic", allowed_imports=["os"]).status, "ok")
        for arguments, word in (({"tier": "all"}, "tier must be"), ({"tier": 1}, "tier must be"),
                                ({"allowed_imports": "os"}, "array"),
                                ({"allowed_imports": ["os;"]}, "item 0")):
            o = client.run("1", **arguments)
            assert o.status == "invalid_arguments" and word in o.error["message"], o
        equal(client.run("import os").status, "ok", "without either")


@test(private=True)
def examples_of_mcp_run_python(ctx):
    with ctx.private() as s, ctx.client(path=s.socket) as client:
        o = client.run("from datetime import date\n(date(2025, 3, 18) - date(2000, 1, 1)).days")
        equal(o.result["json"], 9208)
        o = client.run("import numpy\na = numpy.array([1, 2, 3])\nprint(a)\na\n")
        if o.status != "ok":
            raise Skip("numpy is not installed", missing=True)
        equal((o.stdout, o.result["repr"]), ("[1 2 3]\n", "array([1, 2, 3])"))


@test(private=True)
def exec_insists_on_its_python(ctx):
    right = "%d.%d" % sys.version_info[:2]
    block = '# /// script\n# requires-python = "%s"\n# ///\nprint(1)'
    for version, script, works in ((right, "print(1)", True), (PYTHON, "print(1)", True),
                                   (right, block % ">=3", True), (right, block % "<3", False),
                                   ("3.1", "print(1)", False), ("2.7", block % ">=3", False)):
        with ctx.private(SETS + "[exec-sandbox]\npython_version = %s\n" % version) as s, \
                ctx.client(path=s.socket) as client:
            for _ in range(2):
                got = parts(say(client, script=script))
                if works:
                    equal((got["stdout"], got["exit_code"]), ("1\n", "0"), version)
                else:
                    assert "has Python " + PYTHON in got["stderr"], got
                    equal(got["exit_code"], "1")
    for wrong in ("3.", "three", "3..1", ".3", ">=3"):
        status, said = check_config(ctx, "[exec-sandbox]\npython_version = %s\n" % wrong)
        assert status == 78 and "is not a version such as 3.11" in said, said


# ---- run-python ----

RUN_PYTHON = "[mcp]\ntoolsets = run-python\n[run-python]\n"


def run_python(client, code, is_error=False, **variables):
    result = call(client, "run_python_code", python_code=code,
                  **({"global_variables": variables} if variables else {}))
    equal(bool(result["isError"]), is_error, repr(result))
    assert "structuredContent" not in result, result
    block, = result["content"]
    return block["text"]


def xml(status, **elements):
    return "<status>%s</status>" % status + "".join(
        "\n<%s>\n%s\n</%s>" % (tag, text, tag) for tag, text in elements.items())


@test(private=True)
def run_python_as_its_tests_have_it(ctx):
    with ctx.private(RUN_PYTHON) as service, ctx.client(path=service.socket) as client:
        tool, = tools_of(client).values()
        equal(set(tool["inputSchema"]["properties"]), {"python_code", "global_variables"})
        assert tool["description"].startswith(
            "Tool to execute Python code and return stdout, stderr, and return value."), tool
        for code, wanted in (
                ("x = 4\nprint(f'{x=}')\nx", xml("success", output="x=4", return_value="4")),
                ("print(1)", xml("success", output="1")),
                ("", xml("success")), ("None", xml("success")), ("''", xml("success")),
                ("'text'", xml("success", return_value="text")),
                ("[1, {'a': []}]", xml("success", return_value='[\n  1,\n  {\n    "a": []\n  }\n]')),
                ("import sys\nprint('</output>')\nprint('e', file=sys.stderr)",
                 xml("success", output="&lt;/output&gt;\ne"))):
            equal(run_python(client, code), wanted, code)
        text = run_python(client, "print('before')\nprint(unknown)")
        assert text.startswith(xml("run-error", output="before") + "\n<error>\nTraceback (most recent"), text
        assert text.endswith("NameError: name 'unknown' is not defined\n\n</error>"), text
        if run_python(client, "import numpy").startswith("<status>success"):
            equal(run_python(client, "import numpy\nnumpy.array([1, 2, 3])"),
                  xml("success", return_value="[\n  1,\n  2,\n  3\n]"))


@test(private=True)
def run_python_awaits_a_coroutine(ctx):
    with ctx.private(RUN_PYTHON) as service, ctx.client(path=service.socket) as client:
        f = "import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    return 3\n"
        for last in ("f()", "await f()", "await asyncio.sleep(0)\nf()", "asyncio.run(f())"):
            equal(run_python(client, f + last), xml("success", return_value="3"), last)
        text = run_python(client, "async def f():\n    1 / 0\nf()")
        assert 'File "main.py", line 2, in f' in text and "mcp-python" not in text, text
        text = run_python(client, f + "c = f()\nasyncio.run(c)\nc")
        assert "<coroutine object f at" in text, "one that has ended is a value like others"


@test(private=True)
def run_python_has_global_variables(ctx):
    with ctx.private(RUN_PYTHON) as service, ctx.client(path=service.socket) as client:
        equal(run_python(client, "a + b", a=4, b=5), xml("success", return_value="9"))
        value = {"t": [1, 2.5, None, True, "\u00e4\0</output>"], "n": {"deep": [[]]}}
        text = run_python(client, "import json\njson.dumps(v)", v=value)
        equal(json.loads(re.search(r"<return_value>\n(.*)\n</return", text, re.S)[1]), value)
        run_python(client, "a = 1")
        assert "NameError" in run_python(client, "a"), "the next call has none"
        equal(run_python(client, "len(big)", big="x" * 1000000), xml("success", return_value="1000000"))
        for name in ("a b", "class", "__name__", "1", ""):
            text = run_python(client, "1", True, **{name: 1})
            assert 'global_variables: "%s" cannot be the name' % name in text, text
        text = run_python(client, "1", True, big="x" * (1 << 20))
        assert "at most 1048576 are allowed" in text, text
        result = call(client, "run_python_code", python_code="1", global_variables=[1])
        assert result["isError"] and "must be an object" in result["content"][0]["text"], result


@test(private=True)
def run_python_as_json(ctx):
    with ctx.private(RUN_PYTHON + "return_mode = json\n") as service, \
            ctx.client(path=service.socket) as client:
        for code, wanted in (
                ("print('a\\n\\nb')\n'text'", {"status": "success", "output": ["a", "", "b"],
                                              "return_value": "text"}),
                ("None", {"status": "success", "output": [], "return_value": None}),
                ("{'a': [1, 0.1]}", {"status": "success", "output": [], "return_value": {"a": [1, 0.1]}})):
            equal(json.loads(run_python(client, code)), wanted, code)
        failed = json.loads(run_python(client, "1/0"))
        equal((failed["status"], failed["output"]), ("run-error", []))
        assert failed["error"].endswith("ZeroDivisionError: division by zero\n"), failed


@test(private=True)
def run_python_logs_when_it_is_asked_to(ctx):
    code = "import sys\nprint('one\\ntwo')\nprint('bad', file=sys.stderr)"

    def said(client):
        del client.notices[:]
        run_python(client, code)
        return [(note["params"]["level"], note["params"]["data"]) for note in client.notices
                if note["method"] == "notifications/message"]

    with ctx.private(RUN_PYTHON) as service, ctx.client(path=service.socket) as client:
        equal(said(client), [], "nobody has asked for it")
        client.ask("logging/setLevel", {"level": "debug"})
        equal(said(client), [("info", "one"), ("info", "two"), ("warning", "bad")])
        client.ask("logging/setLevel", {"level": "warning"})
        equal(said(client), [("warning", "bad")])
        client.ask("logging/setLevel", {"level": "info"})
        del client.notices[:]
        run_python(client, "print('x\\n' * 100000)")
        notes = [note for note in client.notices if note["method"] == "notifications/message"]
        equal(len(notes), 200, "and no more than that")


@test(private=True)
def run_python_has_its_dependencies(ctx):
    with ctx.private(RUN_PYTHON + "dependencies = not-a-package>=1\n") as service, \
            ctx.client(path=service.socket) as client:
        assert "not-a-package>=1" in tools_of(client)["run_python_code"]["description"]
        text = run_python(client, "print(1)")
        assert text.startswith("<status>install-error</status>\n<error>\n"), text
        assert "not-a-package>=1" in text, text
    status, said = check_config(ctx, "[run-python]\ndependencies = -x\n")
    assert status == 78 and "dependencies" in said, said


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
    for wrong, word in (("other", "is not native, exec-sandbox, python-sandbox or run-python"),
                        ("", "names no set")):
        status, said = check_config(ctx, "[mcp]\ntoolsets = %s\n" % wrong)
        assert status == 78 and word in said, said
    for right in ("native", "exec-sandbox", "native python-sandbox", "python-sandbox,exec-sandbox"):
        equal(check_config(ctx, "[mcp]\ntoolsets = %s\n" % right)[0], 0)


if __name__ == "__main__":
    main(__doc__, SETS, FEW_MODULES)
