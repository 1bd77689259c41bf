#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Scripts that ask their user for input, in the three shapes of asking: a request of the server's,
input_required with a sealed state, a task; what may happen while it waits; and scripts that lie."""

import contextlib
import os
import re
import signal
import subprocess
import tempfile

import forged
from harness import FEW_MODULES, SOMEBODY, equal, main, test
from mcpclient import LEGACY, MODERN, Outcome
from person import (FORM, TASKS, Person, Records, back, begin, cell, line, script, shown, shown_in,
                    works)
from waits import until, until_equal

ALLOW = "[policy]\ninput = allow\n"
NAME = "name = input('Your name? ')\nprint('Hello,', name)\n"
HELLO = "Your name? Hello, Ada\n"
TELL_END = "try:\n    print(repr(input()))\nexcept EOFError as e:\n    print('EOF', e)\n"
END = "EOF EOF when reading a line\n"


# ---- who may ask ----

@test(private=True)
def without_policy_nothing_is_asked(ctx):
    """As ever: the end of the file."""
    for config in ("", "[policy]\ninput = deny\n", "[policy]\npreset = open\ninput = deny\n"):
        with ctx.private(config) as s, Person.at(ctx, s.socket) as c:
            o = c.run("print(input)\n" + NAME)
            equal((o.status, o.error["type"]), ("error", "EOFError"))
            equal(o.error["message"], "EOF when reading a line")
            equal(o.stdout, "<built-in function input>\nYour name? ")
            equal(c.run(NAME, stdin="Ada\n").stdout, HELLO)
            assert not c.asked, c.asked
            tools = c.ask("tools/list")["tools"]
            assert "input()" not in tools[0]["description"], tools[0]


@test(private=True)
def clients_without_forms_are_not_asked(ctx):
    with ctx.private(ALLOW) as s:
        for revision in LEGACY:
            with ctx.client(revision, path=s.socket) as c:
                equal(c.run(TELL_END).stdout, END)
        for capabilities in ({}, {"sampling": {}}, {"elicitation": {"url": {}}}):
            with Person.at(ctx, s.socket, MODERN, capabilities=capabilities) as c:
                equal(c.end(script(TELL_END)).stdout, END)


@test(private=True, root=True)
def tenants_have_their_own_word(ctx):
    with ctx.private("[tenant uid:%d]\npolicy.input = allow\n" % SOMEBODY) as s:
        with Person.at(ctx, s.socket) as c:
            equal(c.run(TELL_END).stdout, END)
        with Person.at(ctx, s.socket, uid=SOMEBODY) as c:
            id = begin(c, NAME)
            c.answer(c.question(), line("Ada"))
            equal(c.outcome(id).stdout, HELLO)


@test(private=True)
def in_the_background_nobody_is_asked(ctx):
    with ctx.private(ALLOW) as s, Person.at(ctx, s.socket) as c:
        job = c.outcome(begin(c, TELL_END, background=True)).structured["job"]
        done = c.ask("tools/call", {"name": "job", "arguments": {
            "id": job, "action": "wait", "wait_seconds": ctx.seconds(60)}})
        assert "EOF when reading a line" in str(done), done
        assert not c.asked


# ---- a request of the server's ----

@test(private=True)
def a_legacy_client_is_sent_a_request(ctx):
    with ctx.private(ALLOW) as s:
        for revision in LEGACY[2:]:
            with Person.at(ctx, s.socket, revision) as c:
                assert "input()" in c.ask("tools/list")["tools"][0]["description"]
                id = begin(c, NAME)
                params = (asked := c.question())["params"]
                equal(params.get("mode"), "form" if revision == LEGACY[3] else None)
                ours, _, quoted = params["message"].partition("\n\n")
                assert ours.startswith("A Python script that is running for you (run_script, x-")
                assert "passwords" in ours, ours
                equal(quoted, "> Your name? ")
                equal(list(params["requestedSchema"]["properties"]), ["line"])
                c.answer(asked, line("Ada \u00e9\u2028"))
                o = c.outcome(id)
                equal((o.status, o.stdout), ("ok", "Your name? Hello, Ada \u00e9\u2028\n"))


@test(private=True)
def given_input_comes_first(ctx):
    with ctx.private(ALLOW) as s, Person.at(ctx, s.socket) as c:
        id = begin(c, "print([input(), input('b'), input('c')])", stdin="1\n2\n")
        c.answer(c.question(), line("3"))
        equal(c.outcome(id).stdout, "bc['1', '2', '3']\n")
        assert not c.asked


@test(private=True)
def what_people_reply(ctx):
    """A line, or none: then it is the end of the file."""
    smiles = "\U0001f600" * 4096
    with ctx.private(ALLOW) as s, Person.at(ctx, s.socket) as c:
        for result, want in (
                (line(""), "''\n"), ({"action": "accept", "content": {}}, "''\n"),
                ({"action": "accept"}, "''\n"), (line("one\ntwo"), "'one'\n"),
                (line("a\rb"), "'a'\n"), (line(smiles), "'%s'\n" % smiles),
                (line("x" * 4097), END), ({"action": "decline"}, END),
                ({"action": "cancel"}, END), (line(7), END), ({"action": "perhaps"}, END),
                ({"action": "accept", "content": ["x"]}, END), ({}, END)):
            id = begin(c, TELL_END)
            c.answer(c.question(), result)
            equal(c.outcome(id).stdout, want, str(result)[:60])
        id = begin(c, TELL_END)
        c.send({"jsonrpc": "2.0", "id": c.question()["id"],
                "error": {"code": -32603, "message": "no"}})
        equal(c.outcome(id).stdout, END)


@test(private=True)
def an_answer_counts_once(ctx):
    with ctx.private(ALLOW) as s, Person.at(ctx, s.socket) as c:
        id = begin(c, "print(input('a'), input('b'))")
        first = c.question()
        c.answer(first, line("1"))
        second = c.question()
        c.answer(first, line("again"))
        c.answer({"id": 12345}, line("nobody asked"))
        c.answer(second, line("2"))
        equal(c.outcome(id).stdout, "ab1 2\n")
        c.answer(second, line("late"))
        works(c)


@test(private=True)
def what_is_no_question(ctx):
    """Other ways to read see the end of the file; so does getpass, which asks for secrets."""
    with ctx.private(ALLOW) as s, Person.at(ctx, s.socket) as c:
        o = c.run("import getpass, inspect, io, os, sys\n"
                  "print(input, inspect.signature(input))\n"
                  "print(repr(sys.stdin.readline()), list(sys.stdin))\n"
                  "try:\n    getpass.getpass()\nexcept EOFError:\n    print('no secret')\n"
                  "try:\n    input(1, 2)\nexcept TypeError as e:\n    print(e)\n"
                  "sys.stdin = io.StringIO('mine\\n')\nprint(input())\n"
                  "try:\n    input()\nexcept EOFError:\n    print('mine ended')\n"
                  "sys.stdin = sys.__stdin__\nsys.stdout.flush()\n"
                  "if not os.fork():\n    try:\n        input()\n"
                  "    except EOFError:\n        print('child', flush=True)\n    os._exit(0)\n"
                  "os.wait()\n")
        equal(o.stdout, "<built-in function input> (prompt='', /)\n'' []\nno secret\n"
              "input expected at most 1 argument, got 2\nmine\nmine ended\nchild\n", o)
        assert not c.asked, c.asked


@test(private=True)
def threads_take_turns(ctx):
    text = ("import threading\nlines = []\n"
            "def ask(n):\n    lines.append((n, input(f'{n}?')))\n"
            "threads = [threading.Thread(target=ask, args=(n,)) for n in range(4)]\n"
            "[t.start() for t in threads]; [t.join() for t in threads]\nsorted(lines)\n")
    with ctx.private(ALLOW) as s, Person.at(ctx, s.socket) as c:
        id = begin(c, text)
        for _ in range(4):
            asked = c.question()
            assert not c.asked, "two at once"
            c.answer(asked, line("line " + shown(asked)[2]))
        equal(c.outcome(id).result["json"], [[n, "line %d" % n] for n in range(4)])


ALARM = ("import signal\nclass Late(Exception): pass\ndef late(*_): raise Late\n"
         "signal.signal(signal.SIGALRM, late)\n"
         "try:\n    signal.setitimer(signal.ITIMER_REAL, %g)\n    input('first')\n"
         "except Late:\n    print('late', flush=True)\n")


@test(private=True)
def a_signal_ends_the_wait(ctx):
    """The answer to what was given up is nobody else's."""
    with ctx.private(ALLOW) as s, Person.at(ctx, s.socket) as c:
        for n, seconds in enumerate((0.3, 3, 30)):
            id = c.request("tools/call", {
                **script(ALARM % seconds + "print(input('second'))", timeout_seconds=100),
                "_meta": {"progressToken": n}})
            first = c.question()
            if "first" in shown(first):		# else the machine is slow
                break
            c.answer(first, line(""))
            c.outcome(id)
        c.until("the signal", lambda: "second" in str(c.notices))
        assert not c.asked, "two at once"
        c.answer(first, line("for the first"))
        c.answer(c.question(), line("for the second"))
        equal(c.outcome(id).stdout, "firstlate\nsecondfor the second\n")


# ---- time ----

@test(private=True)
def waiting_is_not_the_scripts_time(ctx):
    limit = ctx.seconds(5)
    with ctx.private(ALLOW) as s, Person.at(ctx, s.socket) as c:
        id = begin(c, "print(input('x'))", timeout_seconds=limit)
        asked = c.question()
        # A script that asks nothing, and has the same limit, is over by now.
        equal(c.run("import time; time.sleep(1000)", timeout_seconds=limit).status, "timeout")
        c.answer(asked, line("late"))
        equal(c.outcome(id).stdout, "xlate\n")
        id = begin(c, "input('x')\nimport threading; threading.Event().wait()",
                   timeout_seconds=limit)
        c.answer(c.question(), line(""))
        equal(c.outcome(id).status, "timeout")


@test(private=True)
def a_processor_does_not_wait(ctx):
    with ctx.private(ALLOW) as s, Person.at(ctx, s.socket) as c:
        id = begin(c, "import threading\ndef spin():\n    while True: pass\n"
                   "threading.Thread(target=spin, daemon=True).start()\ninput('x')\n",
                   timeout_seconds=ctx.seconds(60), cpu_seconds=1)
        asked = c.question()
        equal(c.outcome(id).status, "cpu_limit")
        c.until("that it is not asked any more", lambda: c.withdrawn == [asked["id"]])


@test(private=True)
def each_question_has_its_time(ctx):
    with ctx.private(ALLOW + "[mcp]\nask_seconds = 1\n") as s, Person.at(ctx, s.socket) as c:
        id = begin(c, TELL_END)
        asked = c.question()
        equal(c.outcome(id).stdout, END)
        equal(c.withdrawn, [asked["id"]])


@test(private=True)
def all_questions_have_theirs(ctx):
    """What is more counts as the script's."""
    with ctx.private(ALLOW + "[limits]\ninput_seconds = 1\n") as s, \
            Person.at(ctx, s.socket) as c:
        id = begin(c, NAME, timeout_seconds=ctx.seconds(5))
        c.question()
        equal(c.outcome(id).status, "timeout")


@test(private=True)
def who_is_asked_has_seen_what_came_before(ctx):
    meta = {"progressToken": 1, "mcp-pythond/stream": True}
    params = {**script("print('before', flush=True)\n" + NAME), "_meta": meta}
    with ctx.private(ALLOW) as s:
        for revision in (LEGACY[-1], MODERN):
            with Person.at(ctx, s.socket, revision) as c:
                if c.modern:
                    equal(c.call(params)["resultType"], "input_required")
                else:
                    c.request("tools/call", params)
                    c.question()
                pieces = [n["params"]["_meta"]["mcp-pythond/output"]["text"] for n in c.notices]
                equal("".join(pieces), "before\nYour name? ", revision)


# ---- its end while somebody is asked ----

@test(private=True)
def a_cancelled_call_asks_no_more(ctx):
    with Records(ctx) as log, ctx.private(ALLOW + log.config) as s, \
            Person.at(ctx, s.socket) as c:
        id = begin(c, NAME)
        asked = c.question()
        c.cancel(id)
        c.until("that it is not asked any more", lambda: c.withdrawn == [asked["id"]])
        c.answer(asked, line("late"))
        log.wait("execution-ended")
        equal([r["result"] for r in log.of("input-ended")], ["unanswered"])
        works(c)


@test(private=True)
def a_client_that_goes_away_ends_it(ctx):
    with Records(ctx) as log, ctx.private(ALLOW + log.config) as s:
        with Person.at(ctx, s.socket) as c:
            begin(c, NAME, timeout_seconds=600)
            c.question()
        log.wait("execution-ended")
        equal([r["result"] for r in log.of("input-ended")], ["unanswered"])


@test(private=True)
def shutdown_waits_for_nobody(ctx):
    with ctx.private(ALLOW) as s, Person.at(ctx, s.socket) as c, \
            Person.at(ctx, s.socket, MODERN) as m:
        id = begin(c, NAME, timeout_seconds=600)
        c.question()
        equal(m.call(script(NAME, timeout_seconds=600))["resultType"], "input_required")
        s.process.send_signal(signal.SIGTERM)
        o = c.outcome(id, ctx.seconds(60))
        equal(o.status, "cancelled", o)
        assert "shut" in o.error["message"], o
        equal(s.process.wait(ctx.seconds(60)), 0, "exit status")


# ---- input_required ----

@test(private=True)
def a_modern_client_calls_again(ctx):
    params = script("a = input('first? ')\nb = input('second? ')\nprint(a, b)")
    with ctx.private(ALLOW) as s, Person.at(ctx, s.socket, MODERN) as c:
        first = c.call(params)
        equal((first["resultType"], shown_in(first)), ("input_required", "> first? "))
        second = c.call(params, back(first, line("one")))
        equal((second["resultType"], shown_in(second)), ("input_required", "> second? "))
        assert not set(first["inputRequests"]) & set(second["inputRequests"]), "a key twice"
        o = c.end(params, back(second, line("two")))
        equal((o.status, o.stdout), ("ok", "first? second? one two\n"))


@test(private=True)
def another_connection_may_bring_the_answer(ctx):
    with ctx.private(ALLOW) as s:
        with Person.at(ctx, s.socket, MODERN) as c:
            asked = c.call(script(NAME))
        with Person.at(ctx, s.socket, MODERN) as c:
            equal(c.end(script(NAME), back(asked, line("Ada"))).stdout, HELLO)


@test(private=True)
def a_state_is_good_once_and_for_its_call(ctx):
    with ctx.private(ALLOW) as s, Person.at(ctx, s.socket, MODERN) as c:
        params = script(NAME)
        asked = c.call(params)
        answers = back(asked, line("Ada"))
        c.refused(script(NAME + "#"), answers)
        c.refused(cell(NAME), answers)
        for state in (asked["requestState"][:-2] + "AA", "", 7, None):
            c.refused(params, {**answers, "requestState": state})
        if os.geteuid() == 0:
            with Person.at(ctx, s.socket, MODERN, uid=SOMEBODY) as other:
                other.refused(params, answers)
        equal(c.end(params, answers).stdout, HELLO)
        c.refused(params, answers)


@test(private=True)
def wrong_answers_are_asked_for_again(ctx):
    params = script(TELL_END)
    with ctx.private(ALLOW) as s, Person.at(ctx, s.socket, MODERN) as c:
        asked = c.call(params)
        for wrong in (None, 7, {}, line(1), {"action": 1}):
            asked = c.call(params, back(asked, wrong))
            equal(asked["resultType"], "input_required", wrong)
        asked = c.call(params, {"requestState": asked["requestState"]})
        equal(asked["resultType"], "input_required")
        equal(c.end(params, back(asked, {"action": "decline"})).stdout, END)


@test(private=True)
def who_comes_back_without_forms_is_not_asked(ctx):
    params = script("print(input())\n" + TELL_END)
    with ctx.private(ALLOW) as s, Person.at(ctx, s.socket, MODERN) as c:
        asked = c.call(params)
        c.capabilities = {}
        equal(c.end(params, back(asked, line("one"))).stdout, "one\n" + END)


@test(private=True)
def no_more_wait_than_may(ctx):
    with ctx.private(ALLOW + "[mcp]\nparked_per_tenant = 1\n") as s, \
            Person.at(ctx, s.socket, MODERN) as c:
        asked = c.call(script(TELL_END))
        equal(asked["resultType"], "input_required")
        equal(c.end(script(TELL_END)).stdout, END)
        equal(c.end(script(TELL_END), back(asked, line("x"))).stdout, "'x'\n")
        equal(c.call(script(TELL_END))["resultType"], "input_required")


@test(private=True)
def nobody_comes_back(ctx):
    """Then the script is ended."""
    with Records(ctx) as log, \
            ctx.private(ALLOW + "[mcp]\nask_seconds = 1\n" + log.config) as s, \
            Person.at(ctx, s.socket, MODERN) as c:
        params = script(NAME, timeout_seconds=600)
        asked = c.call(params)
        log.wait("execution-ended")
        equal(len(log.of("input-ended")), 1)
        c.refused(params, back(asked, line("late")))
        equal(c.call(params)["resultType"], "input_required")


@test(private=True)
def a_run_may_end_while_it_is_parked(ctx):
    """The returning client gets the result."""
    with Records(ctx) as log, ctx.private(ALLOW + log.config) as s, \
            Person.at(ctx, s.socket, MODERN) as c:
        for n, seconds in enumerate((0.3, 3, 30), 1):
            params = script(ALARM % seconds, timeout_seconds=100)
            asked = c.call(params)
            log.wait("execution-ended", n)
            if asked["resultType"] == "input_required":		# else the machine is slow
                break
        o = c.end(params, back(asked, line("late")))
        equal((o.status, o.stdout), ("ok", "firstlate\n"))


# ---- a task ----

def look(client, task):
    return client.ask("tasks/get", {"taskId": task["taskId"]})


def poll(client, task, status):
    def reached():
        now = look(client, task)
        if now["status"] == status:
            return now
        assert now["status"] in ("working", "input_required"), now
    return until("the task is %s" % status, reached)


@contextlib.contextmanager
def with_tasks(ctx, more=""):
    config = ALLOW + "[mcp]\ntask_after_seconds = 1\n" + more
    with ctx.private(config) as s, \
            Person.at(ctx, s.socket, MODERN, capabilities={**FORM, **TASKS}) as c:
        yield c


SLOW = "import time\ntime.sleep(5)\n"		# longer than task_after_seconds, by much


@test(private=True)
def a_task_requires_input(ctx):
    with with_tasks(ctx) as c:
        made = c.call(script(SLOW + NAME))
        equal(made["resultType"], "task")
        task = poll(c, made, "input_required")
        equal(shown_in(task), "> Your name? ")
        (key,) = task["inputRequests"]

        def update(**responses):
            c.ask("tasks/update", {"taskId": made["taskId"], "inputResponses": responses})
        update(other=line("x"))
        update(**{key: {"action": "accept", "content": 7}})
        equal(look(c, made)["status"], "input_required")
        update(**{key: line("Ada")})
        update(**{key: line("Bob")})
        done = poll(c, made, "completed")
        equal(Outcome(done["result"], 0, True).stdout, HELLO)


@test(private=True)
def a_parked_run_becomes_no_task(ctx):
    """No client could be told now. The client with the answer is."""
    with with_tasks(ctx) as c:
        params = script(NAME + SLOW)
        asked = c.call(params)
        equal(asked["resultType"], "input_required")
        # Another one takes long enough to become one meanwhile.
        poll(c, c.call(script(SLOW)), "completed")
        made = c.call(params, back(asked, line("Ada")))
        if made["resultType"] == "task":
            made = poll(c, made, "completed")["result"]
        equal(Outcome(made, 0, True).stdout, HELLO)


@test(private=True)
def a_cancelled_task_asks_no_more(ctx):
    with Records(ctx) as log, with_tasks(ctx, log.config) as c:
        made = c.call(script(SLOW + NAME, timeout_seconds=600))
        poll(c, made, "input_required")
        c.ask("tasks/cancel", {"taskId": made["taskId"]})
        equal(look(c, made)["status"], "cancelled")
        log.wait("execution-ended")
        equal([r["result"] for r in log.of("input-ended")], ["unanswered"])


# ---- sessions of run_repl ----

@test(private=True)
def cells_ask_too(ctx):
    with ctx.private(ALLOW) as s, Person.at(ctx, s.socket) as c:
        def run(client, code, answer=None, **more):
            id = client.request("tools/call", cell(code, **more))
            if answer is not None:
                asked = c.question()
                assert "(run_repl, x-" in asked["params"]["message"], asked
                c.answer(asked, line(answer))
            return client.outcome(id)
        session = run(c, "who = input('Who? ')", "Ada").structured["session"]
        o = run(c, "who, input('and? ')", "Bob", session=session)
        equal(o.result["repr"], "('Ada', 'Bob')")
        with ctx.client(path=s.socket) as other:	# it cannot be asked
            equal(run(other, "input()", session=session).error["type"], "EOFError")
        o = run(c, "ask = input\ninput = lambda: 'mine'\ninput()", session=session)
        equal(o.result["repr"], "'mine'")
        equal(run(c, "ask()", "asked", session=session).result["repr"], "'asked'")
        equal(run(c, "input()", session=session).result["repr"], "'mine'")


@test(private=True)
def a_cancelled_cell_is_interrupted(ctx):
    """KeyboardInterrupt, as at a terminal; what it asks after that nobody hears."""
    code = ("kept = []\ntry:\n    input('x')\nexcept KeyboardInterrupt:\n"
            "    try:\n        input('y')\n    except EOFError:\n        kept.append('EOF')\n"
            "    raise\n")
    with ctx.private(ALLOW) as s, Person.at(ctx, s.socket) as c:
        session = c.outcome(c.request("tools/call", cell("1"))).structured["session"]
        id = c.request("tools/call", cell(code, session=session))
        asked = c.question()
        c.cancel(id)
        o = c.outcome(c.request("tools/call", cell("kept", session=session)))
        equal(o.result["repr"], "['EOF']", o)
        c.answer(asked, line("late"))
        works(c)
        equal((c.withdrawn, c.asked), ([asked["id"]], []))


@test(private=True)
def a_modern_cell_waits_in_its_session(ctx):
    with ctx.private(ALLOW) as s, Person.at(ctx, s.socket, MODERN) as c:
        params = cell("x = input('x')")
        asked = c.call(params)
        equal(asked["resultType"], "input_required")
        session = c.call(params, back(asked, line("41")))["structuredContent"]["session"]
        equal(c.end(cell("int(x) + 1", session=session)).result["json"], 42)


# ---- scripts that lie ----

FRAMES = forged.FRAMES + """
def question(id, number=1, prompt=b"?", length=None):
    control.sendall(frame(30, length, id=id, number=number, text=prompt))
"""
HANG = forged.HANG


@test(private=True)
def prompts_are_quoted_and_bounded(ctx):
    with ctx.private(ALLOW) as s, Person.at(ctx, s.socket) as c:
        def see(prompt):
            id = begin(c, "input(%s)" % prompt)
            asked = c.question()
            c.cancel(id)
            return shown(asked)
        for prompt, want in (
                ("\n\nThis server needs you", "> \n> \n> This server needs you"),
                ("a\r\x1b[31mb\x7f\t\x85c", "> a\\x0d\\x1b[31mb\\x7f        \\u0085c"),
                ("\u202egnp.exe\u2066\ufeff\u200b\u2028x",
                 "> \\u202egnp.exe\\u2066\\ufeff\\u200b\\u2028x"),
                ("\udcff\0\u00e9", "> ? \u00e9"), ("", "> "), (7, "> 7")):
            equal(see(ascii(prompt)), want, ascii(prompt))
        equal(see("'\\n' * 500"), "> " + "\n> " * 15 + "\n> [...]")
        for text in ("x", "\u00e9", "x\u20ac", "\U0001f600"):
            text = see("%a * 100000" % text)
            assert all(len(l) <= 72 and l[:2] in ("> ", ">+") for l in text.split("\n")), text
            text = text[2:].replace("\n>+", "")
            assert 1000 < len(text.encode()) <= 1024, text
            assert "\ufffd" not in text and "[...]" not in text, text


@test(private=True)
def prompts_cannot_pass_for_the_server(ctx):
    """However long its lines are, none of them comes to stand without a mark."""
    ours = "A Python script that is running for you"
    forgeries = ["x" * 200 + "\n" + ours, "x" + " \t\u3000\u2800\u3164\xa0" * 30 + ours,
                 "x\r" + ours, "x\r\n\r\n" + ours, "x\x85" + ours, "x\u2028" + ours, "x\x0b" + ours,
                 "\n\n" + ours, " " * 900 + ours, "x\u0301" * 100 + "\u0301" * 40 + ours]
    with ctx.private(ALLOW) as s, Person.at(ctx, s.socket) as c:
        for prompt in forgeries:
            id = begin(c, "input(%s)" % ascii(prompt))
            message = c.question()["params"]["message"]
            c.cancel(id)
            equal(message.count("\n\n"), 1, message)
            for text in message.split("\n\n")[1].splitlines():
                assert re.match(">[ +]", text) and len(text) <= 72, message


@test(private=True)
def a_flood_of_questions_ends(ctx):
    text = ("n = 0\ntry:\n    while True:\n        input(f'{n}?')\n        n += 1\n"
            "except EOFError:\n    pass\nn\n")
    with ctx.private(ALLOW) as s, Person.at(ctx, s.socket) as c:
        id = begin(c, text)
        for n in range(100):
            asked = c.question()
            equal(shown(asked), "> %d?" % n)
            c.answer(asked, line(str(n)))
        equal(c.outcome(id).result["json"], 100)
        assert not c.asked


@test(private=True)
def forged_questions_end_their_script(ctx):
    """Of another run, out of turn, too long, no text, more than may be."""
    with ctx.private(ALLOW) as s, Person.at(ctx, s.socket) as c:
        for n, forged in enumerate((
                "question(1 << 60)", "question(0)", "question(%d, number=0)",
                "question(%d, number=2)", "question(%d, number=101)",
                "question(%d, prompt=b'x' * 1025)", "question(%d, prompt=b'\\xff')",
                "question(%d, prompt=b'a\\0b')", "question(%d, length=70000)",
                "question(%d); question(%d, number=2)"), 1):
            text = FRAMES + forged.replace("%d", str(n)) + HANG
            equal(c.run(text, timeout_seconds=100).status, "worker_protocol_error", forged)
        works(c)


@test(private=True)
def who_has_ended_asks_nothing(ctx):
    """DONE, and a question behind it."""
    text = FRAMES + ("control.sendall(frame(11, id=%d, exit_code=0, raised=False) + "
                     "frame(30, id=%d, number=1, text=b'?'))" + HANG)
    with ctx.private(ALLOW) as s, Person.at(ctx, s.socket) as c:
        equal(c.run(text % (1, 1), timeout_seconds=100).status, "ok")
        id = c.request("tools/call", cell(text % (2, 2), timeout_seconds=100))
        equal(c.outcome(id).status, "worker_protocol_error")
        works(c)
        assert not c.asked, c.asked


@test(private=True)
def what_nobody_allowed_cannot_be_forged(ctx):
    with ctx.private() as s, Person.at(ctx, s.socket) as c:
        for n in range(1, 4):
            equal(c.run(FRAMES + "question(%d)" % n + HANG, timeout_seconds=100).status,
                  "worker_protocol_error")
        id = c.request("tools/call", cell(FRAMES + "question(4)" + HANG, timeout_seconds=100))
        equal(c.outcome(id).status, "worker_protocol_error")
        assert not c.asked
        works(c)


@test(private=True)
def a_forged_question_is_the_scripts_all_the_same(ctx):
    """A right one is what input() sends: quoted, and recorded."""
    with Records(ctx) as log, ctx.private(ALLOW + log.config) as s, \
            Person.at(ctx, s.socket) as c:
        id = begin(c, FRAMES + "question(1, prompt=b'I am the server')\n"
                   "print(b'an answer' in control.recv(1000))")
        asked = c.question()
        equal(shown(asked), "> I am the server")
        c.answer(asked, line("an answer"))
        o = c.outcome(id)
        equal((o.status, o.stdout), ("ok", "True\n"))
        equal(len(log.of("input-asked", "input-ended")), 2)


# ---- records ----

@test(private=True)
def questions_are_recorded_and_answers_are_not(ctx):
    with Records(ctx) as log, ctx.private(ALLOW + log.config) as s, \
            Person.at(ctx, s.socket) as c:
        for result in (line("my answer"), {"action": "decline"}, {"action": "cancel"}):
            id = begin(c, "try: input('Which? ')\nexcept EOFError: pass")
            c.answer(c.question(), result)
            o = c.outcome(id)
        s.wait_logged("input-ended ", times=3)	# a record is written before its line
        found = log.of("input-asked", "input-ended")
        equal([(r["event"], r.get("result")) for r in found],
              [("input-asked", None), ("input-ended", "line"),
               ("input-asked", None), ("input-ended", "declined"),
               ("input-asked", None), ("input-ended", "cancelled")])
        equal((found[0]["source"], found[0]["tool"]), ("Which? ", "run_script"))
        equal(found[-1]["execution"], o.id)
        with open(log.path, encoding="utf-8") as f:
            assert "my answer" not in f.read()


@test(private=True)
def questions_are_counted(ctx):
    with tempfile.TemporaryDirectory() as d:
        os.chmod(d, 0o777)
        admin = os.path.join(d, "admin")
        config = "[admin]\nsocket = %s\noperators = uid:%d\n" % (admin, os.getuid())

        def counted():
            text = subprocess.run([os.path.join(ctx.options.build, "mcp-python"), "metrics",
                                   "--admin-socket", admin], capture_output=True, text=True,
                                  check=True, timeout=ctx.seconds(60)).stdout
            return dict(re.findall(r"^mcp_python_(input_\S+) (\d+)$", text, re.M))
        with ctx.private(ALLOW + config) as s, Person.at(ctx, s.socket) as c:
            results = ("line", "declined", "cancelled", "unanswered", "nobody")
            ended = {'input_ended_total{result="%s"}' % r: "0" for r in results}
            equal(counted(), {"input_asked_total": "0", **ended})
            for result in (line("x"), {"action": "decline"}, {"action": "cancel"}):
                id = begin(c, "try: input()\nexcept EOFError: pass")
                c.answer(c.question(), result)
                c.outcome(id)
            id = begin(c, NAME, timeout_seconds=600)
            c.question()
            equal(counted(), {"input_asked_total": "4", **dict(zip(ended, "11100"))})
            c.cancel(id)
            c.until("that it is not asked any more", lambda: c.withdrawn)
            until_equal("the counts", counted, {"input_asked_total": "4", **dict(zip(ended, "11110"))})


if __name__ == "__main__":
    main(__doc__, modules=FEW_MODULES)
