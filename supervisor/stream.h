/* SPDX-License-Identifier: Apache-2.0 */
/* Streams, and the set of all streams. A stream is the connection of one client, with its buffers
 * and its bounds.
 *
 * Memory for clients has bounds for each stream, each uid and all uids, and by the number of
 * streams. If a client does not read its answers, its stream is not read from, and is closed after
 * a while.
 *
 * A line of JSONRPC_LONG bytes or more waits for its turn among the long lines of all tenants.
 * Meanwhile the lines after it wait, too, and the stream is not read from.
 */
#ifndef SUPERVISOR_STREAM_H
#define SUPERVISOR_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct config;
struct engine;
struct gate;
struct loop;
struct mcp;
struct rota;
struct stream_set;

#define STREAM_OUTPUT_HIGH (1024 * 1024)	/* if more bytes are unsent, no request is read */
#define STREAM_OUTPUT_LOW (256 * 1024)		/* if fewer bytes are unsent, requests are read
						 * again */
#define STREAM_OUTPUT_MAX (64 * 1024 * 1024)	/* if more bytes are unsent, the stream is closed */
#define STREAM_STALL_S 30			/* if the client reads nothing for this time while
						 * the output is above HIGH, the stream is closed */
#define STREAM_LINGER_S 5			/* the time that a refused client has to stop
						 * writing */
#define TENANT_BUFFERED_MAX (256 * 1024 * 1024)	/* bytes of all streams of a uid: unread,
						 * unsent, and of calls in flight. The longest
						 * line is allowed in addition */

/* All are borrowed, and must outlive the set. */
struct stream_options {
	struct loop *loop;
	struct mcp *mcp;
	struct engine *engine;
	const struct config *config;
	struct gate *gate;		/* NULL: no quotas */
	struct rota *rota;		/* for long lines */
	size_t buffered_max;		/* the same of all uids; 0: a quarter of the machine's
					 * memory (base/fair.h). Beyond it the uid with the most
					 * loses its fullest stream */
};

struct stream_set *stream_set_new(const struct stream_options *options);

/* Closes all streams at once; their calls in flight are cancelled. NULL is fine. */
void stream_set_free(struct stream_set *set);

/* Serves a client. in and out may be the same descriptor, and must be non-blocking; the stream
 * closes them, unless borrow is set. 0; -EUSERS: there are too many streams in total; -EDQUOT: this
 * uid has its share (base/fair.h) or its bound. If there is no place, and another uid has two or
 * more streams more, the one that has been idle longest of the uid with the most is closed. After
 * an error the descriptors still belong to the caller. */
int stream_open(struct stream_set *set, int in, int out, bool borrow, uid_t uid);

/* Stops reading; each stream is closed when its calls in flight were answered and the answers were
 * sent. */
void stream_set_drain(struct stream_set *set);

size_t stream_set_count(const struct stream_set *set);

/* From now on on_empty is called from the loop each time the last stream has closed. */
void stream_set_on_empty(struct stream_set *set, void (*on_empty)(void *arg), void *arg);

#endif
