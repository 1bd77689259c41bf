/* SPDX-License-Identifier: Apache-2.0 */
/* Volumes in use: directories that the scripts and sessions of one tenant share (keeper/volumes.h).
 *
 * A volume is in use while an execution or a session holds it, and for a while after that. A
 * process of the keeper serves it. This process has a leaf of its own below the tenant's cgroup, so
 * that its work for the tenant's scripts is charged to the tenant. It ends when its leaf is killed.
 */
#ifndef ENGINE_VOLUME_H
#define ENGINE_VOLUME_H

#include <sys/queue.h>

struct cgroup_tenant;
struct engine;
struct volume;
struct why;

/* The volumes of one tenant. The members belong to volume.c. */
struct volumes {
	LIST_HEAD(, volume) list;
	struct engine *engine;
	const char *directory;			/* the tenant's name for the keeper */
	struct cgroup_tenant *const *cgroup;	/* the tenant's, which is made with its first
						 * worker */
};

/* directory and cgroup: borrowed, and valid as long as volumes. */
void volumes_init(struct volumes *volumes, struct engine *engine, const char *directory,
		  struct cgroup_tenant *const *cgroup);

/* Holds the volume of that name until volume_release. The keeper makes it when it is attached for
 * the first time. 0; or -EINVAL with why_r: volumes cannot be mounted here, or the tenant holds as
 * many as it may. */
int volume_hold(struct volumes *volumes, const char *name, struct volume **volume_r,
		struct why *why_r);

/* Holds it once more. */
void volume_keep(struct volume *volume);

/* NULL is fine. */
void volume_release(struct volume *volume);

/* How many of its servers have ended while it was mounted: those that had it then get ENOTCONN. */
unsigned int volume_losses(struct volume *volume);

const char *volume_name(const struct volume *volume);

/* Makes the keeper mount the volume in a worker, at VOLUME_PLACE. pidfd, gate and the result: as in
 * keeper_attach. */
int volume_attach(struct volume *volume, int pidfd, int gate);

/* Called each second: ends the volumes that were not used for a while. */
void volumes_look_after(struct volumes *volumes);

/* Ends all volumes. None may be held. */
void volumes_end(struct volumes *volumes);

/* The number of volumes in use. */
unsigned int volumes_count(const struct volumes *volumes);

#endif
