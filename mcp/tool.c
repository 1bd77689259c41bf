/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing.
 * Functions for all tools, and for the list of them. */
#include "mcp/tool.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "mcp/catalog.h"

void
tool_describe(const struct tool *tool, const struct config *config,
	      struct tool_description *description_r)
{
	const struct tool_text *says = &tool->says;

	if (tool->describe) {
		tool->describe(config, description_r);
		return;
	}
	*description_r = (struct tool_description){
		.name = tool->name,
		.title = says->title,
		.icon = says->icon,
		.hint = says->hint,
		.description = xstrdup(says->description),
		.input_schema = xstrdup(says->input_schema),
		.output_schema = says->output_schema ? xstrdup(says->output_schema) : NULL,
		.read_only = says->read_only,
		.destructive = says->destructive,
		.idempotent = says->idempotent,
		.open_world = says->open_world,
		.task = says->task,
	};
}

void
tool_description_done(struct tool_description *description)
{
	free(description->description);
	free(description->input_schema);
	free(description->installed);
	free(description->output_schema);
	memset(description, 0, sizeof(*description));
}

void
tool_write(struct tool_writer *writer, const struct tool_host *host)
{
	*writer = (struct tool_writer){ .host = host };
	writer->for_programs = !host->wants_structured || host->wants_structured(host->arg);
	writer->text = xalloc_check(open_memstream(&writer->written, &writer->answer.text_len));
	jsonout_init(&writer->structured);
}

void
tool_give(struct tool_writer *writer)
{
	struct tool_answer *answer = &writer->answer;

	xalloc_check(fclose(writer->text) == 0 ? writer->written : NULL);
	answer->structured = writer->structured.at;
	answer->structured_len = writer->structured.len;
	answer->text = writer->written;
	if (answer->text_len == 0 && answer->structured_len > 0) {
		answer->text = answer->structured;
		answer->text_len = answer->structured_len;
	}
	writer->host->on_answer(writer->host->arg, answer);
	jsonout_done(&writer->structured);
	free(writer->written);
}

void
tool_refuse(const struct tool_host *host, const char *text)
{
	const struct tool_answer answer = {
		.text = text,
		.text_len = strlen(text),
		.is_error = true,
		.not_run = true,
	};

	host->on_answer(host->arg, &answer);
}

/* ---- icons ---- */

/* The colour is visible on a light and on a dark background. */
#define SVG(strokes)                                                                     \
	"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 24 24\" fill=\"none\" " \
	"stroke=\"#47b\" stroke-width=\"2\">" strokes "</svg>"

static const char *const pictures[ICON_COUNT] = {
	[ICON_SERVER] = SVG("<path d=\"M3 3h18v18H3zM9 3v18M15 3v18\"/>"),
	[ICON_RUN] = SVG("<path d=\"M3 3h18v18H3zM10 8v8l6-4z\"/>"),
	[ICON_SESSION] = SVG("<path d=\"M3 4h18v16H3zM7 9l3 3-3 3M12 15h5\"/>"),
	[ICON_CHECK] = SVG("<path d=\"M3 3h18v18H3zM7 12l4 4 6-8\"/>"),
	[ICON_PACKAGE] = SVG("<path d=\"M12 2l9 5v10l-9 5-9-5V7zM3 7l9 5 9-5M12 12v10\"/>"),
	[ICON_ENVIRONMENT] = SVG("<circle cx=\"12\" cy=\"12\" r=\"9\"/>"
				 "<path d=\"M12 11v6M12 7v2\"/>"),
	[ICON_JOB] = SVG("<circle cx=\"12\" cy=\"12\" r=\"9\"/><path d=\"M12 7v5l4 2\"/>"),
};

const char *
icon_svg(enum icon icon)
{
	return pictures[icon];
}

/* ---- the catalog ---- */

const struct tool *
catalog_find(const struct catalog *catalog, const char *name)
{
	for (size_t i = 0; i < catalog->n_tools; i++)
		if (strcmp(catalog->tool[i]->name, name) == 0)
			return catalog->tool[i];
	return NULL;
}

void
catalog_add_tool(struct catalog *catalog, const struct tool *tool)
{
	xassert(catalog->n_tools < CATALOG_TOOLS_MAX && !catalog_find(catalog, tool->name));
	catalog->tool[catalog->n_tools++] = tool;
}
