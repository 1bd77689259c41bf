/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: decoded base64.
 * Reads:   values of a client, of any type. An accepted path leads below /workspace, by plain
 * names, and no two paths are the same. */
#include "tools/script/run_script_files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/utf8.h"
#include "base/xalloc.h"
#include "policy/chain.h"
#include "policy/config.h"
#include "tools/shared/resources.h"

static int
script_files_refuse(struct why *why_r, size_t i, const char *text)
{
	return why_say(why_r, -EINVAL, FILES_ARGUMENT, "files: item %zu: %s", i, text);
}

static int
refuse_content(struct why *why_r, size_t i, size_t most)
{
	return why_say(why_r, -EINVAL, FILES_ARGUMENT, "files: item %zu: the content is too long: at "
		       "most %zu KiB are allowed. A larger file comes by its uri: an earlier call has "
		       "left it, or the user runs mcp-python put FILE, which prints one", i, most >> 10);
}

/* ---- paths ---- */

/* The bytes before a path below /workspace, by its names in a jail, of which models know the files
 * of a script. */
static size_t
root_len(const json_t *path)
{
	static const char *const roots[] = { "/workspace/", "/mnt/data/" };
	size_t len = 0;

	for (size_t i = 0; len == 0 && i < sizeof(roots) / sizeof(*roots); i++)
		if (json_string_length(path) > strlen(roots[i]) &&
		    memcmp(json_string_value(path), roots[i], strlen(roots[i])) == 0)
			len = strlen(roots[i]);
	return len;
}

static const char *
fault_of_path(const char *path, size_t len)
{
	size_t start = 0;

	if (len == 0)
		return "path is empty";
	if (len > FILES_PATH_MAX)
		return "path is too long: at most 1024 bytes are allowed";
	if (memchr(path, '\0', len))
		return "path holds a NUL";
	if (path[0] == '/')
		return "path is absolute; it must be relative to /workspace, or below it";
	for (size_t i = 0; i <= len; i++) {
		size_t n = i - start;

		if (i < len && path[i] != '/')
			continue;
		if (n == 0)
			return "path has an empty name in it";
		if (n > FILES_NAME_MAX)
			return "path has a name of more than 255 bytes";
		if (path[start] == '.' && (n == 1 || (n == 2 && path[start + 1] == '.')))
			return "path may not have . or .. in it";
		start = i + 1;
	}
	return NULL;
}

/* Is a equal to b, or a directory above it? */
static bool
leads_to(const struct execution_input *a, const struct execution_input *b)
{
	return a->path_len <= b->path_len && memcmp(a->path, b->path, a->path_len) == 0 &&
	       (a->path_len == b->path_len || b->path[a->path_len] == '/');
}

/* ---- items ---- */

static int
read_base64(const json_t *value, size_t i, size_t most, struct run_script_files *files,
	    struct why *why_r)
{
	struct execution_input *item = &files->item[i];

	if (json_string_length(value) > BASE64_LEN(most))
		return 0;		/* without content: it is too long */
	files->decoded[i] = base64_decode(json_string_value(value),
					  json_string_length(value), &item->len);
	item->data = files->decoded[i];
	return item->data ? 0 : script_files_refuse(why_r, i, "base64 is not base64 with padding");
}

static int
read_content(const char *key, const json_t *value, size_t i, size_t most,
	     struct run_script_files *files, struct why *why_r)
{
	struct execution_input *item = &files->item[i];

	if (!json_is_string(value))
		return why_say(why_r, -EINVAL, FILES_ARGUMENT,
			       "files: item %zu: %s must be a string", i, key);
	if (strcmp(key, "uri") == 0) {
		files->uri[i] = json_string_value(value);
		return strlen(files->uri[i]) == json_string_length(value)
			? 0 : script_files_refuse(why_r, i, "uri holds a NUL");
	}
	if (strcmp(key, "text") == 0) {
		item->data = json_string_value(value);
		item->len = json_string_length(value);
	} else if (read_base64(value, i, most, files, why_r) < 0) {
		return -EINVAL;
	}
	if (!item->data || item->len > most)
		return refuse_content(why_r, i, most);
	return 0;
}

static bool
is_sha256(const json_t *value)
{
	const char *text = json_string_value(value);

	return text && json_string_length(value) == CHAIN_DIGITS &&
	       strspn(text, "0123456789abcdef") == CHAIN_DIGITS;
}

static int
read_item(const json_t *json, size_t i, size_t most, struct run_script_files *files,
	  struct why *why_r)
{
	struct execution_input *item = &files->item[i];
	const json_t *path = json_object_get(json, "path"), *value, *content = NULL;
	const char *fault, *key, *kind = NULL;
	unsigned int contents = 0;

	if (!json_is_object(json) || !json_is_string(path))
		return script_files_refuse(why_r, i, "it must be an object with a string path");
	json_object_foreach((json_t *)json, key, value) {
		if (strcmp(key, "path") == 0)
			continue;
		if (strcmp(key, "sha256") == 0) {
			if (!is_sha256(value))
				return script_files_refuse(why_r, i, "sha256 must be 64 digits "
							   "0-9a-f");
			files->sha256[i] = json_string_value(value);
			continue;
		}
		if (strcmp(key, "text") != 0 && strcmp(key, "base64") != 0 &&
		    strcmp(key, "uri") != 0)
			return script_files_refuse(why_r, i, "there are path, text, base64, uri and sha256");
		contents++;
		content = value;
		kind = key;
	}
	item->path = json_string_value(path) + root_len(path);
	item->path_len = json_string_length(path) - root_len(path);
	fault = fault_of_path(item->path, item->path_len);
	if (fault)
		return script_files_refuse(why_r, i, fault);
	for (size_t k = 0; k < i; k++)
		if (leads_to(&files->item[k], item) || leads_to(item, &files->item[k]))
			return script_files_refuse(why_r, i, "path is that of another item, or above or "
						"below it");
	if (contents != 1)
		return script_files_refuse(why_r, i, "exactly one of text, base64 and uri is needed");
	if (files->sha256[i] && strcmp(kind, "uri") != 0)
		return script_files_refuse(why_r, i, "sha256 is for a uri");
	return read_content(kind, content, i, most, files, why_r);
}

static int
check_sum(const struct run_script_files *files, size_t most, struct why *why_r)
{
	size_t bytes = 0;

	for (size_t i = 0; i < files->n; i++) {
		bytes += files->item[i].len;
		if (bytes > most)
			return why_say(why_r, -EINVAL, FILES_ARGUMENT, "files: item %zu: all together "
				       "they are too long: at most %zu KiB are allowed", i, most >> 10);
	}
	return 0;
}

int
run_script_files_read(const json_t *json, const struct config *config,
		      struct run_script_files *files_r, struct why *why_r)
{
	struct run_script_files files = { .n = json_array_size(json) };
	int r = 0;

	memset(files_r, 0, sizeof(*files_r));
	if (!json_is_array(json))
		return why_say(why_r, -EINVAL, FILES_ARGUMENT,
			       "files must be an array of objects with path and text, base64 or uri");
	if (files.n > config->results.inputs)
		return why_say(why_r, -EINVAL, FILES_ARGUMENT,
			       "files has %zu items; at most %u are allowed", files.n,
			       config->results.inputs);
	files.item = xcalloc(files.n, sizeof(*files.item));
	files.decoded = xcalloc(files.n, sizeof(*files.decoded));
	files.uri = xcalloc(files.n, sizeof(*files.uri));
	files.sha256 = xcalloc(files.n, sizeof(*files.sha256));
	for (size_t i = 0; r == 0 && i < files.n; i++)
		r = read_item(json_array_get(json, i), i, config->results.input_bytes,
			      &files, why_r);
	if (r == 0)
		r = check_sum(&files, config->results.inputs_bytes, why_r);
	if (r < 0)
		run_script_files_done(&files);
	*files_r = files;
	return r;
}

static int
resolve_uri(const struct run_script_files *files, size_t i, const struct tenant *tenant,
	    struct why *why_r)
{
	const char *uri = files->uri[i], *sha256 = files->sha256[i];
	struct execution_input *item = &files->item[i];
	struct resource_content content;

	if (sha256 && resources_look(tenant, uri, &content) && strcmp(content.sha256, sha256) != 0)
		return script_files_refuse(why_r, i, "the file at its uri has changed: it has not the "
					   "sha256 that the call names, or that was approved");
	if (resources_find(tenant, uri, &item->data, &item->len))
		return 0;
	/* A file on disk is mounted. */
	if (resources_is_on_disk(tenant, uri)) {
		item->uri = uri;
		return 0;
	}
	return script_files_refuse(why_r, i, "there is no file at its uri (any more): an answer's files "
				   "are kept for some minutes, and a session has its own in "
				   "/workspace");
}

int
run_script_files_resolve(struct run_script_files *files, const struct config *config,
			 const struct tenant *tenant, struct why *why_r)
{
	for (size_t i = 0; i < files->n; i++) {
		struct execution_input *item = &files->item[i];

		if (files->uri[i] && resolve_uri(files, i, tenant, why_r) < 0)
			return -EINVAL;
		if (item->len > config->results.input_bytes)
			return refuse_content(why_r, i, config->results.input_bytes);
	}
	return check_sum(files, config->results.inputs_bytes, why_r);
}

void
run_script_files_done(struct run_script_files *files)
{
	for (size_t i = 0; files->decoded && i < files->n; i++)
		free(files->decoded[i]);
	free(files->decoded);
	free(files->uri);
	free(files->sha256);
	free(files->item);
	memset(files, 0, sizeof(*files));
}

/* ---- what a person agrees to ---- */

#define BEGINS 400		/* bytes of a file that people see */

static void
bind_file(const struct tool_host *host, json_t *file, bool for_people)
{
	const json_t *uri = json_object_get(file, "uri");
	struct resource_content content;
	json_t *begins;
	size_t len;

	/* These names are the service's. With them the tool refuses the call. */
	if (for_people) {
		json_object_del(file, "bytes");
		json_object_del(file, "begins");
	}
	if (!json_is_string(uri))
		return;
	if (!resources_look(host->tenant, json_string_value(uri), &content)) {
		json_object_set_new(file, "sha256", json_null());
		return;
	}
	json_object_set_new(file, "sha256", json_string(content.sha256));
	if (!for_people)
		return;
	json_object_set_new(file, "bytes", json_integer((json_int_t)content.size));
	if (!content.data)
		return;
	len = content.size < BEGINS ? (size_t)content.size : BEGINS;
	len = utf8_prefix(content.data, len);
	begins = memchr(content.data, 0, len) ? NULL : json_stringn(content.data, len);
	json_object_set_new(file, "begins", begins ? begins : json_string("(no text)"));
}

/* What the call works on, and what a person who agrees to it does not see. */
static json_t *
name_unbound(const json_t *arguments)
{
	const json_t *packages = json_object_get(arguments, "dependencies"), *one;
	const char *script = json_string_value(json_object_get(arguments, "script"));
	json_t *list = json_array();
	bool open = script && strstr(script, "# /// script");
	size_t i;

	if (json_object_get(arguments, "volume"))
		json_array_append_new(list, json_string("what is in the volume"));
	if (json_object_get(arguments, "session"))
		json_array_append_new(list, json_string("what the session has: its names, modules "
							"and files"));
	json_array_foreach((json_t *)packages, i, one)
		open |= json_is_string(one) && !strstr(json_string_value(one), "==");
	if (open)
		json_array_append_new(list, json_string("the versions of packages: they are chosen "
							"when it runs"));
	return list;
}

json_t *
run_script_bind(const struct tool_host *host, const json_t *arguments, bool for_people)
{
	json_t *bound = xalloc_check(json_deep_copy((json_t *)arguments)), *file;
	json_t *unbound;
	size_t i;

	json_array_foreach(json_object_get(bound, FILES_ARGUMENT), i, file)
		bind_file(host, file, for_people);
	if (!for_people)
		return bound;
	unbound = name_unbound(arguments);
	json_object_del(bound, "not_approved");
	if (json_array_size(unbound) > 0)
		json_object_set(bound, "not_approved", unbound);
	json_decref(unbound);
	return bound;
}
