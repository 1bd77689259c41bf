/* What a zygote says to the supervisor before it is ready. */
#ifndef WORKER_HELLO_H
#define WORKER_HELLO_H

/* Sends HELLO, which is the first message, once. Returns 0 or -errno. */
int hello_send(void);

/* Tells the supervisor that the zygote cannot be, and why. error: positive errno. */
void hello_fail(const char *what, int error);

#endif
