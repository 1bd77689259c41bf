# SPDX-License-Identifier: Apache-2.0
"""What a wrapper of the bundle holds: the programs, their libraries and data. Units, pages and
install.sh are left out: the wrapper's own installer knows nothing of them."""

import collections
import re
import sys
import tarfile

KEPT = re.compile(r"(lib|libexec)/|share/(licences|mcp-python-gateway|mcp-pythond)/|LICENSE$")
DESCRIPTION = "Runs Python for AI agents, each script in a jail of the Linux kernel"

# files: {path: (bytes, is it executable)}, sorted; epoch: the time of all of them
Bundle = collections.namedtuple("Bundle", "version machine epoch files")


def read(archive):
    """The Bundle in an archive of bundle/build."""
    files = {}
    with tarfile.open(archive) as tar:
        top = tar.next()
        named = re.fullmatch(r"mcp-pythond-([0-9][0-9a-z.]*)-linux-(x86_64|aarch64)", top.name)
        if not named:
            sys.exit("%s: no bundle: it begins with %s" % (archive, top.name))
        for one in tar:
            path = one.name[len(top.name) + 1:]
            if one.isfile() and KEPT.match(path):
                files[path] = (tar.extractfile(one).read(), bool(one.mode & 0o100))
    if "libexec/mcp-pythond" not in files:
        sys.exit("%s: libexec/mcp-pythond is missing" % archive)
    return Bundle(named[1], named[2], top.mtime, dict(sorted(files.items())))
