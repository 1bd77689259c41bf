/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing.
 * Reads:   the resolver's result as a worker reports it: any JSON. */
#include "tools/sets/set.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <openssl/evp.h>

#include "base/hex.h"
#include "base/member.h"
#include "base/xalloc.h"
#include "policy/version.h"

#define NAME_MAX_BYTES 128
#define HASH_PREFIX "sha256:"

/* ---- reading ---- */

static const char *
set_text_of(const json_t *object, const char *key, size_t most)
{
	const json_t *value = json_object_get(object, key);
	const char *text = json_string_value(value);

	return text && *text && json_string_length(value) <= most &&
	       strlen(text) == json_string_length(value) ? text : NULL;
}

static bool
is_name(const char *name)
{
	char normal[NAME_MAX_BYTES + 1];

	for (const char *at = name; *at; at++)
		if (!isalnum((unsigned char)*at) && !strchr("-_.", *at))
			return false;
	requirement_normalise(name, strlen(name), normal);
	return strcmp(name, normal) == 0;
}

bool
set_is_hash(const char *hash)
{
	size_t prefix = strlen(HASH_PREFIX);

	return strlen(hash) == prefix + 64 && strncmp(hash, HASH_PREFIX, prefix) == 0 &&
	       strspn(hash + prefix, "0123456789abcdef") == 64;
}

bool
set_is_name(const char *name)
{
	return strlen(name) == SET_NAME && strspn(name, "0123456789abcdef") == SET_NAME;
}

static bool
set_is_package(const json_t *package)
{
	const char *name = set_text_of(package, "name", NAME_MAX_BYTES);
	const char *version = set_text_of(package, "version", VERSION_MAX);
	const char *hash = set_text_of(package, "hash", 80);
	const json_t *size = json_object_get(package, "size");
	const json_t *built = json_object_get(package, "built");
	struct version read;

	return name && version && hash && is_name(name) && set_is_hash(hash) &&
	       version_read(version, strlen(version), &read) == 0 && json_is_integer(size) &&
	       json_integer_value(size) >= 0 && (!built || json_is_true(built));
}

static int
set_by_name(const void *a, const void *b)
{
	const json_t *const *left = a, *const *right = b;

	return strcmp(member_text(*left, "name"), member_text(*right, "name"));
}

static json_t *
copy_package(const json_t *package)
{
	json_t *copy = json_pack("{s:O,s:O,s:O,s:O,s:O,s:O*}", "name",
				 json_object_get(package, "name"), "version",
				 json_object_get(package, "version"), "hash",
				 json_object_get(package, "hash"), "index",
				 json_object_get(package, "index"), "size",
				 json_object_get(package, "size"), "built",
				 json_object_get(package, "built"));

	return xalloc_check(copy);
}

static bool
is_of(const json_t *package, const json_t *origins)
{
	const json_t *index = json_object_get(package, "index"), *one;
	size_t i;

	json_array_foreach(origins, i, one)
		if (json_equal(one, index))
			return true;
	return false;
}

json_t *
set_read(const json_t *packages, const json_t *origins)
{
	const json_t *ordered[SET_PACKAGES_MAX];
	size_t n = json_array_size(packages);
	json_t *set;

	if (!json_is_array(packages) || n == 0 || n > SET_PACKAGES_MAX)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		ordered[i] = json_array_get(packages, i);
		if (!set_is_package(ordered[i]) || !is_of(ordered[i], origins))
			return NULL;
	}
	qsort(ordered, n, sizeof(*ordered), set_by_name);
	set = xalloc_check(json_array());
	for (size_t i = 0; i < n; i++) {
		if (i && set_by_name(&ordered[i - 1], &ordered[i]) == 0) {
			json_decref(set);
			return NULL;
		}
		json_array_append_new(set, copy_package(ordered[i]));
	}
	return set;
}

json_t *
set_of_manifest(const json_t *manifest)
{
	json_t *packages = json_object_get(manifest, "packages"), *package;
	size_t i;

	if (!json_is_array(packages) || json_array_size(packages) == 0)
		return NULL;
	json_array_foreach(packages, i, package)
		if (!set_is_package(package) || !set_text_of(package, "index", 4096))
			return NULL;
	return packages;
}

void
set_packages(const json_t *set, struct package *package)
{
	const json_t *one;
	size_t i;

	json_array_foreach(set, i, one) {
		const char *from = member_text(one, "index");
		bool direct = packages_is_wheel_url(from);

		package[i] = (struct package){
			.name = member_text(one, "name"),
			.version = member_text(one, "version"),
			.hash = member_text(one, "hash"),
			.index = direct ? NULL : from,
			.url = direct ? from : NULL,
			.size = (uint64_t)json_integer_value(json_object_get(one, "size")),
			.built = json_is_true(json_object_get(one, "built")),
		};
	}
}

/* ---- packages of a set ---- */

const json_t *
set_find(const json_t *set, const char *name)
{
	const json_t *package;
	size_t i;

	json_array_foreach(set, i, package)
		if (strcmp(member_text(package, "name"), name) == 0)
			return package;
	return NULL;
}

bool
set_keeps(const json_t *set, const json_t *other)
{
	const json_t *package;
	size_t i;

	json_array_foreach(other, i, package)
		if (!json_equal(package, set_find(set, member_text(package, "name"))))
			return false;
	return true;
}

json_t *
set_exactly(const json_t *package)
{
	const char *name = member_text(package, "name");
	const char *from = member_text(package, "index");

	return xalloc_check(packages_is_wheel_url(from)
		? json_sprintf("%s @ %s", name, from)
		: json_sprintf("%s==%s", name, member_text(package, "version")));
}

/* ---- names ---- */

/* Each part has its length before it, so that different lists never have the same digest. */
static void
set_name_part(EVP_MD_CTX *digest, const char *text)
{
	uint64_t len = strlen(text);

	xassert(EVP_DigestUpdate(digest, &len, sizeof(len)) == 1 &&
		EVP_DigestUpdate(digest, text, len) == 1);
}

static EVP_MD_CTX *
set_name_begin(const char *kind, const char *platform)
{
	EVP_MD_CTX *digest = xalloc_check(EVP_MD_CTX_new());

	xassert(EVP_DigestInit_ex(digest, EVP_sha256(), NULL) == 1);
	set_name_part(digest, kind);
	set_name_part(digest, platform);
	return digest;
}

static void
set_name_end(EVP_MD_CTX *digest, char name_r[SET_NAME + 1])
{
	unsigned char sum[EVP_MAX_MD_SIZE];

	xassert(EVP_DigestFinal_ex(digest, sum, NULL) == 1);
	EVP_MD_CTX_free(digest);
	hex_write(sum, SET_NAME / 2, name_r);
}

void
set_name(const char *platform, const json_t *set, char name_r[SET_NAME + 1])
{
	static const char *const keys[] = { "name", "version", "hash", "index" };
	EVP_MD_CTX *digest = set_name_begin("environment", platform);
	const json_t *package;
	size_t i;

	json_array_foreach(set, i, package) {
		for (size_t k = 0; k < sizeof(keys) / sizeof(*keys); k++)
			set_name_part(digest, member_text(package, keys[k]));
		if (json_object_get(package, "built"))
			set_name_part(digest, "built");
	}
	set_name_end(digest, name_r);
}

void
set_tenant(const char *principal, char name_r[SET_NAME + 1])
{
	set_name_end(set_name_begin("tenant", principal), name_r);
}

static int
by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void
set_request(const char *platform, const json_t *indexes, const json_t *requirements,
	    char name_r[SET_NAME + 1])
{
	const json_t *index;
	size_t n = json_array_size(requirements);
	const char **text = xcalloc(n, sizeof(*text));
	EVP_MD_CTX *digest = set_name_begin("request", platform);
	size_t i;

	for (i = 0; i < n; i++)
		text[i] = json_string_value(json_array_get(requirements, i));
	qsort(text, n, sizeof(*text), by_text);
	json_array_foreach(indexes, i, index)
		set_name_part(digest, json_string_value(index));
	set_name_part(digest, "");
	for (i = 0; i < n; i++)
		set_name_part(digest, text[i]);
	free(text);
	set_name_end(digest, name_r);
}

char *
set_requirement(const struct requirement *requirement)
{
	bool extras = *requirement->extras;

	return xasprintf("%s%s%s%s%s%s%s%s%s", requirement->name, extras ? "[" : "",
			 requirement->extras, extras ? "]" : "", requirement->specifiers,
			 requirement->url ? " @ " : "",
			 requirement->url ? requirement->url : "",
			 requirement->marker ? " ; " : "",
			 requirement->marker ? requirement->marker : "");
}

char *
set_platform(const json_t *environment)
{
	const json_t *markers = json_object_get(environment, "markers");
	static const char *const keys[] = { "implementation_name", "python_version",
					    "sys_platform", "platform_machine" };
	const char *part[4];

	for (size_t i = 0; i < 4; i++) {
		part[i] = member_text(markers, keys[i]);
		if (!part[i])
			part[i] = "";
	}
	return xasprintf("%s-%s-%s-%s", part[0], part[1], part[2], part[3]);
}
