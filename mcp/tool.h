/* SPDX-License-Identifier: Apache-2.0 */
/* A tool as the MCP side sees it: a description, and runs that end in one answer each.
 *
 * A tool knows nothing of JSON-RPC, revisions or sessions; the MCP side knows nothing of
 * what a tool does. All that a run says goes through its host: content, progress,
 * log lines, questions, that it will take long (a task), failure. Reading a resource and
 * getting a prompt are runs of the same kind. Which tools there are: mcp/catalog.h.
 */
#ifndef MCP_TOOL_H
#define MCP_TOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "engine/execution.h"
#include "mcp/icon.h"

struct config;
struct engine;
struct event_base;
struct gate;
struct tenant;
struct tool_run;
struct upstream_server;

/* ---- description ---- */

enum tool_task {
	TOOL_TASK_NEVER,
	TOOL_TASK_MAY,		/* a run may say so: on_task */
	TOOL_TASK_MUST,		/* every run is one; a modern client that cannot have tasks is
				 * refused, legacy ones are served as if it were none */
};

/* The description of a tool for clients; the schemas are JSON texts on one line.
 * Owned by the caller: tool_description_done. */
struct tool_description {
	const char *name;		/* static */
	const char *title;		/* static; NULL: none */
	enum icon icon;
	char *description;		/* for a language model */
	const char *hint;		/* static: a sentence for the server's instructions; NULL */
	char *installed;		/* for them too: which packages there are, with a blank
					 * before it; NULL */
	char *input_schema;
	char *output_schema;		/* NULL: none */
	bool read_only, destructive, idempotent, open_world;	/* hints to clients */
	enum tool_task task;
};

void tool_description_done(struct tool_description *description);

/* ---- what a run says ---- */

enum content_kind {
	CONTENT_TEXT,		/* text */
	CONTENT_IMAGE,		/* data, mime_type */
	CONTENT_AUDIO,		/* data, mime_type */
	CONTENT_RESOURCE,	/* uri, mime_type, and text, or data when text is NULL */
	CONTENT_LINK,		/* uri, name, and what is known of the rest */
};

/* One block. Blocks that a revision lacks are shown as the next best thing. */
struct content {
	enum content_kind kind;
	const char *text;		/* any bytes; what is not UTF-8 is sent as U+FFFD */
	size_t text_len;
	const void *data;		/* raw; sent as base64 */
	size_t data_len;
	const char *mime_type;		/* NULL: not known (of resources and links) */
	const char *uri, *name;
	const char *title, *description;	/* of a link; NULL: none */
	uint64_t size;			/* of a link, bytes; 0: not known */
	const char *role;		/* of a prompt: "user" (NULL) or "assistant" */
};

/* Valid only during on_answer. Content is text, when it is not NULL, and then the blocks. */
struct tool_answer {
	const char *structured;		/* a JSON object text that fits output_schema; NULL:
					 * none */
	size_t structured_len;
	const char *text;		/* the same for readers; of a prompt: its description */
	size_t text_len;
	const struct content *content;
	size_t n_content;
	bool is_error;
	bool not_run;			/* nothing was done: the same call may be made again */
};

struct tool_progress {
	double progress;		/* must increase; what does not is left out */
	double total;			/* 0: not known */
	const char *message;		/* NULL: none */
	bool is_note;			/* a message beside the call's own progress: the numbers are
					 * not used */
};

enum log_level {		/* as MCP has them */
	LEVEL_DEBUG, LEVEL_INFO, LEVEL_NOTICE, LEVEL_WARNING, LEVEL_ERROR, LEVEL_CRITICAL,
	LEVEL_ALERT, LEVEL_EMERGENCY,
};

struct tool_log {
	enum log_level level;
	const char *logger;		/* NULL: none */
	const char *data;		/* a JSON text, any value, on one line */
};

/* A failure that is no answer of the tool but of the protocol. Arguments that do not fit
 * are none: they are an answer with is_error, which models can act on. */
enum failure_kind {
	FAIL_RPC,		/* a JSON-RPC error with code, message and data */
	FAIL_NO_RESOURCE,	/* text: the uri of the missing resource */
	FAIL_CLIENT_LACKS,	/* the work cannot go on without these abilities of a client */
};

struct tool_failure {
	enum failure_kind kind;
	int code;			/* with FAIL_RPC */
	const char *text;		/* message, or uri; UTF-8 */
	const char *data;		/* with FAIL_RPC: a JSON text; NULL: none */
	unsigned int lacks;		/* with FAIL_CLIENT_LACKS: enum client_ability */
};

/* ---- questions ---- */

/* What the client of a run has declared for this very request; bits. */
enum client_ability {
	CLIENT_ELICITS = 1,		/* forms to its user */
	CLIENT_SAMPLES = 2,
	CLIENT_HAS_ROOTS = 4,
	CLIENT_TAKES_TASKS = 8,
	CLIENT_HAS_TOOLS = 16,		/* that scripts call */
};

enum question_kind {
	QUESTION_ELICIT,		/* needs CLIENT_ELICITS, and so on */
	QUESTION_SAMPLE,
	QUESTION_ROOTS,
	QUESTION_TOOL,			/* a call of one of the client's tools */
};

#define QUESTIONS_MAX 16		/* at once */
#define QUESTION_KEY_MAX 64		/* bytes */
#define TOOL_STATE_MAX 4096		/* bytes */

/* Copied by on_ask. */
struct tool_question {
	const char *key;		/* of A-Z a-z 0-9 _ - . ; never used twice in a run */
	enum question_kind kind;
	const char *message;		/* QUESTION_ELICIT: what the user is asked */
	const char *schema;		/* QUESTION_ELICIT: requestedSchema, a JSON object text */
	const char *params;		/* the others: params, a JSON object text; NULL: none */
	size_t most;			/* QUESTION_TOOL: bytes of a result */
};

enum reply_action {
	REPLY_ACCEPT,
	REPLY_DECLINE,
	REPLY_CANCEL,			/* or there was no answer in time */
};

/* Valid only during the call of reply. */
struct tool_reply {
	const char *key;
	enum reply_action action;	/* of all but forms: ACCEPT, or CANCEL for an error */
	const json_t *content;		/* with ACCEPT: the form's values, which fit its schema
					 * (NULL: none), or the result, whatever is in it;
					 * of QUESTION_TOOL {"status", "body"}, as
					 * shape_result has made them */
};

/* ---- the run ---- */

/* What one run works with, and whom it talks to. After on_answer or on_fail the run is
 * over, and none of these may be called any more; all may be called from within start. */
struct tool_host {
	struct engine *engine;
	struct tenant *tenant;
	struct gate *gate;		/* NULL: everybody may do everything */
	const struct config *config;	/* the tenant's own; config_hold to keep it */
	struct event_base *base;
	unsigned int client;		/* enum client_ability */
	const struct upstream_server *client_tools;	/* with CLIENT_HAS_TOOLS: as the client
						 * has declared them; NULL: none */
	bool is_task;			/* it became one before it started: TOOL_TASK_MUST */

	/* Output as it comes, raw bytes. NULL: it is not wanted. */
	void (*on_output)(void *arg, enum stream stream, const char *bytes, size_t len);
	/* These two may be left out for the client; the texts are copied. */
	void (*on_progress)(void *arg, const struct tool_progress *progress);
	void (*on_log)(void *arg, const struct tool_log *log);
	/* Asks the client, 1..QUESTIONS_MAX questions at once; the tool's reply is called
	 * later, once, from the loop, with a reply to each in the same order. state: a small
	 * text for the tool, handed back with the replies; NULL: none. One ask at a time.
	 * 0, or -EOPNOTSUPP: the client lacks what one of them needs, and nothing was asked;
	 * -EINVAL: they break one of the rules above. */
	int (*on_ask)(void *arg, const struct tool_question *question, size_t n,
		      const char *state);
	/* From here on the run is a task: the client is answered at once and looks in later.
	 * status: for people, copied; NULL: none. Said again it renews the status text.
	 * -EOPNOTSUPP: this client cannot have one (the run goes on as it is); -EBUSY: the
	 * tenant has too many, likewise. */
	int (*on_task)(void *arg, const char *status);
	/* One of them, once. */
	void (*on_answer)(void *arg, const struct tool_answer *answer);
	void (*on_fail)(void *arg, const struct tool_failure *failure);
	void *arg;
};

struct tool {
	const char *name;
	/* The key of [policy] that says whether it may be called; NULL: it may. */
	const char *policy;
	/* Whether it is listed for a tenant with this configuration. NULL: always. */
	bool (*is_there)(const struct config *config);
	/* Answers, as on_answer, that nothing was done, in the form that its answers have. reason:
	 * a status such as TOOL_DENIED. NULL: text alone. */
	void (*refuse)(const char *reason, const char *text, const struct tool_host *host);
	/* What the status says of a run that has become a task because it takes long (longer
	 * than task_after_seconds), if its client takes tasks. NULL: its time makes it none. */
	const char *long_status;
	/* Fills *description_r from the limits in force. NULL: of what is not listed as a
	 * tool. */
	void (*describe)(const struct config *config, struct tool_description *description_r);
	/* Starts a run; host is copied, arguments (an object) are borrowed for this call only.
	 * Returns the run, or NULL when the answer was already given. */
	struct tool_run *(*start)(const struct tool_host *host, const json_t *arguments);
	/* Ends a run that has not answered; nothing of its host may be called any more. */
	void (*cancel)(struct tool_run *run, enum cancel_reason reason);
	/* What its script uses now; false: none runs. NULL: it runs none. */
	bool (*uses)(struct tool_run *run, struct execution_now *now_r);
	/* The replies to on_ask. NULL: it never asks. */
	void (*reply)(struct tool_run *run, const struct tool_reply *reply, size_t n,
		      const char *state);
	/* It asks before it has done anything that lasts: with the process gone that asked, the
	 * call can as well be made again. */
	bool asks_first;
	/* The key by which a call that is sent again is known to be the same one, so that it
	 * is not run twice; NULL when these arguments have none. NULL: it knows no such. The
	 * text is borrowed from the arguments, and not checked. */
	const char *(*once)(const json_t *arguments);
};

/* Answers with nothing but text, as an error: nothing was done. */
void tool_refuse(const struct tool_host *host, const char *text);

/* Statuses of what policy did not allow. */
#define TOOL_DENIED "denied"
#define TOOL_APPROVAL_PENDING "approval_pending"
#define TOOL_QUOTA_EXCEEDED "quota_exceeded"
#define TOOL_AUDIT_UNAVAILABLE "audit_unavailable"

#endif
