/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the streams of each uid, and the bytes that wait in them, for supervisor/stream.h. No I/O.
 */
#ifndef SUPERVISOR_STREAM_ACCOUNT_H
#define SUPERVISOR_STREAM_ACCOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>
#include <sys/types.h>

/* The sums for the streams of one uid. */
struct stream_account {
	uid_t uid;
	LIST_ENTRY(stream_account) link;
	size_t streams;
	size_t closing;			/* of these: closed, and not freed yet */
	size_t admitted;		/* streams whose user is known, and that may make calls */
	size_t buffered_bytes;
};

struct stream_accounts {
	void *tree;			/* by uid */
	LIST_HEAD(, stream_account) list;
	size_t streams;		/* of all uids */
	size_t closing;
	size_t buffered_bytes;
};

/* Counts bytes that wait, or that wait no more. */
void stream_account_charge(struct stream_accounts *accounts, struct stream_account *account,
			   size_t added, size_t removed);

/* The account with the most waiting bytes; NULL: there is no account. */
const struct stream_account *stream_account_fullest(const struct stream_accounts *accounts);

/* Counts a new stream, if the uid has not got its share (base/fair.h). 0, or -EUSERS or -EDQUOT
 * as in stream_open. */
int stream_account_open(struct stream_accounts *accounts, uid_t uid, size_t streams_max,
			 size_t per_uid_max, struct stream_account **account_r);

/* The account with the most streams, if it has at least two more than uid has; otherwise NULL. */
const struct stream_account *stream_account_largest(const struct stream_accounts *accounts,
						     uid_t uid);

/* A stream of the account is closed, and its place is free; stream_account_close follows. */
void stream_account_closes(struct stream_accounts *accounts, struct stream_account *account);

/* Counts a freed stream. The last one frees the account. */
void stream_account_close(struct stream_accounts *accounts,
			   struct stream_account *account);

#endif
