/* SPDX-License-Identifier: Apache-2.0 */
/* Reports changes of the host that zygotes have to see. A zygote copies some files of the host and
 * lists the packages of its interpreter when it starts; so without this, newly installed packages,
 * certificates and the cache of the dynamic linker would need a restart.
 *
 * The kernel reports changes (inotify), so nothing is read from a disk later. An installation
 * changes many files in a short time; it is reported once, after some seconds without a change.
 */
#ifndef ENGINE_RENEWAL_H
#define ENGINE_RENEWAL_H

struct config;
struct event_base;
struct renewal;

/* Watches directories of the host and those in the configuration's profiles. Call it before the
 * supervisor enters its fence. config is used here only. 0, or -errno: changes are not seen. */
int renewal_new(struct event_base *base, const struct config *config, void (*changed)(void *arg),
		void *arg, struct renewal **renewal_r);

/* NULL is fine. */
void renewal_free(struct renewal *renewal);

#endif
