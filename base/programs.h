/* SPDX-License-Identifier: Apache-2.0 */
/* Where the programs of the service are. */
#ifndef BASE_PROGRAMS_H
#define BASE_PROGRAMS_H

#include <stdbool.h>
#include <stddef.h>

/* Writes the path of a program: beside this one, as in a build tree or a bundle, else where it is
 * installed. A bundle has several workers and none named mcp-python-worker: that of the host's
 * python3 stands for it. false: there is none, and path is where it would be installed. */
bool program_path(const char *name, char *path, size_t size);

#endif
