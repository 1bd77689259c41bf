/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that tests of authentication share: a directory with files, keys, and tokens that are
 * signed with them. */
#ifndef TESTS_UNIT_AUTH_AUTH_RIG_H
#define TESTS_UNIT_AUTH_AUTH_RIG_H

#include <cjose/cjose.h>

#define RIG_ISSUER "https://id.example.org/realm"
#define RIG_RESOURCE "https://py.example.org/mcp"
#define RIG_NOW 1795240800

struct rig {
	char dir[32];
	char tokens[64], jwks[64];		/* paths in it */
	cjose_jwk_t *rsa, *other_rsa, *ec;	/* kids "rsa", "other", "ec" */
};

int rig_set_up(void **state);
int rig_tear_down(void **state);

/* Replaces the file at path by rename. */
void rig_write(const char *path, const char *text);

/* A JWKS of the public halves of keys; freed by the caller. */
char *rig_jwks(cjose_jwk_t *const *keys, size_t n);

/* Signs claims; freed by the caller. kid, typ: NULL: the header has none. */
char *rig_sign(cjose_jwk_t *key, const char *alg, const char *kid, const char *typ,
	       const char *claims);

/* As rig_sign, with this header and these bytes as the signature. */
char *rig_forge(const char *header, const char *claims, const char *signature);

#endif
