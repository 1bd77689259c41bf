# SPDX-License-Identifier: Apache-2.0
"""Scripts that reach the outside through the proxy, and what is reported of it, for egress.py and
secrets_suite.py."""

import os
import re
import select
import time

from harness import equal
from supervisor import IN_MODIFY, libc

RAW = r'''
import os, socket, time
def proxy():
    return socket.create_connection(("127.0.0.1", 3128), 60)
def rest(s):
    parts = []
    while True:
        data = s.recv(65536)
        if not data:
            return b"".join(parts)
        parts.append(data)
def ask(data):
    with proxy() as s:
        s.sendall(data)
        return rest(s).decode("latin-1")
def tunnel(where):
    s = proxy()
    s.sendall(b"CONNECT %s HTTP/1.1\r\n\r\n" % where.encode())
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        data = s.recv(1)
        if not data:
            break
        head += data
    return s, head.decode("latin-1")
'''


def run(client, script, status="ok", **arguments):
    o = client.run(script, 120, **arguments)
    equal(o.status, status, "status of %r" % o)
    return o


def wait_log(service, pattern, times=1, seconds=30):
    """Until the service's log, which may still have to be written, has a line with the pattern
    so many times. The first match."""
    fd = libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
    libc.inotify_add_watch(fd, service.log_path.encode(), IN_MODIFY)
    deadline = time.monotonic() + seconds
    try:
        while True:
            found = re.findall(".*%s.*" % pattern, service.log())
            if len(found) >= times:
                return found[0]
            left = deadline - time.monotonic()
            assert left > 0, "not in the log: %s\n%s" % (pattern, service.log()[-3000:])
            if select.select([fd], [], [], left)[0]:
                os.read(fd, 65536)
    finally:
        os.close(fd)


def report(service, outcome, verdict, more=""):
    """The report of one connection of an execution."""
    return wait_log(service, r"egress execution=%s tenant=\S+ verdict=%s .*%s" % (
        outcome.id, verdict, more))
