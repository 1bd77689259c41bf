/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the helper's process, the socket to it, and lookups.
 * Reads:   PERSON, from a process whose children parse the answers of name services. */
#include "host/directory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include <event2/event.h>
#include <event2/event_struct.h>

#include "base/own.h"
#include "base/passrights.h"
#include "base/xalloc.h"
#include "host/forker.h"
#include "host/helper.h"
#include "proto/frame.h"

#define TRIES 2				/* a lookup that ends the helper is not sent for ever */
#define GRACE_S 2			/* beyond the helper's own time limit */
#define WAITING_BYTES (32 * 1024 * 1024)	/* lookups that the helper has not read yet */

/* WAITS ──send──> ASKED ──PERSON, time limit──> answered from the loop
 *                 ASKED ──end of the helper──> WAITS, at most TRIES times */
struct directory_lookup {
	TAILQ_ENTRY(directory_lookup) link;
	struct directory *directory;
	bool asked;
	unsigned int tries;
	uint64_t id;
	uid_t uid;
	char **group;
	size_t n;
	unsigned int seconds;
	int error;			/* passed to the owner by due */
	struct event *due;
	void (*on_answer)(void *arg, int error, const struct directory_person *person);
	void *arg;
};

TAILQ_HEAD(directory_lookups, directory_lookup);

struct directory {
	struct event_base *base;
	struct helper helper;
	struct frame_reader reader;
	struct frame_writer writer;
	struct event readable, writable;
	struct directory_lookups waiting, asked;
	unsigned int n_asked;
	uint64_t last_id;
};

/* ---- lookups ---- */

static void
lookup_free(struct directory_lookup *lookup)
{
	struct directory *directory = lookup->directory;

	TAILQ_REMOVE(lookup->asked ? &directory->asked : &directory->waiting, lookup, link);
	directory->n_asked -= lookup->asked;
	event_free(lookup->due);
	for (size_t i = 0; i < lookup->n; i++)
		free(lookup->group[i]);
	free(lookup->group);
	free(lookup);
}

static void
directory_settle(struct directory_lookup *lookup, int error, const struct directory_person *person)
{
	void (*on_answer)(void *arg, int error, const struct directory_person *person) =
		lookup->on_answer;
	void *arg = lookup->arg;

	lookup_free(lookup);
	on_answer(arg, error, person);
}

/* Fails the lookup; its owner is called from the loop. */
static void
directory_fail_later(struct directory_lookup *lookup, int error)
{
	static const struct timeval at_once = { 0, 0 };

	lookup->error = error;
	evtimer_add(lookup->due, &at_once);
}

/* ---- the helper ---- */

static void directory_send_waiting(struct directory *directory);
static void directory_on_readable(evutil_socket_t fd, short what, void *arg);
static void directory_on_writable(evutil_socket_t fd, short what, void *arg);

static void
directory_open(struct directory *directory)
{
	const int socket = directory->helper.socket;

	passrights_set(socket, false);
	frame_reader_done(&directory->reader);
	frame_writer_done(&directory->writer);
	frame_reader_init(&directory->reader, FROM_DIRECTORY);
	frame_writer_init(&directory->writer, WAITING_BYTES);
	event_assign(&directory->readable, directory->base, socket, EV_READ | EV_PERSIST,
		     directory_on_readable, directory);
	event_assign(&directory->writable, directory->base, socket, EV_WRITE,
		     directory_on_writable, directory);
	event_add(&directory->readable, NULL);
}

static void
directory_on_made(void *arg)
{
	struct directory *directory = arg;

	directory_open(directory);
	helper_is_back(&directory->helper);
	directory_send_waiting(directory);
}

/* The helper is made again, and asked again. */
static void
directory_lose_helper(struct directory *directory, int error)
{
	struct directory_lookup *lookup, *before;

	event_del(&directory->readable);
	event_del(&directory->writable);
	for (lookup = TAILQ_LAST(&directory->asked, directory_lookups); lookup; lookup = before) {
		before = TAILQ_PREV(lookup, directory_lookups, link);
		if (lookup->error)
			continue;
		if (lookup->tries == TRIES) {
			directory_fail_later(lookup, error);
			continue;
		}
		TAILQ_REMOVE(&directory->asked, lookup, link);
		TAILQ_INSERT_HEAD(&directory->waiting, lookup, link);
		lookup->asked = false;
		directory->n_asked--;
	}
	helper_renew(&directory->helper, directory->base, error, directory_on_made, directory);
}

static void
take_person(struct directory *directory, const struct msg_person *said)
{
	struct directory_person person = { .uid = said->uid,
					   .member = (unsigned char *)said->member.at };
	struct directory_lookup *lookup;
	char user[DIRECTORY_USER_MAX + 1];

	TAILQ_FOREACH(lookup, &directory->asked, link)
		if (lookup->id == said->id)
			break;
	if (!lookup || lookup->error)
		return;		/* the owner cancelled it, or its time was over */
	if (said->error == 0 && said->member.len != lookup->n) {
		directory_settle(lookup, -EBADMSG, NULL);
		return;
	}
	if (said->has_user) {
		memcpy(user, said->user.at, said->user.len);
		user[said->user.len] = '\0';
		person.user = user;
	}
	directory_settle(lookup, -(int)said->error, said->error ? NULL : &person);
}

static void
directory_on_readable(evutil_socket_t fd, short, void *arg)
{
	struct directory *directory = arg;
	struct frame frame = { 0 };
	int r = 1;

	while ((r = frame_reader_read(&directory->reader, (int)fd, &frame)) == 1) {
		take_person(directory, &frame.msg.person);
		frame_done(&frame);
	}
	if (r < 0)
		directory_lose_helper(directory, r);
	directory_send_waiting(directory);
}

static void
directory_on_writable(evutil_socket_t fd, short, void *arg)
{
	struct directory *directory = arg;
	int r = frame_writer_flush(&directory->writer, (int)fd);

	if (r < 0)
		directory_lose_helper(directory, r);
	else if (r == 1)
		event_add(&directory->writable, NULL);
}

/* ---- asking ---- */

static int
put_lookup(struct directory *directory, const struct directory_lookup *lookup)
{
	own_mem struct msg_str *item = xcalloc(lookup->n + 1, sizeof(*item));
	struct msg msg = { .type = MSG_WHO,
			   .who = { .id = lookup->id, .uid = lookup->uid,
				    .seconds = lookup->seconds,
				    .groups = { item, lookup->n } } };

	for (size_t i = 0; i < lookup->n; i++)
		item[i] = msg_str(lookup->group[i]);
	return frame_writer_put(&directory->writer, &msg, NULL, 0);
}

/* Sends waiting lookups in their order, as many as the helper may have. */
static void
directory_send_waiting(struct directory *directory)
{
	struct directory_lookup *lookup;

	while (directory->helper.socket >= 0 && directory->n_asked < DIRECTORY_AT_ONCE &&
	       (lookup = TAILQ_FIRST(&directory->waiting))) {
		const struct timeval most = { .tv_sec = lookup->seconds + GRACE_S };
		int r;

		TAILQ_REMOVE(&directory->waiting, lookup, link);
		TAILQ_INSERT_TAIL(&directory->asked, lookup, link);
		lookup->asked = true;
		directory->n_asked++;
		lookup->tries++;
		evtimer_add(lookup->due, &most);
		r = put_lookup(directory, lookup);
		if (r < 0)
			directory_fail_later(lookup, r);
	}
	if (directory->helper.socket >= 0 && frame_writer_waits(&directory->writer))
		event_add(&directory->writable, NULL);
}

/* Reports a lookup that could not be sent, or that is long after its time limit. The helper should
 * have reported the second case itself: it is made again. */
static void
directory_on_due(evutil_socket_t, short, void *arg)
{
	struct directory_lookup *lookup = arg;
	struct directory *directory = lookup->directory;
	const bool late = !lookup->error && lookup->asked && directory->helper.socket >= 0;

	directory_settle(lookup, lookup->error ? lookup->error : -ETIMEDOUT, NULL);
	if (late)
		directory_lose_helper(directory, -ETIMEDOUT);
	directory_send_waiting(directory);
}

struct directory_lookup *
directory_ask(struct directory *directory, uid_t uid, const char *const *group, size_t n,
	      unsigned int seconds,
	      void (*on_answer)(void *arg, int error, const struct directory_person *person),
	      void *arg)
{
	struct directory_lookup *lookup = xcalloc(1, sizeof(*lookup));

	*lookup = (struct directory_lookup){ .directory = directory,
						 .id = ++directory->last_id, .uid = uid, .n = n,
						 .seconds = seconds, .on_answer = on_answer,
						 .arg = arg };
	lookup->group = xcalloc(n + 1, sizeof(*lookup->group));
	for (size_t i = 0; i < n; i++)
		lookup->group[i] = xstrdup(group[i]);
	lookup->due = xalloc_check(evtimer_new(directory->base, directory_on_due, lookup));
	TAILQ_INSERT_TAIL(&directory->waiting, lookup, link);
	if (directory->helper.socket < 0)
		evtimer_add(lookup->due, &(struct timeval){ .tv_sec = seconds + GRACE_S });
	directory_send_waiting(directory);
	return lookup;
}

void
directory_cancel(struct directory_lookup *lookup)
{
	lookup_free(lookup);
}

/* ---- creation and end ---- */

int
directory_new(directory_look_up_fn *look_up, struct directory **directory_r)
{
	struct directory *directory = xcalloc(1, sizeof(*directory));
	int r;

	TAILQ_INIT(&directory->waiting);
	TAILQ_INIT(&directory->asked);
	directory->helper.socket = directory->helper.pidfd = -1;
	directory_plan(look_up);
	r = helper_fork(&directory->helper, HELPER_DIRECTORY);
	if (r < 0)
		directory_free(directory);
	else
		*directory_r = directory;
	return r;
}

void
directory_plan(directory_look_up_fn *look_up)
{
	static directory_look_up_fn *planned;

	planned = look_up ? look_up : directory_look_up;
	helper_plan(HELPER_DIRECTORY, directory_live, &planned);
}

void
directory_watch(struct directory *directory, struct event_base *base)
{
	directory->base = base;
	directory_open(directory);
}

void
directory_free(struct directory *directory)
{
	struct directory_lookup *lookup;

	if (!directory)
		return;
	while ((lookup = TAILQ_FIRST(&directory->waiting)))
		lookup_free(lookup);
	while ((lookup = TAILQ_FIRST(&directory->asked)))
		lookup_free(lookup);
	if (directory->base) {
		event_del(&directory->readable);
		event_del(&directory->writable);
	}
	helper_done(&directory->helper);
	frame_reader_done(&directory->reader);
	frame_writer_done(&directory->writer);
	free(directory);
}

pid_t
directory_pid(const struct directory *directory)
{
	return directory->helper.pid;
}
