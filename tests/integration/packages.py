#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""install_package and what scripts depend on, against a package index of our own.

Wheels are made here, an index on a loopback port is served by nginx, and pip asks it through
mcp-python-egress from within the installer's worker.
"""

import contextlib
import http.server
import io
import json
import os
import platform
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import zipfile

from admin import Admin
from audit_log import Log
from harness import FEW_MODULES, SOMEBODY, Skip, equal, main, test
from interpreter import under_test
from mcpclient import Client
from package_index import NGINX, Index, digest, wheel
from terminal import Terminal
from package_store import (OPEN, asked, asked_since, config, environments, install, keeper_of, leftovers, names,
                           new_store, refused, verify)
from supervisor import Supervisor, wait_gone
from waits import until, until_equal

COMPILED = "cpython-%s.pyc" % under_test.short

# ---- what works ----------------------------------------------------------------------


@test
def installs_and_imports(ctx):
    with ctx.client() as client:
        listed = client.ask("tools/list")["tools"]
        assert "install_package" in [t["name"] for t in listed]
        answer = install(client, "alpha")
        equal(answer["status"], "ok", answer["message"])
        equal(names(answer), ["alpha 1.0", "beta 1.2"])
        for p in answer["packages"]:
            equal(p["index"], index.url)
            equal(p["hash"], "sha256:" + hashes[p["name"]])
            assert p["size"] > 500
        o = client.run("import alpha, beta\nprint(alpha.VERSION, beta.VERSION, beta.__file__)",
                       dependencies=["alpha"])
        equal((o.status, o.stdout), ("ok", "1.0 1.2 /environment/beta/__init__.py\n"))
        o = client.run("import notfound")
        equal(o.error["type"], "ModuleNotFoundError")
        assert "advice: The module notfound is not installed. " in o.text, o.text
        assert "Make the call again with dependencies=[...]: " in o.text, o.text


@test
def a_second_time_needs_no_network(ctx):
    with ctx.client() as client:
        equal(install(client, "gamma", "delta>=1")["status"], "ok")
        before = len(asked(index))
        for packages in (("gamma", "delta>=1"), ("Delta>=1", "gamma")):
            answer = install(client, *packages)
            equal((answer["status"], names(answer)), ("ok", ["delta 1.0", "gamma 2.0"]))
            assert "already" in answer["message"], answer["message"]
        o = client.run("import gamma, delta", dependencies=["gamma", "delta>=1"])
        equal(o.status, "ok")
        # Not "what else there is": others may install meanwhile.
        equal([r for r in asked_since(index, before) if "gamma" in r or "delta" in r], [])


@test
def scripts_say_what_they_depend_on(ctx):
    script = "# /// script\n# dependencies = ['epsilon<2']\n# ///\nimport epsilon\nepsilon.VERSION"
    with ctx.client() as client:
        for _ in range(2):
            o = client.run(script, 60)
            equal((o.status, o.result["json"]), ("ok", "1.5"))
        o = client.run("import epsilon; print(epsilon.VERSION)", dependencies=["epsilon"])
        equal(o.stdout, "2.0\n")
        o = client.run("pass", dependencies=["nowhere-to-be-found"])
        equal(o.status, "dependency_unavailable")
        assert "No matching distribution found for nowhere-to-be-found" in o.text, o.text


@test
def what_is_there_is_not_installed(ctx):
    """The profile's own packages satisfy a dependency without any installation."""
    with ctx.client() as client:
        before = index.requests()
        o = client.run("import pip; print(pip.__file__)", dependencies=["pip"])
        equal(o.status, "ok", o)
        assert o.stdout.endswith("-packages/pip/__init__.py\n") and "/environment/" not in o.stdout, o
        assert not any("/pip/" in r for r in index.requests()[len(before):])


@test
def what_is_there_counts_for_other_packages(ctx):
    """An index need not have what the profile has: not what is asked for beside a package of the index, and not
    what a package of the index requires."""
    index.add("leaner", "1.0", requires=("pip>=1",))
    with ctx.client() as client:
        for needs in (["pip", "gamma"], ["leaner"]):
            o = client.run("import pip, %s; print(pip.__file__)" % needs[-1], dependencies=needs)
            equal(o.status, "ok", o)
            assert "/environment/" not in o.stdout, o
        equal(install(client, "leaner")["status"], "error", "a set of its own has to be whole")


@test
def environments_are_sealed(ctx):
    probe = """
import errno, os
def fails(act):
    try:
        act()
    except OSError as e:
        return errno.errorcode[e.errno]
at = "/environment"
flags = next(l.split()[5] for l in open("/proc/self/mountinfo") if l.split()[4] == at)
[fails(lambda: open(at + "/alpha/__init__.py", "w")), fails(lambda: os.mkdir(at + "/x")),
 fails(lambda: os.unlink(at + "/alpha/__init__.py")), fails(lambda: os.chmod(at + "/alpha", 0o777)),
 sorted(set(flags.split(",")) & {"ro", "nosuid", "nodev"}), os.path.exists(at + "/../store"),
 os.path.exists(at + "/../manifest"), os.environ.get("HTTP_PROXY")]
"""
    with ctx.client() as client:
        o = client.run(probe, dependencies=["alpha"])
        equal(o.status, "ok", o)
        equal(o.result["json"], ["EROFS", "EROFS", "EROFS", "EROFS", ["nodev", "nosuid", "ro"],
                                 False, False, None])


@test
def profiles_may_show_what_is_beside_them(ctx):
    """Nothing of a host is where the packages are mounted, and a profile cannot put it there."""
    beside = "[profile basic]\npaths = /opt /srv\n"
    with new_store() as store, ctx.private(config(index.url, store, OPEN + beside)) as s, \
            ctx.client(path=s.socket) as client:
        o = client.run("import alpha; print(alpha.VERSION)", None, dependencies=["alpha"])
        equal((o.status, o.stdout), ("ok", "1.0\n"), o)
    over = "[profile basic]\npaths = /environment/mine\n"
    with new_store() as store:
        s = Supervisor(ctx.options.build, config(index.url, store, OPEN + over))
        try:
            with contextlib.suppress(Exception):
                s.start()
            until(s.log, lambda: "show /environment/mine: Operation not permitted" in s.log())
        finally:
            with contextlib.suppress(AssertionError):
                s.stop()
            s.remove()


@test
def children_see_the_packages(ctx):
    script = ("import subprocess, sys\n"
              "print(subprocess.check_output([sys.executable, '-c', 'import alpha; "
              "print(alpha.VERSION)'], text=True), end='')")
    with ctx.client() as client:
        equal(client.run(script, dependencies=["alpha"]).stdout, "1.0\n")


@test
def native_code_runs(ctx):
    compiler = shutil.which("gcc")
    if not compiler:
        raise Skip("no gcc", missing=True)
    source = ("#include <Python.h>\nstatic PyObject *answer(PyObject *s, PyObject *a)"
              "{ return PyLong_FromLong(42); }\nstatic PyMethodDef m[] = {"
              "{\"answer\", answer, METH_NOARGS, 0}, {0}};\nstatic struct PyModuleDef d = "
              "{PyModuleDef_HEAD_INIT, \"native\", 0, -1, m};\n"
              "PyMODINIT_FUNC PyInit_native(void) { return PyModule_Create(&d); }\n")
    with tempfile.TemporaryDirectory() as work:
        with open(work + "/native.c", "w") as f:
            f.write(source)
        subprocess.run([compiler, "-shared", "-fPIC", *under_test.include_options, "-o",
                        work + "/native.so", work + "/native.c"], check=True)
        with open(work + "/native.so", "rb") as f:
            built = f.read()
    machine = platform.machine()
    index.add("native", "1.0", {"native.cpython-%s-%s-linux-gnu.so" % (under_test.short, machine): built},
              tag="cp{0}-cp{0}-linux_{1}".format(under_test.short, machine))
    with ctx.client() as client:
        o = client.run("import native; print(native.answer())", None, dependencies=["native"])
        equal((o.status, o.stdout), ("ok", "42\n"), o)


@test
def json_indexes_are_read(ctx):
    with new_store() as store, ctx.private(config(index.host + "/json", store)) as s, \
            ctx.client(path=s.socket) as client:
        answer = install(client, "alpha")
        equal((answer["status"], names(answer)), ("ok", ["alpha 1.0", "beta 1.2"]))


@test
def several_indexes(ctx):
    with Index() as other, new_store() as store:
        other.add("zeta", "1.0", requires=["beta"])
        extra = "extra_indexes = %s\n" % other.url
        with ctx.private(config(index.url, store, packages=extra)) as s, \
                ctx.client(path=s.socket) as client:
            answer = install(client, "zeta")
            equal(answer["status"], "ok", answer)
            equal([(p["name"], p["index"]) for p in answer["packages"]],
                  [("beta", index.url), ("zeta", other.url)])


@test
def names_that_look_like_others(ctx):
    index.add("reqeusts", "1.0")
    with ctx.client() as client:
        answer = install(client, "reqeusts")
        equal(answer["status"], "ok")
        assert "reqeusts is not the well-known requests" in answer["message"], answer


@test(private=True)
def what_nobody_uses_is_removed(ctx):
    """By size: the newest stays, and so does what is in use."""
    with new_store() as store, \
            ctx.private(config(index.url, store, packages="store_mb = 1\n")) as s, \
            ctx.client(path=s.socket) as client:
        index.add("first", "1.0", {"first.py": "x = %r\n" % ("y" * 700000)})
        index.add("second", "1.0", {"second.py": "x = %r\n" % ("y" * 700000)})
        index.add("third", "1.0", {"third.py": "x = %r\n" % ("y" * 700000)})
        equal(install(client, "first")["status"], "ok")
        held = client.request("tools/call", {
            "name": "run_script", "_meta": {"progressToken": 1}, "arguments": {
                "script": "import first, threading\nprint('in', flush=True)\n"
                          "threading.Event().wait()",
                "dependencies": ["first"], "timeout_seconds": 300}})
        while not client.notices:
            client.pump(ctx.seconds(60))
        equal(install(client, "second")["status"], "ok")
        equal(len(environments(store)), 2)
        client.cancel(held)
        look = {"name": "check_environment", "arguments": {}}
        until("it is over", lambda: not client.ask(
            "tools/call", look)["structuredContent"]["yours"]["running"])
        equal(install(client, "third")["status"], "ok")
        until("the others are removed",
              lambda: len(environments(store)) == 1 and not leftovers(store))
        equal(client.run("import third; print(len(third.x))", dependencies=["third"]).stdout,
              "700000\n")


@test(private=True)
def requests_are_forgotten(ctx):
    """Those of long ago, and those beyond some thousands."""
    with new_store() as store, ctx.private(config(index.url, store)) as s, \
            ctx.client(path=s.socket) as client:
        equal(install(client, "alpha")["status"], "ok")
        requests = os.path.join(store, "requests")
        name, = os.listdir(requests)
        os.utime(os.path.join(requests, name), (1, 1))
        for i in range(5000):
            with open(os.path.join(requests, "%064x" % i), "w") as f:
                f.write(name)
        equal(install(client, "delta")["status"], "ok")
        left = os.listdir(requests)
        assert name not in left and 4000 < len(left) <= 4097, len(left)
        equal(install(client, "alpha")["message"], "2 packages, already installed")


@test(private=True)
def a_store_that_vanishes(ctx):
    """Somebody removes, then renames it: it is named and made again, and packages are installed and
    imported as before."""
    with new_store() as store, ctx.private(config(index.url, store)) as s, \
            ctx.client(path=s.socket) as client:
        os.chmod(os.path.dirname(store), 0o777)		# as a unit's state directory is the service's
        for number, vanish in enumerate((shutil.rmtree, lambda d: os.rename(d, d + ".aside")), 1):
            equal(install(client, "alpha")["status"], "ok")
            vanish(store)
            for _ in range(2):
                o = client.run("import alpha\nprint(alpha.VERSION)", None, dependencies=["alpha"])
                equal((o.status, o.stdout), ("ok", "1.0\n"), o)
            s.wait_logged('store-replaced directory="%s" made-again=yes' % store, times=number)
            equal(install(client, "delta")["status"], "ok")
            verify(store)


# ---- what is refused -----------------------------------------------------------------


@test
def arguments_are_checked(ctx):
    with ctx.client() as client:
        for arguments, word in (({}, "packages is required"), ({"packages": []}, "1 to"),
                                ({"packages": ["a b"]}, "item 0"), ({"packages": [1]}, "item 0"),
                                ({"packages": ["a"], "x": 1}, "not an argument"),
                                ({"packages": ["a"], "reason": 1}, "reason"),
                                ({"packages": ["a"] * 65}, "1 to"),
                                ({"packages": ["a"], "profile": "none"}, "no profile")):
            answer = client.ask("tools/call", {"name": "install_package",
                                               "arguments": arguments})
            assert answer["isError"]
            refused(answer["structuredContent"], word)
        for direct in ("x @ http://127.0.0.1/x.whl", "x @ file:///etc/x", "x @ git+ssh://a/b"):
            refused(install(client, direct), status="denied")


@test
def the_resolver_says_why(ctx):
    with ctx.client() as client:
        refused(install(client, "no-such-package"), "No matching distribution found")
        refused(install(client, "alpha>=9"), "from versions: 1.0")
        refused(install(client, "modern", "epsilon<2"), "Cannot install", "ResolutionImpossible")


@test(private=True)
def an_index_that_is_not_reached_is_named(ctx):
    """pip says of it what it says of an index without a version."""
    with tempfile.TemporaryDirectory() as here:
        os.chmod(here, 0o755)
        with socket.socket() as closed:     # a port on which nobody listens
            closed.bind(("127.0.0.1", 0))
            url = "http://127.0.0.1:%d/simple/" % closed.getsockname()[1]
            config = "[packages]\nindex = %s\nstore = %s/store\n[policy]\ninstall_package = allow\n" % (url, here)
            with ctx.private(config) as service, ctx.client(path=service.socket, timeout=120) as client:
                answer = install(client, "alpha")
                refused(answer, "the index %s cannot be reached: " % url)
                assert "No matching" not in answer["message"], answer["message"]
                o = client.run("1", 120, dependencies=["alpha"])
                assert "the index %s cannot be reached: " % url in o.text, o.text


@test
def yanked_versions_are_passed_over(ctx):
    with ctx.client() as client:
        equal(names(install(client, "yanked")), ["yanked 1.0"])
        equal(names(install(client, "yanked==1.1")), ["yanked 1.1"])


@test
def another_file_than_the_index_says(ctx):
    with ctx.client() as client:
        refused(install(client, "tampered"), "DO NOT MATCH THE HASHES")


@test
def an_index_that_does_not_say_hashes(ctx):
    index.add("unhashed", "1.0", hashed=False)
    with ctx.client() as client:
        refused(install(client, "unhashed"), "does not say the SHA-256 of unhashed-1.0")
    lax = "require_hashes = no\n"
    with new_store() as store, ctx.private(config(index.url, store, packages=lax)) as s, \
            ctx.client(path=s.socket) as client:
        answer = install(client, "unhashed")
        equal((answer["status"], names(answer)), ("ok", ["unhashed 1.0"]), answer)


@test
def wheels_by_their_urls(ctx):
    index.add("hidden", "3.0", requires=["beta"])
    os.unlink(os.path.join(index.root, "simple", "hidden", "index.html"))
    at = index.host + "/files/hidden-3.0-py3-none-any.whl"
    allowed = "allow_urls = yes\n"
    with new_store() as store, ctx.private(config(index.url, store, packages=allowed)) as s, \
            ctx.client(path=s.socket) as client:
        refused(install(client, "hidden"), "No matching distribution")
        answer = install(client, "hidden @ " + at)
        equal([(p["name"], p["version"], p["index"]) for p in answer["packages"]],
              [("beta", "1.2", index.url), ("hidden", "3.0", at)], answer)
        equal(install(client, "hidden @ " + at)["message"], "2 packages, already installed")
        o = client.run("import hidden, beta; print(hidden.VERSION)", 60,
                       dependencies=["hidden @ " + at])
        equal((o.status, o.stdout), ("ok", "3.0\n"), o)
        refused(install(client, "other @ " + at), "could not be resolved")
        refused(install(client, "hidden @ %s#sha256=%s" % (at, "0" * 64)), "HASHES")
        for elsewhere, word in (("https://127.0.0.1/x-1-py3-none-any.whl", "file_hosts"),
                                (index.host + "/files/x-1.tar.gz", "no URL of a wheel"),
                                ("git+https://127.0.0.1/x.whl", "file_hosts")):
            refused(install(client, "x @ " + elsewhere), word, status="denied")


@test
def what_came_by_a_url_is_not_what_the_index_has(ctx):
    """The same file, name and version; each asks where it is told to, and has a set of its own."""
    with Index() as other, new_store() as store, ctx.private(config(
            index.url, store, packages="allow_urls = yes\nextra_indexes = %s\n" % other.url)) as s, \
            ctx.client(path=s.socket) as client:
        by_url = "beta @ %s/files/beta-1.2-py3-none-any.whl" % index.host
        for asked_for, origin in ((by_url, by_url.split(" @ ")[1]), ("beta", index.url)):
            answer = install(client, asked_for)
            equal([(p["hash"], p["index"]) for p in answer["packages"]],
                  [("sha256:" + hashes["beta"], origin)], answer)
            equal(answer["message"], "installed 1 package")
        equal(len(environments(store)), 2)


@test
def a_second_line_in_a_requirement(ctx):
    """pip would take it for options of a file of requirements: for another file, which the test
    serves as one thing while it is found out what there is to install, and as another one then."""
    _, evil = wheel("evil", "1.0", {"goodlib.py": "VALUE = 'evil'\n", "zz.pth": "import sys\n"})
    index.write("files/evil-1.0-py3-none-any.whl", evil)
    answers = []

    def more(conn, request):
        found = b"/r " in request
        text = "# nothing\n" if not answers else (
            "evil @ %s/files/evil-1.0-py3-none-any.whl --hash=sha256:%s\n" % (
                index.host, digest(evil)))
        answers.extend([request] * found)
        conn.sendall(b"HTTP/1.1 %s\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n"
                     b"Connection: close\r\n\r\n%s" % (b"200 OK" if found else b"404 None",
                                                      len(text), text.encode()))

    allowed = "allow = goodlib\nallow_urls = yes\nextra_indexes = %s\n"
    with Bad(more) as other, new_store() as store, ctx.private(config(
            index.url, store, packages=allowed % other.url)) as s, \
            ctx.client(path=s.socket) as client:
        good = "goodlib @ %s/files/goodlib-1.0-py3-none-any.whl" % index.host
        option = "--requirement=%s/r#" % other.url.rsplit("/", 1)[0]
        for breaks in ("\n", "\r", "\x0b", "\x1c", "\x85", "\u2028", "\t", "${HOME}"):
            asked_for = "%s#sha256=%s%s%s" % (good, hashes["goodlib"], breaks, option)
            answer = install(client, asked_for)
            trees = [sorted(os.listdir(os.path.join(store, n, "tree"))) for n in environments(store)]
            equal(trees, [], "what %r brings: %s" % (breaks, answer))
            refused(answer, "item 0 is not a requirement")
            o = client.run("import goodlib", dependencies=[asked_for])
            equal(o.status, "invalid_arguments", o)
            o = client.run("# /// script\n# dependencies = [%s]\n# ///" % json.dumps(asked_for))
            equal(o.status, "invalid_arguments", o)
        equal(answers, [])
        equal(install(client, "%s#sha256=%s" % (good, hashes["goodlib"]))["status"], "ok")


@test
def an_index_that_sends_elsewhere(ctx):
    """Its pages may say what they like: the installer's way out leads to the index alone."""
    name, data = wheel("elsewhere", "1.0", {"elsewhere.py": ""})
    with socket.create_server(("127.0.0.1", 0)) as other, new_store() as store:
        place = os.path.join(os.path.dirname(store), "log")
        os.mkdir(place)
        os.chmod(place, 0o777)
        port = other.getsockname()[1]
        index.write("simple/elsewhere/index.html", (
            '<a href="http://127.0.0.1:%d/%s#sha256=%s">%s</a>' % (
                port, name, digest(data), name)).encode())
        log = OPEN + "[audit]\nfile = %s/audit\njournal = no\n" % place
        with ctx.private(config(index.url, store, log)) as s, ctx.client(path=s.socket) as client:
            refused(install(client, "elsewhere"), "could not be resolved")
            other.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                raise AssertionError("somebody came: %s" % (other.accept(),))

            def seen():
                with open(place + "/audit") as f:
                    records = [json.loads(line) for line in f if line.endswith("\n")]
                return {(r["event"], r["port"]) for r in records if "port" in r}
            # The proxy tells of a connection when it is over, which may be later.
            both = {("connection", index.port), ("connection-refused", port)}
            until_equal("what is in the audit log", seen, both)


@test(root=True)
def a_store_whose_disk_is_full(ctx):
    """A file system of its own, which has no room for what the limits let be."""
    with new_store() as store:
        disk = os.path.join(os.path.dirname(store), "disk")
        os.mkdir(disk)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=0777", "tmpfs", disk],
                                 capture_output=True, text=True)
        if mounted.returncode:
            raise Skip("no mount: " + mounted.stderr.strip())
        try:
            store = os.path.join(disk, "store")
            index.add("bulky", "1.0", {"bulky.py": b"#" * (3 << 20)})
            with ctx.private(config(index.url, store)) as s, ctx.client(path=s.socket) as client:
                refused(install(client, "bulky"), "could not be stored", "No space left")
                equal((verify(store), leftovers(store)), (0, []))
                equal(install(client, "beta")["status"], "ok")
                equal((verify(store), leftovers(store)), (1, []))
                o = client.run("import beta; print(beta.VERSION)", dependencies=["beta"])
                equal((o.status, o.stdout), ("ok", "1.2\n"), o)
        finally:
            subprocess.run(["umount", disk], check=True)


@test
def nothing_is_built(ctx):
    """A package without a wheel is not available: a build would run its code."""
    index.put("sourced", "sourced-1.0.tar.gz", b"no wheel", digest(b"no wheel"))
    with ctx.client() as client:
        refused(install(client, "sourced"), "No matching distribution found")


@test
def what_a_wheel_becomes(ctx):
    """As pip --target would lay it out: each part at its path, scripts that run, sources compiled;
    and RECORD lists the files."""
    points = "[console_scripts]\nrun-x = full:main\nrun-y=full.sub:K.main [extra]\n" \
        "[gui_scripts]\ngui-x = full:main\n[other]\na = b:c\n"
    data = "full-1.0.data/"
    index.add("full", "1.0", {
        "full/__init__.py": "def main(): print('hello')\n",
        "full/sub.py": "class K:\n    def main(): print('from K')\n",
        "full/broken.py": "this is no Python\n",
        "full/\u00fc \u4e2d,.txt": "text", "full/__pycache__/__init__.%s" % COMPILED: b"evil",
        "full-1.0.dist-info/entry_points.txt": points,
        data + "purelib/pure/__init__.py": "x = 1\n", data + "platlib/plat.py": "x = 2\n",
        data + "scripts/tool": "#!python -E\nprint('tool')\n", data + "scripts/sh": "#!/bin/sh\n",
        data + "headers/full.h": "#define X\n", data + "data/share/doc/x.txt": "doc"})
    with new_store() as store, ctx.private(config(index.url, store)) as s, \
            ctx.client(path=s.socket) as client:
        answer = install(client, "full")
        equal(answer["status"], "ok", answer)
        verify(store)
        tree = os.path.join(store, environments(store)[0], "tree")
        equal(sorted(os.path.relpath(os.path.join(at, name), tree)
                     for at, _, names in os.walk(tree) for name in names),
              ["__pycache__/plat.%s" % COMPILED, "bin/gui-x", "bin/run-x", "bin/run-y", "bin/sh",
               "bin/tool", "full-1.0.dist-info/METADATA", "full-1.0.dist-info/RECORD",
               "full-1.0.dist-info/WHEEL", "full-1.0.dist-info/entry_points.txt",
               "full/__init__.py", "full/__pycache__/__init__.%s" % COMPILED,
               "full/__pycache__/sub.%s" % COMPILED, "full/broken.py", "full/sub.py",
               "full/\u00fc \u4e2d,.txt", "include/python/full/full.h", "plat.py", "pure/__init__.py",
               "pure/__pycache__/__init__.%s" % COMPILED, "share/doc/x.txt"])
        o = client.run("import importlib.metadata as m, subprocess, full.sub, plat, pure\n"
                       "def run(name):\n    return subprocess.check_output([name], text=True)\n"
                       "[run('run-x'), run('run-y'), run('tool'), m.version('full'),\n"
                       " sorted(str(p) for p in m.files('full') if not p.locate().exists()),\n"
                       " full.sub.__spec__.cached, plat.x + pure.x,\n"
                       " full.sub.K.main.__code__.co_filename]", None, dependencies=["full"])
        equal(o.status, "ok", o)
        equal(o.result["json"], ["hello\n", "from K\n", "tool\n", "1.0", [],
                                 "/environment/full/__pycache__/sub.%s" % COMPILED, 3,
                                 "/environment/full/sub.py"])


@test
def hostile_wheels(ctx):
    index.add("smuggler", "1.0", extra_members=[("smuggler/extra.py", b"x = 1\n")])
    index.add("masked", "1.0", {"masked.py": "", "numpy.egg-info/PKG-INFO": "Name: numpy\n"})
    index.add("swollen", "1.0", {"zeros": bytes(200 << 20)})
    with ctx.client() as client:
        for name, words in (("climber", "outside"), ("absolute", "outside"),
                            ("smuggler", "RECORD does not tell of smuggler/extra.py"),
                            ("masked", "another package: numpy.egg-info"),
                            ("swollen", "more than 100 times as large")):
            refused(install(client, name), "could not be stored: %s 1.0: " % name, words)
        o = client.run("import os; print(os.path.exists('/tmp/evil'))")
        equal(o.stdout, "False\n")
        # What it does when it is imported it does in the jail, to itself.
        o = client.run("import biter", None, dependencies=["biter"])
        equal(o.status, "error")
        assert "PermissionError" in o.text or "Read-only" in o.text, o.text
    ctx.healthy()


@test
def files_that_two_packages_have(ctx):
    """The same, as packages that share a namespace have them; or others, of which one would be
    hidden."""
    for name, text in (("left", ""), ("right", ""), ("wrong", "x = 1\n")):
        index.add(name, "1.0", {"shared/__init__.py": text, "shared/%s.py" % name: "y = 1\n"})
    with new_store() as store, ctx.private(config(index.url, store)) as s, \
            ctx.client(path=s.socket) as client:
        equal(install(client, "left", "right")["status"], "ok")
        o = client.run("import shared.left, shared.right; print(shared.left.y)", 60,
                       dependencies=["left", "right"])
        equal((o.status, o.stdout), ("ok", "1\n"), o)
        refused(install(client, "left", "wrong"),
                "two packages have different files shared/__init__.py")
        equal((len(environments(store)), leftovers(store)), (1, []))


@test
def another_file_than_was_decided_about(ctx):
    """The index has one wheel while it is found out what there is to install, and another one of the
    same name and length when it is fetched."""
    name, good = wheel("turncoat", "1.0", {"turncoat.py": "VALUE = 'good'\n"})
    _, evil = wheel("turncoat", "1.0", {"turncoat.py": "VALUE = 'evil'\n"})
    evil = evil[:len(good)].ljust(len(good), b"\0")
    page = '<a href="/files/%s#sha256=%s">%s</a>' % (name, digest(good), name)
    fetched = []

    def serve(conn, request):
        body = page.encode()
        if b"/files/" in request:
            body = evil if fetched else good
            fetched.append(request)
        conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n"
                     b"Connection: close\r\n\r\n" % len(body) + body)

    with Bad(serve) as bad, new_store() as store, ctx.private(config(bad.url, store)) as s, \
            ctx.client(path=s.socket) as client:
        refused(install(client, "turncoat"), "turncoat 1.0: its wheel is not the one that was decided")
        equal((environments(store), leftovers(store)), ([], []))
        equal(len(fetched), 2)


@test
def too_much_is_refused(ctx):
    limits = "environment_mb = 4\nenvironment_files = 50\n"
    with new_store() as store, ctx.private(config(index.url, store, packages=limits)) as s, \
            ctx.client(path=s.socket) as client:
        refused(install(client, "huge"), "huge 1.0: its files are larger than may be installed")
        refused(install(client, "many"), "many 1.0: it has more files than may be installed")
        # Each is small enough, both are not.
        index.add("half", "1.0", {"half.py": "x = %r\n" % ("y" * (3 << 20))})
        index.add("otherhalf", "1.0", {"otherhalf.py": "x = %r\n" % ("y" * (3 << 20))})
        refused(install(client, "half", "otherhalf"), "the size of the packages: File too large")
        equal(install(client, "beta")["status"], "ok")
        equal((verify(store), leftovers(store)), (1, []))
    with new_store() as store, ctx.private(config(index.url, store, OPEN + "[profile basic]\n"
                                                  "disk_bytes = 1M\n")) as s, \
            ctx.client(path=s.socket) as client:
        # What is downloaded to be looked at is in memory; what it unpacks to is not.
        index.add("dense", "1.0", {"dense.bin": random.Random(3).randbytes(3 << 20)})
        refused(install(client, "dense"), "No space left on device")
        equal((verify(store), leftovers(store)), (0, []))
        equal(install(client, "huge")["status"], "ok")


@test
def policy_decides_about_what_it_comes_to(ctx):
    denied = "deny = beta<1.3\nallow = alpha gamma\n"
    with new_store() as store, ctx.private(config(index.url, store, "", denied)) as s, \
            ctx.client(path=s.socket) as client:
        answer = install(client, "alpha")
        refused(answer, "beta", status="denied")
        equal(names(answer), ["alpha 1.0", "beta 1.2"])
        equal(install(client, "gamma")["status"], "ok")
        equal(install(client, "delta")["status"], "approval_pending")
        # Whether it is found before or after it was looked up: what refuses it is said.
        for name in ("alpha", "beta==1.2", "beta @ http://127.0.0.1/beta-1.2-py3-none-any.whl"):
            o = client.run("import alpha", dependencies=[name])
            equal(o.status, "dependency_unavailable")
            assert "beta" in o.text and "Nothing was run" in o.text, o.text
            assert "[packages] %s" % ("allow_urls" if "@" in name else "deny") in o.text, o.text
        equal(verify(store), 1)


@test(root=True)
def each_tenant_by_its_own_policy(ctx):
    """What one may have and got is in the store; another one is still not let to it."""
    more = OPEN + "[tenant uid:%d]\npackages.deny = beta\n" % SOMEBODY
    with new_store() as store, ctx.private(config(index.url, store, more)) as s, \
            ctx.client(path=s.socket) as client, \
            ctx.client(path=s.socket, uid=SOMEBODY) as other:
        equal(install(client, "alpha")["status"], "ok")
        refused(install(other, "alpha"), "beta", status="denied")
        o = other.run("import alpha", dependencies=["alpha"])
        equal(o.status, "dependency_unavailable")
        equal(install(other, "gamma")["status"], "ok")


@test
def what_needs_an_approval_waits_for_it(ctx):
    with new_store() as store, ctx.private(config(index.url, store, "")) as s, \
            ctx.client(path=s.socket) as client:
        answer = install(client, "alpha", reason="to see")
        equal((answer["status"], names(answer)), ("approval_pending", ["alpha 1.0", "beta 1.2"]))
        assert answer["approval_id"].startswith("a-"), answer
        equal(install(client, "alpha")["approval_id"], answer["approval_id"])
        # While one job waits for a list there is no second one, whatever the reason.
        equal(install(client, "alpha", reason="once more")["job"], answer["job"])
        another = install(client, "gamma")
        assert another["job"] != answer["job"] != "", another
        jobs = client.ask("tools/call", {"name": "job", "arguments": {}})["structuredContent"]["jobs"]
        equal([one["job"] for one in jobs], [answer["job"], another["job"]])
        client.ask("tools/call", {"name": "job", "arguments": {"id": answer["job"], "action": "cancel"}})
        again = install(client, "alpha")
        assert again["job"] != answer["job"] and again["approval_id"] == answer["approval_id"], again
        o = client.run("import alpha", dependencies=["alpha"])
        equal(o.status, "approval_pending")
        assert answer["approval_id"] in o.text, o.text
        equal(verify(store), 0)


@test(root=True)
def a_denial_of_packages_stands(ctx):
    with new_store() as store, tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o777)
        more = "[admin]\nsocket = %s/admin\n" % directory
        with ctx.private(config(index.url, store, more)) as s, \
                ctx.client(path=s.socket, uid=SOMEBODY) as client, \
                Admin(directory + "/admin") as admin:
            id = install(client, "alpha")["approval_id"]
            assert admin.ask("deny", id=id, reason="ask for gamma")["ok"]
            for word in (id, '"ask for gamma"', "until 2"):
                refused(install(client, "alpha"), word, status="denied")
            o = client.run("import alpha", dependencies=["alpha"])
            equal(o.status, "dependency_unavailable")
            assert '"ask for gamma"' in o.text, o.text
            equal(admin.ask("list", all=True)["approvals"][0]["state"], "refused")
            equal(len(admin.ask("list", all=True)["approvals"]), 1)
            equal(install(client, "gamma")["status"], "approval_pending")
            assert admin.ask("approve", id=id)["ok"]
            equal(install(client, "alpha")["status"], "ok")


def ask_in_session(client, action, content, **more):
    """install_package of alpha by a client whose user can be asked; what they were asked,
    and the answer."""
    client.greet("2025-06-18", elicitation={})
    client.send({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "name": "install_package", "arguments": {"packages": ["alpha"], **more}}})
    asked = None
    while True:
        message = client.recv()
        if message.get("method") == "elicitation/create":
            asked = message["params"]["message"]
            client.send({"jsonrpc": "2.0", "id": message["id"],
                         "result": {"action": action, "content": content}})
        elif message.get("id") == 2:
            return asked, message["result"]["structuredContent"]


@test
def the_sessions_user_decides_where_they_may(ctx):
    own = "[policy]\napprovers = self\n"
    with new_store() as store, ctx.private(config(index.url, store, own)) as s:
        for action, content, status in (("decline", None, "denied"),
                                        ("accept", {"allow": False}, "denied"),
                                        ("accept", {"allow": True}, "ok")):
            with Client.connect(s.socket, None, timeout=ctx.seconds(60)) as client:
                asked, answer = ask_in_session(client, action, content)
            equal(answer["status"], status, answer)
            for p in ("alpha 1.0", "beta 1.2", hashes["beta"]):
                assert p in asked, asked
        with ctx.client(path=s.socket) as client:
            equal(install(client, "alpha")["status"], "ok")


@test
def the_sets_of_other_servers_ask_too(ctx):
    """The first feature of the server that exec-sandbox replaces: packages by consent."""
    calls = (("exec-sandbox", "", "execute_python", {"script": "import alpha", "dependencies": ["alpha"]}, "exit_code: 0"),
             ("run-python", "[run-python]\ndependencies = alpha\n", "run_python_code", {"python_code": "import alpha"},
              "<status>success"),
             ("python-sandbox", "[python-sandbox]\nallowed_imports = alpha\n", "execute_code", {"code":
              "# /// script\n# dependencies = ['alpha']\n# ///\nimport alpha"}, '"success":true'))
    for toolset, more, name, arguments, words in calls:
        own = "[policy]\napprovers = self\n[mcp]\ntoolsets = %s\n%s" % (toolset, more)
        with new_store() as store, ctx.private(config(index.url, store, own)) as s, \
                Client.connect(s.socket, None, timeout=ctx.seconds(60)) as client:
            client.greet("2025-06-18", elicitation={})
            client.send({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
                "name": name, "arguments": arguments}})
            form = client.recv()
            equal(form.get("method"), "elicitation/create", form)
            assert "alpha 1.0" in form["params"]["message"], form
            client.send({"jsonrpc": "2.0", "id": form["id"], "result": {"action": "accept", "content": {"allow": True}}})
            result = client.recv()["result"]
            assert words in result["content"][0]["text"], (toolset, result)


PENDING = (("native", "run_script", {"script": "import alpha\nprint(alpha.VERSION)", "dependencies": ["alpha"]}, ""),
           ("native", "run_repl", {"code": "import alpha\nprint(alpha.VERSION)", "dependencies": ["alpha"]}, ""),
           ("native", "install_package", {"packages": ["alpha"]}, ""),
           ("exec-sandbox", "execute_python", {"script": "import alpha\nprint(alpha.VERSION)",
                                               "dependencies": ["alpha"]}, ""),
           ("run-python", "run_python_code", {"python_code": "import alpha\nprint(alpha.VERSION)"},
            "[run-python]\ndependencies = alpha\n"),
           ("python-sandbox", "execute_code", {"code": "# /// script\n# dependencies = ['alpha']\n# ///\n"
                                               "import alpha\nprint(alpha.VERSION)"},
            "[python-sandbox]\nallowed_imports = alpha\n"))


@test(root=True)
def package_approvals_are_told_in_every_set(ctx):
    """A client without forms is answered with the request and the command for its user; then the call runs: as
    a job, or, in sets of tools that have none, when it is made again."""
    for names_, name, arguments, more in PENDING:
        with new_store() as store, tempfile.TemporaryDirectory() as directory:
            os.chmod(directory, 0o777)
            more += "[admin]\nsocket = %s/admin\n[mcp]\ntoolsets = %s\n" % (directory, names_)
            with ctx.private(config(index.url, store, more)) as s, \
                    ctx.client(path=s.socket, uid=SOMEBODY, timeout=ctx.seconds(60)) as client, \
                    Admin(directory + "/admin") as admin:
                def call(name=name, arguments=arguments):
                    result = client.ask("tools/call", {"name": name, "arguments": arguments}, ctx.seconds(120))
                    return "".join(block.get("text", "") for block in result["content"])
                text = call()
                job = re.search("job (j-[a-z0-9]+)", text)
                equal(bool(job), names_ == "native", (name, text))
                one, = [one for one in admin.ask("list")["approvals"] if one["state"] == "pending"]
                assert "mcp-python approve " + one["id"] in text and (job or "once it is" in text), (name, text)
                if job:
                    assert one["id"] in call("job", {"id": job[1]}), (name, text)
                equal(environments(store), [], name)
                assert admin.ask("approve", id=one["id"])["ok"]
                text = call("job", {"id": job[1], "action": "wait", "wait_seconds": min(300, ctx.seconds(60))}) if job else call()
                assert "approve" not in text and "1.0" in text, (name, text)
                equal(verify(store), 1)


HANG = "import time\nwhile True: time.sleep(60)"
# By set: its options, a call that runs until it is stopped, and a call of each tool.
CALLS = {
    "native": ("", None, {
        "run_script": {"script": "import alpha", "dependencies": ["alpha"]}, "run_repl": {"code": "1"},
        "validate_script": {"script": "1"}, "install_package": {"packages": ["alpha"]}, "check_environment": {},
        "job": {"action": "list"}, "search_tools": {"query": "x"}}),
    "exec-sandbox": ("", ("execute_python", {"script": HANG}), {
        "execute_python": {"script": "import alpha", "dependencies": ["alpha"]}, "check_environment": {},
        "validate_script": {"script": "1"}}),
    "python-sandbox": ("[python-sandbox]\nallowed_imports = alpha time\nmax_timeout = 3600\ndefault_timeout = 3600\n", ("execute_code", {"code": HANG}), {
        "execute_code": {"code": "# /// script\n# dependencies = ['alpha']\n# ///\nimport alpha"},
        "validate_code": {"code": "1"}, "get_sandbox_info": {}}),
    "run-python": ("", ("run_python_code", {"python_code": HANG}), {
        "run_python_code": {"python_code": "# /// script\n# dependencies = ['alpha']\n# ///\nimport alpha"}}),
}
LONG = ("[limits]\ntimeout_seconds = 3600\ntimeout_max = 3600\n[exec-sandbox]\nmax_timeout = 3600\n"
        "default_timeout = 3600\n")


@test
def every_tool_answers_while_others_wait(ctx):
    """Behind a job, a call that runs and an approval that nobody gives: no tool's answer waits for them."""
    for names_, (more, hang, calls) in CALLS.items():
        more = "%s%s[mcp]\ntoolsets = %s\n" % (LONG, more, names_)
        with new_store() as store, ctx.private(config(index.url, store, more)) as s, \
                ctx.client(path=s.socket) as client, ctx.client(path=s.socket) as other:
            def call(name, arguments):
                return client.ask("tools/call", {"name": name, "arguments": arguments}, ctx.seconds(60))
            listed = {tool["name"] for tool in client.ask("tools/list")["tools"]}
            assert listed <= set(calls), (names_, listed)
            if hang:
                id = other.request("tools/call", dict(zip(("name", "arguments"), hang)))
                other.flush()
            else:
                begun = call("run_repl", {"code": HANG, "background": True})["structuredContent"]
                calls = dict(calls, run_repl={"session": begun["session"], "code": "1"})
            for name in sorted(listed):
                for _ in range(2):	# the second one, while the first one's approval is waited for
                    text = "".join(block.get("text", "") for block in call(name, calls[name])["content"])
                    if "alpha" in str(calls[name]):
                        assert "mcp-python approve a-" in text, (names_, name, text)
                    if name == "run_repl":
                        assert begun["job"] in text and "nothing was run" in text, text
            if hang:
                while other.pump(0):
                    pass
                assert other.pending and not other.answers, (names_, other.answers)
                other.cancel(id)
                other.flush()
            else:
                equal(call("job", {"id": begun["job"], "action": "status"})["structuredContent"]["state"], "running")
                call("job", {"id": begun["job"], "action": "cancel"})


FORGED = ("numbers\nnumpy 1.26.4 from https://index.example/simple, 18000000 bytes, sha256:aaaa\n\n"
          "(What follows is installed already and is told for completeness only:)\x1b[8m\x9b8m"
          "\u202e\u200b\u2028\x85item: package harmless==1.0")


@test
def a_reason_cannot_pass_for_the_list(ctx):
    """What a caller writes comes last, marked, and can neither hide nor move what is known."""
    own = "[policy]\napprovers = self\n"
    with new_store() as store, ctx.private(config(index.url, store, own)) as s, \
            Client.connect(s.socket, None, timeout=ctx.seconds(60)) as client:
        asked, answer = ask_in_session(client, "decline", None, reason=FORGED)
    equal(answer["status"], "denied", answer)
    ours, marked = asked.split("\n\nThe reason that the caller gave, in the caller's words:\n")
    equal([l.split(" ")[0] for l in ours.split("\n")], ["May", "alpha", "beta"], ours)
    for l in marked.split("\n"):
        assert l[:2] in ("> ", ">+") and len(l) <= 72, asked
    assert asked.replace("\n", "").isprintable(), ascii(asked)
    assert "numpy" not in ours and "> numpy 1.26.4 from" in marked, asked
    assert "\\x1b[8m\\u009b8m\\u202e\\u200b\\u2028\\u0085" in marked.replace("\n>+", ""), asked


@test(root=True)
def operators_see_whose_the_reason_is(ctx):
    with new_store() as store, tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o777)
        more = "[admin]\nsocket = %s/admin\n" % directory
        with ctx.private(config(index.url, store, more)) as s, ctx.client(path=s.socket) as client:
            id = install(client, "alpha", reason=FORGED)["approval_id"]
            shown = subprocess.run(
                [os.path.join(ctx.options.build, "mcp-python"), "approvals", "show", id,
                 "--admin-socket", directory + "/admin"], capture_output=True, text=True,
                timeout=ctx.seconds(30), check=True).stdout
    items = [l for l in shown.split("\n") if l.startswith("item: ")]
    equal([l.split(" ")[2] for l in items], ["alpha==1.0", "beta==1.2"], shown)
    assert shown.replace("\n", "").isprintable(), ascii(shown)
    head, reason = shown.split("\ntheir reason:\n")
    assert "numbers" not in head and '\n> packages[0].name: "alpha"\n' in head, shown
    assert all(l[:2] in ("> ", ">+", "") for l in reason.split("\n")), shown


# ---- advisories ----


def advisory(id, name, severity="HIGH", **more):
    events = [{"introduced": "0"}, {"fixed": more.pop("fixed")}] if "fixed" in more else [{"introduced": "0"}]
    return {"id": id, "summary": "Summary of \x1b[2J" + id, "database_specific": {"severity": severity}, "affected": [{
        "package": {"ecosystem": "PyPI", "name": name}, "ranges": [{"type": "ECOSYSTEM", "events": events}]}], **more}


@contextlib.contextmanager
def advisories(*records):
    """A file with the records, and a function that replaces it and has the service read it."""
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        path = os.path.join(directory, "pypi.jsonl")

        def write(*now):
            with open(path + ".new", "w", encoding="utf-8") as f:
                f.write("".join(json.dumps(record) + "\n" for record in now))
            os.replace(path + ".new", path)

        def renew(service, *now):
            write(*now)
            before = service.log().count("advisories-read ")
            service.reload()
            service.wait_logged("advisories-read ", times=before + 1)

        write(*records)
        yield path, renew


def wait_read(service):
    service.wait_logged("advisories-read ")


@test
def advisories_are_named(ctx):
    """In the answer, to whoever decides, and in the audit log."""
    with new_store() as store, Log(ctx) as log, \
            advisories(advisory("GHSA-aa", "Beta", fixed="1.3", aliases=["CVE-1"]),
                       advisory("CVE-1", "beta", "LOW", fixed="1.3", aliases=["GHSA-aa"]),
                       advisory("GHSA-old", "alpha", fixed="1.0"),
                       advisory("GHSA-not", "beta", withdrawn="2024-01-01T00:00:00Z")) as (path, _):
        packages = "advisories = %s\n" % path
        with ctx.private(config(index.url, store, OPEN + log.config(), packages)) as s, \
                ctx.client(path=s.socket) as client:
            wait_read(s)
            answer = install(client, "alpha")
            equal((answer["status"], names(answer)), ("ok", ["alpha 1.0", "beta 1.2"]), answer)
            found, = answer["advisories"]
            equal((found["package"], found["version"], found["id"], found["aliases"], found["severity"], found["fixed"]),
                  ("beta", "1.2", "GHSA-aa", ["CVE-1"], "high", "1.3"))
            text = client.ask("tools/call", {"name": "install_package", "arguments": {
                "packages": ["alpha"]}})["content"][0]["text"]
            assert "\nadvisory about beta 1.2: GHSA-aa, high: Summary of \\x1b[2JGHSA-aa; fixed in 1.3\n" in text, text
            assert "advisories" not in install(client, "gamma")
        record, _ = log.records("--event", "package-installed")
        equal([one["id"] for one in record["advisories"]], ["GHSA-aa"])
    own = "[policy]\napprovers = self\n"
    with new_store() as store, advisories(advisory("MAL-9", "beta", "")) as (path, _), \
            ctx.private(config(index.url, store, own, "advisories = %s\n" % path)) as s, \
            Client.connect(s.socket, None, timeout=ctx.seconds(60)) as client:
        wait_read(s)
        asked, answer = ask_in_session(client, "decline", None)
        equal(answer["status"], "denied")
    lines = asked.split("\n")
    at = next(i for i, line in enumerate(lines) if line.startswith("beta 1.2 from "))
    assert lines[at + 1].startswith("  ADVISORY MAL-9, critical: Summary of \\x1b[2J"), asked


@test(root=True)
def operators_see_advisories(ctx):
    with new_store() as store, advisories(advisory("GHSA-bb", "alpha", fixed="3")) as (path, _), \
            tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o777)
        more = "[admin]\nsocket = %s/admin\n" % directory
        with ctx.private(config(index.url, store, more, "advisories = %s\n" % path)) as s, \
                ctx.client(path=s.socket) as client:
            wait_read(s)
            id = install(client, "alpha")["approval_id"]
            done = subprocess.run([os.path.join(ctx.options.build, "mcp-python"), "approvals", "show", id,
                                   "--admin-socket", directory + "/admin"], capture_output=True, text=True,
                                  timeout=ctx.seconds(30), check=True)
    for line in ('> packages[0].advisories[0].id: "GHSA-bb"', '> packages[0].advisories[0].severity: "high"',
                 '> packages[0].advisories[0].fixed: "3"'):
        assert line in done.stdout.split("\n"), done.stdout


@test
def packages_with_advisories_are_refused(ctx):
    """From a severity on, also for what was installed before; and all, if there is nothing to compare with."""
    deny = "advisories_deny = high\n"
    with new_store() as store, advisories(advisory("GHSA-low", "beta", "MODERATE", fixed="2")) as (path, renew):
        packages = "advisories = %s\n%s" % (path, deny)
        with ctx.private(config(index.url, store, OPEN, packages)) as s, ctx.client(path=s.socket) as client:
            wait_read(s)
            text = client.ask("tools/call", {"name": "check_environment", "arguments": {}})["content"][0]["text"]
            assert "; none with an advisory that is high or worse\n" in text, text
            answer = install(client, "alpha")
            equal((answer["status"], [a["id"] for a in answer["advisories"]]), ("ok", ["GHSA-low"]))
            equal(client.run("import alpha", None, dependencies=["alpha"]).status, "ok")
            renew(s, advisory("GHSA-high", "beta", "HIGH", fixed="2"))
            answer = install(client, "alpha")
            equal(answer["status"], "denied")
            assert "beta 1.2: the advisory GHSA-high (high)" in answer["message"], answer
            assert "fixed in 2" in answer["message"], answer
            o = client.run("import alpha", None, dependencies=["alpha"])
            assert o.status != "ok" and "GHSA-high" in o.text, o.text
            equal(client.run("import alpha", 60).error["type"], "ModuleNotFoundError")
            equal(install(client, "gamma")["status"], "ok")
            renew(s, advisory("GHSA-high", "beta", "HIGH", fixed="1.2"))
            equal(install(client, "alpha")["status"], "ok")
        os.unlink(path)
        with ctx.private(config(index.url, store, OPEN, packages)) as s, ctx.client(path=s.socket) as client:
            s.wait_logged("advisories-failed ")
            answer = install(client, "gamma")
            equal(answer["status"], "denied")
            assert "cannot be compared: No such file" in answer["message"], answer


ADVISORIES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "advisories.py")


def dump(*records, **more):
    """A zip file as osv.dev has one for an ecosystem: a JSON file for each record."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as z:
        for i, record in enumerate(records):
            z.writestr("GHSA-%d.json" % i, json.dumps(record))
        for name, text in more.items():
            z.writestr(name + ".json", text)
    return data.getvalue()


@contextlib.contextmanager
def serving(pages):
    """A server of {path: (bytes, Content-Length; None: theirs)}; waits forever before the end of a page whose
    length is -1. Its URL."""
    done = threading.Event()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            data, length = pages.get(self.path, (None, None))
            if data is None:
                self.send_error(404)
                return
            self.send_response(200)
            if length != -1:
                self.send_header("Content-Length", str(len(data) if length is None else length))
            self.end_headers()
            self.wfile.write(data)
            if length == -1:
                self.wfile.flush()
                done.wait()

        def log_message(self, *words):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield "http://127.0.0.1:%d" % server.server_address[1]
    finally:
        done.set()
        server.shutdown()
        server.server_close()
        thread.join()


def make_list(ctx, source, to, *options):
    return subprocess.run([sys.executable, ADVISORIES, "--from", source, *options, to], capture_output=True,
                          text=True, timeout=ctx.seconds(120))


@test
def a_dump_of_osv_becomes_the_list(ctx):
    """examples/advisories.py takes a zip file, a folder or a file, by itself or from a server."""
    vector = "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H"
    scored = {**advisory("PYSEC-1", "alpha", fixed="2"), "database_specific": {},
              "severity": [{"type": "CVSS_V3", "score": vector}]}
    dump = [scored, advisory("GHSA-1", "beta"), advisory("GHSA-2", "beta", withdrawn="2024-01-01T00:00:00Z"),
            {"id": "N-1", "affected": [{"package": {"ecosystem": "npm", "name": "x"}}]}]
    with tempfile.TemporaryDirectory() as d:
        to = os.path.join(d, "to.jsonl")
        os.mkdir(os.path.join(d, "folder"))
        for i, record in enumerate(dump):
            with open(os.path.join(d, "folder", "%d.json" % i), "w") as f:
                json.dump(record, f, indent=2)
        with zipfile.ZipFile(os.path.join(d, "all.zip"), "w") as z:
            for i, record in enumerate(dump):
                z.writestr("%d.json" % i, json.dumps(record))
        with open(os.path.join(d, "stream"), "w") as f:
            f.write(" ".join(json.dumps(record) for record in dump))
        found = []
        for source in "folder", "all.zip", "stream":
            done = make_list(ctx, os.path.join(d, source), to)
            equal((done.returncode, done.stdout), (0, "2 advisories\n"), done.stderr)
            with open(to) as f:
                found.append([json.loads(line) for line in f])
        equal(found[1:], found[:1] * 2)
        equal([(r["id"], r["database_specific"]["severity"]) for r in found[0]],
              [("PYSEC-1", "CRITICAL"), ("GHSA-1", "HIGH")])
        # what is wrong leaves the list as it is, and nothing else
        for wrong in "nowhere", "bad":
            with open(os.path.join(d, "bad"), "w") as f:
                f.write("{}")
            done = make_list(ctx, os.path.join(d, wrong), to)
            equal((done.returncode, done.stdout), (1, ""))
            assert wrong in done.stderr and "Traceback" not in done.stderr, done.stderr
        equal(sorted(os.listdir(d)), ["all.zip", "bad", "folder", "stream", "to.jsonl"])


def checked(client):
    """What check_environment answers: the members, and the lines of the text."""
    answer = client.ask("tools/call", {"name": "check_environment", "arguments": {}})
    return answer["structuredContent"], answer["content"][0]["text"].split("\n")


@test
def check_environment_names_advisories(ctx):
    """About the packages of the profile, from a zip file that a server has; the worst first. A list that is not
    there is reported, and one that cannot be renewed stays."""
    with ctx.client() as client:
        here, lines = checked(client)
        assert "advisories" not in here and not any("advisor" in line for line in lines), lines
    one = here["packages"][0]
    many = [advisory("GHSA-%d" % i, one["name"], "LOW") for i in range(21)]
    pages = {"/all.zip": (dump(*many, advisory("MAL-1", one["name"].upper(), fixed="9999"),
                               advisory("GHSA-old", one["name"], fixed="0.0.0.dev0"),
                               advisory("GHSA-alpha", "alpha")), None)}
    with new_store() as store, advisories() as (path, _), serving(pages) as url:
        packages = "advisories = %s\n" % path
        os.unlink(path)
        with ctx.private(config(index.url, store, OPEN, packages)) as s, ctx.client(path=s.socket) as client:
            s.wait_logged("advisories-failed ")
            here, lines = checked(client)
            equal((here["advisories"], here["advisories_trouble"]), ([], "No such file or directory"))
            assert "advisories: not all is known: No such file or directory" in lines, lines
            done = make_list(ctx, url + "/all.zip", path)
            equal((done.returncode, done.stdout), (0, "24 advisories\n"), done.stderr)
            s.reload()
            wait_read(s)
            here, lines = checked(client)
            assert "advisories_trouble" not in here, here
            equal(sorted(a["id"] for a in here["advisories"]), sorted([a["id"] for a in many] + ["MAL-1"]))
            equal({(a["package"], a["version"]) for a in here["advisories"]},
                  {(here["advisories"][0]["package"], one["version"])})
            about = [line for line in lines if line.startswith("advisory about ")]
            equal((len(about), lines[-2:]), (20, ["and 2 further advisories", ""]), lines)
            assert " %s: MAL-1, critical: Summary of \\x1b[2JMAL-1; fixed in 9999" % one["version"] in about[0], about
            failed = make_list(ctx, url + "/nowhere.zip", path)
            equal((failed.returncode, "404" in failed.stderr), (1, True), failed.stderr)
            with open(path, "w", encoding="utf-8") as f:
                f.write('{"id": ')
            s.reload()
            s.wait_logged("advisories-failed ", times=2)
            here, lines = checked(client)
            equal(len(here["advisories"]), 22)
            assert here["advisories_trouble"].startswith("record 1: "), here


@test
def a_dump_has_bounds(ctx):
    """What is missing, broken, cut off, late or too large is one clear line, and the list stays."""
    good = advisory("GHSA-1", "alpha")
    whole = dump(good, advisory("GHSA-2", "alpha"), good)
    with zipfile.ZipFile(io.BytesIO(whole)) as z:
        at = z.infolist()[0].header_offset + 60
    encrypted, unknown = bytearray(whole), bytearray(whole)
    central = whole.index(b"PK\1\2")
    encrypted[6] |= 1
    encrypted[central + 8] |= 1
    unknown[8] = unknown[central + 10] = 77
    pages = {
        "/whole": (whole, None), "/cut": (whole, len(whole) + 9), "/lines-cut": (json.dumps(good).encode(), 9999),
        "/half": (whole[:len(whole) // 2], None), "/waits": (whole, -1), "/empty": (b"", None), "/none": (dump(), None),
        "/flipped": (whole[:at] + bytes([whole[at] ^ 0xff]) + whole[at + 1:], None),
        "/encrypted": (bytes(encrypted), None), "/unknown": (bytes(unknown), None),
        "/large-record": (dump(good, big='{"id": "%s"}' % ("x" * (4 << 20))), None),
        "/deep": (dump(good, deep='{"a": %s' % ("[" * 1000000)), None),
        "/deep-lines": (b"[" * 1000000, None),
        "/no-json": (dump(good, bad="{"), None), "/no-text": (dump(good, bad=b"\xff\xfe{}"), None),
        "/no-osv": (dump(good, bad='{"affected": [7]}'), None), "/html": (b"<html>", None),
        "/others": (dump({"id": "N-1", "affected": [{"package": {"ecosystem": "npm", "name": "x"}}]}), None),
    }
    rows = (("nowhere", "404", ()), ("cut", "cut off after", ()), ("lines-cut", "cut off after", ()),
            ("half", "not a zip file", ()), ("waits", "too long", ("--seconds", "1")), ("empty", "no advisory", ()),
            ("none", "no advisory", ()), ("flipped", "", ()), ("encrypted", "encrypted", ()), ("unknown", "compression", ()),
            ("large-record", "'big.json' has more than 4194304 bytes", ()), ("deep", "'deep.json': ", ()),
            ("deep-lines", "", ()), ("no-json", "'bad.json': ", ()), ("no-text", "'bad.json': ", ()),
            ("no-osv", "record 2 is not in the format of OSV", ()), ("html", "", ()), ("others", "no advisory", ()),
            ("whole", "more than 2 records", ("--records", "2")),
            ("whole", "more than %d bytes" % (len(whole) - 1), ("--bytes", str(len(whole) - 1))))
    with tempfile.TemporaryDirectory() as d, serving(pages) as url:
        to = os.path.join(d, "to.jsonl")
        done = make_list(ctx, url + "/whole", to, "--records", "3", "--bytes", str(len(whole)))
        equal((done.returncode, done.stdout), (0, "3 advisories\n"), done.stderr)
        with open(to, "rb") as f:
            before = f.read()
        for name, text, options in rows:
            done = make_list(ctx, "%s/%s" % (url, name), to, *options)
            equal((done.returncode, done.stdout, done.stderr.count("\n")), (1, "", 1), done.stderr)
            assert done.stderr.startswith("advisories.py: %s/%s: " % (url, name)), done.stderr
            assert text in done.stderr, (name, done.stderr)
        with open(to, "rb") as f:
            equal(f.read(), before)
        equal(os.listdir(d), ["to.jsonl"])
        done = make_list(ctx, url + "/whole", os.path.join(d, "nowhere", "to"))
        equal((done.returncode, done.stdout, done.stderr.count("\n")), (1, "", 1), done.stderr)


# ---- an index that fails --------------------------------------------------------------


class Bad:
    """A server that answers each request by act(connection, request line)."""

    def __init__(self, act):
        self.act = act
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d/simple" % self.listening.getsockname()[1]
        self.held = []

    def __enter__(self):
        threading.Thread(target=self.serve, daemon=True).start()
        return self

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                conn, _ = self.listening.accept()
                request = conn.makefile("rb").readline()
                if not self.act(conn, request):
                    conn.close()
                else:
                    self.held.append(conn)

    def __exit__(self, *exc):
        self.listening.shutdown(socket.SHUT_RDWR)
        self.listening.close()
        for conn in self.held:
            conn.close()


def stall(conn, request):
    return True


def garbage(conn, request):
    conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 4096\r\n\r\n" +
                 random.Random(1).randbytes(4096))


def no_http(conn, request):
    conn.sendall(b"\0" * 100000)


def cut(conn, request):
    """The page is whole, the file ends in its middle."""
    name, data = wheel("cut", "1.0", {"cut.py": random.Random(2).randbytes(100000)})
    if b"/simple/" in request:
        page = b'<a href="/files/%s#sha256=%s">x</a>' % (name.encode(), digest(data).encode())
        page = page.replace(b">x<", b">%s<" % name.encode())
        conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n"
                     b"Connection: close\r\n\r\n%s" % (len(page), page))
    else:
        conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/zip\r\nContent-Length: %d"
                     b"\r\nConnection: close\r\n\r\n%s" % (len(data), data[:50000]))


@test
def indexes_that_fail(ctx):
    for act, words in ((garbage, []), (no_http, []),
                       (cut, [])):
        with Bad(act) as bad, new_store() as store, \
                ctx.private(config(bad.url, store)) as s, ctx.client(path=s.socket) as client:
            refused(install(client, "cut"), "could not be", *words)
            equal((verify(store), leftovers(store)), (0, []))
            equal(client.run("print(1)").stdout, "1\n")


@test
def an_index_that_is_down(ctx):
    with socket.socket() as port:	# held, so that nobody else listens there
        port.bind(("127.0.0.1", 0))
        url = "http://127.0.0.1:%d/simple" % port.getsockname()[1]
        with new_store() as store, ctx.private(config(url, store)) as s, \
                ctx.client(path=s.socket) as client:
            refused(install(client, "alpha"), "could not be resolved")


@test
def an_index_that_stalls(ctx):
    with Bad(stall) as bad, new_store() as store, \
            ctx.private(config(bad.url, store, packages="timeout_seconds = 3\n")) as s, \
            ctx.client(path=s.socket) as client:
        started = time.monotonic()
        refused(install(client, "alpha"), "3 s")
        assert time.monotonic() - started < ctx.seconds(20)
        equal(client.run("print(1)").stdout, "1\n")


@test
def cancelled_installations_leave_nothing(ctx):
    with Bad(stall) as bad, new_store() as store, ctx.private(config(bad.url, store)) as s, \
            ctx.client(path=s.socket) as client:
        id = client.request("tools/call", {"name": "install_package",
                                           "arguments": {"packages": ["alpha"]}})
        until("the index is asked", lambda: bad.held)
        client.cancel(id)
        equal(client.run("print(1)").stdout, "1\n")
        equal((verify(store), leftovers(store)), (0, []))


# ---- crashes --------------------------------------------------------------------------


@test(private=True)
def a_lost_keeper_is_replaced(ctx):
    with new_store() as store, ctx.private(config(index.url, store)) as s, \
            ctx.client(path=s.socket) as client:
        equal(install(client, "alpha")["status"], "ok")
        keeper = keeper_of(s.pid)
        os.kill(keeper[0], signal.SIGKILL)
        equal(wait_gone([keeper], ctx.seconds(60)), [])
        s.wait_logged("keeper-ready", times=2)
        o = client.run("import alpha; print(alpha.VERSION)", dependencies=["alpha"])
        equal((o.status, o.stdout), ("ok", "1.0\n"), o)
        equal(verify(store), 1)


@test(private=True)
def while_there_is_no_keeper_everything_else_goes_on(ctx):
    with new_store() as store, ctx.private(config(index.url, store)) as s, \
            ctx.client(path=s.socket) as client:
        equal(install(client, "alpha")["status"], "ok")
        keeper = keeper_of(s.pid)
        os.chmod(store, 0o777)      # which none serves
        os.kill(keeper[0], signal.SIGKILL)
        s.wait_logged("keeper-failed")
        o = client.run("import alpha", None, dependencies=["alpha"])
        equal(o.status, "jail_failed", o)
        assert "there is no keeper of its packages or files now" in o.text, o.text
        equal(client.run("print(1)").stdout, "1\n")
        # Each try to start one takes a moment, in which the answer is another one.
        refused(until("the keeper has failed", lambda: "is being opened" not in str(
            answer := install(client, "gamma")) and answer), "others may write to it")
        os.chmod(store, 0o755)
        s.wait_logged("keeper-ready", times=2)
        o = client.run("import alpha; print(alpha.VERSION)", None, dependencies=["alpha"])
        equal((o.status, o.stdout), ("ok", "1.0\n"), o)


@test(private=True)
def the_store_is_made_with_what_is_above_it(ctx):
    """And what cannot be made is named."""
    with new_store() as store:
        with ctx.private(config(index.url, store + "/a/b/c")) as s, ctx.client(path=s.socket) as c:
            equal(install(c, "alpha")["status"], "ok")
            equal(verify(store + "/a/b/c"), 1)
        with open(store + "/file", "w"):
            pass
        wrong = config(index.url, store + "/file/x")
        if os.getuid():
            with ctx.private(wrong) as s, ctx.client(path=s.socket) as c:
                refused(install(c, "alpha"), "store, %s/file/x: Not a directory" % store)
            return
        with open(store + "/conf", "w") as f:	# root makes it for the service's user, and fails at once
            f.write(wrong)
        done = subprocess.run([os.path.join(ctx.options.build, "mcp-pythond"), "--stdio", "--config",
                               f.name], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=ctx.seconds(60))
        equal(done.returncode, 1, done.stderr)
        assert "store = %s/file/x: Not a directory" % store in done.stderr, done.stderr


@test(private=True, root=True)
def a_python_without_pip_says_what_to_install(ctx):
    pip = under_test.root + under_test.ask("import os, pip\nprint(os.path.dirname(pip.__file__))")
    hidden = ("unshare", "--mount", "sh", "-c", "mount -t tmpfs none '%s' && exec \"$@\"" % pip, "sh")
    with new_store() as store, ctx.private(config(index.url, store), wrap=hidden) as s, \
            ctx.client(path=s.socket) as client:
        refused(install(client, "alpha"), "this Python has no pip: install python3-pip")


@test
def each_line_of_pip_is_a_line_at_a_terminal(ctx):
    with tempfile.NamedTemporaryFile("w", suffix=".py") as f:
        done = subprocess.run([os.path.join(ctx.options.build, "mcp-python"), "run", "--socket",
                               ctx.socket, "--with", "no-such-package-anywhere", f.name],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=ctx.seconds(60))
    equal(done.returncode, 64, done.stderr)
    lines = done.stderr.splitlines()
    assert lines[0].startswith("mcp-python: dependency_unavailable: "), lines
    assert len(lines) > 1 and all(line.startswith("  > ") for line in lines[1:]), lines
    assert "\\x0a" not in done.stderr, done.stderr


@test(private=True)
def half_made_environments_are_removed(ctx):
    """Which may take a while, and calls wait for it."""
    with new_store() as store:
        with ctx.private(config(index.url, store)) as s, ctx.client(path=s.socket) as client:
            equal(install(client, "alpha")["status"], "ok")
        owner = os.stat(store)
        for name in (".new-7", ".old-8"):
            os.makedirs(os.path.join(store, name, "tree", "a", "b"))
            with open(os.path.join(store, name, "tree", "a", "f"), "w") as f:
                f.write("half")
            for i in range(500):
                os.mkdir(os.path.join(store, name, "tree", "a", "b", str(i)))
            subprocess.run(["chown", "-R", "%d:%d" % (owner.st_uid, owner.st_gid),
                            os.path.join(store, name)], check=True)
        with ctx.private(config(index.url, store)) as s, ctx.client(path=s.socket) as client:
            o = client.run("import alpha; print(alpha.VERSION)", None, dependencies=["alpha"])
            equal((o.status, o.stdout), ("ok", "1.0\n"), o)
            assert "keeper-ready removed=2" in s.log(), s.log()
            equal((verify(store), leftovers(store)), (1, []))
            equal(install(client, "alpha")["message"], "2 packages, already installed")


# ---- for one user, without any configuration ----


@contextlib.contextmanager
def laptop(url, **more):
    """Variables of a user whose pip asks that index. What is installed is in the cache."""
    with tempfile.TemporaryDirectory() as cache:
        os.chmod(cache, 0o755)
        yield {"PIP_INDEX_URL": url, "PIP_CONFIG_FILE": os.devnull, "XDG_CACHE_HOME": cache,
               "ASAN_OPTIONS": "detect_leaks=0", **more}


def laptop_config(ctx, variables, *options, config=""):
    """What is in force, and what was printed of it."""
    with tempfile.NamedTemporaryFile("w") as f:
        f.write(config)
        f.flush()
        done = subprocess.run(
            [os.path.join(ctx.options.build, "mcp-pythond"), "--stdio", "--dump-config", "--config",
             f.name, *options], env={**os.environ, **variables}, capture_output=True, text=True,
            timeout=ctx.seconds(60))
    section, said = None, {}
    for line in done.stdout.splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif " = " in line or line.endswith(" ="):
            name, _, value = line.partition(" =")
            said[section, name] = value.strip()
    return done.returncode, said, done.stderr


@test(private=True)
def one_option_gives_packages(ctx):
    """Of pip's index, in a store whose parents are made, and the user's own to allow."""
    with laptop(index.url) as variables:
        code, said, err = laptop_config(ctx, variables, "--packages")
        equal((code, err), (0, ""))
        store = variables["XDG_CACHE_HOME"] + "/mcp-pythond/packages"
        equal([said["packages", name] for name in ("index", "extra_indexes", "file_hosts", "store")],
              [index.url, "", "", store])
        equal(said["policy", "approvers"], "self")
        equal(said["admin", "approvals"], os.path.dirname(store) + "/approvals.jsonl")
        assert os.path.isdir(os.path.dirname(store))
        # A URL goes first; what the files say comes before what pip says.
        own = "[packages]\nindex = http://a.example/\n[policy]\napprovers = uid:7\n"
        code, said, err = laptop_config(ctx, variables, "--packages", config=own)
        equal((said["packages", "index"], said["policy", "approvers"]), ("http://a.example/", "uid:7"))
        code, said, err = laptop_config(ctx, variables, "--packages=http://b.example/", config=own)
        equal(said["packages", "index"], "http://b.example/")
        code, said, err = laptop_config(ctx, variables)
        equal((said["packages", "index"], said["packages", "store"]), ("", ""))
        code, _, err = laptop_config(ctx, variables, "--packages=elsewhere")
        equal(code, 78)
        assert err.startswith("--packages: ") and "http://" in err, err


@test(private=True)
def pip_has_an_index_of_its_own(ctx):
    with laptop("") as variables:
        del variables["PIP_INDEX_URL"]
        code, said, err = laptop_config(ctx, {**variables, "HOME": variables["XDG_CACHE_HOME"]},
                                        "--packages")
        equal((code, err), (0, ""))
        assert said["packages", "index"].startswith("https://"), said["packages", "index"]
        assert said["packages", "file_hosts"], "files are on another host"


@test(private=True)
def a_client_is_asked_before_a_first_package(ctx):
    program = os.path.join(ctx.options.build, "mcp-pythond")
    with laptop(index.url) as variables, Client.spawn(
            [program, "--stdio", "--packages"], None, ctx.seconds(60),
            env={**os.environ, **variables}, stderr=subprocess.DEVNULL) as client:
        asked, answer = ask_in_session(client, "accept", {"allow": True})
        assert "alpha" in asked, asked
        equal((answer["status"], names(answer)), ("ok", ["alpha 1.0", "beta 1.2"]))


@test(private=True)
def clients_have_a_store_each(ctx):
    """Each client starts a service of its own: the second one keeps packages and files beside the
    first one's, and a later one finds what was kept."""
    program = os.path.join(ctx.options.build, "mcp-pythond")

    def agent(variables, revision):
        return Client.spawn([program, "--stdio", "--packages"], revision, ctx.seconds(60),
                            env={**os.environ, **variables}, stderr=subprocess.DEVNULL)

    with laptop(index.url) as variables:
        top = variables["XDG_CACHE_HOME"] + "/mcp-pythond"
        with agent(variables, None) as first, agent(variables, None) as second:
            for client in (first, second):
                _, answer = ask_in_session(client, "accept", {"allow": True})
                equal((answer["status"], names(answer)), ("ok", ["alpha 1.0", "beta 1.2"]))
            for directory in top, top + "/2":
                assert os.path.isdir(directory + "/packages"), os.listdir(top)
                assert os.path.getsize(directory + "/approvals.jsonl") > 0, directory
        with agent(variables, "2025-06-18") as third:
            o = third.run("import alpha\nopen('f', 'wb').write(bytes(20 << 20))\nprint(alpha.VERSION)")
            equal((o.status, o.stdout), ("ok", "1.0\n"), o)
            assert "uri" in o.structured["files"][0], o.structured["files"]
        assert not os.path.exists(top + "/3")


@test(private=True)
def who_cannot_be_asked_is_told(ctx):
    """In a pipe, and for lack of forms."""
    with laptop(index.url, XDG_RUNTIME_DIR="/nonexistent") as variables:
        done = subprocess.run([os.path.join(ctx.options.build, "mcp-python"), "run", "--private",
                               "--wait", "--with", "gamma", "-"], input="", capture_output=True, text=True,
                              timeout=ctx.seconds(60), env={**os.environ, **variables})
        equal((done.returncode, done.stdout), (75, ""), done.stderr)
        assert "has to be approved by the session's user, who cannot be asked here" in done.stderr, done.stderr


@test(private=True)
def a_person_at_a_terminal_is_asked(ctx):
    """With --with, and for what a script itself lists. A second run finds what was installed."""
    script = "# /// script\n# dependencies = ['alpha']\n# ///\nimport alpha\nprint('v', alpha.VERSION)\n"
    with laptop(index.url, XDG_RUNTIME_DIR="/nonexistent") as variables, \
            tempfile.NamedTemporaryFile("w", suffix=".py") as f:
        f.write(script)
        f.flush()
        for asks in (True, False):
            with Terminal(ctx, "run", "--private", f.name, more=variables) as t:
                if asks:
                    t.expect("\n?  Collecting alpha\n")
                    t.expect(r"alpha.*\[y/N\] ")
                    t.type("y\n")
                t.expect("v 1.0\n")
                equal(t.end(), 0)
        with Terminal(ctx, "run", "--private", "--with", "gamma", f.name, more=variables) as t:
            t.expect(r"gamma.*\[y/N\] ")
            t.type("n\n")
            equal(t.end(), 64, t.log)


# ---- the packages ----------------------------------------------------------------------


def fill(index):
    """Returns hashes of some."""
    got = {"alpha": index.add("alpha", "1.0", requires=["beta>=1"])}
    got["beta"] = index.add("beta", "1.2")
    index.add("gamma", "1.0")
    index.add("gamma", "2.0")
    index.add("delta", "1.0")
    index.add("epsilon", "1.5")
    index.add("epsilon", "2.0")
    index.add("modern", "1.0", requires=["epsilon>=2"])
    got["goodlib"] = index.add("goodlib", "1.0", {"goodlib.py": "VALUE = 'good'\n"})
    index.add("yanked", "1.0")
    index.add("yanked", "1.1", yanked="it was wrong")
    _, other = wheel("tampered", "1.0", {"tampered.py": "other = 1\n"})
    index.add("tampered", "1.0", served=other)
    index.add("climber", "1.0", extra_members=[("../../../../tmp/evil", b"x")])
    index.add("absolute", "1.0", extra_members=[("/tmp/evil", b"x")])
    index.add("biter", "1.0", {"biter.py": "open(__file__, 'a')\n"})
    index.add("huge", "1.0", {"huge.py": b"#" * (20 << 20)})
    index.add("many", "1.0", {"many/f%d.py" % i: "" for i in range(100)})
    return got


if not os.path.exists(NGINX):
    print("SKIPPED all: no nginx here\n0 passed, 0 failed, 1 skipped")
    sys.exit(1 if os.environ.get("CI") == "true" else 0)
with Index() as index, new_store() as shared:
    hashes = fill(index)
    main(__doc__, config(index.url, shared), modules=FEW_MODULES)
