"""Installs packages of exact versions and hashes and sends the files to standard input.

pip does the work; what it made goes out as the stream that worker/intake.h describes, and no
link, device or mode with it. argv[1] is JSON: {"packages": [{"name", "version", "hash", "index"}],
"indexes": [urls], "seconds": for one answer of an index, "built": [{"file", "hash", "package"}]: wheels
that were built from source}; the index that is none of these is the URL of the wheel. Standard
input is a socket; it hands over the files of the wheels first.
"""

import compileall
import json
import py_compile
import stat
import struct
import subprocess

TARGET = "/tmp/environment"
PLACE = "/environment"  # where scripts will find it
PROXY = "http://127.0.0.1:3128"  # named, for an index may be on loopback too


def install(packages, indexes, seconds, built):
    # Of what was built the set has the hash of the source.
    hashes = {wheel["package"]["hash"]: wheel["hash"] for wheel in built}
    with open("/tmp/requirements", "w", encoding="utf-8") as f:
        for p in packages:
            which = ("%(name)s==%(version)s" if p["index"] in indexes else "%(name)s @ %(index)s")
            f.write(which % p + " --hash=%s\n" % (
                hashes[p["hash"]] if p.get("built") else p["hash"]))
    pip = subprocess.run(
        [sys.executable, "-m", "pip", "--isolated", "--no-input", "--no-color",
         "--disable-pip-version-check", "--no-cache-dir", "--proxy", PROXY, "--timeout", str(seconds),
         "--retries", "1", "install", "--progress-bar", "off", "--only-binary", ":all:",
         "--no-deps", "--require-hashes", "--no-compile", "--no-warn-script-location",
         *(["--find-links", BUILT] if built else []), "--index-url", indexes[0],
         *("--extra-index-url=" + url for url in indexes[1:]), "--target", TARGET, "--requirement", "/tmp/requirements"],
        stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT)
    if pip.returncode:
        sys.exit(pip.returncode if pip.returncode > 0 else 1)


def send(to):
    files = 0
    for directory, _, names in os.walk(TARGET):
        for name in names:
            path = os.path.join(directory, name)
            info = os.lstat(path)
            if not stat.S_ISREG(info.st_mode):
                continue
            shown = os.path.relpath(path, TARGET).encode()
            kind = b"X" if info.st_mode & 0o100 else b"F"
            to.write(struct.pack(">cHQ", kind, len(shown), info.st_size) + shown)
            with open(path, "rb") as f:
                while block := f.read(1 << 18):
                    to.write(block)
            files += 1
    to.write(struct.pack(">cI", b"E", files))
    to.flush()
    return files


def main():
    asked = json.loads(sys.argv[1])
    built = asked["built"]
    take_built(built, handed(len(built)) if built else [])
    install(**asked)
    # Never stale, for nobody changes them; and looked at without asking for the source.
    compileall.compile_dir(TARGET, maxlevels=40, quiet=2, stripdir=TARGET, prependdir=PLACE,
                           invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    with open(0, "wb", closefd=False) as to:
        return {"files": send(to)}


main()
