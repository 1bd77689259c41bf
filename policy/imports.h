/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of modules that a script may import: tiers of the configuration, and lists of clients.
 * Names are dotted; a listed package includes its modules. This module only makes lists;
 * worker/imports.py enforces them.
 */
#ifndef POLICY_IMPORTS_H
#define POLICY_IMPORTS_H

#include <stdbool.h>
#include <stddef.h>

#define IMPORT_NAME_MAX 255	/* bytes */

struct config_list;

/* A list. The names are borrowed; item is malloc'd and ends with NULL. item NULL: there is no list,
 * and any module may be imported. The functions that add names make a list, which may be empty. */
struct import_list {
	const char **item;
	size_t n;
};

/* Adds a list's names. Aborts when out of memory. */
void imports_add(struct import_list *list, const struct config_list *names);
void imports_add_name(struct import_list *list, const char *name);
void imports_done(struct import_list *list);

/* Is the name in the list, or a package that contains it? */
bool imports_allow(const struct import_list *list, const char *name);

/* Adds to *narrow the names that both the list and wanted (one name) allow: wanted itself, if the
 * list allows it; otherwise the list's names that are in the package wanted. */
void imports_narrow(const struct import_list *list, const char *wanted,
		    struct import_list *narrow);

/* Is this a dotted name that can follow "import", of at most IMPORT_NAME_MAX bytes? */
bool imports_is_name(const char *name, size_t len);

#endif
