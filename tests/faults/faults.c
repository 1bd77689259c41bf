/* SPDX-License-Identifier: Apache-2.0 */
/* Makes calls of the C library fail, in programs that load this library first (tests/faults/run).
 *
 * All processes share a page with the driver (CONTROL, a file): a table of the places from which
 * calls come. A place is the name of a process, a call and the frames that called it. Each process
 * counts its uses there; the driver writes the error with which one of the next uses fails. A
 * process has its name by prctl(2) or its program.
 *
 * A call that is not interposed here, or that libc makes by itself, does not fail. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* The driver reads this list; the order is the number of a call. */
#define CALLS(X) \
	X(accept) X(accept4) X(bind) X(clone3) X(connect) X(dup) X(epoll_create1) X(epoll_ctl) \
	X(epoll_wait) X(eventfd) X(fallocate) X(fchmod) X(fchown) X(fcntl) X(fdatasync) X(fopen) \
	X(fork) X(fstat) X(fstatat) X(fsync) X(ftruncate) X(getrandom) X(getsockopt) \
	X(inotify_add_watch) X(kill) X(linkat) X(listen) X(lseek) X(malloc) X(memfd_create) \
	X(mkdir) X(mkdirat) X(mmap) X(mount) X(mprotect) X(open) X(opendir) X(pidfd_open) X(pipe2) \
	X(poll) X(prctl) X(pread) X(pwrite) X(read) X(readdir) X(readv) X(recv) X(recvfrom) \
	X(recvmsg) X(rename) X(renameat) X(rmdir) X(send) X(sendfile) X(sendmsg) X(sendto) X(setns) \
	X(setsockopt) X(socket) X(socketpair) X(stat) X(sync_file_range) X(syscall) \
	X(timer_create) X(timer_settime) X(timerfd_create) X(timerfd_settime) X(unlink) \
	X(unlinkat) X(unshare) X(waitid) X(write) X(writev)

#define NUMBER(name) CALL_##name,
enum call { CALLS(NUMBER) N_CALLS };

#define PLACES 32768		/* a power of two */
#define NAME_MAX_LEN 16
#define FRAMES 6		/* of the callers, innermost first */
#define SKIPPED 3		/* of this file */
#define MODULES 64

/* As the driver's struct formats. */
struct place {
	_Atomic uint64_t key;			/* 0: free */
	char process[NAME_MAX_LEN];
	int call;
	atomic_int error;			/* errno of the use that fails; 0: none does */
	atomic_long uses;			/* so far */
	atomic_long nth;			/* uses until one fails; 1: the next one */
	atomic_long failed;
	char where[328];			/* "program+offset program+offset ..." */
};

struct control {
	atomic_long on;
	struct place places[PLACES];
};

static struct control *control;
static char self[NAME_MAX_LEN];
static __thread bool is_inside;

static void *
real_of(const char *name)
{
	void *found = dlsym(RTLD_NEXT, name);

	if (!found)
		_exit(125);
	return found;
}

/* ---- where code lies: addresses differ from one start to the next, offsets do not ---- */

static struct {
	uintptr_t begin, end;
} modules[MODULES];
static atomic_int n_modules;

static int
note_module(struct dl_phdr_info *info, size_t size, void *arg)
{
	uintptr_t end = 0;

	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD)
			end = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr +
			      info->dlpi_phdr[i].p_memsz;
	if (n_modules == MODULES)
		return 1;
	modules[n_modules].begin = info->dlpi_addr;
	modules[n_modules++].end = end;
	return 0;
}

static uintptr_t
offset_of(uintptr_t address)
{
	for (int again = 0; again < 2; again++) {
		for (int i = 0; i < n_modules; i++)
			if (address >= modules[i].begin && address < modules[i].end)
				return address - modules[i].begin;
		n_modules = 0;
		dl_iterate_phdr(note_module, NULL);
	}
	return 0;	/* code that no file has */
}

__attribute__((constructor)) static void
faults_begin(void)
{
	void *frame[2];
	int fd = (int)syscall(SYS_openat, AT_FDCWD, CONTROL, O_RDWR | O_CLOEXEC);
	void *page;

	is_inside = true;
	backtrace(frame, 2);		/* loads what it needs */
	if (fd >= 0) {
		page = mmap(NULL, sizeof(*control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (page != MAP_FAILED)
			control = page;
		syscall(SYS_close, fd);
	}
	prctl(PR_GET_NAME, self);
	is_inside = false;
}

static void
say_where(struct place *place, void *const *frame, int n)
{
	size_t used = 0;
	Dl_info info;

	for (int i = 0; i < n && used + 100 < sizeof(place->where); i++)
		if (dladdr(frame[i], &info) && info.dli_fname)
			used += (size_t)sprintf(place->where + used, "%.64s+%#lx ", info.dli_fname,
						(unsigned long)((char *)frame[i] -
								(char *)info.dli_fbase));
}

static uint64_t
mix(uint64_t key, uint64_t value)
{
	key = (key ^ value) * 0x9e3779b97f4a7c15u;
	return key ^ key >> 29;
}

/* The row of this call in the table, which is made when there is none. NULL: the table is full. */
__attribute__((noinline)) static struct place *
place_of(enum call call)
{
	void *frame[SKIPPED + FRAMES];
	int n = backtrace(frame, SKIPPED + FRAMES);
	uint64_t key = (uint64_t)call + 1;
	uint64_t name[2];

	memcpy(name, self, sizeof(self));
	key = mix(mix(key, name[0]), name[1]);
	for (int i = SKIPPED; i < n; i++)
		key = mix(key, offset_of((uintptr_t)frame[i]));
	for (size_t i = 0; i < PLACES; i++) {
		struct place *place = &control->places[(key + i) % PLACES];
		uint64_t found = 0;

		if (atomic_compare_exchange_strong(&place->key, &found, key)) {
			place->call = (int)call;
			memcpy(place->process, self, sizeof(self));
			if (n > SKIPPED)
				say_where(place, frame + SKIPPED, n - SKIPPED);
			return place;
		}
		if (found == key)
			return place;
	}
	return NULL;
}

/* Shall this call fail? Then errno is set. */
__attribute__((noinline)) static bool
fails(enum call call)
{
	int before = errno;
	struct place *place;

	if (!control || !control->on || is_inside)
		return false;
	is_inside = true;
	place = place_of(call);
	is_inside = false;
	errno = before;
	if (!place)
		return false;
	atomic_fetch_add(&place->uses, 1);
	if (place->error == 0 || atomic_fetch_sub(&place->nth, 1) != 1)
		return false;
	atomic_fetch_add(&place->failed, 1);
	errno = place->error;
	return true;
}

#define CALL(type, failure, name, arguments, values) \
	type name arguments \
	{ \
		static __typeof__(&name) real; \
		if (!real) \
			real = (__typeof__(&name))real_of(#name); \
		return fails(CALL_##name) ? failure : real values; \
	}
CALL(int, -1, accept, (int f, struct sockaddr *a, socklen_t *n), (f, a, n))
CALL(int, -1, accept4, (int f, struct sockaddr *a, socklen_t *n, int o), (f, a, n, o))
CALL(int, -1, bind, (int f, const struct sockaddr *a, socklen_t n), (f, a, n))
CALL(int, -1, connect, (int f, const struct sockaddr *a, socklen_t n), (f, a, n))
CALL(int, -1, dup, (int f), (f))
CALL(int, -1, epoll_create1, (int o), (o))
CALL(int, -1, epoll_ctl, (int e, int o, int f, struct epoll_event *v), (e, o, f, v))
CALL(int, -1, epoll_wait, (int e, struct epoll_event *v, int n, int t), (e, v, n, t))
CALL(int, -1, eventfd, (unsigned int n, int o), (n, o))
CALL(int, -1, fallocate, (int f, int m, off_t o, off_t n), (f, m, o, n))
CALL(int, -1, fchmod, (int f, mode_t m), (f, m))
CALL(int, -1, fchown, (int f, uid_t u, gid_t g), (f, u, g))
CALL(int, -1, fdatasync, (int f), (f))
CALL(FILE *, NULL, fopen, (const char *p, const char *m), (p, m))
CALL(pid_t, -1, fork, (void), ())
CALL(int, -1, fstat, (int f, struct stat *s), (f, s))
CALL(int, -1, fstatat, (int d, const char *p, struct stat *s, int o), (d, p, s, o))
CALL(int, -1, fsync, (int f), (f))
CALL(int, -1, ftruncate, (int f, off_t n), (f, n))
CALL(ssize_t, -1, getrandom, (void *b, size_t n, unsigned int o), (b, n, o))
CALL(int, -1, getsockopt, (int f, int l, int o, void *v, socklen_t *n), (f, l, o, v, n))
CALL(int, -1, inotify_add_watch, (int f, const char *p, uint32_t m), (f, p, m))
CALL(int, -1, kill, (pid_t p, int s), (p, s))
CALL(int, -1, linkat, (int a, const char *p, int b, const char *q, int o), (a, p, b, q, o))
CALL(int, -1, listen, (int f, int n), (f, n))
CALL(off_t, -1, lseek, (int f, off_t o, int w), (f, o, w))
CALL(int, -1, memfd_create, (const char *n, unsigned int o), (n, o))
CALL(int, -1, mkdir, (const char *p, mode_t m), (p, m))
CALL(int, -1, mkdirat, (int d, const char *p, mode_t m), (d, p, m))
CALL(int, -1, mount, (const char *a, const char *b, const char *c, unsigned long o, const void *v),
     (a, b, c, o, v))
CALL(int, -1, mprotect, (void *m, size_t n, int o), (m, n, o))
CALL(DIR *, NULL, opendir, (const char *p), (p))
CALL(int, -1, pipe2, (int f[2], int o), (f, o))
CALL(int, -1, poll, (struct pollfd *v, nfds_t n, int t), (v, n, t))
CALL(ssize_t, -1, pread, (int f, void *b, size_t n, off_t o), (f, b, n, o))
CALL(ssize_t, -1, pwrite, (int f, const void *b, size_t n, off_t o), (f, b, n, o))
CALL(ssize_t, -1, read, (int f, void *b, size_t n), (f, b, n))
CALL(struct dirent *, NULL, readdir, (DIR *d), (d))
CALL(ssize_t, -1, readv, (int f, const struct iovec *v, int n), (f, v, n))
CALL(ssize_t, -1, recv, (int f, void *b, size_t n, int o), (f, b, n, o))
CALL(ssize_t, -1, recvfrom, (int f, void *b, size_t n, int o, struct sockaddr *a, socklen_t *l),
     (f, b, n, o, a, l))
CALL(ssize_t, -1, recvmsg, (int f, struct msghdr *m, int o), (f, m, o))
CALL(int, -1, rename, (const char *p, const char *q), (p, q))
CALL(int, -1, renameat, (int a, const char *p, int b, const char *q), (a, p, b, q))
CALL(int, -1, rmdir, (const char *p), (p))
CALL(ssize_t, -1, send, (int f, const void *b, size_t n, int o), (f, b, n, o))
CALL(ssize_t, -1, sendfile, (int a, int b, off_t *o, size_t n), (a, b, o, n))
CALL(ssize_t, -1, sendmsg, (int f, const struct msghdr *m, int o), (f, m, o))
CALL(ssize_t, -1, sendto, (int f, const void *b, size_t n, int o, const struct sockaddr *a,
			   socklen_t l), (f, b, n, o, a, l))
CALL(int, -1, setns, (int f, int o), (f, o))
CALL(int, -1, setsockopt, (int f, int l, int o, const void *v, socklen_t n), (f, l, o, v, n))
CALL(int, -1, socket, (int a, int b, int c), (a, b, c))
CALL(int, -1, socketpair, (int a, int b, int c, int f[2]), (a, b, c, f))
CALL(int, -1, stat, (const char *p, struct stat *s), (p, s))
CALL(int, -1, sync_file_range, (int f, off64_t o, off64_t n, unsigned int w), (f, o, n, w))
CALL(int, -1, timer_create, (clockid_t c, struct sigevent *e, timer_t *t), (c, e, t))
CALL(int, -1, timer_settime, (timer_t t, int o, const struct itimerspec *a, struct itimerspec *b),
     (t, o, a, b))
CALL(int, -1, timerfd_create, (int c, int o), (c, o))
CALL(int, -1, timerfd_settime, (int f, int o, const struct itimerspec *a, struct itimerspec *b),
     (f, o, a, b))
CALL(int, -1, unlink, (const char *p), (p))
CALL(int, -1, unlinkat, (int d, const char *p, int o), (d, p, o))
CALL(int, -1, unshare, (int o), (o))
CALL(int, -1, waitid, (idtype_t t, id_t i, siginfo_t *s, int o), (t, i, s, o))
CALL(ssize_t, -1, writev, (int f, const struct iovec *v, int n), (f, v, n))

/* An event's counter, whose addition cannot fail. */
static bool
is_counter(int fd, size_t n)
{
	struct stat st;

	return n == sizeof(uint64_t) && syscall(SYS_fstat, fd, &st) == 0 &&
	       (st.st_mode & S_IFMT) == 0;
}

ssize_t
write(int fd, const void *bytes, size_t n)
{
	static ssize_t (*real)(int, const void *, size_t);

	if (!real)
		real = (ssize_t (*)(int, const void *, size_t))real_of("write");
	return !is_counter(fd, n) && fails(CALL_write) ? -1 : real(fd, bytes, n);
}

/* ---- calls with arguments that not all uses have ---- */

static mode_t
mode_of(int flags, va_list more)
{
	return flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;
}

int
openat(int directory, const char *path, int flags, ...)
{
	va_list more;
	mode_t mode;

	va_start(more, flags);
	mode = mode_of(flags, more);
	va_end(more);
	return fails(CALL_open) ? -1 : (int)syscall(SYS_openat, directory, path, flags, mode);
}

int
open(const char *path, int flags, ...)
{
	va_list more;
	mode_t mode;

	va_start(more, flags);
	mode = mode_of(flags, more);
	va_end(more);
	return fails(CALL_open) ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int
fcntl(int fd, int command, ...)
{
	static int (*real)(int, int, ...);
	va_list more;
	void *value;

	if (!real)
		real = (int (*)(int, int, ...))real_of("fcntl");
	va_start(more, command);
	value = va_arg(more, void *);
	va_end(more);
	return fails(CALL_fcntl) ? -1 : real(fd, command, value);
}

int
prctl(int option, ...)
{
	static int (*real)(int, ...);
	unsigned long value[4];
	va_list more;

	if (!real)
		real = (int (*)(int, ...))real_of("prctl");
	va_start(more, option);
	for (int i = 0; i < 4; i++)
		value[i] = va_arg(more, unsigned long);
	va_end(more);
	if (fails(CALL_prctl))
		return -1;
	if (option == PR_SET_NAME && value[0])
		strncpy(self, (const char *)value[0], sizeof(self) - 1);
	return real(option, value[0], value[1], value[2], value[3]);
}

void *
mmap(void *at, size_t len, int protection, int flags, int fd, off_t offset)
{
	return fails(CALL_mmap) ? MAP_FAILED :
	       (void *)syscall(SYS_mmap, at, len, protection, flags, fd, offset);
}

static enum call
call_of(long number)
{
	switch (number) {
	case SYS_clone3:
		return CALL_clone3;
	case SYS_epoll_ctl:
		return CALL_epoll_ctl;
	case SYS_epoll_pwait:
		return CALL_epoll_wait;
	case SYS_pidfd_open:
		return CALL_pidfd_open;
	case SYS_ppoll:
		return CALL_poll;
	default:
		return CALL_syscall;
	}
}

long
syscall(long number, ...)
{
	static long (*real)(long, ...);
	va_list more;
	long value[6];

	if (!real)
		real = (long (*)(long, ...))real_of("syscall");
	va_start(more, number);
	for (int i = 0; i < 6; i++)
		value[i] = va_arg(more, long);
	va_end(more);
	/* The calls of this file itself; and a kill of a child, which cannot fail. */
	if (number != SYS_openat && number != SYS_mmap && number != SYS_close &&
	    number != SYS_fstat && number != SYS_pidfd_send_signal && fails(call_of(number)))
		return -1;
	return real(number, value[0], value[1], value[2], value[3], value[4], value[5]);
}

/* ---- memory: one number for all of its functions ---- */

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *old, size_t size);

void *
malloc(size_t size)
{
	return fails(CALL_malloc) ? NULL : __libc_malloc(size);
}

void *
calloc(size_t n, size_t size)
{
	return fails(CALL_malloc) ? NULL : __libc_calloc(n, size);
}

void *
realloc(void *old, size_t size)
{
	return fails(CALL_malloc) ? NULL : __libc_realloc(old, size);
}
