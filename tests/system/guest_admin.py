# SPDX-License-Identifier: Apache-2.0
"""The operators' socket as it is installed, and sockets that are enabled when the service runs."""

import contextlib
import json
import os
import re
import stat
import urllib.request

from guest_packages import as_user, configured
from guest_tools import ALICE, BOB, UNIT, client, main_pid, seconds, sh, show, test
from harness import equal
from mcpclient import connect_as

PATH = "/run/mcp-pythond/admin.sock"
METRICS = "http://127.0.0.1:9464/metrics"
DROP_IN = "/run/systemd/system/mcp-pythond-admin.socket.d/test.conf"


def asked_by(uid):
    """The id of a request for an approval."""
    with client(uid) as c:
        answer = c.ask("tools/call", {"name": "run_script", "arguments": {
            "script": "print('of %d')" % uid, "background": False}}, seconds(60))
        equal(answer["structuredContent"]["status"], "approval_pending")
        return re.search(r"\ba-[a-z0-9]+", json.dumps(answer["content"]))[0]


@test
def root_is_the_operator_from_the_start():
    with configured("[policy]\nrun_script = approve\n", "[Unit]\n"):
        sh("systemctl", "start", "mcp-pythond.socket")
        st = os.stat(PATH)
        equal((st.st_uid, st.st_gid, stat.S_IMODE(st.st_mode)), (0, 0, 0o600))
        id = asked_by(ALICE)
        assert id in sh("mcp-python", "approvals"), "root does not see it"
        assert "print('of %d')" % ALICE in sh("mcp-python", "approvals", "show", id)
        seen = json.loads(sh("mcp-python", "status", "--json"))
        equal((seen["scope"], [t["tenant"] for t in seen["tenants"]]),
              ("service", ["uid:%d" % ALICE]))
        for uid in (ALICE, BOB):
            for command in (("approvals",), ("approve", id), ("metrics",)):
                p = as_user(uid, "mcp-python", *command, check=False)
                assert p.returncode != 0 and "Permission denied" in p.stdout, p.stdout
            with contextlib.suppress(PermissionError):
                connect_as(PATH, uid, seconds(30)).close()
                raise AssertionError("%d may connect" % uid)
        sh("mcp-python", "approve", id)
        with client(ALICE) as c:
            o = c.run("print('of %d')" % ALICE, seconds(60))
            equal((o.status, o.stdout), ("ok", "of %d\n" % ALICE))


@test
def others_are_let_to_it_by_a_drop_in():
    os.makedirs(os.path.dirname(DROP_IN), exist_ok=True)
    with open(DROP_IN, "w") as f:
        f.write("[Socket]\nSocketMode=0666\n")
    try:
        with configured("[policy]\nrun_script = approve\napprovers = uid:%d\n"
                        "denied_seconds = 0\n" % BOB, "[Unit]\n"):
            sh("systemctl", "restart", "mcp-pythond.socket")
            id = asked_by(ALICE)
            assert id in as_user(BOB, "mcp-python", "approvals")
            assert id not in as_user(4999, "mcp-python", "approvals")
            as_user(BOB, "mcp-python", "deny", id, "--reason", "not now")
    finally:
        os.unlink(DROP_IN)
        sh("systemctl", "daemon-reload")
        sh("systemctl", "restart", "mcp-pythond.socket")
    equal(stat.S_IMODE(os.stat(PATH).st_mode), 0o600)


@test
def a_socket_is_enabled_while_the_service_runs():
    try:
        with client(ALICE) as c:
            equal(c.run("print(1)", seconds(60)).status, "ok")
        before = main_pid()
        p = sh("systemctl", "start", "mcp-pythond-metrics.socket", check=False)
        assert p.returncode != 0, "then doc/operators.md says too much"
        sh("systemctl", "enable", "mcp-pythond-metrics.socket")
        sh("systemctl", "restart", "mcp-pythond.socket")
        equal(show("ActiveState", "mcp-pythond-metrics.socket"), "active")
        with urllib.request.urlopen(METRICS, timeout=seconds(60)) as answer:
            assert answer.read().endswith(b"# EOF\n")
        assert main_pid() not in (0, before)
        with client(ALICE) as c:
            equal(c.run("print(1)", seconds(60)).status, "ok")
        equal(json.loads(sh("mcp-python", "status", "--json"))["scope"], "service")
    finally:
        sh("systemctl", "disable", "--now", "mcp-pythond-metrics.socket")
        sh("systemctl", "restart", "mcp-pythond.socket")
    equal(show("Result"), "success", UNIT)
