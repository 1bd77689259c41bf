/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor and the client, before they serve.   Owns: nothing. */
#include "base/userdir.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/xalloc.h"

char *
userdir(const char *variable, const char *usual, const char *program)
{
	const char *named = getenv(variable), *home = getenv("HOME");

	if (named && *named == '/')
		return xasprintf("%s/%s", named, program);
	if (home && *home == '/' && access(home, F_OK) == 0)
		return xasprintf("%s/%s/%s", home, usual, program);
	return NULL;
}

int
userdir_make(char *path, mode_t mode)
{
	char *end = path;

	do {
		char after;
		int r;

		end += 1 + strcspn(end + 1, "/");
		after = *end;
		*end = '\0';
		r = mkdir(path, mode) < 0 && errno != EEXIST ? -errno : 0;
		*end = after;
		if (r < 0)
			return r;
	} while (*end);
	return 0;
}
