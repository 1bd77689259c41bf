/* SPDX-License-Identifier: Apache-2.0 */
/* A file of the administrator, opened by a program that depends on what is in it.
 */
#ifndef BASE_OWNERFILE_H
#define BASE_OWNERFILE_H

#include <sys/stat.h>

/* Opens it for reading; a FIFO in its place holds nothing up. stat_r: what it is. The descriptor,
 * or -EPERM: others than its owner may write to it; -EINVAL: it is no regular file; or -errno. */
int ownerfile_open(const char *path, struct stat *stat_r);

#endif
