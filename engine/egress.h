/* mcp-python-egress as the supervisor sees it: started when the first execution may have a
 * network, told what each one may do, started again (later each time that it fails), and
 * ended when it was not used for a while. Fails closed: without it there is no way out.
 */
#ifndef ENGINE_EGRESS_H
#define ENGINE_EGRESS_H

#include <stdint.h>
#include <sys/types.h>

struct config_network;
struct egress;
struct egress_grant;
struct engine_observer;
struct event_base;
struct launcher;
struct msg_egress_open;
struct survey_egress;

struct egress_options {
	struct event_base *base;		/* all borrowed */
	struct launcher *launcher;
	const struct engine_observer *observer;	/* hears of connections; NULL: none */
};

/* Starts nothing yet. NULL: no memory. */
struct egress *egress_new(const struct egress_options *options);

/* Kills the process at once. No grant may be left. NULL is fine. */
void egress_free(struct egress *egress);

/* What operators see of it. */
void egress_look(const struct egress *egress, struct survey_egress *egress_r);

pid_t egress_pid(const struct egress *egress);	/* 0: there is none now */

/* ---- what an execution may do ---- */

/* A copy of what a configuration says, in one piece: free(). NULL: it allows nothing. */
struct msg_egress_open *egress_terms(const struct config_network *network);

/* Grants it. terms (borrowed), id and tenant live as long as the grant. NULL and *why_r
 * (until the next call): there is no proxy now. */
struct egress_grant *egress_grant_new(struct egress *egress, uint64_t execution,
				      const char *id, const char *tenant,
				      const struct msg_egress_open *terms,
				      const char **why_r);

/* The worker's listening socket; it belongs to the grant from the call on. 0 or -errno:
 * then it has been closed, which the script sees as a refused connection. */
int egress_grant_listen(struct egress_grant *grant, int fd);

/* The execution is over. Its last reports may still come. NULL is fine. */
void egress_grant_end(struct egress_grant *grant);

#endif
