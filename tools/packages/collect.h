/* SPDX-License-Identifier: Apache-2.0 */
/* Removal of environments from the store: those that were not used for a long time; and if the
 * store is too large, others, beginning with the one that was not used for longest.
 */
#ifndef TOOLS_PACKAGES_COLLECT_H
#define TOOLS_PACKAGES_COLLECT_H

#include <stdbool.h>

struct config;
struct engine;

/* Notes that an environment is used now: sets the time of its directory. */
void collect_note_use(const char *store, const char *name);

/* Removes environments. The one that keep names (NULL: none) stays, and so do those that an
 * execution or a session uses or waits for. due_only: does nothing if it was called less than an
 * hour ago. */
void collect(struct engine *engine, const struct config *config, const char *keep,
	     bool due_only);

#endif
