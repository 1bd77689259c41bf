#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs in the background: the handle, the tool job, what is kept of them and for whom.

A suite of tests/integration/run."""

import contextlib
import os
import re
import time

from harness import FEW_MODULES, SOMEBODY, Skip, equal, main, test
from mcpclient import MODERN, Client
from waits import until

try:
    import jsonschema
except ImportError:
    jsonschema = None

# Writes, and goes on only when it is told so by nobody: for tests that look at what runs.
HANGS = "import time\nprint('begun', flush=True)\nwhile True: time.sleep(60)"
GONE = "there is no such job: its time is over, or the service was restarted, which ends all jobs"
SAME = ("status", "stdout", "stderr", "result", "error", "exit_code", "truncated", "displays",
        "files", "omitted")


def start(client, script, **arguments):
    o = client.run(script, background=True, **arguments)
    equal((o.status, o.is_error), ("running", False), "status")
    handle = o.structured["job"]
    assert handle in o.text, o.text
    assert re.fullmatch("j-[a-kmnp-z2-9]{10}", handle), handle
    return handle


def call(client, wait_s=None, **arguments):
    return client.ask("tools/call", {"name": "job", "arguments": arguments}, wait_s)


def job(client, id, action, **arguments):
    result = call(client, id=id, action=action, **arguments)
    assert "structuredContent" in result, result
    s = result["structuredContent"]
    equal((s["job"], s["tool"]), (id, "run_script"))
    return s, result


def text_of(result):
    return "".join(c["text"] for c in result["content"] if c["type"] == "text")


def wait_output(ctx, client, id, ends="begun\n"):
    """Until the job has written this."""
    until("the output %r" % ends, lambda: call(client, id=id, action="output")["structuredContent"][
        "output"]["text"].endswith(ends), ctx.seconds(60))


def refused(client, **arguments):
    result = call(client, **arguments)
    assert result["isError"] is True and "structuredContent" not in result, result
    return text_of(result)


def finish(ctx, client, id):
    s, result = job(client, id, "wait", wait_seconds=min(300, ctx.seconds(60)))
    equal(s["state"], "failed" if s["answer"]["error"] else "done")
    return s, result


@test
def answers_as_the_call_would_have(ctx):
    scripts = ["print('out')\nimport sys\nprint('err', file=sys.stderr)\n[1, 2]",
               "1/0", "raise SystemExit(3)", "open('a.txt', 'w').write('x')",
               "display({'a': 1})\nNone", "x = 'a' * 3_000_000\nprint(x)"]
    with ctx.client() as client:
        for script in scripts:
            plain = client.run(script)
            s, result = finish(ctx, client, start(client, script))
            for key in SAME:
                got, want = s["answer"][key], plain.structured[key]
                if key == "files":	# the uri names the execution
                    got, want = ([{k: v for k, v in f.items() if k != "uri"} for f in files]
                                 for files in (got, want))
                equal(got, want, "%s of %.40r" % (key, script))
            equal(result["isError"], plain.is_error, "isError")
            equal([c["type"] for c in result["content"]],
                  [c["type"] for c in plain.raw["content"]], "blocks")
            assert text_of(result).count("[job ") == 1, text_of(result)


@test
def files_of_a_job_can_be_read(ctx):
    with ctx.client() as client:
        s, _ = finish(ctx, client, start(client, "open('a.txt', 'w').write('left')"))
        read = client.ask("resources/read", {"uri": s["answer"]["files"][0]["uri"]})
        equal(read["contents"][0]["text"], "left")


@test
def output_is_told_once(ctx):
    """In pieces, by offsets, while it is written: all of it, each byte once."""
    script = ("import sys, time\n"
              "for i in range(40):\n"
              "    print('%04d é€ %s' % (i, 'x' * 4000), flush=True)\n"
              "    sys.stderr.write('e%04d\\n' % i)\n"
              "    time.sleep(0.005)\n")
    with ctx.client() as client:
        id = start(client, script)
        got, offset, state, pieces = "", 0, "running", 0
        while state == "running" or offset < total:	# the script ends
            s, _ = job(client, id, "output", offset=offset, wait_seconds=10)
            state, total, o = s["state"], s["output_bytes"], s["output"]
            equal((o["offset"], o["missed"]), (offset, 0))
            equal(o["next_offset"] - o["offset"], len(o["text"].encode()), "bytes")
            assert len(o["text"].encode()) <= 65536
            got, offset, pieces = got + o["text"], o["next_offset"], pieces + 1
        equal(got.count("�"), 0, "broken characters")
        lines = got.splitlines()
        equal([n for n in lines if n[0] != "e"], ["%04d é€ %s" % (i, "x" * 4000) for i in range(40)])
        equal([n for n in lines if n[0] == "e"], ["e%04d" % i for i in range(40)])
        assert pieces > 2, pieces
        s, _ = job(client, id, "output", offset=offset)
        equal((s["output"]["text"], s["output"]["next_offset"]), ("", offset), "at the end")
        s, _ = job(client, id, "output")
        equal(s["output"]["text"], got.encode()[:65536].decode(errors="ignore"), "again")


@test
def old_output_is_missed_and_said(ctx):
    with ctx.client() as client:
        id = start(client, "import sys\nfor i in range(3000):\n    print('%06d' % i, 'x' * 992)")
        s, result = finish(ctx, client, id)
        equal(s["output_bytes"], 3000 * 1000)
        s, result = job(client, id, "output")
        o = s["output"]
        equal(o["missed"], o["offset"], "missed")
        assert 1 << 20 >= s["output_bytes"] - o["offset"] >= (1 << 20) - 1000, o["offset"]
        assert "not kept any more" in text_of(result), text_of(result)[:200]
        s, _ = job(client, id, "output", offset=s["output_bytes"] - 1000)
        equal(s["output"]["text"], "002999 " + "x" * 992 + "\n")
        s, _ = job(client, id, "output", offset=1 << 50)
        equal((s["output"]["text"], s["output"]["offset"]), ("", 3000 * 1000), "past the end")


@test
def it_outlives_its_connection(ctx):
    with ctx.client() as client:
        id = start(client, "import time\nprint('a', flush=True)\ntime.sleep(1)\nprint('b')\n'end'")
    with ctx.client() as client:
        s, _ = finish(ctx, client, id)
        equal((s["answer"]["stdout"], s["answer"]["result"]["repr"]), ("a\nb\n", "'end'"))
        assert 0 < s["kept_seconds"] <= 3600, s["kept_seconds"]
        s, _ = job(client, id, "wait")
        equal(s["answer"]["stdout"], "a\nb\n", "told again")
        s, _ = job(client, id, "status")
        equal((s["answer"], s["output"], s["state"]), (None, None, "done"))


@test
def output_is_read_once_in_text(ctx):
    """What action output has passed on, the text of the answer does not repeat; the rest it has."""
    with ctx.client() as client:
        id = start(client, "print('first line')\nprint('second line')\n'value'")
        s, result = finish(ctx, client, id)
        text = text_of(result)
        assert text.index("first line") < text.index("second line") < text.index("'value'"), text
        equal(call(client, id=id, action="output")["structuredContent"]["output"]["text"], "first line\nsecond line\n")
        s, result = finish(ctx, client, id)
        text = text_of(result)
        assert "first line" not in text and "second line" not in text and "'value'" in text, text
        equal(s["answer"]["stdout"], "first line\nsecond line\n", "the structured form is whole")
        id = start(client, "print('first line', flush=True)\nimport time\ntime.sleep(1.5)\nprint('second line')")
        wait_output(ctx, client, id, "first line\n")
        s, result = finish(ctx, client, id)
        text = text_of(result)
        assert "first line" not in text and "second line" in text, text
        assert s["output"] is None and "next offset" not in text, text


@test(private=True)
def jobs_are_listed(ctx):
    """Those of the caller, whatever has become of them, oldest first."""
    with ctx.private() as service, ctx.client(path=service.socket) as client:
        assert "There are no jobs" in text_of(call(client, action="list"))
        ids = [start(client, HANGS), start(client, "1/0"), start(client, "1")]
        wait_output(ctx, client, ids[0])
        for id in ids[1:]:
            finish(ctx, client, id)
        tool = {tool["name"]: tool for tool in client.ask("tools/list")["tools"]}["job"]
        assert "required" not in tool["inputSchema"], tool["inputSchema"]
        assert "no arguments: all jobs" in tool["description"], tool
        result = call(client)  # as with action="list"
        equal([call(client, id=ids[0])["structuredContent"]["state"]], ["running"], "id alone is status")
        equal(len(call(client, action="list")["structuredContent"]["jobs"]), 3)
        jobs = result["structuredContent"]["jobs"]
        equal([(one["job"], one["state"], one["output_bytes"], one["tool"]) for one in jobs],
              list(zip(ids, ("running", "failed", "done"), (6, jobs[1]["output_bytes"], 0), ["run_script"] * 3)))
        for id, state in zip(ids, ("running", "failed", "done")):
            assert "[job %s: %s, " % (id, state) in text_of(result), text_of(result)
        if os.getuid() == 0:
            with ctx.client(path=service.socket, uid=SOMEBODY) as other:
                equal(call(other, action="list")["structuredContent"]["jobs"], [])


@test
def waiting_has_a_bound(ctx):
    with ctx.client() as client:
        id = start(client, HANGS)
        began = time.monotonic()
        s, _ = job(client, id, "wait", wait_seconds=0.3)
        assert 0.29 <= time.monotonic() - began < ctx.seconds(10), time.monotonic() - began
        equal((s["state"], s["kept_seconds"], s["answer"]), ("running", None, None))
        wait_output(ctx, client, id)
        # Output is collected for the whole time, and not returned at its first line.
        began = time.monotonic()
        s, _ = job(client, id, "output", wait_seconds=0.3)
        assert time.monotonic() - began >= 0.29, time.monotonic() - began
        equal(s["output"]["text"], "begun\n")
        s, _ = job(client, id, "output", offset=6, wait_seconds=0.2)
        equal((s["output"]["text"], s["output"]["next_offset"]), ("", 6))
        job(client, id, "cancel")


@test
def cells_run_there_too(ctx):
    with ctx.client() as client:
        def repl(**arguments):
            return client.ask("tools/call", {"name": "run_repl", "arguments": arguments}, ctx.seconds(60))

        begun = repl(code="print('begun')\nx = 6", background=True)["structuredContent"]
        equal(begun["status"], "running")
        assert begun["session"].startswith("r-"), begun
        done = call(client, id=begun["job"], action="wait",
                    wait_seconds=min(300, ctx.seconds(60)))["structuredContent"]
        equal((done["tool"], done["state"]), ("run_repl", "done"))
        answer = done["answer"]
        equal((answer["status"], answer["stdout"], answer["state"]), ("ok", "begun\n", "kept"))
        equal(begun["session"], answer["session"], "the session is named at once")
        after = repl(code="x * 7", session=answer["session"])["structuredContent"]
        equal(after["result"]["repr"], "42", "the session is there for others")


def notes_of(client, number):
    """What a client was told, once there are so many notes."""
    client.until("%d notes" % number, lambda: len(client.notices) >= number)
    notes = [n["params"] for n in client.notices]
    values = [n["progress"] for n in notes]
    equal(values, sorted(set(values)), "the numbers grow")
    return [n["message"] for n in notes]


def inspects_at_once(ctx, client, session, behind):
    """The variables as they were before the call that runs."""
    s = client.ask("tools/call", {"name": "run_repl", "arguments": {"session": session, "inspect": True}},
                   ctx.seconds(60))["structuredContent"]
    equal((s["status"], s["state"]), ("ok", None), "inspect")
    assert ("x", "1") in [(v["name"], v["repr"]) for v in s["result"]["json"]], s["result"]
    assert "before %s, which runs now" % behind in s["state_text"], s["state_text"]


@test
def the_wait_is_a_part_of_the_time(ctx):
    """A cell that has waited for its turn has the rest of its time."""
    with ctx.client() as client:
        session = client.ask("tools/call", {"name": "run_repl", "arguments": {"code": "import time"}})["structuredContent"]["session"]

        def cell(code, seconds):
            id = client.request("tools/call", {"name": "run_repl", "arguments": {
                "code": code, "session": session, "timeout_seconds": seconds}})
            client.flush()
            return id
        ids = [cell("time.sleep(3)", 60), cell("try:\n    time.sleep(300)\nfinally:\n    kept = 1", 20)]
        equal(client.wait(ids[0], ctx.seconds(60))["structuredContent"]["status"], "ok")
        s = client.wait(ids[1], ctx.seconds(60))["structuredContent"]
        equal(s["status"], "timeout")
        waited = re.search(r"It had waited (\d+) s for its turn", s["state_text"])
        assert waited and 2 <= int(waited[1]), s["state_text"]
        assert s["duration_ms"] <= 20_500 - 1000 * int(waited[1]), s["duration_ms"]


@test
def a_look_waits_for_the_list_of_a_job(ctx):
    """A job lists the variables before it begins; a look that comes in this moment is not refused."""
    with ctx.client(timeout=300) as client:
        for _ in range(4):
            begun = client.request("tools/call", {"name": "run_repl", "arguments": {"code": "x = 1"}})
            session = client.wait(begun)["structuredContent"]["session"]
            # Both calls are there before the list is.
            ids = [client.request("tools/call", {"name": "run_repl", "arguments": {"session": session, **more}}) for more in (
                {"code": "import time\ntime.sleep(300)", "background": True, "timeout_seconds": 400}, {"inspect": True})]
            job = client.wait(ids[0])["structuredContent"]["job"]
            seen = client.wait(ids[1], ctx.seconds(60))
            equal(seen["structuredContent"]["status"], "ok", seen)
            assert "before job " + job in text_of(seen) and "'x'" in repr(seen), seen
            call(client, id=job, action="cancel")


@test
def a_session_that_is_watched_is_seen_behind_short_calls(ctx):
    """Who looks for the first time behind a short call is told so; then the variables are listed before cells."""
    with ctx.client() as client, ctx.client() as watcher:
        def cell(client, **arguments):
            id = client.request("tools/call", {"name": "run_repl", "arguments": {"timeout_seconds": 60, **arguments}})
            client.flush()
            return id
        session = client.wait(cell(client, code="import time\nx = 1"), ctx.seconds(60))["structuredContent"]["session"]
        for n in range(3):
            held = client.request("tools/call", {"name": "run_repl", "_meta": {"progressToken": n}, "arguments": {
                "code": "print('BEGUN', flush=True)\ntime.sleep(300)", "session": session, "timeout_seconds": 60}})
            client.until("its output", lambda: "BEGUN" in repr(client.notices))
            if n == 0:
                look = watcher.wait(cell(watcher, session=session, inspect=True), ctx.seconds(60))
                equal(look["structuredContent"]["status"], "session_busy")
                assert re.search(r"busy with another call, which began \d+ s ago\. Its variables", text_of(look)), look
            else:
                inspects_at_once(ctx, watcher, session, "another call")
            client.cancel(held)
            client.notices.clear()
        call_repl = client.wait(cell(client, session=session, code="x", close=True), ctx.seconds(60))
        equal(call_repl["structuredContent"]["result"]["repr"], "1")


@test(private=True)
def a_notebook_has_no_list_before_each_cell(ctx):
    """It allows each cell ten minutes, and shows the output; a list takes as long as a short cell."""
    with ctx.private() as service, ctx.client(path=service.socket) as client:
        def cell(**meta):
            before = service.log().count("execution-started")
            s = client.ask("tools/call", {"name": "run_repl", "_meta": meta, "arguments": {
                "session": session, "code": "x", "timeout_seconds": 400}})["structuredContent"]
            equal(s["result"]["repr"], "1")
            return service.log().count("execution-started") - before
        session = client.ask("tools/call", {"name": "run_repl", "arguments": {
            "code": "x = 1"}})["structuredContent"]["session"]
        equal(cell(), 2)
        equal(cell(progressToken=1), 2)
        equal(cell(progressToken=1, **{"mcp-pythond/stream": True}), 1)


@test
def who_waits_behind_a_cell_is_told(ctx):
    """At once, and each ten seconds, if there is a token; in both eras."""
    def cell(client, token=None, **arguments):
        return client.request("tools/call", dict(
            {"name": "run_repl", "arguments": {"timeout_seconds": 300, **arguments}},
            **({"_meta": {"progressToken": token}} if token else {})))

    with contextlib.ExitStack() as stack:
        first, legacy, silent = (stack.enter_context(ctx.client(timeout=300)) for _ in range(3))
        modern = stack.enter_context(ctx.client(revision=MODERN, timeout=300))
        session = first.wait(cell(first, code="x = 1", token="t"))["structuredContent"]["session"]
        equal(list(first.notices), [], "who does not wait is told nothing")
        job = first.wait(cell(first, code="import time\ntime.sleep(300)", session=session,
                              background=True))["structuredContent"]["job"]
        waits = "waits for another call in this session (job %s)" % job
        ids = []
        for client, token, words in ((legacy, "a", waits), (modern, 7, waits + ", and for 1 more"),
                                     (silent, None, None)):
            ids.append((client, cell(client, token, code="x * 7", session=session)))
            client.flush()
            if words:
                equal(notes_of(client, 1), [words])
        # Behind a job they are not left waiting: the answer says what to do.
        for client, id in ids:
            result = client.wait(id, ctx.seconds(60))
            equal(result["structuredContent"]["status"], "session_busy")
            assert job in text_of(result) and "nothing was run" in text_of(result), result
        inspects_at_once(ctx, first, session, "job " + job)
        call(first, id=job, action="cancel")
        equal(list(silent.notices), [])
        # Behind another call they wait longer.
        behind = cell(first, code="import time\ntime.sleep(300)", session=session)
        first.flush()
        waits = "waits for another call in this session"
        for client in (legacy, modern):
            client.notices.clear()
        ids = []
        for client, token in ((legacy, "c"), (modern, 8)):
            ids.append((client, cell(client, token, code="x * 7", session=session)))
            client.flush()
            notes_of(client, 1)
        more = re.fullmatch(re.escape(waits) + r"; (\d+) s until now", notes_of(legacy, 2)[1])
        assert more and int(more[1]) >= 10, legacy.notices
        inspects_at_once(ctx, first, session, "another call")
        # The wait is a part of the time that the client has named: it gets its answer within that.
        result = first.wait(cell(first, code="1", session=session, timeout_seconds=2), ctx.seconds(60))
        equal(result["structuredContent"]["status"], "session_busy", "a short call")
        assert re.search("busy with other calls for [12] s", text_of(result)) or ctx.slow > 1, text_of(result)
        first.cancel(behind)
        first.flush()
        for client, id in ids:
            equal(client.wait(id, ctx.seconds(60))["structuredContent"]["result"]["repr"], "7")

        # A branch has a handle and turns of its own, and runs in the same worker.
        branch = first.wait(cell(first, code="1", session=session, branch=True))["structuredContent"]["session"]
        job = first.wait(cell(first, code="import time\nprint('begun')\ntime.sleep(300)", session=branch,
                              background=True))["structuredContent"]["job"]
        wait_output(ctx, first, job)
        legacy.notices.clear()
        id = cell(legacy, "b", code="x * 8", session=session)
        legacy.flush()
        equal(notes_of(legacy, 1)[0], "waits for a cell in a branch of this session")
        result = legacy.wait(id, ctx.seconds(60))
        equal(result["structuredContent"]["status"], "session_busy", "behind a job of a branch")
        assert job in text_of(result), result
        result = first.wait(cell(first, code="1", session=session, branch=True), ctx.seconds(60))
        equal(result["structuredContent"]["status"], "session_busy", "a copy is not begun")
        call(first, id=job, action="cancel")
        result = legacy.wait(cell(legacy, code="x * 8", session=session), ctx.seconds(60))
        equal(result["structuredContent"]["result"]["repr"], "8")


@test(private=True)
def who_waits_is_told_of_no_job_that_is_forgotten(ctx):
    """A cancelled cell has its turn for two more seconds; its job may be forgotten before."""
    stays = ("while True:\n    try:\n        print('begun', flush=True)\n"
             "        while True: pass\n    except KeyboardInterrupt:\n        pass")
    with ctx.private("[mcp]\njobs_per_tenant = 1\n") as s, \
            ctx.client(path=s.socket, timeout=300) as client:
        def cell(token, **arguments):
            return client.request("tools/call", {"name": "run_repl", "arguments": dict(
                arguments, timeout_seconds=300), "_meta": {"progressToken": token}})

        session = client.wait(cell("a", code="x = 1"))["structuredContent"]["session"]
        handle = client.wait(cell("b", code=stays, session=session, background=True))[
            "structuredContent"]["job"]
        wait_output(ctx, client, handle)
        call(client, id=handle, action="cancel")
        start(client, "1")
        equal(refused(client, id=handle, action="status"), GONE)
        waiting = cell("c", code="x", session=session)
        client.flush()
        equal(notes_of(client, 1), ["waits for another call in this session"])
        equal(client.wait(waiting)["structuredContent"]["result"]["repr"], "1")


@test
def cancelling_stops_it(ctx):
    with ctx.client() as client, ctx.client() as other:
        id = start(client, HANGS)
        wait_output(ctx, client, id)
        waiting = other.request("tools/call", {"name": "job", "arguments": {
            "id": id, "action": "wait", "wait_seconds": 300}})
        other.flush()
        s, _ = job(client, id, "cancel")
        equal((s["state"], s["answer"]), ("cancelled", None))
        s = other.wait(waiting, ctx.seconds(60))["structuredContent"]
        equal((s["state"], s["answer"]), ("cancelled", None), "to one who waits")
        s, _ = job(client, id, "output")
        equal((s["state"], s["output"]["text"]), ("cancelled", "begun\n"))
        s, _ = job(client, id, "cancel")
        equal(s["state"], "cancelled", "twice")
        ctx.healthy(client)


@test
def a_cancelled_job_leaves_its_session(ctx):
    """Also if it has begun the session: its handle was in the answer that named the job."""
    with ctx.client(timeout=ctx.seconds(60)) as client:
        def cell(**arguments):
            return client.ask("tools/call", {"name": "run_repl", "arguments": arguments})["structuredContent"]

        for more in {"session": cell(code="n = 0")["session"]}, {}:
            begun = cell(code="n = 7\nprint('begun', flush=True)\nwhile True: pass", background=True, **more)
            wait_output(ctx, client, begun["job"])
            equal(call(client, id=begun["job"], action="cancel")["structuredContent"]["state"], "cancelled")
            s = cell(session=begun["session"], code="n")
            equal((s["status"], (s["result"] or {}).get("repr")), ("ok", "7"), repr(s))
            cell(session=begun["session"], close=True)


@test
def of_a_bar_its_last_state_is_read(ctx):
    """Also while the job runs; the structured output is all that it wrote."""
    script = ("import time\nfor i in range(200): print('\\rat %d' % i, end='', flush=True)\n"
              "print('\\nbegun', flush=True)\ntime.sleep(300)")
    with ctx.client() as client:
        id = start(client, script)
        wait_output(ctx, client, id)
        s, result = job(client, id, "output")
        assert s["output"]["text"].count("at ") == 200, s
        assert text_of(result).startswith("at 199\nbegun\n[job "), result
        job(client, id, "cancel")


@test(private=True)
def a_job_has_the_time_of_the_operator(ctx):
    """Without timeout_seconds not that of a call, behind which somebody waits. The answer names it."""
    with ctx.private("[limits]\ntimeout_seconds = 1\ncpu_seconds = 1\ntimeout_max = 600\n") as service, \
            Client.connect(service.socket, "2025-11-25", timeout=ctx.seconds(60)) as client:
        slow = "import time\nend = time.time() + 2.5\nwhile time.time() < end: pass\n'whole'"
        for more, seconds, state in (({}, 600, "done"), ({"timeout_seconds": 1.5}, 1.5, "failed")):
            o = client.run(slow, background=True, **more)
            assert "It may run for %g s." % seconds in o.text, o.text
            s, _ = finish(ctx, client, o.structured["job"])
            equal((s["state"], s["answer"]["status"]), (state, "ok" if state == "done" else "timeout"))


@test
def who_waits_sees_what_it_writes(ctx):
    """As progress of the call of the tool job, line by line, and never that there is no output."""
    with ctx.client(timeout=ctx.seconds(60)) as client:
        id = start(client, "import time\nn = 0\nwhile True:\n    n += 1\n    print('line', n, flush=True)\n"
                           "    time.sleep(0.1)", timeout_seconds=300)
        waits = client.request("tools/call", {"name": "job", "arguments": {
            "id": id, "action": "wait", "wait_seconds": 300}, "_meta": {"progressToken": "a"}})
        client.flush()
        notes = notes_of(client, 3)
        assert all(re.fullmatch(r"line \d+", note) for note in notes), notes
        call(client, id=id, action="cancel")
        equal(client.wait(waits, ctx.seconds(60))["structuredContent"]["state"], "cancelled")


@test
def limits_hold_as_ever(ctx):
    with ctx.client() as client:
        s, result = finish(ctx, client, start(client, HANGS, timeout_seconds=1))
        equal((s["answer"]["status"], result["isError"]), ("timeout", True))
        equal(s["answer"]["stdout"], "begun\n")


@test
def other_tenants_see_nothing(ctx):
    if os.getuid():
        raise Skip("a second tenant needs root")
    with ctx.client() as client, ctx.client(uid=SOMEBODY) as other:
        id = start(client, HANGS)
        texts = {refused(other, id=name, action=action)
                 for name in (id, "j-" + "A" * 26, "x", "") for action in
                 ("status", "output", "wait", "cancel")}
        equal(texts, {GONE})
        s, _ = job(client, id, "status")
        equal(s["state"], "running", "afterwards")
        job(client, id, "cancel")


@test
def wrong_arguments_are_named(ctx):
    with ctx.client() as client:
        for arguments, text in (
                ({"action": "wait"}, "id is required"), ({"id": "x"}, GONE),
                ({"id": 1, "action": "wait"}, "id must be"),
                ({"id": "a\0", "action": "wait"}, "id must be"),
                ({"id": "x", "action": "stop"}, "action must be one of status, output, wait, cancel, list"),
                ({"id": "x", "action": "wait", "wait_seconds": 301}, "wait_seconds must be a number"),
                ({"id": "x", "action": "wait", "wait_seconds": "soon"}, "wait_seconds must be a number"),
                ({"id": "x", "action": "output", "offset": -1}, "offset must be"),
                ({"id": "x", "action": "output", "offset": 1.5}, "offset must be"),
                ({"id": "x", "action": "wait", "name": 1}, "name is not an argument of job")):
            assert text in refused(client, **arguments), arguments
        o = client.run("1", background="yes")
        assert o.refused and "background must be true or false" in o.text, repr(o)
        o = client.run("1", background=False)
        equal((o.status, o.result["repr"]), ("ok", "1"))
        o = client.run("1", background=True, timeout_seconds=-1)
        equal(o.status, "invalid_arguments", "told at once")


@test
def a_repeated_call_is_the_same_job(ctx):
    with ctx.client() as client:
        key = {"idempotency_key": "job-%d" % os.getpid()}
        id = start(client, "print('once')", **key)
        equal(start(client, "print('once')", **key), id)
        finish(ctx, client, id)


@test
def every_era_has_jobs(ctx):
    for revision in ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"):
        with ctx.client(revision) as client:
            o = client.run("print('out')", background=True)
            id = next(w for w in o.text.split() if w.startswith("j-")).rstrip(":")
            text = text_of(call(client, id=id, action="wait", wait_seconds=60))
            assert "stdout:\nout\n" in text and "[job " + id + ": done" in text, (revision, text)


@test
def answers_fit_their_schemas(ctx):
    if jsonschema is None:
        raise Skip("python3-jsonschema is not installed", missing=True)
    with ctx.client() as client:
        tools = {t["name"]: t for t in client.ask("tools/list")["tools"]}
        job_schema, run_schema = (tools[n]["outputSchema"] for n in ("job", "run_script"))
        o = client.run("print(1)", background=True)
        jsonschema.validate(o.structured, run_schema)
        for action in ("status", "output", "wait", "cancel"):
            s, _ = job(client, o.structured["job"], action, wait_seconds=60)
            jsonschema.validate(s, job_schema)
            if action == "wait":
                jsonschema.validate(s["answer"], run_schema)


@test(private=True)
def jobs_are_bounded(ctx):
    with ctx.private("[mcp]\njobs_per_tenant = 2\n") as service, \
            Client.connect(service.socket, "2025-11-25", timeout=ctx.seconds(60)) as client:
        first, second = start(client, HANGS), start(client, HANGS)
        o = client.run("1", background=True)
        equal((o.status, o.is_error), ("too_many_jobs", True))
        assert "as many jobs run as may" in o.text, o.text
        job(client, first, "cancel")
        third = start(client, "3")
        equal(refused(client, id=first, action="status"), GONE, "the one that was over")
        finish(ctx, client, third)
        job(client, second, "cancel")
        # The one whose answer was given makes room, not the older one.
        start(client, "4")
        equal(refused(client, id=third, action="status"), GONE, "the one that was seen")
        job(client, second, "status")


@test(private=True)
def jobs_expire(ctx):
    with ctx.private("[mcp]\njob_seconds = 3\n") as service, \
            Client.connect(service.socket, "2025-11-25", timeout=ctx.seconds(60)) as client:
        id = start(client, "1")
        finish(ctx, client, id)
        until("it is gone", lambda: "structuredContent" not in call(
            client, id=id, action="output", offset=0))
        equal(refused(client, id=id, action="wait"), GONE)


@test(private=True)
def what_is_kept_is_bounded(ctx):
    """Old answers go for new ones; what runs is charged with all that may be kept of it."""
    conf = "[mcp]\njob_bytes = 2M\n[limits]\noutput_kb = 512\n"
    with ctx.private(conf) as service, \
            Client.connect(service.socket, "2025-11-25", timeout=ctx.seconds(60)) as client:
        ids = []
        for i in range(4):	# each keeps half a MiB of output, and its answer twice
            ids.append(start(client, "print('x' * 500_000)"))
            finish(ctx, client, ids[-1])
        equal(refused(client, id=ids[0], action="status"), GONE, "the oldest")
        job(client, ids[-1], "status")
        running = [start(client, HANGS) for _ in range(4)]
        equal(client.run("1", background=True).status, "too_many_jobs")
        for id in running:
            job(client, id, "cancel")


@test(private=True)
def the_service_ends_with_jobs_running(ctx):
    with ctx.private() as service, \
            Client.connect(service.socket, "2025-11-25", timeout=ctx.seconds(60)) as client:
        id = start(client, HANGS)
        wait_output(ctx, client, id)
        assert 'job-end' not in service.log()


@test(private=True)
def none_where_there_are_to_be_none(ctx):
    with ctx.private("[mcp]\njobs_per_tenant = 0\n") as service, \
            Client.connect(service.socket, "2025-11-25", timeout=ctx.seconds(60)) as client:
        equal(client.run("1", background=True).status, "too_many_jobs")
        equal(client.run("1").status, "ok")


main(__doc__, modules=FEW_MODULES)
