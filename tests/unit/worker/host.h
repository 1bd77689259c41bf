/* SPDX-License-Identifier: Apache-2.0 */
/* The place of a supervisor in tests of the worker: makes an outer namespace, starts a real zygote
 * in it, spawns workers, and runs scripts, one at a time.
 */
#ifndef TESTS_UNIT_WORKER_HOST_H
#define TESTS_UNIT_WORKER_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/frame.h"

#define HOST_MEMORY (512ULL << 20)	/* the limit that workers are told of */

struct host_options {
	const char *program; /* NULL: $MCP_PYTHON_WORKER or ./mcp-python-worker */
	const char *const *modules;	/* NULL-terminated; NULL: none */
	const char *const *paths;	/* NULL-terminated; NULL: some that exist */
	const char
		*packages; /* shown as the host's dist-packages; NULL: the real one */
	uint64_t disk_bytes, disk_inodes;	/* 0: 64 MiB, 4096 */
	bool memory_counted, terminals;
	bool single_id; /* as root: map one id only, as for a plain user */
};

struct host {
	pid_t zygote;
	int control;			/* to the zygote */
	bool own_uids;
	uint64_t serial;
	uint64_t owner;			/* of the next worker's network */
	int leaf;			/* cgroup to spawn into; -1: none */
	uint32_t uid;			/* to spawn with; 0: the serial's own */
	struct frame_reader reader;
	char python[64];
	uint32_t landlock_abi;
	size_t n_missing;
	char missing[256];		/* the first of them */
	char failed[256];		/* ZYGOTE_FAILED said this */
	uint32_t error;
};

struct host_worker {
	uint64_t serial;
	pid_t pid;
	int pidfd, control, out, err;
	struct frame_reader reader;
};

struct host_run {
	const char *script;
	size_t script_len;		/* 0: strlen */
	const char *const *args;	/* NULL-terminated; NULL: none */
	const char *input;		/* NULL: no standard input */
	int input_fd;			/* instead; 0: none; borrowed */
	const char *file, *file_text;	/* put into /workspace first; NULL: none */
	uint64_t data_bytes;
	uint32_t processes, cpu_seconds, value_max;	/* 0: none, none, 64 KiB */
	unsigned int wall_ms;		/* 0: 2 minutes */
};

enum host_end {
	HOST_DONE,
	HOST_EXITED,
	HOST_JAIL_FAILED,
	HOST_TIMEOUT,
	HOST_BROKEN, /* protocol, or the socket ended without a word */
};

struct host_result {
	enum host_end end;
	struct frame frame;		/* DONE, EXITED or JAIL_FAILED */
	struct msg_done *done;		/* into frame, or NULL */
	uint32_t status;		/* of wait(2), when EXITED */
	char *out, *err;		/* NUL added */
	size_t out_len, err_len;
	char told[8192];		/* what came before: "[object kind data]" and
					 * "{path size data}", "{number more}" */
	double ready_us, done_us;	/* SPAWN to READY, RUN to DONE */
};

/* 0 or -errno; -ECANCELED: the zygote has reported why it cannot start. To be followed by
 * host_stop in any case. */
int host_start(const struct host_options *options, struct host *host_r);
void host_stop(struct host *host);

/* Waits for the next frame. 0 or -errno; -ETIME after a minute. */
int host_receive(struct frame_reader *reader, int socket, struct frame *frame_r);

/* Until READY. 0, or -errno; -ECANCELED: JAIL_FAILED, in *failed_r when not NULL. */
int host_spawn(struct host *host, struct host_worker *worker_r, struct frame *failed_r);
void host_kill(struct host_worker *worker);	/* and waits for its end */

/* Sends RUN, collects output and the end, then kills the worker. */
void host_finish(struct host_worker *worker, const struct host_run *run,
		 struct host_result *result_r);

/* Spawns a worker and runs the script in it. */
void host_run(struct host *host, const struct host_run *run,
	      struct host_result *result_r);
void host_result_done(struct host_result *result);

#endif
