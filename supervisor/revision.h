/* The revisions of the Model Context Protocol: the one place that knows how they differ.
 *
 * Legacy revisions open with a handshake that binds the stream; a modern one is named in
 * the envelope of every request. What is written here carries exactly the fields that the
 * revision's column allows.
 */
#ifndef SUPERVISOR_REVISION_H
#define SUPERVISOR_REVISION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct jsonout;
struct tool_answer;
struct tool_description;

/* Keys of the modern envelope, in params._meta of a request. */
#define META_VERSION "io.modelcontextprotocol/protocolVersion"
#define META_CLIENT_CAPABILITIES "io.modelcontextprotocol/clientCapabilities"
#define META_CLIENT_INFO "io.modelcontextprotocol/clientInfo"
#define META_LOG_LEVEL "io.modelcontextprotocol/logLevel"
#define META_SERVER_INFO "io.modelcontextprotocol/serverInfo"

/* Our own: a client that wants a script's output as it comes (supervisor/mcp_progress.h). */
#define META_STREAM "mcp-pythond/stream"
#define META_OUTPUT "mcp-pythond/output"

enum mcp_code {
	MCP_UNSUPPORTED_VERSION = -32022,
};

enum mcp_method {
	METHOD_INITIALIZE,
	METHOD_PING,
	METHOD_DISCOVER,
	METHOD_TOOLS_LIST,
	METHOD_TOOLS_CALL,
	METHOD_NOTE_INITIALIZED,
	METHOD_NOTE_CANCELLED,
	METHOD_UNKNOWN,
};

struct revision {
	const char *name;		/* as on the wire */
	bool modern;
	bool batches;			/* an array line is answered by an array */
	bool tool_annotations;
	bool titles;			/* of tools and implementations */
	bool structured;		/* outputSchema and structuredContent */
	bool about;			/* description and more of an implementation */
	bool progress_message;
};

/* NULL when it is none of ours. */
const struct revision *revision_find(const char *name);

/* What a legacy client that asks for name gets: that one, or our newest legacy one. */
const struct revision *revision_negotiate(const char *name);

/* A method or notification by its name, of whatever revision; what a given one lacks is
 * METHOD_UNKNOWN to it. */
enum mcp_method method_find(const char *name);
bool revision_has(const struct revision *revision, enum mcp_method method);

/* The list of modern revisions as JSON text, static; legacy ones cannot be used there. */
const char *revision_modern_list(void);

/* Results, each one JSON object. instructions: a hint for models. */
void revision_write_initialized(const struct revision *revision, struct jsonout *out,
				const char *instructions);
void revision_write_discovered(const struct revision *revision, struct jsonout *out,
			       const char *instructions);
void revision_write_empty(const struct revision *revision, struct jsonout *out);
void revision_write_tools(const struct revision *revision, struct jsonout *out,
			  const struct tool_description *tools, size_t n_tools);
void revision_write_answer(const struct revision *revision, struct jsonout *out,
			   const struct tool_answer *answer);

/* One notifications/progress. */
struct progress_note {
	const char *token;		/* JSON text as the client gave it */
	uint64_t progress;
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
