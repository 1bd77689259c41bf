/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the making of a set, from its wheels to its name in the
 * store.
 *
 * Two workers take part, with the keeper between them. The first reaches the index, and sends
 * the wheels. The keeper compares each with the approved hash and unpacks it. The second has no
 * network, and compiles the files that the keeper shows it. This process sees none of the bytes. */
#include "tools/packages/install_parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/member.h"
#include "base/own.h"
#include "base/watched.h"
#include "base/why.h"
#include "base/xalloc.h"
#include "engine/engine.h"
#include "engine/keeper.h"
#include "policy/config.h"
#include "proto/message.h"
#include "tools/packages/compile_packages.h"
#include "tools/packages/consent.h"
#include "tools/packages/fetch_packages.h"
#include "tools/packages/program.h"

/* ---- the end ---- */

/* The programs and the keeper end in any order. */
static void
end_making(struct install *install)
{
	if (install->program || !install->taken)
		return;
	if (install->words)
		install_fail(install, "the packages could not be installed: %s", install->words);
	else if (install->take_error)
		install_fail(install, "the packages could not be stored: %s", install->take_text);
	else
		install_succeed(install, false);
}

static void
make_on_taken(void *arg, int error, const char *text, uint64_t, uint32_t)
{
	struct install *install = arg;

	install->taking = NULL;
	install->taken = true;
	install->take_error = error;
	install->take_text = xstrdup(text);
	/* The reason of a failed read comes from the writer. */
	if (error && error != EPIPE && install->program) {
		program_cancel(install->program, CANCEL_BY_CLIENT);
		install->program = NULL;
	}
	end_making(install);
}

/* Notes the failure of a program. True: the installation is over. */
static bool
note_failure(struct install *install, const char *words, const struct outcome *outcome)
{
	if (outcome->status != OUTCOME_ERROR || !*words) {
		install_fail_of_outcome(install, outcome, "the packages could not be installed",
					words);
		return true;
	}
	install->words = xstrdup(words);
	if (install->compiler >= 0)
		close(install->compiler);
	install->compiler = -1;
	return false;
}

/* ---- compiling ---- */

static void
on_compiled(void *arg, const json_t *answer, const char *words, const struct outcome *outcome)
{
	struct install *install = arg;

	install->program = NULL;
	if (answer || !note_failure(install, words, outcome))
		end_making(install);
}

static void
start_compiling(struct install *install)
{
	struct program_request request = { .text = compile_packages, .argument = (char[]){ "{}" },
					   .profile = install->profile, .sealed = true,
					   .channel = &install->compiler };
	struct why why = { .field = "" };
	int r = program_start(&install->host, &request, on_compiled, install, &install->program,
			      &why);

	/* The descriptor belongs to the execution by now, even if that was not started. */
	install->compiler = -1;
	if (r < 0)
		install_fail(install, "%s", why.text);
}

/* ---- fetching ---- */

static void
on_fetched(void *arg, const json_t *answer, const char *words, const struct outcome *outcome)
{
	struct install *install = arg;

	install->program = NULL;
	if (!answer && note_failure(install, words, outcome))
		return;
	if (answer && !install->taken)
		start_compiling(install);
	else
		end_making(install);
}

/* The number of the source that the package was built of; -1: none. */
static int
source_of(const struct install *install, const json_t *package)
{
	for (size_t i = 0; i < install->n_sources; i++)
		if (json_equal(package, install->source[i].package))
			return (int)i;
	return -1;
}

/* Describes a wheel to the fetching program; *line_r (malloc'd): its description for the keeper. */
static json_t *
describe_wheel(const struct install *install, const json_t *package, char **line_r)
{
	const char *name = member_text(package, "name");
	const char *hash = member_text(package, "hash");
	uint64_t size = (uint64_t)json_integer_value(json_object_get(package, "size"));
	int built = source_of(install, package);
	json_t *wheel;
	struct stat st;

	if (built >= 0) {
		hash = member_text(install->source[built].wheel, "hash");
		size = fstat(install->source[built].fd, &st) < 0 ? 0 : (uint64_t)st.st_size;
		wheel = json_pack("{s:i,s:I}", "built", built, "size", (json_int_t)size);
	} else {
		wheel = json_pack("{s:O,s:I}", "url", json_object_get(install->links, name),
				  "size", (json_int_t)size);
	}
	*line_r = xasprintf("%s %s %s %llu", name,
			    member_text(package, "version"),
			    hash + strlen("sha256:"), (unsigned long long)size);
	return xalloc_check(wheel);
}

static char *
manifest_of(const struct install *install, size_t *len_r)
{
	json_t *manifest = json_pack("{s:s,s:O}", "platform", install->platform, "packages",
				     install->set);
	char *text = json_dumps(xalloc_check(manifest), JSON_COMPACT);

	json_decref(manifest);
	*len_r = strlen(xalloc_check(text));
	return text;
}

static int
start_taking(struct install *install, char *const *line, size_t n, int stream, int compiler)
{
	const struct config *config = install->host.config;
	struct taking_request taking = {
		.name = install->name,
		.wheel = (const char *const *)line, .n_wheels = n,
		.python = install->python,
		.bytes_max = config->packages.environment_bytes,
		.files_max = config->packages.environment_files,
		.stream = stream, .compiler = compiler,
	};
	own_mem char *manifest = manifest_of(install, &taking.manifest_len);

	taking.manifest = manifest;
	return keeper_take(engine_keeper(install->host.engine), &taking, make_on_taken, install,
			   &install->taking);
}

static void
start_fetching(struct install *install, json_t *wheels, int channel)
{
	struct program_request request = { .text = fetch_packages, .profile = install->profile,
					   .channel = &channel };
	struct why why = { .field = "" };
	json_t *argument = json_pack("{s:O,s:i}", "wheels", wheels, "seconds",
				     INSTALL_INDEX_SECONDS);

	request.argument = xalloc_check(json_dumps(xalloc_check(argument), JSON_COMPACT));
	json_decref(argument);
	if (program_start(&install->host, &request, on_fetched, install, &install->program,
			  &why) < 0)
		install_fail(install, "%s", why.text);
	free(request.argument);
}

/* Makes the sockets for the wheels and for the compiler; the keeper's end of each comes first. */
static int
make_sockets(struct install *install, int wheels_r[2], int compiler_r[2])
{
	int r;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, wheels_r) < 0)
		return -errno;
	r = install_hand_wheels(install, wheels_r[0]);
	if (r == 0 && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, compiler_r) < 0)
		r = -errno;
	if (r < 0) {
		close(wheels_r[0]);
		close(wheels_r[1]);
		return r;
	}
	/* The keeper never takes descriptors from a worker. */
	watched_refuse(wheels_r[0]);
	watched_refuse(compiler_r[0]);
	return 0;
}

static void
make_begin(struct install *install, json_t *wheels, char *const *line, size_t n)
{
	struct keeper *keeper = engine_keeper(install->host.engine);
	int stream[2], compiler[2], r = make_sockets(install, stream, compiler);

	if (r < 0) {
		install_fail(install, "the packages could not be installed: %s", strerror(-r));
		return;
	}
	install->compiler = compiler[1];
	r = start_taking(install, line, n, stream[0], compiler[0]);
	if (r < 0) {
		close(stream[1]);
		install_fail(install, "the packages could not be stored: %s",
			     keeper_trouble(keeper));
		return;
	}
	start_fetching(install, wheels, stream[1]);
}

/* Can the path stand in the first line of a script? */
static bool
is_interpreter(const char *path)
{
	size_t len = strlen(path);

	for (size_t i = 0; i < len; i++)
		if (path[i] <= ' ' || path[i] > '~')
			return false;
	return *path == '/' && len <= PYTHON_PATH_MAX;
}

void
install_make(struct install *install)
{
	size_t n = json_array_size(install->set), i;
	const json_t *package;
	json_t *wheels;
	char **line;

	if (!install->links) {
		/* A set that was found in the store has been removed since. */
		json_decref(install->set);
		install->set = NULL;
		consent_free(install->consent);
		install->consent = NULL;
		install_resolve(install);
		return;
	}
	if (!is_interpreter(install->python)) {
		install_fail(install, "the packages could not be installed: the profile's "
			     "interpreter has no path that scripts can name");
		return;
	}
	wheels = xalloc_check(json_array());
	line = xcalloc(n, sizeof(*line));
	json_array_foreach(install->set, i, package)
		json_array_append_new(wheels, describe_wheel(install, package, &line[i]));
	make_begin(install, wheels, line, n);
	json_decref(wheels);
	for (i = 0; i < n; i++)
		free(line[i]);
	free(line);
}
