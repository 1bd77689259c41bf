/* SPDX-License-Identifier: Apache-2.0 */
/* Stored files (host/filestore.h) that a script reads without a copy: the keeper mounts each one
 * read-only at a place in the worker, and /workspace has a link to that place.
 *
 * A script has all places of its worker. In a session the places fill up: the files of a cell stay
 * mounted until the session ends, because its links stay too.
 */
#ifndef ENGINE_EXECUTION_MOUNTS_H
#define ENGINE_EXECUTION_MOUNTS_H

#include <stddef.h>

#include "proto/message.h"

struct engine;
struct execution;
struct execution_mount;
struct execution_request;
struct filestore_hold;
struct frame_writer;
struct tenant;
struct why;

/* Its members belong to execution_mounts.c. Zeroed: none. */
struct execution_mounts {
	struct execution_mount *item;
	size_t n;
};

/* The places of a session's worker. Zeroed: all are free. */
struct mount_places {
	struct filestore_hold *file[FILE_PLACES];	/* NULL: mounted by an earlier supervisor */
	unsigned int n;
};

/* Holds the files that the request names. 0; or -errno with why_r, and nothing is held. */
int execution_mounts_take(struct execution_mounts *mounts, struct engine *engine,
			  const struct tenant *tenant, const struct execution_request *request,
			  struct why *why_r);
void execution_mounts_done(struct execution_mounts *mounts);

/* Asks the keeper to mount them, and adds the orders for the links, which wait for the mounts, to
 * the worker's messages. places: those of the session, NULL for a script. 0 or -errno; -ENOTCONN:
 * there is no keeper, and the worker is unchanged. */
int execution_mounts_put(struct execution *execution, int pidfd, struct mount_places *places,
			 struct frame_writer *to);

/* The worker is gone. */
void mount_places_done(struct mount_places *places);

#endif
