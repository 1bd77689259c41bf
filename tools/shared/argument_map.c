/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing.
 * Reads:   values of a client, of any type. */
#include "tools/shared/argument_map.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/why.h"

static bool
has_row(const struct argument *a, const struct reading *in)
{
	return !in->which || (a->tools & in->which);
}

static int
refuse_unknown(const struct argument *map, size_t n, const char *key, const struct reading *in)
{
	char known[512] = "";
	size_t len = 0;

	for (size_t i = 0; i < n; i++)
		if (has_row(&map[i], in))
			len += (size_t)snprintf(known + len, sizeof(known) - len, "%s%s",
						len ? ", " : "", map[i].name);
	return why_say(in->why, -EINVAL, key, "%.60s is not an argument of %s; there %s %s", key,
		       in->tool, strchr(known, ',') ? "are" : "is", known);
}

int
argument_map_read(const struct argument *map, size_t n, const json_t *json, struct reading *in)
{
	const char *key;
	json_t *value;
	size_t i;

	json_object_foreach((json_t *)json, key, value) {
		for (i = 0; i < n; i++)
			if (has_row(&map[i], in) && strcmp(map[i].name, key) == 0)
				break;
		if (i == n)
			return refuse_unknown(map, n, key, in);
		if (map[i].read(&map[i], value, in) < 0)
			return -EINVAL;
	}
	for (i = 0; i < n; i++)
		if (has_row(&map[i], in) && map[i].needed && !json_object_get(json, map[i].name))
			return why_say(in->why, -EINVAL, map[i].name, "%s is required: %s",
				       map[i].name, map[i].needed);
	return 0;
}

int
argument_flag(const struct argument *a, const json_t *value, struct reading *in)
{
	if (!json_is_boolean(value))
		return why_say(in->why, -EINVAL, a->name, "%s must be true or false", a->name);
	*ARGUMENT_MEMBER(bool, a, in) = json_is_true(value);
	return 0;
}

int
argument_string(const struct argument *a, const json_t *value, struct reading *in)
{
	const char *text = json_string_value(value);
	size_t len = json_string_length(value);

	if (!text || strlen(text) != len || (a->most > 0 && (double)len > a->most))
		return a->most > 0
			? why_say(in->why, -EINVAL, a->name, "%s must be a string of at most %.0f "
				  "bytes, without NUL", a->name, a->most)
			: why_say(in->why, -EINVAL, a->name, "%s must be a string without NUL",
				  a->name);
	*ARGUMENT_MEMBER(const char *, a, in) = text;
	return 0;
}

int
argument_number(const struct argument *a, const json_t *value, double most, double *number_r,
		struct why *why_r)
{
	double number = json_number_value(value);

	if (!json_is_number(value) || (a->whole && number != floor(number)) || number < a->least ||
	    (a->most > 0 && number > a->most))
		return why_say(why_r, -EINVAL, a->name, "%s must be %s from %.10g to %.10g",
			       a->name, a->whole ? "an integer" : "a number", a->least, most);
	*number_r = number;
	return 0;
}
