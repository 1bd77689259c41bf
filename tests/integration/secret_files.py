# SPDX-License-Identifier: Apache-2.0
"""Secrets that the service reads from files, and where else they are."""

import contextlib
import os
import pwd
import re

from supervisor import read_text

# The service becomes this user, who alone can read the files.
USER = "[service]\nuser = nobody\n" if os.geteuid() == 0 else ""


def write_secret(path, text):
    with contextlib.suppress(FileNotFoundError):	# an earlier one cannot be written to
        os.remove(path)
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
    os.chmod(path, 0o400)
    if USER:
        os.chown(path, pwd.getpwnam("nobody").pw_uid, -1)
    return path


def names_of_those_with(service, *secrets):
    """The processes of a service that have one of them in memory, for each. Root can look."""
    names = [set() for _ in secrets]
    for pid in [service.pid, *service.below()]:
        found = memory_has(pid, [secret.encode() for secret in secrets])
        for i in found:
            names[i].add((read_text("/proc/%d/comm" % pid) or "").strip())
    return names


def memory_has(pid, secrets):
    """Which of them are in any memory of a process that can be read? One that has ended has none."""
    found = set()
    try:
        with open("/proc/%d/smaps" % pid, encoding="utf-8", errors="replace") as maps, \
                open("/proc/%d/mem" % pid, "rb", 0) as memory:
            mapping = None
            for line in maps:
                if re.match("[0-9a-f]+-", line):
                    mapping = line
                elif line.startswith("Rss:") and int(line.split()[1]) > 0:
                    found |= mapping_has(mapping, memory, secrets)
    except (FileNotFoundError, ProcessLookupError):
        pass
    return found


def mapping_has(line, memory, secrets):
    begin, end = (int(text, 16) for text in line.split()[0].split("-"))
    if "r" not in line.split()[1] or end - begin > 1 << 30:
        return set()
    try:
        bytes = os.pread(memory.fileno(), end - begin, begin)
    except (OSError, OverflowError):
        return set()
    return {i for i, secret in enumerate(secrets) if secret in bytes}
