/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the way from a script's requirements to a set that satisfies
 * them: a check, then an installation. */
#include "tools/packages/needs.h"

#include <errno.h>
#include <stdio.h>

#include "base/own.h"
#include "base/why.h"
#include "base/xalloc.h"
#include "tools/packages/install.h"
#include "tools/sets/set.h"
#include "tools/shared/reasons.h"

struct needs {
	struct tool_host host;
	const char *profile;
	struct requirements_check *check;	/* at most one of these two */
	struct install *install;
	needs_known *known;
	void *arg;
	bool *over;		/* within needs_start(): set when the result was told */
};

static void
needs_tell(struct needs *needs, const struct needs_result *result)
{
	needs_known *known = needs->known;
	void *arg = needs->arg;

	if (needs->over)
		*needs->over = true;
	free(needs);
	known(arg, result);
}

static void
needs_refuse(struct needs *needs, const char *reason, const char *text)
{
	const struct needs_result result = { .status = NEEDS_REFUSED, .reason = reason,
					     .text = text };

	needs_tell(needs, &result);
}

/* ---- errors in requirements ---- */

static void
refuse_errors(struct needs *needs, const struct findings *findings)
{
	struct why why = { .field = "" };
	size_t len = 0;

	for (size_t i = 0; i < findings->n_errors && len < sizeof(why.text) - 1; i++) {
		const struct finding_error *error = &findings->error[i];

		len += (size_t)snprintf(why.text + len, sizeof(why.text) - len,
					error->line ? "%sline %u: %s" : "%s%.0u%s",
					i ? "; " : "", error->line, error->message);
	}
	needs_refuse(needs, RUN_INVALID_ARGUMENTS, why.text);
}

static void
needs_tell_trouble(struct needs *needs, const struct outcome *trouble)
{
	const struct needs_result result = { .status = NEEDS_TROUBLE, .trouble = trouble };

	if (trouble->status != OUTCOME_OK)
		needs_tell(needs, &result);
	else
		needs_refuse(needs, outcome_status_name(OUTCOME_WORKER_PROTOCOL_ERROR),
			     "the environment could not be examined");
}

static void
tell_python(struct needs *needs, const struct findings *findings)
{
	own_mem char *text = requirements_python_text(findings, needs->profile);
	const struct needs_result result = { .status = NEEDS_PYTHON,
					     .reason = RUN_PYTHON_UNAVAILABLE, .text = text };

	needs_tell(needs, &result);
}

/* ---- missing packages ---- */

static void
on_installed(void *arg, const struct install_result *installed)
{
	struct needs *needs = arg;
	const struct needs_result met = { .status = NEEDS_MET,
					  .environment = installed->environment,
					  .packages = installed->packages };
	char *text;

	if (installed->status == INSTALL_OK) {
		needs_tell(needs, &met);
	} else if (installed->trouble && installed->trouble->status != OUTCOME_TIMEOUT) {
		needs_tell_trouble(needs, installed->trouble);
	} else {
		text = xasprintf("%s. Nothing was run", installed->message);
		needs_refuse(needs, installed->status == INSTALL_APPROVAL_PENDING
			      ? TOOL_APPROVAL_PENDING : RUN_DEPENDENCY_UNAVAILABLE, text);
		free(text);
	}
}

/* What the profile has already is not asked for: an index may lack it. */
static json_t *
needs_list_of(const struct findings *findings)
{
	json_t *list = xalloc_check(json_array());

	for (size_t i = 0; i < findings->list.n; i++) {
		char *text = findings->missing[i] ? set_requirement(&findings->list.item[i]) : NULL;

		if (!text)
			continue;
		json_array_append_new(list, xalloc_check(json_string(text)));
		free(text);
	}
	return list;
}

/* Missing packages may be in the store, or be installed now. */
static void
install_missing(struct needs *needs, const struct findings *findings)
{
	struct install_request request = { .profile = needs->profile, .fills = true };
	json_t *list = needs_list_of(findings);
	struct why why = { .field = "" };
	own_mem char *text = NULL;
	int r;

	request.requirements = list;
	r = install_start(&needs->host, &request, on_installed, needs, &needs->install, &why);
	json_decref(list);
	if (r == 0)
		return;
	/* Nothing can be installed here, or policy refuses these packages. */
	text = r == -ENOSYS ? requirements_missing_text(findings, needs->profile)
			    : xasprintf("%s. Nothing was run", why.text);
	needs_refuse(needs, RUN_DEPENDENCY_UNAVAILABLE, text);
}

static void
needs_on_found(void *arg, const struct findings *findings)
{
	static const struct needs_result met = { .status = NEEDS_MET };
	struct needs *needs = arg;

	needs->check = NULL;
	if (findings->trouble)
		needs_tell_trouble(needs, findings->trouble);
	else if (findings->n_errors)
		refuse_errors(needs, findings);
	else if (!findings->python_fits)
		tell_python(needs, findings);
	else if (findings->n_missing)
		install_missing(needs, findings);
	else
		needs_tell(needs, &met);
}

int
needs_start(const struct tool_host *host, const struct requirements_probe *probe,
	    needs_known *known, void *arg, struct needs **needs_r, struct why *why_r)
{
	struct needs *needs = xcalloc(1, sizeof(*needs));
	struct requirements_check *check = NULL;
	bool over = false;
	int r;

	needs->host = *host;
	needs->profile = probe->profile;
	needs->known = known;
	needs->arg = arg;
	needs->over = &over;
	r = requirements_start(host, probe, needs_on_found, needs, &check, why_r);
	*needs_r = NULL;
	if (over)
		return 0;
	needs->over = NULL;
	if (r < 0) {
		free(needs);
		return r;
	}
	needs->check = check;
	*needs_r = needs;
	return 0;
}

void
needs_reply(struct needs *needs, const struct tool_reply *reply)
{
	if (needs->install)
		install_reply(needs->install, reply);
}

void
needs_cancel(struct needs *needs, enum cancel_reason reason)
{
	if (needs->check)
		requirements_cancel(needs->check, reason);
	if (needs->install)
		install_cancel(needs->install, reason);
	free(needs);
}
