/* SPDX-License-Identifier: Apache-2.0 */
/* The sets of a tenant, in the order of their use; and what modules a set has. In a store that the
 * test makes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tools/sets/owned.h"
#include "tools/sets/store.h"

#define EXTENSION ".cpython-311-x86_64-linux-gnu.so"

static char store[64];

static int
make_store(void **state)
{
	(void)state;
	strcpy(store, "/tmp/test-owned-XXXXXX");
	return mkdtemp(store) ? 0 : -1;
}

static int
remove_store(void **state)
{
	char command[96];

	(void)state;
	owned_unload();
	snprintf(command, sizeof(command), "rm -r %s", store);
	return system(command);
}

/* A name of a set. */
static const char *
set(unsigned int n)
{
	static char name[SET_NAME + 1];

	snprintf(name, sizeof(name), "%064x", n);
	return name;
}

/* The file that says that a tenant has a set. */
static void
note_at(const char *principal, unsigned int n, time_t second)
{
	const struct timespec times[2] = { { .tv_sec = second }, { .tv_sec = second } };
	char tenant[SET_NAME + 1], path[300];

	owned_note(store, principal, set(n));
	set_tenant(principal, tenant);
	snprintf(path, sizeof(path), "%s/tenants/%s/%s", store, tenant, set(n));
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
	owned_load(store);
}

static void
expect(const char *principal, const unsigned int *want, size_t n)
{
	struct owned owned[OWNED_MAX];

	assert_int_equal(owned_list(principal, owned), n);
	for (size_t i = 0; i < n; i++)
		assert_string_equal(owned[i].name, set(want[i]));
}

static void
the_last_use_comes_first(void **state)
{
	(void)state;
	assert_false(owned_any("uid:1"));
	expect("uid:1", NULL, 0);
	note_at("uid:1", 1, 1000);
	note_at("uid:1", 2, 3000);
	note_at("uid:1", 4, 2000);
	note_at("uid:1", 3, 2000);
	expect("uid:1", (const unsigned int[]){ 2, 3, 4, 1 }, 4);
	owned_note(store, "uid:1", set(1));
	expect("uid:1", (const unsigned int[]){ 1, 2, 3, 4 }, 4);
	owned_load(store);
	expect("uid:1", (const unsigned int[]){ 1, 2, 3, 4 }, 4);
	assert_true(owned_any("uid:1"));
}

static void
nobody_has_what_another_has(void **state)
{
	(void)state;
	owned_note(store, "token:a/../b", set(1));
	assert_false(owned_any("token:b"));
	assert_false(owned_any("uid:1"));
	expect("uid:1", NULL, 0);
	expect("token:a/../b", (const unsigned int[]){ 1 }, 1);
}

static void
the_oldest_are_forgotten(void **state)
{
	struct owned owned[OWNED_MAX];

	(void)state;
	for (unsigned int n = 1; n <= OWNED_MAX; n++)
		note_at("uid:1", n, 1000 + n);
	owned_note(store, "uid:1", set(100));
	assert_int_equal(owned_list("uid:1", owned), OWNED_MAX);
	assert_string_equal(owned[0].name, set(100));
	assert_string_equal(owned[OWNED_MAX - 1].name, set(2));
	note_at("uid:2", 1, 1000);
	owned_forget(store, 1000 + OWNED_MAX);
	expect("uid:1", (const unsigned int[]){ 100, OWNED_MAX }, 2);
	assert_false(owned_any("uid:2"));
	assert_true(owned_any("uid:1"));
	owned_load(store);
	expect("uid:1", (const unsigned int[]){ 100, OWNED_MAX }, 2);
	assert_false(owned_any("uid:2"));
}

static void
count_of(void *arg, const char *principal, const struct owned *found)
{
	unsigned int *n = arg;

	assert_non_null(principal);
	if (strcmp(found->name, set(1)) == 0)
		n[strcmp(principal, "uid:1") == 0 ? 0 : 1]++;
	else
		n[2]++;
}

static void
who_has_a_set_is_known(void **state)
{
	char tenant[SET_NAME + 1], path[300], tenants[80];
	unsigned int n[3] = { 0 };

	(void)state;
	owned_note(store, "uid:1", set(1));
	owned_note(store, "uid:1", set(2));
	owned_note(store, "token:a/../b", set(1));
	owned_load(store);
	owned_each(count_of, n);
	assert_memory_equal(n, ((unsigned int[]){ 1, 1, 1 }), sizeof(n));
	/* Somebody else's name is not believed. */
	set_tenant("uid:1", tenant);
	snprintf(tenants, sizeof(tenants), "%s/tenants", store);
	snprintf(path, sizeof(path), "%s/%s/principal", tenants, tenant);
	assert_int_equal(truncate(path, 4), 0);	/* "uid:" */
	owned_load(store);
	expect("uid:1", (const unsigned int[]){ 2, 1 }, 2);
	owned_note(store, "uid:1", set(2));	/* it says who it is */
	memset(n, 0, sizeof(n));
	owned_each(count_of, n);
	assert_memory_equal(n, ((unsigned int[]){ 1, 1, 1 }), sizeof(n));
}

static void
a_set_is_removed(void **state)
{
	(void)state;
	owned_note(store, "uid:1", set(1));
	owned_note(store, "uid:1", set(2));
	owned_note(store, "uid:1", set(3));
	owned_note(store, "uid:2", set(2));
	assert_int_equal(owned_remove(store, "uid:3", set(2)), 0);
	assert_int_equal(owned_remove(store, "uid:1", set(2)), 1);
	assert_int_equal(owned_remove(store, "uid:1", set(2)), 0);
	expect("uid:1", (const unsigned int[]){ 3, 1 }, 2);
	expect("uid:2", (const unsigned int[]){ 2 }, 1);
	owned_load(store);
	expect("uid:1", (const unsigned int[]){ 3, 1 }, 2);
	owned_note(store, "uid:1", set(2));
	assert_int_equal(owned_remove(store, NULL, set(2)), 2);
	assert_false(owned_any("uid:2"));
	owned_load(store);
	expect("uid:1", (const unsigned int[]){ 3, 1 }, 2);
	assert_false(owned_any("uid:2"));
}

/* A disk that hangs must not stop the loop. */
static void
no_question_asks_the_disk(void **state)
{
	char tenants[96], away[96];

	(void)state;
	owned_note(store, "uid:1", set(1));
	snprintf(tenants, sizeof(tenants), "%s/tenants", store);
	snprintf(away, sizeof(away), "%s/away", store);
	assert_int_equal(rename(tenants, away), 0);
	assert_true(owned_any("uid:1"));
	expect("uid:1", (const unsigned int[]){ 1 }, 1);
}

static void
what_is_no_set_is_none(void **state)
{
	char tenant[SET_NAME + 1], path[300];

	(void)state;
	owned_note(store, "uid:1", set(1));
	set_tenant("uid:1", tenant);
	snprintf(path, sizeof(path), "%s/tenants/%s/%064X", store, tenant, 0xabcu);
	assert_int_equal(close(open(path, O_CREAT | O_WRONLY, 0600)), 0);
	owned_load(store);
	expect("uid:1", (const unsigned int[]){ 1 }, 1);
}

static void
put(const char *path, bool directory)
{
	char all[300];

	snprintf(all, sizeof(all), "%s/%s%s%s", store, set(1), path ? "/tree/" : "",
		 path ? path : "");
	if (directory)
		assert_int_equal(mkdir(all, 0755), 0);
	else
		assert_int_equal(close(open(all, O_CREAT | O_WRONLY, 0644)), 0);
}

static void
modules_of_a_set(void **state)
{
	static const char *const has[] = { "package", "single", "built", "stable", "plain" };
	static const char *const lacks[] = { "other", "text", "bin", "directory", "link", "single.py" };

	(void)state;
	put(NULL, true);
	put("", true);
	put("package", true);
	put("bin", true);
	put("directory.py", true);
	put("single.py", false);
	put("built" EXTENSION, false);
	put("other.cpython-39-x86_64-linux-gnu.so", false);
	put("stable.abi3.so", false);
	put("plain.so", false);
	put("text.txt", false);
	for (size_t i = 0; i < sizeof(has) / sizeof(*has); i++)
		if (!store_has_module(store, set(1), has[i], EXTENSION))
			fail_msg("%s is not found", has[i]);
	for (size_t i = 0; i < sizeof(lacks) / sizeof(*lacks); i++)
		if (store_has_module(store, set(1), lacks[i], EXTENSION))
			fail_msg("%s is found", lacks[i]);
	assert_false(store_has_module(store, set(2), "package", EXTENSION));
}

/* What the service logs while it reads the store. */
static void
load_logs(char *said, size_t size)
{
	int pair[2], err = dup(STDERR_FILENO);
	ssize_t n;

	assert_int_equal(pipe2(pair, O_NONBLOCK), 0);
	dup2(pair[1], STDERR_FILENO);
	owned_load(store);
	dup2(err, STDERR_FILENO);
	n = read(pair[0], said, size - 1);
	said[n > 0 ? n : 0] = '\0';
	close(pair[0]);
	close(pair[1]);
	close(err);
}

/* Tenants lose their packages until the next start. A file is read as a directory. */
static void
what_cannot_be_read_is_logged(void **)
{
	char said[300], tenant[SET_NAME + 1], path[300];

	load_logs(said, sizeof(said));
	assert_string_equal(said, "");
	owned_note(store, "uid:1", set(1));
	set_tenant("uid:2", tenant);
	snprintf(path, sizeof(path), "%s/tenants/%s", store, tenant);
	close(open(path, O_CREAT | O_WRONLY, 0600));
	load_logs(said, sizeof(said));
	assert_non_null(strstr(said, "tenants-unread error=ENOTDIR"));
	expect("uid:1", (const unsigned int[]){ 1 }, 1);
	snprintf(path, sizeof(path), "rm -r %s/tenants; touch %s/tenants", store, store);
	assert_int_equal(system(path), 0);
	load_logs(said, sizeof(said));
	assert_non_null(strstr(said, "tenants-unread error=ENOTDIR"));
}

#define IN_STORE(test) cmocka_unit_test_setup_teardown(test, make_store, remove_store)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		IN_STORE(the_last_use_comes_first),
		IN_STORE(nobody_has_what_another_has),
		IN_STORE(the_oldest_are_forgotten),
		IN_STORE(who_has_a_set_is_known),
		IN_STORE(a_set_is_removed),
		IN_STORE(no_question_asks_the_disk),
		IN_STORE(what_is_no_set_is_none),
		IN_STORE(modules_of_a_set),
		IN_STORE(what_cannot_be_read_is_logged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
