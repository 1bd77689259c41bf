/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing.
 * Reads:   the values of a form, of any shape. */
#include "mcp/form.h"

#include <math.h>
#include <string.h>

#include "base/utf8.h"

static bool
is_type(const char *type, const json_t *value)
{
	if (strcmp(type, "string") == 0)
		return json_is_string(value);
	if (strcmp(type, "boolean") == 0)
		return json_is_boolean(value);
	if (strcmp(type, "array") == 0)
		return json_is_array(value);
	if (strcmp(type, "integer") == 0)
		return json_is_number(value) &&
		       json_number_value(value) == floor(json_number_value(value));
	return strcmp(type, "number") == 0 && json_is_number(value);
}

/* The size of a value, for bounds: the number itself, or the length of a string or list. */
static double
form_measure(const json_t *value)
{
	if (json_is_string(value))
		return (double)utf8_count(json_string_value(value), json_string_length(value));
	if (json_is_array(value))
		return (double)json_array_size(value);
	return json_number_value(value);
}

static bool
form_is_within(const json_t *field, const json_t *value)
{
	static const char *const least[] = { "minimum", "minLength", "minItems" };
	static const char *const most[] = { "maximum", "maxLength", "maxItems" };
	size_t i = json_is_string(value) ? 1 : json_is_array(value) ? 2 : 0;
	const json_t *low = json_object_get(field, least[i]);
	const json_t *high = json_object_get(field, most[i]);

	return (!low || form_measure(value) >= json_number_value(low)) &&
	       (!high || form_measure(value) <= json_number_value(high));
}

/* Is value one of the choices? choices: an array of values (enum), or of {"const": value}. */
static bool
is_among(const json_t *choices, const json_t *value)
{
	const json_t *choice, *constant;
	size_t i;

	json_array_foreach(choices, i, choice) {
		constant = json_object_get(choice, "const");
		if (json_equal(constant ? constant : choice, value))
			return true;
	}
	return false;
}

static bool
is_chosen(const json_t *field, const json_t *value)
{
	static const char *const keys[] = { "enum", "oneOf", "anyOf" };

	for (size_t i = 0; i < 3; i++) {
		const json_t *choices = json_object_get(field, keys[i]);

		if (choices && !is_among(choices, value))
			return false;
	}
	return true;
}

static bool
field_fits(const json_t *field, const json_t *value)
{
	const char *type = json_string_value(json_object_get(field, "type"));
	const json_t *items = json_object_get(field, "items"), *item;
	size_t i;

	if ((type && !is_type(type, value)) || !form_is_within(field, value) ||
	    !is_chosen(field, value))
		return false;
	if (items && json_is_array(value))
		json_array_foreach(value, i, item)
			if (!is_chosen(items, item))
				return false;
	return true;
}

static bool
form_fits(const json_t *schema, const json_t *content)
{
	const json_t *fields = json_object_get(schema, "properties"), *field, *name;
	const char *key;
	size_t i;

	if (content && !json_is_object(content))
		return false;
	json_array_foreach(json_object_get(schema, "required"), i, name)
		if (!json_object_get(content, json_string_value(name)))
			return false;
	json_object_foreach((json_t *)fields, key, field) {
		const json_t *value = json_object_get(content, key);

		if (value && !field_fits(field, value))
			return false;
	}
	return true;
}

bool
mcp_form_fits(const char *schema, const json_t *content)
{
	json_auto_t *value = json_loads(schema, 0, NULL);

	return json_is_object(value) && form_fits(value, content);
}
