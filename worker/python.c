/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the program that starts the zygote, and the zygote.   Owns: the paths of its Python. */
#include "worker/python.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct python chosen;

static bool
is_one_of(const char *path, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(path, list[i]) == 0)
			return true;
	}
	return false;
}

/* Directories that people install several things in, by name, and home directories. */
static bool
has_other_software(const char *tree)
{
	static const char *const places[] = {
		"/usr/local", "/opt", "/srv", "/var", "/var/lib", "/root",
	};
	const char *last = strrchr(tree, '/');

	return is_one_of(tree, places, sizeof(places) / sizeof(places[0])) ||
	       strcmp(last, "/.local") == 0 ||
	       (strncmp(tree, "/home/", 6) == 0 && last == tree + 5);
}

/* Is it at or below a path where workers have a directory of their own? */
static bool
is_workers(const char *tree)
{
	static const char *const places[] = {
		"/proc", "/sys", "/dev", "/run", "/tmp", "/var/tmp", "/var/run", "/workspace",
		"/home/python",
	};

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		const size_t len = strlen(places[i]);

		if (strncmp(tree, places[i], len) == 0 && (tree[len] == '\0' || tree[len] == '/'))
			return true;
	}
	return *tree == '\0';
}

/* The tree of a program: what is above its bin. 0 or -EINVAL. */
static int
find_tree(struct python *python, const char **what_r)
{
	char *slash;

	strcpy(python->tree, python->program);
	slash = strrchr(python->tree, '/');
	*slash = '\0';
	slash = strrchr(python->tree, '/');
	*what_r = "the Python's program is not in a directory named bin";
	if (!slash || strcmp(slash, "/bin") != 0)
		return -EINVAL;
	*slash = '\0';
	*what_r = "the Python lies in a place that workers have for themselves";
	if (is_workers(python->tree))
		return -EINVAL;
	/* The tree's lib goes into LD_LIBRARY_PATH. */
	*what_r = "the Python's path has one of the characters : ; $";
	if (strpbrk(python->tree, ":;$"))
		return -EINVAL;
	if (strcmp(python->tree, "/usr") == 0)
		*python->tree = '\0';
	python->shares_tree = *python->tree && has_other_software(python->tree);
	return 0;
}

int
python_choose(const char *program, bool in_root, const char **what_r)
{
	struct python python = { .in_root = in_root };
	int r;

	*what_r = "looking for the program of the Python";
	if (!realpath(program ? program : PYTHON_PROGRAM, python.program))
		return -errno;
	r = find_tree(&python, what_r);
	if (r == 0)
		chosen = python;
	return r;
}

const struct python *
python_chosen(void)
{
	const char *what;

	if (!*chosen.program && python_choose(NULL, false, &what) < 0)
		snprintf(chosen.program, sizeof(chosen.program), "%s", PYTHON_PROGRAM);
	return &chosen;
}
