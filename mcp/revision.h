/* SPDX-License-Identifier: Apache-2.0 */
/* The revisions of the Model Context Protocol. This is the only module that knows how they differ.
 *
 * There are two eras. Legacy revisions begin with a handshake that is valid for the whole stream. A
 * modern revision is named in the envelope of every request. The functions here write exactly the
 * fields that the revision has.
 */
#ifndef MCP_REVISION_H
#define MCP_REVISION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

struct catalog;
struct jsonout;
struct tool_answer;
struct tool_description;
struct tool_failure;
struct tool_log;

/* Keys of the modern envelope, in params._meta of a request. */
#define META_VERSION "io.modelcontextprotocol/protocolVersion"
#define META_CLIENT_CAPABILITIES "io.modelcontextprotocol/clientCapabilities"
#define META_CLIENT_INFO "io.modelcontextprotocol/clientInfo"
#define META_LOG_LEVEL "io.modelcontextprotocol/logLevel"
#define META_SERVER_INFO "io.modelcontextprotocol/serverInfo"
#define META_SUBSCRIPTION "io.modelcontextprotocol/subscriptionId"

/* The extension by which calls may become tasks. */
#define EXTENSION_TASKS "io.modelcontextprotocol/tasks"

/* The extension by which tools have views: pages that a client shows beside their answers. */
#define EXTENSION_VIEWS "io.modelcontextprotocol/ui"
#define VIEW_TYPE "text/html;profile=mcp-app"

/* The extension by which servers have skills: texts that say how to work with their tools. */
#define EXTENSION_SKILLS "io.modelcontextprotocol/skills"

/* An extension of this server: tools that live in the client (mcp/client_tools.h). */
#define EXTENSION_CLIENT_TOOLS "io.github.mcp-pythond/client-tools"
#define METHOD_CLIENT_TOOL EXTENSION_CLIENT_TOOLS "/call"

/* A key of this server: the client wants a script's output as it arrives (mcp/progress.h). */
#define META_STREAM "mcp-pythond/stream"
#define META_OUTPUT "mcp-pythond/output"

enum mcp_code {
	MCP_RESOURCE_NOT_FOUND = -32002,	/* legacy only */
	MCP_CLIENT_LACKS = -32021,
	MCP_UNSUPPORTED_VERSION = -32022,
};

enum mcp_method {
#define METHOD(method, ...) METHOD_##method,
#include "mcp/methods.def"
	METHOD_UNKNOWN,
};

struct revision {
	const char *name;		/* as on the wire */
	bool modern;
	bool batches;			/* an array line is answered by an array */
	bool tool_annotations;
	bool titles;			/* of tools and implementations */
	bool structured;		/* outputSchema and structuredContent */
	bool about;			/* an implementation has a description */
	bool icons;			/* of tools and implementations */
	bool progress_message;
	bool audio;			/* blocks of audio; without it they are described in a text
					 */
	bool links;			/* resource_link; without it links are described in a text
					 */
	bool elicits;			/* elicitation/create exists, as a request to the client */
	bool elicit_mode;		/* elicitation/create has a mode */
	bool event_ids;			/* events of streams over HTTP have ids, by which a stream
					 * can be resumed */
	bool primes;			/* such a stream begins with an event without data, and may
					 * be closed before its end */
};

/* The revision of this name. NULL: it is not known. */
const struct revision *revision_find(const char *name);

/* Is this the name of a revision with a handshake? */
bool revision_is_legacy(const char *name);

/* The revision for a legacy client that asks for name: the legacy revision of this name, or else
 * the newest legacy revision. */
const struct revision *revision_negotiate(const char *name);

/* The revision to use for a client: this one, or the same without structured content. structured:
 * the setting of the configuration (enum config_structured). With "auto", structured content is
 * left out for clients that would show a model nothing else: no pictures, tables or links. client:
 * its name; NULL: not known. */
const struct revision *revision_for_client(const struct revision *revision, uint32_t structured,
					   const char *client);

/* A method or notification by its name. METHOD_UNKNOWN: there is none of this name. */
enum mcp_method method_find(const char *name);

/* Does the revision have this method, and does the catalog offer it? */
bool revision_has(const struct revision *revision, const struct catalog *catalog,
		  enum mcp_method method);

/* The data of the error MCP_UNSUPPORTED_VERSION, a JSON object text, malloc'd. requested: a string,
 * the version that the client asked for. */
char *revision_unsupported(const json_t *requested);

/* The abilities of a client with these capabilities (enum client_ability), by the rules of the
 * revision. capabilities: an object, or NULL. */
unsigned int revision_abilities(const struct revision *revision, const json_t *capabilities);

/* ---- results, each one JSON object ---- */

/* The beginning of a result; its members follow, then jsonout_close(out, '}'). type is only for
 * modern revisions: "complete", "input_required", "task". */
void revision_open_result(const struct revision *revision, struct jsonout *out,
			  const char *type);

/* Writes how long a result may be kept, and by whom. Writes nothing for a legacy revision. */
#define TTL_DISCOVER_MS 3600000
#define TTL_LIST_MS 300000	/* a list changes seldom, for example at a reload */
#define TTL_MOVING_MS 0		/* the result may change at any time */
void revision_write_caching(const struct revision *revision, struct jsonout *out,
			    unsigned int ttl_ms, const char *scope);

/* instructions: a hint for models. */
void revision_write_initialized(const struct revision *revision, struct jsonout *out,
				const struct catalog *catalog, const char *instructions);
void revision_write_discovered(const struct revision *revision, struct jsonout *out,
			       const struct catalog *catalog, const char *instructions);
void revision_write_empty(const struct revision *revision, struct jsonout *out);
void revision_write_tools(const struct revision *revision, struct jsonout *out,
			  const struct tool_description *tools, size_t n_tools, bool views);

/* Writes the answer of a run, as the result of the method that has started it: tools/call,
 * prompts/get or resources/read. */
void revision_write_answer(const struct revision *revision, struct jsonout *out,
			   enum mcp_method method, const struct tool_answer *answer);

/* Writes a failure as a whole answer: an error or, if the revision has no such error, a result of
 * tools/call with isError. */
void revision_write_failure(const struct revision *revision, struct jsonout *out,
			    const char *id_raw, enum mcp_method method,
			    const struct tool_failure *failure);

/* Writes only the error object of a failure: code, message, data. */
void revision_write_error(const struct revision *revision, struct jsonout *out,
			  const struct tool_failure *failure);

/* ---- notifications ---- */

void revision_write_log(struct jsonout *out, const struct tool_log *log);

/* enum log_level by its name; -1: none. */
int revision_log_level(const char *name);

/* One notifications/progress. */
struct progress_note {
	const char *token;		/* JSON text as the client gave it */
	double progress;
	double total;			/* 0: not known */
	const char *message;		/* any bytes */
	size_t message_len;		/* 0: none */
	const char *stream;		/* "stdout" or "stderr"; NULL: no piece of output */
	uint64_t offset;
	const char *text;
	size_t text_len;
};

void revision_write_progress(const struct revision *revision, struct jsonout *out,
			     const struct progress_note *note);

#endif
