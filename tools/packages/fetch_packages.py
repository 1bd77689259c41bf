# SPDX-License-Identifier: Apache-2.0
"""Sends the wheels of a set to the keeper, one after the other. Standard input is a socket to the
keeper. This program does not check the wheels: the keeper accepts only files with the hashes that
were decided about.

argv[1] is JSON: {"wheels": [{"size", "url" or "built": number of a file}], "seconds": time limit
for one answer}. The files of wheels that were built from source arrive as descriptors on
standard input first.
"""

import contextlib
import json
import urllib.parse

BLOCK = 1 << 18


def copy(source, to, size, what):
    left = size
    while left:
        block = source.read(min(left, BLOCK))
        if not block:
            fail("%s ended %d bytes before its end" % (what, left))
        to.write(block)
        left -= len(block)


def opened(url, seconds):
    """Opens a URL; after a failure it tries a second time."""
    with contextlib.suppress(OSError):
        return open_url(url, seconds)
    return open_url(url, seconds)


def send(wheel, fds, seconds, to):
    if "built" in wheel:
        with open(fds[wheel["built"]], "rb") as source:
            copy(source, to, wheel["size"], "a wheel that was built")
        return
    file = os.path.basename(urllib.parse.urlsplit(wheel["url"]).path)
    print("Downloading", file, flush=True)
    try:
        with opened(wheel["url"], seconds) as source:
            copy(source, to, wheel["size"], file)
    except BrokenPipeError:  # the keeper has closed its end: it needs no more
        raise
    except OSError as e:
        fail("%s could not be downloaded: %s" % (file, e))


def main(wheels, seconds):
    fds = handed(n) if (n := sum("built" in wheel for wheel in wheels)) else []
    with open(0, "wb", closefd=False) as to:
        for wheel in wheels:
            send(wheel, fds, seconds, to)
    return {"wheels": len(wheels)}


main(**json.loads(sys.argv[1]))
