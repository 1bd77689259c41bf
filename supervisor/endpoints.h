/* SPDX-License-Identifier: Apache-2.0 */
/* Where clients come in: the listening sockets, handed over by systemd or opened by
 * ourselves while we still may.
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
#define PLACE_ADMIN "admin"	/* FileDescriptorName= of what is the operators' alone */

struct endpoint {
	int fd;			/* -1: given away */
	bool http;		/* else byte streams, or: */
	bool metrics;
};

/* What systemd's store of descriptors had (supervisor/handover.h). */
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

/* What the command line says; NULL: nothing, then the configuration counts. */
struct endpoints_asked {
	const char *socket, *http, *http_socket;
	bool none;		/* only what systemd hands over is taken */
	bool by_hand;		/* the service is not the system's */
};

/* Opens them, and says so in the log. owner: whom socket files belong to. 0 or -errno with
 * why_r filled; *endpoints_r, to be released by endpoints_free, is set in any case. */
int endpoints_open(const struct endpoints_asked *asked, const struct config *config, uid_t owner,
		struct endpoints **endpoints_r, struct why *why_r);

bool endpoints_have_http(const struct endpoints *endpoints);

/* Closes what was not given away, and removes socket files. NULL is fine. */
void endpoints_free(struct endpoints *endpoints);

#endif
