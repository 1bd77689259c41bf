/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of a zygote to the supervisor before it is ready. */
#ifndef WORKER_HELLO_H
#define WORKER_HELLO_H

/* Sends HELLO, which is the first message, once. Returns 0 or -errno. */
int hello_send(void);

/* Reports that the zygote cannot start, and why. error: positive errno. */
void hello_fail(const char *what, int error);

#endif
