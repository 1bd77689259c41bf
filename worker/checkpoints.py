# SPDX-License-Identifier: Apache-2.0
"""The files of checkpoints and branches: copies of /workspace, which a restore brings back, and
which a branch begins with (worker/trees.c).

Frozen into the program like worker/bootstrap.py, and run in the same namespace, in a copy of the
state that ends afterwards, with the rights of the script: the copies are the script's own data.
"""

import contextlib
import os
import time
from stat import S_IMODE, S_ISDIR, S_ISFIFO, S_ISLNK, S_ISREG

FILES_MOST, BYTES_MOST = 2000, 64 << 20		# of a checkpoint
SECONDS_MOST = 6				# the supervisor waits a little longer (FILES_MS)
KEPT = "/run/home/.checkpoints"
BRANCHES = "/run/home/.branches"
PLACE = "/run/workspace"			# what /workspace shows; links may name either


class Changed(Exception):
    """A file is not what it was when the copy began."""


class Large(Exception):
    """The files are more than may be copied."""


class Missing(Exception):
    """The checkpoint has no files."""


def measure_tree(place, count_most, size_most):
    """Raises Large if the entries below place are more, or take up more bytes."""
    seen, count, size = set(), 0, 0
    for at, dirs, files in os.walk(place):
        for name in dirs + files:
            found = os.lstat(os.path.join(at, name))
            count += 1
            if found.st_nlink == 1 or S_ISDIR(found.st_mode) or found.st_ino not in seen:
                size += found.st_blocks * 512
            if found.st_nlink > 1:
                seen.add(found.st_ino)
            if count > count_most or size > size_most:
                raise Large


def free_room():
    """The entries and the bytes that a branch may copy: half of what the session has left."""
    disk = os.statvfs(PLACE)
    with open("/proc/meminfo") as total, open("/proc/self/statm") as own:
        memory = int(total.readline().split()[1]) * 1024
        memory -= int(own.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    memory -= (disk.f_blocks - disk.f_bfree) * disk.f_frsize
    return disk.f_favail // 2, max(0, min(memory, disk.f_bavail * disk.f_frsize)) // 2


def is_same(one, other):
    return (one.st_ino, one.st_size, one.st_mtime_ns) == (other.st_ino, other.st_size,
                                                          other.st_mtime_ns)


@contextlib.contextmanager
def opened_up(path, found, mode):
    """Gives the owner the rights for as long as the block runs."""
    lacks = found.st_mode & mode != mode
    if lacks:
        os.chmod(path, S_IMODE(found.st_mode) | mode)
    try:
        yield
    finally:
        if lacks:
            os.chmod(path, S_IMODE(found.st_mode))


def copy_data(source, target, size):
    """Copies the bytes that there are: holes stay holes."""
    os.ftruncate(target, size)
    at = 0
    while at < size:
        try:
            at = os.lseek(source, at, os.SEEK_DATA)
        except OSError:		# a hole to the end
            return
        end = os.lseek(source, at, os.SEEK_HOLE)
        os.lseek(target, at, os.SEEK_SET)
        while at < end:
            n = os.sendfile(target, source, at, end - at)
            if n == 0:
                raise Changed
            at += n


def copy_file(path, to, found):
    with opened_up(path, found, 0o400):
        source = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        target = os.open(to, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            copy_data(source, target, found.st_size)
        finally:
            os.close(target)
        if not is_same(os.fstat(source), found):
            raise Changed
    finally:
        os.close(source)


def dress(path, found):
    """Gives a copy the mode and the times of what it was made from."""
    if not S_ISLNK(found.st_mode):
        os.chmod(path, S_IMODE(found.st_mode))
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns), follow_symlinks=False)


def copy_entry(path, to, found, linked):
    """Copies what is no directory. linked: the copies of files with several names, by inode. A
    socket has no copy: it belongs to the process that listens on it."""
    if found.st_ino in linked:
        os.link(linked[found.st_ino], to, follow_symlinks=False)
        return
    if S_ISREG(found.st_mode):
        copy_file(path, to, found)
    elif S_ISLNK(found.st_mode):
        os.symlink(os.readlink(path), to)
    elif S_ISFIFO(found.st_mode):
        os.mkfifo(to, 0o600)
    else:
        return
    if found.st_nlink > 1:
        linked[found.st_ino] = to
    dress(to, found)


def copy_tree(place, to):
    """Copies all below the directory place into the directory to."""
    late = time.monotonic() + SECONDS_MOST
    linked, waiting, done = {}, [(place, to)], []
    while waiting:
        source, target = waiting.pop()
        before = os.lstat(source)
        with opened_up(source, before, 0o500):
            for entry in os.scandir(source):
                found = os.lstat(entry.path)
                at = os.path.join(target, entry.name)
                if S_ISDIR(found.st_mode):
                    os.mkdir(at, 0o700)
                    waiting.append((entry.path, at))
                else:
                    copy_entry(entry.path, at, found, linked)
                if time.monotonic() > late:
                    raise TimeoutError
        done.append((source, target, before))
    for source, target, before in reversed(done):
        if not is_same(os.lstat(source), before):
            raise Changed
        dress(target, before)


def remove_tree(path):
    """Removes what it can. Without shutil, whose import takes time at the start of each zygote; and
    here the script may have a file of that name."""
    if os.path.islink(path):
        return
    for at, dirs, files in os.walk(path, topdown=False):
        for entry in [os.path.join(at, name) for name in dirs + files]:
            with contextlib.suppress(OSError):
                (os.unlink if not os.path.isdir(entry) or os.path.islink(entry) else os.rmdir)(entry)
    with contextlib.suppress(OSError):
        os.rmdir(path)


def empty(place):
    for entry in list(os.scandir(place)):
        if entry.is_dir(follow_symlinks=False):
            remove_tree(entry.path)
        else:
            os.unlink(entry.path)


def make_copy(source, folder, number, name):
    """Copies source to the folder, under that name when the copy is complete."""
    making, made = "%s/making-%d" % (folder, number), "%s/%s" % (folder, name)
    for path in making, made:
        remove_tree(path)
    try:
        os.makedirs(making, 0o700)
        copy_tree(source, making)
        os.rename(making, made)
    except BaseException:
        remove_tree(making)
        raise


def keep_files(number):
    """Keeps a copy of all files for a checkpoint. What was kept before is dropped."""
    remove_tree("%s/%d" % (KEPT, number))
    measure_tree(PLACE, FILES_MOST, BYTES_MOST)
    make_copy(PLACE, KEPT, number, str(number))


def restore_files(number):
    kept = "%s/%d" % (KEPT, number)
    if not os.path.isdir(kept):
        raise Missing
    empty(PLACE)
    copy_tree(kept, PLACE)


def branch_files(number, checkpoint=None):
    """Makes the copy that a branch begins with, of all files or of those of a checkpoint."""
    source = PLACE if checkpoint is None else "%s/%d" % (KEPT, checkpoint)
    if not os.path.isdir(source):
        raise Missing
    measure_tree(source, *free_room())
    make_copy(source, BRANCHES, number, "new-%d" % number)


def order_files(order):
    """Does what the order says: "keep N", "restore N", "branch N" or "branch N CHECKPOINT". Returns
    the same as run_cell(); the value is a word for what became of it."""
    verb, *numbers = order.decode().split()
    does = {"keep": keep_files, "restore": restore_files, "branch": branch_files}[verb]
    try:
        does(*map(int, numbers))
        did = "copied"
    except Large:
        did = "large"
    except TimeoutError:
        did = "late"
    except Missing:
        did = "none"
    except (Changed, FileNotFoundError):
        did = "changed"
    except (OSError, MemoryError):
        did = "room"
    flush_output()
    return (0, False, repr(did).encode(), b'"%s"' % did.encode(), False, True, *[None] * 4, None)
