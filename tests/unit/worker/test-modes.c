/* SPDX-License-Identifier: Apache-2.0 */
/* chmod() where set-uid and set-gid bits are refused, as the system service's unit does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <seccomp.h>

#define TRY(what) do { if (!(what)) { fprintf(stderr, "%s\n", #what); _exit(1); } } while (0)

static void
refuse(unsigned int bit)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
	const struct { int call; unsigned int at; } calls[] = {
		{ SCMP_SYS(chmod), 1 }, { SCMP_SYS(fchmod), 1 }, { SCMP_SYS(fchmodat), 2 },
		{ seccomp_syscall_resolve_name("fchmodat2"), 2 },	/* since Linux 6.6 */
	};

	TRY(ctx != NULL && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (calls[i].call != __NR_SCMP_ERROR)
			TRY(seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), calls[i].call, 1,
				SCMP_CMP64(calls[i].at, SCMP_CMP_MASKED_EQ, bit, bit)) == 0);
	TRY(seccomp_load(ctx) == 0);
	seccomp_release(ctx);
}

static unsigned int
mode_of(const char *path)
{
	struct stat st;

	TRY(stat(path, &st) == 0);
	return st.st_mode & 07777;
}

static void
change_modes(void)
{
	char path[] = "/tmp/modes-XXXXXX";
	int fd = mkstemp(path);

	TRY(fd >= 0);
	refuse(S_ISUID);
	refuse(S_ISGID);
	TRY(chmod(path, 04755) == 0 && mode_of(path) == 0755);
	TRY(fchmod(fd, 06711) == 0 && mode_of(path) == 0711);
	TRY(fchmodat(AT_FDCWD, path, 02750, 0) == 0 && mode_of(path) == 0750);
	TRY(chmod(path, 01644) == 0 && mode_of(path) == 01644);
	/* Every other error is reported. */
	TRY(chmod("/no/such/file", 04755) < 0 && errno == ENOENT);
	TRY(fchmod(-1, 04755) < 0 && errno == EBADF);
	TRY(unlink(path) == 0);
	_exit(0);
}

static void
refused_bits_are_left_out(void **state)
{
	int status = -1;
	pid_t pid;

	(void)state;
	pid = fork();
	if (pid == 0)
		change_modes();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refused_bits_are_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
