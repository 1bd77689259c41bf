/* SPDX-License-Identifier: Apache-2.0 */
/* mcp-python get: the bytes of a file that a script left. */
#ifndef CLIENT_GET_H
#define CLIENT_GET_H

struct options;

/* Returns the exit code. */
int get_command(const struct options *options);

#endif
