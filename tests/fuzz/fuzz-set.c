/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of packages. The first byte is the kind of the rest:
 *
 *   'M'  a manifest from the store
 *   'A'  a worker's answer: the packages that the resolver found
 *   'R'  the file of a request, which names an environment
 *   'Q'  requirements, a line each
 *
 * The target asserts:
 *
 * - An accepted answer is within its bounds, ordered, and has each name once. It is printed and
 *   read as the same set. The set's name does not depend on the order of the packages.
 * - An accepted manifest has all values that policy needs.
 * - A request leads to an environment only by a complete name.
 * - A requirement has one spelling. The name of a request does not depend on the order. */
#include "fuzz.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "policy/requirement.h"
#include "tools/sets/set.h"
#include "tools/sets/store.h"

#define NAME "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define MANIFEST "{\"packages\":[{\"name\":\"a\",\"version\":\"1\",\"size\":1,\"index\":\"i\"," \
	"\"hash\":\"sha256:" NAME "\"}]}"

static char store[64];

static void
put(const char *path, const void *bytes, size_t len)
{
	int dir = open(store, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int fd = openat(dir, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	MUST(fd >= 0 && write(fd, bytes, len) == (ssize_t)len);
	close(fd);
	close(dir);
}

static void
remove_store(void)
{
	static const char *const in_it[] = { "/" NAME "/manifest", "/" NAME, "/requests/" NAME,
					     "/requests", "" };

	for (size_t i = 0; i < sizeof(in_it) / sizeof(*in_it); i++) {
		char path[256];

		snprintf(path, sizeof(path), "%s%s", store, in_it[i]);
		(void)remove(path);
	}
}

static void
make_store(void)
{
	char path[256];

	strcpy(store, "/tmp/fuzz-set-XXXXXX");
	MUST(mkdtemp(store) && atexit(remove_store) == 0);
	snprintf(path, sizeof(path), "%s/%s", store, NAME);
	MUST(mkdir(path, 0700) == 0);
	snprintf(path, sizeof(path), "%s/requests", store);
	MUST(mkdir(path, 0700) == 0);
}

static void
check_for_policy(const json_t *set)
{
	size_t n = json_array_size(set);
	struct package *package = calloc(n, sizeof(*package));

	set_packages(set, package);
	for (size_t i = 0; i < n; i++) {
		MUST(*package[i].name && *package[i].version && set_is_hash(package[i].hash));
		MUST(!package[i].index != !package[i].url);
	}
	free(package);
}

/* The origins of all packages. */
static json_t *
origins_of(const json_t *packages)
{
	json_t *origins = json_array(), *package;
	size_t i;

	json_array_foreach((json_t *)packages, i, package)
		if (json_is_string(json_object_get(package, "index")))
			json_array_append(origins, json_object_get(package, "index"));
	return origins;
}

static void
check_again(const json_t *set, const json_t *origins)
{
	char name[SET_NAME + 1], other[SET_NAME + 1];
	json_t *reversed = json_array(), *again, *package;
	char *text = json_dumps(set, 0);
	size_t i;

	set_name("p", set, name);
	again = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	MUST(json_equal(set, again));
	json_array_foreach(again, i, package)
		json_array_insert(reversed, 0, package);
	json_decref(again);
	again = set_read(reversed, origins);
	MUST(again && json_equal(set, again));
	set_name("p", again, other);
	MUST(strcmp(name, other) == 0);
	json_decref(again);
	json_decref(reversed);
	free(text);
}

static void
try_answer(const char *text, size_t len)
{
	json_t *packages = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
	json_t *origins = origins_of(packages), *set = set_read(packages, origins);
	size_t n = json_array_size(set);

	if (set) {
		MUST(n > 0 && n <= SET_PACKAGES_MAX && n == json_array_size(packages));
		for (size_t i = 1; i < n; i++)
			MUST(strcmp(json_string_value(json_object_get(json_array_get(set, i - 1),
								      "name")),
				    json_string_value(json_object_get(json_array_get(set, i),
								      "name"))) < 0);
		check_for_policy(set);
		check_again(set, origins);
	}
	json_decref(set);
	json_decref(origins);
	json_decref(packages);
}

static void
try_manifest(const char *text, size_t len)
{
	json_t *manifest;

	put(NAME "/manifest", text, len);
	manifest = store_manifest(store, NAME);
	if (!manifest)
		return;
	MUST(set_of_manifest(manifest));
	check_for_policy(set_of_manifest(manifest));
	json_decref(manifest);
}

static void
try_request(const char *text, size_t len)
{
	char name[SET_NAME + 1];
	json_t *manifest;

	put(NAME "/manifest", MANIFEST, strlen(MANIFEST));
	put("requests/" NAME, text, len);
	manifest = store_find(store, NAME, name);
	MUST(!!manifest == (len == SET_NAME && memcmp(text, NAME, SET_NAME) == 0));
	MUST(!manifest || strcmp(name, NAME) == 0);
	json_decref(manifest);
}

static void
try_requirements(struct rest rest)
{
	char name[SET_NAME + 1], other[SET_NAME + 1];
	json_t *indexes = json_pack("[s]", "i"), *texts = json_array(), *reversed = json_array();

	while (rest.len > 0) {
		struct rest line = rest_line(&rest);
		struct requirement requirement;
		char *text, *again;

		if (requirement_read((const char *)line.at, line.len, &requirement) < 0)
			continue;
		text = set_requirement(&requirement);
		requirement_done(&requirement);
		if (requirement_read(text, strlen(text), &requirement) == 0) {
			again = set_requirement(&requirement);
			MUST(strcmp(text, again) == 0);
			free(again);
			requirement_done(&requirement);
		} else {
			MUST(strlen(text) > REQUIREMENT_MAX);
		}
		json_array_append_new(texts, json_string(text));
		json_array_insert_new(reversed, 0, json_string(text));
		free(text);
	}
	set_request("p", indexes, texts, name);
	set_request("p", indexes, reversed, other);
	MUST(strcmp(name, other) == 0);
	set_request("q", indexes, texts, other);
	MUST(strcmp(name, other) != 0);
	json_decref(indexes);
	json_decref(texts);
	json_decref(reversed);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data + 1;

	if (!*store)
		make_store();
	if (size == 0)
		return 0;
	if (data[0] == 'M')
		try_manifest(text, size - 1);
	else if (data[0] == 'R')
		try_request(text, size - 1);
	else if (data[0] == 'Q')
		try_requirements((struct rest){ data + 1, size - 1 });
	else
		try_answer(text, size - 1);
	return 0;
}
