/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python-tools.
 * Owns:    the transfers of a server, their connections, the session's name, the token of OAuth.
 * Reads:   HTTP of that server, hostile. libcurl reads it; here it is bounded.
 *
 * libcurl must not be called from its own callbacks. So these keep messages in a queue, which is
 * emptied when libcurl has returned (settle). */
#include "upstream/remote.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/queue.h>
#include <time.h>

#include <curl/curl.h>
#include <event2/event.h>
#include <event2/event_struct.h>

#include "base/mask.h"
#include "base/own.h"
#include "base/xalloc.h"
#include "upstream/events.h"
#include "policy/shape.h"
#include "upstream/token.h"

#define TRANSFERS_MAX 256
#define WAITING_MAX (64 * 1024 * 1024)	/* bytes of a server's unfinished messages */
#define HEAD_MAX 65536			/* bytes of an answer's headers */
#define TROUBLE_MAX 65536		/* bytes of a token, or of what says what is wrong */
#define SESSION_MAX 1024
#define CONNECT_MS 10000
#define SAID_MS 60000			/* for what has no answer */
#define TARGET "/mcp"			/* of a unix socket */
#define SESSION "Mcp-Session-Id"

struct transfer {
	TAILQ_ENTRY(transfer) link;
	struct remote *remote;
	CURL *easy;
	struct curl_slist *headers, first;	/* first: the authorization, before the others */
	char *authorization;		/* NULL: none */
	bool is_token;			/* it asks the token endpoint */
	bool waits;			/* for a token */
	bool has_failed;		/* there is none */
	bool is_second;			/* the token of the first one was refused */
	uint64_t id;			/* of the request; 0: nobody waits for it */
	bool begins;			/* initialize: its answer names the session */
	struct bytes to_send;
	size_t sent;
	size_t head_bytes;
	bool is_body, is_events, is_json;	/* is_body: the others are known */
	struct bytes body;		/* what is not events */
	struct events events;
	const char *refused;		/* why it was broken off here */
	char error[CURL_ERROR_SIZE];
};

struct message {
	STAILQ_ENTRY(message) link;
	struct bytes bytes;
};

struct watch {				/* a socket of libcurl's */
	struct remote *remote;
	struct event event;
};

struct remote {
	struct remote_options options;
	char *url, *socket;		/* socket: NULL: TCP */
	char *authorization;		/* a header line; NULL: none, or OAuth */
	struct token token, former;	/* former: the server may return it still */
	struct transfer *fetching;	/* a token; NULL: none is */
	CURLM *multi;
	TAILQ_HEAD(, transfer) transfers;
	size_t n_transfers;
	STAILQ_HEAD(, message) messages;
	char session[SESSION_MAX + 1];	/* "": none */
	struct event timer;
};

/* ---- what comes ---- */

static size_t
waiting(const struct remote *r)
{
	const struct transfer *t;
	size_t sum = 0;

	TAILQ_FOREACH(t, &r->transfers, link)
		sum += t->body.size + t->events.line.size + t->events.data.size;
	return sum;
}

static void
keep(void *arg, char *text, size_t len)
{
	struct remote *r = arg;
	struct message *m = xcalloc(1, sizeof(*m));

	(void)bytes_add(&m->bytes, text, len, len);
	STAILQ_INSERT_TAIL(&r->messages, m, link);
}

static long
status_of(const struct transfer *t)
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
	t->is_events = status_of(t) == 200 &&
		       strncasecmp(type, "text/event-stream", strlen("text/event-stream")) == 0;
	t->is_json = strncasecmp(type, "application/json", strlen("application/json")) == 0;
}

static size_t
on_bytes(char *bytes, size_t size, size_t n, void *arg)
{
	struct transfer *t = arg;
	int r;

	(void)size;
	if (!t->is_body)
		begin_body(t);
	if (waiting(t->remote) + n > WAITING_MAX) {
		t->refused = "too much of its answers waits to be read";
		return CURL_WRITEFUNC_ERROR;
	}
	if (t->is_events)
		r = events_feed(&t->events, bytes, n);
	else
		r = bytes_add(&t->body, bytes, n,
			      status_of(t) == 200 && !t->is_token ? REMOTE_MESSAGE_MAX
								  : TROUBLE_MAX);
	if (r == 0)
		return n;
	t->refused = t->is_token ? "its answer has more than 64 KiB"
				 : "its answer has more than 16 MiB";
	return CURL_WRITEFUNC_ERROR;
}

/* The name of the session, if the line has it. False: it is no name. */
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
on_header(char *line, size_t size, size_t n, void *arg)
{
	struct transfer *t = arg;

	(void)size;
	t->head_bytes += n;
	if (t->head_bytes > HEAD_MAX)
		t->refused = "its headers have more than 64 KiB";
	else if (!take_session(t, line, n))
		t->refused = "its " SESSION " is no name of a session";
	return t->refused ? CURL_WRITEFUNC_ERROR : n;
}

/* ---- what is sent ---- */

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
 * the server may have acted upon it. */
static int
on_rewind(void *arg, curl_off_t offset, int origin)
{
	(void)arg;
	(void)offset;
	(void)origin;
	return CURL_SEEKFUNC_FAIL;
}

static void
wipe(char **text)
{
	if (*text)
		explicit_bzero(*text, strlen(*text));
	free(*text);
	*text = NULL;
}

static void
forget(struct transfer *t)
{
	struct remote *r = t->remote;

	curl_multi_remove_handle(r->multi, t->easy);
	curl_easy_cleanup(t->easy);
	curl_slist_free_all(t->headers);
	wipe(&t->authorization);
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

static void
end_because(struct remote *r, const char *text)
{
	remote_end(r);
	r->options.on_end(r->options.arg, text);
}

/* A credential that comes back is no news to a script. */
static void
mask(const struct remote *r, char *text, size_t len)
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
	mask(r, bytes->at, bytes->len);
	r->options.on_message(r->options.arg, bytes->at, bytes->len);
}

static void
say_status(const struct transfer *t, long status, char *text, size_t size)
{
	if (status == 200 && t->is_events)
		snprintf(text, size, "it ended its answer without a result");
	else if (status == 200 && t->is_json)
		snprintf(text, size, "its answer is none to this request, or cannot be read");
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

/* ---- tokens ---- */

static int begin(struct transfer *t);
static int start(struct transfer *t);

static uint64_t
now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static struct transfer *
find_failed(const struct remote *r)
{
	struct transfer *t;

	TAILQ_FOREACH(t, &r->transfers, link)
		if (t->has_failed)
			break;
	return t;
}

/* Ends those that have failed. What is called may send others, or end everything. */
static void
end_failed(struct remote *r, const char *text)
{
	struct transfer *t;

	while ((t = find_failed(r))) {
		uint64_t id = t->id;

		forget(t);
		if (id != 0)
			r->options.on_failed(r->options.arg, id, 0, text);
	}
}

/* There is no token for those that wait for it. */
static void
fail_waiting(struct remote *r, const char *why)
{
	struct transfer *t;
	char text[CURL_ERROR_SIZE + 64];

	snprintf(text, sizeof(text), "there is no token: the token endpoint: %s", why);
	mask(r, text, strlen(text));
	TAILQ_FOREACH(t, &r->transfers, link)
		t->has_failed = t->waits;
	end_failed(r, text);
}

static void
start_waiting(struct remote *r)
{
	struct transfer *t;

	TAILQ_FOREACH(t, &r->transfers, link)
		if (t->waits)
			t->has_failed = start(t) < 0;
	end_failed(r, "it cannot be asked");
}

/* What is wrong with the answer; NULL: there is a token. */
static const char *
take_token(struct transfer *t, char *text, size_t size)
{
	struct remote *r = t->remote;
	long status = status_of(t);
	struct token token;
	const char *wrong;
	char error[64];

	if (status == 200) {
		wrong = token_read(t->body.at ? t->body.at : "", t->body.len, now_ms(), &token);
		if (wrong)
			return wrong;
		token_wipe(&r->former);
		r->former = r->token;
		r->token = token;
		return NULL;
	}
	token_error(t->body.at ? t->body.at : "", t->body.len, error, sizeof(error));
	if (status >= 300 && status < 400)
		snprintf(text, size, "it redirects to another address (HTTP status %ld), which is "
			 "not followed", status);
	else
		snprintf(text, size, "it answers with HTTP status %ld%s%s", status,
			 *error ? ", and says: " : "", error);
	return text;
}

static void
on_token(struct transfer *t, CURLcode result)
{
	struct remote *r = t->remote;
	char text[CURL_ERROR_SIZE];
	const char *wrong = text;

	if (result == CURLE_OK)
		wrong = take_token(t, text, sizeof(text));
	else
		shape_text(text, sizeof(text), t->refused ? t->refused : *t->error ? t->error
					     : curl_easy_strerror(result));
	forget(t);
	if (wrong)
		fail_waiting(r, wrong);
	else
		start_waiting(r);
}

/* Has the server refused the token, and can be asked again? Then it is, with another one. */
static bool
ask_again(struct transfer *t)
{
	struct remote *r = t->remote;
	uint64_t id = t->id;

	if (!*r->options.token_url || t->is_second || status_of(t) != 401)
		return false;
	/* Another transfer may have renewed it meanwhile. */
	if (r->token.text && strcmp(strrchr(t->authorization, ' ') + 1, r->token.text) == 0) {
		token_wipe(&r->former);
		r->former = r->token;
		r->token = (struct token){ 0 };
	}
	curl_multi_remove_handle(r->multi, t->easy);
	bytes_free(&t->body);
	events_free(&t->events);
	t->sent = t->head_bytes = 0;
	t->is_body = t->is_events = t->is_json = false;
	t->error[0] = '\0';
	t->is_second = true;
	if (begin(t) < 0 && id != 0)
		r->options.on_failed(r->options.arg, id, 0, "it cannot be asked again");
	return true;
}

/* The server has answered, in whatever way. */
static void
on_answered(struct transfer *t)
{
	struct remote *r = t->remote;
	struct bytes body = t->body;
	long status = status_of(t);
	bool is_json = t->is_json && !t->is_events && body.len > 0;
	uint64_t id = t->id;
	char text[160];

	say_status(t, status, text, sizeof(text));
	t->body = (struct bytes){ 0 };
	forget(t);
	if (status == 404 && *r->session) {
		end_because(r, "it has ended the session");
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
	long status = status_of(t);
	curl_off_t sent = 0;
	uint64_t id = t->id;
	bool refused = t->refused;

	curl_easy_getinfo(t->easy, CURLINFO_PRETRANSFER_TIME_T, &sent);
	shape_text(text, sizeof(text), refused ? t->refused : *t->error ? t->error
				     : curl_easy_strerror(result));
	mask(r, text, strlen(text));
	forget(t);
	if (sent == 0 && !refused)
		end_because(r, text);
	else if (id != 0)
		r->options.on_failed(r->options.arg, id, refused ? status : 0, text);
}

/* libcurl has returned: messages, then ends. A message can end everything. */
static void
settle(struct remote *r)
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
		if (t->is_token)
			on_token(t, result);
		else if (result != CURLE_OK)
			on_broken(t, result);
		else if (!ask_again(t))
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
	settle(r);
}

static int
on_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *of_socket)
{
	struct remote *r = arg;
	struct watch *watch = of_socket;
	short events = (short)(EV_PERSIST | ((what & CURL_POLL_IN) ? EV_READ : 0) |
			       ((what & CURL_POLL_OUT) ? EV_WRITE : 0));

	(void)easy;
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
on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct remote *r = arg;
	int running;

	(void)fd;
	(void)what;
	curl_multi_socket_action(r->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	settle(r);
}

static int
on_timeout(CURLM *multi, long ms, void *arg)
{
	struct remote *r = arg;
	const struct timeval delay = { .tv_sec = ms / 1000, .tv_usec = (ms % 1000) * 1000 };

	(void)multi;
	if (ms < 0)
		event_del(&r->timer);
	else
		event_add(&r->timer, &delay);
	return 0;
}

/* ---- transfers ---- */

static void
add_header(struct transfer *t, const char *name, const char *value)
{
	own_mem char *line = NULL;

	if (asprintf(&line, "%s: %s", name, value) < 0)
		abort();
	t->headers = xalloc_check(curl_slist_append(t->headers, line));
}

/* The options of every transfer. Those that guard are set although they are the standard. */
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
	/* Nothing of the environment counts. */
	SET(CURLOPT_PROXY, "");
	SET(CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
	SET(CURLOPT_NOSIGNAL, 1L);
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
		SET(CURLOPT_TIMEOUT_MS, t->is_token ? (long)REMOTE_TOKEN_MS : (long)SAID_MS);
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

static struct transfer *
add_transfer(struct remote *r, uint64_t id)
{
	struct transfer *t = xcalloc(1, sizeof(*t));

	t->remote = r;
	t->id = id;
	t->easy = xalloc_check(curl_easy_init());
	t->events = (struct events){ .on_message = keep, .arg = r, .max = REMOTE_MESSAGE_MAX };
	TAILQ_INSERT_TAIL(&r->transfers, t, link);
	r->n_transfers++;
	return t;
}

static struct transfer *
new_transfer(struct remote *r, uint64_t id, const char *revision)
{
	struct transfer *t = add_transfer(r, id);

	if (*revision)
		add_header(t, "MCP-Protocol-Version", revision);
	if (*r->session)
		add_header(t, SESSION, r->session);
	return t;
}

static void
authorize(struct transfer *t)
{
	const struct remote *r = t->remote;

	wipe(&t->authorization);
	if (r->authorization)
		t->authorization = xstrdup(r->authorization);
	else if (r->token.text && !t->is_token &&
		 asprintf(&t->authorization, "Authorization: Bearer %s", r->token.text) < 0)
		abort();
	t->first = (struct curl_slist){ t->authorization, t->headers };
}

/* 0 or -EINVAL; then it is to be forgotten. */
static int
start(struct transfer *t)
{
	t->waits = false;
	authorize(t);
	return set_options(t) && curl_multi_add_handle(t->remote->multi, t->easy) == CURLM_OK
		? 0 : -EINVAL;
}

static void
add_parameter(struct transfer *t, const char *name, const char *value)
{
	char *escaped = xalloc_check(curl_easy_escape(t->easy, value, 0));

	(void)bytes_add(&t->to_send, name, strlen(name), SIZE_MAX / 2);
	(void)bytes_add(&t->to_send, escaped, strlen(escaped), SIZE_MAX / 2);
	curl_free(escaped);
}

/* The client's name and secret, as RFC 6749 (2.3.1) wants them. */
static bool
set_client(struct transfer *t)
{
	const struct remote_options *options = &t->remote->options;
	char *id = xalloc_check(curl_easy_escape(t->easy, options->client_id, 0));
	char *secret = xalloc_check(curl_easy_escape(t->easy, options->credential, 0));
	bool ok = curl_easy_setopt(t->easy, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC) == CURLE_OK &&
		  curl_easy_setopt(t->easy, CURLOPT_USERNAME, id) == CURLE_OK &&
		  curl_easy_setopt(t->easy, CURLOPT_PASSWORD, secret) == CURLE_OK;

	explicit_bzero(secret, strlen(secret));
	curl_free(secret);
	curl_free(id);
	return ok;
}

/* Asks for a token, unless that is done already. 0 or -EINVAL. */
static int
fetch(struct remote *r)
{
	struct transfer *t;

	if (r->fetching)
		return 0;
	t = r->fetching = add_transfer(r, 0);
	t->is_token = true;
	/* So that the token is in one place. */
	t->body.size = TROUBLE_MAX + 1;
	t->body.at = xcalloc(1, t->body.size);
	add_header(t, "Content-Type", "application/x-www-form-urlencoded");
	add_header(t, "Accept", "application/json");
	add_header(t, "Expect", "");
	add_parameter(t, "grant_type=client_credentials&resource=", r->url);
	if (*r->options.scope)
		add_parameter(t, "&scope=", r->options.scope);
	if (set_client(t) && start(t) == 0)
		return 0;
	forget(t);
	return -EINVAL;
}

/* 0 or -EINVAL; then there is no such transfer any more. */
static int
begin(struct transfer *t)
{
	struct remote *r = t->remote;

	t->waits = *r->options.token_url && !token_is_fresh(&r->token, now_ms());
	if ((t->waits ? fetch(r) : start(t)) == 0)
		return 0;
	forget(t);
	return -EINVAL;
}

/* Is there room for one more? A stream that nobody waits for may go for it. */
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
		forget(t);
	return t != NULL;
}

int
remote_send(struct remote *r, const struct remote_message *message)
{
	struct transfer *t;

	if (!make_room(r))
		return -ENOBUFS;
	t = new_transfer(r, message->id, message->revision);
	t->begins = message->method && strcmp(message->method, "initialize") == 0;
	add_header(t, "Content-Type", "application/json");
	add_header(t, "Accept", "application/json, text/event-stream");
	add_header(t, "Expect", "");
	if (message->is_modern && message->method)
		add_header(t, "Mcp-Method", message->method);
	if (message->is_modern && message->name)
		add_header(t, "Mcp-Name", message->name);
	(void)bytes_add(&t->to_send, message->text, message->len, message->len);
	return begin(t);
}

int
remote_listen(struct remote *r, uint64_t id, const char *revision)
{
	struct transfer *t;

	if (!make_room(r))
		return -ENOBUFS;
	t = new_transfer(r, id, revision);
	add_header(t, "Accept", "text/event-stream");
	return begin(t);
}

static struct transfer *
find(const struct remote *r, uint64_t id)
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
	struct transfer *t = find(r, id);

	if (t)
		t->id = 0;
}

void
remote_cancel(struct remote *r, uint64_t id)
{
	struct transfer *t = find(r, id);

	if (t)
		forget(t);
}

void
remote_end(struct remote *r)
{
	struct message *m;

	while (!TAILQ_EMPTY(&r->transfers))
		forget(TAILQ_FIRST(&r->transfers));
	while ((m = STAILQ_FIRST(&r->messages))) {
		STAILQ_REMOVE_HEAD(&r->messages, link);
		bytes_free(&m->bytes);
		free(m);
	}
	r->session[0] = '\0';
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
		abort();
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
		abort();
	evtimer_assign(&r->timer, options->base, on_timer, r);
	curl_global_init(CURL_GLOBAL_DEFAULT);
	r->multi = xalloc_check(curl_multi_init());
	curl_multi_setopt(r->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
	curl_multi_setopt(r->multi, CURLMOPT_SOCKETDATA, r);
	curl_multi_setopt(r->multi, CURLMOPT_TIMERFUNCTION, on_timeout);
	curl_multi_setopt(r->multi, CURLMOPT_TIMERDATA, r);
	return r;
}
