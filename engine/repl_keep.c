/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor, at its start and its end.   Owns: nothing: an adopted session belongs
 * to repl.c, its worker to worker.c.
 * Reads:   the description of each session, which another process has written, and /proc about the
 * session's processes. If they differ, the session is not adopted. */
#include "engine/repl_keep.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "base/why.h"
#include "base/xalloc.h"
#include "engine/engine_parts.h"
#include "engine/pool.h"
#include "engine/repl_parts.h"
#include "engine/tenant.h"
#include "engine/tenants.h"
#include "engine/worker.h"
#include "host/cgroup_text.h"
#include "host/usage.h"

#define LOOK_PAUSE 20	/* the pause after a look, in multiples of the look's time: looks use 5 % of
			 * the time */

static uint64_t
repl_smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* ---- at rest ---- */

void
repl_hold(struct repl *repl, enum hold_kind kind)
{
	bool stays = kind == HOLD_STAYS;
	struct msg hold = { .type = MSG_HOLD, .hold = { .number = repl->holds + 1, .stays = stays,
							.undo = kind == HOLD_UNDO } };

	if (repl->held || repl->phase != REPL_IDLE)
		return;
	repl_background_count(repl);
	repl->background.runs = false;
	if (repl_send(repl, &hold, -1) < 0) {
		worker_end(repl->worker);
		return;
	}
	repl->holds++;
	repl->held = stays;
}

int
repl_on_held(struct repl *repl, const struct msg_held *held)
{
	if (repl->holds_heard == repl->holds || held->number != repl->holds_heard + 1)
		return -EBADMSG;
	repl->holds_heard++;
	pool_tell_change(repl->engine);
	return 0;
}

bool
repl_may_stay(const struct repl *repl)
{
	return repl->phase == REPL_IDLE || repl->phase == REPL_CELL || repl->phase == REPL_COPY;
}

bool
repl_is_still(const struct repl *repl)
{
	return repl->phase == REPL_IDLE && repl->held && repl->holds_heard == repl->holds &&
	       TAILQ_EMPTY(&repl->jobs);
}

/* The memory that a leaf is charged with: private memory of processes, and memory that belongs
 * to no process and that the kernel cannot reclaim as it does the page cache. */
struct charged {
	uint64_t private, lasting;
};

static int
read_charged(const struct cgroup_leaf *leaf, struct charged *charged_r)
{
	uint64_t all, private, file, shmem;
	char text[8192];

	if (cgroup_leaf_memory(leaf, &all) < 0 ||
	    cgroup_leaf_read(leaf, "memory.stat", text, sizeof(text)) <= 0 ||
	    cgroup_text_counter(text, "anon", &private) < 0 ||
	    cgroup_text_counter(text, "file", &file) < 0 ||
	    cgroup_text_counter(text, "shmem", &shmem) < 0)
		return -EIO;
	file -= repl_smaller(file, shmem);
	charged_r->private = private;
	charged_r->lasting = all - repl_smaller(all, private + file);
	return 0;
}

/* The private memory from before the adoption, which the kernel does not charge to the new leaf. It
 * is visible only in the processes themselves, and can have shrunk since. The rest of the memory
 * from before, such as that of an open but removed file, cannot be measured: it counts for as long
 * as the session lives (uncounted_lasting). */
static uint64_t
look_for_uncounted(const struct repl *repl)
{
	const struct worker *w = repl->worker;
	struct charged now;
	uint64_t all;

	if (read_charged(w->leaf, &now) < 0)
		return repl->uncounted_most;
	all = watchdog_private_memory(w->pid, w->leaf);
	if (all == 0 || all > now.private + repl->uncounted_most)
		return repl->uncounted_most;
	return all - repl_smaller(all, now.private);
}

/* A look holds up the whole supervisor, and the session decides how long it takes (a second, with
 * many mappings in many snapshots). So looks are rare, and the last value is used between them. It
 * is never too small, because this memory only shrinks. */
uint64_t
repl_uncounted(struct repl *repl)
{
	struct engine *engine = repl->engine;
	uint64_t begun_us = clock_us(), ended_us;

	if (repl->uncounted_most > 0 && begun_us >= engine->next_look_us) {
		repl->uncounted = look_for_uncounted(repl);
		ended_us = clock_us();
		engine->next_look_us = ended_us + LOOK_PAUSE * (ended_us - begun_us);
	}
	return repl->uncounted + repl->uncounted_lasting;
}

/* ---- what is known of a process ---- */

/* The number after key in a file of /proc; with last: the last number of that line. 0: none. */
static unsigned long
read_number(const char *path, const char *key, bool last)
{
	own_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[4096], *line, *end;
	unsigned long number;
	ssize_t n;

	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n < 0)
		return 0;
	text[n] = '\0';
	line = strstr(text, key);
	if (line == NULL)
		return 0;
	number = strtoul(line + strlen(key), &end, 10);
	while (last && *end == '\t')
		number = strtoul(end, &end, 10);
	return number;
}

/* Does pidfd belong to the process pid, is this process alive, and is it the first of its pid
 * namespace? */
static bool
is_init(int pidfd, pid_t pid)
{
	struct pollfd poll_fd = { .fd = pidfd, .events = POLLIN };
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
	return read_number(path, "\nPid:\t", false) == (unsigned long)pid &&
	       read_number(path, "\nNSpid:\t", true) == 1 && poll(&poll_fd, 1, 0) == 0;
}

static bool
is_control(int fd)
{
	int domain = 0, type = 0;
	socklen_t domain_len = sizeof(domain), type_len = sizeof(type);

	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &domain_len) == 0 &&
	       getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_len) == 0 &&
	       domain == AF_UNIX && type == SOCK_STREAM && fcntl(fd, F_SETFL, O_NONBLOCK) == 0;
}

static bool
is_stream(int fd)
{
	struct stat st;
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && (flags & O_ACCMODE) == O_RDONLY && (flags & O_NONBLOCK) &&
	       fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode);
}

/* ---- giving ---- */

void
engine_describe(const struct engine *engine, struct msg_handover *handover_r)
{
	*handover_r = (struct msg_handover){
		.build = msg_str(PROTO_BUILD),
		.last_serial = engine->next_serial,
		.uid_base = engine->config->service.subuid_base,
		.slots = engine->slots.count,
		.memory_counted = engine->memory_counted,
		.pids_counted = engine->pids_counted,
		.in_cgroups = engine->options.cgroups != NULL,
	};
}

int
repl_describe(struct repl *repl, struct msg_kept *kept_r, int fd_r[REPL_FDS],
	      struct why *why_r)
{
	const struct worker *w = repl->worker;
	const struct engine *engine = repl->engine;
	struct charged charged = { 0 };

	if (!repl_is_still(repl) || w->reader.header_len != 0 || frame_writer_waits(&w->writer))
		return why_say(why_r, -EBUSY, NULL, "it did not come to rest in time");
	if (engine->memory_counted) {
		if (read_charged(w->leaf, &charged) < 0)
			return why_say(why_r, -EBUSY, NULL, "its memory is unknown");
		(void)repl_uncounted(repl);
		charged.private += repl->uncounted;
		charged.lasting += repl->uncounted_lasting;
	}
	kept_r->serial = w->serial;
	kept_r->slot = w->slot;
	kept_r->pid = (uint32_t)w->pid;
	kept_r->uid = (uint32_t)usage_uid(w->pid);
	kept_r->tenant = msg_str(repl->tenant->principal);
	kept_r->profile = msg_str(engine->config->profile[repl->share->profile->index].name);
	kept_r->streams = (w->pipe[STREAM_STDOUT] >= 0 ? 1U : 0) |
			  (w->pipe[STREAM_STDERR] >= 0 ? 2U : 0);
	kept_r->snapshots = repl->snapshots;
	kept_r->memory_bytes = repl->memory_bytes;
	kept_r->memory_most = repl->memory_most;
	kept_r->is_heard = repl->background.is_heard;
	kept_r->spare_bytes = repl->spare_bytes;
	kept_r->memory_used = charged.private;
	kept_r->memory_lasting = charged.lasting;
	kept_r->base_memory = w->baseline.memory_bytes;
	kept_r->base_kept = w->baseline.kept_bytes;
	kept_r->idle_since_ms = repl->idle_since_ms;
	kept_r->places = repl->places.n;
	kept_r->has_environment = repl->environment[0] != '\0';
	if (kept_r->has_environment)
		kept_r->environment = msg_str(repl->environment);
	fd_r[REPL_FD_INIT] = w->pidfd;
	fd_r[REPL_FD_CONTROL] = w->control;
	fd_r[REPL_FD_STDOUT] = w->pipe[STREAM_STDOUT];
	fd_r[REPL_FD_STDERR] = w->pipe[STREAM_STDERR];
	return 0;
}

void
repl_part(struct repl *repl)
{
	repl->worker->kept = true;
	repl->worker->user = NULL;
	repl->worker->repl = NULL;
	repl->worker = NULL;
	repl_set_phase(repl, REPL_ENDED);
	if (repl->engine->options.cgroups != NULL)
		cgroup_root_leave(repl->engine->options.cgroups);
}

/* ---- taking ---- */

int
engine_admits(const struct engine *engine, const struct msg_handover *handover,
	      struct why *why_r)
{
	struct msg_handover own;

	engine_describe(engine, &own);
	if (handover->build.len != own.build.len ||
	    memcmp(handover->build.at, own.build.at, own.build.len) != 0)
		return why_say(why_r, -EINVAL, NULL, "the service is another build now");
	if (handover->uid_base != own.uid_base || handover->slots != own.slots)
		return why_say(why_r, -EINVAL, NULL, "the range of uids has changed");
	if (handover->memory_counted != own.memory_counted ||
	    handover->pids_counted != own.pids_counted ||
	    handover->in_cgroups != own.in_cgroups)
		return why_say(why_r, -EINVAL, NULL, "the limits of sessions have changed");
	return 0;
}

/* Does the process match its description? */
static int
keep_check(const struct msg_kept *kept, const int fd[REPL_FDS], struct why *why_r)
{
	bool streams = true;

	for (unsigned int i = 0; i < STREAM_COUNT; i++)
		streams = streams && ((kept->streams >> i & 1) != 0) ==
					     (fd[REPL_FD_STDOUT + i] >= 0) &&
			  (fd[REPL_FD_STDOUT + i] < 0 || is_stream(fd[REPL_FD_STDOUT + i]));
	if (!streams || !is_control(fd[REPL_FD_CONTROL]))
		return why_say(why_r, -EINVAL, NULL, "some of its descriptors are missing");
	if (!is_init(fd[REPL_FD_INIT], (pid_t)kept->pid) ||
	    usage_uid((pid_t)kept->pid) != kept->uid)
		return why_say(why_r, -ESRCH, NULL, "its process is gone");
	return 0;
}

static int
find_profile(const struct engine *engine, const struct msg_str *name)
{
	const struct config *config = engine->config;

	for (size_t i = 0; i < config->n_profiles; i++)
		if (strlen(config->profile[i].name) == name->len &&
		    memcmp(config->profile[i].name, name->at, name->len) == 0)
			return (int)i;
	return -ENOENT;
}

static bool
is_in(const struct cgroup_leaf *leaf, pid_t pid)
{
	char text[16384], *at = text, *line;

	if (cgroup_leaf_read(leaf, "cgroup.procs", text, sizeof(text)) <= 0)
		return false;
	while ((line = strsep(&at, "\n")) != NULL)
		if (strtol(line, NULL, 10) == pid)
			return true;
	return false;
}

/* Opens the leaf, and sets its limits again. 0, also without cgroups, or -errno. */
static int
find_leaf(struct engine *engine, struct tenant *tenant, const struct msg_kept *kept,
	  struct cgroup_leaf **leaf_r)
{
	uint64_t used = kept->memory_used + kept->memory_lasting;
	struct cgroup_limits limits = {
		.memory_bytes = kept->memory_bytes > used + CELL_ROOM
				? kept->memory_bytes - used : CELL_ROOM,
		.pids = engine->standard.pids,
		.cpu_percent = engine->standard.cpu_percent,
	};
	int r = 0;

	*leaf_r = NULL;
	if (engine->options.cgroups == NULL)
		return 0;
	if (tenant->cgroup == NULL)
		r = cgroup_tenant_new(engine->options.cgroups, tenant->directory,
				      &tenant->cgroup);
	if (r == 0)
		r = cgroup_leaf_adopt(tenant->cgroup, kept->serial, leaf_r);
	if (r < 0)
		return r;
	r = is_in(*leaf_r, (pid_t)kept->pid) ? cgroup_leaf_limit(*leaf_r, &limits) : -ESRCH;
	if (r < 0) {
		cgroup_leaf_kill(*leaf_r);
		cgroup_leaf_retire(*leaf_r);
	}
	return r;
}

static int
repl_adopt_one(struct engine *engine, struct tenant *tenant, const struct msg_kept *kept,
	       const int fd[REPL_FDS], const struct repl_watcher *watcher, struct repl **repl_r,
	       struct why *why_r)
{
	int profile = find_profile(engine, &kept->profile), r;
	struct cgroup_leaf *leaf;
	struct repl *repl;
	struct worker *w;

	if (profile < 0)
		return why_say(why_r, profile, NULL, "there is no profile %.*s any more",
			       (int)kept->profile.len, kept->profile.at);
	r = worker_slots_reserve(&engine->slots, kept->slot);
	if (r < 0)
		return why_say(why_r, r, NULL, "its uid belongs to another process");
	r = find_leaf(engine, tenant, kept, &leaf);
	if (r < 0) {
		worker_slots_give(&engine->slots, kept->slot);
		return why_say(why_r, r, NULL, "its cgroup: %s", strerror(-r));
	}
	repl = repl_make(engine, tenant, (unsigned int)profile, kept->memory_bytes, watcher);
	w = worker_adopt(engine, repl->share, kept->serial, kept->slot, (pid_t)kept->pid,
			 fd[REPL_FD_INIT], fd[REPL_FD_CONTROL], &fd[REPL_FD_STDOUT], leaf);
	w->baseline.memory_bytes = kept->base_memory;
	w->baseline.kept_bytes = kept->base_kept;
	w->user = &repl_user;
	w->repl = repl;
	repl->worker = w;
	repl_set_phase(repl, REPL_IDLE);
	repl->has_snapshot = repl->adopted = repl->held = true;
	repl->snapshots = kept->snapshots;
	repl->memory_most = kept->memory_most;
	repl->idle_since_ms = kept->idle_since_ms;
	repl->background.is_heard = kept->is_heard;
	repl->spare_bytes = kept->spare_bytes;
	repl->uncounted_most = repl->uncounted = kept->memory_used;
	repl->uncounted_lasting = kept->memory_lasting;
	repl->places.n = kept->places;
	if (kept->has_environment)
		snprintf(repl->environment, sizeof(repl->environment), "%.*s",
			 (int)kept->environment.len, kept->environment.at);
	*repl_r = repl;
	return 0;
}

int
repl_adopt(struct engine *engine, const struct msg_kept *kept, const int fd[REPL_FDS],
	   const struct repl_watcher *watcher, struct repl **repl_r, struct why *why_r)
{
	struct tenant *tenant;
	char *principal;
	int r = keep_check(kept, fd, why_r);

	if (r == 0) {
		principal = xalloc_check(strndup(kept->tenant.at, kept->tenant.len));
		tenant = engine_tenant_named(engine, principal);
		free(principal);
		r = repl_adopt_one(engine, tenant, kept, fd, watcher, repl_r, why_r);
		tenant_release(tenant);
	}
	return r;
}

struct tenant *
repl_tenant(const struct repl *repl)
{
	return repl->tenant;
}

static bool
has_serial(void *arg, uint64_t serial)
{
	return pool_find(arg, serial) != NULL;
}

void
engine_adopted_all(struct engine *engine, uint64_t last_serial)
{
	if (engine->next_serial < last_serial)
		engine->next_serial = last_serial;
	if (engine->options.cgroups != NULL)
		cgroup_root_sweep(engine->options.cgroups, has_serial, engine);
}
