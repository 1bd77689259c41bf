/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the sealed copy of the python3 program.   Owns: nothing.
 * Takes the place of that program's main function. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "worker/program.h"
#include "worker/title.h"

typedef int main_function(int argc, char **argv, char **envp);
typedef int start_function(main_function *run, int argc, char **argv, void (*init)(void),
			   void (*fini)(void), void (*unload)(void), void *stack_end);

start_function __libc_start_main;

static int
run_worker(int argc, char **argv, char **)
{
	title_keep(argv);
	return program_is_sealed() ? program_run(argc, argv) : EXIT_FAILURE;
}

/* A program's first instructions call this function of the C library with the program's main. */
int
__libc_start_main(main_function *, int argc, char **argv, void (*init)(void),
		  void (*fini)(void), void (*unload)(void), void *stack_end)
{
	void *at = dlsym(RTLD_NEXT, "__libc_start_main");
	start_function *start;

	if (!at)
		abort();
	memcpy(&start, &at, sizeof(start));
	return start(run_worker, argc, argv, init, fini, unload, stack_end);
}
