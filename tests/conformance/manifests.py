# SPDX-License-Identifier: Apache-2.0
"""The objects of examples/kubernetes against the published schemas of Kubernetes and of the Prometheus operator
(manifests/package-lock.json).
A schema does not know which names are misspelt: tests/check-manifests reads those."""

import json
import os
import shutil

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.path.join(os.path.dirname(os.path.dirname(HERE)), "examples", "kubernetes")
SECONDS = 300
KINDS = ["v1 ConfigMap", "v1 PersistentVolumeClaim", "apps/v1 Deployment", "v1 Service",
         "monitoring.coreos.com/v1 PodMonitor"]
# What a schema has to find, so that a judge that accepts everything is noticed.
WRONG = {"hostUsers: false": "hostUsers: 7", "containerPort: 8080": "containerPort: http",
         "accessModes: [ReadWriteOnce]": "accessModes: ReadWriteOnce", "kind: Service": "kind: Servize",
         "- port: http": "- port: 8080"}


def validate(tools, directory, text):
    """{kind: what is wrong, or None} in the order of the file."""
    path = os.path.join(directory, "objects.yaml")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    done = tools.run(["node", "validate.mjs", path], SECONDS, cwd=directory)
    said = {one["step"]: one.get("error") for one in map(json.loads, done.stdout.splitlines())}
    if done.returncode != int(any(said.values())):
        said["exits"] = "exit status %d: %s" % (done.returncode, done.stderr[-2000:])
    return said


def run(tools, out, report, wanted):
    directory = os.path.join(out, "manifests")
    shutil.copytree(os.path.join(HERE, "manifests"), directory)
    os.symlink(tools.modules, os.path.join(directory, "node_modules"))
    texts = []
    for name in "mcp-pythond.yaml", "podmonitor.yaml":
        with open(os.path.join(EXAMPLES, name), encoding="utf-8") as f:
            texts.append(f.read())
    text = "---\n".join(texts)
    said = validate(tools, directory, text)
    report.tell("kubernetes: kinds", None if list(said) == KINDS else "%s" % list(said))
    for kind, error in said.items():
        if wanted.search(kind):
            report.tell("kubernetes: " + kind, error)
    for right, wrong in WRONG.items():
        said = validate(tools, directory, text.replace(right, wrong))
        found = right in text and any(said.values())
        report.tell("kubernetes: refuses " + wrong, None if found else "it was accepted")
