/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about the Python of a profile: versions, values of markers, packages. A worker without any
 * data of a client reports them. The report is used for a while, for all tenants.
 */
#ifndef TOOLS_SHARED_ENVIRONMENT_H
#define TOOLS_SHARED_ENVIRONMENT_H

#include <stdbool.h>

#include <jansson.h>

#include "mcp/tool.h"
#include "policy/requirement.h"

#define ENVIRONMENT_AGE_MS 60000	/* after this time a worker is asked again */

struct environment_ask;

/* environment: borrowed, an object {"program", "markers": {...}, "packages": {...}} whose values
 * are all texts; NULL: there is none, and outcome has the reason. */
typedef void environment_known(void *arg, const json_t *environment,
			       const struct outcome *outcome);

/* The profile for a call that asks for name (NULL: it names none), if the tenant may use it. 0 and
 * *profile_r (the configuration's text), or -ENOENT or -EACCES with why_r. */
int environment_profile(const struct tool_host *host, const char *name,
			const char **profile_r, struct why *why_r);

/* Finds the next profile for a call that can use any profile with a fitting Python. Moves *at, the
 * index of a profile, on to the next profile that the caller may use and whose interpreter no
 * earlier profile has. False: there is none. */
bool environment_next_profile(const struct tool_host *host, size_t *at, const char **profile_r);

/* Gets the environment of a profile. 1: *environment_r has it, and the caller releases it. 0: known
 * will be called once, from a later turn of the loop, and *ask_r is valid until then. Or an error
 * of execution_start, with why_r. profile: as environment_profile gave it. */
int environment_get(const struct tool_host *host, const char *profile,
		    environment_known *known, void *arg, json_t **environment_r,
		    struct environment_ask **ask_r, struct why *why_r);
void environment_cancel(struct environment_ask *ask, enum cancel_reason reason);

/* Searches the existing reports of the profiles that the caller may use, without asking a worker.
 * Returns the name of an installed package that has this name or almost this name, and its profile
 * in *profile_r. NULL: none is known. name: normalised. Both are valid until the loop's next turn.
 */
const char *environment_similar(const struct tool_host *host, const char *name,
				const char **profile_r);

/* Sets the names of well-known modules that scripts of the default profile can import, "numpy,
 * pandas"; and the platform of its Python (zygote_platform; "": not known yet). Both are copied.
 * They are for descriptions of tools, which are made before any worker is asked. True: something
 * has changed. */
bool environment_name(const char *modules, const char *platform);

/* The version of that Python, "3.11"; valid until the loop's next turn. */
const char *environment_version(void);

/* Does the same, before a zygote can name them, with those that are found where Python usually has
 * its packages. */
void environment_guess(const struct config *config);

/* A sentence about these modules for a description, with a blank before it, malloc'd; "": no module
 * is known. */
char *environment_names_text(const struct config *config);

/* Frees all reports. */
void environment_forget(void);

/* The value of a marker (PEP 508), such as "sys_platform"; "": there is no marker of this name. */
const char *environment_marker(const json_t *environment, const char *name);

/* The version of Python, "3.11.2". */
const char *environment_python(const json_t *environment);

/* Is the requirement met, with its extras? Or is it not needed, because of its marker? */
bool environment_satisfies(const json_t *environment,
			   const struct requirement *requirement);

/* Does this Python fit the specifiers (PEP 440), which are valid? */
bool environment_fits(const json_t *environment, const char *requires_python);

#endif
