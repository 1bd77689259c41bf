/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python interpreter.   Owns: nothing: another program does the work. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/commands.h"
#include "client/exits.h"
#include "client/say.h"

#define PROGRAM "mcp-python-interpreter"

/* The program lies beside this one in a build tree, else where it is installed. */
int
interpreter_command(int argc, char **argv)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - sizeof("/" PROGRAM));
	char *slash;

	(void)argc;
	path[n > 0 ? n : 0] = '\0';
	slash = strrchr(path, '/');
	if (slash) {
		strcpy(slash, "/" PROGRAM);
		execv(path, argv);
	}
	execv(LIBEXECDIR "/" PROGRAM, argv);
	say("%s: %s", LIBEXECDIR "/" PROGRAM, strerror(errno));
	return EX_UNAVAILABLE;
}
