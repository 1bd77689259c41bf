/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python get.   Owns: the file that it makes; an incomplete one is removed. */
#include "client/get.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "client/call.h"
#include "client/endpoint.h"
#include "client/exits.h"
#include "client/options.h"
#include "client/resource.h"
#include "client/say.h"
#include "client/show.h"

struct target {
	int fd, error;
};

static int
get_take(void *arg, const char *bytes, size_t len)
{
	struct target *to = arg;

	to->error = show_bytes(to->fd, bytes, len);
	return to->error;
}

static int
get_fetch(const struct options *options, struct target *to)
{
	struct call_channel channel = {.fd = endpoint_connect(options->socket)};
	int r;

	if (channel.fd < 0)
		return EX_UNAVAILABLE;
	r = resource_each(&channel, 1, options->uri, get_take, to);
	close(channel.fd);
	call_channel_done(&channel);
	if (to->error < 0) {
		say("%s: %s", options->output ? options->output : "standard output",
		    strerror(-to->error));
		return EX_IOERR;
	}
	if (r == -ENOENT) {
		say("%s: the service has no such file for you, or not any more", options->uri);
		return EX_NOINPUT;
	}
	return r < 0 ? call_failed(r) : 0;
}

int
get_command(const struct options *options)
{
	struct target to = {.fd = STDOUT_FILENO};
	int code;

	signal(SIGPIPE, SIG_IGN);
	if (options->output)
		to.fd = open(options->output, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (to.fd < 0) {
		say("%s: %s", options->output, strerror(errno));
		return EX_CANTCREAT;
	}
	code = get_fetch(options, &to);
	if (options->output && close(to.fd) < 0 && code == 0) {
		say("%s: %s", options->output, strerror(errno));
		code = EX_IOERR;
	}
	if (options->output && code != 0)
		unlink(options->output);
	return code;
}
