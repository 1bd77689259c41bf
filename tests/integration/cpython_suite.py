#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""CPython's own tests inside a worker: the same numbers of tests run, skipped, failed as outside.

The modules are those of cpython-modules.txt, from Debian's libpython3.11-testsuite; those of
cpython-cells.txt are run in a session's second cell. All are run in a worker of a zygote that has
learned packages, too, with MCP_CPYTHON_LEARNED=all; without it, those of LEARNED. Outside means: the same driver script, the
same interpreter, an unprivileged user, an empty directory.
"""

import json
import os
import zlib

from harness import Skip, main, test, tests
from interpreter import under_test
from learned_worker import learned_script
from repl import begun
from unjailed import run_unjailed

tests.clear()	# those of repl.py

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = "%s/lib/python%d.%d/test" % (
    os.path.dirname(os.path.dirname(under_test.root + under_test.program)), *under_test.version[:2])

DRIVER = r"""
import json, os, sys, unittest, warnings
name, *left_out = sys.argv[1:] or [""]
warnings.simplefilter("default")
from test import support
support.use_resources = []		# no network, no gui, nothing that takes long
support.verbose = False
sys.argv[:] = [sys.argv[0]]
class Counting(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.why = []
    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.why.append("skipped %s: %s" % (test, reason))
    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.why.append("failed %s: %s" % (test, self.failures[-1][1][-1500:]))
    def addError(self, test, err):
        super().addError(test, err)
        self.why.append("error %s: %s" % (test, self.errors[-1][1][-1500:]))
    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err:
            self.why.append("subtest %s: %r" % (subtest, err[1]))
def leave_out(suite):
    if isinstance(suite, unittest.TestSuite):
        suite._tests = [t for t in suite if getattr(t, "_testMethodName", "") not in left_out]
        for part in suite:
            leave_out(part)
if __name__ == "__main__":		# multiprocessing's children import this file
    result = Counting()
    try:
        suite = unittest.defaultTestLoader.loadTestsFromName("test." + name)
        leave_out(suite)
        suite.run(result)
    except unittest.SkipTest as e:
        result.why.append("all skipped: %s" % e)
        result.skipped.append(None)
    sys.stdout.flush()
    os.write(1, ("\nCOUNTS" + json.dumps({
        "run": result.testsRun, "skipped": len(result.skipped),
        "failures": len(result.failures), "errors": len(result.errors),
        "why": result.why}) + "\n").encode())
"""
# What imports may have changed.
LEARNED = "test_atexit test_random test_threading_local test_warnings".split()
COUNTED = ("run", "skipped", "failures", "errors")


def modules(name, chosen=None):
    """What there is of each: a module, and tests of it that are left out. chosen: only these modules.
    Otherwise MCP_CPYTHON_PART="2/4" chooses the third of four parts."""
    with open(os.path.join(HERE, name), encoding="utf-8") as f:
        lines = [line.split("#")[0].strip() for line in f if line.split("#")[0].strip()]
    if chosen:
        return [line for line in lines if line.split()[0] in chosen]
    part, parts = (int(n) for n in os.environ.get("MCP_CPYTHON_PART", "0/1").split("/"))
    return [line for line in lines if zlib.crc32(line.split()[0].encode()) % parts == part]


def counts_in(text):
    for line in reversed(text.splitlines()):
        if line.startswith("COUNTS"):
            return json.loads(line[6:])
    return None


def in_script(ctx, line, timeout):
    with ctx.client() as client:
        o = client.run(DRIVER, timeout + 30, args=line.split(), timeout_seconds=timeout,
                       cpu_seconds=timeout, memory_mb=1024, pids=256)
        return counts_in(o.stdout), o


def in_learned(ctx, line, timeout):
    with ctx.client() as client:
        script = learned_script(client, DRIVER, "numpy", "requests")
        o = client.run(script, timeout + 30, args=line.split(), timeout_seconds=timeout,
                       cpu_seconds=timeout, memory_mb=1024, pids=256)
        return counts_in(o.stdout), o


def in_cell(ctx, line, timeout):
    with begun(ctx, "import sys\nsys.argv[1:] = %r" % line.split(), memory_mb=1024) as s:
        o = s.call(DRIVER, timeout + 30, timeout_seconds=timeout, cpu_seconds=timeout, pids=256)
        return counts_in(o.stdout), o


def difference(here, there):
    """What is in one list of reasons and not in the other."""
    only = ["inside: " + w for w in there["why"] if w not in here["why"]]
    only += ["outside: " + w for w in here["why"] if w not in there["why"]]
    return "\n".join(w[-1800:] for w in only[:8])


def once(ctx, line, inside, timeout):
    """The counts inside, and what is wrong with them, or None. In a tree that was copied elsewhere, as
    check-pythons does, or in a root that has little else, some tests fail outside, too; those of this
    machine's own Python do not."""
    said, complaint, status = run_unjailed(DRIVER, line.split(), timeout)
    native = counts_in(said)
    assert native, "outside: %s %s" % (status, complaint[-2000:])
    jailed, o = inside(ctx, line, timeout)
    assert jailed, "inside: %r" % o
    here = {k: native[k] for k in COUNTED}
    there = {k: jailed[k] for k in COUNTED}
    problem = None
    if here != there:
        problem = "outside %s, inside %s\n%s" % (here, there, difference(native, jailed))
    elif not here["run"] or (under_test.is_packaged and not under_test.root and
                             (here["failures"] or here["errors"])):
        problem = "outside: %s" % native
    return there, problem


def compare(ctx, line, inside):
    if not os.path.isdir(TESTS + "/libregrtest"):
        raise Skip("%s is missing: libpython%d.%d-testsuite is not installed" % (TESTS, *under_test.version[:2]),
                   missing=True)
    module = os.path.join(TESTS, line.split()[0])
    if not os.path.exists(module + ".py") and not os.path.isdir(module):
        raise Skip("Python %d.%d has no tests of this name" % under_test.version[:2])
    timeout = min(600, int(ctx.seconds(300)))
    there, problem = once(ctx, line, inside, timeout)
    # Some of them depend on the time that passes: what is different on a busy machine is tried
    # again, and what is different in the jail is so again.
    if problem:
        there, problem = once(ctx, line, inside, timeout)
    assert not problem, problem
    return "%(run)d run, %(skipped)d skipped" % there


for line in modules("cpython-modules.txt"):
    test(lambda ctx, line=line: compare(ctx, line, in_script), name=line.split()[0])
for line in modules("cpython-cells.txt"):
    test(lambda ctx, line=line: compare(ctx, line, in_cell), name="cell_" + line.split()[0])
for line in modules("cpython-modules.txt", os.environ.get("MCP_CPYTHON_LEARNED") != "all" and LEARNED):
    test(lambda ctx, line=line: compare(ctx, line, in_learned), name="learned_" + line.split()[0])
main(__doc__)
