/* SPDX-License-Identifier: Apache-2.0 */
/* The root directory of another system, such as another release, whose Python and libraries a
 * profile's jails have in place of the host's ([interpreter NAME] root).
 */
#ifndef WORKER_ROOT_H
#define WORKER_ROOT_H

/* To be called before Python starts, in the outer namespace: dir becomes "/", with the host's /dev
 * and /proc in it, and the rest of the host's tree is unmounted. 0, or -errno with the step that
 * failed in *what_r (static). */
int root_enter(const char *dir, const char **what_r);

#endif
