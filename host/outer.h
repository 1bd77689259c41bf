/* SPDX-License-Identifier: Apache-2.0 */
/* The outer namespace: a user namespace and a mount namespace below the host's, made by
 * the service's user, in which every zygote lives. Descriptors hold it open, so no process has to
 * stay in it. Its owner, the service's user, may enter it (setns(2)) without any capability on the
 * host.
 *
 * Only the launcher keeps the descriptors; the supervisor has closed its own.
 *
 * Ids in it: 0 is the service's user, and 1 up to slots are the workers', one each.
 */
#ifndef HOST_OUTER_H
#define HOST_OUTER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct why;

struct outer_namespace {
	int user_fd, mount_fd;
	uint32_t slots;		/* 0: there is only id 0, shared by all workers */
};

/* With privilege (privilege_may_map): the namespace belongs to uid, and the maps have slots host
 * ids from base on. Afterwards this process has become uid, and must call privilege_drop. 0 or
 * -errno with why_r filled. */
int outer_new_mapped(uid_t uid, gid_t gid, uint32_t base, uint32_t slots,
		      struct outer_namespace **outer_r, struct why *why_r);

/* Without privilege: the maps have ids of /etc/subuid and /etc/subgid, by newuidmap(1). If that
 * fails, they have only id 0, and *reason_r (static) says why in a few words. */
int outer_new_as_user(struct outer_namespace **outer_r, const char **reason_r,
		      struct why *why_r);

void outer_namespace_free(struct outer_namespace *outer);	/* NULL is fine */

/* The first range of a user in the text of /etc/subuid, by name or number, with at
 * least one id. 0 or -ENOENT. */
int outer_find_range(const char *text, const char *user, uid_t uid, uint32_t *first_r,
		     uint32_t *count_r);

#endif
