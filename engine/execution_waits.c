/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing.
 * Reads:   numbers of prompts, from a script's process, which is hostile. An honest worker shows no
 * more prompts than it may, one at a time, and numbers them; anything else is a breach of the
 * protocol. */
#include "engine/execution_waits.h"

#include <errno.h>

void
waits_init(struct execution_waits *p, uint32_t most, uint32_t excused_ms)
{
	*p = (struct execution_waits){ .most = most, .excused_ms = excused_ms };
}

int
waits_open(struct execution_waits *p, uint32_t number, uint64_t now_us)
{
	if (p->since_us != 0 || number != p->number + 1 || number > p->most)
		return -EBADMSG;
	p->number = number;
	p->since_us = now_us;
	return 0;
}

uint32_t
waits_close(struct execution_waits *p, uint64_t now_us)
{
	if (p->since_us == 0)
		return 0;
	p->waited_us += now_us - p->since_us;
	p->since_us = 0;
	return p->number;
}

uint64_t
waits_excused_us(const struct execution_waits *p, uint64_t now_us)
{
	uint64_t most = (uint64_t)p->excused_ms * 1000, waited = p->waited_us;

	if (p->since_us != 0 && now_us > p->since_us)
		waited += now_us - p->since_us;
	return waited < most ? waited : most;
}

uint64_t
waits_patience_ms(const struct execution_waits *p, uint64_t now_us)
{
	return p->since_us != 0 ? p->excused_ms - waits_excused_us(p, now_us) / 1000 : 0;
}
