/* SPDX-License-Identifier: Apache-2.0 */
/* The syscall filter, row by row: first the compiled program is executed here for every
 * row, condition, ABI and number, then the kernel is asked about all that is refused.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
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
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <seccomp.h>

#include "worker/seccomp.h"

#define NUMBERS 1024		/* more than any table of calls has */
#define ARGS(...) (const uint64_t[6]){ __VA_ARGS__ }

#define SAYS_ALLOW SECCOMP_RET_ALLOW
#define SAYS(error) (SECCOMP_RET_ERRNO | (error))

/* All kinds of host; the second bit is of uids. */
#define HOSTS 8
#define HOST(i) { .memory_counted = (i) & 1, .own_uid = (i) & 2, .terminals = (i) & 4 }
#define WORST 0
#define BEST (HOSTS - 1)

static struct {
	struct sock_fprog zygote, worker;	/* a worker has both */
} program[HOSTS];

static int
compile_all(void **state)
{
	const char *what;

	(void)state;
	for (int i = 0; i < HOSTS; i++) {
		const struct seccomp_host host = HOST(i);

		if (seccomp_compile_for_zygote(&host, &program[i].zygote, &what) < 0 ||
		    seccomp_compile(&host, &program[i].worker, &what) < 0) {
			fprintf(stderr, "row %s\n", what);
			return -1;
		}
	}
	return 0;
}

/* As a zygote does it, beside other work. */
static void
a_child_compiles_the_same(void **state)
{
	struct sock_fprog worker, zygote;
	const char *what = NULL;

	(void)state;
	for (int i = 0; i < HOSTS; i++) {
		const struct seccomp_host host = HOST(i);

		assert_int_equal(seccomp_begin(&host), 0);
		assert_int_equal(seccomp_end(&worker, &zygote, &what), 0);
		assert_int_equal(worker.len, program[i].worker.len);
		assert_int_equal(zygote.len, program[i].zygote.len);
		assert_memory_equal(worker.filter, program[i].worker.filter,
				    worker.len * sizeof(*worker.filter));
		assert_memory_equal(zygote.filter, program[i].zygote.filter,
				    zygote.len * sizeof(*zygote.filter));
		free(worker.filter);
		free(zygote.filter);
	}
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);	/* no child is left */
	assert_int_equal(errno, ECHILD);
}

/* Without its verdict there is no filter, and no zygote. */
static void
a_lost_child_is_an_error(void **state)
{
	const struct seccomp_host host = HOST(BEST);
	struct sock_fprog worker, zygote;
	const char *what = NULL;

	(void)state;
	assert_int_equal(seccomp_begin(&host), 0);
	assert_true(waitpid(-1, NULL, 0) > 0);
	assert_int_equal(seccomp_end(&worker, &zygote, &what), -ECHILD);
	assert_string_equal(what, "syscall filter");
}

static int
free_all(void **state)
{
	(void)state;
	for (int i = 0; i < HOSTS; i++) {
		free(program[i].zygote.filter);
		free(program[i].worker.filter);
	}
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

/* The stricter answer holds; of two errors the one of the filter that was entered last. */
static uint32_t
execute_both(int host, const struct seccomp_data *data)
{
	uint32_t worker = execute(&program[host].worker, data);

	return worker == SAYS_ALLOW ? execute(&program[host].zygote, data) : worker;
}

static uint32_t
ask(int host, long nr, const uint64_t *args)
{
	struct seccomp_data data = { .nr = (int)nr, .arch = seccomp_arch_native() };

	memcpy(data.args, args, sizeof(data.args));
	return execute_both(host, &data);
}

static uint32_t
ask_zygote(int host, long nr, const uint64_t *args)
{
	struct seccomp_data data = { .nr = (int)nr, .arch = seccomp_arch_native() };

	memcpy(data.args, args, sizeof(data.args));
	return execute(&program[host].zygote, &data);
}

static int
enter_both(int host)
{
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	       seccomp_enter(&program[host].zygote) < 0 ||
	       seccomp_enter(&program[host].worker) < 0 ? -1 : 0;
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
	case SECCOMP_EINVAL:
		return SAYS(EINVAL);
	case SECCOMP_ENOPROTOOPT:
		return SAYS(ENOPROTOOPT);
	case SECCOMP_EOPNOTSUPP:
		return SAYS(EOPNOTSUPP);
	case SECCOMP_PRETEND:
		return SAYS(0);
	}
	return 0;
}

/* Changes the arguments that a row looks at, so that it holds. */
static void
make_match(const struct seccomp_row *row, uint64_t *args)
{
	for (const struct scmp_arg_cmp *cmp = row->when; cmp->op; cmp++)
		switch ((int)cmp->op) {
		case SCMP_CMP_EQ:
		case SCMP_CMP_LE:
			args[cmp->arg] = cmp->datum_a;
			break;
		case SCMP_CMP_MASKED_EQ:
			args[cmp->arg] = cmp->datum_b;
			break;
		case SCMP_CMP_GT:
			args[cmp->arg] = cmp->datum_a + 1;
			break;
		case SCMP_CMP_GE:	/* what no other row has */
			args[cmp->arg] = cmp->datum_a + 12345678;
			break;
		default:
			fail_msg("%s: comparison %d", row->call, cmp->op);
		}
}

/* A zygote's: nothing that scripts may do is lost, and beside that there are the walls. */
static void
a_zygote_has_scripts_calls_and_the_walls(void **state)
{
	static const char *const walls[] = {
		"clone3", "mount", "prctl", "ioctl", "seccomp", "setgroups", "sethostname",
		"landlock_create_ruleset", "landlock_add_rule",
	};
	static const char *const refused[] = {
		"setns", "unshare", "chroot", "pivot_root", "umount2", "open_tree", "move_mount",
		"fsopen", "mount_setattr", "ptrace", "bpf", "keyctl", "userfaultfd",
		"io_uring_setup", "name_to_handle_at", "openat2",
	};
	static const uint64_t others[] = {
		0, CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET | CLONE_NEWNS,
		CLONE_NEWNET | CLONE_FILES, ~0ULL,
	};
	size_t n;
	const struct seccomp_row *rows = seccomp_rows(&n);

	(void)state;
	for (int h = 0; h < HOSTS; h++) {
		const struct seccomp_host host = HOST(h);
		for (size_t i = 0; i < n; i++) {
			int nr = seccomp_syscall_resolve_name(rows[i].call);
			uint64_t args[6] = { 0 };

			make_match(&rows[i], args);
			if (nr >= 0 && rows[i].verdict == SECCOMP_ALLOW &&
			    seccomp_is_for(&rows[i], &host))
				assert_int_equal(ask_zygote(h, nr, args), SAYS_ALLOW);
		}
		for (size_t i = 0; i < sizeof(walls) / sizeof(walls[0]); i++)
			assert_int_equal(ask_zygote(h, seccomp_syscall_resolve_name(walls[i]),
						    ARGS(-1, -1, -1)), SAYS_ALLOW);
		for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
			assert_int_not_equal(ask_zygote(h, seccomp_syscall_resolve_name(refused[i]),
							ARGS(0)), SAYS_ALLOW);
		/* From one network to another, and nowhere else; a worker not even that. */
		assert_int_equal(ask_zygote(h, SCMP_SYS(unshare), ARGS(CLONE_NEWNET)), SAYS_ALLOW);
		assert_int_equal(ask_zygote(h, SCMP_SYS(setns), ARGS(3, CLONE_NEWNET)), SAYS_ALLOW);
		for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
			assert_int_not_equal(ask_zygote(h, SCMP_SYS(unshare), ARGS(others[i])),
					     SAYS_ALLOW);
			assert_int_not_equal(ask_zygote(h, SCMP_SYS(setns), ARGS(3, others[i])),
					     SAYS_ALLOW);
		}
		assert_int_equal(ask(h, SCMP_SYS(unshare), ARGS(CLONE_NEWNET)), SAYS(EPERM));
		assert_int_equal(ask(h, SCMP_SYS(setns), ARGS(3, CLONE_NEWNET)), SAYS(EPERM));
		assert_int_not_equal(ask_zygote(h, SCMP_SYS(socket),
						ARGS(AF_NETLINK, SOCK_RAW, 12)), SAYS_ALLOW);
		assert_int_not_equal(ask_zygote(h, SCMP_SYS(socket), ARGS(AF_INET, SOCK_RAW)),
				     SAYS_ALLOW);
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
		uint64_t args[6] = { 0 };

		assert_int_not_equal(nr, __NR_SCMP_ERROR);
		assert_true(rows[i].reason[0]);
		if (nr < 0)
			continue;
		make_match(&rows[i], args);
		for (int h = 0; h < HOSTS; h++) {
			const struct seccomp_host host = HOST(h);
			uint32_t says = ask(h, nr, args);

			if (seccomp_is_for(&rows[i], &host)) {
				if (says != answer(rows[i].verdict))
					fail_msg("row %zu, %s, host %d: 0x%x", i,
						 rows[i].call, h, says);
			} else if (!rows[i].when[0].op) {
				/* Calls that have no other row. */
				assert_int_equal(says, SAYS(ENOSYS));
			}
		}
	}
}

/* ---- what the rows say, read without libseccomp ---- */

static bool
holds(const struct scmp_arg_cmp *cmp, const uint64_t *args)
{
	uint64_t arg = args[cmp->arg];

	switch ((int)cmp->op) {
	case SCMP_CMP_EQ:
		return arg == cmp->datum_a;
	case SCMP_CMP_MASKED_EQ:
		return (arg & cmp->datum_a) == cmp->datum_b;
	case SCMP_CMP_LE:
		return arg <= cmp->datum_a;
	case SCMP_CMP_GT:
		return arg > cmp->datum_a;
	case SCMP_CMP_GE:
		return arg >= cmp->datum_a;
	default:
		fail_msg("comparison %d", (int)cmp->op);
	}
	return false;
}

static bool
row_holds(const struct seccomp_row *row, const uint64_t *args)
{
	for (const struct scmp_arg_cmp *cmp = row->when; cmp->op; cmp++)
		if (!holds(cmp, args))
			return false;
	return true;
}

/* Of two rows that hold, the one that goes first: > 0 for a, 0 for neither. */
static int
goes_first(const struct seccomp_row *a, const struct seccomp_row *b)
{
	static const int rank[] = {
		[SCMP_CMP_EQ] = 3, [SCMP_CMP_MASKED_EQ] = 3, [SCMP_CMP_LE] = 2,
		[SCMP_CMP_GE] = 1, [SCMP_CMP_GT] = 1,
	};

	for (size_t i = 0; a->when[i].op && b->when[i].op; i++) {
		if (a->when[i].arg != b->when[i].arg)
			break;
		if (rank[a->when[i].op] != rank[b->when[i].op])
			return rank[a->when[i].op] - rank[b->when[i].op];
	}
	return 0;
}

static uint32_t
read_rows(int h, const char *call, const uint64_t *args)
{
	const struct seccomp_host host = HOST(h);
	const struct seccomp_row *found = NULL, *rows;
	size_t n;

	rows = seccomp_rows(&n);
	for (size_t i = 0; i < n; i++) {
		int first;

		if (strcmp(rows[i].call, call) != 0 || !seccomp_is_for(&rows[i], &host) ||
		    !row_holds(&rows[i], args))
			continue;
		first = found ? goes_first(&rows[i], found) : 1;
		if (first == 0 && rows[i].verdict != found->verdict)
			fail_msg("two rows for %s(0x%llx, 0x%llx, 0x%llx)", call,
				 (unsigned long long)args[0], (unsigned long long)args[1],
				 (unsigned long long)args[2]);
		if (first > 0)
			found = &rows[i];
	}
	return found ? answer(found->verdict) : SAYS(ENOSYS);
}

/* Values of an argument at which a row of a call may begin or end to hold. */
static size_t
edges(const char *call, unsigned int arg, uint64_t *values, size_t most)
{
	size_t n, count = 0;
	const struct seccomp_row *rows = seccomp_rows(&n);

	values[count++] = 0;
	for (size_t i = 0; i < n; i++)
		for (const struct scmp_arg_cmp *cmp = rows[i].when; cmp->op; cmp++) {
			const uint64_t datum = cmp->op == SCMP_CMP_MASKED_EQ ? cmp->datum_b
									     : cmp->datum_a;
			const uint64_t near[] = { datum, datum + 1, datum - 1, datum | 1ULL << 32,
						  datum | 1ULL << 63, ~datum };

			if (strcmp(rows[i].call, call) != 0 || cmp->arg != arg)
				continue;
			for (size_t k = 0; k < sizeof(near) / sizeof(near[0]); k++) {
				size_t known = 0;

				while (known < count && values[known] != near[k])
					known++;
				if (known < count)
					continue;
				assert_true(count < most);
				values[count++] = near[k];
			}
		}
	return count;
}

/* For all arguments at the edges of all conditions of a call the program answers as the rows say,
 * in any order that libseccomp chooses. */
static void
conditions_are_exact(void **state)
{
	static uint64_t values[6][512];
	const char *last = "";
	size_t n, asked = 0;
	const struct seccomp_row *rows = seccomp_rows(&n);

	(void)state;
	for (size_t i = 0; i < n; i++) {
		const char *call = rows[i].call;
		int nr = seccomp_syscall_resolve_name(call);
		size_t count[6], total = 1;

		if (nr < 0 || !rows[i].when[0].op || strcmp(call, last) == 0)
			continue;
		last = call;
		for (unsigned int a = 0; a < 6; a++) {
			count[a] = edges(call, a, values[a], 512);
			total *= count[a];
		}
		for (size_t t = 0; t < total; t++) {
			uint64_t args[6];
			size_t rest = t;

			for (unsigned int a = 0; a < 6; a++) {
				args[a] = values[a][rest % count[a]];
				rest /= count[a];
			}
			for (int h = 0; h < HOSTS; h += BEST) {
				uint32_t says = ask(h, nr, args);

				if (says != read_rows(h, call, args))
					fail_msg("%s(0x%llx, 0x%llx, 0x%llx), host %d: 0x%x", call,
						 (unsigned long long)args[0],
						 (unsigned long long)args[1],
						 (unsigned long long)args[2], h, says);
				asked++;
			}
		}
	}
	assert_true(asked > 10000);
}

/* Memory that only a controller counts cannot be allocated without one; the flags beside those that
 * say so change nothing. */
static void
shared_anonymous_memory_needs_a_controller(void **state)
{
	static const uint64_t others[] = { 0, MAP_NORESERVE, MAP_FIXED | MAP_POPULATE,
					   1ULL << 40 };

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

/* Pages of the host's pool count against no limit of a worker: no call gets one, of any size,
 * shared or not, and with any other flags. */
static void
no_call_maps_the_hosts_huge_pages(void **state)
{
	static const uint64_t sizes[] = { 0, 21ULL << 26, 30ULL << 26, 63ULL << 26 };
	static const uint64_t others[] = { 0, MAP_NORESERVE, MAP_FIXED | MAP_POPULATE,
					   MAP_LOCKED | 1ULL << 40 };
	static const uint64_t types[] = { MAP_PRIVATE, MAP_SHARED, MAP_SHARED_VALIDATE };

	(void)state;
	for (int h = 0; h < HOSTS; h++)
		for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
			for (size_t o = 0; o < sizeof(others) / sizeof(others[0]); o++) {
				uint64_t more = sizes[s] | others[o];

				for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
					uint64_t flags = MAP_HUGETLB | types[t] | more;

					assert_int_equal(ask(h, SYS_mmap, ARGS(0, 1, 3, flags, 5)),
							 SAYS(EPERM));
					flags |= MAP_ANONYMOUS;
					assert_int_equal(ask(h, SYS_mmap,
							     ARGS(0, 1, 3, flags, ~0ULL)),
							 SAYS(EPERM));
				}
				assert_int_equal(ask(h, SYS_memfd_create,
						     ARGS(1, MFD_HUGETLB | MFD_CLOEXEC | more)),
						 SAYS(EPERM));
			}
	assert_int_equal(ask(BEST, SYS_mmap, ARGS(0, 1, 3, MAP_PRIVATE | MAP_ANONYMOUS)),
			 SAYS_ALLOW);
	assert_int_equal(ask(BEST, SYS_memfd_create, ARGS(1, MFD_CLOEXEC | MFD_ALLOW_SEALING)),
			 SAYS_ALLOW);
}

/* No call reads a file of the host past the page cache, drops it from there, tells what is there,
 * or makes the host's disk write. */
static void
the_hosts_disk_is_left_alone(void **state)
{
	static const uint64_t others[] = { 0, O_CLOEXEC, O_NONBLOCK | O_CREAT, O_TMPFILE | O_RDWR,
					   1ULL << 40 };
	static const uint64_t advices[] = { MADV_MERGEABLE, MADV_UNMERGEABLE, MADV_COLD,
					    MADV_PAGEOUT };

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		uint64_t flags = others[i] | O_DIRECT;

		assert_int_equal(ask(BEST, SYS_openat, ARGS(0, 1, flags)), SAYS(EINVAL));
		assert_int_equal(ask(BEST, SYS_openat, ARGS(0, 1, others[i])), SAYS_ALLOW);
		assert_int_equal(ask(BEST, SYS_fcntl, ARGS(3, F_SETFL, flags)), SAYS(EINVAL));
		assert_int_equal(ask(BEST, SYS_fcntl, ARGS(3, F_SETFL, others[i])), SAYS_ALLOW);
#ifdef SYS_open
		assert_int_equal(ask(BEST, SYS_open, ARGS(1, flags)), SAYS(EINVAL));
		assert_int_equal(ask(BEST, SYS_open, ARGS(1, others[i])), SAYS_ALLOW);
#endif
	}
	assert_int_equal(ask(BEST, SYS_openat2, ARGS(0, 1, 2, 24)), SAYS(ENOSYS));
	for (uint64_t flags = 0; flags < 512; flags++) {
		const uint64_t known = RWF_HIPRI | RWF_DSYNC | RWF_SYNC | RWF_APPEND;

		assert_int_equal(ask(BEST, SYS_preadv2, ARGS(3, 1, 1, 0, 0, flags)),
				 flags & ~known ? SAYS(ENOSYS) : SAYS_ALLOW);
	}
	for (uint64_t advice = 0; advice < 6; advice++)
		assert_int_equal(ask(BEST, SYS_fadvise64, ARGS(3, 0, 0, advice)),
				 advice == POSIX_FADV_DONTNEED ? SAYS(0) : SAYS_ALLOW);
	assert_int_equal(ask(BEST, SYS_fadvise64, ARGS(3, 0, 0, POSIX_FADV_DONTNEED | 1ULL << 32)),
			 SAYS(ENOSYS));
	for (size_t i = 0; i < sizeof(advices) / sizeof(advices[0]); i++) {
		assert_int_equal(ask(BEST, SYS_madvise, ARGS(0, 1, advices[i])), SAYS(EINVAL));
		assert_int_equal(ask(BEST, SYS_madvise, ARGS(0, 1, advices[i] | 1ULL << 32)),
				 SAYS(ENOSYS));
	}
	for (uint64_t advice = 0; advice < 26; advice++)
		if (advice / 2 != MADV_MERGEABLE / 2 && advice / 2 != MADV_COLD / 2)
			assert_int_equal(ask(BEST, SYS_madvise, ARGS(0, 1, advice)), SAYS_ALLOW);
}

static void
socket_options_are_the_listed_ones(void **state)
{
	static const int used[][2] = {
		{ SOL_SOCKET, SO_REUSEADDR },	    { SOL_SOCKET, SO_REUSEPORT },
		{ SOL_SOCKET, SO_KEEPALIVE },	    { SOL_SOCKET, SO_BROADCAST },
		{ IPPROTO_TCP, TCP_NODELAY },	    { IPPROTO_TCP, TCP_KEEPIDLE },
		{ IPPROTO_TCP, TCP_KEEPCNT },	    { IPPROTO_TCP, TCP_USER_TIMEOUT },
		{ IPPROTO_TCP, TCP_QUICKACK },	    { IPPROTO_TCP, TCP_NOTSENT_LOWAT },
		{ IPPROTO_IP, IP_TOS },		    { IPPROTO_IP, IP_ADD_MEMBERSHIP },
		{ IPPROTO_IPV6, IPV6_V6ONLY },	    { IPPROTO_IPV6, IPV6_UNICAST_HOPS },
		{ IPPROTO_IPV6, IPV6_RECVPKTINFO },
	};
	static const int unused[][2] = {
		{ SOL_SOCKET, SO_RCVBUFFORCE },	    { SOL_SOCKET, SO_ATTACH_FILTER },
		{ SOL_SOCKET, SO_ATTACH_BPF },	    { SOL_SOCKET, 76 /* SO_PASSPIDFD */ },
		{ IPPROTO_TCP, TCP_ULP },	    { IPPROTO_TCP, TCP_CONGESTION },
		{ IPPROTO_TCP, TCP_REPAIR },	    { IPPROTO_TCP, TCP_MD5SIG },
		{ IPPROTO_UDP, UDP_ENCAP },	    { IPPROTO_UDP, UDP_GRO },
		{ IPPROTO_UDP, UDP_SEGMENT },	    { SOL_SOCKET, SO_TIMESTAMPING },
		{ IPPROTO_IPV6, IPV6_JOIN_GROUP },  { IPPROTO_IPV6, IPV6_LEAVE_GROUP },
		{ IPPROTO_IPV6, IPV6_ROUTER_ALERT },
		{ IPPROTO_IP, IP_OPTIONS },	    { IPPROTO_IP, 64 /* netfilter's */ },
		{ IPPROTO_IPV6, 1 /* IPV6_ADDRFORM */ }, { IPPROTO_IPV6, IPV6_HOPOPTS },
		{ 132 /* SCTP */, 1 },		    { 279 /* ALG */, 1 },
	};

	(void)state;
	for (int h = 0; h < HOSTS; h++) {
		assert_int_equal(ask(h, SYS_setsockopt, ARGS(3, SOL_SOCKET, SO_SNDBUF)), SAYS(0));
		assert_int_equal(ask(h, SYS_setsockopt, ARGS(3, SOL_SOCKET, SO_RCVBUF)), SAYS(0));
		assert_int_equal(ask(h, SYS_setsockopt, ARGS(3, SOL_SOCKET, SO_LINGER)), SAYS(0));
		for (size_t i = 0; i < sizeof(used) / sizeof(used[0]); i++) {
			uint64_t level = (uint64_t)used[i][0], option = (uint64_t)used[i][1];

			assert_int_equal(ask(h, SYS_setsockopt, ARGS(3, level, option)),
					 SAYS_ALLOW);
			assert_int_equal(ask(h, SYS_getsockopt, ARGS(3, level, option)),
					 SAYS_ALLOW);
			for (int bit = 32; bit < 64; bit++) {
				uint64_t high = 1ULL << bit;

				assert_int_equal(ask(h, SYS_setsockopt,
						     ARGS(3, level, option | high)),
						 SAYS(ENOPROTOOPT));
				assert_int_equal(ask(h, SYS_setsockopt,
						     ARGS(3, level | high, option)),
						 SAYS(ENOPROTOOPT));
			}
		}
		for (size_t i = 0; i < sizeof(unused) / sizeof(unused[0]); i++)
			assert_int_equal(ask(h, SYS_setsockopt, ARGS(3, (uint64_t)unused[i][0],
								     (uint64_t)unused[i][1])),
					 SAYS(ENOPROTOOPT));
		assert_int_equal(ask(h, SYS_getsockopt, ARGS(3, SOL_SOCKET, SO_PEERCRED)),
				 SAYS_ALLOW);
		assert_int_equal(ask(h, SYS_getsockopt, ARGS(3, SOL_SOCKET, 77)),
				 SAYS(ENOPROTOOPT));
		assert_int_equal(ask(h, SYS_getsockopt, ARGS(3, SOL_SOCKET | 1ULL << 32, 77)),
				 SAYS(ENOPROTOOPT));
		assert_int_equal(ask(h, SYS_getsockopt, ARGS(3, IPPROTO_TCP, TCP_ZEROCOPY_RECEIVE)),
				 SAYS(ENOPROTOOPT));
	}
}

/* Ways into the kernel that no program in Python needs. */
static void
needless_surface_is_refused(void **state)
{
	static const struct { long call; int flags; } sends[] = {
		{ SYS_sendto, 3 }, { SYS_recvfrom, 3 }, { SYS_sendmsg, 2 },
		{ SYS_recvmsg, 2 }, { SYS_sendmmsg, 3 }, { SYS_recvmmsg, 3 },
	};
	static const long absent[] = {
		SYS_splice, SYS_mlock2, SYS_shmget, SYS_shmat, SYS_shmdt, SYS_shmctl, SYS_msgget,
		SYS_msgsnd, SYS_msgrcv, SYS_msgctl, SYS_semget, SYS_semop, SYS_semtimedop,
		SYS_semctl,
	};

	(void)state;
	for (size_t i = 0; i < sizeof(sends) / sizeof(sends[0]); i++) {
		uint64_t args[6] = { 0 };

		args[sends[i].flags] = MSG_NOSIGNAL | MSG_DONTWAIT;
		assert_int_equal(ask(BEST, sends[i].call, args), SAYS_ALLOW);
		for (int bit = 1; bit < 64; bit++) {
			args[sends[i].flags] = MSG_OOB | 1ULL << bit;
			assert_int_equal(ask(BEST, sends[i].call, args), SAYS(EOPNOTSUPP));
		}
	}
	for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++)
		for (int h = 0; h < HOSTS; h++)
			assert_int_equal(ask(h, absent[i], ARGS(0)), SAYS(ENOSYS));
	for (uint64_t clock = 0; clock < 64; clock++) {
		bool plain = clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC ||
			     clock == CLOCK_BOOTTIME;

		assert_int_equal(ask(BEST, SYS_timer_create, ARGS(clock)),
				 plain ? SAYS_ALLOW : SAYS(EINVAL));
	}
	/* The clock of another process. */
	assert_int_equal(ask(BEST, SYS_timer_create, ARGS((uint64_t)-14)), SAYS(EINVAL));
	for (uint64_t command = 0; command < 1024; command++)
		assert_int_equal(ask(BEST, SYS_membarrier, ARGS(command)),
				 command == 0 || command == 8 || command == 16 ? SAYS_ALLOW
									       : SAYS(EINVAL));
	for (uint64_t operation = 0; operation < 1024; operation++) {
		uint64_t command = operation & ~(uint64_t)(128 | 256);
		bool used = command <= 13 && command != 2 && command != 11 && command != 12;

		assert_int_equal(ask(BEST, SYS_futex, ARGS(0, operation)),
				 used ? SAYS_ALLOW : SAYS(ENOSYS));
	}
	assert_int_equal(ask(BEST, SYS_get_mempolicy, ARGS(0)), SAYS(EPERM));
	assert_int_equal(ask(BEST, SYS_ioprio_get, ARGS(1, 0)), SAYS(EPERM));
#ifdef SYS_arch_prctl
	for (uint64_t code = 0x1000; code < 0x6000; code++)
		assert_int_equal(ask(BEST, SYS_arch_prctl, ARGS(code)),
				 code >= 0x1002 && code <= 0x1004 ? SAYS_ALLOW : SAYS(EINVAL));
#endif
}

/* A script's own processes are its own; init, number 1 there, is not. The kernel looks at 32 bits
 * of a process id. */
static void
init_is_left_alone(void **state)
{
	static const uint64_t inits[] = { 1, 1 | 1ULL << 32, 1 | 1ULL << 63 };
	static const uint64_t own[] = { 0, 2, 3, 4194303, 1ULL << 32, 1ULL << 32 | 2 };

	(void)state;
	for (size_t i = 0; i < sizeof(inits) / sizeof(inits[0]); i++) {
		uint64_t pid = inits[i];

		assert_int_equal(ask(BEST, SYS_prlimit64, ARGS(pid, 0, 1, 0)), SAYS(EPERM));
		assert_int_equal(ask(BEST, SYS_sched_setaffinity, ARGS(pid, 8, 1)), SAYS(EPERM));
		assert_int_equal(ask(BEST, SYS_sched_setparam, ARGS(pid, 1)), SAYS(EPERM));
		assert_int_equal(ask(BEST, SYS_sched_setscheduler, ARGS(pid, SCHED_OTHER, 1)),
				 SAYS(EPERM));
		assert_int_equal(ask(BEST, SYS_setpriority, ARGS(PRIO_PROCESS, pid, 19)),
				 SAYS(EPERM));
	}
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		uint64_t pid = own[i];

		assert_int_equal(ask(BEST, SYS_prlimit64, ARGS(pid, 0, 1, 0)), SAYS_ALLOW);
		assert_int_equal(ask(BEST, SYS_sched_setaffinity, ARGS(pid, 8, 1)), SAYS_ALLOW);
		assert_int_equal(ask(BEST, SYS_sched_setparam, ARGS(pid, 1)), SAYS_ALLOW);
		assert_int_equal(ask(BEST, SYS_sched_setscheduler, ARGS(pid, SCHED_BATCH, 1)),
				 SAYS_ALLOW);
		assert_int_equal(ask(BEST, SYS_sched_setscheduler, ARGS(pid, SCHED_RR, 1)),
				 SAYS(EPERM));
		assert_int_equal(ask(BEST, SYS_setpriority, ARGS(PRIO_PROCESS, pid, 19)),
				 SAYS_ALLOW);
	}
	assert_int_equal(ask(BEST, SYS_setpriority, ARGS(PRIO_PGRP, 0, 19)), SAYS(EPERM));
	assert_int_equal(ask(BEST, SYS_setpriority, ARGS(PRIO_USER, 0, 19)), SAYS(EPERM));
}

/* With any other limit of core files than 1 the kernel starts the host's core handler. */
static void
the_limit_of_cores_stays(void **state)
{
	(void)state;
	for (uint64_t what = 0; what < RLIM_NLIMITS; what++) {
		bool core = what == RLIMIT_CORE;

		assert_int_equal(ask(BEST, SYS_setrlimit, ARGS(what, 8)),
				 core ? SAYS(0) : SAYS_ALLOW);
		assert_int_equal(ask(BEST, SYS_prlimit64, ARGS(0, what, 8, 0)),
				 core ? SAYS(0) : SAYS_ALLOW);
		assert_int_equal(ask(BEST, SYS_prlimit64, ARGS(7, what, 8, 8)),
				 core ? SAYS(EPERM) : SAYS_ALLOW);
		assert_int_equal(ask(BEST, SYS_prlimit64, ARGS(0, what, 0, 8)), SAYS_ALLOW);
		for (int bit = 32; bit < 64; bit++) {
			uint64_t high = what | 1ULL << bit;

			assert_int_equal(ask(BEST, SYS_setrlimit, ARGS(high, 8)), SAYS(ENOSYS));
			assert_int_equal(ask(BEST, SYS_prlimit64, ARGS(0, high, 8, 0)),
					 SAYS(ENOSYS));
		}
	}
}

/* The service's pipes are the uid's that all workers' output goes through. */
static void
pipes_do_not_grow(void **state)
{
	(void)state;
	for (int h = 0; h < HOSTS; h++) {
		const struct seccomp_host host = HOST(h);

		assert_int_equal(ask(h, SYS_fcntl, ARGS(1, F_SETPIPE_SZ, 65536)),
				 host.own_uid ? SAYS_ALLOW : SAYS(EPERM));
		assert_int_equal(ask(h, SYS_fcntl, ARGS(1, F_SETPIPE_SZ, 65537)), SAYS(EPERM));
		assert_int_equal(ask(h, SYS_fcntl, ARGS(1, F_SETPIPE_SZ, 1 << 20 | 1ULL << 40)),
				 SAYS(EPERM));
		assert_int_equal(ask(h, SYS_fcntl, ARGS(1, F_GETPIPE_SZ)), SAYS_ALLOW);
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
				assert_int_equal(execute_both(BEST, &data),
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

	if (setsid() < 0 || enter_both(BEST) < 0)
		_exit(2);
	for (size_t i = 0; i < n; i++) {
		const struct seccomp_host host = HOST(BEST);
		int nr = seccomp_syscall_resolve_name(rows[i].call), expected = EPERM;
		uint64_t args[6];
		long result;

		if (nr < 0 || !seccomp_is_for(&rows[i], &host) ||
		    rows[i].verdict == SECCOMP_ALLOW ||
		    rows[i].verdict == SECCOMP_PRETEND)
			continue;
		if (rows[i].verdict == SECCOMP_ENOSYS)
			expected = ENOSYS;
		if (rows[i].verdict == SECCOMP_EINVAL)
			expected = EINVAL;
		if (rows[i].verdict == SECCOMP_ENOPROTOOPT)
			expected = ENOPROTOOPT;
		if (rows[i].verdict == SECCOMP_EOPNOTSUPP)
			expected = EOPNOTSUPP;
		memset(args, 0xff, sizeof(args));
		make_match(&rows[i], args);
		errno = 0;
		result = syscall(nr, args[0], args[1], args[2], args[3], args[4], args[5]);
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

/* Descriptors that no file system could sync are told, though the filter looks at none. */
static void
syncing_is_pretended_for_files_alone(void **state)
{
	pid_t pid = fork();
	int status;

	(void)state;
	assert_true(pid >= 0);
	if (pid == 0) {
		int file = memfd_create("file", 0), dir = open("/", O_RDONLY | O_DIRECTORY), ends[2];

		if (file < 0 || dir < 0 || pipe(ends) < 0 ||
		    enter_both(WORST) < 0)
			_exit(2);
		if (syscall(SYS_fsync, -1) != 0 || syscall(SYS_fdatasync, -1) != 0)
			_exit(3);
		if (fsync(file) < 0 || fdatasync(file) < 0 || fsync(dir) < 0)
			_exit(4);
		if (fsync(-1) != -1 || errno != EBADF || fdatasync(-1) != -1 || errno != EBADF)
			_exit(5);
		if (fsync(ends[1]) != -1 || errno != EINVAL)
			_exit(6);
		_exit(0);
	}
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

		if (enter_both(BEST) < 0)
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
		cmocka_unit_test(a_child_compiles_the_same),
		cmocka_unit_test(a_lost_child_is_an_error),
		cmocka_unit_test(a_zygote_has_scripts_calls_and_the_walls),
		cmocka_unit_test(conditions_are_exact),
		cmocka_unit_test(shared_anonymous_memory_needs_a_controller),
		cmocka_unit_test(no_call_maps_the_hosts_huge_pages),
		cmocka_unit_test(the_hosts_disk_is_left_alone),
		cmocka_unit_test(socket_options_are_the_listed_ones),
		cmocka_unit_test(init_is_left_alone),
		cmocka_unit_test(needless_surface_is_refused),
		cmocka_unit_test(pipes_do_not_grow),
		cmocka_unit_test(the_limit_of_cores_stays),
		cmocka_unit_test(what_no_row_names_does_not_exist),
		cmocka_unit_test(other_abis_do_not_exist),
		cmocka_unit_test(clone_makes_no_namespace),
		cmocka_unit_test(sockets_are_the_listed_ones),
		cmocka_unit_test(the_kernel_refuses_them),
		cmocka_unit_test(syncing_is_pretended_for_files_alone),
		cmocka_unit_test(the_filter_cannot_be_left_or_replaced),
	};

	return cmocka_run_group_tests(tests, compile_all, free_all);
}
