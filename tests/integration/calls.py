# SPDX-License-Identifier: Apache-2.0
"""System calls by name. Scripts of the corpora write them by their numbers of x86-64; elsewhere such a
number is another call, or none, and what a script proves with it is worth nothing."""

import ctypes
import functools
import platform

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}	# AUDIT_ARCH_...
HERE = platform.machine()
LAST_OF_ITS_OWN = 423	# later calls have the same number on every machine
NONE = 0x3fffffff	# in place of a call that a machine lacks: no kernel knows it

# In front of a script: libc's syscall() takes numbers of x86-64.
PRELUDE = """\
def _calls_by_name(numbers):
    import ctypes
    usual = ctypes.CDLL.__getattr__
    def find(library, name):
        function = usual(library, name)
        if name != "syscall":
            return function
        def syscall(number, *arguments):
            number = getattr(number, "value", number)
            return function(ctypes.c_long(numbers.get(number, number)), *arguments)
        library.syscall = syscall
        return syscall
    ctypes.CDLL.__getattr__ = find
_calls_by_name(%r)
"""


def _seccomp():
    library = ctypes.CDLL("libseccomp.so.2")
    library.seccomp_syscall_resolve_num_arch.restype = ctypes.c_void_p	# malloc'd
    return library


def numbers(machine=HERE, of="x86_64"):
    """{number of a call on one machine: its number on another}, where they differ."""
    library, found = _seccomp(), {}
    libc = ctypes.CDLL(None)
    for number in range(LAST_OF_ITS_OWN + 1):
        name = library.seccomp_syscall_resolve_num_arch(ARCHITECTURES[of], number)
        if not name:
            continue
        there = library.seccomp_syscall_resolve_name_arch(ARCHITECTURES[machine], ctypes.c_char_p(name))
        libc.free(ctypes.c_void_p(name))
        there = there if there >= 0 else NONE
        if there != number:
            found[number] = there
    return found


@functools.cache
def number(name):
    """A call's number on this machine."""
    found = _seccomp().seccomp_syscall_resolve_name(name.encode())
    assert found >= 0, "no call %s" % name
    return found


def by_name(script):
    """A script with numbers of x86-64, for this machine."""
    if HERE == "x86_64" or "syscall" not in script:
        return script
    return PRELUDE % numbers() + script
