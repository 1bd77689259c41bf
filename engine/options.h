/* SPDX-License-Identifier: Apache-2.0 */
/* What an engine is made with.
 */
#ifndef ENGINE_OPTIONS_H
#define ENGINE_OPTIONS_H

#include <stdbool.h>
#include <stdio.h>

struct cgroup_root;
struct config;
struct engine_observer;
struct event_base;
struct filestore;
struct launcher;
struct rota;

struct engine_options {
	struct event_base *base;		/* borrowed */
	const struct config *config;		/* borrowed, outlives the engine */
	struct launcher *launcher;		/* borrowed: host/startup.h */
	struct cgroup_root *cgroups;		/* borrowed; NULL: no cgroups */
	const struct engine_observer *observer;	/* borrowed; NULL: none */
	bool early;				/* the first zygotes are bare (learnable.h), and are
						 * replaced soon */
	struct filestore *filestore;		/* borrowed; NULL: no file is kept on disk */
	FILE *learned;				/* the engine's from now on: learning.h. NULL: what
						 * is learned is not kept over a restart */
	struct rota *rota;			/* borrowed; for long answers. NULL: they wait for
						 * no turn */
};

#endif
