# SPDX-License-Identifier: Apache-2.0
"""Stands for a language model: for any request it calls one tool with given arguments, and
when it has been told what came of it, it says "done". It speaks the three protocols that agents
have for models (Messages, Responses, Chat Completions), and keeps what it was told."""

import http.server
import json
import threading

END = "done"


def tool_name(names, wanted):
    """Agents put the server's name before it."""
    return next((n for n in names if n.split("__")[-1] == wanted or n.endswith("_" + wanted)
                 or n == wanted), None)


class Messages:
    @staticmethod
    def results(body):
        return [block["content"] for message in body["messages"]
                if isinstance(message["content"], list) for block in message["content"]
                if block["type"] == "tool_result"]

    @staticmethod
    def tools(body):
        return {t["name"]: t.get("input_schema") for t in body.get("tools", [])}

    @staticmethod
    def events(body, name, arguments):
        if name:
            block = {"type": "tool_use", "id": "call_1", "name": name, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(arguments)}
        else:
            block = {"type": "text", "text": ""}
            delta = {"type": "text_delta", "text": END}
        message = {"id": "message_1", "type": "message", "role": "assistant", "content": [],
                   "model": body.get("model"), "stop_reason": None, "stop_sequence": None,
                   "usage": {"input_tokens": 1, "output_tokens": 1}}
        end = {"stop_reason": "tool_use" if name else "end_turn", "stop_sequence": None}
        return [{"type": "message_start", "message": message},
                {"type": "content_block_start", "index": 0, "content_block": block},
                {"type": "content_block_delta", "index": 0, "delta": delta},
                {"type": "content_block_stop", "index": 0},
                {"type": "message_delta", "delta": end, "usage": {"output_tokens": 1}},
                {"type": "message_stop"}]


class Responses:
    @staticmethod
    def results(body):
        return [item["output"] for item in body["input"]
                if item.get("type") == "function_call_output"]

    @staticmethod
    def tools(body):
        found = {}
        for tool in body.get("tools", []):
            if tool["type"] == "namespace":
                found.update({"%s__%s" % (tool["name"], t["name"]): t.get("parameters")
                              for t in tool["tools"]})
            elif "name" in tool:
                found[tool["name"]] = tool.get("parameters")
        return found

    @staticmethod
    def events(body, name, arguments):
        if name:
            space, _, name = name.rpartition("__")
            item = {"type": "function_call", "id": "item_1", "call_id": "call_1", "name": name,
                    "arguments": json.dumps(arguments), "status": "completed"}
            if space:
                item["namespace"] = space
        else:
            item = {"type": "message", "id": "item_1", "role": "assistant", "status": "completed",
                    "content": [{"type": "output_text", "text": END, "annotations": []}]}
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2,
                 "input_tokens_details": {"cached_tokens": 0},
                 "output_tokens_details": {"reasoning_tokens": 0}}
        response = {"id": "response_1", "object": "response", "status": "completed",
                    "model": body.get("model"), "output": [item], "usage": usage}
        begun = dict(response, status="in_progress", output=[])
        return [{"type": "response.created", "response": begun},
                {"type": "response.output_item.done", "output_index": 0, "item": item},
                {"type": "response.completed", "response": response}]


class Completions:
    @staticmethod
    def results(body):
        return [m["content"] for m in body["messages"] if m["role"] == "tool"]

    @staticmethod
    def tools(body):
        return {t["function"]["name"]: t["function"].get("parameters")
                for t in body.get("tools", [])}

    @staticmethod
    def events(body, name, arguments):
        delta = {"role": "assistant"}
        if name:
            delta["tool_calls"] = [{"index": 0, "id": "call_1", "type": "function", "function": {
                "name": name, "arguments": json.dumps(arguments)}}]
        else:
            delta["content"] = END
        chunk = {"id": "completion_1", "object": "chat.completion.chunk", "created": 1,
                 "model": body.get("model")}
        end = {"index": 0, "delta": {}, "finish_reason": "tool_calls" if name else "stop"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        return [dict(chunk, choices=[{"index": 0, "delta": delta, "finish_reason": None}]),
                dict(chunk, choices=[end], usage=usage), "[DONE]"]


PROTOCOLS = {"/v1/messages": Messages, "/v1/responses": Responses,
             "/v1/chat/completions": Completions}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format, *args):	# pylint: disable=redefined-builtin
        pass

    def answer(self, body, kind="application/json", status=200):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self):
        self.answer(b"{}", status=404)

    do_HEAD = do_GET

    def do_POST(self):
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        protocol = PROTOCOLS.get(self.path.split("?")[0])
        if protocol is None:
            self.answer(b"{}", status=404)
            return
        body, model = json.loads(raw), self.server.model
        results, tools = protocol.results(body), protocol.tools(body)
        name = None if results else tool_name(tools, model.tool)
        if results:
            model.results = results
        if name:
            model.schema = tools[name]
        said = ""
        for event in protocol.events(body, name, model.arguments):
            if isinstance(event, dict) and "type" in event:
                said += "event: %s\n" % event["type"]
            said += "data: %s\n\n" % (event if isinstance(event, str) else json.dumps(event))
        self.answer(said.encode(), "text/event-stream")


class Model:
    """with Model(tool, arguments) as m: m.url is served. Then: results, what the tool's calls came
    to, as the model got it; schema, what it was told of the tool's arguments."""

    def __init__(self, tool, arguments):
        self.tool, self.arguments = tool, arguments
        self.results, self.schema = None, None

    def __enter__(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.model = self
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = "http://127.0.0.1:%d" % self.server.server_port
        return self

    def __exit__(self, *error):
        self.server.shutdown()
        self.server.server_close()
