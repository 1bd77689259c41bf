/* Where clients come in: the listening sockets, handed over by systemd or opened by
 * ourselves while we still may.
 */
#ifndef SUPERVISOR_PLACES_H
#define SUPERVISOR_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct config;
struct socketfile;
struct why;

#define PLACES_MAX 8
#define PLACE_ADMIN "admin"	/* FileDescriptorName= of what is the operators' alone */

struct place {
	int fd;			/* -1: given away */
	bool http;		/* else byte streams, or: */
	bool metrics;
};

/* What systemd's store of descriptors had (supervisor/handover.h). */
struct places_stored {
	char *name;
	int fd;			/* -1: given away */
};

struct places {
	struct place place[PLACES_MAX];
	size_t n;
	struct socketfile *file, *http_file;
	struct places_stored *stored;
	size_t n_stored;
};

/* What the command line says; NULL: nothing, then the configuration counts. */
struct places_asked {
	const char *socket, *http, *http_socket;
	bool none;		/* only what systemd hands over is taken */
};

/* Opens them, and says so in the log. owner: whom socket files belong to. 0 or -errno with
 * why_r filled; *places_r, to be released by places_free, is set in any case. */
int places_open(const struct places_asked *asked, const struct config *config, uid_t owner,
		struct places **places_r, struct why *why_r);

bool places_have_http(const struct places *places);

/* Closes what was not given away, and removes socket files. NULL is fine. */
void places_free(struct places *places);

#endif
