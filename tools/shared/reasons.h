/* SPDX-License-Identifier: Apache-2.0 */
/* Statuses of answers without an outcome: why a call was not run, or that it runs in the
 * background. (The statuses of outcomes are in engine/execution.h, those of policy in mcp/tool.h.)
 */
#ifndef TOOLS_SHARED_REASONS_H
#define TOOLS_SHARED_REASONS_H

#define RUN_INVALID_ARGUMENTS "invalid_arguments"
#define RUN_DEPENDENCY_UNAVAILABLE "dependency_unavailable"
#define RUN_PYTHON_UNAVAILABLE "python_unavailable"
#define RUN_NO_SESSION "no_session"		/* this and the next three: of run_repl only */
#define RUN_NO_CHECKPOINT "no_checkpoint"
#define RUN_SESSION_LIMIT "session_limit"
#define RUN_SESSION_BUSY "session_busy"
#define RUN_TOO_MANY_JOBS "too_many_jobs"
#define RUN_RUNNING "running"			/* in the background */

#endif
