/* Runs in: the supervisor.   Owns: the results of an execution beside its streams: what it
 * displayed, and the files that it left.
 * Reads:   messages of a worker, each within its bounds already. This file bounds their number
 * and their sum. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/quote.h"
#include "base/utf8.h"
#include "engine/execution_parts.h"

/* Takes ownership of the frame. */
static void
keep(struct frame **list, size_t *n, struct frame *frame)
{
	struct frame *grown = realloc(*list, (*n + 1) * sizeof(**list));

	if (grown == NULL)
		abort();
	grown[(*n)++] = *frame;
	*list = grown;
	memset(frame, 0, sizeof(*frame));
}

int
execution_on_display(struct execution *e, struct frame *frame)
{
	struct execution_results *r = &e->results;
	const struct msg_display *display = &frame->msg.display;
	bool is_first = r->n_displays == 0;
	uint32_t last = is_first ? 0 : r->display[r->n_displays - 1].msg.display.object;
	bool is_next = is_first ? display->object == 0 : display->object == last + 1;

	if (display->id != e->serial)
		return -EBADMSG;
	if (is_next)
		r->forms = 0;
	else if (is_first || display->object != last)
		return -EBADMSG;
	if (++r->forms > DISPLAY_FORMS_MAX ||
	    display->object >= e->limits.results.displays ||
	    display->data.len > e->limits.results.display_bytes - r->display_bytes)
		return -EBADMSG;
	r->display_bytes += display->data.len;
	keep(&r->display, &r->n_displays, frame);
	return 0;
}

/* Accepts paths as an honest worker sends them: below /workspace, without characters that a
 * person would not see or that a client would take for another directory. */
static bool
is_left_path(const struct msg_str *path)
{
	const char *end = path->at + path->len, *name = path->at, *at;

	if (!quote_is_plain(path->at, path->len))
		return false;
	for (at = name; at <= end; at++) {
		if (at < end && *at != '/')
			continue;
		if (at == name || (at - name == 1 && *name == '.') ||
		    (at - name == 2 && name[0] == '.' && name[1] == '.'))
			return false;
		name = at + 1;
	}
	return true;
}

int
execution_on_left(struct execution *e, struct frame *frame)
{
	struct execution_results *r = &e->results;
	const struct msg_left *left = &frame->msg.left;
	size_t len = left->has_data ? left->data.len : 0;

	if (!is_left_path(&left->path) || r->n_left == e->limits.results.files ||
	    r->more_left > 0 ||
	    len > e->limits.results.files_bytes - r->left_bytes)
		return -EBADMSG;
	r->left_bytes += len;
	keep(&r->left, &r->n_left, frame);
	return 0;
}

int
execution_on_left_more(struct execution *e, const struct frame *frame)
{
	if (e->results.more_left > 0)
		return -EBADMSG;
	e->results.more_left = frame->msg.left_more.more;
	return 0;
}

void
execution_forget_left(struct execution *e)
{
	struct execution_results *r = &e->results;

	for (size_t i = 0; i < r->n_left; i++)
		frame_done(&r->left[i]);
	r->n_left = r->left_bytes = 0;
	r->more_left = 0;
}

static int
by_path(const void *a, const void *b)
{
	const struct outcome_file *x = a, *y = b;
	size_t len = x->path_len < y->path_len ? x->path_len : y->path_len;
	int order = memcmp(x->path, y->path, len);

	if (order != 0)
		return order;
	return (x->path_len > y->path_len) - (x->path_len < y->path_len);
}

static void
show_files(struct execution_results *r, struct outcome *outcome)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n_left; i++) {
		const struct msg_left *left = &r->left[i].msg.left;

		r->file[i] = (struct outcome_file){
			.path = left->path.at,
			.path_len = left->path.len,
			.size = left->size,
			.sha256 = left->has_sha256
				? (const unsigned char *)left->sha256.at : NULL,
			.data = left->has_data
				? left->data.len > 0 ? left->data.at : "" : NULL,
			.len = left->has_data ? left->data.len : 0,
		};
	}
	if (r->n_left > 0)
		qsort(r->file, r->n_left, sizeof(*r->file), by_path);
	/* A path is reported once. */
	for (size_t i = 0; i < r->n_left; i++)
		if (n == 0 || by_path(&r->file[n - 1], &r->file[i]) != 0)
			r->file[n++] = r->file[i];
	outcome->file = r->file;
	outcome->n_files = n;
	outcome->more_files = r->more_left;
}

/* The length of the next part of a piece. */
static size_t
part_len(const char *at, size_t len)
{
	const size_t look = 65536;
	const char *newline;

	if (len <= OUTCOME_PART_MAX)
		return len;
	newline = memrchr(at + OUTCOME_PART_MAX - look, '\n', look);
	if (newline != NULL)
		return (size_t)(newline + 1 - at);
	return OUTCOME_PART_MAX -
	       utf8_begun(at, OUTCOME_PART_MAX);
}

static void
add_part(struct execution_results *r, size_t *n, const struct outcome_part *part)
{
	r->part = realloc(r->part, (*n + 1) * sizeof(*r->part));
	if (r->part == NULL)
		abort();
	r->part[(*n)++] = *part;
}

/* Shows the streams that the answer does not hold as a whole. */
static void
show_parts(struct execution *e, struct outcome *outcome)
{
	struct output_piece piece[2];
	size_t n = 0;

	for (int s = 0; s < STREAM_COUNT; s++) {
		size_t n_pieces = output_is_full(&e->output, (enum stream)s)
			? output_whole(&e->output, (enum stream)s, piece) : 0;

		for (size_t i = 0; i < n_pieces; i++)
			for (size_t at = 0; at < piece[i].len; at += e->results.part[n - 1].len)
				add_part(&e->results, &n, &(struct outcome_part){
					.stream = (enum stream)s,
					.offset = piece[i].offset + at,
					.at = piece[i].at + at,
					.len = part_len(piece[i].at + at, piece[i].len - at),
				});
	}
	outcome->part = e->results.part;
	outcome->n_parts = n;
}

void
execution_show_results(struct execution *e, struct outcome *outcome)
{
	struct execution_results *r = &e->results;
	const struct msg_done *done = &e->done.msg.done;

	r->shown = calloc(r->n_displays + 1, sizeof(*r->shown));
	r->file = calloc(r->n_left + 1, sizeof(*r->file));
	if (r->shown == NULL || r->file == NULL)
		abort();
	for (size_t i = 0; i < r->n_displays; i++) {
		const struct msg_display *display = &r->display[i].msg.display;

		r->shown[i] = (struct outcome_display){
			.object = display->object,
			.kind = (enum display_kind)display->kind,
			.data = display->data.at,
			.len = display->data.len,
		};
	}
	outcome->display = r->shown;
	outcome->n_displays = r->n_displays;
	if (e->facts.has_done && done->has_undisplayed)
		outcome->undisplayed = done->undisplayed;
	show_files(r, outcome);
	outcome->files_unknown = e->end_us != 0 && !r->all_told;
	show_parts(e, outcome);
}

void
execution_results_done(struct execution_results *r)
{
	for (size_t i = 0; i < r->n_displays; i++)
		frame_done(&r->display[i]);
	for (size_t i = 0; i < r->n_left; i++)
		frame_done(&r->left[i]);
	free(r->display);
	free(r->left);
	free(r->shown);
	free(r->file);
	free(r->part);
	memset(r, 0, sizeof(*r));
}
