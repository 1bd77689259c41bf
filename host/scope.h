/* SPDX-License-Identifier: Apache-2.0 */
/* Gets a scope from the user's own service manager: a cgroup with controllers, for a service that
 * the user started by hand. (The cgroup of a login belongs to the system.)
 */
#ifndef HOST_SCOPE_H
#define HOST_SCOPE_H

struct why;

/* Asks the manager for the scope mcp-pythond-PID.scope with Delegate=yes, and waits until this
 * process, which has no child yet, was moved into it. The manager removes the scope when the
 * process has ended. Waits for at most timeout_ms. 0 or -errno with why_r filled: -ENOENT and
 * -ENOMEDIUM if there is no such manager, -ETIMEDOUT if it does not answer. */
int scope_enter(unsigned int timeout_ms, struct why *why_r);

#endif
