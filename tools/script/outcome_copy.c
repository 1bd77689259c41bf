/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: copies of everything that an outcome points to. */
#include "tools/script/run_script.h"

#include <string.h>

#include "base/xalloc.h"

struct outcome_copy {
	struct outcome outcome;
	struct limits limits;
	void **block;
	size_t n, room;
};

/* Copies len bytes, and adds a NUL. NULL stays NULL. */
static void *
copy_bytes(struct outcome_copy *copy, const void *bytes, size_t len)
{
	char *made;

	if (!bytes)
		return NULL;
	if (copy->n == copy->room) {
		copy->room = copy->room ? copy->room * 2 : 16;
		copy->block = xalloc_check(reallocarray(copy->block, copy->room,
							sizeof(*copy->block)));
	}
	made = xalloc_check(malloc(len + 1));
	if (len)
		memcpy(made, bytes, len);
	made[len] = '\0';
	copy->block[copy->n++] = made;
	return made;
}

static const char *
outcome_copy_copy_text(struct outcome_copy *copy, const char *text)
{
	return copy_bytes(copy, text, text ? strlen(text) : 0);
}

static void
copy_lists(struct outcome_copy *copy, const struct outcome *from)
{
	struct outcome *to = &copy->outcome;
	struct outcome_display *display = copy_bytes(copy, from->display,
						     from->n_displays * sizeof(*display));
	struct outcome_file *file = copy_bytes(copy, from->file,
					       from->n_files * sizeof(*file));
	struct outcome_part *part = copy_bytes(copy, from->part,
					       from->n_parts * sizeof(*part));
	const char **note = copy_bytes(copy, from->note, from->n_notes * sizeof(*note));
	const char **found = copy_bytes(copy, from->found_module,
					from->n_found_modules * sizeof(*found));

	for (size_t i = 0; i < from->n_found_modules; i++)
		found[i] = outcome_copy_copy_text(copy, found[i]);
	for (size_t i = 0; i < from->n_displays; i++)
		display[i].data = copy_bytes(copy, display[i].data, display[i].len);
	for (size_t i = 0; i < from->n_files; i++) {
		file[i].path = copy_bytes(copy, file[i].path, file[i].path_len);
		file[i].sha256 = copy_bytes(copy, file[i].sha256, 32);
		file[i].data = copy_bytes(copy, file[i].data, file[i].len);
	}
	for (size_t i = 0; i < from->n_parts; i++)
		part[i].at = copy_bytes(copy, part[i].at, part[i].len);
	for (size_t i = 0; i < from->n_notes; i++)
		note[i] = outcome_copy_copy_text(copy, note[i]);
	to->display = display;
	to->file = file;
	to->part = part;
	to->note = note;
	to->found_module = found;
	to->tool_call = copy_bytes(copy, from->tool_call,
				   from->n_tool_calls * sizeof(*from->tool_call));
}

struct outcome_copy *
outcome_copy_new(const struct outcome *from)
{
	struct outcome_copy *copy = xcalloc(1, sizeof(*copy));
	struct outcome *to = &copy->outcome;

	*to = *from;
	to->id = outcome_copy_copy_text(copy, from->id);
	for (size_t i = 0; i < STREAM_COUNT; i++) {
		to->stream[i].text = copy_bytes(copy, from->stream[i].text,
						from->stream[i].len);
		to->background[i].text = copy_bytes(copy, from->background[i].text,
						    from->background[i].len);
	}
	to->transcript = copy_bytes(copy, from->transcript, from->transcript_len);
	to->value_repr = outcome_copy_copy_text(copy, from->value_repr);
	to->value_json = outcome_copy_copy_text(copy, from->value_json);
	to->error_type = outcome_copy_copy_text(copy, from->error_type);
	to->error_message = outcome_copy_copy_text(copy, from->error_message);
	to->error_traceback = outcome_copy_copy_text(copy, from->error_traceback);
	to->message = outcome_copy_copy_text(copy, from->message);
	to->names = outcome_copy_copy_text(copy, from->names);
	to->environment = outcome_copy_copy_text(copy, from->environment);
	copy_lists(copy, from);
	if (from->limits) {
		copy->limits = *from->limits;
		to->limits = &copy->limits;
	}
	return copy;
}

const struct outcome *
outcome_copy_get(const struct outcome_copy *copy)
{
	return &copy->outcome;
}

void
outcome_copy_free(struct outcome_copy *copy)
{
	if (!copy)
		return;
	for (size_t i = 0; i < copy->n; i++)
		free(copy->block[i]);
	free(copy->block);
	free(copy);
}
