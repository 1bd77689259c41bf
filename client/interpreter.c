/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python gateway, interpreter.   Owns: nothing: another program does the work. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/programs.h"
#include "client/commands.h"
#include "client/exits.h"
#include "client/say.h"

int
program_command(int, char **argv)
{
	char path[PATH_MAX], name[NAME_MAX];

	snprintf(name, sizeof(name), "mcp-python-%s", argv[0]);
	if (program_path(name, path, sizeof(path)))
		execv(path, argv);
	say("%s: %s%s", path, strerror(errno), errno == ENOENT ? "; is its package installed?" : "");
	return EX_UNAVAILABLE;
}
