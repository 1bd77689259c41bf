#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Packages that are built from source, by an operator's leave: what that gives, and what a source
cannot do while it is built.

Sources are made here; an index on a loopback port is served by nginx. They are built by what this
machine has for that: setuptools, and back ends of their own.
"""

import contextlib
import io
import json
import os
import shutil
import signal
import sys
import tarfile

from harness import FEW_MODULES, SOMEBODY, Skip, equal, main, test
from mcpclient import Client
from package_index import NGINX, Index, digest
from package_store import (OPEN, asked, asked_since, config, environments, install, leftovers, names, new_store,
                           refused, verify)
from supervisor import Supervisor, descendants, wait_gone
from waits import until, until_equal

BUILD = "build = allow\n"
SETUP = "from setuptools import setup\nsetup(name=%r, version=%r, py_modules=[%r], install_requires=%r)\n"
OWN_BACK_END = ('[build-system]\nrequires = []\nbuild-backend = "back_end"\n'
                'backend-path = ["."]\n')
# A back end that makes wheels by hand: named(tag) writes one and returns its name.
BACK_END = """
import base64, hashlib, os, zipfile
def row(path, text):
    sha = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
    return "%%s,sha256=%%s,%%d\\n" %% (path, sha, len(text.encode()))
def named(to, file, name=%(name)r, version=%(version)r):
    info = "%%s-%%s.dist-info/" %% (name, version)
    files = {name + ".py": "VERSION = %%r" %% version,
             info + "METADATA": "Metadata-Version: 2.1\\nName: %%s\\nVersion: %%s\\n"
             %% (name, version),
             info + "WHEEL": "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"}
    files[info + "RECORD"] = "".join(row(*one) for one in files.items()) + info + "RECORD,,\\n"
    with zipfile.ZipFile(os.path.join(to, file), "w") as z:
        for path, text in files.items():
            z.writestr(path, text)
    return file
def build_wheel(to, config_settings=None, metadata_directory=None):
    usual = "%(name)s-%(version)s-py3-none-any.whl"
"""


def sdist(name, version, files, members=()):
    """The bytes of a source archive and its file name. members: further tarfile.TarInfo."""
    top = "%s-%s" % (name, version)
    files = {"PKG-INFO": "Metadata-Version: 2.1\nName: %s\nVersion: %s\n" % (name, version),
             **files}
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for path, text in files.items():
            info = tarfile.TarInfo("%s/%s" % (top, path))
            info.size = len(text.encode())
            tar.addfile(info, io.BytesIO(text.encode()))
        for info in members:
            tar.addfile(info)
    return top + ".tar.gz", out.getvalue()


def put(name, version="1.0", files=None, hashed=True, served=None, members=()):
    """Adds a source to the index; returns its SHA-256."""
    file, data = sdist(name, version, files, members)
    index.put(name, file, data if served is None else served, digest(data) if hashed else None)
    return digest(data)


def plain(name, version="1.0", requires=(), before="", after="", **more):
    """One with a setup.py, that does something more before or after it is built."""
    return put(name, version, {
        "setup.py": before + "\n" + SETUP % (name, version, name, list(requires)) + after,
        name + ".py": "VERSION = %r\n" % version}, **more)


def own(name, body="return named(to, usual)", version="1.0", **more):
    """One with a back end of its own, which is started in a third of the time of setuptools."""
    lines = "".join("    %s\n" % line for line in body.splitlines())
    return put(name, version, {
        "pyproject.toml": OWN_BACK_END,
        "back_end.py": BACK_END % {"name": name, "version": version} + lines}, **more)


@contextlib.contextmanager
def service(ctx, packages=BUILD, more=OPEN, url=None):
    """A supervisor whose store nothing half made may be left in."""
    with new_store() as store:
        place = os.path.join(os.path.dirname(store), "log")
        os.mkdir(place)
        os.chmod(place, 0o777)
        log = "[audit]\nfile = %s/audit\njournal = no\n" % place
        with ctx.private(config(url or index.url, store, more + log, packages)) as s:
            s.store, s.audit = store, place + "/audit"
            yield s
            equal(leftovers(store), [])
            verify(store)


def built(s):
    """Records of the audit log about builds: (name, status)."""
    with open(s.audit) as f:
        records = [json.loads(line) for line in f if line.endswith("\n")]
    return [(r["package"]["name"], r["status"]) for r in records if r["event"] == "package-built"]


# ---- what works ----------------------------------------------------------------------


@test
def sources_are_built_and_imported(ctx):
    """With what they depend on, of which some is a wheel and some has to be built too."""
    index.add("wheeled", "1.2")
    hashes = {"outer": plain("outer", requires=["wheeled", "inner>=1"]),
              "inner": plain("inner", "1.5")}
    with service(ctx) as s, ctx.client(path=s.socket) as client:
        answer = install(client, "outer")
        equal((answer["status"], names(answer)),
              ("ok", ["inner 1.5", "outer 1.0", "wheeled 1.2"]), answer)
        for p in answer["packages"]:
            equal(p.get("built"), True if p["name"] in hashes else None)
            equal(p["index"], index.url)
            if p["name"] in hashes:
                equal(p["hash"], "sha256:" + hashes[p["name"]])
        o = client.run("import outer, inner; print(outer.VERSION, inner.VERSION, inner.__file__)",
                       None, dependencies=["outer"])
        equal((o.status, o.stdout), ("ok", "1.0 1.5 /environment/inner.py\n"), o)
        until_equal("the records", lambda: built(s), [("outer", "ok"), ("inner", "ok")])
        before = len(asked(index))
        again = install(client, "outer")
        equal(again["packages"], answer["packages"])
        assert "already installed" in again["message"], again
        # Not "what else there is": other tests install meanwhile.
        equal([r for r in asked_since(index, before)
               if any(name in r for name in ("outer", "inner", "wheeled"))], [])
        until_equal("the records", lambda: len(built(s)), 2)


@test
def indexes_as_json(ctx):
    plain("of_json")
    with service(ctx, url=index.host + "/json") as s, ctx.client(path=s.socket) as client:
        equal(names(install(client, "of_json")), ["of-json 1.0"])


@test
def it_is_told_while_it_is_done(ctx):
    own("told")
    with service(ctx) as s, ctx.client(path=s.socket) as client:
        id = client.request("tools/call", {
            "name": "install_package", "arguments": {"packages": ["told"]},
            "_meta": {"progressToken": "p"}})
        equal(client.wait(id, ctx.seconds(60))["structuredContent"]["status"], "ok")
        said = [notice["params"]["message"] for notice in client.notices]
        assert "Building told 1.0 from source" in said, said


@test
def wheels_come_first(ctx):
    """Also before a newer source."""
    index.add("both", "1.0")
    own("both", version="2.0")
    with service(ctx) as s, ctx.client(path=s.socket) as client:
        answer = install(client, "both")
        equal((names(answer), built(s)), (["both 1.0"], []), answer)
        answer = install(client, "both>=2")
        equal(names(answer), ["both 2.0"], answer)
        until_equal("the records", lambda: built(s), [("both", "ok")])


@test
def native_code_is_compiled(ctx):
    """Where a profile shows a compiler."""
    compiler = shutil.which("gcc")
    if not compiler:
        raise Skip("no gcc", missing=True)
    put("compiled", "1.0", {
        "setup.py": "from setuptools import setup, Extension\nsetup(name='compiled', "
                    "version='1.0', ext_modules=[Extension('compiled', ['compiled.c'])])\n",
        "compiled.c": "#include <Python.h>\nstatic struct PyModuleDef d = "
                      "{PyModuleDef_HEAD_INIT, \"compiled\", 0, -1, 0};\nPyMODINIT_FUNC "
                      "PyInit_compiled(void) { PyObject *m = PyModule_Create(&d);"
                      "PyModule_AddIntConstant(m, \"ANSWER\", 42); return m; }\n"})
    shown = "[profile basic]\npaths = %s\n" % " ".join(
        p for p in ("/usr/bin", "/usr/include", "/usr/lib/gcc", "/usr/libexec/gcc")
        if os.path.isdir(p))
    with service(ctx, more=OPEN + shown) as s, ctx.client(path=s.socket) as client:
        equal(names(install(client, "compiled")), ["compiled 1.0"])
        o = client.run("import compiled; print(compiled.ANSWER)", None, dependencies=["compiled"])
        equal((o.status, o.stdout), ("ok", "42\n"), o)
    with service(ctx) as s, ctx.client(path=s.socket) as client:
        refused(install(client, "compiled"), "no C compiler")


# ---- whose it may be -----------------------------------------------------------------


@test
def nothing_is_built_without_leave(ctx):
    plain("unwanted")
    with service(ctx, packages="") as s, ctx.client(path=s.socket) as client:
        refused(install(client, "unwanted"), "No matching distribution found")
        equal((built(s), environments(s.store)), ([], []))


@test(root=True)
def each_tenant_by_its_own_leave(ctx):
    own("for_some")
    more = OPEN + "[tenant uid:%d]\npackages.build = deny\n" % SOMEBODY
    with service(ctx, more=more) as s, ctx.client(path=s.socket) as client, \
            ctx.client(path=s.socket, uid=SOMEBODY) as other:
        equal(install(client, "for-some")["status"], "ok")
        refused(install(other, "for-some"), "No matching distribution found")
        o = other.run("import for_some", dependencies=["for_some"])
        equal(o.status, "dependency_unavailable")


@test
def what_is_denied_is_not_built(ctx):
    plain("evil")
    plain("needs_evil", requires=["evil"])
    with service(ctx, packages=BUILD + "deny = evil<2\n") as s, \
            ctx.client(path=s.socket) as client:
        answer = install(client, "needs_evil")
        refused(answer, "evil 1.0: is denied by evil<2", status="denied")
        equal(answer["packages"][0]["built"], True)
        until_equal("the records", lambda: built(s), [("needs-evil", "ok")])


@test
def approvers_see_what_was_built(ctx):
    sha256 = own("to_approve")
    with service(ctx, more="[policy]\napprovers = self\n") as s, \
            Client.connect(s.socket, None, timeout=ctx.seconds(60)) as client:
        client.greet("2025-06-18", elicitation={})
        client.send({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
            "name": "install_package", "arguments": {"packages": ["to_approve"]}}})
        while True:
            message = client.recv()
            if message.get("method") == "elicitation/create":
                asked = message["params"]["message"]
                assert "sha256:%s (a source, built here)" % sha256 in asked, asked
                client.send({"jsonrpc": "2.0", "id": message["id"],
                             "result": {"action": "accept", "content": {"allow": True}}})
            elif message.get("id") == 2:
                break
        equal(message["result"]["structuredContent"]["status"], "ok", message)


# ---- what no code of a source may do ---------------------------------------------------


@test
def nothing_of_a_source_runs_where_the_index_is(ctx):
    """A wheel may say that it depends on one by its URL: pip would run that to see what it
    depends on itself, beside a way out."""
    plain("runner", before="""
import urllib.request
urllib.request.build_opener(urllib.request.ProxyHandler({"http": "http://127.0.0.1:3128"})).open(
    %r)
""" % (index.host + "/ran"))
    index.add("pointer", "1.0",
              requires=["runner @ %s/files/runner-1.0.tar.gz" % index.host])
    for packages in ("", BUILD):
        with service(ctx, packages=packages) as s, ctx.client(path=s.socket) as client:
            refused(install(client, "pointer"), "is no wheel, and nothing is built of what a URL")
            equal(built(s), [])
    with service(ctx) as s, ctx.client(path=s.socket) as client:
        refused(install(client, "runner"), "runner 1.0 could not be built from source",
                "Connection refused")
    equal([r for r in index.requests() if "/ran" in r], [])


PROBE = """
import json, os, socket
def tried(act):
    try:
        act()
    except OSError as e:
        return type(e).__name__
    return "done"
found = [tried(lambda: socket.create_connection(("127.0.0.1", %d), 5)),
         tried(lambda: socket.create_connection(("127.0.0.1", 3128), 5)),
         tried(lambda: socket.getaddrinfo("localhost.localdomain.invalid", 80)),
         tried(lambda: open("/usr/lib/python3/dist-packages/evil.py", "w")),
         tried(lambda: open("/environment/evil.py", "w")),
         tried(lambda: open("/etc/evil", "w")),
         sorted(n for n in os.environ if "proxy" in n.lower())]
with open("walled.py", "w") as f:
    f.write("FOUND = %%r" %% found)
"""


@test
def a_build_is_walled(ctx):
    plain("walled", before=PROBE % index.port)
    with service(ctx) as s, ctx.client(path=s.socket) as client:
        equal(install(client, "walled")["status"], "ok")
        o = client.run("import walled\nwalled.FOUND", None, dependencies=["walled"])
        refusals = o.result["json"]
        equal(refusals.pop(), [], o)
        equal(refusals[:3], ["ConnectionRefusedError", "ConnectionRefusedError", "gaierror"])
        assert "done" not in refusals, refusals


@test
def a_build_may_leave_files(ctx):
    """Where a script's are listed: nobody asks for them here."""
    own("littering", "open('/workspace/left', 'w').write('x')\nreturn named(to, usual)")
    with service(ctx) as s, ctx.client(path=s.socket) as client:
        equal(names(install(client, "littering")), ["littering 1.0"])


@test
def builds_that_fail(ctx):
    plain("failing", after="\nraise RuntimeError('it does not ' + 'want to')\n")
    plain("muttering", after="\nfor _ in range(20):\n    print('x' * 999999, 'word')\n"
                             "raise SystemExit(3)\n")
    # Its processes wait, or they would fork for seconds, each in the place of another.
    plain("bomb", before="import os, signal\nwhile os.fork():\n    pass\n"
                         "os.closerange(0, 9)\nsignal.pause()\n")
    plain("greedy", before="x = bytearray(3 << 30)\n")
    plain("wide", before="with open('/tmp/wide', 'wb') as f:\n    while True:\n"
                         "        f.write(bytes(1 << 20))\n")
    plain("parricide", before="import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\n")
    plain("killer", before="import os, signal\nos.kill(-1, signal.SIGKILL)\n")
    put("backless", "1.0", {"pyproject.toml": '[build-system]\nrequires = ["hatchling>=1"]\n'
                                              'build-backend = "hatchling.build"\n'})
    put("empty", "1.0", {})
    # A disk of its own size, so that "wide" fills it before it has used up its memory.
    small = OPEN + "[profile basic]\ndisk_bytes = 64M\n"
    with service(ctx, more=small) as s, ctx.client(path=s.socket) as client:
        for name, *words in (("failing", "RuntimeError: it does not want to"),
                             ("muttering", "word", "pip wheel ended with 1"),
                             ("bomb", ""), ("greedy", "Memory"),
                             ("wide", "No space left on device"),
                             ("parricide", "pip wheel ended with -9"), ("killer", ""),
                             ("backless", "hatchling", "setuptools"),
                             ("empty", "neither 'setup.py' nor 'pyproject.toml'")):
            answer = install(client, name, timeout=ctx.seconds(200))
            refused(answer, "%s 1.0 could not be built from source" % name, *words)
            equal(answer["packages"], [])
            # The record is written by a thread, and the answer does not wait for this one.
            until_equal("the record", lambda name=name: built(s)[-1:], [(name, "error")])
        equal(environments(s.store), [])
        equal(client.run("print(1)").stdout, "1\n")


@test
def builds_that_take_for_ever(ctx):
    plain("waiting", before="import signal\nsignal.pause()\n")
    plain("deaf", before="import signal, time\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\n"
                         "time.sleep(1000)\n")
    limit = 10	# a build that has not come to its loop then is ended as well
    with service(ctx, packages=BUILD + "timeout_seconds = %d\n" % limit) as s, \
            ctx.client(path=s.socket) as client:
        ids = {name: client.request("tools/call", {
            "name": "install_package", "arguments": {"packages": [name]}})
            for name in ("deaf", "waiting")}
        for name, id in ids.items():
            refused(client.wait(id, ctx.seconds(60))["structuredContent"],
                    "%s 1.0 could not be built from source" % name, "%d s" % limit)


@test
def builds_that_make_another_thing(ctx):
    put("liar", "1.0", {"setup.py": SETUP % ("honest", "1.0", "liar", []), "liar.py": ""})
    put("older", "1.0", {"setup.py": SETUP % ("older", "0.9", "older", []), "older.py": ""})
    own("masked", "return named(to, usual, 'innocent', '7')")
    own("many", "named('/tmp/wheels', 'more-1.0-py3-none-any.whl')\nreturn named(to, usual)")
    own("linked", "os.symlink('/etc/passwd', os.path.join(to, usual))\nreturn usual")
    own("foreign", "return named(to, '%s-1.0-cp27-none-any.whl')" % "foreign")
    own("garbage", "with open(os.path.join(to, usual), 'wb') as f:\n    f.write(b'PK' * 5000)\n"
                   "return usual")
    own("climbing", "return '../../../etc/passwd'")
    own("fat", "named(to, usual)\nwith zipfile.ZipFile(os.path.join(to, usual), 'a') as z:\n"
               "    z.writestr('fat', os.urandom(3 << 20))\nreturn usual")
    with service(ctx, packages=BUILD + "max_bytes = 2M\n") as s, \
            ctx.client(path=s.socket) as client:
        for name, word in (("liar", "another package: honest-1.0"), ("older", "older-0.9"),
                           ("masked", "unexpected file name"),
                           ("many", "2 files in place of one wheel"), ("linked", "could not be"),
                           ("foreign", "not for this interpreter"), ("garbage", "could not be"),
                           ("climbing", "could not be built"), ("fat", "larger than max_bytes")):
            refused(install(client, name, timeout=ctx.seconds(60)), word)
        equal(environments(s.store), [])


@test
def archives_that_reach_out(ctx):
    up = tarfile.TarInfo("climber-1.0/../../evil")
    link = tarfile.TarInfo("linker-1.0/way")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc"
    through = tarfile.TarInfo("linker-1.0/way/evil")
    device = tarfile.TarInfo("device-1.0/null")
    device.type, device.devmajor, device.devminor = tarfile.CHRTYPE, 1, 3
    for name, members in (("climber", [up]), ("linker", [link, through]), ("device", [device])):
        plain(name, members=members)
    with service(ctx) as s, ctx.client(path=s.socket) as client:
        refused(install(client, "climber"), "outside target directory")
        # What is in the jail is its own.
        for name in ("linker", "device"):
            answer = install(client, name)
            assert answer["status"] in ("ok", "error"), answer
        assert not os.path.exists("/etc/evil")


@test
def another_archive_than_the_index_says(ctx):
    plain("swapped", served=sdist("swapped", "1.0", {})[1])
    own("unsaid", hashed=False)
    with service(ctx) as s, ctx.client(path=s.socket) as client:
        refused(install(client, "swapped"), "another file than the index says")
        refused(install(client, "unsaid"), "does not say the SHA-256 of unsaid-1.0")
        equal(built(s), [])
    with service(ctx, packages=BUILD + "require_hashes = no\n") as s, \
            ctx.client(path=s.socket) as client:
        equal(names(install(client, "unsaid")), ["unsaid 1.0"])


def running(s, argument):
    """A process of the service that was started with this argument."""
    for child in descendants(s.pid):
        with contextlib.suppress(OSError), open("/proc/%d/cmdline" % child[0], "rb") as f:
            if argument.encode() in f.read().split(b"\0"):
                return child
    return None


@test(private=True)
def what_a_build_leaves_running_is_ended(ctx):
    plain("haunted", before="import subprocess\nsubprocess.Popen(['sleep', '98765'], "
                            "start_new_session=True, stdin=-3, stdout=-3, stderr=-3)\n")
    plain("held", before="import subprocess, signal\nsubprocess.Popen(['sleep', '98766'])\n"
                         "signal.pause()\n")
    with service(ctx) as s, ctx.client(path=s.socket) as client:
        equal(install(client, "haunted")["status"], "ok")
        until("it is gone", lambda: not running(s, "98765"))
        id = client.request("tools/call", {"name": "install_package",
                                           "arguments": {"packages": ["held"]}})
        held = until("it is built", lambda: running(s, "98766"))
        client.cancel(id)
        equal(wait_gone([held], ctx.seconds(60)), [])
        equal(client.run("print(1)").stdout, "1\n")


@test(private=True)
def a_service_that_is_killed_meanwhile_leaves_nothing(ctx):
    plain("lasting", before="import subprocess, signal\nsubprocess.Popen(['sleep', '98767'])\n"
                            "signal.pause()\n")
    with new_store() as store:
        s = Supervisor(ctx.options.build, config(index.url, store, OPEN, BUILD))
        try:
            s.start()
            with ctx.client(path=s.socket) as client:
                client.request("tools/call", {"name": "install_package",
                                              "arguments": {"packages": ["lasting"]}})
                until("it is built", lambda: running(s, "98767"))
                all_of_it = descendants(s.pid)
                with contextlib.suppress(AssertionError):
                    s.stop(signal.SIGKILL)
                equal(wait_gone(all_of_it, ctx.seconds(10)), [])
            equal((leftovers(store), environments(store)), ([], []))
        finally:
            s.remove()


if not os.path.exists(NGINX):
    print("SKIPPED all: no nginx here\n0 passed, 0 failed, 1 skipped")
    sys.exit(1 if os.environ.get("CI") == "true" else 0)
with Index() as index:
    main(__doc__, modules=FEW_MODULES)
