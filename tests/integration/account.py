# SPDX-License-Identifier: Apache-2.0
"""The processor time of a command and of all that it starts, also of what is killed and collected
by nobody: getrusage(2) leaves that out, which is a third of what a suite takes."""

import contextlib
import os
import tempfile
import time

# Version 1 alone: a group of version 2 would be one more thing that the service finds and may use.
CPUACCT = "/sys/fs/cgroup/cpuacct"


class Account:
    """A group of the kernel's for accounting, where one can be made. around() is the command that
    enters it; end() the seconds so far, or those of the usage that wait4() gave."""

    def __init__(self):
        self.place = None
        with contextlib.suppress(OSError):
            with open("/proc/self/cgroup", encoding="ascii") as file:
                below = next((path for _, names, path in (line.rstrip().split(":", 2) for line in file)
                              if "cpuacct" in names.split(",")), None)
            if below is not None:
                self.place = tempfile.mkdtemp(prefix="mcp-account-", dir=CPUACCT + below)

    def around(self, command):
        if not self.place:
            return list(command)
        return ["/bin/sh", "-c", 'echo $$ >"$0/cgroup.procs"; exec "$@"', self.place, *command]

    def enter(self):
        """This process and all that it will start."""
        if self.place:
            with open(self.place + "/cgroup.procs", "w", encoding="ascii") as file:
                file.write(str(os.getpid()))

    def leave(self):
        if self.place:
            with open(os.path.dirname(self.place) + "/cgroup.procs", "w", encoding="ascii") as file:
                file.write(str(os.getpid()))
            self.remove()

    def so_far(self):
        """None: the kernel does not count for us."""
        with contextlib.suppress(OSError, TypeError):
            with open(self.place + "/cpuacct.usage", encoding="ascii") as file:
                return int(file.read()) / 1e9
        return None

    def end(self, usage):
        seconds = max(usage.ru_utime + usage.ru_stime, self.so_far() or 0)
        if self.place:
            self.remove()
        return seconds

    def remove(self):
        """What it has started may still be ending."""
        for _ in range(50):
            with contextlib.suppress(OSError):
                os.rmdir(self.place)
                return
            time.sleep(0.02)


def busy_and_idle():
    """Seconds of all processors since the machine started."""
    with open("/proc/stat", encoding="ascii") as file:
        fields = [int(one) / os.sysconf("SC_CLK_TCK") for one in file.readline().split()[1:9]]
    idle = fields[3] + fields[4]
    return sum(fields) - idle, idle
