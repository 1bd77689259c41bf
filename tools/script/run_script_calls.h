/* SPDX-License-Identifier: Apache-2.0 */
/* What an answer tells of the calls of other servers' tools that a script or cell has made, so that
 * a retry knows what was done.
 */
#ifndef TOOLS_SCRIPT_RUN_SCRIPT_CALLS_H
#define TOOLS_SCRIPT_RUN_SCRIPT_CALLS_H

#include <stdio.h>

struct jsonout;
struct outcome;

/* Members of an open object: tool_calls and, if there were more, tool_calls_left_out. Nothing when
 * there were none. */
void run_calls_write(const struct outcome *outcome, struct jsonout *out);

/* A line for readers: how often each tool was called, and how that ended. */
void run_calls_say(const struct outcome *outcome, FILE *to);

#endif
