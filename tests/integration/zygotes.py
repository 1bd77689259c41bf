#!/usr/bin/python3
"""Zygotes are renewed beside the old ones: what workers of one have in common does not last, and
no call waits for a new one. When a zygote is ready is in the test's hands: it imports a module
that reads from a FIFO, and the test has the other end."""

import contextlib
import errno
import os
import select
import shutil
import signal
import tempfile
import time

from harness import Skip, equal, main, test
from supervisor import Supervisor, comm, descendants, wait_gone

SITE = "/usr/local/lib/python3.11/dist-packages"

# The secret of hashes, the bytes that the stack's canary is made of, where stack and libc lie.
SECRETS = """import ctypes, re
libc = ctypes.CDLL(None)
libc.getauxval.restype = ctypes.c_void_p
maps = open('/proc/self/maps').read()
where = [re.search(r'(?m)^([0-9a-f]+)-.*' + name + '$', maps)[1]
         for name in (r'\\[stack\\]', r'libc[.]so[.]6')]
print(hash('x'), ctypes.string_at(libc.getauxval(25), 16).hex(), *where)
"""


class Gate:
    """Where each zygote stands in its start until it is let through."""

    def __init__(self, ctx):
        if os.getuid() or not os.path.isdir(SITE):
            raise Skip("needs root and " + SITE)
        self.ctx = ctx
        self.dir = tempfile.mkdtemp(prefix="mcp-gate-")
        os.chmod(self.dir, 0o755)
        self.fifo = self.dir + "/fifo"
        os.mkfifo(self.fifo)
        with open(self.dir + "/gate.py", "w", encoding="ascii") as f:
            f.write("import os\nwith open(os.path.dirname(__file__) + '/fifo') as f:\n    f.read()\n")

    def wait(self):
        """Until a zygote stands there; os.close() of what is returned lets it through."""
        deadline = time.monotonic() + self.ctx.seconds(60)
        while True:
            try:
                return os.open(self.fifo, os.O_WRONLY | os.O_NONBLOCK)
            except OSError as e:
                if e.errno != errno.ENXIO:
                    raise
            assert time.monotonic() < deadline, "no zygote is started"
            select.select([], [], [], 0.02)		# a FIFO gives no event of a reader

    def let_one_through(self):
        os.close(self.wait())


@contextlib.contextmanager
def gated(ctx, pool="zygote_seconds = 1", profile=""):
    """A service, and the gate of its zygotes; the first one has been let through."""
    gate = Gate(ctx)
    service = Supervisor(ctx.options.build, "[pool]\nwarm = 2\n%s\n[profile basic]\n"
                         "modules = gate\n%s\n" % (pool, profile))
    service.argv[:0] = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" %s && exec "$@"' % SITE,
                        gate.dir]
    try:
        with service:
            yield service, gate
            service.stop()
            equal(service.leftovers(), [], "left")
    finally:
        shutil.rmtree(gate.dir)


def zygotes(service):
    return [(pid, start) for pid, start in descendants(service.pid)
            if comm(pid) == "python-zygote" or comm(pid) == "mcp-python-work"]


def secrets(client):
    o = client.run(SECRETS)
    equal(o.status, "ok", "status of %r" % o)
    hashed, random, stack, libc = o.stdout.split()
    return hashed, random, stack, libc


def cell(client, **arguments):
    return client.ask("tools/call", {"name": "run_repl", "arguments": arguments})["structuredContent"]


def until_all_are(ctx, client, wanted):
    """Calls until a row of them, more than are kept warm, has what wanted(secrets) says."""
    deadline, row = time.monotonic() + ctx.seconds(60), 0
    while row < 8:
        assert time.monotonic() < deadline, "some workers are as before"
        row = row + 1 if wanted(secrets(client)) else 0


@test(private=True)
def a_renewed_zygote_has_other_secrets_and_nobody_waits(ctx):
    with gated(ctx) as (service, gate):
        gate.let_one_through()
        service.wait_ready()
        with ctx.client(path=service.socket) as client:
            before = secrets(client)
            session = cell(client, code="kept = hash('x')")["session"]
            old = zygotes(service)
            equal(len(old), 1, "zygotes")
            held = gate.wait()
            # The new one is there and cannot get ready; more calls than there are warm workers.
            equal(len(zygotes(service)), 2, "zygotes")
            for _ in range(12):
                equal(secrets(client), before, "secrets while the new zygote starts")
            running = client.start_script("import time\ntime.sleep(1)\nprint(hash('x'))")
            os.close(held)
            until_all_are(ctx, client, lambda now: now != before)
            after = secrets(client)
            for name, a, b in zip(("hash", "canary", "stack", "libc"), before, after):
                assert a != b, "the same %s: %s" % (name, a)
            equal(wait_gone(old, ctx.seconds(30)), [], "the old zygote")
            o = client.outcome(running)
            equal((o.status, o.stdout.strip()), ("ok", before[0]), "what ran meanwhile: %r" % o)
            # A session stays what it was.
            said = cell(client, session=session, code="print(kept, hash('x'))")
            equal(said["stdout"].split(), [before[0], before[0]], "a session")
            assert "zygote-renewed profile=basic" in service.log(), service.log()


def waiting_workers_are_replaced(ctx, pool):
    """Without a call that would use them up."""
    with gated(ctx, "zygote_seconds = 1\n" + pool) as (service, gate):
        gate.let_one_through()
        service.wait_ready()
        with ctx.client(path=service.socket) as client:
            before, held = secrets(client), gate.wait()
            workers = [one for one in descendants(service.pid) if one[0] in service.worker_processes()]
            assert workers, "no worker waits"
            os.close(held)
            equal(wait_gone(workers, ctx.seconds(30)), [], "workers of the old zygote")
            assert secrets(client) != before, "the same secrets"


@test(private=True)
def waiting_workers_of_the_old_one_are_replaced(ctx):
    waiting_workers_are_replaced(ctx, "")


@test(private=True)
def they_are_replaced_where_the_pool_is_full(ctx):
    waiting_workers_are_replaced(ctx, "warm_max = 2")
    waiting_workers_are_replaced(ctx, "warm_max = 2\nworkers_max = 2\ntenant_running_max = 2")


@test(private=True)
def a_successor_that_fails_is_tried_again(ctx):
    with gated(ctx) as (service, gate):
        gate.let_one_through()
        service.wait_ready()
        with ctx.client(path=service.socket) as client:
            before, old = secrets(client), zygotes(service)
            held = gate.wait()
            (successor,) = [z for z in zygotes(service) if z not in old]
            os.kill(successor[0], signal.SIGKILL)
            equal(wait_gone([successor], ctx.seconds(30)), [], "the successor")
            os.close(held)
            for _ in range(8):
                equal(secrets(client), before, "secrets")
            held = gate.wait()
            assert "zygote-not-renewed profile=basic" in service.log(), service.log()
            os.close(held)
            until_all_are(ctx, client, lambda now: now != before)


@test(private=True)
def an_old_zygote_that_is_lost_is_not_started_beside_its_successor(ctx):
    with gated(ctx) as (service, gate):
        gate.let_one_through()
        service.wait_ready()
        with ctx.client(path=service.socket) as client:
            before, old = secrets(client), zygotes(service)
            held = gate.wait()
            os.kill(old[0][0], signal.SIGKILL)
            equal(wait_gone(old, ctx.seconds(30)), [], "the old zygote")
            waiting = client.start_script("print(hash('x'))")
            equal(client.ask("ping"), {}, "ping")
            equal(len(zygotes(service)), 1, "zygotes")
            os.close(held)
            o = client.outcome(waiting)
            equal(o.status, "ok", repr(o))
            until_all_are(ctx, client, lambda now: now != before)


main(__doc__)
