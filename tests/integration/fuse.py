# SPDX-License-Identifier: Apache-2.0
"""A place for volumes: what suites with a service that has some share."""

import contextlib
import os
import shutil
import stat
import tempfile

from harness import Skip


@contextlib.contextmanager
def place():
    """A directory for volumes, and a device like the one that udev makes."""
    directory = tempfile.mkdtemp(prefix="volumes-")
    os.chmod(directory, 0o755)
    try:
        if os.getuid() == 0:
            node = os.path.join(directory, "fuse")
            os.mknod(node, 0o666 | stat.S_IFCHR, os.makedev(10, 229))
            os.chmod(node, 0o666)
            os.mkdir(os.path.join(directory, "for"))
            os.chmod(os.path.join(directory, "for"), 0o777)
        yield os.path.join(directory, "for", "volumes") if os.getuid() == 0 else \
            os.path.join(directory, "volumes")
    finally:
        shutil.rmtree(directory)


def wrap(store, disk=None):
    """The command that starts the service with that device in its place; disk: options of a tmpfs
    on which the volumes are."""
    if os.getuid():
        if not os.access("/dev/fuse", os.R_OK | os.W_OK):
            raise Skip("/dev/fuse is for root alone here", missing=False)
        return ()
    node = os.path.join(os.path.dirname(os.path.dirname(store)), "fuse")
    mount = "mount -t tmpfs -o %s,mode=777 none '%s' && " % (disk, os.path.dirname(store)) if disk else ""
    return ("unshare", "-m", "--propagation", "private", "sh", "-c",
            mount + 'mount --bind "$0" /dev/fuse && exec "$@"', node)


@contextlib.contextmanager
def service(ctx, store, more="", before="", disk=None, **options):
    config = "%s[workspace]\nvolume = yes\ndirectory = %s\n%s" % (before, store, more)
    if not os.path.exists("/dev/fuse"):
        raise Skip("no /dev/fuse", missing=True)
    with ctx.private(config, wrap=wrap(store, disk), **options) as s:
        yield s
