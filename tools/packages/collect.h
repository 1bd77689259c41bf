/* What is removed from the store: environments that were not used for long, and when there is
 * too much in it, those that were not used for longest.
 */
#ifndef TOOLS_PACKAGES_COLLECT_H
#define TOOLS_PACKAGES_COLLECT_H

#include <stdbool.h>

struct config;
struct engine;

/* An environment was used just now: that is the time of its directory. */
void collect_note_use(const char *store, const char *name);

/* Looks through the store; never removes keep (NULL: none), nor what an execution or a
 * session has or waits for. due_only: only when that was not done within the hour. */
void collect(struct engine *engine, const struct config *config, const char *keep,
	     bool due_only);

#endif
