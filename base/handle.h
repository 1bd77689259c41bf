/* Names of what a client comes back for: a REPL session, a job, a task. They cannot be guessed;
 * one, and each ends with the name of this host, so that a proxy in front of several finds the
 * one that knows it. A handle alone gives no right: the code that accepts one checks the tenant
 * too.
 */
#ifndef BASE_HANDLE_H
#define BASE_HANDLE_H

#include "base/id.h"

#define HANDLE_HOST_MAX 63	/* one label: RFC 1035, 2.3.4 */
#define HANDLE_MAX (2 + ID_CHARACTERS + 1 + HANDLE_HOST_MAX)

/* A new one: KIND-ID-HOST (base/id.h). kind: a lower-case letter. */
void handle_new(char kind, char handle_r[HANDLE_MAX + 1]);

/* What of a host's name stands in its handles: letters, digits and hyphens up to the
 * first dot; "host" when there are none. */
void handle_host(const char *name, char host_r[HANDLE_HOST_MAX + 1]);

/* The same of this host's own name. */
void handle_own_host(char host_r[HANDLE_HOST_MAX + 1]);

#endif
