/* SPDX-License-Identifier: Apache-2.0 */
/* The process that serves one volume: a directory on the host's disk, as a file system of its own
 * (FUSE) in the jails of one tenant.
 *
 * The peer is the kernel, which has the calls of scripts made into messages of <linux/fuse.h>.
 * All of a tenant's scripts may do everything in their volume; files belong to the one that asks.
 * There are no device nodes, FIFOs, sockets, hard links or extended attributes.
 */
#ifndef KEEPER_VOLUME_H
#define KEEPER_VOLUME_H

#include <stdint.h>

/* Serves until the last mount is gone. fuse: an open /dev/fuse that is mounted; root: the
 * directory; both borrowed. ready is called once, when it is known whether the volume can be
 * served: with 0 or -errno. 0 or -errno. */
int volume_serve(int fuse, int root, uint64_t bytes_max, uint64_t files_max,
		 void (*ready)(void *arg, int error), void *arg);

#endif
