# SPDX-License-Identifier: Apache-2.0
"""Workers that are made ready for scripts with a set of packages (engine/ready.h says which, and
when). Before such a worker has a script, it imports the modules that the last script of this kind
has imported, and hides them until its own script imports them (worker/learned.py).

The modules may do anything, as in a script. What they do then is done before the script: so a
module that changes anything else in the process is not accepted, because a script would find the
change before its import.
"""

IMPORTED_MAX, IMPORTED_NAME_MAX = 16, 100  # as in proto/message.h
IMPORTED_LOOK = 65536  # characters of a script that are looked at
IMPORT_LINE = re.compile(r"^[ \t]*(?:import[ \t]+([^#;\n]+)"
                         r"|from[ \t]+([\w.]+)[ \t]+import[ \t]+\(?([^#;\n)]*))", re.MULTILINE)
OPENBLAS = "OPENBLAS_NUM_THREADS"  # worker/parallel.c: its threads are started when they are needed


class Imported:
    """The modules that a script with a set of packages may import."""

    text = ""  # the script
    before = frozenset()  # the modules that were loaded before


class Ready:
    """A worker that is made ready for a script that will find the packages by an import."""

    finding = False  # it is being made
    path = None  # sys.path with the packages, without the script's directory
    packages = None  # as Session.packages: those that it has; None: it is no such worker


# ---- what a script has imported -------------------------------------------------------


def named_imports(text):
    """The modules that a script names in lines with imports: (module, name in it or "")."""
    names = []
    for modules, package, items in IMPORT_LINE.findall(text[:IMPORTED_LOOK]):
        for item in (items if package else modules).split(","):
            name = item.split()[:1]
            names += ((package, *name) if package else (*name, "") for _ in name)
    return names


def imported_modules():
    """The names for DONE, as bytes: modules of packages that the script has named and that were
    loaded meanwhile. None: there are none."""
    found = {}
    try:
        for module, item in named_imports(Imported.text):
            inner = "%s.%s" % (module, item)
            name = inner if item and inner in sys.modules else module
            if name not in Imported.before and is_of_package(name):
                found[name.encode("ascii")] = None
    except BaseException as e:  # the script has its result all the same
        with contextlib.suppress(Exception):
            STDERR.write("mcp-python: no worker is made ready for the imports of this script: %s\n"
                         % type_name(type(e)))
    return list(found)[:IMPORTED_MAX] or None


def is_of_package(name):
    """Is this a loaded module of an installed package?"""
    try:
        file = getattr(sys.modules.get(name), "__file__", None)
    except Exception:  # it may be any object of the script
        return False
    return (type(file) is str and file.startswith(INSTALLED) and len(name) <= IMPORTED_NAME_MAX
            and name.isascii() and name.partition(".")[0] not in sys.stdlib_module_names
            and all(part.isidentifier() for part in name.split(".")))


# ---- before there is a script ---------------------------------------------------------


def files_left():
    return [(entry.name, entry.stat().st_size) for entry in os.scandir("/workspace")]


def make_ready(modules, finds):
    """Called in a worker that has no script yet. Imports modules of the mounted packages and of
    the host. finds: the script will find the packages by an import. Returns why the worker cannot
    be used, as bytes; b"": it can."""
    __import__("random")  # its own first import is no change
    Ready.finding = finds
    if finds:
        find_installed()
    elif Session.root is not None:  # the first cell has the same packages
        renew_packages()
    else:
        use_environment()
    before, others, files = process_state(), Others(dict(sys.modules)), files_left()
    hooks = []
    watch_events(lambda event: event == "sys.addaudithook" and hooks.append(event))
    why = import_modules(modules)
    watch_events(None)
    why = why or ("adds an audit hook" if hooks else "")
    if finds:
        trouble = leave_packages(modules)
        why = why or trouble
    lost = flush_output()
    why = (why or ("changes the streams" if lost else "") or changed_state(before)
           or ("leaves files in /workspace" if files_left() != files else "")
           or others.changed() or ("leaves a child" if leaves_child() else ""))
    return why.encode(errors="backslashreplace")[:300]


def import_modules(modules):
    """Imports and hides modules. Returns why that has failed, or ""."""
    for name in list(Learned.hidden):  # what the zygote has learned, and the set has too
        if name in Learned.hidden:
            is_replaced(name)
    Learned.path = list(sys.path)
    given = dict(os.environ)
    os.environ[OPENBLAS] = "1"
    Learned.started = 1  # nothing is measured here
    own = sys.path.pop(0)  # /workspace, which has no module of the script yet
    try:
        for name in modules:  # the supervisor sees what it prints and leaves
            if Ready.path:
                name_environment()
            before, others = set(sys.modules), Others({})
            with noted(name):
                import_as_script(name)
                why = others.changed_variables() or others.changed()
            hide_loaded(before)
            if why:
                return why
    except BaseException as e:
        return "its import fails: %.200s" % type_name(type(e))
    finally:
        sys.path.insert(0, own)
        for variable in os.environ.keys() - given.keys():
            del os.environ[variable]
        os.environ.update(given)
        Learned.started = 0
    return ""


# ---- packages that an import finds ----------------------------------------------------


def is_in_packages(name):
    return PathFinder.find_spec(name, [ENVIRONMENT]) is not None


def leave_packages(modules):
    """The script has no packages until an import asks for them. Returns why it would notice the
    difference, or "". If one name is a module of the packages and one of the host, it depends on
    the order of the script's imports which of them is imported."""
    Ready.finding = False
    Ready.packages, Session.packages = Session.packages, None
    if Ready.path is None:
        return "the packages do not have it"
    added = [path for path in Ready.path if path not in Learned.path]
    if sys.path[1:] == Ready.path:
        sys.path[:] = Learned.path
    for name in set().union(*(load_of(name).tops for name in modules)) - sys.stdlib_module_names:
        spec = PathFinder.find_spec(name, [path for path in Learned.path[1:] + added
                                           if (path in added) != is_of_ready(name)])
        if getattr(spec, "loader", None) is not None:
            return "a module has the name of one of the host"
    return ""


def is_of_ready(name):
    """Is the hidden module one of the mounted packages?"""
    module = Learned.hidden.get(name)
    file = getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", ())), "")
    return type(file) is str and file.startswith(ENVIRONMENT + "/")


def is_away(name):
    """Does the hidden module need packages that no import has found yet?"""
    return (Ready.packages is not None and Session.packages is None
            and any(map(is_of_ready, load_of(name).tops)))


def forget_ready():
    """Other packages take the place of those that a session has had: what was imported of these, and
    no cell has imported, is forgotten."""
    if Session.packages is not None and any(map(is_of_ready, list(Learned.hidden))):
        Learned.hidden.clear()


def find_ready(name):
    """Called when an import has found packages. The spec of a module that was imported before;
    None: it was not, or these are other packages."""
    if Ready.finding:
        Ready.path = list(sys.path)
    if Ready.packages is None:
        return None
    if Ready.packages != Session.packages:
        Ready.packages = None
        Learned.hidden.clear()
        return None
    return LearnedFinder().find_spec(name)
