/* Sessions: one connected client each, its buffers and bounds; and the set of them.
 *
 * What a client can make us hold is bounded three times: per session, per uid, and by the
 * number of sessions. A session that does not read its answers is not read from any more,
 * and is closed when that goes on.
 *
 * A line of JSONRPC_LONG bytes or more waits for its turn among those of all tenants, and the
 * lines after it wait behind it. Meanwhile the session is not read from.
 */
#ifndef SUPERVISOR_SESSION_H
#define SUPERVISOR_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct config;
struct engine;
struct gate;
struct loop;
struct mcp;
struct rota;
struct session_set;

#define SESSION_OUTPUT_HIGH (1024 * 1024)	/* bytes unsent: stop reading requests */
#define SESSION_OUTPUT_LOW (256 * 1024)		/* read again */
#define SESSION_OUTPUT_MAX (64 * 1024 * 1024)	/* bytes unsent: close */
#define SESSION_STALL_S 30			/* without reading, while above HIGH: close */
#define SESSION_LINGER_S 5			/* for a refused client to stop writing */
#define TENANT_BUFFERED_MAX (256 * 1024 * 1024)	/* bytes, both ways and of calls in flight, all
						 * sessions of a uid; and one line more */

/* All borrowed, and outlive the set. */
struct session_options {
	struct loop *loop;
	struct mcp *mcp;
	struct engine *engine;
	const struct config *config;
	struct gate *gate;		/* NULL: no quotas */
	struct rota *rota;		/* for long lines */
};

struct session_set *session_set_new(const struct session_options *options);

/* Closes all sessions at once; what they have in flight is cancelled. NULL is fine. */
void session_set_free(struct session_set *set);

/* Serves a client. in and out may be the same descriptor, and are non-blocking; the session
 * closes them, unless borrow is set. -EUSERS when there are too many sessions in all,
 * -EDQUOT when this uid has too many: the descriptors are then still the caller's. */
int session_open(struct session_set *set, int in, int out, bool borrow, uid_t uid);

/* Reads no more; each session is closed when its calls in flight have been answered and the
 * answers sent. */
void session_set_drain(struct session_set *set);

size_t session_set_count(const struct session_set *set);

/* on_empty is called from the loop each time the last session is gone. */
void session_set_on_empty(struct session_set *set, void (*on_empty)(void *arg), void *arg);

#endif
