# SPDX-License-Identifier: Apache-2.0
"""One tenant takes all that it can get of one row of policy/finite_table.json after the other, and another
tenant's calls are measured meanwhile: each kind of call may take three times what it takes alone.
The rows that are filled elsewhere are in tests/check-finite.

Two kinds are no calls of the service, and show how much longer the processor alone makes everything: an
echo by a process beside the supervisor, and a plain Python in a cgroup of the same tenant."""

import contextlib
import itertools
import json
import multiprocessing
import os
import re
import select
import socket
import subprocess
import threading
import time

import guest_tools
from admin import Admin
from guest_packages import configured, packages_config
from guest_tools import ALICE, BOB, CGROUP, SOCKET, UNIT, client, read, seconds, sh, test
from http_client import Connection, call as http_call, encode, modern, modern_headers
from http_client import Session as HttpSession
from mcpclient import LEGACY, MODERN, Client, Closed, ProtocolViolation
from package_index import Index
from waits import Timeout, until

CAROL, DAVE = 4003, 4004	# their scripts need an approval
ERIN = 4005		# takes what is left to one who has no session over HTTP yet
CLIENT = "/sys/fs/cgroup/taking-client"	# beside systemd's slices, as another user's is
ADMIN = "/run/mcp-pythond/admin.sock"
HTTP = "/run/mcp-pythond/shares-http.sock"
ROUND_S = 100		# so many of --soak are one call of each kind in a round
ROUNDS = 3		# in each the row is filled anew, and one of them has to be good
TIMES = 3
OFTEN = 5		# times in a round, what takes some ms
SLOWEST = 20		# one of so many counts as late: the median of these is compared
TABLE = 64
PACKAGES = 24
CONFIG = """[service]
sessions_max = %d
sessions_per_tenant = %d
[pool]
workers_max = 48
tenant_running_max = 48
warm_max = 16
[http]
socket = %s
links = http://localhost
[policy]
install_package = allow
[tenant uid:%d]
policy.run_script = approve
[tenant uid:%d]
policy.run_script = approve
""" % (TABLE, TABLE, HTTP, CAROL, DAVE)

SLEEPS = "import threading; threading.Event().wait()"
BUSY = "while True: pass"
THREADS = """import threading
ever = threading.Event()
try:
    while True:
        threading.Thread(target=ever.wait, daemon=True).start()
except RuntimeError:
    ever.wait()
"""
MEMORY = """held = []
while True: held.append(b'x' * (1 << 20))
"""
SOCKETS = """import socket, threading
held = []
try:
    while True:
        for s in socket.socketpair():
            s.setblocking(False)
            held.append(s)
            try:
                while True: s.send(b'x' * 65536)
            except BlockingIOError: pass
except OSError:
    threading.Event().wait()
"""
LONG = "for _ in range(16): print('x' * 60000)"
NEWS = "for n in range(50): print('x' * 2000, flush=True)"
FILE = "open('left.txt', 'w').write('x' * (1 << 20))\nNone"
LARGE = "open('large.bin', 'wb').write(%d .to_bytes(8, 'big') * (1 << 20))\nNone"


# ---- who takes ----

def connect(stack, uid=ALICE, revision=LEGACY[-1]):
    """A raw connection; None: it was not admitted."""
    c = stack.enter_context(Client.connect(SOCKET, None, uid, seconds(60)))
    c.send({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}})
    if "result" not in c.recv():
        return None
    c.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    return c


def tool(name, **arguments):
    return {"name": name, "arguments": arguments}


def script(text, **arguments):
    return tool("run_script", script=text, **arguments)


def send(c, n, params, method="tools/call"):
    c.send({"jsonrpc": "2.0", "id": n, "method": method, "params": params})


def for_ever():
    threading.Event().wait()


def take_connections(stack, ready):
    taken = sum(connect(stack) is not None for _ in range(TABLE))
    assert 0 < taken < TABLE, taken
    ready.set()
    for_ever()


def all_at_once(text, **arguments):
    def take(stack, ready):
        c = connect(stack)
        for n in range(TABLE):
            send(c, n + 1, script(text, timeout_seconds=600, **arguments))
        c.flush(seconds(60))
        ready.set()
        for_ever()
    return take


def over_and_over(params_of, uid=ALICE, fill=16, capabilities=None):
    """Always several calls on the way, for ever. capabilities: of a modern client."""
    def take(stack, ready):
        c = connect(stack, uid)
        for n in itertools.count(1):
            params = params_of(n)
            if capabilities is not None:
                params["_meta"] = {"io.modelcontextprotocol/protocolVersion": MODERN,
                                   "io.modelcontextprotocol/clientCapabilities": capabilities}
            send(c, n, params)
            if n > 8:
                message = c.recv()
                while "id" not in message:
                    message = c.recv()
                assert "error" not in message, message
            if n == fill + 8:
                ready.set()
    return take


def take_sessions(stack, ready):
    c = stack.enter_context(client(ALICE))
    for _ in range(TABLE):
        id = c.request("tools/call", tool("run_repl", code="x = 1"))
        if c.outcome(id, seconds(120)).status != "ok":
            break
    ready.set()
    for_ever()


class Deaf:
    """A client that never reads after its greeting, and sends as much as is taken."""

    def __init__(self, open_it, next_bytes):
        self.open, self.next = open_it, next_bytes
        self.closed = 0
        self.begin()

    def begin(self):
        self.stack = contextlib.ExitStack()
        self.fd = self.open(self.stack)
        os.set_blocking(self.fd, False)
        self.rest = b""

    def fill(self):
        """Until the service takes no more, or has closed the connection."""
        try:
            while True:
                self.rest = self.rest or self.next()
                if not self.rest:
                    return
                self.rest = self.rest[os.write(self.fd, self.rest):]
        except BlockingIOError:
            return
        except (BrokenPipeError, ConnectionResetError):
            self.closed += 1
            self.stack.close()
            self.begin()


def hold_deaf(ready, deaf):
    """Filled when the service reads from none of them any more, or has closed one for it."""
    poll = select.poll()
    while True:
        for one in deaf:
            one.fill()
            poll.register(one.fd, select.POLLOUT if one.rest else 0)
        if not poll.poll(1000) or any(one.closed for one in deaf):
            ready.set()
            time.sleep(0.1)
        for one in deaf:
            poll.unregister(one.fd)


def never_read(stack, ready):
    """Answers of a megabyte each that nobody reads."""
    def next_bytes(numbers=itertools.count(1)):
        return encode({"jsonrpc": "2.0", "id": next(numbers), "method": "tools/call",
                       "params": script(LONG)}) + b"\n"
    hold_deaf(ready, [Deaf(lambda stack: connect(stack).wfd, next_bytes) for _ in range(4)])


# ---- over HTTP ----

def http_post(connection, params):
    message = modern("tools/call", params)
    connection.send(headers=modern_headers(message), body=encode(message))


def take_http_connections(stack, ready):
    """Half of them have asked something, and half have not."""
    for n in range(4 * TABLE):
        with contextlib.suppress(Exception):
            c = stack.enter_context(Connection(HTTP, uid=ALICE))
            if n % 2:
                http_post(c, script("1"))
                c.read()
    ready.set()
    for_ever()


def never_read_http(stack, ready):
    for n in range(TABLE):
        with contextlib.suppress(Exception):
            http_post(stack.enter_context(Connection(HTTP, uid=ALICE)), script(LONG))
    ready.set()
    for_ever()


def take_http_sessions(stack, ready):
    for _ in range(10000):
        try:
            stack.enter_context(HttpSession(HTTP, uid=ALICE)).connection.close()
        except (AssertionError, ProtocolViolation):
            break
    ready.set()
    for_ever()


def take_http_streams(stack, ready):
    """Streams of news, which are kept for a client that comes back."""
    c = stack.enter_context(HttpSession(HTTP, LEGACY[-1], ERIN, seconds(60)))
    for n in itertools.count(1):
        c.ask("tools/call", http_call(NEWS, token=n, stream=True))
        if n == 16:
            ready.set()


def subscribe(stack, ready):
    """Again and again, on all connections that there are."""
    cs = [c for c in (connect(stack) for _ in range(TABLE)) if c]
    for n in itertools.count(1):
        for c in cs:
            send(c, n, {"uri": "python://results/%d" % n}, "resources/subscribe")
        for c in cs:
            c.recv()
        if n == 300:
            ready.set()


def take_operators(stack, ready):
    """As root; the strangers' part of the table is in tests/integration/shares.py."""
    for _ in range(60):
        stack.enter_context(Admin(ADMIN, seconds(60))).ask("list")
    ready.set()
    for_ever()


ROWS = (
    ("connections of unix sockets", take_connections),
    ("bytes that unix sockets have not read, and of their calls", never_read),
    ("HTTP connections", take_http_connections),
    ("bytes that HTTP clients have not read, and of their calls", never_read_http),
    ("HTTP sessions", take_http_sessions),
    ("events of HTTP streams, for resuming", take_http_streams),
    ("subscriptions", subscribe),
    ("workers", all_at_once(SLEEPS)),
    ("workers that are kept warm", over_and_over(lambda n: script("%d" % n))),
    ("sessions of run_repl", take_sessions),
    ("processes and threads", all_at_once(THREADS, pids=512)),
    ("memory of workers", over_and_over(lambda n: script(MEMORY))),
    ("processor time", all_at_once(BUSY, cpu_seconds=600)),
    ("sockets, and memory of the network's protocols", all_at_once(SOCKETS)),
    ("kept results, in memory", over_and_over(lambda n: script(FILE), fill=64)),
    ("files on disk", over_and_over(lambda n: script(LARGE % n))),
    ("installed packages", over_and_over(lambda n: tool("install_package", packages=["p%d" % (n % PACKAGES)]))),
    ("background jobs", over_and_over(lambda n: script("%d" % n, background=True), fill=64)),
    ("tasks", over_and_over(lambda n: script("%d" % n), fill=64, capabilities={
        "extensions": {"io.modelcontextprotocol/tasks": {}}})),
    ("calls with a key", over_and_over(lambda n: script("%d" % n, idempotency_key="key-%d" % n), fill=64)),
    ("calls that wait for a person, and their requests", over_and_over(
        lambda n: script("'%s'; %d" % ("x" * 60000, n)), CAROL, 64, {"elicitation": {"form": {}}})),
    ("requests for approval", over_and_over(lambda n: script("%d" % n), CAROL, fill=64)),
    ("bytes of the audit log", over_and_over(lambda n: script("'%s'; %d" % ("x" * 60000, n)), fill=64)),
    ("connections of operators", take_operators),
    ("executions that the service makes itself", over_and_over(
        lambda n: tool("validate_script", script="import json\n%d" % n))),
)


def enter(group):
    with open(group + "/cgroup.procs", "w") as f:
        f.write(str(os.getpid()))


def run_taker(take, ready):
    enter(CLIENT)
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(Closed, OSError):
            take(stack, ready)
        ready.set()
        for_ever()


@contextlib.contextmanager
def taken(take):
    os.makedirs(CLIENT, exist_ok=True)
    with open(CLIENT + "/cpu.weight", "w") as f:
        f.write("1")	# a client elsewhere costs this machine no processor
    ready = multiprocessing.Event()
    taker = multiprocessing.Process(target=run_taker, args=(take, ready), daemon=True)
    taker.start()
    try:
        until("it has taken what it can get", lambda: ready.is_set() or not taker.is_alive(), seconds(240))
        assert taker.is_alive(), "it has failed"
        yield
        assert taker.is_alive(), "it has failed"
    finally:
        taker.kill()
        taker.join()
        os.rmdir(CLIENT)


# ---- who is measured ----

class Echo:
    """A process in the supervisor's cgroup that returns what it gets."""

    def __init__(self, stack):
        self.line, theirs = socket.socketpair()
        self.process = multiprocessing.Process(target=self.serve, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()
        stack.callback(self.process.kill)

    def serve(self, line):
        self.line.close()
        enter(CGROUP + "/supervisor")
        while data := line.recv(64):
            line.send(data)

    def ask(self):
        self.line.send(b"?")
        return self.line.recv(64) == b"?"


def run_program():
    """A Python that does nothing, with a cgroup of its own, as a worker of the tenant has one."""
    group = CGROUP + "/tenants/%d/program" % BOB
    os.mkdir(group)
    try:
        return subprocess.run(["/usr/bin/python3", "-I", "-S", "-c", "pass"], preexec_fn=lambda: enter(group),
                              check=False).returncode == 0
    finally:
        until("it is empty", lambda: not read(group + "/cgroup.procs"), seconds(10))
        os.rmdir(group)


class Measured:
    """The other tenant, with each kind of call."""

    def __init__(self, stack):
        self.c = stack.enter_context(client(BOB, 120))
        self.asker = stack.enter_context(client(DAVE, 120))
        self.admin = stack.enter_context(Admin(ADMIN, seconds(120)))
        self.session = self.call("run_repl", code="n = 40")["session"]
        self.echo_of = Echo(stack)
        self.n = 0
        self.uri = self.url = None

    def call(self, name, **arguments):
        return self.c.ask("tools/call", tool(name, **arguments), seconds(60))["structuredContent"]

    def echo(self):
        return self.echo_of.ask()

    def program(self):
        return run_program()

    def ping(self):
        return self.c.ask("ping", timeout=seconds(60)) == {}

    def tools_list(self):
        return len(self.c.ask("tools/list", timeout=seconds(60))["tools"]) > 3

    def script(self):
        return self.c.run("print(%d)" % self.n, seconds(60)).stdout == "%d\n" % self.n

    def cell(self):
        o = self.call("run_repl", code="n + %d" % self.n, session=self.session)
        return o["result"]["repr"] == str(40 + self.n)

    def new_session(self):
        return self.call("run_repl", code="1 + %d" % self.n, close=True)["result"]["repr"] == str(1 + self.n)

    def file_out(self):
        o = self.c.run("open('a.txt', 'w').write('%d')\nNone" % self.n, seconds(60))
        self.uri, self.url = (o.structured["files"][0][key] for key in ("uri", "http_url"))
        return o.status == "ok"

    def read(self):
        return self.c.ask("resources/read", {"uri": self.uri}, seconds(60))["contents"][0]["text"] == str(self.n)

    def file_in(self):
        return self.c.run("print(open('b.txt').read())", seconds(60), files=[
            {"path": "b.txt", "uri": self.uri}]).stdout == "%d\n" % self.n

    def over_http(self, verb, url, body=b""):
        with Connection(HTTP, seconds(60), BOB) as c:
            c.send(verb, url.removeprefix("http://localhost"), [("Host", "localhost")], body)
            return c.read()

    def download(self):
        return self.over_http("GET", self.url).body == b"%d" % self.n

    def upload(self):
        link = self.c.ask("resources/read", {"uri": "mcp-python://upload/c"}, seconds(60))["contents"][0]["text"]
        return self.over_http("PUT", json.loads(link)["http_url"], bytes(100000)).status == 201

    def install(self):
        return self.call("install_package", packages=["small"])["status"] == "ok"

    def job(self):
        o = self.c.run("print(%d)" % self.n, seconds(60), background=True)
        job = o.structured["job"]
        return self.call("job", id=job, action="wait", wait_seconds=60)["state"] == "done"

    def inspect(self):
        return self.call("check_environment") != {}

    def validate(self):
        return self.call("validate_script", script="import json\nprint(%d)" % self.n) != {}

    def approval(self):
        text = "print(%d)" % self.n
        asked = self.asker.ask("tools/call", script(text), seconds(60))
        self.admin.ask("approve", id=re.search(r"\ba-[a-z0-9]+", json.dumps(asked["content"]))[0])
        o = self.asker.ask("tools/call", tool("job", id=asked["structuredContent"]["job"], action="wait",
                                              wait_seconds=60), seconds(90))["structuredContent"]
        return o["state"] == "done"

    def connection(self):
        with client(BOB) as c:
            return c.run("print(%d)" % self.n, seconds(60)).status == "ok"

    SHORT = (echo, ping, tools_list, read, download, upload, install, inspect)
    KINDS = (echo, program, ping, tools_list, script, cell, new_session, file_out, read, file_in, download, upload,
             install, job, inspect, validate, approval, connection)

    def measure(self, rounds):
        """{kind: [seconds]}"""
        took = {kind.__name__: [] for kind in self.KINDS}
        for _ in range(rounds):
            self.n += 1
            for kind in self.KINDS:
                for _ in range(OFTEN if kind in self.SHORT else 1):
                    begun = time.monotonic()
                    assert kind(self), kind.__name__
                    took[kind.__name__].append(time.monotonic() - begun)
        return took


def slowest(times):
    """ms: the p99 of few."""
    return middle(sorted(times)[-len(times) // SLOWEST:])


def middle(times):
    return sorted(times)[len(times) // 2] * 1000


def times_of(alone, beside):
    """{kind: how many times as long as alone}, of what is slowest."""
    return {kind: slowest(beside[kind]) / slowest(alone[kind]) for kind in alone}


# What the processor's own share of a kind is measured by.
PROGRAMS = ("program", "script", "new_session", "file_out", "file_in", "job", "validate", "approval", "connection")


def judge(name, alone, beside):
    """The cells of the table, and what was late in each round: a machine that is busy for a moment
    is late in one."""
    every, late = {}, []
    for times in beside:
        add(every, times)
    ratio = times_of(alone, every)
    cells = ["%.0f, %.0f; %.1f" % (slowest(alone[kind]), slowest(every[kind]), ratio[kind]) for kind in alone]
    best = {kind: min(slowest(times[kind]) for times in beside) for kind in alone}
    for kind in alone:
        bare = "program" if kind in PROGRAMS else "echo"
        if kind != bare and best[kind] > TIMES * slowest(alone[kind]):
            late.append("%s: %s took %.0f ms in the best round, alone %.0f (%s: %.0f, alone %.0f)" % (
                name, kind, best[kind], slowest(alone[kind]), bare, best[bare], slowest(alone[bare])))
    return cells, late


def slow_turns():
    """The most ms that a turn of the service's loop has lasted since the last question."""
    said = sh("journalctl", "-u", UNIT, "-o", "cat", "-g", "slow-turn", "--cursor-file", "/run/shares-cursor",
              check=False).stdout
    return max(map(int, re.findall(r"slow-turn ms=(\d+)", said)), default=0)


def add(to, times):
    for kind in times:
        to.setdefault(kind, []).extend(times[kind])


@test
def shares_leave_others_their_time():
    late, each = [], max(1, int(guest_tools.soak / ROUND_S))
    rows = [row for row in ROWS if re.search(guest_tools.rows, row[0])]
    with Index() as index, contextlib.ExitStack() as stack:
        index.add("small", "1.0")
        for n in range(PACKAGES):
            index.add("p%d" % n, "1.0", {"p%d.py" % n: "x = %r\n" % ("y" * 200000)})
        stack.enter_context(configured(CONFIG + packages_config(index)))
        measured = Measured(stack)
        os.chmod(HTTP, 0o666)
        measured.measure(1)
        print("    | taken | %s | slowest turn |" % " | ".join(k.__name__ for k in measured.KINDS), flush=True)
        for name, take in rows:
            alone, beside = {}, []
            for _ in range(ROUNDS):
                add(alone, measured.measure(each))
                with taken(take):
                    beside.append(measured.measure(each))
                until("the service has room again", measured.connection, seconds(120))
            add(alone, measured.measure(each))
            cells, wrong = judge(name, alone, beside)
            late += wrong
            print("    | %s | %s | %d |" % (name, " | ".join(cells), slow_turns()), flush=True)
            for one in wrong:
                print("    late: " + one, flush=True)
    assert not late, "; ".join(late)
    return "%d rows" % len(rows)
