/* SPDX-License-Identifier: Apache-2.0 */
/* The process that serves one volume. A volume is a directory on the host's disk; in the jails of
 * one tenant it is a file system of its own (FUSE).
 *
 * The peer is the kernel, which translates the calls of scripts into messages of <linux/fuse.h>.
 * All scripts of a tenant may do everything in their volume: each file seems to belong to the
 * process that asks. There are no device nodes, FIFOs, sockets, hard links or extended attributes.
 *
 * A user's folder is served in the same way, with the user's own rights: modes are those on the
 * disk, and files of other users belong to nobody. Other processes may change it meanwhile.
 */
#ifndef KEEPER_VOLUME_H
#define KEEPER_VOLUME_H

struct volume_terms;

/* Serves the volume until its last mount is gone. fuse: the open /dev/fuse of the mount; root: the
 * directory; both borrowed. ready is called once, with 0 or -errno, when it is known whether the
 * volume can be served. 0 or -errno. */
int volume_serve(int fuse, int root, const struct volume_terms *terms,
		 void (*ready)(void *arg, int error), void *arg);

#endif
