/* The configuration as a whole: its file, those of conf.d beside it, and what they are checked
 * against.
 */
#ifndef SUPERVISOR_CONFIGURATION_H
#define SUPERVISOR_CONFIGURATION_H

#include <stdbool.h>
#include <stdio.h>

struct config;

/* Who started the service. */
enum configuration_for {
	FOR_UNIT,
	FOR_HAND,	/* the environment may say something too (policy/sandbox_environment.h) */
	FOR_PRIVATE,	/* the same; and other defaults for one user at a terminal */
};

/* path: of the file; NULL: the installed one, which may be missing. Every mistake is printed,
 * with file and line. NULL after mistakes, or what was read, for config_free. */
struct config *configuration_read(const char *path, enum configuration_for whom, FILE *errors);

/* Prints what is in force for somebody: a login name, a uid, or a principal such as
 * "token:ci", with those of their groups that policy names. 0; -ENOENT: there is no such user;
 * or what the host's directory of users failed with. */
int configuration_show(const struct config *config, const char *who, FILE *out);

#endif
