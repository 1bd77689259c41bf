/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing.
 * Reads:   markers from scripts, clients and packages' metadata, by recursive descent of bounded
 * depth. */
#include "policy/requirement.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "policy/version.h"

#define VALUE_MAX 512	/* bytes of one operand in a comparison */

struct reader {
	const char *at, *end;
	const struct marker_environment *environment;
	const char *extra;
	unsigned int depth;
};

struct operand {
	char text[VALUE_MAX];
	bool is_extra;
};

static const struct { const char *name, *variable; } variables[] = {
	/* Of two names with the same beginning the longer one comes first. */
	{ "python_full_version", "python_full_version" },
	{ "python_version", "python_version" },
	{ "python_implementation", "platform_python_implementation" },
	{ "platform_python_implementation", "platform_python_implementation" },
	{ "platform.python_implementation", "platform_python_implementation" },
	{ "platform_release", "platform_release" },
	{ "platform_system", "platform_system" },
	{ "platform_version", "platform_version" },
	{ "platform.version", "platform_version" },
	{ "platform_machine", "platform_machine" },
	{ "platform.machine", "platform_machine" },
	{ "implementation_name", "implementation_name" },
	{ "implementation_version", "implementation_version" },
	{ "sys_platform", "sys_platform" },
	{ "sys.platform", "sys_platform" },
	{ "os_name", "os_name" },
	{ "os.name", "os_name" },
	{ "extra", "extra" },
};

static void
marker_skip_spaces(struct reader *reader)
{
	while (reader->at < reader->end && (*reader->at == ' ' || *reader->at == '\t'))
		reader->at++;
}

static bool
is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* Takes the word if it is next in the text, unless it is only the beginning of a longer word. */
static bool
marker_take_word(struct reader *reader, const char *word)
{
	size_t len = strlen(word);

	marker_skip_spaces(reader);
	if ((size_t)(reader->end - reader->at) < len || memcmp(reader->at, word, len) != 0)
		return false;
	if (is_word(word[len - 1]) && reader->at + len < reader->end &&
	    is_word(reader->at[len]))
		return false;
	reader->at += len;
	return true;
}

static int
take_string(struct reader *reader, struct operand *operand)
{
	char quote = *reader->at++;
	const char *stop = memchr(reader->at, quote, (size_t)(reader->end - reader->at));
	size_t len;

	if (!stop)
		return -EINVAL;
	len = (size_t)(stop - reader->at);
	if (len >= sizeof(operand->text) || memchr(reader->at, '\0', len))
		return -EINVAL;
	memcpy(operand->text, reader->at, len);
	operand->text[len] = '\0';
	reader->at = stop + 1;
	return 0;
}

static int
take_operand(struct reader *reader, struct operand *operand)
{
	*operand = (struct operand){ .is_extra = false };
	marker_skip_spaces(reader);
	if (reader->at < reader->end && (*reader->at == '"' || *reader->at == '\''))
		return take_string(reader, operand);
	for (size_t i = 0; i < sizeof(variables) / sizeof(*variables); i++) {
		const char *value = "";

		if (!marker_take_word(reader, variables[i].name))
			continue;
		operand->is_extra = strcmp(variables[i].variable, "extra") == 0;
		if (operand->is_extra)
			value = reader->extra;
		else if (reader->environment)
			value = reader->environment->value(reader->environment->arg,
							   variables[i].variable);
		if (!value || strlen(value) >= sizeof(operand->text))
			value = "";
		memcpy(operand->text, value, strlen(value) + 1);
		return 0;
	}
	return -EINVAL;
}

static const char *
take_operator(struct reader *reader)
{
	static const char *const operators[] = { "===", "==", "~=", "!=", "<=", ">=", "<", ">",
						 "in", NULL };

	for (size_t i = 0; operators[i]; i++)
		if (marker_take_word(reader, operators[i]))
			return operators[i];
	if (marker_take_word(reader, "not"))
		return marker_take_word(reader, "in") ? "not in" : NULL;
	return NULL;
}

/* The order of Python's strings: it equals that of UTF-8 bytes. */
static bool
compare_texts(const char *operator, int order)
{
	switch (operator[0]) {
	case '=':
		return order == 0;
	case '!':
		return order != 0;
	case '<':
		return order < 0 || (order == 0 && operator[1] == '=');
	case '>':
		return order > 0 || (order == 0 && operator[1] == '=');
	default:
		return false;
	}
}

static bool
marker_compare(const struct operand *left, const char *operator, const struct operand *right)
{
	char text[VALUE_MAX + 4], a[VALUE_MAX], b[VALUE_MAX];
	const char *at = text, *end;
	struct version version;
	bool contained;

	if (strcmp(operator, "in") == 0)
		return strstr(right->text, left->text) != NULL;
	if (strcmp(operator, "not in") == 0)
		return strstr(right->text, left->text) == NULL;
	if (left->is_extra || right->is_extra) {
		requirement_normalise(left->text, strlen(left->text), a);
		requirement_normalise(right->text, strlen(right->text), b);
		return compare_texts(operator, strcmp(a, b));
	}
	end = stpcpy(stpcpy(text, operator), right->text);
	if (version_read(left->text, strlen(left->text), &version) == 0 &&
	    specifier_take(&at, end, left->text, &contained) == 0 && at == end)
		return contained;
	return compare_texts(operator, strcmp(left->text, right->text));
}

static int take_or(struct reader *reader, bool *holds_r);

static int
take_atom(struct reader *reader, bool *holds_r)
{
	struct operand left, right;
	const char *operator;
	int r;

	if (marker_take_word(reader, "(")) {
		if (++reader->depth > MARKER_DEPTH_MAX)
			return -EINVAL;
		r = take_or(reader, holds_r);
		reader->depth--;
		return r == 0 && marker_take_word(reader, ")") ? 0 : -EINVAL;
	}
	if (take_operand(reader, &left) < 0)
		return -EINVAL;
	operator = take_operator(reader);
	if (!operator || take_operand(reader, &right) < 0)
		return -EINVAL;
	*holds_r = reader->environment && marker_compare(&left, operator, &right);
	return 0;
}

static int
take_and(struct reader *reader, bool *holds_r)
{
	bool all = true, one;

	do {
		if (take_atom(reader, &one) < 0)
			return -EINVAL;
		all = all && one;
	} while (marker_take_word(reader, "and"));
	*holds_r = all;
	return 0;
}

static int
take_or(struct reader *reader, bool *holds_r)
{
	bool any = false, one;

	do {
		if (take_and(reader, &one) < 0)
			return -EINVAL;
		any = any || one;
	} while (marker_take_word(reader, "or"));
	*holds_r = any;
	return 0;
}

int
marker_check(const char *text, size_t len, const struct marker_environment *environment,
	     const char *extra, bool *holds_r)
{
	struct reader reader = { text, text + len, environment, extra, 0 };

	if (take_or(&reader, holds_r) < 0)
		return -EINVAL;
	marker_skip_spaces(&reader);
	return reader.at == reader.end ? 0 : -EINVAL;
}
