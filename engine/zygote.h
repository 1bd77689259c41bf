/* One zygote as the supervisor sees it: started, asked for workers, started again when it
 * ends. A zygote that fails before it is ready is started again after a
 * delay that doubles up to a minute; one that was ready at once.
 *
 * All workers of one process have its secrets: that of hashes, the stack's canary, where memory
 * lies. So a process that has made workers is renewed after a time: another one is started beside
 * it, and takes its place when it is ready. Each process has a number, its generation.
 *
 *       now  STARTING ──> SERVING ─────────────────────> ended when it owes no answer
 *     other                   renewed: STARTING ──> SERVING: becomes now
 *                                          └─ fails: tried again later; now goes on
 *
 * The launcher starts it and tells it its profile (host/launcher.h).
 */
#ifndef ENGINE_ZYGOTE_H
#define ENGINE_ZYGOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct config_profile;
struct event_base;
struct launcher;
struct zygote;

/* SPAWNs that may be unanswered at once; more wait with their caller. */
#define ZYGOTE_SPAWNS_MAX 4

/* What its owner hears. Called from the loop. */
struct zygote_watcher {
	void (*on_ready)(void *arg);
	/* It ended or was ended before it was ready; another start is planned. */
	void (*on_failed)(void *arg, int error, const char *text);
	/* The process of that number was ready and is gone. No answer comes for what was
	 * asked of it. */
	void (*on_lost)(void *arg, uint64_t generation);
	/* Another process has taken its place; the workers of all earlier ones are stale. */
	void (*on_renewed)(void *arg);
	/* pidfd belongs to the callee. */
	void (*on_spawned)(void *arg, uint64_t worker, pid_t pid, int pidfd);
	void (*on_spawn_failed)(void *arg, uint64_t worker, int error,
				const char *text);
	/* After zygote_stop: it is reaped. */
	void (*on_stopped)(void *arg);
	void *arg;
};

struct zygote_options {
	struct event_base *base;			/* all borrowed */
	struct launcher *launcher;
	const struct config_profile *profile;
	unsigned int index;			/* the profile's */
	uint32_t renew_seconds;			/* 0: never renewed */
	struct zygote_watcher watcher;
};

/* Starts it. 0 or -errno: only for lack of memory; a failed start is reported by on_failed. */
int zygote_new(const struct zygote_options *options, struct zygote **zygote_r);

/* Kills it at once and waits for it; no callback comes. NULL is fine. */
void zygote_free(struct zygote *zygote);

/* Kills it for good; on_stopped follows from the loop, once. */
void zygote_stop(struct zygote *zygote);

bool zygote_is_ready(const struct zygote *zygote);
pid_t zygote_pid(const struct zygote *zygote);	/* 0: there is none now */

/* The number of the process that workers come from. */
uint64_t zygote_generation(const struct zygote *zygote);

/* Whether the process of that number still lives, however long the news of its end may take to
 * come. */
bool zygote_is_alive(const struct zygote *zygote, uint64_t generation);

/* Kills it, if it lives; another is started. False: it does not. */
bool zygote_kill(struct zygote *zygote, uint64_t generation);

/* Whether it owes an answer about a worker that it was asked for. */
bool zygote_owes(const struct zygote *zygote);

/* Whether pid is one of its processes. */
bool zygote_has(const struct zygote *zygote, pid_t pid);

/* Why it is down after a failure, or NULL. Lives until the next start. */
const char *zygote_trouble(const struct zygote *zygote);

uint32_t zygote_landlock_abi(const struct zygote *zygote);

/* The names of well-known modules that its scripts can import, "numpy, pandas"; "": none is known.
 * Lives as long as the zygote, and changes when its process does. */
const char *zygote_packages(const struct zygote *zygote);

/* Of the Python of the last process that was ready; "" before. The kind of interpreter that sets
 * of packages are made for ("cpython-3.11-linux-x86_64"), and how the names of its extension modules
 * end (".cpython-311-x86_64-linux-gnu.so"). */
const char *zygote_platform(const struct zygote *zygote);
const char *zygote_extension(const struct zygote *zygote);

/* How many SPAWNs it would take now. */
unsigned int zygote_room(const struct zygote *zygote);

/* Asks for a worker, of this generation. The n_fds descriptors (3, or 4 with the leaf) belong to
 * the zygote from now on, but for the last one of 4, which is duplicated. 0 or -errno; then
 * there is no answer. */
int zygote_spawn(struct zygote *zygote, uint64_t worker, uint32_t uid, const int *fd,
		 size_t n_fds);

#endif
