#!/usr/bin/python3
"""A service that is stopped and started again keeps the sessions of run_repl by way of systemd's
store of descriptors. Here the test plays systemd: it receives what is stored, and starts the next
process with it. The service has no cgroups, for by hand those are of one process."""

import array
import contextlib
import ctypes
import os
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from harness import SOMEBODY, Skip, equal, main, test
from mcpclient import LEGACY, Client
from repl import Session, refused
from supervisor import (Supervisor, cgroup2_mount, cgroup_of, children, descendants, is_alive,
                        process_table, read_text, reap, wait_gone)

# Becomes the service: with the descriptors from 3 on, and where nobody sees cgroups.
LAUNCHER = r"""
import ctypes, os, sys
fds, names, mount, argv = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]
fds = [int(fd) for fd in fds.split()]
libc = ctypes.CDLL(None, use_errno=True)
if mount:
    for r in (libc.unshare(0x20000), libc.mount(None, b"/", None, 0x44000, None),
              libc.umount2(mount.encode(), 2)):
        if r:
            sys.exit("no mount namespace: " + os.strerror(ctypes.get_errno()))
import fcntl
high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 3 + 2 * len(fds)) for fd in fds]
for i, fd in enumerate(high):
    os.dup2(fd, 3 + i, inheritable=True)
os.closerange(3 + len(fds), 1024)
if fds:
    os.environ.update(LISTEN_FDS=str(len(fds)), LISTEN_FDNAMES=names, LISTEN_PID=str(os.getpid()))
os.execv(argv[0], argv)
"""


class Manager:
    """What systemd does for a service: sd_notify(3) and the store."""

    def __init__(self, directory):
        self.path = os.path.join(directory, "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self.socket.bind(self.path)
        os.chmod(self.path, 0o666)
        self.stored = []	# (name, fd), the newest first, as systemd has them
        self.lock = threading.Lock()
        self.wake, self.waker = os.pipe()
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self):
        while True:
            ready = select.select([self.socket, self.wake], [], [])[0]
            if self.wake in ready:
                return
            data, fds, _, _ = socket.recv_fds(self.socket, 65536, 16)
            said = dict(line.split("=", 1) for line in data.decode().split("\n") if "=" in line)
            name = said.get("FDNAME", "stored")
            with self.lock:
                if "FDSTORE" in said:
                    assert said.get("FDPOLL") == "0" and len(fds) == 1, said
                    self.stored.insert(0, (name, fds.pop()))
                if "FDSTOREREMOVE" in said:
                    for entry in [e for e in self.stored if e[0] == name]:
                        self.stored.remove(entry)
                        os.close(entry[1])
            for fd in fds:	# a barrier
                os.close(fd)

    def drop(self):
        with self.lock:
            for _, fd in self.stored:
                os.close(fd)
            self.stored = []

    def close(self):
        os.write(self.waker, b"x")
        self.thread.join()
        self.drop()
        self.socket.close()
        os.close(self.wake)
        os.close(self.waker)


class Unit:
    """A service that is restarted."""

    def __init__(self, ctx, config="", store=True):
        self.ctx, self.config, self.store = ctx, config, store
        self.directory = tempfile.mkdtemp(prefix="mcp-handover-")
        os.chmod(self.directory, 0o755)
        self.manager = Manager(self.directory)
        self.before = children(os.getpid())
        self.service = None
        self.mount = (cgroup2_mount() or "") if os.getuid() == 0 else ""

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.__exit__()
            raise

    def start(self, config=None, stored=None):
        env = {"NOTIFY_SOCKET": self.manager.path}
        if self.store:
            env["FDSTORE"] = "512"
        with self.manager.lock:
            stored = self.manager.stored if stored is None else stored
            names = ":".join(name for name, _ in stored)
            fds = [fd for _, fd in stored]
            s = Supervisor(self.ctx.options.build, self.config if config is None else config,
                           env=env, socket_path=os.path.join(self.directory, "mcp.sock"))
            s.argv = [sys.executable, "-c", LAUNCHER, " ".join(map(str, fds)), names, self.mount,
                      *s.argv]
            s.pass_fds = fds
            self.service = s
            s.start()
        deadline = time.monotonic() + self.ctx.seconds(60)
        with self.client() as c:	# whoever is answered finds it started
            o = c.run("1", self.ctx.seconds(60))
            equal(o.status, "ok")
        if os.path.basename(cgroup_of(s.pid) or "") == "supervisor":
            raise Skip("this user has cgroups of their own")
        del deadline
        return self

    def stop(self, sig=signal.SIGTERM):
        """The processes that were below it."""
        s = self.service
        below = descendants(s.pid)
        s.process.send_signal(sig)
        status = s.process.wait(self.ctx.seconds(20))
        Supervisor.running.discard(s.pid)
        log = s.log()
        s.process = None
        s.remove()
        self.service = None
        for sign in ("AddressSanitizer", "runtime error:", "Assertion", "assertion"):
            assert sign not in log, log[-6000:]
        equal(status, 0 if sig == signal.SIGTERM else -sig, log[-2000:])
        self.log = log
        return below

    def restart(self, **how):
        self.stop()
        return self.start(**how)

    def all_gone(self, processes, what):
        left = wait_gone(processes, self.ctx.seconds(20))
        assert not left, "%s: %s" % (what, [read_text("/proc/%d/comm" % p) for p, _ in left])

    def client(self, uid=None):
        return Client.connect(os.path.join(self.directory, "mcp.sock"), LEGACY[-1], uid,
                              self.ctx.seconds(60))

    @contextlib.contextmanager
    def session(self, handle, uid=None):
        with self.client(uid) as c:
            yield Session(c, handle)

    def begin(self, code, uid=None, **arguments):
        with self.client(uid) as c:
            s = Session(c)
            s.well(code, **arguments)
            return s.handle

    def __exit__(self, *exc):
        left = []
        if self.service and self.service.process:
            left = descendants(self.service.pid)
            self.service.process.kill()
            self.service.process.wait()
            Supervisor.running.discard(self.service.pid)
            self.service.remove()
        self.manager.close()
        orphans = children(os.getpid()) - self.before - Supervisor.running
        left += [(pid, start) for pid, start in descendants(os.getpid()) if pid in orphans]
        left = wait_gone(left, self.ctx.seconds(20))
        reap(orphans)
        subprocess.run(["rm", "-rf", self.directory], check=True)
        assert not left, "left running: %s" % [read_text("/proc/%d/comm" % p) for p, _ in left]


@test(private=True)
def a_session_survives_restarts(ctx):
    with Unit(ctx) as unit:
        handle = unit.begin("x = 20\nopen('kept.txt', 'w').write('a file')")
        with unit.session(handle) as s:
            s.well("x = 21", checkpoint="twenty-one")
            s.well("x = 22")
        for i in range(3):
            unit.restart()
            with unit.session(handle) as s:
                equal(s.value("x"), str(22 + i))
                equal(s.value("open('kept.txt').read()"), "'a file'")
                s.well("x += 1")
        with unit.session(handle) as s:
            s.well(restore="twenty-one")
            equal(s.value("x"), "21")
            s.well(close=True)


if __name__ == "__main__":
    sys.exit(main(__doc__))
