/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: a client's descriptors and buffers, its MCP stream.
 * Reads:   bytes of a client, hostile from the first; cut into lines here. */
#include "supervisor/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>

#include "base/clock.h"
#include "base/fair.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/rota.h"
#include "base/watched.h"
#include "base/why.h"
#include "base/xalloc.h"
#include "engine/engine.h"
#include "govern/gate.h"
#include "mcp/jsonrpc.h"
#include "mcp/stream.h"
#include "policy/config.h"
#include "supervisor/intake.h"
#include "supervisor/stream_account.h"

#define TRIM_BYTES (8 * 1024 * 1024)

struct stream {
	struct stream *next, *prev;
	struct stream_set *set;
	struct stream_account *account;
	struct tenant *tenant;
	struct mcp_stream *mcp;
	struct intake *intake;		/* a file comes in, and nothing else; NULL: none */
	bool has_spoken;		/* its first line was taken */
	struct bufferevent *in, *out;	/* equal if the descriptors are equal */
	size_t searched;		/* bytes of the input without a newline */
	struct event *stall;		/* checks that a paused client reads */
	uint64_t sent, stall_sent;	/* bytes, now and at the last check */
	struct event *gone;		/* after half-close: reports the close */
	int gone_fd;
	struct gate_wait identity;	/* nothing is read before the user is known */
	struct rota_entry turn;		/* nothing is read while a long line waits */
	bool has_turn;			/* the long line may be taken now */
	bool admitted;			/* the user was known, and there was room */
	bool paused;			/* too much is unsent to take requests */
	bool input_ended;		/* the client has closed its writing side, or reading has
					 * stopped */
	const char *refusal;		/* why further input is discarded; NULL: it is not */
	size_t leaving_bytes;		/* of a closed stream: in its buffers when it was closed */
	uint64_t active_ms;		/* when the last line came or went */
	bool closed;			/* waits to be freed */
};

struct stream_set {
	struct stream_options options;
	struct stream_accounts accounts;
	struct stream *first;
	size_t leaving_bytes;		/* of closed streams, which are not freed yet */
	struct event *trim;		/* gives memory back to the kernel */
	void (*on_empty)(void *arg);
	void *arg;
};

static struct evbuffer *
stream_output_of(const struct stream *s)
{
	return bufferevent_get_output(s->out);
}

static struct evbuffer *
stream_input_of(const struct stream *s)
{
	return bufferevent_get_input(s->in);
}

static size_t
waiting_bytes(const struct stream *s)
{
	return evbuffer_get_length(stream_input_of(s)) + evbuffer_get_length(stream_output_of(s));
}

/* ---- the end ---- */

static void on_buffer(struct evbuffer *buffer, const struct evbuffer_cb_info *info,
		      void *arg);

static void
stream_free(void *object)
{
	static const struct timeval trim_later = { 1, 0 };
	struct stream *s = object;
	struct stream_set *set = s->set;

	mcp_stream_free(s->mcp);
	intake_cancel(s->intake);
	/* libevent frees the buffers in a later turn, without calling on_buffer(). */
	evbuffer_remove_cb(stream_input_of(s), on_buffer, s);
	evbuffer_remove_cb(stream_output_of(s), on_buffer, s);
	stream_account_charge(&set->accounts, s->account, 0, waiting_bytes(s));
	set->leaving_bytes -= s->leaving_bytes;
	if (s->leaving_bytes >= TRIM_BYTES)
		evtimer_add(set->trim, &trim_later);
	if (s->out != s->in)
		bufferevent_free(s->out);
	bufferevent_free(s->in);
	event_free(s->stall);
	if (s->gone) {
		event_free(s->gone);
		close(s->gone_fd);
	}
	if (s->admitted) {
		s->account->admitted--;
	}
	stream_account_close(&set->accounts, s->account);
	if (s->tenant)
		tenant_release(s->tenant);
	free(s);
	if (!set->first && set->on_empty)
		set->on_empty(set->arg);
}

static void
stream_close(struct stream *s, const char *why)
{
	if (s->closed)
		return;
	s->closed = true;
	gate_unwait(&s->identity);
	rota_forget(&s->turn);
	if (s->admitted)
		gate_session(s->set->options.gate, tenant_principal(s->tenant), "stream", why);
	else
		log_line(LOG_WARNING, "session-refused", "tenant=%u why=%s", s->account->uid, why);
	bufferevent_disable(s->in, EV_READ | EV_WRITE);
	bufferevent_disable(s->out, EV_READ | EV_WRITE);
	event_del(s->stall);
	if (s->gone)
		event_del(s->gone);
	if (s->prev)
		s->prev->next = s->next;
	else
		s->set->first = s->next;
	if (s->next)
		s->next->prev = s->prev;
	stream_account_closes(&s->set->accounts, s->account);
	s->leaving_bytes = waiting_bytes(s);
	s->set->leaving_bytes += s->leaving_bytes;
	loop_free_later(s->set->options.loop, stream_free, s);
}

/* Must the next line wait? */
static bool
is_held(const struct stream *s)
{
	return s->identity.waits || rota_waits(&s->turn);
}

/* Closes a stream that has nothing left to do. */
static void
close_if_done(struct stream *s)
{
	if (!s->closed && s->input_ended && !s->paused && !is_held(s) && !s->intake &&
	    mcp_stream_in_flight(s->mcp) == 0 && evbuffer_get_length(stream_output_of(s)) == 0)
		stream_close(s, "done");
}

/* ---- what waits, and for whom ---- */

static size_t
tenant_most(const struct stream *s)
{
	return TENANT_BUFFERED_MAX + s->set->options.config->service.line_max;
}

/* Closes the stream with the most waiting bytes of the uid with the most. */
static void
stream_relieve(const struct stream_set *set)
{
	const struct stream_account *account = stream_account_fullest(&set->accounts);
	struct stream *fullest = NULL;

	for (struct stream *s = set->first; s; s = s->next)
		if (s->account == account &&
		    (!fullest || waiting_bytes(s) > waiting_bytes(fullest)))
			fullest = s;
	if (fullest)
		stream_close(fullest, "buffers-full");
}

static void
on_buffer(struct evbuffer *buffer, const struct evbuffer_cb_info *info, void *arg)
{
	struct stream *s = arg;
	struct stream_set *set = s->set;

	if (buffer == stream_output_of(s))
		s->sent += info->n_deleted;
	stream_account_charge(&set->accounts, s->account, info->n_added, info->n_deleted);
	if (!info->n_added)
		return;
	if (s->account->buffered_bytes > tenant_most(s))
		stream_close(s, "tenant-buffers-full");
	else if (set->accounts.buffered_bytes - set->leaving_bytes > set->options.buffered_max)
		stream_relieve(set);
}

static bool
stream_on_hold(void *arg, size_t bytes)
{
	const struct stream *s = arg;

	if (s->account->buffered_bytes > tenant_most(s) ||
	    bytes > tenant_most(s) - s->account->buffered_bytes)
		return false;
	stream_account_charge(&s->set->accounts, s->account, bytes, 0);
	return true;
}

static void
stream_on_let_go(void *arg, size_t bytes)
{
	const struct stream *s = arg;

	stream_account_charge(&s->set->accounts, s->account, 0, bytes);
}

static void
arm_stall(struct stream *s)
{
	const struct timeval wait = { s->refusal ? STREAM_LINGER_S : STREAM_STALL_S, 0 };

	s->stall_sent = s->sent;
	evtimer_add(s->stall, &wait);
}

static void
on_stall_check(evutil_socket_t, short, void *arg)
{
	struct stream *s = arg;

	if (s->refusal)
		stream_close(s, s->refusal);
	else if (s->sent == s->stall_sent)
		stream_close(s, "does-not-read");
	else
		arm_stall(s);
}

static void
free_line(const void *, size_t, void *line)
{
	free(line);
}

/* Writes the bytes that the client's socket takes now, and returns their number. In a later turn of
 * the loop they would be late: before that the used worker is ended, and the next one is made.
 * Errors are ignored here, because they occur again when the rest is written. */
static size_t
write_at_once(struct stream *s, const char *line, size_t len)
{
	ssize_t n = 0;

	if (evbuffer_get_length(stream_output_of(s)) == 0)
		n = write(bufferevent_getfd(s->out), line, len);
	if (n <= 0)
		return 0;
	s->sent += (uint64_t)n;
	return (size_t)n;
}

static void
on_stream_line(void *arg, char *line, size_t len, bool may_drop)
{
	struct stream *s = arg;
	size_t written;
	size_t unsent;

	if (s->closed || (may_drop && s->paused)) {
		free(line);
		return;
	}
	s->active_ms = clock_ms();
	written = write_at_once(s, line, len);
	if (written == len) {
		free(line);
		return;
	}
	xassert(evbuffer_add_reference(stream_output_of(s), line + written, len - written,
					free_line, line) == 0);
	unsent = evbuffer_get_length(stream_output_of(s));
	if (unsent > STREAM_OUTPUT_MAX) {
		stream_close(s, "does-not-read");
	} else if (unsent > STREAM_OUTPUT_HIGH && !s->paused && !s->refusal) {
		s->paused = true;
		bufferevent_disable(s->in, EV_READ);
		arm_stall(s);
	}
}

static void
finish_refusal(struct stream *s)
{
	if (s->refusal && evbuffer_get_length(stream_output_of(s)) == 0 &&
	    mcp_stream_in_flight(s->mcp) == 0 &&
	    shutdown(bufferevent_getfd(s->out), SHUT_WR) < 0)
		stream_close(s, s->refusal);	/* a pipe, or gone */
}

static void
on_stream_idle(void *arg)
{
	finish_refusal(arg);
	close_if_done(arg);
}

/* ---- a client that leaves ---- */

/* A socket hangs up, or a pipe has an error, when the output cannot be read any more. */
static bool
nobody_reads(int fd)
{
	struct pollfd p = { .fd = fd };

	return poll(&p, 1, 0) == 1 && (p.revents & (POLLHUP | POLLERR));
}

static void
on_gone_check(evutil_socket_t fd, short, void *arg)
{
	if (nobody_reads((int)fd))
		stream_close(arg, "disconnect");
}

/* For a client that has shut down its writing side and waits for answers. If it then closes the
 * socket, none of the events that the bufferevents wait for reports that. An additional
 * edge-triggered event does. It needs a descriptor of its own. */
static void
watch_for_leaving(struct stream *s)
{
	struct event_base *base = loop_base(s->set->options.loop);
	int fd = bufferevent_getfd(s->out);

	if (nobody_reads(fd)) {
		stream_close(s, "disconnect");
		return;
	}
	if (!(event_base_get_features(base) & EV_FEATURE_ET))
		return;
	s->gone_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (s->gone_fd < 0)
		return;		/* without a watch its calls end by their own limits */
	s->gone = xalloc_check(event_new(base, s->gone_fd,
					 EV_READ | EV_CLOSED | EV_ET | EV_PERSIST,
					 on_gone_check, s));
	if (event_add(s->gone, NULL) < 0) {
		event_free(s->gone);
		close(s->gone_fd);
		s->gone = NULL;
	}
}

/* No further requests are accepted; open ones are answered. */
static void
end_input(struct stream *s)
{
	s->input_ended = true;
	bufferevent_disable(s->in, EV_READ);
	mcp_stream_end_input(s->mcp);
	close_if_done(s);
	if (!s->closed && !s->gone)
		watch_for_leaving(s);
}

/* ---- input ---- */

/* The end of a connection that has brought a file. */
static void
on_intake_end(void *arg, char *line, size_t len)
{
	struct stream *s = arg;

	s->intake = NULL;
	on_stream_line(s, line, len, false);
	s->refusal = "file-came";
	arm_stall(s);
	on_stream_idle(s);
}

/* Passes one line on; len: without its newline; taken: the bytes consumed. */
static void
stream_take_line(struct stream *s, size_t len, size_t taken)
{
	const struct intake_options options = { s->tenant, bufferevent_getfd(s->out),
						on_intake_end, s };
	struct evbuffer *input = stream_input_of(s);
	const char *text;

	s->searched = 0;
	s->active_ms = clock_ms();
	if (len > 0) {
		text = (const char *)evbuffer_pullup(input, (ev_ssize_t)len);
		if (!s->has_spoken && intake_is_asked(text, len))
			s->intake = intake_new(&options, text, len);
		else
			mcp_stream_line(s->mcp, text, text[len - 1] == '\r' ? len - 1 : len);
		s->has_spoken = true;
	}
	evbuffer_drain(input, taken);
}

/* A client that still writes would get an error on its socket, and never read the answer. So its
 * input is discarded for a while, and the service closes its side after the answer. why: a static
 * string, for the log. */
static void
stream_refuse(struct stream *s, const char *why, const char *text)
{
	s->refusal = why;
	mcp_stream_refuse(s->mcp, text);
	evbuffer_drain(stream_input_of(s), evbuffer_get_length(stream_input_of(s)));
	bufferevent_enable(s->in, EV_READ);
	arm_stall(s);
	finish_refusal(s);
}

/* Counts one more stream of the user, if there is room. 0 or -EDQUOT. */
static int
stream_admit(struct stream *s)
{
	const struct stream_options *options = &s->set->options;
	const char *principal = tenant_principal(s->tenant);

	if (s->account->admitted >= gate_sessions_max(options->gate, principal,
						      options->config->service.sessions_per_tenant))
		return -EDQUOT;
	s->account->admitted++;
	s->admitted = true;
	gate_session(options->gate, principal, "stream", NULL);
	return 0;
}

/* Does policy know the user? If it does not any more, each call of an admitted client is
 * refused; a client that was not admitted yet is refused as a whole. */
static bool
stream_is_identified(struct stream *s)
{
	struct why why = { .text = "" };
	int r = gate_identify(s->set->options.gate, tenant_principal(s->tenant), &s->identity,
			      &why);

	if (r == -EINPROGRESS) {
		bufferevent_disable(s->in, EV_READ);
		return false;
	}
	if (!s->admitted && r < 0)
		stream_refuse(s, "not-identified", why.text);
	else if (!s->admitted && stream_admit(s) < 0)
		stream_refuse(s, "too-many-sessions", "too many connections of this user");
	return s->admitted;
}

/* May a line of this many bytes be taken now? If not, the stream waits for its turn. */
static bool
may_take(struct stream *s, size_t len)
{
	if (len < JSONRPC_LONG || s->has_turn) {
		s->has_turn = false;
		return true;
	}
	bufferevent_disable(s->in, EV_READ);
	rota_wait(s->set->options.rota, &s->turn, tenant_principal(s->tenant));
	return false;
}

/* Takes the next line out of the input, if a complete one exists and is wanted. */
static bool
stream_next_line(struct stream *s)
{
	struct evbuffer *input = stream_input_of(s);
	size_t len = evbuffer_get_length(input), most;
	struct evbuffer_ptr from, newline;

	if (s->refusal || s->intake)
		evbuffer_drain(input, len);
	if (s->closed || s->paused || s->refusal || s->intake || len == 0 || rota_waits(&s->turn) ||
	    !stream_is_identified(s))
		return false;
	most = s->set->options.config->service.line_max;
	evbuffer_ptr_set(input, &from, s->searched, EVBUFFER_PTR_SET);
	newline = evbuffer_search(input, "\n", 1, &from);
	if (newline.pos < 0 ? len > most : (size_t)newline.pos > most) {
		char text[96];

		snprintf(text, sizeof(text), "a line is longer than %zu bytes",
			 s->set->options.config->service.line_max);
		stream_refuse(s, "line-too-long", text);
		return false;
	}
	if (newline.pos < 0 && !s->input_ended) {
		s->searched = len;
		return false;
	}
	if (newline.pos >= 0)
		len = (size_t)newline.pos;	/* the last line of all may lack its newline */
	if (!may_take(s, len))
		return false;
	stream_take_line(s, len, len + (newline.pos >= 0));
	return true;
}

static void
stream_take_lines(struct stream *s)
{
	while (stream_next_line(s))
		;
	close_if_done(s);
}

/* The client has passed descriptors that take long to close. True: the stream is closed. */
static bool
stream_has_stalled(struct stream *s)
{
	if (!watched_stalled("client", tenant_principal(s->tenant)))
		return false;
	stream_close(s, "peer-stalled");
	return true;
}

static void
read_on(struct stream *s)
{
	if (!s->closed && !s->paused && !s->input_ended && !is_held(s))
		bufferevent_enable(s->in, EV_READ);
}

/* The client has stopped writing, and its last line was taken. */
static void
end_input_if_taken(struct stream *s)
{
	if (s->input_ended && !s->closed && !is_held(s))
		end_input(s);
}

static void
on_identified(void *arg)
{
	struct stream *s = arg;

	if (!stream_is_identified(s))
		return;
	stream_take_lines(s);
	read_on(s);
	end_input_if_taken(s);
}

/* Nothing was read while the line waited, so the client may be gone unseen. */
static void
stream_on_turn(void *arg)
{
	struct stream *s = arg;

	if (nobody_reads(bufferevent_getfd(s->out))) {
		stream_close(s, "disconnect");
		return;
	}
	s->has_turn = true;
	stream_take_lines(s);
	s->has_turn = false;
	read_on(s);
	end_input_if_taken(s);
}

static void
stream_on_readable(struct bufferevent *, void *arg)
{
	if (!stream_has_stalled(arg))
		stream_take_lines(arg);
}

static void
stream_on_written(struct bufferevent *, void *arg)
{
	struct stream *s = arg;

	if (s->closed)
		return;
	if (s->paused && evbuffer_get_length(stream_output_of(s)) <= STREAM_OUTPUT_LOW) {
		s->paused = false;
		event_del(s->stall);
		stream_take_lines(s);
		read_on(s);
	}
	finish_refusal(s);
	close_if_done(s);
}

static void
stream_on_event(struct bufferevent *, short what, void *arg)
{
	struct stream *s = arg;

	if (stream_has_stalled(s) || s->closed)
		return;
	if (what & BEV_EVENT_ERROR) {
		stream_close(s, "disconnect");
	} else if (what & BEV_EVENT_EOF) {
		s->input_ended = true;
		stream_take_lines(s);
		end_input_if_taken(s);
	}
}

/* ---- the beginning ---- */

static struct bufferevent *
new_buffers(struct stream *s, int fd, bool borrow)
{
	struct bufferevent *bev;

	bev = bufferevent_socket_new(loop_base(s->set->options.loop), fd,
				     borrow ? 0 : BEV_OPT_CLOSE_ON_FREE);
	xalloc_check(bev);
	bufferevent_setcb(bev, stream_on_readable, stream_on_written, stream_on_event, s);
	return bev;
}

static void
stream_start(struct stream *s, int in, int out, bool borrow)
{
	const struct mcp_stream_watcher watcher = { on_stream_line, on_stream_idle, stream_on_hold,
						    stream_on_let_go, s };

	s->mcp = mcp_stream_new(s->set->options.mcp, s->tenant, &watcher);
	s->stall = xalloc_check(evtimer_new(loop_base(s->set->options.loop),
					    on_stall_check, s));
	s->in = new_buffers(s, in, borrow);
	s->out = in == out ? s->in : new_buffers(s, out, borrow);
	bufferevent_setwatermark(s->out, EV_WRITE, STREAM_OUTPUT_LOW, 0);
	xalloc_check(evbuffer_add_cb(stream_input_of(s), on_buffer, s));
	xalloc_check(evbuffer_add_cb(stream_output_of(s), on_buffer, s));
	/* A borrowed socket belongs to the process that has started this one. */
	if (!borrow)
		watched_buffers(s->in, tenant_principal(s->tenant));
	bufferevent_enable(s->out, EV_WRITE);
	bufferevent_enable(s->in, EV_READ);
}

/* Has the client nothing under way? */
static bool
is_idle(const struct stream *s)
{
	return s->admitted && !s->refusal && !s->intake && !s->paused && !is_held(s) &&
	       mcp_stream_in_flight(s->mcp) == 0 && evbuffer_get_length(stream_input_of(s)) == 0 &&
	       evbuffer_get_length(stream_output_of(s)) == 0;
}

/* Closes the stream that has been idle longest of the uid with the most streams, for uid. */
static bool
make_room(const struct stream_set *set, uid_t uid)
{
	const struct stream_account *largest = stream_account_largest(&set->accounts, uid);
	struct stream *oldest = NULL;

	for (struct stream *s = largest ? set->first : NULL; s; s = s->next)
		if (s->account == largest && is_idle(s) &&
		    (!oldest || s->active_ms <= oldest->active_ms))
			oldest = s;
	if (oldest)
		stream_close(oldest, "makes-room");
	return oldest;
}

/* Counts a new stream of the uid, if need be in the place of another one. */
static int
open_account(struct stream_set *set, uid_t uid, struct stream_account **account_r)
{
	const struct config *config = set->options.config;
	int r;

	do
		r = stream_account_open(&set->accounts, uid, config->service.sessions_max,
					config->service.sessions_per_tenant, account_r);
	while (r == -EUSERS && make_room(set, uid));
	return r;
}

int
stream_open(struct stream_set *set, int in, int out, bool borrow, uid_t uid)
{
	const struct config *config = set->options.config;
	struct gate *gate = set->options.gate;
	struct stream_account *account;
	struct stream *s;
	char principal[32];
	int r = open_account(set, uid, &account);

	if (r < 0)
		return r;
	snprintf(principal, sizeof(principal), "uid:%u", uid);
	if (gate_identify(gate, principal, NULL, NULL) == 0 &&
	    account->admitted >= gate_sessions_max(gate, principal,
						   config->service.sessions_per_tenant)) {
		stream_account_closes(&set->accounts, account);
		stream_account_close(&set->accounts, account);
		return -EDQUOT;
	}
	s = xcalloc(1, sizeof(*s));
	s->set = set;
	s->account = account;
	s->active_ms = clock_ms();
	s->tenant = engine_tenant(set->options.engine, uid);
	s->next = set->first;
	if (s->next)
		s->next->prev = s;
	set->first = s;
	s->identity.on_known = on_identified;
	s->identity.arg = s;
	s->turn.on_turn = stream_on_turn;
	s->turn.arg = s;
	stream_start(s, in, out, borrow);
	(void)stream_is_identified(s);
	return 0;
}

/* What a large stream has used stays with the process otherwise. */
static void
stream_on_trim(evutil_socket_t, short, void *)
{
	malloc_trim(0);
}

struct stream_set *
stream_set_new(const struct stream_options *options)
{
	struct stream_set *set = xcalloc(1, sizeof(*set));

	set->options = *options;
	if (!set->options.buffered_max)
		set->options.buffered_max = (size_t)fair_memory(4);
	set->trim = xalloc_check(evtimer_new(loop_base(options->loop), stream_on_trim, set));
	return set;
}

void
stream_set_drain(struct stream_set *set)
{
	struct stream *next;

	for (struct stream *s = set->first; s; s = next) {
		next = s->next;
		gate_unwait(&s->identity);
		rota_forget(&s->turn);
		end_input(s);
	}
}

size_t
stream_set_count(const struct stream_set *set)
{
	return set->accounts.streams;
}

void
stream_set_on_empty(struct stream_set *set, void (*on_empty)(void *arg), void *arg)
{
	set->on_empty = on_empty;
	set->arg = arg;
}

void
stream_set_free(struct stream_set *set)
{
	if (!set)
		return;
	set->on_empty = NULL;
	while (set->first)
		stream_close(set->first, "shutdown");
	loop_free_now(set->options.loop);
	event_free(set->trim);
	free(set);
}
