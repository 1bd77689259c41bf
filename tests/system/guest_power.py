# SPDX-License-Identifier: Apache-2.0
"""The power fails while packages are installed. The state directory is on a disk whose writes and
flushes are logged in their order (dm-log-writes). What a disk may hold after a loss of power is all
that was written before some flush, and any part of what was written after it: such disks are made
of the log, mounted and looked at."""

import contextlib
import json
import os
import random
import shutil
import struct

from guest_tools import UNIT, sh
from harness import equal
from package_store import leftovers, verify

PLACE = "/run/power"
BYTES = 32 << 20
SECTOR = 512
FLUSH, FUA, DISCARD, MARK = 1, 2, 4, 8
MAGIC = 0x6a736677736872


class LoggedDisk:
    """with LoggedDisk("/var/lib/x") as disk: disk.mark("done")"""

    def __init__(self, at):
        self.at = at

    def __enter__(self):
        sh("modprobe", "loop")
        sh("modprobe", "dm-log-writes")
        os.makedirs(PLACE)
        sh("mount", "-t", "tmpfs", "-o", "size=900M", "power", PLACE)
        for name, size in (("base", BYTES), ("log", 600 << 20)):
            with open(PLACE + "/" + name, "wb") as f:
                f.truncate(size)
        sh("mkfs.ext4", "-q", "-F", "-J", "size=4", "-E", "lazy_itable_init=0,lazy_journal_init=0",
           PLACE + "/base")
        sh("cp", "--sparse=always", PLACE + "/base", PLACE + "/disk")
        self.loops = [sh("losetup", "-f", "--show", PLACE + "/" + name).strip()
                      for name in ("disk", "log")]
        sh("dmsetup", "create", "logged", "--table", "0 %d log-writes %s %s" % (
            BYTES // SECTOR, *self.loops))
        sh("mount", "/dev/mapper/logged", self.at)
        sh("systemd-tmpfiles", "--create", "mcp-pythond.conf")
        return self

    def mark(self, word):
        sh("dmsetup", "message", "logged", "0", "mark", word)

    def __exit__(self, *exc):
        sh("systemctl", "stop", UNIT)
        sh("umount", self.at)
        sh("dmsetup", "remove", "logged")
        for loop in self.loops:
            sh("losetup", "-d", loop)


def log_entries():
    """Of the log, in its order: (flags, offset, bytes or the mark's word)."""
    with open(PLACE + "/log", "rb") as f:
        magic, _, n, sector = struct.unpack("<QQQI", f.read(28))
        assert magic == MAGIC and sector == SECTOR, (magic, sector)
        f.seek(SECTOR)
        for _ in range(n):
            head = f.read(SECTOR)
            at, count, flags, length = struct.unpack_from("<QQQQ", head)
            if flags & MARK:
                yield flags, 0, head[32:32 + length].rstrip(b"\0").decode()
                f.seek(count * SECTOR, 1)
            else:
                yield flags, at * SECTOR, b"" if flags & DISCARD else f.read(count * SECTOR)


def segments():
    """What lies between two flushes: [(writes, marks before their end)]. A flush's own data, the
    commit of a journal, is written after it."""
    made, writes, marks = [], [], []
    for flags, at, data in log_entries():
        if flags & MARK:
            marks.append(data)
            continue
        if flags & FLUSH:
            made.append((writes, list(marks)))
            writes = []
        if data:
            writes.append((at, data, bool(flags & FUA)))
    made.append((writes, list(marks)))
    return made


def some_of(writes, chance):
    """What of these a disk may have at a moment before the flush that follows: none, all, or any
    of what was written by then, whole or torn, but what was not to wait for a flush (FUA)."""
    share = chance.choice((0, 0.3, 0.7, 1))
    for at, data, now in writes[:chance.randrange(len(writes) + 1)]:
        if now:
            yield at, data
            continue
        if chance.random() >= share:
            continue
        if len(data) > 4096 and chance.random() < 0.2:
            data = data[:chance.randrange(1, len(data) // 4096) * 4096]
        yield at, data


@contextlib.contextmanager
def mounted(image, at):
    os.makedirs(at, exist_ok=True)
    sh("mount", "-o", "loop", image, at)
    try:
        yield
    finally:
        sh("umount", at)


def whole_lines(path):
    """A torn end is taken off, as the service does at its start. The number of lines."""
    with open(path, "rb+") as f:
        text = f.read().rstrip(b"\0")
        end = text.rfind(b"\n") + 1
        f.truncate(end)
        return text[:end].count(b"\n")


def look(at, done):
    """The disk after a loss of power, and what had been answered before: marks."""
    store, audit = at + "/environments", at + "/records/audit.jsonl"
    found = verify(store) if os.path.isdir(store) else 0
    if "installed" in done:
        equal(found, 1, "environments after install_package said ok")
    if os.path.exists(audit) and whole_lines(audit):
        sh("mcp-python", "audit", "verify", "--file", audit)
    approvals, decided = at + "/records/approvals.jsonl", []
    if os.path.exists(approvals):
        whole_lines(approvals)
        with open(approvals) as f:
            decided = [json.loads(line) for line in f]
    if "approved" in done:
        assert len(decided) >= 2, "the decision is forgotten: %r" % decided
    return found, bool(leftovers(store)) if os.path.isdir(store) else False


def replay(points, seed):
    """Calls look() for that many disks. Returns how many had an environment, something half made,
    and an image with something half made, if there was one."""
    chance = random.Random(seed)
    parts = segments()
    begun = next(i for i, (_, marks) in enumerate(parts) if "begun" in marks)
    # One of before it and one of after it, and where chance has it.
    chosen = sorted([begun, len(parts) - 1][:points] + chance.choices(
        range(begun, len(parts)), k=max(0, points - 2)))
    whole = half = 0
    kept = None
    now, trial = PLACE + "/now", PLACE + "/trial"
    sh("cp", "--sparse=always", PLACE + "/base", now)
    for i, (writes, _) in enumerate(parts):
        before = parts[i - 1][1] if i else []
        for n in range(chosen.count(i)):
            sh("cp", "--sparse=always", now, trial)
            with open(trial, "rb+") as f:
                for at, data in some_of(writes, chance):
                    f.seek(at)
                    f.write(data)
            with mounted(trial, PLACE + "/at"):
                try:
                    found, torn = look(PLACE + "/at", before)
                except Exception as e:
                    raise AssertionError("disk %d of flush %d of %d (seed %d), after %s: %s" % (
                        n, i, len(parts), seed, before, e)) from e
            whole += found > 0
            half += torn
            if torn and not kept:
                kept = PLACE + "/half"
                shutil.copyfile(trial, kept)
        with open(now, "rb+") as f:
            for at, data, _ in writes:
                f.seek(at)
                f.write(data)
    return len(parts), whole, half, kept
