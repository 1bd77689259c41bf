# SPDX-License-Identifier: Apache-2.0
"""The operators' socket, and commands of mcp-python that ask it."""

import json
import os
import subprocess

from harness import equal
from mcpclient import connect_as


class Admin:
    def __init__(self, path, timeout=30, uid=None):
        self.socket = connect_as(path, uid, timeout)
        self.socket.setblocking(True)
        self.socket.settimeout(timeout)
        self.file = self.socket.makefile("rw", encoding="utf-8")

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.file.close()
        self.socket.close()

    def read(self):
        return json.loads(self.file.readline())

    def ask(self, what, **more):
        print(json.dumps(dict(more, do=what)), file=self.file, flush=True)
        return self.read()


def command(ctx, *arguments, want=0):
    done = subprocess.run([os.path.join(ctx.options.build, "mcp-python"), *arguments],
                          capture_output=True, text=True, timeout=ctx.seconds(30))
    equal(done.returncode, want, "%s %s" % (arguments, done.stdout + done.stderr))
    return done.stdout
