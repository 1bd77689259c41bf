/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: test programs. Blocking and simple where the supervisor is neither. */
#include "tests/unit/worker/host.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/own.h"

#define SUBUID_BASE 1879048192u
#define START_MS 60000
#define HOST_PACKAGES "/usr/local/lib/python" PYTHON_VERSION "/dist-packages"

static double
now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int
write_proc(pid_t pid, const char *file, const char *text)
{
	char path[64];
	own_fd int fd = -1;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		return -errno;
	return 0;
}

/* In the child: the outer namespace, then the program with its socket on 3. */
static _Noreturn void
become_zygote(int program, int socket, int unshared, int mapped, bool own_uids,
	      const char *packages)
{
	char *const argv[] = { (char[]){ "mcp-python-worker" }, (char[]){ "--zygote" },
			       NULL };
	char *const leak[] = { (char[]){ "HOST_SECRET=must-not-be-seen" }, NULL };
	char c = 0;

	if (own_uids && (setgroups(0, NULL) < 0 ||
			 setresgid(SUBUID_BASE, SUBUID_BASE, SUBUID_BASE) < 0 ||
			 setresuid(SUBUID_BASE, SUBUID_BASE, SUBUID_BASE) < 0 ||
			 prctl(PR_SET_DUMPABLE, 1) < 0))
		_exit(120);
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0 || write(unshared, &c, 1) != 1 ||
	    read(mapped, &c, 1) != 1)
		_exit(121);
	if (setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
		_exit(122);
	if (packages && (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
			 mount(packages, HOST_PACKAGES, NULL, MS_BIND, NULL) < 0))
		_exit(125);
	if (dup2(socket, 3) < 0)
		_exit(123);
	fcntl(3, F_SETFD, 0);
	syscall(SYS_execveat, program, "", argv, leak, AT_EMPTY_PATH);
	_exit(124);
}

static int
map_ids(pid_t pid, bool own_uids)
{
	char map[128];
	int r;

	if (own_uids) {
		snprintf(map, sizeof(map), "0 %u 65536\n", SUBUID_BASE);
		r = write_proc(pid, "gid_map", map);
		return r < 0 ? r : write_proc(pid, "uid_map", map);
	}
	r = write_proc(pid, "setgroups", "deny");
	snprintf(map, sizeof(map), "0 %u 1\n", (unsigned int)getegid());
	if (r == 0)
		r = write_proc(pid, "gid_map", map);
	snprintf(map, sizeof(map), "0 %u 1\n", (unsigned int)geteuid());
	return r < 0 ? r : write_proc(pid, "uid_map", map);
}

static int
start_process(struct host *host, const char *program, const char *packages)
{
	/* Far above 3, which the child needs. */
	own_fd int exe = open(program, O_PATH | O_CLOEXEC);
	int pair[2], unshared[2], mapped[2], r;
	char c = 0;

	if (exe < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0 ||
	    pipe2(unshared, O_CLOEXEC) < 0 || pipe2(mapped, O_CLOEXEC) < 0)
		return -errno;
	exe = fcntl(give_fd(exe), F_DUPFD_CLOEXEC, 100);
	host->zygote = fork();
	if (host->zygote < 0)
		return -errno;
	if (host->zygote == 0)
		become_zygote(exe, pair[1], fcntl(unshared[1], F_DUPFD_CLOEXEC, 100),
			      fcntl(mapped[0], F_DUPFD_CLOEXEC, 100), host->own_uids,
			      packages);
	host->control = pair[0];
	close(pair[1]);
	close(unshared[1]);
	close(mapped[0]);
	/* Without user namespaces the child ends before it reports. */
	r = read(unshared[0], &c, 1) == 1 ? map_ids(host->zygote, host->own_uids)
					  : -EPERM;
	if (r == 0 && write(mapped[1], &c, 1) != 1)
		r = -EPIPE;
	close(unshared[0]);
	close(mapped[1]);
	return r;
}

/* The next frame, or -ETIME. */
static int
receive(struct frame_reader *reader, int socket, unsigned int ms, struct frame *frame)
{
	double end = now_us() + ms * 1e3;
	int r;

	for (;;) {
		struct pollfd p = { .fd = socket, .events = POLLIN };
		int left = (int)((end - now_us()) / 1e3) + 1;

		if (left <= 0 || poll(&p, 1, left) == 0)
			return -ETIME;
		r = frame_reader_read(reader, socket, frame);
		if (r != 0)
			return r < 0 ? r : 0;
	}
}

int
host_receive(struct frame_reader *reader, int socket, struct frame *frame_r)
{
	return receive(reader, socket, START_MS, frame_r);
}

static size_t
fill(struct msg_str *item, size_t max, const char *const *texts)
{
	size_t n = 0;

	for (; texts && texts[n] && n < max; n++)
		item[n] = msg_str(texts[n]);
	return n;
}

static int
send_configure(struct host *host, const struct host_options *o)
{
	static const char *const some[] = { "/usr/share/zoneinfo", NULL };
	struct msg_str module[64], path[64];
	struct msg msg = { .type = MSG_CONFIGURE, .configure = {
		.profile = msg_str("test"),
		.modules = { module, fill(module, 64, o->modules) },
		.paths = { path, fill(path, 64, o->paths ? o->paths : some) },
		.memory_bytes = HOST_MEMORY,
		.disk_bytes = o->disk_bytes ? o->disk_bytes : 64 << 20,
		.disk_inodes = o->disk_inodes ? o->disk_inodes : 4096,
		.displays = 20,
		.display_bytes = 4 << 20,
		.picture_pixels = 1568,
		.left_files = 100,
		.left_file_bytes = 256 << 10,
		.left_bytes = 1 << 20,
		.memory_counted = o->memory_counted,
		.terminals = o->terminals,
		.processors = 4 } };

	return frame_send(host->control, &msg, NULL, 0);
}

static void
copy_text(char *to, size_t size, struct msg_str text)
{
	snprintf(to, size, "%.*s", (int)text.len, text.at ? text.at : "");
}

static int
await_ready(struct host *host)
{
	struct frame frame = { 0 };
	int r = receive(&host->reader, host->control, START_MS, &frame);

	if (r < 0)
		return r;
	if (frame.msg.type == MSG_ZYGOTE_FAILED) {
		copy_text(host->failed, sizeof(host->failed),
			  frame.msg.zygote_failed.what);
		host->error = frame.msg.zygote_failed.error;
		r = -ECANCELED;
	} else if (frame.msg.type != MSG_ZYGOTE_READY) {
		r = -EBADMSG;
	} else {
		const struct msg_zygote_ready *ready = &frame.msg.zygote_ready;

		copy_text(host->python, sizeof(host->python), ready->python);
		host->landlock_abi = ready->landlock_abi;
		host->n_missing = ready->missing.n;
		if (ready->missing.n > 0)
			copy_text(host->missing, sizeof(host->missing),
				  ready->missing.item[0]);
	}
	frame_done(&frame);
	return r;
}

int
host_start(const struct host_options *options, struct host *host_r)
{
	const char *program =
		options->program ? options->program : getenv("MCP_PYTHON_WORKER");
	struct frame frame = { 0 };
	int r;

	*host_r = (struct host){ .control = -1, .zygote = -1, .leaf = -1, .owner = 1 };
	host_r->own_uids = geteuid() == 0 && !options->single_id;
	frame_reader_init(&host_r->reader, FROM_ZYGOTE);
	r = start_process(host_r, program ? program : "./mcp-python-worker",
			  options->packages);
	if (r < 0)
		return r;
	r = receive(&host_r->reader, host_r->control, START_MS, &frame);
	if (r == 0 && frame.msg.type != MSG_HELLO)
		r = -EBADMSG;
	frame_done(&frame);
	if (r == 0)
		r = send_configure(host_r, options);
	return r < 0 ? r : await_ready(host_r);
}

void
host_stop(struct host *host)
{
	if (host->control >= 0)
		close(host->control);
	if (host->zygote > 0)
		waitpid(host->zygote, NULL, 0);
	frame_reader_done(&host->reader);
	host->control = -1;
	host->zygote = -1;
}

static int
await_spawned(struct host *host, struct host_worker *worker)
{
	struct frame frame = { 0 };
	int r = receive(&host->reader, host->control, START_MS, &frame);

	if (r == 0 && frame.msg.type == MSG_SPAWNED) {
		worker->pid = (pid_t)frame.msg.spawned.pid;
		worker->pidfd = frame_take_fd(&frame, 0);
	} else if (r == 0) {
		r = frame.msg.type == MSG_SPAWN_FAILED
			    ? -(int)frame.msg.spawn_failed.error
			    : -EBADMSG;
	}
	frame_done(&frame);
	return r;
}

int
host_spawn(struct host *host, struct host_worker *worker_r, struct frame *failed_r)
{
	struct host_worker w = { .serial = ++host->serial, .pidfd = -1 };
	int control[2], out[2], err[2], r;
	struct frame frame = { 0 };
	struct msg msg = { .type = MSG_SPAWN,
			   .spawn = { .worker = w.serial,
				      .uid = host->uid ? host->uid
					     : host->own_uids
						     ? (uint32_t)(1 + w.serial % 60000)
						     : 0,
				      .into_cgroup = host->leaf >= 0,
				      .owner = host->owner } };

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, control) < 0 ||
	    pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0)
		return -errno;
	r = frame_send(host->control, &msg,
		       (int[]){ control[1], out[1], err[1], host->leaf },
		       host->leaf >= 0 ? 4 : 3);
	close(control[1]);
	close(out[1]);
	close(err[1]);
	w.control = control[0];
	w.out = out[0];
	w.err = err[0];
	frame_reader_init(&w.reader, FROM_WORKER);
	if (r == 0)
		r = await_spawned(host, &w);
	if (r == 0)
		r = receive(&w.reader, w.control, START_MS, &frame);
	if (r == 0 && frame.msg.type == MSG_JAIL_FAILED) {
		r = -ECANCELED;
		if (failed_r) {
			*failed_r = frame;
			frame = (struct frame){ 0 };
		}
	} else if (r == 0 && (frame.msg.type != MSG_READY ||
			      frame.msg.ready.worker != w.serial)) {
		r = -EBADMSG;
	}
	frame_done(&frame);
	*worker_r = w;
	if (r < 0)
		host_kill(worker_r);
	return r;
}

void
host_kill(struct host_worker *worker)
{
	siginfo_t info;

	if (worker->pidfd >= 0) {
		syscall(SYS_pidfd_send_signal, worker->pidfd, SIGKILL, NULL, 0);
		waitid(P_PIDFD, (id_t)worker->pidfd, &info, WEXITED | __WALL);
		close(worker->pidfd);
	}
	close(worker->control);
	close(worker->out);
	close(worker->err);
	frame_reader_done(&worker->reader);
	worker->pidfd = -1;
}

/* ---- running ---- */

struct collected {
	char *at;
	size_t len, size;
	bool ended;
};

static void
collect(int fd, struct collected *c)
{
	ssize_t n;

	if (c->size - c->len < 65536) {
		c->size = c->size * 2 + 131072;
		c->at = realloc(c->at, c->size);
		if (!c->at)
			abort();
	}
	n = read(fd, c->at + c->len, c->size - c->len - 1);
	if (n > 0)
		c->len += (size_t)n;
	else
		c->ended = true;
	c->at[c->len] = '\0';
}

static int
send_run(struct host_worker *worker, const struct host_run *run)
{
	struct msg_str arg[64];
	own_fd int input = -1;
	struct msg msg = { .type = MSG_RUN,
			   .run = { .id = worker->serial,
				    .script = { run->script,
						run->script_len ? run->script_len
								: strlen(run->script) },
				    .args = { arg, fill(arg, 64, run->args) },
				    .has_stdin = run->input || run->input_fd,
				    .memory_bytes = HOST_MEMORY,
				    .data_bytes = run->data_bytes,
				    .processes = run->processes,
				    .cpu_seconds = run->cpu_seconds,
				    .value_max =
					    run->value_max ? run->value_max : 65536 } };

	if (run->input) {
		input = memfd_create("input", MFD_CLOEXEC);
		if (input < 0 || write(input, run->input, strlen(run->input)) < 0 ||
		    lseek(input, 0, SEEK_SET) < 0)
			return -errno;
	}
	if (run->file) {
		struct msg file = { .type = MSG_INPUT,
				    .input = { msg_str(run->file),
					       { run->file_text,
						 strlen(run->file_text) } } };
		int r = frame_send(worker->control, &file, NULL, 0);

		if (r < 0)
			return r;
	}
	return frame_send(worker->control, &msg,
			  run->input_fd ? &run->input_fd : &input,
			  msg.run.has_stdin ? 1 : 0);
}

/* What a script shows and leaves is told before its end. */
static bool
told_meanwhile(const struct frame *frame)
{
	return frame->msg.type == MSG_DISPLAY || frame->msg.type == MSG_LEFT ||
	       frame->msg.type == MSG_LEFT_RESTART || frame->msg.type == MSG_LEFT_MORE ||
	       frame->msg.type == MSG_WHERE;
}

static void
note(struct host_result *result)
{
	size_t n = strlen(result->told);
	char *at = result->told + n;
	size_t size = sizeof(result->told) - n;
	const struct msg *msg = &result->frame.msg;

	if (msg->type == MSG_DISPLAY)
		snprintf(at, size, "[%u %u %.*s]", msg->display.object,
			 msg->display.kind, (int)msg->display.data.len < 200
			 ? (int)msg->display.data.len : 4, msg->display.data.at);
	else if (msg->type == MSG_LEFT)
		snprintf(at, size, "{%.*s %llu%s%.*s}", (int)msg->left.path.len,
			 msg->left.path.at, (unsigned long long)msg->left.size,
			 msg->left.has_data ? " " : "",
			 msg->left.has_data && msg->left.data.len < 100
			 ? (int)msg->left.data.len : 0, msg->left.data.at);
	else if (msg->type == MSG_LEFT_RESTART)
		snprintf(at, size, "{restart}");
	else if (msg->type == MSG_WHERE)
		snprintf(at, size, "{line %u}", msg->where.has_line ? msg->where.line : 0);
	else
		snprintf(at, size, "{%u more}", msg->left_more.more);
}

/* 1 when the end is known. */
static int
take_end(struct host_worker *worker, struct host_result *result, double sent)
{
	int r = frame_reader_read(&worker->reader, worker->control, &result->frame);

	if (r == 0)
		return 0;
	result->end = HOST_BROKEN;
	if (r < 0)
		return 1;
	if (told_meanwhile(&result->frame)) {
		note(result);
		frame_done(&result->frame);
		return 0;
	}
	if (result->frame.msg.type == MSG_DONE) {
		result->end = HOST_DONE;
		result->done = &result->frame.msg.done;
		result->done_us = now_us() - sent;
	} else if (result->frame.msg.type == MSG_EXITED) {
		result->end = HOST_EXITED;
		result->status = result->frame.msg.exited.status;
	} else if (result->frame.msg.type == MSG_JAIL_FAILED) {
		result->end = HOST_JAIL_FAILED;
	}
	return 1;
}

void
host_finish(struct host_worker *worker, const struct host_run *run,
	    struct host_result *result_r)
{
	double start = now_us(),
	       end = start + (run->wall_ms ? run->wall_ms : 120000) * 1e3;
	struct host_result result = { .end = HOST_BROKEN };
	struct collected out = { 0 }, err = { 0 };
	bool known = send_run(worker, run) < 0;

	while (!known || !out.ended || !err.ended) {
		struct pollfd p[3] = {
			{ .fd = known ? -1 : worker->control, .events = POLLIN },
			{ .fd = out.ended ? -1 : worker->out, .events = POLLIN },
			{ .fd = err.ended ? -1 : worker->err, .events = POLLIN },
		};
		int left = (int)((end - now_us()) / 1e3) + 1;

		if (!known && left <= 0) {
			result.end = HOST_TIMEOUT;
			break;
		}
		/* Past the end only what is in the pipes already is taken. */
		if (poll(p, 3, known ? 0 : left) == 0 && known)
			break;
		if (p[1].revents)
			collect(worker->out, &out);
		if (p[2].revents)
			collect(worker->err, &err);
		if (p[0].revents)
			known = take_end(worker, &result, start) == 1;
	}
	host_kill(worker);
	result.out = out.at ? out.at : calloc(1, 1);
	result.err = err.at ? err.at : calloc(1, 1);
	result.out_len = out.len;
	result.err_len = err.len;
	*result_r = result;
	if (result_r->end == HOST_DONE)
		result_r->done = &result_r->frame.msg.done;
}

void
host_run(struct host *host, const struct host_run *run, struct host_result *result_r)
{
	struct host_worker worker;
	struct frame failed = { 0 };
	double start = now_us();
	int r = host_spawn(host, &worker, &failed);

	if (r < 0) {
		*result_r =
			(struct host_result){ .end = r == -ECANCELED ? HOST_JAIL_FAILED
								     : HOST_BROKEN,
					      .frame = failed,
					      .out = calloc(1, 1),
					      .err = calloc(1, 1) };
		return;
	}
	start = now_us() - start;
	host_finish(&worker, run, result_r);
	result_r->ready_us = start;
}

void
host_result_done(struct host_result *result)
{
	frame_done(&result->frame);
	free(result->out);
	free(result->err);
	*result = (struct host_result){ 0 };
}
