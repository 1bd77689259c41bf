#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Zygotes are renewed beside the old ones: what workers of one have in common does not last, and
no call waits for a new one. When a zygote is ready is in the test's hands: it imports a module
that reads from a FIFO, and the test has the other end."""

import contextlib
import errno
import os
import re
import shutil
import signal
import tempfile

from harness import FEW_MODULES, LEGACY, Skip, equal, main, test
from held import find_held, held, let_go
from mcpclient import Client
from supervisor import Supervisor, comm, descendants, is_alive, read_text, wait_gone
from waits import at_once, until, until_equal

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
        def opened():
            try:
                return os.open(self.fifo, os.O_WRONLY | os.O_NONBLOCK)
            except OSError as e:
                if e.errno != errno.ENXIO:
                    raise
        return until("a zygote reads the FIFO", opened)

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
    """(pid, start time) of each. A worker that is being made has their name, and pids of its own."""
    return [(pid, start) for pid, start in descendants(service.pid)
            if comm(pid) in ("python-zygote", "mcp-python-work")
            and len(re.search(r"NSpid:(.*)", read_text("/proc/%d/status" % pid) or "NSpid: 0 0")[1]
                    .split()) == 1]


def secrets(client):
    o = client.run(SECRETS)
    equal(o.status, "ok", "status of %r" % o)
    hashed, random, stack, libc = o.stdout.split()
    return hashed, random, stack, libc


def cell(client, **arguments):
    return client.ask("tools/call", {"name": "run_repl", "arguments": arguments})["structuredContent"]


def until_all_are(client, wanted):
    """Calls until a row of them, more than are kept warm, has what wanted(secrets) says."""
    until("a row of workers that are not as before",
          lambda: all(wanted(secrets(client)) for _ in range(8)), wait=at_once)


def titles(service):
    """Of all processes of workers, as ps shows them."""
    found = [read_text("/proc/%d/cmdline" % pid) or "" for pid, _ in descendants(service.pid)]
    return {text.split("\0")[0] for text in found if text.startswith("mcp-python ")}


@test(private=True)
def processes_have_titles_of_their_own(ctx):
    with ctx.private() as service, ctx.client(path=service.socket) as client:
        equal(client.run("print(1)").status, "ok")
        wanted = {"mcp-python zygote", "mcp-python init", "mcp-python script"}
        session = cell(client, code="x = 1")["session"]
        assert session
        until_equal("the titles", lambda: titles(service), wanted | {"mcp-python session"})


@test(private=True)
def a_renewed_zygote_has_other_secrets_and_nobody_waits(ctx):
    with gated(ctx) as (service, gate):
        gate.let_one_through()
        service.wait_ready()
        # No worker has been made yet, so it is not replaced before the client comes.
        old = zygotes(service)
        equal(len(old), 1, "zygotes")
        with ctx.client(path=service.socket) as client:
            before = secrets(client)
            session = cell(client, code="kept = hash('x')")["session"]
            held = gate.wait()
            # The new one is there and cannot get ready; more calls than there are warm workers.
            equal(len(zygotes(service)), 2, "zygotes")
            for _ in range(12):
                equal(secrets(client), before, "secrets while the new zygote starts")
            running = client.start_script("import time\ntime.sleep(1)\nprint(hash('x'))")
            os.close(held)
            until_all_are(client, lambda now: now != before)
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


@test(private=True)
def a_client_on_standard_input_is_answered_before_there_is_a_zygote(ctx):
    """The first zygote is held while it imports site, which reads a file of the gate."""
    gate = Gate(ctx)
    with open(gate.dir + "/gate.pth", "w", encoding="ascii") as f:
        f.write("import gate\n")
    command = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" %s && exec "$@"' % SITE, gate.dir,
               os.path.join(ctx.options.build, "mcp-pythond"), "--stdio"]
    try:
        with Client.spawn(command, LEGACY[-1], timeout=ctx.seconds(60)) as client:
            tools = client.ask("tools/list")["tools"]
            assert "run_script" in [tool["name"] for tool in tools], tools
            gate.let_one_through()
            equal(client.run("print(1)").stdout, "1\n")
    finally:
        shutil.rmtree(gate.dir)


@test(private=True)
def what_changes_on_the_host_is_seen(ctx):
    """A file that is replaced, as packages do it; a zygote that is never replaced otherwise."""
    if os.getuid():
        raise Skip("needs root: workers see no folder that they may not enter")
    folder = tempfile.mkdtemp(prefix="mcp-shown-", dir="/var/lib")
    shown = folder + "/version"
    try:
        os.chmod(folder, 0o755)
        for text in ("1", "2"):
            with open(shown + ".new", "w", encoding="ascii") as f:
                f.write(text)
            if text == "1":
                os.rename(shown + ".new", shown)
        with ctx.private("[pool]\nzygote_seconds = 0\n[profile basic]\npaths = %s\n" % shown) as s, \
                ctx.client(path=s.socket) as client:
            look = "print(open(%r).read())" % shown
            equal(client.run(look).stdout, "1\n", "before")
            session = cell(client, code="kept = 1")["session"]
            os.rename(shown + ".new", shown)
            until_equal("what a script reads", lambda: client.run(look).stdout, "2\n")
            assert "host-changed" in s.log(), s.log()
            equal(cell(client, session=session, code="print(kept)")["stdout"], "1\n", "a session")
    finally:
        shutil.rmtree(folder)


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
        old = zygotes(service)
        with ctx.client(path=service.socket) as client:
            before, held = secrets(client), gate.wait()
            (successor,) = [z for z in zygotes(service) if z not in old]
            os.kill(successor[0], signal.SIGKILL)
            equal(wait_gone([successor], ctx.seconds(30)), [], "the successor")
            os.close(held)
            for _ in range(8):
                equal(secrets(client), before, "secrets")
            held = gate.wait()
            assert "zygote-not-renewed profile=basic" in service.log(), service.log()
            os.close(held)
            until_all_are(client, lambda now: now != before)


@test(private=True)
def an_old_zygote_that_is_lost_is_not_started_beside_its_successor(ctx):
    with gated(ctx) as (service, gate):
        gate.let_one_through()
        service.wait_ready()
        old = zygotes(service)
        with ctx.client(path=service.socket) as client:
            before, held = secrets(client), gate.wait()
            os.kill(old[0][0], signal.SIGKILL)
            equal(wait_gone(old, ctx.seconds(30)), [], "the old zygote")
            waiting = client.start_script("print(hash('x'))")
            equal(client.ask("ping"), {}, "ping")
            equal(len(zygotes(service)), 1, "zygotes")
            os.close(held)
            o = client.outcome(waiting)
            equal(o.status, "ok", repr(o))
            until_all_are(client, lambda now: now != before)


PER_TENANT = "[pool]\nwarm = 2\n%s\n[profile basic]\nzygote_per_tenant = yes\n"
STAYS = "idle_seconds = 3600"	# for tests that count zygotes
A, B = 20001, 20002	# uids: tenants


def need_root():
    if os.getuid():
        raise Skip("needs root, to be two tenants")


def two_tenants(ctx, service):
    """What each has, after as many calls as use up what was warm; the same in all."""
    found = []
    with ctx.client(uid=A, path=service.socket) as a, ctx.client(uid=B, path=service.socket) as b:
        for client in (a, b, a, b):
            now = {secrets(client) for _ in range(6)}
            equal(len(now), 1, "secrets of one tenant")
            found.append(now.pop())
    equal(found[2:], found[:2], "the secrets of each, later")
    return found[:2]


@test(private=True)
def tenants_of_a_profile_share_a_zygote(ctx):
    need_root()
    with ctx.private("[pool]\nwarm = 2\n") as service:
        a, b = two_tenants(ctx, service)
        equal(a, b, "secrets of two tenants")


@test(private=True)
def a_tenant_may_have_a_zygote_of_its_own(ctx):
    need_root()
    with ctx.private(PER_TENANT % STAYS) as service:
        for name, a, b in zip(("hash", "canary", "stack", "libc"), *two_tenants(ctx, service)):
            assert a != b, "the same %s: %s" % (name, a)
        # The profile's, one of the tenant that this test itself is, and these.
        equal(len(zygotes(service)), 4, "zygotes")


def wait_for_held(service, name):
    until("a script waits", lambda: find_held(service.pid, name))


def wait_for_zygotes(service, count):
    until(lambda: "%r, not %d zygotes" % (zygotes(service), count),
          lambda: len(zygotes(service)) == count)


@test(private=True)
def an_idle_tenants_zygote_is_ended(ctx):
    """Its session stays, and its next call has another zygote."""
    need_root()
    with ctx.private(PER_TENANT % "idle_seconds = 1") as service, \
            ctx.client(uid=A, path=service.socket) as client:
        before = secrets(client)
        session = cell(client, code="kept = hash('x')")["session"]
        wait_for_zygotes(service, 1)
        after = secrets(client)
        assert before[0] != after[0], "the same hash"
        said = cell(client, session=session, code="print(kept, hash('x'))")
        equal(said["stdout"].split(), [before[0], before[0]], "a session")


@test(private=True)
def their_number_is_bounded(ctx):
    """Who is idle gives way; while all are busy another tenant is told so, and is served later."""
    need_root()
    with ctx.private(PER_TENANT % "tenant_zygotes_max = 1\nidle_seconds = 3600") as service, \
            ctx.client(uid=A, path=service.socket) as a, ctx.client(uid=B, path=service.socket) as b:
        running = a.start_script(held("busy", after="print(hash('x'))"))
        wait_for_held(service, "busy")
        o = b.run("print(1)")
        equal(o.status, "overloaded", repr(o))
        let_go(ctx, "busy", service)
        equal(a.outcome(running).status, "ok", "the one that was busy")
        equal(b.run("print(1)").status, "ok", "once it was idle")
        wait_for_zygotes(service, 2)
        equal(a.run("print(1)").status, "ok", "and the first one again")


@test(private=True)
def a_tenants_zygote_that_is_lost_is_started_again(ctx):
    need_root()
    with ctx.private(PER_TENANT % STAYS) as service, ctx.client(uid=A, path=service.socket) as a:
        before = secrets(a)
        wait_for_zygotes(service, 3)
        lost = zygotes(service)
        for pid, _ in lost:
            os.kill(pid, signal.SIGKILL)
        equal(wait_gone(lost, ctx.seconds(30)), [], "the zygotes")
        until_all_are(a, lambda now: now != before)
        wait_for_zygotes(service, 3)


@test(private=True)
def a_zygote_made_while_another_is_lost_stays(ctx):
    """The launcher has made one, but the supervisor has not read its answer: so it has a child that
    it does not know when it looks for workers that the lost zygote may have left."""
    need_root()
    with ctx.private(PER_TENANT % STAYS) as service, ctx.client(uid=A, path=service.socket) as a:
        secrets(a)
        wait_for_zygotes(service, 3)
        launcher = next(one for one in descendants(service.pid) if comm(one[0]) == "mcp-launcher")
        first, second, _ = zygotes(service)
        try:
            os.kill(launcher[0], signal.SIGSTOP)
            os.kill(first[0], signal.SIGKILL)
            equal(wait_gone([first], ctx.seconds(30)), [], "the first zygote")
            for _ in range(3):	# turns of the loop: it reaps the zygote, and orders another one
                a.ask("ping")
            os.kill(service.pid, signal.SIGSTOP)
            before = {pid for pid, _ in descendants(service.pid)}
            os.kill(second[0], signal.SIGKILL)
            equal(wait_gone([second], ctx.seconds(30)), [], "the second zygote")
            with contextlib.suppress(ProcessLookupError):
                os.kill(launcher[0], signal.SIGCONT)
            # On a slow machine the supervisor has given the launcher up.
            until("it makes a zygote", lambda: not is_alive(*launcher) or any(
                pid not in before for pid, _ in descendants(service.pid)))
        finally:
            os.kill(service.pid, signal.SIGCONT)
        wait_for_zygotes(service, 3)
        assert 'text="the zygote ended early (signal 0)"' not in service.log(), service.log()
        secrets(a)


main(__doc__, modules=FEW_MODULES)
