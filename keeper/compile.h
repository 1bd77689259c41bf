/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles the sources of a tree. A worker without a network gets their text and answers with
 * bytes; this module makes the files. On its socket, numbers most significant byte first:
 *
 *   worker   1 byte length and the tag of what it makes ("cpython-311"), once
 *   keeper   path length (2 bytes), size (4 bytes), path, source
 *   worker   size (4 bytes), the compiled bytes; 0: it does not compile
 * and so on, until the keeper closes its end.
 */
#ifndef KEEPER_COMPILE_H
#define KEEPER_COMPILE_H

#include <stdint.h>
#include <stdio.h>

#include "keeper/intake.h"

/* sources: lines of the intake's list; n bytes of them are read from the beginning. Each
 * "DIRECTORY/NAME.py" gets a DIRECTORY/__pycache__/NAME.TAG.pyc. 0 or -errno with why_r filled. */
int compile_sources(struct intake *intake, int worker, FILE *sources, long bytes,
		    struct why *why_r);

#endif
