/* SPDX-License-Identifier: Apache-2.0 */
/* The programs that a wheel asks for: [console_scripts] and [gui_scripts] of its entry_points.txt.
 */
#ifndef KEEPER_LAUNCHERS_H
#define KEEPER_LAUNCHERS_H

#include <stddef.h>

struct why;

#define LAUNCHER_NAME_MAX 128	/* bytes */

/* Called with the name and the text of each program, which are borrowed; a negative errno ends the
 * calls. */
typedef int launcher_found(void *arg, const char *name, const char *text, size_t len,
			   struct why *why_r);

/* python: absolute path of the interpreter that runs them. 0; -EBADMSG with why_r filled: no
 * program can be made of an entry; or the result of found. */
int launchers_make(const char *text, size_t len, const char *python, launcher_found *found,
		   void *arg, struct why *why_r);

#endif
