/* SPDX-License-Identifier: Apache-2.0 */
/* The syscall filter: rows of call, verdict, condition and reason, compiled to BPF
 * once.
 *
 * What no row allows is answered ENOSYS, as by a kernel that does not have the call, so
 * that libraries fall back. Calls of the machine's other ABIs get the same.
 */
#ifndef WORKER_SECCOMP_H
#define WORKER_SECCOMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/filter.h>

#include <seccomp.h>

#define SECCOMP_COMPARISONS 3	/* in one row, each of another argument */

enum seccomp_verdict {
	SECCOMP_ALLOW,
	SECCOMP_EPERM,
	SECCOMP_ENOSYS,
	SECCOMP_EINVAL,		/* as where there is no such thing: a flag, an advice */
	SECCOMP_ENOPROTOOPT,	/* as where there is no such option of sockets */
	SECCOMP_PRETEND,	/* answers 0 and does nothing */
};

/* What the filter is for; a row is of both kinds or of one. */
struct seccomp_host {
	bool memory_counted;	/* a controller counts all kinds of memory */
	bool own_uid;		/* no two workers share a uid of the host */
	bool terminals;		/* scripts can make pseudo-terminals */
};

enum seccomp_where {
	EVERYWHERE,
	WHERE_COUNTED,		/* memory_counted */
	WHERE_NOT_COUNTED,
	WHERE_OWN_UID,		/* own_uid */
	WHERE_SHARED_UID,
	WHERE_TERMINALS,	/* terminals */
	WHERE_NO_TERMINALS,
};

struct seccomp_row {
	const char *call;
	enum seccomp_verdict verdict;
	enum seccomp_where where;
	/* All must hold; after the last one op is 0. They are of the whole 64 bits of an argument,
	 * except where a mask is given. */
	struct scmp_arg_cmp when[SECCOMP_COMPARISONS + 1];
	bool some_machines;	/* the call exists on some architectures only */
	const char *reason;
};

const struct seccomp_row *seccomp_rows(size_t *n_r);

/* Whether a row is part of the filter for a host. */
bool seccomp_is_for(const struct seccomp_row *row, const struct seccomp_host *host);

/* Compiles a zygote's filter: the rows, except that the calls that clone a worker and put up its
 * walls are allowed whatever rows say of them. Workers inherit it. *program_r's instructions are
 * malloc'ed and the caller's; on failure it is untouched and *what_r names the row (static). 0 or
 * -errno. */
int seccomp_compile_for_zygote(const struct seccomp_host *host, struct sock_fprog *program_r,
			       const char **what_r);

/* Compiles what a worker enters in addition, in the same way: the rows of those calls alone. It
 * allows all other calls, because both filters have to allow a call; so a process has no walls with
 * this one alone. One filter for both would be compiled to machine code for each worker, and be
 * executed twice for each call. */
int seccomp_compile(const struct seccomp_host *host, struct sock_fprog *program_r,
		    const char **what_r);

/* Puts the calling thread under the filter for good; no_new_privs must be set. 0 or
 * -errno. */
int seccomp_enter(const struct sock_fprog *program);

#endif
