/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a set of packages in the store from a stream of wheels. Each wheel is checked against the
 * hash that was approved, and unpacked, and its sources are compiled.
 */
#ifndef KEEPER_TAKE_H
#define KEEPER_TAKE_H

#include <stdint.h>

#include "proto/message.h"

struct why;

struct take {
	int store;			/* a directory */
	const char *half;		/* name of the incomplete set in the store; not in use */
	const struct msg_take *asked;
	int wheels, compiler;		/* streams */
	uint64_t bytes;			/* its size on the disk, and its number of files */
	uint32_t files;
};

/* Does all of this, in a child of the keeper that drops the rights that it does not need. 0: the
 * set is in the store and on the disk; or -errno with why_r filled, and no part of it exists. */
int take(struct take *take, struct why *why_r);

#endif
