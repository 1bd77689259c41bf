# SPDX-License-Identifier: Apache-2.0
"""Checks a script's imports by its text, before any of it runs.

Runs only in workers, never in the supervisor: worker/imports.py checks scripts that run with a
list of modules, and tools/compat/look_code.py checks scripts that do not run. This is policy: it
finds only what the text shows plainly. The wall is the jail.

What an attribute of a module is, a loaded module knows; of another one its source is read. So the
verdict does not depend on which modules the worker has loaded, and nothing is imported for it.
"""

import os
import re
import sys
from _imp import extension_suffixes

Module = type(sys)
# Attributes that lead from any object to modules that the script has not imported.
NOT_ALLOWED_NAMES = frozenset((
    "__builtins__", "__globals__", "__loader__", "__spec__", "__subclasses__", "f_builtins",
    "f_globals"))
PROBLEMS_MAX = 50
SOURCE_MAX = 1 << 20  # bytes of a file that is read
PARSED_MAX = 1 << 20  # bytes of all files that are parsed for one check
STEPS_MAX = 5  # from an import to the import from which it has the name
# An import statement, as a text may have it; a line of a docstring may look like one.
IMPORTS = re.compile(rb"^[ \t]*(?:from|import)\b(?:[^\n\\(]|\\\r?\n|\([^)]*\))*", re.M)


def import_allowed(name, modules):
    """Is the module, or a package that contains it, in the list?"""
    while name:
        if name in modules:
            return True
        name = name.rpartition(".")[0]
    return False


def import_leads(name, modules):
    """Is a module of the list in this package?"""
    name += "."
    return any(module.startswith(name) for module in modules)


def module_file(path):
    """The file of a module, and whether it is a package; None: there is none in sys.path."""
    parts = path.split(".")
    for place in sys.path:
        top, whole = os.path.join(place, parts[0]), os.path.join(place, *parts)
        for base in whole, top:
            names = [base + "/__init__.py", *(base + end for end in (".py", *extension_suffixes()))]
            found = next((name for name in names if os.path.isfile(name)), None)
            if found:
                return (found, found is names[0]) if base is whole or whole == top else None
    return None


def has_module(path):
    return path in sys.modules or path in sys.builtin_module_names or module_file(path) is not None


def is_left_out(test):
    """Is it the condition of statements that an import does not execute?"""
    if getattr(test, "id", getattr(test, "attr", None)) == "TYPE_CHECKING":
        return True
    if getattr(getattr(test, "left", None), "id", None) == "__name__":
        return True
    return not getattr(test, "value", True)


class ModuleNames:
    """The modules that are attributes of modules."""

    def __init__(self, ast):
        self.ast, self.left = ast, PARSED_MAX
        self.texts, self.names = {}, {}  # by the path of a module
        self.found = {}  # (path, name): what they are

    def text_of(self, path):
        """The source of a module, whether it is a package, and the texts of its imports."""
        if path not in self.texts:
            self.texts[path] = b"", False, ()
            found = module_file(path)
            if found and found[0].endswith(".py"):
                try:
                    with open(found[0], "rb") as file:
                        text = file.read(SOURCE_MAX + 1)
                except OSError:
                    text = b""
                if len(text) <= SOURCE_MAX:
                    self.texts[path] = text, found[1], IMPORTS.findall(text)
        return self.texts[path]

    def names_of(self, path):
        """{name: [(module, its attribute or None), ...]} for the names that the source binds by
        import statements; None for those that it binds otherwise."""
        if path not in self.names:
            import warnings

            names = self.names[path] = {}
            text, is_package, _ = self.text_of(path)
            self.left -= len(text)
            if self.left >= 0:
                try:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        tree = compile(text, path, "exec", self.ast.PyCF_ONLY_AST, True)
                    self.bind(tree, path if is_package else path.rpartition(".")[0], names)
                except (SyntaxError, ValueError, RecursionError, MemoryError):
                    names.clear()
        return self.names[path]

    def bind(self, node, package, names):
        """Notes what the statements of a module bind, in all branches."""
        ast = self.ast
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                if isinstance(node, ast.ImportFrom):
                    bound = self.origin(node, package), alias.name
                else:
                    bound = alias.name if alias.asname else alias.name.partition(".")[0], None
                known = names.setdefault(alias.asname or bound[1] or bound[0], [])
                if known is not None:
                    known.append(bound)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names[node.name] = None
        elif isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Load):
                names[node.id] = None
        elif isinstance(node, ast.Assign) and getattr(node.value, "value", 0) is None:
            pass  # in the place of a module that may be missing
        else:
            for child in (node.orelse if isinstance(node, ast.If) and is_left_out(node.test)
                          else ast.iter_child_nodes(node)):
                self.bind(child, package, names)

    def origin(self, node, package):
        """The module from which a statement imports."""
        if not node.level:
            return node.module
        for _ in range(node.level - 1):
            package = package.rpartition(".")[0]
        return ".".join(filter(None, (package, node.module)))

    def imported(self, path, name):
        """[(module, its attribute or None), ...] that the source may bind to the name, by imports;
        None: it is no module."""
        (text, _, statements), word = self.text_of(path), name.encode()
        if re.search(rb"^(?:async def|class|def) %s\b" % word, text, re.M):
            return None
        if any(re.search(rb"\b%s\b" % word, one) for one in statements):
            names = self.names_of(path)
            if name in names:
                return names[name]
        if word[:1] == b"_" or not any(b"*" in one for one in statements):
            return []
        return [(module, name) for module, _ in self.names_of(path).get("*") or ()
                if not re.search(rb"^__all__\b", self.text_of(module)[0], re.M)]

    def reached(self, path, name):
        """The name of the module that is this attribute of the module path; None: it is not a
        module, or not known."""
        if (path, name) not in self.found:
            self.found[path, name] = self.look(path, name, 0)
        return self.found[path, name]

    def look(self, path, name, steps):
        if not path or name == "*" or steps > STEPS_MAX:
            return None
        inner, holder = "%s.%s" % (path, name), sys.modules.get(path)
        if isinstance(holder, Module) and name in holder.__dict__:
            value = holder.__dict__[name]
            if not isinstance(value, Module):
                return None
            return inner if sys.modules.get(inner) is value else value.__name__
        bound = self.imported(path, name) if holder is None else []
        for module, item in bound or ():
            if item:  # from . import x, in the package itself: a module in it
                own = (module, item) == (path, name)
                module = inner if own else self.look(module, item, steps + 1)
            if module and has_module(module):
                return module
        return inner if bound == [] and has_module(inner) else None


class ImportCheck:
    def __init__(self, tree, modules):
        import ast

        self.ast, self.modules, self.found, self.names = ast, modules, [], {}
        self.reached = ModuleNames(ast).reached
        nodes = list(ast.walk(tree))
        self.bound = self.only_imported(nodes)
        look = {ast.Import: self.on_import, ast.ImportFrom: self.on_import_from,
                ast.Attribute: self.on_attribute, ast.Name: self.on_name, ast.Call: self.on_call}
        for node in nodes:
            if type(node) in look:
                look[type(node)](node)

    def say(self, node, name, text):
        self.found.append((node.lineno, text))
        self.names[name] = None

    def refuse(self, node, name, reached_as=None):
        self.say(node, name, "Import '%.200s' is not allowed%s" % (
            name, " (%.200s)" % reached_as if reached_as else ""))

    def only_imported(self, nodes):
        """{name: module} for names that import statements bind, and no other statement."""
        ast, bound, others = self.ast, {}, set()
        for node in nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    path = alias.name if alias.asname else alias.name.partition(".")[0]
                    bound.setdefault(alias.asname or path, set()).add(path)
            elif isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    path = self.reached(node.module or "", alias.name)
                    bound.setdefault(alias.asname or alias.name, set()).add(path)
            elif isinstance(node, ast.Name):
                if not isinstance(node.ctx, ast.Load):
                    others.add(node.id)
            elif isinstance(node, ast.arg):
                others.add(node.arg)
            elif not isinstance(node, ast.alias):
                # Definitions, except and case, which not every Python has.
                others.add(getattr(node, "name", None))
                others.add(getattr(node, "rest", None))
        return {name: paths.pop() for name, paths in bound.items()
                if len(paths) == 1 and name not in others}

    def on_import(self, node):
        for alias in node.names:
            if not import_allowed(alias.name, self.modules):
                self.refuse(node, alias.name)

    def on_import_from(self, node):
        if node.level:
            self.refuse(node, "." * node.level + (node.module or ""))
            return
        for alias in node.names:
            inner = "%s.%s" % (node.module, alias.name)
            if import_allowed(inner, self.modules):
                reached = self.reached(node.module, alias.name)
                if reached and not import_allowed(reached, self.modules):
                    self.refuse(node, reached, inner)
            else:
                self.refuse(node, node.module)
                return

    def path_of(self, node):
        """The name of the module that an expression of names and dots stands for, or None."""
        names = []
        while isinstance(node, self.ast.Attribute):
            names.append(node.attr)
            node = node.value
        path = self.bound.get(node.id) if isinstance(node, self.ast.Name) else None
        while path and names:
            path = self.reached(path, names.pop())
        return path

    def on_attribute(self, node):
        if node.attr in NOT_ALLOWED_NAMES:
            self.say(node, node.attr, "'%s' is not allowed" % node.attr)
            return
        holder = self.path_of(node.value)
        reached = holder and self.reached(holder, node.attr)
        if not reached:
            return
        if not import_allowed(reached, self.modules) and not import_leads(reached, self.modules):
            self.refuse(node, reached, "%s.%s" % (holder, node.attr))

    def on_name(self, node):
        if node.id in NOT_ALLOWED_NAMES:
            self.say(node, node.id, "'%s' is not allowed" % node.id)

    def on_call(self, node):
        """Checks a call that imports a module by a name that is a string literal."""
        ast, called = self.ast, node.func
        name = called.id if isinstance(called, ast.Name) else (
            called.attr if isinstance(called, ast.Attribute) else None)
        if name in ("__import__", "import_module") and node.args:
            wanted = getattr(node.args[0], "value", None)
            if isinstance(wanted, str) and not import_allowed(wanted, self.modules):
                self.refuse(node, wanted)


def import_problems(tree, modules, on_refused=None):
    """["Line N: Import 'x' is not allowed", ...], in the order of lines, at most PROBLEMS_MAX.
    on_refused: called with each refused name."""
    check = ImportCheck(tree, modules)
    for name in check.names if on_refused else ():
        on_refused(name)
    found = sorted(dict.fromkeys(check.found), key=lambda one: one[0])
    texts = ["Line %d: %s" % one for one in found[:PROBLEMS_MAX]]
    if len(found) > PROBLEMS_MAX:
        texts.append("There are %d more" % (len(found) - PROBLEMS_MAX))
    return texts
