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


def framed(shape="N\r\nB\r\n0\r\n\r\n", headers="Transfer-Encoding: chunked\r\n", change=lambda data: data):
    """What makes a request of a path, the headers and a body. In shape and headers, N is the body's length as a
    chunk has it, L the header of a length, # that length, B the body."""
    def make(path, head, body):
        start = "POST %s HTTP/1.1\r\n" % path + "".join("%s: %s\r\n" % h for h in head)
        text = (headers + "\r\n" + shape).replace("L", "Content-Length").replace("#", str(len(body))).replace(
            "N", "%x" % len(body)).replace("B", body.decode())
        return change((start + text).encode())
    return make


# Requests that a server and a proxy in front of it could read differently.
AMBIGUOUS = {
    **{"the chunk size %r" % size: framed("%s\r\nB\r\n0\r\n\r\n" % size)
       for size in (" N", "+N", "-N", "0xN", "N ", "N\t", "N;ext", "N;a=b", "", "N\r", "000000000000000N")},
    "a chunk size that ends with LF": framed("N\nB\r\n0\r\n\r\n"),
    "a chunk that ends with LF": framed("N\r\nB\n0\r\n\r\n"),
    "a chunk that does not end": framed("N\r\nB0\r\n\r\n"),
    "a longer chunk than its size": framed("N\r\nBx\r\n0\r\n\r\n"),
    "an end with LF": framed("N\r\nB\r\n0\r\n\n"),
    "a trailer": framed("N\r\nB\r\n0\r\nX-User: root\r\n\r\n"),
    "a folded header": framed("B", "X-A: b\r\n c\r\nL: #\r\n"),
    "a header folded with a tab": framed("B", "X-A: b\r\n\tc\r\nL: #\r\n"),
    "a folded length": framed("B", "L:\r\n #\r\n"),
    "a first header that is folded": framed("B", "L: #\r\n", lambda data: data.replace(b"\r\n", b"\r\n ", 1)),
    "lengths that agree": framed("B", "L: #\r\nL: #\r\n"),
    "lengths in one header": framed("B", "L: #, #\r\n"),
    "length and chunks": framed(headers="L: #\r\nTransfer-Encoding: chunked\r\n"),
    "chunks and length": framed(headers="Transfer-Encoding: chunked\r\nL: #\r\n"),
    "chunks twice": framed(headers="Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
    "chunks after a tab": framed(headers="Transfer-Encoding:\tchunked\r\n"),
    "chunks after many blanks": framed(headers="Transfer-Encoding:%schunked\r\n" % (" " * 99)),
    "LF in a head": framed("B", "L: #\r\n", lambda data: data.replace(b"\r\n", b"\n")),
    "one LF in a head": framed("B", "L: #\n"),
    "CR in a header": framed("B", "X-A: b\rc\r\nL: #\r\n"),
    "two CR": framed("B", "L: #\r\r\n"),
}
# And some that are plain.
FIT = (framed(), framed("000N\r\nB\r\n000\r\n\r\n"), framed("B", "L: #\r\n"), framed("B", "L:  # \r\n"))


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
