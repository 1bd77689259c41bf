# SPDX-License-Identifier: Apache-2.0
"""Options of the programs, with the exit codes that mcp-python has."""

import argparse

EX_USAGE, EX_UNAVAILABLE, EX_NOPERM = 64, 69, 77	# as in sysexits.h


class Arguments(argparse.ArgumentParser):
    def error(self, message):
        self.exit(EX_USAGE, "%s: %s; see %s --help\n" % (self.prog, message, self.prog))
