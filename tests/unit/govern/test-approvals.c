/* SPDX-License-Identifier: Apache-2.0 */
/* Approvals: who may decide, once; what is remembered, used up, revoked, over in time; and that
 * a restart knows the same, wherever the file was torn. */
#include "govern/approvals.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <event2/event.h>

#include "base/fair.h"
#include "base/why.h"
#include "govern/approvals_file.h"
#include "govern/writer.h"
#include "policy/config.h"
#include "policy/keys.h"

#include "../base/set_clock.h"

static const struct policy_subject alice = { .principal = "uid:1000" };
static const struct policy_subject bob = { .principal = "uid:1001" };
static const struct policy_subject root = { .principal = "uid:0" };

static pthread_mutex_t disk = PTHREAD_MUTEX_INITIALIZER;	/* held: it does not answer */
static bool sync_fails;

int
fdatasync(int fd)
{
	bool fails;

	pthread_mutex_lock(&disk);
	fails = sync_fails;
	pthread_mutex_unlock(&disk);
	errno = EIO;
	return fails ? -1 : fsync(fd);
}

/* A machine of 2 GiB. */
long
sysconf(int name)
{
	/* A sanitizer asks for the stack of signals. */
	return name == _SC_PHYS_PAGES ? 524288 : name == _SC_PAGESIZE ? 4096
	     : name == _SC_SIGSTKSZ ? 65536 : -1;
}

struct rig {
	char path[32];
	struct event_base *base;
	struct config *config;
	struct approvals *approvals;
	unsigned int told;
	enum approval_state state;
	bool for_run;
};

static const struct policy_subject *
subject_of(void *arg, const char *principal)
{
	(void)arg;
	return strcmp(principal, alice.principal) == 0 ? &alice :
	       strcmp(principal, bob.principal) == 0 ? &bob : &root;
}

static const struct config *
config_of(void *arg, const char *principal)
{
	struct rig *rig = arg;

	(void)principal;
	return config_hold(rig->config);
}

static void
start(struct rig *rig)
{
	const struct approvals_policy policy = { subject_of, config_of, rig };
	struct why why = { .field = "" };

	if (approvals_new(rig->path, NULL, &rig->approvals, &why) < 0)
		fail_msg("%s", why.text);
	approvals_start(rig->approvals, rig->base, &policy);
}

static void
restart(struct rig *rig)
{
	approvals_free(rig->approvals);
	start(rig);
}

static int
set_up(void **state)
{
	struct rig *rig = calloc(1, sizeof(*rig));
	int fd;

	assert_non_null(rig);
	strcpy(rig->path, "test-approvals-XXXXXX");
	fd = mkstemp(rig->path);
	assert_true(fd >= 0);
	close(fd);
	rig->base = event_base_new();
	rig->config = config_new();
	start(rig);
	*state = rig;
	return 0;
}

static int
tear_down(void **state)
{
	struct rig *rig = *state;

	approvals_free(rig->approvals);
	config_free(rig->config);
	event_base_free(rig->base);
	unlink(rig->path);
	free(rig);
	return 0;
}

static void
on_decided(void *arg, const struct approval_decision *decision)
{
	struct rig *rig = arg;

	rig->told++;
	rig->state = decision->state;
	rig->for_run = decision->for_run;
}

static const char *const items[] = { "package a==1 sha256:0", "package b==2 sha256:1" };

/* The id, in memory of the request. */
static const char *
ask(struct rig *rig, size_t n, bool once)
{
	json_t *shown = json_pack("{s:s}", "script", "print(1)");
	const struct approval_request request = {
		.requester = &alice, .config = rig->config, .tool = "install_package",
		.reason = "because", .item = items, .n_items = n, .once = once, .shown = shown,
	};
	const struct approval *approval;
	struct why why = { .field = "" };

	if (approvals_ask(rig->approvals, &request, on_decided, rig, &approval, &why) < 0)
		fail_msg("%s", why.text);
	json_decref(shown);
	return approval_id(approval);
}

static int
decide(struct rig *rig, const char *id, const struct policy_subject *who, bool grant)
{
	struct why why;

	return approvals_decide(rig->approvals, id, who, &(struct approval_decision){
		.state = grant ? APPROVAL_GRANTED : APPROVAL_REFUSED, .why = "so" }, &why);
}

static bool
has(struct rig *rig, const char *who, size_t n)
{
	return approvals_has(rig->approvals, who, items, n);
}

static void
what_is_granted_is_remembered(void **state)
{
	struct rig *rig = *state;
	char id[64], *tenant = NULL;

	strcpy(id, ask(rig, 2, false));
	assert_false(has(rig, "uid:1000", 1));
	assert_int_equal(decide(rig, id, &root, true), 0);
	assert_int_equal(rig->told, 1);
	assert_int_equal(rig->state, APPROVAL_GRANTED);
	for (int i = 0; i < 2; i++) {
		assert_true(has(rig, "uid:1000", 2));
		assert_false(has(rig, "uid:1001", 1));
		assert_int_equal(approvals_use(rig->approvals, "uid:1000", items[0]), 0);
		assert_int_equal(decide(rig, id, &root, false), -EALREADY);
		restart(rig);
	}
	assert_int_equal(approvals_revoke(rig->approvals, id, &bob, &tenant, NULL), -EACCES);
	assert_null(tenant);
	assert_int_equal(approvals_revoke(rig->approvals, id, &root, &tenant, NULL), 0);
	assert_string_equal(tenant, "uid:1000");
	free(tenant);
	assert_false(has(rig, "uid:1000", 1));
	restart(rig);
	assert_false(has(rig, "uid:1000", 1));
	assert_int_equal(approvals_revoke(rig->approvals, id, &root, &tenant, NULL), -EALREADY);
}

static void
who_may_not_cannot(void **state)
{
	struct rig *rig = *state;
	char id[64];

	strcpy(id, ask(rig, 1, false));
	assert_int_equal(decide(rig, id, &bob, true), -EACCES);
	assert_int_equal(decide(rig, id, &alice, true), -EACCES);
	assert_int_equal(decide(rig, "a-nothing", &root, true), -ENOENT);
	assert_null(approvals_show(rig->approvals, id, &bob, false));
	assert_int_equal(rig->told, 0);
	assert_false(has(rig, "uid:1000", 1));
	/* unless policy says so */
	assert_int_equal(key_set(key_at((size_t)key_find("policy", "approvers")), rig->config,
				 "self", false, NULL), 0);
	assert_int_equal(decide(rig, id, &root, true), -EACCES);
	assert_int_equal(decide(rig, id, &alice, true), 0);
	assert_true(has(rig, "uid:1000", 1));
}

static void
a_grant_for_once_is_used_once(void **state)
{
	struct rig *rig = *state;
	char id[64];

	strcpy(id, ask(rig, 1, true));
	assert_int_equal(approvals_use(rig->approvals, "uid:1000", items[0]), 0);
	assert_int_equal(decide(rig, id, &root, true), 0);
	assert_false(has(rig, "uid:1000", 1));
	restart(rig);
	assert_int_equal(approvals_use(rig->approvals, "uid:1001", items[0]), 0);
	assert_int_equal(approvals_use(rig->approvals, "uid:1000", items[1]), 0);
	assert_int_equal(approvals_use(rig->approvals, "uid:1000", items[0]), 1);
	assert_int_equal(approvals_use(rig->approvals, "uid:1000", items[0]), 0);
	restart(rig);
	assert_int_equal(approvals_use(rig->approvals, "uid:1000", items[0]), 0);
}

/* Nobody else has used it. */
static void
a_use_that_is_not_on_the_disk_is_named(void **state)
{
	struct rig *rig = *state;
	char id[64];

	strcpy(id, ask(rig, 1, true));
	assert_int_equal(decide(rig, id, &root, true), 0);
	sync_fails = true;
	assert_int_equal(approvals_use(rig->approvals, "uid:1000", items[0]), -EIO);
	sync_fails = false;
	assert_int_equal(approvals_use(rig->approvals, "uid:1000", items[0]), 1);
	assert_int_equal(approvals_use(rig->approvals, "uid:1000", items[0]), 0);
}

struct noted {
	struct writing_wait wait;
	int n, error;
};

static void
on_noted(void *arg, int error)
{
	struct noted *noted = arg;

	noted->n++;
	noted->error = error;
}

static void
sync_all(struct rig *rig, struct noted *noted)
{
	*noted = (struct noted){ .wait = { .on_written = on_noted, .arg = noted } };
	assert_int_equal(approvals_sync(rig->approvals, &noted->wait), -EINPROGRESS);
}

static void
set_disk(bool fails)
{
	sync_fails = fails;
	pthread_mutex_unlock(&disk);
}

static void
wait_noted(struct rig *rig, const struct noted *noted)
{
	while (noted->n == 0)
		event_base_loop(rig->base, EVLOOP_ONCE);
}

/* What waits for the file has it, and all else goes on. A use that the disk refuses can be made
 * later. */
static void
nothing_else_waits_for_the_disk(void **state)
{
	struct rig *rig = *state;
	struct noted first, gone, second;
	char id[64];

	assert_int_equal(approvals_start_thread(rig->approvals), 0);
	pthread_mutex_lock(&disk);
	strcpy(id, ask(rig, 1, true));
	assert_int_equal(decide(rig, id, &root, true), 0);
	assert_int_equal(approvals_use(rig->approvals, "uid:1000", items[0]), 1);
	assert_int_equal(approvals_use(rig->approvals, "uid:1000", items[0]), 0);
	sync_all(rig, &first);
	sync_all(rig, &gone);
	writing_unwait(&gone.wait);
	event_base_loop(rig->base, EVLOOP_NONBLOCK);
	assert_int_equal(first.n, 0);
	set_disk(false);
	wait_noted(rig, &first);
	assert_int_equal(first.error, 0);
	pthread_mutex_lock(&disk);
	strcpy(id, ask(rig, 1, true));
	assert_int_equal(decide(rig, id, &root, true), 0);
	assert_int_equal(approvals_use(rig->approvals, "uid:1000", items[0]), 1);
	sync_all(rig, &second);
	set_disk(true);
	wait_noted(rig, &second);
	assert_int_equal(second.error, -EIO);
	pthread_mutex_lock(&disk);
	set_disk(false);
	assert_int_equal(approvals_use(rig->approvals, "uid:1000", items[0]), 1);
	sync_all(rig, &second);
	wait_noted(rig, &second);
	assert_int_equal(second.error, 0);
	assert_int_equal(gone.n, 0);
	restart(rig);
	assert_int_equal(approvals_use(rig->approvals, "uid:1000", items[0]), 0);
}

/* A start has no other clock. */
static void
a_clock_that_jumps_expires_nothing(void **state)
{
	struct rig *rig = *state;
	char id[64];

	strcpy(id, ask(rig, 1, false));
	the_jump = 365 * 86400;
	(void)ask(rig, 2, false);
	the_jump = 0;
	assert_int_equal(rig->told, 0);
	assert_int_equal(decide(rig, id, &root, true), 0);
}

/* It is made again from memory: by the next decision, or within a second. */
static void
a_file_that_vanishes_is_made_again(void **state)
{
	struct rig *rig = *state;
	char id[64];

	strcpy(id, ask(rig, 1, false));
	assert_int_equal(unlink(rig->path), 0);
	assert_int_equal(decide(rig, id, &root, true), 0);
	assert_int_equal(access(rig->path, F_OK), 0);
	restart(rig);
	assert_true(has(rig, "uid:1000", 1));
	assert_int_equal(unlink(rig->path), 0);
	while (access(rig->path, F_OK) < 0)
		event_base_loop(rig->base, EVLOOP_ONCE);
	restart(rig);
	assert_true(has(rig, "uid:1000", 1));
}

static void
the_same_request_is_one(void **state)
{
	struct rig *rig = *state;
	char id[64];
	json_t *list;

	strcpy(id, ask(rig, 2, false));
	assert_string_equal(ask(rig, 2, false), id);
	assert_string_not_equal(ask(rig, 1, false), id);
	approvals_unwatch(rig->approvals, alice.principal, rig);
	restart(rig);
	list = approvals_list(rig->approvals, &root, false, false);
	assert_int_equal(json_array_size(list), 2);
	json_decref(list);
	list = approvals_list(rig->approvals, &bob, false, true);
	assert_int_equal(json_array_size(list), 0);
	json_decref(list);
	assert_int_equal(decide(rig, id, &root, false), 0);
	assert_int_equal(rig->told, 0);		/* no caller waits any more */
}

static int
check_denied(struct rig *rig, const struct policy_subject *who, struct why *why_r)
{
	const struct approval_request request = {
		.requester = who, .config = rig->config, .tool = "install_package",
		.item = items, .n_items = 2,
	};

	return approvals_check_denied(rig->approvals, &request, why_r);
}

/* Asks for the same as ask(), which is denied. */
static void
is_denied(struct rig *rig, const struct policy_subject *who, int want, struct why *why_r)
{
	const struct approval_request request = {
		.requester = who, .config = rig->config, .tool = "install_package",
		.item = items, .n_items = 2,
	};
	const struct approval *approval;

	assert_int_equal(approvals_check_denied(rig->approvals, &request, why_r), want);
	if (want < 0)
		assert_int_equal(approvals_ask(rig->approvals, &request, NULL, NULL, &approval,
					       why_r), want);
}

static json_int_t
denied_until_of(struct rig *rig, bool with_decided)
{
	json_t *list = approvals_list(rig->approvals, &root, false, with_decided);
	json_t *one = json_array_get(list, 0);
	json_int_t until = json_integer_value(json_object_get(one, "denied_until"));

	assert_int_equal(json_array_size(list), 1);
	json_decref(list);
	return until;
}

static void
a_denial_stands(void **state)
{
	struct rig *rig = *state;
	struct why why = { .text = "" };
	char id[64];

	strcpy(id, ask(rig, 2, true));
	assert_int_equal(approvals_decide(rig->approvals, id, &root, &(struct approval_decision){
		.state = APPROVAL_REFUSED, .why = "use \"c\"\x1b[2J" }, &why), 0);
	for (int i = 0; i < 2; i++) {
		the_jump = 365 * 86400;		/* somebody sets the clock */
		is_denied(rig, &alice, -EACCES, &why);
		the_jump = 0;
		is_denied(rig, &alice, -EACCES, &why);
		assert_non_null(strstr(why.text, id));
		assert_non_null(strstr(why.text, "\"use \\\"c\\\"\\x1b[2J\""));
		is_denied(rig, &bob, 0, &why);
		assert_true(denied_until_of(rig, false) > 0);
		assert_int_equal(approvals_pending(rig->approvals), 0);
		assert_int_equal(decide(rig, id, &root, false), -EALREADY);
		restart(rig);
	}
	/* other items are another request, which waits */
	assert_string_not_equal(ask(rig, 1, true), id);
}

static void
a_denial_can_be_turned_round(void **state)
{
	struct rig *rig = *state;
	struct why why;
	char id[64];

	strcpy(id, ask(rig, 2, true));
	assert_int_equal(decide(rig, id, &root, false), 0);
	assert_int_equal(decide(rig, id, &bob, true), -EACCES);
	assert_int_equal(decide(rig, id, &root, true), 0);
	is_denied(rig, &alice, 0, &why);
	assert_int_equal(decide(rig, id, &root, false), -EALREADY);
	restart(rig);
	is_denied(rig, &alice, 0, &why);
	assert_int_equal(denied_until_of(rig, true), 0);
	assert_int_equal(approvals_use(rig->approvals, "uid:1000", items[0]), 1);
}

static void
a_denial_is_over_in_time(void **state)
{
	struct rig *rig = *state;
	struct why why;
	char id[64];

	rig->config->policy.denied_seconds = 1;
	strcpy(id, ask(rig, 2, true));
	assert_int_equal(decide(rig, id, &root, false), 0);
	while (check_denied(rig, &alice, &why) < 0)
		event_base_loop(rig->base, EVLOOP_NONBLOCK);
	/* The seconds of the two clocks begin at different moments. */
	assert_true(time(NULL) + 1 >= denied_until_of(rig, true));
	assert_int_equal(decide(rig, id, &root, true), -EALREADY);
	/* 0: at once */
	rig->config->policy.denied_seconds = 0;
	strcpy(id, ask(rig, 2, true));
	assert_int_equal(decide(rig, id, &root, false), 0);
	is_denied(rig, &alice, 0, &why);
	assert_string_not_equal(ask(rig, 2, true), id);
}

static void
time_runs_out(void **state)
{
	struct rig *rig = *state;
	char id[64];

	rig->config->policy.approval_seconds = 1;
	strcpy(id, ask(rig, 1, false));
	while (rig->told == 0)
		event_base_loop(rig->base, EVLOOP_ONCE);
	assert_int_equal(rig->told, 1);
	assert_int_equal(rig->state, APPROVAL_EXPIRED);
	assert_int_equal(decide(rig, id, &root, true), -EALREADY);
	restart(rig);
	assert_int_equal(decide(rig, id, &root, true), -EALREADY);
	assert_false(has(rig, "uid:1000", 1));
}

/* All of the tenant's requests wait: one that is refused does not let it ask another question. */
static void
a_denial_makes_no_room(struct rig *rig, const struct approval_request *request)
{
	json_t *list = approvals_list(rig->approvals, &root, false, false);
	const json_t *first = json_array_get(list, 0);
	const struct approval *approval;
	struct why why;

	assert_int_equal(decide(rig, json_string_value(json_object_get(first, "id")), &root, false),
			 0);
	json_decref(list);
	assert_int_equal(approvals_ask(rig->approvals, request, NULL, NULL, &approval, &why),
			 -EDQUOT);
	rig->config->policy.denied_seconds = 0;
	list = approvals_list(rig->approvals, &root, false, false);
	first = json_array_get(list, 1);
	assert_int_equal(decide(rig, json_string_value(json_object_get(first, "id")), &root, false),
			 0);
	json_decref(list);
	assert_int_equal(approvals_ask(rig->approvals, request, NULL, NULL, &approval, &why), 0);
}

static void
too_many_are_refused(void **state)
{
	struct rig *rig = *state;
	struct approval_request request = { .requester = &alice, .config = rig->config,
					    .tool = "run_script", .n_items = 1 };
	const struct approval *approval;
	struct why why;

	for (int i = 0; i <= APPROVALS_PER_TENANT; i++) {
		char text[32];
		const char *item = text;

		snprintf(text, sizeof(text), "run_script %d", i);
		request.item = &item;
		assert_int_equal(approvals_ask(rig->approvals, &request, NULL, NULL, &approval,
					       &why),
				 i < APPROVALS_PER_TENANT ? 0 : -EDQUOT);
	}
	request.requester = &bob;
	request.item = items;
	assert_int_equal(approvals_ask(rig->approvals, &request, NULL, NULL, &approval, &why), 0);
	request.requester = &alice;
	a_denial_makes_no_room(rig, &request);
}

/* However much others ask for, there is room for a small request of one who has none. */
static void
tenants_have_shares_of_the_memory(void **state)
{
	struct rig *rig = *state;
	static char large[APPROVAL_SHOWN_MAX - 100];
	struct policy_subject who = { .principal = "uid:0" };
	struct approval_request request = { .requester = &who, .config = rig->config,
					    .tool = "run_script", .n_items = 1 };
	const struct approval *approval;
	struct approvals *approvals;
	uint64_t all = 0;
	struct why why;
	int r;

	assert_int_equal(approvals_new(NULL, NULL, &approvals, &why), 0);
	memset(large, 'x', sizeof(large) - 1);
	request.shown = json_pack("{s:s}", "script", large);
	for (unsigned int i = 1; i <= 100; i++) {
		char name[16], text[32];
		const char *item = text;

		snprintf(name, sizeof(name), "uid:%u", i);
		who.principal = name;
		request.item = &item;
		for (unsigned int n = 0;; n++) {
			snprintf(text, sizeof(text), "run_script %u", n);
			r = approvals_ask(approvals, &request, NULL, NULL, &approval, &why);
			if (r < 0)
				break;
			all += sizeof(large);
		}
		assert_int_equal(r, -EDQUOT);
	}
	assert_non_null(strstr(why.text, "of all users"));
	assert_true(all < fair_memory(16));
	json_decref(request.shown);
	request.shown = json_pack("{s:s}", "script", "1");
	who.principal = "uid:101";
	request.item = items;
	assert_int_equal(approvals_ask(approvals, &request, NULL, NULL, &approval, &why), 0);
	json_decref(request.shown);
	approvals_free(approvals);
}

/* A request that a person could not be shown as a whole, or would not read, is refused. */
static void
what_cannot_be_shown_is_refused(void **state)
{
	struct rig *rig = *state;
	struct approval_request request = { .requester = &alice, .config = rig->config,
					    .tool = "run_script", .item = items, .n_items = 1 };
	static char large[APPROVAL_SHOWN_MAX];
	const struct approval *approval;
	int asked = 0, r = 0;
	struct why why;

	request.shown = json_pack("{s:[s,{s:s%}]}", "a", "b", "script", "x\0y", (size_t)3);
	assert_non_null(request.shown);
	assert_int_equal(approvals_ask(rig->approvals, &request, NULL, NULL, &approval, &why),
			 -EINVAL);
	json_decref(request.shown);
	memset(large, 'x', sizeof(large) - 1);
	request.shown = json_pack("{s:s}", "script", large);
	assert_int_equal(approvals_ask(rig->approvals, &request, NULL, NULL, &approval, &why),
			 -E2BIG);
	json_decref(request.shown);
	large[APPROVAL_SHOWN_MAX - 100] = '\0';
	request.shown = json_pack("{s:s}", "script", large);
	while (r == 0 && asked < APPROVALS_PER_TENANT) {
		char text[32];
		const char *item = text;

		snprintf(text, sizeof(text), "run_script %d", asked++);
		request.item = &item;
		r = approvals_ask(rig->approvals, &request, NULL, NULL, &approval, &why);
	}
	assert_int_equal(r, -EDQUOT);
	assert_int_equal(asked, APPROVALS_SHOWN_PER_TENANT / APPROVAL_SHOWN_MAX + 1);
	json_decref(request.shown);
}

static size_t
count(struct rig *rig, const struct policy_subject *tenant)
{
	json_t *list = approvals_list(rig->approvals, tenant, false, true);
	size_t n = json_array_size(list);

	json_decref(list);
	return n;
}

/* A request of this tenant that is granted and used. */
static void
pass(struct rig *rig, const struct policy_subject *tenant, unsigned int number)
{
	char text[32];
	const char *const item[] = { text };
	const struct approval_request request = { .requester = tenant, .config = rig->config,
						  .tool = "run_script", .item = item,
						  .n_items = 1, .once = true };
	const struct approval *approval;
	struct why why = { .field = "" };

	snprintf(text, sizeof(text), "run_script %u", number);
	if (approvals_ask(rig->approvals, &request, NULL, NULL, &approval, &why) < 0)
		fail_msg("%s", why.text);
	assert_int_equal(decide(rig, approval_id(approval), &root, true), 0);
	assert_int_equal(approvals_use(rig->approvals, tenant->principal, text), 1);
}

/* The file becomes shorter, too; what waits or is granted stays, however old it is. */
static void
what_is_past_is_forgotten(void **state)
{
	const unsigned int many = 3 * APPROVALS_PAST_PER_TENANT;
	struct rig *rig = *state;
	struct stat before, after;
	char waits[64], granted[64];

	strcpy(granted, ask(rig, 1, false));
	assert_int_equal(decide(rig, granted, &root, true), 0);
	strcpy(waits, ask(rig, 2, true));
	approvals_unwatch(rig->approvals, alice.principal, rig);
	pass(rig, &bob, 0);
	for (unsigned int i = 0; i < many; i++)
		pass(rig, &alice, i);
	assert_int_equal(count(rig, &alice), 2 + APPROVALS_PAST_PER_TENANT + 1);
	assert_int_equal(count(rig, &bob), 1);
	assert_int_equal(stat(rig->path, &before), 0);
	for (unsigned int i = 0; i < many; i++)
		pass(rig, &alice, i);
	assert_int_equal(stat(rig->path, &after), 0);
	assert_true(after.st_size < before.st_size * 3 / 2);
	restart(rig);
	assert_true(count(rig, &alice) <= 2 + 2 * APPROVALS_PAST_PER_TENANT + 1);
	assert_int_equal(count(rig, &bob), 1);
	assert_true(has(rig, "uid:1000", 1));
	assert_int_equal(decide(rig, waits, &root, true), 0);
}

/* Cut anywhere: what is whole counts, and no grant comes out of a torn line. */
static void
a_torn_file_grants_no_more(void **state)
{
	struct rig *rig = *state;
	char id[64];
	FILE *file;
	long whole, asked;
	static char text[65536];
	size_t len;

	strcpy(id, ask(rig, 1, false));
	file = fopen(rig->path, "re");
	fseek(file, 0, SEEK_END);
	asked = ftell(file);
	fclose(file);
	assert_int_equal(decide(rig, id, &root, true), 0);
	file = fopen(rig->path, "re");
	len = fread(text, 1, sizeof(text), file);
	fclose(file);
	whole = (long)len;
	for (long cut = 0; cut <= whole; cut++) {
		file = fopen(rig->path, "we");
		assert_int_equal(fwrite(text, 1, (size_t)cut, file), cut);
		fclose(file);
		restart(rig);
		assert_int_equal(has(rig, "uid:1000", 1), cut == whole);
		assert_int_equal(decide(rig, id, &root, false),
				 cut < asked ? -ENOENT : cut < whole ? 0 : -EALREADY);
	}
}

static void
what_is_no_such_file_is_an_error(void **state)
{
	struct rig *rig = *state;
	struct approvals *approvals;
	struct why why;
	FILE *file = fopen(rig->path, "we");

	fputs("{\"do\":\"decide\",\"id\":\"a-x\",\"state\":\"granted\"}\n", file);
	fclose(file);
	assert_int_equal(approvals_new(rig->path, NULL, &approvals, &why), -EBADMSG);
	file = fopen(rig->path, "we");
	fputs("nothing\n", file);
	fclose(file);
	assert_int_equal(approvals_new(rig->path, NULL, &approvals, &why), -EBADMSG);
}

/* Else what was granted and denied would be gone, and be written down so. */
static void
what_cannot_be_read_is_not_empty(void **)
{
	struct why why = { .text = "" };

	assert_int_equal(approvals_file_read("/proc", NULL, NULL, &why), -EISDIR);
	assert_string_equal(why.text, "[admin] approvals = /proc: Is a directory");
	assert_int_equal(approvals_file_read("/nowhere", NULL, NULL, &why), 0);
}

/* Only calls of scripts have a run; those who wait are told, and nothing more is remembered. */
static void
calls_are_granted_for_a_run(void **state)
{
	const struct approval_decision granted = { .state = APPROVAL_GRANTED, .for_run = true };
	struct rig *rig = *state;
	struct approval_request request = {
		.requester = &alice, .config = rig->config, .tool = APPROVAL_OF_CALLS,
		.item = items, .n_items = 1, .once = true,
	};
	const struct approval *approval;
	struct why why = { .text = "" };
	char id[64];

	strcpy(id, ask(rig, 1, true));
	assert_int_equal(approvals_decide(rig->approvals, id, &root, &granted, &why), -EINVAL);
	assert_string_equal(why.field, "for_run");
	assert_int_equal(rig->told, 0);
	assert_int_equal(decide(rig, id, &root, false), 0);
	assert_false(rig->for_run);
	assert_int_equal(approvals_ask(rig->approvals, &request, on_decided, rig, &approval, &why),
			 0);
	strcpy(id, approval_id(approval));
	assert_int_equal(approvals_decide(rig->approvals, id, &root, &(struct approval_decision){
		.state = APPROVAL_REFUSED, .for_run = true }, &why), -EINVAL);
	assert_int_equal(approvals_decide(rig->approvals, id, &root, &granted, &why), 0);
	assert_int_equal(rig->told, 2);
	assert_true(rig->for_run);
	assert_int_equal(approvals_use(rig->approvals, alice.principal, items[0]), 1);
	assert_int_equal(approvals_use(rig->approvals, alice.principal, items[0]), 0);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(what_is_granted_is_remembered),
		TEST(who_may_not_cannot),
		TEST(a_grant_for_once_is_used_once),
		TEST(calls_are_granted_for_a_run),
		TEST(the_same_request_is_one),
		TEST(a_denial_stands),
		TEST(a_denial_can_be_turned_round),
		TEST(a_denial_is_over_in_time),
		TEST(time_runs_out),
		TEST(a_use_that_is_not_on_the_disk_is_named),
		TEST(nothing_else_waits_for_the_disk),
		TEST(a_clock_that_jumps_expires_nothing),
		TEST(a_file_that_vanishes_is_made_again),
		TEST(tenants_have_shares_of_the_memory),
		TEST(too_many_are_refused),
		TEST(what_cannot_be_shown_is_refused),
		TEST(what_is_past_is_forgotten),
		TEST(a_torn_file_grants_no_more),
		TEST(what_is_no_such_file_is_an_error),
		cmocka_unit_test(what_cannot_be_read_is_not_empty),
	};

	return cmocka_run_group_tests_name("approvals", tests, NULL, NULL);
}
