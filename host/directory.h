/* SPDX-License-Identifier: Apache-2.0 */
/* The host's directory of users: the databases passwd and group of nsswitch.conf(5). Their sources
 * may be files, or sssd, LDAP and other services that answer late or not at all.
 *
 * So the directory is never asked in the event loop. A helper process (helper.h), without privilege
 * and without other descriptors of the supervisor, does each lookup in a job (jobs.h). A lookup
 * that hangs delays neither the loop nor other lookups, and a name service's answer is parsed in a
 * process that has no other resources.
 *
 * "There is no such user" and "the directory did not answer" are different results, because a user
 * must not lose groups that policy names when the directory is down.
 *
 * A user of the host may have a range of subordinate uids (subuid(5)), and can become each of them
 * in a user namespace of its own. So a uid of such a range stands for the range's owner, except
 * root: what root has started under a uid of root's ranges does not get root's rights. A uid with
 * an account of its own in a range of somebody else, or in ranges of several users, can be more
 * than one person: -EMLINK.
 */
#ifndef HOST_DIRECTORY_H
#define HOST_DIRECTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct directory;
struct directory_lookup;
struct event_base;

#define DIRECTORY_AT_ONCE 64	/* lookups that the helper does at a time; further ones wait */

/* The directory's entry for a uid. */
struct directory_person {
	uid_t uid;		/* of the account: the uid itself, or the owner of its range */
	char *user;		/* login name of the account; NULL: there is no account */
	unsigned char *member;	/* one byte for each group of the lookup: 1 or 0 */
};

/* Asks the C library and libsubid, and blocks. group: n names; an unknown group has no members. 0
 * with *person_r, for directory_person_done; -EMLINK: the uid may be several persons; another
 * -errno: the directory did not answer. */
int directory_look_up(uid_t uid, const char *const *group, size_t n,
		      struct directory_person *person_r);
void directory_person_done(struct directory_person *person);

typedef int directory_look_up_fn(uid_t uid, const char *const *group, size_t n,
				 struct directory_person *person_r);

/* To be called before the fork servers are forked (forker.h). look_up: the function that does the
 * lookups; NULL: directory_look_up. */
void directory_plan(directory_look_up_fn *look_up);

/* Plans and forks the helper. To be called before a client's first byte is read. 0 or -errno. */
int directory_new(directory_look_up_fn *look_up, struct directory **directory_r);

/* Ends the helper; lookups are dropped. NULL is fine. */
void directory_free(struct directory *directory);

/* To be called before the first lookup. A helper that has ended or does not keep its time limits is
 * made again; the lookups that it had are repeated. */
void directory_watch(struct directory *directory, struct event_base *base);

/* Looks up a uid and whether it is in these groups. Names are copied. on_answer is always called
 * from the loop, once: with error 0 and the person, borrowed for the call; or with -errno, as
 * directory_look_up. -ETIMEDOUT: it took longer than seconds. */
struct directory_lookup *
directory_ask(struct directory *directory, uid_t uid, const char *const *group, size_t n,
	      unsigned int seconds,
	      void (*on_answer)(void *arg, int error, const struct directory_person *person),
	      void *arg);

/* Drops the lookup: on_answer is not called. Not to be called from within on_answer. */
void directory_cancel(struct directory_lookup *lookup);

/* The helper's process. */
pid_t directory_pid(const struct directory *directory);

/* ---- for directory_process.c, the side in the helper ---- */

/* The owner of the range of subordinate uids that uid is in: 1 and *owner_r; 0: there is none but
 * root; -EMLINK: there are several; another -errno: it cannot be asked. Blocks. */
int subordinate_owner(uid_t uid, uid_t *owner_r);

/* Loads libsubid, which has to happen before memory and descriptors are bounded. */
void subordinate_load(void);

/* The helper: a helper_live_fn. look_up: a pointer to a directory_look_up_fn. Serves lookups on
 * socket until the supervisor closes its end. */
_Noreturn void directory_live(const void *look_up, int socket, pid_t supervisor);

#endif
