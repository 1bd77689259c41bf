#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Packages' own tests inside a worker: each test ends as it does outside.

The modules are those of package-suites.txt, from Debian's packages. Each is run twice, the second time in a worker of a zygote that has learned
packages. Outside means: the same driver
script, the same interpreter, an unprivileged user, an empty directory. It takes long, so only
tests/check-all --all runs it. MCP_PYTEST is a folder that has pytest and what it needs, where
Debian's python3-pytest is not installed; numpy's tests need hypothesis, too.
"""

import json
import os

from harness import Skip, main, test
from learned_worker import learned_script
from unjailed import run_unjailed

HERE = os.path.dirname(os.path.abspath(__file__))
EXTRA = os.environ.get("MCP_PYTEST", "")
SECONDS = 600
LEARNED = "numpy", "sklearn.cluster"	# in the zygote of each second run

DRIVER = r"""
import json, os, site, sys
extra, module, *left_out = sys.argv[1:] or ["", ""]
if extra:
    site.addsitedir(extra)	# a script that names the list itself gets a small worker
class Outcomes:
    passed, others = 0, {}
    def pytest_collection_modifyitems(self, items):
        items[:] = [i for i in items if getattr(i, "originalname", i.name) not in left_out]
    def pytest_runtest_logreport(self, report):
        if report.outcome != "passed":
            self.others[report.nodeid.split("::", 1)[1]] = "%s: %s" % (
                report.outcome, str(report.longrepr)[-700:])
        elif report.when == "call":
            self.passed += 1
os.environ["NO_AUTOKILL"] = "1"	# joblib's tests would end this process after some minutes
if __name__ == "__main__":		# multiprocessing's children import this file
    try:
        __import__(module)
        import pytest
    except ImportError as e:
        print("MISSING " + str(e.name))
        sys.exit()
    outcomes = Outcomes()
    pytest.main(["-q", "--tb=short", "-p", "no:cacheprovider", "-p", "no:warnings", "--pyargs", module],
                plugins=[outcomes])
    sys.stdout.flush()
    os.write(1, ("\nOUTCOMES" + json.dumps([outcomes.passed, outcomes.others]) + "\n").encode())
"""


def modules():
    """Each with the tests of it that are left out."""
    with open(os.path.join(HERE, "package-suites.txt"), encoding="utf-8") as f:
        return [words for line in f if (words := line.split("#")[0].split())]


def outcomes_in(text, what):
    """How many passed, and how each other one ended."""
    for line in reversed(text.splitlines()):
        if line.startswith("MISSING "):
            raise Skip("no %s here" % line[8:], missing=True)
        if line.startswith("OUTCOMES"):
            return json.loads(line[8:])
    raise AssertionError("%s: %s" % (what, text[-1500:]))


def outside(args):
    said, complaint, _ = run_unjailed(DRIVER, args, SECONDS)
    return outcomes_in(said, "outside: " + complaint[-1000:])


def inside(ctx, args, learned=()):
    config = "[profile basic]\npaths = %s\n" % EXTRA if EXTRA else None
    with ctx.private(config) as service, ctx.client(path=service.socket) as client:
        script = learned_script(client, DRIVER, *learned) if learned else DRIVER
        o = client.run(script, SECONDS + 30, args=list(args), timeout_seconds=SECONDS,
                       cpu_seconds=SECONDS, memory_mb=2048, pids=256)
        return outcomes_in(o.stdout, "inside: %r" % o)


def different(there, here):
    """Tests by name, with how they ended."""
    names = sorted(set(there) | set(here))
    kinds = [(n, there.get(n, "passed:"), here.get(n, "passed:")) for n in names]
    return ["%s: inside %s\n    outside %s" % (n, a, b) for n, a, b in kinds
            if a.split(":")[0] != b.split(":")[0]]


def compare(ctx, args, learned=()):
    native = outside([EXTRA, *args])
    jailed = inside(ctx, [EXTRA, *args], learned)
    problems = different(jailed[1], native[1])
    # Some depend on how busy the machine is.
    if problems or jailed[0] != native[0]:
        native, jailed = outside([EXTRA, *args]), inside(ctx, [EXTRA, *args], learned)
        problems = different(jailed[1], native[1])
    assert not problems, "\n".join(problems[:20])
    assert jailed[0] == native[0] > 0, (jailed[0], native[0])
    return "%d passed, %d other" % (jailed[0], len(jailed[1]))


for words in modules():
    test(lambda ctx, words=words: compare(ctx, words), name=words[0])
    test(lambda ctx, words=words: compare(ctx, words, LEARNED), name="learned_" + words[0])
main(__doc__)
