# SPDX-License-Identifier: Apache-2.0
"""What tests of the console share: a console on a service, and a browser without scripts."""

import contextlib
import http.client
import os
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import urllib.parse

from audit_log import Log
from harness import equal
from waits import until

PAGES = ("/", "/runs", "/sessions", "/approvals", "/packages", "/usage", "/audit", "/policy", "/health")


class Directory:
    """A directory where the service may write, for the operators' socket."""

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="mcp-console-")
        os.chmod(self.path, 0o777)
        self.socket = os.path.join(self.path, "admin")
        return self

    def __exit__(self, *exc):
        shutil.rmtree(self.path)

    def config(self, more=""):
        return "[admin]\nsocket = %s\noperators = uid:%d\n%s" % (self.socket, os.getuid(), more)


class Browser:
    """A browser without scripts."""

    def __init__(self, address):
        self.address, self.cookie, self.answer = address, None, None

    def ask(self, verb, path, form=None, headers=(), body=None):
        """(status, text)"""
        connection = http.client.HTTPConnection(self.address, timeout=120)
        body = urllib.parse.urlencode(form) if form is not None else body
        sent = {"Content-Type": "application/x-www-form-urlencoded"} if form is not None else {}
        if self.cookie:
            sent["Cookie"] = self.cookie
        connection.request(verb, path, body, {**sent, **dict(headers)})
        self.answer = connection.getresponse()
        text = self.answer.read().decode()
        connection.close()
        return self.answer.status, text

    def page(self, path):
        status, text = self.ask("GET", path)
        equal(status, 200, "%s: %s" % (path, text))
        return text

    def log_in(self, link):
        status, _ = self.ask("GET", link)
        equal(status, 200)
        self.cookie = self.answer.headers["Set-Cookie"].split(";")[0]
        return self

    def form(self, path, page, **fields):
        """Sends a form of a page."""
        found = re.search(r'name="csrf" value="([0-9a-f]+)"', self.page(page))
        return self.ask("POST", path, {"csrf": found[1], **fields})


class Console:
    def __init__(self, process):
        self.process, self.lines = process, []
        threading.Thread(target=self.read, daemon=True).start()
        until("it serves", lambda: self.lines or process.poll() is not None)
        assert self.lines, "it ended"

    def read(self):
        for line in self.process.stdout:
            self.lines.append(line)

    def link(self, n=-1):
        address, path = re.fullmatch(r"open http://([^/]+)(/login\?key=\S+)\n", self.lines[n]).groups()
        return address, path

    def browser(self):
        """One that is logged in."""
        count = len(self.lines)
        address, path = self.link()
        browser = Browser(address).log_in(path)
        until("a new link", lambda: len(self.lines) > count)
        return browser


@contextlib.contextmanager
def ended(process, log):
    """Ends a program of the console after the block. It has said nothing of a mistake of its own."""
    try:
        yield
    finally:
        process.terminate()
        process.wait(60)
    log.seek(0)
    said = log.read()
    assert "Traceback" not in said, said[-3000:]


@contextlib.contextmanager
def console_of(ctx, directory, *args, user=None, env=None):
    environment = {**os.environ, "MCP_PYTHOND": os.path.join(ctx.options.build, "mcp-pythond"), **(env or {})}
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            [os.path.join(ctx.options.build, "mcp-python"), "web", "--listen", "127.0.0.1:0",
             "--admin-socket", directory.socket, *args],
            env=environment, stdout=subprocess.PIPE, stderr=log, text=True, user=user, group=user,
            extra_groups=[] if user else None)
        with ended(process, log):
            yield Console(process)
        equal(process.returncode, 0)


@contextlib.contextmanager
def machine_console(ctx, directory, *args, user=None, proxy=False):
    """The console of a machine, on sockets as systemd passes them. Gives the address for browsers."""
    passed = {"web": socket.create_server(("127.0.0.1", 0)), "login": socket.socket(socket.AF_UNIX)}
    passed["login"].bind(os.path.join(directory.path, "login"))
    if proxy:
        passed["proxy"] = socket.socket(socket.AF_UNIX)
        passed["proxy"].bind(os.path.join(directory.path, "proxy"))
    for name in set(passed) - {"web"}:
        passed[name].listen(64)
        os.chmod(os.path.join(directory.path, name), 0o666)
    address = "127.0.0.1:%d" % passed["web"].getsockname()[1]
    start = "import fcntl, os, sys\n" \
            "high = [fcntl.fcntl(int(n), fcntl.F_DUPFD, 100) for n in sys.argv[1].split(',')]\n" \
            "for i, fd in enumerate(high): os.dup2(fd, 3 + i)\n" \
            "os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(len(high)))\n" \
            "os.execv(sys.argv[2], sys.argv[2:])"
    with tempfile.TemporaryFile("w+") as log:
        numbers = [one.fileno() for one in passed.values()]
        process = subprocess.Popen(
            ["/usr/bin/python3", "-c", start, ",".join(map(str, numbers)),
             os.path.join(ctx.options.build, "mcp-python-web"), "--system", *args],
            env={"PATH": "/usr/bin:/bin", "LISTEN_FDNAMES": ":".join(passed)}, pass_fds=numbers,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log, text=True, user=user, group=user,
            extra_groups=[] if user else None)
        for one in passed.values():
            one.close()
        with ended(process, log):
            yield address
        equal(process.returncode, 0)


@contextlib.contextmanager
def login_of(ctx, directory, *args, user=None):
    """"mcp-python web login" of a user."""
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            [os.path.join(ctx.options.build, "mcp-python"), "web", "login", "--socket",
             os.path.join(directory.path, "login"), "--admin-socket", directory.socket, *args],
            env={**os.environ, "MCP_PYTHOND": os.path.join(ctx.options.build, "mcp-pythond")},
            stdout=subprocess.PIPE, stderr=log, text=True, user=user, group=user,
            extra_groups=[] if user else None)
        with ended(process, log):
            yield Console(process)


@contextlib.contextmanager
def served(ctx, more="", *args, env=None):
    """(service, its log, console, a browser that is logged in)"""
    with Directory() as d, Log(ctx) as log:
        with ctx.private(d.config(log.config() + more)) as service, \
                console_of(ctx, d, "--audit-file", log.path, *args, env=env) as console:
            yield service, log, console, console.browser()
