# SPDX-License-Identifier: Apache-2.0
"""mcp-python-gateway: lets clients that do not speak MCP run Python in the jails of mcp-pythond.

Each dialect is a module: jupyter (kernels), run_code (SandboxFusion), librechat (its Code API).
"""

import asyncio
import hashlib
import ipaddress
import os
import pathlib
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from aiohttp import web

import e2b
import jupyter
import librechat
import run_code
from lines import program
from options import EX_UNAVAILABLE, EX_USAGE, Arguments
from server import Gateway, application, end_silent
from service import Service

SYSTEM_SOCKET = "/run/mcp-pythond/http.sock"
DIALECTS = {"e2b": e2b, "jupyter": jupyter, "librechat": librechat, "run_code": run_code}
START_SECONDS = 20
ACTIVATED = 3			# the first descriptor that systemd passes


def fail(text, code=EX_UNAVAILABLE):
    print("%s: %s" % (os.path.basename(sys.argv[0]), text), file=sys.stderr)
    sys.exit(code)


def arguments(version):
    p = Arguments(
        prog="mcp-python gateway", add_help=False,
        description="Let clients that do not speak MCP run Python in the jails of mcp-pythond.",
        epilog="Exit codes: 0 ended as asked, 64 wrong usage, 69 no service. See mcp-python-gateway(8).")
    p.add_argument("--listen", metavar="ADDR:PORT",
                   help="where to serve (127.0.0.1:8888; port 0: any free one)")
    p.add_argument("--service", metavar="PLACE",
                   help="the service's HTTP socket, or the URL of its MCP; otherwise "
                        "$MCP_PYTHON_HTTP, then %s, then a private service" % SYSTEM_SOCKET)
    p.add_argument("--private", action="store_true", help="start a service of one's own")
    p.add_argument("--token", metavar="TOKEN", default=os.environ.get("MCP_PYTHON_GATEWAY_TOKEN"),
                   help="the token that clients present (otherwise one is made and printed); "
                        "better in $MCP_PYTHON_GATEWAY_TOKEN, which other users cannot see")
    p.add_argument("--open", action="store_true",
                   help="serve clients on loopback that present no token, as yourself")
    p.add_argument("--tenants", action="store_true",
                   help="clients present tokens of the service; the gateway has none of its own")
    p.add_argument("--dialect", metavar="NAME", action="append", choices=sorted(DIALECTS),
                   help="serve only this one; may be repeated (%s)" % ", ".join(sorted(DIALECTS)))
    p.add_argument("--version", action="version", version="mcp-python-gateway " + version,
                   help="print the version")
    p.add_argument("--help", action="help", help="print this")
    return p.parse_args()


def listening(text):
    """The sockets to serve: systemd's, or one at this address."""
    if os.environ.get("LISTEN_PID") == str(os.getpid()):
        n = int(os.environ.get("LISTEN_FDS", "0"))
        return [socket.socket(fileno=fd) for fd in range(ACTIVATED, ACTIVATED + n)]
    host, _, port = (text or "127.0.0.1:8888").rpartition(":")
    try:
        address = ipaddress.ip_address(host.strip("[]") or "127.0.0.1")
        port = int(port)
        if not 0 <= port < 65536:
            raise ValueError
    except ValueError:
        fail("--listen %s: not an address and a port, such as 127.0.0.1:8888" % text, EX_USAGE)
    sock = socket.socket(socket.AF_INET6 if address.version == 6 else socket.AF_INET)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((str(address), port))
    except OSError as e:
        fail("--listen %s: %s" % (text or "127.0.0.1:8888", e.strerror))
    sock.listen(1024)
    return [sock]


def is_loopback(sock):
    if sock.family == socket.AF_UNIX:
        return False
    return ipaddress.ip_address(sock.getsockname()[0]).is_loopback


# What is different in a service of one's own: input() asks in the notebook, and each sandbox of
# E2B's clients has a volume.
PRIVATE_CONFIG = "[policy]\ninput = allow\n[workspace]\nvolume = yes\nvolumes = 16\n" \
                 "directory = %s/volumes\n"


class PrivateService:
    """A service of one's own, which ends with the gateway. It does not read the configuration of
    the system's service, most of which is not for an ordinary user."""

    def __init__(self, beside):
        self.dir = tempfile.mkdtemp(prefix="mcp-python-gateway-",
                                    dir=os.environ.get("XDG_RUNTIME_DIR"))
        self.place = os.path.join(self.dir, "http.sock")
        config = pathlib.Path(self.dir, "config")
        config.write_text(PRIVATE_CONFIG % self.dir)
        # In a group of its own: Ctrl-C of a terminal is for the gateway, which closes kernels first.
        path = program(beside)
        if not path:
            fail("mcp-pythond is not installed, and no service answers at " + SYSTEM_SOCKET)
        self.process = subprocess.Popen(
            [path, "--socket", os.path.join(self.dir, "mcp.sock"),
             "--http-socket", self.place, "--config", config],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True)
        late = time.monotonic() + START_SECONDS
        while not os.path.exists(self.place):
            if self.process.poll() is not None or time.monotonic() > late:
                self.end()
                fail("the private service did not start; its reason is above")
            time.sleep(0.02)

    def end(self):
        self.process.terminate()
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)


def find_service(args, beside):
    """(place, PrivateService or None)"""
    place = args.service or os.environ.get("MCP_PYTHON_HTTP")
    if args.private and not place:
        private = PrivateService(beside)
        return private.place, private
    if place:
        return place, None
    if os.path.exists(SYSTEM_SOCKET):
        return SYSTEM_SOCKET, None
    if args.tenants:
        fail("no service at %s; --service names another place" % SYSTEM_SOCKET)
    private = PrivateService(beside)
    return private.place, private


def notify(text):
    """For systemd (sd_notify(3))."""
    place = os.environ.get("NOTIFY_SOCKET")
    if place:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.sendto(text.encode(), place.replace("@", "\0", 1))


def greet(sockets, token, is_open):
    for sock in sockets:
        if sock.family == socket.AF_UNIX:
            continue
        host, port = sock.getsockname()[:2]
        url = "http://%s:%d" % ("[%s]" % host if ":" in host else host, port)
        print("serving %s" % url, flush=True)
        if token:
            print("  Jupyter server:  %s/?token=%s" % (url, token))
            print("  run_code:        %s/run_code" % url)
            print("  LibreChat:       LIBRECHAT_CODE_BASEURL=%s/v1" % url)
            print("  E2B:             E2B_API_URL=%s E2B_SANDBOX_URL=%s" % (url, url))
            print("  token:           %s%s" % (token, " (not needed here)" if is_open else ""),
                  flush=True)


async def serve(args, sockets, place, token, version):
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    async with Service(place, version) as service:
        gateway = Gateway(service, token, args.open)
        gateway.name = hashlib.sha256(repr([s.getsockname() for s in sockets]).encode()).hexdigest()[:8]
        names = args.dialect or sorted(DIALECTS)
        app = application(gateway, {name: DIALECTS[name] for name in names},
                          loopback_only=all(map(is_loopback, sockets)))
        runner = web.AppRunner(app, access_log=None, auto_decompress=False)
        await runner.setup()
        silent = asyncio.create_task(end_silent(runner.server))
        for sock in sockets:
            await web.SockSite(runner, sock, backlog=1024, shutdown_timeout=5).start()
        greet(sockets, token, args.open)
        notify("READY=1")
        await ended.wait()
        notify("STOPPING=1")
        silent.cancel()
        await runner.cleanup()


def main(version, beside, _bindir):
    """beside: the directory of the program, where a build tree has the service, too."""
    args = arguments(version)
    sockets = listening(args.listen)
    loopback = all(map(is_loopback, sockets))
    if args.open and not loopback:
        fail("--open: only on loopback, because everybody who can connect would be you", EX_USAGE)
    if args.tenants and (args.open or args.token):
        fail("--tenants: --open and --token are for a gateway of one user", EX_USAGE)
    token = None if args.tenants else args.token or secrets.token_urlsafe(24)
    place, private = find_service(args, beside)
    try:
        asyncio.run(serve(args, sockets, place, token, version))
    except KeyboardInterrupt:
        pass
    finally:
        if private:
            private.end()

