# SPDX-License-Identifier: Apache-2.0
"""Scripts that call tools of other servers, for script_tools.py and remote_tools.py."""

from harness import equal
from supervisor import read_text

ERRORS = """
import tools
def error(call):
    try:
        call()
    except tools.ToolError as e:
        return str(e)
    return "no error"
"""


def run(client, script, status="ok", **arguments):
    o = client.run(script, 120, **arguments)
    equal(o.status, status, "status of %r" % o)
    return o


def printed(client, script, **more):
    return run(client, script, **more).stdout


def tools_process(s):
    return [pid for pid in s.below() if (read_text("/proc/%d/comm" % pid) or "") == "mcp-python-tool\n"]
