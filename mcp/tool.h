/* SPDX-License-Identifier: Apache-2.0 */
/* A tool as MCP sees it. A tool has a description. It can be run, and each run ends with one answer
 * or one failure.
 *
 * A tool does not know JSON-RPC, revisions or sessions; MCP does not know what a tool does. A run
 * reports everything through its host: output, progress, log lines, questions, that it becomes a
 * task, its answer or its failure. Reading a resource and getting a prompt are runs, too.
 * mcp/catalog.h has the list of tools.
 */
#ifndef MCP_TOOL_H
#define MCP_TOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include "base/jsonout.h"
#include "engine/execution.h"

struct config;
struct engine;
struct event_base;
struct gate;
struct tenant;
struct tool_run;
struct upstream_server;

/* ---- icons, for clients that show them ---- */

enum icon {
	ICON_NONE,
	ICON_SERVER,
	ICON_RUN,		/* runs a script */
	ICON_SESSION,		/* runs a cell in a session */
	ICON_CHECK,		/* checks a script without running it */
	ICON_PACKAGE,
	ICON_ENVIRONMENT,	/* lists what exists */
	ICON_JOB,		/* for jobs that run in the background */
	ICON_COUNT
};

#define ICON_TYPE "image/svg+xml"

/* An SVG document, static; NULL for ICON_NONE. As a URI an icon has less than 400 bytes, because
 * lists of tools are sent often. */
const char *icon_svg(enum icon icon);

/* ---- description ---- */

enum tool_task {
	TOOL_TASK_NEVER,
	TOOL_TASK_MAY,		/* a run may become a task: on_task */
	TOOL_TASK_MUST,		/* every run becomes a task; a modern client that cannot have tasks
				 * is refused, and a legacy client is served without a task */
};

/* The description of a tool for clients. The schemas are JSON texts on one line. The caller
 * releases it by tool_description_done. */
struct tool_description {
	const char *name;		/* static */
	const char *title;		/* static; NULL: none */
	enum icon icon;
	char *description;		/* for a language model */
	const char *hint;		/* static: a sentence for the server's instructions; NULL:
					 * none */
	char *installed;		/* another part of the instructions: which packages there
					 * are, with a blank before it; NULL: none */
	char *input_schema;
	char *output_schema;		/* NULL: none */
	bool read_only, destructive, idempotent, open_world;	/* hints to clients */
	enum tool_task task;
	const char *view;		/* static: the uri of the page that shows its answers;
					 * NULL: none */
};

void tool_description_done(struct tool_description *description);

/* ---- the reports of a run ---- */

enum content_kind {
	CONTENT_TEXT,		/* text */
	CONTENT_IMAGE,		/* data, mime_type */
	CONTENT_AUDIO,		/* data, mime_type */
	CONTENT_RESOURCE,	/* uri, mime_type, and text (or data, if text is NULL) */
	CONTENT_LINK,		/* uri, name, and the other members if they are known */
};

/* One block. A block of a kind that the revision lacks is described in a text. */
struct content {
	enum content_kind kind;
	const char *text;		/* any bytes; bytes that are not UTF-8 are sent as U+FFFD */
	size_t text_len;
	const void *data;		/* raw; sent as base64 */
	size_t data_len;
	const char *mime_type;		/* NULL: not known (of resources and links) */
	const char *uri, *name;
	const char *meta;		/* of a resource: a JSON object text; NULL: none */
	const char *title, *description;	/* of a link; NULL: none */
	uint64_t size;			/* of a link, bytes; 0: not known */
	const char *role;		/* of a prompt: "user" (NULL) or "assistant" */
};

/* Valid only during on_answer. The content is text (if not NULL), followed by the blocks. */
struct tool_answer {
	const char *structured;		/* a JSON object text that fits output_schema; NULL:
					 * none */
	size_t structured_len;
	const char *text;		/* the answer for people and models; of a prompt: its
					 * description */
	size_t text_len;
	size_t output_at, output_len;	/* the part of text that the run has written itself */
	const struct content *content;
	size_t n_content;
	bool is_error;
	bool not_run;			/* nothing was done, so the same call may be made again */
};

struct tool_progress {
	double progress;		/* must increase; a message whose value does not is left out
					 */
	double total;			/* 0: not known */
	const char *message;		/* NULL: none */
	bool is_note;			/* only the message counts, not the numbers; the call's own
					 * progress messages continue */
};

enum log_level {		/* the levels of MCP */
	LEVEL_DEBUG, LEVEL_INFO, LEVEL_NOTICE, LEVEL_WARNING, LEVEL_ERROR, LEVEL_CRITICAL,
	LEVEL_ALERT, LEVEL_EMERGENCY,
};

struct tool_log {
	enum log_level level;
	const char *logger;		/* NULL: none */
	const char *data;		/* a JSON text, any value, on one line */
};

/* A failure is an error of the protocol, not an answer of the tool. Wrong arguments are not a
 * failure: they give an answer with is_error, which models can act on. */
enum failure_kind {
	FAIL_RPC,		/* a JSON-RPC error with code, message and data */
	FAIL_NO_RESOURCE,	/* text: the uri of the missing resource */
	FAIL_CLIENT_LACKS,	/* lacks: the abilities that the tool needs and the client lacks */
};

struct tool_failure {
	enum failure_kind kind;
	int code;			/* with FAIL_RPC */
	const char *text;		/* message, or uri; UTF-8 */
	const char *data;		/* with FAIL_RPC: a JSON text; NULL: none */
	unsigned int lacks;		/* with FAIL_CLIENT_LACKS: enum client_ability */
};

/* ---- questions ---- */

/* The abilities that the client of a run has declared for this request; bits. */
enum client_ability {
	CLIENT_ELICITS = 1,		/* it shows forms to its user */
	CLIENT_SAMPLES = 2,
	CLIENT_HAS_ROOTS = 4,
	CLIENT_TAKES_TASKS = 8,
	CLIENT_HAS_TOOLS = 16,		/* it has tools for scripts to call */
	CLIENT_SHOWS_VIEWS = 32,	/* it shows pages that come with tools */
	CLIENT_SHOWS_OUTPUT = 64,	/* it asks for all output of this call as it is written */
};

enum question_kind {
	QUESTION_ELICIT,		/* needs CLIENT_ELICITS */
	QUESTION_SAMPLE,		/* needs CLIENT_SAMPLES */
	QUESTION_ROOTS,			/* needs CLIENT_HAS_ROOTS */
	QUESTION_TOOL,			/* a call of one of the client's tools; needs
					 * CLIENT_HAS_TOOLS */
};

#define QUESTIONS_MAX 16		/* open at the same time */
#define QUESTION_KEY_MAX 64		/* bytes */
#define TOOL_STATE_MAX 4096		/* bytes */

/* Copied by on_ask. */
struct tool_question {
	const char *key;		/* of the characters A-Z a-z 0-9 _ - . ; unique in a run */
	enum question_kind kind;
	const char *message;		/* QUESTION_ELICIT: what the user is asked */
	const char *schema;		/* QUESTION_ELICIT: requestedSchema, a JSON object text */
	const char *params;		/* other kinds: params, a JSON object text; NULL: none */
	size_t most;			/* QUESTION_TOOL: the most bytes that the result may have */
};

enum reply_action {
	REPLY_ACCEPT,
	REPLY_DECLINE,
	REPLY_CANCEL,			/* or there was no answer in time */
};

/* A reply to a question. Valid only during the call of reply. */
struct tool_reply {
	const char *key;
	enum reply_action action;	/* for all kinds except forms: REPLY_ACCEPT, or
					 * REPLY_CANCEL for an error */
	const json_t *content;		/* with REPLY_ACCEPT. QUESTION_ELICIT: the form's values,
					 * which fit the schema; NULL: none. QUESTION_TOOL:
					 * {"status", "body"}, in the form of shape_result
					 * (policy/shape.h). Other kinds: the result, with any
					 * content */
};

/* ---- the run ---- */

/* The environment of one run, and its callbacks. After on_answer or on_fail the run has ended, and
 * none of these may be called any more. All may be called from within start. */
struct tool_host {
	struct engine *engine;
	struct tenant *tenant;
	struct gate *gate;		/* NULL: everything is allowed */
	const struct config *config;	/* of the tenant; call config_hold to keep it */
	struct event_base *base;
	const char *job;		/* the handle of the job that the run is; NULL: none */
	unsigned int client;		/* the client's abilities: enum client_ability */
	const struct upstream_server *client_tools;	/* the tools that the client has declared;
						 * NULL: none */

	/* Takes raw output as it arrives. NULL: output is not wanted. */
	void (*on_output)(void *arg, enum stream stream, const char *bytes, size_t len);
	/* Send a progress message, and a log line. They may be dropped if the client is slow. The
	 * texts are copied. */
	void (*on_progress)(void *arg, const struct tool_progress *progress);
	void (*on_log)(void *arg, const struct tool_log *log);
	/* Asks the client n questions, 1 to QUESTIONS_MAX. The member reply of struct tool is
	 * called once, later, from the loop, with the replies in the order of the questions. Until
	 * then no further questions may be asked. state: a small text, which reply gets back; NULL:
	 * none. 0, or -EOPNOTSUPP: the client lacks an ability that one of them needs, and nothing
	 * was asked; -EINVAL: the questions break a rule of this header. Questions of the kind
	 * QUESTION_TOOL are independent of each other: more of them may be asked while some are
	 * open, QUESTIONS_MAX in all, and reply is called for those that are answered. */
	int (*on_ask)(void *arg, const struct tool_question *question, size_t n,
		      const char *state);
	/* Takes back a question of the kind QUESTION_TOOL: there will be no reply to it. If the
	 * question was sent to the client, the client is told, as far as its revision allows that.
	 * True: the question was sent to the client. */
	bool (*on_withdraw)(void *arg, const char *key);
	/* Makes the run a task: the client is answered at once and asks for the result later.
	 * status: a text for people, copied; NULL: none. A second call replaces the status. 0; or
	 * an error, after which the run continues without a task: -EOPNOTSUPP: this client cannot
	 * have tasks; -EBUSY: the tenant has too many. */
	int (*on_task)(void *arg, const char *status);
	/* Lets a run that waits for a person go on as a job: its client is answered now, by the
	 * tool's answer_job. waits: what for, as in struct tool, copied. A run that is a job gets
	 * the text; NULL: it waits no more. 0; or an error, and nothing has changed: -EOPNOTSUPP:
	 * this call is to have no job; -EBUSY: the tenant has too many; -EAGAIN: no client can be
	 * told now. */
	int (*on_job)(void *arg, const char *waits);
	/* Will anybody get the structured content of an answer that is given now? NULL: yes. */
	bool (*wants_structured)(void *arg);
	/* Exactly one of these two is called, once. */
	void (*on_answer)(void *arg, const struct tool_answer *answer);
	void (*on_fail)(void *arg, const struct tool_failure *failure);
	void *arg;
};

/* What a tool says of itself, as in struct tool_description; static. */
struct tool_text {
	const char *title, *description, *hint, *input_schema, *output_schema;
	enum icon icon;
	bool read_only, destructive, idempotent, open_world;
	enum tool_task task;
};

struct tool {
	const char *name;
	/* The key of [policy] that says whether it may be called; NULL: it is always allowed. */
	const char *policy;
	/* Is the tool listed for a tenant with this configuration? NULL: always. */
	bool (*is_there)(const struct config *config);
	/* Answers by host->on_answer, in the tool's own form, that the call was refused and nothing
	 * was done. reason: a status such as TOOL_DENIED. If this member is NULL, the answer is
	 * only the text. */
	void (*refuse)(const char *reason, const char *text, const struct tool_host *host);
	/* Answers the caller that the run waits for a person, and goes on as a job. job: the host
	 * of the run from now on; the tool takes it over. run NULL: it has not started. If this
	 * member is NULL, runs do not become jobs by themselves. */
	void (*answer_job)(struct tool_run *run, const struct tool_host *job, const char *waits,
			   const struct tool_host *caller);
	/* A run that takes longer than task_after_seconds becomes a task with this status text, if
	 * its client takes tasks. NULL: it does not. */
	const char *long_status;
	const char *view;		/* as in struct tool_description */
	/* What it says of itself in every configuration. description NULL: describe says it. */
	struct tool_text says;
	/* Fills in *description_r, with the limits in force. NULL, and nothing in says: it is not
	 * listed as a tool. */
	void (*describe)(const struct config *config, struct tool_description *description_r);
	/* Starts a run. host is copied; arguments (an object) are borrowed for this call only.
	 * Returns the run, or NULL if it has answered already. */
	struct tool_run *(*start)(const struct tool_host *host, const json_t *arguments);
	/* Ends a run that has not answered; it may not call its host any more. */
	void (*cancel)(struct tool_run *run, enum cancel_reason reason);
	/* The resources that the script of the run uses now; false: no script runs. NULL: the tool
	 * never runs a script. */
	bool (*uses)(struct tool_run *run, struct execution_now *now_r);
	/* What the run waits for while it has not begun: a text for people, such as "waits for ...".
	 * False: for nothing. NULL: the tool never waits. */
	bool (*waits)(struct tool_run *run, char *text_r, size_t size);
#define TOOL_WAITS_MAX 192
	/* Takes the replies to on_ask. NULL: the tool never asks. */
	void (*reply)(struct tool_run *run, const struct tool_reply *reply, size_t n,
		      const char *state);
	/* The tool asks before it has any lasting effect. So if the service is restarted while the
	 * question is open, the call can simply be made again. */
	bool asks_first;
	/* Returns the key in the arguments by which a call that is sent again is recognized, so
	 * that it is not run twice (mcp/repeat.h); NULL: these arguments have none. The text is
	 * borrowed from the arguments, and not checked. If this member is NULL, the tool has no
	 * such key. */
	const char *(*once)(const json_t *arguments);
	/* Resolves references in the arguments, such as addresses of files, before a person is
	 * asked for permission: returns arguments that name the content that each of them has now,
	 * and the run has to refuse another one. for_people: they also say more about that content,
	 * and what else the call works on that is not part of the permission. The arguments are not
	 * checked. If this member is NULL, the tool has no references. */
	json_t *(*bind)(const struct tool_host *host, const json_t *arguments, bool for_people);
};

/* Describes a tool that is listed: by its describe, or by what it says. */
void tool_describe(const struct tool *tool, const struct config *config,
		   struct tool_description *description_r);

/* Answers that nothing was done: an error with only this text. */
void tool_refuse(const struct tool_host *host, const char *text);

/* An answer that is being written. */
struct tool_writer {
	const struct tool_host *host;
	struct tool_answer answer;	/* its members beside the two texts are the tool's */
	FILE *text;			/* the answer for people and models */
	struct jsonout structured;	/* for programs: an object */
	bool for_programs;		/* anybody gets it: it is to be written */
	char *written;			/* the text, after fflush(text) */
};

/* Begins an answer. host: must last until tool_give(). */
void tool_write(struct tool_writer *writer, const struct tool_host *host);

/* Answers with what was written: calls host->on_answer once. An empty text means that the
 * structured form is the text, too. */
void tool_give(struct tool_writer *writer);

/* An argument of tools with answer_job; false: the call is not to become a job. */
#define BACKGROUND_ARGUMENT "background"

/* Statuses of calls that policy did not allow. */
#define TOOL_DENIED "denied"
#define TOOL_APPROVAL_PENDING "approval_pending"
#define TOOL_QUOTA_EXCEEDED "quota_exceeded"
#define TOOL_AUDIT_UNAVAILABLE "audit_unavailable"

#endif
