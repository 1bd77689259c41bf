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

/* Makes the set. To be called in a child of the keeper, after walls_enter. 0: the set is in the
 * store and on the disk. Or -errno with why_r: no part of the set exists; but if only the last sync
 * of the store has failed, the whole set does. */
int take_set(struct take *take, struct why *why_r);

#endif
