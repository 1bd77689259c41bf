/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: tests.   Owns: the engine under test and the process around it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine_rig.h"

#include <dirent.h>
#include <errno.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/id.h"
#include "base/log.h"
#include "base/turns.h"
#include "base/why.h"
#include "engine/engine.h"
#include "host/forker.h"
#include "host/launcher.h"
#include "host/startup.h"
#include "policy/config.h"

#define NOBODY 65534

struct rig rig;

uint64_t
rig_now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void
on_deadline(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	*(bool *)arg = true;
}

void
rig_turn_until(const bool *over)
{
	struct timeval patience = { RIG_PATIENCE_MS / 1000, 0 };
	bool late = false;
	struct event *deadline = evtimer_new(rig.base, on_deadline, &late);

	evtimer_add(deadline, &patience);
	while (!*over && !late)
		event_base_loop(rig.base, EVLOOP_ONCE);
	event_free(deadline);
	assert_false(late);
}

void
rig_turn_until_seen(const struct rig_result *r)
{
	uint64_t end = rig_now_us() + RIG_PATIENCE_MS * 1000;

	while (r->seen == 0) {
		event_base_loop(rig.base, EVLOOP_ONCE);
		assert_false(r->over && r->seen == 0);
		assert_in_range(rig_now_us(), 0, end);
	}
}

static void
on_output(void *arg, enum stream stream, const char *bytes, size_t len)
{
	struct rig_result *r = arg;

	(void)stream;
	(void)bytes;
	r->seen += len;
}

static void
on_outcome(void *arg, const struct outcome *o)
{
	struct rig_result *r = arg;

	r->over = true;
	r->outcomes++;
	r->status = o->status;
	r->exit_code = o->exit_code;
	r->signal = o->signal;
	r->cpu_ms = o->cpu_ms;
	r->duration_ms = o->duration_ms;
	r->peak = o->peak_memory_bytes;
	r->retry_ms = o->retry_after_ms;
	r->out_written = o->stream[STREAM_STDOUT].written;
	r->out_dropped = o->stream[STREAM_STDOUT].dropped;
	r->out_len = o->stream[STREAM_STDOUT].len;
	snprintf(r->out, sizeof(r->out), "%s", o->stream[STREAM_STDOUT].text);
	snprintf(r->err, sizeof(r->err), "%s", o->stream[STREAM_STDERR].text);
	snprintf(r->value, sizeof(r->value), "%s", o->value_repr ? o->value_repr : "-");
	snprintf(r->error_type, sizeof(r->error_type), "%s",
		 o->error_type ? o->error_type : "-");
	snprintf(r->message, sizeof(r->message), "%s", o->message);
	r->became = o->state;
	for (size_t i = 0; i < o->n_notes; i++)
		snprintf(r->notes + strlen(r->notes), sizeof(r->notes) - strlen(r->notes),
			 "%s\n", o->note[i]);
	for (size_t i = 0; i < o->n_files; i++)
		snprintf(r->files + strlen(r->files), sizeof(r->files) - strlen(r->files),
			 "%.*s\n", (int)o->file[i].path_len, o->file[i].path);
	assert_int_equal(strlen(o->id), 2 + ID_SHORT);
}

struct execution *
rig_start(struct rig_result *r, const char *script, const struct execution_request *more)
{
	struct execution_request request = *more;
	struct execution_watcher watcher = { .on_output = on_output, .on_outcome = on_outcome,
					     .arg = r };
	struct execution *execution = NULL;
	struct why why;

	memset(r, 0, sizeof(*r));
	request.script = script;
	request.script_len = strlen(script);
	assert_int_equal(execution_start(rig.engine, rig.tenant, &request, &watcher,
					 &execution, &why),
			 0);
	assert_non_null(execution);
	assert_false(r->over);
	return execution;
}

struct execution_request
rig_request(void)
{
	return (struct execution_request){ .limits = rig.config->limits.standard };
}

void
rig_run(struct rig_result *r, const char *script)
{
	struct execution_request request = rig_request();

	rig_start(r, script, &request);
	rig_turn_until(&r->over);
}

void
rig_assert_status(const struct rig_result *r, enum outcome_status status)
{
	if (r->status != status)
		print_error("status %s: %s\nstdout %s\nstderr %s\n",
			    outcome_status_name(r->status), r->message, r->out, r->err);
	assert_string_equal(outcome_status_name(r->status),
			    outcome_status_name(status));
	assert_int_equal(r->outcomes, 1);
}

unsigned int
rig_count_fds(void)
{
	DIR *list = opendir("/proc/self/fd");
	unsigned int n = 0;

	assert_non_null(list);
	while (readdir(list) != NULL)
		n++;
	closedir(list);
	return n;
}

/* ---- around them ---- */

static void
on_ready(void *arg, int error, const char *text)
{
	if (error != 0)
		print_error("zygote: %s\n", text);
	*(bool *)arg = error == 0;
}

bool
rig_open_programs(void)
{
	struct config *config = config_new();
	struct why why = { .text = "" };
	int r;

	if (getenv("MCP_PYTHON_WORKER") == NULL)
		setenv("MCP_PYTHON_WORKER", "./mcp-python-worker", 1);
	r = startup_open_programs(config, false, &rig.programs, &why);
	config_free(config);
	if (r < 0)
		fprintf(stderr, "%s\n", why.text);
	return r == 0;
}

int
rig_set_up(void **state)
{
	struct engine_options options;
	struct engine_enforcement how;
	struct why why = { .text = "" };
	bool ready = false;

	(void)state;
	rig.fds_before = rig_count_fds();
	rig.config = config_new();
	rig.base = event_base_new();
	if (startup_privilege(rig.config, false, &rig.programs, &rig.launcher,
			      &rig.cgroups, &why) < 0) {
		print_error("%s\n", why.text);
		return -1;
	}
	if (turns_guard(rig.base, NULL) < 0)
		return -1;
	launcher_watch(rig.launcher, rig.base, NULL, NULL);
	options = (struct engine_options){
		.base = rig.base, .config = rig.config, .launcher = rig.launcher,
		.cgroups = rig.cgroups, .observer = rig.observer,
	};
	if (engine_new(&options, &rig.engine) < 0)
		return -1;
	engine_when_ready(rig.engine, on_ready, &ready);
	rig_turn_until(&ready);
	engine_enforcement(rig.engine, &how);
	print_message("uid %u: %s\n", getuid(), how.text);
	rig.tenant = engine_tenant(rig.engine, 1000);
	return 0;
}

int
rig_tear_down(void **state)
{
	(void)state;
	tenant_release(rig.tenant);
	engine_free(rig.engine);
	cgroup_root_free(rig.cgroups);
	launcher_free(rig.launcher);
	forkers_stop();
	event_base_free(rig.base);
	config_free(rig.config);
	if (rig_count_fds() == rig.fds_before)
		return 0;
	print_error("%u descriptors before, %u after\n", rig.fds_before, rig_count_fds());
	return -1;
}

/* Runs until it is killed, with workers warm and busy; writes a byte when they are. */
static int
run_until_killed(int tell)
{
	struct execution_request request;
	static struct rig_result r[4];
	bool never = false;
	void *state = NULL;

	if (rig_set_up(&state) < 0)
		return 1;
	request = rig_request();
	for (int i = 0; i < 4; i++)
		rig_start(
			&r[i],
			"import time, os\nprint(os.fork(), flush=True)\ntime.sleep(600)",
			&request);
	while (r[0].seen == 0 || r[1].seen == 0 || r[2].seen == 0 || r[3].seen == 0)
		event_base_loop(rig.base, EVLOOP_ONCE);
	if (write(tell, "x", 1) != 1)
		return 1;
	rig_turn_until(&never);
	return 1;
}

static void
become_nobody(void)
{
	if (geteuid() == 0 &&
	    (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
	     setresuid(NOBODY, NOBODY, NOBODY) < 0))
		exit(1);
}

/* Waits for all descendants, because this process is their reaper. How many had to be waited for
 * besides child; -1 when something does not end. */
static int
reap_all(pid_t child, int *status_r)
{
	uint64_t end = rig_now_us() + RIG_PATIENCE_MS * 1000;
	int others = 0;
	pid_t pid;

	for (;;) {
		int status;

		pid = waitpid(-1, &status, WNOHANG);
		if (pid < 0)
			return others;
		if (pid == child)
			*status_r = status;
		else if (pid > 0)
			others++;
		else if (rig_now_us() > end)
			return -1;
		else
			poll(NULL, 0, 2);
	}
}

int
rig_in_child(int (*body)(void), bool as_nobody)
{
	int status = -1;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		if (as_nobody)
			become_nobody();
		exit(body());
	}
	if (waitpid(pid, &status, 0) != pid || status != 0)
		return 1;
	if (reap_all(-1, &status) != 0) {
		fprintf(stderr, "processes were left behind\n");
		return 1;
	}
	return 0;
}

/* Kills a supervisor with busy workers, and checks that all workers end. 0 or 1. */
static int
rig_killed_child(bool as_nobody)
{
	int tell[2], status = 0, others;
	pid_t pid;
	char c;

	if (pipe(tell) < 0)
		return 1;
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		close(tell[0]);
		if (as_nobody)
			become_nobody();
		exit(run_until_killed(tell[1]));
	}
	close(tell[1]);
	if (read(tell[0], &c, 1) != 1) {
		fprintf(stderr, "the supervisor to be killed did not come up\n");
		return 1;
	}
	close(tell[0]);
	kill(pid, SIGKILL);
	others = reap_all(pid, &status);
	fprintf(stderr, "supervisor killed: %d processes of it followed\n", others);
	return others > 0 && WIFSIGNALED(status) ? 0 : 1;
}

int
rig_main(int (*group)(void), int log_level, bool is_killed)
{
	int failed = 0;

	if (!rig_open_programs())
		return 77;
	log_init(log_level);
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	for (int as_nobody = geteuid() != 0; as_nobody < 2; as_nobody++) {
		failed += rig_in_child(group, as_nobody);
		if (is_killed)
			failed += rig_killed_child(as_nobody);
	}
	return failed ? 1 : 0;
}
