# SPDX-License-Identifier: Apache-2.0
"""Learned modules: the zygote imports them before any script does, and hides them until a script
imports them (engine/learning.h says which zygotes do this, and when).

Hidden means: they are not in sys.modules, and not attributes of their packages. So are the modules
that they need, those of the standard library too. When code imports one, the finder of this file
puts back what its first import has loaded and changed, in place of loading it. It does not do so if
the import would find another module now: a file of the script, or a package of a mounted set. So a
learned module changes only the time that an import takes.

Modules that do what no worker may inherit (worker/watched.py) are not learned. So each module is
first imported in a child of the zygote that is thrown away. The modules of a few packages, which
are known to do nothing of that kind and take long to import, are imported at once, and watched in
the same way. If one does it nevertheless, the whole zygote is thrown away, and the next one tries
these modules too.
"""

import atexit
import contextlib
import copy
import encodings
import select
import signal
import time
import warnings
from functools import partial
from types import CodeType, FunctionType
from _imp import is_builtin, is_frozen
from importlib.machinery import ModuleSpec
from weakref import finalize

TRIAL_CPU_S = 10  # processor time of one trial
TRIAL_IDLE_S = 10  # without any processor time: it waits for something
TRIALS_S = 200  # for all; engine/zygote.c has a longer time for the start
HERE_S = 30  # the time that an import in the zygote may take
BLANKS = 4096  # modules
TRIALS = 1 << 63  # LEARNABLE_TRIALS of policy/learnable.h
# Packages whose modules are not tried first.
KNOWN = frozenset("numpy pandas scipy matplotlib seaborn sklearn statsmodels sympy requests "
                  "openpyxl PIL plotly networkx bs4".split())
TRIAL_LOOK_S = 0.1
# What many scripts do with a package, in two parts. Both run in the zygote: caches are filled there
# once, and not by each worker, and the interpreter has adapted the functions. The first part is what
# most scripts do first: workers also request the pages that it writes (worker/warm.h). Nothing of it
# may be seen by a script: no output, no random numbers, no threads, no options.
EXERCISES = {"pandas": ("""
import pandas
frame = pandas.DataFrame({"a": [1, 2, 3]})
str(frame), str(frame.describe()), frame["a"].sum()
""", """
frame = pandas.DataFrame({"a": [1, 2, 3], "b": [0.5, 1.5, 2.5], "c": ["x", "y", "x"]})
for part in frame, frame[["a"]], frame["a"], frame[frame["a"] > 1], frame.sort_values("b"):
    str(part), str(part.describe()), part.head(), part.index, part.shape
frame["d"] = frame["a"] * 2 + frame["b"]
str(frame.groupby("c")["a"].agg(["sum", "mean"])), frame.iloc[0], frame.loc[1, "a"]
frame.merge(frame, on="a"), frame.isna().sum(), frame["a"].tolist(), frame.to_dict()
""")}
EXERCISED = ""  # the first parts of those that were done, for the rehearsal of a script
EXERCISE_ROUNDS = 3  # of the first part: the second one is slow, and scripts wait for the zygote
TICKS = os.sysconf("SC_CLK_TCK")
import_clock = time.perf_counter
real_register = atexit.register
plain_import = builtins.__import__


class Learned:
    learnable = frozenset()  # names whose imports are measured
    trials = True  # is each module tried first?
    hidden = {}  # name: module
    keys = {}  # name: its copy, which is the key in hidden: compact()
    whole = set()  # hidden modules that are attributes of their packages: attach_parts()
    blank = []  # modules without a name, side by side: blank_module()
    places = {}  # name of a hidden module: the names of its package or None, its name there
    needs = {}  # name: names that were imported while it was executed, and its package
    effects = {}  # name: what else its execution has changed, class Effect
    loads = {}  # name: what its first import loads, class Load
    path = ()  # sys.path of the zygote, with the script's directory
    started = 0  # 0: no import is being measured
    spent = 0.0  # seconds


class Load:
    """What the first import of a module loads. names: in the order of loading."""

    def __init__(self, names):
        hidden, keys = Learned.hidden, Learned.keys
        self.modules = {keys.get(name, name): hidden[name] for name in names if name in hidden}
        self.attached = [(*Learned.places[name], module) for name, module in self.modules.items()
                         if Learned.places[name][0] is not None and name not in Learned.whole]
        self.effects = [Learned.effects[name] for name in self.modules if name in Learned.effects]
        self.effects.sort(key=lambda effect: effect.last)
        tops = {name.partition(".")[0] for name in self.modules}
        self.tops = {top for top in tops if not is_builtin(top) and not is_frozen(top)}


class Effect:
    """What the execution of a module has changed outside of it, and may change."""

    count = 0  # of changes

    def __init__(self):
        self.last = 0  # the number of the last change
        self.variables = []  # of os.environ
        self.filters, self.last_filters = [], []  # of warnings: those in front, and those at the end
        self.exits, self.thread_exits, self.finalizers = [], [], []  # for the end of the process
        self.forks = []  # arguments of os.register_at_fork()
        self.finders = []  # (sys.meta_path or sys.path_hooks, one at its end)
        self.loggers = []

    def apply(self):
        for variable, value in self.variables:
            os.environb.setdefault(variable, value)
        if self.filters or self.last_filters:
            others = [one for one in warnings.filters if one not in self.filters]
            warnings.filters[:] = self.filters + others + [one for one in self.last_filters
                                                           if one not in others]
            warnings._filters_mutated()
        for places, finder in self.finders:
            if finder not in places:
                places.append(finder)
        for logger in self.loggers:
            show_logger(logger)
        for one in self.finalizers:
            one.atexit = True
        if Journal.stack is None:
            for function, args, kwargs in self.exits:
                real_register(function, *args, **kwargs)
            threading._threading_atexits.extend(self.thread_exits)
            for functions in self.forks:
                os.register_at_fork(**functions)


def show_logger(logger):
    """Does what logging.getLogger() does with a new logger. If the script has made one of that name,
    both are one from now on."""
    manager, known = logger.manager, logger.manager.loggerDict.get(logger.name)
    if known is logger:
        return
    if is_logger(known):
        known.level = logger.level or known.level
        known.propagate = known.propagate and logger.propagate
        for add, own in (known.addHandler, logger.handlers), (known.addFilter, logger.filters):
            for one in own:
                add(one)
        logger.__dict__ = known.__dict__
    else:
        manager.loggerDict[logger.name] = logger
        if known is not None:
            manager._fixupChildren(known, logger)
        manager._fixupParents(logger)
    manager._clear_cache()


def hide_loggers(before):
    """Takes back what logging.getLogger() has done since then. before: what loggers() had."""
    all_of_them = loggers()
    for name, logger in list(all_of_them.items()):
        known = before.get(name)
        if known is logger:
            if not is_logger(logger):
                for child in [child for child in logger.loggerMap if child.name not in before]:
                    del logger.loggerMap[child]
            continue
        if known is None:
            del all_of_them[name]
        else:  # a placeholder
            all_of_them[name] = known
            for child in known.loggerMap:
                child.parent = logger.parent if child.parent is logger else child.parent
        if is_logger(logger):
            owner = name
            while owner and owner not in Journal.executed:
                owner = owner.rpartition(".")[0]
            effect_of(owner or Journal.executed[0]).loggers.append(logger)


# ---- what an import does, noted by the zygote ------------------------------------------


class Journal:
    """Notes which module needs which, and who has changed what."""

    stack = None  # names of the modules that are being executed; None: nothing is noted
    executed = []
    variables, filters = {}, []  # at the last look
    finders, finalizers = [], {}
    register_at_fork = None  # what is in its place meanwhile notes calls


def effect_of(name):
    effect = Learned.effects.setdefault(name, Effect())
    Effect.count += 1
    effect.last = Effect.count
    return effect


def effect_here():
    return effect_of(Journal.stack[-1])


def all_finders():
    return [(places, one) for places in (sys.meta_path, sys.path_hooks) for one in places]


def skip():
    """Takes what has changed since the last look as nobody's."""
    Journal.variables, Journal.filters = os.environ._data.copy(), warnings.filters[:]
    Journal.finders, Journal.finalizers = all_finders(), finalize._registry.copy()
    Journal.exits = len(threading._threading_atexits)


def look():
    """Ascribes what has changed since the last look to the module that is being executed."""
    variables, filters, exits = os.environ._data, warnings.filters, threading._threading_atexits
    finders, finalizers = all_finders(), finalize._registry
    if (variables != Journal.variables or filters != Journal.filters or len(exits) > Journal.exits
            or finders != Journal.finders or finalizers.keys() != Journal.finalizers.keys()):
        effect = effect_here()
        effect.variables += variables.items() - Journal.variables.items()
        first, last = added_filters(Journal.filters, filters)
        effect.filters[:0] = first
        effect.last_filters += last
        effect.thread_exits += exits[Journal.exits:]
        del exits[Journal.exits:]
        effect.finders += [one for one in finders if one not in Journal.finders]
        effect.finalizers += [one for one in finalizers.keys() - Journal.finalizers.keys()
                              if one.atexit]
        skip()


def added_filters(before, after):
    """Filters that were added, or moved, to the front, and those that were added at the end."""
    at, known = 0, [before.index(one) if one in before else None for one in after]
    while at < len(known):
        left = [place for place in known[at:] if place is not None]
        if known[at] is not None and left == sorted(left):
            break
        at += 1
    return after[:at], [one for one, place in zip(after[at:], known[at:]) if place is None]


def enter(name):
    need(name)
    Learned.needs[name] = {name.rpartition(".")[0]}
    Journal.stack.append(name)
    Journal.executed.append(name)
    look()


def leave():
    look()
    Journal.stack.pop()


def need(name):
    Learned.needs.setdefault(Journal.stack[-1], set()).add(name)


class NotingLoader(PatchingLoader):
    """Loads a module with its own loader, and keeps the journal. Some extension modules are
    executed when they are created."""

    def create_module(self, spec):
        enter(spec.name)
        try:
            return self.loader.create_module(spec) or blank_module(spec.name)
        except BaseException:
            leave()
            raise

    def exec_module(self, module):
        try:
            PatchingLoader.exec_module(self, module)
        finally:
            leave()


def noting_import(name, globals=None, locals=None, fromlist=(), level=0):
    """In the place of __import__: notes also what was loaded before."""
    module = plain_import(name, globals, locals, fromlist, level)
    if Journal.stack:
        if level:
            package = globals.get("__package__") or globals.get("__name__", "")
            base = package.rsplit(".", level - 1)[0]
            name = "%s.%s" % (base, name) if name else base
        need(name)
        for item in fromlist or ():
            items = getattr(module, "__all__", ()) if item == "*" else (item,)
            for one in items:
                if "%s.%s" % (name, one) in sys.modules:
                    need("%s.%s" % (name, one))
    return module


def noting_register(function, *args, **kwargs):
    """In the place of atexit.register. weakref registers its own function once, for all."""
    if Journal.stack is None or function == finalize._exitfunc:
        return real_register(function, *args, **kwargs)
    effect_here().exits.append((function, args, kwargs))
    return function


def noting_register_at_fork(**functions):
    """In the place of os.register_at_fork. Those of the standard library are left to
    worker/hooks.c, which looks who registers them."""
    if Journal.stack is None or Journal.stack[-1].partition(".")[0] in sys.stdlib_module_names:
        eval("register(**functions)", sys._getframe(1).f_globals,
             {"register": Journal.register_at_fork, "functions": functions})
    else:
        effect_here().forks.append(functions)


@contextlib.contextmanager
def noted(name):
    """Keeps the journal. Afterwards the process is as it was, without the modules."""
    variables, filters, finders = dict(os.environ), warnings.filters[:], all_finders()
    known = dict(loggers())
    skip()
    Journal.stack, Journal.executed = [name], [name]
    builtins.__import__, atexit.register = noting_import, noting_register
    Journal.register_at_fork, os.register_at_fork = os.register_at_fork, noting_register_at_fork
    try:
        yield
    finally:
        look()
        builtins.__import__, atexit.register = plain_import, real_register
        os.register_at_fork = Journal.register_at_fork
        Journal.stack = None
        hide_loggers(known)
        for effect in filter(None, map(Learned.effects.get, Journal.executed)):
            # Some changes were taken back, as those inside of warnings.catch_warnings().
            effect.variables = [one for one in effect.variables if one in os.environ._data.items()]
            for own in effect.filters, effect.last_filters:
                own[:] = [one for one in own if one in warnings.filters]
            effect.finders = [one for one in effect.finders if one in all_finders()]
            for one in effect.finalizers:
                one.atexit = False
        for key in os.environ.keys() - variables.keys():
            del os.environ[key]
        os.environ.update(variables)
        warnings.filters[:] = filters
        warnings._filters_mutated()
        for places, one in all_finders():
            if (places, one) not in finders:
                places.remove(one)


@contextlib.contextmanager
def unnoted():
    """What is imported and changed here is ascribed to no module. Changes are taken back."""
    if Journal.stack is not None:
        look()
        Journal.stack.append("")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        if Journal.stack is not None:
            Journal.stack.pop()
            skip()


def exercise(name):
    """Does with a module that was just imported what most scripts do first. An exercise that fails,
    with another release of its package, is only less use."""
    global EXERCISED
    first, more = EXERCISES.get(name, ("", ""))
    if not first:
        return
    with unnoted(), contextlib.suppress(Exception):
        code, used = compile(first, "<exercise>", "exec"), {}
        whole = compile(first + more, "<exercise>", "exec")
        sys.setprofile(lambda frame, *_: used.setdefault(id(frame.f_code), frame.f_code))
        try:
            exec(code, {"__name__": "__main__", "__builtins__": builtins})
        finally:
            sys.setprofile(None)
            gather_codes(used)
        for part in [code] * EXERCISE_ROUNDS + [whole]:  # the interpreter adapts the copies
            exec(part, {"__name__": "__main__", "__builtins__": builtins})
        EXERCISED += first


def gather_codes(used):
    """Gives functions that are used a copy of their code. The copies lie side by side: whoever calls
    a function writes to the page that its code lies on. used: id: code."""
    copies = {}

    def copy_of(code):
        if id(code) not in used or code.co_filename == "<mcp-python>":
            return code
        if id(code) not in copies:
            parts = tuple(copy_of(part) if isinstance(part, CodeType) else part
                          for part in code.co_consts)
            copies[id(code)] = call_dense(partial(code.replace, co_code=code.co_code,
                                                  co_consts=parts))
        return copies[id(code)]

    for function in of_types(gc.get_objects(), FunctionType):
        function.__code__ = copy_of(function.__code__)


# ---- imports of scripts ----------------------------------------------------------------


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


class MeasuringLoader(PatchingLoader):
    """Loads a module with its own loader, and measures the time."""

    def create_module(self, spec):
        Learned.started = Learned.started or import_clock()
        try:
            return self.loader.create_module(spec)
        except BaseException:
            note_import()
            raise

    def exec_module(self, module):
        try:
            PatchingLoader.exec_module(self, module)
        finally:
            note_import()


def note_import():
    if Learned.started:
        Learned.spent += import_clock() - Learned.started
    Learned.started = 0


class LearnedFinder:
    """The first finder on sys.meta_path."""

    def __init__(self):
        self.busy = set()  # names that the other finders are asked for

    def find_spec(self, name, path=None, target=None):
        module = Learned.hidden.get(name)
        if module is not None:
            if is_away(name) or is_replaced(name):
                return None
            own = getattr(module, "__spec__", None)
            spec = copy.copy(own) if own is not None else ModuleSpec(name, None)
            spec.name, spec.loader = name, HiddenLoader(own)
            return spec
        if Journal.stack is not None:
            return self.find_for(NotingLoader, name, path, target)
        if name in Learned.learnable and not Learned.started:
            return self.find_for(MeasuringLoader, name, path, target)
        return None

    def find_for(self, loader, name, path, target):
        """Finds a module as the other finders do, for a loader of this file. Those may import other
        modules meanwhile, as that of six.moves does."""
        if name in self.busy:  # another finder asks
            return None
        self.busy.add(name)
        try:
            spec = next(filter(None, (finder.find_spec(name, path, target)
                                      for finder in sys.meta_path
                                      if finder is not self and hasattr(finder, "find_spec"))), None)
        finally:
            self.busy.discard(name)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = loader(spec.loader, id)  # nothing is patched
        return spec


def load_of(name):
    """What the first import of a hidden module loads."""
    load = Learned.loads.get(name)
    if load is None:
        names, left = set(), [name]
        while left:
            one = left.pop()
            if one in Learned.hidden and one not in names:
                names.add(one)
                left += Learned.needs.get(one, ())
        load = Learned.loads[name] = Load([one for one in Learned.hidden if one in names])
    return load


def put_back(load):
    """Does what the first import would do."""
    modules, hidden = sys.modules, Learned.hidden
    if (all(map(hidden.__contains__, load.modules))
            and not any(map(modules.__contains__, load.modules))):
        modules.update(load.modules)  # first: other threads look there, then in hidden
        for name in load.modules:
            hidden.pop(name, None)
    else:
        names = [name for name in load.modules if name in hidden]
        load = Load(names)
        for name in names:
            modules.setdefault(name, hidden.pop(name))
    for names, last, module in load.attached:
        names.setdefault(last, module)
    for effect in load.effects:
        effect.apply()
    numexpr = load.modules.get("numexpr")
    if numexpr is not None:  # it chooses the number of its threads when it is imported
        with contextlib.suppress(Exception):  # another release
            numexpr.nthreads = numexpr._init_num_threads()
    if Journal.stack is not None:
        skip()


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
    tops = load_of(name).tops
    replaced = {top for top in tops & names_in(ahead, tops) if top in Learned.hidden
                and is_other(PathFinder.find_spec(top, ahead), Learned.hidden[top])}
    if not replaced:
        return False
    kept = set()
    for load in Learned.loads.values():
        if replaced.isdisjoint(load.tops):
            kept.update(load.modules)
    for loaded in [loaded for loaded in Learned.hidden if loaded not in kept]:
        del Learned.hidden[loaded]
    return name not in Learned.hidden


def is_other(spec, module):
    """Is this the spec of another module?"""
    return (getattr(spec, "loader", None) is not None
            and spec.origin != getattr(module, "__file__", None))


def names_in(paths, tops):
    """The modules that may be found in these places. tops: the answer if that is not known."""
    try:
        return {file.partition(".")[0] for path in paths for file in os.listdir(path or ".")}
    except (OSError, TypeError, ValueError):
        return tops


# ---- learning --------------------------------------------------------------------------


def import_hidden(name):
    """Imports a module, and hides what that has loaded. Returns the names of that. A process in
    which the module has done what no worker may inherit ends: the supervisor starts another one,
    which tries each module first."""
    before = set(sys.modules)
    why, names = import_watched(name, noted(name), {})
    if why:
        write_refusal(name, why)
        end_group()
    hide_loaded(before)
    return names


def write_refusal(name, why):
    """Writes a line to the service's log: a process that ends can send no reason."""
    text = ascii("%s: %s" % (name, why))[1:-1].replace('"', "'")
    os.write(2, ('zygote-refuses-module text="%.400s"\n' % text).encode())


def hide_loaded(before):
    """Hides the modules that were loaded since then. before: names. Those that no loader has executed
    were put there by their package, as pyexpat.model, and come with it."""
    for loaded in [loaded for loaded, module in sys.modules.items()
                   if loaded not in before and module is not None]:
        hide(loaded)
        if loaded not in Learned.needs:
            owner = loaded.rpartition(".")[0]
            while owner and owner not in Learned.needs:
                owner = owner.rpartition(".")[0]
            Learned.needs.setdefault(owner, set()).add(loaded)
    Learned.loads.clear()  # the next import may hide other modules


def end_group():
    """Ends the process, with children that a module has left."""
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def hide(name):
    module = Learned.hidden[name] = sys.modules.pop(name)
    package, _, last = name.rpartition(".")
    names = getattr(Learned.hidden.get(package) or sys.modules.get(package), "__dict__", {})
    if package and names.get(last) is module:
        del names[last]
        Learned.places[name] = names, last
    else:
        Learned.places[name] = None, last


def blank_module(name):
    """A new module. Later all modules of an import get into sys.modules at once: a worker copies
    each page that one of them lies on."""
    if not Learned.blank:
        return None
    module = Learned.blank.pop()
    module.__init__(name)
    return module


def compact():
    """Gives hidden modules keys that lie side by side, for the same reason."""
    filler = ["%08d" % number + "." * size for size in range(0, 80, 8) for number in range(500)]
    Learned.keys = {name: name[:1] + name[1:] for name in Learned.hidden}
    Learned.hidden = {Learned.keys[name]: module for name, module in Learned.hidden.items()}
    del filler


def attach_parts():
    """Makes modules attributes of their packages again, if each import of the package loads
    them."""
    parts = {top: load_of(top).modules for top in {name.partition(".")[0]
                                                   for name in Learned.hidden}
             if top in Learned.hidden}
    for name, module in Learned.hidden.items():
        names, last = Learned.places[name]
        package, _, _ = name.rpartition(".")
        if (names is not None and package in Learned.hidden
                and name in parts.get(name.partition(".")[0], ())
                and all(name in load.modules or package not in load.modules
                        for load in Learned.loads.values())):
            names.setdefault(last, module)
            Learned.whole.add(name)


def import_as_script(name):
    """Imports as a script does, so that an import shows the warnings that it shows to a script."""
    exec("import " + name, {"__name__": "__main__", "__builtins__": builtins})


def import_watched(name, journal, hidden):
    """Imports a module. Returns why it is not learned, or "", and the names of what its import has
    loaded. journal: a context for the import. hidden: modules that it may find beside sys.modules."""
    unwanted, loaded = [], set(sys.modules)
    others = Others({**hidden, **sys.modules})
    with captured() as output:
        before = process_state()
        try:
            with watched(unwanted), journal:
                import_as_script(name)
                imported = [one for one in sys.modules if one not in loaded]
                exercise(name)
        except BaseException as e:
            return "its import fails: %.200s" % type_name(type(e)), ()
        flush_output()
        if os.fstat(output).st_size:
            return "it prints, or gives a warning: %.200s" % os.pread(output, 200, 0).decode(
                errors="replace").strip(), ()
        what = changed_state(before)
    why = next(filter(None, unwanted + [what, others.changed(), others.changed_variables()]), "")
    if len(os.listdir("/proc/self/task")) > 1:
        why = why or "starts a thread"
    return why or ("leaves a child" if leaves_child() else ""), imported


def in_trial(name):
    """Runs in a child. Returns the same as import_watched()."""
    why, names = import_watched(name, contextlib.nullcontext(), Learned.hidden)
    if not why and generators()[1]:
        why, names = "makes a random generator of its own", ()
    return why, names


def use_of(pid):
    """The state of a process, as in "R", and the processor time that it has used, in seconds."""
    try:
        with open("/proc/%d/stat" % pid, encoding="ascii", errors="replace") as file:
            words = file.read().rpartition(")")[2].split()
        return words[0], (int(words[11]) + int(words[12])) / TICKS
    except (OSError, ValueError, IndexError):
        return "?", 0.0


def hear(pid, reading, end):
    """Returns what a trial says; or why it is ended, and whether that is its fault."""
    said, used, since = b"", -1.0, import_clock()
    while True:
        if select.select([reading], [], [], TRIAL_LOOK_S)[0]:
            more = os.read(reading, 1 << 16)
            if not more:
                return said, None, True
            said += more
            continue
        (state, use), now = use_of(pid), import_clock()
        if state == "Z":  # children of it may still have the pipe
            if select.select([reading], [], [], 0)[0]:  # it has said more before its end
                continue
            return said, None, True
        if use > used:
            used, since = use, now
        if used > TRIAL_CPU_S or (state == "S" and now - since > TRIAL_IDLE_S):
            return said, "its import takes too long", True
        if now > end:
            return said, "it could not be tried in time", False


def learn_trial(name, end):
    """Imports the module in a child. Returns why it is not learned, or ""; whether that is a
    verdict, and not lack of time; and the names of what is loaded."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        os.close(reading)
        try:
            why, names = in_trial(name)
            with open(writing, "w", encoding="utf-8", errors="replace") as file:
                file.write("\n".join([why[:300].replace("\n", " ") or "ok", *names]))
        finally:
            os._exit(0)
    os.close(writing)
    said, why, is_verdict = hear(pid, reading, end)
    os.close(reading)
    for kill in os.killpg, os.kill:  # the group, and a child that has not made it yet
        with contextlib.suppress(ProcessLookupError):
            kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    said, *names = said.decode(errors="replace").split("\n")
    if why is None:
        why = "" if said == "ok" else said.replace("\0", " ") or "its import ends the process"
    return why, is_verdict, names


def is_on_path(name):
    """Is the module where the interpreter has its own? Imports nothing."""
    spec = PathFinder.find_spec(name.partition(".")[0])
    return getattr(spec, "loader", None) is not None


def learn_one(name, end):
    """Imports the module, and hides it. Returns the same as learn_trial()."""
    why, is_verdict = "", True
    if not is_on_path(name):
        return "it is not installed", True, ()
    if Learned.trials or name.partition(".")[0] not in KNOWN:
        why, is_verdict, names = learn_trial(name, end)
    if not why:
        signal.setitimer(signal.ITIMER_REAL, HERE_S)  # its signal ends the process
        names = import_hidden(name)
        signal.setitimer(signal.ITIMER_REAL, 0)
    return why, is_verdict, names


def learn(learnable, learned):
    """Called in the zygote. Returns the mask of the modules that were learned, the mask of those
    that could not be tried, and a list of "NAME: reason" of all others. learnable: names; learned:
    the mask of those to learn, with TRIALS if each is to be tried first."""
    Learned.learnable, Learned.trials = frozenset(learnable), bool(learned & TRIALS)
    Learned.path = ["", *sys.path]
    sys.meta_path.insert(0, LearnedFinder())
    mask, untried, reasons, loads, end = 0, 0, [], {}, import_clock() + TRIALS_S
    Learned.started, known = 1, set(encodings._cache)  # nothing is measured here
    Learned.blank = [type(sys)("") for _ in range(BLANKS if learned else 0)]
    for number, name in enumerate(learnable):
        if not learned >> number & 1:
            continue
        why, is_verdict, names = learn_one(name, end)
        if not why:
            loads[name] = names
            mask |= 1 << number
            continue
        reasons.append(("%s: %s" % (name, why)).encode())
        if not is_verdict:
            untried |= 1 << number
    if loads:
        settle_loads(loads)
        forget_codecs(known)
    Learned.started = 0
    return mask, untried, reasons


def forget_codecs(known):
    """Codecs that were looked up meanwhile are looked up again by scripts: that imports their modules,
    which are hidden. known: the encodings that were looked up before."""
    for encoding in encodings._cache.keys() - known:
        del encodings._cache[encoding]
    codecs.register(id)
    codecs.unregister(id)  # the interpreter forgets all that it has looked up


def settle_loads(loads):
    """Prepares what imports of scripts load. loads: for each learned name, the names."""
    Learned.blank.clear()
    compact()
    for look in range(2):  # the second time, they leave out what attach_parts() has done
        Learned.loads = {}
        Learned.loads = {name: Load(names) for name, names in loads.items()}
        if look == 0:
            attach_parts()


def learned_module(name):
    """A loaded module, even if it is hidden."""
    return sys.modules.get(name) or Learned.hidden.get(name)


def take_import_us():
    """The time that imports of learnable modules have taken since the last call: for the choice of
    later workers."""
    spent, Learned.spent, Learned.started = Learned.spent, 0.0, 0
    return min(int(spent * 1e6), 0xFFFFFFFF)
