/* Approvals from inside.
 */
#ifndef GOVERN_APPROVALS_PARTS_H
#define GOVERN_APPROVALS_PARTS_H

#include <sys/queue.h>

#include "base/own.h"
#include "govern/approvals.h"

struct event;

struct approval_watcher {
	LIST_ENTRY(approval_watcher) link;
	void (*on_decided)(void *arg, enum approval_state state, const char *reason);
	void *arg;
};

struct approval {
	TAILQ_ENTRY(approval) link;
	char id[APPROVAL_ID_MAX + 1];
	char *tenant, *tool, *reason;	/* reason NULL: none */
	char **item;
	size_t n_items;
	bool once;
	json_t *shown;
	size_t shown_bytes;		/* as JSON */
	int64_t created, expires;	/* seconds since the epoch */
	enum approval_state state;
	bool over;			/* granted, but used up or revoked */
	char *by, *why;			/* of the decision; NULL: none */
	int64_t decided;
	LIST_HEAD(, approval_watcher) watchers;
};

struct approvals {
	TAILQ_HEAD(, approval) all;	/* oldest first */
	struct approvals_policy policy;
	struct audit *audit;
	struct event *timer;
	int fd;				/* of the file; -1: none */
	void (*on_change)(void *arg);
	void *on_change_arg;
};

int64_t approvals_now(void);

/* Ends those whose time has come, and waits for the next one. */
void approvals_expire(struct approvals *approvals);

void approval_set_decided(struct approval *approval, enum approval_state state, const char *by,
			  const char *why, int64_t at);
void approval_free(struct approval *approval);

/* For people and programs; all: with what is shown. */
json_t *approval_describe(const struct approval *approval, bool all);

/* Lines of the file. */
json_t *approvals_line_ask(const struct approval *approval);
json_t *approvals_line_decide(const char *id, enum approval_state state, const char *by,
			      const char *why, int64_t at);

/* Reads the file, and puts a new one in its place. */
int approvals_load(struct approvals *approvals, const char *path, struct why *why_r);

#endif
