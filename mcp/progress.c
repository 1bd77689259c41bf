/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: output that was not sent yet, a timer.
 * Reads:   bytes of a script.
 * While a script writes nothing, a notification is sent now and then: some clients wait for an
 * answer only as long as notifications come. */
#include "mcp/progress.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <event2/event.h>

#include "base/jsonout.h"
#include "base/own.h"
#include "base/utf8.h"
#include "base/xalloc.h"
#include "engine/output.h"
#include "mcp/revision.h"
#include "mcp/tool.h"

#define LINE_MAX_BYTES 200	/* the longest part of a line that is shown */
#define LINE_EVERY_MS 250
#define STREAM_EVERY_MS 40
#define SILENCE_MS 10000	/* after so long without output a notification is sent */

/* The newest line of a stream that is not empty, finished or not. */
struct newest_line {
	char text[LINE_MAX_BYTES];
	size_t len;
	bool ended;
};

/* The sent part of a stream. */
struct sent {
	size_t taken;		/* bytes of the stream so far, including those that wait */
	uint64_t offset;	/* bytes of the text that was sent */
	char begun[4];		/* an unfinished character at the end of the sent part */
	size_t begun_len;
};

/* A number of bytes of one stream that wait. After them come bytes of the other stream. */
struct turn {
	enum stream stream;
	size_t len;
};

/* The bytes that wait to be sent, of both streams in the order of arrival. */
struct waiting {
	char *at;
	size_t len, size;
	struct turn *turn;
	size_t n_turns, turns_size;
};

struct mcp_progress {
	struct mcp_progress_options options;
	char *token;		/* as JSON text */
	double last;		/* the value of progress that was sent last */
	double own;		/* that the tool has reported last */
	bool said;		/* it reports its own progress */
	struct event *timer;
	struct timeval began, sent;
	bool fresh;		/* there is new output to report */
	struct newest_line line[STREAM_COUNT];
	enum stream newest;
	struct sent stream[STREAM_COUNT];
	struct waiting waiting;
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
progress_arm(struct mcp_progress *p, int64_t wait_ms)
{
	struct timeval wait = { .tv_sec = wait_ms / 1000,
				.tv_usec = wait_ms % 1000 * 1000 };

	evtimer_add(p->timer, &wait);
}

static void
progress_send_note(struct mcp_progress *p, struct progress_note *note)
{
	struct jsonout out;

	note->token = p->token;
	if (!p->said)
		note->progress = p->last + 1;
	p->last = note->progress;
	jsonout_init(&out);
	revision_write_progress(p->options.revision, &out, note);
	p->options.send(p->options.arg, &out);
	jsonout_done(&out);
}

/* Sends bytes of a stream, except for an unfinished character at their end: its rest comes with
 * the next bytes. */
static void
send_turn(struct mcp_progress *p, enum stream stream, const char *bytes, size_t len)
{
	static const char *const names[] = { "stdout", "stderr" };
	struct sent *sent = &p->stream[stream];
	own_mem char *joined = xrealloc(NULL, sent->begun_len + len);
	struct progress_note note = { .stream = names[stream], .offset = sent->offset,
				      .text = joined };

	memcpy(joined, sent->begun, sent->begun_len);
	memcpy(joined + sent->begun_len, bytes, len);
	len += sent->begun_len;
	sent->begun_len = utf8_begun(joined, len);
	note.text_len = len - sent->begun_len;
	memcpy(sent->begun, joined + note.text_len, sent->begun_len);
	if (note.text_len > 0)
		progress_send_note(p, &note);
	sent->offset += jsonout_repaired(joined, note.text_len);
}

static void
progress_send_waiting(struct mcp_progress *p)
{
	struct waiting *waiting = &p->waiting;
	const char *at = waiting->at;

	for (size_t i = 0; i < waiting->n_turns; i++) {
		send_turn(p, waiting->turn[i].stream, at, waiting->turn[i].len);
		at += waiting->turn[i].len;
	}
	waiting->len = waiting->n_turns = 0;
}

static int
say_usage(const struct mcp_progress *p, char *text_r, size_t size)
{
	struct execution_now now;

	if (!p->options.uses || !p->options.uses(p->options.arg, &now))
		return 0;
	return snprintf(text_r, size, "; %.1f s of processor time, %llu MiB of memory",
			(double)now.cpu_ms / 1000,
			(unsigned long long)(now.memory_bytes + (1 << 19)) >> 20);
}

static void
send_alive(struct mcp_progress *p)
{
	long long s = ((long long)ms_since(p, &p->began) + 500) / 1000;
	char text[TOOL_WAITS_MAX + 32];
	struct progress_note note = { .message = text };
	int len;

	if (p->options.waits && p->options.waits(p->options.arg, text, TOOL_WAITS_MAX)) {
		len = (int)strlen(text);
		len += snprintf(text + len, sizeof(text) - (size_t)len, "; %lld s until now", s);
	} else {
		len = snprintf(text, sizeof(text), "running for %lld s, no new output", s);
		len += say_usage(p, text + len, sizeof(text) - (size_t)len);
	}
	note.message_len = (size_t)len;
	progress_send_note(p, &note);
}

static void
progress_on_timer(evutil_socket_t, short, void *arg)
{
	struct mcp_progress *p = arg;
	bool fresh = p->fresh;

	p->fresh = false;
	event_base_gettimeofday_cached(p->options.base, &p->sent);
	progress_arm(p, SILENCE_MS);
	if (!fresh) {
		if (!p->said)
			send_alive(p);
	} else if (p->options.streams) {
		progress_send_waiting(p);
	} else {
		const struct newest_line *line = &p->line[p->newest];
		struct progress_note note = { .message = line->text, .message_len = line->len };

		progress_send_note(p, &note);
	}
}

void
mcp_progress_say(struct mcp_progress *p, const struct tool_progress *said)
{
	struct progress_note note = {
		.progress = said->progress,
		.total = said->total,
		.message = said->message,
		.message_len = said->message ? strlen(said->message) : 0,
	};

	if (said->is_note) {
		note.progress = p->last + 1;
		note.total = 0;
		progress_send_note(p, &note);
		return;
	}
	if (!isfinite(said->progress) ||
	    (p->said ? said->progress <= p->own : said->progress < 0))
		return;
	p->said = true;
	p->own = said->progress;
	/* Notes have used its numbers, and numbers must grow: the text is not lost. */
	if (p->last > 0 && note.progress <= p->last) {
		note.progress = p->last + 1;
		note.total = 0;
	}
	progress_send_note(p, &note);
}

/* Updates the newest line. True: there is something new to show. */
static bool
progress_read_line(struct newest_line *line, const char *bytes, size_t len)
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

static void
add_turn(struct waiting *waiting, enum stream stream, size_t len)
{
	if (waiting->n_turns > 0 &&
	    waiting->turn[waiting->n_turns - 1].stream == stream) {
		waiting->turn[waiting->n_turns - 1].len += len;
		return;
	}
	if (waiting->n_turns == waiting->turns_size) {
		waiting->turns_size = waiting->turns_size * 2 + 8;
		waiting->turn = xrealloc(waiting->turn,
					 waiting->turns_size * sizeof(*waiting->turn));
	}
	waiting->turn[waiting->n_turns++] = (struct turn){ stream, len };
}

/* Adds bytes, up to the bound of the stream. True: there is something new. */
static bool
progress_read_bytes(struct mcp_progress *p, enum stream stream, const char *bytes, size_t len)
{
	struct waiting *waiting = &p->waiting;
	struct sent *sent = &p->stream[stream];

	if (len > p->options.stream_max - sent->taken)
		len = p->options.stream_max - sent->taken;
	if (len == 0)
		return false;
	if (len > waiting->size - waiting->len) {
		waiting->size = (waiting->len + len) * 2;
		waiting->at = xrealloc(waiting->at, waiting->size);
	}
	memcpy(waiting->at + waiting->len, bytes, len);
	waiting->len += len;
	sent->taken += len;
	add_turn(waiting, stream, len);
	return true;
}

void
mcp_progress_output(struct mcp_progress *p, enum stream stream, const char *bytes,
		    size_t len)
{
	int64_t since, every = p->options.streams ? STREAM_EVERY_MS : LINE_EVERY_MS;

	if (p->said)
		return;			/* the tool's own numbers cannot be continued */
	if (p->options.streams) {
		if (!progress_read_bytes(p, stream, bytes, len))
			return;
	} else {
		if (!progress_read_line(&p->line[stream], bytes, len))
			return;
		p->newest = stream;
	}
	if (p->fresh)
		return;			/* the timer is set already */
	p->fresh = true;
	since = ms_since(p, &p->sent);
	progress_arm(p, since >= every || since < 0 ? 0 : every - since);
}

struct mcp_progress *
mcp_progress_new(const struct mcp_progress_options *options)
{
	struct mcp_progress *p = xcalloc(1, sizeof(*p));

	p->options = *options;
	p->options.token = NULL;	/* borrowed only until now */
	p->token = xalloc_check(json_dumps(options->token, JSON_ENCODE_ANY));
	p->timer = xalloc_check(evtimer_new(options->base, progress_on_timer, p));
	event_base_gettimeofday_cached(options->base, &p->began);
	progress_arm(p, SILENCE_MS);
	return p;
}

void
mcp_progress_finish(struct mcp_progress *p)
{
	if (p && p->options.streams)
		progress_send_waiting(p);
}

void
mcp_progress_free(struct mcp_progress *p)
{
	if (!p)
		return;
	event_free(p->timer);
	free(p->waiting.at);
	free(p->waiting.turn);
	free(p->token);
	free(p);
}
