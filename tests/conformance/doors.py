# SPDX-License-Identifier: Apache-2.0
"""Clients of other services than MCP, unmodified and pinned (package-lock.json of doors/ and librechat/),
against the gateway: JupyterLab's client of kernels, three versions of E2B's SDK, its code interpreter,
and LibreChat's client of its Code API, which is large and a part of its own.
Older code interpreters take no address: they go to https://49999-ID.DOMAIN alone."""

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


def run_client(tools, directory, *argv):
    """step -> what went wrong, or None. Clients print lines of their own, too."""
    done = tools.run(["node", *argv], SECONDS, cwd=directory, env={"E2B_API_KEY": KEY})
    steps = {said["step"]: said.get("error") for said in map(json.loads, (
        line for line in done.stdout.splitlines() if line.startswith('{"step"')))}
    if not steps or done.returncode != int(any(steps.values())):
        steps["exits"] = "exit status %d: %s" % (done.returncode, done.stderr[-2000:])
    return steps


def clients_of(part, url):
    """name -> its command, of the clients in this folder."""
    if part == "librechat":
        return {"librechat": ["librechat.mjs", url, KEY]}
    return {"jupyterlab": ["jupyter.mjs", url, KEY],
            **{"e2b " + version: ["e2b.mjs", url, *packages] for version, packages in SDKS.items()}}


def run(build, tools, out, report, wanted, part):
    directory = os.path.join(out, part)
    shutil.copytree(os.path.join(HERE, part), directory)
    os.symlink(tools.modules, os.path.join(directory, "node_modules"))
    os.environ["MCP_BUILD"] = os.path.abspath(build)
    place = os.path.join(out, part + ".sock")
    try:
        with fuse.place() as store:
            service = Supervisor(build, CONFIG % store, ["--http-socket", place],
                                 wrap=fuse.wrap(store))
            try:
                service.start().wait_ready()
                if os.getuid() == 0:
                    os.chmod(place, 0o666)
                with doors_suite.gateway_on(place, token=KEY) as gateway:
                    for name, argv in clients_of(part, gateway.url).items():
                        if not wanted.search(name):
                            continue
                        for step, error in run_client(tools, directory, *argv).items():
                            report.tell("%s: %s" % (name, step), error)
                assert service.stop() == 0, service.log()[-3000:]
            finally:
                service.remove()
    except Skip as e:
        report.say("skipped", "clients of the gateway", 0, str(e))
