/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of an installation, for its modules. install.c resolves the requirements,
 * install_build.c builds packages from source, install_decide.c decides whether the resolved set is
 * allowed, and install_make.c makes the set in the store.
 */
#ifndef TOOLS_PACKAGES_INSTALL_PARTS_H
#define TOOLS_PACKAGES_INSTALL_PARTS_H

#include "govern/audit.h"
#include "tools/packages/install.h"

#define INSTALL_MESSAGE_MAX 3000	/* bytes */
#define INSTALL_SOURCES_MAX 20		/* packages that are built for one installation */
#define INSTALL_INDEX_SECONDS 15	/* the time that an index has to answer */

struct consent;
struct environment_ask;
struct event;
struct program;
struct taking;

/* A package without a wheel, and the wheel that was built. */
struct source {
	json_t *package;		/* as in the set, with the hash of the source */
	json_t *wheel;			/* {"file", "hash"}; NULL: not yet */
	int fd;				/* of the wheel's file */
};

struct install {
	struct tool_host host;
	install_done *done;
	void *arg;
	json_t *requirements, *indexes;
	json_t *urls;			/* of direct references */
	char *reason;
	bool fills;			/* as in the request */
	json_t *has;
	struct consent *consent;	/* NULL: no consent is needed */
	const struct approval *approval;	/* valid while it is asked for */
	const char *profile;
	struct event *begin;
	struct environment_ask *ask;	/* ask and program: at most one of them is not NULL */
	struct program *program;
	struct taking *taking;
	char *platform, *python;
	json_t *set;			/* the result of resolving the requirements */
	json_t *advisories;		/* about the set; NULL: none */
	json_t *links;			/* the urls of the set's wheels, by name; NULL: not known */
	char request[SET_NAME + 1], name[SET_NAME + 1];
	int compiler;			/* a socket for the worker that compiles; -1: none */
	bool taken;			/* the keeper has finished, with take_error */
	int take_error;
	struct source source[INSTALL_SOURCES_MAX];
	size_t n_sources;
	int archive;			/* a file for the next source that a resolver finds; -1:
					 * none */
	char *words;			/* the installer's own, after a failure of a program */
	char *take_text;
};

/* ---- install.c ---- */

/* Ends the installation: calls done and frees it. */
void install_finish(struct install *install, const struct install_result *result);

/* End the installation with an error. The first: with a message of the service. The second: with
 * the words of a worker's program, or, if there are none, with the message of its outcome. If the
 * worker ended abnormally, the message of its outcome comes first, then the words. */
void install_fail(struct install *install, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void install_fail_of_outcome(struct install *install, const struct outcome *outcome,
			     const char *what, const char *words);

/* Write a record to the audit log. The first: about the set, with the verdict in why. The second:
 * with the members of more, which is freed. */
void install_record(const struct install *install, enum audit_event event, const char *why);
void install_record_more(const struct install *install, enum audit_event event, json_t *more);

/* Resolves the requirements. */
void install_resolve(struct install *install);

/* Ends the installation with its set. cached: the set existed already. */
void install_succeed(struct install *install, bool cached);

/* ---- install_make.c ---- */

/* Makes the set of the installation in the store, and then ends the installation. */
void install_make(struct install *install);

/* ---- install_build.c ---- */

void install_build_init(struct install *install);
void install_build_done(struct install *install);

/* May packages be built from source for the installation's tenant? */
bool install_may_build(const struct install *install);

/* Makes a socket for a resolver, and sends descriptors into it: of a file for a source, and of all
 * wheels. 0 or -errno. */
int install_build_channel(struct install *install, int *channel_r);

/* Sends only the descriptors of the wheels into a socket, if there are any. 0 or -errno. */
int install_hand_wheels(const struct install *install, int to);

/* The description of the wheels for programs, in the order in which they are sent: [{"file",
 * "hash", "package"}]. */
json_t *install_built(const struct install *install);

/* Was this package of a set built by the installation? */
bool install_was_built(const struct install *install, const json_t *package);

/* Has the installation built every package that its set marks as built? */
bool install_knows_built(const struct install *install);

/* Builds the source that a resolver has asked for, and resolves the requirements again. said: the
 * resolver's answer; outcome: the resolver's. */
void install_build(struct install *install, const json_t *said,
		   const struct outcome *outcome);

/* ---- install_decide.c ---- */

/* Ends the installation, because policy or a person refuses its set. */
void install_deny(struct install *install, const char *why);

/* Decides whether the tenant may have exactly this set: makes the set, asks a person, or ends the
 * installation. */
void install_decide(struct install *install);

#endif
