#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Files of the user's machine as input, below the directories that the client offers (--roots).

A suite of tests/integration/run."""

import contextlib
import ctypes
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
import threading

from harness import FEW_MODULES, SOMEBODY, equal, main, test
from mcpclient import LEGACY, MODERN, RpcError
from person import Person
from waits import libc, until

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

    def call_answering(self, name, arguments):
        """The structured content of the answer."""
        call, back = {"name": name, "arguments": arguments}, {}
        while True:
            result = self.ask("tools/call", {**call, **back})
            if not self.modern or result["resultType"] != "input_required":
                return result["structuredContent"]
            back = {"requestState": result["requestState"], "inputResponses": {
                key: self.result_of(request) for key, request in result["inputRequests"].items()}}

    def take_file(self, path):
        """(status, message, uri)"""
        told = self.call_answering("local_file", {"path": path})
        return told["status"], told["message"], told.get("uri")

    def save_file(self, uri, path):
        """(status, message, path)"""
        told = self.call_answering("save_file", {"path": path, "uri": uri})
        return told["status"], told["message"], told.get("path")

    def make_file(self, size, name="made.bin"):
        """Its uri, and its content."""
        content = b"made:" + b"m" * (size - 5)
        answer = self.ask("tools/call", {"name": "run_script", "arguments": {
            "script": "open(%r, 'wb').write(b'made:' + b'm' * %d)" % (name, size - 5)}})["structuredContent"]
        file, = answer["files"]
        return file["uri"], content


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
            assert not {"local_file", "save_file"} & {t["name"] for t in c.ask("tools/list")["tools"]}
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


def content_of(path):
    with open(path, "rb") as f:
        return f.read()


def config(directory, text):
    """The options for a service with this configuration."""
    put(directory + "/conf", text)
    return ("--roots", "--config", directory + "/conf")


def records(directory):
    with open(directory + "/state/audit", encoding="utf-8") as f:
        return [r for r in map(json.loads, f) if r["event"].startswith("local-file-")]


@test(private=True)
def a_user_gets_a_file(ctx):
    """One that is kept in memory, and one that is on disk. What is there is never replaced: a link, a FIFO and
    a directory are not followed either, and the new file gets a number."""
    for revision in (LEGACY[-1], MODERN):
        with place() as (directory, home):
            os.mkdir(home + "/a b")
            own(home + "/a b")
            with client(ctx, directory, directory + "/outside", home + "/", revision=revision) as c:
                for size in (5, 1000, 12 * MIB):
                    uri, content = c.make_file(size)
                    to = "%s/a b/of %d.tar" % (home, size)
                    status, message, path = c.save_file(uri, to)
                    equal((status, path), ("ok", to), message)
                    form = c.forms.pop()
                    assert to in form and "\n%d bytes" % size in form, form
                    equal(content_of(to), content)
                    equal(os.stat(to).st_mode & 0o111, 0)
                    equal(c.save_file(uri, "file://" + to.replace(" ", "%20"))[::2],
                          ("ok", "%s/a b/of %d-1.tar" % (home, size)))
                    put(to, "mine")
                    equal(c.save_file(uri, to)[2], "%s/a b/of %d-2.tar" % (home, size))
                    equal((content_of(to), content_of("%s/a b/of %d-2.tar" % (home, size))), (b"mine", content))
                os.symlink("../outside/new", home + "/link")
                os.mkfifo(home + "/fifo")
                os.mkdir(home + "/d")
                for name in ("link", "fifo", "d"):
                    equal(c.save_file(uri, home + "/" + name)[2], home + "/" + name + "-1")
                equal((os.listdir(directory + "/outside"), os.listdir(home + "/d")), ([], []))
                for n in range(1, 21):
                    put("%s/full-%d" % (home, n))
                put(home + "/full")
                status, message, _ = c.save_file(uri, home + "/full")
                equal((status, "names that were tried" in message), ("error", True), message)


@test(private=True)
def nothing_is_written_without_the_user(ctx):
    with place() as (directory, home):
        os.mkdir(home + "/d")
        own(home + "/d")
        os.symlink("../outside", home + "/out")
        os.symlink("home", directory + "/also")
        put(home + "/file")
        with client(ctx, directory, home) as c:
            uri, _ = c.make_file(1000)
            large, _ = c.make_file(12 * MIB)
            before = sorted(os.listdir(home))
            for c.reply in ({"action": "decline"}, {"action": "cancel"}, {"action": "accept", "content": {"allow": False}}):
                equal(c.save_file(uri, home + "/new")[::2], ("denied", None))
            c.reply, c.forms = YES, []
            for path in (directory + "/outside/new", home, home + "/", home + "/../outside/new", home + "//new", "new",
                         home + "/new\n", home + "/%2e%2e/outside/new", home + "/new%0a", home + "/new%00", home + "/.new",
                         home + "/.d/new", home + "/d/.new", "https://x" + home + "/new"):
                for name in ("file://" + path, *([path] if "%" not in path else [])):
                    equal(c.save_file(uri, name)[::2], ("error", None), name)
            for roots in (["https://x" + home], ["file://elsewhere" + home], ["ftp://" + home, 7, None], [],
                          ["file://%s/%%00" % home], ["file:///"]):
                c.roots = roots
                equal(c.save_file(uri, home + "/new")[::2], ("error", None), roots)
            c.roots = ["file://" + home]
            equal(c.save_file(uri + "x", home + "/new")[::2], ("error", None))
            equal(c.forms, [])
            for one in (uri, large):
                for name, text in (("none/new", "No such file"), ("out/new", "Not a directory"), ("out/d/new", "symbolic link"), ("file/new", "Not a directory"),
                                   ("d/" + "n" * 256, "name too long")):
                    status, message, path = c.save_file(one, home + "/" + name)
                    equal((status, path, text in message), ("error", None, True), message)
            # the root itself has become a link
            c.roots = ["file://" + directory + "/also"]
            for status, message, _ in (c.save_file(uri, directory + "/also/new"), c.take_file(directory + "/also/file")):
                equal((status, "real path" in message), ("error", True), message)
            # no file system of files, and no right to write
            c.roots = ["file:///proc/self", "file:///dev", "file:///"]
            for name in ("/proc/self/new", "/dev/new", "/new"):
                equal(c.save_file(uri, name)[::2], ("error", None), name)
            equal((sorted(os.listdir(home)), os.listdir(directory + "/outside")), (before, []))
        for abilities in ({}, {"roots": {}}, {"elicitation": {"form": {}}}):
            with client(ctx, directory, home, capabilities=abilities) as c:
                uri, _ = c.make_file(10)
                status, message, _ = c.save_file(uri, home + "/new")
                equal((status, "(roots)" in message, "as a resource" in message), ("error", True, True), message)
        equal(sorted(os.listdir(home)), before)


@test(private=True)
def odd_and_late_forms(ctx):
    """A form with other values than it asked for is no consent, and neither is one that comes when the call is
    over."""
    odd = ({"action": "accept"}, {"action": "accept", "content": None}, {"action": "accept", "content": {}},
           {"action": "accept", "content": {"allow": "true"}}, {"action": "accept", "content": {"allow": 1}},
           {"action": "accept", "content": {"allow": [True]}}, {"action": "accept", "content": [True]},
           {"action": ["accept"], "content": {"allow": True}}, {"action": "maybe", "content": {"allow": True}}, {})
    with place() as (directory, home):
        put(home + "/file")
        options = config(directory, "[mcp]\nask_seconds = 1\n")
        for ask in (lambda c, uri: c.save_file(uri, home + "/new"), lambda c, uri: c.take_file(home + "/file")):
            with client(ctx, directory, home) as c:
                uri, _ = c.make_file(1000)
                for c.reply in odd:
                    assert ask(c, uri)[0] in ("denied", "error"), c.reply
                equal(len(c.forms), len(odd))
            with client(ctx, directory, home, options=options) as c:
                uri, _ = c.make_file(1000)
                held, send = [], c.answer
                c.answer = lambda message, result, send=send, held=held: held.append((message, result)) \
                    if message["method"].startswith("elicitation") else send(message, result)
                while not held:			# the list of roots may be late too, on a slow machine
                    equal(ask(c, uri)[0], "denied")
                c.answer = send
                send(*held[0])
                c.ask("ping")			# it has been read now
                equal(sorted(os.listdir(home)), ["file"])


@test(private=True)
def each_file_is_in_the_audit_log(ctx):
    """The decision first, and what came of it: path, size and hash."""
    with place() as (directory, home):
        put(home + "/in.csv", "1,2\n")
        os.symlink("in.csv", home + "/link")
        options = config(directory, "[audit]\nfile = %s/state/audit\njournal = no\non_failure = stop\nsync = yes\n" % directory)
        with client(ctx, directory, home, options=options) as c:
            uri, content = c.make_file(1000)
            taken = c.take_file(home + "/in.csv")[2]
            c.save_file(uri, home + "/out")
            c.save_file(uri, home + "/out")
            c.take_file(home + "/link")
            c.reply = {"action": "decline"}
            c.save_file(uri, home + "/denied")
            c.take_file(home + "/in.csv")
            c.take_file(directory + "/outside/f")
        sums = {"in": hashlib.sha256(b"1,2\n").hexdigest(), "out": hashlib.sha256(content).hexdigest()}
        decided = [r for r in records(directory) if r["event"] == "local-file-decided"]
        equal([(r["tool"], r["path"], r["result"], r.get("root")) for r in decided], [
            ("local_file", home + "/in.csv", "allowed", home), ("save_file", home + "/out", "allowed", home),
            ("save_file", home + "/out", "allowed", home), ("local_file", home + "/link", "allowed", home),
            ("save_file", home + "/denied", "denied", home), ("local_file", home + "/in.csv", "denied", home),
            ("local_file", directory + "/outside/f", "error", None)])
        equal([r.get("sha256") for r in decided], [None, sums["out"], sums["out"], None, sums["out"], None, None])
        ended = [r for r in records(directory) if r["event"] == "local-file-ended"]
        equal([(r["path"], r.get("uri"), r.get("size"), r.get("sha256")) for r in ended], [
            (home + "/in.csv", taken, 4, sums["in"]), (home + "/out", uri, 1000, sums["out"]),
            (home + "/out-1", uri, 1000, sums["out"]), (home + "/link", None, None, None)])
        equal([r["result"] == "ok" for r in ended], [True, True, True, False])
        assert "symbolic link" in ended[3]["result"], ended[3]


@test(private=True)
def nothing_happens_without_its_record(ctx):
    """With on_failure = stop, if the audit log cannot be written."""
    with place() as (directory, home):
        put(home + "/in")
        os.mkdir(directory + "/audit")
        own(directory + "/audit")
        options = config(directory, "[audit]\nfile = %s/audit/log\njournal = no\non_failure = stop\n" % directory)
        with client(ctx, directory, home, options=options) as c:
            uri, _ = c.make_file(1000)
            os.rename(directory + "/audit", directory + "/aside")
            until("the service sees it", lambda: b"audit-replaced err=ENOENT" in content_of(directory + "/log"))
            for status, message, _ in (c.save_file(uri, home + "/out"), c.take_file(home + "/in")):
                equal((status, message), ("error", "the audit log cannot be written"))
            os.rename(directory + "/aside", directory + "/audit")
            equal(os.listdir(home), ["in"])


if __name__ == "__main__":
    main(__doc__, modules=FEW_MODULES)
