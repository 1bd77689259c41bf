/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing.
 * Reads:   requests of operators; the beginnings of tenants' scripts, which are hostile to a
 *          terminal (the client quotes them). */
#include "supervisor/operate/running.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/handle.h"
#include "base/utf8.h"
#include "base/why.h"
#include "base/xalloc.h"
#include "engine/engine.h"
#include "engine/ready.h"
#include "engine/survey.h"
#include "govern/audit.h"
#include "govern/gate.h"
#include "supervisor/operate/operation_parts.h"
#include "tools/session/repl_sessions.h"
#include "tools/shared/links.h"

#define LINE_MAX_BYTES 120	/* of a script, in the list */
#define PRINCIPAL_MOST 1024	/* bytes */
#define ELLIPSIS 3		/* bytes of "...", at the end of a handle that is not shown whole */

/* ---- what there is ---- */

/* The first line that is not empty, cut in whole characters. */
static json_t *
first_line(const char *text, size_t len)
{
	size_t blank = strspn(text, " \t\r\n"), line;

	if (blank > len)
		blank = len;
	text += blank;
	line = strcspn(text, "\r\n");
	if (line > len - blank)
		line = len - blank;
	if (line > LINE_MAX_BYTES)
		line = LINE_MAX_BYTES - utf8_begun(text, LINE_MAX_BYTES);
	return json_stringn(text, line);
}

static void
list_one(void *arg, const struct survey_execution *seen)
{
	json_t *list = arg;

	if (json_array_size(list) >= RUNNING_LISTED)
		return;
	json_array_append_new(list, xalloc_check(json_pack(
		"{s:s,s:s,s:s,s:s,s:s,s:f,s:f,s:I,s:o}", "id", seen->id, "tenant", seen->principal,
		"kind", seen->cell ? "cell" : "script", "profile", seen->profile, "state",
		seen->runs ? "running" : "waiting", "age_seconds", (double)seen->asked_ms / 1000,
		"cpu_seconds", (double)seen->cpu_ms / 1000, "memory_bytes",
		(json_int_t)seen->memory_bytes, "first_line",
		first_line(seen->script, seen->script_len))));
}

json_t *
running_list(const struct engine *engine)
{
	json_t *list = json_array();

	survey_executions(engine, list_one, list);
	return json_pack("{s:b,s:o}", "ok", 1, "executions", list);
}

/* ---- stopping ---- */

struct search {
	const char *word;
	size_t len, n;
	/* The last one. */
	char id[HANDLE_MAX + 1];
	const char *tenant;
	struct repl_session *session;	/* NULL: it is an execution */
};

static void
running_match(struct search *search, const char *id, const char *tenant,
	      struct repl_session *session)
{
	if (strncmp(id, search->word, search->len) != 0)
		return;
	snprintf(search->id, sizeof(search->id), "%s", id);
	search->tenant = tenant;
	search->session = session;
	search->n++;
}

static void
match_execution(void *arg, const struct survey_execution *seen)
{
	running_match(arg, seen->id, seen->principal, NULL);
}

static void
match_sessions(void *arg, const struct survey_tenant *seen)
{
	struct repl_session *session = NULL;

	while ((session = repl_session_next(seen->tenant, session)))
		running_match(arg, session->handle, tenant_principal(seen->tenant),
			      session);
}

/* Finds the only one. 0, or -errno and why_r. */
static int
running_find(struct engine *engine, const json_t *request, struct search *search_r,
	     struct why *why_r)
{
	const json_t *id = json_object_get(request, "id");
	struct search *search = search_r;

	*search = (struct search){ .word = json_string_value(id), .len = json_string_length(id) };
	if (search->len >= ELLIPSIS &&
	    strcmp(search->word + search->len - ELLIPSIS, "...") == 0)
		search->len -= ELLIPSIS;
	if (search->len == 0)
		return why_say(why_r, -EINVAL, "id", "id: which one?");
	survey_executions(engine, match_execution, search);
	survey_tenants(engine, match_sessions, search);
	if (search->n == 0)
		return why_say(why_r, -ENOENT, "id", "no execution or session has an id that "
			       "begins so");
	if (search->n > 1)
		return why_say(why_r, -EEXIST, "id", "%zu ids begin so; more of the id is needed",
			       search->n);
	return 0;
}

/* A session is recorded by the part of its handle that gives no right to it. */
static int
running_record(struct audit *audit, const struct search *search, const char *by, struct why *why_r)
{
	json_t *more = json_pack("{s:s}", "by", by);

	if (search->session)
		json_object_set_new(more, "session", json_stringn(search->id, OPERATION_HANDLE_SHOWN));
	if (audit_write(audit, AUDIT_STOPPED_BY_OPERATOR, search->tenant,
			search->session ? NULL : search->id, more) < 0)
		return why_say(why_r, -EIO, "", "the audit log cannot be written, so nothing was "
			       "stopped");
	return 0;
}

json_t *
running_stop(struct engine *engine, struct audit *audit, const char *by, const json_t *request,
	     struct why *why_r)
{
	struct search search;

	if (running_find(engine, request, &search, why_r) < 0 ||
	    running_record(audit, &search, by, why_r) < 0)
		return NULL;
	if (search.session) {
		repl_session_stop(search.session, "an operator of the service closed the session");
		return json_pack("{s:b,s:s%}", "ok", 1, "closed", search.id,
				 (size_t)OPERATION_HANDLE_SHOWN);
	}
	survey_stop(engine, search.id);
	return json_pack("{s:b,s:s}", "ok", 1, "stopped", search.id);
}

/* ---- suspending ---- */

struct of_tenant {
	const char *tenant;
	json_t *ids;		/* of its executions */
	size_t n;		/* stopped */
};

static void
note_id(void *arg, const struct survey_execution *seen)
{
	const struct of_tenant *of = arg;

	if (strcmp(seen->principal, of->tenant) == 0)
		json_array_append_new(of->ids, json_string(seen->id));
}

/* Closes the tenant's sessions in which something runs without a cell. */
static void
stop_sessions(void *arg, const struct survey_tenant *seen)
{
	struct of_tenant *of = arg;
	struct repl_session *session;
	struct repl_session_info info;

	if (strcmp(tenant_principal(seen->tenant), of->tenant) != 0)
		return;
	session = repl_session_next(seen->tenant, NULL);
	while (session) {
		repl_session_glance(session, &info);
		if (!info.runs_on) {
			session = repl_session_next(seen->tenant, session);
			continue;
		}
		repl_session_stop(session, "an operator of the service has suspended what you run, "
				  "and threads or processes of this session ran on");
		of->n++;
		/* Begins at the first one each time: a call that makes a branch ends together with
		 * the session that it branches, and takes the branch with it. */
		session = repl_session_next(seen->tenant, NULL);
	}
}

json_t *
running_suspend(struct engine *engine, struct gate *gate, const char *by, const json_t *request,
		bool suspend, struct why *why_r)
{
	const json_t *value = json_object_get(request, "tenant");
	const char *tenant = json_string_value(value);
	size_t len = json_string_length(value), stopped = 0;

	if (len == 0 || len > PRINCIPAL_MOST || !strchr(tenant, ':')) {
		why_say(why_r, -EINVAL, "tenant", "tenant: which one? Such as uid:1000");
		return NULL;
	}
	if (!gate_suspend(gate, tenant, suspend)) {
		why_say(why_r, -EALREADY, "tenant", suspend ? "it is suspended already"
							    : "it is not suspended");
		return NULL;
	}
	if (audit_write(gate_audit(gate), suspend ? AUDIT_TENANT_SUSPENDED : AUDIT_TENANT_RESUMED,
			tenant, NULL, json_pack("{s:s}", "by", by)) < 0) {
		gate_suspend(gate, tenant, !suspend);
		why_say(why_r, -EIO, "", "the audit log cannot be written, so nothing was changed");
		return NULL;
	}
	if (suspend) {
		struct of_tenant of = { tenant, json_array(), 0 };
		const json_t *id;
		size_t i;

		/* Stopping changes the lists that the survey walks over: so first all ids are
		 * noted. */
		survey_executions(engine, note_id, &of);
		json_array_foreach(of.ids, i, id)
			of.n += survey_stop(engine, json_string_value(id));
		json_decref(of.ids);
		survey_tenants(engine, stop_sessions, &of);
		stopped = of.n;
		ready_forget(engine, tenant, NULL);
		links_end(tenant);
	}
	return json_pack("{s:b,s:I}", "ok", 1, "stopped", (json_int_t)stopped);
}

static void
list_principal(void *arg, const char *principal)
{
	json_array_append_new(arg, json_string(principal));
}

json_t *
running_suspended(struct gate *gate)
{
	json_t *list = json_array();

	gate_each_suspended(gate, list_principal, list);
	return json_pack("{s:b,s:o}", "ok", 1, "suspended", list);
}
