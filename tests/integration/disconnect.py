#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Clients that go away, cancel or close half of their connection: the work is stopped, its
resources come back, and nothing is answered that should not be."""

import contextlib

from harness import FEW_MODULES, Skip, equal, main, test
from mcpclient import LEGACY, MODERN, RpcError
from supervisor import descendants, read_text
from waits import until_equal

MARK = "import time\nprint('started', flush=True)\ntime.sleep(%g)"


def busy_count(ctx):
    """Processes below the service that run a script marked by us (they sleep, named so)."""
    return sum(1 for pid, _ in descendants(ctx.pid)
               if (read_text("/proc/%d/comm" % pid) or "").strip() == "gone-test")


def named(seconds):
    return ("import ctypes, time\nctypes.CDLL(None).prctl(15, b'gone-test', 0, 0, 0)\n"
            "print('started', flush=True)\ntime.sleep(%g)" % seconds)


def wait_busy(ctx, want):
    """Until so many marked scripts run."""
    if not ctx.pid:
        raise Skip("the service's process is not known: --pid")
    until_equal("the number of scripts", lambda: busy_count(ctx), want)


@test(single=True)
def client_dies_during_its_call(ctx):
    client = ctx.client()
    for _ in range(3):
        client.start_script(named(300), timeout_seconds=400)
    client.flush()
    wait_busy(ctx, 3)
    client.close()
    wait_busy(ctx, 0)
    ctx.healthy()


@test(single=True)
def client_dies_with_calls_queued(ctx):
    clients = [ctx.client() for _ in range(4)]
    for client in clients:
        for _ in range(40):
            client.start_script("import time\ntime.sleep(0.5)")
        client.flush()
    for client in clients:
        client.close()
    ctx.healthy()


@test(single=True)
def half_close_ends_input(ctx):
    """The end of a client's input: earlier requests are still answered, then the service closes."""
    for revision in (LEGACY[0], LEGACY[-1], MODERN):
        client = ctx.client(revision)
        ids = [client.start_script("import time\ntime.sleep(1)\nprint('late')"),
               client.start_script("print('x' * 500000)")]
        client.half_close()
        client.until("the end of the connection", lambda: client.eof)
        assert "late" in client.outcome(ids[0]).text and "xxx" in client.outcome(ids[1]).text
        client.close()
    ctx.healthy()


@test(single=True)
def half_close_then_death(ctx):
    """A client that closes its output too is gone, and its work is cancelled."""
    client = ctx.client()
    client.start_script(named(300), timeout_seconds=400)
    client.half_close()
    wait_busy(ctx, 1)
    client.close()
    wait_busy(ctx, 0)


@test(single=True)
def cancelled_is_stopped_and_not_answered(ctx):
    for revision in (LEGACY[0], LEGACY[-1], MODERN):
        with ctx.client(revision) as client:
            id = client.start_script(named(300), timeout_seconds=400)
            client.flush()
            wait_busy(ctx, 1)
            client.cancel(id)
            wait_busy(ctx, 0)
            ctx.healthy(client)
            assert id not in client.arrived, "a cancelled request was answered"


@test(single=True)
def cancelled_before_it_ran(ctx):
    with ctx.client() as client:
        ids = [client.start_script("import time\ntime.sleep(0.1)\nprint('ran')")
               for _ in range(30)]
        for id in ids[10:]:
            client.notify("notifications/cancelled", {"requestId": id, "reason": "test"})
        for id in ids[:10]:
            equal(client.outcome(id).status, "ok", "status")
        ctx.healthy(client)


@test
def cancelling_what_is_not_there(ctx):
    with ctx.client() as client:
        done = client.start_script("1")
        client.outcome(done)
        for params in ({"requestId": done}, {"requestId": 999999}, {"requestId": "x"},
                       {"requestId": None}, {"requestId": [1]}, {}, {"requestId": 1.5}):
            client.notify("notifications/cancelled", params)
        ctx.healthy(client)


@test
def cancelling_from_another_connection(ctx):
    """An id is its own connection's: nobody else can cancel by it."""
    with ctx.client() as a, ctx.client() as b:
        id = a.start_script("import time\ntime.sleep(1)\nprint('mine')")
        a.flush()
        b.cancel(id)
        b.run("1")
        equal(a.outcome(id).stdout, "mine\n", "stdout")


@test
def double_cancel_and_death(ctx):
    client = ctx.client()
    id = client.start_script("import time\ntime.sleep(100)")
    client.cancel(id)
    client.cancel(id)
    client.close()
    ctx.healthy()


@test
def dies_within_a_line(ctx):
    for piece in (b"{", b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ru',
                  b'{"jsonrpc":"2.0","id":7,"method":"ping"}'):
        raw = ctx.raw()
        raw.send_raw(piece)
        raw.flush()
        raw.close()
    ctx.healthy()


@test
def dies_without_reading_a_large_answer(ctx):
    for _ in range(5):
        client = ctx.client()
        for _ in range(8):
            client.start_script("print('x' * 1000000)")
        client.flush()
        client.close()
    ctx.healthy()


@test
def an_id_in_use_is_refused(ctx):
    """The same id while the first is open: an error, and the first call continues."""
    raw = ctx.raw()
    call = (b'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"run_script",'
            b'"arguments":{"script":"import time\\ntime.sleep(0.5)\\nprint(1)"}}}\n')
    raw.send_raw(call + call)
    first, second = raw.recv(), raw.recv()
    kinds = sorted("error" if "error" in m else "result" for m in (first, second))
    equal(kinds, ["error", "result"], "answers")
    raw.close()
    with ctx.client() as client, contextlib.suppress(RpcError):
        client.run("1")


main(__doc__, modules=FEW_MODULES)
