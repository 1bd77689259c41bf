/* SPDX-License-Identifier: Apache-2.0 */
/* The answer to a request with a secret. It is parsed, and passed to the script without the secret,
 * even if the secret is split between chunks. An answer that cannot be parsed reliably is refused.
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
	bool is_of_head;		/* the method was HEAD */
	bool has_head, over;
	bool is_open_ended;		/* the body ends with the connection */
	struct head_body_state body;
	struct evbuffer *held;		/* content that may end in the beginning of a secret */
};

/* 0 or -ENOMEM. */
int answer_begin(struct answer *answer, bool is_of_head, const char *const *values,
		 size_t n_values);
void answer_end(struct answer *answer);	/* zeroed is fine */

/* Takes all bytes of in, which come from the origin, and adds the bytes for the script to out.
 * ended: no more follow. True: the answer continues, or is complete (answer_is_over()). False:
 * *why_r (static) gives the mistake; if has_head is not set, the script has got nothing yet. */
bool answer_take(struct answer *answer, struct evbuffer *in, struct evbuffer *out, bool ended,
		 const char **why_r);

/* Has the script got the whole answer? */
bool answer_is_over(const struct answer *answer);

#endif
