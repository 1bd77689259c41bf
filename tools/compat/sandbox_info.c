/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing.
 * Reports the configuration of a set of tools. */
#include "tools/compat/python_sandbox.h"

#include <string.h>

#include "base/jsonout.h"
#include "policy/config.h"
#include "policy/rules.h"
#include "tools/compat/schema/no_input.h"
#include "tools/compat/schema/sandbox_info_output.h"

static void
sandbox_info_write_profiles(struct jsonout *out, const struct config *config)
{
	jsonout_member_open(out, "security_profiles", '{');
	for (enum tier tier = TIER_BASIC; tier < TIER_COUNT; tier++) {
		jsonout_member_open(out, tier_name(tier), '{');
		jsonout_member_bool(out, "enabled", python_sandbox_has(config, false, tier));
		jsonout_member_texts(out, "modules", tier_modules(config, tier)->item,
				     tier_modules(config, tier)->n);
		jsonout_close(out, '}');
	}
	jsonout_close(out, '}');
}

static void
sandbox_info_write_limits(struct jsonout *out, const struct config *config)
{
	char memory[32];

	jsonout_member_open(out, "resource_limits", '{');
	jsonout_member_uint(out, "timeout", python_sandbox_default_seconds(config));
	jsonout_member_uint(out, "max_timeout", python_sandbox_most_seconds(config));
	jsonout_member_uint(out, "max_output_size", config->python_sandbox.max_output_bytes);
	python_sandbox_memory_text(python_sandbox_default_memory(config), memory, sizeof(memory));
	jsonout_member_text(out, "memory_limit", memory);
	python_sandbox_memory_text(config->limits.cap.memory_bytes, memory, sizeof(memory));
	jsonout_member_text(out, "max_memory_limit", memory);
	jsonout_close(out, '}');
}

/* The members that the last releases of that server have in addition, or instead. */
static void
write_last_form(struct jsonout *out, const struct config *config)
{
	const struct config_list *own = &config->python_sandbox.allowed_imports;
	size_t n = own->n;

	jsonout_member_uint(out, "timeout_seconds", python_sandbox_default_seconds(config));
	jsonout_member_uint(out, "max_output_size", config->python_sandbox.max_output_bytes);
	if (own->n) {
		jsonout_member_texts(out, "allowed_imports", own->item, own->n);
	} else {
		jsonout_member_open(out, "allowed_imports", '{');
		for (enum tier tier = TIER_BASIC; tier < TIER_COUNT; tier++)
			if (python_sandbox_has(config, false, tier)) {
				const struct config_list *list = tier_modules(config, tier);

				jsonout_member_texts(out, tier_name(tier), list->item, list->n);
				n += list->n;
			}
		jsonout_close(out, '}');
	}
	jsonout_member_uint(out, "total_allowed_modules", n);
}

static struct tool_run *
start_info(const struct tool_host *host, const json_t *json)
{
	const struct config *config = host->config;
	struct tool_writer w;
	struct jsonout *out = &w.structured;

	if (json_object_size(json) > 0) {
		tool_refuse(host, "get_sandbox_info takes no arguments");
		return NULL;
	}
	tool_write(&w, host);
	jsonout_open(out, '{');
	jsonout_member_bool(out, "success", true);
	sandbox_info_write_profiles(out, config);
	sandbox_info_write_limits(out, config);
	write_last_form(out, config);
	jsonout_member_bool(out, "approval_required",
			    policy_tool(config, "run_script") == POLICY_APPROVE);
	jsonout_member_raw(out, "container_mode", "{\"available\":true,\"enabled\":true}");
	jsonout_close(out, '}');
	tool_give(&w);
	return NULL;
}

const struct tool get_sandbox_info_tool = {
	.name = "get_sandbox_info",
	.says = {
		.title = "What the sandbox allows",
		.icon = ICON_ENVIRONMENT,
		.description =
			"Tells which modules code may import, by security profile and whether that "
			"is enabled, and the limits.",
		.input_schema = no_input_schema,
		.output_schema = sandbox_info_output_schema,
		.read_only = true,
		.idempotent = true,
	},
	.start = start_info,
};
