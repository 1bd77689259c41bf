#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""64 calls in flight from one client and 64 from another, each printing its own nonce: every
answer holds its own nonce and nobody else's. And who says much makes nobody else wait."""

import contextlib
import os
import secrets

from harness import FEW_MODULES, SOMEBODY, equal, main, test
from held import held, let_go
from http_client import Connection, Session, encode, modern, modern_headers
from http_suite import http_private, seconds
from mcpclient import LEGACY, MODERN, Client, wait_all
from supervisor import comm, descendants
from waits import at_once, until, until_equal

LONG = 2 << 20		# bytes of a message: they take tens of milliseconds
MANY = 24		# of those

SCRIPT = """
import sys, time, os, random
nonce = %r
time.sleep(random.random() / 20)
print(nonce, flush=True)
open('/tmp/nonce', 'x').write(nonce)
print(nonce, file=sys.stderr)
assert open('/tmp/nonce').read() == nonce
print(sys.stdin.read(), sys.argv[1], os.listdir('/tmp'))
nonce
"""


def ask_all(client, count):
    nonces = {}
    for _ in range(count):
        nonce = secrets.token_hex(16)
        nonces[client.start_script(SCRIPT % nonce, stdin="in-" + nonce,
                                   args=["arg-" + nonce])] = nonce
    return nonces


def check_all(client, nonces, foreign):
    for id, nonce in nonces.items():
        o = client.outcome(id)
        equal(o.status, "ok", "status of %r" % o)
        equal(o.stdout, "%s\nin-%s arg-%s ['nonce']\n" % (nonce, nonce, nonce), "stdout")
        equal(o.stderr, nonce + "\n(/tmp/nonce: not in /workspace, so lost with the script)\n", "stderr")
        equal(o.result, {"repr": repr(nonce), "json": nonce}, "result")
        text = o.everything()
        for other in foreign:
            assert other == nonce or other not in text, "%s holds %s" % (nonce, other)


def exchange(ctx, clients, count):
    """Both in parts, so that the calls of all mix on their way."""
    asked = [dict() for _ in clients]
    for _ in range(count // 16):
        for client, nonces in zip(clients, asked):
            nonces.update(ask_all(client, 16))
    wait_all(clients, ctx.seconds(120))
    everything = {nonce for nonces in asked for nonce in nonces.values()}
    assert len(everything) == count * len(clients)
    for client, nonces in zip(clients, asked):
        check_all(client, nonces, everything)


@test(single=True)
def two_clients_of_one_tenant(ctx):
    with ctx.client() as a, ctx.client() as b:
        exchange(ctx, [a, b], 64)


@test(single=True, root=True)
def two_tenants(ctx):
    with ctx.client() as a, ctx.client(uid=SOMEBODY) as b:
        exchange(ctx, [a, b], 64)


NETWORK = "import os, socket\nsocket.socketpair()\nprint(os.readlink('/proc/self/ns/net'))"


@test(private=True, root=True)
def networks_are_used_again(ctx):
    """For each tenant, sooner or later: how soon depends on when spent workers are ended. That no
    other tenant gets one is a matter of the zygote alone (unit/worker/test-networks)."""
    with ctx.private() as s, ctx.client(path=s.socket) as a, \
            ctx.client(path=s.socket, uid=SOMEBODY) as b:
        for client in (a, b):
            names = set()

            def is_old():
                name = client.run(NETWORK, ctx.seconds(60)).stdout
                assert name.startswith("net:["), name
                if name in names:
                    return True
                names.add(name)
            until(lambda: "a network is used again: %s" % names, is_old, wait=at_once)


IDLE_SOON = """[pool]
warm = 1
warm_max = 1
workers_max = 2
tenant_running_max = 2
idle_seconds = 3
"""


def networks_open(pid):
    """How many networks a service's zygotes have open."""
    count = 0
    for one, _ in descendants(pid):
        with contextlib.suppress(OSError):	# it ends meanwhile
            if comm(one) == "python-zygote":
                for fd in os.scandir("/proc/%d/fd" % one):
                    count += os.readlink(fd.path).startswith("net:[")
    return count


@test(private=True, root=True)
def networks_go_when_a_tenant_is_idle(ctx):
    """Also when another one has taken the places of its workers before."""
    with ctx.private(config=IDLE_SOON) as s:
        with ctx.client(path=s.socket) as a, ctx.client(path=s.socket, uid=SOMEBODY) as b:
            for client in (a, b):
                both = [client.start_script(held(name)) for name in ("place-1", "place-2")]
                for name in ("place-1", "place-2"):
                    let_go(ctx, name, s)
                for id in both:
                    equal(client.outcome(id).exit_code, 0, "exit code")
        until_equal("the number of networks", lambda: networks_open(s.pid), 0)


@test(single=True)
def two_revisions(ctx):
    with ctx.client(LEGACY[0]) as a, ctx.client(MODERN) as b, ctx.client(LEGACY[-1]) as c:
        a_ids = {id: n for id, n in ask_all(a, 16).items()}
        b_ids, c_ids = ask_all(b, 16), ask_all(c, 16)
        wait_all([a, b, c], ctx.seconds(120))
        check_all(b, b_ids, set(c_ids.values()) | set(a_ids.values()))
        check_all(c, c_ids, set(b_ids.values()) | set(a_ids.values()))
        for id, nonce in a_ids.items():
            assert nonce in a.outcome(id).text


@test(single=True)
def the_same_ids_on_two_connections(ctx):
    """Ids are a connection's own: equal ones, of both JSON types, are told apart."""
    with ctx.client() as a, ctx.client() as b:
        for id in (100, "100", 101, "101", "é\n"):
            for who in ("a", "b"):
                (a if who == "a" else b).request("tools/call", {"name": "run_script", "arguments": {
                    "script": "print(%r)" % (who + repr(id))}}, id=id)
        wait_all([a, b], ctx.seconds(60))
        for id in (100, "100", 101, "101", "é\n"):
            equal(a.outcome(id).stdout, "a%r\n" % id, "stdout")
            equal(b.outcome(id).stdout, "b%r\n" % id, "stdout")


@test(single=True)
def answers_come_as_they_are_ready(ctx):
    with ctx.client() as client:
        slow = client.start_script(held("the-slow-one", after="print('slow')"))
        quick = [client.start_script("print(%d)" % i) for i in range(3)]
        for i, id in enumerate(quick):
            equal(client.outcome(id).stdout, "%d\n" % i, "stdout")
        assert slow not in client.arrived, "the slow one came first"
        let_go(ctx, "the-slow-one")
        equal(client.outcome(slow).stdout, "slow\n", "stdout")


@test(single=True, root=True)
def a_tenant_gets_its_turn(ctx):
    """One tenant's queue of 100 does not make another wait for all of it."""
    with ctx.client() as many, ctx.client(uid=SOMEBODY) as one:
        one.run("1")
        ids = [many.start_script("import time\ntime.sleep(0.1)") for _ in range(100)]
        o = one.run("print('mine')", ctx.seconds(30))
        many.pump(0)
        equal(o.stdout, "mine\n", "stdout")
        ended = len(many.arrived) - 1	# without the handshake
        assert ended < 90, "%d of the other tenant's 100 were first" % ended
        wait_all([many], ctx.seconds(60))
        for id in ids:
            equal(many.outcome(id).status, "ok", "status")


def ask_between(ask, all_answered):
    """Repeats calls until the others have their answers; returns their number."""
    between = 0
    while not all_answered():
        ask()
        between += 1
    # Each turn of the loop has one long message and, between two of them, one of these. Were they
    # all taken in one turn, it would be one or two. A client on a busy machine misses some turns.
    assert between >= MANY // 4, "%d answers while %d long messages were taken" % (between, MANY)
    return "%d answers between %d" % (between, MANY)


def has_answer(client):
    client.pump(0)
    return bool(client.unread)


def long_line(client):
    """All of a ping but its newline."""
    client.send_raw(b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"%s"}}' % (b"x" * LONG))
    client.flush()


@test(single=True, root=True)
def long_lines_delay_no_other_tenant(ctx):
    with contextlib.ExitStack() as stack:
        one = stack.enter_context(ctx.client(uid=SOMEBODY))
        many = [stack.enter_context(ctx.raw()) for _ in range(MANY)]
        for client in many:
            long_line(client)
        for client in many:
            os.write(client.wfd, b"\n")
        told = ask_between(lambda: one.ask("ping"), lambda: all([has_answer(c) for c in many]))
        for client in many:
            equal(client.recv(), {"jsonrpc": "2.0", "id": 1, "result": {}})
    return told


def long_body(connection):
    """All of a request but its last byte, which is returned."""
    message = modern("tools/list", {"_meta": {"x": "x" * LONG}})
    body = encode(message)
    connection.send(headers=modern_headers(message) + [("Content-Length", str(len(body)))],
                    body=body[:-1])
    return body[-1:]


def has_bytes(connection):
    with contextlib.suppress(BlockingIOError):
        connection.inbuf += connection.sock.recv(1 << 18)
    return bool(connection.inbuf)


@test(private=True, root=True)
def long_bodies_delay_no_other_tenant(ctx):
    with http_private(ctx, unix=True) as (_, where), contextlib.ExitStack() as stack:
        one = stack.enter_context(Session(where, uid=SOMEBODY, timeout=seconds(ctx, 60)))
        many = [stack.enter_context(Connection(where, seconds(ctx, 60))) for _ in range(MANY)]
        one.checker.validator = None	# which takes longer than the answer
        for last, connection in [(long_body(c), c) for c in many]:
            connection.send_raw(last)
        told = ask_between(lambda: one.ask("ping"), lambda: all([has_bytes(c) for c in many]))
        for connection in many:
            response = connection.read()
            equal((response.status, response.message["id"]), (200, 1), repr(response))
    return told


@test(private=True)
def who_leaves_while_it_waits_is_forgotten(ctx):
    """Half of those whose long messages wait are gone when their turn comes; the others are
    answered, also in the next message of the same connection."""
    for unix in (True, False):
        with http_private(ctx, unix=unix) as (service, where), contextlib.ExitStack() as stack:
            lines, bodies = [], []
            for _ in range(MANY // 2):
                lines.append(Client.connect(service.socket, timeout=seconds(ctx, 60)))
                bodies.append(Connection(where, seconds(ctx, 60)))
            for each in (*lines, *bodies):
                stack.callback(each.close)
            for client in lines:
                client.revision = None
                long_line(client)
            for last, connection in [(long_body(c), c) for c in bodies]:
                connection.send_raw(last)
            for client in lines:
                os.write(client.wfd, b'\n{"jsonrpc":"2.0","id":2,"method":"ping"}\n')
            for i, connection in enumerate(bodies[::2]):
                connection.close() if unix or i % 2 else connection.reset()
            for client in lines[::2]:
                client.close()
            for client in lines[1::2]:
                equal([client.recv()["id"] for _ in range(2)], [1, 2])
            for connection in bodies[1::2]:
                equal(connection.read().message["id"], 1)
                connection.ask(headers=modern_headers(modern("tools/list")),
                               body=encode(modern("tools/list")))
            with ctx.client(path=service.socket) as client:
                equal(client.run("1").status, "ok")


if __name__ == "__main__":
    main(__doc__, modules=FEW_MODULES)
