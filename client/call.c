/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python run and repl.   Owns: unsent and unread bytes.
 * One poll loop over one socket; the service may answer while the request is still being
 * written. */
#include "client/call.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "client/exits.h"
#include "client/options.h"
#include "client/prompt.h"
#include "client/say.h"

void
call_set(json_t *object, const char *key, json_t *value)
{
	/* Fails only for lack of memory: the values were made from checked text. */
	xassert(json_object_set_new(object, key, value) == 0);
}

/* A whole number as an integer, because a schema may say "integer". */
static json_t *
call_number(double value)
{
	if (value == (double)(json_int_t)value)
		return json_integer((json_int_t)value);
	return json_real(value);
}

void
call_add_limits(json_t *arguments, const struct options *options)
{
	/* Whoever waits at a terminal wants the answer, not a job that waits for an approval. */
	call_set(arguments, "background", json_false());
	if (options->timeout_seconds > 0)
		call_set(arguments, "timeout_seconds", call_number(options->timeout_seconds));
	if (options->cpu_seconds > 0)
		call_set(arguments, "cpu_seconds", call_number(options->cpu_seconds));
	if (options->memory_mb > 0)
		call_set(arguments, "memory_mb", json_integer(options->memory_mb));
	if (options->pids > 0)
		call_set(arguments, "pids", json_integer(options->pids));
	if (options->profile)
		call_set(arguments, "profile", json_string(options->profile));
	if (options->volume)
		call_set(arguments, "volume", json_string(options->volume));
}

void
call_add_packages(json_t *arguments, const struct options *options)
{
	json_t *list = json_array();

	/* An invalid word becomes NULL, which is not appended; the service names the rest. */
	for (size_t i = 0; i < options->with.n; i++)
		json_array_append_new(list, json_string(options->with.at[i]));
	if (json_array_size(list) > 0)
		call_set(arguments, "dependencies", list);
	else
		json_decref(list);
}

#define GREETING_ID 0 /* less than the ids of calls */

static json_t *
call_checked(json_t *made)
{
	if (!made)
		xalloc_fail(0);
	return made;
}

static json_t *
client_info(void)
{
	return json_pack("{s:s, s:s}", "name", "mcp-python", "version", PACKAGE_VERSION);
}

void
call_greet(struct call_channel *channel)
{
	call_send(channel,
		  call_checked(json_pack("{s:s, s:i, s:s, s:{s:s, s:{s:{s:{}}}, s:o}}", "jsonrpc",
					 "2.0", "id", GREETING_ID, "method", "initialize",
					 "params", "protocolVersion", "2025-11-25", "capabilities",
					 "elicitation", "form", "clientInfo", client_info())));
	call_send(channel, call_checked(json_pack("{s:s, s:s}", "jsonrpc", "2.0", "method",
						  "notifications/initialized")));
}

/* Without a session each request names its revision, and has one answer. */
static json_t *
make_meta(const struct call_channel *channel, int id, bool streams)
{
	json_t *meta = json_object();

	if (!channel->prompt) {
		call_set(meta, "io.modelcontextprotocol/protocolVersion",
			 json_string("2026-07-28"));
		call_set(meta, "io.modelcontextprotocol/clientCapabilities", json_object());
		call_set(meta, "io.modelcontextprotocol/clientInfo", client_info());
	}
	if (streams) {
		call_set(meta, "progressToken", json_integer(id));
		call_set(meta, "mcp-pythond/stream", json_true());
	}
	return meta;
}

json_t *
call_message(const struct call_channel *channel, int id, const char *tool,
	     json_t *arguments, bool streams)
{
	return call_checked(json_pack("{s:s, s:i, s:s, s:{s:s, s:o, s:o}}", "jsonrpc", "2.0", "id",
				      id, "method", "tools/call", "params", "name", tool,
				      "arguments", arguments, "_meta",
				      make_meta(channel, id, streams)));
}

json_t *
call_read_message(const struct call_channel *channel, int id, const char *uri)
{
	return call_checked(json_pack("{s:s, s:i, s:s, s:{s:s, s:o}}", "jsonrpc", "2.0", "id", id,
				      "method", "resources/read", "params", "uri", uri, "_meta",
				      make_meta(channel, id, false)));
}

static void
call_make_room(char **bytes, size_t *room, size_t wanted)
{
	if (*room >= wanted)
		return;
	while (*room < wanted)
		*room = *room == 0 ? 65536 : *room * 2;
	*bytes = xrealloc(*bytes, *room);
}

void
call_send(struct call_channel *channel, json_t *message)
{
	char *line = json_dumps(message, JSON_COMPACT);
	size_t len;

	if (!line)
		xalloc_fail(0);
	json_decref(message);
	len = strlen(line);
	line[len] = '\n';	/* replaces the NUL */
	call_make_room(&channel->out, &channel->out_room, channel->out_len + len + 1);
	memcpy(channel->out + channel->out_len, line, len + 1);
	channel->out_len += len + 1;
	free(line);
}

void
call_channel_done(struct call_channel *channel)
{
	free(channel->in);
	free(channel->out);
	channel->in = channel->out = NULL;
}

/* Reads once. 0; 1: the end of the stream; or -errno. */
static int
read_some(struct call_channel *channel)
{
	ssize_t n;

	if (channel->in_len >= CALL_LINE_MAX)
		return -EBADMSG;
	call_make_room(&channel->in, &channel->in_room, channel->in_len + 1);
	n = recv(channel->fd, channel->in + channel->in_len,
		 channel->in_room - channel->in_len, 0);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	channel->in_len += (size_t)n;
	return n == 0;
}

static void
send_if(struct call_channel *channel, json_t *message)
{
	if (message)
		call_send(channel, message);
}

/* Handles a message other than the answer. 0 or -errno. */
static int
take_other(struct call_channel *channel, const struct reply *reply,
	   int (*on_output)(void *arg, const struct reply *piece), void *arg)
{
	if (reply->kind == REPLY_OUTPUT)
		return on_output(arg, reply);
	if (reply->kind == REPLY_PROGRESS && isatty(STDERR_FILENO))
		say_more("%s", reply->text);
	if (reply->kind == REPLY_PROMPT && !channel->prompt)
		return -EBADMSG;
	if (reply->kind == REPLY_PROMPT)
		send_if(channel, prompt_ask(channel->prompt, reply->message));
	else if (reply->kind == REPLY_WITHDRAWN && channel->prompt)
		prompt_withdraw(channel->prompt, reply->message);
	return 0;
}

/* Handles every complete line. 1: the answer was among them; 0: it is still to come; or -errno. */
static int
call_take_lines(struct call_channel *channel, int id,
		int (*on_output)(void *arg, const struct reply *piece), void *arg,
		struct reply *answer_r)
{
	size_t start = 0;
	int r = 0;

	while (r == 0) {
		struct reply reply;
		char *end = channel->in_len == channel->scanned
				    ? NULL
				    : memchr(channel->in + channel->scanned, '\n',
					     channel->in_len - channel->scanned);

		if (!end) {
			channel->scanned = channel->in_len;
			break;
		}
		r = reply_parse(channel->in + start,
				(size_t)(end - channel->in) - start, id, &reply);
		start = channel->scanned = (size_t)(end - channel->in) + 1;
		if (r < 0)
			break;
		if (reply.kind == REPLY_STRUCTURED && !channel->takes_structured) {
			reply_free(&reply);
			r = -EBADMSG;
			break;
		}
		if (reply.kind == REPLY_OUTCOME || reply.kind == REPLY_REFUSED ||
		    reply.kind == REPLY_STRUCTURED || reply.kind == REPLY_RESOURCE) {
			*answer_r = reply;
			r = 1;
			break;
		}
		r = take_other(channel, &reply, on_output, arg);
		reply_free(&reply);
	}
	if (start > 0) {
		memmove(channel->in, channel->in + start, channel->in_len - start);
		channel->in_len -= start;
		channel->scanned -= start;
	}
	return r;
}

static void
write_some(struct call_channel *channel)
{
	ssize_t n = send(channel->fd, channel->out + channel->out_at,
			 channel->out_len - channel->out_at, MSG_NOSIGNAL);

	if (n > 0)
		channel->out_at += (size_t)n;
	/* A service that has stopped reading may have sent the reason before. A kernel without
	 * memory has some later. */
	if ((n < 0 && errno != EAGAIN && errno != EINTR && errno != ENOBUFS && errno != ENOMEM) ||
	    channel->out_at == channel->out_len)
		channel->out_at = channel->out_len = 0;
}

/* Waits once for any event, and sends unsent bytes. 1: the socket has something to read; 0; or
 * -errno. */
static int
wait_once(struct call_channel *channel)
{
	struct prompt *prompt = channel->prompt;
	struct pollfd p[] = {
		{.fd = channel->fd,
		 .events = (short)(POLLIN | (channel->out_len ? POLLOUT : 0))},
		{.fd = prompt && prompt->id ? STDIN_FILENO : -1, .events = POLLIN},
	};

	if (ppoll(p, 2, NULL, channel->mask) < 0) {
		if (errno != EINTR)
			return -errno;
		return channel->interrupted && *channel->interrupted ? -EINTR : 0;
	}
	if (p[1].revents)
		send_if(channel, prompt_read(prompt));
	if (channel->out_len > 0 && p[0].revents & POLLOUT)
		write_some(channel);
	return p[0].revents & (POLLIN | POLLHUP | POLLERR) ? 1 : 0;
}

int
call_wait(struct call_channel *channel, int id,
	  int (*on_output)(void *arg, const struct reply *piece), void *arg,
	  struct reply *answer_r)
{
	bool ended = false;
	int r = 0;

	while (r == 0 && !ended) {
		r = wait_once(channel);
		if (r <= 0)
			continue;
		r = read_some(channel);
		ended = r == 1;
		if (r >= 0)
			r = call_take_lines(channel, id, on_output, arg, answer_r);
	}
	if (channel->prompt)
		prompt_forget(channel->prompt);
	if (r == 0)
		return -ECONNRESET;
	return r > 0 ? 0 : r;
}

int
call_failed(int error)
{
	if (error == -EBADMSG) {
		say("the answer is not what mcp-pythond would say; is it listening "
		    "there?");
		return EX_PROTOCOL;
	}
	if (error == -ECONNRESET) {
		say("mcp-pythond closed the connection before it answered");
		return EX_UNAVAILABLE;
	}
	say("%s", strerror(-error));
	return EX_IOERR;
}
