/* SPDX-License-Identifier: Apache-2.0 */
/* input() of a script that may ask its user. When standard input has no more lines, the prompt is
 * sent to the supervisor, which asks the user; the answer is the line.
 */
#ifndef WORKER_PROMPT_H
#define WORKER_PROMPT_H

#include <stdint.h>

/* In the zygote, when the interpreter has started. 0, or -EIO with an exception set. */
int prompt_prepare(void);

/* After ask_begin: from now on this process may show this many prompts. 0: input() is Python's own.
 * If a script has replaced input(), it is not changed. */
void prompt_begin(uint32_t prompts);

#endif
