/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker tells beside its streams is bounded; what is kept of it expires, and is its
 * tenant's alone. On the fake engine, for its tenants; no worker runs. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "engine/execution_results.h"
#include "policy/config.h"
#include "tests/unit/tools/fake_engine.h"
#include "tools/script/run_script_files.h"
#include "tools/shared/file_read.h"
#include "tools/shared/resources.h"

/* ---- what is told ---- */

static struct execution_results results;

static int
start(void **state)
{
	static const struct results_limits limits = {
		.displays = 20, .display_bytes = 4096, .files = 100, .files_bytes = 1024 };

	(void)state;
	results_init(&results, 7, &limits);
	return 0;
}

static int
stop(void **state)
{
	(void)state;
	results_done(&results);
	return 0;
}

static int
display(uint64_t id, uint32_t object, size_t len)
{
	struct frame frame = { .msg = { .type = MSG_DISPLAY, .display = {
		.id = id, .object = object, .kind = DISPLAY_PLAIN, .data = { "x", len } } } };

	return results_take(&results, &frame);
}

static int
left(const char *path, size_t len)
{
	struct frame frame = { .msg = { .type = MSG_LEFT, .left = {
		.path = msg_str(path), .size = len, .has_data = true,
		.data = { "x", len } } } };

	return results_take(&results, &frame);
}

static void
objects_come_in_order(void **state)
{
	(void)state;
	assert_true(display(7, 1, 1) < 0);
	assert_true(display(8, 0, 1) < 0);
	assert_int_equal(display(7, 0, 1), 0);
	assert_int_equal(display(7, 0, 1), 0);
	assert_true(display(7, 2, 1) < 0);
	assert_int_equal(display(7, 1, 1), 0);
	assert_true(display(7, 0, 1) < 0);
	for (int i = 1; i < DISPLAY_FORMS_MAX; i++)
		assert_int_equal(display(7, 1, 1), 0);
	assert_true(display(7, 1, 1) < 0);
}

static void
displays_have_a_sum(void **state)
{
	(void)state;
	assert_int_equal(display(7, 0, 4096 - 1), 0);
	assert_true(display(7, 1, 2) < 0);
	assert_int_equal(display(7, 1, 1), 0);
	assert_true(display(7, 2, 1) < 0);
}

static void
files_have_a_sum_and_a_number(void **state)
{
	struct frame more = { .msg = { .type = MSG_LEFT_MORE, .left_more.more = 3 } };
	struct outcome outcome = { .id = "x-1" };

	(void)state;
	assert_int_equal(left("b", 1024 - 1), 0);
	assert_true(left("c", 2) < 0);
	assert_int_equal(left("a", 1), 0);
	assert_int_equal(left("a", 0), 0);
	for (int i = 3; i < 100; i++)
		assert_int_equal(left(i % 2 ? "z" : "zz", 0), 0);
	assert_true(left("d", 0) < 0);
	assert_int_equal(results_take(&results, &more), 0);
	assert_true(results_take(&results, &more) < 0);
	/* In order, and each path once. */
	results_show(&results, &outcome);
	assert_int_equal(outcome.n_files, 4);
	assert_int_equal(outcome.more_files, 3);
	for (size_t i = 1; i < outcome.n_files; i++) {
		const struct outcome_file *a = &outcome.file[i - 1], *b = &outcome.file[i];
		size_t len = a->path_len < b->path_len ? a->path_len : b->path_len;
		int order = memcmp(a->path, b->path, len);

		assert_true(order < 0 || (order == 0 && a->path_len < b->path_len));
	}
}

static int
offer(const char *path, uint64_t size, size_t *at_r)
{
	struct frame frame = { .msg = { .type = MSG_OFFER, .offer = {
		.path = msg_str(path), .size = size } } };

	return results_take_offer(&results, &frame, at_r);
}

static void
offers_are_files(void **state)
{
	unsigned char sum[32] = "sum";
	struct outcome outcome = { .id = "x-1" };
	const struct msg_str *path;
	size_t at, kept = 0;

	(void)state;
	assert_int_equal(left("b", 3), 0);
	assert_int_equal(offer("c", 1 << 30, &at), 0);
	results_offer_ended(&results, at, 0, sum);
	assert_int_equal(offer("a", 1 << 30, &at), 0);
	results_offer_ended(&results, at, -ENOSPC, NULL);
	assert_true(offer("../a", 1, &at) < 0);
	assert_true(offer("a\nb", 1, &at) < 0);
	path = results_offer_kept(&results, &kept);
	assert_memory_equal(path->at, "c", 1);
	kept++;
	assert_null(results_offer_kept(&results, &kept));
	results_show(&results, &outcome);
	assert_int_equal(outcome.n_files, 3);
	assert_int_equal(outcome.file[0].error, -ENOSPC);
	assert_false(outcome.file[0].stored || outcome.file[0].sha256);
	assert_non_null(outcome.file[1].data);
	assert_true(outcome.file[2].stored);
	assert_memory_equal(outcome.file[2].sha256, sum, sizeof(sum));
}

/* When init reports, the script offers nothing any more. */
static void
no_offers_after_init(void **state)
{
	size_t at, kept = 0;

	(void)state;
	assert_int_equal(offer("a", 5, &at), 0);
	assert_true(results_restart(&results));
	assert_null(results_offer_kept(&results, &kept));
	assert_true(offer("a", 5, &at) < 0);
	for (unsigned int i = 0; i < 100; i++)
		assert_int_equal(left(i % 2 ? "a" : "b", 0), 0);
}

static void
paths_have_no_bytes_that_nobody_sees(void **state)
{
	static const char *const refused[] = {
		"", "/a", "a/", "a//b", ".", "..", "a/../b", "a\nb", "\x1b[2J", "a\x7f",
		"\xc2\x9b\0631m", "\xc2\x85", "\xe2\x80\xaegpj.exe", "a\xe2\x80\x8b\142",
		"\xef\xbb\xbf\141", "a\xe2\x80\xa8\142", "\xf3\xa0\x81\x81",
	};
	static const char *const taken[] = {
		"a/b.txt", "..a", "\\x1b[2J", "gr\xc3\xbc\xc3\x9f", "\xe5\x90\x8d\xe3\x80\x80\061",
		"\xf0\x9f\x98\x80",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++)
		assert_true(left(refused[i], 0) < 0);
	for (size_t i = 0; i < sizeof(taken) / sizeof(*taken); i++)
		assert_int_equal(left(taken[i], 0), 0);
}

static void
no_file_after_the_number_of_more(void **state)
{
	struct frame more = { .msg = { .type = MSG_LEFT_MORE, .left_more.more = 3 } };

	(void)state;
	assert_int_equal(results_take(&results, &more), 0);
	assert_true(left("a", 0) < 0);
}

static void
files_are_reported_again_once(void **state)
{
	struct frame more = { .msg = { .type = MSG_LEFT_MORE, .left_more.more = 3 } };
	struct outcome outcome = { .id = "x-1" };

	(void)state;
	assert_int_equal(left("a", 1024), 0);
	assert_int_equal(results_take(&results, &more), 0);
	assert_true(results_restart(&results));
	/* Nothing of the first report counts, neither its bytes nor the number of others. */
	assert_int_equal(left("b", 1024), 0);
	assert_false(results_restart(&results));
	results_show(&results, &outcome);
	assert_int_equal(outcome.n_files, 1);
	assert_memory_equal(outcome.file[0].path, "b", outcome.file[0].path_len);
	assert_int_equal(outcome.more_files, 0);
}

static void
files_are_unknown_while_it_runs(void **state)
{
	struct outcome outcome = { .id = "x-1" };

	(void)state;
	results_show(&results, &outcome);
	assert_false(outcome.files_unknown);
	stop(NULL);
	start(NULL);
	results_begin(&results);
	results_show(&results, &outcome);
	assert_true(outcome.files_unknown);
	stop(NULL);
	start(NULL);
	results_begin(&results);
	results_end(&results);
	results_show(&results, &outcome);
	assert_false(outcome.files_unknown);
}

/* ---- what is kept ---- */

static uint64_t now;

static uint64_t
clock_of_the_test(void)
{
	return now;
}

static struct config *config;
static struct engine *engine;
static struct tenant *alice, *bob;

static int
open_store(void **state)
{
	struct engine_options options = { .base = NULL };

	(void)state;
	resources_set_clock(clock_of_the_test);
	now = 1000;
	config = config_new();
	assert_int_equal(engine_new(&options, &engine), 0);
	alice = engine_tenant_named(engine, "sub:alice");
	bob = engine_tenant_named(engine, "sub:bob");
	return 0;
}

static int
close_store(void **state)
{
	(void)state;
	resources_forget();
	tenant_release(alice);
	tenant_release(bob);
	engine_free(engine);
	config_free(config);
	return 0;
}

static void
keep(const struct tenant *tenant, const char *id, const char *path, const char *data,
     size_t len)
{
	struct outcome_file file = { .path = path, .path_len = strlen(path), .size = len,
				     .data = data, .len = len };
	struct outcome outcome = { .id = id, .file = &file, .n_files = 1 };

	resources_keep(config, tenant, &outcome);
}

static unsigned int
count(struct tenant *tenant)
{
	struct resource resource;
	char after[200] = "";
	unsigned int n = 0;

	while (own_resources.next(tenant, after, &resource)) {
		assert_true(strcmp(resource.uri, after) > 0);
		snprintf(after, sizeof(after), "%s", resource.uri);
		n++;
	}
	return n;
}

struct heard {
	char text[64];
	bool failed, blob;
};

static void
on_answer(void *arg, const struct tool_answer *answer)
{
	struct heard *heard = arg;
	const struct content *block = answer->content;

	assert_int_equal(answer->n_content, 1);
	heard->blob = !block->text;
	snprintf(heard->text, sizeof(heard->text), "%.*s",
		 (int)(block->text ? block->text_len : block->data_len),
		 block->text ? block->text : (const char *)block->data);
}

static void
on_fail(void *arg, const struct tool_failure *failure)
{
	struct heard *heard = arg;

	assert_int_equal(failure->kind, FAIL_NO_RESOURCE);
	heard->failed = true;
}

static struct heard
read_uri(struct tenant *tenant, const char *uri)
{
	struct heard heard = { .failed = false };
	struct tool_host host = { .config = config, .tenant = tenant, .on_answer = on_answer,
				  .on_fail = on_fail, .arg = &heard };
	json_t *arguments = json_pack("{s:s}", "uri", uri);

	assert_null(own_resources.read->start(&host, arguments));
	json_decref(arguments);
	return heard;
}

static void
a_file_is_its_tenants_alone(void **state)
{
	(void)state;
	keep(alice, "x-1", "a/b c.txt", "hello", 5);
	assert_string_equal(read_uri(alice, "mcp-python://x-1/a/b%20c.txt").text, "hello");
	assert_false(read_uri(alice, "mcp-python://x-1/a/b%20c.txt").blob);
	assert_true(read_uri(bob, "mcp-python://x-1/a/b%20c.txt").failed);
	assert_true(read_uri(alice, "mcp-python://x-1/a/b c.txt").failed);
	assert_true(read_uri(alice, "").failed);
	assert_int_equal(count(alice), 1);
	assert_int_equal(count(bob), 0);
	keep(bob, "x-2", "bin", "\1\2", 2);
	assert_true(read_uri(bob, "mcp-python://x-2/bin").blob);
}

/* Markup is kept, text is not; nor is what is no picture. */
/* The least time of a round of calls of one tenant, in which a file is kept and read. */
static uint64_t
take_time(void)
{
	enum { ROUNDS = 9, N = 500 };
	uint64_t least = UINT64_MAX;
	struct timespec from, to;
	const void *data;
	size_t len;

	for (int round = 0; round < ROUNDS; round++) {
		uint64_t took;

		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
		for (int i = 0; i < N; i++) {
			keep(alice, i % 2 ? "x-even" : "x-odd", "of-alice", "a", 1);
			(void)resources_find(alice, "mcp-python://x-none/of-alice", &data, &len);
		}
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
		took = (uint64_t)(to.tv_sec - from.tv_sec) * 1000000000 + (uint64_t)to.tv_nsec -
		       (uint64_t)from.tv_nsec;
		least = took < least ? took : least;
	}
	return least;
}

/* With the files of 5,000 other tenants a call costs about what it does with those of 50. */
static void
others_files_cost_no_time(void **state)
{
	enum { FEW = 50, MANY = 5000 };
	static struct tenant *tenant[MANY];
	uint64_t few = 0;

	(void)state;
	config->results.keep_bytes = 2000;	/* she has few herself */
	for (uid_t i = 0; i < MANY; i++) {
		if (i == FEW)
			few = take_time();
		tenant[i] = engine_tenant(engine, 10000 + i);
		keep(tenant[i], "x-other", "of-another", "b", 1);
	}
	assert_in_range(take_time(), 0, 40 * few);	/* a walk: 100 */
	for (int i = 0; i < MANY; i++)
		tenant_release(tenant[i]);
}

static void
so_is_what_was_shown(void **state)
{
	struct outcome_display display[] = {
		{ .object = 0, .kind = DISPLAY_HTML, .data = "<b>", .len = 3 },
		{ .object = 1, .kind = DISPLAY_PLAIN, .data = "text", .len = 4 },
		{ .object = 2, .kind = DISPLAY_PNG, .data = "none", .len = 4 },
	};
	struct outcome outcome = { .id = "x-1", .display = display, .n_displays = 3 };
	char *uri = resources_display_uri("x-1", &display[0]);
	char *text = resources_keep_text(config, alice, "x-1", "stdout", "out", 3);

	(void)state;
	resources_keep(config, alice, &outcome);
	assert_string_equal(uri, "mcp-python://x-1#display-0.html");
	assert_string_equal(text, "mcp-python://x-1#stdout");
	assert_null(resources_display_uri("x-1", &display[1]));
	assert_string_equal(read_uri(alice, uri).text, "<b>");
	assert_string_equal(read_uri(alice, text).text, "out");
	assert_true(read_uri(bob, uri).failed);
	assert_true(read_uri(bob, text).failed);
	assert_int_equal(count(alice), 2);
	free(text);
	free(uri);
	assert_null(resources_keep_text(config, alice, "x-2", "stdout", "",
					config->results.keep_bytes));
}

static int
resolve(const struct tenant *tenant, const char *uri, char text_r[16])
{
	json_t *json = json_pack("[{s:s,s:s},{s:s,s:s}]", "path", "a", "uri", uri, "path", "b",
				 "text", "t");
	struct run_script_files files;
	struct why why;
	int r;

	assert_int_equal(run_script_files_read(json, config, &files, &why), 0);
	r = run_script_files_resolve(&files, config, tenant, &why);
	if (r == 0)
		snprintf(text_r, 16, "%.*s%.*s", (int)files.item[0].len,
			 (const char *)files.item[0].data, (int)files.item[1].len,
			 (const char *)files.item[1].data);
	else
		assert_string_equal(why.field, "files");
	run_script_files_done(&files);
	json_decref(json);
	return r;
}

static void
a_file_is_put_again_for_its_tenant(void **state)
{
	char text[16] = "";

	(void)state;
	keep(alice, "x-1", "a", "hello", 5);
	assert_int_equal(resolve(alice, "mcp-python://x-1/a", text), 0);
	assert_string_equal(text, "hellot");
	assert_true(resolve(bob, "mcp-python://x-1/a", text) < 0);
	assert_true(resolve(alice, "mcp-python://x-1/b", text) < 0);
	now += config->results.keep_seconds * 1000;
	assert_true(resolve(alice, "mcp-python://x-1/a", text) < 0);
}

static void
a_file_expires(void **state)
{
	(void)state;
	keep(alice, "x-1", "a", "1", 1);
	now += config->results.keep_seconds * 1000 - 1;
	keep(alice, "x-2", "b", "2", 1);
	assert_int_equal(count(alice), 2);
	now += 1;
	assert_int_equal(count(alice), 1);
	assert_true(read_uri(alice, "mcp-python://x-1/a").failed);
	assert_false(read_uri(alice, "mcp-python://x-2/b").failed);
}

static void
the_oldest_makes_room(void **state)
{
	size_t len = config->results.keep_bytes / 4 + 1;
	char *data = calloc(1, len), id[16];

	(void)state;
	keep(bob, "x-0", "b", "b", 1);
	for (int i = 1; i <= 4; i++) {
		snprintf(id, sizeof(id), "x-%d", i);
		keep(alice, id, "a", data, len);
	}
	assert_int_equal(count(alice), 3);
	assert_true(read_uri(alice, "mcp-python://x-1/a").failed);
	assert_false(read_uri(alice, "mcp-python://x-4/a").failed);
	assert_int_equal(count(bob), 1);
	for (int i = 0; i < RESOURCES_TENANT_MAX + 10; i++) {
		snprintf(id, sizeof(id), "y-%d", i);
		keep(alice, id, "a", "", 0);
	}
	assert_int_equal(count(alice), RESOURCES_TENANT_MAX);
	assert_int_equal(count(bob), 1);
	free(data);
}

static void
ranges_are_as_in_http(void **state)
{
	static const struct {
		const char *uri;
		int error;
		uint64_t offset;
		size_t len;
	} rows[] = {
		{ "u:a", 0, 0, 100 }, { "u:a?bytes=0-99", 0, 0, 100 },
		{ "u:a?bytes=0-0", 0, 0, 1 }, { "u:a?bytes=99-", 0, 99, 1 },
		{ "u:a?bytes=5-7", 0, 5, 3 }, { "u:a?bytes=90-200", 0, 90, 10 },
		{ "u:a?bytes=0-18446744073709551615", 0, 0, 100 },
		{ "u:a?bytes=100-", -ERANGE, 0, 0 }, { "u:a?bytes=100-100", -ERANGE, 0, 0 },
		{ "u:a?bytes=18446744073709551615-", -ERANGE, 0, 0 },
	};
	static const char *const bad[] = {
		"u:a?", "u:a?bytes=", "u:a?bytes=-1", "u:a?bytes=1", "u:a?bytes=2-1", "u:a?bytes=0-1 ",
		"u:a?bytes=18446744073709551616-", "u:a?bytes= 0-1", "u:a?bytes=+0-1", "u:a?x=1",
		"u:a?bytes=0-1,3-4", "u:a?bytes=0-1?bytes=0-1",
	};
	struct file_range range;
	uint64_t offset;
	size_t len;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		assert_true(file_range_read(rows[i].uri, &range));
		assert_string_equal(range.uri, "u:a");
		free(range.uri);
		assert_int_equal(file_range_fit(&range, 100, 100, &offset, &len), rows[i].error);
		if (rows[i].error == 0) {
			assert_int_equal(offset, rows[i].offset);
			assert_int_equal(len, rows[i].len);
		}
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_false(file_range_read(bad[i], &range));
	/* More than an answer holds: all of it is refused, what follows a byte is cut. */
	assert_true(file_range_read("u:a", &range));
	free(range.uri);
	assert_int_equal(file_range_fit(&range, 100, 99, &offset, &len), -EFBIG);
	assert_true(file_range_read("u:a?bytes=0-", &range));
	free(range.uri);
	assert_int_equal(file_range_fit(&range, 100, 99, &offset, &len), 0);
	assert_int_equal(len, 99);
}

static void
addresses_are_spelled_out(void **state)
{
	static const char path[] = "a/\xc3\xa9?#%\\x00~-._";
	char *uri = file_uri("x-1", path, strlen(path));

	(void)state;
	assert_string_equal(uri, "mcp-python://x-1/a/%C3%A9%3F%23%25%5Cx00~-._");
	free(uri);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(objects_come_in_order, start, stop),
		cmocka_unit_test_setup_teardown(displays_have_a_sum, start, stop),
		cmocka_unit_test_setup_teardown(files_have_a_sum_and_a_number, start, stop),
		cmocka_unit_test_setup_teardown(paths_have_no_bytes_that_nobody_sees, start, stop),
		cmocka_unit_test_setup_teardown(offers_are_files, start, stop),
		cmocka_unit_test_setup_teardown(no_offers_after_init, start, stop),
		cmocka_unit_test_setup_teardown(no_file_after_the_number_of_more, start, stop),
		cmocka_unit_test_setup_teardown(files_are_reported_again_once, start, stop),
		cmocka_unit_test_setup_teardown(files_are_unknown_while_it_runs, start, stop),
		cmocka_unit_test_setup_teardown(a_file_is_its_tenants_alone, open_store,
						close_store),
		cmocka_unit_test_setup_teardown(so_is_what_was_shown, open_store, close_store),
		cmocka_unit_test_setup_teardown(a_file_is_put_again_for_its_tenant, open_store,
						close_store),
		cmocka_unit_test_setup_teardown(a_file_expires, open_store, close_store),
		cmocka_unit_test_setup_teardown(the_oldest_makes_room, open_store, close_store),
		cmocka_unit_test_setup_teardown(others_files_cost_no_time, open_store, close_store),
		cmocka_unit_test(ranges_are_as_in_http),
		cmocka_unit_test(addresses_are_spelled_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
