/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: reads of files on disk that are under way.
 * Reads:   uris of clients; and bytes of files, to see if they are text. */
#include "tools/shared/file_read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/own.h"
#include "base/xalloc.h"
#include "engine/engine.h"
#include "host/filestore.h"
#include "tools/shared/media.h"

#define READ_S 60		/* that the helper may take */

/* ---- ranges ---- */

/* A number without sign and blanks. False: there is none, or it is too large. */
static bool
file_read_read_number(const char **at, uint64_t *number_r)
{
	uint64_t number = 0;
	const char *start = *at;

	for (; **at >= '0' && **at <= '9'; (*at)++)
		if (__builtin_mul_overflow(number, 10, &number) ||
		    __builtin_add_overflow(number, (uint64_t)(**at - '0'), &number))
			return false;
	*number_r = number;
	return *at > start;
}

bool
file_range_read(const char *uri, struct file_range *range_r)
{
	static const char key[] = "bytes=";
	const char *query = strchr(uri, '?'), *at;

	*range_r = (struct file_range){ .is_part = query };
	if (query) {
		at = query + 1;
		if (strncmp(at, key, strlen(key)) != 0)
			return false;
		at += strlen(key);
		if (!file_read_read_number(&at, &range_r->first) || *at++ != '-')
			return false;
		range_r->is_open = !*at;
		if (*at && (!file_read_read_number(&at, &range_r->last) || *at ||
			    range_r->last < range_r->first))
			return false;
	}
	range_r->uri = xmemdup0(uri, query ? (size_t)(query - uri) : strlen(uri));
	return true;
}

int
file_range_fit(const struct file_range *range, uint64_t size, uint64_t most,
	       uint64_t *offset_r, size_t *len_r)
{
	uint64_t len = size;

	*offset_r = 0;
	if (range->is_part) {
		if (range->first >= size)
			return -ERANGE;
		*offset_r = range->first;
		len = size - range->first;
		if (range->is_open && len > most)
			len = most;
		if (!range->is_open && range->last < size)
			len = range->last - range->first + 1;
	}
	if (len > most)
		return -EFBIG;
	*len_r = (size_t)len;
	return 0;
}

void
file_read_answer(const struct tool_host *host, const char *uri, const char *mime_type,
		 const void *data, size_t len)
{
	struct content block = { .kind = CONTENT_RESOURCE, .uri = uri, .mime_type = mime_type };

	if (media_is_text(data, len)) {
		block.text = data;
		block.text_len = len;
	} else {
		block.data = data;
		block.data_len = len;
	}
	host->on_answer(host->arg,
			&(struct tool_answer){ .content = &block, .n_content = 1 });
}

/* ---- a read of the disk ---- */

struct tool_run {
	struct tool_host host;
	char *uri;
	const char *mime_type;		/* static */
	struct filestore_job *job;	/* NULL: it has ended */
	int fd;				/* -1: there is none yet */
	struct event *readable;
	char *data;
	size_t len, got;
};

static void
run_free(struct tool_run *run)
{
	if (run->job)
		filestore_cancel(run->job);
	if (run->readable)
		event_free(run->readable);
	if (run->fd >= 0)
		close(run->fd);
	free(run->uri);
	free(run->data);
	free(run);
}

static void
file_read_finish(struct tool_run *run)
{
	const struct tool_host host = run->host;
	const struct tool_failure failure = { .kind = FAIL_NO_RESOURCE, .text = run->uri };

	if (run->got == run->len)
		file_read_answer(&host, run->uri, run->mime_type, run->data, run->len);
	else
		host.on_fail(host.arg, &failure);
	run_free(run);
}

static void
file_read_on_readable(evutil_socket_t fd, short, void *arg)
{
	struct tool_run *run = arg;
	ssize_t n = 0;

	if (run->got < run->len) {
		n = read(fd, run->data + run->got, run->len - run->got);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		run->got += n > 0 ? (size_t)n : 0;
	}
	if (n <= 0 || run->got == run->len)
		file_read_finish(run);
}

static void
file_read_on_begin(void *arg, int fd)
{
	struct tool_run *run = arg;

	run->fd = fd;
	run->data = xalloc_check(malloc(run->len + 1));
	fcntl(fd, F_SETFL, O_NONBLOCK);
	run->readable = xalloc_check(event_new(run->host.base, fd, EV_READ | EV_PERSIST,
					       file_read_on_readable, run));
	event_add(run->readable, NULL);
}

/* The file helper has ended the job. Bytes that it wrote before may still be in the pipe. */
static void
file_read_on_end(void *arg, int error)
{
	struct tool_run *run = arg;

	run->job = NULL;
	if (error < 0)
		file_read_finish(run);
}

struct tool_run *
file_read_start(const struct tool_host *host, const char *uri, const struct filestore_file *file,
		uint64_t offset, size_t len)
{
	struct tool_run *run = xcalloc(1, sizeof(*run));
	const struct filestore_calls calls = { .begin = file_read_on_begin,
					       .end = file_read_on_end,
					       .arg = run };

	run->host = *host;
	run->uri = xstrdup(uri);
	run->mime_type = media_of_path(file->path, strlen(file->path));
	run->fd = -1;
	run->len = len;
	run->job = filestore_fetch(tenant_filestore(host->tenant), tenant_principal(host->tenant),
				   file->uri, offset, len, READ_S, &calls);
	return run;
}

void
file_read_cancel(struct tool_run *run)
{
	run_free(run);
}
