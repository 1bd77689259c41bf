# SPDX-License-Identifier: Apache-2.0
"""Scripts that wait until a test lets them go on. What a test wants to see before their end comes
before it, however slow the machine is meanwhile."""

import os
import signal

from harness import Skip
from supervisor import descendants, read_text
from waits import until

# It gives its name back when it goes on: its process may be there for a while after its answer.
HELD = """import ctypes, signal
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
ctypes.CDLL(None).prctl(15, b"%s", 0, 0, 0)
%s
signal.sigwait({signal.SIGUSR1})
ctypes.CDLL(None).prctl(15, b"python3", 0, 0, 0)
%s"""


def held(name, before="", after=""):
    """A script that waits between two parts. name: of its process, up to 15 characters, and no
    other's that runs at the same time."""
    return HELD % (name, before, after)


def find_held(pid, name):
    """(pid, start time) of the processes of this name below a service's pid."""
    return [(one, start) for one, start in descendants(pid)
            if (read_text("/proc/%d/comm" % one) or "").strip() == name]


def let_go(ctx, name, service=None, timeout=60):
    """Waits until a script of this name waits, and lets it go on. Its (pid, start time)."""
    pid = service.pid if service else ctx.pid
    if not pid:
        raise Skip("needs the process of the service")
    (one, start), = until("a script waits that is called " + name, lambda: find_held(pid, name),
                          ctx.seconds(timeout))
    os.kill(one, signal.SIGUSR1)
    return one, start
