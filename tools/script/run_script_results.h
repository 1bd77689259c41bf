/* SPDX-License-Identifier: Apache-2.0 */
/* Displayed objects and left files in the answer of run_script: blocks for clients that show them,
 * members of structuredContent, and lines of the text.
 */
#ifndef TOOLS_SCRIPT_RUN_SCRIPT_RESULTS_H
#define TOOLS_SCRIPT_RUN_SCRIPT_RESULTS_H

#include <stdio.h>

#include "base/jsonout.h"
#include "mcp/tool.h"

#define RESULTS_DISPLAY_COST_MAX (5632 * 1024)	/* bytes of an answer, roughly */
#define RESULTS_FILE_COST_MAX (512 * 1024)

struct run_results;

/* Selects the results that fit into an answer. outcome NULL: nothing was run. The selection borrows
 * from the outcome. host: borrowed, for signed links to the tenant's files. *cost_r: the bytes that
 * the selection takes in an answer, within the two bounds above. */
struct run_results *run_results_new(const struct outcome *outcome, const struct tool_host *host,
				    size_t *cost_r);
void run_results_free(struct run_results *results);

const struct content *run_results_blocks(const struct run_results *results, size_t *n_r);

/* Writes members of an open object. */
void run_results_write(const struct run_results *results, struct jsonout *out);

/* Writes what was printed with the displayed texts, and the uris of pictures, at their places;
 * without placed they come after it. False: there are no such objects, and nothing was written. */
bool run_results_say_output(const struct run_results *results, const char *text, size_t len,
			    bool placed, FILE *to);

/* Writes what is to be said about files and about what is left out. */
void run_results_say(const struct run_results *results, FILE *to);

/* The number of files that readers have as links. */
size_t run_results_links(const struct run_results *results);

#endif
