/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the leaves in which the servers of volumes run. */
#include "engine/volume.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/why.h"
#include "base/xalloc.h"
#include "engine/engine_parts.h"
#include "engine/keeper.h"
#include "proto/message.h"

#define IDLE_MS 30000
#define SERVER_MEMORY (128ULL * 1024 * 1024)
#define SERVER_PROCESSES 2

struct volume {
	LIST_ENTRY(volume) link;
	struct volumes *of;
	char *name;
	struct cgroup_leaf *leaf;	/* NULL: not attached yet */
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
	if (volume->leaf) {
		cgroup_leaf_kill(volume->leaf);
		cgroup_leaf_retire(volume->leaf);
	}
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

	if (volume->leaf)
		return 0;
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
