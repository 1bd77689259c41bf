/* SPDX-License-Identifier: Apache-2.0 */
/* A real engine for tests, made as the supervisor makes it, in a process of its own that is watched
 * from outside. $MCP_PYTHON_WORKER is the path of the worker program. Functions that find a mistake
 * fail the cmocka test.
 */
#ifndef TESTS_UNIT_ENGINE_ENGINE_RIG_H
#define TESTS_UNIT_ENGINE_ENGINE_RIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/execution.h"
#include "host/startup.h"

#define RIG_PATIENCE_MS 60000

struct rig {
	struct event_base *base;
	struct config *config;
	struct launcher *launcher;
	struct cgroup_root *cgroups;
	struct engine *engine;
	struct tenant *tenant;
	const struct engine_observer *observer;	/* set before rig_set_up(); NULL: none */
	unsigned int fds_before;
	struct startup_programs programs;
};

extern struct rig rig;

/* The outcome of one execution. */
struct rig_result {
	bool over;
	unsigned int outcomes;
	enum outcome_status status;
	int exit_code, signal;
	uint64_t cpu_ms, duration_ms, peak, out_written, out_dropped, seen;
	uint32_t retry_ms;
	char out[4096], err[4096], value[256], error_type[64], message[512];
	size_t out_len;
	enum outcome_state became;
	char notes[1024];	/* a line each */
	char files[256];	/* paths, a line each */
};

uint64_t rig_now_us(void);

/* Runs the loop until *over. Fails after a long time. */
void rig_turn_until(const bool *over);

/* Runs the loop until the execution has written something. */
void rig_turn_until_seen(const struct rig_result *r);

/* The standard limits and nothing else. */
struct execution_request rig_request(void);

/* Starts script as rig.tenant; *r is filled when the outcome comes. */
struct execution *rig_start(struct rig_result *r, const char *script,
			    const struct execution_request *more);

/* Starts a script with the standard limits, and runs the loop until it is over. */
void rig_run(struct rig_result *r, const char *script);

/* Fails unless there was one outcome, with this status. */
void rig_assert_status(const struct rig_result *r, enum outcome_status status);

unsigned int rig_count_fds(void);

/* Opens the programs, which may need root. False: there is no worker program. */
bool rig_open_programs(void);

/* cmocka's group fixtures: they make privilege, engine and tenant 1000, and remove them. */
int rig_set_up(void **state);
int rig_tear_down(void **state);

/* Runs body in a child, and checks that it leaves nothing behind. 0 or 1. */
int rig_in_child(int (*body)(void), bool as_nobody);

/* The main function of a test program: runs the group in children, as root (if this is root) and as
 * the user nobody. is_killed: also kills a supervisor with busy workers, and checks that all
 * workers end. */
int rig_main(int (*group)(void), int log_level, bool is_killed);

#endif
