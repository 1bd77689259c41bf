/* SPDX-License-Identifier: Apache-2.0 */
/* The commands for operators: approvals, approve, deny, audit, status, metrics, top, ps, stop,
 * suspend, resume, tools, interpreter and check-host. Each reads its arguments itself, because
 * other commands do not have them.
 */
#ifndef CLIENT_OPERATOR_H
#define CLIENT_OPERATOR_H

/* Runs a command; argv[0] is its name. Returns the exit code. */
typedef int operator_run(int argc, char **argv);

/* The command of this name; NULL: there is none. */
operator_run *operator_command(const char *name);

operator_run audit_command, status_command, metrics_command, top_command, ps_command, stop_command,
	     suspend_command,
	     check_host_command, interpreter_command, tools_command;

#endif
