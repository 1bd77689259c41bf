/* SPDX-License-Identifier: Apache-2.0 */
/* Streams that a worker may send, honest and hostile, and what comes of them on the disk. */
#include "keeper/intake.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"
#include "base/why.h"
#include "keeper/digest.h"
#include "keeper/path.h"

struct stream {
	unsigned char bytes[65536];
	size_t len;
};

static void
put(struct stream *stream, const void *bytes, size_t len)
{
	assert_true(stream->len + len <= sizeof(stream->bytes));
	memcpy(stream->bytes + stream->len, bytes, len);
	stream->len += len;
}

static void
put_number(struct stream *stream, uint64_t number, size_t len)
{
	while (len--) {
		unsigned char byte = (unsigned char)(number >> 8 * len);

		put(stream, &byte, 1);
	}
}

static void
put_file(struct stream *stream, char kind, const char *path, size_t path_len, uint64_t size,
	 const char *data)
{
	put(stream, &kind, 1);
	put_number(stream, path_len, 2);
	put_number(stream, size, 8);
	put(stream, path, path_len);
	put(stream, data, strlen(data));
}

static void
put_text(struct stream *stream, const char *path, const char *text)
{
	put_file(stream, 'F', path, strlen(path), strlen(text), text);
}

static void
put_end(struct stream *stream, uint32_t files)
{
	put(stream, "E", 1);
	put_number(stream, files, 4);
}

static char listed[4096];	/* by the last intake, or its beginning */
static uint64_t counted;	/* bytes, by the last intake */
static char said[512];		/* why it ended */

static int
read_stream(struct intake *intake, const struct stream *stream, struct why *why_r)
{
	FILE *file = tmpfile();
	own_fd int from = -1;

	assert_non_null(file);
	from = dup(fileno(file));
	fclose(file);
	assert_int_equal(write(from, stream->bytes, stream->len), stream->len);
	assert_int_equal(lseek(from, 0, SEEK_SET), 0);
	return intake_read(intake, from, why_r);
}

/* Reads the streams, one behind the other, into a new directory, *tree_r. */
static int
take_all(const struct stream *stream, size_t n, uint64_t bytes_max, uint32_t files_max,
	 char *tree_r)
{
	struct intake intake = { .bytes_max = bytes_max, .files_max = files_max };
	struct why why = { .text = "" };
	char name[] = "/tmp/intake-XXXXXX";
	own_fd int tree = -1;
	int r = 0;

	assert_non_null(mkdtemp(name));
	strcpy(tree_r, name);
	intake.tree = tree = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	intake.list = tmpfile();
	assert_true(tree >= 0 && intake.list);
	for (size_t i = 0; i < n && r == 0; i++)
		r = read_stream(&intake, &stream[i], &why);
	counted = intake.bytes;
	rewind(intake.list);
	listed[fread(listed, 1, sizeof(listed) - 1, intake.list)] = '\0';
	fclose(intake.list);
	assert_true(r == 0 || *why.text);
	snprintf(said, sizeof(said), "%s", why.text);
	return r;
}

static int
take(const struct stream *stream, uint64_t bytes_max, uint32_t files_max, char *tree_r)
{
	return take_all(stream, 1, bytes_max, files_max, tree_r);
}

static void
discard(const char *tree)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -rf %s", tree);
	assert_int_equal(system(command), 0);
}

static void
expect(const struct stream *stream, int wanted)
{
	char tree[32];
	int r = take(stream, 1 << 20, 10, tree);

	discard(tree);
	assert_int_equal(r, wanted);
}

static void
test_files(void **state)
{
	struct stream stream = { .len = 0 };
	char tree[32], path[64], text[8] = "";
	struct stat st;
	own_fd int fd = -1;

	(void)state;
	put_text(&stream, "a/b/c.py", "abc");
	put_file(&stream, 'X', "bin/run", 7, 0, "");
	put_end(&stream, 2);
	assert_int_equal(take(&stream, 1 << 20, 10, tree), 0);
	snprintf(path, sizeof(path), "%s/a/b/c.py", tree);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	assert_int_equal(st.st_mode & 07777, 0444);
	assert_int_equal(read(fd, text, sizeof(text)), 3);
	assert_string_equal(text, "abc");
	snprintf(path, sizeof(path), "%s/bin/run", tree);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0555);
	assert_string_equal(listed,
		"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  "
		"tree/a/b/c.py\n"
		"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  "
		"tree/bin/run\n");
	discard(tree);
}

static void
test_paths(void **state)
{
	static const char *const bad[] = {
		"/etc/x", "../x", "a/../../x", "a/./x", "a//x", "a/", ".", "..", "a/..", "a\nb",
		"a\x7f", "./a", "a\\b", "a\xc2\x85", "a\xe2\x80\xa8/b", "a\xe2\x80\xae_", "a\xff",
		"a\xc3", "\xed\xa0\x80",
	};
	char deep[2 * PATH_DEPTH_MAX + 4] = "x";

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct stream stream = { .len = 0 };

		put_text(&stream, bad[i], "x");
		put_end(&stream, 1);
		expect(&stream, -EBADMSG);
	}
	for (size_t i = 0; i <= PATH_DEPTH_MAX; i++)
		strcat(deep, "/x");
	for (size_t i = 0; i < 2; i++) {
		struct stream stream = { .len = 0 };

		put_text(&stream, deep + 2 * i, "x");
		put_end(&stream, 1);
		expect(&stream, i == 0 ? -EBADMSG : 0);
	}
}

static void
test_names_with_nul(void **state)
{
	struct stream stream = { .len = 0 };

	(void)state;
	put_file(&stream, 'F', "a\0b", 3, 0, "");
	put_end(&stream, 1);
	expect(&stream, -EBADMSG);
}

static void
test_twice(void **state)
{
	static const struct {
		const char *path, *text;
		int r;
	} second[] = {
		{ "a", "2", -EEXIST }, { "a", "11", -EEXIST }, { "a", "", -EEXIST },
		{ "a/b", "2", -ENOTDIR }, { "d", "2", -EEXIST }, { "a", "1", 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(second) / sizeof(*second); i++) {
		struct stream stream[2] = { { .len = 0 }, { .len = 0 } };
		char tree[32];

		put_text(&stream[0], "a", "1");
		put_text(&stream[0], "d/e", "1");
		put_end(&stream[0], 2);
		put_text(&stream[1], second[i].path, second[i].text);
		put_end(&stream[1], 1);
		assert_int_equal(take_all(stream, 2, 1 << 20, 10, tree), second[i].r);
		discard(tree);
	}
	/* The same file counts once. */
	assert_int_equal(counted, 3 * 4096);
	assert_null(strstr(strstr(listed, "tree/a") + 1, "tree/a"));
}

static void
test_reasons(void **state)
{
	static const char reason[] = "it is\nno wheel \xc3";
	struct stream stream = { .len = 0 };
	char tree[32];

	(void)state;
	put_text(&stream, "a", "1");
	put(&stream, "R", 1);
	put_number(&stream, strlen(reason), 2);
	put(&stream, reason, strlen(reason));
	assert_int_equal(take(&stream, 1 << 20, 10, tree), -EBADMSG);
	assert_string_equal(said, "it is\\x0ano wheel \\xc3");
	discard(tree);
	stream.len -= 3;
	expect(&stream, -EPIPE);
	stream.len = 0;
	put(&stream, "R", 1);
	put_number(&stream, 60000, 2);
	expect(&stream, -EBADMSG);
	stream.len = 0;
	put(&stream, "R", 1);
	put_number(&stream, 0, 2);
	assert_int_equal(take(&stream, 1 << 20, 10, tree), -EBADMSG);
	assert_string_equal(said, "the stream of files");
	discard(tree);
}

static void
test_sizes(void **state)
{
	struct stream stream = { .len = 0 }, large = { .len = 0 }, empty = { .len = 0 };
	struct stream deep = { .len = 0 };
	char tree[32];

	(void)state;
	put_text(&stream, "a", "1");
	put_text(&stream, "b", "2");
	put_end(&stream, 2);
	assert_int_equal(take(&stream, 1 << 20, 1, tree), -EFBIG);
	discard(tree);
	/* Whole pages count. */
	assert_int_equal(take(&stream, 2 * 4096 - 1, 2, tree), -EFBIG);
	discard(tree);
	assert_int_equal(take(&stream, 2 * 4096, 2, tree), 0);
	assert_int_equal(counted, 2 * 4096);
	discard(tree);
	/* So do directories, once. */
	put_text(&deep, "a/b/c", "1");
	put_text(&deep, "a/b/d", "2");
	put_end(&deep, 2);
	assert_int_equal(take(&deep, 4 * 4096 - 1, 2, tree), -EFBIG);
	discard(tree);
	assert_int_equal(take(&deep, 4 * 4096, 2, tree), 0);
	assert_int_equal(counted, 4 * 4096);
	discard(tree);
	put_file(&large, 'F', "a", 1, UINT64_MAX, "x");
	expect(&large, -EFBIG);
	put_file(&empty, 'F', "", 0, 0, "");
	expect(&empty, -EBADMSG);
}

static void
test_ends(void **state)
{
	struct stream whole = { .len = 0 };

	(void)state;
	put_text(&whole, "a/b", "text");
	put_end(&whole, 1);
	for (size_t len = 0; len < whole.len; len++) {
		struct stream part = whole;

		part.len = len;
		expect(&part, -EPIPE);
	}
	whole.bytes[whole.len - 1] = 2;
	expect(&whole, -EBADMSG);
	whole.bytes[0] = 'L';
	expect(&whole, -EBADMSG);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_files), cmocka_unit_test(test_paths),
		cmocka_unit_test(test_names_with_nul), cmocka_unit_test(test_twice),
		cmocka_unit_test(test_reasons), cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_ends),
	};

	if (digest_prepare() < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
