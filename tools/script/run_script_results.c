/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the plan of what is shown while an answer is written.
 * Reads:   displays and files of a script, which chooses kinds, bytes and names. */
#include "tools/script/run_script_results.h"

#include <errno.h>
#include <string.h>

#include "base/hex.h"
#include "base/own.h"
#include "base/xalloc.h"
#include "engine/file_uri.h"
#include "engine/tenants.h"
#include "policy/config.h"
#include "tools/script/run_script_answer.h"
#include "tools/shared/links.h"
#include "tools/shared/media.h"
#include "tools/shared/resources.h"

#define ENTRY_COST 512		/* keys, numbers and types around one entry */
#define READ_FILES_MAX 10	/* told to readers as links; structuredContent has all */
#define FOLDER_FILES_MAX 10	/* of a folder; more files, and hidden ones, are told as one line */
#define FOLDER_NAMES_MAX 64	/* bytes of the names in this line */
#define MARKUP_SHOWN 500	/* bytes of markup in an answer; longer markup is a link */
#define REASON_COST 512		/* twice */
#define LINK_COST 1024		/* a signed link, twice, beside the path */

struct run_results {
	const struct outcome *outcome;
	const struct tool_host *host;
	bool *shown;			/* by display: it is in the answer */
	size_t n_files;			/* files that are reported */
	bool *told;			/* by file: it is a link or a line of its own */
	size_t *in_order;		/* the files that are told, by what is likely to matter */
	size_t n_told;
	uint32_t undisplayed, more_files;
	bool unknown_files;		/* the number of files is unknown */
	struct content *block;
	size_t n_blocks;
	char **text;			/* uris and names that blocks point to */
	size_t n_texts;
};

/* ---- the plan: which results fit ---- */

static bool
is_kept(const struct outcome_file *file)
{
	return file->data || file->stored;
}

/* The JSON of a data frame (worker/rich.py). Readers have its repr. */
static bool
is_table(const struct outcome_display *display)
{
	static const char start[] = "{\"columns\":";

	return display->len > strlen(start) && memcmp(display->data, start, strlen(start)) == 0;
}

/* JSON without another form is shown to readers as well. */
static bool
results_is_alone(const struct outcome *o, size_t i)
{
	return !is_table(&o->display[i]) &&
	       (i == 0 || o->display[i - 1].object != o->display[i].object) &&
	       (i + 1 == o->n_displays || o->display[i + 1].object != o->display[i].object);
}

static size_t
display_cost(const struct outcome *o, size_t i)
{
	const struct outcome_display *display = &o->display[i];

	switch (display->kind) {
	case DISPLAY_PNG:
	case DISPLAY_JPEG:
		return (display->len + 2) / 3 * 4 + ENTRY_COST;
	case DISPLAY_JSON:
		return display->len +
		       (results_is_alone(o, i) ? jsonout_cost(display->data, display->len) : 0) +
		       ENTRY_COST;
	case DISPLAY_SVG:
	case DISPLAY_HTML:
	case DISPLAY_MARKDOWN:
	case DISPLAY_PLAIN:
	case DISPLAY_KIND_COUNT:
		break;
	}
	return jsonout_cost(display->data, display->len) + ENTRY_COST;
}

static bool
is_sound(const struct outcome_display *display)
{
	if (!media_fits(display->kind, display->data, display->len))
		return false;
	return display->kind != DISPLAY_JSON ||
	       run_script_is_json(display->data, display->len);
}

static size_t
plan_displays(struct run_results *r)
{
	const struct outcome *o = r->outcome;
	size_t cost = 0;

	r->shown = xcalloc(o->n_displays, sizeof(*r->shown));
	r->undisplayed = o->undisplayed;
	for (size_t i = 0; i < o->n_displays; i++) {
		size_t more = display_cost(o, i);

		if (more <= RESULTS_DISPLAY_COST_MAX - cost && is_sound(&o->display[i])) {
			r->shown[i] = true;
			cost += more;
		} else {
			r->undisplayed++;
		}
	}
	return cost;
}

static size_t
plan_files(struct run_results *r)
{
	const struct outcome *o = r->outcome;
	size_t cost = o->n_parts * ENTRY_COST;

	for (r->n_files = 0; r->n_files < o->n_files; r->n_files++) {
		const struct outcome_file *file = &o->file[r->n_files];
		/* In the structure, in the text, in the link as a name and twice as a uri. */
		size_t more = 3 * jsonout_cost(file->path, file->path_len) +
			      6 * file->path_len + ENTRY_COST;

		if (!is_kept(file))
			more += REASON_COST;
		if (r->host->config->http.links)
			more += 6 * file->path_len + LINK_COST;
		if (more > RESULTS_FILE_COST_MAX - cost)
			break;
		cost += more;
	}
	r->unknown_files = o->files_unknown;
	r->more_files = o->more_files + (uint32_t)(o->n_files - r->n_files);
	return cost;
}

/* The bytes of the path up to the end of its first folder; 0: the file is in /workspace itself. */
static size_t
folder_len(const struct outcome_file *file)
{
	const char *slash = memchr(file->path, '/', file->path_len);

	return slash ? (size_t)(slash - file->path) + 1 : 0;
}

static bool
is_in(const struct outcome_file *file, const struct outcome_file *first)
{
	size_t len = folder_len(first);

	return folder_len(file) == len && memcmp(file->path, first->path, len) == 0;
}

static size_t
files_beside(const struct run_results *r, const struct outcome_file *first)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n_files; i++)
		n += !r->outcome->file[i].given && is_in(&r->outcome->file[i], first);
	return n;
}

/* Has the path, up to len, a name that is hidden: ".pytest_cache" of a package, for example? */
static bool
is_hidden(const char *path, size_t len)
{
	return len > 0 && (*path == '.' || memmem(path, len, "/.", 2));
}

static bool
folds(const struct run_results *r, const struct outcome_file *file)
{
	return is_hidden(file->path, file->path_len) || files_beside(r, file) > FOLDER_FILES_MAX;
}

/* Links for readers, in the order of the worker, which knows what is new. So the report beside a
 * folder with a thousand pieces is not lost among them. */
static void
plan_told(struct run_results *r)
{
	own_mem size_t *by_rank = xcalloc(r->outcome->n_files, sizeof(*by_rank));

	r->told = xcalloc(r->n_files, sizeof(*r->told));
	r->in_order = xcalloc(READ_FILES_MAX, sizeof(*r->in_order));
	for (size_t i = 0; i < r->n_files; i++)
		if (r->outcome->file[i].rank < r->outcome->n_files)
			by_rank[r->outcome->file[i].rank] = i + 1;
	for (size_t k = 0; k < r->outcome->n_files && r->n_told < READ_FILES_MAX; k++) {
		size_t i = by_rank[k] - 1;

		if (by_rank[k] == 0 || r->outcome->file[i].given ||
		    (folder_len(&r->outcome->file[i]) > 0 && folds(r, &r->outcome->file[i])))
			continue;
		r->told[i] = true;
		r->in_order[r->n_told++] = i;
	}
}

/* ---- blocks ---- */

static const char *
results_keep_text(struct run_results *r, char *text)
{
	r->text = xrealloc(r->text, (r->n_texts + 1) * sizeof(*r->text));
	r->text[r->n_texts++] = text;
	return text;
}

/* A model gains nothing from markup that it has to read, and pays for each byte. */
static bool
is_long_markup(const struct outcome_display *display)
{
	return (display->kind == DISPLAY_SVG || display->kind == DISPLAY_HTML) &&
	       display->len > MARKUP_SHOWN;
}

static void
add_markup(struct run_results *r, const struct outcome_display *display,
	   struct content *block)
{
	*block = (struct content){ .kind = CONTENT_RESOURCE, .text = display->data,
				   .text_len = display->len };
	block->uri = results_keep_text(r, resources_display_uri(r->outcome->id, display));
	block->mime_type = media_of_display(display->kind);
	if (!is_long_markup(display))
		return;
	block->kind = CONTENT_LINK;
	block->name = strchr(block->uri, '#') + 1;
	block->size = display->len;
}

/* Texts are in the text of the answer (run_results_say_output). */
static void
add_display(struct run_results *r, size_t i)
{
	const struct outcome_display *display = &r->outcome->display[i];
	struct content *block = &r->block[r->n_blocks];

	if (display->kind == DISPLAY_PNG || display->kind == DISPLAY_JPEG)
		*block = (struct content){ .kind = CONTENT_IMAGE, .data = display->data,
					   .data_len = display->len,
					   .mime_type = media_of_display(display->kind) };
	else if (display->kind == DISPLAY_SVG || display->kind == DISPLAY_HTML)
		add_markup(r, display, block);
	else
		return;
	r->n_blocks++;
}

/* The text for people and models, many of whom see only this. NULL: there is no link. */
static const char *
describe_link(struct run_results *r, const char *uri)
{
	own_mem char *url = link_new(r->host->config, r->host->tenant, uri);

	return url ? results_keep_text(r, xasprintf("Until it expires also at %s", url)) : NULL;
}

static void
add_link(struct run_results *r, const struct outcome_file *file)
{
	const char *uri =
		results_keep_text(r, file_uri(r->outcome->id, file->path, file->path_len));

	r->block[r->n_blocks++] = (struct content){
		.kind = CONTENT_LINK,
		.uri = uri,
		.description = describe_link(r, uri),
		.name = results_keep_text(r, xalloc_check(strndup(file->path, file->path_len))),
		.mime_type = media_of_path(file->path, file->path_len),
		.size = file->size,
	};
}

static const char *
stream_name(enum stream stream)
{
	return stream == STREAM_STDOUT ? "stdout" : "stderr";
}

static void
add_part(struct run_results *r, const struct outcome_part *part)
{
	r->block[r->n_blocks++] = (struct content){
		.kind = CONTENT_LINK,
		.uri = results_keep_text(r, resources_part_uri(r->outcome->id, part)),
		.name = stream_name(part->stream),
		.mime_type = "text/plain",
		.size = part->len,
	};
}

struct run_results *
run_results_new(const struct outcome *outcome, const struct tool_host *host, size_t *cost_r)
{
	struct run_results *r = xcalloc(1, sizeof(*r));

	*cost_r = 0;
	r->outcome = outcome;
	r->host = host;
	if (!outcome)
		return r;
	*cost_r = plan_displays(r) + plan_files(r);
	r->block = xcalloc(outcome->n_displays + r->n_files + outcome->n_parts,
			    sizeof(*r->block));
	for (size_t i = 0; i < outcome->n_displays; i++)
		if (r->shown[i])
			add_display(r, i);
	plan_told(r);
	for (size_t i = 0; i < r->n_told; i++)
		if (is_kept(&outcome->file[r->in_order[i]]))
			add_link(r, &outcome->file[r->in_order[i]]);
	for (size_t i = 0; i < outcome->n_parts; i++)
		add_part(r, &outcome->part[i]);
	return r;
}

void
run_results_free(struct run_results *r)
{
	for (size_t i = 0; i < r->n_texts; i++)
		free(r->text[i]);
	free(r->text);
	free(r->block);
	free(r->shown);
	free(r->told);
	free(r->in_order);
	free(r);
}

const struct content *
run_results_blocks(const struct run_results *r, size_t *n_r)
{
	*n_r = r->n_blocks;
	return r->block;
}

/* ---- why a file is not kept, and what to do ---- */

static char *
bound_text(uint64_t bytes)
{
	bool mib = bytes >= 1 << 20;

	return xasprintf("%llu %s", (unsigned long long)(bytes >> (mib ? 20 : 10)),
			 mib ? "MiB" : "KiB");
}

/* Is this an error of the directory or the disk on which the service keeps files? */
static bool
is_of_disk(int error)
{
	return error == -ENOENT || error == -EROFS || error == -EIO || error == -EACCES ||
	       error == -EPERM || error == -ENOTDIR || error == -EUCLEAN;
}

/* A sentence for people, models and programs; malloc'd. NULL: the file is kept. */
static char *
why_not_kept(const struct run_results *r, const struct outcome_file *file)
{
	const struct config *config = r->host->config;
	const struct results_limits *memory = &r->outcome->limits->results;
	bool on_disk = tenant_filestore(r->host->tenant) != NULL;
	own_mem char *small = bound_text(memory->file_bytes);
	own_mem char *together = bound_text(memory->files_bytes);
	own_mem char *large = bound_text(on_disk ? config->files.file_bytes : memory->file_bytes);
	own_mem char *all = bound_text(config->files.tenant_bytes);
	const char *instead = config->workspace.volume ? "split it, compress it, or write it to a volume"
						       : "split it or compress it";
	bool is_large = file->size > (on_disk ? config->files.file_bytes : memory->file_bytes);
	char *text;
	int n;

	if (is_kept(file))
		return NULL;
	if (file->error == -EFBIG || (file->error == 0 && is_large))
		n = asprintf(&text, "files of at most %s are: %s", large, instead);
	else if (file->error == -EDQUOT)
		n = asprintf(&text, "there is no more room for your files (%s in all), because scripts or "
			     "sessions use the older ones: close those sessions, or %s", all, instead);
	else if (file->error == -ENOSPC)
		n = asprintf(&text, "the service has no more room for files: tell its operator");
	else if (file->error == -EPIPE)
		n = asprintf(&text, "the service's store of files is away for a moment: call again");
	else if (is_of_disk(file->error))
		n = asprintf(&text, "the service's disk for files does not work (%s): tell its operator",
			     strerror(-file->error));
	else if (file->error == -EBUSY)
		n = asprintf(&text, "too many files were being kept: call again later");
	else if (file->error == -ESTALE)
		n = asprintf(&text, "it became shorter meanwhile: let all that write it end first");
	else if (file->size > memory->file_bytes)
		n = asprintf(&text, "it could not be read in time, or the script was stopped, which keeps "
			     "files of at most %s", small);
	else if (file->sha256)
		n = asprintf(&text, "files of at most %s in all are kept from one call: leave fewer files, "
			     "or compress them", together);
	else
		n = asprintf(&text, "it could not be read, or the call left too much: files of at most %s "
			     "in all are kept from one call", together);
	return xalloc_check(n < 0 ? NULL : text);
}

/* ---- structuredContent ---- */

static void
write_display(struct jsonout *out, const char *id, const struct outcome_display *display)
{
	char *uri = resources_display_uri(id, display);
	uint32_t width, height;

	jsonout_open(out, '{');
	jsonout_member_uint(out, "index", display->object);
	jsonout_member_text(out, "mime_type", media_of_display(display->kind));
	jsonout_member_uint(out, "bytes", display->len);
	if (display->kind == DISPLAY_PNG &&
	    media_png_size(display->data, display->len, &width, &height)) {
		jsonout_member_uint(out, "width", width);
		jsonout_member_uint(out, "height", height);
	}
	if (display->kind == DISPLAY_JSON) {
		jsonout_key(out, "json");
		jsonout_raw(out, display->data, display->len);
	} else if (display->kind == DISPLAY_PLAIN || display->kind == DISPLAY_MARKDOWN) {
		jsonout_key(out, "text");
		jsonout_text(out, display->data, display->len);
	}
	if (uri)
		jsonout_member_text(out, "uri", uri);
	free(uri);
	jsonout_close(out, '}');
}

static void
write_file(const struct run_results *r, struct jsonout *out,
	   const struct outcome_file *file)
{
	char hex[65];

	jsonout_open(out, '{');
	jsonout_member_string(out, "path", file->path, file->path_len);
	jsonout_member_uint(out, "size", file->size);
	jsonout_member_text(out, "mime_type", media_of_path(file->path, file->path_len));
	if (file->sha256)
		hex_write(file->sha256, 32, hex);
	jsonout_member_text(out, "sha256", file->sha256 ? hex : NULL);
	if (is_kept(file)) {
		own_mem char *uri = file_uri(r->outcome->id, file->path, file->path_len);
		own_mem char *url = link_new(r->host->config, r->host->tenant, uri);

		jsonout_member_text(out, "uri", uri);
		if (url)
			jsonout_member_text(out, "http_url", url);
	} else {
		own_mem char *why = why_not_kept(r, file);

		jsonout_member_bool(out, "kept", false);
		jsonout_member_text(out, "reason", why);
	}
	jsonout_close(out, '}');
}

void
run_results_write(const struct run_results *r, struct jsonout *out)
{
	jsonout_member_open(out, "displays", '[');
	for (size_t i = 0; r->outcome && i < r->outcome->n_displays; i++)
		if (r->shown[i])
			write_display(out, r->outcome->id, &r->outcome->display[i]);
	jsonout_close(out, ']');
	jsonout_member_open(out, "files", '[');
	for (size_t i = 0; i < r->n_files; i++)
		write_file(r, out, &r->outcome->file[i]);
	jsonout_close(out, ']');
	if (r->outcome && r->outcome->n_parts) {
		jsonout_member_open(out, "spilled", '[');
		for (size_t i = 0; i < r->outcome->n_parts; i++) {
			const struct outcome_part *part = &r->outcome->part[i];
			char *uri = resources_part_uri(r->outcome->id, part);

			jsonout_open(out, '{');
			jsonout_member_text(out, "stream", stream_name(part->stream));
			jsonout_member_uint(out, "offset", part->offset);
			jsonout_member_uint(out, "size", part->len);
			jsonout_member_text(out, "uri", uri);
			jsonout_close(out, '}');
			free(uri);
		}
		jsonout_close(out, ']');
	}
	jsonout_key(out, "omitted");
	if (!r->undisplayed && !r->more_files && !r->unknown_files) {
		jsonout_null(out);
		return;
	}
	jsonout_open(out, '{');
	jsonout_member_uint(out, "displays", r->undisplayed);
	jsonout_member_known(out, "files", !r->unknown_files, r->more_files);
	jsonout_close(out, '}');
}

/* ---- lines for readers ---- */

/* What is a block with its uri is not told again. */
static void
say_display_uri(const struct run_results *r, size_t i, FILE *to)
{
	const struct outcome_display *display = &r->outcome->display[i];
	bool has_uri = display->kind <= DISPLAY_HTML && is_sound(display);
	own_mem char *uri = NULL;
	uint32_t width, height;

	if (!has_uri || (r->shown[i] && (display->kind == DISPLAY_SVG ||
					 display->kind == DISPLAY_HTML)))
		return;
	uri = resources_display_uri(r->outcome->id, display);
	fprintf(to, "%s: %s", r->shown[i] ? "shown" : "too large for this answer", uri);
	if (display->kind == DISPLAY_PNG &&
	    media_png_size(display->data, display->len, &width, &height))
		fprintf(to, ", %u x %u", width, height);
	if (!r->shown[i])
		fprintf(to, ", %zu bytes", display->len);
	fputc('\n', to);
}

static bool
is_text(const struct run_results *r, size_t i)
{
	const enum display_kind kind = r->outcome->display[i].kind;

	return r->shown[i] && (kind == DISPLAY_PLAIN || kind == DISPLAY_MARKDOWN ||
			       (kind == DISPLAY_JSON && results_is_alone(r->outcome, i)));
}

bool
run_results_say_output(const struct run_results *r, const char *text, size_t len, bool placed,
		       FILE *to)
{
	size_t done = 0, begin = (size_t)ftello(to);

	for (size_t i = 0; r->outcome && i < r->outcome->n_displays; i++) {
		const struct outcome_display *display = &r->outcome->display[i];
		size_t at = placed && display->at < len ? (size_t)display->at : len;

		/* Bytes that are no UTF-8 were replaced, which moves the place. */
		while (at < len && at > done && ((unsigned char)text[at] & 0xc0) == 0x80)
			at--;
		if (at > done) {
			fwrite(text + done, 1, at - done, to);
			if (text[at - 1] != '\n')
				fputc('\n', to);
			done = at;
		}
		if (is_text(r, i)) {
			fwrite(display->data, 1, display->len, to);
			if (((const char *)display->data)[display->len - 1] != '\n')
				fputc('\n', to);
		} else {
			say_display_uri(r, i, to);
		}
	}
	if (ftello(to) == (off_t)begin)
		return false;
	fwrite(text + done, 1, len - done, to);
	return true;
}

/* Is the file told in the line of its folder? Folders that are hidden are made by tools, and are
 * of no use to a reader. */
static bool
is_rest(const struct run_results *r, size_t i)
{
	const struct outcome_file *file = &r->outcome->file[i];
	const char *end = memrchr(file->path, '/', file->path_len);

	return !r->told[i] && !file->given &&
	       !(end && is_hidden(file->path, (size_t)(end - file->path)));
}

/* Names of files of the folder that are not told, from the first on. */
static void
say_names(const struct run_results *r, size_t first, size_t n, FILE *to)
{
	const struct outcome_file *file = r->outcome->file;
	size_t skip = folder_len(&file[first]), said = 0, len = 0;

	for (size_t i = first; said < n; i++) {
		if (!is_rest(r, i) || !is_in(&file[i], &file[first]))
			continue;
		len += file[i].path_len - skip + 2;
		if (said > 0 && len > FOLDER_NAMES_MAX)
			break;
		fprintf(to, "%s%.*s", said++ ? ", " : "", (int)(file[i].path_len - skip),
			file[i].path + skip);
	}
	fputs(said < n ? ", ..." : "", to);
}

/* The files of a folder, or of /workspace, that have no lines of their own: one line, at the first
 * of them. */
static void
say_folder(const struct run_results *r, size_t first, FILE *to)
{
	const struct outcome_file *file = &r->outcome->file[first];
	size_t len = folder_len(file), n = 0;

	for (size_t i = 0; i < r->n_files; i++)
		if (is_rest(r, i) && is_in(&r->outcome->file[i], file)) {
			if (i < first)
				return;
			n++;
		}
	fprintf(to, "%.*s: %zu %sfile%s (", len ? (int)len : 10, len ? file->path : "/workspace",
		n, n < files_beside(r, file) ? "more " : "", n > 1 ? "s" : "");
	say_names(r, first, n, to);
	fprintf(to, "), with uris " FILE_URI_SCHEME "%s/%.*sNAME\n", r->outcome->id, (int)len,
		file->path);
}

/* Files that are links are told by them. */
static void
say_files(const struct run_results *r, FILE *to)
{
	for (size_t i = 0; i < r->n_files; i++) {
		const struct outcome_file *file = &r->outcome->file[i];
		own_mem char *why = why_not_kept(r, file);

		if (why && r->told[i])
			fprintf(to, "/workspace/%.*s (%llu bytes) has no uri: %s\n",
				(int)file->path_len, file->path, (unsigned long long)file->size,
				why);
		else if (is_rest(r, i))
			say_folder(r, i, to);
	}
	if (r->unknown_files)
		fputs("(what files it left is not known: its worker ended with them)\n", to);
	else if (r->outcome->more_files)
		fprintf(to, "(%u more files in /workspace have no uri: at most %u of a call have one; "
			"put them into one archive)\n", r->outcome->more_files,
			r->outcome->limits->results.files);
}

size_t
run_results_links(const struct run_results *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n_told; i++)
		n += is_kept(&r->outcome->file[r->in_order[i]]);
	return n;
}

void
run_results_say(const struct run_results *r, FILE *to)
{
	if (!r->outcome)
		return;
	if (r->undisplayed)
		fprintf(to, "(%u more not shown: at most %u objects and %u KiB are)\n",
			r->undisplayed, r->outcome->limits->results.displays,
			r->outcome->limits->results.display_bytes >> 10);
	say_files(r, to);
	if (r->outcome->n_parts)
		fputs("all of the output:\n", to);
	for (size_t i = 0; i < r->outcome->n_parts; i++) {
		const struct outcome_part *part = &r->outcome->part[i];
		char *uri = resources_part_uri(r->outcome->id, part);

		fprintf(to, "  %s from byte %llu (%zu bytes): %s\n",
			stream_name(part->stream), (unsigned long long)part->offset,
			part->len, uri);
		free(uri);
	}
}
