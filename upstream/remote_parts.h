/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a remote server, for remote.c and remote_token.c: its transfers, and the token that
 * they are sent with.
 */
#ifndef UPSTREAM_REMOTE_PARTS_H
#define UPSTREAM_REMOTE_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <curl/curl.h>
#include <event2/event_struct.h>

#include "upstream/events.h"
#include "upstream/remote.h"
#include "upstream/token.h"

#define TROUBLE_MAX 65536		/* bytes of an endpoint's answer, or of a text about an
					 * error */
#define SESSION_MAX 1024

struct transfer {
	TAILQ_ENTRY(transfer) link;
	struct remote *remote;
	CURL *easy;
	struct curl_slist *headers, first;	/* first: the authorization, before the others */
	char *authorization;		/* NULL: none */
	bool is_token;			/* it asks the token endpoint */
	bool waits;			/* it waits for a token */
	bool has_failed;		/* there will be no token */
	bool is_second;			/* it is the second attempt, after the token was refused */
	uint64_t id;			/* of the request; 0: it needs no answer */
	bool begins;			/* initialize: its answer names the session */
	bool ends;			/* DELETE of the session */
	bool can_resume;
	unsigned int resumed;		/* how often, since the last event */
	char revision[32];		/* with can_resume */
	struct event again;		/* the time when the rest of the events is asked for */
	struct bytes to_send;
	size_t sent;
	size_t head_bytes;
	bool is_body, is_events, is_json;	/* is_body: is_events and is_json are known */
	struct bytes body;		/* the answer, if it is not events */
	struct events events;
	bool is_news;			/* the stream for what nobody has asked for */
	size_t spent;			/* bytes of events in this turn */
	bool is_paused;			/* until the next turn */
	struct event turn;		/* its end */
	const char *refused;		/* why this client has broken the transfer off */
	char error[CURL_ERROR_SIZE];
};

struct message {
	STAILQ_ENTRY(message) link;
	struct bytes bytes;
};

struct watch {				/* a socket of libcurl */
	struct remote *remote;
	struct event event;
};

struct remote {
	struct remote_options options;
	char *url, *socket;		/* socket: NULL: TCP */
	char *authorization;		/* a header line; NULL: none, or OAuth */
	struct token token, former;	/* former: the token before, which the server may still
					 * return in a text */
	struct transfer *fetching;	/* the transfer that fetches a token; NULL: none */
	CURLM *multi;
	TAILQ_HEAD(, transfer) transfers;
	size_t n_transfers;
	STAILQ_HEAD(, message) messages;
	char session[SESSION_MAX + 1];	/* "": none */
	char revision[32];		/* of MCP, of the last message */
	struct event timer;
};

/* The status of HTTP; 0: it has not come yet. */
long transfer_status(const struct transfer *transfer);

/* Makes a transfer without headers, which is not begun. id: of the request; 0: it needs no answer.
 */
struct transfer *transfer_add(struct remote *remote, uint64_t id);

/* Adds a header. value "": libcurl does not send this header, not even its own. */
void transfer_add_header(struct transfer *transfer, const char *name, const char *value);

/* Begins a transfer, once there is a token if one is needed. 0; or -EINVAL, and the transfer was
 * freed. */
int transfer_begin(struct transfer *transfer);

/* Begins a transfer now, with the token that there is. 0; or -EINVAL, and the caller must call
 * transfer_forget. */
int transfer_start(struct transfer *transfer);

/* Prepares a transfer to be done a second time. */
void transfer_reset(struct transfer *transfer);

/* Ends and frees a transfer. No callback is called. */
void transfer_forget(struct transfer *transfer);

/* Masks credentials of the server in a text for a script, because a server may return them. */
void remote_mask(const struct remote *remote, char *text, size_t len);

/* ---- remote_token.c ---- */

/* Asks for a token, unless one is being asked for. 0 or -EINVAL. */
int remote_fetch_token(struct remote *remote);

/* To be called when the transfer that asks for a token has ended: the transfers that wait for the
 * token are begun, or fail. */
void remote_on_token(struct transfer *transfer, CURLcode result);

/* To be called when a transfer has ended: if the server has refused its token, and it is the first
 * attempt, sends it again with a new token. True: it is sent again. */
bool remote_ask_again(struct transfer *transfer);

#endif
