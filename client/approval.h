/* SPDX-License-Identifier: Apache-2.0 */
/* Requests for approval, as people read them, on standard output. */
#ifndef CLIENT_APPROVAL_H
#define CLIENT_APPROVAL_H

#include <jansson.h>

/* Prints one line for each request, and on a terminal a heading above them. */
void approval_print_list(const json_t *list);

/* Prints one request with everything that was asked for. */
void approval_print_all(const json_t *approval);

/* Shows each request that waits, asks on standard input what to do with it, does that, and waits
 * for further requests, until the user leaves. path: the operators' socket. Returns the exit code.
 */
int approval_review(const char *path);

#endif
