/* SPDX-License-Identifier: Apache-2.0 */
/* What this process is to systemd.
 */
#ifndef SUPERVISOR_UNIT_H
#define SUPERVISOR_UNIT_H

#include <stdbool.h>

#include "supervisor/arguments.h"

/* A system service is what the system's systemd itself started, as root or with what start-up
 * needs of it, and no user's manager stands in between. Then nothing may be missing (startup.h). */
bool unit_is_system_service(void);

/* Of the unit's ExecStopPost=. A service that has ended as asked has left nothing but sessions for
 * the next one; of any other all that there may be is to be gone before that is started. */
enum exit_code unit_sweep(void);

#endif
