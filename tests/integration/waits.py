# SPDX-License-Identifier: Apache-2.0
"""How tests wait: for an event, with a bound that a test which passes never reaches. A wait that
fails says what it has waited for."""

import contextlib
import ctypes
import os
import select
import time

libc = ctypes.CDLL(None, use_errno=True)
IN_MODIFY, IN_ATTRIB, IN_MOVED_TO, IN_CREATE, IN_DELETE = 0x2, 0x4, 0x80, 0x100, 0x200
IN_CHANGED = IN_MODIFY | IN_ATTRIB | IN_MOVED_TO | IN_CREATE | IN_DELETE
PAUSE_S, PAUSE_MOST_S = 0.02, 0.1
bound = 60.0	# seconds, for a wait that names no bound; harness.py stretches it by --slow


class Timeout(AssertionError):
    """What a test waited for has not come in time."""


def pause(left, waited=0.0):
    """The wait for what gives no event: processes and descriptors that are not the test's, and
    answers that change from one question to the next. What has taken long is asked for less often: each
    look reads /proc or asks the service."""
    time.sleep(min(left, max(PAUSE_S, min(PAUSE_MOST_S, waited / 10))))


def at_once(left):
    """The wait between two questions that are a round trip each."""


def until(what, condition, seconds=None, wait=pause):
    """The first value of condition() that is true. what: the words for it, or a function that
    makes them. wait(left): until the next event, for at most so many seconds."""
    if seconds is None:
        seconds = bound
    end = time.monotonic() + seconds
    while not (value := condition()):
        left = end - time.monotonic()
        if left <= 0:
            raise Timeout("not within %g s: %s (last: %.1000r)" % (
                seconds, what() if callable(what) else what, value))
        if wait is pause:
            pause(left, seconds - left)
        else:
            wait(left)
    return value


def until_equal(what, get, want, seconds=None, wait=pause):
    """Until get() is want."""
    got = None

    def is_equal():
        nonlocal got
        got = get()
        return got == want
    until(lambda: "%s is %.1000r, not %.1000r" % (what, got, want), is_equal, seconds, wait)


def ready(fds, left):
    """Those of these descriptors that can be read, or have ended, as soon as there are some. Unlike
    select(2) it takes large numbers, too."""
    poll = select.poll()
    for fd in fds:
        poll.register(fd, select.POLLIN)
    return [fd for fd, _ in poll.poll(max(0, left) * 1000)]


@contextlib.contextmanager
def changes(*paths, mask=IN_CHANGED):
    """A wait for until(): the next change of these files, or in these directories."""
    fd = libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
    if fd < 0:
        raise OSError(ctypes.get_errno(), "inotify")
    try:
        for path in paths:
            if libc.inotify_add_watch(fd, os.fsencode(path), mask) < 0:
                raise OSError(ctypes.get_errno(), "inotify: %s" % path)

        def wait(left, *more):
            """more: further descriptors that may end the wait."""
            if fd in ready([fd, *more], left):
                os.read(fd, 65536)
        yield wait
    finally:
        os.close(fd)


def one_ended(pids, left):
    """Until one of these processes has ended or is gone already, for so many seconds at most. True:
    one has, or there is none: the last may have ended after its caller looked."""
    if not pids:
        return True
    with contextlib.ExitStack() as opened:
        fds = []
        for pid in pids:
            try:
                fds.append(os.pidfd_open(pid))
            except ProcessLookupError:
                return True
            opened.callback(os.close, fds[-1])
        return bool(ready(fds, left))
