/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing.
 * Prints a configuration, and the differences between two. */
#include "policy/config_parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
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

/* Prints the settings of a section as they were read. No line is longer than in its file, so each
 * can be read again. */
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
	struct config_section kind;

	dump_sections(config, 0, out);
	for (size_t k = 0; config_sections(config, k, &kind); k++)
		for (size_t i = 0; i < kind.n; i++) {
			const char *one = kind.first + i * kind.size;

			fprintf(out, "\n[%s %s]\n", kind.section, one);
			dump_section(kind.section, one, out);
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
	FILE *out = xalloc_check(open_memstream(&text, &len));

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

bool
config_section_differs(const char *section, const void *a, const void *b)
{
	const struct key *key;

	for (size_t i = 0; (key = key_at(i)); i++)
		if (strcmp(key->section, section) == 0 && differs(key, a, b))
			return true;
	return false;
}

static const char *
find_named(const struct config_section *in, const char *name)
{
	for (size_t i = 0; i < in->n; i++)
		if (strcmp(in->first + i * in->size, name) == 0)
			return in->first + i * in->size;
	return NULL;
}

/* Do the sections of one kind differ, in their names or their settings? Their order does not
 * matter. */
static bool
named_differ(const struct config_section *a, const struct config_section *b)
{
	if (a->n != b->n)
		return true;
	for (size_t i = 0; i < a->n; i++) {
		const char *one = a->first + i * a->size, *other = find_named(b, one);

		if (!other || config_section_differs(a->section, one, other))
			return true;
	}
	return false;
}

char *
config_needs_restart(const struct config *old, const struct config *new)
{
	char *text = NULL;
	size_t len;
	FILE *out = xalloc_check(open_memstream(&text, &len));
	const char *between = "";
	struct config_section a, b;
	const struct key *key;

	for (size_t i = 0; (key = key_at(i)); i++) {
		if ((key->flags & KEY_OF_TENANT) || key_is_named(key) ||
		    !differs(key, old, new))
			continue;
		fprintf(out, "%s[%s] %s", between, key->section, key->name);
		between = ", ";
	}
	for (size_t k = 0; config_sections(old, k, &a) && config_sections(new, k, &b); k++) {
		if (!named_differ(&a, &b))
			continue;
		fprintf(out, "%s[%s]", between, a.section);
		between = ", ";
	}
	fclose(out);
	return text;
}
