# SPDX-License-Identifier: Apache-2.0
"""What each cell of a session finds renewed: its streams, the modules whose files have changed; and
what other code finds that looks for a file with the cells: inspect, multiprocessing.

Frozen into the program like worker/bootstrap.py, and run in the same namespace.
"""

import builtins
import functools
import importlib
import io
import os
import re
import sys
import time
from importlib.machinery import SourceFileLoader
from types import FunctionType

# ---- streams -------------------------------------------------------------------------


def renew_closed_streams():
    """Makes the streams again that a cell has closed or detached. One that a cell has put into the
    place of sys.stdout stays, as long as it is open."""
    for name, fd, (text, buffer, raw) in zip(("stdout", "stderr"), (1, 2), STREAMS):
        if raw.closed:
            Turn.__init__(raw, fd, "wb", closefd=False)
            raw.name = "<%s>" % name
        if is_closed(buffer):
            BufferedWriter.__init__(buffer, raw)
        if not is_closed(getattr(sys, name, None)):
            continue
        if is_closed(text):
            TextIOWrapper.__init__(text, buffer, "utf-8",
                                   "surrogateescape" if fd == 1 else "backslashreplace", "\n",
                                   line_buffering=True, write_through=True)
        setattr(sys, name, text)
        setattr(sys, "__%s__" % name, text)


def is_closed(stream):
    try:
        return stream is None or bool(getattr(stream, "closed", False))
    except BaseException:  # detached
        return True


def renew_stdin(has_stdin):
    """Replaces sys.stdin: it may hold an earlier cell's input, or quit() has closed it."""
    if has_stdin or Session.had_stdin or is_closed(getattr(sys, "stdin", None)):
        raw = io.FileIO(0, "rb", closefd=False)
        raw.name = "<stdin>"
        sys.stdin = sys.__stdin__ = io.TextIOWrapper(
            io.BufferedReader(raw), "utf-8", "surrogateescape")
        sys.stdin.mode = "r"
    Session.had_stdin = has_stdin


# ---- modules whose files have changed --------------------------------------------------

TICK = 0.1  # seconds; at least what passes between two times that a file system tells apart


class Source:
    """A source file, as it was when it was imported. is_new: it may be written again within the same
    tick of the clock."""

    def __init__(self, stats):
        self.stats, self.data = (stats["mtime"], stats["size"]), None
        self.is_new = abs(time.time() - stats["mtime"]) < TICK

    def has_changed(self, path):
        now = os.stat(path)
        if (now.st_mtime, now.st_size) == self.stats and not self.is_new:
            return False
        with open(path, "rb") as file:
            return hash(file.read()) != self.data


def import_anew(name, globals=None, locals=None, fromlist=(), level=0):
    """In the place of __import__ once a session has a module in /workspace: what a cell imports is
    new, also if the same cell has just written it."""
    if globals is main_module.__dict__ and not level and type(name) is str and is_own(name):
        reload_changed()
    return native_import(name, globals, locals, fromlist, level)


import_anew.__name__ = import_anew.__qualname__ = "__import__"
native_import = builtins.__import__


def is_own(name):
    """Is it a module of /workspace, or one that is not there yet?"""
    module = sys.modules.get(name.partition(".")[0])
    path = getattr(module, "__file__", None)
    return module is None or type(path) is str and path.startswith(WORKSPACE + "/")


def note_sources():
    """Notes each source file that is imported from now on. Files of Python and of installed
    packages do not change."""
    stats, read = SourceFileLoader.path_stats, SourceFileLoader.get_data

    def path_stats(self, path):
        found = stats(self, path)
        if not path.startswith((sys.prefix + "/", ENVIRONMENT)):
            Session.sources[path] = Source(found)
        if path.startswith(WORKSPACE + "/") and builtins.__import__ is native_import:
            builtins.__import__ = import_anew
        return found

    def get_data(self, path):
        data = read(self, path)
        if path in Session.sources:
            Session.sources[path].data = hash(data)
        return data

    for function in path_stats, get_data:
        function.__qualname__ = "SourceFileLoader." + function.__name__
        setattr(SourceFileLoader, function.__name__, function)


def changed_modules():
    """The modules whose files are not what was imported: those in /workspace; after %autoreload,
    all."""
    for name, module in list(sys.modules.items()):
        path = getattr(module, "__file__", None)
        if type(path) is not str or path not in Session.sources:
            continue
        if not (Session.autoreload or path.startswith(WORKSPACE + "/")):
            continue
        try:
            if Session.sources[path].has_changed(path):
                yield name, module
        except OSError:
            pass


def reload_changed():
    """Called before each cell, before its imports, and before pytest: imports modules again whose files have changed. New files are found
    even if their directory was listed in the same tick of the clock."""
    if not Session.sources:
        return
    for path, finder in list(sys.path_importer_cache.items()):
        if path.startswith(WORKSPACE) and hasattr(finder, "invalidate_caches"):
            finder.invalidate_caches()
    done = [name for name, module in changed_modules() if reload_module(name, module)]
    if done and not Session.autoreload:
        to_stderr("(imported again, because %s: %s)\n" % (
            "its file has changed" if len(done) == 1 else "their files have changed",
            ", ".join(done)))


def reload_module(name, module):
    """Imports the module again. Its functions and classes are replaced by the new ones where the
    session, or another module of the same kind, has them under a name."""
    old = {id(value): (key, value) for key, value in vars(module).items()
           if isinstance(value, (type, FunctionType))}
    try:
        importlib.reload(module)
    except Exception as e:
        to_stderr("%s could not be imported again: %s: %s\n" % (name, type(e).__name__, e))
        return False  # its source was noted anew, so it is tried again when it has changed
    users = [vars(user) for user in list(sys.modules.values())
             if user is not module and getattr(user, "__file__", None) in Session.sources]
    for names in [main_module.__dict__, *users]:
        for key, value in list(names.items()):
            if id(value) in old:
                names[key] = getattr(module, old[id(value)][0], value)
    return True


def patch_pytest(module):
    """Makes main() find each file below /workspace as it is now, also if an earlier cell, or an
    earlier line of this one, has run its tests: pytest itself looks for a test module among those
    that are imported. Its own loader notes no sources."""
    run = module.main

    @functools.wraps(run)
    def main(args=None, plugins=None):
        for name, one in list(sys.modules.items()):
            loader = type(getattr(getattr(one, "__spec__", None), "loader", None))
            if loader.__module__.startswith("_pytest.") \
                    and str(getattr(one, "__file__", "")).startswith(WORKSPACE + "/"):
                del sys.modules[name]
        reload_changed()
        return run(args, plugins)

    module.main = main


# ---- the source of cells ---------------------------------------------------------------


def patch_inspect(module):
    """Makes the source of a class known that a cell has defined: a session has no file."""
    getfile = module.getfile

    def getfile_of(object):
        try:
            return getfile(object)
        except (TypeError, OSError):
            cell = (Session.parent and isinstance(object, type)
                    and getattr(object, "__module__", None) == "__main__" and cell_of(object))
            if not cell:
                raise
            return cell

    getfile_of.__name__ = getfile_of.__qualname__ = "getfile"
    getfile_of.__module__ = "inspect"
    module.getfile = getfile_of


def cell_of(kind):
    """The file name of the last cell that defines the class; None: there is none."""
    for value in vars(kind).values():
        code = getattr(value, "__code__", None)
        if code is not None and code.co_filename.startswith("<cell "):
            return code.co_filename
    outer = kind.__qualname__.partition(".")[0]
    for number in reversed(History.sources):
        if re.search(r"(?m)^\s*class\s+%s\b" % re.escape(outer), History.sources[number]):
            return "<cell %d>" % number
    return None


# ---- processes that are started by spawn or forkserver -----------------------------------


DEFINES = ("FunctionDef", "AsyncFunctionDef", "ClassDef", "Import", "ImportFrom")
BLOCKS = ("If", "For", "While", "With", "Try")
MAIN_VALUES_MAX = 1 << 20


def patch_spawn(module):
    """Gives a process that is spawned from a cell what it has to find in __main__, as a file."""
    get_preparation_data = module.get_preparation_data

    def preparation_data(name):
        data = get_preparation_data(name)
        if Session.parent and "__file__" not in main_module.__dict__:
            data.pop("init_main_from_name", None)
            data["init_main_from_path"] = write_main(main_text())
        elif not Session.parent and Session.python is not None:
            data["init_main_from_path"] = write_main(Session.python)
        return data

    preparation_data.__name__ = preparation_data.__qualname__ = "get_preparation_data"
    module.get_preparation_data = preparation_data


def definitions(body):
    """The statements of a cell that define functions and classes, or import modules."""
    for node in body:
        kind = type(node).__name__
        if kind in DEFINES and getattr(node, "module", None) != "__future__":
            yield node
        elif kind in BLOCKS:
            for part in ("body", "orelse", "finalbody"):
                yield from definitions(getattr(node, part, []))


def main_values(code):
    """The plain variables of the session that definitions use, pickled one by one."""
    import pickle

    used, todo, values, left = set(), [code], {}, MAIN_VALUES_MAX
    while todo:
        one = todo.pop()
        used.update(one.co_names)
        todo += (part for part in one.co_consts if hasattr(part, "co_names"))
    for name in sorted(used & main_module.__dict__.keys()):
        value = main_module.__dict__[name]
        if name.startswith("__") or isinstance(value, (type, FunctionType, type(sys))):
            continue
        try:
            data = pickle.dumps(value)
        except Exception:
            continue
        left -= len(data)
        if left >= 0:
            values[name] = data
    return values


def guarded(node):
    import ast
    return ast.Try([node], [ast.ExceptHandler(ast.Name("Exception"), None, [ast.Pass()])], [], [])


def main_text():
    """A module with what the cells have defined. A statement that fails there, such as an import,
    leaves only its own names out."""
    import ast

    found = []
    for text in list(History.sources.values()):
        try:
            found += definitions(ast.parse(text).body)
        except SyntaxError:
            try:
                found += definitions(ast.parse(as_python(text) or "").body)
            except SyntaxError:
                pass
    code = compile(ast.fix_missing_locations(ast.Module(found, [])), "<cells>", "exec")
    values = ast.parse("import pickle as __pickle\n" + "".join(
        "%s = __pickle.loads(%r)\n" % pair for pair in main_values(code).items())).body
    return ast.unparse([guarded(node) for node in values + found])


def write_main(text):
    """Writes the file that becomes __main__ of a spawned process, and returns its path."""
    import hashlib

    path = "/tmp/.cells-%s.py" % hashlib.sha256(text.encode()).hexdigest()[:16]
    if not os.path.exists(path):
        with open(path, "w") as file:
            file.write(text)
    return path
