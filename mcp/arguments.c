/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing.
 * Reads:   arguments of clients, which were parsed within their bounds. */
#include "mcp/arguments.h"

#include <stdbool.h>
#include <string.h>

#include "base/jsonbound.h"
#include "base/xalloc.h"

static const char *
type_of(const json_t *value)
{
	switch (json_typeof(value)) {
	case JSON_OBJECT: return "object";
	case JSON_ARRAY: return "array";
	case JSON_STRING: return "string";
	case JSON_INTEGER: return "integer";
	case JSON_REAL: return "number";
	case JSON_TRUE: case JSON_FALSE: return "boolean";
	case JSON_NULL: break;
	}
	return "null";
}

/* Does the property take values of this type? Its schema names types, or else the allowed values. A
 * schema that names neither takes every value. */
static bool
takes(const json_t *property, const char *type)
{
	const json_t *types = json_object_get(property, "type");
	const json_t *values = json_object_get(property, "enum"), *one;
	size_t i;

	if (json_is_string(types))
		return strcmp(json_string_value(types), type) == 0;
	json_array_foreach(types, i, one)
		if (json_is_string(one) && strcmp(json_string_value(one), type) == 0)
			return true;
	if (types)
		return false;
	json_array_foreach(values, i, one)
		if (strcmp(type_of(one), type) == 0)
			return true;
	return !values;
}

static bool
is_required(const json_t *schema, const char *name)
{
	const json_t *required = json_object_get(schema, "required"), *one;
	size_t i;

	json_array_foreach(required, i, one)
		if (json_is_string(one) && strcmp(json_string_value(one), name) == 0)
			return true;
	return false;
}

static bool
is_of_type(const json_t *value, const json_t *property)
{
	return !json_is_null(value) && !json_is_string(value) &&
	       (takes(property, type_of(value)) ||
		(json_is_integer(value) && takes(property, "number")));
}

/* Must the property be a name? An empty string in place of a name is left out; in place of a text
 * it may be a mistake, which the tool reports. */
static bool
wants_name(const json_t *property)
{
	const json_t *values = json_object_get(property, "enum"), *one;
	size_t i;

	json_array_foreach(values, i, one)
		if (json_is_string(one) && json_string_length(one) == 0)
			return false;
	return values || (json_object_get(property, "pattern") &&
			  json_integer_value(json_object_get(property, "minLength")) > 0);
}

static bool
is_nothing(const json_t *value, const json_t *property)
{
	if (json_is_string(value))
		return json_string_length(value) == 0 && wants_name(property);
	return json_is_null(value) && !takes(property, "null");
}

/* The JSON value in a string, if the property takes values of its type and no strings; otherwise
 * NULL. *values: the values that the strings of one call may still hold. */
static json_t *
read_string(const json_t *value, const json_t *property, size_t *values)
{
	const char *text = json_string_value(value);
	size_t len = json_string_length(value), n;
	json_t *held;

	if (!text || takes(property, "string"))
		return NULL;
	n = jsonbound_values(text, len);
	if (n > *values)
		return NULL;
	*values -= n;
	held = json_loadb(text, len,
			  JSON_DECODE_ANY | JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
	if (held && is_of_type(held, property))
		return held;
	json_decref(held);
	return NULL;
}

/* The name of an argument in the schema. Some tools have an argument "code" and others "script",
 * and models confuse them. */
static const char *
known_as(const char *name, const json_t *given, const json_t *properties)
{
	const char *other = strcmp(name, "code") == 0 ? "script"
			  : strcmp(name, "script") == 0 ? "code" : NULL;

	if (!other || json_object_get(properties, name) || !json_object_get(properties, other) ||
	    json_object_get(given, other))
		return name;
	return other;
}

json_t *
arguments_settle(const json_t *given, const json_t *schema)
{
	const json_t *properties = json_object_get(schema, "properties");
	json_t *settled = xalloc_check(json_object());
	size_t values = JSON_VALUES_MAX;
	const char *said;
	json_t *value;

	json_object_foreach((json_t *)given, said, value) {
		const char *name = known_as(said, given, properties);
		const json_t *property = json_object_get(properties, name);
		json_t *held;

		if (property && is_nothing(value, property) && !is_required(schema, name))
			continue;
		held = property ? read_string(value, property, &values) : NULL;
		if (json_object_set_new(settled, name, held ? held : json_incref(value)) < 0)
			xalloc_check(NULL);
	}
	return settled;
}
