/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the table of calls that must not begin again, and its file.
 * Reads:   the service's own file.
 * The file has one record for each entry, at the entry's own place, so nothing is ever rewritten as
 * a whole. Nobody waits for the disk: a restart of the service finds every call, and a loss of
 * power may lose those of the last seconds. */
#include "govern/ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fair.h"
#include "base/log.h"
#include "base/ownerfile.h"
#include "base/why.h"
#include "base/xalloc.h"

#define BUCKETS 8192		/* a power of two */
#define GROWS 1024		/* places */
#define SWEPT 8			/* entries that a new call looks at: is their time over? */
#define MAGIC UINT64_C(0x6c65646765723031)

enum { FREE, BEGUN, ENDED };

/* In the file. The size divides that of a sector, so that a record is never written in part. */
struct ledger_record {
	uint64_t magic, state;
	struct ledger_call is;
	int64_t until;			/* seconds since the epoch, if it has ended */
	uint64_t unused;
};

_Static_assert(sizeof(struct ledger_record) == 128, "it divides 512");

struct ledger_owner {
	struct ledger_owner *next;
	unsigned char owner[LEDGER_DIGEST];
	size_t calls;
};

struct ledger {
	struct ledger_entry **place;	/* by place in the file; NULL: free */
	uint32_t *free;			/* the free places, of which the last one is used first */
	size_t n_places, n_free, n_calls, swept;
	int64_t swept_all;		/* when, of clock_boot_s() */
	struct ledger_entry *bucket[BUCKETS];
	struct ledger_owner *owners[BUCKETS];
	char *path;			/* NULL: no file */
	int fd;
};

static size_t
ledger_bucket(const unsigned char digest[LEDGER_DIGEST])
{
	size_t n;

	memcpy(&n, digest, sizeof(n));
	return n % BUCKETS;
}

/* ---- owners ---- */

static struct ledger_owner **
ledger_owner_of(struct ledger *ledger, const unsigned char digest[LEDGER_DIGEST])
{
	struct ledger_owner **at = &ledger->owners[ledger_bucket(digest)];

	while (*at && memcmp((*at)->owner, digest, LEDGER_DIGEST) != 0)
		at = &(*at)->next;
	return at;
}

static size_t
ledger_calls_of(struct ledger *ledger, const unsigned char digest[LEDGER_DIGEST])
{
	const struct ledger_owner *owner = *ledger_owner_of(ledger, digest);

	return owner ? owner->calls : 0;
}

static void
ledger_count(struct ledger *ledger, const unsigned char digest[LEDGER_DIGEST], bool more)
{
	struct ledger_owner **at = ledger_owner_of(ledger, digest), *owner = *at;

	ledger->n_calls += more ? 1 : SIZE_MAX;
	if (!owner) {
		owner = *at = xcalloc(1, sizeof(*owner));
		memcpy(owner->owner, digest, LEDGER_DIGEST);
	}
	owner->calls += more ? 1 : SIZE_MAX;
	if (owner->calls > 0)
		return;
	*at = owner->next;
	free(owner);
}

/* ---- the file ---- */

static int
ledger_write(const struct ledger *ledger, size_t place, uint64_t state)
{
	const struct ledger_entry *entry = ledger->place[place];
	struct ledger_record record = { .magic = MAGIC, .state = state };
	ssize_t n;

	if (ledger->fd < 0)
		return 0;
	if (state != FREE)
		record.is = entry->is;
	if (state == ENDED)
		record.until = time(NULL) + (entry->until - clock_boot_s());
	do
		n = pwrite(ledger->fd, &record, sizeof(record), (off_t)(place * sizeof(record)));
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof(record) ? 0 : n < 0 ? -errno : -EIO;
}

static int
ledger_open(struct ledger *ledger)
{
	int fd = open(ledger->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);

	if (fd < 0)
		return -errno;
	if (ledger->fd >= 0)
		close(ledger->fd);
	ledger->fd = fd;
	return 0;
}

/* If somebody else has removed or replaced the file, makes it again: all of it is in memory. */
static int
ledger_look(struct ledger *ledger)
{
	int r;

	if (ledger->fd < 0 || samefile(ledger->fd, ledger->path))
		return 0;
	r = ledger_open(ledger);
	for (size_t i = 0; r == 0 && i < ledger->n_places; i++)
		if (ledger->place[i])
			r = ledger_write(ledger, i, ledger->place[i]->until == INT64_MAX ? BEGUN
											 : ENDED);
	log_line(LOG_ERR, "calls-file-replaced", "err=%s", r < 0 ? strerrorname_np(-r) : "-");
	return r;
}

/* ---- entries ---- */

static void
ledger_put(struct ledger *ledger, size_t place, const struct ledger_call *call, int64_t until)
{
	struct ledger_entry *entry = xcalloc(1, sizeof(*entry));
	struct ledger_entry **head = &ledger->bucket[ledger_bucket(call->id)];

	entry->is = *call;
	entry->until = until;
	entry->place = (uint32_t)place;
	entry->next = *head;
	*head = entry;
	ledger->place[place] = entry;
	ledger_count(ledger, call->owner, true);
}

static void
ledger_take_out(struct ledger *ledger, size_t place)
{
	struct ledger_entry *entry = ledger->place[place];
	struct ledger_entry **at = &ledger->bucket[ledger_bucket(entry->is.id)];

	while (*at != entry)
		at = &(*at)->next;
	*at = entry->next;
	ledger_count(ledger, entry->is.owner, false);
	/* A record that stays is over in its time. */
	(void)ledger_write(ledger, place, FREE);
	ledger->place[place] = NULL;
	ledger->free[ledger->n_free++] = (uint32_t)place;
	free(entry);
}

/* Frees entries whose time is over, of some places or of all. */
static void
ledger_sweep(struct ledger *ledger, size_t most, int64_t now)
{
	for (size_t i = 0; i < most && i < ledger->n_places; i++) {
		size_t place = ledger->swept++ % ledger->n_places;

		if (ledger->place[place] && ledger->place[place]->until <= now)
			ledger_take_out(ledger, place);
	}
}

/* Makes n places; those that are free are listed by ledger_list_free. */
static void
ledger_grow(struct ledger *ledger, size_t n)
{
	ledger->place = xalloc_check(reallocarray(ledger->place, n, sizeof(*ledger->place)));
	ledger->free = xalloc_check(reallocarray(ledger->free, n, sizeof(*ledger->free)));
	memset(ledger->place + ledger->n_places, 0,
	       (n - ledger->n_places) * sizeof(*ledger->place));
	ledger->n_places = n;
}

static void
ledger_list_free(struct ledger *ledger)
{
	ledger->n_free = 0;
	for (size_t i = ledger->n_places; i-- > 0;)
		if (!ledger->place[i])
			ledger->free[ledger->n_free++] = (uint32_t)i;
}

/* ---- from the beginning to the end ---- */

static void
ledger_load_one(struct ledger *ledger, size_t place, const struct ledger_record *record,
		uint32_t seconds)
{
	int64_t left = record->state == BEGUN ? seconds : record->until - time(NULL);

	if (record->magic != MAGIC || (record->state != BEGUN && record->state != ENDED) ||
	    left <= 0 || place >= LEDGER_CALLS_MAX || ledger_find(ledger, record->is.id))
		return;
	if (place >= ledger->n_places)
		ledger_grow(ledger, (place + GROWS) / GROWS * GROWS);
	ledger_put(ledger, place, &record->is,
		   clock_boot_s() + (left < seconds ? left : seconds));
	if (record->state == BEGUN)
		(void)ledger_write(ledger, place, ENDED);
}

static int
ledger_load(struct ledger *ledger, uint32_t seconds)
{
	struct ledger_record record;
	ssize_t n = sizeof(record);
	int r = ledger_open(ledger);

	for (size_t place = 0; r == 0 && n == (ssize_t)sizeof(record); place++) {
		n = pread(ledger->fd, &record, sizeof(record), (off_t)(place * sizeof(record)));
		if (n < 0)
			r = -errno;
		else if (n == (ssize_t)sizeof(record))
			ledger_load_one(ledger, place, &record, seconds);
	}
	ledger_list_free(ledger);
	return r;
}

int
ledger_new(const char *path, uint32_t seconds, struct ledger **ledger_r, struct why *why_r)
{
	struct ledger *ledger = xcalloc(1, sizeof(*ledger));
	int r = 0;

	ledger->fd = -1;
	if (path) {
		ledger->path = xstrdup(path);
		r = ledger_load(ledger, seconds);
	}
	if (r < 0) {
		ledger_free(ledger);
		return why_say(why_r, r, "repeat_file", "[mcp] repeat_file = %.300s: %s", path,
			       strerror(-r));
	}
	*ledger_r = ledger;
	return 0;
}

void
ledger_free(struct ledger *ledger)
{
	if (!ledger)
		return;
	for (size_t i = 0; i < ledger->n_places; i++)
		free(ledger->place[i]);
	for (size_t i = 0; i < BUCKETS; i++)
		while (ledger->owners[i]) {
			struct ledger_owner *owner = ledger->owners[i];

			ledger->owners[i] = owner->next;
			free(owner);
		}
	if (ledger->fd >= 0)
		close(ledger->fd);
	free(ledger->place);
	free(ledger->free);
	free(ledger->path);
	free(ledger);
}

struct ledger_entry *
ledger_find(struct ledger *ledger, const unsigned char id[LEDGER_DIGEST])
{
	struct ledger_entry *entry = ledger->bucket[ledger_bucket(id)];

	while (entry && memcmp(entry->is.id, id, LEDGER_DIGEST) != 0)
		entry = entry->next;
	return entry && entry->until > clock_boot_s() ? entry : NULL;
}

int
ledger_begin(struct ledger *ledger, const struct ledger_call *call, uint32_t most,
	     struct ledger_entry **entry_r)
{
	int64_t now = clock_boot_s();
	size_t own = ledger_calls_of(ledger, call->owner), place;
	int r = fair_take(LEDGER_CALLS_MAX, ledger->n_calls, own, most);

	if (r < 0 && ledger->swept_all != now) {
		ledger->swept_all = now;
		ledger_sweep(ledger, SIZE_MAX, now);
		r = fair_take(LEDGER_CALLS_MAX, ledger->n_calls,
			      ledger_calls_of(ledger, call->owner), most);
	}
	if (r == 0)
		r = ledger_look(ledger);
	if (r < 0)
		return r;
	ledger_sweep(ledger, SWEPT, now);
	if (ledger->n_free == 0) {
		ledger_grow(ledger, ledger->n_places + GROWS);
		ledger_list_free(ledger);
	}
	place = ledger->free[--ledger->n_free];
	ledger_put(ledger, place, call, INT64_MAX);
	r = ledger_write(ledger, place, BEGUN);
	if (r < 0)
		ledger_take_out(ledger, place);
	else
		*entry_r = ledger->place[place];
	return r;
}

void
ledger_end(struct ledger *ledger, struct ledger_entry *entry, uint32_t seconds)
{
	entry->until = clock_boot_s() + seconds;
	/* If this fails, the record says that the call has begun, which forbids as much. */
	(void)ledger_write(ledger, entry->place, ENDED);
}

void
ledger_drop(struct ledger *ledger, struct ledger_entry *entry)
{
	ledger_take_out(ledger, entry->place);
}
