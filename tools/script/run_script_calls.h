/* SPDX-License-Identifier: Apache-2.0 */
/* The part of an answer about calls of other servers' tools by a script or cell. A client that
 * wants to run the script again learns from it what was done already.
 */
#ifndef TOOLS_SCRIPT_RUN_SCRIPT_CALLS_H
#define TOOLS_SCRIPT_RUN_SCRIPT_CALLS_H

#include <stdio.h>

struct jsonout;
struct outcome;

/* Writes members of an open object: tool_calls and, if there were more calls, tool_calls_left_out.
 * Writes nothing if there was no call. */
void run_calls_write(const struct outcome *outcome, struct jsonout *out);

/* Writes a line for models: how often each tool was called, and with which results. */
void run_calls_say(const struct outcome *outcome, FILE *to);

#endif
