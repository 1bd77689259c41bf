/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: arrays of names; the names belong to the caller.
 * Reads:   names of clients, in any form. */
#include "policy/imports.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "policy/config.h"

void
imports_add_name(struct import_list *list, const char *name)
{
	const char **item = xrealloc(list->item, (list->n + 2) * sizeof(*item));

	item[list->n++] = name;
	item[list->n] = NULL;
	list->item = item;
}

void
imports_add(struct import_list *list, const struct config_list *names)
{
	/* An empty list allows nothing; no list allows everything. */
	if (!list->item)
		list->item = xcalloc(1, sizeof(*list->item));
	for (size_t i = 0; i < names->n; i++)
		imports_add_name(list, names->item[i]);
}

void
imports_done(struct import_list *list)
{
	free(list->item);
	*list = (struct import_list){ .n = 0 };
}

/* Is name the package, or in it? */
static bool
is_in(const char *package, const char *name)
{
	size_t len = strlen(package);

	return strncmp(package, name, len) == 0 && (name[len] == '\0' || name[len] == '.');
}

bool
imports_allow(const struct import_list *list, const char *name)
{
	for (size_t i = 0; i < list->n; i++)
		if (is_in(list->item[i], name))
			return true;
	return false;
}

void
imports_narrow(const struct import_list *list, const char *wanted, struct import_list *narrow)
{
	if (imports_allow(list, wanted)) {
		imports_add_name(narrow, wanted);
		return;
	}
	for (size_t i = 0; i < list->n; i++)
		if (is_in(wanted, list->item[i]))
			imports_add_name(narrow, list->item[i]);
}

/* Python decides about letters beyond ASCII. */
static bool
starts_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80);
}

bool
imports_is_name(const char *name, size_t len)
{
	bool starts = true;

	if (len > IMPORT_NAME_MAX)
		return false;
	for (size_t i = 0; i < len; i++) {
		if (name[i] == '.' && !starts)
			starts = true;
		else if (starts_name(name[i]) || (!starts && name[i] >= '0' && name[i] <= '9'))
			starts = false;
		else
			return false;
	}
	return !starts;
}
