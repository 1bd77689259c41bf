#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a tenant has had installed is found by a plain import: in scripts and cells, in no other
tenant's, not after policy has changed its mind; and scripts that ask for what they like."""

import contextlib
import os
import sys

import forged
from audit_log import Log
from harness import FEW_MODULES, equal, main, test
from package_index import NGINX, Index
from package_store import OPEN, asked, asked_since, config, environments, install, new_store
from waits import until_equal

ALICE, BOB, CAROL = range(4101, 4104)


@contextlib.contextmanager
def place(ctx, more="", packages=""):
    """A service with an empty store, and a client of it."""
    with new_store() as store, ctx.private(config(index.url, store, OPEN + more, packages)) as s, \
            ctx.client(path=s.socket) as client:
        s.store = store
        yield s, client


def have(client, *packages):
    answer = install(client, *packages)
    equal(answer["status"], "ok", answer)


def found(outcome):
    """The modules, and the packages of the set."""
    told = outcome.structured.get("found")
    return told and (told["modules"], told["packages"])


def lacks(outcome, module):
    equal((outcome.status, (outcome.error or {}).get("type")), ("error", "ModuleNotFoundError"), outcome)
    assert "No module named %r" % module in outcome.error["message"], outcome
    equal(found(outcome), None)
    return outcome


def cell(client, code, session=None, **arguments):
    if session is not None:
        arguments["session"] = session
    return client.ask("tools/call", {"name": "run_repl", "arguments": {
        "code": code, **arguments}})["structuredContent"]


# ---- scripts ----

@test(private=True)
def a_plain_import_finds_it(ctx):
    with place(ctx) as (s, client):
        lacks(client.run("import alpha"), "alpha")
        have(client, "alpha")
        before = len(asked(index))
        o = client.run("import alpha, beta\nprint(alpha.VERSION, beta.__file__)")
        equal((o.status, o.stdout), ("ok", "1.0 /environment/beta/__init__.py\n"))
        name, = environments(s.store)
        equal(o.structured["found"], {"modules": ["alpha"], "set": name,
                                      "packages": ["alpha==1.0", "beta==1.2"]})
        assert "found: alpha in packages that were installed before: alpha==1.0, beta==1.2 " \
            "(set %s)\n" % name[:12] in o.text, o.text
        equal(found(client.run("print(1)")), None)
        equal(asked_since(index, before), [], "requests at the index")


@test(private=True)
def wherever_it_is_imported(ctx):
    ways = {
        "in a function": "def f():\n    import alpha\n    return alpha.VERSION\nf()",
        "in a try": "try:\n    import alpha\nexcept ImportError:\n    alpha = None\nalpha.VERSION",
        "from": "from alpha import VERSION\nVERSION",
        "inner": "import deep.inner\ndeep.inner.VERSION",
        "by name": "import importlib\nimportlib.import_module('alpha').VERSION",
        "looked for": "import importlib.util\nimportlib.util.find_spec('alpha') is not None and '1.0'",
        "in a thread": "import threading\ndone = []\ndef f():\n    import alpha\n"
                       "    done.append(alpha.VERSION)\nt = threading.Thread(target=f)\nt.start()\n"
                       "t.join()\ndone[0]",
        "by a module of the script": "open('mine.py', 'w').write('import alpha\\nV = alpha.VERSION')\n"
                                     "import mine\nmine.V",
        "awaited": "import asyncio\nasync def f():\n    import alpha\n    return alpha.VERSION\nawait f()",
        "single": "import single\nsingle.VERSION",
        "a program too": "import alpha, subprocess, sys\nsubprocess.check_output([sys.executable, '-c', "
                         "'import beta; print(1.0, end=str())'], text=True)",
    }
    with place(ctx) as (s, client):
        have(client, "alpha")
        have(client, "deep", "single")
        for way, script in ways.items():
            o = client.run(script)
            equal((o.status, (o.result or {}).get("json")), ("ok", "1.0"), "%s: %r" % (way, o))
        for name in "/usr/lib/python3/dist-packages/x.py", "<frozen importlib._bootstrap>":
            o = client.run("import alpha\nalpha.VERSION", script_name=name)
            equal((o.status, (o.result or {}).get("json")), ("ok", "1.0"), "%s: %r" % (name, o))
    return "%d ways" % len(ways)


@test(private=True)
def installed_code_does_not_choose(ctx):
    """A module that a package tries to import is what it has with it, or nothing."""
    with place(ctx) as (s, client):
        have(client, "gamma==1.0")
        have(client, "tries")
        o = client.run("import tries\ntries.gamma is None")
        equal((o.status, o.result["json"]), ("ok", True), o)
        equal(found(o), (["tries"], ["tries==1.0"]))


@test(private=True)
def the_advice_stays_right(ctx):
    with place(ctx) as (s, client):
        have(client, "alpha")
        o = lacks(client.run("import delta"), "delta")
        assert "advice: The module delta is not installed. " in o.text, o.text
        assert "Make the call again with dependencies=[...]: " in o.text, o.text
        # What was found is named too, or the next call would lack it.
        o = client.run("import alpha\nimport delta")
        equal((o.status, found(o)), ("error", (["alpha"], ["alpha==1.0", "beta==1.2"])))
        assert 'dependencies=["alpha", ...]: ' in o.text, o.text
        o = client.run("import alpha, delta\n1", None, dependencies=["alpha", "delta"])
        equal(o.status, "ok", o)
        o = client.run("import tkinter.nothing")
        assert "belongs to Python itself" in o.text or "advice" not in o.text, o.text


@test(private=True)
def the_set_that_was_used_last(ctx):
    with place(ctx) as (s, client):
        version = "import gamma\ngamma.VERSION"
        for wanted in "1.0", "2.0", "1.0":
            have(client, "gamma==" + wanted)
            for _ in range(2):
                equal(client.run(version).result["json"], wanted)
        # A use by dependencies is one as well.
        equal(client.run(version, dependencies=["gamma==2.0"]).result["json"], "2.0")
        equal(client.run(version).result["json"], "2.0")


@test(private=True)
def what_is_mounted_stays(ctx):
    """A second set has all of the first one, as it is."""
    with place(ctx) as (s, client):
        have(client, "gamma==1.0", "alpha")
        have(client, "gamma==2.0")
        o = client.run("import gamma\ntry:\n    import alpha\nexcept ImportError:\n    print(gamma.VERSION)")
        equal((o.status, o.stdout, found(o)), ("ok", "2.0\n", (["gamma"], ["gamma==2.0"])))
        have(client, "gamma==2.0", "alpha")
        have(client, "gamma==2.0")
        o = client.run("import gamma, alpha, beta\nprint(gamma.VERSION, alpha.VERSION)\n"
                       "open('/proc/self/mountinfo').read().count(' /environment ')")
        equal((o.stdout, o.result["json"]), ("2.0 1.0\n", 1))
        equal(found(o), (["gamma", "alpha"], ["alpha==1.0", "beta==1.2", "gamma==2.0"]))
        # Dependencies that were asked for are kept likewise.
        o = client.run("import gamma, alpha\n[gamma.VERSION, alpha.VERSION]", dependencies=["gamma==1.0"])
        equal((o.result["json"], found(o)[0]), (["1.0", "1.0"], ["alpha"]))
        o = client.run("import delta\ntry:\n    import alpha\nexcept ImportError:\n    print('none')",
                       dependencies=["delta"])
        equal((o.stdout, found(o)), ("none\n", None))
        o = client.run("import gamma, alpha\nalpha.VERSION", dependencies=["gamma==2.0"])
        equal((o.result["json"], found(o)[0]), ("1.0", ["alpha"]))


@test(private=True)
def a_list_of_modules_still_counts(ctx):
    with place(ctx) as (s, client):
        have(client, "alpha")
        o = client.run("import alpha\nalpha.VERSION", allowed_imports=["alpha"])
        equal((o.status, o.result and o.result["json"]), ("ok", "1.0"), o)
        o = client.run("import alpha", allowed_imports=["json"])
        equal((o.error["type"], found(o)), ("ImportNotAllowed", None))


# ---- whose ----

@test(root=True, private=True)
def another_tenants_are_never_found(ctx):
    with place(ctx) as (s, _), ctx.client(path=s.socket, uid=ALICE) as alice, \
            ctx.client(path=s.socket, uid=BOB) as bob:
        have(alice, "alpha")
        have(bob, "gamma")
        equal(alice.run("import alpha\nalpha.VERSION").result["json"], "1.0")
        lacks(bob.run("import alpha"), "alpha")
        lacks(alice.run("import gamma"), "gamma")
        answer = cell(bob, "import alpha")
        equal((answer["error"]["type"], answer.get("found")), ("ModuleNotFoundError", None))
        # Who asks for it has it, though it is there already.
        have(bob, "alpha")
        equal(bob.run("import alpha\nalpha.VERSION").result["json"], "1.0")


@test(root=True, private=True)
def what_is_denied_since_does_not_come_back(ctx):
    with place(ctx) as (s, _), ctx.client(path=s.socket, uid=ALICE) as alice:
        have(alice, "alpha")
        have(alice, "gamma")
        for packages, more in (
                ("deny = beta\n", ""), ("deny = beta<2\n", ""), ("others = deny\nallow = alpha\n", ""),
                ("others = approve\n", ""), ("", "[tenant uid:%d]\npackages.deny = alpha\n" % ALICE),
                ("", "[tenant uid:%d]\npolicy.install_package = deny\n" % ALICE),
                ("max_packages = 1\n", "")):
            s.reload(config(index.url, s.store, OPEN + more, packages))
            lacks(alice.run("import alpha"), "alpha")
        s.reload(config(index.url + "/other", s.store))
        lacks(alice.run("import gamma"), "gamma")
        s.reload(config(index.url, s.store, OPEN, "deny = beta\n"))
        equal(alice.run("import gamma\ngamma.VERSION").result["json"], "2.0")
        s.reload(config(index.url, s.store))
        equal(alice.run("import alpha\nalpha.VERSION").result["json"], "1.0")


@test(root=True, private=True)
def what_was_approved_is_found(ctx):
    import subprocess
    with Log(ctx) as log, contextlib.ExitStack() as stack:
        admin = os.path.join(log.directory, "admin")
        s, _ = stack.enter_context(place(ctx, "[tenant uid:%d]\npackages.others = approve\npolicy.approvers = "
                                         "uid:0\n[admin]\nsocket = %s\n" % (CAROL, admin)))
        carol = stack.enter_context(ctx.client(path=s.socket, uid=CAROL))

        def operator(*command):
            done = subprocess.run([os.path.join(ctx.options.build, "mcp-python"), *command,
                                   "--admin-socket", admin], capture_output=True, text=True,
                                  timeout=ctx.seconds(60))
            equal(done.returncode, 0, done.stderr)
        asks = install(carol, "alpha")
        equal(asks["status"], "approval_pending", asks)
        lacks(carol.run("import alpha"), "alpha")
        operator("approve", asks["approval_id"])
        have(carol, "alpha")
        equal(carol.run("import alpha\nalpha.VERSION").result["json"], "1.0")
        operator("approvals", "revoke", asks["approval_id"])
        lacks(carol.run("import alpha"), "alpha")


@test(private=True)
def it_is_known_after_a_restart(ctx):
    with new_store() as store:
        for start in range(2):
            with ctx.private(config(index.url, store)) as s, ctx.client(path=s.socket) as client:
                if start == 0:
                    have(client, "alpha")
                equal(client.run("import alpha\nalpha.VERSION").result["json"], "1.0")


@test(private=True)
def a_set_that_is_gone_is_not_found(ctx):
    with place(ctx, packages="store_mb = 1\n") as (s, client):
        have(client, "alpha", "large")
        have(client, "gamma")
        until_equal("the number of sets", lambda: len(environments(s.store)), 1)
        lacks(client.run("import alpha"), "alpha")
        equal(client.run("import gamma\ngamma.VERSION").result["json"], "2.0")


@test(private=True)
def a_use_is_noted(ctx):
    """A set in use does not look old."""
    with place(ctx) as (s, client):
        have(client, "alpha")
        name, = environments(s.store)
        path = os.path.join(s.store, name)
        for use in (lambda: have(client, "alpha"),
                    lambda: client.run("import alpha", dependencies=["alpha"]),
                    lambda: client.run("import alpha")):
            os.utime(path, (0, 0))
            use()
            assert os.stat(path).st_mtime > 0


@test(private=True)
def it_is_recorded(ctx):
    with Log(ctx) as log, place(ctx, log.config()) as (s, client):
        have(client, "alpha")
        name, = environments(s.store)
        o = client.run("import alpha")
        client.ask("ping")	# the record is made after the answer
        record, = [r for r in log.records() if r["event"] == "import-found"]
        equal((record["execution"], record["names"], record["environment"]), (o.id, ["alpha"], name))
        log.verify()


# ---- sessions ----

@test(private=True)
def cells_find_it_and_keep_it(ctx):
    with place(ctx) as (s, client):
        session = cell(client, "x = 20", checkpoint="before")["session"]
        have(client, "alpha")
        answer = cell(client, "import alpha\n[x, alpha.VERSION]", session)
        equal((answer["status"], answer["result"]["json"]), ("ok", [20, "1.0"]), answer)
        equal((answer["found"]["modules"], answer["found"]["packages"]),
              (["alpha"], ["alpha==1.0", "beta==1.2"]))
        answer = cell(client, "import beta\n[alpha.VERSION, beta.VERSION]", session)
        equal((answer["result"]["json"], answer.get("found")), (["1.0", "1.2"], None))
        # Earlier states have it too, and so have branches.
        equal(cell(client, "import beta\nbeta.VERSION", session, restore="before")["result"]["json"], "1.2")
        equal(cell(client, "import alpha\nalpha.VERSION", session, branch=True)["result"]["json"], "1.0")
        # What is installed later has what was found with it.
        answer = install(client, "gamma", session=session)
        equal([p["name"] for p in answer["packages"]], ["alpha", "beta", "gamma"], answer)
        equal(cell(client, "import alpha, gamma\ngamma.VERSION", session)["result"]["json"], "2.0")


@test(private=True)
def a_cell_that_is_undone_leaves_it(ctx):
    with place(ctx) as (s, client):
        session = cell(client, "1")["session"]
        have(client, "alpha")
        answer = cell(client, "import alpha, os\nos._exit(3)", session)
        equal(answer["state"], "rolled_back", answer)
        equal(cell(client, "import beta, alpha\nalpha.VERSION", session)["result"]["json"], "1.0")


@test(private=True)
def a_name_is_asked_for_again_in_the_next_cell(ctx):
    with place(ctx) as (s, client):
        have(client, "gamma")
        session = cell(client, "import alpha")["session"]
        have(client, "alpha")
        equal(cell(client, "import alpha\nalpha.VERSION", session)["result"]["json"], "1.0")


@test(private=True)
def an_import_in_the_middle_of_an_import(ctx):
    """By a handler of a signal: it does not wait for the turn that its own thread has. (Python itself
    may raise anything then.)"""
    with place(ctx) as (s, client):
        have(client, "alpha")
        # The next signal comes some time after the last handler, or a busy machine did nothing else.
        o = client.run("""import signal
def handler(*_):
    global met
    met += inside
    try:
        import nowhere
    except Exception:
        pass
    if inside:
        signal.setitimer(signal.ITIMER_REAL, 0.0001)
met, inside = 0, False
signal.signal(signal.SIGALRM, handler)
for i in range(16):
    inside = True
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0001)
        __import__('nothing%d' % i)
    except Exception:
        pass
    inside = False
    signal.setitimer(signal.ITIMER_REAL, 0)
met
""")
        equal(o.status, "ok", o)
        assert o.result["json"] > 0, o


# ---- scripts that lie ----

FRAMES = forged.FRAMES + """
def want(id, number=1, name=b"alpha"):
    control.sendall(frame(71, id=id, number=number, name=name))
"""


@test(private=True)
def forged_questions_end_their_script(ctx):
    """Of another run, out of turn, no name, more than may be; and where nothing may be asked."""
    with new_store() as store, ctx.private(config(index.url, store)) as s, \
            ctx.client(path=s.socket) as client:
        equal(client.run(FRAMES + "want(1)" + forged.HANG, timeout_seconds=100).status,
              "worker_protocol_error", "nothing was installed")
    with new_store() as store, ctx.private(config(index.url, store)) as s, \
            ctx.client(path=s.socket) as client:
        have(client, "alpha")
        # The service's own programs have numbers too.
        n = 30
        statuses = [client.run(FRAMES + "want(%d)\nlen(control.recv(1000))" % n,
                               timeout_seconds=100).status for _ in range(n)]
        equal(statuses.count("ok"), 1, statuses)
        n += len(statuses) - 1 - statuses.index("ok")
        for forged_one in (
                "want(1 << 60)", "want(%d, 0)", "want(%d, 2)", "want(%d, 17)",
                "want(%d, name=b'')", "want(%d, name=b'a' * 65)", "want(%d, name=b'../../x')",
                "want(%d, name=b'a.b')", "want(%d, name=b'1a')", "want(%d, name=b'a\\0b')",
                "want(%d, name='\u00e4'.encode())", "want(%d); want(%d, 1)"):
            n += 1
            text = FRAMES + forged_one.replace("%d", str(n)) + forged.HANG
            equal(client.run(text, timeout_seconds=100).status, "worker_protocol_error", forged_one)
        # One after the other, as often as may be.
        n += 1
        text = FRAMES + ("for i in range(1, 18):\n    want(%d, i, b'nothing')\n    control.recv(1000)\n"
                         "    print(i, flush=True)\n" % n)
        o = client.run(text + forged.HANG, timeout_seconds=100)
        equal((o.status, o.stdout.split()[-1:]), ("worker_protocol_error", ["16"]), o)
        equal(client.run("import alpha\nalpha.VERSION").result["json"], "1.0")


def fill(index):
    index.add("alpha", "1.0", requires=["beta>=1"])
    index.add("beta", "1.2")
    index.add("gamma", "1.0")
    index.add("gamma", "2.0")
    index.add("delta", "1.0")
    index.add("deep", "1.0", {"deep/inner.py": "VERSION = '1.0'\n"})	# without an __init__
    index.add("single", "1.0", {"single.py": "VERSION = '1.0'\n"})
    index.add("large", "1.0", {"large/data": os.urandom(3 << 20)})
    index.add("tries", "1.0", {"tries/__init__.py": "try:\n    import gamma\nexcept ImportError:\n"
                                                    "    gamma = None\n"})


if not os.path.exists(NGINX):
    print("SKIPPED all: no nginx here\n0 passed, 0 failed, 1 skipped")
    sys.exit(1 if os.environ.get("CI") == "true" else 0)
with Index() as index:
    fill(index)
    main(__doc__, modules=FEW_MODULES)
