/* SPDX-License-Identifier: Apache-2.0 */
/* The jail of mcp-python-egress: no capability, no file, no program, no other process. The process
 * can only use IPv4 and IPv6 sockets and its open descriptors.
 */
#ifndef EGRESS_FILTER_H
#define EGRESS_FILTER_H

#include <stdint.h>

/* Enters the jail permanently, and proves it from inside. Everything that needs a file must be done
 * before. 0 with *landlock_r, the version of Landlock (0: the kernel has none); or -errno with
 * *what_r (static), and the process must end. */
int filter_enter(uint32_t *landlock_r, const char **what_r);

#endif
