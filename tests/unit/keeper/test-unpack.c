/* SPDX-License-Identifier: Apache-2.0 */
/* Wheels unpacked by a process of their own, and sources compiled by a worker that may say
 * anything. */
#include "keeper/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"
#include "base/remove.h"
#include "base/why.h"
#include "keeper/compile.h"
#include "keeper/digest.h"
#include "keeper/intake.h"
#include "wheels.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))

/* A tree of its own for each test. */
struct place {
	char name[32], list_name[40];
	struct intake intake;
};

static int
set_up(void **state)
{
	struct place *place = calloc(1, sizeof(*place));

	strcpy(place->name, "/tmp/unpack-XXXXXX");
	assert_non_null(mkdtemp(place->name));
	snprintf(place->list_name, sizeof(place->list_name), "%s.files", place->name);
	place->intake.tree = open(place->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	place->intake.list = fopen(place->list_name, "w");
	place->intake.bytes_max = 1 << 20;
	place->intake.files_max = 20;
	assert_true(place->intake.tree >= 0 && place->intake.list);
	*state = place;
	return 0;
}

static int
tear_down(void **state)
{
	struct place *place = *state;

	fclose(place->intake.list);
	close(place->intake.tree);
	unlink(place->list_name);
	assert_int_equal(remove_tree(AT_FDCWD, place->name, 50), 0);
	free(place);
	return 0;
}

static int
unpack_zip(struct place *place, const struct zip *zip, struct why *why)
{
	const struct wheel_asked asked = { "lib", "1.0", "/usr/bin/python3", 1 << 20, 20 };
	own_fd int file = zip_file(zip);
	int r = wheel_unpack(file, zip->len, &asked, &place->intake, why);

	free(zip->at);
	return r;
}

static bool
is_there(const struct place *place, const char *path)
{
	return faccessat(place->intake.tree, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void
a_wheel_is_unpacked(void **state)
{
	static const struct zipped files[] = {
		{ .path = "lib/__init__.py", .text = "x = 1\n" },
		{ .path = "lib/\xc3\xbc.txt", .text = "" },
	};
	const struct zip zip = wheel_make("lib", "1.0", files, N(files));
	struct place *place = *state;
	struct why why = { .text = "" };

	if (unpack_zip(place, &zip, &why) < 0)
		fail_msg("%s", why.text);
	assert_int_equal(place->intake.files, 5);
	assert_true(is_there(place, "lib/\xc3\xbc.txt") && is_there(place, "lib-1.0.dist-info/RECORD"));
	/* No zombie, and nothing else of it. */
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

static void
what_is_wrong_is_said(void **state)
{
	static const struct zipped files[] = { { .path = "../up", .text = "" } };
	const struct zip zip = wheel_make("lib", "1.0", files, N(files));
	struct place *place = *state;
	struct why why = { .text = "" };

	assert_int_equal(unpack_zip(place, &zip, &why), -EBADMSG);
	assert_non_null(strstr(why.text, "lib 1.0: it names a file outside"));
	assert_int_equal(place->intake.files, 0);
}

/* The taker refuses what the reader still writes. */
static void
the_taker_may_have_enough(void **state)
{
	char *large = calloc(1, 300000);
	const struct zipped files[] = { { .path = "a", .text = large, .len = 300000 },
					{ .path = "b", .text = large, .len = 300000 } };
	const struct zip zip = wheel_make("lib", "1.0", files, N(files));
	struct place *place = *state;
	struct why why = { .text = "" };

	place->intake.bytes_max = 400000;
	assert_int_equal(unpack_zip(place, &zip, &why), -EFBIG);
	assert_string_equal(why.text, "the size of the packages");
	free(large);
}

/* ---- compiling ---- */

static void
put_source(struct place *place, const char *path, const char *text)
{
	own_fd int fd = -1;
	char *slash = strrchr(path, '/'), dir[64];

	if (slash) {
		snprintf(dir, sizeof(dir), "%.*s", (int)(slash - path), path);
		mkdirat(place->intake.tree, dir, 0755);
	}
	fd = openat(place->intake.tree, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	fprintf(place->intake.list, "%064d  tree/%s\n", 0, path);
	fflush(place->intake.list);
}

/* The answer of a worker that answers without regard to the source; NULL: it answers correctly. */
struct said {
	const char *bytes;
	size_t len;
};

static void
read_exactly(int fd, void *to, size_t len)
{
	if (intake_bytes(fd, to, len) < 0)
		_exit(0);
}

static _Noreturn void
live_as_compiler(int fd, const struct said *said)
{
	unsigned char head[6], answer[4] = { 0, 0, 0, 4 };
	char text[1024];

	if (said->bytes) {
		if (write(fd, said->bytes, said->len) != (ssize_t)said->len)
			_exit(1);
		shutdown(fd, SHUT_WR);
		while (read(fd, text, sizeof(text)) > 0)
			;
		_exit(0);
	}
	if (write(fd, "\x03tag", 4) != 4)
		_exit(1);
	for (;;) {
		read_exactly(fd, head, sizeof(head));
		read_exactly(fd, text, (size_t)head[0] << 8 | head[1]);
		read_exactly(fd, text, (size_t)head[4] << 8 | head[5]);
		/* The beginning of the source; none of what does not compile. */
		answer[3] = *text == '!' ? 0 : 4;
		if (write(fd, answer, 4) != 4 || write(fd, text, answer[3]) != answer[3])
			_exit(1);
	}
}

static int
compile(struct place *place, const char *bytes, size_t len, struct why *why)
{
	const struct said said = { bytes, len };
	FILE *sources = fopen(place->list_name, "r");
	long end = ftell(place->intake.list);
	int pair[2], r;
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	pid = fork();
	if (pid == 0) {
		close(pair[0]);
		live_as_compiler(pair[1], &said);
	}
	close(pair[1]);
	r = compile_sources(&place->intake, pair[0], sources, end, why);
	close(pair[0]);
	fclose(sources);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return r;
}

static void
sources_are_compiled(void **state)
{
	struct place *place = *state;
	struct why why = { .text = "" };
	char text[8] = "";
	own_fd int fd = -1;

	put_source(place, "a.py", "abcdef");
	put_source(place, "d/b.c.py", "ghijkl");
	put_source(place, "d/bad.py", "!not Python");
	put_source(place, "d/data.txt", "text");
	put_source(place, "d/.py", "hidden");
	if (compile(place, NULL, 0, &why) < 0)
		fail_msg("%s", why.text);
	fd = openat(place->intake.tree, "d/__pycache__/b.c.tag.pyc", O_RDONLY | O_CLOEXEC);
	assert_int_equal(read(fd, text, sizeof(text)), 4);
	assert_string_equal(text, "ghij");
	assert_true(is_there(place, "__pycache__/a.tag.pyc"));
	assert_false(is_there(place, "d/__pycache__/bad.tag.pyc"));
	assert_false(is_there(place, "d/__pycache__/data.tag.pyc"));
	assert_int_equal(place->intake.files, 3);
}

static void
a_compiler_that_lies(void **state)
{
	static const struct {
		const char *what;
		struct said said;
		int r;
	} cases[] = {
		{ "says nothing", { "", 0 }, -EPIPE },
		{ "has no tag", { "\x00", 1 }, -EBADMSG },
		{ "has a long tag", { "\xff" "aaaa", 5 }, -EBADMSG },
		{ "ends in its tag", { "\x05" "aa", 3 }, -EPIPE },
		{ "has a path for a tag", { "\x06/../..", 7 }, -EBADMSG },
		{ "has a NUL in its tag", { "\x03" "a\0b", 4 }, -EBADMSG },
		{ "has a line break in its tag", { "\x03" "a\nb", 4 }, -EBADMSG },
		{ "answers nothing", { "\x03tag", 4 }, -EPIPE },
		{ "ends in a size", { "\x03tag\x00\x00", 6 }, -EPIPE },
		{ "makes too much", { "\x03tag\xff\xff\xff\xff", 8 }, -EBADMSG },
		{ "ends in what it made", { "\x03tag\x00\x00\x00\x09" "abc", 11 }, -EPIPE },
	};
	struct place *place = *state;

	put_source(place, "a.py", "text");
	for (size_t i = 0; i < N(cases); i++) {
		struct why why = { .text = "" };
		int r = compile(place, cases[i].said.bytes, cases[i].said.len, &why);

		if (r != cases[i].r || !*why.text)
			fail_msg("%s: %d, %s", cases[i].what, r, why.text);
	}
}

static void
a_list_that_cannot_be_read_has_not_ended(void **state)
{
	struct place *place = *state;
	struct why why = { .text = "" };

	put_source(place, "a.py", "text");
	unlink(place->list_name);
	assert_int_equal(mkdir(place->list_name, 0700), 0);
	assert_int_equal(compile(place, NULL, 0, &why), -EISDIR);
	assert_string_equal(why.text, "the list of the files");
	rmdir(place->list_name);
}

/* What is there for a source already is no source's of this set. */
static void
nothing_is_replaced(void **state)
{
	struct place *place = *state;
	struct why why = { .text = "" };

	put_source(place, "__pycache__/a.tag.pyc", "evil");
	put_source(place, "a.py", "text");
	assert_int_equal(compile(place, NULL, 0, &why), -EEXIST);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_wheel_is_unpacked, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_wrong_is_said, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_taker_may_have_enough, set_up, tear_down),
		cmocka_unit_test_setup_teardown(sources_are_compiled, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_compiler_that_lies, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_list_that_cannot_be_read_has_not_ended, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(nothing_is_replaced, set_up, tear_down),
	};

	signal(SIGPIPE, SIG_IGN);
	if (digest_prepare() < 0 || !setlocale(LC_CTYPE, "C.UTF-8"))
		return 1;
	return cmocka_run_group_tests_name("unpack", tests, NULL, NULL);
}
