#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""No client makes the service wait: closing a stranger's descriptor may take as long as the
stranger likes, and the calls of all others are answered meanwhile. The descriptor is a TCP socket
with SO_LINGER and data that nobody reads. Each test runs twice: against the program that is
shipped, whose sockets refuse descriptors where the kernel can do so, and as on a kernel that cannot
(mcp-pythond-fixtures).
"""

import array
import contextlib
import fcntl
import os
import re
import signal
import socket
import struct
import tempfile
import termios

from harness import FEW_MODULES, SOMEBODY, Skip, equal, main, test
from mcpclient import connect_as
from supervisor import Supervisor
from waits import at_once, until

LINGER_S = 600		# far longer than
ANSWER_S = 30		# ... anybody waits for an answer
MANY = 40
TRIES = 40	# the first waits are excused

# The same from inside of a worker: its control socket has this number.
PASS = """
import array, os, socket, struct
def passes(data, flags=0):
    listens = socket.create_server(("127.0.0.1", 0), backlog=1)
    s = socket.create_connection(listens.getsockname())
    keeps.append(listens.accept()[0])
    s.setblocking(False)
    try:
        while s.send(bytes(65536)): pass
    except BlockingIOError: pass
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, %d))
    try:
        control.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [s.fileno()]))])
    except OSError:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.close()
keeps = []
control = socket.socket(fileno=os.dup(63))
""" % LINGER_S


class Service(Supervisor):
    def __init__(self, ctx, old, config=None, args=()):
        super().__init__(ctx.options.build, config, args,
                         {"MCP_FIXTURES_OLD_KERNEL": "yes"} if old else None)
        if old:
            self.argv[0] += "-fixtures"
            if not os.path.exists(self.argv[0]):
                raise Skip("needs mcp-pythond-fixtures beside mcp-pythond")


    @contextlib.contextmanager
    def stopped(self):
        os.kill(self.pid, signal.SIGSTOP)
        try:
            os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WNOWAIT)
            yield
        finally:
            os.kill(self.pid, signal.SIGCONT)


@contextlib.contextmanager
def service(ctx, old, *args):
    with Service(ctx, old, *args) as s:
        s.wait_ready()
        yield s
        s.stop()
        bad = s.leftovers()
        assert not bad, "; ".join(bad)


class Lingering:
    """Makes sockets that keep the process that closes them last, and passes them to a service."""

    def __init__(self, service):
        self.service, self.kept = service, []

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        for s in self.kept:
            s.close()

    def make(self):
        with socket.create_server(("127.0.0.1", 0), backlog=1) as listens:
            s = socket.create_connection(listens.getsockname())
            self.kept.append(listens.accept()[0])
        s.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while s.send(bytes(65536)):
                pass
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, LINGER_S))
        return s

    def send(self, *connections):
        """Passes one with a byte on each; which were taken."""
        with self.service.stopped():	# so that ours is not the last copy
            return [self.send_one(to) for to in connections]

    def send_one(self, to):
        with self.make() as s:
            try:
                to.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS,
                                     array.array("i", [s.fileno()]))])
                return True
            except OSError as e:		# then it is
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                assert isinstance(e, (PermissionError, BrokenPipeError, ConnectionResetError)), e
                return False


def both(fn):
    """Adds fn(ctx, old) twice."""
    test(lambda ctx: fn(ctx, False), name=fn.__name__, private=True)
    test(lambda ctx: fn(ctx, True), name=fn.__name__ + "_on_an_older_kernel", private=True)


def kernel_refuses():
    a, b = socket.socketpair(socket.AF_UNIX)
    with a, b:
        try:
            a.setsockopt(socket.SOL_SOCKET, 83, 0)
            return True
        except OSError:
            return False


def ended(ctx, s):
    """The service closes its end, however it does so."""
    s.settimeout(ctx.seconds(ANSWER_S))
    with contextlib.suppress(ConnectionResetError, BrokenPipeError):
        while s.recv(65536):
            pass


def is_found(ctx, old, service, taken, who):
    """What was refused has done nothing; whose was taken is found out, and nobody else. False: it
    has to be tried again, for the first waits are excused."""
    equal(taken, old or not kernel_refuses(), "taken")
    found = re.findall(r"peer-(suspected|stalled) who=(\S+)", service.log())
    assert {f[1] for f in found} <= {who}, "%r in\n%s" % (found, service.log()[-3000:])
    return ("stalled", who) in found or not taken


def answered(ctx, honest, *bad):
    """Pings are answered until the service has read all that came on these connections. It may read
    a part in each turn of its loop."""
    def is_read():
        honest.ask("ping", timeout=ctx.seconds(ANSWER_S))
        return not any(struct.unpack("i", fcntl.ioctl(b, termios.TIOCOUTQ, bytes(4)))[0] for b in bad)
    until("the service has read everything", is_read, wait=at_once)
    honest.ask("ping", timeout=ctx.seconds(ANSWER_S))	# and the turn is over in which it read that


def attack(ctx, old, service, who, begin):
    """begin() gives a connection; somebody else's pings are answered although what is passed on
    it takes long to close."""
    with ctx.client(path=service.socket) as honest, Lingering(service) as l:
        for _ in range(TRIES):
            with begin() as bad:
                taken, = l.send(bad)
                answered(ctx, honest, bad)
                if is_found(ctx, old, service, taken, who):
                    if taken:
                        ended(ctx, bad)
                    return
        raise AssertionError("nobody was found out")


# ---- scripts ----

def script(ctx, old, end, bad):
    with service(ctx, old) as s, ctx.client(path=s.socket) as honest, \
            ctx.client(path=s.socket, uid=SOMEBODY if os.getuid() == 0 else None) as other:
        id = other.start_script(PASS + bad + "\nimport time; time.sleep(%d)" % LINGER_S,
                                timeout_seconds=5)

        def is_over():
            honest.ask("ping", timeout=ctx.seconds(ANSWER_S))
            equal(honest.run("print(1)", ctx.seconds(ANSWER_S)).stdout, "1\n")
            other.pump(0)
            return other.answers
        until("the end of the script", is_over, wait=at_once)
        o = other.outcome(id, ctx.seconds(ANSWER_S))
        assert o.status in end, o
        honest.ask("ping", timeout=ctx.seconds(ANSWER_S))


@both
def half_a_frame(ctx, old):
    """It is kept with its descriptors until its rest proves to be no frame."""
    script(ctx, old, ("worker_protocol_error", "timeout"),
           "passes(b'\\x01')\ncontrol.send(b'\\xff' * 6)")


@both
def what_is_never_read(ctx, old):
    """Its time is over before anybody has read it."""
    script(ctx, old, ("worker_protocol_error", "timeout"),
           "for i in range(%d): passes(b'\\x01')" % MANY)


@both
def a_cell(ctx, old):
    with service(ctx, old) as s, ctx.client(path=s.socket) as c, \
            ctx.client(path=s.socket) as honest:
        id = c.request("tools/call", {"name": "run_repl", "arguments": {
            "code": PASS + "passes(b'\\x01')\ncontrol.send(b'\\xff' * 6)\nimport time\n"
            "time.sleep(%d)" % LINGER_S, "timeout_seconds": 5}})
        equal(honest.run("print(1)", ctx.seconds(ANSWER_S)).stdout, "1\n")
        structured = c.wait(id, ctx.seconds(ANSWER_S))["structuredContent"]
        assert structured["status"] in ("worker_protocol_error", "timeout"), structured
        honest.ask("ping", timeout=ctx.seconds(ANSWER_S))


# ---- clients ----

def sent(ctx, place, data, uid=None):
    """A connection with these bytes sent on it."""
    s = connect_as(place, uid, ctx.seconds(ANSWER_S))
    s.sendall(data)
    return s


@both
def a_client(ctx, old):
    """A long line without an end, and then something to close."""
    with service(ctx, old) as s:
        attack(ctx, old, s, "client", lambda: sent(ctx, s.socket, b" " * 150000))


@both
def a_stranger(ctx, old):
    """Any user may connect."""
    if os.getuid():
        raise Skip("needs root")
    with service(ctx, old) as s:
        attack(ctx, old, s, "client", lambda: sent(ctx, s.socket, b"", SOMEBODY))


@both
def many_clients(ctx, old):
    """All of them at once; each costs the others little."""
    with service(ctx, old) as s, ctx.client(path=s.socket) as honest, Lingering(s) as l, \
            contextlib.ExitStack() as open_ones:
        bad = [open_ones.enter_context(connect_as(s.socket, None, ctx.seconds(ANSWER_S)))
               for _ in range(MANY)]
        taken = l.send(*bad)
        answered(ctx, honest, *bad)
        equal(set(taken), {taken[0]})
        assert is_found(ctx, old, s, taken[0], "client"), s.log()


@both
def a_client_that_is_refused(ctx, old):
    """It is refused without being read: its descriptors are closed with its connection."""
    with service(ctx, old, "[service]\nsessions_per_tenant = 1\n") as s:
        s.wait_logged("session-closed")		# of the connection that found it serving
        with ctx.client(path=s.socket) as honest, Lingering(s) as l, \
                connect_as(s.socket, None, ctx.seconds(ANSWER_S)) as bad:
            l.send(bad)
            honest.ask("ping", timeout=ctx.seconds(ANSWER_S))
            ended(ctx, bad)


@both
def a_client_over_http(ctx, old):
    with tempfile.TemporaryDirectory(prefix="mcp-stall-") as d:
        os.chmod(d, 0o755)
        place = os.path.join(d, "http")
        with service(ctx, old, None, ("--http-socket", place)) as s:
            attack(ctx, old, s, "http", lambda: sent(
                ctx, place, b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n"
                b"Content-Length: 200000\r\n\r\n" + b" " * 150000))


@both
def the_operators_socket(ctx, old):
    """A line that is too long ends the connection, with what lies unread in it; one that is not
    is read with what came with it."""
    with tempfile.TemporaryDirectory(prefix="mcp-stall-") as d:
        os.chmod(d, 0o777)
        place = os.path.join(d, "admin")
        with service(ctx, old, "[admin]\nsocket = %s\n" % place) as s, \
                ctx.client(path=s.socket) as honest, Lingering(s) as l:
            with connect_as(place, None, ctx.seconds(ANSWER_S)) as bad:
                bad.sendall(b" " * 150000)
                l.send(bad)
                honest.ask("ping", timeout=ctx.seconds(ANSWER_S))
                ended(ctx, bad)
            attack(ctx, old, s, "admin", lambda: sent(ctx, place, b""))


if __name__ == "__main__":
    main(__doc__, modules=FEW_MODULES)
