/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor, and in mcp-python audit.   Owns: nothing.
 * Reads:   lines of a file, which an attacker may have changed. */
#include "policy/chain.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>
#include <openssl/sha.h>

#include "base/hex.h"
#include "base/xalloc.h"

#define FIRST "{\"n\":"
#define PREV ",\"prev\":\""
#define HASH ",\"hash\":\""
#define LAST "\"}"
#define TAIL_LEN (strlen(HASH) + CHAIN_DIGITS + strlen(LAST))
#define PREV_LEN (strlen(PREV) + CHAIN_DIGITS + 1)

void
chain_init(struct chain_link *link)
{
	memset(link, 0, sizeof(*link));
	memset(link->prev, '0', CHAIN_DIGITS);
	memset(link->hash, '0', CHAIN_DIGITS);
}

void
chain_hash(const void *bytes, size_t len, char hash_r[CHAIN_DIGITS + 1])
{
	static EVP_MD *sha256;		/* fetched once: SHA256() would look it up on every call */
	unsigned char hash[SHA256_DIGEST_LENGTH];

	if (!sha256)
		sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
	xassert(sha256 && EVP_Digest(bytes, len, hash, NULL, sha256, NULL));
	hex_write(hash, sizeof(hash), hash_r);
}

char *
chain_append(struct chain_link *link, const char *members, size_t len, size_t *len_r)
{
	struct chain_link next = { .n = link->n + 1 };
	size_t room = len + PREV_LEN + TAIL_LEN + 64, body;
	char *line = xalloc_check(malloc(room)), *at;

	memcpy(next.prev, link->hash, sizeof(next.prev));
	at = line + sprintf(line, FIRST "%" PRIu64 ",", next.n);
	memcpy(at, members, len);
	at += len;
	at += sprintf(at, PREV "%s\"", next.prev);
	body = (size_t)(at - line);
	chain_hash(line, body, next.hash);
	at += sprintf(at, HASH "%s" LAST "\n", next.hash);
	*link = next;
	*len_r = (size_t)(at - line);
	return line;
}

static bool
take_digits(const char *from, char digits_r[CHAIN_DIGITS + 1])
{
	memcpy(digits_r, from, CHAIN_DIGITS);
	digits_r[CHAIN_DIGITS] = '\0';
	return strspn(digits_r, "0123456789abcdef") == CHAIN_DIGITS;
}

static bool
chain_take_number(const char *line, size_t len, uint64_t *n_r)
{
	size_t at = strlen(FIRST);
	uint64_t n = 0;

	if (memcmp(line, FIRST, at) != 0 || line[at] < '1' || line[at] > '9')
		return false;
	for (; at < len && isdigit((unsigned char)line[at]); at++)
		if (__builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, (uint64_t)(line[at] - '0'), &n))
			return false;
	*n_r = n;
	return at < len && line[at] == ',';
}

int
chain_read(const char *line, size_t len, struct chain_link *link_r)
{
	struct chain_link link;
	char hash[CHAIN_DIGITS + 1];
	size_t body;

	if (len < strlen(FIRST) + 2 + PREV_LEN + TAIL_LEN || memchr(line, '\n', len))
		return -EBADMSG;
	body = len - TAIL_LEN;
	if (memcmp(line + body, HASH, strlen(HASH)) != 0 ||
	    memcmp(line + len - strlen(LAST), LAST, strlen(LAST)) != 0 ||
	    memcmp(line + body - PREV_LEN, PREV, strlen(PREV)) != 0 || line[body - 1] != '"' ||
	    !take_digits(line + body + strlen(HASH), link.hash) ||
	    !take_digits(line + body - PREV_LEN + strlen(PREV), link.prev) ||
	    !chain_take_number(line, len, &link.n))
		return -EBADMSG;
	chain_hash(line, body, hash);
	if (strcmp(hash, link.hash) != 0)
		return -EBADMSG;
	*link_r = link;
	return 0;
}

bool
chain_follows(const struct chain_link *a, const struct chain_link *b)
{
	return b->n == a->n + 1 && strcmp(a->hash, b->prev) == 0;
}
