/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the zygote (begin, end), a child of it (compile) and every worker (enter).
 * Owns:    the child and what it shares with it.
 * The table lists the system calls that a script's process may make, and why. */
#include "worker/seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/own.h"

#ifdef __NR_arch_prctl
#include <asm/prctl.h>
#endif

#ifndef FUTEX_LOCK_PI2
#define FUTEX_LOCK_PI2 13		/* since Linux 5.14 */
#endif
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77			/* since Linux 6.5 */
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25		/* since Linux 6.1 */
#endif
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102		/* since Linux 6.13; 103: MADV_GUARD_REMOVE */
#endif

#define NEW_NAMESPACES ((uint64_t)(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | \
	CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET))
/* Without RWF_NOWAIT, which reveals what others have read, and RWF_DONTCACHE, which reads from
 * the disk each time. */
#define RW_FLAGS ((uint64_t)(RWF_HIPRI | RWF_DSYNC | RWF_SYNC | RWF_APPEND))
#define PIPE_BYTES 65536		/* pipe(7) */
#define SOCKET_FLAGS ((uint64_t)(SOCK_NONBLOCK | SOCK_CLOEXEC))

#define ROW(name, answer, why)	.call = name, .verdict = answer, .reason = why
#define ALLOW(name, why)	{ ROW(name, SECCOMP_ALLOW, why) }
#define REFUSE(name, why)	{ ROW(name, SECCOMP_EPERM, why) }
#define ABSENT(name, why)	{ ROW(name, SECCOMP_ENOSYS, why) }
#define PRETEND(name, why)	{ ROW(name, SECCOMP_PRETEND, why) }
#define ALLOW_OLD(name, why)	{ ROW(name, SECCOMP_ALLOW, why), .some_machines = true }
#define REFUSE_OLD(name, why)	{ ROW(name, SECCOMP_EPERM, why), .some_machines = true }
#define COUNTED_IF(name, which, mask, value, why) \
	{ ROW(name, SECCOMP_ALLOW, why), .where = WHERE_COUNTED, \
	  .when = { BITS(which, mask, value) } }
#define IS(which, value)		{ which, SCMP_CMP_EQ, value, 0 }
#define BITS(which, mask, value)	{ which, SCMP_CMP_MASKED_EQ, mask, value }
#define UP_TO(which, value)		{ which, SCMP_CMP_LE, value, 0 }
#define AT_LEAST(which, value)		{ which, SCMP_CMP_GE, value, 0 }
#define ABOVE(which, value)		{ which, SCMP_CMP_GT, value, 0 }
#define IF(name, answer, which, mask, value, why) \
	{ ROW(name, answer, why), .when = { BITS(which, mask, value) } }
#define ALLOW_IF(name, which, value, why) \
	{ ROW(name, SECCOMP_ALLOW, why), .when = { IS(which, value) } }
#define REFUSE_IF(name, which, value, why) \
	{ ROW(name, SECCOMP_EPERM, why), .when = { IS(which, value) } }
#define ALLOW_UP_TO(name, which, value, why) \
	{ ROW(name, SECCOMP_ALLOW, why), .when = { UP_TO(which, value) } }
#define PAIR(name, answer, which, even, why)	/* even and even + 1 */ \
	IF(name, answer, which, ~(uint64_t)1, even, why)
#define MAPPING(answer, value, why) \
	{ ROW("mmap", answer, why), .where = WHERE_NOT_COUNTED, \
	  .when = { BITS(3, MAP_SHARED | MAP_ANONYMOUS | MAP_HUGETLB, value) } }
#define TERMINAL(request, why) \
	{ ROW("ioctl", SECCOMP_ALLOW, why), .where = WHERE_TERMINALS, .when = { IS(1, request) } }
#define HUGE_PAGES(name, which, flag) \
	IF(name, SECCOMP_EPERM, which, flag, flag, "the host's pool, which no worker's limits count")
#define PAST_CACHE(name, which) \
	IF(name, SECCOMP_EINVAL, which, O_DIRECT, O_DIRECT, \
	   "the host's disk at every read; file systems without it say so")
#define THROUGH_CACHE(name, which)	IF(name, SECCOMP_ALLOW, which, O_DIRECT, 0, "files")
#define OF_INIT(name, which) \
	IF(name, SECCOMP_EPERM, which, UINT32_MAX, 1, "init is the jail's, and of the script's uid")
#define NOT_OF_INIT(name, which, why) \
	OF_INIT(name, which), \
	{ ROW(name, SECCOMP_ALLOW, why), .when = { AT_LEAST(which, 0) } }
#define RLIMITS(mask, value) \
	IF("setrlimit", SECCOMP_ALLOW, 0, mask, value, "hard limits only go down"), \
	{ ROW("prlimit64", SECCOMP_ALLOW, "hard limits only go down"), \
	  .when = { AT_LEAST(0, 0), BITS(1, mask, value) } }
#define CORE_IS_ONE "any other limit of core files starts the host's core handler, if there is one"
#define SCHEDULER(policy) \
	{ ROW("sched_setscheduler", SECCOMP_ALLOW, "the ordinary classes"), \
	  .when = { AT_LEAST(0, 0), IS(1, policy) } }
#define OPTION_(place, answer, level, option, why) \
	{ ROW("setsockopt", answer, why), .where = place, .when = { IS(1, level), IS(2, option) } }
#define OPTION(level, option, why)	OPTION_(EVERYWHERE, SECCOMP_ALLOW, level, option, why)
#define OPTIONS_UP_TO(level, last, why) \
	{ ROW("setsockopt", SECCOMP_ALLOW, why), .when = { IS(1, level), UP_TO(2, last) } }
#define EIGHT_OPTIONS(level, first, why) \
	{ ROW("setsockopt", SECCOMP_ALLOW, why), \
	  .when = { IS(1, level), BITS(2, ~(uint64_t)7, first) } }
#define BUFFER_SIZE(option) \
	OPTION_(EVERYWHERE, SECCOMP_PRETEND, SOL_SOCKET, option, \
		"kernel memory, some of which nothing counts; as good as the default")
#define IN_BAND(name, which) \
	IF(name, SECCOMP_ALLOW, which, MSG_OOB, 0, "loopback"), \
	IF(name, SECCOMP_EOPNOTSUPP, which, MSG_OOB, MSG_OOB, "as of a socket without such data")
/* Not those that move waiting threads to a lock with inheritance of priority. */
#define FUTEX(mask, operation) \
	IF("futex", SECCOMP_ALLOW, 1, (mask) & ~(uint64_t)(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME), \
	   operation, "every lock of the interpreter")
#define NO_SYSV "kernel memory of its own kind; multiprocessing has no use for it"
#define SOCKET(family, type, protocol, why) \
	{ ROW("socket", SECCOMP_ALLOW, why), \
	  .when = { IS(0, family), BITS(1, ~SOCKET_FLAGS, type), IS(2, protocol) } }

/* Rows of one call may overlap. Of the matching rows libseccomp takes one that compares for
 * equality, with or without a mask, before one with a range; their order does not count. Two rows
 * of one kind with different answers must not overlap. test-seccomp executes the result. */
static const struct seccomp_row rows[] = {
	/* ---- files; the file tree and Landlock determine which ---- */
	ALLOW("read", "files"),			ALLOW("write", "files"),
	ALLOW("readv", "files"),		ALLOW("writev", "files"),
	ALLOW("pread64", "files"),		ALLOW("pwrite64", "files"),
	ALLOW("preadv", "files"),		ALLOW("pwritev", "files"),
	IF("preadv2", SECCOMP_ALLOW, 5, ~RW_FLAGS, 0, "files"),
	IF("pwritev2", SECCOMP_ALLOW, 5, ~RW_FLAGS, 0, "files"),
	PAST_CACHE("openat", 2),		THROUGH_CACHE("openat", 2),
#ifdef __NR_open
	PAST_CACHE("open", 1),			THROUGH_CACHE("open", 1),
#endif
	ABSENT("openat2", "its flags are out of a filter's reach; libraries fall back to openat"),
	ALLOW_OLD("creat", "files"),
	ALLOW("close", "files"),		ALLOW("close_range", "files"),
	ALLOW("dup", "files"),			ALLOW_OLD("dup2", "files"),
	ALLOW("dup3", "files"),
	ALLOW_UP_TO("fcntl", 1, 63, "files"),
	{ ROW("fcntl", SECCOMP_EINVAL, "as in open; of a pipe it would have made packets"),
	  .when = { IS(1, F_SETFL), BITS(2, O_DIRECT, O_DIRECT) } },
	ALLOW_IF("fcntl", 1, F_DUPFD_CLOEXEC, "files"),
	ALLOW_IF("fcntl", 1, F_GETPIPE_SZ, "pipes"),
	{ ROW("fcntl", SECCOMP_ALLOW, "pipes, up to what a new one has"), .where = WHERE_OWN_UID,
	  .when = { IS(1, F_SETPIPE_SZ), UP_TO(2, PIPE_BYTES) } },
	{ ROW("fcntl", SECCOMP_EPERM, "what all pipes of a uid may hold is one budget: that of the "
	  "service for standard output, and of all workers where they share a uid"),
	  .when = { IS(1, F_SETPIPE_SZ), AT_LEAST(2, 0) } },
	ALLOW_IF("fcntl", 1, F_ADD_SEALS, "memfd"), ALLOW_IF("fcntl", 1, F_GET_SEALS, "memfd"),
	ALLOW_IF("fcntl", 1, F_GETLEASE, "looks only"),
	REFUSE_IF("fcntl", 1, F_SETLEASE, "would hold up others' use of shared files"),
	REFUSE_IF("fcntl", 1, F_NOTIFY, "would tell of others' use of shared files"),
	ALLOW("flock", "files"),		ALLOW("lseek", "files"),
	ALLOW_OLD("stat", "files"),		ALLOW("fstat", "files"),
	ALLOW_OLD("lstat", "files"),		ALLOW("newfstatat", "files"),
	ALLOW("statx", "files"),		ALLOW("statfs", "files"),
	ALLOW("fstatfs", "files"),		ALLOW_OLD("access", "files"),
	ALLOW("faccessat", "files"),		ALLOW("faccessat2", "files"),
	ALLOW_OLD("readlink", "files"),		ALLOW("readlinkat", "files"),
	ALLOW_OLD("getdents", "files"),		ALLOW("getdents64", "files"),
	ALLOW("getcwd", "files"),		ALLOW("chdir", "files"),
	ALLOW("fchdir", "files"),		ALLOW_OLD("mkdir", "files"),
	ALLOW("mkdirat", "files"),		ALLOW_OLD("rmdir", "files"),
	ALLOW_OLD("unlink", "files"),		ALLOW("unlinkat", "files"),
	ALLOW_OLD("rename", "files"),		ALLOW_OLD("renameat", "files"),
	ALLOW("renameat2", "files"),		ALLOW_OLD("link", "files"),
	ALLOW("linkat", "files"),		ALLOW_OLD("symlink", "files"),
	ALLOW("symlinkat", "files"),		ALLOW_OLD("chmod", "files"),
	ALLOW("fchmod", "files"),		ALLOW("fchmodat", "files"),
	ALLOW_OLD("chown", "files"),		ALLOW("fchown", "files"),
	ALLOW_OLD("lchown", "files"),		ALLOW("fchownat", "files"),
	ALLOW_OLD("utime", "files"),		ALLOW_OLD("utimes", "files"),
	ALLOW_OLD("futimesat", "files"),	ALLOW("utimensat", "files"),
	ALLOW("truncate", "files"),		ALLOW("ftruncate", "files"),
	ALLOW("fallocate", "files"),		ALLOW("readahead", "files"),
	ALLOW_UP_TO("fadvise64", 3, POSIX_FADV_NOREUSE, "files"),
	{ ROW("fadvise64", SECCOMP_PRETEND, "would drop from memory what others read"),
	  .when = { IS(3, POSIX_FADV_DONTNEED) } },
	PRETEND("fsync", "would flush the host's disk; what a script writes is memory (worker/sync.c)"),
	PRETEND("fdatasync", "would flush the host's disk"),
	PRETEND("sync_file_range", "would write out a file of the host"),
	ALLOW("umask", "files"),		ALLOW("copy_file_range", "files"),
	ALLOW("sendfile", "files"),
	ABSENT("splice", "puts pages of shared files into pipes; os.splice is for kernels that have it"),
	ALLOW("tee", "a session's copy has what waits in a pipe (worker/descriptors.c)"),
	ALLOW("getxattr", "shutil.copystat"),	ALLOW("lgetxattr", "shutil.copystat"),
	ALLOW("fgetxattr", "shutil.copystat"),	ALLOW("setxattr", "shutil.copystat"),
	ALLOW("lsetxattr", "shutil.copystat"),	ALLOW("fsetxattr", "shutil.copystat"),
	ALLOW("listxattr", "shutil.copystat"),	ALLOW("llistxattr", "shutil.copystat"),
	ALLOW("flistxattr", "shutil.copystat"),	ALLOW("removexattr", "os.removexattr"),
	ALLOW("lremovexattr", "os.removexattr"), ALLOW("fremovexattr", "os.removexattr"),
	REFUSE_OLD("inotify_init", "would tell of others' use of shared files"),
	REFUSE("inotify_init1", "would tell of others' use of shared files"),
	REFUSE("inotify_add_watch", "would tell of others' use of shared files"),
	PRETEND("sync", "would write out the whole machine's disks"),
	PRETEND("syncfs", "would write out a file system of the host"),
	IF("mknodat", SECCOMP_ALLOW, 2, S_IFMT, S_IFIFO, "os.mkfifo"),
	IF("mknodat", SECCOMP_ALLOW, 2, S_IFMT, S_IFREG, "a plain file"),
	IF("mknodat", SECCOMP_ALLOW, 2, S_IFMT, 0, "a plain file"),
	IF("mknodat", SECCOMP_EPERM, 2, S_IFMT, S_IFCHR, "devices"),
	IF("mknodat", SECCOMP_EPERM, 2, S_IFMT, S_IFBLK, "devices"),
#ifdef __NR_mknod
	IF("mknod", SECCOMP_ALLOW, 1, S_IFMT, S_IFIFO, "os.mkfifo"),
	IF("mknod", SECCOMP_ALLOW, 1, S_IFMT, S_IFREG, "a plain file"),
	IF("mknod", SECCOMP_ALLOW, 1, S_IFMT, 0, "a plain file"),
	IF("mknod", SECCOMP_EPERM, 1, S_IFMT, S_IFCHR, "devices"),
	IF("mknod", SECCOMP_EPERM, 1, S_IFMT, S_IFBLK, "devices"),
#endif

	/* ---- waiting ---- */
	ALLOW_OLD("poll", "waiting"),		ALLOW("ppoll", "waiting"),
	ALLOW_OLD("select", "waiting"),		ALLOW("pselect6", "waiting"),
	ALLOW_OLD("epoll_create", "waiting"),	ALLOW("epoll_create1", "waiting"),
	ALLOW("epoll_ctl", "waiting"),		ALLOW_OLD("epoll_wait", "waiting"),
	ALLOW("epoll_pwait", "waiting"),	ALLOW("epoll_pwait2", "waiting"),
	ALLOW_OLD("eventfd", "waiting"),	ALLOW("eventfd2", "waiting"),
	ALLOW_OLD("signalfd", "waiting"),	ALLOW("signalfd4", "waiting"),
	ALLOW("timerfd_create", "waiting"),	ALLOW("timerfd_settime", "waiting"),
	ALLOW("timerfd_gettime", "waiting"),	ALLOW_OLD("pipe", "subprocess"),
	ALLOW("pipe2", "subprocess"),		ALLOW("nanosleep", "time.sleep"),
	ALLOW("clock_nanosleep", "time.sleep"),	ALLOW("restart_syscall", "the kernel's own"),

	/* ---- memory ---- */
	ALLOW("brk", "memory"),
	HUGE_PAGES("mmap", 3, MAP_HUGETLB),	COUNTED_IF("mmap", 3, MAP_HUGETLB, 0, "memory"),
	MAPPING(SECCOMP_ALLOW, 0, "files"),
	MAPPING(SECCOMP_ALLOW, MAP_SHARED, "files"),
	MAPPING(SECCOMP_ALLOW, MAP_ANONYMOUS, "memory, within RLIMIT_DATA"),
	MAPPING(SECCOMP_EPERM, MAP_SHARED | MAP_ANONYMOUS, "memory that nothing counts once it is "
		"out of sight; worker/sharedmap.c has a file in its place"),
	ALLOW("munmap", "memory"),		ALLOW("mremap", "memory"),
	ALLOW("mprotect", "memory, ctypes callbacks"), ALLOW("mincore", "memory"),
	ALLOW("msync", "mmap.flush; nothing that a script can write is synced with a disk"),
	ALLOW_UP_TO("madvise", 2, MADV_COLLAPSE, "memory"),
	PAIR("madvise", SECCOMP_EINVAL, 2, MADV_MERGEABLE, "would tell what others hold"),
	PAIR("madvise", SECCOMP_EINVAL, 2, MADV_COLD, "of files, would drop what others read"),
	PAIR("madvise", SECCOMP_ALLOW, 2, MADV_GUARD_INSTALL, "stacks of threads"),
	ALLOW("mlock", "within RLIMIT_MEMLOCK"), ABSENT("mlock2", "the C library falls back to mlock"),
	ALLOW("munlock", "memory"),		ALLOW("mlockall", "within RLIMIT_MEMLOCK"),
	ALLOW("munlockall", "memory"),
	ALLOW_IF("membarrier", 0, MEMBARRIER_CMD_QUERY, "looks only"),
	ALLOW_IF("membarrier", 0, MEMBARRIER_CMD_PRIVATE_EXPEDITED, "its own threads"),
	ALLOW_IF("membarrier", 0, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, "its own threads"),
	{ ROW("membarrier", SECCOMP_EINVAL, "would interrupt all processors, also others' programs"),
	  .when = { AT_LEAST(0, 0) } },
	REFUSE("get_mempolicy", "where memory lies is the host's decision"),
	REFUSE("set_mempolicy", "where memory lies is the host's decision"),
	REFUSE("mbind", "where memory lies is the host's decision"),
	REFUSE("migrate_pages", "where memory lies is the host's decision"),
	REFUSE("move_pages", "looks into other processes' placement"),
	HUGE_PAGES("memfd_create", 1, MFD_HUGETLB),
	COUNTED_IF("memfd_create", 1, MFD_HUGETLB, 0, "memory outside RLIMIT_DATA"),
	ABSENT("shmget", NO_SYSV),		ABSENT("shmat", NO_SYSV),
	ABSENT("shmdt", NO_SYSV),		ABSENT("shmctl", NO_SYSV),
	ABSENT("msgget", NO_SYSV),		ABSENT("msgsnd", NO_SYSV),
	ABSENT("msgrcv", NO_SYSV),		ABSENT("msgctl", NO_SYSV),
	ABSENT("semget", NO_SYSV),		ABSENT("semop", NO_SYSV),
	ABSENT("semtimedop", NO_SYSV),		ABSENT("semctl", NO_SYSV),
	ABSENT("mq_open", "kernel memory; Python has no use for it"),
	ABSENT("userfaultfd", "stops the kernel in the middle of its work"),

	/* ---- processes and threads ---- */
	IF("clone", SECCOMP_ALLOW, 0, NEW_NAMESPACES, 0, "threads and processes, never a namespace"),
	ABSENT("clone3", "its flags are out of a filter's reach; libraries fall back to clone"),
	ALLOW_OLD("fork", "processes"),		ALLOW_OLD("vfork", "processes"),
	ALLOW("execve", "subprocess"),		ALLOW("execveat", "subprocess"),
	ALLOW("exit", "processes"),		ALLOW("exit_group", "processes"),
	ALLOW("wait4", "processes"),		ALLOW("waitid", "processes"),
	ALLOW("kill", "only its own pid namespace"), ALLOW("tkill", "only its own pid namespace"),
	ALLOW("tgkill", "only its own pid namespace"),
	ALLOW("rt_sigaction", "signals"),	ALLOW("rt_sigprocmask", "signals"),
	ALLOW("rt_sigreturn", "signals"),	ALLOW("rt_sigpending", "signals"),
	ALLOW("rt_sigsuspend", "signals"),	ALLOW("rt_sigtimedwait", "signals"),
	ALLOW("rt_sigqueueinfo", "signals"),	ALLOW("rt_tgsigqueueinfo", "signals"),
	ALLOW("sigaltstack", "faulthandler"),	ALLOW_OLD("pause", "signals"),
	ALLOW_OLD("alarm", "signals"),		ALLOW("getitimer", "signals"),
	ALLOW("setitimer", "signals"),
	ALLOW_IF("timer_create", 0, CLOCK_REALTIME, "signals"),
	ALLOW_IF("timer_create", 0, CLOCK_MONOTONIC, "signals"),
	ALLOW_IF("timer_create", 0, CLOCK_BOOTTIME, "signals"),
	{ ROW("timer_create", SECCOMP_EINVAL, "clocks of processors and alarms"),
	  .when = { AT_LEAST(0, 0) } },
	ALLOW("timer_settime", "signals"),	ALLOW("timer_gettime", "signals"),
	ALLOW("timer_getoverrun", "signals"),	ALLOW("timer_delete", "signals"),
	ALLOW("pidfd_open", "asyncio's child watcher"),
	ALLOW("pidfd_send_signal", "only its own pid namespace"),
	FUTEX(~1ULL, FUTEX_WAIT),		FUTEX(~0ULL, FUTEX_REQUEUE),
	FUTEX(~1ULL, FUTEX_CMP_REQUEUE),	FUTEX(~1ULL, FUTEX_LOCK_PI),
	FUTEX(~1ULL, FUTEX_TRYLOCK_PI),		FUTEX(~0ULL, FUTEX_WAKE_BITSET),
	FUTEX(~0ULL, FUTEX_LOCK_PI2),
	ALLOW("futex_waitv", "locks"),		ALLOW("set_robust_list", "threads"),
	ALLOW("get_robust_list", "threads"),	ALLOW("set_tid_address", "threads"),
	ALLOW("rseq", "threads"),		ALLOW("sched_yield", "threads"),
	ALLOW("gettid", "threads"),		ALLOW("getcpu", "threads"),
	ALLOW("sched_getaffinity", "os.cpu_count"),
	NOT_OF_INIT("sched_setaffinity", 0, "within its cpuset"),
	ALLOW("sched_getscheduler", "scheduling"), ALLOW("sched_getparam", "scheduling"),
	NOT_OF_INIT("sched_setparam", 0, "priority 0 of an ordinary class"),
	ALLOW("sched_get_priority_max", "scheduling"), ALLOW("sched_get_priority_min", "scheduling"),
	ALLOW("sched_rr_get_interval", "scheduling"), ALLOW("sched_getattr", "scheduling"),
	OF_INIT("sched_setscheduler", 0),
	SCHEDULER(SCHED_OTHER),			SCHEDULER(SCHED_BATCH),
	SCHEDULER(SCHED_IDLE),
	REFUSE_IF("sched_setscheduler", 1, SCHED_FIFO, "would starve the host"),
	REFUSE_IF("sched_setscheduler", 1, SCHED_RR, "would starve the host"),
	REFUSE_IF("sched_setscheduler", 1, 6, "SCHED_DEADLINE would starve the host"),
	REFUSE("sched_setattr", "classes out of a filter's reach"),
	ALLOW("getpriority", "scheduling"),
	{ ROW("setpriority", SECCOMP_EPERM, "init is the jail's"),
	  .when = { IS(0, PRIO_PROCESS), BITS(1, UINT32_MAX, 1) } },
	{ ROW("setpriority", SECCOMP_ALLOW, "only ever lower"),
	  .when = { IS(0, PRIO_PROCESS), AT_LEAST(1, 0) } },
	REFUSE_IF("setpriority", 0, PRIO_PGRP, "init may be among them"),
	REFUSE_IF("setpriority", 0, PRIO_USER, "init is among them"),
	REFUSE("ioprio_get", "scheduling of I/O is the host's decision"),
	REFUSE("ioprio_set", "a real-time class of I/O"),
	ALLOW("getrlimit", "resource"),
	/* All of them but RLIMIT_CORE, which is 4. */
	RLIMITS(~3ULL, 0), RLIMITS(~0ULL, 5), RLIMITS(~1ULL, 6), RLIMITS(~7ULL, 8),
	{ ROW("setrlimit", SECCOMP_PRETEND, CORE_IS_ONE), .when = { IS(0, RLIMIT_CORE) } },
	{ ROW("prlimit64", SECCOMP_ALLOW, "looks only"),
	  .when = { AT_LEAST(0, 0), IS(1, RLIMIT_CORE), IS(2, 0) } },
	{ ROW("prlimit64", SECCOMP_PRETEND, CORE_IS_ONE),
	  .when = { AT_LEAST(0, 0), IS(1, RLIMIT_CORE), AT_LEAST(2, 1), IS(3, 0) } },
	{ ROW("prlimit64", SECCOMP_EPERM, CORE_IS_ONE),
	  .when = { AT_LEAST(0, 0), IS(1, RLIMIT_CORE), AT_LEAST(2, 1), AT_LEAST(3, 1) } },
	OF_INIT("prlimit64", 0),
	ALLOW("getrusage", "resource"),		ALLOW("times", "os.times"),
	ALLOW("sysinfo", "memory sizes"),
	ALLOW("uname", "platform"),		ALLOW("getrandom", "os.urandom"),
#ifdef __NR_arch_prctl
	ALLOW_IF("arch_prctl", 0, ARCH_SET_FS, "the thread's own registers"),
	ALLOW_IF("arch_prctl", 0, ARCH_GET_FS, "the thread's own registers"),
	ALLOW_IF("arch_prctl", 0, ARCH_GET_GS, "the thread's own registers"),
	{ ROW("arch_prctl", SECCOMP_EINVAL, "shadow stacks, further registers, traps of cpuid"),
	  .when = { AT_LEAST(0, 0) } },
#endif
	ALLOW_OLD("time", "time"),		ALLOW("gettimeofday", "time"),
	ALLOW("clock_gettime", "time"),		ALLOW("clock_getres", "time"),
	ALLOW_IF("personality", 0, 0, "the ordinary one"),
	ALLOW_IF("personality", 0, 0xffffffff, "which one is it"),

	/* ---- identity of the process ---- */
	ALLOW("getpid", "identity"),		ALLOW("getppid", "identity"),
	ALLOW("getuid", "identity"),		ALLOW("geteuid", "identity"),
	ALLOW("getgid", "identity"),		ALLOW("getegid", "identity"),
	ALLOW("getresuid", "identity"),		ALLOW("getresgid", "identity"),
	ALLOW("getgroups", "identity"),		ALLOW("getpgid", "identity"),
	ALLOW_OLD("getpgrp", "identity"),	ALLOW("setpgid", "subprocess"),
	ALLOW("getsid", "identity"),		ALLOW("setsid", "subprocess"),
	ALLOW("setuid", "one uid is mapped"),	ALLOW("setgid", "one gid is mapped"),
	ALLOW("setreuid", "one uid is mapped"),	ALLOW("setregid", "one gid is mapped"),
	ALLOW("setresuid", "one uid is mapped"), ALLOW("setresgid", "one gid is mapped"),
	ALLOW("setfsuid", "one uid is mapped"),	ALLOW("setfsgid", "one gid is mapped"),
	REFUSE("setgroups", "no supplementary groups"),
	ALLOW("capget", "there are none"),	ALLOW("capset", "there are none to keep"),
	ALLOW_IF("prctl", 0, PR_SET_NAME, "a thread's name"),
	ALLOW_IF("prctl", 0, PR_GET_NAME, "a thread's name"),
	ALLOW_IF("prctl", 0, PR_SET_PDEATHSIG, "its own children"),
	ALLOW_IF("prctl", 0, PR_GET_PDEATHSIG, "its own children"),
	ALLOW_IF("prctl", 0, PR_SET_DUMPABLE, "who may look into itself"),
	ALLOW_IF("prctl", 0, PR_GET_DUMPABLE, "who may look into itself"),
	ALLOW_IF("prctl", 0, PR_SET_CHILD_SUBREAPER, "its own descendants"),
	ALLOW_IF("prctl", 0, PR_GET_CHILD_SUBREAPER, "its own descendants"),
	ALLOW_IF("prctl", 0, PR_SET_TIMERSLACK, "its own timers"),
	ALLOW_IF("prctl", 0, PR_GET_TIMERSLACK, "its own timers"),
	ALLOW_IF("prctl", 0, PR_GET_KEEPCAPS, "looks only"),
	ALLOW_IF("prctl", 0, PR_GET_SECUREBITS, "looks only"),
	ALLOW_IF("prctl", 0, PR_GET_SECCOMP, "looks only"),
	ALLOW_IF("prctl", 0, PR_CAPBSET_READ, "looks only"),
	ALLOW_IF("prctl", 0, PR_SET_NO_NEW_PRIVS, "set already"),
	ALLOW_IF("prctl", 0, PR_GET_NO_NEW_PRIVS, "looks only"),
	ALLOW_IF("prctl", 0, PR_SET_THP_DISABLE, "its own memory"),
	ALLOW_IF("prctl", 0, PR_GET_THP_DISABLE, "looks only"),
	ALLOW_IF("prctl", 0, PR_SET_VMA, "names for its own memory"),
	REFUSE_IF("prctl", 0, PR_SET_MM, "would forge its own /proc entries"),
	REFUSE_IF("prctl", 0, PR_SET_SECCOMP, "only the worker itself loads filters"),
	REFUSE_IF("prctl", 0, PR_CAPBSET_DROP, "capabilities are none of its business"),
	REFUSE_IF("prctl", 0, PR_CAP_AMBIENT, "capabilities are none of its business"),
	REFUSE_IF("prctl", 0, PR_SET_SECUREBITS, "capabilities are none of its business"),
	REFUSE_IF("prctl", 0, PR_SET_KEEPCAPS, "capabilities are none of its business"),
	REFUSE_IF("prctl", 0, PR_SET_PTRACER, "no process may trace another"),

	/* ---- sockets: inside the jail there is loopback only ---- */
	SOCKET(AF_UNIX, SOCK_STREAM, 0, "multiprocessing"),
	SOCKET(AF_UNIX, SOCK_DGRAM, 0, "multiprocessing"),
	SOCKET(AF_UNIX, SOCK_SEQPACKET, 0, "multiprocessing"),
	SOCKET(AF_INET, SOCK_STREAM, 0, "loopback"),
	SOCKET(AF_INET, SOCK_STREAM, 6, "loopback"),
	SOCKET(AF_INET, SOCK_DGRAM, 0, "loopback"),
	SOCKET(AF_INET, SOCK_DGRAM, 17, "loopback"),
	SOCKET(AF_INET6, SOCK_STREAM, 0, "loopback"),
	SOCKET(AF_INET6, SOCK_STREAM, 6, "loopback"),
	SOCKET(AF_INET6, SOCK_DGRAM, 0, "loopback"),
	SOCKET(AF_INET6, SOCK_DGRAM, 17, "loopback"),
	{ ROW("socket", SECCOMP_EPERM, "netlink, packet, vsock, alg and all that may come"),
	  .when = { ABOVE(0, AF_INET6) } },
	ALLOW_IF("socketpair", 0, AF_UNIX, "asyncio"),
	ALLOW("bind", "loopback"),		ALLOW("connect", "loopback"),
	ALLOW("listen", "loopback"),		ALLOW("accept", "loopback"),
	ALLOW("accept4", "loopback"),		ALLOW("getsockname", "loopback"),
	ALLOW("getpeername", "loopback"),	ALLOW("shutdown", "loopback"),
	IN_BAND("sendto", 3),			IN_BAND("recvfrom", 3),
	IN_BAND("sendmsg", 2),			IN_BAND("recvmsg", 2),
	IN_BAND("sendmmsg", 3),			IN_BAND("recvmmsg", 3),
	/* ---- options of sockets: what programs in Python use, for each is code of the kernel; the
	 * rest is answered as by a kernel without it ---- */
	{ ROW("getsockopt", SECCOMP_ALLOW, "not SO_PEERPIDFD, a hold on the supervisor"),
	  .when = { IS(1, SOL_SOCKET), UP_TO(2, SO_PEERPIDFD - 1) } },
	{ ROW("getsockopt", SECCOMP_ALLOW, "not TCP_ZEROCOPY_RECEIVE, which maps what comes"),
	  .when = { IS(1, IPPROTO_TCP), UP_TO(2, TCP_ZEROCOPY_RECEIVE - 1) } },
	{ ROW("getsockopt", SECCOMP_ALLOW, "gRPC"),
	  .when = { IS(1, IPPROTO_TCP), IS(2, TCP_INQ) } },
	ALLOW_IF("getsockopt", 1, IPPROTO_IP, "loopback"),
	ALLOW_IF("getsockopt", 1, IPPROTO_UDP, "loopback"),
	ALLOW_IF("getsockopt", 1, IPPROTO_IPV6, "loopback"),
	{ ROW("getsockopt", SECCOMP_ENOPROTOOPT, "what may come"), .when = { AT_LEAST(1, 0) } },
	BUFFER_SIZE(SO_SNDBUF),			BUFFER_SIZE(SO_RCVBUF),
	OPTION_(EVERYWHERE, SECCOMP_PRETEND, SOL_SOCKET, SO_LINGER, "close() of such a socket "
		"waits, in whichever process has the last descriptor; it may have been passed on"),
	OPTIONS_UP_TO(SOL_SOCKET, SO_SNDTIMEO, "loopback"),
	OPTION(SOL_SOCKET, SO_BINDTODEVICE, "there is lo only"),
	OPTION(SOL_SOCKET, SO_MARK, "needs a capability"),
	OPTION(SOL_SOCKET, SO_TIMESTAMP, "loopback"), OPTION(SOL_SOCKET, SO_TIMESTAMPNS, "loopback"),
	OPTION(SOL_SOCKET, SO_RXQ_OVFL, "loopback"),
	OPTION(SOL_SOCKET, SO_INCOMING_CPU, "loopback"),
	OPTIONS_UP_TO(IPPROTO_TCP, TCP_WINDOW_CLAMP, "TCP_NODELAY, TCP_KEEPIDLE and their like"),
	OPTION(IPPROTO_TCP, TCP_QUICKACK, "loopback"),
	OPTION(IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, "loopback"),
	OPTION(IPPROTO_TCP, TCP_THIN_DUPACK, "loopback"),
	OPTION(IPPROTO_TCP, TCP_USER_TIMEOUT, "gRPC"), OPTION(IPPROTO_TCP, TCP_FASTOPEN, "servers"),
	OPTION(IPPROTO_TCP, TCP_NOTSENT_LOWAT, "trio"), OPTION(IPPROTO_TCP, TCP_INQ, "gRPC"),
	OPTION(IPPROTO_TCP, TCP_FASTOPEN_CONNECT, "curl"),
	OPTION(IPPROTO_UDP, UDP_CORK, "loopback"),
	OPTION(IPPROTO_IP, IP_TOS, "loopback"),	OPTION(IPPROTO_IP, IP_TTL, "loopback"),
	EIGHT_OPTIONS(IPPROTO_IP, IP_PKTINFO, "to IP_FREEBIND: servers of UDP, QUIC"),
	EIGHT_OPTIONS(IPPROTO_IP, IP_MULTICAST_IF, "to IP_ADD_SOURCE_MEMBERSHIP: zeroconf"),
	OPTION(IPPROTO_IP, IP_DROP_SOURCE_MEMBERSHIP, "multicast"),
	OPTION(IPPROTO_IP, IP_MULTICAST_ALL, "multicast"),
	OPTION(IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, "the socket module"),
	OPTION(IPPROTO_IPV6, IPV6_UNICAST_HOPS, "loopback"),
	OPTION(IPPROTO_IPV6, IPV6_MULTICAST_IF, "multicast"),
	OPTION(IPPROTO_IPV6, IPV6_MULTICAST_HOPS, "multicast"),
	OPTION(IPPROTO_IPV6, IPV6_MULTICAST_LOOP, "multicast"),
	OPTION(IPPROTO_IPV6, IPV6_MTU_DISCOVER, "QUIC"),
	OPTION(IPPROTO_IPV6, IPV6_MTU, "QUIC"),	OPTION(IPPROTO_IPV6, IPV6_RECVERR, "QUIC"),
	OPTION(IPPROTO_IPV6, IPV6_V6ONLY, "asyncio"),
	OPTION(IPPROTO_IPV6, IPV6_MULTICAST_ALL, "multicast"),
	OPTION(IPPROTO_IPV6, IPV6_RECVPKTINFO, "servers of UDP"),
	OPTION(IPPROTO_IPV6, IPV6_RECVHOPLIMIT, "the socket module"),
	OPTION(IPPROTO_IPV6, IPV6_DONTFRAG, "QUIC"),
	OPTION(IPPROTO_IPV6, IPV6_RECVTCLASS, "QUIC"), OPTION(IPPROTO_IPV6, IPV6_TCLASS, "loopback"),
	{ ROW("setsockopt", SECCOMP_ENOPROTOOPT, "TCP_ULP, TCP_CONGESTION, UDP_ENCAP and others"),
	  .when = { AT_LEAST(1, 0) } },

	/* ---- ioctl: by number; all other numbers are refused ---- */
	ALLOW_IF("ioctl", 1, FIONREAD, "bytes waiting"),
	ALLOW_IF("ioctl", 1, SIOCOUTQ, "bytes that the other end has not read"),
	ALLOW_IF("ioctl", 1, FIONBIO, "non-blocking sockets"),
	ALLOW_IF("ioctl", 1, FIOASYNC, "signals from sockets"),
	ALLOW_IF("ioctl", 1, FIOCLEX, "close on exec"),
	ALLOW_IF("ioctl", 1, FIONCLEX, "close on exec"),
	ALLOW_IF("ioctl", 1, TCGETS, "isatty"),
	ALLOW_IF("ioctl", 1, TIOCGWINSZ, "os.get_terminal_size"),
	ALLOW_IF("ioctl", 1, TIOCGPGRP, "os.tcgetpgrp"),
	ALLOW_IF("ioctl", 1, TIOCSPGRP, "os.tcsetpgrp; there is no terminal"),
	ALLOW_IF("ioctl", 1, TIOCOUTQ, "bytes waiting"),
	ALLOW_IF("ioctl", 1, 0x8910, "SIOCGIFNAME, socket.if_indextoname"),
	ALLOW_IF("ioctl", 1, 0x8933, "SIOCGIFINDEX, socket.if_nametoindex"),
	ALLOW_IF("ioctl", 1, 0x8912, "SIOCGIFCONF, which interfaces there are"),
	ALLOW_IF("ioctl", 1, 0x8913, "SIOCGIFFLAGS, looks only"),
	ALLOW_IF("ioctl", 1, 0x8915, "SIOCGIFADDR, looks only"),
	ALLOW_IF("ioctl", 1, 0x8921, "SIOCGIFMTU, looks only"),
	IF("ioctl", SECCOMP_EINVAL, 1, UINT32_MAX, 0x8946, "SIOCETHTOOL, a world of its own; as for an "
	   "interface without it, for psutil"),
	IF("ioctl", SECCOMP_EOPNOTSUPP, 1, UINT32_MAX, FICLONE, "pathlib copies files in another way "
	   "only if it gets this error"),
	/* Not the rest: packet mode, exclusive use, line disciplines, what others have typed. */
	TERMINAL(TIOCGPTN, "os.openpty"),	TERMINAL(TIOCSPTLCK, "os.openpty"),
	TERMINAL(TIOCGPTPEER, "os.openpty"),	TERMINAL(TIOCSCTTY, "pty.fork, of its own session"),
	TERMINAL(TIOCNOTTY, "pty.fork"),	TERMINAL(TIOCGSID, "termios.tcgetsid"),
	TERMINAL(TIOCSWINSZ, "termios.tcsetwinsize"), TERMINAL(TCSETS, "termios.tcsetattr"),
	TERMINAL(TCSETSW, "termios.tcsetattr"),	TERMINAL(TCSETSF, "termios.tcsetattr"),
	TERMINAL(TCSBRK, "termios.tcdrain"),	TERMINAL(TCXONC, "termios.tcflow"),
	TERMINAL(TCFLSH, "termios.tcflush"),
	REFUSE_IF("ioctl", 1, TIOCSTI, "types into a terminal"),
	REFUSE_IF("ioctl", 1, TIOCLINUX, "types into a console"),
	{ ROW("ioctl", SECCOMP_EPERM, "takes a terminal"), .where = WHERE_NO_TERMINALS,
	  .when = { IS(1, TIOCSCTTY) } },
	REFUSE_IF("ioctl", 1, TIOCCONS, "takes the console's output"),
	REFUSE_IF("ioctl", 1, TIOCSETD, "loads line disciplines"),

	/* ---- ways out and things that are the host's ---- */
	REFUSE("unshare", "no new namespaces"),	REFUSE("setns", "no other namespaces"),
	REFUSE("mount", "the file tree stands"), REFUSE("umount2", "the file tree stands"),
	REFUSE("pivot_root", "the file tree stands"), REFUSE("chroot", "the file tree stands"),
	REFUSE("open_tree", "the file tree stands"), REFUSE("move_mount", "the file tree stands"),
	REFUSE("fsopen", "the file tree stands"), REFUSE("fsconfig", "the file tree stands"),
	REFUSE("fsmount", "the file tree stands"), REFUSE("fspick", "the file tree stands"),
	REFUSE("mount_setattr", "the file tree stands"),
	REFUSE("name_to_handle_at", "names files around the file tree"),
	REFUSE("open_by_handle_at", "opens files around the file tree"),
	REFUSE("ptrace", "no process looks into another"),
	REFUSE("process_vm_readv", "no process looks into another"),
	REFUSE("process_vm_writev", "no process looks into another"),
	REFUSE("process_madvise", "no process looks into another"),
	REFUSE("pidfd_getfd", "no process takes another's files"),
	REFUSE("kcmp", "no process looks into another"),
	REFUSE("bpf", "programs for the kernel"), REFUSE("perf_event_open", "watches the machine"),
	REFUSE("seccomp", "only the worker itself loads filters"),
	ALLOW("landlock_restrict_self", "the script's process, to rules that init made; there are no others"),
	ABSENT("io_uring_setup", "does calls that no filter sees"),
	ABSENT("io_uring_enter", "does calls that no filter sees"),
	ABSENT("io_uring_register", "does calls that no filter sees"),
	REFUSE("add_key", "keyrings are not namespaced"), REFUSE("request_key", "keyrings are not namespaced"),
	REFUSE("keyctl", "keyrings are not namespaced"),
	REFUSE("fanotify_init", "watches the host's files"), REFUSE("fanotify_mark", "watches the host's files"),
	REFUSE("init_module", "the kernel"),	REFUSE("finit_module", "the kernel"),
	REFUSE("delete_module", "the kernel"),	REFUSE("kexec_load", "the kernel"),
	REFUSE("kexec_file_load", "the kernel"), REFUSE("reboot", "the machine"),
	REFUSE("swapon", "the machine"),	REFUSE("swapoff", "the machine"),
	REFUSE("acct", "the machine"),		REFUSE("syslog", "the kernel's messages"),
	REFUSE("quotactl", "the host's disks"),	REFUSE("quotactl_fd", "the host's disks"),
	REFUSE("sethostname", "set already"),	REFUSE("setdomainname", "set already"),
	REFUSE("settimeofday", "the machine's clock"), REFUSE("clock_settime", "the machine's clock"),
	REFUSE("adjtimex", "the machine's clock"), REFUSE("clock_adjtime", "the machine's clock"),
	REFUSE("vhangup", "terminals"),		REFUSE("lookup_dcookie", "profiles the machine"),
	REFUSE_OLD("iopl", "the machine's ports"), REFUSE_OLD("ioperm", "the machine's ports"),
	REFUSE_OLD("modify_ldt", "odd corners of the processor"),
	REFUSE_OLD("uselib", "an old way to load code"), REFUSE_OLD("ustat", "the host's disks"),
	REFUSE_OLD("sysfs", "the kernel's file systems"),
};

/* The calls that only a zygote, and a worker that is not yet jailed, may make. If the table above
 * has a row about such a call, that row applies to scripts only. */
static const struct {
	const char *call;
	struct scmp_arg_cmp when;
} for_walls[] = {
	{ "clone3", { 0 } },			/* a worker, with its namespaces */
	{ "unshare", IS(0, CLONE_NEWNET) },	/* networks.c */
	{ "setns", IS(1, CLONE_NEWNET) },
	{ "setgroups", { 0 } }, { "sethostname", { 0 } }, { "mount", { 0 } },	/* jail.c, mounts.c */
	{ "ioctl", { 0 } }, { "prctl", { 0 } },
	{ "landlock_create_ruleset", { 0 } }, { "landlock_add_rule", { 0 } }, { "seccomp", { 0 } },
};

static bool
is_for_walls(const char *call)
{
	for (size_t i = 0; i < sizeof(for_walls) / sizeof(for_walls[0]); i++)
		if (strcmp(for_walls[i].call, call) == 0)
			return true;
	return false;
}

const struct seccomp_row *
seccomp_rows(size_t *n_r)
{
	*n_r = sizeof(rows) / sizeof(rows[0]);
	return rows;
}

static uint32_t
action_of(enum seccomp_verdict verdict)
{
	switch (verdict) {
	case SECCOMP_ALLOW:
		return SCMP_ACT_ALLOW;
	case SECCOMP_EPERM:
		return SCMP_ACT_ERRNO(EPERM);
	case SECCOMP_EINVAL:
		return SCMP_ACT_ERRNO(EINVAL);
	case SECCOMP_ENOPROTOOPT:
		return SCMP_ACT_ERRNO(ENOPROTOOPT);
	case SECCOMP_EOPNOTSUPP:
		return SCMP_ACT_ERRNO(EOPNOTSUPP);
	case SECCOMP_PRETEND:
		return SCMP_ACT_ERRNO(0);
	case SECCOMP_ENOSYS:
		break;
	}
	return SCMP_ACT_ERRNO(ENOSYS);
}

bool
seccomp_is_for(const struct seccomp_row *row, const struct seccomp_host *host)
{
	switch (row->where) {
	case EVERYWHERE:
		break;
	case WHERE_COUNTED:
		return host->memory_counted;
	case WHERE_NOT_COUNTED:
		return !host->memory_counted;
	case WHERE_OWN_UID:
		return host->own_uid;
	case WHERE_SHARED_UID:
		return !host->own_uid;
	case WHERE_TERMINALS:
		return host->terminals;
	case WHERE_NO_TERMINALS:
		return !host->terminals;
	}
	return true;
}

static int
add_row(scmp_filter_ctx ctx, const struct seccomp_row *row,
	const struct seccomp_host *host)
{
	uint32_t action = action_of(row->verdict);
	int nr = seccomp_syscall_resolve_name(row->call);
	unsigned int n = 0;

	if (nr == __NR_SCMP_ERROR || (nr < 0 && !row->some_machines))
		return -ENOENT;
	if (!seccomp_is_for(row, host))
		return 0;
	while (row->when[n].op)
		n++;
	/* A row with the default's answer needs no rule. */
	if (nr < 0 || row->verdict == SECCOMP_ENOSYS)
		return 0;
	return seccomp_rule_add_array(ctx, action, nr, n, row->when);
}

/* Exports the program in the kernel's form; libseccomp only writes it to a descriptor. */
static int
export_program(scmp_filter_ctx ctx, struct sock_fprog *program_r)
{
	own_fd int fd = memfd_create("filter", MFD_CLOEXEC);
	own_mem struct sock_filter *filter = NULL;
	off_t size;
	int r;

	if (fd < 0)
		return -errno;
	r = seccomp_export_bpf(ctx, fd);
	if (r < 0)
		return r;
	size = lseek(fd, 0, SEEK_END);
	if (size <= 0 || size % (off_t)sizeof(*filter) ||
	    size / (off_t)sizeof(*filter) > BPF_MAXINSNS)
		return -E2BIG;
	filter = malloc((size_t)size);
	if (!filter)
		return -ENOMEM;
	if (pread(fd, filter, (size_t)size, 0) != size)
		return -EIO;
	program_r->len = (unsigned short)((size_t)size / sizeof(*filter));
	program_r->filter = give_ptr(filter);
	return 0;
}

static int
seccomp_add_rows(scmp_filter_ctx ctx, const struct seccomp_host *host, bool for_zygote,
		 const char **what_r)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(rows) / sizeof(rows[0]); i++) {
		*what_r = rows[i].call;
		if (is_for_walls(rows[i].call) != for_zygote)
			r = add_row(ctx, &rows[i], host);
	}
	for (size_t i = 0; r == 0 && for_zygote && i < sizeof(for_walls) / sizeof(for_walls[0]);
	     i++) {
		*what_r = for_walls[i].call;
		r = seccomp_rule_add_array(ctx, SCMP_ACT_ALLOW,
					   seccomp_syscall_resolve_name(for_walls[i].call),
					   for_walls[i].when.op ? 1 : 0, &for_walls[i].when);
	}
	return r;
}

static int
seccomp_compile_rows(const struct seccomp_host *host, bool for_zygote, struct sock_fprog *program_r,
		     const char **what_r)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
	int r = ctx ? 0 : -ENOMEM;

	*what_r = "syscall filter";
	if (r == 0)
		r = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH,
				     SCMP_ACT_ERRNO(ENOSYS));
	if (r == 0)
		r = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (r == 0)
		r = seccomp_add_rows(ctx, host, for_zygote, what_r);
	if (r == 0)
		r = export_program(ctx, program_r);
	if (ctx)
		seccomp_release(ctx);
	return r;
}

/* Puts instructions in front of the program that allow all calls but those for walls. */
static int
leave_others(struct sock_fprog *program)
{
	const size_t n = sizeof(for_walls) / sizeof(for_walls[0]);
	own_mem struct sock_filter *filter = calloc(n + 2 + program->len, sizeof(*filter));

	if (!filter)
		return -ENOMEM;
	filter[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						 offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < n; i++) {
		int nr = seccomp_syscall_resolve_name(for_walls[i].call);

		filter[1 + i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
							     (uint32_t)nr, (uint8_t)(n - i), 0);
	}
	filter[1 + n] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	memcpy(&filter[n + 2], program->filter, program->len * sizeof(*filter));
	free(program->filter);
	program->filter = give_ptr(filter);
	program->len = (unsigned short)(program->len + n + 2);
	return 0;
}

int
seccomp_compile(const struct seccomp_host *host, struct sock_fprog *program_r,
		const char **what_r)
{
	struct sock_fprog program;
	int r = seccomp_compile_rows(host, false, &program, what_r);

	if (r < 0)
		return r;
	r = leave_others(&program);
	if (r < 0) {
		free(program.filter);
		return r;
	}
	*program_r = program;
	return 0;
}

int
seccomp_compile_for_zygote(const struct seccomp_host *host, struct sock_fprog *program_r,
			   const char **what_r)
{
	return seccomp_compile_rows(host, true, program_r, what_r);
}

/* ---- both filters, in a child ---- */

struct compiled {
	int error;			/* -errno: of the row what */
	char what[32];
	size_t n[2];			/* instructions: of the worker's filter, of the zygote's */
	struct sock_filter filter[2][BPF_MAXINSNS];
};

static struct compiled *compiled;	/* shared with the child, and with no worker */
static pid_t compiler;

static void
compile_both(const struct seccomp_host *host, struct compiled *to)
{
	struct sock_fprog program[2];
	const char *what = "";

	to->error = seccomp_compile(host, &program[0], &what);
	if (to->error == 0)
		to->error = seccomp_compile_for_zygote(host, &program[1], &what);
	snprintf(to->what, sizeof(to->what), "%s", what);
	for (int i = 0; to->error == 0 && i < 2; i++) {
		to->n[i] = program[i].len;
		memcpy(to->filter[i], program[i].filter, to->n[i] * sizeof(*program[i].filter));
	}
}

int
seccomp_begin(const struct seccomp_host *host)
{
	compiled = mmap(NULL, sizeof(*compiled), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	compiler = compiled == MAP_FAILED ? -1 : fork();
	if (compiler < 0)
		return -errno;
	if (compiler == 0) {
		compile_both(host, compiled);
		_exit(0);
	}
	return 0;
}

int
seccomp_end(struct sock_fprog *worker_r, struct sock_fprog *zygote_r, const char **what_r)
{
	static char what[sizeof(compiled->what)];
	struct sock_fprog *to[] = { worker_r, zygote_r };
	int status = -1, r;

	r = waitpid(compiler, &status, 0) < 0 ? -errno : status != 0 ? -EIO : compiled->error;
	memcpy(what, compiled->what, sizeof(what));
	*what_r = r == compiled->error ? what : "syscall filter";
	for (int i = 0; r == 0 && i < 2; i++) {
		to[i]->len = (unsigned short)compiled->n[i];
		to[i]->filter = calloc(compiled->n[i], sizeof(*to[i]->filter));
		if (!to[i]->filter)
			r = -ENOMEM;
		else
			memcpy(to[i]->filter, compiled->filter[i],
			       compiled->n[i] * sizeof(*to[i]->filter));
	}
	munmap(compiled, sizeof(*compiled));
	return r;
}

int
seccomp_enter(const struct sock_fprog *program)
{
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, program) < 0 ? -errno
									     : 0;
}
