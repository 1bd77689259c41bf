#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Files of any size: what a script leaves on disk, how it is read in parts, whose it is, and what
is said of what was not kept.

A suite of tests/integration/run."""

import base64
import contextlib
import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

from harness import FEW_MODULES, SOMEBODY, Skip, equal, main, proto_version, test
from held import held, let_go
from http_client import Closed, Connection
from http_suite import http_private
from mcpclient import Client, RpcError, connect_as
from supervisor import Supervisor, comm, descendants, wait_gone
from waits import at_once, until, until_equal

MIB = 1 << 20
# Bytes that no two places of a file have in common, quickly made and quickly hashed.
WRITE = """
import hashlib, os
os.makedirs('out', exist_ok=True)
block = b''.join(hashlib.sha256(b'%%d' %% i).digest() for i in range(32768))
with open(%r, 'wb') as f:
    for i in range(%d):
        f.write(block[:-1] + bytes([i %% 256]))
None
"""


def content(mebibytes):
    block = b"".join(hashlib.sha256(b"%d" % i).digest() for i in range(32768))
    return b"".join(block[:-1] + bytes([i % 256]) for i in range(mebibytes))


@contextlib.contextmanager
def place():
    """A directory in which the service's user may make a store."""
    directory = tempfile.mkdtemp(prefix="files-")
    os.chmod(directory, 0o755)
    try:
        yield os.path.join(directory, "store")
    finally:
        shutil.rmtree(directory)


@contextlib.contextmanager
def service(ctx, store, more="", before=""):
    with ctx.private("%s[files]\ndirectory = %s\n%s" % (before, store, more)) as s:
        yield s


def connect(ctx, s, uid=None):
    return ctx.client(path=s.socket, uid=uid) if uid else ctx.client(path=s.socket)


def call(client, tool, **arguments):
    return client.outcome(client.request("tools/call", {"name": tool, "arguments": arguments}), 120)


def cell(client, code, session=None, **more):
    o = call(client, "run_repl", code=code, **({"session": session} if session else {}), **more)
    equal(o.status, "ok", o)
    return o


def files_of(o):
    return {f["path"]: f for f in o.structured["files"]}


def bytes_of(answer):
    block = answer["contents"][0]
    return block["text"].encode() if "text" in block else base64.b64decode(block["blob"])


def read(client, uri):
    return bytes_of(client.ask("resources/read", {"uri": uri}))


def is_there(client, uri):
    try:
        read(client, uri + "?bytes=0-9")
        return True
    except RpcError:
        return False


def refused(client, uri, *texts):
    try:
        read(client, uri)
    except RpcError as e:
        assert e.code in (-32002, -32602), e
        for text in texts:
            assert text in str(e), e
        return
    raise AssertionError("%s was read" % uri)


def all_of(client, uri, size):
    parts = []
    while sum(map(len, parts)) < size:
        parts.append(read(client, "%s?bytes=%d-" % (uri, sum(map(len, parts)))))
        assert 0 < len(parts[-1]) <= 4 * MIB
    return b"".join(parts)


def on_disk(store):
    """Sizes of the bytes that are kept, and all names."""
    found = [os.path.join(at, name) for at, _, names in os.walk(store) for name in names]
    sizes = []
    for f in found:
        if not f.endswith((".about", ".new")):
            with contextlib.suppress(FileNotFoundError):	# it goes meanwhile
                sizes.append(os.path.getsize(f))
    return sorted(sizes), found


@test
def a_large_file_comes_back(ctx):
    """20 MiB, in parts; the sum is that of the bytes, and the text says where they are."""
    with place() as store, service(ctx, store) as s, connect(ctx, s) as client:
        o = client.run(WRITE % ("out/large.bin", 20))
        equal(o.status, "ok", o)
        file = files_of(o)["out/large.bin"]
        want = content(20)
        equal((file["size"], file["sha256"]), (len(want), hashlib.sha256(want).hexdigest()))
        assert "kept" not in file and "not kept" not in o.text, o.text
        links = [c for c in o.raw["content"] if c["type"] == "resource_link"]
        equal([link["uri"] for link in links], [file["uri"]])
        equal(all_of(client, file["uri"], len(want)), want)
        # Parts as HTTP counts them: both ends are included.
        equal(read(client, file["uri"] + "?bytes=0-0"), want[:1])
        equal(read(client, file["uri"] + "?bytes=7-1000"), want[7:1001])
        equal(read(client, file["uri"] + "?bytes=%d-%d" % (len(want) - 3, len(want) + 9)), want[-3:])
        refused(client, file["uri"], "20971520 bytes", "4194304", "?bytes=0-4194303")
        refused(client, file["uri"] + "?bytes=0-4194304", "at once")
        refused(client, file["uri"] + "?bytes=%d-" % len(want), "behind its end")
        for bad in ("?", "?bytes", "?bytes=", "?bytes=-5", "?bytes=5-4", "?bytes=1-2x", "?range=0-1",
                    "?bytes=0x1-2", "?bytes=99999999999999999999-", "?bytes=0-1?bytes=0-1"):
            refused(client, file["uri"] + bad)
        listed = {r["uri"]: r for r in client.ask("resources/list")["resources"]}
        equal((listed[file["uri"]]["size"], listed[file["uri"]]["name"]), (len(want), "out/large.bin"))
        equal(on_disk(store)[0], [len(want)])


@test
def parts_of_small_files(ctx):
    """What is in memory is read in parts, too; text stays text."""
    with place() as store, service(ctx, store) as s, connect(ctx, s) as client:
        o = client.run("open('a.txt', 'w').write('0123456789' * 10)\nNone")
        uri = files_of(o)["a.txt"]["uri"]
        equal(client.ask("resources/read", {"uri": uri + "?bytes=10-14"})["contents"][0]["text"], "01234")
        equal(on_disk(store)[0], [])


@test
def cells_leave_large_files(ctx):
    """The session goes on, and the next cell's answer does not have the file again."""
    with place() as store, service(ctx, store) as s, connect(ctx, s) as client:
        o = cell(client, WRITE % ("large.bin", 9) + "x = 1\n")
        session = o.structured["session"]
        file = files_of(o)["large.bin"]
        equal(all_of(client, file["uri"], 9 * MIB), content(9))
        o = cell(client, "x += 1\nx", session)
        equal((o.result["repr"], o.structured["files"]), ("2", []))
        o = cell(client, "open('large.bin', 'ab').write(b'x')\nNone", session)
        equal(files_of(o)["large.bin"]["size"], 9 * MIB + 1)
        assert files_of(o)["large.bin"]["uri"] != file["uri"]
        equal(on_disk(store)[0], [9 * MIB, 9 * MIB + 1])


def mcp_python(ctx, s, *words, **options):
    return subprocess.run([os.path.join(ctx.options.build, "mcp-python"), words[0], "--socket", s.socket, *words[1:]],
                          capture_output=True, timeout=ctx.seconds(120), **options)


LOOK = """
import hashlib
with open(%r, 'rb') as f:
    d = f.read()
len(d), hashlib.sha256(d).hexdigest()
"""


def looked(o):
    equal(o.status, "ok", o)
    return o.structured["result"]["json"]


@test
def a_kept_file_is_mounted(ctx):
    """The next script and cells read a large file where it is, and cannot change it."""
    with place() as store, service(ctx, store) as s, connect(ctx, s) as client:
        left = files_of(client.run(WRITE % ("large.bin", 9)))["large.bin"]
        wanted = [left["size"], left["sha256"]]
        item = {"path": "in/data.bin", "uri": left["uri"]}
        o = client.run(LOOK % "in/data.bin", files=[item, {"path": "small", "text": "1"}])
        equal(looked(o), wanted)
        assert "data.bin" not in files_of(o), o
        o = client.run(CHANGE, files=[item])
        equal(looked(o), [])
        o = client.run("import os; os.remove('in/data.bin'); os.path.exists('in/data.bin')", files=[item])
        equal(looked(o), False)
        equal(looked(client.run(LOOK % "a", files=[{"path": "a", "uri": left["uri"]}])), wanted)
        o = client.run("1", files=[{"path": "a", "uri": left["uri"] + "x"}])
        assert o.refused and "there is no file" in o.text, o


# What a script may try with a mounted file; it gives what it could do.
CHANGE = """
import ctypes, fcntl, mmap, os
path, real, done = 'in/data.bin', os.path.realpath('in/data.bin'), []

def attempt(name, f):
    try:
        f()
        done.append(name)
    except (OSError, ValueError, PermissionError):
        pass

held = os.open(path, os.O_RDONLY)
libc = ctypes.CDLL(None, use_errno=True)

def call(f, *arguments):
    if f(*arguments) != 0:
        raise OSError(ctypes.get_errno(), 'call')

for flags in os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_TRUNC, os.O_WRONLY | os.O_APPEND:
    for name in path, real, '/proc/self/fd/%d' % held, '/dev/fd/%d' % held:
        attempt((flags, name), lambda: os.open(name, flags))
attempt('truncate', lambda: os.truncate(real, 0))
attempt('ftruncate', lambda: os.ftruncate(held, 0))
attempt('write', lambda: os.write(held, b'x'))
attempt('chmod', lambda: os.chmod(real, 0o666))
attempt('fchmod', lambda: os.fchmod(held, 0o666))
attempt('chown', lambda: os.chown(real, os.getuid(), -1))
attempt('utime', lambda: os.utime(real))
attempt('xattr', lambda: os.setxattr(real, 'user.x', b'1'))
attempt('link', lambda: os.link(real, '/workspace/hard'))
attempt('link of a descriptor', lambda: os.link('/proc/self/fd/%d' % held, 'hard', follow_symlinks=True))
attempt('rename', lambda: os.rename(real, '/workspace/moved'))
attempt('unlink', lambda: os.unlink(real))
attempt('beside', lambda: os.open('/kept-files/77', os.O_CREAT | os.O_WRONLY))
attempt('mmap', lambda: mmap.mmap(held, 4096, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE))
attempt('umount', lambda: call(libc.umount2, real.encode(), 2))
attempt('mount', lambda: call(libc.mount, None, real.encode(), None, 32, None))
attempt('lease', lambda: fcntl.fcntl(held, fcntl.F_SETLEASE, fcntl.F_WRLCK))
attempt('up', lambda: os.stat(os.path.join('/proc/self/fd/%d' % held, '..', '..')))
done
"""


@test
def mounted_files_of_a_session(ctx):
    """They stay, each at its own place, and a new one takes no other's."""
    with place() as store, service(ctx, store) as s, connect(ctx, s) as client:
        a = files_of(client.run(WRITE % ("a", 9)))["a"]
        b = files_of(client.run(WRITE % ("b", 10)))["b"]

        def put(code, *files, session=None):
            return cell(client, code, session, files=[{"path": p, "uri": f["uri"]} for p, f in files])

        o = put(LOOK % "x", ("x", a))
        equal(looked(o), [a["size"], a["sha256"]])
        session = o.structured["session"]
        equal(looked(put(LOOK % "y", ("y", b), ("z", a), session=session)), [b["size"], b["sha256"]])
        for name, wanted in ("x", a), ("y", b), ("z", a):
            equal(looked(put(LOOK % name, session=session)), [wanted["size"], wanted["sha256"]])
        # One path may lead to another file later.
        equal(looked(put(LOOK % "x", ("x", b), session=session)), [b["size"], b["sha256"]])
        o = put("import os\nsum(1 for n in os.listdir('/kept-files') if os.path.getsize('/kept-files/' + n))",
                session=session)
        equal(looked(o), 2)


@test
def cells_that_wait_with_files(ctx):
    """Each has room for its files when it is called. One that has none when it runs says so; its
    session and the cells behind it go on."""
    with place() as store, service(ctx, store, before="[pool]\ntenant_running_max = 1\n") as s, \
            connect(ctx, s) as client:
        def put(number):
            p = Putter(ctx, s, b"PUT 1 f%d\n" % number)
            os.write(p.pipe, b"x")
            p.end()
            return {"path": "f%d" % number, "uri": p.answer()["uri"]}

        def cell(code, **more):
            return client.request("tools/call", {"name": "run_repl", "arguments": dict(
                more, code=code, timeout_seconds=600)})

        def of(id):
            return client.wait(id)["structuredContent"]

        files = [put(n) for n in range(80)]
        session = of(cell("x = 1"))["session"]
        branches = [of(cell("x", session=session, branch=True))["session"] for _ in range(2)]
        script = client.start_script(held("waits"))
        ids = [cell("len(open('f39').read())", session=session, files=files[:40]),
               cell("x", session=branches[0], files=files[40:]), cell("x + 1", session=branches[1])]
        client.flush()
        until("they wait", lambda: s.log().count("execution-started") >= 7)
        let_go(ctx, "waits", s)
        client.outcome(script)
        first, second, third = map(of, ids)
        equal((first["status"], first["result"]["repr"]), ("ok", "1"))
        equal(second["status"], "jail_failed")
        assert "more than a session can have" in second["error"]["message"], second
        assert "the session is as it was" in second["state_text"], second
        equal((third["status"], third["result"]["repr"]), ("ok", "2"))
        equal(of(cell("x", session=session))["result"]["repr"], "1")


@test
def a_mounted_file_is_not_removed(ctx):
    """It counts against its tenant and can be read while a session has it, and longer nobody finds it."""
    with place() as store, service(ctx, store, "file_bytes = 16M\ntenant_bytes = 21M\n") as s, \
            connect(ctx, s) as client:
        a = files_of(client.run(WRITE % ("a", 9)))["a"]
        o = cell(client, "None", files=[{"path": "x", "uri": a["uri"]}])
        session = o.structured["session"]
        b = files_of(client.run(WRITE % ("b", 10)))["b"]
        c = files_of(client.run(WRITE % ("c", 11)))["c"]
        assert "uri" in b and "uri" in c, (b, c)
        refused(client, b["uri"])
        equal(looked(cell(client, LOOK % "x", session)), [a["size"], a["sha256"]])
        # The oldest that nobody has went for the third, and the sum is as it may be.
        equal(on_disk(store)[0], [a["size"], c["size"]])


@test
def a_file_that_cannot_be_mounted(ctx):
    """A cell that should have got it fails, and so does the next one that asks for it: nobody gets
    an empty file in its place. What else the session does goes on."""
    with place() as store, service(ctx, store) as s, connect(ctx, s) as client:
        a = files_of(client.run(WRITE % ("a", 9)))["a"]
        b = files_of(client.run(WRITE % ("b", 10)))["b"]
        item = {"path": "x", "uri": a["uri"]}
        session = cell(client, "1").structured["session"]
        for found in on_disk(store)[1]:
            if not found.endswith(".about") and os.path.getsize(found) == a["size"]:
                os.rename(found, found + "-gone")
        for tool, code, more in (("run_repl", "code", {}), ("run_repl", "code", {"session": session}),
                                 ("run_repl", "code", {"session": session}), ("run_script", "script", {})):
            o = call(client, tool, **{code: LOOK % "x"}, files=[item], **more)
            assert o.status == "error" and "an input file" in o.text, o
        equal(looked(cell(client, LOOK % "y", session, files=[{"path": "y", "uri": b["uri"]}])),
              [b["size"], b["sha256"]])


def keeper_of(s):
    """Waits for it: it may be starting again."""
    while not (found := [pid for pid, _ in descendants(s.pid) if comm(pid) == "python-keeper"]):
        pass
    return found[0]


@test
def a_keeper_that_ends_before_it_mounts(ctx):
    """It has the order and does nothing; then it is killed. The call says so, and gets no empty file."""
    with place() as store, service(ctx, store) as s, connect(ctx, s) as client, connect(ctx, s) as busy:
        a = files_of(client.run(WRITE % ("a", 9)))["a"]
        wanted = [a["size"], a["sha256"]]
        item = {"path": "x", "uri": a["uri"]}

        def was_mounted(o):
            # A session's process may end with the keeper, too; then the session is lost, and said to be.
            if any(text in o.text for text in ("an input file", "there is no keeper", "cannot be mounted", "state: lost")):
                return False
            equal(looked(o), wanted)
            return True

        def is_mounted_again(tool, **arguments):
            until("the keeper comes back",
                  lambda: was_mounted(call(client, tool, **arguments, files=[item])))

        session = cell(client, "1").structured["session"]
        for tool, code, more in ("run_script", "script", {}), ("run_repl", "code", {"session": session}):
            keeper = keeper_of(s)
            os.kill(keeper, signal.SIGSTOP)
            number = busy.request("tools/call", {"name": tool, "arguments": {code: LOOK % "x", "files": [item], **more}})
            # Answered in the same loop and after it: the order is on its way.
            client.ask("ping")
            os.kill(keeper, signal.SIGKILL)
            was_mounted(busy.outcome(number, 120))
            is_mounted_again("run_script", script=LOOK % "x")
        o = call(client, "run_repl", code=LOOK % "x", files=[item], session=session)
        assert o.status in ("no_session", "session_lost") or was_mounted(o) or o.status != "ok", o
        is_mounted_again("run_repl", code=LOOK % "x")


@test
def locks_of_a_mounted_file(ctx):
    """Code of one tenant can lock the tenant's other code out, and nobody else: the service reads on."""
    hold = "import fcntl\nf = open('x', 'rb')\nfcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)\nNone"
    with place() as store, service(ctx, store) as s, connect(ctx, s) as client:
        a = files_of(client.run(WRITE % ("a", 9)))["a"]
        item = {"path": "x", "uri": a["uri"]}
        cell(client, hold, files=[item])
        o = client.run(hold, files=[item])
        equal((o.status, o.structured["error"]["type"]), ("error", "BlockingIOError"), o)
        equal(looked(client.run(LOOK % "x", files=[item])), [a["size"], a["sha256"]])
        equal(all_of(client, a["uri"], a["size"]), content(9))


@test
def a_file_that_expires_while_mounted(ctx):
    """It can be read where it is, nobody else finds it, and it leaves the disk with the session."""
    for seconds in 2, 60:
        with place() as store, service(ctx, store, "keep_seconds = %d\n" % seconds) as s, connect(ctx, s) as client:
            a = files_of(client.run(WRITE % ("a", 9)))["a"]
            item = {"path": "x", "uri": a["uri"]}
            o = call(client, "run_repl", code="None", files=[item])
            if o.refused:
                continue		# on a busy machine it was over before
            session = o.structured["session"]
            while client.ask("resources/list")["resources"]:
                equal(on_disk(store)[0], [a["size"]])
            o = client.run("1", files=[item])
            assert o.refused and "there is no file" in o.text, o
            equal(looked(cell(client, LOOK % "x", session)), [a["size"], a["sha256"]])
            cell(client, "1", session, close=True)
            until_equal("what is on disk", lambda: on_disk(store), ([], []))
            return
    raise AssertionError("it was never mounted")


@test
def strange_uris_are_no_files(ctx):
    with place() as store, service(ctx, store) as s, connect(ctx, s) as client:
        a = files_of(client.run(WRITE % ("a", 9)))["a"]["uri"]
        directory, name = on_disk(store)[1][0].rsplit("/", 2)[1:]
        for odd in ("", "/", "..", "../..", store, "file://" + store, "file:///etc/passwd", "mcp-python://",
                    a.upper(), a + "/", a + "/.", a + "?bytes=0-9", a + "#", a + "%00", a.replace("://", ":/"),
                    " " + a, a + " ", a[:-1], a + "\n", name, directory + "/" + name, "mcp-python://%s/%s" % (directory, name),
                    "mcp-python://" + "x" * 70000, "\u202e" + a):
            o = client.run("1", files=[{"path": "x", "uri": odd}])
            assert o.refused and ("no file" in o.text or "uri must be that of a file" in o.text), (
                odd[:100], o)
        for odd in (None, 1, True, [a], {"uri": a}, a + "\0"):
            o = client.run("1", files=[{"path": "x", "uri": odd}])
            assert o.refused and "files" in o.text, (odd, o)


@test(root=True)
def anothers_file_is_not_mounted(ctx):
    with place() as store, service(ctx, store) as s, connect(ctx, s) as client, \
            connect(ctx, s, SOMEBODY) as other:
        a = files_of(client.run(WRITE % ("a", 9)))["a"]
        item = {"path": "x", "uri": a["uri"]}
        for o in other.run("1", files=[item]), call(other, "run_repl", code="1", files=[item]):
            assert o.refused and "there is no file" in o.text, o
        equal(looked(client.run(LOOK % "x", files=[item])), [a["size"], a["sha256"]])
        # A worker that had a file is nobody's again.
        for who in other, client:
            for _ in range(3):
                o = who.run("import os\nsum(os.path.getsize('/kept-files/' + n) for n in os.listdir('/kept-files'))")
                equal(looked(o), 0)


@test(root=True)
def the_helper_has_little(ctx):
    """One socket, the directory and its lease (host/helper.c); no capability, a filter, and nobody may look into it."""
    with place() as store, service(ctx, store) as s, connect(ctx, s) as client:
        client.run("1")
        pid = int(subprocess.run(["pgrep", "-P", str(s.pid), "-x", "mcp-files"], capture_output=True, text=True).stdout)
        held = {int(fd): os.readlink("/proc/%d/fd/%s" % (pid, fd)) for fd in os.listdir("/proc/%d/fd" % pid)}
        more = sorted(target.partition(":")[0] for fd, target in held.items() if fd > 2)
        equal(more, sorted([store, "socket", "/memfd"]), held)
        with open("/proc/%d/status" % pid) as f:
            status = dict(line.split(":", 1) for line in f.read().splitlines())
        for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
            equal(int(status[name], 16), 0, name)
        equal(status["Seccomp"].strip(), "2")
        # Which is how the kernel shows that it is not dumpable.
        equal(os.stat("/proc/%d/fd" % pid).st_uid, 0)
        assert os.stat(store).st_uid != 0 and os.stat(store).st_mode & 0o7777 == 0o700, os.stat(store)


@test
def get_writes_a_file(ctx):
    """mcp-python get and run --save: files of any size, whole, and nothing else."""
    with place() as store, service(ctx, store) as s, connect(ctx, s) as client, \
            tempfile.TemporaryDirectory() as to:
        target = os.path.join(to, "got")
        # Two that end with a part, one that does not, and one in memory.
        for name, size in (("8.bin", 8), ("12.bin", 12), ("9.bin", 9), ("1.bin", 1)):
            uri = files_of(client.run(WRITE % (name, size)))[name]["uri"]
            done = mcp_python(ctx, s, "get", uri)
            equal((done.returncode, done.stderr), (0, b""))
            assert done.stdout == content(size), len(done.stdout)
        equal(mcp_python(ctx, s, "get", "--output", target, uri).returncode, 0)
        equal(mcp_python(ctx, s, "get", "--output", target, uri).returncode, 73)	# it is there
        with open(target, "rb") as f:
            assert f.read() == content(1)
        os.unlink(target)
        done = mcp_python(ctx, s, "get", "--output", target, uri + "x")
        equal((done.returncode, os.path.exists(target)), (66, False), done.stderr)
        done = mcp_python(ctx, s, "get", uri, stdin=subprocess.DEVNULL)
        equal(done.returncode, 0)
        script = os.path.join(to, "leave.py")
        with open(script, "w") as f:
            f.write(WRITE % ("large.bin", 9))
        done = mcp_python(ctx, s, "run", "--save", os.path.join(to, "saved"), script)
        equal(done.returncode, 0, done.stderr)
        with open(os.path.join(to, "saved", "large.bin"), "rb") as f:
            assert f.read() == content(9)


@test
def put_stores_a_file(ctx):
    """mcp-python put: a file of any size, for scripts and sessions, and only for its user."""
    with place() as store, service(ctx, store, "file_bytes = 16M\n") as s, connect(ctx, s) as client, \
            tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "data \u00e4.bin")

        def put(*words):
            return mcp_python(ctx, s, "put", *words, path, text=True)

        for size in 12, 1:
            with open(path, "wb") as f:
                f.write(content(size))
            wanted = [size * MIB, hashlib.sha256(content(size)).hexdigest()]
            done = put()
            equal((done.returncode, done.stderr), (0, ""))
            uri = done.stdout[:-1]
            assert uri.startswith("mcp-python://u-") and uri.endswith("/data%20%C3%A4.bin"), uri
            item = {"path": "x", "uri": uri}
            equal(looked(client.run(LOOK % "x", files=[item])), wanted)
            equal(looked(cell(client, LOOK % "x", files=[item])), wanted)
            assert mcp_python(ctx, s, "get", uri).stdout == content(size)
        done = put("--name", "other.bin")
        assert done.stdout.endswith("/other.bin\n"), done
        names = sorted(r["name"] for r in client.ask("resources/list")["resources"])
        equal(names, ["data \u00e4.bin"] * 2 + ["other.bin"])
        for words, code, said in (((), 0, ""), (("--name", "a/b"), 73, "no /"), (("--name", "a\nb"), 65, "line break")):
            done = put(*words)
            equal(done.returncode, code, done)
            assert said in done.stderr, done
        with open(path, "wb") as f:
            f.truncate(17 * MIB)
        equal(put().returncode, 73)
        with open(path, "wb") as f:
            f.truncate(0)
        done = put()
        assert done.returncode == 73 and "the file is empty" in done.stderr, done
        os.unlink(path)
        equal(put().returncode, 66)
        os.mkfifo(path)
        equal(put().returncode, 66)
    with ctx.private() as s:
        done = mcp_python(ctx, s, "put", __file__, text=True)
        assert done.returncode == 73 and "keeps no files" in done.stderr, done


class Putter:
    """A connection that asks for a pipe."""

    def __init__(self, ctx, s, first, uid=None):
        self.socket, self.pipe = connect_as(s.socket, uid, ctx.seconds(30)), -1
        self.socket.sendall(first)
        data, fds, _, _ = socket.recv_fds(self.socket, 4096, 4)
        assert len(fds) <= 1, fds
        self.said = json.loads(data)
        if fds:
            equal(self.said, {"pipe": True})
            self.pipe = fds[0]

    def end(self):
        if self.pipe >= 0:
            os.close(self.pipe)
            self.pipe = -1

    def answer(self):
        with self.socket.makefile("rb") as f:
            lines = f.read().splitlines()
        equal(len(lines), 1, lines)
        return json.loads(lines[0])


@test
def a_put_that_goes_wrong(ctx):
    with place() as store, service(ctx, store, "file_bytes = 16M\n") as s, connect(ctx, s) as client:
        for odd in (b"PUT ", b"PUT x", b"PUT 1", b"PUT 1 ", b"PUT -1 x", b"PUT +1 x", b"PUT 0 x", b"PUT 1 a/b", b"PUT 1 ..",
                    b"PUT 1 \xff", b"PUT 1 a\x00b", "PUT 1 a\u202eb".encode(), "PUT 1 a\x85b".encode(), b"PUT 1 " + b"x" * 256, b"PUT 1 x\r", b"PUT %d x" % (17 * MIB),
                    b"PUT 99999999999999999999999 x", b"PUT 9223372036854775807 x"):
            p = Putter(ctx, s, odd + b"\n")
            assert p.pipe < 0 and "error" in p.said, (odd, p.said)
            equal(p.socket.recv(1), b"")
        equal(on_disk(store), ([], []))
        # Too little, and too much: what is announced is kept.
        p = Putter(ctx, s, b"PUT 1000 x\n")
        os.write(p.pipe, bytes(10))
        p.end()
        equal(p.answer(), {"error": "fewer bytes came than were announced"})
        p = Putter(ctx, s, b"PUT 1000 x\n")
        os.write(p.pipe, bytes(1100))
        said = p.answer()
        p.end()
        equal((said["size"], said["sha256"]), (1000, hashlib.sha256(bytes(1000)).hexdigest()))
        equal(on_disk(store)[0], [1000])
        # One descriptor of a connection; what follows on it is not looked at.
        p = Putter(ctx, s, b"PUT 10 x\nPUT 10 y\n{\"jsonrpc\":")
        p.socket.sendall(b"PUT 10 z\n" * 1000)
        os.write(p.pipe, bytes(10))
        assert "uri" in p.answer()
        # Behind another line it is one of JSON-RPC.
        with connect_as(s.socket, None, ctx.seconds(30)) as c:
            c.sendall(b"{}\nPUT 10 x\n")
            c.shutdown(socket.SHUT_WR)
            with c.makefile("rb") as f:
                assert all("jsonrpc" in json.loads(line) for line in f.read().splitlines())
        # A client that goes away, and one that says that it says no more.
        p = Putter(ctx, s, b"PUT 1000 x\n")
        os.write(p.pipe, bytes(10))
        until("the fifth begins", lambda: len(on_disk(store)[1]) >= 5)
        p.socket.close()
        until("it is given up", lambda: sum(1 for _, _, names in os.walk(store) for _ in names) <= 4)
        p.end()
        p = Putter(ctx, s, b"PUT 1000 x\n")
        p.socket.shutdown(socket.SHUT_WR)
        os.write(p.pipe, bytes(1000))
        assert "uri" in p.answer()
        equal(len(client.ask("resources/list")["resources"]), 3)


@test(root=True)
def puts_of_others(ctx):
    """Who leaves pipes open has fewer of them; nobody else waits, and nobody reads another's file."""
    with place() as store, service(ctx, store) as s, connect(ctx, s) as client, \
            connect(ctx, s, SOMEBODY) as other:
        held = [Putter(ctx, s, b"PUT 1000000 x\n", SOMEBODY) for _ in range(2)]
        waits = connect_as(s.socket, SOMEBODY, ctx.seconds(30))
        waits.sendall(b"PUT 1000000 x\n")
        done = mcp_python(ctx, s, "put", __file__, text=True)
        equal(done.returncode, 0, done)
        item = {"path": "x", "uri": done.stdout[:-1]}
        equal(client.run("len(open('x').read()) > 1000", files=[item]).structured["result"]["json"], True)
        o = other.run("1", files=[item])
        assert o.refused and "there is no file" in o.text, o
        waits.settimeout(0)
        try:
            raise AssertionError("a third: %r" % waits.recv(100))
        except BlockingIOError:
            pass
        held[0].socket.close()
        waits.settimeout(ctx.seconds(30))
        equal(waits.recv(100), b'{"pipe":true}\n')
        waits.close()
        for p in held:
            p.end()
            p.socket.close()


@contextlib.contextmanager
def linked(ctx, store, more=""):
    """A service that makes links, and where it serves HTTP."""
    settings = "links = http://localhost\n[files]\ndirectory = %s\n%s" % (store, more)
    with http_private(ctx, settings, unix=True) as (s, http):
        yield s, http


def load(http, url, verb="GET", **headers):
    with Connection(http, 60) as c:
        c.send(verb, url.removeprefix("http://localhost"),
               headers=[("Host", "localhost")] + [(k.replace("_", "-"), v) for k, v in headers.items()])
        return c.read(to_head=verb == "HEAD")


@test
def a_link_leads_to_a_file(ctx):
    """Of both stores, whole and in parts, by a client that shows no token."""
    with place() as store, linked(ctx, store) as (s, http), connect(ctx, s) as client:
        o = client.run(WRITE % ("out/a b.bin", 9) + "open('s.html', 'w').write('<b>small</b>')\nNone")
        files = files_of(o)
        for name, want, kind in (("out/a b.bin", content(9), "application/octet-stream"), ("s.html", b"<b>small</b>", "text/html")):
            url = files[name]["http_url"]
            link, = (c for c in o.raw["content"] if c.get("uri") == files[name]["uri"])
            assert link["description"].endswith(url), link
            r = load(http, url)
            assert r.status == 200 and r.body == want, (r.status, len(r.body), r)
            equal(r.header("Content-Type").partition(";")[0], kind)
            equal((r.header("Content-Length"), r.header("X-Content-Type-Options")), (str(len(want)), "nosniff"))
            assert r.header("Content-Disposition").startswith("attachment; "), r
            r = load(http, url, "HEAD")
            equal((r.status, r.body, r.header("Content-Length")), (200, b"", str(len(want))))
            for text, first, last in (("bytes=0-0", 0, 0), ("bytes=3-7", 3, 7), ("bytes=-5", len(want) - 5, len(want) - 1),
                                      ("bytes=2-", 2, len(want) - 1)):
                r = load(http, url, Range=text)
                assert r.status == 206 and r.body == want[first:last + 1], (text, r)
                equal(r.header("Content-Range"), "bytes %d-%d/%d" % (first, last, len(want)))
            r = load(http, url, Range="bytes=%d-" % len(want))
            equal((r.status, r.header("Content-Range")), (416, "bytes */%d" % len(want)))
            equal(load(http, url, Range="bytes=0-1,3-4").status, 200)
            for verb in "POST", "DELETE":
                equal(load(http, url, verb).status, 405)
            equal(load(http, url, Origin="http://evil.example").status, 403)
            equal(load(http, url[:-1]).status, 404)
            equal(load(http, url.replace("/files/", "/files/1")).status, 404)
        # One connection, many requests.
        with Connection(http, 60) as c:
            for _ in range(3):
                c.send("GET", url.removeprefix("http://localhost"), headers=[("Host", "localhost")])
                equal(c.read().body, b"<b>small</b>")
    with place() as store, http_private(ctx, "[files]\ndirectory = %s\n" % store, unix=True) as (s, http), \
            connect(ctx, s) as client:
        assert "http_url" not in files_of(client.run(WRITE % ("a", 9)))["a"]
        equal(load(http, url).status, 404)


def upload_link(client, name):
    return json.loads(read(client, "mcp-python://upload/" + name))


def put_body(http, url, body, **headers):
    with Connection(http, 60) as c:
        c.send("PUT", url.removeprefix("http://localhost"), [("Host", "localhost")] + list(headers.items()), body)
        r = c.read()
        assert c.at_end()
    return r.status, json.loads(r.body)


@test
def a_link_takes_a_file(ctx):
    """PUT of a file that is larger than a body may be, at the address that was told before."""
    with place() as store, linked(ctx, store, "file_bytes = 32M\n") as (s, http), connect(ctx, s) as client:
        link = upload_link(client, "data%20%C3%A4.bin")
        assert link["uri"].endswith("/data%20%C3%A4.bin") and link["expires_seconds"] == 3600, link
        item = {"path": "x", "uri": link["uri"]}
        assert "there is no file" in client.run("1", files=[item]).text
        status, said = put_body(http, link["http_url"], content(24))
        wanted = [24 * MIB, hashlib.sha256(content(24)).hexdigest()]
        equal((status, said), (201, {"uri": link["uri"], "size": wanted[0], "sha256": wanted[1]}))
        equal(looked(client.run(LOOK % "x", files=[item])), wanted)
        # A link is good for one upload: what somebody has looked at is not replaced.
        status, said = put_body(http, link["http_url"], content(1))
        assert status == 400 and "was used for an upload already" in str(said), (status, said)
        equal(looked(client.run(LOOK % "x", files=[dict(item, sha256=wanted[1])])), wanted)
        o = client.run(LOOK % "x", files=[dict(item, sha256="0" * 64)])
        assert o.refused and "has changed" in o.text, o
        for odd in wanted[1].upper(), wanted[1][:-1], 7:
            o = client.run("1", files=[dict(item, sha256=odd)])
            assert o.refused and "64 digits" in o.text, o
        o = client.run("1", files=[{"path": "x", "text": "y", "sha256": wanted[1]}])
        assert o.refused and "sha256 is for a uri" in o.text, o
        link = upload_link(client, "data%20%C3%A4.bin")
        # As curl does it; and byte by byte, behind another request.
        with Connection(http, 60) as c:
            path = link["http_url"].removeprefix("http://localhost")
            c.send("GET", "/files/no", [("Host", "localhost")])
            equal(c.read().status, 404)
            for byte in b"PUT %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n" % path.encode():
                c.send_raw(bytes([byte]))
            equal((c.line(), c.line()), (b"HTTP/1.1 100 Continue", b""))
            c.send_raw(b"abcdef")
            r = c.read()
            equal((r.status, json.loads(r.body)["sha256"]), (201, hashlib.sha256(b"abc").hexdigest()))
        equal(sorted(on_disk(store)[0]), [3, 24 * MIB])


@test
def a_link_takes_no_other_file(ctx):
    with place() as store, linked(ctx, store, "file_bytes = 8M\n") as (s, http), connect(ctx, s) as client:
        url = upload_link(client, "a")["http_url"]
        kept = files_of(client.run("open('f', 'w').write('1')\nNone"))["f"]["http_url"]
        equal(put_body(http, url, content(9))[0], 413)
        equal(put_body(http, url, b"")[0], 411)
        for bad in url + "b", url[:-1], kept, url.replace("/upload/", "/"), "/files/", "/files/upload/a":
            equal(put_body(http, bad, b"x")[0], 404)
        for line in "X: a\r\n b\r\n", "X: a\n b\r\n", "X: a\rb\r\n", "Content-Length: 1\r\n":
            with Connection(http, 60) as c:
                c.send_raw(("PUT %s HTTP/1.1\r\nHost: localhost\r\n%sContent-Length: 1\r\n\r\nx" % (
                    url.removeprefix("http://localhost"), line)).encode())
                equal(c.read().status, 400, line)
        for name in "", "a/b", "%2F", "..", "%00", "%", "%zz", "x" * 256:
            refused(client, "mcp-python://upload/" + name)
        equal(put_body(http, url, b"x", Origin="http://evil.example")[0], 403)
        for head in (b"Host: evil.example\r\nContent-Length: 1", b"Content-Length: 1", b"Host: localhost\r\nContent-Length: 1\r\nContent-Length: 1",
                     b"Host: localhost\r\nTransfer-Encoding: chunked", b"Host: localhost\r\nContent-Length: -1", b"Host: localhost\r\nContent-Length: 0",
                     b"Host: localhost\r\nContent-Length: 99999999999999999999", b"Host localhost", b"Host: localhost\r\nX: a\0b",
                     b"Host: localhost\r\nX: " + b"x" * 40000):
            with Connection(http, 60) as c:
                try:
                    c.send_raw(b"PUT %s HTTP/1.1\r\n%s\r\n\r\nx" % (url.removeprefix("http://localhost").encode(), head))
                    assert 400 <= c.read().status < 500, head
                except Closed:
                    assert len(head) > 30000, head
        # One that goes away, and one that says nothing more: others are served.
        with Connection(http, 60) as quiet:
            for c in quiet, Connection(http, 60):
                c.send_raw(b"PUT %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nx" % url.removeprefix("http://localhost").encode())
            until("both begin", lambda: len(on_disk(store)[1]) >= 2)
            c.close()
            until("one is given up", lambda: len(on_disk(store)[1]) <= 1)
            equal(put_body(http, url, b"y")[0], 201)
    with place() as store, service(ctx, store) as s, connect(ctx, s) as client:
        refused(client, "mcp-python://upload/a")


@test
def readers_of_links_that_are_slow(ctx):
    """They keep a part in memory, and no place of the helper: files go in and out meanwhile."""
    with place() as store, linked(ctx, store) as (s, http), connect(ctx, s) as client:
        file = files_of(client.run(WRITE % ("a", 16)))["a"]
        slow = [Connection(http, 60) for _ in range(12)]
        for c in slow:
            c.send("GET", file["http_url"].removeprefix("http://localhost"), headers=[("Host", "localhost")])
            equal(c.read_head().status, 200)
        b = files_of(client.run(WRITE % ("b", 9)))["b"]
        assert load(http, b["http_url"]).body == content(9)
        for c in slow[1:]:
            c.reset() if slow.index(c) % 2 else c.close()
        got = slow[0].take(16 * MIB)
        assert bytes(got) == content(16)
        slow[0].close()


@test
def a_link_ends_with_its_file(ctx):
    """One that is removed while it is read breaks off; it is no other file's beginning."""
    more = "tenant_bytes = 48M\nfile_bytes = 40M\n"
    with place() as store, linked(ctx, store, more) as (s, http), connect(ctx, s) as client:
        file = files_of(client.run(WRITE % ("a", 40)))["a"]
        with Connection(http, 60) as c:
            c.send("GET", file["http_url"].removeprefix("http://localhost"), headers=[("Host", "localhost")])
            equal(c.read_head().status, 200)
            client.run(WRITE % ("b", 20))
            refused(client, file["uri"])
            try:
                got = c.take(40 * MIB)
                raise AssertionError("%d bytes" % len(got))
            except Closed:
                pass
        equal(load(http, file["http_url"]).status, 404)


@test
def a_suspended_tenant_has_no_links(ctx):
    """Neither earlier ones, nor new ones, nor the rest of a file that is being sent."""
    with place() as store, tempfile.TemporaryDirectory() as d:
        os.chmod(d, 0o777)
        admin = "[admin]\nsocket = %s/admin\n" % d
        me = "uid:%d" % os.getuid()

        def operate(*words):
            done = subprocess.run([os.path.join(ctx.options.build, "mcp-python"), *words, me,
                                   "--admin-socket", d + "/admin"], capture_output=True, text=True)
            equal(done.returncode, 0, done)

        with linked(ctx, store, "file_bytes = 64M\n" + admin) as (s, http), connect(ctx, s) as client:
            file = files_of(client.run(WRITE % ("a", 64)))["a"]
            with Connection(http, 60) as c:
                c.send("GET", file["http_url"].removeprefix("http://localhost"), headers=[("Host", "localhost")])
                equal(c.read_head().status, 200)
                operate("suspend")
                try:
                    got = c.take(64 * MIB)
                    raise AssertionError("%d bytes" % len(got))
                except Closed:
                    pass
            link = upload_link(client, "b")
            equal(load(http, file["http_url"]).status, 404)
            equal(put_body(http, link["http_url"], b"x")[0], 404)
            operate("resume")
            equal(load(http, file["http_url"]).status, 404)
            equal(put_body(http, link["http_url"], b"x")[0], 201)


@test(root=True)
def no_other_tenant_finds_it(ctx):
    with place() as store, service(ctx, store) as s, connect(ctx, s) as client, \
            connect(ctx, s, SOMEBODY) as other:
        uri = files_of(client.run(WRITE % ("large.bin", 9)))["large.bin"]["uri"]
        refused(other, uri)
        refused(other, uri + "?bytes=0-9")
        equal(other.ask("resources/list")["resources"], [])
        # Nor by its name on disk, which nobody was told.
        name = os.path.basename(on_disk(store)[1][0]).partition(".")[0]
        for guess in ("mcp-python://%s/large.bin" % name, "mcp-python://" + name, name):
            refused(other, guess + "?bytes=0-9")
        o = other.run("1", files=[{"path": "stolen", "uri": uri}])
        assert o.refused and "no file" in o.text, o
        equal(len(read(client, uri + "?bytes=0-9")), 10)


@test
def it_survives_a_restart(ctx):
    with place() as store:
        with service(ctx, store) as s, connect(ctx, s) as client:
            uri = files_of(client.run(WRITE % ("large.bin", 9)))["large.bin"]["uri"]
        with service(ctx, store) as s, connect(ctx, s) as client:
            equal(all_of(client, uri, 9 * MIB), content(9))
            equal([r["uri"] for r in client.ask("resources/list")["resources"]], [uri])


@test
def a_killed_service_leaves_no_half_file(ctx):
    """The service is killed while a file comes in."""
    with place() as store:
        s = Supervisor(ctx.options.build, "[files]\ndirectory = %s\n" % store)
        with s:
            s.wait_ready()
            client, busy = connect(ctx, s), connect(ctx, s)
            uri = files_of(client.run(WRITE % ("first.bin", 9)))["first.bin"]["uri"]
            busy.start_script(WRITE % ("large.bin", 200), memory_mb=1024)
            until("the second file grows", lambda: len(on_disk(store)[0]) >= 2, ctx.seconds(120), at_once)
            below = descendants(s.pid)
            s.process.kill()
            s.process.wait()
            assert not wait_gone(below, ctx.seconds(10))
            s.process = None
        with service(ctx, store) as s, connect(ctx, s) as client:
            kept = on_disk(store)
            # The large one was kept to its end, or nothing of it is there.
            assert kept[0] in ([9 * MIB], [9 * MIB, 200 * MIB]), kept
            equal(len(kept[1]), 2 * len(kept[0]))
            equal(all_of(client, uri, 9 * MIB), content(9))


@test
def what_is_not_kept_is_said(ctx):
    more = "file_bytes = 8M\ntenant_bytes = 12M\nbytes_max = 1G\n"
    with place() as store, service(ctx, store, more) as s, connect(ctx, s) as client:
        o = client.run(WRITE % ("large.bin", 9))
        file = files_of(o)["large.bin"]
        equal((file.get("kept"), "uri" in file), (False, False))
        equal(file["reason"], "files of at most 8 MiB are: split it or compress it")
        assert "/workspace/large.bin (9437184 bytes) has no uri: %s\n" % file["reason"] in o.text, o.text
        # The newest are kept.
        uris = [files_of(client.run(WRITE % ("%d.bin" % i, 6)))["%d.bin" % i]["uri"] for i in range(3)]
        refused(client, uris[0] + "?bytes=0-1")
        equal(all_of(client, uris[1], 6 * MIB), content(6))
        equal(all_of(client, uris[2], 6 * MIB), content(6))
        equal(on_disk(store)[0], [6 * MIB] * 2)
        # One run that leaves more than all of it: its own oldest give way, and all is well told.
        o = client.run("".join(WRITE % ("%d.bin" % i, 5) for i in range(4)), 60)
        equal((o.status, len(o.structured["files"])), ("ok", 4), o)
        assert sum(on_disk(store)[0]) <= 12 * MIB, on_disk(store)


@test
def without_a_store(ctx):
    with ctx.private() as s, connect(ctx, s) as client:
        o = client.run(WRITE % ("large.bin", 9))
        file = files_of(o)["large.bin"]
        equal((o.status, file["kept"], file["reason"]), ("ok", False, "files of at most 4 MiB are: split it or compress it"))
        assert "has no uri: " + file["reason"] in o.text, o.text
        # Each is small enough, but not all of them together.
        o = client.run("for i in range(3): open('%d.bin' % i, 'wb').write(bytes(3 << 20))")
        reasons = sorted(file.get("reason", "") for file in files_of(o).values())
        equal(reasons, ["", "", "files of at most 8 MiB in all are kept from one call: leave fewer files, or compress them"])
        assert reasons[2] in o.text, o.text
        # What a stopped script has left.
        o = client.run("open('large.bin', 'wb').write(bytes(9 << 20))\nwhile True: pass", 60, timeout_seconds=2)
        equal((o.status, files_of(o)["large.bin"]["reason"]), ("timeout", "files of at most 4 MiB are: split it or compress it"))


@test
def a_sparse_file_is_no_terabyte(ctx):
    script = "import os\nos.truncate(open('huge', 'wb').name, 1 << %d)\nNone"
    with place() as store, service(ctx, store) as s, connect(ctx, s) as client:
        for bits in (40, 33, 29):
            o = client.run(script % bits, 60)
            if o.status == "ok":	# RLIMIT_FSIZE may have been first
                equal(files_of(o)["huge"].get("kept"), False, o)
            equal(on_disk(store)[0], [])
        # One within the bounds is as large as it says, with zeros.
        o = client.run("open('sparse', 'wb').truncate(64 << 20)\nNone", 60)
        file = files_of(o)["sparse"]
        equal(file["sha256"], hashlib.sha256(bytes(64 << 20)).hexdigest())
        equal(read(client, file["uri"] + "?bytes=60000000-60000009"), bytes(10))


@test
def a_file_that_changes_meanwhile(ctx):
    """A process of the script truncates the file while it is kept, again and again."""
    script = """
import os, subprocess, sys
open('large.bin', 'wb').write(b'x' * (64 << 20))
subprocess.Popen([sys.executable, '-c', '''
import os
while True:
    os.truncate("large.bin", 1000)
    os.truncate("large.bin", 64 << 20)
'''])
None
"""
    with place() as store, service(ctx, store) as s, connect(ctx, s) as client:
        for _ in range(3):
            o = client.run(script, 60)
            equal(o.status, "ok", o)
            file = files_of(o).get("large.bin")
            if file and "uri" in file and file["size"] > 4 * MIB:
                # What was kept is what it says, whatever that is.
                got = all_of(client, file["uri"], file["size"])
                equal(hashlib.sha256(got).hexdigest(), file["sha256"])
        assert all(size == 64 << 20 for size in on_disk(store)[0]), on_disk(store)


@test
def names_lead_nowhere(ctx):
    """Links are not followed, and a name of a script is never a name on the disk."""
    script = """
import os
os.mkdir('d')
names = ['.about', 'a.about', '..\\\\..\\\\x', 'x\\n.new', '%2e%2e', 'd/' + 'y' * 250, '?bytes=0-1', '#frag']
for name in names:
    open(name, 'wb').truncate(5 << 20)
os.symlink('/etc/passwd', 'link')
os.mkfifo('fifo')
None
"""
    with place() as store, service(ctx, store) as s, connect(ctx, s) as client:
        o = client.run(script, 60)
        files = files_of(o)
        equal(len(files), 8, o)
        for file in files.values():
            equal(len(read(client, file["uri"] + "?bytes=0-9")), 10)
        sizes, names = on_disk(store)
        equal(sizes, [5 << 20] * 8)
        for name in names:
            tenant, _, name = os.path.relpath(name, store).partition("/")
            assert tenant.startswith("t-") and len(tenant) == 66, tenant
            stem, _, end = name.partition(".")
            assert len(stem) == 26 and stem.isalnum() and end in ("", "about"), name


@test
def a_script_that_plays_the_worker(ctx):
    """Offers by hand: of too much, twice at once, and one whose bytes never come."""
    header = """
import os, socket, struct, time
s = socket.socket(fileno=os.dup(63))
def send(kind, body):
    s.sendall(struct.pack('>BBI', %d, kind, len(body)) + body)
def offer(path, size):
    send(61, b'\\x82\\xa4path' + bytes([0xa0 + len(path)]) + path.encode() + b'\\xa4size\\xcf' + struct.pack('>Q', size))
"""
    header = header.replace('%d', str(proto_version()))
    with place() as store, service(ctx, store, "file_bytes = 8M\n") as s, connect(ctx, s) as client:
        o = client.run(header + "offer('a', 1 << 39)\nprint(s.recv(100)[1])", 60)
        equal((o.status, o.stdout), ("ok", "62\n"), o)	# PULL without a pipe
        for bad in ("offer('a', 5)\noffer('b', 5)", "offer('../a', 5)", "offer('a', 1 << 50)",
                    "offer('', 5)", "offer('/etc/passwd', 5)"):
            o = client.run(header + bad + "\ntime.sleep(600)", 60)
            equal(o.status, "worker_protocol_error", "%s: %r" % (bad, o))
        # Its clock stands still for a minute at most. Cancelling it ends it at once.
        id = client.start_script(header + "offer('a', 5)\nprint(socket.recv_fds(s, 100, 1)[1], flush=True)\ntime.sleep(600)",
                                 timeout_seconds=1)
        client.flush()
        until("a file begins", lambda: on_disk(store)[1])
        client.cancel(id)
        client.flush()
        until_equal("what is on disk", lambda: on_disk(store), ([], []))
        equal(client.run("6 * 7").result["repr"], "42")


@test(root=True)
def a_full_disk(ctx):
    with place() as store:
        disk = os.path.join(os.path.dirname(store), "disk")
        os.mkdir(disk)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m,mode=0777", "tmpfs", disk],
                                 capture_output=True, text=True)
        if mounted.returncode:
            raise Skip("no mount: " + mounted.stderr.strip())
        try:
            store = os.path.join(disk, "store")
            with service(ctx, store) as s, connect(ctx, s) as client:
                o = client.run(WRITE % ("large.bin", 20), 60)
                equal((o.status, files_of(o)["large.bin"]["kept"]), ("ok", False), o)
                assert "the service has no more room" in o.text, o.text
                equal(on_disk(store), ([], []))
                uri = files_of(client.run(WRITE % ("fits.bin", 9)))["fits.bin"]["uri"]
                equal(all_of(client, uri, 9 * MIB), content(9))
        finally:
            subprocess.run(["umount", disk], check=True)


@test
def files_expire(ctx):
    with place() as store:
        with service(ctx, store, "keep_seconds = 1\n") as s, connect(ctx, s) as client:
            uri = files_of(client.run(WRITE % ("large.bin", 9)))["large.bin"]["uri"]
            until("it is gone", lambda: not is_there(client, uri))
        with service(ctx, store) as s, connect(ctx, s):
            # Its helper removes it, and a client may connect before that.
            until_equal("what is on the disk", lambda: on_disk(store), ([], []))


@test
def others_are_not_kept_waiting(ctx):
    """200 MiB go to the disk while another client's calls are answered."""
    with place() as store, service(ctx, store) as s, connect(ctx, s) as client, connect(ctx, s) as busy:
        client.run("1")
        done, slowest = threading.Event(), [0]

        def load():
            try:
                o = busy.run(WRITE % ("large.bin", 200), 300, memory_mb=1024)
                equal(o.status, "ok", o)
            finally:
                done.set()
        thread = threading.Thread(target=load)
        thread.start()
        while not done.is_set():
            began = time.monotonic()
            client.ask("ping")
            slowest[0] = max(slowest[0], time.monotonic() - began)
        thread.join()
        equal(on_disk(store)[0], [200 * MIB])
        assert slowest[0] < ctx.seconds(2), "a ping took %.3f s" % slowest[0]


@test
def a_lost_helper(ctx):
    """It is made again, and knows the files of before."""
    with place() as store, service(ctx, store) as s, connect(ctx, s) as client:
        uri = files_of(client.run(WRITE % ("large.bin", 9)))["large.bin"]["uri"]
        helpers = subprocess.run(["pgrep", "-P", str(s.pid), "-x", "mcp-files"], capture_output=True, text=True)
        os.kill(int(helpers.stdout), 9)
        s.wait_logged("helper-made helper=files")
        assert is_there(client, uri)
        o = client.run(WRITE % ("more.bin", 9))
        assert o.status == "ok" and "uri" in files_of(o)["more.bin"], o
        assert is_there(client, uri)
        assert "helper-lost helper=files" in s.log(), s.log()


@test
def a_store_that_vanishes(ctx):
    """Somebody removes, then renames the directory of all files: it is made again."""
    with place() as store, service(ctx, store) as s, connect(ctx, s) as client:
        os.chmod(os.path.dirname(store), 0o777)		# as a unit's state directory is the service's
        for number, vanish in enumerate((shutil.rmtree, lambda d: os.rename(d, d + ".aside")), 1):
            uri = files_of(client.run(WRITE % ("large.bin", 9)))["large.bin"]["uri"]
            vanish(store)
            # Whoever comes first may be told to call again.
            until("files are kept again", lambda: "uri" in files_of(client.run(WRITE % ("more.bin", 9)))["more.bin"])
            s.wait_logged("helper-lost helper=files", times=number)
            more = files_of(client.run(WRITE % ("last.bin", 9)))["last.bin"]["uri"]
            assert is_there(client, more) and not is_there(client, uri), (more, uri)


# ---- of a service for one client ----


@contextlib.contextmanager
def state():
    """A user's directory for states, which workers of root's service may enter."""
    with tempfile.TemporaryDirectory(prefix="files-") as directory:
        os.chmod(directory, 0o755)
        yield directory


def alone(ctx, state, *options, **more):
    """The client of a service of its own; its log is the file log in state."""
    with open(os.path.join(state, "log"), "ab") as log:
        return Client.spawn([os.path.join(ctx.options.build, "mcp-pythond"), "--stdio", *options],
                            "2025-06-18", ctx.seconds(60), stderr=log, env={
                                **os.environ, "XDG_STATE_HOME": state, "XDG_RUNTIME_DIR": state,
                                "ASAN_OPTIONS": "detect_leaks=0", **more})


def kept_below(directory):
    """Names and sizes of the bytes that are kept."""
    found = [os.path.join(at, name) for at, _, names in os.walk(directory) for name in names]
    return sorted((os.path.relpath(f, directory).split("/t-")[0], os.path.getsize(f)) for f in found
                  if "/t-" in f and not f.endswith(".about"))


@test(private=True)
def one_client_has_large_files(ctx):
    """Until its service ends; several services of a user do not meet. Nobody else may look."""
    with state() as home:
        top = os.path.join(home, "mcp-pythond-private")
        with alone(ctx, home) as first, alone(ctx, home) as second:
            for client, n in ((first, 9), (second, 10)):
                o = client.run(WRITE % ("large.bin", n))
                file = files_of(o)["large.bin"]
                equal(all_of(client, file["uri"], n * MIB), content(n))
                o = client.run("import os; print(os.stat('again').st_size)",
                               files=[{"path": "again", "uri": file["uri"]}])
                equal((o.status, o.stdout), ("ok", "%d\n" % (n * MIB)), o)
            refused(first, file["uri"])
            equal(kept_below(top), [("2/files", 10 * MIB), ("files", 9 * MIB)])
            for directory in top, top + "/files", top + "/2/files":
                equal(os.stat(directory).st_mode & 0o022, 0)
            equal(os.stat(top + "/files").st_mode & 0o777, 0o700)
            if os.getuid():
                equal(os.stat(top).st_mode & 0o777, 0o700)
        equal(kept_below(top), [])


@test(private=True)
def one_client_has_files_of_256_mebibytes(ctx):
    """As in a service of the system; one byte more is named with the bound."""
    with state() as home, alone(ctx, home) as client:
        o = client.run("for name, more in ('most', 0), ('over', 1):\n    with open(name, 'wb') as f:\n"
                       "        f.truncate((256 << 20) + more)\n        f.seek(256 << 20)\n"
                       "        f.seek(-3, 1), f.write(b'end')", timeout_seconds=60)
        equal(o.status, "ok", o)
        most, over = (files_of(o)[name] for name in ("most", "over"))
        equal(most["size"], 256 * MIB)
        assert "uri" not in over and "256 MiB" in over["reason"], over
        o = client.run("f = open('most', 'rb')\nf.seek(-3, 2)\nprint(f.tell(), f.read())",
                       files=[{"path": "most", "uri": most["uri"]}], timeout_seconds=60)
        equal(o.stdout, "%d b'end'\n" % (256 * MIB - 3), o)


@test(private=True)
def what_a_killed_service_has_left_goes(ctx):
    """At the next start, whichever of the directories it was; those in use stay."""
    with state() as home:
        top = os.path.join(home, "mcp-pythond-private")
        clients = [alone(ctx, home) for _ in range(3)]
        for n, client in enumerate(clients):
            equal(client.run(WRITE % ("large.bin", 9 + n)).status, "ok")
        for client in clients[0], clients[2]:
            below = descendants(client.owner.pid)
            client.owner.kill()
            client.close()
            equal(wait_gone(below, ctx.seconds(20)), [])
        equal(len(kept_below(top)), 3)
        with alone(ctx, home) as last:
            equal(last.run("1").status, "ok")
            equal(kept_below(top), [("2/files", 10 * MIB)])
        clients[1].close()
        equal(kept_below(top), [])


@test(private=True)
def a_directory_of_somebody_else_is_not_used(ctx):
    """A link, another user's directory, one that others may write to: larger files are not kept
    then, the rest works, and nothing is written or removed there."""
    def link(top, other):
        os.symlink(other, top)

    def open_to_all(top, _):
        os.mkdir(top)
        os.chmod(top, 0o777)

    def anothers(top, _):
        os.mkdir(top)
        os.chown(top, SOMEBODY, SOMEBODY)

    for make in (link, open_to_all, *([anothers] if os.getuid() == 0 else [])):
        with state() as home, tempfile.TemporaryDirectory(prefix="files-") as other:
            os.makedirs(other + "/files/t-x")
            open(other + "/files/t-x/stays", "w").close()
            top = os.path.join(home, "mcp-pythond-private")
            make(top, other)
            with alone(ctx, home) as client:
                o = client.run(WRITE % ("large.bin", 9))
                equal((o.status, files_of(o)["large.bin"]["kept"]), ("ok", False), o)
            assert "files-none " in open(home + "/log").read(), open(home + "/log").read()
            assert os.path.exists(other + "/files/t-x/stays"), make
            equal(os.listdir(top), ["files"] if make is link else [], make)


@test(private=True)
def a_home_that_cannot_be_written_to(ctx):
    """Then the directory for the login session has them."""
    with state() as home, state() as runtime:
        open(home + "/mcp-pythond-private", "w").close()
        with alone(ctx, home, XDG_RUNTIME_DIR=runtime) as client:
            o = client.run(WRITE % ("large.bin", 9))
            equal(all_of(client, files_of(o)["large.bin"]["uri"], 9 * MIB), content(9))
            equal(kept_below(runtime), [("mcp-pythond-private/files", 9 * MIB)])
        equal(kept_below(runtime), [])


if __name__ == "__main__":
    main(__doc__, modules=FEW_MODULES)
