/* SPDX-License-Identifier: Apache-2.0 */
/* The service that run and repl use: a running one, or a private supervisor that they start. */
#ifndef CLIENT_SERVICE_H
#define CLIENT_SERVICE_H

#include <stdbool.h>
#include <sys/types.h>

struct options;

struct service {
	int fd;	   /* of the connection; non-blocking */
	pid_t pid; /* of a private supervisor; 0: there is none */
	int log;   /* its standard error; a file without a name */
};

/* Connects to the service that the options name. If they name none and none listens, or with
 * --private, starts a private supervisor. packages: that supervisor may install packages. 0, or
 * -errno: the reason was printed. */
int service_open(const struct options *options, bool packages, struct service *service_r);

/* Closes the connection, and waits for the end of a private supervisor. If the supervisor or the
 * call failed, prints the errors that it logged. */
void service_close(struct service *service, bool call_failed);

#endif
