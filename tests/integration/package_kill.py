#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""kill -9 in the middle of installations, at points of their own work: the store and the audit
log are whole afterwards, every time.

A first installation shows what there is to be seen of one: requests at the index, lines of the
log and the audit log, progress, files in the store. Each round then kills at one of these events.
"""

import collections
import contextlib
import os
import random
import select
import signal
import subprocess
import sys

from harness import FEW_MODULES, equal, main, test
from mcpclient import id_key
from package_index import NGINX, Index
from package_store import OPEN, config, install, keeper_of, leftovers, new_store, verify
from supervisor import Supervisor, comm, descendants
from waits import IN_CREATE, IN_MOVED_TO
from watch import Watch

ROUNDS, MOST = 50, 200	# --count for others


class Round:
    """A service with a store and an audit log of before, and an installation in it."""

    def __init__(self, ctx, place, number):
        self.ctx, self.store = ctx, os.path.join(place, "store")
        self.audit = os.path.join(place, "log", "audit")
        self.packages = ["wide", "serial==%d" % number]
        self.seen = collections.Counter()
        self.supervisor = Supervisor(ctx.options.build, config(
            index.url, self.store, OPEN + "[audit]\nfile = %s\njournal = no\n" % self.audit))

    def __enter__(self):
        self.supervisor.start()
        self.client = self.ctx.client(path=self.supervisor.socket)
        self.watch = Watch()
        self.watch.add(os.path.join(index.dir, "access.log"), "request")
        self.watch.add(self.supervisor.log_path, "log")
        self.watch.add(self.audit, "audit")
        self.watch.add(self.store, "store", IN_CREATE | IN_MOVED_TO)
        return self

    def __exit__(self, kind, error, trace):
        self.watch.close()
        self.client.close()
        self.supervisor.explain(error)
        with contextlib.suppress(AssertionError):
            self.supervisor.stop(signal.SIGKILL)
        self.supervisor.remove()

    def install_until(self, kind=None, number=0, after=0):
        """Until the number-th event of a kind, and then some; or to its end. True: it is
        over."""
        client = self.client
        id = client.request("tools/call", {
            "name": "install_package", "_meta": {"progressToken": 1},
            "arguments": {"packages": self.packages}})
        while id_key(id) in client.pending:
            poll = select.poll()
            client.register(poll)
            poll.register(self.watch.fd, select.POLLIN)
            events = dict(poll.poll(self.ctx.seconds(60) * 1000))
            assert events, "nothing happens any more\n" + self.supervisor.log()[-3000:]
            client.handle(events)
            self.seen.update(["progress"] * len(client.notices))
            client.notices.clear()
            for one in self.watch.read():
                self.seen[one] += 1
                if one == kind and self.seen[kind] >= number:
                    break
            if kind and self.seen[kind] >= number:
                # The one thing that has no event: the time between two of them.
                select.select([], [], [], after)
                return id
        return None

    def victim(self, dice):
        """Half of them are the service itself; else something that it has started. vital: with
        which all of it ends."""
        below = [pid for pid, _ in descendants(self.supervisor.pid)]
        self.vital = {self.supervisor.pid}
        keeper = keeper_of(self.supervisor.pid)
        own = [keeper[0]] + [pid for pid, _ in descendants(keeper[0])] if keeper else []
        return dice.choice([[self.supervisor.pid], [self.supervisor.pid], own or below,
                            below or own])

    def verify_audit(self):
        done = subprocess.run([os.path.join(self.ctx.options.build, "mcp-python"), "audit",
                               "verify", "--file", self.audit], capture_output=True, text=True,
                              timeout=self.ctx.seconds(60))
        equal(done.returncode, 0, done.stdout + done.stderr)


@test(private=True)
def killed_at_any_point_everything_is_whole(ctx):
    rounds = min(ctx.count(ROUNDS), MOST)
    seed = random.randrange(1 << 32)
    dice = random.Random(seed)
    known, killed = set(), collections.Counter()
    print("        seed %d" % seed, flush=True)
    with new_store() as store:
        place = os.path.dirname(store)
        os.mkdir(os.path.join(place, "log"))
        os.chmod(os.path.join(place, "log"), 0o777)
        with Round(ctx, place, 0) as one:
            equal(one.install_until(), None)
            events = {kind: n for kind, n in one.seen.items() if n}
        assert {"request", "log", "audit", "store", "progress"} <= set(events), events
        for i in range(1, rounds + 1):
            kind = dice.choice(sorted(events))
            number, after = dice.randint(1, events[kind]), dice.choice((0, 0, 0.02 * dice.random()))
            where = "seed %d, round %d: %s %d of %d" % (seed, i, kind, number, events[kind])
            try:
                with Round(ctx, place, i) as one:
                    id = one.install_until(kind, number, after)
                    victim = dice.choice(one.victim(dice))
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(victim, signal.SIGKILL)
                    killed[kind] += 1
                    if victim not in one.vital:
                        if id is not None:
                            answer = one.client.wait(id)["structuredContent"]
                            assert answer["status"] in ("ok", "error"), answer
                        o = one.client.run("print(1)")
                        if o.status == "killed":    # its warm worker was the one
                            o = one.client.run("print(1)")
                        equal((o.status, o.stdout), ("ok", "1\n"), repr(o))
                verify(store, known)
                one.verify_audit()
            except BaseException:
                print("        " + where, flush=True)
                raise
        with Round(ctx, place, rounds) as one:
            answer = install(one.client, *one.packages)
            equal(answer["status"], "ok", answer)
            o = one.client.run("import wide, serial; print(serial.VERSION)",
                               dependencies=one.packages)
            equal(o.stdout, "%d\n" % rounds)
            equal(leftovers(store), [])
        made = verify(store)
        one.verify_audit()
    return "%d rounds (%s), %d environments" % (
        rounds, ", ".join("%s %d" % pair for pair in sorted(killed.items())), made)


if not os.path.exists(NGINX):
    print("SKIPPED all: no nginx here\n0 passed, 0 failed, 1 skipped")
    sys.exit(1 if os.environ.get("CI") == "true" else 0)
with Index() as index:
    index.add("wide", "1.0", {"wide/%s.py" % ("__init__" if i == 0 else "m%d" % i):
                              "x = %r\n" % ("y" * 2000) for i in range(300)})
    for version in range(MOST + 1):
        index.add("serial", str(version))
    main(__doc__, modules=FEW_MODULES)
