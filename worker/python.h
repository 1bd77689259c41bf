/* SPDX-License-Identifier: Apache-2.0 */
/* Where the Python of a worker is. A worker program is good for every CPython of one minor version
 * (PYTHON_VERSION): the build names one, and mcp-pythond may name another by --python.
 */
#ifndef WORKER_PYTHON_H
#define WORKER_PYTHON_H

#include <limits.h>
#include <stdbool.h>

struct python {
	char program[PATH_MAX];		/* python3.11, without symbolic links */
	char tree[PATH_MAX];		/* the directory of its bin and lib; "": /usr */
	bool shares_tree;		/* that directory has other software in it, too */
	bool in_root;			/* "/" is the Python's own root, not the host's */
};

/* The Python that was chosen, otherwise that of the build. */
const struct python *python_chosen(void);

/* To be called before anything asks for it, in the root that it is in. program: NULL is that of the
 * build. in_root: that root belongs to the Python ([interpreter NAME] root). 0, or -errno with the
 * reason in *what_r (static). */
int python_choose(const char *program, bool in_root, const char **what_r);

#endif
