/* SPDX-License-Identifier: Apache-2.0 */
/* What operators see of executions, and how they stop one, or close a session. Each request is
 * answered at once; what is stopped ends later, as if its client had cancelled it.
 */
#ifndef SUPERVISOR_OPERATE_RUNNING_H
#define SUPERVISOR_OPERATE_RUNNING_H

#include <jansson.h>

struct audit;
struct engine;
struct why;

/* The answer to {"do":"executions"}: those that run and wait, at most RUNNING_LISTED of them, each
 * with its first line of text. */
#define RUNNING_LISTED 1024
json_t *running_list(const struct engine *engine);

/* The answer to {"do":"stop","id":WORD}: WORD is the id of an execution or a session, or the beginning
 * of only one; a session's may end with "...". by: the operator's principal, for the audit log,
 * which has the record first. NULL with why_r: there is none or more than one, or there can be no
 * record. */
json_t *running_stop(struct engine *engine, struct audit *audit, const char *by,
		     const json_t *request, struct why *why_r);

#endif
