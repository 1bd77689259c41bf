# SPDX-License-Identifier: Apache-2.0
"""Describes the Python that runs this file, for the build of its worker, on one line:

    PREFIX VERSION INCLUDE PROGRAM

PREFIX is the directory of the Python; for a virtual environment, that of the Python behind it.
Used by configure and by standalone.mk.
"""
import os
import sys
import sysconfig


def is_workers(prefix):
    """Is it a path at which workers have a directory of their own?"""
    return prefix == "/" or any(
        prefix == place or prefix.startswith(place + "/")
        for place in ("/proc", "/sys", "/dev", "/run", "/tmp", "/var/tmp", "/var/run", "/workspace",
                      "/home/python"))


prefix, version = sys.base_exec_prefix, "%d.%d" % sys.version_info[:2]
include = sysconfig.get_path("include", vars={"installed_base": sys.base_prefix})
program = "%s/bin/python%s" % (prefix, version)
if sys.implementation.name != "cpython" or sys.version_info < (3, 11):
    sys.exit(sys.executable + " is not CPython 3.11 or later")
if sysconfig.get_config_var("Py_GIL_DISABLED"):
    sys.exit(sys.executable + " has no global lock, which the worker needs")
if is_workers(prefix):
    sys.exit("%s lies in %s, a place that workers have for themselves" % (sys.executable, prefix))
if not os.path.exists(include + "/Python.h"):
    sys.exit("%s has no headers: %s/Python.h is missing" % (sys.executable, include))
if not os.access(program, os.X_OK):
    sys.exit("%s is missing" % program)
if len((prefix + include).split()) != 1:
    sys.exit("there are blanks in %s or %s" % (prefix, include))
print(prefix, version, include, program)
