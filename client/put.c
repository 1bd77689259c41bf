/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python put.   Owns: the connection, and the pipe that the service passes on it. */
#include "client/put.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "base/own.h"
#include "base/writeall.h"
#include "base/xalloc.h"
#include "client/call.h"
#include "client/endpoint.h"
#include "client/exits.h"
#include "client/options.h"
#include "client/reply.h"
#include "client/say.h"

#define LINE_MAX_BYTES 65536
#define CHUNK (256 * 1024)

/* ---- the service's lines ---- */

/* Reads a byte, and the descriptor that comes with it. 1, 0 at the end, or -errno. */
static int
read_byte(int socket, char *byte_r, int *fd)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec bytes = {byte_r, 1};
	struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1,
				 .msg_control = control.bytes,
				 .msg_controllen = sizeof(control.bytes)};
	ssize_t n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
	const struct cmsghdr *head = n > 0 ? CMSG_FIRSTHDR(&message) : NULL;

	if (head && head->cmsg_type == SCM_RIGHTS && *fd < 0)
		memcpy(fd, CMSG_DATA(head), sizeof(*fd));
	return n < 0 ? -errno : (int)n;
}

/* The next line as JSON, the caller's. NULL with *error_r. *fd: -1, or what came with it. */
static json_t *
put_read_line(int socket, int *fd, int *error_r)
{
	own_mem char *line = xmalloc(LINE_MAX_BYTES);
	json_t *json = NULL;
	size_t len = 0;
	int r = 1;

	while (r > 0 && len < LINE_MAX_BYTES && (len == 0 || line[len - 1] != '\n')) {
		r = read_byte(socket, &line[len], fd);
		len += r > 0;
		r = r == -EINTR ? 1 : r;
	}
	if (r > 0)
		json = json_loadb(line, len, 0, NULL);
	*error_r = r < 0 ? r : r == 0 ? -ECONNRESET : -EBADMSG;
	return json;
}

/* ---- the file ---- */

/* 0 with *size_r, or an exit code. */
static int
open_file(const char *path, int *fd_r, off_t *size_r)
{
	struct stat st;

	*fd_r = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (*fd_r < 0 || fstat(*fd_r, &st) < 0) {
		say("%s: %s", path, strerror(errno));
		return EX_NOINPUT;
	}
	if (!S_ISREG(st.st_mode)) {
		say("%s: it is not a regular file, so its size is not known", path);
		return EX_NOINPUT;
	}
	*size_r = st.st_size;
	return 0;
}

/* Copies the file into the pipe. 0; -EPIPE: the pipe has no reader any more, and the service gives
 * the reason; or -errno of the file. */
static int
put_copy(int from, int to, off_t size)
{
	own_mem char *chunk = xmalloc(CHUNK);

	while (size > 0) {
		ssize_t n = read(from, chunk, size < CHUNK ? (size_t)size : CHUNK);
		int r;

		if (n <= 0)
			return n < 0 ? -errno : 0;
		r = write_all(to, chunk, (size_t)n);
		if (r < 0)
			return r;
		size -= n;
	}
	return 0;
}

/* ---- the exchange ---- */

static int
request(int socket, off_t size, const char *name)
{
	own_mem char *line = NULL;
	int len = asprintf(&line, "PUT %lld %s\n", (long long)size, name);

	xassert(len >= 0);
	return write_all(socket, line, (size_t)len);
}

/* Prints what came of it. Takes answer. */
static int
put_show(json_t *answer, const char *path)
{
	const char *uri = reply_string(answer, "uri", NULL);
	const char *error = reply_string(answer, "error", NULL);
	int code = 0;

	if (uri) {
		puts(uri);
	} else if (error) {
		say("%s: %s", path, error);
		code = EX_CANTCREAT;
	} else {
		code = call_failed(-EBADMSG);
	}
	json_decref(answer);
	return code;
}

static int
put(int socket, int file, off_t size, const char *name, const char *path)
{
	int r = request(socket, size, name), pipe = -1;
	json_t *answer = r < 0 ? NULL : put_read_line(socket, &pipe, &r);

	if (answer && pipe >= 0) {
		json_decref(answer);
		r = put_copy(file, pipe, size);
		close(pipe);
		if (r < 0 && r != -EPIPE) {
			say("%s: %s", path, strerror(-r));
			return EX_IOERR;
		}
		answer = put_read_line(socket, &pipe, &r);
	}
	return answer ? put_show(answer, path) : call_failed(r);
}

static const char *
last_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

int
put_command(const struct options *options)
{
	const char *name = options->name ? options->name : last_name(options->file);
	own_fd int file = -1, socket = -1;
	off_t size = 0;
	int code = open_file(options->file, &file, &size);

	if (code != 0)
		return code;
	if (strchr(name, '\n')) {
		say("%s: a name may not have a line break; give another one by --name", name);
		return EX_DATAERR;
	}
	signal(SIGPIPE, SIG_IGN);
	socket = endpoint_connect(options->socket);
	if (socket < 0)
		return EX_UNAVAILABLE;
	if (fcntl(socket, F_SETFL, 0) < 0)
		return call_failed(-errno);
	return put(socket, file, size, name, options->file);
}
