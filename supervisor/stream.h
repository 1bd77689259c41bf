/* SPDX-License-Identifier: Apache-2.0 */
/* Streams: one connected client each, its buffers and bounds; and the set of them.
 *
 * What a client can make us hold is bounded three times: per stream, per uid, and by the
 * number of streams. A stream that does not read its answers is not read from any more,
 * and is closed when that goes on.
 *
 * A line of JSONRPC_LONG bytes or more waits for its turn among those of all tenants, and the
 * lines after it wait behind it. Meanwhile the stream is not read from.
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

#define STREAM_OUTPUT_HIGH (1024 * 1024)	/* bytes unsent: stop reading requests */
#define STREAM_OUTPUT_LOW (256 * 1024)		/* read again */
#define STREAM_OUTPUT_MAX (64 * 1024 * 1024)	/* bytes unsent: close */
#define STREAM_STALL_S 30			/* without reading, while above HIGH: close */
#define STREAM_LINGER_S 5			/* for a refused client to stop writing */
#define TENANT_BUFFERED_MAX (256 * 1024 * 1024)	/* bytes, both ways and of calls in flight, all
						 * streams of a uid; and one line more */

/* All borrowed, and outlive the set. */
struct stream_options {
	struct loop *loop;
	struct mcp *mcp;
	struct engine *engine;
	const struct config *config;
	struct gate *gate;		/* NULL: no quotas */
	struct rota *rota;		/* for long lines */
};

struct stream_set *stream_set_new(const struct stream_options *options);

/* Closes all streams at once; what they have in flight is cancelled. NULL is fine. */
void stream_set_free(struct stream_set *set);

/* Serves a client. in and out may be the same descriptor, and are non-blocking; the stream
 * closes them, unless borrow is set. -EUSERS when there are too many streams in all,
 * -EDQUOT when this uid has too many: the descriptors are then still the caller's. */
int stream_open(struct stream_set *set, int in, int out, bool borrow, uid_t uid);

/* Reads no more; each stream is closed when its calls in flight have been answered and the
 * answers sent. */
void stream_set_drain(struct stream_set *set);

size_t stream_set_count(const struct stream_set *set);

/* on_empty is called from the loop each time the last stream is gone. */
void stream_set_on_empty(struct stream_set *set, void (*on_empty)(void *arg), void *arg);

#endif
