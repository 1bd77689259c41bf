/* SPDX-License-Identifier: Apache-2.0 */
/* The principal of a request. It is decided here only, for every request again; a session id proves
 * nothing.
 *
 *   by the trusted header   "user:NAME", if the peer on a unix socket is the proxy
 *   by Authorization        "token:TENANT" or "sub:SUB@ISSUER", where there are tokens
 *   by the kernel           "uid:UID" of the peer on a unix socket
 *   by nothing              on TCP without tokens: "uid:UID" of the user who started the service
 */
#ifndef HTTP_PRINCIPAL_H
#define HTTP_PRINCIPAL_H

#include <stdbool.h>
#include <sys/types.h>

#include "auth/auth.h"

struct evkeyvalq;
struct http_head;

/* What is known of a connection before its first byte. */
struct http_caller {
	bool by_socket;		/* a unix socket, with the peer's uid */
	uid_t uid;		/* that one; on TCP the service's own */
};

/* auth NULL: clients need not authenticate. headers: all of them, of which head was made. */
void http_principal(struct auth *auth, const struct http_caller *caller,
		    const struct evkeyvalq *headers, const struct http_head *head,
		    struct auth_verdict *verdict_r);

#endif
