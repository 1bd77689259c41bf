/* SPDX-License-Identifier: Apache-2.0 */
/* Wheels as they are read: where their files go, and what is no wheel or not the one that was
 * asked for. */
#include "keeper/wheel.h"

#include <errno.h>
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"
#include "base/why.h"
#include "base/xalloc.h"
#include "keeper/digest.h"
#include "keeper/path.h"
#include "wheels.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))
#define PYTHON "/usr/bin/python3"
#define INFO "Some_Lib-1.0.dist-info/"
#define DATA "some.lib-1.0.data/"

/* What came to the sink: a line for each file, and the text of the one that is wanted. */
struct got {
	char files[4096], text[4096];
	const char *wanted;
	bool taking;
	uint64_t left;
	int answer;		/* of the sink */
};

static int
on_file(void *arg, const char *path, bool executable, uint64_t size)
{
	struct got *got = arg;
	size_t len = strlen(got->files);

	assert_int_equal(got->left, 0);
	assert_true(path_is_safe(path, strlen(path)));
	snprintf(got->files + len, sizeof(got->files) - len, "%s%s\n", path, executable ? "*" : "");
	got->taking = got->wanted && strcmp(got->wanted, path) == 0;
	got->left = size;
	return got->answer;
}

static int
on_bytes(void *arg, const void *bytes, size_t len)
{
	struct got *got = arg;

	assert_true(len <= got->left);
	got->left -= len;
	if (got->taking)
		strncat(got->text, bytes, len);
	return 0;
}

static int
read_zip(const struct zip *zip, struct got *got, struct why *why)
{
	const struct wheel_asked asked = { "some-lib", "1.0", PYTHON, 64 << 20, 40 };
	const struct wheel_sink sink = { on_file, on_bytes, got };
	own_fd int file = zip_file(zip);
	int r = wheel_read(file, zip->len, &asked, &sink, why);

	assert_true(r < 0 || got->left == 0);
	free(zip->at);
	return r;
}

static int
read_wheel(const struct zipped *file, size_t n, struct got *got, struct why *why)
{
	const struct zip zip = wheel_make("Some_Lib", "1.0", file, n);

	return read_zip(&zip, got, why);
}

static void
files_go_where_they_belong(void **state)
{
	static const struct zipped files[] = {
		{ .path = "some_lib/__init__.py", .text = "x = 1\n" },
		{ .path = "some_lib/", .mode = 040755 },
		{ .path = "some_lib/\xc3\xbc.py", .text = "" },
		{ .path = "some_lib/run", .text = "#!python\n", .mode = 0100755 },
		{ .path = "some_lib/__pycache__/__init__.cpython-311.pyc", .text = "evil" },
		{ .path = DATA "purelib/pure.py", .text = "1" },
		{ .path = DATA "platlib/plat.so", .text = "2", .mode = 0100755 },
		{ .path = DATA "data/share/x,y \"z\".txt", .text = "3" },
		{ .path = DATA "headers/some.h", .text = "4" },
		{ .path = DATA "scripts/tool", .text = "#!pythonw -E\nprint()\n" },
		{ .path = DATA "scripts/other", .text = "#!/bin/sh\n" },
		{ .path = INFO "RECORD.jws", .text = "{}" },
		{ .path = INFO "entry_points.txt", .text =
		  "# a comment\n[console_scripts]\nrun-it = some_lib.main:App.run [extra]\n\n"
		  "[gui_scripts]\r\nwindow=some_lib:main\r\n[other]\nanything goes here\n" },
	};
	struct got got = { .wanted = "bin/run-it" };
	struct why why = { .text = "" };

	(void)state;
	if (read_wheel(files, N(files), &got, &why) < 0)
		fail_msg("%s", why.text);
	assert_string_equal(got.files,
		"some_lib/__init__.py\nsome_lib/\xc3\xbc.py\nsome_lib/run*\npure.py\nplat.so*\n"
		"share/x,y \"z\".txt\ninclude/python/some-lib/some.h\nbin/tool*\nbin/other*\n"
		INFO "entry_points.txt\n" INFO "METADATA\n" INFO "WHEEL\nbin/run-it*\nbin/window*\n"
		INFO "RECORD\n");
	assert_string_equal(got.text, "#!" PYTHON "\nimport sys\nfrom some_lib.main import App\n"
			    "if __name__ == '__main__':\n    sys.exit(App.run())\n");
}

static void
scripts_name_the_interpreter(void **state)
{
	static const struct {
		const char *text, *placed;
	} cases[] = {
		{ "#!python\nprint()\n", "#!" PYTHON "\nprint()\n" },
		{ "#!python3.7 -x\n", "#!" PYTHON "\n" },
		{ "#!python", "#!python" }, { "#!/bin/sh\n", "#!/bin/sh\n" }, { "", "" },
		{ "#!perl\n#!python\n", "#!perl\n#!python\n" },
	};

	(void)state;
	for (size_t i = 0; i < N(cases); i++) {
		const struct zipped file = { .path = DATA "scripts/x", .text = cases[i].text };
		struct got got = { .wanted = "bin/x" };
		struct why why = { .text = "" };

		if (read_wheel(&file, 1, &got, &why) < 0)
			fail_msg("%s", why.text);
		assert_string_equal(got.text, cases[i].placed);
	}
}

static void
record_tells_of_what_was_placed(void **state)
{
	static const struct zipped files[] = {
		{ .path = "a.py", .text = "abc" },
		{ .path = "__pycache__/a.pyc", .text = "evil" },
		{ .path = DATA "data/x,\"y", .text = "abc" },
		{ .path = DATA "scripts/tool", .text = "#!python\n" },
	};
	static const char abc[] = ",sha256=ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0,3\n";
	struct got got = { .wanted = INFO "RECORD" };
	struct why why = { .text = "" };
	char expected[256];

	(void)state;
	if (read_wheel(files, N(files), &got, &why) < 0)
		fail_msg("%s", why.text);
	snprintf(expected, sizeof(expected), "a.py%s", abc);
	assert_non_null(strstr(got.text, expected));
	snprintf(expected, sizeof(expected), "\n\"x,\"\"y\"%s", abc);
	assert_non_null(strstr(got.text, expected));
	/* Of the line as it is there now. */
	assert_non_null(strstr(got.text, "\nbin/tool,sha256="));
	assert_non_null(strstr(got.text, ",19\n"));
	assert_non_null(strstr(got.text, "\n" INFO "RECORD,,\n"));
	assert_null(strstr(got.text, "pyc"));
	assert_null(strstr(got.text, "data/"));
}

#define RECORD_OF_A(more) \
	"a.py,sha256=ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0,3\n" \
	INFO "METADATA,sha256=NTZsOypZkjltDYcSxoXQ_pDx_C4tS7Az-rKGuLNK1Lc,43\n" \
	INFO "WHEEL,sha256=6gB8-h5crHLb3nq4kyIKaiFCfE0oBfDzYUMP7DGhmHs,19\n" \
	INFO "RECORD,,\n" more
#define A { .path = "a.py", .text = "abc" }
#define FILE(name, content) { .path = name, .text = content }

static const struct {
	const char *what, *why;		/* a part of it */
	struct zipped file[4];
	int r;				/* 0: -EBADMSG */
} refused[] = {
	/* names */
	{ "a path up", "outside", { FILE("../x", "") }, 0 },
	{ "one up in between", "outside", { FILE("a/../../x", "") }, 0 },
	{ "an absolute one", "outside", { FILE("/etc/x", "") }, 0 },
	{ "a control", "cannot be shown", { FILE("a\nb", "") }, 0 },
	{ "an escape", "cannot be shown", { FILE("a\x1b[1m", "") }, 0 },
	{ "a C1 control", "cannot be shown", { FILE("a\xc2\x9b", "") }, 0 },
	{ "a mark that turns text", "cannot be shown", { FILE("a\xe2\x80\xae.py", "") }, 0 },
	{ "a backslash", "cannot be shown", { FILE("a/b\\..\\c", "") }, 0 },
	{ "ill-formed UTF-8", "", { FILE("a\xff", "") }, 0 },
	{ "an empty part", "outside", { FILE("a//b", "") }, 0 },
	/* kinds */
	{ "a link", "no plain file", { { .path = "l", .text = "/etc/passwd", .mode = 0120777 } }, 0 },
	{ "a device", "no plain file", { { .path = "d", .mode = 020666 } }, 0 },
	{ "a socket", "no plain file", { { .path = "s", .mode = 0140666 } }, 0 },
	{ "an encrypted file", "", { { .path = "e", .text = "0123456789abc", .flags = 1 } }, 0 },
	{ "another compression", "no plain file", { { .path = "e", .text = "x", .method = 12 } }, 0 },
	{ "an unknown compression", "", { { .path = "e", .text = "x", .method = 77 } }, 0 },
	/* headers that lie */
	{ "a longer size", "zip", { { .path = "a", .text = "abc", .lie = 5 } }, 0 },
	{ "a shorter size", "", { { .path = "a", .text = "abc", .lie = -2 } }, 0 },
	{ "another checksum", "zip", { { .path = "a", .text = "abc", .bad_crc = 1 } }, 0 },
	{ "a size without end", "larger", { { .path = "a", .text = "abc", .lie = 0xf0000000 } }, -EFBIG },
	/* what it says that it is */
	{ "another package's", "another package: numpy-1.0", { FILE("numpy-1.0.dist-info/METADATA", "") }, 0 },
	{ "another version's", "another package", { FILE("some_lib-2.0.dist-info/x", "") }, 0 },
	{ "an egg-info", "another package", { FILE("numpy.egg-info/PKG-INFO", "") }, 0 },
	{ "one that is a file", "another package", { FILE("numpy-1.0.dist-info", "") }, 0 },
	{ "itself twice", "has two *.dist-info", { A, FILE("some.lib-1.0.dist-info/METADATA", ""),
	  FILE(INFO "METADATA", "Name: some-lib\nVersion: 1.0\n") }, 0 },
	{ "another one by way of data", "nothing can be at", { FILE(DATA "purelib/numpy-1.0.dist-info/x", "") }, 0 },
	{ "an unknown part of data", "nothing can be at", { FILE(DATA "elsewhere/x", "") }, 0 },
	{ "a file in data itself", "nothing can be at", { FILE(DATA "purelib", "") }, 0 },
	{ "another name in METADATA", "METADATA is of another", { FILE(INFO "METADATA", "Name: x\nVersion: 1.0\n") }, 0 },
	{ "another version in METADATA", "METADATA is of another", { FILE(INFO "METADATA", "Name: some.lib\nVersion: 1.0.1\n") }, 0 },
	{ "two names in METADATA", "METADATA is of another", { FILE(INFO "METADATA", "Name: some.lib\nName: x\nVersion: 1.0\n") }, 0 },
	{ "a name in the text alone", "METADATA is of another", { FILE(INFO "METADATA", "Version: 1.0\n\nName: some-lib\n") }, 0 },
	{ "another format", "Wheel-Version", { FILE(INFO "WHEEL", "Wheel-Version: 2.0\n") }, 0 },
	{ "no format", "Wheel-Version", { FILE(INFO "WHEEL", "") }, 0 },
	/* RECORD */
	{ "an empty RECORD", "does not tell of", { A, FILE(INFO "RECORD", "") }, 0 },
	{ "a RECORD that is none", "cannot be read", { A, FILE(INFO "RECORD", "a.py\n") }, 0 },
	{ "a quote without end", "cannot be read", { A, FILE(INFO "RECORD", "\"a.py,,\n") }, 0 },
	{ "another hash", "not as its RECORD says: a.py", { A, FILE(INFO "RECORD",
	  "a.py,sha256=ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa1,3\n") }, 0 },
	{ "another size", "not as its RECORD says: a.py", { A, FILE(INFO "RECORD",
	  "a.py,sha256=ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0,4\n") }, 0 },
	{ "no hash", "not as its RECORD says: a.py", { A, FILE(INFO "RECORD", "a.py,,3\n") }, 0 },
	{ "a weak hash", "not as its RECORD says: a.py", { A, FILE(INFO "RECORD",
	  "a.py,md5=kAFQmDzST7DWlj99KOF_cg,3\n") }, 0 },
	{ "twice the same row", "tells twice of a.py", { A, FILE(INFO "RECORD",
	  "a.py,sha256=ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0,3\n"
	  "a.py,sha256=ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0,3\n") }, 0 },
	{ "a file that is not there", "lists a missing file: b.py", { A, FILE(INFO "RECORD", "b.py,,\n") }, 0 },
	{ "a row of what lies outside", "outside of it", { A, FILE(INFO "RECORD", "../b.py,,\n") }, 0 },
	{ "twice the same file", "it has twice a.py", { A, A }, 0 },
	{ "two at one place", "would be at a.py", { A, FILE(DATA "purelib/a.py", "x") }, 0 },
	{ "a script where one is made", "would be at bin/a", { FILE(DATA "scripts/a", "x"),
	  FILE(INFO "entry_points.txt", "[console_scripts]\na = some_lib:main\n") }, 0 },
	/* scripts */
#define SCRIPT(line) { FILE(INFO "entry_points.txt", "[console_scripts]\n" line "\n") }
	{ "a script elsewhere", "an invalid script", SCRIPT("../../x = a:b"), 0 },
	{ "a hidden script", "an invalid script", SCRIPT(".x = a:b"), 0 },
	{ "a script without a function", "an invalid script", SCRIPT("x = a"), 0 },
	{ "a script of code", "an invalid script", SCRIPT("x = a:b()"), 0 },
	{ "a script of more code", "an invalid script", SCRIPT("x = os;import y:b"), 0 },
	{ "a script of numbers", "an invalid script", SCRIPT("x = a:1b"), 0 },
	{ "a script with dots", "an invalid script", SCRIPT("x = a..b:c"), 0 },
	{ "a script that is no line", "an invalid script", SCRIPT("just text"), 0 },
};

static void
what_is_no_wheel_is_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < N(refused); i++) {
		struct got got = { .wanted = NULL };
		struct why why = { .text = "" };
		size_t n = 0;
		int r;

		while (n < N(refused[i].file) && refused[i].file[n].path)
			n++;
		r = read_wheel(refused[i].file, n, &got, &why);
		if (r != (refused[i].r ? refused[i].r : -EBADMSG) ||
		    !strstr(why.text, refused[i].why) || !strstr(why.text, "some-lib 1.0: "))
			fail_msg("%s: %d, %s", refused[i].what, r, why.text);
	}
}

static void
what_it_has_to_have(void **state)
{
	static const char *const left_out[] = { "METADATA", "WHEEL", "RECORD" };

	(void)state;
	for (size_t i = 0; i < N(left_out); i++) {
		struct zipped file[3];
		struct got got = { .wanted = NULL };
		struct why why = { .text = "" };
		struct zip zip;
		char path[2][64];
		size_t n = 0;

		for (size_t k = 0; k < N(left_out); k++) {
			if (k == i)
				continue;
			snprintf(path[n], sizeof(path[n]), INFO "%s", left_out[k]);
			file[n] = (struct zipped){ .path = path[n], .text = "" };
			n++;
		}
		zip = zip_make(file, n);
		assert_int_equal(read_zip(&zip, &got, &why), -EBADMSG);
		assert_non_null(strstr(why.text, "it has no METADATA, WHEEL or RECORD"));
	}
}

/* A wheel with any part missing, or any byte wrong, is refused with a reason. */
static void
damaged_wheels_end_in_words(void **state)
{
	static const struct zipped files[] = { A, FILE("b/c.py", "text") };
	const struct zip whole = wheel_make("some_lib", "1.0", files, N(files));

	(void)state;
	for (size_t i = 0; i < 2 * whole.len; i++) {
		struct zip part = { xalloc_check(malloc(whole.len)), whole.len };
		struct got got = { .wanted = NULL };
		struct why why = { .text = "" };
		int r;

		memcpy(part.at, whole.at, whole.len);
		if (i < whole.len)
			part.len = i;
		else
			part.at[i - whole.len] ^= 0x55;
		r = read_zip(&part, &got, &why);
		/* A date may be any. */
		if (i < whole.len ? r != -EBADMSG : r != 0 && r != -EBADMSG && r != -EFBIG)
			fail_msg("%zu: %d", i, r);
		assert_true(r == 0 || *why.text);
	}
	free(whole.at);
}

static void
there_is_an_end_to_sizes(void **state)
{
	struct zipped many[42];
	char path[42][16], *large = xalloc_check(calloc(1, 48 << 20));
	struct got got = { .wanted = NULL };
	struct why why = { .text = "" };
	struct zipped two[2] = { FILE("a", large), FILE("b", large) };

	(void)state;
	for (size_t i = 0; i < N(many); i++) {
		snprintf(path[i], sizeof(path[i]), "f%zu", i);
		many[i] = (struct zipped){ .path = path[i], .text = "" };
	}
	assert_int_equal(read_wheel(many, N(many), &got, &why), -EFBIG);
	assert_non_null(strstr(why.text, "more files than"));
	two[0].len = two[1].len = 48 << 20;
	assert_int_equal(read_wheel(two, 1, &got, &why), 0);
	assert_int_equal(read_wheel(two, 2, &got, &why), -EFBIG);
	assert_non_null(strstr(why.text, "larger than"));
	free(large);
}

static void
the_sinks_word_ends_it(void **state)
{
	static const struct zipped file = A;
	struct got got = { .answer = -ENOSPC };
	struct why why = { .text = "" };

	(void)state;
	assert_int_equal(read_wheel(&file, 1, &got, &why), -ENOSPC);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_go_where_they_belong),
		cmocka_unit_test(scripts_name_the_interpreter),
		cmocka_unit_test(record_tells_of_what_was_placed),
		cmocka_unit_test(what_is_no_wheel_is_refused),
		cmocka_unit_test(what_it_has_to_have),
		cmocka_unit_test(damaged_wheels_end_in_words),
		cmocka_unit_test(there_is_an_end_to_sizes),
		cmocka_unit_test(the_sinks_word_ends_it),
	};

	if (digest_prepare() < 0 || !setlocale(LC_CTYPE, "C.UTF-8"))
		return 1;
	return cmocka_run_group_tests_name("wheel", tests, NULL, NULL);
}
