/* SPDX-License-Identifier: Apache-2.0 */
/* The meaning of an outcome on the command line: an exit code, and a message.
 */
#ifndef CLIENT_VERDICT_H
#define CLIENT_VERDICT_H

#include <jansson.h>

/* The exit code for an outcome, the structuredContent of an answer. EX_PROTOCOL: its status is
 * unknown. */
int verdict_exit_code(const json_t *outcome);

/* One sentence about why the script did not end by itself; NULL: it did. It points into outcome, or
 * is static. */
const char *verdict_text(const json_t *outcome);

/* Prints how the script ended, unless its own output shows this. The status is not printed a second
 * time if the message begins with it. */
void verdict_say(const json_t *outcome);

#endif
