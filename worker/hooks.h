/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks of Python: functions for forks, and audit events.
 *
 * Makes workers do without some functions that modules have registered for forks
 * (os.register_at_fork).
 *
 * The functions of threading, logging and concurrent.futures clean up after other threads: they
 * renew locks that such a thread may have held, and forget the threads. A zygote has one thread
 * when it clones a worker. So these functions run once, in the zygote, and not in each worker,
 * where they would write to a third of the pages that a small script writes to. Forks of the script
 * run them as on a host. */
#ifndef WORKER_HOOKS_H
#define WORKER_HOOKS_H

struct _object;

/* Called before modules are imported: from now on the functions that they register are noted. 0 or
 * -EIO, with an exception set. */
int hooks_watch(void);

/* A function of Python without arguments. It is to be called in the zygote when all modules are
 * imported: it runs the functions that workers leave out, and restores os.register_at_fork. NULL,
 * with an exception set: there is no memory. */
struct _object *hooks_settler(void);

/* A function of Python with one argument: a function that is called from now on with the name of
 * each audit event of sockets and threads; None ends that. NULL, with an exception set: there is no
 * memory. */
struct _object *hooks_event_watcher(void);

/* A function of Python without arguments. It returns the actions of all signals as bytes, also
 * those that Python does not know. NULL, with an exception set: there is no memory. */
struct _object *hooks_signal_actions(void);

/* Called in a worker once it was cloned: forks from now on are the script's. */
void hooks_born(void);

#endif
