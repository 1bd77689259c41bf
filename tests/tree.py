# SPDX-License-Identifier: Apache-2.0
"""Walks the files of the source tree, for the checks of its rules."""

import os

# What autoreconf, npm and Python leave there.
MADE = {".git", "autom4te.cache", "build-aux", "node_modules", "__pycache__"}


def walk(top, left_out=()):
    """Yields (folder, its files' names). Build trees below top are left out, whatever their name:
    configure has left config.status there."""
    for folder, below, files in os.walk(top):
        below[:] = [name for name in below if name not in MADE and name not in left_out
                    and not os.path.exists(os.path.join(folder, name, "config.status"))]
        yield folder, files
