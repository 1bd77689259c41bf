/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor, before privilege is dropped.   Owns: listening sockets until they are
 * served, and the locks of sockets that it has made. */
#include "supervisor/endpoints.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>
#include <systemd/sd-daemon.h>

#include "base/log.h"
#include "base/own.h"
#include "base/socketfile.h"
#include "base/why.h"
#include "base/xalloc.h"
#include "http/origin.h"
#include "http/server.h"
#include "policy/config.h"
#include "supervisor/handover.h"

void
endpoints_add_file(struct endpoints *endpoints, struct socketfile *file)
{
	if (file)
		endpoints->file[endpoints->n_files++] = file;
}

static void
endpoints_look_at(const struct socketfile *file, int *trouble)
{
	const char *path = socketfile_path(file);
	struct log_quoted quoted;
	int r = socketfile_look(file);

	if (r == 1)
		log_line(LOG_ERR, "socket-replaced", "socket=%s made-again=yes text=\"it was removed "
			 "or replaced by somebody else\"", log_quote(&quoted, path, strlen(path)));
	else if (r < 0 && r != *trouble)
		log_line(LOG_ERR, "socket-replaced", "socket=%s made-again=no err=%s text=\"it was "
			 "removed or replaced by somebody else, and nobody can connect: restart %s\"",
			 log_quote(&quoted, path, strlen(path)), strerrorname_np(-r),
			 r == -EEXIST ? "the socket unit that has made it" : "the service");
	*trouble = r < 0 ? r : 0;
}

static void
endpoints_on_look(evutil_socket_t, short, void *arg)
{
	struct endpoints *endpoints = arg;

	for (size_t i = 0; i < endpoints->n_files; i++)
		endpoints_look_at(endpoints->file[i], &endpoints->trouble[i]);
}

void
endpoints_watch(struct endpoints *endpoints, struct event_base *base)
{
	static const struct timeval second = { .tv_sec = 1 };

	if (endpoints->n_files == 0)
		return;
	endpoints->look = xalloc_check(event_new(base, -1, EV_PERSIST, endpoints_on_look,
						 endpoints));
	event_add(endpoints->look, &second);
}

static void
add_endpoint(struct endpoints *endpoints, int fd, bool http)
{
	endpoints->endpoint[endpoints->n++] = (struct endpoint){ .fd = fd, .http = http };
}

/* May the service be reachable from other machines, and on loopback when root has started it? */
static bool
may_be_open(const struct config *config)
{
	return config->http.insecure || config_has_auth(config);
}

/* Clients of this socket are not identified. */
static int
take_metrics_socket(struct endpoints *endpoints, int fd, struct why *why_r)
{
	struct why unused;

	if (http_check_socket(fd, false, &unused) < 0)
		return why_say(why_r, -EPERM, "socket", "what was handed over as \"metrics\" can "
			       "be reached from other machines; it has to be on the loopback "
			       "device or a unix socket");
	endpoints->endpoint[endpoints->n++] = (struct endpoint){ .fd = fd, .metrics = true };
	return 0;
}

/* The unit's FileDescriptorName= gives the protocol: "http", "metrics"; any other name means
 * byte streams. */
static int
endpoints_take_handed_socket(struct endpoints *endpoints, const struct config *config, int fd,
			     const char *name, struct why *why_r)
{
	bool http = strcmp(name, "http") == 0, metrics = strcmp(name, "metrics") == 0;

	if (sd_is_socket(fd, http || metrics ? AF_UNSPEC : AF_UNIX, SOCK_STREAM, 1) <= 0)
		return why_say(why_r, -EINVAL, "socket", "what was handed over as \"%s\" is no "
			       "listening %sstream socket", name, http || metrics ? "" : "unix ");
	if (metrics)
		return take_metrics_socket(endpoints, fd, why_r);
	if (http && http_check_socket(fd, may_be_open(config), why_r) < 0)
		return -EPERM;
	endpoints_add_file(endpoints, socketfile_of(fd));
	add_endpoint(endpoints, fd, http);
	return 0;
}

static void
endpoints_take_stored(struct endpoints *endpoints, int fd, const char *name)
{
	endpoints->stored = xalloc_check(reallocarray(endpoints->stored, endpoints->n_stored + 1,
						   sizeof(*endpoints->stored)));
	endpoints->stored[endpoints->n_stored++] = (struct endpoints_stored){ xstrdup(name), fd };
}

static int
take_handed_sockets(struct endpoints *endpoints, const struct config *config, struct why *why_r)
{
	own_mem char **names = NULL;
	int r = 0, n = sd_listen_fds_with_names(1, &names), sockets = 0;

	for (int i = 0; r == 0 && i < n; i++) {
		const char *name = names && names[i] ? names[i] : "";

		if (strncmp(name, HANDOVER_PREFIX, strlen(HANDOVER_PREFIX)) == 0)
			endpoints_take_stored(endpoints, SD_LISTEN_FDS_START + i, name);
		else if (strcmp(name, PLACE_ADMIN) == 0)
			;	/* supervisor/operate/governance.c takes it */
		else if (++sockets > ENDPOINTS_MAX - 3)
			r = why_say(why_r, -E2BIG, "socket",
				    "systemd passed more than %d sockets", ENDPOINTS_MAX - 3);
		else
			r = endpoints_take_handed_socket(endpoints, config, SD_LISTEN_FDS_START + i,
							 name, why_r);
	}
	for (int i = 0; names && names[i]; i++)
		free(names[i]);
	return r;
}

static int
open_http_address(struct endpoints *endpoints, const struct config *config, const char *text,
		  struct why *why_r)
{
	struct sockaddr_storage address;
	socklen_t len = sizeof(address);
	own_mem char *name = NULL;
	int fd, r = http_open_address(text, may_be_open(config), &fd, why_r);

	if (r < 0)
		return r;
	add_endpoint(endpoints, fd, true);
	if (getsockname(fd, (struct sockaddr *)&address, &len) < 0)
		return why_say(why_r, -errno, "http", "%s: %s", text, strerror(errno));
	name = http_address_text(&address, NULL);
	log_line(LOG_NOTICE, "listening", "http=%s", name);
	if (!http_address_is_loopback(&address))
		log_line(LOG_WARNING, "http-insecure", "http=%s text=\"reachable from other "
			 "machines, %s\"", name, config_has_auth(config)
				? "where tokens can be overheard unless a proxy ends TLS"
				: "and their users are not identified");
	return 0;
}

static int
open_metrics(struct endpoints *endpoints, const struct config *config, struct why *why_r)
{
	struct sockaddr_storage address;
	socklen_t len = sizeof(address);
	own_mem char *name = NULL;
	int fd, r;

	if (!config->metrics.listen)
		return 0;
	r = http_open_address(config->metrics.listen, false, &fd, why_r);
	if (r < 0)
		return r;
	endpoints->endpoint[endpoints->n++] = (struct endpoint){ .fd = fd, .metrics = true };
	if (getsockname(fd, (struct sockaddr *)&address, &len) < 0)
		return why_say(why_r, -errno, "metrics", "%s", strerror(errno));
	name = http_address_text(&address, NULL);
	log_line(LOG_NOTICE, "listening", "metrics=%s", name);
	return 0;
}

/* In addition to the other sockets. */
static int
open_http(struct endpoints *endpoints, const struct config *config,
	  const struct endpoints_asked *asked, uid_t owner, struct why *why_r)
{
	const char *address = asked->http ? asked->http : config->http.listen;
	const char *path = asked->http_socket ? asked->http_socket : config->http.socket;
	int fd, r = address ? open_http_address(endpoints, config, address, why_r) : 0;
	struct socketfile *file;

	if (r < 0 || !path)
		return r;
	r = socketfile_open(path, owner, &file, &fd, why_r);
	if (r < 0)
		return r;
	endpoints_add_file(endpoints, file);
	add_endpoint(endpoints, fd, true);
	log_line(LOG_NOTICE, "listening", "http_socket=%s", path);
	return 0;
}

static int
open_socket(struct endpoints *endpoints, const struct config *config, const char *asked,
	    uid_t owner, struct why *why_r)
{
	own_mem char *path = NULL;
	struct socketfile *file;
	int fd, r;

	if (asked || config->service.socket)
		path = xstrdup(asked ? asked : config->service.socket);
	else
		path = socketfile_default(owner, why_r);
	if (!path)
		return -ENOENT;
	r = socketfile_open(path, owner, &file, &fd, why_r);
	if (r < 0)
		return r;
	endpoints_add_file(endpoints, file);
	add_endpoint(endpoints, fd, false);
	log_line(LOG_NOTICE, "listening", "socket=%s", path);
	return 0;
}

/* Every user of this machine can connect to TCP. Without tokens all of them are the tenant of the
 * user who started the service, and that is root here. */
static int
refuse_tcp(const struct endpoints *endpoints, struct why *why_r)
{
	struct sockaddr_storage address;
	socklen_t len = sizeof(address);

	for (size_t i = 0; i < endpoints->n; i++) {
		const struct endpoint *endpoint = &endpoints->endpoint[i];
		own_mem char *name = NULL;

		if (!endpoint->http || sd_is_socket(endpoint->fd, AF_UNIX, SOCK_STREAM, 1) > 0)
			continue;
		if (getsockname(endpoint->fd, (struct sockaddr *)&address, &len) < 0)
			return why_say(why_r, -errno, "http", "%s", strerror(errno));
		name = http_address_text(&address, NULL);
		return why_say(why_r, -EPERM, "http", "every user of this machine can connect to "
			       "%s, and would run scripts as root's tenant: set up tokens in "
			       "[auth], or force it by insecure = yes in [http]", name);
	}
	return 0;
}

static bool
have_clients(const struct endpoints *endpoints)
{
	size_t n = 0;

	for (size_t i = 0; i < endpoints->n; i++)
		n += !endpoints->endpoint[i].metrics;
	return n > 0;
}

int
endpoints_open(const struct endpoints_asked *asked, const struct config *config, uid_t owner,
	    struct endpoints **endpoints_r, struct why *why_r)
{
	struct endpoints *endpoints = *endpoints_r = xcalloc(1, sizeof(*endpoints));
	int r = take_handed_sockets(endpoints, config, why_r);

	if (r < 0 || asked->none)
		return r;
	if (!have_clients(endpoints))
		r = open_socket(endpoints, config, asked->socket, owner, why_r);
	else if (asked->socket)
		r = why_say(why_r, -EINVAL, "socket",
			    "--socket was given although systemd passes a socket");
	if (r == 0)
		r = open_http(endpoints, config, asked, owner, why_r);
	if (r == 0 && asked->by_hand && geteuid() == 0 && !may_be_open(config))
		r = refuse_tcp(endpoints, why_r);
	return r < 0 ? r : open_metrics(endpoints, config, why_r);
}

bool
endpoints_have_http(const struct endpoints *endpoints)
{
	for (size_t i = 0; i < endpoints->n; i++)
		if (endpoints->endpoint[i].http)
			return true;
	return false;
}

void
endpoints_free(struct endpoints *endpoints)
{
	if (!endpoints)
		return;
	for (size_t i = 0; i < endpoints->n; i++)
		if (endpoints->endpoint[i].fd >= 0)
			close(endpoints->endpoint[i].fd);
	for (size_t i = 0; i < endpoints->n_stored; i++) {
		if (endpoints->stored[i].fd >= 0)
			close(endpoints->stored[i].fd);
		free(endpoints->stored[i].name);
	}
	free(endpoints->stored);
	if (endpoints->look)
		event_free(endpoints->look);
	while (endpoints->n_files > 0)
		socketfile_close(endpoints->file[--endpoints->n_files]);
	free(endpoints);
}
