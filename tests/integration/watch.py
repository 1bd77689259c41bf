# SPDX-License-Identifier: Apache-2.0
"""inotify: what happens in files, as it happens."""

import ctypes
import os
import struct

from waits import IN_CREATE, IN_MODIFY, libc

IN_ACCESS, IN_OPEN, IN_IGNORED = 0x1, 0x20, 0x8000


class Watch:
    """Of the files that were added."""

    def __init__(self):
        self.fd = libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        if self.fd < 0:
            raise OSError(ctypes.get_errno(), "inotify")
        self.what = {}

    def add(self, path, kind, mask=IN_MODIFY):
        wd = libc.inotify_add_watch(self.fd, path.encode(), mask)
        if wd >= 0:     # else it went as fast as it came
            self.what[wd] = (kind, path)

    def read(self):
        """The kinds of what has happened, in order."""
        try:
            data = os.read(self.fd, 1 << 20)
        except BlockingIOError:
            return
        while data:
            wd, mask, _, length = struct.unpack_from("iIII", data)
            name = data[16:16 + length].rstrip(b"\0").decode()
            data = data[16 + length:]
            if wd not in self.what or mask & IN_IGNORED:
                continue
            kind, path = self.what[wd]
            path = os.path.join(path, name)
            if mask & IN_CREATE and os.path.isdir(path):
                self.add(path, "file", IN_CREATE)
            yield kind

    def close(self):
        os.close(self.fd)
