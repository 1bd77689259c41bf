/* SPDX-License-Identifier: Apache-2.0 */
/* Lets operators list executions, stop an execution, close a session, and suspend a tenant. Each
 * request is answered at once. An execution that is stopped ends later, as if its client had
 * cancelled it.
 */
#ifndef SUPERVISOR_OPERATE_RUNNING_H
#define SUPERVISOR_OPERATE_RUNNING_H

#include <stdbool.h>

#include <jansson.h>

struct audit;
struct engine;
struct gate;
struct why;

/* The answer to {"do":"executions"}: the executions that run or wait, at most RUNNING_LISTED of
 * them, each with the first line of its script. */
#define RUNNING_LISTED 1024
json_t *running_list(const struct engine *engine);

/* Obeys {"do":"stop","id":WORD}. WORD is the id of an execution, the handle of a session, or a
 * beginning that only one of them has; a handle may be shortened by "...". by: the operator's
 * principal, for the audit log, to which the record is written first. Returns the answer; or NULL
 * with why_r: there is none or more than one, or the record cannot be written. */
json_t *running_stop(struct engine *engine, struct audit *audit, const char *by,
		     const json_t *request, struct why *why_r);

/* suspend: obeys {"do":"suspend","tenant":PRINCIPAL}: stops the executions of this tenant, refuses
 * further ones, and ends its signed links. Otherwise obeys {"do":"resume","tenant":PRINCIPAL}:
 * accepts executions again. by and the result: as for running_stop. */
json_t *running_suspend(struct engine *engine, struct gate *gate, const char *by,
			const json_t *request, bool suspend, struct why *why_r);

/* The answer to {"do":"suspended"}: the principals. */
json_t *running_suspended(struct gate *gate);

#endif
