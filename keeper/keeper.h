/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper: the process that owns the store of sets of packages, makes new ones of wheels, and
 * mounts them in workers.
 *
 * It runs in the outer namespace, as id 0, and takes orders only from the supervisor. A store
 * is a directory of
 *   NAME/tree/      the packages, which never change
 *   NAME/files      each file of it with its SHA-256, as sha256sum has it
 *   NAME/manifest   a description of the packages, from the supervisor's order
 *   NAME/bytes      its size on the disk, in decimal: whole pages, with directories
 *   .new-*, .old-*  incomplete or being removed: removed when a keeper starts
 * where NAME is a SHA-256 that identifies its contents. A set exists if its NAME exists.
 */
#ifndef KEEPER_KEEPER_H
#define KEEPER_KEEPER_H

#define KEEPER_CONTROL 3	/* the socket to the supervisor */

/* The whole life of the process; returns its exit status. */
int keeper_main(void);

#endif
