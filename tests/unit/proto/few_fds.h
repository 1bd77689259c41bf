/* SPDX-License-Identifier: Apache-2.0 */
/* For a while, a process that has few free descriptors or none: all others that it may have are
 * open. */
#ifndef TESTS_UNIT_PROTO_FEW_FDS_H
#define TESTS_UNIT_PROTO_FEW_FDS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#define FEW_FDS_LIMIT 256

static struct {
	struct rlimit before;
	int fd[FEW_FDS_LIMIT];
	size_t n;
} few_now;

/* Takes those that have become free. */
static inline void
few_fds_again(void)
{
	while ((few_now.fd[few_now.n] = dup(STDERR_FILENO)) >= 0)
		few_now.n++;
}

/* Leaves n descriptors free, until few_fds_end(). */
static inline void
few_fds(size_t n)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &few_now.before), 0);
	limit = (struct rlimit){ FEW_FDS_LIMIT, few_now.before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	few_now.n = 0;
	few_fds_again();
	assert_true(few_now.n >= n);
	while (n-- > 0)
		close(few_now.fd[--few_now.n]);
}

static inline void
few_fds_end(void)
{
	while (few_now.n > 0)
		close(few_now.fd[--few_now.n]);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few_now.before), 0);
}

#endif
