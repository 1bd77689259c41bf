/* Runs in: mcp-python run. Shows output as it comes; the answer's stdout and stderr are
 * the whole truth, of which only what was not yet shown is added at the end.
 *
 * Dying is cancelling: the service stops what a connection asked for when it ends, so
 * signals keep their default actions here. */
#include "client/run.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/call.h"
#include "client/endpoint.h"
#include "client/exits.h"
#include "client/options.h"
#include "client/say.h"
#include "client/script.h"
#include "client/verdict.h"

struct shown {
	int fd;
	char *bytes; /* what was printed before the answer */
	size_t len, room;
	bool has_gap; /* a piece did not follow: the answer will tell the rest */
};

static int
write_all(int fd, const char *bytes, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, bytes, len);

		if (n < 0 && errno == EAGAIN) {
			struct pollfd p = {.fd = fd, .events = POLLOUT};

			/* Somebody who shares this stream made it non-blocking. */
			(void)poll(&p, 1, -1);
			continue;
		}
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0)
			bytes += n, len -= (size_t)n;
	}
	return 0;
}

static int
on_output(void *arg, const struct reply *piece)
{
	struct shown *s = &((struct shown *)arg)[piece->stream];

	if (piece->offset != s->len)
		s->has_gap = true;
	if (s->has_gap)
		return 0;
	if (s->room - s->len < piece->text_len) {
		s->room = (s->len + piece->text_len) * 2;
		s->bytes = realloc(s->bytes, s->room);
		if (!s->bytes)
			abort();
	}
	memcpy(s->bytes + s->len, piece->text, piece->text_len);
	s->len += piece->text_len;
	return write_all(s->fd, piece->text, piece->text_len);
}

/* Prints what the answer has of a stream beyond what was shown. */
static int
show_rest(const struct shown *s, const json_t *outcome, const char *name)
{
	size_t len = 0, same = 0;
	const char *text = reply_string(outcome, name, &len);

	if (!text)
		return 0;
	while (same < len && same < s->len && text[same] == s->bytes[same])
		same++;
	if (same < s->len)
		say("%s: the answer differs from what was shown before; its part from "
		    "byte %zu "
		    "follows",
		    name, same);
	return write_all(s->fd, text + same, len - same);
}

/* A traceback that the script's own stderr does not have. */
static int
show_traceback(const json_t *outcome)
{
	size_t len = 0, stderr_len = 0;
	const char *text =
		reply_string(json_object_get(outcome, "error"), "traceback", &len);
	const char *seen = reply_string(outcome, "stderr", &stderr_len);
	int r;

	if (!text || len == 0 || (seen && memmem(seen, stderr_len, text, len)))
		return 0;
	r = write_all(STDERR_FILENO, text, len);
	if (r == 0 && text[len - 1] != '\n')
		r = write_all(STDERR_FILENO, "\n", 1);
	return r;
}

static int
show_json(const json_t *outcome)
{
	char *text = json_dumps(outcome, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
	int r;

	if (!text)
		abort();
	r = write_all(STDOUT_FILENO, text, strlen(text));
	if (r == 0)
		r = write_all(STDOUT_FILENO, "\n", 1);
	free(text);
	return r;
}

/* Shows the answer; the exit code. */
static int
conclude(const struct options *options, const struct shown *shown,
	 const struct reply *answer)
{
	const char *text;
	int r;

	if (answer->kind == REPLY_REFUSED) {
		say("the service refused this: %.*s", (int)answer->text_len,
		    answer->text);
		return answer->result ? EX_USAGE : EX_PROTOCOL;
	}
	if (options->json) {
		r = show_json(answer->outcome);
	} else {
		r = show_rest(&shown[REPLY_STDOUT], answer->outcome, "stdout");
		if (r == 0)
			r = show_rest(&shown[REPLY_STDERR], answer->outcome, "stderr");
		if (r == 0)
			r = show_traceback(answer->outcome);
	}
	if (r < 0) {
		say("cannot write the output: %s", strerror(-r));
		return EX_IOERR;
	}
	text = verdict_text(answer->outcome);
	if (text && !options->json) {
		const char *status = reply_string(answer->outcome, "status", NULL);

		say("%s: %s", status, text);
	}
	return verdict_exit_code(answer->outcome);
}

static int
call_and_show(const struct options *options, const char *request, size_t len)
{
	struct shown shown[REPLY_STREAMS] = {
		[REPLY_STDOUT] = {.fd = STDOUT_FILENO},
		[REPLY_STDERR] = {.fd = STDERR_FILENO},
	};
	struct reply answer;
	int code, fd, r;

	fd = endpoint_connect(options->socket);
	if (fd < 0)
		return EX_UNAVAILABLE;
	r = call_run(fd, request, len, on_output, shown, &answer);
	close(fd);
	if (r == 0) {
		code = conclude(options, shown, &answer);
		reply_free(&answer);
	} else if (r == -EBADMSG) {
		say("the answer is not what mcp-pythond would say; is it listening "
		    "there?");
		code = EX_PROTOCOL;
	} else if (r == -ECONNRESET) {
		say("mcp-pythond closed the connection before it answered");
		code = EX_UNAVAILABLE;
	} else {
		say("%s", strerror(-r));
		code = EX_IOERR;
	}
	for (size_t i = 0; i < REPLY_STREAMS; i++)
		free(shown[i].bytes);
	return code;
}

int
run_command(const struct options *options)
{
	struct script_text script = {0}, stdin_text = {0};
	char *request = NULL;
	size_t len = 0, bad_arg = 0;
	int code;

	code = script_load(options->file, &script);
	if (code == 0 && options->pass_stdin)
		code = script_load_stdin(&stdin_text);
	if (code == 0) {
		request = call_request(options, &script,
				       options->pass_stdin ? &stdin_text : NULL, &len,
				       &bad_arg);
		if (!request) {
			say("argument %zu of the script is not UTF-8", bad_arg + 1);
			code = EX_DATAERR;
		}
	}
	script_text_free(&script);
	script_text_free(&stdin_text);
	if (code == 0)
		code = call_and_show(options, request, len);
	free(request);
	return code;
}
