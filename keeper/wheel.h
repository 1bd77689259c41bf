/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a wheel, the binary distribution format of Python packages: a zip with the files of one
 * package, its metadata (NAME-VERSION.dist-info), and RECORD, a list of all files.
 *
 * No code of it is run. Its files go to a sink, with the names that they have in an environment:
 *   *.data/purelib, *.data/platlib, *.data/data   at the top
 *   *.data/scripts    bin/, executable; "#!python" in their first line names the interpreter
 *   *.data/headers    include/python/NAME/
 *   console and gui scripts of entry_points.txt   bin/, made here
 *   RECORD            made here, from the files that went to the sink
 * Files in a __pycache__ directory are left out: sources are compiled here.
 */
#ifndef KEEPER_WHEEL_H
#define KEEPER_WHEEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct why;

struct wheel_asked {
	const char *name;	/* normalised (requirement_normalise) */
	const char *version;	/* PEP 440 */
	const char *python;	/* absolute path of the interpreter, for scripts */
	uint64_t bytes_max;	/* of its files together */
	uint32_t files_max;
};

/* Gets each file, then exactly the announced number of its bytes; a negative errno ends the
 * reading. */
struct wheel_sink {
	int (*file)(void *arg, const char *path, bool executable, uint64_t size);
	int (*bytes)(void *arg, const void *bytes, size_t len);
	void *arg;
};

/* wheel: a file of size bytes, read only by pread(2). 0; -EBADMSG or -EFBIG with why_r filled: it
 * is not a valid wheel, not the requested one, or too large; or the result of the sink.
 * digest_prepare must have been called, and the locale must have UTF-8. */
int wheel_read(int wheel, uint64_t size, const struct wheel_asked *asked,
	       const struct wheel_sink *sink, struct why *why_r);

#endif
