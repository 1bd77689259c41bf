/* SPDX-License-Identifier: Apache-2.0 */
/* The way from root to nothing, each try in a process of its own; and that the unit
 * grants what privilege.c lists, no more and no less. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/why.h"
#include "host/privilege.h"

#define SOMEBODY 54321

/* The exit status of what runs in a child. */
static int
in_child(int (*body)(void))
{
	int status = -1;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(body());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int
drop_it_all(void)
{
	struct why why = { .text = "" };

	if (privilege_become(SOMEBODY, SOMEBODY) < 0)
		return 2;
	if (getuid() != SOMEBODY || geteuid() != SOMEBODY || getgroups(0, NULL) != 0)
		return 3;
	if (privilege_drop() < 0)
		return 4;
	if (privilege_prove(SOMEBODY, SOMEBODY, &why) < 0) {
		fprintf(stderr, "%s\n", why.text);
		return 5;
	}
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
		return 6;
	/* Root had CAP_SETPCAP here, so the bounding set is empty as well. */
	for (int cap = 0; cap <= CAP_LAST_CAP; cap++)
		if (prctl(PR_CAPBSET_READ, cap) == 1)
			return 7;
	return 0;
}

static int
keep_two(void)
{
	struct why why;

	if (privilege_become(SOMEBODY, SOMEBODY) < 0)
		return 2;
	return privilege_prove(SOMEBODY, SOMEBODY, &why) == -EPERM ? 0 : 1;
}

static int
drop_but_be_another(void)
{
	struct why why;

	if (privilege_become(SOMEBODY, SOMEBODY) < 0 || privilege_drop() < 0)
		return 2;
	return privilege_prove(SOMEBODY + 1, SOMEBODY, &why) == -EPERM &&
	       privilege_prove(SOMEBODY, SOMEBODY + 1, &why) == -EPERM ? 0 : 1;
}

static int
do_nothing(void)
{
	struct why why;

	return privilege_prove(getuid(), getgid(), &why) == -EPERM ? 0 : 1;
}

static int
drop_as_user(void)
{
	struct why why = { .text = "" };

	if (geteuid() == 0 && (setgid(SOMEBODY) < 0 || setuid(SOMEBODY) < 0))
		return 2;
	return privilege_drop() == 0 && privilege_prove(getuid(), getgid(), &why) == 0
		       ? 0
		       : 1;
}

static void
root_becomes_nobody_with_nothing(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(in_child(drop_it_all), 0);
}

static void
what_is_left_is_noticed(void **state)
{
	(void)state;
	if (geteuid() == 0) {
		assert_int_equal(in_child(keep_two), 0);
		assert_int_equal(in_child(drop_but_be_another), 0);
	}
	/* An ordinary user lacks no_new_privs alone, and that is noticed too. */
	assert_int_equal(in_child(do_nothing), 0);
}

static void
an_ordinary_user_has_little_to_drop(void **state)
{
	(void)state;
	assert_int_equal(in_child(drop_as_user), 0);
}

static void
the_unit_grants_just_the_list(void **state)
{
	static const struct {
		int number;
		const char *name;
	} names[] = {
		{ CAP_SETUID, "CAP_SETUID" }, { CAP_SETGID, "CAP_SETGID" },
		{ CAP_SETPCAP, "CAP_SETPCAP" },
	};
	const char *srcdir = getenv("srcdir");
	char path[4096], line[512], *word, *save = NULL;
	size_t n, granted = 0;
	const int *list = privilege_list(&n);
	bool found = false;
	FILE *unit;

	(void)state;
	snprintf(path, sizeof(path), "%s/systemd/mcp-pythond.service.in",
		 srcdir ? srcdir : ".");
	unit = fopen(path, "re");
	if (unit == NULL)
		skip();
	while (!found && fgets(line, sizeof(line), unit) != NULL)
		found = strncmp(line, "CapabilityBoundingSet=", 22) == 0;
	fclose(unit);
	assert_true(found);
	for (word = strtok_r(line + 22, " \n", &save); word != NULL;
	     word = strtok_r(NULL, " \n", &save)) {
		bool listed = false;

		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
			for (size_t j = 0; j < n; j++)
				listed = listed || (strcmp(names[i].name, word) == 0 &&
						    names[i].number == list[j]);
		if (!listed)
			print_error("the unit grants %s\n", word);
		assert_true(listed);
		granted++;
	}
	assert_int_equal(granted, n);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(root_becomes_nobody_with_nothing),
		cmocka_unit_test(what_is_left_is_noticed),
		cmocka_unit_test(an_ordinary_user_has_little_to_drop),
		cmocka_unit_test(the_unit_grants_just_the_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
