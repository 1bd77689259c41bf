/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the leaves in which the servers of volumes run. */
#include "engine/volume.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/why.h"
#include "base/xalloc.h"
#include "engine/engine_parts.h"
#include "engine/keeper.h"
#include "proto/message.h"

#define IDLE_MS 30000
#define SERVER_MEMORY (128ULL * 1024 * 1024)
#define SERVER_PROCESSES 2
#define SERVER_START_MS 10000		/* in which it enters its leaf */

struct volume {
	LIST_ENTRY(volume) link;
	struct volumes *of;
	char *name;
	struct cgroup_leaf *leaf;	/* of its server; NULL: not attached yet, or it has ended */
	bool was_up;			/* the server was seen in it */
	uint64_t made_ms;		/* when the leaf was made */
	unsigned int keeper_starts;	/* that of the keeper which was told to start it */
	unsigned int losses;		/* servers that have ended while it was held */
	unsigned int holders;
	uint64_t idle_since_ms;
};

/* ---- whether there can be one ---- */

static int
volume_check(const struct engine *engine, const char *name, struct why *why_r)
{
	int error;

	if (!engine->config->workspace.volume)
		return why_say(why_r, -EINVAL, "volume", "volume: this service has no volumes "
			       "([workspace] volume of its configuration)");
	if (strlen(name) > VOLUME_NAME_MAX || name[0] == '.')
		return why_say(why_r, -EINVAL, "volume",
			       "volume: a name has at most %d characters, the first no \".\"",
			       VOLUME_NAME_MAX);
	if (!engine->options.cgroups)
		return why_say(why_r, -EINVAL, "volume", "volume: volumes need cgroup v2");
	if (!engine->config->workspace.directory)
		return why_say(why_r, -EINVAL, "volume", "volume: volumes need a directory "
			       "([workspace] directory of the configuration)");
	if (!engine->keeper || !keeper_is_there(engine->keeper))
		return why_say(why_r, -EAGAIN, "volume", "volume: volumes cannot be mounted now: %s",
			       engine->keeper ? keeper_trouble(engine->keeper)
					      : "there is no keeper");
	error = keeper_no_volumes(engine->keeper);
	if (error != 0)
		return why_say(why_r, -ENOTSUP, "volume", "volume: volumes need /dev/fuse and "
			       "their directory, and one cannot be used: %s", strerror(error));
	return 0;
}

/* ---- the end of its server ---- */

static void
end_server(struct volume *volume)
{
	if (!volume->leaf)
		return;
	cgroup_leaf_kill(volume->leaf);
	cgroup_leaf_retire(volume->leaf);
	volume->leaf = NULL;
	volume->was_up = false;
}

/* Each server has a leaf of its own: one that is empty again has lost its server. */
static void
look_at_server(struct volume *volume)
{
	char text[32];
	bool is_empty = volume->leaf &&
			cgroup_leaf_read(volume->leaf, "cgroup.procs", text, sizeof(text)) == 0;

	volume->was_up |= volume->leaf && !is_empty;
	if (!is_empty || (!volume->was_up && clock_ms() - volume->made_ms < SERVER_START_MS))
		return;
	log_line(LOG_WARNING, "volume-lost", "directory=%s text=\"the process that serves a volume "
		 "has ended; the next call starts another\"", volume->of->directory);
	end_server(volume);
	volume->losses++;
}

unsigned int
volume_losses(struct volume *volume)
{
	look_at_server(volume);
	return volume->losses;
}

/* ---- holders ---- */

void
volumes_init(struct volumes *volumes, struct engine *engine, const char *directory,
	     struct cgroup_tenant *const *cgroup)
{
	*volumes = (struct volumes){ .engine = engine, .directory = directory, .cgroup = cgroup };
}

static struct volume *
volume_make(struct volumes *volumes, const char *name)
{
	struct volume *volume = xcalloc(1, sizeof(*volume));

	volume->of = volumes;
	volume->name = xmemdup0(name, strlen(name));
	LIST_INSERT_HEAD(&volumes->list, volume, link);
	return volume;
}

static void
volume_end(struct volume *volume)
{
	assert(volume->holders == 0);
	end_server(volume);
	LIST_REMOVE(volume, link);
	free(volume->name);
	free(volume);
}

/* Makes room for one more volume: if the tenant has as many as it may, ends the one that has been
 * without a holder for longest. The number is bounded because each volume costs a leaf and a
 * descriptor, even if the keeper refuses its name. False: all are held. */
static bool
make_room(struct volumes *volumes)
{
	struct volume *volume, *idle = NULL;
	uint32_t n = 0;

	LIST_FOREACH(volume, &volumes->list, link) {
		n++;
		if (volume->holders == 0 && (!idle || volume->idle_since_ms < idle->idle_since_ms))
			idle = volume;
	}
	if (n < volumes->engine->config->workspace.volumes)
		return true;
	if (idle)
		volume_end(idle);
	return idle != NULL;
}

int
volume_hold(struct volumes *volumes, const char *name, struct volume **volume_r,
	    struct why *why_r)
{
	int r = volume_check(volumes->engine, name, why_r);
	struct volume *volume;

	if (r < 0)
		return r;
	LIST_FOREACH(volume, &volumes->list, link)
		if (strcmp(volume->name, name) == 0)
			break;
	if (!volume && !make_room(volumes))
		return why_say(why_r, -EINVAL, "volume", "volume: %u others of yours are in use, "
			       "and [workspace] volumes allows no more",
			       volumes->engine->config->workspace.volumes);
	if (!volume)
		volume = volume_make(volumes, name);
	volume->holders++;
	*volume_r = volume;
	return 0;
}

void
volume_keep(struct volume *volume)
{
	volume->holders++;
}

void
volume_release(struct volume *volume)
{
	if (!volume)
		return;
	assert(volume->holders > 0);
	if (--volume->holders == 0)
		volume->idle_since_ms = clock_ms();
}

const char *
volume_name(const struct volume *volume)
{
	return volume->name;
}

void
volumes_look_after(struct volumes *volumes)
{
	struct volume *volume = LIST_FIRST(&volumes->list), *next;
	const uint64_t now = clock_ms();

	for (; volume; volume = next) {
		next = LIST_NEXT(volume, link);
		if (volume->holders == 0 && now - volume->idle_since_ms >= IDLE_MS)
			volume_end(volume);
		else
			look_at_server(volume);
	}
}

void
volumes_end(struct volumes *volumes)
{
	struct volume *volume;

	while ((volume = LIST_FIRST(&volumes->list)))
		volume_end(volume);
}

unsigned int
volumes_count(const struct volumes *volumes)
{
	const struct volume *volume;
	unsigned int n = 0;

	LIST_FOREACH(volume, &volumes->list, link)
		n += volume->leaf != NULL;
	return n;
}

/* ---- the server ---- */

static int
make_leaf(struct volume *volume)
{
	struct cgroup_tenant *cgroup = *volume->of->cgroup;
	struct engine *engine = volume->of->engine;
	const struct cgroup_limits limits = {
		.memory_bytes = SERVER_MEMORY,
		.pids = SERVER_PROCESSES,
		.cpu_percent = engine->standard.cpu_percent,
	};

	look_at_server(volume);
	/* The keeper that knew the server is gone, and the server has the volume's lock. */
	if (volume->leaf && volume->keeper_starts != keeper_starts(engine->keeper)) {
		end_server(volume);
		volume->losses++;
	}
	if (volume->leaf)
		return 0;
	volume->made_ms = clock_ms();
	volume->keeper_starts = keeper_starts(engine->keeper);
	/* The tenant's cgroup was made with the worker. */
	if (!cgroup)
		return -ENXIO;
	return cgroup_leaf_new(cgroup, ++engine->next_serial, &limits, &volume->leaf);
}

int
volume_attach(struct volume *volume, int pidfd, int gate)
{
	const struct engine *engine = volume->of->engine;
	const struct keeper_volume asked = {
		.tenant = volume->of->directory,
		.name = volume->name,
		.bytes = engine->config->workspace.volume_bytes,
		.files = engine->config->workspace.volume_files,
		.names_max = engine->config->workspace.volumes,
		.bytes_max = engine->config->workspace.bytes_max,
	};
	int r = make_leaf(volume);

	if (r < 0) {
		close(gate);
		return r;
	}
	return keeper_attach_volume(engine->keeper, &asked, cgroup_leaf_fd(volume->leaf), pidfd,
				    gate);
}
