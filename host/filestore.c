/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the helper's process, the socket to it, the index and the jobs.
 * Reads:   FILE_ENDED, and from each new helper STORED_FILE and STORE_READY. */
#include "host/filestore.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>
#include <unistd.h>

#include <event2/event.h>
#include <event2/event_struct.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/id.h"
#include "base/named.h"
#include "base/own.h"
#include "base/passrights.h"
#include "base/xalloc.h"
#include "host/filestore_parts.h"
#include "host/forker.h"
#include "host/helper.h"
#include "proto/frame.h"

#define WAITING_BYTES (4 * 1024 * 1024)	/* orders that the helper has not read yet */
#define TENANT_JOBS 4			/* active jobs of one tenant; further ones wait */
#define SLOW_JOBS (FILESTORE_JOBS / 2)	/* active jobs of all tenants into which clients write; the
					 * other places are for files of scripts */
#define TENANT_SLOW_JOBS 2		/* the same, of one tenant */
#define FILE_MS 50			/* charged to a tenant for each file that comes in, because
					 * it flushes the disk; the debt shrinks as time passes */
#define FILES_MS (256 * FILE_MS)	/* the largest debt; further files wait */
#define PACE_MS 100			/* between checks for tenants whose debt is small enough */
#define KEEP_S 120			/* time limit of a file that comes in */
#define KEEP_BYTES_S (4 << 20)		/* for each so many bytes the limit is a second longer */
#define INDEX_S 30			/* time limit for the helper to read the store; of a new
					 * helper, for the next file in it */
#define INDEX_TURN 256			/* messages that are read in one turn of the loop */
#define NAMES 4096			/* buckets of files by name */
#define SWEEP_S 30			/* between two sweeps, which remove expired files */
#define PASSING_MS 2000		/* for the removal of all files at the end */
#define SWEPT_MAX 64			/* files that one sweep removes */

/* A file of a tenant. */
struct stored {
	TAILQ_ENTRY(stored) link;
	char name[FILE_NAME + 1];
	char *uri, *path;
	uint64_t size, until_s;
	unsigned char sha256[FILESTORE_SHA256];
	unsigned int holds;
	bool seen;			/* in the index of a new helper */
	const struct shelf *shelf;
	LIST_ENTRY(stored) named;
};

TAILQ_HEAD(stored_list, stored);

/* A tenant with files or jobs. Its files are in the order in which they came. */
struct shelf {
	char *principal;
	TAILQ_ENTRY(shelf) link;
	struct stored_list files;
	size_t n_files, n_jobs, n_active;	/* n_active: of n_jobs, those that do not wait */
	size_t n_slow;				/* of the active ones */
	uint64_t bytes;				/* of files, and of those that are coming in */
	uint64_t spent_ms;			/* the time at which its debt (FILE_MS) is 0 */
	char directory[FILE_DIRECTORY + 1];	/* "": not needed yet */
};

struct filestore_hold {
	struct filestore *store;
	struct shelf *shelf;
	struct stored *file;
};

TAILQ_HEAD(shelf_list, shelf);

/* WAITS ──STORE_FILE, FETCH_FILE──> ACTIVE ──FILE_ENDED, end of the helper──> end
 * WAITS ──place_seconds──> end with -EBUSY, or -EPIPE if there is no helper
 *   any of them ──filestore_cancel──> gone; while it is ACTIVE the helper still answers */
struct filestore_job {
	TAILQ_ENTRY(filestore_job) link;
	struct filestore *store;
	struct shelf *shelf;
	uint64_t number;
	bool active, cancelled;
	struct stored *coming;		/* NULL: a file goes out */
	char name[FILE_NAME + 1];	/* of the file that goes out */
	uint64_t offset, len;
	char *root, *from;		/* of a file outside of the store; NULL: none */
	bool gives;			/* that one is written */
	int source;			/* of its bytes; -1: the file that goes out */
	unsigned int seconds;
	int error;			/* passed to the owner by due */
	struct event *due;		/* until it is ACTIVE also: it has waited too long */
	struct filestore_calls calls;
};

TAILQ_HEAD(filestore_jobs, filestore_job);

struct filestore {
	struct filestore_bounds bounds;
	struct event_base *base;
	struct helper helper;
	bool listing;			/* a new helper sends its index */
	struct frame_reader reader;
	struct frame_writer writer;
	struct event readable, writable;
	struct event *sweep, *pace;
	struct shelf_list shelves;
	void *by_principal;		/* the same */
	struct filestore_jobs jobs;	/* in the order in which they were made */
	size_t n_active, n_slow;
	uint64_t bytes;			/* of all shelves */
	uint64_t last_number;
	LIST_HEAD(, stored) named[NAMES];	/* what is on the shelves */
};

/* Seconds since the epoch by the clock of the first call. What happens to that clock later makes no
 * file expire: the files of a run of the service have their time. */
static uint64_t
filestore_time_s(void)
{
	static int64_t boot;

	if (boot == 0)
		boot = time(NULL) - clock_boot_s();
	return (uint64_t)(boot + clock_boot_s());
}

static uint64_t (*now_s)(void) = filestore_time_s;

void
filestore_set_clock(uint64_t (*clock)(void))
{
	now_s = clock ? clock : filestore_time_s;
}

/* ---- shelves and files ---- */

static struct shelf *
find_shelf(struct filestore *store, const char *principal)
{
	return named_find(&store->by_principal, principal);
}

static struct shelf *
get_shelf(struct filestore *store, const char *principal)
{
	struct shelf *shelf = find_shelf(store, principal);

	if (shelf)
		return shelf;
	shelf = xcalloc(1, sizeof(*shelf));
	shelf->principal = xstrdup(principal);
	TAILQ_INIT(&shelf->files);
	TAILQ_INSERT_TAIL(&store->shelves, shelf, link);
	named_add(&store->by_principal, shelf);
	return shelf;
}

/* The tenant's debt for files that came in (FILE_MS). 0: there is none, or the clock was set back
 * far. */
static uint64_t
owed_ms(const struct shelf *shelf)
{
	uint64_t now_ms = now_s() * 1000;
	bool owes = shelf->spent_ms > now_ms && shelf->spent_ms - now_ms <= FILES_MS;

	return owes ? shelf->spent_ms - now_ms : 0;
}

static void
drop_empty(struct filestore *store, struct shelf *shelf)
{
	if (shelf->n_files > 0 || shelf->n_jobs > 0 || owed_ms(shelf) > 0)
		return;
	TAILQ_REMOVE(&store->shelves, shelf, link);
	named_remove(&store->by_principal, shelf);
	free(shelf->principal);
	free(shelf);
}

static void
filestore_charge(struct filestore *store, struct shelf *shelf, uint64_t size)
{
	shelf->bytes += size;
	store->bytes += size;
}

static void
filestore_discharge(struct filestore *store, struct shelf *shelf, uint64_t size)
{
	shelf->bytes -= size;
	store->bytes -= size;
}

static void
stored_free(struct stored *file)
{
	free(file->uri);
	free(file->path);
	free(file);
}

/* Puts a file at the end of a shelf. */
static void
filestore_put_up(struct filestore *store, struct shelf *shelf, struct stored *file)
{
	const size_t bucket = hash_text(HASH_BEGIN, file->name) % NAMES;

	file->shelf = shelf;
	TAILQ_INSERT_TAIL(&shelf->files, file, link);
	LIST_INSERT_HEAD(&store->named[bucket], file, named);
	shelf->n_files++;
	filestore_charge(store, shelf, file->size);
}

/* The shelf stays, even if it is empty. */
static void
filestore_unshelve(struct filestore *store, struct shelf *shelf, struct stored *file)
{
	TAILQ_REMOVE(&shelf->files, file, link);
	LIST_REMOVE(file, named);
	shelf->n_files--;
	filestore_discharge(store, shelf, file->size);
	stored_free(file);
}

/* Can the helper take orders? If not, it is being made again, and what was ordered is dropped. */
static bool
filestore_is_up(const struct filestore *store)
{
	return store->helper.socket >= 0 && !store->listing;
}

static void
send_orders(struct filestore *store)
{
	if (filestore_is_up(store) && store->base && frame_writer_waits(&store->writer))
		event_add(&store->writable, NULL);
}

static void
drop_stored(struct filestore *store, struct shelf *shelf, struct stored *file)
{
	struct msg msg = { .type = MSG_DROP_FILE,
			   .drop_file = { .name = msg_str(file->name),
					  .principal = msg_str(shelf->principal) } };

	/* A file whose removal cannot be ordered now is removed when the next helper lists it. */
	if (filestore_is_up(store))
		(void)frame_writer_put(&store->writer, &msg, NULL, 0);
	filestore_unshelve(store, shelf, file);
	send_orders(store);
}

/* A file that is held expires at once, and is removed when its last holder lets it go. */
static void
remove_stored(struct filestore *store, struct shelf *shelf, struct stored *file)
{
	if (file->holds > 0)
		file->until_s = 0;
	else
		drop_stored(store, shelf, file);
}

static struct stored *
find_stored(const struct shelf *shelf, const char *uri)
{
	struct stored *file;

	TAILQ_FOREACH(file, &shelf->files, link)
		if (file->until_s != 0 && strcmp(file->uri, uri) == 0)
			break;
	return file;
}

/* ---- room ---- */

/* The oldest file that is not held, or NULL. */
static struct stored *
filestore_oldest(const struct shelf *shelf)
{
	struct stored *file;

	TAILQ_FOREACH(file, &shelf->files, link)
		if (file->holds == 0)
			break;
	return file;
}

/* The shelf with the most bytes, of those with a file that can be removed; or NULL. */
static struct shelf *
filestore_fullest(struct filestore *store)
{
	struct shelf *shelf, *most = NULL;

	TAILQ_FOREACH(shelf, &store->shelves, link)
		if ((!most || shelf->bytes > most->bytes) && filestore_oldest(shelf))
			most = shelf;
	return most;
}

static bool
is_full(const struct filestore_bounds *bounds, const struct shelf *shelf, uint64_t size)
{
	return shelf->bytes + size > bounds->tenant_bytes ||
	       shelf->n_files + shelf->n_active >= bounds->tenant_files;
}

/* Removes the tenant's oldest files, then those of the tenant with the most. 0, -EFBIG, -EDQUOT
 * or -ENOSPC. */
static int
filestore_make_room(struct filestore *store, struct shelf *shelf, uint64_t size)
{
	const struct filestore_bounds *bounds = &store->bounds;
	struct stored *file;
	struct shelf *full;

	if (size > bounds->file_bytes)
		return -EFBIG;
	while (is_full(bounds, shelf, size) && (file = filestore_oldest(shelf)))
		drop_stored(store, shelf, file);
	if (shelf->bytes + size > bounds->tenant_bytes ||
	    shelf->n_files >= bounds->tenant_files)
		return -EDQUOT;
	while (store->bytes + size > bounds->bytes_max && (full = filestore_fullest(store))) {
		drop_stored(store, full, filestore_oldest(full));
		if (full != shelf)
			drop_empty(store, full);
	}
	return store->bytes + size > bounds->bytes_max ? -ENOSPC : 0;
}

static void
filestore_sweep(struct filestore *store)
{
	uint64_t now = now_s();
	struct shelf *shelf, *next;
	struct stored *file;
	unsigned int n = 0;

	for (shelf = TAILQ_FIRST(&store->shelves); shelf && n < SWEPT_MAX; shelf = next) {
		next = TAILQ_NEXT(shelf, link);
		while (n < SWEPT_MAX && (file = filestore_oldest(shelf)) && file->until_s <= now) {
			drop_stored(store, shelf, file);
			n++;
		}
		drop_empty(store, shelf);
	}
}

static void
on_sweep(evutil_socket_t, short, void *arg)
{
	filestore_sweep(arg);
}

/* ---- the end of jobs ---- */

static void filestore_start_waiting(struct filestore *store);

/* Takes the job out of its lists; its memory stays. */
static void
filestore_detach(struct filestore_job *job)
{
	struct filestore *store = job->store;

	TAILQ_REMOVE(&store->jobs, job, link);
	store->n_active -= job->active;
	job->shelf->n_active -= job->active;
	store->n_slow -= job->active && job->calls.is_slow;
	job->shelf->n_slow -= job->active && job->calls.is_slow;
	job->shelf->n_jobs--;
	if (job->active && job->coming)
		filestore_discharge(store, job->shelf, job->coming->size);
	event_free(job->due);
}

static void
job_free(struct filestore_job *job)
{
	struct filestore *store = job->store;

	filestore_detach(job);
	drop_empty(store, job->shelf);
	if (job->coming)
		stored_free(job->coming);
	free(job->root);
	free(job->from);
	if (job->source >= 0)
		close(job->source);
	free(job);
}

static void
filestore_settle(struct filestore_job *job, int error)
{
	const struct filestore_calls calls = job->calls;
	bool cancelled = job->cancelled;

	job_free(job);
	if (!cancelled)
		calls.end(calls.arg, error);
}

static void
filestore_fail_later(struct filestore_job *job, int error)
{
	static const struct timeval at_once = { 0, 0 };

	job->error = error;
	evtimer_add(job->due, &at_once);
}

static void
filestore_on_due(evutil_socket_t, short, void *arg)
{
	struct filestore_job *job = arg;

	filestore_settle(job, job->error ? job->error
			      : filestore_is_up(job->store) ? -EBUSY : -EPIPE);
}

/* A file with the same address is replaced: its tenant has changed it. */
static void
filestore_shelve(struct filestore *store, struct shelf *shelf, struct stored *file)
{
	struct stored *earlier = find_stored(shelf, file->uri);

	if (earlier)
		remove_stored(store, shelf, earlier);
	filestore_put_up(store, shelf, file);
}

/* Adds to the index a file that the helper has kept. If the job was cancelled, the order to cancel
 * it came too late: the file is removed again. */
static void
filestore_take_file(struct filestore_job *job, const struct msg_file_ended *ended)
{
	struct filestore *store = job->store;
	struct shelf *shelf = job->shelf;
	struct stored *file = give_ptr(job->coming);

	filestore_discharge(store, shelf, file->size);
	memcpy(file->sha256, ended->sha256.at, sizeof(file->sha256));
	/* The file is kept from now on; the time on disk is slightly earlier. */
	file->until_s = now_s() + store->bounds.keep_seconds;
	filestore_shelve(store, shelf, file);
	if (job->cancelled)
		remove_stored(store, shelf, file);
}

static void
take_ended(struct filestore *store, const struct msg_file_ended *ended)
{
	struct filestore_job *job;
	int error = -(int)ended->error;

	TAILQ_FOREACH(job, &store->jobs, link)
		if (job->number == ended->job)
			break;
	if (!job || !job->active || job->error)
		return;
	if (error == 0 && job->coming && !ended->has_sha256)
		error = -EBADMSG;
	if (error == 0 && job->coming)
		filestore_take_file(job, ended);
	if (error == 0 && job->calls.size && !job->cancelled)
		job->calls.size(job->calls.arg, ended->size);
	filestore_settle(job, error);
}

/* ---- the helper ---- */

static void filestore_on_readable(evutil_socket_t fd, short what, void *arg);
static void filestore_on_writable(evutil_socket_t fd, short what, void *arg);

static void
filestore_open(struct filestore *store)
{
	static const struct timeval patience = { .tv_sec = INDEX_S };
	const int socket = store->helper.socket;

	event_assign(&store->readable, store->base, socket, EV_READ | EV_PERSIST,
		     filestore_on_readable, store);
	event_assign(&store->writable, store->base, socket, EV_WRITE, filestore_on_writable, store);
	/* A listing may be long, but a helper that stands still in it is lost. */
	event_add(&store->readable, store->listing ? &patience : NULL);
}

static void
filestore_on_made(void *arg)
{
	struct filestore *store = arg;
	struct shelf *shelf;
	struct stored *file;

	passrights_set(store->helper.socket, false);
	frame_reader_done(&store->reader);
	frame_writer_done(&store->writer);
	frame_reader_init(&store->reader, FROM_FILESTORE);
	frame_writer_init(&store->writer, WAITING_BYTES);
	store->listing = true;
	TAILQ_FOREACH(shelf, &store->shelves, link)
		TAILQ_FOREACH(file, &shelf->files, link)
			file->seen = false;
	filestore_open(store);
}

/* Active jobs fail; the others wait for the new helper, and so do all that come meanwhile. */
static void
filestore_lose_helper(struct filestore *store, int error)
{
	struct filestore_job *job;

	event_del(&store->readable);
	event_del(&store->writable);
	store->listing = false;
	TAILQ_FOREACH(job, &store->jobs, link)
		if (job->active)
			filestore_fail_later(job, -EPIPE);
	helper_renew(&store->helper, store->base, error, filestore_on_made, store);
}

/* ---- the index of a new helper ---- */

static struct stored *
find_by_name(const struct filestore *store, const struct shelf *shelf, const struct msg_str *said)
{
	char name[FILE_NAME + 1] = "";
	struct stored *file;

	memcpy(name, said->at, FILE_NAME);
	LIST_FOREACH(file, &store->named[hash_text(HASH_BEGIN, name) % NAMES], named)
		if (file->shelf == shelf && strcmp(file->name, name) == 0)
			break;
	return file;
}

/* A file that this process does not know is removed: it was dropped while there was no helper, or
 * its owner was told that it was not kept. */
static void
filestore_see(struct filestore *store, const struct msg_stored_file *said)
{
	own_mem char *principal = xmemdup0(said->principal.at, said->principal.len);
	const struct shelf *shelf = find_shelf(store, principal);
	struct stored *file = shelf ? find_by_name(store, shelf, &said->name) : NULL;
	struct msg msg = { .type = MSG_DROP_FILE,
			   .drop_file = { .name = said->name, .principal = said->principal } };

	if (file)
		file->seen = true;
	else
		(void)frame_writer_put(&store->writer, &msg, NULL, 0);
}

/* Forgets the files that are not on the disk any more. Their holders keep them until they let them
 * go. */
static void
filestore_forget_unseen(struct filestore *store)
{
	struct shelf *shelf, *next_shelf;
	struct stored *file, *next;

	for (shelf = TAILQ_FIRST(&store->shelves); shelf; shelf = next_shelf) {
		next_shelf = TAILQ_NEXT(shelf, link);
		for (file = TAILQ_FIRST(&shelf->files); file; file = next) {
			next = TAILQ_NEXT(file, link);
			if (!file->seen)
				remove_stored(store, shelf, file);
		}
		drop_empty(store, shelf);
	}
}

static int
filestore_take_listing(struct filestore *store, const struct msg *msg)
{
	if (msg->type == MSG_STORED_FILE) {
		filestore_see(store, &msg->stored_file);
		return 0;
	}
	if (msg->type != MSG_STORE_READY)
		return -EBADMSG;
	/* -EWOULDBLOCK: jobs of the helper before it have not ended yet. */
	if (msg->store_ready.error != 0)
		return -(int)msg->store_ready.error;
	store->listing = false;
	event_remove_timer(&store->readable);
	helper_is_back(&store->helper);
	filestore_forget_unseen(store);
	return 0;
}

static int
filestore_take(struct filestore *store, const struct msg *msg)
{
	if (store->listing)
		return filestore_take_listing(store, msg);
	if (msg->type != MSG_FILE_ENDED)
		return -EBADMSG;
	take_ended(store, &msg->file_ended);
	return 0;
}

static void
filestore_on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct filestore *store = arg;
	struct frame frame = { 0 };
	int r = what == EV_TIMEOUT ? -ETIMEDOUT : 1;

	for (int n = 0; r == 1 && n < INDEX_TURN; n++) {
		int taken = 0;

		r = frame_reader_read(&store->reader, (int)fd, &frame);
		if (r == 1)
			taken = filestore_take(store, &frame.msg);
		frame_done(&frame);
		r = taken < 0 ? taken : r;
	}
	if (r < 0)
		filestore_lose_helper(store, r);
	else if (r == 1)	/* the reader may have the rest already */
		event_active(&store->readable, EV_READ, 0);
	filestore_start_waiting(store);
}

static void
filestore_on_writable(evutil_socket_t fd, short, void *arg)
{
	struct filestore *store = arg;
	int r = frame_writer_flush(&store->writer, (int)fd);

	if (r < 0)
		filestore_lose_helper(store, r);
	else if (r == 1)
		event_add(&store->writable, NULL);
}

/* ---- the beginning of jobs ---- */

static int
put_order(struct filestore_job *job, int fd)
{
	const struct msg_str principal = msg_str(job->shelf->principal);
	const struct stored *file = job->coming;
	struct msg msg = { .type = MSG_FETCH_FILE,
			   .fetch_file = { .job = job->number, .name = msg_str(job->name),
					   .principal = principal, .offset = job->offset,
					   .len = job->len, .seconds = job->seconds,
					   .has_root = job->root, .root = msg_str(job->root),
					   .has_from = job->from, .from = msg_str(job->from) } };

	if (file)
		msg = (struct msg){ .type = MSG_STORE_FILE, .store_file = {
			.job = job->number, .name = msg_str(file->name), .principal = principal,
			.uri = msg_str(file->uri), .path = msg_str(file->path),
			.size = file->size, .until = file->until_s, .seconds = job->seconds,
			.has_root = job->root, .root = msg_str(job->root),
			.has_from = job->from, .from = msg_str(job->from) } };
	if (job->gives)
		msg = (struct msg){ .type = MSG_GIVE_FILE, .give_file = {
			.job = job->number, .has_name = *job->name, .name = msg_str(job->name),
			.principal = principal, .size = job->len, .seconds = job->seconds,
			.root = msg_str(job->root), .to = msg_str(job->from) } };
	return frame_writer_put(&job->store->writer, &msg, &fd, 1);
}

/* May the job start? Makes room for a file that comes in. 0 or an error of filestore_make_room. */
static int
may_start(struct filestore_job *job)
{
	struct filestore *store = job->store;

	if (!job->coming)
		return 0;
	job->coming->until_s = now_s() + store->bounds.keep_seconds;
	return filestore_make_room(store, job->shelf, job->coming->size);
}

/* Makes the pipe and orders the job. 0 or -errno, and then nothing has begun. */
static int
filestore_start(struct filestore_job *job)
{
	struct filestore *store = job->store;
	int pipe[2], helpers, r = may_start(job);

	if (r == 0 && pipe2(pipe, O_CLOEXEC) < 0)
		r = -errno;
	if (r < 0)
		return r;
	helpers = job->coming ? 0 : 1;
	if (job->source >= 0) {
		close(pipe[helpers]);
		pipe[helpers] = give_fd(job->source);
	}
	r = put_order(job, pipe[helpers]);
	if (r < 0) {
		close(pipe[!helpers]);
		return r;
	}
	evtimer_del(job->due);
	job->active = true;
	store->n_active++;
	job->shelf->n_active++;
	store->n_slow += job->calls.is_slow;
	job->shelf->n_slow += job->calls.is_slow;
	if (job->coming) {
		filestore_charge(store, job->shelf, job->coming->size);
		job->shelf->spent_ms = now_s() * 1000 + owed_ms(job->shelf) + FILE_MS;
	}
	job->calls.begin(job->calls.arg, pipe[!helpers]);
	return 0;
}

static bool
has_place(const struct filestore_job *job)
{
	return job->shelf->n_active < TENANT_JOBS &&
	       (!job->calls.is_slow || (job->store->n_slow < SLOW_JOBS &&
					job->shelf->n_slow < TENANT_SLOW_JOBS));
}

/* Does the tenant's debt allow one more file to come in (FILES_MS)? If not, store->pace starts the
 * job later. Each file flushes the disk a few times, however small it is. */
static bool
has_time(const struct filestore_job *job)
{
	static const struct timeval pace = { .tv_usec = PACE_MS * 1000 };

	if (!job->coming || owed_ms(job->shelf) + FILE_MS <= FILES_MS)
		return true;
	event_add(job->store->pace, &pace);
	return false;
}

/* Starts jobs in their order; one that has no place or no time lets the others pass. */
static void
filestore_start_waiting(struct filestore *store)
{
	struct filestore_job *job, *next;

	for (job = TAILQ_FIRST(&store->jobs);
	     job && filestore_is_up(store) && store->n_active < FILESTORE_JOBS; job = next) {
		int r;

		next = TAILQ_NEXT(job, link);
		if (job->active || job->error || !has_place(job) || !has_time(job))
			continue;
		r = filestore_start(job);
		if (r < 0)
			filestore_fail_later(job, r);
	}
	send_orders(store);
}

static void
filestore_on_pace(evutil_socket_t, short, void *arg)
{
	filestore_start_waiting(arg);
}

/* local: a file outside of the store; NULL: none. */
static struct filestore_job *
job_new(struct filestore *store, const char *principal, const struct filestore_local *local,
	unsigned int seconds, const struct filestore_calls *calls)
{
	const struct timeval patience = { .tv_sec = store->bounds.place_seconds };
	struct filestore_job *job = xcalloc(1, sizeof(*job));

	job->store = store;
	job->shelf = get_shelf(store, principal);
	job->shelf->n_jobs++;
	job->number = ++store->last_number;
	job->calls = *calls;
	job->seconds = seconds;
	job->source = -1;
	if (local) {
		job->root = xstrdup(local->root);
		job->from = xstrdup(local->path);
	}
	job->due = xalloc_check(evtimer_new(store->base, filestore_on_due, job));
	evtimer_add(job->due, &patience);
	TAILQ_INSERT_TAIL(&store->jobs, job, link);
	return job;
}

/* The time limit for a file that comes in: at most a day, the bound of the message's field. */
static unsigned int
keep_seconds(uint64_t size)
{
	const uint64_t more = size / KEEP_BYTES_S, most = 86400 - KEEP_S;

	return KEEP_S + (unsigned int)(more < most ? more : most);
}

static struct filestore_job *
keep(struct filestore *store, const char *principal, const char *uri, const char *path,
     size_t path_len, uint64_t size, const struct filestore_local *local,
     const struct filestore_calls *calls)
{
	struct filestore_job *job = job_new(store, principal, local, keep_seconds(size), calls);

	job->coming = xcalloc(1, sizeof(*job->coming));
	job->coming->uri = xstrdup(uri);
	job->coming->path = xmemdup0(path, path_len);
	job->coming->size = size;
	id_new(job->coming->name);
	filestore_start_waiting(store);
	return job;
}

struct filestore_job *
filestore_keep(struct filestore *store, const char *principal, const char *uri, const char *path,
	       size_t path_len, uint64_t size, const struct filestore_calls *calls)
{
	return keep(store, principal, uri, path, path_len, size, NULL, calls);
}

struct filestore_job *
filestore_keep_local(struct filestore *store, const char *principal, const char *uri,
		     const char *path, uint64_t size, const struct filestore_local *local,
		     const struct filestore_calls *calls)
{
	return keep(store, principal, uri, path, strlen(path), size, local, calls);
}

struct filestore_job *
filestore_look(struct filestore *store, const char *principal, const struct filestore_local *local,
	       unsigned int seconds, const struct filestore_calls *calls)
{
	struct filestore_job *job = job_new(store, principal, local, seconds, calls);

	id_new(job->name);
	filestore_start_waiting(store);
	return job;
}

/* Starts a job for a part of the tenant's file. */
static struct filestore_job *
send_part(struct filestore_job *job, const char *uri, uint64_t offset, uint64_t len)
{
	const struct stored *file = find_stored(job->shelf, uri);

	job->offset = offset;
	job->len = len;
	if (file && file->until_s > now_s() && offset <= file->size && len <= file->size - offset)
		memcpy(job->name, file->name, sizeof(job->name));
	else
		filestore_fail_later(job, -ESTALE);
	filestore_start_waiting(job->store);
	return job;
}

struct filestore_job *
filestore_fetch(struct filestore *store, const char *principal, const char *uri, uint64_t offset,
		uint64_t len, unsigned int seconds, const struct filestore_calls *calls)
{
	return send_part(job_new(store, principal, NULL, seconds, calls), uri, offset, len);
}

struct filestore_job *
filestore_give(struct filestore *store, const char *principal, const char *uri, int source,
	       uint64_t size, const struct filestore_local *local,
	       const struct filestore_calls *calls)
{
	struct filestore_job *job = job_new(store, principal, local, keep_seconds(size), calls);

	job->gives = true;
	if (source < 0)
		return send_part(job, uri, 0, size);
	job->source = source;
	job->len = size;
	filestore_start_waiting(store);
	return job;
}

void
filestore_cancel(struct filestore_job *job)
{
	struct filestore *store = job->store;
	struct msg msg = { .type = MSG_DROP_JOB, .drop_job.job = job->number };

	if (!job->active || job->error || !filestore_is_up(store) ||
	    frame_writer_put(&store->writer, &msg, NULL, 0) < 0) {
		job_free(job);
		return;
	}
	job->cancelled = true;
	send_orders(store);
}

/* ---- the index ---- */

static void
filestore_show(const struct stored *file, struct filestore_file *file_r)
{
	*file_r = (struct filestore_file){ .uri = file->uri, .path = file->path,
					   .size = file->size, .until_s = file->until_s };
	memcpy(file_r->sha256, file->sha256, sizeof(file_r->sha256));
}

bool
filestore_find(struct filestore *store, const char *principal, const char *uri,
	       struct filestore_file *file_r)
{
	const struct shelf *shelf = find_shelf(store, principal);
	const struct stored *file = shelf ? find_stored(shelf, uri) : NULL;

	if (!file || file->until_s <= now_s())
		return false;
	filestore_show(file, file_r);
	return true;
}

bool
filestore_next(struct filestore *store, const char *principal, const char *after,
	       struct filestore_file *file_r)
{
	const struct shelf *shelf = find_shelf(store, principal);
	const struct stored *file, *best = NULL;
	uint64_t now = now_s();

	if (!shelf)
		return false;
	TAILQ_FOREACH(file, &shelf->files, link)
		if (file->until_s > now && strcmp(file->uri, after) > 0 &&
		    (!best || strcmp(file->uri, best->uri) < 0))
			best = file;
	if (best)
		filestore_show(best, file_r);
	return best;
}

void
filestore_remove(struct filestore *store, const char *principal, const char *uri)
{
	struct shelf *shelf = find_shelf(store, principal);
	struct stored *file = shelf ? find_stored(shelf, uri) : NULL;

	if (!file)
		return;
	remove_stored(store, shelf, file);
	drop_empty(store, shelf);
}

/* ---- files in use ---- */

struct filestore_hold *
filestore_hold(struct filestore *store, const char *principal, const char *uri)
{
	struct shelf *shelf = find_shelf(store, principal);
	struct stored *file = shelf ? find_stored(shelf, uri) : NULL;
	const struct msg_str name = msg_str(principal);
	struct filestore_hold *hold;

	if (!file || file->until_s <= now_s() ||
	    (!*shelf->directory && filestore_disk_tenant(&name, shelf->directory) < 0))
		return NULL;
	hold = xcalloc(1, sizeof(*hold));
	*hold = (struct filestore_hold){ .store = store, .shelf = shelf, .file = file };
	file->holds++;
	return hold;
}

void
filestore_release(struct filestore_hold *hold)
{
	if (!hold)
		return;
	if (--hold->file->holds == 0 && hold->file->until_s <= now_s()) {
		drop_stored(hold->store, hold->shelf, hold->file);
		drop_empty(hold->store, hold->shelf);
	}
	free(hold);
}

const char *
filestore_hold_directory(const struct filestore_hold *hold)
{
	return hold->shelf->directory;
}

const char *
filestore_hold_name(const struct filestore_hold *hold)
{
	return hold->file->name;
}

bool
filestore_hold_is(const struct filestore_hold *hold, const char *uri)
{
	return hold->file->until_s > now_s() && strcmp(hold->file->uri, uri) == 0;
}

/* ---- creation and end ---- */

/* Adds a file to the index; sort_shelf follows. */
static void
filestore_take_stored(struct filestore *store, const struct msg_stored_file *said)
{
	char *principal = xmemdup0(said->principal.at, said->principal.len);
	struct shelf *shelf = get_shelf(store, principal);
	struct stored *file = xcalloc(1, sizeof(*file));

	free(principal);
	memcpy(file->name, said->name.at, FILE_NAME);
	file->uri = xmemdup0(said->uri.at, said->uri.len);
	file->path = xmemdup0(said->path.at, said->path.len);
	file->size = said->size;
	file->until_s = said->until;
	memcpy(file->sha256, said->sha256.at, sizeof(file->sha256));
	filestore_put_up(store, shelf, file);
}

static int
by_until(const void *a, const void *b)
{
	const struct stored *const *x = a, *const *y = b;

	return ((*x)->until_s > (*y)->until_s) - ((*x)->until_s < (*y)->until_s);
}

/* Sorts the files of a shelf by until_s: the order in which they came, unless the time for which
 * files are kept was changed. */
static void
sort_shelf(struct shelf *shelf)
{
	own_mem struct stored **files = xcalloc(shelf->n_files + 1, sizeof(struct stored *));
	struct stored *file;
	size_t n = 0;

	while ((file = TAILQ_FIRST(&shelf->files))) {
		TAILQ_REMOVE(&shelf->files, file, link);
		files[n++] = file;
	}
	qsort(files, n, sizeof(struct stored *), by_until);
	for (size_t i = 0; i < n; i++)
		TAILQ_INSERT_TAIL(&shelf->files, files[i], link);
}

static int
read_index(struct filestore *store)
{
	uint64_t until_ms = clock_ms() + INDEX_S * 1000;
	struct shelf *shelf;

	for (;;) {
		struct frame frame = { 0 };
		int r = helper_await(&store->helper, &store->reader, until_ms, &frame);

		if (r == 1 && frame.msg.type == MSG_STORE_READY) {
			r = -(int)frame.msg.store_ready.error;
			frame_done(&frame);
			TAILQ_FOREACH(shelf, &store->shelves, link)
				sort_shelf(shelf);
			return r;
		}
		if (r == 1 && frame.msg.type == MSG_STORED_FILE)
			filestore_take_stored(store, &frame.msg.stored_file);
		else if (r == 1)
			r = -EBADMSG;
		frame_done(&frame);
		if (r < 0)
			return r;
	}
}

int
filestore_new(const char *directory, const struct filestore_bounds *bounds,
	      struct filestore **store_r)
{
	struct filestore *store = xcalloc(1, sizeof(*store));
	int r;

	store->bounds = *bounds;
	TAILQ_INIT(&store->shelves);
	TAILQ_INIT(&store->jobs);
	frame_reader_init(&store->reader, FROM_FILESTORE);
	frame_writer_init(&store->writer, WAITING_BYTES);
	store->helper.socket = store->helper.pidfd = -1;
	filestore_plan(directory, bounds->roots);
	r = helper_fork(&store->helper, HELPER_FILES);
	if (r == 0) {
		passrights_set(store->helper.socket, false);
		r = read_index(store);
	}
	if (r < 0)
		filestore_free(store);
	else
		*store_r = store;
	return r;
}

void
filestore_plan(const char *directory, bool roots)
{
	static struct filestore_place place;

	place = (struct filestore_place){ directory, roots };
	helper_plan(HELPER_FILES, filestore_live, &place);
}

void
filestore_watch(struct filestore *store, struct event_base *base)
{
	static const struct timeval each = { .tv_sec = SWEEP_S };

	store->base = base;
	store->sweep = xalloc_check(event_new(base, -1, EV_PERSIST, on_sweep, store));
	store->pace = xalloc_check(evtimer_new(base, filestore_on_pace, store));
	filestore_open(store);
	event_add(store->sweep, &each);
}

/* Orders the helper to remove each file, and waits until it has done so: it ends after the last
 * order. The next service removes what is left if the helper was lost or is slow. */
static void
remove_passing(struct filestore *store)
{
	struct pollfd room = { .fd = store->helper.socket, .events = POLLOUT };
	struct pollfd ended = { .fd = store->helper.pidfd, .events = POLLIN };
	struct shelf *shelf;

	if (!filestore_is_up(store))
		return;
	TAILQ_FOREACH(shelf, &store->shelves, link)
		for (size_t n = shelf->n_files; n > 0; n--)
			drop_stored(store, shelf, TAILQ_FIRST(&shelf->files));
	while (frame_writer_flush(&store->writer, store->helper.socket) == 1 &&
	       !store->writer.starved && poll(&room, 1, PASSING_MS) > 0)
		;
	shutdown(store->helper.socket, SHUT_WR);
	poll(&ended, 1, PASSING_MS);
}

void
filestore_free(struct filestore *store)
{
	struct filestore_job *job;
	struct shelf *shelf;

	if (!store)
		return;
	while ((job = TAILQ_FIRST(&store->jobs)))
		job_free(job);
	if (store->bounds.passing)
		remove_passing(store);
	while ((shelf = TAILQ_FIRST(&store->shelves))) {
		while (!TAILQ_EMPTY(&shelf->files))
			filestore_unshelve(store, shelf, TAILQ_FIRST(&shelf->files));
		shelf->spent_ms = 0;
		drop_empty(store, shelf);
	}
	if (store->base) {
		event_del(&store->readable);
		event_del(&store->writable);
		event_free(store->sweep);
		event_free(store->pace);
	}
	helper_done(&store->helper);
	frame_reader_done(&store->reader);
	frame_writer_done(&store->writer);
	free(store);
}

pid_t
filestore_pid(const struct filestore *store)
{
	return store ? store->helper.pid : 0;
}
