/* SPDX-License-Identifier: Apache-2.0 */
/* mcp-python repl: runs typed cells in a session. */
#ifndef CLIENT_REPL_H
#define CLIENT_REPL_H

struct options;

/* Returns the exit code. */
int repl_command(const struct options *options);

#endif
