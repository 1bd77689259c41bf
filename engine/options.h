/* SPDX-License-Identifier: Apache-2.0 */
/* What an engine is made with.
 */
#ifndef ENGINE_OPTIONS_H
#define ENGINE_OPTIONS_H

#include <sys/types.h>

struct cgroup_root;
struct config;
struct engine_observer;
struct event_base;
struct filestore;
struct launcher;

#define ENGINE_OTHERS 3

struct engine_options {
	struct event_base *base;		/* borrowed */
	const struct config *config;		/* borrowed, outlives the engine */
	struct launcher *launcher;		/* borrowed: host/startup.h */
	struct cgroup_root *cgroups;		/* borrowed; NULL: no cgroups */
	const struct engine_observer *observer;	/* borrowed; NULL: none */
	struct filestore *filestore;		/* borrowed; NULL: no file is kept on disk */
	pid_t other_child[ENGINE_OTHERS];	/* children of this process that do not belong to
						 * the engine; 0: none */
};

#endif
