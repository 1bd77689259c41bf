/* SPDX-License-Identifier: Apache-2.0 */
/* Server-sent events of other servers: the same messages for any division into pieces, within the
 * bounds. */
#include "upstream/events.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct seen {
	char text[256];
};

static void
on_message(void *arg, char *text, size_t len)
{
	struct seen *seen = arg;
	size_t at = strlen(seen->text);

	assert_int_equal(strlen(text), len);
	snprintf(seen->text + at, sizeof(seen->text) - at, "[%s]", text);
}

static void
messages_do_not_depend_on_the_pieces(void **state)
{
	static const char stream[] =
		": hello\n\nevent: message\ndata: one\n\ndata:two\r\ndata: lines\r\n\r\n"
		"id: 7\nretry: 1\ndata\ndata: \n\ndatax: no\n\rdata: three\r\rdata: cut";

	(void)state;
	for (size_t piece = 1; piece <= sizeof(stream); piece++) {
		struct seen seen = { "" };
		struct events events = { .on_message = on_message, .arg = &seen, .max = 64 };

		for (size_t at = 0; at < strlen(stream); at += piece) {
			size_t left = strlen(stream) - at;

			assert_int_equal(events_feed(&events, stream + at,
						     piece < left ? piece : left), 0);
		}
		assert_string_equal(seen.text, "[one][two\nlines][three]");
		events_free(&events);
	}
}

static void
ids_and_times_are_read(void **state)
{
	static const struct {
		const char *stream, *id;
		unsigned int retry_ms;
	} cases[] = {
		{ "id: 7\nretry: 15\n\n", "7", 15 }, { "id:a-b\n\nid\n\n", "a-b", 0 },
		{ "id: a\nid: b c\n\n", "", 0 }, { "id: \x1b[m\nretry: -1\n", "", 0 },
		{ "id: a\nid:\nretry: 9999999999\n", "", 0 }, { "retry: 1s\nretry:\n", "", 0 },
	};
	char longest[EVENTS_ID_MAX + 8];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct events events = { .max = 64 };

		assert_int_equal(events_feed(&events, cases[i].stream, strlen(cases[i].stream)), 0);
		assert_string_equal(events.id, cases[i].id);
		assert_int_equal(events.retry_ms, cases[i].retry_ms);
		events_free(&events);
	}
	for (size_t more = 0; more < 2; more++) {
		struct events events = { .max = 1024 };
		size_t n = EVENTS_ID_MAX + more;

		snprintf(longest, sizeof(longest), "id: ");
		memset(longest + 4, 'x', n);
		longest[4 + n] = '\n';
		assert_int_equal(events_feed(&events, longest, 5 + n), 0);
		assert_int_equal(strlen(events.id), more ? 0 : EVENTS_ID_MAX);
		events_free(&events);
	}
}

static void
what_is_too_long_is_refused(void **state)
{
	static const char *const streams[] = {
		"data: 0123456789abcdef0123456789\n\n", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
		"data: 0123456789\ndata: 0123456789\n\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(streams) / sizeof(streams[0]); i++) {
		struct seen seen = { "" };
		struct events events = { .on_message = on_message, .arg = &seen, .max = 20 };

		assert_int_equal(events_feed(&events, streams[i], strlen(streams[i])), -EMSGSIZE);
		assert_string_equal(seen.text, "");
		events_free(&events);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_do_not_depend_on_the_pieces),
		cmocka_unit_test(ids_and_times_are_read),
		cmocka_unit_test(what_is_too_long_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
