/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration as a whole: its file, those of conf.d beside it, and what they are checked
 * against.
 */
#ifndef SUPERVISOR_CONFIGURATION_H
#define SUPERVISOR_CONFIGURATION_H

#include <stdbool.h>
#include <stdio.h>

/* The file that is read when none is named. */
#define CONFIGURATION_INSTALLED SYSCONFDIR "/mcp-pythond/mcp-pythond.conf"

struct config;

/* Who started the service. */
enum configuration_for {
	FOR_UNIT,
	FOR_HAND,	/* the environment may say something too (policy/sandbox_environment.h) */
	FOR_PRIVATE,	/* the same; and other defaults for one user at a terminal */
};

/* What a configuration is made from, at the start and at each reload. */
struct configuration_source {
	const char *path;	/* of the file; NULL: the installed one, which may be missing */
	enum configuration_for whom;
	bool with_own;		/* the files of the user, too, if there is no path */
	const char *packages;	/* for laptop_packages(); NULL: it is not called */
};

/* Every mistake is printed, with file and line. NULL after mistakes, or what was read, for
 * config_free. */
struct config *configuration_read(const struct configuration_source *source, FILE *errors);

/* Where the user who started this process has files of their own; malloc'd, and NULL for root and
 * where there is no such place. */
char *configuration_own_folder(void);

/* Prints what is in force for somebody: a login name, a uid, or a principal such as
 * "token:ci", with those of their groups that policy names. 0; -ENOENT: there is no such user;
 * or what the host's directory of users failed with. */
int configuration_show(const struct config *config, const char *who, FILE *out);

#endif
