/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the job for the file that an execution's worker has offered.
 * Reads:   OFFER, from a script's process. It may offer anything, as often as it may leave files;
 * that fills the store of its own tenant, within that tenant's bounds. */
#include "engine/execution_files.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "base/xalloc.h"
#include "engine/engine_parts.h"
#include "engine/execution_parts.h"
#include "engine/file_uri.h"
#include "engine/tenant.h"
#include "engine/worker.h"
#include "host/filestore.h"

struct execution_files {
	bool open;			/* an offer has no answer yet */
	bool pulled;			/* open, and the worker has the pipe for the file's bytes */
	bool no_place;			/* one file has waited for a place of the store without
					 * success: later files do not wait, and are not kept */
	struct filestore_job *job;	/* NULL: none */
	char *uri;			/* of the file that is offered */
	size_t at;			/* the number of this file among the results */
};

void
execution_files_free(struct execution_files *files)
{
	if (files == NULL)
		return;
	if (files->job != NULL)
		filestore_cancel(files->job);
	free(files->uri);
	free(files);
}

/* ---- the exchange ---- */

/* A failed send means that the process has ended; its end is reported elsewhere. */
static void
send_worker(struct execution *e, const struct msg *msg, int fd)
{
	if (e->repl != NULL)
		(void)e->engine->cells->send(e->repl, msg, fd);
	else
		(void)worker_send(e->worker, msg, fd);
}

static void
answer_offer(struct execution *e, int error)
{
	struct execution_files *files = e->files;
	struct msg msg = { .type = MSG_PULL, .pull.wanted = false };
	struct filestore_file kept;

	if (error == 0 && !filestore_find(e->engine->options.filestore, e->tenant->principal,
					  files->uri, &kept))
		error = -ESTALE;
	results_offer_ended(&e->results, files->at, error, error == 0 ? kept.sha256 : NULL);
	if (files->pulled)
		msg = (struct msg){ .type = MSG_PULLED, .pulled.kept = error == 0 };
	free(give_ptr(files->uri));
	files->open = files->pulled = false;
	waits_close(&e->offers, clock_us());
	send_worker(e, &msg, -1);
	execution_look_at_clocks(e);
}

static void
files_on_begin(void *arg, int fd)
{
	struct execution *e = arg;
	struct msg msg = { .type = MSG_PULL, .pull.wanted = true };

	e->files->pulled = true;
	send_worker(e, &msg, fd);
}

static void
files_on_end(void *arg, int error)
{
	struct execution *e = arg;

	e->files->job = NULL;
	e->files->no_place = error == -EBUSY;
	answer_offer(e, error);
}

int
execution_on_offer(struct execution *e, struct frame *frame)
{
	const struct filestore_calls calls = { .begin = files_on_begin,
					       .end = files_on_end,
					       .arg = e };
	const struct msg_offer *offer = &frame->msg.offer;
	const char *path = offer->path.at;
	size_t path_len = offer->path.len;
	uint64_t size = offer->size;
	struct execution_files *files;
	struct filestore *store = e->engine->options.filestore;

	if (e->files == NULL)
		e->files = xcalloc(1, sizeof(*e->files));
	files = e->files;
	if (files->open || results_take_offer(&e->results, frame, &files->at) < 0)
		return -EBADMSG;
	files->open = true;
	files->uri = file_uri(e->id, path, path_len);
	(void)waits_open(&e->offers, e->offers.number + 1, clock_us());
	if (store == NULL || e->request.internal || e->stopping != GOES_ON ||
	    e->state != EXECUTION_RUNNING)
		answer_offer(e, -ECANCELED);
	else if (files->no_place)
		answer_offer(e, -EBUSY);
	else
		files->job = filestore_keep(store, e->tenant->principal, files->uri, path,
					    path_len, size, &calls);
	execution_look_at_clocks(e);
	return 0;
}

/* ---- the end ---- */

void
execution_files_end(struct execution *e)
{
	struct execution_files *files = e->files;

	if (files == NULL || !files->open)
		return;
	if (files->job != NULL)
		filestore_cancel(give_ptr(files->job));
	results_offer_ended(&e->results, files->at, -ECANCELED, NULL);
	free(give_ptr(files->uri));
	files->open = files->pulled = false;
	waits_close(&e->offers, clock_us());
}

void
execution_files_restart(struct execution *e)
{
	struct filestore *store = e->engine->options.filestore;
	const struct msg_str *path;

	execution_files_end(e);
	for (size_t i = 0; (path = results_offer_kept(&e->results, &i)) != NULL; i++) {
		char *uri = file_uri(e->id, path->at, path->len);

		filestore_remove(store, e->tenant->principal, uri);
		free(uri);
	}
}
