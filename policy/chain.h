/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of the audit log, which form a chain. A line is a JSON object. It begins with its
 * number, and ends with two hashes, that of the line before it and its own:
 *
 *   {"n":7, ... ,"prev":"<64 hexadecimal digits>","hash":"<64 of them>"}
 *
 * The hash is the SHA-256 of the line's bytes before ,"hash":. The prev of the first line is all
 * zeros. Pure: no I/O; lines may be hostile.
 */
#ifndef POLICY_CHAIN_H
#define POLICY_CHAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHAIN_DIGITS 64
#define CHAIN_LINE_MORE 157	/* bytes of a line beside its members, with n of one digit */

struct chain_link {
	uint64_t n;			/* from 1 */
	char prev[CHAIN_DIGITS + 1];
	char hash[CHAIN_DIGITS + 1];
};

/* Makes *link the beginning of a chain, with n 0. */
void chain_init(struct chain_link *link);

/* Computes a SHA-256, as hexadecimal digits. */
void chain_hash(const void *bytes, size_t len, char hash_r[CHAIN_DIGITS + 1]);

/* Makes the line after *link, with '\n', and updates *link. members: the members between number and
 * prev, JSON text without braces, not empty. The line is malloc'd; aborts when out of memory. */
char *chain_append(struct chain_link *link, const char *members, size_t len, size_t *len_r);

/* Checks a line, without '\n'. 0, or -EBADMSG: its form or its hash is wrong. */
int chain_read(const char *line, size_t len, struct chain_link *link_r);

/* Does b follow a directly? */
bool chain_follows(const struct chain_link *a, const struct chain_link *b);

#endif
