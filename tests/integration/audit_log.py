# SPDX-License-Identifier: Apache-2.0
"""An audit log in a file of its own, and mcp-python audit about it."""

import json
import os
import shutil
import subprocess
import tempfile
import time

from harness import equal
from waits import until

ENDS_SECONDS = 2


class Log:
    def __init__(self, ctx):
        self.ctx = ctx

    def __enter__(self):
        self.directory = tempfile.mkdtemp(prefix="mcp-audit-")
        os.chmod(self.directory, 0o777)
        self.path = os.path.join(self.directory, "log")
        return self

    def __exit__(self, *exc):
        shutil.rmtree(self.directory)

    def config(self, more=""):
        return "[audit]\nfile = %s\njournal = no\n%s" % (self.path, more)

    def command(self, *arguments):
        return subprocess.run([os.path.join(self.ctx.options.build, "mcp-python"), "audit",
                               *arguments, "--file", self.path], capture_output=True, text=True)

    def verify(self, want=0):
        done = self.command("verify")
        equal(done.returncode, want, done.stdout + done.stderr)
        return done.stdout

    def records(self, *arguments):
        """What is in the file. A thread of the service writes it, and answers wait for beginnings
        alone: so the ends of what has begun get a moment to come."""
        found, late = [], time.monotonic() + ENDS_SECONDS

        def is_settled():
            done = self.command("show", *arguments)
            equal(done.returncode, 0, done.stderr)
            found[:] = [json.loads(line) for line in done.stdout.splitlines()]
            events = [record["event"] for record in found]
            return time.monotonic() > late or \
                events.count("execution-started") <= events.count("execution-ended")
        until("the records", is_settled)
        return found
