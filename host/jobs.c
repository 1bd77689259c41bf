/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the directory helper and the file helper, and in a child of them for each job.
 * Owns:    the children, and a pipe from each.
 * Reads:   orders of the supervisor, and the children's answers, as frames. */
#include "host/jobs.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/writeall.h"
#include "host/fence.h"

/* ---- a child ---- */

static _Noreturn void
child_live(const struct jobs *jobs, struct frame *order, int pipe)
{
	struct codec_buffer buffer = { 0 };
	struct msg answer = { .type = jobs->answer };

	jobs->calls->work(jobs->arg, order, &answer);
	if (frame_encode(&answer, 0, &buffer) < 0 || write_all(pipe, buffer.at, buffer.len) < 0)
		_exit(EXIT_FAILURE);
	_exit(EXIT_SUCCESS);
}

/* Forks a child. Its pid, and the reading end of its pipe; or -errno. */
static pid_t
fork_child(const struct jobs *jobs, struct frame *order, int *pipe_r)
{
	pid_t parent = getpid(), pid;
	int ends[2], error;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		close(ends[0]);
		close(jobs->socket);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent || fence_job() < 0)
			_exit(EXIT_FAILURE);
		child_live(jobs, order, ends[1]);
	}
	error = errno;
	close(ends[1]);
	*pipe_r = ends[0];
	if (pid > 0)
		return pid;
	close(ends[0]);
	return -error;
}

/* ---- the helper ---- */

int
jobs_begin(struct jobs *jobs, struct frame *order, uint64_t id, unsigned int seconds)
{
	struct job *job = jobs->job;
	int pipe = -1;
	pid_t pid = fork_child(jobs, order, &pipe);

	/* A reader of what the child writes gets its end only if no copy stays open here. */
	fdpass_close(&order->fds);
	if (pid < 0)
		return jobs->calls->conclude(jobs->arg, order, (int)pid, NULL);
	while (job->pid != 0)
		job++;
	fcntl(pipe, F_SETFL, O_NONBLOCK);
	*job = (struct job){ .pid = pid, .pipe = pipe, .id = id, .order = *order,
			     .due_ms = clock_ms() + (uint64_t)seconds * 1000 };
	frame_reader_init(&job->reader, codec_shape(jobs->answer)->from);
	memset(order, 0, sizeof(*order));
	jobs->n++;
	return 0;
}

/* Ends the child, concludes the job and releases it. Nothing of the child is left when the
 * supervisor learns of the end. */
static int
jobs_end(struct jobs *jobs, struct job *job, int error, const struct msg *answer)
{
	int r;

	kill(job->pid, SIGKILL);
	while (waitpid(job->pid, NULL, 0) < 0 && errno == EINTR)
		;
	close(job->pipe);
	r = jobs->calls->conclude(jobs->arg, &job->order, error, answer);
	frame_reader_done(&job->reader);
	frame_done(&job->order);
	job->pid = 0;
	jobs->n--;
	return r;
}

int
jobs_cancel(struct jobs *jobs, uint64_t id)
{
	for (size_t i = 0; i < jobs->most; i++)
		if (jobs->job[i].pid != 0 && jobs->job[i].id == id)
			return jobs_end(jobs, &jobs->job[i], -ECANCELED, NULL);
	return 0;
}

static int
jobs_read_answer(struct jobs *jobs, struct job *job)
{
	struct frame frame = { 0 };
	unsigned char bytes[4096];
	ssize_t n = read(job->pipe, bytes, sizeof(bytes));
	size_t used;
	int r;

	if (n < 0 && frame_is_transient(-errno))
		return 0;
	/* A child that ends without an answer was killed, or has crashed. */
	if (n <= 0)
		return jobs_end(jobs, job, n < 0 ? -errno : -ECHILD, NULL);
	r = frame_reader_feed(&job->reader, bytes, (size_t)n, &used, &frame);
	if (r == 0)
		return 0;
	if (r == 1 && frame.msg.type != jobs->answer)
		r = -EBADMSG;
	r = jobs_end(jobs, job, r < 0 ? r : 0, r < 0 ? NULL : &frame.msg);
	frame_done(&frame);
	return r;
}

static int
take_order(struct jobs *jobs, struct frame_reader *reader)
{
	struct frame order = { 0 };
	int r = frame_reader_read(reader, jobs->socket, &order);

	if (r == 1)
		r = jobs->calls->obey(jobs, &order);
	frame_done(&order);
	return r;
}

static int
end_late(struct jobs *jobs)
{
	uint64_t now = clock_ms();
	int r = 0;

	for (size_t i = 0; r == 0 && i < jobs->most; i++)
		if (jobs->job[i].pid != 0 && jobs->job[i].due_ms <= now)
			r = jobs_end(jobs, &jobs->job[i], -ETIMEDOUT, NULL);
	return r;
}

/* How long to wait for events, as poll(2) wants it. */
static int
patience_ms(const struct jobs *jobs)
{
	uint64_t now = clock_ms(), first = UINT64_MAX;

	for (size_t i = 0; i < jobs->most; i++)
		if (jobs->job[i].pid != 0 && jobs->job[i].due_ms < first)
			first = jobs->job[i].due_ms;
	return first == UINT64_MAX ? -1 : first > now ? (int)(first - now) + 1 : 0;
}

/* One wait, and the work that it brings. 0 or -errno. */
static int
jobs_turn(struct jobs *jobs, struct frame_reader *reader)
{
	struct pollfd line[JOBS_MAX + 1];
	struct pollfd *supervisor = &line[jobs->most];
	unsigned int tries = 0;
	int r;

	for (size_t i = 0; i < jobs->most; i++)
		line[i] = (struct pollfd){ jobs->job[i].pid ? jobs->job[i].pipe : -1, POLLIN, 0 };
	*supervisor = (struct pollfd){ jobs->n < jobs->most ? jobs->socket : -1, POLLIN, 0 };
	if (poll(line, jobs->most + 1, patience_ms(jobs)) < 0)
		return frame_wait_out(-errno, &tries) ? 0 : -errno;
	r = end_late(jobs);
	for (size_t i = 0; r == 0 && i < jobs->most; i++)
		if (line[i].revents && jobs->job[i].pid != 0)
			r = jobs_read_answer(jobs, &jobs->job[i]);
	if (r == 0 && supervisor->revents)
		r = take_order(jobs, reader);
	return r;
}

int
jobs_serve(struct jobs *jobs)
{
	struct frame_reader reader;
	int r = 0;

	frame_reader_init(&reader, FROM_SUPERVISOR);
	while (r == 0)
		r = jobs_turn(jobs, &reader);
	frame_reader_done(&reader);
	close(jobs->socket);
	jobs->socket = -1;
	for (size_t i = 0; i < jobs->most; i++)
		if (jobs->job[i].pid != 0)
			jobs_end(jobs, &jobs->job[i], -ECANCELED, NULL);
	return r;
}
