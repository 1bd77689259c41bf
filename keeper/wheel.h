/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a wheel, the binary distribution format of Python packages: a zip with the files of one
 * package, what it is (NAME-VERSION.dist-info) and RECORD, which tells of each file.
 *
 * Nothing of it is run. Its files go to a sink under the names that they have in an environment:
 *   *.data/purelib, *.data/platlib, *.data/data   as if they lay at the top
 *   *.data/scripts    bin/, executable; "#!python" in their first line names the interpreter
 *   *.data/headers    include/python/NAME/
 *   console and gui scripts of entry_points.txt   bin/, made here
 *   RECORD            made here, of what went to the sink
 * What is in a __pycache__ directory is left out: what is compiled is compiled here.
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

/* Gets each file, then its bytes, as many as was said; a negative errno ends the reading. */
struct wheel_sink {
	int (*file)(void *arg, const char *path, bool executable, uint64_t size);
	int (*bytes)(void *arg, const void *bytes, size_t len);
	void *arg;
};

/* wheel: a file of size bytes, read by pread(2) alone. 0; -EBADMSG or -EFBIG with why_r filled:
 * it is no such wheel, or not the one that was asked for, or too large; or what the sink
 * returned. digest_prepare must have been called, and the locale's characters be UTF-8. */
int wheel_read(int wheel, uint64_t size, const struct wheel_asked *asked,
	       const struct wheel_sink *sink, struct why *why_r);

#endif
