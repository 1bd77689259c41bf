/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing.
 * Prints a configuration, and the differences between two. */
#include "policy/config_parts.h"

#include <stdlib.h>
#include <string.h>

#include "policy/keys.h"

static void
dump_section(const char *section, const void *base, FILE *out)
{
	const struct key *key;

	for (size_t i = 0; (key = key_at(i)); i++)
		if (strcmp(key->section, section) == 0)
			key_print(key, base, out);
}

/* Prints the rows with these flags, by section, in the order of the table. */
static void
dump_sections(const struct config *config, unsigned int flags, FILE *out)
{
	const char *last = "";
	const struct key *key;

	for (size_t i = 0; (key = key_at(i)); i++) {
		if (key_is_named(key) || (key->flags & flags) != flags)
			continue;
		if (strcmp(key->section, last) != 0)
			fprintf(out, "%s[%s]\n", *last ? "\n" : "", key->section);
		last = key->section;
		key_print(key, config, out);
	}
}

/* The lines as they were read; none is longer than its original. */
static void
dump_tenant(const struct config_tenant *tenant, FILE *out)
{
	fprintf(out, "\n[tenant %s]\n", tenant->name);
	for (size_t i = 0; i < tenant->n_settings; i++) {
		const struct config_setting *setting = &tenant->setting[i];
		const struct key *key = key_at(setting->row);

		if (setting->more)
			fprintf(out, "\t%s\n", setting->text);
		else
			fprintf(out, "%s.%s=%s\n", key->section, key->name, setting->text);
	}
}

void
config_dump(const struct config *config, FILE *out)
{
	dump_sections(config, 0, out);
	for (size_t i = 0; i < config->n_interpreters; i++) {
		fprintf(out, "\n[interpreter %s]\n", config->interpreter[i].name);
		dump_section("interpreter", &config->interpreter[i], out);
	}
	for (size_t i = 0; i < config->n_profiles; i++) {
		fprintf(out, "\n[profile %s]\n", config->profile[i].name);
		dump_section("profile", &config->profile[i], out);
	}
	for (size_t i = 0; i < config->n_tools; i++) {
		fprintf(out, "\n[tools %s]\n", config->tools[i].name);
		dump_section("tools", &config->tools[i], out);
	}
	for (size_t i = 0; i < config->origin->n_tenants; i++)
		dump_tenant(config->origin->tenant[i], out);
}

void
config_dump_policy(const struct config *config, FILE *out)
{
	const struct config_origin *origin = config->origin;

	for (size_t i = 0; i < origin->n_from; i++)
		fprintf(out, "# [tenant %s]\n", origin->from[i]->name);
	dump_sections(config, KEY_OF_TENANT, out);
}

static char *
print_row(const struct key *key, const void *base)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		abort();
	key_print(key, base, out);
	fclose(out);
	return text;
}

static bool
differs(const struct key *key, const void *a, const void *b)
{
	char *one = print_row(key, a), *other = print_row(key, b);
	bool result = strcmp(one, other) != 0;

	free(one);
	free(other);
	return result;
}

static bool
section_differs(const char *section, const void *a, const void *b)
{
	const struct key *key;

	for (size_t i = 0; (key = key_at(i)); i++)
		if (strcmp(key->section, section) == 0 && differs(key, a, b))
			return true;
	return false;
}

static bool
profile_differs(const struct config *a, const struct config *b)
{
	if (a->n_profiles != b->n_profiles)
		return true;
	for (size_t p = 0; p < a->n_profiles; p++)
		if (strcmp(a->profile[p].name, b->profile[p].name) != 0 ||
		    section_differs("profile", &a->profile[p], &b->profile[p]))
			return true;
	return false;
}

static bool
interpreters_differ(const struct config *a, const struct config *b)
{
	if (a->n_interpreters != b->n_interpreters)
		return true;
	for (size_t i = 0; i < a->n_interpreters; i++)
		if (strcmp(a->interpreter[i].name, b->interpreter[i].name) != 0 ||
		    section_differs("interpreter", &a->interpreter[i], &b->interpreter[i]))
			return true;
	return false;
}

static bool
tools_differ(const struct config *a, const struct config *b)
{
	if (a->n_tools != b->n_tools)
		return true;
	for (size_t t = 0; t < a->n_tools; t++)
		if (strcmp(a->tools[t].name, b->tools[t].name) != 0 ||
		    section_differs("tools", &a->tools[t], &b->tools[t]))
			return true;
	return false;
}

char *
config_needs_restart(const struct config *old, const struct config *new)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	const char *between = "";
	const struct key *key;

	if (!out)
		abort();
	for (size_t i = 0; (key = key_at(i)); i++) {
		if ((key->flags & KEY_OF_TENANT) || key_is_named(key) ||
		    !differs(key, old, new))
			continue;
		fprintf(out, "%s[%s] %s", between, key->section, key->name);
		between = ", ";
	}
	if (interpreters_differ(old, new)) {
		fprintf(out, "%s[interpreter]", between);
		between = ", ";
	}
	if (profile_differs(old, new)) {
		fprintf(out, "%s[profile]", between);
		between = ", ";
	}
	if (tools_differ(old, new))
		fprintf(out, "%s[tools]", between);
	fclose(out);
	return text;
}
