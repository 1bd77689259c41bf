# SPDX-License-Identifier: Apache-2.0
"""Tables of the machine that no cgroup counts: what one tenant takes of them is bounded, and neither
programs of the host nor another tenant notice."""

import re
import socket
import threading
import time

from guest_tools import (ALICE, BOB, CGROUP, Neighbour, client, drop_in, read, seconds, sh,
                         start_running, test)
from waits import until

ANSWER = bytes(300000)

# All of them with the largest buffers that they get.
PRELUDE = """
import os, socket, time
def bare(*address):
    s = socket.socket()
    for option in socket.SO_SNDBUF, socket.SO_RCVBUF:
        s.setsockopt(socket.SOL_SOCKET, option, 2 << 20)
    return s
def listener():
    s = bare()
    s.bind(("127.0.0.1", 0))
    s.listen(4096)
    return s
def fill(s):
    s.setblocking(False)
    try:
        while True: s.send(bytes(65536))
    except (BlockingIOError, ConnectionError): pass
def connect(s):
    c = bare()
    c.settimeout(1)
    c.connect(s.getsockname())
    return c
"""
ATTACKS = {
    "connections full of data": """
for _ in range(2):
    if os.fork() == 0:
        s, held = listener(), []
        for _ in range(400):
            held += [connect(s), s.accept()[0]]
            for one in held[-2:]: fill(one)
        time.sleep(60)
time.sleep(60)
""",
    "connections that nobody has accepted": """
for _ in range(8):
    if os.fork() == 0:
        listeners, held = [], []
        while True:
            try:
                listeners.append(listener())
                while True:
                    held.append(connect(listeners[-1]))
                    fill(held[-1])
            except OSError: time.sleep(0.01)
time.sleep(60)
""",
    "orphans": """
for _ in range(8):
    if os.fork() == 0:
        listeners = []
        while True:
            try:
                listeners.append(listener())
                while True:
                    c = connect(listeners[-1])
                    fill(c)
                    c.close()
            except OSError: time.sleep(0.01)
time.sleep(60)
""",
}


class HostsOwn(threading.Thread):
    """A server and a client of the host's, on its own loopback device."""

    def __init__(self):
        super().__init__()
        self.over, self.times, self.bad = threading.Event(), [], []
        self.listener = socket.create_server(("127.0.0.1", 0))

    def serve(self):
        while not self.over.is_set():
            one, _ = self.listener.accept()
            with one:
                one.sendall(ANSWER)

    def exchange(self):
        started, got = time.monotonic(), 0
        with socket.create_connection(self.listener.getsockname(), timeout=seconds(20)) as s:
            while data := s.recv(65536):
                got += len(data)
        assert got == len(ANSWER), "%d of %d bytes" % (got, len(ANSWER))
        self.times.append(time.monotonic() - started)

    def run(self):
        server = threading.Thread(target=self.serve, daemon=True)
        server.start()
        while not self.over.is_set() or len(self.times) < 3:
            try:
                self.exchange()
            except (OSError, AssertionError) as e:
                self.bad.append(e)
                if len(self.bad) > 3:
                    return

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exc):
        self.over.set()
        self.join()
        if exc[0] is None:
            assert not self.bad, "the host's own connections: %r" % self.bad
            assert max(self.times) < seconds(5), "one of them took %.1f s" % max(self.times)


def sockstat():
    """Orphans, and bytes of TCP and UDP, of all network namespaces."""
    text = read("/proc/net/sockstat")
    return (int(re.search(r"TCP: .* orphan (\d+)", text)[1]),
            sum(int(m) for m in re.findall(r"(?:TCP|UDP): .* mem (\d+)", text)) * 4096)


class Peaks(threading.Thread):
    def __init__(self):
        super().__init__(daemon=True)
        self.over, self.orphans, self.memory = threading.Event(), 0, 0

    def run(self):
        while not self.over.wait(0.02):
            orphans, memory = sockstat()
            self.orphans, self.memory = max(self.orphans, orphans), max(self.memory, memory)


def complaints():
    return len(re.findall(r"TCP: (?:out of memory|too many orphaned)", sh("dmesg")))


def sockets_end(name):
    orphans_max = int(read("/proc/sys/net/ipv4/tcp_max_orphans"))
    memory_max = int(read("/proc/sys/net/ipv4/tcp_mem").split()[2]) * 4096
    before, peaks = complaints(), Peaks()
    peaks.start()
    with client() as c, Neighbour(), HostsOwn():
        o = c.run(PRELUDE + ATTACKS[name], seconds(120), timeout_seconds=30)
    peaks.over.set()
    assert o.status == "memory_limit" and "sockets" in o.error["message"], repr(o)
    assert complaints() == before, "the kernel had no memory for TCP, or too many orphans"
    assert peaks.orphans < orphans_max // 2 and peaks.memory < memory_max, vars(peaks)
    return "%s: %d of %d orphans, %d of %d MiB" % (name, peaks.orphans, orphans_max,
                                                   peaks.memory >> 20, memory_max >> 20)


@test
def sockets_of_one_script_leave_room_for_the_host():
    return "; ".join(sockets_end(name) for name in ATTACKS)


# Within its own limit of processes; another of the tenant's scripts may have taken what is left.
THREADS = """
import threading, time
threading.stack_size(65536)
try:
    for _ in range(400): threading.Thread(target=time.sleep, args=(300,), daemon=True).start()
except RuntimeError: pass
time.sleep(300)
"""


@test
def threads_of_one_tenant_leave_room_for_others():
    with drop_in("[Service]\nTasksMax=2000\n"), client(BOB) as other, client(ALICE) as c:
        assert other.run("print(1)", seconds(60)).status == "ok"
        for _ in range(6):
            start_running(c, THREADS, pids=450)
        tenant = CGROUP + "/tenants/%d/" % ALICE
        most = int(read(tenant + "pids.max"))
        assert most == (2000 - 256) // 2, most
        until("the tenant has all that it may", lambda: int(read(tenant + "pids.current")) >= most)
        for _ in range(8):
            o = other.run("import subprocess\nsubprocess.run(['true'], check=True)\nprint(1)", seconds(60))
            assert (o.status, o.stdout) == ("ok", "1\n"), repr(o)
        return "%d tasks of one tenant" % int(read(tenant + "pids.current"))
