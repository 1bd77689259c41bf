# SPDX-License-Identifier: Apache-2.0
"""What operators do: the commands of doc/operators.md as they stand there, and an upgrade and a removal
of the Debian packages."""

import glob
import os
import re
import subprocess

from guest_sessions import again, kept
from guest_tools import UNIT, main_pid, read, seconds, sh, show, test

DOCUMENT = "/payload/doc/operators.md"
PACKAGES = "/payload/packages"
# Sections whose commands are run, in this order.
SECTIONS = ("Install", "Over HTTP", "The operators' socket", "Watching it")
# Commands that stand for others, each with the reason why it is not run as it stands.
LEFT_OUT = {
    "mcp-python stop x-...": "there is no such execution; suite operate stops some",
    "mcp-python audit show -f": "it follows the log without an end; suite audit",
}


def commands_of(section):
    """Of its blocks of shell, and of its indented lines, without what is said beside a command."""
    found, fence, here = [], None, False
    for line in read(DOCUMENT).splitlines():
        if line.startswith("```"):
            fence = line[3:] + "." if fence is None else None
        elif fence is None and line.startswith("#"):
            here = line.strip("# ") == section
        elif here and line and (fence == "sh." or fence is None and line.startswith("    mcp-python")):
            found.append(re.split(r"\s+# |\s{2,}", line.strip())[0])
    assert found, "no commands in section " + section
    return found


@test
def the_first_hour_of_the_operators():
    token, done = None, []
    sh("useradd", "ada")	# a user in the document
    for section in SECTIONS:
        for command in commands_of(section):
            if command in LEFT_OUT:
                continue
            if command.startswith("mcp-python token revoke "):
                command = "mcp-python token revoke " + token
            p = subprocess.run(["bash", "-ec", command], cwd="/payload", capture_output=True,
                               text=True, timeout=seconds(120), stdin=subprocess.DEVNULL)
            assert p.returncode == 0, (command, p.returncode, p.stdout, p.stderr)
            done.append(command)
            if command.startswith("mcp-python run "):
                assert p.stdout.startswith("Hello from Python 3."), p.stdout
            if command == "mcp-python token list":
                token = re.search(r"^(\w{10})\s+ci\b|\b([a-z0-9]{10})\b", p.stdout, re.M)[0].split()[0]
            if command == "mcp-python metrics":
                assert p.stdout.endswith("# EOF\n"), p.stdout[-200:]
    assert len(done) >= 10, done
    sh("systemctl", "stop", UNIT)
    return "%d commands" % len(done)


def install():
    packages = sorted(glob.glob(PACKAGES + "/*.deb"))
    assert packages, "make them with ./quickstart deb"
    return sh("env", "DEBIAN_FRONTEND=noninteractive", "dpkg", "--install", "--force-confold",
              "--force-depends", *packages)


@test
def an_upgrade_of_the_packages_keeps_sessions():
    """The last one of its machine: it ends with nothing installed."""
    sh("systemctl", "stop", UNIT)
    sh("systemctl", "disable", "mcp-pythond.socket", "mcp-pythond-http.socket")
    install()
    sh("systemctl", "start", "mcp-pythond.socket")
    handle, _ = kept("x = 20")
    before = main_pid()
    install()
    after = main_pid()
    assert after not in (0, before), (before, after)
    with again(handle) as s:
        s.well("y = x + 1", seconds(60))
        assert s.value("y") == "21"
    enabled = sh("systemctl", "list-unit-files", "--state=enabled", "--no-legend", "mcp-pythond*")
    assert sorted(line.split()[0] for line in enabled.splitlines()) == ["mcp-pythond.socket"], enabled
    sh("dpkg", "--purge", "mcp-pythond", "mcp-python")
    assert main_pid() == 0 and show("LoadState") in ("not-found", "masked"), show("LoadState")
    for path in ("/etc/mcp-pythond", "/run/mcp-pythond", "/var/lib/mcp-pythond", "/usr/bin/mcp-python",
                 "/usr/sbin/mcp-pythond", "/etc/systemd/system/sockets.target.wants/mcp-pythond.socket",
                 "/sys/fs/cgroup/system.slice/mcp-pythond.service"):
        assert not os.path.lexists(path), path
    assert "mcp-python:" not in read("/etc/passwd")
