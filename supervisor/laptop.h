/* SPDX-License-Identifier: Apache-2.0 */
/* Packages for the one user who starts the service: what --packages sets, so that no configuration
 * has to be written.
 */
#ifndef SUPERVISOR_LAPTOP_H
#define SUPERVISOR_LAPTOP_H

#include <stdio.h>

struct config;

/* Sets [packages] index and store, [admin] approvals and [policy] approvers, each unless the files
 * say it. What is kept is below the user's cache directory, which is made. The user approves.
 * index: a URL, which goes before that of the files; "": that of the files, or else the one that
 * pip uses here. 0; -EINVAL: what is wrong was printed to errors. */
int laptop_packages(struct config *config, const char *index, FILE *errors);

#endif
