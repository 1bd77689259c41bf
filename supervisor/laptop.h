/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of --packages: packages for the one user who starts the service, without a
 * configuration file.
 */
#ifndef SUPERVISOR_LAPTOP_H
#define SUPERVISOR_LAPTOP_H

#include <stdio.h>

struct config;

/* Sets [packages] index and store, [admin] approvals and [policy] approvers, each unless the files
 * set it. Packages and answers are kept below the user's cache directory, which is made. The user
 * approves. index: a URL, which overrides that of the files; "": that of the files, or else the one
 * that pip is configured to use. 0; or -EINVAL: the mistake was printed to errors. */
int laptop_packages(struct config *config, const char *index, FILE *errors);

#endif
