/* SPDX-License-Identifier: Apache-2.0 */
/* Handles: names by which a client refers to a session of run_repl, a job or a task in later calls.
 * A handle alone gives no right: code that accepts a handle must also check the tenant.
 *
 * Where the service serves HTTP, a handle ends with the name of this host, so that a proxy in front
 * of several hosts finds the right one.
 */
#ifndef BASE_HANDLE_H
#define BASE_HANDLE_H

#include <stdbool.h>

#include "base/id.h"

#define HANDLE_HOST_MAX 63	/* one label: RFC 1035, 2.3.4 */
#define HANDLE_MAX (2 + ID_SHORT + 1 + HANDLE_HOST_MAX)

/* Makes a new handle, KIND-ID or KIND-ID-HOST (base/id.h). kind: a lower-case letter. */
void handle_new(char kind, char handle_r[HANDLE_MAX + 1]);

/* Handles that are made from now on have the host's name, or have it not. */
void handle_name_host(bool named);

/* Gets the part of a host's name that is used in handles: the letters, digits and hyphens before
 * the first dot; "host" if there are none. */
void handle_host(const char *name, char host_r[HANDLE_HOST_MAX + 1]);

/* As handle_host, for the name of this host. */
void handle_own_host(char host_r[HANDLE_HOST_MAX + 1]);

#endif
