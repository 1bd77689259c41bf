/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the file helper, and in a child of it for each file that is kept or fetched.
 * Owns:    the descriptor of the store.
 * Reads:   STORE_FILE and other messages about files, from the supervisor. */
#include "host/filestore_parts.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "base/own.h"
#include "base/ownerfile.h"
#include "host/fence.h"
#include "host/helper.h"
#include "host/jobs.h"

struct filestore_process {
	struct jobs jobs;
	const char *directory;
	int root;		/* its descriptor */
	bool roots;		/* may open files outside of the store */
};

static uint64_t
filestore_process_number_of(const struct frame *order)
{
	return order->msg.type == MSG_STORE_FILE ? order->msg.store_file.job
	       : order->msg.type == MSG_GIVE_FILE ? order->msg.give_file.job
	       : order->msg.fetch_file.job;
}

/* ---- a child ---- */

/* If the order names a file outside of the store, that file takes the place of *fd. 0 or -errno. */
static int
open_local(const struct filestore_process *process, const struct frame *order, int *fd,
	   uint64_t *size_r)
{
	const struct msg_store_file *store = &order->msg.store_file;
	const struct msg_fetch_file *fetch = &order->msg.fetch_file;
	const bool keeps = order->msg.type == MSG_STORE_FILE;
	int r;

	if (order->msg.type == MSG_GIVE_FILE)
		return process->roots ? 0 : -EPERM;
	if (!(keeps ? store->has_root : fetch->has_root))
		return 0;
	if (!process->roots)
		return -EPERM;
	r = keeps ? filestore_disk_open_local(&store->root, &store->from, size_r)
		  : filestore_disk_open_local(&fetch->root, &fetch->from, size_r);
	if (r < 0)
		return r;
	if (*fd >= 0)
		close(*fd);
	*fd = r;
	/* Otherwise it has changed since somebody asked for its size. */
	return keeps && *size_r != store->size ? -ESTALE : 0;
}

static void
filestore_process_work(void *arg, struct frame *order, struct msg *answer_r)
{
	static unsigned char sha256[FILESTORE_SHA256];
	const struct filestore_process *process = arg;
	struct msg_file_ended *ended = &answer_r->file_ended;
	own_fd int fd = frame_take_fd(order, 0);
	const bool looks = order->msg.type == MSG_FETCH_FILE && order->msg.fetch_file.has_root;
	uint64_t size = 0;
	int r = open_local(process, order, &fd, &size);

	if (r < 0 || looks)
		;
	else if (order->msg.type == MSG_STORE_FILE)
		r = filestore_disk_keep(process->root, &order->msg.store_file, fd, sha256);
	else if (order->msg.type == MSG_GIVE_FILE)
		r = filestore_disk_give(process->root, &order->msg.give_file, fd, sha256);
	else
		r = filestore_disk_fetch(process->root, &order->msg.fetch_file, fd);
	ended->job = filestore_process_number_of(order);
	ended->error = (uint32_t)-r;
	ended->has_size = looks;
	ended->size = size;
	ended->has_sha256 = r == 0 && order->msg.type != MSG_FETCH_FILE;
	ended->sha256 = (struct msg_bin){ (const char *)sha256, FILESTORE_SHA256 };
	/* The reader of a part gets its end here, before the supervisor learns of it. */
}

/* ---- the helper ---- */

static int
filestore_process_obey(struct jobs *jobs, struct frame *order)
{
	const struct filestore_process *process = jobs->arg;
	const struct msg *msg = &order->msg;

	/* Somebody has removed or replaced the store. The next helper makes it again. */
	if (!samefile(process->root, process->directory))
		return -ESTALE;
	if (msg->type == MSG_STORE_FILE)
		return jobs_begin(jobs, order, msg->store_file.job, msg->store_file.seconds);
	if (msg->type == MSG_FETCH_FILE)
		return jobs_begin(jobs, order, msg->fetch_file.job, msg->fetch_file.seconds);
	if (msg->type == MSG_GIVE_FILE)
		return jobs_begin(jobs, order, msg->give_file.job, msg->give_file.seconds);
	/* If the job is over, the supervisor has not read that yet. */
	if (msg->type == MSG_DROP_JOB)
		return jobs_cancel(jobs, msg->drop_job.job);
	if (msg->type != MSG_DROP_FILE)
		return -EBADMSG;
	filestore_disk_remove(process->root, &msg->drop_file.principal, &msg->drop_file.name);
	return 0;
}

/* Removes the incomplete file if it was not kept. */
static int
filestore_process_conclude(void *arg, const struct frame *order, int error,
			   const struct msg *answer)
{
	const struct filestore_process *process = arg;
	const struct msg_store_file *file = &order->msg.store_file;
	struct msg msg = { .type = MSG_FILE_ENDED, .file_ended.error = (uint32_t)-error };

	if (answer)
		msg.file_ended = answer->file_ended;
	msg.file_ended.job = filestore_process_number_of(order);
	if (order->msg.type == MSG_STORE_FILE && msg.file_ended.error != 0)
		filestore_disk_remove(process->root, &file->principal, &file->name);
	return frame_send(process->jobs.socket, &msg, NULL, 0);
}

static int
filestore_process_send_file(void *arg, const struct msg_stored_file *file)
{
	const int *socket = arg;
	struct msg msg = { .type = MSG_STORED_FILE, .stored_file = *file };

	return frame_send(*socket, &msg, NULL, 0);
}

/* Opens the store and sends its index. 0 with *root_r, -errno of the socket, or the reason why
 * there is no store. */
static int
filestore_introduce(int socket, const char *directory, int *root_r)
{
	struct msg ready = { .type = MSG_STORE_READY };
	int r = *root_r = filestore_disk_open(directory), sent;

	if (r >= 0)
		r = filestore_disk_list(*root_r, (uint64_t)time(NULL),
					filestore_process_send_file, &socket);
	ready.store_ready.error = (uint32_t)-r;
	sent = frame_send(socket, &ready, NULL, 0);
	return r < 0 ? r : sent;
}

_Noreturn void
filestore_live(const void *arg, int socket, pid_t supervisor)
{
	const struct filestore_place *place = arg;
	static const struct jobs_calls calls = {
		filestore_process_obey, filestore_process_work, filestore_process_conclude,
	};
	static struct filestore_process process;
	int r = helper_settle("mcp-files", supervisor);

	if (r == 0)
		r = helper_keep_only(&socket);
	/* Later OpenSSL would look for it in files. */
	if (r == 0 && !EVP_sha256())
		r = -EIO;
	if (r == 0)
		r = fence_helper();
	if (r == 0)
		r = filestore_introduce(socket, place->directory, &process.root);
	process.jobs = (struct jobs){ .calls = &calls, .arg = &process, .answer = MSG_FILE_ENDED,
				      .socket = socket, .most = FILESTORE_JOBS };
	process.roots = place->roots;
	process.directory = place->directory;
	if (r == 0)
		r = jobs_serve(&process.jobs);
	helper_exit("files-end", r);
}
