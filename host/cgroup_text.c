/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing.
 * Parses the kernel's texts about cgroups and mounts; proc(5), cgroups(7). */
#include "host/cgroup_text.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *
cgroup_text_next_line(const char *line)
{
	const char *end = strchr(line, '\n');

	return end ? end + 1 : line + strlen(line);
}

int
cgroup_text_own(const char *text, char *path_r, size_t size)
{
	const char *line;
	size_t len;

	for (line = text; *line != '\0'; line = cgroup_text_next_line(line)) {
		if (strncmp(line, "0::", 3) != 0)
			continue;
		len = strcspn(line + 3, "\n");
		if (len == 0 || line[3] != '/')
			return -ENOENT;
		if (len >= size)
			return -ENAMETOOLONG;
		memcpy(path_r, line + 3, len);
		path_r[len] = '\0';
		return 0;
	}
	return -ENOENT;
}

/* Copies a field of mountinfo, in which blank, tab, newline and backslash are octal escapes. */
static int
cgroup_unescape(const char *at, size_t len, char *to, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		int c = (unsigned char)at[i];

		if (c == '\\' && i + 3 < len && at[i + 1] >= '0' && at[i + 1] <= '3') {
			c = (at[i + 1] - '0') << 6 | (at[i + 2] - '0') << 3 |
			    (at[i + 3] - '0');
			i += 3;
		}
		if (n + 1 >= size)
			return -ENAMETOOLONG;
		to[n++] = (char)c;
	}
	to[n] = '\0';
	return 0;
}

/* The part of path below root, without a leading slash; NULL: path is not below root. */
static const char *
cgroup_below(const char *root, const char *path)
{
	size_t len = strlen(root);

	if (len > 0 && root[len - 1] == '/')
		len--;
	if (strncmp(path, root, len) != 0 || (path[len] != '/' && path[len] != '\0'))
		return NULL;
	return path[len] == '/' ? path + len + 1 : path + len;
}

static int
directory_by_line(const char *line, size_t len, const char *own, char *path_r,
		  size_t size)
{
	char root[1024], point[1024];
	const char *field[5], *dash, *rest;
	size_t width[5], n = 0;
	int r;

	for (const char *at = line; n < 5 && at < line + len; n++) {
		field[n] = at;
		width[n] = strcspn(at, " \n");
		at += width[n] + 1;
	}
	dash = memmem(line, len, " - ", 3);
	if (n < 5 || dash == NULL || strncmp(dash + 3, "cgroup2 ", 8) != 0)
		return -ENOENT;
	if (cgroup_unescape(field[3], width[3], root, sizeof(root)) < 0 ||
	    cgroup_unescape(field[4], width[4], point, sizeof(point)) < 0)
		return -ENAMETOOLONG;
	rest = cgroup_below(root, own);
	if (rest == NULL)
		return -ENOENT;
	r = snprintf(path_r, size, "%s%s%s", point, *rest ? "/" : "", rest);
	return r < 0 || (size_t)r >= size ? -ENAMETOOLONG : 0;
}

int
cgroup_text_directory(const char *mountinfo, const char *own, char *path_r, size_t size)
{
	const char *line;
	int r;

	for (line = mountinfo; *line != '\0'; line = cgroup_text_next_line(line)) {
		r = directory_by_line(line, strcspn(line, "\n"), own, path_r, size);
		if (r != -ENOENT)
			return r;
	}
	return -ENOENT;
}

int
cgroup_text_number(const char *text, uint64_t *value_r)
{
	unsigned long long value;
	char *end;

	if (strncmp(text, "max", 3) == 0 && (text[3] == '\n' || text[3] == '\0')) {
		*value_r = UINT64_MAX;
		return 0;
	}
	if (!isdigit((unsigned char)*text))
		return -EBADMSG;
	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno != 0 || (*end != '\n' && *end != '\0'))
		return -EBADMSG;
	*value_r = value;
	return 0;
}

int
cgroup_text_counter(const char *text, const char *key, uint64_t *value_r)
{
	size_t len = strlen(key);
	const char *line;

	for (line = text; *line != '\0'; line = cgroup_text_next_line(line))
		if (strncmp(line, key, len) == 0 && line[len] == ' ')
			return cgroup_text_number(line + len + 1, value_r);
	return -ENOENT;
}

bool
cgroup_text_has_word(const char *text, const char *word)
{
	size_t len = strlen(word);

	while (*text != '\0') {
		size_t n = strcspn(text, " \n");

		if (n > 0 && n == len && memcmp(text, word, n) == 0)
			return true;
		text += n;
		text += strspn(text, " \n");
	}
	return false;
}
