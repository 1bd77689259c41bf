/* Runs in: the zygote (compile) and every worker (enter).   Owns: nothing.
 * The table is what a script's process may ask of the kernel, and why. */
#include "worker/seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <seccomp.h>

#include "proto/own.h"

#define NEW_NAMESPACES ((uint64_t)(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | \
	CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET))
#define ANY_BIT UINT64_MAX
#define SOCKET_FLAGS ((uint64_t)(SOCK_NONBLOCK | SOCK_CLOEXEC))

/* clang-format off */
#define ROW(name, answer, why)	.call = name, .verdict = answer, .reason = why
#define ALLOW(name, why)	{ ROW(name, SECCOMP_ALLOW, why) }
#define REFUSE(name, why)	{ ROW(name, SECCOMP_EPERM, why) }
#define ABSENT(name, why)	{ ROW(name, SECCOMP_ENOSYS, why) }
#define PRETEND(name, why)	{ ROW(name, SECCOMP_PRETEND, why) }
#define ALLOW_OLD(name, why)	{ ROW(name, SECCOMP_ALLOW, why), .some_machines = true }
#define REFUSE_OLD(name, why)	{ ROW(name, SECCOMP_EPERM, why), .some_machines = true }
#define COUNTED(name, why)	{ ROW(name, SECCOMP_ALLOW, why), .where = WHERE_COUNTED }
#define IF(name, answer, which, bits, is, why) \
	{ ROW(name, answer, why), .when = WHEN_ARG, .arg = which, .mask = bits, .value = is }
#define ALLOW_IF(name, which, is, why)	IF(name, SECCOMP_ALLOW, which, ANY_BIT, (uint64_t)(is), why)
#define REFUSE_IF(name, which, is, why)	IF(name, SECCOMP_EPERM, which, ANY_BIT, (uint64_t)(is), why)
#define MAPPING(answer, is, why) \
	{ ROW("mmap", answer, why), .where = WHERE_NOT_COUNTED, .when = WHEN_ARG, .arg = 3, \
	  .mask = MAP_SHARED | MAP_ANONYMOUS, .value = is }
#define PIPE_SIZE(who, answer, why) \
	{ ROW("fcntl", answer, why), .where = who, .when = WHEN_ARG, .arg = 1, \
	  .mask = ANY_BIT, .value = F_SETPIPE_SZ }
#define OPTION_(place, answer, is, why) \
	{ ROW("setsockopt", answer, why), .where = place, .when = WHEN_OPTION, .value = is }
#define OPTION(is, why)		OPTION_(EVERYWHERE, SECCOMP_ALLOW, is, why)
#define BUFFER_SIZE(is) \
	OPTION_(WHERE_COUNTED, SECCOMP_ALLOW, is, "within net.core's maxima"), \
	OPTION_(WHERE_NOT_COUNTED, SECCOMP_PRETEND, is, "kernel memory; as good as the default")
#define SOCKET(family, type, protocol, why) \
	{ ROW("socket", SECCOMP_ALLOW, why), .when = WHEN_SOCKET, \
	  .value = family, .mask = type, .mask2 = protocol }

static const struct seccomp_row rows[] = {
	/* ---- files; what may be reached is the file tree's and Landlock's business ---- */
	ALLOW("read", "files"),			ALLOW("write", "files"),
	ALLOW("readv", "files"),		ALLOW("writev", "files"),
	ALLOW("pread64", "files"),		ALLOW("pwrite64", "files"),
	ALLOW("preadv", "files"),		ALLOW("pwritev", "files"),
	ALLOW("preadv2", "files"),		ALLOW("pwritev2", "files"),
	ALLOW_OLD("open", "files"),		ALLOW("openat", "files"),
	ALLOW("openat2", "files"),		ALLOW_OLD("creat", "files"),
	ALLOW("close", "files"),		ALLOW("close_range", "files"),
	ALLOW("dup", "files"),			ALLOW_OLD("dup2", "files"),
	ALLOW("dup3", "files"),
	IF("fcntl", SECCOMP_ALLOW, 1, ~(uint64_t)63, 0, "files"),
	ALLOW_IF("fcntl", 1, F_DUPFD_CLOEXEC, "files"),
	ALLOW_IF("fcntl", 1, F_GETPIPE_SZ, "pipes"),
	PIPE_SIZE(WHERE_OWN_UID, SECCOMP_ALLOW, "pipes"),
	PIPE_SIZE(WHERE_SHARED_UID, SECCOMP_EPERM, "what all pipes of a uid may hold is one budget"),
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
	ALLOW("fallocate", "files"),		ALLOW("fadvise64", "files"),
	ALLOW("readahead", "files"),		ALLOW("umask", "files"),
	ALLOW("fsync", "files"),		ALLOW("fdatasync", "files"),
	ALLOW("sync_file_range", "files"),	ALLOW("copy_file_range", "files"),
	ALLOW("sendfile", "files"),		ALLOW("splice", "os.splice"),
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
	ALLOW("brk", "memory"),			COUNTED("mmap", "memory"),
	MAPPING(SECCOMP_ALLOW, 0, "files"),
	MAPPING(SECCOMP_ALLOW, MAP_SHARED, "files"),
	MAPPING(SECCOMP_ALLOW, MAP_ANONYMOUS, "memory, within RLIMIT_DATA"),
	MAPPING(SECCOMP_EPERM, MAP_SHARED | MAP_ANONYMOUS, "memory that nothing counts once it is "
		"out of sight; worker/sharedmap.c has a file in its place"),
	ALLOW("munmap", "memory"),		ALLOW("mremap", "memory"),
	ALLOW("mprotect", "memory, ctypes callbacks"), ALLOW("madvise", "memory"),
	ALLOW("mincore", "memory"),		ALLOW("msync", "mmap.flush"),
	ALLOW("mlock", "within RLIMIT_MEMLOCK"), ALLOW("mlock2", "within RLIMIT_MEMLOCK"),
	ALLOW("munlock", "memory"),		ALLOW("mlockall", "within RLIMIT_MEMLOCK"),
	ALLOW("munlockall", "memory"),		ALLOW("membarrier", "memory"),
	ALLOW("get_mempolicy", "BLAS looks where its memory is"),
	REFUSE("set_mempolicy", "where memory lies is the host's decision"),
	REFUSE("mbind", "where memory lies is the host's decision"),
	REFUSE("migrate_pages", "where memory lies is the host's decision"),
	REFUSE("move_pages", "looks into other processes' placement"),
	COUNTED("memfd_create", "memory outside RLIMIT_DATA"),
	COUNTED("shmget", "memory outside RLIMIT_DATA"),
	COUNTED("shmat", "memory outside RLIMIT_DATA"),
	COUNTED("shmdt", "memory outside RLIMIT_DATA"),
	COUNTED("shmctl", "memory outside RLIMIT_DATA"),
	COUNTED("msgget", "kernel memory"),	COUNTED("msgsnd", "kernel memory"),
	COUNTED("msgrcv", "kernel memory"),	COUNTED("msgctl", "kernel memory"),
	COUNTED("semget", "kernel memory"),	COUNTED("semop", "kernel memory"),
	COUNTED("semtimedop", "kernel memory"),	COUNTED("semctl", "kernel memory"),
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
	ALLOW("setitimer", "signals"),		ALLOW("timer_create", "signals"),
	ALLOW("timer_settime", "signals"),	ALLOW("timer_gettime", "signals"),
	ALLOW("timer_getoverrun", "signals"),	ALLOW("timer_delete", "signals"),
	ALLOW("pidfd_open", "asyncio's child watcher"),
	ALLOW("pidfd_send_signal", "only its own pid namespace"),
	ALLOW("futex", "every lock of the interpreter"),
	ALLOW("futex_waitv", "locks"),		ALLOW("set_robust_list", "threads"),
	ALLOW("get_robust_list", "threads"),	ALLOW("set_tid_address", "threads"),
	ALLOW("rseq", "threads"),		ALLOW("sched_yield", "threads"),
	ALLOW("gettid", "threads"),		ALLOW("getcpu", "threads"),
	ALLOW("sched_getaffinity", "os.cpu_count"), ALLOW("sched_setaffinity", "within its cpuset"),
	ALLOW("sched_getscheduler", "scheduling"), ALLOW("sched_getparam", "scheduling"),
	ALLOW("sched_setparam", "priority 0 of an ordinary class"),
	ALLOW("sched_get_priority_max", "scheduling"), ALLOW("sched_get_priority_min", "scheduling"),
	ALLOW("sched_rr_get_interval", "scheduling"), ALLOW("sched_getattr", "scheduling"),
	ALLOW_IF("sched_setscheduler", 1, SCHED_OTHER, "the ordinary classes"),
	ALLOW_IF("sched_setscheduler", 1, SCHED_BATCH, "the ordinary classes"),
	ALLOW_IF("sched_setscheduler", 1, SCHED_IDLE, "the ordinary classes"),
	REFUSE_IF("sched_setscheduler", 1, SCHED_FIFO, "would starve the host"),
	REFUSE_IF("sched_setscheduler", 1, SCHED_RR, "would starve the host"),
	REFUSE_IF("sched_setscheduler", 1, 6, "SCHED_DEADLINE would starve the host"),
	REFUSE("sched_setattr", "classes out of a filter's reach"),
	ALLOW("getpriority", "scheduling"),	ALLOW("setpriority", "only ever lower"),
	ALLOW("ioprio_get", "scheduling"),	REFUSE("ioprio_set", "a real-time class of I/O"),
	ALLOW("getrlimit", "resource"),		ALLOW("setrlimit", "hard limits only go down"),
	ALLOW("prlimit64", "hard limits only go down"), ALLOW("getrusage", "resource"),
	ALLOW("times", "os.times"),		ALLOW("sysinfo", "memory sizes"),
	ALLOW("uname", "platform"),		ALLOW("getrandom", "os.urandom"),
	ALLOW_OLD("arch_prctl", "the thread's own registers"),
	ALLOW_OLD("time", "time"),		ALLOW("gettimeofday", "time"),
	ALLOW("clock_gettime", "time"),		ALLOW("clock_getres", "time"),
	ALLOW_IF("personality", 0, 0, "the ordinary one"),
	ALLOW_IF("personality", 0, 0xffffffff, "which one is it"),

	/* ---- who am I ---- */
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
	REFUSE_IF("prctl", 0, PR_SET_SECCOMP, "filters are loaded by us"),
	REFUSE_IF("prctl", 0, PR_CAPBSET_DROP, "capabilities are none of its business"),
	REFUSE_IF("prctl", 0, PR_CAP_AMBIENT, "capabilities are none of its business"),
	REFUSE_IF("prctl", 0, PR_SET_SECUREBITS, "capabilities are none of its business"),
	REFUSE_IF("prctl", 0, PR_SET_KEEPCAPS, "capabilities are none of its business"),
	REFUSE_IF("prctl", 0, PR_SET_PTRACER, "nobody traces here"),

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
	{ .call = "socket", .verdict = SECCOMP_EPERM, .when = WHEN_ARG_ABOVE, .arg = 0,
	  .value = AF_INET6, .reason = "netlink, packet, vsock, alg and all that may come" },
	ALLOW_IF("socketpair", 0, AF_UNIX, "asyncio"),
	ALLOW("bind", "loopback"),		ALLOW("connect", "loopback"),
	ALLOW("listen", "loopback"),		ALLOW("accept", "loopback"),
	ALLOW("accept4", "loopback"),		ALLOW("getsockname", "loopback"),
	ALLOW("getpeername", "loopback"),	ALLOW("sendto", "loopback"),
	ALLOW("recvfrom", "loopback"),		ALLOW("sendmsg", "loopback"),
	ALLOW("recvmsg", "loopback"),		ALLOW("sendmmsg", "loopback"),
	ALLOW("recvmmsg", "loopback"),		ALLOW("shutdown", "loopback"),
	ALLOW("getsockopt", "loopback"),
	BUFFER_SIZE(SO_SNDBUF),			BUFFER_SIZE(SO_RCVBUF),
	OPTION(SO_DEBUG, "sockets"),		OPTION(SO_REUSEADDR, "sockets"),
	OPTION(SO_TYPE, "looks only"),		OPTION(SO_ERROR, "looks only"),
	OPTION(SO_DONTROUTE, "sockets"),	OPTION(SO_BROADCAST, "sockets"),
	OPTION(SO_KEEPALIVE, "sockets"),	OPTION(SO_OOBINLINE, "sockets"),
	OPTION(SO_NO_CHECK, "sockets"),		OPTION(SO_PRIORITY, "sockets"),
	OPTION(SO_LINGER, "sockets"),		OPTION(SO_REUSEPORT, "sockets"),
	OPTION(SO_PASSCRED, "sockets"),		OPTION(SO_RCVLOWAT, "sockets"),
	OPTION(SO_SNDLOWAT, "sockets"),		OPTION(SO_RCVTIMEO, "socket.settimeout"),
	OPTION(SO_SNDTIMEO, "socket.settimeout"), OPTION(SO_BINDTODEVICE, "there is lo only"),
	OPTION(SO_TIMESTAMP, "sockets"),	OPTION(SO_ACCEPTCONN, "looks only"),
	OPTION(SO_PASSSEC, "sockets"),		OPTION(SO_TIMESTAMPNS, "sockets"),
	OPTION(SO_MARK, "needs a capability"),	OPTION(SO_TIMESTAMPING, "sockets"),
	OPTION(SO_PROTOCOL, "looks only"),	OPTION(SO_DOMAIN, "looks only"),
	OPTION(SO_RXQ_OVFL, "sockets"),		OPTION(SO_INCOMING_CPU, "sockets"),
	ALLOW_IF("setsockopt", 1, 0, "options of IPv4"),
	ALLOW_IF("setsockopt", 1, 6, "options of TCP"),
	ALLOW_IF("setsockopt", 1, 17, "options of UDP"),
	ALLOW_IF("setsockopt", 1, 41, "options of IPv6"),

	/* ---- ioctl: by number; what is not listed is refused ---- */
	ALLOW_IF("ioctl", 1, FIONREAD, "bytes waiting"),
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
	REFUSE_IF("ioctl", 1, TIOCSTI, "types into a terminal"),
	REFUSE_IF("ioctl", 1, TIOCLINUX, "types into a console"),
	REFUSE_IF("ioctl", 1, TIOCSCTTY, "takes a terminal"),
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
	REFUSE("seccomp", "filters are loaded by us"),
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
/* clang-format on */

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
	}
	return true;
}

static int
add_row(scmp_filter_ctx ctx, const struct seccomp_row *row,
	const struct seccomp_host *host)
{
	uint32_t action = action_of(row->verdict);
	int nr = seccomp_syscall_resolve_name(row->call);
	struct scmp_arg_cmp cmp[3];
	unsigned int n = 0;

	if (nr == __NR_SCMP_ERROR || (nr < 0 && !row->some_machines))
		return -ENOENT;
	if (!seccomp_is_for(row, host))
		return 0;
	switch (row->when) {
	case WHEN_ARG:
		cmp[n++] = row->mask == ANY_BIT ?
			SCMP_CMP64(row->arg, SCMP_CMP_EQ, row->value, 0) :
			SCMP_CMP64(row->arg, SCMP_CMP_MASKED_EQ, row->mask, row->value);
		break;
	case WHEN_ARG_ABOVE:
		cmp[n++] = SCMP_CMP64(row->arg, SCMP_CMP_GT, row->value, 0);
		break;
	case WHEN_SOCKET:
		cmp[n++] = SCMP_CMP64(0, SCMP_CMP_EQ, row->value, 0);
		cmp[n++] = SCMP_CMP64(1, SCMP_CMP_MASKED_EQ, ~SOCKET_FLAGS, row->mask);
		cmp[n++] = SCMP_CMP64(2, SCMP_CMP_EQ, row->mask2, 0);
		break;
	case WHEN_OPTION:
		cmp[n++] = SCMP_CMP64(1, SCMP_CMP_EQ, SOL_SOCKET, 0);
		cmp[n++] = SCMP_CMP64(2, SCMP_CMP_EQ, row->value, 0);
		break;
	case WHEN_ALWAYS:
		break;
	}
	/* What the default answers anyway needs no rule. */
	if (nr < 0 || row->verdict == SECCOMP_ENOSYS)
		return 0;
	return seccomp_rule_add_array(ctx, action, nr, n, cmp);
}

/* The program as the kernel takes it; libseccomp only writes it to a descriptor. */
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

int
seccomp_compile(const struct seccomp_host *host, struct sock_fprog *program_r,
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
	for (size_t i = 0; r == 0 && i < sizeof(rows) / sizeof(rows[0]); i++) {
		r = add_row(ctx, &rows[i], host);
		if (r < 0)
			*what_r = rows[i].call;
	}
	if (r == 0)
		r = export_program(ctx, program_r);
	if (ctx)
		seccomp_release(ctx);
	return r;
}

int
seccomp_enter(const struct sock_fprog *program)
{
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, program) < 0 ? -errno
									     : 0;
}
