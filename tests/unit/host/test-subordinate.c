/* SPDX-License-Identifier: Apache-2.0 */
/* Who owns a subordinate uid, when libsubid has an error: only without any ranges nobody does. The
 * library and the files of the host are the test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/directory.h"

static bool has_ranges;		/* /etc/subuid is there */
static const char *switch_path;	/* what is read as /etc/nsswitch.conf */
static int switch_error;	/* the errno with which it cannot be opened */

static bool
init(const char *, FILE *)
{
	return true;
}

static int
owners(uid_t, uid_t **)
{
	return -1;
}

void *
dlopen(const char *, int)
{
	return &has_ranges;
}

void *
dlsym(void *, const char *name)
{
	void *found = NULL;
	bool (*init_at)(const char *, FILE *) = init;
	int (*owners_at)(uid_t, uid_t **) = owners;

	if (strcmp(name, "subid_init") == 0)
		memcpy(&found, &init_at, sizeof(found));
	else if (strcmp(name, "subid_get_uid_owners") == 0)
		memcpy(&found, &owners_at, sizeof(found));
	return found;
}

int
access(const char *path, int)
{
	assert_string_equal(path, "/etc/subuid");
	errno = ENOENT;
	return has_ranges ? 0 : -1;
}

FILE *
fopen(const char *path, const char *)
{
	int fd;

	assert_string_equal(path, "/etc/nsswitch.conf");
	fd = switch_error ? -1 : open(switch_path, O_RDONLY | O_CLOEXEC);
	if (switch_error)
		errno = switch_error;
	return fd < 0 ? NULL : fdopen(fd, "r");
}

static int
owner_with(const char *text)
{
	char path[] = "/tmp/test-subordinate-XXXXXX";
	int fd = mkstemp(path), r;
	uid_t owner;

	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	switch_path = path;
	r = subordinate_owner(100000, &owner);
	unlink(path);
	return r;
}

static void
a_uid_has_no_owner_where_there_are_no_ranges(void **)
{
	uid_t owner;

	assert_int_equal(owner_with("passwd: files\n"), 0);
	assert_int_equal(owner_with(""), 0);
	switch_path = "/nowhere";
	assert_int_equal(subordinate_owner(100000, &owner), 0);
	has_ranges = true;
	assert_int_equal(owner_with("passwd: files\n"), -EIO);
	has_ranges = false;
}

/* Else the uid would be its own owner, and no limit of the true one's would hold. */
static void
a_switch_that_cannot_be_read_may_name_ranges(void **)
{
	uid_t owner;

	assert_int_equal(owner_with("passwd: files\n subid: sss\n"), -EIO);
	switch_path = "/proc";
	assert_int_equal(subordinate_owner(100000, &owner), -EIO);
	switch_error = EMFILE;
	assert_int_equal(subordinate_owner(100000, &owner), -EIO);
	switch_error = 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_uid_has_no_owner_where_there_are_no_ranges),
		cmocka_unit_test(a_switch_that_cannot_be_read_may_name_ranges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
