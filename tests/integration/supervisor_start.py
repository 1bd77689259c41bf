#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How mcp-pythond starts, serves and ends, with real workers.

Everything happens below temporary directories; nothing of the system is touched.
"""
import contextlib
import json
import os
import re
import resource
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from harness import FEW_MODULES, Skip, main, test
from jsonrpc_corpus import Connection, handshake, parse, request
from supervisor import descendants, read_text
from waits import ready, until

DEADLINE_S = 60
BUILD = None        # known when the first test runs


def alone(function, name=None):
    """A test with a directory of its own, in which it starts what it needs."""
    @test(name=name or function.__name__, private=True)
    def one(ctx):
        global BUILD
        BUILD = os.path.abspath(ctx.options.build)
        with tempfile.TemporaryDirectory() as directory:
            os.chmod(directory, 0o755)
            function(directory)


class Supervisor:
    """A running mcp-pythond whose log is read as it comes."""

    def __init__(self, directory, *arguments, extra=None, limits=None, shell=None, **more):
        """extra: environment; limits: of descriptors; shell: what /bin/sh does before it."""
        self.path = os.path.join(directory, "mcp.sock")
        environment = {name: value for name, value in os.environ.items() if name not in
                       ("NOTIFY_SOCKET", "LISTEN_FDS", "LISTEN_PID", "JOURNAL_STREAM")}
        environment["XDG_STATE_HOME"] = directory
        environment.update(extra or {})
        command = [os.path.join(BUILD, "mcp-pythond"), *arguments]
        if shell:
            command = ["/bin/sh", "-c", shell + ' exec "$0" "$@"', *command]
        self.log = b""
        self.process = subprocess.Popen(
            command, env=environment, stderr=subprocess.PIPE,
            preexec_fn=(lambda: resource.setrlimit(resource.RLIMIT_NOFILE, limits)) if limits
            else None, **{"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, **more})

    def wait_log(self, text, start=0):
        """start: where in the log to begin."""
        def read(left):
            if ready([self.process.stderr.fileno()], left):
                data = os.read(self.process.stderr.fileno(), 65536)
                assert data, f"it ended with {self.process.wait()}: {self.log.decode()}"
                self.log += data
        until(lambda: f"{text!r} in the log: {self.log.decode()}", lambda: text in self.log[start:], wait=read)
        return self

    def ready(self):
        return self.wait_log(b"ready version=")

    def end(self, number=signal.SIGTERM):
        """Stops it; its exit status. Whatever it wrote to stdout is in self.output."""
        self.process.send_signal(number)
        return self.finish()

    def finish(self):
        self.output, rest = self.process.communicate(timeout=DEADLINE_S)
        self.log += rest or b""
        return self.process.returncode

    def connect(self):
        connection = Connection(self.path)
        handshake(connection, "2025-11-25")
        return connection


def status_of(supervisor):
    with open(f"/proc/{supervisor.process.pid}/status", encoding="ascii") as file:
        return dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)


def run_request(identifier, script, **more):
    return request(identifier, "tools/call", {"name": "run_script",
                                              "arguments": {"script": script}, **more})


def answer(connection):
    line = connection.line(time.monotonic() + DEADLINE_S)
    assert line is not None, "no answer"
    return parse(line)[1]


def structured(connection):
    return answer(connection)["result"]["structuredContent"]


def check_works(connection):
    connection.send(run_request("works", "print(6 * 7)"))
    outcome = structured(connection)
    assert outcome["status"] == "ok" and outcome["stdout"] == "42\n", outcome


@alone
def arguments_and_exit_codes(directory):
    broken = os.path.join(directory, "broken.conf")
    with open(broken, "w", encoding="utf-8") as file:
        file.write("[pool]\nwarn = 3\n")
    for arguments, status, text in (
            (["--version"], 0, ""), (["--help"], 0, ""), (["--bogus"], 2, "--help"),
            (["extra"], 2, "options only"), (["--stdio", "--socket", "x"], 2, "exclude"),
            (["--check-config", "--config", broken], 78, "warn"),
            (["--config", broken, "--socket", "x"], 78, "warn"),
            (["--config", "/nonexistent", "--check-config"], 78, "/nonexistent"),
            (["--socket", "/" + "x" * 200], 1, "path"),
            (["--socket", "/nonexistent/s"], 1, "/nonexistent/s"),
            (["--socket", broken], 1, "not a socket")):
        supervisor = Supervisor(directory, *arguments)
        assert supervisor.finish() == status, (arguments, status, supervisor.log)
        assert text in supervisor.log.decode(), (arguments, supervisor.log)
    dump = Supervisor(directory, "--dump-config")
    assert dump.finish() == 0
    again = os.path.join(directory, "again.conf")
    with open(again, "wb") as file:
        file.write(dump.output)
    assert Supervisor(directory, "--check-config", "--config", again).finish() == 0


@alone
def socket_belongs_to_one(directory):
    path = os.path.join(directory, "mcp.sock")
    first = Supervisor(directory, "--socket", path).ready()
    assert os.stat(path).st_mode & 0o7777 == 0o600
    second = Supervisor(directory, "--socket", path)
    assert second.finish() == 1 and b"served by another process" in second.log
    check_works(first.connect())
    assert first.end(signal.SIGKILL) == -signal.SIGKILL
    third = Supervisor(directory, "--socket", path).ready()
    check_works(third.connect())
    assert third.end() == 0 and third.output == b"", third.output
    # Root that gave its rights away may not be allowed to remove it; then it is dead.
    if os.path.exists(path):
        fourth = Supervisor(directory, "--socket", path).ready()
        assert fourth.end() == 0


@alone
def no_capability_is_left(directory):
    supervisor = Supervisor(directory, "--socket", os.path.join(directory, "mcp.sock")).ready()
    status = status_of(supervisor)
    assert all(int(status[name], 16) == 0 for name in ("CapPrm", "CapEff", "CapInh", "CapAmb"))
    assert os.getuid() != 0 or "0" not in status["Uid"].split(), status["Uid"]
    assert supervisor.end() == 0


@alone
def the_environment_of_who_starts_it_is_forgotten(directory):
    """Also by what is forked from it, and in the memory where it was."""
    supervisor = Supervisor(directory, "--socket", os.path.join(directory, "mcp.sock"),
                            extra={"API_KEY": "secret-of-a-client"}).ready()
    check_works(supervisor.connect())
    pid, seen = supervisor.process.pid, {}
    for one in (pid, *(child for child, _ in descendants(pid))):
        with contextlib.suppress(OSError), open(f"/proc/{one}/environ", "rb") as f:
            seen.setdefault((read_text(f"/proc/{one}/comm") or "").strip(), []).append(f.read())
    assert not [name for name, texts in seen.items() if any(b"secret-of-a-client" in t for t in texts)], seen
    if os.getuid() == 0:	# who else may not read them
        assert {"mcp-pythond", "mcp-launcher", "mcp-forker"} <= set(seen), seen
        assert b"XDG_STATE_HOME=" in seen["mcp-pythond"][0], seen
    assert supervisor.end() == 0


@alone
def shutdown_answers_what_runs(directory):
    for number in (signal.SIGTERM, signal.SIGINT):
        supervisor = Supervisor(directory, "--socket",
                                os.path.join(directory, f"s{number}.sock"))
        supervisor.path = os.path.join(directory, f"s{number}.sock")
        supervisor.ready()
        busy, idle = supervisor.connect(), supervisor.connect()
        busy.send(run_request(1, "print('begun', flush=True)\nimport time\ntime.sleep(60)",
                              _meta={"progressToken": 1}))
        assert answer(busy)["params"]["message"] == "begun"
        began = time.monotonic()
        supervisor.process.send_signal(number)
        outcome = structured(busy)
        assert outcome["status"] == "cancelled", outcome
        assert "shutting down" in outcome["error"]["message"], outcome
        assert outcome["stdout"] == "begun\n", outcome
        assert busy.line(time.monotonic() + DEADLINE_S) is None and busy.ended
        assert idle.line(time.monotonic() + DEADLINE_S) is None and idle.ended
        assert supervisor.finish() == 0
        # Nobody waits for the script.
        assert time.monotonic() - began < DEADLINE_S / 2


@alone
def who_asks_for_the_end_again_changes_nothing(directory):
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        path = os.path.join(directory, f"s{number}.sock")
        supervisor = Supervisor(directory, "--socket", path).ready()
        supervisor.process.send_signal(signal.SIGTERM)
        while supervisor.process.poll() is None:
            supervisor.process.send_signal(number)
        assert supervisor.finish() == 0, (number, supervisor.process.returncode, supervisor.log)


@alone
def a_signal_may_come_early(directory):
    supervisor = Supervisor(directory, "--socket", os.path.join(directory, "mcp.sock"))
    supervisor.wait_log(b"listening")
    until("a handler", lambda: "SigCgt" in status_of(supervisor) and
          int(status_of(supervisor)["SigCgt"], 16) & 1 << signal.SIGTERM - 1)
    assert supervisor.end() == 0, supervisor.log


@alone
def hangup_is_no_end(directory):
    supervisor = Supervisor(directory, "--socket", os.path.join(directory, "mcp.sock")).ready()
    supervisor.process.send_signal(signal.SIGHUP)
    supervisor.wait_log(b"reloaded ")
    check_works(supervisor.connect())
    assert supervisor.end() == 0


@alone
def stdio(directory):
    text = (request(0, "initialize", {"protocolVersion": "2025-06-18", "capabilities": {},
                                      "clientInfo": {"name": "t", "version": "1"}}) +
            run_request(1, "print('a')\nimport time\ntime.sleep(.5)\nprint('b')"))
    supervisor = Supervisor(directory, "--stdio", stdin=subprocess.PIPE)
    output, log = supervisor.process.communicate(text, timeout=DEADLINE_S)
    assert supervisor.process.returncode == 0, log
    answers = [json.loads(line) for line in output.decode().splitlines()]
    assert [a["id"] for a in answers] == [0, 1]
    assert answers[1]["result"]["structuredContent"]["stdout"] == "a\nb\n"
    requests, replies = os.path.join(directory, "in"), os.path.join(directory, "out")
    with open(requests, "wb") as file:
        file.write(text)
    with open(requests, "rb") as stdin, open(replies, "wb") as stdout:
        supervisor = Supervisor(directory, "--stdio", stdin=stdin, stdout=stdout)
        assert supervisor.finish() == 0, supervisor.log
    with open(replies, "rb") as file:
        assert [json.loads(line)["id"] for line in file] == [0, 1]


class Laptop(Supervisor):
    """A service of a client that talks to it by its standard streams."""

    def __init__(self, directory, worker=""):
        super().__init__(directory, "--stdio", stdin=subprocess.PIPE, extra={"MCP_PYTHON_WORKER": worker})
        self.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {},
                                "clientInfo": {"name": "t", "version": "1"}})

    def say(self, line):
        self.process.stdin.write(line)
        self.process.stdin.flush()

    def hear(self):
        assert ready([self.process.stdout.fileno()], DEADLINE_S), "no answer"
        return json.loads(self.process.stdout.readline())

    def ask(self, method, params):
        self.say(request(method, method, params))
        answer = self.hear()
        assert answer.get("id") == method, answer
        return answer["result"]

    def run(self, script):
        self.say(run_request("call", script))
        return self.hear()["result"]

    def tools(self):
        return self.ask("tools/list", {})["tools"]


@alone
def stdio_answers_before_there_is_a_worker(directory):
    """Here the zygote never gets ready, until it is killed."""
    waiting = os.path.join(directory, "waiting")
    if not shutil.which("gcc"):
        raise Skip("no gcc", missing=True)
    subprocess.run(["gcc", "-o", waiting, "-x", "c", "-"], check=True, text=True,
                   input="#include <unistd.h>\nint main(void) { for (;;) pause(); }\n")
    laptop = Laptop(directory, waiting)
    assert "run_script" in [tool["name"] for tool in laptop.tools()]
    zygote = until("the zygote", lambda: [pid for pid, _ in descendants(laptop.process.pid)
                                          if "--zygote" in (read_text(f"/proc/{pid}/cmdline") or "")])
    laptop.say(run_request("call", "print(1)") + request("ping", "ping"))
    assert laptop.hear() == {"jsonrpc": "2.0", "id": "ping", "result": {}}
    os.kill(zygote[0], signal.SIGKILL)
    failed = laptop.hear()["result"]
    assert failed["isError"] and "the zygote ended early (signal 9)" in failed["content"][0]["text"], failed
    laptop.process.stdin.close()
    assert laptop.process.wait(DEADLINE_S) == 1


@alone
def stdio_says_in_the_call_why_there_is_no_worker(directory):
    laptop = Laptop(directory, "/bin/false")
    for call in "first", "later":
        failed = laptop.run("print(1)")
        assert failed["isError"] and "the zygote ended early (exit code 1)" in failed["content"][0]["text"], (
            call, failed)
    laptop.process.stdin.close()
    assert laptop.process.wait(DEADLINE_S) == 1


@alone
def stdio_describes_its_tools_at_once_as_later(directory):
    """Then no client has to ask for them again. The first zygote is soon followed by a full one."""
    laptop = Laptop(directory)
    early = laptop.tools()
    laptop.wait_log(b"zygote-renewed ")
    assert laptop.tools() == early
    until("workers of the full zygote", lambda: "True" in laptop.run(
        "import sys\nprint('sqlite3' in sys.modules)")["content"][0]["text"])
    laptop.process.stdin.close()
    assert laptop.process.wait(DEADLINE_S) == 0


@alone
def what_is_weaker_is_one_sentence(directory):
    """By hand; the records are for who asks for them."""
    for options in (), ("--verbose",), ("--private",):
        supervisor = Supervisor(directory, "--stdio", *options)
        _, log = supervisor.process.communicate(timeout=DEADLINE_S)
        log = log.decode()
        assert supervisor.process.returncode == 0, log
        assert ("enforcement text=" in log) == (options == ("--verbose",)), log
        assert "fallback " not in log or options == ("--verbose",), log
        assert log.count("mcp-pythond: ") == log.count("--verbose says why") <= 1, log
        assert log == "" or options != ("--private",), log


@alone
def stdio_ends_with_its_client(directory):
    supervisor = Supervisor(directory, "--stdio", stdin=subprocess.PIPE)
    supervisor.process.stdin.write(
        request(0, "initialize", {"protocolVersion": "2025-06-18", "capabilities": {},
                                  "clientInfo": {"name": "t", "version": "1"}}) +
        run_request(1, "print('on', flush=True)\nimport time\ntime.sleep(60)",
                    _meta={"progressToken": 1}))
    supervisor.process.stdin.flush()
    supervisor.process.stdout.readline()
    assert b"progress" in supervisor.process.stdout.readline()
    supervisor.process.stdin.close()
    supervisor.process.stdout.close()
    began = time.monotonic()
    assert supervisor.process.wait(DEADLINE_S) == 0
    assert time.monotonic() - began < DEADLINE_S / 2


@alone
def sockets_that_vanish(directory):
    """Whoever removes or replaces a socket of the service cuts nobody off: it has its name again, and
    the log says so. Without its second name it cannot, and the log says that."""
    os.chmod(directory, 0o777)
    paths = [os.path.join(directory, name) for name in ("mcp.sock", "http.sock", "admin.sock")]
    with open(directory + "/conf", "w", encoding="ascii") as f:
        f.write("[admin]\nsocket = %s\n[http]\nsocket = %s\n" % (paths[2], paths[1]))
    supervisor = Supervisor(directory, "--socket", paths[0], "--config", directory + "/conf").ready()
    early = Connection(paths[0])
    handshake(early, "2025-11-25")

    def is_served(path):
        with socket.socket(socket.AF_UNIX) as s:
            try:
                s.connect(path)
            except (FileNotFoundError, ConnectionRefusedError):
                return False
            return True

    def replace(path):
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(path + ".other")
        os.rename(path + ".other", path)

    for path in paths:
        for vanish in (os.unlink, replace, lambda path: os.rename(path, path + ".aside")):
            start = len(supervisor.log)
            vanish(path)
            supervisor.wait_log(b"socket-replaced socket=\"%s\" made-again=yes" % path.encode(), start)
            until("it is served again", lambda path=path: is_served(path))
        os.unlink(path + ".spare")
        until("it has a second name", lambda path=path: os.path.exists(path + ".spare"))
    check_works(early)
    late = Connection(paths[0])
    handshake(late, "2025-11-25")
    check_works(late)
    os.rename(directory, directory + ".aside")
    try:
        supervisor.wait_log(b"socket-replaced socket=\"%s\" made-again=no err=ENOENT" % paths[0].encode())
        check_works(late)
    finally:
        os.rename(directory + ".aside", directory)
    assert supervisor.end() == 0, supervisor.log


@alone
def systemd_hands_over_and_is_told(directory):
    path, told = os.path.join(directory, "mcp.sock"), os.path.join(directory, "notify")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(path)
    listener.listen(64)
    notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    notify.bind(told)
    os.chmod(told, 0o777)
    os.chmod(directory, 0o755)
    early = Connection(path)        # before anybody serves it
    number = listener.fileno()
    supervisor = Supervisor(
        directory, pass_fds=[number],
        extra={"NOTIFY_SOCKET": told, "LISTEN_FDS": "1", "LISTEN_FDNAMES": "mcp",
               "WATCHDOG_USEC": "600000"},
        shell=f"exec 3<&{number}; [ {number} = 3 ] || exec {number}<&-; "
              "export LISTEN_PID=$$ WATCHDOG_PID=$$;")
    said = []

    def hears(text):
        def read(left):
            if ready([notify.fileno()], left):
                said.append(notify.recv(4096).decode())
        until(lambda: f"{text} in {said}", lambda: any(text in message for message in said), wait=read)

    hears("READY=1")
    assert not any("STOPPING" in message for message in said)
    handshake(early, "2025-11-25")
    check_works(early)
    os.rename(path, path + ".aside")	# nobody but systemd can make it again
    supervisor.wait_log(b"made-again=no err=EEXIST")
    assert b"restart the socket unit" in supervisor.log, supervisor.log
    os.rename(path + ".aside", path)
    check_works(early)
    hears("WATCHDOG=1")
    said.clear()
    hears("WATCHDOG=1")
    hears("STATUS=1 sessions and 0 over HTTP of 1 tenants")
    supervisor.process.send_signal(signal.SIGTERM)
    hears("STOPPING=1")
    assert supervisor.finish() == 0, supervisor.log
    assert os.path.exists(path), "a socket that systemd made was removed"
    listener.close()


def ticks(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        return sum(int(n) for n in file.read().rsplit(")", 1)[1].split()[11:13])


def connect_to(place):
    """A socket that has begun to connect; its place in the backlog may have to wait."""
    one = socket.socket(socket.AF_INET if isinstance(place, tuple) else socket.AF_UNIX,
                        socket.SOCK_STREAM)
    one.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        one.connect(place)
    return one


def limit_descriptors(pid, most):
    """As the service's own user: others may not change its limits."""
    who = os.stat(f"/proc/{pid}/task") if os.getuid() == 0 else None
    subprocess.run(["prlimit", f"--pid={pid}", f"--nofile={most}:"], check=True, timeout=DEADLINE_S,
                   **({"user": who.st_uid, "group": who.st_gid} if who else {}))


def take_descriptors(supervisor):
    """When its pool is full, which needs descriptors: it gets no new one from now on."""
    pid, looks = supervisor.process.pid, []

    def is_still():
        looks.append(sorted(os.listdir(f"/proc/{pid}/fd")))
        return len(looks) > 10 and all(look == looks[-1] for look in looks[-10:])
    until("the pool is full", is_still)
    limit_descriptors(pid, 3)


def descriptors_run_out(directory, which, question, reply):
    """An accept() that fails at one of the listening sockets ends nothing, and it does not spin."""
    config, http, admin = (os.path.join(directory, name) for name in ("c.conf", "http", "admin"))
    with open(config, "w", encoding="utf-8") as file:
        file.write(f"[metrics]\nlisten = 127.0.0.1:0\n[admin]\nsocket = {admin}\n")
    supervisor = Supervisor(directory, "--socket", os.path.join(directory, "mcp.sock"),
                            "--http-socket", http, "--config", config, limits=(128, 128)).ready()
    port = int(re.search(rb"listening metrics=127\.0\.0\.1:(\d+)", supervisor.log)[1])
    place = {"streams": supervisor.path, "http": http, "metrics": ("127.0.0.1", port),
             "admin": admin}[which]
    first = supervisor.connect()
    take_descriptors(supervisor)
    crowd, seen = [connect_to(place) for _ in range(60)], len(supervisor.log)
    supervisor.wait_log(b"accept-waits err=EMFILE", seen)
    before = ticks(supervisor.process.pid)
    first.send(request("p", "ping"))
    assert answer(first) == {"jsonrpc": "2.0", "id": "p", "result": {}}
    select.select([], [], [], 1)      # a second in which it might spin
    used = ticks(supervisor.process.pid) - before
    assert used < os.sysconf("SC_CLK_TCK") / 4, f"{used} ticks in a second"
    limit_descriptors(supervisor.process.pid, 128)
    for one in crowd:
        one.close()
    with connect_to(place) as one:
        one.setblocking(True)
        one.settimeout(DEADLINE_S)
        one.sendall(question)
        got = one.recv(65536)
        assert got.startswith(reply), got
    check_works(supervisor.connect())
    assert supervisor.end() == 0


for row in (("streams", b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n', b'{"jsonrpc":"2.0"'),
            ("http", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"HTTP/1.1 404"),
            ("metrics", b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", b"HTTP/1.1 200"),
            ("admin", b'{"op":"status"}\n', b"{")):
    alone(lambda directory, row=row: descriptors_run_out(directory, *row),
          "descriptors_run_out_" + row[0])


def call(connection, name, **arguments):
    connection.send(request("c", "tools/call", {"name": name, "arguments": arguments}))
    return structured(connection)


@alone
def calls_that_find_no_descriptor_are_overloaded(directory):
    """A session stays as it is, and no worker is blamed."""
    supervisor = Supervisor(directory, "--socket", os.path.join(directory, "mcp.sock"),
                            limits=(128, 128)).ready()
    first, second = supervisor.connect(), supervisor.connect()
    opened = call(first, "run_repl", code="x = 41")
    assert opened["status"] == "ok", opened
    check_works(second)
    take_descriptors(supervisor)
    for connection, name, arguments in (
            (first, "run_repl", {"session": opened["session"], "code": "x = 0"}),
            (second, "run_script", {"script": "print(input())", "stdin": "a line"})):
        refused = call(connection, name, **arguments)
        assert refused["status"] == "overloaded", refused
        assert "Too many open files; try again later" in json.dumps(refused), refused
    limit_descriptors(supervisor.process.pid, 128)
    again = call(first, "run_repl", session=opened["session"], code="x + 1")
    assert again["status"] == "ok" and again["result"]["json"] == 42, again
    check_works(second)
    assert supervisor.end() == 0


def connections_leave_a_reserve(directory, by_http):
    """Connections never take the descriptors that calls need, nor those of operators."""
    http, admin, config = (os.path.join(directory, name) for name in ("http", "admin", "c.conf"))
    with open(config, "w", encoding="utf-8") as file:
        file.write(f"[admin]\nsocket = {admin}\n")
    supervisor = Supervisor(directory, "--socket", os.path.join(directory, "mcp.sock"),
                            "--http-socket", http, "--config", config, limits=(192, 192)).ready()
    first = supervisor.connect()
    check_works(first)
    pid, seen = supervisor.process.pid, len(supervisor.log)
    crowd = [connect_to(http if by_http else supervisor.path) for _ in range(220)]
    supervisor.wait_log(b"accept-waits err=EMFILE", seen)
    used = len(os.listdir(f"/proc/{pid}/fd"))
    assert 150 <= used < 188, f"{used} descriptors"
    outcome = call(first, "run_script", script="print(input())", stdin="a line")
    assert outcome["status"] == "ok" and outcome["stdout"] == "a line\n", outcome
    opened = call(first, "run_repl", code="x = 1")
    assert opened["status"] == "ok", opened
    done = subprocess.run([os.path.join(BUILD, "mcp-python"), "status", "--admin-socket", admin],
                          capture_output=True, check=False, timeout=DEADLINE_S)
    assert done.returncode == 0, done
    for one in crowd:
        one.close()
    check_works(supervisor.connect())
    assert supervisor.end() == 0


for row in ((False, "by_streams"), (True, "by_http")):
    alone(lambda directory, row=row: connections_leave_a_reserve(directory, row[0]),
          "connections_leave_a_reserve_" + row[1])


@alone
def sessions_are_limited(directory):
    config = os.path.join(directory, "c.conf")
    with open(config, "w", encoding="utf-8") as file:
        file.write("[service]\nsessions_max = 3\nsessions_per_tenant = 2\n")
    supervisor = Supervisor(directory, "--socket", os.path.join(directory, "mcp.sock"),
                            "--config", config).ready()
    clients = [supervisor.connect() for _ in range(2)]
    third = Connection(supervisor.path)
    refusal = answer(third)
    assert "id" not in refusal and refusal["error"]["code"] == -32603, refusal
    assert third.line(time.monotonic() + DEADLINE_S) is None and third.ended
    clients.pop().close()

    def fits():
        try:
            check_works(supervisor.connect())
            return True
        except AssertionError as error:
            assert "too many" in str(error), error
            return False
    until("a place becomes free", fits)
    assert supervisor.end() == 0


@alone
def disconnect_stops_the_script(directory):
    supervisor = Supervisor(directory, "--socket", os.path.join(directory, "mcp.sock")).ready()
    connection = supervisor.connect()
    connection.send(run_request(1, "print('on', flush=True)\nimport time\ntime.sleep(3600)",
                                _meta={"progressToken": "t"}, ))
    assert answer(connection)["method"] == "notifications/progress"
    connection.close()
    supervisor.wait_log(b"why=disconnect")
    supervisor.wait_log(b"status=cancelled")
    check_works(supervisor.connect())
    assert supervisor.end() == 0


main(__doc__, modules=FEW_MODULES)
