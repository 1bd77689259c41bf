/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of mcp-python-tools that the supervisor has not read yet. If it does not read for a
 * while, results of calls wait up to a bound. A result beyond it is replaced by a sentence: the
 * call fails, and no other call does.
 */
#ifndef UPSTREAM_OUTBOX_H
#define UPSTREAM_OUTBOX_H

#include <stdbool.h>

#include "proto/control.h"

#define OUTBOX_RESULTS_MAX (64 << 20)	/* bytes that wait when a result is replaced */
/* For control_configure: there is room for sentences and lists of tools, too. */
#define OUTBOX_MAX (2 * OUTBOX_RESULTS_MAX)

/* Sends a message. A text about progress is dropped where a result would be replaced. 0 or -errno
 * as in control_send; -ENOBUFS means that even OUTBOX_MAX bytes wait. */
int outbox_send(struct control *control, const struct msg *msg);

/* Do so many bytes wait that servers are not asked for lists of tools now? */
bool outbox_is_full(const struct control *control);

#endif
