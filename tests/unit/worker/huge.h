/* SPDX-License-Identifier: Apache-2.0 */
/* Huge pages, as the kernel counts them. */
#ifndef TESTS_UNIT_WORKER_HUGE_H
#define TESTS_UNIT_WORKER_HUGE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* A line of /proc/PID/smaps_rollup, such as "Rss:", in KiB. -1: it may not be read, or has none. */
long huge_kib(pid_t pid, const char *key);

/* Can this kernel now put so much existing memory on huge pages? */
bool huge_kernel_can(size_t bytes);

#endif
