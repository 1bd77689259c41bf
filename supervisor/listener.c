/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: one listening socket.
 * Reads:   only the kernel's facts about a client. */
#include "supervisor/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/accepting.h"
#include "base/jsonout.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/own.h"
#include "base/watched.h"
#include "base/xalloc.h"
#include "mcp/jsonrpc.h"
#include "supervisor/stream.h"

#define ACCEPTS_PER_TURN 16

struct listener {
	int fd;
	struct stream_set *set;
	struct event *readable;
	struct accepting accepting;
};

/* Tells a client why it is turned away; text that does not fit its buffer is lost. */
static void
listener_refuse(int fd, uid_t uid, int error)
{
	const char *text = error == -EDQUOT ? "too many connections of this user"
					    : "too many connections";
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
listener_serve(struct listener *l, int accepted)
{
	own_fd int fd = accepted;
	struct ucred peer;
	socklen_t len = sizeof(peer);
	int r;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 ||
	    len != sizeof(peer)) {
		log_line(LOG_WARNING, "session-refused", "err=no-peer-credentials");
		return;
	}
	r = stream_open(l->set, fd, fd, false, peer.uid);
	if (r < 0)
		listener_refuse(fd, peer.uid, r);
	else
		give_fd(fd);
}

static void
listener_on_connection(evutil_socket_t fd, short what, void *arg)
{
	struct listener *l = arg;

	(void)what;
	for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
		int accepted = accept4((int)fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (accepted >= 0) {
			listener_serve(l, accepted);
		} else if (errno == EAGAIN) {
			return;
		} else if (errno != EINTR && errno != ECONNABORTED) {
			accepting_pause(&l->accepting, errno);
			event_del(l->readable);
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
listener_new(struct loop *loop, int fd, struct stream_set *set,
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
	accepting_init(&l->accepting, loop_base(loop), listener_on_resume, l);
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
	if (!l)
		return;
	event_free(l->readable);
	accepting_free(&l->accepting);
	if (l->fd >= 0)
		close(l->fd);
	free(l);
}
