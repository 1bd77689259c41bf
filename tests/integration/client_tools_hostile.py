#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Clients whose own tools lie, are late, or never answer: over a stream and over HTTP, in both eras. What they do
ends or spoils a call of their own, and nothing else."""


from harness import FEW_MODULES, SOMEBODY, equal, main, test
from http_client import Session, encode
from http_suite import CONFIG as HTTP, http_private, place_of
from mcpclient import LEGACY, MODERN, Outcome
from person import TASKS, Records, back, cell, script, works
from tool_owner import BOTH, METHOD, ONE, Owner, declared, owner, reply_to, result
from tool_scripts import ERRORS
from waits import until

RIGHT = result({"name": "double", "arguments": {"n": 4}})
LIE = {"content": [], "structuredContent": {"twice": 666}}
TRUE = "{'twice': 8}\n"
LATE = "did not answer in time ([tool-calls] seconds is %d); the call may have been done or not"
# One call stays without an answer, beside three others, and one comes after it.
SILENT = """
import asyncio, tools
async def one(n):
    try:
        return (await tools.client.double.aio(n=n))["twice"]
    except tools.ToolError as e:
        return str(e)
silent = asyncio.ensure_future(one(0))
print([await one(n) for n in (1, 2, 3)])
print(await silent)
print(await one(4))
"""
VALUES = "[" + ",".join(["0"] * 20001) + "]"
# What a client sends as its result, and what the script is told.
UNREADABLE = (
    (VALUES, "more than 20000 values"),
    ("[" * 65 + "]" * 65, "nested more than 64 deep"),
    ('{"content": NaN}', "not a JSON text"),
    ('{"content": [], "content": []}', "a key stands twice"),
    ('{"content": [], "structuredContent": 1e999}', "a number is out of range"),
    ('{"content": "\\ud800"}', "half of a surrogate pair"),
)


def number(params):
    return params["arguments"]["n"]


def end_of(o, seconds):
    """The outcome of SILENT."""
    equal(o.status, "ok", o)
    others, silent, last = o.stdout.splitlines()
    equal((others, last), ("[2, 4, 6]", "8"))
    assert LATE % seconds in silent, silent


@test(private=True)
def a_call_that_nobody_answers_is_withdrawn(ctx):
    """... and meanwhile the others go on."""
    for make in script, cell:
        with ctx.private("[tool-calls]\nseconds = 3\n") as s, owner(ctx, s, LEGACY[-1]) as c:
            id, asked = c.request("tools/call", make(SILENT)), {}
            for _ in range(4):
                question = c.question()
                asked[number(question["params"])] = question
                if number(question["params"]) != 0:
                    c.answer(question, result(question["params"]))
            equal((sorted(asked), c.withdrawn), ([0, 1, 2, 3], []))
            last = c.question()
            equal((number(last["params"]), c.withdrawn), (4, [asked[0]["id"]]))
            for late in asked.values():
                c.answer(late, LIE)
            c.answer(last, result(last["params"]))
            end_of(c.outcome(id), 3)
            works(c)


@test(private=True)
def a_modern_call_that_nobody_answers_holds_up_no_other(ctx):
    with Records(ctx) as log, ctx.private(log.config + "[tool-calls]\nseconds = 3\n") as s, \
            owner(ctx, s, MODERN) as c:
        call, made, silent = script(SILENT), [], None
        told = c.call(call)
        while True:
            replies = {}
            for key, request in told["inputRequests"].items():
                if number(request["params"]) == 0:
                    silent = key
                else:
                    replies[key] = result(request["params"])
                    made.append(number(request["params"]))
            if made == [1, 2, 3]:
                break
            told = c.call(call, {"requestState": told["requestState"], "inputResponses": replies})
        told = c.call(call, {"requestState": told["requestState"], "inputResponses": replies})
        equal(list(told["inputRequests"]), [silent])
        log.wait("tool-ended", 4)
        told = c.call(call, back(told, LIE))
        (request,) = told["inputRequests"].values()
        equal(number(request["params"]), 4)
        end_of(c.end(call, back(told, result(request["params"]))), 3)


@test(private=True)
def more_calls_than_can_be_asked_at_once(ctx):
    """The places of calls that are answered, or whose time is over, are used again."""
    text = "import asyncio, tools\nasync def one(n):\n" \
           "    try:\n        return (await tools.client.double.aio(n=n))['twice']\n" \
           "    except tools.ToolError:\n        return None\n" \
           "print(await asyncio.gather(*(one(n) for n in range(80))))\n"
    with ctx.private("[tool-calls]\nseconds = 2\nat_once = 40\n") as s, owner(ctx, s, LEGACY[-1]) as c:
        id, open_now, most = c.request("tools/call", script(text)), {}, 0
        for _ in range(80):
            question = c.question()
            for gone in c.withdrawn:
                open_now.pop(gone, None)
            open_now[question["id"]] = question
            most = max(most, len(open_now))
            if number(question["params"]) % 8 != 0:
                c.answer(open_now.pop(question["id"]), result(question["params"]))
        o = c.outcome(id)
        assert most <= 16, most
        equal(o.stdout, str([None if n % 8 == 0 else 2 * n for n in range(80)]) + "\n")
        works(c)


@test(private=True)
def a_task_whose_call_nobody_answers_goes_on(ctx):
    capabilities = declared(MODERN)
    capabilities["extensions"].update(TASKS["extensions"])
    text = "import time\ntime.sleep(3)\n" + ONE + "\nprint(tools.client.double(n=4))\n"
    with ctx.private("[mcp]\ntask_after_seconds = 1\n[tool-calls]\nseconds = 2\n") as s, \
            Owner.at(ctx, s.socket, MODERN, capabilities=capabilities) as c:
        made = c.call(script(text))
        equal(made["resultType"], "task")
        made_id = {"taskId": made["taskId"]}
        keys = set()

        def ended():
            now = c.ask("tasks/get", made_id)
            if now["status"] not in ("working", "input_required"):
                return now
            keys.update(now.get("inputRequests", ()))
            # The second call gets its answer, and the first one again, which is late.
            if len(keys) == 2:
                c.ask("tasks/update", {**made_id, "inputResponses": dict.fromkeys(keys, RIGHT)})
        now = until("the end of the task", ended)
        equal((now["status"], len(keys)), ("completed", 2))
        out = Outcome(now["result"], 0, True).stdout
        assert LATE % 2 in out and out.endswith(TRUE), out


def response(question, text):
    return b'{"jsonrpc": "2.0", "id": %d, "result": %s}' % (question["id"], text.encode())


def refusal(c):
    """That of a line of ours. It has no id: the one of that line is the server's."""
    def came():
        c.pump(0.1)
        return c.refused_lines
    c.until("a refusal", came)
    return c.refused_lines.pop()


def unreadable_owner(ctx, s, revision):
    """An owner that keeps errors without an id."""
    c = owner(ctx, s, revision)
    c.refused_lines, take = [], c.take_message

    def take_message(message, size):
        if "error" in message and "id" not in message:
            c.refused_lines.append(message["error"])
        else:
            take(message, size)
    c.take_message = take_message
    return c


@test(private=True)
def what_cannot_be_read_fails_its_call_at_once(ctx):
    with ctx.private() as s, unreadable_owner(ctx, s, LEGACY[-1]) as c:
        for text, says in UNREADABLE:
            id = c.request("tools/call", script(ONE))
            question = c.question()
            c.send_raw(response(question, text) + b"\n")
            o = c.outcome(id)
            assert "client.double: the client's answer cannot be read: " + says in o.stdout, o
            assert says in refusal(c)["message"]
            c.answer(question, LIE)
        works(c)


@test(private=True)
def what_shows_no_id_ends_with_its_time(ctx):
    """An array, ids twice, no id, one of another kind."""
    with ctx.private("[tool-calls]\nseconds = 1\n") as s, unreadable_owner(ctx, s, LEGACY[1]) as c:
        for form in (b'[{"jsonrpc": "2.0", "id": %d, "result": %s}]',
                     b'{"jsonrpc": "2.0", "id": %d, "id": 7, "result": %s}',
                     b'{"jsonrpc": "2.0", "no": %d, "result": %s}',
                     b'{"jsonrpc": "2.0", "id": [%d], "result": %s}'):
            id = c.request("tools/call", script(ONE))
            question = c.question()
            c.send_raw(form % (question["id"], VALUES.encode()) + b"\n")
            o = c.outcome(id)
            assert LATE % 1 in o.stdout, (form, o)
        works(c)


# ---- over HTTP ----

def begin_http(c, text, **more):
    """Its connection, the rest of its stream, and the first question."""
    connection = c.fresh()
    c.send(connection, c.message("tools/call", script(text, **more)))
    equal(connection.read_head().status, 200)
    events = connection.events()
    return connection, events, next_question(events)


def next_question(events):
    return next(event for event in events if event.get("method") == METHOD)


def answer(question, reply, **change):
    return {"jsonrpc": "2.0", "id": question["id"], "result": reply, **change}


def stdout_of(events):
    """... and what was withdrawn before it."""
    withdrawn = []
    for event in events:
        if event.get("method") == "notifications/cancelled":
            withdrawn.append(event["params"]["requestId"])
    return event["result"]["structuredContent"]["stdout"], withdrawn


def post_raw(c, body):
    with c.fresh() as connection:
        return connection.ask(headers=c.headers({}), body=body)


def lies(question):
    """Answers that are not the one, by what they are."""
    id = question["id"]
    yield "another id", answer(question, LIE, id=id + 1)
    yield "id 0", answer(question, LIE, id=0)
    yield "a negative id", answer(question, LIE, id=-id)
    yield "the id as a text", answer(question, LIE, id=str(id))
    yield "an id that is equal in 32 bits", answer(question, LIE, id=id + (1 << 32))
    yield "a huge id", answer(question, LIE, id=(1 << 63) - 1)
    yield "no id that is known", {"jsonrpc": "2.0", "id": None, "error": {"code": 1, "message": "x"}}
    yield "an error for another id", {"jsonrpc": "2.0", "id": id + 1, "error": {"code": 1, "message": "x"}}


@test(private=True)
def http_answers_that_lie_are_nobodys(ctx):
    with ctx.private(HTTP) as s, Session(place_of(s), capabilities=declared(None)) as c, \
            Session(place_of(s), capabilities=declared(None)) as other:
        connection, events, first = begin_http(c, "import tools\nprint(tools.client.double(n=1))\n"
                                               "print(tools.client.double(n=4))\n")
        for what, lie in lies(first):
            equal(c.post(lie).status, 202, what)
        equal(other.post(answer(first, LIE)).status, 202, "of another session")
        equal(c.post(answer(first, LIE), {"Mcp-Session-Id": None}).status, 400, "without a session")
        equal(c.post(answer(first, LIE), {"Mcp-Session-Id": "no-such-session"}).status, 404, "of no session")
        equal(c.post(answer(first, LIE), {"MCP-Protocol-Version": MODERN}).status, 400, "of the other era")
        equal(c.post(answer(first, result(first["params"]))).status, 202)
        second = next_question(events)
        for again in first, {"id": first["id"] - 1}:
            equal(c.post(answer(again, LIE)).status, 202, "a second time")
        equal(c.post(answer(second, result(second["params"]))).status, 202)
        equal(stdout_of(events), ("{'twice': 2}\n" + TRUE, []))
        connection.close()
        for question in first, second:
            equal(c.post(answer(question, LIE)).status, 202, "after the end")
        assert "42" in c.stdout("print(6 * 7)")
        assert "42" in other.stdout("print(6 * 7)")


@test(private=True, root=True)
def http_answers_of_another_user_are_refused(ctx):
    with http_private(ctx, unix=True) as (_, path), Session(path, capabilities=declared(None)) as c, \
            Session(path, uid=SOMEBODY, capabilities=declared(None)) as other:
        connection, events, question = begin_http(c, ONE)
        own, other.id = other.id, c.id
        equal(other.post(answer(question, LIE)).status, 404)
        other.id = own
        equal(other.post(answer(question, LIE)).status, 202)
        equal(c.post(answer(question, result(question["params"]))).status, 202)
        assert TRUE in stdout_of(events)[0]
        connection.close()


@test(private=True)
def thousands_of_answers_to_nothing(ctx):
    with ctx.private(HTTP) as s:
        with Session(place_of(s), capabilities=declared(None)) as c:
            connection, events, question = begin_http(c, ONE)
            for i in range(1000):
                equal(c.post(answer(question, LIE, id=question["id"] + 1 + i)).status, 202)
            equal(c.post(answer(question, result(question["params"]))).status, 202)
            assert TRUE in stdout_of(events)[0]
            connection.close()
        with owner(ctx, s, LEGACY[-1]) as c:
            id = c.request("tools/call", script(ONE))
            question = c.question()
            for i in range(20000):
                c.send(answer(question, LIE, id=question["id"] + 1 + i))
            c.answer(question, result(question["params"]))
            assert TRUE in c.outcome(id).stdout


@test(private=True)
def an_http_answer_that_cannot_be_read_fails_its_call_at_once(ctx):
    with ctx.private(HTTP) as s, Session(place_of(s), capabilities=declared(None)) as c:
        for text, says in UNREADABLE:
            connection, events, question = begin_http(c, ONE)
            refused = post_raw(c, response(question, text))
            equal(refused.status, 400)
            assert "id" not in refused.message and says in refused.message["error"]["message"], refused
            out, _ = stdout_of(events)
            assert "client.double: the client's answer cannot be read: " + says in out, out
            connection.close()


@test(private=True)
def an_http_answer_beyond_all_bounds_ends_with_its_time(ctx):
    """Nothing of a body that is too large is read, so that nobody knows what it answers."""
    with ctx.private(HTTP + "body_max_bytes = 64K\n[tool-calls]\nseconds = 2\n") as s, \
            Session(place_of(s), capabilities=declared(None)) as c:
        connection, events, question = begin_http(c, ONE)
        with c.fresh() as another:
            c.send(another, answer(question, {"content": [{"type": "text", "text": "x" * (1 << 17)}]}))
            equal(another.read().status, 413)
        out, withdrawn = stdout_of(events)
        assert LATE % 2 in out and withdrawn == [question["id"]], (out, withdrawn)
        connection.close()


@test(private=True)
def an_http_call_that_nobody_answers_is_withdrawn(ctx):
    with ctx.private(HTTP + "[tool-calls]\nseconds = 2\n") as s, \
            Session(place_of(s), capabilities=declared(None)) as c:
        connection, events, question = begin_http(
            c, ERRORS + "print(error(lambda: tools.client.double(n=1)))\nprint(tools.client.double(n=4))")
        told = next(events)
        equal((told["method"], told["params"]["requestId"]), ("notifications/cancelled", question["id"]))
        second = next_question(events)
        equal(c.post(answer(question, LIE)).status, 202)
        equal(c.post(answer(second, result(second["params"]))).status, 202)
        out, withdrawn = stdout_of(events)
        assert LATE % 2 in out and out.endswith(TRUE) and not withdrawn, (out, withdrawn)
        connection.close()


@test(private=True)
def an_http_answer_that_is_cut_is_none(ctx):
    """Its client tells it once more; nor is the stream of the call needed for that."""
    with Records(ctx) as log, ctx.private(HTTP + log.config) as s, \
            Session(place_of(s), capabilities=declared(None)) as c:
        connection, events, question = begin_http(c, ONE)
        body = encode(answer(question, LIE))
        for cut in 0, 1, len(body) - 1:
            with c.fresh() as another:
                another.send(headers=c.headers({}) + [("Content-Length", str(len(body)))], body=body[:cut])
                another.reset()
        connection.reset()
        equal(c.post(answer(question, result(question["params"]))).status, 202)
        log.wait("execution-ended")
        equal([r["status"] for r in log.of("tool-ended")], ["ok"])
        assert "42" in c.stdout("print(6 * 7)")


@test(private=True)
def an_http_session_that_ends_ends_its_calls(ctx):
    with Records(ctx) as log, ctx.private(HTTP + log.config) as s:
        with Session(place_of(s), capabilities=declared(None)) as c:
            connection, _, question = begin_http(c, ONE, timeout_seconds=600)
            equal(c.end().status, 204)
            log.wait("execution-ended")
            equal([r["status"] for r in log.of("tool-ended")], ["cancelled"])
            equal(c.post(answer(question, LIE)).status, 404)
            connection.close()


@test(private=True)
def answers_for_a_script_that_has_ended(ctx):
    for revision in BOTH:
        with Records(ctx) as log, ctx.private(HTTP + log.config) as s, \
                Session(place_of(s), revision, capabilities=declared(None)) as c:
            call = script(ONE, timeout_seconds=1)
            if c.modern:
                told = ask_modern(c, call)
                log.wait("execution-ended")
                end = ask_modern(c, call, back(told, LIE))
                equal(end["structuredContent"]["status"], "timeout")
            else:
                connection, events, question = begin_http(c, ONE, timeout_seconds=1)
                for event in events:
                    pass
                equal(event["result"]["structuredContent"]["status"], "timeout")
                equal(c.post(answer(question, LIE)).status, 202)
                connection.close()
            equal([r["status"] for r in log.of("tool-ended")], ["cancelled"])
            assert "42" in c.stdout("print(6 * 7)")


# ---- ... of 2026-07-28 ----

META = {"_meta": {"io.modelcontextprotocol/clientCapabilities": declared(MODERN)}}


def modern_message(c, call, more=None):
    return c.message("tools/call", {**call, **(more or {}), **META})


def ask_modern(c, call, more=None, status=200):
    """The result, or the error if there has to be one."""
    response = c.post(modern_message(c, call, more))
    equal(response.status, status, response)
    return response.message["result" if status == 200 and "result" in response.message else "error"]


@test(private=True)
def modern_http_answers_that_lie(ctx):
    with ctx.private(HTTP) as s, Session(place_of(s), MODERN) as c, Session(place_of(s), MODERN) as other:
        call, told = script(ONE), None
        told = ask_modern(c, call)
        state = told["requestState"]
        refused = ({"requestState": state + "x"}, {"requestState": state[:-1]}, {"requestState": ""},
                   {"requestState": 1}, {"requestState": state.swapcase()})
        for more in refused:
            equal(ask_modern(other, call, {**back(told, LIE), **more})["code"], -32602, more)
        equal(ask_modern(other, script(ONE + "\n"), back(told, LIE))["code"], -32602)
        # Answers that are none, or to nothing: it is asked for again.
        for responses in ({}, [], 1, {"": LIE}, {"call-99": LIE}, {"call-0": LIE},
                          {"x%d" % i: 1 for i in range(5000)}, {key: 1 for key in told["inputRequests"]}):
            again = ask_modern(c, call, {"requestState": told["requestState"], "inputResponses": responses})
            equal(again["inputRequests"], told["inputRequests"])
            told = again
        equal(ask_modern(c, call, {**back(told, LIE), "requestState": state})["code"], -32602, "an old state")
        end = ask_modern(c, call, back(told, reply_to(told)))
        assert TRUE in end["structuredContent"]["stdout"], end
        equal(ask_modern(c, call, back(told, LIE))["code"], -32602, "a second time")
        assert "42" in c.stdout("print(6 * 7)")


@test(private=True)
def modern_http_answers_that_cannot_be_read(ctx):
    """Their request is refused, and the call can still be answered."""
    with ctx.private(HTTP) as s, Session(place_of(s), MODERN) as c:
        call = script(ONE)
        told = ask_modern(c, call)
        for text, says in UNREADABLE:
            message = modern_message(c, call, back(told, "?"))
            body = encode(message).replace(b'"?"', text.encode())
            with c.fresh() as connection:
                refused = connection.ask(headers=c.headers(message), body=body)
            equal(refused.status, 400)
            assert says in refused.message["error"]["message"], refused
        end = ask_modern(c, call, back(told, reply_to(told)))
        assert TRUE in end["structuredContent"]["stdout"], end


@test(private=True, root=True)
def modern_http_answers_of_another_user_are_refused(ctx):
    with http_private(ctx, unix=True) as (_, path), Session(path, MODERN) as c, \
            Session(path, MODERN, uid=SOMEBODY) as other:
        call = script(ONE)
        told = ask_modern(c, call)
        equal(ask_modern(other, call, back(told, LIE))["code"], -32602)
        end = ask_modern(c, call, back(told, reply_to(told)))
        assert TRUE in end["structuredContent"]["stdout"], end


@test(private=True)
def a_modern_http_client_that_goes_away(ctx):
    """While it asks, while it answers, and after it got the question."""
    with Records(ctx) as log, ctx.private(HTTP + log.config + "[tool-calls]\nseconds = 2\n") as s, \
            Session(place_of(s), MODERN) as c:
        call, ended = script(ONE, timeout_seconds=600), 0

        # The answer is cut: it is none, and comes once more.
        told = ask_modern(c, call)
        message = modern_message(c, call, back(told, LIE))
        body = encode(message)
        with c.fresh() as connection:
            connection.send(headers=c.headers(message) + [("Content-Length", str(len(body)))], body=body[:-1])
            connection.reset()
        end = ask_modern(c, call, back(told, reply_to(told)))
        assert TRUE in end["structuredContent"]["stdout"], end

        # It never comes back: the call ends with its time, and the script after it.
        ask_modern(c, call)
        log.wait("execution-ended", 2)
        equal([r["status"] for r in log.of("tool-ended")], ["ok", "failed"])

        # It leaves while the script goes on after the answer: the run is cancelled.
        going = script("import time, tools\nprint(tools.client.double(n=4))\ntime.sleep(600)\n",
                       timeout_seconds=600)
        told = ask_modern(c, going)
        with c.fresh() as connection:
            c.send(connection, modern_message(c, going, back(told, reply_to(told))))
            log.wait("tool-ended", 3)
            connection.reset()
        log.wait("execution-ended", 3)
        equal([r["status"] for r in log.of("execution-ended")][2:], ["cancelled"])
        assert "42" in c.stdout("print(6 * 7)")


if __name__ == "__main__":
    main(__doc__, modules=FEW_MODULES)
