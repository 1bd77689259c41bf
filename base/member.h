/* SPDX-License-Identifier: Apache-2.0 */
/* Text members of JSON objects. object: any value, or NULL. */
#ifndef BASE_MEMBER_H
#define BASE_MEMBER_H

#include <jansson.h>

/* NULL: there is no such member, or it is no string. */
static inline const char *
member_text(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

/* As member_text, with "" in the place of NULL. */
static inline const char *
member_text_or_empty(const json_t *object, const char *key)
{
	const char *text = member_text(object, key);

	return text ? text : "";
}

#endif
