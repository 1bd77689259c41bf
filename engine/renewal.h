/* SPDX-License-Identifier: Apache-2.0 */
/* Tells when the host has changed in a way that zygotes have to see: what a jail shows of it is in
 * part copied when a zygote starts, and what its interpreter has is listed then. Packages that are
 * installed, certificates and the cache of the dynamic linker are seen without a restart.
 *
 * The kernel tells of changes (inotify), so nothing is read from a disk later on. An installation
 * changes much in a short time; it is told once, when it has been quiet for some seconds.
 */
#ifndef ENGINE_RENEWAL_H
#define ENGINE_RENEWAL_H

struct config;
struct event_base;
struct renewal;

/* Watches directories of the host, those of the configuration's profiles too; before the supervisor
 * gives up opening files. config is used here only. 0, or -errno: changes are not seen. */
int renewal_new(struct event_base *base, const struct config *config, void (*changed)(void *arg),
		void *arg, struct renewal **renewal_r);

/* NULL is fine. */
void renewal_free(struct renewal *renewal);

#endif
