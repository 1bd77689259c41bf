/* SPDX-License-Identifier: Apache-2.0 */
/* Opens files of the administrator, whose contents a program trusts.
 */
#ifndef BASE_OWNERFILE_H
#define BASE_OWNERFILE_H

#include <sys/stat.h>

/* Opens a file for reading, without waiting if it is a FIFO. stat_r gets its fstat(2). Returns the
 * descriptor; -EPERM: users other than its owner may write to it; -EINVAL: it is not a regular
 * file; or another -errno. */
int ownerfile_open(const char *path, struct stat *stat_r);

#endif
