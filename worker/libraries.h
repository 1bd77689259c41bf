/* SPDX-License-Identifier: Apache-2.0 */
/* Joins the mappings of the program and of its libraries: a fork copies each mapping that a process
 * has, and its end takes each away again. A library's headers, its code and its constants are three
 * mappings that differ only in that the code is executable. With the default profile 157 mappings
 * become 101.
 */
#ifndef WORKER_LIBRARIES_H
#define WORKER_LIBRARIES_H

/* After the last import: makes headers and constants executable too, so that the kernel joins them
 * with the code. What can be written stays as it is, relocations that were made read-only too. An
 * attacker inside a worker finds more bytes to execute in this way; but a script may make memory
 * executable anyway. What cannot be joined stays. */
void libraries_join(void);

#endif
