/* SPDX-License-Identifier: Apache-2.0 */
/* Joins the mappings of the program and of its libraries, because a fork copies each mapping of a
 * process, and the end of the copy removes each. A library's headers, code and constants are three
 * mappings that differ only in that the code is executable. Its data are three mappings: the linker
 * has made the relocated part read-only, and what is zero in the beginning has no file. With the
 * default profile 157 mappings become 81. The parts of the program's code that fill huge pages are
 * moved to huge pages: one fault maps two megabytes.
 */
#ifndef WORKER_LIBRARIES_H
#define WORKER_LIBRARIES_H

#include <stdbool.h>
#include <stdint.h>

/* To be called before the first import: libraries that are loaded from now on count as imported. */
void libraries_note(void);

/* To be called after the last import: makes headers and constants executable, too, so that the
 * kernel joins them with the code, and relocations of imported libraries writable, so that it
 * joins them with the data. Data of imported libraries are copied to one mapping without a file.
 * Mappings that cannot be joined stay as they are. An attacker inside a
 * script's process then finds more executable and more writable bytes, but a script may change the
 * protection of its memory anyway. Init calls no imported library, and the relocations of the
 * libraries that it calls stay read-only. */
void libraries_join(void);

/* Is this address on one of the program's huge pages (HUGE_PAGE)? */
bool libraries_is_huge(uintptr_t at);

#endif
