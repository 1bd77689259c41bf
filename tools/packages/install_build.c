/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the nameless files that one worker of an installation writes and
 * another reads: sources, and the wheels that were built from them.
 * Reads:   answers of workers; a build's worker ran a stranger's code, and may answer anything.
 *
 * A source goes from the worker that found it, which reaches the index, to a worker without
 * network that builds it; the wheel goes to the workers that resolve and fetch. */
#include "tools/packages/install_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/member.h"
#include "base/own.h"
#include "base/why.h"
#include "base/xalloc.h"
#include "policy/config.h"
#include "policy/packages.h"
#include "policy/requirement.h"
#include "policy/version.h"
#include "tools/packages/build_package.h"
#include "tools/packages/program.h"

#define FILE_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+!-"
#define FILE_MAX_BYTES 200

bool
install_may_build(const struct install *install)
{
	return install->host.config->packages.build == PACKAGES_BUILD_ALLOW;
}

void
install_build_init(struct install *install)
{
	install->archive = -1;
}

void
install_build_done(struct install *install)
{
	for (size_t i = 0; i < install->n_sources; i++) {
		json_decref(install->source[i].package);
		json_decref(install->source[i].wheel);
		if (install->source[i].fd >= 0)
			close(install->source[i].fd);
	}
	if (install->archive >= 0)
		close(install->archive);
}

/* ---- files without a name ---- */

/* Makes a file in the store, because the disk of the store has room. The file has a name only from
 * mkostemp() to unlink(); if the service ends between them, the next keeper removes the file. */
static int
build_make_file(const char *store)
{
	char path[PATH_MAX];
	int fd;

	if (snprintf(path, sizeof(path), "%s/.new-source-XXXXXX", store) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	unlink(path);
	return fd;
}

/* Opens the same file again, read-only, from its beginning. */
static int
open_again(int fd)
{
	char path[64];
	int again;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = open(path, O_RDONLY | O_CLOEXEC);
	return again < 0 ? -errno : again;
}

/* Puts the descriptors into a socket: they go to the process at its other end. */
static int
hand_over(int to, const int *fd, size_t n)
{
	char byte = 0, room[CMSG_SPACE(sizeof(int) * (INSTALL_SOURCES_MAX + 1))] = { 0 };
	struct iovec part = { &byte, 1 };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = room,
				  .msg_controllen = CMSG_SPACE(sizeof(int) * n) };
	struct cmsghdr *head = CMSG_FIRSTHDR(&message);

	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof(int) * n);
	memcpy(CMSG_DATA(head), fd, sizeof(int) * n);
	return sendmsg(to, &message, MSG_NOSIGNAL) == 1 ? 0 : -errno;
}

/* Sends the descriptor "first" (-1: none), and after it the descriptors of the wheels. */
static int
hand_over_wheels(const struct install *install, int to, int first)
{
	int fd[INSTALL_SOURCES_MAX + 1], r = 0;
	size_t n = 0, opened;

	if (first >= 0)
		fd[n++] = first;
	opened = n;
	for (size_t i = 0; i < install->n_sources && r >= 0; i++) {
		r = open_again(install->source[i].fd);
		if (r >= 0)
			fd[n++] = r;
	}
	if (r >= 0 && n > 0)
		r = hand_over(to, fd, n);
	while (n > opened)
		close(fd[--n]);
	return r < 0 ? r : 0;
}

int
install_hand_wheels(const struct install *install, int to)
{
	return hand_over_wheels(install, to, -1);
}

int
install_build_channel(struct install *install, int *channel_r)
{
	own_fd int from = -1;
	int pair[2], r;

	if (install->archive >= 0)
		close(install->archive);
	install->archive = build_make_file(install->host.config->packages.store);
	if (install->archive < 0)
		return install->archive;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	from = pair[0];
	r = hand_over_wheels(install, from, install->archive);
	if (r < 0)
		close(pair[1]);
	else
		*channel_r = pair[1];
	return r;
}

json_t *
install_built(const struct install *install)
{
	json_t *built = xalloc_check(json_array()), *wheel;

	for (size_t i = 0; i < install->n_sources; i++) {
		wheel = xalloc_check(json_copy(install->source[i].wheel));
		json_object_set(wheel, "package", install->source[i].package);
		json_array_append_new(built, wheel);
	}
	return built;
}

bool
install_was_built(const struct install *install, const json_t *package)
{
	for (size_t i = 0; i < install->n_sources; i++)
		if (json_equal(install->source[i].package, package))
			return true;
	return false;
}

bool
install_knows_built(const struct install *install)
{
	const json_t *package;
	size_t i;

	json_array_foreach(install->set, i, package)
		if (json_object_get(package, "built") && !install_was_built(install, package))
			return false;
	return true;
}

/* ---- the wheel ---- */

/* A file name of a worker must be a plain name, without directories. */
static bool
is_file_name(const char *file)
{
	size_t len = strlen(file);

	return len > 0 && len <= FILE_MAX_BYTES && *file != '.' && *file != '-' &&
	       strspn(file, FILE_CHARACTERS) == len;
}

/* "name-version-python-abi-platform.whl" of this package? */
static bool
is_wheel_of(const char *file, const json_t *package)
{
	size_t name_len = strcspn(file, "-"), len = strlen(file), dashes = 0, version_len;
	const char *version = file + name_len + 1;
	char name[FILE_MAX_BYTES + 1];

	for (const char *at = file; *at; at++)
		dashes += *at == '-';
	if (dashes < 4 || dashes > 5 || len < 4 || strcmp(file + len - 4, ".whl") != 0)
		return false;
	requirement_normalise(file, name_len, name);
	version_len = strcspn(version, "-");
	return strcmp(name, member_text_or_empty(package, "name")) == 0 &&
	       version_is(version, version_len, member_text_or_empty(package, "version"));
}

/* The current sizes of all wheels' files together. The files are measured, because the worker of
 * the last build has a descriptor of its wheel's file, and can write more to it. */
static uint64_t
count_bytes(const struct install *install)
{
	uint64_t bytes = 0;
	struct stat st;

	for (size_t i = 0; i < install->n_sources; i++)
		if (fstat(install->source[i].fd, &st) == 0)
			bytes += (uint64_t)st.st_size;
	return bytes;
}

static void
say_built(struct install *install, const json_t *package, const char *trouble)
{
	install_record_more(install, AUDIT_PACKAGE_BUILT,
			    json_pack("{s:O,s:s,s:s*}", "package", package, "status",
				      trouble ? "error" : "ok", "why", trouble));
}

static void
fail_build(struct install *install, const char *words, const struct outcome *outcome)
{
	const json_t *package = install->source[install->n_sources - 1].package;
	char what[INSTALL_MESSAGE_MAX / 4];

	say_built(install, package, *words ? words : outcome_status_name(outcome->status));
	snprintf(what, sizeof(what), "%.128s %.128s could not be built from source",
		 member_text_or_empty(package, "name"), member_text_or_empty(package, "version"));
	install_fail_of_outcome(install, outcome, what, words);
}

static void
on_built(void *arg, const json_t *answer, const char *words, const struct outcome *outcome)
{
	struct install *install = arg;
	struct source *source = &install->source[install->n_sources - 1];
	const char *file = member_text_or_empty(answer, "file");
	const char *hash = member_text_or_empty(answer, "hash");
	char message[INSTALL_MESSAGE_MAX];

	install->program = NULL;
	if (!answer) {
		fail_build(install, words, outcome);
	} else if (!is_file_name(file) || !is_wheel_of(file, source->package) ||
		   !set_is_hash(hash)) {
		snprintf(message, sizeof(message), "its build made another package: %.*s",
			 is_file_name(file) ? FILE_MAX_BYTES : 0, file);
		fail_build(install, message, outcome);
	} else if (count_bytes(install) > install->host.config->packages.max_bytes) {
		fail_build(install, "the wheels that were built are larger than [packages] "
			   "max_bytes", outcome);
	} else {
		source->wheel = xalloc_check(json_pack("{s:s,s:s}", "file", file, "hash", hash));
		say_built(install, source->package, NULL);
		install_resolve(install);
	}
}

/* ---- building ---- */

/* Makes the channel with the source archive and a new file for the wheel. */
static int
build_make_channel(struct install *install, struct source *source, int *channel_r)
{
	own_fd int from = -1, archive = open_again(install->archive);
	int pair[2], fd[2], r;

	source->fd = build_make_file(install->host.config->packages.store);
	if (archive < 0 || source->fd < 0)
		return archive < 0 ? archive : source->fd;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	from = pair[0];
	fd[0] = archive;
	fd[1] = source->fd;
	r = hand_over(from, fd, 2);
	if (r < 0)
		close(pair[1]);
	else
		*channel_r = pair[1];
	return r;
}

static void
start_build(struct install *install, struct source *source, const char *file)
{
	struct program_request request = { .text = build_package, .profile = install->profile,
					   .sealed = true };
	const char *name = member_text_or_empty(source->package, "name");
	const char *version = member_text_or_empty(source->package, "version");
	char message[FILE_MAX_BYTES + VERSION_MAX + 64];
	struct tool_progress progress = { .message = message };
	struct why why = { .field = "" };
	json_t *argument;
	int channel, r;

	snprintf(message, sizeof(message), "Building %.128s %.128s from source", name, version);
	if (install->host.on_progress)
		install->host.on_progress(install->host.arg, &progress);
	r = build_make_channel(install, source, &channel);
	if (r < 0) {
		install_fail(install, "%s %s could not be built from source: %s", name, version,
			     strerror(-r));
		return;
	}
	argument = json_pack("{s:s,s:O,s:I}", "file", file, "sha256",
			     json_object_get(source->package, "hash"), "max_bytes",
			     (json_int_t)install->host.config->packages.max_bytes);
	request.argument = json_dumps(xalloc_check(argument), JSON_COMPACT);
	json_decref(argument);
	request.channel = &channel;
	r = program_start(&install->host, &request, on_built, install, &install->program, &why);
	free(request.argument);
	if (r < 0)
		install_fail(install, "%s", why.text);
}

/* A set of one package, in the form for policy; NULL: not a set. */
static json_t *
read_source(const struct install *install, const json_t *said)
{
	json_t *one = json_pack("[O]", (json_t *)said);
	json_t *set = set_read(xalloc_check(one), install->indexes);

	json_decref(one);
	if (set)
		json_object_set_new(json_array_get(set, 0), "built", json_true());
	return set;
}

void
install_build(struct install *install, const json_t *said, const struct outcome *outcome)
{
	json_t *set = install_may_build(install) ? read_source(install, said) : NULL;
	const json_t *package = json_array_get(set, 0);
	const char *file = member_text_or_empty(said, "file");
	struct why why = { .field = "" };
	struct source *source;
	struct package one;

	if (!set || !is_file_name(file)) {
		json_decref(set);
		install_fail_of_outcome(install, outcome, "the packages could not be resolved",
					"");
		return;
	}
	set_packages(set, &one);
	if (packages_decide(install->host.config, &one, 1, NULL, &why) == POLICY_DENY) {
		install->set = set;
		install_deny(install, why.text);
	} else if (install_was_built(install, package)) {
		install_fail(install, "the wheel that was built of %s %s is not for this "
			     "interpreter", one.name, one.version);
		json_decref(set);
	} else if (install->n_sources == INSTALL_SOURCES_MAX) {
		install_fail(install, "%s %s: more than %d packages would have to be built "
			     "from source", one.name, one.version, INSTALL_SOURCES_MAX);
		json_decref(set);
	} else {
		source = &install->source[install->n_sources++];
		*source = (struct source){ .package = json_incref((json_t *)package), .fd = -1 };
		json_decref(set);
		start_build(install, source, file);
	}
}
