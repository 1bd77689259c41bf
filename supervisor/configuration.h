/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and checks the whole configuration: its file, and the files of conf.d beside it.
 */
#ifndef SUPERVISOR_CONFIGURATION_H
#define SUPERVISOR_CONFIGURATION_H

#include <stdbool.h>
#include <stdio.h>

/* The default file. */
#define CONFIGURATION_INSTALLED SYSCONFDIR "/mcp-pythond/mcp-pythond.conf"

struct config;

/* How the service was started. */
enum configuration_for {
	FOR_UNIT,	/* as a unit of systemd */
	FOR_HAND,	/* by hand: the environment has settings, too (policy/sandbox_environment.h)
			 */
	FOR_PRIVATE,	/* as FOR_HAND, with other defaults, for one user at a terminal */
};

/* The files and settings from which a configuration is made, at the start and at each reload. */
struct configuration_source {
	const char *path;	/* of the file; NULL: the installed one, which may be missing */
	enum configuration_for whom;
	bool with_own;		/* also the files of the user, if there is no path */
	bool one_client;	/* --stdio: without the places of the machine's service */
	const char *toolsets;	/* in the place of [mcp] toolsets; NULL: as the files say */
	const char *folder;	/* for laptop_folder(); NULL: none */
	bool roots;		/* files below the client's roots may be taken */
	const char *packages;	/* the index for laptop_packages(); NULL: it is not called */
};

/* Reads the configuration, and prints every mistake with file and line. The caller releases the
 * result by config_free. NULL: there were mistakes. */
struct config *configuration_read(const struct configuration_source *source, FILE *errors);

/* The configuration directory of the user who has started this process, malloc'd. NULL: the user is
 * root, or has no such directory. */
char *configuration_own_folder(void);

/* Prints the configuration in force for a login name, a uid, or a principal such as "token:ci",
 * with the user's groups that policy names. 0; -ENOENT: there is no such user; or the error of the
 * host's directory of users. */
int configuration_show(const struct config *config, const char *who, FILE *out);

#endif
