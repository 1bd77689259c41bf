# SPDX-License-Identifier: Apache-2.0
"""Starts a private mcp-pythond on a socket in a temporary directory, watches it, ends it, and
looks for what it left behind. Waits for events (inotify, pidfd), never for a time to pass."""

import contextlib
import ctypes
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading

import waits
from interpreter import under_test
from waits import Timeout, libc, until

PR_SET_CHILD_SUBREAPER = 36


# The processes of a service that are forked from it: host/helper.h.
HELPERS = ("mcp-forker", "mcp-launcher", "mcp-directory", "mcp-files", "mcp-usage")


def adopt_orphans():
    """Whatever loses its parent below us becomes our child, so that nothing can hide."""
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "PR_SET_CHILD_SUBREAPER")


class Popen(subprocess.Popen):
    """Everything that the test program starts is one, also by subprocess.run: so its own
    children are told from those that came to it, by whichever thread they were started."""

    making = threading.Lock()
    unended = set()	# those that nobody has waited for

    def __init__(self, *args, **more):
        with self.making:
            super().__init__(*args, **more)
            self.unended.add(self)


subprocess.Popen = Popen


def read_text(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read()
    except OSError:
        return None


def process_table():
    """pid -> (parent, state, start time) of every process. Each service of a test asks several times, so
    it is read without Python's files."""
    table = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        with contextlib.suppress(OSError):	# it has ended
            fd = os.open("/proc/%s/stat" % name, os.O_RDONLY | os.O_CLOEXEC)
            try:
                fields = os.read(fd, 4096).rpartition(b")")[2].split(None, 20)
            finally:
                os.close(fd)
            table[int(name)] = (int(fields[1]), fields[0].decode(), int(fields[19]))
    return table


ENDED = "ZX"	# states of processes: to be reaped, and being reaped


def comm(pid):
    return (read_text("/proc/%d/comm" % pid) or "").strip()


def descendants(pid):
    """(pid, start time) of everything below pid, without it and what has ended."""
    table = process_table()
    below, found = {pid}, []
    grew = True
    while grew:
        grew = False
        for child, (parent, state, start) in table.items():
            if parent in below and child not in below:
                below.add(child)
                grew = True
                if state not in ENDED:
                    found.append((child, start))
    return sorted(found)


def kill_descendants():
    """Until there are none: what is killed may have left children that have become our own."""
    while below := descendants(os.getpid()):
        for pid, _ in below:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def is_alive(pid, start):
    text = read_text("/proc/%d/stat" % pid)
    if text is None:
        return False
    fields = text.rpartition(")")[2].split()
    return fields[0] not in ENDED and int(fields[19]) == start


def wait_gone(processes, timeout):
    """Waits for the ends of (pid, start) pairs; returns those that are still there."""
    def left():
        return [(pid, start) for pid, start in processes if is_alive(pid, start)]
    with contextlib.suppress(Timeout):
        until("the end of processes", lambda: not left(), timeout,
              lambda seconds: waits.one_ended([pid for pid, _ in left()], seconds))
    return left()


def children(pid):
    return {child for child, (parent, _, _) in process_table().items() if parent == pid}


def strays(known):
    """pids of our children that are not known, and that we have not started."""
    with Popen.making:
        Popen.unended -= {p for p in Popen.unended if p.returncode is not None}
        return children(os.getpid()) - known - {p.pid for p in Popen.unended}


def reap(pids):
    """Collects those of pids that came to us and have ended."""
    for pid in pids:
        try:
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG)
        except ChildProcessError:
            pass


def kill_orphans():
    """Ends what has lost its parent and become our child; says what that was."""
    ours, table = strays(set()), process_table()
    found = [(pid, table[pid][2]) for pid in ours if pid in table and table[pid][1] not in ENDED]
    said = [describe(pid) for pid, _ in found]
    for pid, start in found:
        for each in (pid, *(p for p, _ in descendants(pid))):
            with contextlib.suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
    wait_gone(found, 10)
    reap(strays(set()))
    return said


def describe(pid):
    return "%d (%s, %s)" % (pid, (read_text("/proc/%d/comm" % pid) or "?").strip(),
                            (read_text("/proc/%d/cmdline" % pid) or "").replace("\0", " "))


def cgroup2_mount():
    for line in (read_text("/proc/self/mounts") or "").splitlines():
        fields = line.split()
        if fields[2] == "cgroup2":
            return fields[1]
    return None


def cgroup_of(pid):
    """The directory of a process in the cgroup v2 tree, or None."""
    mount = cgroup2_mount()
    for line in (read_text("/proc/%d/cgroup" % pid) or "").splitlines():
        if line.startswith("0::") and mount:
            return mount + line[3:]
    return None


class NotStarted(Exception):
    pass


class Supervisor:
    """with Supervisor(build) as s: s.socket is served."""

    pass_fds = ()	# what the process gets beside its standard descriptors
    modules = None	# what a zygote imports, where a configuration has no profiles; None: the usual

    def __init__(self, build, config=None, args=(), env=None, socket_path=None, wrap=()):
        """wrap: a command that becomes the one behind it."""
        self.build = os.path.abspath(build)
        self.dir = tempfile.mkdtemp(prefix="mcp-test-", dir=os.environ.get("XDG_RUNTIME_DIR")
                                    if os.getuid() else None)
        if os.getuid() == 0:
            os.chmod(self.dir, 0o711)	# other users' clients have to come through
        self.socket = socket_path or os.path.join(self.dir, "mcp.sock")
        self.log_path = os.path.join(self.dir, "log")
        argv = [os.path.join(self.build, "mcp-pythond"), "--socket", self.socket]
        under_test.configure(self.dir)
        # Answers are held to the schemas of their tools; and tests invent users.
        more = "[mcp]\noutput_schemas = yes\n"
        if os.getuid() == 0 and "unknown_uids" not in (config or ""):
            more += "[service]\nunknown_uids = allow\n"
        if self.modules and "[profile" not in (config or ""):
            more += "[profile basic]\nmodules = %s\n" % self.modules
        os.makedirs(self.dir + "/conf.d", exist_ok=True)
        with open(self.dir + "/conf.d/tests.conf", "w", encoding="utf-8") as f:
            f.write(more)
        path = os.path.join(self.dir, "test.conf")
        with open(path, "w", encoding="utf-8") as f:
            f.write(config or "")
        argv += ["--config", path]
        self.argv = list(wrap) + argv + list(args)
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(
            ("NOTIFY_SOCKET", "LISTEN_"))}
        self.env.setdefault("ASAN_OPTIONS", "detect_leaks=0")
        self.env.update(env or {})
        self.process = None
        self.known_base = None

    def __enter__(self):
        try:
            return self.start()
        except BaseException as e:
            self.__exit__(type(e), e, None)
            raise

    def __exit__(self, kind, error, trace):
        status = self.process.poll() if self.process else None
        try:
            self.stop()
        except AssertionError as e:
            if error is None:
                raise
            error.add_note(str(e))	# what went wrong first is what is told
        finally:
            self.explain(error, status)
            self.remove()

    def explain(self, error, status=None):
        """Adds what the service has said to an error, when there is one."""
        if error is not None:
            error.add_note("log of the service%s, its end:\n%s" % (
                "" if status is None else ", which had ended with %d" % status,
                "\n".join(self.log().splitlines()[-60:])))

    def start(self, timeout=60.0):
        self.strangers = children(os.getpid())
        with waits.changes(os.path.dirname(self.socket)) as change:
            with open(self.log_path, "ab") as log:
                self.process = subprocess.Popen(self.argv, stdin=subprocess.DEVNULL,
                                                stdout=log, stderr=log, env=self.env,
                                                pass_fds=self.pass_fds)
            self.while_it_runs("it did not start", self.answers, timeout, change)
        if os.getuid() == 0:
            try:
                os.chmod(self.socket, 0o666)
            except FileNotFoundError:	# it listened for a moment
                self.process.wait(timeout)
                raise NotStarted("mcp-pythond (%s):\n%s" % (self.process.poll(), self.log()[-6000:])) from None
        return self

    def while_it_runs(self, what, condition, timeout, change):
        """Until condition() is true, and its value. change: the wait for the next event; the end of the service is
        one, too. NotStarted: it has ended, or time is over."""
        pidfd = os.pidfd_open(self.pid)

        def wait(left):
            change(left, pidfd)
            if self.process.poll() is not None and not condition():
                raise Timeout()
        try:
            return until(what, condition, timeout, wait)
        except Timeout:
            raise NotStarted("mcp-pythond (%s): %s:\n%s" % (
                self.process.poll(), what, self.log()[-6000:])) from None
        finally:
            os.close(pidfd)

    def wait_ready(self):
        """Until it takes clients, and signals: before that one would end it where it stands."""
        self.wait_logged("ready version=")

    def reload(self, config=None, ends="reloaded "):
        """Puts another configuration in force; None: the same one, and the files that it names are
        read again. ends: what the service logs then; "reload-failed ": it goes on with the last."""
        seen = self.log().count(ends)
        self.hang_up(config)
        self.wait_logged(ends, times=seen + 1)

    def hang_up(self, config=None):
        """Begins to reload."""
        if config is not None:
            with open(os.path.join(self.dir, "test.conf"), "w", encoding="utf-8") as f:
                f.write(config)
        os.kill(self.pid, signal.SIGHUP)

    def wait_logged(self, text, timeout=60.0, times=1):
        """Until it has logged the text so often."""
        self.wait_log("it has not logged %r" % text, lambda log: log.count(text) >= times, timeout)

    def wait_log(self, what, condition, timeout=60.0):
        """The first value of condition(log) that is true."""
        with waits.changes(self.log_path) as change:
            return self.while_it_runs(what, lambda: condition(self.log()), timeout, change)

    def answers(self):
        """A client can connect; it then waits for its first answer as long as that takes."""
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
                s.connect(self.socket)
            return True
        except (FileNotFoundError, ConnectionRefusedError):
            return False

    @property
    def pid(self):
        return self.process.pid

    def log(self):
        return read_text(self.log_path) or ""

    def stop(self, sig=signal.SIGTERM, timeout=20.0):
        """Ends it and what it started; AssertionError when something is left."""
        if self.process is None:
            return None
        below, _ = descendants(self.pid), self.base	# looked up while it is there
        running = self.process.poll() is None
        if running:
            self.process.send_signal(sig)
        try:
            status = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError("mcp-pythond did not end within %g s of %s:\n%s" % (
                timeout, sig, self.log()[-4000:])) from None
        finally:
            left = wait_gone(below, timeout)
            orphans = strays(self.strangers)
            # A worker that was just being made notices by itself.
            left += wait_gone([(pid, start) for pid, start in descendants(os.getpid())
                               if pid in orphans and (pid, start) not in left], timeout)
            for pid, _ in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except OSError:
                    pass
            reap(orphans)
            self.process = None
        assert not left, "left running: " + ", ".join(describe(p) for p, _ in left)
        # A signal that comes before the service handles it ends it, too.
        assert not running or status >= 0 or status == -sig, "it ended by signal %d when %s " \
            "asked it to stop:\n%s" % (-status, sig, self.log()[-4000:])
        return status

    def remove(self):
        if self.base is not None:
            self.remove_base()
        shutil.rmtree(self.dir, ignore_errors=True)

    # ---- what it holds ----

    @property
    def base(self):
        """The cgroup directory that it made its own, or None when it has none (yet)."""
        own = cgroup_of(self.pid) if self.process else None
        if own and os.path.basename(own) == "supervisor":
            self.known_base = os.path.dirname(own)
        return self.known_base

    def cgroups(self):
        """Directories below its cgroup."""
        if self.base is None:
            return []
        return [d for d, _, _ in os.walk(self.base) if d != self.base]

    def remove_base(self):
        for d, _, _ in os.walk(self.base, topdown=False):
            try:
                os.rmdir(d)
            except OSError:
                pass

    def fds(self):
        """Open descriptors of the supervisor, or None when they may not be seen."""
        try:
            return len(os.listdir("/proc/%d/fd" % self.pid))
        except PermissionError:
            return None

    def rss_bytes(self):
        m = re.search(r"VmRSS:\s*(\d+) kB", read_text("/proc/%d/status" % self.pid) or "")
        return int(m[1]) * 1024 if m else 0

    def below(self):
        return [pid for pid, _ in descendants(self.pid)]

    def worker_processes(self):
        """Processes in a pid namespace of their own: the zygotes are not among them."""
        return [pid for pid in self.below() if len((re.search(
            r"NSpid:(.*)", read_text("/proc/%d/status" % pid) or "NSpid:")[1]).split()) > 1]

    def worker_leaves(self):
        """Their cgroups. A worker that was asked for has one before it has a process, and
        one that has ended until it was reaped."""
        return [d for d in self.cgroups()
                if os.path.basename(os.path.dirname(os.path.dirname(d))) == "tenants"]

    def wait_idle(self, timeout):
        """Until the idle workers have been given up and only the zygotes are left."""
        def wait(left):
            """The next end of one of them; a cgroup's end tells nobody."""
            pids = self.worker_processes()
            if pids:
                waits.one_ended(pids, min(left, 1))
            else:
                waits.pause(left)
        waits.until_equal("idle workers stay: processes and cgroups",
                          lambda: self.worker_processes() + self.worker_leaves(), [], timeout, wait)

    def leftovers(self):
        """After its end: complaints about what is still there."""
        bad = []
        if self.base is not None:
            # A service that root started by hand may not remove its own directory as the
            # unprivileged user that it became; below it nothing of a tenant may be left.
            left = [d for d in self.cgroups() if os.path.basename(d) != "supervisor"]
            if os.path.isdir(os.path.join(self.base, "tenants")) and left:
                bad.append("cgroups: " + " ".join(left))
            self.remove_base()
        if os.path.exists(self.socket) and os.getuid():
            bad.append("its socket")
        log = self.log()
        for sign in ("AddressSanitizer", "runtime error:", "Assertion", "assertion"):
            if sign in log:
                bad.append("in its log: " + sign + "\n" + log[-6000:])
        return bad
