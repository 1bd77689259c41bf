/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor: its loop, and a thread that reads the file.   Owns: what was read.
 * Reads:   records of OSV, from the operator's file. */
#include "govern/advisories.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/xalloc.h"
#include "govern/writer.h"
#include "policy/advisory.h"

#define TROUBLE_BYTES 256

/* An advisory about one package, as JSON: values of jansson would take several times as much. */
struct advisory_row {
	char *name;
	char *text;
};

struct advisory_table {
	struct advisory_row *row;	/* ordered by name */
	size_t n, room;
	uint64_t bytes;
};

/* One reading of a file. */
struct advisory_reading {
	struct writing writing;
	struct advisories *advisories;
	char *path;
	struct advisory_table table;
	char trouble[TROUBLE_BYTES];	/* "": none */
};

struct advisories {
	struct writer *writer;
	struct advisory_table table;
	struct advisory_reading *newest;	/* its result counts; NULL: nothing is being read */
	bool has_file, was_read;
	char trouble[TROUBLE_BYTES];
};

static void
free_table(struct advisory_table *table)
{
	for (size_t i = 0; i < table->n; i++) {
		free(table->row[i].name);
		free(table->row[i].text);
	}
	free(table->row);
	*table = (struct advisory_table){ .row = NULL };
}

/* ---- in the thread ---- */

static int
add_row(struct advisory_table *table, char *name, json_t *advisory)
{
	char *text = xalloc_check(json_dumps(advisory, JSON_COMPACT));

	json_decref(advisory);
	table->bytes += strlen(name) + strlen(text) + sizeof(*table->row);
	if (table->n == table->room) {
		table->room = table->room ? 2 * table->room : 1024;
		table->row = xalloc_check(reallocarray(table->row, table->room,
						       sizeof(*table->row)));
	}
	table->row[table->n++] = (struct advisory_row){ name, text };
	return table->n > ADVISORIES_MAX || table->bytes > ADVISORIES_BYTES_MAX ? -E2BIG : 0;
}

static int
take_record(struct advisory_table *table, const json_t *record)
{
	const json_t *affected;
	size_t i;

	json_array_foreach(json_object_get(record, "affected"), i, affected) {
		char *name;
		json_t *advisory = advisory_take(record, affected, &name);

		if (advisory && add_row(table, name, advisory) < 0)
			return -E2BIG;
	}
	return 0;
}

static bool
is_at_end(FILE *in)
{
	int c;

	while ((c = getc(in)) != EOF && isspace(c))
		;
	if (c != EOF)
		ungetc(c, in);
	return c == EOF;
}

static int
compare_rows(const void *a, const void *b)
{
	const struct advisory_row *left = a, *right = b;

	return strcmp(left->name, right->name);
}

/* The bytes of one record. */
struct record_bytes {
	FILE *in;
	size_t left;			/* as many as it may still have */
};

/* As json_load_callback_t. A byte at a time, because what is behind the record is the next one. */
static size_t
next_byte(void *buffer, size_t, void *arg)
{
	struct record_bytes *bytes = arg;
	int c = bytes->left > 0 ? getc_unlocked(bytes->in) : EOF;

	if (c == EOF)
		return 0;
	*(char *)buffer = (char)c;
	bytes->left--;
	return 1;
}

static void
read_records(struct advisory_reading *reading, FILE *in)
{
	for (size_t n = 1; !is_at_end(in); n++) {
		struct record_bytes bytes = { in, ADVISORIES_RECORD_MAX };
		json_error_t error;
		json_t *record = json_load_callback(next_byte, &bytes, JSON_DISABLE_EOF_CHECK,
						    &error);
		int r = record ? take_record(&reading->table, record) : 0;

		json_decref(record);
		if (record && r == 0)
			continue;
		snprintf(reading->trouble, sizeof(reading->trouble), "record %zu: %s", n,
			 r < 0 ? "there are too many advisories"
			 : bytes.left == 0 ? "it is too long" : error.text);
		return;
	}
	if (ferror(in))
		snprintf(reading->trouble, sizeof(reading->trouble), "%s", strerror(errno));
	else if (reading->table.n == 0)
		snprintf(reading->trouble, sizeof(reading->trouble),
			 "it has no advisory about a package of PyPI");
	else
		qsort(reading->table.row, reading->table.n, sizeof(*reading->table.row),
		      compare_rows);
}

static void
advisories_read(struct writing *writing)
{
	struct advisory_reading *reading = (struct advisory_reading *)(void *)writing;
	int fd = open(reading->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	FILE *in = fd >= 0 ? fdopen(fd, "r") : NULL;
	struct stat st;

	if (!in || fstat(fd, &st) < 0)
		snprintf(reading->trouble, sizeof(reading->trouble), "%s", strerror(errno));
	else if (!S_ISREG(st.st_mode) || st.st_size > ADVISORIES_FILE_MAX)
		snprintf(reading->trouble, sizeof(reading->trouble),
			 "it is no regular file of at most %" PRId64 " bytes", ADVISORIES_FILE_MAX);
	else
		read_records(reading, in);
	if (in)
		fclose(in);
	else if (fd >= 0)
		close(fd);
}

/* ---- in the loop ---- */

static void
take_over(struct advisories *advisories, struct advisory_reading *reading)
{
	struct log_quoted quoted;

	if (*reading->trouble) {
		snprintf(advisories->trouble, sizeof(advisories->trouble), "%s", reading->trouble);
		log_line(LOG_ERR, "advisories-failed", "file=%s text=%s", reading->path,
			 log_quote(&quoted, reading->trouble, strlen(reading->trouble)));
		return;
	}
	free_table(&advisories->table);
	advisories->table = reading->table;
	reading->table = (struct advisory_table){ .row = NULL };
	advisories->trouble[0] = '\0';
	advisories->was_read = true;
	log_line(LOG_INFO, "advisories-read", "n=%zu bytes=%" PRIu64, advisories->table.n,
		 advisories->table.bytes);
}

static void
advisories_on_read(struct writing *writing)
{
	struct advisory_reading *reading = (struct advisory_reading *)(void *)writing;
	struct advisories *advisories = reading->advisories;

	if (advisories->newest == reading) {
		advisories->newest = NULL;
		take_over(advisories, reading);
	}
	free_table(&reading->table);
	free(reading->path);
	free(reading);
}

void
advisories_load(struct advisories *advisories, const char *path)
{
	struct advisory_reading *reading;

	advisories->has_file = path != NULL;
	advisories->newest = NULL;
	if (!path) {
		free_table(&advisories->table);
		advisories->was_read = false;
		advisories->trouble[0] = '\0';
		return;
	}
	reading = xcalloc(1, sizeof(*reading));
	reading->writing = (struct writing){ .write = advisories_read,
					     .written = advisories_on_read };
	reading->advisories = advisories;
	reading->path = xstrdup(path);
	advisories->newest = reading;
	writer_put(advisories->writer, &reading->writing);
}

const char *
advisories_trouble(const struct advisories *advisories)
{
	if (!advisories || !advisories->has_file)
		return NULL;
	if (*advisories->trouble)
		return advisories->trouble;
	return advisories->was_read ? NULL : "they are still being read; try again in some seconds";
}

/* The first row of a name, or where it would be. */
static size_t
find_row(const struct advisory_table *table, const char *name)
{
	size_t low = 0, high = table->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(table->row[middle].name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

json_t *
advisories_of(const struct advisories *advisories, const char *name, const char *version)
{
	const struct advisory_table *table = advisories ? &advisories->table : NULL;
	json_t *list = NULL, *found;

	for (size_t i = table ? find_row(table, name) : 0;
	     table && i < table->n && strcmp(table->row[i].name, name) == 0; i++) {
		json_t *advisory = json_loads(table->row[i].text, 0, NULL);

		if (advisory && advisory_affects(advisory, version, &found)) {
			if (!list)
				list = json_array();
			advisory_add(list, found);
		}
		json_decref(advisory);
	}
	return list;
}

struct advisories *
advisories_new(void)
{
	return xcalloc(1, sizeof(struct advisories));
}

int
advisories_start(struct advisories *advisories, struct event_base *base)
{
	return writer_new(base, "advisories", &advisories->writer);
}

void
advisories_free(struct advisories *advisories)
{
	if (!advisories)
		return;
	writer_free(advisories->writer);
	free_table(&advisories->table);
	free(advisories);
}
