/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python run and repl, after the answer; mcp-python get.   Owns: nothing. */
#include "client/resource.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/own.h"
#include "base/xalloc.h"
#include "client/call.h"
#include "client/reply.h"
#include "client/say.h"
#include "client/show.h"

static int
resource_nothing(void *, const struct reply *)
{
	return 0;
}

/* 0; -EFBIG: the service gives only parts of it; -ERANGE: it ends before this part; -ENOENT: there
 * is none. Only the text of a refusal tells them apart. */
static int
why_refused(const struct reply *answer)
{
	char *text = answer->kind == REPLY_REFUSED ? strndup(answer->text, answer->text_len) : NULL;
	int r = -ENOENT;

	if (text && strstr(text, "?bytes="))
		r = -EFBIG;
	else if (text && strstr(text, "is behind its end"))
		r = -ERANGE;
	free(text);
	return r;
}

/* *bytes_r is malloc'd. */
static int
read_part(struct call_channel *channel, int id, const char *uri, char **bytes_r, size_t *len_r)
{
	const json_t *content;
	const char *text;
	struct reply answer;
	size_t len = 0;
	int r;

	call_send(channel, call_read_message(channel, id, uri));
	r = call_wait(channel, id, resource_nothing, NULL, &answer);
	if (r < 0)
		return r;
	content = json_array_get(json_object_get(answer.result, "contents"), 0);
	text = reply_string(content, "text", &len);
	if (text) {
		*bytes_r = memcpy(calloc(1, len + 1), text, len);
		*len_r = len;
	} else {
		text = reply_string(content, "blob", &len);
		*bytes_r = text ? base64_decode(text, len, len_r) : NULL;
	}
	r = *bytes_r ? 0 : why_refused(&answer);
	reply_free(&answer);
	return r;
}

static int
each_part(struct call_channel *channel, int id, const char *uri, resource_take *take, void *arg)
{
	size_t at = 0, len;
	int r;

	do {
		own_mem char *bytes = NULL, *part = NULL;

		if (asprintf(&part, "%s?bytes=%zu-", uri, at) < 0)
			xalloc_fail(0);
		r = read_part(channel, id, part, &bytes, &len);
		if (r == 0)
			r = take(arg, bytes, len);
		else if (r == -ERANGE && at > 0)
			return 0;
		at += r == 0 ? len : 0;
	} while (r == 0 && len == RESOURCE_PART);
	return r;
}

int
resource_each(struct call_channel *channel, int id, const char *uri, resource_take *take,
	      void *arg)
{
	own_mem char *bytes = NULL;
	size_t len;
	int r = read_part(channel, id, uri, &bytes, &len);

	if (r == 0)
		r = take(arg, bytes, len);
	else if (r == -EFBIG)
		r = each_part(channel, id, uri, take, arg);
	return r == -EFBIG || r == -ERANGE ? -ENOENT : r;
}

struct whole {
	char *bytes;
	size_t len;
};

static int
resource_append(void *arg, const char *bytes, size_t len)
{
	struct whole *whole = arg;
	char *grown = realloc(whole->bytes, whole->len + len + 1);

	if (!grown)
		return -ENOMEM;
	memcpy(grown + whole->len, bytes, len);
	whole->bytes = grown;
	whole->len += len;
	return 0;
}

int
resource_read(struct call_channel *channel, int id, const char *uri, char **bytes_r,
	      size_t *len_r)
{
	struct whole whole = {.len = 0};
	int r = resource_each(channel, id, uri, resource_append, &whole);

	if (r < 0) {
		free(whole.bytes);
		return r;
	}
	*bytes_r = whole.bytes;
	*len_r = whole.len;
	return 0;
}

/* ---- long output ---- */

bool
resource_is_cut(const json_t *outcome, const char *name)
{
	const char *key = strcmp(name, "stdout") == 0 ? "stdout_dropped" : "stderr_dropped";

	return json_integer_value(json_object_get(json_object_get(outcome, "truncated"), key)) > 0;
}

static int
say_missing(const char *name, size_t at)
{
	say("%s: the rest from byte %zu is missing, for it is more than the service keeps; let the "
	    "script write a file, and use --save", name, at);
	return -ENODATA;
}

/* Prints a part of a stream. *at: the offset of the part, which is moved to its end. The bytes that
 * were shown before the answer are left out, up to the first one that differs (*differs). */
static int
show_part(const struct shown *shown, const char *name, const char *bytes, size_t len, size_t *at,
	  bool *differs)
{
	size_t before = *differs || shown->len < *at ? 0 : shown->len - *at, same = 0;

	/* Bytes that are not UTF-8 were shown as replacement characters. */
	while (same < len && same < before && bytes[same] == shown->bytes[*at + same])
		same++;
	if (same < len && same < before) {
		say("%s: its bytes differ from the text that was shown before; they follow from "
		    "byte %zu", name, *at + same);
		*differs = true;
	}
	*at += len;
	return show_bytes(shown->fd, bytes + same, len - same);
}

int
resource_show_stream(struct call_channel *channel, int *id, const struct shown *shown,
		     const json_t *outcome, const char *name)
{
	const json_t *part;
	size_t i, at = 0;
	bool differs = false;
	int r = 0;

	json_array_foreach(json_object_get(outcome, "spilled"), i, part) {
		const char *stream = reply_string(part, "stream", NULL);
		const char *uri = reply_string(part, "uri", NULL);
		own_mem char *bytes = NULL;
		size_t len;

		if (!stream || !uri || strcmp(stream, name) != 0)
			continue;
		if ((size_t)json_integer_value(json_object_get(part, "offset")) != at)
			return say_missing(name, at);
		r = resource_read(channel, (*id)++, uri, &bytes, &len);
		if (r == 0)
			r = show_part(shown, name, bytes, len, &at, &differs);
		if (r < 0)
			return r == -ENOENT ? say_missing(name, at) : r;
	}
	return at == 0 ? say_missing(name, shown->len) : 0;
}
