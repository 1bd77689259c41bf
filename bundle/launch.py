# SPDX-License-Identifier: Apache-2.0
"""Replaces this process by a program of the bundle beside this file, so that its signals and its
exit status are the program's own."""

import os
import signal
import sys


def start(name):
    # Python ignores them, which the program and its workers would inherit.
    for one in signal.SIGPIPE, signal.SIGXFSZ:
        signal.signal(one, signal.SIG_DFL)
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libexec", name)
    try:
        os.execv(program, [name] + sys.argv[1:])
    except OSError as e:
        sys.exit("%s: %s: %s; glibc 2.34 or later is needed" % (name, program, e.strerror))


def service():
    start("mcp-pythond")


def client():
    start("mcp-python")
