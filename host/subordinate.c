/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the directory helper, and in a child of it for each lookup; and in the program that
 * prints policy.   Owns: libsubid.
 * Reads:   /etc/subuid, or what a name service says, by libsubid.
 *
 * libsubid is not linked: it brings PAM, SELinux and audit libraries along, which have no business
 * in the supervisor. */
#include "host/directory.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <shadow/subid.h>

#include "base/log.h"
#include "base/own.h"

#define TEXT(number) #number
#define LIBRARY(major) "libsubid.so." TEXT(major)
#define RANGES "/etc/subuid"
#define SWITCH "/etc/nsswitch.conf"
#define SWITCH_KEY "subid:"

static typeof(subid_get_uid_owners) *get_owners;

void
subordinate_load(void)
{
	void *library = dlopen(LIBRARY(SUBID_ABI_MAJOR), RTLD_NOW | RTLD_LOCAL);
	typeof(subid_init) *init = library ? dlsym(library, "subid_init") : NULL;
	/* Discards what the library says; needs no descriptor. */
	FILE *silent = fopencookie(NULL, "w", (cookie_io_functions_t){ .write = NULL });

	get_owners = library ? dlsym(library, "subid_get_uid_owners") : NULL;
	if (!get_owners || !init || !silent || !init("mcp-pythond", silent)) {
		log_line(LOG_ERR, "subordinate-uids-unknown", "why=%s", library ? "init" : dlerror());
		get_owners = NULL;
	}
}

/* Does a name service have the ranges, and not a file? Also true if this cannot be read. */
static bool
is_switched(void)
{
	FILE *f = fopen(SWITCH, "re");
	bool found = !f && errno != ENOENT;
	char line[1024];

	while (f && !found && fgets(line, sizeof(line), f))
		found = strncmp(line + strspn(line, " \t"), SWITCH_KEY, strlen(SWITCH_KEY)) == 0;
	found = found || (f && ferror(f));
	if (f)
		fclose(f);
	return found;
}

int
subordinate_owner(uid_t uid, uid_t *owner_r)
{
	own_mem uid_t *owner = NULL;
	int n, found = 0;

	if (!get_owners)
		subordinate_load();
	n = get_owners ? get_owners(uid, &owner) : -1;
	/* The library has one error for "there is no file" and all others. */
	if (n < 0)
		return get_owners && access(RANGES, F_OK) < 0 && errno == ENOENT && !is_switched()
			       ? 0 : -EIO;
	for (int i = 0; i < n; i++) {
		if (owner[i] == 0)
			continue;
		found++;
		*owner_r = owner[i];
	}
	return found > 1 ? -EMLINK : found;
}
