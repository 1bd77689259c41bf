# SPDX-License-Identifier: Apache-2.0
"""The clients of the official TypeScript SDKs, over every transport, against both programs.
Each is a process of its own (clients/*.mjs), which says one line per step."""

import json
import os
import shutil

import wire
from harness import Skip

HERE = os.path.dirname(os.path.abspath(__file__))
SECONDS = 120
CLIENTS = {
    "v1": ["v1.mjs"],
    "v2-legacy": ["v2.mjs", "legacy"],
    "v2-auto": ["v2.mjs", "auto"],
    "v2-pinned": ["v2.mjs", "pin"],
}
TRANSPORTS = ("bridge", "unix", "tcp")


def transports(service):
    places = (["bridge", service.bridge, "connect", "--socket", service.socket],
              ["unix", service.http_socket], ["tcp", service.url])
    return dict(zip(TRANSPORTS, places))


def place_scripts(tools, out):
    """Where they find their packages."""
    directory = os.path.join(out, "clients")
    if not os.path.isdir(directory):
        shutil.copytree(os.path.join(HERE, "clients"), directory)
        os.symlink(tools.modules, os.path.join(directory, "node_modules"))
    return directory


def run_client(tools, directory, argv, record):
    """step -> what went wrong, or None; the process's exit status must agree with it."""
    tools.env["WIRE"] = record
    done = tools.run(["node"] + argv, SECONDS, cwd=directory)
    steps = {}
    for line in done.stdout.splitlines():
        said = json.loads(line)
        steps[said["step"]] = said.get("error")
    went_well = "closes" in steps and not any(steps.values())
    steps["exits"] = None if done.returncode == (0 if went_well else 1) else (
        "exit status %d: %s" % (done.returncode, done.stderr[-2000:]))
    return steps


def are_met(client, program, transport, every):
    """every: all of them. Otherwise each client meets each program and each transport, and each transport
    each program."""
    return every or (list(CLIENTS).index(client) + TRANSPORTS.index(transport) +
                     (program == "fixtures")) % 2 == 0


def run(tools, services, out, report, wanted, every):
    directory = place_scripts(tools, out)
    for example in "client_tools", "client_tools_modern":
        if wanted.search("example " + example):
            report.check("example %s: the script calls the client's tool" % example,
                         lambda example=example: run_example(example, tools, services["shipped"], out))
    for client, script in CLIENTS.items():
        for program, service in services.items():
            for transport, place in transports(service).items():
                name = "%s %s %s" % (client, transport, program)
                if not (wanted.search(name) and are_met(client, program, transport, every)):
                    continue
                record = os.path.join(out, name.replace(" ", "-") + ".wire")
                steps = report.check(name + ": runs to its end", lambda: run_client(
                    tools, directory, script + [program] + place, record))
                for step, error in (steps or {}).items():
                    report.tell("%s: %s" % (name, step), error)
                report.check(name + ": every message fits the schema",
                             lambda: check_wire(record))


def run_example(example, tools, service, out):
    """Of examples/: a script that calls a tool of its client."""
    directory = place_scripts(tools, out)
    shutil.copy(os.path.join(HERE, "..", "..", "examples", example + ".mjs"), directory)
    done = tools.run(["node", example + ".mjs", service.bridge, "connect", "--socket", service.socket],
                     SECONDS, cwd=directory)
    if done.returncode or done.stdout != "the tool was called 10 times\n5700\n":
        raise AssertionError("exit status %d: %s%s" % (done.returncode, done.stdout, done.stderr[-2000:]))


def check_wire(record):
    if wire.jsonschema is None:
        raise Skip("python3-jsonschema is not installed", missing=True)
    return wire.check(record)
