/* SHA-256 against known sums; a tree of files as it is told. */
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
#include "worker/sha256.h"
#include "worker/workspace.h"

#define BOUND_FILES 100
#define BOUND_FILE_BYTES (256 << 10)
#define BOUND_BYTES (1 << 20)

static void
hex_of(const unsigned char *digest, char hex_r[65])
{
	for (size_t i = 0; i < SHA256_BYTES; i++)
		snprintf(hex_r + 2 * i, 3, "%02x", digest[i]);
}

/* The examples of FIPS 180-4 and what lies about the length of a block. */
static const struct {
	const char *text;
	size_t times;
	const char *sum;
} sums[] = {
	{ "", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
	{ "abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
	{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
	  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
	{ "a", 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0" },
	{ "a", 55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318" },
	{ "a", 56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a" },
	{ "a", 64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb" },
};

static void
sums_are_right(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++) {
		unsigned char digest[SHA256_BYTES];
		struct sha256 sum;
		char hex[65];

		sha256_init(&sum);
		for (size_t k = 0; k < sums[i].times; k++)
			sha256_add(&sum, sums[i].text, strlen(sums[i].text));
		sha256_end(&sum, digest);
		hex_of(digest, hex);
		assert_string_equal(hex, sums[i].sum);
	}
}

static void
pieces_do_not_matter(void **state)
{
	unsigned char bytes[300], whole[SHA256_BYTES], parts[SHA256_BYTES];
	struct sha256 sum;

	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)(i * 7);
	sha256_init(&sum);
	sha256_add(&sum, bytes, sizeof(bytes));
	sha256_end(&sum, whole);
	for (size_t step = 1; step < sizeof(bytes); step++) {
		sha256_init(&sum);
		for (size_t at = 0; at < sizeof(bytes); at += step)
			sha256_add(&sum, bytes + at, at + step < sizeof(bytes)
							? step : sizeof(bytes) - at);
		sha256_end(&sum, parts);
		assert_memory_equal(whole, parts, sizeof(whole));
	}
}

/* ---- trees ---- */

static char root[64];
static int socket_pair[2];
static char told[4096];
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
	assert_int_equal(workspace_tell(root, socket_pair[0], NULL, NULL), 0);
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
		cmocka_unit_test(sums_are_right),
		cmocka_unit_test(pieces_do_not_matter),
		cmocka_unit_test_setup_teardown(regular_files_are_told, make_root, remove_root),
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
