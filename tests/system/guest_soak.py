# SPDX-License-Identifier: Apache-2.0
"""Three tenants for a long time: two work honestly, one runs hostile scripts of the corpora, one
after the other. No honest client fails or waits long, and the service stays as it was.

Waits are measured here and judged, which no other test does: how long another tenant can make one
wait is what is promised. They are compared with those of the same calls without the third tenant,
in the same machine."""

import collections
import contextlib
import json
import multiprocessing
import os
import random
import threading
import time

import guest_tools
from guest_packages import configured
from guest_tools import (ALICE, BOB, CGROUP, INTEGRATION, client, main_pid, pids, read, seconds,
                         show, test)
from harness import equal
from mcpclient import Closed, RpcError
from repl import Session
from waits import Timeout

MALLORY = 4666
ALONE = 0.15		# the part of the time in which the honest ones are by themselves
REST_S = 1.0		# between two calls of one tenant
LOOK_S = 15
# So that what is held without calls does not depend on when: workers, and up to 16 MiB a tenant of
# what scripts have left.
CONFIG = "[pool]\nidle_seconds = 2\n[results]\nkeep_seconds = 2\n"
CORPORA = ("/payload/corpus/hostile-public.jsonl",
           os.path.join(os.path.dirname(INTEGRATION), "corpus", "hostile-own.jsonl"))
MORE_MEMORY = 8 << 20	# at the end than before
WAITS = 3		# times the alone p99
KINDS = ("hello", "work", "file", "cell")
CLIENT = "/sys/fs/cgroup/hostile-client"	# beside systemd's slices, as another user's is


Took = collections.namedtuple("Took", "phase kind took waited beside")	# seconds


class Honest:
    """One tenant that calls, checks each answer and notes how long it took."""

    def __init__(self, uid):
        self.uid, self.took, self.wrong = uid, [], []
        self.phase, self.beside, self.bound = "alone", None, None

    def calls(self, session, n):
        yield "hello", lambda c: c.run("print('hello %d')" % n, seconds(120)), "hello %d\n" % n
        yield "work", lambda c: c.run("print(sum(i * i for i in range(100000)))",
                                      seconds(120)), "333328333350000\n"
        yield "file", lambda c: c.run("open('a.txt', 'w').write('x' * 1000)\n"
                                      "print(len(open('a.txt').read()))", seconds(120)), "1000\n"
        yield "cell", lambda c: session.well("n + %d" % n, seconds(120)), str(40 + n)

    def live(self, ended):
        try:
            with client(self.uid, 120) as c:
                session = Session(c)
                session.well("n = 40", seconds(120))
                n = 0
                while not ended.is_set():
                    self.round(c, session, n, ended)
                    n += 1
                session.well(close=True)
        except Exception as e:
            self.wrong.append("%s: %s" % (type(e).__name__, e))

    def round(self, c, session, n, ended):
        for kind, call, wanted in self.calls(session, n):
            started, phase = time.monotonic(), self.phase
            o = call(c)
            self.note(phase, kind, time.monotonic() - started, o.cpu_ms / 1000)
            answer = o.result["repr"] if kind == "cell" else o.stdout
            if answer != wanted:
                self.wrong.append("%s gave %r, not %r" % (kind, answer, wanted))
            ended.wait(REST_S)


    def note(self, phase, kind, took, ran):
        """Keeps how long a call took, and how much of that it waited: where processors are emulated
        its own run varies more than what others make it wait."""
        beside = self.beside() if phase == "together" else None
        self.took.append(Took(phase, kind, took, max(0, took - ran), beside))
        if phase == "alone":
            return
        if not self.bound:
            self.bound = {k: bound_of([self], k) for k in KINDS}
        if took > self.bound[kind]:
            say("long: %s of tenant %d, %.0f ms, of which it ran %.0f ms, beside %s"
                % (kind, self.uid, took * 1000, ran * 1000, beside))


class Hostile:
    """Runs scripts in an order that the seed says, and starts again when it is thrown out. In a
    process of its own: reading long answers must not keep the honest ones from theirs."""

    def __init__(self, seed):
        self.random, self.runs, self.escaped, self.by_status = random.Random(seed), 0, [], {}
        self.scripts = []
        for path in CORPORA:
            for line in read(path).splitlines():
                case = json.loads(line)
                # What those of compat report is a thing that this kernel cannot do.
                if "script" in case and case["category"] != "compat":
                    self.scripts.append(case)
        self.begun, self.ended = multiprocessing.Event(), multiprocessing.Event()
        self.at, self.told = multiprocessing.Value("i", 0), multiprocessing.SimpleQueue()
        self.process = multiprocessing.Process(target=self.live, daemon=True)
        self.process.start()	# before there are threads

    def live(self):
        os.makedirs(CLIENT, exist_ok=True)
        with open(os.path.join(CLIENT, "cgroup.procs"), "w") as f:
            f.write("0")
        self.begun.wait()
        while not self.ended.is_set():
            with contextlib.suppress(Closed, Timeout, OSError, AssertionError), \
                    client(MALLORY, 120) as c:
                while not self.ended.is_set():
                    self.attack(c)
        self.told.put((self.runs, self.escaped, self.by_status))

    def attack(self, c):
        self.at.value = self.random.randrange(len(self.scripts))
        case = self.scripts[self.at.value]
        try:
            o = c.run(case["script"], seconds(120), timeout_seconds=self.random.choice((5, 10, 20)))
        except RpcError as e:
            self.count("refused: %d" % e.code)
            return
        self.count(o.status)
        if "ESCAPED" in o.everything() and case.get("level") == "must":
            self.escaped.append(case["id"])

    def count(self, status):
        self.runs += 1
        self.by_status[status] = self.by_status.get(status, 0) + 1

    def current(self):
        return self.scripts[self.at.value]["id"]

    def end(self):
        self.begun.set()
        self.ended.set()
        self.runs, self.escaped, self.by_status = self.told.get()
        self.process.join()
        os.rmdir(CLIENT)


def look(pid):
    """What the service holds: memory and descriptors of the supervisor, all processes, all cgroups.
    The service is not asked for through systemctl: in emulation that takes the processor for as
    long as some calls, which would wait for it."""
    rss = next(int(line.split()[1]) for line in read("/proc/%d/status" % pid).splitlines()
               if line.startswith("VmRSS"))
    cgroups = sum(1 for _ in os.walk(CGROUP))
    return {"rss": rss << 10, "fds": len(os.listdir("/proc/%d/fd" % pid)),
            "processes": len(pids()), "cgroups": cgroups}


def processor_s():
    """What each has used of the processor, in seconds, and its weight."""
    groups = {"supervisor": CGROUP + "/supervisor", "hostile client": CLIENT}
    groups.update(("tenant %d" % uid, CGROUP + "/tenants/%d" % uid)
                  for uid in (ALICE, BOB, MALLORY))
    used = dict.fromkeys(groups, (0, 0))
    for name, path in groups.items():
        with contextlib.suppress(FileNotFoundError):	# a tenant that does not call
            used[name] = (int(read(path + "/cpu.stat").split()[1]) / 1e6,
                          int(read(path + "/cpu.weight")))
    return used


def settled(pid):
    """The same without calls, when the warm workers were given up: the least of some measurements."""
    looks = []
    for _ in range(10):
        time.sleep(seconds(1))	# what has ended is cleared away by then, or it is a leak
        looks.append(look(pid))
    return {key: min(one[key] for one in looks) for key in looks[0]}


def percentile(times, part):
    times = sorted(times)
    return times[min(len(times) - 1, int(len(times) * part))]


def say(text):
    print("    " + text, flush=True)


def look_on(until, pid, honest, most):
    """Waits until then, or until something went wrong, and keeps the most that was held."""
    pause = threading.Event()
    while time.monotonic() < until and not any(h.wrong for h in honest):
        pause.wait(min(LOOK_S, max(0, until - time.monotonic())))
        for key, value in look(pid).items():
            most[key] = max(most.get(key, 0), value)


def of(honest, phase, kind):
    return [t for h in honest for t in h.took if (t.phase, t.kind) == (phase, kind)]


def bound_of(honest, kind):
    return WAITS * percentile([t.took for t in of(honest, "alone", kind)], 0.99)


def compare(honest):
    """Calls that waited longer than they may."""
    late = []
    for kind in KINDS:
        bound, alone, together = (bound_of(honest, kind), of(honest, "alone", kind),
                                  of(honest, "together", kind))
        late += ["%s %.0f ms, not %.0f, beside %s" % (kind, t.waited * 1000, bound * 1000, t.beside)
                 for t in together if t.waited > bound]
        say("%s: %d calls alone, p50 %.0f ms, p99 %.0f ms; %d together, p50 %.0f ms, p99 %.0f ms, "
            "most %.0f ms, %d longer than %.0f ms, most that one waited %.0f ms"
            % (kind, len(alone), percentile([t.took for t in alone], 0.5) * 1000,
               percentile([t.took for t in alone], 0.99) * 1000, len(together),
               percentile([t.took for t in together], 0.5) * 1000,
               percentile([t.took for t in together], 0.99) * 1000,
               max(t.took for t in together) * 1000, sum(t.took > bound for t in together),
               bound * 1000, max(t.waited for t in together) * 1000))
    return late


def soak(pid, honest, hostile, most):
    """The time alone and the time together."""
    ended = threading.Event()
    threads = [threading.Thread(target=h.live, args=[ended]) for h in honest]
    for t in threads:
        t.start()
    look_on(time.monotonic() + guest_tools.soak * ALONE, pid, honest, {})
    for h in honest:
        h.beside, h.phase = hostile.current, "together"
    before = processor_s()
    hostile.begun.set()
    look_on(time.monotonic() + guest_tools.soak * (1 - ALONE), pid, honest, most)
    for name, (used, weight) in processor_s().items():
        say("%s: %.1f s of processor time together, weight %d" % (name, used - before[name][0],
                                                                   weight))
    hostile.end()
    ended.set()
    for t in threads:
        t.join()


@test
def a_soak_with_a_hostile_tenant():
    seed, most = random.randrange(1 << 32), {}
    honest, hostile = [Honest(ALICE), Honest(BOB)], Hostile(seed)
    with configured(CONFIG, "[Unit]\n"):
        for uid in (ALICE, BOB, MALLORY):
            with client(uid) as c:
                equal(c.run("print(1)", seconds(60)).stdout, "1\n")
        restarts, pid = show("NRestarts"), main_pid()
        before = settled(pid)
        soak(pid, honest, hostile, most)
        after = settled(pid)
        say("seed %d, %d hostile runs: %s" % (seed, hostile.runs, ", ".join(
            "%s %d" % item for item in sorted(hostile.by_status.items()))))
        say("before %s; most %s; after %s" % (before, most, after))
        for h in honest:
            assert not h.wrong, "tenant %d: %s" % (h.uid, h.wrong[:3])
        late = compare(honest)
        assert hostile.runs > 0, "nothing hostile was run"
        assert not hostile.escaped, hostile.escaped
        equal((show("NRestarts"), main_pid()), (restarts, pid), "the service was restarted")
        for key, more in (("fds", 2), ("processes", 2), ("cgroups", 2), ("rss", MORE_MEMORY)):
            assert after[key] <= before[key] + more, key
        assert not late, "%d calls waited long: %s" % (len(late), "; ".join(late[:40]))
    return "%d honest calls" % sum(len(h.took) for h in honest)
