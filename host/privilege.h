/* SPDX-License-Identifier: Apache-2.0 */
/* Drops privilege: from root, or from the service's user with some capabilities, to the service's
 * user without any. This takes two steps, privilege_become and privilege_drop; privilege_prove
 * checks the result.
 *
 * privilege.c has the list of the capabilities that are needed; the unit's CapabilityBoundingSet=
 * and AmbientCapabilities= have the same list.
 */
#ifndef HOST_PRIVILEGE_H
#define HOST_PRIVILEGE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct why;

/* The numbers of the capabilities that a start as a service uses; *n_r of them. */
const int *privilege_list(size_t *n_r);

/* May this process map ids that are not its own? True if it is root, or has CAP_SETUID and
 * CAP_SETGID.
 */
bool privilege_may_map(void);

/* Becomes uid and gid, without supplementary groups, but keeps CAP_SETUID and CAP_SETGID for
 * writing the maps of the outer namespace. Needs privilege_may_map. 0 or -errno. */
int privilege_become(uid_t uid, gid_t gid);

/* Gives up every capability and sets no_new_privs. 0 or -errno. */
int privilege_drop(void);

/* Checks by asking the kernel that this process has no capability, can get none by exec, has no
 * other id than uid and gid, and cannot become root again. 0; or -EPERM with why_r: one of these is
 * not true. The bounding set is not checked: a process needs CAP_SETPCAP to empty it, which an
 * ordinary user does not have; no_new_privs makes it useless. */
int privilege_prove(uid_t uid, gid_t gid, struct why *why_r);

#endif
