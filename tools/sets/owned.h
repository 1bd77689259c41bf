/* SPDX-License-Identifier: Apache-2.0 */
/* A table of the sets of the store that were installed for each tenant, with the time of their last
 * use. It is in memory, so a lookup never waits for the disk. Each change is also written to the
 * store, where the next start of the service reads it: a directory for each tenant, with an empty
 * file for each set, and a file with the tenant's principal.
 */
#ifndef TOOLS_SETS_OWNED_H
#define TOOLS_SETS_OWNED_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "tools/sets/set.h"

#define OWNED_MAX 32	/* sets of a tenant; beyond that the one unused for longest is dropped */

struct owned {
	char name[SET_NAME + 1];
	struct timespec used;
};

/* Reads the table from the store; blocks. To be called before the first client. */
void owned_load(const char *store);
void owned_unload(void);

/* Notes that the tenant uses the set now. principal: the tenant's. After an error of the disk, the
 * use is known only until the service ends. */
void owned_note(const char *store, const char *principal, const char *name);

/* Has the table any set of the tenant? The set may have been removed from the store meanwhile. */
bool owned_any(const char *principal);

/* The tenant's sets; the one that was used last comes first. A set may have been removed from the
 * store meanwhile. Returns their number. */
size_t owned_list(const char *principal, struct owned owned_r[OWNED_MAX]);

/* Visits each set of each tenant. principal: NULL if the tenant has not used a set since names are
 * kept. */
void owned_each(void (*visit)(void *arg, const char *principal, const struct owned *set),
		void *arg);

/* Forgets the set of this name: that of one tenant (NULL: of all). Returns of how many. */
size_t owned_remove(const char *store, const char *principal, const char *name);

/* Forgets the sets that were last used before a time. */
void owned_forget(const char *store, time_t oldest);

#endif
