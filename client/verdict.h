/* SPDX-License-Identifier: Apache-2.0 */
/* What an outcome means for the user of the command line: an exit code, and a line to say.
 */
#ifndef CLIENT_VERDICT_H
#define CLIENT_VERDICT_H

#include <jansson.h>

/* The exit code for a structuredContent; EX_PROTOCOL when its status is unknown. */
int verdict_exit_code(const json_t *outcome);

/* One sentence about why the script did not end by itself, or NULL when it did. Points
 * into outcome or is static. */
const char *verdict_text(const json_t *outcome);

/* Prints what happened to the script, as far as its own output does not tell, once: many messages
 * begin with the status. */
void verdict_say(const json_t *outcome);

#endif
