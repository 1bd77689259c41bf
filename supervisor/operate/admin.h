/* SPDX-License-Identifier: Apache-2.0 */
/* The operators' socket: JSON lines, with one answer for each request, for users that policy
 * admits. Only the kernel identifies a peer.
 *
 *   {"do":"list","all":BOOL}  {"do":"show","id":ID}  {"do":"status"}
 *   {"do":"approve","id":ID,"for_run":BOOL}  {"do":"deny","id":ID,"reason":TEXT}
 *   {"do":"revoke","id":ID}
 *   {"do":"watch"}            sends a list of requests now, and after each change
 *   {"do":"metrics"}          gives OpenMetrics text, as a string
 *   {"do":"executions"}       lists the executions that run or wait
 *   {"do":"stop","id":ID}     stops an execution, or closes a session
 *   {"do":"suspend","tenant":PRINCIPAL}  {"do":"resume","tenant":PRINCIPAL}  {"do":"suspended"}
 *   {"do":"tools"}  {"do":"describe-tool","server":NAME,"tool":NAME}
 *   {"do":"call-tool","server":NAME,"tool":NAME,"arguments":OBJECT}
 *   {"do":"packages"}         lists sets of packages
 *   {"do":"remove-packages","set":NAME,"tenant":PRINCIPAL}
 *
 * Answers are {"ok":true, ...} or {"ok":false,"error":TEXT}. Users who are not operators can list
 * and decide requests for approval as far as policy allows them to, and can see only their own
 * status, and their own sets of packages, which they can remove.
 */
#ifndef SUPERVISOR_OPERATE_ADMIN_H
#define SUPERVISOR_OPERATE_ADMIN_H

#include "supervisor/operate/governance.h"

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

/* Begins to serve the sockets. NULL: there is no socket. */
struct admin *admin_new(const struct admin_options *options);
void admin_free(struct admin *admin);	/* NULL is fine */

#endif
