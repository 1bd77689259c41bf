/* SPDX-License-Identifier: Apache-2.0 */
/* The tool job: follows runs that were started in the background (tools/job/background.h).
 */
#ifndef TOOLS_JOB_JOB_H
#define TOOLS_JOB_JOB_H

#include "mcp/tool.h"

#define JOB_WAIT_MAX 300		/* seconds */
#define JOB_WAIT_STANDARD 20
#define JOB_OUTPUT_MAX 65536		/* bytes of output in one answer */

extern const struct tool job_tool;

#endif
