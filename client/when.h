/* SPDX-License-Identifier: Apache-2.0 */
/* Times as people write them. */
#ifndef CLIENT_WHEN_H
#define CLIENT_WHEN_H

#include <time.h>

/* Reads "now", "today", "yesterday", "-10min", "2 hours ago", "2026-01-31", "2026-01-31 12:00" or
 * "2026-01-31T12:00:30Z"; all in UTC. now: of the clock. 0, or -EINVAL: it is no time. */
int when_read(const char *text, time_t now, time_t *when_r);

#endif
