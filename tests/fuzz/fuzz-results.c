/* SPDX-License-Identifier: Apache-2.0 */
/* Displays and files of a script, from the frames of its worker to the answer of the call. The
 * target asserts:
 *
 * - Accepted displays and files are within their limits. Objects are in order.
 * - The members of the answer are one line of JSON, within the announced length. The members of
 *   each display match its type.
 * - A kept file is read back by its tenant at its address, and by no other tenant. */
#include "fuzz.h"

#include <errno.h>

#include <jansson.h>

#include "base/quote.h"
#include "engine/execution_results.h"
#include "policy/config.h"
#include "tests/fuzz/frames.h"
#include "tests/unit/tools/fake_engine.h"
#include "tools/script/run_script_results.h"
#include "tools/shared/resources.h"

#define FRAMES_MAX 20000	/* bytes */
#define SERIAL 7

static const struct limits limits = {
	.results = { .displays = 5, .display_bytes = 2048, .files = 5, .files_bytes = 1024 },
};

/* ---- from the worker ---- */

static int
take(struct execution_results *results, struct frame *frame)
{
	if (frame->msg.type != MSG_LEFT_RESTART)
		return results_take(results, frame);
	return results_restart(results) ? 0 : -EBADMSG;
}

static void
take_all(struct execution_results *results, const uint8_t *data, size_t size)
{
	static uint8_t frames[FRAMES_MAX];
	struct frame_reader reader;
	struct frame frame = { 0 };
	const uint8_t *at = frames;
	size_t used;
	int r = 0;

	memcpy(frames, data, size);
	frames_set_versions(frames, size);
	frame_reader_init(&reader, FROM_WORKER);
	while (r == 0 && frame_reader_feed(&reader, at, size, &used, &frame) == 1) {
		r = take(results, &frame);
		MUST(r == 0 || r == -EBADMSG);
		frame_done(&frame);
		at += used;
		size -= used;
	}
	frame_reader_done(&reader);
}

static void
check_outcome(const struct outcome *outcome)
{
	size_t bytes = 0;

	for (size_t i = 0; i < outcome->n_displays; i++) {
		uint32_t before = i > 0 ? outcome->display[i - 1].object : 0;

		MUST(outcome->display[i].object - before <= (i > 0));
		MUST(outcome->display[i].object < limits.results.displays);
		bytes += outcome->display[i].len;
	}
	MUST(bytes <= limits.results.display_bytes);
	bytes = 0;
	for (size_t i = 0; i < outcome->n_files; i++) {
		const struct outcome_file *file = &outcome->file[i];

		MUST(quote_is_plain(file->path, file->path_len));
		bytes += file->len;
	}
	MUST(bytes <= limits.results.files_bytes);
	MUST(outcome->n_files <= limits.results.files);
}

/* ---- to the client ---- */

static void
check_display(const json_t *display)
{
	const char *type = json_string_value(json_object_get(display, "mime_type"));
	const json_t *width = json_object_get(display, "width");

	MUST(type && strchr(type, '/'));
	MUST(json_integer_value(json_object_get(display, "bytes")) > 0);
	MUST(!!width == (strcmp(type, "image/png") == 0));
	MUST(!width || json_integer_value(width) > 0);
	MUST(!!json_object_get(display, "json") == (strcmp(type, "application/json") == 0));
}

static void
check_file(const json_t *file, const struct outcome *outcome, size_t i,
	   const struct tenant *tenant, const struct tenant *stranger)
{
	const char *uri = json_string_value(json_object_get(file, "uri"));
	const void *data;
	size_t len;

	MUST(json_string_length(json_object_get(file, "path")) == outcome->file[i].path_len);
	MUST(!!uri == !!outcome->file[i].data);
	if (!uri)
		return;
	MUST(resources_find(tenant, uri, &data, &len));
	MUST(len == outcome->file[i].len && memcmp(data, outcome->file[i].data, len) == 0);
	MUST(!resources_find(stranger, uri, &data, &len));
}

static json_t *
write_members(const struct run_results *results, size_t cost)
{
	struct jsonout out;
	json_t *members;

	jsonout_init(&out);
	jsonout_open(&out, '{');
	run_results_write(results, &out);
	jsonout_close(&out, '}');
	MUST(out.len <= cost + 512);
	MUST(!memchr(out.at, '\n', out.len));
	members = json_loadb(out.at, out.len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL |
			     JSON_DECODE_INT_AS_REAL, NULL);
	MUST(members);
	json_decref(members);
	members = json_loadb(out.at, out.len, JSON_ALLOW_NUL, NULL);
	jsonout_done(&out);
	return members;
}

static void
check_blocks(const struct run_results *results)
{
	size_t n;
	const struct content *block = run_results_blocks(results, &n);

	for (size_t i = 0; i < n; i++) {
		MUST(block[i].kind != CONTENT_LINK || (block[i].uri && *block[i].name));
		MUST(block[i].kind != CONTENT_IMAGE || block[i].data_len > 3);
	}
}

static void
check_answer(const struct outcome *outcome, const struct tool_host *host,
	     const struct tenant *stranger)
{
	const struct tenant *tenant = host->tenant;
	size_t cost, i;
	struct run_results *results = run_results_new(outcome, host, &cost);
	json_t *members = write_members(results, cost), *one;

	MUST(cost <= RESULTS_DISPLAY_COST_MAX + RESULTS_FILE_COST_MAX);
	json_array_foreach(json_object_get(members, "displays"), i, one)
		check_display(one);
	json_array_foreach(json_object_get(members, "files"), i, one)
		check_file(one, outcome, i, tenant, stranger);
	check_blocks(results);
	json_decref(members);
	run_results_free(results);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct config *config;
	static struct tenant *tenant, *stranger;
	struct tool_host host;
	struct outcome outcome = { .id = "x-1", .limits = &limits };
	struct execution_results results;

	if (size > FRAMES_MAX)
		return 0;
	if (!config) {
		config = config_new();
		config->http.links = strdup("http://localhost");
		tenant = engine_tenant(NULL, 1);
		stranger = engine_tenant(NULL, 2);
	}
	results_init(&results, SERIAL, &limits.results);
	take_all(&results, data, size);
	results_show(&results, &outcome);
	check_outcome(&outcome);
	resources_keep(config, tenant, &outcome);
	host = (struct tool_host){ .config = config, .tenant = tenant };
	check_answer(&outcome, &host, stranger);
	resources_forget();
	results_done(&results);
	return 0;
}
