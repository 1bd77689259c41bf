/* SPDX-License-Identifier: Apache-2.0 */
/* The listening sockets for clients. systemd has passed them, or this process opens them while it
 * has the privilege to do so.
 */
#ifndef SUPERVISOR_ENDPOINTS_H
#define SUPERVISOR_ENDPOINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct config;
struct event;
struct event_base;
struct socketfile;
struct why;

#define ENDPOINTS_MAX 8
#define ENDPOINTS_FILES (ENDPOINTS_MAX + 2)	/* with the operators' sockets */
#define PLACE_ADMIN "admin"	/* FileDescriptorName= of the operators' socket */

struct endpoint {
	int fd;			/* -1: given away */
	bool http;		/* for MCP over HTTP */
	bool metrics;		/* for metrics; if neither is set: for byte streams */
};

/* A descriptor from systemd's store (supervisor/handover.h). */
struct endpoints_stored {
	char *name;
	int fd;			/* -1: given away */
};

struct endpoints {
	struct endpoint endpoint[ENDPOINTS_MAX];
	size_t n;
	struct socketfile *file[ENDPOINTS_FILES];
	int trouble[ENDPOINTS_FILES];	/* of the last look; 0: none */
	size_t n_files;
	struct event *look;		/* NULL: nobody looks */
	struct endpoints_stored *stored;
	size_t n_stored;
};

/* The options of the command line; NULL: not given, and the configuration counts. */
struct endpoints_asked {
	const char *socket, *http, *http_socket;
	bool none;		/* use only the sockets that systemd passes */
	bool by_hand;		/* the service is not a system service */
};

/* Opens the sockets, and logs that. owner: the owner of socket files. 0 or -errno with why_r.
 * *endpoints_r is set in both cases, and the caller releases it by endpoints_free. */
int endpoints_open(const struct endpoints_asked *asked, const struct config *config, uid_t owner,
		struct endpoints **endpoints_r, struct why *why_r);

/* file: of a socket that is looked after, and closed by endpoints_free. NULL is fine. */
void endpoints_add_file(struct endpoints *endpoints, struct socketfile *file);

/* Looks each second whether the sockets are still at their paths: logs it if one is not, and gives
 * the service's own its name again. base: borrowed until endpoints_free. */
void endpoints_watch(struct endpoints *endpoints, struct event_base *base);

bool endpoints_have_http(const struct endpoints *endpoints);

/* Closes the sockets that were not taken, and removes socket files. NULL is fine. */
void endpoints_free(struct endpoints *endpoints);

#endif
