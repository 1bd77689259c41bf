/* Runs in: the directory helper, and in a child of it for each lookup.
 * Owns:    the children, and a pipe from each.
 * Reads:   WHO, from the supervisor; in a child, the answers of name services, by the C library. */
#include "host/directory_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/own.h"
#include "base/xalloc.h"
#include "host/fence.h"
#include "proto/frame.h"

#define RECORD_MAX (16 * 1024 * 1024)	/* bytes of an entry, including all members of a group */
#define GROUPS_MAX 65536		/* of one user: the most that the kernel gives a process */

/* ---- looking up ---- */

/* Doubles a buffer that was too small for the entry. */
static int
grow(char **buffer, size_t *size)
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
		if (grow(&buffer, &size) < 0)
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

/* Adds to the answer if user is a member of the named group, by its list or by one of gid. */
static int
look_up_group(const char *name, const char *user, const gid_t *gid, size_t n,
	      unsigned char *member_r)
{
	own_mem char *buffer = NULL;
	struct group entry, *found = NULL;
	size_t size = 0;
	int r = ERANGE;

	while (r == ERANGE) {
		if (grow(&buffer, &size) < 0)
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

int
directory_look_up(uid_t uid, const char *const *group, size_t n,
		  struct directory_person *person_r)
{
	own_mem unsigned char *member = xcalloc(n + 1, 1);
	own_mem gid_t *gid = NULL;
	own_mem char *user = NULL;
	size_t n_gids = 0;
	gid_t first;
	int r = look_up_user(uid, &user, &first);

	if (r == 0 && user && n > 0)
		r = look_up_groups(user, first, &gid, &n_gids);
	for (size_t i = 0; r == 0 && user && i < n; i++)
		r = look_up_group(group[i], user, gid, n_gids, &member[i]);
	if (r == 0)
		*person_r = (struct directory_person){ give_ptr(user), give_ptr(member) };
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

static void
write_all(int fd, const unsigned char *bytes, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, bytes, len);

		if (n < 0 && errno != EINTR)
			_exit(1);
		bytes += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
}

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
is_name(const char *user)
{
	size_t len = strlen(user);

	return len > 0 && len <= DIRECTORY_USER_MAX && codec_text_prefix(user, len) == len;
}

static _Noreturn void
answer(int pipe, const struct msg_who *who, directory_look_up_fn *look_up)
{
	struct codec_buffer buffer = { 0 };
	struct directory_person person = { .user = NULL };
	struct msg msg = { .type = MSG_PERSON, .person.id = who->id };
	int r = look_up((uid_t)who->uid, (const char *const *)names_of(&who->groups),
			who->groups.n, &person);

	msg.person.error = (uint32_t)-r;
	if (r == 0) {
		msg.person.has_user = person.user && is_name(person.user);
		msg.person.user = msg_str(msg.person.has_user ? person.user : "");
		msg.person.member = (struct msg_bin){ (const char *)person.member,
						      who->groups.n };
	}
	if (frame_encode(&msg, 0, &buffer) == 0)
		write_all(pipe, buffer.at, buffer.len);
	_exit(0);
}

/* ---- the helper ---- */

struct look {
	pid_t pid;			/* 0: free */
	int pipe;
	uint64_t id, due_ms;
	struct frame_reader reader;
};

struct helper {
	int socket;
	directory_look_up_fn *look_up;
	struct look look[DIRECTORY_AT_ONCE];
	size_t n;
};

/* Sends person, or an error instead, and releases the child. */
static int
conclude(struct helper *helper, struct look *look, const struct msg_person *person, int error)
{
	struct msg msg = { .type = MSG_PERSON,
			   .person = { .id = look->id, .error = (uint32_t)-error } };

	if (error == 0)
		msg.person = *person;
	msg.person.id = look->id;
	kill(look->pid, SIGKILL);
	while (waitpid(look->pid, NULL, 0) < 0 && errno == EINTR)
		;
	close(look->pipe);
	frame_reader_done(&look->reader);
	look->pid = 0;
	helper->n--;
	return frame_send(helper->socket, &msg, NULL, 0);
}

static int
read_answer(struct helper *helper, struct look *look)
{
	struct frame frame = { 0 };
	unsigned char bytes[4096];
	ssize_t n = read(look->pipe, bytes, sizeof(bytes));
	size_t used;
	int r;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	/* A child that ends without an answer was killed, or crashed in a name service. */
	if (n <= 0)
		return conclude(helper, look, NULL, n < 0 ? -errno : -ECHILD);
	r = frame_reader_feed(&look->reader, bytes, (size_t)n, &used, &frame);
	if (r == 0)
		return 0;
	r = conclude(helper, look, &frame.msg.person, r < 0 ? r : 0);
	frame_done(&frame);
	return r;
}

static void
default_signals(void)
{
	const struct sigaction action = { .sa_handler = SIG_DFL };
	sigset_t none;

	for (int number = 1; number < NSIG; number++)
		sigaction(number, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static struct look *
find_free(struct helper *helper)
{
	struct look *look = helper->look;

	while (look->pid != 0)
		look++;
	return look;
}

/* Forks a child for one lookup. Its pid, and the reading end of its pipe; or -errno. */
static pid_t
fork_look(struct helper *helper, const struct msg_who *who, int *pipe_r)
{
	pid_t parent = getpid(), pid;
	int ends[2], error;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		close(ends[0]);
		close(helper->socket);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent || fence_lookup() < 0)
			_exit(1);
		answer(ends[1], who, helper->look_up);
	}
	error = errno;
	close(ends[1]);
	*pipe_r = ends[0];
	if (pid > 0)
		return pid;
	close(ends[0]);
	return -error;
}

/* Begins a lookup, or answers at once that it cannot. 0 or -errno of the socket. */
static int
begin(struct helper *helper, const struct msg_who *who)
{
	struct look *look = find_free(helper);
	int pipe = -1;
	pid_t pid = fork_look(helper, who, &pipe);
	struct msg msg = { .type = MSG_PERSON, .person.id = who->id };

	if (pid < 0) {
		msg.person.error = (uint32_t)-pid;
		return frame_send(helper->socket, &msg, NULL, 0);
	}
	fcntl(pipe, F_SETFL, O_NONBLOCK);
	*look = (struct look){ .pid = pid, .pipe = pipe, .id = who->id,
			       .due_ms = clock_ms() + (uint64_t)who->seconds * 1000 };
	frame_reader_init(&look->reader, FROM_DIRECTORY);
	helper->n++;
	return 0;
}

static int
take_lookup(struct helper *helper, struct frame_reader *reader)
{
	struct frame frame = { 0 };
	int r = frame_reader_read(reader, helper->socket, &frame);

	if (r == 1)
		r = frame.msg.type == MSG_WHO ? begin(helper, &frame.msg.who) : -EBADMSG;
	frame_done(&frame);
	return r;
}

/* Kills children whose time is over. */
static int
end_late(struct helper *helper)
{
	uint64_t now = clock_ms();
	int r = 0;

	for (size_t i = 0; r == 0 && i < DIRECTORY_AT_ONCE; i++)
		if (helper->look[i].pid != 0 && helper->look[i].due_ms <= now)
			r = conclude(helper, &helper->look[i], NULL, -ETIMEDOUT);
	return r;
}

static int
patience_ms(const struct helper *helper)
{
	uint64_t now = clock_ms(), first = UINT64_MAX;

	for (size_t i = 0; i < DIRECTORY_AT_ONCE; i++)
		if (helper->look[i].pid != 0 && helper->look[i].due_ms < first)
			first = helper->look[i].due_ms;
	return first == UINT64_MAX ? -1 : first > now ? (int)(first - now) + 1 : 0;
}

/* One wait, and the work that it brings. 0 or -errno. */
static int
turn(struct helper *helper, struct frame_reader *reader)
{
	struct pollfd line[DIRECTORY_AT_ONCE + 1];
	int r;

	for (size_t i = 0; i < DIRECTORY_AT_ONCE; i++)
		line[i] = (struct pollfd){ helper->look[i].pid ? helper->look[i].pipe : -1, POLLIN,
					   0 };
	line[DIRECTORY_AT_ONCE] = (struct pollfd){
		helper->n < DIRECTORY_AT_ONCE ? helper->socket : -1, POLLIN, 0 };
	if (poll(line, DIRECTORY_AT_ONCE + 1, patience_ms(helper)) < 0)
		return errno == EINTR ? 0 : -errno;
	r = end_late(helper);
	for (size_t i = 0; r == 0 && i < DIRECTORY_AT_ONCE; i++)
		if (line[i].revents && helper->look[i].pid != 0)
			r = read_answer(helper, &helper->look[i]);
	if (r == 0 && line[DIRECTORY_AT_ONCE].revents)
		r = take_lookup(helper, reader);
	return r;
}

/* Keeps the socket, as number 3, and standard error; closes everything else. */
static int
default_process(int *socket, pid_t supervisor)
{
	static const struct rlimit none = { 0, 0 };
	own_fd int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	default_signals();
	setsid();
	if (prctl(PR_SET_NAME, "mcp-directory") < 0 || prctl(PR_SET_DUMPABLE, 0) < 0 ||
	    setrlimit(RLIMIT_CORE, &none) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return -errno;
	if (getppid() != supervisor)
		return -ESRCH;
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		return -errno;
	if (*socket != STDERR_FILENO + 1 && dup3(*socket, STDERR_FILENO + 1, O_CLOEXEC) < 0)
		return -errno;
	*socket = STDERR_FILENO + 1;
	null = -1;	/* closed with the others */
	return close_range(STDERR_FILENO + 2, ~0u, 0) < 0 ? -errno : fence_directory();
}

_Noreturn void
directory_live(int socket, pid_t supervisor, directory_look_up_fn *look_up)
{
	static struct helper helper;
	struct frame_reader reader;
	int r = default_process(&socket, supervisor);

	helper = (struct helper){ .socket = socket, .look_up = look_up };
	frame_reader_init(&reader, FROM_SUPERVISOR);
	while (r == 0)
		r = turn(&helper, &reader);
	/* The supervisor closes its end when it ends. */
	if (r == -EPIPE || r == -ECONNRESET)
		_exit(EXIT_SUCCESS);
	log_line(LOG_ERR, "directory-ends", "err=%s", strerrorname_np(-r));
	_exit(EXIT_FAILURE);
}
