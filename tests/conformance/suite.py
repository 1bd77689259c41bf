# SPDX-License-Identifier: Apache-2.0
"""The official suite against one program. A tick of the suite is not enough: what counts are
the checks that it wrote down, none a FAILURE, and as many of them SUCCESS as expected.json
says; some scenarios pass when nothing at all was asked."""

import collections
import json
import os
import re
import time

HERE = os.path.dirname(os.path.abspath(__file__))
EXPECTED = os.path.join(HERE, "expected.json")
MINUTES = 5
# What is run: a name, and the suite's arguments.
RUNS = {
    "2025-11-25": ["--requirements", "2025-11-25"],
    "2026-07-28": ["--requirements", "2026-07-28"],
    "2025-06-18": ["--suite", "all", "--spec-version", "2025-06-18"],
    "2025-03-26": ["--scenario", "server-session-lifecycle", "--spec-version", "2025-03-26"],
}


class Scenario:
    def __init__(self, checks):
        self.count = collections.Counter(c["status"] for c in checks)
        self.problems = [c for c in checks if c["status"] in ("FAILURE", "WARNING")]
        self.failing = sorted({c["id"] for c in checks if c["status"] == "FAILURE"})

    @property
    def success(self):
        return self.count["SUCCESS"]

    def __str__(self):
        return ", ".join("%d %s" % (self.count[k], k) for k in (
            "SUCCESS", "FAILURE", "WARNING", "SKIPPED", "INFO") if self.count[k]) or "nothing"

    def complaints(self):
        return "\n".join("%(status)s %(id)s: %(errorMessage).300s" % {
            "errorMessage": "", **c} for c in self.problems)


def run_suite(tools, url, name, out):
    """All that one run of the suite wrote down: scenario -> Scenario, and its output."""
    directory = os.path.join(out, name)
    done = tools.run(["conformance", "server", "--url", url, "-o", directory] + RUNS[name],
                     MINUTES * 60, cwd=out)
    found = {}
    for entry in sorted(os.listdir(directory)) if os.path.isdir(directory) else []:
        # server-SCENARIO-2026-01-31T12-00-00-000Z
        m = re.fullmatch(r"server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z", entry)
        checks = os.path.join(directory, entry, "checks.json")
        if m and os.path.exists(checks):	# it is not when the scenario broke off
            with open(checks, encoding="utf-8") as f:
                found[m[1]] = Scenario(json.load(f))
    return found, done


def judge(scenario, expected, is_fixtures):
    """Compares with expected.json; text to show, or AssertionError."""
    if scenario is None:
        raise AssertionError("the suite did not run it")
    allowed = set() if is_fixtures else set(expected.get("failing", ()))
    worse = [i for i in scenario.failing if i not in allowed]
    if worse or scenario.success < expected["success"]:
        raise AssertionError("%s; %d SUCCESS expected\n%s" % (
            scenario, expected["success"], scenario.complaints()))
    more = scenario.success - expected["success"]
    return str(scenario) + (" (%d more than recorded)" % more if more else "")


def read_expected():
    with open(EXPECTED, encoding="utf-8") as f:
        return json.load(f)


def record(program, results):
    """Writes what was found as what is expected from now on. Of the shipped program: only
    of the scenarios that the file has, which need no fixture or, with "failing", little."""
    expected = read_expected()
    before = expected.get(program, {})
    expected[program] = {}
    for run, found in sorted(results.items()):
        entry = expected[program][run] = {}
        for name, s in sorted(found.items()):
            known = before.get(run, {}).get(name, {})
            if program == "fixtures" or known:
                entry[name] = {"success": s.success}
            if "failing" in known:
                entry[name]["failing"] = s.failing
    with open(EXPECTED, "w", encoding="utf-8") as f:
        json.dump(expected, f, indent=1, sort_keys=True)
        f.write("\n")


def run(tools, service, program, out, report, recording):
    """program: "fixtures" or "shipped", as in expected.json."""
    results = {}
    for name in RUNS:
        started = time.monotonic()
        found, done = run_suite(tools, service.url, name, out)
        results[name] = found
        if recording:
            for scenario, s in sorted(found.items()):
                print("%s %s %s: %s\n%s" % (program, name, scenario, s, s.complaints()))
            continue
        expected = read_expected()[program][name]
        is_fixtures = program == "fixtures"
        seconds = time.monotonic() - started
        if is_fixtures:
            # Every scenario of the run counts, also one that is not recorded.
            for scenario in found:
                expected.setdefault(scenario, {"success": 1})
            if done.returncode:
                report.say("failed", "%s %s: the suite's verdict" % (program, name), seconds,
                           "exit status %d\n%s" % (done.returncode, done.stdout[-3000:]))
        for scenario, wanted in sorted(expected.items()):
            label = "%s %s %s" % (program, name, scenario)
            try:
                text = judge(found.get(scenario), wanted, is_fixtures)
            except AssertionError as e:
                report.say("failed", label, seconds, str(e))
                continue
            if wanted["success"] == 0:
                report.say("skipped", label, 0, "the suite checks nothing here: " + text)
            else:
                report.say("passed", "%s: %s" % (label, text), seconds)
            seconds = 0	# of the whole run, said once
    if recording:
        record(program, results)
