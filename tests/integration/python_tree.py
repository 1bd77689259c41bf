# SPDX-License-Identifier: Apache-2.0
"""A copy of the usual Python in a directory of its own."""

import contextlib
import os
import shutil
import subprocess
import tempfile

from harness import Skip


def usual(ctx):
    """The version and the program that the worker was built for."""
    said = subprocess.run([os.path.join(ctx.options.build, "mcp-python-worker"), "--python"], text=True,
                          stdout=subprocess.PIPE, check=True).stdout
    version, program = said.strip().split(", ")
    return version, program


@contextlib.contextmanager
def own_tree(ctx):
    """The directory, which jails may show, and the version."""
    version, program = usual(ctx)
    library = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(program))), "lib/python" + version)
    for place in ("/opt", ctx.options.build, os.path.expanduser("~")):
        if os.access(place, os.W_OK) and not place.startswith(("/tmp", "/run", "/var/tmp")):
            break
    else:
        raise Skip("no writable directory is one that jails may show")
    with tempfile.TemporaryDirectory(dir=place, prefix="mcp-python-tree-") as tree:
        os.chmod(tree, 0o755)
        os.makedirs(os.path.join(tree, "bin"))
        shutil.copy(program, os.path.join(tree, "bin/python" + version))
        os.symlink("python" + version, os.path.join(tree, "bin/python3"))
        shutil.copytree(library, os.path.join(tree, "lib/python" + version), symlinks=True,
                        ignore=shutil.ignore_patterns("test", "tests", "idlelib", "__pycache__", "config-*"))
        yield tree, version
