/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor, at its start and when it reads its files again.
 * Owns:    nothing. */
#include "supervisor/configuration.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"
#include "base/userdir.h"
#include "base/why.h"
#include "base/xalloc.h"
#include "govern/subject.h"
#include "host/directory.h"
#include "policy/config.h"
#include "policy/keys.h"
#include "policy/people.h"
#include "policy/rules.h"
#include "policy/sandbox_environment.h"
#include "policy/words.h"
#include "supervisor/laptop.h"
#include "tools/toolsets.h"

#define PRIVATE_OUTPUT_BYTES ((uint64_t)256 << 20)

static int
read_beside(struct config *config, const char *path, FILE *errors)
{
	const char *slash = strrchr(path, '/');
	own_mem char *directory = NULL;
	int r;

	directory = xasprintf("%.*sconf.d", slash ? (int)(slash - path) + 1 : 0, path);
	r = config_read_directory(config, directory, errors);
	if (r < 0 && r != -EINVAL)
		fprintf(errors, "%s: %s\n", directory, strerror(-r));
	return r;
}

/* The user who starts a script at a terminal may answer it there, hands it files, and wants all of
 * its output. */
static void
set_private_defaults(struct config *config)
{
	config->policy.input = POLICY_INPUT_ALLOW;
	config->limits.standard.results.spill_bytes = PRIVATE_OUTPUT_BYTES;
	config->results.inputs = 256;
	config->results.input_bytes = 16 << 20;
	config->results.inputs_bytes = 32 << 20;
	config->service.line_max = 64 << 20;
	config->results.keep_bytes = config->results.keep_bytes_max = 2 * PRIVATE_OUTPUT_BYTES;
}

/* The user's configuration directory; malloc'd, NULL: there is none. Not root's: sudo may leave
 * HOME as it was. */
char *
configuration_own_folder(void)
{
	return geteuid() == 0 ? NULL : userdir("XDG_CONFIG_HOME", ".config", "mcp-pythond");
}

/* The user's own files, over those of the machine. */
static int
read_own(struct config *config, FILE *errors)
{
	own_mem char *directory = configuration_own_folder();
	own_mem char *path = NULL;
	int r, beside;

	/* A directory that the user may not enter belongs to another user. */
	if (!directory || access(directory, X_OK) < 0)
		return 0;
	path = xasprintf("%s/mcp-pythond.conf", directory);
	r = config_read(config, path, errors);
	if (r == -ENOENT)
		r = 0;
	else if (r < 0 && r != -EINVAL)
		fprintf(errors, "%s: %s\n", path, strerror(-r));
	beside = read_beside(config, path, errors);
	return r < 0 ? r : beside;
}

/* Kept files and volumes are in the unit's state directory unless the configuration says where. */
static void
place_in_state(char **directory, const char *name)
{
	const char *state = getenv("STATE_DIRECTORY");

	if (*directory || !state || strchr(state, ':'))
		return;
	*directory = xasprintf("%s/%s", state, name);
}

/* The sets of tools that the command line names. */
static int
set_toolsets(struct config *config, const char *sets, FILE *errors)
{
	struct why why;

	if (!sets || key_set(key_at((size_t)key_find("mcp", "toolsets")), config, sets, false,
			     &why) == 0)
		return 0;
	fprintf(errors, "--toolsets: %s\n", why.text);
	return -EINVAL;
}

/* Adds the settings that do not come from files. */
static int
add_the_rest(struct config *config, const struct configuration_source *source, FILE *errors)
{
	int r = set_toolsets(config, source->toolsets, errors);

	if (r < 0)
		return r;
	if (source->whom == FOR_UNIT)
		place_in_state(&config->files.directory, "files");
	if (source->whom == FOR_UNIT && config->workspace.volume)
		place_in_state(&config->workspace.directory, "volumes");
	if (source->whom != FOR_UNIT && toolsets_wants(config, "python-sandbox"))
		r = sandbox_environment_read(config, errors);
	/* Without an index, a script that mcp-python runs can still use packages that are installed
	 * already. */
	if (source->packages && laptop_packages(config, source->packages, errors) < 0 &&
	    source->whom != FOR_PRIVATE)
		r = -EINVAL;
	if (r == 0 && source->folder)
		r = laptop_folder(config, source->folder, errors);
	if (r == 0 && source->one_client)
		laptop_files(config, errors);
	config->files.roots = source->roots;
	return r;
}

/* The user who starts a service is its operator, unless the configuration names operators. */
static int
set_own_operator(struct config *config, FILE *errors)
{
	char place[PATH_MAX + 32], who[32];
	struct why why;

	config_place(config, "admin", "operators", place, sizeof(place));
	if (place[0] != '[' || geteuid() == 0)
		return 0;
	snprintf(who, sizeof(who), "uid:%u", (unsigned int)geteuid());
	if (key_set(key_at((size_t)key_find("admin", "operators")), config, who, false, &why) == 0)
		return 0;
	fprintf(errors, "[admin] operators: %s\n", why.text);
	return -EINVAL;
}

/* Takes out what the files of the machine say of its own service's places: a service of one client
 * cannot use them, or would take them from that service. */
static void
leave_places(struct config *config)
{
	static const char *const places[][2] = {
		{ "audit", "file" },	   { "admin", "socket" },	 { "admin", "approvals" },
		{ "files", "directory" },  { "workspace", "directory" }, { "packages", "store" },
	};

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		config_unsay(config, places[i][0], places[i][1]);
}

struct config *
configuration_read(const struct configuration_source *source, FILE *errors)
{
	const char *file = source->path ? source->path : CONFIGURATION_INSTALLED;
	struct config *config = config_new();
	int r, beside;

	if (source->whom == FOR_PRIVATE)
		set_private_defaults(config);
	r = config_read(config, file, errors);
	if (r == -ENOENT && !source->path)
		r = 0;
	else if (r < 0 && r != -EINVAL)
		fprintf(errors, "%s: %s\n", file, strerror(-r));
	beside = read_beside(config, file, errors);
	if (source->one_client && !source->path)
		leave_places(config);
	if (beside == 0 && source->with_own)
		beside = read_own(config, errors);
	if (beside == 0 && source->with_own)
		beside = set_own_operator(config, errors);
	if (r == 0 && beside == 0 && add_the_rest(config, source, errors) == 0 &&
	    config_check(config, file, errors) == 0 &&
	    toolsets_check(config, errors) == 0)
		return config;
	config_free(config);
	return NULL;
}

/* "uid:1000" from "1000" or "alice"; a principal stays as it is. Malloc'd; NULL and errno:
 * ENOENT: there is no such user. */
static char *
principal_of(const char *who)
{
	const struct passwd *user;
	char *principal;

	if (word_is_subject(who, strlen(who)))
		return xstrdup(who);
	errno = 0;
	user = isdigit((unsigned char)*who) ? NULL : getpwnam(who);
	if (!user && strspn(who, "0123456789") != strlen(who)) {
		errno = errno ? errno : ENOENT;
		return NULL;
	}
	principal = xasprintf("uid:%u", user ? user->pw_uid
						     : (unsigned int)strtoul(who, NULL, 10));
	return principal;
}

int
configuration_show(const struct config *config, const char *who, FILE *out)
{
	own_mem char *principal = principal_of(who);
	struct directory_person person = { .user = NULL };
	const struct config *theirs;
	struct subject subject;
	struct people people;
	char owner[32];
	int r = 0;
	uid_t uid;

	if (!principal)
		return -errno;
	people_of(config, &people);
	subject_init(&subject, principal);
	if (subject_is_uid(principal, &uid))
		r = directory_look_up(uid, (const char *const *)people.group, people.n, &person);
	if (r == 0 && person.member && subject_is_uid(principal, &uid) && person.uid != uid) {
		fprintf(out, "# uid:%u is a subordinate uid of uid:%u\n", uid, person.uid);
		snprintf(owner, sizeof(owner), "uid:%u", person.uid);
		subject_done(&subject);
		subject_init(&subject, owner);
	}
	if (r == 0 && person.member)
		subject_learn(&subject, &people, &person);
	directory_person_done(&person);
	people_done(&people);
	if (r < 0) {
		subject_done(&subject);
		return r;
	}
	fprintf(out, "# %s", subject.principal);
	if (subject.user)
		fprintf(out, " user:%s", subject.user);
	for (size_t i = 0; i < subject.policy.n_groups; i++)
		fprintf(out, " group:%s", subject.policy.group[i]);
	fputc('\n', out);
	theirs = config_for(config, &subject.policy);
	if (theirs)
		config_dump_policy(theirs, out);
	else
		fputs("# their sections cannot be put together: nothing is allowed\n", out);
	config_free(theirs);
	subject_done(&subject);
	return 0;
}
