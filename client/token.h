/* SPDX-License-Identifier: Apache-2.0 */
/* mcp-python token: manages the file of bearer tokens that mcp-pythond reads (policy/tokens.h).
 */
#ifndef CLIENT_TOKEN_H
#define CLIENT_TOKEN_H

#include "client/options.h"

#define TOKEN_FILE SYSCONFDIR "/mcp-pythond/tokens"

/* Runs the command of the options. Returns the exit code. */
int token_command(const struct options *options);

#endif
