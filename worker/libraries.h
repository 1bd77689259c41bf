/* SPDX-License-Identifier: Apache-2.0 */
/* Joins the mappings of the program and of its libraries, because a fork copies each mapping of a
 * process, and the end of the copy removes each. A library's headers, its code and its constants
 * are three mappings that differ only in that the code is executable. With the default profile 157
 * mappings become 101.
 */
#ifndef WORKER_LIBRARIES_H
#define WORKER_LIBRARIES_H

/* To be called after the last import: makes headers and constants executable, too, so that the
 * kernel joins them with the code. Writable mappings, relocations that were made read-only, and
 * mappings that cannot be joined stay as they are. An attacker inside a worker then finds more
 * executable bytes, but a script may make memory executable anyway. */
void libraries_join(void);

#endif
