/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python audit. Pure. */
#include "client/when.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DAY_S (24 * 3600)
#define N(array) (sizeof(array) / sizeof(array)[0])

static const struct {
	const char *name;
	long seconds;
} units[] = {
	{ "s", 1 }, { "sec", 1 }, { "second", 1 }, { "seconds", 1 },
	{ "m", 60 }, { "min", 60 }, { "minute", 60 }, { "minutes", 60 },
	{ "h", 3600 }, { "hour", 3600 }, { "hours", 3600 },
	{ "d", DAY_S }, { "day", DAY_S }, { "days", DAY_S },
	{ "w", 7 * DAY_S }, { "week", 7 * DAY_S }, { "weeks", 7 * DAY_S },
};

/* "-10min", "10min ago", "10 minutes ago". */
static int
read_span(const char *text, time_t *span_r)
{
	bool is_before = *text == '-';
	const char *digits = text + is_before, *unit;
	size_t n = strspn(digits, "0123456789"), len;
	long number = n > 0 && n < 7 ? strtol(digits, NULL, 10) : 0;

	unit = digits + n + strspn(digits + n, " ");
	len = strcspn(unit, " ");
	if (number == 0 || strcmp(unit + len, is_before ? "" : " ago") != 0)
		return -EINVAL;
	for (size_t i = 0; i < N(units); i++)
		if (strlen(units[i].name) == len && memcmp(units[i].name, unit, len) == 0) {
			*span_r = number * units[i].seconds;
			return 0;
		}
	return -EINVAL;
}

/* The fields in text, up to *end_r; the later ones may be missing. */
static struct tm
split(const char *text, int *end_r)
{
	int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, date = 0, minutes = 0,
	    seconds = 0;

	(void)sscanf(text, "%4d-%2d-%2d%n%*1[ T]%2d:%2d%n:%2d%n", &year, &month, &day, &date, &hour,
		     &minute, &minutes, &second, &seconds);
	*end_r = seconds ? seconds : minutes ? minutes : date;
	return (struct tm){ .tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = day,
			    .tm_hour = hour, .tm_min = minute, .tm_sec = second };
}

static int
read_date(const char *text, time_t *when_r)
{
	int end;
	struct tm asked = split(text, &end), made = asked;

	if (end == 0 || (text[end] && strcmp(text + end, "Z") != 0))
		return -EINVAL;
	*when_r = timegm(&made);
	/* timegm() makes 2 March of 30 February. */
	return made.tm_mday == asked.tm_mday && made.tm_mon == asked.tm_mon &&
	       made.tm_hour == asked.tm_hour && made.tm_min == asked.tm_min &&
	       made.tm_sec == asked.tm_sec ? 0 : -EINVAL;
}

int
when_read(const char *text, time_t now, time_t *when_r)
{
	time_t midnight = now - now % DAY_S, span;

	if (strcmp(text, "now") == 0)
		*when_r = now;
	else if (strcmp(text, "today") == 0)
		*when_r = midnight;
	else if (strcmp(text, "yesterday") == 0)
		*when_r = midnight - DAY_S;
	else if (read_span(text, &span) == 0)
		*when_r = now - span;
	else
		return strspn(text, "0123456789") == 4 ? read_date(text, when_r) : -EINVAL;
	return 0;
}
