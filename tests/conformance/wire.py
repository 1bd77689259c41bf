# SPDX-License-Identifier: Apache-2.0
"""Holds what a client recorded of a conversation to the official schema of its revision: every
message that the server sent, and no field that the revision does not have."""

import json
import os

try:
    import jsonschema
except ImportError:
    jsonschema = None

SCHEMAS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "schema")
MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"
# Since which revision a field is there. The schemas close no object: they do not notice.
RESULT_SINCE = {"resultType": MODERN, "ttlMs": MODERN, "cacheScope": MODERN,
                "inputRequests": MODERN, "requestState": MODERN,
                "structuredContent": "2025-06-18"}
TOOL_SINCE = {"annotations": "2025-03-26", "title": "2025-06-18", "outputSchema": "2025-06-18",
              "_meta": "2025-06-18", "icons": "2025-11-25", "execution": "2025-11-25"}
BLOCK_SINCE = {"audio": "2025-03-26", "resource_link": "2025-06-18"}


class Schema:
    cache = {}

    def __init__(self, revision):
        with open(os.path.join(SCHEMAS, revision + ".json"), encoding="utf-8") as f:
            self.schema = json.load(f)
        self.key = "$defs" if "$defs" in self.schema else "definitions"
        self.definitions = self.schema[self.key]
        number = self.definitions.get("NumberSchema", {}).get("properties", {})
        for bound in ("minimum", "maximum", "default"):
            if bound in number:	# published as integers, by mistake
                number[bound]["type"] = "number"
        self.by_method = {}
        for name, definition in self.definitions.items():
            method = definition.get("properties", {}).get("method", {}).get("const")
            if method:
                self.by_method[method] = name
        self.validators = {}

    @classmethod
    def of(cls, revision):
        if revision not in cls.cache:
            cls.cache[revision] = cls(revision)
        return cls.cache[revision]

    def check(self, name, value):
        assert name in self.definitions, "the schema knows no %s: %.300s" % (name, value)
        if name not in self.validators:
            schema = {"$schema": self.schema["$schema"], "$ref": "#/%s/%s" % (self.key, name),
                      self.key: self.definitions}
            self.validators[name] = jsonschema.validators.validator_for(schema)(schema)
        error = jsonschema.exceptions.best_match(self.validators[name].iter_errors(value))
        assert error is None, "%s: %s: %.600s" % (name, error and error.message, json.dumps(value))


class Conversation:
    def __init__(self):
        self.session = None	# what the handshake agreed on
        self.methods = {}	# of the client's requests: id -> (method, revision)
        self.checked = 0

    def client_says(self, message):
        meta = (message.get("params") or {}).get("_meta") or {}
        if "method" in message and "id" in message:
            self.methods[json.dumps(message["id"])] = (
                message["method"], meta.get(META + "protocolVersion"))

    def server_says(self, message):
        if "method" in message:
            self.server_asks(message)
        elif "error" in message:
            revision = self.revision_of(message.get("id"))[1]
            name = "JSONRPCErrorResponse" if revision >= "2025-11-25" else "JSONRPCError"
            Schema.of(revision).check(name, message)
        else:
            self.server_answers(message)
        self.checked += 1

    def revision_of(self, ident):
        method, claimed = self.methods.get(json.dumps(ident), (None, None))
        return method, claimed or self.session or MODERN

    def server_asks(self, message):
        revision = self.session or MODERN
        schema = Schema.of(revision)
        assert "id" not in message or self.session, "a server request in the modern era: %s" % (
            message,)
        assert message["method"] in schema.by_method, "%s has no %s" % (
            revision, message["method"])
        schema.check(schema.by_method[message["method"]], message)

    def server_answers(self, message):
        method, revision = self.revision_of(message["id"])
        assert method, "an answer to nothing: %.300s" % message
        result = message["result"]
        if method == "initialize":
            self.session = revision = result["protocolVersion"]
        schema = Schema.of(revision)
        request = schema.by_method[method]
        name = request.replace("Request", "Result")
        if name not in schema.definitions:
            name = "EmptyResult"
        if result.get("resultType") == "input_required":
            name = "InputRequiredResult"
        schema.check(name, result)
        if request + "Response" in schema.definitions:
            schema.check(request + "Response", message)
        self.check_fields(revision, result)

    @staticmethod
    def check_fields(revision, result):
        def none_before_its_time(value, since, what):
            early = [key for key in since if key in value and since[key] > revision]
            assert not early, "%s in %s of %s" % (early, what, revision)
        none_before_its_time(result, RESULT_SINCE, "a result")
        if revision != MODERN:
            assert not any(key.startswith(META) for key in result.get("_meta", {})), result
        for tool in result.get("tools", ()):
            none_before_its_time(tool, TOOL_SINCE, "tool " + tool["name"])
        for block in result.get("content", ()) if isinstance(result.get("content"), list) else ():
            assert BLOCK_SINCE.get(block["type"], "") <= revision, block["type"]


def check(path):
    """A file of lines {"from", "message"}; how much was checked, or AssertionError."""
    conversation = Conversation()
    with open(path, encoding="utf-8") as f:
        for line in f:
            entry = json.loads(line)
            if entry["from"] == "client":
                conversation.client_says(entry["message"])
            else:
                conversation.server_says(entry["message"])
    assert conversation.checked > 0, "nothing was recorded"
    return "%d messages of the server fit the schema of %s" % (
        conversation.checked, conversation.session or MODERN)
