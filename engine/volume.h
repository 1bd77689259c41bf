/* SPDX-License-Identifier: Apache-2.0 */
/* Volumes in use: directories that the scripts and sessions of one tenant share (keeper/volumes.h).
 *
 * A volume is in use while an execution or a session holds it, and for a while after that. A
 * process of the keeper serves it. This process has a leaf of its own below the tenant's cgroup, so
 * that its work for the tenant's scripts is charged to the tenant. It ends when its leaf is killed.
 */
#ifndef ENGINE_VOLUME_H
#define ENGINE_VOLUME_H

#include <stdint.h>

struct tenant;
struct volume;
struct why;

/* Holds the volume of that name until volume_release. The keeper makes it when it is attached for
 * the first time. 0; or -EINVAL with why_r: volumes cannot be mounted here, or the tenant holds as
 * many as it may. */
int volume_hold(struct tenant *tenant, const char *name, struct volume **volume_r,
		struct why *why_r);

/* NULL is fine. */
void volume_release(struct volume *volume);

const char *volume_name(const struct volume *volume);

/* Makes the keeper mount the volume in a worker, at VOLUME_PLACE. pidfd, gate and the result: as in
 * keeper_attach. */
int volume_attach(struct volume *volume, int pidfd, int gate);

/* Called each second: ends the tenant's volumes that were not used for a while. */
void volumes_look_after(struct tenant *tenant);

/* Ends all volumes of the tenant. None may be held. */
void volumes_end(struct tenant *tenant);

/* The number of the tenant's volumes in use. */
unsigned int volumes_count(const struct tenant *tenant);

#endif
