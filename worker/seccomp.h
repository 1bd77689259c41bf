/* SPDX-License-Identifier: Apache-2.0 */
/* The filter of system calls: a table of rows with call, verdict, condition and reason. The rows
 * are compiled to BPF once.
 *
 * A call that no row allows gets ENOSYS, as from a kernel that does not have it, so that libraries
 * use a fallback. Calls of the machine's other ABIs get ENOSYS, too.
 */
#ifndef WORKER_SECCOMP_H
#define WORKER_SECCOMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/filter.h>

#include <seccomp.h>

#define SECCOMP_COMPARISONS 4	/* in one row, each for a different argument */

enum seccomp_verdict {
	SECCOMP_ALLOW,
	SECCOMP_EPERM,
	SECCOMP_ENOSYS,
	SECCOMP_EINVAL,		/* as if a flag or an advice did not exist */
	SECCOMP_ENOPROTOOPT,	/* as if a socket option did not exist */
	SECCOMP_EOPNOTSUPP,	/* as if a file system could not do it */
	SECCOMP_PRETEND,	/* answers 0 and does nothing */
};

/* The properties of the host that a filter depends on. A row is for all hosts, or for those that
 * have or do not have one of them (enum seccomp_where). */
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
	/* The row applies if all comparisons are true; after the last one op is 0. They compare all
	 * 64 bits of an argument, unless there is a mask. */
	struct scmp_arg_cmp when[SECCOMP_COMPARISONS + 1];
	bool some_machines;	/* the call exists on some architectures only */
	const char *reason;
};

const struct seccomp_row *seccomp_rows(size_t *n_r);

/* Is a row part of the filter for a host? */
bool seccomp_is_for(const struct seccomp_row *row, const struct seccomp_host *host);

/* Compiles a zygote's filter: the rows, except that calls which clone a worker and build its walls
 * are always allowed. Workers inherit this filter. The instructions of *program_r are malloc'ed,
 * and belong to the caller. 0; or -errno: *program_r is unchanged, and *what_r names the row
 * (static). */
int seccomp_compile_for_zygote(const struct seccomp_host *host, struct sock_fprog *program_r,
			       const char **what_r);

/* Compiles the additional filter of a worker in the same way: only the rows of the calls that the
 * zygote's filter always allows. All other calls are allowed, because a call has to pass both
 * filters; so this filter alone is no wall. A second filter with all rows would be compiled to
 * machine code for each worker, and would check each call a second time. */
int seccomp_compile(const struct seccomp_host *host, struct sock_fprog *program_r,
		    const char **what_r);

/* Compiles both filters in a child process, while the caller builds the root. So the first answer
 * comes milliseconds earlier, and libseccomp's memory is not left in every worker. seccomp_end()
 * must follow. 0 or -errno. */
int seccomp_begin(const struct seccomp_host *host);

/* Waits for the child. The instructions are malloc'ed; nothing stays shared. 0; or -errno with
 * *what_r, which names the row (static). */
int seccomp_end(struct sock_fprog *worker_r, struct sock_fprog *zygote_r, const char **what_r);

/* Loads the filter permanently for the calling thread; no_new_privs must be set. 0 or -errno. */
int seccomp_enter(const struct sock_fprog *program);

#endif
