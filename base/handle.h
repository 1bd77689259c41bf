/* SPDX-License-Identifier: Apache-2.0 */
/* Handles: names of things that a client uses again, such as a REPL session, a job or a task. They
 * cannot be guessed. Each ends with the name of this host, so that a proxy in front of several
 * hosts finds the right one. A handle alone gives no right: the code that accepts one also checks
 * the tenant.
 */
#ifndef BASE_HANDLE_H
#define BASE_HANDLE_H

#include "base/id.h"

#define HANDLE_HOST_MAX 63	/* one label: RFC 1035, 2.3.4 */
#define HANDLE_MAX (2 + ID_CHARACTERS + 1 + HANDLE_HOST_MAX)

/* A new one: KIND-ID-HOST (base/id.h). kind: a lower-case letter. */
void handle_new(char kind, char handle_r[HANDLE_MAX + 1]);

/* The part of a host's name that is in its handles: letters, digits and hyphens up to the first
 * dot; "host" if there are none. */
void handle_host(const char *name, char host_r[HANDLE_HOST_MAX + 1]);

/* The same for the name of this host. */
void handle_own_host(char host_r[HANDLE_HOST_MAX + 1]);

#endif
