/* SPDX-License-Identifier: Apache-2.0 */
/* Progress notifications of a running call, for a client that gave a progress token.
 *
 * A notification has the newest line of the output, a few times a second. A client that also sets
 * "mcp-pythond/stream" in the request's _meta gets the output itself: each notification then
 * carries, in its own _meta,
 *
 *   "mcp-pythond/output": {"stream": "stdout", "offset": 0, "text": "..."}
 *
 * offset counts the bytes of the stream's text, as UTF-8, before this piece. Only the first
 * stream_max bytes of each stream are sent in this way. Pieces may be missing if the client is
 * slow; the answer still has them.
 */
#ifndef MCP_PROGRESS_H
#define MCP_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "engine/execution.h"

struct event_base;
struct jsonout;
struct mcp_progress;
struct revision;
struct tool_progress;

struct mcp_progress_options {
	struct event_base *base;
	const struct revision *revision;
	const json_t *token;		/* a string or an integer; used only during the call */
	bool streams;
	size_t stream_max;		/* how many bytes of each stream are sent, if it streams */
	/* Sends a whole notification. Called from the loop. */
	void (*send)(void *arg, struct jsonout *message);
	/* The resources that the script uses now; false: no script runs. NULL: they are not known.
	 */
	bool (*uses)(void *arg, struct execution_now *now_r);
	/* What the call waits for; false: for nothing. NULL: it never waits. */
	bool (*waits)(void *arg, char *text_r, size_t size);
	void *arg;
};

struct mcp_progress *mcp_progress_new(const struct mcp_progress_options *options);
void mcp_progress_free(struct mcp_progress *progress);	/* NULL is fine */

/* Takes raw output as it arrives. Nothing is sent during this call. */
void mcp_progress_output(struct mcp_progress *progress, enum stream stream,
			 const char *bytes, size_t len);

/* Sends a progress message of the tool at once. From then on no other progress messages are sent
 * for the call, unless said->is_note. */
void mcp_progress_say(struct mcp_progress *progress, const struct tool_progress *said);

/* Sends the waiting output of a streaming call. To be called before a question or the answer is
 * sent, so that the order is kept. NULL is fine. */
void mcp_progress_finish(struct mcp_progress *progress);

#endif
