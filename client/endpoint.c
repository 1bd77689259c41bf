/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python, once, before anything is sent.   Owns: nothing; the socket belongs to the
 * caller. */
#include "client/endpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "client/say.h"

static int
endpoint_add(struct endpoints *list, const char *dir, const char *name)
{
	int n = snprintf(list->path[list->n], sizeof(list->path[0]), "%s%s", dir, name);

	if (n >= (int)sizeof((struct sockaddr_un *)NULL)->sun_path)
		return -ENAMETOOLONG;
	list->n++;
	return 0;
}

int
endpoints_find(const char *asked, struct endpoints *list_r)
{
	const char *named = getenv("MCP_PYTHON_SOCKET");
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	struct endpoints *list = list_r;

	memset(list, 0, sizeof(*list));
	if (asked) {
		list->named_by = "--socket";
		return endpoint_add(list, asked, "");
	}
	if (named && *named) {
		list->named_by = "MCP_PYTHON_SOCKET";
		return endpoint_add(list, named, "");
	}
	/* A run-time directory whose name is too long for a socket cannot hold one. */
	if (runtime && *runtime == '/')
		(void)endpoint_add(list, runtime, "/mcp-pythond.sock");
	return endpoint_add(list, ENDPOINT_SYSTEM, "");
}

static int
connect_to(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd, r = 0;

	memcpy(address.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	/* Deliberately blocking: otherwise a full backlog would be EAGAIN (unix(7)). */
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
		r = -errno;
	if (r < 0) {
		close(fd);
		return r;
	}
	return fd;
}

/* The mistake in one path, for people. */
static const char *
reason(const char *path, int error)
{
	struct stat status;

	switch (error) {
	case ENOENT:
	case ENOTDIR:
		return "there is no such socket";
	case EACCES:
	case EPERM:
		return "you may not connect to it";
	case ECONNREFUSED:
		if (stat(path, &status) == 0 && !S_ISSOCK(status.st_mode))
			return "it is not a socket";
		return "no program listens on it; its program has ended";
	case EPROTOTYPE:
		return "it is a socket of another kind";
	default:
		return strerror(error);
	}
}

static void
endpoint_advise(const struct endpoints *list, int error)
{
	if (list->named_by && error != EACCES && error != EPERM)
		say_more("the path comes from %s", list->named_by);
	if (error == EACCES || error == EPERM)
		say_more("ask the administrator: SocketMode= and SocketGroup= of "
			 "mcp-pythond.socket decide (you are uid %u)",
			 (unsigned int)getuid());
	else if (list->named_by)
		say_more("start it there with: mcp-pythond --socket %s", list->path[0]);
	else
		say_more("start it with one of: systemctl enable --now "
			 "mcp-pythond.socket | "
			 "systemctl --user enable --now mcp-pythond.socket | "
			 "mcp-pythond");
}

int
endpoints_connect(const struct endpoints *list, int error_r[ENDPOINTS_MAX])
{
	int worst = ENOENT;

	for (size_t i = 0; i < list->n; i++) {
		int fd = connect_to(list->path[i]);

		if (fd >= 0)
			return fd;
		if (error_r)
			error_r[i] = -fd;
		if (fd != -ENOENT)
			worst = -fd;
	}
	return -worst;
}

int
endpoint_connect(const char *asked)
{
	int error[ENDPOINTS_MAX] = {0}, fd, r;
	struct endpoints list;

	r = endpoints_find(asked, &list);
	if (r < 0) {
		say("the socket's path is too long: at most %zu bytes fit into an "
		    "address",
		    sizeof((struct sockaddr_un *)NULL)->sun_path - 1);
		return r;
	}
	fd = endpoints_connect(&list, error);
	if (fd >= 0)
		return fd;
	say("cannot reach mcp-pythond");
	for (size_t i = 0; i < list.n; i++)
		say_more("%s: %s", list.path[i], reason(list.path[i], error[i]));
	endpoint_advise(&list, -fd);
	return fd;
}
