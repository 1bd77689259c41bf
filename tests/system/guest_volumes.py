# SPDX-License-Identifier: Apache-2.0
"""Volumes under the unit: what it needs for them, where they are, whose their servers are."""

import os

from guest_packages import configured
from guest_tools import ALICE, BOB, CGROUP, client, pids, read, seconds, sh, test

CONFIG = "[workspace]\nvolume = yes\nvolume_bytes = 16M\n"
# As doc/operators.md has it.
DROP_IN = "[Service]\nDeviceAllow=/dev/fuse rw\nBindPaths=/dev/fuse\n"
VOLUMES = "/var/lib/mcp-pythond/volumes"


def run(c, script, status="ok"):
    o = c.run(script, seconds(60), volume="data")
    assert o.status == status, o
    return o


def cell(c, code, **more):
    return c.outcome(c.request("tools/call", {"name": "run_repl", "arguments": {"code": code, **more}}),
                     seconds(60))


@test
def volumes_are_shared_where_the_unit_lets_them():
    with configured(CONFIG, "[Service]\n"), client() as c:
        o = c.run("1", seconds(60), volume="data")
        assert o.status == "jail_failed" and "need /dev/fuse" in o.text, o
        assert c.run("print(6 * 7)", seconds(60)).stdout == "42\n"
        assert "volumes-none" in sh("journalctl", "-b", "-u", "mcp-pythond", "-o", "cat")
    with configured(CONFIG, DROP_IN), client() as c, client(BOB) as other:
        run(c, "open('/volume/data/f', 'w').write('x' * 1000)")
        assert run(other, "import os; print(os.listdir('/volume/data'))").stdout == "[]\n"
        run(c, "open('/volume/data/g', 'wb').write(b'x' * (17 << 20))", "disk_limit")
        servers = [p for p in pids() if read("/proc/%d/comm" % p) == "python-volume\n"]
        assert len(servers) == 2, servers
        for pid in servers:
            leaf = read("/proc/%d/cgroup" % pid).strip().partition("::")[2]
            tenant = os.path.basename(os.path.dirname(leaf))
            assert tenant in (str(ALICE), str(BOB)) and CGROUP.endswith(leaf.split("/")[2]), leaf
            limit = read("/sys/fs/cgroup%s/memory.max" % leaf).strip()
            assert limit == str(128 << 20), limit
        used = sum(int(line.split()[0]) for line in
                   sh("du", "-s", "--block-size=1", "%s/%d" % (VOLUMES, ALICE)).splitlines())
        assert used <= (16 << 20) + (64 << 10), used
        assert os.stat(VOLUMES).st_mode & 0o777 == 0o700
        session = cell(c, "1", volume="data").structured["session"]
        sh("systemctl", "restart", "mcp-pythond.service")
        with client() as c:
            assert run(c, "print(len(open('/volume/data/f').read()))").stdout == "1000\n"
            # A session that is kept has lost its server, and is told so.
            o = cell(c, "open('/volume/data/f')", session=session)
            assert o.status == "error" and "[Errno 107]" in o.text, o
            o = cell(c, "1", session=session, volume="data")
            assert o.refused and "outlived a restart" in o.text, o
            assert cell(c, "6 * 7", session=session).result["repr"] == "42"
