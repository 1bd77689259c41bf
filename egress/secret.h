/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets that the proxy puts into requests: a script writes {{secret:NAME}} in the one header that
 * the secret is for, and asks for http://HOST/... of the one host that it is for. The proxy then
 * asks that host by TLS. Scripts never have the text.
 */
#ifndef EGRESS_SECRET_H
#define EGRESS_SECRET_H

#include <stddef.h>
#include <stdint.h>

#include "egress/head.h"
#include "policy/network.h"
#include "proto/message.h"

struct ssl_ctx_st;
struct ssl_st;

struct secret {
	char *name, *header;
	struct network_target target;
	char *value;
	char *trouble;			/* why it cannot be used; "": it can */
	struct ssl_ctx_st *tls;		/* NULL: there is trouble */
};

struct secrets {
	struct secret item[EGRESS_SECRETS_MAX];
	size_t n;
};

/* Takes them from the configuration, with a copy of all, and reads certificates: before the jail is
 * closed. What is wrong with one concerns it alone. 0; -EBADMSG: it is no configuration. */
int secrets_take(struct secrets *secrets, const struct msg_egress_configure *configure);

/* Wipes and frees them. */
void secrets_free(struct secrets *secrets);

/* The secrets of a request, in the order of head->secret. */
struct secret_use {
	const struct secret *item[HEAD_SECRETS_MAX];
	size_t n;
};

#define SECRET_WHY_MAX 256

/* Those with these names, or all for "*": a bit for each. */
uint32_t secrets_named(const struct secrets *secrets, const struct msg_strs *names);

/* Finds what a request asks for, which must be for its host and its header, and among granted
 * (secrets_named). The head's target gets the port that TLS is spoken at. 0; -EACCES: why_r
 * (SECRET_WHY_MAX bytes) says why not. */
int secrets_find(const struct secrets *secrets, uint32_t granted, struct head *head,
		 const char *bytes, struct secret_use *use_r, char *why_r);

/* All values for the host of these, which its answer may not show; at most EGRESS_SECRETS_MAX. */
size_t secrets_of_host(const struct secrets *secrets, const struct secret_use *use,
		       const char *values_r[EGRESS_SECRETS_MAX]);

/* A client's side of TLS with the host of a secret; its certificate must be valid for it. NULL: no
 * memory. SSL_free(). */
struct ssl_st *secret_tls(const struct secret *secret);

#endif
