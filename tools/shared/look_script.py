# SPDX-License-Identifier: Apache-2.0
"""Reads a script's metadata and compiles the script, in a jailed worker, without running it. It is
appended to worker/lenient.py, whose functions it calls.

Standard input: one line of JSON, {"toml": text or null, "compile": bool}, then the script. If
the script is compiled, and there are other servers, its calls of their tools are checked, too.
The value of the last expression is the answer: {"dependencies": [...], "requires_python": text
or null, "errors": [{"key", "line", "message"}], "imports": [{"module", "line"}]}: modules that the
script imports, and this Python does not have. Lines count from 1 in the TOML; with the key "script",
in the script.
"""

import ast
import json
import re
import sys
import warnings

TEXT_MAX = 500
answer = {"dependencies": [], "requires_python": None, "errors": [], "imports": []}


def wrong(key, line, message):
    answer["errors"].append({"key": key, "line": line, "message": message[:TEXT_MAX]})


def read_toml(text):
    import tomllib
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as e:
        at = re.search(r" \(at line (\d+), column \d+\)$", str(e))
        message = str(e)[:at.start()] if at else str(e)
        wrong("toml", int(at[1]) if at else text.count("\n") or 1, message)
    except RecursionError:
        wrong("toml", None, "nested too deeply")
    except ValueError as e:
        wrong("toml", None, str(e))
    return {}


def read_metadata(text):
    table = read_toml(text)
    dependencies = table.get("dependencies", [])
    if not isinstance(dependencies, list) or not all(isinstance(d, str) for d in dependencies):
        wrong("dependencies", None, "dependencies must be an array of strings")
    else:
        answer["dependencies"] = dependencies
    requires = table.get("requires-python")
    if not isinstance(requires, (str, type(None))):
        wrong("requires-python", None, "requires-python must be a string")
    else:
        answer["requires_python"] = requires


# ---- calls of other servers' tools ----


class Names(ast.NodeVisitor):
    """The names of a script that stand for the module tools, or for servers of it. Only names
    that an import binds, and no other statement, are certain. modules: names of the module;
    servers: {name: server}."""

    def __init__(self, tree):
        self.modules, self.servers, self.others, self.calls = set(), {}, set(), []
        self.visit(tree)
        self.modules -= self.others
        self.servers = {name: of for name, of in self.servers.items()
                        if name not in self.others | self.modules}

    def visit_Import(self, node):
        for one in node.names:
            if one.name == "tools":
                self.modules.add(one.asname or one.name)
            else:
                self.others.add(one.asname or one.name.split(".")[0])

    def visit_ImportFrom(self, node):
        for one in node.names:
            name = one.asname or one.name
            if node.module == "tools" and not node.level and name not in self.servers:
                self.servers[name] = (one.name, node.lineno)
            else:
                self.others.add(name)

    def visit_Name(self, node):
        if not isinstance(node.ctx, ast.Load):
            self.others.add(node.id)

    def visit_arg(self, node):
        self.others.add(node.arg)
        self.generic_visit(node)

    def visit_FunctionDef(self, node):
        self.others.add(node.name)
        self.generic_visit(node)

    visit_AsyncFunctionDef = visit_ClassDef = visit_FunctionDef

    def visit_ExceptHandler(self, node):
        self.others.add(node.name)
        self.generic_visit(node)

    def visit_Call(self, node):
        self.calls.append(node)
        self.generic_visit(node)


def called(node, names):
    """(server, tool, exact) of a call, or None. exact: the name is the tool's own, not the one
    in Python."""
    of = node.func
    if isinstance(of, ast.Attribute) and of.attr == "aio":
        of = of.value
    if isinstance(of, ast.Attribute):
        tool, exact = of.attr, False
    elif isinstance(of, ast.Subscript) and isinstance(of.slice, ast.Constant):
        tool, exact = of.slice.value, True
    else:
        return None
    server = of.value
    if isinstance(server, ast.Name) and server.id in names.servers:
        return names.servers[server.id][0], tool, exact
    if isinstance(server, ast.Attribute) and isinstance(server.value, ast.Name) \
            and server.value.id in names.modules:
        return server.attr, tool, exact
    return None


def nearest(name, names):
    import difflib
    near = difflib.get_close_matches(str(name), names, 1)
    return "; did you mean %s?" % near[0] if near else ""


def check_arguments(node, where, schema):
    properties, required = schema.get("properties"), schema.get("required")
    properties = properties if isinstance(properties, dict) else {}
    given = [one.arg for one in node.keywords]
    if node.args:
        wrong("script", node.lineno, "%s: arguments are passed by name" % where)
    if not schema.get("additionalProperties") and "patternProperties" not in schema:
        for name in given:
            if name is not None and name not in properties:
                wrong("script", node.lineno, "%s has no argument %s%s" % (
                    where, name, nearest(name, properties)))
    if None not in given and not node.args:  # **more may contain any argument
        for name in required if isinstance(required, list) else ():
            if name not in given:
                wrong("script", node.lineno, "%s: the argument %s is missing" % (where, name))


def check_calls(tree):
    """Reports mistakes that are certain. Calls of a server that does not run now are not
    checked."""
    try:
        import tools
        names = Names(tree)
    except (ModuleNotFoundError, RecursionError):
        return
    if type(tools).__name__ != "ToolsModule":  # an installed package has this name
        return
    skipped = set(dir(tools)) - set(tools.servers())
    uses = [(server, line, None) for server, line in names.servers.values()]
    for node in names.calls:
        use = called(node, names)
        if use:
            uses.append((use[0], node.lineno, (node, *use[1:])))
    for server, line, call in uses:
        if server in skipped:
            continue
        if server not in tools.servers():
            wrong("script", line, "there is no tool server %s%s" % (server, nearest(server, tools.servers())))
            skipped.add(server)
            continue
        if call is None:
            continue
        node, tool, exact = call
        try:
            about = getattr(tools, server)._list()
        except tools.ToolError:
            skipped.add(server)
            continue
        known = getattr(tools, server)._names
        name = tool if exact else known.get(tool)
        if name not in about:
            wrong("script", node.lineno, "the server %s has no tool %s%s" % (
                server, tool, nearest(tool, about if exact else known)))
        else:
            check_arguments(node, "%s.%s" % (server, tool), about[name]["inputSchema"])


# ---- imports and names ----

IMPORTS_MAX, NAMES_MAX = 32, 32
# What a script has without an import: worker/bootstrap.py.
GIVEN = {"__name__", "__file__", "__builtins__", "__doc__", "__spec__", "__loader__", "__package__",
         "__annotations__", "__class__", "__module__", "__qualname__", "__notebook__", "display", "get_ipython", "exit", "quit", "_", "__", "_exit_code"}
CATCHES_IMPORT = {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"}
CATCHES_NAME = {"NameError", "Exception", "BaseException"}


def catches(node, kinds):
    """Does the try statement catch one of these kinds of error?"""
    for handler in node.handlers:
        kind = handler.type
        if kind is None or any(isinstance(part, (ast.Name, ast.Attribute)) and
                               getattr(part, "id", getattr(part, "attr", None)) in kinds
                               for part in ast.walk(kind)):
            return True
    return False


def unguarded(tree, kinds):
    """The nodes of the tree, without those whose errors of these kinds are caught, and without what
    is for checkers of types alone."""
    todo = [tree]
    while todo:
        node = todo.pop()
        yield node
        parts = ast.iter_child_nodes(node)
        if isinstance(node, (ast.Try, getattr(ast, "TryStar", ast.Try))) and catches(node, kinds):
            parts = [*node.handlers, *node.orelse, *node.finalbody]
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            parts = node.orelse
        todo += parts


def check_installs(tree):
    """Commands of a notebook that install packages, which no run can do."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and \
                isinstance(node.func.value, ast.Name) and node.func.value.id == HELPER:
            words = " ".join(str(one.value) for one in node.args if isinstance(one, ast.Constant))
            if re.match(r"\W*(?:\S+ -m )?(?:uv )?(?:pip3?|conda|mamba|uv)\b.*\b(?:install|add)\b", words):
                wrong("script", node.lineno, "pip cannot install packages here; dependencies name them")


def is_there(module):
    import importlib.util
    try:
        return module in sys.modules or importlib.util.find_spec(module) is not None
    except Exception:
        return True


def check_imports(tree):
    """Reports the modules of the top level that this Python does not have."""
    found = {}
    for node in unguarded(tree, CATCHES_IMPORT):
        names = ()
        if isinstance(node, ast.Import):
            names = [one.name for one in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module]
        for name in names:
            name = name.partition(".")[0]
            found[name] = min(node.lineno, found.get(name, node.lineno))
    missing = [(line, name) for name, line in found.items() if not is_there(name)]
    answer["imports"] += [{"module": name, "line": line} for line, name in sorted(missing)[:IMPORTS_MAX]]


def bound(tree):
    """All names that any statement binds, in whatever scope; None: they cannot be known."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Load):
                names.add(node.id)
            elif node.id in ("exec", "globals", "locals", "vars", "eval"):
                return None
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            for one in node.names:
                if one.name == "*":
                    return None
                names.add(one.asname or one.name.partition(".")[0])
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names |= {node.name, *(getattr(one, "name", "") for one in getattr(node, "type_params", ()))}
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.ExceptHandler):
            names.add(node.name)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            names |= {*node.names}
        else:  # patterns of match
            names |= {getattr(node, "name", None), getattr(node, "rest", None)} - {None}
    return names


def check_names(tree):
    """Reports names that nothing binds. A line with commands of a notebook may bind any."""
    import builtins

    names = bound(tree)
    if names is None:
        return
    names |= GIVEN | {*dir(builtins)}
    found = {}
    for node in unguarded(tree, CATCHES_NAME):
        if isinstance(node, ast.Name) and node.id == HELPER:
            return
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in names:
            found[node.id] = min(node.lineno, found.get(node.id, node.lineno))
    for line, name in sorted((line, name) for name, line in found.items())[:NAMES_MAX]:
        wrong("script", line, "the name %.100s is not defined%s" % (name, nearest(name, names)))


def compiled(source):
    """The script as Python, once it compiles: in the forms, too, that a run accepts."""
    def check(text):
        compile(text, "script.py", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        return text

    try:
        return check(source)
    except SyntaxError:
        try:
            text = source.decode()
            python = with_line_breaks(text) or as_python(text)
            if python is not None:
                return check(python)
        except (SyntaxError, UnicodeDecodeError):
            pass
        raise


def compile_script(source):
    nul = source.find(b"\0")
    if nul >= 0:
        wrong("script", source.count(b"\n", 0, nul) + 1, "source holds a NUL byte")
        return
    try:
        python = compiled(source)
        tree = ast.parse(python)
        check_calls(tree)
        check_installs(tree)
        check_imports(tree)
        check_names(tree)
    except SyntaxError as e:
        wrong("script", e.lineno, "%s: %s" % (type(e).__name__, e.msg))
    except (RecursionError, MemoryError):
        wrong("script", None, "nested too deeply to be compiled")
    except (OverflowError, ValueError) as e:
        wrong("script", None, "%s: %s" % (type(e).__name__, e))


warnings.simplefilter("ignore")
head, _, script = sys.stdin.buffer.read().partition(b"\n")
asked = json.loads(head)
if asked["toml"] is not None:
    read_metadata(asked["toml"])
if asked["compile"]:
    compile_script(script)
answer
