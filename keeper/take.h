/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a set of packages in the store, of wheels that come as a stream: each is held against the
 * hash that was decided about, unpacked, and its sources are compiled.
 */
#ifndef KEEPER_TAKE_H
#define KEEPER_TAKE_H

#include <stdint.h>

#include "proto/message.h"

struct why;

struct take {
	int store;			/* a directory */
	const char *half;		/* name of what is half made, in the store; free */
	const struct msg_take *asked;
	int wheels, compiler;		/* streams */
	uint64_t bytes;			/* made: what it takes of the disk, and how many files */
	uint32_t files;
};

/* All of it, in a child of the keeper that gives up what it does not need. 0: the set is in the
 * store and on the disk; or -errno with why_r filled, and nothing of it is there. */
int take(struct take *take, struct why *why_r);

#endif
