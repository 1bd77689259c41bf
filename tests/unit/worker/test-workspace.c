/* SPDX-License-Identifier: Apache-2.0 */
/* A tree of files as it is told, with the SHA-256 of each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "proto/frame.h"
#include "worker/workspace.h"

#define BOUND_FILES 100
#define BOUND_FILE_BYTES (256 << 10)
#define BOUND_BYTES (1 << 20)

static char root[64];
static int socket_pair[2];
static char told[4096];
static char told_sum[65];		/* of the last file, in hexadecimal */
static unsigned int n_told, n_with_data;

static void *
listen_to(void *arg)
{
	struct frame_reader reader;
	struct frame frame;

	frame_reader_init(&reader, FROM_WORKER);
	while (frame_reader_read(&reader, socket_pair[1], &frame) == 1) {
		size_t n = strlen(told);

		if (frame.msg.type == MSG_LEFT) {
			n_told++;
			n_with_data += frame.msg.left.has_data;
			snprintf(told + n, sizeof(told) - n, "%.*s:%llu%s;",
				 (int)frame.msg.left.path.len, frame.msg.left.path.at,
				 (unsigned long long)frame.msg.left.size,
				 frame.msg.left.has_sha256 ? "" : "!");
			for (size_t i = 0; i < frame.msg.left.sha256.len; i++)
				snprintf(told_sum + 2 * i, 3, "%02x",
					 (unsigned char)frame.msg.left.sha256.at[i]);
		} else {
			snprintf(told + n, sizeof(told) - n, "+%u",
				 frame.msg.left_more.more);
		}
		frame_done(&frame);
	}
	frame_reader_done(&reader);
	return arg;
}

static int
make_root(void **state)
{
	(void)state;
	snprintf(root, sizeof(root), "%s/workspace-XXXXXX",
		 getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	assert_non_null(mkdtemp(root));
	return chdir(root);
}

static int
remove_root(void **state)
{
	char *command;

	(void)state;
	assert_int_equal(chdir("/"), 0);
	assert_true(asprintf(&command, "rm -rf '%s'", root) > 0);
	assert_int_equal(system(command), 0);
	free(command);
	return 0;
}

static void
tell(void)
{
	pthread_t listener;

	told[0] = '\0';
	n_told = n_with_data = 0;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, socket_pair), 0);
	assert_int_equal(pthread_create(&listener, NULL, listen_to, NULL), 0);
	assert_int_equal(workspace_tell(root, socket_pair[0], NULL, NULL, false), 0);
	close(socket_pair[0]);
	pthread_join(listener, NULL);
	close(socket_pair[1]);
}

static void
make(const char *name, size_t len)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)len), 0);
	close(fd);
}

static void
regular_files_are_told(void **state)
{
	(void)state;
	tell();
	assert_string_equal(told, "");
	make("one", 1);
	tell();
	assert_string_equal(told, "one:1;");
	assert_int_equal(unlink("one"), 0);
	assert_int_equal(mkdir("d", 0700), 0);
	assert_int_equal(mkdir("d/e", 0700), 0);
	make("d/e/two", 2);
	assert_int_equal(symlink("/etc/passwd", "link"), 0);
	assert_int_equal(symlink("d", "dir"), 0);
	assert_int_equal(mkfifo("fifo", 0600), 0);
	tell();
	assert_string_equal(told, "d/e/two:2;");
}

/* Of zeros. 300000 is more than is read at once. */
static const struct {
	size_t len;
	const char *sum;
} sums[] = {
	{ 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
	{ 55, "02779466cdec163811d078815c633f21901413081449002f24aa3e80f0b88ef7" },
	{ 64, "f5a5fd42d16a20302798ef6ed309979b43003d2320d9f0e8ea9831a92759fb4b" },
	{ 300000, "886715e4051e827f4fe215df3053af3f85ad0d352db2c829c7487af6d78efe30" },
};

static void
files_are_told_with_their_sums(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++) {
		make("zeros", sums[i].len);
		tell();
		assert_string_equal(told_sum, sums[i].sum);
	}
}

static void
names_become_text(void **state)
{
	static const char *const names[][2] = {
		{ "\xff", "\\xff" }, { "a\nb", "a\\x0ab" }, { "\xc3\xa9", "\xc3\xa9" },
		{ "\xc3", "\\xc3" }, { "x\xf0\x9f\x98\x80y", "x\xf0\x9f\x98\x80y" },
		{ "\x7f", "\\x7f" }, { "\xc2\x9b" "31m", "\\u009b31m" },
		{ "\xe2\x80\xaegpj.exe", "\\u202egpj.exe" }, { "a\xe2\x80\x8b" "b", "a\\u200bb" }, { "a\xe2\x82", "a\\xe2\\x82" },
		{ "\xed\xa0\x80", "\\xed\\xa0\\x80" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char want[64];

		make(names[i][0], 0);
		tell();
		snprintf(want, sizeof(want), "%s:0;", names[i][1]);
		assert_string_equal(told, want);
		assert_int_equal(unlink(names[i][0]), 0);
	}
}

static void
lists_and_contents_are_bounded(void **state)
{
	char name[32];

	(void)state;
	for (int i = 0; i < BOUND_FILES + 7; i++) {
		snprintf(name, sizeof(name), "%d", i);
		make(name, BOUND_BYTES / 8);
	}
	tell();
	assert_int_equal(n_told, BOUND_FILES);
	assert_int_equal(n_with_data, 8);
	assert_string_equal(strchr(told, '+'), "+7");
}

static void
what_is_large_is_told_without_content(void **state)
{
	(void)state;
	make("kept", BOUND_FILE_BYTES);
	tell();
	assert_int_equal(n_with_data, 1);
	assert_int_equal(unlink("kept"), 0);
	make("more", BOUND_FILE_BYTES + 1);
	tell();
	assert_string_equal(told, "more:262145;");
	assert_int_equal(n_with_data, 0);
	assert_int_equal(unlink("more"), 0);
	make("hole", (size_t)1 << 32);
	tell();
	assert_string_equal(told, "hole:4294967296!;");
}

static int
make_root_in_tmpfs(void **state)
{
	struct statfs fs;

	if (statfs("/dev/shm", &fs) == 0 && fs.f_type == TMPFS_MAGIC)
		setenv("TMPDIR", "/dev/shm", 1);
	return make_root(state);
}

/* As often as it takes for several rounds to fall within one tick of the clock. */
static void
what_is_noted_empty_is_not_forgotten(void **state)
{
	struct statfs fs;

	(void)state;
	if (statfs(".", &fs) < 0 || fs.f_type != TMPFS_MAGIC)
		skip();
	for (int i = 0; i < 200; i++) {
		workspace_note(root);
		tell();
		assert_string_equal(told, "");
		make("one", 1);
		tell();
		assert_string_equal(told, "one:1;");
		assert_int_equal(unlink("one"), 0);
		tell();
		assert_string_equal(told, "");
		assert_int_equal(mkdir("d", 0700), 0);
		make("d/two", 2);
		tell();
		assert_string_equal(told, "d/two:2;");
		assert_int_equal(unlink("d/two"), 0);
		assert_int_equal(rmdir("d"), 0);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(regular_files_are_told, make_root, remove_root),
		cmocka_unit_test_setup_teardown(files_are_told_with_their_sums, make_root,
						remove_root),
		cmocka_unit_test_setup_teardown(names_become_text, make_root, remove_root),
		cmocka_unit_test_setup_teardown(lists_and_contents_are_bounded, make_root,
						remove_root),
		cmocka_unit_test_setup_teardown(what_is_large_is_told_without_content, make_root,
						remove_root),
		cmocka_unit_test_setup_teardown(what_is_noted_empty_is_not_forgotten,
						make_root_in_tmpfs, remove_root),
	};

	workspace_bounds = (struct workspace_bounds){
		.files = BOUND_FILES, .file_bytes = BOUND_FILE_BYTES, .bytes = BOUND_BYTES };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
