/* SPDX-License-Identifier: Apache-2.0 */
/* The answer to a request with a secret. It is parsed, and passed on to the script without the
 * secret, even if the secret is split between chunks. An answer that cannot be parsed reliably is
 * refused.
 */
#ifndef EGRESS_ANSWER_H
#define EGRESS_ANSWER_H

#include <stdbool.h>
#include <stddef.h>

#include "egress/head.h"

struct evbuffer;

/* Its members belong to answer.c. */
struct answer {
	const char *const *values;	/* values that must be masked; the array and its strings are
					 * borrowed */
	size_t n_values;
	bool is_of_head;		/* the method of the request was HEAD */
	bool has_head, over;		/* the head is complete; the whole answer is complete */
	bool is_open_ended;		/* the end of the connection ends the body */
	struct head_body_state body;
	struct evbuffer *held;		/* content that is not passed on yet, because it may be the
					 * beginning of a secret */
};

/* Begins an answer. 0 or -ENOMEM. */
int answer_begin(struct answer *answer, bool is_of_head, const char *const *values,
		 size_t n_values);
void answer_end(struct answer *answer);	/* zeroed is fine */

/* Takes all bytes of in, which come from the origin, and adds the bytes for the script to out.
 * ended: no more bytes follow. True: the answer continues, or is complete (answer_is_over()).
 * False: the answer has a mistake, which *why_r (static) names; if has_head is not set, nothing was
 * passed on yet. */
bool answer_take(struct answer *answer, struct evbuffer *in, struct evbuffer *out, bool ended,
		 const char **why_r);

/* Moves the first n bytes by copying: what libevent moves keeps the block that it was read into,
 * which has kilobytes also for a single byte. */
void answer_move(struct evbuffer *out, struct evbuffer *in, size_t n);

/* Has the script got the whole answer? */
bool answer_is_over(const struct answer *answer);

#endif
