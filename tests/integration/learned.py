#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Learned zygotes: imports of well-known modules take no time, and nothing else about them differs.
The modules are the tests' own, in a directory that is mounted where the host's are."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time

from harness import Skip, equal, main, test, tests
from inside import thread_held
from operate import Directory, command
from package_index import NGINX, Index
from package_store import config as store_config, install, new_store
from supervisor import Supervisor, comm, descendants, read_text
import waits
from waits import until

tests.clear()	# those of operate.py

SITE = "/usr/local/lib/python3.11/dist-packages"
SLOW = "import time\ntime.sleep(0.05)\n"
# Where a module was imported: in the zygote, or in the process that asks.
BORN = "import os\nBORN = os.getpid(), os.getppid()\n"
MODULES = {
    "expressions.py": "import numexpr\n",
    "slow.py": SLOW + BORN,
    "parcel/__init__.py": SLOW + BORN + "import parcel.inner\n",
    "parcel/inner.py": "NAME = __name__\n",
    "parcel/late.py": "import os\nfrom parcel import inner\nos.environ['PARCEL'] = 'late'\n"
                      "import warnings\nwarnings.filterwarnings('ignore', 'of a parcel')\n",
    "draws.py": SLOW + BORN + "import random\nclass Own(random.Random):\n    def seed(self, *_):\n"
                "        pass\nRANDOM, OWN = random.Random(), Own()\n",
    # It needs modules of the standard library that no profile imports.
    "borrows.py": SLOW + BORN + "import colorsys, wave\n",
    "ends.py": SLOW + BORN + "import atexit, threading\natexit.register(print, 'the end')\n"
               "threading._register_atexit(print, 'of threads')\n",
    # What the zygote does with it first (EXERCISES) fails, and imports something.
    "pandas.py": SLOW + BORN + "import parcel\nUSED = []\ndef DataFrame(data):\n"
                 "    import parcel.late\n    USED.append(data)\n    refuse(data)\n"
                 "def unused(data):\n    USED.append(data)\n    raise TypeError\n"
                 "def refuse(data):\n    data['a']\n    raise TypeError\n",
    "encodes.py": SLOW + BORN + "b'x'.decode('cp037')\n",
    "early.py": SLOW + BORN + "import parcel.late, colorsys\n",
    # As six.moves: a finder that imports while it looks.
    "moved.py": SLOW + BORN + """import sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "moved_away":
            import parcel.late
sys.meta_path.append(Finder())
try:
    import moved_away
except ImportError:
    pass
""",
    # As pyexpat, which its import brings.
    "puts.py": SLOW + BORN + "import sys, types, xml.etree.ElementTree\nown = sys.modules['puts.own'] = types.ModuleType('puts.own')\n"
               "deep = sys.modules['puts.own.deep'] = own.deep = types.ModuleType('puts.own.deep')\n",
    "needs_slow.py": "import slow\nBORN = slow.BORN\n",
    "threads.py": SLOW + "import threading\nthreading.Thread(target=int).start()\n",
    # Its thread has ended before anybody can look.
    "joins.py": SLOW + "import threading\nthread = threading.Thread(target=int)\nthread.start()\n"
                "thread.join()\n",
    "starts.py": SLOW + "from _thread import allocate_lock, start_new_thread\nlock = allocate_lock()\n"
                 "lock.acquire()\nstart_new_thread(lock.release, ())\nlock.acquire()\n",
    # As matplotlib.font_manager: a warning that is not given.
    "hurries.py": SLOW + BORN + "import threading\ntimer = threading.Timer(1000, print)\n"
                  "timer.start()\ntimer.cancel()\n",
    "waits.py": SLOW + "import threading\ntimer = threading.Timer(0.3, int)\ntimer.start()\n",
    "keeps.py": SLOW + BORN + "from _thread import start_new_thread\n",
    # Names of packages that are known to behave.
    "requests.py": SLOW + BORN + "import os\nTRIED = os.getpgrp() != os.getpid()\n",
    "networkx.py": SLOW + BORN + "import os\nTRIED = os.getpgrp() != os.getpid()\n",
    "sympy.py": SLOW + BORN + "import subprocess, threading\nsubprocess.Popen(['sleep', '123456'])\n"
                "threading.Thread(target=int).start()\n",
    # It behaves in its trial, and not in the zygote.
    "turns.py": SLOW + BORN + """import threading
def is_zygote(pid):
    try:
        return "zygote" in open("/proc/%d/comm" % pid).read()
    except OSError:
        return False
if is_zygote(BORN[0]) and not is_zygote(BORN[1]):
    threading.Thread(target=int).start()
""",
    "opens.py": SLOW + "import socket\nleft = socket.socket()\n",
    "calls.py": SLOW + "import socket\ntry:\n    socket.create_connection(('127.0.0.1', 1))\n"
                       "except OSError:\n    pass\n",
    "child.py": SLOW + "import subprocess\nsubprocess.Popen(['sleep', '1000'])\n",
    "fails.py": SLOW + "raise ValueError('no')\n",
    "warns.py": SLOW + "import warnings\nwarnings.warn('old', DeprecationWarning, 2)\n",
    "notes.py": SLOW + "import warnings\nwarnings.warn('seen by all')\n",
    # The usual filters hide it.
    "quiet.py": SLOW + BORN + "import warnings\nwarnings.warn('old', DeprecationWarning)\n",
    "dies.py": SLOW + "import os\nos._exit(3)\n",
    "hangs.py": "import time\ntime.sleep(600 if __import__('os').getpid() != 2 else 0.05)\n",
    "signals.py": SLOW + "import signal\nsignal.signal(signal.SIGUSR1, lambda *_: None)\n",
    "paths.py": SLOW + "import sys\nsys.path.append('/tmp')\n",
    "patches.py": SLOW + "import builtins\nbuiltins.surprise = 1\n",
    "inherits.py": SLOW + "import random\nclass Counts(random.Random):\n    def random(self):\n"
                   "        return 0.5\nRANDOM = Counts()\n",
    # As extensions that were made with pybind11, such as scipy's.
    "binds.py": SLOW + BORN + "import builtins, datetime\n"
                "builtins.__pybind11_internals_v4__ = datetime.datetime_CAPI\n",
    # What a first import may do, and does in a learned worker only at the script's import.
    "good/__init__.py": SLOW + BORN + "import good.inner\nimport warnings\n"
                        "warnings.simplefilter('ignore', BytesWarning)\n"
                        "warnings.simplefilter('error', UnicodeWarning, append=True)\n",
    "good/inner.py": """import atexit, logging, os, sys, warnings, weakref
warnings.filterwarnings('always', 'of inner')
LOG = logging.getLogger('good.inner.deep')
PARENT = logging.getLogger('good')
PARENT.addHandler(logging.NullHandler())
PARENT.setLevel(logging.ERROR)
class Finder:
    def find_spec(self, name, path=None, target=None):
        return None
sys.meta_path.append(Finder())
sys.path_hooks.append(lambda path: (_ for _ in ()).throw(ImportError))
KEPT = Finder()
weakref.finalize(KEPT, print, 'finalized')
atexit.register(print, 'exit')
os.register_at_fork(before=lambda: print('forks', flush=True))
""",
    # The name of a package that is known to be slow.
    "seaborn.py": BORN,
    "pretends.py": SLOW + "import builtins\nbuiltins.__pybind11_internals_v4__ = print\n",
}
# What a module does that no script may find done before its import, and the reason in the log.
TRICKS = {
    "handles": ("import ctypes\nctypes.CDLL(None).signal(12, ctypes.CDLL(None).getpid)",
                "changes signals"),
    "traps": ("import ctypes\nctypes.CDLL(None).signal(2, ctypes.CDLL(None).getpid)",
              "changes signals"),
    "masks": ("import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])",
              "changes the umask or signals"),
    "umask": ("import os\nos.umask(0o77)", "changes the umask or signals"),
    "moves": ("import os\nos.chdir('/tmp')", "changes the directory"),
    "profiles": ("import sys\nsys.setprofile(lambda *_: None)", "traces"),
    "tracers": ("import threading\nthreading.settrace(lambda *_: None)", "traces"),
    "collects": ("import gc\ngc.callbacks.append(lambda *_: None)", "changes the garbage collector"),
    "stops_gc": ("import gc\ngc.disable()", "changes the garbage collector"),
    "rarely": ("import gc\ngc.set_threshold(10 ** 6)", "changes the garbage collector"),
    "freezes": ("import gc\ngc.freeze()", "changes the garbage collector"),
    "speaks": ("import locale\nlocale.setlocale(locale.LC_ALL, 'C')", "changes the locale"),
    "silences": ("import warnings\nwarnings.resetwarnings()", "removes filters of warnings"),
    "shows": ("import warnings\nwarnings.showwarning = lambda *_: None",
              "patches functions of other modules: warnings.showwarning"),
    "hooks_threads": ("import threading\nthreading.excepthook = lambda *_: None",
                      "patches functions of other modules: threading.excepthook"),
    "patches_late": ("import colorsys\ndef none(*_):\n    pass\ncolorsys.rgb_to_hsv = none",
                     "patches functions of other modules: colorsys.rgb_to_hsv"),
    "logs": ("import logging\nlogging.basicConfig()", "changes settings of logging"),
    "quiets": ("import logging\nlogging.disable()", "changes settings of logging"),
    "finds": ("import sys\nsys.meta_path.insert(0, sys.meta_path[-1])", "changes how modules are found"),
    "unraisable": ("import sys\nsys.unraisablehook = print", "changes hooks of sys"),
    "deep": ("import sys\nsys.setrecursionlimit(9999)", "changes settings of sys"),
    "limits_": ("import sys\nsys.tracebacklimit = 0", "changes settings of sys"),
    "optional": ("import sys\nsys._xoptions['dev'] = True", "changes settings of sys"),
    "seeds": ("import random\nrandom.seed(0)", "draws random numbers"),
    "sockets": ("import socket\nsocket.setdefaulttimeout(5)", "changes the timeout of sockets"),
    "variable": ("import os\nos.environ['PATH'] = '/'", "changes a variable of the environment"),
    "shares": ("import mmap\nleft = mmap.mmap(-1, 4096)", "maps memory shared"),
    "alarms": ("import signal\nsignal.setitimer(signal.ITIMER_VIRTUAL, 1000)", "sets a timer"),
    "events": ("import os\nleft = os.eventfd(0)", "leaves a descriptor open"),
    "ticks": ("import ctypes\nassert ctypes.CDLL(None).timerfd_create(1, 0) > 0",
              "leaves a descriptor open"),
    "nice": ("import os\nos.nice(1)", "changes limits"),
    "bounds": ("import resource\nresource.setrlimit(resource.RLIMIT_CORE, (0, 0))\n"
               "resource.setrlimit(resource.RLIMIT_NOFILE, (99, 99))", "changes limits"),
    "faults": ("import faulthandler\nfaulthandler.enable()", "enables faulthandler"),
}
MODULES.update((name + ".py", SLOW + trick + "\n") for name, (trick, _) in TRICKS.items())
BAD = {"threads": "starts a thread", "waits": "starts a thread", "joins": "starts a thread", "starts": "starts a thread",
       "opens": "leaves a descriptor open",
       "calls": "asks for the address of a host", "child": "leaves a child",
       "fails": "its import fails: ValueError", "dies": "its import ends the process",
       "warns": "it prints, or gives a warning", "notes": "it prints, or gives a warning", "signals": "changes signals",
       "paths": "changes sys.path", "patches": "changes builtins", "pretends": "changes builtins",
       "inherits": "makes a random generator of its own"}
LEARN = "slow binds parcel parcel.late needs_slow ghost hangs " + " ".join(BAD)
ASK = "import %s as m, os\nprint(m.BORN == (os.getpid(), os.getppid()))\n"


@contextlib.contextmanager
def learning(ctx, config="", learn=LEARN, env=None):
    """A service with these modules. env: more variables of its environment."""
    if os.getuid() or not os.path.isdir(SITE):
        raise Skip("needs root and " + SITE)
    site = tempfile.mkdtemp(prefix="mcp-site-")
    os.chmod(site, 0o755)
    for package in "parcel", "good":
        os.mkdir("%s/%s" % (site, package))
    for name, text in MODULES.items():
        with open("%s/%s" % (site, name), "w", encoding="ascii") as f:
            f.write(text)
    with Directory() as directory:
        service = Supervisor(ctx.options.build, "[pool]\nwarm = 2\nlearn = %s\n%s%s" % (
            learn, config, directory.config()), env=env)
        yield from serve(ctx, service, site, directory)


def serve(ctx, service, site, directory):
    service.argv[:0] = ["unshare", "--mount", "sh", "-c",
                        'mount --bind "$0" %s && exec "$@"' % SITE, site]
    service.site, service.directory = site, directory
    try:
        with service:
            service.wait_ready()
            with ctx.client(path=service.socket) as client:
                yield service, client
            service.stop()
            equal(service.leftovers(), [], "left")
    finally:
        shutil.rmtree(site)


def output(client, script, **arguments):
    o = client.run(script, **arguments)
    equal(o.status, "ok", repr(o))
    return o.stdout.strip()


def is_learned(client, module="slow"):
    """Did the script find the module imported?"""
    return output(client, ASK % module) == "False"


def until_learned(client, module="slow"):
    until("%s is learned" % module, lambda: is_learned(client, module))


def profile_of(ctx, service):
    """The status of the default profile."""
    return json.loads(command(ctx, "status", "--json", "--admin-socket",
                              service.directory.socket).stdout)["profiles"][0]


def zygotes(service):
    return [pid for pid, _ in descendants(service.pid)
            if comm(pid) in ("python-zygote", "mcp-python-work")
            and "NSpid:\t%d\n" % pid in (read_text("/proc/%d/status" % pid) or "")]


@test(private=True)
def an_import_is_learned_and_nothing_else_changes(ctx):
    with learning(ctx) as (service, client):
        assert not is_learned(client), "it is learned before it was ever used"
        until_learned(client)
        until_learned(client, "parcel")
        until_learned(client, "binds")
        # Before its import nothing shows it.
        equal(output(client, "import sys\nprint([m for m in ('slow', 'parcel', 'parcel.inner') "
                             "if m in sys.modules])\nif 0:\n    import slow\n"), "[]")
        equal(output(client, "import parcel, sys\nprint(parcel.inner.NAME, parcel.__spec__.name, "
                             "parcel.__spec__.loader is parcel.__loader__, "
                             "'slow' in sys.modules, hasattr(parcel, 'late'))"),
              "parcel.inner parcel True False False")
        # To look for it does not import it.
        equal(output(client, "import importlib.util, sys\nspec = importlib.util.find_spec('slow')\n"
                             "print(spec.origin, 'slow' in sys.modules)\nif 0:\n    import slow\n"),
              SITE + "/slow.py False")
        # Removed from sys.modules, it is imported anew; and it can be reloaded.
        equal(output(client, "import slow, sys, os, importlib\nold = slow\ndel sys.modules['slow']\n"
                             "import slow\nprint(slow is old, slow.BORN[0] == os.getpid(), "
                             "importlib.reload(slow).BORN[0] == os.getpid())"), "False True True")
        # Other scripts have the usual workers.
        equal(output(client, "import sys\nprint(type(sys.meta_path[0]).find_spec.__globals__"
                             "['Learned'].hidden)"), "{}")


@test(private=True)
def a_slow_package_is_learned_while_its_first_script_runs(ctx):
    """By its name: the script has reported no time. It waits for a file, which ends it."""
    script = ("import seaborn, os, time\nwhile not os.path.exists('%s/go'):\n    time.sleep(0.02)\n"
              % SITE)
    with learning(ctx, learn="slow seaborn") as (service, client):
        first = threading.Thread(target=output, args=(client, script))
        first.start()
        until("it is learned", lambda: profile_of(ctx, service)["learned"] == ["seaborn"])
        assert first.is_alive(), "only after the script's end"
        with ctx.client(path=service.socket) as other:
            assert is_learned(other, "seaborn")
        with open(service.site + "/go", "x", encoding="ascii"):
            pass
        first.join()


@test(private=True)
def what_an_import_changes_comes_with_it(ctx):
    with learning(ctx) as (service, client):
        look = ("import parcel, os, warnings\n"
                "def seen(): return (os.environ.get('PARCEL'), hasattr(parcel, 'late'), any("
                "'of a parcel' in str(f[1] and f[1].pattern) for f in warnings.filters))\n"
                "print(seen())\nfrom parcel import late\nprint(seen(), parcel.BORN == "
                "(os.getpid(), os.getppid()))")
        first = output(client, look)
        equal(first, "(None, False, False)\n('late', True, True) True")
        until("it is learned", lambda: output(client, look) == first.replace(") True", ") False"))


@test(private=True)
def an_exercise_is_done_once_and_shows_nothing(ctx):
    with learning(ctx, learn="pandas") as (service, client):
        look = ("import pandas, parcel, os, sys, warnings\nprint(len(pandas.USED), "
                "'parcel.late' in sys.modules, hasattr(parcel, 'late'), os.environ.get('PARCEL'), "
                "any('of a parcel' in str(f[1] and f[1].pattern) for f in warnings.filters))")
        equal(output(client, look), "0 False False None False")
        until("it was used", lambda: output(client, look) == "1 False False None False")
        equal(output(client, "import pandas\nfrom parcel import late\nimport os\n"
                             "print(os.environ['PARCEL'])"), "late")


@test(private=True)
def codes_that_an_exercise_uses_lie_side_by_side(ctx):
    """They are as they were, in tracebacks too."""
    with learning(ctx, learn="pandas") as (service, client):
        look = ("import pandas, traceback\nfrom pandas import DataFrame, refuse, unused\n"
                "a, b, c = sorted([id(DataFrame.__code__), id(refuse.__code__), id(unused.__code__)])\n"
                "print(id(unused.__code__) != b and min(b - a, c - b) < 4096 < max(b - a, c - b))\n"
                "try:\n    DataFrame({'a': 1})\nexcept TypeError as e:\n"
                "    print(*traceback.extract_tb(e.__traceback__)[1:], refuse.__code__.co_consts)")
        first = output(client, look)
        assert "in DataFrame>" in first and "in refuse>" in first, first
        until("it was used", lambda: output(client, look) == "True" + first[first.index("\n"):])


@test(private=True)
def what_workers_must_not_inherit_is_not_learned(ctx):
    """Scripts that import it run as before; the log has each reason once."""
    with learning(ctx) as (service, client):
        before = {}
        for name in BAD:
            o = client.run("import %s" % name)
            before[name] = o.status, o.error and o.error["type"], o.stderr
        service.wait_logged("threads: starts a thread")
        until_learned(client)
        for name, why in BAD.items():
            if name != "dies":	# it reports no time
                until("the log has %s" % name, lambda: "%s: %s" % (name, why) in service.log())
        for name in BAD:
            o = client.run("import %s" % name)
            equal((o.status, o.error and o.error["type"], o.stderr), before[name], name)
        for name in BAD:
            assert service.log().count("\"%s: " % name) <= 1, service.log()
        equal([pid for pid, _ in descendants(service.pid)
               if "sleep" in (comm(pid) or "")], [], "children of a trial")
        learned = profile_of(ctx, service)["learned"]
        equal([name for name in learned if name in BAD], [], "learned")


@test(private=True)
def a_warning_that_nobody_sees_is_no_reason(ctx):
    """A script that makes it an error by filters of its own is the difference that doc/agents.md names."""
    with learning(ctx, learn="quiet") as (service, client):
        until_learned(client, "quiet")
        first = client.run("import os, quiet\nprint(quiet.BORN[0] == os.getpid())")
        equal((first.stdout, first.stderr), ("False\n", ""))


@test(private=True)
def what_no_script_may_find_done_is_not_learned(ctx):
    """Each trick has its reason in the log, once, and scripts that import it run as before."""
    with learning(ctx, learn="\n ".join(["slow", *TRICKS])) as (service, client):
        for name in TRICKS:
            client.run("import %s" % name)
        for name, (_, why) in TRICKS.items():
            service.wait_logged('text="%s: %s' % (name, why))
        until_learned(client)
        equal(profile_of(ctx, service)["learned"], ["slow"])
        for name in TRICKS:
            client.run("import %s" % name)
        equal([name for name in TRICKS if service.log().count('"%s: ' % name) != 1], [])


@test(private=True)
def what_an_import_may_do_is_done_at_the_import(ctx):
    """Filters of warnings, loggers, finders, functions for the end and for forks: before the import
    there is nothing of them, and afterwards they are as after a first import. A script that has the
    name sys.path gets a small worker."""
    look = """import logging, os, sys, warnings
def look(*names):
    print([(one[0], one[2].__name__) for one in warnings.filters][:3], warnings.filters[-1][2].__name__,
          [type(vars(sys)[name][-1]).__name__ for name in ('meta_' + 'path', 'path' + '_hooks')],
          len(vars(sys)['path' + '_hooks']),
          sorted(name for name in logging.root.manager.loggerDict if name.startswith('good')),
          [(one.level, one.propagate, len(one.handlers), one.parent.name)
           for one in map(logging.getLogger, names)])
def fork():
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
"""
    scripts = (look + "look()\nfork()\nimport good\nlook('good', 'good.inner.deep')\nfork()\n",
               # The script has one of the loggers, or what follows one, before.
               look + "own = logging.getLogger('good')\nown.setLevel(5)\nown.addHandler("
               "logging.Handler())\nimport good\nlook('good')\nown.setLevel(7)\n"
               "print(good.inner.PARENT.level, good.inner.LOG.getEffectiveLevel())\n",
               look + "logging.getLogger('good.inner.deep.x')\nimport good\n"
               "look('good.inner.deep.x', 'good.inner.deep')\n",
               # It disables the loggers that there are.
               look + "import logging.config\nlogging.config.dictConfig({'version': 1})\nimport good\n"
               "print(good.inner.LOG.disabled, good.inner.PARENT.disabled)\n",
               look + "look()\nfork()\nif 0:\n    import good\n")
    with learning(ctx, learn="good") as (service, client):
        first = [output(client, script) for script in scripts]
        hits = profile_of(ctx, service)["learned_hits"]
        assert "finalized" in first[0] and "exit" in first[0] and "forks" in first[0], first[0]
        until("good is learned", lambda: "False" in output(client, ASK % "good"))
        for script, was in zip(scripts, first):
            equal(output(client, script), was, script)
        assert "False" in output(client, ASK % "good")
        assert profile_of(ctx, service)["learned_hits"] >= hits + len(scripts), "other workers"


@test(private=True)
def a_timer_that_is_cancelled_is_no_thread(ctx):
    with learning(ctx, learn="hurries keeps") as (service, client):
        until_learned(client, "hurries")
        until_learned(client, "keeps")
        equal(output(client, "import hurries, keeps, threading, _thread\n"
                             "print(keeps.start_new_thread is _thread.start_new_thread, "
                             "threading._start_new_thread is _thread.start_new_thread, "
                             "'start' in vars(threading.Timer), hurries.timer.is_alive())"),
              "True True False False")


@test(private=True)
def known_packages_are_imported_at_once(ctx):
    """Without a trial. One that does what it must not do costs a zygote, and then is tried."""
    with learning(ctx, learn="requests networkx sympy") as (service, client):
        for name in "requests", "networkx":
            until_learned(client, name)
            equal(output(client, "import %s\nprint(%s.TRIED)" % (name, name)), "False")
        assert "zygote-tries-modules" not in service.log(), service.log()
        output(client, "import sympy")
        service.wait_logged('zygote-refuses-module text="sympy: starts a thread"')
        service.wait_logged("zygote-tries-modules")
        service.wait_logged('module-not-learned profile=basic text="sympy: starts a thread"')
        for name in "requests", "networkx":
            until_learned(client, name)
        output(client, "import sympy")
        until("no child of a script or a zygote is left", lambda: not any(
            (read_text("/proc/%s/cmdline" % pid) or "").startswith("sleep\x00123456")
            for pid in os.listdir("/proc") if pid.isdecimal()))
        profile = profile_of(ctx, service)
        equal((profile["learned"], profile["unlearned"]),
              (["requests", "networkx"], ["sympy: starts a thread"]))
        shown = command(ctx, "status", "--admin-socket", service.directory.socket).stdout
        assert "basic: learned requests networkx;" in shown, shown
        assert "basic: not learned: sympy: starts a thread\n" in shown, shown


@test(private=True)
def a_refusal_after_the_trial_is_logged(ctx):
    """The zygote ends before it has made a worker, and scripts run as before."""
    with learning(ctx, learn="turns") as (service, client):
        output(client, "import turns")
        service.wait_logged('zygote-refuses-module text="turns: starts a thread"')
        until("its zygote is given up", lambda: len(zygotes(service)) == 1)
        assert not is_learned(client, "turns")
        equal(profile_of(ctx, service)["learned"], [])


USUAL = ("numpy pandas scipy.stats matplotlib.pyplot sklearn.linear_model statsmodels.api sympy "
         "requests")


def is_installed(name):
    return subprocess.run(["/usr/bin/python3", "-c", "import " + name], check=False,
                          capture_output=True).returncode == 0


@test(private=True)
def the_usual_packages_are_learned(ctx):
    """The real ones, with the built-in list: none is refused, and a script that imports them once their
    zygote is ready finds all. One script has all: so one zygote learns them at once."""
    installed = list(filter(is_installed, USUAL.split()))
    if not installed:
        raise Skip("none of them is installed", missing=True)
    with Directory() as directory, Supervisor(ctx.options.build, directory.config()) as service:
        service.directory = directory
        service.wait_ready()
        with ctx.client(path=service.socket) as client:
            script = "\n".join("import " + name for name in installed)
            output(client, script, timeout_seconds=300)
            until("they are learned", lambda: set(installed) <= set(
                profile_of(ctx, service)["learned"]), waits.bound * 4)
            before = profile_of(ctx, service)
            output(client, script)
            after = profile_of(ctx, service)
            equal([after[key] - before[key] for key in ("learned_hits", "learned_misses")], [1, 0])
            equal(after["unlearned"], [])
        assert "module-not-learned" not in service.log(), service.log()
        assert "zygote-tries-modules" not in service.log(), service.log()


@test()
def what_a_trial_says_at_its_end_is_heard(ctx):
    """Its end may be seen before what it has written just before. Something else holds the pipe."""
    with ctx.client() as client:
        equal(output(client, """import os, sys, time
own = type(sys.meta_path[0]).find_spec.__globals__
look = own["use_of"]
def look_after_its_end(pid):
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    return look(pid)
own["use_of"] = look_after_its_end
reading, writing = os.pipe()
pid = os.fork()
if pid == 0:
    time.sleep(0.3)
    os.write(writing, b"ok")
    os._exit(0)
print(own["hear"](pid, reading, time.perf_counter() + 30))"""), "(b'ok', None, True)")


@test(private=True)
def an_import_that_hangs_holds_nobody_up(ctx):
    with learning(ctx) as (service, client):
        output(client, "import hangs")
        until("the trial has begun", lambda: len(zygotes(service)) > 1)
        output(client, "print(1)")
        service.wait_logged("hangs: its import takes too long", 60)
        output(client, "import hangs")
        until("its zygote is given up", lambda: len(zygotes(service)) == 1)


@test(private=True)
def a_tenants_file_is_never_learned(ctx):
    """A name of the list that only the tenant's files have."""
    with learning(ctx) as (service, client):
        files = [{"path": "ghost.py", "text": SLOW + BORN}]
        for _ in range(3):
            equal(output(client, ASK % "ghost", files=files), "True")
        service.wait_logged("ghost: it is not installed")
        equal(output(client, ASK % "ghost", files=files), "True")
        equal(client.run("import ghost").error["type"], "ModuleNotFoundError")


@test(private=True)
def a_path_of_the_services_environment_is_not_the_zygotes(ctx):
    """PYTHONPATH: neither what it has alone is learned, nor what it has under the name of another."""
    with tempfile.TemporaryDirectory(prefix="mcp-path-") as path:
        os.chmod(path, 0o755)
        for name in "ghost", "slow":
            with open("%s/%s.py" % (path, name), "w", encoding="ascii") as f:
                f.write(SLOW + BORN + "OTHER = True\n")
        with learning(ctx, learn="slow ghost", env={"PYTHONPATH": path}) as (service, client):
            files = [{"path": "ghost.py", "text": SLOW + BORN}]
            output(client, ASK % "ghost", files=files)
            service.wait_logged("ghost: it is not installed")
            until_learned(client)
            equal(output(client, "import slow\nprint(hasattr(slow, 'OTHER'))"), "False")


@test(private=True)
def each_profile_learns_by_itself(ctx):
    with learning(ctx, "[profile basic]\n[profile other]\nmodules = os\n") as (service, client):
        until_learned(client)
        equal(output(client, ASK % "slow", profile="other"), "True")
        profiles = json.loads(command(ctx, "status", "--json", "--admin-socket",
                                      service.directory.socket).stdout)["profiles"]
        equal({one["profile"]: one["learned"] for one in profiles}, {"basic": ["slow"], "other": []})


@test(private=True)
def a_file_of_the_script_comes_first(ctx):
    """As with a first import: also a file with the name of a module that a learned one needs."""
    with learning(ctx) as (service, client):
        until_learned(client)
        until_learned(client, "needs_slow")
        mine = [{"path": "slow.py", "text": "BORN = 'mine'\n"}]
        equal(output(client, "import slow\nprint(slow.BORN)", files=mine), "mine")
        equal(output(client, "import needs_slow\nprint(needs_slow.BORN)", files=mine), "mine")
        equal(output(client, "import os\nos.mkdir('/tmp/lib')\n"
                             "open('/tmp/lib/slow.py', 'w').write(\"BORN = 'later'\")\n"
                             "import sys\ngetattr(sys, 'pa' + 'th').insert(0, '/tmp/lib')\n"
                             "import needs_slow\nprint(needs_slow.BORN)"), "later")
        equal(output(client, "import sys\nsetattr(sys, 'pa' + 'th', sys.__dict__['pa' + 'th'][:3])\n"
                             "try:\n    import slow\nexcept ImportError:\n    print('gone')"), "gone")
        # A directory of that name is no package.
        equal(output(client, "import os\nos.mkdir('slow')\n" + ASK % "slow"), "False")


@test(private=True)
def a_module_of_the_standard_library_is_hidden_too(ctx):
    """One that only a learned module needs: the script's own file of that name comes first, and it
    does not bring the learned module with it."""
    with learning(ctx, learn="borrows early") as (service, client):
        until_learned(client, "borrows")
        until_learned(client, "early")
        mine = [{"path": "colorsys.py", "text": "X = 1\n"}]
        equal(output(client, "import colorsys, sys\nprint(colorsys.__file__, 'wave' in sys.modules)\n"
                             "if 0:\n    import borrows\n", files=mine), "/workspace/colorsys.py False")
        equal(output(client, "import borrows\nprint(borrows.colorsys.X)", files=mine), "1")
        equal(output(client, "import sys\nold = set(sys.modules)\nimport colorsys\n"
                             "print(sorted(set(sys.modules) - old), colorsys.rgb_to_hsv(1, 1, 1))\n"
                             "if 0:\n    import borrows\n"), "['colorsys'] (0.0, 0.0, 1)")
        assert is_learned(client, "borrows")


@test(private=True)
def what_a_learned_module_needs_comes_alone(ctx):
    """The same modules are loaded, and the same is changed, as by a first import of that module."""
    look = ("import sys, os, warnings\nold = set(sys.modules)\nimport %s\n"
            "print(sorted(set(sys.modules) - old), os.environ.get('PARCEL'), "
            "sum('of a parcel' in str(one[1] and one[1].pattern) for one in warnings.filters))\n"
            "if 0:\n    import early\n")
    names = "parcel", "parcel.inner", "parcel.late", "colorsys", "early"
    with learning(ctx, learn="early") as (service, client):
        first = [output(client, look % name) for name in names]
        until_learned(client, "early")
        until("workers of it", lambda: is_learned(client, "early"))
        equal([output(client, look % name) for name in names], first)


@test(private=True)
def what_a_module_puts_there_itself_comes_with_it(ctx):
    """Modules that no loader has executed, also those of a module that another one has brought."""
    look = "import puts, os\nprint(puts.own.deep.__name__, puts.own is __import__('sys').modules['puts.own'], puts.BORN == (os.getpid(), os.getppid()))\n"
    with learning(ctx, learn="puts") as (service, client):
        equal(output(client, look), "puts.own.deep True True")
        until_learned(client, "puts")
        until("a worker of it", lambda: output(client, look) == "puts.own.deep True False")
        equal(output(client, "import puts, pyexpat, xml.parsers.expat, plistlib\nprint(pyexpat.model is xml.parsers.expat.model)"), "True")
        equal(output(client, "import pyexpat\nprint(pyexpat.errors.__name__)\nif 0:\n    import puts\n"), "pyexpat.errors")


@test(private=True)
def what_a_finder_imports_is_noted(ctx):
    """Each module that it imports brings what it needs and changes, also by itself."""
    look = ("import parcel.late, os\nprint(os.environ.get('PARCEL'), parcel.inner.NAME, "
            "hasattr(parcel, 'late'), parcel.BORN == (os.getpid(), os.getppid()))\n"
            "if 0:\n    import moved\n")
    with learning(ctx, learn="moved") as (service, client):
        equal(output(client, look), "late parcel.inner True True")
        until_learned(client, "moved")
        until("a worker of it", lambda: output(client, look) == "late parcel.inner True False")


@test(private=True)
def what_is_registered_for_the_end_comes_with_the_import(ctx):
    with learning(ctx, learn="ends") as (service, client):
        first = output(client, "import ends")
        equal(first, "of threads\nthe end")
        until("ends is learned", lambda: "False" in output(client, ASK % "ends"))
        equal(output(client, "import ends"), first)
        equal(output(client, "if 0:\n    import ends\n"), "")


@test(private=True)
def a_look_is_not_measured(ctx):
    """importlib.util.find_spec() without an import."""
    with learning(ctx, learn="slow parcel") as (service, client):
        for _ in range(3):
            output(client, "import importlib.util, time\nimportlib.util.find_spec('parcel')\n"
                           "time.sleep(0.1)\nif 0:\n    import parcel\n")
        # A look before an import does not prevent its measurement.
        until("slow is learned", lambda: output(
            client, "import importlib.util, os\nimportlib.util.find_spec('parcel')\n"
                    "import slow\nprint(slow.BORN == (os.getpid(), os.getppid()))") == "False")
        equal(profile_of(ctx, service)["learned"], ["slow"])


@test(private=True)
def a_package_of_a_set_comes_first(ctx):
    """A set that has a package with the name of a learned one, or of one that a learned one needs."""
    if not os.path.exists(NGINX):
        raise Skip("no nginx here", missing=True)
    ask = "import needs_slow, slow\nprint(slow.BORN, needs_slow.BORN, slow.__file__)"
    with Index() as index, new_store() as store:
        index.add("slow", "1.0", {"slow.py": "BORN = 'of the set'\n"})
        with learning(ctx, store_config(index.url, store)) as (service, client):
            equal(install(client, "slow")["status"], "ok")
            until_learned(client)
            until_learned(client, "needs_slow")
            equal(output(client, ask, dependencies=["slow"]),
                  "of the set of the set /environment/slow.py")
            # A worker without the set has the host's.
            assert is_learned(client) and is_learned(client, "needs_slow")


@test(private=True)
def what_a_call_may_not_import_is_not_in_reach(ctx):
    """allowed_imports and tier: a learned module is refused like any other, before its import and
    by each way to it."""
    tiers = "[tiers]\nbasic = os sys importlib\nnetwork = parcel\n"
    with learning(ctx, tiers) as (service, client):
        until_learned(client)
        until_learned(client, "parcel")
        for may, module, other in (({"allowed_imports": ["os", "sys", "slow"]}, "slow", "parcel"),
                                   ({"tier": "network"}, "parcel", "slow")):
            equal(output(client, ASK % module, **may), "False", may)
            for code in ("import %s", "if 0:\n    import %s", "import %s.inner",
                         "__import__('%s')", "from %s import BORN"):
                o = client.run("import %s\n%s" % (module, code % other), **may)
                assert o.status != "ok" and other in repr(o.error), (may, code, o)
            # Names that the examination of the text does not see.
            o = client.run("import sys, %s\nprint('%s' in sys.modules, hasattr(%s, '%s'))\n"
                           "name = '%s'\n__import__(name)" % (module, other, module, other, other),
                           **may)
            equal(o.stdout, "False False\n", o)
            assert o.status != "ok" and other in repr(o.error), (may, o)


@test(private=True)
def a_script_that_sets_up_an_import_has_an_own_one(ctx):
    with learning(ctx) as (service, client):
        until_learned(client)
        for line in ("os.environ['OMP_NUM_THREADS'] = '1'",
                     "os.environ['OPENBLAS_NUM_THREADS'] = '1'", "os.environ['MKL_NUM_THREADS'] = '1'",
                     "os.environ['NUMEXPR_NUM_THREADS'] = '1'", "os.environ['NUMEXPR_MAX_THREADS'] = '1'",
                     "os.environ['MPLBACKEND'] = 'svg'", "os.environ['MPLCONFIGDIR'] = '/tmp'",
                     "os.environ['PYTHONHASHSEED'] = '0'", "sys.path.insert(0, '/tmp')",
                     "sys.meta_path.append(sys.meta_path[-1])",
                     "import builtins\nbuiltins.__import__ = builtins.__import__",
                     "try: import sitecustomize\nexcept ImportError: pass",
                     "try: import usercustomize\nexcept ImportError: pass",
                     "from sys import path\npath.insert(0, '/tmp')"):
            equal(output(client, "import os, sys\n%s\n%s" % (line, ASK % "slow")), "True", line)
        assert is_learned(client)


@test(private=True)
def a_session_begins_with_what_its_first_cell_needs(ctx):
    with learning(ctx) as (service, client):
        until_learned(client)

        def cell(**arguments):
            return client.ask("tools/call", {"name": "run_repl", "arguments": arguments})[
                "structuredContent"]

        where = "print(slow.BORN[1] == os.getppid())"	# of a state's process: init
        first = cell(code="import slow, os\n" + where)
        equal((first["status"], first["stdout"]), ("ok", "False\n"), first)
        again = cell(session=first["session"], code="import slow\n" + where)
        equal(again["stdout"], "False\n", again)
        fresh = cell(code="x = 1")
        later = cell(session=fresh["session"], code="import slow, os\n" + where)
        equal(later["stdout"], "True\n", later)


@test(private=True)
def without_its_zygote_scripts_run_as_before(ctx):
    with learning(ctx) as (service, client):
        until_learned(client)
        for _ in range(3):
            for pid in zygotes(service):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            for _ in range(4):
                output(client, ASK % "slow")


@test(private=True)
def it_is_given_up_and_learned_again(ctx):
    with learning(ctx, "idle_seconds = 1\n") as (service, client):
        until_learned(client)
        until("two zygotes", lambda: len(zygotes(service)) == 2)
        until("one zygote", lambda: len(zygotes(service)) == 1)
        equal(profile_of(ctx, service)["learned"], [])
        assert not is_learned(client), "without a zygote"
        until_learned(client)


@test(private=True)
def a_changed_module_is_seen(ctx):
    with learning(ctx) as (service, client):
        until_learned(client)
        with open(service.site + "/new", "w", encoding="ascii") as f:
            f.write(SLOW + BORN + "VERSION = 2\n")
        os.rename(service.site + "/new", service.site + "/slow.py")
        until("the new module", lambda: output(
            client, "import slow\nprint(getattr(slow, 'VERSION', 1))") == "2")
        until_learned(client)


@test(private=True)
def a_zygote_of_ones_own_learns_nothing(ctx):
    with learning(ctx, "[profile basic]\nzygote_per_tenant = yes\n") as (service, client):
        for _ in range(6):
            assert not is_learned(client), "learned"
        equal(len(zygotes(service)), 2, "zygotes")
        profile = profile_of(ctx, service)
        equal((profile["learned"], profile["learned_hits"]), ([], 0))


@test(private=True)
def learning_can_be_off(ctx):
    with learning(ctx, learn="no") as (service, client):
        for _ in range(6):
            assert not is_learned(client), "learned"
        equal(len(zygotes(service)), 1, "zygotes")


@test(private=True)
def a_service_that_starts_again_has_learned(ctx):
    """What the last one had learned, before any script; not what a stranger writes into the file."""
    with tempfile.TemporaryDirectory(prefix="mcp-learned-") as directory:
        path = directory + "/learned"
        config = "learned_file = %s\n" % path
        with learning(ctx, config) as (service, client):
            until_learned(client)
            until("it is written down", lambda: "basic slow " in (read_text(path) or ""))
        with learning(ctx, config) as (service, client):
            client.run("print(1)")
            until("it is learned again", lambda: profile_of(ctx, service)["learned"] == ["slow"])
            assert is_learned(client), "the first script has not got it"
        [line] = read_text(path).splitlines()
        profile, name, named = line.split()
        equal((profile, name, time.time() - 3600 < int(named) <= time.time()), ("basic", "slow", True))
        lines = ["basic slow %d" % (time.time() + 86400), "basic parcel %d" % (time.time() - 8 * 86400),
                 "basic nobody_lists_this %s" % named, "other draws %s" % named, "basic binds %s" % named,
                 "x" * 100000, "basic borrows %s" % named]
        with open(path, "w", encoding="ascii") as f:
            f.write("\n".join(lines))
        with learning(ctx, config) as (service, client):
            client.run("print(1)")
            until("one is learned", lambda: profile_of(ctx, service)["learned"] == ["binds"])
        equal([one.split()[:2] for one in read_text(path).splitlines()], [["basic", "binds"]])


@test(private=True)
def nobody_waits_for_the_disk_of_what_is_learned(ctx):
    """What writes the file is held, as by a disk that does not answer. Meanwhile somebody removes the
    file, and it is made again."""
    with tempfile.TemporaryDirectory(prefix="mcp-learned-") as directory:
        path = directory + "/learned"
        os.chmod(directory, 0o777)
        with learning(ctx, "learned_file = %s\n" % path) as (service, client):
            with thread_held(service.pid, "files"):
                until_learned(client)
                until("status says so", lambda: profile_of(ctx, service)["learned"] == ["slow"])
                equal(read_text(path), "")
                os.unlink(path)
            until("it is written down", lambda: "basic slow " in (read_text(path) or ""))
            service.wait_logged("file-replaced what=learned")


@test(private=True)
def operators_see_what_is_learned(ctx):
    with learning(ctx) as (service, client):
        client.run("print(1)")
        profile = profile_of(ctx, service)
        equal((profile["learned"], profile["learned_hits"], profile["learned_misses"]), ([], 0, 0))
        until_learned(client)
        profile = profile_of(ctx, service)
        equal(profile["learned"], ["slow"])
        hits, misses = profile["learned_hits"], profile["learned_misses"]
        assert hits >= 1 and misses >= 1, profile
        # A script that also needs a module that is not learned has not got all.
        output(client, "import slow\nif 0:\n    import parcel\n")
        profile = profile_of(ctx, service)
        equal((profile["learned_hits"], profile["learned_misses"]), (hits, misses + 1))
        seen = command(ctx, "metrics", "--admin-socket", service.directory.socket).stdout
        for line in ('learned_modules{profile="basic"} 1',
                     'learned_scripts_total{profile="basic",result="hit"} %d' % hits,
                     'learned_scripts_total{profile="basic",result="miss"} %d' % (misses + 1)):
            assert "mcp_python_%s\n" % line in seen, (line, seen)


@test(private=True)
def a_generator_of_a_module_is_seeded_anew(ctx):
    with learning(ctx, learn="draws") as (service, client):
        until_learned(client, "draws")
        seen = [output(client, "import draws\nprint(draws.RANDOM.random(), draws.OWN.random())").split()
                for _ in range(5)]
        equal([len(set(numbers)) for numbers in zip(*seen)], [5, 5], "numbers of five scripts")


@test(private=True)
def a_codec_that_an_import_has_looked_up_is_looked_up_again(ctx):
    look = ("import encodings, sys\ndef seen(): return hasattr(encodings, 'cp037'), 'encodings.cp037' in "
            "sys.modules\nprint(seen(), '\xe9'.encode('cp037'), seen())\nif 0:\n    import encodes\n")
    with learning(ctx, learn="encodes") as (service, client):
        first = output(client, look)
        equal(first, "(False, False) b'Q' (True, True)")
        until_learned(client, "encodes")
        hits = profile_of(ctx, service)["learned_hits"]
        equal(output(client, look), first)
        equal(profile_of(ctx, service)["learned_hits"], hits + 1)


@test(private=True)
def a_loader_can_do_what_the_modules_own_can(ctx):
    look = ("import pkgutil, runpy\nprint(b'inner' in pkgutil.get_data('parcel', '__init__.py'))\n"
            "runpy.run_module('slow')\nif 0:\n    import parcel\n    import slow\n")
    with learning(ctx, learn="slow parcel") as (service, client):
        equal(output(client, look), "True", "measured")
        until_learned(client)
        until_learned(client, "parcel")
        equal(output(client, look), "True", "learned")


REAL = """import matplotlib.pyplot, numpy, os, sys, threading, warnings
numpy.random.seed(1)
print(numpy.random.rand(), numpy.random.default_rng(1).random(), numpy.random.RandomState(1).rand())
print(matplotlib.get_backend(), matplotlib.get_cachedir(), matplotlib.get_configdir())
print(sorted(os.environ.items()), [str(one) for one in warnings.filters])
square = numpy.ones((400, 400))
print((square @ square).sum(), len(os.listdir("/proc/self/task")), threading.active_count())
print(sorted(name for name in sys.modules if "cython" not in name))
"""


@test(private=True)
def real_packages_are_as_after_a_first_import(ctx):
    """Seeds, the backend and places of files, variables, warnings, threads of OpenBLAS, modules.
    Those of Cython are the difference that doc/agents.md names: no import loads them."""
    if subprocess.run(["/usr/bin/python3", "-c", "import numpy, matplotlib"], check=False,
                      capture_output=True).returncode:
        raise Skip("numpy or matplotlib is not installed", missing=True)
    with learning(ctx, learn="numpy matplotlib matplotlib.pyplot") as (service, client):
        first = output(client, REAL)
        assert first.startswith("0.417022004702574 0.5118216247002567 0.417022004702574\nagg "), first
        until("they are learned", lambda: output(client, "import numpy, matplotlib.pyplot") == ""
              and len(profile_of(ctx, service)["learned"]) == 3)
        hits = profile_of(ctx, service)["learned_hits"]
        later = output(client, REAL)
        for now, was in zip(later.splitlines(), first.splitlines()):
            equal(sorted(set(now.split(", ")) ^ set(was.split(", "))), [], "different")
        equal(profile_of(ctx, service)["learned_hits"], hits + 1)


# After a first import OpenBLAS has its threads already, and in a learned worker from their first use on.
THREADS = """import os, threadpoolctl
import sklearn.cluster
sklearn.cluster.KMeans(2, n_init=1, random_state=0).fit([[0.0], [1.0], [9.0]] * 1000)
print(sorted((one["user_api"], one["num_threads"]) for one in threadpoolctl.threadpool_info()),
      len(os.listdir("/proc/self/task")))
"""


@test(private=True)
def libraries_have_as_many_threads_as_after_a_first_import(ctx):
    """Those of OpenBLAS, of OpenMP in scikit-learn, and of numexpr, if it is installed."""
    if not is_installed("sklearn, threadpoolctl"):
        raise Skip("scikit-learn is not installed", missing=True)
    names, script = ["sklearn.cluster"], THREADS
    if is_installed("numexpr"):
        names, script = [*names, "numexpr"], script + "import numexpr\nprint(numexpr.nthreads)\n"
    with learning(ctx, learn=" ".join(names)) as (service, client):
        first = output(client, script)
        assert "openmp" in first and "blas" in first, first
        until("they are learned", lambda: output(client, "import %s" % ", ".join(names)) == ""
              and profile_of(ctx, service)["learned"] == names)
        hits = profile_of(ctx, service)["learned_hits"]
        equal(output(client, script), first)
        equal(profile_of(ctx, service)["learned_hits"], hits + 1)


@test(private=True)
def a_number_of_threads_that_a_script_chose_stays(ctx):
    """numexpr chooses its number when it is imported first, and not when a package needs it later."""
    if not is_installed("numexpr"):
        raise Skip("numexpr is not installed", missing=True)
    script = "import numexpr\nnumexpr.set_num_threads(1)\nimport expressions\nprint(numexpr.get_num_threads())"
    with learning(ctx, learn="expressions numexpr") as (service, client):
        until("they are learned", lambda: output(client, "import expressions, numexpr") == ""
              and profile_of(ctx, service)["learned"] == ["expressions", "numexpr"])
        hits = profile_of(ctx, service)["learned_hits"]
        equal(output(client, script), "1")
        equal(profile_of(ctx, service)["learned_hits"], hits + 1)


@test(private=True)
def random_numbers_differ(ctx):
    if subprocess.run(["/usr/bin/python3", "-c", "import numpy"], check=False,
                      capture_output=True).returncode:
        raise Skip("numpy is not installed")
    with learning(ctx, learn="numpy") as (service, client):
        until("numpy is learned", lambda: output(client, "import numpy") == "" and
              profile_of(ctx, service)["learned"] == ["numpy"])
        seen = {output(client, "import numpy, random\nprint(numpy.random.random(), numpy.random.randn(), "
                               "numpy.random.default_rng().random(), random.random())")
                for _ in range(5)}
        numbers = [set(column) for column in zip(*(line.split() for line in seen))]
        equal([len(column) for column in numbers], [5, 5, 5, 5], seen)


main(__doc__)
