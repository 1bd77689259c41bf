# SPDX-License-Identifier: Apache-2.0
"""Clients that a server can ask: with a person or tools behind them, in both eras."""

import json
import os
import tempfile

from harness import equal
from mcp_schema import Validator, jsonschema
from mcpclient import LEGACY, MODERN, Client, Outcome, RpcError
from waits import changes, until

FORM = {"elicitation": {"form": {}}}
TASKS = {"extensions": {"io.modelcontextprotocol/tasks": {}}}


class Person(Client):
    """A client with a person behind it: what the server asks is kept to be answered, and checked
    against the schema of the revision."""

    @classmethod
    def at(cls, ctx, path, revision=LEGACY[-1], uid=None, capabilities=None):
        client = cls.connect(path, None, uid, ctx.seconds(60))
        try:
            client.begin_as(revision, FORM if capabilities is None else capabilities)
        except BaseException:
            client.close()
            raise
        return client

    def begin_as(self, revision, capabilities):
        self.revision, self.modern = revision, revision == MODERN
        self.capabilities = capabilities
        self.asked, self.withdrawn = [], []
        if not self.modern:
            self.ask("initialize", {
                "protocolVersion": revision, "capabilities": self.capabilities,
                "clientInfo": {"name": "t", "version": "1"}})
            self.notify("notifications/initialized")

    def check(self, name, value):
        if jsonschema is not None:
            Validator(self.revision).check(name, value)

    def take_message(self, message, size):
        if message.get("method") == "elicitation/create" and not self.modern:
            self.check("ElicitRequest", message)
            self.asked.append(message)
        elif message.get("method") == "notifications/cancelled" and not self.modern:
            self.check("CancelledNotification", message)
            self.withdrawn.append(message["params"]["requestId"])
        else:
            super().take_message(message, size)

    def params(self, params):
        params = super().params(params)
        if self.modern:
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = self.capabilities
        return params

    # ---- legacy ----

    def question(self):
        """The next request of the server's."""
        self.until("a question", lambda: self.asked)
        return self.asked.pop(0)

    def answer(self, question, result):
        self.send({"jsonrpc": "2.0", "id": question["id"], "result": result})
        self.pump(0)

    # ---- modern ----

    def call(self, params, back=None):
        """The result; back: what brings answers."""
        result = self.ask("tools/call", {**params, **(back or {})})
        if result["resultType"] == "input_required":
            self.check("InputRequiredResult", result)
        return result

    def end(self, params, back=None):
        return Outcome(self.call(params, back), 0, True)

    def refused(self, params, back):
        try:
            result = self.call(params, back)
        except RpcError as e:
            equal(e.code, -32602)
        else:
            raise AssertionError("taken: %.500r" % result)


def shown(question):
    """The script's part of what a person sees."""
    return question["params"]["message"].split("\n\n", 1)[1]


def shown_in(result):
    """The same of an input_required, or a task."""
    (request,) = result["inputRequests"].values()
    equal(request["method"], "elicitation/create")
    return shown(request)


def line(text):
    return {"action": "accept", "content": {"line": text}}


def script(text, **more):
    return {"name": "run_script", "arguments": {"script": text, **more}}


def cell(code, **more):
    return {"name": "run_repl", "arguments": {"code": code, **more}}


def begin(client, text, **more):
    return client.request("tools/call", script(text, **more))


def back(asked, *results):
    """What brings the answers to an input_required."""
    equal(len(asked["inputRequests"]), len(results))
    return {"requestState": asked["requestState"],
            "inputResponses": dict(zip(asked["inputRequests"], results))}


def works(client):
    equal(client.run("print(6 * 7)").stdout, "42\n")


class Records:
    """An audit log."""

    def __init__(self, ctx):
        self.ctx = ctx

    def __enter__(self):
        self.directory = tempfile.TemporaryDirectory()
        os.chmod(self.directory.name, 0o777)
        self.path = os.path.join(self.directory.name, "log")
        self.config = "[audit]\nfile = %s\njournal = no\n" % self.path
        return self

    def __exit__(self, *exc):
        self.directory.cleanup()

    def of(self, *events):
        with open(self.path, encoding="utf-8") as f:
            found = [json.loads(text) for text in f.read().split("\n")[:-1]]
        return [r for r in found if r["event"] in events]

    def wait(self, event, n=1):
        with changes(self.path) as change:
            until("%d %s in the audit log" % (n, event), lambda: len(self.of(event)) >= n, wait=change)
