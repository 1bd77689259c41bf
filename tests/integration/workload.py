#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Ordinary programs: each must end as it does on the host, or, where it speaks of a server's own
things (values, bounds, top-level await), as the line says.

tests/corpus/README.md has the fields of a line. Fields that only these lines have: arguments (of
run_script), expect_status, expect_signal, expect_stdout_re, expect_stdout_not_re, expect_stderr
(exact), traceback_is_stderr, expect_repr, expect_json, expect_no_json, expect_no_value,
expect_value_cut, expect_error, expect_truncated, expect_no_foreign_frames, expect_text_order,
stdout_of_version (see as_here).
"""

import json
import os
import re

from harness import CORPUS, Skip, equal, main, test
from interpreter import under_test
from unjailed import run_unjailed

PROBE = "import importlib.util\nimportlib.util.find_spec(%r) is not None"


def as_list(value):
    return value if isinstance(value, list) else [value]


# What the service adds to an error (worker/lacks.py): the cases are what Python itself writes.
NOTE = re.compile(r"\n(Python here is 3\.\d+|the text is not UTF-8; .*)$")


def check_streams(case, o):
    if "expect_stdout" in case:
        equal(o.stdout.rstrip("\n"), case["expect_stdout"].rstrip("\n"), "stdout")
    if "expect_stdout_re" in case:
        assert re.search(case["expect_stdout_re"], o.stdout), "stdout is %.200r ... %.200r" % (
            o.stdout, o.stdout[-200:])
    if "expect_stdout_not_re" in case:
        assert not re.search(case["expect_stdout_not_re"], o.stdout), "in stdout: %r" % (
            case["expect_stdout_not_re"])
    if "expect_stderr" in case:
        equal(NOTE.sub("", o.stderr.rstrip("\n")), case["expect_stderr"].rstrip("\n"), "stderr")
    if "expect_stderr_re" in case:
        traceback = (o.error or {}).get("traceback") or ""
        text = "%s\n%s: %s" % (traceback, (o.error or {}).get("type"),
                               (o.error or {}).get("message"))
        assert re.search(case["expect_stderr_re"], o.stderr) or re.search(
            case["expect_stderr_re"], text), "no %r in stderr %r nor in %r" % (
                case["expect_stderr_re"], o.stderr, o.error)
    if "expect_truncated" in case:
        dropped = o.truncated["stdout_dropped"] + o.truncated["stderr_dropped"]
        equal(dropped > 0, case["expect_truncated"], "something dropped")
    at = 0
    for word in case.get("expect_text_order", ()):
        found = o.text.find(word, at)
        assert found >= 0, "%r is not in order in %r" % (word, o.text)
        at = found


def check_value(case, o):
    if case.get("expect_no_value"):
        assert o.result is None, "result is %r" % o.result
    if "expect_repr" in case:
        assert o.result is not None, "no result: %r" % o
        equal(o.result["repr"], case["expect_repr"], "repr")
    if "expect_json" in case:
        assert o.result is not None and "json" in o.result, "no JSON: %r" % o.result
        equal(json.dumps(o.result["json"]), json.dumps(case["expect_json"]), "json")
    if case.get("expect_no_json"):
        assert "json" not in o.result, "JSON of what has none: %.200r" % o.result
    if case.get("expect_value_cut"):
        assert o.truncated["result"] is True, "result is not said to be cut"
        assert 0 < len(o.result["repr"]) <= 1 << 20, "repr of %d" % len(o.result["repr"])


def check_error(case, o):
    want = case.get("expect_error")
    if want:
        assert o.error, "no error: %r" % o
        for key, value in want.items():
            got = o.error[key]
            assert got == value or isinstance(value, str) and re.fullmatch(
                value, str(got)), "error.%s is %r, not %r" % (key, got, value)
    if case.get("traceback_is_stderr"):
        traceback = (o.error or {}).get("traceback") or ""
        # A NUL cannot be in a message between the processes; it is shown escaped.
        equal(NOTE.sub("", traceback.rstrip("\n")), case["expect_stderr"].rstrip("\n").replace("\0", "\\x00"),
              "error.traceback")
    if case.get("expect_no_foreign_frames"):
        frames = re.findall(r'File "([^"]*)"', (o.error or {}).get("traceback") or "")
        assert frames and set(frames) == {"script.py"}, "frames of %s" % frames
    if "expect_signal" in case:
        assert case["expect_signal"] in (o.error or {}).get("message", ""), "no %s in %r" % (
            case["expect_signal"], o.error)


def as_here(case):
    """The corpora are those of Debian's Python 3.11. Another one has other paths, marks other parts of a line in a traceback, and
    some programs print what differs between them: there it is as outside the jail."""
    fields = ["expect_stderr"] * bool(case.get("expect_stderr")) + \
        ["expect_stdout"] * bool(case.get("stdout_of_version"))
    if (under_test.is_packaged and under_test.version[:2] == (3, 11)) or not fields or case.get("arguments"):
        return case
    stdout, stderr, _ = run_unjailed(case["script"], [], 60)
    said = {"expect_stdout": stdout,
            "expect_stderr": re.sub(r"/[^ \"']*/script\.py\b", "script.py", stderr)}
    return dict(case, **{name: said[name] for name in fields})


def run_case(ctx, case):
    if case.get("own_programs") and under_test.root:
        raise Skip("a root has its own programs, and maybe not this one")
    if case.get("of_debian") and not under_test.is_packaged:
        raise Skip("only Debian's Python has this")
    case = as_here(case)
    with ctx.client() as client:
        for package in case.get("needs", ()):
            if client.run(PROBE % package).result["repr"] != "True":
                raise Skip("%s is not installed" % package, missing=True)
        o = client.run(case["script"], ctx.seconds(60), **case.get("arguments", {}))
        assert not o.refused, "refused: %r" % o
        exits = as_list(case["expect_exit"])
        statuses = as_list(case.get("expect_status", "error" if exits[0] else "ok"))
        assert o.status in statuses, "status is not %s: %r" % (statuses, o)
        assert o.exit_code in exits, "exit code is not %s: %r" % (exits, o)
        equal(o.is_error, o.status != "ok", "isError")
        check_streams(case, o)
        check_value(case, o)
        check_error(case, o)


def long_text(value):
    """The text that an object of a line stands for; any other object as it is."""
    if value.keys() == {"repeat", "times"}:
        return value["repeat"] * value["times"]
    return "".join(value["joined"]) if value.keys() == {"joined"} else value


def add_file(path):
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            case = json.loads(line, object_hook=long_text)
            test(lambda ctx, case=case: run_case(ctx, case), name=case["id"])


@test
def random_numbers_differ(ctx):
    """Workers are copies of one process: they must not share its random state."""
    script = ("import random, uuid, secrets, tempfile, os\n"
              "print(random.random(), uuid.uuid4(), secrets.token_hex(8), "
              "next(tempfile._get_candidate_names()), random.SystemRandom().random())")
    with ctx.client() as client:
        seen = [client.run(script).stdout.split() for _ in range(6)]
    for column in zip(*seen):
        assert len(set(column)) == len(column), "the same twice: %s" % (column,)


@test
def what_a_script_is_given_cannot_be_changed(ctx):
    """Its standard input, and the program that runs it: files in memory, and sealed."""
    script = ("import mmap, os\n"
              "def refused(what, *arguments, **more):\n"
              "    try: what(*arguments, **more)\n"
              "    except OSError: return True\n"
              "    return False\n"
              "shared = dict(flags=mmap.MAP_SHARED, prot=mmap.PROT_READ | mmap.PROT_WRITE)\n"
              "[refused(os.write, 0, b'x'), refused(os.pwrite, 0, b'x', 9000),\n"
              " refused(os.truncate, 0, 0), refused(os.truncate, 0, 9000),\n"
              " refused(mmap.mmap, 0, 6, **shared), refused(open, '/proc/self/exe', 'r+b'),\n"
              " input() == 'given']")
    with ctx.client() as client:
        o = client.run(script, stdin="given\n")
        equal((o.status, o.result and o.result["json"]), ("ok", [True] * 7), repr(o))


@test
def ids_differ(ctx):
    with ctx.client() as client:
        ids = [client.run("").id for _ in range(5)]
    assert len(set(ids)) == 5 and all(re.fullmatch("x-[a-z0-9]{10}", i) for i in ids), ids


@test
def numbers_make_sense(ctx):
    """duration, cpu and peak are about what the script did."""
    with ctx.client() as client:
        o = client.run("import time\nb = b'x' * (64 << 20)\nt = time.process_time()\n"
                       "while time.process_time() < t + 0.3: pass\ntime.sleep(0.3)")
        assert 600 <= o.duration_ms <= 600 + 5000 * ctx.slow, "duration %d" % o.duration_ms
        assert 250 <= o.cpu_ms <= o.duration_ms + 100, "cpu %d" % o.cpu_ms
        if o.peak_memory_bytes is not None:
            peak = o.peak_memory_bytes >> 20
            assert 60 <= peak <= 200, "peak of %d MiB" % peak


@test
def both_revision_families_agree(ctx):
    for revision in ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"):
        with ctx.client(revision) as client:
            o = client.run("print('x')\n[1, 2]")
            assert not o.is_error, repr(o)
            if o.structured is not None:
                equal((o.status, o.stdout, o.result["json"]), ("ok", "x\n", [1, 2]), revision)
            assert "x" in o.text and "[1, 2]" in o.text, "text: %r" % o.text


@test
def bad_source_is_refused_with_its_place(ctx):
    with ctx.client() as client:
        o = client.run("print('a')\nx = 'b\0c'\n")
        assert o.refused and o.is_error, repr(o)
        assert "NUL" in o.text and "17" in o.text and "line 2" in o.text, o.text
    for bad in (b"'\\ud800'", b"'\xff\xfe'"):	# half a surrogate pair; not UTF-8
        raw = ctx.raw()
        raw.send_raw(b'{"jsonrpc":"2.0","id":91,"method":"tools/call","params":{"name":'
                     b'"run_script","arguments":{"script":"print(\'ran\')\\n' + bad + b'"}}}\n')
        message = raw.recv()
        assert "error" in message or message["result"]["isError"], "accepted: %r" % message
        assert "ran" not in str(message), "run in part: %r" % message
        raw.close()


for file_name in ("workload-own.jsonl", "workload-more.jsonl"):
    add_file(os.path.join(CORPUS, file_name))
THIRD_PARTY = "workload-thirdparty.jsonl"
if "MCP_CORPUS" in os.environ:
    add_file(os.path.join(os.environ["MCP_CORPUS"], THIRD_PARTY))
else:
    @test
    def third_party_programs(ctx):
        raise Skip("%s is not part of the tree: HumanEval and MBPP have licenses of their own; "
                   "$MCP_CORPUS names the folder that has it" % THIRD_PARTY)
main(__doc__)
