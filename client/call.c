/* Runs in: mcp-python run. One poll loop over one socket; the service may answer while
 * the request is still being written. Owns the receive buffer only. */
#include "client/call.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <jansson.h>

#include "client/options.h"
#include "client/script.h"
#include "client/utf8.h"

static void
set(json_t *object, const char *key, json_t *value)
{
	/* Fails for want of memory alone: what is put in was made from checked text. */
	if (json_object_set_new(object, key, value) < 0)
		abort();
}

/* A whole number as one, because a schema may say "integer". */
static json_t *
number(double value)
{
	if (value == (double)(json_int_t)value)
		return json_integer((json_int_t)value);
	return json_real(value);
}

static json_t *
make_arguments(const struct options *options, const struct script_text *script,
	       const struct script_text *stdin_text)
{
	json_t *arguments = json_object();

	set(arguments, "script",
	    json_stringn(script->bytes ? script->bytes : "", script->len));
	if (stdin_text)
		set(arguments, "stdin",
		    json_stringn(stdin_text->bytes ? stdin_text->bytes : "",
				 stdin_text->len));
	if (options->n_args > 0) {
		json_t *list = json_array();

		for (size_t i = 0; i < options->n_args; i++)
			if (json_array_append_new(list, json_string(options->args[i])) <
			    0)
				abort();
		set(arguments, "args", list);
	}
	if (options->timeout_seconds > 0)
		set(arguments, "timeout_seconds", number(options->timeout_seconds));
	if (options->cpu_seconds > 0)
		set(arguments, "cpu_seconds", number(options->cpu_seconds));
	if (options->memory_mb > 0)
		set(arguments, "memory_mb", json_integer(options->memory_mb));
	if (options->pids > 0)
		set(arguments, "pids", json_integer(options->pids));
	if (options->profile)
		set(arguments, "profile", json_string(options->profile));
	return arguments;
}

/* The revision without a handshake: one request, one answer. */
static json_t *
make_meta(const struct options *options)
{
	json_t *meta = json_pack(
		"{s:s, s:{}, s:{s:s, s:s}}", "io.modelcontextprotocol/protocolVersion",
		"2026-07-28", "io.modelcontextprotocol/clientCapabilities",
		"io.modelcontextprotocol/clientInfo", "name", "mcp-python", "version",
		PACKAGE_VERSION);

	if (!meta)
		abort();
	if (!options->json) {
		set(meta, "progressToken", json_integer(REPLY_REQUEST_ID));
		set(meta, "mcp-pythond/stream", json_true());
	}
	return meta;
}

char *
call_request(const struct options *options, const struct script_text *script,
	     const struct script_text *stdin_text, size_t *len_r, size_t *bad_arg_r)
{
	struct text_position where;
	json_t *message;
	char *line, *longer;
	size_t len;

	for (size_t i = 0; i < options->n_args; i++)
		if (!utf8_check(options->args[i], strlen(options->args[i]), true,
				&where)) {
			*bad_arg_r = i;
			return NULL;
		}
	message = json_pack("{s:s, s:i, s:s, s:{s:s, s:o, s:o}}", "jsonrpc", "2.0",
			    "id", REPLY_REQUEST_ID, "method", "tools/call", "params",
			    "name", "run_script", "arguments",
			    make_arguments(options, script, stdin_text), "_meta",
			    make_meta(options));
	line = message ? json_dumps(message, JSON_COMPACT) : NULL;
	if (!line)
		abort();
	json_decref(message);
	len = strlen(line);
	longer = realloc(line, len + 2);
	if (!longer)
		abort();
	memcpy(longer + len, "\n", 2);
	*len_r = len + 1;
	return longer;
}

struct inbox {
	char *bytes;
	size_t len, room;
	size_t scanned; /* bytes that hold no line end */
};

/* Reads once. 0, 1 at the end of the stream, or -errno. */
static int
inbox_read(struct inbox *in, int fd)
{
	ssize_t n;

	if (in->len == in->room) {
		size_t room = in->room == 0 ? 65536 : in->room * 2;
		char *more;

		if (in->len >= CALL_LINE_MAX)
			return -EBADMSG;
		more = realloc(in->bytes, room);
		if (!more)
			abort();
		in->bytes = more;
		in->room = room;
	}
	n = recv(fd, in->bytes + in->len, in->room - in->len, 0);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	in->len += (size_t)n;
	return n == 0;
}

/* Handles every whole line. 1: that was the answer; 0: more is to come; or -errno. */
static int
inbox_take_lines(struct inbox *in,
		 int (*on_output)(void *arg, const struct reply *piece), void *arg,
		 struct reply *answer_r)
{
	size_t start = 0;
	int r = 0;

	while (r == 0) {
		struct reply reply;
		char *end =
			memchr(in->bytes + in->scanned, '\n', in->len - in->scanned);

		if (!end) {
			in->scanned = in->len;
			break;
		}
		r = reply_parse(in->bytes + start, (size_t)(end - in->bytes) - start,
				&reply);
		start = in->scanned = (size_t)(end - in->bytes) + 1;
		if (r < 0)
			break;
		if (reply.kind == REPLY_OUTCOME || reply.kind == REPLY_REFUSED) {
			*answer_r = reply;
			return 1;
		}
		if (reply.kind == REPLY_OUTPUT)
			r = on_output(arg, &reply);
		reply_free(&reply);
	}
	if (start > 0) {
		memmove(in->bytes, in->bytes + start, in->len - start);
		in->len -= start;
		in->scanned -= start;
	}
	return r;
}

int
call_run(int fd, const char *request, size_t len,
	 int (*on_output)(void *arg, const struct reply *piece), void *arg,
	 struct reply *answer_r)
{
	struct inbox in = {0};
	bool ended = false;
	int r = 0;

	while (r == 0 && !ended) {
		struct pollfd p = {.fd = fd,
				   .events = (short)(POLLIN | (len ? POLLOUT : 0))};

		if (poll(&p, 1, -1) < 0) {
			r = errno == EINTR ? 0 : -errno;
			continue;
		}
		if (len > 0 && p.revents & POLLOUT) {
			ssize_t n = send(fd, request, len, MSG_NOSIGNAL);

			/* A service that takes no more may still have said why. */
			if (n < 0 && errno != EAGAIN && errno != EINTR)
				len = 0;
			else if (n > 0)
				request += n, len -= (size_t)n;
		}
		if (p.revents & (POLLIN | POLLHUP | POLLERR)) {
			r = inbox_read(&in, fd);
			ended = r == 1;
			if (r >= 0)
				r = inbox_take_lines(&in, on_output, arg, answer_r);
		}
	}
	free(in.bytes);
	if (r == 0)
		return -ECONNRESET;
	return r > 0 ? 0 : r;
}
