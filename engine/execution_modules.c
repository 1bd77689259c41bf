/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the wait for a mount.
 * Reads:   names of modules, from a script's process, which is hostile. An honest worker asks for
 * no more modules than it may, one at a time, and numbers them; anything else is a breach of the
 * protocol. */
#include "engine/execution_modules.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "engine/engine_parts.h"
#include "engine/execution_parts.h"
#include "engine/keeper.h"
#include "engine/pool.h"
#include "engine/running.h"
#include "engine/tenant.h"
#include "engine/worker.h"
#include "engine/zygote.h"

struct execution_modules {
	uint32_t number;			/* of the last one that was asked for; 0: none */
	bool open;				/* it is not answered yet */
	struct mounting *mounting;		/* NULL: nothing is being mounted */
	char name[MODULE_NAME_MAX + 1];		/* of the last one */
	char found[MODULES_OF_RUN_MAX][MODULE_NAME_MAX + 1];
	size_t n_found;
	char asked[ENVIRONMENT_NAME + 1];	/* the set that is being mounted */
	char environment[ENVIRONMENT_NAME + 1];	/* the mounted one; "": no import has found one */
	bool had_none;				/* a script without a set has found one */
};

struct execution_modules *
modules_new(void)
{
	return xcalloc(1, sizeof(struct execution_modules));
}

void
modules_free(struct execution_modules *m)
{
	modules_end(m);
	free(m);
}

/* Only ASCII is accepted, so that a name can be part of a path and of a record unchanged. */
static bool
modules_is_identifier(const struct msg_str *name)
{
	for (size_t i = 0; i < name->len; i++)
		if (!isascii((unsigned char)name->at[i]) ||
		    (!isalnum((unsigned char)name->at[i]) && name->at[i] != '_'))
			return false;
	return !isdigit((unsigned char)*name->at);
}

static void
modules_answer(struct execution *e, bool mounted)
{
	struct msg msg = { .type = MSG_MODULE_ANSWER, .module_answer = {
		.number = e->modules->number, .mounted = mounted } };

	e->modules->open = false;
	/* A failed send means that the process has ended; its end is reported elsewhere. */
	if (e->repl != NULL)
		(void)e->engine->cells->send(e->repl, &msg, -1);
	else
		(void)worker_send(e->worker, &msg, -1);
}

static void
modules_on_mounted(void *arg, int error)
{
	struct execution *e = arg;
	struct execution_modules *m = e->modules;

	m->mounting = NULL;
	if (error == 0) {
		memcpy(m->environment, m->asked, sizeof(m->environment));
		memcpy(m->found[m->n_found++], m->name, sizeof(m->name));
		if (e->watcher.on_mounted != NULL)
			e->watcher.on_mounted(e->watcher.arg);
	}
	modules_answer(e, error == 0);
}

/* Asks the keeper to mount the set. While the execution runs, and until its session ends, the set
 * stays in the store (engine_uses). */
static int
modules_mount(struct execution *e, const char *environment)
{
	struct execution_modules *m = e->modules;
	bool is_mounted;
	int r;

	if (e->repl != NULL)
		return e->engine->cells->mount(e->repl, environment, modules_on_mounted, e,
					     &m->mounting);
	if (e->engine->keeper == NULL)
		return -ENXIO;
	is_mounted = strcmp(e->worker->made_ready, environment) == 0;
	r = is_mounted ? 0 : keeper_mount(e->engine->keeper, environment, e->worker->pidfd,
					  modules_on_mounted, e, &m->mounting);
	if (r < 0)
		return r;
	m->had_none |= e->request.environment[0] == '\0';
	snprintf(e->request.environment, sizeof(e->request.environment), "%s", environment);
	if (is_mounted)
		modules_on_mounted(e, 0);
	else
		e->worker->made_ready[0] = '\0';
	return 0;
}

void
execution_answer_module(struct execution *e, const char *environment)
{
	struct execution_modules *m = e->modules;

	if (e->state != EXECUTION_RUNNING || m == NULL || !m->open || m->mounting != NULL)
		return;
	if (environment != NULL)
		snprintf(m->asked, sizeof(m->asked), "%s", environment);
	if (environment == NULL || modules_mount(e, environment) < 0)
		modules_answer(e, false);
}

static struct execution_module
modules_question(const struct execution *e, const char *name)
{
	const struct zygote *zygote = e->tenant->share[POOL_USUAL(e->profile)].profile->zygote;

	return (struct execution_module){ .name = name, .platform = zygote_platform(zygote),
					  .extension = zygote_extension(zygote) };
}

int
modules_take(struct execution *e, const struct msg_module *module)
{
	struct execution_modules *m = e->modules;
	struct execution_module asked;

	if (m == NULL || module->id != e->serial || m->open || module->number != m->number + 1 ||
	    module->number > e->request.modules || !modules_is_identifier(&module->name))
		return -EBADMSG;
	m->number = module->number;
	m->open = true;
	memcpy(m->name, module->name.at, module->name.len);
	m->name[module->name.len] = '\0';
	asked = modules_question(e, m->name);
	asked.mounted = e->worker->made_ready[0] != '\0' ? e->worker->made_ready : NULL;
	if (e->stopping != GOES_ON || e->watcher.on_module == NULL)
		execution_answer_module(e, NULL);
	else
		e->watcher.on_module(e->watcher.arg, &asked);
	return 0;
}

bool
modules_would_find(const struct execution *e, const char *name, const char *environment)
{
	struct execution_module asked = modules_question(e, name);

	return e->modules != NULL && e->watcher.would_find != NULL &&
	       e->watcher.would_find(e->watcher.arg, &asked, environment);
}

const char *
modules_began_without(const struct execution *e)
{
	const struct execution_modules *m = e->modules;

	return m != NULL && m->had_none && m->n_found > 0 ? m->found[0] : NULL;
}

void
modules_end(struct execution_modules *m)
{
	if (m == NULL)
		return;
	if (m->mounting != NULL)
		keeper_unwait(m->mounting);
	m->mounting = NULL;
	m->open = false;
}

size_t
modules_found(const struct execution_modules *m, const char *found_r[MODULES_OF_RUN_MAX],
	      const char **environment_r)
{
	size_t n = m != NULL ? m->n_found : 0;

	for (size_t i = 0; i < n; i++)
		found_r[i] = m->found[i];
	*environment_r = n > 0 ? m->environment : NULL;
	return n;
}
