/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: one listening socket, and connections whose user is looked up.
 * Reads:   only the kernel's facts about a client. */
#include "supervisor/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/accepting.h"
#include "base/jsonout.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/own.h"
#include "base/watched.h"
#include "base/why.h"
#include "base/xalloc.h"
#include "govern/gate.h"
#include "mcp/jsonrpc.h"
#include "supervisor/stream.h"

#define ACCEPTS_PER_TURN 16
#define ARRIVALS_MAX 256	/* connections whose user is being looked up */

/* A connection whose user is not known yet. What the client sends waits in its socket. */
struct arrival {
	LIST_ENTRY(arrival) link;
	struct listener *listener;
	int fd;
	uid_t uid;
	struct gate_wait identity;
};

struct listener {
	int fd;
	struct stream_set *set;
	struct gate *gate;
	LIST_HEAD(, arrival) arrivals;
	unsigned int n_arrivals;
	struct event *readable;
	struct accepting accepting;
};

/* Says to a client why it is refused; text that does not fit its buffer is lost. */
static void
listener_refuse(int fd, uid_t uid, int error, const char *why)
{
	const char *text = error == -EUSERS ? "too many connections"
			   : error == -EDQUOT ? "too many connections of this user" : why;
	struct jsonout out;
	size_t len;
	char *line;

	jsonout_init(&out);
	jsonrpc_write_error(&out, NULL, JSONRPC_INTERNAL_ERROR, text, NULL);
	line = jsonout_take_line(&out, &len);
	(void)!send(fd, line, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	free(line);
	log_line(LOG_WARNING, "session-refused", "tenant=%u err=%s", uid,
		 strerrorname_np(-error));
}

static void
arrival_free(struct arrival *arrival)
{
	LIST_REMOVE(arrival, link);
	arrival->listener->n_arrivals--;
	gate_unwait(&arrival->identity);
	if (arrival->fd >= 0)
		close(arrival->fd);
	free(arrival);
}

/* Opens the stream if it is known whose the uid is. */
static void
arrival_go_on(void *arg)
{
	struct arrival *arrival = arg;
	struct listener *l = arrival->listener;
	struct why why = { .text = "" };
	uid_t owner;
	int r = gate_owner(l->gate, arrival->uid, &arrival->identity, &owner, &why);

	if (r == -EINPROGRESS)
		return;
	if (r == 0)
		r = stream_open(l->set, arrival->fd, arrival->fd, false, owner);
	if (r < 0)
		listener_refuse(arrival->fd, arrival->uid, r, why.text);
	else
		arrival->fd = -1;
	arrival_free(arrival);
}

static void
listener_serve(struct listener *l, int accepted)
{
	own_fd int fd = accepted;
	struct ucred peer;
	socklen_t len = sizeof(peer);
	struct arrival *arrival;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 ||
	    len != sizeof(peer)) {
		log_line(LOG_WARNING, "session-refused", "err=no-peer-credentials");
		return;
	}
	if (l->n_arrivals >= ARRIVALS_MAX) {
		listener_refuse(fd, peer.uid, -EUSERS, NULL);
		return;
	}
	arrival = xcalloc(1, sizeof(*arrival));
	*arrival = (struct arrival){ .listener = l, .fd = give_fd(fd), .uid = peer.uid,
				     .identity = { .on_known = arrival_go_on, .arg = arrival } };
	LIST_INSERT_HEAD(&l->arrivals, arrival, link);
	l->n_arrivals++;
	arrival_go_on(arrival);
}

static void
listener_pause(struct listener *l, int error)
{
	accepting_pause(&l->accepting, error);
	event_del(l->readable);
}

static void
listener_on_connection(evutil_socket_t fd, short, void *arg)
{
	struct listener *l = arg;

	for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
		int accepted = accept4((int)fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (accepted >= 0) {
			listener_serve(l, accepted);
			if (!accepting_is_reserved(&l->accepting, accepted))
				continue;
			listener_pause(l, EMFILE);
			return;
		} else if (errno == EAGAIN) {
			return;
		} else if (errno != EINTR && errno != ECONNABORTED) {
			listener_pause(l, errno);
			return;
		}
	}
}

static void
listener_on_resume(void *arg)
{
	struct listener *l = arg;

	event_add(l->readable, NULL);
}

int
listener_new(struct loop *loop, int fd, struct stream_set *set, struct gate *gate,
	     struct listener **listener_r)
{
	int flags = fcntl(fd, F_GETFL);
	struct listener *l;

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return -errno;
	watched_refuse(fd);
	l = xcalloc(1, sizeof(*l));
	l->fd = fd;
	l->set = set;
	l->gate = gate;
	LIST_INIT(&l->arrivals);
	accepting_init(&l->accepting, loop_base(loop), listener_on_resume, l, true);
	l->readable = xalloc_check(event_new(loop_base(loop), fd, EV_READ | EV_PERSIST,
					     listener_on_connection, l));
	if (event_add(l->readable, NULL) < 0) {
		l->fd = -1;
		listener_free(l);
		return -EINVAL;
	}
	*listener_r = l;
	return 0;
}

void
listener_free(struct listener *l)
{
	struct arrival *arrival;

	if (!l)
		return;
	while ((arrival = LIST_FIRST(&l->arrivals)))
		arrival_free(arrival);
	event_free(l->readable);
	accepting_free(&l->accepting);
	if (l->fd >= 0)
		close(l->fd);
	free(l);
}
