/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of the configuration file, one row each: where the value goes, what it may be
 * and what it is when the file does not say. Reading, checking, printing and the defaults
 * all come from these rows (policy/keys.c); policy/key_value.c does it.
 */
#ifndef POLICY_KEYS_H
#define POLICY_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct why;

enum key_kind {
	KEY_U32,	/* a number, multiplied by unit */
	KEY_U64,
	KEY_BYTES,	/* U64; in the file with K, M or G behind it if need be */
	KEY_PATH,	/* absolute; empty: NULL */
	KEY_NAME,	/* of a user */
	KEY_ADDRESS,	/* a numeric address and a port: 127.0.0.1:80, [::1]:80; empty: NULL */
	KEY_BOOL,	/* yes or no */
	KEY_MODULES,	/* words: Python's dotted names */
	KEY_PATHS,	/* words: absolute paths */
	KEY_HOSTS,	/* words: NAME or NAME:PORT */
	KEY_ORIGINS,	/* words: http://NAME or https://NAME, a port may follow */
	KEY_HEADER,	/* the name of an HTTP header; empty: NULL */
	KEY_URI,	/* http:// or https:// and more; empty: NULL */
	KEY_SERVER_URL,	/* likewise, or unix:PATH[:TARGET]; empty: NULL */
	KEY_SCOPES,	/* words: of OAuth */
	KEY_ID,		/* printable ASCII without blanks; empty: NULL */
	KEY_VERSION,	/* of Python, 3 or 3.11 or 3.11.2; empty: NULL */
	KEY_RULES,	/* words: of policy/network.h */
	KEY_TARGET,	/* HOST or HOST:PORT, a target of it; empty: NULL */
	KEY_RANGES,	/* words: ADDRESS or ADDRESS/BITS */
	KEY_TOOLSETS,	/* words: names of sets of tools */
	KEY_CHOICE,	/* U32: 1 for the first of the row's choices ...; empty: 0, not said */
	KEY_WHO,	/* words: uid:N, user:NAME, group:NAME, token:NAME, sub:NAME, or self */
	KEY_PACKAGES,	/* words: NAME or NAME with version specifiers; commas do not part them */
	KEY_URIS,	/* words: as KEY_URI */
	KEY_PROFILES,	/* words: names of profiles */
	KEY_COMMAND,	/* words: a program's path and arguments; only blanks part them */
	KEY_SERVERS,	/* words: names of other MCP servers, or * */
	KEY_TOOLS,	/* words: SERVER.TOOL, where * and ? stand for others */
	KEY_SECRETS,	/* words: names of [secret NAME], or * */
	KEY_WORD,	/* letters, digits, "_", "-" and "."; empty: NULL */
};

enum key_flag {
	KEY_OF_TENANT = 1,	/* may stand in [tenant ...] as SECTION.NAME */
	KEY_ADDS = 2,		/* a list that refuses: each file and section adds to it */
};

struct key {
	const char *section;	/* "profile": of struct config_profile; "tools": of struct
				 * config_tools; "secret": of struct config_secret; else of
				 * struct config */
	const char *name;
	enum key_kind kind;
	size_t offset;
	uint64_t least, most;	/* of the number in the file */
	uint64_t unit;
	const char *standard;	/* as in a file */
	unsigned int flags;
	const char *choices;	/* of KEY_CHOICE: "allow|approve|deny" */
};

/* Row number i; NULL after the last one. */
const struct key *key_at(size_t i);

/* Is it of a section that there can be several of, each with a name: [profile NAME] ... */
bool key_is_named(const struct key *key);

bool key_is_list(const struct key *key);

/* How large its slot is, bytes. */
size_t key_size(const struct key *key);

/* Row number of a key, or -ENOENT. */
int key_find(const char *section, const char *name);

/* Sets the value in the struct at base; of a list, more: adds to what is there. -EINVAL
 * and why_r says what is wrong and what is right. Aborts when out of memory. */
int key_set(const struct key *key, void *base, const char *value, bool more,
	    struct why *why_r);

/* Frees what key_set allocated in the struct at base. */
void key_clear(const struct key *key, void *base);

/* Makes the slot at base, which another struct owns, a copy of its own. */
void key_own(const struct key *key, void *base);

/* Prints one "name = value" that key_set takes. */
void key_print(const struct key *key, const void *base, FILE *out);

#endif
