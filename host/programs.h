/* SPDX-License-Identifier: Apache-2.0 */
/* Where the programs of the service are.
 */
#ifndef HOST_PROGRAMS_H
#define HOST_PROGRAMS_H

#include <stdbool.h>

struct config;
struct config_profile;
struct why;

/* Opens a program with O_PATH; base/programs.h says where it is. Unless as_service, the
 * environment variable comes first (NULL: there is none). A descriptor or -errno. */
int programs_find(const char *name, const char *variable, bool as_service);

/* Opens the worker of a profile with another interpreter: the program that its section
 * [interpreter NAME] names, or mcp-python-worker-NAME. A descriptor; -1: it has the usual one;
 * or another -errno with why_r. */
int programs_of_profile(const struct config *config, const struct config_profile *profile,
			struct why *why_r);

#endif
