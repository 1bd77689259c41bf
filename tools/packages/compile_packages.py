# SPDX-License-Identifier: Apache-2.0
"""Compiles what standard input, a socket to the keeper, sends, and sends back what it made, as
keeper/compile.h has it. Nothing of it is run, and there is no network here."""

import os
import py_compile
import socket
import struct
import sys
import warnings

PLACE = "/environment/"  # where scripts will find it
SOURCE, MADE = "/tmp/source.py", "/tmp/made.pyc"


def compiled(path, source):
    """The code, or b"" if this interpreter cannot compile the source."""
    with open(SOURCE, "wb") as f:
        f.write(source)
    try:
        # Never stale, because nothing changes them; and used without checking the source.
        py_compile.compile(SOURCE, MADE, PLACE + path, doraise=True,
                           invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    except Exception:
        return b""
    with open(MADE, "rb") as f:
        return f.read()


def main():
    warnings.simplefilter("ignore")
    tag = sys.implementation.cache_tag.encode()
    made = 0
    with socket.socket(fileno=os.dup(0)) as channel, channel.makefile("rwb") as line:
        line.write(bytes([len(tag)]) + tag)
        line.flush()
        while len(head := line.read(6)) == 6:
            path_len, size = struct.unpack(">HI", head)
            path = os.fsdecode(line.read(path_len))
            code = compiled(path, line.read(size))
            line.write(struct.pack(">I", len(code)) + code)
            line.flush()
            made += bool(code)
    return {"compiled": made}


main()
