/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles the Python sources of a tree. A worker without a network gets their text and answers
 * with the compiled bytes; this module makes the files. On the worker's socket, numbers have the
 * most significant byte first:
 *
 *   worker   length (1 byte), and the tag of its Python ("cpython-311"); sent once
 *   keeper   path length (2 bytes), size (4 bytes), path, source
 *   worker   size (4 bytes), the compiled bytes; size 0: the source does not compile
 *
 * The last two are repeated until the keeper closes its end.
 */
#ifndef KEEPER_COMPILE_H
#define KEEPER_COMPILE_H

#include <stdint.h>
#include <stdio.h>

#include "keeper/intake.h"

/* sources: lines of intake->list; bytes: how many bytes of them are read, from the beginning. Each
 * "DIRECTORY/NAME.py" gets a DIRECTORY/__pycache__/NAME.TAG.pyc. 0 or -errno with why_r. */
int compile_sources(struct intake *intake, int worker, FILE *sources, long bytes,
		    struct why *why_r);

#endif
