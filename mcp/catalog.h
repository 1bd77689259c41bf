/* SPDX-License-Identifier: Apache-2.0 */
/* The catalog: the tools, resources, prompts, completion and log lines that a program offers its
 * clients. It is made before the first client and never changed. The server's capabilities follow
 * from it.
 *
 * mcp-pythond fills it in supervisor/catalog.c with the sets of tools/toolsets.h. A program
 * that is linked with a catalog_fill of its own may add to them.
 */
#ifndef MCP_CATALOG_H
#define MCP_CATALOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mcp/tool.h"

#define CATALOG_TOOLS_MAX 128

/* ---- resources ---- */

/* Texts belong to the provider, and are valid until it is called again. NULL: none. */
struct resource {
	const char *uri, *name;			/* never NULL */
	const char *title, *description, *mime_type;
	uint64_t size;				/* bytes; 0: not known */
};

struct resource_provider {
	/* Finds the first resource that the tenant may read and whose uri is greater than after, in
	 * the order of strcmp. after is "" at the start. False: there are no more. */
	bool (*next)(struct tenant *tenant, const char *after, struct resource *resource_r);
	/* As next, for templates: uri is the template. */
	bool (*next_template)(struct tenant *tenant, const char *after,
			      struct resource *template_r);
	/* The tool that reads a resource. Its arguments are {"uri": a string}. It answers with
	 * CONTENT_RESOURCE blocks, or fails with FAIL_NO_RESOURCE, and checks the tenant's rights
	 * each time. */
	const struct tool *read;
	/* Clients may subscribe (legacy); changes must be reported to mcp_resource_changed. */
	bool subscribes;
};

/* ---- prompts ---- */

struct prompt_argument {
	const char *name, *description;		/* description NULL: none */
	bool required;
};

struct prompt {
	const char *name;
	const char *title, *description;	/* NULL: none */
	const struct prompt_argument *argument;
	size_t n_arguments;
};

struct prompt_provider {
	const struct prompt *prompt;		/* in the order of the list */
	size_t n_prompts;
	/* The tool that makes a prompt. Its arguments are {"name": a name of the list, "arguments":
	 * an object}. Required arguments are present, and all are strings. The blocks of its answer
	 * are the messages of the prompt. It may ask questions. */
	const struct tool *get;
};

/* ---- skills ---- */

/* A text for models (the extension skills): one file, SKILL.md. */
struct skill {
	char *uri;			/* of the file */
	char *text;
	size_t len;
	char *listed;			/* a JSON object text: the skill in skills/list */
};

struct skill_provider {
	const struct skill *skill;	/* in the order of the list */
	size_t n;
	const struct skill *(*find)(const char *uri);	/* NULL: there is none */
};

/* ---- completion ---- */

#define COMPLETIONS_MAX 100

/* The text to complete: an argument of a prompt, or of a resource template. */
struct completion_request {
	const char *prompt;		/* name; NULL: it is a resource */
	const char *resource;		/* uri or template */
	const char *argument, *value;	/* value: the text typed so far */
};

/* The proposals for a completion. Valid until the next request. */
struct completion {
	const char *value[COMPLETIONS_MAX];
	size_t n;
	size_t total;			/* 0: not known */
	bool has_more;
};

/* ---- jobs ---- */

struct mcp_audience;
struct mcp_run;

/* Makes a job that joins a run of its tool as an audience. 0, *audience_r and *handle_r, borrowed
 * as long as the audience has not left; or -EBUSY. */
typedef int adopt_run(struct mcp_run *run, const struct tool_host *host, const struct tool *tool,
		      struct mcp_audience **audience_r, const char **handle_r);

/* ---- the catalog ---- */

struct catalog {
	const struct tool *tool[CATALOG_TOOLS_MAX];	/* in the order of the list */
	size_t n_tools;
	const struct resource_provider *resources;	/* NULL: not offered */
	const struct prompt_provider *prompts;		/* NULL: not offered */
	const struct skill_provider *skills;		/* NULL: not offered */
	/* Fills *completion_r, which is zeroed; false: there is no such prompt, template or
	 * argument. NULL: not offered. */
	bool (*complete)(struct tenant *tenant, const struct completion_request *request,
			 struct completion *completion_r);
	adopt_run *adopt;				/* NULL: there are no jobs */
	bool logging;					/* whether tools write log lines */
	bool quiet;					/* log lines are sent only to a client that
							 * has set a level */
	bool only_loopback;				/* may be served on the loopback
							 * interface only */
};

/* Adds a tool. Aborts if the catalog is full or has a tool of this name. */
void catalog_add_tool(struct catalog *catalog, const struct tool *tool);

/* Defined by each program: called once at start, with an empty catalog. */
void catalog_fill(struct catalog *catalog, const struct config *config);

/* The tool of this name. NULL: there is none. */
const struct tool *catalog_find(const struct catalog *catalog, const char *name);

#endif
