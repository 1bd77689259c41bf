/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor before it drops privilege, the launcher, mcp-python.   Owns: nothing. */
#include "base/programs.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char worker[] = "mcp-python-worker";

static bool
program_is_at(const char *directory, const char *name, char *path, size_t size)
{
	return snprintf(path, size, "%s/%s", directory, name) < (int)size &&
	       access(path, X_OK) == 0;
}

/* The worker of the host's python3. */
static bool
program_is_numbered_worker(const char *directory, char *path, size_t size)
{
	char python[PATH_MAX], name[sizeof(worker) + NAME_MAX];
	const char *base;

	if (!realpath("/usr/bin/python3", python))
		return false;
	base = strrchr(python, '/') + 1;
	if (strncmp(base, "python", strlen("python")) != 0)
		return false;
	snprintf(name, sizeof(name), "%s-%.16s", worker, base + strlen("python"));
	return program_is_at(directory, name, path, size);
}

bool
program_path(const char *name, char *path, size_t size)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[n > 0 ? n : 0] = '\0';
	if (strrchr(self, '/'))
		*strrchr(self, '/') = '\0';
	return program_is_at(self, name, path, size) ||
	       (strcmp(name, worker) == 0 && program_is_numbered_worker(self, path, size)) ||
	       program_is_at(SBINDIR, name, path, size) ||
	       program_is_at(LIBEXECDIR, name, path, size);
}
