# SPDX-License-Identifier: Apache-2.0
"""mcp-python on a terminal of its own: what is typed there, and what is seen (log: as it came)."""

import codecs
import fcntl
import os
import pty
import re
import subprocess
import termios
from waits import ready, until


def client_program(ctx):
    return os.path.join(ctx.options.build, "mcp-python")


def take_terminal():
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Terminal:
    """typed: stands in the terminal's input before the program starts. term: the kind that it
    is said to be. more: further variables of the environment."""

    def __init__(self, ctx, *arguments, typed="", term="dumb", more=(), **popen):
        self.ctx, self.seen, self.log, self.ended = ctx, "", b"", False
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.master, slave = pty.openpty()
        self.type(typed)
        streams = {"stdin": slave, "stdout": slave, "stderr": slave, **popen}
        self.process = subprocess.Popen(
            [client_program(ctx), *arguments], **streams, start_new_session=True,
            close_fds=True, preexec_fn=take_terminal if streams["stdin"] == slave else None,
            # libedit keeps the strings that keys are bound to.
            env={**os.environ, "TERM": term, "HOME": "/nonexistent", "XDG_STATE_HOME": "",
                 "ASAN_OPTIONS": "detect_leaks=0", **dict(more)})
        os.close(slave)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.master)

    def read(self, left):
        """Waits for more output."""
        if not ready([self.master], left):
            return
        try:
            got = os.read(self.master, 65536)
        except OSError:
            got = b""
        self.log += got
        self.seen += self.decoder.decode(got).replace("\r", "")
        self.ended = not got

    def expect(self, pattern):
        """Reads until the text has arrived; earlier output is dropped."""
        def find():
            found = re.search(pattern, self.seen, re.S)
            assert found or not self.ended, "ended without %r: %r" % (pattern, self.log)
            return found
        found = until(lambda: "%r in %r" % (pattern, self.log), find, wait=self.read)
        self.seen = self.seen[found.end():]
        return found

    def type(self, text):
        os.write(self.master, text.encode())

    def end(self):
        """Its exit code, after all that it wrote was read."""
        until(lambda: "its end, after %r" % self.log, lambda: self.ended, wait=self.read)
        return self.process.wait(self.ctx.seconds(60))
