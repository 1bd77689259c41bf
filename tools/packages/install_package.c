/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the calls of install_package.
 * Reads:   requests of clients. */
#include "tools/shared/tools.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>

#include "base/member.h"
#include "base/why.h"
#include "base/xalloc.h"
#include "mcp/jsonrpc.h"
#include "policy/config.h"
#include "policy/requirement.h"
#include "tools/job/background.h"
#include "tools/packages/consent.h"
#include "tools/packages/delivery.h"
#include "tools/packages/install.h"
#include "tools/packages/schema/install_package_input.h"
#include "tools/packages/schema/install_package_output.h"
#include "tools/shared/argument_map.h"
#include "tools/shared/environment.h"

#define PACKAGES_MAX 64		/* that one call may name */
#define REASON_MAX 1000		/* bytes */
#define NAME_MAX_BYTES 128	/* of a handle, of a profile */

struct tool_run {
	struct tool_host host;
	struct install *install;	/* NULL: it has ended */
	char *session;			/* a handle; NULL: for scripts only */
	struct delivery *delivery;	/* to the session; NULL: not begun */
	json_t *set, *advisories;	/* during the delivery: the installed set, and the
					 * message about it */
	char *message;
	json_t *asked;			/* the arguments, without the reason */
	LIST_ENTRY(tool_run) of_jobs;
	bool is_listed;			/* in jobs */
};

/* The runs that are jobs, because they wait for a person. */
static LIST_HEAD(, tool_run) jobs = LIST_HEAD_INITIALIZER(jobs);

/* All borrowed but the list. */
struct arguments {
	json_t *packages;		/* texts of set_requirement */
	const char *session, *profile, *reason;	/* NULL: not given */
	const json_t *has;		/* the set of the session; NULL: it has none */
};

/* ---- the answer ---- */

static void
answer_result(const struct install_result *result, const struct tool_host *host)
{
	struct tool_writer w;
	const json_t *package;
	size_t i;

	tool_write(&w, host);
	w.answer.is_error = result->status == INSTALL_ERROR || result->status == INSTALL_DENIED;
	fprintf(w.text, "%s: %s\n", install_status_name(result->status), result->message);
	json_array_foreach(result->packages, i, package)
		fprintf(w.text, "%s %s (%s, %" JSON_INTEGER_FORMAT " bytes, %s%s)\n",
			member_text(package, "name"), member_text(package, "version"),
			member_text(package, "index"),
			json_integer_value(json_object_get(package, "size")),
			member_text(package, "hash"),
			json_object_get(package, "built") ? ", built from source" : "");
	json_array_foreach(result->advisories, i, package)
		consent_say_advisory(w.text, package);
	if (w.for_programs) {
		jsonout_open(&w.structured, '{');
		jsonout_member_text(&w.structured, "status", install_status_name(result->status));
		if (result->approval_id)
			jsonout_member_text(&w.structured, "approval_id", result->approval_id);
		if (result->job)
			jsonout_member_text(&w.structured, "job", result->job);
		jsonout_key(&w.structured, "packages");
		if (result->packages)
			jsonrpc_write_value(&w.structured, result->packages);
		else
			jsonout_raw(&w.structured, "[]", 2);
		if (result->advisories) {
			jsonout_key(&w.structured, "advisories");
			jsonrpc_write_value(&w.structured, result->advisories);
		}
		jsonout_member_text(&w.structured, "message", result->message);
		jsonout_close(&w.structured, '}');
	}
	tool_give(&w);
}

static void
package_refuse(const char *reason, const char *text, const struct tool_host *host)
{
	const struct install_result result = {
		.status = strcmp(reason, TOOL_DENIED) == 0 ? INSTALL_DENIED : INSTALL_ERROR,
		.message = text,
	};

	answer_result(&result, host);
}

/* ---- the arguments ---- */

static int
read_requirement(const json_t *item, size_t i, json_t *list, struct why *why_r)
{
	struct requirement requirement;
	char *text;
	int r = -EINVAL;

	if (json_is_string(item))
		r = requirement_read(json_string_value(item), json_string_length(item),
				     &requirement);
	xassert(r != -ENOMEM);
	if (r < 0)
		return why_say(why_r, r, "packages", "packages: item %zu is not a requirement "
			       "(PEP 508), such as rich or numpy>=1.24", i);
	text = set_requirement(&requirement);
	json_array_append_new(list, xalloc_check(json_string(text)));
	free(text);
	requirement_done(&requirement);
	return r;
}

static int
read_packages(const struct argument *a, const json_t *value, struct reading *in)
{
	struct arguments *to = in->to;
	const json_t *item;
	size_t i;

	if (!json_is_array(value) || json_array_size(value) == 0 ||
	    json_array_size(value) > PACKAGES_MAX)
		return why_say(in->why, -EINVAL, a->name, "packages must be an array of 1 to "
			       "%d requirements", PACKAGES_MAX);
	json_array_foreach(value, i, item)
		if (read_requirement(item, i, to->packages, in->why) < 0)
			return -EINVAL;
	return 0;
}

static const struct argument map[] = {
	{ "packages", read_packages, .needed = "an array of requirements" },
	{ "session", argument_string, .at = offsetof(struct arguments, session), .most = NAME_MAX_BYTES },
	{ "profile", argument_string, .at = offsetof(struct arguments, profile), .most = NAME_MAX_BYTES },
	{ "reason", argument_string, .at = offsetof(struct arguments, reason), .most = REASON_MAX },
};

/* A session has its profile, and keeps the packages that it has. */
static int
look_at_session(const struct tool_host *host, struct arguments *arguments,
		struct why *why_r)
{
	const struct repl_session *session;
	const struct repl_packages *has;
	const char *profile;
	json_t *list;
	int r;

	if (!arguments->session)
		return 0;
	session = repl_session_find(host->tenant, arguments->session);
	if (!session || !session->origin)
		return why_say(why_r, -ESRCH, "session", "there is no such session: it was "
			       "closed, it expired, or it never was");
	profile = session->origin->profile;
	if (!profile)
		profile = host->config->profile[0].name;
	if (arguments->profile && strcmp(arguments->profile, profile) != 0)
		return why_say(why_r, -EINVAL, "profile", "profile: the session has %s",
			       profile);
	arguments->profile = profile;
	has = repl_session_packages(session);
	arguments->has = has ? has->set : NULL;
	r = delivery_requirements(session, arguments->packages, &list, why_r);
	if (r < 0)
		return r;
	json_decref(arguments->packages);
	arguments->packages = list;
	return 0;
}

/* ---- the run ---- */

static void
package_free_run(struct tool_run *run)
{
	if (run->is_listed)
		LIST_REMOVE(run, of_jobs);
	json_decref(run->asked);
	json_decref(run->set);
	json_decref(run->advisories);
	free(run->message);
	free(run->session);
	free(run);
}

static void
on_delivered(void *arg, const char *trouble)
{
	struct tool_run *run = arg;
	struct tool_host host = run->host;
	struct install_result result = {
		.status = trouble ? INSTALL_ERROR : INSTALL_OK,
		.packages = run->set,
		.advisories = run->advisories,
	};
	char *message;

	message = xasprintf("%s, and the session %s%s", run->message,
			    trouble ? "has not got them: " : "has them", trouble ? trouble : "");
	result.message = message;
	answer_result(&result, &host);
	free(message);
	package_free_run(run);
}

static void
on_done(void *arg, const struct install_result *result)
{
	struct tool_run *run = arg;
	struct tool_host host = run->host;

	run->install = NULL;
	if (run->session && result->environment) {
		const struct repl_packages packages = { result->environment, result->packages };
		struct why why = { .field = "" };

		/* The set is installed, and goes to the session now. */
		run->message = xstrdup(result->message);
		run->set = json_incref((json_t *)result->packages);
		run->advisories = json_incref((json_t *)result->advisories);
		if (delivery_start(&run->host, run->session, &packages, on_delivered, run,
				   &run->delivery, &why) < 0)
			on_delivered(run, why.text);
		return;
	}
	package_free_run(run);
	answer_result(result, &host);
}

static int
package_begin(struct tool_run *run, const json_t *json, struct why *why_r)
{
	struct arguments arguments = { .packages = xalloc_check(json_array()) };
	struct install_request request = { .profile = NULL };
	struct reading in = { install_package_tool.name, .to = &arguments, .why = why_r };
	int r = argument_map_read(map, 4, json, &in);

	if (r == 0)
		r = look_at_session(&run->host, &arguments, why_r);
	if (r == 0)
		r = environment_profile(&run->host, arguments.profile, &request.profile,
					why_r);
	if (r == 0) {
		run->session = arguments.session ? xstrdup(arguments.session) : NULL;
		request.requirements = arguments.packages;
		request.has = arguments.has;
		request.reason = arguments.reason;
		r = install_start(&run->host, &request, on_done, run, &run->install, why_r);
	}
	json_decref(arguments.packages);
	return r;
}

/* Answers that the run waits for a person, and goes on as a job. */
static void
say_job(const struct tool_run *run, const char *waits, const struct tool_host *caller)
{
	struct install_result result;
	char message[TOOL_WAITS_MAX + 128];

	install_waiting(run->install, &result);
	snprintf(message, sizeof(message), "the call %s. Tell your user. It goes on as job %s, which "
		 "the tool job follows", waits, run->host.job);
	result.message = message;
	result.job = run->host.job;
	answer_result(&result, caller);
}

static void
package_tell_job(struct tool_run *run, const struct tool_host *job, const char *waits,
		 const struct tool_host *caller)
{
	if (!run->is_listed)
		LIST_INSERT_HEAD(&jobs, run, of_jobs);
	run->is_listed = true;
	run->host = *job;
	say_job(run, waits, caller);
}

/* Answers a call for what a job of the tenant waits for already. False: there is no such job. */
static bool
waits_already(const struct tool_host *host, const json_t *asked)
{
	struct job_view view;
	struct tool_run *run;

	LIST_FOREACH(run, &jobs, of_jobs) {
		if (run->host.tenant != host->tenant || !json_equal(run->asked, asked))
			continue;
		background_view(background_find(host->tenant, run->host.job), &view);
		if (!*view.waits)
			continue;
		say_job(run, view.waits, host);
		return true;
	}
	return false;
}

static struct tool_run *
package_start(const struct tool_host *host, const json_t *json)
{
	struct tool_run *run = xcalloc(1, sizeof(*run));
	struct why why = { .field = "" };
	int r;

	run->host = *host;
	run->asked = xalloc_check(json_copy((json_t *)json));
	json_object_del(run->asked, "reason");
	if (waits_already(host, run->asked)) {
		package_free_run(run);
		return NULL;
	}
	r = package_begin(run, json, &why);
	if (r == 0)
		return run;
	package_free_run(run);
	package_refuse(r == -EACCES ? TOOL_DENIED : "", why.text, host);
	return NULL;
}

static void
package_cancel(struct tool_run *run, enum cancel_reason reason)
{
	if (run->install)
		install_cancel(run->install, reason);
	if (run->delivery)
		delivery_cancel(run->delivery);
	package_free_run(run);
}

static void
package_reply(struct tool_run *run, const struct tool_reply *replies, size_t n, const char *state)
{
	(void)n;
	(void)state;
	install_reply(run->install, replies);
}

const struct tool install_package_tool = {
	.name = "install_package",
	.policy = "install_package",
	.refuse = package_refuse,
	.answer_job = package_tell_job,
	.long_status = "the packages are being installed",
	.says = {
		.title = "Install Python packages",
		.icon = ICON_PACKAGE,
		.hint =
			"Packages that are missing are installed by install_package, or by the "
			"argument dependencies of a call.",
		.description =
			"Install Python packages, and what they depend on, as far as the "
			"operator's policy allows; a person may have to approve it. Your scripts "
			"then find them by a plain import; with session that session has them from "
			"its next cell on. Answers versions and hashes, or why not.",
		.input_schema = install_package_input_schema,
		.output_schema = install_package_output_schema,
		.idempotent = true,
		.open_world = true,
		.task = TOOL_TASK_MAY,
	},
	.start = package_start,
	.cancel = package_cancel,
	.reply = package_reply,
	.asks_first = true,
};
