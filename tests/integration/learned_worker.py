# SPDX-License-Identifier: Apache-2.0
"""Workers in which imports are learned: the packages are imported, and hidden until the script
imports them. Suites of others' tests run there, too, and must end as elsewhere."""

import subprocess

from harness import Skip
from waits import until

# Without the names that would give the script a small worker (policy/learnable.c).
CHECK = """import sys
assert __name__ != "__main__" or type(vars(sys)["meta_" "path"][0]).find_spec.__globals__["Learned"].hidden, "nothing is learned"
"""


def learned_script(client, script, *names):
    """The script, so that it runs in a worker in which the modules of the host are learned, and fails
    in any other; once there are such workers."""
    imports = "".join("import %s\n" % name for name in names)
    if subprocess.run(["/usr/bin/python3", "-c", imports], check=False, capture_output=True).returncode:
        raise Skip("one is not installed: " + " ".join(names), missing=True)
    look = CHECK + imports
    until("a worker in which %s are learned" % " ".join(names),
          lambda: client.run(look).status == "ok" or not client.run(imports))
    return CHECK + "if 0:\n%s" % "".join("    import %s\n" % name for name in names) + script
