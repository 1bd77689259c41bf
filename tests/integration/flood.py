#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Clients that read nothing, write a byte at a time, or come and go by the thousand: each hurts
itself alone."""

import contextlib
import json
import os
import re
import select
import statistics
import threading
import time

import mcpclient
from harness import FEW_MODULES, SOMEBODY, equal, main, test
from http_client import Session
from http_suite import CONFIG, place_of
from mcpclient import LEGACY, MODERN, Client, connect_as
from waits import until


class Observer:
    """Another tenant's client (where we may be one) that measures its calls meanwhile."""

    def __init__(self, ctx):
        self.ctx, self.took, self.count, self.error = ctx, [], 0, None
        self.uid = SOMEBODY if os.getuid() == 0 else None
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.watch)

    def watch(self):
        try:
            with self.ctx.client(uid=self.uid) as client:
                while not self.stopping.is_set() or not self.count:
                    started = time.monotonic()
                    o = client.run("print(%d)" % self.count, self.ctx.seconds(30))
                    self.took.append(time.monotonic() - started)
                    equal((o.status, o.stdout), ("ok", "%d\n" % self.count), repr(o))
                    self.count += 1
        except Exception as e:
            self.error = e

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *exc):
        self.stopping.set()
        self.thread.join()
        if not exc[0]:
            assert not self.error, "the other tenant: %r" % self.error
            # One may meet a machine that is busy with something else; not every other one.
            assert statistics.median(self.took) < 3 * self.ctx.slow and \
                max(self.took) < 10 * self.ctx.slow, "the other tenant waited: %s" % self

    def __str__(self):
        return "the other tenant: %d calls, slowest %.3f s" % (self.count, max(self.took))


def fill(sockets, data, seconds):
    """Sends until the other side takes no more, or for so long; returns the bytes taken."""
    sent, deadline, open_ones = 0, time.monotonic() + seconds, set(sockets)
    for s in sockets:
        s.setblocking(False)
    while open_ones and (left := deadline - time.monotonic()) > 0:
        ready = select.select([], open_ones, [], min(1, left))[1]
        if not ready:
            break
        for s in ready:
            try:
                sent += s.send(data)
            except BlockingIOError:
                continue
            except OSError:
                open_ones.remove(s)
    return sent


def call(id, script, **more):
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
        "name": "run_script", "arguments": {"script": script, **more}}}).encode() + b"\n"


def memory(ctx):
    return ctx.service.rss_bytes() if ctx.service else 0


@test(alone=True)
def reads_nothing(ctx):
    """Asks for large answers and never reads: bounded memory, then closed; others go on."""
    before = memory(ctx)
    with Observer(ctx) as observer, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(ctx.client()) for _ in range(4)]
        for client in clients:
            for id in range(100, 160):
                client.send_raw(call(id, "print('x' * 1000000)"))
            client.flush(ctx.seconds(30))
        fill([client.owner for client in clients], call(1, "1") * 100, 6)
        grown = memory(ctx) - before
        assert grown < 600 << 20, "the service grew by %d MiB" % (grown >> 20)
    ctx.healthy()
    return "%s; grew by %d MiB" % (observer, grown >> 20)


@test(alone=True)
def pings_without_reading(ctx):
    with Observer(ctx) as observer, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(ctx.client()) for _ in range(4)]
        ping = b'{"jsonrpc":"2.0","id":%d,"method":"tools/list"}\n'
        fill([client.owner for client in clients], b"".join(ping % i for i in range(1000)), 10)
        assert memory(ctx) < 600 << 20, memory(ctx)
    ctx.healthy()
    return str(observer)


@test(single=True)
def a_byte_at_a_time(ctx):
    """One byte per turn of many connections: slow, but served, and nobody waits for it."""
    line = call(7, "print('slow line')")
    with Observer(ctx) as observer, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(ctx.client()) for _ in range(50)]
        for c in clients:
            c.owner.setblocking(False)
            c.pending[("int", 7)] = 0
        for i in range(len(line)):
            for c in clients:
                os.write(c.wfd, line[i:i + 1])
        for c in clients:
            equal(c.outcome(7).stdout, "slow line\n", "stdout")
    return str(observer)


@test(single=True)
def a_byte_a_second(ctx):
    """The same at a byte a second for a while, on many connections that never get to a line."""
    with Observer(ctx) as observer, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(ctx.raw()) for _ in range(100)]
        for byte in (b"{", b'"', b"j", b"s"):
            for c in clients:
                os.write(c.wfd, byte)
            observer.stopping.wait(1)
        equal([c for c in clients if c.eof], [], "connections that were closed")
    return str(observer)


@test(private=True)
def opens_and_drops(ctx):
    """10,000 connections, opened and dropped, half of them with a request on the way."""
    count = ctx.count(10000)
    hello = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
    with ctx.private("[pool]\nidle_seconds = 1\n") as service:
        ctx.service, ctx.socket = service, service.socket
        ctx.healthy()
        service.wait_idle(ctx.seconds(60))
        before = service.fds()
        with Observer(ctx) as observer:
            for i in range(count):
                s = connect_as(ctx.socket)
                if i % 2:
                    with contextlib.suppress(OSError):	# it may have been turned away
                        s.send(hello)
                s.close()
        ctx.healthy()
        service.wait_idle(ctx.seconds(60))
        after = service.fds()
        if before is not None:
            assert after <= before + 4, "%d descriptors, %d before" % (after, before)
    return str(observer)


@test(single=True)
def holds_every_connection_it_can_get(ctx):
    """One tenant's connections are bounded; another tenant still gets in."""
    held = []
    try:
        with Observer(ctx) as observer:
            for _ in range(1500):
                try:
                    s = connect_as(ctx.socket, timeout=10)
                except OSError:
                    break
                held.append(s)
            if os.getuid() == 0:
                with ctx.client(uid=SOMEBODY) as other:
                    equal(other.run("print(5)").stdout, "5\n", "the other tenant's answer")
    finally:
        for s in held:
            s.close()
    ctx.healthy()
    return "%d connections; %s" % (len(held), observer)


IDLE, ACTIVE = 5000, 200
MANY = "[service]\nsessions_max = 16384\nsessions_per_tenant = 8192\n" + CONFIG
IDLE_BYTES = 32 << 10		# of the service, for each idle session; some 2 KiB were measured


def active_ones_work(ctx, clients, idle, before):
    """All of them have a call in flight at once; nobody is refused or given another's answer."""
    grown = ctx.service.rss_bytes() - before
    assert grown < idle * IDLE_BYTES, "%d sessions take %d KiB" % (idle, grown >> 10)
    ids = [client.start_script("print('active %d')" % i) for i, client in enumerate(clients)]
    for i, (client, id) in enumerate(zip(clients, ids)):
        o = client.outcome(id)
        equal((o.status, o.stdout), ("ok", "active %d\n" % i), repr(o))
    return "%.1f KiB for each idle session" % (grown / idle / 1024)


@test(private=True)
def thousands_of_idle_sessions(ctx):
    with ctx.private(MANY) as service, contextlib.ExitStack() as stack:
        ctx.service, ctx.socket, ctx.pid = service, service.socket, service.pid
        active = [stack.enter_context(ctx.client()) for _ in range(ACTIVE)]
        fds, before = service.fds(), service.rss_bytes()
        idle = [ctx.client((LEGACY[-1], MODERN)[i % 2]) for i in range(IDLE)]
        try:
            text = active_ones_work(ctx, active, IDLE, before)
            for client in idle[::50]:
                equal(client.run("print(1)").stdout, "1\n", "of one that was idle")
        finally:
            for client in idle:
                client.close()
        active[0].run("1")
        if fds is not None:
            until(lambda: "%d descriptors stay" % service.fds(),
                  lambda: service.fds() <= fds + ACTIVE)
        return text


@test(private=True)
def thousands_of_idle_http_sessions(ctx):
    with ctx.private(MANY) as service, contextlib.ExitStack() as stack:
        ctx.service, ctx.socket, ctx.pid = service, service.socket, service.pid
        active = [stack.enter_context(ctx.client()) for _ in range(ACTIVE)]
        before = service.rss_bytes()
        place, idle = place_of(service), []
        with Session(place, timeout=ctx.seconds(60)) as client:
            hello = client.message("initialize", {
                "protocolVersion": LEGACY[-1], "capabilities": {},
                "clientInfo": {"name": "idle", "version": "1"}})
            for _ in range(IDLE):
                client.id = None
                idle.append(client.post(hello).header("Mcp-Session-Id"))
            equal(len(set(idle)), IDLE, "different sessions")
            text = active_ones_work(ctx, active, IDLE, before)
            for client.id in idle[::50]:
                equal(client.ask("ping"), {}, "of one that was idle")
            for client.id in idle[::100]:
                equal(client.end().status, 204, "DELETE")
        return text


@test(alone=True)
def endless_line(ctx):
    """A line without an end is refused at the cap, not collected."""
    before = memory(ctx)
    with Observer(ctx) as observer:
        raw = Client.connect(ctx.socket, LEGACY[-1])
        raw.revision = None
        started = time.monotonic()
        sent = fill([raw.owner], b"x" * 65536, ctx.seconds(60))
        seconds = time.monotonic() - started
        grown = memory(ctx) - before
        raw.close()
    assert seconds < ctx.seconds(50), "a line of %d MiB was still read after %d s" % (
        sent >> 20, seconds)
    assert grown < 400 << 20, "the service grew by %d MiB" % (grown >> 20)
    ctx.healthy()
    return "%d MiB taken; %s" % (sent >> 20, observer)


@test(alone=True)
def large_lines_from_many(ctx):
    """Lines of 20 MiB, not finished, on many connections: bounded for each tenant."""
    before = memory(ctx)
    with Observer(ctx) as observer:
        held = [connect_as(ctx.socket) for _ in range(40)]
        for s in held:
            s.send(b'{"jsonrpc":"2.0","id":1,"method":"')
        sent = fill(held, b"m" * 65000, 8)
        grown = memory(ctx) - before
        for s in held:
            s.close()
    assert grown < 1 << 30, "the service grew by %d MiB" % (grown >> 20)
    ctx.healthy()
    return "%d MiB taken; grew by %d MiB; %s" % (sent >> 20, grown >> 20, observer)


@test(private=True)
def large_runs_without_a_client(ctx):
    """A run with a key goes on when its client has left. Those of a tenant are bounded together."""
    text = "z" * (4 << 20)
    with ctx.private("[pool]\ntenant_running_max = 1\n") as s:
        def start(number):
            with ctx.client(path=s.socket) as client:
                id = client.request("tools/call", {"name": "run_script", "arguments": {
                    "script": "import time\ntime.sleep(600)", "timeout_seconds": 600,
                    "idempotency_key": "key-%d" % number, "files": [
                        {"path": "a", "text": text}, {"path": "b", "text": text[:-9]}]}})
                client.ask("ping")
                if mcpclient.id_key(id) in client.answers:
                    return client.wait_message(id)[0]["error"]["message"]
                return None

        said = [start(n) for n in range(34)]
        equal(said[:31], [None] * 31)
        equal(said[-1], "too many bytes in runs of this user")
        with ctx.client(path=s.socket) as client:	# a small one has its place
            client.start_script("1")
            client.ask("ping")
            equal(client.answers, {})


@test(private=True)
def a_call_waits_for_a_worker_as_long_as_it_may(ctx):
    """It is answered in the time that its client was told: that it was not run. Nobody waits for a job."""
    def call(name, **arguments):
        return client.request("tools/call", {"name": name, "arguments": arguments})

    def told(id, ctx_seconds=120):
        return client.wait(id, ctx.seconds(ctx_seconds))["structuredContent"]
    with ctx.private("[pool]\ntenant_running_max = 1\n") as s, ctx.client(path=s.socket, timeout=ctx.seconds(120)) as client:
        session = told(call("run_repl", code="x = 1"))["session"]
        held = client.start_script("import time\ntime.sleep(600)", timeout_seconds=600)
        job = told(call("run_script", script="6 * 7", background=True, timeout_seconds=600))["job"]
        began = time.monotonic()
        ids = [(10, call("run_script", script="1", timeout_seconds=1)), (12, call("run_script", script="1", timeout_seconds=24)),
               (10, call("run_repl", session=session, code="x", timeout_seconds=2))]
        for seconds, id in ids:
            one = told(id)
            equal(one["status"], "overloaded", one)
            said = re.fullmatch(r"no worker was free for (\d+) s; try again later", one["error"]["message"])
            assert said and int(said[1]) >= seconds and one["retry_after_ms"] > 0, one
        assert time.monotonic() - began < ctx.seconds(24 + 20), "later than they were told"
        equal(told(call("job", id=job, action="status"))["state"], "running")
        client.cancel(held)
        equal(told(call("job", id=job, action="wait", wait_seconds=60))["answer"]["result"]["json"], 42)
        equal(told(call("run_repl", session=session, code="x"))["result"]["json"], 1, "its state is there")


@test(single=True)
def garbage(ctx):
    """Random bytes, random JSON: an answer or a closed connection, never silence for others."""
    with Observer(ctx) as observer:
        for i in range(200):
            s = connect_as(ctx.socket)
            with contextlib.suppress(OSError):
                s.send(os.urandom(500).replace(b"\n", b" ") + b"\n" + b"[" * 3000 + b"\n" +
                       b'{"jsonrpc":"2.0","id":' + b"9" * 400 + b',"method":"ping"}\n\0\n\xff\n')
            s.close()
    ctx.healthy()
    return str(observer)


@test(alone=True)
def output_floods_of_one_tenant(ctx):
    """Scripts that write as fast as they can do not slow another tenant's."""
    with Observer(ctx) as observer, ctx.client() as client:
        ids = [client.start_script("import os\nwhile True: os.write(1, b'x' * 1048576)")
               for _ in range(8)]
        for id in ids:
            equal(client.outcome(id, ctx.seconds(90)).status, "output_limit", "status")
    return str(observer)


@test
def many_progress_notes(ctx):
    """A script that prints all the time: notes are limited in rate, never after the answer."""
    for revision in (LEGACY[-1], MODERN):
        with ctx.client(revision) as client:
            id = client.request("tools/call", {
                "name": "run_script", "_meta": {"progressToken": 0},
                "arguments": {"script": "import time\nend = time.monotonic() + 4\nn = 0\n"
                                        "while time.monotonic() < end:\n    n += 1\n"
                                        "    print('note', n, flush=True)\n"
                                        "    time.sleep(0.001)"}})
            client.outcome(id)
            notes = [n["params"] for n in client.notices]
            assert 2 <= len(notes) <= 40, "%d notes" % len(notes)
            values = [n["progress"] for n in notes]
            assert values == sorted(set(values)), "progress does not grow: %s" % values
            assert all(n["progressToken"] == 0 and type(n["progressToken"]) is int
                       for n in notes), notes[0]
            count = len(client.notices)
            client.run("1")
            equal(len(client.notices), count, "notes after the answer")


@test
def no_notes_without_a_token(ctx):
    with ctx.client() as client:
        client.run("import time\nfor i in range(20):\n    print(i, flush=True)\n"
                   "    time.sleep(0.05)")
        equal(client.notices, [], "notes")


main(__doc__, modules=FEW_MODULES)
