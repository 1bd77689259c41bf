/* What systemd is told: readiness, a status line, signs of life, the end. Everything here
 * does nothing when systemd did not ask for it.
 */
#ifndef BASE_NOTIFY_H
#define BASE_NOTIFY_H

#include <stddef.h>

struct loop;
struct notify;

#define NOTIFY_STATUS_MAX 256		/* bytes of a status line with its NUL */

/* describe writes the status line of now; it is asked when it may have changed. */
struct notify *notify_new(struct loop *loop,
			  void (*describe)(void *arg, char *text, size_t size), void *arg);
void notify_free(struct notify *notify);	/* NULL is fine */

/* sd_notify(3) of one state, to its end: the guard against waits interrupts it. */
int notify_say(const char *state);

void notify_ready(struct notify *notify);
/* Files are read again; notify_ready when they were. */
void notify_reloading(struct notify *notify);
void notify_stopping(struct notify *notify);

#endif
