/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel writes about cgroups and mounts, and the ranges of /etc/subuid. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/cgroup_parts.h"
#include "host/cgroup_text.h"
#include "host/outer.h"

static void
own_cgroup_is_found(void **state)
{
	char path[64];

	(void)state;
	assert_int_equal(
		cgroup_text_own("0::/system.slice/a.service\n", path, sizeof(path)), 0);
	assert_string_equal(path, "/system.slice/a.service");
	assert_int_equal(cgroup_text_own("9:name=systemd:/x\n4:memory:/y\n0::/\n", path,
					 sizeof(path)), 0);
	assert_string_equal(path, "/");
	assert_int_equal(cgroup_text_own("4:memory:/y\n10::/no\n", path, sizeof(path)),
			 -ENOENT);
	assert_int_equal(cgroup_text_own("", path, sizeof(path)), -ENOENT);
	assert_int_equal(cgroup_text_own("0::\n", path, sizeof(path)), -ENOENT);
	assert_int_equal(cgroup_text_own("0::/abcdefg\n", path, 8), -ENAMETOOLONG);
	assert_int_equal(cgroup_text_own("0::/abcdefg\n", path, 9), 0);
}

static void
an_error_is_not_an_empty_file(void **state)
{
	char text[64];

	(void)state;
	assert_true(cgroup_read_at(AT_FDCWD, "/proc/cmdline", text, sizeof(text)) >= 0);
	assert_int_equal(cgroup_read_at(AT_FDCWD, "/proc", text, sizeof(text)), -EISDIR);
	assert_int_equal(cgroup_read_at(AT_FDCWD, "/nowhere", text, sizeof(text)), -ENOENT);
}

static const struct {
	const char *mounts, *own, *path;
	int result;
} mount_cases[] = {
	{ "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n",
	  "/a/b", "/sys/fs/cgroup/a/b", 0 },
	{ "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n", "/",
	  "/sys/fs/cgroup", 0 },
	{ "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
	  "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 none rw\n",
	  "/x", "/sys/fs/cgroup/unified/x", 0 },
	/* Of a bind mount only what lies below its root is seen. */
	{ "30 23 0:26 /user.slice /cg rw - cgroup2 cgroup2 rw\n", "/user.slice/u",
	  "/cg/u", 0 },
	{ "30 23 0:26 /user.slice /cg rw - cgroup2 cgroup2 rw\n", "/user.slice", "/cg",
	  0 },
	{ "30 23 0:26 /user.slice /cg rw - cgroup2 cgroup2 rw\n", "/user.slice2", "",
	  -ENOENT },
	{ "30 23 0:26 /other /cg rw - cgroup2 cgroup2 rw\n"
	  "31 23 0:26 / /all rw - cgroup2 cgroup2 rw\n",
	  "/u", "/all/u", 0 },
	{ "30 23 0:26 / /with\\040blank rw - cgroup2 cgroup2 rw\n", "/u",
	  "/with blank/u", 0 },
	{ "30 23 0:26 / /sys rw - sysfs cgroup2 rw\n", "/u", "", -ENOENT },
	{ "broken\n\n - cgroup2 \n", "/u", "", -ENOENT },
	{ "", "/u", "", -ENOENT },
};

static void
directory_is_found_by_mountinfo(void **state)
{
	char path[256];

	(void)state;
	for (size_t i = 0; i < sizeof(mount_cases) / sizeof(mount_cases[0]); i++) {
		path[0] = '\0';
		assert_int_equal(cgroup_text_directory(mount_cases[i].mounts,
						       mount_cases[i].own, path,
						       sizeof(path)),
				 mount_cases[i].result);
		assert_string_equal(path, mount_cases[i].path);
	}
	assert_int_equal(cgroup_text_directory(mount_cases[0].mounts, "/a/b", path, 18),
			 -ENAMETOOLONG);
	assert_int_equal(cgroup_text_directory(mount_cases[0].mounts, "/a/b", path, 19),
			 0);
}

static void
counters_are_read(void **state)
{
	static const char events[] =
		"low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 1\n";
	uint64_t value = 7;

	(void)state;
	assert_int_equal(cgroup_text_counter(events, "oom_kill", &value), 0);
	assert_int_equal(value, 2);
	assert_int_equal(cgroup_text_counter(events, "oom", &value), 0);
	assert_int_equal(value, 3);
	assert_int_equal(cgroup_text_counter(events, "oo", &value), -ENOENT);
	assert_int_equal(cgroup_text_counter("usage_usec x\n", "usage_usec", &value),
			 -EBADMSG);
	assert_int_equal(value, 3);
	assert_int_equal(cgroup_text_number("max\n", &value), 0);
	assert_true(value == UINT64_MAX);
	assert_int_equal(cgroup_text_number("18446744073709551615", &value), 0);
	assert_int_equal(cgroup_text_number("18446744073709551616", &value), -EBADMSG);
	assert_int_equal(cgroup_text_number("-1", &value), -EBADMSG);
	assert_int_equal(cgroup_text_number("", &value), -EBADMSG);
	assert_int_equal(cgroup_text_number("12 13", &value), -EBADMSG);
}

static void
words_are_whole(void **state)
{
	(void)state;
	assert_true(cgroup_text_has_word("cpuset cpu io memory pids\n", "cpu"));
	assert_true(cgroup_text_has_word("cpuset cpu io memory pids\n", "pids"));
	assert_false(cgroup_text_has_word("cpuset io memory\n", "cpu"));
	assert_false(cgroup_text_has_word("", "cpu"));
	assert_false(cgroup_text_has_word("\n", ""));
}

static int
range_in(const char *text, const char *user, uid_t uid, uint32_t *first_r, uint32_t *count_r)
{
	char path[] = "/tmp/test-ranges-XXXXXX";
	int fd = mkstemp(path), r;

	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	r = outer_read_range(path, user, uid, first_r, count_r);
	unlink(path);
	return r;
}

static void
subordinate_ranges_are_found(void **state)
{
	static const char text[] =
		"# comment\nann:100000:65536\nbob:x:1\nbob:0:5\n1001:300000:10\n"
		"bob:200000:65536\nbob:400000:1\nzed:4294967290:100\n";
	uint32_t first = 0, count = 0;

	(void)state;
	assert_int_equal(range_in(text, "ann", 5, &first, &count), 0);
	assert_int_equal(first, 100000);
	assert_int_equal(range_in(text, "bob", 6, &first, &count), 0);
	assert_int_equal(first, 200000);
	assert_int_equal(range_in(text, "bob", 1001, &first, &count), 0);
	assert_int_equal(first, 300000);
	assert_int_equal(count, 10);
	assert_int_equal(range_in(text, NULL, 1001, &first, &count), 0);
	assert_int_equal(range_in(text, "an", 5, &first, &count), -ENOENT);
	assert_int_equal(range_in(text, "zed", 7, &first, &count), -ENOENT);
	assert_int_equal(range_in("", "ann", 5, &first, &count), -ENOENT);
}

/* Without its range a user's service would go on with one uid for all workers. */
static void
ranges_that_cannot_be_read_are_not_absent(void **)
{
	uint32_t first, count;

	assert_int_equal(outer_read_range("/nowhere", "ann", 5, &first, &count), -ENOENT);
	assert_int_equal(outer_read_range("/proc", "ann", 5, &first, &count), -EISDIR);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(own_cgroup_is_found),
		cmocka_unit_test(an_error_is_not_an_empty_file),
		cmocka_unit_test(directory_is_found_by_mountinfo),
		cmocka_unit_test(counters_are_read),
		cmocka_unit_test(words_are_whole),
		cmocka_unit_test(subordinate_ranges_are_found),
		cmocka_unit_test(ranges_that_cannot_be_read_are_not_absent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
