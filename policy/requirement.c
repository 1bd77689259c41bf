/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the parts of requirements.
 * Reads:   requirements from scripts, clients and packages' metadata. */
#include "policy/requirement.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "policy/version.h"

struct reader {
	const char *at, *end;
};

static bool
requirement_is_alnum(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static void
requirement_skip_spaces(struct reader *reader)
{
	while (reader->at < reader->end && *reader->at == ' ')
		reader->at++;
}

static bool
requirement_take(struct reader *reader, char c)
{
	requirement_skip_spaces(reader);
	if (reader->at == reader->end || *reader->at != c)
		return false;
	reader->at++;
	return true;
}

void
requirement_normalise(const char *name, size_t len, char *to)
{
	bool separated = false;

	for (size_t i = 0; i < len; i++) {
		if (name[i] == '-' || name[i] == '_' || name[i] == '.') {
			if (!separated)
				*to++ = '-';
			separated = true;
		} else {
			*to++ = name[i] >= 'A' && name[i] <= 'Z' ? (char)(name[i] + 32)
								 : name[i];
			separated = false;
		}
	}
	*to = '\0';
}

/* Printable ASCII without "$". Other characters have no meaning in a requirement, and some are
 * dangerous further on: a line break ends a line, and "${NAME}" is a variable in pip's files. */
static bool
is_line(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (text[i] < ' ' || text[i] > '~' || text[i] == '$')
			return false;
	return true;
}

/* Takes the name of a package or an extra. *name_r: normalised, malloc'd. */
static int
take_name(struct reader *reader, char **name_r)
{
	const char *begin = reader->at, *stop = begin;

	while (stop < reader->end && (requirement_is_alnum(*stop) || *stop == '.' || *stop == '-' ||
				      *stop == '_'))
		stop++;
	while (stop > begin && !requirement_is_alnum(stop[-1]))
		stop--;
	if (stop == begin || !requirement_is_alnum(*begin))
		return -EINVAL;
	*name_r = malloc((size_t)(stop - begin) + 1);
	if (!*name_r)
		return -ENOMEM;
	requirement_normalise(begin, (size_t)(stop - begin), *name_r);
	reader->at = stop;
	return 0;
}

static char *
requirement_copy(const char *at, const char *end)
{
	return strndup(at, (size_t)(end - at));
}

/* ---- extras ---- */

/* The union of the sets a and b (sorted, joined by ','), malloc'd; NULL: no memory. */
static char *
requirement_unite(const char *a, const char *b)
{
	char *both = malloc(strlen(a) + strlen(b) + 2), *to = both;

	if (!both)
		return NULL;
	while (*a || *b) {
		size_t a_len = strcspn(a, ","), b_len = strcspn(b, ",");
		int r = strncmp(a, b, a_len < b_len ? a_len : b_len);

		if (r == 0)
			r = (a_len > b_len) - (a_len < b_len);
		if (*a == '\0')
			r = 1;
		else if (*b == '\0')
			r = -1;
		if (to > both)
			*to++ = ',';
		to = mempcpy(to, r <= 0 ? a : b, r <= 0 ? a_len : b_len);
		if (r <= 0)
			a += a_len + (a[a_len] == ',');
		if (r >= 0)
			b += b_len + (b[b_len] == ',');
	}
	*to = '\0';
	return both;
}

static int
take_extras(struct reader *reader, struct requirement *requirement)
{
	if (!requirement_take(reader, '['))
		return 0;
	if (requirement_take(reader, ']'))
		return 0;
	do {
		char *name, *both;
		int r;

		requirement_skip_spaces(reader);
		r = take_name(reader, &name);
		if (r < 0)
			return r;
		both = requirement_unite(requirement->extras, name);
		free(name);
		if (!both)
			return -ENOMEM;
		free(requirement->extras);
		requirement->extras = both;
	} while (requirement_take(reader, ','));
	return requirement_take(reader, ']') ? 0 : -EINVAL;
}

/* ---- versions, or a url ---- */

static int
take_specifiers(struct reader *reader, struct requirement *requirement)
{
	bool in_parentheses = requirement_take(reader, '('), contained;
	const char *begin, *stop;

	requirement_skip_spaces(reader);
	begin = stop = reader->at;
	while (reader->at < reader->end && strchr("<>=!~", *reader->at) && *reader->at) {
		if (specifier_take(&reader->at, reader->end, NULL, &contained) < 0)
			return -EINVAL;
		stop = reader->at;
		if (!requirement_take(reader, ','))
			break;
		requirement_skip_spaces(reader);
	}
	requirement->specifiers = requirement_copy(begin, stop);
	if (!requirement->specifiers)
		return -ENOMEM;
	return in_parentheses && !requirement_take(reader, ')') ? -EINVAL : 0;
}

/* scheme://something, or file:something */
static bool
is_url(const char *url)
{
	size_t scheme = 0;

	while (requirement_is_alnum(url[scheme]) || (scheme && url[scheme] && strchr("+-.", url[scheme])))
		scheme++;
	if (scheme == 0 || url[scheme] != ':' || (url[0] >= '0' && url[0] <= '9'))
		return false;
	if (scheme == 4 && strncasecmp(url, "file", 4) == 0)
		return url[scheme + 1] != '\0';
	return strncmp(url + scheme, "://", 3) == 0 && url[scheme + 3] &&
	       !strchr("/?#", url[scheme + 3]);
}

/* A URL reaches to the next space; a marker must stand apart from it. */
static int
take_url(struct reader *reader, struct requirement *requirement)
{
	const char *begin;

	requirement_skip_spaces(reader);
	begin = reader->at;
	while (reader->at < reader->end && *reader->at != ' ')
		reader->at++;
	if (reader->at == begin)
		return -EINVAL;
	requirement->url = requirement_copy(begin, reader->at);
	requirement->specifiers = strdup("");
	if (!requirement->url || !requirement->specifiers)
		return -ENOMEM;
	return is_url(requirement->url) ? 0 : -EINVAL;
}

static int
take_marker(struct reader *reader, struct requirement *requirement)
{
	bool holds;

	if (requirement_take(reader, ';')) {
		requirement_skip_spaces(reader);
		if (marker_check(reader->at, (size_t)(reader->end - reader->at), NULL, "",
				 &holds) < 0)
			return -EINVAL;
		requirement->marker = requirement_copy(reader->at, reader->end);
		if (!requirement->marker)
			return -ENOMEM;
		reader->at = reader->end;
	}
	requirement_skip_spaces(reader);
	return reader->at == reader->end ? 0 : -EINVAL;
}

static int
read_parts(struct reader *reader, struct requirement *requirement)
{
	int r;

	requirement_skip_spaces(reader);
	r = take_name(reader, &requirement->name);
	if (r == 0)
		r = take_extras(reader, requirement);
	if (r == 0)
		r = requirement_take(reader, '@') ? take_url(reader, requirement)
				      : take_specifiers(reader, requirement);
	return r < 0 ? r : take_marker(reader, requirement);
}

int
requirement_read(const char *text, size_t len, struct requirement *requirement_r)
{
	struct reader reader = { text, text + len };
	struct requirement requirement = { .name = NULL };
	int r = -EINVAL;

	if (len > REQUIREMENT_MAX || !is_line(text, len))
		return -EINVAL;
	requirement.written = requirement_copy(text, text + len);
	requirement.extras = strdup("");
	if (!requirement.written || !requirement.extras)
		r = -ENOMEM;
	else
		r = read_parts(&reader, &requirement);
	if (r < 0)
		requirement_done(&requirement);
	else
		*requirement_r = requirement;
	return r;
}

void
requirement_done(struct requirement *requirement)
{
	free(requirement->written);
	free(requirement->name);
	free(requirement->extras);
	free(requirement->specifiers);
	free(requirement->url);
	free(requirement->marker);
	*requirement = (struct requirement){ .name = NULL };
}

bool
requirement_applies(const struct requirement *requirement,
		    const struct marker_environment *environment, const char *extra)
{
	bool holds = false;

	if (!requirement->marker)
		return true;
	return marker_check(requirement->marker, strlen(requirement->marker), environment,
			    extra, &holds) == 0 && holds;
}

/* ---- lists ---- */

static bool
is_same(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

/* Writes a and b, two requirements of one package, as one requirement. */
static int
put_together(struct requirement *a, const struct requirement *b)
{
	char *extras = requirement_unite(a->extras, b->extras), *specifiers = NULL, *written = NULL;
	bool both = *a->specifiers && *b->specifiers &&
		    strcmp(a->specifiers, b->specifiers) != 0;
	int r = extras ? asprintf(&specifiers, "%s%s%s",
				  *a->specifiers ? a->specifiers : b->specifiers,
				  both ? "," : "", both ? b->specifiers : "") : -1;

	if (r >= 0)
		r = asprintf(&written, "%s%s%s%s%s%s%s%s", a->name, *extras ? "[" : "",
			     extras, *extras ? "]" : "", specifiers,
			     a->url ? " @ " : "", a->url ? a->url : "",
			     a->url && a->marker ? " " : "");
	if (r >= 0 && a->marker) {
		char *with_marker = NULL;

		r = asprintf(&with_marker, "%s; %s", written, a->marker);
		free(written);
		written = with_marker;
	}
	if (r < 0) {
		free(extras);
		free(specifiers);
		return -ENOMEM;
	}
	free(a->extras);
	free(a->specifiers);
	free(a->written);
	a->extras = extras;
	a->specifiers = specifiers;
	a->written = written;
	return 0;
}

static int
requirement_merge(struct requirement *a, const struct requirement *b)
{
	if (is_same(a->extras, b->extras) && is_same(a->specifiers, b->specifiers))
		return 0;
	if (strlen(a->written) + strlen(b->written) > REQUIREMENT_MAX)
		return -E2BIG;
	return put_together(a, b);
}

static struct requirement *
find_like(const struct requirements *list, const struct requirement *wanted)
{
	for (size_t i = 0; i < list->n; i++)
		if (strcmp(list->item[i].name, wanted->name) == 0 &&
		    is_same(list->item[i].url, wanted->url) &&
		    is_same(list->item[i].marker, wanted->marker))
			return &list->item[i];
	return NULL;
}

int
requirements_add(struct requirements *list, struct requirement *requirement)
{
	struct requirement *like = find_like(list, requirement), *item;
	int r = 0;

	if (like) {
		r = requirement_merge(like, requirement);
		requirement_done(requirement);
		return r;
	}
	item = list->n < REQUIREMENTS_MAX
		       ? reallocarray(list->item, list->n + 1, sizeof(*item)) : NULL;
	if (!item) {
		r = list->n < REQUIREMENTS_MAX ? -ENOMEM : -E2BIG;
		requirement_done(requirement);
		return r;
	}
	list->item = item;
	list->item[list->n++] = *requirement;
	*requirement = (struct requirement){ .name = NULL };
	return 0;
}

void
requirements_remove(struct requirements *list, const char *name)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->n; i++)
		if (strcmp(list->item[i].name, name) == 0)
			requirement_done(&list->item[i]);
		else
			list->item[kept++] = list->item[i];
	list->n = kept;
}

void
requirements_done(struct requirements *list)
{
	for (size_t i = 0; i < list->n; i++)
		requirement_done(&list->item[i]);
	free(list->item);
	*list = (struct requirements){ .n = 0 };
}
