/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of modules that a script may import: tiers of the configuration, and lists of clients.
 * Names are dotted; a listed package includes its modules. Only lists are made here:
 * worker/imports.py enforces them.
 */
#ifndef POLICY_IMPORTS_H
#define POLICY_IMPORTS_H

#include <stdbool.h>
#include <stddef.h>

#define IMPORT_NAME_MAX 255	/* bytes */

struct config_list;

/* The names are borrowed; item is malloc'd and ends with NULL. {0} is not a list; every function
 * below makes it one, which may be empty. */
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

/* Adds the names to *narrow that both wanted (a name) and the list allow: wanted itself, or the
 * list's names in the package wanted. */
void imports_narrow(const struct import_list *list, const char *wanted,
		    struct import_list *narrow);

/* A dotted name that can stand after import, of at most IMPORT_NAME_MAX bytes. */
bool imports_is_name(const char *name, size_t len);

#endif
