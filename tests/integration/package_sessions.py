#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Packages in sessions: install_package for an existing one, and dependencies of a new one."""

import os
import re
import sys

from harness import FEW_MODULES, SOMEBODY, equal, main, test
from package_index import NGINX, Index
from package_store import config, install, new_store, refused


def cell(client, code=None, session=None, **arguments):
    """What run_repl answers."""
    if code is not None:
        arguments["code"] = code
    if session is not None:
        arguments["session"] = session
    return client.ask("tools/call", {"name": "run_repl", "arguments": arguments})[
        "structuredContent"]


def value(client, session, expression):
    answer = cell(client, expression, session)
    equal((answer["status"], answer["state"]), ("ok", "kept"), answer)
    return answer["result"]["json"]


def packages_of(client, session=None, **arguments):
    """What is mounted in a session. An import would find what its tenant has anyway."""
    answer = cell(client, "import os\nsorted(n for n in os.listdir('/environment') if n.isidentifier())",
                  session, **arguments)
    equal(answer["status"], "ok", answer)
    return answer["result"]["json"], answer["session"]


def has_nothing(client, session):
    equal(packages_of(client, session)[0], [])


@test
def the_next_cell_has_them(ctx):
    with ctx.client() as client:
        s = cell(client, "x = 20", checkpoint="before")["session"]
        has_nothing(client, s)
        answer = install(client, "alpha", session=s)
        equal(answer["status"], "ok", answer)
        assert "the session has them" in answer["message"], answer
        equal(value(client, s, "import alpha, beta\n[x, alpha.VERSION, beta.__file__]"),
              [20, "1.0", "/environment/beta/__init__.py"])
        equal(value(client, s, "import subprocess, sys\nsubprocess.check_output([sys.executable, "
                               "'-c', 'import alpha; print(alpha.VERSION)'], text=True)"), "1.0\n")
        # The states that it had, and those that come of it.
        equal(cell(client, "import beta\nbeta.VERSION", s, restore="before")["result"]["json"],
              "1.2")
        branch = cell(client, "import alpha\nalpha.VERSION", s, branch=True)
        equal(branch["result"]["json"], "1.0")
        # Another session has nothing of it.
        mounted, other = packages_of(client)
        equal(mounted, [])
        for one in (s, branch["session"], other):
            cell(client, session=one, close=True)


@test
def what_is_there_is_not_asked_for(ctx):
    """Not in the machine's packages, and not in the session's: the index is not asked. It is for a version that is not there."""
    with Index() as source, new_store() as store, ctx.private(config(source.url, store)) as service, \
            ctx.client(path=service.socket) as client:
        source.add("alpha", "1.0")
        source.add("gamma", "2.0")
        s = cell(client, "1")["session"]
        equal(install(client, "alpha", session=s)["status"], "ok")
        before = source.requests()
        for arguments in ({}, {"session": s}):
            answer = install(client, "pip", **arguments)
            equal((answer["status"], answer["packages"]), ("ok", []), answer)
            assert re.fullmatch(r"already there, so nothing was installed: pip \d[\w.]*(, alpha 1.0)?", answer["message"]), answer
            equal(install(client, "Pip>=1", "pip<999; python_version > '3'", **arguments)["status"], "ok")
        answer = install(client, "alpha>=1", "pip", session=s)
        equal(answer["status"], "ok", answer)
        assert answer["message"].startswith("already there, so nothing was installed: alpha 1.0, pip "), answer
        equal(value(client, s, "import alpha\nalpha.VERSION"), "1.0")
        equal(source.requests(), before)
        for arguments in ({}, {"session": s}):
            for packages in ["pip>=999"], ["pip", "gamma"]:
                refused(install(client, *packages, **arguments), "could not be resolved")
        assert source.requests() != before
        refused(install(client, "alpha<1", session=s), "the session has alpha 1.0 already")
        cell(client, session=s, close=True)


@test
def what_it_has_it_keeps(ctx):
    with ctx.client() as client:
        s = cell(client, "1")["session"]
        equal(install(client, "gamma", session=s)["status"], "ok")
        equal(value(client, s, "import gamma\ngamma.VERSION"), "2.0")
        refused(install(client, "gamma<2", session=s), "the session has gamma 2.0 already")
        # What brings another version of what it has comes to no set at all.
        refused(install(client, "older", session=s), "ResolutionImpossible")
        answer = install(client, "alpha", session=s)
        equal([p["name"] for p in answer["packages"]], ["alpha", "beta", "gamma"])
        equal(value(client, s, "import alpha, importlib\nimportlib.reload(gamma)\n"
                               "open('/proc/self/mountinfo').read().count(' /environment ')"), 1)
        equal(value(client, s, "[alpha.VERSION, gamma.VERSION]"), ["1.0", "2.0"])
        cell(client, session=s, close=True)


@test
def programs_and_paths_come_with_them(ctx):
    """As in a script: .pth files count, and what is in bin."""
    with ctx.client() as client:
        s = cell(client, "1")["session"]
        equal(install(client, "pathy", session=s)["status"], "ok")
        equal(value(client, s, "import deep\nimport os\n[deep.HERE, os.environ['PATH'].split(':')[0]]"),
              [True, "/environment/bin"])
        cell(client, session=s, close=True)


@test
def sessions_that_cannot_have_them(ctx):
    with ctx.client() as client:
        refused(install(client, "alpha", session="r-none"), "no such session")
        s = cell(client, "1")["session"]
        refused(install(client, "alpha", session=s, profile="other"), "the session has basic")
        cell(client, session=s, close=True)
        refused(install(client, "alpha", session=s), "no such session")


def start_busy(ctx, client, session):
    """A cell that runs until it is cancelled, and does."""
    id = client.request("tools/call", {
        "name": "run_repl", "_meta": {"progressToken": 1}, "arguments": {
            "session": session, "code": "print('in', flush=True)\nimport time; time.sleep(600)",
            "timeout_seconds": 600}})
    while not client.notices:
        client.pump(ctx.seconds(60))
    return id


@test
def a_busy_session_has_them_after_its_cell(ctx):
    with ctx.client() as client:
        s = cell(client, "1")["session"]
        install(client, "alpha")
        running = start_busy(ctx, client, s)
        waits = client.request("tools/call", {"name": "install_package", "arguments": {
            "packages": ["alpha"], "session": s}})
        equal(client.ask("ping"), {})
        client.cancel(running)
        equal(client.wait(waits)["structuredContent"]["status"], "ok")
        equal(value(client, s, "import alpha\nalpha.VERSION"), "1.0")
        cell(client, session=s, close=True)


@test
def too_many_wait_for_a_session(ctx):
    with ctx.client() as client:
        s = cell(client, "1")["session"]
        running = start_busy(ctx, client, s)
        cells = [client.request("tools/call", {"name": "run_repl", "arguments": {
            "session": s, "code": "1 + 1"}}) for _ in range(8)]
        refused(install(client, "alpha", session=s), "too many calls wait", "installed")
        client.cancel(running)
        for one in cells:
            equal(client.wait(one)["structuredContent"]["result"]["json"], 2)
        has_nothing(client, s)
        cell(client, session=s, close=True)


@test
def a_cancelled_wait_leaves_the_session(ctx):
    with ctx.client() as client:
        s = cell(client, "1")["session"]
        install(client, "alpha")
        running = start_busy(ctx, client, s)
        waits = client.request("tools/call", {"name": "install_package", "arguments": {
            "packages": ["alpha"], "session": s}})
        client.cancel(waits)
        client.cancel(running)
        has_nothing(client, s)
        cell(client, session=s, close=True)


@test(root=True)
def a_strangers_session_is_none(ctx):
    with ctx.client() as client, ctx.client(uid=SOMEBODY) as other:
        s = cell(client, "1")["session"]
        refused(install(other, "alpha", session=s), "no such session")
        has_nothing(client, s)
        cell(client, session=s, close=True)


@test
def a_session_begins_with_what_it_depends_on(ctx):
    with ctx.client() as client:
        first = cell(client, "import alpha\n[alpha.VERSION, alpha.__file__]", dependencies=["alpha"])
        equal(first["status"], "ok", first)
        equal(first["result"]["json"], ["1.0", "/environment/alpha/__init__.py"])
        s = first["session"]
        equal(value(client, s, "import beta\nbeta.VERSION"), "1.2")
        # It keeps them, and may get more.
        refused(install(client, "beta>1.2", session=s), "the session has beta 1.2")
        equal(install(client, "gamma", session=s)["status"], "ok")
        equal(value(client, s, "import gamma\n[alpha.VERSION, gamma.VERSION]"), ["1.0", "2.0"])
        answer = cell(client, "1", s, dependencies=["gamma"])
        equal(answer["status"], "invalid_arguments", answer)
        assert "when a session begins" in answer["error"]["message"], answer
        # A new session: with the same packages, with others, with none.
        equal(cell(client, "import gamma, alpha\n1", s, reset=True)["status"], "ok")
        equal(cell(client, "import gamma\ngamma.VERSION", s, reset=True,
                   dependencies=["gamma<2"])["result"]["json"], "1.0")
        equal(packages_of(client, s)[0], ["gamma"])
        equal(packages_of(client, s, reset=True, dependencies=[])[0], [])
        cell(client, session=s, close=True)


@test
def a_block_counts_where_a_session_begins(ctx):
    block = "# /// script\n# dependencies = ['gamma<2']\n# ///\nimport gamma\ngamma.VERSION"
    with ctx.client() as client:
        first = cell(client, block)
        equal((first["status"], first["result"]["json"]), ("ok", "1.0"), first)
        cell(client, session=first["session"], close=True)


@test
def a_session_that_cannot_have_what_it_depends_on(ctx):
    with new_store() as store, ctx.private(config(index.url, store)) as service, \
            ctx.client(path=service.socket) as client:
        for arguments, status, word in (
                ({"dependencies": ["nowhere-to-be-found"]}, "dependency_unavailable",
                 "No matching distribution"),
                ({"dependencies": ["x y"]}, "invalid_arguments", ""),
                ({"dependencies": ["gamma"], "profile": "none"}, "invalid_arguments", "profile")):
            answer = cell(client, "1", **arguments)
            equal((answer["status"], answer["session"]), (status, None), answer)
            assert word in answer["error"]["message"], answer
        s = cell(client, "x = 1")["session"]
        answer = cell(client, "1", s, reset=True, dependencies=["nowhere-to-be-found"])
        equal(answer["status"], "dependency_unavailable", answer)
        equal(value(client, s, "x"), 1)
        cell(client, session=s, close=True)
        id = client.request("tools/call", {"name": "run_repl", "arguments": {
            "code": "1", "dependencies": ["wide-unheard-of"]}})
        client.cancel(id)
        equal(client.run("print(1)").stdout, "1\n")
        seen = client.ask("tools/call", {"name": "check_environment", "arguments": {}})
        equal(seen["structuredContent"]["repl_sessions"], [])


def fill(index):
    index.add("alpha", "1.0", requires=["beta>=1"])
    index.add("beta", "1.2")
    index.add("gamma", "1.0")
    index.add("gamma", "2.0")
    index.add("older", "1.0", requires=["gamma<2"])
    index.add("pathy", "1.0", {"pathy.pth": "/environment/pathy_more\n",
                               "pathy_more/deep.py": "HERE = True\n"})


if not os.path.exists(NGINX):
    print("SKIPPED all: no nginx here\n0 passed, 0 failed, 1 skipped")
    sys.exit(1 if os.environ.get("CI") == "true" else 0)
with Index() as index, new_store() as shared:
    fill(index)
    main(__doc__, config(index.url, shared), modules=FEW_MODULES)
