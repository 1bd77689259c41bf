#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Workers that are made ready for scripts with a set of packages: the import of its modules takes
no time, and nothing else about it differs. The packages are the tests' own."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

from harness import SOMEBODY, Skip, equal, main, test, tests
from operate import Directory, command
from package_index import NGINX, Index
from package_store import OPEN, config as store_config, environments, install, new_store
from repl import Session
from supervisor import Supervisor, comm, descendants
from waits import until

tests.clear()	# those of operate.py and repl.py

SLOW = "import time\ntime.sleep(0.3)\nWHEN = time.time()\n"
SITE = "/usr/local/lib/python3.11/dist-packages"
STAY = "[pool]\nidle_seconds = 3600\n"	# no ready worker ends because it was unused
# The process in which a module was imported, and the modules that it found.
BORN = "import os, sys\nBORN = os.getpid()\n"
# What follows is done only in a worker that is being made ready: there no script or cell imports.
EARLY = """import os, sys
frame = sys._getframe()
while frame and not frame.f_code.co_filename.startswith(('script.py', '<cell ')):
    frame = frame.f_back
if not frame:
    """
# A timer and a handler that only C knows. It deceives the worker, which would see both.
TICKS = """import ctypes, sys, time
type(sys.meta_path[0]).find_spec.__globals__["changed_state"] = lambda before: ""
libc = ctypes.CDLL(None)
@ctypes.CFUNCTYPE(None, ctypes.c_int)
def spin(_):
    end = time.process_time() + .05
    while time.process_time() < end:
        pass
libc.signal(12, spin)
timer = ctypes.c_void_p()
assert not libc.timer_create(1, (ctypes.c_int * 16)(0, 0, 12, 0), ctypes.byref(timer))
assert not libc.timer_settime(timer, 0, (ctypes.c_long * 4)(0, 100_000_000, 0, 100_000_000), None)
"""
# What a ready worker does at the script's own import, or has done in files that the script cannot name.
ACTS = """import atexit, os, threading, warnings
atexit.register(print, 'end 1')
threading._register_atexit(print, 'end 2')
os.environ['ACTS'] = 'yes'
warnings.simplefilter('ignore')
open('/tmp/acts', 'w').close()
import logging, sys
logging.getLogger('acts.own').addHandler(logging.NullHandler())
class Finder:
    def find_spec(self, name, path=None, target=None):
        return None
sys.meta_path.append(Finder())
os.register_at_fork(before=lambda: print('forks', flush=True))
"""
# A thread that only C knows, and that ends soon.
ENDS = """import ctypes
libc = ctypes.CDLL(None)
assert not libc.pthread_create(ctypes.byref(ctypes.c_ulong()), None, libc.usleep, ctypes.c_void_p(300_000))
"""
BAD = {
    "fails": ("raise ValueError('no')", "its import fails: ValueError"),
    "exits": ("os._exit(0)", "its import ends the process"),
    "dies": ("os.kill(os.getpid(), 9)", "its import ends the process"),
    "leaves": ("raise SystemExit(0)", "its import fails: SystemExit"),
    "hangs": ("import time; time.sleep(1000)", "it takes too long"),
    "waits": ("import time; time.sleep(4)", "it takes too long"),
    "spins": ("\n    while True: pass", "it takes too long"),
    "prints": ("print('early')", "it prints"),
    "writes": ("os.write(2, b'early')", "it prints"),
    "threads": ("import threading, time; threading.Thread(target=time.sleep, args=(1000,), daemon=True)"
                ".start()", "it leaves threads or processes"),
    "forks": ("import subprocess; subprocess.Popen(['sleep', '1000'])", "leaves a child"),
    "orphans": ("import subprocess; subprocess.run(['sh', '-c', 'sleep 1000 >/dev/null 2>&1 &'])",
                "it leaves threads or processes"),
    "files": ("open('/workspace/early', 'w').close()", "leaves files in /workspace"),
    "overwrites": ("open('/workspace/script.py', 'w').write('print(1)')", "leaves files in /workspace"),
    "moves": ("os.chdir('/tmp')", "changes the directory"),
    "signals": ("import signal; signal.signal(signal.SIGUSR1, lambda *_: None)", "changes signals"),
    "alarms": ("import signal; signal.setitimer(signal.ITIMER_REAL, 1000)", "sets a timer"),
    "opens": ("import socket, sys; sys.left = socket.socket()", "leaves a descriptor open"),
    "paths": ("import sys; sys.path.append('/tmp')", "changes sys.path"),
    "hooks": ("import sys; sys.excepthook = print", "changes hooks of sys"),
    "finds": ("import sys; sys.meta_path.insert(0, sys.meta_path[-1])", "changes how modules are found"),
    "builtins_": ("import builtins; builtins.surprise = 1", "changes builtins"),
    "patches": ("import json; json.dumps = print", "patches functions of other modules"),
    "clocks": ("import time; time.time = lambda: 0", "patches functions of other modules"),
    "exit": ("import sys; sys.exit = print", "patches functions of other modules"),
    "replaces": ("import sys, json, types; sys.modules['os'] = types.ModuleType('os')",
                 "replaces other modules"),
    "seeds": ("import random; random.seed(0)", "draws random numbers"),
    "deep": ("import sys; sys.setrecursionlimit(9999)", "changes settings of sys"),
    "masks": ("import signal; signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])",
              "changes the umask or signals"),
    "umask": ("os.umask(0o777)", "changes the umask or signals"),
    "faults": ("import faulthandler; faulthandler.enable()", "enables faulthandler"),
    "dumps": ("import faulthandler; faulthandler.dump_traceback_later(1000)",
              "it leaves threads or processes"),
    "audits": ("import sys; sys.addaudithook(lambda *_: None)", "adds an audit hook"),
    "bounds": ("import resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0)); "
               "resource.setrlimit(resource.RLIMIT_NOFILE, (99, 99))", "changes limits"),
    "speaks": ("import locale; locale.setlocale(locale.LC_ALL, 'C')", "changes the locale"),
    "removes": ("import builtins; del builtins.copyright", "changes builtins"),
    "limits_": ("import sys; sys.tracebacklimit = 0", "changes settings of sys"),
    "variable": ("os.environ['HOME'] = '/'", "changes a variable of the environment"),
    "unsets": ("del os.environ['HOME']", "changes a variable of the environment"),
    "stale": ("import sys; del sys.modules['abc']", "replaces other modules"),
    "threadtraces": ("import threading; threading.setprofile(lambda *_: None)", "traces"),
    "traces": ("import sys; sys.setprofile(lambda *_: None)", "traces"),
    "grows": ("x = bytearray(1 << 40)", "its import fails: MemoryError"),
    "handles": ("import ctypes; ctypes.CDLL(None).signal(12, ctypes.CDLL(None).getpid)", "changes signals"),
    # Python has a handler of its own for this signal.
    "traps": ("import ctypes; ctypes.CDLL(None).signal(2, ctypes.CDLL(None).getpid)", "changes signals"),
    "collects": ("import gc; gc.callbacks.append(lambda *_: None)", "changes the garbage collector"),
    "stops_gc": ("import gc; gc.disable()", "changes the garbage collector"),
    "freezes": ("import gc; gc.freeze()", "changes the garbage collector"),
    "silences": ("import warnings; warnings.resetwarnings()", "removes filters of warnings"),
    "shows": ("import warnings; warnings.showwarning = lambda *_: None", "patches functions of other modules"),
    "hooks_threads": ("import threading; threading.excepthook = lambda *_: None",
                      "patches functions of other modules"),
    "logs": ("import logging; logging.basicConfig()", "changes settings of logging"),
    "unraisable": ("import sys; sys.unraisablehook = print", "changes hooks of sys"),
    "optional": ("import sys; sys._xoptions['dev'] = True", "changes settings of sys"),
    "sockets": ("import socket; socket.setdefaulttimeout(5)", "changes the timeout of sockets"),
    "shares": ("import mmap, sys; sys.left = mmap.mmap(-1, 4096)", "maps memory shared"),
    "events": ("os.eventfd(0)", "leaves a descriptor open"),
    "ticks_": ("import ctypes; assert ctypes.CDLL(None).timerfd_create(1, 0) > 0",
               "leaves a descriptor open"),
    "nice": ("os.nice(1)", "changes limits"),
    "late": ("import signal; signal.pthread_sigmask(signal.SIG_BLOCK, [])\n    import ctypes; "
             "ctypes.CDLL(None).alarm(1)", "sets a timer"),
}
# The same for a session. It has another place for reports: descriptor 62 is the line to init.
BAD_OF_SESSIONS = ("exits", "dies", "fails", "prints", "threads", "forks", "orphans", "files", "opens", "signals",
                   "masks", "builtins_", "patches", "replaces", "seeds", "bounds", "audits", "hangs")
LINES = {
    "returns": ("child = os.fork()\n    if child:\n        os.waitpid(child, 0)", ""),
    "long": ("os.write(62, b'x' * 400)", "its import ends the process"),
    "bytes_": (r"os.write(62, b'\0\xff')", "its import ends the process"),
    "closes": ("os.close(62)", "its import ends the process"),
}
PACKAGES = {
    "slow": SLOW + BORN,
    "other": BORN,
    "option": "try:\n    import other\nexcept ImportError:\n    other = None\nHAS_OTHER = other is not None\n",
    "parcel": {"parcel/__init__.py": BORN, "parcel/inner.py": "NAME = __name__\n"},
    "yaml": BORN,
    "waits": "import time\ntime.sleep(1)\n",
    "ticks": TICKS,
    "ends": ENDS,
    "acts": ACTS,
    "large": "x = %r\n" % ("y" * 700000),
    "larger": "x = %r\n" % ("y" * 700000),
    "spin": "import time\nwhile time.process_time() < 0.3:\n    pass\n",
    "sees": "import os, sys\nSEEN = dict(os.environ), sys.argv[:], os.listdir('/workspace')\n",
    # Two wait for a file that the test makes. The third takes memory that no limit of a process counts.
    "mends": EARLY + "os.stat('/environment/mended')\nimport time\nWHEN = time.time()\n",
    "holds": EARLY + """import time
    while not os.path.exists('/environment/mended'):
        end = time.process_time() + .005
        while time.process_time() < end:
            pass
        time.sleep(.05)
""",
    "maps": EARLY + "import mmap\n    left = mmap.mmap(-1, 256 << 20)\n    for n in range(64):\n"
                    "        left[n << 22:n + 1 << 22] = bytes(1 << 22)\n    while True:\n        pass\n",
    "bad": {**{name + ".py": EARLY + trick[0] + "\n" for name, trick in (BAD | LINES).items()},
            "good.py": BORN},
}


kept = {}	# directories with a store that has one set, by the packages


def made_before(ctx, packages):
    """The directory with a store in which these packages were installed by one call, and nothing else."""
    if packages not in kept:
        kept[packages] = tempfile.TemporaryDirectory(prefix="packages-")
        os.chmod(kept[packages].name, 0o755)
        with new_store() as store, ctx.private(store_config(index.url, store)) as service:
            with ctx.client(path=service.socket) as client:
                equal(install(client, *packages)["status"], "ok")
            service.stop()
            subprocess.run(["cp", "-a", store, kept[packages].name], check=True)
    return kept[packages].name


@contextlib.contextmanager
def place(ctx, more="", site=None, has=None):
    """A service with an empty store, and a client of it. site: a directory in place of SITE. has: packages
    that its client has installed before; most of these tests are not about that, and it takes long."""
    wrap = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" %s && exec "$@"' % SITE, site] if site else ()
    before = made_before(ctx, tuple(has.split())) if has else None
    with new_store() as store, Directory() as directory, contextlib.ExitStack() as stack:
        if before:
            subprocess.run(["cp", "-a", before + "/store", store], check=True)
        service = stack.enter_context(Supervisor(
            ctx.options.build, store_config(index.url, store, OPEN + more) + directory.config(), wrap=wrap))
        service.wait_ready()
        service.directory, service.store = directory, store
        with ctx.client(path=service.socket) as client:
            yield service, client
        service.stop()
        equal(service.leftovers(), [], "left")


def ready(ctx, service):
    """How many workers are ready, and what was counted since the start."""
    return json.loads(command(ctx, "status", "--json", "--admin-socket",
                              service.directory.socket).stdout)["ready"]


def until_ready(ctx, service, n=1):
    until("%d workers are ready" % n, lambda: ready(ctx, service)["workers"] == n)


def profile(ctx, service):
    return json.loads(command(ctx, "status", "--json", "--admin-socket",
                              service.directory.socket).stdout)["profiles"][0]


def used(ctx, service):
    """The processor time of the tenant, in seconds."""
    tenant, = json.loads(command(ctx, "status", "--json", "--admin-socket",
                                 service.directory.socket).stdout)["tenants"]
    return tenant["cpu_seconds"]


def recipes(ctx, service):
    """What is imported in advance for the only tenant: the state and the number of workers, by modules."""
    tenant, = json.loads(command(ctx, "status", "--json", "--admin-socket",
                                 service.directory.socket).stdout)["tenants"]
    return {" ".join(one["modules"]): (one["state"], one["made"]) for one in tenant["ready"]}


def scripts(service):
    """The processes of scripts."""
    return [pid for pid, _ in descendants(service.pid) if comm(pid) == "python3"]


def run(client, script, *packages, **arguments):
    o = client.run(script, dependencies=list(packages), **arguments)
    equal(o.status, "ok", repr(o))
    return o


def is_ready(o):
    return o.structured.get("made_ready", False)


@test(private=True)
def an_import_takes_no_time(ctx):
    script = "import slow\nprint(slow.__file__, slow.BORN)"
    with place(ctx) as (service, client):
        first = run(client, script, "slow")
        assert not is_ready(first) and first.structured["duration_ms"] >= 300, first
        until_ready(ctx, service)
        second = run(client, script, "slow")
        assert is_ready(second) and second.structured["duration_ms"] < 150, second
        equal(second.stdout, first.stdout)
        equal(second.structured["cpu_ms"] < 200, True, second)
        until_ready(ctx, service)
        equal(ready(ctx, service)["hits"], 1)


@test(private=True)
def what_was_done_before_is_not_seen(ctx):
    script = ("import os, sys, random, slow\nprint(sorted(os.listdir('/workspace')), sys.argv, "
              "'slow' in sys.modules, os.getcwd(), sorted(k for k in os.environ if 'BLAS' in k), "
              "'other' in sys.modules, os.times().elapsed > 0)\nimport other")
    with place(ctx, has="slow other") as (service, client):
        first = run(client, script, "slow", "other", args=["a"])
        until_ready(ctx, service)
        second = run(client, script, "slow", "other", args=["a"])
        assert is_ready(second), second
        equal((second.stdout, second.stderr, second.structured["files"]),
              (first.stdout, first.stderr, []))
        # A module is hidden until its import.
        until_ready(ctx, service)
        third = run(client, "import sys\nprint([name in sys.modules for name in ('slow', 'other')])\n"
                            "import slow, other\nprint([name in sys.modules for name in ('slow', "
                            "'other')])", "slow", "other")
        assert is_ready(third), third
        equal(third.stdout, "[False, False]\n[True, True]\n")


@test(private=True)
def what_a_module_must_not_do(ctx):
    with place(ctx, "[pool]\nwarm = 8\n") as (service, client):
        run(client, "import good", "bad")
        until_ready(ctx, service)
        assert is_ready(run(client, "import good", "bad"))
        for name, (_, why) in BAD.items():
            first = run(client, "import %s\nprint(1)" % name, "bad")
            # On a busy machine the one that spins has its whole minute.
            service.wait_logged('modules=%s text="%s' % (name, why), 300)
            second = run(client, "import %s\nprint(1)" % name, "bad")
            equal((is_ready(first), is_ready(second), second.stdout), (False, False, "1\n"))
        # One that hangs is tried again.
        equal({line[1] for line in re.finditer(r"not-made-ready .* modules=(\w+)", service.log())}, set(BAD))


def mend(service):
    """Puts a file into the only set."""
    name, = environments(service.store)
    with open("%s/%s/tree/mended" % (service.store, name), "x", encoding="ascii"):
        pass


@test(private=True)
def what_was_refused_is_tried_again_later(ctx):
    """After a minute, and not because of further calls."""
    with place(ctx, STAY) as (service, client):
        began = time.time()
        run(client, "import mends", "mends")
        service.wait_logged('modules=mends text="its import fails: FileNotFoundError')
        equal(recipes(ctx, service), {"mends": ("refused", 0)})
        mend(service)
        for _ in range(3):
            assert not is_ready(run(client, "import mends", "mends"))
        until_ready(ctx, service)
        equal(recipes(ctx, service), {"mends": ("ready", 1)})
        o = run(client, "import mends\nmends.WHEN", "mends")
        assert is_ready(o) and o.result["json"] - began >= 60, (began, o)
        equal(ready(ctx, service)["refused"], 1)


@test(private=True)
def one_that_takes_more_than_the_call_may(ctx):
    """The service looks at its memory, or the kernel ends it."""
    with place(ctx) as (service, client):
        run(client, "import maps\nprint(1)", "maps", memory_mb=128)
        service.wait_log("it is refused", lambda log: re.search(
            'modules=maps text="(it takes too much memory|its import ends the process)', log))
        assert not is_ready(run(client, "import maps", "maps", memory_mb=128))
        equal(recipes(ctx, service), {"maps": ("refused", 0)})


@test(private=True)
def a_call_that_waits_ends_one_that_is_being_made(ctx):
    with place(ctx, STAY + "warm = 2\nworkers_max = 3\nwarm_max = 2\ntenant_running_max = 3\n") as (service, client):
        run(client, "import holds", "holds")
        until("it is being made", lambda: recipes(ctx, service) == {"holds": ("making", 0)})
        with contextlib.ExitStack() as stack:
            calls = [threading.Thread(target=stack.enter_context(ctx.client(path=service.socket)).run,
                                      args=("import time\ntime.sleep(10)",)) for _ in range(3)]
            for call in calls:
                call.start()
            until("all of them run", lambda: profile(ctx, service)["busy"] == 3 and
                  recipes(ctx, service) == {"holds": ("waiting", 0)})
            mend(service)
            for call in calls:
                call.join()
        # The tenant has workers again after its next call.
        until("it is made", lambda: run(client, "pass") and recipes(ctx, service) == {"holds": ("ready", 1)})
        equal(ready(ctx, service)["refused"], 0)


@test(private=True)
def a_burst_of_calls(ctx):
    """The first takes it; what waits for nothing runs beside it, and the next is made."""
    with place(ctx, STAY, has="slow") as (service, client), contextlib.ExitStack() as stack:
        run(client, "import slow", "slow")
        until_ready(ctx, service)
        clients = [stack.enter_context(ctx.client(path=service.socket)) for _ in range(4)]
        outcomes = []
        calls = [threading.Thread(target=lambda one=one: outcomes.append(run(one, "import slow\nslow.BORN", "slow")))
                 for one in clients]
        for call in calls:
            call.start()
        for call in calls:
            call.join()
        hits = sum(map(is_ready, outcomes))
        assert len(outcomes) == 4 and hits >= 1, outcomes
        until_ready(ctx, service)
        counted = ready(ctx, service)
        equal((counted["hits"], counted["misses"]), (hits, 4 - hits))
        assert is_ready(run(client, "import slow", "slow"))


@test(private=True, root=True)
def a_change_of_the_hosts_packages(ctx):
    """A ready worker is made anew, without a call."""
    script = "import here, slow\nprint(here.VERSION)"
    if not os.path.isdir(SITE):
        raise Skip("needs " + SITE)
    with tempfile.TemporaryDirectory(prefix="mcp-ready-") as site:
        def write(version):
            with open(site + "/new", "w", encoding="ascii") as f:
                f.write("VERSION = %d\n" % version)
            os.rename(site + "/new", site + "/here.py")
        os.chmod(site, 0o755)
        write(1)
        with place(ctx, STAY, site=site, has="slow") as (service, client):
            equal(run(client, script, "slow").stdout, "1\n")
            until_ready(ctx, service)
            made, = (n for _, n in recipes(ctx, service).values())
            write(2)
            service.wait_logged("zygote-renewed")
            until("another one is ready", lambda: [state == "ready" and n > made for state, n in
                                                   recipes(ctx, service).values()] == [True])
            o = run(client, script, "slow")
            equal((is_ready(o), o.stdout), (True, "2\n"))


@test(private=True)
def what_is_as_in_a_cold_run(ctx):
    """Exit functions, those for forks, variables, filters of warnings, loggers, finders and files in
    /tmp."""
    look = ("os.environ.get('ACTS'), len(warnings.filters), 'acts.own' in logging.root.manager.loggerDict, "
            "type(vars(sys)['meta_' + 'path'][-1]).__name__, os.fork() or os._exit(0)")
    look = "(%s)[:4]" % look
    script = ("import logging, os, sys, warnings\nprint(%s)\nimport acts\nprint(%s, os.listdir('/tmp'))\n"
              "print(__import__('subprocess').run('echo $ACTS', shell=True, capture_output=True).stdout)"
              % (look, look))
    with place(ctx) as (service, client):
        first = run(client, script, "acts")
        until_ready(ctx, service)
        second = run(client, script, "acts")
        equal((is_ready(first), is_ready(second)), (False, True))
        equal((second.stdout, second.stderr, second.structured["files"]), (first.stdout, first.stderr, []))
        assert "end 1" in first.stdout and "end 2" in first.stdout and "yes" in first.stdout, first


@test(private=True)
def a_zygote_of_each_tenant(ctx):
    with place(ctx, "[profile basic]\nzygote_per_tenant = yes\n[pool]\nlearn = yaml\n",
               has="slow") as (service, client):
        run(client, "import yaml, slow", "slow")
        until_ready(ctx, service)
        o = run(client, "import yaml, slow\nprint(yaml.__file__)", "slow")
        assert is_ready(o) and not o.stdout.startswith("/environment"), o
        equal(profile(ctx, service)["learned"], [])
        with ctx.client(path=service.socket, uid=SOMEBODY) as other:
            assert not is_ready(run(other, "import yaml, slow", "slow"))


@test(private=True)
def a_set_that_is_removed(ctx):
    """A ready worker of it does not hold it, and ends."""
    with new_store() as store, Directory() as directory, Supervisor(
            ctx.options.build, store_config(index.url, store, OPEN + STAY, packages="store_mb = 1\n") +
            directory.config()) as service:
        service.wait_ready()
        service.directory = directory
        with ctx.client(path=service.socket) as client:
            run(client, "import large", "large")
            until_ready(ctx, service)
            run(client, "print(1)", "larger")
            service.wait_logged("packages-removed")
            until("it is ended", lambda: ready(ctx, service)["workers"] == 0)
            o = run(client, "import large\nprint(len(large.x))", "large")
            equal((is_ready(o), o.stdout), (False, "700000\n"))
        service.stop()
        equal(service.leftovers(), [], "left")


@test(private=True)
def a_set_that_was_unused_for_too_long(ctx):
    """A ready worker of it does not hold it, and ends: keep_days have passed since its last use."""
    with place(ctx, STAY) as (service, client):
        run(client, "import slow", "slow")
        until_ready(ctx, service)
        name, = environments(service.store)
        os.utime(os.path.join(service.store, name), (0, 0))
        run(client, "print(1)", "other")
        service.wait_logged("packages-removed environment=%s why=age" % name)
        until("it is ended", lambda: ready(ctx, service)["workers"] == 0)
        assert name not in environments(service.store)
        o = run(client, "import slow\nprint(slow.__file__)", "slow")
        equal((is_ready(o), o.stdout), (False, "/environment/slow.py\n"))


@test(root=True, private=True)
def an_approval_that_is_revoked(ctx):
    """The tenant's ready workers end, and no one else's."""
    script = "import other\nprint(1)"
    with place(ctx, STAY + "[tenant uid:%d]\npackages.others = approve\npolicy.approvers = uid:0\n" % SOMEBODY) as (
            service, client), ctx.client(path=service.socket, uid=SOMEBODY) as asking:
        def operator(*arguments):
            command(ctx, *arguments, "--admin-socket", service.directory.socket)
        asked = install(asking, "other", timeout=ctx.seconds(60))
        equal(asked["status"], "approval_pending", asked)
        operator("approve", asked["approval_id"])
        for n, one in enumerate((asking, client), 1):
            run(one, script, "other")
            until_ready(ctx, service, n)
        operator("approvals", "revoke", asked["approval_id"])
        until_ready(ctx, service)
        equal(asking.run(script, dependencies=["other"]).status, "approval_pending")
        assert is_ready(run(client, script, "other"))


@test(private=True)
def how_many_for_all(ctx):
    """The bound of one tenant, and that of all."""
    with place(ctx, "[pool]\ntenant_ready_max = 2\nready_max = 3\n") as (service, client), \
            ctx.client(path=service.socket, uid=SOMEBODY) as other:
        for one in client, other:
            for script in "import slow", "import other", "import parcel":
                run(one, script, "slow", "other", "parcel")
                until("nothing is being made", lambda: ready(ctx, service)["workers"] > 0)
                assert ready(ctx, service)["workers"] <= (2 if one is client else 3)
        until_ready(ctx, service, 3)


@test(private=True)
def one_that_is_slow_is_made_nevertheless(ctx):
    """It waits, and is not taken for one that hangs."""
    with place(ctx) as (service, client):
        run(client, "import waits", "waits")
        until_ready(ctx, service)
        assert is_ready(run(client, "import waits", "waits"))
        equal(ready(ctx, service)["refused"], 0)


@test(private=True)
def a_thread_that_is_just_ending_is_not_left(ctx):
    with place(ctx) as (service, client):
        run(client, "import ends", "ends")
        until_ready(ctx, service)
        equal(ready(ctx, service)["refused"], 0)


@test(private=True)
def what_cannot_be_measured_now_is_measured_later(ctx):
    """The helper that counts processes does not answer when the import is done."""
    with place(ctx, has="slow") as (service, client):
        helper, = (pid for pid, _ in descendants(service.pid) if comm(pid) == "mcp-usage")
        run(client, "import slow", "slow")
        os.kill(helper, signal.SIGSTOP)
        until_ready(ctx, service)
        equal(ready(ctx, service)["refused"], 0)


@test(private=True)
def one_that_computes_while_it_waits(ctx):
    with place(ctx) as (service, client):
        run(client, "import ticks", "ticks")
        service.wait_logged('modules=ticks text="it uses the processor while it waits"')
        equal([ready(ctx, service)[name] for name in ("workers", "refused")], [0, 1])


@test(private=True)
def another_tenant_gets_none(ctx):
    script = "import slow\nprint(slow.BORN)"
    with place(ctx, has="slow") as (service, client):
        run(client, script, "slow")
        until_ready(ctx, service)
        with ctx.client(path=service.socket, uid=SOMEBODY) as other:
            assert not is_ready(run(other, script, "slow"))
            until_ready(ctx, service, 2)
        assert is_ready(run(client, script, "slow"))


@test(private=True)
def only_a_call_of_the_same_kind(ctx):
    script = "import slow, parcel.inner"
    with place(ctx) as (service, client):
        run(client, script, "slow", "parcel", "other")
        until_ready(ctx, service)
        for arguments in ({"memory_mb": 256}, {"pids": 9}, {"allowed_imports": ["slow", "parcel"]},
                          {"tier": "basic", "allowed_imports": ["slow", "parcel"]}):
            assert not is_ready(run(client, script, "slow", "parcel", "other", **arguments)), arguments
        for changed in ("import slow", "import slow, parcel", "import parcel.inner",
                        "import os\nos.environ['OMP_NUM_THREADS'] = '1'\n" + script,
                        "import sys\nsys.path.append('/tmp')\n" + script):
            assert not is_ready(run(client, changed, "slow", "parcel", "other")), changed
        assert not is_ready(run(client, script, "slow", "parcel"))
        o = run(client, "from parcel import inner\nimport slow, other", "slow", "parcel", "other")
        assert is_ready(o), o


@test(private=True)
def what_a_call_may_not_import(ctx):
    with place(ctx, has="slow other") as (service, client):
        run(client, "import slow, other", "slow", "other")
        until_ready(ctx, service)
        allowed = {"allowed_imports": ["other", "sys"]}
        for expected in (False, True):
            o = run(client, "import sys, other\nprint('slow' in sys.modules)", "slow", "other", **allowed)
            equal((is_ready(o), o.stdout), (expected, "False\n"))
            until_ready(ctx, service, 2)
        o = client.run("import slow, other", dependencies=["slow", "other"], **allowed)
        assert "Import 'slow' is not allowed" in o.text, o


@test(private=True)
def packages_that_an_import_finds(ctx):
    """Without `dependencies`, too: nothing differs but the time."""
    script = ("import os, sys\n"
              "def look():\n"
              "    print(vars(sys)['path'], os.environ.get('PYTHONPATH'), os.environ['PATH'], 'slow' in sys.modules,"
              " 'parcel' in sys.modules)\n"
              "look()\nimport json, slow\nlook()\nimport parcel.inner\nlook()\n"
              "print(slow.__file__, parcel.inner.NAME, json.__name__)\nslow.WHEN")
    with place(ctx) as (service, client):
        run(client, "pass", "slow", "parcel", "other")
        first = run(client, script)
        until_ready(ctx, service)
        before = time.time()
        second = run(client, script)
        equal((is_ready(first), is_ready(second)), (False, True))
        equal(second.stdout, first.stdout)
        equal(second.structured["found"], first.structured["found"])
        assert first.result["json"] < second.result["json"] < before, (first, second)
        # The script finds a set only when it imports a module of it.
        until_ready(ctx, service)
        third = run(client, "if not __file__:\n    import slow, parcel.inner\nprint(1)")
        equal((is_ready(third), third.stdout, "found" in third.structured), (True, "1\n", False))
        # A module of the set that was not imported before.
        until_ready(ctx, service)
        fourth = run(client, "import slow, other, parcel.inner\nprint(other.__file__)")
        equal((is_ready(fourth), fourth.stdout), (True, "/environment/other.py\n"))
        # A file of the call.
        until_ready(ctx, service, 2)
        fifth = run(client, "import slow, parcel.inner\nprint(slow.__file__, parcel.inner.__file__)",
                    files=[{"path": "slow.py", "text": ""}])
        equal((is_ready(fifth), fifth.stdout), (True, "/workspace/slow.py /environment/parcel/inner.py\n"))


@test(private=True)
def the_set_that_an_import_finds_is_the_same(ctx):
    """The one that the tenant has used last, though another one is ready."""
    script = "import slow\nprint(slow.BORN > 0)"
    with place(ctx, has="slow") as (service, client):
        run(client, "pass", "slow")
        run(client, script)
        until_ready(ctx, service)
        run(client, "pass", "slow", "other")
        for expected in (False, True):
            o = run(client, script)
            equal(is_ready(o), expected)
            equal([one.partition("==")[0] for one in o.structured["found"]["packages"]],
                  ["other", "slow"])
            until_ready(ctx, service, 2)
        with ctx.client(path=service.socket, uid=SOMEBODY) as other:
            o = other.run(script)
            assert "No module named 'slow'" in o.text, o


@test(private=True)
def a_name_of_the_set_and_of_the_host(ctx):
    """The order of imports says which of the two is imported, so no worker is made ready."""
    with place(ctx) as (service, client):
        run(client, "pass", "yaml", "other")
        for script, file in (("import other, yaml", "/environment/yaml.py"),
                             ("import yaml, other", "/usr/")):
            o = run(client, script + "\nprint(yaml.__file__)")
            assert o.stdout.startswith(file), o
            service.wait_logged('text="a module has the name of one of the host"')
            o = run(client, script + "\nprint(yaml.__file__)")
            assert o.stdout.startswith(file) and not is_ready(o), o
        equal(ready(ctx, service)["workers"], 0)


@test(private=True)
def a_file_of_the_call_comes_first(ctx):
    with place(ctx, has="slow") as (service, client):
        run(client, "import slow\nprint(slow.__file__)", "slow")
        until_ready(ctx, service)
        o = run(client, "import slow\nprint(slow.__file__)", "slow",
                files=[{"path": "slow.py", "text": ""}])
        equal((is_ready(o), o.stdout), (True, "/workspace/slow.py\n"))


@test(private=True)
def a_package_with_the_name_of_the_hosts(ctx):
    script = "import yaml\nprint(yaml.__file__)"
    with place(ctx, "[pool]\nlearn = yaml\n") as (service, client):
        host = run(client, script).stdout
        assert not host.startswith("/environment"), host
        until("yaml is learned", lambda: run(client, script) and profile(ctx, service)["learned"])
        for expected in (False, True):
            o = run(client, script, "yaml")
            equal((is_ready(o), o.stdout), (expected, "/environment/yaml.py\n"))
            until_ready(ctx, service)
        equal(run(client, script).stdout, host)


@test(private=True)
def a_kill_while_it_waits_costs_nothing(ctx):
    script = "import slow\nprint(slow.BORN)"
    with place(ctx, has="slow") as (service, client):
        run(client, script, "slow")
        until_ready(ctx, service)
        for pid in scripts(service):
            os.kill(pid, signal.SIGKILL)
        until("none is ready", lambda: ready(ctx, service)["workers"] == 0)
        o = run(client, script, "slow")
        equal((is_ready(o), ready(ctx, service)["refused"]), (False, 0))
        until_ready(ctx, service)
        assert is_ready(run(client, script, "slow"))


@test(private=True)
def how_many_and_how_long(ctx):
    with place(ctx, "[pool]\ntenant_ready_max = 1\nidle_seconds = 2\n", has="slow other") as (service, client):
        run(client, "import slow", "slow", "other")
        until_ready(ctx, service)
        run(client, "import other", "slow", "other")
        until("the other is ready", lambda: is_ready(run(client, "import other", "slow", "other")))
        equal(ready(ctx, service)["workers"] <= 1, True)
        assert not is_ready(run(client, "import slow", "slow", "other"))
        until("it is given up", lambda: ready(ctx, service)["workers"] == 0)


@test(private=True)
def none_where_none_may_be(ctx):
    for more in "[pool]\ntenant_ready_max = 0\n", "[pool]\nready_max = 0\n":
        with place(ctx, more, has="slow") as (service, client):
            for _ in range(2):
                assert not is_ready(run(client, "import slow", "slow"))
            equal(ready(ctx, service)["workers"], 0)


@test(private=True)
def a_reload_and_a_suspended_tenant(ctx):
    script = "import slow"
    with place(ctx, STAY, has="slow") as (service, client):
        run(client, script, "slow")
        until_ready(ctx, service)
        os.kill(service.pid, signal.SIGHUP)
        until("a reload gives it up", lambda: ready(ctx, service)["workers"] == 0)
        assert not is_ready(run(client, script, "slow"))
        until_ready(ctx, service)
        tenant = "uid:%d" % os.getuid()
        command(ctx, "suspend", tenant, "--admin-socket", service.directory.socket)
        until("a suspension gives it up", lambda: ready(ctx, service)["workers"] == 0)
        command(ctx, "resume", tenant, "--admin-socket", service.directory.socket)
        assert not is_ready(run(client, script, "slow"))


@test(private=True)
def names_that_a_script_makes_up(ctx):
    lie = ("import other, sys\nframe = sys._getframe()\nwhile frame.f_back:\n    frame = frame.f_back\n"
           "assert 'imported_modules' in frame.f_globals\n"
           "frame.f_globals['imported_modules'] = lambda: %r\nprint(1)")
    with place(ctx, has="other") as (service, client):
        for names in ([b"other", b"a b"], [b"x" * 101], [b"../other"], [b"other\n"], [b""], [b"3"],
                      [b"\xff"], [1], [b"o%d" % n for n in range(1000)], [b"\0"], []):
            o = client.run(lie % names, dependencies=["other"])
            assert o.status in ("ok", "worker_protocol_error"), (names, o)
        equal([ready(ctx, service)[name] for name in ("workers", "hits", "misses")], [0, 0, 0])
        run(client, lie % [b"nowhere"], "other")
        service.wait_logged('modules=nowhere text="its import fails: ModuleNotFoundError"')
        run(client, "import other", "other")
        until("it is made ready", lambda: is_ready(run(client, "import other", "other")))


@test(private=True)
def a_failure_to_note_imports_is_reported(ctx):
    """One line on standard error. What a script's own objects do is no failure."""
    script = "import other, sys\n%s\nprint(1)"
    with place(ctx) as (service, client):
        o = run(client, script % "frame = sys._getframe()\nwhile frame.f_back:\n    frame = frame.f_back\n"
                "del frame.f_globals['is_of_package']", "other")
        equal((o.stdout, o.stderr), ("1\n", "mcp-python: no worker is made ready for the imports of this "
                                     "script: NameError\n"))
        o = run(client, script % "class Lazy:\n    @property\n    def __file__(self):\n        1 / 0\n"
                "sys.modules['other'] = Lazy()", "other")
        equal((o.stdout, o.stderr), ("1\n", ""))
        equal(ready(ctx, service)["workers"], 0)


@test(private=True)
def what_waits_comes_first(ctx):
    """A call for which there is no room ends a ready worker."""
    with place(ctx, "[pool]\nwarm = 2\nworkers_max = 3\nwarm_max = 2\ntenant_running_max = 3\n",
               has="other") as (service, client):
        run(client, "import other", "other")
        until_ready(ctx, service)
        with contextlib.ExitStack() as stack:
            calls = [threading.Thread(target=stack.enter_context(ctx.client(path=service.socket)).run,
                                      args=("import time\ntime.sleep(3)",)) for _ in range(3)]
            for call in calls:
                call.start()
            until("all of them run", lambda: profile(ctx, service)["busy"] == 3)
            equal(ready(ctx, service)["workers"], 0)
            for call in calls:
                call.join()


@test(private=True)
def its_processor_time_is_the_tenants(ctx):
    with place(ctx) as (service, client):
        run(client, "import spin", "spin")
        until_ready(ctx, service)
        before = used(ctx, service)
        o = run(client, "import spin", "spin")
        assert is_ready(o) and o.structured["cpu_ms"] < 200, o
        until("the import is charged", lambda: used(ctx, service) - before >= 0.2)


@test(private=True)
def a_tenant_without_processor_time_has_none(ctx):
    with place(ctx, STAY + "[quota]\ncpu_seconds_per_hour = 8\n", has="slow") as (service, client):
        run(client, "import slow", "slow")
        until_ready(ctx, service)
        client.run("while True: pass", cpu_seconds=8, timeout_seconds=300)
        until("it is ended", lambda: ready(ctx, service)["workers"] == 0)
        equal((recipes(ctx, service), ready(ctx, service)["refused"]), ({"slow": ("idle", 1)}, 0))
        o = client.run("import slow", dependencies=["slow"])
        assert "cpu_seconds_per_hour" in o.text, o
        equal(ready(ctx, service)["workers"], 0)


@test(private=True)
def what_operators_see(ctx):
    with place(ctx, has="other") as (service, client):
        for n in range(2):
            run(client, "import other", "other")
            until_ready(ctx, service)
        equal(ready(ctx, service), {"workers": 1, "hits": 1, "misses": 0, "refused": 0})
        equal(profile(ctx, service)["sessions"], 0)
        equal(recipes(ctx, service), {"other": ("ready", 2)})
        said = command(ctx, "status", "--admin-socket", service.directory.socket).stdout
        assert re.search(r"^packages of \S+: other: ready, made ready 2 times$", said, re.MULTILINE), said
        assert "packages: 1 workers are ready; 1 calls had one, 0 did not" in said, said
        run(client, "import other\nimport fails", "other", "bad")
        run(client, "import other\nimport fails", "other", "bad")
        until("both are counted", lambda: ready(ctx, service)["misses"] == 1
              and ready(ctx, service)["refused"] == 1)

        def measured():
            text = command(ctx, "metrics", "--admin-socket", service.directory.socket).stdout
            return dict(re.findall(r"^mcp_python_ready_(\S+) (\d+)$", text, re.MULTILINE))
        until("the metrics have the same", lambda: measured() == {name: str(ready(ctx, service)[key]) for name, key in (
            ("workers", "workers"), ('scripts_total{result="hit"}', "hits"),
            ('scripts_total{result="miss"}', "misses"), ("refused_total", "refused"))})


# ---- sessions ----


def begin(client, code, *packages, **arguments):
    """A new session, and the outcome of its first cell."""
    session = Session(client)
    return session, session.well(code, dependencies=list(packages), **arguments)


@test(private=True)
def a_session_begins_with_its_imports(ctx):
    """Its first cell says it, and the state is its own."""
    code = "import sys\nfound = 'slow' in sys.modules\nimport slow\n[found, slow.__file__, slow.WHEN]"
    with place(ctx, has="slow") as (service, client):
        cold, first = begin(client, code, "slow")
        until_ready(ctx, service)
        before = time.time()
        session, second = begin(client, code, "slow")
        equal((is_ready(first), is_ready(second)), (False, True))
        equal(second.result["json"][:2], [False, first.result["json"][1]])
        assert first.result["json"][2] < second.result["json"][2] < before, (first, second)
        equal((second.stdout, second.stderr, second.structured["files"]), ("", "", []))
        again = session.well("slow.mark = 2\nslow.mark")
        equal((is_ready(again), again.result["repr"]), (False, "2"))
        until_ready(ctx, service)
        other, third = begin(client, code + " + [hasattr(slow, 'mark')]", "slow")
        equal((is_ready(third), third.result["json"][3]), (True, False))
        equal([one.value("hasattr(slow, 'mark')") for one in (cold, session, other)],
              ["False", "True", "False"])
        counted = ready(ctx, service)
        equal((counted["hits"], counted["misses"], counted["refused"]), (2, 0, 0))


@test(private=True)
def a_session_that_is_undone(ctx):
    """Its state before the first cell, checkpoints and branches have the modules as well."""
    with place(ctx, has="slow other") as (service, client):
        begin(client, "import slow, other", "slow", "other")[0].well(close=True)
        until_ready(ctx, service)
        before = time.time()
        session = Session(client)
        o = session.call("import slow, other, os\nos._exit(1)", dependencies=["slow", "other"])
        equal((is_ready(o), o.state), (True, "rolled_back"), repr(o))
        o = session.well("import sys\nfound = 'slow' in sys.modules\nimport slow\n[found, slow.WHEN]",
                         checkpoint="first")
        assert o.result["json"][0] is False and o.result["json"][1] < before, o
        branch = session.branch("slow.mark = 1\nimport other")
        session.well("slow.mark = 2\nimport os")
        o = session.call("slow.mark = 3\nos.kill(os.getpid(), 9)")
        equal((o.state, session.value("slow.mark"), branch.value("slow.mark")), ("rolled_back", "2", "1"))
        equal(session.well("hasattr(slow, 'mark'), 'other' in sys.modules", restore="first").result["repr"],
              "(False, False)")
        equal(branch.value("other.__file__"), "'/environment/other.py'")


@test(private=True)
def a_session_of_another_kind(ctx):
    code = "import slow, other"
    with place(ctx, has="slow other") as (service, client):
        begin(client, code, "slow", "other")
        until_ready(ctx, service)
        for arguments in {"memory_mb": 256}, {"snapshot": False}:
            assert not is_ready(begin(client, code, "slow", "other", **arguments)[1]), arguments
        assert not is_ready(begin(client, "import slow", "slow", "other")[1])
        assert not is_ready(begin(client, code, "slow", "other", "parcel")[1])
        assert not is_ready(run(client, code, "slow", "other"))
        with ctx.client(path=service.socket, uid=SOMEBODY) as stranger:
            assert not is_ready(begin(stranger, code, "slow", "other")[1])
        session = Session(client)
        until("one is ready for it", lambda: is_ready(session.well(
            code, dependencies=["slow", "other"], **({"reset": True} if session.handle else {}))))


@test(private=True)
def a_session_without_copies(ctx):
    with place(ctx, has="slow") as (service, client):
        begin(client, "import slow", "slow", snapshot=False)
        until_ready(ctx, service)
        session, o = begin(client, "import slow\nx = 1", "slow", snapshot=False)
        equal((is_ready(o), session.value("slow.BORN == __import__('os').getpid(), x")), (True, "(True, 1)"))
        equal(session.call("import os\nos._exit(0)").state, "lost")


@test(private=True)
def a_session_that_gets_more_packages(ctx):
    """A module that no cell has imported finds the packages that the session has then."""
    with place(ctx) as (service, client):
        begin(client, "import slow, option", "slow", "option")
        until_ready(ctx, service)
        session, o = begin(client, "import slow\nif not slow:\n    import option", "slow", "option")
        assert is_ready(o), o
        installed = install(client, "other", session=session.handle)
        equal(installed["status"], "ok", installed)
        equal(session.value("import option\noption.HAS_OTHER"), "True")


@test(private=True)
def a_session_with_what_a_module_must_not_do(ctx):
    code = "import %s\n1"
    with place(ctx, "[pool]\nwarm = 8\n") as (service, client):
        for name, (_, why) in {**{name: BAD[name] for name in BAD_OF_SESSIONS}, **LINES}.items():
            session, first = begin(client, code % name, "bad")
            session.well(close=True)
            if why:
                service.wait_logged('modules=%s text="%s' % (name, why))
            else:
                until_ready(ctx, service)
            session, second = begin(client, code % name, "bad")
            equal((is_ready(first), is_ready(second), second.result["repr"]), (False, not why, "1"))
            session.well(close=True)


@test(private=True)
def a_session_that_waits_in_vain(ctx):
    """Who ends its process while it waits, and who removes its set."""
    with place(ctx, STAY, has="slow") as (service, client):
        for n in range(2):
            session, o = begin(client, "import slow", "slow")
            equal((is_ready(o), session.well(close=True).state), (False, "closed"))
            until_ready(ctx, service)
            if n == 0:
                for pid in scripts(service):
                    os.kill(pid, signal.SIGKILL)
                until("none is ready", lambda: ready(ctx, service)["workers"] == 0)
        equal(ready(ctx, service)["refused"], 0)
        name, = environments(service.store)
        os.utime(os.path.join(service.store, name), (0, 0))
        run(client, "print(1)", "other")
        service.wait_logged("packages-removed environment=%s why=age" % name)
        until("it is ended", lambda: ready(ctx, service)["workers"] == 0)


@test(private=True)
def a_session_pays_no_import(ctx):
    """Processor time of an import is the tenant's, and not the cell's; a session that has used much is as any."""
    with place(ctx) as (service, client):
        begin(client, "import spin", "spin")
        until_ready(ctx, service)
        before = used(ctx, service)
        session, o = begin(client, "import spin", "spin", cpu_seconds=1)
        assert is_ready(o) and o.structured["cpu_ms"] < 200, o
        until("the import is charged", lambda: used(ctx, service) - before >= 0.2)
        o = session.call("while True: pass", cpu_seconds=1)
        equal((o.status, session.value("spin.time.__name__")), ("cpu_limit", "'time'"), repr(o))


if not os.path.exists(NGINX):
    print("SKIPPED all: no nginx here\n0 passed, 0 failed, 1 skipped")
    sys.exit(1 if os.environ.get("CI") == "true" else 0)
with Index() as index:
    for name, text in PACKAGES.items():
        index.add(name, "1.0", text if isinstance(text, dict) else {name + ".py": text})
    main(__doc__)
