/* SPDX-License-Identifier: Apache-2.0 */
/* What operators type: approvals, approve, deny, audit, status, metrics, top, ps, stop, tools and
 * check-host.
 * Their arguments are read where they are run, because no other command has them.
 */
#ifndef CLIENT_OPERATOR_H
#define CLIENT_OPERATOR_H

/* Runs a command, which is argv[0]. Returns the exit code. */
typedef int operator_run(int argc, char **argv);

/* The command of this name; NULL: it is not one of these. */
operator_run *operator_command(const char *name);

operator_run audit_command, status_command, metrics_command, top_command, ps_command, stop_command,
	     check_host_command, interpreter_command, tools_command;

#endif
