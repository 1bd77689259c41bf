#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Several interpreters: each profile's own, and how a call chooses one.

A suite of tests/integration/run."""

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile

from harness import Skip, equal, main, test
from mcpclient import Client
from python_tree import own_tree

CONFIG = "[profile second]\ninterpreter = debug\nmodules = json decimal\n[profile third]\nmodules = json\n"
WHICH = "import sys\nprint(sys.version_info[:2], sys.abiflags, hasattr(sys, 'gettotalrefcount'))"
USUAL, DEBUG = "(3, 11)  False\n", "(3, 11) d True\n"


@contextlib.contextmanager
def service(ctx, config=CONFIG):
    program = os.path.join(ctx.options.build, "mcp-python-worker-debug")
    if not os.path.exists(program):
        raise Skip("%s is not built: python3.11-dbg and libpython3.11-dbg are not installed" %
                   program, missing=True)
    with ctx.private(config) as s, Client.connect(
            s.socket, "2025-11-25", timeout=ctx.seconds(60)) as client:
        yield client


def which(client, **arguments):
    o = client.run(WHICH, **arguments)
    equal(o.status, "ok", o.text[:300])
    return o.stdout


@test(private=True, any_rights=True)
def each_profile_has_its_own(ctx):
    with service(ctx) as client:
        equal(which(client), USUAL)
        equal(which(client, profile="second"), DEBUG)
        equal(which(client, profile="third"), USUAL)
        o = client.run("import subprocess, sys\nsubprocess.check_output([sys.executable, '-c', %r])"
                       % "import sys; print(sys.abiflags)", profile="second")
        equal(o.result["repr"], "b'd\\n'", "what a script starts")
        o = client.run("import ssl, sqlite3, ctypes, decimal, lzma\n"
                       "from multiprocessing import Pool\n"
                       "if __name__ == '__main__':\n"
                       "    with Pool(2) as p: print(p.map(abs, [-1, -2]))", profile="second")
        equal((o.status, o.stdout), ("ok", "[1, 2]\n"), "extension modules")
        o = client.run("1/0", profile="second")
        equal((o.error["type"], o.error["line"]), ("ZeroDivisionError", 1))
        tools = client.ask("tools/call", {"name": "check_environment", "arguments": {}})
        equal([(p["name"], p["interpreter"]) for p in tools["structuredContent"]["profiles"]],
              [("basic", None), ("second", "debug"), ("third", None)])


@test(private=True)
def limits_hold_in_the_other_one(ctx):
    with service(ctx) as client:
        o = client.run("import time\nx = bytearray(600 << 20)\ntime.sleep(1000)", profile="second",
                       timeout_seconds=20)
        assert o.status in ("memory_limit", "error"), repr(o)
        equal(client.run("import time; time.sleep(1000)", profile="second", timeout_seconds=1).status, "timeout")
        equal(which(client, profile="second"), DEBUG, "afterwards")


@test(private=True, any_rights=True)
def a_version_chooses(ctx):
    full = "%d.%d.%d" % sys.version_info[:3]
    with service(ctx) as client:
        equal(which(client, python_version="3.11"), USUAL)
        equal(which(client, python_version="3"), USUAL)
        equal(which(client, python_version=full), USUAL)
        equal(which(client, python_version="debug"), DEBUG)
        equal(which(client, python_version="3.11", profile="second"), DEBUG)
        equal(which(client, python_version="debug", profile="second"), DEBUG)
        for version, more in (("3.12", {}), ("2.7", {}), ("3.11.999", {}), ("none", {}),
                              ("3.12", {"profile": "second"}), ("debug", {"profile": "third"})):
            o = client.run("1", python_version=version, **more)
            equal(o.status, "python_unavailable", "%s %s" % (version, more))
            assert "requires-python is ==" in o.text or "has an interpreter" in o.text, o.text
            if version[0].isdigit() and not more:
                assert "the profile basic has Python %s. Nothing was run. No other profile has" % full in o.text, o.text
        for version in ("", None):	# not given
            equal(which(client, python_version=version), USUAL)
        for version in ("3.11 ", ">=3", 3.11, "x" * 33, "3..1", "3.", "3.x"):
            o = client.run("1", python_version=version)
            equal(o.status, "invalid_arguments", "%r" % (version,))


@test(private=True, any_rights=True)
def metadata_is_held_against_the_one_that_is_asked_for(ctx):
    block = "# /// script\n# requires-python = '%s'\n# ///\n" + WHICH
    with service(ctx) as client:
        for spec, arguments, want in ((">=3.11", {}, USUAL), (">=3.11", {"python_version": "debug"}, DEBUG),
                                      ("==3.11.*", {"profile": "second"}, DEBUG)):
            o = client.run(block % spec, **arguments)
            equal((o.status, o.stdout), ("ok", want), spec)
        o = client.run(block % ">=3.12")
        equal(o.status, "python_unavailable")
        assert "requires-python is >=3.12" in o.text, o.text


@test(private=True, any_rights=True)
def the_other_one_may_be_the_default(ctx):
    with service(ctx, "[profile basic]\ninterpreter = debug\n[profile usual]\n") as client:
        equal(which(client), DEBUG)
        equal(which(client, profile="usual"), USUAL)


@test(private=True)
def packages_are_there_at_once(ctx):
    """A profile for data: preloaded, separate from the others, and equal to a fresh import."""
    config = "[profile data]\nmodules = json numpy pandas matplotlib.pyplot scipy.stats\n"
    packages = ("numpy", "pandas", "matplotlib", "scipy")
    with ctx.private(config) as s, Client.connect(
            s.socket, "2025-11-25", timeout=ctx.seconds(120)) as client:
        for package in packages:
            o = client.run("import importlib.util\nimportlib.util.find_spec(%r) is None" % package)
            if o.result["repr"] == "True":
                raise Skip("%s is not installed" % package, missing=True)
        loaded = "import sys\n[p in sys.modules for p in %r]" % (packages,)
        equal(client.run(loaded, profile="data").result["json"], [True] * 4)
        equal(client.run(loaded).result["json"], [False] * 4, "the default profile")
        spent = "import time\nt = time.process_time()\nimport %s\ntime.process_time() - t"
        for module in ("numpy", "pandas", "matplotlib.pyplot", "scipy.stats"):
            o = client.run(spent % module, profile="data")
            # A new one takes several times as long each, and nothing else is as quick as this.
            assert o.result["json"] < 0.02, "%s: %r" % (module, o)
        o = client.run("import matplotlib.pyplot as plt\nplt.figure(figsize=(2, 2), dpi=50)\nNone", profile="data")
        equal([(d["width"], d["height"]) for d in o.structured["displays"]], [(100, 100)])
        o = client.run("import pandas as pd\npd.DataFrame({'a': [1, 2]}).describe().loc['mean', 'a'].item()",
                       profile="data")
        equal(o.result["json"], 1.5)
        numbers = {client.run("import numpy as np\nfloat(np.random.rand())", profile="data").result["json"]
                   for _ in range(3)}
        equal(len(numbers), 3, "numbers that siblings do not share")


@test(private=True)
def what_is_not_there_is_said_at_the_start(ctx):
    with tempfile.TemporaryDirectory(dir=os.environ.get("XDG_RUNTIME_DIR") if os.getuid() else None) as d:
        with open(os.path.join(d, "conf"), "w", encoding="utf-8") as f:
            f.write("[profile x]\ninterpreter = nowhere\n")
        ended = subprocess.run([os.path.join(ctx.options.build, "mcp-pythond"), "--socket",
                                os.path.join(d, "sock"), "--config", f.name], text=True,
                               stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                               timeout=ctx.seconds(60))
    assert ended.returncode, ended
    assert "[profile x] interpreter: mcp-python-worker-nowhere: No such file" in ended.stderr, ended


# ---- another Python of the same version ----


def of_program(ctx, name, program):
    return "[interpreter %s]\nworker = %s\nprogram = %s\n[profile %s]\ninterpreter = %s\n" % (
        name, os.path.join(ctx.options.build, "mcp-python-worker"), program, name, name)


@test(private=True)
def one_worker_program_runs_every_python_of_its_version(ctx):
    with own_tree(ctx) as (tree, version), ctx.private(of_program(ctx, "own", tree + "/bin/python3")) as s, \
            Client.connect(s.socket, "2025-11-25", timeout=ctx.seconds(60)) as client:
        usual = which(client)
        look = "import os, sys, json, decimal, ssl, subprocess\nprint(sys.base_prefix, sys.executable, os.__file__, " \
            "subprocess.check_output(['python3', '-c', 'import sys; print(sys.base_prefix)'], text=True), " \
            "os.path.exists('/usr/lib/python%s'), 'zygote' in open('/proc/self/cmdline').read(), sep='\\n')" % version
        o = client.run(look, profile="own")
        program = "%s/bin/python%s" % (tree, version)
        equal((o.status, o.stdout.split()), ("ok", [tree, program, "%s/lib/python%s/os.py" % (tree, version), tree,
                                                    "False", "False"]), o.text[:500])
        equal(which(client, profile="own"), usual)
        equal(client.run("import os\nos.path.exists(%r)" % tree).result["json"], False, "the usual one")


@test(private=True)
def a_program_that_cannot_be_one_is_named(ctx):
    with own_tree(ctx) as (tree, version), tempfile.TemporaryDirectory() as below_tmp:
        name = "python" + version
        os.chmod(below_tmp, 0o755)
        wrong = ((tree + "/bin/python3.999", "looking for the program of the Python"),
                 ("%s/%s" % (tree, name), "not in a directory named bin"),
                 ("%s/bin/%s" % (below_tmp, name), "a place that workers have for themselves"),
                 ("%s/a:b/bin/%s" % (tree, name), "one of the characters"))
        for program, _ in wrong[1:]:
            os.makedirs(os.path.dirname(program), exist_ok=True)
            shutil.copy("%s/bin/%s" % (tree, name), program)
        config = "".join(of_program(ctx, "wrong%d" % i, program) for i, (program, _) in enumerate(wrong))
        with ctx.private(config) as s, Client.connect(s.socket, "2025-11-25", timeout=ctx.seconds(60)) as client:
            for i, (program, reason) in enumerate(wrong):
                equal(client.run("print(1)", profile="wrong%d" % i).status, "jail_failed", program)
                s.wait_log(program, lambda log, i=i, reason=reason: re.search(
                    'zygote-failed profile=wrong%d text="[^"]*%s' % (i, reason), log), ctx.seconds(60))
            equal(client.run("print(1)").stdout, "1\n", "the usual one is not affected")


# ---- profiles that a reload adds or changes ----


@contextlib.contextmanager
def reloadable(ctx):
    """A service, a client, and the path of a worker that a configuration can name."""
    with ctx.private("") as s, Client.connect(s.socket, "2025-11-25", timeout=ctx.seconds(60)) as client:
        yield s, client, os.path.join(s.dir, "worker")


def put_worker(ctx, path):
    shutil.copy(os.path.join(ctx.options.build, "mcp-python-worker"), path)
    os.chmod(path, 0o755)


def section(name, worker):
    return "[interpreter %s]\nworker = %s\n[profile %s]\ninterpreter = %s\n" % (name, worker, name, name)


def cell(client, code, **more):
    o = client.ask("tools/call", {"name": "run_repl", "arguments": {"code": code, **more}})
    return o["structuredContent"]


@test(private=True, any_rights=True)
def a_reload_adds_profiles(ctx):
    """Nothing that runs ends, and what is added is as if it had been there at the start."""
    with reloadable(ctx) as (s, client, worker):
        kept = cell(client, "x = 20")["session"]
        running = client.start_script("input(); 6 * 7", stdin="x", timeout_seconds=60)
        put_worker(ctx, worker)
        s.reload("[profile light]\nmodules = colorsys\n" + section("mine", worker))
        assert 'after_restart=""' in s.log(), s.log()
        equal(s.log().count("reloaded "), 1, "an event has one line")
        equal(client.outcome(running).result["json"], 42, "what ran then")
        equal(cell(client, "x + 1", session=kept)["result"]["json"], 21, "a session of before")
        equal(client.run("import sys\n'colorsys' in sys.modules", profile="light").result["json"], True)
        equal(client.run("1 + 1", profile="mine").result["json"], 2)
        equal(client.run("import sys\n'colorsys' in sys.modules").result["json"], False)
        other = cell(client, "y = 1", profile="mine")["session"]
        s.reload("[profile light]\nmodules = colorsys\n" + section("mine", worker) +
                 "[profile also]\nmodules = colorsys this.is.no.module\n")
        equal(cell(client, "y + 1", session=other)["result"]["json"], 2)
        equal(client.run("1", profile="also").status, "ok")
        with Client.connect(s.socket, "2025-11-25", 65534 if os.getuid() == 0 else None,
                            timeout=ctx.seconds(60)) as late:
            equal(late.run("3", profile="mine").result["json"], 3, "a tenant that comes later")
        environment = client.ask("tools/call", {"name": "check_environment", "arguments": {}})
        equal([(p["name"], p["interpreter"]) for p in environment["structuredContent"]["profiles"]],
              [("basic", None), ("light", None), ("mine", "mine"), ("also", None)])


@test(private=True, any_rights=True)
def a_profile_without_its_worker_is_not_added(ctx):
    with reloadable(ctx) as (s, client, worker):
        s.reload(section("mine", worker) + "[profile light]\n")
        assert "profile-not-taken profile=mine" in s.log() and worker + ": No such file" in s.log(), s.log()
        equal(client.run("1", profile="mine").status, "invalid_arguments")
        equal(client.run("1", profile="light").status, "ok", "the others are there")
        put_worker(ctx, worker)
        s.reload(section("mine", worker) + "[profile light]\n")
        equal(client.run("1", profile="mine").status, "ok")
        # What is no worker is there, and its scripts are refused.
        shutil.copy("/usr/bin/true", worker + "-true")
        s.reload(section("mine", worker) + "[profile light]\n" + section("none", worker + "-true"))
        equal(client.run("1", profile="none").status, "jail_failed")
        equal(client.run("1", profile="mine").status, "ok")


@test(private=True, any_rights=True)
def a_reload_changes_profiles(ctx):
    """Also the default one's: from its next zygote on; a zygote that cannot start replaces none."""
    asked = "import sys\n'colorsys' in sys.modules"
    with reloadable(ctx) as (s, client, worker):
        kept = cell(client, asked)["session"]
        equal(client.run(asked).result["json"], False)
        s.reload("[profile basic]\nmodules = colorsys\n")
        s.wait_logged("zygote-renewed profile=basic")
        equal(client.run(asked).result["json"], True)
        equal(cell(client, asked, session=kept)["result"]["json"], False, "a session of before")
        put_worker(ctx, worker)
        s.reload("[interpreter mine]\nworker = %s\n[profile basic]\ninterpreter = mine\n" % worker)
        s.wait_logged("zygote-renewed profile=basic", times=2)
        equal(client.run(asked).result["json"], False)
        shutil.copy("/usr/bin/true", worker + "-true")
        s.reload("[interpreter mine]\nworker = %s-true\n[profile basic]\ninterpreter = mine\n" % worker)
        s.wait_logged("zygote-not-renewed profile=basic")
        equal(client.run("1").status, "ok")


@test(private=True, any_rights=True)
def a_changed_interpreter_is_that_of_all_its_profiles(ctx):
    """Each of them gets a new zygote; none keeps the worker of before."""
    own = "import os\nos.stat('/proc/self/exe').st_ino"
    both = "[interpreter mine]\nworker = %s\n[profile one]\ninterpreter = mine\n[profile two]\ninterpreter = mine\n"
    with reloadable(ctx) as (s, client, worker):
        put_worker(ctx, worker)
        put_worker(ctx, worker + "-2")
        s.reload(both % worker)
        before = {name: client.run(own, profile=name).result["json"] for name in ("one", "two")}
        s.reload(both % (worker + "-2"))
        for name in before:
            assert "profile-taken profile=%s\n" % name in s.log().rpartition("reloaded after_restart")[0].rpartition(
                "reloaded after_restart")[2], "%s: %s" % (name, s.log())
            s.wait_logged("zygote-renewed profile=%s" % name)
            assert client.run(own, profile=name).result["json"] != before[name], name


@test(private=True, any_rights=True)
def a_changed_profile_is_looked_at_again(ctx):
    """What was learned of its Python is not held against requirements after that."""
    def looks(client, s):
        client.ask("tools/call", {"name": "check_environment", "arguments": {"profile": "light"}})
        return s.log().count("execution-started ")
    with reloadable(ctx) as (s, client, _):
        s.reload("[profile light]\n")
        first = looks(client, s)
        equal(looks(client, s), first, "it is remembered")
        s.reload("[profile light]\nmodules = colorsys\n")
        s.wait_logged("zygote-renewed profile=light")
        equal(looks(client, s), first + 1)
        equal(looks(client, s), first + 1, "it is remembered again")


@test(private=True, any_rights=True)
def what_a_reload_cannot_change_is_said(ctx):
    with reloadable(ctx) as (s, client, _):
        s.reload("[profile light]\n")
        kept = cell(client, "x = 1", profile="light")["session"]
        s.reload("")
        s.wait_logged('after_restart="[profile]"')
        equal(client.run("1", profile="light").status, "invalid_arguments", "it is there no more")
        equal(cell(client, "x + 1", session=kept)["result"]["json"], 2)
        s.reload("[profile light]\n")
        equal(client.run("1", profile="light").status, "ok", "and is again")
        s.reload("[profile light]\nzygote_per_tenant = yes\n")
        s.wait_logged('after_restart="[profile]"', times=2)
        equal(client.run("1", profile="light").status, "ok")
        s.reload("".join("[profile p%d]\n" % n for n in range(15)))
        assert "profile-not-taken profile=p14 text=\"there can be no more" in s.log(), s.log()
        equal(client.run("1", profile="p13").status, "ok")
        equal(client.run("1", profile="p14").status, "invalid_arguments")


main(__doc__)
