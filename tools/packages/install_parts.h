/* SPDX-License-Identifier: Apache-2.0 */
/* An installation from inside: what its modules share. install.c finds out what there is to
 * install; install_build.c has what is built from source for that; install_decide.c whether it may
 * be; install_make.c makes it.
 */
#ifndef TOOLS_PACKAGES_INSTALL_PARTS_H
#define TOOLS_PACKAGES_INSTALL_PARTS_H

#include "govern/audit.h"
#include "tools/packages/install.h"

#define INSTALL_MESSAGE_MAX 3000	/* bytes */
#define INSTALL_SOURCES_MAX 20		/* packages that are built for one installation */
#define INSTALL_INDEX_SECONDS 15	/* for an answer of an index */

struct consent;
struct environment_ask;
struct event;
struct program;
struct taking;

/* A package without a wheel, and the one that was built. */
struct source {
	json_t *package;		/* as in the set, with the hash of the source */
	json_t *wheel;			/* {"file", "hash"}; NULL: not yet */
	int fd;				/* the wheel's */
};

struct install {
	struct tool_host host;
	install_done *done;
	void *arg;
	json_t *requirements, *indexes;
	json_t *urls;			/* of direct references */
	char *reason;
	bool may_ask;
	struct consent *consent;	/* NULL: no consent is needed */
	const char *profile;
	struct event *begin;
	struct environment_ask *ask;	/* one of these two at most */
	struct program *program;
	struct taking *taking;
	char *platform, *python;
	json_t *set;			/* what it comes to */
	json_t *links;			/* where its wheels are, by name; NULL: not known */
	char request[SET_NAME + 1], name[SET_NAME + 1];
	int compiler;			/* a socket for the worker that compiles; -1: none */
	bool taken;			/* the keeper is done with it */
	int take_error;
	struct source source[INSTALL_SOURCES_MAX];
	size_t n_sources;
	int archive;			/* of the source that is found next; -1: none */
	char *words;			/* of a failed program */
	char *take_text;
};

/* ---- install.c ---- */

/* It is over, and freed: done is called. */
void install_finish(struct install *install, const struct install_result *result);

/* The same as an error, in our words; or in those of a worker, or about its end. */
void install_fail(struct install *install, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void install_fail_of_outcome(struct install *install, const struct outcome *outcome,
			     const char *what, const char *words);

/* In the audit log: the set, with what it may come to; or else more, which is consumed. */
void install_record(const struct install *install, enum audit_event event, const char *why);
void install_record_more(const struct install *install, enum audit_event event, json_t *more);

/* Finds out what the requirements come to. */
void install_resolve(struct install *install);

/* It has its set. cached: without having to make it. */
void install_succeed(struct install *install, bool cached);

/* ---- install_make.c ---- */

/* Makes its set. */
void install_make(struct install *install);

/* ---- install_build.c ---- */

void install_build_init(struct install *install);
void install_build_done(struct install *install);

/* Does policy let its tenant have something built? */
bool install_may_build(const struct install *install);

/* A socket for a resolver: the file for a source lies in it, and all wheels. 0 or -errno. */
int install_build_channel(struct install *install, int *channel_r);

/* The wheels alone, into a socket, unless there are none. 0 or -errno. */
int install_hand_wheels(const struct install *install, int to);

/* Their description for programs, in order: [{"file", "hash", "package"}]. */
json_t *install_built(const struct install *install);

/* Is this package of a set what was built? */
bool install_was_built(const struct install *install, const json_t *package);

/* Is what the set says was built what was built? */
bool install_knows_built(const struct install *install);

/* Builds what a resolver said it needs, and resolves again. outcome: that resolver's. */
void install_build(struct install *install, const json_t *said,
		   const struct outcome *outcome);

/* ---- install_decide.c ---- */

/* It is over: policy, or the person asked, refuses its set. */
void install_deny(struct install *install, const char *why);

/* May its tenant have exactly this set? Goes on with it, asks, or ends it. */
void install_decide(struct install *install);

#endif
