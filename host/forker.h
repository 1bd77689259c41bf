/* SPDX-License-Identifier: Apache-2.0 */
/* The fork servers: they make a helper again that was lost. The supervisor itself cannot fork once
 * it serves (fence.h).
 *
 * A fork server is a helper that waits for the order to fork another helper, which becomes a child
 * of the supervisor (CLONE_PARENT). It is a copy of the supervisor from before the first client,
 * with the descriptors of the launcher, so it can make every kind of helper, and a second fork
 * server. There are two: if one is lost, the other makes it again. If both are lost at once, then
 * the next lost helper ends the service.
 *
 * A supervisor that was taken over can order helpers and nothing else: an order is the number of a
 * kind.
 */
#ifndef HOST_FORKER_H
#define HOST_FORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct event_base;
struct helper;

/* Forks the fork servers. To be called before a client's first byte is read, when helper_plan was
 * called for every kind. keep: the n descriptors that helpers need which are made later. 0 or
 * -errno. */
int forkers_start(const int *keep, size_t n);

/* on_lost is called from the loop when a helper is needed and no fork server is left. */
void forkers_watch(struct event_base *base, void (*on_lost)(void *arg), void *arg);

/* The process of one of them, 0 or 1. */
pid_t forker_pid(unsigned int which);

/* Ends the fork servers. To be called after the helpers have ended, and before the base is freed.
 * Does nothing if there are none. */
void forkers_stop(void);

/* For a helper that has ended, or has broken its protocol, or does not answer (error: -errno). Logs
 * the loss, kills what is left of the helper, and has it made again. Until then socket is -1.
 * on_made is called from the loop when the helper has a new process and socket. A helper that
 * cannot be made is tried again for ever, with a pause that grows to some seconds. If no fork
 * server was started, as in unit tests, this process forks it. */
void helper_renew(struct helper *helper, struct event_base *base, int error,
		  void (*on_made)(void *arg), void *arg);

/* Has a fork server an order that it has not answered? It may have made a child that is not known
 * as a helper yet. */
bool helper_is_being_made(void);

/* To be called by on_made, or later: the new helper works. */
void helper_is_back(struct helper *helper);

/* As helper_end, for a helper that may be about to be made again. */
void helper_done(struct helper *helper);

/* ---- for forker_process.c, the side in the fork server ---- */

/* The descriptors that a fork server keeps. */
struct forker_keeps {
	size_t n;
	int fd[];
};

/* A fork server: a helper_live_fn. keeps: struct forker_keeps. Serves orders on socket, until the
 * supervisor closes its end. */
_Noreturn void forker_live(const void *keeps, int socket, pid_t supervisor);

#endif
