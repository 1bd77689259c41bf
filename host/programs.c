/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor before it drops privilege, and the launcher.   Owns: nothing. */
#include "host/programs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "base/programs.h"
#include "base/why.h"
#include "policy/config.h"

static int
open_program(const char *path)
{
	own_fd int fd = open(path, O_PATH | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || (st.st_mode & 0111) == 0)
		return -EACCES;
	return give_fd(fd);
}

int
programs_find(const char *name, const char *variable, bool as_service)
{
	const char *named = as_service ? NULL : secure_getenv(variable);
	char path[PATH_MAX];

	if (named != NULL && *named != '\0')
		return open_program(named);
	(void)program_path(name, path, sizeof(path));
	return open_program(path);
}

int
programs_of_profile(const struct config *config, const struct config_profile *profile,
		    struct why *why_r)
{
	const struct config_interpreter *interpreter = config_interpreter_of(config, profile);
	char name[64];
	int fd;

	if (profile->interpreter == NULL)
		return -1;
	if (interpreter != NULL && interpreter->worker != NULL) {
		fd = open_program(interpreter->worker);
		if (fd < 0)
			why_say(why_r, fd, "interpreter", "[interpreter %s] worker: %s: %s",
				interpreter->name, interpreter->worker, strerror(-fd));
		return fd;
	}
	snprintf(name, sizeof(name), "mcp-python-worker-%s", profile->interpreter);
	fd = programs_find(name, NULL, true);
	if (fd < 0)
		why_say(why_r, fd, "interpreter", "[profile %s] interpreter: %s: %s",
			profile->name, name, strerror(-fd));
	return fd;
}
