/* SPDX-License-Identifier: Apache-2.0 */
/* The two sides of the directory helper: directory.c in the supervisor, directory_process.c in the
 * helper. */
#ifndef HOST_DIRECTORY_PARTS_H
#define HOST_DIRECTORY_PARTS_H

#include "host/directory.h"

/* The helper: serves lookups on socket until the supervisor closes its end. */
_Noreturn void directory_live(int socket, pid_t supervisor, directory_look_up_fn *look_up);

#endif
