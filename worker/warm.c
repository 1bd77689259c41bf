/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the zygote and a child of its own (learn), a script's process (up).
 * Owns:    the list of ranges, which workers inherit with the zygote's memory. */
#include "worker/warm.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/own.h"
#include "worker/hugepage.h"
#include "worker/libraries.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_READ 22		/* since Linux 5.14 */
#define MADV_POPULATE_WRITE 23
#endif

#define RANGES_MAX 4096
#define AREAS_MAX 1024
#define AREA_MAX (1UL << 30)		/* bytes; a larger area is a sanitizer's, and would take
					 * too long */
#define FAULT_AROUND (64 << 10)		/* bytes that the kernel maps of a file at once */
#define PAGE_PRESENT (1ULL << 63)	/* of /proc/PID/pagemap */
#define PAGE_EXCLUSIVE (1ULL << 56)

struct range {
	uintptr_t start, end;
	bool written;			/* or a file's page that was only read */
};

struct learnt {
	size_t n;
	struct range range[RANGES_MAX];
};

static struct learnt *learnt;
static struct range area[AREAS_MAX];	/* the areas before the rehearsal */

/* Private readable mappings, from /proc/self/maps. */
static size_t
private_areas(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512], mode[5];
	unsigned long start, end;
	size_t n = 0;

	while (maps && n < AREAS_MAX && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %4s", &start, &end, mode) == 3 &&
		    mode[0] == 'r' && mode[3] == 'p' && end - start <= AREA_MAX &&
		    !strstr(line, "[v"))
			area[n++] = (struct range){ start, end, mode[1] == 'w' };
	if (maps)
		fclose(maps);
	return n;
}

/* Adds a page to the ranges from first on; earlier ranges belong to other areas. */
static void
add_page(struct learnt *to, size_t first, uintptr_t at, uintptr_t page, bool written)
{
	struct range *last = to->n > first ? &to->range[to->n - 1] : NULL;

	/* Ranges with a gap are not joined: to copy and free a page that no run writes costs more
	 * than one more call. */
	if (last && at <= last->end)
		last->end = at + page;
	else if (to->n < RANGES_MAX)
		to->range[to->n++] = (struct range){ at, at + page, written };
}

/* Has the run used the page? In a writable area: it is not shared with the zygote any more. In
 * another area, which a fork does not copy: it is present. */
static bool
is_touched(uint64_t entry, bool written)
{
	return (entry & PAGE_PRESENT) && (!written || (entry & PAGE_EXCLUSIVE));
}

/* Runs in the child. */
static void
find_touched(struct learnt *to, size_t n_areas)
{
	own_fd int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	static uint64_t entry[512];

	for (size_t i = 0; fd >= 0 && i < n_areas; i++) {
		uintptr_t at = area[i].start;
		size_t first = to->n;

		while (at < area[i].end) {
			size_t want = (area[i].end - at) / page;
			ssize_t n;

			if (want > sizeof(entry) / sizeof(entry[0]))
				want = sizeof(entry) / sizeof(entry[0]);
			n = pread(fd, entry, want * sizeof(entry[0]),
				  (off_t)(at / page * sizeof(entry[0])));
			if (n < (ssize_t)sizeof(entry[0]))
				break;
			for (size_t k = 0; k < (size_t)n / sizeof(entry[0]);
			     k++, at += page)
				if (is_touched(entry[k], area[i].written))
					add_page(to, first, at, page,
						 area[i].written);
		}
	}
}

void
warm_learn(void (*rehearse)(const void *arg), const void *arg)
{
	struct learnt *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	size_t n_areas;
	pid_t pid;

	if (shared == MAP_FAILED)
		return;
	/* Called here because it allocates memory: the child must find the heap as workers do. */
	n_areas = private_areas();
	pid = fork();
	if (pid == 0) {
		rehearse(arg);
		find_touched(shared, n_areas);
		_exit(0);
	}
	if (pid > 0 && waitpid(pid, NULL, 0) == pid)
		learnt = malloc(sizeof(*learnt));
	if (learnt)
		memcpy(learnt, shared, sizeof(*learnt));
	munmap(shared, sizeof(*shared));
}

/* A page fault also maps the pages around its address. Returns the first address that a fault at
 * this address does not map. */
static uintptr_t
next_around(uintptr_t at)
{
	size_t around = libraries_is_huge(at) ? HUGE_PAGE : FAULT_AROUND;

	return (at | (around - 1)) + 1;
}

void
warm_up(void)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

	/* A page that cannot be fetched now is fetched by a fault later. */
	for (size_t i = 0; learnt && i < learnt->n; i++) {
		struct range r = learnt->range[i];

		if (r.written) {
			madvise((void *)r.start, r.end - r.start, MADV_POPULATE_WRITE);
			continue;
		}
		/* One page brings its neighbours; separate requests would cost more. */
		for (uintptr_t at = r.start; at < r.end; at = next_around(at))
			madvise((void *)at, page, MADV_POPULATE_READ);
	}
}
