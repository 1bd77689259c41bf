/* SPDX-License-Identifier: Apache-2.0 */
/* Unpacks a wheel. A child process reads the wheel, and writes the files to a pipe, in the form of
 * keeper/intake.h. The child can use nothing but the wheel and the pipe.
 */
#ifndef KEEPER_UNPACK_H
#define KEEPER_UNPACK_H

#include <stdint.h>

#include "keeper/wheel.h"

struct intake;

/* Unpacks the wheel, a file of size bytes, into intake->tree. 0 or -errno with why_r. */
int wheel_unpack(int wheel, uint64_t size, const struct wheel_asked *asked, struct intake *intake,
	   struct why *why_r);

#endif
