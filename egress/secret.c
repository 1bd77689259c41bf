/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python-egress.   Owns: the secrets, and the authorities' certificates, by which the
 * origins' are checked.
 * Reads:   the administrator's settings; heads of scripts, already parsed. */
#include "egress/secret.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/xalloc.h"

/* ---- certificates ---- */

/* Loads the certificates of a file. False: it cannot be read, or has none. */
static bool
secret_load(SSL_CTX *tls, const char *file)
{
	X509_STORE *store = SSL_CTX_get_cert_store(tls);

	return SSL_CTX_load_verify_file(tls, file) == 1 &&
	       sk_X509_OBJECT_num(X509_STORE_get0_objects(store)) > 0;
}

/* The directory of OpenSSL would be read at each check, and the jail has no files. */
static bool
load_usual(SSL_CTX *tls)
{
	const char *const files[] = {
		X509_get_default_cert_file(), "/etc/ssl/certs/ca-certificates.crt",
		"/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
	};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (secret_load(tls, files[i]))
			return true;
	return false;
}

/* NULL: it has no certificate. */
static SSL_CTX *
make_tls(const char *ca_file)
{
	SSL_CTX *tls = xalloc_check(SSL_CTX_new(TLS_client_method()));

	SSL_CTX_set_verify(tls, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_min_proto_version(tls, TLS1_2_VERSION);
	SSL_CTX_set_session_cache_mode(tls, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_mode(tls, SSL_MODE_RELEASE_BUFFERS);
	/* Many servers close without a message of TLS. A cut body is noticed by its length. */
	SSL_CTX_set_options(tls, SSL_OP_IGNORE_UNEXPECTED_EOF | SSL_OP_NO_RENEGOTIATION);
	if (*ca_file ? secret_load(tls, ca_file) : load_usual(tls))
		return tls;
	SSL_CTX_free(tls);
	return NULL;
}

struct ssl_st *
secret_tls(const struct secret *secret)
{
	static const unsigned char http[] = "\x08http/1.1";
	const struct network_target *target = &secret->target;
	SSL *ssl = SSL_new(secret->tls);
	bool ok = ssl != NULL;

	if (ok && target->address.family != 0)
		ok = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), target->host) == 1;
	else if (ok)
		ok = SSL_set1_host(ssl, target->host) == 1 &&
		     SSL_set_tlsext_host_name(ssl, target->host) == 1;
	if (ok)
		ok = SSL_set_alpn_protos(ssl, http, sizeof(http) - 1) == 0;
	if (ok)
		return ssl;
	SSL_free(ssl);
	return NULL;
}

/* ---- life ---- */

static char *
secret_copy(const struct msg_strs *strs, size_t i)
{
	return xmemdup0(strs->item[i].at, strs->item[i].len);
}

static int
secret_take(struct secrets *secrets, const struct msg_egress_configure *configure, size_t i)
{
	const struct msg_str *host = &configure->hosts.item[i];
	struct secret *s = &secrets->item[secrets->n++];
	char *ca_file = secret_copy(&configure->ca_files, i);

	*s = (struct secret){ .name = secret_copy(&configure->names, i),
		.header = secret_copy(&configure->headers, i),
		.value = secret_copy(&configure->values, i),
		.trouble = secret_copy(&configure->troubles, i) };
	if (!*s->trouble) {
		s->tls = make_tls(ca_file);
		if (!s->tls) {
			free(s->trouble);
			s->trouble = xstrdup("there are no certificates to check its host with");
		}
	}
	free(ca_file);
	return network_target_parse(host->at, host->len, 443, &s->target) < 0 ? -EBADMSG : 0;
}

int
secrets_take(struct secrets *secrets, const struct msg_egress_configure *configure)
{
	const struct msg_strs *all[] = { &configure->hosts, &configure->headers,
		&configure->ca_files, &configure->values, &configure->troubles };
	int r = 0;

	*secrets = (struct secrets){ 0 };
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (configure->names.n != all[i]->n)
			return -EBADMSG;
	for (size_t i = 0; i < configure->names.n && r == 0; i++)
		r = secret_take(secrets, configure, i);
	return r;
}

/* ---- use ---- */

static bool
secret_names(const struct msg_strs *words, const char *name)
{
	for (size_t i = 0; i < words->n; i++) {
		const struct msg_str *word = &words->item[i];

		if ((word->len == 1 && *word->at == '*') ||
		    (word->len == strlen(name) && memcmp(word->at, name, word->len) == 0))
			return true;
	}
	return false;
}

uint32_t
secrets_named(const struct secrets *secrets, const struct msg_strs *words)
{
	uint32_t which = 0;

	for (size_t i = 0; i < secrets->n; i++)
		if (secret_names(words, secrets->item[i].name))
			which |= UINT32_C(1) << i;
	return which;
}

static const struct secret *
secret_find(const struct secrets *secrets, uint32_t granted, const struct head_part *name,
	    const char *bytes)
{
	for (size_t i = 0; i < secrets->n; i++)
		if ((granted >> i & 1) && name->len == strlen(secrets->item[i].name) &&
		    memcmp(bytes + name->at, secrets->item[i].name, name->len) == 0)
			return &secrets->item[i];
	return NULL;
}

static int secret_refuse(char *why_r, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static int
secret_refuse(char *why_r, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why_r, SECRET_WHY_MAX, format, args);
	va_end(args);
	return -EACCES;
}

/* The reason in why_r is for scripts: they may learn the secret's host and header. */
static int
secret_judge(const struct secret *s, const struct head *head, const struct head_part *header,
	     const char *bytes, char *why_r)
{
	const struct network_target *target = &head->target;

	if (head->connect)
		return secret_refuse(why_r, "the secret %s cannot be put into a tunnel: ask for http://, and "
				     "the proxy speaks TLS", s->name);
	if (strcmp(target->host, s->target.host) != 0)
		return secret_refuse(why_r, "the secret %s is for another host", s->name);
	if (target->port != 80 && target->port != s->target.port)
		return secret_refuse(why_r, "the secret %s is for port %u", s->name, s->target.port);
	if (header->len != strlen(s->header) ||
	    strncasecmp(bytes + header->at, s->header, header->len) != 0)
		return secret_refuse(why_r, "the secret %s is for the header %s", s->name, s->header);
	if (*s->trouble)
		return secret_refuse(why_r, "the secret %s cannot be used: %s", s->name, s->trouble);
	return 0;
}

int
secrets_find(const struct secrets *secrets, uint32_t granted, struct head *head,
	     const char *bytes, struct secret_use *use_r, char *why_r)
{
	*use_r = (struct secret_use){ 0 };
	for (size_t i = 0; i < head->n_secrets; i++) {
		const struct head_secret *asked = &head->secret[i];
		const struct secret *s = secret_find(secrets, granted, &asked->name, bytes);
		int r;

		if (!s)
			return secret_refuse(why_r, "there is no secret of that name for this script");
		r = secret_judge(s, head, &asked->header, bytes, why_r);
		if (r < 0)
			return r;
		use_r->item[use_r->n++] = s;
		if (s->target.port != use_r->item[0]->target.port)
			return secret_refuse(why_r, "the secret %s is for port %u", s->name,
					     s->target.port);
	}
	if (use_r->n > 0)
		head->target.port = use_r->item[0]->target.port;
	return 0;
}

size_t
secrets_of_host(const struct secrets *secrets, const struct secret_use *use,
		const char *values_r[EGRESS_SECRETS_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < secrets->n && use->n > 0; i++)
		if (strcmp(secrets->item[i].target.host, use->item[0]->target.host) == 0)
			values_r[n++] = secrets->item[i].value;
	return n;
}
