# SPDX-License-Identifier: Apache-2.0
"""Imports before there is a script (worker/learned.py, worker/ready.py): what they must leave as it
was, and what they must not do.

A script would find a change before its own import. What packages do at their import and may do
(Effect in worker/learned.py) is taken back until the script imports them. For any other change the
import is refused. Functions here return the reason, or "".
"""

# Audit events of what a module must not do while it is imported. Python 3.11 has none for threads:
# watched().
UNWANTED = {"_thread.start_new_thread": "starts a thread", "socket.connect": "opens a connection",
            "socket.sendto": "sends to a socket", "socket.sendmsg": "sends to a socket",
            "socket.getaddrinfo": "asks for the address of a host",
            "socket.gethostbyname": "asks for the address of a host",
            "sys.addaudithook": "adds an audit hook"}
# Lines of /proc/self/status.
STATUS = ("Name:", "Umask:", "SigBlk:", "NoNewPrivs:", "Seccomp", "Cap", "Cpus_allowed:")


def apart(name):
    """A module that Python is built with, which stays out of sys.modules if it is not there yet."""
    is_loaded = name in sys.modules
    module = __import__(name)
    if not is_loaded:
        del sys.modules[name]
    return module


locale_module, faults = apart("_locale"), apart("faulthandler")


# ---- the state of the process ---------------------------------------------------------


def kernel_text(name, starts=("",)):
    """Lines of a file in /proc/self. "": this kernel has no such file."""
    try:
        with open("/proc/self/" + name, encoding="ascii", errors="replace") as file:
            return [line for line in file if line.startswith(starts)]
    except OSError:
        return ""


def shared_mappings():
    """Memory that is shared with others, and can be written: a worker would inherit it."""
    return [line for line in kernel_text("maps") if line.split(" ", 2)[1][1::2] == "ws"]


def open_descriptors():
    return {(fd, os.readlink("/proc/self/fd/" + fd)) for fd in os.listdir("/proc/self/fd")
            if os.path.lexists("/proc/self/fd/" + fd)}


def timers():
    return ([signal.getitimer(which)[0] > 0 for which in (
        signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)], kernel_text("timers"))


def settings_of_sys():
    optional = [getattr(sys, name)() for name in ("get_int_max_str_digits", "getdlopenflags")
                if hasattr(sys, name)]
    return (sys.getrecursionlimit(), sys.getswitchinterval(), sys.argv[:], sys.stdin, sys.flags,
            sys.warnoptions[:], dict(sys._xoptions), sys.get_coroutine_origin_tracking_depth(),
            threading.stack_size(), optional,
            {name: value for name, value in vars(sys).items() if type(value) in (bool, int, str)})


def monitoring_tools():
    monitoring = getattr(sys, "monitoring", None)  # from Python 3.12 on
    return [monitoring.get_tool(number) for number in range(6)] if monitoring else []


def logging_settings():
    """What holds for all loggers; the same if logging is not loaded."""
    module = learned_module("logging")
    if module is None:
        return [], 30, False, True, 0, True, "Logger", "LogRecord", [None] * 2, 6
    root, manager = module.root, module.Logger.manager
    return (root.handlers + root.filters, root.level, root.disabled, root.propagate, manager.disable,
            module.raiseExceptions, module.getLoggerClass().__name__,
            module.getLogRecordFactory().__name__, [manager.loggerClass, manager.logRecordFactory],
            len(module._levelToName))


def is_of_pybind(key, value):
    """What the first extension that was made with pybind11 leaves for the others."""
    return key.startswith("__pybind11_internals_") and type_name(type(value)).endswith("PyCapsule")


def process_state():
    """What an import must leave as it was."""
    sockets = learned_module("_socket")
    return {
        "enables faulthandler": faults.is_enabled(),
        "changes signals": ([signal.getsignal(number) for number in signal.valid_signals()],
                            signal_actions()),
        "changes the umask or signals": kernel_text("status", STATUS),
        "changes the directory": os.getcwd(),
        "changes sys.path": list(sys.path),
        "changes hooks of sys": (sys.excepthook, sys.displayhook, sys.unraisablehook, sys.breakpointhook,
                                 sys.get_asyncgen_hooks(), sys.stdout, sys.stderr),
        "changes builtins": {key: value for key, value in builtins.__dict__.items()
                             if not is_of_pybind(key, value)},
        "leaves a descriptor open": open_descriptors(),
        "maps memory shared": shared_mappings(),
        "changes limits": (kernel_text("limits"), os.getpriority(os.PRIO_PROCESS, 0)),
        "monitors": monitoring_tools(),
        "sets a timer": timers(),
        "traces": (sys.gettrace(), sys.getprofile(), threading._trace_hook, threading._profile_hook),
        "changes settings of sys": settings_of_sys(),
        "changes the garbage collector": (gc.isenabled(), gc.get_threshold(), gc.callbacks[:],
                                          gc.get_debug()),
        "changes the locale": locale_module.setlocale(locale_module.LC_ALL),
        "changes the timeout of sockets": sockets and sockets.getdefaulttimeout(),
        "changes settings of logging": logging_settings()}


def changed_state(before):
    """What has changed. before: process_state()."""
    after = process_state()
    return next((what for what in before if before[what] != after[what]), "")


# ---- what other code uses -------------------------------------------------------------


# Patches of well-known packages, which make a function accept more: Cython's, and sympy's.
HARMLESS = {("inspect", "isgenerator"), ("doctest", "_indent")}


class Others:
    """What other modules have at some moment. modules: {name: module}."""

    def __init__(self, modules):
        self.modules, self.loaded = modules, set(sys.modules)
        self.functions = {(name, key): value for name, module in modules.items()
                          if type(module) is Module for key, value in list(vars(module).items())
                          if callable(value)}
        self.finders, self.filters = (sys.meta_path[:], sys.path_hooks[:]), warnings.filters[:]
        self.loggers = {name: logger_settings(one) for name, one in loggers().items()}
        self.variables, self.frozen = dict(os.environ), gc.get_freeze_count()
        self.random = sys.modules.get("random")
        self.numbers = self.random and self.random.getstate()

    def changed(self):
        """What of it has changed since then."""
        for name, module in self.modules.items():
            if getattr(module, "__spec__", None) and learned_module(name) is not module:
                return "replaces other modules: %s" % name
        for (name, key), value in self.functions.items():
            if vars(self.modules[name]).get(key) is not value and (name, key) not in HARMLESS:
                return "patches functions of other modules: %s.%s" % (name, key)
        for name in [name for name in sys.modules if name not in self.loaded]:
            for key in patched_functions(name):
                return "patches functions of other modules: %s.%s" % (name, key)
        if any(now[:len(old)] != old for now, old in zip((sys.meta_path, sys.path_hooks), self.finders)):
            return "changes how modules are found"
        if any(one not in warnings.filters for one in self.filters):
            return "removes filters of warnings"
        if any(logger_settings(loggers().get(name)) != settings
               for name, settings in self.loggers.items() if settings):
            return "changes loggers of others"
        if self.random and self.random.getstate() != self.numbers:
            return "draws random numbers"
        frozen = gc.get_freeze_count()  # some may have been freed
        if frozen > self.frozen or frozen == 0 < self.frozen:
            return "changes the garbage collector"
        return ""

    def changed_variables(self):
        """Have variables of the environment changed? Only new ones are set at the script's own
        import (Effect). Packages that it finds are put on two paths."""
        return "" if all(os.environ.get(name) == value for name, value in self.variables.items()
                         if not (Ready.finding and name in ("PATH", "PYTHONPATH"))
                         ) else "changes a variable of the environment"


def loggers():
    """All loggers, and placeholders of some, by name. Logging may be about to be imported."""
    kind = getattr(sys.modules.get("logging"), "Logger", None)
    return getattr(getattr(kind, "manager", None), "loggerDict", {})


def is_logger(one):
    return one is not None and not hasattr(one, "loggerMap")  # as a placeholder has


def logger_settings(one):
    return is_logger(one) and (one.level, one.propagate, one.disabled, one.handlers[:], one.filters[:])


def patched_functions(name):
    """Functions of packages in a module of the standard library that an import has loaded. distutils
    is often setuptools'."""
    def is_own(module):
        top = module.partition(".")[0] if type(module) is str else OWN_FILE
        return top == OWN_FILE or top in sys.stdlib_module_names

    module = sys.modules[name]
    if not is_own(name) or type(module) is not Module or name.startswith("distutils"):
        return []
    return [key for key, value in list(vars(module).items()) if type(value) is FunctionType
            and not is_own(value.__module__) and (name, key) not in HARMLESS]


# ---- what it does meanwhile -----------------------------------------------------------


@contextlib.contextmanager
def watched(unwanted):
    """Notes what a module does that no worker may inherit. Threads that Python code starts are
    noted also if they end at once. A timer is not started: one that the import cancels has done
    nothing, as that of matplotlib, which warns after 5 seconds of a search for fonts."""
    real, timers, loaded = [], [], set(sys.modules)
    for names in vars(_thread), vars(threading):
        for key, start in list(names.items()):
            if key.startswith(("start_new", "start_join", "_start_new", "_start_join")):
                names[key] = lambda *args, start=start, **kwargs: (
                    unwanted.append("starts a thread"), start(*args, **kwargs))[1]
                real.append((names, key, names[key], start))
    threading.Timer.start = lambda timer: timers.append(timer)
    watch_events(lambda event: UNWANTED.get(event) and unwanted.append(UNWANTED[event]))
    try:
        yield
    finally:
        watch_events(None)
        del threading.Timer.start
        starts = {id(noting): start for names, key, noting, start in real}
        users = [vars(module) for name, module in sys.modules.items()
                 if name not in loaded and type(module) is type(sys)]
        for names in vars(_thread), vars(threading), *users:
            for key, value in [pair for pair in names.items() if id(pair[1]) in starts]:
                names[key] = starts[id(value)]
        if not all(timer.finished.is_set() for timer in timers):
            unwanted.append("starts a thread")


@contextlib.contextmanager
def captured():
    """A file that gets what is written to the standard streams."""
    output, own = os.memfd_create("output"), [os.dup(fd) for fd in (1, 2)]
    try:
        for fd in 1, 2:
            os.dup2(output, fd)
        yield output
    finally:
        flush_output()
        for fd, saved in zip((1, 2), own):
            os.dup2(saved, fd)
            os.close(saved)
        os.close(output)


def leaves_child():
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return False
    return True
