/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that are forked from the supervisor and then run on their own: the launcher, the
 * directory helper, the usage helper and the file helper. Each has one socket to the supervisor.
 *
 * They are forked at start-up, before a client's first byte is read, so they hold no data of a
 * client. The supervisor's fence (fence.h) allows no fork later, so a lost helper cannot be
 * replaced.
 */
#ifndef HOST_HELPER_H
#define HOST_HELPER_H

#include <sys/types.h>

/* One side's view of the other. */
struct helper {
	pid_t pid;		/* of the other side */
	int pidfd;		/* of the helper; -1 in the helper itself */
	int socket;		/* to the other side; -1: none */
};

/* Forks a helper. Returns 1 in the helper, whose socket blocks; there all signals are blocked until
 * helper_settle. Returns 0 in the supervisor, whose socket does not block. -errno: there is no
 * helper. After 0 and -errno the caller has to call helper_end. */
int helper_fork(struct helper *helper);

/* Kills the helper, waits for its end and closes what belongs to it. */
void helper_end(struct helper *helper);

/* ---- in the helper ---- */

/* Makes the fork a process of its own: default signals (SIGPIPE and SIGXFSZ ignored), its own
 * session and name, not dumpable, no core, killed when the supervisor ends. Its standard input is
 * /dev/null and its standard output is standard error, because with --stdio these descriptors
 * belong to a client. 0 or -errno. */
int helper_settle(const char *name, pid_t supervisor);

/* Closes every descriptor but the first three and the socket, which becomes number 3. 0 or
 * -errno. */
int helper_keep_only(int *socket);

/* Ends the helper. error: the result of its loop. -EPIPE and -ECONNRESET are the normal end: the
 * supervisor has ended, which closes its socket. Any other error is logged; event is the name of
 * the log line. */
_Noreturn void helper_exit(const char *event, int error);

#endif
