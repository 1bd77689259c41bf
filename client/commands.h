/* SPDX-License-Identifier: Apache-2.0 */
/* The operators' commands that are in files of their own.
 */
#ifndef CLIENT_COMMANDS_H
#define CLIENT_COMMANDS_H

/* Runs a command; argv[0] is its name. Returns the exit code. */
typedef int operator_run(int argc, char **argv);

operator_run audit_command, check_host_command, metrics_command, packages_command,
	     program_command, ps_command, status_command, stop_command, suspend_command,
	     tools_command, top_command;

#endif
