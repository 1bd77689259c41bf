/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing.
 * Reads:   header lines of a client, split by evhttp and bounded in size, otherwise of any form. */
#include "http/head.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>
#include <sys/queue.h>

#include <event2/keyvalq_struct.h>

#include "base/base64.h"
#include "base/xalloc.h"

static const char *const names[HTTP_HEADERS] = {
#define HEADER(header, name) [HTTP_##header] = name,
#define HEADER_ONCE HEADER
#include "http/headers.def"
};

/* Checks the characters of a header's name. A name with a blank at its end would mean one header
 * to this server and another to a proxy in front of it. */
static bool
head_is_token(const char *name)
{
	if (!*name)
		return false;
	for (; *name; name++)
		if (!isalnum((unsigned char)*name) && !strchr("!#$%&'*+-.^_`|~", *name))
			return false;
	return true;
}

static bool
is_number(const char *value)
{
	size_t len = strspn(value, "0123456789");

	return len > 0 && len <= 18 && value[len] == '\0';
}

/* Has a list of media ranges one of these, which end with NULL? */
static bool
accepts(const char *list, const char *const *ranges)
{
	for (list += strspn(list, " \t,"); *list; list += strspn(list, " \t,")) {
		size_t len = strcspn(list, " \t,;");

		for (size_t i = 0; ranges[i]; i++)
			if (strlen(ranges[i]) == len && strncasecmp(list, ranges[i], len) == 0)
				return true;
		list += strcspn(list, ",");
	}
	return false;
}

/* Repeating one of these headers is never correct, even where it would be harmless. */
static const char *
head_take(struct http_head *head, enum http_header header, const char *value)
{
	static const char *const twice[HTTP_HEADERS] = {
#define HEADER(...)
#define HEADER_ONCE(header, name) [HTTP_##header] = name " is said twice",
#include "http/headers.def"
	};

	if (head->value[header]) {
		head->mcp_twice |= !twice[header];
		return twice[header];
	}
	head->value[header] = value;
	return NULL;
}

static bool
head_said_before(const struct evkeyvalq *headers, const struct evkeyval *header)
{
	const struct evkeyval *other;

	for (other = headers->tqh_first; other != header; other = other->next.tqe_next)
		if (strcasecmp(other->key, header->key) == 0)
			return true;
	return false;
}

static const char *
head_take_header(const struct evkeyvalq *headers, const struct evkeyval *header,
		 struct http_head *head)
{
	static const char *const stream[] = { "text/event-stream", "text/*", "*/*", NULL };
	static const char *const plain[] = { "text/plain", NULL };
	static const char *const openmetrics[] = { "application/openmetrics-text", "*/*", NULL };
	const char *value = header->value + strspn(header->value, " \t");

	if (!head_is_token(header->key))
		return "the name of a header has strange characters";
	if (strcasecmp(header->key, "Accept") == 0) {
		head->takes_stream |= accepts(value, stream);
		head->takes_plain |= accepts(value, plain);
		head->takes_openmetrics |= accepts(value, openmetrics);
	}
	for (int i = 0; i < HTTP_HEADERS; i++)
		if (strcasecmp(header->key, names[i]) == 0)
			return head_take(head, (enum http_header)i, value);
	if (strncasecmp(header->key, "Mcp-", 4) == 0 && head_said_before(headers, header))
		head->mcp_twice = true;
	return NULL;
}

const char *
http_head_read(const struct evkeyvalq *headers, struct http_head *head_r)
{
	const char *length, *encoding, *wrong = NULL;
	const struct evkeyval *header;

	*head_r = (struct http_head){ .mcp_twice = false };
	for (header = headers->tqh_first; header && !wrong; header = header->next.tqe_next)
		wrong = head_take_header(headers, header, head_r);
	length = head_r->value[HTTP_CONTENT_LENGTH];
	encoding = head_r->value[HTTP_TRANSFER_ENCODING];
	if (wrong)
		return wrong;
	if (length && encoding)
		return "Content-Length and Transfer-Encoding exclude each other";
	if (length && !is_number(length))
		return "Content-Length is not a number";
	if (encoding && strcasecmp(encoding, "chunked") != 0)
		return "Transfer-Encoding can only be chunked";
	return NULL;
}

bool
http_is_json(const char *content_type)
{
	static const char type[] = "application/json";
	size_t len = sizeof(type) - 1;

	if (!content_type || strncasecmp(content_type, type, len) != 0)
		return false;
	content_type += len + strspn(content_type + len, " \t");
	return *content_type == '\0' || *content_type == ';';
}

/* ---- Mcp-Name ---- */

char *
http_name_decode(const char *value, size_t *len_r)
{
	static const char before[] = "=?base64?", after[] = "?=";
	size_t len = strlen(value), head = sizeof(before) - 1, tail = sizeof(after) - 1;

	if (len >= head + tail && memcmp(value, before, head) == 0 &&
	    memcmp(value + len - tail, after, tail) == 0)
		return base64_decode(value + head, len - head - tail, len_r);
	*len_r = len;
	return xstrdup(value);
}
