/* Output as the model reads it: without the overwritten states of progress bars, and within a
 * budget. The structured form of an answer is not changed.
 */
#ifndef TOOLS_SCRIPT_READABLE_H
#define TOOLS_SCRIPT_READABLE_H

#include <stddef.h>
#include <stdio.h>

/* Writes the text. Of a line with carriage returns only the last state is written. If the text is
 * longer than budget bytes, head and tail are written, with a line between them that says how much
 * is left out. budget 0: no limit. The text is UTF-8 and stays so. */
void readable_say(FILE *to, const char *text, size_t len, size_t budget);

#endif
