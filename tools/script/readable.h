/* SPDX-License-Identifier: Apache-2.0 */
/* Output in the form for models: without the overwritten states of progress bars, and within a
 * budget. The whole text is kept if a part is left out, and can be read as a resource. The
 * structured form of an answer is not changed.
 */
#ifndef TOOLS_SCRIPT_READABLE_H
#define TOOLS_SCRIPT_READABLE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct tool_host;

/* A text of an execution. Borrowed. */
struct readable {
	const char *text;		/* UTF-8 */
	size_t len;
	const char *name;		/* ends its address: "stdout" */
};

/* The reader of an answer, and the execution. Borrowed. */
struct reader {
	const struct tool_host *host;
	const char *execution_id;	/* NULL: nothing is kept */
	uint32_t tokens;		/* for the texts of the answer together; 0: no limit */
};

/* One n-th of the reader's tokens, in bytes; 0: no limit. */
size_t reader_share(const struct reader *reader, unsigned int n);

/* Writes the text. Of a line with carriage returns only the last state is written. If the text is
 * longer than budget bytes, head and tail are written, with a line between them that says how much
 * is left out, and where the whole can be read: the whole is kept for the reader, if there is room
 * and the text has a name (tools/shared/resources.h). budget 0: no limit. The text stays UTF-8. */
void readable_say(FILE *to, const struct readable *text, size_t budget,
		  const struct reader *reader);

/* The same as a text, malloc'd. */
char *readable_make(const struct readable *text, size_t budget, const struct reader *reader,
		    size_t *len_r);

#endif
