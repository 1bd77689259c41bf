/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a wheel, the binary distribution format of Python packages: a zip with the files of one
 * package, its metadata (NAME-VERSION.dist-info), and RECORD, a list of all files.
 *
 * No code of the wheel is run. Its files go to a sink, with the names that they get in an
 * environment:
 *   *.data/purelib, *.data/platlib, *.data/data   at the top
 *   *.data/scripts    bin/, executable; "#!python" in their first line names the interpreter
 *   *.data/headers    include/python/NAME/
 *   console and gui scripts of entry_points.txt   bin/, made by keeper/launchers.h
 *   RECORD            made from the files that went to the sink
 * Files in a __pycache__ directory are left out, because the keeper has the sources compiled.
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
	uint64_t bytes_max;	/* of all its files together */
	uint32_t files_max;
};

/* Gets each file: first its path and size, then exactly this number of bytes. 0; or -errno, which
 * ends wheel_read. */
struct wheel_sink {
	int (*file)(void *arg, const char *path, bool executable, uint64_t size);
	int (*bytes)(void *arg, const void *bytes, size_t len);
	void *arg;
};

/* Reads a wheel, a file of size bytes, only by pread(2). 0; -EBADMSG or -EFBIG with why_r: it is
 * not a valid wheel, not the requested one, or too large; or the error of the sink. digest_prepare
 * must have been called before, and the locale must be one with UTF-8. */
int wheel_read(int wheel, uint64_t size, const struct wheel_asked *asked,
	       const struct wheel_sink *sink, struct why *why_r);

#endif
