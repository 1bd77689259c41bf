/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about the unit of systemd that this process belongs to.
 */
#ifndef SUPERVISOR_UNIT_H
#define SUPERVISOR_UNIT_H

#include <stdbool.h>

#include "supervisor/arguments.h"

/* Is this a system service? That is a process that the system's systemd started directly, not a
 * user's manager, as root or with the capabilities that start-up needs. Then nothing may be missing
 * (startup.h). */
bool unit_is_system_service(void);

/* For ExecStopPost= of the unit. A service that ended on request has left only sessions for the
 * next one. After any other end, all remaining processes are ended before the service is started
 * again. */
enum exit_code unit_sweep(void);

#endif
