/* SPDX-License-Identifier: Apache-2.0 */
/* The operators' socket: JSON lines, with one answer for each request, for users that policy
 * admits. Only the kernel identifies a peer.
 *
 *   {"do":"list","all":BOOL}  {"do":"show","id":ID}  {"do":"status"}
 *   {"do":"approve","id":ID}  {"do":"deny","id":ID,"reason":TEXT}  {"do":"revoke","id":ID}
 *   {"do":"watch"}            a list now and after each change
 *   {"do":"metrics"}          OpenMetrics text, as a string
 *   {"do":"executions"}       those that run or wait
 *   {"do":"stop","id":ID}     stops an execution, or closes a session
 *   {"do":"tools"}  {"do":"describe-tool","server":NAME,"tool":NAME}
 *   {"do":"call-tool","server":NAME,"tool":NAME,"arguments":OBJECT}
 *
 * Answers are {"ok":true, ...} or {"ok":false,"error":TEXT}. Users who are not operators may list
 * and decide the requests that policy allows them, and see only their own status.
 */
#ifndef SUPERVISOR_OPERATE_ADMIN_H
#define SUPERVISOR_OPERATE_ADMIN_H

#define ADMIN_SOCKETS 2		/* systemd's and our own */

struct admin;
struct engine;
struct event_base;
struct gate;
struct operation;

struct admin_options {
	struct event_base *base;	/* borrowed */
	struct gate *gate;		/* borrowed */
	const struct operation *operation;	/* borrowed */
	struct engine *engine;	/* borrowed */
	int fd[ADMIN_SOCKETS];		/* listening; taken over. -1: none */
};

/* Serves operators. NULL: there is no socket. */
struct admin *admin_new(const struct admin_options *options);
void admin_free(struct admin *admin);	/* NULL is fine */

#endif
