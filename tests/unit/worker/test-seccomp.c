/* The syscall filter, row by row: first the compiled program is executed here for every
 * row, condition, ABI and number, then the kernel is asked about all that is refused.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <seccomp.h>

#include "worker/seccomp.h"

#define NUMBERS 1024		/* more than any table of calls has */
#define ARGS(...) (const uint64_t[6]){ __VA_ARGS__ }

#define SAYS_ALLOW SECCOMP_RET_ALLOW
#define SAYS(error) (SECCOMP_RET_ERRNO | (error))

/* All kinds of host; the second bit is of uids. */
#define HOSTS 4
#define HOST(i) { .memory_counted = (i) & 1, .own_uid = (i) & 2 }
#define WORST 0
#define BEST (HOSTS - 1)

static struct sock_fprog program[HOSTS];

static int
compile_all(void **state)
{
	const char *what;

	(void)state;
	for (int i = 0; i < HOSTS; i++) {
		const struct seccomp_host host = HOST(i);

		if (seccomp_compile(&host, &program[i], &what) < 0) {
			fprintf(stderr, "row %s\n", what);
			return -1;
		}
	}
	return 0;
}

static int
free_all(void **state)
{
	(void)state;
	for (int i = 0; i < HOSTS; i++)
		free(program[i].filter);
	return 0;
}

/* ---- what the program answers, by executing it (the part of BPF that seccomp has)
 * ---- */

static bool
jumps(const struct sock_filter *f, uint32_t a)
{
	switch (BPF_OP(f->code)) {
	case BPF_JEQ:
		return a == f->k;
	case BPF_JGT:
		return a > f->k;
	case BPF_JGE:
		return a >= f->k;
	case BPF_JSET:
		return a & f->k;
	default:
		fail_msg("jump 0x%x", f->code);
	}
	return false;
}

static uint32_t
execute(const struct sock_fprog *p, const struct seccomp_data *data)
{
	uint32_t a = 0;

	for (size_t pc = 0; pc < p->len; pc++) {
		const struct sock_filter *f = &p->filter[pc];

		switch (BPF_CLASS(f->code)) {
		case BPF_LD:
			assert_true(f->k <= sizeof(*data) - sizeof(a));
			memcpy(&a, (const char *)data + f->k, sizeof(a));
			break;
		case BPF_ALU:
			assert_int_equal(f->code, BPF_ALU | BPF_AND | BPF_K);
			a &= f->k;
			break;
		case BPF_JMP:
			if (BPF_OP(f->code) == BPF_JA)
				pc += f->k;
			else
				pc += jumps(f, a) ? f->jt : f->jf;
			break;
		case BPF_RET:
			return f->k;
		default:
			fail_msg("instruction 0x%x", f->code);
		}
	}
	fail_msg("no verdict");
	return 0;
}

static uint32_t
ask(int host, long nr, const uint64_t *args)
{
	struct seccomp_data data = { .nr = (int)nr, .arch = seccomp_arch_native() };

	memcpy(data.args, args, sizeof(data.args));
	return execute(&program[host], &data);
}

static uint32_t
answer(enum seccomp_verdict verdict)
{
	switch (verdict) {
	case SECCOMP_ALLOW:
		return SAYS_ALLOW;
	case SECCOMP_EPERM:
		return SAYS(EPERM);
	case SECCOMP_ENOSYS:
		return SAYS(ENOSYS);
	case SECCOMP_PRETEND:
		return SAYS(0);
	}
	return 0;
}

/* Arguments for which a row holds. */
static void
matching(const struct seccomp_row *row, uint64_t *args)
{
	for (size_t i = 0; i < 6; i++)
		args[i] = 0;
	if (row->when == WHEN_ARG)
		args[row->arg] = row->value;
	if (row->when == WHEN_ARG_ABOVE)
		args[row->arg] = row->value + 1;
	if (row->when == WHEN_OPTION) {
		args[1] = SOL_SOCKET;
		args[2] = row->value;
	}
	if (row->when == WHEN_SOCKET) {
		args[0] = row->value;
		args[1] = row->mask;
		args[2] = row->mask2;
	}
}

static void
every_row_answers_as_written(void **state)
{
	size_t n;
	const struct seccomp_row *rows = seccomp_rows(&n);

	(void)state;
	assert_true(n > 250);
	for (size_t i = 0; i < n; i++) {
		int nr = seccomp_syscall_resolve_name(rows[i].call);
		uint64_t args[6];

		assert_int_not_equal(nr, __NR_SCMP_ERROR);
		assert_true(rows[i].reason[0]);
		if (nr < 0)
			continue;
		matching(&rows[i], args);
		for (int h = 0; h < HOSTS; h++) {
			const struct seccomp_host host = HOST(h);
			uint32_t says = ask(h, nr, args);

			if (seccomp_is_for(&rows[i], &host)) {
				if (says != answer(rows[i].verdict))
					fail_msg("row %zu, %s, host %d: 0x%x", i,
						 rows[i].call, h, says);
			} else if (rows[i].when == WHEN_ALWAYS &&
				   strcmp(rows[i].call, "mmap") != 0) {
				/* Calls that have no other row. */
				assert_int_equal(says, SAYS(ENOSYS));
			}
		}
	}
}

/* A value with bits set where a 32-bit comparison does not look is another value. */
static void
conditions_look_at_all_bits(void **state)
{
	size_t n;
	const struct seccomp_row *rows = seccomp_rows(&n);

	(void)state;
	for (size_t i = 0; i < n; i++) {
		int nr = seccomp_syscall_resolve_name(rows[i].call);
		uint64_t args[6];

		if (nr < 0 || rows[i].when != WHEN_ARG || rows[i].mask != UINT64_MAX)
			continue;
		matching(&rows[i], args);
		args[rows[i].arg] |= 1ULL << 40;
		if (ask(BEST, nr, args) == SAYS_ALLOW)
			fail_msg("%s 0x%llx", rows[i].call,
				 (unsigned long long)args[rows[i].arg]);
	}
}

/* Memory that only a controller counts is not to be had without one; the flags beside
 * those that say so change nothing. */
static void
shared_anonymous_memory_needs_a_controller(void **state)
{
	static const uint64_t others[] = { 0, MAP_NORESERVE, MAP_FIXED | MAP_POPULATE,
					   MAP_HUGETLB, 1ULL << 40 };

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		const uint64_t type[] = { MAP_SHARED, MAP_SHARED_VALIDATE };

		for (size_t k = 0; k < 2; k++) {
			uint64_t flags = type[k] | MAP_ANONYMOUS | others[i];

			assert_int_equal(ask(BEST, SYS_mmap, ARGS(0, 1, 3, flags, ~0ULL)),
					 SAYS_ALLOW);
			assert_int_equal(ask(WORST, SYS_mmap, ARGS(0, 1, 3, flags, ~0ULL)),
					 SAYS(EPERM));
			flags &= ~(uint64_t)MAP_ANONYMOUS;
			assert_int_equal(ask(WORST, SYS_mmap, ARGS(0, 1, 3, flags, 5)),
					 SAYS_ALLOW);
		}
		assert_int_equal(ask(WORST, SYS_mmap,
				     ARGS(0, 1, 3, MAP_PRIVATE | MAP_ANONYMOUS | others[i])),
				 SAYS_ALLOW);
	}
}

/* Of all options of a socket the listed ones, and no bit more. */
static void
socket_options_are_the_listed_ones(void **state)
{
	(void)state;
	assert_int_equal(ask(BEST, SYS_setsockopt, ARGS(3, SOL_SOCKET, SO_SNDBUF)), SAYS_ALLOW);
	assert_int_equal(ask(WORST, SYS_setsockopt, ARGS(3, SOL_SOCKET, SO_SNDBUF)), SAYS(0));
	assert_int_equal(ask(WORST, SYS_setsockopt, ARGS(3, SOL_SOCKET, SO_RCVBUF)), SAYS(0));
	for (int h = 0; h < HOSTS; h++) {
		assert_int_equal(ask(h, SYS_setsockopt, ARGS(3, SOL_SOCKET, SO_REUSEADDR)),
				 SAYS_ALLOW);
		assert_int_equal(ask(h, SYS_setsockopt, ARGS(3, SOL_SOCKET, SO_RCVBUFFORCE)),
				 SAYS(ENOSYS));
		assert_int_equal(ask(h, SYS_setsockopt, ARGS(3, SOL_SOCKET, SO_ATTACH_FILTER)),
				 SAYS(ENOSYS));
		for (int bit = 32; bit < 64; bit++) {
			uint64_t option = SO_SNDBUF | 1ULL << bit;

			assert_int_equal(ask(h, SYS_setsockopt, ARGS(3, SOL_SOCKET, option)),
					 SAYS(ENOSYS));
			option = SOL_SOCKET | 1ULL << bit;
			assert_int_equal(ask(h, SYS_setsockopt, ARGS(3, option, SO_SNDBUF)),
					 SAYS(ENOSYS));
		}
	}
}

static void
what_no_row_names_does_not_exist(void **state)
{
	bool named[NUMBERS] = { false };
	size_t n;
	const struct seccomp_row *rows = seccomp_rows(&n);

	(void)state;
	for (size_t i = 0; i < n; i++) {
		int nr = seccomp_syscall_resolve_name(rows[i].call);

		if (nr >= 0)
			named[nr] = true;
	}
	for (long nr = 0; nr < NUMBERS; nr++)
		if (!named[nr])
			assert_int_equal(ask(BEST, nr, ARGS(0)), SAYS(ENOSYS));
}

static void
other_abis_do_not_exist(void **state)
{
	static const uint32_t others[] = { AUDIT_ARCH_I386, AUDIT_ARCH_X86_64,
					   AUDIT_ARCH_ARM,  AUDIT_ARCH_AARCH64,
					   AUDIT_ARCH_MIPS, 0,
					   0xffffffff };

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		for (int nr = 0; nr < NUMBERS; nr++) {
			struct seccomp_data data = { .nr = nr, .arch = others[i] };

			if (others[i] != seccomp_arch_native())
				assert_int_equal(execute(&program[BEST], &data),
						 SAYS(ENOSYS));
		}
#ifdef __x86_64__
	for (long nr = 0; nr < NUMBERS; nr++)
		assert_int_equal(ask(BEST, 0x40000000 | nr, ARGS(0)), SAYS(ENOSYS));
#endif
	assert_int_equal(ask(BEST, -1, ARGS(0)), SAYS(ENOSYS));
}

static void
clone_makes_no_namespace(void **state)
{
	static const uint64_t flags[] = { CLONE_NEWNS,	CLONE_NEWCGROUP, CLONE_NEWUTS,
					  CLONE_NEWIPC, CLONE_NEWUSER,	 CLONE_NEWPID,
					  CLONE_NEWNET };
	const uint64_t thread = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
				CLONE_THREAD | CLONE_SYSVSEM | CLONE_SETTLS |
				CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;

	(void)state;
	assert_int_equal(ask(BEST, SYS_clone, ARGS(thread)), SAYS_ALLOW);
	assert_int_equal(ask(BEST, SYS_clone, ARGS(SIGCHLD)), SAYS_ALLOW);
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		assert_int_equal(ask(BEST, SYS_clone, ARGS(flags[i] | SIGCHLD)),
				 SAYS(ENOSYS));
		assert_int_equal(ask(BEST, SYS_clone, ARGS(flags[i] | thread)),
				 SAYS(ENOSYS));
		assert_int_equal(ask(BEST, SYS_clone, ARGS(flags[i] | 1ULL << 33)),
				 SAYS(ENOSYS));
	}
	assert_int_equal(ask(BEST, SYS_clone3, ARGS(0)), SAYS(ENOSYS));
}

static bool
may_have_socket(uint64_t family, uint64_t type, uint64_t protocol)
{
	if (family == AF_UNIX)
		return protocol == 0 && (type == SOCK_STREAM || type == SOCK_DGRAM ||
					 type == SOCK_SEQPACKET);
	if (family != AF_INET && family != AF_INET6)
		return false;
	return (type == SOCK_STREAM && (protocol == 0 || protocol == 6)) ||
		(type == SOCK_DGRAM && (protocol == 0 || protocol == 17));
}

static void
sockets_are_the_listed_ones(void **state)
{
	static const uint64_t flags[] = { 0, SOCK_CLOEXEC, SOCK_NONBLOCK,
					  SOCK_CLOEXEC | SOCK_NONBLOCK };

	(void)state;
	for (uint64_t family = 0; family < 64; family++)
		for (uint64_t type = 0; type < 16; type++)
			for (uint64_t protocol = 0; protocol < 300; protocol++)
				for (size_t f = 0; f < 4; f++) {
					uint32_t says =
						ask(BEST, SYS_socket,
						    ARGS(family, type | flags[f],
							 protocol));

					if ((says == SAYS_ALLOW) !=
					    may_have_socket(family, type, protocol))
						fail_msg("family %d type %d protocol "
							 "%d: 0x%x",
							 (int)family, (int)type,
							 (int)protocol, says);
				}
	assert_int_equal(ask(BEST, SYS_socket, ARGS(AF_NETLINK, SOCK_RAW, 0)),
			 SAYS(EPERM));
	assert_int_not_equal(
		ask(BEST, SYS_socket, ARGS(AF_INET | 1ULL << 32, SOCK_STREAM, 0)),
		SAYS_ALLOW);
	assert_int_equal(ask(BEST, SYS_socketpair, ARGS(AF_INET, SOCK_STREAM, 0)),
			 SAYS(ENOSYS));
}

/* ---- what the kernel answers ---- */

/* In a child under the filter: every refused row, with arguments that cannot do harm if
 * it were let through. Exits 0, or 1 after telling which row was not refused. */
static _Noreturn void
try_refused_rows(void)
{
	size_t n;
	const struct seccomp_row *rows = seccomp_rows(&n);
	int status = 0;

	if (setsid() < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    seccomp_enter(&program[BEST]) < 0)
		_exit(2);
	for (size_t i = 0; i < n; i++) {
		const struct seccomp_host host = HOST(BEST);
		int nr = seccomp_syscall_resolve_name(rows[i].call), expected = EPERM;
		long arg[6] = { -1, -1, -1, -1, -1, -1 }, result;

		if (nr < 0 || !seccomp_is_for(&rows[i], &host) ||
		    rows[i].verdict == SECCOMP_ALLOW ||
		    rows[i].verdict == SECCOMP_PRETEND)
			continue;
		if (rows[i].verdict == SECCOMP_ENOSYS)
			expected = ENOSYS;
		if (rows[i].when == WHEN_ARG)
			arg[rows[i].arg] = (long)rows[i].value;
		if (rows[i].when == WHEN_ARG_ABOVE)
			arg[rows[i].arg] = (long)rows[i].value + 1;
		errno = 0;
		result = syscall(nr, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
		if (result != -1 || errno != expected) {
			fprintf(stderr, "%s: %ld, errno %d\n", rows[i].call, result,
				errno);
			status = 1;
		}
	}
	_exit(status);
}

static void
the_kernel_refuses_them(void **state)
{
	pid_t pid = fork();
	int status;

	(void)state;
	assert_true(pid >= 0);
	if (pid == 0)
		try_refused_rows();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void
the_filter_cannot_be_left_or_replaced(void **state)
{
	pid_t pid = fork();
	int status;

	(void)state;
	assert_true(pid >= 0);
	if (pid == 0) {
		static const struct sock_filter all[] = { { BPF_RET | BPF_K, 0, 0,
							    SECCOMP_RET_ALLOW } };
		struct sock_fprog open_wide = { 1,
						(struct sock_filter *)(uintptr_t)all };

		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
		    seccomp_enter(&program[BEST]) < 0)
			_exit(2);
		if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &open_wide) == 0 ||
		    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &open_wide) == 0)
			_exit(3);
		/* Into children. */
		pid = fork();
		if (pid == 0)
			_exit(unshare(CLONE_NEWUSER) == -1 && errno == EPERM ? 0 : 4);
		_exit(waitpid(pid, &status, 0) == pid && status == 0 ? 0 : 5);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row_answers_as_written),
		cmocka_unit_test(conditions_look_at_all_bits),
		cmocka_unit_test(shared_anonymous_memory_needs_a_controller),
		cmocka_unit_test(socket_options_are_the_listed_ones),
		cmocka_unit_test(what_no_row_names_does_not_exist),
		cmocka_unit_test(other_abis_do_not_exist),
		cmocka_unit_test(clone_makes_no_namespace),
		cmocka_unit_test(sockets_are_the_listed_ones),
		cmocka_unit_test(the_kernel_refuses_them),
		cmocka_unit_test(the_filter_cannot_be_left_or_replaced),
	};

	return cmocka_run_group_tests(tests, compile_all, free_all);
}
