/* SPDX-License-Identifier: Apache-2.0 */
/* Modules that a zygote may learn: [pool] learn of the configuration. A module has a number, its
 * place in that list, and a set of modules is a mask of numbers. This module also looks at the text
 * of a script for the modules that it imports. The look is a guess: it may cost time if it is
 * wrong, but never changes what a script does.
 */
#ifndef POLICY_LEARNABLE_H
#define POLICY_LEARNABLE_H

#include <stddef.h>
#include <stdint.h>

#define LEARNABLE_MAX 63		/* the bits of a mask, without the last one */
/* Instead of a mask: the zygote does not even import the modules of its profile, so it is ready
 * earlier. */
#define LEARNABLE_BARE (UINT64_C(1) << 63)
/* Beside modules in a mask: the zygote tries each of them first (worker/learned.py). */
#define LEARNABLE_TRIALS LEARNABLE_BARE
#define LEARNABLE_LOOK 65536		/* bytes of a script that are looked at */

struct config;
struct config_list;

/* How many there are; 0: nothing is learned ("learn = no"). At most LEARNABLE_MAX. */
size_t learnable_count(const struct config *config);

/* The name of a module. number must be less than learnable_count. */
const char *learnable_name(const struct config *config, size_t number);

/* The modules that the script names in lines that begin with "import" or "from": bit n stands for
 * names->item[n], of at most 64. 0 also for a script that mentions anything that a module reads
 * while it is imported, such as OMP_NUM_THREADS: it needs a first import of its own. */
uint64_t learnable_look(const struct config_list *names, const char *script, size_t len);

/* As learnable_look, for the modules that may be learned. */
uint64_t learnable_named(const struct config *config, const char *script, size_t len);

#endif
