/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python-egress.   Owns: connections: a script's socket, and the origin's.
 * Reads:   both, hostile from the first byte; bounded in time, bytes and memory.
 *
 *   HEAD      a request arrives
 *   DIAL      its target was allowed, and is being looked up and connected to
 *   GREET     for a request with a secret, TLS with the origin begins: its certificate is checked
 *   RELAY     bytes go both ways, until both sides have ended or a limit is reached
 *   FAREWELL  a refusal was written, and the script may still be writing
 *
 * A connection serves one request. For a request in absolute form the origin is told to close the
 * connection, and bytes that the script sends after its request are dropped. */
#include "egress/proxy.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "base/clock.h"
#include "base/own.h"
#include "egress/answer.h"
#include "egress/dial.h"
#include "egress/head.h"
#include "egress/secret.h"

#define HEAD_MS 10000		/* for a complete head */
#define DIAL_MS 15000		/* for a name and its addresses */
#define GREET_MS 15000		/* for the beginning of TLS */
#define FAREWELL_MS 2000	/* for a script to read a refusal */
#define BUFFER_MAX 32768	/* bytes that wait for one side, before reading from the other
				 * stops; also what is read before it is passed on */
#define TLS_BYTES (96 << 10)	/* of OpenSSL, with the origin's certificates */
#define STATUS_LINE_MAX 1024

/* For each side: what waits, what was just read, and unused space in their blocks. */
static_assert(2 * (2 * BUFFER_MAX + BUFFER_MAX / 2) + TLS_BYTES <= PROXY_CONNECTION_MAX,
	      "a connection fits into its memory");
static_assert(BUFFER_MAX >= HEAD_MAX, "a head can be read");

enum state { HEAD, DIAL, GREET, RELAY, FAREWELL };

/* One of the two ends. */
struct side {
	struct connection *connection;
	struct bufferevent *io;		/* NULL: closed */
	bool ended;			/* no more bytes come from it */
	bool told;			/* it was told that no more bytes come from the other
					 * side */
};

struct connection {
	LIST_ENTRY(connection) link;
	struct grant *grant;
	enum state state;
	struct side script, origin;
	struct head head;
	struct head_body_state body;
	bool body_over;			/* of a request in absolute form */
	bool asked;			/* there is a connection to report */
	bool connected;			/* to the origin, even if that failed later */
	bool status_seen;		/* the origin's status line has passed */
	/* Of a request with secrets: */
	struct secret_use secrets;	/* n: 0: of others */
	const char *hidden[EGRESS_SECRETS_MAX];	/* what the answer may not show */
	struct answer answer;
	char why[SECRET_WHY_MAX];
	struct dial *dial;
	struct event timer;
	uint64_t start_ms, state_ms, active_ms;
	uint64_t sent, received;
	enum egress_verdict verdict;
	char address[NETWORK_ADDRESS_TEXT];
};

/* ---- the end ---- */

static void
connection_report(const struct connection *c)
{
	struct msg msg = { .type = MSG_EGRESS_REPORT, .egress_report = {
		.execution = c->grant->execution,
		.verdict = c->verdict,
		.connected = c->connected,
		.has_host = c->head.target.host[0] != '\0',
		.host = msg_str(c->head.target.host),
		.has_address = c->address[0] != '\0',
		.address = msg_str(c->address),
		.port = c->head.target.port,
		.sent = c->sent,
		.received = c->received,
		.milliseconds = clock_ms() - c->start_ms,
	} };

	c->grant->proxy->tell(c->grant->proxy->tell_arg, &msg);
}

/* libevent frees the bufferevent in a later turn of the loop. The grant's rate limit group may be
 * freed before that, so the bufferevent leaves the group now. */
static void
side_close(struct side *side)
{
	if (!side->io)
		return;
	bufferevent_remove_from_rate_limit_group(side->io);
	bufferevent_free(give_ptr(side->io));
}

static void
connection_end(struct connection *c)
{
	struct grant *grant = c->grant;

	if (c->asked)
		connection_report(c);
	LIST_REMOVE(c, link);
	event_del(&c->timer);
	dial_free(c->dial);
	side_close(&c->script);
	side_close(&c->origin);
	answer_end(&c->answer);
	free(c);
	grant_release(grant);
}

void
connection_cut(struct connection *c)
{
	if (c->state == DIAL || c->state == GREET || c->state == RELAY)
		c->verdict = EGRESS_CUT;
	connection_end(c);
}

struct connection *
connection_next(struct connection *c)
{
	return LIST_NEXT(c, link);
}

/* ---- clocks ---- */

/* The time at which the current state has lasted too long. */
static uint64_t
deadline_ms(const struct connection *c)
{
	uint64_t idle, whole;

	switch (c->state) {
	case HEAD:
		return c->state_ms + HEAD_MS;
	case DIAL:
		return c->state_ms + DIAL_MS;
	case GREET:
		return c->state_ms + GREET_MS;
	case FAREWELL:
		return c->state_ms + FAREWELL_MS;
	case RELAY:
		break;
	}
	idle = c->active_ms + c->grant->idle_seconds * UINT64_C(1000);
	whole = c->start_ms + c->grant->connection_seconds * UINT64_C(1000);
	return idle < whole ? idle : whole;
}

static void
connection_arm(struct connection *c)
{
	uint64_t now = clock_ms(), deadline = deadline_ms(c);
	uint64_t wait = deadline > now ? deadline - now : 0;
	struct timeval delay = { (time_t)(wait / 1000), (suseconds_t)(wait % 1000 * 1000) };

	event_add(&c->timer, &delay);
}

static void
connection_enter(struct connection *c, enum state state)
{
	c->state = state;
	c->state_ms = c->active_ms = clock_ms();
	connection_arm(c);
}

/* ---- answers of the proxy itself ---- */

static const char *
phrase_of(int status)
{
	switch (status) {
	case 400:
		return "Bad Request";
	case 403:
		return "Forbidden";
	case 408:
		return "Request Timeout";
	case 431:
		return "Request Header Fields Too Large";
	case 501:
		return "Not Implemented";
	case 504:
		return "Gateway Timeout";
	default:
		return "Bad Gateway";
	}
}

/* The reason is in the status line too, because most clients show nothing else of a refused
 * tunnel. The inserted texts were checked: they are host names and texts of this program. */
static void
connection_refuse(struct connection *c, int status, enum egress_verdict verdict, const char *text)
{
	const struct network_target *target = &c->head.target;
	char where[NETWORK_HOST_MAX + 16] = "", why[512];
	static const char who[] = "mcp-python-egress: ";

	c->asked = true;
	c->verdict = verdict;
	side_close(&c->origin);
	if (target->host[0])
		snprintf(where, sizeof(where), "%s port %u: ", target->host, target->port);
	snprintf(why, sizeof(why), "%s%s%s%s", where, text, c->address[0] ? ", " : "",
		 c->address);
	connection_enter(c, FAREWELL);
	evbuffer_add_printf(bufferevent_get_output(c->script.io),
			    "HTTP/1.1 %d %s (%s)\r\nContent-Type: text/plain\r\n"
			    "Content-Length: %zu\r\nConnection: close\r\n\r\n"
			    "%s%s\n",
			    status, phrase_of(status), why,
			    sizeof(who) - 1 + strlen(why) + 1, who, why);
	bufferevent_enable(c->script.io, EV_READ | EV_WRITE);
}

static void
on_timer(evutil_socket_t, short, void *arg)
{
	struct connection *c = arg;

	if (clock_ms() < deadline_ms(c)) {
		connection_arm(c);
		return;
	}
	switch (c->state) {
	case HEAD:
		connection_refuse(c, 408, EGRESS_TIMED_OUT, "the request did not come in time");
		return;
	case DIAL:
		dial_free(give_ptr(c->dial));
		connection_refuse(c, 504, EGRESS_TIMED_OUT, "no connection in time");
		return;
	case GREET:
		connection_refuse(c, 504, EGRESS_TIMED_OUT, "TLS has not begun in time");
		return;
	case RELAY:
		c->verdict = EGRESS_TIMED_OUT;
		break;
	case FAREWELL:
		break;
	}
	connection_end(c);
}

/* ---- relaying ---- */

/* False: the execution has used up its bytes, and the connection is closed. */
static bool
connection_count(struct connection *c, uint64_t *counter, size_t n)
{
	c->active_ms = clock_ms();
	*counter += n;
	c->grant->bytes += n;
	if (c->grant->bytes <= c->grant->bytes_max)
		return true;
	c->verdict = EGRESS_LIMIT_BYTES;
	connection_end(c);
	return false;
}

static size_t
connection_waiting(const struct side *side)
{
	return evbuffer_get_length(bufferevent_get_output(side->io));
}

/* Tells a side that no more bytes come, once it has all earlier ones. */
static void
pass_end(struct side *from, struct side *to)
{
	if (!from->ended || to->told || connection_waiting(to) > 0)
		return;
	to->told = true;
	shutdown(bufferevent_getfd(to->io), SHUT_WR);
}

/* Handles ended sides. True: the connection still exists. */
static bool
connection_settle(struct connection *c)
{
	bool over;

	/* The origin ends the answer to a plain request: the end of a script's bytes is not passed
	 * on. */
	if (c->head.connect)
		pass_end(&c->script, &c->origin);
	pass_end(&c->origin, &c->script);
	over = c->script.told && (c->origin.told || !c->head.connect);
	if (over)
		connection_end(c);
	return !over;
}

/* Bounds memory: while one side does not take its bytes, no more are read from the other. */
static void
connection_pace(struct side *from, const struct side *to)
{
	if (connection_waiting(to) >= BUFFER_MAX)
		bufferevent_disable(from->io, EV_READ);
}

/* Passes on the body of a request in absolute form, and nothing after it. False: the body is
 * wrong. */
static bool
move_body(struct connection *c, struct evbuffer *in, struct evbuffer *out)
{
	while (!c->body_over && evbuffer_get_length(in) > 0) {
		size_t len = evbuffer_get_contiguous_space(in), taken;
		const char *bytes = (const char *)evbuffer_pullup(in, (ev_ssize_t)len);

		if (head_body_take(&c->body, bytes, len, &taken, &c->body_over) < 0)
			return false;
		answer_move(out, in, taken);
	}
	evbuffer_drain(in, evbuffer_get_length(in));
	return true;
}

static void
relay_request(struct connection *c)
{
	struct evbuffer *in = bufferevent_get_input(c->script.io);
	struct evbuffer *out = bufferevent_get_output(c->origin.io);
	size_t n = evbuffer_get_length(in);

	if (n > 0 && !connection_count(c, &c->sent, n))
		return;
	if (c->head.connect) {
		answer_move(out, in, n);
	} else if (!move_body(c, in, out)) {
		c->verdict = EGRESS_BAD_REQUEST;
		connection_end(c);
		return;
	}
	connection_pace(&c->script, &c->origin);
}

/* The script's connection ends with this answer, even if the origin's own header says otherwise.
 * Clients use the first header, so the proxy's header comes first. */
static void
relay_status(struct connection *c, struct evbuffer *in, struct evbuffer *out)
{
	struct evbuffer_ptr line_end;
	size_t eol_len, len;
	char status[13] = "";

	line_end = evbuffer_search_eol(in, NULL, &eol_len, EVBUFFER_EOL_CRLF);
	len = evbuffer_get_length(in);
	if (line_end.pos < 0 && len < STATUS_LINE_MAX && !c->origin.ended)
		return;
	c->status_seen = true;
	evbuffer_copyout(in, status, sizeof(status) - 1);
	if (line_end.pos < 0 || strncmp(status, "HTTP/1.", 7) != 0 || status[9] == '1')
		return;
	evbuffer_remove_buffer(in, out, (size_t)line_end.pos + eol_len);
	evbuffer_add_printf(out, "Connection: close\r\n");
}

/* The answer to a request with secrets. True: the connection still exists, and is relayed. */
static bool
relay_masked(struct connection *c, struct evbuffer *in, struct evbuffer *out)
{
	const char *why;

	if (answer_take(&c->answer, in, out, c->origin.ended, &why)) {
		if (answer_is_over(&c->answer)) {
			c->origin.ended = true;
			bufferevent_disable(c->origin.io, EV_READ);
			return connection_settle(c);
		}
		connection_pace(&c->origin, &c->script);
		return true;
	}
	if (!c->answer.has_head) {
		connection_refuse(c, 502, EGRESS_BAD_ANSWER, why);
		return false;
	}
	/* The script sees that it is not whole. */
	c->verdict = EGRESS_BAD_ANSWER;
	connection_end(c);
	return false;
}

/* True: the connection still exists, and is relayed. */
static bool
relay_answer(struct connection *c)
{
	struct evbuffer *in = bufferevent_get_input(c->origin.io);
	struct evbuffer *out = bufferevent_get_output(c->script.io);
	size_t n = evbuffer_get_length(in);

	if (c->secrets.n > 0)
		return (n == 0 || connection_count(c, &c->received, n)) && relay_masked(c, in, out);
	if (!c->head.connect && !c->status_seen) {
		relay_status(c, in, out);
		if (!c->status_seen)
			return true;
	}
	if (n > 0 && !connection_count(c, &c->received, n))
		return false;
	answer_move(out, in, evbuffer_get_length(in));
	connection_pace(&c->origin, &c->script);
	return true;
}

/* ---- from head to relay ---- */

static void on_readable(struct bufferevent *io, void *arg);
static void on_written(struct bufferevent *io, void *arg);
static void connection_on_event(struct bufferevent *io, short what, void *arg);

/* ssl: taken over; NULL: without TLS. */
static int
side_open(struct connection *c, struct side *side, int fd, struct ssl_st *ssl)
{
	struct event_base *base = c->grant->proxy->base;
	struct bufferevent *io = ssl
		? bufferevent_openssl_socket_new(base, fd, ssl, BUFFEREVENT_SSL_CONNECTING,
						 BEV_OPT_CLOSE_ON_FREE)
		: bufferevent_socket_new(base, fd, BEV_OPT_CLOSE_ON_FREE);

	if (!io) {
		SSL_free(ssl);
		close(fd);
		return -ENOMEM;
	}
	side->connection = c;
	side->io = io;
	bufferevent_setcb(io, on_readable, on_written, connection_on_event, side);
	bufferevent_setwatermark(io, EV_READ, 0, BUFFER_MAX);
	bufferevent_setwatermark(io, EV_WRITE, BUFFER_MAX / 4, 0);
	return bufferevent_add_to_rate_limit_group(io, c->grant->rate);
}

/* The bytes may contain secrets. */
static void
connection_wipe(const void *bytes, size_t len, void *)
{
	explicit_bzero((void *)bytes, len);
	free((void *)bytes);
}

/* Sends the head of a request in absolute form. False: there is no connection any more. */
static bool
send_head(struct connection *c, struct evbuffer *in)
{
	const char *bytes = (const char *)evbuffer_pullup(in, (ev_ssize_t)c->head.len);
	const char *values[HEAD_SECRETS_MAX];
	size_t len;
	char *text;

	for (size_t i = 0; i < c->secrets.n; i++)
		values[i] = c->secrets.item[i]->value;
	text = head_for_origin(&c->head, bytes, values, &len);
	if (!text || evbuffer_add_reference(bufferevent_get_output(c->origin.io), text, len,
					    connection_wipe, NULL) < 0) {
		if (text)
			connection_wipe(text, len, NULL);
		connection_end(c);
		return false;
	}
	evbuffer_drain(in, c->head.len);
	head_body_begin(&c->body, c->head.body, c->head.body_len);
	return connection_count(c, &c->sent, len);
}

static void
begin_relay(struct connection *c)
{
	struct evbuffer *in = bufferevent_get_input(c->script.io);

	c->connected = true;
	connection_enter(c, RELAY);
	if (c->head.connect) {
		evbuffer_drain(in, c->head.len);
		evbuffer_add_printf(bufferevent_get_output(c->script.io),
				    "HTTP/1.1 200 Connection established\r\n\r\n");
	} else if (!send_head(c, in)) {
		return;
	}
	bufferevent_enable(c->origin.io, EV_READ | EV_WRITE);
	bufferevent_enable(c->script.io, EV_READ | EV_WRITE);
	relay_request(c);
}

/* Nothing of the request is sent before the certificate has been checked. */
static void
begin_greeting(struct connection *c, int fd)
{
	struct ssl_st *ssl = secret_tls(c->secrets.item[0]);

	if (!ssl) {
		close(fd);
		connection_refuse(c, 502, EGRESS_NO_CONNECTION, "out of memory");
	} else if (side_open(c, &c->origin, fd, ssl) < 0) {
		c->verdict = EGRESS_NO_CONNECTION;
		connection_end(c);
	} else {
		connection_enter(c, GREET);
		bufferevent_enable(c->origin.io, EV_READ | EV_WRITE);
	}
}

static void
on_not_greeted(struct connection *c)
{
	struct ssl_st *ssl = bufferevent_openssl_get_ssl(c->origin.io);
	unsigned long error = bufferevent_get_openssl_error(c->origin.io);
	long verified = SSL_get_verify_result(ssl);
	const char *why = verified != X509_V_OK ? X509_verify_cert_error_string(verified)
						: ERR_reason_error_string(error);

	snprintf(c->why, sizeof(c->why), "TLS could not begin: %s",
		 why ? why : "the connection was ended");
	connection_refuse(c, 502, EGRESS_NO_CONNECTION, c->why);
}

static void
on_dialled(void *arg, const struct dial_outcome *outcome)
{
	struct connection *c = arg;

	dial_free(give_ptr(c->dial));
	network_address_print(&outcome->address, c->address);
	if (outcome->fd < 0) {
		connection_refuse(c, outcome->verdict == EGRESS_DENIED_ADDRESS ? 403 :
				  outcome->verdict == EGRESS_TIMED_OUT ? 504 : 502,
				  outcome->verdict, outcome->text);
	} else if (c->secrets.n > 0) {
		begin_greeting(c, outcome->fd);
	} else if (side_open(c, &c->origin, outcome->fd, NULL) < 0) {
		c->verdict = EGRESS_NO_CONNECTION;
		connection_end(c);
	} else {
		begin_relay(c);
	}
}

static void
begin_dial(struct connection *c)
{
	const struct grant *g = c->grant;
	struct dial_options options = { .base = g->proxy->base, .dns = g->proxy->dns,
					.target = &c->head.target, .range = g->range,
					.n_ranges = g->n_ranges };

	c->asked = true;
	if (!grant_allows(g, &c->head.target)) {
		connection_refuse(c, 403, EGRESS_DENIED_RULE, "not allowed by the network policy");
		return;
	}
	if (g->bytes >= g->bytes_max) {
		connection_refuse(c, 403, EGRESS_LIMIT_BYTES, "this execution has used up its bytes");
		return;
	}
	c->verdict = EGRESS_CARRIED;
	bufferevent_disable(c->script.io, EV_READ);
	connection_enter(c, DIAL);
	c->dial = dial_new(&options, on_dialled, c);
	if (!c->dial)
		connection_refuse(c, 502, EGRESS_NO_CONNECTION, "out of memory");
}

/* Prepares the secrets that the request asks for. False: the request was refused. */
static bool
connection_take_secrets(struct connection *c, const char *bytes)
{
	static const struct secrets none;
	const struct grant *g = c->grant;
	const struct secrets *secrets = g->proxy->secrets ? g->proxy->secrets : &none;
	const bool is_head = c->head.method_len == 4 && memcmp(bytes, "HEAD", 4) == 0;

	if (secrets_find(secrets, g->secrets, &c->head, bytes, &c->secrets, c->why) < 0) {
		connection_refuse(c, 403, EGRESS_DENIED_SECRET, c->why);
		return false;
	}
	if (c->secrets.n == 0)
		return true;
	if (answer_begin(&c->answer, is_head, c->hidden,
			 secrets_of_host(secrets, &c->secrets, c->hidden)) == 0)
		return true;
	connection_refuse(c, 502, EGRESS_NO_CONNECTION, "out of memory");
	return false;
}

static void
read_head(struct connection *c)
{
	struct evbuffer *in = bufferevent_get_input(c->script.io);
	size_t len = evbuffer_get_length(in);
	struct head head;
	int r;

	if (len > HEAD_MAX)
		len = HEAD_MAX;
	r = head_parse((const char *)evbuffer_pullup(in, (ev_ssize_t)len), len, &head);
	if (r == 0)
		return;
	if (r < 0) {
		connection_refuse(c, -r, EGRESS_BAD_REQUEST, r == -431 ? "the request's head is too large" :
				  r == -501 ? "ask for a tunnel with CONNECT, or for http:// with a body of "
				   "known length or chunked" :
		       "not a request to a proxy");
		return;
	}
	c->head = head;
	if (connection_take_secrets(c, (const char *)evbuffer_pullup(in, (ev_ssize_t)head.len)))
		begin_dial(c);
}

/* ---- what the loop says ---- */

static void
on_readable(struct bufferevent *io, void *arg)
{
	struct side *side = arg;
	struct connection *c = side->connection;
	struct evbuffer *in = bufferevent_get_input(io);

	switch (c->state) {
	case HEAD:
		read_head(c);
		return;
	case DIAL:
	case GREET:
		return;
	case RELAY:
		if (side == &c->script)
			relay_request(c);
		else
			relay_answer(c);
		return;
	case FAREWELL:
		evbuffer_drain(in, evbuffer_get_length(in));
		return;
	}
}

static void
on_written(struct bufferevent *io, void *arg)
{
	struct side *side = arg;
	struct connection *c = side->connection;
	struct side *other = side == &c->script ? &c->origin : &c->script;

	(void)io;
	if (c->state == FAREWELL && connection_waiting(side) == 0 && !side->told) {
		side->told = true;
		shutdown(bufferevent_getfd(side->io), SHUT_WR);
	}
	if (c->state != RELAY)
		return;
	c->active_ms = clock_ms();
	if (connection_settle(c) && other->io && !other->ended)
		bufferevent_enable(other->io, EV_READ);
}

static void
connection_on_event(struct bufferevent *, short what, void *arg)
{
	struct side *side = arg;
	struct connection *c = side->connection;

	if (c->state == GREET && side == &c->origin) {
		if (what & BEV_EVENT_CONNECTED)
			begin_relay(c);
		else
			on_not_greeted(c);
		return;
	}
	if (!(what & (BEV_EVENT_EOF | BEV_EVENT_ERROR)))
		return;
	side->ended = true;
	/* The script is gone: a refusal cannot be sent. */
	if (c->state == FAREWELL || (side == &c->script && (what & BEV_EVENT_ERROR))) {
		connection_end(c);
		return;
	}
	if (what & BEV_EVENT_ERROR)
		side->told = true;
	if (c->state == HEAD) {
		connection_end(c);
	} else if (c->state == RELAY) {
		/* The request will never be complete. */
		if (side == &c->script && !c->head.connect && !c->body_over)
			connection_end(c);
		else if (side == &c->script || relay_answer(c))
			connection_settle(c);
	}
}

int
connection_new(struct grant *grant, int fd)
{
	struct connection *c = calloc(1, sizeof(*c));

	if (!c) {
		close(fd);
		return -ENOMEM;
	}
	c->grant = grant;
	c->verdict = EGRESS_CARRIED;
	c->start_ms = clock_ms();
	evtimer_assign(&c->timer, grant->proxy->base, on_timer, c);
	if (side_open(c, &c->script, fd, NULL) < 0) {
		if (c->script.io)
			bufferevent_free(c->script.io);
		free(c);
		return -ENOMEM;
	}
	LIST_INSERT_HEAD(&grant->connections, c, link);
	connection_enter(c, HEAD);
	bufferevent_enable(c->script.io, EV_READ | EV_WRITE);
	return 0;
}
