/* SPDX-License-Identifier: Apache-2.0 */
/* The service that run and repl talk to: one that listens, or one that they start themselves. */
#ifndef CLIENT_SERVICE_H
#define CLIENT_SERVICE_H

#include <stdbool.h>
#include <sys/types.h>

struct options;

struct service {
	int fd;	   /* of the connection; non-blocking */
	pid_t pid; /* of a private supervisor; 0: there is none */
	int log;   /* what that wrote on standard error; a file without a name */
};

/* Connects to the service of the options. If none is named and none listens, or with --private,
 * starts a supervisor for this program alone. packages: such a one may install some.
 * 0, or -errno: the reason was printed. */
int service_open(const struct options *options, bool packages, struct service *service_r);

/* Closes the connection, and waits for the end of a private supervisor. If that failed, or if the
 * call did, prints the errors that it logged. */
void service_close(struct service *service, bool call_failed);

#endif
