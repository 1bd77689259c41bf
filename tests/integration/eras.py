#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a client of a byte stream sees of tasks, subscriptions, calls sent again and resources, and
of both eras on one stream. Every message is validated against the schema of its revision.

A suite of tests/integration/run."""

import json
import os
import signal
import socket
import subprocess
import tempfile

from harness import Skip, equal, main, test
from held import find_held, held, let_go
from mcp_schema import MODERN
from mcpclient import LEGACY, Closed, id_key
from peer import META, TASKS, Peer, check
from supervisor import wait_gone
from waits import until

OWN_TOOLS = {"io.github.mcp-pythond/client-tools": {}}


def peer(ctx, uid=None):
    return Peer(ctx, uid)


def make_task(p, script, **arguments):
    result = p.wait(p.script(script, capabilities=TASKS, **arguments))["result"]
    assert result["resultType"] == "task", result
    return result["taskId"]


def task(p, id, method="tasks/get", **more):
    return p.result(method, {"taskId": id, **more}, capabilities=TASKS)


def finish(p, id):
    return until("the end of a task",
                 lambda: (state := task(p, id))["status"] != "working" and state)


def slow(name):
    """Takes as long as nobody lets it go on."""
    return held(name, after="print('slow')\n6*7")


ENDLESS = "import time\ntime.sleep(600)"


# ---- tasks ----

@test
def discover_tells_of_tasks_and_resources(ctx):
    with peer(ctx) as p:
        result = p.result("server/discover")
        assert result["capabilities"] == {
            "tools": {"listChanged": True}, "resources": {}, "prompts": {},
            "extensions": {**TASKS["extensions"], **OWN_TOOLS, "io.modelcontextprotocol/skills": {}}}, result
        assert result["supportedVersions"] == [MODERN]


@test(private=True)
def short_calls_are_answered(ctx):
    with ctx.private("[mcp]\ntask_after_seconds = 60\n") as service, Peer(service) as p:
        answer = p.wait(p.script("1+1", capabilities=TASKS))
        assert answer["result"]["resultType"] == "complete", answer


@test
def long_calls_become_tasks(ctx):
    with peer(ctx) as p:
        id = make_task(p, slow("era-long"))
        state = task(p, id)
        assert state["status"] == "working" and state["createdAt"] <= state["lastUpdatedAt"], state
        assert state["ttlMs"] >= 3600000 and state["pollIntervalMs"] > 0, state
        let_go(ctx, "era-long")
        end = finish(p, id)
        assert end["status"] == "completed" and "statusMessage" not in end, end
        assert end["result"]["structuredContent"]["stdout"] == "slow\n", end
        assert end == task(p, id), "an end changes"
        # whoever did not ask for tasks waits for the answer
        waits = p.script(slow("era-waits"))
        let_go(ctx, "era-waits")
        assert p.wait(waits)["result"]["structuredContent"]["result"]["repr"] == "42"


@test
def a_script_that_fails_is_a_completed_task(ctx):
    with peer(ctx) as p:
        id = make_task(p, held("era-fails", after="1/0"))
        let_go(ctx, "era-fails")
        end = finish(p, id)
        assert end["status"] == "completed" and end["result"]["isError"], end


@test
def a_task_outlives_its_connection_and_is_its_tenants_alone(ctx):
    with peer(ctx) as p:
        id = make_task(p, slow("era-outlives"))
    with peer(ctx) as p:
        let_go(ctx, "era-outlives")
        assert finish(p, id)["status"] == "completed"
        if os.getuid() == 0:
            with peer(ctx, uid=1) as stranger:
                for method in ("tasks/get", "tasks/cancel", "tasks/update"):
                    params = {"taskId": id, "inputResponses": {}}
                    assert stranger.code(method, params, capabilities=TASKS) == -32602
                stranger.send("subscriptions/listen", {"notifications": {"taskIds": [id]}},
                              capabilities=TASKS)
                told = stranger.notice("notifications/subscriptions/acknowledged")
                assert told["notifications"] == {}, told


@test
def a_task_is_cancelled_once(ctx):
    with peer(ctx) as p:
        id = make_task(p, ENDLESS)
        task(p, id, "tasks/cancel")
        end = task(p, id)
        assert end["status"] == "cancelled" and "result" not in end, end
        task(p, id, "tasks/cancel")
        assert task(p, id) == end
        assert p.code("tasks/get", {"taskId": "t-unknown"}, capabilities=TASKS) == -32602


@test
def tasks_need_the_capability_and_the_era(ctx):
    with peer(ctx) as p:
        for method in ("tasks/get", "tasks/update", "tasks/cancel"):
            answer = p.ask(method, {"taskId": "t", "inputResponses": {}})
            assert answer["error"]["code"] == -32021, answer
            assert answer["error"]["data"] == {"requiredCapabilities": TASKS}, answer
        for method in ("tasks/result", "tasks/list"):
            assert p.code(method, {"taskId": "t"}, capabilities=TASKS) == -32601
        p.shake(LEGACY[-1])
        assert p.code("tasks/get", {"taskId": "t"}, revision=LEGACY[-1]) == -32601
        # the parameter of the experimental tasks is ignored, in both eras
        for revision in (LEGACY[-1], MODERN):
            result = p.result("tools/call", {"name": "run_script", "task": {"ttl": 1},
                                             "arguments": {"script": "1"}}, revision=revision)
            assert result["structuredContent"]["status"] == "ok", result


# ---- subscriptions ----

@test
def listening_hears_of_a_task_until_its_end(ctx):
    with peer(ctx) as p:
        id = make_task(p, slow("era-listens"))
        listen = p.send("subscriptions/listen", {
            "notifications": {"taskIds": [id, "t-none"], "toolsListChanged": True}},
            capabilities=TASKS, id="L\u00e9")
        message = p.stream.recv()
        p.take(message)
        assert message["method"] == "notifications/subscriptions/acknowledged", message
        assert message["params"]["notifications"] == {"taskIds": [id], "toolsListChanged": True}, message
        assert message["params"]["_meta"] == {META + "subscriptionId": listen}, message
        let_go(ctx, "era-listens")
        seen = []
        while "completed" not in seen:
            params = p.notice("notifications/tasks")
            assert params["_meta"] == {META + "subscriptionId": listen}, params
            assert params["taskId"] == id, params
            seen.append(params["status"])
        assert seen[-1] == "completed" and params["result"]["isError"] is False, params
        p.cancel(listen)
        p.nothing(0.2)
        p.notices.clear()
        # the id is free again
        p.send("subscriptions/listen", {"notifications": {}}, id=listen)
        assert p.notice("notifications/subscriptions/acknowledged")["notifications"] == {}


@test
def listening_ends_with_the_input(ctx):
    with peer(ctx) as p:
        ids = [p.send("subscriptions/listen", {"notifications": {}}, id=id) for id in (7, "7")]
        for _ in ids:
            p.notice("notifications/subscriptions/acknowledged")
        p.stream.half_close()
        for id in ids:
            result = p.wait(id)["result"]
            assert result["_meta"] == {META + "subscriptionId": id}, result
            assert id_key(id) in [id_key(n["params"]["requestId"]) for n in p.notices
                                  if n["method"] == "notifications/cancelled"], p.notices
        try:
            p.stream.recv(10)
            raise AssertionError("more came")
        except Closed:
            pass


@test
def many_idle_subscriptions_harm_nobody(ctx):
    with peer(ctx) as p, peer(ctx) as other:
        for _ in range(256):
            p.send("subscriptions/listen", {"notifications": {}})
        assert p.code("subscriptions/listen", {"notifications": {}}) == -32603
        assert len(p.notices) == 256
        assert other.wait(other.script("1"))["result"]["structuredContent"]["status"] == "ok"


@test
def listening_checks_what_it_is_asked(ctx):
    with peer(ctx) as p:
        for params in ({}, {"notifications": 1}, {"notifications": {"taskIds": "t"}},
                       {"notifications": {"taskIds": [1]}},
                       {"notifications": {"toolsListChanged": "yes"}}):
            assert p.code("subscriptions/listen", params, capabilities=TASKS) == -32602, params
        assert p.code("subscriptions/listen", {"notifications": {"taskIds": []}}) == -32021


@test(private=True)
def a_stop_ends_subscriptions_and_tasks(ctx):
    with ctx.private("[mcp]\ntask_after_seconds = 0\n") as service, Peer(service) as p:
        id = make_task(p, ENDLESS)
        listen = p.send("subscriptions/listen", {"notifications": {"taskIds": [id]}},
                        capabilities=TASKS)
        assert p.notice("notifications/tasks")["status"] == "working"
        os.kill(service.pid, signal.SIGTERM)
        assert p.notice("notifications/cancelled")["requestId"] == listen
        p.wait(listen)
        try:
            p.stream.recv(10)
            raise AssertionError("more came")
        except Closed:
            pass


@test(private=True)
def the_answers_that_are_kept_have_a_bound(ctx):
    with ctx.private("[mcp]\nkept_bytes = 65536\ntask_after_seconds = 0\n") as service, \
            Peer(service) as p:
        big = "import time\ntime.sleep(1)\nprint('x' * 40000)"
        first = make_task(p, big)
        finish(p, first)
        second = make_task(p, big)
        finish(p, second)
        assert p.code("tasks/get", {"taskId": first}, capabilities=TASKS) == -32602
        assert finish(p, second)["result"]["structuredContent"]["stdout"] == "x" * 40000 + "\n"


# ---- calls sent again ----

COUNT = "import os, time\nprint(os.urandom(8).hex())\ntime.sleep(%s)"


def held_count(name):
    return held(name, before="import os\nprint(os.urandom(8).hex(), flush=True)")


@test
def a_call_sent_again_is_not_run_again(ctx):
    with peer(ctx) as p:
        first = p.wait(p.script(COUNT % 0, idempotency_key="again-1"))["result"]
        second = p.wait(p.script(COUNT % 0, idempotency_key="again-1"))["result"]
        assert first["structuredContent"] == second["structuredContent"]
        other = p.wait(p.script(COUNT % 0.1, idempotency_key="again-1"))["result"]
        assert other["isError"] and "idempotency" in other["content"][0]["text"], other
        third = p.wait(p.script(COUNT % 0, idempotency_key="again-2"))["result"]
        assert third["structuredContent"]["stdout"] != first["structuredContent"]["stdout"]
        # the answer as an older revision has it
        p.shake(LEGACY[0])
        old = p.wait(p.script(COUNT % 0, revision=LEGACY[0], idempotency_key="again-1"))["result"]
        assert "structuredContent" not in old and first["content"] == old["content"], old


@test
def a_call_whose_connection_was_lost_is_found_again(ctx):
    for how in ("running", "over"):
        name = "era-" + how
        with peer(ctx) as p:
            p.script(held_count(name), idempotency_key="lost-" + how, meta={"progressToken": 1})
            p.notice("notifications/progress")	# it runs
        if how == "over":
            assert not wait_gone([let_go(ctx, name)], ctx.seconds(30)), "it does not end"
        with peer(ctx) as p, peer(ctx) as q:
            ids = [(c, c.script(held_count(name), idempotency_key="lost-" + how)) for c in (p, q, q)]
            if how == "running":
                for c in (p, q):
                    c.result("server/discover")	# answered after those were heard
                let_go(ctx, name)
            answers = [c.wait(id)["result"]["structuredContent"] for c, id in ids]
            assert answers[0]["status"] == "ok" and answers[0] == answers[1] == answers[2]


@test
def a_cancelled_call_with_a_key_is_run_again(ctx):
    with peer(ctx) as p:
        script = held_count("era-cancelled")
        id = p.script(script, idempotency_key="cancelled", meta={"progressToken": "c"})
        p.notice("notifications/progress")
        first = find_held(ctx.pid, "era-cancelled")
        p.cancel(id)
        del p.asked[id_key(id)]
        assert not wait_gone(first, ctx.seconds(30)), "it does not end"
        again = p.script(script, idempotency_key="cancelled")
        let_go(ctx, "era-cancelled")
        answer = p.wait(again)["result"]
        assert answer["structuredContent"]["status"] == "ok", answer


@test
def keys_are_per_tenant(ctx):
    if os.getuid():
        raise Skip("needs root")
    with peer(ctx) as p, peer(ctx, uid=2) as q:
        outs = {c.wait(c.script(COUNT % 0, idempotency_key="mine"))["result"]
                ["structuredContent"]["stdout"] for c in (p, q)}
        assert len(outs) == 2


@test
def a_key_and_a_task_go_together(ctx):
    with peer(ctx) as p:
        script = slow("era-key")
        id = make_task(p, script, idempotency_key="task")
        assert make_task(p, script, idempotency_key="task") == id
        let_go(ctx, "era-key")
        end = finish(p, id)["result"]["structuredContent"]
        assert p.wait(p.script(script, idempotency_key="task"))["result"]["structuredContent"] == end


# ---- resources ----

@test
def resources_are_announced_and_not_found(ctx):
    with peer(ctx) as p:
        result = p.result("resources/list")
        assert result["resources"] == [] and result["cacheScope"] == "private", result
        assert [t["name"] for t in p.result("resources/templates/list")["resourceTemplates"]] == ["output", "file"]
        assert p.result("prompts/list")["prompts"] == []
        assert p.code("prompts/get", {"name": "none"}) == -32602
        for params in ({"cursor": "!"}, {"cursor": 1}):
            assert p.code("resources/list", params) == -32602
        answer = p.ask("resources/read", {"uri": "file:///etc/passwd"})
        assert answer["error"]["code"] == -32602, answer
        assert answer["error"]["data"] == {"uri": "file:///etc/passwd"}, answer
        assert p.code("resources/read", {}) == -32602
        assert p.code("resources/subscribe", {"uri": "a:b"}) == -32601
    for revision in LEGACY:
        with peer(ctx) as p:
            assert p.shake(revision)["capabilities"] == {
                "tools": {"listChanged": True}, "resources": {}, "prompts": {}, "experimental": OWN_TOOLS}
            assert p.result("resources/list", revision=revision) == {"resources": []}
            answer = p.ask("resources/read", {"uri": "a:b"}, revision=revision)
            assert answer["error"]["code"] == -32002, answer
            assert p.code("resources/subscribe", {"uri": "a:b"}, revision=revision) == -32601
            assert p.result("prompts/list", revision=revision) == {"prompts": []}
            assert p.result("resources/templates/list", revision=revision)["resourceTemplates"]
            assert p.code("logging/setLevel", {"level": "info"}, revision=revision) == -32601


@test
def states_that_were_never_given_are_refused(ctx):
    with peer(ctx) as p:
        for state in ("", "x", "s1.%s." % socket.gethostname().partition(".")[0] + "A" * 26 + ".99999999999.n." + "A" * 26 + "." + "A" * 43, 7, None):
            answer = p.ask("tools/call", {"name": "run_script", "arguments": {"script": "1"},
                                          "requestState": state, "inputResponses": {}})
            assert answer["error"]["code"] == -32602, answer


@test(private=True)
def the_key_of_states_is_made_once_and_kept_from_others(ctx):
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "key")
        config = "[mcp]\nstate_key_file = %s\n" % path
        made = []
        for _ in range(2):
            with ctx.private(config) as service, Peer(service) as p:
                p.result("server/discover")
                with open(path, "rb") as file:
                    made.append(file.read())
        assert made[0] == made[1] and len(made[0]) == 32
        assert os.stat(path).st_mode & 0o777 == 0o600
        os.chmod(path, 0o644)
        conf = os.path.join(directory, "conf")
        with open(conf, "w") as file:
            file.write(config)
        program = os.path.join(ctx.options.build, "mcp-pythond")
        refused = subprocess.run([program, "--config", conf, "--stdio"], capture_output=True,
                                 stdin=subprocess.DEVNULL, text=True, timeout=30)
        assert refused.returncode == 1 and "only its owner" in refused.stderr, refused


# ---- both eras on one stream, and framing ----

@test
def both_eras_share_a_stream(ctx):
    with peer(ctx) as p:
        assert p.wait(p.script("1"))["result"]["resultType"] == "complete"
        assert p.code("tools/list", revision=LEGACY[0]) == -32600	# no session yet
        p.shake(LEGACY[1])
        old, new = p.script("2", revision=LEGACY[1]), p.script("3")
        assert "structuredContent" not in p.wait(old)["result"]
        assert p.wait(new)["result"]["structuredContent"]["result"]["repr"] == "3"
        for method in ("initialize", "ping", "logging/setLevel", "resources/subscribe"):
            assert p.code(method, {"protocolVersion": MODERN}) == -32601
        assert p.result("ping", revision=LEGACY[1]) == {}
        p.result("server/discover")


@test
def initialize_never_agrees_on_the_modern_revision(ctx):
    with peer(ctx) as p:
        p.shake(LEGACY[-1], wanted=MODERN)


@test
def a_probe_of_garbage_is_answered_and_forgotten(ctx):
    with peer(ctx) as p:
        p.raw(b"GET / HTTP/1.1\r\n\r\n{]\n\x00\xff\n[]\n")
        for code in (-32700, -32700, -32700, -32600):
            message = p.stream.recv()
            assert "id" not in message and message["error"]["code"] == code, message
        assert p.wait(p.script("1"))["result"]["structuredContent"]["status"] == "ok"


@test
def batches_are_of_two_revisions(ctx):
    ping = {"jsonrpc": "2.0", "method": "ping"}
    for revision in LEGACY:
        with peer(ctx) as p:
            p.shake(revision)
            batch = [{"id": 1, **ping}, {"jsonrpc": "2.0", "method": "notifications/x"}, 3,
                     {"id": "1", **ping}]
            p.raw(json.dumps(batch).encode() + b"\n")
            answer = p.stream.recv()
            if revision in LEGACY[:2]:
                assert [m.get("id") for m in answer if "result" in m] == [1, "1"], answer
                assert sum("error" in m for m in answer) == 1, answer
            else:
                assert "id" not in answer and answer["error"]["code"] == -32600, answer


@test
def lines_may_come_in_any_pieces(ctx):
    with peer(ctx) as p:
        lines = [json.dumps({"jsonrpc": "2.0", "id": n, "method": "ping"}).encode()
                 for n in range(6)]
        p.asked = {id_key(n): ("ping", LEGACY[-1]) for n in range(6)}
        p.raw(b"\r\n".join(lines[:3]) + b"\r\n \t\r\n\n")	# several at once, CRLF, blank ones
        for n in range(3):
            p.wait(n)
        for byte in lines[3] + b"\n":			# one byte at a time
            p.raw(bytes([byte]))
        p.wait(3)
        p.raw(lines[4] + b"\n" + lines[5])
        p.wait(4)
        p.stream.half_close()				# the last line lacks its newline
        p.wait(5)


@test
def an_answer_that_is_too_much_has_its_id(ctx):
    with peer(ctx) as p:
        for what in ("[" * 100 + "]" * 100, "[" + "0," * 30000 + "0]", '"\\ud800"'):
            p.raw(('{"jsonrpc":"2.0","method":"ping","params":{"x":%s},"id":"big"}\n'
                   % what).encode())
            message = p.stream.recv()
            assert message["id"] == "big" and message["error"]["code"] == -32600, message
        p.raw(b'"' + b"a" * (17 << 20))
        message = p.stream.recv()
        assert "id" not in message and message["error"]["code"] == -32600, message
        try:
            p.stream.recv()
            raise AssertionError("more came")
        except Closed:
            pass


PNG = ("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5E"
       "rkJggg==")
SHOWN = "import base64\nclass P:\n    def _repr_png_(self): return base64.b64decode(%r)\nP()" % PNG


def forms(tools, answer):
    """The forms that a client was offered, and those that it got."""
    has_schema = {"outputSchema" in tool for tool in tools["tools"]}
    assert len(has_schema) == 1 or not all(has_schema), has_schema
    return any(has_schema), "structuredContent" in answer


@test
def clients_that_drop_content_get_nothing_else(ctx):
    """Those that show a model the structured form alone get pictures and links by the other."""
    call = {"name": "run_script", "arguments": {"script": "print('said')\n" + SHOWN}}
    newer = LEGACY[LEGACY.index("2025-06-18"):]
    for name, structured in (("claude-code", False), ("codex-mcp-client", False),
                             ("opencode", False), ("claude-code-like", True), ("eras", True)):
        for revision in newer + (MODERN,):
            meta = {META + "clientInfo": {"name": name, "version": "1"}} if revision == MODERN else {}
            with peer(ctx) as p:
                if revision != MODERN:
                    p.shake(revision, name=name)
                answer = p.result("tools/call", call, revision=revision, **meta)
                equal(forms(p.result("tools/list", revision=revision, **meta), answer),
                      (structured, structured), name)
                assert "said" in answer["content"][0]["text"], answer
                assert "image" in {block["type"] for block in answer["content"]}, answer
    for key, structured in (("yes", True), ("no", False)):
        with ctx.private("[mcp]\nstructured = %s\n" % key) as service:
            for name in ("claude-code", "eras"):
                meta = {"_meta": {META + "clientInfo": {"name": name, "version": "1"}}}
                with ctx.client(MODERN, path=service.socket) as client:
                    equal(forms(client.ask("tools/list", meta),
                                client.ask("tools/call", {**call, **meta})),
                          (structured, structured), (key, name))


@test
def wrong_arguments_are_an_answer_in_every_revision(ctx):
    for revision in LEGACY + (MODERN,):
        with peer(ctx) as p:
            if revision in LEGACY:
                p.shake(revision)
            for arguments in ({}, {"script": 1}, {"script": "1", "idempotency_key": ""},
                              {"script": "1", "x": 1}):
                result = p.result("tools/call", {"name": "run_script", "arguments": arguments},
                                  revision=revision)
                assert result["isError"] is True, result
            assert p.code("tools/call", {"name": "none"}, revision=revision) == -32602


@test
def progress_increases_and_ends_with_the_answer(ctx):
    script = "import time\nfor i in range(4):\n print(i, flush=True); time.sleep(.3)"
    with peer(ctx) as p:
        ids = {token: p.script(held("era-" + type(token).__name__, before=script),
                               meta={"progressToken": token}) for token in (0, "0")}
        told = []
        while len({id_key(note["progressToken"]) for note in told}) < len(ids):
            told.append(p.notice("notifications/progress"))	# of each before its end
        for name in ("era-int", "era-str"):
            let_go(ctx, name)
        for id in ids.values():
            p.wait(id)
        told += [note["params"] for note in p.notices]
        values = {id_key(token): [] for token in ids}
        # The newest line, as often as it is told.
        lines = [note.get("message") for note in told]
        assert set(lines) <= set("0123"), lines
        for note in told:
            values[id_key(note["progressToken"])].append(note["progress"])
        for sent in values.values():
            assert sent == sorted(set(sent)), values
        p.nothing(0.4)


@test
def nothing_follows_a_cancellation(ctx):
    with peer(ctx) as p:
        p.shake(LEGACY[-1])
        for revision in (LEGACY[-1], MODERN):
            id = p.script("import time\nwhile True: print('x', flush=True); time.sleep(.01)",
                          revision=revision, meta={"progressToken": revision})
            p.notice("notifications/progress")
            p.cancel(id)
            p.result("ping", revision=LEGACY[-1])
            p.notices.clear()
            p.nothing(0.6)


@test
def the_same_id_twice_is_refused_while_it_is_open(ctx):
    with peer(ctx) as p, peer(ctx) as q:
        first = p.script(slow("era-twice"))
        p.stream.send({"jsonrpc": "2.0", "id": first, "method": "ping"})
        message = p.stream.recv()
        assert message["id"] == first and message["error"]["code"] == -32600, message
        q.count = first - 1
        q.wait(q.script("1"))		# another client's ids are its own
        let_go(ctx, "era-twice")
        p.wait(first)


if __name__ == "__main__":
    main(__doc__, "[mcp]\ntask_after_seconds = 1\n")
