/* SPDX-License-Identifier: Apache-2.0 */
/* The principal of a request. It is determined for each request, and only here; a session id proves
 * nothing.
 *
 *   by the trusted header   "user:NAME", if the peer on a unix socket is the proxy
 *   by Authorization        "token:TENANT" or "sub:SUB@ISSUER", if tokens are configured
 *   by the kernel           "uid:UID" of the peer on a unix socket, or of the user whose range of
 *                           subordinate uids it is in
 *   without any             on TCP without tokens: "uid:UID" of the user who started the service
 */
#ifndef HTTP_PRINCIPAL_H
#define HTTP_PRINCIPAL_H

#include <stdbool.h>
#include <sys/types.h>

#include "auth/auth.h"

struct evkeyvalq;
struct http_head;

/* Facts about a connection that are known before its first byte. */
struct http_caller {
	bool by_socket;		/* a unix socket, with the peer's uid */
	uid_t uid;		/* the peer's uid; on TCP the service's */
	uid_t owner;		/* the user whose uid that is; valid if owner_known */
	bool owner_known;
};

/* Determines the principal of a request. auth NULL: clients need not authenticate. headers: the
 * list that head was read from. False: nothing is determined, caller->owner has to be known. */
bool http_principal(struct auth *auth, const struct http_caller *caller,
		    const struct evkeyvalq *headers, const struct http_head *head,
		    struct auth_verdict *verdict_r);

#endif
