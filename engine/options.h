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
	FILE *learned;				/* engine_new reads and closes it: learning.h.
						 * NULL: nothing was learned before */
	void (*on_learned)(void *arg, char *text);	/* takes over what the next service reads
							 * as learned. NULL: it is not kept */
	void *learned_arg;
	struct rota *rota;			/* borrowed; for long answers. NULL: they wait for
						 * no turn */
};

#endif
