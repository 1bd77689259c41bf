/* SPDX-License-Identifier: Apache-2.0 */
/* A scope of the user's own service manager: a cgroup in which the kernel counts and limits for a
 * service that the user started by hand. The cgroup of a login belongs to the system.
 */
#ifndef HOST_SCOPE_H
#define HOST_SCOPE_H

struct why;

/* Asks the manager for the scope mcp-pythond-PID.scope with Delegate=yes, and waits until this
 * process, which has no child yet, was moved into it. The manager removes the scope after the
 * process. Waits for timeout_ms at most. 0 or -errno with why_r filled: -ENOENT and -ENOMEDIUM if
 * there is no such manager, -ETIMEDOUT if it does not answer. */
int scope_enter(unsigned int timeout_ms, struct why *why_r);

#endif
