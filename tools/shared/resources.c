/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: contents of small files that scripts left, until they expire.
 * Reads:   uris from clients, which are compared; only a range at their end is parsed. */
#include "tools/shared/resources.h"

#include <errno.h>
#include <stdio.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "base/fair.h"
#include "base/hex.h"
#include "base/jsonout.h"
#include "base/named.h"
#include "base/own.h"
#include "base/xalloc.h"
#include "engine/engine.h"
#include "engine/upload.h"
#include "host/filestore.h"
#include "policy/chain.h"
#include "mcp/jsonrpc.h"
#include "mcp/revision.h"
#include "policy/config.h"
#include "tools/shared/file_read.h"
#include "tools/shared/links.h"
#include "tools/shared/media.h"
#include "tools/shared/result_view.h"
#include "tools/shared/skills.h"

TAILQ_HEAD(kept_files, kept_file);

/* The files of a tenant. It exists while it has one. */
struct kept_shelf {
	char *principal;
	struct kept_files files;	/* oldest first */
	size_t n, bytes;
};

struct kept_file {
	TAILQ_ENTRY(kept_file) link;	/* of all tenants */
	TAILQ_ENTRY(kept_file) beside;	/* of its shelf */
	struct kept_shelf *shelf;
	char *uri, *name;
	const char *mime_type;
	char *data;
	size_t len, charge;
	uint64_t until_ms;
};

/* Oldest first. */
static struct kept_files store = TAILQ_HEAD_INITIALIZER(store);
static void *shelves;			/* base/named.h */
static size_t store_bytes;

static uint64_t (*now_ms)(void) = clock_ms;

void
resources_set_clock(uint64_t (*clock)(void))
{
	now_ms = clock;
}

static struct kept_shelf *
get_shelf(const char *principal)
{
	struct kept_shelf *shelf = named_find(&shelves, principal);

	if (!shelf) {
		shelf = xcalloc(1, sizeof(*shelf));
		shelf->principal = xstrdup(principal);
		TAILQ_INIT(&shelf->files);
		named_add(&shelves, shelf);
	}
	return shelf;
}

static void
resources_forget_file(struct kept_file *kept)
{
	struct kept_shelf *shelf = kept->shelf;

	TAILQ_REMOVE(&store, kept, link);
	TAILQ_REMOVE(&shelf->files, kept, beside);
	store_bytes -= kept->charge;
	shelf->bytes -= kept->charge;
	if (--shelf->n == 0) {
		named_remove(&shelves, shelf);
		free(shelf->principal);
		free(shelf);
	}
	free(kept->uri);
	free(kept->name);
	free(kept->data);
	free(kept);
}

void
resources_forget(void)
{
	while (!TAILQ_EMPTY(&store))
		resources_forget_file(TAILQ_FIRST(&store));
}

static void
forget_expired(void)
{
	uint64_t now = now_ms();

	while (!TAILQ_EMPTY(&store) && TAILQ_FIRST(&store)->until_ms <= now)
		resources_forget_file(TAILQ_FIRST(&store));
}

/* Removes files of the tenant until it has room for so many more bytes, of its own and of its share
 * of what all may keep. */
static void
resources_make_room(const struct config *config, const char *principal, size_t charge)
{
	const struct kept_shelf *shelf = named_find(&shelves, principal);
	size_t n = shelf ? shelf->n : 0, bytes = charge + (shelf ? shelf->bytes : 0);
	uint64_t most = fair_bytes(config->results.keep_bytes_max, store_bytes + charge, bytes);

	if (most > config->results.keep_bytes)
		most = config->results.keep_bytes;
	/* The shelf is gone with its last file. */
	for (; n > 0 && (bytes > most || n >= RESOURCES_TENANT_MAX); n--) {
		bytes -= TAILQ_FIRST(&shelf->files)->charge;
		resources_forget_file(TAILQ_FIRST(&shelf->files));
	}
	while (store_bytes + charge > config->results.keep_bytes_max && !TAILQ_EMPTY(&store))
		resources_forget_file(TAILQ_FIRST(&store));
}

char *
resources_part_uri(const char *execution_id, const struct outcome_part *part)
{
	return xasprintf(FILE_URI_SCHEME "%s#%s-%llu", execution_id,
			 part->stream == STREAM_STDOUT ? "stdout" : "stderr",
			 (unsigned long long)part->offset);
}

/* "display-0.png"; malloc'd. NULL: it is not kept. */
static char *
display_name(const struct outcome_display *display)
{
	const char *end = media_end_of_display(display->kind);

	return end ? xasprintf("display-%u.%s", display->object, end) : NULL;
}

static char *
resources_join(const char *execution_id, const char *name)
{
	return xasprintf(FILE_URI_SCHEME "%s#%s", execution_id, name);
}

char *
resources_display_uri(const char *execution_id, const struct outcome_display *display)
{
	char *name = display_name(display), *uri = name ? resources_join(execution_id, name) : NULL;

	free(name);
	return uri;
}

/* Takes ownership of uri and name. */
static void
resources_add(const struct config *config, const char *principal, char *uri, char *name,
	      const char *mime_type, const void *data, size_t len)
{
	struct kept_file *kept = xcalloc(1, sizeof(*kept));

	kept->uri = uri;
	kept->name = name;
	kept->mime_type = mime_type;
	kept->data = xmemdup0(data, len);
	kept->len = len;
	kept->charge = len + strlen(uri) + strlen(name) + sizeof(*kept);
	kept->until_ms = now_ms() + config->results.keep_seconds * 1000ULL;
	resources_make_room(config, principal, kept->charge);
	store_bytes += kept->charge;
	kept->shelf = get_shelf(principal);
	kept->shelf->bytes += kept->charge;
	kept->shelf->n++;
	TAILQ_INSERT_TAIL(&store, kept, link);
	TAILQ_INSERT_TAIL(&kept->shelf->files, kept, beside);
}

char *
resources_keep_text(const struct config *config, const struct tenant *tenant,
		    const char *execution_id, const char *name, const char *text, size_t len)
{
	char *uri;

	if (len > config->results.keep_bytes / 2)
		return NULL;
	uri = resources_join(execution_id, name);
	forget_expired();
	resources_add(config, tenant_principal(tenant), xstrdup(uri), xstrdup(name), "text/plain", text,
		      len);
	return uri;
}

void
resources_keep(const struct config *config, const struct tenant *tenant,
	       const struct outcome *outcome)
{
	const char *principal = tenant_principal(tenant);

	forget_expired();
	for (size_t i = 0; i < outcome->n_parts; i++) {
		const struct outcome_part *part = &outcome->part[i];

		resources_add(config, principal, resources_part_uri(outcome->id, part),
			      xstrdup(part->stream == STREAM_STDOUT ? "stdout" : "stderr"),
			      "text/plain", part->at, part->len);
	}
	for (size_t i = 0; i < outcome->n_displays; i++) {
		const struct outcome_display *display = &outcome->display[i];
		char *name = display_name(display);

		if (name && media_fits(display->kind, display->data, display->len))
			resources_add(config, principal, resources_join(outcome->id, name), name,
				      media_of_display(display->kind), display->data,
				      display->len);
		else
			free(name);
	}
	for (size_t i = 0; i < outcome->n_files; i++) {
		const struct outcome_file *file = &outcome->file[i];

		if (file->data)
			resources_add(config, principal,
				      file_uri(outcome->id, file->path, file->path_len),
				      xmemdup0(file->path, file->path_len),
				      media_of_path(file->path, file->path_len), file->data,
				      file->len);
	}
}

/* ---- the provider ---- */

/* In memory. */
static const struct kept_file *
next_kept(const char *principal, const char *after)
{
	const struct kept_file *best = NULL, *kept;
	const struct kept_shelf *shelf;

	forget_expired();
	shelf = named_find(&shelves, principal);
	for (kept = shelf ? TAILQ_FIRST(&shelf->files) : NULL; kept;
	     kept = TAILQ_NEXT(kept, beside))
		if (strcmp(kept->uri, after) > 0 && (!best || strcmp(kept->uri, best->uri) < 0))
			best = kept;
	return best;
}

static bool
resources_next(struct tenant *tenant, const char *after, struct resource *resource_r)
{
	const char *principal = tenant_principal(tenant);
	const struct kept_file *kept = next_kept(principal, after);
	struct filestore *files = tenant_filestore(tenant);
	struct filestore_file file;
	bool on_disk = files && filestore_next(files, principal, after, &file);

	if (kept && (!on_disk || strcmp(kept->uri, file.uri) <= 0))
		*resource_r = (struct resource){ .uri = kept->uri, .name = kept->name,
						 .mime_type = kept->mime_type,
						 .size = kept->len };
	else if (on_disk)
		*resource_r = (struct resource){ .uri = file.uri, .name = file.path,
						 .mime_type = media_of_path(file.path,
									    strlen(file.path)),
						 .size = file.size };
	return kept || on_disk;
}

static bool
next_template(struct tenant *, const char *after, struct resource *template_r)
{
	static const struct resource templates[] = {	/* in their order */
		{ .uri = FILE_URI_SCHEME "{execution}#{name}{?bytes}",
		  .name = "output",
		  .description = "Output or a result that an answer shows in part, or a displayed "
				 "object; bytes: a range, such as 0-9999" },
		{ .uri = FILE_URI_SCHEME "{execution}/{+path}{?bytes}",
		  .name = "file",
		  .description = "A file that a call left; bytes: a range, such as 0-9999" },
	};

	for (size_t i = 0; i < sizeof(templates) / sizeof(*templates); i++)
		if (strcmp(templates[i].uri, after) > 0) {
			*template_r = templates[i];
			return true;
		}
	return false;
}

static const struct kept_file *
resources_find_kept(const struct tenant *tenant, const char *uri)
{
	const struct kept_file *kept;
	const struct kept_shelf *shelf;

	forget_expired();
	/* Only the tenant's own: the response time must not reveal how much of a guess is right
	 * about another tenant's uri. */
	shelf = named_find(&shelves, tenant_principal(tenant));
	for (kept = shelf ? TAILQ_FIRST(&shelf->files) : NULL; kept;
	     kept = TAILQ_NEXT(kept, beside))
		if (strcmp(kept->uri, uri) == 0)
			break;
	return kept;
}

bool
resources_find(const struct tenant *tenant, const char *uri, const void **data_r,
	       size_t *len_r)
{
	const struct kept_file *kept = resources_find_kept(tenant, uri);

	if (!kept)
		return false;
	*data_r = kept->data;
	*len_r = kept->len;
	return true;
}

bool
resources_look(const struct tenant *tenant, const char *uri, struct resource_content *content_r)
{
	struct filestore *files = tenant_filestore(tenant);
	struct filestore_file file;
	size_t len;

	*content_r = (struct resource_content){ .data = NULL };
	if (resources_find(tenant, uri, &content_r->data, &len)) {
		content_r->size = len;
		chain_hash(content_r->data, len, content_r->sha256);
		return true;
	}
	if (!files || !filestore_find(files, tenant_principal(tenant), uri, &file))
		return false;
	content_r->size = file.size;
	hex_write(file.sha256, sizeof(file.sha256), content_r->sha256);
	return true;
}

bool
resources_is_on_disk(const struct tenant *tenant, const char *uri)
{
	struct filestore *files = tenant_filestore(tenant);
	struct filestore_file file;

	return files && filestore_find(files, tenant_principal(tenant), uri, &file);
}

static void
refuse_range(const struct tool_host *host, const struct file_range *range, uint64_t size,
	     int error)
{
	struct tool_failure failure = { .kind = FAIL_RPC, .code = JSONRPC_INVALID_PARAMS };
	char text[256];

	if (error == -ERANGE)
		snprintf(text, sizeof(text), "the file has %llu bytes; byte %llu is behind its end",
			 (unsigned long long)size, (unsigned long long)range->first);
	else
		snprintf(text, sizeof(text), "the file has %llu bytes, and at most %u can be read "
			 "at once: add ?bytes=0-%u to its uri, and so on",
			 (unsigned long long)size, FILE_READ_MAX, FILE_READ_MAX - 1);
	failure.text = text;
	host->on_fail(host->arg, &failure);
}

static struct tool_run *
start_range(const struct tool_host *host, const char *uri, const struct file_range *range)
{
	const struct tool_failure missing = { .kind = FAIL_NO_RESOURCE, .text = uri };
	const struct kept_file *kept = resources_find_kept(host->tenant, range->uri);
	struct filestore *files = tenant_filestore(host->tenant);
	struct filestore_file file = { .size = kept ? kept->len : 0 };
	uint64_t offset;
	size_t len;
	int r;

	if (!kept && !(files && filestore_find(files, tenant_principal(host->tenant), range->uri,
					       &file))) {
		host->on_fail(host->arg, &missing);
		return NULL;
	}
	r = file_range_fit(range, file.size, kept ? kept->len : FILE_READ_MAX, &offset, &len);
	if (r < 0)
		refuse_range(host, range, file.size, r);
	else if (!kept)
		return file_read_start(host, uri, &file, offset, len);
	else
		file_read_answer(host, uri, kept->mime_type, kept->data + offset, len);
	return NULL;
}

/* Answers with a link for an upload, and the address that the file will have. False: uri does not
 * ask for a link, or there are none here. */
static bool
answer_upload(const struct tool_host *host, const char *uri)
{
	static const char prefix[] = FILE_URI_SCHEME UPLOAD_LINKS;
	own_mem char *place = NULL, *link = NULL, *at = NULL;
	struct jsonout out;

	if (!host->config->http.links || !tenant_filestore(host->tenant) ||
	    strncmp(uri, prefix, strlen(prefix)) != 0)
		return false;
	at = upload_uri(uri + strlen(prefix));
	if (!at)
		return false;
	place = xasprintf("%s%s", prefix, at + strlen(FILE_URI_SCHEME));
	link = link_new(host->config, host->tenant, place);
	jsonout_init(&out);
	jsonout_open(&out, '{');
	jsonout_member_text(&out, "http_url", link);
	jsonout_member_text(&out, "uri", at);
	jsonout_member_uint(&out, "expires_seconds", host->config->http.link_seconds);
	jsonout_close(&out, '}');
	file_read_answer(host, uri, "application/json", out.at, out.len);
	jsonout_done(&out);
	return true;
}

/* Answers with a text that is the same for all: a skill, or the page of views. False: uri is the
 * address of none. */
static bool
answer_text(const struct tool_host *host, const char *uri)
{
	const struct skill *skill = skills_find(uri);
	const struct content page = { .kind = CONTENT_RESOURCE, .uri = uri, .mime_type = VIEW_TYPE,
				      .text = result_view, .text_len = sizeof(result_view) - 1,
				      .meta = "{\"ui\":{\"prefersBorder\":true}}" };

	if (skill)
		file_read_answer(host, uri, "text/markdown", skill->text, skill->len);
	if (skill || host->config->mcp.views != VIEWS_AUTO || strcmp(uri, VIEW_URI) != 0)
		return skill;
	host->on_answer(host->arg, &(struct tool_answer){ .content = &page, .n_content = 1 });
	return true;
}

static struct tool_run *
resources_start(const struct tool_host *host, const json_t *arguments)
{
	const json_t *value = json_object_get(arguments, "uri");
	const char *uri = json_string_value(value);
	const struct tool_failure failure = { .kind = FAIL_NO_RESOURCE, .text = uri };
	struct file_range range;
	struct tool_run *run;

	if (!uri || strlen(uri) != json_string_length(value) || !file_range_read(uri, &range)) {
		host->on_fail(host->arg, &failure);
		return NULL;
	}
	run = answer_text(host, uri) || answer_upload(host, range.uri)
		      ? NULL : start_range(host, uri, &range);
	free(range.uri);
	return run;
}

static void
resources_cancel(struct tool_run *run, enum cancel_reason)
{
	file_read_cancel(run);
}

static const struct tool reader = {
	.name = "resources/read",
	.start = resources_start,
	.cancel = resources_cancel,
};

const struct resource_provider own_resources = {
	.next = resources_next,
	.next_template = next_template,
	.read = &reader,
};
