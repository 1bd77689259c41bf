/* SPDX-License-Identifier: Apache-2.0 */
/* The outer namespace: a user namespace and a mount namespace below those of the host. The
 * service's user makes it, and every zygote lives in it. Descriptors keep it alive, so no process
 * has to stay in it. Its owner, the service's user, may enter it (setns(2)) without any capability
 * on the host.
 *
 * Only the launcher keeps the descriptors; the supervisor closes its own.
 *
 * Id 0 in this namespace is the service's user. The ids from 1 to slots are for workers, one for
 * each.
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
	int error;		/* -errno: it could not be made, and no program starts in it */
};

/* What failed then, and what to change. */
#define OUTER_MAKE "make a user namespace (in docker, add --security-opt seccomp=docker-seccomp.json " 	"--security-opt systempaths=unconfined; \"mcp-python check-host\" says what else to change)"

/* Makes the namespace with privilege (privilege_may_map). It belongs to uid, and its maps have
 * slots ids of the host, from base + 1 on. Afterwards this process has become uid, and must call
 * privilege_drop. 0 or -errno with why_r. */
int outer_new_mapped(uid_t uid, gid_t gid, uint32_t base, uint32_t slots,
		      struct outer_namespace **outer_r, struct why *why_r);

/* Makes the namespace without privilege. Its maps have ids of /etc/subuid and /etc/subgid, by
 * newuidmap(1). If that fails, they have only id 0, and *reason_r (static) says why in a few words.
 * 0 or -errno with why_r. */
int outer_new_as_user(struct outer_namespace **outer_r, const char **reason_r,
		      struct why *why_r);

/* For a service that answers its client although it can start nothing: error is a -errno. */
struct outer_namespace *outer_new_missing(int error);

void outer_namespace_free(struct outer_namespace *outer);	/* NULL is fine */

/* Finds the first range with at least one id that a user has in a file such as /etc/subuid, by name
 * or by number. 0; -ENOENT: there is none; or another -errno: that is not known. */
int outer_read_range(const char *file, const char *user, uid_t uid, uint32_t *first_r,
		     uint32_t *count_r);

#endif
