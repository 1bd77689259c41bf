# SPDX-License-Identifier: Apache-2.0
"""Finds modules in what was installed for the script's tenant before: a finder behind all others,
which asks the supervisor for a set of packages that has the module.

Only the script's own code asks, with its cells and the modules that it has written. An import in
installed code is often a try, for what would be of use if it were there; it must not choose the set
that a script runs with.
"""

import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES, PathFinder

# Sets of packages are made for such interpreters.
PLATFORM = "%s-%d.%d-%s-%s" % (sys.implementation.name, *sys.version_info[:2], sys.platform,
                               os.uname().machine)
EXTENSION = EXTENSION_SUFFIXES[0]

MODULE_NAME_MAX = 64  # of proto/message.h
INSTALLED = (ENVIRONMENT + "/", "<frozen ", *(path + "/" for path in sys.path if path[:1] == "/"))
IMPORTING = ("<frozen importlib", "<mcp-python>", os.path.dirname(os.__file__) + "/importlib/")


def imported_by_script():
    """Is the code that imports now the script's own?"""
    frame = sys._getframe()
    while frame is not None:
        file = frame.f_code.co_filename
        if file == FILE or not file.startswith(IMPORTING):  # FILE: a script has the name that it likes
            return file == FILE or not file.startswith(INSTALLED)
        frame = frame.f_back
    return False


class InstalledFinder:
    """On sys.meta_path. Each name is asked for once in a run."""

    def __init__(self):
        self.asked = set()

    def find_spec(self, name, path=None, target=None):
        if (path is not None or name in self.asked or not may_ask_module()
                or not name.isascii() or not name.isidentifier() or len(name) > MODULE_NAME_MAX
                or not imported_by_script()):
            return None
        self.asked.add(name)
        if not ask_module(name):
            return None
        renew_packages()
        return PathFinder.find_spec(name)


finder = InstalledFinder()


def find_installed():
    """In a script's or a cell's process, before it runs."""
    finder.asked.clear()
    finders = sys.meta_path
    if type(finders) is list and not any(one is finder for one in finders):
        finders.append(finder)
