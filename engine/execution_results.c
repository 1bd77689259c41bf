/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the results of an execution beside its streams.
 * Reads:   messages of a worker, whose bounds were checked already. This file bounds the number of
 * results and their total size. */
#include "engine/execution_results.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/quote.h"
#include "base/xalloc.h"
#include "policy/limits.h"

void
results_init(struct execution_results *r, uint64_t id, const struct results_limits *limits)
{
	*r = (struct execution_results){ .id = id, .limits = limits };
}

void
results_begin(struct execution_results *r)
{
	r->files_unknown = true;
}

void
results_end(struct execution_results *r)
{
	r->files_unknown = false;
}

/* ---- taking ---- */

/* Takes ownership of the frame. */
static void
results_keep(struct frame **list, size_t *n, struct frame *frame)
{
	struct frame *grown = realloc(*list, (*n + 1) * sizeof(**list));

	if (grown == NULL)
		xalloc_fail(0);
	grown[(*n)++] = *frame;
	*list = grown;
	memset(frame, 0, sizeof(*frame));
}

static int
take_display(struct execution_results *r, struct frame *frame)
{
	const struct msg_display *display = &frame->msg.display;
	bool is_first = r->n_displays == 0;
	uint32_t last = is_first ? 0 : r->display[r->n_displays - 1].msg.display.object;
	bool is_next = is_first ? display->object == 0 : display->object == last + 1;

	if (display->id != r->id)
		return -EBADMSG;
	if (is_next)
		r->forms = 0;
	else if (is_first || display->object != last)
		return -EBADMSG;
	if (++r->forms > DISPLAY_FORMS_MAX || display->object >= r->limits->displays ||
	    display->data.len > r->limits->display_bytes - r->display_bytes)
		return -EBADMSG;
	r->display_bytes += display->data.len;
	r->display_at = xalloc_check(reallocarray(r->display_at, r->n_displays + 1,
						  sizeof(*r->display_at)));
	r->display_at[r->n_displays] = r->written;
	results_keep(&r->display, &r->n_displays, frame);
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

static int
take_left(struct execution_results *r, struct frame *frame)
{
	const struct msg_left *left = &frame->msg.left;
	size_t len = left->has_data ? left->data.len : 0;

	if (!is_left_path(&left->path) || r->n_left == r->limits->files || r->more_left > 0 ||
	    len > r->limits->files_bytes - r->left_bytes)
		return -EBADMSG;
	r->left_bytes += len;
	results_keep(&r->left, &r->n_left, frame);
	return 0;
}

int
results_take_offer(struct execution_results *r, struct frame *frame, size_t *at_r)
{
	const struct msg_offer *offer = &frame->msg.offer;

	if (!is_left_path(&offer->path) || r->n_left == r->limits->files || r->more_left > 0 ||
	    r->is_restarted)
		return -EBADMSG;
	if (r->offer == NULL)
		r->offer = xcalloc(r->limits->files, sizeof(*r->offer));
	*at_r = r->n_left;
	results_keep(&r->left, &r->n_left, frame);
	return 0;
}

void
results_offer_ended(struct execution_results *r, size_t at, int error,
		    const unsigned char *sha256)
{
	struct results_offer *offer = &r->offer[at];

	offer->kept = error == 0;
	offer->error = error;
	if (error == 0)
		memcpy(offer->sha256, sha256, sizeof(offer->sha256));
}

const struct msg_str *
results_offer_kept(const struct execution_results *r, size_t *at_io)
{
	for (; r->offer != NULL && *at_io < r->n_left; (*at_io)++)
		if (r->offer[*at_io].kept)
			return &r->left[*at_io].msg.offer.path;
	return NULL;
}

static int
take_left_more(struct execution_results *r, const struct msg_left_more *more)
{
	if (r->more_left > 0)
		return -EBADMSG;
	r->more_left = more->more;
	return 0;
}

int
results_take(struct execution_results *r, struct frame *frame)
{
	const enum msg_type type = frame->msg.type;

	if (type == MSG_DISPLAY)
		return take_display(r, frame);
	if (type == MSG_LEFT)
		return take_left(r, frame);
	return type == MSG_LEFT_MORE ? take_left_more(r, &frame->msg.left_more) : -EBADMSG;
}

static void
free_left(struct execution_results *r)
{
	for (size_t i = 0; i < r->n_left; i++)
		frame_done(&r->left[i]);
	free(r->offer);
	r->offer = NULL;
	r->n_left = 0;
}

bool
results_restart(struct execution_results *r)
{
	if (r->is_restarted)
		return false;
	free_left(r);
	r->left_bytes = 0;
	r->more_left = 0;
	r->is_restarted = true;
	return true;
}

/* ---- showing ---- */

static int
results_by_path(const void *a, const void *b)
{
	const struct outcome_file *x = a, *y = b;
	size_t len = x->path_len < y->path_len ? x->path_len : y->path_len;
	int order = memcmp(x->path, y->path, len);

	if (order != 0)
		return order;
	return (x->path_len > y->path_len) - (x->path_len < y->path_len);
}

static struct outcome_file
show_left(const struct msg_left *left)
{
	return (struct outcome_file){
		.path = left->path.at,
		.path_len = left->path.len,
		.size = left->size,
		.given = left->given,
		.sha256 = left->has_sha256 ? (const unsigned char *)left->sha256.at : NULL,
		.data = left->has_data ? left->data.len > 0 ? left->data.at : "" : NULL,
		.len = left->has_data ? left->data.len : 0,
	};
}

static struct outcome_file
show_offer(const struct msg_offer *said, const struct results_offer *offer)
{
	return (struct outcome_file){
		.path = said->path.at,
		.path_len = said->path.len,
		.size = said->size,
		.sha256 = offer->kept ? offer->sha256 : NULL,
		.stored = offer->kept,
		.error = offer->error,
	};
}

static void
show_files(struct execution_results *r, struct outcome *outcome)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n_left; i++) {
		const struct msg *msg = &r->left[i].msg;

		r->file[i] = msg->type == MSG_OFFER ? show_offer(&msg->offer, &r->offer[i])
						    : show_left(&msg->left);
		r->file[i].rank = i;
	}
	if (r->n_left > 0)
		qsort(r->file, r->n_left, sizeof(*r->file), results_by_path);
	/* A path is reported once. */
	for (size_t i = 0; i < r->n_left; i++)
		if (n == 0 || results_by_path(&r->file[n - 1], &r->file[i]) != 0)
			r->file[n++] = r->file[i];
	outcome->file = r->file;
	outcome->n_files = n;
	outcome->more_files = r->more_left;
	outcome->files_unknown = r->files_unknown;
}

void
results_show(struct execution_results *r, struct outcome *outcome)
{
	r->shown = xcalloc(r->n_displays + 1, sizeof(*r->shown));
	r->file = xcalloc(r->n_left + 1, sizeof(*r->file));
	for (size_t i = 0; i < r->n_displays; i++) {
		const struct msg_display *display = &r->display[i].msg.display;

		r->shown[i] = (struct outcome_display){
			.object = display->object,
			.kind = (enum display_kind)display->kind,
			.data = display->data.at,
			.len = display->data.len,
			.at = r->display_at[i],
		};
	}
	outcome->display = r->shown;
	outcome->n_displays = r->n_displays;
	show_files(r, outcome);
}

void
results_done(struct execution_results *r)
{
	for (size_t i = 0; i < r->n_displays; i++)
		frame_done(&r->display[i]);
	free_left(r);
	free(r->display);
	free(r->display_at);
	free(r->left);
	free(r->shown);
	free(r->file);
	memset(r, 0, sizeof(*r));
}
