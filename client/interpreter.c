/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python gateway, interpreter.   Owns: nothing: another program does the work. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/commands.h"
#include "client/exits.h"
#include "client/say.h"

#define PROGRAMS "/mcp-python-"

/* The program lies beside this one in a build tree, else where it is installed. */
int
program_command(int, char **argv)
{
	char self[PATH_MAX], path[PATH_MAX + sizeof(PROGRAMS) + NAME_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	self[n > 0 ? n : 0] = '\0';
	slash = strrchr(self, '/');
	if (slash) {
		*slash = '\0';
		snprintf(path, sizeof(path), "%s" PROGRAMS "%s", self, argv[0]);
		execv(path, argv);
	}
	snprintf(path, sizeof(path), "%s" PROGRAMS "%s", LIBEXECDIR, argv[0]);
	execv(path, argv);
	say("%s: %s%s", path, strerror(errno), errno == ENOENT ? "; is its package installed?" : "");
	return EX_UNAVAILABLE;
}
