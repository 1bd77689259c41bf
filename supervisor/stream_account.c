/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the accounts of connected uids. */
#include "supervisor/stream_account.h"

#include <assert.h>
#include <errno.h>
#include <search.h>

#include "base/xalloc.h"
#include "base/fair.h"

static int
compare_uids(const void *a, const void *b)
{
	const struct stream_account *one = a, *other = b;

	return one->uid < other->uid ? -1 : one->uid > other->uid;
}

static struct stream_account *
find_account(const struct stream_accounts *accounts, uid_t uid)
{
	const struct stream_account sought = { .uid = uid };
	struct stream_account *const *found = tfind(&sought, &accounts->tree, compare_uids);

	return found ? *found : NULL;
}

static size_t
open_streams(const struct stream_account *account)
{
	return account ? account->streams - account->closing : 0;
}

int
stream_account_open(struct stream_accounts *accounts, uid_t uid, size_t streams_max,
		     size_t per_uid_max, struct stream_account **account_r)
{
	struct stream_account *account = find_account(accounts, uid);
	int r = fair_take(streams_max, accounts->streams - accounts->closing, open_streams(account),
			  per_uid_max);

	if (r < 0)
		return r;
	if (!account) {
		account = xcalloc(1, sizeof(*account));
		account->uid = uid;
		xalloc_check(tsearch(account, &accounts->tree, compare_uids));
		LIST_INSERT_HEAD(&accounts->list, account, link);
	}
	account->streams++;
	accounts->streams++;
	*account_r = account;
	return 0;
}

const struct stream_account *
stream_account_largest(const struct stream_accounts *accounts, uid_t uid)
{
	const struct stream_account *largest = LIST_FIRST(&accounts->list), *one;

	LIST_FOREACH(one, &accounts->list, link)
		if (open_streams(one) > open_streams(largest))
			largest = one;
	return open_streams(largest) > open_streams(find_account(accounts, uid)) + 1 ? largest
										     : NULL;
}

void
stream_account_charge(struct stream_accounts *accounts, struct stream_account *account,
		      size_t added, size_t removed)
{
	account->buffered_bytes += added - removed;
	accounts->buffered_bytes += added - removed;
}

const struct stream_account *
stream_account_fullest(const struct stream_accounts *accounts)
{
	const struct stream_account *fullest = LIST_FIRST(&accounts->list), *one;

	LIST_FOREACH(one, &accounts->list, link)
		if (one->buffered_bytes > fullest->buffered_bytes)
			fullest = one;
	return fullest;
}

void
stream_account_closes(struct stream_accounts *accounts, struct stream_account *account)
{
	account->closing++;
	accounts->closing++;
}

void
stream_account_close(struct stream_accounts *accounts,
		      struct stream_account *account)
{
	assert(account->closing > 0 && accounts->closing > 0);
	account->closing--;
	accounts->closing--;
	accounts->streams--;
	if (--account->streams)
		return;
	assert(account->buffered_bytes == 0);
	tdelete(account, &accounts->tree, compare_uids);
	LIST_REMOVE(account, link);
	free(account);
}
