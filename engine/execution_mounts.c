/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: holds of the files and volumes that executions and sessions
 * use. */
#include "engine/execution_mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"
#include "base/why.h"
#include "base/xalloc.h"
#include "engine/engine_parts.h"
#include "engine/execution_parts.h"
#include "engine/keeper.h"
#include "engine/tenant.h"
#include "engine/volume.h"
#include "engine/worker.h"
#include "host/filestore.h"

struct execution_mount {
	char *path;
	struct filestore_hold *file;	/* NULL: its session has it */
	unsigned int place;
};

/* ---- what a request names ---- */

/* The place at which the session has the file of this uri; FILE_PLACES: none. */
static unsigned int
find_place(const struct mount_places *places, const char *uri)
{
	for (unsigned int i = 0; places && i < places->n; i++)
		if (places->file[i] && filestore_hold_is(places->file[i], uri))
			return i;
	return FILE_PLACES;
}

static int
mounts_check(const struct engine *engine, const struct execution_request *request,
	     const struct repl_terms *session, struct why *why_r)
{
	const struct mount_places *places = session ? session->places : NULL;
	size_t n = 0;

	for (size_t i = 0; i < request->n_inputs; i++)
		n += request->input[i].uri && find_place(places, request->input[i].uri) ==
					      FILE_PLACES;
	if (n == 0)
		return 0;
	if (n + (places ? places->n : 0) > FILE_PLACES)
		return why_say(why_r, -EINVAL, "files",
			       "files: at most %d large files can be mounted in a %s",
			       FILE_PLACES, places ? "session" : "script");
	/* The worker of an adopted session is in the namespaces of the supervisor before this one,
	 * where the keeper cannot mount. */
	if (session && session->adopted)
		return why_say(why_r, -EINVAL, "files",
			       "files: large files cannot be mounted in a session that has outlived "
			       "a restart of the service; begin a new one");
	if (!engine->keeper || !keeper_is_there(engine->keeper))
		return why_say(why_r, -EAGAIN, "files",
			       "files: large files cannot be mounted now: %s",
			       engine->keeper ? keeper_trouble(engine->keeper)
					      : "there is no keeper");
	return 0;
}

/* A session has one volume, from the first cell that names it to its end. */
static int
take_volume(struct execution_mounts *mounts, struct tenant *tenant,
	    const struct execution_request *request, const struct repl_terms *session,
	    struct why *why_r)
{
	if (!request->volume)
		return 0;
	mounts->wants_volume = true;
	if (!session)
		return volume_hold(&tenant->volumes, request->volume, &mounts->volume, why_r);
	if (session->adopted)
		return why_say(why_r, -EINVAL, "volume",
			       "volume: no volume can be mounted in a session that has outlived "
			       "a restart of the service; begin a new one");
	if (!session->places->volume)
		return volume_hold(&tenant->volumes, request->volume, &session->places->volume,
				   why_r);
	if (strcmp(volume_name(session->places->volume), request->volume) != 0)
		return why_say(why_r, -EINVAL, "volume", "volume: this session has the volume %s; "
			       "begin a new one for another", volume_name(session->places->volume));
	return 0;
}

static int
take_folder(struct execution_mounts *mounts, const struct engine *engine,
	    const struct execution_request *request, struct why *why_r)
{
	int error;

	if (!request->folder || !engine->config->folder.path)
		return 0;
	if (!engine->keeper || !keeper_is_there(engine->keeper))
		return why_say(why_r, -EAGAIN, "folder", "/folder cannot be mounted now: %s",
			       engine->keeper ? keeper_trouble(engine->keeper)
					      : "there is no keeper");
	error = keeper_no_folder(engine->keeper);
	if (error != 0)
		return why_say(why_r, -ENOTSUP, "folder", "--folder needs /dev/fuse and the "
			       "directory, and one cannot be used: %s", strerror(error));
	mounts->wants_folder = true;
	return 0;
}

int
execution_mounts_take(struct execution_mounts *mounts, struct engine *engine,
		      struct tenant *tenant, const struct execution_request *request,
		      const struct repl_terms *session, struct why *why_r)
{
	int r = mounts_check(engine, request, session, why_r);

	memset(mounts, 0, sizeof(*mounts));
	if (r == 0)
		r = take_volume(mounts, tenant, request, session, why_r);
	if (r == 0)
		r = take_folder(mounts, engine, request, why_r);
	for (size_t i = 0; r == 0 && i < request->n_inputs; i++) {
		const struct execution_input *input = &request->input[i];
		struct execution_mount *mount;

		if (!input->uri)
			continue;
		if (!mounts->item)
			mounts->item = xcalloc(request->n_inputs, sizeof(*mounts->item));
		mount = &mounts->item[mounts->n++];
		mount->path = xmemdup0(input->path, input->path_len);
		mount->file = filestore_hold(engine->options.filestore, tenant->principal,
					     input->uri);
		if (!mount->file)
			r = why_say(why_r, -EINVAL, "files", "files: item %zu: its file is gone",
				    i);
	}
	if (r < 0)
		execution_mounts_done(mounts);
	return r;
}

void
execution_mounts_done(struct execution_mounts *mounts)
{
	for (size_t i = 0; i < mounts->n; i++) {
		free(mounts->item[i].path);
		filestore_release(mounts->item[i].file);
	}
	free(mounts->item);
	volume_release(mounts->volume);
	volume_release(mounts->watched);
	memset(mounts, 0, sizeof(*mounts));
}

void
mount_places_done(struct mount_places *places)
{
	for (unsigned int i = 0; i < places->n; i++)
		filestore_release(places->file[i]);
	volume_release(places->volume);
	memset(places, 0, sizeof(*places));
}

/* ---- mounting ---- */

/* Gives each file its place. The files that the worker does not have yet get the places from
 * *first_r on. Returns their number, or -EMFILE. */
static int
choose_places(struct execution_mounts *mounts, const struct mount_places *places,
	      const char *name_r[FILE_PLACES], unsigned int *first_r)
{
	unsigned int first = places ? places->n : 0, n = 0;

	for (size_t i = 0; i < mounts->n; i++) {
		struct execution_mount *mount = &mounts->item[i];
		const char *name = filestore_hold_name(mount->file);
		unsigned int k = 0;

		while (k < first && !(places->file[k] &&
				      strcmp(filestore_hold_name(places->file[k]), name) == 0))
			k++;
		for (; k >= first && k < first + n && strcmp(name_r[k - first], name) != 0; k++)
			;
		if (k == FILE_PLACES)
			return -EMFILE;
		mount->place = k;
		if (k == first + n)
			name_r[n++] = name;
	}
	*first_r = first;
	return (int)n;
}

bool
execution_mounts_fit(struct execution_mounts *mounts, const struct mount_places *places)
{
	const char *name[FILE_PLACES];
	unsigned int first;

	return choose_places(mounts, places, name, &first) >= 0;
}

/* Asks the keeper to mount the files. Returns the reading end of a pipe on which the keeper says
 * that they are mounted; -ENODATA: all are mounted already; or another -errno. */
static int
mounts_attach(struct execution *e, int pidfd, const struct mount_places *places)
{
	const char *name[FILE_PLACES];
	own_fd int gate = -1;
	unsigned int first;
	int pair[2], n = choose_places(&e->mounts, places, name, &first), r;

	if (n <= 0)
		return n < 0 ? n : -ENODATA;
	if (e->engine->keeper == NULL)
		return -ENOTCONN;
	if (pipe2(pair, O_CLOEXEC) < 0)
		return -errno;
	gate = pair[0];
	r = keeper_attach_files(e->engine->keeper,
				filestore_hold_directory(e->mounts.item[0].file), name,
				(size_t)n, first, pidfd, pair[1]);
	return r < 0 ? r : give_fd(gate);
}

static int
attach_volume(struct execution *e, int pidfd, struct mount_places *places, int gate)
{
	int r = volume_attach(e->mounts.watched, pidfd, gate);

	e->mounts.losses = volume_losses(e->mounts.watched);
	if (places)
		places->losses = e->mounts.losses;
	return r;
}

static int
attach_folder(struct execution *e, int pidfd, struct mount_places *, int gate)
{
	return keeper_attach_folder(e->engine->keeper, pidfd, gate);
}

/* Asks the keeper to mount a volume or the folder at a place, unless *has says that the session has
 * it (NULL: a script). The worker waits for the keeper's answer. 0 or -errno. */
static int
put_directory(struct execution *e, struct worker *w, struct mount_places *places,
	      struct frame_writer *to, const char *place, bool *has,
	      int (*attach)(struct execution *e, int pidfd, struct mount_places *places, int gate))
{
	const struct msg msg = { .type = MSG_AWAIT_VOLUME, .await_volume.place = msg_str(place) };
	int gate = -1, pair[2], r = 0;

	if (!has || !*has) {
		if (pipe2(pair, O_CLOEXEC) < 0)
			return -errno;
		gate = pair[0];
		r = attach(e, w->pidfd, places, pair[1]);
	}
	if (r < 0)
		close(gate);
	else
		r = frame_writer_put(to, &msg, &gate, gate >= 0 ? 1 : 0);
	if (r == 0 && has)
		*has = true;
	if (r == 0)
		w->has_volume = true;
	return r;
}

bool
execution_mounts_lost(const struct execution_mounts *mounts)
{
	return mounts->watched && volume_losses(mounts->watched) != mounts->losses;
}

bool
execution_mounts_any(const struct execution_mounts *mounts)
{
	return mounts->n > 0 || mounts->wants_volume || mounts->wants_folder;
}

int
execution_mounts_put(struct execution *e, struct worker *w, struct mount_places *places,
		     struct frame_writer *to)
{
	int gate = -ENODATA, r = 0;

	volume_release(e->mounts.watched);
	e->mounts.watched = places ? places->volume : e->mounts.volume;
	if (e->mounts.watched) {
		volume_keep(e->mounts.watched);
		e->mounts.losses = volume_losses(e->mounts.watched);
	}
	/* The mount of an ended server is of no use. */
	if (places && places->has_volume && places->losses != e->mounts.losses)
		places->has_volume = false;
	if (e->mounts.wants_volume)
		r = put_directory(e, w, places, to, VOLUME_PLACE,
				  places ? &places->has_volume : NULL, attach_volume);
	if (r == 0 && e->mounts.wants_folder)
		r = put_directory(e, w, places, to, FOLDER_PLACE,
				  places ? &places->has_folder : NULL, attach_folder);
	if (r < 0 || e->mounts.n == 0)
		return r;
	gate = mounts_attach(e, w->pidfd, places);
	if (gate < 0 && gate != -ENODATA)
		return gate;
	for (size_t i = 0; r == 0 && i < e->mounts.n; i++) {
		const struct execution_mount *mount = &e->mounts.item[i];
		struct msg msg = { .type = MSG_LINK, .link = { .path = msg_str(mount->path),
							       .place = mount->place } };

		/* The pipe goes with the first message. */
		r = frame_writer_put(to, &msg, &gate, gate >= 0 ? 1 : 0);
		gate = -ENODATA;
	}
	/* The holds of the mounted files pass from the cell to the session. */
	for (size_t i = 0; places && i < e->mounts.n; i++)
		if (e->mounts.item[i].place == places->n)
			places->file[places->n++] = give_ptr(e->mounts.item[i].file);
	return r;
}
