/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor and its tools.   Owns: nothing.
 * Reasons may quote hostile text, so they are cut and cleaned here, once. */
#include "base/why.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

/* Makes the text one line, and removes an incomplete character from its end. */
static void
why_clean(char *text, size_t size)
{
	size_t len = strlen(text);

	for (size_t i = 0; i < len; i++)
		if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
			text[i] = ' ';
	if (len + 1 < size)
		return;
	text[len - utf8_begun(text, len)] = '\0';
}

int
why_say(struct why *why, int code, const char *field, const char *format, ...)
{
	va_list args;

	if (!why)
		return code;
	snprintf(why->field, sizeof(why->field), "%s", field);
	why_clean(why->field, sizeof(why->field));
	va_start(args, format);
	vsnprintf(why->text, sizeof(why->text), format, args);
	va_end(args);
	why_clean(why->text, sizeof(why->text));
	return code;
}
