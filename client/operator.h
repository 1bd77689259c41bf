/* SPDX-License-Identifier: Apache-2.0 */
/* The commands for operators: approvals, approve, deny, audit, status, metrics, top, ps, stop,
 * suspend, resume, tools, interpreter and check-host. Each reads its arguments itself, because
 * other commands do not have them.
 */
#ifndef CLIENT_OPERATOR_H
#define CLIENT_OPERATOR_H

#include "client/commands.h"

/* The command of this name; NULL: there is none. */
operator_run *operator_command(const char *name);

#endif
