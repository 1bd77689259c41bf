/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: an execution's copies of its request. */
#include "engine/execution_request.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/why.h"
#include "base/xalloc.h"
#include "engine/egress.h"
#include "engine/engine_parts.h"
#include "engine/tenant.h"

/* ---- copies ---- */

static size_t
bytes_of(const struct execution_request *request)
{
	size_t n = request->script_len + 1 + request->stdin_len + 1;

	if (request->script_name != NULL)
		n += strlen(request->script_name) + 1;
	if (request->globals != NULL)
		n += strlen(request->globals) + 1;
	for (size_t i = 0; i < request->n_args; i++)
		n += strlen(request->args[i]) + 1;
	for (size_t i = 0; i < request->n_tools; i++)
		n += strlen(request->tools[i]) + 1;
	for (size_t i = 0; i < request->n_imports; i++)
		n += strlen(request->imports[i]) + 1;
	for (size_t i = 0; i < request->n_inputs; i++)
		n += request->input[i].path_len + 1 + request->input[i].len + 1;
	return n;
}

/* Appends a copy and a NUL at *at. */
static struct msg_str
request_put(char **at, const void *from, size_t len)
{
	struct msg_str copy = { .at = *at, .len = len };

	if (len > 0)
		memcpy(*at, from, len);
	(*at)[len] = '\0';
	*at += len + 1;
	return copy;
}

static void *
new_array(size_t n, size_t size)
{
	void *array = xcalloc(n + 1, size);

	return array;
}

static struct msg_strs
put_strings(char **at, const char *const *from, size_t n)
{
	struct msg_strs copy = { .item = new_array(n, sizeof(*copy.item)), .n = n };

	for (size_t i = 0; i < n; i++)
		copy.item[i] = request_put(at, from[i], strlen(from[i]));
	return copy;
}

void
request_copy_init(struct request_copy *copy, const struct execution_request *request)
{
	char *at = new_array(bytes_of(request), 1);

	*copy = (struct request_copy){
		.bytes = at,
		.network = egress_terms(request->network),
		.channel = request->channel != NULL ? *request->channel : -1,
		.snapshot = request->snapshot,
		.cell = request->cell,
		.inspect = request->inspect,
		.background = request->background,
		.background_ms = request->background_ms,
		.prompts = request->prompts,
		.modules = request->modules,
		.tool_calls = request->tool_calls,
		.tool_calls_at_once = request->tool_calls_at_once,
		.tell_names = request->tell_names,
		.internal = request->internal,
		.patient = request->patient,
		.input = new_array(request->n_inputs, sizeof(*copy->input)),
	};
	copy->script = request_put(&at, request->script, request->script_len);
	if (request->stdin_text != NULL && request->stdin_len > 0)
		copy->stdin_text = request_put(&at, request->stdin_text, request->stdin_len);
	if (request->script_name != NULL)
		copy->script_name =
			request_put(&at, request->script_name, strlen(request->script_name));
	copy->args = put_strings(&at, request->args, request->n_args);
	copy->tools = put_strings(&at, request->tools, request->n_tools);
	if (request->globals != NULL)
		copy->globals = request_put(&at, request->globals, strlen(request->globals));
	if (request->imports != NULL)
		copy->imports = put_strings(&at, request->imports, request->n_imports);
	for (size_t i = 0; i < request->n_inputs; i++) {
		const struct execution_input *input = &request->input[i];
		struct msg_input *to = &copy->input[copy->n_inputs];

		/* Files that are mounted belong to execution_mounts.c. */
		if (input->uri != NULL)
			continue;
		copy->n_inputs++;
		to->path = request_put(&at, input->path, input->path_len);
		to->data = (struct msg_bin){
			.at = request_put(&at, input->data, input->len).at, .len = input->len };
	}
	if (request->environment != NULL)
		snprintf(copy->environment, sizeof(copy->environment), "%s",
			 request->environment);
}

void
request_copy_close_channel(struct request_copy *copy)
{
	if (copy->channel >= 0)
		close(copy->channel);
	copy->channel = -1;
}

void
request_copy_done(struct request_copy *copy)
{
	request_copy_close_channel(copy);
	free(copy->network);
	free(copy->args.item);
	free(copy->tools.item);
	free(copy->imports.item);
	free(copy->input);
	free(copy->bytes);
}

/* ---- checks ---- */

int
request_check_inputs(const struct execution_request *request, const struct config *config,
		     unsigned int index, struct why *why_r)
{
	const struct config_profile *profile = &config->profile[index];
	uint64_t bytes = 0, inodes = 0;

	for (size_t i = 0; i < request->n_inputs; i++) {
		const struct execution_input *input = &request->input[i];

		bytes += (input->len + 4095) & ~(uint64_t)4095;
		inodes++;
		for (size_t k = 0; k < input->path_len; k++)
			inodes += input->path[k] == '/';
	}
	if (bytes <= config_disk_bytes(config, profile) / 2 && inodes <= profile->disk_inodes / 2)
		return 0;
	return why_say(why_r, -EFBIG, "files",
		       "files: they take more than half of the disk that a script has here");
}

int
request_choose_profile(const struct tenant *tenant, const char *name, unsigned int *index_r,
		       struct why *why_r)
{
	const struct config *config = tenant->engine->config;
	const struct config_profile *profile = config->profile;

	if (*tenant->profile != '\0') {
		if (name != NULL && strcmp(name, tenant->profile) != 0)
			return why_say(why_r, -EACCES, "profile",
				       "your scripts run in the profile %s alone",
				       tenant->profile);
		name = tenant->profile;
	}
	if (name != NULL)
		profile = config_find_profile(config, name);
	if (profile == NULL)
		return why_say(why_r, -ENOENT, "profile", "there is no profile of that name");
	*index_r = (unsigned int)(profile - config->profile);
	return 0;
}
