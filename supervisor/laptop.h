/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of a service for the one user who starts it, without a configuration file: packages
 * (--packages), and a directory for kept files.
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

/* Sets [files] directory, unless it is set: a directory of the user's own, below XDG_STATE_HOME or
 * XDG_RUNTIME_DIR, whose files end with the service (files.passing). It is made and locked, and
 * what services that were killed have left beside it is removed. If there is none, the reason is
 * logged, and larger files are not kept. */
void laptop_files(struct config *config, FILE *errors);

/* Sets config->folder. folder: DIR, DIR:ro or DIR:rw. 0; or -EINVAL: it is no directory that can be
 * shown, and the reason was printed to errors. */
int laptop_folder(struct config *config, const char *folder, FILE *errors);

#endif
