"""Finds out which packages a list of requirements comes to, and says what they are.

Asks pip, which downloads them: size and hash are those of the files. argv[1] is JSON:
{"requirements": [texts], "index": url, "seconds": for one answer of the index}. The answer is
the trailing expression: {"packages": [{"name", "version", "hash", "size"}]}.
"""

import hashlib
import json
import os
import re
import subprocess
import sys

FILES = "/tmp/packages"
PROXY = "http://127.0.0.1:3128"  # named, for an index may be on loopback too


def resolve(requirements, index, seconds):
    with open("/tmp/requirements", "w", encoding="utf-8") as f:
        f.write("".join("%s\n" % r for r in requirements))
    pip = subprocess.run(
        [sys.executable, "-m", "pip", "--isolated", "--no-input", "--no-color",
         "--disable-pip-version-check", "--no-cache-dir", "--proxy", PROXY, "--timeout", str(seconds),
         "--retries", "1", "download", "--progress-bar", "off", "--only-binary", ":all:",
         "--index-url", index, "--dest", FILES, "--requirement", "/tmp/requirements"],
        stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT)
    if pip.returncode:
        sys.exit(pip.returncode if pip.returncode > 0 else 1)
    return [look(os.path.join(FILES, name)) for name in sorted(os.listdir(FILES))]


def look(path):
    parts = os.path.basename(path).split("-")
    digest = hashlib.sha256()
    with open(path, "rb") as f:
        while block := f.read(1 << 20):
            digest.update(block)
    return {"name": re.sub(r"[-_.]+", "-", parts[0]).lower(), "version": parts[1],
            "hash": "sha256:" + digest.hexdigest(), "size": os.path.getsize(path)}


{"packages": resolve(**json.loads(sys.argv[1]))}
