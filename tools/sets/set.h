/* SPDX-License-Identifier: Apache-2.0 */
/* A set of packages with their exact versions and hashes: the result of a resolver, and the
 * contents of an environment. As JSON, an array of objects, ordered by name:
 *   {"name", "version", "hash": "sha256:...", "index", "size"}
 * and "built": true if the hash is that of a source, whose wheel was built here. If a package was
 * requested by the URL of a wheel, that URL is its index.
 */
#ifndef TOOLS_SETS_SET_H
#define TOOLS_SETS_SET_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "policy/packages.h"
#include "policy/requirement.h"

#define SET_NAME 64		/* bytes of a name: SHA-256 in hexadecimal */
#define SET_PACKAGES_MAX 500

/* "sha256:" and 64 hexadecimal digits? */
bool set_is_hash(const char *hash);

/* The form of the name of a set, and of other digests here? */
bool set_is_name(const char *name);

/* Reads a set from a worker ("packages" of its answer). Every text is checked; names must be
 * normalised and different, and all packages must come from these origins, indexes and URLs. NULL:
 * it is not a valid set. */
json_t *set_read(const json_t *packages, const json_t *origins);

/* The set in a manifest, borrowed; NULL: it is not valid. */
json_t *set_of_manifest(const json_t *manifest);

/* Fills package, which has room for all, with the packages of a set, in the form for policy;
 * borrowed. */
void set_packages(const json_t *set, struct package *package);

/* The package of this name; NULL: there is none. Borrowed. */
const json_t *set_find(const json_t *set, const char *name);

/* Does the set hold every package of the other one (NULL: none), in the same version from the same
 * place? */
bool set_keeps(const json_t *set, const json_t *other);

/* The requirement that only this package meets: "name==version" or "name @ url". */
json_t *set_exactly(const json_t *package);

/* The name of the environment with these packages, from these places, for this kind of interpreter.
 */
void set_name(const char *platform, const json_t *set, char name_r[SET_NAME + 1]);

/* The name of a request: the same for the same requirements in any order, from the same indexes,
 * for the same kind of interpreter. requirements: texts of set_requirement. */
void set_request(const char *platform, const json_t *indexes, const json_t *requirements,
		 char name_r[SET_NAME + 1]);

/* The name of a tenant in names of files. */
void set_tenant(const char *principal, char name_r[SET_NAME + 1]);

/* "name[extra]>=1; marker", or "name @ url": one spelling of each requirement, malloc'd. */
char *set_requirement(const struct requirement *requirement);

/* "cpython-3.11-linux-x86_64" of an environment (tools/shared/environment.h), malloc'd. */
char *set_platform(const json_t *environment);

#endif
