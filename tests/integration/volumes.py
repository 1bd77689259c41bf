#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Volumes: directories that the scripts and sessions of one tenant share; what hostile scripts do
with them, and their bounds.

A suite of tests/integration/run."""

import json
import os
import shutil
import signal
import stat
import subprocess

from disks import flushes
from fuse import place, service
from harness import FEW_MODULES, SOMEBODY, Skip, equal, main, test
from inside import Inside
from mcpclient import RpcError
from supervisor import comm
from waits import at_once, until, until_equal

MIB = 1 << 20
KIB64 = 65536


def run(client, script, volume="data", status="ok", **more):
    if volume:
        more["volume"] = volume
    o = client.run(script, 120, **more)
    equal(o.status, status, o)
    return o


def cell(client, code, session=None, status="ok", **more):
    o = client.outcome(client.request("tools/call", {"name": "run_repl", "arguments": {
        "code": code, **({"session": session} if session else {}), **more}}), 120)
    equal(o.status, status, o)
    return o


def refused(client, *texts, **arguments):
    try:
        o = client.run("1", 60, **arguments)
    except RpcError as e:
        said = str(e)
    else:
        said = o.everything()
        assert o.status != "ok", o
    for text in texts:
        assert text in said, said


def servers(s):
    return [pid for pid in s.below() if comm(pid) == "python-volume"]


def kill_servers(s):
    for pid in servers(s):
        os.kill(pid, signal.SIGKILL)
    until_equal("the servers", lambda: servers(s), [])


# ---- what it is for ----

@test(private=True)
def a_directory_that_vanishes(ctx):
    """Somebody removes, then renames the directory of all volumes: it is named and made again."""
    with place() as store, service(ctx, store) as s, ctx.client(path=s.socket) as c:
        for number, vanish in enumerate((shutil.rmtree, lambda d: os.rename(d, d + ".aside")), 1):
            run(c, "open('/volume/data/n', 'w').write('x')")
            vanish(store)
            o = run(c, "import os\nprint(os.path.exists('/volume/data/n'))")
            equal(o.stdout, "False\n")
            s.wait_logged('store-replaced directory="%s" made-again=yes' % store, times=number)
        run(c, "open('/volume/data/n', 'w').write('y')")
        equal(run(c, "print(open('/volume/data/n').read())").stdout, "y\n")


@test(private=True)
def a_keeper_that_is_away(ctx):
    """Nothing is wrong with a call that is made meanwhile: it is to be made again."""
    with place() as store, service(ctx, store) as s, ctx.client(path=s.socket) as c:
        run(c, "open('/volume/data/f', 'w').write('a')")
        seen = set()

        def is_away():
            for pid in (pid for pid in s.below() if comm(pid) == "python-keeper"):
                os.kill(pid, signal.SIGKILL)
            seen.add(c.run("1", 120, volume="data").status)
            return "overloaded" in seen
        until("a call while it is away", is_away)
        # error: the keeper ended while the script ran.
        assert seen <= {"ok", "overloaded", "jail_failed", "error"}, seen
        until("it is back", lambda: c.run("1", 120, volume="data").status == "ok")
        equal(run(c, "open('/volume/data/f').read()").result["repr"], "'a'")


@test(private=True)
def a_server_that_is_lost(ctx):
    """Who has a file open then is told why it fails; the next call and the next cell have the volume."""
    hangs = "f = open('/volume/data/f', 'w'); f.write('x'); f.flush()\n"
    wait = hangs + """
import time
print('open', flush=True)
while True:
    time.sleep(0.05)
    f.write('y'); f.flush()
"""
    with place() as store, service(ctx, store) as s, ctx.client(path=s.socket) as c:
        session = cell(c, hangs, volume="data").structured["session"]
        id = c.request("tools/call", {"name": "run_script", "_meta": {"progressToken": "t"}, "arguments": {
            "script": wait, "volume": "data", "timeout_seconds": 120}})
        while not c.notices:
            c.pump(ctx.seconds(60))
        kill_servers(s)
        o = c.outcome(id, ctx.seconds(60))
        equal(o.status, "error", o)
        assert "The service's process for the volume has ended" in o.error["advice"], o
        s.wait_logged("volume-lost")
        cell(c, "f.write('z'); f.flush()", session, status="error")
        equal(cell(c, "open('/volume/data/f').read()[0]", session, volume="data").result["repr"], "'x'")
        equal(run(c, "open('/volume/data/f').read()[0]").result["repr"], "'x'")


@test(private=True)
def a_keeper_that_is_replaced(ctx):
    """A session has a volume meanwhile, and its server the volume's lock."""
    with place() as store, service(ctx, store) as s, ctx.client(path=s.socket) as c:
        session = cell(c, "open('/volume/data/f', 'w').write('x')", volume="data").structured["session"]
        for pid in (pid for pid in s.below() if comm(pid) == "python-keeper"):
            os.kill(pid, signal.SIGKILL)
        s.wait_logged("keeper-ready", times=2)
        equal(run(c, "open('/volume/data/f').read()").result["repr"], "'x'")
        equal(cell(c, "open('/volume/data/f').read()", session, volume="data").result["repr"], "'x'")


@test(private=True)
def scripts_and_sessions_share_it(ctx):
    with place() as store, service(ctx, store) as s, ctx.client(path=s.socket) as c:
        run(c, "open('/volume/data/a', 'w').write('first')")
        first = cell(c, "f = open('/volume/data/a', 'a'); f.write(', second'); f.flush()",
                     volume="data")
        session = first.structured["session"]
        equal(run(c, "print(open('/volume/data/a').read())").stdout, "first, second\n")
        cell(c, "f.write(', third'); f.close()", session)
        equal(run(c, "print(open('/volume/data/a').read())").stdout, "first, second, third\n")
        # It stays what it was for those that do not ask for it.
        equal(run(c, "import os; print(os.listdir('/volume/data'))", volume=None).stdout, "[]\n")
        equal(run(c, "import os; print(os.listdir('/volume/data'))", volume="other").stdout, "[]\n")
        with ctx.client(path=s.socket) as again:
            equal(run(again, "import os; print(os.listdir('/volume/data'))").stdout, "['a']\n")


EVERYDAY = r"""
import json, mmap, os, pathlib, shutil, sqlite3, stat, subprocess, tempfile
v = pathlib.Path('/volume/data')
os.chdir(v)
(v / 'd/e').mkdir(parents=True)
(v / 'd/e/f').write_text('x' * 100000)
st = os.stat('d/e/f')
assert (st.st_uid, st.st_gid) == (os.getuid(), os.getgid()), st
assert st.st_size == 100000 and stat.S_IMODE(st.st_mode) == 0o644, oct(st.st_mode)
for mode in (0o600, 0o444, 0o755, 0o700, 0o644):
    os.chmod('d/e/f', mode)
    assert stat.S_IMODE(os.stat('d/e/f').st_mode) == mode, oct(mode)
os.utime('d/e/f', (1000, 2000))
assert os.stat('d/e/f').st_mtime == 2000
os.rename('d/e/f', 'd/g')
assert os.listdir('d/e') == [] and os.listdir('d') != []
os.replace('d/g', 'd/h')
os.symlink('h', 'd/link')
assert os.readlink('d/link') == 'h' and open('d/link').read(1) == 'x'
shutil.copytree('d', 'copy', symlinks=True)
assert sorted(os.listdir('copy')) == ['e', 'h', 'link']
shutil.rmtree('copy')
with open('map', 'w+b') as f:
    f.truncate(3 * 4096)
    with mmap.mmap(f.fileno(), 0) as m:
        m[4096:4101] = b'hello'
assert open('map', 'rb').read()[4096:4101] == b'hello'
with tempfile.TemporaryFile(dir=v) as f:
    f.write(b'abc'); f.seek(0)
    assert f.read() == b'abc' and os.fstat(f.fileno()).st_size == 3
with tempfile.NamedTemporaryFile(dir=v) as f:
    f.write(b'abc'); f.flush()
    assert open(f.name, 'rb').read() == b'abc'
db = sqlite3.connect('db')
db.execute('pragma journal_mode = wal')
db.execute('create table t (n)')
db.executemany('insert into t values (?)', [(n,) for n in range(1000)])
db.commit(); db.close()
assert sqlite3.connect('db').execute('select sum(n) from t').fetchone() == (499500,)
with open('log', 'a') as f: f.write('1\n')
with open('log', 'a') as f: f.write('2\n')
assert open('log').read() == '1\n2\n'
os.posix_fallocate(os.open('room', os.O_RDWR | os.O_CREAT), 0, 100000)
assert os.path.getsize('room') == 100000
open('program', 'w').write('#!/bin/sh\necho it runs\n'); os.chmod('program', 0o755)
assert subprocess.run(['./program'], capture_output=True, text=True).stdout == 'it runs\n'
subprocess.run('tar cf t.tar d && mkdir u && tar xf t.tar -C u && diff -r d u/d && rm -r u', shell=True,
               check=True)
for n in range(2000): pathlib.Path('d/%d' % n).touch()
assert len(os.listdir('d')) == 2003
total, used, free = shutil.disk_usage(v)
assert total == 64 << 20 and 0 < used < total, (total, used)
'done'
"""


@test(private=True)
def what_programs_do_with_files_works(ctx):
    with place() as store, service(ctx, store, "volume_bytes = 64M\n") as s, \
            ctx.client(path=s.socket) as c:
        equal(run(c, EVERYDAY).result["repr"], "'done'")


@test(private=True)
def people_use_it_and_operators_see_it(ctx):
    with place() as store:
        admin = os.path.join(os.path.dirname(store), "admin")
        with service(ctx, store, before="[admin]\nsocket = %s\n" % admin) as s:
            program = os.path.join(s.build, "mcp-python")

            def people(*arguments, text):
                return subprocess.run([program, arguments[0], "--socket", s.socket, *arguments[1:]], input=text, text=True,
                                      capture_output=True, timeout=120, check=True).stdout

            people("run", "--volume", "data", "-", text="open('/volume/data/f', 'w').write('from a terminal')")
            equal(people("repl", "--volume", "data", text="print(open('/volume/data/f').read())\n"),
                  "from a terminal\n")
            seen = json.loads(subprocess.run([program, "status", "--json", "--admin-socket", admin], text=True,
                                             capture_output=True, timeout=120, check=True).stdout)
            equal([t["volumes"] for t in seen["tenants"]], [1], seen)


@test(private=True)
def what_one_keeps_to_itself_the_next_can_read(ctx):
    """Each worker has a uid of its own; files belong to the one that asks."""
    with place() as store, service(ctx, store) as s, ctx.client(path=s.socket) as c:
        run(c, "import os; os.mkdir('/volume/data/d', 0o700)\n"
            "f = os.open('/volume/data/d/f', os.O_CREAT | os.O_WRONLY, 0o600)\n"
            "os.write(f, b'mine')")
        run(c, "import os\nst = os.stat('/volume/data/d/f')\n"
            "assert st.st_uid == os.getuid() and open('/volume/data/d/f').read() == 'mine'\n"
            "os.remove('/volume/data/d/f'); os.rmdir('/volume/data/d')")


@test(private=True)
def two_write_at_once(ctx):
    script = """
import fcntl, sqlite3, time
for n in range(100):
    with open('/volume/data/log', 'a') as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        f.write('%s %%d\\n' %% n); f.flush()
db = sqlite3.connect('/volume/data/db', timeout=60)
db.execute('create table if not exists t (who, n)')
for n in range(20):
    with db: db.execute('insert into t values (?, ?)', ('%s', n))
"""
    with place() as store, service(ctx, store) as s, ctx.client(path=s.socket) as c:
        run(c, "1")
        ids = [c.start_script(script % (who, who), volume="data") for who in "abcd"]
        for id in ids:
            o = c.outcome(id, 120)
            equal(o.status, "ok", o)
        equal(run(c, """
import sqlite3
lines = open('/volume/data/log').read().splitlines()
[sorted(lines) == sorted('%s %d' % (w, n) for w in 'abcd' for n in range(100)),
 sqlite3.connect('/volume/data/db').execute('select count(*) from t').fetchone()[0]]
""").result["repr"], "[True, 80]")


# ---- bounds ----

def on_disk(store):
    """Bytes of the blocks below it, and the number of names."""
    sizes = [os.lstat(os.path.join(at, name)).st_blocks * 512
             for at, dirs, files in os.walk(store) for name in dirs + files]
    return sum(sizes), len(sizes)


FILL = r"""
import errno, os
os.chdir('/volume/data')
n = 0
try:
    with open('big', 'wb', buffering=0) as f:
        while True: n += f.write(b'x' * 100000)
except OSError as e:
    assert e.errno == errno.ENOSPC, e
assert (7 << 20) < n <= (8 << 20), n
for grow in (lambda f: os.truncate(f, 1 << 40), lambda f: os.posix_fallocate(f, 0, 1 << 30),
             lambda f: os.pwrite(f, b'x', 1 << 35), lambda f: os.truncate(f, (8 << 20) + 1)):
    fd = os.open('sparse', os.O_RDWR | os.O_CREAT)
    try: grow(fd)
    except OSError as e: assert e.errno in (errno.ENOSPC, errno.EFBIG), e
    else: raise AssertionError('it grew')
    finally: os.close(fd)
# What is removed while it is open still counts.
f = open('big', 'rb'); os.remove('big')
try: open('next', 'wb').write(b'x' * (4 << 20))
except OSError as e: assert e.errno == errno.ENOSPC, e
else: raise AssertionError('it was counted as gone')
f.close()
open('next', 'wb').write(b'x' * (4 << 20))
os.truncate('next', 1)
open('other', 'wb').write(b'x' * (7 << 20))
os.remove('other'); os.remove('next'); os.remove('sparse')
# Names count too.
made = 0
try:
    for made in range(1000): os.symlink('y' * 1000, 'l%d' % made)
except OSError as e: assert e.errno == errno.ENOSPC, e
assert made == 100, made
for n in range(100): os.remove('l%d' % n)
for n in range(100): os.mkdir('d%d' % n)
for n in range(100): os.rename('d%d' % n, 'e%d' % n); os.rmdir('e%d' % n)
for n in range(1000):
    with open('again', 'w') as f: f.write('x')
    with open('more', 'w') as f: f.write('x')
    os.replace('more', 'again'); os.remove('again')
print(os.listdir('.'), os.statvfs('.').f_bfree * 4096 == 8 << 20, os.statvfs('.').f_ffree)
"""


@test(private=True)
def it_has_a_size(ctx):
    with place() as store, service(ctx, store, "volume_bytes = 8M\nvolume_files = 100\n") as s, \
            ctx.client(path=s.socket) as c:
        equal(run(c, FILL).stdout, "[] True 100\n")
        o = run(c, "open('/volume/data/full', 'wb').write(b'x' * (9 << 20))", status="disk_limit")
        size, names = on_disk(store)
        assert size <= 8 * MIB + KIB64, size
        # Another volume has its own.
        run(c, "open('/volume/data/f', 'wb').write(b'x' * (7 << 20))", volume="other")
        # What is there counts when it is mounted again.
        kill_servers(s)
        equal(run(c, "import os; s = os.statvfs('/volume/data'); s.f_blocks * 4096, s.f_bfree < 300, "
                  "s.f_files - s.f_ffree").result["repr"], "(8388608, True, 1)")
        ctx_healthy(c)


def ctx_healthy(client):
    equal(client.run("print(6 * 7)", 60).stdout, "42\n")


@test(private=True)
def there_are_so_many(ctx):
    with place() as store, service(ctx, store, "volumes = 2\nvolume_bytes = 1M\nbytes_max = 3M\n") as s, \
            ctx.client(path=s.socket) as c:
        write = "open('/volume/data/f', 'w').write('x')"
        run(c, write, volume="a")
        run(c, write, volume="b")
        o = run(c, write, volume="c", status="disk_limit")
        assert "the number of volumes" in o.everything(), o
        # One in which nothing is makes room, once nobody uses it.
        run(c, "import os; os.remove('/volume/data/f')", volume="a")
        kill_servers(s)
        run(c, write, volume="c")
        equal(run(c, "import os; os.listdir('/volume/data')", volume="b").result["repr"], "['f']")
        if os.getuid() == 0:
            with ctx.client(path=s.socket, uid=SOMEBODY) as other:
                run(other, write, volume="a")
                # All together have no more than bytes_max.
                run(other, write, volume="b", status="disk_limit")


@test(private=True, root=True)
def a_server_that_takes_its_time_to_end_is_replaced(ctx):
    """What shows the keeper that it has ended, its end of a pipe, is held open here: forever just killed."""
    with place() as store, service(ctx, store, "volumes = 1\n") as s, ctx.client(path=s.socket) as c:
        run(c, "open('/volume/data/f', 'w').write('x')", volume="a")
        [server] = servers(s)
        with open("/proc/%d/fd/3" % server, "wb"):
            run(c, "1", volume="b", status="disk_limit")
            until("the server was ended", lambda: server not in servers(s))
            equal(run(c, "open('/volume/data/f').read()", volume="a").result["repr"], "'x'")


@test(private=True, root=True)
def names_that_are_refused_cost_nothing(ctx):
    """Not a descriptor of the service for each, as they once did; and no more are in use afterwards."""
    with place() as store, service(ctx, store, "volumes = 2\n") as s, ctx.client(path=s.socket) as c:
        for name in "a", "b":
            run(c, "open('/volume/data/f', 'w').write('x')", volume=name)
        before = s.fds()
        for i in range(200):
            run(c, "1", volume="n%d" % i, status="disk_limit")
        # Workers and leaves that have just ended are cleared away a little later.
        until(lambda: "%d descriptors, and before %d" % (s.fds(), before),
              lambda: s.fds() <= before + 20)
        held = [cell(c, "1", volume=name).structured["session"] for name in ("a", "b")]
        o = c.run("1", 120, volume="c")
        assert o.refused and "2 others of yours are in use" in o.everything(), o
        for session in held:
            cell(c, "", session, close=True)
        run(c, "1", volume="a")


@test(private=True, root=True)
def the_disk_keeps_some_room(ctx):
    """256 MiB and a twentieth of the inodes, also where holes are filled; what is removed is free again."""
    fill = """import errno, os
made = 0
try:
    with open("/volume/data/f", "r+b") as f:
        for at in range(0, 100 << 20, 1 << 20):
            os.pwrite(f.fileno(), bytes(1 << 20), at)
            made += 1
except OSError as e:
    assert e.errno == errno.ENOSPC
made
"""
    with place() as store, service(ctx, store, "volume_bytes = 200M\n", disk="size=400m,nr_inodes=2000") as s, \
            ctx.client(path=s.socket) as c:
        for name in "a", "b":
            run(c, "open('/volume/data/f', 'wb').truncate(100 << 20)", volume=name)
        made = [int(run(c, fill, volume=name).result["repr"]) for name in ("a", "b")]
        assert 120 <= sum(made) <= 145, made
        run(c, "open('/volume/data/f', 'r+b').truncate(0)", volume="a")
        run(c, "open('/volume/data/f', 'wb').write(bytes(50 << 20))", volume="a")
        n = int(run(c, "n = 0\ntry:\n    for n in range(4000): open('/volume/data/%d' % n, 'x').close()\n"
                    "except OSError: pass\nn", volume="c").result["repr"])
        assert 1700 < n < 1910, n


# ---- walls ----

@test(private=True, root=True)
def tenants_do_not_meet(ctx):
    with place() as store, service(ctx, store) as s, ctx.client(path=s.socket) as c, \
            ctx.client(path=s.socket, uid=SOMEBODY) as other:
        run(c, "open('/volume/data/secret', 'w').write('of the first')")
        equal(run(other, "import os; os.listdir('/volume/data')").result["repr"], "[]")
        run(other, "open('/volume/data/secret', 'w').write('of the second')")
        equal(run(c, "open('/volume/data/secret').read()").result["repr"], "'of the first'")
        equal(sorted(os.listdir(store)), ["0", str(SOMEBODY)])
        for up in ("/volume/data/..", "/volume"):
            equal(run(other, "import os; os.listdir(%r)" % up).result["repr"], "['data']")


HOSTILE = r"""
import ctypes, errno, os, socket, stat
os.chdir('/volume/data')
def fails(what, *codes):
    try: what()
    except OSError as e: assert e.errno in codes, (what, e)
    else: raise AssertionError('it works')
open('f', 'w').write('x')
fails(lambda: os.mkfifo('fifo'), errno.EPERM)
fails(lambda: os.mknod('null', 0o666 | stat.S_IFCHR, os.makedev(1, 3)), errno.EPERM)
fails(lambda: os.mknod('sda', 0o666 | stat.S_IFBLK, os.makedev(8, 0)), errno.EPERM)
fails(lambda: socket.socket(socket.AF_UNIX).bind('s'), errno.EPERM)
fails(lambda: os.link('f', 'g'), errno.EPERM)
fails(lambda: os.chown('f', 0, 0), errno.EPERM, errno.EINVAL)
fails(lambda: os.setxattr('f', 'user.x', b'y'), errno.ENOTSUP, errno.ENOSYS, errno.EPERM)
for bits in (0o4755, 0o2755, 0o1777):
    try: os.chmod('f', bits)
    except OSError: pass
    assert not os.stat('f').st_mode & 0o7000, oct(os.stat('f').st_mode)
flags = next(l for l in open('/proc/self/mounts') if ' /volume/data ' in l).split()[3].split(',')
assert 'nosuid' in flags and 'nodev' in flags, flags
# A link leads where it leads in the jail.
for target in ('/etc/shadow', '/proc/1/environ', '../../../../etc/shadow', '/dev/mem', '/root', '.', 'loop'):
    name = 'l%d' % len(os.listdir('.'))
    os.symlink(target, name)
    assert os.readlink(name) == target
os.symlink('loop', 'loop')
fails(lambda: open('loop'), errno.ELOOP)
fails(lambda: os.stat('l2/x'), errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.EPERM)
for name in (b'\xff\xfe', b'new\nline', b'-rf', b'x' * 255, ' ', '*', 'é', '...'):
    open(name, 'w').write('x'); assert open(name).read() == 'x'; os.rename(name, 'y'); os.remove('y')
fails(lambda: open('x' * 256, 'w'), errno.ENAMETOOLONG)
fails(lambda: open('a/../../x', 'w'), errno.ENOENT)
# Directories below each other end somewhere, also by moving one into another.
def dig(n):
    made = 0
    try:
        for made in range(n): os.mkdir('d'); os.chdir('d')
    except OSError as e: assert e.errno == errno.ENAMETOOLONG, e
    os.chdir('/volume/data')
    return made
depth = dig(10000)
assert 100 < depth < 300, depth
os.rename('d', 'deep'); os.mkdir('d'); os.mkdir('d/d')
fails(lambda: os.rename('deep', 'd/d/deep'), errno.ENAMETOOLONG)
os.mkdir('top')
fails(lambda: os.rename('top', 'top/below'), errno.EINVAL)
import subprocess
assert subprocess.run(['rm', '-r', 'deep', 'd', 'top']).returncode == 0
# What is mounted on cannot be removed or replaced, and its surroundings are as they were.
os.chdir('/')
fails(lambda: os.rmdir('/volume/data'), errno.EBUSY, errno.EROFS, errno.EACCES, errno.EPERM)
fails(lambda: os.rename('/volume/data', '/volume/x'), errno.EBUSY, errno.EROFS, errno.EACCES, errno.EPERM)
fails(lambda: open('/volume/x', 'w'), errno.EROFS, errno.EACCES)
libc = ctypes.CDLL(None, use_errno=True)
assert libc.umount2(b'/volume/data', 2) == -1
assert libc.mount(b'none', b'/volume/data', b'tmpfs', 0, None) == -1
fails(lambda: os.open('/dev/fuse', os.O_RDWR), errno.ENOENT, errno.EACCES)
# Descriptors: what is open in it has an end, and closing them all leaves it well.
fds = []
try:
    for n in range(5000): fds.append(os.open('/volume/data/o%d' % n, os.O_CREAT | os.O_RDWR))
except OSError as e: assert e.errno in (errno.EMFILE, errno.ENFILE), e
for fd in fds: os.close(fd)
for n in range(len(fds) + 1):
    try: os.remove('/volume/data/o%d' % n)
    except FileNotFoundError: pass
'survived'
"""


@test(private=True)
def a_hostile_script_gets_nothing_of_it(ctx):
    with place() as store, service(ctx, store) as s, ctx.client(path=s.socket) as c:
        equal(run(c, HOSTILE).result["repr"], "'survived'")
        for at, dirs, files in os.walk(store):
            for name in dirs + files:
                st = os.lstat(os.path.join(at, name))
                assert stat.S_IFMT(st.st_mode) in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK), name
                assert not st.st_mode & 0o7000 and st.st_uid == os.lstat(store).st_uid, name
        equal(os.lstat(store).st_mode & 0o777, 0o700)
        ctx_healthy(c)


@test(private=True, root=True)
def code_in_the_server_is_bounded(ctx):
    """It has the files of its volume, and nothing else."""
    with place() as store, service(ctx, store) as s, ctx.client(path=s.socket) as c:
        run(c, "open('/volume/data/f', 'w').write('x')")
        (server,) = servers(s)
        with open("/proc/%d/status" % server, encoding="ascii") as f:
            fields = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
        for capabilities in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
            equal(int(fields[capabilities], 16), 0, capabilities)
        equal(fields["NoNewPrivs"], "1")
        equal(os.listdir("/proc/%d/root" % server), ["f"])
        equal(len(open("/proc/%d/mountinfo" % server, encoding="ascii").readlines()), 1)
        # 0 to 2, the device, the directory and the pipe by which the keeper sees it; and f, until
        # the kernel has told of its end.
        until(lambda: "six descriptors, not %s" % os.listdir("/proc/%d/fd" % server),
              lambda: len(os.listdir("/proc/%d/fd" % server)) <= 6)
        assert "/tenants/" in open("/proc/%d/cgroup" % server, encoding="ascii").read()
        with Inside(server) as it:
            for name, *arguments in (
                    ("socket", 1, 1), ("socket", 2, 1), ("execve", 0), ("clone", 17), ("unshare", 0x20000),
                    ("setns", -1, 0), ("mount", 0), ("fsopen", 0), ("open_tree", -1), ("umount2", 0),
                    ("pivot_root", 0), ("chroot", 0), ("kill", 1, 0), ("ptrace", 0), ("pidfd_open", 1), ("tgkill", 1, 1, 0),
                    ("mmap", 0, 4096, 7, 0x22, -1), ("mprotect", 0, 4096, 4)):
                equal(it.call(name, *arguments), "EPERM", "%s %r" % (name, arguments))
        equal(run(c, "open('/volume/data/f').read()").result["repr"], "'x'")


@test(private=True)
def memory_is_bounded_beside_it(ctx):
    """Also where it is measured without a look at each process: forks in a script and in a session."""
    grow = "x = []\nwhile True: x.append(bytearray(b'x') * (8 << 20))"
    fork = "import os, time\nx = bytearray(b'x') * (40 << 20)\n"
    with place() as store, service(ctx, store) as s, ctx.client(path=s.socket) as c:
        o = c.run("import mmap, os\n" + fork + "for i in range(4):\n    if os.fork() == 0:\n"
                  "        for j in range(0, len(x), 4096): x[j] = i\n        time.sleep(600)\n"
                  "time.sleep(600)", 120, volume="data", memory_mb=128)
        equal(o.status, "memory_limit", o)
        session = cell(c, fork + "open('/volume/data/f', 'w').write('x')", volume="data",
                       memory_mb=192).structured["session"]
        o = c.outcome(c.request("tools/call", {"name": "run_repl", "arguments": {
            "code": grow, "session": session}}), 120)
        assert o.status == "memory_limit" or o.error["type"] == "MemoryError", o
        o = cell(c, "open('/volume/data/f').read() + str(len(globals()['x']) > 3)", session=session)
        equal(o.result["repr"], "'xTrue'")


@test(private=True)
def the_disk_is_not_flushed(ctx):
    """Nothing that asks for a sync reaches the disk that the volume is on."""
    script = """
import mmap, os
fd = os.open('/volume/data/f', os.O_RDWR | os.O_CREAT | os.O_DSYNC)
os.truncate(fd, 4096)
page = mmap.mmap(fd, 4096)
for i in range(500):
    os.pwrite(fd, b'x', 0)
    os.pwritev(fd, [b'y'], 1, os.RWF_DSYNC)
    os.fsync(fd)
    page[2] = i & 255
    page.flush()
print('done')
"""
    with place() as store, service(ctx, store) as s, ctx.client(path=s.socket) as c:
        run(c, "")
        path = os.path.join(store, "probe")
        fd, before = os.open(path, os.O_RDWR | os.O_CREAT), flushes()
        try:
            for _ in range(50):
                os.pwrite(fd, b"x", 0)
                os.fdatasync(fd)
        finally:
            os.close(fd)
        if flushes() < before + 50:
            raise Skip("no disk here counts the flushes of %s" % path)
        before = flushes()
        equal(run(c, script).stdout, "done\n")
        count = flushes() - before
    # Others may use the disks meanwhile.
    assert count < 1000, "%d flushes" % count
    return "%d flushes by others" % count


@test(private=True)
def what_is_mounted_stays_the_workers_when_it_is_killed_or_stopped(ctx):
    """A script that is killed in the middle of a call to its volume ends; the volume goes on."""
    spin = "import os\nwhile True:\n open('/volume/data/f', 'wb').write(b'x' * 1000000); os.remove('/volume/data/f')"
    with place() as store, service(ctx, store) as s, ctx.client(path=s.socket) as c:
        for _ in range(3):
            o = c.run(spin, 60, volume="data", timeout_seconds=1)
            equal(o.status, "timeout", o)
        id = c.start_script(spin, volume="data")
        until("a file", lambda: os.path.exists(os.path.join(store, str(os.getuid()), "data", "f")),
              wait=at_once)
        c.cancel(id)
        run(c, "open('/volume/data/g', 'w').write('x')")
        ctx_healthy(c)


# ---- ends and beginnings ----

@test(private=True)
def a_server_that_is_killed_is_replaced(ctx):
    with place() as store, service(ctx, store) as s, ctx.client(path=s.socket) as c:
        run(c, "open('/volume/data/f', 'w').write('kept')")
        session = cell(c, "f = open('/volume/data/f')", volume="data").structured["session"]
        equal(len(servers(s)), 1)
        kill_servers(s)
        o = cell(c, "f.seek(0); open('/volume/data/f').read()", session, status="error")
        assert "[Errno 107]" in o.everything() or "ConnectionAbortedError" in o.everything(), o
        equal(run(c, "open('/volume/data/f').read()").result["repr"], "'kept'")
        equal(cell(c, "1 + 1", session).result["repr"], "2")
        for again in session, None:
            equal(cell(c, "open('/volume/data/f').read()", again, volume="data").result["repr"], "'kept'")


@test(private=True)
def it_is_there_after_a_restart(ctx):
    with place() as store:
        with service(ctx, store) as s, ctx.client(path=s.socket) as c:
            run(c, "import os; os.makedirs('/volume/data/d'); open('/volume/data/d/f', 'w').write('kept')")
        with service(ctx, store) as s, ctx.client(path=s.socket) as c:
            equal(run(c, "open('/volume/data/d/f').read()").result["repr"], "'kept'")


@test(private=True)
def a_session_has_one(ctx):
    with place() as store, service(ctx, store) as s, ctx.client(path=s.socket) as c:
        session = cell(c, "1").structured["session"]
        cell(c, "open('/volume/data/f', 'w').write('x')", session, volume="one")
        cell(c, "1", session, volume="one")
        try:
            o = cell(c, "1", session, volume="two", status="refused")
        except (RpcError, AssertionError) as e:
            assert "this session has the volume one" in str(e), e
        equal(cell(c, "import os; os.listdir('/volume/data')", session).result["repr"], "['f']")
        # One mount, however often it was asked for.
        equal(cell(c, "sum(' /volume/data ' in l for l in open('/proc/self/mounts'))", session).result["repr"],
              "1")


@test(private=True)
def without_it_a_call_says_what_is_missing(ctx):
    with ctx.private("[pool]\nwarm = 1\n") as s, ctx.client(path=s.socket) as c:
        refused(c, "has no volumes", "[workspace]", volume="data")
        listed = {t["name"]: t for t in c.ask("tools/list")["tools"]}
        assert "volume" not in listed["run_script"]["inputSchema"]["properties"]
    with place() as store:
        with service(ctx, store) as s, ctx.client(path=s.socket) as c:
            listed = {t["name"]: t for t in c.ask("tools/list")["tools"]}
            for tool in ("run_script", "run_repl"):
                assert "/volume/data" in listed[tool]["inputSchema"]["properties"]["volume"]["description"]
            for name in ("..", ".x", "a/b", "a\nb", "x" * 65, "é", 7):
                refused(c, "volume", volume=name)
            equal(os.listdir(store), [])
    with ctx.private("[workspace]\nvolume = yes\n") as s, ctx.client(path=s.socket) as c:
        refused(c, "need a directory", volume="data")
    if os.getuid() == 0 and not os.stat("/dev/fuse").st_mode & 0o006:
        with place() as store, ctx.private(
                "[workspace]\nvolume = yes\ndirectory = %s\n" % store) as s, \
                ctx.client(path=s.socket) as c:
            s.wait_logged("volumes-none")
            # The service lacks it; the arguments are right.
            o = c.run("1", ctx.seconds(60), volume="data")
            equal(o.status, "jail_failed")
            assert "need /dev/fuse" in o.everything(), o
            ctx_healthy(c)


if __name__ == "__main__":
    main(__doc__, modules=FEW_MODULES)
