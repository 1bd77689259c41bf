/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: tests.   Owns: nothing. */
#include "tests/unit/worker/huge.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25		/* since Linux 6.1 */
#endif
#define HUGE_PAGE (2UL << 20)

long
huge_kib(pid_t pid, const char *key)
{
	char path[64], line[256];
	long found = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)pid);
	f = fopen(path, "re");
	while (f && found < 0 && fgets(line, sizeof(line), f))
		if (strncmp(line, key, strlen(key)) == 0)
			found = atol(line + strlen(key));
	if (f)
		fclose(f);
	return found;
}

bool
huge_kernel_can(size_t bytes)
{
	char *at = mmap(NULL, bytes + HUGE_PAGE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *huge = (char *)(((uintptr_t)at + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1));
	bool can = true;

	if (at == MAP_FAILED)
		abort();
	for (size_t i = 0; can && i < bytes; i += HUGE_PAGE) {
		huge[i] = 1;
		can = madvise(huge + i, HUGE_PAGE, MADV_COLLAPSE) == 0;
	}
	munmap(at, bytes + HUGE_PAGE);
	return can;
}
