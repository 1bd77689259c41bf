/* SPDX-License-Identifier: Apache-2.0 */
/* Writes output in a form for models: without the overwritten states of progress bars, and within a
 * budget. If a part is left out, the whole text is kept, and can be read as a resource. The
 * structured form of an answer is not changed.
 */
#ifndef TOOLS_SHARED_READABLE_H
#define TOOLS_SHARED_READABLE_H

#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct tool_host;

/* A text of an execution. Borrowed. */
struct readable {
	const char *text;		/* UTF-8 */
	size_t len;
	const char *name;		/* the last part of the address of the whole text: "stdout"
					 */
	size_t unsaid;			/* bytes behind len, kept with it but not written */
	bool has_frames;		/* frames of libraries in its tracebacks are folded */
	bool folds;			/* so are equal lines that follow each other */
	uint64_t dropped;		/* bytes that its middle lacks, which it says in a line */
};

/* The reader of an answer, and the execution. Borrowed. */
struct reader {
	const struct tool_host *host;
	const char *execution_id;	/* NULL: nothing is kept */
	uint32_t tokens;		/* for the texts of the answer together; 0: no limit */
	bool has_parts;			/* the answer lists addresses of the whole output */
};

/* One n-th of the reader's tokens, in bytes; 0: no limit. */
size_t reader_share(const struct reader *reader, unsigned int n);

/* Writes the text. Of a line with carriage returns, only the last state is written. Of equal lines
 * that follow each other, one is written, and how many more there are. If the text is
 * longer than budget bytes, its head and its tail are written, with a line between them that says
 * how much is left out, and where the rest can be read. The whole text is kept for the reader
 * if there is room and the text has a name (tools/shared/resources.h). budget 0: no limit. The
 * result is UTF-8, too. */
void readable_say(FILE *to, const struct readable *text, size_t budget,
		  const struct reader *reader);

/* As readable_say, but returns the text, malloc'd. */
char *readable_make(const struct readable *text, size_t budget, const struct reader *reader,
		    size_t *len_r);

#endif
