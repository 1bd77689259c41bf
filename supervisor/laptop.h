/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of --packages: packages for the one user who starts the service, without a
 * configuration file.
 */
#ifndef SUPERVISOR_LAPTOP_H
#define SUPERVISOR_LAPTOP_H

#include <stdio.h>

struct config;

/* Sets [packages] index and store, [files] directory, [admin] approvals and [policy] approvers, if
 * the files of the configuration do not set them. What is kept is below the user's cache directory,
 * in a directory that is made, and locked until the process ends. The user is the approver. index:
 * a URL, which replaces the one in the files; "": the one in the files is used. If the files have
 * none, the indexes and file hosts are set as pip is configured to use them. 0; or -EINVAL: the
 * mistake was printed to errors. */
int laptop_packages(struct config *config, const char *index, FILE *errors);

#endif
