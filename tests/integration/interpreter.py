# SPDX-License-Identifier: Apache-2.0
"""The Python that a run of the suites is about: Debian's own, or one that MCP_TEST_INTERPRETER names.

That is a file as `mcp-python interpreter add` writes it. Private services have its interpreter in the
profile "basic" then, and what is compared with the world outside is run by the same program."""

import functools
import os
import re
import subprocess
import tempfile

# In a mount namespace of its own, so that nothing is left in the root.
ENTER = """set -e
mount --rbind /dev "$1/dev"
mount -t proc proc "$1/proc"
root=$1 user=$2 place=$3
shift 3
exec /usr/sbin/chroot --userspec="$user:$user" --groups= "$root" env -C "$place" "$@" """


class Interpreter:
    def __init__(self, program, root="", text="", name=""):
        self.program, self.root, self.text, self.name = program, root, text, name

    def ask(self, code):
        """What the program prints, outside of any jail."""
        enter = ["/usr/sbin/chroot", self.root] if self.root else []
        return subprocess.run([*enter, self.program, "-I", "-c", code], check=True, stdout=subprocess.PIPE,
                              text=True).stdout.strip()

    @functools.cached_property
    def version(self):
        """(3, 13, 5)"""
        return tuple(map(int, self.ask("import sys\nprint(*sys.version_info[:3])").split()))

    @property
    def line(self):
        """Of a further profile, whose scripts are to run in it."""
        return "interpreter = %s" % self.name if self.name else ""

    @property
    def profiles(self):
        """Those that its configuration adds."""
        return [name for name in re.findall(r"^\[profile (.*)\]$", self.text, re.M) if name != "basic"]

    @property
    def is_packaged(self):
        """It is that of a distribution, where that has put it."""
        return self.program.startswith("/usr/bin/")

    @property
    def short(self):
        """As names of files have it: 313"""
        return "%d%d" % self.version[:2]

    @property
    def include_options(self):
        """Of a compiler of this machine, whose own system's headers come first."""
        above = self.root + os.path.dirname(os.path.dirname(self.program)) + "/include"
        return ["-I%s/python%d.%d" % (above, *self.version[:2]), "-idirafter", above]

    def directory(self):
        """A directory that the program can be given a name in: see seen()."""
        return tempfile.TemporaryDirectory(dir=self.root + "/var/tmp" if self.root else None)

    def seen(self, path):
        return path[len(self.root):] if self.root else path

    def command(self, place, user, *words):
        """Of the program with these words, in a directory, and as a user if it has a root."""
        if not self.root:
            return [self.program, *words]
        return ["unshare", "--mount", "--propagation", "private", "sh", "-c", ENTER, "sh", self.root,
                str(user), self.seen(place), self.program, *words]

    def configure(self, directory):
        """Writes to conf.d in the directory of a configuration, what makes scripts run in it."""
        if self.text:
            os.makedirs(directory + "/conf.d", exist_ok=True)
            with open(directory + "/conf.d/interpreter.conf", "w", encoding="utf-8") as f:
                f.write(self.text)


def find():
    path = os.environ.get("MCP_TEST_INTERPRETER")
    if not path:
        return Interpreter("/usr/bin/python3")
    with open(path, encoding="utf-8") as f:
        text = f.read()
    name, worker = re.search(r"^\[interpreter (.*)\]$", text, re.M)[1], re.search(r"^worker = (.*)$", text, re.M)[1]
    root = re.search(r"^root = (.*)$", text, re.M)
    said = subprocess.run([worker, "--python"], check=True, stdout=subprocess.PIPE, text=True).stdout
    return Interpreter(said.strip().partition(", ")[2], root[1] if root else "",
                       text + "[profile basic]\ninterpreter = %s\n" % name, name)


under_test = find()
