/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the calls of local_file.
 * Reads:   paths that a model names; the roots and replies of a client, in any shape. */
#include "tools/shared/tools.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/id.h"
#include "base/log.h"
#include "base/own.h"
#include "base/quote.h"
#include "base/why.h"
#include "base/xalloc.h"
#include "engine/engine.h"
#include "engine/file_uri.h"
#include "host/filestore.h"
#include "policy/config.h"
#include "policy/shown.h"
#include "tools/files/schema/local_file_input.h"
#include "tools/files/schema/local_file_output.h"
#include "tools/shared/argument_map.h"

#define PATH_MOST 4000		/* bytes of a path, and of its address */
#define ROOTS_MOST 64		/* of a client; further ones do not count */
#define LOOK_S 30
#define FILE_SCHEME "file://"

/* ROOTS ──roots/list──> CONSENT ──accept──> LOOK ──size──> TAKE ──end──> answer
 *   any of them ──refusal, error──> answer */
enum step { STEP_ROOTS, STEP_CONSENT, STEP_LOOK, STEP_TAKE };

struct tool_run {
	struct tool_host host;
	enum step step;
	char *path;			/* absolute, plain */
	char *root;			/* of the client; NULL: not known yet */
	char *uri;			/* in the store */
	uint64_t size;
	struct filestore_job *job;	/* NULL: none */
};

/* ---- the answer ---- */

static void
local_file_free(struct tool_run *run)
{
	free(run->path);
	free(run->root);
	free(run->uri);
	free(run);
}

static void
answer(const struct tool_host *host, const char *status, const char *message,
       const struct tool_run *kept)
{
	struct tool_writer w;

	tool_write(&w, host);
	w.answer.is_error = !kept;
	fputs(message, w.text);
	if (w.for_programs) {
		jsonout_open(&w.structured, '{');
		jsonout_member_text(&w.structured, "status", status);
		jsonout_member_text(&w.structured, "message", message);
		if (kept) {
			jsonout_member_text(&w.structured, "uri", kept->uri);
			jsonout_member_uint(&w.structured, "size", kept->size);
		}
		jsonout_close(&w.structured, '}');
	}
	tool_give(&w);
}

static void
local_file_refuse(const char *reason, const char *text, const struct tool_host *host)
{
	answer(host, *reason ? reason : "error", text, NULL);
}

/* Answers, and ends the run. */
static void
give_up(struct tool_run *run, const char *status, const char *text)
{
	struct tool_host host = run->host;

	local_file_free(run);
	answer(&host, status, text, NULL);
}

/* ---- paths ---- */

/* Decodes %XX. Malloc'd; NULL: it is not valid, or has a NUL. */
static char *
decode(const char *escaped)
{
	char *text = xstrdup(escaped), *to = text;

	for (const char *at = escaped; *at; at++) {
		char digits[3] = { 0 }, *end;

		if (*at != '%') {
			*to++ = *at;
			continue;
		}
		memcpy(digits, at + 1, strnlen(at + 1, 2));
		*to = (char)strtoul(digits, &end, 16);
		if (end != digits + 2 || strspn(digits, "0123456789abcdefABCDEF") != 2 || !*to) {
			free(text);
			return NULL;
		}
		to++;
		at += 2;
	}
	*to = '\0';
	return text;
}

/* Is it absolute and plain: no empty name, no "." and "..", nothing that a form would show in
 * another way? A slash at the end is allowed. */
static bool
is_plain_path(const char *path)
{
	if (*path != '/' || strlen(path) > PATH_MOST || !quote_is_plain(path, strlen(path)))
		return false;
	for (const char *name = path + 1; *name;) {
		size_t len = strcspn(name, "/");

		if (len == 0 || strncmp(name, ".", len) == 0 || strncmp(name, "..", len) == 0)
			return false;
		name += len + (name[len] == '/');
	}
	return true;
}

/* The path of a file:// address of this machine, or the path itself; malloc'd, without a slash at
 * the end. NULL: it is neither. */
static char *
path_of(const char *name)
{
	const size_t scheme = strlen(FILE_SCHEME), local = strlen("localhost");
	char *path;
	size_t len;

	if (strncmp(name, FILE_SCHEME, scheme) == 0) {
		name += scheme;
		name += strncmp(name, "localhost/", local + 1) == 0 ? local : 0;
		path = decode(name);
	} else {
		path = xstrdup(name);
	}
	if (!path || !is_plain_path(path)) {
		free(path);
		return NULL;
	}
	len = strlen(path);
	if (len > 1 && path[len - 1] == '/')
		path[len - 1] = '\0';
	return path;
}

/* Does the path lie below the root? Returns the rest of it, without a slash; NULL: it does not. */
static const char *
below(const char *root, const char *path)
{
	size_t len = strlen(root);

	return strcmp(root, "/") != 0 && strncmp(path, root, len) == 0 && path[len] == '/' &&
	       path[len + 1] ? path + len + 1 : NULL;
}

/* ---- the steps ---- */

static void
on_begin(void *arg, int fd)
{
	(void)arg;
	close(fd);		/* the helper opens the file itself */
}

static void
on_taken(void *arg, int error)
{
	struct tool_run *run = arg;
	struct tool_host host = run->host;
	char text[256];

	run->job = NULL;
	if (error < 0) {
		snprintf(text, sizeof(text), "the file was not taken: %s",
			 error == -EDQUOT || error == -ENOSPC ? "there is no room for it"
			 : error == -ESTALE ? "it changed meanwhile" : strerror(-error));
		give_up(run, "error", text);
		return;
	}
	log_line(LOG_INFO, "local-file", "tenant=%s size=%llu", tenant_principal(host.tenant),
		 (unsigned long long)run->size);
	snprintf(text, sizeof(text), "%s (%llu bytes): name it in files, as uri", run->uri,
		 (unsigned long long)run->size);
	answer(&host, "ok", text, run);
	local_file_free(run);
}

static void
on_size(void *arg, uint64_t size)
{
	struct tool_run *run = arg;

	run->size = size;
}

static struct filestore_local
local_of(const struct tool_run *run)
{
	return (struct filestore_local){ .root = run->root, .path = below(run->root, run->path) };
}

/* The file is a regular one that may be read, or error says why not. */
static void
on_looked(void *arg, int error)
{
	struct tool_run *run = arg;
	const uint64_t most = run->host.config->files.file_bytes;
	const char *name = strrchr(run->path, '/') + 1;
	const struct filestore_local local = local_of(run);
	const struct filestore_calls calls = { .begin = on_begin, .end = on_taken, .arg = run };
	char text[128], id[2 + ID_SHORT + 1];

	run->job = NULL;
	snprintf(text, sizeof(text), "files of 1 to %llu bytes can be taken, and this one has %llu",
		 (unsigned long long)most, (unsigned long long)run->size);
	if (error == -ELOOP || error == -EXDEV)
		give_up(run, "error", "a symbolic link or another file system is on the way");
	else if (error < 0)
		give_up(run, "error", error == -EINVAL ? "it is no regular file" : strerror(-error));
	else if (run->size == 0 || run->size > most)
		give_up(run, "error", text);
	else {
		id_new_short(stpcpy(id, "u-"));
		run->uri = file_uri(id, name, strlen(name));
		run->step = STEP_TAKE;
		run->job = filestore_keep_local(tenant_filestore(run->host.tenant),
						tenant_principal(run->host.tenant), run->uri, name,
						run->size, &local, &calls);
	}
}

static void
look(struct tool_run *run)
{
	const struct filestore_local local = local_of(run);
	const struct filestore_calls calls = { .begin = on_begin, .size = on_size,
					       .end = on_looked, .arg = run };

	run->step = STEP_LOOK;
	run->job = filestore_look(tenant_filestore(run->host.tenant),
				  tenant_principal(run->host.tenant), &local, LOOK_S, &calls);
}

/* Asks the user. The path is the model's text: one line, and nothing in it is not shown. */
static void
ask_consent(struct tool_run *run)
{
	struct tool_question question = {
		.key = "local-file",
		.kind = QUESTION_ELICIT,
		.schema = "{\"type\":\"object\",\"properties\":{\"allow\":{\"type\":\"boolean\","
			  "\"title\":\"Give this file to scripts\"}},\"required\":[\"allow\"]}",
	};
	own_mem char *message = xasprintf("May scripts that run for you read a copy of this file of "
					  "yours? They can show its content to the model.\n\n%s %s",
					  SHOWN_MARK, run->path);

	run->step = STEP_CONSENT;
	question.message = message;
	if (run->host.on_ask(run->host.arg, &question, 1, NULL) < 0)
		give_up(run, "error", "your user cannot be asked");
}

/* Finds the client's root above the path. */
static void
take_roots(struct tool_run *run, const json_t *result)
{
	const json_t *roots = json_object_get(result, "roots"), *root;
	size_t i;

	json_array_foreach(roots, i, root) {
		const char *uri = json_string_value(json_object_get(root, "uri"));
		own_mem char *path = uri && i < ROOTS_MOST &&
				     strncmp(uri, FILE_SCHEME, strlen(FILE_SCHEME)) == 0
			? path_of(uri) : NULL;

		if (path && below(path, run->path)) {
			run->root = give_ptr(path);
			ask_consent(run);
			return;
		}
	}
	give_up(run, "error", "the file is below none of the directories (roots) that the client "
			      "offers");
}

/* ---- the run ---- */

static const struct argument map[] = {
	{ "path", argument_string, .most = PATH_MOST, .needed = "a path or a file:// address" },
};

/* Checks the arguments, the service and the client. The path, malloc'd; NULL with why_r. */
static char *
read_call(const struct tool_host *host, const json_t *json, struct why *why_r)
{
	const char *name = NULL;
	struct reading in = { local_file_tool.name, .to = &name, .why = why_r };
	char *path;

	if (argument_map_read(map, 1, json, &in) < 0)
		return NULL;
	path = path_of(name);
	if (!path)
		why_say(why_r, -EINVAL, "path", "path: it must be absolute, without . and .., or its "
			"file:// address");
	else if (!tenant_filestore(host->tenant))
		why_say(why_r, -ENOENT, "path", "the service keeps no files on disk now");
	else if (!(host->client & CLIENT_HAS_ROOTS) || !(host->client & CLIENT_ELICITS))
		why_say(why_r, -EOPNOTSUPP, "path", "your client offers no directories (roots) or shows "
			"no forms (elicitation): send the content in files");
	else
		return path;
	free(path);
	return NULL;
}

static struct tool_run *
local_file_start(const struct tool_host *host, const json_t *json)
{
	static const struct tool_question question = { .key = "roots", .kind = QUESTION_ROOTS };
	struct why why = { .field = "" };
	char *path = read_call(host, json, &why);
	struct tool_run *run;

	if (!path) {
		local_file_refuse("", why.text, host);
		return NULL;
	}
	run = xcalloc(1, sizeof(*run));
	run->host = *host;
	run->path = path;
	if (host->on_ask(host->arg, &question, 1, NULL) == 0)
		return run;
	give_up(run, "error", "your client cannot be asked for its directories");
	return NULL;
}

static void
local_file_reply(struct tool_run *run, const struct tool_reply *reply, size_t, const char *)
{
	bool accepted = reply->action == REPLY_ACCEPT;

	if (run->step == STEP_ROOTS && accepted)
		take_roots(run, reply->content);
	else if (run->step == STEP_CONSENT && accepted &&
		 json_is_true(json_object_get(reply->content, "allow")))
		look(run);
	else
		give_up(run, TOOL_DENIED, run->step == STEP_ROOTS
			? "the client has not listed its directories" : "your user has not allowed it");
}

static void
local_file_cancel(struct tool_run *run, enum cancel_reason)
{
	if (run->job)
		filestore_cancel(run->job);
	local_file_free(run);
}

const struct tool local_file_tool = {
	.name = "local_file",
	.refuse = local_file_refuse,
	.says = {
		.title = "Take a file of the user",
		.icon = ICON_RUN,
		.description =
			"Take a copy of a file of the user's machine, below a directory that their "
			"client offers (roots); they are asked. Answers its uri for files of "
			"run_script and run_repl.",
		.input_schema = local_file_input_schema,
		.output_schema = local_file_output_schema,
		.read_only = true,
	},
	.start = local_file_start,
	.cancel = local_file_cancel,
	.reply = local_file_reply,
	.asks_first = true,
};
