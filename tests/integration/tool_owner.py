# SPDX-License-Identifier: Apache-2.0
"""Clients with tools of their own that scripts call, for client_tools.py and client_tools_hostile.py."""

import json

from harness import equal
from mcpclient import LEGACY, MODERN, Outcome
from person import Person, back, script
from tool_scripts import ERRORS

KEY = "io.github.mcp-pythond/client-tools"
METHOD = KEY + "/call"
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
TOOLS = [{"name": "double", "description": "Twice n.", "inputSchema": SCHEMA},
         {"name": "fail", "inputSchema": {"type": "object"}}]
ONE = ERRORS + "print(error(lambda: print(tools.client.double(n=4))))"
BOTH = LEGACY[-1], MODERN


def declared(revision, tools=None, **more):
    key = "extensions" if revision == MODERN else "experimental"
    return {**more, key: {KEY: {"tools": TOOLS if tools is None else tools}}}


def result(params):
    """What a client does for a call."""
    if params["name"] == "fail":
        return {"content": [{"type": "text", "text": "not today"}], "isError": True}
    return {"content": [], "structuredContent": {"twice": 2 * params["arguments"]["n"]}}


class Owner(Person):
    """A client with tools; asked: the params of all calls that it got."""

    def check(self, name, value):
        """The schemas of the protocol have no requests of an extension's."""
        if METHOD not in json.dumps(value):
            super().check(name, value)

    def take_message(self, message, size):
        if message.get("method") == METHOD and not self.modern:
            equal(set(message), {"jsonrpc", "id", "method", "params"})
            self.asked.append(message)
        else:
            super().take_message(message, size)

    def finish(self, call, reply=result):
        """The answer of a call, and the params of what its script called."""
        if self.modern:
            return self.finish_modern(call, reply)
        id, made = self.request("tools/call", call), []
        while True:
            self.until("an answer", lambda: self.asked or self.arrived[-1:] == [id])
            if not self.asked:
                return self.outcome(id), made
            question = self.asked.pop(0)
            made.append(question["params"])
            self.answer(question, reply(question["params"]))

    def finish_modern(self, call, reply):
        told, made = self.call(call), []
        while told["resultType"] == "input_required":
            requests = list(told["inputRequests"].values())
            equal({r["method"] for r in requests}, {METHOD})
            made += [r["params"] for r in requests]
            told = self.call(call, back(told, *(reply(r["params"]) for r in requests)))
        return Outcome(told, 0, True), made


def owner(ctx, s, revision, **kwargs):
    return Owner.at(ctx, s.socket, revision, capabilities=declared(revision, **kwargs))


def reply_to(told):
    """The result of the one call that an input_required has."""
    (request,) = told["inputRequests"].values()
    return result(request["params"])


def printed(client, text, reply=result):
    o, made = client.finish(script(text), reply)
    equal(o.status, "ok", o)
    return o.stdout, made
