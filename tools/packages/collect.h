/* SPDX-License-Identifier: Apache-2.0 */
/* Removes environments from the store: those that have been unused for a long time and, if the
 * store is too large, others, beginning with the one that has been unused for longest.
 */
#ifndef TOOLS_PACKAGES_COLLECT_H
#define TOOLS_PACKAGES_COLLECT_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct config;
struct engine;

/* Notes that an environment is used now: sets the time of its directory. */
void collect_note_use(const char *store, const char *name);

/* Looks at an environment: the time of its last use, and its size. store: its directory. False: it
 * is not there. */
bool collect_find(int store, const char *name, time_t *used_r, uint64_t *bytes_r);

/* Visits all environments; those that were unused for longest come first. */
void collect_each(const char *store, void (*visit)(void *arg, const char *name, time_t used,
						   uint64_t bytes), void *arg);

/* Removes an environment. False: it is in use, or the keeper does not serve. */
bool collect_one(struct engine *engine, const char *name);

/* Removes environments. An environment stays if an execution or a session uses it or waits for it.
 * keep: the name of another one that stays; NULL: none. due_only: does nothing if it was called
 * less than an hour ago. */
void collect(struct engine *engine, const struct config *config, const char *keep,
	     bool due_only);

#endif
