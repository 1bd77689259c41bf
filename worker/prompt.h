/* input() of a script that may ask its user: once standard input has no more lines, the prompt
 * goes to the supervisor, which knows whom to ask, and its answer is the line.
 */
#ifndef WORKER_PROMPT_H
#define WORKER_PROMPT_H

#include <stdbool.h>
#include <stdint.h>

/* In the zygote, when the interpreter has started. 0, or -EIO with an exception set. */
int prompt_prepare(void);

/* From now on this process may ask so many prompts, for the run of that id. With none,
 * input() is Python's own. Names that the script gave input are left as they are. */
void prompt_begin(uint64_t id, uint32_t prompts);

/* A prompt has no answer yet: a thread may be waiting for it on the control socket. */
bool prompt_is_open(void);

#endif
