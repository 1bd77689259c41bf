# SPDX-License-Identifier: Apache-2.0
"""What every suite shares: a list of tests, a private service or the one given by --socket,
one line per test, and a sum. A suite is a program:

    from harness import test, main
    @test
    def says_hello(ctx): ...
    main(__doc__)

A test gets a Ctx, raises AssertionError (or anything) to fail and Skip to be left out.
"""

import argparse
import atexit
import concurrent.futures
import contextlib
import copy
import os
import re
import resource
import signal
import sys
import tempfile
import threading
import time
import traceback

import waits
from account import Account
from mcpclient import LEGACY, MODERN, Client
from supervisor import Supervisor, adopt_orphans, kill_descendants

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CORPUS = os.path.join(TOP, "tests", "corpus")
# For suites with many services that are about these and not about what a script finds: the imports
# are half of what the start of a service costs.
FEW_MODULES = "json os re signal socket subprocess sys threading time"
SOMEBODY = 65534	# the uid of the second tenant, when we are root


def proto_version():
    """The first byte of every frame between supervisor and worker."""
    with open(os.path.join(TOP, "proto", "message.h"), encoding="utf-8") as f:
        return int(re.search(r"define PROTO_VERSION (\d+)", f.read())[1])


tests = []


class Skip(Exception):
    """Not tested here, and why. missing: something that CI has to install."""

    def __init__(self, why, missing=False):
        super().__init__(why)
        self.missing = missing


class Test:
    def __init__(self, fn, name, private=False, single=False, alone=False, root=False, any_rights=False,
                 any_build=False):
        self.fn, self.name = fn, name
        self.private, self.single, self.alone, self.root = private, single, alone, root
        self.same = {kind for kind, mark in (("rights", any_rights), ("build", any_build)) if mark}
        assert not (root and any_rights), "%s needs root, and has the mark any_rights" % name

    @property
    def beside(self):
        """Other tests of its suite may run meanwhile."""
        return not (self.private or self.single or self.alone)


def test(fn=None, *, name=None, **marks):
    """private: starts and ends services of its own, so it makes no sense with --socket;
    single: has the service of its suite to itself; root: needs root;
    alone: needs a quiet machine. Others run beside tests of other suites;
    any_rights, any_build: what it proves is the same whatever rights the service has, or with the
    build of gcc and that with sanitizers. Where the gate runs its suite once more for these, it
    leaves the test out (--same, tests/README.md)."""
    def add(fn):
        tests.append(Test(fn, name or fn.__name__, **marks))
        return fn
    return add(fn) if fn else add


def equal(got, want, what=""):
    assert got == want, "%s%s%.1500r, not %.1500r" % (what, " is " if what else "", got, want)


class Ctx:
    def __init__(self, options, service):
        self.options, self.service = options, service
        self.socket = service.socket if service else options.socket
        self.pid = service.pid if service else options.pid
        self.slow = options.slow

    @property
    def fallback(self):
        """Memory and processes are kept by rlimits and sampling, not by the kernel's groups."""
        return self.options.fallback or (
            self.service is not None
            and "memory and processes are measured from time to time" in self.service.log())

    def count(self, whole):
        """How often a test does what it does many times: --count, or its part of the whole."""
        return self.options.count or max(1, round(whole * self.options.effort))

    def seconds(self, s):
        """A bound for a wait, stretched on a slow machine."""
        return s * self.slow

    def client(self, revision=None, uid=None, timeout=None, path=None):
        return Client.connect(path or self.socket, revision or self.options.revision, uid,
                              self.seconds(timeout or 60))

    def raw(self, timeout=None):
        client = Client.connect(self.socket, LEGACY[-1], timeout=self.seconds(timeout or 60))
        client.revision = None
        return client

    @contextlib.contextmanager
    def private(self, config=None, args=(), env=None, socket_path=None, wrap=()):
        """A service of the test's own; afterwards nothing of it may be left."""
        s = Supervisor(self.options.build, config, args, env, socket_path, wrap)
        with s:
            s.wait_ready()
            yield s
            s.stop()
            bad = s.leftovers()
            assert not bad, "; ".join(bad)

    def healthy(self, *clients):
        """A plain script still works, for these clients and for a new one."""
        with self.client() as fresh:
            for client in (*clients, fresh):
                o = client.run("print(6 * 7)", self.seconds(60))
                assert (o.status, o.stdout) == ("ok", "42\n"), "afterwards: %r" % o


def parse_options(doc):
    p = argparse.ArgumentParser(description=doc.strip().split("\n\n")[0],
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--socket", help="test the service there, instead of a private one")
    p.add_argument("--pid", type=int, help="its process, with --socket")
    p.add_argument("--fallback", action="store_true",
                   help="with --socket: that service has no memory and pids controllers")
    p.add_argument("--build", default=os.environ.get("MCP_BUILD") or os.path.join(TOP, "build"),
                   help="where mcp-pythond is (MCP_BUILD; build/)")
    p.add_argument("-k", metavar="REGEX", default="", help="only tests whose name matches")
    p.add_argument("-j", "--jobs", type=int, default=2, help="tests at once (2)")
    p.add_argument("--alone", choices=("leave", "only"),
                   help="leave out the tests that need a quiet machine, or run only those")
    p.add_argument("--same", metavar="rights|build", choices=("rights", "build"), help="leave out the "
                   "tests that prove the same with other rights, or in another build")
    p.add_argument("--slow", type=float, default=float(os.environ.get("MCP_TEST_SLOW") or 1),
                   help="factor on all time bounds (MCP_TEST_SLOW; 1)")
    p.add_argument("--count", type=int, help="size of tests that have one")
    p.add_argument("--minutes", type=float, help="how long tests last that go on for a while")
    p.add_argument("--effort", type=float, default=float(os.environ.get("MCP_TEST_EFFORT") or 1),
                   help="without --count: the part of their whole size (MCP_TEST_EFFORT; 1)")
    p.add_argument("--revision", default=LEGACY[-1], choices=LEGACY + (MODERN,))
    p.add_argument("--list", action="store_true", help="print the names of the tests")
    p.add_argument("-v", "--verbose", action="store_true")
    p.add_argument("--costs", action="store_true", help="one test at a time, and the processor time "
                   "of each with all that it makes the service do (needs cgroup v1's cpuacct)")
    o = p.parse_args()
    if o.costs:
        o.jobs = 1
    return o


class LeftOut(str):
    """What a test returns that has left rows out, because something is missing: it is always shown."""


def rows_done(done, rows, missing):
    """What a test returns that has done so many of its rows."""
    text = "%d of %d" % (done, len(rows))
    return LeftOut("%s, without %s" % (text, ", ".join(sorted(missing)))) if missing else text


class Report:
    def __init__(self, verbose, account=None):
        """account: what has been used so far is printed with each test, for the time since the last."""
        self.counts = {"passed": 0, "failed": 0, "skipped": 0}
        self.lock = threading.Lock()
        self.verbose, self.account, self.used = verbose, account, 0.0

    def cost(self):
        """Of what has ended since the last one."""
        if not self.account:
            return ""
        before, self.used = self.used, self.account.so_far()
        return ", %.2f s of processor" % (self.used - before)

    def say(self, kind, name, seconds, text="", notes=()):
        word = {"passed": "ok", "failed": "FAILED", "skipped": "SKIPPED"}[kind]
        with self.lock:
            self.counts[kind] += 1
            print("%-7s %s  (%.2f s%s)%s" % (
                word, name, seconds, self.cost(), ": " + text.split("\n")[0]
                if kind == "skipped" or type(text) is LeftOut else ""))
            if kind == "failed":
                lines = text.split("\n")
                if len(lines) > 40:
                    lines[10:-30] = ["..."]
                for note in notes:
                    lines += note.split("\n")
                print("".join("        | %s\n" % line for line in lines), end="")
            elif self.verbose and text and type(text) is not LeftOut:
                print("        %s" % text)
            sys.stdout.flush()

    def run(self, one, ctx):
        started = time.monotonic()
        kind, text, notes = "passed", "", ()
        try:
            if one.private and ctx.options.socket:
                raise Skip("needs a service of its own, not --socket")
            if one.root and os.getuid():
                raise Skip("needs root")
            text = one.fn(copy.copy(ctx)) or ""
        except Skip as e:
            kind, text = "skipped", str(e)
            if e.missing and os.environ.get("CI") == "true":
                kind, text = "failed", "missing, and CI=true: " + text
        except AssertionError as e:
            notes = getattr(e, "__notes__", ())
            frames = traceback.extract_tb(e.__traceback__)
            place = next((f for f in reversed(frames) if f.name != "equal"), frames[-1])
            kind, text = "failed", "%s:%d: %s%s" % (
                os.path.basename(place.filename), place.lineno,
                "" if type(e) is AssertionError else type(e).__name__ + ": ",
                e or place.line)
        except Exception as e:
            notes = e.__dict__.pop("__notes__", ())
            kind, text = "failed", traceback.format_exc(limit=-3).rstrip()
        self.say(kind, one.name, time.monotonic() - started, text, notes)

    def end(self, left=0):
        """left: tests that are to be run on a quiet machine."""
        print("%(passed)d passed, %(failed)d failed, %(skipped)d skipped" % self.counts +
              (", %d left" % left if left else ""))
        return 1 if self.counts["failed"] else 0


def run_chosen(chosen, report, ctx):
    with concurrent.futures.ThreadPoolExecutor(max(1, ctx.options.jobs)) as pool:
        list(pool.map(lambda t: report.run(t, ctx), [t for t in chosen if t.beside]))
    for one in sorted((t for t in chosen if not t.beside), key=lambda t: t.alone):
        report.run(one, ctx)


def check_end(report, service):
    """The service ends when told to and leaves nothing: a test of its own in every suite."""
    def nothing_left(ctx):
        status = service.stop()
        assert status == 0, "mcp-pythond ended with %s:\n%s" % (status, service.log()[-3000:])
        bad = service.leftovers()
        assert not bad, "; ".join(bad)
    report.run(Test(nothing_left, "nothing_left_behind"),
               Ctx(argparse.Namespace(socket=None, pid=None, slow=1.0, fallback=False), None))


def raise_fd_limit():
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65536), hard))


def end_everything(number, frame):
    """On a signal: no process that a test has started outlives the suite."""
    sys.stdout = open(os.devnull, "w")	# what other threads' tests say of that
    kill_descendants()
    os._exit(128 + number)


def choose(options):
    """The tests to run, and how many of those that match are left for a quiet machine."""
    wanted = re.compile(options.k)
    matching = [t for t in tests if wanted.search(t.name) and options.same not in t.same]
    chosen = [t for t in matching if options.alone is None or t.alone == (options.alone == "only")]
    return chosen, len(matching) - len(chosen) if options.alone == "leave" else 0


def use_own_state():
    """What services for one client keep is not in the state of the user who runs the tests."""
    place = tempfile.TemporaryDirectory(prefix="mcp-state-", ignore_cleanup_errors=True)
    os.chmod(place.name, 0o755)
    os.environ["XDG_STATE_HOME"] = place.name
    atexit.register(place.cleanup)


def open_account():
    """Of this program and all that it starts."""
    account = Account()
    if account.so_far() is None:
        sys.exit("--costs: this needs the controller cpuacct of cgroup v1, and the right to make a group")
    account.enter()
    atexit.register(account.leave)
    return account


def main(doc, config=None, modules=None):
    """Runs the tests of this program; config: an INI text for the private service; modules: of all
    services, as Supervisor has them."""
    options = parse_options(doc or "")
    waits.bound *= options.slow
    Supervisor.modules = modules
    chosen, left = choose(options)
    if options.list:
        print("\n".join(t.name for t in chosen))
        sys.exit(0)
    raise_fd_limit()
    use_own_state()
    report = Report(options.verbose, open_account() if options.costs else None)
    if not options.socket:
        adopt_orphans()
        signal.signal(signal.SIGTERM, end_everything)
    if options.socket or all(t.private for t in chosen):
        run_chosen(chosen, report, Ctx(options, None))
        sys.exit(report.end(left))
    service = Supervisor(options.build, config)
    try:
        service.start()
        service.wait_ready()	# what its log says of it is there
        run_chosen(chosen, report, Ctx(options, service))
        check_end(report, service)
        if report.counts["failed"]:
            print("log of the service, its end:\n" + "".join(
                "        | %s\n" % line for line in service.log().split("\n")[-30:]), end="")
    except Exception as e:
        report.say("failed", "start", 0, "%s: %s" % (type(e).__name__, e))
    finally:
        with contextlib.suppress(Exception):
            service.stop()
        service.remove()
    sys.exit(report.end(left))
