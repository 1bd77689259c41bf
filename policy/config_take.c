/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor, when it reads its files again.   Owns: nothing.
 * Takes single sections of another configuration. */
#include "policy/config_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "policy/keys.h"

bool
config_same_profile(const struct config *a, const struct config *b, const char *name)
{
	const struct config_profile *one = config_find_profile(a, name);
	const struct config_profile *other = config_find_profile(b, name);
	const struct config_interpreter *ones, *others;

	if (!one || !other || config_section_differs("profile", one, other))
		return false;
	ones = config_interpreter_of(a, one);
	others = config_interpreter_of(b, other);
	return !ones == !others &&
	       (!ones || !config_section_differs("interpreter", ones, others));
}

/* The old values stay until the end of the configuration. */
static void
config_take_retire(struct config_origin *origin, const char *section, const void *values,
		   size_t size)
{
	struct config_retired *retired = reallocarray(origin->retired, origin->n_retired + 1,
						      sizeof(*retired));

	origin->retired = xalloc_check(retired);
	retired += origin->n_retired++;
	retired->section = section;
	retired->values = xalloc_check(malloc(size));
	memcpy(retired->values, values, size);
}

/* Copies a section into an array of n sections, which has room for most. Returns its number there,
 * or -ENOSPC. */
static int
config_take_section(struct config_origin *origin, const char *section, char *first, size_t *n,
		    size_t most, size_t size, const void *values)
{
	const struct key *key;
	size_t i = 0;

	while (i < *n && strcmp(first + i * size, values) != 0)
		i++;
	if (i == most)
		return -ENOSPC;
	if (i == *n)
		++*n;
	else
		config_take_retire(origin, section, first + i * size, size);
	memcpy(first + i * size, values, size);
	for (size_t k = 0; (key = key_at(k)); k++)
		if (strcmp(key->section, section) == 0)
			key_own(key, first + i * size);
	return (int)i;
}

int
config_take_profile(struct config *to, const struct config *from, const char *name)
{
	const struct config_profile *profile = config_find_profile(from, name);
	const struct config_interpreter *interpreter = config_interpreter_of(from, profile);
	int r = interpreter ? config_take_section(to->origin, "interpreter", (char *)to->interpreter,
						  &to->n_interpreters, CONFIG_INTERPRETERS_MAX,
						  sizeof(*interpreter), interpreter) : 0;

	return r < 0 ? r
		     : config_take_section(to->origin, "profile", (char *)to->profile,
					   &to->n_profiles, CONFIG_PROFILES_MAX, sizeof(*profile),
					   profile);
}
