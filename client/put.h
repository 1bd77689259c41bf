/* SPDX-License-Identifier: Apache-2.0 */
/* mcp-python put: stores a file of this machine, which scripts and sessions find by its uri. */
#ifndef CLIENT_PUT_H
#define CLIENT_PUT_H

struct options;

/* Returns the exit code. */
int put_command(const struct options *options);

#endif
