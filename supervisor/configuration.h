/* The configuration as a whole: its file, those of conf.d beside it, and what they are checked
 * against.
 */
#ifndef SUPERVISOR_CONFIGURATION_H
#define SUPERVISOR_CONFIGURATION_H

#include <stdbool.h>
#include <stdio.h>

struct config;

/* path: of the file; NULL: the installed one, which may be missing. by_hand: no unit; then
 * the environment may say something too (policy/sandbox_environment.h). Every mistake is printed,
 * with file and line. NULL after mistakes, or what was read, for config_free. */
struct config *configuration_read(const char *path, bool by_hand, FILE *errors);

/* Prints what is in force for somebody: a login name, a uid, or a principal such as
 * "token:ci", with those of their groups that policy names. 0; -ENOENT: there is no such user;
 * or what the host's directory of users failed with. */
int configuration_show(const struct config *config, const char *who, FILE *out);

#endif
