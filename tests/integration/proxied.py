#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Three hosts behind HAProxy, as doc/haproxy has it: each supervisor in a network namespace and
under a host name of its own, the proxy between them and the clients. Calls go round, what a
host gave out finds its way back, and a host that stops takes only its own with it."""

import collections
import contextlib
import os
import re
import shutil
import socket
import subprocess
import tempfile
import threading

import auth_suite
from harness import FEW_MODULES, TOP, Skip, equal, main, test
from http_client import Closed
from mcpclient import LEGACY, MODERN
from supervisor import Supervisor, read_text
from waits import until, until_equal

HOSTS = {"alpha": "10.77.0.11", "beta": "10.77.0.12", "gamma": "10.77.0.13"}
PROXY_ADDRESS = "10.77.0.1"
EXAMPLE = os.path.join(TOP, "doc", "haproxy", "haproxy.cfg")
CONFIG = """
[http]
listen = %s:8080
allowed_hosts = py.example.org
connections_per_peer = 1024
[mcp]
task_after_seconds = 0
arguments = all
[auth]
token_file = %s
"""
TASKS = {"io.modelcontextprotocol/clientCapabilities": {
    "extensions": {"io.modelcontextprotocol/tasks": {}}}}
MIRRORED = {"session": "Session", "id": "Job", "idempotency_key": "Key"}


def ip(*args, check=True):
    return subprocess.run(["ip", *args], check=check, capture_output=True, text=True)


@contextlib.contextmanager
def network(prefix):
    """A namespace for the proxy with a bridge in it, and one for each host; their names."""
    hub = prefix + "-proxy"
    names = {host: "%s-%s" % (prefix, host) for host in HOSTS}
    made = []
    try:
        for name in (hub, *names.values()):
            made.append(name)
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        ip("-n", hub, "link", "add", "br0", "type", "bridge")
        ip("-n", hub, "addr", "add", PROXY_ADDRESS + "/24", "dev", "br0")
        ip("-n", hub, "link", "set", "br0", "up")
        for host, name in names.items():
            ip("-n", hub, "link", "add", host, "type", "veth", "peer", "name", "eth0",
               "netns", name)
            ip("-n", hub, "link", "set", host, "master", "br0", "up")
            ip("-n", name, "addr", "add", HOSTS[host] + "/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
        yield hub, names
    finally:
        for name in made:
            ip("netns", "del", name, check=False)


class Host(Supervisor):
    """A supervisor that sees another network and another name of its machine."""

    def __init__(self, build, config, netns, name):
        super().__init__(build, config)
        self.argv = ["unshare", "--uts", "nsenter", "--net=/run/netns/" + netns, "sh", "-c",
                     'hostname "$0" && exec "$@"', name, *self.argv]


class Proxy:
    """HAProxy with the configuration of the example; only where it listens is another."""

    def __init__(self, directory, netns):
        self.socket = os.path.join(directory, "proxy.sock")
        self.admin = os.path.join(directory, "admin.sock")
        with open(EXAMPLE, encoding="utf-8") as f:
            text = f.read()
        text, n = re.subn(r"bind :443 ssl .*", "bind unix@%s mode 666" % self.socket, text)
        equal(n, 1, "lines in the example that say where it listens")
        text = text.replace("global\n", "global\n\tstats socket %s level admin\n" % self.admin, 1)
        path = os.path.join(directory, "haproxy.cfg")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        self.log = open(os.path.join(directory, "haproxy.log"), "wb")
        self.process = subprocess.Popen(
            ["nsenter", "--net=/run/netns/" + netns, "haproxy", "-db", "-f", path],
            stdout=self.log, stderr=self.log)

    def tell(self, command):
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(self.admin)
            s.sendall(command.encode() + b"\n")
            with s.makefile() as f:
                return f.read()

    def states(self):
        """host -> "UP", "DRAIN" or "DOWN", as the proxy sees it."""
        rows = [line.split(",") for line in self.tell("show stat").splitlines()]
        names = rows[0]
        return {row[1]: row[names.index("status")].split()[0]
                for row in rows[1:] if len(row) > 1 and row[1] in HOSTS}

    def wait(self, want, timeout):
        """Until the hosts are seen so. The proxy tells nobody: asking is all there is."""
        def states():
            assert self.process.poll() is None, "haproxy ended with %d: %s" % (
                self.process.returncode, read_text(self.log.name))
            with contextlib.suppress(OSError):
                return self.states()
        until_equal("what the proxy sees", states, want, timeout)

    def stop(self):
        self.process.terminate()
        self.process.wait(20)
        self.log.close()


class Client(auth_suite.Client):
    """Mirrors arguments as the schemas of the tools say, and counts who answered."""

    def __init__(self, place, token, revision=MODERN, **more):
        self.served = collections.Counter()
        super().__init__(place, token, revision, also={"Host": "py.example.org"}, **more)

    def headers(self, message, change=None):
        mirrored = {}
        if self.modern and message["method"] == "tools/call":
            for key, value in message["params"].get("arguments", {}).items():
                if key in MIRRORED:
                    mirrored["Mcp-Param-" + MIRRORED[key]] = value
        return super().headers(message, {**mirrored, **(change or {})})

    def post(self, message, change=None):
        response = super().post(message, change)
        self.served[response.header("X-Served-By")] += 1
        self.last = response.header("X-Served-By")
        return response

    def tool(self, name, **arguments):
        result = self.ask("tools/call", {"name": name, "arguments": arguments})
        return result.get("structuredContent") or result


class Cluster:
    def __init__(self, ctx, proxy, hosts, files):
        self.ctx, self.proxy, self.hosts, self.files = ctx, proxy, hosts, files
        self.token = files.add("team")

    def client(self, revision=MODERN, token=None):
        return Client(self.proxy.socket, token or self.token, revision,
                      timeout=self.ctx.seconds(60))


@contextlib.contextmanager
def cluster(ctx):
    for program in ("haproxy", "ip", "nsenter", "unshare", "hostname"):
        if not shutil.which(program):
            raise Skip("no %s here" % program, missing=True)
    prefix = "mcp%d" % os.getpid()
    with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as stack:
        os.chmod(directory, 0o711)
        files = auth_suite.Files(ctx.options.build, directory)
        hub, names = stack.enter_context(network(prefix))
        proxy = Proxy(directory, hub)		# before the hosts: it is none of theirs
        stack.callback(proxy.stop)
        hosts = {}
        for name, address in HOSTS.items():
            hosts[name] = stack.enter_context(Host(
                ctx.options.build, CONFIG % (address, files.tokens), names[name], name))
        proxy.wait(dict.fromkeys(HOSTS, "UP"), ctx.seconds(60))
        one = Cluster(ctx, proxy, hosts, files)
        wait_token(one)
        yield one
        for host in hosts.values():
            host.stop()
            equal(host.leftovers(), [], "left behind")


def wait_token(one):
    """Until every host has read the token file again: it follows it, within a second or two."""
    seen = set()

    def on_all():
        with one.client() as client:
            message = client.message("server/discover")
            response = client.post(message)
        if response.status == 200:
            seen.add(client.last)
        else:
            seen.discard(client.last)
        return seen == set(HOSTS)
    until(lambda: "all know the token, not %s" % seen, on_all)


def printed(job, n):
    equal(job["answer"]["stdout"], "%d\n" % n, "what the job has printed")


@test(private=True, root=True)
def calls_go_round(ctx):
    with cluster(ctx) as one, one.client() as client:
        for i in range(30):
            equal(client.stdout("print(%d)" % i), "%d\n" % i)
        equal(set(client.served), set(HOSTS), "who answered")
        assert min(client.served.values()) >= 5, client.served
        # the same call once more goes to the same host, and is not run again
        for i in range(6):
            key = "again-%d" % i
            first = client.tool("run_script", script="import uuid; print(uuid.uuid4())",
                                idempotency_key=key)
            again = client.tool("run_script", script="import uuid; print(uuid.uuid4())",
                                idempotency_key=key)
            equal(again["stdout"], first["stdout"], "the answer to the same call")


@test(private=True, root=True)
def legacy_sessions_stay_on_their_host(ctx):
    with cluster(ctx) as one, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(one.client(LEGACY[-1])) for _ in range(9)]
        for i in range(4):
            for client in clients:
                assert str(i) in client.stdout("print(%d)" % i)
        for client in clients:
            equal(len(client.served), 1, "hosts of a session: %r: number" % client.served)
        assert len({client.last for client in clients}) == 3, [c.last for c in clients]


@test(private=True)
def the_hosts_configuration_in_the_document_is_right(ctx):
    with open(os.path.join(os.path.dirname(EXAMPLE), "README.md"), encoding="utf-8") as f:
        blocks = re.findall(r"^```ini\n(.*?)^```", f.read(), re.M | re.S)
    assert blocks
    for block in blocks:
        with tempfile.NamedTemporaryFile("w", suffix=".conf") as f:
            f.write(block)
            f.flush()
            done = subprocess.run([os.path.join(ctx.options.build, "mcp-pythond"), "--config", f.name,
                                   "--check-config"], capture_output=True, text=True, check=False)
            equal(done.returncode, 0, done.stderr)


@test(private=True, root=True)
def repl_sessions_are_found_by_their_handle(ctx):
    with cluster(ctx) as one, one.client() as client:
        handles = {}
        for i in range(6):
            made = client.tool("run_repl", code="n = %d" % i)
            assert made["session"].endswith("-" + client.last), (made["session"], client.last)
            handles[made["session"]] = (i, client.last)
        equal({host for _, host in handles.values()}, set(HOSTS), "hosts with a session")
        for _ in range(3):
            for handle, (i, host) in handles.items():
                got = client.tool("run_repl", code="n", session=handle)
                equal((got["result"]["json"], client.last), (i, host))


@test(private=True, root=True)
def jobs_are_found_by_their_id(ctx):
    with cluster(ctx) as one, one.client() as client:
        jobs = {}
        for i in range(6):
            started = client.tool("run_script", script="print(%d)" % i, background=True)
            jobs[started["job"]] = (i, client.last)
        equal({host for _, host in jobs.values()}, set(HOSTS), "hosts with a job")
        for job, (i, host) in jobs.items():
            got = client.tool("job", id=job, action="wait", wait_seconds=30)
            equal(client.last, host, "who knew of the job")
            printed(got, i)


@test(private=True, root=True)
def tasks_are_found_by_their_id(ctx):
    with cluster(ctx) as one, one.client() as client:
        made = {}
        for i in range(4):
            started = client.post(client.message("tools/call", {
                "name": "run_script", "_meta": TASKS, "arguments": {
                    "script": "import time; time.sleep(2); print(%d)" % i}})).message["result"]
            equal(started["resultType"], "task", repr(started))
            made[started["taskId"]] = (i, client.last)
        assert len({host for _, host in made.values()}) > 1, made
        for id, (i, host) in made.items():
            def ended():
                state = client.post(client.message("tasks/get", {
                    "taskId": id, "_meta": TASKS})).message["result"]
                equal(client.last, host, "who knew of the task")
                return state.get("status") != "working" and state
            state = until("the end of a task", ended)
            equal(state["result"]["structuredContent"]["stdout"], "%d\n" % i)


@test(private=True, root=True)
def a_host_that_is_drained_keeps_what_it_has(ctx):
    with cluster(ctx) as one, one.client() as client:
        jobs = {}
        while set(jobs) != set(HOSTS):
            started = client.tool("run_script", script="print(1)", background=True)
            jobs[client.last] = started["job"]
        equal(one.proxy.tell("set server hosts/beta state drain").strip(), "")
        client.served.clear()
        for i in range(9):
            equal(client.stdout("print(%d)" % i), "%d\n" % i)
        equal(set(client.served), {"alpha", "gamma"}, "who is given what is new")
        got = client.tool("job", id=jobs["beta"], action="wait", wait_seconds=30)
        equal(client.last, "beta", "who knew of the job")
        printed(got, 1)


@test(private=True, root=True)
def calls_that_cannot_reach_a_host_go_to_another(ctx):
    """At once, and not only when the proxy has found that it is down."""
    with cluster(ctx) as one, one.client() as client:
        equal(one.hosts["beta"].stop(), 0, "its exit status")
        for i in range(9):
            equal(client.stdout("print(%d)" % i), "%d\n" % i)
        equal(set(client.served), {"alpha", "gamma"}, "who answered")


class Traffic(threading.Thread):
    """One client that never rests; what it was answered."""

    def __init__(self, one):
        super().__init__()
        self.one, self.statuses, self.failed, self.over = one, collections.Counter(), [], False
        self.cut = []	# calls that reached a connection in the moment of its end

    def run(self):
        n = 0
        with self.one.client() as client:
            while not self.over:
                n += 1
                try:
                    got = client.tool("run_script", script="print(%d)" % n)
                    self.statuses[got["status"]] += 1
                    if got["status"] == "ok":
                        equal(got["stdout"], "%d\n" % n)
                except Closed as e:
                    self.cut.append("closed %s" % e)
                    client.connection.close()
                    client.connection = None
                except Exception as e:
                    # By the proxy that it was cut, or by the host that it stops.
                    if "<502 " in str(e) or "<503 " in str(e) and "'beta'" in str(e):
                        self.cut.append(str(e))
                        continue
                    self.failed.append("%s: %s" % (type(e).__name__, e))


@test(private=True, root=True)
def a_host_that_stops_takes_only_its_own(ctx):
    """Its sessions are gone, and are reported so; its running calls are answered; no other client
    notices."""
    with cluster(ctx) as one, one.client() as client:
        sessions = {}
        while set(sessions) != set(HOSTS):
            made = client.tool("run_repl", code="n = 7")
            sessions[client.last] = made["session"]
        traffic = [Traffic(one) for _ in range(4)]
        for t in traffic:
            t.start()
        try:
            status = one.hosts["beta"].stop()
            equal(status, 0, "its exit status")
            one.proxy.wait({"alpha": "UP", "beta": "DOWN", "gamma": "UP"}, ctx.seconds(60))
            for host in ("alpha", "gamma"):
                got = client.tool("run_repl", code="n", session=sessions[host])
                equal((got["result"]["json"], client.last), (7, host))
            gone = client.ask("tools/call", {"name": "run_repl", "arguments": {
                "code": "n", "session": sessions["beta"]}})
            assert gone["isError"], gone
            so_far = [t.statuses["ok"] for t in traffic]

            def all_go_on():
                equal(client.stdout("print(1)"), "1\n")
                return all(t.statuses["ok"] >= n + 3 for t, n in zip(traffic, so_far))
            until(lambda: "they go on: %r" % [(t.statuses, t.cut, t.failed) for t in traffic], all_go_on)
        finally:
            for t in traffic:
                t.over = True
            for t in traffic:
                t.join()
        for t in traffic:
            equal(set(t.statuses) - {"ok", "cancelled", "overloaded"}, set(), "other answers")
            equal(t.failed, [], "calls that failed")
        # Each connection of the proxy's to the host takes one call with it, and there are no more
        # of them than clients; which of these has more than one of the calls is chance.
        cut = [how for t in traffic for how in t.cut]
        assert len(cut) <= len(traffic) + 1, "calls without an answer: %r" % cut


main(__doc__, modules=FEW_MODULES)
