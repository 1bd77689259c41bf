# SPDX-License-Identifier: Apache-2.0
"""Messages of Jupyter on a WebSocket: JSON text, or the binary form of version 1."""

import datetime
import json
import struct
import uuid

VERSION_1 = "v1.kernel.websocket.jupyter.org"
PROTOCOL = "5.3"
PARTS_MAX = 64
PARTS = ("header", "parent_header", "metadata", "content")
SESSION = str(uuid.uuid4())


def message(kind, content, parent=None):
    parent = (parent or {}).get("header", {})
    return {"header": {"msg_id": str(uuid.uuid4()), "msg_type": kind, "username": "python",
                       "session": SESSION, "version": PROTOCOL,
                       "date": datetime.datetime.now(datetime.timezone.utc).isoformat()},
            "parent_header": parent, "metadata": {}, "content": content}


def encode(channel, sent, version_1):
    if not version_1:
        header = sent["header"]
        return json.dumps({"channel": channel, "msg_id": header["msg_id"],
                           "msg_type": header["msg_type"], "buffers": [], **sent})
    parts = [channel.encode()] + [json.dumps(sent[p]).encode() for p in PARTS]
    offsets = [8 * (len(parts) + 2)]
    for part in parts:
        offsets.append(offsets[-1] + len(part))
    return struct.pack("<%dQ" % (len(offsets) + 1), len(offsets), *offsets) + b"".join(parts)


def decode(data):
    """(channel, message). ValueError, KeyError, TypeError, RecursionError: not a message."""
    if isinstance(data, str):
        received = json.loads(data)
        if not isinstance(received, dict):
            raise ValueError("not an object")
        channel = received.get("channel") or "shell"
    else:
        if len(data) < 8:
            raise ValueError("too short")
        (n,) = struct.unpack_from("<Q", data)
        if not len(PARTS) + 2 <= n <= PARTS_MAX or len(data) < 8 * (n + 1):
            raise ValueError("%d offsets" % n)
        offsets = struct.unpack_from("<%dQ" % n, data, 8)
        if offsets[0] < 8 * (n + 1) or offsets[-1] > len(data) or list(offsets) != sorted(offsets):
            raise ValueError("offsets outside of the message")
        parts = [data[a:b] for a, b in zip(offsets, offsets[1:])]
        channel = parts[0].decode()
        received = {name: json.loads(part) for name, part in zip(PARTS, parts[1:])}
    if channel not in ("shell", "control", "stdin"):
        raise ValueError("channel %.20r" % channel)
    for part in ("header", "content"):
        if not isinstance(received.get(part), dict):
            raise ValueError("%s is not an object" % part)
    header, parent = received["header"], received.get("parent_header") or {}
    if not isinstance(parent, dict):
        raise ValueError("parent_header is not an object")
    if not isinstance(header.get("msg_type"), str) or not isinstance(header.get("msg_id"), str):
        raise ValueError("header without msg_type and msg_id")
    return channel, received
