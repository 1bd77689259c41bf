/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python run and repl.   Owns: the connection, and a private supervisor.
 * A private supervisor is a child with one client, this program: it has one end of a pair of
 * sockets as standard input and output, and ends when the other end is closed. */
#include "client/service.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/own.h"
#include "base/programs.h"
#include "client/endpoint.h"
#include "client/options.h"
#include "client/say.h"

#define LOG_SHOWN 4096 /* bytes of what a supervisor says that failed */
#define PROGRAM "mcp-pythond"

/* In the child. A session of its own, so that Ctrl-C ends only this program, which then ends the
 * supervisor. */
static _Noreturn void
become_supervisor(const char *path, const struct options *options, bool packages, int socket,
		  int log)
{
	const char *arguments[6] = { path, "--private" };
	size_t n = 2;
	sigset_t none;

	if (packages)
		arguments[n++] = "--packages";
	if (options->folder) {
		arguments[n++] = "--folder";
		arguments[n++] = options->folder;
	}

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setsid();
	if (dup2(socket, STDIN_FILENO) >= 0 && dup2(socket, STDOUT_FILENO) >= 0 &&
	    dup2(log, STDERR_FILENO) >= 0)
		execv(path, (char *const *)arguments);
	dprintf(log, "%s: %s\n", path, strerror(errno));
	_exit(EXIT_FAILURE);
}

static int
start_private(const struct options *options, bool packages, struct service *service_r)
{
	own_fd int log = memfd_create("log", MFD_CLOEXEC);
	char path[PATH_MAX];
	int pair[2];
	pid_t pid;

	if (!program_path(PROGRAM, path, sizeof(path))) {
		say("cannot start a private supervisor: there is no %s", path);
		return -ENOENT;
	}
	if (log < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
		say("cannot start a private supervisor: %s", strerror(errno));
		return -EIO;
	}
	pid = fork();
	if (pid == 0)
		become_supervisor(path, options, packages, pair[1], log);
	close(pair[1]);
	if (pid < 0 || fcntl(pair[0], F_SETFL, O_NONBLOCK) < 0) {
		say("cannot start a private supervisor: %s", strerror(errno));
		close(pair[0]);
		return -EIO;
	}
	*service_r = (struct service){ .fd = pair[0], .pid = pid, .log = give_fd(log) };
	return 0;
}

int
service_open(const struct options *options, bool packages, struct service *service_r)
{
	struct endpoints list;
	/* A session that outlives this command needs a service that does. */
	bool may_be_private = !options->keep && !options->session;
	int fd = -ENOENT;

	if (options->private)
		return start_private(options, packages, service_r);
	if (may_be_private && endpoints_find(options->socket, &list) == 0 && !list.named_by) {
		char path[PATH_MAX];

		fd = endpoints_connect(&list, NULL);
		if ((fd == -ENOENT || fd == -ECONNREFUSED || fd == -ENOTDIR) &&
		    program_path(PROGRAM, path, sizeof(path)))
			return start_private(options, packages, service_r);
	}
	if (fd < 0)
		fd = endpoint_connect(options->socket);
	*service_r = (struct service){ .fd = fd };
	return fd < 0 ? fd : 0;
}

static void
show_log(int log)
{
	char text[LOG_SHOWN + 1], *rest = text, *line;
	ssize_t n = pread(log, text, LOG_SHOWN, 0);

	text[n > 0 ? n : 0] = '\0';
	while ((line = strsep(&rest, "\n")))
		if (*line)
			say_more("%s", line);
}

void
service_close(struct service *service, bool call_failed)
{
	int status = 0;

	if (service->fd >= 0)
		close(service->fd);
	service->fd = -1;
	if (!service->pid)
		return;
	while (waitpid(service->pid, &status, 0) < 0 && errno == EINTR)
		;
	if (status != 0)
		say("the private supervisor failed:");
	else if (call_failed && lseek(service->log, 0, SEEK_END) > 0)
		say("the private supervisor says:");
	if (status != 0 || call_failed)
		show_log(service->log);
	close(service->log);
	service->pid = 0;
}
