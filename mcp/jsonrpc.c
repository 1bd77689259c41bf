/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: a line's values until jsonrpc_line_done().
 * Reads:   lines of clients, hostile from the first byte.
 * A first pass over the text checks the depth and the number of values, before memory is spent on
 * them. It also finds the text of ids: jansson does not keep their spelling. */
#include "mcp/jsonrpc.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

#include "base/jsonout.h"
#include "base/own.h"
#include "base/xalloc.h"

#define TEXT_OF_VALUE(value) #value
#define TEXT_OF(macro) TEXT_OF_VALUE(macro)
#define TEXT(x) TEXT_(x)
#define TEXT_(x) #x

struct span {
	const char *at;		/* NULL: not found */
	size_t len;
};

/* The findings of the first pass. */
struct look {
	bool is_batch;
	bool too_deep, too_many;
	size_t id_keys;			/* occurrences of the key "id" in a message */
	bool has_method, has_answer;	/* a single message has the key "method"; "result" or
					 * "error" */
	struct span id[JSONRPC_BATCH_MAX];	/* by element; [0]: of a single message */
};

/* The position of the first pass. The pass is safe on any bytes, but does not check the grammar:
 * its findings count only if jansson accepts the text afterwards. */
struct walk {
	const char *at, *end;
	struct look *look;
	size_t depth, values, element;
	char open[JSONRPC_DEPTH_MAX + 1];	/* the bracket of each depth */
	bool key_next;		/* in an object, before a key */
	bool id_next;		/* the next value is a message's id */
};

/* Is this key, after its escapes are resolved, "id"? */
static bool
key_is_id(const char *at, const char *end)
{
	static const char *const escaped[] = { "\\u0069", "\\u0064" };

	for (size_t i = 0; i < 2; i++) {
		if (at < end && *at == "id"[i])
			at++;
		else if (end - at >= 6 && memcmp(at, escaped[i], 6) == 0)
			at += 6;
		else
			return false;
	}
	return at == end;
}

static bool
jsonrpc_key_is(const char *at, const char *end, const char *key)
{
	return (size_t)(end - at) == strlen(key) && memcmp(at, key, strlen(key)) == 0;
}

static bool
is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void
keep_id(struct walk *w, const char *from, const char *to)
{
	w->id_next = false;
	if (w->element < JSONRPC_BATCH_MAX)
		w->look->id[w->element] = (struct span){ from, (size_t)(to - from) };
}

/* Notes a key of a message. */
static void
walk_member(struct walk *w, const char *from, const char *closing)
{
	w->id_next = key_is_id(from, closing);
	w->look->id_keys += w->id_next;
	w->look->has_method |= jsonrpc_key_is(from, closing, "method");
	w->look->has_answer |= jsonrpc_key_is(from, closing, "result") ||
			       jsonrpc_key_is(from, closing, "error");
}

static void
walk_string(struct walk *w)
{
	const char *from = w->at, *closing = jsonbound_string_end(from + 1, w->end);
	size_t message_depth = w->look->is_batch ? 2 : 1;

	w->at = closing < w->end ? closing + 1 : closing;
	if (w->key_next) {
		w->key_next = false;
		if (w->depth == message_depth)
			walk_member(w, from + 1, closing);
	} else if (w->id_next) {
		keep_id(w, from, w->at);
	}
}

static void
walk_word(struct walk *w)
{
	const char *from = w->at;

	while (w->at < w->end && !is_space(*w->at) && !strchr("{}[],:\"", *w->at))
		w->at++;
	if (w->at == from)
		w->at++;	/* a NUL: strchr() finds it, too */
	if (w->id_next)
		keep_id(w, from, w->at);
}

static void
look_over(const char *text, size_t len, struct look *look)
{
	struct walk w = { .at = text, .end = text + len, .look = look };

	/* The pass continues when a bound is exceeded, because the id may come last. */
	while (w.at < w.end) {
		switch (*w.at) {
		case '{':
		case '[':
			w.id_next = false;
			w.values++;
			if (w.depth == 0 && *w.at == '[')
				w.look->is_batch = true;
			w.depth++;
			if (w.depth > JSONRPC_DEPTH_MAX)
				w.look->too_deep = true;
			else
				w.open[w.depth] = *w.at;
			w.key_next = *w.at++ == '{';
			break;
		case '}':
		case ']':
			w.depth -= w.depth > 0;
			w.key_next = w.id_next = false;
			w.at++;
			break;
		case ',':
			w.id_next = false;
			w.values++;
			w.key_next = w.depth && w.depth <= JSONRPC_DEPTH_MAX &&
				     w.open[w.depth] == '{';
			if (w.look->is_batch && w.depth == 1)
				w.element++;
			w.at++;
			break;
		case '"':
			walk_string(&w);
			break;
		case ':':
		case ' ':
		case '\t':
		case '\r':
		case '\n':
			w.at++;
			break;
		default:
			walk_word(&w);
			break;
		}
	}
	look->too_many = w.values > JSONRPC_VALUES_MAX;
}

static bool
is_digits(const struct span *span)
{
	for (size_t i = span->at[0] == '-'; i < span->len; i++)
		if (span->at[i] < '0' || span->at[i] > '9')
			return false;
	return true;
}

bool
jsonrpc_is_bounded(const char *text, size_t len)
{
	return jsonbound_values(text, len) <= JSONRPC_VALUES_MAX;
}

/* Fills *id_r from the text of an id; false: the id is not allowed. */
static bool
read_id(const struct span *span, struct jsonrpc_id *id_r)
{
	json_t *value;

	if (!span->at || span->len > JSONRPC_ID_MAX)
		return false;
	value = json_loadb(span->at, span->len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
	/* An integer of more than 64 bits is a valid id: only its text is needed. */
	if (!value && is_digits(span)) {
		value = json_loadb(span->at, span->len,
				   JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL, NULL);
		if (value) {
			json_decref(value);
			value = json_stringn(span->at, span->len);
		}
	}
	if (!json_is_string(value) && !json_is_integer(value)) {
		json_decref(value);
		return false;
	}
	*id_r = (struct jsonrpc_id){ xmemdup0(span->at, span->len), value };
	return true;
}

static void
jsonrpc_refuse(struct jsonrpc_message *message, int code, const char *text)
{
	message->kind = JSONRPC_INVALID;
	message->code = code;
	message->text = text;
}

/* A string without NUL; NULL for any other value. */
static const char *
plain_string(const json_t *value)
{
	const char *text = json_string_value(value);

	return text && strlen(text) == json_string_length(value) ? text : NULL;
}

static void
read_request(json_t *value, struct jsonrpc_message *message)
{
	json_t *params = json_object_get(value, "params");

	message->method = plain_string(json_object_get(value, "method"));
	if (!message->method) {
		jsonrpc_refuse(message, JSONRPC_INVALID_REQUEST, "method must be a string");
		return;
	}
	if (json_object_get(value, "result") || json_object_get(value, "error")) {
		jsonrpc_refuse(message, JSONRPC_INVALID_REQUEST,
			       "a message is a request or a response, not both");
		return;
	}
	if (params && !json_is_object(params)) {
		if (message->kind == JSONRPC_REQUEST)
			jsonrpc_refuse(message, JSONRPC_INVALID_PARAMS, "params must be an object");
		return;		/* a notification is served as if it had no id */
	}
	message->params = params;
}

static void
jsonrpc_read_message(json_t *value, const struct span *id, struct jsonrpc_message *message)
{
	const char *version = plain_string(json_object_get(value, "jsonrpc"));
	json_t *id_value = json_object_get(value, "id");
	bool has_method = json_object_get(value, "method") != NULL;
	bool has_answer = json_object_get(value, "result") || json_object_get(value, "error");

	message->kind = id_value ? JSONRPC_REQUEST : JSONRPC_NOTIFICATION;
	if (!json_is_object(value)) {
		jsonrpc_refuse(message, JSONRPC_INVALID_REQUEST, "a message must be an object");
		return;
	}
	if (id_value && !read_id(id, &message->id)) {
		if (has_answer && !has_method)
			message->kind = JSONRPC_RESPONSE;
		else
			jsonrpc_refuse(message, JSONRPC_INVALID_REQUEST,
				       "id must be a string or an integer of at most 1024 bytes");
		return;
	}
	if (!version || strcmp(version, "2.0") != 0) {
		jsonrpc_refuse(message, JSONRPC_INVALID_REQUEST, "jsonrpc must be \"2.0\"");
		return;
	}
	if (!has_method && has_answer) {
		message->kind = JSONRPC_RESPONSE;
		message->result = json_object_get(value, "error")
					  ? NULL : json_object_get(value, "result");
	} else {
		read_request(value, message);
	}
}

/* Replaces the line's messages by a single refusal. */
static void
refuse_line(struct jsonrpc_line *line, int code, const char *text)
{
	line->n = 1;
	line->message = xcalloc(1, sizeof(*line->message));
	jsonrpc_refuse(&line->message[0], code, text);
}

static bool
looks_like_answer(const struct look *look)
{
	return look->has_answer && !look->has_method;
}

/* Refuses a whole line, with the id of its message, because the sender of a request waits for an
 * answer with this id. If the line is a response, it stays a response, so that the request that it
 * answers is found by the id. The id is used only if the text has exactly one, at the place where a
 * message has it. */
static void
refuse_by_id(struct jsonrpc_line *line, const struct look *look, int code, const char *text)
{
	refuse_line(line, code, text);
	if (!look->is_batch && look->id_keys == 1 &&
	    read_id(&look->id[0], &line->message[0].id) && looks_like_answer(look))
		line->message[0].kind = JSONRPC_RESPONSE;
}

static unsigned int
hex4(const char *at)
{
	unsigned int number = 0;

	for (size_t i = 0; i < 4; i++) {
		if (!isxdigit((unsigned char)at[i]))
			return 0;
		number = number * 16 + (unsigned int)(at[i] <= '9' ? at[i] - '0'
								  : (at[i] | 32) - 'a' + 10);
	}
	return number;
}

/* Is this the escape of a surrogate? from: 0xd800 for a first half, 0xdc00 for a second one. */
static bool
jsonrpc_is_half(const char *at, const char *end, unsigned int from)
{
	return end - at >= 6 && at[0] == '\\' && at[1] == 'u' &&
	       (hex4(at + 2) & 0xfc00) == from;
}

/* Replaces each escape of a single surrogate by U+FFFD. True: there was one. */
static bool
mend_halves(char *at, const char *end)
{
	bool any = false;

	while (at < end) {
		if (*at != '\\') {
			at++;
		} else if (jsonrpc_is_half(at, end, 0xd800) &&
			   jsonrpc_is_half(at + 6, end, 0xdc00)) {
			at += 12;
		} else if (jsonrpc_is_half(at, end, 0xd800) || jsonrpc_is_half(at, end, 0xdc00)) {
			memcpy(at, "\\ufffd", 6);
			any = true;
			at += 6;
		} else {
			at += 2;
		}
	}
	return any;
}

static bool
is_json_but_for_surrogates(const char *text, size_t len)
{
	own_mem char *copy = NULL;
	json_t *value = NULL;

	if (!memmem(text, len, "\\u", 2))
		return false;
	copy = xmemdup0(text, len);
	if (mend_halves(copy, copy + len))
		value = json_loadb(copy, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY |
					      JSON_ALLOW_NUL, NULL);
	json_decref(value);
	return value;
}

/* Refuses a text that jansson has refused. If one of three reasons that do not concern the grammar
 * is the cause, the refusal has the id of the request, because the client waits for it. */
static void
refuse_text(struct jsonrpc_line *line, const char *text, size_t len,
	    const struct look *look, const json_error_t *error)
{
	static const char not_json[] = "not a JSON text in UTF-8 on one line";
	const char *why;
	enum json_error_code code = json_error_code(error);

	if (code == json_error_duplicate_key)
		why = "a key stands twice in one object";
	else if (code == json_error_numeric_overflow)
		why = "a number is out of range";
	else if (code == json_error_null_byte_in_key)
		why = "a key holds a NUL";
	else if (is_json_but_for_surrogates(text, len))
		why = "half of a surrogate pair is not a character";
	else if (looks_like_answer(look)) {
		/* A response that is not JSON, such as one with a NaN. If its id was found wrongly,
		 * only the client that has sent it is affected. */
		refuse_by_id(line, look, JSONRPC_PARSE_ERROR, not_json);
		return;
	} else {
		refuse_line(line, JSONRPC_PARSE_ERROR, not_json);
		return;
	}
	refuse_by_id(line, look, JSONRPC_INVALID_REQUEST, why);
}

void
jsonrpc_parse(const char *text, size_t len, struct jsonrpc_line *line_r)
{
	struct look look = { 0 };
	json_error_t error;

	memset(line_r, 0, sizeof(*line_r));
	look_over(text, len, &look);
	if (look.too_deep || look.too_many) {
		refuse_by_id(line_r, &look, JSONRPC_INVALID_REQUEST,
			     look.too_deep ? "nested more than " TEXT(JSONRPC_DEPTH_MAX) " deep"
			     : "more than " TEXT(JSONRPC_VALUES_MAX) " values");
		return;
	}
	line_r->value = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY |
					      JSON_ALLOW_NUL, &error);
	if (!line_r->value) {
		refuse_text(line_r, text, len, &look, &error);
		return;
	}
	line_r->is_batch = json_is_array(line_r->value);
	assert(line_r->is_batch == look.is_batch);
	line_r->n = line_r->is_batch ? json_array_size(line_r->value) : 1;
	if (line_r->n == 0 || line_r->n > JSONRPC_BATCH_MAX) {
		line_r->is_batch = false;
		refuse_line(line_r, JSONRPC_INVALID_REQUEST,
			    line_r->n ? "too many messages in a batch: at most "
					TEXT_OF(JSONRPC_BATCH_MAX) : "an empty batch");
		return;
	}
	line_r->message = xcalloc(line_r->n, sizeof(*line_r->message));
	for (size_t i = 0; i < line_r->n; i++)
		jsonrpc_read_message(line_r->is_batch ? json_array_get(line_r->value, i)
					      : line_r->value,
				     &look.id[i], &line_r->message[i]);
}

void
jsonrpc_line_done(struct jsonrpc_line *line)
{
	for (size_t i = 0; i < line->n; i++)
		jsonrpc_id_done(&line->message[i].id);
	free(line->message);
	json_decref(line->value);
	memset(line, 0, sizeof(*line));
}

struct jsonrpc_id
jsonrpc_id_take(struct jsonrpc_id *id)
{
	struct jsonrpc_id taken = *id;

	*id = (struct jsonrpc_id){ NULL, NULL };
	return taken;
}

void
jsonrpc_id_done(struct jsonrpc_id *id)
{
	free(id->raw);
	json_decref(id->value);
	*id = (struct jsonrpc_id){ NULL, NULL };
}

static int
put_piece(const char *text, size_t len, void *out)
{
	jsonout_raw(out, text, len);
	((struct jsonout *)out)->comma = false;
	return 0;
}

void
jsonrpc_write_value(struct jsonout *out, const json_t *value)
{
	jsonout_raw(out, "", 0);
	out->comma = false;
	xassert(json_dump_callback(value, put_piece, out, JSON_COMPACT | JSON_ENCODE_ANY) == 0);
	out->comma = true;
}

void
jsonrpc_open_result(struct jsonout *out, const char *id_raw)
{
	jsonout_open(out, '{');
	jsonout_member_text(out, "jsonrpc", "2.0");
	jsonout_member_raw(out, "id", id_raw);
	jsonout_key(out, "result");
}

void
jsonrpc_close_result(struct jsonout *out)
{
	jsonout_close(out, '}');
}

void
jsonrpc_write_error_object(struct jsonout *out, int code, const char *text, const char *data)
{
	jsonout_open(out, '{');
	jsonout_key(out, "code");
	jsonout_int(out, code);
	jsonout_member_text(out, "message", text);
	if (data)
		jsonout_member_raw(out, "data", data);
	jsonout_close(out, '}');
}

void
jsonrpc_open_error(struct jsonout *out, const char *id_raw)
{
	jsonout_open(out, '{');
	jsonout_member_text(out, "jsonrpc", "2.0");
	if (id_raw)
		jsonout_member_raw(out, "id", id_raw);
	jsonout_key(out, "error");
}

void
jsonrpc_write_error(struct jsonout *out, const char *id_raw, int code, const char *text,
		    const char *data)
{
	jsonrpc_open_error(out, id_raw);
	jsonrpc_write_error_object(out, code, text, data);
	jsonout_close(out, '}');
}
