/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the lists in use, and a few that may be used again. */
#include "mcp/tool_list.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include <jansson.h>

#include "base/hash.h"
#include "base/xalloc.h"
#include "mcp/catalog.h"
#include "mcp/revision.h"
#include "mcp/tool.h"
#include "policy/config.h"
#include "policy/rules.h"

#define READY_MAX 64		/* lists are kept for so many configurations, those used last */

struct ready {
	TAILQ_ENTRY(ready) link;
	const struct config *config;	/* held, so that no other configuration gets its address */
	struct tool_list *list;		/* held */
};

struct tool_lists {
	const struct catalog *catalog;
	TAILQ_HEAD(ready_list, ready) ready;	/* most recently used first */
	size_t n;
};

/* ---- schemas ---- */

char *
listing_of(const char *schema, bool all)
{
	json_auto_t *shown = xalloc_check(json_loads(schema, 0, NULL));
	json_t *properties = json_object_get(shown, "properties"), *property;
	const char *name;
	void *next;

	json_object_foreach_safe(properties, next, name, property) {
		if (json_object_get(property, LISTING_KEYWORD) && !all) {
			json_object_del(properties, name);
			json_object_del(shown, "additionalProperties");
			continue;
		}
		json_object_del(property, LISTING_KEYWORD);
		if (!all) {
			static const char *const keywords[] = { "minLength", "maxLength", "pattern",
							       "minItems", "maxItems" };

			/* Leaves out the bounds of a property: the tool checks them itself, and its
			 * refusals name them. */
			for (size_t i = 0; i < sizeof(keywords) / sizeof(*keywords); i++)
				json_object_del(property, keywords[i]);
		}
	}
	return xalloc_check(json_dumps(shown, JSON_COMPACT | JSON_REAL_PRECISION(10)));
}

/* ---- one list ---- */

void
tool_list_release(struct tool_list *list)
{
	if (!list || --list->holders)
		return;
	for (size_t i = 0; i < list->n; i++)
		tool_description_done(&list->tool[i]);
	free(list->tool);
	free(list->instructions);
	free(list);
}

static uint64_t
hash_tool(uint64_t hash, const struct tool_description *tool)
{
	hash = hash_text(hash, tool->name);
	hash = hash_text(hash, tool->title);
	hash = hash_text(hash, tool->description);
	hash = hash_text(hash, tool->view);
	hash = hash_text(hash, tool->input_schema);
	return hash_text(hash, tool->output_schema);
}

static bool
tool_list_is_offered(const struct tool *tool, const struct config *config)
{
	return (!tool->policy || policy_tool(config, tool->policy) != POLICY_DENY) &&
	       (!tool->is_there || tool->is_there(config));
}

/* Does each call need an approval? install_package has its own words about approvals. */
static bool
tool_list_is_approved(const struct tool *tool, const struct config *config)
{
	return tool->policy && strcmp(tool->policy, "install_package") != 0 &&
	       policy_tool(config, tool->policy) == POLICY_APPROVE;
}

/* Makes the description of a tool for a list: as the tool describes itself, but with the input
 * schema of mcp/tool_list.h, and without an output schema unless those are asked for. */
static void
tool_list_describe(const struct tool *tool, const struct config *config,
		   struct tool_description *shown_r)
{
	char *schema, *text;

	tool_describe(tool, config, shown_r);
	if (tool_list_is_approved(tool, config)) {
		text = xasprintf("%s\nA person has to approve each call: the answer may be "
				 "approval_pending, with what your user has to do.",
				 shown_r->description);
		free(shown_r->description);
		shown_r->description = text;
	}
	schema = listing_of(shown_r->input_schema, config->mcp.arguments == ARGUMENTS_ALL);
	free(shown_r->input_schema);
	shown_r->input_schema = schema;
	shown_r->view = config->mcp.views == VIEWS_AUTO ? tool->view : NULL;
	if (!config->mcp.output_schemas) {
		free(shown_r->output_schema);
		shown_r->output_schema = NULL;
	}
}

static char *
tool_list_instruct(const struct tool_list *list)
{
	char *text = NULL;
	size_t len;
	FILE *to = xalloc_check(open_memstream(&text, &len));

	fputs("Runs Python in a jail.", to);
	for (size_t i = 0; i < list->n; i++)
		if (list->tool[i].hint)
			fprintf(to, " %s%s", list->tool[i].hint,
				list->tool[i].installed ? list->tool[i].installed : "");
	xalloc_check(fclose(to) == 0 ? text : NULL);
	return text;
}

static struct tool_list *
tool_list_make(const struct catalog *catalog, const struct config *config)
{
	struct tool_list *list = xcalloc(1, sizeof(*list));

	list->holders = 1;
	list->hash = HASH_BEGIN;
	list->tool = xcalloc(catalog->n_tools, sizeof(*list->tool));
	for (size_t i = 0; i < catalog->n_tools; i++) {
		if (!tool_list_is_offered(catalog->tool[i], config))
			continue;
		tool_list_describe(catalog->tool[i], config, &list->tool[list->n]);
		list->hash = hash_tool(list->hash, &list->tool[list->n++]);
	}
	list->instructions = tool_list_instruct(list);
	return list;
}

char *
tool_list_names(const struct tool_list *list)
{
	char *text = NULL;
	size_t len;
	FILE *to = xalloc_check(open_memstream(&text, &len));

	for (size_t i = 0; i < list->n; i++)
		fprintf(to, "%s%s", i ? ", " : "", list->tool[i].name);
	xalloc_check(fclose(to) == 0 ? text : NULL);
	return text;
}

/* ---- all of them ---- */

struct tool_lists *
tool_lists_new(const struct catalog *catalog)
{
	struct tool_lists *lists = xcalloc(1, sizeof(*lists));

	lists->catalog = catalog;
	TAILQ_INIT(&lists->ready);
	return lists;
}

static void
tool_list_forget(struct tool_lists *lists, struct ready *ready)
{
	TAILQ_REMOVE(&lists->ready, ready, link);
	lists->n--;
	config_free(ready->config);
	tool_list_release(ready->list);
	free(ready);
}

void
tool_lists_renew(struct tool_lists *lists)
{
	while (!TAILQ_EMPTY(&lists->ready))
		tool_list_forget(lists, TAILQ_FIRST(&lists->ready));
}

void
tool_lists_free(struct tool_lists *lists)
{
	if (!lists)
		return;
	tool_lists_renew(lists);
	free(lists);
}

/* Makes a list, or returns an existing one with the same content: most tenants' lists are the same.
 */
static struct tool_list *
make_or_share(const struct tool_lists *lists, const struct config *config)
{
	struct tool_list *list = tool_list_make(lists->catalog, config);
	const struct ready *ready;

	TAILQ_FOREACH(ready, &lists->ready, link)
		if (ready->list->hash == list->hash) {
			tool_list_release(list);
			ready->list->holders++;
			return ready->list;
		}
	return list;
}

struct tool_list *
tool_lists_get(struct tool_lists *lists, const struct config *config)
{
	struct ready *ready;

	TAILQ_FOREACH(ready, &lists->ready, link)
		if (ready->config == config)
			break;
	if (ready) {
		TAILQ_REMOVE(&lists->ready, ready, link);
	} else {
		if (lists->n == READY_MAX)
			tool_list_forget(lists, TAILQ_LAST(&lists->ready, ready_list));
		ready = xcalloc(1, sizeof(*ready));
		ready->list = make_or_share(lists, config);
		ready->config = config_hold(config);
		lists->n++;
	}
	TAILQ_INSERT_HEAD(&lists->ready, ready, link);
	ready->list->holders++;
	return ready->list;
}
