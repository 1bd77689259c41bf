/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper: the process that owns the store of sets of packages, makes new sets from wheels, and
 * mounts sets in workers.
 *
 * It runs in the outer namespace, as id 0, and takes orders only from the supervisor. The store is
 * a directory with
 *   NAME/tree/      the packages of a set, which never change
 *   NAME/files      a line for each file of tree/ with its SHA-256, as sha256sum writes it
 *   NAME/manifest   a description of the packages, from the supervisor's order
 *   NAME/bytes      the size of the set on the disk, in decimal: whole pages, with directories
 *   .new-*, .old-*  sets that are incomplete or are being removed; a starting keeper removes them
 * NAME is a SHA-256 that identifies the contents. A set exists if its NAME exists.
 */
#ifndef KEEPER_KEEPER_H
#define KEEPER_KEEPER_H

#define KEEPER_CONTROL 3	/* the socket to the supervisor */

/* Runs the keeper until the supervisor closes the socket. Returns the exit status. */
int keeper_main(void);

#endif
