/* SPDX-License-Identifier: Apache-2.0 */
/* One zygote as the supervisor sees it. The supervisor starts it, asks it for workers, and starts
 * it again when it has ended: at once if it had been ready, otherwise after a delay that doubles up
 * to a minute.
 *
 * All workers of one zygote process share its secrets: the hash seed, the stack's canary, the
 * layout of memory. So a process that has made workers is renewed after a time: another process is
 * started beside it, and takes its place when it is ready. Each process has a number, its
 * generation.
 *
 *     first   STARTING ──> SERVING ───────────────────────────> ended when it owes no answer
 *     second                   renewal: STARTING ──> SERVING: takes the place of the first
 *                                           └─ fails: tried again later; the first continues
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

/* How many SPAWN messages may be unanswered at the same time. The caller must hold back further
 * requests. */
#define ZYGOTE_SPAWNS_MAX 4

/* Calls to its owner, from the loop. */
struct zygote_watcher {
	void (*on_ready)(void *arg);
	/* The process ended or was killed before it was ready; another start is planned. */
	void (*on_failed)(void *arg, int error, const char *text);
	/* The process of this generation was ready and has ended. SPAWNs that it has not answered
	 * get no answer. */
	void (*on_lost)(void *arg, uint64_t generation);
	/* A new process has taken the place of the old one; the workers of earlier generations are
	 * stale. */
	void (*on_renewed)(void *arg);
	/* pidfd belongs to the callee. */
	void (*on_spawned)(void *arg, uint64_t worker, pid_t pid, int pidfd);
	void (*on_spawn_failed)(void *arg, uint64_t worker, int error,
				const char *text);
	/* After zygote_stop: all processes are reaped. */
	void (*on_stopped)(void *arg);
	void *arg;
};

struct zygote_options {
	struct event_base *base;			/* all borrowed */
	struct launcher *launcher;
	const struct config_profile *profile;
	unsigned int index;			/* the profile's */
	bool rests;				/* it is not started before zygote_learn */
	bool early;				/* its first process is bare (policy/learnable.h) */
	uint32_t renew_seconds;			/* 0: never renewed */
	struct zygote_watcher watcher;
};

/* Starts the zygote. 0, or -errno for lack of memory only; on_failed reports a failed start. */
int zygote_new(const struct zygote_options *options, struct zygote **zygote_r);

/* Kills the zygote at once and waits for its end. No callback is called. NULL is fine. */
void zygote_free(struct zygote *zygote);

/* Kills the zygote, which is not started again. on_stopped is called from the loop, once. */
void zygote_stop(struct zygote *zygote);

/* Replaces the zygote's process by a new one before its renewal is due, because the host or the
 * profile has changed. */
void zygote_renew(struct zygote *zygote);

/* Makes it learn modules (a mask, policy/learnable.h): starts it if it rests, otherwise renews it.
 * If the process ends before it is ready, another one is started, which tries each module first.
 * To be called only if zygote_may_learn: no process is being started or ended. */
void zygote_learn(struct zygote *zygote, uint64_t modules);
bool zygote_may_learn(const struct zygote *zygote);

/* The learned modules that its workers have; 0 while it is not ready. */
uint64_t zygote_learned(const struct zygote *zygote);

/* Modules that it was to learn and could not; forgotten at each renewal. */
uint64_t zygote_refused(const struct zygote *zygote);

/* Why it could not learn this module when it tried last, "NAME: reason"; NULL: it did not try, or
 * has learned it. Valid until the next turn of the loop. module: less than LEARNABLE_MAX. */
const char *zygote_reason(const struct zygote *zygote, size_t module);

/* Kills its processes. No callback follows, and nothing is started again before zygote_learn. */
void zygote_rest(struct zygote *zygote);

bool zygote_is_ready(const struct zygote *zygote);
pid_t zygote_pid(const struct zygote *zygote);	/* 0: there is no process now */

/* The generation of the process that makes workers now. */
uint64_t zygote_generation(const struct zygote *zygote);

/* Is the process of this generation alive at this moment? Its end may not have been reported yet.
 */
bool zygote_is_alive(const struct zygote *zygote, uint64_t generation);

/* Kills the process of this generation. Another one is started. False: it has ended already. */
bool zygote_kill(struct zygote *zygote, uint64_t generation);

/* Is there a SPAWN without an answer? */
bool zygote_owes(const struct zygote *zygote);

/* Why the zygote is down after a failure; NULL: it is not. Valid until the next start. */
const char *zygote_trouble(const struct zygote *zygote);

uint32_t zygote_landlock_abi(const struct zygote *zygote);

/* The names of well-known modules that its scripts can import, "numpy, pandas"; "": not known.
 * The text changes when a new process takes the old one's place. */
const char *zygote_packages(const struct zygote *zygote);

/* The Python of the last process that was ready; "" before that. Platform: the kind of interpreter,
 * for which sets of packages are made ("cpython-3.11-linux-x86_64"). Extension: the ending of the
 * file names of its extension modules (".cpython-311-x86_64-linux-gnu.so"). */
const char *zygote_platform(const struct zygote *zygote);
const char *zygote_extension(const struct zygote *zygote);

/* The number of workers that may be asked for now (zygote_spawn). */
unsigned int zygote_room(const struct zygote *zygote);

/* Asks the current process for a worker with this serial. The worker's network may be one that
 * another worker of the same owner has used. fd: the worker's ends of its control socket, standard
 * output and standard error, which belong to the zygote from now on. If n_fds is 4 and not 3, fd[3]
 * is the worker's leaf, which stays with the caller. 0, or -errno: no answer follows. */
int zygote_spawn(struct zygote *zygote, uint64_t worker, uint64_t owner, uint32_t uid,
		 const int *fd, size_t n_fds);

/* To be called when a worker of that generation is reaped: frees its network. keep: the network is
 * kept, because its owner will need it again. */
void zygote_free_network(struct zygote *zygote, uint64_t generation, uint64_t worker, bool keep);

/* Drops the networks of an owner that needs no workers now. */
void zygote_drop_networks(struct zygote *zygote, uint64_t owner);

#endif
