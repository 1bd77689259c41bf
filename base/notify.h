/* SPDX-License-Identifier: Apache-2.0 */
/* Notifications to systemd: readiness, a status line, signs of life, the end. If systemd has not
 * asked for notifications, these functions do nothing.
 */
#ifndef BASE_NOTIFY_H
#define BASE_NOTIFY_H

#include <stddef.h>

struct loop;
struct notify;

#define NOTIFY_STATUS_MAX 256		/* bytes of a status line with its NUL */

/* Makes the notifier. describe: writes the current status line; it is called when the status may
 * have changed. */
struct notify *notify_new(struct loop *loop,
			  void (*describe)(void *arg, char *text, size_t size), void *arg);
void notify_free(struct notify *notify);	/* NULL is fine */

/* Sends one state by sd_notify(3). The call is repeated until it is sent, because the guard against
 * waits (stall.h) can interrupt it. */
int notify_say(const char *state);

void notify_ready(struct notify *notify);

/* To be called when a reload begins. When the reload is done, notify_ready is to be called. */
void notify_reloading(struct notify *notify);
void notify_stopping(struct notify *notify);

#endif
