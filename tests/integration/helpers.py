#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The helper processes of a service: each is made again when it is lost, and no tenant waits for
one that stands still."""

import contextlib
import os
import signal
import time

import operate
from files import WRITE, files_of, is_there, place
from harness import FEW_MODULES, equal, main, test, tests
from repl import Session
from supervisor import HELPERS, Supervisor, comm, descendants, wait_gone
from waits import until

tests.clear()	# those of the other suites

LOSS_S = 5	# within this time a lost helper is made again
BUSY = 4
ROUND_S = 0.2	# from one call to the next, while a helper stands still


def helpers_of(s):
    """By name: the process ids, oldest first."""
    found = {name: [] for name in HELPERS}
    for pid, _ in descendants(s.pid):
        if comm(pid) in found:
            found[comm(pid)].append(pid)
    return {name: sorted(pids) for name, pids in found.items()}


@contextlib.contextmanager
def served(ctx):
    """A service with all helpers."""
    with place() as store, operate.Directory() as d, \
            ctx.private(d.config("[files]\ndirectory = %s\n" % store)) as s:
        yield s, d, store


def kill_zygotes(s):
    for pid, _ in descendants(s.pid):
        if comm(pid) == "python-zygote":
            os.kill(pid, signal.SIGKILL)


def states(ctx, d):
    return {h["helper"]: h for h in operate.status(ctx, d)["helpers"]}


@test(private=True)
def a_killed_helper_is_made_again(ctx):
    """Each of them, while scripts run: no call notices it, and the supervisor is the same."""
    with served(ctx) as (s, d, _), ctx.client(path=s.socket) as client, ctx.client(path=s.socket) as other:
        supervisor = s.pid
        session = Session(client)
        session.well("x = 41")
        for name in HELPERS:
            running = [client.start_script("import time\nprint('x', flush=True)\ntime.sleep(1)\nprint('y')")
                       for _ in range(BUSY)]
            other.run("1")
            old = helpers_of(s)[name]
            os.kill(old[0], signal.SIGKILL)
            killed = time.monotonic()
            until("%s is made again" % name, lambda: len(helpers_of(s)[name]) == len(old) and
                  old[0] not in helpers_of(s)[name], ctx.seconds(LOSS_S))
            took = time.monotonic() - killed
            print("   ", name, "again after %.2f s" % took)
            s.wait_logged("helper-made helper=" + name.partition("-")[2])
            for call in running:
                o = client.outcome(call)
                equal((o.status, o.stdout), ("ok", "x\ny\n"), name)
            equal(client.run("print(2)").stdout, "2\n", name)
        for name in HELPERS:
            seen = states(ctx, d)[name.partition("-")[2]]
            equal((seen["state"], seen["lost"]), ("up", 1), name)
        text = operate.command(ctx, "metrics", "--admin-socket", d.socket).stdout
        for name in HELPERS:
            assert 'mcp_python_helper_up{helper="%s"} 1\n' % name.partition("-")[2] in text, text
            assert 'mcp_python_helper_losses_total{helper="%s"} 1\n' % name.partition("-")[2] in text, text
        # What they do, they do again: a zygote is started, a file is kept, memory is sampled.
        kill_zygotes(s)
        equal(client.run("print(3)").stdout, "3\n")
        uri = files_of(client.run(WRITE % ("large.bin", 9)))["large.bin"]["uri"]
        assert is_there(client, uri)
        equal(session.well("print(x + 1)").stdout, "42\n")
        equal(s.pid, supervisor)


@test(private=True)
def a_stopped_helper_delays_nobody(ctx):
    """Tenants get their answers while it stands still, and afterwards another one is there."""
    with served(ctx) as (s, _, _), ctx.client(path=s.socket) as client, ctx.client(path=s.socket) as other:
        busy = client.start_script("import time\ntime.sleep(20)\nprint('y')", timeout_seconds=300)
        client.run("1")
        for name in HELPERS:
            old, is_asked = helpers_of(s)[name][0], name in ("mcp-usage", "mcp-launcher")
            # Whoever is asked meanwhile is replaced, after five seconds.
            slowest, rounds, end = 0, 0, time.monotonic() + (6 if is_asked else 2)
            os.kill(old, signal.SIGSTOP)
            try:
                if name == "mcp-launcher":	# it is asked only then
                    kill_zygotes(s)
                while time.monotonic() < end:
                    began = time.monotonic()
                    equal(other.ask("ping"), {}, "ping")
                    slowest = max(slowest, time.monotonic() - began)
                    rounds += 1
                    if name != "mcp-launcher":
                        equal(other.run("print(1)").stdout, "1\n", name)
                    time.sleep(ROUND_S)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(old, signal.SIGCONT)
            print("   ", name, "stopped: %d pings, slowest %.0f ms" % (rounds, slowest * 1000))
            assert slowest < ctx.seconds(1), "%s: a ping took %.2f s" % (name, slowest)
            equal(other.run("print(2)").stdout, "2\n", name)
            if is_asked:
                assert old not in helpers_of(s)[name], name
        equal(client.outcome(busy, ctx.seconds(120)).status, "ok")


@test(private=True)
def limits_hold_after_the_usage_helper_was_lost(ctx):
    """Without controllers they are sampled, by the new helper too."""
    with ctx.private() as s, ctx.client(path=s.socket) as client:
        os.kill(helpers_of(s)["mcp-usage"][0], signal.SIGKILL)
        s.wait_logged("helper-made helper=usage")
        o = client.run("import os\nfor _ in range(3):\n    if os.fork() == 0:\n"
                       "        x = bytearray(60 << 20)\n        import time; time.sleep(60)\n"
                       "import time; time.sleep(60)", ctx.seconds(60), memory_mb=128)
        equal(o.status, "memory_limit", o)


@test(private=True)
def a_helper_that_cannot_be_made(ctx):
    """It is tried again for ever; meanwhile everybody is told that it is away."""
    with served(ctx) as (s, d, store), ctx.client(path=s.socket) as client:
        uri = files_of(client.run(WRITE % ("large.bin", 9)))["large.bin"]["uri"]
        above, aside = os.path.dirname(store), os.path.dirname(store) + ".aside"
        os.rename(above, aside)
        try:
            os.kill(helpers_of(s)["mcp-files"][0], signal.SIGKILL)
            until("status says that it is away", lambda: states(ctx, d)["files"]["state"] == "away")
            assert "files to be kept or read wait" in states(ctx, d)["files"]["trouble"]
            shown = operate.command(ctx, "status", "--admin-socket", d.socket).stdout
            assert "files: AWAY" in shown, shown
            text = operate.command(ctx, "metrics", "--admin-socket", d.socket).stdout
            assert 'mcp_python_helper_up{helper="files"} 0\n' in text, text
            o = client.run(WRITE % ("more.bin", 9), ctx.seconds(90))
            equal(o.status, "ok", o)
            said = files_of(o)["more.bin"]
            assert not said["kept"] and "the service's store of files is away" in said["reason"], said
        finally:
            os.rename(aside, above)
        until("it is back", lambda: states(ctx, d)["files"]["state"] == "up")
        assert is_there(client, uri)
        o = client.run(WRITE % ("more.bin", 9))
        assert "uri" in files_of(o)["more.bin"], o


@test(private=True)
def without_fork_servers_the_service_ends(ctx):
    """Only when they are lost at the same time, and something is to be made: calls are answered."""
    s = Supervisor(ctx.options.build)
    with s, ctx.client(path=s.socket) as client:
        running = client.start_script("import time\nprint('x', flush=True)\ntime.sleep(300)", timeout_seconds=400)
        client.run("1")
        below = descendants(s.pid)
        found = helpers_of(s)
        equal(len(found["mcp-forker"]), 2)
        for pid in found["mcp-forker"]:
            os.kill(pid, signal.SIGSTOP)
        for pid in (*found["mcp-forker"], found["mcp-directory"][0]):
            os.kill(pid, signal.SIGKILL)
        equal(client.outcome(running, ctx.seconds(30)).status, "cancelled", "status")
        equal(s.process.wait(ctx.seconds(15)), 1, "exit status")
        equal(wait_gone(below, ctx.seconds(10)), [], "left")
        assert "forkers-lost" in s.log(), s.log()
        s.process = None


if __name__ == "__main__":
    main(__doc__, modules=FEW_MODULES)
