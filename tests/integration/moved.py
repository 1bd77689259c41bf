#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What clients of other servers send, one input a row, with what is wanted in the answer.

A suite of tests/integration/run. doc/moving.md says in words what differs; toolsets.py has the
examples of those servers' documents."""

import json
import os
import re
import subprocess
import sys
import tempfile

from harness import Skip, equal, main, rows_done, test, tests
from http_client import BOTH, Connection, Session, encode
from http_suite import JSON, http_private
from mcpclient import LEGACY, Client, RpcError
from interpreter import under_test
import toolsets
from toolsets import RUN_PYTHON, SETS, call, check_config, execute, has_module, parts, run_python, say, tools_of, validate

tests.clear()	# those of toolsets.py

NO = object()	# of a part of an answer that must not be there


class In(str):
    """A text that has to be in that part of the answer; a plain one is all of it."""


def fits(got, wanted, what):
    """The parts of an answer, each as its row says."""
    for part, value in wanted.items():
        if value is NO:
            assert part not in got, "%.300s: there is %s: %.1500r" % (what, part, got)
        elif isinstance(value, In):
            assert str(value) in str(got.get(part)), "%.300s: no %r in %s of %.1500r" % (
                what, value, part, got)
        else:
            equal(got.get(part), value, "%s of %.300s, %.500r," % (part, what, got))


def block(*lines):
    return "".join("# %s\n" % line for line in ("/// script", *lines, "///"))


# ---- exec-sandbox ----

RAN = {"stderr": NO, "exit_code": "0", "timed_out": NO}
FAILED = {"stdout": NO, "exit_code": "1"}
EXEC = (
    # execute_python's script, its other arguments, and the parts of the answer
    ("print('hello from mcp')", {}, {"stdout": "hello from mcp\n", **RAN}),
    ("import sys; print('bye'); sys.exit(1)", {}, {"stdout": "bye\n", "stderr": NO, "exit_code": "1"}),
    ("import sys; sys.exit(42)", {}, {"stdout": NO, "stderr": NO, "exit_code": "42"}),
    ("import sys; print('bad', file=sys.stderr)", {}, {"stdout": NO, "stderr": "bad\n", "exit_code": "0"}),
    ("pass", {}, {"stdout": NO, **RAN}),
    ("", {}, {"stdout": NO, **RAN}),
    ("print('\\u4f60\\u597d \\U0001f600 \\xe9')", {}, {"stdout": "\u4f60\u597d \U0001f600 \xe9\n", **RAN}),
    ("import sys; sys.stdout.buffer.write(b'a\\xffb\\n')", {}, {"stdout": "a\ufffdb\n", **RAN}),
    ("import time; print('first', flush=True); time.sleep(600)", {"timeout_seconds": 1},
     {"stdout": "first\n", "timed_out": "true", "exit_code": "130", "timeout": In("1 s")}),
    ("print(1)", {"timeout_seconds": "5"}, {"stdout": "1\n", **RAN}),
    ("print(1)", {"timeout_seconds": 100000}, {"stdout": "1\n", "timeout": NO, **RAN}),
    ("print(1)", {"dependencies": "[]"}, {"stdout": "1\n", **RAN}),
    ("import os; print([n for n in ('HOME', 'PATH', 'LANG') if not os.environ.get(n)])", {},
     {"stdout": "[]\n", **RAN}),
    ("open('/etc/shadow').read()", {}, {"stderr": In("FileNotFoundError"), **FAILED}),
    ("open('/usr/lib/x', 'w')", {}, {"stderr": In("Read-only file system"), **FAILED}),
    ("import os; print(sorted(os.listdir('/home')), os.path.exists('/root'))", {}, {"stdout": "['python', 'user'] False\n", **RAN}),
    ("open('beside.txt', 'w').write('x'); print(open('beside.txt').read())", {}, {"stdout": "x\n", **RAN}),
    ("import tempfile; f = tempfile.NamedTemporaryFile('w+'); f.write('x'); f.seek(0); print(f.read())", {},
     {"stdout": "x\n", **RAN}),
    ("import os; print(os.path.exists('beside.txt'))", {}, {"stdout": "False\n", **RAN}),
    ("import urllib.request as u; u.urlopen('http://192.0.2.1/', timeout=9)", {},
     {"stderr": In("URLError"), **FAILED}),
    ("import os, sys; print(__name__, os.path.basename(__file__), sys.argv[1:],"
     " os.path.dirname(os.path.abspath(__file__)) == os.getcwd())", {}, {"stdout": "__main__ script.py [] True\n", **RAN}),
    ("def f():\n    g()\ndef g():\n    1 / 0\nf()", {}, {"stderr": In('script.py", line 4, in g'), **FAILED}),
    ("x = (", {}, {"stderr": In("SyntaxError: '(' was never closed"), **FAILED}),
    ("print(input())", {}, {"stderr": In("EOFError"), **FAILED}),
    ("import subprocess, sys; print(subprocess.run([sys.executable, '-m', 'json.tool'], input=b'[1]',"
     " stdout=-1).stdout)", {}, {"stdout": "b'[\\n    1\\n]\\n'\n", **RAN}),
    # the block of metadata
    (block() + "print(1)", {}, {"stdout": "1\n", **RAN}),
    (block("dependencies = [", "]", 'requires-python = ">=3.9"') + "1 / 0", {}, {"stderr": In("line 6"), **FAILED}),
    (block('requires-python = ">=3.99"') + "print(1)", {}, {"stderr": In("requires-python is >=3.99"), **FAILED}),
    (block('dependencies = ["no-such-thing"]') + "print(1)", {}, {"stderr": In("no-such-thing"), **FAILED}),
    ("print(1)", {"dependencies": ["no-such-thing>=1.2"]}, {"stderr": In("no-such-thing>=1.2"), **FAILED}),
    # of one package in both, the argument's requirement counts
    (block('dependencies = ["No_Such-Thing"]') + "print(1)", {"dependencies": ["no.such.thing; os_name == 'nt'"]},
     {"stdout": "1\n", **RAN}),
    (block('dependencies = ["Foo_Bar<1", "baz"]') + "1", {"dependencies": ["foo.bar>=2"]},
     {"stderr": In(": baz, foo.bar>=2. Nothing was run"), **FAILED}),
)


@test
def exec_one_by_one(ctx):
    with ctx.client() as client:
        for script, arguments, wanted in EXEC:
            text = say(client, script=script, **arguments)
            fits(parts(text), wanted, script)
            assert "--- duration_ms: " in text, text
    return "%d inputs" % len(EXEC)


DATA = (
    # what has to be installed, a script of that server's tests in short, its output
    ("pandas", "import pandas as pd; df = pd.DataFrame({'a': [1, 2, 3], 'b': [4, 5, 6]}); print(df.sum().to_dict())",
     r"\{'a': 6, 'b': 15\}\n"),
    ("pandas", "import io, pandas as pd\ndf = pd.read_csv(io.StringIO('k,v\\nx,1\\ny,2\\nx,3'))\n"
     "print(df[df.v > 0].groupby('k').v.mean().to_dict())", r"\{'x': 2.0, 'y': 2.0\}\n"),
    ("numpy", "import numpy as np; a = np.array([[2., 0.], [0., 4.]])\n"
     "print(np.linalg.det(a).round(6), np.linalg.solve(a, [2, 4]))", r"8\.0 \[1\. 1\.\]\n"),
    ("scipy", "import numpy as np; from scipy import optimize, stats\nr = stats.pearsonr(np.arange(9), np.arange(9))[0]\n"
     "print(round(r, 6), round(float(optimize.minimize_scalar(lambda x: (x - 2) ** 2).x), 4))", r"1\.0 2\.0\n"),
    ("matplotlib", "import matplotlib; matplotlib.use('Agg')\nimport matplotlib.pyplot as plt, os\nplt.plot([1, 2])\n"
     "plt.savefig('p.png'); print(os.path.getsize('p.png') > 1000)", r"True\n"),
    ("sympy", "import sympy as s; x = s.symbols('x'); print(s.integrate(2 * x, x), s.solve(x**2 - 4, x))",
     r"x\*\*2 \[-2, 2\]\n"),
    ("sklearn", "from sklearn.datasets import load_iris; from sklearn.linear_model import LogisticRegression as L\n"
     "x, y = load_iris(return_X_y=True); print(L(max_iter=500).fit(x, y).score(x, y) > .9)", r"True\n"),
    ("sklearn", "import numpy as np; from sklearn.cluster import KMeans; from sklearn.decomposition import PCA\n"
     "a = np.r_[np.zeros((9, 3)), np.ones((9, 3))]\nprint(PCA(1).fit_transform(a).shape, len(set(KMeans(2, n_init=1).fit(a).labels_)))",
     r"\(18, 1\) 2\n"),
    ("bs4", "from bs4 import BeautifulSoup as B; print([a['href'] for a in B('<a href=x>1</a>', 'html.parser')('a')])",
     r"\['x'\]\n"),
    ("polars", "import polars as p; print(p.LazyFrame({'a': [1, 2]}).select(p.col('a').sum()).collect().item())", r"3\n"),
    ("pydantic", "from pydantic import BaseModel\nclass M(BaseModel):\n    n: int\nprint(M(n='3').n)", r"3\n"),
)


@test
def exec_computes(ctx):
    there, missing = [], set()
    with ctx.client(timeout=120) as client:
        for package, script, wanted in DATA:
            got = parts(say(client, script="import importlib.util as u; print(u.find_spec(%r) is not None)" % package))
            if got["stdout"] == "True\n":
                got = parts(say(client, script=block('dependencies = ["%s"]' % package.replace(
                    "sklearn", "scikit-learn").replace("bs4", "beautifulsoup4")) + script, timeout_seconds=100))
                assert re.fullmatch(wanted, got.get("stdout", "")), (script, got)
                there.append(package)
            else:
                missing.add(package)
    if not there:
        raise Skip("none of these packages is installed", missing=True)
    return rows_done(len(there), DATA, missing)


@test
def exec_is_called_wrongly(ctx):
    with ctx.client() as client:
        for arguments, words in (({"script": block("this is not [[[ TOML") + "print(1)"}, "line 2: the metadata is not TOML"),
                                 ({"script": "1", "dependencies": ["not a requirement"]}, "'not a requirement'"),
                                 ({"script": "1", "timeout_seconds": "soon"}, "an integer from 1 to 300"), ({}, "script is required")):
            result = call(client, "execute_python", **arguments)
            assert result["isError"] and words in result["content"][0]["text"], (arguments, result)


VALIDATES = (
    # validate_script's script, dependencies, and the answer's lines
    ("print('hello')", None, ["VALID", "dependencies: none"]),
    (block(), None, ["VALID", "dependencies: none"]),
    ("import no_such", ["no-such>=2.0", "nor-this"],
     ["VALID", "dependencies (2):", "  - no-such>=2.0", "  - nor-this", "warnings:",
      "  - not installed: no-such>=2.0", "  - not installed: nor-this"]),
    (block('dependencies = ["no-such"]', 'requires-python = ">=3.9"'), None,
     ["VALID", "requires-python: >=3.9", "dependencies (1):", "  - no-such", "warnings:", "  - not installed: no-such"]),
    (block("dependencies = [", '    "no-such>=2.28",', '    "nor-this",', "]"), None,
     ["VALID", "dependencies (2):", "  - no-such>=2.28", "  - nor-this", "warnings:",
      "  - not installed: no-such>=2.28", "  - not installed: nor-this"]),
    (block('dependencies = ["Foo_Bar>=2.28"]'), ["foo-bar>=2.30"],
     ["VALID", "dependencies (1):", "  - foo-bar>=2.30", "warnings:", "  - not installed: foo-bar>=2.30"]),
)
INVALID = (
    (block("this is not [[[ TOML"), None, "INVALID: line 2: the metadata is not TOML: "),
    (block('dependencies = "six"'), None, "INVALID: line 2: "),
    ("x = (", None, "INVALID: line 1: "),
    ("", ["not a requirement"], "INVALID: 'not a requirement' is not a requirement"),
)


@test
def exec_validates_one_by_one(ctx):
    with ctx.client() as client:
        def check(script, dependencies):
            return say(client, "validate_script", script=script, dependencies=dependencies)

        for script, dependencies, lines in VALIDATES:
            equal(check(script, dependencies).split("\n"), lines, script)
        for script, dependencies, words in INVALID:
            assert check(script, dependencies).startswith(words), (script, check(script, dependencies))


@test
def checks_take_what_runs_take(ctx):
    """Fences, an indent, line breaks that arrive as backslash and n; commands where imports are not limited."""
    forms = ("```python\nprint(6 * 7)\n```", "Here:\n```py\nprint(1)\n```\nDone.", "    x = 1\n    print(x)",
             "%matplotlib inline\nprint(1)", "import math\\nprint(math.pi)", "!echo a")
    with ctx.client() as client:
        for script in forms:
            assert say(client, "validate_script", script=script).startswith("VALID"), script
            assert "exit_code: 0" in say(client, "execute_python", script=script), script
            limited = script != "!echo a"
            for name, key in ("validate_code", "valid"), ("execute_code", "success"):
                answer = client.ask("tools/call", {"name": name, "arguments": {"code": script}})
                equal(answer["structuredContent"][key], limited, (name, script))
        assert "  - line 2: The module nonsuch_99 is not installed" in say(
            client, "validate_script", script="```\nimport nonsuch_99\n```")


@test(private=True)
def options_that_are_not_there_are_refused(ctx):
    for key in ("sandbox_backend = bwrap", "uv_path = /usr/bin/uv", "default_timeout = 0", "max_timeout = 0",
                "max_output_bytes = 0", "default_timeout = 400\nmax_timeout = 300"):
        status, said = check_config(ctx, SETS + "[exec-sandbox]\n" + key + "\n")
        assert status == 78 and re.match(r"FILE:\d+: ", said), (key, said)


# ---- python-sandbox ----

GOOD, BAD = {"success": True, "stderr": ""}, {"success": False}
NOT_ALLOWED = {"success": False, "error": "Code contains restricted operations", "stdout": ""}
SANDBOX = (
    # execute_code's code, its other arguments, and the parts of the answer
    ("2 + 2", {}, {"result": 4, "stdout": "", **GOOD}),
    ("print('Hello sandbox!')\nresult = 2 + 2", {"timeout": 10, "capture_output": True},
     {"result": 4, "stdout": "Hello sandbox!\n", **GOOD}),
    ("print('only')", {}, {"result": None, "stdout": "only\n", **GOOD}),
    ("import math\nresult = math.sqrt(16)", {"allowed_imports": ["math"]}, {"result": 4.0, **GOOD}),
    ("result = 42", {}, {"result": 42, **GOOD}), ("result = 'hello world'", {}, {"result": "hello world", **GOOD}),
    ("result = [1, 2, 3]", {}, {"result": [1, 2, 3], **GOOD}), ("result = {'k': 'v', 'n': 4}", {}, {"result": {"k": "v", "n": 4}, **GOOD}),
    ("result = True", {}, {"result": True, **GOOD}), ("result = 3.14159", {}, {"result": 3.14159, **GOOD}),
    ("result = (1, 2)", {}, {"result": [1, 2], **GOOD}), ("result = {3}", {}, {"result": [3], **GOOD}),
    ("result = b'text'", {}, {"result": "text", **GOOD}),
    ("import decimal\nresult = decimal.Decimal('1.5')", {}, {"result": "1.5", **GOOD}),
    ("import datetime\nresult = {'when': datetime.datetime(2026, 1, 2, 3)}", {}, {"result": {"when": "2026-01-02T03:00:00"}, **GOOD}),
    ("print('one')\nprint('two')\nresult = 'done'", {}, {"stdout": "one\ntwo\n", "result": "done", **GOOD}),
    ("", {}, {"result": None, **GOOD}), ("x = 1\n" * 20000, {}, {"variable_values": {"x": 1}, **GOOD}),
    ("output = 5\n_ = 6", {}, {"result": None, **GOOD}),
    ("1 + 1;", {}, {"result": 2, **GOOD}),
    ("math.pi", {}, {"error": In("name 'math' is not defined"), **BAD}),
    ("result = 2 +\nprint('x')", {}, {"error": In("line 1"), **BAD}),
    ("def f():\n    return 1 / 0\nf()", {}, {"error": "division by zero", "traceback": In("ZeroDivisionError"), **BAD}),
    ("unknown", {}, {"error": In("name 'unknown' is not defined"), **BAD}),
    ("import time\nwhile True: time.sleep(1)", {"timeout": 2, "allowed_imports": ["time"]},
     {"error": "Execution timeout", "timeout": 2, **BAD}),
    ("print('Hello from container!')", {"use_container": True, "memory_limit": "128m", "timeout": 10},
     {"stdout": "Hello from container!\n", "use_container": True, **GOOD}),
    ("print(1)", {"capture_output": False}, {"stdout": "", **GOOD}),
    # what its tests of escapes try
    ("().__class__.__base__.__subclasses__()", {}, NOT_ALLOWED),
    ("import os\nos.system('ls')", {}, NOT_ALLOWED), ("import os", {"allowed_imports": ["os"]}, NOT_ALLOWED),
    ("from subprocess import run", {}, NOT_ALLOWED),
    ("def f(): pass\nf.__globals__['__builtins__']", {}, NOT_ALLOWED),
    ("len([1, 2, 3])", {}, {"result": 3, **GOOD}),
    ("hasattr([], 'append')", {}, {"result": True, **GOOD}),
    ("str(getattr((), '__cla' + 'ss__'))", {}, {"result": "<class 'tuple'>", **GOOD}),
    ("open('/etc/shadow').read()", {}, {"error": In("No such file"), **BAD}),
    ("[c for c in getattr(object, '__sub' + 'classes__')() if c.__name__ == '_wrap_close'][0].__init__"
     ".__getattribute__('__glo' + 'bals__')['popen']('cat /etc/shadow 2>&1').read()", {}, {"result": In("No such file")}),
    # forms of a limit
    *(("1", {"memory_limit": form}, {"result": 1, **GOOD})
      for form in ("64m", "0.5g", "134217728", "128M", "1g", "512mb", "64MB", "1gb",
                   "256MiB", "33554432b", "0.25GiB")),
)


@test
def sandbox_one_by_one(ctx):
    with ctx.client() as client:
        for code, arguments, wanted in SANDBOX:
            fits(execute(client, code, **arguments), wanted, code)
    return "%d inputs" % len(SANDBOX)


@test
def sandbox_in_default_memory(ctx):
    """With modules that need much of it."""
    with ctx.client(timeout=120) as client:
        for module, code, wanted in (("numpy", "import numpy as np\nresult = int(np.arange(10).sum())", 45),
                                     ("pandas", "import pandas as pd\nresult = int(pd.Series([1, 2]).sum())", 3)):
            if not has_module(client, module):
                raise Skip("%s is not installed" % module, missing=True)
            got = execute(client, code, use_container=True, timeout=100)
            equal((got["success"], got["result"]), (True, wanted), got)


@test
def sandbox_analyses(ctx):
    with ctx.client() as client:
        for code, valid, errors, lines, complexity in (
                ("x = 1", True, [], 1, "low"),
                ("result = sum([1, 2])\nprint(result)", True, [], 2, "low"),
                ("import os\nos.system('rm -rf /')", False, ["Line 1: Import 'os' is not allowed"], 2, "low"),
                ("x = (", False, ["Line 1: SyntaxError: '(' was never closed"], 1, "low"),
                ("", True, [], 1, "low")):
            got = validate(client, code)
            for form in (got, got["validation"]):
                equal((form["valid"], form["errors"]), (valid, errors), code)
            equal((got["analysis"]["line_count"], got["analysis"]["estimated_complexity"]), (lines, complexity), code)


@test
def tools_that_are_not_there_are_an_error(ctx):
    with ctx.client() as client:
        for name in ("list_capabilities", "run_python_code", "run_script", "unknown_tool"):
            try:
                client.ask("tools/call", {"name": name, "arguments": {}})
            except RpcError as e:
                equal(e.code, -32602, name)
                assert "unknown tool; there are execute_python, " in str(e), e
            else:
                raise AssertionError(name)


EACH_SET = (
    # toolsets, the tools that are listed, a call, and what its text has
    ("exec-sandbox", "check_environment execute_python validate_script", "execute_python", {"script": "print(6 * 7)"}, "--- stdout ---\n42\n"),
    ("python-sandbox", "execute_code get_sandbox_info validate_code", "execute_code", {"code": "6 * 7"}, '"result":42'),
    ("run-python", "run_python_code", "run_python_code", {"python_code": "6 * 7"}, "<return_value>\n42\n</return_value>"),
)


def array_types(schema):
    """The parts of a schema that have several types, which not every client understands."""
    if isinstance(schema, list):
        return [found for part in schema for found in array_types(part)]
    if not isinstance(schema, dict):
        return []
    return [schema] * isinstance(schema.get("type"), list) + array_types(list(schema.values()))


@test(private=True)
def each_set_by_itself(ctx):
    """Over standard input and output, in the oldest revision and a newer one, and over HTTP."""
    for name, tools, tool, arguments, words in EACH_SET:
        with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
            file.write("[mcp]\ntoolsets = %s\n" % name)
            file.flush()
            for revision in (LEGACY[0], LEGACY[-1]):
                with Client.spawn([os.path.join(ctx.options.build, "mcp-pythond"), "--config", file.name, "--stdio"], revision,
                                  stderr=subprocess.DEVNULL) as client:
                    listed = client.ask("tools/list")["tools"]
                    equal(sorted(one["name"] for one in listed), tools.split(), name)
                    equal([found for one in listed for found in array_types(one["inputSchema"])], [], name)
                    text = client.ask("tools/call", {"name": tool, "arguments": arguments})["content"][0]["text"]
                    assert words in text.replace(": ", ":"), text
        with http_private(ctx, "[mcp]\ntoolsets = %s\n" % name) as (service, place), Session(place) as session:
            result = session.ask("tools/call", {"name": tool, "arguments": arguments})
            assert words in result["content"][0]["text"].replace(": ", ":"), result


@test(private=True)
def variables_of_its_containers_are_no_error(ctx):
    env = {"SANDBOX_ENABLE_CONTAINER_MODE": "true", "SANDBOX_CONTAINER_IMAGE": "python-sandbox:latest"}
    with ctx.private(SETS, env=env) as s, ctx.client(path=s.socket) as client:
        fits(execute(client, "6 * 7"), {"result": 42, **GOOD}, "with its variables")


# ---- run-python ----

PYTHON_CODE = (
    # python_code, global variables, output, return value
    ("a = 1\na + 1", {}, [], 2), ("print(123)", {}, ["123"], None), ("print('hello', 123)", {}, ["hello 123"], None),
    ("x = [1, 2]\nx", {}, [], [1, 2]), ("'text'", {}, [], "text"), ("None", {}, [], None), ("x = 3\nx;", {}, [], None),
    ("a + b", {"a": 4, "b": 5}, [], 9), ("print(v['k'])\nv", {"v": {"k": [1]}}, ["[1]"], {"k": [1]}),
    ("print('</output></return_value>')", {}, ["</output></return_value>"], None),
    ("import sys\nprint('e', file=sys.stderr)\nprint('o')", {}, ["o", "e"], None),
    ("import asyncio\nawait asyncio.sleep(0)\n3", {}, [], 3),
    ("async def f(): return 3\nf()", {}, [], 3), ("async def f(): return 3\nawait f()", {}, [], 3),
    ("import asyncio\nawait asyncio.gather(*[asyncio.sleep(0, i) for i in range(3)])", {}, [], [0, 1, 2]),
    ("async def g():\n    yield 1\nasync for i in g(): print(i)", {}, ["1"], None),
    ("import contextlib\n@contextlib.asynccontextmanager\nasync def c():\n    yield 5\nasync with c() as v: print(v)\nv", {}, ["5"], 5),
    ("from dataclasses import dataclass\n@dataclass\nclass F:\n    a: int\n    b: str\nF(1, 'x')", {}, [], {"a": 1, "b": "x"}),
    ("class Model:\n    def __init__(self, email): self.email = email\n    def model_dump(self): return vars(self)\nModel('a@b.c')", {}, [],
     {"email": "a@b.c"}),
    ("import datetime as d, decimal, pathlib, uuid\n[d.date(2026, 1, 2), decimal.Decimal('1.5'), uuid.UUID(int=1), {3}, b'x', pathlib.Path('/p')]",
     {}, [], ["2026-01-02", "1.5", "00000000-0000-0000-0000-000000000001", [3], "x", "/p"]),
    ("import sys\nsys.version_info[:2]", {}, [], [*under_test.version[:2]]),
    ("import asyncio\nasync def f(): return 4\nasyncio.run(f())", {}, [], 4),
)
WITH_NUMPY = (
    ("import numpy\nnumpy.array([1, 2, 3])", {}, [], [1, 2, 3]),
    ("import numpy as np\n{'a': np.float64(1.5), 'b': np.arange(2), 'c': np.int64(7)}", {}, [], {"a": 1.5, "b": [0, 1], "c": 7}),
    ("import numpy\nnumpy.eye(2)", {}, [], [[1, 0], [0, 1]]),
)
RUN_ERRORS = (
    # python_code and what is in the error
    ("print(unknown)", "NameError: name 'unknown' is not defined"), ("1 / 0", "ZeroDivisionError: division by zero"),
    ("def f():\n    raise ValueError('deep')\nf()", 'File "main.py", line 2, in f'), ("x = (", "SyntaxError"),
    ("import no_such", "ModuleNotFoundError: No module named 'no_such'"),
    ("import urllib.request as u\nu.urlopen('http://192.0.2.1/', timeout=9)", "URLError"),
    ("import sys\nsys.exit(3)", "3"),
)


@test(private=True)
def run_python_one_by_one(ctx):
    with ctx.private(RUN_PYTHON + "return_mode = json\n") as service, ctx.client(path=service.socket) as client:
        rows = PYTHON_CODE
        if json.loads(run_python(client, "import numpy"))["status"] == "success":
            rows += WITH_NUMPY
        for code, variables, output, value in rows:
            equal(json.loads(run_python(client, code, **variables)),
                  {"status": "success", "output": output, "return_value": value}, code)
        for code, words in RUN_ERRORS:
            got = json.loads(run_python(client, code))
            assert got["status"] == "run-error" and words in got["error"], (code, got)
            assert "mcp-python" not in got["error"], got
        ids = [client.request("tools/call", {"name": "run_python_code", "arguments": {
            "python_code": "print(%d)\n%d" % (i, i)}}) for i in range(10)]
        for i, id in enumerate(ids):
            equal(json.loads(client.wait(id)["content"][0]["text"]),
                  {"status": "success", "output": [str(i)], "return_value": i})
    done = len(rows) + len(RUN_ERRORS)
    return rows_done(done, PYTHON_CODE + WITH_NUMPY + RUN_ERRORS, set() if WITH_NUMPY[0] in rows else {"numpy"})


@test(private=True)
def run_python_takes_calls_without_a_handshake(ctx):
    """The server that it replaces has a mode in which each request stands alone."""
    def ask(where, method, params=None, *headers, **members):
        message = dict(jsonrpc="2.0", method=method, **members)
        with Connection(where) as connection:
            return connection.ask(headers=(JSON, ("Accept", BOTH)) + headers,
                                  body=encode(message if params is None else dict(message, params=params)))
    code = {"name": "run_python_code", "arguments": {"python_code": "6 * 7"}}

    with http_private(ctx, "\n" + RUN_PYTHON) as (_, where):
        answer = ask(where, "tools/call", code, id=1)
        assert "<return_value>\n42\n" in answer.message["result"]["content"][0]["text"], answer
        assert answer.header("Mcp-Session-Id") is None, answer
        assert ask(where, "tools/list", id=1).message["result"]["tools"]
        equal(ask(where, "notifications/initialized").status, 202)
        equal(ask(where, "tools/call", code, ("Mcp-Session-Id", "x" * 26), id=1).status, 404, "an unknown session")
        with Session(where, "2025-06-18") as client:
            assert client.id and "42" in client.ask("tools/call", code)["content"][0]["text"]
    with http_private(ctx) as (_, where):
        equal(ask(where, "tools/call", {"name": "run_script", "arguments": {"script": "1"}}, id=1).status, 400, "the other sets need a session")


# ---- each line of doc/moving.md ----

class Moved:
    """Clients of the three sets, and short ways to call their tools."""

    def __init__(self, ctx, sandbox, runs):
        self.ctx, self.sandbox, self.runs = ctx, sandbox, runs
        self.keys = {}

    def text(self, script, **arguments):
        return say(self.sandbox, script=script, **arguments)

    def parts(self, script, **arguments):
        return parts(self.text(script, **arguments))

    def code(self, code, **arguments):
        return execute(self.sandbox, code, **arguments)

    def valid(self, code):
        return validate(self.sandbox, code)

    def run(self, code, **variables):
        return run_python(self.runs, code, **variables)

    def info(self):
        return call(self.sandbox, "get_sandbox_info")["structuredContent"]

    def accepts(self, section, *lines):
        """Each line is a key of the section, as a configuration with all of them shows."""
        self.keys.setdefault(section, []).extend(lines)

    def refuses(self, section, line):
        status, said = check_config(self.ctx, "[%s]\n%s\n" % (section, line))
        assert status == 78 and re.match(r"FILE:\d+: ", said), (line, said)


def stopped(m):
    got = m.parts("x = bytearray(10 << 30)\nwhile True: x += x")
    assert {"memory_limit", "stderr"} & set(got), got
    got = m.parts("while True: pass", timeout_seconds=1)
    assert got["exit_code"] == "130" and "timeout" in got, got
    got = m.parts("import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass", timeout_seconds=1)
    equal(got["exit_code"], "137", got)


def left_out(m):
    text = m.text("print('a' + 'x' * 300000 + 'z')")
    assert re.search(r"\n\[\.\.\. \d+ bytes not shown \.\.\.\]\n", text), text[:300]
    assert "truncated" not in text and "a" + "x" * 99 in text and "x" * 99 + "z" in text, text[-300:]


def values_of_code(m):
    got = m.code("x = [1]\ny = object()\nresult = 3\nx")
    assert got["result"] == 3 and set(got["variables"]) == {"x", "y", "result"}, got
    equal(got["variable_values"]["x"], [1])
    assert got["variable_values"]["y"].startswith("<object object"), got


def long_result(m):
    result = call(m.sandbox, "execute_code", code="result = ['%06d' % n for n in range(9000)]")
    shown = json.loads(result["content"][0]["text"])["result"]
    assert isinstance(shown, str) and "000000" in shown and "008999" in shown and "004500" not in shown, shown[:200]
    equal(len(result["structuredContent"]["result"]), 9000)


def fields(m):
    got, info = m.valid("x = ("), m.info()
    equal((got["valid"], got["errors"]), (got["validation"]["valid"], got["validation"]["errors"]))
    assert not {"warnings", "security_issues", "error", "line", "offset", "text"} & (set(got) | set(got["validation"])), got
    assert "line 1" in got["errors"][0] or "1" in got["errors"][0], got
    assert not {"restricted_python", "security_capabilities", "safe_builtins"} & set(json.dumps(info).split('"')), info
    assert "basic" in json.dumps(info["allowed_imports"]) and "safe_stdlib" not in json.dumps(info), info
    equal(info["container_mode"]["enabled"], True)


def removes_imports(m):
    for allowed in ["math"], ["math", "subprocess", "ctypes"]:
        got = m.code("import subprocess", allowed_imports=allowed)
        equal(got["success"], False, got)
    equal(m.code("import json", allowed_imports=["math"])["success"], False)
    equal(m.code("import json", allowed_imports=[])["success"], True)


def errors_and_refusals(m):
    got = call(m.sandbox, "execute_code", code="1 / 0")
    assert got["structuredContent"]["success"] is False and not got["isError"], got
    for wrong in {"code": 1}, {"code": "1", "timeout": "soon"}:
        got = m.sandbox.ask("tools/call", {"name": "execute_code", "arguments": wrong})
        assert got["isError"], got


def memory_is_in_force(m):
    for container in False, True:
        got = m.code("x = bytearray(400 << 20)", memory_limit="64m", use_container=container)
        equal(got["success"], False, got)


def dependency_missing(m):
    with m.ctx.private(RUN_PYTHON + "dependencies = not-a-package\n") as service, m.ctx.client(path=service.socket) as client:
        assert "<status>install-error</status>" in run_python(client, "1")
    assert m.run(block('requires-python = ">=3.99"') + "1").startswith("<status>install-error</status>\n<error>\n"), "a Python"
    begins = "<status>install-error</status>\n<error>\napproval_pending: "
    for policy, want in (("preset = strict", begins), ("run_script = deny", "")):
        with m.ctx.private(RUN_PYTHON + "[policy]\n%s\n" % policy) as service, m.ctx.client(path=service.socket) as client:
            text = run_python(client, "1", is_error=not want)
            assert text.startswith(want) and ("install-error" in text) == bool(want), (policy, text)
            assert not want or "mcp-python approve a-" in text, text
    wrong = call(m.runs, "run_python_code", python_code=1)
    assert wrong["isError"] and "install-error" not in repr(wrong), wrong


def return_modes(m):
    m.accepts("run-python", "return_mode = xml")
    m.refuses("run-python", "return_mode = yaml")


def values_of_python(m):
    for code, value in (("float('nan')", "nan"), ("import datetime\ndatetime.timedelta(seconds=90)", "P0DT90S"), ("1j", "1j"),
                        ("{(1, 2): 3}", "(1, 2)"), ("(x for x in ())", "generator object")):
        assert value in m.run(code), (code, m.run(code))
    tool, = tools_of(m.runs).values()
    assert "$schema" not in tool["inputSchema"], tool


def only_in_python(m):
    text = m.run("import threading, subprocess\nt = threading.Thread(target=print, args=('t',))\nt.start()\nt.join()\n"
                 "open('f', 'w').write('x')\nsubprocess.run(['true']).returncode")
    assert "<return_value>\n0\n" in text, text
    assert "FileNotFoundError" in m.run("open('f')"), "files are not kept"


# The beginning of an item of the page, and what tries it: a function, or the names of tests that do.
LINES = (
    # From mcp-python-exec-sandbox
    ("| `--default-timeout 30`", lambda m: m.accepts("exec-sandbox", "default_timeout = 30")),
    ("| `--max-timeout 300`", lambda m: m.accepts("exec-sandbox", "max_timeout = 300")),
    ("| `--max-output-bytes 102400`", lambda m: m.accepts("exec-sandbox", "max_output_bytes = 100K")),
    ("| `--python-version 3.11`", lambda m: m.accepts("exec-sandbox", "python_version = 3.11")),
    ("| `--sandbox-backend`, `--uv-path`, `--no-warm-cache`", lambda m: [
        m.refuses("exec-sandbox", key) for key in ("sandbox_backend = x", "uv_path = x", "warm_cache = no")]),
    ("- The text has the same parts (", lambda m: fits(m.parts("import sys\nprint(1)\nsys.exit(4)"), {"stdout": "1\n", "exit_code": "4"}, "")),
    ("- A `timeout_seconds` below or above", lambda m: [
        fits(m.parts("print(1)", timeout_seconds=n), {"stdout": "1\n", "exit_code": "0"}, n) for n in (0, -5, 10 ** 6)]),
    ("- Missing dependencies, from the argument", lambda m: fits(
        m.parts("print(1)", dependencies=["not-a-package"]), {"stdout": NO, "stderr": In("not-a-package"), "exit_code": "1"}, "")),
    ("- If output is too long, its middle", left_out),
    ("- If the service stopped a script", stopped),
    ("- `validate_script` also finds syntax errors", "exec_validates_one_by_one checks_take_what_runs_take"),
    ("- Scripts have no network unless", lambda m: fits(
        m.parts("import urllib.request as u\nu.urlopen('http://192.0.2.1/', timeout=9)"), {"stderr": In("Error"), "exit_code": "1"}, "")),
    # From python_sandbox_server
    ("| `SANDBOX_TIMEOUT`, `SANDBOX_DEFAULT_TIMEOUT`", lambda m: m.accepts("python-sandbox", "default_timeout = 30")),
    ("| `SANDBOX_MAX_TIMEOUT`", lambda m: m.accepts("python-sandbox", "max_timeout = 300")),
    ("| `SANDBOX_MAX_OUTPUT_SIZE`", lambda m: m.accepts("python-sandbox", "max_output_bytes = 1M")),
    ("| `SANDBOX_DEFAULT_MEMORY_LIMIT`", lambda m: m.accepts("python-sandbox", "memory_limit = 128M")),
    ("| `SANDBOX_ENABLE_DATA_SCIENCE`", lambda m: m.accepts("python-sandbox", "data_science = no")),
    ("| `SANDBOX_ENABLE_NETWORK`", lambda m: m.accepts("python-sandbox", "network = no")),
    ("| `SANDBOX_ENABLE_FILESYSTEM`", lambda m: m.accepts("python-sandbox", "filesystem = no")),
    ("| `SANDBOX_ALLOWED_IMPORTS`", lambda m: m.accepts("python-sandbox", "allowed_imports = math json")),
    ("- Code with forbidden imports", lambda m: fits(m.code("import subprocess"), {"success": False, "validation_errors": In("Line 1")}, "")),
    ("- The whole language is available", lambda m: fits(
        m.code("class A: v = [1]\nA.v[0] += 1\nasync def f(): return A.v\nresult = eval('1') + (await f())[0]"), {"result": 3}, "")),
    ("- `variables` lists the names", values_of_code),
    ("- `result` is the value of the variable", lambda m: [
        fits(m.code(code), {"result": result, "stdout": ""}, code) for code, result in (
            ("result = 1\n2", 1), ("2", 2), ("output = 5\n_ = 6", None), ("{1}", [1]), ("result = object", "<class 'object'>"))]),
    ("- If the JSON of `result` is longer", long_result),
    ("- The answers of `validate_code`", fields),
    ("- Empty code succeeds.", lambda m: [fits(m.code(code), {"success": True}, "") for code in ("", "x = 1\n" * 20000)]),
    ("- Code has to import modules", lambda m: [fits(m.code("math.pi"), {
        "success": False, "error": In("math"), "security_event": NO, "security_warnings": NO, "return_code": NO}, "")]),
    ("- In place of `list_capabilities`", "tools_that_are_not_there_are_an_error"),
    ("- All code runs in the jail", lambda m: [
        fits(m.code("1", use_container=c), {"use_container": True}, "") for c in (False, True)]),
    ("- The argument `allowed_imports` can only remove", removes_imports),
    ("- The argument `memory_limit` is in force", memory_is_in_force),
    ("- If code fails, `success` is false", errors_and_refusals),
    ("- `SANDBOX_ENABLE_CONTAINER_MODE`", "variables_of_its_containers_are_no_error"),
    ("- `estimated_complexity` counts", "sandbox_analyses"),
    # From mcp-run-python
    ("| `--deps numpy,rich`", lambda m: m.accepts("run-python", "dependencies = numpy rich")),
    ("| `return_mode`", return_modes),
    ("| `stdio`, `streamable-http`, `--port`", "each_set_by_itself"),
    ("| `streamable-http-stateless`", "run_python_takes_calls_without_a_handshake"),
    ("| `--disable-networking`", lambda m: [m.refuses("run-python", "disable_networking = yes")]),
    ("- The text has the same parts: `<status>`", lambda m: [
        equal(m.run("print(1)\n2"), "<status>success</status>\n<output>\n1\n</output>\n<return_value>\n2\n</return_value>")]),
    ("- `output` has the lines of stdout first", lambda m: [
        equal(m.run("import sys\nprint('e', file=sys.stderr)\nprint('o')"), "<status>success</status>\n<output>\no\ne\n</output>")]),
    ("- `global_variables` are JSON values", lambda m: [
        equal("5" in m.run("a + 1", a=4), True), m.run("1", is_error=True, **{"__name": 1})]),
    ("- After `logging/setLevel`", "run_python_logs_when_it_is_asked_to"),
    ("- If the last value is a coroutine", lambda m: [
        equal("\n3\n" in m.run("async def f(): return 3\nf()"), True), fits(m.code("async def f(): return 3\nf()"), {"result": 3}, "")]),
    ("- Code runs in the Python of the profile", only_in_python),
    ("- If a dependency is missing", dependency_missing),
    ("- Other values of `return_value`", values_of_python),
    ("- There is no mode `example`", lambda m: [equal(sorted(tools_of(m.runs)), ["run_python_code"])]),
    ("- The limits of `[limits]` apply.", lambda m: [equal("run-error" in m.run("bytearray(10 << 30)"), True)]),
    ("- If a return value is longer", lambda m: [
        equal("000000" in t and "008999" in t and "004500" not in t, True) for t in [m.run("['%06d' % n for n in range(9000)]")]]),
)


@test(private=True)
def each_line_of_the_page_holds(ctx):
    """doc/moving.md: each item about a server that is replaced is tried here, and there are no others."""
    with open(os.path.join(os.path.dirname(__file__), "..", "..", "doc", "moving.md"), encoding="utf-8") as f:
        page = f.read()
    items = [line for line in page[page.index("## From "):].splitlines()
             if line.startswith("- ") or line.startswith("| `")]
    begins = [begin for begin, _ in LINES]
    equal([next((b for b in begins if item.startswith(b)), item) for item in items], begins)
    failed = []
    with ctx.private(SETS) as s, ctx.client(path=s.socket) as sandbox, \
            ctx.private(RUN_PYTHON) as r, ctx.client(path=r.socket) as runs:
        moved = Moved(ctx, sandbox, runs)
        for begin, check in LINES:
            if isinstance(check, str):
                assert all(hasattr(toolsets, name) or name in globals() for name in check.split()), begin
                continue
            try:
                check(moved)
            except Exception as e:
                failed.append("%s: %r" % (begin, e))
        status, said = check_config(ctx, "".join("[%s]\n%s\n" % (section, "\n".join(lines))
                                                 for section, lines in moved.keys.items()))
    equal((failed, status), ([], 0), said)
    return "%d lines" % len(LINES)


if __name__ == "__main__":
    main(__doc__, SETS)
