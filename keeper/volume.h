/* SPDX-License-Identifier: Apache-2.0 */
/* The process that serves one volume. A volume is a directory on the host's disk; in the jails of
 * one tenant it is a file system of its own (FUSE).
 *
 * The peer is the kernel, which translates the calls of scripts into messages of <linux/fuse.h>.
 * All scripts of a tenant may do everything in their volume: each file seems to belong to the
 * process that asks. There are no device nodes, FIFOs, sockets, hard links or extended attributes.
 */
#ifndef KEEPER_VOLUME_H
#define KEEPER_VOLUME_H

#include <stdint.h>

/* Serves the volume until its last mount is gone. fuse: the open /dev/fuse of the mount; root: the
 * directory; both borrowed. ready is called once, with 0 or -errno, when it is known whether the
 * volume can be served. 0 or -errno. */
int volume_serve(int fuse, int root, uint64_t bytes_max, uint64_t files_max,
		 void (*ready)(void *arg, int error), void *arg);

#endif
