# SPDX-License-Identifier: Apache-2.0
"""Packages as tests see them: a store that a service keeps, what is in it, and calls of
install_package."""

import base64
import contextlib
import csv
import hashlib
import itertools
import json
import os
import re
import shutil
import tempfile
import urllib.error
import urllib.request

from harness import equal
from package_index import digest
from supervisor import descendants
from waits import IN_CREATE, IN_MOVED_TO, until
from watch import IN_ACCESS, IN_OPEN, Watch

NOTHING = frozenset()
marks = itertools.count()
OPEN = "[policy]\ninstall_package = allow\n"


def config(url, store, more=OPEN, packages=""):
    return "[packages]\nindex = %s\nstore = %s\n%s%s" % (url, store, packages, more)


@contextlib.contextmanager
def new_store():
    """A directory in which the service's user may make a store."""
    directory = tempfile.mkdtemp(prefix="packages-")
    os.chmod(directory, 0o755)
    try:
        yield os.path.join(directory, "store")
    finally:
        shutil.rmtree(directory)


def install(client, *packages, timeout=None, **arguments):
    """timeout: that of the client, unless a test gives another one."""
    return client.ask("tools/call", {"name": "install_package", "arguments": {
        "packages": list(packages), **arguments}}, timeout)["structuredContent"]


def names(answer):
    return ["%(name)s %(version)s" % p for p in answer["packages"]]


def plain(answer, name, like):
    """An answer about a package as one about another that is like it would be."""
    text = json.dumps(answer, sort_keys=True).replace(name, like)
    text = re.sub(r"sha256:[0-9a-f]{64}", "HASH", text)
    text = re.sub(r"\bj-[a-z0-9]{10}\b", "JOB", text)
    text = re.sub(r"\ba-[0-9a-z]{10}\b", "ID", text)
    return re.sub(r'("name": "%s".*?"size": )\d+' % like, r"\1N", text)


def environments(store):
    return [n for n in os.listdir(store) if len(n) == 64]


def watch_store(store):
    """Whatever is opened or read of what is in the store now."""
    watch = Watch()
    for at, _, files in list(os.walk(store)):
        watch.add(at, at, IN_ACCESS | IN_OPEN | IN_CREATE | IN_MOVED_TO)
        for name in files:
            watch.add(os.path.join(at, name), os.path.join(at, name), IN_ACCESS | IN_OPEN)
    return watch


def verify_files(base):
    """The files of an environment are those of its list, byte for byte, and no others."""
    listed = {}
    with open(os.path.join(base, "files")) as f:
        for line in f:
            sha, path = line.rstrip("\n").split("  ", 1)
            listed[path] = sha
    there = {os.path.relpath(os.path.join(directory, name), base)
             for directory, _, names in os.walk(os.path.join(base, "tree")) for name in names}
    equal(there, set(listed), "files of " + base)
    for path, sha in listed.items():
        with open(os.path.join(base, path), "rb") as f:
            equal(digest(f.read()), sha, path)


def verify(store, known=NOTHING):
    """Everything in the store is whole: each environment has the files that it was made of, and
    each file that a package's RECORD tells of is as that says. known: environments that were
    looked at before, a set that gets the others. Returns the number of environments."""
    found = environments(store) if os.path.isdir(store) else []
    for name in set(found) - known:
        base = os.path.join(store, name)
        with open(os.path.join(base, "manifest")) as f:
            manifest = json.load(f)
        verify_files(base)
        infos = [n for n in os.listdir(os.path.join(base, "tree")) if n.endswith(".dist-info")]
        equal(len(infos), len(manifest["packages"]), "packages of " + name)
        for info in infos:
            with open(os.path.join(base, "tree", info, "RECORD"), newline="") as f:
                rows = list(csv.reader(f))
            for path, sha, _ in rows:
                if not sha:
                    continue
                with open(os.path.join(base, "tree", path), "rb") as f:
                    sum_ = hashlib.sha256(f.read()).digest()
                equal("sha256=" + base64.urlsafe_b64encode(sum_).rstrip(b"=").decode(), sha,
                      path)
    if known is not NOTHING:
        known |= set(found)
    return len(found)


def leftovers(store):
    return [n for n in os.listdir(store) if n.startswith(".")]


def asked(index):
    """Requests at an index. nginx does one thing after the other, and logs it when it is done, so
    it has logged what was asked until now when it has logged one more."""
    mark = "/mark-%d-%d" % (os.getpid(), next(marks))
    with contextlib.suppress(urllib.error.HTTPError):
        urllib.request.urlopen(index.host + mark, timeout=30).close()
    until("the index logs a request", lambda: any(mark in r for r in index.requests()))
    return index.requests()


def asked_since(index, since):
    """Those after the first ones."""
    return [r for r in asked(index)[since:] if "/mark-" not in r]


def refused(answer, *words, status="error"):
    equal(answer["status"], status, answer)
    for word in words:
        assert word in answer["message"], "%r is not in %r" % (word, answer["message"])
    assert len(answer["message"]) < 3500


def keeper_of(pid):
    for child, start in descendants(pid):
        with contextlib.suppress(OSError), open("/proc/%d/comm" % child) as f:
            if f.read().strip() == "python-keeper":
                return child, start
    return None
