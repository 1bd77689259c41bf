/* SPDX-License-Identifier: Apache-2.0 */
/* Parses times in the forms that people write. */
#ifndef CLIENT_WHEN_H
#define CLIENT_WHEN_H

#include <time.h>

/* Reads "now", "today", "yesterday", "-10min", "2 hours ago", "2026-01-31", "2026-01-31 12:00" or
 * "2026-01-31T12:00:30Z"; all in UTC. now: the current time. 0, or -EINVAL: it is not a time. */
int when_read(const char *text, time_t now, time_t *when_r);

#endif
