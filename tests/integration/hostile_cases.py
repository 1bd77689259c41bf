# SPDX-License-Identifier: Apache-2.0
"""The hostile scripts of tests/corpus, and whether an answer to one is as expected."""

import json
import os
import re

import calls
from harness import CORPUS, proto_version

FILES = ("hostile-public.jsonl", "hostile-own.jsonl")
HAS_IPV6 = os.path.exists("/proc/net/if_inet6")
# Our words for an end, in those of the corpus.
WORDS = {
    "ok": {"ok"}, "error": {"error"}, "timeout": {"timeout"}, "cpu_limit": {"timeout", "killed"},
    "memory_limit": {"memory_limit"}, "pids_limit": {"pid_limit"},
    "output_limit": {"output_limit"}, "disk_limit": {"error"}, "killed": {"killed"},
    "crashed": {"killed"}, "worker_protocol_error": {"killed"}, "denied": {"denied"},
    "approval_pending": {"pending"}}


class Unexpected(AssertionError):
    """What of an answer is not as expected: never, status, stdout, time or size."""

    def __init__(self, what, text):
        super().__init__(text)
        self.what = what


def judge(expect, words, stdout, everything, seconds, size, slow):
    """Unexpected unless an answer is as expected. words: of the corpus, one of which its end is."""
    def check(what, right, text, *values):
        if not right:
            raise Unexpected(what, text % values)
    never = expect.get("never")
    found = never and re.search(never, everything)
    check("never", not found, "found %r in %.3000r", found and found[0], everything)
    check("status", words & set(expect["status"]), "status %s is not one of %s: %.3000r",
          sorted(words), expect["status"], everything)
    if expect.get("stdout") and "ok" in words:
        check("stdout", re.search(expect["stdout"], stdout), "no %r in %.3000r", expect["stdout"], everything)
    if expect.get("max_s"):
        check("time", seconds <= expect["max_s"] * slow, "took %.1f s", seconds)
    check("size", size <= expect.get("max_result_bytes", 33554432), "answer of %d bytes", size)


def for_this_machine(script):
    """A kernel without IPv6 has no such sockets; the rest of the script is for it as well. Numbers of
    system calls are those of x86-64."""
    return calls.by_name(script if HAS_IPV6 else script.replace("IPV6 = True\n", "IPV6 = False\n"))


def of_today(value):
    """A row's scripts write frames of the first version; then nothing but their first byte is looked at."""
    if isinstance(value, str):
        return value.replace("\nVERSION = 1\n", "\nVERSION = %d\n" % proto_version())
    if isinstance(value, list):
        return [of_today(one) for one in value]
    return {key: of_today(one) for key, one in value.items()} if isinstance(value, dict) else value


def cases():
    for name in FILES:
        with open(os.path.join(CORPUS, name), encoding="utf-8") as lines:
            for line in lines:
                yield of_today(json.loads(line))


def seconds_of(case, whole):
    """How long it may run. What never ends is ended by its time, and three seconds show that as well as
    30 do; all else has time enough, however busy the machine."""
    expected = case["expect"]["status"]
    ends = "ok" in expected or "timeout" not in expected
    return case.get("timeout_seconds", whole if ends else 3)
