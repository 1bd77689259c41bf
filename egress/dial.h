/* SPDX-License-Identifier: Apache-2.0 */
/* From a target to a connected socket: looked up once, each address judged, and what was
 * judged is what is connected to.
 */
#ifndef EGRESS_DIAL_H
#define EGRESS_DIAL_H

#include <stddef.h>

#include "policy/network.h"
#include "proto/message.h"

struct dial;
struct evdns_base;
struct event_base;

struct dial_options {
	struct event_base *base;		/* all borrowed, for as long as the dial */
	struct evdns_base *dns;
	const struct network_target *target;
	const struct network_range *range;	/* not public, but allowed */
	size_t n_ranges;
};

/* How it ended: fd >= 0 is the callee's, and address is where it leads; else verdict and
 * text (static) say why not, and address is the one at fault (family 0: none). */
struct dial_outcome {
	int fd;
	enum egress_verdict verdict;
	const char *text;
	struct network_address address;
};

/* Calls done once, from a later turn of the loop; the dial is the caller's and may be freed
 * there. NULL: no memory. */
struct dial *dial_new(const struct dial_options *options,
		      void (*done)(void *arg, const struct dial_outcome *outcome), void *arg);
void dial_free(struct dial *dial);	/* gives up; NULL is fine */

#endif
