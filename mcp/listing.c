/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing. */
#include "mcp/tool_list.h"

#include <jansson.h>

#include "base/xalloc.h"

char *
listing_of(const char *schema, bool all)
{
	json_auto_t *shown = xalloc_check(json_loads(schema, 0, NULL));
	json_t *properties = json_object_get(shown, "properties"), *property;
	const char *name;
	void *next;

	json_object_foreach_safe(properties, next, name, property) {
		if (json_object_get(property, LISTING_KEYWORD) && !all) {
			json_object_del(properties, name);
			json_object_del(shown, "additionalProperties");
			continue;
		}
		json_object_del(property, LISTING_KEYWORD);
		if (!all) {
			static const char *const keywords[] = { "minLength", "maxLength", "pattern",
							       "minItems", "maxItems" };

			/* Leaves out the bounds of a property: the tool checks them itself, and its
			 * refusals name them. */
			for (size_t i = 0; i < sizeof(keywords) / sizeof(*keywords); i++)
				json_object_del(property, keywords[i]);
		}
	}
	return xalloc_check(json_dumps(shown, JSON_COMPACT | JSON_REAL_PRECISION(10)));
}
