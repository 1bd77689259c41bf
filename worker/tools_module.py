# SPDX-License-Identifier: Apache-2.0
"""The module tools: the tools of other MCP servers as functions. A script imports it by this name,
unless it has a file tools.py.

    tools.SERVER.TOOL(name=value, ...)          returns the result
    await tools.SERVER.TOOL.aio(name=value)     the same, while other calls run

The list of a server's tools is requested when the script first uses the server. This file
enforces nothing: the supervisor decides which calls are made.
"""

import math
import os
import sys
import threading
from binascii import a2b_base64
from collections import Counter, deque
from importlib.machinery import ModuleSpec, PathFinder
from keyword import iskeyword

TOOL_RETURNED, TOOL_RAISED, TOOL_REFUSED, TOOL_FAILED = range(4)  # enum tool_status
TOOL_KINDS = {"string": str, "integer": int, "number": float, "boolean": bool, "array": list,
              "object": dict, "null": None}
TOOLS_DOC = """Tools of other MCP servers, as functions.

    tools.SERVER.TOOL(name=value, ...)       calls a tool and returns its result
    await tools.SERVER.TOOL.aio(name=value)  the same, for asyncio.gather
    tools.servers()                          the names of the servers
    tools.search("words", server=None)       the tools that fit the words best
    tools.describe("SERVER.TOOL")            what is known of one

A tool that fails raises tools.ToolError."""


class ToolError(Exception):
    """A call of a tool of another server has no result. The text gives the reason; server and
    tool are their names. content: the error that the tool itself returned, a list; None: the
    call was refused, or had no answer."""

    def __init__(self, message, server=None, tool=None, content=None):
        super().__init__(message)
        self.server, self.tool, self.content = server, tool, content


ToolError.__module__ = "tools"


class Calls:
    """The calls of this run. waiting: calls by .aio, as (call, loop, future). threads: the
    number of threads that make these calls."""

    servers = ()
    at_once = 1
    turns = threading.Semaphore()
    lock = threading.Lock()
    waiting = deque()
    threads = 0


def block_value(block):
    """The value of a block of content."""
    kind = block.get("type")
    if kind == "text":
        return block.get("text", "")
    if kind in ("image", "audio"):
        return a2b_base64(block.get("data", ""))
    if kind == "resource":
        resource = block.get("resource") or {}
        return a2b_base64(resource["blob"]) if "blob" in resource else resource.get("text", "")
    return block  # a link


def content_text(content):
    return "\n".join(str(block.get("text", "")) for block in content
                     if block.get("type") == "text")


def result_value(result):
    """The value of a result: structuredContent; else the text, parsed as JSON if it is JSON;
    else the values of the blocks (images and the like are bytes)."""
    if "structuredContent" in result:
        return result["structuredContent"]
    content = result["content"]
    if all(block.get("type") == "text" for block in content):
        text = content_text(content)
        try:
            return decode_json(text)
        except ValueError:
            return text
    values = [block_value(block) for block in content]
    return values[0] if len(values) == 1 else values


def call_tool(server, tool, arguments):
    """Makes one call, in any thread. Each failure raises ToolError."""
    text = encode_json(arguments)
    with Calls.turns:
        status, body = ask_tool(server, tool, text)
    where = "%s.%s: " % (server, tool)
    if status in (TOOL_REFUSED, TOOL_FAILED):
        raise ToolError(where + body, server, tool)
    try:
        result = decode_json(body)
        value = None if status == TOOL_RAISED else result_value(result)
    except Exception as error:  # the answer may have any blocks, invalid base64, deep JSON
        raise ToolError(where + "the server's answer cannot be read: %s" % error, server, tool) from None
    if status == TOOL_RAISED:
        said = content_text(result["content"]) or "the tool failed and does not say why"
        raise ToolError(where + said, server, tool, result["content"])
    return value


# ---- calls at the same time ----------------------------------------------------------


def settle(future, value, error):
    if not future.done():
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)


def make_calls():
    """Makes waiting calls. Runs in a thread of its own until no call waits."""
    while True:
        with Calls.lock:
            if not Calls.waiting:
                Calls.threads -= 1
                return
            call, loop, future = Calls.waiting.popleft()
        value = error = None
        try:
            value = call_tool(*call)
        except Exception as e:
            error = e
        try:
            loop.call_soon_threadsafe(settle, future, value, error)
        except RuntimeError:  # the loop was closed: no code waits for the result
            pass


async def call_beside(call):
    from asyncio import get_running_loop
    loop = get_running_loop()
    future = loop.create_future()
    with Calls.lock:
        Calls.waiting.append((call, loop, future))
        more = Calls.threads < Calls.at_once
        Calls.threads += more
    if more:
        threading.Thread(target=make_calls, name="tools", daemon=True).start()
    return await future


# ---- servers and their tools ---------------------------------------------------------


def python_name(name):
    """The name of a tool as a valid name in Python."""
    name = "".join(c if c.isalnum() or c == "_" else "_" for c in name)
    if name[:1].isdigit():
        name = "_" + name
    return name + "_" if iskeyword(name) else name


def python_kind(schema):
    kind = schema.get("type") if isinstance(schema, dict) else None
    return TOOL_KINDS.get(kind) if isinstance(kind, str) else None


def tool_signature(about):
    from inspect import Parameter, Signature
    schema = about["inputSchema"]
    properties, required = schema.get("properties"), schema.get("required")
    parameters, rest = {}, False
    for name, of in (properties.items() if isinstance(properties, dict) else ()):
        if not name.isidentifier() or iskeyword(name):
            rest = True
            continue
        needed = isinstance(required, list) and name in required
        parameters[name] = Parameter(
            name, Parameter.KEYWORD_ONLY, annotation=python_kind(of) or Parameter.empty,
            default=Parameter.empty if needed
            else of.get("default") if isinstance(of, dict) else None)
    if rest:
        parameters["**"] = Parameter("others", Parameter.VAR_KEYWORD)
    returns = about.get("outputSchema")
    return Signature(parameters.values(),
                     return_annotation=dict if returns else Signature.empty)


def tool_doc(about):
    schema = about["inputSchema"]
    lines = [about.get("description") or about.get("title") or about["name"]]
    properties = schema.get("properties")
    if isinstance(properties, dict) and properties:
        lines += ["", "Arguments:"]
        for name, of in properties.items():
            of = of if isinstance(of, dict) else {}
            lines.append("  %s: %s" % (name, of.get("description") or of.get("type") or "any"))
    return "\n".join(map(str, lines))


def make_tool(server, about):
    """Makes the function that calls a tool."""
    def tool(**arguments):
        return call_tool(server, about["name"], arguments)

    async def aio(**arguments):
        return await call_beside((server, about["name"], arguments))

    name = python_name(about["name"])
    for function in (tool, aio):
        function.__name__ = name
        function.__qualname__ = "%s.%s" % (server, name)
        function.__module__ = "tools"
        function.__doc__ = tool_doc(about)
        try:
            function.__signature__ = tool_signature(about)
        except Exception:  # the schema is not trusted: it may have invalid or repeated names
            pass
    tool.aio = aio
    return tool


class Server:
    """Another MCP server. Its tools are attributes; under their exact names they are items."""

    def __init__(self, name):
        self.__dict__.update(_name=name, _about=None, _names=None, _made={})

    def _list(self):
        """{exact name: description}. The list is requested once."""
        if self._about is None:
            with Calls.turns:
                status, body = ask_tool(self._name, None, None)
            if status != TOOL_RETURNED:
                raise ToolError("%s: %s" % (self._name, body), self._name)
            about = {one["name"]: one for one in decode_json(body)}
            names = {}
            for name in about:
                names.setdefault(python_name(name), name)
            self.__dict__.update(_names=names, _about=about)
        return self._about

    def __getitem__(self, name):
        about = self._list()
        if name not in about:
            raise KeyError("the server %s has no tool %s" % (self._name, name))
        if name not in self._made:
            self._made[name] = make_tool(self._name, about[name])
        return self._made[name]

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        self._list()
        if name not in self._names:
            raise AttributeError("the server %s has no tool %s; it has: %s" % (
                self._name, name, ", ".join(sorted(self._names)) or "none"))
        return self[self._names[name]]

    def __dir__(self):
        self._list()
        return sorted(self._names)

    def __repr__(self):
        return "<tools of the server %s>" % self._name


# ---- what there is -------------------------------------------------------------------


def words_of(text):
    word, words = "", []
    for c in text:
        if c.isalnum():
            if c.isupper() and word and not word[-1].isupper():
                words.append(word.lower())
                word = ""
            word += c
        elif word:
            words.append(word.lower())
            word = ""
    return words + [word.lower()] if word else words


def search(query="", server=None, limit=10):
    """The tools that match the words of query best (BM25): a list of {"name": "SERVER.TOOL",
    "description"}. Without words: all tools, in their order. Servers that do not run are left
    out."""
    found, texts = [], []
    for name in ([server] if server is not None else servers()):
        one = getattr(module_tools(), name)
        try:
            about = one._list()
        except ToolError:
            if server is not None:
                raise
            continue
        for tool in about.values():
            line = (tool.get("description") or tool.get("title") or "").strip().split("\n")[0]
            found.append({"name": "%s.%s" % (name, python_name(tool["name"])),
                          "description": line[:300]})
            texts.append(Counter(3 * words_of(name + " " + tool["name"])
                                 + words_of(tool.get("description") or "")))
    wanted = set(words_of(query))
    if not wanted:
        return found[:limit]
    average = sum(sum(text.values()) for text in texts) / (len(texts) or 1) or 1
    scores = []
    for at, text in enumerate(texts):
        score, length = 0.0, sum(text.values()) / average
        for word in wanted:
            n = sum(1 for other in texts if other[word])
            weight = math.log(1 + (len(texts) - n + 0.5) / (n + 0.5))
            score += weight * text[word] * 2.2 / (text[word] + 0.3 + 0.9 * length)
        if score > 0:
            scores.append((-score, at))
    return [found[at] for _, at in sorted(scores)[:limit]]


def stub_result(function, about):
    """The lines that declare the type of a tool's result, and the name of that type."""
    of = about.get("outputSchema")
    properties = of.get("properties") if isinstance(of, dict) else None
    if not isinstance(properties, dict) or not properties:
        return [], "dict[str, Any]" if of else "Any"
    name = function.__name__ + "_result"
    kinds = ", ".join("%r: %s" % (key, getattr(python_kind(one), "__name__", "Any"))
                      for key, one in properties.items())
    return ["%s = TypedDict(%r, {%s}, total=False)" % (name, name, kinds)], name


def stub(server, one):
    """The tools of a server as the text of a .pyi file."""
    lines = ["# tools.%s" % server, "from typing import Any, TypedDict"]
    for exact, about in one._list().items():
        function = one[exact]
        declared, returns = stub_result(function, about)
        signature = getattr(function, "__signature__", None)
        try:
            taken = str(signature.replace(return_annotation=type(signature).empty))
            compile("def f%s: ..." % taken, "stub", "exec")
        except Exception:  # no signature, or a default value that is not valid Python
            taken = "(**arguments)"
        lines += ["", *declared, "def %s%s -> %s:" % (function.__name__, taken, returns),
                  "    %r" % function.__doc__]
    return "\n".join(lines) + "\n"


def describe(name):
    """The description of "SERVER.TOOL" as text: its call, its purpose, its schemas. For
    "SERVER": its tools as the text of a .pyi file."""
    server, _, tool = name.partition(".")
    if server not in Calls.servers:
        raise ToolError("there is no server %s; there are: %s" % (server, ", ".join(servers())))
    one = getattr(module_tools(), server)
    if not tool:
        return stub(server, one)
    about = one._list()
    exact = tool if tool in about else one._names.get(tool)
    if exact is None:
        raise ToolError("the server %s has no tool %s" % (server, tool), server, tool)
    function, about = one[exact], about[exact]
    call = "tools.%s.%s%s" % (server, function.__name__,
                              getattr(function, "__signature__", "(**arguments)"))
    parts = [call, "", function.__doc__]
    for key in ("inputSchema", "outputSchema", "annotations"):
        if about.get(key):
            parts += ["", "%s: %s" % (key, encode_json(about[key]))]
    return "\n".join(parts)


def servers():
    """The names of the servers whose tools the script may call."""
    return list(Calls.servers)


class ToolsModule(type(sys)):
    def __getattr__(self, name):
        if name not in Calls.servers:
            raise AttributeError("module 'tools' has no attribute or server %r; servers are: %s"
                                 % (name, ", ".join(Calls.servers) or "none"))
        server = self.__dict__[name] = Server(name)
        return server

    def __dir__(self):
        return sorted({"ToolError", "describe", "search", "servers", *Calls.servers})


class ToolsLoader:
    @staticmethod
    def create_module(spec):
        module = ToolsModule("tools", TOOLS_DOC)
        module.__dict__.update(ToolError=ToolError, search=search, describe=describe,
                               servers=servers)
        return module

    @staticmethod
    def exec_module(module):
        pass


def module_tools():
    """The module, even if the script has not imported it by this name."""
    module = sys.modules.get("tools")
    if type(module) is not ToolsModule:
        module = tools_finder.module or ToolsLoader.create_module(None)
        tools_finder.module = module
    return module


class ToolsFinder:
    """A finder on sys.meta_path, before those of installed packages. A file tools.py of the
    script comes first."""

    module = None

    def find_spec(self, name, path=None, target=None):
        if name != "tools" or path is not None or not Calls.servers:
            return None
        own = PathFinder.find_spec(name, [os.getcwd()])
        if own is not None and own.loader is not None:
            return own
        return ModuleSpec("tools", ToolsLoader)


tools_finder = ToolsFinder()

for function in (search, describe, servers):
    function.__module__ = "tools"


def offer_tools(names, at_once):
    """Called in the process of a script or cell, before it runs."""
    Calls.servers, Calls.at_once = tuple(names), at_once
    Calls.turns, Calls.lock = threading.Semaphore(at_once), threading.Lock()
    Calls.waiting, Calls.threads = deque(), 0
    finders = sys.meta_path
    if type(finders) is list and not any(one is tools_finder for one in finders):
        finders.insert(0, tools_finder)
