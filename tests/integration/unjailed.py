# SPDX-License-Identifier: Apache-2.0
"""Runs a script outside the jail, to compare: the same interpreter, an unprivileged user, an empty
directory."""

import os
import signal
import subprocess

from harness import SOMEBODY
from interpreter import under_test


def become_somebody():
    # As a shell in the foreground has them, though we may run in the background of one.
    for number in signal.SIGINT, signal.SIGQUIT, signal.SIGHUP:
        signal.signal(number, signal.SIG_DFL)
    if os.getuid() == 0:
        os.setgroups([])
        os.setresgid(SOMEBODY, SOMEBODY, SOMEBODY)
        os.setresuid(SOMEBODY, SOMEBODY, SOMEBODY)


def open_directory(path, mode=0o777):
    os.mkdir(path)
    os.chmod(path, mode)


def run_unjailed(text, args, timeout):
    """What the script has written to standard output, and to standard error; its exit status."""
    with under_test.directory() as d:
        os.chmod(d, 0o777)
        open_directory(d + "/tmp", 0o1777)
        open_directory(d + "/cwd")
        script = os.path.join(d, "script.py")
        with open(script, "w", encoding="utf-8") as f:
            f.write(text)
        # No pipes: a child that outlives the script would keep them open.
        as_written = {"encoding": "utf-8", "errors": "replace", "newline": ""}
        with open(d + "/out", "w+", **as_written) as out, \
                open(d + "/err", "w+", **as_written) as err:
            seen = under_test.seen(d)
            done = subprocess.run(
                under_test.command(d + "/cwd", SOMEBODY, seen + "/script.py", *args), cwd=d + "/cwd",
                preexec_fn=None if under_test.root else become_somebody,
                timeout=timeout, check=False, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": seen, "LANG": "C.UTF-8",
                     "PYTHONUTF8": "1", "TMPDIR": seen + "/tmp", "USER": "nobody",
                     "LOGNAME": "nobody"})
            out.seek(0)
            err.seek(0)
            return out.read(), err.read(), done.returncode
