/* SPDX-License-Identifier: Apache-2.0 */
/* File names of strangers. The first byte is the kind of the rest:
 *
 *   'F'  the argument files of a call, JSON
 *   'L'  paths of files that a script left, a line each
 *   'W'  the path of a file in a wheel
 *
 * The target asserts:
 *
 * - An accepted path stays below its directory.
 * - No two files of a call have the same path, and none is a directory of another one.
 * - Content is unchanged.
 * - The files of a script are ordered, each path once. The address of a file contains its path. */
#include "fuzz.h"

#include <errno.h>

#include "base/quote.h"
#include "engine/execution_results.h"
#include "keeper/path.h"
#include "policy/config.h"
#include "tools/script/run_script_files.h"
#include "tools/shared/resources.h"

static void
check_path(const char *path, size_t len)
{
	size_t depth = 0;

	MUST(len > 0 && path[0] != '/' && path[len - 1] != '/' && !memchr(path, '\0', len));
	for (const char *name = path, *end = path + len; name <= end; depth++) {
		const char *slash = memchr(name, '/', (size_t)(end - name));
		size_t n = (size_t)((slash ? slash : end) - name);

		MUST(n > 0 && !(n == 1 && name[0] == '.') &&
		     !(n == 2 && name[0] == '.' && name[1] == '.'));
		name += n + 1;
	}
	MUST(depth <= len);
}

/* ---- into the worker ---- */

static bool
leads_through(const struct execution_input *a, const struct execution_input *b)
{
	return a->path_len <= b->path_len && memcmp(a->path, b->path, a->path_len) == 0 &&
	       (a->path_len == b->path_len || b->path[a->path_len] == '/');
}

static void
check_content(const json_t *item, const struct execution_input *input)
{
	const json_t *text = json_object_get(item, "text");
	const json_t *base64 = json_object_get(item, "base64");
	struct jsonout out;

	if (text)
		MUST(input->len == json_string_length(text) &&
		     memcmp(input->data, json_string_value(text), input->len) == 0);
	if (!base64)
		return;
	jsonout_init(&out);
	jsonout_base64(&out, input->data, input->len);
	MUST(out.len == json_string_length(base64) + 2);
	MUST(memcmp(out.at + 1, json_string_value(base64), out.len - 2) == 0);
	jsonout_done(&out);
}

static void
try_inputs(const char *text, size_t len)
{
	static const struct config *config;
	json_t *json = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
	struct run_script_files files;
	struct why why = { .text = "" };
	int r;

	if (!config)
		config = config_new();
	r = run_script_files_read(json, config, &files, &why);
	MUST(r == 0 ? !*why.text : r == -EINVAL && *why.text && files.n == 0);
	for (size_t i = 0; i < files.n; i++) {
		check_path(files.item[i].path, files.item[i].path_len);
		check_content(json_array_get(json, i), &files.item[i]);
		for (size_t k = 0; k < files.n; k++)
			MUST(i == k || !leads_through(&files.item[i], &files.item[k]));
	}
	MUST(r < 0 || files.n == json_array_size(json));
	run_script_files_done(&files);
	json_decref(json);
}

/* ---- out of the worker ---- */

static void
check_address(const char *path, size_t len)
{
	static const char head[] = FILE_URI_SCHEME "x/";
	char *uri = file_uri("x", path, len);
	const char *at = uri + sizeof(head) - 1;

	MUST(strncmp(uri, head, sizeof(head) - 1) == 0);
	for (size_t i = 0; i < len; i++) {
		unsigned int c = (unsigned char)*at;

		MUST(c > ' ' && c <= '~' && !strchr("\"<>\\^`{|}?#", (int)c));
		if (c == '%')
			MUST(sscanf(at, "%%%2X", &c) == 1);
		MUST(c == (unsigned char)path[i]);
		at += *at == '%' ? 3 : 1;
	}
	MUST(*at == '\0');
	free(uri);
}

static int
by_path(const struct outcome_file *a, const struct outcome_file *b)
{
	int order = memcmp(a->path, b->path, a->path_len < b->path_len ? a->path_len : b->path_len);

	return order ? order : (a->path_len > b->path_len) - (a->path_len < b->path_len);
}

static void
leave(struct execution_results *results, const struct rest *path)
{
	struct codec_buffer buffer = { 0 };
	struct frame frame = { 0 };
	struct msg msg = { .type = MSG_LEFT,
			   .left.path = { (const char *)path->at, path->len } };

	if (codec_encode(&msg, &buffer) == 0) {
		frame.body = buffer.at;
		MUST(codec_decode(MSG_LEFT, buffer.at, buffer.len, &frame.msg) == 0);
		(void)results_take(results, &frame);
		frame_done(&frame);
	} else {
		codec_buffer_done(&buffer);
	}
}

static void
try_left(struct rest rest)
{
	const struct results_limits limits = { .files = 20 };
	struct execution_results results;
	struct outcome outcome = { .n_files = 0 };

	results_init(&results, 0, &limits);
	while (rest.len > 0) {
		struct rest path = rest_line(&rest);

		leave(&results, &path);
	}
	results_show(&results, &outcome);
	MUST(outcome.n_files <= limits.files);
	for (size_t i = 0; i < outcome.n_files; i++) {
		const struct outcome_file *file = &outcome.file[i];

		check_path(file->path, file->path_len);
		check_address(file->path, file->path_len);
		MUST(quote_is_plain(file->path, file->path_len));
		MUST(i == 0 || by_path(&file[-1], file) < 0);
	}
	results_done(&results);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rest rest = { data, size };
	uint8_t what = rest_byte(&rest);

	if (what == 'L')
		try_left(rest);
	else if (what == 'W' && path_is_safe((const char *)rest.at, rest.len))
		check_path((const char *)rest.at, rest.len);
	else if (what == 'F')
		try_inputs((const char *)rest.at, rest.len);
	return 0;
}
