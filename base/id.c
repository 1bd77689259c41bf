/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: any process.   Owns: random bytes that are not used yet. */
#include "base/id.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/xalloc.h"

static const char alphabet[] = "abcdefghijkmnpqrstuvwxyz23456789";

static void
id_write(char *id_r, size_t len)
{
	/* One system call serves several ids: each execution needs one. getrandom(2) never returns
	 * less than asked for up to 256 bytes. */
	static unsigned char pool[8 * ID_CHARACTERS];
	static size_t left;

	if (left < len) {
		xassert(getrandom(pool, sizeof(pool), 0) == (ssize_t)sizeof(pool));
		left = sizeof(pool);
	}
	for (size_t i = 0; i < len; i++) {
		id_r[i] = alphabet[pool[--left] % (sizeof(alphabet) - 1)];
		pool[left] = 0;
	}
	id_r[len] = '\0';
}

void
id_new(char id_r[ID_CHARACTERS + 1])
{
	id_write(id_r, ID_CHARACTERS);
}

void
id_new_short(char id_r[ID_SHORT + 1])
{
	id_write(id_r, ID_SHORT);
}

bool
id_is_valid(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!text[i] || !strchr(alphabet, text[i]))
			return false;
	return true;
}
