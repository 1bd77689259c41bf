/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor, with privilege only in cgroup_root_new().
 * Owns:    BASE and the directories that it made there. Tenants and leaves: cgroup_leaf.c. */
#include "host/cgroup_parts.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/clock.h"
#include "base/nextentry.h"
#include "base/own.h"
#include "base/why.h"
#include "host/cgroup_text.h"
#include "host/startup.h"

#define BY_HAND "mcp-pythond-"
#define NAMES_MOST 1000
#define DEPTH_MAX 4
#define SUPERVISOR_WEIGHT "1000"	/* ten times that of all tenants together */
#define EMPTY_MOST_MS 3000
#define SWEEP_MOST_MS 1000
#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)

static const struct controller {
	const char *name;
	size_t offset;
	bool by_tenant;			/* leaves do not have this controller, because they would
					 * be more expensive to make */
} controllers[] = {
	{ "cpu", offsetof(struct cgroup_controllers, cpu), false },
	{ "memory", offsetof(struct cgroup_controllers, memory), false },
	{ "pids", offsetof(struct cgroup_controllers, pids), false },
	{ "io", offsetof(struct cgroup_controllers, io), true },
};
#define N_CONTROLLERS (sizeof(controllers) / sizeof(controllers[0]))

/* events: an open cgroup.events; poll(2) reports changes since the last read. */
static bool
is_populated(int events)
{
	uint64_t populated = 1;
	char text[128];
	ssize_t n = pread(events, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	return cgroup_text_counter(text, "populated", &populated) < 0 || populated != 0;
}

/* Removes name and everything below it, deepest first. Directories that are not empty stay. */
static void
cgroup_remove_tree(int dir, const char *name, int depth)
{
	int r = 0;
	own_list DIR *list = openlist(dir, name, &r);
	struct dirent *entry;

	while (depth > 0 && (entry = nextentry(list, &r)) != NULL)
		if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
			cgroup_remove_tree(dirfd(list), entry->d_name, depth - 1);
	unlinkat(dir, name, AT_REMOVEDIR);
}

void
cgroup_enable_controllers(int dir, bool for_leaves, unsigned int *enabled_r)
{
	char have[512], on[512], word[16];

	if (cgroup_read_at(dir, "cgroup.controllers", have, sizeof(have)) < 0 ||
	    cgroup_read_at(dir, "cgroup.subtree_control", on, sizeof(on)) < 0)
		return;
	for (size_t i = 0; i < N_CONTROLLERS; i++) {
		if (!cgroup_text_has_word(have, controllers[i].name) ||
		    cgroup_text_has_word(on, controllers[i].name) ||
		    (for_leaves && controllers[i].by_tenant))
			continue;
		snprintf(word, sizeof(word), "+%s", controllers[i].name);
		if (cgroup_write_at(dir, "cgroup.subtree_control", word) == 0 &&
		    enabled_r != NULL)
			*enabled_r |= 1U << i;
	}
}

/* The files that a cgroup's owner needs, beside the directory itself. */
static const char *const handed[] = {
	"cgroup.procs", "cgroup.subtree_control", "cgroup.threads",
};

static int
cgroup_hand_over(int dir, uid_t uid, gid_t gid)
{
	struct stat st;

	if (fstat(dir, &st) < 0)
		return -errno;
	if (st.st_uid == uid)
		return 0;
	for (size_t i = 0; i < sizeof(handed) / sizeof(handed[0]); i++)
		if (fchownat(dir, handed[i], uid, gid, AT_SYMLINK_NOFOLLOW) < 0)
			return -errno;
	return fchown(dir, uid, gid) < 0 ? -errno : 0;
}

/* Calls visit for each directory in dir. */
static void
each_below(int dir, void (*visit)(int dir, const char *name, void *arg), void *arg)
{
	int r = 0;
	own_list DIR *list = openlist(dir, ".", &r);
	struct dirent *entry;

	while ((entry = nextentry(list, &r)) != NULL)
		if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
			visit(dirfd(list), entry->d_name, arg);
}

/* Removes a directory that an earlier start by hand has left, unless a process lives in it. The
 * process id in its name proves nothing: it may be of another pid namespace. The supervisor's
 * part is removed first: a supervisor that is just starting finds it missing and takes another
 * name. */
static void
remove_if_stale(int own, const char *name, void *)
{
	own_fd int base = -1, events = -1;

	if (strncmp(name, BY_HAND, strlen(BY_HAND)) != 0)
		return;
	base = openat(own, name, DIR_FLAGS);
	events = base < 0 ? -1 : openat(base, "cgroup.events", O_RDONLY | O_CLOEXEC);
	if (events < 0 || is_populated(events))
		return;
	if (unlinkat(base, "supervisor", AT_REMOVEDIR) < 0 && errno != ENOENT)
		return;
	cgroup_remove_tree(own, name, DEPTH_MAX);
}

/* Takes the directory and everything below it from the service's user: a supervisor that was
 * killed, or that left sessions, leaves such directories in the unit's cgroup. Without
 * CAP_DAC_OVERRIDE each one must belong to this process before it can be read. */
static void
take_back(int dir, const char *name, void *arg)
{
	own_fd int fd = -1;

	if (fchownat(dir, name, geteuid(), getegid(), AT_SYMLINK_NOFOLLOW) < 0)
		return;
	fd = openat(dir, name, DIR_FLAGS);
	if (fd < 0)
		return;
	for (size_t i = 0; i < sizeof(handed) / sizeof(handed[0]); i++)
		if (fchownat(fd, handed[i], geteuid(), getegid(), AT_SYMLINK_NOFOLLOW) < 0)
			return;
	each_below(fd, take_back, arg);
}

struct owner {
	uid_t uid;
	gid_t gid;
};

/* Undoes take_back, in the reverse order: the contents first. */
static void
give_back(int dir, const char *name, void *arg)
{
	own_fd int fd = openat(dir, name, DIR_FLAGS);
	const struct owner *owner = arg;

	if (fd < 0)
		return;
	each_below(fd, give_back, arg);
	cgroup_hand_over(fd, owner->uid, owner->gid);
}

static int
open_own(int *fd_r)
{
	char text[4096], own[1024], path[2048];
	own_mem char *mounts = NULL;
	own_fd int mounts_fd = -1;
	size_t len = 0, size = 1 << 20;
	ssize_t n;
	int r;

	n = cgroup_read_at(AT_FDCWD, "/proc/self/cgroup", text, sizeof(text));
	if (n < 0)
		return (int)n;
	r = cgroup_text_own(text, own, sizeof(own));
	if (r < 0)
		return r;
	mounts = malloc(size);
	mounts_fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	if (mounts == NULL || mounts_fd < 0)
		return mounts == NULL ? -ENOMEM : -errno;
	while (len < size - 1 &&
	       (n = read(mounts_fd, mounts + len, size - 1 - len)) > 0)
		len += (size_t)n;
	if (n < 0)
		return -errno;
	mounts[len] = '\0';
	r = cgroup_text_directory(mounts, own, path, sizeof(path));
	if (r < 0)
		return r;
	*fd_r = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return *fd_r < 0 ? -errno : 0;
}

/* Notes the controllers that the leaves will have: those enabled in tenants/. */
static int
note_controllers(struct cgroup_root *root)
{
	char on[512];
	ssize_t n = cgroup_read_at(root->tenants_fd, "cgroup.subtree_control", on, sizeof(on));

	if (n < 0)
		return (int)n;
	for (size_t i = 0; i < N_CONTROLLERS; i++)
		*(bool *)((char *)&root->controllers + controllers[i].offset) =
			cgroup_text_has_word(on, controllers[i].name);
	return 0;
}

/* Makes supervisor/ in BASE and moves this process there. */
static int
move_in(struct cgroup_root *root)
{
	own_fd int fd = -1;
	int r = cgroup_make_directory(root->base_fd, "supervisor", &fd);

	return r < 0 ? r : cgroup_write_at(fd, "cgroup.procs", "0");
}

/* Makes a directory with a unique name, and moves in. Supervisors in different pid namespaces
 * may have the same process id, and another one's remove_if_stale() may run between the two
 * steps. */
static int
settle_by_hand(struct cgroup_root *root)
{
	int r = -EEXIST;

	each_below(root->home_fd, remove_if_stale, NULL);
	for (int n = 1; n <= NAMES_MOST && (r == -EEXIST || r == -ENOENT || r == -ENODEV); n++) {
		snprintf(root->name, sizeof(root->name), n == 1 ? BY_HAND "%d" : BY_HAND "%d-%d",
			 (int)getpid(), n);
		r = mkdirat(root->home_fd, root->name, 0755) < 0 ? -errno : 0;
		if (r < 0)
			continue;
		if (root->base_fd >= 0)
			close(root->base_fd);
		root->base_fd = openat(root->home_fd, root->name, DIR_FLAGS);
		r = root->base_fd < 0 ? -errno : move_in(root);
	}
	return r;
}

/* Uses the unit's cgroup, with the remains of an earlier process of the service. */
static int
settle_in_unit(struct cgroup_root *root)
{
	int r = cgroup_make_directory(root->home_fd, ".", &root->base_fd);

	if (r < 0)
		return r;
	take_back(root->base_fd, ".", NULL);
	cgroup_remove_tree(root->base_fd, "tenants", DEPTH_MAX);
	return move_in(root);
}

int
cgroup_root_make_tenants(struct cgroup_root *root)
{
	int fd, r = cgroup_make_directory(root->base_fd, "tenants", &fd);

	if (r < 0)
		return r;
	if (root->tenants_fd >= 0)
		close(root->tenants_fd);
	root->tenants_fd = fd;
	cgroup_enable_controllers(fd, false, NULL);
	/* Without the controller this is not an error. */
	cgroup_write_number(fd, "pids.max", root->tasks.workers);
	return 0;
}

static uint64_t
tasks_of_cgroup(int dir)
{
	char text[32];

	/* "max", or there is no controller. */
	return cgroup_read_at(dir, "pids.max", text, sizeof(text)) > 0 &&
		       isdigit((unsigned char)text[0]) ? strtoull(text, NULL, 10) : UINT64_MAX;
}

/* Makes BASE with its directories. The order matters: without CAP_DAC_OVERRIDE nothing can be
 * written here once it is handed over, and controllers can only be enabled in a cgroup that
 * holds no process itself (cgroups(7), "no internal processes"). */
static int
make_subtree(struct cgroup_root *root, uid_t uid, gid_t gid, const char **step_r)
{
	own_fd int supervisor_fd = -1;
	int r;

	*step_r = "find the cgroup of this process";
	r = open_own(&root->home_fd);
	if (r < 0)
		return r;
	root->tasks = tasks_bounds(tasks_machine(), tasks_of_cgroup(root->home_fd));
	*step_r = "make its directories and move into supervisor/";
	r = root->by_hand ? settle_by_hand(root) : settle_in_unit(root);
	if (r < 0)
		return r;
	if (root->by_hand)
		cgroup_enable_controllers(root->home_fd, false, &root->enabled_in_own);
	cgroup_enable_controllers(root->base_fd, false, NULL);
	/* Every tenant's calls pass through this process, which must not wait behind one tenant's
	 * scripts. Without the controller this is not an error. */
	cgroup_write_at(root->base_fd, "supervisor/cpu.weight", SUPERVISOR_WEIGHT);
	*step_r = "make tenants/";
	r = cgroup_root_make_tenants(root);
	if (r < 0)
		return r;
	r = note_controllers(root);
	if (r < 0)
		return r;
	*step_r = "hand the subtree over to the service's user";
	r = cgroup_make_directory(root->base_fd, "supervisor", &supervisor_fd);
	if (r == 0)
		r = cgroup_hand_over(supervisor_fd, uid, gid);
	/* cgroup.kill exists since Linux 5.14; empty_tenants() needs it, and it reaches
	 * workers only. The file comes before its directory: root without CAP_DAC_OVERRIDE may
	 * not look into a directory that belongs to the service's user already. */
	if (r == 0 && fchownat(root->tenants_fd, "cgroup.kill", uid, gid,
			       AT_SYMLINK_NOFOLLOW) < 0 &&
	    errno != ENOENT && errno != EACCES)
		r = -errno;
	/* The leaves of sessions, if any. */
	if (r == 0)
		each_below(root->tenants_fd, give_back, &(struct owner){ uid, gid });
	if (r == 0)
		r = cgroup_hand_over(root->tenants_fd, uid, gid);
	if (r == 0)
		r = cgroup_hand_over(root->base_fd, uid, gid);
	return r;
}

int
cgroup_root_new(bool as_service, uid_t owner_uid, gid_t owner_gid,
		struct cgroup_root **root_r, struct why *why_r)
{
	struct cgroup_root *root = calloc(1, sizeof(*root));
	const char *step = "allocate";
	int r = -ENOMEM;

	if (root == NULL)
		return why_say(why_r, r, "", "cgroup: out of memory");
	TAILQ_INIT(&root->dying);
	root->home_fd = root->base_fd = root->tenants_fd = root->inotify_fd = -1;
	root->by_hand = !as_service;
	r = make_subtree(root, owner_uid, owner_gid, &step);
	if (r < 0) {
		cgroup_root_free(root);
		return why_say(why_r, r, "", "cgroup: cannot %s: %s", step,
			       strerror(-r));
	}
	if (as_service && !(root->controllers.cpu && root->controllers.memory &&
			    root->controllers.pids)) {
		why_say(why_r, 0, "",
			"cgroup: missing controllers:%s%s%s (the unit needs "
			"Delegate=cpu memory pids io)",
			root->controllers.cpu ? "" : " cpu",
			root->controllers.memory ? "" : " memory",
			root->controllers.pids ? "" : " pids");
		cgroup_root_free(root);
		return -ENOTSUP;
	}
	*root_r = root;
	return 0;
}

const struct cgroup_controllers *
cgroup_root_controllers(const struct cgroup_root *root)
{
	return &root->controllers;
}

unsigned int
cgroup_root_count(const struct cgroup_root *root)
{
	return root->count;
}

static int
cgroup_left_ms(uint64_t end_ms)
{
	uint64_t now_ms = clock_ms();

	return end_ms > now_ms ? (int)(end_ms - now_ms) : 0;
}

static void
wait_until_empty(int dir, uint64_t end_ms)
{
	own_fd int events = openat(dir, "cgroup.events", O_RDONLY | O_CLOEXEC);
	struct pollfd poll_fd = { .fd = events, .events = POLLPRI };
	int ms;

	while (events >= 0 && is_populated(events) && (ms = cgroup_left_ms(end_ms)) > 0)
		poll(&poll_fd, 1, ms);
}

/* which: a bit for each controller, as in cgroup_enable_controllers(). Each controller has a write
 * of its own, so that an error of one does not prevent the others. */
static void
disable_controllers(int dir, unsigned int which)
{
	for (size_t i = 0; i < N_CONTROLLERS; i++) {
		char word[16];

		if ((which & 1U << i) == 0)
			continue;
		snprintf(word, sizeof(word), "-%s", controllers[i].name);
		cgroup_write_at(dir, "cgroup.subtree_control", word);
	}
}

/* ---- cgroups of earlier processes, and for later ones ---- */

struct sweep {
	bool (*is_known)(void *arg, uint64_t serial);
	void *arg;
	uint64_t end_ms;
};

static void
sweep_leaf(int tenant, const char *name, void *arg)
{
	const struct sweep *sweep = arg;
	own_fd int leaf = openat(tenant, name, DIR_FLAGS);
	uint64_t serial;

	if (leaf < 0 || (cgroup_text_number(name, &serial) == 0 &&
			 sweep->is_known(sweep->arg, serial)))
		return;
	cgroup_write_at(leaf, "cgroup.kill", "1");
	wait_until_empty(leaf, sweep->end_ms);
	unlinkat(tenant, name, AT_REMOVEDIR);
}

static void
sweep_tenant(int tenants, const char *name, void *arg)
{
	own_fd int tenant = openat(tenants, name, DIR_FLAGS);

	if (tenant < 0)
		return;
	each_below(tenant, sweep_leaf, arg);
	unlinkat(tenants, name, AT_REMOVEDIR);
}

void
cgroup_root_sweep(struct cgroup_root *root, bool (*is_known)(void *arg, uint64_t serial),
		  void *arg)
{
	struct sweep sweep = {
		.is_known = is_known,
		.arg = arg,
		.end_ms = clock_ms() + SWEEP_MOST_MS,
	};

	each_below(root->tenants_fd, sweep_tenant, &sweep);
}

/* Disables all controllers in the directories below this one, the deepest first, and then in this
 * one. systemd starts the service's next process in BASE, and the kernel may refuse that while BASE
 * has controllers enabled for its children (cgroups(7), "no internal processes"). */
static void
disable_all_below(int dir, const char *name, void *arg)
{
	own_fd int fd = openat(dir, name, DIR_FLAGS);

	if (fd < 0)
		return;
	each_below(fd, disable_all_below, arg);
	disable_controllers(fd, ~0U);
}

/* A program of ExecStopPost= runs beside the processes that it ends: in BASE/.control. Anywhere
 * else the parent cgroup is not the service's. */
static bool
is_beside_service(int own)
{
	static const char control[] = "/.control";
	char path[4096], link[64];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", own);
	n = readlink(link, path, sizeof(path));
	return n > (ssize_t)strlen(control) && n < (ssize_t)sizeof(path) &&
	       memcmp(path + n - strlen(control), control, strlen(control)) == 0;
}

int
cgroup_end_service(void)
{
	static const char *const parts[] = { "supervisor", "tenants" };
	own_fd int own = -1, base = -1;
	uint64_t end_ms;
	int r = open_own(&own);

	if (r < 0 || !is_beside_service(own))
		return r < 0 ? r : -EPERM;
	base = openat(own, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (base < 0)
		return -errno;
	end_ms = clock_ms() + EMPTY_MOST_MS;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		own_fd int part = openat(base, parts[i], DIR_FLAGS);

		if (part >= 0)
			cgroup_write_at(part, "cgroup.kill", "1");
	}
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		own_fd int part = openat(base, parts[i], DIR_FLAGS);

		if (part >= 0)
			wait_until_empty(part, end_ms);
		cgroup_remove_tree(base, parts[i], DEPTH_MAX);
	}
	disable_all_below(base, ".", NULL);
	return 0;
}

int
cgroup_root_fd(const struct cgroup_root *root)
{
	return root->home_fd;
}

void
cgroup_root_leave(struct cgroup_root *root)
{
	root->left = true;
}

void
cgroup_root_free(struct cgroup_root *root)
{
	struct cgroup_leaf *leaf;

	if (root == NULL)
		return;
	cgroup_root_unwatch(root);
	if (root->tenants_fd >= 0) {
		if (!root->left) {
			/* Ends the remaining workers and waits for them, within bounds, because the
			 * service is ending. A worker remains if it was made while its zygote was
			 * being ended. */
			cgroup_write_at(root->tenants_fd, "cgroup.kill", "1");
			wait_until_empty(root->tenants_fd, clock_ms() + EMPTY_MOST_MS);
		}
		cgroup_remove_tree(root->base_fd, "tenants", DEPTH_MAX);
		/* The remaining processes may be dying, too. */
		if (!root->by_hand)
			disable_all_below(root->base_fd, ".", NULL);
	}
	while ((leaf = TAILQ_FIRST(&root->dying)) != NULL) {
		struct cgroup_tenant *tenant = leaf->tenant;

		TAILQ_REMOVE(&root->dying, leaf, link);
		close(leaf->fd);
		free(leaf);
		if (--tenant->leaves == 0 && tenant->released) {
			close(tenant->fd);
			free(tenant);
		}
	}
	if (root->by_hand && root->base_fd >= 0) {
		/* Started by hand: moves back to the original cgroup, so that BASE can be removed.
		 * Started as root this fails, because the process is not root any more; then the
		 * next start removes the empty directory. */
		disable_controllers(root->home_fd, root->enabled_in_own);
		cgroup_write_at(root->home_fd, "cgroup.procs", "0");
		cgroup_remove_tree(root->home_fd, root->name, DEPTH_MAX);
	}
	for (size_t i = 0; i < 3; i++) {
		int fd = i == 0	  ? root->home_fd
			 : i == 1 ? root->base_fd
				  : root->tenants_fd;

		if (fd >= 0)
			close(fd);
	}
	free(root);
}
