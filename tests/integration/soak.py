#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""200 concurrent clients, 20,000 executions of hello-world (--count): nothing is lost, and no
descriptor, cgroup, process, uid or memory leaks, counted before and after."""

import os
import select
import time

from harness import SOMEBODY, equal, main, test
from mcpclient import LEGACY, MODERN
from supervisor import descendants, read_text
from waits import until

CLIENTS = 200
COUNT = 20000


class Counts:
    """What the service holds. Other than for memory, equal before and after is the aim."""

    def __init__(self, ctx):
        service = ctx.service
        self.fds = service.fds()
        self.cgroups = len(service.cgroups())
        below = [pid for pid, _ in descendants(service.pid)]
        self.processes = len(below)
        self.zombies = sum(1 for pid in below
                           if "\nState:\tZ" in (read_text("/proc/%d/status" % pid) or ""))
        self.rss = service.rss_bytes()
        self.uids = set()
        for pid in below:
            for line in (read_text("/proc/%d/status" % pid) or "").splitlines():
                if line.startswith("Uid:"):
                    self.uids.add(line.split()[1])

    def __str__(self):
        return "%s descriptors, %d cgroups, %d processes, %d uids, %.1f MiB" % (
            self.fds, self.cgroups, self.processes, len(self.uids), self.rss / 1048576)


def hello(n):
    return "print('hello %d')" % n


def run_all(ctx, clients, count):
    """Each client has one call in flight until count are done; returns the latencies."""
    poll = select.poll()
    by_fd, asked, took = {}, {}, []
    begun = done = 0

    def ask(client):
        nonlocal begun
        asked[client.rfd] = (client.start_script(hello(begun)), begun, time.monotonic())
        begun += 1
    for client in clients:
        by_fd[client.rfd] = client
        poll.register(client.rfd, select.POLLIN)
        ask(client)
    def turn(left):
        nonlocal done
        for fd, event in poll.poll(left * 1000):
            client = by_fd[fd]
            client.handle({fd: event})
            assert not client.eof, "a connection was closed"
            id, n, started = asked[fd]
            if id not in client.arrived:
                continue
            o = client.outcome(id)
            equal((o.status, o.stdout), ("ok", "hello %d\n" % n), repr(o))
            client.arrived.clear()
            took.append(time.monotonic() - started)
            done += 1
            if begun < count:
                ask(client)
    until(lambda: "%d are done, not %d" % (count, done), lambda: done >= count,
          ctx.seconds(60 + count / 20), turn)
    return sorted(took)


CONFIG = "[pool]\nidle_seconds = 2\n"


@test(alone=True, private=True)
def nothing_leaks(ctx):
    count = ctx.count(COUNT)
    with ctx.private(CONFIG) as service:
        ctx.service, ctx.socket, ctx.pid = service, service.socket, service.pid

        def connect():
            return [ctx.client((LEGACY[-1], MODERN)[i % 2],
                               SOMEBODY if i % 3 == 0 and os.getuid() == 0 else None)
                    for i in range(CLIENTS)]
        # Once before counting, so that everything that is made once has been made.
        clients = connect()
        run_all(ctx, clients, max(CLIENTS, count // 20))
        for client in clients:
            client.close()
        service.wait_idle(ctx.seconds(60))
        before = Counts(ctx)
        clients = connect()
        started = time.monotonic()
        took = run_all(ctx, clients, count)
        seconds = time.monotonic() - started
        for client in clients:
            client.close()
        service.wait_idle(ctx.seconds(60))
        after = Counts(ctx)
        text = "%d executions in %.1f s, %.0f per second, p50 %.0f ms, p99 %.0f ms; before: %s; " \
            "after: %s" % (count, seconds, count / seconds, took[len(took) // 2] * 1000,
                           took[len(took) * 99 // 100] * 1000, before, after)
        print("        " + text, flush=True)
        if before.fds is not None:
            assert after.fds <= before.fds + 4, "descriptors: " + text
        assert after.cgroups <= before.cgroups + 2, "cgroups: " + text
        assert after.processes <= before.processes + 2, "processes: " + text
        assert after.zombies <= 1, "zombies: %d" % after.zombies
        assert after.rss <= before.rss + (16 << 20), "memory: " + text
        with ctx.client() as client:		# every uid can still be had
            ids = [client.start_script("import time\ntime.sleep(0.2)") for _ in range(60)]
            for id in ids:
                equal(client.outcome(id).status, "ok", "status")


main(__doc__)
