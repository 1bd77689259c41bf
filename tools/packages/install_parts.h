/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of an installation, for its modules. install.c resolves the requirements;
 * install_build.c builds packages from source; install_decide.c decides whether the set is allowed;
 * install_make.c makes it.
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

/* A package without a wheel, and the wheel that was built. */
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
	json_t *set;			/* what it resolves to */
	json_t *links;			/* the urls of its wheels, by name; NULL: not known */
	char request[SET_NAME + 1], name[SET_NAME + 1];
	int compiler;			/* a socket for the worker that compiles; -1: none */
	bool taken;			/* the keeper has finished with it */
	int take_error;
	struct source source[INSTALL_SOURCES_MAX];
	size_t n_sources;
	int archive;			/* the file of the source that is found next; -1: none */
	char *words;			/* of a failed program */
	char *take_text;
};

/* ---- install.c ---- */

/* Ends it: calls done and frees it. */
void install_finish(struct install *install, const struct install_result *result);

/* Ends it with an error: in the service's words, in those of a worker, or about the worker's end.
 */
void install_fail(struct install *install, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void install_fail_of_outcome(struct install *install, const struct outcome *outcome,
			     const char *what, const char *words);

/* Writes a record to the audit log: about the set, with the verdict; or with the members of more,
 * which is freed. */
void install_record(const struct install *install, enum audit_event event, const char *why);
void install_record_more(const struct install *install, enum audit_event event, json_t *more);

/* Resolves the requirements. */
void install_resolve(struct install *install);

/* Ends it with its set. cached: the set existed already. */
void install_succeed(struct install *install, bool cached);

/* ---- install_make.c ---- */

/* Makes its set. */
void install_make(struct install *install);

/* ---- install_build.c ---- */

void install_build_init(struct install *install);
void install_build_done(struct install *install);

/* May its tenant have packages built? */
bool install_may_build(const struct install *install);

/* Makes a socket for a resolver, with the file for a source and all wheels in it. 0 or -errno. */
int install_build_channel(struct install *install, int *channel_r);

/* Sends only the wheels into a socket, if there are any. 0 or -errno. */
int install_hand_wheels(const struct install *install, int to);

/* The description of the wheels for programs, in order: [{"file", "hash", "package"}]. */
json_t *install_built(const struct install *install);

/* Is this package of a set one that was built? */
bool install_was_built(const struct install *install, const json_t *package);

/* Are the packages that the set calls built exactly those that were built? */
bool install_knows_built(const struct install *install);

/* Builds the source that a resolver asked for, and resolves again. outcome: that of the resolver.
 */
void install_build(struct install *install, const json_t *said,
		   const struct outcome *outcome);

/* ---- install_decide.c ---- */

/* Ends it, because policy or a person refuses its set. */
void install_deny(struct install *install, const char *why);

/* Decides whether its tenant may have exactly this set: continues, asks a person, or ends it. */
void install_decide(struct install *install);

#endif
