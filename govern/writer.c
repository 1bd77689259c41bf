/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor: its loop, and a thread of its own.   Owns: the thread, and both lists of
 * work. */
#include "govern/writer.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/log.h"
#include "base/xalloc.h"

#define STACK_BYTES (1024 * 1024)
#define WAITING_MAX 4096		/* pieces of work, and their bytes */
#define WAITING_BYTES (16 * 1024 * 1024)
#define END_S 10			/* for one piece of work, when the service ends */

STAILQ_HEAD(writings, writing);

struct writer {
	pthread_t thread;
	pthread_mutex_t lock;		/* of the following */
	pthread_cond_t more;
	pthread_cond_t progress;	/* a piece of work is done, or the thread ends */
	struct writings todo, done;
	bool ends, has_ended;
	/* The loop's. */
	int fd;				/* eventfd: something is done */
	struct event *wake;
	size_t waiting, waiting_bytes;
	const char *name;
};

static struct writer *abandoned;	/* the last one that a disk has held at the end */

void
writing_wait_at(struct writing_wait *wait, struct writing_wait **place)
{
	wait->error = 0;
	wait->place = place;
	*place = wait;
}

void
writing_end_wait(struct writing_wait *wait, int error, bool at_once)
{
	if (!wait)
		return;
	wait->place = NULL;
	wait->error = error;
	if (!at_once)
		wait->on_written(wait->arg, error);
}

void
writing_unwait(struct writing_wait *wait)
{
	if (wait->place)
		*wait->place = NULL;
	wait->place = NULL;
}

static void
tell_loop(const struct writer *writer)
{
	const uint64_t one = 1;

	/* It can fail only if the count is full, and then the loop is told already. */
	if (write(writer->fd, &one, sizeof(one)) < 0)
		return;
}

static void *
work(void *arg)
{
	struct writer *writer = arg;
	struct writing *writing;
	bool first;

	pthread_mutex_lock(&writer->lock);
	for (;;) {
		while (!(writing = STAILQ_FIRST(&writer->todo)) && !writer->ends)
			pthread_cond_wait(&writer->more, &writer->lock);
		if (!writing)
			break;
		STAILQ_REMOVE_HEAD(&writer->todo, link);
		pthread_mutex_unlock(&writer->lock);
		writing->write(writing);
		pthread_mutex_lock(&writer->lock);
		first = STAILQ_EMPTY(&writer->done);
		STAILQ_INSERT_TAIL(&writer->done, writing, link);
		pthread_cond_signal(&writer->progress);
		if (first)
			tell_loop(writer);
	}
	writer->has_ended = true;
	pthread_cond_signal(&writer->progress);
	pthread_mutex_unlock(&writer->lock);
	return NULL;
}

static void
take_done(struct writer *writer)
{
	struct writings now = STAILQ_HEAD_INITIALIZER(now);
	struct writing *writing;

	pthread_mutex_lock(&writer->lock);
	STAILQ_CONCAT(&now, &writer->done);
	pthread_mutex_unlock(&writer->lock);
	while ((writing = STAILQ_FIRST(&now))) {
		STAILQ_REMOVE_HEAD(&now, link);
		writer->waiting--;
		writer->waiting_bytes -= writing->bytes;
		writing->written(writing);
	}
}

static void
writer_on_wake(evutil_socket_t fd, short, void *arg)
{
	uint64_t count;

	if (read(fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		return;
	take_done(arg);
}

/* Every signal is the loop's. The thread inherits its name: behind the fence of files nobody can
 * give it one. */
static int
start_thread(struct writer *writer, const char *name)
{
	pthread_attr_t attributes;
	sigset_t all, before;
	char own[16];
	int r = pthread_attr_init(&attributes);

	if (r != 0)
		return -r;
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	prctl(PR_GET_NAME, own);
	prctl(PR_SET_NAME, name);
	r = pthread_create(&writer->thread, &attributes, work, writer);
	prctl(PR_SET_NAME, own);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return -r;
}

static void
writer_release(struct writer *writer)
{
	if (writer->wake)
		event_free(writer->wake);
	if (writer->fd >= 0)
		close(writer->fd);
	pthread_cond_destroy(&writer->progress);
	pthread_cond_destroy(&writer->more);
	pthread_mutex_destroy(&writer->lock);
	free(writer);
}

int
writer_new(struct event_base *base, const char *name, struct writer **writer_r)
{
	struct writer *writer = xcalloc(1, sizeof(*writer));
	int r = 0;

	STAILQ_INIT(&writer->todo);
	STAILQ_INIT(&writer->done);
	pthread_mutex_init(&writer->lock, NULL);
	pthread_cond_init(&writer->more, NULL);
	pthread_cond_init(&writer->progress, NULL);
	writer->name = name;
	writer->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (writer->fd < 0)
		r = -errno;
	if (r == 0) {
		writer->wake = xalloc_check(event_new(base, writer->fd, EV_READ | EV_PERSIST,
						      writer_on_wake, writer));
		r = event_add(writer->wake, NULL) < 0 ? -ENOMEM : start_thread(writer, name);
	}
	if (r < 0) {
		writer_release(writer);
		return r;
	}
	*writer_r = writer;
	return 0;
}

/* Asks the thread to end. False: it hangs in a piece of work. */
static bool
await_end(struct writer *writer)
{
	struct timespec until;
	int r = 0;

	pthread_mutex_lock(&writer->lock);
	writer->ends = true;
	pthread_cond_signal(&writer->more);
	while (!writer->has_ended && r == 0) {
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_sec += END_S;
		r = pthread_cond_clockwait(&writer->progress, &writer->lock, CLOCK_MONOTONIC,
					   &until);
	}
	pthread_mutex_unlock(&writer->lock);
	return r == 0;
}

bool
writer_free(struct writer *writer)
{
	if (!writer)
		return true;
	if (!await_end(writer)) {
		log_line(LOG_ERR, "writer-hangs", "what=%s lost=%zu", writer->name,
			 writer->waiting);
		event_free(writer->wake);
		pthread_detach(writer->thread);
		abandoned = writer;
		return false;
	}
	pthread_join(writer->thread, NULL);
	take_done(writer);
	writer_release(writer);
	return true;
}

/* A thread takes two switches of the processor, which is most of what a small record takes. */
static bool
write_at_once(const struct writer *writer, struct writing *writing)
{
	if (!writer)
		writing->write(writing);
	return !writer ||
	       (writer->waiting == 0 && writing->write_now && writing->write_now(writing));
}

void
writer_put(struct writer *writer, struct writing *writing)
{
	writing->at_once = write_at_once(writer, writing);
	if (writing->at_once) {
		writing->written(writing);
		return;
	}
	writer->waiting++;
	writer->waiting_bytes += writing->bytes;
	pthread_mutex_lock(&writer->lock);
	STAILQ_INSERT_TAIL(&writer->todo, writing, link);
	pthread_cond_signal(&writer->more);
	pthread_mutex_unlock(&writer->lock);
}

size_t
writer_waiting(const struct writer *writer)
{
	return writer ? writer->waiting : 0;
}

bool
writer_is_full(const struct writer *writer, bool happened)
{
	const size_t times = happened ? 2 : 1;

	return writer && (writer->waiting >= times * WAITING_MAX ||
			  writer->waiting_bytes >= times * WAITING_BYTES);
}
