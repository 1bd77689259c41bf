/* SPDX-License-Identifier: Apache-2.0 */
/* The egress proxy (mcp-python-egress) as the supervisor sees it. It is started for the first
 * execution that may have a network, and ended when it has not been used for a while. If it fails
 * it is started again, after a pause that grows each time. It gets the rules of each execution.
 * Without the proxy no script has a network.
 */
#ifndef ENGINE_EGRESS_H
#define ENGINE_EGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct config;
struct config_network;
struct egress;
struct egress_grant;
struct engine_observer;
struct event_base;
struct launcher;
struct msg_egress_open;

struct egress_options {
	struct event_base *base;		/* all borrowed */
	struct launcher *launcher;
	const struct config *config;		/* as read at the start: its [secret NAME] sections
						 * count */
	const struct engine_observer *observer;	/* hears of connections; NULL: none */
};

/* Starts nothing yet. NULL: no memory. */
struct egress *egress_new(const struct egress_options *options);

/* Kills the process at once. No grant may be left. NULL is fine. */
void egress_free(struct egress *egress);

/* To be called when files of secrets may have changed. If one has, the process is started again
 * with the new contents, and open connections end. */
void egress_renew_credentials(struct egress *egress);

/* The state of the proxy, for operators. */
struct egress_state {
	bool installed;
	const char *state;		/* "down", "starting", "serving", "ending" */
	const char *trouble;		/* NULL: none */
	unsigned int executions;	/* how many executions may use the network now */
};

void egress_look(const struct egress *egress, struct egress_state *state_r);

/* ---- the rights of an execution ---- */

/* The network rules of a configuration as one malloc'd block. NULL: nothing is allowed. */
struct msg_egress_open *egress_terms(const struct config_network *network);

/* Grants an execution the network within terms. terms, id and tenant are borrowed for as long as
 * the grant lives. NULL: there is no proxy now; *why_r is the reason, valid until the next call. */
struct egress_grant *egress_grant_new(struct egress *egress, uint64_t execution,
				      const char *id, const char *tenant,
				      const struct msg_egress_open *terms,
				      const char **why_r);

/* Gives the proxy the worker's listening socket. fd belongs to the grant from now on, also after a
 * failure. 0; or -errno: the socket was closed, so the script's connections are refused. */
int egress_grant_listen(struct egress_grant *grant, int fd);

/* Ends the grant, because its execution has ended. Reports of its last connections may still
 * arrive. True: the proxy has ended meanwhile, and connections were cut or refused. NULL is fine:
 * false. */
bool egress_grant_end(struct egress_grant *grant);

#endif
