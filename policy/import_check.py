# SPDX-License-Identifier: Apache-2.0
"""Checks a script's imports by its text, before any of it runs.

Runs only in workers, never in the supervisor: worker/imports.py checks scripts that run with a
list of modules, and tools/compat/look_code.py checks scripts that do not run. This is policy: it
finds only what the text shows plainly. The wall is the jail.
"""

import sys

Module = type(sys)
# Attributes that lead from any object to modules that the script has not imported.
NOT_ALLOWED_NAMES = frozenset((
    "__builtins__", "__globals__", "__loader__", "__spec__", "__subclasses__", "f_builtins",
    "f_globals"))
PROBLEMS_MAX = 50


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


def module_reached(path, name):
    """The name of the module that is this attribute of the loaded module path; None: it is not a
    module."""
    holder = sys.modules.get(path)
    value = holder.__dict__.get(name) if isinstance(holder, Module) else None
    if not isinstance(value, Module):
        return None
    inner = "%s.%s" % (path, name)
    return inner if sys.modules.get(inner) is value else value.__name__


class ImportCheck:
    def __init__(self, tree, modules):
        import ast

        self.ast, self.modules, self.found, self.names = ast, modules, [], {}
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
                    path = module_reached(node.module or "", alias.name)
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
                reached = module_reached(node.module, alias.name)
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
            path = module_reached(path, names.pop())
        return path

    def on_attribute(self, node):
        if node.attr in NOT_ALLOWED_NAMES:
            self.say(node, node.attr, "'%s' is not allowed" % node.attr)
            return
        holder = self.path_of(node.value)
        reached = holder and module_reached(holder, node.attr)
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
