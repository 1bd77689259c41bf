# SPDX-License-Identifier: Apache-2.0
"""One tenant takes all that it can get of one row of policy/finite.c after the other, and another
tenant's calls are measured meanwhile: each kind of call may take three times what it takes alone."""

import contextlib
import multiprocessing
import os
import threading
import time

import guest_tools
from guest_packages import configured
from guest_tools import ALICE, BOB, SOCKET, client, seconds, test
from mcpclient import LEGACY, Client, Closed
from repl import Session
from waits import Timeout, until

CAROL = 4003
CLIENT = "/sys/fs/cgroup/taking-client"	# beside systemd's slices, as another user's is
ROUND_S = 5		# so many of --soak are one round of calls: 60 rounds unless told otherwise
TIMES = 3
TABLE = 64
CONFIG = """[service]
sessions_max = %d
sessions_per_tenant = %d
[pool]
workers_max = 48
tenant_running_max = 48
warm_max = 16
[tenant uid:%d]
policy.run_script = approve
""" % (TABLE, TABLE, CAROL)
SLEEPS = "import threading; threading.Event().wait()"
BUSY = "while True: pass"
THREADS = """import threading
ever = threading.Event()
try:
    while True:
        threading.Thread(target=ever.wait, daemon=True).start()
except RuntimeError:
    ever.wait()
"""
LONG = "for _ in range(16): print('x' * 60000)"
FILE = "open('left.txt', 'w').write('x' * (1 << 20))\nNone"


# ---- who takes ----

def greet(stack, uid):
    """A connection; None: it was not admitted."""
    c = stack.enter_context(Client.connect(SOCKET, None, uid, seconds(60)))
    c.send({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": LEGACY[-1], "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}})
    if "result" not in c.recv():
        return None
    c.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    return c


def call(c, n, script, **arguments):
    c.send({"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": {
        "name": "run_script", "arguments": dict(arguments, script=script)}})


def take_connections(stack, ready):
    taken = 0
    for _ in range(TABLE):
        taken += greet(stack, ALICE) is not None
    assert 0 < taken < TABLE, taken
    ready.set()
    threading.Event().wait()


def all_at_once(script, **arguments):
    def take(stack, ready):
        c = greet(stack, ALICE)
        for n in range(TABLE):
            call(c, n + 1, script, timeout_seconds=600, **arguments)
        c.flush(seconds(60))
        ready.set()
        threading.Event().wait()
    return take


def over_and_over(script, uid=ALICE, **arguments):
    """Always several calls on the way, for ever."""
    def take(stack, ready):
        c = greet(stack, uid)
        for n in range(1, 1 << 30):
            more = {name: value % n if isinstance(value, str) else value for name, value in arguments.items()}
            call(c, n, script.replace("%d", str(n)), **more)
            if n > 8:
                c.recv()
                ready.set()
    return take


def take_sessions(stack, ready):
    c = stack.enter_context(client(ALICE))
    for _ in range(TABLE):
        id = c.request("tools/call", {"name": "run_repl", "arguments": {"code": "x = 1"}})
        if c.outcome(id, seconds(120)).status != "ok":
            break
    ready.set()
    threading.Event().wait()


def never_read(stack, ready):
    """Answers that nobody reads."""
    held = [greet(stack, ALICE) for _ in range(4)]
    for n in range(1, 200):
        for c in held:
            call(c, n, LONG)
            with contextlib.suppress(Timeout, OSError):
                c.flush(seconds(1))
        if n > 8:
            ready.set()
    threading.Event().wait()


ROWS = (
    ("connections", take_connections),
    ("workers: sleeping scripts", all_at_once(SLEEPS)),
    ("processor: busy scripts", all_at_once(BUSY, cpu_seconds=600)),
    ("tasks: threads", all_at_once(THREADS, pids=512)),
    ("sessions of run_repl", take_sessions),
    ("calls: short scripts", over_and_over("%d")),
    ("unread output", never_read),
    ("kept results", over_and_over(FILE)),
    ("calls with a key", over_and_over("%d", idempotency_key="key-%d")),
    ("jobs", over_and_over("%d", background=True)),
    ("approvals", over_and_over("%d", CAROL)),
)


def run_taker(take, ready):
    with open(CLIENT + "/cgroup.procs", "w") as f:
        f.write(str(os.getpid()))
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(Closed, OSError):
            take(stack, ready)
        ready.set()
        threading.Event().wait()


@contextlib.contextmanager
def taken(take):
    os.makedirs(CLIENT, exist_ok=True)
    ready = multiprocessing.Event()
    taker = multiprocessing.Process(target=run_taker, args=(take, ready), daemon=True)
    taker.start()
    try:
        until("it has taken what it can get", ready.is_set, seconds(120))
        yield
        assert taker.is_alive(), "it has failed"
    finally:
        taker.kill()
        taker.join()
        os.rmdir(CLIENT)


# ---- who is measured ----

def answered(c, session, n):
    """The kinds of calls."""
    yield "ping", lambda: c.ask("ping", timeout=seconds(60)) == {}
    yield "script", lambda: c.run("print(%d)" % n, seconds(60)).stdout == "%d\n" % n
    yield "cell", lambda: session.value("n + %d" % n) == str(40 + n)
    yield "connection", lambda: connected(n)


def connected(n):
    with client(BOB) as c:
        return c.run("print(%d)" % n, seconds(60)).status == "ok"


def measure(c, session, rounds):
    took = {}
    for n in range(rounds):
        for kind, make in answered(c, session, n):
            begun = time.monotonic()
            assert make(), kind
            took.setdefault(kind, []).append(time.monotonic() - begun)
    return took


def p99(times):
    return sorted(times)[-(-len(times) * 99 // 100) - 1] * 1000


def middle(times):
    return sorted(times)[len(times) // 2] * 1000


@test
def shares_leave_others_their_time():
    lines, late, rounds = [], [], max(10, int(guest_tools.soak / ROUND_S))
    with configured(CONFIG), client(BOB, 120) as c:
        session = Session(c)
        session.well("n = 40")
        measure(c, session, 5)
        for name, take in ROWS:
            # Before and after, because a busy machine is now faster, now slower.
            alone = measure(c, session, rounds // 2)
            with taken(take):
                beside = measure(c, session, rounds)
            until("the service has room again", lambda: connected(0), seconds(120))
            for kind, times in measure(c, session, rounds - rounds // 2).items():
                alone[kind] += times
            cells = []
            for kind, times in alone.items():
                one, other = p99(times), p99(beside[kind])
                cells.append("%.0f, %.0f; p50 %.0f, %.0f" % (
                    one, other, middle(times), middle(beside[kind])))
                if other > TIMES * one:
                    late.append("%s: a %s took %.0f ms, alone %.0f" % (name, kind, other, one))
            lines.append("| %s | %s |" % (name, " | ".join(cells)))
            print("    " + lines[-1], flush=True)
    assert not late, "; ".join(late)
    return "%d rows" % len(ROWS)
