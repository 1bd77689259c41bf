# SPDX-License-Identifier: Apache-2.0
"""Commands of mcp-python, the unpacker and what mcp-pythond does without serving, for tests/faults/run:
one call fails in a command, which has to work, or to end with a message and another exit code."""

import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile

LINES = "\n".join(json.dumps({"jsonrpc": "2.0", **one}) for one in (
    {"id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}},
    {"method": "notifications/initialized"},
    {"id": 2, "method": "tools/call", "params": {"name": "run_script", "arguments": {"script": "print(6 * 7)"}}},
)) + "\n"

# (name, command, standard input, what it prints). {dir}: a fresh directory; {place}: the service's.
COMMANDS = (
    ("run", "mcp-python run --socket {socket} {files}/six.py", None, r"\A42\n\Z"),
    ("run-files", "mcp-python run --socket {socket} --file {files}/six.py --save {dir}/out --json {files}/six.py",
     None, r'"stdout": ?"42'),
    ("connect", "mcp-python connect --socket {socket}", LINES, r'(?s)"id":1.*"id":2|"id":2'),
    ("repl", "mcp-python repl --socket {socket}", "x = 6\nx * 7\n", r"42"),
    ("private", "mcp-python run --private {files}/six.py", None, r"\A42\n\Z"),
    ("status", "mcp-python status --admin-socket {place}/admin.sock", None, r"audit log"),
    ("metrics", "mcp-python metrics --admin-socket {place}/admin.sock", None, r"# EOF"),
    ("ps", "mcp-python ps --admin-socket {place}/admin.sock", None, r""),
    ("top", "mcp-python top --once --admin-socket {place}/admin.sock", None, r"uid|root"),
    ("approvals", "mcp-python approvals --all --json --admin-socket {place}/admin.sock", None, r""),
    ("tools", "mcp-python tools call up.echo value=7 --admin-socket {place}/admin.sock", None, r"7"),
    ("suspend", "mcp-python suspend --json --admin-socket {place}/admin.sock", None, r""),
    ("verify", "mcp-python audit verify --file {place}/state/audit", None, r"^ok"),
    ("show", "mcp-python audit show --last 3 --file {place}/state/audit", None, r'(?m)\A(\{.*\}\n){3}\Z'),
    ("usage", "mcp-python usage --file {place}/state/audit", None, r"uid|root"),
    ("put", "mcp-python put --socket {socket} {files}/six.py", None, r"\S+://"),
    ("token", "mcp-python token add --file {dir}/tokens ci", None, r"_"),
    ("check-host", "mcp-python check-host --store {dir}", None, r"\S"),
    ("check-config", "mcp-pythond --check-config --config {files}/test.conf", None, r""),
    ("dump-config", "mcp-pythond --dump-config --config {files}/test.conf", None, r"\[pool\]"),
    ("stdio", "mcp-pythond --stdio --config {files}/empty.conf", LINES, r'"id":2'),
    ("image", "mcp-python-unpack --image {files}/image.tar {dir}/out", None, r""),
    ("tree", "mcp-python-unpack --tree {files}/tree.tar {sum} {dir}/out", None, r""),
)
PATIENCE_S = 40
SAYS_SO = r"out of memory|Cannot allocate memory|[Mm]emory"	# of a process that ends by abort()


def tar_of(path, files):
    with tarfile.open(path, "w") as archive:
        for name, data in files:
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(data), 0o755
            archive.addfile(info, io.BytesIO(data))


class Commands:
    """Runs one command after the other, beside a service in which nothing fails."""

    def __init__(self, build, directory, slow):
        self.build, self.slow, self.healthy = build, slow, {}
        self.files, self.dir = (os.path.join(directory, name) for name in ("files", "fresh"))
        os.mkdir(self.files)
        os.chmod(self.files, 0o755)
        self.write("six.py", b"print(6 * 7)\n")
        self.write("test.conf", b"[pool]\nwarm = 1\n")
        self.write("empty.conf", b"[audit]\njournal = no\n")
        self.make_archives()

    def write(self, name, data):
        with open(os.path.join(self.files, name), "wb") as file:
            file.write(data)

    def make_archives(self):
        tree = [("usr/bin/python3", b"#!python"), ("usr/lib/os.py", b"import sys\n" * 4000), ("etc/a", b"b")]
        tar_of(os.path.join(self.files, "tree.tar"), tree)
        with open(os.path.join(self.files, "tree.tar"), "rb") as file:
            layer = file.read()
        self.sum = hashlib.sha256(layer).hexdigest()
        machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)
        config = json.dumps({"os": "linux", "architecture": machine, "rootfs": {
            "type": "layers", "diff_ids": ["sha256:" + self.sum]}}).encode()
        name = hashlib.sha256(config).hexdigest() + ".json"
        manifest = [{"Config": name, "RepoTags": ["one"], "Layers": [self.sum + ".tar"]}]
        tar_of(os.path.join(self.files, "image.tar"), [
            (self.sum + ".tar", layer), (name, config), ("manifest.json", json.dumps(manifest).encode())])

    def run(self, name, service, library):
        """(exit code or None for one that hangs, standard output, standard error, files that it made)."""
        _, command, given, _ = next(one for one in COMMANDS if one[0] == name)
        shutil.rmtree(self.dir, ignore_errors=True)
        os.mkdir(self.dir)
        program, *words = command.format(socket=service.socket, place=service.place, files=self.files,
                                         dir=self.dir, sum=self.sum).split()
        env = dict(os.environ, LD_PRELOAD=library, HOME=self.dir, ASAN_OPTIONS="detect_leaks=0",
                   PYTHONUNBUFFERED="1")
        with subprocess.Popen([os.path.join(self.build, program), *words], env=env, text=True, errors="replace",
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            try:
                out, err = process.communicate(given or "", PATIENCE_S * self.slow)
            except subprocess.TimeoutExpired:
                process.kill()
                out, err = process.communicate()
                return None, out, err, set()
        made = {os.path.relpath(os.path.join(at, one), self.dir)
                for at, folders, files in os.walk(self.dir) for one in (*folders, *files)}
        return process.returncode, out, err, made

    def learn(self, name, service, library):
        """What it does without a fault."""
        self.healthy[name] = self.run(name, service, library)
        return self.healthy[name]

    def judge(self, name, rows, got, where_of=None):
        """What is wrong with one run of it. where_of(row): the frames from which it was called."""
        expected = next(one[3] for one in COMMANDS if one[0] == name)
        code, out, err, made = got
        usual, _, _, files = self.healthy[name]
        if code is None:
            return ["it hangs"]
        if code < 0:
            # libarchive does not check all of its own allocations, and takes no other functions for them.
            is_memory = code == -6 and re.search(SAYS_SO, err) or code == -11 and rows and all(
                row.call == "malloc" and "libarchive" in where_of(row).split()[0] for row in rows)
            return [] if is_memory else ["it ended by signal %d" % -code]
        if code == usual and not re.search(expected, out):
            return ["it ended with %d, and printed %.200r" % (code, out)]
        if code == usual and made != files:
            return ["it ended with %d, and made %.300s, not %.300s" % (code, sorted(made), sorted(files))]
        if code != usual and not (err + out).strip():
            return ["it ended with %d and without a word" % code]
        return []


if __name__ == "__main__":
    sys.exit("run tests/faults/run")
