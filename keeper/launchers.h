/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the programs that a wheel asks for in [console_scripts] and [gui_scripts] of its
 * entry_points.txt.
 */
#ifndef KEEPER_LAUNCHERS_H
#define KEEPER_LAUNCHERS_H

#include <stddef.h>

struct why;

#define LAUNCHER_NAME_MAX 128	/* bytes */

/* Called with the name and the text of each program, which are borrowed. 0; or -errno, which ends
 * launchers_make. */
typedef int launcher_found(void *arg, const char *name, const char *text, size_t len,
			   struct why *why_r);

/* Makes a program for each entry. text: entry_points.txt. python: absolute path of the interpreter
 * that runs the programs. 0; -EBADMSG with why_r: an entry is not valid; or the error of found. */
int launchers_make(const char *text, size_t len, const char *python, launcher_found *found,
		   void *arg, struct why *why_r);

#endif
