/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the directory helper, and in a child of it for each lookup.   Owns: nothing.
 * Reads:   WHO, from the supervisor; in a child, the answers of name services, by the C library. */
#include "host/directory.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "base/xalloc.h"
#include "host/fence.h"
#include "host/helper.h"
#include "host/jobs.h"

#define RECORD_MAX (16 * 1024 * 1024)	/* bytes of an entry, including all members of a group */
#define GROUPS_MAX 65536		/* of one user: the most that the kernel gives a process */

/* ---- looking up ---- */

/* Doubles a buffer that was too small for the entry. */
static int
directory_process_grow(char **buffer, size_t *size)
{
	if (*size >= RECORD_MAX)
		return -ERANGE;
	*size = *size ? 4 * *size : 4096;
	*buffer = xrealloc(*buffer, *size);
	return 0;
}

/* user_r: malloc'd; NULL: no such uid. The C library returns 0 without an entry for an unknown
 * uid, and an error number when a service that may know it did not answer. */
static int
look_up_user(uid_t uid, char **user_r, gid_t *gid_r)
{
	own_mem char *buffer = NULL;
	struct passwd entry, *found = NULL;
	size_t size = 0;
	int r = ERANGE;

	while (r == ERANGE) {
		if (directory_process_grow(&buffer, &size) < 0)
			return -ERANGE;
		r = getpwuid_r(uid, &entry, buffer, size, &found);
	}
	if (r != 0)
		return -r;
	*user_r = found ? xstrdup(found->pw_name) : NULL;
	*gid_r = found ? found->pw_gid : 0;
	return 0;
}

static bool
has_member(const struct group *group, const char *user)
{
	for (size_t i = 0; group->gr_mem && group->gr_mem[i]; i++)
		if (strcmp(group->gr_mem[i], user) == 0)
			return true;
	return false;
}

/* *member_r: is user a member of the group? True if the list of the group names the user, or if the
 * group is one of gid, the n groups of the user. 0 or -errno. */
static int
look_up_group(const char *name, const char *user, const gid_t *gid, size_t n,
	      unsigned char *member_r)
{
	own_mem char *buffer = NULL;
	struct group entry, *found = NULL;
	size_t size = 0;
	int r = ERANGE;

	while (r == ERANGE) {
		if (directory_process_grow(&buffer, &size) < 0)
			return -ERANGE;
		r = getgrnam_r(name, &entry, buffer, size, &found);
	}
	if (r != 0)
		return -r;
	*member_r = found && has_member(found, user);
	for (size_t i = 0; found && i < n; i++)
		*member_r |= gid[i] == found->gr_gid;
	return 0;
}

/* All groups of a user. getgrouplist(3) does not distinguish an error from "no more groups".
 * look_up_group() does: it asks for each group by name. */
static int
look_up_groups(const char *user, gid_t first, gid_t **gid_r, size_t *n_r)
{
	own_mem gid_t *gid = NULL;
	int n = 0, room = 64;

	do {
		room *= 4;
		if (room > GROUPS_MAX)
			return -E2BIG;
		gid = xrealloc(gid, (size_t)room * sizeof(*gid));
		n = room;
	} while (getgrouplist(user, first, gid, &n) < 0);
	*gid_r = give_ptr(gid);
	*n_r = (size_t)n;
	return 0;
}

/* The account behind a uid: its own, or that of the owner of its range. An error about ranges does
 * not matter to an account of its own: nothing says then that it may be somebody else. */
static int
look_up_account(uid_t *uid, char **user_r, gid_t *gid_r)
{
	uid_t owner = *uid;
	int owned, r = look_up_user(*uid, user_r, gid_r);

	if (r < 0)
		return r;
	owned = subordinate_owner(*uid, &owner);
	if (*user_r)
		return owned == -EMLINK || (owned == 1 && owner != *uid) ? -EMLINK : 0;
	if (owned != 1)
		return owned;
	*uid = owner;
	return look_up_user(owner, user_r, gid_r);
}

int
directory_look_up(uid_t uid, const char *const *group, size_t n,
		  struct directory_person *person_r)
{
	own_mem unsigned char *member = xcalloc(n + 1, 1);
	own_mem gid_t *gid = NULL;
	own_mem char *user = NULL;
	size_t n_gids = 0;
	gid_t first;
	int r = look_up_account(&uid, &user, &first);

	if (r == 0 && user && n > 0)
		r = look_up_groups(user, first, &gid, &n_gids);
	for (size_t i = 0; r == 0 && user && i < n; i++)
		r = look_up_group(group[i], user, gid, n_gids, &member[i]);
	if (r == 0)
		*person_r = (struct directory_person){ uid, give_ptr(user), give_ptr(member) };
	return r;
}

void
directory_person_done(struct directory_person *person)
{
	free(person->user);
	free(person->member);
	*person = (struct directory_person){ .user = NULL };
}

/* ---- a child: one lookup ---- */

static char **
names_of(const struct msg_strs *strs)
{
	char **name = xcalloc(strs->n + 1, sizeof(*name));

	for (size_t i = 0; i < strs->n; i++)
		name[i] = xmemdup0(strs->item[i].at, strs->item[i].len);
	return name;
}

/* A name that is not text, or too long, cannot occur in a configuration. */
static bool
directory_process_is_name(const char *user)
{
	size_t len = strlen(user);

	return len > 0 && len <= DIRECTORY_USER_MAX && codec_text_prefix(user, len) == len;
}

struct directory_process {
	struct jobs jobs;
	directory_look_up_fn *look_up;
};

static void
directory_process_work(void *arg, struct frame *order, struct msg *answer_r)
{
	const struct directory_process *process = arg;
	const struct msg_who *who = &order->msg.who;
	struct directory_person person = { .user = NULL };
	int r = process->look_up((uid_t)who->uid, (const char *const *)names_of(&who->groups),
				 who->groups.n, &person);

	answer_r->person.id = who->id;
	answer_r->person.error = (uint32_t)-r;
	if (r < 0)
		return;
	answer_r->person.uid = person.uid;
	answer_r->person.has_user = person.user && directory_process_is_name(person.user);
	answer_r->person.user = msg_str(answer_r->person.has_user ? person.user : "");
	answer_r->person.member = (struct msg_bin){ (const char *)person.member, who->groups.n };
}

/* ---- the helper ---- */

static int
directory_process_obey(struct jobs *jobs, struct frame *order)
{
	const struct msg_who *who = &order->msg.who;

	return order->msg.type == MSG_WHO ? jobs_begin(jobs, order, who->id, who->seconds)
					  : -EBADMSG;
}

/* A child that a name service has taken over can answer for its own lookup only. */
static int
directory_process_conclude(void *arg, const struct frame *order, int error,
			   const struct msg *answer)
{
	const struct directory_process *process = arg;
	struct msg msg = { .type = MSG_PERSON, .person.error = (uint32_t)-error };

	if (answer)
		msg.person = answer->person;
	msg.person.id = order->msg.who.id;
	return frame_send(process->jobs.socket, &msg, NULL, 0);
}

_Noreturn void
directory_live(const void *look_up, int socket, pid_t supervisor)
{
	static const struct jobs_calls calls = {
		directory_process_obey, directory_process_work, directory_process_conclude,
	};
	static struct directory_process process;
	int r = helper_settle("mcp-directory", supervisor);

	if (r == 0)
		r = helper_keep_only(&socket);
	process.look_up = *(directory_look_up_fn *const *)look_up;
	if (r == 0 && process.look_up == directory_look_up)
		subordinate_load();
	if (r == 0)
		r = fence_helper();
	process.jobs = (struct jobs){ .calls = &calls, .arg = &process, .answer = MSG_PERSON,
				      .socket = socket, .most = DIRECTORY_AT_ONCE };
	if (r == 0)
		r = jobs_serve(&process.jobs);
	helper_exit("directory-ends", r);
}
