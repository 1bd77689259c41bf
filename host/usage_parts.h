/* SPDX-License-Identifier: Apache-2.0 */
/* The two sides of the usage helper: usage.c in the supervisor, usage_process.c in the helper. They
 * are one program, so the messages are the structs themselves, cut after the last used item. */
#ifndef HOST_USAGE_PARTS_H
#define HOST_USAGE_PARTS_H

#include "host/usage.h"

static inline size_t
usage_asked_size(const struct usage_asked *asked)
{
	return offsetof(struct usage_asked, member) + asked->n * sizeof(asked->member[0]);
}

static inline size_t
usage_answer_size(const struct usage_answer *answer)
{
	return offsetof(struct usage_answer, process) + answer->n * sizeof(answer->process[0]);
}

/* The helper: a helper_live_fn. Answers on socket until its peer is gone. */
_Noreturn void usage_live(const void *unused, int socket, pid_t supervisor);

#endif
