# SPDX-License-Identifier: Apache-2.0
"""The files of checkpoints: copies of /workspace, which a restore brings back.

Frozen into the program like worker/bootstrap.py, and run in the same namespace, in a copy of the
state that ends afterwards, with the rights of the script: the copies are the script's own data.
"""

import os
import shutil
from stat import S_ISDIR, S_ISLNK, S_ISREG

FILES_MOST, BYTES_MOST = 2000, 64 << 20
KEPT = "/run/home/.checkpoints"
PLACE = "/workspace"


def measure_tree(place):
    """The number of entries and the bytes of the files below place; as soon as they are too many,
    those counted until then."""
    count = size = 0
    for at, dirs, files in os.walk(place):
        for name in dirs + files:
            found = os.lstat(os.path.join(at, name))
            count += 1
            size += found.st_size if S_ISREG(found.st_mode) else 0
            if count > FILES_MOST or size > BYTES_MOST:
                return count, size
    return count, size


def special(at, names):
    """What is neither a file nor a directory nor a link."""
    def is_special(name):
        mode = os.lstat(os.path.join(at, name)).st_mode
        return not (S_ISREG(mode) or S_ISDIR(mode) or S_ISLNK(mode))
    return {name for name in names if is_special(name)}


def copy_tree(place, to):
    shutil.copytree(place, to, symlinks=True, ignore=special, dirs_exist_ok=True)


def empty(place):
    for entry in list(os.scandir(place)):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path, ignore_errors=True)
        else:
            os.unlink(entry.path)


def keep_files(kept):
    """Keeps a copy of all files, if they are not too large. What was kept before is dropped."""
    shutil.rmtree(kept, ignore_errors=True)
    count, size = measure_tree(PLACE)
    if count > FILES_MOST or size > BYTES_MOST:
        return False
    try:
        os.makedirs(os.path.dirname(kept), 0o700, exist_ok=True)
        copy_tree(PLACE, kept)
    except (OSError, shutil.Error, MemoryError):
        shutil.rmtree(kept, ignore_errors=True)
        return False
    return True


def restore_files(kept):
    if not os.path.isdir(kept):
        return False
    empty(PLACE)
    copy_tree(kept, PLACE)
    return True


def order_files(order):
    """Does what the order says, "keep N" or "restore N". Returns the same as run_cell(); the value
    is whether there are copies of the files."""
    verb, number = order.decode().split()
    did = {"keep": keep_files, "restore": restore_files}[verb]("%s/%d" % (KEPT, int(number)))
    flush_output()
    return (0, False, repr(did).encode(), b"true" if did else b"false", False, True, *[None] * 4, None)
