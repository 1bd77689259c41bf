/* SPDX-License-Identifier: Apache-2.0 */
/* The root directory of another system, such as another release, whose Python and libraries a
 * profile's jails have in place of the host's ([interpreter NAME] root).
 */
#ifndef WORKER_ROOT_H
#define WORKER_ROOT_H

/* Before Python starts, in the outer namespace: dir becomes "/", with the host's /dev and /proc in it,
 * and the host's own tree is gone. 0, or -errno and *what_r (static) is the step that failed. */
int root_enter(const char *dir, const char **what_r);

#endif
