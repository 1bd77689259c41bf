"""What the supervisor hands to a program: descriptors of files that other programs wrote, by
standard input, which is a socket. In front of the programs that take some."""

import hashlib
import os
import socket
import sys

BUILT = "/tmp/built"  # wheels that were built from source


def handed(n):
    with socket.socket(fileno=os.dup(0)) as channel:
        return socket.recv_fds(channel, 1, n)[1]


def digest_of(file, kind="sha256"):
    digest = hashlib.new(kind)
    while block := file.read(1 << 20):
        digest.update(block)
    return "%s:%s" % (kind, digest.hexdigest())


def fail(*words):
    print("ERROR:", *words)
    sys.exit(1)


def take(fd, path, expected):
    """Copies a file that was handed over; it has to have this hash."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(fd, "rb") as source, open(path, "w+b") as to:
        while block := source.read(1 << 20):
            to.write(block)
        to.seek(0)
        if digest_of(to) != expected:
            fail("%s is not what it was" % os.path.basename(path))


def take_built(built, fds):
    for wheel, fd in zip(built, fds, strict=True):
        take(fd, os.path.join(BUILT, wheel["file"]), wheel["hash"])
