/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the zygote (prepare), every worker (mount), the script's process (tell).
 * Owns:    /etc/proc of the jail; the files behind /proc/meminfo and /proc/uptime; a timer.
 * Init must not touch the heap (worker/heap.h). */
#include "worker/procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/own.h"

#define PLACE "etc/proc"		/* in the root; read-only for workers */
#define MEMINFO "/run/meminfo"		/* the file's name until it is mounted */
#define UPTIME "/run/uptime"		/* the same, for uptime */
#define FLAGS (MS_NOSUID | MS_NODEV | MS_NOEXEC)
#define PROCESSORS_MAX 8192

/* ---- once, in the zygote ---- */

/* Lines of the host's /proc/cpuinfo that any program could ask the processor for. Its clock, its
 * microcode and its place in the machine are not among them. */
static const char *const processor_keys[] = {
	"vendor_id", "cpu family", "model", "model name", "stepping", "flags", "clflush size",
	"cache_alignment", "address sizes",
	"Features", "CPU implementer", "CPU architecture", "CPU variant", "CPU part", "CPU revision",
	"isa", "mmu", "uarch",
	"cpu", "revision",
};

static const struct {
	const char *name, *text;
} constant[] = {
	{ "diskstats", "" },
	{ "filesystems", "nodev\tproc\nnodev\ttmpfs\n" },
	{ "loadavg", "0.00 0.00 0.00 1/1 1\n" },
	{ "partitions", "major minor  #blocks  name\n\n" },
	{ "swaps", "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n" },
	{ "vmstat", "pgpgin 0\npgpgout 0\npswpin 0\npswpout 0\npgfault 0\npgmajfault 0\n" },
};

static FILE *
procfs_make(int place, const char *name)
{
	own_fd int fd = openat(place, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w");

	if (file)
		(void)give_fd(fd);
	return file;
}

static int
procfs_finish(FILE *file)
{
	bool failed = ferror(file);

	return fclose(file) != 0 || failed ? -EIO : 0;
}

static bool
is_told(const char *line)
{
	size_t len = strcspn(line, "\t:");

	for (size_t i = 0; i < sizeof(processor_keys) / sizeof(processor_keys[0]); i++)
		if (strlen(processor_keys[i]) == len && memcmp(line, processor_keys[i], len) == 0)
			return true;
	return false;
}

/* Describes one package, with a core for each processor. */
static void
write_processor(FILE *file, unsigned int number, const cpu_set_t *set, size_t size)
{
	fprintf(file, "processor\t: %u\nphysical id\t: 0\ncore id\t\t: %u\ncpu cores\t: %d\n",
		number, number, CPU_COUNT_S(size, set));
}

/* The host's file cannot be seen: the unit has ProcSubset=pid. */
static void
write_bare_cpuinfo(FILE *file, const cpu_set_t *set, size_t size)
{
	for (unsigned int i = 0; i < PROCESSORS_MAX; i++)
		if (CPU_ISSET_S(i, size, set)) {
			write_processor(file, i, set, size);
			fputs("\n", file);
		}
}

static int
write_cpuinfo(FILE *file, const cpu_set_t *set, size_t size)
{
	FILE *host = fopen("/proc/cpuinfo", "re");
	own_mem char *line = NULL;
	size_t room = 0;
	bool is_shown = false;
	int r = 0;

	if (!host && errno != ENOENT)
		return -errno;
	if (!host) {
		write_bare_cpuinfo(file, set, size);
		return 0;
	}
	while (getline(&line, &room, host) > 0) {
		unsigned int number;

		if (sscanf(line, "processor : %u", &number) == 1) {
			is_shown = number < PROCESSORS_MAX && CPU_ISSET_S(number, size, set);
			if (is_shown)
				write_processor(file, number, set, size);
		} else if (line[0] == '\n') {
			if (is_shown)
				fputs("\n", file);
			is_shown = false;
		} else if (is_shown && is_told(line)) {
			fputs(line, file);
		}
	}
	if (!feof(host))
		r = -errno;
	fclose(host);
	return r;
}

/* All processor times are 0: those of a worker are in the files of its processes. The time of boot
 * (btime) is the zygote's start. */
static int
write_stat(FILE *file, const cpu_set_t *set, size_t size)
{
	static const char zeros[] = " 0 0 0 0 0 0 0 0 0 0\n";

	fprintf(file, "cpu %s", zeros);
	for (unsigned int i = 0; i < PROCESSORS_MAX; i++)
		if (CPU_ISSET_S(i, size, set))
			fprintf(file, "cpu%u%s", i, zeros);
	fprintf(file, "intr 0\nctxt 0\nbtime %lld\nprocesses 1\nprocs_running 1\nprocs_blocked 0\n"
		"softirq 0 0 0 0 0 0 0 0 0 0 0\n", (long long)time(NULL));
	return 0;
}

static const struct {
	const char *name;
	int (*write)(FILE *file, const cpu_set_t *set, size_t size);
} processors[] = { { "cpuinfo", write_cpuinfo }, { "stat", write_stat } };

static int
write_processors(int place, const char **what_r)
{
	cpu_set_t *set = CPU_ALLOC(PROCESSORS_MAX);
	size_t size = CPU_ALLOC_SIZE(PROCESSORS_MAX);
	int r = set ? 0 : -ENOMEM;

	if (r == 0 && sched_getaffinity(0, size, set) < 0)
		r = -errno;
	for (size_t i = 0; r == 0 && i < sizeof(processors) / sizeof(processors[0]); i++) {
		FILE *file = procfs_make(place, processors[i].name);
		int error;

		*what_r = processors[i].name;
		if (!file) {
			r = -errno;
			break;
		}
		r = processors[i].write(file, set, size);
		error = procfs_finish(file);
		if (r == 0)
			r = error;
	}
	if (set)
		CPU_FREE(set);
	return r;
}

static bool booted;	/* boot_now() was allowed */

/* Enters a time namespace for the processes that this one makes from now on, in which the machine
 * has booted now: start times in /proc/PID/stat count from btime, and CLOCK_BOOTTIME and sysinfo
 * say how old the zygote is. All workers share it. If the kernel has none, they run without it.
 * CLOCK_MONOTONIC is not changed, because its times are compared with those of other processes. */
static void
boot_now(void)
{
	own_fd int fd = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
	struct timespec since;
	char text[64];
	int len;

	if (fd < 0 || clock_gettime(CLOCK_BOOTTIME, &since) < 0 || unshare(CLONE_NEWTIME) < 0)
		return;
	/* Whole seconds, rounded down: the kernel refuses a time below 0. */
	len = snprintf(text, sizeof(text), "boottime %lld 0\n", -(long long)since.tv_sec);
	/* If the kernel refuses this, times count from the machine's boot. */
	booted = write(fd, text, (size_t)len) == len;
}

int
procfs_prepare(int root, const char **what_r)
{
	own_fd int place = -1;

	boot_now();
	*what_r = PLACE;
	if ((mkdirat(root, "etc", 0755) < 0 && errno != EEXIST) ||
	    mkdirat(root, PLACE, 0755) < 0)
		return -errno;
	place = openat(root, PLACE, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (place < 0)
		return -errno;
	for (size_t i = 0; i < sizeof(constant) / sizeof(constant[0]); i++) {
		FILE *file = procfs_make(place, constant[i].name);

		*what_r = constant[i].name;
		if (!file)
			return -errno;
		fputs(constant[i].text, file);
		if (procfs_finish(file) < 0)
			return -EIO;
	}
	return write_processors(place, what_r);
}

/* ---- in a worker ---- */

/* Links into a process's own directory. */
static const char *const links[] = { "mounts", "net" };

/* Mounts from over an entry of /proc. An entry that this kernel lacks is no error. */
static int
procfs_cover(const char *from, const char *name)
{
	char to[64];

	snprintf(to, sizeof(to), "/proc/%s", name);
	return mount(from, to, NULL, MS_BIND, NULL) < 0 && errno != ENOENT ? -errno : 0;
}

static int
cover_by_shared(const char *name)
{
	char from[64];

	snprintf(from, sizeof(from), "/" PLACE "/%s", name);
	return procfs_cover(from, name);
}

/* mount() follows links, so it gets the link itself by a descriptor. */
static int
keep_link(const char *name)
{
	own_fd int dir = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	own_fd int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	char path[64];

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return mount(path, path, NULL, MS_BIND, NULL) < 0 ? -errno : 0;
}

/* Mounts a file of the worker's own file system over a name, read-only: unlike the root, that file
 * system can be written to. Removes the file's name, by which scripts could write to it. */
static int
cover_by_own(const char *from, const char *to)
{
	int r = mount(from, to, NULL, MS_BIND, NULL) < 0 ? -errno : 0;

	if (r == 0 &&
	    (mount(NULL, to, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | FLAGS, NULL) < 0 ||
	     unlink(from) < 0))
		r = -errno;
	return r;
}

static int
keep_names(void)
{
	int r = cover_by_own(MEMINFO, "/proc/meminfo");

	if (r == 0)
		r = cover_by_own(UPTIME, "/proc/uptime");
	for (size_t i = 0; r == 0 && i < sizeof(constant) / sizeof(constant[0]); i++)
		r = cover_by_shared(constant[i].name);
	for (size_t i = 0; r == 0 && i < sizeof(processors) / sizeof(processors[0]); i++)
		r = cover_by_shared(processors[i].name);
	for (size_t i = 0; r == 0 && i < sizeof(links) / sizeof(links[0]); i++)
		r = keep_link(links[i]);
	return r;
}

static uint64_t told;			/* what meminfo says of the limit */

static int
write_meminfo(int fd, uint64_t memory_bytes)
{
	unsigned long long kib = memory_bytes / 1024;
	char text[1024];
	int len;

	len = snprintf(text, sizeof(text),
		       "MemTotal:       %llu kB\nMemFree:        %llu kB\nMemAvailable:   %llu kB\n"
		       "Buffers:        0 kB\nCached:         0 kB\nSwapCached:     0 kB\n"
		       "Active:         0 kB\nInactive:       0 kB\nSwapTotal:      0 kB\n"
		       "SwapFree:       0 kB\nDirty:          0 kB\nAnonPages:      0 kB\n"
		       "Mapped:         0 kB\nShmem:          0 kB\nSlab:           0 kB\n"
		       "SReclaimable:   0 kB\nSUnreclaim:     0 kB\nCommitLimit:    %llu kB\n"
		       "Committed_AS:   0 kB\n", kib, kib, kib, kib);
	told = memory_bytes;
	return pwrite(fd, text, (size_t)len, 0) == len ? 0 : -EIO;
}

static int meminfo = -1, uptime = -1, tick = -1;

/* The uptime is a second ahead: programs subtract a process's start from it in unsigned numbers.
 * Without a time namespace it is given as 0, because it would be the machine's. The idle time is
 * always 0. */
static int
write_uptime(int fd)
{
	struct timespec since = { .tv_sec = -1 };
	char text[64];
	int len;

	if (booted && clock_gettime(CLOCK_BOOTTIME, &since) < 0)
		return -errno;
	len = snprintf(text, sizeof(text), "%lld.%02ld 0.00\n", (long long)since.tv_sec + 1,
		       since.tv_nsec / 10000000);
	/* It is never shorter than the last one. */
	return pwrite(fd, text, (size_t)len, 0) == len ? 0 : -EIO;
}

static int
procfs_create(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	return fd < 0 ? -errno : fd;
}

/* Init and the script's process share the timer: the one waits for it, the other starts it. So init
 * is not woken when a run begins. */
static int
make_tick(void)
{
	tick = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	return tick < 0 ? -errno : 0;
}

int
procfs_mount(uint64_t memory_bytes)
{
	int r;

	meminfo = procfs_create(MEMINFO);
	r = meminfo < 0 ? meminfo : write_meminfo(meminfo, memory_bytes);
	uptime = procfs_create(UPTIME);
	if (r == 0)
		r = uptime < 0 ? uptime : write_uptime(uptime);
	if (r == 0)
		r = make_tick();
	if (r == 0 && mount("proc", "/proc", "proc", FLAGS, "hidepid=2") < 0)
		r = -errno;
	if (r == 0)
		r = keep_names();
	/* From now on /proc has only processes and the entries that are mounted over. */
	if (r == 0 && mount(NULL, "/proc", NULL, MS_REMOUNT | FLAGS, "hidepid=2,subset=pid") < 0)
		r = -errno;
	return r;
}

void
procfs_leave(void)
{
	close(meminfo);
	close(uptime);
	meminfo = uptime = -1;
}

bool
procfs_holds(int fd)
{
	return fd == meminfo || fd == uptime || fd == tick;
}

int
procfs_tick(void)
{
	return tick;
}

void
procfs_end_tick(void)
{
	close(tick);
	tick = -1;
}

void
procfs_tell_uptime(void)
{
	(void)write_uptime(uptime);
}

void
procfs_tell_memory(uint64_t memory_bytes)
{
	(void)write_meminfo(meminfo, memory_bytes);
}

void
procfs_on_tick(void)
{
	uint64_t times;

	if (read(tick, &times, sizeof(times)) == (ssize_t)sizeof(times))
		procfs_tell_uptime();
}

static int
start_tick(void)
{
	const struct timespec every = { .tv_nsec = PROCFS_TICK_MS * 1000000L };
	const struct itimerspec times = { .it_interval = every, .it_value = every };
	int r = timerfd_settime(tick, 0, &times, NULL) < 0 ? -errno : 0;

	procfs_end_tick();
	return r;
}

int
procfs_tell(uint64_t memory_bytes)
{
	int r = write_uptime(uptime);

	if (r == 0 && memory_bytes != told)
		r = ftruncate(meminfo, 0) < 0 ? -errno : write_meminfo(meminfo, memory_bytes);
	procfs_leave();
	return r == 0 ? start_tick() : r;
}
