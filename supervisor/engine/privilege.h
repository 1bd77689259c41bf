/* From root to the service's user, in two steps, and the proof that nothing is left.
 *
 * The capabilities needed for it are listed once, in privilege.c; the unit's
 * CapabilityBoundingSet= is the same list.
 */
#ifndef SUPERVISOR_PRIVILEGE_H
#define SUPERVISOR_PRIVILEGE_H

#include <stddef.h>
#include <sys/types.h>

struct why;

/* The numbers of the capabilities that start-up as root uses; *n_r of them. */
const int *privilege_list(size_t *n_r);

/* Becomes uid and gid, without supplementary groups, but keeps CAP_SETUID and
 * CAP_SETGID for writing the maps of the outer namespace. Only as root. 0 or -errno. */
int privilege_become(uid_t uid, gid_t gid);

/* Gives up every capability for good, and no_new_privs. 0 or -errno. */
int privilege_drop(void);

/* Reads back from the kernel that this process holds no capability, cannot get any by
 * exec, is uid alone, and cannot become root again (-EPERM otherwise, with why_r
 * filled). The bounding set counts only if it could be dropped: that takes CAP_SETPCAP,
 * which the unit does not have; there no_new_privs is the wall. */
int privilege_prove(uid_t uid, gid_t gid, struct why *why_r);

#endif
