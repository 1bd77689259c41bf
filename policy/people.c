/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: names of groups. */
#include "policy/people.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "policy/config_parts.h"
#include "policy/keys.h"

#define USER "user:"
#define GROUP "group:"
#define BETWEEN " \t,"	/* separators of a list */

static bool
begins(const char *word, size_t len, const char *start)
{
	return len > strlen(start) && memcmp(word, start, strlen(start)) == 0;
}

static void
people_add_word(struct people *people, const char *word, size_t len)
{
	bool is_group = begins(word, len, GROUP);

	people->any |= is_group || begins(word, len, USER);
	if (!is_group)
		return;
	people->group = xrealloc(people->group, (people->n + 1) * sizeof(*people->group));
	people->group[people->n++] =
		xalloc_check(strndup(word + strlen(GROUP), len - strlen(GROUP)));
}

static void
add_list(struct people *people, const struct config_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		people_add_word(people, list->item[i], strlen(list->item[i]));
}

static void
add_tenant(struct people *people, const struct config_tenant *tenant)
{
	people_add_word(people, tenant->name, strlen(tenant->name));
	for (size_t i = 0; i < tenant->n_settings; i++) {
		const char *text = tenant->setting[i].text;

		if (key_at(tenant->setting[i].row)->kind != KEY_WHO)
			continue;
		for (text += strspn(text, BETWEEN); *text; text += strspn(text, BETWEEN)) {
			size_t len = strcspn(text, BETWEEN);

			people_add_word(people, text, len);
			text += len;
		}
	}
}

static int
people_by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void
drop_doubles(struct people *people)
{
	size_t n = 0;

	if (people->n > 0)
		qsort(people->group, people->n, sizeof(*people->group), people_by_name);
	for (size_t i = 0; i < people->n; i++)
		if (n > 0 && strcmp(people->group[n - 1], people->group[i]) == 0)
			free(people->group[i]);
		else
			people->group[n++] = people->group[i];
	people->n = n;
}

void
people_of(const struct config *config, struct people *people_r)
{
	const struct config_origin *origin = config->origin;

	*people_r = (struct people){ .any = false };
	add_list(people_r, &config->policy.approvers);
	add_list(people_r, &config->admin.operators);
	for (size_t i = 0; i < origin->n_tenants; i++)
		add_tenant(people_r, origin->tenant[i]);
	drop_doubles(people_r);
}

void
people_done(struct people *people)
{
	for (size_t i = 0; i < people->n; i++)
		free(people->group[i]);
	free(people->group);
	*people = (struct people){ .any = false };
}

bool
people_are_same(const struct people *a, const struct people *b)
{
	if (a->any != b->any || a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++)
		if (strcmp(a->group[i], b->group[i]) != 0)
			return false;
	return true;
}
