/* SPDX-License-Identifier: Apache-2.0 */
/* The operator's list of advisories about packages ([packages] advisories): records of OSV as JSON,
 * one after the other in a file. A thread reads the file, at the start and at each reload; the loop
 * looks packages up in what was read last.
 */
#ifndef GOVERN_ADVISORIES_H
#define GOVERN_ADVISORIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

struct advisories;
struct event_base;

#define ADVISORIES_MAX 500000			/* about one package each */
#define ADVISORIES_BYTES_MAX (UINT64_C(256) << 20)	/* of memory */
#define ADVISORIES_FILE_MAX (INT64_C(1) << 30)		/* bytes of the file */
#define ADVISORIES_RECORD_MAX ((size_t)4 << 20)		/* bytes of a record */

struct advisories *advisories_new(void);
void advisories_free(struct advisories *advisories);	/* NULL is fine */

/* Starts the thread, as writer_new (govern/writer.h). 0 or -errno. */
int advisories_start(struct advisories *advisories, struct event_base *base);

/* Begins to read a file; NULL: there is none. Until it was read, what was read before counts. If it
 * cannot be read, that stays so, and the log and advisories_trouble say why. */
void advisories_load(struct advisories *advisories, const char *path);

/* Why the packages cannot be compared with the configured file: it is still being read, or it could
 * not be read. NULL: they can, or no file is configured. */
const char *advisories_trouble(const struct advisories *advisories);

/* What is known of a version of a package (normalised name): a new list of advisory_affects
 * (policy/advisory.h); NULL: nothing. */
json_t *advisories_of(const struct advisories *advisories, const char *name, const char *version);

#endif
