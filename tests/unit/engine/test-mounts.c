/* SPDX-License-Identifier: Apache-2.0 */
/* A worker that the keeper may have given a tenant's files, and whose order cannot be written,
 * runs nothing else. Exits 77 when the worker program is not built. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <event2/event.h>

#include "engine_rig.h"
#include "base/log.h"
#include "engine/engine_parts.h"
#include "engine/keeper.h"
#include "engine/pool.h"
#include "engine/tenant.h"
#include "engine/tenants.h"
#include "engine/worker.h"
#include "host/filestore.h"

#define URI "mcp-python://x-file/data"

/* ---- a keeper that takes every order ---- */

static unsigned int orders;

bool __wrap_keeper_is_there(const struct keeper *keeper);
int __wrap_keeper_attach_files(struct keeper *keeper, const char *directory,
			       const char *const *names, size_t n, unsigned int first, int pidfd,
			       int gate);

bool
__wrap_keeper_is_there(const struct keeper *keeper)
{
	return keeper;
}

int
__wrap_keeper_attach_files(struct keeper *keeper, const char *directory,
			   const char *const *names, size_t n, unsigned int first, int pidfd,
			   int gate)
{
	(void)directory;
	(void)names;
	assert_non_null(keeper);
	assert_int_equal(n, 1);
	assert_int_equal(first, 0);
	assert_true(pidfd >= 0);
	close(gate);
	orders++;
	return 0;
}

/* ---- a file ---- */

static char directory[] = "/tmp/test-mounts-XXXXXX";

static void
on_begin(void *arg, int fd)
{
	(void)arg;
	assert_int_equal(write(fd, "data", 4), 4);
	close(fd);
}

static void
on_end(void *arg, int error)
{
	assert_int_equal(error, 0);
	*(bool *)arg = true;
}

static struct filestore *
store_with_a_file(void)
{
	const struct filestore_bounds bounds = { .file_bytes = 4096, .tenant_bytes = 4096,
						 .bytes_max = 4096, .tenant_files = 4,
						 .keep_seconds = 3600, .place_seconds = 60 };
	struct filestore *store;
	bool kept = false;
	const struct filestore_calls calls = { .begin = on_begin, .end = on_end,
					       .arg = &kept };

	assert_non_null(mkdtemp(directory));
	assert_int_equal(filestore_new(directory, &bounds, &store), 0);
	filestore_watch(store, rig.base);
	filestore_keep(store, tenant_principal(rig.tenant), URI, "data", 4, 4, &calls);
	rig_turn_until(&kept);
	return store;
}

static int
remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)kind;
	(void)at;
	return remove(path);
}

/* ---- the test ---- */

/* The worker that the next script gets. */
static struct worker *
next_worker(void)
{
	struct worker *w;

	while (!(w = share_warm_worker(&rig.tenant->share[0])))
		event_base_loop(rig.base, EVLOOP_ONCE);
	return w;
}

static void
a_worker_that_may_have_files_is_ended(void **state)
{
	const struct execution_input input = { .path = "x", .path_len = 1, .uri = URI };
	struct execution_request request = rig_request();
	struct rig_result r;
	struct worker *w;
	uint64_t serial;

	(void)state;
	rig_run(&r, "1");
	rig.engine->options.filestore = store_with_a_file();
	rig.engine->keeper = (struct keeper *)&orders;
	request.input = &input;
	request.n_inputs = 1;
	/* LINK, which comes after the keeper's order, does not fit. */
	w = next_worker();
	serial = w->serial;
	w->writer.bytes_max = 1;
	rig_start(&r, "1", &request);
	rig_turn_until(&r.over);
	rig_assert_status(&r, OUTCOME_OVERLOADED);
	assert_int_equal(orders, 1);
	w = pool_find(rig.engine, serial);
	assert_true(!w || w->state == WORKER_ENDING);
	/* One that is being made now would outlive the rig for a moment. */
	while (rig.tenant->share[0].n_starting > 0)
		event_base_loop(rig.base, EVLOOP_ONCE);
	rig.engine->keeper = NULL;
	filestore_free(rig.engine->options.filestore);
	rig.engine->options.filestore = NULL;
	nftw(directory, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static int
run_group(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_worker_that_may_have_files_is_ended),
	};

	return cmocka_run_group_tests(tests, rig_set_up, rig_tear_down);
}

int
main(void)
{
	if (!rig_open_programs())
		return 77;
	log_init(LOG_WARNING);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	return rig_in_child(run_group, true);
}
