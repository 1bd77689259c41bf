/* SPDX-License-Identifier: Apache-2.0 */
/* The meaning of an outcome on the command line: an exit code, and a message.
 */
#ifndef CLIENT_VERDICT_H
#define CLIENT_VERDICT_H

#include <jansson.h>

/* The exit code for a structuredContent; EX_PROTOCOL: its status is unknown. */
int verdict_exit_code(const json_t *outcome);

/* One sentence about why the script did not end by itself; NULL: it did. Points into outcome or is
 * static. */
const char *verdict_text(const json_t *outcome);

/* Prints the end of the script, unless its own output shows it, without a repetition: many messages
 * begin with the status. */
void verdict_say(const json_t *outcome);

#endif
