/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python-tools.   Owns: the transfer that asks for a token of OAuth, and the token.
 * Reads:   answers of the token endpoint, hostile (token.c). */
#include "upstream/remote_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "policy/shape.h"

static struct transfer *
find_failed(const struct remote *r)
{
	struct transfer *t;

	TAILQ_FOREACH(t, &r->transfers, link)
		if (t->has_failed)
			break;
	return t;
}

/* Ends the transfers that have failed. Each search begins at the start of the list, because a
 * callback may add transfers, or end all of them. */
static void
end_failed(struct remote *r, const char *text)
{
	struct transfer *t;

	while ((t = find_failed(r))) {
		uint64_t id = t->id;

		transfer_forget(t);
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
	remote_mask(r, text, strlen(text));
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
			t->has_failed = transfer_start(t) < 0;
	end_failed(r, "it cannot be asked");
}

/* Returns what is wrong with the answer; NULL: there is a token. */
static const char *
take_token(struct transfer *t, char *text, size_t size)
{
	struct remote *r = t->remote;
	long status = transfer_status(t);
	struct token token;
	const char *wrong;
	char error[64];

	if (status == 200) {
		wrong = token_read(t->body.at ? t->body.at : "", t->body.len, clock_ms(), &token);
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

void
remote_on_token(struct transfer *t, CURLcode result)
{
	struct remote *r = t->remote;
	char text[CURL_ERROR_SIZE];
	const char *wrong = text;

	if (result == CURLE_OK)
		wrong = take_token(t, text, sizeof(text));
	else
		shape_text(text, sizeof(text), t->refused ? t->refused : *t->error ? t->error
					     : curl_easy_strerror(result));
	transfer_forget(t);
	if (wrong)
		fail_waiting(r, wrong);
	else
		start_waiting(r);
}

bool
remote_ask_again(struct transfer *t)
{
	struct remote *r = t->remote;
	uint64_t id = t->id;

	if (!*r->options.token_url || t->is_second || transfer_status(t) != 401)
		return false;
	/* Another transfer may have renewed it meanwhile. */
	if (r->token.text && strcmp(strrchr(t->authorization, ' ') + 1, r->token.text) == 0) {
		token_wipe(&r->former);
		r->former = r->token;
		r->token = (struct token){ 0 };
	}
	transfer_reset(t);
	t->is_second = true;
	if (transfer_begin(t) < 0 && id != 0)
		r->options.on_failed(r->options.arg, id, 0, "it cannot be asked again");
	return true;
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

int
remote_fetch_token(struct remote *r)
{
	struct transfer *t;

	if (r->fetching)
		return 0;
	t = r->fetching = transfer_add(r, 0);
	t->is_token = true;
	/* So that the token is in one place. */
	t->body.size = TROUBLE_MAX + 1;
	t->body.at = xcalloc(1, t->body.size);
	transfer_add_header(t, "Content-Type", "application/x-www-form-urlencoded");
	transfer_add_header(t, "Accept", "application/json");
	transfer_add_header(t, "Expect", "");
	add_parameter(t, "grant_type=client_credentials&resource=", r->url);
	if (*r->options.scope)
		add_parameter(t, "&scope=", r->options.scope);
	if (set_client(t) && transfer_start(t) == 0)
		return 0;
	transfer_forget(t);
	return -EINVAL;
}
