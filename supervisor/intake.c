/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: an upload, and the pipe until it is passed on.
 * Reads:   the first line of a client. */
#include "supervisor/intake.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/jsonout.h"
#include "base/own.h"
#include "base/xalloc.h"
#include "engine/upload.h"
#include "host/filestore.h"

#define VERB "PUT "
#define SIZE_DIGITS 19

struct intake {
	struct intake_options options;
	struct upload *upload;
	uint64_t size;
};

bool
intake_is_asked(const char *line, size_t len)
{
	return len >= strlen(VERB) && memcmp(line, VERB, strlen(VERB)) == 0;
}

static void
intake_end(const struct intake *intake, struct jsonout *out)
{
	size_t len;
	char *line;

	jsonout_close(out, '}');
	line = jsonout_take_line(out, &len);
	intake->options.on_end(intake->options.arg, line, len);
}

static void
intake_refuse(const struct intake *intake, const char *why)
{
	struct jsonout out;

	jsonout_init(&out);
	jsonout_open(&out, '{');
	jsonout_member_text(&out, "error", why);
	intake_end(intake, &out);
}

/* A client that does not get the pipe sees it end: fewer bytes come than were announced. */
static void
intake_on_begin(void *arg, int fd)
{
	static char text[] = "{\"pipe\":true}\n";
	const struct intake *intake = arg;
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { .bytes = { 0 } };
	struct iovec bytes = { text, sizeof(text) - 1 };
	struct msghdr message = { .msg_iov = &bytes, .msg_iovlen = 1,
				  .msg_control = control.bytes,
				  .msg_controllen = sizeof(control.bytes) };
	struct cmsghdr *head = CMSG_FIRSTHDR(&message);
	own_fd int pipe = fd;

	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(head), &pipe, sizeof(int));
	if (sendmsg(intake->options.socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		return;
}

static void
intake_on_end(void *arg, const struct upload_end *how)
{
	struct intake *intake = arg;
	char sha256[2 * FILESTORE_SHA256 + 1];
	struct jsonout out;

	if (how->error < 0) {
		intake_refuse(intake, how->why);
	} else {
		hex_write(how->sha256, FILESTORE_SHA256, sha256);
		jsonout_init(&out);
		jsonout_open(&out, '{');
		jsonout_member_text(&out, "uri", how->uri);
		jsonout_member_uint(&out, "size", intake->size);
		jsonout_member_text(&out, "sha256", sha256);
		intake_end(intake, &out);
	}
	free(intake);
}

/* SIZE and a blank. The bytes that it takes, or 0. */
static size_t
read_size(const char *text, size_t len, uint64_t *size_r)
{
	size_t n = 0;

	*size_r = 0;
	for (; n < len && n < SIZE_DIGITS && text[n] >= '0' && text[n] <= '9'; n++)
		*size_r = *size_r * 10 + (uint64_t)(text[n] - '0');
	return n > 0 && n < len && text[n] == ' ' ? n + 1 : 0;
}

struct intake *
intake_new(const struct intake_options *options, const char *line, size_t len)
{
	struct intake *intake = xcalloc(1, sizeof(*intake));
	const struct upload_calls calls = { intake_on_begin, intake_on_end, intake };
	const char *name = line + strlen(VERB), *why = "PUT SIZE NAME is needed";
	size_t n = read_size(name, len - strlen(VERB), &intake->size);

	intake->options = *options;
	name += n;
	if (n > 0)
		intake->upload = upload_new(options->tenant, name, len - (size_t)(name - line),
					    intake->size, &calls, &why);
	if (intake->upload)
		return intake;
	intake_refuse(intake, why);
	free(intake);
	return NULL;
}

void
intake_cancel(struct intake *intake)
{
	if (!intake)
		return;
	upload_cancel(intake->upload);
	free(intake);
}
