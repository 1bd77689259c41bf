/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper: the process that owns the store of sets of packages, makes new ones of wheels, and
 * mounts them in workers.
 *
 * It lives in the outer namespace, as its id 0, and hears the supervisor alone. A store
 * is a directory of
 *   NAME/tree/      the packages, never changed once it is there
 *   NAME/files      each file of it with its SHA-256, as sha256sum has it
 *   NAME/manifest   what they are, as the supervisor said when they were taken in
 *   NAME/bytes      how much of the disk that is, in decimal: whole pages, directories too
 *   .new-*, .old-*  half made or half removed: gone when a keeper starts
 * where NAME is the SHA-256 of what it holds. A set is there when its NAME is.
 */
#ifndef KEEPER_KEEPER_H
#define KEEPER_KEEPER_H

#define KEEPER_CONTROL 3	/* the socket to the supervisor */

/* The whole life of the process; returns its exit status. */
int keeper_main(void);

#endif
