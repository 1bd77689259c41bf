/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the calls of local_file and save_file.
 * Reads:   paths that a model names; the roots and replies of a client, in any shape. */
#include "tools/shared/tools.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/id.h"
#include "base/own.h"
#include "base/quote.h"
#include "base/why.h"
#include "base/writeall.h"
#include "base/xalloc.h"
#include "engine/engine.h"
#include "engine/file_uri.h"
#include "govern/audit.h"
#include "govern/gate.h"
#include "host/filestore.h"
#include "policy/config.h"
#include "policy/shown.h"
#include "tools/files/schema/local_file_input.h"
#include "tools/files/schema/local_file_output.h"
#include "tools/files/schema/save_file_input.h"
#include "tools/files/schema/save_file_output.h"
#include "tools/shared/argument_map.h"
#include "tools/shared/resources.h"

#define PATH_MOST 4000		/* bytes of a path, and of its address */
#define ROOTS_MOST 64		/* of a client; further ones do not count */
#define LOOK_S 30
#define FILE_SCHEME "file://"

#define NAMES_TRIED 20		/* until one is free */

/* ROOTS ──roots/list──> CONSENT ──accept──> RECORD ──on the disk──> ACT ──end──> answer
 *   any of them ──refusal, error──> answer
 * To ACT is to find the size of the file and then to take it, or to write it. */
enum step { STEP_ROOTS, STEP_CONSENT, STEP_RECORD, STEP_ACT };

struct tool_run {
	struct tool_host host;
	const struct tool *tool;
	enum step step;
	char *path;			/* absolute, plain */
	char *saved;			/* the same with a number; NULL: that is not needed */
	char *root;			/* of the client; NULL: not known yet */
	char *uri;			/* of the service; NULL: not known yet */
	uint64_t size;
	char sha256[65];		/* "": not known yet */
	unsigned int names;		/* that were there already */
	struct writing_wait recorded;
	struct filestore_job *job;	/* NULL: none */
};

static const char *
place_of(const struct tool_run *run)
{
	return run->saved ? run->saved : run->path;
}

static bool
is_saved(const struct tool_run *run)
{
	return run->tool == &save_file_tool;
}

/* ---- records ---- */

/* Of a decision, or of what came of it. wait: as of audit_write_first. */
static int
local_file_record(const struct tool_run *run, enum audit_event event, const char *result,
		  struct writing_wait *wait)
{
	json_t *more = json_pack("{s:s,s:s,s:s*,s:s*,s:s}", "tool", run->tool->name, "path",
				 place_of(run), "root", run->root, "uri", run->uri, "result", result);

	xalloc_check(more);
	if (*run->sha256) {
		json_object_set_new(more, "size", json_integer((json_int_t)run->size));
		json_object_set_new(more, "sha256", json_string(run->sha256));
	}
	return audit_write_first(gate_audit(run->host.gate), event,
				 tenant_principal(run->host.tenant), NULL, more, wait);
}

/* ---- the answer ---- */

static void
local_file_free(struct tool_run *run)
{
	free(run->path);
	free(run->saved);
	free(run->root);
	free(run->uri);
	free(run);
}

static void
answer(const struct tool_host *host, const char *status, const char *message,
       const struct tool_run *done)
{
	struct tool_writer w;

	tool_write(&w, host);
	w.answer.is_error = !done;
	fputs(message, w.text);
	if (w.for_programs) {
		jsonout_open(&w.structured, '{');
		jsonout_member_text(&w.structured, "status", status);
		jsonout_member_text(&w.structured, "message", message);
		if (done) {
			if (is_saved(done))
				jsonout_member_text(&w.structured, "path", place_of(done));
			else
				jsonout_member_text(&w.structured, "uri", done->uri);
			jsonout_member_uint(&w.structured, "size", done->size);
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

	local_file_record(run, run->step == STEP_ACT ? AUDIT_LOCAL_FILE_ENDED
			       : AUDIT_LOCAL_FILE_DECIDED,
			  run->step == STEP_ACT ? text : status, NULL);
	local_file_free(run);
	answer(&host, status, text, NULL);
}

static void
succeed(struct tool_run *run, const char *text)
{
	local_file_record(run, AUDIT_LOCAL_FILE_ENDED, "ok", NULL);
	answer(&run->host, "ok", text, run);
	local_file_free(run);
}

/* What the file helper reports. */
static const char *
local_file_error(int error)
{
	switch (-error) {
	case ELOOP: case EXDEV:
		return "a symbolic link or another file system is on the way; the directory (root) "
		       "has to be named by its real path";
	case EDQUOT: case ENOSPC:
		return "there is no room for it";
	case ESTALE:
		return "it changed meanwhile, or is gone";
	case EINVAL:
		return "it is no regular file";
	case EEXIST:
		return "files of this name, and of the names that were tried instead, are there";
	case EOPNOTSUPP:
		return "the file system of that directory cannot take a file as a whole";
	default:
		return strerror(-error);
	}
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
	struct resource_content content;
	char text[256];

	run->job = NULL;
	if (error == 0 && !resources_look(run->host.tenant, run->uri, &content))
		error = -ESTALE;
	if (error < 0) {
		snprintf(text, sizeof(text), "the file was not taken: %s", local_file_error(error));
		give_up(run, "error", text);
		return;
	}
	stpcpy(run->sha256, content.sha256);
	snprintf(text, sizeof(text), "%s (%llu bytes): name it in files, as uri", run->uri,
		 (unsigned long long)run->size);
	succeed(run, text);
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
	return (struct filestore_local){ run->root, below(run->root, place_of(run)) };
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
	if (error < 0)
		give_up(run, "error", local_file_error(error));
	else if (run->size == 0 || run->size > most)
		give_up(run, "error", text);
	else {
		id_new_short(stpcpy(id, "u-"));
		run->uri = file_uri(id, name, strlen(name));
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

	run->job = filestore_look(tenant_filestore(run->host.tenant),
				  tenant_principal(run->host.tenant), &local, LOOK_S, &calls);
}

/* A file in memory as a descriptor, so that the helper can read it; -1: it is on disk. -errno. */
static int
source_of(const struct resource_content *content)
{
	own_fd int fd = -1;
	int r;

	if (!content->data)
		return -1;
	fd = memfd_create("file", MFD_CLOEXEC);
	r = fd < 0 ? -errno : write_all(fd, content->data, content->size);
	if (r == 0 && lseek(fd, 0, SEEK_SET) < 0)
		r = -errno;
	return r < 0 ? r : give_fd(fd);
}

/* The path with a number before its extension: a.csv, a-1.csv, a-2.csv. */
static char *
numbered(const char *path, unsigned int number)
{
	const char *name = strrchr(path, '/') + 1, *end = strrchr(name, '.');

	if (!end)
		end = name + strlen(name);
	return xasprintf("%.*s-%u%s", (int)(end - path), path, number, end);
}

static void save(struct tool_run *run);

static void
on_saved(void *arg, int error)
{
	struct tool_run *run = arg;
	char text[PATH_MOST + 64];

	run->job = NULL;
	if (error == -EEXIST && run->names < NAMES_TRIED) {
		free(run->saved);
		run->saved = numbered(run->path, ++run->names);
		save(run);
		return;
	}
	snprintf(text, sizeof(text), error < 0 ? "the file was not written: %s" : "written: %s",
		 error < 0 ? local_file_error(error) : place_of(run));
	if (error < 0)
		give_up(run, "error", text);
	else
		succeed(run, text);
}

static void
save(struct tool_run *run)
{
	const struct filestore_calls calls = { .begin = on_begin, .end = on_saved, .arg = run };
	struct resource_content content;
	const struct filestore_local local = local_of(run);
	int source;

	/* What the user has agreed to. */
	if (!resources_look(run->host.tenant, run->uri, &content) ||
	    strcmp(content.sha256, run->sha256) != 0) {
		give_up(run, "error", local_file_error(-ESTALE));
		return;
	}
	source = source_of(&content);
	if (source < -1) {
		give_up(run, "error", strerror(-source));
		return;
	}
	run->job = filestore_give(tenant_filestore(run->host.tenant),
				  tenant_principal(run->host.tenant), run->uri, source, run->size,
				  &local, &calls);
}

/* The user has agreed, and the record of this is written. */
static void
act(void *arg, int error)
{
	struct tool_run *run = arg;

	if (error < 0) {
		give_up(run, "error", "the audit log cannot be written");
		return;
	}
	run->step = STEP_ACT;
	if (is_saved(run))
		save(run);
	else
		look(run);
}

static void
record_consent(struct tool_run *run)
{
	int r;

	run->step = STEP_RECORD;
	run->recorded = (struct writing_wait){ .on_written = act, .arg = run };
	r = local_file_record(run, AUDIT_LOCAL_FILE_DECIDED, "allowed", &run->recorded);
	if (r != -EINPROGRESS)
		act(run, r);
}

static char *
consent_message(const struct tool_run *run)
{
	if (!is_saved(run))
		return xasprintf("May scripts that run for you read a copy of this file of yours? "
				 "They can show its content to the model.\n\n%s %s", SHOWN_MARK,
				 run->path);
	return xasprintf("May a file that scripts have made for you be written to this place of "
			 "yours? Nothing is replaced: if a file is there already, the new one gets "
			 "a number in its name.\n\n%s %s\n%llu bytes", SHOWN_MARK, run->path,
			 (unsigned long long)run->size);
}

/* Asks the user. The path is the model's text: one line, and nothing in it is not shown. */
static void
ask_consent(struct tool_run *run)
{
	struct tool_question question = {
		.key = "local-file",
		.kind = QUESTION_ELICIT,
		.schema = "{\"type\":\"object\",\"properties\":{\"allow\":{\"type\":\"boolean\","
			  "\"title\":\"Allow this\"}},\"required\":[\"allow\"]}",
	};
	own_mem char *message = consent_message(run);

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

		if (!path || !below(path, run->path))
			continue;
		run->root = give_ptr(path);
		/* Such files are settings of programs, or are run by them. */
		if (is_saved(run) && strstr(run->path + strlen(run->root), "/."))
			give_up(run, "error", "path: a name below the directory begins with a dot; "
					      "such files are settings");
		else
			ask_consent(run);
		return;
	}
	give_up(run, "error", "the file is below none of the directories (roots) that the client "
			      "offers");
}

/* ---- the run ---- */

struct arguments {
	const char *path, *uri;
};

static const struct argument map[] = {
	{ "path", argument_string, .at = offsetof(struct arguments, path), .most = PATH_MOST,
	  .needed = "a path or a file:// address" },
	{ "uri", argument_string, .at = offsetof(struct arguments, uri), .most = PATH_MOST,
	  .needed = "the address of a file of an earlier call" },	/* of save_file only */
};

/* Checks what save_file has beside its path. */
static int
read_saved(struct tool_run *run, const struct arguments *arguments, struct why *why_r)
{
	struct resource_content content;

	if (!resources_look(run->host.tenant, arguments->uri, &content))
		return why_say(why_r, -ENOENT, "uri", "uri: no file is kept at this address (any more)");
	run->uri = xstrdup(arguments->uri);
	run->size = content.size;
	stpcpy(run->sha256, content.sha256);
	return 0;
}

/* Checks the arguments, the service and the client. 0, or -errno with why_r. */
static int
read_call(struct tool_run *run, const json_t *json, struct why *why_r)
{
	const unsigned int needed = CLIENT_HAS_ROOTS | CLIENT_ELICITS;
	struct arguments arguments = { .path = NULL };
	struct reading in = { run->tool->name, .to = &arguments, .why = why_r };
	int r = argument_map_read(map, is_saved(run) ? 2 : 1, json, &in);

	if (r < 0)
		return r;
	run->path = path_of(arguments.path);
	if (!run->path)
		return why_say(why_r, -EINVAL, "path", "path: it must be absolute, without . and .., or "
			       "its file:// address");
	if (!tenant_filestore(run->host.tenant))
		return why_say(why_r, -ENOENT, "path", "the service keeps no files on disk now");
	if ((run->host.client & needed) != needed)
		return why_say(why_r, -EOPNOTSUPP, "path", "your client offers no directories (roots) or "
			       "shows no forms (elicitation): %s", is_saved(run)
			       ? "give your user the uri, which it can read as a resource, or show the "
				 "content" : "send the content in files");
	return is_saved(run) ? read_saved(run, &arguments, why_r) : 0;
}

static struct tool_run *
start_as(const struct tool *tool, const struct tool_host *host, const json_t *json)
{
	static const struct tool_question question = { .key = "roots", .kind = QUESTION_ROOTS };
	struct why why = { .field = "" };
	struct tool_run *run = xcalloc(1, sizeof(*run));

	run->host = *host;
	run->tool = tool;
	if (read_call(run, json, &why) < 0) {
		local_file_free(run);
		local_file_refuse("", why.text, host);
		return NULL;
	}
	if (host->on_ask(host->arg, &question, 1, NULL) == 0)
		return run;
	give_up(run, "error", "your client cannot be asked for its directories");
	return NULL;
}

static struct tool_run *
local_file_start(const struct tool_host *host, const json_t *json)
{
	return start_as(&local_file_tool, host, json);
}

static struct tool_run *
save_file_start(const struct tool_host *host, const json_t *json)
{
	return start_as(&save_file_tool, host, json);
}

static void
local_file_reply(struct tool_run *run, const struct tool_reply *reply, size_t, const char *)
{
	bool accepted = reply->action == REPLY_ACCEPT;

	if (run->step == STEP_ROOTS && accepted)
		take_roots(run, reply->content);
	else if (run->step == STEP_CONSENT && accepted &&
		 json_is_true(json_object_get(reply->content, "allow")))
		record_consent(run);
	else
		give_up(run, TOOL_DENIED, run->step == STEP_ROOTS
			? "the client has not listed its directories" : "your user has not allowed it");
}

static void
local_file_cancel(struct tool_run *run, enum cancel_reason)
{
	if (run->step == STEP_ACT)
		local_file_record(run, AUDIT_LOCAL_FILE_ENDED, "cancelled", NULL);
	writing_unwait(&run->recorded);
	if (run->job)
		filestore_cancel(run->job);
	local_file_free(run);
}

#define WAYS(begin) \
	.refuse = local_file_refuse, .start = begin, .cancel = local_file_cancel, \
	.reply = local_file_reply, .asks_first = true

const struct tool local_file_tool = {
	.name = "local_file",
	WAYS(local_file_start),
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
};

const struct tool save_file_tool = {
	.name = "save_file",
	WAYS(save_file_start),
	.says = {
		.title = "Give the user a file",
		.icon = ICON_RUN,
		.description =
			"Write a kept file (uri) to the user's machine, below a directory that their "
			"client offers (roots); they are asked. Nothing is replaced. Answers the path.",
		.input_schema = save_file_input_schema,
		.output_schema = save_file_output_schema,
	},
};
