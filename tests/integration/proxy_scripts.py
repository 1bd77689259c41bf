# SPDX-License-Identifier: Apache-2.0
"""Scripts that reach the outside through the proxy, and what is reported of it, for egress.py and
secrets_suite.py."""

import re

from harness import equal

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


def wait_log(service, pattern, times=1):
    """Until the service's log, which may still have to be written, has a line with the pattern
    so many times. The first match."""
    return service.wait_log("it has not logged %s" % pattern, lambda log: len(
        found := re.findall(".*%s.*" % pattern, log)) >= times and found[0])


def report(service, outcome, verdict, more=""):
    """The report of one connection of an execution."""
    return wait_log(service, r"connection(?:-refused)? tenant=\S+ execution=%s verdict=%s .*%s" % (
        outcome.id, verdict, more))
