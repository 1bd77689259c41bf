#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Environments and tenants: who may have a package shares what is in the store; for who may not, or
has to ask, what others have installed never was. Not by timing it, which no test could decide on a
busy machine: they are given the same answer, of the same work, and the store is not looked into."""

import contextlib
import json
import os
import subprocess
import sys

from audit_log import Log
from harness import FEW_MODULES, equal, main, test
from package_index import NGINX, Index
from package_store import (asked, asked_since, config, environments, install, names, new_store, plain,
                           watch_store)

ALICE, BOB, CAROL, DAVE, ERIN, FRED = range(4001, 4007)
# Alice may have everything, and installs "alpha". What it depends on Bob may not have at all, and
# Carol when it was approved. "amiga" is the same, and nobody has it.
POLICY = """\
[policy]
install_package = allow
[tenant uid:%d]
packages.deny = beta
[tenant uid:%d]
packages.others = approve
policy.approvers = uid:0
[tenant uid:%d]
policy.install_package = approve
packages.allow = alpha beta
[tenant uid:%d]
packages.others = approve
""" % (BOB, CAROL, ERIN, FRED)


class Place:
    """A service with a store and an audit log, in which Alice has installed alpha."""

    def __init__(self, ctx):
        self.ctx = ctx

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.store = stack.enter_context(new_store())
            self.log = stack.enter_context(Log(self.ctx))
            self.admin = os.path.join(self.log.directory, "admin")
            self.service = stack.enter_context(self.ctx.private(config(
                index.url, self.store, packages="allow_urls = yes\n", more=POLICY + self.log.config("[admin]\nsocket = %s\n" % self.admin))))
            self.alice = stack.enter_context(self.client(ALICE))
            # What is installed is looked up for all tenants together, and again after a minute.
            self.alice.ask("tools/call", {"name": "check_environment", "arguments": {}})
            self.look, = {r["sha256"] for r in self.log.records() if "sha256" in r}
            equal(install(self.alice, "alpha")["status"], "ok")
            self.name, = environments(self.store)
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *exc):
        self.stack.close()

    def client(self, uid):
        return self.ctx.client(path=self.service.socket, uid=uid)

    def operator(self, *command):
        done = subprocess.run([os.path.join(self.ctx.options.build, "mcp-python"), *command,
                               "--admin-socket", self.admin], capture_output=True, text=True,
                              timeout=self.ctx.seconds(60))
        equal(done.returncode, 0, "%s: %s" % (command, done.stderr))
        return done.stdout


def work(place, uid, client, act):
    """What act comes to, and what that took: records of the audit log and requests at the index."""
    who = "uid:%d" % uid
    records, requests = len(place.log.records("--tenant", who)), len(asked(index))
    answer = act()
    client.ask("ping")	# the record of an end is made after the answer
    requested = [r.replace("amiga", "alpha") for r in asked_since(index, requests)]
    # A connection is told of at its end, which may be later; the index has them all. Whose call
    # looks up what is installed is decided by the clock.
    made = place.log.records("--tenant", who)[records:]
    looks = {r["execution"] for r in made if r.get("sha256") == place.look}
    events = [r["event"] for r in made
              if r["event"] != "connection" and r.get("execution") not in looks]
    return plain(answer, "amiga", "alpha"), events, sorted(requested)


def ways(client, name):
    """All that may lead to an environment."""
    yield "install_package", lambda: install(client, name)
    yield "again", lambda: install(client, name)
    yield "run_script", lambda: client.ask("tools/call", {"name": "run_script", "arguments": {
        "script": "import alpha", "dependencies": [name]}})
    yield "a block", lambda: client.ask("tools/call", {"name": "run_script", "arguments": {
        "script": "# /// script\n# dependencies = [%s]\n# ///\n" % json.dumps(name)}})
    yield "run_repl", lambda: client.ask("tools/call", {"name": "run_repl", "arguments": {
        "code": "import alpha", "dependencies": [name]}})
    yield "check_environment", lambda: client.ask("tools/call", {
        "name": "check_environment", "arguments": {"requirements": [name]}})


@test(root=True, private=True)
def who_may_not_cannot_tell(ctx):
    compared = 0
    with Place(ctx) as place:
        for uid, status in ((BOB, "denied"), (CAROL, "approval_pending")):
            with place.client(uid) as c, contextlib.closing(watch_store(place.store)) as watch:
                for (what, known), (_, never) in zip(ways(c, "alpha"), ways(c, "amiga")):
                    one, other = work(place, uid, c, known), work(place, uid, c, never)
                    equal(one, other, "%s of %d" % (what, uid))
                    assert what != "install_package" or '"%s"' % status in one[0], one
                    compared += 1
                equal(list(watch.read()), [], "what of the store was looked at for %d" % uid)
        # and that shows what is looked at
        with contextlib.closing(watch_store(place.store)) as watch:
            equal(install(place.alice, "alpha")["message"], "2 packages, already installed")
            seen = set(watch.read())
        assert os.path.join(place.store, place.name, "manifest") in seen, seen
        equal(environments(place.store), [place.name])
    return "%d answers, each as for what nobody has" % compared


@test(root=True, private=True)
def who_may_have_it_shares_it(ctx):
    with Place(ctx) as place:
        before = len(asked(index))
        with place.client(DAVE) as c:
            answer = install(c, "alpha")
            equal((answer["status"], names(answer)), ("ok", ["alpha 1.0", "beta 1.2"]))
            equal(asked_since(index, before), [], "whom nothing is refused")
        with place.client(ERIN) as c:
            # What it comes to is found out before anything is said of it, once.
            equal(install(c, "alpha")["message"], "2 packages, already installed")
            before = len(asked(index))
            equal(install(c, "alpha")["message"], "2 packages, already installed")
            o = c.run("import alpha; print(alpha.__file__)", dependencies=["alpha"])
            equal((o.status, o.stdout), ("ok", "/environment/alpha/__init__.py\n"))
            equal(asked_since(index, before), [])
        equal(environments(place.store), [place.name])


@test(root=True, private=True)
def a_grant_is_for_exactly_these(ctx):
    """Of these packages, versions and hashes, from there, for one tenant, until it is revoked."""
    with Place(ctx) as place, place.client(CAROL) as carol, place.client(FRED) as fred:
        def asks(client, name):
            answer = install(client, name)
            equal(answer["status"], "approval_pending", answer)
            return answer["approval_id"]
        id = asks(carol, "zeta")
        shown = place.operator("approvals", "show", id)
        assert "zeta" in shown and "beta" in shown, shown
        place.operator("approve", id)
        equal(install(carol, "zeta")["status"], "ok")
        equal(install(carol, "beta==1.2")["status"], "ok", "a part of it")
        asks(fred, "zeta")	# it is no grant for him
        asks(carol, "zeta @ %s/files/zeta-1.0-py3-none-any.whl" % index.host)	# nor for this way
        first = index.files.pop("zeta")
        index.add("zeta", "1.1", requires=["beta>=1"])
        asks(carol, "zeta>1")
        index.files["zeta"] = []
        index.add("zeta", "1.0", {"zeta.py": "other = True\n"}, requires=["beta>=1"])
        asks(carol, "zeta==1.0")	# the same version, another file
        assert index.files["zeta"] != first
        # What it came to before it comes to again, without the index.
        equal(names(install(carol, "zeta")), ["beta 1.2", "zeta 1.0"])
        place.operator("approvals", "revoke", id)
        assert asks(carol, "zeta") != id
        o = carol.run("import zeta", dependencies=["zeta"])
        equal(o.status, "approval_pending", repr(o))
        place.log.verify()


LOOK = """\
import os, sys
def read(path):
    try:
        return open(path).read()
    except OSError as e:
        return e.strerror
seen = [os.listdir("/environment"), read("/proc/self/mountinfo"), read("/proc/self/mounts"),
        read("/proc/self/maps"), sys.path]
for path in (%(store)r, %(store)r + "/%(name)s", %(store)r + "/%(name)s/tree/alpha/__init__.py",
             "/%(name)s", "/environment/alpha"):
    seen.append([path and os.path.exists(path)])
try:
    import alpha
except ImportError as e:
    seen.append(type(e).__name__)
print(seen)
"""


@test(root=True, private=True)
def it_is_in_no_other_tenants_sight(ctx):
    with Place(ctx) as place, place.client(BOB) as bob, place.client(ALICE) as alice:
        running = alice.request("tools/call", {
            "name": "run_script", "_meta": {"progressToken": 1},
            "arguments": {"script": "import alpha, time\nprint('there', flush=True)\n"
                                    "time.sleep(600)", "dependencies": ["alpha"],
                          "timeout_seconds": 120}})
        while not any("there" in n["params"].get("message", "") for n in alice.notices):
            assert not alice.answers, alice.answers
            alice.pump(ctx.seconds(30))
        o = bob.run(LOOK % {"store": place.store, "name": place.name})
        equal(o.status, "ok", repr(o))
        assert place.name not in o.stdout and place.store not in o.stdout, o.stdout
        seen = eval(o.stdout, {})
        equal((seen[0], seen[5:]), ([], [[False]] * 5 + ["ModuleNotFoundError"]))
        text = json.dumps(bob.ask("tools/call", {"name": "check_environment", "arguments": {}}))
        assert place.name not in text and "alpha" not in text, text
        for method, key in (("resources/list", "resources"), ("tools/list", "tools")):
            text = json.dumps(bob.ask(method)[key])
            assert place.name not in text, text
        alice.cancel(running)


if not os.path.exists(NGINX):
    print("SKIPPED all: no nginx here\n0 passed, 0 failed, 1 skipped")
    sys.exit(1 if os.environ.get("CI") == "true" else 0)
with Index() as index:
    for top in ("alpha", "amiga"):
        index.add(top, "1.0", requires=["beta>=1"])
    index.add("beta", "1.2")
    index.add("zeta", "1.0", requires=["beta>=1"])
    main(__doc__, modules=FEW_MODULES)
