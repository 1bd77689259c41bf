# SPDX-License-Identifier: Apache-2.0
"""What the suites of Streamable HTTP share: places to connect to, and scripts that can be seen."""

import contextlib
import os
import re
import tempfile

from harness import Skip, equal
from http_client import Checker, Connection, Session, encode, modern_headers
from mcpclient import LEGACY, MODERN, Client
from supervisor import descendants, read_text
from waits import until_equal

INSECURE = "insecure = yes\n"	# or root serves no TCP without tokens
CONFIG = "[http]\nlisten = 127.0.0.1:0\n" + INSECURE
JSON = ("Content-Type", "application/json")
OVER_HTTP = LEGACY + (MODERN,)
TALK = "import time\nfor i in range(4):\n  print(i, flush=True)\n  time.sleep(.3)"


def wait_ready(service):
    """Until all its sockets are there: it answers once it serves."""
    with Client.connect(service.socket):
        pass


def place_of(service):
    """Where a service serves TCP, as its log says."""
    if not hasattr(service, "http_place"):
        wait_ready(service)
        found = re.search(r"listening http=127\.0\.0\.1:(\d+)", service.log())
        assert found, "no address in the log:\n" + service.log()
        service.http_place = ("127.0.0.1", int(found[1]))
    return service.http_place


def place(ctx):
    if ctx.service is None:
        raise Skip("needs a service of its own, not --socket")
    return place_of(ctx.service)


@contextlib.contextmanager
def http_private(ctx, settings="", unix=False, **private):
    """A private service: (service, place). private: further options of ctx.private()."""
    with tempfile.TemporaryDirectory() as directory:
        if os.getuid() == 0:
            os.chmod(directory, 0o711)
        path = os.path.join(directory, "http.sock")
        args = ("--http-socket", path) if unix else ("--http", "127.0.0.1:0")
        with ctx.private("[http]\n" + ("" if unix else INSECURE) + settings, args,
                         **private) as service:
            wait_ready(service)
            if unix:
                os.chmod(path, 0o666)
            yield service, path if unix else place_of(service)


def seconds(ctx, s):
    return ctx.seconds(s)


def open_to(ctx, timeout=60):
    return Connection(place(ctx), seconds(ctx, timeout))


def post(connection, message, change=None):
    connection.send(headers=modern_headers(message, change), body=encode(message))


def expect(response, status, code=None):
    assert response.status == status, "status %d, not %d: %r" % (response.status, status, response)
    if code is not None:
        equal(response.code, code, "the code")
    checker = Checker(MODERN)
    if response.header("Content-Type") == "application/json" and "error" in response.message:
        checker.error(response.message)
    return response


def healthy(where, timeout=60):
    with Session(where, MODERN, timeout=timeout) as client:
        equal(client.run("print(6*7)")["structuredContent"]["stdout"], "42\n", "afterwards")


def named(seconds_):
    return ("import ctypes, time\nctypes.CDLL(None).prctl(15, b'gone-http', 0, 0, 0)\n"
            "print('started', flush=True)\ntime.sleep(%g)" % seconds_)


def busy_count(service):
    return sum(1 for pid, _ in descendants(service.pid)
               if (read_text("/proc/%d/comm" % pid) or "").strip() == "gone-http")


def wait_busy(service, want):
    """Until so many marked scripts run."""
    until_equal("the number of scripts", lambda: busy_count(service), want)
