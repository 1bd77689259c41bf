/* SPDX-License-Identifier: Apache-2.0 */
/* The title of a process in ps and systemctl status. Zygote, init, script and session are one
 * program with one command line; each writes its title over it.
 */
#ifndef WORKER_TITLE_H
#define WORKER_TITLE_H

/* At the start of the program. argv: the kernel's, which is overwritten later. */
void title_keep(char **argv);

/* comm: the name of the process, at most 15 bytes; role: the word after "mcp-python". */
void title_set(const char *comm, const char *role);

#endif
