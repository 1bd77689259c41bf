/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: deliveries, from the wait for a session's turn to the mount.
 * The keeper mounts. A delivery that is abandoned keeps the mounts that it has made. */
#include "tools/packages/delivery.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/member.h"
#include "base/why.h"
#include "base/xalloc.h"
#include "engine/keeper.h"
#include "engine/repl.h"
#include "policy/requirement.h"
#include "policy/version.h"
#include "tools/sets/set.h"

struct delivery {
	struct repl_turn turn;
	char *environment;
	json_t *set;
	struct mounting *mounting;	/* NULL: it waits for its turn */
	delivery_done *done;
	void *arg;
};

/* ---- the requirements of a delivery ---- */

static int
check_asked(const json_t *has, const char *text, struct why *why_r)
{
	struct requirement asked;
	const json_t *package;
	bool contained = true;
	int r = requirement_read(text, strlen(text), &asked);

	if (r < 0)
		return why_say(why_r, r, "packages", "an item is not a requirement");
	package = set_find(has, asked.name);
	if (package && *asked.specifiers &&
	    specifiers_check(asked.specifiers, strlen(asked.specifiers),
			     member_text(package, "version"), &contained) < 0)
		contained = false;
	if (!contained)
		r = why_say(why_r, -EEXIST, "packages", "%.100s%.100s: the session has %.100s %s "
			    "already, and keeps it; reset it, or begin another one",
			    asked.name, asked.specifiers, asked.name,
			    member_text(package, "version"));
	requirement_done(&asked);
	return r;
}

int
delivery_requirements(const struct repl_session *session, const json_t *asked,
		      json_t **list_r, struct why *why_r)
{
	const struct repl_packages *has = repl_session_packages(session);
	json_t *list = xalloc_check(json_array());
	const json_t *one;
	size_t i;
	int r = 0;

	json_array_foreach(asked, i, one) {
		if (r == 0 && has)
			r = check_asked(has->set, json_string_value(one), why_r);
		json_array_append(list, (json_t *)one);
	}
	json_array_foreach(has ? has->set : NULL, i, one)
		json_array_append_new(list, set_exactly(one));
	if (r < 0)
		json_decref(list);
	else
		*list_r = list;
	return r;
}

/* ---- in the session's turn ---- */

static void
free_delivery(struct delivery *delivery)
{
	if (delivery->mounting)
		keeper_unwait(delivery->mounting);
	repl_session_leave(&delivery->turn, true);
	free(delivery->environment);
	json_decref(delivery->set);
	free(delivery);
}

static void
delivery_finish(struct delivery *delivery, const char *trouble)
{
	delivery_done *done = delivery->done;
	void *arg = delivery->arg;

	free_delivery(delivery);
	done(arg, trouble);
}

static void
delivery_on_mounted(void *arg, int error)
{
	struct delivery *delivery = arg;
	const struct repl_packages packages = { delivery->environment, delivery->set };
	char text[160];

	delivery->mounting = NULL;
	if (error == 0)
		repl_session_set_packages(delivery->turn.session, &packages);
	snprintf(text, sizeof(text), "the packages could not be mounted in the session: %s",
		 strerror(error));
	delivery_finish(delivery, error ? text : NULL);
}

static void
delivery_on_turn(void *arg)
{
	struct delivery *delivery = arg;
	struct repl_session *session = delivery->turn.session;
	const struct repl_packages *has = repl_session_packages(session);
	int r;

	if (!set_keeps(delivery->set, has ? has->set : NULL))
		delivery_finish(delivery, "the session got other packages meanwhile; make the same call "
				"again");
	else if (has && strcmp(has->environment, delivery->environment) == 0)
		delivery_finish(delivery, NULL);
	else if ((r = repl_mount(session->origin->repl, delivery->environment,
				 delivery_on_mounted, delivery, &delivery->mounting)) < 0)
		delivery_finish(delivery, r == -EXDEV
			? "the session began before the service was restarted, and can get no "
			  "other packages any more: begin another one, or reset it"
			: "the packages cannot be mounted in the session now");
}

static void
delivery_on_gone(void *arg, const char *text)
{
	delivery_finish(arg, text);
}

int
delivery_start(const struct tool_host *host, const char *handle,
	       const struct repl_packages *packages, delivery_done *done, void *arg,
	       struct delivery **delivery_r, struct why *why_r)
{
	struct repl_session *session = repl_session_find(host->tenant, handle);
	struct delivery *delivery;

	if (!session)
		return why_say(why_r, -ESRCH, "session", "there is no such session any more");
	delivery = xcalloc(1, sizeof(*delivery));
	delivery->turn = (struct repl_turn){ .on_turn = delivery_on_turn,
					     .on_gone = delivery_on_gone,
					     .arg = delivery };
	if (repl_session_enter(session, &delivery->turn) < 0) {
		free(delivery);
		return why_say(why_r, -EBUSY, "session", "too many calls wait for the session");
	}
	delivery->environment = xstrdup(packages->environment);
	delivery->set = json_incref((json_t *)packages->set);
	delivery->done = done;
	delivery->arg = arg;
	*delivery_r = delivery;
	return 0;
}

void
delivery_cancel(struct delivery *delivery)
{
	free_delivery(delivery);
}
