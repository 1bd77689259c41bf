# SPDX-License-Identifier: Apache-2.0
"""A host of MCP Apps shows the service's answers in the system's browser: the official bridge, a sandbox of another
origin, and the policy that the specification has for a page that asks for nothing (views/drive.mjs). Each answer
(views/cases.mjs) in light and in dark, with the keyboard. MCP_VIEWS names a folder that keeps the pictures."""

import json
import os
import shutil
import subprocess

from harness import Skip
from toolbox import Unavailable

HERE = os.path.dirname(os.path.abspath(__file__))
FILES = ("host.js", "drive.mjs", "cases.mjs")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
SECONDS = 60	# for what the page is to show, on a machine at rest


def browser():
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        raise Skip("chromium is not installed", missing=True)
    return found


def drive(tools, url, out, wanted):
    """The lines of drive.mjs; its own failure is one of them."""
    place = os.path.join(out, "views")
    pictures = os.environ.get("MCP_VIEWS") or place
    os.makedirs(place)
    os.makedirs(pictures, exist_ok=True)
    for name in FILES:
        shutil.copy(os.path.join(HERE, "views", name), place)
    os.symlink(tools.modules, os.path.join(place, "node_modules"))
    slow = float(os.environ.get("MCP_TEST_SLOW") or 1)
    done = tools.run(["node", "drive.mjs", url, browser(), pictures, wanted.pattern], 3600 * slow, cwd=place,
                     env={"VIEW_MS": str(int(SECONDS * 1000 * slow))})
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode and not any(line["error"] for line in lines):
        lines.append({"name": "the host", "error": "exit status %d: %s" % (done.returncode, done.stderr[-2000:])})
    return lines


def run(tools, service, out, report, wanted):
    try:
        lines = drive(tools, service.url, out, wanted)
    except (Skip, Unavailable) as e:
        must = e.missing and os.environ.get("CI") == "true"
        report.say("failed" if must else "skipped", "views", 0, str(e))
        return
    except subprocess.TimeoutExpired as e:
        lines = [{"name": "the host", "error": str(e)}]
    for line in lines:
        report.tell("views: " + line["name"], line["error"])
    if not lines:
        report.tell("views", "nothing was shown")
