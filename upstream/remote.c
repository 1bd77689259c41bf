/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python-tools.
 * Owns:    the transfers of a server, their connections, the session's name, the token of OAuth.
 * Reads:   HTTP of that server, hostile. libcurl parses it; this file bounds it.
 *
 * libcurl must not be called from its own callbacks. So the callbacks put messages into a queue,
 * which is emptied when libcurl has returned (settle). */
#include "upstream/remote_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <event2/event.h>

#include "base/clock.h"
#include "base/base64.h"
#include "base/mask.h"
#include "base/own.h"
#include "base/xalloc.h"
#include "policy/shape.h"

#define TRANSFERS_MAX 256
#define WAITING_MAX (64 * 1024 * 1024)	/* bytes of a server's unfinished messages */
#define TURN_MS 50
#define TURN_BYTES (256 * 1024)		/* of events with an answer, in one turn */
#define TURN_NEWS (16 * 1024)		/* of events that nobody has asked for */
#define HEAD_MAX 65536			/* bytes of an answer's headers */
#define CONNECT_MS 10000
#define SAID_MS 60000			/* for what has no answer */
#define DELETE_MS 5000			/* for the end of a session */
#define RESUMED_MAX 8			/* times without an event between them */
#define RESUME_MS 500			/* before the rest is asked for, unless told otherwise */
#define RESUME_LEAST_MS 50		/* even if the server asks for less */
#define RESUME_MOST_MS 60000
#define HEADER_VALUE_MAX 4096		/* bytes of an argument in a header, before its encoding */
#define RESUMES "Last-Event-ID"
#define TARGET "/mcp"			/* of a unix socket */
#define SESSION "Mcp-Session-Id"

/* ---- responses ---- */

static size_t
remote_waiting(const struct remote *r)
{
	const struct transfer *t;
	size_t sum = 0;

	TAILQ_FOREACH(t, &r->transfers, link)
		sum += t->body.size + t->events.line.size + t->events.data.size;
	return sum;
}

static void
remote_keep(void *arg, char *text, size_t len)
{
	struct transfer *t = arg;
	struct remote *r = t->remote;
	struct message *m = xcalloc(1, sizeof(*m));

	t->resumed = 0;

	(void)bytes_add(&m->bytes, text, len, len);
	STAILQ_INSERT_TAIL(&r->messages, m, link);
}

long
transfer_status(const struct transfer *t)
{
	long status = 0;

	curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
	return status;
}

/* The headers are complete. */
static void
begin_body(struct transfer *t)
{
	const char *type = NULL;

	t->is_body = true;
	curl_easy_getinfo(t->easy, CURLINFO_CONTENT_TYPE, &type);
	if (!type)
		return;
	t->is_events = transfer_status(t) == 200 &&
		       strncasecmp(type, "text/event-stream", strlen("text/event-stream")) == 0;
	t->is_json = strncasecmp(type, "application/json", strlen("application/json")) == 0;
}

/* May the transfer take bytes in this turn? A server that floods its events must leave time for the
 * others. */
static bool
has_turn(struct transfer *t, size_t n)
{
	const struct timeval turn = { 0, TURN_MS * 1000 };

	if (!t->is_events)
		return true;
	if (t->spent == 0)
		event_add(&t->turn, &turn);
	t->is_paused = t->spent >= (t->is_news ? TURN_NEWS : TURN_BYTES);
	if (!t->is_paused)
		t->spent += n;
	return !t->is_paused;
}

static size_t
on_bytes(char *bytes, size_t, size_t n, void *arg)
{
	struct transfer *t = arg;
	int r;

	if (!t->is_body)
		begin_body(t);
	if (!has_turn(t, n))
		return CURL_WRITEFUNC_PAUSE;
	if (remote_waiting(t->remote) + n > WAITING_MAX) {
		t->refused = "too much of its answers waits to be read";
		return CURL_WRITEFUNC_ERROR;
	}
	if (t->is_events)
		r = events_feed(&t->events, bytes, n);
	else
		r = bytes_add(&t->body, bytes, n,
			      transfer_status(t) == 200 && !t->is_token ? REMOTE_MESSAGE_MAX
								  : TROUBLE_MAX);
	if (r == 0)
		return n;
	t->refused = t->is_token ? "its answer has more than 64 KiB"
				 : "its answer has more than 16 MiB";
	return CURL_WRITEFUNC_ERROR;
}

/* Keeps the session's name if this line of the head has it. False: the name is malformed. */
static bool
take_session(struct transfer *t, const char *line, size_t len)
{
	const size_t n = strlen(SESSION);
	char *to = t->remote->session;

	if (!t->begins || len <= n || strncasecmp(line, SESSION, n) != 0 || line[n] != ':')
		return true;
	for (line += n + 1, len -= n + 1; len > 0 && (*line == ' ' || *line == '\t'); len--)
		line++;
	while (len > 0 && strchr(" \t\r\n", line[len - 1]))
		len--;
	if (len > SESSION_MAX)
		return false;
	for (size_t i = 0; i < len; i++)
		if (line[i] < 0x21 || line[i] > 0x7e)
			return false;
	memcpy(to, line, len);
	to[len] = '\0';
	return true;
}

static size_t
on_header(char *line, size_t, size_t n, void *arg)
{
	struct transfer *t = arg;

	t->head_bytes += n;
	if (t->head_bytes > HEAD_MAX)
		t->refused = "its headers have more than 64 KiB";
	else if (!take_session(t, line, n))
		t->refused = "its " SESSION " is not a valid session id";
	return t->refused ? CURL_WRITEFUNC_ERROR : n;
}

/* ---- requests ---- */

static size_t
on_send(char *to, size_t size, size_t n, void *arg)
{
	struct transfer *t = arg;
	size_t left = t->to_send.len - t->sent, len = size * n < left ? size * n : left;

	if (len > 0)
		memcpy(to, t->to_send.at + t->sent, len);
	t->sent += len;
	return len;
}

/* If a connection that was used before is closed, libcurl would send the message again, although
 * the server may have executed it. */
static int
on_rewind(void *, curl_off_t, int)
{
	return CURL_SEEKFUNC_FAIL;
}

static void
remote_wipe(char **text)
{
	if (*text)
		explicit_bzero(*text, strlen(*text));
	free(*text);
	*text = NULL;
}

void
transfer_forget(struct transfer *t)
{
	struct remote *r = t->remote;

	event_del(&t->again);
	event_del(&t->turn);
	curl_multi_remove_handle(r->multi, t->easy);
	curl_easy_cleanup(t->easy);
	curl_slist_free_all(t->headers);
	remote_wipe(&t->authorization);
	TAILQ_REMOVE(&r->transfers, t, link);
	r->n_transfers--;
	if (r->fetching == t)
		r->fetching = NULL;
	if (t->is_token && t->body.at)
		explicit_bzero(t->body.at, t->body.size);
	bytes_free(&t->to_send);
	bytes_free(&t->body);
	events_free(&t->events);
	free(t);
}

/* ---- ends ---- */

static void drop_all(struct remote *r, bool has_ended);

static void
remote_end_because(struct remote *r, const char *text)
{
	drop_all(r, true);
	r->options.on_end(r->options.arg, text);
}

void
remote_mask(const struct remote *r, char *text, size_t len)
{
	const char *const secrets[] = {
		r->options.credential, r->token.text ? r->token.text : "",
		r->former.text ? r->former.text : "",
	};

	mask_secrets(text, len, secrets, sizeof(secrets) / sizeof(secrets[0]), true);
}

static void
give_out(struct remote *r, struct bytes *bytes)
{
	remote_mask(r, bytes->at, bytes->len);
	r->options.on_message(r->options.arg, bytes->at, bytes->len);
}

static void
say_status(const struct transfer *t, long status, char *text, size_t size)
{
	if (status == 200 && t->is_events)
		snprintf(text, size, "it ended its answer without a result");
	else if (status == 200 && t->is_json)
		snprintf(text, size, "its answer does not fit this request, or cannot be read");
	else if (status >= 300 && status < 400)
		snprintf(text, size, "it redirects to another address (HTTP status %ld), which is "
			 "not followed", status);
	else if (status == 401 || status == 403)
		snprintf(text, size, "it refuses the credential, or wants one (HTTP status %ld)",
			 status);
	else
		snprintf(text, size, "it answers with HTTP status %ld%s", status,
			 status == 200 ? " and what is neither JSON nor events" : "");
}

/* ---- sending again ---- */

static void remote_on_again(evutil_socket_t fd, short what, void *arg);

void
transfer_reset(struct transfer *t)
{
	curl_multi_remove_handle(t->remote->multi, t->easy);
	bytes_free(&t->body);
	events_free(&t->events);
	event_del(&t->turn);
	t->is_paused = false;
	t->sent = t->head_bytes = t->spent = 0;
	t->is_body = t->is_events = t->is_json = false;
	t->error[0] = '\0';
}

/* ---- broken streams ---- */

static void add_session(struct transfer *t, const char *revision);

static void
remote_on_again(evutil_socket_t, short, void *arg)
{
	struct transfer *t = arg;
	struct remote *r = t->remote;
	uint64_t id = t->id;

	if (transfer_begin(t) < 0 && id != 0)
		r->options.on_failed(r->options.arg, id, 0, "it cannot be asked for the rest");
}

/* If the stream has ended before the awaited answer and can be resumed, the transfer becomes a
 * GET, which is sent after a pause. False: it cannot be resumed. */
static bool
remote_resume(struct transfer *t)
{
	const struct events *events = &t->events;
	unsigned int ms = events->retry_ms ? events->retry_ms : RESUME_MS;
	struct timeval wait;

	if (!t->can_resume || t->id == 0 || t->refused || !*events->id ||
	    (t->is_body && !t->is_events) || t->resumed == RESUMED_MAX)
		return false;
	if (ms < RESUME_LEAST_MS)
		ms = RESUME_LEAST_MS;
	else if (ms > RESUME_MOST_MS)
		ms = RESUME_MOST_MS;
	wait = (struct timeval){ .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };
	t->resumed++;
	transfer_reset(t);
	bytes_free(&t->to_send);
	curl_easy_reset(t->easy);
	curl_slist_free_all(t->headers);
	t->headers = NULL;
	add_session(t, t->revision);
	transfer_add_header(t, "Accept", "text/event-stream");
	transfer_add_header(t, RESUMES, events->id);
	evtimer_add(&t->again, &wait);
	return true;
}

/* ---- ends of transfers ---- */

/* The server has answered, with any status. */
static void
on_answered(struct transfer *t)
{
	struct remote *r = t->remote;
	struct bytes body = t->body;
	long status = transfer_status(t);
	bool is_json = t->is_json && !t->is_events && body.len > 0, ends = t->ends;
	uint64_t id = t->id;
	char text[160];

	say_status(t, status, text, sizeof(text));
	t->body = (struct bytes){ 0 };
	transfer_forget(t);
	if (status == 404 && *r->session && !ends) {
		remote_end_because(r, "it has ended the session");
	} else {
		if (is_json)
			give_out(r, &body);
		if (id != 0)
			r->options.on_failed(r->options.arg, id, status, text);
	}
	bytes_free(&body);
}

static void
on_broken(struct transfer *t, CURLcode result)
{
	struct remote *r = t->remote;
	char text[CURL_ERROR_SIZE];
	long status = transfer_status(t);
	curl_off_t sent = 0;
	uint64_t id = t->id;
	bool refused = t->refused, ends = t->ends;

	curl_easy_getinfo(t->easy, CURLINFO_PRETRANSFER_TIME_T, &sent);
	shape_text(text, sizeof(text), refused ? t->refused : *t->error ? t->error
				     : curl_easy_strerror(result));
	remote_mask(r, text, strlen(text));
	transfer_forget(t);
	if (sent == 0 && !refused && !ends)
		remote_end_because(r, text);
	else if (id != 0)
		r->options.on_failed(r->options.arg, id, refused ? status : 0, text);
}

/* Called after libcurl has returned: gives out the queued messages, then handles the transfers that
 * have ended. The callback for a message may end all transfers. */
static void
remote_settle(struct remote *r)
{
	struct message *m;
	struct transfer *t;
	CURLMsg *told;
	int left;

	while ((m = STAILQ_FIRST(&r->messages))) {
		STAILQ_REMOVE_HEAD(&r->messages, link);
		give_out(r, &m->bytes);
		bytes_free(&m->bytes);
		free(m);
	}
	while ((told = curl_multi_info_read(r->multi, &left))) {
		CURLcode result = told->data.result;

		if (told->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(told->easy_handle, CURLINFO_PRIVATE, &t);
		if (!t->is_body && transfer_status(t) != 0)
			begin_body(t);
		if (t->is_token)
			remote_on_token(t, result);
		else if (remote_resume(t))
			continue;
		else if (result != CURLE_OK)
			on_broken(t, result);
		else if (!remote_ask_again(t))
			on_answered(t);
	}
}

/* ---- libcurl's sockets and timer ---- */

static void
on_socket_event(evutil_socket_t fd, short what, void *arg)
{
	const struct watch *watch = arg;
	struct remote *r = watch->remote;
	int running;

	curl_multi_socket_action(r->multi, fd, ((what & EV_READ) ? CURL_CSELECT_IN : 0) |
				 ((what & EV_WRITE) ? CURL_CSELECT_OUT : 0), &running);
	remote_settle(r);
}

static int
on_socket(CURL *, curl_socket_t fd, int what, void *arg, void *of_socket)
{
	struct remote *r = arg;
	struct watch *watch = of_socket;
	short events = (short)(EV_PERSIST | ((what & CURL_POLL_IN) ? EV_READ : 0) |
			       ((what & CURL_POLL_OUT) ? EV_WRITE : 0));

	if (watch)
		event_del(&watch->event);
	if (what == CURL_POLL_REMOVE) {
		free(watch);
		curl_multi_assign(r->multi, fd, NULL);
		return 0;
	}
	if (!watch) {
		watch = xcalloc(1, sizeof(*watch));
		watch->remote = r;
		curl_multi_assign(r->multi, fd, watch);
	}
	event_assign(&watch->event, r->options.base, fd, events, on_socket_event, watch);
	event_add(&watch->event, NULL);
	return 0;
}

static void
on_timer(evutil_socket_t, short, void *arg)
{
	struct remote *r = arg;
	int running;

	curl_multi_socket_action(r->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	remote_settle(r);
}

static void
remote_on_turn(evutil_socket_t, short, void *arg)
{
	struct transfer *t = arg;

	t->spent = 0;
	if (t->is_paused && curl_easy_pause(t->easy, CURLPAUSE_CONT) == CURLE_OK)
		remote_settle(t->remote);
}

static int
on_timeout(CURLM *, long ms, void *arg)
{
	struct remote *r = arg;
	const struct timeval delay = { .tv_sec = ms / 1000, .tv_usec = (ms % 1000) * 1000 };

	if (ms < 0)
		event_del(&r->timer);
	else
		event_add(&r->timer, &delay);
	return 0;
}

/* ---- transfers ---- */

void
transfer_add_header(struct transfer *t, const char *name, const char *value)
{
	own_mem char *line = NULL;

	if (asprintf(&line, "%s: %s", name, value) < 0)
		xalloc_fail(0);
	t->headers = xalloc_check(curl_slist_append(t->headers, line));
}

/* The options of every transfer. Options that protect are set even if they are libcurl's
 * defaults. */
static bool
set_options(struct transfer *t)
{
	struct remote *r = t->remote;
	bool ok = true;

#define SET(option, value) ok = ok && curl_easy_setopt(t->easy, option, value) == CURLE_OK
	SET(CURLOPT_URL, t->is_token ? r->options.token_url : r->url);
	SET(CURLOPT_PROTOCOLS_STR, "http,https");
	SET(CURLOPT_FOLLOWLOCATION, 0L);
	SET(CURLOPT_SSL_VERIFYPEER, 1L);
	SET(CURLOPT_SSL_VERIFYHOST, 2L);
	SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	/* Environment variables have no effect. */
	SET(CURLOPT_PROXY, "");
	SET(CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
	SET(CURLOPT_NOSIGNAL, 1L);
	/* A name server that is silent holds up its own transfer, and not the loop that ends it. */
	SET(CURLOPT_QUICK_EXIT, 1L);
	SET(CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
	SET(CURLOPT_TCP_KEEPALIVE, 1L);
	SET(CURLOPT_USERAGENT, "mcp-pythond/" PACKAGE_VERSION);
	SET(CURLOPT_ERRORBUFFER, t->error);
	SET(CURLOPT_PRIVATE, t);
	SET(CURLOPT_WRITEFUNCTION, on_bytes);
	SET(CURLOPT_WRITEDATA, t);
	SET(CURLOPT_HEADERFUNCTION, on_header);
	SET(CURLOPT_HEADERDATA, t);
	SET(CURLOPT_HTTPHEADER, t->authorization ? &t->first : t->headers);
	if (r->socket && !t->is_token)
		SET(CURLOPT_UNIX_SOCKET_PATH, r->socket);
	if (*r->options.ca_file)
		SET(CURLOPT_CAINFO, r->options.ca_file);
	if (t->id == 0)
		SET(CURLOPT_TIMEOUT_MS, t->is_token ? (long)REMOTE_TOKEN_MS :
				       t->ends ? (long)DELETE_MS : (long)SAID_MS);
	if (t->ends)
		SET(CURLOPT_CUSTOMREQUEST, "DELETE");
	if (t->to_send.at) {
		SET(CURLOPT_POST, 1L);
		SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)t->to_send.len);
		SET(CURLOPT_READFUNCTION, on_send);
		SET(CURLOPT_READDATA, t);
		SET(CURLOPT_SEEKFUNCTION, on_rewind);
	}
#undef SET
	return ok;
}

struct transfer *
transfer_add(struct remote *r, uint64_t id)
{
	struct transfer *t = xcalloc(1, sizeof(*t));

	t->remote = r;
	t->id = id;
	t->easy = xalloc_check(curl_easy_init());
	t->events = (struct events){ .on_message = remote_keep, .arg = t,
				     .max = REMOTE_MESSAGE_MAX };
	evtimer_assign(&t->again, r->options.base, remote_on_again, t);
	evtimer_assign(&t->turn, r->options.base, remote_on_turn, t);
	TAILQ_INSERT_TAIL(&r->transfers, t, link);
	r->n_transfers++;
	return t;
}

static void
add_session(struct transfer *t, const char *revision)
{
	if (*revision)
		transfer_add_header(t, "MCP-Protocol-Version", revision);
	if (*t->remote->session)
		transfer_add_header(t, SESSION, t->remote->session);
}

static struct transfer *
new_transfer(struct remote *r, uint64_t id, const char *revision)
{
	struct transfer *t = transfer_add(r, id);

	add_session(t, revision);
	return t;
}

static void
remote_authorize(struct transfer *t)
{
	const struct remote *r = t->remote;

	remote_wipe(&t->authorization);
	if (r->authorization)
		t->authorization = xstrdup(r->authorization);
	else if (r->token.text && !t->is_token &&
		 asprintf(&t->authorization, "Authorization: Bearer %s", r->token.text) < 0)
		xalloc_fail(0);
	t->first = (struct curl_slist){ t->authorization, t->headers };
}

int
transfer_start(struct transfer *t)
{
	t->waits = false;
	remote_authorize(t);
	return set_options(t) && curl_multi_add_handle(t->remote->multi, t->easy) == CURLM_OK
		? 0 : -EINVAL;
}

int
transfer_begin(struct transfer *t)
{
	struct remote *r = t->remote;

	t->waits = *r->options.token_url && !token_is_fresh(&r->token, clock_ms());
	if ((t->waits ? remote_fetch_token(r) : transfer_start(t)) == 0)
		return 0;
	transfer_forget(t);
	return -EINVAL;
}

/* Is there room for one more transfer? A stream on which no answer is awaited may be ended for it.
 */
static bool
make_room(struct remote *r)
{
	struct transfer *t;

	if (r->n_transfers < TRANSFERS_MAX)
		return true;
	TAILQ_FOREACH(t, &r->transfers, link)
		if (t->id == 0 && !t->is_token)
			break;
	if (t)
		transfer_forget(t);
	return t != NULL;
}

/* The text as a header's value: in the form of revision 2026-07-28 if it is not plain. Malloc'd. */
static char *
header_value(const char *text, size_t len)
{
	bool plain = len == 0 || (text[0] != ' ' && text[len - 1] != ' ' &&
				  strncmp(text, "=?base64?", strlen("=?base64?")) != 0);
	char *value;

	for (size_t i = 0; i < len; i++)
		plain = plain && text[i] >= ' ' && text[i] <= '~';
	if (plain)
		return xmemdup0(text, len);
	value = xcalloc(1, strlen("=?base64?" "?=") + (len + 2) / 3 * 4 + 1);
	strcpy(value, "=?base64?");
	base64_encode(text, len, value + strlen(value));
	return strcat(value, "?=");
}

static bool
are_short(const json_t *headers)
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)headers, name, value)
		if (json_string_length(value) > HEADER_VALUE_MAX)
			return false;
	return true;
}

static void
add_coded(struct transfer *t, const char *name, const char *text, size_t len)
{
	own_mem char *value = header_value(text, len), *empty = NULL;

	if (*value) {
		transfer_add_header(t, name, value);
		return;
	}
	/* With a colon libcurl would leave it out. */
	xassert(asprintf(&empty, "%s;", name) >= 0);
	t->headers = xalloc_check(curl_slist_append(t->headers, empty));
}

static void
add_arguments(struct transfer *t, const json_t *headers)
{
	char name[128];
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)headers, key, value) {
		snprintf(name, sizeof(name), "Mcp-Param-%s", key);
		add_coded(t, name, json_string_value(value), json_string_length(value));
	}
}

int
remote_send(struct remote *r, const struct remote_message *message)
{
	struct transfer *t;

	if (!are_short(message->headers) ||
	    (message->is_modern && message->name && strlen(message->name) > HEADER_VALUE_MAX))
		return -E2BIG;
	if (!make_room(r))
		return -ENOBUFS;
	t = new_transfer(r, message->id, message->revision);
	t->begins = message->method && strcmp(message->method, "initialize") == 0;
	transfer_add_header(t, "Content-Type", "application/json");
	transfer_add_header(t, "Accept", "application/json, text/event-stream");
	transfer_add_header(t, "Expect", "");
	if (message->is_modern && message->method)
		transfer_add_header(t, "Mcp-Method", message->method);
	if (message->is_modern && message->name)
		add_coded(t, "Mcp-Name", message->name, strlen(message->name));
	add_arguments(t, message->headers);
	t->can_resume = !message->is_modern && message->id != 0;
	snprintf(t->revision, sizeof(t->revision), "%s", message->revision);
	snprintf(r->revision, sizeof(r->revision), "%s", message->revision);
	(void)bytes_add(&t->to_send, message->text, message->len, message->len);
	return transfer_begin(t);
}

int
remote_listen(struct remote *r, uint64_t id, const char *revision)
{
	struct transfer *t;

	if (!make_room(r))
		return -ENOBUFS;
	t = new_transfer(r, id, revision);
	t->is_news = true;
	transfer_add_header(t, "Accept", "text/event-stream");
	return transfer_begin(t);
}

static struct transfer *
remote_find(const struct remote *r, uint64_t id)
{
	struct transfer *t;

	TAILQ_FOREACH(t, &r->transfers, link)
		if (t->id == id)
			break;
	return t;
}

void
remote_release(struct remote *r, uint64_t id)
{
	struct transfer *t = remote_find(r, id);

	if (t)
		t->id = 0;
}

void
remote_cancel(struct remote *r, uint64_t id)
{
	struct transfer *t = remote_find(r, id);

	if (t)
		transfer_forget(t);
}

/* Tells the server that the session is over (DELETE). */
static void
say_end(struct remote *r, const char *session)
{
	struct transfer *t = transfer_add(r, 0);

	t->ends = true;
	transfer_add_header(t, SESSION, session);
	if (*r->revision)
		transfer_add_header(t, "MCP-Protocol-Version", r->revision);
	(void)transfer_begin(t);
}

/* has_ended: the server has ended the session itself, or cannot be reached. */
static void
drop_all(struct remote *r, bool has_ended)
{
	char session[SESSION_MAX + 1];
	struct message *m;

	memcpy(session, r->session, sizeof(session));
	while (!TAILQ_EMPTY(&r->transfers))
		transfer_forget(TAILQ_FIRST(&r->transfers));
	while ((m = STAILQ_FIRST(&r->messages))) {
		STAILQ_REMOVE_HEAD(&r->messages, link);
		bytes_free(&m->bytes);
		free(m);
	}
	r->session[0] = '\0';
	if (*session && !has_ended)
		say_end(r, session);
}

void
remote_end(struct remote *r)
{
	drop_all(r, false);
}

bool
remote_is_busy(const struct remote *r)
{
	return !TAILQ_EMPTY(&r->transfers);
}

/* ---- life ---- */

/* unix:PATH[:TARGET] is http://localhost/TARGET by the socket PATH. */
static void
read_url(struct remote *r)
{
	static const char prefix[] = "unix:";
	const char *url = r->options.url, *target;

	if (strncmp(url, prefix, strlen(prefix)) != 0) {
		r->url = xstrdup(url);
		return;
	}
	url += strlen(prefix);
	target = strchr(url, ':');
	r->socket = target ? xmemdup0(url, (size_t)(target - url)) : xstrdup(url);
	if (asprintf(&r->url, "http://localhost%s", target ? target + 1 : TARGET) < 0)
		xalloc_fail(0);
}

struct remote *
remote_new(const struct remote_options *options)
{
	struct remote *r = xcalloc(1, sizeof(*r));
	bool is_bearer = !*options->header;

	r->options = *options;
	TAILQ_INIT(&r->transfers);
	STAILQ_INIT(&r->messages);
	read_url(r);
	if (*options->credential && !*options->token_url &&
	    asprintf(&r->authorization, "%s: %s%s", is_bearer ? "Authorization" : options->header,
		     is_bearer ? "Bearer " : "", options->credential) < 0)
		xalloc_fail(0);
	evtimer_assign(&r->timer, options->base, on_timer, r);
	curl_global_init_mem(CURL_GLOBAL_DEFAULT, xmalloc, free, xrealloc, xstrdup, xcalloc);
	r->multi = xalloc_check(curl_multi_init());
	curl_multi_setopt(r->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
	curl_multi_setopt(r->multi, CURLMOPT_SOCKETDATA, r);
	curl_multi_setopt(r->multi, CURLMOPT_TIMERFUNCTION, on_timeout);
	curl_multi_setopt(r->multi, CURLMOPT_TIMERDATA, r);
	return r;
}
