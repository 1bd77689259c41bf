# SPDX-License-Identifier: Apache-2.0
"""A kernel for local Jupyter programs: JupyterLab, VS Code, nbconvert, papermill, qtconsole.

They start this program for each notebook and speak ZeroMQ with it; it runs the cells in a session
of mcp-pythond. On pyzmq alone, so that it starts fast.
"""

import asyncio
import collections
import hashlib
import hmac
import json
import os
import signal
import sys

from calls import ServiceError
from hosted import Hosted
from jupyter_wire import PARTS
from kernel import Kernel
from lines import LineService
from options import EX_UNAVAILABLE, Arguments

DELIMITER = b"<IDS|MSG>"
SEEN_MAX = 65536		# signatures of messages that must not come twice
CHANNELS = ("shell", "control", "stdin")


class Wire:
    """The five sockets of a connection file."""

    def __init__(self, connection):
        import zmq.asyncio	# not for --spec, which a build calls
        if connection.get("signature_scheme", "hmac-sha256") != "hmac-sha256":
            raise ValueError("signature_scheme %r is not known" % connection["signature_scheme"])
        self.key = connection["key"].encode()
        self.seen = collections.OrderedDict()
        context = zmq.asyncio.Context()
        self.sockets = {}
        for name, kind in (("shell", zmq.ROUTER), ("control", zmq.ROUTER), ("stdin", zmq.ROUTER),
                           ("iopub", zmq.PUB), ("hb", zmq.ROUTER)):
            sock = context.socket(kind)
            sock.linger = 1000
            port = connection[name + "_port"]
            separator = ":" if connection["transport"] == "tcp" else "-"
            sock.bind("%s://%s%s%s" % (connection["transport"], connection["ip"], separator, port))
            self.sockets[name] = sock
        self.context = context

    def sign(self, parts):
        digest = hmac.new(self.key, digestmod=hashlib.sha256)
        for part in parts:
            digest.update(part)
        return digest.hexdigest().encode()

    def pack(self, identities, message):
        parts = [json.dumps(message[p]).encode() for p in PARTS]
        return [*identities, DELIMITER, self.sign(parts) if self.key else b"", *parts]

    def unpack(self, frames):
        """(identities, message). ValueError, IndexError, RecursionError: not a message of somebody who
        has the key."""
        at = frames.index(DELIMITER)
        signature, parts = frames[at + 1], frames[at + 2:at + 2 + len(PARTS)]
        if len(parts) != len(PARTS):
            raise ValueError("too few parts")
        if self.key:
            if not hmac.compare_digest(signature, self.sign(parts)) or signature in self.seen:
                raise ValueError("wrong signature")
            self.seen[signature] = True
            while len(self.seen) > SEEN_MAX:
                self.seen.popitem(last=False)
        message = dict(zip(PARTS, map(json.loads, parts)))
        if not all(isinstance(message[p], dict) for p in PARTS) or \
                not isinstance(message["header"].get("msg_type"), str):
            raise ValueError("not a message")
        return frames[:at], message


class Client:
    """Who sent a request, as Hosted wants clients."""

    def __init__(self, program, identities):
        self.program, self.identities = program, identities
        self.answers, self.gone = program.answers, False

    def put(self, channel, message):
        self.program.send(channel, self.identities, message)


class Program(Hosted):
    """The kernel of this process."""

    def __init__(self, service, wire):
        super().__init__(Kernel(service))
        self.wire, self.answers = wire, {}
        self.over = asyncio.Event()
        self.clients = [self]		# what is published goes to the one socket for it
        self.tasks = [asyncio.create_task(self.read(c)) for c in CHANNELS]
        self.tasks.append(asyncio.create_task(self.beat()))
        self.last = asyncio.get_running_loop().create_future()
        self.last.set_result(None)

    def put(self, channel, message):
        self.send(channel, [message["header"]["msg_type"].encode()], message)

    def send(self, channel, identities, message):
        # In order: a socket of zmq.asyncio sends at once unless its queue is full.
        self.last = asyncio.ensure_future(
            self.wire.sockets[channel].send_multipart(self.wire.pack(identities, message)))

    async def read(self, channel):
        while True:
            frames = await self.wire.sockets[channel].recv_multipart()
            try:
                identities, message = self.wire.unpack(frames)
            except (ValueError, IndexError, RecursionError) as e:
                print("mcp-python kernel: %s: %s" % (channel, e), file=sys.stderr)
                continue
            self.take(Client(self, identities), channel, message, None)

    async def beat(self):
        socket = self.wire.sockets["hb"]
        while True:
            await socket.send_multipart(await socket.recv_multipart())

    async def end(self, token, restart=False):
        """A restart is a new process."""
        await super().end(token)

    def ended(self):
        self.over.set()


async def run(args, version, beside):
    with open(args.file, encoding="utf-8") as f:
        wire = Wire(json.load(f))
    service = await LineService(version).connect(beside, args.socket, args.private)
    program = Program(service, wire)
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, program.interrupt)
    loop.add_signal_handler(signal.SIGTERM, program.over.set)
    await program.start(None)
    await program.over.wait()
    await asyncio.wait([program.last], timeout=1)
    for task in program.tasks:
        task.cancel()
    await service.close()
    wire.context.destroy(linger=1000)


def kernelspec(bindir):
    return json.dumps({"argv": [os.path.join(bindir, "mcp-python"), "kernel", "-f",
                                "{connection_file}"],
                       "display_name": "Python (jailed)", "language": "python",
                       "interrupt_mode": "message", "metadata": {"debugger": False}}, indent=1)


def install(bindir):
    """Writes the file by which this user's Jupyter programs find the kernel."""
    base = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    folder = os.path.join(base, "jupyter", "kernels", "mcp-python")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "kernel.json"), "w", encoding="utf-8") as f:
        print(kernelspec(bindir), file=f)
    print("installed %s/kernel.json; Jupyter shows it as \"Python (jailed)\"" % folder)


def main(version, beside, bindir):
    """beside: the directory of the program; bindir: that of mcp-python."""
    p = Arguments(
        prog="mcp-python kernel", add_help=False,
        description="A kernel for Jupyter programs whose cells run in a jail of mcp-pythond. "
                    "They start it by themselves, once it is installed with --install.")
    p.add_argument("--file", "-f", metavar="FILE", help="the connection file")
    p.add_argument("--install", action="store_true",
                   help="show the kernel to your Jupyter programs; a package does this for all users")
    p.add_argument("--spec", metavar="DIR",
                   help="print the kernel's description for Jupyter, with mcp-python in DIR")
    p.add_argument("--socket", metavar="PATH", help="where the service listens; otherwise as for "
                   "mcp-python connect, or a private one")
    p.add_argument("--private", action="store_true", help="start a service of one's own")
    p.add_argument("--version", action="version", version="mcp-python-kernel " + version,
                   help="print the version")
    p.add_argument("--help", action="help", help="print this")
    args = p.parse_args()
    try:
        if args.install:
            install(bindir)
        elif args.spec:
            print(kernelspec(args.spec))
        elif args.file:
            asyncio.run(run(args, version, beside))
        else:
            p.error("--file or --install is missing")
    except (ServiceError, OSError, ValueError, KeyError) as e:
        print("mcp-python kernel: %s" % (e if str(e) else type(e).__name__), file=sys.stderr)
        return EX_UNAVAILABLE
    return 0
