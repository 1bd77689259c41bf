# SPDX-License-Identifier: Apache-2.0
"""A client of a byte stream that speaks several revisions at once, and holds every message that it
gets to the schema of its revision."""


from harness import Skip
from mcp_schema import MODERN, NOTICES, Validator, jsonschema
from mcpclient import LEGACY, Client, id_key
from waits import Timeout, until

TASKS = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
META = "io.modelcontextprotocol/"
RESULTS = {
    "initialize": "InitializeResult", "ping": "EmptyResult", "server/discover": "DiscoverResult",
    "tools/list": "ListToolsResult", "tools/call": "CallToolResult",
    "resources/list": "ListResourcesResult", "resources/read": "ReadResourceResult",
    "resources/templates/list": "ListResourceTemplatesResult",
    "prompts/list": "ListPromptsResult",
    "subscriptions/listen": "SubscriptionsListenResult"}
EXTENSION = {"tasks/get": "GetTaskResult", "tasks/update": "UpdateTaskResult",
             "tasks/cancel": "CancelTaskResult"}
MODERN_ONLY = ("resultType", "ttlMs", "cacheScope")
validators = {}


def check(schema, name, value):
    if jsonschema is None:
        raise Skip("python3-jsonschema is not installed", missing=True)
    if schema not in validators:
        validators[schema] = Validator(schema)
    validators[schema].check(name, value)


class Peer:
    """One connection that may speak several revisions; messages are checked as they arrive."""

    def __init__(self, ctx, uid=None):
        self.stream = Client.connect(ctx.socket, None, uid, 30)
        self.asked = {}		# id -> (method, revision)
        self.answers = {}
        self.notices = []
        self.others = []	# answers without an id
        self.count = 0
        self.session = None

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.stream.close()

    def send(self, method, params=None, revision=MODERN, capabilities=None, id=None, **meta):
        params = dict(params or {})
        if revision == MODERN:
            meta.update({META + "protocolVersion": MODERN,
                         META + "clientCapabilities": capabilities or {}})
        if meta:
            params["_meta"] = meta
        if id is None:
            self.count += 1
            id = self.count
        self.asked[id_key(id)] = (method, revision)
        self.stream.send({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        self.stream.flush()
        return id

    def notify(self, method, **params):
        self.stream.send({"jsonrpc": "2.0", "method": method, "params": params})
        self.stream.flush()

    def cancel(self, id):
        self.notify("notifications/cancelled", requestId=id)

    def take(self, message):
        if isinstance(message, list):
            assert self.session in LEGACY[:2], "a batch that nobody wanted"
            for item in message:
                self.take(item)
            return
        if "method" in message:
            assert "id" not in message, "the server asks: %r" % message
            self.check_notice(message)
            self.notices.append(message)
            return
        if "id" not in message:
            self.others.append(message)
            return
        method, revision = self.asked.pop(id_key(message["id"]))
        self.check_answer(method, revision, message)
        self.answers[id_key(message["id"])] = message

    def check_notice(self, message):
        method = message["method"]
        if method == "notifications/tasks":
            check("ext-tasks", "TaskStatusNotification", message)
        else:
            check(MODERN if META + "subscriptionId" in message.get("params", {}).get("_meta", {})
                  else self.session or MODERN, NOTICES[method], message)

    def check_answer(self, method, revision, message):
        if "error" in message:
            new = revision in (LEGACY[-1], MODERN)
            check(revision, "JSONRPCErrorResponse" if new else "JSONRPCError", message)
            return
        result = message["result"]
        if revision != MODERN:
            assert not any(key in result for key in MODERN_ONLY), "too new: %r" % result
        if method in EXTENSION:
            check("ext-tasks", EXTENSION[method], result)
        elif result.get("resultType") == "task":
            check("ext-tasks", "CreateTaskResult", result)
        else:
            check(revision, RESULTS[method], result)

    def wait(self, id, timeout=30):
        """The answer to it, with error or result."""
        key = id_key(id)
        until("the answer to %r" % id, lambda: key in self.answers, timeout, self.take_next)
        return self.answers.pop(key)

    def take_next(self, seconds):
        self.take(self.stream.recv(seconds))

    def notice(self, method, timeout=30):
        """The next notification of this name that was not taken yet."""
        message = until("a %s" % method, lambda: next(
            (m for m in self.notices if m["method"] == method), None), timeout, self.take_next)
        self.notices.remove(message)
        return message.get("params", {})

    def nothing(self, seconds):
        """Nothing comes."""
        try:
            message = self.stream.recv(seconds)
        except Timeout:
            return
        raise AssertionError("unexpected: %.300r" % message)

    def ask(self, method, params=None, **more):
        return self.wait(self.send(method, params, **more))

    def result(self, method, params=None, **more):
        answer = self.ask(method, params, **more)
        assert "result" in answer, answer
        return answer["result"]

    def code(self, method, params=None, **more):
        answer = self.ask(method, params, **more)
        assert "error" in answer, answer
        return answer["error"]["code"]

    def shake(self, revision, wanted=None, name="eras"):
        self.session = revision
        result = self.result("initialize", {
            "protocolVersion": wanted or revision, "capabilities": {},
            "clientInfo": {"name": name, "version": "1"}}, revision=revision)
        assert result["protocolVersion"] == revision, result
        self.notify("notifications/initialized")
        return result

    def script(self, script, revision=MODERN, capabilities=None, meta=None, **arguments):
        return self.send("tools/call", {"name": "run_script",
                                        "arguments": {"script": script, **arguments}},
                         revision=revision, capabilities=capabilities, **(meta or {}))

    def raw(self, data):
        self.stream.send_raw(data)
        self.stream.flush()
