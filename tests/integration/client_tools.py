#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Scripts call tools that live in their client: in both eras, within the bounds of other servers' tools, and
never those of another client."""

import os

from harness import FEW_MODULES, equal, main, test
from http_client import Session
from http_suite import CONFIG as HTTP, place_of
from mcpclient import LEGACY, MODERN, Client, Outcome, RpcError
from person import FORM, Records, back, cell, script, works
from tool_owner import BOTH, KEY, METHOD, ONE, SCHEMA, TOOLS, Owner, declared, owner, printed, reply_to, result
from tool_scripts import ERRORS
from waits import until_equal

LOOP = "import tools\nprint([tools.client.double(n=i) for i in range(10)])"
GATHER = """
import asyncio, tools
print(await asyncio.gather(*(tools.client.double.aio(n=i) for i in range(10))))
"""
DOUBLED = str([{"twice": 2 * i} for i in range(10)]) + "\n"


@test(private=True)
def a_script_calls_its_clients_tools(ctx):
    for revision in BOTH:
        with ctx.private() as s, owner(ctx, s, revision) as c:
            for text in LOOP, GATHER:
                o, made = c.finish(script(text))
                equal((o.status, o.stdout), ("ok", DOUBLED))
                equal(sorted(p["arguments"]["n"] for p in made), list(range(10)))
                equal({(t["server"], t["tool"], t["status"]) for t in o.structured["tool_calls"]},
                      {("client", "double", "ok")})
            o, made = c.finish(script(ERRORS + "print(error(tools.client.fail))"))
            equal((o.stdout.strip().endswith("not today"), len(made)), (True, 1), o)
            equal(o.structured["tool_calls"][0]["status"], "error")


@test(private=True)
def calls_beside_each_other_are_asked_for_together(ctx):
    """The first ones are asked for at once, and those that came meanwhile after them."""
    with Records(ctx) as log, ctx.private(log.config + "[tool-calls]\nat_once = 8\n") as s, \
            owner(ctx, s, MODERN) as c:
        first = c.call(script(GATHER))
        log.wait("tool-called", 8)
        results = [result(r["params"]) for r in first["inputRequests"].values()]
        second = c.call(script(GATHER), back(first, *results))
        assert len(results) == 8 or len(results) + len(second["inputRequests"]) == 8, (first, second)


@test(private=True)
def they_look_like_those_of_other_servers(ctx):
    text = "import tools\nprint(tools.servers())\nprint(tools.describe('client.double'))\n" \
           "print(tools.search('twice'))"
    for revision in BOTH:
        with ctx.private() as s, owner(ctx, s, revision) as c:
            out, made = printed(c, text)
            assert "client" in out and "Twice n." in out and "double" in out, out
            equal(made, [])


@test(private=True)
def cells_call_them_too(ctx):
    for revision in BOTH:
        with ctx.private() as s, owner(ctx, s, revision) as c:
            o, made = c.finish(cell("import tools\nprint(tools.client.double(n=2))"))
            equal((o.structured["stdout"], len(made)), ("{'twice': 4}\n", 1))
            session = o.structured["session"]
            o, made = c.finish(cell("print(tools.client.double(n=3))", session=session))
            equal((o.structured["stdout"], len(made)), ("{'twice': 6}\n", 1))


@test(private=True)
def a_cell_has_the_tools_of_its_own_client(ctx):
    """A session goes on when a cell of it comes from a client without tools, or with others."""
    call = "import tools\nprint(tools.client.double(n=2))"
    other = [{"name": "third", "inputSchema": SCHEMA}]
    for revision in BOTH:
        with ctx.private() as s, owner(ctx, s, revision) as c, owner(ctx, s, revision, tools=other) as o, \
                Owner.at(ctx, s.socket, revision, capabilities=FORM) as none:
            first, _ = c.finish(cell("x = 1\n" + call))
            session = first.structured["session"]
            for client in none, o:
                lost, made = client.finish(cell(call, session=session))
                equal((lost.structured["status"], made), ("error", []), lost)
            again, made = c.finish(cell("print(x)\n" + call, session=session))
            equal((again.structured["stdout"], len(made)), ("1\n{'twice': 4}\n", 1))


@test(private=True)
def who_declares_none_has_none(ctx):
    for revision in BOTH:
        with ctx.private() as s, Owner.at(ctx, s.socket, revision, capabilities=FORM) as c:
            o, made = c.finish(script("import tools"))
            equal((o.status, o.error["type"], made), ("error", "ModuleNotFoundError", []))


@test(private=True)
def what_is_declared_is_checked(ctx):
    tool = TOOLS[0]
    wrong = ("x", [{}], [{"name": "a b", "inputSchema": {}}], [{"name": "a"}], [tool, tool], [1],
             [{"name": "t%d" % i, "inputSchema": {}} for i in range(129)],
             [{"name": "t%d" % i, "inputSchema": {}, "description": "x" * 16000} for i in range(20)])
    with ctx.private() as s:
        for tools in wrong:
            with Owner.at(ctx, s.socket, MODERN, capabilities=declared(MODERN, tools)) as c:
                c.refused(script("1"), None)
            try:
                Owner.at(ctx, s.socket, capabilities=declared(None, tools))
            except RpcError as e:
                assert e.code == -32602 and KEY in str(e), e
            else:
                raise AssertionError("taken: %.200r" % (tools,))
        for settings in (None, "x", [], {}, {"tools": [tool], "more": 1}, {"tools": None}):
            try:
                Owner.at(ctx, s.socket, capabilities={"experimental": {KEY: settings}})
            except RpcError as e:
                assert e.code == -32602 and KEY in str(e), e
            else:
                raise AssertionError("taken: %r" % (settings,))


@test(private=True)
def answers_that_lie_are_errors_in_the_script(ctx):
    big = {"content": [{"type": "text", "text": "x" * (2 << 20)}]}
    table = (({}, "no result of a tool"), ({"content": 1}, "no result of a tool"),
             ({"content": [1]}, "no result of a tool"), ({"action": "accept"}, "no result of a tool"),
             ({"content": [], "resultType": "input_required"}, "wants more"),
             (big, "result_bytes is 1048576"))
    for revision in BOTH:
        with ctx.private() as s, owner(ctx, s, revision) as c:
            for reply, says in table:
                out, made = printed(c, ONE, lambda params, reply=reply: reply)
                assert says in out and len(made) == 1, (says, out)
            out, made = printed(c, ONE, lambda params: {**result(params), "more": 1})
            assert "{'twice': 8}" in out and len(made) == 1, out


@test(private=True)
def a_legacy_answer_counts_once_and_for_its_call(ctx):
    with ctx.private() as s, owner(ctx, s, LEGACY[-1]) as c:
        for reply in (1, None, [], "x"):
            out, made = printed(c, ONE, lambda params, reply=reply: reply)
            assert "has not told its result" in out and len(made) == 1, out
        id = c.request("tools/call", script(ONE))
        asked = c.question()
        c.answer({"id": asked["id"] + 1000}, result({"name": "fail"}))
        c.answer(asked, result(asked["params"]))
        c.answer(asked, result({"name": "fail"}))
        assert "{'twice': 8}" in c.outcome(id).stdout
        works(c)


@test(private=True)
def a_modern_answer_has_to_be_for_its_call(ctx):
    with ctx.private() as s, owner(ctx, s, MODERN) as c:
        asked = c.call(script(ONE))
        again = c.call(script(ONE), {"requestState": asked["requestState"],
                                     "inputResponses": {"call-77": result({"name": "fail"})}})
        equal(again["inputRequests"], asked["inputRequests"])
        c.refused(script(ONE), back(asked, result({"name": "fail"})))
        o = c.end(script(ONE), back(again, {"content": [], "structuredContent": 5}))
        assert "5\n" in o.stdout, o
        # A call has no result before it was made.
        told = c.call(script(ONE), {"inputResponses": {"call-%d" % i: result({"name": "fail"})
                                                       for i in range(5)}})
        equal(told["resultType"], "input_required")


@test(private=True)
def bounds_are_named(ctx):
    for revision in BOTH:
        with ctx.private("[tool-calls]\nseconds = 1\ncalls = 3\n") as s, owner(ctx, s, revision) as c:
            if revision == MODERN:
                first = c.call(script(ONE, timeout_seconds=600))
                # The run ends while it waits for the client; the answer is kept for it.
                again = c.call(script(ONE, timeout_seconds=600), back(first, 5))
                while again["resultType"] == "input_required":
                    again = c.call(script(ONE, timeout_seconds=600), back(again, 5))
                o = Outcome(again, 0, True)
            else:
                o = c.outcome(c.request("tools/call", script(ONE)))
            assert "did not answer in time ([tool-calls] seconds is 1)" in o.stdout, o
            c.asked.clear()
            out, made = printed(c, ERRORS + "for i in range(4): print(error(lambda: tools.client.double(n=i)))")
            assert len(made) == 3 and "[tool-calls] calls" in out, out


@test(private=True)
def operators_can_forbid_them(ctx):
    for deny in "client.double", "*.*":
        for revision in BOTH:
            with ctx.private("[tool-calls]\ndeny = %s\n" % deny) as s, owner(ctx, s, revision) as c:
                o, made = c.finish(script("import tools\ntools.client['double'](n=1)"))
                assert made == [] and "has no tool double" in o.error["message"], o
    for revision in BOTH:
        with ctx.private("[tool-calls]\nservers =\n") as s, owner(ctx, s, revision) as c:
            o, made = c.finish(script("import tools"))
            equal((o.error["type"], made), ("ModuleNotFoundError", []))


@test(private=True)
def an_operator_can_have_them_approved(ctx):
    """In the session of the client itself; before that it is not told of the call."""
    rules = "[policy]\napprovers = self\n[tool-calls]\napprove = client.double\n"
    for revision in BOTH:
        with Records(ctx) as log, ctx.private(log.config + rules) as s, \
                owner(ctx, s, revision, elicitation={}) as c:
            for allow in True, False:
                call, agree = script(ONE), {"action": "accept", "content": {"allow": allow}}
                if c.modern:
                    told = c.call(call)
                    form, = told["inputRequests"].values()
                    equal(form["method"], "elicitation/create")
                    told = c.call(call, back(told, agree))
                    if allow:
                        told = c.call(call, back(told, reply_to(told)))
                    o = Outcome(told, 0, True)
                else:
                    id = c.request("tools/call", call)
                    form = c.question()
                    equal(form["method"], "elicitation/create")
                    c.answer(form, agree)
                    if allow:
                        asked = c.question()
                        equal(asked["method"], METHOD)
                        c.answer(asked, result(asked["params"]))
                    o = c.outcome(id)
                assert '> tool: "double"' in form["params"]["message"], form
                want = "{'twice': 8}\nno error\n" if allow else \
                    "client.double: the session's user did not agree to this call\n"
                equal(o.stdout, want)
            until_equal("the log", lambda: [r["event"] for r in log.of("tool-called", "tool-refused")],
                        ["tool-called", "tool-refused"])


@test(private=True)
def a_script_is_checked_against_them(ctx):
    for revision in BOTH:
        with ctx.private() as s, owner(ctx, s, revision) as c:
            text = "import tools\ntools.client.double(n=1)\ntools.client.double(m=1)\ntools.client.nothing()\n"
            o, made = c.finish({"name": "validate_script", "arguments": {"script": text}})
            equal((sorted(set(e["line"] for e in o.structured["errors"])), made), ([3, 4], []), o.structured)


@test(private=True)
def search_tools_finds_them_beside_others(ctx):
    """It is listed for what operators have configured: a client knows its own tools."""
    server = "[tools away]\ncommand = /usr/bin/false\n"
    for revision in BOTH:
        with ctx.private(server) as s, owner(ctx, s, revision) as c:
            assert "search_tools" in {tool["name"] for tool in c.ask("tools/list")["tools"]}
            o, made = c.finish({"name": "search_tools", "arguments": {"query": "twice", "server": "client"}})
            equal(([one["name"] for one in o.structured["tools"]], made), (["client.double"], []))
        with ctx.private() as s, owner(ctx, s, revision) as c:
            assert "search_tools" not in {tool["name"] for tool in c.ask("tools/list")["tools"]}


@test(private=True)
def a_modern_client_that_never_comes_back_is_not_waited_for(ctx):
    with Records(ctx) as log, ctx.private(log.config + "[tool-calls]\nseconds = 1\n") as s:
        with owner(ctx, s, MODERN) as c:
            equal(c.call(script(ONE, timeout_seconds=600))["resultType"], "input_required")
            log.wait("execution-ended")
            equal([r["status"] for r in log.of("tool-ended")], ["failed"])
            works(c)
        with owner(ctx, s, MODERN) as c:
            c.call(script(ONE, timeout_seconds=600))
        log.wait("execution-ended", 3)
        with owner(ctx, s, MODERN) as c:
            works(c)


@test(private=True)
def a_client_that_goes_away_frees_its_worker(ctx):
    with Records(ctx) as log, ctx.private(log.config) as s:
        with owner(ctx, s, LEGACY[-1]) as c:
            c.request("tools/call", script(ONE, timeout_seconds=600))
            c.question()
        log.wait("execution-ended")
        equal([(r["server"], r["tool"]) for r in log.of("tool-called")], [("client", "double")])
        equal([r["status"] for r in log.of("tool-ended")], ["cancelled"])
        with owner(ctx, s, LEGACY[-1]) as c:
            id = c.request("tools/call", script(ONE, timeout_seconds=600))
            c.question()
            c.cancel(id)
            log.wait("execution-ended", 2)
            works(c)


@test(private=True)
def another_client_never_gets_a_call(ctx):
    """Not even one that sends the same call with the same key, and waits for the same run."""
    call = script("import tools\nprint(tools.client.double(n=4), tools.client.double(n=5))",
                  idempotency_key="k")
    for revision in BOTH:
        with ctx.private() as s, owner(ctx, s, revision) as one, owner(ctx, s, revision) as other:
            id = one.request("tools/call", call)
            asked = one.wait(id) if one.modern else one.question()
            same = other.request("tools/call", call)
            works(other)
            if one.modern:
                second = one.call(call, back(asked, reply_to(asked)))
                o = one.end(call, back(second, reply_to(second)))
            else:
                one.answer(asked, result(asked["params"]))
                second = one.question()
                one.answer(second, result(second["params"]))
                o = one.outcome(id)
            equal(o.stdout, "{'twice': 8} {'twice': 10}\n")
            equal(other.outcome(same).stdout, o.stdout)
            equal(other.asked, [])


@test(private=True)
def by_standard_input_and_output(ctx):
    for revision in BOTH:
        client = Client.spawn([os.path.join(ctx.options.build, "mcp-pythond"), "--stdio"], None)
        client.__class__ = Owner
        with client as c:
            c.begin_as(revision, declared(revision))
            for text in LOOP, GATHER:
                equal(printed(c, text)[0], DOUBLED)


@test(private=True)
def by_http(ctx):
    with ctx.private(HTTP) as s:
        with Session(place_of(s), capabilities=declared(None)) as c:
            for text in LOOP, GATHER:
                connection, message = c.fresh(), c.message("tools/call", script(text))
                c.send(connection, message)
                equal(connection.read_head().status, 200)
                for event in connection.events():
                    if event.get("method") == METHOD:
                        equal(c.post({"jsonrpc": "2.0", "id": event["id"],
                                      "result": result(event["params"])}).status, 202)
                equal(event["result"]["structuredContent"]["stdout"], DOUBLED)
                connection.close()
        with Session(place_of(s), MODERN) as c:
            meta = {"_meta": {"io.modelcontextprotocol/clientCapabilities": declared(MODERN)}}
            for text in LOOP, GATHER:
                told = c.post(c.message("tools/call", {**script(text), **meta})).message["result"]
                while told["resultType"] == "input_required":
                    results = (result(r["params"]) for r in told["inputRequests"].values())
                    told = c.post(c.message("tools/call", {**script(text), **back(told, *results),
                                                           **meta})).message["result"]
                equal(told["structuredContent"]["stdout"], DOUBLED)


@test(private=True)
def a_legacy_http_client_that_goes_away_is_not_waited_for(ctx):
    """Its session may come back for the answer, and its call ends with the bound of the call."""
    with Records(ctx) as log, ctx.private(HTTP + log.config + "[tool-calls]\nseconds = 1\n") as s:
        with Session(place_of(s), capabilities=declared(None)) as c:
            connection = c.fresh()
            c.send(connection, c.message("tools/call", script(ONE, timeout_seconds=600)))
            connection.read_head()
            next(event for event in connection.events() if event.get("method") == METHOD)
            connection.close()
            log.wait("execution-ended")
            equal([r["status"] for r in log.of("tool-ended")], ["failed"])


if __name__ == "__main__":
    main(__doc__, modules=FEW_MODULES)
