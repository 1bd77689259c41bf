/* SPDX-License-Identifier: Apache-2.0 */
/* Gets a scope from the user's own service manager: a cgroup with controllers, for a service that
 * the user has started by hand. (The cgroup of a login session belongs to the system.)
 */
#ifndef HOST_SCOPE_H
#define HOST_SCOPE_H

struct why;

/* Asks the manager for the scope mcp-pythond-PID.scope with Delegate=yes, and waits until this
 * process was moved into it, at most timeout_ms. To be called before this process has a child. The
 * manager removes the scope when the process has ended. 0. Or -errno with why_r: -ENOENT or
 * -ENOMEDIUM: there is no such manager; -ETIMEDOUT: it does not answer. */
int scope_enter(unsigned int timeout_ms, struct why *why_r);

#endif
