/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing for longer than a call.
 * Prepares a worker to run: limits, RUN, standard input, packages and network access. */
#include "engine/execution_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "base/own.h"
#include "engine/egress.h"
#include "engine/engine_parts.h"
#include "engine/keeper.h"
#include "engine/tenant.h"
#include "engine/worker.h"

#define INIT_PROCESSES 1		/* the worker's init is counted in its leaf as well */

/* Standard input as a file in memory that can neither change nor grow. No process has mapped it,
 * so F_SEAL_FUTURE_WRITE is as good as F_SEAL_WRITE. The latter waits while the kernel moves the
 * pages, and fails when that takes long (EBUSY). */
int
execution_make_stdin(const struct execution *e)
{
	const struct msg_str *text = &e->request.stdin_text;
	own_fd int fd = memfd_create("stdin", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	size_t at = 0;

	if (fd < 0)
		return -errno;
	while (at < text->len) {
		ssize_t n = write(fd, text->at + at, text->len - at);

		if (n < 0)
			return -errno;
		at += (size_t)n;
	}
	if (lseek(fd, 0, SEEK_SET) < 0 ||
	    fcntl(fd, F_ADD_SEALS,
		  F_SEAL_FUTURE_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
		return -errno;
	return give_fd(fd);
}

static uint32_t
value_max(const struct execution *e)
{
	uint64_t max = e->limits.output_bytes;

	return max < 256 ? 256 : max > VALUE_MAX ? VALUE_MAX : (uint32_t)max;
}

/* RUN, with the limits that the worker sets for itself: a second safeguard if there are
 * controllers, and the first one without them. With pids.max, RLIMIT_NPROC stays unchanged: it
 * would refuse a fork before pids.max does, and the kernel would not count this as a hit of the
 * limit. */
struct msg_run
execution_run_message(const struct execution *e)
{
	const struct engine *engine = e->engine;
	const struct request_copy *request = &e->request;
	struct msg_run run = {
		.id = e->serial,
		.script = { .at = request->script.at, .len = request->script.len },
		.args = request->args,
		.has_script_name = request->script_name.at != NULL,
		.script_name = request->script_name,
		.has_stdin = request->stdin_text.at != NULL || request->channel >= 0,
		.has_environment = request->environment[0] != '\0',
		.environment = request->environment[0] != '\0',
		.memory_bytes = e->limits.memory_bytes,
		.cpu_seconds = e->limits.cpu_ms / 1000 + 2,
		.value_max = value_max(e),
		.network = e->grant != NULL,
		.has_imports = request->imports.item != NULL,
		.imports = request->imports,
		.has_globals = request->globals.at != NULL,
		.globals = request->globals,
		.tell_names = request->tell_names,
		.inspect = request->inspect,
		.prompts = request->prompts,
		.modules = request->modules,
		.has_tools = request->tools.n > 0,
		.tools = request->tools,
		.has_tool_calls = request->tools.n > 0,
		.tool_calls = request->tool_calls,
		.has_tool_calls_at_once = request->tools.n > 0,
		.tool_calls_at_once = request->tool_calls_at_once,
	};

	if (!engine->memory_counted)
		run.data_bytes = e->limits.memory_bytes;
	/* Without the worker's init, which worker/jail.c adds. With one process more, a script
	 * could exceed its limit, and the watchdog, if it looked just then, would end a script that
	 * has only reached it. */
	if (!engine->pids_counted)
		run.processes = e->limits.pids;
	return run;
}

/* Grants the network, if the request has one. To be called before RUN is made, which tells the
 * worker of the grant. On a second attempt with another worker the grant exists already. If there
 * is no proxy, a line on the script's standard error says why it has no network. */
void
execution_grant_network(struct execution *e)
{
	struct log_quoted quoted;
	const char *why;
	char text[320];
	int len;

	if (e->request.network == NULL || e->grant != NULL)
		return;
	e->grant = egress_grant_new(e->engine->egress, e->serial, e->id,
				    e->tenant->principal, e->request.network, &why);
	if (e->grant != NULL)
		return;
	len = snprintf(text, sizeof(text), "mcp-pythond: this script has no network: %.260s\n",
		       why);
	execution_on_output(e, STREAM_STDERR, text, (size_t)len);
	log_line(LOG_WARNING, "egress-none", "execution=%s why=%s", e->id,
		 log_quote(&quoted, why, strlen(why)));
}

/* Asks the keeper to mount the packages. The keeper answers the worker on a pipe, so this process
 * does not wait. Returns the worker's end of the pipe, or -errno. */
static int
attach_environment(const struct execution *e, const struct worker *w)
{
	own_fd int gate = -1;
	int pair[2], r;

	if (e->engine->keeper == NULL)
		return -ENXIO;
	if (pipe2(pair, O_CLOEXEC) < 0)
		return -errno;
	gate = pair[0];
	r = keeper_attach(e->engine->keeper, e->request.environment, w->pidfd, pair[1]);
	return r < 0 ? r : give_fd(gate);
}

/* The descriptors that go with RUN, in their order. */
static int
run_descriptors(struct execution *e, const struct worker *w, int fd_r[2], size_t *n_r)
{
	const struct request_copy *request = &e->request;
	bool has_text = request->stdin_text.at != NULL;
	int fd = -1;

	*n_r = 0;
	/* The descriptor is duplicated: if this worker fails, another one gets it. */
	if (request->channel >= 0)
		fd = fcntl(request->channel, F_DUPFD_CLOEXEC, 3);
	else if (has_text)
		fd = execution_make_stdin(e);
	if (request->channel >= 0 || has_text) {
		if (fd < 0)
			return request->channel >= 0 ? -errno : fd;
		fd_r[(*n_r)++] = fd;
	}
	if (request->environment[0] == '\0' || w->made_ready[0] != '\0')
		return 0;
	fd = attach_environment(e, w);
	if (fd >= 0)
		fd_r[(*n_r)++] = fd;
	else if (*n_r > 0)
		close(fd_r[--(*n_r)]);
	return fd < 0 ? fd : 0;
}

int
execution_lease(struct execution *e, struct worker *w)
{
	struct engine *engine = e->engine;
	struct cgroup_limits limits = {
		.memory_bytes = e->limits.memory_bytes,
		.pids = e->limits.pids + INIT_PROCESSES,
		.cpu_percent = engine->standard.cpu_percent,
	};
	struct msg_run run;
	int fd[2], r = 0;
	size_t n_fds = 0;

	execution_grant_network(e);
	run = execution_run_message(e);
	if (w->leaf != NULL)
		r = cgroup_leaf_limit(w->leaf, &limits);
	if (r == 0)
		r = execution_mounts_put(e, w, NULL, &w->writer);
	if (r == 0)
		r = run_descriptors(e, w, fd, &n_fds);
	/* A worker in which these files are mounted, or will be soon, is not used again. */
	if (r < 0 && execution_mounts_any(&e->mounts))
		worker_end(w);
	if (r < 0)
		return r;
	execution_start_clock(e);
	if (worker_run(w, &(struct worker_load){
			.user = &execution_user, .execution = e,
			.input = e->request.input, .n_inputs = e->request.n_inputs,
			.run = &run, .fd = fd, .n_fds = n_fds }) < 0)
		return -EAGAIN;
	request_copy_close_channel(&e->request);
	execution_begin(e, w);
	return 0;
}
