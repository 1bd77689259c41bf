# SPDX-License-Identifier: Apache-2.0
"""Builds the wheel of a package from its source. This runs code of the source, without a network.

argv[1] is JSON: {"file": name of the source archive, "sha256": its hash, "max_bytes": the
largest size of the wheel}. Standard input is a socket that passes two descriptors: the archive,
and the file for the wheel. The value of the last expression is the answer: {"file": name of the
wheel, "hash"}.
"""

import importlib.metadata
import json
import shutil
import stat
import subprocess

WHEELS = "/tmp/wheels"
TAIL = 1500
BACK_ENDS = ("setuptools", "wheel", "flit-core", "hatchling", "poetry-core", "pdm-backend",
             "meson-python", "scikit-build-core", "maturin", "Cython")


def run_pip(path):
    """Runs pip. Returns its exit status, and the end of its output."""
    pip = subprocess.Popen(
        [sys.executable, "-m", "pip", "--isolated", "--no-input", "--no-color",
         "--disable-pip-version-check", "--no-cache-dir", "wheel", "--progress-bar", "off",
         "--no-deps", "--no-index", "--no-build-isolation", "--check-build-dependencies",
         "--wheel-dir", WHEELS, path],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    said = b""
    while block := pip.stdout.read1(1 << 16):
        said = (said + block)[-TAIL:]
    return pip.wait(), said.decode(errors="replace")


def means():
    """Lists the build back ends that are installed."""
    found = []
    for name in BACK_ENDS:
        try:
            found.append("%s %s" % (name, importlib.metadata.version(name)))
        except importlib.metadata.PackageNotFoundError:
            continue
    compiler = shutil.which("cc") or shutil.which("gcc")
    return "%s, %s" % (", ".join(found) or "no build back end",
                       "a C compiler" if compiler else "no C compiler")


def indented(text):
    return "".join("\n  " + line for line in text.splitlines() if line.strip())


def the_wheel():
    made = os.listdir(WHEELS) if os.path.isdir(WHEELS) else []
    if len(made) != 1:
        fail("its build made %d files in place of one wheel" % len(made))
    path = os.path.join(WHEELS, made[0])
    if not stat.S_ISREG(os.lstat(path).st_mode):
        fail("its build made a wheel that is not a file")
    return path


def give(path, fd, max_bytes):
    if os.path.getsize(path) > max_bytes:
        fail("its wheel is larger than max_bytes")
    with open(path, "rb") as wheel, open(fd, "w+b") as to:
        shutil.copyfileobj(wheel, to)
        to.seek(0)
        return {"file": os.path.basename(path), "hash": digest_of(to)}


def main(file, sha256, max_bytes):
    archive, wheel = handed(2)
    source = os.path.join("/tmp/source", file)
    take(archive, source, sha256)
    status, said = run_pip(source)
    if status:
        fail("pip wheel ended with %d; there is to build with: %s%s"
             % (status, means(), indented(said)))
    return give(the_wheel(), wheel, max_bytes)


main(**json.loads(sys.argv[1]))
