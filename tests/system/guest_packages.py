# SPDX-License-Identifier: Apache-2.0
"""Packages, approvals, the audit log and reloads, as a unit of systemd has them."""

import contextlib
import json
import os
import pwd
import re
import shutil
import stat

import guest_tools
from guest_tools import (ALICE, CGROUP, SOCKET, SUBUIDS, UNIT, client, drop_in, main_pid, pids, read,
                         seconds, sh, show, test)
from guest_power import PLACE, LoggedDisk, replay
from harness import equal
from package_index import Index
from package_store import environments, install, leftovers, names, verify
from repl import Session
from waits import until

STATE = "/var/lib/mcp-pythond"
STORE = STATE + "/environments"
AUDIT = STATE + "/records/audit.jsonl"
ADMIN = "/run/mcp-pythond/operators.sock"	# for all users, beside that of guest_admin.py
CONF_D = "/etc/mcp-pythond/conf.d"
OPERATOR = 4021
# doc/operators.md: a service that lets packages in has a network.
NETWORK = "[Service]\nPrivateNetwork=no\n"
APPROVALS = """\
[admin]
socket = %s
[policy]
approvers = uid:%d
""" % (ADMIN, OPERATOR)


def packages_config(index):
    return "[packages]\nindex = %s\nstore = %s\n" % (index.url, STORE)


@contextlib.contextmanager
def configured(text, unit=NETWORK):
    """The service with more configuration and a drop-in."""
    os.makedirs(CONF_D, exist_ok=True)
    path = CONF_D + "/50-test.conf"
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, 0o644)
    try:
        with drop_in(unit):
            yield path
    finally:
        os.unlink(path)


def fill(index):
    index.add("alpha", "1.0", requires=["beta>=1"])
    index.add("beta", "1.2")
    index.add("wide", "1.0", {"wide/%s.py" % ("__init__" if i == 0 else "m%d" % i):
                              "x = %r\n" % ("y" * 2000) for i in range(40)})


def as_user(uid, *command, check=True):
    return sh("setpriv", "--reuid=%d" % uid, "--regid=%d" % uid, "--clear-groups", *command,
              check=check)


def operator(*command, uid=OPERATOR, check=True):
    return as_user(uid, "mcp-python", *command, "--admin-socket", ADMIN, check=check)


def journal(event, **fields):
    """Records of the audit log in the journal, the last ones first."""
    sh("journalctl", "--sync")
    said = sh("journalctl", "-r", "-o", "json", "MCP_EVENT=" + event,
              *("%s=%s" % f for f in fields.items()))
    return [json.loads(line) for line in said.splitlines() if line.startswith("{")]


@test
def packages_are_installed_behind_the_units_walls():
    service = pwd.getpwnam("mcp-python")
    with LoggedDisk(STATE) as disk, Index() as index:
        fill(index)
        with configured(packages_config(index) + APPROVALS), client(ALICE) as c:
            disk.mark("begun")
            asked = install(c, "alpha", timeout=seconds(60), reason="for a test")
            equal((asked["status"], names(asked)), ("approval_pending", ["alpha 1.0", "beta 1.2"]))
            id = asked["approval_id"]
            listed = json.loads(operator("approvals", "--json").strip().split("\n")[0])
            assert id in json.dumps(listed), listed
            shown = operator("approvals", "show", id)
            assert "alpha" in shown and "1.2" in shown and "for a test" in shown, shown
            refused = operator("approve", id, uid=ALICE, check=False)
            assert refused.returncode != 0, "a tenant approves for herself: " + refused.stdout
            equal(environments(STORE), [])
            operator("approve", id)
            disk.mark("approved")
            done = install(c, "alpha", timeout=seconds(60))
            disk.mark("installed")
            equal((done["status"], names(done)), ("ok", ["alpha 1.0", "beta 1.2"]), done)
            o = c.run("import alpha, beta; print(beta.__file__)", seconds(60),
                      dependencies=["alpha"])
            equal((o.status, o.stdout), ("ok", "/environment/beta/__init__.py\n"), o)
            equal((verify(STORE), leftovers(STORE)), (1, []))

            for at, _, files in os.walk(STORE):
                for name in [".", *files]:
                    st = os.lstat(os.path.join(at, name))
                    equal((st.st_uid, stat.S_IMODE(st.st_mode) & 0o022), (service.pw_uid, 0),
                          os.path.join(at, name))
            equal(stat.S_IMODE(os.stat(STORE).st_mode), 0o700)
            for path, mode in ((STATE + "/records", 0o700), (AUDIT, 0o600)):
                st = os.stat(path)
                equal((st.st_uid, stat.S_IMODE(st.st_mode)), (service.pw_uid, mode), path)
            assert as_user(ALICE, "ls", STORE, check=False).returncode != 0

            assert "ok: up to record" in sh("mcp-python", "audit", "verify")
            said = [json.loads(line)["event"] for line in
                    sh("mcp-python", "audit", "show", "--tenant", "uid:%d" % ALICE).splitlines()]
            for event in ("approval-asked", "approval-granted", "package-installed"):
                assert event in said, "%s is not in %r" % (event, said)


@test
def a_worker_is_made_ready_within_its_limits():
    early = "import os\nif os.path.getsize('/workspace/script.py') < 2:\n    "
    with Index() as index:
        index.add("slow", "1.0", {"slow.py": "import time\ntime.sleep(0.1)\n",
                                  "heavy.py": "x = b'x' * (200 << 20)\n",
                                  "grows.py": early + "x = b'x' * (700 << 20)\n"})
        with configured(packages_config(index) + APPROVALS + "install_package = allow\n"), \
                client(ALICE) as c:
            def run(module):
                o = c.run("import %s\nprint(1)" % module, seconds(60), dependencies=["slow"])
                equal((o.status, o.stdout), ("ok", "1\n"), o)
                return o

            def is_ready(module):
                return run(module).structured.get("made_ready", False)

            def until_ready():
                until("one is ready", lambda: json.loads(sh("mcp-python", "status", "--json",
                      "--admin-socket", ADMIN))["ready"]["workers"] == 1, seconds(60))

            # The memory of ready workers is the tenant's.
            def seen():
                status = json.loads(sh("mcp-python", "status", "--json", "--admin-socket", ADMIN))
                tenant, = (one for one in status["tenants"] if one["tenant"] == "uid:%d" % ALICE)
                return status["ready"]["workers"], tenant["memory_bytes"] >= 200 << 20

            run("heavy")
            until("its memory is counted", lambda: seen() == (1, True), seconds(60))
            for action in "suspend", "resume":
                sh("mcp-python", action, "uid:%d" % ALICE, "--admin-socket", ADMIN)
            until("its memory is free", lambda: seen() == (0, False), seconds(60))

            run("slow")
            until_ready()
            o = run("slow")
            assert o.structured.get("made_ready"), o
            assert o.structured["cpu_ms"] < 1000, o
            # The kernel ends what takes more memory than the script's limit.
            run("grows")
            until("the log has it", lambda: "modules=grows text=" in sh(
                "journalctl", "-u", "mcp-pythond"), seconds(60))
            assert not is_ready("grows")
            equal(run("slow").status, "ok")


@test
def a_loss_of_power_at_any_point_of_that_leaves_it_whole():
    assert os.path.exists(PLACE + "/log"), "the test before this one makes it"
    disks = guest_tools.disks
    flushes, whole, half, image = replay(disks, 5)
    said = "%d disks of %d flushes: %d with the packages, %d with something half made" % (
        disks, flushes, whole, half)
    assert disks < 20 or 0 < whole < disks, said
    sh("mount", "-o", "loop", image or PLACE + "/trial", STATE)
    try:	# and the service goes on from there
        with configured(APPROVALS + "[packages]\nindex = http://127.0.0.1:9/simple\nstore = %s\n"
                        % STORE), client(ALICE) as c:
            equal(c.run("print(1)", seconds(60)).status, "ok")
            # The keeper tidies up while other calls are answered.
            until("the unfinished set is gone", lambda: not leftovers(STORE), seconds(60))
            assert "ok: up to record" in sh("mcp-python", "audit", "verify")
            operator("approvals")
    finally:
        sh("systemctl", "stop", UNIT)
        sh("umount", STATE)
        sh("umount", PLACE)
    return said


@test
def records_are_in_the_journal_and_explained_there():
    with client(ALICE) as c:
        o = c.run("print('journal')", seconds(60))
        c.ask("ping", timeout=seconds(60))	# the record of an end is made after the answer
    sh("journalctl", "--update-catalog")	# as doc/operators.md has it
    found = journal("execution-ended", MCP_EXECUTION=o.id)
    equal(len(found), 1, found)
    one = found[0]
    equal(one["MCP_TENANT"], "uid:%d" % ALICE)
    equal(one["_SYSTEMD_UNIT"], UNIT)
    catalog = sh("journalctl", "--dump-catalog", one["MESSAGE_ID"])
    assert "Defined-By: mcp-pythond" in catalog, catalog
    explained = sh("journalctl", "-x", "MCP_EXECUTION=" + o.id)
    assert "mcp-pythond: an execution ended" in explained and (
        "Execution: " + o.id) in explained, explained
    record = json.loads(one["MCP_RECORD"])
    equal((record["event"], record["status"]), ("execution-ended", "ok"))
    ids = set(re.findall(r"^-- ([0-9a-f]{32})$", read("/usr/lib/systemd/catalog/mcp-pythond.catalog"),
                         re.M))
    used = {line for line in sh("journalctl", "-u", UNIT, "-F", "MESSAGE_ID").split()}
    known = {line.split()[0] for line in sh("journalctl", "--list-catalog").splitlines()
             if line.split()}
    assert ids <= known, "not in the catalog: %s" % (ids - known)
    return "%d kinds of records, all in the catalog" % len(ids & used)


def outside_of(pid):
    return {name: os.readlink("/proc/%d/ns/%s" % (pid, name)) for name in ("user", "net", "mnt")}


@test
def the_way_out_is_walled_in_too():
    with Index() as index:
        fill(index)
        allow = "[network]\nallow = localhost.localdomain:%d\nallow_private = 127.0.0.1\n" % index.port
        with open("/etc/hosts", "a") as f:
            f.write("127.0.0.1 localhost.localdomain\n")
        with configured(allow), client(ALICE) as c:
            # Not by its number: a script's own loopback is never asked of the proxy.
            script = ("import time, urllib.request, urllib.error\n"
                      "print(urllib.request.urlopen('http://localhost.localdomain:%d/simple/alpha/')"
                      ".status)\n"
                      "try: urllib.request.urlopen('http://elsewhere.example/')\n"
                      "except urllib.error.HTTPError as e: print(e.code)\n"
                      "print('there', flush=True)\ntime.sleep(300)\n" % index.port)
            id = c.request("tools/call", {
                "name": "run_script", "_meta": {"progressToken": 1},
                "arguments": {"script": script, "timeout_seconds": 300}})
            until("the script has a way out",
                  lambda: c.answers or any("there" in n["params"].get("message", "") for n in c.notices),
                  wait=c.pump)
            assert not c.answers, "no way out: %r" % c.answers
            proxies = [p for p in pids(CGROUP + "/supervisor")
                       if read("/proc/%d/comm" % p).startswith("mcp-python-egre")]
            equal(len(proxies), 1, proxies)
            status = dict(line.split(":\t", 1) for line in
                          read("/proc/%d/status" % proxies[0]).split("\n") if ":\t" in line)
            for key in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
                equal(int(status[key], 16), 0, key)
            equal((status["NoNewPrivs"].strip(), status["Seccomp"].strip()), ("1", "2"))
            uids = {int(u) for u in status["Uid"].split()}
            assert uids <= set(SUBUIDS), uids
            open_files = [os.readlink("/proc/%d/fd/%s" % (proxies[0], fd))
                          for fd in os.listdir("/proc/%d/fd" % proxies[0])]
            files = [f for f in open_files if f.startswith("/") and not f.startswith("/dev/null")]
            equal(files, [], "files that it has open")
            c.cancel(id)
            found = until("a record of the refusal", lambda: [
                r for r in journal("connection-refused") if "elsewhere.example" in r["MCP_RECORD"]])
            equal(found[0]["MCP_TENANT"], "uid:%d" % ALICE)
            return "%d descriptors, none of a file" % len(open_files)


def reload_(marker, fails=False):
    """systemctl reload, and what the journal has of it."""
    sh("journalctl", "--sync")
    cursor = sh("journalctl", "-n", "0", "--show-cursor").split("cursor: ")[1].strip()
    ended = sh("systemctl", "reload", UNIT, check=False)
    assert (ended.returncode != 0) == fails, ended.stdout
    said = ""

    def is_said():
        nonlocal said
        said = sh("journalctl", "-u", UNIT, "--after-cursor", cursor, "-o", "cat")
        return marker in said
    until(lambda: "%s in: %s" % (marker, said), is_said)
    return said


@test
def a_reload_is_all_or_nothing():
    with configured("[limits]\npids = 60\n", "[Unit]\n") as path, client(ALICE) as c:
        def status():
            return c.ask("tools/call", {"name": "run_script", "arguments": {
                "script": "print(1)"}}, seconds(60))["structuredContent"]["status"]

        def write(text):
            with open(path, "w") as f:
                f.write(text)
        equal(status(), "ok")
        write("[policy]\nrun_script = deny\n[limits]\nmemory_mb = plenty\n")
        said = reload_("memory_mb", fails=True)
        assert re.search(r"50-test\.conf:4: .*memory_mb", said), said
        equal(status(), "ok", "after a file with a mistake")
        equal(show("ActiveState"), "active")
        write("[policy]\nrun_script = deny\n")
        reload_("reloaded")
        equal(status(), "denied")
        write("")
        reload_("reloaded")
        equal(status(), "ok")
        equal(show("NRestarts"), "0")


@test
def a_reload_adds_and_changes_an_interpreter():
    """By a service that has given its rights up, with limits of the kernel. Nothing that runs ends."""
    worker = "/etc/mcp-pythond/workers/mcp-python-worker-mine"	# where `interpreter add` puts it
    section = "[interpreter mine]\nworker = %s\n[profile mine]\ninterpreter = mine\n" % worker
    asked = "import sys\n'colorsys' in sys.modules"
    os.makedirs(os.path.dirname(worker), exist_ok=True)
    try:
        with configured("", "[Unit]\n") as path, client(ALICE) as c:
            def run(script, **more):
                return c.run(script, seconds(60), **more)

            def write_and_reload(text, marker):
                with open(path, "w") as f:
                    f.write(text)
                reload_(marker)
            kept = Session(c)
            kept.well("x = 20", seconds(60))
            before, goes_on = main_pid(), guest_tools.start_running(c, "import time\ntime.sleep(600)")
            equal(run("1", profile="mine").status, "invalid_arguments")
            write_and_reload(section, "profile-not-taken profile=mine")
            equal(run("1", profile="mine").status, "invalid_arguments", "its worker is not there")
            shutil.copy("/usr/libexec/mcp-python-worker", worker)
            write_and_reload(section, "reloaded")
            equal(run(asked, profile="mine").result["json"], False)
            equal(run("bytearray(600 << 20)", profile="mine", memory_mb=200).status, "memory_limit")
            equal(kept.value("x + 1"), "21", "a session of before")
            inside = Session(c)
            inside.well("y = 1", seconds(60), profile="mine")
            write_and_reload(section + "modules = + colorsys\n", "zygote-renewed profile=mine")
            equal(run(asked, profile="mine").result["json"], True)
            equal(run(asked).result["json"], False, "the profile that was not named")
            equal((kept.value("x + 2"), inside.value("y + 1")), ("22", "2"))
            equal(inside.value(asked), "False", "a session of the profile as it was")
            write_and_reload("", 'after_restart="[interpreter], [profile]"')
            equal(run("1", profile="mine").status, "invalid_arguments", "it is taken away")
            equal((kept.value("x + 3"), inside.value("y + 2")), ("23", "3"))
            assert not c.answers, "what ran from before has ended"
            c.cancel(goes_on)
            equal((main_pid(), show("NRestarts")), (before, "0"))
    finally:
        shutil.rmtree(os.path.dirname(worker))


@test
def a_restart_keeps_sockets_and_requests():
    config = APPROVALS + "run_script = approve\ndenied_seconds = 0\n"
    with configured(config, "[Unit]\n"):
        with client(ALICE) as c:
            def ask():
                return c.ask("tools/call", {"name": "run_script", "arguments": {
                    "script": "print(6 * 7)"}}, seconds(60))
            first = ask()
            equal(first["structuredContent"]["status"], "approval_pending")
        id = re.search(r"\ba-[a-z0-9]+", json.dumps(first["content"]))[0]
        before = os.stat(SOCKET).st_ino
        sh("systemctl", "stop", UNIT)
        with client(ALICE) as c:	# who connects meanwhile starts it
            equal(os.stat(SOCKET).st_ino, before)
            assert id in operator("approvals"), "the request is forgotten"
            operator("approve", id)
            sh("systemctl", "restart", UNIT)
        with client(ALICE) as c:
            o = c.run("print(6 * 7)", seconds(60))
            equal((o.status, o.stdout), ("ok", "42\n"))
            again = c.ask("tools/call", {"name": "run_script", "arguments": {
                "script": "print(6 * 7)"}}, seconds(60))["structuredContent"]
            equal(again["status"], "approval_pending", "a grant is for one call")
        for id in re.findall(r"\b(a-[a-z0-9]+)  pending", operator("approvals")):	# nor for the next test
            operator("deny", id, "--reason", "the test is over")
