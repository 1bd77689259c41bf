/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing.
 * Reads:   headers of a client, hostile; and of the proxy, which acts for its clients. */
#include "http/principal.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/queue.h>

#include <event2/keyvalq_struct.h>

#include "http/head.h"

#define USER_MAX 255

/* Counts a header; *value_r: its value without blanks around it. */
static size_t
count_header(const struct evkeyvalq *headers, const char *name, const char **value_r)
{
	const struct evkeyval *header;
	size_t n = 0;

	for (header = headers->tqh_first; header; header = header->next.tqe_next) {
		if (strcasecmp(header->key, name) != 0)
			continue;
		*value_r = header->value + strspn(header->value, " \t");
		n++;
	}
	return n;
}

/* Visible ASCII: the name is logged, and no two names may look alike. */
static bool
principal_is_user(const char *name)
{
	size_t len = strlen(name);

	if (len == 0 || len > USER_MAX)
		return false;
	for (; *name; name++)
		if (*name <= ' ' || *name > '~')
			return false;
	return true;
}

static void
principal_refuse(int status, const char *text, struct auth_verdict *verdict_r)
{
	verdict_r->status = status;
	verdict_r->text = text;
}

/* Takes the principal from the trusted header. A peer that is not the proxy is refused: either it
 * pretends to be another user, or it is a second proxy, and without the refusal all of its clients
 * would be one tenant. */
static void
principal_take_header(bool is_proxy, size_t n, const char *name, struct auth_verdict *verdict_r)
{
	if (!is_proxy)
		principal_refuse(403, "the header that names a user is taken from the proxy alone",
				 verdict_r);
	else if (n > 1 || !principal_is_user(name))
		principal_refuse(400, "the header that names a user must be there once, and name one",
				 verdict_r);
	else
		snprintf(verdict_r->principal, sizeof(verdict_r->principal), "user:%s", name);
}

bool
http_principal(struct auth *auth, const struct http_caller *caller,
	       const struct evkeyvalq *headers, const struct http_head *head,
	       struct auth_verdict *verdict_r)
{
	const char *trusted = auth ? auth_trusted_header(auth) : NULL, *name = NULL;
	const char *authorization = head->value[HTTP_AUTHORIZATION];
	size_t n = trusted ? count_header(headers, trusted, &name) : 0;
	bool is_proxy = trusted && caller->by_socket && caller->uid == auth_trusted_uid(auth);

	*verdict_r = (struct auth_verdict){ .status = 0 };
	if (n > 0)
		principal_take_header(is_proxy, n, name, verdict_r);
	else if (auth && auth_has_tokens(auth) &&
		 (authorization || !caller->by_socket || is_proxy))
		auth_judge(auth, authorization, verdict_r);
	else if (is_proxy)
		principal_refuse(401, "the proxy did not say for whom it asks", verdict_r);
	else if (caller->owner_known)
		snprintf(verdict_r->principal, sizeof(verdict_r->principal), "uid:%u",
			 caller->owner);
	else
		return false;
	return true;
}
