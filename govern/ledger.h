/* SPDX-License-Identifier: Apache-2.0 */
/* The calls that have begun and that must not begin again within a time: those with an idempotency
 * key. They are known by digests. With a file they are known over a restart, too: a call is in the
 * file before it begins.
 */
#ifndef GOVERN_LEDGER_H
#define GOVERN_LEDGER_H

#include <stddef.h>
#include <stdint.h>

struct ledger;
struct why;

#define LEDGER_DIGEST 32
#define LEDGER_CALLS_MAX 65536		/* of all tenants; each has a share (base/fair.h) */

struct ledger_call {
	unsigned char id[LEDGER_DIGEST];	/* of the tenant, the tool and the key */
	unsigned char call[LEDGER_DIGEST];	/* of the whole call */
	unsigned char owner[LEDGER_DIGEST];	/* of the tenant */
};

struct ledger_entry {
	struct ledger_entry *next;	/* with the same hash, or free */
	struct ledger_call is;
	int64_t until;			/* of clock_boot_s(); INT64_MAX: it runs */
	void *user;			/* of the caller; NULL: after a restart */
	uint32_t place;			/* in the file */
};

/* path NULL: calls are known to this process alone. The file is made if it is not there; what is
 * not readable in it counts as unknown. seconds: how long a call is known that a restart has cut.
 * 0, or -errno with why_r. */
int ledger_new(const char *path, uint32_t seconds, struct ledger **ledger_r, struct why *why_r);
void ledger_free(struct ledger *ledger);	/* NULL is fine */

/* The call with this id, whose time is not over. NULL: there is none. Valid until ledger_drop, or
 * until its time is over. */
struct ledger_entry *ledger_find(struct ledger *ledger, const unsigned char id[LEDGER_DIGEST]);

/* Notes that a call begins, which must not be known yet. most: of one tenant. 0. Or -EDQUOT or
 * -EUSERS: the tenant, or all together, have begun too many calls; or another -errno: the file
 * cannot be written. */
int ledger_begin(struct ledger *ledger, const struct ledger_call *call, uint32_t most,
		 struct ledger_entry **entry_r);

/* The call has ended: it is known for so many seconds more. */
void ledger_end(struct ledger *ledger, struct ledger_entry *entry, uint32_t seconds);

/* The call was not run: it may begin again. */
void ledger_drop(struct ledger *ledger, struct ledger_entry *entry);

#endif
