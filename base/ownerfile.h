/* SPDX-License-Identifier: Apache-2.0 */
/* A file of the administrator on whose contents a program depends.
 */
#ifndef BASE_OWNERFILE_H
#define BASE_OWNERFILE_H

#include <sys/stat.h>

/* Opens it for reading, without waiting if it is a FIFO. stat_r gets its fstat(2). Returns the
 * descriptor; -EPERM: users other than its owner may write to it; -EINVAL: it is not a regular
 * file; or -errno. */
int ownerfile_open(const char *path, struct stat *stat_r);

#endif
