# SPDX-License-Identifier: Apache-2.0
"""Clients of other services than MCP, unmodified and pinned (doors/package-lock.json), against
the gateway: three versions of E2B's SDK, and its code interpreter. Older code interpreters take
no address: they go to https://49999-ID.DOMAIN alone."""

import json
import os
import shutil

import doors_suite
import fuse
from harness import Skip
from supervisor import Supervisor

HERE = os.path.dirname(os.path.abspath(__file__))
SECONDS = 300
KEY = "e2b_" + "0123456789abcdef" * 2 + "01234567"	# as older SDKs want a key to look
CONFIG = "[workspace]\nvolume = yes\nvolumes = 16\ndirectory = %s\n"
# The package of Sandbox, and of the code interpreter that is made for it.
SDKS = {
    "2.51.0": ("e2b", "@e2b/code-interpreter"),
    "2.45.0": ("e2b-2.45.0", "-"),
    "2.32.0": ("e2b-2.32.0", "-"),
}


def run_sdk(tools, directory, url, packages):
    """step -> what went wrong, or None"""
    done = tools.run(["node", "e2b.mjs", url, *packages], SECONDS, cwd=directory,
                     env={"E2B_API_KEY": KEY})
    steps = {said["step"]: said.get("error") for said in map(json.loads, done.stdout.splitlines())}
    if not steps or done.returncode != int(any(steps.values())):
        steps["exits"] = "exit status %d: %s" % (done.returncode, done.stderr[-2000:])
    return steps


def run(build, tools, out, report, wanted):
    directory = os.path.join(out, "doors")
    shutil.copytree(os.path.join(HERE, "doors"), directory)
    os.symlink(tools.modules, os.path.join(directory, "node_modules"))
    os.environ["MCP_BUILD"] = os.path.abspath(build)
    place = os.path.join(out, "doors.sock")
    try:
        with fuse.place() as store:
            service = Supervisor(build, CONFIG % store, ["--http-socket", place],
                                 wrap=fuse.wrap(store))
            try:
                service.start().wait_ready()
                if os.getuid() == 0:
                    os.chmod(place, 0o666)
                with doors_suite.gateway_on(place, token=KEY) as gateway:
                    for version, packages in SDKS.items():
                        if not wanted.search("e2b " + version):
                            continue
                        for step, error in run_sdk(tools, directory, gateway.url,
                                                   packages).items():
                            report.tell("e2b %s: %s" % (version, step), error)
                assert service.stop() == 0, service.log()[-3000:]
            finally:
                service.remove()
    except Skip as e:
        report.say("skipped", "e2b", 0, str(e))
