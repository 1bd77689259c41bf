# SPDX-License-Identifier: Apache-2.0
"""Reports the Python version, the values of environment markers, and the installed packages.

The value of the last expression is the answer: {"program": its path, "markers": {variable:
text}, "packages": {normalised name: {"name", "version", "extras": [requirements with a marker
that names an extra]}}}.
"""

import importlib.metadata
import os
import platform
import re
import sys

PACKAGES_MAX = 2000
EXTRAS_MAX = 100000  # characters in total: answers are bounded


def full_version(info):
    kind = info.releaselevel
    return "%d.%d.%d" % info[:3] + (kind[0] + str(info.serial) if kind != "final" else "")


def look(packages, left):
    for found in importlib.metadata.distributions():
        try:
            name, version = found.metadata["Name"], found.version
            requires = [r for r in found.requires or () if "extra" in r]
        except Exception:  # damaged metadata: the package counts as missing
            continue
        if not isinstance(name, str) or not isinstance(version, str):
            continue
        key = re.sub(r"[-_.]+", "-", name).lower()
        if key in packages or len(packages) == PACKAGES_MAX or len(name + version) > 300:
            continue
        size = sum(map(len, requires)) + 4 * len(requires)
        if size > left:
            requires = []
        left -= size if requires else 0
        packages[key] = {"name": name, "version": version, "extras": requires}
    return packages


{
    "program": sys.executable or "",
    "markers": {
        "implementation_name": sys.implementation.name,
        "implementation_version": full_version(sys.implementation.version),
        "os_name": os.name,
        "platform_machine": platform.machine(),
        "platform_python_implementation": platform.python_implementation(),
        "platform_release": platform.release(),
        "platform_system": platform.system(),
        "platform_version": platform.version(),
        "python_full_version": platform.python_version(),
        "python_version": "%d.%d" % sys.version_info[:2],
        "sys_platform": sys.platform,
    },
    "packages": look({}, EXTRAS_MAX),
}
