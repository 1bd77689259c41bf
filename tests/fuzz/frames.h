/* SPDX-License-Identifier: Apache-2.0 */
/* Frames in inputs. The version in a frame's header is replaced by the current one, so inputs stay
 * useful after a change of the protocol. FRAMES_OTHER_VERSION stays as it is. */
#ifndef TESTS_FUZZ_FRAMES_H
#define TESTS_FUZZ_FRAMES_H

#include <stddef.h>
#include <stdint.h>

#include "proto/frame.h"
#include "proto/message.h"

#define FRAMES_OTHER_VERSION 0xff

static inline void
frames_set_versions(uint8_t *at, size_t size)
{
	while (size >= FRAME_HEADER) {
		size_t len = (size_t)at[2] << 24 | (size_t)at[3] << 16 | (size_t)at[4] << 8 | at[5];

		if (at[0] != FRAMES_OTHER_VERSION)
			at[0] = PROTO_VERSION;
		if (len > size - FRAME_HEADER)
			return;
		at += FRAME_HEADER + len;
		size -= FRAME_HEADER + len;
	}
}

#endif
