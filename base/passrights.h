/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a peer of a unix socket may pass descriptors (SO_PASSRIGHTS, Linux 6.16).
 *
 * The kernel opens a passed descriptor in the receiving process. If the process does not take it,
 * the kernel closes it there, which can block (stall.h). If the socket refuses descriptors, the
 * sender gets EPERM. Connections inherit the setting of their listening socket.
 */
#ifndef BASE_PASSRIGHTS_H
#define BASE_PASSRIGHTS_H

#include <stdbool.h>

/* Sets whether peers of this socket may pass descriptors. 0 or -errno; -ENOPROTOOPT: the kernel is
 * too old, and peers may pass descriptors; another error: it is not a unix socket. */
int passrights_set(int socket, bool may);

#endif
