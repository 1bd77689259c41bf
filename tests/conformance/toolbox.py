# SPDX-License-Identifier: Apache-2.0
"""The judges' own npm directories: what a package-lock.json names, installed once and cached.

Cached in $MCP_CACHE, or $XDG_CACHE_HOME/mcp-pythond, or ~/.cache/mcp-pythond, in a directory
that is named after the lock file; it appears there only when it is complete."""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
FILES = ("package.json", "package-lock.json", ".npmrc")
MINUTES = 15
# The messages of npm when the registry cannot be reached. Other failures are errors of this tree.
UNREACHABLE = re.compile(
    r"\b(ENOTFOUND|EAI_AGAIN|EAI_FAIL|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ESOCKETTIMEDOUT|"
    r"EHOSTUNREACH|ENETUNREACH|ENETDOWN|"
    r"ERR_SOCKET_TIMEOUT|UND_ERR_CONNECT_TIMEOUT|FETCH_ERROR|E50[0234])\b")


class Unavailable(Exception):
    """There are no judges here, and why. missing: what a test machine should have."""

    def __init__(self, why, missing=False):
        super().__init__(why)
        self.missing = missing


def cache_root():
    return (os.environ.get("MCP_CACHE") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "mcp-pythond"))


def read(path):
    with open(path, "rb") as f:
        return f.read()


def install(files, into):
    """npm ci in a new directory; no package runs anything while it is installed."""
    for path in files:
        shutil.copy(path, into)
    npm = shutil.which("npm")
    if npm is None:
        raise Unavailable("npm is not installed", missing=True)
    try:
        done = subprocess.run(
            [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1",
             "--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=5000",
             "--fetch-timeout=120000"],
            cwd=into, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace", timeout=MINUTES * 60)
    except subprocess.TimeoutExpired:
        raise Unavailable("npm ci was not done after %d minutes" % MINUTES) from None
    if done.returncode:
        codes = UNREACHABLE.findall(done.stdout)
        if codes:
            raise Unavailable("the npm registry cannot be reached (%s)" % codes[0])
        raise RuntimeError("npm ci: exit status %d\n%s" % (done.returncode, done.stdout[-4000:]))


def prepare(what="."):
    """what: the folder with the lock file, from here. The directory with node_modules in it;
    Unavailable, or RuntimeError when npm fails."""
    files = [os.path.join(HERE, what, name) for name in FILES]
    digest = hashlib.sha256(b"\0".join(map(read, files))).hexdigest()[:16]
    root = cache_root()
    ready = os.path.join(root, "conformance-" + digest)
    os.makedirs(root, exist_ok=True)
    with open(os.path.join(root, "conformance.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.isdir(ready):
            print("installing the judges into %s" % ready, file=sys.stderr, flush=True)
            new = tempfile.mkdtemp(prefix="conformance-new-", dir=root)
            try:
                install(files, new)
                os.rename(new, ready)
            finally:
                shutil.rmtree(new, ignore_errors=True)
    return ready


class Toolbox:
    def __init__(self, directory, home):
        self.modules = os.path.join(directory, "node_modules")
        self.bin = os.path.join(self.modules, ".bin")
        self.env = {k: v for k, v in os.environ.items()
                    if not k.lower().startswith(("npm_config_", "node_", "mcp_"))
                    and not k.lower().endswith("_proxy")}
        self.env.update(HOME=home, NO_COLOR="1", PATH=self.bin + os.pathsep + os.environ["PATH"])
        node = self.run(["node", "--version"], 60)
        if node.returncode or int(node.stdout.lstrip("v").split(".")[0]) < 22:
            raise Unavailable("no Node.js 22 for this machine: %s" % (
                node.stdout.strip() or node.stderr.strip()[:200]))

    def run(self, argv, timeout, cwd=None, env=None):
        """env: what is different from the others' environment."""
        return subprocess.run(argv, env={**self.env, **(env or {})}, cwd=cwd, timeout=timeout, text=True,
                              errors="replace", stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
