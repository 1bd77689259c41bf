/* SPDX-License-Identifier: Apache-2.0 */
/* A set of packages with their exact versions and hashes: the result of a resolver, and the
 * contents of an environment. Its form is a JSON array of objects, ordered by name:
 *   {"name", "version", "hash": "sha256:...", "index", "size"}
 * A package that was built from source also has "built": true; its hash is that of the source. If a
 * package was requested by the URL of a wheel, that URL is its index.
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

/* Is this "sha256:" and 64 hexadecimal digits? */
bool set_is_hash(const char *hash);

/* Has name the form of a set's name, 64 hexadecimal digits? */
bool set_is_name(const char *name);

/* Reads a set from a worker's answer. packages: its member "packages". Every text is checked. Names
 * must be normalised and different, and each package must come from one of the origins, which are
 * indexes and URLs. NULL: it is not a valid set. */
json_t *set_read(const json_t *packages, const json_t *origins);

/* The set in a manifest, borrowed; NULL: it is not valid. */
json_t *set_of_manifest(const json_t *manifest);

/* Fills in package, an array with room for all packages of the set, in the form for policy. It
 * borrows from set. */
void set_packages(const json_t *set, struct package *package);

/* The package of this name; NULL: there is none. Borrowed. */
const json_t *set_find(const json_t *set, const char *name);

/* Has the set every package of the other one (NULL: none), in the same version and from the same
 * origin? */
bool set_keeps(const json_t *set, const json_t *other);

/* The requirement that only this package meets: "name==version" or "name @ url". */
json_t *set_exactly(const json_t *package);

/* The name of the environment with the packages of this set, from their origins, for this kind of
 * interpreter. */
void set_name(const char *platform, const json_t *set, char name_r[SET_NAME + 1]);

/* The name of a request. It is the same for the same requirements, in any order, the same indexes
 * and the same kind of interpreter. requirements: texts of set_requirement. */
void set_request(const char *platform, const json_t *indexes, const json_t *requirements,
		 char name_r[SET_NAME + 1]);

/* The name of a tenant for use in names of files. */
void set_tenant(const char *principal, char name_r[SET_NAME + 1]);

/* The normal form of a requirement, "name[extra]>=1; marker" or "name @ url", malloc'd. */
char *set_requirement(const struct requirement *requirement);

/* The kind of interpreter, "cpython-3.11-linux-x86_64", malloc'd. environment: as in
 * tools/shared/environment.h. */
char *set_platform(const json_t *environment);

#endif
