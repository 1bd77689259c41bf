# SPDX-License-Identifier: Apache-2.0
"""Restricts a running script to the modules that RUN names (policy/import_check.py checks the text
of the script before).

The script's own code has a copy of the builtins, in which __import__ is a function of this file;
all other code imports as usual. The script gets a view of a module, not the module. A view
leaves out the modules that the module itself has imported. A script that looks for a way around
this finds one, because no check inside the script's process can prevent that: this is policy.
The wall is the jail.
"""

import builtins
import importlib
import sys

real_import = builtins.__import__
real_import_module = importlib.import_module
module_set = Module.__setattr__
HIDDEN = frozenset(("__builtins__", "__cached__", "__dir__", "__getattr__", "__loader__",
                    "__spec__"))
REFUSED_MAX = 16  # REFUSED_IMPORTS_MAX in proto/message.h


class ImportNotAllowed(ImportError):
    """An import, or another way to a module, that the policy refuses."""

    line = 0


ImportNotAllowed.__module__ = "builtins"


class Allowed:
    """The modules that this run may import. views: {path: view}; behind: {id of a view: its
    module, path}."""

    modules = frozenset()
    views, behind = {}, {}
    refused = {}  # names of refused imports, in their order


def note_refused(name):
    """Notes a refused name. Only the first names are kept, because a script can try any number."""
    if len(Allowed.refused) < REFUSED_MAX:
        Allowed.refused["%.200s" % (name,)] = None


def refused_imports():
    """The refused names for DONE, as bytes; None: there are none."""
    return [name.encode("utf-8", "backslashreplace") for name in Allowed.refused] or None


def not_allowed(name):
    note_refused(name)
    e = ImportNotAllowed("Import '%.200s' is not allowed" % name)
    e.name = name
    return e


class View(Module):
    """A module as the script sees it. path: the name by which the script has reached it, which
    is the name that policy has: os.path, and not posixpath."""

    def __getattr__(self, name):
        module, path = Allowed.behind[id(self)]
        value = getattr(module, name)
        inner = "%s.%s" % (path, name)
        if isinstance(value, Module):
            if sys.modules.get(inner) is not value:
                inner = value.__name__
            if not import_allowed(inner, Allowed.modules) and (
                    not import_leads(inner, Allowed.modules)):
                raise not_allowed(inner)
            value = view_of(value, inner)
            module_set(self, name, value)
            return value
        if name in HIDDEN or not import_allowed(path, Allowed.modules):
            raise not_allowed(inner)
        return value

    def __setattr__(self, name, value):
        module, path = Allowed.behind[id(self)]
        if import_allowed(path, Allowed.modules):
            setattr(module, name, value)
        module_set(self, name, value)

    def __dir__(self):
        return dir(Allowed.behind[id(self)][0])

    def __repr__(self):
        return repr(Allowed.behind[id(self)][0])


def view_of(module, path):
    if not isinstance(module, Module) or type(module) is View:
        return module
    view = Allowed.views.get(path)
    if view is not None and Allowed.behind[id(view)][0] is module:
        return view
    view = View(module.__name__, module.__doc__)
    Allowed.behind[id(view)] = module, path
    Allowed.views[path] = view
    names = Module.__getattribute__(view, "__dict__")
    del names["__loader__"], names["__spec__"]
    if import_allowed(path, Allowed.modules):
        names.update((name, value) for name, value in dict.items(module.__dict__)
                     if name not in HIDDEN and not isinstance(value, Module))
    names.update(REPLACED.get(path, ()))
    return view


def guarded_import(name, globals=None, locals=None, fromlist=(), level=0):
    """The script's __import__."""
    if level:
        raise not_allowed("." * level + str(name))
    name, fromlist = str(name), tuple(fromlist or ())
    if not import_allowed(name, Allowed.modules):
        for item in fromlist or ("",):
            if not import_allowed("%s.%s" % (name, item), Allowed.modules):
                raise not_allowed(name)
    module = real_import(name, {}, None, fromlist, 0)
    return view_of(module, name if fromlist else name.partition(".")[0])


def guarded_import_module(name, package=None):
    """Import a module, if it is allowed."""
    if not import_allowed(str(name), Allowed.modules):
        raise not_allowed(name)
    return view_of(real_import_module(str(name)), str(name))


guarded_import.__name__ = guarded_import.__qualname__ = "__import__"
guarded_import_module.__name__ = guarded_import_module.__qualname__ = "import_module"

# Replacements for attributes that would avoid this check.
REPLACED = {
    "builtins": {"__import__": guarded_import},
    "importlib": {"__import__": guarded_import, "import_module": guarded_import_module},
}


def limit_imports(tree, names, modules):
    """Called before a script runs. Refuses it if its syntax tree has an import that is not
    allowed; else gives its names the restricted builtins."""
    Allowed.modules = frozenset(modules)
    problems = import_problems(tree, Allowed.modules, note_refused)
    if problems:
        e = ImportNotAllowed("\n".join(problems))
        e.line = int(problems[0].split(":")[0][5:])
        raise e
    names["__builtins__"] = dict(builtins.__dict__, __import__=guarded_import)


def drop_guard_frames(tb):
    """Removes the frames of this program from the middle of a traceback."""
    while tb is not None:
        after = tb.tb_next
        while after is not None and after.tb_frame.f_code.co_filename == "<mcp-python>":
            after = after.tb_next
        if after is not tb.tb_next:  # the assignment walks over all entries, to find a cycle
            tb.tb_next = after
        tb = after
