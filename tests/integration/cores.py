# SPDX-License-Identifier: Apache-2.0
"""A core handler of the host's: kernel.core_pattern names a program for a moment, which notes who
has crashed."""

import contextlib
import os
import signal
import subprocess
import tempfile

from waits import libc, until

PATTERN = "/proc/sys/kernel/core_pattern"

# Each way in which a script may ask for a core; the name of what crashes is NAME.
CRASHES = """
import ctypes, os, resource, shutil, subprocess
libc = ctypes.CDLL(None)
CORE = resource.RLIMIT_CORE

def crash(before, command=None):
    if os.fork() == 0:
        libc.prctl(15, b"NAME", 0, 0, 0)
        libc.prctl(4, 1, 0, 0, 0)
        try:
            before()
        except (OSError, ValueError):
            pass
        if command:
            os.execv(*command)
        os.abort()
    return os.WCOREDUMP(os.wait()[1])

shutil.copy("/bin/sh", "NAME")
dumped = [crash(before, command)
          for before in (lambda: None,
                         lambda: resource.setrlimit(CORE, (0, 0)),
                         lambda: resource.setrlimit(CORE, (0, 1)),
                         lambda: resource.prlimit(0, CORE, (0, 0)),
                         lambda: resource.setrlimit(CORE, (-1, -1)))
          for command in (None, ("./NAME", ["sh", "-c", "kill -ABRT $$"]))]
print(dumped.count(True), len(dumped), resource.getrlimit(CORE))
"""


@contextlib.contextmanager
def core_handler(program=True):
    """The directory in which a handler makes a file for each name that has crashed. The pattern is
    what it was afterwards, also if this process is killed."""
    with open(PATTERN, encoding="ascii") as f:
        before = f.read().strip()
    with tempfile.TemporaryDirectory(prefix="cores") as directory:
        path = os.path.join(directory, "handler")
        with open(path, "w", encoding="ascii") as f:
            f.write("#!/bin/sh\n: >'%s/crashed-'\"$1\"\nexec cat >/dev/null\n" % directory)
        os.chmod(path, 0o755)
        restorer = subprocess.Popen(	# which outlives this process, and sees its end
            ["/bin/sh", "-c", 'cat; printf "%s\\n" "$0" >' + PATTERN, before],
            stdin=subprocess.PIPE, start_new_session=True)
        try:
            with open(PATTERN, "w", encoding="ascii") as f:
                f.write("|%s %%e\n" % path if program else "core\n")
            yield directory
        finally:
            restorer.stdin.close()
            restorer.wait()
            with open(PATTERN, encoding="ascii") as f:
                assert f.read().strip() == before, "the pattern is not what it was"


def crash_here(name):
    """A process outside of any jail crashes."""
    pid = os.fork()
    if pid == 0:
        libc.prctl(15, name.encode(), 0, 0, 0)	# PR_SET_NAME
        os.setgid(65534)
        os.setuid(65534)
        libc.prctl(4, 1, 0, 0, 0)	# PR_SET_DUMPABLE
        os.kill(os.getpid(), signal.SIGABRT)
        os._exit(1)
    os.waitpid(pid, 0)


def crashed(directory):
    return {name.removeprefix("crashed-") for name in os.listdir(directory)
            if name.startswith("crashed-")}


def check_no_handler(run):
    """run: runs a script and returns its output. None of its crashes reaches the handler, which
    does hear of one outside."""
    with core_handler() as directory:
        said = run(CRASHES.replace("NAME", "crash-jailed"))
        crash_here("crash-outside")
        until("the handler has run", lambda: "crash-outside" in crashed(directory))
        assert said == "0 10 (1, 1)\n", said
        assert "crash-jailed" not in crashed(directory), "a crash of a script started it"
