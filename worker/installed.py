# SPDX-License-Identifier: Apache-2.0
"""Finds modules in packages that were installed earlier for the script's tenant: the last finder,
which asks the supervisor for a set of packages that has the module.

Only imports of the script's own code ask: of the script, its cells and the modules that it has
written. Installed code often imports an optional module only to test whether it exists. Such a
test must not choose the set of packages that a script runs with.
"""

import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES, PathFinder

# The kind of interpreter that sets of packages are made for.
PLATFORM = "%s-%d.%d-%s-%s" % (sys.implementation.name, *sys.version_info[:2], sys.platform,
                               os.uname().machine)
EXTENSION = EXTENSION_SUFFIXES[0]

MODULE_NAME_MAX = 64  # as in proto/message.h
INSTALLED = (ENVIRONMENT + "/", "<frozen ", *(path + "/" for path in sys.path if path[:1] == "/"))
IMPORTING = ("<frozen importlib", "<mcp-python>", os.path.dirname(os.__file__) + "/importlib/")


def imported_by_script():
    """Does the import that is under way come from the script's own code?"""
    frame = sys._getframe()
    while frame is not None:
        file = frame.f_code.co_filename
        if file == FILE or not file.startswith(IMPORTING):  # a caller may set FILE to any name
            return file == FILE or not file.startswith(INSTALLED)
        frame = frame.f_back
    return False


class InstalledFinder:
    """A finder on sys.meta_path. It asks for each name once in a run."""

    def __init__(self):
        self.asked = set()

    def find_spec(self, name, path=None, target=None):
        if (path is not None or name in self.asked
                or not (Ready.finding or may_ask_module()) or not name.isascii() or not name.isidentifier()
                or len(name) > MODULE_NAME_MAX or not imported_by_script()):
            return None
        self.asked.add(name)
        if not (is_in_packages(name) if Ready.finding else ask_module(name)):
            return None
        renew_packages()
        return find_ready(name) or PathFinder.find_spec(name)


finder = InstalledFinder()


def find_installed():
    """Called in the process of a script or cell, before it runs."""
    finder.asked.clear()
    finders = sys.meta_path
    if type(finders) is list and not any(one is finder for one in finders):
        finders.append(finder)
