/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the zygote (begin, prepare); a cell's process at its end (pause).
 * Owns:    the list of functions of loaded libraries to call. It is rebuilt when a library was
 * loaded or unloaded. */
#include "worker/parallel.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROCESSORS_MAX 8192
#define FUNCTIONS_MAX 16
#define PAUSE_HARD 2		/* omp_pause_hard: the threads end (OpenMP 5.0) */

/* Environment variables that set the number of threads. The first ones are for libraries that start
 * threads while they are loaded. A library whose own variable is not set reads the last one. */
static const char *variables[] = { "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS",
				   "OMP_NUM_THREADS", NULL };
enum { OWN_VARIABLES = 2, FOR_ALL = 2 };

/* The function's names, also those in the wheels of numpy and scipy. */
static const char *const openblas_names[] = {
	"openblas_set_num_threads",	  "openblas_set_num_threads64_",
	"openblas_set_num_threads_64",	  "scipy_openblas_set_num_threads",
	"scipy_openblas_set_num_threads64_", "scipy_openblas_set_num_threads_64",
};

static unsigned int processors = 1;

int
parallel_begin(uint32_t most)
{
	cpu_set_t *set = CPU_ALLOC(PROCESSORS_MAX);
	size_t size = CPU_ALLOC_SIZE(PROCESSORS_MAX);
	char text[16];
	unsigned int n = 1;

	if (!set)
		return -ENOMEM;
	if (sched_getaffinity(0, size, set) == 0)
		n = (unsigned int)CPU_COUNT_S(size, set);
	CPU_FREE(set);
	processors = most < n ? most : n;
	snprintf(text, sizeof(text), "%u", processors);
	if (setenv(variables[FOR_ALL], text, 1) < 0)
		return -errno;
	for (size_t i = 0; i < OWN_VARIABLES; i++)
		if (setenv(variables[i], "1", 1) < 0)
			return -errno;
	/* Libraries that a script loads or starts count the processors themselves. */
	if (processors < n)
		variables[FOR_ALL] = NULL;
	return 0;
}

const char *const *
parallel_unset(void)
{
	return variables;
}

/* ---- loaded libraries ---- */

struct functions {
	size_t n;
	void *at[FUNCTIONS_MAX];
};

static struct functions pauses;

static void
add_function(struct functions *to, void *at)
{
	for (size_t i = 0; i < to->n; i++)
		if (to->at[i] == at)
			return;
	if (at && to->n < FUNCTIONS_MAX)
		to->at[to->n++] = at;
}

struct names {
	size_t n, room;
	char **at;
};

static int
on_object(struct dl_phdr_info *info, size_t, void *arg)
{
	struct names *names = arg;
	char *name;

	if (info->dlpi_name[0] == '\0')
		return 0;
	if (names->n == names->room) {
		size_t room = names->room ? 2 * names->room : 128;
		char **at = realloc(names->at, room * sizeof(*at));

		if (!at)
			return 1;
		names->at = at;
		names->room = room;
	}
	name = strdup(info->dlpi_name);
	if (name)
		names->at[names->n++] = name;
	return 0;
}

/* Calls visit for each loaded library. None may be opened meanwhile. */
static void
visit_libraries(void (*visit)(void *library, void *arg), void *arg)
{
	struct names names = { 0 };

	dl_iterate_phdr(on_object, &names);
	for (size_t i = 0; i < names.n; i++) {
		void *library = dlopen(names.at[i], RTLD_LAZY | RTLD_NOLOAD);

		if (library) {
			visit(library, arg);
			dlclose(library);
		}
		free(names.at[i]);
	}
	free(names.at);
}

/* Notes libgomp's function that ends its threads. LLVM's runtime has a function of the same name,
 * which is not needed: that runtime ends its threads itself. dlsym() also searches the libraries
 * that a library needs. A library that needs both runtimes is skipped, but its libgomp is visited,
 * too. */
static void
look_for_libgomp(void *library, void *)
{
	if (!dlsym(library, "__kmpc_fork_call"))
		add_function(&pauses, dlsym(library, "omp_pause_resource_all"));
}

static void
look_for_openblas(void *library, void *arg)
{
	for (size_t i = 0; i < sizeof(openblas_names) / sizeof(openblas_names[0]); i++)
		add_function(arg, dlsym(library, openblas_names[i]));
}

/* ---- their threads ---- */

static int
count_changes(struct dl_phdr_info *info, size_t, void *arg)
{
	*(unsigned long long *)arg = info->dlpi_adds + info->dlpi_subs;
	return 1;
}

void
parallel_pause(void)
{
	static unsigned long long seen;
	unsigned long long changes = 0;

	dl_iterate_phdr(count_changes, &changes);
	if (changes != seen) {
		pauses.n = 0;
		visit_libraries(look_for_libgomp, NULL);
		seen = changes;
	}
	for (size_t i = 0; i < pauses.n; i++) {
		int (*pause)(int kind);

		memcpy(&pause, &pauses.at[i], sizeof(pause));
		pause(PAUSE_HARD);
	}
}

void
parallel_prepare(void)
{
	struct functions blas = { 0 };
	pid_t pid;

	parallel_pause();
	visit_libraries(look_for_openblas, &blas);
	if (blas.n == 0)
		return;
	for (size_t i = 0; i < blas.n; i++) {
		void (*set_threads)(int n);

		memcpy(&set_threads, &blas.at[i], sizeof(set_threads));
		set_threads((int)processors);
	}
	/* When the library is told of a fork, it ends its threads, and starts as many when it is
	 * next used. A worker is cloned without that notice, so the zygote forks once here. */
	pid = fork();
	if (pid == 0)
		_exit(0);
	if (pid > 0)
		waitpid(pid, NULL, 0);
}
