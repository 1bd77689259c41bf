/* SPDX-License-Identifier: Apache-2.0 */
/* Lines on standard error that show developers how the service works: frames by their message's
 * name, changes of state, and decisions. They have names, numbers and sizes, and never contents.
 *
 *   trace execution=x-2hq received=DONE bytes=61 fds=0
 *
 * Nothing is written until trace_begin(). Unlike lines of base/log.h these are not limited in
 * number. One that standard error does not take at once is lost, and counted in the next.
 */
#ifndef BASE_TRACE_H
#define BASE_TRACE_H

#include <stdint.h>

enum trace {
	TRACE_OFF,
	TRACE_EXECUTIONS,	/* the lines that belong to an execution */
	TRACE_ALL
};

/* Which lines are written. Anyone may read it, to save work. */
extern enum trace trace_wanted;

/* To be called at the start, and in processes that are forked from the supervisor. */
void trace_begin(enum trace wanted);

/* Makes the id known of the execution that frames name by this number. The last 1024 are known. */
void trace_name(uint64_t execution, const char *id);

/* Writes a line, if it is wanted. execution: the number in frames; 0: it belongs to none. */
void trace_line(uint64_t execution, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
