/* Runs in: the supervisor.   Owns: the helper's process, the socket to it, and questions.
 * Reads:   PERSON, of a process whose children have parsed what a name service sent. */
#include "host/directory.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/log.h"
#include "base/xalloc.h"
#include "host/directory_parts.h"
#include "proto/frame.h"

#define GRACE_S 2			/* beyond the time that the helper keeps itself */
#define WAITING_BYTES (32 * 1024 * 1024)	/* of questions that the helper has not read */

/* WAITS ──send──> ASKED ──PERSON, its time, the helper's end──> answered from the loop */
struct directory_question {
	TAILQ_ENTRY(directory_question) link;
	struct directory *directory;
	bool asked;
	uint64_t id;
	uid_t uid;
	char **group;
	size_t n;
	unsigned int seconds;
	int error;			/* to be told by due */
	struct event *due;
	void (*on_answer)(void *arg, int error, const struct directory_person *person);
	void *arg;
};

TAILQ_HEAD(directory_questions, directory_question);

struct directory {
	struct event_base *base;
	pid_t pid;
	int pidfd, socket;
	bool lost;
	void (*on_lost)(void *arg);
	void *arg;
	struct frame_reader reader;
	struct frame_writer writer;
	struct event *readable, *writable;
	struct directory_questions waiting, asked;
	unsigned int n_asked;
	uint64_t last_id;
};

/* ---- questions ---- */

static void
question_free(struct directory_question *question)
{
	struct directory *directory = question->directory;

	TAILQ_REMOVE(question->asked ? &directory->asked : &directory->waiting, question, link);
	directory->n_asked -= question->asked;
	event_free(question->due);
	for (size_t i = 0; i < question->n; i++)
		free(question->group[i]);
	free(question->group);
	free(question);
}

static void
settle(struct directory_question *question, int error, const struct directory_person *person)
{
	void (*on_answer)(void *arg, int error, const struct directory_person *person) =
		question->on_answer;
	void *arg = question->arg;

	question_free(question);
	on_answer(arg, error, person);
}

/* Its owner hears of it from the loop. */
static void
fail_later(struct directory_question *question, int error)
{
	static const struct timeval at_once = { 0, 0 };

	question->error = error;
	evtimer_add(question->due, &at_once);
}

/* ---- the helper ---- */

/* What it was asked is not answered any more. */
static void
lose_helper(struct directory *directory, int error)
{
	struct directory_question *question;

	if (directory->lost)
		return;
	log_line(LOG_ERR, "directory-lost", "err=%s questions=%u", strerrorname_np(-error),
		 directory->n_asked);
	directory->lost = true;
	event_del(directory->readable);
	event_del(directory->writable);
	TAILQ_FOREACH(question, &directory->asked, link)
		fail_later(question, error);
	directory->on_lost(directory->arg);
}

static void
take_person(struct directory *directory, const struct msg_person *said)
{
	struct directory_person person = { .member = (unsigned char *)said->member.at };
	struct directory_question *question;
	char user[DIRECTORY_USER_MAX + 1];

	TAILQ_FOREACH(question, &directory->asked, link)
		if (question->id == said->id)
			break;
	if (!question || question->error)
		return;		/* its owner wants it no more, or its time was over */
	if (said->error == 0 && said->member.len != question->n) {
		settle(question, -EBADMSG, NULL);
		return;
	}
	if (said->has_user) {
		memcpy(user, said->user.at, said->user.len);
		user[said->user.len] = '\0';
		person.user = user;
	}
	settle(question, -(int)said->error, said->error ? NULL : &person);
}

static void send_waiting(struct directory *directory);

static void
on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct directory *directory = arg;
	struct frame frame = { 0 };
	int r = 1;

	(void)what;
	while (!directory->lost &&
	       (r = frame_reader_read(&directory->reader, (int)fd, &frame)) == 1) {
		take_person(directory, &frame.msg.person);
		frame_done(&frame);
	}
	if (r < 0)
		lose_helper(directory, r);
	send_waiting(directory);
}

static void
on_writable(evutil_socket_t fd, short what, void *arg)
{
	struct directory *directory = arg;
	int r = frame_writer_flush(&directory->writer, (int)fd);

	(void)what;
	if (r < 0)
		lose_helper(directory, r);
	else if (r == 1)
		event_add(directory->writable, NULL);
}

/* ---- asking ---- */

static int
put_question(struct directory *directory, const struct directory_question *question)
{
	struct msg_str *item = xcalloc(question->n + 1, sizeof(*item));
	struct msg msg = { .type = MSG_WHO,
			   .who = { .id = question->id, .uid = question->uid,
				    .seconds = question->seconds,
				    .groups = { item, question->n } } };
	int r;

	for (size_t i = 0; i < question->n; i++)
		item[i] = msg_str(question->group[i]);
	r = frame_writer_put(&directory->writer, &msg, NULL, 0);
	free(item);
	return r;
}

/* In their order, as many as the helper may have. */
static void
send_waiting(struct directory *directory)
{
	struct directory_question *question;

	while (directory->n_asked < DIRECTORY_AT_ONCE &&
	       (question = TAILQ_FIRST(&directory->waiting))) {
		const struct timeval most = { .tv_sec = question->seconds + GRACE_S };
		int r = directory->lost ? -EPIPE : 0;

		TAILQ_REMOVE(&directory->waiting, question, link);
		TAILQ_INSERT_TAIL(&directory->asked, question, link);
		question->asked = true;
		directory->n_asked++;
		evtimer_add(question->due, &most);
		if (r == 0)
			r = put_question(directory, question);
		if (r < 0)
			fail_later(question, r);
	}
	if (!directory->lost && frame_writer_waits(&directory->writer))
		event_add(directory->writable, NULL);
}

/* What cannot be asked is told now; what was asked is out of time by far, which the helper should
 * have seen to. */
static void
on_due(evutil_socket_t fd, short what, void *arg)
{
	struct directory_question *question = arg;
	struct directory *directory = question->directory;

	(void)fd;
	(void)what;
	if (!question->error)
		lose_helper(directory, -ETIMEDOUT);
	else
		settle(question, question->error, NULL);
	send_waiting(directory);
}

struct directory_question *
directory_ask(struct directory *directory, uid_t uid, const char *const *group, size_t n,
	      unsigned int seconds,
	      void (*on_answer)(void *arg, int error, const struct directory_person *person),
	      void *arg)
{
	struct directory_question *question = xcalloc(1, sizeof(*question));

	*question = (struct directory_question){ .directory = directory,
						 .id = ++directory->last_id, .uid = uid, .n = n,
						 .seconds = seconds, .on_answer = on_answer,
						 .arg = arg };
	question->group = xcalloc(n + 1, sizeof(*question->group));
	for (size_t i = 0; i < n; i++)
		question->group[i] = xstrdup(group[i]);
	question->due = xalloc_check(evtimer_new(directory->base, on_due, question));
	TAILQ_INSERT_TAIL(&directory->waiting, question, link);
	send_waiting(directory);
	return question;
}

void
directory_cancel(struct directory_question *question)
{
	question_free(question);
}

/* ---- from its beginning to its end ---- */

/* Signals wait until the child has put the supervisor's handlers away. */
static int
fork_helper(struct directory *directory, directory_look_up_fn *look_up)
{
	pid_t supervisor = getpid();
	sigset_t all, before;
	int pair[2], error;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	directory->socket = pair[0];
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	directory->pid = fork();
	error = errno;
	if (directory->pid == 0)
		directory_live(pair[1], supervisor, look_up);
	sigprocmask(SIG_SETMASK, &before, NULL);
	close(pair[1]);
	if (directory->pid < 0)
		return -error;
	directory->pidfd = (int)syscall(SYS_pidfd_open, directory->pid, 0);
	if (directory->pidfd < 0 || fcntl(directory->socket, F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	return 0;
}

int
directory_new(directory_look_up_fn *look_up, struct directory **directory_r)
{
	struct directory *directory = xcalloc(1, sizeof(*directory));
	int r;

	directory->socket = directory->pidfd = -1;
	TAILQ_INIT(&directory->waiting);
	TAILQ_INIT(&directory->asked);
	frame_reader_init(&directory->reader, FROM_DIRECTORY);
	frame_writer_init(&directory->writer, WAITING_BYTES);
	r = fork_helper(directory, look_up ? look_up : directory_look_up);
	if (r < 0)
		directory_free(directory);
	else
		*directory_r = directory;
	return r;
}

void
directory_watch(struct directory *directory, struct event_base *base,
		void (*on_lost)(void *arg), void *arg)
{
	directory->base = base;
	directory->on_lost = on_lost;
	directory->arg = arg;
	directory->readable = xalloc_check(event_new(base, directory->socket,
						     EV_READ | EV_PERSIST, on_readable,
						     directory));
	directory->writable = xalloc_check(event_new(base, directory->socket, EV_WRITE,
						     on_writable, directory));
	event_add(directory->readable, NULL);
}

void
directory_free(struct directory *directory)
{
	struct directory_question *question;
	siginfo_t info;

	if (!directory)
		return;
	while ((question = TAILQ_FIRST(&directory->waiting)))
		question_free(question);
	while ((question = TAILQ_FIRST(&directory->asked)))
		question_free(question);
	if (directory->readable) {
		event_free(directory->readable);
		event_free(directory->writable);
	}
	/* It ends with its socket, and its children with it. */
	if (directory->socket >= 0)
		close(directory->socket);
	if (directory->pidfd >= 0) {
		syscall(SYS_pidfd_send_signal, directory->pidfd, SIGKILL, NULL, 0);
		while (waitid(P_PIDFD, (id_t)directory->pidfd, &info, WEXITED) < 0 &&
		       errno == EINTR)
			;
		close(directory->pidfd);
	}
	frame_reader_done(&directory->reader);
	frame_writer_done(&directory->writer);
	free(directory);
}

pid_t
directory_pid(const struct directory *directory)
{
	return directory->pid;
}
