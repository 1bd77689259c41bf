/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python-egress.   Owns: nothing.
 * Reads:   requests of scripts and answers of origins, hostile from the first byte. Any deviation
 * from RFC 9112 is refused, so that no other program reads them differently. */
#include "egress/head.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define CHUNK_LINE_MAX 256	/* bytes of a chunk's size line, or of a trailer's line */
#define TRAILER_MAX 4096
#define PLACE "{{secret:"
#define PLACE_END "}}"

struct span {
	const char *at;
	size_t len;
};

static bool
is_token(const char *at, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		char c = at[i];

		if (!((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
		      (c >= 'a' && c <= 'z') || (c && strchr("!#$%&'*+-.^_`|~", c))))
			return false;
	}
	return len > 0;
}

static bool
is_value(const char *at, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)at[i];

		if ((c < ' ' && c != '\t') || c == 0x7f)
			return false;
	}
	return true;
}

static bool
head_is(const struct span *span, const char *word)
{
	return span->len == strlen(word) && strncasecmp(span->at, word, span->len) == 0;
}

/* Takes the line at *at_io, without its end, which must be CR LF. */
static bool
next_line(const char **at_io, const char *end, struct span *line_r)
{
	const char *newline = memchr(*at_io, '\n', (size_t)(end - *at_io));

	if (!newline || newline == *at_io || newline[-1] != '\r')
		return false;
	*line_r = (struct span){ *at_io, (size_t)(newline - 1 - *at_io) };
	*at_io = newline + 1;
	return true;
}

static bool
split_header(const struct span *line, struct span *name_r, struct span *value_r)
{
	const char *colon = memchr(line->at, ':', line->len), *at, *end;

	if (!colon)
		return false;
	*name_r = (struct span){ line->at, (size_t)(colon - line->at) };
	at = colon + 1;
	end = line->at + line->len;
	while (at < end && (*at == ' ' || *at == '\t'))
		at++;
	while (end > at && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	*value_r = (struct span){ at, (size_t)(end - at) };
	return is_token(name_r->at, name_r->len) && is_value(at, value_r->len);
}

/* ---- the request line ---- */

/* http://HOST[:PORT][/PATH][?QUERY] */
static int
parse_absolute(const char *bytes, const struct span *uri, struct head *head)
{
	static const char scheme[] = "http://";
	const size_t n = sizeof(scheme) - 1;
	size_t host = 0;

	if (uri->len >= 8 && strncasecmp(uri->at, "https://", 8) == 0)
		return -501;
	if (uri->len <= n || strncasecmp(uri->at, scheme, n) != 0)
		return -400;
	while (n + host < uri->len && !strchr("/?", uri->at[n + host]))
		host++;
	if (network_target_parse(uri->at + n, host, 80, &head->target) < 0)
		return -400;
	head->path = (size_t)(uri->at - bytes) + n + host;
	head->path_len = uri->len - n - host;
	return 0;
}

static int
parse_request_line(const char *bytes, const struct span *line, struct head *head)
{
	const char *end = line->at + line->len;
	const char *space = memchr(line->at, ' ', line->len), *second;
	struct span uri;

	if (!space || !is_token(line->at, (size_t)(space - line->at)))
		return -400;
	head->method_len = (size_t)(space - line->at);
	uri.at = space + 1;
	second = memchr(uri.at, ' ', (size_t)(end - uri.at));
	if (!second || end - second != 9 || memcmp(second + 1, "HTTP/1.", 7) != 0 ||
	    (end[-1] != '0' && end[-1] != '1'))
		return -400;
	uri.len = (size_t)(second - uri.at);
	for (size_t i = 0; i < uri.len; i++)
		if (uri.at[i] <= ' ' || uri.at[i] > '~' || uri.at[i] == '#')
			return -400;
	head->connect = head->method_len == 7 && memcmp(line->at, "CONNECT", 7) == 0;
	if (!head->connect)
		return parse_absolute(bytes, &uri, head);
	return network_target_parse(uri.at, uri.len, 0, &head->target) < 0 ? -400 : 0;
}

/* ---- headers ---- */

static int
parse_length(const struct span *value, uint64_t *length_r)
{
	uint64_t length = 0;

	if (value->len == 0 || value->len > 18)
		return -400;
	for (size_t i = 0; i < value->len; i++) {
		if (value->at[i] < '0' || value->at[i] > '9')
			return -400;
		length = length * 10 + (uint64_t)(value->at[i] - '0');
	}
	*length_r = length;
	return 0;
}

/* Takes a header about the body. A second one is refused: the next reader may believe the other of
 * the two. */
static int
take_body_header(const struct span *name, const struct span *value, enum head_body *body,
		 uint64_t *len)
{
	int r = 0;

	if (head_is(name, "Content-Length")) {
		if (*body != HEAD_BODY_NONE)
			return -400;
		r = parse_length(value, len);
		*body = HEAD_BODY_LENGTH;
	} else if (head_is(name, "Transfer-Encoding")) {
		if (*body != HEAD_BODY_NONE)
			return -400;
		if (!head_is(value, "chunked"))
			return -501;
		*body = HEAD_BODY_CHUNKED;
	}
	return r;
}

/* Notes the places for secrets. A place without an end gets a name that no secret has. */
static int
take_places(const char *bytes, const struct span *name, const struct span *value,
	    struct head *head)
{
	const size_t begin = strlen(PLACE), finish = strlen(PLACE_END);
	const char *at = value->at, *end = at + value->len, *stop;

	while ((at = memmem(at, (size_t)(end - at), PLACE, begin))) {
		const char *of = at + begin;

		if (head->n_secrets == HEAD_SECRETS_MAX)
			return -431;
		stop = memmem(of, (size_t)(end - of), PLACE_END, finish);
		head->secret[head->n_secrets++] = (struct head_secret){
			.header = { (size_t)(name->at - bytes), name->len },
			.place = { (size_t)(at - bytes),
				   (size_t)((stop ? stop + finish : end) - at) },
			.name = { (size_t)(of - bytes), stop ? (size_t)(stop - of) : 0 },
		};
		at = stop ? stop + finish : end;
	}
	return 0;
}

static const char *
find_end(const char *bytes, size_t len)
{
	const char *end = memmem(bytes, len, "\r\n\r\n", 4);

	return end ? end + 4 : NULL;
}

int
head_parse(const char *bytes, size_t len, struct head *head_r)
{
	const char *end = find_end(bytes, len < HEAD_MAX ? len : HEAD_MAX), *at = bytes;
	struct span line, name, value;
	struct head head = { 0 };
	int r;

	if (!end)
		return len >= HEAD_MAX ? -431 : 0;
	head.len = (size_t)(end - bytes);
	if (!next_line(&at, end, &line))
		return -400;
	r = parse_request_line(bytes, &line, &head);
	for (unsigned int n = 0; r == 0; n++) {
		if (!next_line(&at, end, &line))
			return -400;
		if (line.len == 0)
			break;
		if (n == HEAD_LINES_MAX)
			return -431;
		if (!split_header(&line, &name, &value))
			return -400;
		r = take_body_header(&name, &value, &head.body, &head.body_len);
		if (r == 0)
			r = take_places(bytes, &name, &value, &head);
	}
	if (r < 0)
		return r;
	if (head.connect)
		head.body = HEAD_BODY_NONE;
	*head_r = head;
	return 1;
}

/* ---- for the origin ---- */

/* Does a list of words, such as that of Connection, contain the name? */
static bool
head_lists(const struct span *list, const struct span *name)
{
	const char *at = list->at, *end = at + list->len;

	while (at < end) {
		const char *comma = memchr(at, ',', (size_t)(end - at));
		const char *stop = comma ? comma : end;

		while (at < stop && (*at == ' ' || *at == '\t'))
			at++;
		while (stop > at && (stop[-1] == ' ' || stop[-1] == '\t'))
			stop--;
		if ((size_t)(stop - at) == name->len &&
		    strncasecmp(at, name->at, name->len) == 0)
			return true;
		at = comma ? comma + 1 : end;
	}
	return false;
}

/* Does the header concern only the connection between the script and the proxy? */
static bool
is_ours(const struct span *name, const struct span *all)
{
	static const char *const of_connection[] = {
		"Host", "Connection", "Proxy-Connection", "Proxy-Authorization",
		"Keep-Alive", "TE", "Upgrade",
	};
	const char *at = all->at, *end = at + all->len;
	struct span line, other, value;

	for (size_t i = 0; i < sizeof(of_connection) / sizeof(of_connection[0]); i++)
		if (head_is(name, of_connection[i]))
			return true;
	/* The headers that give the body's length cannot be removed by naming them in
	 * Connection. */
	if (head_is(name, "Content-Length") || head_is(name, "Transfer-Encoding"))
		return false;
	while (next_line(&at, end, &line) && line.len > 0)
		if (split_header(&line, &other, &value) && head_is(&other, "Connection") &&
		    head_lists(&value, name))
			return true;
	return false;
}

static char *
head_put(char *to, const char *from, size_t len)
{
	return (char *)memcpy(to, from, len) + len;
}

static char *
put_text(char *to, const char *text)
{
	return head_put(to, text, strlen(text));
}

/* Writes the target as HOST[:PORT]. usual: the port that is left out. */
static char *
put_host(char *to, const struct network_target *target, unsigned int usual)
{
	unsigned int port = target->port;
	char digits[6], *at = digits + sizeof(digits);

	if (target->address.family == 6)
		*to++ = '[';
	to = put_text(to, target->host);
	if (target->address.family == 6)
		*to++ = ']';
	if (port == usual)
		return to;
	*to++ = ':';
	for (*--at = '\0'; port > 0; port /= 10)
		*--at = (char)('0' + port % 10);
	return put_text(to, at);
}

/* Copies a line, its end too, with secrets in their places; *next_io: the first place that is not
 * before it. */
static char *
put_line(char *to, const struct span *line, const struct head *head, const char *bytes,
	 const char *const *values, size_t *next_io)
{
	const char *at = line->at, *end = at + line->len + 2;

	for (; *next_io < head->n_secrets; ++*next_io) {
		const struct head_part *place = &head->secret[*next_io].place;

		if (bytes + place->at >= end)
			break;
		if (bytes + place->at < at)
			continue;
		to = head_put(to, at, (size_t)(bytes + place->at - at));
		to = put_text(to, values[*next_io]);
		at = bytes + place->at + place->len;
	}
	return head_put(to, at, (size_t)(end - at));
}

/* Would the header get an answer that the proxy cannot read (compressed), an interim one, which it
 * does not pass on, or a part of one, in which a secret is not whole? */
static bool
is_in_the_way(const struct span *name)
{
	return head_is(name, "Accept-Encoding") || head_is(name, "Expect") ||
	       head_is(name, "Range") || head_is(name, "If-Range");
}

char *
head_for_origin(const struct head *head, const char *bytes, const char *const *values,
		size_t *len_r)
{
	size_t size = head->len + NETWORK_HOST_MAX + 128, place = 0;
	const bool has_secrets = head->n_secrets > 0;
	const char *at = bytes, *end = bytes + head->len;
	struct span line, name, value, all;
	char *text, *to;

	for (size_t i = 0; i < head->n_secrets; i++)
		size += strlen(values[i]);
	to = text = malloc(size);

	if (!text)
		return NULL;
	at += head->path + head->path_len + sizeof(" HTTP/1.1\r\n") - 1;
	all = (struct span){ at, (size_t)(end - at) };
	to = head_put(to, bytes, head->method_len + 1);
	if (head->path_len == 0 || bytes[head->path] != '/')
		*to++ = '/';
	to = head_put(to, bytes + head->path, head->path_len);
	/* The script's own version: the answer is passed on unchanged. */
	to = head_put(to, bytes + head->path + head->path_len, sizeof(" HTTP/1.1") - 1);
	to = put_text(to, "\r\nHost: ");
	to = put_host(to, &head->target, has_secrets ? 443 : 80);
	to = put_text(to, "\r\n");
	while (next_line(&at, end, &line) && line.len > 0) {
		split_header(&line, &name, &value);
		if (!is_ours(&name, &all) && !(has_secrets && is_in_the_way(&name)))
			to = put_line(to, &line, head, bytes, values, &place);
	}
	if (has_secrets)
		to = put_text(to, "Accept-Encoding: identity\r\n");
	to = put_text(to, "Connection: close\r\n\r\n");
	*len_r = (size_t)(to - text);
	return text;
}

/* ---- answers ---- */

/* HTTP/1.1 200 OK: its status, or 0. */
static unsigned int
parse_status_line(const struct span *line)
{
	unsigned int status = 0;

	if (line->len < 12 || memcmp(line->at, "HTTP/1.", 7) != 0 ||
	    (line->at[7] != '0' && line->at[7] != '1') || line->at[8] != ' ' ||
	    (line->len > 12 && line->at[12] != ' ') || !is_value(line->at, line->len))
		return 0;
	for (int i = 9; i < 12; i++) {
		if (line->at[i] < '0' || line->at[i] > '9')
			return 0;
		status = status * 10 + (unsigned int)(line->at[i] - '0');
	}
	return status >= 100 && status <= 599 ? status : 0;
}

static bool
take_answer_header(const struct span *line, struct head_answer *head)
{
	struct span name, value;

	if (!split_header(line, &name, &value) ||
	    take_body_header(&name, &value, &head->body, &head->body_len) < 0)
		return false;
	if (head_is(&name, "Content-Encoding") && !head_is(&value, "identity"))
		head->is_encoded = true;
	return true;
}

int
head_parse_answer(const char *bytes, size_t len, struct head_answer *head_r)
{
	const char *end = find_end(bytes, len < HEAD_MAX ? len : HEAD_MAX), *at = bytes;
	struct head_answer head = { 0 };
	struct span line;

	if (!end)
		return len >= HEAD_MAX ? -502 : 0;
	head.len = (size_t)(end - bytes);
	if (!next_line(&at, end, &line))
		return -502;
	head.status = parse_status_line(&line);
	if (head.status == 0)
		return -502;
	for (unsigned int n = 0; ; n++) {
		if (!next_line(&at, end, &line) || n > HEAD_LINES_MAX)
			return -502;
		if (line.len == 0)
			break;
		if (!take_answer_header(&line, &head))
			return -502;
	}
	*head_r = head;
	return 1;
}

char *
head_for_script(const struct head_answer *head, const char *bytes, size_t *len_r)
{
	char *text = malloc(head->len + 64), *to = text;
	const char *at = bytes, *end = bytes + head->len;
	struct span line, name, value, all;

	if (!text || !next_line(&at, end, &line)) {
		free(text);
		return NULL;
	}
	to = head_put(to, line.at, line.len + 2);
	to = put_text(to, "Connection: close\r\n");
	all = (struct span){ at, (size_t)(end - at) };
	while (next_line(&at, end, &line) && line.len > 0) {
		split_header(&line, &name, &value);
		if (!is_ours(&name, &all) && !head_is(&name, "Trailer"))
			to = head_put(to, line.at, line.len + 2);
	}
	to = put_text(to, "\r\n");
	*len_r = (size_t)(to - text);
	return text;
}

/* ---- bodies ---- */

enum { CHUNK_SIZE, CHUNK_EXTENSION, CHUNK_SIZE_LF, CHUNK_DATA, CHUNK_DATA_CR, CHUNK_DATA_LF,
       CHUNK_TRAILER, CHUNK_TRAILER_LINE, CHUNK_TRAILER_LF, CHUNK_END_LF, CHUNK_OVER };

void
head_body_begin(struct head_body_state *state, enum head_body kind, uint64_t len)
{
	*state = (struct head_body_state){ .kind = kind, .at = CHUNK_SIZE,
					   .left = kind == HEAD_BODY_LENGTH ? len : 0 };
}

uint64_t
head_body_content(const struct head_body_state *s)
{
	return s->kind != HEAD_BODY_CHUNKED || s->at == CHUNK_DATA ? s->left : 0;
}

static int
head_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int
take_size(struct head_body_state *s, char c)
{
	if (head_digit(c) >= 0 && s->line <= 15) {
		s->left = s->left * 16 + (uint64_t)head_digit(c);
		return 0;
	}
	if (s->line == 1 || (c != ';' && c != '\r'))
		return -400;
	s->at = c == ';' ? CHUNK_EXTENSION : CHUNK_SIZE_LF;
	return 0;
}

/* Takes one byte of a chunked body outside of its data. */
static int
take_byte(struct head_body_state *s, char c)
{
	bool odd = (c < ' ' && c != '\t') || c == 0x7f;

	s->line++;
	switch (s->at) {
	case CHUNK_SIZE:
		return take_size(s, c);
	case CHUNK_EXTENSION:
		if (c == '\r')
			s->at = CHUNK_SIZE_LF;
		return s->line > CHUNK_LINE_MAX || (odd && c != '\r') ? -400 : 0;
	case CHUNK_SIZE_LF:
		s->at = s->left > 0 ? CHUNK_DATA : CHUNK_TRAILER;
		s->line = 0;
		return c == '\n' ? 0 : -400;
	case CHUNK_DATA_CR:
		s->at = CHUNK_DATA_LF;
		return c == '\r' ? 0 : -400;
	case CHUNK_DATA_LF:
		s->at = CHUNK_SIZE;
		s->line = 0;
		return c == '\n' ? 0 : -400;
	case CHUNK_TRAILER:
		s->at = c == '\r' ? CHUNK_END_LF : CHUNK_TRAILER_LINE;
		return odd && c != '\r' ? -400 : 0;
	case CHUNK_TRAILER_LINE:
		if (c == '\r')
			s->at = CHUNK_TRAILER_LF;
		return s->line > TRAILER_MAX || (odd && c != '\r') ? -400 : 0;
	case CHUNK_TRAILER_LF:
		s->at = CHUNK_TRAILER;
		return c == '\n' ? 0 : -400;
	case CHUNK_END_LF:
		s->at = CHUNK_OVER;
		return c == '\n' ? 0 : -400;
	default:
		return -400;
	}
}

int
head_body_take(struct head_body_state *s, const char *bytes, size_t len, size_t *taken_r,
	       bool *over_r)
{
	size_t at = 0;
	int r = 0;

	if (s->kind != HEAD_BODY_CHUNKED) {
		at = len < s->left ? len : (size_t)s->left;
		s->left -= at;
		*taken_r = at;
		*over_r = s->left == 0;
		return 0;
	}
	while (r == 0 && at < len && s->at != CHUNK_OVER) {
		if (s->at == CHUNK_DATA) {
			size_t n = len - at < s->left ? len - at : (size_t)s->left;

			at += n;
			s->left -= n;
			if (s->left == 0)
				s->at = CHUNK_DATA_CR;
		} else {
			r = take_byte(s, bytes[at++]);
		}
	}
	*taken_r = at;
	*over_r = s->at == CHUNK_OVER;
	return r;
}
