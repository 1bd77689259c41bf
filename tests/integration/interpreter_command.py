#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""mcp-python interpreter: what it takes a Python from, and several of them in one service.
tests/check-pythons runs it with these variables: MCP_WORKER_SOURCES has the sources of workers,
MCP_PYTHON_ROOT is another system's root, MCP_PYTHON_IMAGE an image that podman has saved.

A suite of tests/integration/run."""

import contextlib
import hashlib
import os
import re
import subprocess
import tarfile
import tempfile

from harness import Skip, equal, main, test, tests
from mcpclient import Client
from package_index import NGINX, Index
from package_store import config as packages_config, install, new_store
from python_tree import own_tree
from pythons import MODULES, others, service

tests.clear()	# those of pythons.py

@contextlib.contextmanager
def configuration(place=None):
    """The name of a file, beside which the command writes. Without a place, workers can be built."""
    if not place and not os.environ.get("MCP_WORKER_SOURCES"):
        raise Skip("tests/check-pythons names the sources of workers")
    with tempfile.TemporaryDirectory(dir=place or "/opt") as d:	# in /tmp no Python may be
        os.chmod(d, 0o755)
        with open(os.path.join(d, "mcp.conf"), "w", encoding="utf-8") as f:
            f.write("[profile basic]\n")
        yield f.name


def command(ctx, config, *words, stdin=subprocess.DEVNULL, **environment):
    ended = subprocess.run([os.path.join(ctx.options.build, "mcp-python"), "interpreter",
                            "--config", config, *words], text=True, stdin=stdin,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           env={**os.environ, **environment}, timeout=ctx.seconds(300))
    return ended.returncode, ended.stdout


def listed(ctx, config):
    """The words of each line of list, without those of the usual interpreter, which is always there."""
    status, said = command(ctx, config, "list")
    lines = [line.split() for line in said.splitlines()]
    assert status == 0 and len(lines[0]) == 2 and lines[0][0] == "usual", said
    assert re.fullmatch(r"3\.\d+", lines[0][1]), said
    return lines[1:]


def written(config):
    """What it wrote, as one text."""
    directory = os.path.join(os.path.dirname(config), "conf.d")
    names = sorted(os.listdir(directory)) if os.path.isdir(directory) else []
    texts = []
    for name in names:
        with open(os.path.join(directory, name), encoding="utf-8") as f:
            texts.append(f.read())
    return "".join(texts)


@test(private=True)
def the_command_adds_and_removes(ctx):
    name, minor = others(ctx)[0]
    with service(ctx) as (client, _), configuration() as config:
        prefix = client.run("import sys\nsys.prefix", profile=name).result["json"]
        program = "%s/bin/python3.%d" % (prefix, minor)
        status, said = command(ctx, config, "add", "--build", program, "--name", "mine")
        equal(status, 0, said)
        assert "mine is Python 3.%d, %s" % (minor, program) in said, said
        equal(listed(ctx, config), [["mine", "3.%d," % minor, program]])
        equal(command(ctx, config, "default", "mine")[0], 0)
        with ctx.private("[profile basic]\n" + written(config)) as s, Client.connect(
                s.socket, "2025-11-25", timeout=ctx.seconds(60)) as other:
            equal(other.run("import sys\nsys.prefix").result["json"], prefix, "the default")
        for words in (["add", program, "--name", "mine"], ["add", "/usr/bin/true"], ["default", "none"],
                      ["remove", "none"], ["add", program, "--name", "../x"], ["what"]):
            status, said = command(ctx, config, *words)
            assert status and said, (words, status, said)
        blanks = os.path.dirname(config) + "/a b"
        os.symlink(prefix, blanks)
        status, said = command(ctx, config, "add", "--build", "%s/bin/python3.%d" % (blanks, minor), "--name", "blanks")
        assert status == 1 and "a path with blanks" in said, (status, said)
        status, said = command(ctx, config, "add", "--build", program, "--name", "none", MCP_WORKER_SOURCES="/none")
        assert status == 1 and "installed with the service" in said, (status, said)
        equal(command(ctx, config, "remove", "mine")[0], 0)
        equal((written(config), os.listdir(os.path.dirname(config) + "/workers")), ("", []))


@test(private=True)
def a_worker_that_is_there_needs_no_compiler(ctx):
    with own_tree(ctx) as (tree, version), configuration(os.path.dirname(tree)) as config:
        program = "%s/bin/python%s" % (tree, version)
        blanks = "%s/a b" % os.path.dirname(config)
        os.symlink(tree, blanks)
        for given_as in (program, blanks + "/bin/python3"):
            status, said = command(ctx, config, "add", given_as, "--name", "mine", MCP_WORKER_SOURCES="/none")
            equal(status, 0, said)
            assert "mine is Python %s, %s. " % (version, program) in said, said
            with served(ctx, config) as client:
                equal(client.run("import sys\nsys.prefix", profile="mine").result["json"], tree)
            equal(listed(ctx, config), [["mine", version + ",", program]])
            equal(command(ctx, config, "remove", "mine")[0], 0)
            equal(written(config), "")
        status, said = command(ctx, config, "add", program, "--build", "--name", "mine", MCP_WORKER_SOURCES="/none")
        assert status == 1 and "the worker's sources are missing" in said, (status, said)


@test(private=True)
def what_a_program_says_of_itself_is_one_path(ctx):
    with own_tree(ctx) as (tree, version), configuration(os.path.dirname(tree)) as config:
        program = os.path.join(os.path.dirname(config), "python3")
        with open(program, "w", encoding="utf-8") as f:
            f.write("#!/bin/sh\ncase $* in *realpath*) printf '%s %%s\\n[service]\\n' %s/bin/python3 ;; *) echo 3%s ;; esac\n"
                    % (version, tree, version.partition(".")[2]))
        os.chmod(program, 0o755)
        status, said = command(ctx, config, "add", program, "--name", "mine", MCP_WORKER_SOURCES="/none")
        assert status == 1 and "the worker's sources are missing" in said, (status, said)
        equal(written(config), "")


@contextlib.contextmanager
def served(ctx, config, more=""):
    """A client of a service with what the command has written."""
    with ctx.private("[profile basic]\n" + written(config) + more) as s, Client.connect(
            s.socket, "2025-11-25", timeout=ctx.seconds(60)) as client:
        yield client


def given(name, what):
    path = os.environ.get(name)
    if not path:
        raise Skip("%s names no %s: tests/check-pythons makes one" % (name, what))
    return path


def look_around(client, profile, version, hidden):
    """The tree of another system, and nothing of this one. version: that of the system."""
    o = client.run("""import os, platform, subprocess, sys
[list(sys.version_info[:2]), platform.freedesktop_os_release()["PRETTY_NAME"],
 subprocess.run(["python3", "-c", "import sys; print(sys.version)"], capture_output=True, text=True).stdout,
 [p for p in ("/srv", "/root", "/boot", "/var/lib", "/media", "/etc/apt", "/etc/shadow", %r)
  if os.path.exists(p)], os.path.exists("/usr/bin/dpkg")]""" % hidden, profile=profile)
    equal(o.status, "ok", o.text[:500])
    python, release, started, seen, whole = o.result["json"]
    equal((release, seen, whole), (version, [], True))
    assert started.startswith("%d.%d." % tuple(python)), started
    o = client.run(MODULES, profile=profile)
    equal((o.status, o.stdout), ("ok", "[1, 2]\n(1,) e3b0\n"), o.text[:500])
    for path in ("/usr/bin/mine", "/etc/mine", "/mine"):
        o = client.run("open(%r, 'w')" % path, profile=profile)
        equal(o.error["type"], "OSError", path)
    equal(client.run("while True: pass", profile=profile, timeout_seconds=1).status, "timeout")
    first = client.ask("tools/call", {"name": "run_repl", "arguments": {
        "code": "x = 20", "profile": profile}})["structuredContent"]
    second = client.ask("tools/call", {"name": "run_repl", "arguments": {
        "code": "x + 1", "session": first["session"]}})["structuredContent"]
    equal(second["result"]["json"], 21)
    return tuple(python)


def release_of(root):
    with open(root + "/usr/lib/os-release", encoding="utf-8") as f:
        return re.search('PRETTY_NAME="([^"]*)"', f.read())[1]


@test(private=True)
def a_root_of_its_own(ctx):
    root = given("MCP_PYTHON_ROOT", "root")
    with configuration() as config:
        status, said = command(ctx, config, "add", "--root", root, "--name", "other")
        equal(status, 0, said)
        with served(ctx, config) as client:
            python = look_around(client, "other", release_of(root), root)
            assert "other is Python %d.%d," % python in said, said
            equal(client.run("import sys\nsys.version_info[:2] == %r" % (python,),
                             python_version="%d.%d" % python).result["json"], True)


PROBE = """#!/bin/sh
terminals=$(for fd in 0 2; do [ -t $fd ] && echo $fd; done)
{
	echo "terminals: $terminals"
	id -u
	grep CapEff /proc/self/status
	grep NoNewPrivs /proc/self/status
	echo $(ls /dev)
	for pid in 1 $PPID; do : >/proc/$pid/root%s && echo "written by $pid"; done
} >%s/report 2>/dev/null
"""


@test(private=True, root=True)
def programs_of_a_root_are_strangers(ctx):
    root = given("MCP_PYTHON_ROOT", "root")
    with configuration() as config, tempfile.TemporaryDirectory(dir=root + "/tmp") as d:
        inside = "/tmp/" + os.path.basename(d)
        os.chmod(d, 0o777)
        with open(d + "/python3", "w", encoding="utf-8") as f:
            f.write(PROBE % (os.path.dirname(config) + "/written", inside))
        os.chmod(d + "/python3", 0o755)
        keyboard, terminal = os.openpty()
        with open(keyboard, "rb"), open(terminal, "rb") as stdin:
            status, said = command(ctx, config, "add", "--root", root, "--name", "other",
                                   inside + "/python3", stdin=stdin)
        assert status and "is no Python 3" in said, said
        with open(d + "/report", encoding="utf-8") as f:
            equal(f.read().split("\n"), ["terminals: ", "65534", "CapEff:\t0000000000000000", "NoNewPrivs:\t1",
                                         "fd full null random urandom zero", ""])
        assert not os.path.exists(os.path.dirname(config) + "/written")


@test(private=True)
def an_image_that_podman_saved(ctx):
    image = given("MCP_PYTHON_IMAGE", "image")
    with configuration() as config:
        status, said = command(ctx, config, "add", "--image", image, "--name", "image")
        equal(status, 0, said)
        root = os.path.dirname(config) + "/interpreters/image"
        equal(os.listdir(os.path.dirname(root)), ["image"])
        with served(ctx, config) as client:
            python = look_around(client, "image", release_of(root), root)
            assert "image is Python %d.%d," % python in said, said
            # What tests/check-pythons has put into layers, and taken out of one by another.
            o = client.run("import os\n{p: os.path.exists('/usr/local/layers/' + p) for p in %r}" % (
                ["first", "gone", "whole/first", "whole/second"],), profile="image")
            equal(o.result["json"], {"first": True, "gone": False, "whole/first": False, "whole/second": True})
        equal(command(ctx, config, "remove", "image")[0], 0)
        equal((written(config), os.listdir(os.path.dirname(root))), ("", []))
        status, said = command(ctx, config, "add", "--image", config)
        assert status and "not a valid archive" in said, said
        equal(os.listdir(os.path.dirname(root)), [])


# ---- trees ----

def tree_of(ctx):
    """The directory of a Python beside the service's own, and the second number of its version."""
    with service(ctx) as (client, found):
        name, minor = found[0]
        return client.run("import sys\nsys.prefix", profile=name).result["json"], minor


def equal_prefix(ctx, config, profile, prefix):
    with served(ctx, config) as client:
        o = client.run("import sys\n[sys.prefix, sys.executable]", profile=profile)
        equal(o.status, "ok", o.text[:500])
        equal(o.result["json"][0], prefix)
        assert o.result["json"][1].startswith(prefix + "/bin/"), o.result["json"]
        o = client.run(MODULES, profile=profile)
        equal((o.status, o.stdout), ("ok", "[1, 2]\n(1,) e3b0\n"), o.text[:500])


@test(private=True)
def an_archive_with_its_hash(ctx):
    """As python-build-standalone lays them out: all of it below python/, or python/install/."""
    tree, minor = tree_of(ctx)
    with configuration() as config:
        home = os.path.dirname(config)
        archive = home + "/python.tar.gz"
        for below, name in (("python", "short"), ("python/install", "full")):
            with tarfile.open(archive, "w:gz", compresslevel=1) as tar:
                tar.add(tree, below)
            with open(archive, "rb") as f:
                sha256 = hashlib.sha256(f.read()).hexdigest()
            for wrong, why in (("0" * 64, "its SHA-256 is " + sha256), ("12", "needs --sha256"), (sha256[:-1], "needs --sha256")):
                status, said = command(ctx, config, "add", "--archive", archive, "--sha256", wrong)
                assert status and why in said, said
                equal((written(config) if name == "short" else "", os.path.exists(home + "/interpreters/py3%d" % minor)), ("", False))
            status, said = command(ctx, config, "add", "--archive", archive, "--sha256", sha256, "--name", name)
            equal(status, 0, said)
            assert "%s is Python 3.%d, %s/interpreters/%s/bin/" % (name, minor, home, name) in said, said
            equal_prefix(ctx, config, name, "%s/interpreters/%s" % (home, name))
        equal(sorted(os.listdir(home + "/interpreters")), ["full", "short"])


# It takes the words that uv documents, and no others. uv itself cannot be installed from Debian.
UV = r"""#!/bin/sh
set -e
[ "$1" = python ] || exit 2
case $2 in
install)
	[ $# = 3 ] && [ "$UV_PYTHON_INSTALL_BIN" = 0 ] && [ "$UV_PYTHON_PREFERENCE" = only-managed ] || exit 2
	[ "$3" = "$UV_HAS" ] || { echo "error: No download found for request: cpython-$3" >&2; exit 1; }
	cp -a "$UV_TREE" "$UV_PYTHON_INSTALL_DIR/cpython-$3-linux-x86_64-gnu"
	echo "Installed Python $3" >&2
	;;
find)
	[ $# = 4 ] && [ "$3" = --no-project ] || exit 2
	set -- "$UV_PYTHON_INSTALL_DIR/cpython-$4-linux-x86_64-gnu"/bin/python3.??
	echo "$1"
	;;
*) exit 2 ;;
esac
"""


@test(private=True)
def a_version_that_uv_installs(ctx):
    tree, minor = tree_of(ctx)
    version = "3.%d" % minor
    with configuration() as config:
        home = os.path.dirname(config)
        os.mkdir(home + "/bin")
        with open(home + "/bin/uv", "w", encoding="utf-8") as f:
            f.write(UV)
        os.chmod(home + "/bin/uv", 0o755)
        more = {"PATH": home + "/bin:" + os.environ["PATH"], "UV_TREE": tree, "UV_HAS": version}
        status, said = command(ctx, config, "add", "3.99", **more)
        assert status and "uv has not installed Python 3.99" in said and "No download" in said, said
        equal((written(config), os.listdir(home + "/interpreters")), ("", []))
        status, said = command(ctx, config, "add", version, **more)
        equal(status, 0, said)
        prefix = "%s/interpreters/py3%d/cpython-%s-linux-x86_64-gnu" % (home, minor, version)
        assert "py3%d is Python %s, %s/bin/" % (minor, version, prefix) in said, said
        equal_prefix(ctx, config, "py3%d" % minor, prefix)
        equal(command(ctx, config, "remove", "py3%d" % minor)[0], 0)
        equal(os.listdir(home + "/interpreters"), [])


@test(private=True)
def a_version_that_nobody_has(ctx):
    with configuration() as config:
        home = os.path.dirname(config) + "/home"
        os.mkdir(home, 0o700)
        os.symlink("/usr/bin/python3", home + "/python3")
        status, said = command(ctx, config, "add", home + "/python3")
        assert status and "the service's user cannot read" in said and written(config) == "", said
        status, said = command(ctx, config, "add", "3.99", PATH="/usr/bin:/bin")
        assert status and "there is no uv, and no python3.99" in said and "--archive" in said, said
        for words in ([], ["--image", "x", "--root", "/"], ["--sha256", "0" * 64, "/usr/bin/python3"],
                      ["--archive", "x", "--sha256", "0" * 64, "/usr/bin/python3"], ["--image", "/none"],
                      ["--archive", "/none", "--sha256", "0" * 64]):
            status, said = command(ctx, config, "add", *words)
            assert status and said, (words, said)
            equal(written(config), "", words)


# ---- together ----

WHICH = "import sys\nlist(sys.version_info[:2])"
BLOCK = "# /// script\n# requires-python = '%s'\n# ///\n" + WHICH
OWN = [3, 11]	# of Debian 12, on which this runs


PEERS = "[mcp]\ntoolsets = exec-sandbox\n"
SAYS = "import sys\nprint('it is %d.%d' % sys.version_info[:2])"


def text_of(client, tool, **arguments):
    return client.ask("tools/call", {"name": tool, "arguments": arguments})["content"][0]["text"]


def the_peers_tools(ctx, config, versions):
    """execute_python and its check_environment: by what a script requires, and by the tool set's version."""
    with served(ctx, config, PEERS) as client:
        for version in versions.values():
            text = "%d.%d" % tuple(version)
            said = text_of(client, "execute_python", script=BLOCK[:BLOCK.index(WHICH)] % ("==%s.*" % text) + SAYS)
            assert "it is " + text in said, said
        said = text_of(client, "execute_python", script=BLOCK % ">=3.99")
        assert "3.99" in said and "it is" not in said, said
    for version in versions.values():
        text = "%d.%d" % tuple(version)
        with served(ctx, config, PEERS + "[exec-sandbox]\npython_version = %s\n" % text) as client:
            said = text_of(client, "execute_python", script=SAYS)
            assert "it is " + text in said, said
            said = text_of(client, "check_environment")
            assert text + "." in said, said


@test(private=True)
def three_versions_on_one_machine(ctx):
    """This system's, one in a root of another release, and one of an image."""
    root, image = given("MCP_PYTHON_ROOT", "root"), given("MCP_PYTHON_IMAGE", "image")
    with configuration() as config:
        versions = {"basic": OWN}
        for name, words in (("rooted", ["--root", root]), ("imaged", ["--image", image])):
            status, said = command(ctx, config, "add", *words, "--name", name)
            equal(status, 0, said)
            versions[name] = list(map(int, re.search(r"is Python (3)\.(\d+),", said).groups()))
        equal(len(set(map(tuple, versions.values()))), 3, versions)
        with served(ctx, config) as client:
            for name, version in versions.items():
                text = "%d.%d" % tuple(version)
                equal(client.run(WHICH, profile=name).result["json"], version)
                equal(client.run(WHICH, python_version=text).result["json"], version)
                equal(client.run(BLOCK % ("==%s.*" % text)).result["json"], version)
                full = client.run("import platform\nplatform.python_version()", profile=name).result["json"]
                told = client.ask("tools/call", {"name": "check_environment", "arguments": {"profile": name}})
                equal(told["structuredContent"]["python_version"], full)
            newest = max(versions.values())
            equal(client.run(BLOCK % (">=3.%d" % newest[1])).result["json"], newest)
            equal(client.run(BLOCK % ">=3.11").result["json"], OWN, "the default, if it fits")
        the_peers_tools(ctx, config, versions)
        sets_for_each(ctx, config, versions)


def sets_for_each(ctx, config, versions):
    """One package with another wheel for each version: each profile gets its own, in a set of its own."""
    if not os.path.exists(NGINX):
        raise Skip("nginx is not installed", missing=True)
    with Index() as index, new_store() as store:
        for minor in (version[1] for version in versions.values()):
            index.add("tagged", "1.0", {"tagged.py": "MADE_FOR = %d\n" % minor}, tag="cp3%d-none-any" % minor)
        with served(ctx, config, packages_config(index.url, store)) as client:
            for profile, version in versions.items():
                answer = install(client, "tagged", profile=profile)
                equal(answer["status"], "ok", answer)
                o = client.run("import tagged\ntagged.MADE_FOR", profile=profile, dependencies=["tagged"])
                equal(o.result and o.result["json"], version[1], o.text[:500])
            for profile, version in versions.items():
                o = client.run("import tagged\ntagged.MADE_FOR", profile=profile)
                equal(o.result and o.result["json"], version[1], o.text[:500])
        equal(len([n for n in os.listdir(store) if re.fullmatch("[0-9a-f]{64}", n)]), 3, os.listdir(store))


main(__doc__)
