/* SPDX-License-Identifier: Apache-2.0 */
/* Volumes: directories that scripts and sessions of one tenant share, as DIRECTORY/TENANT/NAME
 * below the directory that KEEP names.
 *
 * A volume that is asked for gets a process of its own, a child of the keeper in a cgroup of the
 * tenant, which serves it as a file system (keeper/volume.h). The keeper mounts that file system,
 * keeps the mount in its own namespace, over the directory, and clones it into workers. When the
 * process has ended, a mount of it answers every call with an error; the next one who asks gets a
 * new process.
 */
#ifndef KEEPER_VOLUMES_H
#define KEEPER_VOLUMES_H

#include "proto/frame.h"

struct volumes;

/* directory: absolute; fd: of it, borrowed; home: our mount namespace, borrowed. 0, or -errno: why
 * volumes cannot be mounted here. */
int volumes_new(const char *directory, int fd, int home, struct volumes **volumes_r);

/* Does what VOLUME asks for, and takes its descriptors. volumes NULL: says trouble (-errno). 0;
 * or -EBADMSG. Returns in the supervisor's keeper only. */
int volumes_on_message(struct volumes *volumes, int trouble, struct frame *frame);

#endif
