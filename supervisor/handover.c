/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor, at its start and its end.   Owns: nothing in between.
 * Reads:   descriptors of systemd's store, by their names; one of them is a table. */
#include "supervisor/handover.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <systemd/sd-daemon.h>

#include "base/log.h"
#include "base/notify.h"
#include "base/own.h"
#include "base/stall.h"
#include "base/why.h"
#include "base/xalloc.h"
#include "engine/repl_keep.h"
#include "govern/audit.h"
#include "supervisor/endpoints.h"
#include "tools/session/handover_table.h"
#include "tools/session/repl_sessions_keep.h"

#define TABLE HANDOVER_PREFIX "table"
#define FD_NAME_MAX 64
#define HANDLE_SHOWN 8
/* Without F_SEAL_WRITE, which fails while the kernel moves pages: see execution_make_stdin(). */
#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE)
#define BARRIER_US (5 * 1000 * 1000)

static const char *const role[REPL_FDS] = { "init", "control", "stdout", "stderr" };

bool
handover_is_possible(bool as_service, bool has_cgroups)
{
	/* systemd 252 does not announce its store, but this service's unit has one. */
	return getenv("NOTIFY_SOCKET") && (as_service || (!has_cgroups && getenv("FDSTORE")));
}

static void
name_descriptor(char name_r[FD_NAME_MAX], uint64_t serial, unsigned int which)
{
	snprintf(name_r, FD_NAME_MAX, HANDOVER_PREFIX "%llu-%s", (unsigned long long)serial,
		 role[which]);
}

static void
handover_record(struct audit *audit, enum audit_event event, const char *principal,
		const char *handle, const char *text)
{
	char shown[HANDLE_SHOWN + 4];
	json_t *more;

	snprintf(shown, sizeof(shown), "%.*s...", HANDLE_SHOWN, handle);
	more = text ? json_pack("{s:s,s:s}", "session", shown, "why", text)
		    : json_pack("{s:s}", "session", shown);
	/* The event has happened already, so a failure to record it prevents nothing. */
	if (audit_write(audit, event, principal, NULL, more) < 0)
		log_line(LOG_WARNING, "not-recorded", "event=%s", audit_event_name(event));
}

/* Records for each handle that it was kept, or why it is lost. */
static void
handover_tell(struct audit *audit, const struct handover_session *session, const char *lost)
{
	own_mem char *principal = xmemdup0(session->is.tenant.at, session->is.tenant.len);

	for (uint32_t i = 0; i < session->is.handles; i++) {
		const struct msg_str *text = &session->handle[i].is.handle;
		own_mem char *handle = xmemdup0(text->at, text->len);

		handover_record(audit, lost ? AUDIT_SESSION_LOST : AUDIT_SESSION_KEPT, principal,
				handle, lost);
	}
}

/* ---- giving ---- */

struct giver {
	struct handover_table table;
	size_t size;			/* capacity of table.session */
	struct audit *audit;
};

static int
handover_store(const char *name, int fd)
{
	char state[FD_NAME_MAX + 64];
	int r;

	/* Not watched by systemd: the next process sees its state. */
	snprintf(state, sizeof(state), "FDSTORE=1\nFDPOLL=0\nFDNAME=%s", name);
	do
		r = sd_pid_notify_with_fds(0, 0, state, &fd, 1);
	while (r == -EINTR);
	return r > 0 ? 0 : r < 0 ? r : -ENOTCONN;
}

/* Can the next process read the session's entry? One invalid entry makes the whole table invalid,
 * and all sessions would be lost. */
static bool
handover_is_sound(const struct handover_table *all, const struct handover_session *session)
{
	struct handover_session copy = *session;
	struct handover_table one = { .is = all->is, .session = &copy }, *back = NULL;
	struct codec_buffer buffer = { 0 };
	bool sound;

	one.is.sessions = 1;
	sound = handover_table_write(&one, &buffer) == 0 &&
		handover_table_read(buffer.at, buffer.len, &back) == 0;
	handover_table_free(back);
	codec_buffer_done(&buffer);
	return sound;
}

static int
handover_give_one(void *arg, const struct handover_session *session, const int fd[REPL_FDS])
{
	struct giver *giver = arg;
	char name[FD_NAME_MAX];
	int r = giver->table.is.sessions == HANDOVER_SESSIONS_MAX ? -E2BIG
		: handover_is_sound(&giver->table, session) ? 0 : -EINVAL;

	for (unsigned int i = 0; r == 0 && i < REPL_FDS; i++)
		if (fd[i] >= 0) {
			name_descriptor(name, session->is.serial, i);
			r = handover_store(name, fd[i]);
		}
	if (r == 0) {
		struct handover_table *table = &giver->table;
		struct handover_session *added;

		if (table->is.sessions == giver->size) {
			giver->size = 2 * giver->size + 16;
			table->session = xalloc_check(reallocarray(table->session, giver->size,
								   sizeof(*table->session)));
		}
		added = &table->session[table->is.sessions++];
		*added = *session;
		added->handle = xcalloc(session->is.handles, sizeof(*added->handle));
		memcpy(added->handle, session->handle,
		       session->is.handles * sizeof(*added->handle));
	}
	return r;
}

static void
handover_lose(void *arg, const char *principal, const char *handle, const char *text)
{
	struct giver *giver = arg;

	handover_record(giver->audit, AUDIT_SESSION_LOST, principal, handle, text);
}

static int
store_table(const struct handover_table *table)
{
	own_fd int fd = memfd_create("sessions", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct codec_buffer buffer = { 0 };
	int r = fd < 0 ? -errno : handover_table_write(table, &buffer);
	ssize_t n;

	if (r == 0 && buffer.len > HANDOVER_TABLE_MAX)
		r = -E2BIG;
	if (r == 0) {
		n = write(fd, buffer.at, buffer.len);
		r = n == (ssize_t)buffer.len ? 0 : n < 0 ? -errno : -EIO;
	}
	codec_buffer_done(&buffer);
	if (r == 0 && fcntl(fd, F_ADD_SEALS, SEALS) < 0)
		r = -errno;
	return r < 0 ? r : handover_store(TABLE, fd);
}

/* Without the table the descriptors have no meaning: the next process closes them. */
static void
lose_all(const struct giver *giver, int error)
{
	struct why why = { .field = "" };

	why_say(&why, error, NULL, "the table of what is handed over was not stored: %s",
		strerror(-error));
	for (uint32_t i = 0; i < giver->table.is.sessions; i++)
		handover_tell(giver->audit, &giver->table.session[i], why.text);
}

/* systemd discards messages that it reads after this process has ended. */
static int
wait_for_systemd(void)
{
	int r;

	stall_pause();
	r = sd_notify_barrier(0, BARRIER_US);
	stall_turn();
	return r;
}

void
handover_give(struct engine *engine, struct audit *audit)
{
	struct giver giver = { .audit = audit };
	int r = 0;

	engine_describe(engine, &giver.table.is);
	repl_sessions_give(&(struct repl_giving){
		.give = handover_give_one, .lose = handover_lose, .arg = &giver });
	if (giver.table.is.sessions > 0) {
		r = store_table(&giver.table);
		if (r < 0)
			lose_all(&giver, r);
		else
			r = wait_for_systemd();
		log_line(r < 0 ? LOG_WARNING : LOG_NOTICE, "sessions-left", "n=%u err=%s",
			 giver.table.is.sessions, r < 0 ? strerrorname_np(-r) : "-");
	}
	for (uint32_t i = 0; i < giver.table.is.sessions; i++)
		free(giver.table.session[i].handle);
	free(giver.table.session);
}

/* ---- taking ---- */

/* Takes the descriptor out of the endpoints; -1: there is none, or there are several. */
static int
take_fd(struct endpoints *endpoints, const char *name)
{
	struct endpoints_stored *found = NULL;

	for (size_t i = 0; i < endpoints->n_stored; i++)
		if (endpoints->stored[i].fd >= 0 && strcmp(endpoints->stored[i].name, name) == 0) {
			if (found)
				return -1;
			found = &endpoints->stored[i];
		}
	return found ? give_fd(found->fd) : -1;
}

/* Reads a table that is sealed and complete. 0 or -errno. */
static int
read_table(int fd, struct handover_table **table_r)
{
	int seals = fcntl(fd, F_GET_SEALS), r;
	own_mem unsigned char *bytes = NULL;
	struct stat st;
	ssize_t n;

	if (seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &st) < 0 ||
	    st.st_size > HANDOVER_TABLE_MAX)
		return -EBADMSG;
	bytes = xalloc_check(malloc((size_t)st.st_size + 1));
	n = pread(fd, bytes, (size_t)st.st_size, 0);
	r = n == st.st_size ? handover_table_read(bytes, (size_t)n, table_r) : -EIO;
	return r;
}

static bool
handover_take_session(const struct handover_takers *takers, const struct handover_session *session,
		      const char *refused)
{
	struct why why = { .field = "" };
	int fd[REPL_FDS], r;

	for (unsigned int i = 0; i < REPL_FDS; i++) {
		char name[FD_NAME_MAX];

		name_descriptor(name, session->is.serial, i);
		fd[i] = take_fd(takers->endpoints, name);
	}
	r = refused ? why_say(&why, -EINVAL, NULL, "%s", refused)
		    : repl_session_adopt(takers->engine, takers->base, takers->config, session,
					 fd, &why);
	for (unsigned int i = 0; r < 0 && i < REPL_FDS; i++)
		if (fd[i] >= 0)
			close(fd[i]);
	handover_tell(takers->audit, session, r < 0 ? why.text : NULL);
	return r == 0;
}

static uint64_t
take_table(const struct handover_takers *takers, int fd)
{
	struct handover_table *table = NULL;
	struct why why = { .field = "" };
	unsigned int kept = 0;
	uint64_t last_serial;
	int r = read_table(fd, &table);

	if (r < 0) {
		log_line(LOG_WARNING, "sessions-refused", "err=%s", strerrorname_np(-r));
		return 0;
	}
	r = engine_admits(takers->engine, &table->is, &why);
	/* The last one is the oldest. */
	for (uint32_t i = table->is.sessions; i-- > 0;)
		kept += handover_take_session(takers, &table->session[i], r < 0 ? why.text : NULL);
	log_line(LOG_NOTICE, "sessions-kept", "n=%u lost=%u", kept, table->is.sessions - kept);
	last_serial = table->is.last_serial;
	handover_table_free(table);
	return last_serial;
}

/* Removes the store's own copies: sessions that were not taken end by that. */
static void
empty_store(struct endpoints *endpoints)
{
	for (size_t i = 0; i < endpoints->n_stored; i++) {
		own_mem char *state = NULL;

		if (endpoints->stored[i].fd >= 0)
			close(give_fd(endpoints->stored[i].fd));
		state = xasprintf("FDSTOREREMOVE=1\nFDNAME=%s",
				  endpoints->stored[i].name);
		notify_say(state);
	}
}

void
handover_take(const struct handover_takers *takers)
{
	own_fd int fd = take_fd(takers->endpoints, TABLE);
	uint64_t last_serial = 0;

	if (fd >= 0)
		last_serial = take_table(takers, fd);
	else if (takers->endpoints->n_stored > 0)
		log_line(LOG_WARNING, "sessions-refused", "err=ENOENT");
	empty_store(takers->endpoints);
	engine_adopted_all(takers->engine, last_serial);
}
