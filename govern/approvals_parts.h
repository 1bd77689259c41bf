/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of approvals, for its files: approvals.c, approvals_load.c.
 */
#ifndef GOVERN_APPROVALS_PARTS_H
#define GOVERN_APPROVALS_PARTS_H

#include <sys/queue.h>

#include "base/own.h"
#include "govern/approvals.h"
#include "govern/approvals_file.h"
#include "govern/writer.h"

struct event;

struct approval_watcher {
	LIST_ENTRY(approval_watcher) link;
	void (*on_decided)(void *arg, const struct approval_decision *decision);
	void *arg;
};

/* The requests of one tenant: what one has costs others no time. */
struct approvals_tenant {
	LIST_ENTRY(approvals_tenant) link;
	char *name;
	TAILQ_HEAD(approvals_of_tenant, approval) list;	/* the oldest first; not empty */
};

struct approval {
	TAILQ_ENTRY(approval) link;
	TAILQ_ENTRY(approval) of_tenant;
	LIST_ENTRY(approval) by_id;
	struct approvals_tenant *place;
	char id[APPROVAL_ID_MAX + 1];
	char *tenant, *tool, *reason;	/* reason NULL: none */
	char **item;
	size_t n_items;
	bool once;
	json_t *shown;
	size_t shown_bytes;		/* as JSON */
	int64_t created, expires;	/* seconds since the epoch */
	int64_t due;			/* when it expires, of clock_boot_s() */
	enum approval_state state;
	bool over;			/* granted, but used up or revoked */
	unsigned int changes;		/* that the writer has; unless it is 0, it is not freed */
	char *by, *why;			/* of the decision; NULL: none */
	int64_t decided;
	int64_t denied_until;		/* refused: until then the same request is denied; 0: it is
					 * not denied */
	int64_t denied_due;		/* the same, of clock_boot_s(): setting the clock ends no
					 * denial */
	LIST_HEAD(, approval_watcher) watchers;
};

/* What the writer does: appends lines, or replaces the file. */
struct approvals_change {
	struct writing writing;
	struct approvals *approvals;
	char *text;			/* NULL: only looks at the file */
	bool whole;			/* the text is that of a new file */
	int error;
	struct approval *used;		/* the text uses up its grant; NULL: it does not */
	struct writing_wait *wait;	/* NULL: nothing waits for it */
};

#define APPROVALS_BUCKETS 1024	/* a power of two */

struct approvals {
	TAILQ_HEAD(approval_list, approval) all;	/* oldest first */
	LIST_HEAD(, approvals_tenant) tenants[APPROVALS_BUCKETS];
	LIST_HEAD(, approval) ids[APPROVALS_BUCKETS];
	uint64_t shown_bytes;		/* that all of them show */
	int64_t next_due;		/* of clock_boot_s(): no request expires before */
	unsigned int busy;		/* functions on the stack that have a pointer to a request;
					 * unless it is 0, no request is freed */
	size_t forgotten;		/* requests that were forgotten since the file was last
					 * rewritten */
	struct approvals_policy policy;
	struct audit *audit;
	struct event_base *base;
	struct event *timer;
	struct event *look;		/* at the file */
	struct approvals_file file;	/* the writer's, once there is one */
	struct writer *writer;		/* NULL: what changes is written at once */
	bool behind;			/* a new file has to be written: this one has not all that
					 * was changed, or much that is past */
	bool failing;			/* the last write has failed */
	void (*on_change)(void *arg);
	void *on_change_arg;
};

/* Adds a request, as the newest, and removes it. */
void approvals_add(struct approvals *approvals, struct approval *approval);
void approvals_remove(struct approvals *approvals, struct approval *approval);

/* The oldest request of a tenant. NULL: there is none. */
struct approval *approvals_first(const struct approvals *approvals, const char *tenant);

/* Visits the requests of a tenant, the oldest first. */
#define APPROVALS_FOREACH(approval, approvals, tenant) \
	for ((approval) = approvals_first(approvals, tenant); (approval); \
	     (approval) = TAILQ_NEXT(approval, of_tenant))

/* The request with this id. NULL: there is none, or id is NULL. */
struct approval *approvals_find(const struct approvals *approvals, const char *id);

/* Notes a decision. Its texts are copied. */
void approval_set_decided(struct approval *approval, const struct approval_decision *decision);

/* May the request get this state: is it not decided, or a refusal that is turned into a grant? */
bool approval_is_open_for(const struct approval *approval, enum approval_state state);
void approval_free(struct approval *approval);

/* The request as JSON, for people and programs. all: with the shown object. */
json_t *approval_describe(const struct approval *approval, bool all);

/* The lines of the file: for a new request, and for a decision. */
json_t *approvals_line_ask(const struct approval *approval);
json_t *approvals_line_decide(const char *id, const struct approval_decision *decision);

/* The text of a new file with what is known. Malloc'd. */
char *approvals_whole(const struct approvals *approvals);

/* Reads the file, and rewrites it. 0, or -errno with why_r. */
int approvals_load(struct approvals *approvals, const char *path, struct why *why_r);

#endif
