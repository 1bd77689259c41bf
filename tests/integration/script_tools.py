#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Scripts call the tools of other MCP servers: what they get, what they may, and that no server and no
script harms another."""

import contextlib
import json
import os
import re
import shutil
import socket
import tempfile
import time

from admin import Admin, command
from audit_log import Log
from forged import FRAMES
from harness import FEW_MODULES, SOMEBODY, TOP, equal, main, test
from mcpclient import Client
from package_store import new_store
from person import Person
from supervisor import read_text
from terminal import Terminal
from tool_scripts import ERRORS, run, tools_process
from waits import changes, until


OPERATOR = "[admin]\nsocket = %%s\noperators = uid:%d\n" % os.getuid()
SERVER = os.path.join(TOP, "tests", "integration", "tool_server.py")


class Servers:
    """A folder that the servers' user can read, with the program of one."""

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="mcp-tools-", dir="/tmp")
        os.chmod(self.path, 0o755)
        self.program = os.path.join(self.path, "server.py")
        shutil.copy(SERVER, self.program)
        os.chmod(self.program, 0o755)
        self.written = os.path.join(self.path, "written")
        with open(self.written, "w", encoding="utf-8"):
            pass
        os.chmod(self.written, 0o666)
        return self

    def __exit__(self, *exc):
        shutil.rmtree(self.path)

    def config(self, *kinds, more=""):
        """Each kind a server of that name."""
        return "".join("[tools %s]\ncommand = /usr/bin/python3 %s %s %s\n" % (
            kind, self.program, kind, self.written) for kind in kinds) + more

    def wait_line(self, line):
        with changes(self.written) as change:
            until(lambda: "the line %r in %r" % (line, self.lines()), lambda: line in self.lines(), wait=change)

    def lines(self):
        return (read_text(self.written) or "").splitlines()


@contextlib.contextmanager
def service(ctx, *kinds, more="", log=None):
    with Servers() as servers:
        config = servers.config(*kinds, more=more)
        with ctx.private(log.config(config) if log else config) as s:
            s.servers = servers
            yield s


def of(log, event):
    return [record for record in log.records() if record["event"] == event]


def wait_words(client, server="legacy"):
    """Until the server has been started again."""
    o = run(client, ERRORS + """
import time
while error(lambda: print(tools.%s.words())) != "no error":
    time.sleep(0.1)
""" % server)
    equal(o.stdout, "plain words\n")


@test(private=True)
def without_a_server_there_is_no_module(ctx):
    with ctx.private() as s, ctx.client(path=s.socket) as c:
        o = run(c, "import tools", "error")
        equal(o.error["type"], "ModuleNotFoundError")
        equal(tools_process(s), [])


@test(private=True)
def tools_are_called_in_both_eras(ctx):
    script = """
import tools
for server in tools.legacy, tools.modern, tools.silent, tools.slow:
    print(server.echo(value="x", other=[1, None]), server.add(a=2), server.words())
    print(server.picture(), server.mixed())
    print(server.get_thing_of(), server["get-thing.of"](), server.class_())
    print(server.lie())
"""
    with service(ctx, "legacy", "modern", "silent", "slow") as s, ctx.client(path=s.socket) as c:
        o = run(c, script)
        lines = ["{'other': [1, None], 'value': 'x'} {'sum': 3} plain words",
                 r"b'\x89PNG\r\n\x1a\n' ['one', b'\x89PNG\r\n\x1a\n', 'two', "
                 "{'type': 'resource_link', 'uri': 'x://2', 'name': 'three'}]",
                 "called get-thing.of called get-thing.of called class", "the truth"]
        equal(o.stdout.splitlines(), lines * 4)
        for name, revision in (("legacy", "2025-11-25"), ("modern", "2026-07-28"), ("slow", "2026-07-28"),
                               ("silent", "2025-11-25")):
            assert re.search(r'tools-server name=%s state=serving revision="?%s"? tools=20 left_out=3' % (
                name, revision), s.log()), s.log()


@test(private=True)
def calls_are_made_beside_each_other(ctx):
    script = """
import asyncio, threading, tools
async def main():
    return await asyncio.gather(*(tools.legacy.slow.aio(n=4) for _ in range(4)))
print(await main())
found = []
threads = [threading.Thread(target=lambda: found.append(tools.legacy.slow(n=8))) for _ in range(8)]
for t in threads: t.start()
for t in threads: t.join()
print(found)
print(len(await asyncio.gather(*(tools.legacy.add.aio(a=i) for i in range(50)))))
"""
    with service(ctx, "legacy") as s, ctx.client(path=s.socket) as c:
        o = run(c, script)
        equal(o.stdout, "%s\n%s\n50\n" % (["together"] * 4, ["together"] * 8))


@test(private=True)
def cells_call_tools(ctx):
    with service(ctx, "legacy") as s, ctx.client(path=s.socket) as c:
        def cell(code, **more):
            return c.ask("tools/call", {"name": "run_repl", "arguments": dict(code=code, **more)})[
                "structuredContent"]
        first = cell("import tools, asyncio\nadd = tools.legacy.add\nadd(a=1)")
        equal((first["status"], first["result"]["json"]), ("ok", {"sum": 2}))
        second = cell("[add(a=5), await add.aio(a=6), await asyncio.gather(*(add.aio(a=i) for i in "
                      "range(20)))][:2]", session=first["session"])
        equal((second["status"], second["result"]["json"]), ("ok", [{"sum": 6}, {"sum": 7}]))


@test(private=True)
def what_goes_wrong_is_one_exception(ctx):
    script = ERRORS + """
t = tools.legacy
print(error(t.fail)); print(error(t.refuse)); print(error(t.strange))
print(error(lambda: t.large(bytes=70000))); print(len(t.large(bytes=60000)))
for n in range(8):
    print(error(lambda: t.odd(n=n)))
print(error(t.hang))
print(error(t.die))
try:
    t.nothing
except AttributeError as e:
    print(str(e)[:40])
"""
    with service(ctx, "legacy", more="[tool-calls]\nseconds = 2\nresult_bytes = 64K\n") as s, \
            ctx.client(path=s.socket) as c:
        o = run(c, script)
        want = ["legacy.fail: it cannot be done",
                r"legacy.refuse: the server legacy answers with an error: no such \?\[1mthing",
                "legacy.strange: the server's answer is no result of a tool",
                r"legacy.large: the result has 70\d\d\d bytes, and \[tool-calls\] result_bytes is 65536",
                "60000",
                "no error", *3 * ["legacy.odd: the server's answer cannot be read: .*"],
                *3 * ["no error"], "no error|legacy.odd: the server's answer cannot be read: .*",
                "legacy.hang: the server legacy has not answered within 2 seconds; .*",
                r"legacy.die: the server legacy ended in the middle of the call, .*: it has ended "
                r"\(exit code 3\), and said: it was told to die",
                "the server legacy has no tool nothing"]
        for got, pattern in zip(o.stdout.splitlines(), want, strict=True):
            assert re.match(pattern, got), (got, pattern)
        wait_words(c)


@test(private=True)
def a_server_that_floods_is_ended(ctx):
    with service(ctx, "legacy", "modern") as s, ctx.client(path=s.socket) as c:
        o = run(c, ERRORS + "print(error(tools.legacy.flood)); print(tools.modern.words())")
        equal(o.stdout, "legacy.flood: the server legacy ended in the middle of the call, which may have been "
              "done or not: it wrote a line of more than 16 MiB, and was ended\nplain words\n")


@test(private=True)
def values_are_bounded(ctx):
    """What is parsed takes up to forty times the memory of its text, and the time of everybody."""
    script = ERRORS + """
m = tools.modern
print(len(m.large(values=190000)["list"])); print(error(lambda: m.large(values=200001)))
print(len(m.echo(more=[0] * 19000)["more"]))
deep = []
for _ in range(64): deep = [deep]
for more in [{}] * 20001, deep: print(error(lambda: m.echo(more=more)))
print(error(lambda: m.write(line="x", more=[0] * 5000)))
"""
    with service(ctx, "modern", more="[tool-calls]\nresult_bytes = 1M\n") as s, \
            ctx.client(path=s.socket) as c:
        o = run(c, script)
        equal(o.stdout.splitlines(), [
            "190000", "modern.large: the server modern has not answered the call, which may have been done or "
            "not: its answer has too many values, or is nested too deeply", "19000",
            *2 * ["modern.echo: the arguments have more than 20000 values, or are nested more than 64 deep"],
            "modern.write: the call has to be approved, and its arguments have more than 4096 values"])
        wait_words(c, "modern")


@test(private=True)
def a_start_that_fails_harms_no_other_server(ctx):
    with service(ctx, "garbled", "legacy") as s, ctx.client(path=s.socket) as c:
        s.servers.wait_line("garbled")
        wait_words(c, "garbled")
        log = s.log()
        assert "its answer cannot be read as JSON" in log, log
        equal(len(re.findall("name=\"?legacy\"? state=serving", log)), 1, "starts in " + log)


@test(private=True)
def a_modern_server_that_ended_twice_is_asked_in_its_era_again(ctx):
    """Its first end looks like that of one which does not know server/discover."""
    with service(ctx, "fragile") as s, ctx.client(path=s.socket) as c:
        wait_words(c, "fragile")
        assert re.search(r'name=fragile state=serving revision="?2026-07-28"?', s.log()), s.log()


@test(private=True)
def a_list_that_changes_is_read_again(ctx):
    script = """
import time, tools
if "late" not in dir(tools.legacy):
    tools.legacy.grow()
print("late" in dir(tools.legacy))
"""
    with service(ctx, "legacy") as s, ctx.client(path=s.socket) as c:
        equal(run(c, script).stdout, "False\n")
        s.wait_logged("tools=21")
        equal(run(c, "import tools\nprint(tools.legacy.late())").stdout, "called late\n")


@test(private=True)
def what_there_is_can_be_found(ctx):
    script = """
import inspect, tools
print(tools.servers(), dir(tools))
print([one["name"] for one in tools.search("add numbers")][:1])
print(tools.search("picture", server="legacy", limit=1))
print(inspect.signature(tools.legacy.add), tools.legacy.add.__doc__.splitlines()[0])
print(tools.describe("legacy.add"))
"""
    with service(ctx, "legacy", "modern") as s, ctx.client(path=s.socket) as c:
        o = run(c, script)
        lines = o.stdout.splitlines()
        equal(lines[0], "['legacy', 'modern'] ['ToolError', 'describe', 'legacy', 'modern', 'search', "
              "'servers']")
        assert lines[1] in ("['legacy.add']", "['modern.add']"), lines[1]
        equal(lines[2], "[{'name': 'legacy.picture', 'description': 'Returns a picture.'}]")
        equal(lines[3], "(*, a: float, b: float = 1) -> dict Adds two numbers.")
        equal(lines[4], "tools.legacy.add(*, a: float, b: float = 1) -> dict")
        assert '"outputSchema' not in o.stdout and "outputSchema: {" in o.stdout, o.stdout


@test(private=True)
def a_servers_tools_are_a_stub(ctx):
    """It is Python; help() of a tool says the same."""
    script = """
import ast, tools
text = tools.describe("legacy")
names = [one.name for one in ast.parse(text).body if isinstance(one, ast.FunctionDef)]
print(names == sorted(set(dir(tools.legacy)) & set(names), key=names.index), len(names))
for line in text.splitlines():
    if "add" in line or "class_" in line:
        print(line)
exec(text)
help(tools.legacy.add)
"""
    with service(ctx, "legacy") as s, ctx.client(path=s.socket) as c:
        lines = run(c, script).stdout.splitlines()
        equal(lines[:4], ["True 20", "add_result = TypedDict('add_result', {'sum': float}, total=False)",
                          "def add(*, a: float, b: float = 1) -> add_result:",
                          "def class_() -> Any:"])
        assert any("add(*, a: float, b: float = 1) -> dict" in line for line in lines[4:]), lines


def search(client, query, want_error=False, **more):
    answer = client.ask("tools/call", {"name": "search_tools", "arguments": dict(query=query, **more)})
    equal(answer.get("isError", False), want_error, answer)
    return answer["content"][0]["text"] if want_error else answer["structuredContent"]["tools"]


@test(private=True)
def a_model_can_search_tools(ctx):
    more = "[tool-calls]\ndeny = legacy.picture\n"
    with service(ctx, "legacy", "modern", more=more) as s, ctx.client(path=s.socket) as c:
        # As a script finds them.
        queries = ["add numbers", "returns a sentence", "picture", "", "file line", "late"]
        o = run(c, "import tools\n[tools.search(query) for query in %r]" % queries)
        equal([search(c, query) for query in queries], o.result["json"])
        equal(search(c, "picture", detail="name"), [{"name": "modern.picture"}])
        equal(search(c, "picture", server="legacy"), [])
        equal(len(search(c, "", limit=100)), 39)
        one = search(c, "add numbers", server="modern", detail="full")[0]
        equal(one["usage"].splitlines()[0], "tools.modern.add(*, a: float, b: float = 1) -> dict")
        assert "outputSchema: {" in one["usage"], one
        equal(search(c, "x", True, server="other"), "there is no server other; there are: legacy, modern")
        for arguments, text in (({"limit": 0}, "limit must be"), ({"detail": "all"}, "detail must be"),
                                ({"other": 1}, "other is not an argument"), ({"server": 1}, "server must be")):
            assert text in search(c, "x", True, **arguments), arguments
        description = {tool["name"]: tool["description"] for tool in c.ask("tools/list")["tools"]}["run_script"]
        assert "calls tools of legacy (19), modern (20) (search_tools)." in description, description


CHECKED = """import tools, asyncio
from tools import legacy as old, mordern
t = tools
tools.legacy.add(a=1)
tools.legacy.add(b=1)
tools.legacy.add(a=1, c=2)
tools.legacy.ad(a=1)
tools.legasy.add(a=1)
async def main(): await old.get_thing_of.aio(x=1)
old["get-thing.of"]()
old["get_thing.of"]()
tools.legacy.add(1)
tools.legacy.add(**{})
tools.search("x"); tools.ToolError("x")
t.legacy.nothing()
def f(old): return old.nothing()
"""


@test(private=True)
def a_scripts_calls_are_checked(ctx):
    with service(ctx, "legacy", "modern") as s, ctx.client(path=s.socket) as c:
        run(c, "import tools\ntools.legacy.words, tools.modern.words")

        def errors(script):
            answer = c.ask("tools/call", {"name": "validate_script", "arguments": {"script": script}})
            return [(one["line"], one["message"]) for one in answer["structuredContent"]["errors"]]
        wrong = [(2, "there is no tool server mordern; did you mean modern?"),
                 (5, "legacy.add: the argument a is missing"),
                 (6, "legacy.add has no argument c"),
                 (7, "the server legacy has no tool ad; did you mean add?"),
                 (8, "there is no tool server legasy; did you mean legacy?"),
                 (12, "legacy.add: arguments are passed by name")]
        equal(errors(CHECKED), wrong)
        # The name is certain now.
        wrong[5:5] = [(9, "legacy.get_thing_of has no argument x"),
                      (11, "the server legacy has no tool get_thing.of; did you mean get-thing.of?")]
        equal(errors(CHECKED[:CHECKED.index("def f(")]), wrong)
        equal(errors("tools = 1\nimport tools\ntools.legacy.nothing()"), [])


@test(private=True)
def only_who_has_servers_can_search(ctx):
    more = "[tool-calls]\nservers = none\n"
    with service(ctx, "legacy", more=more) as s, ctx.client(path=s.socket) as c:
        listed = {tool["name"]: tool["description"] for tool in c.ask("tools/list")["tools"]}
        assert "search_tools" not in listed and "import tools" not in listed["run_script"], listed
        assert "no other server" in search(c, "x", True)


@test(private=True)
def policy_decides(ctx):
    more = "[tool-calls]\ndeny = legacy.die *.flood\nothers = deny\nread_only = allow\n"
    with Log(ctx) as log, service(ctx, "legacy", more=more, log=log) as s, \
            ctx.client(path=s.socket) as c:
        o = run(c, ERRORS + """
t = tools.legacy
print('die' in dir(t), 'flood' in dir(t), 'write' in dir(t), 'add' in dir(t))
call_tool = t.add.__globals__["call_tool"]
print(error(lambda: call_tool("legacy", "write", {"line": "x"})))
print(t.add(a=1))
""")
        equal(o.stdout, "False False False True\n"
              "legacy.write: policy does not allow this call ([tool-calls])\n{'sum': 2}\n")
        equal(s.servers.lines(), [])
        refused, = of(log, "tool-refused")
        equal((refused["server"], refused["tool"]), ("legacy", "write"))
        called, = of(log, "tool-called")
        ended, = of(log, "tool-ended")
        equal((called["tool"], ended["tool"], ended["status"]), ("add", "add", "ok"))
        equal(len(ended["result_sha256"]), 64)
        assert called["arguments_sha256"] == ended["arguments_sha256"]


def told(outcome):
    return [(call["server"], call["tool"], call["status"]) for call in outcome.structured["tool_calls"]]


@test(private=True)
def an_answer_tells_of_the_calls(ctx):
    more = "[tool-calls]\nothers = deny\nread_only = allow\ncalls = 1000\nallow = legacy.write\n"
    with service(ctx, "legacy", more=more) as s, ctx.client(path=s.socket) as c:
        assert "tool_calls" not in run(c, "import tools\ntools.legacy.add").structured
        o = run(c, ERRORS + """
tools.legacy.add(a=1)
error(tools.legacy.fail); error(tools.legacy.refuse)
call_tool = tools.legacy.add.__globals__["call_tool"]
error(lambda: call_tool("legacy", "no\\nsuch", {"x": "\u00e4" * 100}))
1 / 0
""", "error")
        equal(told(o), [("legacy", "add", "ok"), ("legacy", "fail", "error"), ("legacy", "refuse", "failed"),
                        ("legacy", "no\nsuch", "refused")])
        first, *_, last = o.structured["tool_calls"]
        equal((first["arguments"], last["arguments"]), ('{"a": 1}', '{"x": "' + 56 * "\u00e4" + "..."))
        assert first["bytes"] > 20 and (last["bytes"], last["ms"]) == (0, 0), (first, last)
        assert "tools called: legacy.add 1 ok, legacy.fail 1 error, legacy.refuse 1 failed, legacy.no\\x0asuch " \
            "1 refused\n" in o.text, o.text
        # Of many calls those are named that have changed something.
        o = run(c, "import tools\ntools.legacy.write(line='x')\nfor i in range(100): tools.legacy.add(a=i)")
        equal((told(o)[0], len(told(o)), o.structured["tool_calls_left_out"]),
              (("legacy", "write", "ok"), 32, 69))
        equal(o.structured["tool_calls"][-1]["arguments"], '{"a": 99}')
        o = run(c, "import tools\nfor i in range(40): tools.legacy.write(line=str(i))")
        equal([call["arguments"] for call in o.structured["tool_calls"]],
              ['{"line": "%d"}' % i for i in range(8, 40)])
        o = run(c, "import tools\ntools.legacy.hang()", "timeout", timeout_seconds=2)
        equal(told(o), [("legacy", "hang", "cancelled")])
        cell = c.ask("tools/call", {"name": "run_repl", "arguments": {
            "code": "import tools\ntools.legacy.fail()", "checkpoint": "one"}})["structuredContent"]
        equal([call["status"] for call in cell["tool_calls"]], ["error"])


@test(private=True)
def a_thousand_rows_stay_in_the_script(ctx):
    more = "[mcp]\ntoolsets = %s\n[tool-calls]\ncalls = 1100\n[python-sandbox]\nallowed_imports = tools\n"
    # A thousand in one set; the others differ in how they tell of calls.
    for sets, name, argument, rows, how in (("native", "run_script", "script", 1000, {"timeout_seconds": 300}),
                                            ("exec-sandbox", "execute_python", "code", 100, {}),
                                            ("python-sandbox", "execute_code", "code", 100, {})):
        script = "import tools\nprint(sum(len(tools.modern.large(bytes=1000 + n %% 7)) for n in range(%d)))" % rows
        total = str(sum(1000 + n % 7 for n in range(rows)))
        with service(ctx, "modern", more=more % sets) as s, ctx.client(path=s.socket) as c:
            answer = c.ask("tools/call", {"name": name, "arguments": {argument: script, **how}}, ctx.seconds(60))
            said = json.dumps(answer)
            assert total in said and "xxxx" not in said and len(said) < 12000, (name, said)
            assert "tool_calls" in said, (name, said)
            if name == "execute_python":
                assert "--- tool_calls ---\ntools called: modern.large 32 ok, and 68 more\n" in \
                    answer["structuredContent"]["result"], answer
            else:
                equal(answer["structuredContent"]["tool_calls_left_out"], rows - 32, name)
                equal({call["tool"] for call in answer["structuredContent"]["tool_calls"]}, {"large"}, name)


@test(private=True)
def operators_see_servers_and_calls(ctx):
    with Servers() as servers:
        os.chmod(servers.path, 0o777)
        admin = servers.path + "/admin"
        more = OPERATOR % admin + "[tool-calls]\nothers = deny\nread_only = allow\n"
        with ctx.private(servers.config("legacy", "broken", more=more)) as s, \
                ctx.client(path=s.socket) as c:
            s.wait_logged("tools-server name=broken state=down")
            run(c, ERRORS + """
for i in range(3): tools.legacy.add(a=i)
call_tool = tools.legacy.add.__globals__["call_tool"]
for i in range(20): error(lambda: call_tool("legacy", "tool%d" % i, {}))
""")
            text = command(ctx, "metrics", "--admin-socket", admin)
            samples = set(line for line in text.splitlines() if line.startswith("mcp_python_tool_call"))
            for line in ('s_total{server="legacy",tool="add",status="ok"} 3',
                         's_total{server="legacy",tool="other",status="refused"} 20'):
                assert "mcp_python_tool_call" + line in samples, samples
            equal(len(samples), 6)
            # While it is started again, it has still the trouble that it ended with.
            seen = command(ctx, "status", "--json", "--admin-socket", admin)
            legacy, broken = json.loads(seen)["tool_servers"]
            equal([legacy[key] for key in ("server", "state", "revision", "tools", "left_out")],
                  ["legacy", "serving", "2025-11-25", 20, 3])
            assert "it is broken" in broken["trouble"], seen
            text = command(ctx, "status", "--admin-socket", admin)
            assert "\nbroken: " in text, text
            assert re.search(r"\nlegacy +serving +2025-11-25 +20 +3\n", text), text


@test(private=True)
def operators_call_tools(ctx):
    with Servers() as servers, Log(ctx) as log:
        os.chmod(servers.path, 0o777)
        admin = servers.path + "/admin"
        config = servers.config("legacy", more=OPERATOR % admin + "[tool-calls]\nothers = deny\n")
        with ctx.private(log.config(config)) as s, ctx.client(path=s.socket) as c:
            def tools(*words, want=0):
                return command(ctx, "tools", *words, "--admin-socket", admin, want=want)
            run(c, "import tools\ntools.legacy.words")
            listed = tools().splitlines()
            equal((len(listed), listed[1]), (20, "legacy.add  Adds two numbers."))
            assert "legacy.write (may change things)  Writes a line to a file." in listed, listed
            equal(json.loads(tools("list", "--json"))[1]["tool"], "add")
            assert "inputSchema" in json.loads(tools("describe", "legacy.add", "--json")), "a schema"
            equal(json.loads(tools("call", "legacy.add", "a=2", "b=3", "--json"))["structuredContent"], {"sum": 5})
            tools("call", "legacy.write", "line=an operator's")
            equal(servers.lines(), ["an operator's"])
            equal(tools("call", "legacy.fail", want=1), "> it cannot be done\n")
            for wrong in (["call", "legacy.nothing"], ["call", "other.add"], ["describe", "legacy.nothing"]):
                tools(*wrong, want=77)
            for wrong in (["call", "legacy"], ["call", "legacy.add", "x"], ["other"]):
                tools(*wrong, want=64)
            # One who does not wait.
            with Admin(admin) as one:
                print(json.dumps({"do": "call-tool", "server": "legacy", "tool": "hang", "arguments": {}}),
                      file=one.file, flush=True)
                servers.wait_line("hang")
            equal(tools("call", "legacy.words"), "> plain words\n")
            ends = [(record["tool"], record["status"], record["by"]) for record in of(log, "tool-ended")]
            equal(sorted(ends), sorted((tool, end, "operator") for tool, end in (
                ("add", "ok"), ("write", "ok"), ("fail", "error"), ("hang", "cancelled"), ("words", "ok"))))
            log.verify()
            # The service stops while one waits.
            open(servers.written, "w", encoding="utf-8").close()
            waiting = Admin(admin)
            print(json.dumps({"do": "call-tool", "server": "legacy", "tool": "hang", "arguments": {}}),
                  file=waiting.file, flush=True)
            servers.wait_line("hang")
        equal(waiting.file.readline(), "")


@contextlib.contextmanager
def approving(ctx, log, more=""):
    """A service whose operators are asked, by a socket in the servers' folder."""
    with Servers() as servers:
        os.chmod(servers.path, 0o777)
        config = servers.config("legacy", more="[admin]\nsocket = %s/admin\napprovals = %s/approvals\n%s" % (
            servers.path, servers.path, more))
        with ctx.private(log.config(config)) as s:
            s.servers = servers
            yield s


def asked(admin):
    """The one approval that is asked for, once it is."""
    one, = until("somebody is asked", lambda: [
        one for one in admin.ask("list")["approvals"] if one["state"] == "pending"])
    return one


@test(private=True, root=True)
def an_operator_approves_a_call(ctx):
    write = ERRORS + "print(error(lambda: tools.legacy.write(line='one \u202e two')))"
    with Log(ctx) as log, approving(ctx, log) as s, \
            ctx.client(path=s.socket, uid=SOMEBODY) as c, Admin(s.servers.path + "/admin") as admin:
        id = c.start_script(write)
        one = asked(admin)
        equal(s.servers.lines(), [])
        shown = command(ctx, "approvals", "show", one["id"], "--admin-socket", s.servers.path + "/admin")
        for part in ("tool legacy.write ", '"legacy"', '"write"', "\\u202e"):
            assert part in shown, shown
        assert "\u202e" not in shown
        admin.ask("approve", id=one["id"])
        equal(c.outcome(id).stdout, "no error\n")
        equal(s.servers.lines(), ["one \u202e two"])
        # While an operator thinks the script's clock stands still.
        id = c.start_script(write.replace("one", "late"), timeout_seconds=1)
        one = asked(admin)
        time.sleep(1.5)		# longer than the script has
        admin.ask("approve", id=one["id"])
        equal(c.outcome(id).stdout, "no error\n")
        # It was good once.
        id = c.start_script(write)
        one = asked(admin)
        admin.ask("deny", id=one["id"], reason="not twice")
        equal(c.outcome(id).stdout, 'legacy.write: an approver refused this call; the approver\'s reason: '
              '"not twice"\n')
        # A refusal stands, and a script that does not wait leaves nothing.
        assert "not twice" in run(c, write).stdout
        equal(len(s.servers.lines()), 2)
        id = c.start_script(write.replace("one", "other"))
        one = asked(admin)
        c.cancel(id)
        c.run("1")
        admin.ask("approve", id=one["id"])
        equal(run(c, write.replace("one", "other")).stdout, "no error\n")
        equal(len(of(log, "tool-called")), 3)
        equal(len(of(log, "tool-refused")), 2)
        log.verify()


@test(private=True, root=True)
def a_call_that_waits_for_an_operator_becomes_a_job(ctx):
    """Its client cannot be asked: it is told at once, with the command for its user."""
    write = "import tools\nprint('begun', flush=True)\nx = 1\nprint(tools.legacy.write(line='%s'))\n'end'"
    with Log(ctx) as log, approving(ctx, log) as s, \
            ctx.client(path=s.socket, uid=SOMEBODY) as c, Admin(s.servers.path + "/admin") as admin:
        for name, arguments in (("run_script", {"script": write % "one"}), ("run_repl", {"code": write % "two"})):
            result = c.ask("tools/call", {"name": name, "arguments": arguments})
            told, one = result["structuredContent"], asked(admin)
            equal((told["status"], result["isError"]), ("running", False))
            equal(told["waits"], "waits for the approval of legacy.write: mcp-python approve " + one["id"])
            text = "".join(b.get("text", "") for b in result["content"])
            assert one["id"] in text and told["job"] in text, text

            def job(action, **more):
                return c.ask("tools/call", {"name": "job", "arguments": dict(id=told["job"], action=action, **more)})
            assert one["id"] in job("status")["structuredContent"]["waits"]
            if name == "run_repl":
                assert told["session"] in text, text
                behind = c.ask("tools/call", {"name": "run_repl", "arguments": {"session": told["session"], "code": "x"}})
                equal(behind["structuredContent"]["status"], "session_busy")
            admin.ask("approve", id=one["id"])
            answer = job("wait", wait_seconds=60)["structuredContent"]["answer"]
            equal((answer["status"], answer["result"]["repr"]), ("ok", "'end'"))
        equal(s.servers.lines(), ["one", "two"])
        log.verify()


SETS = (("native", "run_script", "script"), ("native", "run_repl", "code"), ("exec-sandbox", "execute_python", "script"),
        ("python-sandbox", "execute_code", "code"), ("run-python", "run_python_code", "python_code"))


@test(private=True, root=True)
def approvals_are_told_in_every_set(ctx):
    """A client without forms waits for nobody: its answer names the request, and the command for its user."""
    tools = "import tools\nprint(tools.legacy.write(line='one'))"
    for names, name, argument in SETS:
        for more, code in (("[policy]\npreset = strict\n", "print('one')"),
                           ("[python-sandbox]\nallowed_imports = tools\n", tools)):
            with Log(ctx) as log, approving(ctx, log, "[mcp]\ntoolsets = %s\n%s" % (names, more)) as s, \
                    ctx.client(path=s.socket, uid=SOMEBODY) as c, Admin(s.servers.path + "/admin") as admin:
                def call():
                    result = c.ask("tools/call", {"name": name, "arguments": {argument: code}})
                    return result, "".join(block.get("text", "") for block in result["content"])
                _, text = call()
                one = asked(admin)
                assert "mcp-python approve " + one["id"] in text, (names, text)
                admin.ask("approve", id=one["id"])
                if "job j-" not in text:
                    assert "once it is" in text, (names, text)
                    _, text = call()
                    assert "approve" not in text and (code == tools or "one" in text), (names, text)
                if code == tools:
                    until("the call is made", lambda: s.servers.lines() == ["one"])


TOLD = """[tenant uid:%d]
tool-calls.seconds = 1
packages.timeout_seconds = 2
[tenant uid:%d]
policy.preset = strict
policy.approvers = uid:0
[packages]
index = http://127.0.0.1:%d/simple
store = %s
"""


@test(private=True, root=True)
def no_answer_takes_longer_than_was_told(ctx):
    """What each call waits for never comes; its answer does, in the time that the call, the tool or a key says."""
    strict = SOMEBODY + 1
    with Log(ctx) as log, new_store() as store, socket.create_server(("127.0.0.1", 0)) as index, \
            approving(ctx, log, TOLD % (SOMEBODY, strict, index.getsockname()[1], store)) as s, \
            ctx.client(path=s.socket, uid=SOMEBODY) as c, ctx.client(path=s.socket, uid=SOMEBODY) as other, \
            ctx.client(path=s.socket, uid=strict) as waits:
        def answer(client, told, name, **arguments):
            """told: seconds; a worker may have to start before they count, and be ended after them."""
            began = time.monotonic()
            result = client.ask("tools/call", {"name": name, "arguments": arguments}, ctx.seconds(told + 60))
            took = time.monotonic() - began
            assert took <= ctx.seconds(told + 20), (name, arguments, took)
            return result["structuredContent"]
        forever = "import time\nx = 1\nwhile True: time.sleep(60)"
        # Long code.
        for name, code in (("run_script", "script"), ("run_repl", "code")):
            equal(answer(c, 1, name, **{code: forever, "timeout_seconds": 1})["status"], "timeout")
            # A tool of another server, a person, and who cannot be asked.
            hang = answer(c, 1, name, **{code: "import tools\ntools.legacy.hang()"})
            assert hang["error"]["type"].endswith("ToolError") and hang["tool_calls"][0]["status"] == "failed", hang
            told = answer(c, 5, name, **{code: "import tools\ntools.legacy.write(line='1')"})
            equal(told["status"], "running")
            assert "mcp-python approve a-" in told["waits"], told
            told = answer(c, 5, name, **{code: "import tools\ntools.legacy.write(line='2')", "background": False})
            equal(told["status"], "error")
            told = answer(waits, 0, name, **{code: "1"})
            equal((told["status"], "job" in told), ("approval_pending", True))
            told = answer(waits, 0, name, **{code: "1", "background": False})
            equal((told["status"], "job" in told), ("approval_pending", False))
        # An index that says nothing.
        equal(answer(c, 2, "install_package", packages=["alpha"])["status"], "error")
        for name, code in (("run_script", "script"), ("run_repl", "code")):
            told = answer(c, 2, name, dependencies=["alpha"], **{code: "1"})
            equal(told["status"], "dependency_unavailable", told)
            assert "timeout of 2 s" in told["error"]["message"] and "Nothing was run" in told["error"]["message"], told
        # Jobs, and sessions behind them and behind calls.
        job = answer(c, 0, "run_repl", code=forever, background=True)
        equal(answer(c, 5, "run_repl", session=job["session"], code="1")["status"], "session_busy")
        assert "before job " + job["job"] in answer(c, 0, "run_repl", session=job["session"], inspect=True)["state_text"]
        equal(answer(c, 5, "install_package", session=job["session"], packages=["alpha"])["status"], "error")
        for action in "wait", "output":
            equal(answer(c, 1, "job", id=job["job"], action=action, wait_seconds=1)["state"], "running")
        equal(answer(c, 0, "job", id=job["job"], action="cancel")["state"], "cancelled")
        session = answer(c, 0, "run_repl", code="1")["session"]
        for seconds in 60, 600:	# a short call, and one that is looked at before
            id = other.request("tools/call", {"name": "run_repl", "arguments": {
                "session": session, "code": "print('BEGUN', flush=True)\n" + forever, "timeout_seconds": seconds},
                "_meta": {"progressToken": seconds}})
            other.until("its output", lambda: "BEGUN" in repr(other.notices))
            equal(answer(c, 2, "run_repl", session=session, code="1", timeout_seconds=4)["status"], "session_busy")
            look = answer(c, 5, "run_repl", session=session, inspect=True)
            equal(look["status"], "session_busy" if seconds == 60 else "ok", look)
            del other.notices[:]
            other.cancel(id)
            other.flush()
        for name, arguments in (("check_environment", {}), ("validate_script", {"script": "import json"}),
                                ("search_tools", {"query": "write"}), ("job", {})):
            answer(c, 0, name, **arguments)
        assert not {"1", "2"} & set(s.servers.lines()), "nobody has approved anything: %s" % s.servers.lines()


@test(private=True, root=True)
def a_tool_that_has_changed_is_asked_about_again(ctx):
    write = ERRORS + "print(error(lambda: tools.legacy.write(line='%s')))"
    with Log(ctx) as log, approving(ctx, log) as s, \
            ctx.client(path=s.socket, uid=SOMEBODY) as c, ctx.client(path=s.socket, uid=SOMEBODY) as other, \
            Admin(s.servers.path + "/admin") as admin:
        # While somebody is asked.
        id = c.start_script(write % "one")
        one = asked(admin)
        run(other, "import tools\ntools.legacy.grow()")
        s.wait_logged("tools=21 left_out=3")
        admin.ask("approve", id=one["id"])
        assert "has changed what it says of this tool" in c.outcome(id).stdout
        # Between the approval and its use.
        id = c.start_script(write % "two")
        one = asked(admin)
        c.cancel(id)
        c.run("1")
        admin.ask("approve", id=one["id"])
        run(other, "import tools\ntools.legacy.grow()")
        s.wait_logged("tools=21 left_out=4")
        id = c.start_script(write % "two")
        again = asked(admin)
        assert again["id"] != one["id"], (again, one)
        equal(s.servers.lines(), [])
        admin.ask("approve", id=again["id"])
        equal(c.outcome(id).stdout, "no error\n")
        equal(s.servers.lines(), ["two"])
        log.verify()


def answer_form(client, content):
    """Answers the next form; its message."""
    form = client.recv()
    while form.get("method") == "notifications/tools/list_changed":	# a server has begun to serve
        form = client.recv()
    equal(form.get("method"), "elicitation/create", form)
    client.send({"jsonrpc": "2.0", "id": form["id"], "result": {"action": "accept", "content": content}})
    return form["params"]["message"]


@test(private=True)
def the_sessions_user_approves_calls(ctx):
    more = "[policy]\napprovers = self\ninput = allow\n"
    script = ERRORS + """
import threading
tools.legacy.words
threads = [threading.Thread(target=lambda n=n: print(error(lambda: tools.legacy.write(line="line %d" % n))))
           for n in range(4)]
threads.append(threading.Thread(target=lambda: print(input("what? "))))
for t in threads: t.start()
for t in threads: t.join()
"""
    with service(ctx, "legacy", more=more) as s, \
            Client.connect(s.socket, None, timeout=ctx.seconds(60)) as c:
        c.greet(elicitation={})
        c.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                "params": {"name": "run_script", "arguments": {"script": script}}})
        agreed, wanted = [], {}
        for _ in range(5):
            message = answer_form(c, {"allow": len(agreed) < 2, "line": "an answer"})
            found = re.search(r'> arguments.line: "(line \d)"', message)
            if found:
                assert '> server: "legacy"' in message and '> tool: "write"' in message, message
                agreed.append(found[1])
            wanted["input" if not found else found[1]] = True
        equal(len(wanted), 5, wanted)
        answer = c.recv()["result"]["structuredContent"]
        equal((answer["status"], sorted(answer["stdout"].replace("what? ", "").splitlines())),
              ("ok", ["an answer"] + 2 * ["legacy.write: the session's user did not agree to this call"]
               + 2 * ["no error"]))
        equal(sorted(s.servers.lines()), sorted(agreed[:2]))


@test(private=True, root=True)
def an_operator_approves_the_rest_of_a_run(ctx):
    """Further calls of that tool are made at once; another tool, and another run, are asked about."""
    script = ERRORS + """
for n in range(3):
    print(error(lambda: tools.legacy.write(line=str(n))))
print(error(tools.legacy.words))
"""
    with Log(ctx) as log, approving(ctx, log, "[tool-calls]\napprove = legacy.words\n") as s, \
            ctx.client(path=s.socket, uid=SOMEBODY) as c, Admin(s.servers.path + "/admin") as admin:
        id = c.start_script(script)
        command(ctx, "deny", asked(admin)["id"], "--for-run", want=64)
        command(ctx, "approve", asked(admin)["id"], "--for-run", "--admin-socket",
                s.servers.path + "/admin")
        one = asked(admin)
        assert one["items"][0].startswith("tool legacy.words "), one
        admin.ask("deny", id=one["id"])
        equal(c.outcome(id).stdout, 3 * "no error\n" + "legacy.words: an approver refused this call\n")
        equal(s.servers.lines(), ["0", "1", "2"])
        equal([r.get("for_run") for r in of(log, "approval-granted")], [True])
        id = c.start_script(ERRORS + "print(error(lambda: tools.legacy.write(line='1')))")
        admin.ask("approve", id=asked(admin)["id"])
        equal(c.outcome(id).stdout, "no error\n")
        log.verify()


@test(private=True)
def the_sessions_user_approves_the_rest_of_a_run(ctx):
    """One form for four calls, three of which wait for theirs."""
    more = "[policy]\napprovers = self\n"
    script = """
import threading, tools
tools.legacy.words
threads = [threading.Thread(target=lambda n=n: tools.legacy.write(line="line %d" % n)) for n in range(4)]
for t in threads: t.start()
for t in threads: t.join()
tools.legacy.write(line="last")
"""
    with service(ctx, "legacy", more=more) as s, Person.at(ctx, s.socket) as c:
        for _ in range(2):
            id = c.start_script(script)
            c.answer(c.question(), {"action": "accept", "content": {"allow": True, "rest": True}})
            equal((c.outcome(id).status, c.asked), ("ok", []))
        equal(sorted(s.servers.lines()), sorted(2 * (["line %d" % n for n in range(4)] + ["last"])))


@test(private=True)
def a_terminal_completes_the_tools_of_servers(ctx):
    with service(ctx, "legacy") as s, Terminal(ctx, "repl", "--socket", s.socket) as t:
        t.expect(">>> ")
        t.type("import tools; tools.legacy.words and None\n")
        t.expect(">>> ")
        t.type("tools.leg\t")
        t.expect("tools.legacy")
        t.type(".wor\t")
        t.expect(r"words\(\)")
        t.type("\n")
        t.expect("plain words.*>>> ")
        t.type("exit()\n")
        equal(t.end(), 0)


@test(private=True)
def tenants_have_servers_of_their_own(ctx):
    more = ("[tool-calls]\nservers = legacy\n[tenant uid:%d]\ntool-calls.servers = modern\n"
            "tool-calls.calls = 3\n" % os.getuid())
    with service(ctx, "legacy", "modern", more=more) as s, ctx.client(path=s.socket) as c:
        o = run(c, ERRORS + """
print(tools.servers(), hasattr(tools, "legacy"))
for i in range(4):
    print(error(tools.modern.words))
""")
        lines = o.stdout.splitlines()
        equal(lines[:4], ["['modern'] False"] + 3 * ["no error"], "the list is no call")
        assert "all the calls that [tool-calls] calls allows" in lines[4], lines


@test(private=True)
def servers_see_nothing_of_the_service(ctx):
    with service(ctx, "legacy") as s, ctx.client(path=s.socket) as c:
        o = run(c, "import tools\nprint(tools.legacy.environment())")
        seen = eval(o.stdout)
        equal(set(seen["environment"]) - {"PWD", "SHLVL", "_", "LC_CTYPE"}, {"PATH", "LANG", "HOME"})
        assert set(seen["fds"]) <= {"0", "1", "2", "3"}, seen
        if os.geteuid() == 0:
            service_uid = os.stat("/proc/%d" % s.pid).st_uid
            assert seen["uid"] not in (0, service_uid) and seen["groups"] == [], seen


# ---- scripts that write frames themselves ----

@test(private=True)
def forged_calls_end_the_run(ctx):
    forged = {
        "another execution": "id=99, number=1, server=b'legacy'",
        "no server": "id=%d, number=1, server=b'nothing'",
        "another number": "id=%d, number=2, server=b'legacy'",
        "no arguments": "id=%d, number=1, server=b'legacy', tool=b'add'",
        "no tool": "id=%d, number=1, server=b'legacy', arguments=b'{}'",
        "an unknown key": "id=%d, number=1, server=b'legacy', other=1",
    }
    with service(ctx, "legacy") as s, ctx.client(path=s.socket) as c:
        for n, (what, fields) in enumerate(forged.items(), 1):
            o = c.run(FRAMES + "control.sendall(frame(75, %s))\nthreading.Event().wait()" % (
                fields % n if "%d" in fields else fields), 120)
            equal(o.status, "worker_protocol_error", what)
        o = c.run(FRAMES + """
for i in range(1, 100):
    control.sendall(frame(75, id=%d, number=i, server=b'legacy', tool=b'hang', arguments=b'{}'))
threading.Event().wait()""" % (len(forged) + 1), 120)
        equal(o.status, "worker_protocol_error")
        equal(run(c, "import tools\nprint(tools.legacy.words())").stdout, "plain words\n")


@test(private=True)
def a_forged_call_of_another_tenants_server_ends_the_run(ctx):
    more = ("[tool-calls]\nservers = legacy\n[tenant uid:%d]\ntool-calls.servers = modern\n" % os.getuid())
    with service(ctx, "legacy", "modern", more=more) as s, ctx.client(path=s.socket) as c:
        for n, tool in enumerate(("", ", tool=b'write', arguments=b'{}'"), 1):
            o = c.run(FRAMES + "control.sendall(frame(75, id=%d, number=1, server=b'legacy'%s))\n"
                      "threading.Event().wait()" % (n, tool), 120)
            equal(o.status, "worker_protocol_error")
        equal((s.servers.lines(), run(c, "import tools\nprint(tools.modern.words())").stdout), ([], "plain words\n"))


@test(private=True)
def a_script_that_is_killed_leaves_no_call(ctx):
    with Log(ctx) as log, service(ctx, "legacy", log=log) as s, ctx.client(path=s.socket) as c:
        run(c, "import tools\ntools.legacy.hang()", "timeout", timeout_seconds=2)
        s.servers.wait_line("cancelled")
        ended, = of(log, "tool-ended")
        equal((ended["tool"], ended["status"]), ("hang", "cancelled"))
        equal(run(c, "import tools\nprint(tools.legacy.words())").stdout, "plain words\n")


@test(private=True)
def the_client_of_servers_has_a_guard(ctx):
    """A timer ends the waits of its loop, and a signal of the same number by a server does nothing."""
    with service(ctx, "legacy") as s, ctx.client(path=s.socket) as c:
        equal(run(c, "import tools\nprint(tools.legacy.words())").stdout, "plain words\n")
        pid, = tools_process(s)
        assert "signal: 14/" in read_text("/proc/%d/timers" % pid), "it has no guard"
        os.kill(pid, 14)
        equal(run(c, "import tools\nprint(tools.legacy.words())").stdout, "plain words\n")
        equal(tools_process(s), [pid])


@test(private=True)
def the_client_of_servers_has_little(ctx):
    """What it holds, and prints it for the log."""
    with service(ctx, "legacy") as s, ctx.client(path=s.socket) as c:
        equal(run(c, "import tools\nprint(tools.legacy.words())").stdout, "plain words\n")
        pid, = tools_process(s)
        status = dict(re.findall(r"(\w+):\s*(.*)", read_text("/proc/%d/status" % pid)))
        for key in "CapInh", "CapPrm", "CapEff", "CapAmb":
            equal(int(status[key], 16), 0, key)
        equal(status["NoNewPrivs"], "1")
        if os.getuid():
            return		# only root may look at the rest
        uids, own = (set(re.findall(r"Uid:\s*(\d+)", read_text("/proc/%d/status" % n)))
                     for n in (pid, s.pid))
        assert "0" not in uids and not uids & own, (uids, own)
        assert os.stat("/proc/%d/stat" % pid).st_uid not in map(int, uids), "it may be debugged"
        held = [os.readlink("/proc/%d/fd/%s" % (pid, fd)) for fd in os.listdir("/proc/%d/fd" % pid)]
        strange = [target for target in held
                   if not re.match(r"(socket|pipe|anon_inode):|/dev/null$", target)
                   and target != s.log_path]
        equal(strange, [])
        print("        tools: filters=%s fds: %s" % (
            status.get("Seccomp_filters", "?"), " ".join(sorted(held))), flush=True)


@test(private=True)
def nobody_decides_in_time(ctx):
    """The time that input_seconds gives beyond the script's own."""
    with Log(ctx) as log, approving(ctx, log, "[limits]\ninput_seconds = 1\n") as s, \
            ctx.client(path=s.socket, uid=SOMEBODY) as c, Admin(s.servers.path + "/admin") as admin:
        o = run(c, "import tools\ntools.legacy.write(line='one')", "timeout", timeout_seconds=1)
        call, = o.structured["tool_calls"]
        equal((call["status"], call["tool"]), ("refused", "write"))
        equal((s.servers.lines(), of(log, "tool-called"), of(log, "tool-ended")), ([], [], []))
        # The request is still there, and what is decided now is for the same call made again.
        one, = admin.ask("list")["approvals"]
        admin.ask("approve", id=one["id"])
        run(c, "import tools\ntools.legacy.write(line='one')")
        equal(s.servers.lines(), ["one"])
        log.verify()


@test(private=True)
def each_call_ends_once_in_the_audit_log(ctx):
    """However it ends: an answer, an error, its time, a dead server, a killed script."""
    more = "[tool-calls]\nseconds = 2\n"
    with Log(ctx) as log, service(ctx, "legacy", more=more, log=log) as s, ctx.client(path=s.socket) as c:
        run(c, ERRORS + """
t = tools.legacy
for call in t.words, t.fail, t.hang, t.die:
    error(call)
""")
        wait_words(c)
        run(c, """
import threading, tools
for _ in range(4):
    threading.Thread(target=tools.legacy.hang, daemon=True).start()
threading.Event().wait()
""", "timeout", timeout_seconds=1)
        log.verify()
        begun = [(r["execution"], r["number"]) for r in of(log, "tool-called")]
        ended = [(r["execution"], r["number"]) for r in of(log, "tool-ended")]
        equal((sorted(begun), len(set(ended))), (sorted(ended), len(ended)))
        ends = [r["status"] for r in of(log, "tool-ended")]
        equal(set(ends), {"ok", "error", "failed", "cancelled"})
        equal(ends.count("cancelled"), 4)


@test(private=True)
def the_client_of_servers_is_started_again(ctx):
    with service(ctx, "legacy") as s, ctx.client(path=s.socket) as c:
        equal(run(c, "import tools\nprint(tools.legacy.words())").stdout, "plain words\n")
        pid, = tools_process(s)
        id = c.start_script(ERRORS + "print(error(tools.legacy.hang))")
        s.servers.wait_line("hang")
        os.kill(pid, 9)
        o = c.outcome(id)
        equal(o.status, "ok")
        assert "the client of other servers ended in the middle of the call" in o.stdout, o
        wait_words(c)


if __name__ == "__main__":
    main(__doc__, modules=FEW_MODULES)
