# SPDX-License-Identifier: Apache-2.0
"""What the programs of this folder share: a private service, calls of its tools, and a session of run_repl."""
import contextlib
import itertools
import json
import pathlib
import socket
import subprocess
import sys
import threading

META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


class Service:
    """A service's process, and one connection to it."""

    def __init__(self, pid, path):
        self.pid = pid
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(path)
        self.file, self.ids = connection.makefile("rwb"), itertools.count(1)

    def call(self, tool, **arguments):
        message = {"jsonrpc": "2.0", "id": next(self.ids), "method": "tools/call",
                   "params": {"name": tool, "arguments": arguments, "_meta": META}}
        self.file.write(json.dumps(message).encode() + b"\n")
        self.file.flush()
        answer = json.loads(self.file.readline())
        if "result" not in answer or answer["result"]["isError"]:
            sys.exit(f"unexpected answer: {answer}")
        return answer["result"]["structuredContent"]


class Session:
    """A session of run_repl."""

    def __init__(self, service, code, **arguments):
        self.service = service
        self.handle = service.call("run_repl", code=code, **arguments)["session"]

    def branch(self):
        """A session that continues where this one is."""
        return Session(self.service, "", session=self.handle, branch=True)

    def cell(self, code, **arguments):
        return self.service.call("run_repl", session=self.handle, code=code, **arguments)

    def end(self):
        self.cell("", close=True)


@contextlib.contextmanager
def start(build, directory, config=""):
    """A service of a build tree, until the end of the block."""
    path, conf = f"{directory}/mcp.sock", f"{directory}/conf"
    pathlib.Path(conf).write_text(config)
    supervisor = subprocess.Popen([build / "mcp-pythond", "--socket", path, "--config", conf], stderr=subprocess.PIPE, text=True)
    try:
        if not any(line.startswith("ready") for line in supervisor.stderr):
            sys.exit("the supervisor did not start")
        threading.Thread(target=supervisor.stderr.read, daemon=True).start()
        yield Service(supervisor.pid, path)
    finally:
        supervisor.terminate()
        supervisor.wait()
