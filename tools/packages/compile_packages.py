# SPDX-License-Identifier: Apache-2.0
"""Compiles modules. Standard input is a socket to the keeper, which sends the sources and gets
the code (keeper/compile.h). No module is run, and there is no network."""

import os
import py_compile
import socket
import struct
import sys
import warnings

PLACE = "/environment/"  # the directory in which scripts will find the modules
SOURCE, MADE = "/tmp/source.py", "/tmp/made.pyc"


def compiled(path, source):
    """The compiled code; b"": this interpreter cannot compile the source."""
    with open(SOURCE, "wb") as f:
        f.write(source)
    try:
        # Files of a set never change, so Python need not compare the code with its source.
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
