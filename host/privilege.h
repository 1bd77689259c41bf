/* SPDX-License-Identifier: Apache-2.0 */
/* Drops privilege in two steps: from root, or from the service's user with some capabilities, to
 * that user without any; and proves the result.
 *
 * The capabilities needed for it are listed once, in privilege.c; the unit's CapabilityBoundingSet=
 * and AmbientCapabilities= are the same list.
 */
#ifndef HOST_PRIVILEGE_H
#define HOST_PRIVILEGE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct why;

/* The numbers of the capabilities that start-up as a service uses; *n_r of them. */
const int *privilege_list(size_t *n_r);

/* Whether this process may map ids that are not its own: it is root, or has CAP_SETUID and
 * CAP_SETGID. */
bool privilege_may_map(void);

/* Becomes uid and gid, without supplementary groups, but keeps CAP_SETUID and CAP_SETGID for
 * writing the maps of the outer namespace. Needs privilege_may_map. 0 or -errno. */
int privilege_become(uid_t uid, gid_t gid);

/* Gives up every capability and sets no_new_privs. 0 or -errno. */
int privilege_drop(void);

/* Reads back from the kernel that this process has no capability, can get none by exec, has no id
 * but uid, and cannot become root again. -EPERM with why_r filled otherwise. The bounding set is
 * not checked: only CAP_SETPCAP could empty it, which an ordinary user does not have; no_new_privs
 * makes it useless. */
int privilege_prove(uid_t uid, gid_t gid, struct why *why_r);

#endif
