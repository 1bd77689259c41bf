#!/usr/bin/python3
"""64 calls in flight from one client and 64 from another, each printing its own nonce: every
answer holds its own nonce and nobody else's."""

import os
import secrets

from harness import SOMEBODY, equal, main, test
from held import held, let_go
from mcpclient import LEGACY, MODERN, wait_all

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
        equal(o.stderr, nonce + "\n", "stderr")
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


main(__doc__)
