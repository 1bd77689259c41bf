/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing.
 * Reads:   values of a client, of any type. */
#include "tools/shared/argument_map.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/why.h"
#include "policy/packages.h"

#define NAME_MAX_BYTES 60		/* of a name that is compared, or repeated */
#define NAME_LIKE_MIN 4			/* letters of a beginning that says enough */
#define UNKNOWN_SAID 3			/* names */
#define UNKNOWN_BYTES (UNKNOWN_SAID * (2 * NAME_MAX_BYTES + 10))

static bool
has_row(const struct argument *a, const struct reading *in)
{
	return !in->which || (a->tools & in->which);
}

static const struct argument *
find_row(const struct argument *map, size_t n, const char *key, const struct reading *in)
{
	for (size_t i = 0; i < n; i++)
		if (has_row(&map[i], in) && strcmp(map[i].name, key) == 0)
			return &map[i];
	return NULL;
}

/* What other servers call these arguments. */
static const char *const synonyms[][2] = {
	{ "code", "script" }, { "script", "code" }, { "source", "script" }, { "source", "code" },
	{ "input", "stdin" }, { "argv", "args" }, { "job", "id" }, { "jobid", "id" }, { "handle", "id" },
	{ "seconds", "timeout_seconds" }, { "ram", "memory_mb" }, { "memory", "memory_mb" },
	{ "packages", "dependencies" }, { "requirements", "dependencies" },
	{ "dependencies", "packages" }, { "requirements", "packages" }, { "cmd", "action" },
};

/* A name in small letters, without "_" and "-". */
static void
make_plain(const char *name, char plain_r[NAME_MAX_BYTES + 1])
{
	size_t len = 0;

	for (; *name && len < NAME_MAX_BYTES; name++)
		if (isalnum((unsigned char)*name))
			plain_r[len++] = (char)tolower((unsigned char)*name);
	plain_r[len] = '\0';
}

/* May an unknown name stand for a known one? One is the beginning of the other, or they differ in
 * little, or other servers have it. */
static bool
is_near(const char *key, const char *name)
{
	char plain[NAME_MAX_BYTES + 1], known[NAME_MAX_BYTES + 1];
	size_t len;

	make_plain(key, plain);
	make_plain(name, known);
	len = strlen(plain) < strlen(known) ? strlen(plain) : strlen(known);
	for (size_t i = 0; i < sizeof(synonyms) / sizeof(*synonyms); i++)
		if (strcmp(plain, synonyms[i][0]) == 0 && strcmp(name, synonyms[i][1]) == 0)
			return true;
	return (len >= NAME_LIKE_MIN || len == strlen(known)) &&
	       (strncmp(plain, known, len) == 0 || packages_are_alike(plain, known));
}

static const char *
nearest_name(const struct argument *map, size_t n, const char *key, const json_t *json,
	     const struct reading *in)
{
	for (size_t i = 0; i < n; i++)
		if (has_row(&map[i], in) && !json_object_get(json, map[i].name) &&
		    is_near(key, map[i].name))
			return map[i].name;
	return NULL;
}

/* Names the unknown arguments, with the names that are near, and all that there are. */
static int
refuse_unknown(const struct argument *map, size_t n, const json_t *json, const struct reading *in)
{
	char unknown[UNKNOWN_BYTES] = "", known[512] = "";
	const char *key, *near, *first = NULL;
	size_t len = 0, many = 0;
	json_t *value;

	json_object_foreach((json_t *)json, key, value) {
		if (find_row(map, n, key, in))
			continue;
		first = first ? first : key;
		near = nearest_name(map, n, key, json, in);
		if (many++ < UNKNOWN_SAID)
			len += (size_t)snprintf(unknown + len, sizeof(unknown) - len,
						"%s%.60s%s%s%s", many > 1 ? ", " : "", key,
						near ? " (use " : "", near ? near : "",
						near ? ")" : "");
	}
	len = 0;
	for (size_t i = 0; i < n; i++)
		if (has_row(&map[i], in))
			len += (size_t)snprintf(known + len, sizeof(known) - len, "%s%s",
						len ? ", " : "", map[i].name);
	return why_say(in->why, -EINVAL, first, "%s %s of %s; there %s %s", unknown,
		       many > 1 ? "are not arguments" : "is not an argument", in->tool,
		       strchr(known, ',') ? "are" : "is", known);
}

int
argument_map_read(const struct argument *map, size_t n, const json_t *json, struct reading *in)
{
	const struct argument *a;
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)json, key, value) {
		a = find_row(map, n, key, in);
		if (!a)
			return refuse_unknown(map, n, json, in);
		if (a->read(a, value, in) < 0)
			return -EINVAL;
	}
	for (size_t i = 0; i < n; i++)
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
