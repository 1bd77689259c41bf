/* Runs in: the supervisor.   Owns: the accounts of connected uids. */
#include "supervisor/session_account.h"

#include <assert.h>
#include <errno.h>

#include "base/xalloc.h"

int
session_account_open(struct session_accounts *accounts, uid_t uid, size_t sessions_max,
		     size_t per_uid_max, struct session_account **account_r)
{
	struct session_account *account = accounts->first;

	if (accounts->sessions >= sessions_max)
		return -EUSERS;
	while (account && account->uid != uid)
		account = account->next;
	if (account && account->sessions >= per_uid_max)
		return -EDQUOT;
	if (!account) {
		account = xcalloc(1, sizeof(*account));
		account->uid = uid;
		account->next = accounts->first;
		accounts->first = account;
	}
	account->sessions++;
	accounts->sessions++;
	*account_r = account;
	return 0;
}

void
session_account_close(struct session_accounts *accounts,
		      struct session_account *account)
{
	struct session_account **link = &accounts->first;

	assert(account->sessions > 0 && accounts->sessions > 0);
	accounts->sessions--;
	if (--account->sessions)
		return;
	assert(account->buffered_bytes == 0);
	while (*link != account)
		link = &(*link)->next;
	*link = account->next;
	free(account);
}
