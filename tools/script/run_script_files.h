/* SPDX-License-Identifier: Apache-2.0 */
/* The argument "files" of run_script: files that are put into /workspace before the script starts.
 */
#ifndef TOOLS_SCRIPT_RUN_SCRIPT_FILES_H
#define TOOLS_SCRIPT_RUN_SCRIPT_FILES_H

#include <stddef.h>

#include <jansson.h>

#include "base/jsonout.h"
#include "base/why.h"
#include "engine/execution.h"
#include "mcp/tool.h"

struct config;

#define FILES_ARGUMENT "files"
#define FILES_PATH_MAX 1024		/* bytes */
#define FILES_NAME_MAX 255		/* bytes between slashes */

/* Texts and paths are borrowed from the JSON; decoded base64 is malloc'd. */
struct run_script_files {
	struct execution_input *item;
	void **decoded;			/* for each item; NULL: its content is not base64 */
	const char **uri;		/* for each item; NULL: its content is in the argument */
	const char **sha256;		/* that the content must have; NULL: any */
	size_t n;
};

/* Reads the argument. 0; or -EINVAL with why_r, which names the item and the allowed values, and
 * *files_r is empty. */
int run_script_files_read(const json_t *json, const struct config *config,
			  struct run_script_files *files_r, struct why *why_r);

/* Finds the contents of the items that have a uri in place of a content. The uri is that of a kept
 * file, which the tenant must be able to read. The contents are borrowed from the store of
 * resources, and have to be used at once. 0, or -EINVAL with why_r. */
int run_script_files_resolve(struct run_script_files *files, const struct config *config,
			     const struct tenant *tenant, struct why *why_r);
void run_script_files_done(struct run_script_files *files);

/* The member bind of struct tool: adds to each item with a uri the sha256 of the file's content, or
 * null if there is no such file. */
json_t *run_script_bind(const struct tool_host *host, const json_t *arguments, bool for_people);

#endif
