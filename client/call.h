/* One tools/call of run_script over a connected socket, and its one answer. */
#ifndef CLIENT_CALL_H
#define CLIENT_CALL_H

#include <stddef.h>

#include "client/reply.h"

struct options;
struct script_text;

#define CALL_LINE_MAX ((size_t)64 << 20) /* of an answer, as JSON */

/* The request as one line with its end; owned by the caller (free). stdin_text may be
 * NULL. NULL when an argument is not UTF-8: *bad_arg_r is its index then. */
char *call_request(const struct options *options, const struct script_text *script,
		   const struct script_text *stdin_text, size_t *len_r,
		   size_t *bad_arg_r);

/* Sends the request on fd (non-blocking) and reads until the answer. on_output hears of
 * each piece of output before it; a negative value from it ends the call and is
 * returned. Returns 0 with *answer_r (REPLY_OUTCOME or REPLY_REFUSED; the caller frees
 * it), -ECONNRESET when the connection ended first, -EBADMSG when what came is not
 * understood, or -errno. */
int call_run(int fd, const char *request, size_t len,
	     int (*on_output)(void *arg, const struct reply *piece), void *arg,
	     struct reply *answer_r);

#endif
