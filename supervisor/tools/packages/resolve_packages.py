"""Finds out which packages a list of requirements comes to, and says what they are.

Asks pip, which downloads them: size and hash are those of the files. argv[1] is JSON:
{"requirements": [texts], "indexes": [urls], "urls": [of wheels, which these name directly],
"seconds": for one answer of an index, "require_hashes": whether that has to say those of files}. The answer is the trailing
expression: {"packages": [{"name", "version", "hash", "index", "size"}]}.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
import urllib.parse
import urllib.request

FILES = "/tmp/packages"
PROXY = "http://127.0.0.1:3128"  # named, for an index may be on loopback too


def resolve(requirements, indexes, urls, seconds, require_hashes):
    direct = {file_of(url): url for url in urls}
    with open("/tmp/requirements", "w", encoding="utf-8") as f:
        f.write("".join("%s\n" % r for r in requirements))
    pip = subprocess.run(
        [sys.executable, "-m", "pip", "--isolated", "--no-input", "--no-color",
         "--disable-pip-version-check", "--no-cache-dir", "--proxy", PROXY, "--timeout", str(seconds),
         "--retries", "1", "download", "--progress-bar", "off", "--only-binary", ":all:",
         "--index-url", indexes[0],
         *("--extra-index-url=" + url for url in indexes[1:]), "--dest", FILES, "--requirement", "/tmp/requirements"],
        stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT)
    if pip.returncode:
        sys.exit(pip.returncode if pip.returncode > 0 else 1)
    return [look(os.path.join(FILES, name), direct.get(name), indexes, seconds, require_hashes)
            for name in sorted(os.listdir(FILES))]


def file_of(url):
    return os.path.basename(urllib.parse.unquote(urllib.parse.urlsplit(url).path))


def index_of(name, file, sha256, indexes, seconds):
    """pip does not say which one it was, and whether that knew the hash: the first that has the
    file. sha256: that it has to know; "" for any."""
    for variable in ("NO_PROXY", "no_proxy"):  # an index may be on loopback
        os.environ.pop(variable, None)
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({"http": PROXY, "https": PROXY}))
    for url in indexes:
        try:
            with opener.open("%s/%s/" % (url.rstrip("/"), name), timeout=seconds) as page:
                text = page.read(16 << 20)
        except OSError:
            continue
        if file.encode() in text:
            if sha256.encode() in text:
                return url
            print("ERROR: the index does not say the SHA-256 of", file)
            sys.exit(1)
    print("ERROR: no index has", file)
    sys.exit(1)


def look(path, url, indexes, seconds, require_hashes):
    parts = os.path.basename(path).split("-")
    digest = hashlib.sha256()
    with open(path, "rb") as f:
        while block := f.read(1 << 20):
            digest.update(block)
    name = re.sub(r"[-_.]+", "-", parts[0]).lower()
    sha256 = digest.hexdigest()
    return {"name": name, "version": parts[1], "hash": "sha256:" + sha256,
            "index": url or index_of(name, os.path.basename(path),
                                     sha256 if require_hashes else "", indexes, seconds),
            "size": os.path.getsize(path)}


{"packages": resolve(**json.loads(sys.argv[1]))}
