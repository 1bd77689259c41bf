# SPDX-License-Identifier: Apache-2.0
"""System calls from inside another process, as code would make them that has taken the process
over. By ptrace, as root, on x86-64: the process is stopped while it waits in a system call, its
registers are lent for one call, and it goes on as if nothing had been."""

import contextlib
import ctypes
import errno
import os
import platform
import signal
import struct

from harness import Skip
from waits import until

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.restype = ctypes.c_long
libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)

SEIZE, INTERRUPT, GETREGS, SETREGS, SINGLESTEP, DETACH = 0x4206, 0x4207, 12, 13, 9, 17
WALL = 0x40000000
REGISTERS = ("r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags "
             "rsp ss fs_base gs_base ds es fs gs").split()
ARGUMENTS = ("rdi", "rsi", "rdx", "r10", "r8", "r9")
BELOW_THE_STACK = 65536		# where texts are put: beyond the red zone, in what is mapped or grows
MASK = (1 << 64) - 1

# asm/unistd_64.h
NUMBERS = {name: number for name, number in (
    ("read", 0), ("open", 2), ("mmap", 9), ("mprotect", 10), ("getpid", 39), ("socket", 41),
    ("getsockopt", 55), ("clone", 56), ("fork", 57), ("vfork", 58), ("execve", 59), ("kill", 62),
    ("ptrace", 101), ("setuid", 105), ("personality", 135), ("pivot_root", 155), ("prctl", 157),
    ("chroot", 161), ("mount", 165), ("umount2", 166), ("rename", 82), ("unlink", 87), ("reboot", 169), ("init_module", 175),
    ("tkill", 200), ("tgkill", 234), ("kexec_load", 246), ("add_key", 248), ("keyctl", 250),
    ("openat", 257), ("unshare", 272), ("perf_event_open", 298), ("open_by_handle_at", 304),
    ("setns", 308), ("process_vm_readv", 310), ("process_vm_writev", 311), ("kcmp", 312),
    ("bpf", 321), ("execveat", 322), ("userfaultfd", 323), ("io_uring_setup", 425),
    ("open_tree", 428), ("move_mount", 429), ("fsopen", 430), ("pidfd_open", 434),
    ("clone3", 435), ("pidfd_getfd", 438), ("connect", 42), ("bind", 49), ("fcntl", 72), ("chmod", 90),
    ("fchmodat", 268), ("utimensat", 280), ("pidfd_send_signal", 424))}


def ptrace(request, pid, data=0):
    ctypes.set_errno(0)
    done = libc.ptrace(request, pid, None, data)
    if done == -1 and ctypes.get_errno():
        raise OSError(ctypes.get_errno(), "ptrace %#x" % request)


@contextlib.contextmanager
def thread_held(pid, name):
    """The one thread of the process with this name does nothing; its other threads go on."""
    if os.getuid():
        raise Skip("needs root")
    found = []
    for tid in map(int, os.listdir("/proc/%d/task" % pid)):
        with open("/proc/%d/task/%d/comm" % (pid, tid), encoding="utf-8") as f:
            if f.read().rstrip("\n") == name:
                found.append(tid)
    tid, = found
    ptrace(SEIZE, tid)
    try:
        ptrace(INTERRUPT, tid)
        os.waitpid(tid, WALL)
        yield
    finally:
        ptrace(DETACH, tid)


class Inside:
    """with Inside(pid) as it: it.call("kill", 1, 0) is 0, or the name of an errno."""

    def __init__(self, pid):
        if os.getuid() or platform.machine() != "x86_64":
            raise Skip("needs root, and x86-64")
        self.pid = pid

    def __enter__(self):
        until("%d waits in a system call" % self.pid, self.is_entered)
        return self

    def is_entered(self):
        ptrace(SEIZE, self.pid)
        try:
            ptrace(INTERRUPT, self.pid)
            os.waitpid(self.pid, WALL)
            self.before = self.registers()
            if self.read(self.before["rip"] - 2, 2) == b"\x0f\x05":
                return True
        except BaseException:
            self.detach()
            raise
        self.detach()	# it computes; it will wait for something soon
        return False

    def __exit__(self, *_):
        self.set_registers(self.before)
        self.detach()

    def detach(self):
        ptrace(DETACH, self.pid)

    def registers(self):
        buffer = (ctypes.c_uint64 * len(REGISTERS))()
        ptrace(GETREGS, self.pid, ctypes.addressof(buffer))
        return dict(zip(REGISTERS, buffer))

    def set_registers(self, values):
        buffer = (ctypes.c_uint64 * len(REGISTERS))(*(values[name] for name in REGISTERS))
        ptrace(SETREGS, self.pid, ctypes.addressof(buffer))

    def read(self, at, size):
        with open("/proc/%d/mem" % self.pid, "rb", buffering=0) as memory:
            memory.seek(at)
            return memory.read(size)

    def text(self, value, place=0):
        """The address of a text in its memory, good until the next one at this place."""
        at = (self.before["rsp"] - BELOW_THE_STACK + 512 * place) & ~15
        with open("/proc/%d/mem" % self.pid, "r+b", buffering=0) as memory:
            memory.seek(at)
            memory.write(value.encode() + b"\0")
        return at

    def call(self, name, *arguments):
        values = dict(self.before, rip=self.before["rip"] - 2, rax=NUMBERS[name],
                      orig_rax=MASK)
        for register, value in zip(ARGUMENTS, arguments + (0,) * 6):
            values[register] = value & MASK
        self.set_registers(values)
        stopped = None
        while stopped != signal.SIGTRAP:	# a signal stops it before the call is made
            ptrace(SINGLESTEP, self.pid)
            stopped = os.WSTOPSIG(os.waitpid(self.pid, WALL)[1])
        (result,) = struct.unpack("q", struct.pack("Q", self.registers()["rax"]))
        if -4096 < result < 0:
            return errno.errorcode.get(-result, str(-result))
        return result
