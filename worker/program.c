/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the sealed program, before anything else of the worker.
 * Owns:    the environment that scripts find. */
#include "worker/program.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "worker/hello.h"
#include "worker/python.h"
#include "worker/zygote.h"

bool
program_is_sealed(void)
{
	static const char name[] = "/memfd:" PROGRAM;
	char exe[sizeof(name)];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	return n == (ssize_t)sizeof(name) - 1 && memcmp(exe, name, (size_t)n) == 0;
}

/* Removes an environment variable that is meant for the worker only: programs that scripts start do
 * not use the service's library, and resolve their symbols by their own settings.
 * /proc/self/environ shows the memory where a variable was, so its bytes are erased. */
static void
program_forget(const char *name)
{
	char *value = getenv(name);

	if (!value)
		return;
	unsetenv(name);
	value -= strlen(name) + 1;
	memset(value, 0, strlen(value));
}

int
program_run(int argc, char **argv)
{
	const char *what = "arguments";
	int r = argc == 3 ? python_choose(argv[2], strcmp(argv[1], PROGRAM_IN_ROOT) == 0, &what)
			  : -EINVAL;

	if (r < 0) {
		hello_fail(what, -r);
		return EXIT_FAILURE;
	}
	program_forget(BIND_NOW);
	program_forget(LIBRARIES);
	program_forget(PRELOAD);
	return zygote_main();
}
