/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor, before it drops privilege.   Owns: nothing.
 * Reads:   its own environment: that of the user who started it by hand. */
#include "policy/sandbox_environment.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/why.h"
#include "policy/config.h"
#include "policy/keys.h"

#define VALUE_MAX 4096

static const struct variable {
	const char *name, *key;
} variables[] = {
	{ "SANDBOX_TIMEOUT", "default_timeout" },
	{ "SANDBOX_DEFAULT_TIMEOUT", "default_timeout" },
	{ "SANDBOX_MAX_TIMEOUT", "max_timeout" },
	{ "SANDBOX_MAX_OUTPUT_SIZE", "max_output_bytes" },
	{ "SANDBOX_DEFAULT_MEMORY_LIMIT", "memory_limit" },
	{ "SANDBOX_ENABLE_NETWORK", "network" },
	{ "SANDBOX_ENABLE_FILESYSTEM", "filesystem" },
	{ "SANDBOX_ENABLE_DATA_SCIENCE", "data_science" },
	{ "SANDBOX_ALLOWED_IMPORTS", "allowed_imports" },
};

/* The value in the form of a configuration file: true becomes yes, 128m becomes 128M. */
static const char *
translate(const struct key *key, const char *value, char *text)
{
	size_t len = strlen(value);

	if (key->kind == KEY_BOOL && strcasecmp(value, "true") == 0)
		return "yes";
	if (key->kind == KEY_BOOL && strcasecmp(value, "false") == 0)
		return "no";
	if (key->kind != KEY_BYTES || len == 0 || len > VALUE_MAX || !strchr("kmg", value[len - 1]))
		return value;
	memcpy(text, value, len + 1);
	text[len - 1] = (char)toupper((unsigned char)text[len - 1]);
	return text;
}

static int
set(struct config *config, const struct variable *variable, const char *value, FILE *errors)
{
	const struct key *key = key_at((size_t)key_find("python-sandbox", variable->key));
	char text[VALUE_MAX + 1];
	struct why why;

	if (key->kind == KEY_BOOL && strcasecmp(value, "true") != 0 &&
	    strcasecmp(value, "false") != 0) {
		why_say(&why, -EINVAL, variable->name, "\"%.40s\" is neither true nor false",
			value);
	} else if (key_set(key, config, translate(key, value, text), false, &why) == 0) {
		return 0;
	}
	fprintf(errors, "%s: %s\n", variable->name, why.text);
	return -EINVAL;
}

int
sandbox_environment_read(struct config *config, FILE *errors)
{
	int r = 0;

	for (size_t i = 0; i < sizeof(variables) / sizeof(*variables); i++) {
		const char *value = getenv(variables[i].name);

		/* An empty variable counts as unset, as in that server. */
		if (value && *value && set(config, &variables[i], value, errors) < 0)
			r = -EINVAL;
	}
	if (r == 0 && config->python_sandbox.default_timeout > config->python_sandbox.max_timeout) {
		fprintf(errors, "SANDBOX_TIMEOUT: %u is above the most, which is %u "
			"(SANDBOX_MAX_TIMEOUT)\n", config->python_sandbox.default_timeout,
			config->python_sandbox.max_timeout);
		r = -EINVAL;
	}
	return r;
}
