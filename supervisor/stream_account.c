/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the accounts of connected uids. */
#include "supervisor/stream_account.h"

#include <assert.h>
#include <errno.h>

#include "base/xalloc.h"

int
stream_account_open(struct stream_accounts *accounts, uid_t uid, size_t streams_max,
		     size_t per_uid_max, struct stream_account **account_r)
{
	struct stream_account *account = accounts->first;

	if (accounts->streams >= streams_max)
		return -EUSERS;
	while (account && account->uid != uid)
		account = account->next;
	if (account && account->streams >= per_uid_max)
		return -EDQUOT;
	if (!account) {
		account = xcalloc(1, sizeof(*account));
		account->uid = uid;
		account->next = accounts->first;
		accounts->first = account;
	}
	account->streams++;
	accounts->streams++;
	*account_r = account;
	return 0;
}

void
stream_account_close(struct stream_accounts *accounts,
		      struct stream_account *account)
{
	struct stream_account **link = &accounts->first;

	assert(account->streams > 0 && accounts->streams > 0);
	accounts->streams--;
	if (--account->streams)
		return;
	assert(account->buffered_bytes == 0);
	while (*link != account)
		link = &(*link)->next;
	*link = account->next;
	free(account);
}
