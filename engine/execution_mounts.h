/* SPDX-License-Identifier: Apache-2.0 */
/* Files and directories that are mounted for an execution, and not copied. Stored files
 * (host/filestore.h): the keeper mounts each of them, read-only, at a place of the worker, and
 * /workspace has a link to that place. A volume (engine/volume.h): the keeper mounts it at
 * VOLUME_PLACE.
 * The user's folder, for every script and cell: at FOLDER_PLACE.
 *
 * A worker has FILE_PLACES places. A script that is not a cell may use all of them. In a session
 * the places fill up: the files of a cell stay mounted until the session ends, because the links in
 * /workspace stay too.
 */
#ifndef ENGINE_EXECUTION_MOUNTS_H
#define ENGINE_EXECUTION_MOUNTS_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/message.h"

struct engine;
struct execution;
struct execution_mount;
struct execution_request;
struct filestore_hold;
struct frame_writer;
struct repl_terms;
struct tenant;
struct volume;
struct worker;
struct why;

/* The mounts of an execution. The members belong to execution_mounts.c. Zeroed: no mounts. */
struct execution_mounts {
	struct execution_mount *item;
	size_t n;
	struct volume *volume;		/* NULL: none, or its session has it */
	bool wants_volume, wants_folder;
	struct volume *watched;		/* held: the volume that it runs with; NULL: none */
	unsigned int losses;		/* volume_losses() when it began */
};

/* The places of a session's worker. Zeroed: all are free. */
struct mount_places {
	struct filestore_hold *file[FILE_PLACES];	/* NULL: mounted by an earlier supervisor */
	unsigned int n;
	struct volume *volume;		/* NULL: none */
	bool has_volume, has_folder;	/* the keeper was asked to mount it */
	unsigned int losses;		/* volume_losses() when it was */
};

/* Holds the files and the volume that the request names, until execution_mounts_done. session: of
 * a cell; NULL: a script. 0; or -errno with why_r, and nothing is held. */
int execution_mounts_take(struct execution_mounts *mounts, struct engine *engine,
			  struct tenant *tenant, const struct execution_request *request,
			  const struct repl_terms *session, struct why *why_r);
void execution_mounts_done(struct execution_mounts *mounts);

/* Is anything to be mounted? */
bool execution_mounts_any(const struct execution_mounts *mounts);

/* Has the session a place for each file of a cell? While the cell waited, the cells before it may
 * have taken places. */
bool execution_mounts_fit(struct execution_mounts *mounts, const struct mount_places *places);

/* Asks the keeper to mount the files and the volume in the worker, and appends the orders for the
 * links to the worker's messages. The worker waits for the mounts before it makes the links.
 * places: those of the session; NULL: a script. 0 or -errno; -ENOTCONN: there is no keeper, and the
 * worker is unchanged. */
int execution_mounts_put(struct execution *execution, struct worker *worker,
			 struct mount_places *places, struct frame_writer *to);

/* Has the server of its volume ended since it began? */
bool execution_mounts_lost(const struct execution_mounts *mounts);

/* Releases the files and the volume of a session whose worker is gone. */
void mount_places_done(struct mount_places *places);

#endif
