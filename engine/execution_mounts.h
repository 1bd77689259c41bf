/* SPDX-License-Identifier: Apache-2.0 */
/* Stored files (host/filestore.h) that an execution's script reads where they are: the keeper
 * mounts each, read-only, at a place of the worker, and in /workspace is a link to that. Nothing is
 * copied.
 *
 * A script's worker has its places to itself. A session's fill up: what a cell was given stays
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

/* Asks the keeper to mount them, and appends the links, which wait for that, to what the worker is
 * sent. places: the session's, NULL for a script. 0; or -errno: -ENOTCONN when there is no
 * keeper, and then the worker is as it was. */
int execution_mounts_put(struct execution *execution, int pidfd, struct mount_places *places,
			 struct frame_writer *to);

/* The worker is gone. */
void mount_places_done(struct mount_places *places);

#endif
