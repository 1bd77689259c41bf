/* SPDX-License-Identifier: Apache-2.0 */
/* Volumes in use: directories that the scripts and sessions of one tenant share (keeper/volumes.h).
 *
 * A volume is in use while an execution or a session holds it, and for a while after that. Its
 * server, a process of the keeper, has a leaf of its own below the tenant's cgroup: what it does
 * for the tenant's scripts counts as the tenant's. It ends with its leaf.
 */
#ifndef ENGINE_VOLUME_H
#define ENGINE_VOLUME_H

#include <stdint.h>

struct tenant;
struct volume;
struct why;

/* Holds the volume of that name; the keeper makes it when it is attached for the first time. 0; or
 * -EINVAL with why_r: there can be none, or as many as a tenant may have are held already. */
int volume_hold(struct tenant *tenant, const char *name, struct volume **volume_r,
		struct why *why_r);

/* NULL is fine. */
void volume_release(struct volume *volume);

const char *volume_name(const struct volume *volume);

/* Has it mounted in a worker, at VOLUME_PLACE. gate and the result as keeper_attach. */
int volume_attach(struct volume *volume, int pidfd, int gate);

/* Called each second: ends those that were not used for a while. */
void volumes_look_after(struct tenant *tenant);

/* Ends all; nobody holds one. */
void volumes_end(struct tenant *tenant);

/* How many are in use, or were until just now. */
unsigned int volumes_count(const struct tenant *tenant);

#endif
