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
struct socketfile;
struct why;

#define ENDPOINTS_MAX 8
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
	struct socketfile *file, *http_file;
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

bool endpoints_have_http(const struct endpoints *endpoints);

/* Closes the sockets that were not taken, and removes socket files. NULL is fine. */
void endpoints_free(struct endpoints *endpoints);

#endif
