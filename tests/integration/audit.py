#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The audit log of a running service: what is in it, that its chain holds whatever happens to
the service, that changes are found, and what happens when it cannot be written."""

import contextlib
import glob
import hashlib
import json
import os
import pwd
import random
import resource
import signal
import subprocess
import tempfile
import threading
import time

import waits
from audit_log import Log
from harness import FEW_MODULES, SOMEBODY, equal, main, test, tests
from inside import thread_held
from operate import Directory, status
from repl import Session
from terminal import Terminal

tests.clear()	# those of repl.py


@test(private=True)
def an_execution_is_accounted_for(ctx):
    with Log(ctx) as log:
        with ctx.private(log.config()) as s, ctx.client(path=s.socket) as c:
            o = c.run("print('\u00e9')")
            c.run("while True: pass", timeout_seconds=1)
        log.verify()
        mine = log.records("--execution", o.id)
        equal([r["event"] for r in mine], ["execution-started", "execution-ended"])
        equal(mine[0]["source"], "print('\u00e9')")
        equal(mine[0]["sha256"], hashlib.sha256("print('\u00e9')".encode()).hexdigest())
        equal(mine[0]["tenant"], "uid:%d" % os.getuid())
        equal((mine[1]["status"], mine[1]["exit_code"]), ("ok", 0))
        limits = [r for r in log.records() if r["event"] == "limit-hit"]
        equal([r["status"] for r in limits], ["timeout"])
        equal(log.records("--tenant", "uid:4000000"), [])
        equal(log.records("--since", "2999-01-01"), [])
        all = log.records()
        for since in "yesterday", "-1h", "2 hours ago", "2020-01-01", "2020-01-01 12:00":
            equal(log.records("--since", since), all, since)
        equal(log.records("--tenant", pwd.getpwuid(os.getuid()).pw_name),
              log.records("--tenant", "uid:%d" % os.getuid()))
        assert log.records("--tenant", str(os.getuid()))
        for wrong in (("--since", "zzz"), ("--since", "2026-99-99"), ("--since", "10min"),
                      ("--tenant", "nobody-has-this-name")):
            done = subprocess.run([os.path.join(ctx.options.build, "mcp-python"), "audit", "show",
                                   *wrong], capture_output=True, text=True)
            equal((done.returncode, done.stdout), (64, ""), done.stderr)
            assert wrong[1] in done.stderr, done.stderr
        equal([r["event"] for r in log.records()][::len(log.records()) - 1],
              ["started", "stopped"])


@test(private=True)
def the_memory_limit_that_a_cell_ran_with(ctx):
    """A cell that waits behind a cell of a branch, while a call in another one raises the limit."""
    mib = 1 << 20
    with Log(ctx) as log:
        with ctx.private(log.config()) as s, ctx.client(path=s.socket, timeout=120) as c:
            def told(token, words):
                waits.until("%s: %s" % (token, words), wait=c.pump, condition=lambda: any(
                    n["params"]["progressToken"] == token and words in n["params"]["message"] for n in c.notices))

            first = Session(c)
            first.well("1", memory_mb=128)
            second, third = first.branch("2"), first.branch("3")
            busy = first.start("import signal\nprint('begun')\nsignal.pause()", {"progressToken": "t"}, timeout_seconds=300)
            told("t", "begun")
            queued = second.start("4", {"progressToken": "w"})
            told("w", "waits for a cell in a branch")
            more = third.start("5", {"progressToken": "r"}, memory_mb=256)
            told("r", "waits for a cell in a branch")
            c.cancel(busy)
            ids = [session.finish(id, 60).id for session, id in ((second, queued), (third, more))]
            last = first.well("6").id
        for id, asked in (ids[0], 128), (ids[1], 256), (last, 256):
            begun, ended = log.records("--execution", id)
            equal((begun["limits"]["memory_bytes"], ended["memory_limit_bytes"]), (asked * mib, 256 * mib), begun)


@test(private=True)
def records_are_selected(ctx):
    with Log(ctx) as log:
        with ctx.private(log.config()) as s, ctx.client(path=s.socket) as c:
            c.run("print('Needle')")
            c.run("while True: pass", timeout_seconds=1)
            c.run("print('needle' * 2)")
        all = log.records()
        equal({r["event"] for r in log.records("--event", "limit-hit")}, {"limit-hit"})
        equal({r["event"] for r in log.records("--status", "timeout")},
              {"execution-ended", "limit-hit"})
        found = log.records("--text", "needle")
        equal([r["source"] for r in found], ["print('Needle')", "print('needle' * 2)"])
        equal(log.records("--text", found[0]["sha256"][:12]), found[:1])
        equal(log.records("--text", found[0]["hash"][:12])[0], found[0])
        # Four digits are in some hash of a long log, and say nothing.
        equal(log.records("--text", found[0]["hash"][:7]), [])
        equal(log.records("--last", "2"), all[-2:])
        equal(log.records("-n", "10000"), all)
        equal(log.records("-n", "1", "--event", "limit-hit"), log.records("--event", "limit-hit"))
        equal(log.records("--until", "2999-01-01"), all)
        equal(log.records("--until", "2020-01-01"), [])
        # The service's clock and ours are the same one.
        middle = all[len(all) // 2]["time"][:19]
        equal(log.records("--since", middle + "Z") + log.records("--until", middle),
              [r for r in all if r["time"] >= middle] + [r for r in all if r["time"] < middle])
        # What selects nothing is not silent about it.
        for words in ("--event", "limit"), ("--tenant", "uid:4000000"), ("--since", "2999-01-01"):
            done = log.command("show", *words)
            equal((done.returncode, done.stdout), (0, ""))
            said = "no record matches" + ("" if "--since" in words else "; the log has %d" % len(all))
            assert said in done.stderr, done.stderr
        for wrong in ("--until", "zzz"), ("--last", "0"), ("-n", "10001"), ("-n", "x"):
            equal(log.command("show", *wrong).returncode, 64, wrong)


@test(private=True)
def what_is_older_is_not_read(ctx):
    """A long log costs little more than a short one, if only its end is wanted; in several files."""
    def written(path, first, n):
        with open(path, "w", encoding="ascii") as f:
            for i in range(first, first + n):
                at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(1600000000 + 10 * i))
                f.write('{"n":%d,"time":"%s.000000Z","event":"session","tenant":"uid:1"}\n' % (i, at))

    def shown(path, since):
        begun = resource.getrusage(resource.RUSAGE_CHILDREN)
        out = subprocess.run([os.path.join(ctx.options.build, "mcp-python"), "audit", "show", "--json",
                              "--file", path, "--since", since],
                             capture_output=True, text=True, check=True).stdout
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        return ([json.loads(line)["n"] for line in out.splitlines()],
                ended.ru_utime + ended.ru_stime - begun.ru_utime - begun.ru_stime)

    with tempfile.TemporaryDirectory() as d:
        short, long = d + "/short", d + "/long"
        written(short, 300000, 1000)
        for part in range(3):
            written(long + ".%d" % (part + 1), part * 100000, 100000)
        written(long, 300000, 1000)
        took = {short: [], long: []}
        for _ in range(3):
            for path, times in took.items():
                numbers, cost = shown(path, "2020-10-18T07:33:20Z")
                equal(numbers, list(range(300640, 301000)))
                times.append(cost)
        assert min(took[long]) <= 4 * min(took[short]), took
        for first, since in ((200000, "2020-10-06T16:00Z"), (299990, "2020-10-18T05:45Z"), (0, "2020-01-01")):
            equal(shown(long, since)[0], list(range(first, 301000)), since)


@test(private=True)
def the_last_ones_are_those_at_the_end(ctx):
    """Over several files, with and without a filter, and when there are fewer."""
    with Log(ctx) as log:
        with ctx.private(log.config("rotate_bytes = 64K\n")) as s, ctx.client(path=s.socket) as c:
            for i in range(8):
                c.run("%d #%s" % (i, "x" * 20000))
                c.run("1/0")
        assert os.path.exists(log.path + ".1")
        for filter in ((), ("--status", "error"), ("--event", "execution-started"), ("--text", "ZERODIVISION"),
                       ("--event", "rotated")):
            all = log.records(*filter)
            assert all or filter[:1] == ("--text",), filter
            for n in (1, 2, 5, 9, 10000):
                equal(log.records("-n", str(n), *filter), all[-n:], filter)


@test(private=True, alone=True)
def a_large_log_is_not_read_for_its_end(ctx):
    """In processor time of one run: the end, against a check of the whole chain."""
    with Log(ctx) as log:
        with ctx.private(log.config()) as s, ctx.client(path=s.socket) as c:
            o = c.run("print('one of many')")
        with open(log.path, "rb") as f:
            lines = f.read()
        with open(log.path, "wb") as f:
            for _ in range(80 * 1024 * 1024 // len(lines)):
                f.write(lines.replace(o.id.encode(), b"x-" + b"y" * (len(o.id) - 2)))
            f.write(lines)

        def cost(*arguments):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            log.command(*arguments)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        whole = cost("verify")
        equal(log.records("-n", "3"), [json.loads(line) for line in lines.splitlines()[-3:]])
        last = min(cost("show", "-n", "3") for _ in range(3))
        one = min(cost("show", "--execution", o.id) for _ in range(2))
        equal(len(log.records("--execution", o.id)), 2)
        assert last < whole / 5, "the end of the log costs %.3f s, all of it %.3f s" % (last, whole)
        assert one < whole * 2, "one of many costs %.3f s, all of them %.3f s" % (one, whole)
        return "end %.3f s, one of many %.3f s, whole chain %.3f s" % (last, one, whole)


@test(private=True)
def people_get_a_table(ctx):
    """On a terminal by default; with names, one line for each record, and nothing that steers it."""
    me = pwd.getpwuid(os.getuid()).pw_name
    with Log(ctx) as log:
        with ctx.private(log.config()) as s, ctx.client(path=s.socket) as c:
            o = c.run("print('\x1b[2J') # \" status=ok\n1")
        rows = log.command("show", "--table").stdout.splitlines()
        equal(len(rows), len(log.records()) + 1)
        equal(rows[0].split(), ["TIME", "(UTC)", "WHO", "EVENT", "WHAT"])
        begun, ended = (next(r for r in rows if " execution-%s " % word in r)
                        for word in ("started", "ended"))
        equal(begun.split()[2:5], [me, "execution-started", o.id])
        assert begun.endswith(" source=\"print('\\x1b[2J') # \\\" status=ok\""), begun
        assert " status=ok exit_code=0 " in ended, ended
        with Terminal(ctx, "audit", "show", "--file", log.path, "-n", "1") as t:
            t.expect(r"TIME \(UTC\) .* stopped ")
            equal(t.end(), 0)
        with Terminal(ctx, "audit", "show", "--file", log.path, "-n", "1", "--json") as t:
            t.expect(r'^{"n":')
            equal(t.end(), 0)


@test(private=True)
def what_is_added_is_followed(ctx):
    """From the last record on, and from one file into the next."""
    with Log(ctx) as log:
        with ctx.private(log.config("rotate_bytes = 64K\n")) as s, ctx.client(path=s.socket) as c:
            c.run("1")
            with subprocess.Popen([os.path.join(ctx.options.build, "mcp-python"), "audit", "show",
                                   "-f", "-n", "1", "--file", log.path],
                                  stdout=subprocess.PIPE, text=True) as p:
                late = threading.Timer(ctx.seconds(60), p.kill)
                late.start()
                seen = [json.loads(p.stdout.readline())]
                ids = [c.run("2 #%d%s" % (i, "x" * 40000)).id for i in range(4)]
                while seen[-1].get("execution") != ids[-1] or seen[-1]["event"] != "execution-ended":
                    line = p.stdout.readline()
                    assert line, "it ended after %r" % seen[-1]
                    seen.append(json.loads(line))
                p.kill()
                late.cancel()
        equal([r["n"] for r in seen], list(range(seen[0]["n"], seen[0]["n"] + len(seen))))
        assert "rotated" in [r["event"] for r in seen], seen
        equal([r["execution"] for r in seen if r["event"] == "execution-started"][-4:], ids)


MANY_REFUSED = '''
import math
for i in range(1000):
    try:
        __import__("é%d" % i + "é" * 1000)
    except ImportError:
        pass
math.pi
'''


@test(private=True)
def refused_imports_have_a_record(ctx):
    with Log(ctx) as log:
        config = log.config("[mcp]\ntoolsets = native, python-sandbox\n")
        with ctx.private(config) as s, ctx.client(path=s.socket) as c:
            before = c.run("import os\nfrom subprocess import run\n", tier="basic")
            running = c.run("n = 'os'\n__import__(n)", allowed_imports=["json"])
            caught = c.run(MANY_REFUSED, tier="basic")
            equal((before.status, running.status, caught.status), ("error", "error", "ok"))
            equal(c.run("import os, json", allowed_imports=["json", "os"]).status, "ok")
            equal(c.run("import os").status, "ok")
            c.ask("tools/call", {"name": "execute_code", "arguments": {"code": "import ctypes"}})
        log.verify()
        refused = [r for r in log.records() if r["event"] == "import-refused"]
        equal([r["execution"] for r in refused][:3], [before.id, running.id, caught.id])
        equal([r["names"] for r in refused[:2]], [["os", "subprocess"], ["os"]])
        equal(refused[3]["names"], ["ctypes"])
        equal(len(refused), 4, refused)
        names = refused[2]["names"]
        equal(len(names), 16, names)
        assert all(name.endswith("é" * 100) and len(name.encode()) <= 255 for name in names)
        equal({r["tenant"] for r in refused}, {"uid:%d" % os.getuid()})


@test(private=True)
def what_runs_in_the_background_is_accounted_for(ctx):
    """Also the end, for which no connection exists."""
    def call(client, name, **arguments):
        return client.ask("tools/call", {"name": name, "arguments": arguments},
                          ctx.seconds(60))["structuredContent"]

    with Log(ctx) as log:
        with ctx.private(log.config()) as s:
            with ctx.client(path=s.socket) as c:
                jobs = [call(c, "run_script", script="import sys\nsys.exit(7)", background=True),
                        call(c, "run_repl", code="1/0", background=True)]
            with ctx.client(path=s.socket) as c:
                ids = [call(c, "job", id=job["job"], action="wait", wait_seconds=60)
                       ["answer"]["execution_id"] for job in jobs]
        log.verify()
        for id, code in zip(ids, (7, 1)):
            mine = log.records("--execution", id)
            equal([r["event"] for r in mine], ["execution-started", "execution-ended"])
            equal((mine[1]["status"], mine[1]["exit_code"]), ("error", code))


@test(private=True)
def without_source_there_is_its_hash(ctx):
    with Log(ctx) as log:
        with ctx.private(log.config("source = no\n")) as s, ctx.client(path=s.socket) as c:
            c.run("secret = 1")
        with open(log.path, encoding="utf-8") as f:
            text = f.read()
        assert "secret" not in text
        assert hashlib.sha256(b"secret = 1").hexdigest() in text


def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


@test(private=True)
def outputs_are_recorded_by_their_hash(ctx):
    script = "import sys\nprint('out-\u00e9')\nprint('err', file=sys.stderr)\n'a value'"
    with Log(ctx) as log:
        with ctx.private(log.config()) as s, ctx.client(path=s.socket) as c:
            o, silent, long = c.run(script), c.run("1; None"), c.run("print('x' * 3000000)")
            failed = c.run("1 / 0")
        end = log.records("--execution", o.id)[1]
        for name, text in ("stdout", "out-\u00e9\n"), ("stderr", "err\n"), ("result", "'a value'"):
            equal((end[name + "_bytes"], end[name + "_sha256"]), (len(text.encode()), sha256(text)))
        quiet = log.records("--execution", silent.id)[1]
        equal([key for key in quiet if key.endswith("_sha256")], [])
        # all that was written is counted; the hash is that of what the client has
        cut = log.records("--execution", long.id)[1]
        equal((cut["stdout_bytes"], cut["stdout_sha256"]), (3000001, sha256(long.stdout)))
        broken = log.records("--execution", failed.id)[1]
        equal(broken["error_bytes"] > 0 and "output" not in broken, True)
        with open(log.path, encoding="utf-8") as f:
            started = [r for r in map(json.loads, f) if r["event"] == "execution-ended"]
        assert "out-" not in json.dumps(started), started
        row = [line for line in log.command("show", "--table").stdout.splitlines() if "stdout_bytes=7" in line]
        assert len(row) == 1 and "sha256" not in row[0], row


@test(private=True)
def or_in_whole_where_the_operator_wants_it(ctx):
    """In the file alone, and at most text_bytes of each."""
    with Log(ctx) as log:
        config = log.config("outputs = whole\ntext_bytes = 1000\n")
        with ctx.private(config) as s, ctx.client(path=s.socket) as c:
            o, long = c.run("print('Needle-out')\n[1, 2]"), c.run("print('\u00e9' * 5000)")
            failed = c.run("raise ValueError('Needle-error')")
            cell = c.ask("tools/call", {"name": "run_repl", "arguments": {"code": "print('in a cell')"}})
        log.verify()
        equal(log.records("--execution", o.id)[1]["output"], {"stdout": "Needle-out\n", "result": "[1, 2]"})
        cut = log.records("--execution", long.id)[1]
        equal((cut["output"]["stdout"], cut["stdout_bytes"]), ("\u00e9" * 500, 10001))
        assert "Needle-error" in log.records("--execution", failed.id)[1]["output"]["error"]
        assert not cell.get("isError"), cell
        said = [r.get("output") for r in log.records("--event", "execution-ended")]
        assert {"stdout": "in a cell\n"} in said, said
        equal([r["execution"] for r in log.records("--text", "needle-out", "--event", "execution-ended")], [o.id])
        shown = log.command("show", "--table", "--execution", o.id).stdout
        assert 'stdout="Needle-out" result="[1, 2]"' in shown, shown
        assert "Needle" not in "".join(l for l in s.log().splitlines() if "execution-ended" in l), s.log()


@test(private=True)
def changes_are_found(ctx):
    with Log(ctx) as log:
        with ctx.private(log.config()) as s, ctx.client(path=s.socket) as c:
            for i in range(3):
                c.run("print(%d)" % i)
        with open(log.path, encoding="utf-8") as f:
            lines = f.readlines()

        def put(changed):
            with open(log.path, "w", encoding="utf-8") as f:
                f.writelines(changed)
        middle = len(lines) // 2
        for changed in (lines[:middle] + lines[middle + 1:],
                        lines[:middle] + [lines[middle]] + lines[middle:],
                        [line.replace("print(1)", "print(7)") for line in lines],
                        lines[:middle] + ["{}\n"] + lines[middle:]):
            put(changed)
            assert "BROKEN" in log.verify(want=65)
        put(lines)
        assert log.verify().startswith("ok")


@test(private=True)
def a_file_that_cannot_be_read_is_not_whole(ctx):
    """Reading a directory fails, as reading a bad disk does."""
    with Log(ctx) as log:
        for path in (log.path, log.path + ".1"):
            os.mkdir(path)
            done = log.command("verify")
            equal(done.returncode, 66, done.stderr)
            assert "Is a directory" in done.stderr, done.stderr
            os.rmdir(path)
            open(log.path, "w").close()


@test(private=True)
def a_file_that_vanishes_is_noticed(ctx):
    """The chain goes on in a new file, with a record that says so; also if it vanishes between two
    services."""
    with Log(ctx) as log:
        with ctx.private(log.config()) as s, ctx.client(path=s.socket) as c:
            ways = [lambda: os.unlink(log.path), lambda: os.rename(log.path, log.path + ".old"),
                    lambda: (open(log.path + ".new", "w").close(), os.rename(log.path + ".new", log.path))]
            for number, vanish in enumerate(ways, 1):
                c.run("1")
                last = log.records()[-1]["n"]
                vanish()
                s.wait_logged("audit-replaced", times=number)
                equal(c.run("2").status, "ok")
                records = log.records()
                equal((records[0]["event"], records[0]["n"]), ("replaced", records[0]["last_record"] + 1))
                assert records[0]["last_record"] >= last, records[0]
                equal([r["event"] for r in records].count("execution-ended"), 1)
                assert "SOMEBODY ELSE removed what was before it" in log.verify()
        last = log.records()[-1]["n"]
        os.unlink(log.path)
        for rotated in glob.glob(log.path + ".[0-9]*"):
            os.unlink(rotated)
        with ctx.private(log.config()) as s:
            assert "audit-missing" in s.log(), s.log()
        first = log.records()[0]
        equal((first["event"], first["n"]), ("replaced", last + 1))
        assert "SOMEBODY ELSE" in log.verify()


@test(private=True)
def a_file_that_cannot_be_made_again(ctx):
    """Its directory is gone: with on_failure = stop nothing runs, and the service says why."""
    with Log(ctx) as log, ctx.private(log.config("on_failure = stop\n")) as s, ctx.client(path=s.socket) as c:
        equal(c.run("1").status, "ok")
        os.rename(log.directory, log.directory + ".aside")
        try:
            s.wait_logged("audit-replaced err=ENOENT")
            equal(c.run("2").status, "audit_unavailable")
        finally:
            os.rename(log.directory + ".aside", log.directory)
        equal(waits.until("it runs again", lambda: c.run("3").status == "ok"), True)
        log.verify()


@test(private=True, root=True)
def nobody_waits_for_a_disk_but_who_needs_a_record(ctx):
    """What writes the records is held, as by a disk that does not answer: a call waits for its own
    record and can be cancelled meanwhile; whatever needs none is answered."""
    with Log(ctx) as log, Directory() as d, \
            ctx.private(log.config() + d.config()) as s, \
            ctx.client(path=s.socket) as c, ctx.client(path=s.socket, uid=SOMEBODY) as other:
        session = Session(c)
        session.well("x = 1")
        equal(other.run("1").status, "ok")
        with thread_held(s.pid, "audit"):
            ran, cancelled = c.start_script("print('ran')"), c.start_script("print('no')")
            cell = session.start("x += 1\nx")
            for client in c, other:
                for _ in range(20):
                    client.ask("ping")
                client.ask("tools/list")
            c.cancel(cancelled)
            equal(status(ctx, d)["executions"]["running"], 0)
            s.wait_logged("audit-late")
            equal(status(ctx, d)["audit"]["failing"], True)
            other.ask("ping")
            assert not c.answers, c.answers
        equal(c.outcome(ran).stdout, "ran\n")
        equal(session.finish(cell).result["repr"], "2")
        s.wait_logged("audit-in-time")
        equal(other.run("2").status, "ok")
        s.stop()
        log.verify()
        events = [r["event"] for r in log.records()]
        equal(events.count("execution-started"), events.count("execution-ended"), events)
        assert [r for r in log.records() if r.get("status") == "cancelled"], events


@test(private=True)
def the_chain_survives_being_killed(ctx):
    chance = random.Random(5)
    with Log(ctx) as log:
        config = log.config("rotate_bytes = 4096\n")
        for _ in range(4):
            with ctx.private(config) as s, ctx.client(path=s.socket) as c:
                ids = [c.start_script("print(%d)" % i) for i in range(10)]
                for id in ids[:chance.randrange(1, 10)]:
                    c.wait(id)
                os.kill(s.pid, signal.SIGKILL)
                s.process.wait()
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(s.socket)	# who is killed cannot
            if chance.random() < 0.7:	# as a crash of the machine leaves the file
                lost = chance.randrange(1, 60)
                with contextlib.suppress(FileNotFoundError):	# it was just put aside
                    os.truncate(log.path, max(0, os.path.getsize(log.path) - lost))
        with ctx.private(config) as s, ctx.client(path=s.socket) as c:
            c.run("1")
        log.verify()
        assert os.path.exists(log.path + ".1")
        assert any(r["event"] == "mended" for r in log.records())


def fill(path):
    """Takes all the room there is."""
    with open(path, "wb", buffering=0) as f:
        with contextlib.suppress(OSError):
            while True:
                f.write(b"x" * 4096)


def full_disk(ctx, log, on_failure):
    disk = os.path.join(log.directory, "disk")
    os.mkdir(disk)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=0777", "none", disk], check=True)
    try:
        log.path = os.path.join(disk, "log")
        with ctx.private(log.config("on_failure = %s\n" % on_failure)) as s, \
                ctx.client(path=s.socket) as c:
            equal(c.run("1").status, "ok")
            c.ask("ping")	# the record of its end is made after the answer
            # the last page of the log has room still: more than a page does not fit
            fill(os.path.join(disk, "filler"))
            o = c.run("1 + 1 #" + "x" * 5000)
            os.unlink(os.path.join(disk, "filler"))
            equal(c.run("2").status, "ok")
        log.verify()
        return o, [r["records"] for r in log.records() if r["event"] == "lost"]
    finally:
        subprocess.run(["umount", disk], check=True)


@test(private=True, root=True)
def what_cannot_be_written_down_is_not_run(ctx):
    with Log(ctx) as log:
        o, lost = full_disk(ctx, log, "stop")
        equal(o.status, "audit_unavailable")
        equal(lost, [1])


@test(private=True, root=True)
def or_it_is_run_and_counted(ctx):
    with Log(ctx) as log:
        o, lost = full_disk(ctx, log, "continue")
        equal(o.status, "ok")
        assert lost and lost[0] >= 1, lost


def bytes_of(log):
    return sum(os.path.getsize(os.path.join(d, name))
               for d, _, names in os.walk(os.path.dirname(log.path)) for name in names)


@test(private=True)
def the_same_script_is_written_down_once(ctx):
    """And a long one not in whole: its SHA-256 is in each record."""
    long = "1 #" + "x" * (1 << 20)
    with Log(ctx) as log:
        with ctx.private(log.config()) as s, ctx.client(path=s.socket) as c:
            ids = [c.run("print('same')").id for _ in range(3)] + [c.run(long).id for _ in range(10)]
        log.verify()
        started = [log.records("--execution", id)[0] for id in ids]
        equal(["source" in r for r in started], [i in (0, 3) for i in range(13)])
        for r in started[1:3]:
            first, = log.records("--record", str(r["source_record"]))
            equal((first["source"], first["sha256"]), ("print('same')", r["sha256"]))
        equal((started[3]["source"], started[3]["source_bytes"]), (long[:65536], len(long)))
        equal({r["sha256"] for r in started[3:]}, {hashlib.sha256(long.encode()).hexdigest()})
        assert bytes_of(log) < 200000, bytes_of(log)


@test(private=True)
def the_oldest_files_are_removed(ctx):
    """The files stay within their bound, the chain holds, and says what was removed."""
    with Log(ctx) as log:
        config = log.config("rotate_bytes = 64K\nkeep_bytes = 256K\n")
        for _ in range(2):
            with ctx.private(config) as s, ctx.client(path=s.socket) as c:
                for i in range(15):
                    equal(c.run("%d #%s" % (os.getpid(), str(i) + "x" * 40000)).status, "ok")
        said = log.verify()
        assert "ok: up to record" in said and " says that the service removed " in said, said
        # The file itself, which grows by a record beyond rotate_bytes, and those before it.
        assert bytes_of(log) <= (256 + 64 + 64) << 10, bytes_of(log)
        os.unlink(min((os.path.join(log.directory, name) for name in os.listdir(log.directory)
                       if name not in ("log", "log.last")), key=lambda path: int(path.rpartition(".")[2])))
        said = log.verify()
        assert "no record says that the service removed it" in said, said


@test(private=True, root=True)
def one_tenant_fills_no_disk(ctx):
    """Not even one that is just as large as the log may be, and nobody else waits for it."""
    with Log(ctx) as log:
        disk = os.path.join(log.directory, "disk")
        os.mkdir(disk)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=600k,mode=0777", "none", disk],
                       check=True)
        try:
            log.path = os.path.join(disk, "log")
            with ctx.private(log.config("rotate_bytes = 64K\nkeep_bytes = 256K\n")) as s, \
                    ctx.client(path=s.socket) as c:
                for i in range(40):
                    equal(c.run("1 #%d%s" % (i, "x" * 60000)).status, "ok")
            log.verify()
            equal([r for r in log.records() if r["event"] == "lost"], [])
            assert "audit-disk-tight" not in s.log(), s.log()
            # One that may become larger than its disk is told of at once.
            with ctx.private(log.config("keep_bytes = 1G\n")) as s:
                assert " audit-disk-tight " in " " + s.log().replace("\n", " "), s.log()
        finally:
            subprocess.run(["umount", disk], check=True)


@test(private=True, root=True)
def a_tenant_has_a_share_of_the_log(ctx):
    with Log(ctx) as log:
        config = log.config() + "[quota]\naudit_bytes_per_hour = 32K\n[alarms]\ndenials = 0\n"
        with ctx.private(config) as s, ctx.client(path=s.socket) as c, \
                ctx.client(path=s.socket, uid=SOMEBODY) as other:
            outcomes = [c.run("1 #%d%s" % (i, "x" * 4000)) for i in range(20)]
            assert all(o.status == "ok" for o in outcomes[:5]), outcomes[:5]
            equal(outcomes[-1].status, "quota_exceeded")
            assert "audit_bytes_per_hour" in outcomes[-1].error["message"], outcomes[-1].error
            before = bytes_of(log)
            for _ in range(50):
                equal(c.run("2").status, "quota_exceeded")
            # What was refused and left out is counted, and told at the end.
            equal(bytes_of(log), before)
            equal(other.run("1").status, "ok")
        log.verify()
        left, = [r for r in log.records() if r["event"] == "left-out"]
        equal(left["tenant"], "uid:%d" % os.getuid())
        assert left["records"]["quota-hit"] >= 50, left
        mine = [r for r in log.records("--tenant", left["tenant"]) if r["event"] == "execution-ended"]
        equal(len(mine), sum(o.status == "ok" for o in outcomes))


@test(private=True)
def connections_do_not_fill_the_log(ctx):
    """Each has a record and a line, up to a number in a minute; then they are counted."""
    with Log(ctx) as log:
        with ctx.private(log.config()) as s:
            for _ in range(500):
                with ctx.client(path=s.socket) as c:
                    c.ask("ping")
            lines = s.log().count("session-opened ")
        log.verify()
        records = [r["event"] for r in log.records()]
        told = records.count("session-opened") + records.count("session-closed")
        left = [r["records"] for r in log.records() if r["event"] == "left-out"]
        assert told < 500 and left, (told, left)
        counted = told + sum(sum(one.values()) for one in left)
        assert counted >= 1000, "%d of 1000 records are neither there nor counted" % (1000 - counted)
        assert lines < 400, lines
    return "%d records, %d lines for 500 connections" % (told, lines)


if __name__ == "__main__":
    main(__doc__, modules=FEW_MODULES)
