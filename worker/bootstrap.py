# SPDX-License-Identifier: Apache-2.0
"""The Python part of the interpreter: compiles, runs and ends one script.

These files share its namespace: worker/rich.py displays objects that are more than text;
worker/ipython.py makes IPython's display() use that; worker/jsonable.py converts values that have
no JSON form; worker/notebook.py accepts the syntax of notebooks; worker/history.py keeps the texts
and values of earlier cells; worker/variables.py lists the variables of a session;
worker/renew.py renews what a cell may have used up, and modules whose files have changed;
worker/imports.py, with policy/import_check.py, restricts a script to the modules that it may
import; worker/installed.py finds modules in packages that were installed earlier;
worker/learned.py makes imports of well-known modules fast; worker/ready.py makes a worker ready for
scripts with a set of packages; worker/watched.py looks what these imports change.

The file is frozen into the program by worker/freeze.py, and cannot be imported: only
worker/interpreter.c has its module. prepare() runs once in the zygote; fresh() and run() in each
worker; become_session() and run_cell() in the worker of a session. A script may replace any
object that it can reach. So the functions that are needed after a script are bound here before
it runs, and this module has its own dictionary of builtins.
"""

import _ast
import _thread
import atexit
import builtins
import codecs
import gc
import io
import json.decoder
import json.encoder
import linecache
import os
import re
import reprlib
import site
import sys
import threading
import traceback
from _signal import set_wakeup_fd
from importlib.machinery import BuiltinImporter, PathFinder
from importlib.machinery import SourceFileLoader as ScriptLoader
from stat import S_ISCHR
from types import CoroutineType

FILE = "script.py"
PATH = "/workspace/script.py"
ENVIRONMENT = "/environment"  # the mount point that worker/mounts.c makes
OWN_FILE = __name__
AST = _ast.PyCF_ONLY_AST | _ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
CODE = _ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
COROUTINE = 0x80  # CO_COROUTINE
RESULT = " result"  # not a valid name, so no script uses it
VALUE_MAX = 256 << 10
PACKAGES_MAX = 12  # the most that the description of a tool names
PACKAGES = ("numpy", "pandas", "scipy", "matplotlib", "sklearn", "statsmodels", "sympy", "seaborn",
            "plotly", "networkx", "polars", "torch", "PIL", "cv2", "requests", "httpx", "bs4", "lxml",
            "openpyxl", "docx", "pypdf", "yaml", "pydantic")
HISTORY = re.compile("In|Out|_{2,3}|_i{1,3}|_i?[0-9]+")
NAMES_MAX, NAME_VALUE_MAX, NAMES_TEXT_MAX = 200, 2000, 64 << 10

Assign, Constant, Expr, Name, Store = _ast.Assign, _ast.Constant, _ast.Expr, _ast.Name, _ast.Store
COOKIE = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)", re.ASCII)
BLANK = re.compile(rb"^[ \t\f]*(?:#.*)?(?:\r\n?|\n|$)", re.ASCII)
encode_json = json.encoder.JSONEncoder(allow_nan=False, ensure_ascii=False).encode
decode_json = json.decoder.JSONDecoder().decode
main_module = sys.modules["__main__"]
native_excepthook = sys.excepthook
thread_shutdown = threading._shutdown
run_atexit = atexit._run_exitfuncs
MAIN_THREAD = threading.main_thread()
count_threads, count_exits = _thread._count, atexit._ncallbacks
thread_exits = threading._threading_atexits
BufferedWriter, TextIOWrapper = io.BufferedWriter, io.TextIOWrapper


# ---- in the zygote -------------------------------------------------------------------


class Prepared:
    """How many functions were registered for the end of the process before the script ran."""

    exits = thread_exits = 0
    generators = ()  # random generators of imported modules
    seed = None  # seeds the generator that the functions of numpy.random share


def well_known():
    """The first of PACKAGES that can be imported. Imports nothing."""
    found = [name for name in PACKAGES if getattr(PathFinder.find_spec(name), "loader", None)]
    return ", ".join(found[:PACKAGES_MAX])


def prepare(modules, remove_env, learnable, learned, rounds):
    """Imports modules, and learns others. Returns the names of those that cannot be imported,
    well_known(), and the result of learn()."""
    missing, packages = [], well_known()
    thresholds = gc.get_threshold()
    gc.set_threshold(0)  # it would go through the modules again and again
    prepare_display()
    # Before the imports: a module may keep one of them.
    sys.excepthook = sys.__excepthook__ = excepthook
    sys.unraisablehook = sys.__unraisablehook__ = unraisablehook
    threading.excepthook = threading.__excepthook__ = thread_excepthook
    sys.stdout = sys.__stdout__ = STDOUT
    sys.stderr = sys.__stderr__ = STDERR
    if "inspect" in sys.modules:
        patch_inspect(sys.modules["inspect"])
    for name in modules:
        try:
            __import__(name)
        except BaseException:
            missing.append(name)
            traceback.print_exc()
    result = learn(learnable, learned)
    platform = learned_module("platform")
    if platform is not None:  # an import may have made it cache the host's name
        platform._uname_cache = None
    for name in remove_env:
        os.environ.pop(name, None)
    logging = sys.modules.get("logging")
    if logging is not None:  # its handler of last resort has nothing to flush at the end
        logging._handlerList[:] = [handler for handler in logging._handlerList
                                   if handler() is not logging.lastResort]
    Prepared.exits, Prepared.thread_exits = count_exits(), len(thread_exits)
    Prepared.generators, has_others = generators()
    if has_others and result[0] and not Learned.trials:
        end_group()
    Prepared.seed = seeder()
    settle_hooks()

    sys.dont_write_bytecode = True  # /workspace has the script's files, and no others
    sys.path.insert(0, "")
    sys.path_importer_cache.clear()
    sys.orig_argv[:] = ["python3", FILE]
    clean = main_module.__dict__
    clean.clear()
    clean.update(
        __name__="__main__",
        __doc__=None,
        __package__=None,
        __loader__=ScriptLoader("__main__", PATH),
        __spec__=None,
        __builtins__=builtins,
        __file__=PATH,
        __cached__=None,
    )
    if sys.version_info < (3, 14):  # from 3.14 on __annotate__ makes them on demand
        clean["__annotations__"] = {}
    gc.set_threshold(*thresholds)
    gc.collect()
    gc.freeze()
    for _ in range(rounds):  # lets the interpreter specialise the code that every run executes
        rehearse()
    gc.collect()
    gc.freeze()
    return missing, packages, *result


def stream(fd, name, errors, write_through):
    """Makes a stream like the interpreter's own, with the layers of worker/turns.c below the
    text."""
    raw = Turn(fd, "wb", closefd=False)
    raw.name = name
    text = TextIOWrapper(TurnBuffer(raw), "utf-8", errors, "\n",
                         line_buffering=True, write_through=write_through)
    text.mode = "w"
    return text


# Made while the zygote's descriptors are pipes, because a stream determines its kind only once.
STDOUT = stream(1, "<stdout>", "surrogateescape", False)
STDERR = stream(2, "<stderr>", "backslashreplace", True)
STREAMS = [(text, text.buffer, text.buffer.raw) for text in (STDOUT, STDERR)]


def rehearse():
    """Executes the code that every run executes, without any effect."""
    names = {"__builtins__": builtins}
    attempt(b"import sys\nx = [1]\nprint, len(x)\n", names, 4096, None, False, 0)
    attempt(b"len('x')", names, 4096, None, False, 0)
    value_json([1, "x", 0.5], 4096)
    linecache.cache.pop(FILE)
    flush_output()
    clear_names(names)


def generators():
    """The generators that modules have made for themselves, for example sympy.core.random.rng; and
    whether there are others, which fresh() does not seed anew, so that workers would share their
    numbers."""
    known, bits = learned_module("random"), learned_module("numpy.random.bit_generator")
    if not known:
        return (), False
    own, legacy = known.Random, learned_module("numpy.random.mtrand")
    spared = known._inst, legacy and legacy._rand._bit_generator
    kinds = [own, bits.BitGenerator] if bits else [own]
    for kind in kinds:
        kinds += type.__subclasses__(kind)
    found = [one for one in of_types(gc.get_objects(), *kinds)
             if not any(one is other for other in spared)]
    others = [kind for kind in map(type, found) if not issubclass(kind, own) or not issubclass(
        kind, known.SystemRandom) and (kind.random, kind.getrandbits) != (own.random,
                                                                         own.getrandbits)]
    return [(own.seed, one) for one in found if issubclass(type(one), own)], bool(others)


def seeder():
    """Returns what seeds the generator that the functions of numpy.random share; None: there is
    none."""
    legacy = learned_module("numpy.random.mtrand")
    if legacy is None:
        return None
    with contextlib.suppress(Exception):  # another release of NumPy
        legacy.seed()  # from now on the key alone makes the difference
        bits = legacy._rand._bit_generator
        if note_twister(bits.capsule, bits.state["state"]["key"].tobytes()):
            return seed_twister
    return legacy.seed


def fresh():
    """Called in a new worker, before it gets its script. Seeds random generators again: workers
    of one zygote must not give the same numbers. Python's own module random does this itself.
    Also sets the id of the thread."""
    if Prepared.seed is not None:
        Prepared.seed()
    for seed, generator in Prepared.generators:
        seed(generator)
    MAIN_THREAD._native_id = _thread.get_native_id()


def use_proxy(port):
    """Called after RUN: sets the variables that HTTP clients read. Some read only the lower-case
    names, others only the upper-case names."""
    for scheme in "http", "https":
        name = scheme + "_proxy"
        os.environ[name] = os.environ[name.upper()] = "http://127.0.0.1:%d" % port
    os.environ["no_proxy"] = os.environ["NO_PROXY"] = "localhost,127.0.0.1,::1"


# ---- compiling -----------------------------------------------------------------------


def refuse(message, line, column, text):
    raise SyntaxError(message, (FILE, line, column, text))


def decode(script):
    """The script's text. Refuses text that is not UTF-8, and names the position."""
    if script.startswith(codecs.BOM_UTF8):
        script = script[3:]
        before = 3
    else:
        before = 0
    at = script.find(b"\0")
    try:
        text = script.decode()
    except UnicodeDecodeError as e:
        bad = e.start
        if at < 0 or bad < at:
            line = script.count(b"\n", 0, bad) + 1
            refuse("source is not valid UTF-8: byte 0x%02x at offset %d, line %d (%s)"
                   % (script[bad], bad + before, line, e.reason), line, None, None)
        text = None
    if at >= 0:
        line = script.count(b"\n", 0, at) + 1
        refuse("source holds a NUL byte at offset %d, line %d" % (at + before, line),
               line, None, None)
    if script.find(b"coding") >= 0:  # "in" would try it as a number first
        check_cookie(script)
    return text


def check_cookie(script):
    """Refuses a script whose line 1 or 2 declares another encoding than UTF-8 in a comment (PEP
    263)."""
    at = 0
    for line in (1, 2):
        end = script.find(b"\n", at) + 1 or len(script)
        first = script[at:end]
        found = COOKIE.match(first)
        if found:
            name = found[1].decode("ascii")
            if name.lower().replace("_", "-") not in ("utf-8", "utf8", "utf-8-sig"):
                refuse("encoding %s is declared, but scripts are UTF-8" % name,
                       line, None, first.decode("utf-8", "replace"))
            return
        if not BLANK.match(first):
            return
        at = end


def remember_source(text):
    """Stores the source where tracebacks and inspect find it, independently of the script's
    files."""
    if "\r" in text:
        lines = io.StringIO(text, None).readlines()
    else:  # text holds no NUL
        lines = text.replace("\n", "\n\0").split("\0")
        if not lines[-1]:
            del lines[-1]
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    linecache.cache[FILE] = (len(text), None, lines, FILE)


def parse(text):
    """The syntax tree of a script. Refuses a script that can be compiled, but is nested too
    deeply for a tree."""
    try:
        return compile(text, FILE, "exec", AST, True)
    except (RecursionError, MemoryError):
        raise ImportNotAllowed("the script is nested too deeply to be checked") from None


def compile_call(text, flags):
    """Compiles a script that is one call in one line, to code with a value; None for any other
    script. The other way, by a syntax tree in Python, takes longer than the rest of the run."""
    line = text.rstrip()
    if (line[-1:] != ")" or "\n" in line or "await" in line
            or not line.partition("(")[0].replace(".", "").isidentifier()):
        return None
    try:
        return compile(text, FILE, "eval", flags, True)
    except Exception:
        return None


def is_quiet(text, last):
    """Does a semicolon follow the last statement? Only blanks, line breaks and comments can
    follow it."""
    if ";" not in text:
        return False
    lines = io.StringIO(text, None).readlines()[last.end_lineno - 1:]
    behind = lines[0].encode()[last.end_col_offset:].decode() + "".join(lines[1:])
    return behind.lstrip(" \t\f\n\\").startswith(";")


def compile_script(text, future=0, may_be_quiet=True):
    """Compiles a script to code that gives the value of its last statement, if that is an
    expression: as the value of the code, or under RESULT in its namespace. So the script has one
    frame, as on a host. As in notebooks, an expression with a semicolon after it has no value."""
    code = compile_call(text, CODE | future)
    if code is not None:
        return code
    try:
        tree = compile(text, FILE, "exec", AST | future, True)
        last = tree.body[-1] if tree.body else None
        if type(last) is Expr and not (may_be_quiet and is_quiet(text, last)):
            # If the first statement is a docstring, it stays one.
            if len(tree.body) == 1 and type(last.value) is Constant:
                tree.body.append(last)
            store = Name(RESULT, Store())
            value = Assign([store], last.value)
            store.lineno = value.lineno = last.lineno
            store.col_offset = value.col_offset = last.col_offset
            store.end_lineno = value.end_lineno = last.end_lineno
            store.end_col_offset = value.end_col_offset = last.end_col_offset
            tree.body[-1] = value
        return compile(tree, FILE, "exec", CODE | future, True)
    except (RecursionError, MemoryError):
        # The tree is too deep for its form in Python. Without that form the script may still
        # compile.
        return compile(text, FILE, "exec", CODE | future, True)


# ---- running -------------------------------------------------------------------------


async def finish(value, names, is_module):
    """The value of a script with await; if the value is a coroutine that has not started, the
    result of that."""
    if is_module:
        value = names.pop(RESULT, await value)
    if (type(value) is CoroutineType and value.cr_frame is not None
            and not value.cr_suspended and not value.cr_running):
        value = await value
    return value


def run_to_end(coroutine):
    import asyncio

    return asyncio.run(coroutine)


def execute(code, names, run=run_to_end):
    """Executes the code. Returns the value of the last expression; of a coroutine, its result."""
    # No function is called here that the script's own trace function would see.
    value, is_module = eval(code, names), code.co_flags & COROUTINE
    if not is_module:
        value = names.pop(RESULT, value)
    if type(value) is CoroutineType:
        value = run(finish(value, names, is_module))
    return value


def own_frames(e, code):
    """Removes the frames of this module from the traceback: those above the script, or above a
    coroutine of it."""
    tb = first = e.__traceback__
    while tb is not None and tb.tb_frame.f_code is not code:
        tb = tb.tb_next
    if tb is None and code is not None:
        tb = first
        while tb is not None and tb.tb_frame.f_code.co_filename != code.co_filename:
            tb = tb.tb_next
    e.__traceback__ = without_own(tb)
    chain = [e]
    while len(chain) < CHAIN_MAX:
        e = chain[-1].__cause__ or chain[-1].__context__
        if e is None or e in chain:
            break
        e.__traceback__ = without_own(e.__traceback__)
        chain.append(e)


def without_own(tb):
    """The traceback without the frames of this module."""
    while tb is not None and tb.tb_frame.f_code.co_filename == OWN_FILE:
        tb = tb.tb_next
    at = tb
    while at is not None and at.tb_next is not None:
        if at.tb_next.tb_frame.f_code.co_filename == OWN_FILE:
            at.tb_next = at.tb_next.tb_next
        else:
            at = at.tb_next
    return tb


def place_environment(paths):
    """Adds paths where a virtual environment has its packages: after Python's own modules,
    before the packages of the host."""
    at = next((i for i, path in enumerate(sys.path) if path.endswith("-packages")),
              len(sys.path))
    sys.path[at:at] = paths


def use_environment():
    """Makes the mounted packages available to this interpreter, and to interpreters that it
    starts."""
    before = len(sys.path)
    site.addsitedir(ENVIRONMENT)
    added = sys.path[before:]
    del sys.path[before:]
    place_environment(added)
    name_environment()


def name_environment():
    os.environ["PYTHONPATH"] = ENVIRONMENT
    programs = ENVIRONMENT + "/bin"
    path = os.environ.get("PATH", os.defpath)
    if programs not in path.split(":"):
        os.environ["PATH"] = programs + ":" + path


def run(script, args, value_max, imports, tell_names, environment, name, variables):
    """Runs a script to its end, exit handlers included. imports: a list of the modules that it may
    import, or None. name: the script's name in tracebacks, or None. variables: the variables that
    it begins with, a JSON object, or None. environment: 0: the script has no set of packages; 1: one
    is mounted; 2: one is, and make_ready was called; negative: -errno of the mount. A script without
    one may find one (worker/installed.py).

    Returns (exit code, raised, repr, json, cut, exact, type, message, traceback, line,
    undisplayed, names, refused imports, imported modules, time of imports). Texts are bytes; a
    missing one is None.
    """
    global FILE
    FILE = name or FILE
    names = main_module.__dict__
    sys.argv[:] = [FILE, *args]
    sys.orig_argv[:] = ["python3", FILE, *args]
    status, raised, result, told = attempt(
        script, names, value_max, imports, tell_names, environment, variables)
    imported = imported_modules() if environment > 0 or Session.packages else None
    tell_elsewhere()
    if end(names):
        status = 120
    return (status, raised, *result, Shown.undisplayed or None, told, refused_imports(),
            imported, take_import_us())


def attempt(script, names, value_max, imports, tell_names, environment, variables=None):
    """Runs a script with these global names. Afterwards this module refers to no object of the
    script."""
    value = caught = code = None
    try:
        if environment < 0:
            raise ImportError("the installed packages could not be mounted: %s"
                              % os.strerror(-environment))
        if environment == 1:
            use_environment()
        text = decode(script)
        remember_source(text)
        if METADATA in text:
            tell_unclosed(text)
        try:
            code, python = compile_script(text, may_be_quiet=not tell_names), text
        except SyntaxError:
            code, python = compile_lenient(text, imports, not tell_names)
        if environment or may_ask_module():
            Imported.text, Imported.before = python, frozenset(sys.modules)
        if imports is not None:
            limit_imports(parse(python), names, imports)
        if variables is not None:
            names.update(decode_json(variables))
        value = execute(code, names)
        if tell_names:
            value = names.get("result", value)
    except BaseException as e:
        own_frames(e, code)
        drop_guard_frames(e.__traceback__)
        caught = e
        note_lacks(e, has_input())
    sys.settrace(None)
    sys.setprofile(None)
    status, raised, result = tell(caught, value, value_max)
    told = names_json(names) if tell_names and caught is None else None
    return status, raised, result, told


def tell(caught, value, value_max):
    """Returns the exit code, whether the script raised an exception, and eight members of its
    DONE."""
    if sys.getrecursionlimit() < 1000:
        sys.setrecursionlimit(1000)
    status, result = 0, [None] * 8
    if is_loaded("subprocess"):
        tell_installs(value)
    if Shown.held is not None:
        put_held()
    if caught is None:
        if value is not None:
            result[:4] = show(value, value_max)
            if show_result(value):
                result[:4] = [None] * 4
    elif isinstance(caught, SystemExit):
        status = exit_code(caught)
    else:
        status = 130 if isinstance(caught, KeyboardInterrupt) else 1
        result[4:] = report(caught, value_max)
    if is_loaded("matplotlib._pylab_helpers"):
        show_open_figures()
    return status, caught is not None and not isinstance(caught, SystemExit), result


def is_loaded(name):
    try:
        return name in sys.modules
    except BaseException:  # the script may have replaced it
        return False


def exit_code(e):
    """The exit code, as CPython determines it: a number; or 1 for a text, which goes to standard
    error."""
    code = e.code
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF if -(1 << 63) <= code < 1 << 63 else 0xFF
    try:
        to_stderr(str(code) + "\n")
    except BaseException:
        pass
    return 1


def end(names):
    """Takes the steps of an interpreter before its process ends. True: output was lost."""
    steps = [run_atexit, flush_output, lambda: clear_names(names)]
    # thread_shutdown waits for threads. Its other effects are visible only to threads, and to code
    # that runs later.
    if (count_threads() or len(thread_exits) > Prepared.thread_exits
            or count_exits() > Prepared.exits):
        steps.insert(0, thread_shutdown)
    for step in steps:
        try:
            step()
        except BaseException:
            complain()
    return flush_output()


# Calls a function. What objects say when they are released comes from "sys:1", as at the end of an
# interpreter.
release = eval(compile("lambda function, *arguments: function(*arguments)", "sys", "eval"),
               {"__name__": "sys"})


def clear_names(names):
    """Releases the script's objects, in CPython's order."""
    if "last_value" in sys.__dict__:
        remember_error(None, None, None)
    release(clear_dict, names)
    release(gc.collect, 1)


def remember_error(*error):
    for name, value in zip(("last_type", "last_value", "last_traceback"), error):
        release(setattr, sys, name, value)


def flush_output():
    lost = False
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except BaseException:
            if stream is sys.stdout:
                lost = True
                complain()
    return lost


# ---- sessions ------------------------------------------------------------------------

FUTURE = 0x1FE0000  # the flags of a code object that `from __future__ import` sets
# The descriptors that each process of a session has: worker/line.h, worker/jail.h.
STANDARD = ("0", "1", "2", "58", "59", "60", "61", "62", "63")
listdir, readlink, stat, getpid = os.listdir, os.readlink, os.stat, os.getpid
exit_code_of = os.waitstatus_to_exitcode
threads = threading.enumerate
main_thread, get_referrers = threading.main_thread, gc.get_referrers
CHILDREN = ("subprocess", "multiprocessing.popen_fork")  # modules with classes of processes


class Session:
    """The data that one cell leaves to the next, beside its names."""

    future = 0
    root = None  # the device number of the file system without installed packages
    packages = None  # the set of packages from which this state imports
    had_stdin = False
    runner = None  # asyncio.Runner of the event loop, which all cells share
    runner_of = 0  # the process that has made the descriptors of the runner
    parent = 0  # the process whose children the objects of processes describe
    python = None  # the last text that had to be made Python
    autoreload = False  # after %autoreload: modules outside of /workspace are reloaded, too
    sources = {}  # {path of an imported module: its Source}


def become_session():
    names = main_module.__dict__
    for name in ("__file__", "__cached__"):
        names.pop(name, None)
    names["__loader__"] = BuiltinImporter
    sys.argv[:] = [""]
    sys.orig_argv[:] = ["python3"]
    Session.root = stat(ENVIRONMENT + "/..").st_dev
    Session.parent = getpid()
    STDOUT.reconfigure(write_through=True)  # no output waits in the text layer
    note_sources()


def renew_packages():
    """Uses packages that were mounted after the cell before this one, or after the start of the
    script."""
    at = stat(ENVIRONMENT)
    packages = at.st_dev, at.st_ino
    if at.st_dev == Session.root or packages == Session.packages:
        return
    forget_ready()
    Session.packages = packages
    for path in list(sys.path_importer_cache):
        if isinstance(path, str) and path.startswith(ENVIRONMENT):
            sys.path_importer_cache.pop(path, None)
    use_environment()


def before_copy():
    """Returns whether there are other threads, and the state of the module random: that module
    seeds itself again in each fork, which the cells of a session should not notice."""
    random = sys.modules.get("random")
    return count_threads() > 0, random and (random._inst, random._inst.getstate())


def after_copy(before, writing):
    had_threads, random = before
    if random is not None:
        random[0].setstate(random[1])
    if had_threads or writing:
        for text, buffer, raw in STREAMS:
            renew_stream(text, buffer, raw)


def renew_stream(text, buffer, raw):
    """Drops output that a thread had not finished before the fork, and the lock of the stream.
    The objects stay the same, because other code may refer to them."""
    try:
        if buffer.closed:
            return
        BufferedWriter.__init__(buffer, raw)
        if text.buffer is buffer:
            TextIOWrapper.__init__(text, buffer, text.encoding, text.errors, "\n",
                                   text.line_buffering, text.write_through)
    except ValueError:  # detached by the script
        pass


def run_cell(number, script, value_max, has_stdin):
    """Runs a cell with the names of the other cells. Returns the same as run(), without names and
    refused imports."""
    global FILE
    FILE = "<cell %d>" % number
    names = main_module.__dict__
    value = caught = code = imported = None
    notes = False
    Shown.objects = Shown.bytes = Shown.undisplayed = 0
    Shown.figures, Shown.pictures, Shown.held = {}, {}, None
    names.pop("__warningregistry__", None)  # what an earlier cell was warned of is told again
    try:
        renew_closed_streams()
        renew_stdin(has_stdin)
        renew_packages()
        text = decode(script)
        remember_source(text)
        if METADATA in text:
            tell_unclosed(text)
        remember_text(number, text)
        reload_changed()
        code = compile_cell(text, Session.future)
        Session.future |= code.co_flags & FUTURE
        notes = Session.packages is not None and not Imported.before  # only for the first cell
        if notes:
            Imported.text, Imported.before = text, frozenset(sys.modules)
        renew_loop()
        if Session.parent != getpid():  # this is a checkpoint or a branch
            renew_children({})
        if not code.co_flags & COROUTINE and not BEGINS_TASKS.isdisjoint(code.co_names):
            value = run_on_loop(execute_on_loop(code, names))
        else:
            value = execute(code, names, run_on_loop)
        if value is not None:
            remember_value(number, value)
    except BaseException as e:
        own_frames(e, code)
        drop_guard_frames(e.__traceback__)
        caught = e
        note_lacks(e, has_stdin)
    sys.settrace(None)
    sys.setprofile(None)
    if notes:
        imported = imported_modules()
    trim_values()
    status, raised, result = tell(caught, value, value_max)
    if isinstance(caught, SystemExit):
        result[4] = b"SystemExit"  # also with code 0
    if isinstance(caught, MemoryError):
        forget_frames(caught)
    close_figures()
    tell_elsewhere()
    if flush_output():
        status = 120
    return (status, raised, *result, Shown.undisplayed or None, None, None, imported,
            take_import_us())


# ---- the event loop of a session -----------------------------------------------------

# A cell without await that uses one of these names also runs on the loop, because they need a
# running loop.
BEGINS_TASKS = frozenset({"create_task", "ensure_future", "get_running_loop"})


def run_on_loop(coroutine):
    """Runs a coroutine on the event loop of all cells. Tasks that a cell has started continue
    after it."""
    import asyncio

    if Session.runner is None or Session.runner.get_loop().is_closed():
        Session.runner, Session.runner_of = asyncio.Runner(), getpid()
    return Session.runner.run(coroutine)


async def execute_on_loop(code, names):
    value = eval(code, names)
    return await finish(names.pop(RESULT, value), names, False)


def renew_loop():
    """Called in a copy that has become the state. The descriptors on which the loop waits are
    shared with other copies, for which they must not change. So the loop gets new ones."""
    if Session.runner is None or Session.runner_of == getpid():
        return
    try:
        loop = Session.runner.get_loop()
        old, pipe = loop._selector, loop._ssock
        loop._selector = type(old)()
        for key in list(old.get_map().values()):
            if key.fileobj not in (pipe, pipe.fileno()):
                try:
                    loop._selector.register(key.fileobj, key.events, key.data)
                except (OSError, ValueError):  # closed since then
                    pass
        old.close()
        pipe.close()
        loop._csock.close()
        loop._internal_fds -= 1
        loop._make_self_pipe()
        if loop._signal_handlers:
            set_wakeup_fd(loop._csock.fileno())
        Session.runner_of = getpid()
    except BaseException:  # not a loop of asyncio's own
        Session.runner = None


def own_descriptors():
    """The descriptors of the loop, which renew_loop() replaces in a copy."""
    try:
        loop = Session.runner.get_loop()
        return {str(f.fileno()) for f in (loop._selector, loop._ssock, loop._csock)}
    except BaseException:
        return set()


def has_tasks():
    """Does the loop have tasks or events while no cell runs?"""
    try:
        loop = Session.runner and Session.runner.get_loop()
        if not loop or loop.is_closed():
            return False
        return bool(loop._ready or loop._scheduled or len(loop._selector.get_map()) > 1
                    or sys.modules["asyncio"].all_tasks(loop))
    except BaseException:
        return False


def go_on(line):
    """Runs the loop until an order arrives on the line of this process."""
    ordered = []

    def on_order():
        ordered.append(True)
        loop.stop()

    try:
        loop = Session.runner.get_loop()
        loop.add_reader(line, on_order)
        # A task may stop the loop, or raise SystemExit.
        for _ in range(1000):
            try:
                loop.run_forever()
            except BaseException:
                pass
            if ordered or loop.is_closed():
                break
        loop.remove_reader(line)
    except BaseException:
        pass


def forget_frames(error):
    """Drops the frames of a MemoryError: they refer to the objects that did not fit, so no later
    cell would have memory."""
    forget_values()
    remember_error(None, None, None)
    traceback.clear_frames(error.__traceback__)
    error.__traceback__ = None
    gc.collect()


def close_figures():
    """Closes all figures, so that later cells do not display them again."""
    try:
        helpers = sys.modules.get("matplotlib._pylab_helpers")
        if helpers is not None:
            helpers.Gcf.destroy_all()
    except BaseException:
        pass


def flush_buffers():
    """Flushes the buffers below the text. Called after a cell whose own output was flushed."""
    for _, buffer, _ in STREAMS:
        try:
            if not buffer.closed:
                buffer.flush()
        except BaseException:
            pass


def at_stake():
    """Sentences about the threads, connections and the like that are lost if the cell does not
    end by itself. None: they could not be listed, such as when the interrupt of a time-out came."""
    found = []
    try:
        for thread in threads():
            if thread is not main_thread() and thread.is_alive():
                found.append("thread %r has ended" % thread.name)
        for kind in sorted({kind for kind, _ in shared_things()}):
            found.append(kind)
    except BaseException:
        return None
    if len(found) > 15:
        found[14:] = ["%d more threads, sockets and the like" % (len(found) - 14)]
    return [plain(note, 300)[0] for note in found]


def renew_children(ends):
    """Called in a copy that has become the state, and has no children. The objects for the
    children of the former process would report that they ended well. So their return codes are
    set. ends: the status of those that have ended, by pid; the others were killed, or are not
    children of the copy."""
    Session.parent = getpid()
    kinds = [getattr(sys.modules.get(name), "Popen", None) for name in CHILDREN]
    kinds = [kind for kind in kinds if type(kind) is type]
    try:
        for kind in kinds:
            kinds += type.__subclasses__(kind)
        for child in get_referrers(*kinds) if kinds else ():
            if type(child) in kinds and child.__dict__.get("returncode", 0) is None:
                status = ends.get(child.__dict__.get("pid"))
                child.__dict__["returncode"] = -9 if status is None else exit_code_of(status)
        forget_fork_server()
    except BaseException:
        pass


def forget_fork_server():
    """Forgets the fork server of multiprocessing: it is a child of another process, so waiting
    for it would fail. multiprocessing starts another one when it needs it."""
    module = sys.modules.get("multiprocessing.forkserver")
    server = getattr(module, "_forkserver", None)
    if server is not None and server._forkserver_pid is not None:
        os.close(server._forkserver_alive_fd)
        server._forkserver_pid = server._forkserver_alive_fd = None


STAYS = ": what the cell did with it is not taken back"
KINDS = (("socket:", "a socket is open: its connection has ended"),
         ("pipe:", "a pipe is open: if a process had its other end, that has ended"),
         ("anon_inode:", "an event descriptor is open" + STAYS))


def shared_things():
    """The open descriptors and the mappings that a copy of this process shares with it."""
    found, own = set(), own_descriptors()
    for fd in listdir("/proc/self/fd"):
        if fd in STANDARD or fd in own:
            continue
        try:
            to = readlink("/proc/self/fd/" + fd)
        except OSError:  # the descriptor of the listed directory, closed by now
            continue
        for start, kind in KINDS:
            if to.startswith(start):
                found.add((kind, to))
    if "mmap" in sys.modules or "_posixshmem" in sys.modules:
        with io.open("/proc/self/maps", "rb", 0) as maps:
            for line in maps.read().splitlines():
                if line.split(b" ", 2)[1][1::2] == b"ws":
                    found.add(("memory is mapped shared" + STAYS, line.split(b" ", 1)[0]))
    return found


# ---- values --------------------------------------------------------------------------


def plain(text, most):
    """Returns text as UTF-8 bytes without NUL, at most this many, and whether it was cut."""
    text = str.__str__(text)
    cut = len(text) > most
    data = text[:most].encode("utf-8", "backslashreplace").replace(b"\0", b"\\x00")
    if len(data) > most:
        data = data[:most]
        while data and data[-1] & 0xC0 == 0x80:
            data = data[:-1]
        if data and data[-1] & 0xC0 == 0xC0:
            data = data[:-1]
        cut = True
    return data, cut


def show(value, most):
    """Returns the repr, the JSON, whether one of them was cut, and whether the JSON is exact."""
    shown, cut = value_repr(value, most)
    as_json, json_cut, exact = value_json(value, most)
    return shown, as_json, cut or json_cut, exact


ITERATE = ((list, list.__iter__), (tuple, tuple.__iter__), (set, set.__iter__),
           (frozenset, frozenset.__iter__))


def inside(item):
    """Iterators over the items of a container. Calls no code of the script."""
    if isinstance(item, dict):
        return dict.keys(item).__iter__(), dict.values(item).__iter__()
    for kind, iterate in ITERATE:
        if isinstance(item, kind):
            return (iterate(item),)
    return ()


def about(value, most):
    """A lower bound for the length of a value's text. Stops counting above most."""
    size, todo = 0, [iter((value,))]
    try:
        while todo and size <= most and len(todo) < 500:
            for item in todo[-1]:
                size += 2
                kind = type(item)
                if kind is str or kind is bytes or kind is bytearray:
                    size += len(item)
                elif kind is int:
                    size += item.bit_length() // 4
                elif kind is not float and item is not None:
                    more = inside(item)
                    if more:
                        todo.extend(more)
                        break
                if size > most:
                    break
            else:
                todo.pop()
    except RuntimeError:  # a thread of the script is changing it
        return most + 1
    return size


class Short(reprlib.Repr):
    """The repr of a value that is too long to be shown whole."""

    def __init__(self, most):
        super().__init__()
        self.maxlevel = 6
        items = max(6, min(200, most // 64))
        self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = items
        self.maxdict = self.maxdeque = self.maxarray = items
        self.maxstring = self.maxlong = self.maxother = max(64, most // 2)
        self.text_max = most

    def repr_str(self, x, level):
        return repr(x[:self.text_max]) if len(x) > self.text_max else repr(x)

    def repr_bytes(self, x, level):
        return repr(x[:self.text_max])

    repr_bytearray = repr_bytes


def value_repr(value, most):
    try:
        if about(value, most) <= most:
            return plain(repr(value), most)
        return plain(Short(most).repr(value), most)[0], True
    except BaseException as e:
        kind, problem = type(value).__name__, type(e).__name__
        try:
            problem = (problem + ": " + str(e)[:300]).rstrip(": ")
        except BaseException:
            pass
        return plain("<%s object; its repr() raised %s>" % (kind, problem), most)


def has_json(value, depth=0):
    if value is None or isinstance(value, (bool, str)):
        return True
    if isinstance(value, int):
        return -INTEGER_MAX <= value <= INTEGER_MAX
    if isinstance(value, float):
        return value - value == 0  # not NaN, and finite
    if depth > 100:
        return False
    if isinstance(value, dict):
        for key, item in dict.items(value):
            if not isinstance(key, str) or not has_json(item, depth + 1):
                return False
        return True
    if isinstance(value, (list, tuple)):
        for item in value:
            if not has_json(item, depth + 1):
                return False
        return True
    return False


def value_json(value, most):
    """Returns the JSON text or None, whether it was left out because of its size, and whether it
    is exact (the value was not converted)."""
    exact = True
    try:
        if about(value, most) > most:
            return None, True, True
        if not has_json(value):
            # A data frame has a display form of its own.
            if from_module(value, "pandas", "DataFrame"):
                return None, False, True
            exact = False
            value = Converter(most).convert_object(value, 0)
        data = encode_json(value).encode()
        return (None, True, True) if len(data) > most else (data, False, exact)
    except TooMuch:
        return None, True, True
    except BaseException:
        return None, False, True


def names_json(names):
    """The script's own names and their values, as JSON or repr, as far as there is room:
    {"names": [...], "values": {...}}."""
    told, values, left = [], [], NAMES_TEXT_MAX
    for name, value in list(names.items()):
        if type(name) is not str or name.startswith("__") or len(told) == NAMES_MAX:
            continue
        name = encode_json(plain(name, 100)[0].decode()).encode()
        if name in told:  # another name that is equal after the cut
            continue
        told.append(name)
        data = value_json(value, NAME_VALUE_MAX)[0]
        if data is None:
            data = encode_json(value_repr(value, NAME_VALUE_MAX)[0].decode()).encode()
        left -= len(name) + len(data)
        if left >= 0:
            values.append(name + b":" + data)
    return b'{"names":[%b],"values":{%b}}' % (b",".join(told), b",".join(values))


# ---- exceptions ----------------------------------------------------------------------


def type_name(kind):
    if kind.__module__ in ("builtins", "__main__"):
        return kind.__qualname__
    return "%s.%s" % (kind.__module__, kind.__qualname__)


def line_of(e):
    """The innermost line of the script in an exception. None: there is none."""
    line = 0
    if isinstance(e, SyntaxError) and e.filename == FILE:
        line = e.lineno
    elif isinstance(e, ImportNotAllowed):
        line = e.line
    tb = e.__traceback__ or getattr(e.__context__, "__traceback__", None)
    while tb is not None:
        if tb.tb_frame.f_code.co_filename == FILE:
            line = tb.tb_lineno
        tb = tb.tb_next
    return line if type(line) is int and 0 < line < 1 << 31 else None


def report(e, most):
    """Writes an uncaught exception to standard error, by the script's hook if it has one."""
    kind = type(e)
    try:
        text = format_exception(kind, e, e.__traceback__)
        if kind is KeyboardInterrupt:
            text = stacks_of_others() + text
    except BaseException:
        text = None
    try:
        message = str(e)
    except BaseException:
        message = "<exception str() failed>"
    remember_error(kind, e, e.__traceback__)
    hook = getattr(sys, "excepthook", None)
    try:
        if hook is excepthook and text is not None:
            to_stderr(text)
        elif hook is None:
            to_stderr("sys.excepthook is missing\n" + (text or ""))
        else:
            hook(kind, e, e.__traceback__)
    except SystemExit:
        pass
    except BaseException as other:
        own_hook_frames(other)
        to_stderr("Error in sys.excepthook:\n%s\nOriginal exception was:\n%s"
                  % (format_exception(type(other), other, other.__traceback__), text))
    if text is None:
        text = "%s: %s\n" % (type_name(kind), message)
    return (plain(type_name(kind), 512)[0], plain(message, most)[0],
            plain(text, most)[0], line_of(e))


def stacks_of_others():
    """Where the other threads are. Of use if the main thread waits for one of them."""
    text, names = "", {thread.ident: thread.name for thread in threads()}
    for ident, frame in list(sys._current_frames().items())[-STACKS_MAX:]:
        if ident != MAIN_THREAD.ident:
            lines = traceback.format_stack(frame, STACK_MAX)
            shown = [line for line in lines if not THREAD_BEGINS.search(line)]
            text += "Thread %s (most recent call last):\n%s\n" % (names.get(ident), "".join(shown))
    return text


def own_hook_frames(e):
    e.__traceback__ = without_own(e.__traceback__)


format_lines = traceback.format_exception
STACKS_MAX, STACK_MAX = 8, 20  # threads; frames of each
THREAD_BEGINS = re.compile(r'threading\.py", line \d+, in (_bootstrap|_bootstrap_inner|run)\n')
CHAIN_MAX = 100  # exceptions that led to one another
ENTRIES_MAX = 1000  # the last entries, as in CPython's hook in C
SUGGESTION = re.compile(r"\. Did you mean: '[^'\n]*'\?$")


def format_exception(kind, e, tb):
    """The text that CPython prints, with lines of the script. Only the module traceback finds
    these lines; only the hook in C knows suggestions and the details of syntax errors."""
    if isinstance(e, SyntaxError) and e.filename == FILE:
        if e.text is None and type(e.lineno) is int:
            e.text = linecache.getline(FILE, e.lineno) or None
        if tb is None and e.__context__ is None:
            text = native_text(e)  # the hook does not print the notes of each syntax error
            return text + "".join(note + "\n" for note in getattr(e, "__notes__", ())
                                  if type(note) is str and note + "\n" not in text)
    limit = None if hasattr(sys, "tracebacklimit") else -ENTRIES_MAX
    text = "".join(format_lines(kind, e, last_entries(tb), limit))
    if isinstance(e, (NameError, AttributeError)):
        found = SUGGESTION.search(native_text(e).rstrip("\n"))
        if found and not text.endswith(found[0] + "\n"):
            text = text.rstrip("\n") + found[0] + "\n"
    return text


def last_entries(tb):
    """The last entries of a traceback, which are shown. The module traceback would first look at
    every frame."""
    last, n = tb, 0
    while tb is not None:
        tb, n = tb.tb_next, n + 1
        if n > ENTRIES_MAX:
            last = last.tb_next
    return last


def native_text(e):
    shown, sys.stderr = sys.stderr, io.StringIO()
    try:
        native_excepthook(type(e), e, e.__traceback__)
        return sys.stderr.getvalue()
    finally:
        sys.stderr = shown


def to_stderr(text):
    stream = sys.stderr
    if stream is None:
        return
    try:
        sys.stdout.flush()
    except BaseException:
        pass
    try:
        stream.write(text)
        stream.flush()
    except BaseException:
        pass


def complain():
    """Reports an exception that no code of the script can catch any more."""
    try:
        e = sys.exc_info()[1]
        own_hook_frames(e)
        to_stderr(format_exception(type(e), e, e.__traceback__))
    except BaseException:
        pass


# CPython's hooks in C look for source lines only in files. These hooks give the same text, with the
# script's lines.


def excepthook(exctype, value, traceback, /):
    if not isinstance(value, BaseException):
        return native_excepthook(exctype, value, traceback)
    to_stderr(format_exception(exctype, value, traceback))


def unraisablehook(unraisable, /):
    if type(unraisable).__name__ != "UnraisableHookArgs":
        raise TypeError("sys.unraisablehook argument type must be UnraisableHookArgs")
    text = unraisable.err_msg or "Exception ignored in"
    if unraisable.object is not None:
        try:
            text = "%s: %r" % (text, unraisable.object)
        except BaseException:
            text += ": <object repr() failed>"
    to_stderr(text + "\n" + format_exception(
        unraisable.exc_type, unraisable.exc_value, without_own(unraisable.exc_traceback)))


def thread_excepthook(args, /):
    if args.exc_type is SystemExit:
        return
    name = args.thread.name if args.thread is not None else threading.get_ident()
    to_stderr("Exception in thread %s:\n" % name + format_exception(
        args.exc_type, args.exc_value, args.exc_traceback))


excepthook.__module__ = unraisablehook.__module__ = "sys"
thread_excepthook.__module__, thread_excepthook.__name__ = "_thread", "_excepthook"
