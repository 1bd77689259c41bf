# SPDX-License-Identifier: Apache-2.0
"""Frames of the worker's protocol, as a script can write them to its own control socket."""

from harness import proto_version

# The first execution of a service has the number 1, and so on.
FRAMES = """
import os, socket, struct, threading
def pack(x):
    if x is False:
        return b"\\xc2"
    if isinstance(x, int):
        return struct.pack(">BQ", 0xcf, x)
    if isinstance(x, bytes):
        return struct.pack(">BI", 0xdb, len(x)) + x
    return struct.pack(">BI", 0xdf, len(x)) + b"".join(pack(k.encode()) + pack(v)
                                                       for k, v in x.items())
control = socket.socket(fileno=os.dup(63))
def frame(kind, length=None, **fields):
    body = pack(fields)
    return struct.pack(">BBI", %d, kind, length or len(body)) + body
""" % proto_version()
HANG = "\nthreading.Event().wait()\n"
