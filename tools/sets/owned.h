/* Which sets of the store a tenant has had installed, and when it last made use of each. Kept in
 * the store, beside the requests: a directory per tenant, in it an empty file per set.
 */
#ifndef TOOLS_SETS_OWNED_H
#define TOOLS_SETS_OWNED_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "tools/sets/set.h"

#define OWNED_MAX 32	/* sets of a tenant; beyond that the longest unused is forgotten */

struct owned {
	char name[SET_NAME + 1];
	struct timespec used;
};

/* principal: the tenant's. It has the set, and uses it now. What fails is not noted, and the set is
 * not found. */
void owned_note(const char *store, const char *principal, const char *name);

/* Fast; may be true of a tenant whose sets are all gone. */
bool owned_any(const char *store, const char *principal);

/* The one that was used last comes first. A set may have been removed since. Returns their
 * number. */
size_t owned_list(const char *store, const char *principal, struct owned owned_r[OWNED_MAX]);

/* Forgets what was last used before a time. */
void owned_forget(const char *store, time_t oldest);

#endif
