# SPDX-License-Identifier: Apache-2.0
"""Calls of the service's tools, whichever way they travel: HTTP (service.py) or lines (lines.py).

MCP of revision 2026-07-28: each request stands for itself, and what it asks meanwhile comes back as
a result that the same request answers.
"""

import re

REVISION = "2026-07-28"
META = "io.modelcontextprotocol/"
ANSWER_MAX = 64 << 20	# bytes of one answer, its output included
TOO_MUCH = re.compile(r"(\w+) may be at most ([\d.e+]+) here; ")


class ServiceError(Exception):
    """The service did not answer the call. status: an HTTP status that says why."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


class Answer:
    """The answer of a tool."""

    def __init__(self, result):
        self.structured = result.get("structuredContent") or {}
        self.content = result.get("content") or []
        self.status = self.structured.get("status", "error" if result.get("isError") else "ok")

    @property
    def text(self):
        return "".join(c.get("text", "") for c in self.content if c.get("type") == "text")

    @property
    def refused(self):
        """Nothing ran, and the text says why."""
        return "exit_code" not in self.structured or (
            self.structured["exit_code"] is None and self.status != "ok"
            and not self.structured.get("duration_ms"))


def lowered(arguments, answer):
    """The arguments with a limit as the service allows it; None: it was not refused for one. Our clients
    do not know the service's bounds, and a limit that they have not chosen must not keep them out."""
    if answer.status != "invalid_arguments":
        return None
    found = TOO_MUCH.match(answer.text)
    if not found or not arguments.get(found[1], 0) > float(found[2]):
        return None
    return {**arguments, found[1]: float(found[2])}


class Calls:
    """What both ways share. request() is theirs."""

    streaming = {"progressToken": 1, "mcp-pythond/stream": True}

    def __init__(self, name, version):
        self.client = {"name": name, "version": version}
        self.count = 0

    def message(self, method, params, capabilities, meta):
        self.count += 1
        return {"jsonrpc": "2.0", "id": self.count, "method": method,
                "params": {**params, "_meta": {
                    META + "protocolVersion": REVISION, META + "clientInfo": self.client,
                    META + "clientCapabilities": capabilities, **meta}}}

    @staticmethod
    def take_output(message, on_output):
        """Passes output on, if the message has some."""
        output = message.get("params", {}).get("_meta", {}).get("mcp-pythond/output")
        if output and on_output:
            on_output(output["stream"], output["text"])

    @staticmethod
    def result_of(message, otherwise, status=400):
        """The result; ServiceError with this status for an error or no answer at all."""
        if isinstance(message, dict) and isinstance(message.get("result"), dict):
            return message["result"]
        error = message.get("error") if isinstance(message, dict) else None
        raise ServiceError(status, (error or {}).get("message")
                           or "the service answered %s" % otherwise)

    async def call(self, tool, arguments, token=None, on_output=None, on_requests=None,
                   client_tools=None):
        """Calls a tool. on_requests(requests) answers what the service asks meanwhile: questions
        of input() and calls of client_tools, the list of tools that a script may call."""
        capabilities, headers = {}, {}
        if on_requests and not client_tools:
            capabilities["elicitation"] = {}
        if client_tools:
            capabilities["extensions"] = {
                "io.github.mcp-pythond/client-tools": {"tools": client_tools}}
        if arguments.get("session"):
            headers["Mcp-Param-Session"] = arguments["session"]
        if tool in ("run_script", "run_repl"):
            # A call that has to be approved is refused, and does not become a job.
            arguments = {"background": False, **arguments}
        params = {"name": tool, "arguments": arguments}
        while True:
            result = await self.request("tools/call", params, token, tool, on_output,
                                        capabilities, headers)
            params = {"name": tool, "arguments": arguments}
            if result.get("resultType") == "input_required":
                params.update(requestState=result.get("requestState"),
                              inputResponses=await on_requests(result.get("inputRequests") or {}))
                continue
            answer = Answer(result)
            fewer = lowered(arguments, answer)
            if not fewer:
                return answer
            params["arguments"] = arguments = fewer
