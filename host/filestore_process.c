/* Runs in: the file helper, and in a child of it for each file that is kept or fetched.
 * Owns:    the children, a pipe from each, and the descriptor of the store.
 * Reads:   STORE_FILE and the like, from the supervisor. */
#include "host/filestore_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/own.h"
#include "host/fence.h"
#include "proto/frame.h"

/* What a child reports, to a process of the same program. */
struct report {
	int error;
	unsigned char sha256[FILESTORE_SHA256];
};

struct job {
	pid_t pid;			/* 0: free */
	int pipe;
	uint64_t due_ms;
	struct frame order;		/* STORE_FILE or FETCH_FILE */
};

struct helper {
	int socket, root;
	struct job job[FILESTORE_JOBS];
	size_t n;
};

static uint64_t
number_of(const struct frame *order)
{
	return order->msg.type == MSG_STORE_FILE ? order->msg.store_file.job
						 : order->msg.fetch_file.job;
}

/* ---- a child ---- */

static _Noreturn void
work(const struct helper *helper, const struct frame *order, int fd, int pipe)
{
	struct report report = { 0 };

	if (order->msg.type == MSG_STORE_FILE)
		report.error = filestore_disk_keep(helper->root, &order->msg.store_file, fd,
						   report.sha256);
	else
		report.error = filestore_disk_fetch(helper->root, &order->msg.fetch_file, fd);
	/* The reader of a part gets its end before the supervisor hears of it. */
	close(fd);
	if (write(pipe, &report, sizeof(report)) != sizeof(report))
		_exit(EXIT_FAILURE);
	_exit(EXIT_SUCCESS);
}

/* Forks a child. Its pid, and the reading end of its pipe; or -errno. */
static pid_t
fork_job(const struct helper *helper, const struct frame *order, int fd, int *pipe_r)
{
	pid_t parent = getpid(), pid;
	int ends[2], error;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		close(ends[0]);
		close(helper->socket);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent || fence_lookup() < 0)
			_exit(EXIT_FAILURE);
		work(helper, order, fd, ends[1]);
	}
	error = errno;
	close(ends[1]);
	if (pid > 0) {
		*pipe_r = ends[0];
		return pid;
	}
	close(ends[0]);
	return -error;
}

/* ---- the helper ---- */

static int
send_ended(const struct helper *helper, uint64_t job, int error, const unsigned char *sha256)
{
	struct msg msg = { .type = MSG_FILE_ENDED,
			   .file_ended = { .job = job, .error = (uint32_t)-error,
					   .has_sha256 = error == 0 && sha256,
					   .sha256 = { (const char *)sha256,
						       FILESTORE_SHA256 } } };

	return frame_send(helper->socket, &msg, NULL, 0);
}

/* Ends the child. If it has not kept its file to the end, what there is of it goes. */
static void
release(struct helper *helper, struct job *job, bool kept)
{
	const struct msg_store_file *file = &job->order.msg.store_file;

	kill(job->pid, SIGKILL);
	while (waitpid(job->pid, NULL, 0) < 0 && errno == EINTR)
		;
	close(job->pipe);
	if (job->order.msg.type == MSG_STORE_FILE && !kept)
		filestore_disk_remove(helper->root, &file->principal, &file->name);
	frame_done(&job->order);
	job->pid = 0;
	helper->n--;
}

static int
conclude(struct helper *helper, struct job *job, const struct report *report)
{
	bool is_file = job->order.msg.type == MSG_STORE_FILE;
	uint64_t number = number_of(&job->order);

	release(helper, job, report->error == 0);
	return send_ended(helper, number, report->error, is_file ? report->sha256 : NULL);
}

static int
read_report(struct helper *helper, struct job *job)
{
	struct report report;
	ssize_t n = read(job->pipe, &report, sizeof(report));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n != sizeof(report))
		report = (struct report){ .error = -ECHILD };
	return conclude(helper, job, &report);
}

static struct job *
find_job(struct helper *helper, uint64_t number)
{
	for (size_t i = 0; i < FILESTORE_JOBS; i++)
		if (helper->job[i].pid != 0 &&
		    (number == 0 || number_of(&helper->job[i].order) == number))
			return &helper->job[i];
	return NULL;
}

/* Begins a job, or answers at once that it cannot. The order is emptied. 0 or -errno of the
 * socket. */
static int
begin(struct helper *helper, struct frame *order, unsigned int seconds)
{
	own_fd int fd = frame_take_fd(order, 0);
	struct job *job = helper->job;
	int pipe = -1;
	pid_t pid;

	while (job->pid != 0)
		job++;
	pid = fork_job(helper, order, fd, &pipe);
	if (pid < 0)
		return send_ended(helper, number_of(order), pid, NULL);
	fcntl(pipe, F_SETFL, O_NONBLOCK);
	*job = (struct job){ .pid = pid, .pipe = pipe, .order = *order,
			     .due_ms = clock_ms() + (uint64_t)seconds * 1000 };
	memset(order, 0, sizeof(*order));
	helper->n++;
	return 0;
}

static int
obey(struct helper *helper, struct frame *order)
{
	const struct msg *msg = &order->msg;
	const enum msg_type type = msg->type;
	struct job *job;

	if (type == MSG_STORE_FILE)
		return begin(helper, order, msg->store_file.seconds);
	if (type == MSG_FETCH_FILE)
		return begin(helper, order, msg->fetch_file.seconds);
	if (type == MSG_DROP_FILE)
		filestore_disk_remove(helper->root, &msg->drop_file.principal,
				      &msg->drop_file.name);
	if (type != MSG_DROP_JOB)
		return type == MSG_DROP_FILE ? 0 : -EBADMSG;
	/* If it is over, the supervisor has not read that yet. */
	job = find_job(helper, msg->drop_job.job);
	return job ? conclude(helper, job, &(struct report){ .error = -ECANCELED }) : 0;
}

static int
take_order(struct helper *helper, struct frame_reader *reader)
{
	struct frame frame = { 0 };
	int r = frame_reader_read(reader, helper->socket, &frame);

	if (r == 1)
		r = obey(helper, &frame);
	frame_done(&frame);
	return r;
}

static int
end_late(struct helper *helper)
{
	uint64_t now = clock_ms();
	int r = 0;

	for (size_t i = 0; r == 0 && i < FILESTORE_JOBS; i++)
		if (helper->job[i].pid != 0 && helper->job[i].due_ms <= now)
			r = conclude(helper, &helper->job[i],
				     &(struct report){ .error = -ETIMEDOUT });
	return r;
}

static int
patience_ms(const struct helper *helper)
{
	uint64_t now = clock_ms(), first = UINT64_MAX;

	for (size_t i = 0; i < FILESTORE_JOBS; i++)
		if (helper->job[i].pid != 0 && helper->job[i].due_ms < first)
			first = helper->job[i].due_ms;
	return first == UINT64_MAX ? -1 : first > now ? (int)(first - now) + 1 : 0;
}

/* One wait, and the work that it brings. 0 or -errno. */
static int
turn(struct helper *helper, struct frame_reader *reader)
{
	struct pollfd line[FILESTORE_JOBS + 1];
	int r;

	for (size_t i = 0; i < FILESTORE_JOBS; i++)
		line[i] = (struct pollfd){ helper->job[i].pid ? helper->job[i].pipe : -1, POLLIN,
					   0 };
	line[FILESTORE_JOBS] = (struct pollfd){
		helper->n < FILESTORE_JOBS ? helper->socket : -1, POLLIN, 0 };
	if (poll(line, FILESTORE_JOBS + 1, patience_ms(helper)) < 0)
		return errno == EINTR ? 0 : -errno;
	r = end_late(helper);
	for (size_t i = 0; r == 0 && i < FILESTORE_JOBS; i++)
		if (line[i].revents && helper->job[i].pid != 0)
			r = read_report(helper, &helper->job[i]);
	if (r == 0 && line[FILESTORE_JOBS].revents)
		r = take_order(helper, reader);
	return r;
}

static void
default_signals(void)
{
	const struct sigaction action = { .sa_handler = SIG_DFL };
	sigset_t none;

	for (int number = 1; number < NSIG; number++)
		sigaction(number, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Keeps the socket, as number 3, and standard error; closes everything else. */
static int
default_process(int *socket, pid_t supervisor)
{
	static const struct rlimit none = { 0, 0 };
	own_fd int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	default_signals();
	setsid();
	if (prctl(PR_SET_NAME, "mcp-files") < 0 || prctl(PR_SET_DUMPABLE, 0) < 0 ||
	    setrlimit(RLIMIT_CORE, &none) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return -errno;
	if (getppid() != supervisor)
		return -ESRCH;
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		return -errno;
	if (*socket != STDERR_FILENO + 1 && dup3(*socket, STDERR_FILENO + 1, O_CLOEXEC) < 0)
		return -errno;
	*socket = STDERR_FILENO + 1;
	null = -1;	/* closed with the others */
	if (close_range(STDERR_FILENO + 2, ~0u, 0) < 0)
		return -errno;
	/* Later OpenSSL would look for it in files. */
	if (!EVP_sha256())
		return -EIO;
	return fence_directory();
}

static int
send_file(void *arg, const struct msg_stored_file *file)
{
	const struct helper *helper = arg;
	struct msg msg = { .type = MSG_STORED_FILE, .stored_file = *file };

	return frame_send(helper->socket, &msg, NULL, 0);
}

/* The index; 0, -errno of the socket, or the reason why there is no store. */
static int
introduce(struct helper *helper, const char *directory)
{
	struct msg ready = { .type = MSG_STORE_READY };
	int r = helper->root = filestore_disk_open(directory), sent;

	if (r >= 0)
		r = filestore_disk_list(helper->root, (uint64_t)time(NULL), send_file, helper);
	ready.store_ready.error = (uint32_t)-r;
	sent = frame_send(helper->socket, &ready, NULL, 0);
	return r < 0 ? r : sent;
}

_Noreturn void
filestore_live(int socket, pid_t supervisor, const char *directory)
{
	static struct helper helper;
	struct frame_reader reader;
	int r = default_process(&socket, supervisor);

	helper.socket = socket;
	frame_reader_init(&reader, FROM_SUPERVISOR);
	if (r == 0)
		r = introduce(&helper, directory);
	while (r == 0)
		r = turn(&helper, &reader);
	/* The supervisor closes its end when it ends. A file that was coming in is nobody's. */
	for (struct job *job; (job = find_job(&helper, 0));)
		release(&helper, job, false);
	if (r == -EPIPE || r == -ECONNRESET)
		_exit(EXIT_SUCCESS);
	log_line(LOG_ERR, "files-end", "err=%s", strerrorname_np(-r));
	_exit(EXIT_FAILURE);
}
