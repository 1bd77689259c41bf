# SPDX-License-Identifier: Apache-2.0
"""Secrets that the service reads from files, and where else they are."""

import contextlib
import os
import pwd

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


def names_of_those_with(service, secret):
    """The processes of a service that have the secret in memory. Root can look."""
    return {(read_text("/proc/%d/comm" % pid) or "").strip() for pid in [service.pid, *service.below()]
            if memory_has(pid, secret.encode())}


def memory_has(pid, secret):
    """Is it in any memory of a process that can be read? One that has ended has none."""
    try:
        with open("/proc/%d/maps" % pid, encoding="utf-8", errors="replace") as maps, \
                open("/proc/%d/mem" % pid, "rb", 0) as memory:
            return any(mapping_has(line, memory, secret) for line in maps)
    except (FileNotFoundError, ProcessLookupError):
        return False


def mapping_has(line, memory, secret):
    begin, end = (int(text, 16) for text in line.split()[0].split("-"))
    if "r" not in line.split()[1] or end - begin > 1 << 30:
        return False
    try:
        return secret in os.pread(memory.fileno(), end - begin, begin)
    except (OSError, OverflowError):
        return False
