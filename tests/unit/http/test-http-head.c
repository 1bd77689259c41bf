/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include <cmocka.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>

#include "http/head.h"
#include "http/origin.h"
#include "policy/config.h"

/* lines: "NAME:VALUE", NULL at the end. The list is the caller's to clear. */
static const char *
read_head(struct evkeyvalq *headers, struct http_head *head, const char *const *lines)
{
	char name[64];

	TAILQ_INIT(headers);
	for (; *lines; lines++) {
		size_t len = strcspn(*lines, ":");

		assert_true(len < sizeof(name));
		memcpy(name, *lines, len);
		name[len] = '\0';
		assert_int_equal(evhttp_add_header(headers, name, *lines + len + 1), 0);
	}
	return http_head_read(headers, head);
}

#define HEAD(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void
values_are_found_whatever_the_case_of_their_names(void **state)
{
	struct evkeyvalq headers;
	struct http_head head;

	(void)state;
	assert_null(read_head(&headers, &head, HEAD("hOST:localhost", "mcp-session-ID:\tabc",
						    "MCP-PROTOCOL-VERSION:2025-11-25",
						    "X-Else:1", "X-Else:2")));
	assert_string_equal(head.value[HTTP_HOST], "localhost");
	assert_string_equal(head.value[HTTP_SESSION], "abc");
	assert_string_equal(head.value[HTTP_VERSION], "2025-11-25");
	assert_null(head.value[HTTP_NAME]);
	assert_false(head.mcp_twice);
	evhttp_clear_headers(&headers);
}

static void
a_body_of_doubtful_length_is_refused(void **state)
{
	static const struct {
		bool right;
		const char *line[3];
	} rows[] = {
		{ true, { "Content-Length:0" } },
		{ true, { "Transfer-Encoding:Chunked" } },
		{ false, { "Content-Length:+1" } },
		{ false, { "Content-Length:-1" } },
		{ false, { "Content-Length:" } },
		{ false, { "Content-Length:1, 1" } },
		{ false, { "Content-Length:0x10" } },
		{ false, { "Content-Length:99999999999999999999" } },
		{ false, { "Content-Length:1", "Content-Length:1" } },
		{ false, { "Content-Length:1", "Transfer-Encoding:chunked" } },
		{ false, { "Transfer-Encoding:gzip, chunked" } },
		{ false, { "Transfer-Encoding:identity" } },
		{ false, { "Transfer-Encoding:chunked", "transfer-encoding:chunked" } },
		{ false, { "Content-Length :1" } },
		{ false, { "Content Length:1" } },
		{ false, { ":1" } },
		{ false, { "Host:a", "Host:a" } },
		{ false, { "Origin:http://localhost", "Origin:http://localhost" } },
		{ false, { "Authorization:a", "authorization:b" } },
		{ false, { "Content-Type:application/json", "Content-Type:text/plain" } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct evkeyvalq headers;
		struct http_head head;
		const char *wrong = read_head(&headers, &head, rows[i].line);

		if (rows[i].right != !wrong)
			fail_msg("%s, %s: %s", rows[i].line[0],
				 rows[i].line[1] ? rows[i].line[1] : "-",
				 wrong ? wrong : "was taken");
		evhttp_clear_headers(&headers);
	}
}

static void
what_the_protocol_says_twice_is_noticed(void **state)
{
	static const char *const lines[][3] = {
		{ "Mcp-Name:a", "mcp-name:a" },		{ "Mcp-Method:a", "Mcp-Method:b" },
		{ "Mcp-Session-Id:a", "Mcp-Session-Id:a" },
		{ "MCP-Protocol-Version:a", "Mcp-Protocol-Version:a" },
		{ "Mcp-Param-Region:a", "mcp-param-region:b" },
	};
	struct evkeyvalq headers;
	struct http_head head;

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		assert_null(read_head(&headers, &head, lines[i]));
		assert_true(head.mcp_twice);
		evhttp_clear_headers(&headers);
	}
	assert_null(read_head(&headers, &head, HEAD("Mcp-Param-A:a", "Mcp-Param-B:a")));
	assert_false(head.mcp_twice);
	evhttp_clear_headers(&headers);
}

static void
a_stream_is_sent_to_those_who_take_one(void **state)
{
	static const struct {
		bool takes;
		const char *line[3];
	} rows[] = {
		{ true, { "Accept:application/json, text/event-stream" } },
		{ true, { "Accept:text/event-stream;q=0.5,application/json" } },
		{ true, { "Accept:TEXT/Event-Stream" } },
		{ true, { "Accept:*/*" } },
		{ true, { "Accept:text/*" } },
		{ true, { "Accept:application/json", "Accept:text/event-stream" } },
		{ false, { "Accept:application/json" } },
		{ false, { "Accept:" } },
		{ false, { "Accept:text/event-streams" } },
		{ false, { "Accept:application/json;x=text/event-stream" } },
		{ false, { "X-Accept:*/*" } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct evkeyvalq headers;
		struct http_head head;

		assert_null(read_head(&headers, &head, rows[i].line));
		if (head.takes_stream != rows[i].takes)
			fail_msg("%s: %d", rows[i].line[0], head.takes_stream);
		evhttp_clear_headers(&headers);
	}
}

static void
only_json_is_json(void **state)
{
	(void)state;
	assert_true(http_is_json("application/json"));
	assert_true(http_is_json("Application/JSON"));
	assert_true(http_is_json("application/json; charset=utf-8"));
	assert_true(http_is_json("application/json ;x"));
	assert_false(http_is_json(NULL));
	assert_false(http_is_json(""));
	assert_false(http_is_json("application/jsonl"));
	assert_false(http_is_json("application/json-rpc"));
	assert_false(http_is_json("text/plain; application/json"));
}

static void
names_are_decoded_in_their_one_right_spelling(void **state)
{
	static const struct {
		const char *value, *name;	/* NULL: refused */
	} rows[] = {
		{ "run_script", "run_script" },
		{ "", "" },
		{ "=?base64?cnVuX3NjcmlwdA==?=", "run_script" },
		{ "=?base64?w6k=?=", "\xc3\xa9" },
		{ "=?base64?" "?=", "" },
		{ "=?base64?Zm9v?=", "foo" },
		{ "=?base64?Zm9vYg==?=", "foob" },
		{ "=?base64?Zm9vYmE=?=", "fooba" },
		{ "=?base64?+/+/?=", "\xfb\xff\xbf" },
		/* one marker alone, or in another case, is text */
		{ "=?base64?cnVu", "=?base64?cnVu" },
		{ "cnVu?=", "cnVu?=" },
		{ "=?BASE64?cnVu?=", "=?BASE64?cnVu?=" },
		{ "=?base64?=", "=?base64?=" },
		/* missing or needless padding, bits that are not zero, other alphabets */
		{ "=?base64?Zm9vYg?=", NULL },
		{ "=?base64?Zm9vYg=?=", NULL },
		{ "=?base64?Zm9v====?=", NULL },
		{ "=?base64?Zm9vYh==?=", NULL },
		{ "=?base64?Zm9vYmF=?=", NULL },
		{ "=?base64?Zg==Zg==?=", NULL },
		{ "=?base64?Z=9v?=", NULL },
		{ "=?base64?=m9v?=", NULL },
		{ "=?base64?-_-_?=", NULL },
		{ "=?base64?Zm 9v?=", NULL },
		{ "=?base64?Zm9\xc3?=", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		size_t len = 0;
		char *name = http_name_decode(rows[i].value, &len);

		if (!name != !rows[i].name ||
		    (name && (len != strlen(rows[i].name) || memcmp(name, rows[i].name, len))))
			fail_msg("%s: %s", rows[i].value, name ? name : "refused");
		free(name);
	}
}

/* ---- origins ---- */

static char name[] = "example.org", name_and_port[] = "api.example.org:8443";
static char page[] = "https://app.example.org";
static char *words[] = { name, name_and_port, page };
static const struct config_list some = { .item = words, .n = 3 };
static const struct config_list none;

static void
hosts_are_ours_or_refused(void **state)
{
	(void)state;
	assert_true(http_host_is_ours("localhost", NULL, &none));
	assert_true(http_host_is_ours("LOCALHOST:1", NULL, &none));
	assert_true(http_host_is_ours("127.0.0.1:65535", NULL, &none));
	assert_true(http_host_is_ours("[::1]:80", NULL, &none));
	assert_true(http_host_is_ours("[::1]", NULL, &none));
	assert_true(http_host_is_ours("192.0.2.1:80", "192.0.2.1", &none));
	assert_true(http_host_is_ours("Example.org:99", NULL, &some));
	assert_true(http_host_is_ours("api.example.org:8443", NULL, &some));

	assert_false(http_host_is_ours("api.example.org", NULL, &some));
	assert_false(http_host_is_ours("api.example.org:8444", NULL, &some));
	assert_false(http_host_is_ours("evil.example", NULL, &some));
	assert_false(http_host_is_ours("", NULL, &some));
	assert_false(http_host_is_ours(":80", NULL, &some));
	assert_false(http_host_is_ours("localhost.", NULL, &none));
	assert_false(http_host_is_ours("localhost.evil.example", NULL, &none));
	assert_false(http_host_is_ours("localhost:", NULL, &none));
	assert_false(http_host_is_ours("localhost:80x", NULL, &none));
	assert_false(http_host_is_ours("localhost:123456", NULL, &none));
	assert_false(http_host_is_ours("localhost:80:80", NULL, &none));
	assert_false(http_host_is_ours("localhost@evil.example", NULL, &none));
	assert_false(http_host_is_ours("[::1", NULL, &none));
	assert_false(http_host_is_ours("[::1]evil.example", NULL, &none));
	assert_false(http_host_is_ours("127.0.0.1.evil.example", NULL, &none));
	assert_false(http_host_is_ours("192.0.2.1", NULL, &none));
}

static void
origins_are_allowed_or_refused(void **state)
{
	(void)state;
	assert_true(http_origin_is_allowed("http://localhost", &none));
	assert_true(http_origin_is_allowed("https://localhost:3000", &none));
	assert_true(http_origin_is_allowed("http://127.0.0.1:5173", &none));
	assert_true(http_origin_is_allowed("http://[::1]:5173", &none));
	assert_true(http_origin_is_allowed("https://app.example.org", &some));

	assert_false(http_origin_is_allowed("null", &some));
	assert_false(http_origin_is_allowed("", &some));
	assert_false(http_origin_is_allowed("http://app.example.org", &some));
	assert_false(http_origin_is_allowed("https://app.example.org:444", &some));
	assert_false(http_origin_is_allowed("http://example.org", &some));
	assert_false(http_origin_is_allowed("localhost", &none));
	assert_false(http_origin_is_allowed("http://localhost/", &none));
	assert_false(http_origin_is_allowed("http://localhost.evil.example", &none));
	assert_false(http_origin_is_allowed("http://localhost@evil.example", &none));
	assert_false(http_origin_is_allowed("file://localhost", &none));
	assert_false(http_origin_is_allowed("http://", &none));
}

static void
addresses_are_numbers_and_a_port(void **state)
{
	static const struct {
		const char *text;
		bool right, loopback;
	} rows[] = {
		{ "127.0.0.1:80", true, true },	  { "127.8.9.1:0", true, true },
		{ "[::1]:65535", true, true },	  { "0.0.0.0:80", true, false },
		{ "[::]:80", true, false },	  { "192.0.2.1:80", true, false },
		{ "[2001:db8::1]:80", true, false },
		/* an address of version 4 in one of version 6 is not known to stay here */
		{ "[::ffff:127.0.0.1]:80", true, false },
		{ "localhost:80", false, false }, { "127.0.0.1", false, false },
		{ "::1:80", false, false },	  { "127.0.0.1:65536", false, false },
		{ "127.0.0.1:", false, false },	  { ":80", false, false },
		{ "[127.0.0.1]:80", false, false }, { "", false, false },
		{ "127.0.0.1:80 ", false, false }, { "[::1]80", false, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct sockaddr_storage address;
		char *text;

		if (http_address_read(rows[i].text, &address) != rows[i].right)
			fail_msg("%s", rows[i].text);
		if (!rows[i].right)
			continue;
		assert_int_equal(http_address_is_loopback(&address), rows[i].loopback);
		text = http_address_text(&address, NULL);
		assert_string_equal(text, rows[i].text);
		free(text);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_are_found_whatever_the_case_of_their_names),
		cmocka_unit_test(a_body_of_doubtful_length_is_refused),
		cmocka_unit_test(what_the_protocol_says_twice_is_noticed),
		cmocka_unit_test(a_stream_is_sent_to_those_who_take_one),
		cmocka_unit_test(only_json_is_json),
		cmocka_unit_test(names_are_decoded_in_their_one_right_spelling),
		cmocka_unit_test(hosts_are_ours_or_refused),
		cmocka_unit_test(origins_are_allowed_or_refused),
		cmocka_unit_test(addresses_are_numbers_and_a_port),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
