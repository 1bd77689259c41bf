# SPDX-License-Identifier: Apache-2.0
"""Learned modules: the zygote imports them before any script does, and hides them until a script
imports them (engine/learning.h says which zygotes do this, and when).

Hidden means: they are not in sys.modules, and not attributes of their packages. When code imports
one, the finder of this file puts back all modules that its first import has loaded, in place of
loading them. It does not do so if the import would find another module now: a file of the script, or
a package of a mounted set. So a learned module changes only the time that an import takes.

Each module is first imported in a child of the zygote that is thrown away. Modules that do
there what no worker may inherit are not learned.
"""

import contextlib
import copy
import select
import signal
import time
import warnings
from importlib.machinery import ModuleSpec

TRIAL_S, TRIALS_S = 10, 15  # for one trial, and for all
STDLIB = sys.stdlib_module_names
import_clock = time.perf_counter
# Audit events of what a module must not do while it is imported.
UNWANTED = {"_thread.start_new_thread": "starts a thread", "socket.connect": "opens a connection",
            "socket.sendto": "sends to a socket", "socket.sendmsg": "sends to a socket",
            "socket.getaddrinfo": "asks for the address of a host",
            "socket.gethostbyname": "asks for the address of a host"}


class Learned:
    learnable = frozenset()  # names whose imports are measured
    hidden = {}  # name: module
    loads = {}  # learned name: what its first import has loaded, class Load
    path = ()  # sys.path of the zygote, with the script's directory
    started = 0  # 0: no import is being measured
    spent = 0.0  # seconds


class Load:
    """What the first import of a module has loaded and changed."""

    def __init__(self, modules, variables, filters):
        self.modules = modules  # (name, module, names of its package or None, its name there)
        self.tops = sorted({name.partition(".")[0] for name, *_ in modules})
        self.variables, self.filters = variables, filters  # of os.environ and warnings


class HiddenLoader:
    """Loads a hidden module. spec: the module's own."""

    def __init__(self, spec):
        self.spec = spec

    def create_module(self, spec):
        if spec.name in Learned.hidden:
            put_back(load_of(spec.name))
        return sys.modules[spec.name]

    def exec_module(self, module):
        module.__spec__ = self.spec

    def __getattr__(self, name):  # what the own loader can do: pkgutil and runpy use it
        return getattr(getattr(vars(self).get("spec"), "loader", None), name)


class LearnedFinder:
    """The first finder on sys.meta_path."""

    def find_spec(self, name, path=None, target=None):
        module = Learned.hidden.get(name)
        if module is not None:
            if is_replaced(name):
                return None
            own = getattr(module, "__spec__", None)
            spec = copy.copy(own) if own is not None else ModuleSpec(name, None)
            spec.name, spec.loader = name, HiddenLoader(own)
            return spec
        if name not in Learned.learnable or Learned.started:
            return None
        for finder in sys.meta_path:
            if finder is not self and hasattr(finder, "find_spec"):
                spec = finder.find_spec(name, path, target)
                if spec is not None:
                    if spec.loader is not None:
                        Learned.started = import_clock()
                        spec.loader = PatchingLoader(spec.loader, note_import)
                    return spec
        return None


def note_import(module):
    """Called at the end of a measured import."""
    Learned.spent += import_clock() - Learned.started
    Learned.started = 0


def load_of(name):
    """What comes with a hidden module: the load of its own first import, or else the smallest that
    has it."""
    load = Learned.loads.get(name)
    if load is None:
        load = min((load for load in Learned.loads.values()
                    if any(name == loaded for loaded, *_ in load.modules)),
                   key=lambda load: len(load.modules))
    return load


def put_back(load):
    """Does what the first import would do."""
    modules, hidden = sys.modules, Learned.hidden
    for name, module, names, last in load.modules:
        if name in hidden:
            modules.setdefault(name, module)  # first: other threads look there, then in hidden
            hidden.pop(name, None)
            if names is not None:
                names.setdefault(last, module)
    for variable, value in load.variables:
        os.environ.setdefault(variable, value)
    if load.filters:
        warnings.filters[:0] = [one for one in load.filters if one not in warnings.filters]
        warnings._filters_mutated()


def is_replaced(name):
    """Would a first import of the name load something else than the hidden modules? Then all of
    the hidden modules that are affected are forgotten."""
    own = Learned.path
    if sys.path == own:
        ahead = own[:1]
    else:
        ahead = [path for path in sys.path if path not in own[1:]]
        if [path for path in sys.path if path in own[1:]] != own[1:]:
            Learned.hidden.clear()
            return True
    replaced = {top for top in load_of(name).tops if top in Learned.hidden
                and getattr(PathFinder.find_spec(top, ahead), "loader", None) is not None}
    if not replaced:
        return False
    kept = set()
    for load in Learned.loads.values():
        if replaced.isdisjoint(load.tops):
            kept.update(loaded for loaded, *_ in load.modules)
    for loaded in [loaded for loaded in Learned.hidden if loaded not in kept]:
        del Learned.hidden[loaded]
    return name not in Learned.hidden


def import_hidden(name):
    """Imports a module, and hides what that has loaded and changed. Modules of the standard
    library stay."""
    before, variables, filters = set(sys.modules), dict(os.environ), list(warnings.filters)
    import_as_script(name)
    loaded = [other for other, module in sys.modules.items()
              if other not in before and module is not None
              and other.partition(".")[0] not in STDLIB]
    changed = [(key, value) for key, value in os.environ.items() if variables.get(key) != value]
    Learned.loads[name] = Load([hide(other) for other in loaded], changed,
                               [one for one in warnings.filters if one not in filters])
    for key, _ in changed:
        del os.environ[key]
    os.environ.update(variables)
    warnings.filters[:] = filters
    warnings._filters_mutated()


def hide(name):
    """Hides a loaded module. Returns an element of Load.modules."""
    module = Learned.hidden[name] = sys.modules.pop(name)
    package, _, last = name.rpartition(".")
    names = getattr(Learned.hidden.get(package) or sys.modules.get(package), "__dict__", {})
    if not package or names.get(last) is not module:
        return name, module, None, last
    del names[last]
    return name, module, names, last


def import_as_script(name):
    """Imports as a script does, so that an import shows the warnings that it shows to a script."""
    exec("import " + name, {"__name__": "__main__", "__builtins__": builtins})


def open_descriptors():
    return {(fd, os.readlink("/proc/self/fd/" + fd)) for fd in os.listdir("/proc/self/fd")
            if os.path.lexists("/proc/self/fd/" + fd)}


def process_state():
    """What an import must leave as it was."""
    return {"changes signals": [signal.getsignal(number) for number in signal.valid_signals()],
            "changes the directory": os.getcwd(), "changes sys.path": list(sys.path),
            "changes hooks of sys": (sys.excepthook, sys.displayhook, sys.stdout, sys.stderr),
            "changes builtins": {key: value for key, value in builtins.__dict__.items()
                                 if not is_of_pybind(key, value)},
            "leaves a descriptor open": open_descriptors()}


def is_of_pybind(key, value):
    """What the first extension that was made with pybind11 leaves for the others."""
    return key.startswith("__pybind11_internals_") and type_name(type(value)).endswith("PyCapsule")


def in_trial(name):
    """Runs in a child. Returns why the module is not learned, or ""."""
    unwanted = []
    sys.addaudithook(lambda event, arguments: UNWANTED.get(event) and unwanted.append(
        UNWANTED[event]))
    output = os.memfd_create("output")
    os.dup2(output, 1)
    os.dup2(output, 2)
    before = process_state()
    try:
        import_as_script(name)
    except BaseException as e:
        return "its import fails: %.200s" % type_name(type(e))
    flush_output()
    if os.fstat(output).st_size:
        return "it prints, or gives a warning: %.200s" % os.pread(output, 200, 0).decode(
            errors="replace").strip()
    after = process_state()
    unwanted += [what for what in before if before[what] != after[what]]
    if len(os.listdir("/proc/self/task")) > 1:
        unwanted.append("starts a thread")
    try:
        os.waitpid(-1, os.WNOHANG)
        unwanted.append("leaves a child")
    except ChildProcessError:
        pass
    return unwanted[0] if unwanted else ""


def learn_trial(name, seconds):
    """Imports the module in a child. Returns why it is not learned, or ""."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        os.close(reading)
        try:
            os.write(writing, in_trial(name).encode(errors="replace")[:300] or b"ok")
        finally:
            os._exit(0)
    os.close(writing)
    ready = select.select([reading], [], [], seconds)[0]
    said = os.read(reading, 4096).decode(errors="replace") if ready else "its import takes too long"
    os.close(reading)
    for kill in os.killpg, os.kill:  # the group, and a child that has not made it yet
        with contextlib.suppress(ProcessLookupError):
            kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return "" if said == "ok" else said.replace("\0", " ") or "its import ends the process"


def is_on_path(name):
    """Is the module where the interpreter has its own? Imports nothing."""
    spec = PathFinder.find_spec(name.partition(".")[0])
    return getattr(spec, "loader", None) is not None


def learn(learnable, learned):
    """Called in the zygote. Returns the mask of the modules that were learned, and a list of
    "NAME: reason" of the others. learnable: names; learned: the mask of those to learn."""
    Learned.learnable = frozenset(learnable)
    Learned.path = ["", *sys.path]
    sys.meta_path.insert(0, LearnedFinder())
    mask, reasons, end = 0, [], import_clock() + TRIALS_S
    Learned.started = 1  # nothing is measured here
    for number, name in enumerate(learnable):
        if not learned >> number & 1:
            continue
        why = "it is not installed"
        if is_on_path(name):
            left = min(TRIAL_S, end - import_clock())
            why = learn_trial(name, left) if left > 0 else "the others take too long"
        if not why:
            for step in import_steps(name):
                import_hidden(step)
            mask |= 1 << number
        else:
            reasons.append(("%s: %s" % (name, why)).encode())
    Learned.started = 0
    return mask, reasons


def import_steps(name):
    """A module after its packages: each import of one of them loads something else."""
    parts = name.split(".")
    return [".".join(parts[:n]) for n in range(1, len(parts) + 1)]


def learned_module(name):
    """A loaded module, even if it is hidden."""
    return sys.modules.get(name) or Learned.hidden.get(name)


def take_import_us():
    """The time that imports of learnable modules have taken since the last call."""
    spent, Learned.spent, Learned.started = Learned.spent, 0.0, 0
    return min(int(spent * 1e6), 0xFFFFFFFF)
