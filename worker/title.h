/* SPDX-License-Identifier: Apache-2.0 */
/* The title of a process in ps and systemctl status. Zygote, init, script and session are one
 * program with one command line; each writes its title over it.
 */
#ifndef WORKER_TITLE_H
#define WORKER_TITLE_H

/* At the start of the program. argv: as the kernel gave it; it is written to later. */
void title_keep(char **argv);

/* comm: the name of the process, at most 15 bytes; role: behind "mcp-python". */
void title_set(const char *comm, const char *role);

#endif
