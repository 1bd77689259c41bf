/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the zygote and its workers.   Owns: the bytes of the command line. */
#include "worker/title.h"

#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

static char *start;
static size_t size;		/* its last byte stays NUL */

void
title_keep(char **argv)
{
	start = argv[0];
	size = 0;
	/* The kernel puts the arguments one behind the other. */
	for (; *argv && *argv == start + size; argv++)
		size += strlen(*argv) + 1;
}

void
title_set(const char *comm, const char *role)
{
	prctl(PR_SET_NAME, comm, 0, 0, 0);
	if (size == 0)
		return;
	memset(start, 0, size);
	snprintf(start, size, "mcp-python %s", role);
}
