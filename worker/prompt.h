/* input() of a script that may ask its user: once standard input has no more lines, the prompt
 * goes to the supervisor, which knows whom to ask, and its answer is the line.
 */
#ifndef WORKER_PROMPT_H
#define WORKER_PROMPT_H

#include <stdint.h>

/* In the zygote, when the interpreter has started. 0, or -EIO with an exception set. */
int prompt_prepare(void);

/* After ask_begin: from now on this process may ask so many prompts. With none, input() is
 * Python's own. Names that the script gave input are left as they are. */
void prompt_begin(uint32_t prompts);

#endif
