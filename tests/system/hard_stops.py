# SPDX-License-Identifier: Apache-2.0
"""The virtual machine is killed while packages are installed in it, and booted again with the
same data disk (guest_stops.py is inside): tests/system/run --stops N hard_stops.

What a disk that loses its power keeps is what was flushed, and any part of what was not. Killing
the machine's process alone is kinder: all that it has written stays in the host's page cache. So
the data disk is a qcow2 layer over a plain file. Its table of which clusters are there is QEMU's
until the guest flushes; killed before that, QEMU takes with it all that was written to clusters
that were not there, although the guest had been told that it was done. The layer is new after each
stop, so that is nearly everything. What it cannot show is the order in which a disk writes what was not flushed:
guest_power.py does that, by a log of all writes. Control writes of the guest, which are not flushed
for themselves, count what got lost."""

import io
import json
import os
import random
import select
import signal
import subprocess
import tarfile
import time

FILE_SYSTEM = 96 << 20
CONTROL, CONTROLS = 64 << 10, 2560	# one write to each; guest_stops.py has the same
DISK = FILE_SYSTEM + CONTROLS * CONTROL
MARK = b"mcp-pythond"
START = """\
#!/bin/sh
cd /payload/tests && exec /usr/bin/python3 -u system/guest_stops.py {arguments}
"""


# User-mode Linux locks whole files, also those that it only reads.
LAYER = "format=qcow2,file.locking=off,backing.file.locking=off,file="


class Failed(Exception):
    pass


def tool(*command, good=(0,)):
    p = subprocess.run(command, capture_output=True, text=True)
    if p.returncode not in good:
        raise Failed("%s ended with %d: %s" % (" ".join(command[:3]), p.returncode,
                                               p.stdout + p.stderr))


class Qemu:
    """The machine that users have."""
    loses = True	# data that was not flushed

    def __init__(self, command, base, work):
        """command(payload, disk): disk being the options of its first one."""
        self.command = command
        self.root, self.layer = (os.path.join(work, n) for n in ("root.qcow2", "data.qcow2"))
        tool("qemu-img", "create", "-q", "-f", "qcow2", "-b", base, "-F", "raw", self.root)

    def first(self, payload):
        return self.command(payload, LAYER + self.root)

    def next(self, payload, disk):
        tool("qemu-img", "create", "-q", "-f", "qcow2", "-b", disk, "-F", "raw", self.layer)
        return self.command(payload, "snapshot=on," + LAYER + self.root) + [
            "-drive", "if=virtio,cache=writeback," + LAYER + self.layer]

    def keep(self):
        """What the disk has is that of the next start."""
        tool("qemu-img", "check", "-q", self.layer, good=(0, 3))	# 3: clusters without an owner
        tool("qemu-img", "commit", "-q", self.layer)


class Uml:
    """User-mode Linux: faster, and gentler. Its driver never flushes, and tells its kernel of no cache.
    So the disk is a plain file, which has all that was written; what its kernel had not written
    yet is lost."""
    loses = False

    def __init__(self, command, base, work):
        """command(payload, root, disk): root is "LAYER,BASE"; disk None: none."""
        self.command, self.base = command, base
        self.root, self.now = (os.path.join(work, n) for n in ("root.cow", "now.cow"))

    def first(self, payload):
        return self.command(payload, self.root + "," + self.base, None)

    def next(self, payload, disk):
        tool("cp", "--sparse=always", self.root, self.now)
        return self.command(payload, self.now + "," + self.base, disk)

    def keep(self):
        pass


class Machine:
    """One life of the virtual machine; its console is read line by line."""

    def __init__(self, command, work, log):
        keyboard, self.keyboard = os.pipe()	# an open end, because no keys are pressed
        self.process = subprocess.Popen(command, stdin=keyboard, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, cwd=work,
                                        env=dict(os.environ, TMPDIR=work),
                                        start_new_session=True)
        os.close(keyboard)
        self.log, self.rest = log, b""

    def lines(self, deadline):
        """Lines until it is off, or up to a time, which is asked for again and again."""
        while True:
            left = deadline() - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                return
            data = os.read(self.process.stdout.fileno(), 65536)
            if not data:
                self.process.wait()
                return
            self.log.write(data)
            *lines, self.rest = (self.rest + data.replace(b"\r", b"")).split(b"\n")
            yield from (line.decode("utf-8", "replace") for line in lines)

    def kill(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.process.stdout.close()
        os.close(self.keyboard)


class Stops:
    def __init__(self, kind, payload, work, seed):
        """kind: a Qemu or Uml."""
        self.kind, self.payload, self.work = kind, payload, work
        self.dice = random.Random(seed)
        self.disk = os.path.join(work, "data.raw")
        self.log = open(os.path.join(work, "stops.log"), "wb", buffering=0)
        self.facts = {"installed": [], "begun": 0}	# what the guest is told
        self.took = None	# an installation, about
        self.written, self.lost, self.stopped = 0, 0, {}
        self.writes, self.phase = 0, None	# of this life

    def prepare(self, deadline):
        """An image with the service installed, and an empty data disk."""
        with open(self.disk, "wb") as f:
            f.truncate(DISK)
        tool("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", self.disk,
             str(FILE_SYSTEM >> 10) + "k")
        started = time.monotonic()
        machine = Machine(self.kind.first(self.payload), self.work, self.log)
        try:
            said = list(machine.lines(lambda: deadline))
        finally:
            machine.kill()
        # No bad guess on a fast machine and on a slow one, until one is through.
        self.took = time.monotonic() - started
        if "PAYLOAD STATUS 0" not in said:
            raise Failed("the service was not installed: " + "\n".join(said[-20:]))

    def start(self, number, last):
        arguments = json.dumps(dict(self.facts, boot=number, last=last))
        text = START.format(arguments="'%s'" % arguments).encode()
        path = os.path.join(self.work, "start.tar")
        with tarfile.open(path, "w") as tar:
            info = tarfile.TarInfo("payload/start")
            info.size, info.mode = len(text), 0o755
            tar.addfile(info, io.BytesIO(text))
        return Machine(self.kind.next(path, self.disk), self.work, self.log)

    def count_lost(self, boot, writes):
        self.written += writes
        with open(self.disk, "rb") as f:
            for i in range(writes):
                f.seek(FILE_SYSTEM + i * CONTROL)
                expected = MARK + b" %d %d\n" % (boot, i)
                self.lost += f.read(len(expected)) != expected

    def hear(self, line):
        """What the guest says of an installation."""
        word, _, rest = line.partition(" ")
        if word == "CONTROL":
            self.writes = int(rest) + 1
        elif word == "AT":
            self.phase = rest
        elif word == "BEGIN":
            self.facts["begun"], self.phase = int(rest), "installing"
        elif word == "INSTALLED":
            self.facts["installed"].append(int(rest))
            self.facts["begun"], self.phase = int(rest) + 1, "installed"
        elif word == "TOOK":
            self.took = float(rest)

    def life(self, number, last, timeout):
        """Boots, and is killed at some moment of an installation; the last one goes to its end.
        What the guest found at its start."""
        self.writes, self.phase = 0, "start"
        # Four in five in what has begun, up to a little after its answer; else earlier.
        word = "READY" if self.dice.random() < 0.2 else "BEGIN"
        share = self.dice.uniform(0, 1.2)
        machine, begun, said = self.start(number, last), None, []
        late = time.monotonic() + timeout

        def moment():
            """Sooner when an installation turns out to take less than was thought."""
            return begun + share * self.took if begun else late
        try:
            for line in machine.lines(moment):
                self.hear(line)
                said.append(line)
                if line.split(" ")[0] == word and not (last or begun):
                    begun = time.monotonic()
            over = machine.process.poll() is not None
        finally:
            machine.kill()
        if over != last or over != ("PAYLOAD STATUS 0" in said) or not (last or begun):
            raise Failed("life %d %s:\n%s" % (number, "ended" if over else "went on for too long",
                                              "\n".join(said[-40:])))
        if not last:
            self.stopped[self.phase] = self.stopped.get(self.phase, 0) + 1
        self.kind.keep()
        self.count_lost(number, self.writes)
        return next((line for line in said if line.startswith("WHOLE")), "nothing")


def hard_stops(kind, payload, work, stops, seed, timeout, say):
    """Returns what is wrong, or None."""
    s = Stops(kind, payload, work, seed)
    started = time.monotonic()
    say("stopping it hard, %d times (seed %d)" % (stops, seed))
    try:
        s.prepare(time.monotonic() + timeout)
        for number in range(stops + 1):
            found = s.life(number, number == stops, timeout)
            say("start %d: %s" % (number, found))
    except Failed as e:
        return "hard stops (seed %d): %s" % (seed, e)
    finally:
        s.log.close()
    say("%d hard stops in %.0f s (%s): store and audit log whole each time; %d of %d control writes "
        "were lost" % (stops, time.monotonic() - started, ", ".join(
            "%s %d" % p for p in sorted(s.stopped.items())), s.lost, s.written))
    if kind.loses and stops >= 3 and not s.lost:
        return "no write was lost in %d hard stops: this disk keeps data that was not flushed" % stops
    return None
