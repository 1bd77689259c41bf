/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of the configuration file. Each key has a row in a table: the place of its value in the
 * struct, its range, and its default. policy/keys.def has the rows; policy/key_value.c reads,
 * checks and prints values by them.
 */
#ifndef POLICY_KEYS_H
#define POLICY_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct why;

/* The kinds of values, with their forms: policy/keys.def. */
enum key_kind {
#define KIND(kind, shape) KEY_##kind,
#include "policy/keys.def"
	KEY_KIND_COUNT
};

enum key_flag {
	KEY_OF_TENANT = 1,	/* allowed in [tenant ...] as SECTION.NAME */
	KEY_ADDS = 2,		/* a list of refusals: each file and section adds to it */
};

struct key {
	const char *section;	/* "profile": the value is in struct config_profile; "tools": in
				 * struct config_tools; "secret": in struct config_secret;
				 * otherwise in struct config */
	const char *name;
	enum key_kind kind;
	size_t offset;
	uint64_t least, most;	/* of the number in the file */
	uint64_t unit;
	const char *standard;	/* the default, as a file would have it */
	unsigned int flags;
	const char *choices;	/* of KEY_CHOICE: "allow|approve|deny" */
};

/* The key in row i, from 0; NULL after the last one. */
const struct key *key_at(size_t i);

/* Does the key belong to a kind of sections with names, such as [profile NAME]? */
bool key_is_named(const struct key *key);

bool key_is_list(const struct key *key);

/* The size of the key's slot in the struct, in bytes. */
size_t key_size(const struct key *key);

/* The row of a key, or -ENOENT. */
int key_find(const char *section, const char *name);

/* Sets the value in the struct at base. more: the value is added to an existing list. 0, or -EINVAL
 * with why_r, which has the mistake and the right form. Aborts when out of memory. */
int key_set(const struct key *key, void *base, const char *value, bool more,
	    struct why *why_r);

/* Frees the memory of the value in the struct at base. */
void key_clear(const struct key *key, void *base);

/* Replaces the value in the struct at base, which belongs to another struct, by a copy. */
void key_own(const struct key *key, void *base);

/* Prints one line "name = value" that key_set accepts. */
void key_print(const struct key *key, const void *base, FILE *out);

#endif
