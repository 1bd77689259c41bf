#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Hostile scripts: each must be contained, be answered with an expected status within its
bounds, and leave the service as it was, for the same client and for a new one.

The files are lines of JSON: id, category, level, script, expect {never, status, stdout, max_s,
max_result_bytes}, followup, concurrent, assumes, timeout_seconds; or tool and arguments in place of script.
"""

import os
import re
import time

import calls
from disks import flushes
from harness import Skip, equal, main, proto_version, test
from hostile_cases import HAS_IPV6, WORDS, cases, for_this_machine, judge
from mcpclient import RpcError

# Categories whose scripts write to descriptors of ours, or have values, files and states that our C
# code reads.
REACHES_OUR_C = {"protocol", "output", "artifacts", "files", "cross-tenant", "state-leak", "packages", "time"}


def judge_outcome(ctx, expect, outcome, started):
    judge(expect, WORDS.get(outcome.status, set()), outcome.stdout, outcome.everything(),
          time.monotonic() - started, outcome.line_bytes, ctx.slow)


def run_one(ctx, client, script, expect, **limits):
    started = time.monotonic()
    outcome = client.run(for_this_machine(script), ctx.seconds(expect.get("max_s", 60) + 30), **limits)
    judge_outcome(ctx, expect, outcome, started)
    return outcome


def run_with_others(ctx, client, case):
    """The main script, and others of a second client while it runs."""
    ids = [(client, client.start_script(for_this_machine(case["script"])), case["expect"], time.monotonic())]
    with ctx.client() as second:
        for other in case["concurrent"]:
            # The corpus gives times, not events: this is the only place that lets time pass.
            until = ids[0][3] + other["delay_s"]
            while (left := until - time.monotonic()) > 0:
                client.pump(left)
            ids.append((second, second.start_script(for_this_machine(other["script"])), other["expect"],
                        time.monotonic()))
        for who, id, expect, started in ids[1:] + ids[:1]:
            outcome = who.outcome(id, ctx.seconds(expect.get("max_s", 60) + 30))
            judge_outcome(ctx, expect, outcome, started)
    return outcome


def run_tool(ctx, client, case):
    """A tool other than run_script; one that is not there refuses everything."""
    for arguments in case["arguments"]:
        try:
            result = client.ask("tools/call", {"name": case["tool"], "arguments": arguments})
            status = "denied" if result.get("isError") else "ok"
        except RpcError as e:
            assert e.code == -32602, "refused with %s" % e
            status = "denied"
        assert status in case["expect"]["status"], "%r was answered %s" % (arguments, status)


def run_case(ctx, case):
    evidence = ""
    with ctx.client() as client:
        if "tool" in case:
            run_tool(ctx, client, case)
        else:
            if case.get("concurrent"):
                outcome = run_with_others(ctx, client, case)
            else:
                # What never ends is ended by its time, and three seconds show that as well as 30
                # do; all else has time enough, however busy the machine.
                expected = case["expect"]["status"]
                ends = "ok" in expected or "timeout" not in expected
                limits = {"timeout_seconds": case.get("timeout_seconds", int(ctx.seconds(30)) if ends else 3)}
                outcome = run_one(ctx, client, case["script"], case["expect"], **limits)
            said = re.search("CONTAINED:.*", outcome.stdout)
            evidence = "%s, %s" % (outcome.status, said[0] if said else "no CONTAINED line")
            if not HAS_IPV6 and "IPV6 = True\n" in case["script"]:
                evidence += ", without IPv6, which this kernel does not have"
            for next_one in case.get("followup", ()):
                run_one(ctx, client, next_one["script"], next_one["expect"])
        ctx.healthy(client)
    return evidence


def add(case):
    """A wall of the kernel's is the same in every build; what reaches C of ours is worth sanitizers."""
    test(lambda ctx: run_case(ctx, case), name=case["id"], any_build=case["category"] not in REACHES_OUR_C)


@test
def half_a_frame_is_told(ctx):
    """A script that leaves in the middle of a message has broken the protocol, by whatever
    means it ends; what its init says after it is not taken for the rest of the message."""
    write = ("import os, stat\nfor n in os.listdir('/proc/self/fd'):\n    n = int(n)\n"
             "    try:\n        if n > 2 and stat.S_ISSOCK(os.fstat(n).st_mode): os.write(n, %r)\n"
             "    except OSError: pass\n")
    begun = [bytes([proto_version()]) + rest for rest in (
        b"", b"\x0b\0\0\1", b"\x0b\0\0\1\0", b"\x0b\0\0\1\0\x81\xa2id\1")]
    with ctx.client() as client:
        for bytes_ in begun:
            for end in ("os._exit(0)", "os._exit(3)", "os.kill(os.getpid(), 9)"):
                o = client.run(write % bytes_ + end)
                equal(o.status, "worker_protocol_error", "%r, %s: %r" % (bytes_, end, o))
        ctx.healthy(client)


@test
def calls_have_other_numbers_elsewhere(ctx):
    """So scripts of the corpora make the same calls on every machine."""
    elsewhere = calls.numbers("aarch64")
    equal([elsewhere.get(n, n) for n in (321, 250, 39, 435)], [280, 219, 172, 435])	# bpf, keyctl, getpid, clone3
    equal(elsewhere[2], calls.NONE)	# open: there is only openat
    equal(calls.numbers("x86_64"), {})
    script = calls.PRELUDE % {100000: calls.number("getpid")} + """\
import ctypes, os
for number in 100000, ctypes.c_long(100000):
    print(ctypes.CDLL(None).syscall(number) == os.getpid())
libc = ctypes.CDLL(None, use_errno=True)
print(libc.syscall(100001), os.strerror(ctypes.get_errno()), libc.getpid() == os.getpid())
"""
    with ctx.client() as client:
        equal(client.run(script).stdout, "True\nTrue\n-1 Function not implemented True\n")


@test
def host_disks_are_not_flushed(ctx):
    """Syncing files of the host, as often as one likes, costs its disks nothing."""
    fd, before = os.open(os.__file__, os.O_RDONLY), flushes()
    try:
        for _ in range(100):
            os.fsync(fd)
    finally:
        os.close(fd)
    if flushes() < before + 100:
        raise Skip("no disk here counts the flushes of %s" % os.__file__)
    with ctx.client() as client:
        before = flushes()
        o = client.run("import ctypes, os\nlibc = ctypes.CDLL('libc.so.6')\n"
                       "fd = os.open(os.__file__, os.O_RDONLY)\n"
                       "for _ in range(1000): os.fsync(fd), os.fdatasync(fd), libc.fsync(fd),"
                       " libc.syscall(%d, fd)\n" % calls.number("fsync"))
        count = flushes() - before
        equal(o.status, "ok", repr(o))
    # Others may use the disks meanwhile.
    assert count < 2000, "%d flushes" % count
    return "%d flushes by others" % count


for one_case in cases():
    add(one_case)
main(__doc__)
