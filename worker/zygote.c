/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the zygote, root of the outer namespace that the supervisor made.
 * Owns:    the control socket, the interpreter before it is used, the compiled filter.
 * Reads:   CONFIGURE once; then SPAWN, NETWORK_FREE and NETWORK_DROP; from the supervisor alone.
 * It never has a second thread. The processes that it clones belong to the supervisor. */
#include "worker/zygote.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/own.h"
#include "base/stall.h"
#include "proto/frame.h"
#include "worker/execution.h"
#include "worker/hello.h"
#include "worker/interpreter.h"
#include "worker/jail.h"
#include "worker/libraries.h"
#include "worker/mounts.h"
#include "worker/networks.h"
#include "worker/parallel.h"
#include "worker/title.h"
#include "worker/warm.h"
#include "worker/where.h"
#include "worker/workspace.h"

/* The seventh is its network (worker/networks.h). */
#define NAMESPACES (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | \
	CLONE_NEWUTS | CLONE_NEWCGROUP)

#define ALONE_LOOKS 100
#define ALONE_LOOK_MS 10

/* ---- the process itself ---- */

/* Resets what the process has inherited from the supervisor: workers start as programs do on a
 * host. */
static int
zygote_default_process(void)
{
	struct sigaction action = { .sa_handler = SIG_DFL };
	sigset_t none;
	int flags, fd;

	for (int s = 1; s < NSIG; s++)
		sigaction(s, &action, NULL);
	sigemptyset(&none);
	if (sigprocmask(SIG_SETMASK, &none, NULL) < 0)
		return -errno;
	umask(022);
	flags = fcntl(ZYGOTE_CONTROL, F_GETFL);
	if (flags < 0 || fcntl(ZYGOTE_CONTROL, F_SETFL, flags & ~O_NONBLOCK) < 0 ||
	    fcntl(ZYGOTE_CONTROL, F_SETFD, FD_CLOEXEC) < 0)
		return -errno;
	if (close_range(ZYGOTE_CONTROL + 1, ~0U, 0) < 0)
		return -errno;
	/* Closed standard descriptors must not be reused for other files. */
	do {
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
		if (fd < 0)
			return -errno;
	} while (fd <= STDERR_FILENO);
	close(fd);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 ||
	    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return -errno;
	title_set("python-zygote", "zygote");
	return 0;
}

/* When memory is short, the kernel should end zygotes and workers, which inherit this setting,
 * before other processes of the host. */
static void
offer_to_oom(void)
{
	own_fd int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd >= 0 && write(fd, "500", 3) != 3)
		return;
}

/* Python inspects its standard streams once, when it starts. Workers' streams are pipes, so it
 * starts on pipes. Afterwards the streams are closed, and standard error is the service's log
 * again. */
static int
start_on_pipes(const char **what)
{
	own_fd int err = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, ZYGOTE_CONTROL + 1);
	own_fd int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int in[2], out[2], r;

	if (err < 0 || null < 0 || pipe2(in, O_CLOEXEC) < 0)
		return -errno;
	r = pipe2(out, O_CLOEXEC) < 0 ? -errno : 0;
	if (r == 0 &&
	    (dup2(in[0], STDIN_FILENO) < 0 || dup2(out[1], STDOUT_FILENO) < 0 ||
	     dup2(out[1], STDERR_FILENO) < 0))
		r = -errno;
	close(in[0]);
	close(in[1]);
	if (r < 0)
		return r;
	close(out[1]);
	r = interpreter_start(what);
	close(out[0]);
	if (dup2(err, STDERR_FILENO) < 0 || dup2(null, STDIN_FILENO) < 0 ||
	    dup2(null, STDOUT_FILENO) < 0)
		return -errno;
	return r;
}

/* True: this is the only thread; a fork copies no others. A thread that has just been joined
 * takes a moment to disappear. */
static bool
zygote_is_alone(void)
{
	static const struct timespec pause = { .tv_nsec = ALONE_LOOK_MS * 1000000 };
	struct stat st;

	/* "." and ".." of a task directory and one entry for each thread. */
	for (int i = 0; stat("/proc/self/task", &st) == 0; i++) {
		if (st.st_nlink == 3)
			return true;
		if (i == ALONE_LOOKS)
			return false;
		nanosleep(&pause, NULL);
	}
	return false;
}

/* ---- getting ready ---- */

#define LEARNABLE_NAMES_MAX (64 * (256 + 8))	/* "import NAME" of each learnable module */
#define EXERCISES_MAX 4096			/* bytes of what is done with them */

static int
zygote_receive(struct frame_reader *reader, struct frame *frame)
{
	int r;

	stall_rest();
	do
		r = frame_reader_read(reader, ZYGOTE_CONTROL, frame);
	while (r == 0);
	stall_turn();
	return r < 0 ? r : 0;
}

static int
send_ready(const struct jail *jail, const struct msg_strs *missing)
{
	struct msg msg = { .type = MSG_ZYGOTE_READY, .zygote_ready = {
		.python = msg_str(interpreter_version()),
		.landlock_abi = jail->landlock_abi,
		.packages = msg_str(interpreter_packages()),
		.platform = msg_str(interpreter_text("PLATFORM")),
		.extension = msg_str(interpreter_text("EXTENSION")),
		.missing = *missing } };

	msg.zygote_ready.learned = interpreter_learned(&msg.zygote_ready.unlearned,
						       &msg.zygote_ready.untried);
	/* A long list is cut rather than lost; the message has a bound. */
	while (frame_send(ZYGOTE_CONTROL, &msg, NULL, 0) < 0) {
		if (msg.zygote_ready.missing.n == 0)
			return -EPIPE;
		msg.zygote_ready.missing.n /= 2;
	}
	return 0;
}

/* The steps of a worker's script process with small scripts, in a child of the zygote: from READY
 * to DONE, with the same allocations in the same order. arg: the bytes of RUN for each. */
static void
zygote_rehearse(const void *arg)
{
	struct msg ready = { .type = MSG_READY, .ready.worker = 1 };
	struct msg done = { .type = MSG_DONE };
	const struct codec_buffer *run = arg;
	struct codec_buffer bytes = { 0 };
	struct frame_reader reader;
	struct frame frame = { 0 };
	size_t at = 0, used;

	interpreter_after_fork();
	if (interpreter_fresh() < 0 || frame_encode(&ready, 0, &bytes) < 0)
		return;
	codec_buffer_done(&bytes);
	frame_reader_init(&reader, FROM_SUPERVISOR);
	while (frame_reader_feed(&reader, run->at + at, run->len - at, &used, &frame) == 1) {
		interpreter_run(&frame.msg.run, 0, &done.done);
		frame_encode(&done, 0, &bytes);
		frame_done(&frame);
		at += used;
	}
}

/* The rehearsed script also imports what the zygote has learned, and does with it what most scripts
 * do first. */
static void
learn_pages(const struct msg_configure *configure)
{
	static char script[LEARNABLE_NAMES_MAX + EXERCISES_MAX + 64];
	struct msg msg = { .type = MSG_RUN, .run = { .id = 1, .value_max = 4096 } };
	struct codec_buffer run = { 0 };
	static const char one[] = "print('hello')";
	struct msg_strs unlearned;
	uint64_t untried, learned = interpreter_learned(&unlearned, &untried);
	size_t len = 0;
	int r;

	for (size_t i = 0; i < configure->learnable.n; i++)
		if (learned & UINT64_C(1) << i &&
		    len + configure->learnable.item[i].len + 96 < sizeof(script))
			len += (size_t)snprintf(script + len, sizeof(script) - len, "import %.*s\n",
					(int)configure->learnable.item[i].len,
					configure->learnable.item[i].at);
	len += (size_t)snprintf(script + len, sizeof(script) - len,
			"%.*simport sys\nprint('hello')\n['a value', 1]\n",
			EXERCISES_MAX, interpreter_text("EXERCISED"));
	msg.run.script = (struct msg_bin){ script, len };
	r = frame_encode(&msg, 0, &run);
	/* It is compiled in another way (compile_call in worker/bootstrap.py). */
	msg.run.script = (struct msg_bin){ one, sizeof(one) - 1 };
	if (r == 0 && frame_encode(&msg, 0, &run) == 0)
		warm_learn(zygote_rehearse, &run);
	codec_buffer_done(&run);
}

/* OpenBLAS maps 128 MiB for each of its threads, and tries again forever if it cannot. RLIMIT_DATA,
 * which limits memory where no controller counts it, counts these bytes although most are not
 * used. So threads may take half of the usual limit. */
#define THREAD_BYTES (128u << 20)

static uint32_t
most_threads(const struct msg_configure *configure)
{
	uint64_t fit = configure->memory_bytes / THREAD_BYTES / 2;

	if (configure->memory_counted || fit >= configure->processors)
		return configure->processors;
	return fit > 1 ? (uint32_t)fit : 1;
}

/* Prepares the process from which workers are cloned. */
static int
zygote_prepare(const struct msg_configure *configure, struct jail *jail,
	       struct msg_strs *missing, const char **what)
{
	int r;

	*what = "supplementary groups";
	if (setgroups(0, NULL) < 0) {
		/* A namespace of a single id, made without newgidmap, forbids it. */
		if (errno != EPERM)
			return -errno;
		jail->groups_kept = true;
	}
	*what = "/proc/sys";
	r = networks_prepare();
	if (r == 0)
		r = jail_prepare(configure, jail, what);
	if (r == 0)
		/* Where no controller counts the memory of such a mapping, only Landlock can
		 * prevent it. */
		r = mounts_build(&configure->paths,
				 configure->memory_counted || jail->landlock_abi > 0,
				 configure->terminals, configure->folder, missing, what);
	if (r == 0)
		r = jail_prepared(jail, what);
	if (r < 0)
		return r;
	workspace_bounds = (struct workspace_bounds){
		.files = configure->left_files,
		.file_bytes = configure->left_file_bytes,
		.bytes = configure->left_bytes,
		.offer_bytes = configure->left_offer_bytes,
	};
	display_bounds = (struct display_bounds){
		.objects = configure->displays,
		.bytes = configure->display_bytes,
		.pixels = configure->picture_pixels,
		.file_bytes = configure->left_offer_bytes > configure->left_file_bytes
			? configure->left_offer_bytes : configure->left_file_bytes,
		.files_bytes = configure->left_offer_bytes > 0
			? UINT64_MAX : configure->left_bytes,
	};
	libraries_note();
	*what = "standard streams";
	r = parallel_begin(most_threads(configure));
	if (r == 0)
		r = start_on_pipes(what);
	if (r == 0)
		r = interpreter_preload(configure, missing, what);
	if (r < 0)
		return r;
	parallel_prepare();
	*what = "an import has started a thread";
	if (!zygote_is_alone())
		return -EDEADLK;
	if (!configure->bare)
		libraries_join();
	*what = "file system of imports";
	return mounts_settle();
}

/* ---- cloning ---- */

static int
write_map(pid_t pid, const char *which, uint32_t id)
{
	char path[64], text[64];
	own_fd int fd = -1;
	int len;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, which);
	len = snprintf(text, sizeof(text), "%d %u 1\n", JAIL_UID, (unsigned int)id);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return write(fd, text, (size_t)len) == len ? 0 : -errno;
}

static _Noreturn void
be_born(const struct jail *jail, const struct frame *frame, int mapped)
{
	struct jail_birth birth = {
		.jail = jail,
		.control = frame->fds.fd[0],
		.out = frame->fds.fd[1],
		.err = frame->fds.fd[2],
		.mapped = mapped,
	};

	stall_forget();
	jail_enter(&birth);
	execution_live(jail, frame->msg.spawn.worker);
}

static void
spawn_failed(uint64_t worker, const char *what, int error)
{
	struct msg msg = { .type = MSG_SPAWN_FAILED, .spawn_failed = {
		.worker = worker, .what = msg_str(what), .error = (uint32_t)error } };

	frame_send(ZYGOTE_CONTROL, &msg, NULL, 0);
}

/* Tells the supervisor of a worker. If that fails, this zygote ends: a worker that the supervisor
 * does not know would have no owner. The supervisor notices the end, and finds the worker. */
static void
send_spawned(uint64_t worker, pid_t pid, int pidfd)
{
	struct msg msg = { .type = MSG_SPAWNED, .spawned = {
		.worker = worker, .pid = (uint32_t)pid } };

	if (frame_send(ZYGOTE_CONTROL, &msg, &pidfd, 1) < 0)
		exit(EXIT_FAILURE);
}

static void
on_spawn(const struct jail *jail, const struct frame *frame)
{
	const struct msg_spawn *spawn = &frame->msg.spawn;
	own_fd int pidfd = -1, map_read = -1, map_write = -1;
	struct clone_args args = {
		/* Its parent is the zygote's parent: the supervisor reaps it, and outlives
		 * the zygote. */
		.flags = NAMESPACES | CLONE_PARENT | CLONE_PIDFD,
		.pidfd = (uintptr_t)&pidfd,
	};
	const char *what;
	int pipefd[2], error, r;
	pid_t pid;

	if (spawn->into_cgroup != (frame->fds.n == 4)) {
		spawn_failed(spawn->worker, "descriptors", EINVAL);
		return;
	}
	if (pipe2(pipefd, O_CLOEXEC) < 0) {
		spawn_failed(spawn->worker, "pipe", errno);
		return;
	}
	map_read = pipefd[0];
	map_write = pipefd[1];
	if (spawn->into_cgroup) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)frame->fds.fd[3];
	}
	r = jail_no_core_handler(&what);
	if (r == 0)
		r = networks_enter(spawn->owner, spawn->worker, &what);
	if (r < 0) {
		spawn_failed(spawn->worker, what, -r);
		return;
	}
	pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (pid < 0) {
		spawn_failed(spawn->worker, "clone", errno);
		networks_free(spawn->worker, true);
		return;
	}
	if (pid == 0) {
		close(give_fd(map_write));
		be_born(jail, frame, map_read);
	}
	error = -write_map(pid, "gid_map", spawn->uid);
	if (error == 0)
		error = -write_map(pid, "uid_map", spawn->uid);
	/* On failure the worker itself reports it, on its own socket, and ends. */
	if (write(map_write, &error, sizeof(error)) == (ssize_t)sizeof(error))
		send_spawned(spawn->worker, pid, pidfd);
}

int
zygote_main(void)
{
	struct msg_strs missing = { 0 };
	struct frame frame = { 0 };
	struct frame_reader reader;
	struct jail jail = { 0 };
	const char *what = "process";
	int r = zygote_default_process();

	if (r == 0 && (r = hello_send()) < 0)
		return EXIT_FAILURE;
	offer_to_oom();
	frame_reader_init(&reader, FROM_SUPERVISOR);
	if (r == 0) {
		what = "CONFIGURE";
		r = zygote_receive(&reader, &frame);
		if (r == 0 && frame.msg.type != MSG_CONFIGURE)
			r = -EBADMSG;
	}
	if (r == 0) {
		missing.item = calloc(frame.msg.configure.paths.n +
					      frame.msg.configure.modules.n + 1,
				      sizeof(*missing.item));
		r = missing.item ? zygote_prepare(&frame.msg.configure, &jail, &missing, &what)
				 : -ENOMEM;
	}
	if (r == 0) {
		what = "the guard against waits";
		r = stall_guard(NULL);
	}
	if (r == 0) {
		what = "the handlers of crashes";
		r = where_prepare();
	}
	if (r == 0) {
		interpreter_before_fork();
		if (!frame.msg.configure.bare)
			learn_pages(&frame.msg.configure);
		what = "syscall filter";
		r = jail_fence_zygote(&jail);
	}
	if (r == 0) {
		what = "ZYGOTE_READY";
		r = send_ready(&jail, &missing);
	}
	if (r < 0) {
		hello_fail(what, -r);
		return EXIT_FAILURE;
	}
	free(missing.item);
	frame_done(&frame);
	/* Ends when the supervisor closes its end of the socket; any other message is a fault. */
	while (zygote_receive(&reader, &frame) == 0) {
		if (frame.msg.type == MSG_SPAWN)
			on_spawn(&jail, &frame);
		else if (frame.msg.type == MSG_NETWORK_FREE)
			networks_free(frame.msg.network_free.worker, frame.msg.network_free.keep);
		else if (frame.msg.type == MSG_NETWORK_DROP)
			networks_drop(frame.msg.network_drop.owner);
		else if (frame.msg.type != MSG_PING ||
			 frame_send_pong(ZYGOTE_CONTROL, &frame.msg.ping) < 0)
			return EXIT_FAILURE;
		frame_done(&frame);
	}
	return EXIT_SUCCESS;
}
