# SPDX-License-Identifier: Apache-2.0
"""What suites that talk to a service with tokens share: a directory with a token file, a service
that reads it, and a client that has a token."""

import contextlib
import os
import pwd
import re
import subprocess
import tempfile

from harness import equal
from http_client import Session
from mcpclient import LEGACY

FIRST_SUBUID = 1879048192	# who the service is where the user mcp-python is not


def service_gid():
    if os.getuid():
        return os.getgid()
    try:
        return pwd.getpwnam("mcp-python").pw_gid
    except KeyError:
        return FIRST_SUBUID


class Files:
    """A directory that the service can read from, with a token file in it."""

    def __init__(self, build, directory):
        self.program = os.path.join(build, "mcp-python")
        self.dir, self.tokens = directory, os.path.join(directory, "tokens")
        self.http = os.path.join(directory, "http.sock")
        self.add("nobody-in-particular")
        # From now on the command keeps it so.
        os.chown(self.tokens, -1, service_gid())
        os.chmod(self.tokens, 0o640)

    def command(self, *args, status=0):
        p = subprocess.run([self.program, "token", *args, "--file", self.tokens],
                           capture_output=True, text=True)
        equal(p.returncode, status, "%s: %s: status" % (args, p.stderr))
        return p.stdout

    def add(self, *args):
        token = self.command("add", *args).strip()
        assert re.fullmatch(r"mcp_[0-9a-z]{10}_[A-Za-z0-9_-]{43}", token), token
        return token

    def write(self, name, text):
        path = os.path.join(self.dir, name)
        with open(path + ".new", "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(path + ".new", 0o644)
        os.rename(path + ".new", path)
        return path


@contextlib.contextmanager
def files_of(ctx):
    with tempfile.TemporaryDirectory() as directory:
        if os.getuid() == 0:
            os.chmod(directory, 0o711)
        yield Files(ctx.options.build, directory)


@contextlib.contextmanager
def serving(ctx, settings, files, listen="127.0.0.1:0", http="", **private):
    """(service, its place on TCP); files.http is served too. http: more of its section."""
    config = "[http]\nlisten = %s\nsocket = %s\nallowed_hosts = py.example.org\n%s%s[auth]\n%s" % (
        listen, files.http, "" if "_file = " in settings else "insecure = yes\n", http, settings)
    with ctx.private(config, **private) as service:
        with ctx.client(path=service.socket):	# answered when all places are served
            pass
        if os.getuid() == 0:
            os.chmod(files.http, 0o666)
        port = re.search(r"listening http=[0-9.]+:(\d+)", service.log())
        yield service, ("127.0.0.1", int(port[1]))


@contextlib.contextmanager
def with_tokens(ctx, http="", more="", **private):
    """more: sections of the configuration. private: options of ctx.private()."""
    with files_of(ctx) as files:
        with serving(ctx, "token_file = %s\n%s" % (files.tokens, more), files, http=http,
                     **private) as (service, place):
            yield files, service, place


class Client(Session):
    """Says the same extra headers with every request."""

    def __init__(self, place, token=None, revision=LEGACY[-1], also=None, **more):
        self.also = dict(also or {})
        if token:
            self.also["Authorization"] = "Bearer " + token
        super().__init__(place, revision, **more)

    def headers(self, message, change=None):
        return super().headers(message, {**self.also, **(change or {})})

    def end(self):
        with self.fresh() as connection:
            return connection.ask("DELETE", headers=[("Mcp-Session-Id", self.id),
                                                     *self.also.items()])
