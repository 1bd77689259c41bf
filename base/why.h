/* SPDX-License-Identifier: Apache-2.0 */
/* The reason of an error, as a sentence for the person or model that has asked. It is used where a
 * message is shown; elsewhere a negative errno is enough.
 */
#ifndef BASE_WHY_H
#define BASE_WHY_H

struct why {
	char field[64];		/* the argument or key at fault, or "" */
	char text[512];		/* one sentence, UTF-8, no newline */
};

/* Fills in *why (why may be NULL). Returns code, so that a function can end with `return
 * why_say(...)`. */
int why_say(struct why *why, int code, const char *field, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

#endif
