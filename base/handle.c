/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the form of handles.   Reads: this host's name. */
#include "base/handle.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void
handle_host(const char *name, char host_r[HANDLE_HOST_MAX + 1])
{
	size_t n = 0;

	for (; *name && *name != '.' && n < HANDLE_HOST_MAX; name++)
		if (isalnum((unsigned char)*name) || *name == '-')
			host_r[n++] = *name;
	host_r[n] = '\0';
	if (n == 0)
		strcpy(host_r, "host");
}

void
handle_own_host(char host_r[HANDLE_HOST_MAX + 1])
{
	char name[HOST_NAME_MAX + 1] = "";

	/* A name that does not fit is cut, perhaps without its terminating NUL. */
	gethostname(name, sizeof(name) - 1);
	handle_host(name, host_r);
}

static bool host_is_named;

void
handle_name_host(bool named)
{
	host_is_named = named;
}

void
handle_new(char kind, char handle_r[HANDLE_MAX + 1])
{
	char id[ID_SHORT + 1], host[HANDLE_HOST_MAX + 1] = "";

	id_new_short(id);
	if (host_is_named)
		handle_own_host(host);
	snprintf(handle_r, HANDLE_MAX + 1, "%c-%s%s%s", kind, id, *host ? "-" : "", host);
}
