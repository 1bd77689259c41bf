/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor's view of the store: the manifests of environments, and which environment answered
 * each earlier request. The keeper makes and removes environments (engine/keeper.h); the requests
 * are a cache of the supervisor.
 */
#ifndef TOOLS_SETS_STORE_H
#define TOOLS_SETS_STORE_H

#include <time.h>

#include <jansson.h>

#include "tools/sets/set.h"

/* The manifest of an environment, which the caller releases. NULL: there is no such environment. */
json_t *store_manifest(const char *store, const char *name);

/* Can a top-level module be imported from an environment? module: letters, digits and _. extension:
 * the ending of extension modules for the environment's interpreter. */
bool store_has_module(const char *store, const char *name, const char *module,
		      const char *extension);

/* The environment that answered this request before: returns its manifest, which the caller
 * releases, and its name. NULL: there is none, or it was removed. */
json_t *store_find(const char *store, const char *request, char name_r[SET_NAME + 1]);

/* Notes that the environment answers this request. After a failure a later request takes more time.
 */
void store_remember(const char *store, const char *request, const char *name);

/* Drops requests that are older than this time, and others if there are too many, because tenants
 * can make any number of them. */
void store_forget(const char *store, time_t oldest);

#endif
