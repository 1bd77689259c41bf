/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the wait for a mount.
 * Reads:   names of modules, from a script's process, which is hostile. An honest worker asks for
 * no more modules than it may, one at a time, and numbers them; anything else is a breach of the
 * protocol. */
#include "engine/execution_parts.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "engine/engine_parts.h"
#include "engine/keeper.h"
#include "engine/pool.h"
#include "engine/tenant.h"
#include "engine/worker.h"
#include "engine/zygote.h"

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
		.number = e->modules.number, .mounted = mounted } };

	e->modules.open = false;
	/* A failed send means that the process has ended; its end is reported elsewhere. */
	if (e->repl != NULL)
		(void)e->repl->stage->send(e->repl, &msg, -1);
	else
		(void)worker_send(e->worker, &msg, -1);
}

static void
modules_on_mounted(void *arg, int error)
{
	struct execution *e = arg;
	struct execution_modules *m = &e->modules;

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
mount(struct execution *e, const char *environment)
{
	struct execution_modules *m = &e->modules;
	int r;

	if (e->repl != NULL)
		return e->repl->stage->mount(e->repl, environment, modules_on_mounted, e,
					     &m->mounting);
	if (e->engine->keeper == NULL)
		return -ENXIO;
	r = keeper_mount(e->engine->keeper, environment, e->worker->pidfd, modules_on_mounted, e,
			 &m->mounting);
	if (r == 0)
		snprintf(e->request.environment, sizeof(e->request.environment), "%s",
			 environment);
	return r;
}

void
execution_answer_module(struct execution *e, const char *environment)
{
	struct execution_modules *m = &e->modules;

	if (e->state != EXECUTION_RUNNING || !m->open || m->mounting != NULL)
		return;
	if (environment != NULL)
		snprintf(m->asked, sizeof(m->asked), "%s", environment);
	if (environment == NULL || mount(e, environment) < 0)
		modules_answer(e, false);
}

int
modules_take(struct execution *e, const struct msg_module *module)
{
	const struct zygote *zygote = e->tenant->share[e->profile].profile->zygote;
	struct execution_modules *m = &e->modules;

	if (module->id != e->serial || m->open || module->number != m->number + 1 ||
	    module->number > e->request.modules || !modules_is_identifier(&module->name))
		return -EBADMSG;
	m->number = module->number;
	m->open = true;
	memcpy(m->name, module->name.at, module->name.len);
	m->name[module->name.len] = '\0';
	if (e->stopping != GOES_ON || e->watcher.on_module == NULL)
		execution_answer_module(e, NULL);
	else
		e->watcher.on_module(e->watcher.arg, &(struct execution_module){
			.name = m->name, .platform = zygote_platform(zygote),
			.extension = zygote_extension(zygote) });
	return 0;
}

void
modules_end(struct execution_modules *m)
{
	if (m->mounting != NULL)
		keeper_unwait(m->mounting);
	m->mounting = NULL;
	m->open = false;
}

size_t
modules_found(const struct execution_modules *m, const char *found_r[MODULES_OF_RUN_MAX])
{
	for (size_t i = 0; i < m->n_found; i++)
		found_r[i] = m->found[i];
	return m->n_found;
}
