#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs inside the virtual machine, once in each of its lives: examines what the stop before has
left, continues the interrupted installation, and installs until it is stopped again (hard_stops.py
is outside). The argument is what is known outside, as JSON."""

import contextlib
import json
import mmap
import os
import shutil
import sys
import threading
import time

import guest_tools
from guest_packages import AUDIT, STATE, STORE, configured, packages_config
from guest_power import whole_lines
from guest_tools import ALICE, client, seconds, sh
from harness import equal
from package_index import Index
from package_store import environments, install, leftovers, verify
from waits import until

DISK = next(path for path in ("/dev/vdc", "/dev/ubdc") if os.path.exists(path))
FILE_SYSTEM, CONTROL, CONTROLS = 96 << 20, 64 << 10, 2560	# hard_stops.py has the same
MARK = b"mcp-pythond"
MOST = 8		# installations in one life
CONFIG = "[policy]\ninstall_package = allow\n"
NETWORK = "[Service]\nPrivateNetwork=no\n"


def say(*words):
    """A whole line at once: there are two threads."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def keep_writing(boot):
    """Past the page cache and the file system, and never flushed for itself."""
    fd = os.open(DISK, os.O_WRONLY | os.O_DIRECT)
    block = mmap.mmap(-1, 4096)
    pause = threading.Event()
    for i in range(CONTROLS):
        text = MARK + b" %d %d\n" % (boot, i)
        block[:len(text)] = text
        os.pwritev(fd, [block], FILE_SYSTEM + i * CONTROL)
        say("CONTROL", i)
        pause.wait(0.25)


def installed_numbers():
    found = set()
    for name in environments(STORE) if os.path.isdir(STORE) else []:
        with open(os.path.join(STORE, name, "manifest")) as f:
            for package in json.load(f)["packages"]:
                if package["name"] == "serial":
                    found.add(int(package["version"]))
    return found


def verify_audit():
    said = sh("mcp-python", "audit", "verify")
    assert "ok: up to record" in said, said


def look(facts):
    """Everything that was left is complete, and everything that was answered exists. Since the stop
    only ext4 has touched it, with its journal."""
    found = verify(STORE) if os.path.isdir(STORE) else 0
    missing = set(facts["installed"]) - installed_numbers()
    assert not missing, "it said that these are installed: %s" % sorted(missing)
    half = len(leftovers(STORE)) if os.path.isdir(STORE) else 0
    records = torn = 0
    if os.path.exists(AUDIT):
        copy = "/run/audit-copy"
        shutil.copyfile(AUDIT, copy)
        records = whole_lines(copy)
        torn = os.path.getsize(AUDIT) - os.path.getsize(copy)
        if records:
            sh("mcp-python", "audit", "verify", "--file", copy)
    say("WHOLE %d environments, %d half made; %d records, %d bytes of a torn one" % (
        found, half, records, torn))


def one_more(c, number, packages):
    say("BEGIN", number)
    started = time.monotonic()
    done = install(c, *packages, timeout=seconds(120))
    equal(done["status"], "ok", done)
    say("INSTALLED", number)
    if "already" not in done["message"]:
        say("TOOK", time.monotonic() - started)


def packages_of(number):
    return ["wide", "serial==%d" % number]


def life(facts):
    if facts["boot"]:
        look(facts)
    number = facts["begun"]
    threading.Thread(target=keep_writing, args=(facts["boot"],), daemon=True).start()
    with Index() as index, contextlib.ExitStack() as stack:
        index.add("wide", "1.0", {"wide/%s.py" % ("__init__" if i == 0 else "m%d" % i):
                                  "x = %r\n" % ("y" * 2000) for i in range(40)})
        for version in range(number, number + MOST):
            index.add("serial", str(version))
        say("READY")
        say("AT starting the service")
        sh("systemctl", "start", "mcp-pythond.socket")
        stack.enter_context(configured(packages_config(index) + CONFIG, NETWORK))
        c = stack.enter_context(client(ALICE))
        equal(c.run("print(1)", seconds(120)).stdout, "1\n")
        # The keeper tidies up while other calls are answered.
        until("the unfinished set is gone", lambda: not leftovers(STORE), seconds(60))
        verify_audit()
        one_more(c, number, packages_of(number))
        if facts["last"]:
            o = c.run("import wide, serial; print(serial.VERSION)", seconds(120),
                      dependencies=packages_of(number))
            equal((o.status, o.stdout), ("ok", "%d\n" % number), repr(o))
            facts["installed"].append(number)
            look(facts)
            verify_audit()
            return
        for number in range(number + 1, number + MOST):
            one_more(c, number, packages_of(number))
    raise AssertionError("this machine was not stopped")


def main():
    guest_tools.set_slow(6.0)
    os.umask(0o022)
    facts = json.loads(sys.argv[1])
    sh("mount", DISK, STATE)
    sh("systemd-tmpfiles", "--create", "mcp-pythond.conf")
    life(facts)


if __name__ == "__main__":
    main()
