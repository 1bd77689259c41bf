/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets that the proxy puts into requests. A script requests http://HOST/... with {{secret:NAME}}
 * in a header; the proxy replaces it by the secret, and sends the request to HOST over TLS. Each
 * secret is for one host and one header. Scripts never see the text.
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

/* Copies the secrets from the configuration, and reads certificates. To be called before the jail
 * is entered. A mistake in one secret affects only that one. 0; -EBADMSG: the configuration is not
 * valid.
 */
int secrets_take(struct secrets *secrets, const struct msg_egress_configure *configure);

/* The secrets that a request uses, in the order of head->secret. */
struct secret_use {
	const struct secret *item[HEAD_SECRETS_MAX];
	size_t n;
};

#define SECRET_WHY_MAX 256

/* The secrets with these names, as a bit for each; "*": all. */
uint32_t secrets_named(const struct secrets *secrets, const struct msg_strs *names);

/* Finds the secrets that a request asks for. They must be for the host and the header of the
 * request, and in granted (secrets_named). head->target gets the port for TLS. 0; or -EACCES: why_r
 * (SECRET_WHY_MAX bytes) has the reason. */
int secrets_find(const struct secrets *secrets, uint32_t granted, struct head *head,
		 const char *bytes, struct secret_use *use_r, char *why_r);

/* The values of all secrets for the same host, which have to be masked in its answer; at most
 * EGRESS_SECRETS_MAX. */
size_t secrets_of_host(const struct secrets *secrets, const struct secret_use *use,
		       const char *values_r[EGRESS_SECRETS_MAX]);

/* Makes the client's side of a TLS connection to the host of a secret. The certificate must be
 * valid for that host. The caller frees it by SSL_free(). NULL: no memory. */
struct ssl_st *secret_tls(const struct secret *secret);

#endif
