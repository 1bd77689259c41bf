/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the key, and the numbers of tenants in links.
 * Reads:   paths of requests by unknown clients. No part of a path is used before its signature is
 * checked. */
#include "tools/shared/links.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/hex.h"
#include "base/own.h"
#include "base/xalloc.h"
#include "engine/engine.h"
#include "engine/file_uri.h"
#include "policy/config.h"

#define KEY_BYTES 32
#define SIGNATURE 16			/* bytes of the HMAC-SHA256 that a link has */
#define SIGNATURE_TEXT ((size_t)2 * SIGNATURE)
#define DIGITS_MAX 12			/* of a number in a link */

/* Numbers are given in the order in which tenants first get a link. A number is never given again.
 */
static char **principals;		/* NULL: the links with this number were ended */
static size_t n_principals;

static uint64_t
real_time_s(void)
{
	return (uint64_t)time(NULL);
}

static uint64_t (*now_s)(void) = real_time_s;

void
links_set_clock(uint64_t (*clock)(void))
{
	now_s = clock;
}

static const unsigned char *
links_key(void)
{
	static unsigned char bytes[KEY_BYTES];
	static bool made;

	xassert(made || getrandom(bytes, sizeof(bytes), 0) == sizeof(bytes));
	made = true;
	return bytes;
}

static bool
is_number_of(size_t i, const char *principal)
{
	return principals[i] && strcmp(principals[i], principal) == 0;
}

static size_t
number_of(const char *principal)
{
	size_t i = 0;

	while (i < n_principals && !is_number_of(i, principal))
		i++;
	if (i == n_principals) {
		principals = xrealloc(principals, (n_principals + 1) * sizeof(*principals));
		principals[n_principals++] = xstrdup(principal);
	}
	return i;
}

/* Signs tenant, end and file. The parts cannot be confused: numbers end at a '-', and the file is
 * last. */
static void
links_sign(uint64_t tenant, uint64_t until_s, const char *file, char text_r[SIGNATURE_TEXT + 1])
{
	unsigned char mac[EVP_MAX_MD_SIZE];
	own_mem char *said = xasprintf("%" PRIu64 "-%" PRIu64 "-%s", tenant, until_s, file);

	xassert(HMAC(EVP_sha256(), links_key(), KEY_BYTES, (unsigned char *)said, strlen(said), mac,
		     NULL));
	hex_write(mac, SIGNATURE, text_r);
}

char *
link_new(const struct config *config, const struct tenant *tenant, const char *uri)
{
	const char *file = uri + strlen(FILE_URI_SCHEME), *base = config->http.links;
	char signature[SIGNATURE_TEXT + 1], *link;
	uint64_t until_s = now_s() + config->http.link_seconds;
	size_t number, base_len;

	if (!base)
		return NULL;
	number = number_of(tenant_principal(tenant));
	links_sign(number, until_s, file, signature);
	base_len = strlen(base);
	base_len -= base_len > 0 && base[base_len - 1] == '/';
	link = xasprintf("%.*s" LINKS_PATH "%zu-%" PRIu64 "-%s/%s", (int)base_len, base, number,
			 until_s, signature, file);
	return link;
}

/* Digits and a '-' behind them. NULL: there are none, or too many. */
static const char *
links_read_number(const char *text, uint64_t *number_r)
{
	const size_t digits = strspn(text, "0123456789");

	if (digits == 0 || digits > DIGITS_MAX || text[digits] != '-')
		return NULL;
	*number_r = strtoull(text, NULL, 10);
	return text + digits + 1;
}

bool
link_holds(uint64_t tenant)
{
	return tenant < n_principals && principals[tenant];
}

bool
link_read(const char *path, struct link *link_r)
{
	char signature[SIGNATURE_TEXT + 1];
	uint64_t tenant, until_s;
	const char *at;

	if (strncmp(path, LINKS_PATH, strlen(LINKS_PATH)) != 0)
		return false;
	at = links_read_number(path + strlen(LINKS_PATH), &tenant);
	at = at ? links_read_number(at, &until_s) : NULL;
	if (!at || strlen(at) <= SIGNATURE_TEXT || at[SIGNATURE_TEXT] != '/')
		return false;
	links_sign(tenant, until_s, at + SIGNATURE_TEXT + 1, signature);
	if (CRYPTO_memcmp(signature, at, SIGNATURE_TEXT) != 0 || !link_holds(tenant) ||
	    until_s <= now_s())
		return false;
	link_r->principal = principals[tenant];
	link_r->tenant = tenant;
	link_r->uri = xasprintf(FILE_URI_SCHEME "%s", at + SIGNATURE_TEXT + 1);
	return true;
}

void
links_end(const char *principal)
{
	for (size_t i = 0; i < n_principals; i++) {
		if (!is_number_of(i, principal))
			continue;
		free(principals[i]);
		principals[i] = NULL;
	}
}
