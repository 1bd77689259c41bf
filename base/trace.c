/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: any process; only the supervisor turns it on.   Owns: the ids of the last executions. */
#include "base/trace.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"

#define NAMES 1024

enum trace trace_wanted;

static struct {
	uint64_t execution;
	char id[32];
} names[NAMES];

void
trace_begin(enum trace wanted)
{
	trace_wanted = wanted;
}

void
trace_name(uint64_t execution, const char *id)
{
	if (trace_wanted == TRACE_OFF)
		return;
	names[execution % NAMES].execution = execution;
	snprintf(names[execution % NAMES].id, sizeof(names[0].id), "%s", id);
}

void
trace_line(uint64_t execution, const char *format, ...)
{
	const char *id = names[execution % NAMES].id;
	char text[512];
	va_list args;

	if (trace_wanted == TRACE_OFF || (trace_wanted == TRACE_EXECUTIONS && execution == 0))
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (execution == 0)
		log_unlimited("trace", "%s", text);
	else if (names[execution % NAMES].execution == execution)
		log_unlimited("trace", "execution=%s %s", id, text);
	else
		log_unlimited("trace", "execution=%llu %s", (unsigned long long)execution, text);
}
