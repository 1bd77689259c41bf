/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of mcp-python itself on standard error; never a script's output. */
#ifndef CLIENT_SAY_H
#define CLIENT_SAY_H

/* Prints one line "mcp-python: ..." on standard error. On a terminal the name is in colour. Text
 * from file names, scripts or the service is escaped (base/quote.h), so that it cannot control a
 * terminal. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* As say, but without the name, and indented: for a detail of the line before. */
void say_more(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
