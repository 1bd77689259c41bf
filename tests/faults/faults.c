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
#include <grp.h>
#include <poll.h>
#include <pthread.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdio_ext.h>
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
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* The driver reads this list; the order is the number of a call. Our programs import further
 * functions of libc, which are left out because
 * - they cannot fail with valid arguments, or only tell what the process has (getpid, sigaction);
 * - a failure changes nothing that is used later (close, munmap, madvise, shutdown);
 * - the error shows elsewhere: of fputs, fwrite and printf at fflush or fclose, of allocating ones
 *   (asprintf, open_memstream) at malloc, which they call;
 * - they ask whether something is there, and each answer is usual (access, isatty, ioctl). */
#define CALLS(X) \
	X(accept) X(accept4) X(bind) X(chmod) X(chown) X(clone3) X(connect) X(dup) \
	X(epoll_create1) X(epoll_ctl) X(epoll_wait) X(eventfd) X(execv) X(execve) X(execvp) \
	X(fallocate) X(fchmod) X(fchmodat) X(fchown) X(fchownat) X(fclose) X(fcntl) \
	X(fdatasync) X(fdopen) X(fdopendir) X(fflush) X(fgets) X(flock) X(fopen) X(fork) \
	X(fread) X(fstat) X(fstatat) X(fstatfs) X(fstatvfs) X(fsync) X(ftruncate) \
	X(futimens) X(getc) X(getline) X(getpeername) X(getpwnam) X(getpwuid) X(getpwuid_r) \
	X(getrandom) X(getsockname) X(getsockopt) X(inotify_add_watch) X(inotify_init1) \
	X(kill) X(link) X(linkat) X(listen) X(lseek) X(lstat) X(malloc) X(memfd_create) \
	X(mkdir) X(mkdirat) X(mkdtemp) X(mkostemp) X(mmap) X(mount) X(mprotect) X(open) \
	X(opendir) X(pidfd_open) X(pipe2) X(poll) X(prctl) X(pread) X(pthread_create) \
	X(pwrite) X(read) X(readdir) X(readlink) X(readlinkat) X(readv) X(realpath) X(recv) \
	X(recvfrom) X(recvmsg) X(rename) X(renameat) X(renameat2) X(rmdir) X(scandir) \
	X(send) X(sendfile) X(sendmsg) X(sendto) X(setgroups) X(setns) X(setresgid) \
	X(setresuid) X(setsockopt) X(signalfd) X(socket) X(socketpair) X(stat) X(statfs) \
	X(statvfs) X(symlinkat) X(sync_file_range) X(syncfs) X(syscall) X(timer_create) \
	X(timer_settime) X(timerfd_create) X(timerfd_settime) X(umount2) X(unlink) \
	X(unlinkat) X(unshare) X(utimensat) X(waitid) X(waitpid) X(write) X(writev)

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
CALL(int, -1, chmod, (const char *p, mode_t m), (p, m))
CALL(int, -1, chown, (const char *p, uid_t u, gid_t g), (p, u, g))
CALL(int, -1, execv, (const char *p, char *const *a), (p, a))
CALL(int, -1, execve, (const char *p, char *const *a, char *const *e), (p, a, e))
CALL(int, -1, execvp, (const char *p, char *const *a), (p, a))
CALL(int, -1, fchmodat, (int d, const char *p, mode_t m, int o), (d, p, m, o))
CALL(int, -1, fchownat, (int d, const char *p, uid_t u, gid_t g, int o), (d, p, u, g, o))
CALL(FILE *, NULL, fdopen, (int f, const char *m), (f, m))
CALL(DIR *, NULL, fdopendir, (int f), (f))
CALL(int, -1, flock, (int f, int o), (f, o))
CALL(int, -1, fstatfs, (int f, struct statfs *s), (f, s))
CALL(int, -1, fstatvfs, (int f, struct statvfs *s), (f, s))
CALL(int, -1, futimens, (int f, const struct timespec t[2]), (f, t))
CALL(int, -1, getpeername, (int f, struct sockaddr *a, socklen_t *n), (f, a, n))
CALL(struct passwd *, NULL, getpwnam, (const char *n), (n))
CALL(struct passwd *, NULL, getpwuid, (uid_t u), (u))
CALL(int, (*r = NULL, errno), getpwuid_r, (uid_t u, struct passwd *p, char *b, size_t n,
					    struct passwd **r), (u, p, b, n, r))
CALL(int, -1, getsockname, (int f, struct sockaddr *a, socklen_t *n), (f, a, n))
CALL(int, -1, inotify_init1, (int o), (o))
CALL(int, -1, link, (const char *p, const char *q), (p, q))
CALL(int, -1, lstat, (const char *p, struct stat *s), (p, s))
CALL(char *, NULL, mkdtemp, (char *t), (t))
CALL(int, -1, mkostemp, (char *t, int o), (t, o))
CALL(int, errno, pthread_create, (pthread_t *t, const pthread_attr_t *a, void *(*f)(void *),
				  void *v), (t, a, f, v))
CALL(ssize_t, -1, readlink, (const char *p, char *b, size_t n), (p, b, n))
CALL(ssize_t, -1, readlinkat, (int d, const char *p, char *b, size_t n), (d, p, b, n))
CALL(char *, NULL, realpath, (const char *p, char *b), (p, b))
CALL(int, -1, renameat2, (int a, const char *p, int b, const char *q, unsigned int o),
     (a, p, b, q, o))
CALL(int, -1, scandir, (const char *p, struct dirent ***l, int (*f)(const struct dirent *),
			int (*c)(const struct dirent **, const struct dirent **)), (p, l, f, c))
CALL(int, -1, setgroups, (size_t n, const gid_t *g), (n, g))
CALL(int, -1, setresgid, (gid_t a, gid_t b, gid_t c), (a, b, c))
CALL(int, -1, setresuid, (uid_t a, uid_t b, uid_t c), (a, b, c))
CALL(int, -1, signalfd, (int f, const sigset_t *s, int o), (f, s, o))
CALL(int, -1, statfs, (const char *p, struct statfs *s), (p, s))
CALL(int, -1, statvfs, (const char *p, struct statvfs *s), (p, s))
CALL(int, -1, symlinkat, (const char *a, int d, const char *p), (a, d, p))
CALL(int, -1, syncfs, (int f), (f))
CALL(int, -1, umount2, (const char *p, int o), (p, o))
CALL(int, -1, utimensat, (int d, const char *p, const struct timespec t[2], int o), (d, p, t, o))
CALL(pid_t, -1, waitpid, (pid_t p, int *s, int o), (p, s, o))

int
ppoll(struct pollfd *v, nfds_t n, const struct timespec *t, const sigset_t *s)
{
	static __typeof__(&ppoll) real;

	if (!real)
		real = (__typeof__(&ppoll))real_of("ppoll");
	return fails(CALL_poll) ? -1 : real(v, n, t, s);
}

/* ---- what programs call that are compiled with _FORTIFY_SOURCE ---- */

ssize_t
__read_chk(int fd, void *bytes, size_t n, size_t)
{
	return fails(CALL_read) ? -1 : syscall(SYS_read, fd, bytes, n);
}

ssize_t
__pread_chk(int fd, void *bytes, size_t n, off_t at, size_t)
{
	return fails(CALL_pread) ? -1 : syscall(SYS_pread64, fd, bytes, n, at);
}

ssize_t
__recv_chk(int fd, void *bytes, size_t n, size_t, int flags)
{
	return fails(CALL_recv) ? -1 : syscall(SYS_recvfrom, fd, bytes, n, flags, NULL, NULL);
}

int
__openat_2(int directory, const char *path, int flags)
{
	return fails(CALL_open) ? -1 : (int)syscall(SYS_openat, directory, path, flags, 0);
}

int
__open_2(const char *path, int flags)
{
	return fails(CALL_open) ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, flags, 0);
}

char *
__realpath_chk(const char *path, char *found, size_t)
{
	static char *(*real)(const char *, char *);

	if (!real)
		real = (char *(*)(const char *, char *))real_of("realpath");
	return fails(CALL_realpath) ? NULL : real(path, found);
}

/* ---- streams: their own calls are libc's, so a read or write that fails shows here ---- */

#define ERROR_SEEN 0x20		/* glibc's _IO_ERR_SEEN, for ferror() */

__attribute__((always_inline)) static inline bool
stream_fails(enum call call, FILE *stream)
{
	if (!fails(call))
		return false;
	stream->_flags |= ERROR_SEEN;
	return true;
}

#define STREAM_CALL(type, failure, call, name, arguments, values) \
	type name arguments \
	{ \
		static type (*real) arguments; \
		if (!real) \
			real = (type (*) arguments)real_of(#name); \
		return stream_fails(CALL_##call, f) ? failure : real values; \
	}
STREAM_CALL(ssize_t, -1, getline, getline, (char **l, size_t *n, FILE *f), (l, n, f))
STREAM_CALL(ssize_t, -1, getline, getdelim, (char **l, size_t *n, int d, FILE *f), (l, n, d, f))
STREAM_CALL(ssize_t, -1, getline, __getdelim, (char **l, size_t *n, int d, FILE *f), (l, n, d, f))
STREAM_CALL(char *, NULL, fgets, fgets, (char *b, int n, FILE *f), (b, n, f))
STREAM_CALL(char *, NULL, fgets, __fgets_chk, (char *b, size_t s, int n, FILE *f), (b, s, n, f))
STREAM_CALL(size_t, 0, fread, fread, (void *b, size_t s, size_t n, FILE *f), (b, s, n, f))
STREAM_CALL(size_t, 0, fread, __fread_chk, (void *b, size_t m, size_t s, size_t n, FILE *f),
	    (b, m, s, n, f))
STREAM_CALL(int, EOF, getc, getc, (FILE *f), (f))
STREAM_CALL(int, EOF, getc, fgetc, (FILE *f), (f))
STREAM_CALL(int, EOF, getc, __uflow, (FILE *f), (f))

/* Not one in memory. */
static bool
is_written(FILE *stream)
{
	return __fwritable(stream) && fileno(stream) >= 0;
}

int
fflush(FILE *stream)
{
	static int (*real)(FILE *);

	if (!real)
		real = (int (*)(FILE *))real_of("fflush");
	if (!stream || !is_written(stream))
		return real(stream);
	return stream_fails(CALL_fflush, stream) ? EOF : real(stream);
}

/* The stream is gone in any case. Only what it has not written yet can fail. */
int
fclose(FILE *stream)
{
	static int (*real)(FILE *);
	int error = is_written(stream) && fails(CALL_fclose) ? errno : 0;
	int r;

	if (!real)
		real = (int (*)(FILE *))real_of("fclose");
	r = real(stream);
	if (error == 0)
		return r;
	errno = error;
	return EOF;
}

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
	case SYS_renameat2:
		return CALL_renameat2;
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
	    number != SYS_fstat && number != SYS_read && number != SYS_pread64 &&
	    number != SYS_recvfrom && number != SYS_pidfd_send_signal && fails(call_of(number)))
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
