#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a script sees of its machine: files of /proc, interfaces, terminals. They are the worker's,
and libraries that look at them work.

A suite of tests/integration/run. That nothing of the host is among them is unit/worker/test-jail's."""

import glob
import os
import re
import subprocess

from harness import Skip, equal, main, test, tests
from repl import Session, begun

tests.clear()	# those of repl.py

MIB = 1 << 20
TOTAL = "int(open('/proc/meminfo').readline().split()[1]) * 1024"


def having(client, module, script, needed=True, **limits):
    """Runs a script of a module that may not be installed. needed: for all tests, and not only for
    those before a release."""
    o = client.run(script, 120, timeout_seconds=100, **limits)
    if o.status == "error" and o.error["type"] == "ModuleNotFoundError":
        raise Skip("no %s here" % module, missing=needed)
    assert o.status == "ok", repr(o)
    equal(o.stderr, "", module)
    return o


@test
def memory_is_the_limit(ctx):
    with ctx.client() as client:
        for limits, mib in (({}, 512), ({"memory_mb": 512}, 512), ({"memory_mb": 100}, 100)):
            o = client.run(TOTAL, **limits)
            equal((o.status, o.result and o.result["repr"]), ("ok", str(mib * MIB)), repr(o))
    for limits, mib in (({}, 512), ({"memory_mb": 200}, 200)):
        with begun(ctx, "x = 1", **limits) as s:
            for _ in range(2):
                equal(s.call(TOTAL).result["repr"], str(mib * MIB))


@test
def processors_are_the_affinity(ctx):
    script = ("import os\nfrom pathlib import Path\n"
              "cpus = sorted(os.sched_getaffinity(0))\n"
              "words = [l.split()[0] for l in Path('/proc/stat').read_text().splitlines()]\n"
              "assert [w for w in words if w[:3] == 'cpu'] == ['cpu', *('cpu%d' % i for i in cpus)], words\n"
              "lines = Path('/proc/cpuinfo').read_text().splitlines()\n"
              "assert [int(l.split(':')[1]) for l in lines if l[:9] == 'processor'] == cpus, lines\n"
              "assert os.cpu_count() == len(cpus)\n")
    with ctx.client() as client:
        equal(client.run(script).status, "ok")


@test
def nothing_moves_with_the_host(ctx):
    """Boot is the start of the zygote, and no load or count is the host's."""
    with open("/proc/stat", encoding="ascii") as f:
        booted = next(int(l.split()[1]) for l in f if l.startswith("btime"))
    with ctx.client() as client:
        o = client.run("import re\nstat = open('/proc/stat').read()\n"
                       "[open('/proc/loadavg').read()],"
                       " re.findall('(?m)^(?!btime)[a-z_]+[0-9]* .*[2-9]', stat)\n")
        equal(o.result["repr"], r"(['0.00 0.00 0.00 1/1 1\n'], [])", repr(o))
        o = client.run("int(open('/proc/stat').read().split('btime')[1].split()[0])")
        assert int(o.result["repr"]) != booted or os.times().elapsed < 600, repr(o)


@test
def grid_searches_have_workers(ctx):
    """Twice in a session, too: n_jobs=-1 is what people write."""
    fit = ("from sklearn.datasets import load_iris\nfrom sklearn.model_selection import GridSearchCV\n"
           "from sklearn.svm import SVC\n"
           "search = GridSearchCV(SVC(), {'C': [0.1, 1, 10]}, n_jobs=-1, cv=3).fit(*load_iris(return_X_y=True))\n"
           "print(search.best_score_ > 0.9)\n")
    with ctx.client() as client:
        equal(having(client, "sklearn", fit, needed=False, memory_mb=1024, pids=200).stdout, "True\n")
        with begun(ctx, memory_mb=1024) as s:
            for _ in range(2):
                equal(s.call(fit, 120, timeout_seconds=100, pids=200).stdout, "True\n")


@test
def dask_computes(ctx):
    """With threads, and with processes, for which it asks how much memory and how many processors
    there are."""
    script = ("import dask, dask.bag, dask.system\n"
              "import os\nassert dask.system.CPU_COUNT <= len(os.sched_getaffinity(0))\n"
              "if __name__ == '__main__':\n"
              "    b = dask.bag.from_sequence(range(100), npartitions=4).map(lambda x: x * x).sum()\n"
              "    print(b.compute(scheduler='threads'), b.compute(scheduler='processes'))\n")
    with ctx.client() as client:
        equal(having(client, "dask", script, needed=False, memory_mb=1024, pids=200).stdout, "328350 328350\n")


@test
def python_and_pip_have_their_names(ctx):
    script = ("import shutil, subprocess, sys\n"
              "for name in ('python', 'python3'):\n"
              "    said = subprocess.run([name, '-c', 'import sys; print(sys.version)'], capture_output=True, text=True)\n"
              "    assert said.stdout == sys.version + '\\n', said\n"
              "open('x.py', 'w').write('print(6 * 7)')\n"
              "print(subprocess.run('python x.py; pip --version', shell=True, capture_output=True, text=True))\n")
    with ctx.client() as client:
        o = client.run(script)
        equal(o.status, "ok", o)
        assert "returncode=0, stdout='42\\npip " in o.stdout, o.stdout


@test
def packages_have_their_data(ctx):
    """Debian's packages keep theirs in /usr/share."""
    with ctx.client() as client:
        having(client, "docutils", "import docutils.core\n"
               "print(len(docutils.core.publish_string('*x*', writer_name='html')) > 1000)", needed=False)


@test
def a_process_began_when_it_began(ctx):
    """By the sum that psutil makes: btime, and the ticks since then. Clocks agree with it."""
    script = ("import os, time\n"
              "ticks = int(open('/proc/self/stat').read().rpartition(')')[2].split()[19])\n"
              "booted = int(open('/proc/stat').read().split('btime')[1].split()[0])\n"
              "[booted + ticks / os.sysconf('SC_CLK_TCK') - time.time(),\n"
              " booted + time.clock_gettime(time.CLOCK_BOOTTIME) - time.time()]\n")
    if not os.path.exists("/proc/self/ns/time"):
        raise Skip("this kernel has no time namespaces")
    with ctx.client() as client:
        began, now = client.run(script).result["json"]
        # A worker waits for its script; what was wrong is the age of the machine, hours and more.
        assert -3600 < began <= 2 and abs(now) <= 2, (began, now)
    with begun(ctx, "x = 1") as s:
        began, now = s.call(script).result["json"]
        assert -3600 < began <= 2 and abs(now) <= 2, (began, now)


@test
def uptime_is_the_time_since_boot(ctx):
    """Within about a second, and never too early: ps subtracts a process's start from it, and a
    negative age is a huge one. How long processors had nothing to do is not told."""
    script = ("import subprocess, time\ntime.sleep(1.2)\n"
              "ages = [int(line) for line in subprocess.run(['ps', '-eo', 'etimes='],"
              " capture_output=True, text=True).stdout.split()]\n"
              "uptime, idle = open('/proc/uptime').read().split()\n"
              "[float(uptime), idle, time.clock_gettime(time.CLOCK_BOOTTIME), ages]\n")
    if not os.path.exists("/proc/self/ns/time"):
        raise Skip("this kernel has no time namespaces")

    def check(o):
        uptime, idle, now, ages = o.result["json"]
        assert now - 30 < uptime <= now + 1.1 and idle == "0.00", o.result
        # The script's own process is older, ps is not. All are of the worker.
        assert len(ages) >= 2 and max(ages) >= 1 and all(0 <= age <= uptime for age in ages), o.result
        return uptime

    with ctx.client() as client:
        check(client.run(script))
    with begun(ctx, "import time") as s:
        first = check(s.call(script))
        assert check(s.call(script)) - first >= 1


@test
def programs_of_procps(ctx):
    with ctx.client() as client:
        o = client.run("import subprocess\nfor c in ('ps aux', 'ps -ef', 'free -b', 'uptime', 'pgrep -a python'):\n"
                       "    r = subprocess.run(c.split(), capture_output=True, text=True)\n"
                       "    assert (r.returncode, r.stderr) == (0, ''), r\n"
                       "    print(r.stdout)\n", memory_mb=256)
        equal(o.status, "ok", repr(o))
        mem = next(l.split() for l in o.stdout.splitlines() if l.startswith("Mem:"))
        equal(mem[1:3], [str(256 * MIB), "0"])


@test
def psutil_works(ctx):
    script = ("import os, psutil, subprocess, sys\n"
              "assert psutil.virtual_memory().total == psutil.virtual_memory().available == 256 << 20\n"
              "assert psutil.swap_memory().total == 0\n"
              "assert psutil.cpu_count() == psutil.cpu_count(logical=False) == len(os.sched_getaffinity(0))\n"
              "psutil.cpu_percent(), psutil.cpu_percent(percpu=True), psutil.cpu_times(), psutil.cpu_stats()\n"
              "psutil.disk_partitions(), psutil.disk_io_counters(), psutil.net_io_counters(), psutil.net_connections()\n"
              "assert any(a.address == '127.0.0.1' for a in psutil.net_if_addrs()['lo'])\n"
              "assert psutil.net_if_stats()['lo'].isup\n"
              "psutil.boot_time(), psutil.users(), psutil.getloadavg()\n"
              "child = subprocess.Popen(['sleep', '600'])\n"
              "me = psutil.Process()\n"
              "assert me.memory_info().rss > 0 and me.create_time() > 0\n"
              "assert [c.pid for c in me.children()] == [child.pid]\n"
              "assert {p.name() for p in psutil.process_iter()} >= {'python3', 'sleep'}\n"
              "psutil.Process(child.pid).kill()\nassert child.wait() == -9\n")
    with ctx.client() as client:
        having(client, "psutil", script, memory_mb=256)


@test
def joblib_has_workers(ctx):
    """loky asks psutil how much memory its workers have, and ends those that it cannot ask."""
    script = ("import psutil\nfrom joblib import Parallel, delayed\n"
              "print(Parallel(n_jobs=2)(delayed(pow)(i, 2) for i in range(50)) == [i * i for i in range(50)])\n")
    with ctx.client() as client:
        equal(having(client, "joblib", script).stdout, "True\n")


@test
def a_cell_has_workers_of_joblib(ctx):
    with begun(ctx, "x = 1", memory_mb=1024) as s:
        o = s.call("import psutil\nfrom joblib import Parallel, delayed\n"
                   "Parallel(n_jobs=-1)(delayed(abs)(-i) for i in range(20)) == list(range(20))",
                   120, timeout_seconds=100, cpu_seconds=100)
        if o.status == "error" and o.error["type"] == "ModuleNotFoundError":
            raise Skip("no joblib here", missing=True)
        equal((o.status, o.result and o.result["repr"]), ("ok", "True"), repr(o))


@test
def interfaces_are_listed(ctx):
    script = ("import ctypes, socket\n"
              "names = [n for _, n in socket.if_nameindex()]\n"
              "assert 'lo' in names and not [n for n in names if n.startswith(('eth', 'en', 'wl', 'br', 'docker'))], names\n"
              "class Entry(ctypes.Structure): pass\n"
              "Entry._fields_ = [('next', ctypes.POINTER(Entry)), ('name', ctypes.c_char_p), ('flags', ctypes.c_uint),\n"
              "                  ('address', ctypes.POINTER(ctypes.c_ubyte * 8))]\n"
              "C, first = ctypes.CDLL(None, use_errno=True), ctypes.POINTER(Entry)()\n"
              "assert C.getifaddrs(ctypes.byref(first)) == 0\n"
              "entry, seen = first, []\n"
              "while entry:\n"
              "    e = entry.contents\n"
              "    seen.append((e.name, e.flags & 9, bytes(e.address.contents)[:1][0], bytes(e.address.contents)[4:]))\n"
              "    entry = e.next\n"
              "C.freeifaddrs(first)\n"
              "assert seen[0] == (b'lo', 9, socket.AF_INET, bytes([127, 0, 0, 1])), seen\n"
              "assert {s[0] for s in seen} == {b'lo'}, seen\n"
              "try: s = socket.create_server(('::1', 0), family=socket.AF_INET6)\n"
              "except OSError: s = None\n"
              "assert [s[2] for s in seen[1:]] == [socket.AF_INET6] * bool(s), seen\n")
    with ctx.client() as client:
        equal(client.run(script).status, "ok")


@test
def sockets_of_zmq(ctx):
    script = ("import zmq\nctx = zmq.Context()\n"
              "server = ctx.socket(zmq.REP)\nport = server.bind_to_random_port('tcp://127.0.0.1')\n"
              "client = ctx.socket(zmq.REQ)\nclient.connect('tcp://127.0.0.1:%d' % port)\n"
              "client.send(b'x')\nprint(server.recv())\nctx.destroy(0)\n")
    with ctx.client() as client:
        equal(having(client, "zmq", script).stdout, "b'x'\n")


# ---- [profile] terminals ----

@test
def terminals_are_not_there(ctx):
    with ctx.client() as client:
        o = client.run("import errno, os\n"
                       "try: os.openpty()\nexcept OSError as e: print(errno.errorcode[e.errno])\n"
                       "print([os.path.lexists('/dev/' + n) for n in ('ptmx', 'pts', 'tty')])\n")
        equal((o.status, o.stdout), ("ok", "ENOENT\n[False, False, False]\n"), repr(o))


@test(private=True)
def terminals_where_a_profile_has_them(ctx):
    with ctx.private("[profile basic]\nterminals = yes\n") as service, \
            ctx.client(path=service.socket) as client:
        o = client.run("import os\npid, fd = os.forkpty()\n"
                       "if pid == 0: os.execvp('sh', ['sh', '-c', 'stty -echo; tty; read x; echo got $x > /dev/tty'])\n"
                       "said = os.read(fd, 100)\nos.write(fd, b'a line\\n')\n"
                       "while b'got' not in said: said += os.read(fd, 100)\n"
                       "print(said.decode().split('\\r\\n')[0], b'got a line' in said, os.waitpid(pid, 0)[1])\n", 120,
                       timeout_seconds=100)
        equal((o.status, o.stdout), ("ok", "/dev/pts/0 True 0\n"), repr(o))
        equal(having(client, "pexpect", PEXPECT).stdout, "3\n")
        s = Session(client)
        s.well("import os\nmaster, slave = os.openpty()")
        equal(s.call("os.write(master, b'x\\n'), os.read(slave, 9), os.ttyname(slave)").result["repr"],
              "(2, b'x\\n', '/dev/pts/0')")


PEXPECT = """
import pexpect
shell = pexpect.spawn('sh', timeout=90)
shell.sendline('echo $((6 * 7)); exit 3')
shell.expect('42')
shell.expect(pexpect.EOF)
shell.close()
print(shell.exitstatus)
"""


# Paths of the host that libraries name, and that no jail shows: accounts and other facts of the host, and what
# only programs of the host use.
OF_THE_HOST = re.compile(r"/etc/(\.pwd\.lock|g?shadow|fstab|gai\.conf|bindresvport\.blacklist|inputrc|localtime|netconfig|"
                         r"networks|rpc|shells|terminfo|timezone|machine-id|os-release|debian_version|selinux|xdg|systemd.*|apt)$"
                         r"|/(usr/)?lib/(systemd|debug|gcc|ssl/private|blt)|/usr/share/(X11|locale|man|fontconfig)|/var/")


@test
def compiled_in_paths_are_shown(ctx):
    """Asks the libraries of Python's own modules which paths they have compiled in. The jail has those that
    the host has: OpenSSL's authorities, descriptions of terminals, Tcl's library."""
    with ctx.client() as client:
        modules = client.run("import sysconfig, glob, sys, os\nglob.glob(sysconfig.get_path('stdlib') + '/lib-dynload/*.so')"
                             " + [os.path.realpath(sys.executable)]").result["json"]
        if not all(map(os.path.exists, modules)):
            raise Skip("the Python under test has a root of its own")
        needed = subprocess.run(["ldd", *modules], capture_output=True, text=True).stdout
        found = set()
        for library in {os.path.realpath(path) for path in re.findall(r"=> (/\S+)", needed)}:
            with open(library, "rb") as f:
                found |= {m[1].decode().rstrip("/") for m in re.finditer(
                    rb"(?<=[\x00-\x1f:;])(/(?:usr/lib|usr/share|lib|etc)/[\w.+/-]+)(?=[\x00:;])", f.read())}
        there = sorted(path for path in found if os.path.exists(path) and not OF_THE_HOST.match(path))
        assert len(there) > 10, there
        o = client.run("import os\n[path for path in %r if not os.path.exists(path)]" % there)
        equal(o.result["json"], [], repr(o))
        o = client.run("import ssl, curses, os, glob\ncurses.setupterm('xterm')\n"
                       "[ssl.create_default_context().cert_store_stats()['x509_ca'], sorted(glob.glob('/usr/lib/lib*.so*'))]")
        assert o.result["json"][0] > 50, repr(o)
        equal(o.result["json"][1], sorted(glob.glob("/usr/lib/lib*.so*")))


if __name__ == "__main__":
    main(__doc__)
