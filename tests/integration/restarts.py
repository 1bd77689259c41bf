#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Questions of the modern era and a real restart between them and their answers: what a client
brings back is known by its seal, and the call that asked is gone."""

import os
import tempfile

from harness import FEW_MODULES, SOMEBODY, Skip, equal, main, test
from http_client import Connection, call, encode, modern, modern_headers
from http_suite import expect, seconds, wait_ready
from supervisor import Supervisor, descendants, wait_gone
from waits import until

ASKS = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
TASKS = {"io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}}
CONSENT = "[policy]\nrun_script = approve\napprovers = self\n"


class Restarting:
    """One service after the other, each with the same key of states, unless key is False."""

    def __init__(self, ctx, more="", key=True, program="mcp-pythond"):
        self.ctx, self.key, self.program, self.more = ctx, key, program, more
        self.directory = tempfile.TemporaryDirectory()
        os.chmod(self.directory.name, 0o777)
        self.socket = os.path.join(self.directory.name, "http.sock")
        self.service = None

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        if self.service:
            self.service.__exit__(*exc)
        self.directory.cleanup()

    def start(self):
        config = self.more
        if self.key:
            config += "[mcp]\nstate_key_file = %s/key\n" % self.directory.name
        self.service = Supervisor(self.ctx.options.build, config, ["--http-socket", self.socket])
        self.service.argv[0] = os.path.join(self.ctx.options.build, self.program)
        self.service.start()
        wait_ready(self.service)
        os.chmod(self.socket, 0o666)
        return self

    def restart(self):
        service, self.service = self.service, None
        try:
            equal(service.stop(), 0, "its exit status")
            bad = service.leftovers()
            assert not bad, "; ".join(bad)
        finally:
            service.remove()
        return self.start()

    def kill(self):
        service, self.service = self.service, None
        below = descendants(service.pid)
        service.process.kill()
        service.process.wait()
        service.process = None
        assert not wait_gone(below, seconds(self.ctx, 30)), "processes are left"
        service.remove()
        if os.path.exists(self.socket):
            os.unlink(self.socket)
        return self.start()

    def begin(self, params, key):
        """Sends a call, and waits until it runs."""
        message = modern("tools/call", {**params, "_meta": ASKS})
        before = self.service.log().count("execution-started")
        self.kept = Connection(self.socket, seconds(self.ctx, 60))
        self.kept.send(headers=modern_headers(message, {"Mcp-Param-Key": key}), body=encode(message))
        self.service.wait_logged("execution-started", times=before + 1)

    def method(self, method, params):
        message = modern(method, {**params, "_meta": TASKS})
        with Connection(self.socket, seconds(self.ctx, 60)) as connection:
            connection.send(headers=modern_headers(message), body=encode(message))
            return connection.read()

    def get(self, url):
        with Connection(self.socket, seconds(self.ctx, 60)) as connection:
            connection.send("GET", url.removeprefix("http://localhost"), headers=[("Host", "localhost")])
            return connection.read().status

    def ask(self, params, uid=None, **more):
        """The response to a tools/call."""
        message = modern("tools/call", {**params, **more, "_meta": ASKS})
        key = params["arguments"].get("idempotency_key")
        headers = modern_headers(message, {"Mcp-Param-Key": key} if key else None)
        if params["name"] == "job":
            headers.append(("Mcp-Param-Job", params["arguments"]["id"]))
        with Connection(self.socket, seconds(self.ctx, 60), uid) as connection:
            connection.send(headers=headers, body=encode(message))
            return connection.read()

    def asked(self, params, uid=None, **more):
        """What brings the answer to what it asks: requestState and inputResponses."""
        response = self.ask(params, uid, **more)
        assert "result" in response.message, response
        result = response.message["result"]
        equal(result["resultType"], "input_required")
        return {"requestState": result["requestState"], "inputResponses": {
            key: {"action": "accept", "content": {"allow": True, "ok": True}}
            for key in result["inputRequests"]}}


@test(private=True)
def consent_is_given_in_time(ctx):
    """Without a restart: what is asked before a call may start can be answered, once."""
    with Restarting(ctx, CONSENT).start() as s:
        params = call("print('agreed')")
        answer = s.asked(params)
        # what is no answer is asked again, under another state
        nothing = dict(answer, inputResponses={"permission": 7})
        again = s.asked(params, **nothing)
        assert again["requestState"] != answer["requestState"]
        expect(s.ask(params, **answer), 200, -32602)
        response = s.ask(params, **again)
        equal(response.message["result"]["structuredContent"]["stdout"], "agreed\n")
        response = s.ask(params, **again)
        expect(response, 200, -32602)
        assert "not valid" in response.message["error"]["message"], response
        refused = s.asked(params)
        refused["inputResponses"]["permission"]["content"]["allow"] = False
        response = s.ask(params, **refused)
        equal(response.message["result"]["structuredContent"]["status"], "denied")


@test(private=True)
def consent_is_asked_for_again(ctx):
    """Nothing had been done: the call is made again, and its user asked once more, because it is
    unknown if that answer was used before."""
    with Restarting(ctx, CONSENT).start() as s:
        for key in (None, "k"):
            params = call("print('once')", **({"idempotency_key": key} if key else {}))
            before = s.asked(params)
            s.restart()
            after = s.asked(params, **before)
            assert after["requestState"] != before["requestState"]
            result = s.ask(params, **after).message["result"]
            equal(result["structuredContent"]["stdout"], "once\n")
            expect(s.ask(params, **after), 200, -32602)
            if key:		# the answer of what was run is there: nothing is asked
                result = s.ask(params, **before).message["result"]
                equal(result["structuredContent"]["stdout"], "once\n")
            else:
                s.asked(params, **before)


@test(private=True)
def a_call_that_was_halfway_has_to_be_made_again(ctx):
    if not os.path.exists(os.path.join(ctx.options.build, "mcp-pythond-fixtures")):
        raise Skip("needs mcp-pythond-fixtures beside mcp-pythond")
    with Restarting(ctx, program="mcp-pythond-fixtures").start() as s:
        params = {"name": "test_input_required_result_request_state", "arguments": {}}
        before = s.asked(params)
        s.restart()
        response = s.ask(params, **before)
        expect(response, 200, -32602)
        text = response.message["error"]["message"]
        assert "restarted" in text and "without requestState" in text, text
        result = s.ask(params, **s.asked(params)).message["result"]
        equal(result["content"][0]["text"], "state-ok")


@test(private=True)
def a_script_that_asked_is_gone(ctx):
    """It had run: the client with the answer is told to begin again."""
    with Restarting(ctx, "[policy]\ninput = allow\n").start() as s:
        params = call("print('ran', input('Who? ') == '')")
        before = s.asked(params)
        s.restart()
        response = s.ask(params, **before)
        expect(response, 200, -32602)
        assert "restarted" in response.message["error"]["message"], response
        result = s.ask(params, **s.asked(params)).message["result"]
        equal(result["structuredContent"]["stdout"], "Who? ran True\n")


@test(private=True)
def without_its_key_nothing_is_known(ctx):
    with Restarting(ctx, CONSENT, key=False).start() as s:
        params = call("print(1)")
        before = s.asked(params)
        s.restart()
        expect(s.ask(params, **before), 200, -32602)


@test(private=True, root=True)
def a_seal_holds_after_a_restart(ctx):
    with Restarting(ctx, CONSENT).start() as s:
        params = call("print(1)")
        before = s.asked(params)
        s.restart()
        expect(s.ask(call("print(2)"), **before), 200, -32602)
        expect(s.ask(params, SOMEBODY, **before), 200, -32602)
        state = before["requestState"]
        for at in range(0, len(state), 7):
            changed = state[:at] + ("A" if state[at] != "A" else "B") + state[at + 1:]
            expect(s.ask(params, **dict(before, requestState=changed)), 200, -32602)
        # as it is it serves its own call still
        after = s.asked(params, **before)
        equal(s.ask(params, **after).message["result"]["isError"], False)


# ---- what a time was promised for: the table in doc/agents.md ----

LOST = "its answer is lost"
KEYS = "[mcp]\nrepeat_file = %s/calls\n"
COUNT = "import os; os.write(1, os.urandom(8).hex().encode())"


def keyed(key, script=COUNT, **more):
    return call(script, idempotency_key=key, **more)


def text_of(response):
    return response.message["result"]["content"][0]["text"]


@test(private=True)
def keys_hold_over_a_restart(ctx):
    """Also over a kill, for more than 256 keys, and for a call that the restart has cut."""
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o777)
        with Restarting(ctx, KEYS % directory).start() as s:
            s.begin(keyed("cut", "import time; time.sleep(600)", timeout_seconds=600), "cut")
            first = text_of(s.ask(keyed("first")))
            for n in range(300):
                equal(s.ask(keyed("key-%d" % n, "pass")).message["result"]["isError"], False)
            equal(text_of(s.ask(keyed("first"))), first)
            s.restart()
            for params in (keyed("first"), keyed("key-0", "pass"), keyed("key-299", "pass"),
                           keyed("cut", "import time; time.sleep(600)", timeout_seconds=600)):
                assert LOST in text_of(s.ask(params)), params
            assert "other arguments" in text_of(s.ask(keyed("first", "1")))
            second = text_of(s.ask(keyed("second")))
            assert second != first and LOST not in second, second
            s.kill()
            for name in "first", "second":
                assert LOST in text_of(s.ask(keyed(name))), name


@test(private=True)
def a_key_has_its_time(ctx):
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o777)
        with Restarting(ctx, KEYS % directory + "repeat_seconds = 2\n").start() as s:
            first = text_of(s.ask(keyed("first")))
            equal(text_of(s.ask(keyed("first"))), first)
            s.restart()
            answers = []
            until("its time is over", lambda: answers.append(text_of(s.ask(keyed("first")))) or
                  LOST not in answers[-1], ctx.seconds(60))
            assert answers[-1] != first, answers


@test(private=True)
def keys_are_bounded_by_name(ctx):
    with Restarting(ctx, "[mcp]\nrepeat_calls = 3\n").start() as s:
        for n in range(3):
            s.ask(keyed("key-%d" % n, "pass"))
        assert "no further idempotency key" in text_of(s.ask(keyed("key-3", "pass")))
        first = text_of(s.ask(keyed("key-0", "pass")))
        assert "idempotency" not in first, first


@test(private=True)
def without_a_file_keys_end_with_the_service(ctx):
    with Restarting(ctx).start() as s:
        first = text_of(s.ask(keyed("first")))
        s.restart()
        again = text_of(s.ask(keyed("first")))
        assert again != first and LOST not in again, again


@test(private=True)
def what_ends_with_the_service_says_so(ctx):
    """Jobs, tasks, results that are kept in memory, and links."""
    with tempfile.TemporaryDirectory() as files:
        os.chmod(files, 0o777)
        config = "[mcp]\n[http]\nlinks = http://localhost\n[files]\ndirectory = %s/f\n" % files
        with Restarting(ctx, config, key=False).start() as s:
            job = s.ask(call("pass", background=True)).message["result"]["structuredContent"]["job"]
            made = s.ask(call("open('small.txt', 'w').write('x')\nNone")).message["result"]
            file, = made["structuredContent"]["files"]
            equal(s.get(file["http_url"]), 200)
            s.restart()
            equal(s.get(file["http_url"]), 404)
            gone = s.ask({"name": "job", "arguments": {"id": job, "action": "status"}})
            assert "restarted, which ends all jobs" in str(gone.message), gone.message
            gone = s.method("tasks/get", {"taskId": "t-0"})
            assert "restarted, which ends all tasks" in gone.message["error"]["message"], gone
            gone = s.method("resources/read", {"uri": file["uri"]})
            assert "restart" in gone.message["error"]["message"], gone


if __name__ == "__main__":
    main(__doc__, modules=FEW_MODULES)
