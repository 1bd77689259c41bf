/* Whether a peer of a unix socket may pass descriptors (SO_PASSRIGHTS, Linux 6.16).
 *
 * The kernel opens what a peer passes in this process, and closes it here when it is not taken:
 * stall.h says why that is dear. Where a socket refuses descriptors, the one who passes some gets
 * EPERM. A listening socket's setting is that of the connections that are made to it from then on.
 */
#ifndef BASE_PASSRIGHTS_H
#define BASE_PASSRIGHTS_H

#include <stdbool.h>

/* Sets what peers of this socket may do. 0 or -errno; -ENOPROTOOPT: the kernel is older, and
 * they may pass descriptors; others when it is no unix socket. */
int passrights_set(int socket, bool may);

#endif
