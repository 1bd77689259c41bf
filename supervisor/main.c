/* SPDX-License-Identifier: Apache-2.0 */
/* mcp-pythond: serves the Model Context Protocol and runs Python scripts in jailed workers.
 *
 * Start: arguments, configuration, listening sockets, the worker program; then privilege is
 * used and dropped (startup.h); only then the loop, the engine and the first byte of a
 * client. systemd is told READY when the first worker is warm.
 *
 * End (SIGTERM, SIGINT, or end of input with --stdio): accept no connections and no requests,
 * let the engine answer running calls as cancelled, send those answers, exit. A second signal
 * does not wait.
 *
 * Exit codes: 0 ended on request; 1 failure; 2 wrong arguments; 75 failure, and the next service
 * takes the sessions over; 78 wrong configuration. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <event2/event.h>
#include <jansson.h>

#include "auth/auth.h"
#include "base/clock.h"
#include "base/handle.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/notify.h"
#include "base/own.h"
#include "base/rota.h"
#include "base/socketfile.h"
#include "base/stall.h"
#include "base/turns.h"
#include "base/why.h"
#include "base/xalloc.h"
#include "engine/engine.h"
#include "engine/ready.h"
#include "engine/upstream.h"
#include "govern/gate.h"
#include "govern/metrics.h"
#include "govern/whole_file.h"
#include "host/directory.h"
#include "host/filestore.h"
#include "host/forker.h"
#include "host/launcher.h"
#include "host/startup.h"
#include "host/tasks.h"
#include "host/usage.h"
#include "http/server.h"
#include "mcp/catalog.h"
#include "mcp/mcp.h"
#include "mcp/seal.h"
#include "policy/config.h"
#include "supervisor/arguments.h"
#include "supervisor/configuration.h"
#include "supervisor/fences.h"
#include "supervisor/handover.h"
#include "supervisor/listener.h"
#include "supervisor/operate/admin.h"
#include "supervisor/operate/governance.h"
#include "supervisor/operate/operation.h"
#include "supervisor/profiles.h"
#include "supervisor/endpoints.h"
#include "supervisor/stream.h"
#include "supervisor/unit.h"
#include "tools/shared/links.h"
#include "tools/toolsets.h"

#define FLUSH_S 2		/* for clients to read their last answers */
#define HEAP_RETAINED (16 << 20)	/* bytes at its end that are free */
#define SLOW_EVERY_MS 10000	/* between lines of the log, at least */
#define STOP_S 10		/* for the whole end */
#define FILES_PLACE_S 20	/* a script has not ended as long as one of its files waits to be
				 * kept */

struct supervisor {
	struct config *config;
	struct configuration_source source;	/* with an absolute path */
	struct admin *admin;		/* NULL: there is no operators' socket */
	struct governance *governance;
	struct socketfile *admin_file;	/* NULL: none */
	int admin_fd[ADMIN_SOCKETS];	/* the operators' sockets; -1: none, or given away */
	bool as_service, stdio, verbose;
	uid_t own_uid;			/* the user who started the service: the tenant of
					 * --stdio and TCP */
	struct endpoints *endpoints;
	struct launcher *launcher;
	struct directory *directory;
	struct filestore *filestore;	/* NULL: no file is kept on disk */
	struct cgroup_root *cgroups;
	struct loop *loop;
	struct rota *rota;		/* of what clients say at length */
	struct engine *engine;
	struct catalog catalog;
	struct mcp_seal *seal;		/* NULL: the key belongs to this process alone */
	struct mcp *mcp;
	struct stream_set *streams;
	struct auth *auth;		/* NULL: HTTP is not served */
	struct http_server *http;
	struct listener *listener[ENDPOINTS_MAX];
	size_t n_listeners;
	struct notify *notify;
	struct metrics *metrics;
	struct operation *operation;
	struct event *deadline;
	bool stopping, engine_done;
	bool keeps_sessions;		/* when it stops */
	enum exit_code exit_code;
};

/* ---- start ---- */

/* Opens descriptors 0 to 2 if they are closed; otherwise a socket would get such a number. */
static void
fill_standard_descriptors(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd < 0) {
		perror("mcp-pythond: /dev/null");
		exit(EXIT_FAILED);
	}
	close(fd);
}

/* Opens the key that seals clients' states: from the configured file, or from the unit's state
 * directory; else a key for this process alone. */
static int
open_seal(struct supervisor *s, struct why *why_r)
{
	const char *configured = s->config->mcp.state_key_file;
	const char *directory = startup_is_unit() ? getenv("STATE_DIRECTORY") : NULL;
	own_mem char *path = NULL;

	if (configured)
		return mcp_seal_new(configured, &s->seal, why_r);
	if (!directory || strchr(directory, ':'))
		return 0;
	path = xasprintf("%s/state-key", directory);
	return mcp_seal_new(path, &s->seal, why_r);
}

/* If the store cannot be used, the service still serves; answers say that nothing was kept. */
static void
main_open_files(struct supervisor *s)
{
	const struct config *config = s->config;
	const struct filestore_bounds bounds = {
		.file_bytes = config->files.file_bytes,
		.tenant_bytes = config->files.tenant_bytes,
		.bytes_max = config->files.bytes_max,
		.tenant_files = config->files.tenant_files,
		.keep_seconds = config->files.keep_seconds,
		.place_seconds = FILES_PLACE_S,
		.passing = config->files.passing,
		.roots = config->files.roots,
	};
	struct log_quoted quoted;
	int r;

	if (!config->files.directory || bounds.file_bytes == 0)
		return;
	r = filestore_new(config->files.directory, &bounds, &s->filestore);
	if (r < 0)
		log_line(LOG_WARNING, "files-none", "directory=%s err=%s",
			 log_quote(&quoted, config->files.directory,
				   strlen(config->files.directory)),
			 strerrorname_np(-r));
}

/* In the launcher. The supervisor reads the same files, and logs their mistakes. */
static const struct config *
read_again(void *arg)
{
	FILE *nowhere = fopen("/dev/null", "we");
	const struct config *config = nowhere ? configuration_read(arg, nowhere) : NULL;

	if (nowhere)
		fclose(nowhere);
	return config;
}

/* A token was revoked: somebody else may have known it, and have asked for links by it. */
static void
end_links(void *, const char *principal)
{
	links_end(principal);
}

/* Does everything that may need root; no privilege is left when it returns 0. */
static int
main_prepare(struct supervisor *s, const struct arguments *arguments, struct why *why_r)
{
	struct endpoints_asked asked = arguments->endpoints;
	struct startup_programs programs;
	int r;

	/* First: once a client finds the clients' socket, operators can find theirs. */
	r = governance_listen(s->config, &s->admin_file, s->admin_fd, why_r);
	if (r < 0)
		return r;
	asked.none = s->stdio;
	asked.by_hand = !s->as_service;
	r = endpoints_open(&asked, s->config, startup_service_uid(s->config), &s->endpoints, why_r);
	endpoints_add_file(s->endpoints, give_ptr(s->admin_file));
	endpoints_add_file(s->endpoints, socketfile_of(s->admin_fd[0]));
	if (r < 0)
		return r;
	r = open_seal(s, why_r);
	if (r < 0)
		return r;
	/* Started by hand, root's paths will do; the service's own user has the paths of a
	 * service. */
	if (!s->as_service)
		r = governance_new(s->config, false, &s->governance, why_r);
	if (r < 0)
		return r;
	r = startup_open_programs(s->config, s->as_service, &programs, why_r);
	programs.read = read_again;
	programs.read_arg = &s->source;
	programs.answers_without = s->stdio;
	directory_plan(NULL);
	usage_plan();
	if (s->config->files.directory)
		filestore_plan(s->config->files.directory, s->config->files.roots);
	if (r == 0)
		r = startup_privilege(s->config, s->as_service, &programs, &s->launcher,
				      &s->cgroups, why_r);
	startup_close_programs(&programs);
	/* Its first call waits for it, and all that follows takes as long as half of its start. */
	if (r == 0 && s->stdio && !s->config->profile[0].zygote_per_tenant)
		launcher_ahead(s->launcher);
	if (r == 0) {
		r = directory_new(NULL, &s->directory);
		if (r < 0)
			why_say(why_r, r, "", "directory: cannot start the helper: %s",
				strerror(-r));
	}
	if (r == 0) {
		main_open_files(s);
		toolsets_load(s->config);
	}
	if (r == 0) {
		r = usage_start();
		if (r < 0)
			why_say(why_r, r, "", "usage: cannot start the helper: %s", strerror(-r));
	}
	if (r == 0 && s->as_service)
		r = governance_new(s->config, true, &s->governance, why_r);
	if (r < 0 || !endpoints_have_http(s->endpoints))
		return r;
	handle_name_host(true);
	r = auth_new(s->config, &s->auth, why_r);
	if (r == 0)
		auth_on_withdrawn(s->auth, end_links, NULL);
	return r;
}

/* ---- the end ---- */

static void
set_deadline(struct supervisor *s, unsigned int seconds)
{
	struct timeval wait = { .tv_sec = seconds };

	evtimer_add(s->deadline, &wait);
}

static void
main_on_deadline(evutil_socket_t, short, void *arg)
{
	struct supervisor *s = arg;

	log_line(LOG_WARNING, "stop-deadline", "sessions=%zu http=%zu engine=%s",
		 stream_set_count(s->streams), http_server_count(s->http),
		 s->engine_done ? "done" : "busy");
	loop_stop(s->loop);
}

static void
finish_if_done(struct supervisor *s)
{
	if (s->engine_done && stream_set_count(s->streams) == 0 &&
	    http_server_count(s->http) == 0)
		loop_stop(s->loop);
}

static void
on_engine_done(void *arg)
{
	struct supervisor *s = arg;

	s->engine_done = true;
	set_deadline(s, FLUSH_S);
	finish_if_done(s);
}

static void
supervisor_stop(struct supervisor *s)
{
	if (s->stopping) {
		loop_stop(s->loop);
		return;
	}
	s->stopping = true;
	notify_stopping(s->notify);
	while (s->n_listeners)
		listener_free(s->listener[--s->n_listeners]);
	stream_set_drain(s->streams);
	http_server_drain(s->http);
	set_deadline(s, STOP_S);
	if (s->keeps_sessions)
		engine_keep_sessions(s->engine);
	engine_shutdown(s->engine, on_engine_done, s);
}

static void
on_streams_empty(void *arg)
{
	struct supervisor *s = arg;

	if (s->stopping)
		finish_if_done(s);
	else if (s->stdio)
		supervisor_stop(s);
}

static void
on_http_empty(void *arg)
{
	struct supervisor *s = arg;

	if (s->stopping)
		finish_if_done(s);
}

static void
on_reloaded(void *arg)
{
	struct supervisor *s = arg;

	if (s->stopping)
		return;
	toolsets_renew(s->engine);
	if (governance_reloads(s->governance)->last_done)
		engine_renew_credentials(s->engine);
	mcp_tools_changed(s->mcp);
	governance_record_reload(s->governance);
	notify_ready(s->notify);
}

/* The description of a tool says how many tools other servers have, so tools/list has changed. */
static void
on_tools_listed(void *arg)
{
	struct supervisor *s = arg;

	if (!s->stopping && s->mcp)
		mcp_tools_changed(s->mcp);
}

static void
on_configuration_read(void *arg, const struct config *config, FILE *later)
{
	struct supervisor *s = arg;

	if (s->stopping)
		return;
	ready_forget(s->engine, NULL, NULL);
	profiles_take(s->config, config, s->launcher, s->engine, later);
}

/* systemd waits for READY after RELOADING (Type=notify-reload knows the signal). */
static void
supervisor_reload(struct supervisor *s)
{
	notify_reloading(s->notify);
	governance_reload(s->governance, &s->source, &(struct governance_watcher){
		.on_read = on_configuration_read, .on_done = on_reloaded, .arg = s,
	});
}

static void
main_on_signal(int number, void *arg)
{
	if (number == SIGHUP) {
		supervisor_reload(arg);
		return;
	}
	log_line(LOG_NOTICE, "stopping", "signal=SIG%s", sigabbrev_np(number));
	supervisor_stop(arg);
}

static void
main_fail(struct supervisor *s, const char *event, int error, const char *text)
{
	struct log_quoted quoted;

	log_line(LOG_ERR, event, "err=%s text=%s", strerrorname_np(-error),
		 log_quote(&quoted, text, strlen(text)));
	s->exit_code = EXIT_FAILED;
	if (s->loop)
		loop_stop(s->loop);
}

/* Stops the service because a helper is lost that cannot be made again. Running calls are answered,
 * and sessions are handed over, as at every end that is ordered: this process and the sessions are
 * sound. systemd starts another service. */
static void
on_forkers_lost(void *arg)
{
	struct supervisor *s = arg;

	log_line(LOG_ERR, "forkers-lost", "text=\"the service ends: a helper is lost, and no "
		 "process is left that could make it again\"");
	s->exit_code = s->keeps_sessions ? EXIT_AGAIN : EXIT_FAILED;
	if (!s->stopping)
		supervisor_stop(s);
}

/* The launcher before this one may have made processes of which nobody knows. */
static void
on_launcher_back(void *arg)
{
	struct supervisor *s = arg;

	if (!s->stopping)
		engine_adopt_strays(s->engine);
}

/* ---- serving ---- */

static void
main_describe(void *arg, char *text, size_t size)
{
	struct supervisor *s = arg;
	struct engine_counts counts;

	engine_count(s->engine, &counts);
	snprintf(text, size,
		 "%zu sessions and %zu over HTTP of %u tenants; %u running, %u queued, "
		 "%u warm; %llu executions so far",
		 stream_set_count(s->streams), http_server_sessions(s->http),
		 counts.tenants, counts.running,
		 counts.queued, counts.warm, (unsigned long long)counts.executions);
}

static char *
write_metrics(void *arg, bool plain, size_t *len_r)
{
	struct supervisor *s = arg;

	return operation_metrics(s->operation, s->config->metrics.tenants, plain, len_r);
}

static int
accept_clients(struct supervisor *s)
{
	int r = 0;

	if (s->stdio)
		return stream_open(s->streams, STDIN_FILENO, STDOUT_FILENO, true,
				    s->own_uid);
	for (size_t i = 0; r == 0 && i < s->endpoints->n; i++) {
		struct endpoint *endpoint = &s->endpoints->endpoint[i];

		if (endpoint->metrics || endpoint->http)
			r = http_server_listen(s->http, endpoint->fd, endpoint->metrics);
		else
			r = listener_new(s->loop, endpoint->fd, s->streams,
					 governance_gate(s->governance),
					 &s->listener[s->n_listeners++]);
		if (r == 0)
			give_fd(endpoint->fd);
	}
	return r;
}

/* A start by hand prints one sentence about this; with --verbose the details. */
static void
say_enforcement(const struct supervisor *s)
{
	struct engine_enforcement how;
	struct log_quoted quoted;
	bool counts;

	engine_enforcement(s->engine, &how);
	counts = how.memory_controller && how.pids_controller;
	if (!startup_is_unit() && !s->verbose) {
		if (!counts || !how.own_uids)
			log_say(LOG_WARNING, "mcp-pythond: scripts are jailed, but %s%s%s here; "
				"--verbose says why, and mcp-python check-host what to change",
				counts ? "" : "their memory and processes are measured from time to "
				"time instead of being limited by the kernel",
				counts || how.own_uids ? "" : ", and ",
				how.own_uids ? "" : "all run with your own user id");
		return;
	}
	log_line(counts ? LOG_INFO : LOG_WARNING, "enforcement", "text=%s",
		 log_quote(&quoted, how.text, strlen(how.text)));
}

static void
main_on_ready(void *arg, int error, const char *text)
{
	struct supervisor *s = arg;
	int r;

	if (error < 0 && s->stdio) {
		s->exit_code = EXIT_FAILED;	/* calls are answered with the reason */
		return;
	}
	if (error < 0) {
		main_fail(s, "zygote-failed", error, text);
		return;
	}
	if (s->stopping)
		return;
	s->exit_code = EXIT_FINE;
	if (toolsets_renew(s->engine))
		mcp_tools_changed(s->mcp);
	if (engine_upstream(s->engine))
		upstream_watch(engine_upstream(s->engine), on_tools_listed, s);
	r = s->stdio ? 0 : accept_clients(s);
	if (r < 0) {
		main_fail(s, "cannot-serve", r, strerror(-r));
		return;
	}
	log_line(LOG_NOTICE, "ready", "version=" PACKAGE_VERSION " service=%s",
		 s->as_service ? "yes" : "no");
	notify_ready(s->notify);
}

/* epoll(7) refuses regular files and /dev/null. */
static bool
is_file(const struct stat *status)
{
	return S_ISREG(status->st_mode) || S_ISCHR(status->st_mode);
}

/* Does it serve files, as in `mcp-pythond --stdio <requests >answers`? */
static bool
uses_files(const struct supervisor *s)
{
	struct stat in, out;

	return s->stdio && fstat(STDIN_FILENO, &in) == 0 &&
	       fstat(STDOUT_FILENO, &out) == 0 &&
	       (is_file(&in) || is_file(&out));
}

/* Logs a long turn of the loop. The loop had much work; or the guard has ended a wait for which no
 * peer can be blamed. It can occur when libevent closes a socket. On older kernels, each close of a
 * unix socket may also close descriptors in sockets that no process holds any more. */
static void
on_slow_turn(unsigned int milliseconds)
{
	static uint64_t said_ms;
	static unsigned int unsaid;

	if (milliseconds < STALL_MS / 2)
		return;
	if (said_ms != 0 && clock_ms() - said_ms < SLOW_EVERY_MS) {
		unsaid++;
		return;
	}
	log_line(LOG_INFO, "slow-turn", "ms=%u others=%u", milliseconds, unsaid);
	said_ms = clock_ms();
	unsaid = 0;
}

static int
supervisor_build(struct supervisor *s)
{
	struct whole_file *learned = governance_learned(s->governance);
	struct engine_options engine = { .config = s->config,
					 .early = s->stdio,
					 .launcher = s->launcher,
					 .filestore = s->filestore,
					 .on_learned = learned ? whole_file_write : NULL,
					 .learned_arg = learned,
					 .cgroups = s->cgroups };
	struct mcp_options mcp = { .config = s->config, .catalog = &s->catalog,
				   .seal = s->seal };
	struct stream_options streams = { .config = s->config };
	struct http_server_options http = { .config = s->config, .own_uid = s->own_uid,
					     .auth = s->auth, .write_metrics = write_metrics,
					     .write_metrics_arg = s };
	static const int signals[] = { SIGTERM, SIGINT, SIGHUP };
	int r = 0;

	s->loop = loop_new(uses_files(s));
	if (!s->loop)
		return -EIO;
	r = turns_guard(loop_base(s->loop), on_slow_turn);
	if (r < 0)
		return r;
	engine.base = mcp.base = loop_base(s->loop);
	streams.loop = http.loop = s->loop;
	engine.rota = streams.rota = http.rota = s->rota = rota_new(engine.base);
	s->deadline = xalloc_check(evtimer_new(engine.base, main_on_deadline, s));
	for (size_t i = 0; r == 0 && i < sizeof(signals) / sizeof(*signals); i++)
		r = loop_signal(s->loop, signals[i], main_on_signal, s);
	if (r < 0)
		return r;
	endpoints_watch(s->endpoints, engine.base);
	forkers_watch(engine.base, on_forkers_lost, s);
	directory_watch(s->directory, engine.base);
	usage_watch(engine.base);
	if (s->filestore)
		filestore_watch(s->filestore, engine.base);
	governance_start(s->governance, engine.base, s->directory);
	s->metrics = metrics_new();
	mcp.gate = streams.gate = http.gate = governance_gate(s->governance);
	engine.observer = metrics_observer(s->metrics, gate_observer(mcp.gate));
	engine.learned = whole_file_read(learned);
	r = engine_new(&engine, &s->engine);
	if (r < 0)
		return r;
	mcp.ledger = governance_ledger(s->governance);
	mcp.engine = streams.engine = http.engine = s->engine;
	catalog_fill(&s->catalog, s->config);
	s->mcp = mcp_new(&mcp);
	streams.mcp = http.mcp = s->mcp;
	s->streams = stream_set_new(&streams);
	stream_set_on_empty(s->streams, on_streams_empty, s);
	s->http = http_server_new(&http);
	http_server_on_empty(s->http, on_http_empty, s);
	s->operation = operation_new(&(struct operation_sources){
		.config = s->config, .engine = s->engine, .streams = s->streams,
		.http = s->http, .governance = s->governance, .metrics = s->metrics,
	});
	s->admin = admin_new(&(struct admin_options){
		.base = engine.base, .gate = mcp.gate, .operation = s->operation,
		.engine = s->engine,
		.fd = { give_fd(s->admin_fd[0]), give_fd(s->admin_fd[1]) },
	});
	handover_take(&(struct handover_takers){
		.endpoints = s->endpoints, .engine = s->engine, .base = engine.base,
		.config = s->config, .audit = gate_audit(mcp.gate),
	});
	s->keeps_sessions = handover_is_possible(s->as_service, s->cgroups != NULL);
	s->notify = notify_new(s->loop, main_describe, s);
	launcher_watch(s->launcher, engine.base, on_launcher_back, s);
	engine_when_ready(s->engine, main_on_ready, s);
	return 0;
}

/* Blocks the signals that would end the process, because it is ending already. The loop handles no
 * signal any more, so another one would kill the process before everything is removed. */
static void
stay_deaf(void)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGHUP);
	sigprocmask(SIG_BLOCK, &signals, NULL);
}

static void
tear_down(struct supervisor *s)
{
	stay_deaf();
	while (s->n_listeners)
		listener_free(s->listener[--s->n_listeners]);
	stream_set_free(s->streams);
	http_server_free(s->http);
	auth_free(s->auth);
	mcp_free(s->mcp);
	toolsets_stop();
	if (s->keeps_sessions && s->stopping)
		handover_give(s->engine, gate_audit(governance_gate(s->governance)));
	toolsets_forget();
	mcp_seal_free(s->seal);
	notify_free(s->notify);
	admin_free(s->admin);	/* its calls of tools are the engine's */
	engine_free(s->engine);
	rota_free(s->rota);
	filestore_free(s->filestore);
	governance_free(s->governance);
	directory_free(s->directory);
	usage_stop();
	operation_free(s->operation);
	metrics_free(s->metrics);
	socketfile_close(s->admin_file);
	for (size_t i = 0; i < ADMIN_SOCKETS; i++)
		if (s->admin_fd[i] >= 0)
			close(s->admin_fd[i]);
	if (s->deadline)
		event_free(s->deadline);
	cgroup_root_free(s->cgroups);
	launcher_free(s->launcher);
	forkers_stop();
	endpoints_free(s->endpoints);
	loop_free(s->loop);	/* after all that has an event in it */
	config_free(s->config);
}

static void
main_run(struct supervisor *s)
{
	int in = fcntl(STDIN_FILENO, F_GETFL), out = fcntl(STDOUT_FILENO, F_GETFL);
	int r = 0;

	say_enforcement(s);

	/* The flag belongs to the open file, which the parent process may use after this process
	 * has ended. */
	if (s->stdio) {
		fcntl(STDIN_FILENO, F_SETFL, in | O_NONBLOCK);
		fcntl(STDOUT_FILENO, F_SETFL, out | O_NONBLOCK);
		/* Only the first call waits for a worker. Other clients wait for it from the start
		 * on, because systemd counts a service as started that can serve. */
		r = accept_clients(s);
	}
	if (r == 0)
		r = loop_run(s->loop);
	if (s->stdio) {
		fcntl(STDIN_FILENO, F_SETFL, in);
		fcntl(STDOUT_FILENO, F_SETFL, out);
	}
	if (r < 0)
		s->exit_code = EXIT_FAILED;
}

/* Says when one tenant's scripts may ask for more processes than a tenant can have here. */
static void
compare_tasks(const struct config *config)
{
	uint64_t asked = (uint64_t)config->pool.tenant_running_max * config->limits.cap.pids;
	uint32_t most = tasks_bounds(tasks_machine(), UINT64_MAX).tenant;

	if (asked > most)
		fprintf(stderr, "mcp-pythond: note: [pool] tenant_running_max times [limits] pids_max "
			"is %" PRIu64 ", but one tenant can have %" PRIu32 " processes and threads "
			"on this machine: its scripts may get fewer than their limits say\n",
			asked, most);
}

/* Prints what the arguments ask for. */
static enum exit_code
main_show(const struct arguments *arguments, const struct config *config)
{
	int r;

	if (arguments->action == DUMP_CONFIG)
		config_dump(config, stdout);
	if (arguments->action == CHECK_CONFIG)
		compare_tasks(config);
	r = arguments->action == SHOW_POLICY
		? configuration_show(config, arguments->who, stdout) : 0;
	if (r == -ENOENT)
		fprintf(stderr, "mcp-pythond: there is no user %s\n", arguments->who);
	else if (r < 0)
		fprintf(stderr, "mcp-pythond: %s: the host's directory of users: %s\n",
			arguments->who, strerror(-r));
	return r < 0 ? EXIT_FAILED : EXIT_FINE;
}

int
main(int argc, char **argv)
{
	struct supervisor s = { .admin_fd = { -1, -1 }, .own_uid = getuid() };
	struct why why = { .field = "" };
	struct arguments arguments;
	char path[PATH_MAX];
	int r;

	fill_standard_descriptors();
	/* The memory of a long answer is used again by the next, and not returned between them. */
	mallopt(M_TRIM_THRESHOLD, HEAP_RETAINED);
	mallopt(M_MMAP_THRESHOLD, HEAP_RETAINED / 2);
	event_set_mem_functions(xmalloc, xrealloc, free);
	json_set_alloc_funcs(xmalloc, free);
	xalloc_for_openssl();
	arguments_read(argc, argv, &arguments);
	log_init(arguments.private ? LOG_ERR
		 : arguments.verbose || startup_is_unit() ? LOG_DEBUG : LOG_INFO);
	trace_begin(arguments.trace);
	signal(SIGPIPE, SIG_IGN);
	if (arguments.action == SWEEP)
		return unit_sweep();
	s.source = (struct configuration_source){
		.path = arguments.config,
		.whom = arguments.private ? FOR_PRIVATE : startup_is_unit() ? FOR_UNIT : FOR_HAND,
		.with_own = !arguments.config && !unit_is_system_service(),
		.one_client = arguments.stdio,
		.toolsets = arguments.toolsets,
		.packages = arguments.packages,
		.folder = arguments.folder,
		.roots = arguments.roots,
	};
	s.config = configuration_read(&s.source, stderr);
	if (!s.config)
		return EXIT_CONFIGURATION;
	if (arguments.action != SERVE) {
		r = main_show(&arguments, s.config);
		config_free(s.config);
		return r;
	}
	if (arguments.config)
		s.source.path = realpath(arguments.config, path);
	s.as_service = unit_is_system_service();
	if (s.as_service)
		s.own_uid = startup_service_uid(s.config);	/* the service manager started it */
	s.stdio = arguments.stdio;
	s.verbose = arguments.verbose;
	r = main_prepare(&s, &arguments, &why);
	if (r < 0) {
		fprintf(stderr, "mcp-pythond: %s\n", why.text);
		s.exit_code = EXIT_FAILED;
	} else {
		r = supervisor_build(&s);
		if (r == 0)
			r = fences_enter(&(struct fences_of){
				.config = s.config, .source = &s.source,
				.endpoints = s.endpoints, .cgroups = s.cgroups,
				.start_threads = governance_start_threads, .arg = s.governance,
			});
		if (r < 0)
			main_fail(&s, "start-failed", r, strerror(-r));
		else
			main_run(&s);
	}
	tear_down(&s);
	return s.exit_code;
}
