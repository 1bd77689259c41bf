/* SPDX-License-Identifier: Apache-2.0 */
/* Packages that an installation builds from source: how many there may be, and that each program is
 * given the files of all that were built before. The resolver and the builds are stand-ins here;
 * the files are real ones, in a store that the test makes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/xalloc.h"
#include "policy/config.h"
#include "policy/keys.h"
#include "tools/packages/install_parts.h"
#include "tools/packages/program.h"

#define INDEX "https://index.example/simple"
#define HASH "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static char store[64], failure[INSTALL_MESSAGE_MAX];
static struct config *config;
static struct install install;
static program_ended *ended;	/* of the build that runs; NULL: none */
static int wheel = -1;		/* its file */
static size_t resolved, recorded;

/* ---- the stand-ins ---- */

/* Takes descriptors from a socket, which is closed; returns how many there were. */
static size_t
take(int channel, int *fd, size_t most)
{
	char byte, room[CMSG_SPACE(sizeof(int) * (INSTALL_SOURCES_MAX + 2))];
	struct iovec part = { &byte, 1 };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = room,
				  .msg_controllen = sizeof(room) };
	struct cmsghdr *head;
	size_t n;

	assert_int_equal(recvmsg(channel, &message, MSG_DONTWAIT), 1);
	assert_int_equal(message.msg_flags & MSG_CTRUNC, 0);
	head = CMSG_FIRSTHDR(&message);
	assert_non_null(head);
	n = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	assert_in_range(n, 1, most);
	memcpy(fd, CMSG_DATA(head), n * sizeof(int));
	close(channel);
	return n;
}

int
program_start(const struct tool_host *host, const struct program_request *request,
	      program_ended *then, void *arg, struct program **program_r, struct why *why_r)
{
	int fd[2];

	(void)host, (void)why_r;
	assert_true(request->sealed);
	assert_ptr_equal(arg, &install);
	assert_int_equal(take(*request->channel, fd, 2), 2);
	close(fd[0]);
	wheel = fd[1];
	ended = then;
	*program_r = (struct program *)&ended;
	return 0;
}

void
install_resolve(struct install *of)
{
	assert_ptr_equal(of, &install);
	resolved++;
}

void
install_fail(struct install *of, const char *format, ...)
{
	va_list args;

	(void)of;
	va_start(args, format);
	vsnprintf(failure, sizeof(failure), format, args);
	va_end(args);
}

void
install_fail_of_outcome(struct install *of, const struct outcome *outcome, const char *what,
			const char *words)
{
	(void)outcome;
	install_fail(of, "%s: %s", what, words);
}

void
install_record_more(const struct install *of, enum audit_event event, json_t *more)
{
	(void)of;
	assert_int_equal(event, AUDIT_PACKAGE_BUILT);
	recorded += strcmp(json_string_value(json_object_get(more, "status")), "ok") == 0;
	json_decref(more);
}

void
install_deny(struct install *of, const char *why)
{
	install_fail(of, "denied: %s", why);
}

/* ---- one installation ---- */

static void
set(const char *name, const char *value)
{
	const struct key *key = key_at((size_t)key_find("packages", name));

	assert_int_equal(key_set(key, config, value, (key->flags & KEY_ADDS) != 0, NULL), 0);
}

static int
begin(void **state)
{
	(void)state;
	strcpy(store, "/tmp/test-build-XXXXXX");
	if (!mkdtemp(store))
		return -1;
	config = config_new();
	set("index", INDEX);
	set("store", store);
	set("build", "allow");
	memset(&install, 0, sizeof(install));
	install.host.config = config;
	install.indexes = xalloc_check(json_pack("[s]", INDEX));
	install_build_init(&install);
	ended = NULL;
	resolved = recorded = 0;
	*failure = '\0';
	return 0;
}

static int
end(void **state)
{
	(void)state;
	install_build_done(&install);
	json_decref(install.indexes);
	config_free(config);
	return rmdir(store);	/* it is empty: no file has a name */
}

/* A resolver begins, and is given the wheels that were built so far: each says which it is. */
static void
resolver_has_wheels(size_t n)
{
	int fd[INSTALL_SOURCES_MAX + 2], channel;
	char text[32], wanted[32];

	assert_int_equal(install_build_channel(&install, &channel), 0);
	assert_int_equal(take(channel, fd, INSTALL_SOURCES_MAX + 2), n + 1);
	for (size_t i = 1; i <= n; i++) {
		ssize_t len = pread(fd[i], text, sizeof(text) - 1, 0);

		text[len < 0 ? 0 : len] = '\0';
		snprintf(wanted, sizeof(wanted), "wheel %zu", i - 1);
		assert_string_equal(text, wanted);
		assert_int_equal(write(fd[i], "x", 1), -1);
	}
	for (size_t i = 0; i <= n; i++)
		close(fd[i]);
}

/* The resolver comes to a source. */
static void
resolver_finds(size_t n)
{
	const struct outcome outcome = { .status = OUTCOME_OK };
	char name[32], file[64];
	json_t *said;

	snprintf(name, sizeof(name), "chain%zu", n);
	snprintf(file, sizeof(file), "%s-1.0.tar.gz", name);
	said = xalloc_check(json_pack("{s:s,s:s,s:s,s:s,s:s,s:i}", "name", name, "version", "1.0",
				      "hash", HASH, "index", INDEX, "file", file, "size", 10));
	install_build(&install, said, &outcome);
	json_decref(said);
}

/* The build ends, with a wheel of that file name. */
static void
build_makes(size_t n, const char *name)
{
	const struct outcome outcome = { .status = OUTCOME_OK };
	program_ended *then = ended;
	char file[64];
	json_t *answer;

	assert_non_null(then);
	ended = NULL;
	assert_true(dprintf(wheel, "wheel %zu", n) > 0);
	close(wheel);
	snprintf(file, sizeof(file), "%s-1.0-py3-none-any.whl", name);
	answer = xalloc_check(json_pack("{s:s,s:s}", "file", file, "hash", HASH));
	then(&install, answer, "", &outcome);
	json_decref(answer);
}

static void
built(size_t n)
{
	char name[32];

	resolver_has_wheels(n);
	resolver_finds(n);
	snprintf(name, sizeof(name), "chain%zu", n);
	build_makes(n, name);
}

static void
there_is_an_end_to_it(void **state)
{
	json_t *all;

	(void)state;
	for (size_t n = 0; n < INSTALL_SOURCES_MAX; n++) {
		built(n);
		assert_string_equal(failure, "");
		assert_int_equal(resolved, n + 1);
	}
	resolver_has_wheels(INSTALL_SOURCES_MAX);
	all = install_built(&install);
	assert_int_equal(json_array_size(all), INSTALL_SOURCES_MAX);
	json_decref(all);
	resolver_finds(INSTALL_SOURCES_MAX);
	assert_string_equal(failure, "chain20 1.0: more than 20 packages would have to be built from "
			    "source");
	assert_null(ended);
	assert_int_equal(resolved, INSTALL_SOURCES_MAX);
	assert_int_equal(recorded, INSTALL_SOURCES_MAX);
}

/* Whose wheel does not fit would be built again and again. */
static void
nothing_is_built_twice(void **state)
{
	(void)state;
	built(0);
	built(1);
	resolver_finds(0);
	assert_string_equal(failure, "the wheel that was built of chain0 1.0 is not for this "
			    "interpreter");
	assert_null(ended);
	assert_int_equal(install.n_sources, 2);
}

static void
another_package_is_none(void **state)
{
	(void)state;
	resolver_has_wheels(0);
	resolver_finds(0);
	build_makes(0, "chain1");
	assert_string_equal(failure, "chain0 1.0 could not be built from source: its build made "
			    "another package: chain1-1.0-py3-none-any.whl");
	assert_int_equal(resolved + recorded, 0);
}

/* Also the wheels of before: the programs that made them have written more. */
static void
the_bytes_of_all_are_bounded(void **state)
{
	(void)state;
	set("max_bytes", "1M");
	built(0);
	assert_int_equal(resolved, 1);
	assert_int_equal(ftruncate(install.source[0].fd, 1 << 20), 0);
	resolver_finds(1);
	build_makes(1, "chain1");
	assert_string_equal(failure, "chain1 1.0 could not be built from source: the wheels that were "
			    "built are larger than [packages] max_bytes");
	assert_int_equal(resolved, 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(there_is_an_end_to_it, begin, end),
		cmocka_unit_test_setup_teardown(nothing_is_built_twice, begin, end),
		cmocka_unit_test_setup_teardown(another_package_is_none, begin, end),
		cmocka_unit_test_setup_teardown(the_bytes_of_all_are_bounded, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
