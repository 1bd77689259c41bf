/* SPDX-License-Identifier: Apache-2.0 */
/* What mcp-python says about itself on standard error; a script's output never goes
 * here. */
#ifndef CLIENT_SAY_H
#define CLIENT_SAY_H

/* One line "mcp-python: ..." on standard error, the name in colour on a terminal.
 * What a file's name, a script or the service brought into it is shown as base/quote.h says,
 * so that it cannot steer a terminal. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same without the name, indented: a detail of the line before. */
void say_more(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
