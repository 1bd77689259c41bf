/* The tool job: follows runs that were started in the background (tools/background.h).
 */
#ifndef SUPERVISOR_TOOLS_JOB_H
#define SUPERVISOR_TOOLS_JOB_H

#include "supervisor/tools/tool.h"

#define JOB_WAIT_MAX 300		/* seconds */
#define JOB_WAIT_STANDARD 20
#define JOB_OUTPUT_MAX 65536		/* bytes told at once */

extern const struct tool job_tool;

#endif
