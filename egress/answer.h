/* SPDX-License-Identifier: Apache-2.0 */
/* The answer to a request that has a secret in it: read whole, and given to the script without the
 * secret, however the origin has cut it into chunks. What cannot be read for sure is refused.
 */
#ifndef EGRESS_ANSWER_H
#define EGRESS_ANSWER_H

#include <stdbool.h>
#include <stddef.h>

#include "egress/head.h"

struct evbuffer;

/* Its members belong to answer.c. */
struct answer {
	const char *const *values;	/* that it may not show; borrowed, as each of them */
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

/* Takes all bytes of in, which have come from the origin, and adds to out what the script gets.
 * ended: no more come. True: it goes on, or answer_is_over(). False: *why_r (static) says what is
 * wrong; without has_head the script has had nothing yet. */
bool answer_take(struct answer *answer, struct evbuffer *in, struct evbuffer *out, bool ended,
		 const char **why_r);

/* The script has all of it. */
bool answer_is_over(const struct answer *answer);

#endif
