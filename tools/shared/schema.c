/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing. */
#include "tools/shared/schema.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "base/xalloc.h"
#include "mcp/tool_list.h"
#include "policy/config.h"

json_t *
schema_load(const char *text)
{
	return xalloc_check(json_loads(text, 0, NULL));
}

static json_t *
property_of(json_t *schema, const char *name)
{
	return xalloc_check(json_object_get(json_object_get(schema, "properties"), name));
}

void
schema_set(json_t *schema, const char *property, const char *keyword, json_t *value)
{
	xassert(json_object_set_new(property_of(schema, property), keyword, value) == 0);
}

void
schema_say(json_t *schema, const char *property, const char *format, ...)
{
	json_t *before = json_object_get(property_of(schema, property), "description");
	own_mem char *more = NULL;
	va_list ap;

	va_start(ap, format);
	more = xvasprintf(format, ap);
	va_end(ap);
	schema_set(schema, property, "description",
		   json_sprintf("%s%s", json_string_value(before), more));
}

void
schema_set_profiles(json_t *schema, const char *property, const struct config *config)
{
	json_t *names = json_array();

	for (size_t i = 0; i < config->n_profiles; i++)
		json_array_append_new(names, json_string(config->profile[i].name));
	schema_set(schema, property, "enum", names);
	schema_set(schema, property, "default", json_string(config->profile[0].name));
	if (config->n_profiles == 1)
		schema_set(schema, property, LISTING_KEYWORD, json_true());
}

void
schema_drop(json_t *schema, const char *property)
{
	json_t *required = json_object_get(schema, "required");

	json_object_del(json_object_get(schema, "properties"), property);
	for (size_t i = json_array_size(required); i-- > 0;)
		if (strcmp(json_string_value(json_array_get(required, i)), property) == 0)
			json_array_remove(required, i);
}

json_t *
schema_number(double number)
{
	json_int_t whole = (json_int_t)number;

	return (double)whole == number ? json_integer(whole) : json_real(number);
}

char *
schema_take(json_t *schema)
{
	char *text = xalloc_check(json_dumps(schema, JSON_COMPACT | JSON_REAL_PRECISION(10)));

	json_decref(schema);
	return text;
}
