/* SPDX-License-Identifier: Apache-2.0 */
/* Allows the peers of a unix socket to pass descriptors, or forbids it (SO_PASSRIGHTS, Linux 6.16).
 *
 * The kernel opens a passed descriptor in the receiving process. If the process does not take it,
 * the kernel closes it there, and this can block (stall.h). If the socket refuses descriptors, the
 * sender gets EPERM. Connections inherit the setting of their listening socket.
 */
#ifndef BASE_PASSRIGHTS_H
#define BASE_PASSRIGHTS_H

#include <stdbool.h>

/* Sets whether peers of this socket may pass descriptors. 0; -ENOPROTOOPT: the kernel is too old,
 * and peers may pass descriptors; or another -errno: it is not a unix socket. */
int passrights_set(int socket, bool may);

#endif
