/* SPDX-License-Identifier: Apache-2.0 */
/* The title of a process in ps and systemctl status. Zygote, init, script and session are one
 * program with one command line; each writes its title over it.
 */
#ifndef WORKER_TITLE_H
#define WORKER_TITLE_H

/* To be called at the start of the program. argv: main()'s, whose memory title_set overwrites. */
void title_keep(char **argv);

/* Sets the title. comm: the name of the process, at most 15 bytes; role: the word after
 * "mcp-python". */
void title_set(const char *comm, const char *role);

#endif
