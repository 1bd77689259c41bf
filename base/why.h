/* SPDX-License-Identifier: Apache-2.0 */
/* Why something was refused, in words for the person or model that asked. Used where a message is
 * shown; elsewhere a negative errno is enough.
 */
#ifndef BASE_WHY_H
#define BASE_WHY_H

struct why {
	char field[64];		/* the argument or key at fault, or "" */
	char text[512];		/* one sentence, UTF-8, no newline */
};

/* Fills *why (may be NULL) and returns code, so that `return why_say(...)` reads well. */
int why_say(struct why *why, int code, const char *field, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

#endif
