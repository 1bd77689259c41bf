/* SPDX-License-Identifier: Apache-2.0 */
/* What is handed over to systemd, where it stops listening in the middle of it. */
#include "supervisor/handover.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/why.h"
#include "govern/audit.h"
#include "tools/session/repl_sessions_keep.h"

#define SESSIONS 2

static char handle_text[SESSIONS][2][64];	/* each session has a branch */
static int manager;				/* systemd's end */

static struct {
	enum audit_event event;
	char tenant[32], session[32], why[128];
} record[2 * SESSIONS];
static unsigned int n_records;

/* ---- what handover.c calls ---- */

void
engine_describe(const struct engine *engine, struct msg_handover *handover_r)
{
	(void)engine;
	*handover_r = (struct msg_handover){ .build = msg_str("a build"), .last_serial = 100,
					     .uid_base = 100000, .slots = 65534 };
}

int
engine_admits(const struct engine *engine, const struct msg_handover *handover, struct why *why_r)
{
	(void)engine;
	(void)handover;
	return why_say(why_r, -EINVAL, NULL, "nothing is taken here");
}

void
engine_adopted_all(struct engine *engine, uint64_t last_serial)
{
	(void)engine;
	(void)last_serial;
}

int
repl_session_adopt(struct engine *engine, struct event_base *base, const struct config *config,
		   const struct handover_session *session, const int fd[REPL_FDS],
		   struct why *why_r)
{
	(void)engine;
	(void)base;
	(void)config;
	(void)session;
	(void)fd;
	return why_say(why_r, -EINVAL, NULL, "nothing is taken here");
}

int
audit_write(struct audit *audit, enum audit_event event, const char *tenant,
	    const char *execution, json_t *more)
{
	(void)audit;
	assert_null(execution);
	assert_true(n_records < 2 * SESSIONS);
	record[n_records].event = event;
	snprintf(record[n_records].tenant, sizeof(record->tenant), "%s", tenant);
	snprintf(record[n_records].session, sizeof(record->session), "%s",
		 json_string_value(json_object_get(more, "session")));
	snprintf(record[n_records].why, sizeof(record->why), "%s",
		 json_string_value(json_object_get(more, "why")));
	n_records++;
	json_decref(more);
	return 0;
}

const char *
audit_event_name(enum audit_event event)
{
	(void)event;
	return "event";
}

static int
give_one(const struct repl_giving *giving, uint32_t i, int fd)
{
	struct handover_handle handle[2] = { 0 };
	const struct handover_session session = { .is = {
		.serial = 10 + i, .slot = 1 + i, .pid = 1000 + i, .uid = 100000 + i,
		.tenant = msg_str("uid:1000"), .profile = msg_str("default"), .streams = 3,
		.snapshots = 3, .taken = 3, .memory_used = 1, .wall_ms = 1, .cpu_ms = 1,
		.memory_bytes = 1, .memory_most = 1, .pids = 1, .output_bytes = 1,
		.output_total = 1,
		.handles = 2,
	}, .handle = handle };

	for (uint32_t k = 0; k < 2; k++) {
		snprintf(handle_text[i][k], sizeof(handle_text[i][k]),
			 "r-%c%cabcdefgh-host-1", 'a' + (int)i, 'a' + (int)k);
		handle[k].is = (struct msg_kept_handle){
			.handle = msg_str(handle_text[i][k]), .snapshot = k, .age_ms = 2,
			.idle_ms = 1, .born_ms = 5, .used_ms = 6,
		};
	}
	return giving->give(giving->arg, &session, (int[REPL_FDS]){ fd, fd, fd, fd });
}

/* systemd takes all that is theirs, and hears nothing after that. */
void
repl_sessions_give(const struct repl_giving *giving)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	assert_true(fd >= 0);
	for (uint32_t i = 0; i < SESSIONS; i++)
		assert_int_equal(give_one(giving, i, fd), 0);
	close(fd);
	close(manager);
}

/* ---- tests ---- */

static void
without_a_table_all_are_lost(void **state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	char directory[] = "/tmp/test-handover.XXXXXX";

	(void)state;
	assert_non_null(mkdtemp(directory));
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/notify", directory);
	manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(manager, (struct sockaddr *)&address, sizeof(address)), 0);
	setenv("NOTIFY_SOCKET", address.sun_path, 1);
	handover_give(NULL, NULL);
	assert_int_equal(n_records, 2 * SESSIONS);
	for (unsigned int i = 0; i < n_records; i++) {
		char shown[32];

		snprintf(shown, sizeof(shown), "%.8s...", handle_text[i / 2][i % 2]);
		assert_int_equal(record[i].event, AUDIT_SESSION_LOST);
		assert_string_equal(record[i].tenant, "uid:1000");
		assert_string_equal(record[i].session, shown);
		assert_string_equal(record[i].why, "the table of what is handed over was not "
				    "stored: Connection refused");
	}
	unlink(address.sun_path);
	rmdir(directory);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_table_all_are_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
