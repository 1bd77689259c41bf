/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing.
 * Makes the schema of a tool's arguments, for clients: takes the common schema of both tools,
 * removes the arguments that only the other tool has, and adds the limits in force. */
#include "tools/script/run_script.h"

#include "base/xalloc.h"
#include "policy/config.h"
#include "tools/script/run_script_files.h"
#include "tools/script/schema/run_input.h"
#include "tools/shared/argument_map.h"
#include "tools/shared/schema.h"

char *
run_script_input_schema(enum run_for tool, const struct config *config)
{
	json_t *schema = schema_load(run_input_schema);

	for (const struct argument *a = run_script_argument; a->name; a++) {
		double most = run_script_limit(&config->limits.cap, a->name);

		if (!(a->tools & (1u << tool))) {
			schema_drop(schema, a->name);
		} else if (most > 0) {
			schema_set(schema, a->name, "maximum", schema_number(most));
			schema_set(schema, a->name, "default", schema_number(
				run_script_limit(&config->limits.standard, a->name)));
		}
	}
	if (!config->workspace.volume)
		schema_drop(schema, "volume");
	schema_set_profiles(schema, "profile", config);
	schema_set(schema, FILES_ARGUMENT, "maxItems", json_integer(config->results.inputs));
	schema_say(schema, FILES_ARGUMENT, " At most %u KiB each, %u KiB together.",
		   config->results.input_bytes >> 10, config->results.inputs_bytes >> 10);
	return schema_take(schema);
}

const char *
run_script_network_text(const struct config *config)
{
	return config->network.allow.n > 0
		? "of the network what the operator allows, by the proxy in HTTPS_PROXY"
		: "no network";
}
