/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor. */
#include "engine/load.h"

#define HALF_MS 1000
#define LIGHT_PERMILLE 100	/* up to this use a tenant has the largest weight */
#define PERMILLE_MOST 1000000	/* a thousand processors */

void
load_note(struct load *load, uint64_t now_ms, uint64_t used_us)
{
	uint64_t ms = now_ms - load->seen_ms, permille;

	if (load->seen_ms == 0 || used_us < load->used_us) {
		load->seen_ms = now_ms;
		load->used_us = used_us;
		return;
	}
	if (now_ms <= load->seen_ms || ms < HALF_MS / 2)
		return;
	permille = (used_us - load->used_us) / ms;
	if (permille > PERMILLE_MOST)
		permille = PERMILLE_MOST;
	/* The new value's part of the average is ms / (ms + HALF_MS): a half, if the last
	 * measurement was a second ago. */
	load->permille = (uint32_t)((load->permille * (uint64_t)HALF_MS + permille * ms) /
				    (ms + HALF_MS));
	load->seen_ms = now_ms;
	load->used_us = used_us;
}

unsigned int
load_weight(const struct load *load)
{
	uint32_t permille =
		load->permille > LIGHT_PERMILLE ? load->permille : LIGHT_PERMILLE;
	unsigned int weight = LOAD_WEIGHT_MOST * LIGHT_PERMILLE / permille;

	return weight > LOAD_WEIGHT_LEAST ? weight : LOAD_WEIGHT_LEAST;
}
