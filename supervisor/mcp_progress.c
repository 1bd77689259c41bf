/* Runs in: the supervisor.   Owns: output that was not sent yet, a timer.
 * Reads:   bytes of a script. When it writes nothing a sign of life is sent now and then,
 * for clients whose patience each progress renews. */
#include "supervisor/mcp_progress.h"

#include <stdio.h>

#include <event2/event.h>

#include "supervisor/jsonout.h"
#include "supervisor/output.h"
#include "supervisor/revision.h"
#include "supervisor/xalloc.h"

#define LINE_MAX_BYTES 200	/* of a line that is shown */
#define LINE_EVERY_MS 250
#define STREAM_EVERY_MS 40
#define SILENCE_MS 10000	/* then a sign of life */

/* The newest line of a stream that is not empty, finished or not. */
struct newest_line {
	char text[LINE_MAX_BYTES];
	size_t len;
	bool ended;
};

/* What of a stream waits to be sent. */
struct piece {
	char *at;
	size_t len, size;
	size_t taken;		/* bytes of the stream so far, this included */
	uint64_t offset;	/* of the text that was sent */
};

struct mcp_progress {
	struct mcp_progress_options options;
	char *token;		/* as JSON text */
	uint64_t count;		/* what was sent last */
	struct event *timer;
	struct timeval began, sent;
	bool fresh;		/* there is output to be told of */
	struct newest_line line[STREAM_COUNT];
	enum stream newest;
	struct piece piece[STREAM_COUNT];
};

static int64_t
ms_since(const struct mcp_progress *p, const struct timeval *then)
{
	struct timeval now, passed;

	event_base_gettimeofday_cached(p->options.base, &now);
	evutil_timersub(&now, then, &passed);
	return (int64_t)passed.tv_sec * 1000 + passed.tv_usec / 1000;
}

static void
arm(struct mcp_progress *p, int64_t wait_ms)
{
	struct timeval wait = { .tv_sec = wait_ms / 1000,
				.tv_usec = wait_ms % 1000 * 1000 };

	evtimer_add(p->timer, &wait);
}

static void
send_note(struct mcp_progress *p, struct progress_note *note)
{
	struct jsonout out;

	note->token = p->token;
	note->progress = ++p->count;
	jsonout_init(&out);
	revision_write_progress(p->options.revision, &out, note);
	p->options.send(p->options.arg, &out);
	jsonout_done(&out);
}

static void
send_line(struct mcp_progress *p)
{
	const struct newest_line *line = &p->line[p->newest];
	struct progress_note note = { .message = line->text, .message_len = line->len };

	send_note(p, &note);
}

/* Sends what is there but a character that has only begun. */
static void
send_piece(struct mcp_progress *p, enum stream stream)
{
	static const char *const names[] = { "stdout", "stderr" };
	struct piece *piece = &p->piece[stream];
	size_t rest = output_begun((const unsigned char *)piece->at, piece->len);
	size_t len = piece->len - rest;
	struct progress_note note = { .stream = names[stream], .offset = piece->offset,
				      .text = piece->at, .text_len = len };

	if (len == 0)
		return;
	send_note(p, &note);
	piece->offset += jsonout_repaired(piece->at, len);
	memmove(piece->at, piece->at + len, rest);
	piece->len = rest;
}

static void
send_alive(struct mcp_progress *p)
{
	char text[64];
	struct progress_note note = { .message = text };

	note.message_len = (size_t)snprintf(text, sizeof(text), "no new output after %lld s",
					    (long long)ms_since(p, &p->began) / 1000);
	send_note(p, &note);
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct mcp_progress *p = arg;
	bool fresh = p->fresh;

	(void)fd;
	(void)what;
	p->fresh = false;
	event_base_gettimeofday_cached(p->options.base, &p->sent);
	arm(p, SILENCE_MS);
	if (!fresh) {
		send_alive(p);
	} else if (p->options.streams) {
		for (int i = 0; i < STREAM_COUNT; i++)
			send_piece(p, (enum stream)i);
	} else {
		send_line(p);
	}
}

/* Is there something new to show in it? */
static bool
read_line(struct newest_line *line, const char *bytes, size_t len)
{
	const size_t most = 4 * LINE_MAX_BYTES;
	bool changed = false;

	if (len > most) {
		bytes += len - most;
		len = most;
		line->ended = true;
	}
	for (size_t i = 0; i < len; i++) {
		if (bytes[i] == '\n' || bytes[i] == '\r') {
			line->ended = true;
			continue;
		}
		if (line->ended)
			line->len = 0;
		line->ended = false;
		if (line->len < sizeof(line->text))
			line->text[line->len++] = bytes[i];
		changed = true;
	}
	return changed;
}

static bool
read_piece(struct piece *piece, size_t most, const char *bytes, size_t len)
{
	if (len > most - piece->taken)
		len = most - piece->taken;
	if (len > piece->size - piece->len) {
		piece->size = (piece->len + len) * 2;
		piece->at = xrealloc(piece->at, piece->size);
	}
	if (len > 0)
		memcpy(piece->at + piece->len, bytes, len);
	piece->len += len;
	piece->taken += len;
	return len > 0;
}

void
mcp_progress_output(struct mcp_progress *p, enum stream stream, const char *bytes,
		    size_t len)
{
	int64_t since, every = p->options.streams ? STREAM_EVERY_MS : LINE_EVERY_MS;

	if (p->options.streams) {
		if (!read_piece(&p->piece[stream], p->options.stream_max, bytes, len))
			return;
	} else {
		if (!read_line(&p->line[stream], bytes, len))
			return;
		p->newest = stream;
	}
	if (p->fresh)
		return;			/* the timer is set for it already */
	p->fresh = true;
	since = ms_since(p, &p->sent);
	arm(p, since >= every || since < 0 ? 0 : every - since);
}

struct mcp_progress *
mcp_progress_new(const struct mcp_progress_options *options)
{
	struct mcp_progress *p = xcalloc(1, sizeof(*p));

	p->options = *options;
	p->options.token = NULL;	/* borrowed for now only */
	p->token = xalloc_check(json_dumps(options->token, JSON_ENCODE_ANY));
	p->timer = xalloc_check(evtimer_new(options->base, on_timer, p));
	event_base_gettimeofday_cached(options->base, &p->began);
	arm(p, SILENCE_MS);
	return p;
}

void
mcp_progress_free(struct mcp_progress *p)
{
	if (!p)
		return;
	event_free(p->timer);
	for (size_t i = 0; i < STREAM_COUNT; i++)
		free(p->piece[i].at);
	free(p->token);
	free(p);
}
