#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The helper processes of a service: each is made again when it is lost, and no tenant waits for
one that stands still."""

import contextlib
import os
import re
import signal
import threading
import time

import fuse
import operate
import script_tools
from egress import out
from files import WRITE, files_of, is_there, place
from harness import FEW_MODULES, SOMEBODY, equal, main, test, tests
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


# ---- every process of the service, killed and stopped ----

FETCH = """
import urllib.request as u
print(u.urlopen('http://origin.test:%d/hello', timeout=2).status)
"""
TOOL = "import tools\nprint(tools.legacy.words())"
NOTE = "f = open('/volume/data/note', 'a'); f.write('x'); f.close(); print('noted')"


def stdout_of(client, script, want, **more):
    """None: the script has printed that; otherwise all that was answered."""
    o = client.run(script, 60, timeout_seconds=10, **more)
    return None if o.status == "ok" and o.stdout == want else o.everything()


def keeps_a_file(client):
    said = files_of(client.run(WRITE % ("large.bin", 9), 90))["large.bin"]
    return None if "uri" in said else str(said)


def new_worker(client):
    """More at once than are kept warm."""
    ids = [client.start_script("import time\nprint(1)\ntime.sleep(0.5)", timeout_seconds=30) for _ in range(5)]
    outcomes = [client.outcome(id, 60) for id in ids]
    return None if all(o.status == "ok" for o in outcomes) else "".join(o.everything() for o in outcomes)


def new_zygote(client):
    for pid in below_named(client.service, "python-zygote"):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return new_worker(client)


def samples(client):
    """Processor time is shown, and the helper is asked while it runs."""
    return stdout_of(client, "import time\ntime.sleep(0.3)\nprint(1)", "1\n")


# By process: what shows that it works, and what an answer says of it while it does not.
PROCESSES = {
    "mcp-forker": (samples, None),
    "mcp-launcher": (new_zygote, "zygote|ended|start"),
    "mcp-directory": (samples, None),
    "mcp-usage": (samples, None),
    "mcp-files": (keeps_a_file, "store of files is away|stopped"),
    "python-zygote": (new_worker, "zygote|ended|stood still"),
    "python-keeper": (lambda c: stdout_of(c, NOTE, "noted\n", volume="data"),
                      "keeper|volume|store of packages"),
    "python-volume": (lambda c: stdout_of(c, NOTE, "noted\n", volume="data"), "volume"),
    "mcp-python-egre": (lambda c: stdout_of(c, FETCH % out.port, "200\n"), "proxy|network|Remote end|reset|refused|timed out"),
    "mcp-python-tool": (lambda c: stdout_of(c, TOOL, "plain words\n"),
                        "the client of other servers ended|does not run now"),
}


def below_named(s, name):
    return [pid for pid, _ in descendants(s.pid) if comm(pid) == name]


@contextlib.contextmanager
def all_processes(ctx):
    """A service with every kind of process."""
    with script_tools.Servers() as servers, place() as files, fuse.place() as store:
        config = servers.config("legacy") + out.config() + "[files]\ndirectory = %s\n" % files
        with fuse.service(ctx, store, before=config) as s:
            yield s


class Neighbour(threading.Thread):
    """Another tenant, who runs scripts all the time."""

    def __init__(self, client):
        super().__init__()
        self.client, self.over, self.slowest, self.runs, self.wrong = client, False, 0, 0, None

    def run(self):
        while not self.over and not self.wrong:
            began = time.monotonic()
            try:
                o = self.client.run("print(1)", 120)
                self.wrong = None if o.stdout == "1\n" else o.everything()
            except Exception as e:
                self.wrong = repr(e)
            self.slowest = max(self.slowest, time.monotonic() - began)
            self.runs += 1
            time.sleep(ROUND_S / 4)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exc):
        self.over = True
        self.join()


def mended(ctx, s, client, name, number):
    """Loses one process of this name, and uses it until it works. How long that took."""
    works, says = PROCESSES[name]
    until("it works before", lambda: works(client) is None)
    old = below_named(s, name)
    assert old, "there is no %s" % name
    began = time.monotonic()
    os.kill(old[0], number)
    said = []
    while (trouble := works(client)) is not None:
        said.append(trouble)
        assert time.monotonic() - began < ctx.seconds(4 * LOSS_S), (name, said[-1][:1000])
    if name in HELPERS:
        until("another %s" % name, lambda: old[0] not in below_named(s, name) and
              len(below_named(s, name)) == len(old), ctx.seconds(LOSS_S))
    took = time.monotonic() - began
    for trouble in said:
        assert says and re.search(says, trouble), "%s is not named: %.1500s" % (name, trouble)
    until("the lost one is gone", lambda: old[0] not in below_named(s, name), ctx.seconds(LOSS_S))
    return took, len(said)


def every_process_is_mended(ctx, number):
    with all_processes(ctx) as s, ctx.client(path=s.socket) as client, \
            ctx.client(path=s.socket, uid=SOMEBODY if os.getuid() == 0 else None) as other:
        client.service = s
        other.run("1")
        for name in PROCESSES:
            with Neighbour(other) as neighbour:
                took, troubles = mended(ctx, s, client, name, number)
            print("    %s again after %.2f s, %d answers named it; %d runs of a neighbour, slowest %.2f s" % (
                name, took, troubles, neighbour.runs, neighbour.slowest))
            assert took < ctx.seconds(LOSS_S), "%s took %.2f s" % (name, took)
            equal(neighbour.wrong, None, name)
            # Workers are made by these two, for everybody.
            if name not in ("python-zygote", "mcp-launcher"):
                assert neighbour.slowest < ctx.seconds(2), (name, neighbour.slowest)


@test(private=True)
def every_killed_process_is_mended(ctx):
    every_process_is_mended(ctx, signal.SIGKILL)


@test(private=True)
def every_process_that_stopped_while_idle_is_mended(ctx):
    """Whoever needs it then waits for seconds at most. A tenant is connected, or nobody: then a
    server of a volume ends."""
    with all_processes(ctx) as s:
        for name, (works, says) in PROCESSES.items():
            with ctx.client(path=s.socket) if name == "python-volume" else contextlib.nullcontext():
                mended_after_rest(ctx, s, name, works, says)


def mended_after_rest(ctx, s, name, works, says):
    with ctx.client(path=s.socket) as client:
        client.service = s
        until("it works before", lambda: works(client) is None)
        # Without any fork server the service ends, as another test shows.
        old = below_named(s, name)[:1 if name == "mcp-forker" else None]
    assert old, "there is no %s" % name
    for pid in old:
        os.kill(pid, signal.SIGSTOP)
    began = time.monotonic()
    with ctx.client(path=s.socket) as client:
        client.service = s
        while (trouble := works(client)) is not None:
            assert says and re.search(says, trouble), "%s is not named: %.1500s" % (name, trouble)
            assert time.monotonic() - began < ctx.seconds(4 * LOSS_S), (name, trouble[:1000])
    took = time.monotonic() - began
    print("    %s works again after %.2f s" % (name, took))
    assert took < ctx.seconds(LOSS_S), "%s took %.2f s" % (name, took)
    for pid in old:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


@test(private=True)
def every_stopped_process_is_mended(ctx):
    """The service notices by itself that it stands still, and kills it."""
    every_process_is_mended(ctx, signal.SIGSTOP)


if __name__ == "__main__":
    main(__doc__, modules=FEW_MODULES)
