/* SPDX-License-Identifier: Apache-2.0 */
/* Volumes: directories that scripts and sessions of one tenant share. A volume is
 * DIRECTORY/TENANT/NAME. The message KEEP names DIRECTORY.
 *
 * A volume that is asked for gets a process of its own, which serves it as a file system
 * (keeper/volume.h). The process is a child of the keeper, in a cgroup of the tenant. The keeper
 * mounts the file system in its own namespace, over the directory, and clones this mount into
 * workers. When the process has ended, its mounts answer every call with an error; the next request
 * for the volume starts a new process.
 *
 * The folder of the user who has started the service is served in the same way, at FOLDER_PLACE, by
 * a process in the keeper's cgroup. KEEP names it.
 */
#ifndef KEEPER_VOLUMES_H
#define KEEPER_VOLUMES_H

#include <stdbool.h>

#include "proto/frame.h"

struct folder;
struct volumes;

/* directory: an absolute path; fd: the open directory, borrowed; home: the keeper's mount
 * namespace, borrowed. 0, or -errno: why volumes cannot be mounted here. */
int volumes_new(const char *directory, int fd, int home, struct volumes **volumes_r);

/* renew looks at the directory and its path, and may open another one instead. The servers of the
 * one before end with their leaves. */
void volumes_renew(struct volumes *volumes, void (*renew)(int *fd, char *path, bool locks));

/* Obeys the message VOLUME, and takes its descriptors. volumes NULL: there are no volumes, and the
 * answer is trouble, a -errno. 0 or -EBADMSG. Returns only in the keeper, not in a child that it
 * makes. */
int volumes_on_message(struct volumes *volumes, int trouble, struct frame *frame);

/* The user's folder. directory: an absolute path; home: as above. 0, or -errno: why the folder
 * cannot be mounted. */
int folder_new(const char *directory, bool writable, int home, struct folder **folder_r);

/* Obeys the message FOLDER, and takes its descriptors, as volumes_on_message does. folder NULL:
 * there is none, and the answer is trouble. */
void folder_on_message(struct folder *folder, int trouble, struct frame *frame);

#endif
