/* SPDX-License-Identifier: Apache-2.0 */
/* Reports changes of the host's files that need new zygotes. A zygote copies some files of the host
 * and lists the packages of its interpreter when it starts. Without this module, scripts would see
 * newly installed packages, certificates and libraries only after a restart of the service.
 *
 * The kernel reports changes (inotify), so no file is read after the start. An installation changes
 * many files in a short time; it is reported once, after some seconds without a change.
 */
#ifndef ENGINE_RENEWAL_H
#define ENGINE_RENEWAL_H

struct config;
struct event_base;
struct renewal;

/* Watches some directories of the host, and the paths in the configuration's profiles. changed is
 * called from the loop. To be called before the supervisor enters its fence. config is used during
 * the call only. 0, or -errno: changes are not seen. */
int renewal_new(struct event_base *base, const struct config *config, void (*changed)(void *arg),
		void *arg, struct renewal **renewal_r);

/* NULL is fine. */
void renewal_free(struct renewal *renewal);

#endif
