#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a command for each new request for approval, with one line about it as last argument.

    approvals_notify.py COMMAND [ARG...]

Such as: approvals_notify.py notify-send mcp-python
         approvals_notify.py curl -sS https://ntfy.example/approvals -d
         approvals_notify.py mcp-python-mail        # a script of yours: mail -s "$1" ops </dev/null

It runs until the service ends. approvals-notify.service is a unit for it. The line has no control
characters; the first line of a script is its author's text.
"""

import json
import os
import pwd
import subprocess
import sys

WATCH = [os.environ.get("MCP_PYTHON", "mcp-python"), "approvals", "watch", "--json"]


def name(tenant):
    """The login name of a local user."""
    try:
        return pwd.getpwuid(int(tenant.removeprefix("uid:"))).pw_name
    except (ValueError, KeyError):
        return tenant


def line_about(request):
    what = request.get("first_line") or " ".join(request["items"])
    text = "%s %s: %s: %s" % (request["id"], name(request["tenant"]), request["tool"], what)
    return "".join(c if c.isprintable() else "?" for c in text)[:300]


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__.split("\n\n")[1].strip())
    known = set()
    with subprocess.Popen(WATCH, stdout=subprocess.PIPE, text=True) as watch:
        for line in watch.stdout:
            waiting = {r["id"]: r for r in json.loads(line) if r["state"] == "pending"}
            for request in waiting.keys() - known:
                subprocess.run([*sys.argv[1:], line_about(waiting[request])], check=False)
            known = set(waiting)
    return watch.returncode


if __name__ == "__main__":
    sys.exit(main())
