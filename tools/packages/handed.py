# SPDX-License-Identifier: Apache-2.0
"""The functions that the programs of an installation share: they receive descriptors of files
over standard input, a socket; open URLs of an index; and check some arguments again."""

import hashlib
import os
import re
import socket
import sys
import urllib.request

BUILT = "/tmp/built"  # wheels that were built from source
PROXY = "http://127.0.0.1:3128"
for variable in ("NO_PROXY", "no_proxy"):  # these would exclude an index on loopback
    os.environ.pop(variable, None)


def handed(n):
    with socket.socket(fileno=os.dup(0)) as channel:
        return socket.recv_fds(channel, 1, n)[1]


def one_line(text):
    """Checks a requirement again, although the supervisor has checked it: pip would read a
    second line as options."""
    if not re.fullmatch("[ -#%-~]+", text):
        fail("a requirement is not one line of printable characters")
    return text


def open_url(url, seconds):
    proxies = urllib.request.ProxyHandler({"http": PROXY, "https": PROXY})
    return urllib.request.build_opener(proxies).open(url, timeout=seconds)


def digest_of(file, kind="sha256"):
    digest = hashlib.new(kind)
    while block := file.read(1 << 20):
        digest.update(block)
    return "%s:%s" % (kind, digest.hexdigest())


def fail(*words):
    print("ERROR:", *words)
    sys.exit(1)


def take(fd, path, expected):
    """Copies the file of a passed descriptor. It must have this hash."""
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
