/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a connected socket for a target: looks its name up once, checks each address by the policy,
 * and connects to an address that was allowed, without a second lookup.
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
	struct event_base *base;		/* all are borrowed, and must outlive the dial */
	struct evdns_base *dns;
	const struct network_target *target;
	const struct network_range *range;	/* ranges that are not public, but allowed */
	size_t n_ranges;
};

/* The result. fd >= 0: a socket that is connected to address, and belongs to the callee. Otherwise
 * verdict and text (static) give the reason, and address is the one that was refused or failed
 * (family 0: none). */
struct dial_outcome {
	int fd;
	enum egress_verdict verdict;
	const char *text;
	struct network_address address;
};

/* Begins to dial. done is called once, from a later turn of the loop. The dial belongs to the
 * caller, and may be freed from within done. NULL: no memory. */
struct dial *dial_new(const struct dial_options *options,
		      void (*done)(void *arg, const struct dial_outcome *outcome), void *arg);
void dial_free(struct dial *dial);	/* also while it is in progress; NULL is fine */

#endif
