#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A directory of the user in every script and cell (--folder): with the user's rights, and nothing
around it.

A suite of tests/integration/run."""

import contextlib
import ctypes
import os
import shutil
import signal
import stat
import subprocess
import tempfile
import threading

from harness import FEW_MODULES, SOMEBODY, Skip, equal, main, test
from mcpclient import Client
from supervisor import comm, descendants
from waits import libc, until

RENAME_EXCHANGE = 2
FAILS = """
import errno, os
def fails(what, *codes):
    try: what()
    except OSError as e: assert e.errno in codes, e
    else: raise AssertionError('it worked')
"""


@contextlib.contextmanager
def place():
    """(directory, its folder): the folder is SOMEBODY's if root runs the tests, else the user's."""
    directory = tempfile.mkdtemp(prefix="folder-")
    os.chmod(directory, 0o755)
    for name in ("data", "state"):
        os.mkdir(os.path.join(directory, name))
        if os.getuid() == 0:
            os.chown(os.path.join(directory, name), SOMEBODY, SOMEBODY)
    if os.getuid() == 0:
        os.mknod(directory + "/fuse", 0o666 | stat.S_IFCHR, os.makedev(10, 229))
        os.chmod(directory + "/fuse", 0o666)
    try:
        yield directory, os.path.join(directory, "data")
    finally:
        shutil.rmtree(directory)


def put(path, text="x", mode=0o644, owner=None):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, mode)
    if os.getuid() == 0:
        owner = SOMEBODY if owner is None else owner
        os.chown(path, owner, owner)


def make(path):
    os.mkdir(path)
    if os.getuid() == 0:
        os.chown(path, SOMEBODY, SOMEBODY)


def wrap(directory, more="true"):
    """The command behind which a program runs as SOMEBODY, with a device like udev's."""
    if not os.path.exists("/dev/fuse"):
        raise Skip("no /dev/fuse", missing=True)
    if os.getuid():
        if not os.access("/dev/fuse", os.R_OK | os.W_OK):
            raise Skip("/dev/fuse is for root alone here", missing=False)
        return []
    return ["unshare", "-m", "--propagation", "private", "sh", "-c",
            'mount --bind "$0" /dev/fuse && %s && exec setpriv --reuid %d --regid %d --clear-groups '
            '"$@"' % (more, SOMEBODY, SOMEBODY), directory + "/fuse"]


def environment(directory):
    return {**os.environ, "XDG_STATE_HOME": directory + "/state", "HOME": directory + "/state",
            "XDG_RUNTIME_DIR": directory + "/state", "ASAN_OPTIONS": "detect_leaks=0"}


@contextlib.contextmanager
def service(ctx, directory, folder, more="true", before=None, **options):
    """The client of a service with that folder."""
    program = os.path.join(ctx.options.build, "mcp-pythond")
    with open(directory + "/log", "ab") as log, Client.spawn(
            [*(wrap(directory, more) if before is None else before), program, "--stdio", "--folder",
             folder], "2025-06-18", ctx.seconds(60), env=environment(directory), stderr=log,
            **options) as client:
        yield client


def run(client, script, status="ok", **more):
    o = client.run(FAILS + script, 120, **more)
    equal(o.status, status, o)
    return o


def cell(client, code, session=None, status="ok", **more):
    arguments = {"code": code, **({"session": session} if session else {}), **more}
    o = client.outcome(client.request("tools/call", {"name": "run_repl", "arguments": arguments}), 120)
    equal(o.status, status, o)
    return o


@test(private=True)
def scripts_and_cells_have_it(ctx):
    """To read only; also a large file, of which nothing is copied."""
    with place() as (directory, folder):
        put(folder + "/a.txt", "hello")
        make(folder + "/sub")
        make(folder + "/sub/deep")
        put(folder + "/sub/deep/b", "deep")
        put(folder + "/large", "")
        with open(folder + "/large", "r+b") as f:
            f.truncate(5 << 30)
            f.seek((5 << 30) - 3)
            f.write(b"end")
        with service(ctx, directory, folder) as client:
            o = run(client, "f = open('/folder/large', 'rb'); f.seek(-3, 2)\n"
                    "print(sorted(os.listdir('/folder')), open('/folder/a.txt').read(),\n"
                    "      open('/folder/sub/deep/b').read(), f.read(), f.tell(), os.getcwd())")
            equal(o.stdout, "['a.txt', 'large', 'sub'] hello deep b'end' %d /workspace\n" % (5 << 30))
            run(client, "os.chdir('/folder')\n"
                "for what in (lambda: open('new', 'w'), lambda: open('a.txt', 'a'), lambda: os.remove('a.txt'),\n"
                "             lambda: os.mkdir('d'), lambda: os.rename('a.txt', 'b'), lambda: os.chmod('a.txt', 0),\n"
                "             lambda: os.symlink('a.txt', 'l'), lambda: os.utime('a.txt'), lambda: os.rmdir('sub'),\n"
                "             lambda: os.truncate('a.txt', 0), lambda: os.link('a.txt', 'h')):\n"
                "    fails(what, errno.EROFS, errno.EACCES, errno.EPERM)\n")
            o = cell(client, "x = open('/folder/a.txt').read(); x")
            equal(o.result["repr"], "'hello'")
            put(folder + "/a.txt", "changed")
            o = cell(client, "open('/folder/a.txt').read()", o.structured["session"])
            equal(o.result["repr"], "'changed'")
            tools = {t["name"]: t["description"] for t in client.ask("tools/list")["tools"]}
            assert "/folder, which is %s of its user (read-only)" % folder in tools["run_script"], tools
        equal(sorted(os.listdir(folder)), ["a.txt", "large", "sub"])


@test(private=True)
def it_has_the_rights_of_its_user(ctx):
    """And no others: what the user may not read or write, scripts may not; set-user-id bits are
    not kept."""
    with place() as (directory, folder):
        put(folder + "/own", "own", 0o600)
        put(folder + "/fixed", "fixed", 0o444)
        put(folder + "/run.sh", "#!/bin/sh\necho ran\n", 0o755)
        if os.getuid() == 0:
            put(folder + "/roots", "secret", 0o600, owner=0)
            os.mkdir(folder + "/rootsdir", 0o700)
        with service(ctx, directory, folder + ":rw") as client:
            o = run(client, "os.chdir('/folder'); os.umask(0o022)\n"
                    "assert open('own').read() == 'own' and open('fixed').read() == 'fixed'\n"
                    "fails(lambda: open('fixed', 'w'), errno.EACCES)\n"
                    "open('own', 'a').write('+')\n"
                    "open('new', 'w').write('new'); os.chmod('new', 0o4751)\n"
                    "os.mkdir('d'); open('d/x', 'w').write('x'); os.rename('d', 'e'); os.symlink('e', 'l')\n"
                    "assert open('l/x').read() == 'x'\n"
                    "with open('own', 'r+') as f, open('own') as g: f.truncate(2); assert g.read() == 'ow'\n"
                    "open('gone', 'w').close(); os.remove('gone')\n"
                    "fails(lambda: os.link('own', 'h'), errno.EPERM)\n"
                    "fails(lambda: os.mkfifo('p'), errno.EPERM)\n"
                    "fails(lambda: os.chown('own', 0, 0), errno.EPERM, errno.EINVAL)\n"
                    "import subprocess; print(subprocess.run(['./run.sh'], capture_output=True, text=True).stdout)\n")
            equal(o.stdout, "ran\n\n")
            if os.getuid() == 0:
                run(client, "fails(lambda: open('/folder/roots'), errno.EACCES)\n"
                    "fails(lambda: os.listdir('/folder/rootsdir'), errno.EACCES)\n"
                    "assert os.stat('/folder/roots').st_uid == 65534 != os.stat('/folder/own').st_uid")
        new = os.stat(folder + "/new")
        equal((stat.S_IMODE(new.st_mode), new.st_uid), (0o751, SOMEBODY if os.getuid() == 0 else os.getuid()))
        equal(open(folder + "/own").read(), "ow")
        equal(sorted(set(os.listdir(folder)) - {"roots", "rootsdir"}),
              ["e", "fixed", "l", "new", "own", "run.sh"])


@test(private=True)
def links_lead_out_of_nothing(ctx):
    """They lead where they lead in the jail; so do ".." and the links of /proc."""
    with place() as (directory, folder):
        put(directory + "/secret", "SECRET")
        os.mkdir(directory + "/outside")
        put(directory + "/outside/secret", "SECRET")
        for n, target in enumerate((directory + "/secret", "../secret", "/etc/shadow", directory, "..",
                                    "/proc/self/root" + directory, "/proc/1/root" + directory + "/secret",
                                    "../outside", "/proc/self/cwd/../secret", "/../../.." + directory)):
            os.symlink(target, folder + "/l%d" % n)
        os.symlink("loop", folder + "/loop")
        with service(ctx, directory, folder + ":rw") as client:
            run(client, "os.chdir('/folder')\n"
                "none = errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.ELOOP, errno.EISDIR, errno.EPERM\n"
                "for name in os.listdir('.'):\n"
                "    for path in (name, name + '/secret', name + '/outside/secret', name + '/../secret'):\n"
                "        fails(lambda: open(path), *none)\n"
                "for path in ('/folder/../secret', '../secret', '../../secret', '/folder/../../%s/secret',\n"
                "             '/proc/self/cwd/../secret'):\n"
                "    fails(lambda: open(path), *none)\n"
                "os.symlink('%s', 'made'); fails(lambda: open('made'), *none)\n" % (directory, directory + "/secret"))


@test(private=True)
def a_directory_that_is_exchanged_for_a_link(ctx):
    """By another program, while a script reads in it."""
    with place() as (directory, folder):
        os.mkdir(directory + "/outside")
        put(directory + "/outside/x", "SECRET")
        make(folder + "/d")
        put(folder + "/d/x", "inside")
        os.symlink("../outside", folder + "/e")
        done = threading.Event()

        def exchange():
            while not done.is_set() and not os.path.exists(folder + "/enough"):
                for _ in range(2):
                    libc.renameat2(-100, (folder + "/d").encode(), -100, (folder + "/e").encode(),
                                   ctypes.c_uint(RENAME_EXCHANGE))
        with service(ctx, directory, folder + ":rw") as client:
            thread = threading.Thread(target=exchange)
            thread.start()
            try:
                o = run(client, "from collections import Counter\nseen = Counter()\n"
                        "n = 0\n"
                        "while n < 4000 or not seen['inside']:\n"
                        "    n += 1\n"
                        "    if n == 4000: open('/folder/enough', 'w').close()\n"
                        "    try:\n"
                        "        with open('/folder/d/x', 'r+') as f: seen[f.read()] += 1\n"
                        "    except OSError as e: seen['failed'] += 1\n"
                        "print(sorted(set(seen) - {'inside', 'failed'}), seen['inside'] > 0)")
            finally:
                done.set()
                thread.join()
            equal(o.stdout, "[] True\n")
        equal(open(directory + "/outside/x").read(), "SECRET")


@test(private=True)
def what_is_no_file_is_not_there(ctx):
    """FIFOs, sockets, devices: nothing waits for them. Another mount below is closed, and so is a
    /proc of the host."""
    root = os.getuid() == 0
    with place() as (directory, folder):
        os.mkfifo(folder + "/fifo", 0o666)
        os.chmod(folder + "/fifo", 0o666)
        put(folder + "/file")
        os.mkdir(folder + "/proc")
        if root:
            os.mknod(folder + "/null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        with service(ctx, directory, folder, "mount -t proc none '%s/proc'" % folder) as client:
            o = run(client, "print(sorted(os.listdir('/folder')))\n"
                    "for name in ('fifo', 'null'):\n"
                    "    fails(lambda: open('/folder/' + name), errno.ENOENT)\n"
                    "if %r:\n"
                    "    for name in ('', '/1/environ', '/self/mem', '/self/root/etc/passwd', '/version'):\n"
                    "        fails(lambda: os.close(os.open('/folder/proc' + name, os.O_RDONLY)), errno.EXDEV,\n"
                    "              errno.ENOENT)\n" % root)
            equal(o.stdout, "['file', 'proc']\n")


@test(private=True)
def files_that_change_meanwhile(ctx):
    """A file grows while it is read, gets shorter, and is replaced."""
    with place() as (directory, folder):
        put(folder + "/log", "0\n")
        done = threading.Event()

        def grow():
            n = 0
            while not done.is_set():
                n += 1
                with open(folder + "/log", "a" if n % 500 else "w") as f:
                    f.write("%d\n" % n)
        with service(ctx, directory, folder) as client:
            thread = threading.Thread(target=grow)
            thread.start()
            try:
                run(client, "for n in range(300):\n"
                    "    text = open('/folder/log').read()\n"
                    "    assert set(text) <= set('0123456789\\n\\0'), text[:100]\n")
            finally:
                done.set()
                thread.join()
            session = cell(client, "f = open('/folder/log')").structured["session"]
            put(directory + "/other", "replaced")
            os.rename(directory + "/other", folder + "/log")
            until("the new file is seen", lambda: cell(client, "open('/folder/log').read()", session)
                  .result["repr"] == "'replaced'")
            cell(client, "f.read()", session)


@test(private=True)
def it_is_not_rolled_back(ctx):
    """Neither by a time-out, nor by a checkpoint; and the description says so."""
    with place() as (directory, folder), service(ctx, directory, folder + ":rw") as client:
        tools = {t["name"]: t["description"] for t in client.ask("tools/list")["tools"]}
        assert "checkpoints never have those in /folder" in tools["run_repl"], tools["run_repl"]
        session = cell(client, "x = 1; open('/folder/f', 'w').write('1')", checkpoint="one").structured["session"]
        o = cell(client, "x = 2; open('/folder/f', 'w').write('2')\nimport signal\n"
                 "signal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass", session,
                 status="timeout", timeout_seconds=2)
        equal(o.structured["state"], "rolled_back")
        equal(cell(client, "x, open('/folder/f').read()", session).result["repr"], "(1, '2')")
        o = cell(client, "x, open('/folder/f').read()", session, restore="one")
        equal(o.result["repr"], "(1, '2')")


@test(private=True)
def its_server_is_made_again(ctx):
    with place() as (directory, folder):
        put(folder + "/a", "hello")
        with service(ctx, directory, folder) as client:
            run(client, "open('/folder/a').read()")
            servers = [pid for pid, _ in descendants(client.owner.pid) if comm(pid) == "python-volume"]
            equal(len(servers), 1)
            os.kill(servers[0], signal.SIGKILL)
            until("the folder is there again",
                  lambda: client.run("open('/folder/a').read()").status == "ok")


@test(private=True)
def a_folder_that_cannot_be_shown(ctx):
    """It is said at the start, or by each call; nothing runs without it."""
    program = os.path.join(ctx.options.build, "mcp-pythond")
    with place() as (directory, folder):
        put(folder + "/file")
        for words, code, text in ((["--stdio", "--folder", folder + "/none"], 78, "No such file"),
                                  (["--stdio", "--folder", folder + "/file:rw"], 78, "no directory"),
                                  (["--stdio", "--folder", "/"], 78, "whole machine"),
                                  (["--stdio", "--folder", "/proc"], 78, "belong to the kernel"),
                                  (["--folder", folder], 2, "--folder needs --stdio")):
            done = subprocess.run([program, *words], stdin=subprocess.DEVNULL, capture_output=True,
                                  text=True, timeout=ctx.seconds(60), env=environment(directory))
            equal(done.returncode, code, done.stderr)
            assert text in done.stderr, done.stderr
        if os.getuid() == 0 and not os.stat("/dev/fuse").st_mode & 0o006:
            with service(ctx, directory, folder, before=[]) as client:
                until("the keeper has said so", lambda: client.run("1").status == "jail_failed")
                assert "--folder needs /dev/fuse" in client.run("1").text


@test(private=True)
def a_command_has_one(ctx):
    """mcp-python run --folder."""
    command = os.path.join(ctx.options.build, "mcp-python")
    with place() as (directory, folder):
        put(folder + "/in", "text")
        put(directory + "/s.py", "open('/folder/out', 'w').write(open('/folder/in').read() * 2)\n")

        def ask(*words):
            return subprocess.run([*wrap(directory), command, "run", *words, directory + "/s.py"],
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  timeout=ctx.seconds(60), env=environment(directory))
        done = ask("--folder", folder)
        equal(done.returncode, 1, done.stderr)
        assert "Read-only file system" in done.stderr, done.stderr
        done = ask("--folder", folder + ":rw")
        equal((done.returncode, done.stderr), (0, ""))
        equal(open(folder + "/out").read(), "texttext")
        equal(ask("--folder", folder, "--socket", "/x").returncode, 64)


if __name__ == "__main__":
    main(__doc__, modules=FEW_MODULES)
