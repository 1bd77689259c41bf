/* SPDX-License-Identifier: Apache-2.0 */
/* mcp-python run: one file, one execution, its output and its exit code. */
#ifndef CLIENT_RUN_H
#define CLIENT_RUN_H

struct options;

/* Returns the exit code; everything else was printed. */
int run_command(const struct options *options);

#endif
