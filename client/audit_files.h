/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the files of the audit log, the oldest first: PATH.1, PATH.2 ... and at last PATH. */
#ifndef CLIENT_AUDIT_FILES_H
#define CLIENT_AUDIT_FILES_H

#include <stdbool.h>
#include <stddef.h>

struct audit_line {
	const char *path;
	unsigned int number;	/* in its file, from 1 */
	const char *text;	/* not followed by NUL */
	size_t len;		/* without its line break */
	bool is_whole;		/* it has a line break */
};

struct audit_files {
	const char *path;
	void (*on_line)(void *arg, const struct audit_line *line);
	bool (*on_end)(void *arg);	/* all lines that exist now were read; false: no more are
					 * wanted */
	void *arg;
	/* last not 0: begins at the last so many lines for which wants is true. They are looked
	 * for from the end. */
	size_t last;
	bool (*wants)(void *arg, const char *text, size_t len);
	/* Not NULL: begins at the first line for which it is false. Those before it are not read,
	 * and it is true for all of them. */
	bool (*is_early)(void *arg, const char *text, size_t len);
};

/* Reads all lines, or the last ones. follow: then also those that the service adds, until on_end
 * returns false; these are whole. Returns 0, or an exit code after printing the reason. */
int audit_files_read(const struct audit_files *files, bool follow);

#endif
