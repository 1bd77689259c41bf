/* The host's directory of users: passwd and group of nsswitch.conf(5), which may be files, or
 * sssd, LDAP and others that answer late or not at all.
 *
 * So it is never asked in the event loop. A helper process is forked at start-up, when nothing of
 * a client has been read yet, without privilege and without any descriptor of the supervisor's.
 * It forks a child for each lookup and kills one that has not answered in time: a lookup
 * that hangs holds up neither the loop nor the other lookups, and what a name service sends is
 * parsed in a process that holds nothing.
 *
 * "There is no such user" and "it cannot be said" are two answers: where policy names groups, a
 * directory that is down must not make somebody a member of none.
 */
#ifndef HOST_DIRECTORY_H
#define HOST_DIRECTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct directory;
struct directory_lookup;
struct event_base;

#define DIRECTORY_AT_ONCE 64	/* lookups that the helper has; further ones wait */

/* What the directory says of a uid. */
struct directory_person {
	char *user;		/* login name; NULL: it has no such uid */
	unsigned char *member;	/* by group that was asked about: 1 or 0 */
};

/* Asks the C library; waits as long as that takes. group: n names, of which those that the
 * directory does not have have no members. 0 with *person_r, for directory_person_done; or
 * -errno: it cannot be said. */
int directory_look_up(uid_t uid, const char *const *group, size_t n,
		      struct directory_person *person_r);
void directory_person_done(struct directory_person *person);

typedef int directory_look_up_fn(uid_t uid, const char *const *group, size_t n,
				 struct directory_person *person_r);

/* Forks the helper; not later than the first byte of a client. look_up: how it answers; NULL:
 * directory_look_up. 0 or -errno. */
int directory_new(directory_look_up_fn *look_up, struct directory **directory_r);

/* Ends the helper; lookups are dropped. NULL is fine. */
void directory_free(struct directory *directory);

/* Before anything is asked. on_lost is called once, from the loop, when the helper has ended or
 * does not keep its time: it cannot be replaced, and all lookups are answered by an error from
 * then on. */
void directory_watch(struct directory *directory, struct event_base *base,
		     void (*on_lost)(void *arg), void *arg);

/* Who is uid, and is it in these groups? Names are copied. Always answered from the loop, once:
 * error 0 and what was found, which is lent for the call; or -errno. -ETIMEDOUT: it took longer
 * than seconds. */
struct directory_lookup *
directory_ask(struct directory *directory, uid_t uid, const char *const *group, size_t n,
	      unsigned int seconds,
	      void (*on_answer)(void *arg, int error, const struct directory_person *person),
	      void *arg);

/* The answer is not wanted any more. Not from within on_answer. */
void directory_cancel(struct directory_lookup *lookup);

/* The helper's process. */
pid_t directory_pid(const struct directory *directory);

#endif
