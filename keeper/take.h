/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a set of packages in the store from a stream of wheels. Each wheel is checked against the
 * approved hash and unpacked, and its sources are compiled.
 */
#ifndef KEEPER_TAKE_H
#define KEEPER_TAKE_H

#include <stdint.h>

#include "proto/message.h"

struct why;

struct take {
	int store;			/* a directory */
	const char *half;		/* a free name in the store, for the set while it is
					 * incomplete */
	const struct msg_take *asked;
	int wheels, compiler;		/* sockets: the stream of wheels; a worker that compiles */
	uint64_t bytes;			/* result: the size of the set on the disk */
	uint32_t files;			/* result: the number of its files */
};

/* Makes the set. Runs in a child of the keeper, which drops the rights that it does not need. 0:
 * the set is in the store and on the disk; or -errno with why_r, and no part of it exists. */
int take_set(struct take *take, struct why *why_r);

#endif
