#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""mcp-python-unpack: images in their forms, and what an archive must not do.

A suite of tests/integration/run. No service runs in it."""

import bz2
import contextlib
import gzip
import hashlib
import io
import json
import lzma
import os
import platform
import shutil
import stat
import subprocess
import tarfile
import tempfile
import zlib

from harness import equal, main, test

MACHINE = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())


def digest(data):
    return hashlib.sha256(data).hexdigest()


def entry(name, kind=tarfile.REGTYPE, data=b"", target="", mode=None, **more):
    info = tarfile.TarInfo(name)
    info.type, info.size, info.linkname = kind, len(data), target
    info.mode = mode if mode is not None else 0o755 if kind == tarfile.DIRTYPE else 0o644
    info.mtime = 1700000000
    for key, value in more.items():
        setattr(info, key, value)
    return info, data


def folder(name, **more):
    return entry(name, tarfile.DIRTYPE, **more)


def link(name, target):
    return entry(name, tarfile.SYMTYPE, target=target)


def hard(name, target):
    return entry(name, tarfile.LNKTYPE, target=target)


def tar(*entries):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for info, data in entries:
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def config_of(layers, **more):
    return json.dumps({"os": "linux", "architecture": MACHINE, "rootfs": {
        "type": "layers", "diff_ids": ["sha256:" + digest(one) for one in layers]}, **more}).encode()


def docker(*layers, config=None, images=1, names=None):
    """As docker save and podman save write it."""
    config = config or config_of(layers)
    names = names or ["%s.tar" % digest(one) for one in layers]
    manifest = [{"Config": digest(config) + ".json", "RepoTags": ["one"], "Layers": names}] * images
    return tar(*(entry(name, data=one) for name, one in zip(names, layers)),
               entry(digest(config) + ".json", data=config),
               entry("manifest.json", data=json.dumps(manifest).encode()))


def oci(*layers, platforms=({"os": "linux", "architecture": MACHINE},), nested=False):
    """{name: bytes} of an OCI layout, whose layers are compressed."""
    files = {"oci-layout": b'{"imageLayoutVersion": "1.0.0"}'}

    def add(data):
        files["blobs/sha256/" + digest(data)] = data
        return {"digest": "sha256:" + digest(data), "size": len(data)}

    manifest = {"config": add(config_of(layers)), "layers": [add(gzip.compress(one)) for one in layers]}
    index = {"manifests": [{**add(json.dumps(manifest).encode()), "platform": one} for one in platforms]}
    if nested:
        index = {"manifests": [add(json.dumps(index).encode())]}
    files["index.json"] = json.dumps(index).encode()
    return files


class Place:
    def __init__(self, ctx, directory):
        self.program = os.path.join(ctx.options.build, "mcp-python-unpack")
        self.directory, self.root = directory, directory + "/root"

    def run(self, *words):
        ended = subprocess.run([self.program, *words, self.root], stdin=subprocess.DEVNULL, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
        return ended.returncode, ended.stdout

    def write(self, data, name="/archive"):
        with open(self.directory + name, "wb") as f:
            f.write(data)
        return self.directory + name

    def image(self, data):
        return self.run("--image", self.write(data))

    def layers(self, *layers):
        status, said = self.image(docker(*layers))
        equal(status, 0, said)
        return said

    def refused(self, data, why):
        status, said = self.image(data)
        assert status == 1 and why in said, (status, said)
        equal(os.path.exists(self.root), False, "what is refused leaves nothing")

    def names(self, below=""):
        found = [os.path.relpath(os.path.join(at, name), self.root + below)
                 for at, folders, files in os.walk(self.root + below) for name in folders + files]
        return sorted(n for n in found if below or n not in ("dev", "proc", "mnt"))

    def read(self, name):
        with open(self.root + "/" + name, "rb") as f:
            return f.read()


@contextlib.contextmanager
def place(ctx):
    with tempfile.TemporaryDirectory() as directory:
        yield Place(ctx, directory)


# ---- forms ----

LAYERS = (tar(folder("usr"), folder("usr/bin", mode=0o555), entry("usr/bin/a", data=b"one", mode=0o755),
              link("bin", "usr/bin"), hard("usr/bin/b", "usr/bin/a"), entry("etc/secret", mode=0o640)),
          tar(entry("usr/bin/c", data=b"three"), entry("bin/d", data=b"four")))
WANTED = ["bin", "etc", "etc/secret", "usr", "usr/bin", "usr/bin/a", "usr/bin/b", "usr/bin/c", "usr/bin/d"]


def check_wanted(p):
    equal(p.names(), WANTED)
    equal([p.read("usr/bin/" + n) for n in "abcd"], [b"one", b"one", b"three", b"four"])
    equal(os.readlink(p.root + "/bin"), "usr/bin")
    st = os.stat(p.root + "/usr/bin/a")
    equal((stat.S_IMODE(st.st_mode), st.st_nlink, int(st.st_mtime)), (0o755, 2, 1700000000))
    equal(stat.S_IMODE(os.stat(p.root + "/etc/secret").st_mode), 0o640)
    equal(stat.S_IMODE(os.stat(p.root).st_mode), 0o755)
    equal([os.path.isdir(p.root + "/" + n) for n in ("dev", "proc", "mnt")], [True] * 3)


@test
def forms_of_images(ctx):
    for data in (docker(*LAYERS), gzip.compress(docker(*LAYERS))):
        with place(ctx) as p:
            equal(p.image(data), (0, ""))
            check_wanted(p)
    for more in ({}, {"nested": True}, {"platforms": ({"os": "linux", "architecture": MACHINE},
                                                      {"os": "linux", "architecture": "s390x"})}):
        files = oci(*LAYERS, **more)
        with place(ctx) as p:
            equal(p.image(tar(*(entry(name, data=data) for name, data in files.items()))), (0, ""))
            check_wanted(p)
        with place(ctx) as p:
            os.makedirs(p.directory + "/layout/blobs/sha256")
            for name, data in files.items():
                p.write(data, "/layout/" + name)
            equal(p.run("--image", p.directory + "/layout"), (0, ""))
            check_wanted(p)


@test
def layers_by_links(ctx):
    """As older programs saved images: each layer in a directory of its own, some of them links."""
    config = config_of(LAYERS)
    names = ["x/layer.tar", "y/layer.tar"]
    manifest = [{"Config": digest(config) + ".json", "Layers": names}]
    with place(ctx) as p:
        equal(p.image(tar(
            entry("manifest.json", data=json.dumps(manifest).encode()), entry(digest(config) + ".json", data=config),
            link("x/layer.tar", "../z/layer.tar"), entry("z/layer.tar", data=LAYERS[0]),
            entry("w.tar", data=LAYERS[1]), hard("y/layer.tar", "w.tar"))), (0, ""))
        check_wanted(p)
    with place(ctx) as p:
        p.refused(tar(entry(digest(config) + ".json", data=config)), "it is not an image")
    manifest[0]["Layers"][0] = "loop"
    with place(ctx) as p:
        p.refused(tar(entry("manifest.json", data=json.dumps(manifest).encode()),
                      entry(digest(config) + ".json", data=config), link("loop", "loop")), "No such file")


@test
def the_tree_of_a_python(ctx):
    data = gzip.compress(tar(folder("python"), entry("python/bin/.wh.python", data=b"x", mode=0o4755)))
    with place(ctx) as p:
        archive = p.write(data)
        status, said = p.run("--tree", archive, "0" * 64)
        assert status == 1 and "its SHA-256 is %s, not 000" % digest(data) in said, said
        equal(os.path.exists(p.root), False)
        equal(p.run("--tree", archive, digest(data).upper()), (0, ""))
        equal(p.names(), ["python", "python/bin", "python/bin/.wh.python"])
        status, said = p.run("--tree", archive, digest(data))
        assert status == 1 and "File exists" in said, said
        equal(p.names(), ["python", "python/bin", "python/bin/.wh.python"], "what was there stays")


# ---- layers ----

@test
def what_a_layer_removes(ctx):
    below = tar(entry("a/one"), entry("a/two"), entry("b/one"), entry("c/deep/one"), entry("d"), entry("e/one"), link("f", "b"))
    for opaque_first in (True, False):
        opaque, mine = entry("b/.wh..wh..opq"), entry("b/mine")
        with place(ctx) as p:
            p.layers(below, tar(entry("a/.wh.one"), *((opaque, mine) if opaque_first else (mine, opaque)),
                                entry(".wh.c"), entry(".wh.d"), entry("d/now"), entry("e/.wh..wh.plnk"),
                                entry("e/.wh.none"), entry("none/.wh.none"), entry(".wh.f")))
            equal(p.names(), ["a", "a/two", "b", "b/mine", "d", "d/now", "e", "e/one"])
    for bad in (".wh.", "x/.wh..", "x/.wh..."):
        with place(ctx) as p:
            p.refused(docker(below, tar(entry(bad))), "it removes nothing that has a name")


@test
def kinds_replace_each_other(ctx):
    with place(ctx) as p:
        p.layers(tar(entry("a/one"), entry("b"), link("c", "a"), folder("d", mode=0o700), entry("d/one"), entry("e", data=b"e"),
                     hard("f", "e")),
                 tar(entry("a", data=b"a"), folder("b"), entry("b/two"), folder("c"), entry("c/three"), folder("d"),
                     entry("e", data=b"new"), link("g", "none"), entry("g", data=b"g")))
        equal(p.names(), ["a", "b", "b/two", "c", "c/three", "d", "d/one", "e", "f", "g"])
        equal([p.read(n) for n in "aefg"], [b"a", b"new", b"e", b"g"], "a link's other name keeps its bytes")
        equal(stat.S_IMODE(os.stat(p.root + "/d").st_mode), 0o755)


# ---- what an archive must not do ----

@test
def nothing_leads_out_of_it(ctx):
    with place(ctx) as p:
        outside = p.directory + "/outside"
        os.mkdir(outside)
        p.write(b"mine", "/outside/file")
        up = "../" * 20
        p.layers(tar(folder(outside[1:]), link("abs", outside), link("up", up + outside[1:]), link("file", outside + "/file"),
                     entry("/top", data=b"top"), entry("./dot", data=b"dot"), link("self", "/")),
                 tar(entry("abs/made", data=b"x"), entry("up/made", data=b"x"), entry("self/in", data=b"in"), entry("file", data=b"other"),
                     entry("abs/.wh.file"), entry("up/.wh..wh..opq")))
        equal((os.listdir(outside), p.read("../outside/file")), (["file"], b"mine"))
        equal([p.read(n) for n in ("top", "dot", "in", "file")], [b"top", b"dot", b"in", b"other"])
        equal(p.read(outside[1:] + "/made"), b"x", "in the root's own directory of that name")
    for bad in (entry("../x"), entry("a/../../x"), entry(".."), hard("x", "../archive"), hard("x", "/etc/passwd"),
                hard("x", "etc"), hard("x", "x"), entry("file/below"), entry("a/" + "n" * 300), link("x", "")):
        with place(ctx) as p:
            p.refused(docker(tar(entry("file"), folder("etc"), bad)), "the layer ")
            equal(sorted(os.listdir(p.directory)), ["archive"])
    for name in ("dev", "proc", "mnt"):	# where a worker's mounts come
        with place(ctx) as p:
            p.refused(docker(tar(link(name, "/etc"))), "/%s is not a directory" % name)


@test
def no_rights_for_others(ctx):
    with place(ctx) as p:
        said = p.layers(tar(
            entry("suid", mode=0o6755, uid=1000, gid=1000), folder("open", mode=0o1777), entry("open/file", mode=0o666),
            entry("null", tarfile.CHRTYPE, devmajor=1, devminor=3), entry("disk", tarfile.BLKTYPE, devmajor=8),
            entry("fifo", tarfile.FIFOTYPE),
            entry("able", mode=0o755, pax_headers={"SCHILY.xattr.security.capability": "\x01\0\0\2\0\x20" + "\0" * 14})))
        assert "3 devices, fifos or sockets were left out" in said, said
        equal(p.names(), ["able", "open", "open/file", "suid"])
        for name, mode in (("suid", 0o755), ("open", 0o755), ("open/file", 0o644), ("able", 0o755)):
            st = os.stat(p.root + "/" + name)
            equal((stat.S_IMODE(st.st_mode), st.st_uid, st.st_gid), (mode, os.getuid(), os.getgid()), name)
        equal(os.listxattr(p.root + "/able"), [])


def with_dictionary(data, code):
    """data as xz, whose reader is told to take a dictionary of another size."""
    made = bytearray(lzma.compress(data, lzma.FORMAT_XZ))
    end = 12 + (made[12] + 1) * 4			# of the header of the first block
    at = made.index(b"\x21\x01", 12) + 2
    made[at] = code
    made[end - 4:end] = zlib.crc32(bytes(made[12:end - 4])).to_bytes(4, "little")
    return bytes(made)


@test
def compressions_are_few_and_take_little(ctx):
    """Some others make libarchive start programs; and a header says how much memory its reader takes."""
    good, _ = LAYERS
    for compressed in gzip.compress(good), lzma.compress(good), bz2.compress(good), with_dictionary(good, 24):
        with place(ctx) as p:
            equal(p.image(docker(compressed, config=config_of([good])))[0], 0)
    for compressed in (lzma.compress(good, lzma.FORMAT_ALONE), b"LRZI\0\6" + bytes(100) + good,
                       b"\x89LZO\0\r\n\x1a\n" + bytes(100) + good):
        with place(ctx) as p:
            p.refused(docker(compressed, config=config_of([good])), "the layer ")
    if "ASAN_OPTIONS" not in os.environ:		# it needs more than the program may have
        with place(ctx) as p:				# 768 MiB
            p.refused(docker(with_dictionary(good, 35), config=config_of([good])), "the layer ")


@test
def what_is_not_what_it_says(ctx):
    good, other = LAYERS
    cases = (
        (docker(good, config=config_of([other])), "is not what the image says: its SHA-256 is " + digest(good)),
        (docker(good, config=config_of([good, other])), "the image has 1 layers, and hashes of 2"),
        (docker(good, config=config_of([good], architecture="s390x")), "the image is for linux and s390x"),
        (docker(good, config=config_of([good], os="windows")), "the image is for windows"),
        (docker(good, images=2), "it holds 2 images"), (docker(good, images=0), "it holds 0 images"),
        (docker(good, names=["x"], config=b"[]"), "hashes of 0"),
        (docker(good).replace(b'"linux"', b'"linuX"'), "is not what its SHA-256 says"),
        (docker(b"this is no archive" * 100), "not a valid archive"),
        (docker(good[:1100], config=config_of([good[:1100]])), "not a valid archive"),
        (b"", "not a valid archive"), (b"nothing" * 1000, "not a valid archive"), (docker(good)[:3000], "valid archive"),
        (tar(entry("manifest.json", data=b'{"a": 1, "a": 2}')), "it is not an image"),
        (tar(entry("manifest.json", data=b"[1]")), ": "),
        (tar(entry("index.json", data=b'{"manifests": [{"digest": "md5:1"}]}')), "without its SHA-256"),
        (tar(entry("index.json", data=b'{"manifests": []}')), "it holds 0 images for this machine"),
        (docker(tar(entry("a\x9b31m\u202e/../b"))), "a\\u009b31m\\u202e"),
    )
    for data, why in cases:
        with place(ctx) as p:
            p.refused(data, why)
    files = oci(good)
    name = next(n for n, data in files.items() if data[:2] == b"\x1f\x8b")
    files[name] = gzip.compress(other)
    with place(ctx) as p:
        p.refused(tar(*(entry(n, data=data) for n, data in files.items())), "is not what the image says")
    two = ({"os": "linux", "architecture": MACHINE},) * 2
    with place(ctx) as p:
        p.refused(tar(*(entry(n, data=data) for n, data in oci(good, platforms=two).items())), "it holds 2 images")


# The N-th allocation fails; those of libarchive, which checks not all of its own, do not count. At
# the end it reports how many there were.
ALLOCATIONS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
static long nth, seen;
__attribute__((constructor)) static void begin(void) { nth = atol(getenv("NTH")); }
__attribute__((destructor)) static void end(void) { if (nth == 0) fprintf(stderr, "%ld", seen); }
static int fails(void *caller)
{
	Dl_info info;
	if (dladdr(caller, &info) && info.dli_fname && strstr(info.dli_fname, "libarchive"))
		return 0;
	errno = ENOMEM;
	return ++seen == nth;
}
#define FAILS fails(__builtin_return_address(0))
void *malloc(size_t size) { return FAILS ? NULL : __libc_malloc(size); }
void *calloc(size_t n, size_t size) { return FAILS ? NULL : __libc_calloc(n, size); }
void *realloc(void *old, size_t size) { return FAILS ? NULL : __libc_realloc(old, size); }
"""


@test
def a_failed_allocation_has_a_message(ctx):
    with place(ctx) as p:
        with open(p.program, "rb") as f:
            if b"__asan_init" in f.read():
                return	# it has an allocator of its own
        archive, source = p.write(docker(tar(entry("etc/a", data=b"b")))), p.write(ALLOCATIONS.encode(), "/a.c")
        library = p.directory + "/a.so"
        subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-o", library, source], check=True)

        def run(nth):
            shutil.rmtree(p.root, ignore_errors=True)
            return subprocess.run([p.program, "--image", archive, p.root], stdin=subprocess.DEVNULL, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60,
                                  env={**os.environ, "LD_PRELOAD": library, "NTH": str(nth)})
        uses = int(run(0).stdout)
        assert uses > 100, uses
        for nth in (*range(1, 60), *range(60, uses + 1, 80)):
            ended = run(nth)
            assert ended.returncode in (0, 1, -6), (nth, ended)
            assert ended.returncode == 0 or ended.stdout.strip(), (nth, ended)


@test
def parts_are_taken_from_the_image_alone(ctx):
    """Of a directory: what its names lead to lies in it."""
    files = oci(*LAYERS)
    name = next(n for n, data in files.items() if data[:2] == b"\x1f\x8b")
    with place(ctx) as p:
        os.makedirs(p.directory + "/layout/blobs/sha256")
        p.write(files.pop(name), "/elsewhere")
        for one, data in files.items():
            p.write(data, "/layout/" + one)
        os.symlink("/" + os.path.relpath(p.directory + "/elsewhere", "/"), p.directory + "/layout/" + name)
        status, said = p.run("--image", p.directory + "/layout")
        assert status == 1 and "the layer " in said, said
        equal(os.path.exists(p.root), False)


main(__doc__)
