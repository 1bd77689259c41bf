/* SPDX-License-Identifier: Apache-2.0 */
/* The two sides of the directory helper: directory.c in the supervisor, directory_process.c in the
 * helper. */
#ifndef HOST_DIRECTORY_PARTS_H
#define HOST_DIRECTORY_PARTS_H

#include "host/directory.h"

/* The owner of the range of subordinate uids that uid is in: 1 and *owner_r; 0: there is none but
 * root; -EMLINK: there are several; another -errno: it cannot be asked. Blocks. */
int subordinate_owner(uid_t uid, uid_t *owner_r);

/* Loads libsubid, which has to happen before memory and descriptors are bounded. */
void subordinate_load(void);

/* The helper: a helper_live_fn. look_up: a pointer to a directory_look_up_fn. Serves lookups on
 * socket until the supervisor closes its end. */
_Noreturn void directory_live(const void *look_up, int socket, pid_t supervisor);

#endif
