#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Other CPythons beside the service's own, each in a directory of its own: what runs is the one that
was asked for. tests/check-pythons builds the workers: mcp-python-worker-py3XX beside the others.

A suite of tests/integration/run."""

import contextlib
import os
import re

from harness import Skip, equal, main, test
from mcpclient import Client

NAME = re.compile(r"mcp-python-worker-(py3(\d\d)(?:-shared)?)$")
WHICH = """import sys, os, json, subprocess
out = subprocess.run(["python3", "-c", "import sys, json; print(sys.version, sys.prefix)"],
                     capture_output=True, text=True).stdout
[list(sys.version_info[:3]), sys.prefix, sys.executable, os.__file__, out,
 [name for name in os.environ if name.startswith("LD_")]]"""
MODULES = """import ssl, sqlite3, ctypes, decimal, lzma, bz2, zlib, hashlib, asyncio, uuid
from multiprocessing import Pool
if __name__ == '__main__':
    with Pool(2) as p: print(p.map(abs, [-1, -2]))
    async def one():
        return sqlite3.connect(':memory:').execute('select 1').fetchone()
    print(asyncio.run(one()), hashlib.sha256(b'').hexdigest()[:4])"""


def others(ctx):
    """Names of the workers, and the second number of each one's version."""
    found = sorted(m.groups() for m in map(NAME.match, os.listdir(ctx.options.build)) if m)
    if not found:
        raise Skip("there is no second Python: tests/check-pythons builds workers for those "
                   "that it finds")
    return [(name, int(minor)) for name, minor in found]


@contextlib.contextmanager
def service(ctx):
    found = others(ctx)
    config = "".join("[profile %s]\ninterpreter = %s\nmodules = json\n" % (n, n) for n, _ in found)
    with ctx.private("[profile basic]\n" + config) as s, Client.connect(
            s.socket, "2025-11-25", timeout=ctx.seconds(60)) as client:
        yield client, found


@test(private=True)
def the_one_that_is_asked_for_runs(ctx):
    with service(ctx) as (client, found):
        for name, minor in found:
            o = client.run(WHICH, profile=name)
            equal(o.status, "ok", o.text[:500])
            version, prefix, executable, module, started, linker = o.result["json"]
            equal(version[:2], [3, minor], name)
            assert prefix != "/usr", prefix
            assert executable.startswith(prefix + "/bin/"), executable
            assert module.startswith("%s/lib/python3.%d/" % (prefix, minor)), module
            assert started.startswith("3.%d.%d " % (minor, version[2])), started
            assert started.rstrip().endswith(prefix), started
            equal(linker, [], "variables of the dynamic linker")
        o = client.run("import sys\n[sys.prefix, sys.executable]")
        equal(o.result["json"], ["/usr", "/usr/bin/python3"], "the usual one, beside them")


@test(private=True)
def modules_and_limits_are_as_usual(ctx):
    with service(ctx) as (client, found):
        for name, _ in found:
            o = client.run(MODULES, profile=name)
            equal((o.status, o.stdout), ("ok", "[1, 2]\n(1,) e3b0\n"), o.text[:500])
            o = client.run("1/0", profile=name)
            equal((o.error["type"], o.error["line"]), ("ZeroDivisionError", 1))
            equal(client.run("while True: pass", profile=name, timeout_seconds=1).status,
                  "timeout")
            o = client.run("open(__import__('sys').prefix + '/bin/mine', 'w')", profile=name)
            equal(o.error["type"], "OSError", "the tree is read-only")


# Names that a script sees in a directory, or why it sees none.
SEES = """import os, sys
def names(path):
    try:
        return sorted(os.listdir(path))
    except OSError as e:
        return type(e).__name__
{path: names(path) for path in %r}"""


@test(private=True)
def nothing_beside_it_is_shown(ctx):
    """Of the directories above a Python, and of one that it shares with other software."""
    with service(ctx) as (client, found):
        for name, minor in found:
            prefix = client.run("import sys\nsys.prefix", profile=name).result["json"]
            shared = name.endswith("-shared")
            above = [prefix] if shared else []
            while (prefix := os.path.dirname(prefix)) != "/":
                above.append(prefix)
            o = client.run(SEES % above, profile=name)
            equal(o.status, "ok", o.text[:500])
            want = {path: "PermissionError" for path in above}
            if shared:
                want[above[0]] = ["bin", "lib"]
            equal(o.result["json"], want, name)
            if shared:
                o = client.run(SEES % [above[0] + "/bin", above[0] + "/lib"], profile=name)
                programs, libraries = o.result["json"].values()
                assert set(programs) <= {"python3", "python3.%d" % minor, "pip", "pip3"}, programs
                assert all("python3.%d" % minor in n for n in libraries), libraries


@test(private=True)
def another_library_is_not_taken(ctx):
    """The loader may not read the library, and takes another one of that name if there is one."""
    with service(ctx) as (client, found):
        prefixes = [client.run("import sys\nsys.prefix", profile=name).result["json"]
                    for name, _ in found]
    libraries = [p for p in map("%s/lib/libpython3.%d.so.1.0".__mod__,
                                zip(prefixes, (minor for _, minor in found))) if os.path.exists(p)]
    if os.getuid() or not libraries:
        raise Skip("no library whose mode could be changed")
    with contextlib.ExitStack() as stack:
        for path in libraries:
            stack.callback(os.chmod, path, os.stat(path).st_mode & 0o777)
            os.chmod(path, 0o600)
        config = "[profile basic]\n" + "".join(
            "[profile %s]\ninterpreter = %s\n" % (name, name) for name, _ in found)
        with ctx.private(config) as s, Client.connect(
                s.socket, "2025-11-25", timeout=ctx.seconds(60)) as client:
            for name, _ in found:
                o = client.run(WHICH, profile=name)
                assert o.status != "ok", "%s ran: %s" % (name, o.text)
            equal(client.run("1").status, "ok", "the usual one")
            log = s.log()
    for path in libraries:
        assert "not below %s" % os.path.dirname(os.path.dirname(path)) in log or \
            os.path.basename(path) + ": cannot open" in log, log


@test(private=True)
def a_version_chooses_among_them(ctx):
    which = "import sys\nlist(sys.version_info[:2])"
    block = "# /// script\n# requires-python = '%s'\n# ///\n" + which
    with service(ctx) as (client, found):
        for minor in sorted({minor for _, minor in found}):
            want = [3, minor]
            equal(client.run(which, python_version="3.%d" % minor).result["json"], want)
            equal(client.run(block % ("==3.%d.*" % minor)).result["json"], want)
        newest = max(minor for _, minor in found)
        equal(client.run(block % (">=3.%d" % newest)).result["json"], [3, newest])
        o = client.run(block % ">=3.99")
        equal(o.status, "python_unavailable")


@test(private=True)
def check_environment_tells_of_each(ctx):
    with service(ctx) as (client, found):
        profiles = client.ask("tools/call", {"name": "check_environment", "arguments": {}})
        told = {p["name"]: p for p in profiles["structuredContent"]["profiles"]}
        for name, minor in found:
            equal(told[name]["interpreter"], name)
            full = client.run("import platform\nplatform.python_version()",
                              profile=name).result["json"]
            one = client.ask("tools/call", {"name": "check_environment",
                                            "arguments": {"profile": name}})
            assert full in repr(one["structuredContent"]), (full, one["structuredContent"])


@test(private=True)
def sessions_go_on_and_go_back(ctx):
    with service(ctx) as (client, found):
        for name, minor in found:
            def cell(code, **more):
                return client.ask("tools/call", {"name": "run_repl", "arguments": {
                    "code": code, **more}})["structuredContent"]
            first = cell("import sys\nx = sys.version_info[1]", profile=name)
            equal(first["status"], "ok", name)
            second = cell("x * 2", session=first["session"])
            equal(second["result"]["json"], 2 * minor)
            failed = cell("y = 1\n1/0", session=first["session"])
            equal(failed["status"], "error")
            traceback = failed["error"]["traceback"]
            assert "ZeroDivisionError" in traceback, traceback


if __name__ == "__main__":
    main(__doc__)
