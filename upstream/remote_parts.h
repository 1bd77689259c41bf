/* SPDX-License-Identifier: Apache-2.0 */
/* What remote.c and remote_token.c share: a server's transfers, and the token that they come with.
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

#define TROUBLE_MAX 65536		/* bytes of a token, or of what says what is wrong */
#define SESSION_MAX 1024

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
	bool ends;			/* DELETE of the session */
	bool can_resume;
	unsigned int resumed;		/* times since the last event */
	char revision[32];		/* with can_resume */
	struct event again;		/* when the rest of the events is asked for */
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
	char revision[32];		/* of MCP, of the last message */
	struct event timer;
};

/* HTTP's; 0: it has not come. */
long transfer_status(const struct transfer *transfer);

/* A new one, without headers, that is not begun. id: of the request; 0: nobody waits for it. */
struct transfer *transfer_add(struct remote *remote, uint64_t id);
/* value: "": libcurl sends no such header, not even one of its own. */
void transfer_add_header(struct transfer *transfer, const char *name, const char *value);

/* Begins it, with a token if that is wanted. 0 or -EINVAL; then the transfer is no more. */
int transfer_begin(struct transfer *transfer);

/* Begins it with what there is. 0 or -EINVAL; then it is to be forgotten. */
int transfer_start(struct transfer *transfer);

/* It is to be done once more. */
void transfer_reset(struct transfer *transfer);

/* Ends and frees it. Nobody is told. */
void transfer_forget(struct transfer *transfer);

/* A credential that comes back is no news to a script: it is masked in the text. */
void remote_mask(const struct remote *remote, char *text, size_t len);

/* ---- remote_token.c ---- */

/* Asks for a token, unless that is done already. 0 or -EINVAL. */
int remote_fetch_token(struct remote *remote);

/* The transfer that asked for a token is over: those that waited for it are begun, or fail. */
void remote_on_token(struct transfer *transfer, CURLcode result);

/* Has the server refused the token, and can be asked again? Then it is, with another one. */
bool remote_ask_again(struct transfer *transfer);

#endif
