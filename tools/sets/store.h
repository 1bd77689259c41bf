/* What the supervisor reads of the store: manifests of environments, and which environment
 * answered which request before. The keeper makes and removes environments
 * (engine/keeper.h); requests are a cache of the supervisor's own.
 */
#ifndef TOOLS_SETS_STORE_H
#define TOOLS_SETS_STORE_H

#include <time.h>

#include <jansson.h>

#include "tools/sets/set.h"

/* The manifest of an environment, which is there then; NULL when it is not. json_decref. */
json_t *store_manifest(const char *store, const char *name);

/* Can a module of the top level be imported from an environment? extension: how extension modules
 * of its interpreter end. module: letters, digits and _. */
bool store_has_module(const char *store, const char *name, const char *module,
		      const char *extension);

/* The environment that answered this request, and its manifest (json_decref); NULL when
 * there is none any more. */
json_t *store_find(const char *store, const char *request, char name_r[SET_NAME + 1]);

/* From now on it answers this request. What fails is not remembered, and only costs time. */
void store_remember(const char *store, const char *request, const char *name);

/* Forgets the requests of before a time, and others when they are too many: each tenant may make
 * as many as they like. */
void store_forget(const char *store, time_t oldest);

#endif
