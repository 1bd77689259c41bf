/* Output as the model reads it: without the states that a progress bar has written over, and within
 * a budget. The structured form of an answer is not changed by any of this.
 */
#ifndef TOOLS_SCRIPT_READABLE_H
#define TOOLS_SCRIPT_READABLE_H

#include <stddef.h>
#include <stdio.h>

/* Writes the text: of a line with carriage returns the last state alone, and of what is longer than
 * budget bytes head and tail, with a line between them that says how much is left out. budget 0:
 * there is none. The text is UTF-8 and stays so. */
void readable_say(FILE *to, const char *text, size_t len, size_t budget);

#endif
