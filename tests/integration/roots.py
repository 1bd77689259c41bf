#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Files of the user's machine as input, below the directories that the client offers (--roots).

A suite of tests/integration/run."""

import contextlib
import ctypes
import os
import shutil
import subprocess
import tempfile
import threading

from harness import FEW_MODULES, SOMEBODY, equal, main, test
from mcpclient import LEGACY, MODERN, RpcError
from person import Person
from waits import libc

MIB = 1 << 20
RENAME_EXCHANGE = 2
ABILITIES = {"elicitation": {"form": {}}, "roots": {}}
YES = {"action": "accept", "content": {"allow": True}}


class Owner(Person):
    """A client that lists directories, and whose user answers forms with reply."""

    def begin_as(self, revision, capabilities):
        self.roots, self.reply, self.forms = [], YES, []
        super().begin_as(revision, capabilities)

    def result_of(self, request):
        if request["method"] == "roots/list":
            return {"roots": [{"uri": uri} for uri in self.roots]}
        self.forms.append(request["params"]["message"])
        return self.reply

    def take_message(self, message, size):
        if message.get("method") in ("roots/list", "elicitation/create") and not self.modern:
            self.answer(message, self.result_of(message))
        else:
            super().take_message(message, size)

    def take_file(self, path):
        """(status, message, uri)"""
        call, back = {"name": "local_file", "arguments": {"path": path}}, {}
        while True:
            result = self.ask("tools/call", {**call, **back})
            if not self.modern or result["resultType"] != "input_required":
                break
            back = {"requestState": result["requestState"], "inputResponses": {
                key: self.result_of(request) for key, request in result["inputRequests"].items()}}
        told = result["structuredContent"]
        return told["status"], told["message"], told.get("uri")


@contextlib.contextmanager
def place():
    """A directory with home, which is SOMEBODY's if root runs the tests."""
    directory = tempfile.mkdtemp(prefix="roots-")
    os.chmod(directory, 0o755)
    for name in ("home", "state", "outside"):
        os.mkdir(os.path.join(directory, name))
        own(os.path.join(directory, name))
    try:
        yield directory, os.path.join(directory, "home")
    finally:
        shutil.rmtree(directory)


def own(path):
    if os.getuid() == 0:
        os.lchown(path, SOMEBODY, SOMEBODY)


def put(path, content="x"):
    with open(path, "wb") as f:
        f.write(content.encode() if isinstance(content, str) else content)
    own(path)


@contextlib.contextmanager
def client(ctx, directory, *roots, revision=LEGACY[-1], capabilities=None, options=("--roots",)):
    become = ["setpriv", "--reuid", str(SOMEBODY), "--regid", str(SOMEBODY), "--clear-groups"]
    with open(directory + "/log", "ab") as log, Owner.spawn(
            [*(become if os.getuid() == 0 else []), os.path.join(ctx.options.build, "mcp-pythond"),
             "--stdio", *options], None, ctx.seconds(60), stderr=log, env={
                 **os.environ, "XDG_STATE_HOME": directory + "/state", "HOME": directory + "/state",
                 "ASAN_OPTIONS": "detect_leaks=0"}) as c:
        c.begin_as(revision, ABILITIES if capabilities is None else capabilities)
        c.roots = ["file://" + root for root in roots]
        yield c


def read(c, uri):
    """What a script finds in the file: its size, and the first bytes."""
    call = {"name": "run_script", "arguments": {
        "script": "d = open('in', 'rb').read()\n(len(d), d[:6])", "files": [{"path": "in", "uri": uri}]}}
    result = c.ask("tools/call", call)
    equal(result["structuredContent"]["status"], "ok", result)
    return eval(result["structuredContent"]["result"]["repr"])


@test(private=True)
def a_user_gives_a_file(ctx):
    """In both eras; the form has the path. What comes is a copy, and the script can read it."""
    for revision in (LEGACY[-1], MODERN):
        with place() as (directory, home):
            os.mkdir(home + "/a b")
            put(home + "/a b/data.csv", "hello,1\n")
            put(home + "/large", b"large!" + bytes(20 * MIB))
            with client(ctx, directory, directory + "/outside", home + "/", revision=revision) as c:
                for name in (home + "/a b/data.csv", "file://%s/a%%20b/data.csv" % home,
                             "file://localhost%s/a b/data.csv" % home):
                    status, message, uri = c.take_file(name)
                    equal(status, "ok", message)
                    assert home + "/a b/data.csv" in c.forms.pop(), c.forms
                    equal(read(c, uri), (8, b"hello,"))
                status, message, uri = c.take_file(home + "/large")
                equal((status, read(c, uri)), ("ok", (20 * MIB + 6, b"large!")), message)
                os.remove(home + "/large")
                equal(read(c, uri)[0], 20 * MIB + 6)


@test(private=True)
def nothing_is_taken_without_the_user(ctx):
    with place() as (directory, home):
        put(home + "/f")
        put(directory + "/outside/f")
        with client(ctx, directory, home) as c:
            for c.reply in ({"action": "decline"}, {"action": "cancel"},
                            {"action": "accept", "content": {"allow": False}}):
                equal(c.take_file(home + "/f")[::2], ("denied", None))
            c.reply, c.forms = YES, []
            for path, roots in ((directory + "/outside/f", [home]), (home + "/f", []), (home + "/f", ["/"]),
                                (home + "/f", [home[:-1]]), (home, [home]), (home + "/f", [home + "/f"]),
                                (home + "/../outside/f", [home]), (home + "/%2e%2e/outside/f", [home]),
                                (home + "/./f", [home]), (home + "//f", [home]), ("f", [home]),
                                (home + "/f\n", [home]), (home + "/f\u202e", [home])):
                c.roots = ["file://" + root for root in roots]
                for name in ("file://" + path, *([path] if "%" not in path else [])):
                    equal(c.take_file(name)[::2], ("error", None), name)
            c.roots = ["https://x" + home, "file://elsewhere" + home, "file://%s/%%00" % home, 7, None]
            equal(c.take_file(home + "/f")[0], "error")
            equal(c.forms, [])
        for abilities in ({}, {"roots": {}}, {"elicitation": {"form": {}}}):
            with client(ctx, directory, home, capabilities=abilities) as c:
                status, message, _ = c.take_file(home + "/f")
                equal(status, "error")
                assert "(roots)" in message, message
        with client(ctx, directory, home, options=()) as c:
            assert "local_file" not in [t["name"] for t in c.ask("tools/list")["tools"]]
            try:
                c.take_file(home + "/f")
            except RpcError as e:
                equal(e.code, -32602)
            else:
                raise AssertionError("it is there without --roots")
    done = subprocess.run([os.path.join(ctx.options.build, "mcp-pythond"), "--roots"], capture_output=True,
                          text=True, timeout=ctx.seconds(60))
    equal(done.returncode, 2, done.stderr)


@test(private=True)
def only_regular_files_of_the_user(ctx):
    """No link is followed, nothing waits for a FIFO, and a file has a size."""
    with place() as (directory, home):
        put(directory + "/outside/secret", "SECRET")
        os.symlink("../outside/secret", home + "/link")
        os.symlink("../outside", home + "/dir")
        os.symlink("/proc/self/root" + directory + "/outside", home + "/magic")
        os.mkfifo(home + "/fifo")
        own(home + "/fifo")
        put(home + "/empty", "")
        put(home + "/huge", "")
        with open(home + "/huge", "r+b") as f:
            f.truncate(256 * MIB + 1)
        if os.getuid() == 0:
            put(home + "/roots")
            os.chown(home + "/roots", 0, 0)
            os.chmod(home + "/roots", 0o600)
        with client(ctx, directory, home, "/proc", "/dev") as c:
            for name, text in (("link", "symbolic link"), ("dir/secret", "symbolic link"),
                               ("magic/secret", "symbolic link"), ("fifo", "no regular file"),
                               (".", "absolute"), ("none", "No such file"), ("empty", "has 0"),
                               ("huge", "has %d" % (256 * MIB + 1)),
                               *([("roots", "Permission denied")] if os.getuid() == 0 else [])):
                status, message, uri = c.take_file(home + "/" + name)
                equal((status, uri), ("error", None), name)
                assert text in message, (name, message)
            for name in ("/proc/self/root" + directory + "/outside/secret", "/proc/1/environ", "/dev/null",
                         "/proc/self/fd/0", "/proc/version"):
                equal(c.take_file(name)[0], "error", name)


@test(private=True)
def files_that_change_meanwhile(ctx):
    """A directory that is exchanged for a link, and a file that grows and shrinks: the copy is of the
    size that was read first, or there is none."""
    with place() as (directory, home):
        put(directory + "/outside/f", "SECRET")
        os.mkdir(home + "/d")
        own(home + "/d")
        put(home + "/d/f", "inside")
        os.symlink("../outside", home + "/e")
        done = threading.Event()

        def change():
            n = 0
            while not done.is_set():
                n += 1
                libc.renameat2(-100, (home + "/d").encode(), -100, (home + "/e").encode(),
                               ctypes.c_uint(RENAME_EXCHANGE))
                with open(home + "/grows", "ab" if n % 50 else "wb") as f:
                    f.write(b"g" * 1000)
        put(home + "/grows", "g")
        with client(ctx, directory, home) as c:
            thread = threading.Thread(target=change)
            thread.start()
            try:
                for _ in range(ctx.count(30)):
                    status, message, uri = c.take_file(home + "/d/f")
                    assert status == "error" or read(c, uri) == (6, b"inside"), message
                    status, message, uri = c.take_file(home + "/grows")
                    assert status == "error" or read(c, uri)[1] == b"gggggg", message
            finally:
                done.set()
                thread.join()


if __name__ == "__main__":
    main(__doc__, modules=FEW_MODULES)
