/* The number of sessions of each user, and the bytes that wait in them: the counting part of
 * supervisor/session.h, without I/O.
 */
#ifndef SUPERVISOR_SESSION_ACCOUNT_H
#define SUPERVISOR_SESSION_ACCOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* What the sessions of one uid hold together. */
struct session_account {
	struct session_account *next;
	uid_t uid;
	size_t sessions;
	size_t admitted;		/* of them, that may say something */
	size_t buffered_bytes;
};

struct session_accounts {
	struct session_account *first;
	size_t sessions;		/* of all uids */
};

/* Counts one session more. 0, -EUSERS or -EDQUOT as session_open says. */
int session_account_open(struct session_accounts *accounts, uid_t uid, size_t sessions_max,
			 size_t per_uid_max, struct session_account **account_r);

/* One session less; forgets the account with its last. */
void session_account_close(struct session_accounts *accounts,
			   struct session_account *account);

#endif
