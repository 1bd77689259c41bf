/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the cgroup subtree, for cgroup.c and cgroup_leaf.c.
 */
#ifndef HOST_CGROUP_PARTS_H
#define HOST_CGROUP_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "host/cgroup.h"
#include "host/tasks.h"

struct event;

struct cgroup_leaf {
	struct cgroup_tenant *tenant;
	struct cgroup_limits limits;
	TAILQ_ENTRY(cgroup_leaf) link;	/* in root->dying, once it is retired */
	char name[24];
	int fd;
	int cpu_fd;			/* cpu.stat, read for every answer; -1: not yet open */
	int watch;			/* of inotify; -1: none */
};

struct cgroup_tenant {
	struct cgroup_root *root;
	char name[40];
	int fd;
	unsigned int leaves;
	unsigned int weight;		/* 0: not known */
	bool released;
};

struct cgroup_root {
	struct cgroup_controllers controllers;
	TAILQ_HEAD(, cgroup_leaf) dying;
	struct event *changed, *retry;
	int home_fd, base_fd, tenants_fd;
	int inotify_fd;
	unsigned int count;
	struct tasks_bounds tasks;
	bool by_hand;
	unsigned int enabled_in_own;	/* controllers of this process's own cgroup, as bits, that
					 * are to be disabled at the end */
	bool left;			/* the processes in the leaves outlive this process */
	char name[40];			/* by_hand: of BASE, below this process's own cgroup */
};

/* Read a file, write a file, and make a directory, each below dir. Links are not followed.
 * cgroup_read_at returns the number of bytes, and the others return 0; or -errno. */
ssize_t cgroup_read_at(int dir, const char *file, char *text_r, size_t size);
int cgroup_write_at(int dir, const char *file, const char *text);
int cgroup_make_directory(int dir, const char *name, int *fd_r);
int cgroup_write_number(int dir, const char *file, uint64_t value);

/* Makes BASE/tenants. Called again if the directory was removed: every user with access to it can
 * do this while no tenant has a directory in it. Needs no privilege. 0 or -errno. */
int cgroup_root_make_tenants(struct cgroup_root *root);

/* Enables controllers for the children of dir: every existing one, or with for_leaves only those
 * that leaves use. They are enabled one at a time, so that a refused one does not prevent the
 * others. *enabled_r: a bit for each controller that was not enabled before; enabled_r may be NULL.
 */
void cgroup_enable_controllers(int dir, bool for_leaves, unsigned int *enabled_r);

#endif
