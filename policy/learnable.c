/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor and the launcher.   Owns: nothing.
 * Reads:   scripts of clients, at most LEARNABLE_LOOK bytes of each. */
#include "policy/learnable.h"

#include <stdbool.h>
#include <string.h>

#include "policy/config.h"

#define OFF "no"

/* Variables and names that change an import if a script sets them before it. */
static const char *const read_at_import[] = {
	"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS",
	"NUMEXPR_MAX_THREADS", "MPLBACKEND", "MPLCONFIGDIR", "PYTHONHASHSEED", "usercustomize",
	"sitecustomize", "sys.path", "sys.meta_path", "from sys import", "builtins.__import__",
};

size_t
learnable_count(const struct config *config)
{
	const struct config_list *list = &config->pool.learn;

	return list->n == 1 && strcmp(list->item[0], OFF) == 0 ? 0 : list->n;
}

const char *
learnable_name(const struct config *config, size_t number)
{
	return config->pool.learn.item[number];
}

/* A part of the text. */
struct part {
	const char *at, *end;
};

static void
skip_blanks(struct part *part)
{
	while (part->at < part->end && (*part->at == ' ' || *part->at == '\t'))
		part->at++;
}

/* Takes a dotted name, or a word, from the front. False: there is none. */
static bool
take_name(struct part *part, struct part *name_r)
{
	skip_blanks(part);
	name_r->at = part->at;
	while (part->at < part->end &&
	       !strchr(" \t\r\f,;()#\\:'\"=", *part->at))
		part->at++;
	name_r->end = part->at;
	return name_r->at < name_r->end;
}

static bool
take_word(struct part *part, const char *word)
{
	struct part rest = *part, found;

	if (!take_name(&rest, &found) || (size_t)(found.end - found.at) != strlen(word) ||
	    memcmp(found.at, word, strlen(word)) != 0)
		return false;
	*part = rest;
	return true;
}

static bool
take_char(struct part *part, char c)
{
	skip_blanks(part);
	if (part->at == part->end || *part->at != c)
		return false;
	part->at++;
	return true;
}

/* Does "import package.item" load the module? item may be empty. */
static bool
loads(const char *module, const struct part *package, const struct part *item)
{
	size_t len = strlen(module), first = (size_t)(package->end - package->at);
	size_t second = (size_t)(item->end - item->at);

	if (first >= len)	/* a package loads before the modules in it */
		return memcmp(module, package->at, len) == 0 &&
		       (first == len || package->at[len] == '.');
	return memcmp(module, package->at, first) == 0 && module[first] == '.' &&
	       len == first + 1 + second && memcmp(module + first + 1, item->at, second) == 0;
}

static uint64_t
find(const struct config_list *names, const struct part *package, const struct part *item)
{
	uint64_t found = 0;

	for (size_t i = 0; i < names->n; i++)
		if (loads(names->item[i], package, item))
			found |= UINT64_C(1) << i;
	return found;
}

/* The names of one line: "import a.b as c, d" or "from a import b, c". */
static uint64_t
look_at_line(const struct config_list *names, struct part line)
{
	const struct part nothing = { line.at, line.at };
	struct part name, item;
	uint64_t found = 0;

	if (take_word(&line, "import")) {
		while (take_name(&line, &name)) {
			found |= find(names, &name, &nothing);
			if (take_word(&line, "as"))
				take_name(&line, &item);
			if (!take_char(&line, ','))
				break;
		}
	} else if (take_word(&line, "from") && take_name(&line, &name) &&
		   take_word(&line, "import")) {
		found = find(names, &name, &nothing);
		take_char(&line, '(');
		while (take_name(&line, &item)) {
			found |= find(names, &name, &item);
			if (take_word(&line, "as"))
				take_name(&line, &item);
			if (!take_char(&line, ','))
				break;
		}
	}
	return found;
}

uint64_t
learnable_look(const struct config_list *names, const char *script, size_t len)
{
	struct part rest = { script, script + (len < LEARNABLE_LOOK ? len : LEARNABLE_LOOK) };
	uint64_t found = 0;

	while (rest.at < rest.end) {
		const char *end = memchr(rest.at, '\n', (size_t)(rest.end - rest.at));
		struct part line = { rest.at, end ? end : rest.end };

		skip_blanks(&line);
		if (line.at < line.end && (*line.at == 'i' || *line.at == 'f'))
			found |= look_at_line(names, line);
		rest.at = end ? end + 1 : rest.end;
	}
	for (size_t i = 0; found && i < sizeof(read_at_import) / sizeof(read_at_import[0]); i++)
		if (memmem(script, len, read_at_import[i], strlen(read_at_import[i])))
			found = 0;
	return found;
}

uint64_t
learnable_named(const struct config *config, const char *script, size_t len)
{
	return learnable_count(config) == 0 ? 0
		: learnable_look(&config->pool.learn, script, len);
}
